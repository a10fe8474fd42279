"""Scores of answers, as the paper defines them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.evaluation.scores import contains, exact_match, f1, normalise

WORDS = st.text(alphabet="abcdefgh éß.,'’ AT", max_size=30)

# --- one answer ---


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Beatles!", "beatles"),
        ("a.k.a. A", "aka"),  # punctuation goes before articles do
        ("Żuławski’s “film”", "żuławski’s “film”"),  # only ASCII punctuation is any
    ],
)
def test_texts_are_normalised_as_the_protocol_says(text, normal):
    assert normalise(text) == normal


CONTAINED = [
    # prediction, gold answers, contained, equal
    ("Boso the Elder [boso:0]", ["Boso the Elder"], True, False),
    ("Boso Elder.", ["the Boso, the Elder"], True, True),
    ("In 19980.", ["1998"], True, False),  # a substring, as in the paper
    ("Anything at all", ["The"], False, False),  # nothing is left of the gold answer: it is not found everywhere
    ("He was count Boso", ["Hugh", "Boso of Arles", "boso"], True, False),
]


@pytest.mark.parametrize(("prediction", "answers", "contained", "equal"), CONTAINED)
def test_contained_and_equal(prediction, answers, contained, equal):
    assert contains(prediction, answers) is contained
    assert exact_match(prediction, answers) is equal


@pytest.mark.parametrize(
    ("prediction", "answers", "score"),
    [
        ("Boso the Elder", ["Boso the Elder"], 1.0),
        ("Boso", ["Boso the Elder"], 2 / 3),  # 1 of 1 and 1 of 2 words
        ("Boso", ["Hugh", "Boso Elder", "Boso"], 1.0),
        ("", ["Boso"], 0.0),
        ("the", ["a"], 0.0),
    ],
)
def test_f1(prediction, answers, score):
    assert f1(prediction, answers) == pytest.approx(score)


@given(prediction=WORDS, answers=st.lists(WORDS, max_size=3))
def test_scores_agree_with_each_other(prediction, answers):
    score = f1(prediction, answers)
    assert 0 <= score <= 1
    if exact_match(prediction, answers):
        assert contains(prediction, answers)
        assert score == 1
    assert normalise(normalise(prediction)) == normalise(prediction)
    assert contains(prediction, answers) == any(contains(prediction, [answer]) for answer in answers)
    assert contains(f"{prediction} {prediction}", answers) >= contains(prediction, answers)
