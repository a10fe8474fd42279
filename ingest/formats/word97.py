"""Tables of Word before 2007: its cells and rows get marks that a reader of its text keeps.

A file has its text in pieces, with a mark at the end of each cell and of each row. Which of these marks ends a row
stands in the properties of paragraphs. The names below are those of Microsoft's [MS-DOC].
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from struct import Struct, error, unpack_from
from typing import Any, NamedTuple

CELL_END = "\x7f"  # in the text: no person types it

_CELL_OR_ROW = b"\a"
_MARKS = frozenset((_CELL_OR_ROW, b"\r", b"\v"))
_MAIN = "WordDocument"
_FLAGS_AT = 0x0A
_USES_TABLE_1 = 0x0200
_PARAGRAPHS_AT = 0x0102  # fcPlcfBtePapx and its size
_PIECES_AT = 0x01A2  # fcClx and its size
_PAGE = 512  # bytes of properties
_PAGE_NUMBER = 0x3FFFFF
_PROPERTY_BYTES = 13  # of an entry of such a page
_POSITION = Struct("<I")
_PIECES = 2  # begins the table of pieces
_PIECE_BYTES = 8
_IS_OF_BYTES = 1 << 30  # in the place of a piece: a character takes one byte
_IN_TABLE = 0x2416  # sprmPFInTable
_ENDS_ROW = 0x2417  # sprmPFTtp
_OPERAND_BYTES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
_LONG_OPERAND = 0xD608  # sprmTDefTable: its size takes two bytes


class _Piece(NamedTuple):
    """Where a piece of the text is in the stream, and how many bytes a character of it takes."""

    start: int
    end: int
    width: int


class _Paragraph(NamedTuple):
    """Where a paragraph is in the stream, and whether it is in a cell: outside, the mark of a cell ends a row."""

    start: int
    end: int
    is_in_cell: bool


def mark_tables(data: bytes) -> bytes:
    """Return a file in whose text each row of a table is a paragraph, with `CELL_END` behind each cell."""
    import olefile

    try:
        with olefile.OleFileIO(BytesIO(data)) as opened:
            main = opened.openstream(_MAIN).read()
            flags = unpack_from("<H", main, _FLAGS_AT)[0]
            table = opened.openstream("1Table" if flags & _USES_TABLE_1 else "0Table").read()
            sectors = list(_sectors_of(opened, _MAIN))
            size = opened.sectorsize
        pieces = list(_read_pieces(main, table))
        paragraphs = sorted(_read_paragraphs(main, table))
        if sum(piece.end - piece.start for piece in pieces) > len(main):
            return data  # they overlap
        marked = bytearray(main)
        _mark(marked, pieces, paragraphs)
    except (error, IndexError, OSError):  # damaged: another reader may be less strict
        return data
    file = bytearray(data)
    for number, sector in enumerate(sectors):
        part = marked[number * size : (number + 1) * size]
        start = (sector + 1) * size
        file[start : start + len(part)] = part
    return bytes(file)


def _sectors_of(opened: Any, name: str) -> Iterator[int]:
    """Yield the numbers of the sectors that have a stream, in order."""
    for entry in opened.direntries:
        if getattr(entry, "name", "") == name and not entry.is_minifat:
            sector = entry.isectStart
            for _ in range(0, entry.size, opened.sectorsize):
                yield sector
                sector = opened.fat[sector]


def split_rows(text: str) -> Iterator[list[str] | str]:
    """Yield the lines of a text with marked tables: the cells of each row, and other lines as they are."""
    for line in text.split("\n"):
        *cells, rest = line.split(CELL_END)
        if cells:
            yield cells
        if rest.strip():
            yield rest


def _mark(main: bytearray, pieces: Iterable[_Piece], paragraphs: Sequence[_Paragraph]) -> None:
    """Replace the marks in the text: at the ends of cells and rows, of lines, and of paragraphs in a cell."""
    starts = [paragraph.start for paragraph in paragraphs]
    for piece in pieces:
        for place in range(piece.start, piece.end, piece.width):
            character = bytes(main[place : place + piece.width]).rstrip(b"\0")
            if character not in _MARKS:
                continue
            is_in_cell = paragraphs[bisect(starts, place) - 1].is_in_cell
            if character == _CELL_OR_ROW:
                main[place] = ord(CELL_END if is_in_cell else "\r")
            elif is_in_cell:
                main[place] = ord(" ")


def _read_pieces(main: bytes, table: bytes) -> Iterator[_Piece]:
    start, size = unpack_from("<II", main, _PIECES_AT)
    place = start
    while place < start + size and table[place] != _PIECES:  # properties of paragraphs come before the pieces
        place += 3 + unpack_from("<H", table, place + 1)[0]
    size = unpack_from("<I", table, place + 1)[0]
    place += 5
    pieces = (size - _POSITION.size) // (_POSITION.size + _PIECE_BYTES)
    places_at = place + (pieces + 1) * _POSITION.size
    for number in range(pieces):
        first, last = unpack_from("<II", table, place + number * _POSITION.size)
        position = unpack_from("<I", table, places_at + number * _PIECE_BYTES + 2)[0]
        width = 1 if position & _IS_OF_BYTES else 2
        begin = (position & ~_IS_OF_BYTES) // (2 if width == 1 else 1)
        yield _Piece(begin, begin + (last - first) * width, width)


def _read_paragraphs(main: bytes, table: bytes) -> Iterator[_Paragraph]:
    start, size = unpack_from("<II", main, _PARAGRAPHS_AT)
    pages = (size - _POSITION.size) // (2 * _POSITION.size)
    numbers_at = start + (pages + 1) * _POSITION.size
    for number in range(pages):
        page_number = unpack_from("<I", table, numbers_at + number * _POSITION.size)[0] & _PAGE_NUMBER
        page = main[page_number * _PAGE : (page_number + 1) * _PAGE]
        runs = page[_PAGE - 1]
        for run in range(runs):
            first, last = unpack_from("<II", page, run * _POSITION.size)
            entry = page[(runs + 1) * _POSITION.size + run * _PROPERTY_BYTES] * 2
            codes = set(_read_properties(page, entry)) if entry else set()
            yield _Paragraph(first, last, is_in_cell=_IN_TABLE in codes and _ENDS_ROW not in codes)


def _read_properties(page: bytes, entry: int) -> Iterator[int]:
    """Yield the codes of the properties of a paragraph that are switched on."""
    words = page[entry]
    place = entry + 1
    end = place + 2 * words - 1
    if words == 0:
        end = place + 1 + 2 * page[place]
        place += 1
    place += 2  # the number of the style
    while place + 2 < end:
        code = unpack_from("<H", page, place)[0]
        place += 2
        size = _OPERAND_BYTES.get(code >> 13)
        if code == _LONG_OPERAND:
            size = unpack_from("<H", page, place)[0] + 1
        elif size is None:
            size = page[place] + 1
        elif page[place]:
            yield code
        place += size
