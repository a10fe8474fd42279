"""`arag eval failures`: why answers are wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arag.errors import InputError
from arag.evaluation.cli.progress import preparing, warn_of
from arag.evaluation.cli.reporting import load_report
from arag.options import IndexOption
from arag.terminal import FAILED, out, warn

if TYPE_CHECKING:
    from arag.evaluation.failures import Failure


def failures(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    index: IndexOption,
    judge: Annotated[
        str | None, typer.Option("--judge", help="provider:model that diagnoses what the records do not show.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Failures to diagnose at the same time.")] = 8,
) -> None:
    """Find why answers are wrong (paper, Figure 5): from the records, a judge, and your labels in DIR/failures.csv.

    Exit code 1 means that the judge gave no usable diagnosis for some answers; the next run asks about them again.
    """
    from arag.evaluation.cache import CallCache, Store
    from arag.evaluation.cli.running import load_judge
    from arag.evaluation.failures import (
        CHAIN_CAUSES,
        CHAIN_ERROR,
        LABELS_FILE,
        diagnose,
        find_failures,
        is_wrong,
        read_labels,
        write_labels,
    )
    from arag.evaluation.method import Lab, Session
    from arag.evaluation.plan import load_plan
    from arag.evaluation.runs import load_records
    from arag.retrieval.index import open_index
    from arag.retrieval.scope import Scope

    plan, labels = load_plan(folder), folder / LABELS_FILE
    records = {name: list(some.values()) for name, some in load_records(folder).items()}
    if not any(records.values()):
        raise InputError(f"the run in {folder} has no records yet: run `arag eval run` first")
    with open_index(index) as whole:
        searched = whole if plan.scope is None else whole.limited_to(Scope(**plan.scope))
        wrong: list[Failure] = []
        for name, some in records.items():
            of_method = find_failures(name, plan.methods[name].iterative, some, searched)
            if not of_method and (count := sum(map(is_wrong, some))):
                warn(f"Note: {name} does not search, so its wrong answers ({count:,}) are not diagnosed")
            wrong += of_method
        if labels.exists():
            wrong = read_labels(wrong, labels)
        open_before = sum(not failure.final for failure in wrong)
        if judge is not None:
            store = Store(folder)
            model = load_judge(judge).model_copy(update={"cache": CallCache(store)})
            with preparing("Judge") as show:
                session = Session(Lab(searched, model, store, at_once=concurrency, progress=show))
                wrong = session.side_by_side(
                    lambda own, failure: failure if failure.final else diagnose(failure, own), wrong, "Diagnoses"
                )
    write_labels(wrong, labels)
    counts = Counter((failure.method, failure.final) for failure in wrong)
    for (name, cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        chain = f"{CHAIN_ERROR}, " if cause in CHAIN_CAUSES else ""
        out.print(f"{name}: {chain}{cause or 'undecided'}: {count:,}")
    left = [failure for failure in wrong if not failure.final]
    if judge is not None:
        out.print(f"Diagnosed: {open_before - len(left):,} of {open_before:,} by the judge")
        warn_of("Not diagnosed", [f"{each.method}, {each.record['question_id']}: {each.why}" for each in left])
    page = folder / "failures.html"
    page.write_text(load_report().failures_page(folder, wrong), encoding="utf-8", errors="replace")
    out.print(f"Written: {page}")
    todo = "; fill in `label` there and run this again" if left else ""
    out.print(f"{labels}: {len(left):,} of {len(wrong):,} undecided{todo}.")
    if judge is not None and left:
        raise typer.Exit(FAILED)
