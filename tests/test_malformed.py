"""Responses of status 200 that cannot be read: failed calls, tried as often as clients try, and then a sentence."""

from __future__ import annotations

import asyncio
import json

import pytest

import anthropic_server
import openai_server
from arag.errors import EmbedderError, ModelError
from arag.graph.graph import create_arag_agent
from arag.models.asking import is_provider_error
from arag.models.chat import load_model
from arag.models.embedders import load_embedder
from eval_runs import answer, questions
from http_server import Raw
from scripted_model import asked

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings", "no_pauses")

ANSWER = "Boso the Elder."
APIS = {
    "chat": (openai_server, openai_server.chat(ANSWER), "openai:m", {}),
    "responses": (
        openai_server,
        openai_server.response(0, openai_server.text(ANSWER)),
        "openai:m",
        {"use_responses_api": True},
    ),
    "messages": (anthropic_server, anthropic_server.message(anthropic_server.text(ANSWER)), "anthropic:m", {}),
}
MALFORMED = {
    "cut off": lambda text: Raw(text[: len(text) // 2]),
    "a page": lambda _: Raw(b"<html>It works!</html>", {"Content-Type": "text/html"}),
    "a page that is called JSON": lambda _: Raw(b"<html>It works!</html>"),
    "nothing": lambda _: Raw(b""),
    "null": lambda _: Raw(b"null"),
    "a list": lambda _: Raw(b"[]"),
    "an empty object": lambda _: Raw(b"{}"),
    "other types": lambda text: Raw(json.dumps(dict.fromkeys(json.loads(text), 7)).encode()),
    "nested too deeply": lambda _: Raw(b"[" * 100_000),
    "no gzip": lambda _: Raw(b"garbage" * 9, {"Content-Encoding": "gzip"}),
    "another charset": lambda _: Raw('{"id": "Müller"}'.encode("latin-1")),
    "a connection that closes early": lambda text: Raw(text[:40], {"Content-Length": str(len(text))}),
    "cut off events": lambda _: Raw(b'data: {"id":\n\ndata: [DONE]\n\n', {"Content-Type": "text/event-stream"}),
}


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr("arag.models.asking.FIRST_PAUSE", 0)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("api", APIS)
def test_a_response_that_cannot_be_read_is_tried_again_and_then_the_models_error(small_index, api, kind):
    server_of, good, name, options = APIS[api]
    bad = MALFORMED[kind](json.dumps(good).encode())
    with server_of.serve([bad, good]) as server:
        model = load_model(f"{name}@{server.url}", max_retries=1, **options)
        assert create_arag_agent(model, small_index).invoke(asked())["answer"] == ANSWER
    with server_of.serve([bad, bad]) as server:
        model = load_model(f"{name}@{server.url}", max_retries=1, **options)
        agent = create_arag_agent(model, small_index)
        with pytest.raises(Exception) as caught:
            asyncio.run(agent.ainvoke(asked()))
    assert is_provider_error(caught.value) or str(caught.value).startswith("the model call failed: ")


@pytest.mark.parametrize("kind", ["cut off", "cut off events", "another charset"])
@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_cannot_be_read_is_tried_again(small_index, api, kind):
    server_of, good, name, options = APIS[api]
    bad = MALFORMED[kind](json.dumps(good).encode())
    with server_of.serve([bad, good]) as server:
        model = load_model(f"{name}@{server.url}", max_retries=1, streaming=True, **options)
        assert create_arag_agent(model, small_index).invoke(asked())["answer"] == ANSWER
    with server_of.serve([bad]) as server:
        model = load_model(f"{name}@{server.url}", max_retries=0, streaming=True, **options)
        with pytest.raises(ModelError, match="the model call failed"):
            create_arag_agent(model, small_index).invoke(asked())


@pytest.mark.parametrize("kind", MALFORMED)
def test_vectors_that_cannot_be_read_are_asked_for_again_and_then_the_embedders_error(kind, monkeypatch):
    monkeypatch.setattr("arag.models.embedders._SERVICE_RETRIES", 1)
    good = openai_server.embeddings([[1.0, 0.0]])
    bad = MALFORMED[kind](json.dumps(good).encode())
    with openai_server.serve([bad, good]) as server:
        assert load_embedder(f"openai:m@{server.url}").embed_query("x").tolist() == [1.0, 0.0]
    with openai_server.serve([bad, bad]) as server, pytest.raises(EmbedderError, match=f"m@{server.url} failed: "):
        load_embedder(f"openai:m@{server.url}").embed_documents(["x"])


@pytest.mark.parametrize("name", ["arag", "naive-rag"])
def test_in_a_run_of_questions_it_is_a_failure_of_each(small_index, tmp_path, name):
    with openai_server.serve([Raw(b'{"choices": [{"mess')] * 6) as server:
        records = answer(small_index, server, questions(6), tmp_path, name=name).values()
    assert len(records) == 6
    assert all("JSON" in record["error"] and record["prediction"] == "" for record in records)


@pytest.mark.parametrize(
    ("option", "message"),
    [("--json", "the response cannot be read as JSON: "), (None, "the response contains no reply; check the server's")],
)
def test_ask_says_it_in_a_sentence(arag, small_index, option, message):
    with openai_server.serve([Raw(b'{"choices": [{"mess')] * 4) as server:
        ask = ["ask", "q", "--index", small_index.path, "--model", f"openai:m@{server.url}"]
        code, out, err = arag(*ask, *filter(None, [option]))
    assert (code, out) == (1, "")
    assert err.startswith(f"Error: the model call failed: {message}")
    assert err.count("\n") == 1
