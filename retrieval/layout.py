"""What a chunk's text looks like: titles, headings, and rows of tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from arag.retrieval.text import fold
from arag.retrieval.types import Chunk, Section

CUT = "…"  # stands for what is left out of a text
_MAX_ROWS = 4  # of tables, with the words of a query
_HEADER_REACH = 60  # sentences between a row and the header of its table
_ROW = re.compile(r"\S \| .*\d")  # of a table
_NAMED_ROW = re.compile(r"[^|]*?: ([^|]*) \| [^|]*?: ")  # whose cells have their columns' names before them
_PAGE_HEADER = re.compile(r"table of contents|\(continued\)|^see ", re.IGNORECASE)
_YEARS = re.compile(r"\b(?:19|20)\d\d\b")
_NOTE = re.compile(r"\s*[(（][^()（）]*[)）]$")
_QUOTES = "\"'“”‘’«»《》「」『』"
_WORD = re.compile(r"[^\W\d_]{3,}")
# A line of at least two words, each with a capital but for short ones, or of capitals only.
_HEADING = re.compile(
    r"(?=.{6,80}$)(?:(?:Item |Note |Part )?\d[\d.]*\s+)?"
    r"[A-Z][\w’'/-]*(?:,? (?:[A-Z(&–—][\w’'/)–-]*|and|of|the|for|in|on|to|with|by|or|from|at|a|an|\d{4}|–|—))+"
)


def is_title(line: str, title: str) -> bool:
    """Return whether a line is a title, as a heading or plain, ignoring white space."""
    name = fold(title).strip("# ")
    return bool(name) and fold(line).strip("# ") == name


def bare_title(title: str) -> str:
    """Return a title as keywords are compared with it: in lower case, without quotation marks or a note in brackets."""
    return fold(_NOTE.sub("", title)).strip(_QUOTES).lower()


def name_place(part: int | None, parts: int | None, pages: Sequence[int] | None) -> str:
    """Return where a chunk is in its document, as in "part 3 of 5, pages 16-23"; empty if it is all of it.

    Args:
        part: Which of the document's chunks it is, from 1.
        parts: How many chunks the document has.
        pages: First and last page, if it has pages.
    """
    place = [f"part {part} of {parts}"] if part and parts and parts > 1 else []
    if pages:
        place.append(f"page {pages[0]}" if pages[0] == pages[-1] else f"pages {pages[0]}-{pages[-1]}")
    return ", ".join(place)


def find_heading(chunk: Chunk, section: Section, position: int) -> str:
    """Return the nearest line above a sentence, in the same document, that looks like a heading, or an empty string."""
    above = chunk.text[section.start : chunk.sentences[position].start]
    lines = [line.strip() for line in above.splitlines()[-_HEADER_REACH:]]
    for line in reversed(lines):
        heading = line.lstrip("# ")
        if is_title(heading, section.title) or _PAGE_HEADER.search(heading):
            continue
        if line.startswith("#") or _HEADING.fullmatch(heading):
            return heading
    return ""


def is_row(text: str) -> bool:
    """Return whether a sentence is a row of a table, with a number."""
    return bool(_ROW.search(text))


def row_label(text: str) -> str:
    """Return the label of a table's row, in lower case, or an empty string for other texts."""
    if not is_row(text):
        return ""
    named = _NAMED_ROW.match(text)
    return (named[1] if named else text.partition(" | ")[0]).lower().strip("$: ")


def is_row_of(text: str, keyword: str) -> bool:
    """Return whether a text is the row of a table with this label, which may go on in brackets or after a comma."""
    label, name = row_label(text), fold(keyword).lower()
    return label == name or label.startswith((f"{name} (", f"{name}, "))


def find_header(chunk: Chunk, row: int) -> int:
    """Return the position of the nearest line above a table's row that names two years, or the row's own."""
    for position in range(row, max(row - _HEADER_REACH, -1), -1):
        if len(_YEARS.findall(chunk.sentence_text(position))) > 1:
            return position
    return row


def find_rows(chunk: Chunk, queries: Sequence[str]) -> set[int]:
    """Return the positions of the table rows most of whose label is in a query, at most four for each.

    Those with more words of it come first, and then those with nothing else; a second row with the same label comes
    last.
    """
    texts = [chunk.sentence_text(position) for position in range(len(chunk.sentences))]
    labels = {position: row_label(text) for position, text in enumerate(texts) if is_row(text)}
    words = {position: _list_stems(label) for position, label in labels.items()}
    found: set[int] = set()
    for query in queries:
        wanted = _list_stems(query)
        ranks: dict[int, tuple[int, int, int, int]] = {}
        rows: Counter[str] = Counter()
        for position, label in words.items():
            shared = len(label & wanted)
            if label and shared / len(label) > 0.6:
                rows[labels[position]] += 1
                ranks[position] = (rows[labels[position]], -shared, len(label), position)
        found.update(sorted(ranks, key=ranks.__getitem__)[:_MAX_ROWS])
    return found


def _list_stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in list_words(text)}


def fold_sentence(chunk: Chunk, position: int) -> str:
    """Return a sentence as it is shown, on one line."""
    return fold(chunk.sentence_text(position))


def list_words(text: str) -> list[str]:
    """Return the words of a text that have three letters or more, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]
