"""What a report of a run shows: its title and facts, its tables, and the rows of its CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arag.evaluation.files import to_csv
from arag.evaluation.records import Record
from arag.evaluation.report.document import (
    INTERVALS,
    NONE,
    UNKNOWN,
    Cell,
    Document,
    Table,
    cell,
    csv_figure,
    number,
    rounded,
)
from arag.evaluation.report.figures import Comparison, MethodFigures, Report
from arag.evaluation.report.measures import ACCURACY, CONTAIN_ACC, COST, COSTS, EFFORT, LLM_ACC, Measure
from arag.evaluation.scores import Interval
from arag.pages.templates import count

_ALIASES = (
    "Contain-Acc takes the gold answer alone, as in the paper; “with aliases”: the gold answer or another name of it "
    "that the data gives."
)


def document(report: Report) -> Document:
    """Return a report's title, facts, notes and tables."""
    return Document(_title(report), _facts(report), report.notes, tables=tables(report))


def tables(report: Report) -> list[Table]:
    """Return a report's tables."""
    found = [_accuracy(report), _figures("Retrieval and effort, a question", EFFORT, report), _costs(report)]
    if any(method.preparation for method in report.methods):
        found.append(_index_time(report))
    found.append(_stop_reasons(report))
    if report.comparisons:
        found.append(_comparisons(report))
    if report.paper is not None:
        found.append(_beside_the_paper(report))
    return [*found, _methods(report)]


def _accuracy(report: Report) -> Table:
    unjudged = any(method.unjudged for method in report.methods)
    columns = ["Method", "Questions", "Answered", "Failed", *(["Unjudged"] if unjudged else [])]
    measures = report.measures(ACCURACY)
    rows = []
    for method in report.methods:
        counts = [len(method.records), method.answered, method.failed, *([method.unjudged] if unjudged else [])]
        rows.append([Cell(method.title), *(Cell(f"{each:,}") for each in counts), *_cells(measures, method)])
    notes = [INTERVALS, f"{report.over}, unless the column says “answered”.", _ALIASES]
    return Table("Accuracy", [*columns, *(measure.title for measure in measures)], rows, notes)


def _figures(title: str, measures: Sequence[Measure], report: Report) -> Table:
    rows = [[Cell(method.title), *_cells(measures, method)] for method in report.methods]
    note = (
        "Of answered questions. Gold seen and read: the share of the documents with the answer that the model was "
        "shown anything of, and that it was shown in full, where the data names them."
    )
    return Table(title, ["Method", *(measure.title for measure in measures)], rows, [note])


def _costs(report: Report) -> Table:
    columns = ["Method", *(measure.title for measure in COSTS), "Cost in all", *(["Judge in all"] * report.judged)]
    rows = []
    for method in report.methods:
        judge = Cell(number("dollars", method.judge_cost) if method.judged else NONE)
        in_all = [Cell(number("dollars", method.cost)), *([judge] * report.judged)]
        rows.append([Cell(method.title), *_cells(COSTS, method), *in_all])
    note = (
        "Tokens as the providers report them; input includes cached, output includes reasoning. Cost in US dollars by "
        "the providers' public prices or your own; in all: of all attempts at all questions, failed ones included. "
        "Unknown: a provider reported no tokens, or a model has no price."
    )
    return Table("Tokens and cost, an answered question", columns, rows, [note])


def _index_time(report: Report) -> Table:
    rows = [
        [
            Cell(method.title),
            Cell(number("seconds", done["seconds"])),
            *(Cell(f"{done['usage'][name]:,}") for name in ("model_calls", "input_tokens", "output_tokens")),
            Cell(number("dollars", done["cost"])),
        ]
        for method in report.methods
        if (done := method.preparation)
    ]
    columns = ["Method", "Seconds", "Model calls", "Input tokens", "Output tokens", "Cost"]
    return Table("Work at index time", columns, rows, ["Methods that are not here need nothing but the index."])


def _stop_reasons(report: Report) -> Table:
    reasons = list(dict.fromkeys(reason for method in report.methods for reason in method.stop_reasons))
    rows = [
        [Cell(method.title), *(Cell(f"{method.stop_reasons.get(reason, 0):,}") for reason in reasons)]
        for method in report.methods
    ]
    notes = ["Answered questions by why the search ended; all but “answered” are forced answers."]
    return Table("Stop reasons", ["Method", *(reason.replace("_", " ") for reason in reasons)], rows, notes)


def _comparisons(report: Report) -> Table:
    rows = [
        [
            Cell(comparison.title),
            Cell(comparison.measure.title),
            Cell(f"{comparison.difference.count:,}"),
            Cell(f"{100 * comparison.difference.mean:+.1f}", _signed(comparison.difference)),
            Cell("< 0.001" if comparison.p < 0.001 else f"{comparison.p:.3f}"),
        ]
        for comparison in report.comparisons
    ]
    note = (
        "In percentage points, on the questions that both methods have, with a 95% bootstrap interval; p of a "
        f"two-sided paired permutation test, not adjusted for there being {len(rows)} of them."
    )
    columns = ["Method", "Measure", "Questions", "Difference", "p"]
    return Table(f"Pair by pair with {report.comparisons[0].baseline}", columns, rows, [note])


def _beside_the_paper(report: Report) -> Table:
    paper = report.paper
    assert paper is not None  # noqa: S101 - where it is called
    ours = {method.title: method for method in report.methods}
    measures = report.measures((LLM_ACC, CONTAIN_ACC))
    with_contain = any(row[1] is not None for results in paper.backbones.values() for row in results.values())
    columns = ["Method", *(f"{measure.title}, here" for measure in measures)]
    names = ["LLM-Acc", "Contain-Acc"] if with_contain else ["LLM-Acc"]
    columns += [f"{name}, {model}" for model in paper.backbones for name in names]
    rows = []
    for title in dict.fromkeys([*paper.methods(), *ours]):
        here = _cells(measures, ours[title]) if title in ours else [Cell(NONE)] * len(measures)
        there = [
            Cell(NONE if value is None else f"{value:.1f}")
            for results in paper.backbones.values()
            for value in results.get(title, (None, None))[: len(names)]
        ]
        rows.append([Cell(title), *here, *there])
    return Table(f"Beside the paper: {paper.dataset}", columns, rows, [f"{paper.citation}.", *report.differences])


def _methods(report: Report) -> Table:
    rows = []
    for figures in report.methods:
        method = figures.method
        marks = (method.autonomous, method.iterative, method.interleaved) if method else (None, None, None)
        told = method.description if method else "not known to this installation"
        rows.append([Cell(figures.title), Cell(figures.name), Cell(told), *map(_mark, marks)])
    columns = ["Method", "Name", "What it does", "Autonomous strategy", "Iterative", "Interleaved tool use"]
    return Table("Methods", columns, rows)


def _mark(value: bool | None) -> Cell:
    return Cell(NONE if value is None else "yes" if value else "no")


def _cells(measures: Iterable[Measure], method: MethodFigures) -> list[Cell]:
    return [cell(measure, method.figures[measure.name]) for measure in measures]


def _signed(found: Interval) -> str:
    return f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _title(report: Report) -> str:
    """Return a report's title."""
    asked = report.paper.dataset if report.paper else "Results"
    wanted = max(report.plan.asked, len(report.questions))
    done = f"{len(report.questions):,} of " if len(report.questions) < wanted else ""
    return f"{asked}: {count(len(report.methods), 'method')}, {done}{count(wanted, 'question')}"


def _facts(report: Report) -> list[tuple[str, str]]:
    """Return what a run is made of."""
    plan, manifest = report.plan, report.manifest
    index = f"{count(manifest.documents, 'document')}, {count(manifest.chunks, 'chunk')}" if manifest else "gone since"
    options = ", ".join(f"{name} {value}" for name, value in plan.model_options.items())
    return [
        ("Model", ", ".join(report.models) or plan.model),
        *([("Model options", options)] if options else []),
        ("Judge", plan.judge or "none"),
        ("Embedder", manifest.embedder if manifest else UNKNOWN),
        ("Index", index),
        ("Chunks of a search", f"{plan.options.top_k:,}"),
        ("Most steps", f"{plan.options.max_steps:,}"),
        ("Most tokens of context", f"{plan.options.max_context_tokens:,}"),
    ]


# --- CSV ---


def csv_text(report: Report) -> str:
    """Return a row a method as CSV: shares from 0 to 1, nothing where a figure is not known."""
    return to_csv([_row(report, method) for method in report.methods])


def questions_csv(report: Report) -> str:
    """Return a row a question as CSV, with columns of each method; right answers are 1, wrong and failed ones 0."""
    return to_csv([_question_row(report, question["question_id"]) for question in report.questions])


def _question_row(report: Report, question: str) -> dict[str, object]:
    asked = {method.name: method.records.get(question) for method in report.methods}
    known = next(record for record in asked.values() if record is not None)
    row: dict[str, object] = {
        "question_id": question,
        "question": known["question"],
        "answer": known["answer"],
    }
    for method in report.methods:
        values = _question_values(asked[method.name], method.judged)
        row |= {f"{method.name}_{name}": value for name, value in values.items()}
    return row


def _question_values(record: Record | None, judged: bool) -> dict[str, object]:
    correct = LLM_ACC.value(record) if record is not None and judged else None
    return {
        "prediction": record and record["prediction"],
        "contain": record and int(record["contain"]),
        "correct": None if correct is None else int(correct),
        "steps": record and record["steps"],
        "retrieved_tokens": record and record["retrieved_tokens"],
        "cost": record and COST.value(record),
        "stop_reason": record and record["stop_reason"],
        "error": record and record["error"],
    }


def _row(report: Report, method: MethodFigures) -> dict[str, object]:
    row: dict[str, object] = {
        "method": method.name,
        "title": method.title,
        "questions": len(method.records),
        "answered": method.answered,
        "failed": method.failed,
    }
    if report.judged:
        row["unjudged"] = method.unjudged
    for measure in report.measures((*ACCURACY, *EFFORT, *COSTS)):
        row |= csv_figure(measure.name, method.figures[measure.name])
    row["cost_in_all"] = method.cost
    if report.judged:
        row["judge_cost_in_all"] = method.judge_cost if method.judged else None
    row["baseline"] = report.baseline
    row |= dict.fromkeys(column for each in report.comparisons for column in _difference(each))
    for comparison in report.comparisons:
        if comparison.name == method.name:
            row |= _difference(comparison)
    for model, results in (report.paper.backbones if report.paper else {}).items():
        llm, contain = results.get(method.title, (None, None))
        row[f"paper_{model}_llm_acc"] = rounded(llm and llm / 100)
        row[f"paper_{model}_contain_acc"] = rounded(contain and contain / 100)
    # What methods differ in comes last.
    row |= {f"calls_{tool}": count for tool, count in method.tools.items()}
    return row | {f"stop_{reason}": count for reason, count in method.stop_reasons.items()}


def _difference(comparison: Comparison) -> dict[str, object]:
    name = f"{comparison.measure.name}_difference"
    found = comparison.difference
    return {**csv_figure(name, found), f"{name}_p": rounded(comparison.p), f"{name}_questions": found.count}
