"""The measures of each question, and their means over questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from arag.evaluation.records import Record
from arag.evaluation.scores import Interval, interval, proportion

Unit: TypeAlias = Literal["yes or no", "share", "number", "tokens", "seconds", "dollars"]
TokenCount: TypeAlias = Literal["input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of each question; a method's figure is the mean over its questions.

    Attributes:
        name: Its name in CSV files.
        title: Its name for readers.
        unit: Its unit. "yes or no" is 1 or 0 and has a Wilson interval; all others have bootstrap intervals.
        value: Its value for a question; None if unknown.
        of_failed: Whether failed questions count as wrong; otherwise only answered ones count.
        with_gaps: Whether questions without a known value are skipped. Otherwise one such question makes the method's
            figure unknown: the cost of some questions says little about the cost of all.
        judged: Whether it needs a judge.
    """

    name: str
    title: str
    unit: Unit
    value: Callable[[Record], float | None]
    of_failed: bool = False
    with_gaps: bool = False
    judged: bool = False


def verdict(record: Record) -> float | None:
    """Return 1 for correct, 0 for wrong or failed, None for unjudged."""
    if record["error"] is not None:
        return 0.0
    judgement = record["judgement"]
    return None if judgement is None or judgement["correct"] is None else float(judgement["correct"])


def _tokens(name: TokenCount) -> Measure:
    def value(record: Record) -> float | None:
        calls = record["model_calls"]
        # Every call takes tokens: without any, the provider reported none.
        reported = all(call["input_tokens"] or call["output_tokens"] for call in calls)
        return float(sum(call[name] for call in calls)) if reported else None

    return Measure(name, name.replace("_", " ").capitalize(), "tokens", value)


LLM_ACC = Measure("llm_acc", "LLM-Acc", "yes or no", verdict, of_failed=True, with_gaps=True, judged=True)
CONTAIN_ACC = Measure("contain_acc", "Contain-Acc", "yes or no", lambda record: record["contain"], of_failed=True)
F1 = Measure("f1_aliases", "F1 with aliases", "share", lambda record: record["f1"], of_failed=True)
RETRIEVED = Measure("retrieved_tokens", "Retrieved tokens", "tokens", lambda record: record["retrieved_tokens"])
STEPS = Measure("steps", "Steps", "number", lambda record: record["steps"])

ACCURACY = (
    LLM_ACC,
    Measure("llm_acc_answered", "LLM-Acc (answered)", "yes or no", verdict, with_gaps=True, judged=True),
    CONTAIN_ACC,
    Measure("contain_acc_answered", "Contain-Acc (answered)", "yes or no", CONTAIN_ACC.value),
    Measure(
        "contain_acc_aliases",
        "Contain-Acc with aliases",
        "yes or no",
        lambda record: record["contain_with_aliases"],
        of_failed=True,
    ),
    Measure(
        "exact_match_aliases",
        "Exact match with aliases",
        "yes or no",
        lambda record: record["exact_match"],
        of_failed=True,
    ),
    F1,
)
SECONDS = Measure("seconds", "Seconds", "seconds", lambda record: record["seconds"])
EFFORT = (
    Measure("gold_seen", "Gold seen", "share", lambda record: record["gold_seen"], with_gaps=True),
    Measure("gold_read", "Gold read", "share", lambda record: record["gold_read"], with_gaps=True),
    Measure("gold_cited", "Gold cited", "share", lambda record: record.get("gold_cited"), with_gaps=True),
    RETRIEVED,
    STEPS,
    Measure("model_calls", "Model calls", "number", lambda record: len(record["model_calls"])),
    SECONDS,
)
COST = Measure("cost", "Cost", "dollars", lambda record: record["cost"])
COSTS = (*map(_tokens, get_args(TokenCount)), COST)


def figure(measure: Measure, records: Sequence[Record]) -> Interval | None:
    """Return a measure's mean over questions; None if unknown."""
    answered = [measure.value(record) for record in records if record["error"] is None]
    if answered and all(value is None for value in answered):  # then failed questions do not count either
        return None
    failed = [measure.value(record) for record in records if record["error"] is not None and measure.of_failed]
    values = [*answered, *failed]
    known = [value for value in values if value is not None]
    if len(known) < len(values) and not measure.with_gaps:
        return None
    return proportion(known) if measure.unit == "yes or no" else interval(known)
