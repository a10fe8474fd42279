"""RAGentA: the fusion, the filter and the claims on plain values, and the method with and without log probabilities."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import bm25s
import numpy as np
import pytest
from langchain_core.messages import AIMessage

from arag.evaluation.cache import CallCache
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
    rate_yes,
)
from arag.models.chat import load_model
from fakes import hash_vector
from http_server import Failure
from lab import Player, ask, assert_replays, make_lab
from openai_server import chat, serve
from role_model import UNUSABLE, Roles, answer_with, lines
from scripted_model import QUESTION

pytest_plugins = ["graph_fixtures", "model_fixtures"]

FUSION = json.loads((Path(__file__).parent / "parity" / "hybrid_fusion.json").read_text())["cases"]


# --- the rankings ---


def test_the_fusion_is_that_of_the_authors_code():
    fused = [[each for each, _ in fuse(c["dense"], c["sparse"], c["k"], excluded=c["excluded"])] for c in FUSION]
    assert fused == [case["expected"] for case in FUSION]


def test_excluded_documents_leave_after_scaling_and_equal_scores_are_nothing():
    dense, sparse = [("a", 0.9), ("b", 0.7), ("c", 0.5)], [("d", 8.0), ("b", 6.0), ("e", 4.0)]
    assert fuse(dense, sparse, 2, excluded=["a"], dense_weight=0.2) == [("d", 0.8), ("b", pytest.approx(0.5))]
    assert fuse([("a", 0.5), ("b", 0.5)], [("c", 1.0)], 3) == [("a", 0.0), ("b", 0.0), ("c", 0.0)]


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


def test_log_probabilities_of_yes_and_no():
    assert rate_yes([("Yes", -0.1), ("No", -2.4)]) == pytest.approx(2.3)
    both = rate_yes([("Yes", math.log(0.3)), (" yes", math.log(0.2)), ("YES.", math.log(0.1)), ("no", math.log(0.2))])
    assert both == pytest.approx(math.log(0.6 / 0.2))
    assert rate_yes([("Yes", -0.1), ("Perhaps", -7.0), ("The", -9.0)]) == pytest.approx(8.9)  # no No: the smallest
    assert rate_yes([("▁No", -0.1), ("Not", -3.0)]) == pytest.approx(-2.9)
    assert rate_yes([("Yes", 0.0), ("No", -9999.0)]) == 9999.0
    assert rate_yes([("The", -0.1), ("Nobody", -3.0)]) is None
    assert rate_yes([]) is None


def test_the_filter_keeps_what_is_not_far_below_the_mean_and_always_something():
    scores = [0.0, 4.0, 1.0, 3.0]  # mean 2, population deviation 1.58
    assert keep(scores, 0.0) == keep(scores, 0.5) == [1, 3]
    assert keep(scores, 0.7) == [1, 3, 2]
    assert keep(scores, 1.3) == [1, 3, 2, 0]
    assert keep([1.0, 3.0], 1.0) == [1, 0]  # on the limit
    assert keep([2.0, 3.0, 3.0, 2.0], 1.0) == [1, 2, 0, 3]  # in the order of the candidates where equal
    assert keep([None, 4.0, None, -4.0], 0.5) == [1, 0, 2]
    assert keep([None, None], 0.5) == [0, 1]
    assert keep([], 0.5) == []
    rng = random.Random(1)
    for _ in range(300):  # the mean of equal scores may be rounded up
        scores = [rng.choice([0.1, 0.3, rng.uniform(-9, 9)])] * rng.randint(1, 9)
        assert keep(scores, 0.0) == list(range(len(scores)))


# --- the claims ---

BOSO = "Boso [2]. Storms broke bridges [1]. Teutberga was his daughter [3][4]."


def test_claims_end_with_their_numbers():
    answer = "Boso the Elder [2]. Lothair married Teutberga [1, 3], his daughter.[2][4] That is all."
    texts = [claim.text for claim in find_claims(answer)]
    assert texts == ["Boso the Elder", "Lothair married Teutberga", "his daughter"]
    assert find_numbers(answer, 3) == [2, 1, 3]
    assert [claim.text for claim in find_claims("格雷万[1]。建于1746年，[2]。")] == ["格雷万", "建于1746年"]
    assert [claim.text for claim in find_claims("No numbers [here].")] == ["No numbers [here]."]
    assert find_claims(" ") == []
    assert ragenta._BEFORE_CITED.sub("", "Boso  [1] [2][3,\n4] the Elder\n [5].") == "Boso the Elder."


@pytest.mark.parametrize(
    ("answer", "dropped", "left"),
    [
        (BOSO, [2], "Boso [2]. Teutberga was his daughter [3][4]."),
        (BOSO, [1, 3, 9], "Storms broke bridges [1]."),
        (BOSO, [1, 2, 3], BOSO),  # never all
        ("Boso.", [1], "Boso."),
        ("格雷万[1]。建于1746年，[2]。", [1], "建于1746年，[2]。"),
    ],
)
def test_dropped_claims(answer, dropped, left):
    assert drop_claims(answer, dropped) == left


# --- the method ---

PREDICT, JUDGE, GRADE = "from one document", "Reply with one word", "You judge a document"
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
    JUDGE: AssertionError("it has no log probabilities"),
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

    def run(roles, method=None, **options):
        return answer_with(method or RAGentA(), small_index, roles, tmp_path, **options)

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


def test_candidates_are_those_of_both_rankings(small_index, run):
    _, session, _ = run(ROLES, top_k=2)
    chunks = [small_index.get(chunk_id) for chunk_id in small_index.chunk_ids()]
    vectors = {chunk.id: float(hash_vector(chunk.text) @ hash_vector(QUESTION)) for chunk in chunks}
    words = dict(zip(vectors, BM25([chunk.text for chunk in chunks]).scores(QUESTION), strict=True))

    def best(scores):
        return sorted(((each, score) for each, score in scores.items() if score), key=lambda item: -item[1])[:6]

    expected = fuse(best(vectors), best(words), 2)
    assert session.trace[0]["chunk_ids"] == [chunk_id for chunk_id, _ in expected]
    assert lines(session, "Candidates") == [f"[{chunk_id}] {score:.3f}" for chunk_id, score in expected]


def test_the_filter_keeps_the_best_documents_best_first(small_index, run):
    _, session, play = run(ROLES)
    assert lines(session, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    assert session.trace[0]["arguments"]["judged_by"] == "grades"
    (shown,) = play.of(ANSWER)
    first, second = (small_index.get(chunk_id).text for chunk_id in ("teutberga:0", "boso:0"))
    assert f"[1]\n{first}\n\n[2]\n{second}\n</documents-1>" in shown
    assert "storm" not in shown


@pytest.mark.parametrize(
    ("reply", "cited"),
    [
        (CITED, ["teutberga:0", "boso:0"]),
        ("Boso the Elder [2][7].", ["boso:0"]),
        ("Boso the Elder.", ["teutberga:0", "boso:0"]),
        ("", []),
    ],
)
def test_the_documents_of_the_numbers_are_cited(run, reply, cited):
    answer, _, _ = run({**ROLES, ANSWER: reply})
    assert list(answer.cited) == cited


def test_a_question_that_was_answered_is_answered_again_without_a_call(small_index, tmp_path):
    assert_replays(RAGentA(), make_lab(small_index, Roles(FURTHER), tmp_path, top_k=3), QUESTION)


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


def test_numbers_are_never_used_twice(run):
    _, session, play = run(FURTHER, top_k=2)
    numbers = [re.findall(r"^\[(\d+)\]$", shown, re.MULTILINE) for shown in play.of(ANSWER) + play.of(FOLLOW_UP)]
    flat = [int(number) for each in numbers for number in each]
    assert flat == list(range(1, len(flat) + 1))
    noted = [line for note in session.notes for line in note["lines"] if re.match(r"\d+: \[", line)]
    assert [int(line.partition(":")[0]) for line in noted] == flat


@pytest.mark.parametrize(("limit", "searches", "reason"), [(3, 4, "max_steps"), (5, 6, "answered")])
def test_follow_ups_are_capped(run, limit, searches, reason):
    many = {**OPEN, "follow_ups": [*[f"What of storm {number}?" for number in range(5)], " ", "What of storm 0?"]}
    roles = {**ROLES, CHECK: many, FOLLOW_UP: {"answer": "", "found": False}}
    answer, session, _ = run(roles, RAGentA(follow_ups=limit), top_k=1)
    assert (len(session.trace), answer.stop_reason) == (searches, reason)


def test_a_follow_up_without_documents_asks_nobody(run):
    roles = {**ROLES, GRADE: {"grade": 5}, CHECK: OPEN}  # all chunks of the index are kept
    _, session, play = run(roles, top_k=7)
    assert FOLLOW_UP not in play.made
    assert [record["chunk_ids"] for record in session.trace[1:]] == [[], []]


# --- log probabilities and grades ---


def tokens(*listed):
    """Return a reply with the log probabilities of its first token, as OpenAI's class returns it."""
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in listed]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}], "refusal": None}}
    return AIMessage(listed[0][0], response_metadata=metadata)


class RatingPlayer(Player):
    """A model whose class takes log probabilities."""

    logprobs: bool | None = None
    top_logprobs: int | None = None


@pytest.fixture(name="rate")
def _rate(small_index, tmp_path):
    """A function that asks the method the question, of a model that judges in some way."""

    def rate(judge):
        play = Roles({**ROLES, JUDGE: judge})
        lab = make_lab(small_index, play, tmp_path)
        lab.model = RatingPlayer(play=play, cache=CallCache(lab.store))
        _, session = ask(RAGentA(), lab, QUESTION)
        return session, play, lab

    return rate


def likely(messages):
    """Return a judgement whose log probabilities are as far apart as the grades say."""
    return tokens(("Yes", GRADES(messages) - 10.0), ("No", -GRADES(messages)))


def test_log_probabilities(rate):
    session, play, lab = rate(likely)
    assert (play.made.count(JUDGE), play.made.count(GRADE)) == (1 + 5, 0)  # the first is a trial
    judged = [options for options in lab.model.options if options]
    assert judged == 6 * [{"logprobs": True, "top_logprobs": 20}]
    assert session.trace[0]["arguments"]["judged_by"] == "log probabilities"
    assert lines(session, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    judged_by = "Answers from each, judged by log probabilities"
    assert any(line.startswith("[teutberga:0] (8.00) It says") for line in lines(session, judged_by))
    assert_replays(RAGentA(), lab, QUESTION)


class RefusedError(Exception):
    def __init__(self, status_code):
        super().__init__("log probabilities are refused")
        self.status_code = status_code


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(RefusedError(403), id="refuses"),
        pytest.param("Yes", id="ignores"),
        pytest.param(tokens(("<think>", -0.1), ("The", -3.0)), id="thinks first"),
    ],
)
def test_a_model_without_log_probabilities_grades_all_documents(rate, reply):
    session, play, _ = rate(reply)
    assert (play.made.count(JUDGE), play.made.count(GRADE)) == (1, 5)
    assert session.trace[0]["arguments"]["judged_by"] == "grades"
    assert lines(session, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]


def test_another_error_of_the_trial_is_an_error(rate):
    with pytest.raises(RefusedError):
        rate(RefusedError(500))


@pytest.mark.parametrize(("grade", "score"), [(7.5, "(7.50)"), (11, "(10.00)")])
def test_a_grade_out_of_range_is_not_asked_for_again(run, grade, score):
    _, session, play = run({**ROLES, GRADE: {"grade": grade}})
    assert play.made.count(GRADE) == 5
    assert all(score in line for line in lines(session, "Answers from each"))


def test_a_document_without_a_judgement_counts_as_average(rate):
    yes = tokens(("Yes", -0.1), ("No", -3.0))
    unclear, no = tokens(("The", -0.1)), tokens(("No", -0.1), ("Yes", -3.0))
    session, _, _ = rate(by_document({"Teutberga was": unclear, "storm": no}, yes))
    kept = [line.partition(" ")[2] for line in lines(session, "Kept")]
    assert kept[-1] == "[teutberga:0]"
    assert not any("annals" in line for line in kept)


def test_log_probabilities_over_http(small_index, tmp_path, no_settings, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    listed = [{"token": "Yes", "logprob": -0.2, "bytes": None}, {"token": "No", "logprob": -1.7, "bytes": None}]
    rated = chat("Yes")
    rated["choices"][0]["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}], "refusal": None}
    replies = {"one word": rated, '{"grade"': chat('{"grade": 5}'), '{"components"': chat(json.dumps(DONE))}

    def respond(_, request):
        system = request["messages"][0]["content"]
        return next((reply for text, reply in replies.items() if text in system), chat("Boso [1]."))

    with serve(respond) as server:
        lab = make_lab(small_index, Roles({}), tmp_path, top_k=2)
        lab.model = load_model(f"openai:gpt-4o-mini@{server.url}", max_retries=0)
        first = ask(RAGentA(), lab, QUESTION)
        replies["one word"] = Failure(400)
        second = ask(RAGentA(), lab, QUESTION)
    for (answer, session), scale, score in ((first, "log probabilities", "(1.50)"), (second, "grades", "(5.00)")):
        assert answer.text == "Boso."
        assert session.trace[0]["arguments"]["judged_by"] == scale
        assert all(score in line for line in lines(session, "Answers from each"))


# --- unusable replies ---


@UNUSABLE
def test_unusable_predictions_and_grades_say_nothing_against_a_document(run, unusable):
    _, session, play = run({**ROLES, PREDICT: unusable, GRADE: unusable})
    assert (play.made.count(PREDICT), play.made.count(GRADE)) == (15, 15)
    assert all("<answer-1>\nNone.\n</answer-1>" in shown for shown in play.of(GRADE))
    assert len(lines(session, "Kept")) == 5


@UNUSABLE
@pytest.mark.parametrize(
    ("role", "calls", "text"),
    [
        (ANSWER, 3, "Integrated."),  # what it lacks may be found by follow-up questions
        (CHECK, 3, "Boso the Elder. Storms broke bridges. Teutberga was his daughter."),
        (FOLLOW_UP, 6, "Boso the Elder. Teutberga was his daughter."),
        (INTEGRATE, 6, "Boso the Elder. Teutberga was his daughter."),
    ],
)
def test_an_unusable_reply_leaves_the_rest_as_it_is(run, unusable, role, calls, text):
    roles = {**FURTHER, INTEGRATE: "Integrated.", FOLLOW_UP: {"answer": "In Arles [4].", "found": True}, role: unusable}
    answer, _, play = run(roles, top_k=3)
    assert (play.made.count(role), answer.text) == (calls, text)
