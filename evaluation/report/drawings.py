"""A report's drawings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from arag.evaluation.report.document import Drawing, Row, Table, cell, in_words, number
from arag.evaluation.report.figures import OTHER_TOOLS, Report, stop_reason
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, RETRIEVED, STEPS, figure
from arag.evaluation.report.paper import same_model
from arag.evaluation.report.plots import Point, Share, Stack, make_plane
from arag.evaluation.report.tables import BESIDE_THE_PAPER

_MAX_COLOURS = 6  # further tools are drawn as "other"


def drawings(report: Report, tables: Sequence[Table]) -> list[Drawing]:
    """Return a report's drawings.

    Args:
        report: The report.
        tables: The tables below them.
    """
    found = [_accuracy(report, tables), _plane(report), _tools(report), _stops(report)]
    return [drawing for drawing in found if drawing.rows or drawing.plot]


def _accuracy(report: Report, tables: Sequence[Table]) -> Drawing:
    backbone = _backbone(report)
    paper = report.paper.backbones[backbone] if report.paper else {}
    shares = []
    for method in report.methods:
        theirs = dict(zip((LLM_ACC, CONTAIN_ACC), paper.get(method.title, ()), strict=False))
        for measure in report.measures((LLM_ACC, CONTAIN_ACC)):
            found, is_headline, beside = method.figures[measure.name], measure is report.headline, theirs.get(measure)
            plot = Share(
                found,
                told=in_words(measure.title, found),
                kind="headline" if is_headline else "second",
                beside=None if beside is None else beside / 100,
                beside_told="" if beside is None else f"{beside:.1f} in the paper, with {backbone}",
            )
            shares.append((Row(method.title if is_headline else "", plot, cell(measure, found).text), plot))
    kinds = zip(report.measures((LLM_ACC, CONTAIN_ACC)), ("c1", "c2"), strict=False)
    legend = [(f"{measure.title} (ours)", f"dot {kind}") for measure, kind in kinds]
    caption = f"{report.over}, with 95% confidence intervals."
    if any(plot.beside is not None for _, plot in shares):
        legend.append((f"the paper, with {backbone}", "diamond"))
        place = next(n for n, table in enumerate(tables, start=1) if table.title.startswith(BESIDE_THE_PAPER))
        caption += Markup(' The two experiments differ: see “<a href="#table-{}">{}</a>”.').format(
            place, BESIDE_THE_PAPER
        )
    return Drawing("Accuracy by method", caption, [row for row, _ in shares], "shares", legend=legend)


def _backbone(report: Report) -> str:
    """Return the paper's model to compare with: ours if the paper has it, else its first."""
    models = list(report.paper.backbones) if report.paper else [""]
    return next((model for model in models for name in report.models if same_model(name, model)), models[0])


def _plane(report: Report) -> Drawing:
    points = []
    for method in report.methods:
        x, y = method.figures[RETRIEVED.name], method.figures[report.headline.name]
        if x is not None and y is not None:
            told = f"{method.title}: {x.mean:,.0f} tokens, {100 * y.mean:.1f} {report.headline.title}"
            points.append(Point(method.title, told, x, y))
    caption = (
        f"{report.headline.title} in percent against the tokens of retrieved text that entered the model's context per "
        "question. Top left is best. Lines are 95% confidence intervals."
    )
    plot = make_plane(points) if points else None
    return Drawing("Accuracy vs. retrieved tokens", caption, plot=plot, across="retrieved tokens per question")


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
        plot = Stack({kinds[tool]: mean for tool, mean in means.items()}, largest or 1.0, told)
        rows.append(Row(method.title, plot, f"{number('number', steps.mean)} steps"))
    caption = "Mean tool calls and steps per answered question."
    legend = [(Markup("<code>{}</code>").format(tool), kind) for tool, kind in kinds.items()]
    return Drawing("Tools and steps", caption, rows, "stacks", legend=legend)


def _stops(report: Report) -> Drawing:
    rows = []
    for method in report.methods:
        for place, (reason, count) in enumerate(method.stop_reasons.items()):
            found = figure(report.headline, [record for record in method.answers if stop_reason(record) == reason])
            detail = f"{reason.replace('_', ' ')}: {count:,}"
            plot = Share(found, in_words(report.headline.title, found))
            rows.append(Row("" if place else method.title, plot, cell(report.headline, found).text, detail))
    caption = (
        f"{report.headline.title} and number of answered questions by stop reason. “answered”: the model chose to "
        "answer; for all other reasons, the answer was forced."
    )
    return Drawing("Accuracy by stop reason", caption, rows, "shares")
