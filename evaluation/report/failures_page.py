"""The page of why answers are wrong (paper, Figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from arag.evaluation.failures import AGENTIC, CHAIN_ERROR, ONE_SHOT, DecidedBy, Failure
from arag.evaluation.report import plots
from arag.evaluation.report.document import Document, Drawing, Row

_UNDECIDED = "not decided"
_DECIDERS: dict[DecidedBy, str] = {"record": "records", "judge": "a judge", "label": "a person"}
_COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6")


def failures_page(found: Sequence[Failure]) -> str:
    """Draw the split of wrong answers by cause, method by method.

    Args:
        found: The wrong answers.
    """
    drawings = []
    for taxonomy in (AGENTIC, ONE_SHOT):
        some = [failure for failure in found if failure.taxonomy is taxonomy]
        chains = [failure for failure in some if failure.cause == CHAIN_ERROR]
        if some:
            caption = "What the wrong answers of each method come from, and who has said so."
            drawings.append(_split(taxonomy.title, caption, some, list(taxonomy.causes), lambda f: f.cause))
        if chains:
            caption = "What went wrong in the reasoning chains that failed."
            title = "Within reasoning chain errors"
            drawings.append(_split(title, caption, chains, list(taxonomy.chain_causes), lambda f: f.chain_cause))
    if not found:
        drawings.append(Drawing("Causes", "No answer of a method that searches is wrong."))
    return Document("Why answers are wrong", drawings=drawings).page()


def _split(
    title: str, caption: str, found: Sequence[Failure], causes: Sequence[str], cause: Callable[[Failure], str]
) -> Drawing:
    kinds = dict(zip(causes, _COLOURS, strict=False)) | {"": "c0"}
    rows = []
    for method in dict.fromkeys(failure.method for failure in found):
        mine = [failure for failure in found if failure.method == method]
        counts = Counter(map(cause, mine))
        some = {name: counts[name] for name in kinds if counts[name]}
        told = ", ".join(f"{name or _UNDECIDED}: {count}" for name, count in some.items())
        plot = plots.Stack({kinds[name]: count for name, count in some.items()}, len(mine), told)
        rows.append(Row(method, plot, f"{len(mine):,}", f"{told}{_deciders(mine)}"))
    legend = [(name or _UNDECIDED, kind) for name, kind in kinds.items() if any(cause(f) == name for f in found)]
    return Drawing(title, caption, rows, legend=legend)


def _deciders(found: Sequence[Failure]) -> str:
    counts = Counter(failure.decided_by for failure in found)
    told = ", ".join(f"{counts[by]} by {name}" for by, name in _DECIDERS.items() if counts[by])
    return f" ({told})" if told else ""
