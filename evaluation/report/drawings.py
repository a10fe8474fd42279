"""A report's drawings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from arag.evaluation.report import plots
from arag.evaluation.report.document import Drawing, Row, Table, cell, in_words, number
from arag.evaluation.report.figures import OTHER_TOOLS, MethodFigures, Report, stop_reason
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, RETRIEVED, STEPS, figure
from arag.evaluation.report.paper import same_model

_MAX_COLOURS = 6  # tools beyond them are drawn as others


def drawings(report: Report, tables: Sequence[Table]) -> list[Drawing]:
    """Return a report's drawings.

    Args:
        report: The report.
        tables: The tables that stand below them.
    """
    found = [_accuracy(report, tables), _plane(report), _tools(report), _stops(report)]
    return [drawing for drawing in found if drawing.rows or drawing.plot]


def _accuracy(report: Report, tables: Sequence[Table]) -> Drawing:
    measures = report.measures((LLM_ACC, CONTAIN_ACC))
    backbone = _backbone(report)
    rows, is_beside = [], False
    for method in report.methods:
        for kind, measure in zip(("headline", "second"), measures, strict=False):
            found = method.figures[measure.name]
            dots = [] if found is None else [plots.Dot(found, kind, in_words(measure.title, found))]
            beside = list(_paper_values(report, method, backbone, of_judge=measure is LLM_ACC))
            is_beside = is_beside or bool(beside)
            name = method.title if kind == "headline" else ""
            rows.append(Row(name, plots.shares(dots, beside), cell(measure, found).text))
    legend = [(f"{measure.title}, here", f"dot {kind}") for measure, kind in zip(measures, ("c1", "c2"), strict=False)]
    caption = f"{report.over}, with 95% confidence intervals."
    if is_beside:
        legend.append((f"the same in the paper, with {backbone}", "diamond"))
        place = next(n for n, table in enumerate(tables, start=1) if table.title.startswith("Beside the paper"))
        caption += Markup(
            ' Here and there are not the same experiment: see “<a href="#table-{}">Beside the paper</a>”.'
        ).format(place)
    return Drawing("Accuracy by method", caption, rows, "shares", legend=legend)


def _backbone(report: Report) -> str:
    """Return the paper's model to stand beside ours: the same one, else its first."""
    models = list(report.paper.backbones) if report.paper else [""]
    return next((model for model in models for name in report.models if same_model(name, model)), models[0])


def _paper_values(
    report: Report, method: MethodFigures, backbone: str, *, of_judge: bool
) -> Iterator[tuple[float, str]]:
    if report.paper is not None:
        value = report.paper.backbones[backbone].get(method.title, (None, None))[0 if of_judge else 1]
        if value is not None:
            yield value / 100, f"{value:.1f} in the paper, with {backbone}"


def _plane(report: Report) -> Drawing:
    points = []
    for method in report.methods:
        x, y = method.figures[RETRIEVED.name], method.figures[report.headline.name]
        if x is not None and y is not None:
            points.append(plots.Point(method.title, x, y))
    caption = (
        f"{report.headline.title} in percent, up; tokens of retrieved text that entered the model's context, a "
        "question, across. Up and to the left is better. Lines are 95% confidence intervals."
    )
    plot = plots.plane(points, "tokens", report.headline.title) if points else None
    return Drawing("Accuracy against retrieved tokens", caption, plot=plot, across="retrieved tokens, a question")


def _tools(report: Report) -> Drawing:
    calls = Counter[str]()
    for method in report.methods:
        calls.update(method.tools)
    named = [tool for tool, _ in calls.most_common() if tool != OTHER_TOOLS]
    kinds = {tool: f"c{number}" for number, tool in enumerate(named[:_MAX_COLOURS], 1)}
    kinds |= {OTHER_TOOLS: "c0"} if len(calls) > len(kinds) else {}
    largest = max((sum(m.tools.values()) / m.answered for m in report.methods if m.answered), default=0.0)
    rows = []
    for method in report.methods:
        steps = method.figures[STEPS.name]
        if steps is None:
            continue
        means = dict.fromkeys(kinds, 0.0)
        for tool, count in method.tools.items():
            means[tool if tool in means else OTHER_TOOLS] += count / method.answered
        told = ", ".join(f"{tool} {mean:.1f}" for tool, mean in means.items() if mean) or "no tools"
        plot = plots.stack(list(means.values()), list(kinds.values()), largest or 1.0, told)
        rows.append(Row(method.title, plot, f"{number('number', steps.mean)} steps"))
    caption = "Calls of each tool an answered question; behind them the model's steps."
    legend = [(Markup("<code>{}</code>").format(tool), kind) for tool, kind in kinds.items()]
    return Drawing("Tools and steps", caption, rows, "stacks", legend=legend)


def _stops(report: Report) -> Drawing:
    rows = []
    for method in report.methods:
        for place, (reason, count) in enumerate(method.stop_reasons.items()):
            found = figure(report.headline, [record for record in method.answers if stop_reason(record) == reason])
            dots = [] if found is None else [plots.Dot(found, "headline", in_words(report.headline.title, found))]
            detail = f"{reason.replace('_', ' ')}: {count:,}"
            value = cell(report.headline, found).text
            rows.append(Row("" if place else method.title, plots.shares(dots), value, detail))
    caption = (
        f"{report.headline.title} of the answered questions that ended for each reason, and how many they are. "
        "“answered”: the model chose to answer; for all other reasons an answer was forced."
    )
    return Drawing("Accuracy by stop reason", caption, rows, "shares")
