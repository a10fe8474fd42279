"""The figures of a report: measures, their means with 95% confidence intervals, and comparisons of two methods."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from arag.models.prices import format_dollars

NONE = "–"
INTERVALS = "Means, with 95% confidence intervals: Wilson's for yes or no, else of the bootstrap."


class Measure(NamedTuple):
    """A measure of each question; a method's figure is the mean over its questions.

    Attributes:
        name: Its column in the frame.
        title: Its name for readers.
        unit: Its unit; "yes or no" is 1 or 0, and has a Wilson interval.
        skips_gaps: Whether questions with an unknown value are skipped. Otherwise one such question makes the method's
            figure unknown: the cost of some questions says little about the cost of all.
    """

    name: str
    title: str
    unit: Literal["yes or no", "share", "number", "tokens", "dollars"]
    skips_gaps: bool = False


class Interval(NamedTuple):
    """A mean over questions with its 95% confidence interval; NaN if it is unknown."""

    mean: float
    low: float
    high: float


LLM_ACC = Measure("correct", "LLM-Acc", "yes or no", skips_gaps=True)
CONTAIN_ACC = Measure("contain", "Contain-Acc", "yes or no")
RULE_ACC = Measure("right", "Rule-Acc", "yes or no", skips_gaps=True)
RETRIEVED = Measure("retrieved_tokens", "Retrieved tokens", "tokens")
EVIDENCE = Measure("evidence_tokens", "Evidence tokens", "tokens")
CALLS = Measure("model_calls", "Model calls", "number")
COST = Measure("cost", "Cost", "dollars")
STEPS = Measure("steps", "Steps", "number")
SECONDS = Measure("seconds", "Seconds", "number")
ACCURACY = (
    LLM_ACC,
    RULE_ACC,
    CONTAIN_ACC,
    Measure("contain_with_aliases", "Contain-Acc with aliases", "yes or no"),
    Measure("exact_match", "Exact match with aliases", "yes or no"),
    Measure("f1", "F1 with aliases", "share"),
)
LISTS_F1 = Measure("list_f1", "F1, %", "share", skips_gaps=True)
LISTS = (
    Measure("list_precision", "Precision, %", "share", skips_gaps=True),
    Measure("list_recall", "Recall, %", "share", skips_gaps=True),
    LISTS_F1,
    Measure("judged_precision", "Precision by the judge, %", "share", skips_gaps=True),
    Measure("judged_recall", "Recall by the judge, %", "share", skips_gaps=True),
)
EFFORT = (
    Measure("gold_seen", "Gold seen, %", "share", skips_gaps=True),
    Measure("gold_read", "Gold read, %", "share", skips_gaps=True),
    Measure("gold_cited", "Gold cited, %", "share", skips_gaps=True),
    RETRIEVED,
    EVIDENCE,
    STEPS,
    CALLS,
    SECONDS,
)
INPUT_TOKENS = Measure("input_tokens", "Input tokens", "tokens")
COSTS = (
    INPUT_TOKENS,
    Measure("cached_tokens", "Cached tokens", "tokens"),
    Measure("output_tokens", "Output tokens", "tokens"),
    Measure("reasoning_tokens", "Reasoning tokens", "tokens"),
    Measure("unusable", "Unusable replies, %", "share", skips_gaps=True),
    COST,
)

# More samples make intervals and p-values depend less on the seed, and reports slower.
_RESAMPLES = 10_000
_PERMUTATIONS = 9_999  # SciPy adds the observed one
_SEED = 0  # the same records give the same report


def interval(measure: Measure, rows: pd.DataFrame) -> Interval:
    """Return the mean of a measure over questions, with its interval.

    Args:
        measure: The measure.
        rows: The questions. A failed question counts as wrong, and has no other figures.

    Returns:
        The mean and its interval.
    """
    counts_failed = measure in ACCURACY or measure in LISTS
    answered = rows if counts_failed else rows[rows["error"].isna()]
    values = answered[measure.name].astype(float)
    known = values.dropna()
    has_gaps = len(known) < len(values)
    if known.empty or (has_gaps and not measure.skips_gaps):
        return Interval(np.nan, np.nan, np.nan)
    if measure.unit == "yes or no":
        low, high = stats.binomtest(int(known.sum()), len(known)).proportion_ci(method="wilson")
    else:
        low, high = _bootstrap(known)
    return Interval(known.mean(), low, high)


def paired(first: pd.Series, second: pd.Series) -> tuple[int, Interval, float]:
    """Compare a measure of two methods, by question, on the questions that both have.

    Args:
        first: The measure of the first method, by question.
        second: The measure of the second method, by question.

    Returns:
        The number of questions; the mean difference, second minus first; and the two-sided p-value of a paired
        permutation test.
    """
    difference = (second - first).dropna()
    questions = len(difference)
    mean = difference.mean() if questions else 0.0
    if questions < 2 or not difference.any():
        return questions, Interval(mean, mean, mean), 1.0
    test = stats.permutation_test(
        [difference],
        np.mean,
        permutation_type="samples",  # of a single sample, SciPy permutes the signs
        n_resamples=_PERMUTATIONS,
        rng=_SEED,
    )
    low, high = _bootstrap(difference)
    return questions, Interval(mean, low, high), float(test.pvalue)


def _bootstrap(values: pd.Series) -> tuple[float, float]:
    """Return a 95% confidence interval of the mean."""
    first = values.iloc[0]
    if (values == first).all():
        return first, first
    sample = stats.bootstrap(
        [values],
        np.mean,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=_SEED,
    )
    return float(sample.confidence_interval.low), float(sample.confidence_interval.high)


def show(measure: Measure, figure: Interval) -> str:
    """Return a mean as text; shares in percent. An interval with any width is added."""
    if np.isnan(figure.mean):
        return NONE
    mean = _show_value(measure, figure.mean)
    if figure.low == figure.high:
        return mean
    return f"{mean} [{_show_value(measure, figure.low)}, {_show_value(measure, figure.high)}]"


def _show_value(measure: Measure, value: float) -> str:
    match measure.unit:
        case "dollars":
            return format_dollars(value)
        case "tokens":
            return f"{value:,.0f}"
        case "number":
            return f"{value:,.2f}"
        case "yes or no" | "share":
            return f"{100 * value:.1f}"


def headline(frame: pd.DataFrame) -> Measure:
    """Return the measure of correct answers: LLM-Acc if there is a judge, else Rule-Acc if some ask for no texts."""
    for measure in (LLM_ACC, RULE_ACC):
        if is_known(measure, frame):
            return measure
    return CONTAIN_ACC


def is_known(measure: Measure, frame: pd.DataFrame) -> bool:
    """Return whether any record has a value for a measure."""
    return bool(frame[measure.name].notna().any())
