"""Says what an ingestion left out: problems one by one, files that were skipped together for each reason."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence

from arag.ingest.documents import IngestSummary, Problem
from arag.ingest.reading import MAX_PROBLEMS
from arag.text.normalise import count, shorten
from arag.text.visible import visible_line

_MAX_NAMES = 5  # of problems, or of files for each reason
_MAX_CHARACTERS = 500  # of these files' names


def list_by_reason(files: Iterable[Problem], *, all_are: str) -> Iterator[str]:
    """Yield a line for each reason, with how many files have it and the names of the first ones.

    Args:
        files: The files.
        all_are: Where a reader finds the names of all.
    """
    names_by_reason: dict[str, list[str]] = {}
    for file in files:
        names_by_reason.setdefault(file.reason, []).append(file.source)
    for reason, names in names_by_reason.items():
        shown = shorten(", ".join(names[:_MAX_NAMES]), _MAX_CHARACTERS)
        if len(names) > _MAX_NAMES:
            shown += f" and {len(names) - _MAX_NAMES:,} more; {all_are}"
        yield f"{reason} ({len(names):,}): {shown}"


def warn_of_omissions(summary: IngestSummary) -> None:
    """Warn of parts not read, of what was left out, and of skipped files, at the line that called `ingest`."""
    if summary.notes:
        parts = "; ".join(map(str, summary.notes[:_MAX_NAMES]))
        hint = ": run_ingest returns all" if len(summary.notes) > _MAX_NAMES else ""
        warnings.warn(f"{count(len(summary.notes), 'file')} not read in full: {parts}{hint}", stacklevel=3)
    if summary.problems:
        hint = f": run_ingest returns up to {MAX_PROBLEMS} of each file" if len(summary.problems) > _MAX_NAMES else ""
        left_out = count(_count_all(summary.problems), "item")
        warnings.warn(f"left out {left_out}: {name_first(summary.problems)}{hint}", stacklevel=3)
    if summary.skipped:
        reasons = "; ".join(list_by_reason(summary.skipped, all_are="run_ingest returns all"))
        warnings.warn(visible_line(f"skipped: {reasons}"), stacklevel=3)


def name_first(problems: Sequence[Problem]) -> str:
    """Return the first problems as text, and the number of the others."""
    names = [str(problem) for problem in problems[:_MAX_NAMES]]
    others = _count_all(problems[_MAX_NAMES:])
    if others:
        names.append(f"and {others:,} more")
    return "; ".join(names)


def _count_all(problems: Iterable[Problem]) -> int:
    return sum(problem.count for problem in problems)
