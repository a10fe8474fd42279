"""Experiments: methods answer the same questions on one index, and each answer is recorded.

`run_experiment` is for Python, and the command `arag eval run` uses the same `Experiment`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd

from arag.errors import InputError
from arag.evaluation.cache import CallCache, Store, store_folder
from arag.evaluation.corpora import check_paragraphs, describe_contents, locate_gold, make_index
from arag.evaluation.datasets import Question, load_questions, name_dataset, read_questions
from arag.evaluation.method import Method, RunContext
from arag.evaluation.methods import find_methods, make_method
from arag.evaluation.paper_tools import Presentation
from arag.evaluation.plan import Plan, add_preparation, describe_method, open_run
from arag.evaluation.records import Record, RecordFile, record_file
from arag.evaluation.runs import answer_questions, list_open, prepare
from arag.graph import DEFAULT_MAX_STEPS
from arag.models.chat import load_model
from arag.models.extractive import ExtractiveModel
from arag.models.names import EXTRACTIVE, MODEL_VARIABLE
from arag.retrieval import DEFAULT_TOP_K
from arag.retrieval.index import Index, open_index
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.locations import store_at

Questions: TypeAlias = str | Path | Iterable[Question | Mapping[str, Any]]
Methods: TypeAlias = str | type[Method] | Method | Iterable[str | type[Method] | Method]
DEFAULT_CONCURRENCY = 8  # questions at a time: more end sooner, and more often meet a provider's rate limit
_RUNS = Path("runs")


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
    ) -> None:
        _check_numbers(limit=limit, concurrency=concurrency, top_k=top_k)
        for variant in variants:
            _check_numbers(max_steps=variant.max_steps)
        _check_presentation(presentation)
        self._methods = choose_methods(methods)
        self._questions = _read_questions(questions)
        self._asked = self._questions[:limit]
        self._index = index if isinstance(index, Index) else store_at(index)
        self._closes_store = self._index is not index
        self.folder = _choose_folder(questions, out)
        self._source = _name_source(questions, self.folder)
        self._model = model
        self._model_name = _name_model(model)
        self._judge_name = None if judge is None else _name_model(judge)
        if self._model_name == EXTRACTIVE:
            _check_extractive(self._methods)
        self._judge = None if judge is None else load_without_retries(judge)
        self._variants = variants
        self._models = [load_without_retries(model, **variant.model_options) for variant in variants]
        self._concurrency = concurrency
        self._top_k = top_k
        self._presentation = presentation
        self._max_cost = max_cost
        self._announce = announce

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
            stack.callback(stopped.set)
            yield self._make_runs(index, questions, stopped)

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

    def _make_runs(self, index: Index, questions: Sequence[Question], stopped: Event) -> list[MethodRun]:
        ledger = Store(self.folder)
        kept = Store(store_folder(index.path))
        # All variants share the cache: they begin with the same calls.
        cache = CallCache(ledger, max_cost=self._max_cost, stopped=stopped)
        preparing_cache = CallCache(kept, ledger, self._max_cost, stopped)
        runs = []
        for variant, model in zip(self._variants, self._models, strict=True):
            context = RunContext(
                index,
                _with_cache(model, cache),
                kept,
                judge=None if self._judge is None else _with_cache(self._judge, cache),
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
                    preparing_model=_with_cache(model, preparing_cache),
                )
                runs.append(run)
        return runs


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRun:
    """One method of a run: it answers the questions that have no answer yet.

    Attributes:
        method: The method.
        variant: The name of the run's variant.
        folder: The run's folder.
        questions: The questions, with their gold documents as the index names them.
        context: Everything that the method's sessions share.
        preparing_model: The model for the work before the first question; its calls are kept for all runs.
    """

    method: Method
    variant: str
    folder: Path
    questions: Sequence[Question]
    context: RunContext
    preparing_model: BaseChatModel

    @property
    def file(self) -> RecordFile:
        """The file of the method's records."""
        return record_file(self.folder, self.method.name)

    def list_open(self, records: Mapping[str, Record]) -> list[Question]:
        """Return the questions that have no answer, or, with a judge, no verdict."""
        return list_open(self.questions, records, judged=self.context.judge is not None)

    def is_complete(self) -> bool:
        """Return whether no question is open."""
        return not self.list_open(self.file.read())

    def finished(self) -> list[Record]:
        """Return the records of the questions that are not open, in the order of the questions."""
        records = self.file.read()
        open_ids = {question.id for question in self.list_open(records)}
        return [records[question.id] for question in self.questions if question.id not in open_ids]

    def prepare(self) -> Any:
        """Do the method's work before the first question; return the object that `answer` needs."""
        prepared, calls = prepare(self.method, self.context, self.preparing_model)
        add_preparation(self.folder, self.method.name, calls)
        return prepared

    def answer(self, prepared: Any) -> Iterator[Record]:
        """Answer the open questions, and yield their records as they are written.

        Raises:
            InputError: Ten questions in a row have failed, or the budget is used up.
        """
        return answer_questions(self.method, self.context, prepared, self.questions, self.file)


def _check_numbers(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise InputError(f"{name} is {number}: it must be at least 1")


def _check_presentation(presentation: str) -> None:
    valid = get_args(Presentation)
    if presentation not in valid:
        raise InputError(f"presentation is {presentation!r}: valid are {' and '.join(valid)}")


def choose_methods(methods: Methods) -> list[Method]:
    """Return methods by their names, classes, or themselves.

    Raises:
        InputError: There is no such method, its class lacks a name, or two have the same name.
    """
    given = [methods] if isinstance(methods, str | type | Method) else methods
    chosen: dict[str, Method] = {}
    for each in given:
        for method in _find_methods(each):
            if chosen.setdefault(method.name, method) != method:
                raise InputError(f"two methods are named {method.name!r}: give each class a name of its own")
    if not chosen:
        raise InputError("no method is given: name one, such as 'arag'")
    return list(chosen.values())


def _find_methods(given: str | type[Method] | Method) -> list[Method]:
    if isinstance(given, str):
        return [make_method(kind, {}) for kind in find_methods([given]).values()]
    if isinstance(given, type) and issubclass(given, Method):
        _check_names(given)
        return [make_method(given, {})]
    if isinstance(given, Method):
        _check_names(type(given))
        return [given]
    raise InputError(f"{given!r} is not a method: give a name, a class of arag.evaluation.Method, or an object of one")


def _check_names(kind: type[Method]) -> None:
    for name in ("name", "title"):
        if not hasattr(kind, name):
            raise InputError(f"the method {kind.__name__} has no {name}: give its class one, such as {name} = 'mine'")


def _check_extractive(methods: Sequence[Method]) -> None:
    for method in methods:
        if method.needs_model:
            raise InputError(f"{method.name} needs a language model: give one with --model, as provider:model")


def _read_questions(questions: Questions) -> list[Question]:
    if isinstance(questions, str | Path):
        return load_questions(Path(questions))
    read = read_questions(questions)
    if not read:
        raise InputError("no questions are given")
    return read


def _choose_folder(questions: Questions, out: str | Path | None) -> Path:
    if out is not None:
        return Path(out)
    if isinstance(questions, str | Path):
        return _RUNS / name_dataset(Path(questions))
    return _RUNS / "experiment"


def _name_source(questions: Questions, folder: Path) -> str:
    """Return the file of the questions; a list of questions has the name of the run's folder."""
    if isinstance(questions, str | Path):
        return str(Path(questions).resolve())
    return folder.resolve().name


# --- models ---


def load_without_retries(model: str | BaseChatModel | None, **options: Any) -> BaseChatModel:
    """Return a model whose client does not wait out rate limits: sessions do. A chat model is returned as it is."""
    loaded = load_model(model, **options)
    can_retry = "max_retries" in type(loaded).model_fields
    if isinstance(model, BaseChatModel) or not can_retry or "max_retries" in options:
        return loaded
    return load_model(model, **options, max_retries=0)


def _name_model(model: str | BaseChatModel | None) -> str:
    if model is None:
        return os.environ.get(MODEL_VARIABLE) or EXTRACTIVE
    if isinstance(model, str):
        return model
    if isinstance(model, ExtractiveModel):
        return EXTRACTIVE
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind = type(model).__name__
    return f"{kind}:{name}" if name else kind


def _with_cache(model: BaseChatModel, cache: CallCache) -> BaseChatModel:
    return model.model_copy(update={"cache": cache})
