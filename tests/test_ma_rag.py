"""MA-RAG: what each role is shown, and how a plan ends."""

from __future__ import annotations

import json

import pytest
from pydantic import Field

from arag.errors import InputError
from arag.evaluation.methods import Options, method
from arag.models.extractive import ExtractiveModel
from role_model import UNUSABLE, RoleModel, answer_with, check_method
from scripted_model import QUESTION

pytest_plugins = ["graph_fixtures"]

K = 5
NOTES = "take notes"
HOPS = ["Find the wife of Lothair II.", "Find the father of the wife of step 1.", "Say whether they are the same."]
PLAN = {"analysis": "First the wife, then her father.", "steps": HOPS}
TASKS = [
    {"type": "question", "task": "Who was the wife of Lothair II?"},
    {"type": "question", "task": "Who was the father of Teutberga?"},
    {"type": "aggregate", "task": "Teutberga was the wife, and Boso the Elder her father. Are they the same?"},
]


def found(answer, rating=9, success=True):
    return {"analysis": "The notes say so.", "answer": answer, "success": success, "rating": rating}


def note(messages):
    return f"It names {', '.join(name for name in ('Teutberga', 'Boso') if name in messages[-1].text) or 'nobody'}."


TWO_HOPS = {
    "Plan": [PLAN],
    "Task": TASKS,
    NOTES: note,
    "Answer": [found("Teutberga"), found("Boso the Elder", 8.5), found("no", 10)],
    "Summary": [{"answer": "Boso the Elder", "score": 9, "solved": True}],
}
ANY_TIME = {**TWO_HOPS, "Plan": {**PLAN, "steps": HOPS[:1]}, "Task": TASKS[0], "Answer": found("Teutberga")}
ANY_TIME["Summary"] = TWO_HOPS["Summary"][0]


@pytest.fixture(name="index", scope="module")
def _index(small_index):
    return small_index


@pytest.fixture(name="two_hops", scope="module")
def _two_hops(index):
    """The final state of a run with two searches and an aggregation, and its model."""
    return answer_with("ma-rag", index, TWO_HOPS)


def test_two_hops_and_an_aggregation(two_hops):
    state, model = two_hops
    hop = ["Task", *K * [NOTES], "Answer"]
    assert model.made == ["Plan", *hop, *hop, "Task", "Answer", "Summary"]
    assert len(model.made) == 2 + 3 + 6 * 2 + 1  # plan and summary, steps, searches, aggregations
    assert (state["answer"], state["stop_reason"], state["citations"]) == ("Boso the Elder", "answered", [])
    assert [record["arguments"]["query"] for record in state["trace"]] == [task["task"] for task in TASKS[:2]]
    assert [record["step"] for record in state["trace"]] == [2, 9]


def test_roles_see_what_they_need(index, two_hops):
    state, model = two_hops
    assert QUESTION in model.of("Plan")[0]
    first, second, third = model.of("Task")
    assert all(step in shown for step in HOPS for shown in (first, second, third))
    assert "No step has been taken yet." in first
    assert "Answer: Teutberga" in second
    assert "Boso the Elder" not in second
    assert "Answer: Teutberga" in third
    assert "Answer: Boso the Elder" in third
    assert not any(text in third for text in ("Rating", TASKS[0]["task"]))  # only steps and answers
    passages = [index.get(chunk_id).text for record in state["trace"] for chunk_id in record["chunk_ids"]]
    assert all(passage in shown for passage, shown in zip(passages, sorted_by(passages, model.of(NOTES)), strict=True))
    assert all(TASKS[0]["task"] in shown and QUESTION not in shown for shown in model.of(NOTES)[:K])
    answered, _, combined = model.of("Answer")
    assert [f"{chunk_id}: [It names " in answered for chunk_id in state["trace"][0]["chunk_ids"]] == K * [True]
    assert TASKS[0]["task"] in answered
    assert TASKS[2]["task"] in combined
    assert not any(text in combined for text in ("It names", QUESTION, HOPS[0]))  # the task alone
    (summary,) = model.of("Summary")
    told = [QUESTION, *HOPS, *(task["task"] for task in TASKS), "Boso the Elder", "Rating: 8.5"]
    assert all(text in summary for text in told)


def sorted_by(passages, shown):
    """Return what was shown in the order of the passages: the calls of a step are made side by side."""
    steps = [shown[:K], shown[K:]]
    return [next(text for text in steps[place // K] if passage in text) for place, passage in enumerate(passages)]


def test_retrieved_chunks_are_counted_in_each_search_and_are_new_once(index, two_hops):
    state, _ = two_hops
    first, second = state["trace"]
    for record in (first, second):
        assert record["retrieved_tokens"] == sum(index.get(chunk_id).tokens for chunk_id in record["chunk_ids"])
    assert first["new_chunks"] == first["chunk_ids"]
    assert second["new_chunks"] == [each for each in second["chunk_ids"] if each not in first["chunk_ids"]]


@pytest.mark.parametrize(("rating", "told"), [(11, 10), (-1, 0), (9.5, 9.5)])
def test_a_rating_out_of_range_is_not_asked_for_again(index, rating, told):
    summary = {**ANY_TIME["Summary"], "score": rating}
    state, model = answer_with("ma-rag", index, {**ANY_TIME, "Answer": found("Teutberga", rating), "Summary": summary})
    assert (model.made.count("Answer"), model.made.count("Summary")) == (1, 1)
    assert state["stages"][1]["lines"][-1] == state["stages"][2]["lines"][0] == f"Rating: {told:g} of 10"


@pytest.mark.parametrize("rating", ["1e999", "NaN"])
def test_a_rating_that_is_no_finite_number_is_asked_for_again(index, rating):
    reply = json.dumps(found("Boso", "here")).replace('"here"', rating)
    _, model = answer_with("ma-rag", index, {**TWO_HOPS, "Task": TASKS[:1], "Answer": 3 * [reply]})
    assert model.made.count("Answer") == 3


def test_the_page_shows_the_plan_and_its_steps(two_hops):
    state, _ = two_hops
    assert [stage["title"] for stage in state["stages"]] == ["Plan", "Step 1", "Step 2", "Step 3", "Summary"]
    assert state["stages"][0]["lines"] == HOPS
    task, *notes, answer, rating = state["stages"][2]["lines"]
    assert (task, answer) == ("Question: Who was the father of Teutberga?", "Answer: Boso the Elder")
    assert rating == "Rating: 8.5 of 10"
    assert "Note from [boso:0]: It names Teutberga, Boso." in notes
    assert len(notes) == K


def test_a_failed_step_ends_the_plan(index):
    roles = {**TWO_HOPS, "Task": TASKS[:1], "Answer": [found("", 0, success=False)]}
    state, model = answer_with("ma-rag", index, roles)
    assert model.made == ["Plan", "Task", *K * [NOTES], "Answer", "Summary"]
    assert "Failed" in model.of("Summary")[0]
    assert state["stop_reason"] == "answered"
    assert state["stages"][1]["lines"][-1] == "Rating: 0 of 10, not found"


@pytest.mark.parametrize("plan", [{"analysis": "", "steps": []}, {"analysis": "", "steps": [" "]}])
def test_an_empty_plan_is_the_question(index, plan):
    roles = {**TWO_HOPS, "Plan": [plan], "Task": TASKS[:1], "Answer": [found("Teutberga")]}
    state, model = answer_with("ma-rag", index, roles)
    assert state["stages"][0]["lines"] == [QUESTION]
    assert model.made.count("Task") == 1


def test_a_long_plan_is_cut(index):
    plan = {"analysis": "", "steps": [f"Step {number}." for number in range(20)]}
    roles = {**TWO_HOPS, "Plan": [plan], "Task": 8 * [TASKS[2]], "Answer": 8 * [found("yes")]}
    state, _ = answer_with("ma-rag", index, roles)
    assert (len(state["stages"][0]["lines"]), state["stop_reason"]) == (8, "max_steps")
    roles = {**roles, "Task": TASKS[2:], "Answer": [found("", success=False)]}
    state, _ = answer_with("ma-rag", index, roles)
    assert state["stop_reason"] == "answered"  # the plan ended before its cap


@UNUSABLE
def test_unusable_plans_and_tasks_are_replaced(index, unusable):
    roles = {**TWO_HOPS, "Plan": 3 * [unusable], "Task": 3 * [unusable], "Answer": [found("Boso")]}
    state, _ = answer_with("ma-rag", index, roles)
    assert state["stages"][0]["lines"] == [QUESTION]
    assert state["trace"][0]["arguments"]["query"] == QUESTION


@UNUSABLE
def test_unusable_notes_are_left_out(index, unusable):
    state, model = answer_with("ma-rag", index, {**ANY_TIME, NOTES: unusable})
    assert model.made.count(NOTES) == 3 * K
    assert not any(f"{chunk_id}: [" in model.of("Answer")[0] for chunk_id in state["read_chunks"])


@UNUSABLE
def test_an_unusable_answer_is_a_failure(index, unusable):
    state, model = answer_with("ma-rag", index, {**TWO_HOPS, "Task": TASKS[:1], "Answer": 3 * [unusable]})
    assert model.made.count("Answer") == 3
    assert "Failed" in model.of("Summary")[0]
    assert state["answer"] == "Boso the Elder"


@UNUSABLE
def test_without_a_summary_the_last_answer_counts(index, unusable):
    state, _ = answer_with("ma-rag", index, {**ANY_TIME, "Summary": 3 * [unusable]})
    assert state["answer"] == "Teutberga"


def test_what_every_method_does(index):
    check_method("ma-rag", index, TWO_HOPS, options=Options(top_k=2))


class WarmModel(RoleModel):
    """A model with a temperature, and those of its calls."""

    temperature: float | None = None
    used: dict[str, set[float | None]] = Field(default_factory=dict)

    def _reply(self, messages, options):
        reply = super()._reply(messages, options)
        self.used.setdefault(self.made[-1], set()).add(self.temperature)
        return reply


def test_temperatures_are_used_where_the_run_sets_one(index):
    for own, warm, cold in ((None, None, None), (1.0, 0.3, 0)):
        model = WarmModel(ANY_TIME, temperature=own)
        method("ma-rag").make(index, model, Options()).invoke({"messages": [("user", QUESTION)]})
        expected = {"Plan": warm, "Task": warm, NOTES: cold, "Answer": warm, "Summary": cold}
        assert model.used == {role: {temperature} for role, temperature in expected.items()}


def test_it_needs_a_language_model_and_valid_settings(index):
    with pytest.raises(InputError, match="extractive"):
        method("ma-rag").make(index, ExtractiveModel(), Options())
    with pytest.raises(InputError, match=r"ma-rag has no setting 'steps'"):
        method("ma-rag").make(index, RoleModel({}), Options(settings={"ma-rag": {"steps": 2}}))


@pytest.mark.parametrize("by", ["chunk", "sentence"])
def test_passages_are_ranked_as_the_setting_says(index, by):
    options = Options(top_k=2, settings={"ma-rag": {"passages": by}})
    state, _ = answer_with("ma-rag", index, ANY_TIME, options=options)
    assert len(state["trace"][0]["chunk_ids"]) == 2
    if by == "sentence":
        nearest = index.semantic_search(TASKS[0]["task"], 2).hits
        assert state["trace"][0]["chunk_ids"] == [hit.chunk_id for hit in nearest]
