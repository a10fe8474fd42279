"""Scores of single answers (paper, section 4.1)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


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
