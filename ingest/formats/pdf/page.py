"""The lines of a page of a PDF, with their places and the size and the font of their type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import pypdfium2

from arag.ingest.formats.content import clean_text
from arag.ingest.formats.joining import may_be_same_font
from arag.ingest.formats.pdf.cells import TableRow
from arag.ingest.formats.pdf.columns import separate_columns
from arag.ingest.formats.pdf.fields import Field, insert_fields
from arag.ingest.formats.pdf.fonts import Fonts
from arag.ingest.formats.pdf.glyphs import read_text
from arag.ingest.formats.pdf.joined import JoinedLetters
from arag.ingest.formats.pdf.listings import keep_columns
from arag.ingest.formats.pdf.lost_spaces import add_lost_spaces
from arag.ingest.formats.pdf.margin import move_labels
from arag.ingest.formats.pdf.pieces import Piece
from arag.ingest.formats.pdf.rows import find_rows
from arag.ingest.formats.pdf.ruled import find_ruled_tables
from arag.ingest.formats.pdf.rules import find_grids, read_boxes
from arag.ingest.formats.pdf.spaced import join_spaced_letters
from arag.ingest.formats.pdf.tables import find_tables
from arag.ingest.formats.pdf.underscores import add_underscores
from arag.ingest.formats.pdf.words import Word, mark_hyphens, read_lines
from arag.ingest.formats.title_texts import match_number
from arag.ingest.formats.typography import Line
from arag.text.normalise import CELL_BOUNDARY


class _TextLine(NamedTuple):
    """A line of a page, or a row of a table."""

    words: list[Word]
    text: str
    is_entry: bool = False  # of contents


def page_lines(page: pypdfium2.PdfTextPage, joined: JoinedLetters, fields: Sequence[Field] = ()) -> list[Line]:
    """Return the lines of a page as PDFium orders them, column by column, with the cells of tables set apart.

    Args:
        page: The page.
        joined: The glyphs of the document that join letters.
        fields: The values of its form.
    """
    may_turn = not fields  # whose places are as on the page
    drawn = list(read_boxes(page.page))
    text = add_underscores(add_lost_spaces(read_text(page, may_turn=may_turn)), drawn)
    words = map(join_spaced_letters, read_lines(page.page, text, joined))
    lines = move_labels(separate_columns(insert_fields(list(words), fields)))
    mark_hyphens(lines)
    fonts = Fonts(page.raw)
    tables, below = find_ruled_tables(lines, find_grids(drawn, text), fonts, text)
    found: list[_TextLine] = []
    for table in tables:
        found += _lines(find_tables(find_rows(keep_columns(table.above, fonts)), fonts))
        found += _lines(table.rows)
    found += _lines(find_tables(find_rows(keep_columns(below, fonts)), fonts))
    return _mark_entries([_make_line(line, fonts) for line in found])


def _lines(rows: Iterable[TableRow]) -> Iterator[_TextLine]:
    for row in rows:
        yield from _plain_lines(row.row.above)
        pieces: list[Piece] = []
        for cell in row.row.cells:
            pieces += cell
        if row.cells:
            yield _TextLine(
                words=_words(pieces),
                text=CELL_BOUNDARY.join(row.cells).strip(),
            )
        else:
            for line in _plain_lines(pieces):
                yield line._replace(is_entry=row.is_entry)


def _plain_lines(pieces: Iterable[Piece]) -> Iterator[_TextLine]:
    """Yield the lines of pieces outside tables: those that PDFium has in one line."""
    for _, beside in groupby(pieces, key=lambda piece: piece.line):
        words = _words(beside)
        yield _TextLine(
            words=words,
            text=" ".join(word.text for word in words),
        )


def _words(pieces: Iterable[Piece]) -> list[Word]:
    words: list[Word] = []
    for piece in pieces:
        words += piece.words
    return words


def _make_line(line: _TextLine, fonts: Fonts) -> Line:
    first, last = line.words[0], line.words[-1]
    type_ = fonts.type_of(line.words)
    return Line(
        text=clean_text(line.text),
        size=type_.size,
        font=type_.font,
        left=first.left,
        right=last.right,
        bottom=first.bottom,
        top=first.top,
        is_entry=line.is_entry,
        first_font=type_.first_font,
        first_size=type_.first_size,
    )


def _mark_entries(lines: Sequence[Line]) -> list[Line]:
    """Return lines with the first lines of entries of contents marked, too: they have the number, and no page."""
    marked: list[Line] = []
    for line, below in pairwise([*lines, Line("")]):
        is_in_its_type = line.size == below.size and may_be_same_font(line, below)  # leaders may be in another font
        has_number = match_number(line.text) and not match_number(below.text)
        goes_on = below.is_entry and is_in_its_type and has_number
        marked.append(line._replace(is_entry=True) if goes_on else line)
    return marked
