"""Scores of answers as the paper defines them; intervals and tests against known values."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.evaluation.scores import contains, exact_match, f1, interval, normalise, paired_test, proportion, share

WORDS = st.text(alphabet="abcdefgh éß.,'’ AT", max_size=30)
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=25)

# --- one answer ---


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Beatles!", "beatles"),
        ("An apple a day", "apple day"),
        ("Theatre of the Absurd", "theatre of absurd"),  # "the" inside a word stays
        ("Panama, Anna, at", "panama anna at"),
        ("a.k.a. A", "aka"),  # punctuation goes before articles do
        ("the-end", "theend"),
        ("U.S.\tof\nA.", "us of"),
        ("Żuławski’s “film”", "żuławski’s “film”"),  # only ASCII punctuation is any
        ("ÉCOLE Straße", "école straße"),
        ("$1,234.50", "123450"),
        ("", ""),
        ("The", ""),
        ("?!", ""),
        ("東京、日本", "東京、日本"),
    ],
)
def test_texts_are_normalised_as_the_protocol_says(text, normal):
    assert normalise(text) == normal


CONTAINED = [
    # prediction, gold answers, contained, equal
    ("Boso the Elder [boso:0]", ["Boso the Elder"], True, False),
    ("Boso Elder.", ["the Boso, the Elder"], True, True),
    ("BOSO THE ELDER", ["boso the elder"], True, True),
    ("It was Hugh.", ["Boso"], False, False),
    ("In 1998.", ["1998"], True, False),
    ("In 19980.", ["1998"], True, False),  # a substring, as in the paper
    ("1,234 people", ["1234"], True, False),
    ("nineteen", ["19"], False, False),
    ("United States of America", ["U.S."], False, False),
    ("the US Army", ["U.S."], True, False),
    ("theory", ["the"], False, False),
    ("Anything at all", ["The"], False, False),  # nothing is left of the gold answer: it is not found everywhere
    ("", ["the"], False, False),
    ("", [""], False, False),
    ("", ["Boso"], False, False),
    ("Boso", [""], False, False),
    ("Boso", [], False, False),
    ("Boso", ["", "Boso"], True, True),
    ("He was count Boso", ["Hugh", "Boso of Arles", "boso"], True, False),
    ("Małgorzata Braunek", ["małgorzata braunek"], True, True),
    ("Malgorzata Braunek", ["Małgorzata Braunek"], False, False),
    ("It is the theatre", ["theatre"], True, False),
    ("yes", ["Yes."], True, True),
    ("eyesight", ["yes"], True, False),
    ("no: not known", ["no"], True, False),
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
        ("Boso Boso", ["Boso"], 2 / 3),  # a word counts as often as it is there
        ("count Boso of Arles", ["Boso"], 0.4),
        ("Hugh", ["Boso"], 0.0),
        ("Boso", ["Hugh", "Boso Elder", "Boso"], 1.0),
        ("", ["Boso"], 0.0),
        ("Boso", [], 0.0),
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


def test_the_share_of_gold_documents():
    assert share([], ["a"]) is None
    assert share(["a", "b", "a"], ["b", "c"]) == 0.5
    assert share(["a"], []) == 0


# --- many answers ---


def test_intervals_of_known_values():
    assert interval([]) is None
    one = interval([0.25])
    assert one is not None
    assert (one.mean, one.low, one.high, one.count) == (0.25, 0.25, 0.25, 1)
    # 60 of 200: the normal approximation is 0.3 ± 1.96 · sqrt(0.3 · 0.7 / 200).
    found = interval([1.0] * 60 + [0.0] * 140)
    assert found is not None
    half = 1.96 * math.sqrt(0.3 * 0.7 / 200)
    assert found.mean == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - half, abs=0.006)
    assert found.high == pytest.approx(0.3 + half, abs=0.006)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [
        (0, 52, 0.0, 0.0688),
        (52, 52, 0.9312, 1.0),
        (1, 1, 0.2065, 1.0),
        (8, 10, 0.4902, 0.9433),
        (60, 200, 0.2407, 0.3668),
    ],
)
def test_intervals_of_shares_are_wilson_s(right, count, low, high):
    found = proportion([1.0] * right + [0.0] * (count - right))
    assert found is not None
    assert (found.mean, found.count) == (right / count, count)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_intervals_of_shares_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    for right, count in [(0, 3), (1, 7), (33, 80), (80, 80)]:
        known = stats.binomtest(right, count).proportion_ci(method="wilson")
        found = proportion([1.0] * right + [0.0] * (count - right))
        assert found is not None
        assert (found.low, found.high) == pytest.approx((known.low, known.high))
    assert proportion([]) is None


def test_intervals_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(5).beta(0.5, 0.5, 120)
    found = interval(values.tolist())
    known = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=9_999, rng=np.random.default_rng(1))
    assert found is not None
    assert found.low == pytest.approx(known.confidence_interval.low, abs=0.004)
    assert found.high == pytest.approx(known.confidence_interval.high, abs=0.004)


def test_intervals_hold_the_truth_as_often_as_they_say():
    chance = random.Random(3)
    held = 0
    for _ in range(100):
        found = interval([float(chance.random() < 0.4) for _ in range(60)])
        assert found is not None
        held += found.low <= 0.4 <= found.high
    assert 88 <= held <= 100


def test_intervals_of_shares_hold_the_truth_near_the_ends_too():
    chance = random.Random(3)
    held = 0
    for _ in range(300):
        found = proportion([float(chance.random() < 0.03) for _ in range(40)])
        assert found is not None
        held += found.low <= 0.03 <= found.high
    assert held >= 270


@given(values=VALUES)
def test_intervals_surround_the_mean(values):
    found = interval(values)
    assert found is not None
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert min(values) - 1e-9 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= max(values) + 1e-9
    assert interval(values) == found


def exact_p(differences):
    sums = [abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in
            itertools.product([-1, 1], repeat=len(differences))]  # fmt: skip
    return sum(value >= abs(sum(differences)) - 1e-9 for value in sums) / len(sums)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]),  # p = 2/256
        ([0, 1, 0, 1, 0, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 1, 1, 0, 1, 0]),
        ([0.2, 0.4, 0.9, 0.1, 0.5, 0.3], [0.3, 0.9, 0.8, 0.6, 0.5, 0.9]),
        ([1], [0]),
    ],
)
def test_paired_tests_are_near_the_exact_ones(first, second):
    difference, p = paired_test(first, second)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    assert difference.mean == pytest.approx(sum(differences) / len(differences))
    assert p == pytest.approx(exact_p(differences), abs=0.015)


def test_paired_tests_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    chance = np.random.default_rng(7)
    first = (chance.random(80) < 0.5).astype(float)
    second = np.where(chance.random(80) < 0.25, 1.0, first)
    known = stats.permutation_test((second, first), lambda x, y: np.mean(x - y), permutation_type="samples",
                                   n_resamples=9_999, rng=chance)  # fmt: skip
    assert paired_test(first.tolist(), second.tolist())[1] == pytest.approx(known.pvalue, abs=0.01)


def test_paired_tests_find_differences_by_chance_only_as_often_as_they_say():
    chance = random.Random(11)
    found = 0
    for _ in range(100):
        first, second = ([float(chance.random() < 0.5) for _ in range(40)] for _ in range(2))
        found += paired_test(first, second)[1] < 0.05
    assert found <= 12


@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_paired_tests_do_not_depend_on_the_order_of_the_methods(pairs):
    first, second = map(list, zip(*pairs, strict=True))
    forth, back = paired_test(first, second), paired_test(second, first)
    assert forth == paired_test(first, second)
    assert 0 < forth[1] <= 1
    assert forth[1] == back[1]
    assert forth[0].mean == -back[0].mean
    assert forth[0].low <= forth[0].mean + 1e-9
    same, p = paired_test(first, first)
    assert (same.mean, same.low, same.high, p) == (0, 0, 0, 1)


@pytest.mark.parametrize(("first", "second"), [([], []), ([1], []), ([1, 0], [1])])
def test_paired_tests_need_the_same_questions(first, second):
    with pytest.raises(ValueError, match=f"{len(first)} and {len(second)} values"):
        paired_test(first, second)


def test_another_process_finds_the_same():
    code = (
        "from arag.evaluation.scores import interval, paired_test\n"
        "print(interval([0, 1, 1, 0.5]), paired_test([0, 0, 1, 1, 0], [1, 1, 1, 0, 1]))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == f"{interval([0, 1, 1, 0.5])} {paired_test([0, 0, 1, 1, 0], [1, 1, 1, 0, 1])}"


def test_large_experiments_take_little_time_and_memory():
    values = [float(n % 3 == 0) for n in range(5_000)]
    found = interval(values)
    assert found is not None
    assert found.high - found.low < 0.03
