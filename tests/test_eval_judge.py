"""A judge's verdicts over HTTP: whatever it replies, an answer is judged by what it says, or not at all."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage

from arag.errors import InputError
from arag.evaluation import structured
from arag.evaluation.event_loop import run
from arag.evaluation.judge import Judge
from arag.models.chat import load_model
from arag.models.prices import cost
from arag.testing import ScriptedModel
from openai_server import Failure, chat, response, serve, text

pytest_plugins = ["model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings", "at_once")

QUESTION = ("Who was the father of Teutberga?", "Boso the Elder", "It was Boso, count of Arles.")
CORRECT = '{"reason": "It is Boso.", "correct": true}'
INCORRECT = '{"reason": "It is Hugh.", "correct": false}'
NO_SCHEMA = Failure(400, message="response_format is not supported")


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(structured, "_PAUSE", 0)


def ask(server, *, judge=None, question=QUESTION, **options):
    options.setdefault("max_retries", 0)
    judge = judge or Judge(load_model(f"openai:gpt-5-mini@{server.url}", **options), "openai:gpt-5-mini")
    return run(judge.judge(*question))


def verdict(judgement):
    return judgement["correct"], judgement["reason"]


def priced(content, **changes):
    return {**chat(content), "model": "gpt-5-mini", **changes}


def test_the_judge_sees_question_gold_and_prediction():
    with serve([chat(CORRECT)]) as server:
        assert verdict(ask(server)) == (True, "It is Boso.")
    system, asked = server.requests[0]["messages"]
    assert (system["role"], asked["role"]) == ("system", "user")
    assert asked["content"] == (
        "Question: Who was the father of Teutberga?\n\nGold answer: Boso the Elder\n\n"
        "Predicted answer:\n<answer-1>\nIt was Boso, count of Arles.\n</answer-1>"
    )
    schema = server.requests[0]["response_format"]
    assert schema["type"] == "json_schema"
    assert schema["json_schema"]["schema"]["required"] == ["reason", "correct"]
    assert '"correct": true or false' in system["content"]  # for servers that read past the schema


def test_an_empty_prediction():
    with serve([chat(INCORRECT)]) as server:
        assert verdict(ask(server, question=("Who?", "Boso", ""))) == (False, "It is Hugh.")
    assert server.requests[0]["messages"][1]["content"].endswith("Predicted answer:\n<answer-1>\n(empty)\n</answer-1>")


@pytest.mark.parametrize(
    ("reply", "correct"),
    [
        (CORRECT, True),
        (INCORRECT, False),
        (f"```json\n{CORRECT}\n```", True),
        (f"Here is my verdict:\n{INCORRECT}\nThat is all.", False),
        ('{"correct": false, "reason": "", "score": 0.1}', False),
    ],
)
def test_verdicts(reply, correct):
    with serve([chat(reply)]) as server:
        assert ask(server)["correct"] is correct


UNUSABLE = [
    chat("correct"),
    chat('{"reason": "It is Boso.", "correct": tr'),
    chat('{"reason": "It is Boso."}'),
    chat('{"correct": true}'),
    chat('{"reason": "It is Boso.", "correct": "yes"}'),
    chat('{"reason": "It is Boso.", "correct": 1}'),
    chat('{"reason": "It is Boso.", "correct": null}'),
    chat("[]"),
    chat("{}"),
    chat(""),
    chat(None),
    chat(CORRECT[:20], finish_reason="length"),
    {**chat(""), "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": None, "refusal": "I do not judge."}}]},
    {**chat(""), "choices": []},
    chat(None, ("c1", "Verdict", "[1]")),
    chat(None, ("c1", "Verdict", "{")),
    Failure(500),
    Failure(503),
    Failure(200, page=True),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(UNUSABLE)))
def test_what_is_no_verdict_is_asked_again(number):
    with serve([UNUSABLE[number], chat(CORRECT)]) as server:
        assert verdict(ask(server)) == (True, "It is Boso.")


@pytest.mark.parametrize("number", range(len(UNUSABLE)))
def test_without_a_verdict_an_answer_is_unjudged_and_not_wrong(number):
    with serve([UNUSABLE[number]] * 3) as server:
        judgement = ask(server)
    assert judgement["correct"] is None
    assert judgement["reason"].startswith(("the judge failed: ", "the judge gave no usable verdict: "))
    assert len(judgement["reason"]) < 400


def test_a_refusal_is_told():
    with serve([UNUSABLE[12]] * 3) as server:
        assert ask(server)["reason"] == "the judge gave no usable verdict: I do not judge."


def test_a_server_that_is_gone():
    with serve([]) as server:
        pass
    judgement = ask(server)
    assert (judgement["correct"], judgement["cost"]) == (None, 0.0)


def test_a_bug_is_none_of_the_judges():
    class Broken(ScriptedModel):
        def bind_tools(self, *_, **__):
            raise NotImplementedError

    with pytest.raises(ZeroDivisionError):
        run(Judge(Broken(ZeroDivisionError()), "broken").judge(*QUESTION))


# --- servers without structured output ---


@pytest.mark.parametrize("status", [400, 404, 422, 501])
def test_a_server_that_knows_no_schema_is_asked_in_words(status):
    with serve([Failure(status, message="json_schema?"), chat(CORRECT), chat(INCORRECT)]) as server:
        judge = Judge(load_model(f"openai:llama@{server.url}", max_retries=0), "llama")
        assert ask(server, judge=judge)["correct"] is True
        assert ask(server, judge=judge)["correct"] is False  # and is asked so at once the next time
    assert ["response_format" in request for request in server.requests] == [True, False, False]


def test_a_request_that_is_refused_in_any_form_says_nothing_of_schemas():
    with serve([NO_SCHEMA] * 6 + [chat(CORRECT)]) as server:
        judge = Judge(load_model(f"openai:llama@{server.url}", max_retries=0), "llama")
        assert ask(server, judge=judge)["correct"] is None
        assert ask(server, judge=judge)["correct"] is True
    assert "response_format" in server.requests[-1]


def test_a_model_without_structured_output_is_asked_in_words():
    class Plain(ScriptedModel):
        def with_structured_output(self, *_, **__):
            raise NotImplementedError

    model = Plain(AIMessage(f"Well: {INCORRECT}"))
    assert run(Judge(model, "plain").judge(*QUESTION))["correct"] is False
    assert model.calls[0].tool_names == []


def test_the_responses_protocol():
    with serve([response(1, text(CORRECT))]) as server:
        assert ask(server, use_responses_api=True)["correct"] is True
    assert server.requests[0]["text"]["format"]["type"] == "json_schema"


def test_tool_calls_of_models_whose_class_asks_for_them():
    called = AIMessage("", tool_calls=[{"name": "Verdict", "args": json.loads(INCORRECT), "id": "1"}])
    model = ScriptedModel(called)
    assert verdict(run(Judge(model, "scripted").judge(*QUESTION))) == (False, "It is Hugh.")
    assert model.calls[0].tool_names == ["Verdict"]


def test_the_built_in_model_cannot_judge():
    with pytest.raises(InputError, match="cannot judge"):
        Judge(load_model("extractive"), "extractive")


# --- cost ---


def test_the_cost_of_all_attempts_is_counted():
    with serve([priced("correct"), Failure(500), priced(CORRECT)]) as server:
        judgement = ask(server)
    one = {"model": "gpt-5-mini", "input_tokens": 100, "cached_tokens": 40, "output_tokens": 10}
    assert judgement["cost"] == pytest.approx(2 * cost([one]))
    assert judgement["cost"] > 0
    assert judgement["model"] == "openai:gpt-5-mini"


def test_an_unknown_price_is_unknown():
    with serve([priced("correct"), priced(CORRECT, model="some-model")]) as server:
        assert ask(server)["cost"] is None
    with serve([priced("correct"), priced(CORRECT, usage=None)]) as server:
        assert ask(server)["cost"] is None


def test_unjudged_answers_cost_too():
    with serve([priced("correct")] * 3) as server:
        assert ask(server)["cost"] > 0


# --- many at once ---


def test_many_judgements_at_once():
    def respond(_, request):
        return chat(CORRECT if "<answer-1>\nBoso\n" in request["messages"][1]["content"] else INCORRECT)

    async def all_of(judge):
        return await asyncio.gather(*(judge.judge("Who?", "Boso", "Boso" if n % 3 else "Hugh") for n in range(30)))

    with serve(respond) as server:
        found = run(all_of(Judge(load_model(f"openai:gpt@{server.url}", max_retries=3), "gpt")))
    assert [judgement["correct"] for judgement in found] == [bool(n % 3) for n in range(30)]
