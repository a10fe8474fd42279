"""The border to providers: odd calls, callers' own models, other providers' classes, certificates."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import ssl

import openai
import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import ConfigurableField
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import anthropic_server
import openai_server
from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from http_server import Cut, Failure
from openai_server import chat, function_call, response, serve
from scripted import ANSWER as GOOD
from scripted import Request, ScriptedModel, asked

ANSWER = GOOD.text
ARGUMENTS = json.dumps({"keywords": ["Lothair II"]})
OTHER = json.dumps({"keywords": ["Boso"]})
CALL = chat(None, ("call_1", "keyword_search", ARGUMENTS))
both_ways = pytest.mark.parametrize("streaming", [False, True])


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr("arag.models.pauses._FIRST_PAUSE_SECONDS", 0.0)


def run(model, index, *, streaming=False, **settings):
    """Ask the question; return the state."""
    agent = create_arag_agent(model, index, tools="paper", **settings)
    if not streaming:
        return agent.invoke(asked())
    return list(agent.stream(asked(), stream_mode=["messages", "values"]))[-1][1]


# --- calls that LangChain would refuse or lose ---

ODD_ARGUMENTS = {
    "an object": {"keywords": ["Lothair II"]},
    "twice as JSON": json.dumps(ARGUMENTS),
    "a list": '["Lothair II"]',
    "in a list": f"[{ARGUMENTS}]",
    "text behind": f"{ARGUMENTS}}}",
    "Python's quotes": "{'keywords': ['Lothair II']}",
}


@both_ways
@pytest.mark.parametrize("form", ODD_ARGUMENTS)
def test_arguments_of_any_form_are_read_the_same_way_streamed_and_whole(small_index, form, streaming):
    arguments = ODD_ARGUMENTS[form]
    calling = chat(None, ("call_1", "keyword_search", arguments))
    if isinstance(arguments, dict):
        calling["deltas"] = [piece("keyword_search", arguments, id="call_1", index=0)]
    with serve([calling, chat(ANSWER)]) as server:
        state = run(load_model(f"openai:m@{server.url}"), small_index, streaming=streaming)
    assert (state["answer"], state["steps"]) == (ANSWER, 2)
    [record] = state["trace"]
    assert (record["arguments"], record["error"]) == ({"keywords": ["Lothair II"]}, None)


@both_ways
@pytest.mark.parametrize("arguments", ['{"keywords": ["Lothair I', f"{ARGUMENTS}{OTHER}"])
def test_calls_that_are_not_clear_are_refused_the_same_way_streamed_and_whole(small_index, arguments, streaming):
    calling = chat(None, ("call_1", "keyword_search", arguments))
    calling["choices"][0]["finish_reason"] = "length"
    with serve([calling, chat(ANSWER)]) as server:
        state = run(load_model(f"openai:m@{server.url}"), small_index, streaming=streaming)
    assert "not valid JSON" in state["trace"][0]["error"]


def piece(name=None, arguments=None, **fields):
    """Return a piece of a call, as streams have it."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{"type": "function", "function": function, **fields}]}


BEGIN, END = ARGUMENTS[:9], ARGUMENTS[9:]
PIECES = {
    "no number": [piece("keyword_search", "", id="a"), piece(None, BEGIN), piece(None, END)],
    "null": [
        piece("keyword_search", "", id="a", index=None),
        piece(None, BEGIN, index=None),
        piece(None, END, index=None),
    ],
    "another number": [piece("keyword_search", "", id="a", index=0), piece(None, ARGUMENTS, index=1)],
    "the name in each piece": [
        piece("keyword_search", "", id="a", index=None),
        piece("keyword_search", BEGIN, id="a", index=None),
        piece("keyword_search", END, id="a", index=None),
    ],
    "all of it again at the end": [
        piece("keyword_search", ARGUMENTS, id="a", index=0),
        piece("keyword_search", ARGUMENTS, id="a", index=0),
    ],
    "a name in two pieces": [
        piece("keyword_", "", id="a", index=0),
        piece("search", "", index=0),
        piece(None, ARGUMENTS, index=0),
    ],
}


@pytest.mark.parametrize("form", PIECES)
def test_the_pieces_of_a_streamed_call_are_joined(small_index, form):
    with serve([CALL | {"deltas": PIECES[form]}, chat(ANSWER)]) as server:
        state = run(load_model(f"openai:m@{server.url}"), small_index, streaming=True)
    [record] = state["trace"]
    assert (record["arguments"], record["error"]) == ({"keywords": ["Lothair II"]}, None)


@pytest.mark.parametrize("number", [{}, {"index": 0}])
def test_two_calls_with_the_same_number_or_none_stay_two(small_index, number):
    deltas = [
        piece("keyword_search", BEGIN, id="a", **number),
        piece(None, END, **number),
        piece("keyword_search", OTHER[:5], id="b", **number),
        piece(None, OTHER[5:], **number),
    ]
    with serve([CALL | {"deltas": deltas}, chat(ANSWER)]) as server:
        state = run(load_model(f"openai:m@{server.url}"), small_index, streaming=True)
    assert [record["arguments"]["keywords"] for record in state["trace"]] == [["Lothair II"], ["Boso"]]


def test_a_stream_that_cannot_be_read_is_asked_for_whole(small_index):
    with serve([CALL, chat(ANSWER) | {"deltas": [{"content": ""}, None]}, chat(ANSWER)]) as server:
        state = run(load_model(f"openai:m@{server.url}"), small_index, streaming=True)
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "answered")


# --- the caller's own models ---


class CutOffModel(ScriptedModel):
    """Streams a call that is cut off; it has no asynchronous stream of its own."""

    def _stream(self, messages, stop=None, run_manager=None, **options):
        piece = tool_call_chunk(name="keyword_search", args='{"keywords": ["Lo', id="1", index=0)
        reply = AIMessageChunk("", tool_call_chunks=[piece])
        if self.calls:
            reply = AIMessageChunk(ANSWER)
        self.calls.append(Request(messages=messages, options=options))
        yield ChatGenerationChunk(message=reply)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_passes_the_border_once(small_index, asynchronous):
    agent = create_arag_agent(CutOffModel(), small_index, tools="paper")

    async def last():
        return [state async for _, state in agent.astream(asked(), stream_mode=["messages", "values"])][-1]

    state = asyncio.run(last()) if asynchronous else run(CutOffModel(), small_index, streaming=True)
    assert ["not valid JSON" in record["error"] for record in state["trace"]] == [True]


@both_ways
def test_options_that_are_bound_to_a_model_are_sent_and_those_of_a_call_replace_them(small_index, streaming):
    with serve([CALL, chat(ANSWER)]) as server:
        model = load_model(f"openai:m@{server.url}", temperature=0).bind(stop=["###"], temperature=0.5)
        state = run(model, small_index, streaming=streaming)
    assert state["answer"] == ANSWER
    assert [(request["stop"], request["temperature"]) for request in server.requests] == [(["###"], 0.5)] * 2


@both_ways
def test_a_model_that_the_caller_made_passes_the_border_and_keeps_its_errors(small_index, streaming):
    def respond(number, request):
        if "parallel_tool_calls" in request:
            return Failure(400, message="Unknown parameter: 'parallel_tool_calls'.")
        if request["messages"][-1]["role"] == "tool":
            return Failure(400, message="Something broke") if number > 4 else chat(f"<think>Judith?</think>{ANSWER}")
        return chat(None, ("call_1", "keyword_search", '["Lothair II"]'))

    with serve(respond) as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key="none", max_retries=0)
        assert run(model, small_index, streaming=streaming)["answer"] == ANSWER
        with pytest.raises(openai.BadRequestError, match="Something broke"):
            run(model, small_index, streaming=streaming)
    assert type(model) is ChatOpenAI  # it is not changed


def openai_model(server, **options):
    return ChatOpenAI(model="m", base_url=server.url, api_key="none", max_retries=0, **options)


def fails_with(failure):
    """Respond with a search, then with a failure."""

    def respond(_, request):
        return failure if request["messages"][-1]["role"] == "tool" else CALL

    return respond


REASONS = {
    "a broken stream": (
        Cut(chat(ANSWER), 5, drops=True),
        openai.APIConnectionError,
        "/v1 closed the connection without a complete reply",
    ),
    "a busy server": (Failure(429, message="Slow down"), openai.RateLimitError, "ask again later"),
    "another model": (Failure(404, message="no such model"), openai.NotFoundError, "it has qwen3"),
    "silence": (Failure(hang=True), openai.APITimeoutError, "allow more with its option timeout"),
}


@both_ways
@pytest.mark.parametrize("kind", REASONS)
def test_an_error_of_a_model_that_the_caller_made_says_what_helps(small_index, kind, streaming):
    failure, error_class, reason = REASONS[kind]
    with serve(fails_with(failure)) as server:
        server.pages["/v1/models"] = {"data": [{"id": "qwen3"}]}
        with pytest.raises(error_class, match=reason) as raised:
            run(openai_model(server, timeout=1.0), small_index, streaming=streaming)
    assert isinstance(raised.value, openai.APIError)


def test_an_error_of_a_callers_own_class_stays_as_it_is(small_index):
    class Broken(ScriptedModel):
        def _generate(self, *_, **__):
            raise AttributeError("'Broken' object has no attribute 'choices'")

    with pytest.raises(AttributeError) as raised:
        run(Broken(), small_index)
    assert str(raised.value) == "'Broken' object has no attribute 'choices'"


def choose_fields(url):
    from langchain.chat_models import init_chat_model

    return init_chat_model(
        "m", model_provider="openai", configurable_fields=("temperature",), base_url=url, api_key="none"
    )


def choose_own_fields(url):
    model = ChatOpenAI(model="m", base_url=url, api_key="none")
    return model.configurable_fields(temperature=ConfigurableField(id="temperature"))


def choose_alternatives(url):
    model = ChatOpenAI(model="m", base_url="http://127.0.0.1:1", api_key="none")
    other = ChatOpenAI(model="m", base_url=url, api_key="none", temperature=0.5)
    return model.configurable_alternatives(ConfigurableField(id="llm"), other=other)


CHOSEN = {"configurable": {"temperature": 0.5, "llm": "other"}}


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("choose", [choose_fields, choose_own_fields, choose_alternatives])
def test_a_model_that_a_run_chooses_is_repaired_the_same_way_streamed_and_whole(small_index, choose, bound):
    def respond(number, request):
        if "parallel_tool_calls" in request:
            return Failure(400, message="Unknown parameter: 'parallel_tool_calls'.")
        if request["messages"][-1]["role"] == "tool":
            return chat(f"<think>Judith?</think>{ANSWER}")
        return chat(f'<tool_call>{{"name": "keyword_search", "arguments": {ARGUMENTS}}}</tool_call>')

    with serve(respond) as server:
        model = choose(server.url)
        if bound:
            model = model.bind(seed=7).with_fallbacks([model])
        agent = create_arag_agent(model, small_index, tools="paper")
        whole = agent.invoke(asked(), CHOSEN)
        asked_before = len(server.requests)
        shown = ""
        for mode, part in agent.stream(asked(), CHOSEN, stream_mode=["messages", "values"]):
            if mode == "values":
                streamed = part
            elif part[0].type in {"AIMessageChunk", "ai"}:  # LangChain streams not all of them
                shown += part[0].text
    assert shown == ANSWER
    for state in (whole, streamed):
        assert (state["answer"], len(state["trace"])) == (ANSWER, 1)
    assert {request["temperature"] for request in server.requests} == {0.5}
    assert ["parallel_tool_calls" in request for request in server.requests].count(True) == 1  # it is remembered
    assert len(server.requests) == asked_before + 2
    if bound:
        assert {request["seed"] for request in server.requests} == {7}


def test_models_that_runs_choose_are_kept_apart_by_their_keys(small_index):
    from langchain.chat_models import init_chat_model

    with serve(lambda *_: chat(ANSWER)) as server:
        model = init_chat_model("openai:m", configurable_fields=["api_key"], base_url=server.url)
        agent = create_arag_agent(model, small_index, tools="paper", max_steps=1)
        for key in ("one", "two", SecretStr("three"), SecretStr("four"), "one"):
            agent.invoke(asked(), {"configurable": {"api_key": key}})
        keys = [headers["authorization"].split()[1] for headers in server.headers]
    assert list(dict.fromkeys(keys)) == ["one", "two", "three", "four"]
    assert keys[-1] == "one"


# --- classes of other providers ---


@both_ways
@pytest.mark.parametrize(("provider", "package"), [("groq", "langchain_groq"), ("mistralai", "langchain_mistralai")])
def test_models_of_other_classes_leave_out_what_is_refused(small_index, monkeypatch, provider, package, streaming):
    pytest.importorskip(package)
    monkeypatch.setenv("GROQ_API_KEY", "key")
    monkeypatch.setenv("MISTRAL_API_KEY", "key")

    def respond(_, request):
        if "temperature" in request:
            return Failure(400, message="Unsupported value: 'temperature'")
        if any(sent["role"] == "system" for sent in request["messages"]):
            return Failure(400, message="System role not supported")
        return chat(ANSWER) if request["messages"][-1]["role"] == "tool" else CALL

    with serve(respond) as server:
        address = server.url.removesuffix("/v1") if provider == "groq" else server.url
        server.base = ""  # each class has paths of its own
        model = load_model(f"{provider}:m@{address}", temperature=0.25)
        for _ in range(2):
            assert run(model, small_index, streaming=streaming)["answer"] == ANSWER
    assert len(server.requests) == 6  # what was refused is remembered


# --- the Responses API ---


@both_ways
def test_the_responses_api_leaves_out_what_is_refused_and_its_failures_say_why(small_index, streaming):
    def respond(number, request):
        if "temperature" in request:
            return Failure(400, message="Unsupported parameter: 'temperature' is not supported with this model.")
        if request["input"][-1].get("type") == "function_call_output":
            return Failure(404, message="The model `m` does not exist")
        return response(number, function_call("call_1", "keyword_search", ARGUMENTS))

    with serve(respond) as server:
        server.pages["/v1/models"] = {"data": [{"id": "qwen3"}]}
        model = load_model(f"openai:m@{server.url}", use_responses_api=True, temperature=0.25)
        with pytest.raises(ModelError, match="the server has no model m; it has qwen3"):
            run(model, small_index, streaming=streaming)
    assert ["temperature" in request for request in server.requests] == [True, False, False]


@both_ways
def test_a_refusal_in_the_responses_api_is_shown_as_one(small_index, streaming):
    refused = response(1, openai_server.text(""))
    refused["output"][0]["content"] = [{"type": "refusal", "refusal": "I cannot help with that."}]
    search = response(0, function_call("call_1", "keyword_search", ARGUMENTS))
    with serve([search, refused]) as server:
        model = load_model(f"openai:m@{server.url}", use_responses_api=True)
        state = run(model, small_index, streaming=streaming)
    assert (state["answer"], state["stop_reason"]) == ("I cannot help with that.", "refused")


# --- certificates ---


@pytest.fixture
def certificate(tmp_path):
    """The file of a certificate for 127.0.0.1 that nobody has signed, with its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


@both_ways
@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_certificate_that_is_not_trusted_and_a_wrong_scheme_are_named(
    small_index, monkeypatch, certificate, api, streaming
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    module = openai_server if api == "openai" else anthropic_server
    with module.serve([]) as server:
        server.secure(context)
        secure = server.url.replace("http:", "https:")
        for address, said in ((secure, "name its CA's file in SSL_CERT_FILE"), (server.url, "speaks TLS: write https")):
            with pytest.raises(ModelError, match=said):
                run(load_model(f"{api}:m@{address}", max_retries=0), small_index, streaming=streaming)


# --- keys ---


@pytest.mark.parametrize("key", ["sk\x00abc", "sk-a\nbc", "sk-\x1b[31m", "sk abc"])
def test_a_key_with_characters_that_no_key_has_is_refused_before_a_request_and_not_shown(key):
    with serve([]) as server, pytest.raises(ModelError, match="the option api_key holds no key") as raised:
        load_model(f"openai:m@{server.url}", api_key=key)
    assert key not in str(raised.value)


def test_a_key_of_a_callers_model_that_cannot_be_sent_is_named_as_the_cause(small_index):
    with serve([]) as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key="sk\x00abc", max_retries=0)
        with pytest.raises(openai.APIConnectionError, match="a character that cannot be sent: correct OPENAI_API_KEY"):
            run(model, small_index)
