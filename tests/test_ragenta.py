"""RAGentA: the fusion, the filter and the claims on plain values, and what each call is shown."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import bm25s
import numpy as np
import pytest

from arag.evaluation.methods import ragenta
from arag.evaluation.methods.ragenta import (
    BM25,
    RAGentA,
    drop_claims,
    find_claims,
    find_numbers,
    find_words,
    fuse,
    keep,
)
from role_model import EMPTY, answer_with, lines
from scripted import QUESTION

FUSION = json.loads((Path(__file__).parent / "parity" / "hybrid_fusion.json").read_text())["cases"]


# --- the rankings ---


def test_the_fusion_is_that_of_the_authors_code():
    for case in FUSION:
        fused = fuse(dict(case["dense"]), dict(case["sparse"]))
        assert [each for each in fused if each not in case["excluded"]][: case["k"]] == case["expected"]


WORDS = [f"w{number}" for number in range(40)]


def test_bm25_is_that_of_bm25s():
    rng = random.Random(1)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 60))) for _ in range(150)]
    reference = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    reference.index([text.split() for text in texts], show_progress=False)
    ranked = BM25([text.upper() for text in texts])
    for _ in range(100):
        query = rng.choices(WORDS, k=rng.randint(1, 6))
        np.testing.assert_allclose(ranked.scores(", ".join(query)), reference.get_scores(query), atol=1e-6)


def test_bm25_takes_pairs_of_east_asian_characters_and_no_words_at_all():
    texts = ["格雷万灯塔建于1746年", "艾达是一名画家", "The lamp of 塔, iPhone手", "?"]
    assert find_words(texts[0]) == ["1746", "年", "格雷", "雷万", "万灯", "灯塔", "塔建", "建于"]
    assert find_words(texts[2]) == ["the", "lamp", "of", "塔", "iphone", "手"]
    assert [score > 0 for score in BM25(texts).scores("艾达是谁？")] == [False, True, False, False]
    assert [score > 0 for score in BM25(texts).scores("灯塔 LAMP")] == [True, False, True, False]
    assert BM25([]).scores("word").tolist() == []


# --- the filter ---


def test_the_filter_keeps_what_is_not_far_below_the_mean_and_always_something():
    assert keep([0.0, 4.0, 1.0, 3.0]) == [1, 3]  # mean 2, population deviation 1.58
    assert keep([2.0, 4.0, 3.0, 3.0, 2.7]) == [1, 2, 3, 4]  # in the order of the candidates where equal
    assert keep([None, 4.0, None, -4.0]) == [1, 0, 2]
    assert keep([None, None]) == [0, 1]
    assert keep([0.1] * 3) == [0, 1, 2]  # of which the mean may be rounded up
    assert keep([]) == []


# --- the claims ---

BOSO = "Boso [2]. Storms broke bridges [1]. Teutberga was his daughter [3][4]."


def texts_of(answer):
    return [claim for claim, _ in find_claims(answer)]


def test_claims_end_with_their_numbers():
    answer = "Boso the Elder [2]. Lothair married Teutberga [1, 3], his daughter.[2][4] That is all."
    assert texts_of(answer) == ["Boso the Elder", "Lothair married Teutberga", "his daughter"]
    assert find_numbers(answer, 3) == [2, 1, 3]
    assert texts_of("格雷万[1]。建于1746年，[2]。") == ["格雷万", "建于1746年"]
    assert texts_of("No numbers [here].") == ["No numbers [here]."]
    assert texts_of(" ") == []
    assert ragenta._BEFORE_CITED.sub("", "Boso  [1] [2][3,\n4] the Elder\n [5].") == "Boso the Elder."


def test_dropped_claims():
    assert drop_claims(BOSO, [2]) == "Boso [2]. Teutberga was his daughter [3][4]."
    assert drop_claims(BOSO, [1, 3, 9]) == "Storms broke bridges [1]."
    assert drop_claims(BOSO, [1, 2, 3]) == BOSO  # never all
    assert drop_claims("Boso.", [1]) == "Boso."
    assert drop_claims("格雷万[1]。建于1746年，[2]。", [1]) == "建于1746年，[2]。"


# --- the method ---

PREDICT, GRADE = "from one document", "You judge a document"
ANSWER, CHECK, FOLLOW_UP, INTEGRATE = (
    "from numbered documents: first",
    "check whether an answer",
    "from numbered documents, in one",
    "work a finding",
)
DONE = {"components": [{"question": QUESTION, "status": "full"}], "irrelevant_claims": [], "follow_ups": []}
MORE = ["Where was Boso a count?", "When did Teutberga die?"]
OPEN = {
    "components": [{"question": "the wife", "status": "full"}, {"question": "the father", "status": "partial"}],
    "irrelevant_claims": [2],
    "follow_ups": MORE,
}
CITED = "Boso the Elder [1]. Storms broke bridges [2]. Teutberga was his daughter [1, 2]."


def by_document(grades, other):
    """Return a reply by the document that is shown: the first of the words that occurs in it."""

    def reply(messages):
        document = messages[-1].text.partition("<document")[2].partition("</document")[0]
        return next((value for word, value in grades.items() if word in document), other)

    return reply


GRADES = by_document({"Teutberga was": 9, "count of Arles": 8}, 1)
ROLES = {
    PREDICT: lambda messages: f"It says {len(messages[-1].text)} characters.",
    GRADE: lambda messages: {"grade": GRADES(messages)},
    ANSWER: CITED,
    CHECK: DONE,
}
FURTHER = {
    **ROLES,
    CHECK: [OPEN],
    FOLLOW_UP: [{"answer": "In Arles [4].", "found": True}, {"answer": "", "found": False}],
    INTEGRATE: ["Boso the Elder, a count of Arles [4]. Teutberga was his daughter [1]."],
}


@pytest.fixture(name="run")
def _run(small_index, tmp_path):
    """A function that asks the method the question, with some roles."""

    def run(roles, **options):
        return answer_with(RAGentA(), small_index, roles, tmp_path, **options)

    return run


def test_twelve_calls_of_which_those_before_the_answer_see_one_document_each(small_index, run):
    answer, session, play = run(ROLES)
    assert sorted(play.made) == sorted([*5 * [PREDICT], *5 * [GRADE], ANSWER, CHECK])
    assert play.made[-2:] == [ANSWER, CHECK]
    assert answer.text == "Boso the Elder. Storms broke bridges. Teutberga was his daughter."
    assert (answer.stop_reason, len(session.calls)) == ("answered", 12)
    texts = [small_index.get(chunk_id).text for chunk_id in session.trace[0]["chunk_ids"]]
    for role in (PREDICT, GRADE):
        assert [sum(text in shown for text in texts) for shown in play.of(role)] == 5 * [1]
        assert all(QUESTION in shown for shown in play.of(role))
    assert all(re.search(r"It says \d+ characters", shown) for shown in play.of(GRADE))


def test_the_filter_keeps_the_best_documents_best_first(small_index, run):
    _, session, play = run(ROLES)
    assert lines(session, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    (shown,) = play.of(ANSWER)
    first, second = (small_index.get(chunk_id).text for chunk_id in ("teutberga:0", "boso:0"))
    assert f"[1]\n{first}\n\n[2]\n{second}\n</documents-1>" in shown
    assert "storm" not in shown


def test_follow_ups(run):
    answer, session, play = run(FURTHER, top_k=3)
    assert play.made[-5:] == [ANSWER, CHECK, FOLLOW_UP, INTEGRATE, FOLLOW_UP]
    assert len(session.calls) == 3 + 3 + 2 + 2 + 1  # a question that finds nothing is one call
    first, second, third = session.trace
    assert [record["arguments"]["query"] for record in (second, third)] == MORE
    assert not {"teutberga:0", "boso:0"} & {*second["chunk_ids"], *third["chunk_ids"]}
    assert not {*second["chunk_ids"]} & {*third["chunk_ids"]}
    assert {*first["chunk_ids"]} & {*second["chunk_ids"]}  # what the filter dropped may be found again
    assert answer.text == "Boso the Elder, a count of Arles. Teutberga was his daughter."
    assert answer.cited == [second["chunk_ids"][1], "teutberga:0"]
    (shown,) = play.of(CHECK)
    assert "1. Boso the Elder\n2. Storms broke bridges\n3. Teutberga was his daughter" in shown
    (shown,) = play.of(INTEGRATE)  # the draft without its irrelevant claim, the question, and what was found
    assert "Boso the Elder [1]. Teutberga was his daughter [1, 2]." in shown
    assert MORE[0] in shown
    assert "In Arles [4]." in shown


@pytest.mark.parametrize(("count", "searches", "reason"), [(5, 4, "max_steps"), (3, 4, "answered")])
def test_follow_ups_are_capped(run, count, searches, reason):
    many = {**OPEN, "follow_ups": [*[f"What of storm {number}?" for number in range(count)], " ", "What of storm 0?"]}
    roles = {**ROLES, CHECK: many, FOLLOW_UP: {"answer": "", "found": False}}
    answer, session, _ = run(roles, top_k=1)
    assert (len(session.trace), answer.stop_reason) == (searches, reason)


# --- unusable replies ---


def test_unusable_predictions_and_grades_say_nothing_against_a_document(run):
    _, session, play = run({**ROLES, PREDICT: EMPTY, GRADE: EMPTY})
    assert (play.made.count(PREDICT), play.made.count(GRADE)) == (15, 15)
    assert all("<answer-1>\nNone.\n</answer-1>" in shown for shown in play.of(GRADE))
    assert len(lines(session, "Kept")) == 5


@pytest.mark.parametrize(
    ("role", "calls", "text"),
    [
        (ANSWER, 3, "Integrated."),  # what it lacks may be found by follow-up questions
        (CHECK, 3, "Boso the Elder. Storms broke bridges. Teutberga was his daughter."),
        (FOLLOW_UP, 6, "Boso the Elder. Teutberga was his daughter."),
        (INTEGRATE, 6, "Boso the Elder. Teutberga was his daughter."),
    ],
)
def test_an_unusable_reply_leaves_the_rest_as_it_is(run, role, calls, text):
    roles = {**FURTHER, INTEGRATE: "Integrated.", FOLLOW_UP: {"answer": "In Arles [4].", "found": True}, role: EMPTY}
    answer, _, play = run(roles, top_k=3)
    assert (play.made.count(role), answer.text) == (calls, text)
