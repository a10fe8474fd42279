"""Scores of single answers, and statistics over them (paper, section 4.1)."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

RESAMPLES = 10_000
_SEED = 0
_Z = 1.959963984540054  # between -_Z and _Z lie 95% of a normal distribution


def normalise(text: str) -> str:
    """Normalise a text for comparison: lower case, no ASCII punctuation or articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def contains(prediction: str, answers: Iterable[str]) -> bool:
    """Return whether a prediction contains one of the answers (Contain-Acc)."""
    prediction = normalise(prediction)
    return any(answer in prediction for answer in map(normalise, answers) if answer)


def exact_match(prediction: str, answers: Iterable[str]) -> bool:
    """Return whether a prediction equals one of the answers; an empty prediction never does."""
    prediction = normalise(prediction)
    return bool(prediction) and prediction in map(normalise, answers)


def f1(prediction: str, answers: Iterable[str]) -> float:
    """Return the F1 score of a prediction's words against the best matching answer, 0 to 1."""
    return max((_f1(normalise(prediction).split(), normalise(answer).split()) for answer in answers), default=0.0)


def _f1(prediction: Sequence[str], answer: Sequence[str]) -> float:
    common = sum((Counter(prediction) & Counter(answer)).values())
    return 2 * common / (len(prediction) + len(answer)) if common else 0.0


def share(gold: Collection[object], found: Collection[object]) -> float | None:
    """Return the share of the gold documents, or of their pages, that were found; None if there are none."""
    return len(set(gold) & set(found)) / len(set(gold)) if gold else None


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95% confidence interval.

    Attributes:
        mean: The mean.
        low: The interval's lower end.
        high: Its upper end.
        count: The number of values.
    """

    mean: float
    low: float
    high: float
    count: int


def proportion(values: Sequence[float]) -> Interval | None:
    """Return the mean of values that are 0 or 1, with the Wilson score interval; None without values.

    Unlike a bootstrap interval it is meaningful if all values are the same: for 0 of 52 it extends to 0.07.

    Args:
        values: One value per question, each 0 or 1.
    """
    if not values:
        return None
    count = len(values)
    mean = sum(values) / count
    middle = mean + _Z**2 / (2 * count)
    half = _Z * math.sqrt(mean * (1 - mean) / count + _Z**2 / (4 * count**2))
    low, high = ((middle + sign * half) / (1 + _Z**2 / count) for sign in (-1, 1))
    return Interval(mean, min(max(low, 0.0), mean), max(min(high, 1.0), mean), count)


def interval(values: Sequence[float]) -> Interval | None:
    """Return the mean of values with a percentile bootstrap interval; None without values.

    Use it for any values and for differences; use `proportion` for values that are 0 or 1.

    Args:
        values: One value per question.
    """
    if not values:
        return None
    array = np.asarray(values, dtype=np.float64)
    low, high = np.percentile(_resampled_means(array), [2.5, 97.5])
    return Interval(float(array.mean()), float(low), float(high), len(array))


def paired_test(first: Sequence[float], second: Sequence[float]) -> tuple[Interval, float]:
    """Compare two methods on the same questions.

    Args:
        first: One method's values, one per question.
        second: The other method's values, for the same questions in the same order.

    Returns:
        The mean difference, second minus first, with its bootstrap interval; and the two-sided p-value of a paired
        permutation test: how often a difference at least as large occurs when each question's two values are
        swapped at random.

    Raises:
        ValueError: The numbers of values differ, or there are none.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} values: both methods need one value per question")
    differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    found = interval(differences.tolist())
    assert found is not None  # noqa: S101 - there are values
    random = np.random.default_rng(_SEED)
    extreme = 0
    for signs in _batches(random, len(differences)):
        extreme += int((np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9).sum())
    return found, (extreme + 1) / (RESAMPLES + 1)


def _batches(random: np.random.Generator, width: int, size: int = 1_000) -> Iterable[NDArray[np.float64]]:
    for _ in range(RESAMPLES // size):
        yield random.choice([-1.0, 1.0], size=(size, width))


def _resampled_means(values: NDArray[np.float64], size: int = 1_000) -> NDArray[np.float64]:
    random = np.random.default_rng(_SEED)
    batches = (random.integers(len(values), size=(size, len(values))) for _ in range(RESAMPLES // size))
    return np.concatenate([values[batch].mean(axis=1) for batch in batches])
