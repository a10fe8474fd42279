"""The parts of reports: tables and drawings under a title, as a page, as Markdown and as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag.evaluation.files import to_csv, write_file
from arag.evaluation.report.measures import COSTS, Measure, Unit
from arag.evaluation.report.plots import Plane, Share, Stack
from arag.evaluation.scores import RESAMPLES, Interval
from arag.pages.templates import render

UNKNOWN = "unknown"
NONE = "–"
INTERVALS = (
    "Means over questions with 95% confidence intervals in brackets; shares in percent. LLM-Acc, Contain-Acc and exact "
    f"match have Wilson intervals. All else has percentile bootstrap intervals ({RESAMPLES:,} resamples of the "
    "questions), which mean nothing if all questions have the same value."
)

_DIGITS = 6  # significant decimals in CSV files
_MARKDOWN = re.compile(r"([\\`*_<>|#~&$])")
_BRACKETS = re.compile(r"([\[\]])")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, and a detail in smaller type."""

    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: Its title.
        columns: The names of its columns; the first column names the rows.
        rows: Its rows.
        notes: Notes for its readers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


def make_table(
    title: str, columns: Sequence[str], rows: Iterable[Iterable[object]], notes: Sequence[str] = ()
) -> Table:
    """Return a table; texts and counts become cells."""
    return Table(title, columns, [[_make_cell(value) for value in row] for row in rows], notes)


def _make_cell(value: object) -> Cell:
    if isinstance(value, Cell):
        return value
    return Cell(f"{value:,}" if isinstance(value, int) else str(value))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a drawing: its name, plot and value. A row without a name belongs to the one above."""

    name: str
    plot: Share | Stack
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One plot, or rows of plots, under a title.

    Attributes:
        title: The title.
        caption: The caption.
        rows: The rows.
        kind: A CSS class of the rows: `shares` or `stacks`.
        plot: The plot.
        across: The title of the plot's x axis.
        legend: The names in the legend, each with the CSS class of its marker.
    """

    title: str
    caption: str
    rows: Sequence[Row] = ()
    kind: str = "stacks"
    plot: Plane | None = None
    across: str = ""
    legend: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A report.

    Attributes:
        title: Its title.
        facts: The settings of the run: names and values.
        notes: Warnings about its figures.
        drawings: Its drawings.
        tables: Its tables.
        figures: The rows of its CSV file.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Mapping[str, object]] = ()

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write it as Markdown, CSV and a page under a name; return the files.

        Raises:
            StorageError: They cannot be written.
        """
        texts = {"md": self.markdown(), "csv": to_csv(self.figures), "html": self.page()}
        return [write_file(folder / f"{name}.{kind}", text) for kind, text in texts.items()]

    def page(self, template: str = "document.html", **values: Any) -> str:
        """Return it as a page; a template may add to it."""
        return render_page(template, title=self.title, document=self, **values)

    def markdown(self) -> str:
        """Return it as Markdown, without the drawings."""
        parts = [f"# {self.title}"]
        if self.facts:
            parts.append("\n".join(f"- {name}: {_escape(value)}" for name, value in self.facts))
        parts += [f"**{_escape(note)}**" for note in self.notes]
        for table in self.tables:
            parts += [f"## {_escape(table.title)}", _markdown_table(table), *map(_escape, table.notes)]
        return "\n\n".join(parts) + "\n"


def render_page(template: str, **values: Any) -> str:
    """Render one of this package's templates."""
    return render(template, package="arag.evaluation.report", **values)


# --- figures ---


def cell(measure: Measure, found: Interval | None) -> Cell:
    """Return a figure with its interval."""
    if found is None:
        return Cell(UNKNOWN if measure in COSTS else NONE)
    low, high = number(measure.unit, found.low), number(measure.unit, found.high)
    return Cell(number(measure.unit, found.mean), f"[{low}, {high}]")


def number(unit: Unit, value: float | None) -> str:
    """Format a figure for readers."""
    if value is None:
        return UNKNOWN
    if unit in ("yes or no", "share"):
        return f"{100 * value:.1f}"
    if unit == "dollars":
        return f"${value:,.{4 if value >= 0.001 else 6}f}" if value else "$0"
    if unit == "tokens":
        return f"{value:,.0f}"
    return f"{value:,.2f}" if unit == "seconds" and value < 10 else f"{value:,.1f}"


def in_words(what: str, found: Interval | None) -> str:
    """Return a share with its interval in words; empty if unknown."""
    if found is None:
        return ""
    return f"{what} {100 * found.mean:.1f}, 95% CI {100 * found.low:.1f} to {100 * found.high:.1f}"


# --- Markdown ---


def _markdown_table(table: Table) -> str:
    lines = [table.columns, ["---", *("---:" for _ in table.columns[1:])]]
    lines += [[f"{_escape(c.text)} {_escape(c.detail, brackets=False)}".rstrip() for c in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str, *, brackets: bool = True) -> str:
    """Escape a text for Markdown."""
    plain = _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
    return _BRACKETS.sub(r"\\\1", plain) if brackets else plain


# --- CSV ---


def rounded(value: float | None) -> float | None:
    """Round a figure to the precision of CSV files."""
    return None if value is None else round(value, _DIGITS)


def csv_figure(name: str, found: Interval | None) -> dict[str, object]:
    """Return a figure and the ends of its interval by their CSV column names."""
    values = (None, None, None) if found is None else (found.mean, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(rounded, values), strict=True))
