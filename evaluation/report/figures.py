"""The figures of a run: for each method, and for comparisons of methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag.errors import ARAGError, InputError
from arag.evaluation.datasets import load_questions
from arag.evaluation.methods import all_methods
from arag.evaluation.methods.interface import MethodFacts
from arag.evaluation.preparation import Preparation, load_preparations
from arag.evaluation.records import Record, RecordFile, update_price
from arag.evaluation.report.measures import ACCURACY, CONTAIN_ACC, COSTS, EFFORT, LLM_ACC, Measure, figure, verdict
from arag.evaluation.report.paper import PaperResults, differences, paper_order, paper_results
from arag.evaluation.runs import RECORDS, Plan, find_index, load_plan
from arag.evaluation.scores import Interval, paired_test
from arag.retrieval.storage import Settings

OTHER_TOOLS = "other"


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """A method's figures.

    Attributes:
        name: Its name.
        title: Its name in the paper, if it is there.
        facts: What the run has kept of it; None if that is nothing and it is not installed with the run's settings.
        records: Its records by question id, without their messages and stages, which take the most memory.
        traced: The ids of the questions whose records have messages.
        figures: The means by the measures' names; None if unknown.
        failed: How many questions have no answer.
        judged: Whether a judge was asked.
        unjudged: How many answers the judge gave no verdict on.
        cost: Total US dollars, including failed questions and all attempts; None if unknown.
        judge_cost: US dollars of all verdicts; None if unknown.
        tools: Calls by tool.
        stop_reasons: Answered questions by stop reason.
        preparation: What its index-time work took; None if it has none.
    """

    name: str
    title: str
    facts: MethodFacts | None
    records: Mapping[str, Record]
    traced: frozenset[str]
    figures: Mapping[str, Interval | None]
    failed: int
    judged: bool
    unjudged: int
    cost: float | None
    judge_cost: float | None
    tools: Mapping[str, int]
    stop_reasons: Mapping[str, int]
    preparation: Preparation | None

    @property
    def index_usage(self) -> Counter[str]:
        """Model calls and tokens of its index-time work, also of what other runs have paid for."""
        done = self.preparation
        return Counter() if done is None else Counter(done["usage"]) + Counter(done.get("reused") or {})

    @property
    def index_cost(self) -> float | None:
        """US dollars of its index-time work, also of what other runs have paid for; None if unknown."""
        done = self.preparation
        return 0.0 if done is None else _sum([done["cost"], done.get("reused_cost", 0.0)])

    @property
    def cost_with_index(self) -> float | None:
        """US dollars of its index-time work and all questions; None if unknown."""
        return _sum([self.index_cost, self.cost])

    @property
    def answers(self) -> list[Record]:
        """The records of answered questions."""
        return [record for record in self.records.values() if record["error"] is None]

    @property
    def answered(self) -> int:
        """How many questions have an answer."""
        return len(self.records) - self.failed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods on the questions that both have.

    Attributes:
        measure: What is compared.
        baseline: The first method's title.
        name: The second method's name.
        title: The second method's title.
        difference: The second minus the first.
        p: The two-sided p-value of a paired permutation test.
    """

    measure: Measure
    baseline: str
    name: str
    title: str
    difference: Interval
    p: float


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows.

    Attributes:
        folder: The run's folder.
        plan: The run's plan.
        settings: The settings of its index; None if the index is missing.
        models: The models that answered, as their providers report them.
        methods: The methods, in the paper's order.
        baseline: The name of the method that the others are compared with.
        comparisons: The comparisons with it.
        questions: A record of each question, in order; its number in the report is its place.
        judged: Whether answers were judged.
        paper: The paper's results for this dataset, if it has any.
        differences: How the run differs from the paper's.
        notes: Warnings about the figures.
    """

    folder: Path
    plan: Plan
    settings: Settings | None
    models: Sequence[str]
    methods: Sequence[MethodFigures]
    baseline: str
    comparisons: Sequence[Comparison]
    questions: Sequence[Record]
    judged: bool
    paper: PaperResults | None
    differences: Sequence[str]
    notes: Sequence[str]

    @property
    def headline(self) -> Measure:
        """The measure of correct answers: LLM-Acc if there is a judge."""
        return LLM_ACC if self.judged else CONTAIN_ACC

    @property
    def over(self) -> str:
        """What accuracies are computed over."""
        unjudged = any(method.unjudged for method in self.methods)
        left_out = "; LLM-Acc excludes answers without a verdict" if unjudged else ""
        return f"Over all questions asked (failed ones count as wrong{left_out})"

    def measures(self, wanted: Sequence[Measure]) -> list[Measure]:
        """Return the available measures: without a judge there is no LLM-Acc."""
        return [measure for measure in wanted if self.judged or not measure.judged]

    def figure(self, method: str, measure: Measure) -> Interval | None:
        """Return a method's figure; None if it has none."""
        return next((each.figures[measure.name] for each in self.methods if each.name == method), None)


def make_report(folder: Path, *, baseline: str | None = None, dataset: str | None = None) -> Report:
    """Return the figures of a run.

    Args:
        folder: The run's folder.
        baseline: The method that the others are compared with. Default: the first in the paper's order.
        dataset: The paper's dataset, if the name of the questions' file or folder does not show it.

    Raises:
        InputError: There is no run, it has no records, a record is incomplete, the baseline has none, or the paper has
            no such dataset.
    """
    plan = load_plan(folder)
    files = sorted((folder / RECORDS).glob("*.jsonl"))
    found = {file.stem: stored for file in files if (stored := light_records(file))[0]}
    if not found:
        raise InputError(f"the run in {folder} has no records yet: run `arag eval run` first")
    judged = any(_is_judged(records.values()) for records, _ in found.values())
    prepared = load_preparations(folder)
    methods = sorted(
        (
            _measure_method(name, _find_facts(name, plan), *stored, judged, prepared.get(name))
            for name, stored in found.items()
        ),
        key=place_of,
    )
    baseline = baseline or methods[0].name
    first = next((method for method in methods if method.name == baseline), None)
    if first is None:
        raise InputError(f"the run in {folder} has no records of {baseline!r}; it has: {', '.join(sorted(found))}")
    measures = (LLM_ACC, CONTAIN_ACC) if judged else (CONTAIN_ACC,)
    others = [method for method in methods if method is not first]
    compared = [_compare(measure, first, other) for measure in measures for other in others]
    questions = _sort_questions({key: record for method in methods for key, record in method.records.items()}, plan)
    paper, settings, models = paper_results(plan.questions, dataset), _read_settings(plan), _list_models(methods)
    return Report(
        folder=folder,
        plan=plan,
        settings=settings,
        models=models,
        methods=methods,
        baseline=baseline,
        comparisons=[comparison for comparison in compared if comparison is not None],
        questions=questions,
        judged=judged,
        paper=paper,
        differences=differences(paper, models, plan.judge, plan.options.presentation, settings, len(questions))
        if paper
        else [],
        notes=_make_notes(methods, len(questions), plan.asked, judged),
    )


def list_simplifications(methods: Iterable[MethodFigures]) -> list[str]:
    """Return how methods differ from the published ones; methods that differ in the same way share a text."""
    found: dict[str, dict[str, None]] = {}
    for method in methods:
        if method.facts is not None and method.facts["simplified"]:
            found.setdefault(method.facts["simplified"], {})[method.title] = None
    return [f"{', '.join(titles)}: {simplified}" for simplified, titles in found.items()]


def stop_reason(record: Record) -> str:
    """Return why a search ended."""
    return record["stop_reason"] or "unknown"


def light_records(file: Path) -> tuple[dict[str, Record], frozenset[str]]:
    """Read a method's records, with prices known since. Messages and stages are left out: they take the most memory.

    Returns:
        The records by question id, and the ids of those that have messages.

    Raises:
        InputError: A record is invalid or incomplete.
    """
    records: dict[str, Record] = {}
    traced: set[str] = set()
    for record in RecordFile(file).each():
        key = record["question_id"]
        missing = Record.__required_keys__ - record.keys()
        if missing:
            raise InputError(
                f"the record of question {key!r} in {file.name} has no {min(missing)!r}: "
                "another version wrote it; start a new run in another folder"
            )
        records[key] = update_price({**record, "messages": [], "stages": []})
        (traced.add if record["messages"] else traced.discard)(key)
    return records, frozenset(traced)


def _is_judged(records: Iterable[Record]) -> bool:
    return any(record["judgement"] is not None for record in records)


def _find_facts(name: str, plan: Plan) -> MethodFacts | None:
    known = all_methods().get(name)
    if name in plan.methods or known is None:
        return plan.methods.get(name)
    try:
        return known.facts(plan.options)
    except InputError:  # an earlier version's run, with a setting that no longer exists
        return None


def _measure_method(
    name: str,
    facts: MethodFacts | None,
    by_id: Mapping[str, Record],
    traced: frozenset[str],
    judged: bool,
    preparation: Preparation | None,
) -> MethodFigures:
    records = list(by_id.values())
    answered = [record for record in records if record["error"] is None]
    measures = [measure for measure in (*ACCURACY, *EFFORT, *COSTS) if judged or not measure.judged]
    return MethodFigures(
        name=name,
        title=facts["title"] if facts else name,
        facts=facts,
        records=by_id,
        traced=traced,
        figures={measure.name: figure(measure, records) for measure in measures},
        failed=len(records) - len(answered),
        judged=_is_judged(records),
        unjudged=sum(verdict(record) is None for record in answered) if judged else 0,
        cost=_sum([record["paid"] for record in records]),
        judge_cost=_sum([record["judge_paid"] for record in records]),
        tools=_count_tools(answered),
        preparation=preparation,
        stop_reasons=dict(Counter(map(stop_reason, answered)).most_common()),
    )


def place_of(method: MethodFigures) -> tuple[int, int, str]:
    """Return the sort key of methods: the paper's order, then the order in which methods are installed."""
    order, known = paper_order(), list(all_methods())
    return (
        order.index(method.title) if method.title in order else len(order),
        known.index(method.name) if method.name in known else len(known),
        method.name,
    )


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if costs and len(known) == len(costs) else None


def _count_tools(records: Sequence[Record]) -> dict[str, int]:
    """Count calls by tool. Calls of tools that do not exist are counted together, whatever their names."""
    calls = [entry for record in records for entry in record["trace"]]
    real = {entry["tool"] for entry in calls if not entry.get("error")}
    return dict(Counter(entry["tool"] if entry["tool"] in real else OTHER_TOOLS for entry in calls).most_common())


def _compare(measure: Measure, first: MethodFigures, second: MethodFigures) -> Comparison | None:
    if first.figures[measure.name] is None or second.figures[measure.name] is None:
        return None
    pairs = [
        (measure.value(record), measure.value(second.records[key]))
        for key, record in first.records.items()
        if key in second.records
    ]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not known:
        return None
    difference, p = paired_test([one for one, _ in known], [other for _, other in known])
    return Comparison(measure, first.title, second.name, second.title, difference, p)


def _sort_questions(questions: Mapping[str, Record], plan: Plan) -> list[Record]:
    """Sort questions as in their file, if it still exists: records are in the order of completion."""
    try:
        order = {question.id: place for place, question in enumerate(load_questions(Path(plan.questions)))}
    except InputError:
        order = {}
    return sorted(questions.values(), key=lambda record: order.get(record["question_id"], len(order)))


def _read_settings(plan: Plan) -> Settings | None:
    try:
        return find_index(plan).settings()
    except ARAGError:  # it is gone, cannot be reached, or was built by another version: the records are enough
        return None


def _list_models(methods: Sequence[MethodFigures]) -> list[str]:
    calls = (call for method in methods for record in method.records.values() for call in record["model_calls"])
    return sorted({call["model"] for call in calls if call["model"]})


def _make_notes(methods: Sequence[MethodFigures], questions: int, asked: int, judged: bool) -> list[str]:
    notes = []
    counts = _count_by_method(methods, lambda method: len(method.records))
    if any(len(method.records) < asked for method in methods):
        told = f"not all of {asked:,} questions have been asked ({counts})"
        if len({len(method.records) for method in methods}) == 1:
            told = f"{len(methods[0].records):,} of {asked:,} questions have been asked"
        notes.append(
            f"The run is incomplete: {told}. Run it again to continue. Fast questions are recorded first, so these "
            "figures may be biased."
        )
    shared = set.intersection(*(set(method.records) for method in methods))
    if len(shared) < questions:
        notes.append(
            f"The methods were not asked the same questions ({counts}; {len(shared):,} in common), so their figures "
            "cover different questions. Paired comparisons use the questions that both methods have."
        )
    if failed := _count_by_method(methods, lambda method: method.failed):
        notes.append(
            f"Questions failed ({failed}). They count as wrong, except in the “answered” columns. Their cost counts "
            "only in the total."
        )
    if cut_off := _count_by_method(methods, _count_cut_off):
        notes.append(f"Answers were cut off at the model's output token limit ({cut_off}).")
    if unjudged := _count_by_method(methods, lambda method: method.unjudged):
        notes.append(f"Answers without a verdict ({unjudged}) are excluded from LLM-Acc, not counted as wrong.")
    if not judged:
        notes.append("There was no judge, so there is no LLM-Acc.")
    return notes


def _count_by_method(methods: Sequence[MethodFigures], count: Callable[[MethodFigures], int]) -> str:
    """Return the methods with their numbers, without zeros."""
    return ", ".join(f"{method.title} {number:,}" for method in methods if (number := count(method)))


def _count_cut_off(method: MethodFigures) -> int:
    """Count the answers whose last model call was cut off."""
    return sum(record["model_calls"][-1]["cut_off"] for record in method.answers if record["model_calls"])
