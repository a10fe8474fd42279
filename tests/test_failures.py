"""What servers of models refuse, and how they fail: over real HTTP, streamed and whole."""

from __future__ import annotations

import asyncio
import json
import re

import httpx
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

import anthropic_server
from anthropic_server import message, tool_use
from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from arag.models.failures import describe_failure
from arag.models.servers import Server
from fakes import write_corpus
from http_server import Failure
from openai_server import Comments, chat, serve
from scripted import DOCUMENTS, QUESTION, ScriptedModel, asked, call, calls, in_thread, results

ANSWER = "Boso the Elder: Teutberga was his daughter [teutberga:0]."
SEARCH = ("call_1", "keyword_search", json.dumps({"keywords": ["Lothair II"]}))
both_ways = pytest.mark.parametrize("streaming", [False, True])
TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 5103 tokens."
TOO_LONG_FOR_LLAMA = "request (930 tokens) exceeds the available context size (512 tokens), try increasing it"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr("arag.models.pauses._FIRST_PAUSE_SECONDS", 0.0)


def refuse_until(is_fine, said, status=400, replies=None):
    """Respond as a model does that searches once; refuse each request that is not fine."""

    def respond(_, request):
        if not is_fine(request):
            return Failure(status, message=said)
        if any(sent["role"] == "tool" for sent in request["messages"]):
            return chat(ANSWER)
        return replies or chat(None, SEARCH)

    return respond


def ask(server, index, *, streaming=False, name="some-model", agent=None, **options):
    """Ask the question; return the state."""
    if agent is None:
        agent = create_arag_agent(load_model(f"openai:{name}@{server.url}", **options), index, tools="paper")
    if not streaming:
        return agent.invoke(asked())
    return list(agent.stream(asked(), stream_mode=["messages", "values"]))[-1][1]


def roles(request):
    return [sent["role"] for sent in request["messages"]]


# --- what a server refuses is left out ---

REFUSED = [
    ("parallel_tool_calls", "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", {}),
    ("temperature", "Unsupported value: 'temperature' does not support 0 with this model.", {"temperature": 0.25}),
    ("top_p", "top_p: Extra inputs are not permitted", {"top_p": 0.5}),
    ("max_completion_tokens", "body.max_completion_tokens: extra fields not permitted", {"max_tokens": 500}),
]


@both_ways
@pytest.mark.parametrize(("name", "said", "options"), REFUSED)
def test_a_refused_parameter_is_left_out_and_the_model_remembers_it(small_index, streaming, name, said, options):
    with serve(refuse_until(lambda request: name not in request, said)) as server:
        agent = create_arag_agent(load_model(f"openai:m@{server.url}", **options), small_index, tools="paper")
        for _ in range(2):
            state = ask(server, small_index, streaming=streaming, agent=agent)
            assert (state["answer"], state["stop_reason"], state["usage"]["model_calls"]) == (ANSWER, "answered", 2)
    assert [name in request for request in server.requests] == [True, False, False, False, False]


def test_a_refused_parameter_of_streams_is_left_out(small_index):
    with serve(refuse_until(lambda request: "stream_options" not in request, "stream_options: extra", 422)) as server:
        assert ask(server, small_index, streaming=True)["answer"] == ANSWER
    assert len(server.requests) == 3


@both_ways
def test_a_server_without_a_system_role_gets_the_instructions_with_the_question(small_index, streaming):
    with serve(refuse_until(lambda request: "system" not in roles(request), "System role not supported")) as server:
        assert ask(server, small_index, streaming=streaming)["answer"] == ANSWER
    first, second, *_ = server.requests
    instructions, question = (sent["content"] for sent in first["messages"])
    assert second["messages"] == [{"role": "user", "content": f"{instructions}\n\n{question}"}]


@both_ways
def test_contents_are_never_null_and_names_of_calls_have_no_dots(small_index, streaming):
    def is_fine(request):
        calls = [call for sent in request["messages"] for call in sent.get("tool_calls", ())]
        has_dots = any("." in call["function"]["name"] for call in calls)
        return not has_dots and all(sent["content"] is not None for sent in request["messages"])

    dotted = chat(None, ("call_1", "functions.keyword_search", SEARCH[2]))
    with serve(refuse_until(is_fine, "invalid", replies=dotted)) as server:
        assert ask(server, small_index, streaming=streaming)["answer"] == ANSWER


def test_ids_are_shortened_for_a_server_that_wants_short_ones(small_index):
    def is_fine(request):
        ids = [call["id"] for sent in request["messages"] for call in sent.get("tool_calls", ())]
        ids += [sent["tool_call_id"] for sent in request["messages"] if "tool_call_id" in sent]
        return all(len(each) == 9 and each.isalnum() for each in ids) and len(set(ids)) <= 1

    said = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    with serve(refuse_until(is_fine, said)) as server:
        assert ask(server, small_index)["answer"] == ANSWER


@both_ways
def test_reasoning_is_sent_back_to_a_server_that_wants_it(small_index, streaming):
    def is_fine(request):
        calling = [sent for sent in request["messages"] if sent.get("tool_calls")]
        return all(sent.get("reasoning_content") == "First him." for sent in calling)

    calling = chat(None, SEARCH)
    calling["choices"][0]["message"]["reasoning_content"] = "First him."
    said = "The `reasoning_content` in the thinking mode must be passed back to the API."
    with serve(refuse_until(is_fine, said, replies=calling)) as server:
        assert ask(server, small_index, streaming=streaming)["answer"] == ANSWER
    assert "reasoning_content" not in server.requests[1]["messages"][2]  # others are not sent it


def test_anthropics_api_may_refuse_a_parameter_too(small_index):
    script = [
        Failure(400, message="`temperature` is deprecated for this model."),
        message(tool_use("call_1", "keyword_search", {"keywords": ["Lothair II"]})),
        message(anthropic_server.text(ANSWER)),
    ]
    with anthropic_server.serve(script) as server:
        model = load_model(f"anthropic:some-claude@{server.url}", temperature=0.5)
        assert create_arag_agent(model, small_index, tools="paper").invoke(asked())["answer"] == ANSWER
    assert ["temperature" in request for request in server.requests] == [True, False, False]


@both_ways
@pytest.mark.parametrize(("status", "said"), [(400, "failed_generation"), (500, "error parsing tool call: raw")])
def test_a_call_that_the_server_could_not_read_is_asked_for_again(small_index, streaming, status, said):
    script = [Failure(status, message=said), chat(None, SEARCH), chat(ANSWER)]
    with serve(script) as server:
        assert ask(server, small_index, streaming=streaming)["answer"] == ANSWER


def test_a_reply_that_is_no_stream_is_read_whole(small_index):
    def respond(_, request):
        if request.pop("stream", False):
            return Failure(200)
        return chat(ANSWER)

    with serve(respond) as server:
        assert ask(server, small_index, streaming=True)["answer"] == ANSWER


# --- a context that is full ---


def count_shown(request):
    return sum(sent["role"] == "tool" and "left out" not in sent["content"] for sent in request["messages"])


@both_ways
def test_the_oldest_results_go_when_the_context_is_full(small_index, streaming):
    reads = [["lothair:0"], ["teutberga:0"], ["boso:0"]]

    def respond(_, request):
        if count_shown(request) > 2:
            return Failure(400, message=TOO_LONG)
        done = roles(request).count("tool")
        if done == len(reads):
            return chat(ANSWER)
        return chat(None, (f"call_{done}", "chunk_read", json.dumps({"chunk_ids": reads[done]})))

    with serve(respond) as server:
        state = ask(server, small_index, streaming=streaming)
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "answered")
    assert [count_shown(request) for request in server.requests] == [0, 1, 2, 3, 2]


def test_a_prompt_that_was_too_long_is_not_sent_again(small_index):
    def respond(number, request):
        if len(json.dumps(request["messages"])) > 7000:
            return Failure(400, message=TOO_LONG)
        reads = sum(sent["role"] == "tool" for sent in request["messages"])
        if reads == 6:
            return chat(ANSWER)
        return chat(None, (f"call_{number}", "chunk_read", json.dumps({"chunk_ids": [f"annals:{reads}"]})))

    with serve(respond) as server:
        state = ask(server, small_index)
    refused = len(server.requests) - state["usage"]["model_calls"]
    assert (state["answer"], state["steps"]) == (ANSWER, 7)
    assert refused <= 2


@both_ways
def test_an_answer_is_forced_when_nothing_more_can_go(small_index, streaming):
    def respond(_, request):
        if count_shown(request):
            return Failure(400, message=TOO_LONG)
        if request.get("tools"):
            return chat(None, ("call_1", "chunk_read", json.dumps({"chunk_ids": ["annals:0", "annals:1"]})))
        if len(request["messages"][-1]["content"]) > 4000:
            return Failure(400, message=TOO_LONG)
        return chat(ANSWER)

    with serve(respond) as server:
        state = ask(server, small_index, streaming=streaming)
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "token_budget", 1)
    lengths = [len(request["messages"][-1]["content"]) for request in server.requests if not request.get("tools")]
    assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize("said", [TOO_LONG, TOO_LONG_FOR_LLAMA])
def test_a_question_that_is_too_long_is_a_clear_error(small_index, said):
    with (
        serve([Failure(400, message=said)]) as server,
        pytest.raises(
            ModelError,
            match=r"longer than the context of some-model: give it a longer one \(" + re.escape(said.rstrip(".")),
        ),
    ):
        ask(server, small_index)


def test_a_local_server_is_asked_for_its_context_and_never_sent_more(small_index):
    with serve(lambda *_: chat(ANSWER)) as server:
        model = load_model(f"openai:m@{server.url}")
        server.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": 4096}, {"id": "other"}]}
        assert model.invoke("word " * 3000).text == ANSWER
        for call in (
            model.invoke,
            lambda text: list(model.stream(text)),
            lambda text: asyncio.run(model.ainvoke(text)),
        ):
            with pytest.raises(ModelError, match="the context of m only 4,096"):
                call("word " * 9000)
    assert len(server.requests) == 1


# --- failures have a cause and a remedy ---


@both_ways
@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(400, message="gemma3:4b does not support tools"), "cannot call tools there: choose a model that can"),
        (Failure(400, message="requires --enable-auto-tool-choice"), "start vLLM with --enable-auto-tool-choice"),
        (Failure(500, message="tools param requires --jinja flag"), "start .*, llama.cpp with --jinja"),
        (Failure(400, message="Unable to generate parser for this template."), "and a chat template that has tools"),
        (Failure(400, message="Conversation roles must alternate user/assistant/..."), "cannot call tools there"),
        (Failure(401, message="Incorrect API key"), "the key is refused: check OPENAI_API_KEY"),
        (Failure(429, message="You exceeded your current quota"), "no credit is left"),
        (Failure(429, {"Retry-After": "3600"}, message="Daily limit"), "the server asks to wait 3,600 seconds: Daily"),
        (Failure(503, message="Loading model"), "still loading some-model: ask again in a moment"),
        (Failure(500, message="model requires more system memory"), "too little memory for some-model"),
        (Failure(502, page=True), "replied with a web page, not the model"),
        (Failure(200, page=True), "replied with a web page"),
        (chat() | {"choices": []}, "replied with no chat completion"),
        ({"error": {"message": "Provider returned error", "code": 400}}, "status 400: Provider returned error"),
    ],
)
def test_a_failure_says_why_and_what_helps(small_index, streaming, failure, said):
    def respond(_, request):
        return failure if request else Failure(400)  # an empty request asks whether the protocol is there

    with serve(respond) as server:
        if isinstance(failure, dict):
            server.events = lambda *_: iter(())
        with pytest.raises(ModelError, match=said) as caught:
            ask(server, small_index, streaming=streaming, max_retries=1)
    assert "\n" not in str(caught.value)


@both_ways
@pytest.mark.parametrize("path", ["", "/v1/chat/completions", "/api/v1"])
def test_the_right_address_is_named(small_index, path, streaming):
    with serve(lambda _, request: chat(ANSWER) if request else Failure(422)) as server:
        right = server.url
        server.url = right.removesuffix("/v1") + path
        with pytest.raises(ModelError, match=f"not at {server.url}, but at {right}: use that address"):
            ask(server, small_index, streaming=streaming)


def test_the_models_that_a_server_has_are_named(small_index):
    with serve([Failure(404, message="The model `qwen3` does not exist.")]) as server:
        server.pages["/v1/models"] = {"data": [{"id": "gemma3:4b"}, {"id": "qwen3:8b"}]}
        with pytest.raises(ModelError, match="the server has no model qwen3; it has qwen3:8b, gemma3:4b"):
            ask(server, small_index, name="qwen3")


@pytest.mark.parametrize(("options", "sent"), [({}, "Bearer secret"), ({"api_key": "other"}, None)])
def test_the_environments_key_is_not_sent_to_a_server_that_has_another_one(monkeypatch, options, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with serve([Failure(404, message="The model `m` does not exist.")]) as server, pytest.raises(ModelError):
        load_model(f"openai:m@{server.url}", **options).invoke("Who?")
    assert [headers.get("authorization") for headers in server.page_headers] == [sent]


def test_a_refused_key_is_named_by_its_variable():
    refusal = Exception({"code": 401, "message": "API key not valid"})
    said = {provider: describe_failure(refusal, Server(provider, "m", None)) for provider in ("openai", "google_genai")}
    assert "check OPENAI_API_KEY (API key not valid)" in said["openai"]
    assert "check GOOGLE_API_KEY (API key not valid)" in said["google_genai"]


def test_nobody_listens_and_hosts_that_do_not_exist(small_index):
    with serve(lambda *_: chat(ANSWER)) as server:
        pass
    with pytest.raises(ModelError, match=f"no server listens at {server.url}: start it"):
        ask(server, small_index)
    with serve(lambda *_: chat()) as server:
        server.url = server.url.replace("http:", "https:")
        with pytest.raises(ModelError, match="does not speak TLS: write http://"):
            ask(server, small_index)


def test_a_dead_proxy_is_named(small_index, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serve(lambda *_: chat(ANSWER)) as server, pytest.raises(ModelError, match="the proxy of HTTP_PROXY"):
        ask(server, small_index, max_retries=0)


@pytest.mark.parametrize("given", ["secret\n", " secret", "secret\r", "Bearer secret", "“secret”"])
def test_a_key_is_sent_without_what_was_copied_with_it_which_is_said(small_index, monkeypatch, given):
    monkeypatch.setenv("OPENAI_API_KEY", given)
    said = "OPENAI_API_KEY has blanks, quotes or more around the key"
    with serve([chat(ANSWER)] * 2) as server, pytest.warns(UserWarning, match=said):
        ask(server, small_index)
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_a_key_that_no_server_takes_is_refused(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "ключ")
    with pytest.raises(ModelError, match="OPENAI_API_KEY holds no key"):
        load_model("openai:gpt-5-mini")


# --- time limits ---


@both_ways
@pytest.mark.parametrize("response", [Comments(), Failure(hang=True)])
def test_a_call_has_one_time_limit_whatever_keeps_its_connection_open(small_index, response, streaming):
    with serve(lambda *_: response) as server:
        with pytest.raises(ModelError, match=r"within 0.5 seconds: allow more with the option timeout"):
            ask(server, small_index, streaming=streaming, timeout=0.5)
        model = load_model(f"openai:m@{server.url}", timeout=0.5, streaming=streaming)
        with pytest.raises(ModelError, match=r"within 0.5 seconds"):
            asyncio.run(model.ainvoke("Who?"))
    assert len(server.requests) == 2  # it is not tried again: the server may still be at work


def test_the_limit_of_a_client_is_named_as_that():
    with serve(lambda *_: Failure(hang=True)) as server:
        model = load_model(f"openai:m@{server.url}", timeout=httpx.Timeout(0.5), max_retries=0)
        with pytest.raises(ModelError, match="no complete reply within the client's own limit: allow more"):
            model.invoke("Who?")


# --- a run that failed goes on ---


def test_a_run_that_failed_goes_on_in_its_thread(small_index):
    with serve([chat(None, SEARCH), Failure(400, message="Something broke"), chat(ANSWER)]) as server:
        model = load_model(f"openai:m@{server.url}")
        agent = create_arag_agent(model, small_index, tools="paper", checkpointer=InMemorySaver())
        with pytest.raises(ModelError, match="Something broke"):
            agent.invoke(asked(), in_thread())
        state = agent.invoke(None, in_thread())
    assert (state["answer"], state["steps"], len(state["trace"])) == (ANSWER, 2, 1)


def test_a_result_that_the_model_was_not_sent_is_shown_again(small_index):
    script = [
        call("keyword_search", keywords=["Lothair II"]),
        call("chunk_read", chunk_ids=["teutberga:0"]),
        call("chunk_read", chunk_ids=["boso:0"]),
        call("chunk_read", chunk_ids=["lothair:0"]),
    ]
    again = [calls(*[(made["name"], made["args"]) for reply in script[:2] for made in reply.tool_calls])]
    model = ScriptedModel(*script, ContextOverflowError("too long"), *again, AIMessage(ANSWER))
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    shown = [result.text for result in results(state)]
    assert "She died in 875." in shown[1]
    assert "He married Teutberga" in shown[4]
    assert "She died in 875." in shown[5]


def test_overflow_of_any_chat_model_forces_an_answer(small_index):
    class TooLongError(ValueError):
        status_code = 400

    calling = AIMessage("", tool_calls=[{"name": "chunk_read", "args": {"chunk_ids": ["boso:0"]}, "id": "1"}])
    model = ScriptedModel(calling, TooLongError("prompt is too long: 9 tokens > 8 maximum"), AIMessage(ANSWER))
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "token_budget")
    assert isinstance(model.calls[-1].messages[0], SystemMessage)


# --- the command line ---


@pytest.fixture
def index(arag, quick_embedder, tmp_path):
    """Where an index is that the command line opens."""
    folder = tmp_path / "index"
    assert arag("ingest", write_corpus(tmp_path / "corpus", DOCUMENTS), "--index", folder)[0] == 0
    return folder


def test_ask_goes_on_after_a_failure(arag, index):
    with serve([chat(None, SEARCH), Failure(400, message="Something broke"), chat(ANSWER)]) as server:
        options = ["--model", f"openai:m@{server.url}", "--tools", "paper", "--index", index]
        code, _, err = arag("ask", QUESTION, *options)
        assert (code, "What was found is kept: go on with arag ask --resume --index " in err) == (1, True)
        code, out, _ = arag("ask", "--resume", *options, "--json")
    record = json.loads(out)
    assert (code, record["question"], record["answer"], record["steps"]) == (0, QUESTION, ANSWER, 2)
    assert len(record["trace"]) == 1
    code, _, err = arag("ask", "--resume", *options)
    assert (code, "no unfinished question" in err) == (1, True)


def test_a_question_that_failed_before_it_found_anything_is_not_kept(arag, index):
    with serve([Failure(400, message="Something broke")]) as server:
        _, _, err = arag("ask", QUESTION, "--model", f"openai:m@{server.url}", "--index", index)
    assert "--resume" not in err
    assert "no unfinished question" in arag("ask", "--resume", "--index", index)[2]
    assert "the question is missing" in arag("ask", "--index", index)[2]
    assert "give no other one" in arag("ask", "q", "--resume", "--index", index)[2]


def test_what_is_kept_of_a_question_has_no_key_and_no_address(arag, index, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret-key")
    with serve([chat(None, SEARCH), Failure(400, message="Something broke")]) as server:
        arag("ask", QUESTION, "-m", f"openai:m@{server.url}", "--tools", "paper", "-i", index)
    (kept,) = (tmp_path / "state" / "arag" / "unfinished").iterdir()
    text = kept.read_text("utf-8")
    assert (QUESTION in text, "s3cret-key" in text, "127.0.0.1" in text) == (True, False, False)
    assert kept.stat().st_mode & 0o077 == 0


def test_ask_takes_a_cap_of_costs(arag, index, monkeypatch):
    search, answer = (reply | {"model": "gpt-5-mini"} for reply in (chat(None, SEARCH), chat(ANSWER)))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serve([search, answer]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        options = ["--model", "openai:gpt-5-mini", "--tools", "paper", "--index", index, "--json", "--max-cost"]
        code, out, _ = arag("ask", QUESTION, *options, 0.00001)
        refused = arag("ask", QUESTION, *options, 0)
    assert (code, json.loads(out)["stop_reason"]) == (0, "max_cost")
    assert (refused[0], "max_cost: Input should be greater than 0" in refused[2]) == (1, True)


def test_ask_takes_a_smaller_context(arag, index):
    read = ("call_1", "chunk_read", json.dumps({"chunk_ids": ["annals:0", "annals:1"]}))
    with serve([chat(None, read), chat(ANSWER)]) as server:
        options = ["--model", f"openai:m@{server.url}", "--tools", "paper", "--index", index]
        code, out, _ = arag("ask", QUESTION, *options, "--max-context-tokens", 2000, "--json")
    assert (code, json.loads(out)["stop_reason"]) == (0, "token_budget")
