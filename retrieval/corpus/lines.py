"""A document as lines: its title, then each sentence, heading and row of a table, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from arag.retrieval.storage.records import ChunkText
from arag.retrieval.types import Chunk
from arag.text.normalise import collapse_whitespace, is_title

# White space other than " ", as `str.split` knows it.
_ASCII_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f"
_OTHER_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a document, with each run of white space as one space."""

    chunk: Chunk | ChunkText
    position: int | None
    """Of its sentence in the chunk; None for a title that is not in the text."""
    text: str
    names_document: bool = False
    """Whether it is the document's title, from its text or not."""


def list_lines(chunk: Chunk) -> list[Line]:
    """Return the lines of a chunk.

    A document's first chunk begins with its title, as a Markdown heading, unless the text itself begins with it.
    """
    lines: list[Line] = []
    for position in range(len(chunk.sentences)):
        text = collapse_whitespace(chunk.sentence_text(position))
        if text:
            lines.append(Line(chunk, position, text))
    if chunk.ordinal > 0:
        return lines
    if lines and is_title(lines[0].text, chunk.title):
        first = lines[0]
        lines[0] = Line(chunk, first.position, first.text, names_document=True)
    elif title := collapse_whitespace(chunk.title):
        lines.insert(0, Line(chunk, None, f"# {title}", names_document=True))
    return lines


@dataclass(frozen=True, slots=True)
class LineBlock:
    """The sentences of some chunks as lines in UTF-8, each collapsed and ended by a newline.

    It has the lines of `list_lines`, apart from titles that are not in the text, and is made several times as fast.
    """

    text: bytes
    first_lines: list[int]
    """The number of each chunk's first line, and in the end how many lines there are."""

    @classmethod
    def of(cls, chunks: Iterable[ChunkText]) -> LineBlock:
        """Make the block of some chunks."""
        first_lines: list[int] = []
        lines: list[str] = []
        for chunk in chunks:
            first_lines.append(len(lines))
            text = _replace_spaces(chunk.text)
            lines += [text[start:end].strip() for start, end in zip(chunk.starts, chunk.ends, strict=True)]
        first_lines.append(len(lines))
        block = ("\n".join(lines) + "\n").encode()
        while _has_double_space(block):
            block = block.replace(b"  ", b" ")
        return cls(block, first_lines)


def _replace_spaces(text: str) -> str:
    """Return a text in which each character of white space is a plain space."""
    spaces = _ASCII_SPACES if text.isascii() else _ASCII_SPACES + _OTHER_SPACES
    for space in spaces:  # faster than `translate`, or than a pattern
        text = text.replace(space, " ")
    return text


def _has_double_space(text: bytes) -> bool:
    """Return whether a text has two spaces side by side; several times as fast as `in`."""
    is_space = np.frombuffer(text, np.uint8) == ord(" ")
    return bool(np.any(is_space[1:] & is_space[:-1]))


def places_by_text(chunk: Chunk) -> dict[str, list[int]]:
    """Return the positions of a chunk's sentences by their lines' texts."""
    places: dict[str, list[int]] = {}
    for line in list_lines(chunk):
        if line.position is not None:
            places.setdefault(line.text, []).append(line.position)
    return places
