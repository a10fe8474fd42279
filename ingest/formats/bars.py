"""Bars in the text of web pages and mails, as others divide the cells of a row."""

from __future__ import annotations

from collections.abc import Collection

from arag.ingest.plain_tables import is_barred

TEXT_BAR = "\x0e"  # stands for a bar that divides no cells, until the whole text is known


def show_bars(text: str) -> str:
    """Return a text with a bar for each `TEXT_BAR`."""
    return text.replace(TEXT_BAR, "|")


def find_barred_lines(text: str) -> tuple[str, ...]:
    """Return the lines in which bars are text, as they are shown, without those that are also the row of a table."""
    if TEXT_BAR not in text:
        return ()
    rows: set[str] = set()
    others: set[str] = set()
    for line in text.splitlines():
        lines = rows if is_barred(line) else others
        lines.add(show_bars(line).strip())
    return tuple(sorted(filter(is_barred, others - rows)))


def mark_bars(text: str, barred_lines: Collection[str]) -> str:
    """Return a text with marks for the bars in some of its lines."""
    if not barred_lines:
        return text
    marked: list[str] = []
    texts_with_bars = frozenset(barred_lines)
    for line in text.splitlines(keepends=True):
        is_text = line.strip() in texts_with_bars
        marked.append(line.replace("|", TEXT_BAR) if is_text else line)
    return "".join(marked)
