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
from arag.terminal import FAILED, out

if TYPE_CHECKING:
    from arag.evaluation.failures import Failure


def failures(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    index: IndexOption,
    judge: Annotated[
        str | None, typer.Option("--judge", help="provider:model that diagnoses what the records do not show.")
    ] = None,
) -> None:
    """Find why methods that search answer wrongly (paper, Figure 5): from records, a judge, labels in DIR/failures.csv.

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
            wrong += find_failures(name, plan.methods[name].iterative, some, searched)
        if labels.exists():
            wrong = read_labels(wrong, labels)
        if judge is not None:
            store = Store(folder)
            model = load_judge(judge).model_copy(update={"cache": CallCache(store)})
            with preparing("Judge") as show:
                session = Session(Lab(searched, model, store, progress=show))
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
        warn_of("Not diagnosed", [f"{each.method}, {each.record['question_id']}: {each.why}" for each in left])
    page = folder / "failures.html"
    page.write_text(load_report().failures_page(folder, wrong), encoding="utf-8", errors="replace")
    out.print(f"Written: {page}")
    todo = "; fill in `label` there and run this again" if left else ""
    out.print(f"{labels}: {len(left):,} of {len(wrong):,} undecided{todo}.")
    if judge is not None and left:
        raise typer.Exit(FAILED)
