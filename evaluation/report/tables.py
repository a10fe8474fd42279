"""The contents of a run's report: title, facts, tables, and the rows of its CSV files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

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
    make_table,
    number,
    rounded,
)
from arag.evaluation.report.figures import Comparison, MethodFigures, Report, list_simplifications
from arag.evaluation.report.measures import ACCURACY, CONTAIN_ACC, COSTS, EFFORT, LLM_ACC, Measure
from arag.evaluation.report.paper import PaperResults
from arag.models.usage import total
from arag.pages.templates import count

BESIDE_THE_PAPER = "Comparison with the paper"

_ALIASES = (
    "Contain-Acc accepts only the gold answer, as in the paper; “with aliases” also accepts the other answers that the "
    "data lists."
)
_MARKS = {True: "yes", False: "no", None: "in part"}
_QUESTION_COLUMNS = ("prediction", "contain", "correct", "steps", "retrieved_tokens", "cost", "stop_reason", "error")


def document(report: Report) -> Document:
    """Return a report's title, facts, notes and tables."""
    return Document(_title(report), _facts(report), report.notes, tables=tables(report))


def tables(report: Report) -> list[Table]:
    """Return a report's tables."""
    found = [_accuracy(report), _effort(report), _costs(report)]
    if any(method.preparation for method in report.methods):
        found.append(_index_time(report))
    found.append(_stop_reasons(report))
    if report.comparisons:
        found.append(_comparisons(report))
    if report.paper is not None:
        found.append(_beside_the_paper(report, report.paper))
    found.append(_methods(report))
    if any(method.facts and method.facts["settings"] for method in report.methods):
        found.append(_settings(report))
    return found


def _accuracy(report: Report) -> Table:
    unjudged = any(method.unjudged for method in report.methods)
    measures = report.measures(ACCURACY)
    rows = []
    for method in report.methods:
        counts = [len(method.records), method.answered, method.failed, *([method.unjudged] if unjudged else [])]
        rows.append([method.title, *counts, *_cells(measures, method)])
    counted = ["Questions", "Answered", "Failed", *(["Unjudged"] if unjudged else [])]
    notes = [INTERVALS, f"{report.over}, except in the “answered” columns.", _ALIASES]
    return make_table("Accuracy", ["Method", *counted, *(measure.title for measure in measures)], rows, notes)


def _effort(report: Report) -> Table:
    note = (
        "Answered questions only. Gold seen: the share of gold documents, or of gold pages where the data has them, of "
        "which the model was shown a snippet or chunk. Gold read: the share of which it was shown a chunk in full. "
        "Gold cited: the share of which its answer cites a chunk."
    )
    rows = [[method.title, *_cells(EFFORT, method)] for method in report.methods]
    return make_table(
        "Retrieval and effort per question", ["Method", *(measure.title for measure in EFFORT)], rows, [note]
    )


def _costs(report: Report) -> Table:
    with_index = any(method.preparation for method in report.methods)
    rows = []
    for method in report.methods:
        of_index = NONE if method.preparation is None else number("dollars", method.index_cost)
        judge = number("dollars", method.judge_cost) if method.judged else NONE
        in_all = [number("dollars", method.cost)]
        in_all += [of_index, number("dollars", method.cost_with_index)] if with_index else []
        rows.append([method.title, *_cells(COSTS, method), *in_all, *([judge] * report.judged)])
    columns = ["Method", *(measure.title for measure in COSTS), "Total cost"]
    columns += ["Index-time cost", "Cost with index"] if with_index else []
    note = (
        "Tokens as reported by the providers; input includes cached, output includes reasoning. Cost in US dollars, at "
        "the providers' public prices or your own. Totals cover all attempts at all questions, including failed ones. "
        "Unknown: a provider reported no tokens, or a model has no price."
    )
    if with_index:
        note += " Cost with index: of all questions and the method's index-time work together."
    columns += ["Total judge cost"] * report.judged
    return make_table("Tokens and cost per answered question", columns, rows, [note])


def _index_time(report: Report) -> Table:
    rows = []
    for method in report.methods:
        if (done := method.preparation) is None:
            continue
        usage, reused = method.index_usage, done.get("reused") or total([])
        rows.append(
            [
                method.title,
                number("seconds", done["seconds"]),
                usage["model_calls"],
                usage["input_tokens"],
                usage["output_tokens"],
                number("dollars", method.index_cost),
                reused["model_calls"],
                number("dollars", done["cost"]),
            ]
        )
    columns = ["Method", "Seconds here", "Model calls", "Input tokens", "Output tokens", "Cost"]
    columns += ["Calls reused", "Paid here"]
    note = (
        "What the work costs in all, also where it was done for another run. Seconds here: of the command that "
        "finished it, without what was done before. Methods that are not listed only need the index."
    )
    return make_table("Index-time work", columns, rows, [note])


def _stop_reasons(report: Report) -> Table:
    reasons = list(dict.fromkeys(reason for method in report.methods for reason in method.stop_reasons))
    rows = [[method.title, *(method.stop_reasons.get(reason, 0) for reason in reasons)] for method in report.methods]
    notes = ["Answered questions by stop reason; all reasons except “answered” are forced answers."]
    return make_table("Stop reasons", ["Method", *(reason.replace("_", " ") for reason in reasons)], rows, notes)


def _comparisons(report: Report) -> Table:
    rows = [
        [
            comparison.title,
            comparison.measure.title,
            found.count,
            Cell(f"{100 * found.mean:+.1f}", f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"),
            "< 0.001" if comparison.p < 0.001 else f"{comparison.p:.3f}",
        ]
        for comparison in report.comparisons
        for found in [comparison.difference]
    ]
    note = (
        "In percentage points, on the questions that both methods have, with a 95% bootstrap interval. p: two-sided "
        "paired permutation test, not corrected for multiple comparisons."
    )
    columns = ["Method", "Measure", "Questions", "Difference", "p"]
    return make_table(f"Paired comparison with {report.comparisons[0].baseline}", columns, rows, [note])


def _beside_the_paper(report: Report, paper: PaperResults) -> Table:
    ours: dict[str, list[MethodFigures]] = {}  # methods of modules may be named like the paper's
    for method in report.methods:
        ours.setdefault(method.title, []).append(method)
    measures = report.measures((LLM_ACC, CONTAIN_ACC))
    with_contain = any(row[1] is not None for results in paper.backbones.values() for row in results.values())
    names = ["LLM-Acc", "Contain-Acc"] if with_contain else ["LLM-Acc"]
    rows = []
    for title in dict.fromkeys([*paper.methods(), *ours]):
        there = [
            NONE if value is None else f"{value:.1f}"
            for results in paper.backbones.values()
            for value in results.get(title, (None, None))[: len(names)]
        ]
        here = [_cells(measures, method) for method in ours.get(title, [])] or [[Cell(NONE)] * len(measures)]
        rows += [[title, *cells, *there] for cells in here]
    columns = ["Method", *(f"{measure.title} (ours)" for measure in measures)]
    columns += [f"{name} (paper, {model})" for model in paper.backbones for name in names]
    return make_table(
        f"{BESIDE_THE_PAPER}: {paper.dataset}", columns, rows, [f"{paper.citation}.", *report.differences]
    )


def _methods(report: Report) -> Table:
    rows = []
    for figures in report.methods:
        facts = figures.facts
        if facts is None:
            rows.append([figures.title, figures.name, UNKNOWN, *[NONE] * 3])
        else:
            marks = [_MARKS[facts["autonomous"]], _MARKS[facts["iterative"]], _MARKS[facts["interleaved"]]]
            rows.append([figures.title, figures.name, facts["description"], *marks])
    columns = ["Method", "Name", "What it does", "Autonomous strategy", "Iterative", "Interleaved tool use"]
    notes = ["The last three columns are those of the paper's Table 4. The marks are our reading of each method."]
    notes += [*list_simplifications(report.methods), *_inactive(report)]
    return make_table("Methods", columns, rows, notes)


def _inactive(report: Report) -> list[str]:
    """Return in how many questions activation went nowhere: LinearRAG's thresholds are for one embedder."""
    found = []
    for method in report.methods:
        first: list[Mapping[str, Any]] = [call for record in method.answers for call in record["trace"][:1]]
        known = [call["arguments"]["activated"] for call in first if "activated" in (call.get("arguments") or {})]
        if known:
            found.append(
                f"{method.title}: in {known.count(0):,} of {len(known):,} questions, nothing beyond the question's "
                "entities was activated."
            )
    return found


def _settings(report: Report) -> Table:
    rows = []
    for method in report.methods:
        settings = method.facts["settings"] if method.facts else {}
        given = report.plan.options.settings.get(method.name, {})
        own = {name: value for name, value in settings.items() if name in given}
        others = {name: value for name, value in settings.items() if name not in given}
        if settings:
            rows.append([method.title, list_settings(own), list_settings(others)])
    note = "Methods that are not listed have no settings of their own."
    return make_table("Methods' own settings", ["Method", "Set for this run", "Others"], rows, [note])


def list_settings(settings: Mapping[str, Any]) -> str:
    """Return a method's own settings as one text."""
    values = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
    return ", ".join(f"{name} {value}" for name, value in values.items()) or NONE


def _cells(measures: Iterable[Measure], method: MethodFigures) -> list[Cell]:
    return [cell(measure, method.figures[measure.name]) for measure in measures]


def _title(report: Report) -> str:
    asked = report.paper.dataset if report.paper else "Results"
    wanted = max(report.plan.asked, len(report.questions))
    done = f"{len(report.questions):,} of " if len(report.questions) < wanted else ""
    return f"{asked}: {count(len(report.methods), 'method')}, {done}{count(wanted, 'question')}"


def _facts(report: Report) -> list[tuple[str, str]]:
    """Return the settings of a run."""
    plan, settings = report.plan, report.settings
    index = f"{count(settings.documents, 'document')}, {count(settings.chunks, 'chunk')}" if settings else "missing"
    options = ", ".join(f"{name} {value}" for name, value in plan.model_options.items())
    return [
        ("Model", ", ".join(report.models) or plan.model),
        *([("Model options", options)] if options else []),
        ("Judge", plan.judge or "none"),
        ("Embedder", settings.embedder if settings else UNKNOWN),
        ("Index", index),
        *([("Scope", json.dumps(plan.scope))] if plan.scope else []),
        ("Top k", f"{plan.options.top_k:,}"),
        ("Presentation", plan.options.presentation),
        ("Max steps", f"{plan.options.max_steps:,}"),
        ("Max context tokens", f"{plan.options.max_context_tokens:,}"),
    ]


# --- CSV ---


def csv_text(report: Report) -> str:
    """Return one row per method as CSV: shares from 0 to 1, unknown figures empty."""
    return to_csv([_row(report, method) for method in report.methods])


def questions_csv(report: Report) -> str:
    """Return one row per question as CSV, with columns for each method; correct answers are 1, others 0."""
    rows = []
    for question in report.questions:
        row: dict[str, object] = {name: question[name] for name in ("question_id", "question", "answer")}
        for method in report.methods:
            record = method.records.get(question["question_id"])
            values = {} if record is None else _question_values(record, judged=method.judged)
            row |= {f"{method.name}_{name}": values.get(name) for name in _QUESTION_COLUMNS}
        rows.append(row)
    return to_csv(rows)


def _question_values(record: Record, *, judged: bool) -> dict[str, object]:
    correct = LLM_ACC.value(record) if judged else None
    return {**record, "contain": int(record["contain"]), "correct": None if correct is None else int(correct)}


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
    row |= _index_values(report, method)
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
    # Columns that not all methods have come last.
    row |= {f"calls_{tool}": count for tool, count in method.tools.items()}
    return row | {f"stop_{reason}": count for reason, count in method.stop_reasons.items()}


def _index_values(report: Report, method: MethodFigures) -> dict[str, object]:
    """Return the figures of a method's index-time work, if any method of the report has some."""
    if not any(each.preparation for each in report.methods):
        return {}
    return {
        "index_seconds": rounded(method.preparation["seconds"]) if method.preparation else 0,
        **{f"index_{name}": method.index_usage[name] for name in ("model_calls", "input_tokens", "output_tokens")},
        "index_cost": method.index_cost,
        "cost_with_index": method.cost_with_index,
    }


def _difference(comparison: Comparison) -> dict[str, object]:
    name = f"{comparison.measure.name}_difference"
    found = comparison.difference
    return {**csv_figure(name, found), f"{name}_p": rounded(comparison.p), f"{name}_questions": found.count}
