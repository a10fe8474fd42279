"""The page of why answers are wrong (paper, Figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arag.evaluation.failures import AGENTIC, CHAIN_ERROR, ONE_SHOT, DecidedBy, Failure
from arag.evaluation.report import plots
from arag.evaluation.report.templates import Row, templates
from arag.files import written_whole
from arag.models.replies import mend_characters

_UNDECIDED = "not decided"
_DECIDERS: dict[DecidedBy, str] = {"record": "records", "judge": "a judge", "label": "a person"}
_COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a page: rows of plots under a title.

    Attributes:
        title: The title.
        caption: What the rows show.
        rows: The rows.
        kind: `shares` where the rows are drawn from 0 to 100%.
        legend: What each CSS class of a colour means.
    """

    title: str
    caption: str
    rows: list[Row]
    kind: str = ""
    legend: dict[str, str] = field(default_factory=dict)


def write_page(text: str, file: Path) -> Path:
    """Write a page; returns the file."""
    with written_whole(file) as out:
        out.write(mend_characters(text).encode())
    return file


def failures_page(found: Sequence[Failure]) -> str:
    """Draw the split of wrong answers by cause, method by method.

    Args:
        found: The wrong answers.
    """
    figures = []
    for taxonomy in (AGENTIC, ONE_SHOT):
        some = [failure for failure in found if failure.taxonomy is taxonomy]
        chains = [failure for failure in some if failure.cause == CHAIN_ERROR]
        if some:
            caption = "What the wrong answers of each method come from, and who has said so."
            figures.append(_split(taxonomy.title, caption, some, taxonomy.causes, lambda f: f.cause))
        if chains:
            caption = "What went wrong in the reasoning chains that failed."
            title = "Within reasoning chain errors"
            figures.append(_split(title, caption, chains, taxonomy.chain_causes, lambda f: f.chain_cause))
    if not found:
        figures.append(Figure("Causes", "No answer of a method that searches is wrong.", []))
    return templates().get_template("experiment.html").render(title="Why answers are wrong", figures=figures)


def _split(
    title: str, caption: str, found: Sequence[Failure], causes: Sequence[str], cause: Callable[[Failure], str]
) -> Figure:
    kinds = dict(zip(causes, _COLOURS, strict=False)) | {"": "c0"}
    rows = []
    for method in dict.fromkeys(failure.method for failure in found):
        mine = [failure for failure in found if failure.method == method]
        counts = Counter(map(cause, mine))
        some = {name: counts[name] for name in kinds if counts[name]}
        told = ", ".join(f"{name or _UNDECIDED}: {count}" for name, count in some.items())
        drawing = plots.stack(list(some.values()), [kinds[name] for name in some], len(mine), told)
        rows.append(Row(method, drawing, f"{len(mine):,}", f"{told}{_deciders(mine)}"))
    legend = {name or _UNDECIDED: kind for name, kind in kinds.items() if any(cause(f) == name for f in found)}
    return Figure(title, caption, rows, legend=legend)


def _deciders(found: Sequence[Failure]) -> str:
    counts = Counter(failure.decided_by for failure in found)
    told = ", ".join(f"{counts[by]} by {name}" for by, name in _DECIDERS.items() if counts[by])
    return f" ({told})" if told else ""
