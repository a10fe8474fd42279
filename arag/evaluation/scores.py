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
    without_punctuation = text.lower().translate(_PUNCTUATION)
    without_articles = _ARTICLES.sub(" ", without_punctuation)
    return " ".join(without_articles.split())


def contains(prediction: str, answers: Iterable[str]) -> bool:
    """Return whether a prediction contains one of the answers (Contain-Acc)."""
    prediction = normalise(prediction)
    return any(answer and answer in prediction for answer in map(normalise, answers))


def exact_match(prediction: str, answers: Iterable[str]) -> bool:
    """Return whether a prediction equals one of the answers; an empty prediction never does."""
    prediction = normalise(prediction)
    if not prediction:
        return False
    return prediction in map(normalise, answers)


def f1(prediction: str, answers: Iterable[str]) -> float:
    """Return the F1 score of a prediction's words against the best matching answer, 0 to 1."""
    predicted_words = normalise(prediction).split()
    best = 0.0
    for answer in answers:
        answer_words = normalise(answer).split()
        best = max(best, _f1_of_words(predicted_words, answer_words))
    return best


def _f1_of_words(predicted: Sequence[str], answer: Sequence[str]) -> float:
    in_both = Counter(predicted) & Counter(answer)
    common = sum(in_both.values())
    if not common:
        return 0.0
    return 2 * common / (len(predicted) + len(answer))


def share(gold: Collection[object], found: Collection[object]) -> float | None:
    """Return the share of the gold documents, or of their pages, that were found; None if there are none."""
    if not gold:
        return None
    wanted = set(gold)
    return len(wanted.intersection(found)) / len(wanted)
