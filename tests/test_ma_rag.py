"""MA-RAG: what each role is shown, and how a plan ends."""

from __future__ import annotations

import pytest

from arag.evaluation.methods.ma_rag import MARAG
from role_model import UNUSABLE, answer_with, lines
from scripted import QUESTION

PLANNING, DEFINING, NOTING, SUMMARISING = (
    "You plan",
    "You prepare one step",
    "You take notes",
    "You give the final answer",
)
ANSWERING, COMBINING = "from notes", "from facts that are stated"
K = 5
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
    PLANNING: [PLAN],
    DEFINING: TASKS,
    NOTING: note,
    ANSWERING: [found("Teutberga"), found("Boso the Elder", 8.5)],
    COMBINING: [found("no", 10)],
    SUMMARISING: [{"answer": "Boso the Elder", "score": 9, "solved": True}],
}
ONE_STEP = {
    PLANNING: {**PLAN, "steps": HOPS[:1]},
    DEFINING: TASKS[0],
    NOTING: note,
    ANSWERING: found("Teutberga"),
    SUMMARISING: TWO_HOPS[SUMMARISING][0],
}


@pytest.fixture(name="run")
def _run(small_index, tmp_path):
    """A function that asks the method the question, with some roles."""

    def run(roles, **options):
        return answer_with(MARAG(), small_index, roles, tmp_path, **options)

    return run


def test_two_hops_and_an_aggregation(run):
    answer, session, play = run(TWO_HOPS)
    hop = [DEFINING, *K * [NOTING], ANSWERING]
    assert play.made == [PLANNING, *hop, *hop, DEFINING, COMBINING, SUMMARISING]
    assert (answer.text, answer.stop_reason, answer.cited) == ("Boso the Elder", "answered", ())
    assert [record["arguments"]["query"] for record in session.trace] == [task["task"] for task in TASKS[:2]]
    assert [record["step"] for record in session.trace] == [3, 10]


def test_roles_see_what_they_need(small_index, run):
    _, session, play = run(TWO_HOPS)
    assert QUESTION in play.of(PLANNING)[0]
    first, second, third = play.of(DEFINING)
    assert all(step in shown for step in HOPS for shown in (first, second, third))
    assert "No step has been taken yet." in first
    assert "Answer: Teutberga" in second
    assert "Boso the Elder" not in second
    assert "Answer: Teutberga" in third
    assert "Answer: Boso the Elder" in third
    assert not any(text in third for text in ("Rating", TASKS[0]["task"]))  # only steps and answers
    for place, record in enumerate(session.trace):
        shown = play.of(NOTING)[place * K : (place + 1) * K]  # in any order: these calls are made side by side
        for chunk_id in record["chunk_ids"]:
            assert sum(small_index.get(chunk_id).text in text for text in shown) == 1
        assert all(TASKS[place]["task"] in text and QUESTION not in text for text in shown)
    answered, _ = play.of(ANSWERING)
    assert all(f"{chunk_id}: [It names " in answered for chunk_id in session.trace[0]["chunk_ids"])
    assert TASKS[0]["task"] in answered
    (combined,) = play.of(COMBINING)
    assert TASKS[2]["task"] in combined
    assert not any(text in combined for text in ("It names", QUESTION, HOPS[0]))  # the task alone
    (summary,) = play.of(SUMMARISING)
    expected = [QUESTION, *HOPS, *(task["task"] for task in TASKS), "Boso the Elder", "Rating: 8.5"]
    assert all(text in summary for text in expected)


@pytest.mark.parametrize(("rating", "clamped"), [(11, 10), (-1, 0)])
def test_a_rating_out_of_range_is_not_asked_for_again(run, rating, clamped):
    summary = {**ONE_STEP[SUMMARISING], "score": rating}
    _, session, play = run({**ONE_STEP, ANSWERING: found("Teutberga", rating), SUMMARISING: summary})
    assert (play.made.count(ANSWERING), play.made.count(SUMMARISING)) == (1, 1)
    assert lines(session, "Step 1")[-1] == lines(session, "Summary")[0] == f"Rating: {clamped:g} of 10"


def test_a_failed_step_ends_the_plan(run):
    roles = {**TWO_HOPS, DEFINING: TASKS[:1], ANSWERING: [found("", 0, success=False)], COMBINING: []}
    answer, session, play = run(roles)
    assert play.made == [PLANNING, DEFINING, *K * [NOTING], ANSWERING, SUMMARISING]
    assert "Failed" in play.of(SUMMARISING)[0]
    assert answer.stop_reason == "answered"
    assert lines(session, "Step 1")[-1] == "Rating: 0 of 10, not found"


def test_an_empty_plan_is_the_question(run):
    _, session, play = run({**ONE_STEP, PLANNING: {"analysis": "", "steps": [" "]}})
    assert lines(session, "Plan") == [QUESTION]
    assert play.made.count(DEFINING) == 1


@pytest.mark.parametrize(("success", "reason"), [(True, "max_steps"), (False, "answered")])
def test_a_long_plan_is_cut(run, success, reason):
    plan = {"analysis": "", "steps": [f"Step {number}." for number in range(20)]}
    roles = {**ONE_STEP, PLANNING: plan, DEFINING: TASKS[2], COMBINING: found("yes", success=success)}
    answer, session, _ = run(roles)
    assert (len(lines(session, "Plan")), answer.stop_reason) == (8, reason)  # a failed step ends it before its cap


@UNUSABLE
def test_unusable_plans_and_tasks_are_the_question_and_unusable_notes_are_left_out(run, unusable):
    roles = {**ONE_STEP, PLANNING: 3 * [unusable], DEFINING: 3 * [unusable], NOTING: unusable}
    _, session, play = run(roles)
    assert lines(session, "Plan") == [QUESTION]
    assert session.trace[0]["arguments"]["query"] == QUESTION
    assert play.made.count(NOTING) == 3 * K
    assert not any(f"{chunk_id}: [" in play.of(ANSWERING)[0] for chunk_id in session.trace[0]["chunk_ids"])


@UNUSABLE
def test_an_unusable_answer_is_a_failure_and_without_a_summary_the_last_answer_counts(run, unusable):
    answer, _, play = run({**ONE_STEP, ANSWERING: 3 * [unusable]})
    assert "Failed" in play.of(SUMMARISING)[0]
    assert answer.text == "Boso the Elder"
    answer, _, _ = run({**ONE_STEP, SUMMARISING: 3 * [unusable]})
    assert answer.text == "Teutberga"
