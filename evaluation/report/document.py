"""What reports are made of: tables and drawings under a title, as a page, as Markdown and as CSV."""

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
    "Means over questions; in brackets their 95% confidence interval: Wilson's for shares of questions, such as "
    f"LLM-Acc, Contain-Acc and exact match; percentiles of {RESAMPLES:,} bootstrap resamples of the questions for all "
    "else, which tell nothing where all questions have the same value. Shares in percent."
)

_DIGITS = 6  # of figures in CSV files
_MARKDOWN = re.compile(r"([\\`*_<>|#~&$])")
_BRACKETS = re.compile(r"([\[\]])")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, and a detail that stands smaller."""

    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: Its title.
        columns: The names of its columns; the first column names the rows.
        rows: Its rows.
        notes: What a reader must know to read it.
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
    """A row of a drawing: what it is of, the plot, and what stands behind it; rows without a name go on with one."""

    name: str
    plot: Share | Stack
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One plot, or rows of plots, under a title.

    Attributes:
        title: The title.
        caption: What is drawn.
        rows: The rows.
        kind: A CSS class of the rows: `shares` or `stacks`.
        plot: The plot.
        across: What goes across in the plot.
        legend: Names of what is drawn, each with the CSS class of its sign.
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
        facts: What it is made of: names and values.
        notes: What a reader must know about its figures.
        drawings: Its drawings.
        tables: Its tables.
        figures: The same for programs: the rows of its CSV file.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Mapping[str, object]] = ()

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write it as Markdown, CSV and a page under a name; returns the files.

        Raises:
            StorageError: They cannot be written.
        """
        texts = {"md": self.markdown(), "csv": to_csv(self.figures), "html": self.page()}
        return [write_file(folder / f"{name}.{kind}", text) for kind, text in texts.items()]

    def page(self, template: str = "document.html", **values: Any) -> str:
        """Return it as a page, by a template that may show more."""
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
    """Return a page of one of this package's templates."""
    return render(template, package="arag.evaluation.report", **values)


# --- figures ---


def cell(measure: Measure, found: Interval | None) -> Cell:
    """Return a figure with its interval."""
    if found is None:
        return Cell(UNKNOWN if measure in COSTS else NONE)
    low, high = number(measure.unit, found.low), number(measure.unit, found.high)
    return Cell(number(measure.unit, found.mean), f"[{low}, {high}]")


def number(unit: Unit, value: float | None) -> str:
    """Return a figure as readers see it."""
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
    """Return a share with its interval in words; nothing where it is not known."""
    if found is None:
        return ""
    return f"{what} {100 * found.mean:.1f}, 95% interval {100 * found.low:.1f} to {100 * found.high:.1f}"


# --- Markdown ---


def _markdown_table(table: Table) -> str:
    lines = [table.columns, ["---", *("---:" for _ in table.columns[1:])]]
    lines += [[f"{_escape(c.text)} {_escape(c.detail, brackets=False)}".rstrip() for c in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str, *, brackets: bool = True) -> str:
    """Return a text that Markdown shows as it is."""
    plain = _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
    return _BRACKETS.sub(r"\\\1", plain) if brackets else plain


# --- CSV ---


def rounded(value: float | None) -> float | None:
    """Return a figure with as many digits as CSV files have."""
    return None if value is None else round(value, _DIGITS)


def csv_figure(name: str, found: Interval | None) -> dict[str, object]:
    """Return a figure and its interval's ends for CSV, by the names of their columns."""
    values = (None, None, None) if found is None else (found.mean, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(rounded, values), strict=True))
