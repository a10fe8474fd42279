"""The figures of the speed benchmark: taking times, and the one table they end in."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.table import Table

_MOST_ROUNDS = 7
_OURS_A_ROUND = 3
_NARROWEST = 200  # characters
_UNITS = {"share": ""}


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        section: What it is about.
        figure: What was measured.
        unit: s, ms, MB, or another word; `share` is printed in per cent.
        ours: Our value.
        other: The alternative's value, where there is one.
        beside: The alternative, where it is not the one that the title names.
        size: How large the corpus was, in chunks or sentences.
        made: Whether its vectors are made up.
        more_is_better: Rates and shares found, as against costs.
        target: What the value must be, for a person.
        met: Whether it is.
    """

    section: str
    figure: str
    unit: str
    ours: float
    other: float | None = None
    beside: str = ""
    size: int | None = None
    made: bool = False
    more_is_better: bool = False
    target: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """How many times better ours is than the alternative."""
        if self.other is None or not self.ours or not self.other:
            return None
        return self.ours / self.other if self.more_is_better else self.other / self.ours


@dataclass
class Report:
    """The rows, in order.

    Attributes:
        rows: The rows.
        notes: What stands below the table.
        judging: Whether the sizes are large enough to hold the figures against their targets.
        patience: For how many seconds one figure is measured again and again.
    """

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    judging: bool = True
    patience: float = 2.0

    def add(self, section: str, figure: str, unit: str, ours: float, **values: Any) -> None:
        """Add a row."""
        row = Row(section, figure, unit, ours, **values)
        self.rows.append(row if self.judging else replace(row, met=None))

    def best_of(self, functions: Mapping[str, Callable[[], float]]) -> dict[str, float]:
        """Take the best of several measurements, by turns: the machine may do other things meanwhile.

        Args:
            functions: Each measures once and returns what it has measured; the one called `other` is the
                alternative, which is asked less often than ours.
        """
        best: dict[str, float] = {}
        began = time.perf_counter()
        for _ in range(_MOST_ROUNDS):
            for name, function in functions.items():
                for _ in range(1 if name == "other" else _OURS_A_ROUND):
                    best[name] = min(function(), best.get(name, math.inf))
            if time.perf_counter() - began > self.patience:
                break
        return best

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"rows": [asdict(row) | {"ratio": row.ratio} for row in self.rows], "notes": self.notes}

    def print(self, title: str, alternative: str) -> None:
        """Print the table: a row for each figure, in it a line for each size."""
        table = Table(title=title, caption="\n".join(self.notes), caption_justify="left", title_justify="left")
        table.add_column("")
        for heading in ("at", "ours", alternative, "better"):
            table.add_column(heading, justify="right")
        table.add_column("cost grows as")
        table.add_column("target")
        for section in dict.fromkeys(row.section for row in self.rows):
            rows = [row for row in self.rows if row.section == section]
            table.add_section()
            table.add_row(f"[bold]{section}[/bold]")
            for figure in dict.fromkeys(row.figure for row in rows):
                table.add_row(figure, *_cells([row for row in rows if row.figure == figure]))
        Console(width=max(_NARROWEST, Console().width)).print(table)


def _cells(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what stands beside one figure, a line for each size."""
    first, last = rows[0], rows[-1]
    unit = _UNITS.get(first.unit, f" {first.unit}")
    beside = f" ({first.beside})" if first.beside else ""
    yield "\n".join(f"{row.size:,}{'*' if row.made else ''}" for row in rows if row.size is not None)
    yield "\n".join(_shown(row.ours, row.unit) + unit for row in rows)
    yield "\n".join("" if row.other is None else _shown(row.other, row.unit) + unit + beside for row in rows)
    yield "\n".join("" if row.ratio is None else f"{_shown(row.ratio, 'times')} times" for row in rows)
    if first.more_is_better or not first.size or first.size == last.size:
        yield ""
    else:
        ours = _power(first.size, first.ours, last.size, last.ours)
        other = _power(first.size, first.other, last.size, last.other)
        yield f"{ours}, theirs {other}" if ours and other else ours
    yield "\n".join(_judged(row) for row in rows)


def _judged(row: Row) -> str:
    if row.met is None:
        return row.target
    return f"[green]met[/green]: {row.target}" if row.met else f"[red]MISSED[/red]: {row.target}"


def _power(size: int | None, value: float | None, larger: int | None, then: float | None) -> str:
    """Tell the power of the size that a cost has grown with."""
    if not size or not value or not larger or not then:
        return ""
    return f"n^{abs(math.log(then / value) / math.log(larger / size)):.1f}"


def _shown(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.2%}" if value < 0.99 else f"{value:.3%}"
    if value >= 100 or not value:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.2g}"


def say(what: str) -> None:
    """Tell a waiting person what is being measured."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
