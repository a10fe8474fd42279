"""Experiments: methods answer the same questions on one index, and each answer is recorded.

`run_experiment` is for Python, and the command `arag eval run` uses the same `Experiment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd

from arag.evaluation.arguments import (
    Methods,
    Questions,
    check_extractive,
    check_numbers,
    check_presentation,
    choose_folder,
    choose_methods,
    find_questions,
    name_source,
)
from arag.evaluation.cache import CallCache, Store, store_folder
from arag.evaluation.chat_models import load_without_retries, name_model, with_cache
from arag.evaluation.corpora import check_paragraphs, describe_contents, locate_gold, make_index
from arag.evaluation.datasets import Question
from arag.evaluation.paper_tools import Presentation
from arag.evaluation.plan import Plan, describe_method, open_run
from arag.evaluation.recordings import Recorder
from arag.evaluation.records import Record
from arag.evaluation.run_context import RunContext
from arag.evaluation.runs import MethodRun
from arag.graph import DEFAULT_MAX_STEPS
from arag.models.names import EXTRACTIVE
from arag.retrieval import DEFAULT_TOP_K
from arag.retrieval.index import Index, open_index
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.locations import store_at

DEFAULT_CONCURRENCY = 8  # questions at a time: more end sooner, and more often meet a provider's rate limit


class ExperimentRecord(Record):
    """A record of an experiment, with the name of the method that answered."""

    method: str


def run_experiment(
    questions: Questions,
    index: str | Path | Index | IndexStore,
    methods: Methods = "arag",
    *,
    model: str | BaseChatModel | None = None,
    model_options: Mapping[str, Any] | None = None,
    judge: str | BaseChatModel | None = None,
    out: str | Path | None = None,
    limit: int | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    top_k: int = DEFAULT_TOP_K,
    presentation: Presentation = "compact",
    max_steps: int = DEFAULT_MAX_STEPS,
    max_cost: float | None = None,
    record: str | Path | None = None,
    announce: Callable[[str], None] = print,
) -> Iterator[ExperimentRecord]:
    """Answer questions with methods, and yield a record for each question and method.

    It does the same as `arag eval run`, and continues its runs. Error messages name the command's options: `--out` is
    `out` here. You may leave the loop at any time. To continue, call this again with the same arguments: it first
    yields the records that are there, then asks the questions that are missing or have failed. No finished model call
    is paid for twice. While your loop works on a record, other questions are answered.

    Args:
        questions: The file of the questions, or a list of questions: `Question` objects, or dictionaries with `id`,
            `question`, `answer` and the other fields of such a file.
        index: The folder or the address of the index, or an open index. If there is none in the folder, the paragraphs
            that come with the questions are ingested.
        methods: Names of methods as on the command line, classes of your own (see `Method`), or objects of them, which
            have settings.
        model: The model that answers: `provider:model`, or a chat model. None means the model in the environment
            variable ARAG_MODEL, else the built-in extractive one.
        model_options: Options for the model's class, such as `{"temperature": 0}`.
        judge: A model that judges the answers, for LLM-Acc.
        out: The folder for the records. By default `runs/` and the name of the questions' file.
        limit: How many questions to use, from the first one.
        concurrency: How many questions are answered at a time.
        top_k: Chunks per search.
        presentation: The texts that A-RAG's tools show: `compact`, or the `paper`'s plain lists.
        max_steps: A-RAG's model calls before an answer is forced.
        max_cost: The US dollars to spend, those of earlier runs included; after that, no more calls begin.
        record: A file for the recording of the model's replies, which the model `replay:FILE` plays.
        announce: Called with a sentence before work that may take long, and with warnings.

    Yields:
        The records. A question that failed has its `error` in the record.

    Raises:
        InputError: An argument is wrong (raised by the call, before anything is written), the folder holds another run,
            the budget is used up, or ten questions in a row have failed.

    Example:
        >>> from arag.evaluation import run_experiment
        >>> for record in run_experiment("examples/questions.json", "my-index", "naive-rag", limit=1, out="runs/one"):
        ...     print(record["method"], record["question_id"], record["steps"], record["error"])
        naive-rag q01 1 None
    """
    experiment = Experiment(
        questions,
        index,
        methods,
        model=model,
        judge=judge,
        out=out,
        variants=[Variant(max_steps=max_steps, model_options=model_options or {})],
        limit=limit,
        concurrency=concurrency,
        top_k=top_k,
        presentation=presentation,
        max_cost=max_cost,
        announce=announce,
        record=None if record is None else Path(record),
    )
    return _yield_records(experiment)


def _yield_records(experiment: Experiment) -> Iterator[ExperimentRecord]:
    with experiment.open() as runs:
        for run in runs:
            for record in run.finished():
                yield ExperimentRecord(method=run.method.name, **record)
            if run.is_complete():
                continue
            prepared = run.prepare()
            for record in run.answer(prepared):
                yield ExperimentRecord(method=run.method.name, **record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Settings with which an experiment makes a run of its own.

    Attributes:
        name: The run's folder, below that of the experiment; empty if there is one variant.
        max_steps: A-RAG's model calls before an answer is forced.
        model_options: Options for the model's class.
    """

    name: str = ""
    max_steps: int = DEFAULT_MAX_STEPS
    model_options: Mapping[str, Any] = field(default_factory=dict)


class Experiment:
    """Methods to compare, on questions and an index; its arguments are checked, and nothing is written yet.

    Args:
        questions: The questions, as for `run_experiment`.
        index: The index, as for `run_experiment`.
        methods: The methods, as for `run_experiment`.
        model: The model that answers.
        judge: A model that judges the answers.
        out: The folder for the records.
        variants: Makes a run for each.
        limit: How many questions to use, from the first one.
        concurrency: How many questions are answered at a time.
        top_k: Chunks per search.
        presentation: The texts that A-RAG's tools show.
        max_cost: The US dollars that all runs may cost together.
        announce: Called with a sentence before work that may take long, and with warnings.
        record: A file for the recording of the model's replies, which `replay:FILE` plays; a judge's are not recorded.

    Attributes:
        folder: The folder for the records.
    """

    def __init__(
        self,
        questions: Questions,
        index: str | Path | Index | IndexStore,
        methods: Methods,
        *,
        model: str | BaseChatModel | None,
        judge: str | BaseChatModel | None,
        out: str | Path | None,
        variants: Sequence[Variant],
        limit: int | None,
        concurrency: int,
        top_k: int,
        presentation: Presentation,
        max_cost: float | None,
        announce: Callable[[str], None],
        record: Path | None = None,
    ) -> None:
        check_numbers(limit=limit, concurrency=concurrency, top_k=top_k)
        for variant in variants:
            check_numbers(max_steps=variant.max_steps)
        check_presentation(presentation)
        self._methods = choose_methods(methods)
        self._questions = find_questions(questions)
        self._asked = self._questions[:limit]
        self._index = index if isinstance(index, Index) else store_at(index)
        self._closes_store = self._index is not index
        self.folder = choose_folder(questions, out)
        self._source = name_source(questions, self.folder)
        self._model = model
        self._model_name = name_model(model)
        self._judge_name = None if judge is None else name_model(judge)
        if self._model_name == EXTRACTIVE:
            check_extractive(self._methods)
        self._judge = None if judge is None else load_without_retries(judge)
        self._variants = variants
        self._models = [load_without_retries(model, **variant.model_options) for variant in variants]
        self._concurrency = concurrency
        self._top_k = top_k
        self._presentation = presentation
        self._max_cost = max_cost
        self._announce = announce
        self._record = record

    def folders(self) -> list[Path]:
        """Return the folders of the runs, one for each variant."""
        return [self.folder / variant.name for variant in self._variants]

    @contextmanager
    def open(self) -> Iterator[list[MethodRun]]:
        """Make the index if there is none, write the plans, and yield the runs of all variants and methods.

        When it is left, no more calls of models begin.
        """
        stopped = Event()
        with ExitStack() as stack:
            index = self._open_index(stack)
            contents = describe_contents(index)
            for variant, model in zip(self._variants, self._models, strict=True):
                open_run(self.folder / variant.name, self._make_plan(variant, model, index, contents))
            questions = locate_gold(self._asked, index)
            self._warn_of_missing_gold(questions, index)
            recorder = None if self._record is None else stack.enter_context(Recorder(self._record))
            stack.callback(stopped.set)
            yield self._make_runs(index, questions, stopped, recorder)

    def _open_index(self, stack: ExitStack) -> Index:
        if isinstance(self._index, Index):  # the caller closes it
            check_paragraphs(self._questions, self._index)
            return self._index
        if self._closes_store:
            stack.callback(self._index.close)
        for line in make_index(self._questions, self._index):
            self._announce(line)
        return stack.enter_context(open_index(self._index))

    def _make_plan(self, variant: Variant, model: BaseChatModel, index: Index, contents: dict[str, Any]) -> Plan:
        location = index.path.resolve() if isinstance(index.path, Path) else index.path
        options = dict(variant.model_options)
        if isinstance(self._model, BaseChatModel):
            options = dumpd(model).get("kwargs", {})
        return Plan(
            questions=self._source,
            index=str(location),
            model=self._model_name,
            judge=self._judge_name,
            model_options=options,
            top_k=self._top_k,
            presentation=self._presentation,
            max_steps=variant.max_steps,
            contents=contents,
            methods={method.name: describe_method(method) for method in self._methods},
            asked=len(self._asked),
        )

    def _warn_of_missing_gold(self, questions: Sequence[Question], index: Index) -> None:
        gold: list[str] = []
        for question in questions:
            gold += question.gold_documents
        if gold and not any(map(index.document, gold)):
            self._announce(f"Warning: none of the questions' gold documents ({gold[0]!r}, ...) is in the index")

    def _make_runs(
        self, index: Index, questions: Sequence[Question], stopped: Event, recorder: Recorder | None
    ) -> list[MethodRun]:
        ledger = Store(self.folder)
        kept = Store(store_folder(index.path))
        # All variants share the cache: they begin with the same calls.
        cache = CallCache(ledger, max_cost=self._max_cost, stopped=stopped)
        preparing_cache = CallCache(kept, ledger, self._max_cost, stopped)
        runs = []
        for variant, model in zip(self._variants, self._models, strict=True):
            context = RunContext(
                index,
                with_cache(model, cache, recorder),
                kept,
                judge=None if self._judge is None else with_cache(self._judge, cache),
                top_k=self._top_k,
                presentation=self._presentation,
                max_steps=variant.max_steps,
                concurrency=self._concurrency,
                announce=self._announce,
                stopped=stopped,
            )
            for method in self._methods:
                run = MethodRun(
                    method=method,
                    variant=variant.name,
                    folder=self.folder / variant.name,
                    questions=questions,
                    context=context,
                    preparing_model=with_cache(model, preparing_cache, recorder),
                )
                runs.append(run)
        return runs
