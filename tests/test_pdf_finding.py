"""Where sentences of an index are on a page of a PDF."""

from __future__ import annotations

import re

import pypdfium2
import pytest

from arag.ingest.formats.pdf.finding import find_sentences
from pdf_pages import Pages


def open_page(*lines):
    pages = Pages()
    pages.lines(72, 750, lines)
    return pypdfium2.PdfDocument(pages.finish())[0]


@pytest.mark.parametrize(
    ("line", "row", "marked"),
    [
        ("55", "Name: 5 | Height: 5", []),
        ("5", "Name: 5 | Height: 5", []),
        ("alphabet 5 6", "Name: alphabet 5 | Height: 5", []),
        ("pine apple 5 m", "Name: pineapple | Height: 5 m", ["pine", "apple", "5", "m"]),
        ("pineapple 5 m", "Name: pine apple | Height: 5m", ["pineapple", "5", "m"]),
        ("pineapple 0 .5", "Name: pineapple | Height: 0.5", ["pineapple", "0", ".5"]),
    ],
)
def test_rows_that_the_page_divides_in_another_way_are_found_in_whole_words(line, row, marked):
    (found,) = find_sentences(open_page(line), row, [(0, len(row))])
    assert [word.text for word in dict.fromkeys(found.words)] == marked


def test_rows_are_the_fewest_lines_that_have_all_their_values_as_often_as_the_row():
    page = open_page("Name Height Width", "ash 5 7", "oak 5", "elm 5 6", "elm 5", "5", "fir 6 6")
    rows = ["Name: elm | Height: 5 | Width: 5", "Name: fir | Height: 6 | Width: 6", "Name: yew | Height: 5 | Width: 7"]
    text = "\n".join(rows)
    spans = [(text.index(row), text.index(row) + len(row)) for row in rows]
    found = find_sentences(page, text, spans)
    assert [[word.text for word in one.words] for one in found] == [["elm", "5", "5"], ["fir", "6", "6"], []]
    assert found[0].words[-1].top < found[0].words[0].bottom


def test_of_equal_sentences_the_one_with_the_same_text_around_it_is_found():
    lines = ["Wait: how long.", "Default: no.", "Retry: how often.", "Default: no.", "Quiet: no talk.", "Default: no."]
    text = "\n".join(lines[2:])  # the text before has the first two
    spans = [match.span() for match in re.finditer(".+", text)]
    found = find_sentences(open_page(*lines), text, spans)
    heights = [one.words[0].bottom for one in found]
    assert heights == sorted(set(heights), reverse=True)
