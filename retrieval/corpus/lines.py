"""A document as lines: its title, then each sentence, heading and row of a table, in the order of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.storage.records import ChunkText
from arag.retrieval.types import Chunk
from arag.text.normalise import collapse_whitespace, is_title

Bytes: TypeAlias = NDArray[np.uint8]

_SPACE = ord(" ")
_NEWLINE = ord("\n")
# White space, as `str.split` knows it: control characters, and what ASCII does not have.
_CONTROL_SPACES = [*b"\t\n\v\f\r\x1c\x1d\x1e\x1f"]
_OTHER_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_FIRST_WIDE_BYTE = 0xC2  # of all characters that ASCII does not have, the lowest


def _list_codes(size: int) -> list[int]:
    """Return the white space that has so many bytes in UTF-8, as numbers."""
    encoded = [space.encode() for space in _OTHER_SPACES]
    return [int.from_bytes(space) for space in encoded if len(space) == size]


_WIDE_SPACES = {size: _list_codes(size) for size in (2, 3)}


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

    It has the lines of `list_lines`, apart from titles that are not in the text, and is made several times as fast: no
    line is an object of its own.
    """

    text: bytes
    first_lines: list[int]
    """The number of each chunk's first line, and in the end how many lines there are."""

    @classmethod
    def of(cls, chunks: Sequence[ChunkText]) -> LineBlock:
        """Make the block of some chunks."""
        counts = [len(chunk.starts) for chunk in chunks]
        first_lines = np.cumsum([0, *counts]).tolist()
        if first_lines[-1] == 0:
            return cls(b"", first_lines)
        text = "\n".join(chunk.text for chunk in chunks) + "\n"
        block = np.frombuffer(text.encode(), np.uint8).copy()
        offsets = np.cumsum([0, *(len(chunk.text) + 1 for chunk in chunks[:-1])])
        in_text = np.repeat(offsets, counts)
        starts, ends = _find_bytes(
            block,
            np.concatenate([chunk.starts for chunk in chunks]) + in_text,
            np.concatenate([chunk.ends for chunk in chunks]) + in_text,
        )
        _blank_spaces(block)
        _blank(block, np.append(0, ends), np.append(starts, len(block)))
        has_room = ends < np.append(starts[1:], len(block))
        block[ends[has_room]] = _NEWLINE
        if not has_room.all():  # as in Chinese, without a space between sentences
            block = np.insert(block, ends[~has_room], _NEWLINE)
        return cls(_collapse(block).tobytes(), first_lines)


def _find_bytes(block: Bytes, *places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of characters among the bytes of a text in UTF-8."""
    further = np.flatnonzero((block & 0xC0) == 0x80)  # the bytes of characters behind their first ones
    characters_before = further - np.arange(len(further))
    return [characters + np.searchsorted(characters_before, characters, side="right") for characters in places]


def _blank_spaces(block: Bytes) -> None:
    """Replace all white space by plain spaces, as many as it has bytes."""
    control = np.flatnonzero(block < _SPACE)
    block[control[np.isin(block[control], _CONTROL_SPACES)]] = _SPACE
    firsts = np.flatnonzero(block >= _FIRST_WIDE_BYTE)
    for size, codes in _WIDE_SPACES.items():
        inside = firsts[firsts <= len(block) - size]
        code = np.zeros(len(inside), np.int64)
        for place in range(size):
            code = code * 256 + block[inside + place]
        spaces = inside[np.isin(code, codes)]
        for place in range(size):
            block[spaces + place] = _SPACE


def _blank(block: Bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Replace some stretches of bytes by plain spaces."""
    sizes = ends - starts
    before = np.cumsum(sizes) - sizes
    block[np.repeat(starts - before, sizes) + np.arange(sizes.sum())] = _SPACE


def _collapse(block: Bytes) -> Bytes:
    """Return a block without the spaces beside newlines, and with each run of spaces as one."""
    is_space = block == _SPACE
    is_last = is_space[:-1] & ((block == _NEWLINE) | is_space)[1:]
    if is_last.any():
        block = np.delete(block, np.flatnonzero(is_last))
    is_first = (block[:-1] == _NEWLINE) & (block[1:] == _SPACE)
    if is_first.any():
        block = np.delete(block, np.flatnonzero(is_first) + 1)
    return block[1:] if block[0] == _SPACE else block


def places_by_text(chunk: Chunk) -> dict[str, list[int]]:
    """Return the positions of a chunk's sentences by their lines' texts."""
    places: dict[str, list[int]] = {}
    for line in list_lines(chunk):
        if line.position is not None:
            places.setdefault(line.text, []).append(line.position)
    return places
