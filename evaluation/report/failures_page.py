"""The page of why answers are wrong (paper, Figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from arag.evaluation.failures import AGENTIC, CHAIN_CAUSES, CHAIN_ERROR, ONE_SHOT, Failure, first_level
from arag.evaluation.report import plots
from arag.evaluation.report.document import Document, Drawing, Row

_UNDECIDED = "undecided"
_DECIDERS = {"record": "records", "judge": "a judge", "label": "a person"}


def failures_page(found: Sequence[Failure]) -> str:
    """Draw the wrong answers of each method by cause.

    Args:
        found: The wrong answers.
    """
    drawings = []
    for taxonomy in (AGENTIC, ONE_SHOT):
        some = [(first_level(failure.final), failure) for failure in found if failure.taxonomy is taxonomy]
        chains = [(failure.final, failure) for cause, failure in some if cause == CHAIN_ERROR]
        if some:
            caption = "Wrong answers of each method by cause, and who decided the cause."
            drawings.append(_split(taxonomy.title, caption, some, map(first_level, taxonomy.causes)))
        if chains:
            caption = "Reasoning chain errors by cause."
            drawings.append(_split("Within reasoning chain errors", caption, chains, CHAIN_CAUSES))
    if not found:
        drawings.append(Drawing("Causes", "No method that searches has wrong answers."))
    return Document("Why answers are wrong", drawings=drawings).page()


def _split(title: str, caption: str, found: Sequence[tuple[str, Failure]], causes: Iterable[str]) -> Drawing:
    """Draw failures by cause; a failure with none of the causes is undecided."""
    kinds = {cause: f"c{place}" for place, cause in enumerate(dict.fromkeys(causes), start=1)}
    of_method: dict[str, list[tuple[str, Failure]]] = {}
    for cause, failure in found:
        of_method.setdefault(failure.method, []).append((cause if cause in kinds else _UNDECIDED, failure))
    kinds[_UNDECIDED] = "c0"
    rows = []
    for method, mine in of_method.items():
        counts = Counter(cause for cause, _ in mine)
        some = {name: counts[name] for name in kinds if counts[name]}
        told = ", ".join(f"{name}: {count}" for name, count in some.items())
        plot = plots.Stack({kinds[name]: count for name, count in some.items()}, len(mine), told)
        by = Counter("label" if failure.label else failure.decided_by for _, failure in mine)
        deciders = ", ".join(f"{by[key]} by {name}" for key, name in _DECIDERS.items() if by[key])
        rows.append(Row(method, plot, f"{len(mine):,}", f"{told} ({deciders})" if deciders else told))
    shown = {cause for mine in of_method.values() for cause, _ in mine}
    return Drawing(title, caption, rows, legend=[(name, kind) for name, kind in kinds.items() if name in shown])
