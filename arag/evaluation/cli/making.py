"""`arag eval make`: makes questions with gold answers from an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TextColumn

from arag.errors import InputError
from arag.models.names import EXTRACTIVE
from arag.options import JsonOption, ModelOption, ModelOptionsOption, read_model_options
from arag.terminal import FAILED, err, out, print_json, progress, warn

if TYPE_CHECKING:
    from arag.evaluation.making.make import Tally
    from arag.retrieval.index import Index

_LINES_EVERY = 10  # questions tried, where no bar can be drawn

_LocationArgument = Annotated[str, typer.Argument(metavar="INDEX", help="The index: a folder, or an address.")]
_FileOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Where to write them. Default: INDEX-questions.jsonl.")
]
_NumberOption = Annotated[int, typer.Option("--number", "-n", min=1, help="Questions to make, of all kinds together.")]
_KindsOption = Annotated[list[str] | None, typer.Option("--kind", help="Only this kind of question; repeatable.")]
_SeedOption = Annotated[int, typer.Option(help="Another seed chooses other passages.")]
_ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Questions to write at the same time.")]
_MaxCostOption = Annotated[
    float | None, typer.Option(min=0, help="Begin no more calls once this many US dollars are spent.")
]


def make(
    index: _LocationArgument,
    model: ModelOption = EXTRACTIVE,
    model_option: ModelOptionsOption = None,
    number: _NumberOption = 40,
    kind: _KindsOption = None,
    seed: _SeedOption = 0,
    concurrency: _ConcurrencyOption = 8,
    max_cost: _MaxCostOption = None,
    target: _FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make questions with gold answers from an index, for `arag eval run`. Run it again to continue.

    A model writes each question from passages, and checks it: its passages answer it, with one answer, and nothing else
    does. Without a language model, a smaller set is made by rules, from tables, dates and names.

    Exit code 1 means that there are fewer questions than were asked for.
    """
    from arag.evaluation.making.make import QuestionsFile, Tally, describe, share_out
    from arag.retrieval.index import open_index

    file = QuestionsFile(target or Path(f"{Path(index).name}-questions.jsonl"))
    kinds = _choose_kinds(kind or (), by_rules=model == EXTRACTIVE)
    tally = Tally(share_out(number, kinds), file)
    with open_index(index) as opened, _showing(tally, number) as on_step:
        if model == EXTRACTIVE:
            _make_by_rules(opened, tally, seed, on_step)
        else:
            options = read_model_options(model_option)
            _make_by_model(opened, tally, seed, model, options, concurrency, max_cost, on_step)
    if as_json:
        print_json(describe(tally))
    else:
        _show_result(tally)
    if tally.kept < number:
        raise typer.Exit(FAILED)


def _choose_kinds(kinds: Sequence[str], *, by_rules: bool) -> list[str]:
    from arag.evaluation.making.drafts import KINDS
    from arag.evaluation.making.make import RULE_KINDS

    valid = RULE_KINDS if by_rules else KINDS
    for name in kinds:
        if name not in valid:
            reason = " without a language model" if name in KINDS else ""
            raise InputError(f"--kind {name}: there is no such kind{reason}; valid are {', '.join(valid)}")
    return list(dict.fromkeys(kinds or valid))


def _make_by_rules(index: Index, tally: Tally, seed: int, on_step: Callable[[], None]) -> None:
    from arag.evaluation.making.make import make_by_rules

    err.print_line("Without a language model, questions are made by rules, from tables, dates and names.")
    make_by_rules(index, tally, seed, on_step)


def _make_by_model(
    index: Index,
    tally: Tally,
    seed: int,
    model: str,
    options: dict[str, Any],
    concurrency: int,
    max_cost: float | None,
    on_step: Callable[[], None],
) -> None:
    from arag.evaluation.cache import CallCache, Store, store_folder
    from arag.evaluation.chat_models import load_without_retries
    from arag.evaluation.making.make import make_by_model
    from arag.evaluation.method import Session
    from arag.evaluation.run_context import RunContext

    store = Store(store_folder(index.path))  # so that a later run pays for no call again
    cached = load_without_retries(model, **options).model_copy(update={"cache": CallCache(store, max_cost=max_cost)})
    context = RunContext(index, cached, store, concurrency=concurrency, announce=err.print_line)
    make_by_model(Session(context), tally, seed, model, on_step)


@contextmanager
def _showing(tally: Tally, number: int) -> Iterator[Callable[[], None]]:
    """Show how many questions are kept and were tried: on a bar, or now and then in a line."""
    with progress(TextColumn("{task.fields[figures]}", markup=False), transient=False) as bar:
        task = bar.add_task("Questions", total=number, completed=tally.kept, figures="")

        def show() -> None:
            figures = _describe(tally, number)
            if bar.disable and tally.tried % _LINES_EVERY == 0:
                err.print_line(figures)
            bar.update(task, completed=tally.kept, figures=figures)

        yield show


def _describe(tally: Tally, number: int) -> str:
    parts = [f"{tally.kept:,} of {number:,} kept", f"{tally.tried:,} tried"]
    for reason, times in tally.dropped.most_common(1):
        parts.append(f"most often dropped: {reason} ({times:,})")
    return ", ".join(parts)


def _show_result(tally: Tally) -> None:
    for kind, wanted in tally.wanted.items():
        out.print_line((kind, "bold"), f" {wanted - tally.missing(kind):,} of {wanted:,}")
    for reason, times in tally.dropped.most_common():
        out.print_line(f"Dropped: {reason} ({times:,})")
    if tally.kept:
        out.print_line(f"Written: {tally.file.file}")
    elif not tally.dropped:
        warn("For these kinds, the index has no tables, dates or names that rules make questions from.")
