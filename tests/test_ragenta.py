"""RAGentA: the fusion, the filter and the claims on plain values, and its graph with and without log probabilities."""

from __future__ import annotations

import doctest
import json
import math
import random
import re
from pathlib import Path

import bm25s
import numpy as np
import pytest
from langchain_core.messages import AIMessage

from arag.errors import InputError
from arag.evaluation.methods import Options, faithful_rag, method, ragenta
from arag.evaluation.methods.baselines import bm25
from arag.evaluation.methods.baselines.bm25 import BM25
from arag.evaluation.methods.ragenta import drop_claims, find_claims, find_numbers, fuse, keep, rate_yes
from arag.models.chat import load_model
from arag.models.extractive import ExtractiveModel
from fakes import hash_vector
from http_server import Failure
from openai_server import chat, serve
from role_model import UNUSABLE, RoleModel, answer_with, asked, check_method
from scripted_model import QUESTION

pytest_plugins = ["graph_fixtures", "model_fixtures"]

FUSION = json.loads((Path(__file__).parent / "parity" / "hybrid_fusion.json").read_text())["cases"]


@pytest.mark.parametrize("module", [ragenta, faithful_rag, bm25])
def test_examples_run(module):
    ran = doctest.testmod(module)
    assert ran.attempted
    assert not ran.failed


# --- the rankings ---


def test_fusion_is_that_of_the_reference():
    found = [[each for each, _ in fuse(c["dense"], c["sparse"], c["k"], excluded=c["excluded"])] for c in FUSION]
    assert found == [case["expected"] for case in FUSION]


def test_fusion_by_hand():
    dense, sparse = [("a", 0.9), ("b", 0.7), ("c", 0.5)], [("d", 8.0), ("b", 6.0), ("e", 4.0)]
    assert fuse(dense, sparse, 9) == [
        ("a", pytest.approx(0.65)),
        ("b", pytest.approx(0.65 * 0.5 + 0.35 * 0.5)),
        ("d", pytest.approx(0.35)),
        ("c", 0.0),
        ("e", 0.0),
    ]
    assert fuse(dense, sparse, 2, excluded=["a"], dense_weight=0.2) == [("d", 0.8), ("b", pytest.approx(0.5))]
    assert fuse([("a", 0.5), ("b", 0.5)], [("c", 1.0)], 3) == [("a", 0.0), ("b", 0.0), ("c", 0.0)]  # equal scores
    assert fuse([], [], 3) == []


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


def test_bm25_by_its_formula():
    texts = ["Boso the Elder", "The elder; the ELDER!", "storms", ""]
    cut = [re.findall(r"\w+", text.lower()) for text in texts]
    mean = sum(map(len, cut)) / len(cut)

    def score(words, query):
        total = 0.0
        for word in query:
            holding = sum(word in other for other in cut)
            idf = math.log(1 + (len(cut) - holding + 0.5) / (holding + 0.5))
            count = words.count(word)
            total += idf * count / (count + 1.2 * (1 - 0.75 + 0.75 * len(words) / mean))
        return total

    for query in ("elder", "the elder", "the the", "storms Boso", "nothing", "?"):
        expected = [score(words, re.findall(r"\w+", query.lower())) if words else 0.0 for words in cut]
        assert BM25(texts).scores(query) == pytest.approx(expected)


@pytest.mark.parametrize("texts", [[], ["", "?"]])
def test_bm25_without_words(texts):
    assert BM25(texts).scores("word").tolist() == [0.0] * len(texts)


def test_bm25_takes_pairs_of_east_asian_characters():
    texts = ["格雷万灯塔建于1746年", "艾达是一名画家", "The lamp of 塔, iPhone手"]
    assert bm25._words(texts[0]) == ["1746", "年", "格雷", "雷万", "万灯", "灯塔", "塔建", "建于"]
    assert bm25._words(texts[2]) == ["the", "lamp", "of", "塔", "iphone", "手"]
    assert [score > 0 for score in BM25(texts).scores("艾达是谁？")] == [False, True, False]
    assert [score > 0 for score in BM25(texts).scores("灯塔 LAMP")] == [True, False, True]


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


def test_the_filter_on_scores_by_hand():
    scores = [0.0, 4.0, 1.0, 3.0]  # mean 2, population deviation 1.58
    assert keep(scores, 0.0) == keep(scores, 0.5) == [1, 3]
    assert keep(scores, 0.7) == [1, 3, 2]
    assert keep(scores, 1.3) == [1, 3, 2, 0]
    assert keep([1.0, 3.0], 1.0) == [1, 0]  # on the limit
    assert keep([2.0, 3.0, 3.0, 2.0], 1.0) == [1, 2, 0, 3]  # in the order of the candidates where equal
    assert keep([None, 4.0, None, -4.0], 0.5) == [1, 0, 2]
    assert keep([None, None], 0.5) == [0, 1]
    assert keep([], 0.5) == []


def test_something_always_passes():
    rng = random.Random(1)
    for _ in range(300):
        scores = [rng.choice([0.1, 0.3, rng.uniform(-9, 9)])] * rng.randint(1, 9)
        assert keep(scores, 0.0) == list(range(len(scores)))


# --- the claims ---


def test_claims_end_with_their_numbers():
    answer = "Boso the Elder [2]. Lothair married Teutberga [1, 3], his daughter.[2][4] That is all."
    assert [claim.text for claim in find_claims(answer)] == [
        "Boso the Elder",
        "Lothair married Teutberga",
        "his daughter",
    ]
    assert find_numbers(answer, 3) == [2, 1, 3]
    assert [claim.text for claim in find_claims("No numbers [here].")] == ["No numbers [here]."]
    assert find_claims(" ") == []


def test_numbers_of_thousands_of_digits_are_no_citations():
    answer = f"Boso [{'1' * 5000}]. Storms [2]."
    assert find_numbers(answer, 9) == [2]
    assert len(find_claims(answer)) == 1


def test_white_space_before_numbers_goes_with_them():
    assert ragenta._BEFORE_CITED.sub("", "Boso  [1] [2][3,\n4] the Elder\n [5].") == "Boso the Elder."


def test_white_space_without_numbers_is_passed_once():
    text = "x" + "\n" * 200_000 + "y"  # takes minutes if it is tried from each line break
    assert ragenta._BEFORE_CITED.sub("", text) == text


def test_chinese_claims():
    answer = "格雷万[1]。建于1746年，[2]。"
    assert [claim.text for claim in find_claims(answer)] == ["格雷万", "建于1746年"]
    assert drop_claims(answer, [1]) == "建于1746年，[2]。"


def test_dropped_claims():
    answer = "Boso [2]. Storms broke bridges [1]. Teutberga was his daughter [3][4]."
    assert drop_claims(answer, [2]) == "Boso [2]. Teutberga was his daughter [3][4]."
    assert drop_claims(answer, [1, 3, 9]) == "Storms broke bridges [1]."
    assert drop_claims(answer, [1, 2, 3]) == answer  # never all
    assert drop_claims(answer, []) == answer
    assert drop_claims("Boso.", [1]) == "Boso."


# --- the graph ---

PREDICT, JUDGE, ANSWER, INTEGRATE = (
    "from one document",
    "Reply with one word",
    "from numbered documents: first",
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
    "Grade": lambda messages: {"grade": GRADES(messages)},
    ANSWER: CITED,
    "Coverage": DONE,
}
FURTHER = {
    **ROLES,
    "Coverage": [OPEN],
    "Finding": [{"answer": "In Arles [4].", "found": True}, {"answer": "", "found": False}],
    INTEGRATE: ["Boso the Elder, a count of Arles [4]. Teutberga was his daughter [1]."],
}


def tokens(*listed):
    """Return a reply with the log probabilities of its first token, as OpenAI's class returns it."""
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in listed]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}], "refusal": None}}
    return AIMessage(listed[0][0], response_metadata=metadata)


class RatingModel(RoleModel):
    """A model whose class takes log probabilities."""

    logprobs: bool | None = None
    top_logprobs: int | None = None


RATED = {
    **{role: reply for role, reply in ROLES.items() if role != "Grade"},
    JUDGE: lambda messages: tokens(("Yes", GRADES(messages) - 10.0), ("No", -GRADES(messages))),
}


@pytest.fixture(name="index", scope="module")
def _index(small_index):
    return small_index


@pytest.fixture(name="graded", scope="module")
def _graded(index):
    """The final state of a run whose answer is complete, and its model."""
    return answer_with("ragenta", index, ROLES)


@pytest.fixture(name="further", scope="module")
def _further(index):
    """The final state of a run with two follow-up questions, of which one finds something, and its model."""
    return answer_with("ragenta", index, FURTHER, options=Options(top_k=3))


def stage(state, title):
    return next(stage["lines"] for stage in state["stages"] if stage["title"].startswith(title))


def test_twelve_calls(graded):
    state, model = graded
    assert sorted(model.made) == sorted([*5 * [PREDICT], *5 * ["Grade"], ANSWER, "Coverage"])
    assert model.made[-2:] == [ANSWER, "Coverage"]
    assert state["answer"] == "Boso the Elder. Storms broke bridges. Teutberga was his daughter."
    assert (state["stop_reason"], state["steps"]) == ("answered", 12)


def test_candidates_are_those_of_both_rankings(index):
    state, _ = answer_with("ragenta", index, ROLES, options=Options(top_k=2))
    chunks = [index.get(chunk_id) for chunk_id in index.chunk_ids()]
    vectors = {chunk.id: float(hash_vector(chunk.text) @ hash_vector(QUESTION)) for chunk in chunks}
    words = dict(zip(vectors, BM25([chunk.text for chunk in chunks]).scores(QUESTION), strict=True))

    def best(scores):
        return sorted(((each, score) for each, score in scores.items() if score), key=lambda item: -item[1])[:6]

    expected = fuse(best(vectors), best(words), 2)
    assert state["trace"][0]["chunk_ids"] == [chunk_id for chunk_id, _ in expected]
    assert stage(state, "Candidates") == [f"[{chunk_id}] {score:.3f}" for chunk_id, score in expected]


def test_the_filter_keeps_the_best_documents_best_first(index, graded):
    state, model = graded
    assert stage(state, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    assert state["trace"][0]["arguments"]["judged_by"] == "grades"
    (shown,) = model.of(ANSWER)
    first, second = (index.get(chunk_id).text for chunk_id in ("teutberga:0", "boso:0"))
    assert f"[1]\n{first}\n\n[2]\n{second}\n</documents-1>" in shown
    assert "storm" not in shown


def test_answers_and_judgements_are_from_one_document(index, graded):
    state, model = graded
    texts = [index.get(chunk_id).text for chunk_id in state["read_chunks"]]
    for role in (PREDICT, "Grade"):
        assert [sum(text in shown for text in texts) for shown in model.of(role)] == 5 * [1]
        assert all(QUESTION in shown for shown in model.of(role))
    assert all(re.search(r"It says \d+ characters", shown) for shown in model.of("Grade"))


def test_citations_are_the_documents_of_the_numbers(index, graded):
    state, _ = graded
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0", "boso:0"]
    assert all(citation["read"] for citation in state["citations"])
    state, _ = answer_with("ragenta", index, {**ROLES, ANSWER: "Boso the Elder [2][7]."})
    assert [citation["chunk_id"] for citation in state["citations"]] == ["boso:0"]
    state, _ = answer_with("ragenta", index, {**ROLES, ANSWER: "Boso the Elder."})
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0", "boso:0"]


def test_follow_ups(further):
    state, model = further
    assert model.made[-5:] == [ANSWER, "Coverage", "Finding", INTEGRATE, "Finding"]
    assert state["steps"] == 3 + 3 + 2 + 2 + 1  # a question that finds nothing is one call
    first, second, third = state["trace"]
    assert [record["arguments"]["query"] for record in (second, third)] == MORE
    kept = ["teutberga:0", "boso:0"]
    assert not {*kept} & {*second["chunk_ids"], *third["chunk_ids"]}
    assert not {*second["chunk_ids"]} & {*third["chunk_ids"]}
    assert {*first["chunk_ids"]} & {*second["chunk_ids"]}  # what the filter dropped may be found again
    assert not {*first["new_chunks"]} & {*second["new_chunks"]}
    assert state["answer"] == "Boso the Elder, a count of Arles. Teutberga was his daughter."
    assert [citation["chunk_id"] for citation in state["citations"]] == [second["chunk_ids"][1], "teutberga:0"]


def test_numbers_are_never_used_twice(index):
    state, model = answer_with("ragenta", index, FURTHER, options=Options(top_k=2))
    numbers = [re.findall(r"^\[(\d+)\]$", shown, re.MULTILINE) for shown in model.of(ANSWER) + model.of("Finding")]
    flat = [int(number) for each in numbers for number in each]
    assert flat == list(range(1, len(flat) + 1))
    lines = [line for stage in state["stages"] for line in stage["lines"] if re.match(r"\d+: \[", line)]
    assert [int(line.partition(":")[0]) for line in lines] == flat


def test_the_draft_loses_irrelevant_claims_before_the_finding_is_worked_in(further):
    _, model = further
    (shown,) = model.of("Coverage")
    assert "1. Boso the Elder\n2. Storms broke bridges\n3. Teutberga was his daughter" in shown
    (shown,) = model.of(INTEGRATE)
    assert "Boso the Elder [1]. Teutberga was his daughter [1, 2]." in shown
    assert MORE[0] in shown
    assert "In Arles [4]." in shown


@pytest.mark.parametrize(
    ("limit", "searches", "reason"), [(3, 4, "max_steps"), (5, 6, "answered"), (0, 1, "max_steps")]
)
def test_follow_ups_are_capped(index, limit, searches, reason):
    many = {**OPEN, "follow_ups": [*[f"What of storm {number}?" for number in range(5)], " ", "What of storm 0?"]}
    roles = {**ROLES, "Coverage": many, "Finding": {"answer": "", "found": False}}
    options = Options(top_k=1, settings={"ragenta": {"follow_ups": limit}})
    state, _ = answer_with("ragenta", index, roles, options=options)
    assert (len(state["trace"]), state["stop_reason"]) == (searches, reason)


def test_a_follow_up_without_documents_asks_nobody(index):
    options = Options(top_k=7)
    roles = {**ROLES, "Grade": {"grade": 5}, "Coverage": OPEN}  # all chunks of the index are kept
    state, model = answer_with("ragenta", index, roles, options=options)
    assert "Finding" not in model.made
    assert [record["chunk_ids"] for record in state["trace"][1:]] == [[], []]


# --- log probabilities and grades ---


def test_log_probabilities(index):
    state, model = answer_with("ragenta", index, RATED, kind=RatingModel)
    assert model.made.count(JUDGE) == 5
    judged = [call for call, role in zip(model.calls, model.made, strict=True) if role == JUDGE]
    assert all(call.options == {"logprobs": True, "top_logprobs": 20} for call in judged)
    assert state["trace"][0]["arguments"]["judged_by"] == "log probabilities"
    assert stage(state, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    judged_by = "Answers from each, judged by log probabilities"
    assert [line for line in stage(state, judged_by) if line.startswith("[teutberga:0] (8.00) It says")]


class RefusedError(Exception):
    def __init__(self, status_code):
        super().__init__("log probabilities are refused")
        self.status_code = status_code


def refuse(status_code):
    def reply(_):
        raise RefusedError(status_code)

    return reply


@pytest.mark.parametrize(
    ("reply", "paid"),
    [
        pytest.param(refuse(400), 0, id="refuses"),
        pytest.param(refuse(403), 0, id="refuses as OpenAI does"),
        pytest.param("Yes", 5, id="ignores"),
        pytest.param(tokens(("<think>", -0.1), ("The", -3.0)), 5, id="thinks first"),
    ],
)
def test_a_model_without_log_probabilities_grades_all_documents(index, reply, paid):
    model = RatingModel({**ROLES, JUDGE: reply})
    graph = method("ragenta").make(index, model, Options())
    state = graph.invoke(asked())
    assert (model.made.count(JUDGE), model.made.count("Grade")) == (5, 5)
    assert len(state["model_calls"]) == 12 + paid
    assert state["trace"][0]["arguments"]["judged_by"] == "grades"
    assert stage(state, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    graph.invoke(asked())
    assert (model.made.count(JUDGE), model.made.count("Grade")) == (5, 10)  # it is not asked for them again


def test_a_key_without_access_is_an_error(index):
    model = RatingModel({**ROLES, JUDGE: refuse(403), "Grade": refuse(403)})
    with pytest.raises(RefusedError):
        method("ragenta").make(index, model, Options()).invoke(asked())


@pytest.mark.parametrize(("grade", "told"), [(7.5, "(7.50)"), (11, "(10.00)"), (-1, "(0.00)")])
def test_a_grade_out_of_range_is_not_asked_for_again(index, grade, told):
    state, model = answer_with("ragenta", index, {**ROLES, "Grade": {"grade": grade}})
    assert model.made.count("Grade") == 5
    assert all(told in line for line in stage(state, "Answers from each"))


def test_scales_are_never_mixed(index):
    reply = by_document({"Teutberga was": "Yes"}, tokens(("Yes", -0.1), ("No", -3.0)))  # one without
    model = RatingModel({**ROLES, JUDGE: reply})
    graph = method("ragenta").make(index, model, Options())
    state = graph.invoke(asked())
    assert (model.made.count(JUDGE), model.made.count("Grade")) == (5, 5)
    assert stage(state, "Kept") == ["1: [teutberga:0]", "2: [boso:0]"]
    graph.invoke(asked())
    assert model.made.count(JUDGE) == 10  # one document says nothing about the model


def test_a_document_without_a_judgement_counts_as_average(index):
    reply = by_document({"Teutberga was": tokens(("The", -0.1)), "storm": tokens(("No", -0.1), ("Yes", -3.0))}, None)
    rated = tokens(("Yes", -0.1), ("No", -3.0))
    state, model = answer_with("ragenta", index, {**RATED, JUDGE: lambda m: reply(m) or rated}, kind=RatingModel)
    assert "Grade" not in model.made
    kept = [line.partition(" ")[2] for line in stage(state, "Kept")]
    assert kept[-1] == "[teutberga:0]"
    assert not any("annals" in line for line in kept)


def test_log_probabilities_over_http(index, no_settings, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    listed = [{"token": "Yes", "logprob": -0.2, "bytes": None}, {"token": "No", "logprob": -1.7, "bytes": None}]
    rated = chat("Yes")
    rated["choices"][0]["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}], "refusal": None}
    judged = rated
    forms = {"Grade": {"grade": 5}, "Coverage": DONE}

    def respond(_, request):
        if "one word" in request["messages"][0]["content"]:
            return judged
        form = request.get("response_format", {}).get("json_schema", {}).get("name")
        return chat(json.dumps(forms[form]) if form else "Boso [1].")

    with serve(respond) as server:
        model = load_model(f"openai:gpt-4o-mini@{server.url}", max_retries=0)
        graph = method("ragenta").make(index, model, Options(top_k=2))
        first = graph.invoke(asked())
        judged = Failure(400)
        second = graph.invoke(asked())
    for state, scale, score in ((first, "log probabilities", "(1.50)"), (second, "grades", "(5.00)")):
        assert state["answer"] == "Boso."
        assert state["trace"][0]["arguments"]["judged_by"] == scale
        assert all(score in line for line in stage(state, "Answers from each"))
    assert [request.get("top_logprobs") for request in server.requests if "one word" in str(request)] == 4 * [20]


# --- unusable replies ---


@UNUSABLE
def test_unusable_grades(index, unusable):
    state, model = answer_with("ragenta", index, {**ROLES, "Grade": unusable})
    assert model.made.count("Grade") == 15
    assert len(stage(state, "Kept")) == 5  # nothing is known against any of them


@UNUSABLE
def test_unusable_predictions_are_judged_as_none(index, unusable):
    _, model = answer_with("ragenta", index, {**ROLES, PREDICT: unusable})
    assert model.made.count(PREDICT) == 15
    assert all("<answer-1>\nNone.\n</answer-1>" in shown for shown in model.of("Grade"))


@UNUSABLE
def test_an_unusable_answer_may_be_found_by_follow_ups(index, unusable):
    state, model = answer_with("ragenta", index, {**ROLES, ANSWER: unusable})
    assert model.made[-4:] == [*3 * [ANSWER], "Coverage"]
    assert (state["answer"], state["citations"]) == ("", [])
    state, _ = answer_with("ragenta", index, {**FURTHER, ANSWER: unusable}, options=Options(top_k=3))
    assert state["answer"].startswith("Boso the Elder")


@UNUSABLE
def test_an_unusable_check_ends_the_question(index, unusable):
    state, model = answer_with("ragenta", index, {**ROLES, "Coverage": unusable})
    assert model.made[-3:] == 3 * ["Coverage"]
    assert state["answer"].startswith("Boso the Elder. Storms")


@UNUSABLE
def test_unusable_follow_ups_change_nothing(index, unusable):
    without = {role: reply for role, reply in FURTHER.items() if role != INTEGRATE}
    state, model = answer_with("ragenta", index, {**without, "Finding": unusable}, options=Options(top_k=3))
    assert model.made.count("Finding") == 6
    assert state["answer"] == "Boso the Elder. Teutberga was his daughter."
    state, model = answer_with("ragenta", index, {**FURTHER, INTEGRATE: unusable}, options=Options(top_k=3))
    assert model.made.count(INTEGRATE) == 3
    assert state["answer"] == "Boso the Elder. Teutberga was his daughter."


def test_what_every_method_does(index):
    check_method("ragenta", index, FURTHER, options=Options(top_k=2))
    check_method("ragenta", index, RATED, kind=RatingModel, options=Options(top_k=2))


def test_it_needs_a_language_model_and_valid_settings(index):
    with pytest.raises(InputError, match="extractive"):
        method("ragenta").make(index, ExtractiveModel(), Options())
    with pytest.raises(InputError, match=r"ragenta\.dense_weight is 2"):
        method("ragenta").make(index, RoleModel({}), Options(settings={"ragenta": {"dense_weight": 2}}))
