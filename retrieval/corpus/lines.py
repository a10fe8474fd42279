"""A document as lines: its title, then each sentence, heading and row of a table, in the order of the text."""

from __future__ import annotations

from dataclasses import dataclass

from arag.retrieval.storage.records import ChunkText
from arag.retrieval.types import Chunk
from arag.text.normalise import collapse_whitespace, is_title

# White space other than " ", as `str.split` knows it.
_ASCII_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f"
_OTHER_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a document, with each run of white space as one space."""

    chunk: Chunk
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


def make_block(chunk: ChunkText) -> bytes:
    """Return the text of each sentence of a chunk as a line, collapsed, in UTF-8, each ended by a newline.

    It is what `list_lines` has, apart from a title that is not in the text, and several times as fast.
    """
    text = chunk.text
    spaces = _ASCII_SPACES if text.isascii() else _ASCII_SPACES + _OTHER_SPACES
    for space in spaces:  # faster than `translate`, or than a pattern
        text = text.replace(space, " ")
    lines = [text[start:end] for start, end in chunk.spans]
    block = "\n".join(lines) + "\n"
    while "  " in block:
        block = block.replace("  ", " ")
    return block.replace(" \n", "\n").replace("\n ", "\n").lstrip(" ").encode()
