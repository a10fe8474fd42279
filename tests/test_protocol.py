"""Real HTTP on loopback: OpenAI's chat completions and embeddings, as many servers speak them."""

from __future__ import annotations

import json
import threading
import time

import openai
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from arag.errors import EmbedderError, ModelError
from arag.graph.graph import create_arag_agent
from arag.graph.prompts import EMPTY_REPLY, forced_prompt, system_prompt
from arag.ingest.pipeline import ingest, run_ingest
from arag.models.asking import is_provider_error
from arag.models.chat import load_model
from arag.models.embedders import load_embedder
from arag.retrieval.index import open_index
from arag.retrieval.tools import TOOL_NAMES, make_tools
from arag.testing import ScriptedModel, call
from conftest import write_corpus
from fakes import hash_vector
from openai_server import Cut, Failure, chat, embeddings, serve
from protocol_runs import WAYS, assert_schemas, run_agent, through_json
from scripted_model import DOCUMENTS, QUESTION, asked, in_thread

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

ANSWER = "Boso the Elder: Teutberga was his daughter [teutberga:0]."


def model_at(server, **options):
    return load_model(f"openai:some-model@{server.url}", **options)


def run(index, responses, *, agent_options=None, **options):
    """Answer the question with scripted responses; return the state and the requests."""
    with serve(responses) as server:
        state = create_arag_agent(model_at(server, **options), index, **(agent_options or {})).invoke(asked())
    return state, server.requests


# --- a whole question ---


def test_a_multi_hop_question_message_by_message(small_index):
    search = '{"keywords": ["Lothair II"]}'
    responses = [
        chat(None, ("call_1", "keyword_search", search)),
        chat("Now her.", ("call_2", "chunk_read", '{"chunk_ids": ["teutberga:0"]}')),
        chat(ANSWER),
    ]
    state, requests = run(small_index, responses)

    assert len(requests) == 3
    for request in requests:
        assert request["model"] == "some-model"
        assert request["parallel_tool_calls"] is False
        assert [tool["function"]["name"] for tool in request["tools"]] == list(TOOL_NAMES)
        assert_schemas([tool["function"]["parameters"] for tool in request["tools"]])
        assert "read_chunks" not in json.dumps(request)
        assert "tool_choice" not in request
    properties = {t["function"]["name"]: t["function"]["parameters"]["properties"] for t in requests[0]["tools"]}
    assert {name: sorted(schema) for name, schema in properties.items()} == {
        "keyword_search": ["keywords", "within"],
        "semantic_search": ["queries", "within"],
        "chunk_read": ["about", "chunk_ids"],
    }

    found, read = (m.text for m in state["messages"] if m.type == "tool")
    conversation = [
        {"role": "system", "content": system_prompt(make_tools(small_index))},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [_sent("call_1", "keyword_search", search)]},
        {"role": "tool", "tool_call_id": "call_1", "content": found},
        {
            "role": "assistant",
            "content": "Now her.",
            "tool_calls": [_sent("call_2", "chunk_read", '{"chunk_ids": ["teutberga:0"]}')],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": read},
    ]
    assert "He married Teutberga in 855." in found
    assert read == "[teutberga:0] Teutberga\nTeutberga was a daughter of Boso the Elder. She died in 875."
    assert requests[0]["messages"] == conversation[:2]
    assert requests[1]["messages"] == conversation[:4]
    assert requests[2]["messages"] == conversation

    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 3)
    assert [c["chunk_id"] for c in state["citations"]] == ["teutberga:0"]
    assert state["usage"] == {
        "model_calls": 3,
        "input_tokens": 300,
        "cached_tokens": 120,
        "output_tokens": 30,
        "reasoning_tokens": 9,
    }


def _sent(call_id: str, name: str, arguments: str) -> dict:
    return {"type": "function", "id": call_id, "function": {"name": name, "arguments": arguments}}


def test_several_calls_in_one_message_are_answered_in_order(small_index):
    responses = [
        chat(
            None,
            ("a", "chunk_read", '{"chunk_ids": ["boso:0"]}'),
            ("b", "chunk_read", '{"chunk_ids": ["boso:0"]}'),
            ("c", "keyword_search", '{"keywords": "Boso"}'),
        ),
        chat(ANSWER),
    ]
    _, requests = run(small_index, responses)
    asking, *answers = requests[1]["messages"][2:]
    assert [c["id"] for c in asking["tool_calls"]] == ["a", "b", "c"]
    assert [(m["role"], m["tool_call_id"]) for m in answers] == [("tool", "a"), ("tool", "b"), ("tool", "c")]
    assert "count of Arles" in answers[0]["content"]
    assert answers[1]["content"] == "[boso:0] Shown in full above."
    assert answers[2]["content"].startswith("Boso: 2 chunks")


def test_malformed_arguments_go_back_as_an_error_and_the_next_try_succeeds(small_index):
    responses = [
        chat(None, ("bad", "keyword_search", '{"keywords": ["Bo')),
        chat(None, ("good", "keyword_search", '{"keywords": ["Boso"]}')),
        chat(ANSWER),
    ]
    state, requests = run(small_index, responses)
    asking, error = requests[1]["messages"][2:]
    # Several servers refuse a conversation whose arguments are no JSON object, so they never go back as they came.
    assert asking["tool_calls"] == [_sent("bad", "keyword_search", "{}")]
    assert (error["role"], error["tool_call_id"]) == ("tool", "bad")
    assert 'not valid JSON: \'{"keywords": ["Bo\'' in error["content"]
    assert requests[2]["messages"][-1]["content"].startswith("Boso: 2 chunks")
    assert (state["stop_reason"], state["steps"]) == ("answered", 3)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "arguments", ["", "null", "{}{}", '"text"', "[1, 2]", "3", "true", '"{\\"keywords\\": []}"', "{'keywords': 1}"]
)
def test_arguments_that_are_no_object_never_end_a_run(small_index, arguments, streaming):
    responses = [chat(None, ("x", "keyword_search", arguments)), chat(ANSWER)]
    state, requests = run(small_index, responses, streaming=streaming)
    assert (state["stop_reason"], state["steps"]) == ("answered", 2)
    for message in requests[1]["messages"]:
        for sent in message.get("tool_calls", ()):
            assert isinstance(json.loads(sent["function"]["arguments"]), dict)


def test_empty_arguments_mean_none(small_index):
    _, requests = run(small_index, [chat(None, ("x", "keyword_search", "")), chat(ANSWER)])
    asking, error = requests[1]["messages"][2:]
    assert asking["tool_calls"] == [_sent("x", "keyword_search", "{}")]
    assert "keywords: Field required" in error["content"]


def test_half_characters_in_arguments_and_answers_can_be_sent_on(small_index):
    responses = [chat("\ud83d", ("x", "chunk_read", '{"chunk_ids": ["boso\\ud83d:0"]}')), chat("Boso \ud83d.")]
    state, requests = run(small_index, responses)
    assert "[boso\ufffd:0] There is no chunk with this id." in requests[1]["messages"][-1]["content"]
    assert state["answer"] == "Boso \ufffd."


def test_an_unknown_tool_is_said_to_be_none(small_index):
    state, requests = run(small_index, [chat(None, ("x", "web_search", '{"q": "Boso"}')), chat(ANSWER)])
    assert requests[1]["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "x",
        "content": "There is no tool 'web_search'. The tools are: keyword_search, semantic_search, chunk_read.",
    }
    assert state["stop_reason"] == "answered"


def test_an_empty_reply_is_asked_for_again(small_index):
    state, requests = run(small_index, [chat(""), chat(None), chat(ANSWER)])
    feedback = {"role": "user", "content": EMPTY_REPLY}
    assert requests[2]["messages"][2:] == [feedback]
    assert (state["stop_reason"], state["steps"]) == ("answered", 3)


def test_a_forced_answers_request_has_no_tools_and_no_tool_messages(small_index):
    responses = [chat(None, ("x", "keyword_search", '{"keywords": ["Lothair"]}')), chat(ANSWER)]
    state, requests = run(small_index, responses, agent_options={"max_steps": 1})
    forced = requests[-1]
    assert state["stop_reason"] == "max_steps"
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(forced)
    assert [m["role"] for m in forced["messages"]] == ["system", "user"]
    assert forced["messages"][0]["content"] == forced_prompt()
    evidence = forced["messages"][1]["content"]
    assert evidence.startswith(f"{QUESTION}\n\nWhat was found:\n\n<passages-1>\nLothair: 1 chunk")
    assert evidence.count("He married Teutberga in 855.") == 1


# --- servers that fail ---


@pytest.mark.parametrize("failure", [Failure(429, {"Retry-After": "0"}), Failure(500), Failure(503)], ids=str)
def test_a_passing_failure_is_retried(small_index, failure):
    responses = [failure, chat(None, ("x", "keyword_search", '{"keywords": ["Boso"]}')), chat(ANSWER)]
    state, requests = run(small_index, responses)
    assert requests[0] == requests[1]
    assert (state["stop_reason"], state["steps"], state["usage"]["model_calls"]) == ("answered", 2, 2)


def test_a_lasting_failure_propagates_and_the_run_can_be_resumed(small_index):
    failing = [True]

    def respond(number, request):
        if number == 0:
            return chat(None, ("x", "chunk_read", '{"chunk_ids": ["boso:0"]}'))
        return Failure(500) if failing else chat(ANSWER)

    with serve(respond) as server:
        agent = create_arag_agent(model_at(server, max_retries=1), small_index, checkpointer=InMemorySaver())
        with pytest.raises(openai.InternalServerError, match="scripted failure 500"):
            agent.invoke(asked(), in_thread())
        assert len(server.requests) == 3  # the graph does not retry what the client has retried
        kept = agent.get_state(in_thread())
        assert (kept.next, kept.values["read_chunks"]) == (("agent",), ["boso:0"])
        failing.clear()
        state = agent.invoke(None, in_thread())
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("answered", 2, 1)
    assert server.requests[-1] == server.requests[1]


@pytest.mark.parametrize(
    ("status", "error"), [(400, openai.BadRequestError), (401, openai.AuthenticationError), (404, openai.NotFoundError)]
)
def test_a_refused_request_is_not_repeated(small_index, status, error):
    with serve([Failure(status)]) as server:
        agent = create_arag_agent(model_at(server), small_index)
        with pytest.raises(error):
            agent.invoke(asked())
    assert len(server.requests) == 1


def test_a_server_that_hangs_meets_the_timeout(small_index):
    with serve([Failure(hang=True)]) as server:
        agent = create_arag_agent(model_at(server, timeout=0.5, max_retries=0), small_index)
        began = time.monotonic()
        with pytest.raises(openai.APITimeoutError):
            agent.invoke(asked())
        assert time.monotonic() - began < 30
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_an_error(small_index):
    with serve([]) as server:
        pass
    agent = create_arag_agent(model_at(server, max_retries=0), small_index)
    with pytest.raises(openai.APIConnectionError):
        agent.invoke(asked())


# --- streaming ---


def test_a_streamed_run_gives_tokens_and_the_usage(small_index):
    responses = [
        chat(
            None,
            ("a", "keyword_search", '{"keywords": ["Lothair II"]}'),
            ("b", "chunk_read", '{"chunk_ids": ["boso:0"]}'),
        ),
        chat(ANSWER),
    ]
    with serve(responses) as server:
        agent = create_arag_agent(model_at(server, streaming=True), small_index, checkpointer=InMemorySaver())
        stream = list(agent.stream(asked(), in_thread(), stream_mode="messages"))
        state = agent.get_state(in_thread()).values
    assert all(r["stream"] is True and r["stream_options"] == {"include_usage": True} for r in server.requests)
    pieces = [m.text for m, _ in stream if isinstance(m, AIMessageChunk) and m.text]
    assert len(pieces) > 5
    assert "".join(pieces) == ANSWER
    assert [(c["name"], c["id"]) for c in state["messages"][1].tool_calls] == [
        ("keyword_search", "a"),
        ("chunk_read", "b"),
    ]
    assert [m["tool_call_id"] for m in server.requests[1]["messages"] if m["role"] == "tool"] == ["a", "b"]
    assert state["answer"] == ANSWER
    assert state["usage"] == {
        "model_calls": 2,
        "input_tokens": 200,
        "cached_tokens": 80,
        "output_tokens": 20,
        "reasoning_tokens": 6,
    }


def test_a_server_that_reports_no_usage_is_put_up_with(small_index):
    for streaming in (False, True):
        state, _ = run(small_index, [chat(ANSWER, usage=None)], streaming=streaming)
        assert (state["usage"]["model_calls"], state["usage"]["input_tokens"]) == (1, 0)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_running_asks_the_same(small_index, way):
    responses = [
        chat(None, ("call_1", "keyword_search", '{"keywords": ["Lothair II"]}')),
        chat("Now her.", ("call_2", "chunk_read", '{"chunk_ids": ["teutberga:0"]}')),
        chat(ANSWER),
    ]
    with serve(responses) as server:
        state, pieces = run_agent(create_arag_agent(model_at(server), small_index), way)
    assert [[m["role"] for m in request["messages"]] for request in server.requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
        ["system", "user", "assistant", "tool", "assistant", "tool"],
    ]
    assert (state["answer"], state["steps"], state["usage"]["input_tokens"]) == (ANSWER, 3, 300)
    assert "".join(pieces) == ("Now her." + ANSWER if "stream" in way else "")


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_breaks_off_is_an_error_and_no_answer(small_index, way):
    with serve([Cut(chat(ANSWER), 3)]) as server:
        agent = create_arag_agent(model_at(server, max_retries=0), small_index)
        with pytest.raises(openai.APIConnectionError) as caught:
            run_agent(agent, way)
    assert is_provider_error(caught.value)


@pytest.mark.parametrize("events", [0, 1, 3, 12])
def test_a_stream_that_ends_too_early_is_the_models_error(small_index, events):
    with serve([Cut(chat(ANSWER), events, clean=True)]) as server:
        agent = create_arag_agent(model_at(server, streaming=True, max_retries=0), small_index)
        with pytest.raises(ModelError, match="the model call failed"):
            agent.invoke(asked())


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (chat() | {"choices": []}, "the response contains no reply"),
        (chat() | {"choices": None}, "null value for 'choices'"),
        (chat() | {"error": {"message": "out of memory"}, "choices": []}, ".*out of memory"),
    ],
    ids=["none", "null", "error"],
)
def test_a_response_without_a_reply_is_the_models_error(small_index, answer, reason, way):
    with serve([answer]) as server:
        agent = create_arag_agent(model_at(server, max_retries=0), small_index)
        with pytest.raises(ModelError, match=f"the model call failed: .*{reason}"):
            run_agent(agent, way)


@pytest.mark.parametrize("way", WAYS)
def test_a_page_instead_of_a_response_is_the_models_error(small_index, way):
    with serve([Failure(200, page=True)]) as server:
        agent = create_arag_agent(model_at(server, max_retries=0), small_index)
        with pytest.raises(ModelError, match=r"the model call failed: (Unexpected response type|.*contains no reply)"):
            run_agent(agent, way)


@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_that_was_cut_off_is_still_one(small_index, streaming):
    state, _ = run(small_index, [chat("Boso the", finish_reason="length")], streaming=streaming)
    assert (state["answer"], state["stop_reason"]) == ("Boso the", "answered")


def test_an_effort_is_sent(small_index):
    _, requests = run(small_index, [chat(ANSWER)], reasoning_effort="low", model_kwargs={"prompt_cache_key": "k"})
    assert (requests[0]["reasoning_effort"], requests[0]["prompt_cache_key"]) == ("low", "k")


@pytest.mark.parametrize("keeping", ["checkpointer", "json"])
def test_a_second_question_finds_the_first_ones_messages(small_index, keeping):
    first = [chat(None, ("call_1", "keyword_search", '{"keywords": ["Lothair II"]}')), chat(ANSWER)]
    with serve([*first, chat("Nobody knows.")]) as server:
        if keeping == "checkpointer":
            agent = create_arag_agent(model_at(server), small_index, checkpointer=InMemorySaver())
            agent.invoke(asked(), in_thread())
            state = agent.invoke(asked("And his father?"), in_thread())
        else:
            agent = create_arag_agent(model_at(server), small_index)
            before = through_json(agent.invoke(asked())["messages"])
            state = agent.invoke({"messages": [*before, HumanMessage("And his father?")]})
    sent = server.requests[2]["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert (sent[4]["content"], sent[5]["content"]) == (ANSWER, "And his father?")
    assert (state["answer"], state["usage"]["model_calls"]) == ("Nobody knows.", 1)


# --- embedding services ---


def embed(number, request):
    assert all(isinstance(text, str) for text in request["input"])
    return embeddings([hash_vector(text).tolist() for text in request["input"]])


def test_an_embedding_server_gets_texts_and_serves_an_index(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", DOCUMENTS[:3])
    with serve(embed) as server:
        with ingest(corpus, tmp_path / "index", embedder=f"openai:m@{server.url}") as index:
            sent = [text for request in server.requests for text in request["input"]]
            assert set(server.paths) == {"/v1/embeddings"}
            assert "He married Teutberga in 855." in " ".join(sent)
            assert {request["model"] for request in server.requests} == {"m"}
            assert index.semantic_search("count of Arles", 1).hits[0].chunk_id == "boso:0"
        with open_index(tmp_path / "index", embedder=f"openai:m@{server.url}") as again:
            assert again.semantic_search("married Teutberga", 1).hits[0].chunk_id == "lothair:0"
            assert server.requests[-1]["input"] == ["married Teutberga"]


def test_an_embedding_server_that_fails_for_a_moment_is_asked_again():
    script = [Failure(429, {"Retry-After": "0"}), embeddings([[1.0, 0.0]])]
    with serve(script) as server:
        vectors = load_embedder(f"openai:m@{server.url}").embed_documents(["text"])
    assert vectors.tolist() == [[1.0, 0.0]]
    assert len(server.requests) == 2


def test_an_embedding_server_is_asked_several_times_at_once_and_again_where_it_is_too_busy(tmp_path):
    texts = [f"Sentence {n} says w{n}." for n in range(2_500)]
    corpus = write_corpus(tmp_path / "corpus", [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)])
    together = threading.Barrier(8)  # the first eight requests are answered when all are there

    def respond(number, request):
        if 0 < number <= 8:
            together.wait(timeout=60)
        if number in {3, 7}:
            return Failure(429, {"Retry-After": "0"})
        return embed(number, request)

    with serve(respond) as server:
        summary = run_ingest(corpus, tmp_path / "index", embedder=f"openai:m@{server.url}")
        assert summary.embedded == 2_500
        assert max(len(request["input"]) for request in server.requests) <= 300
        with open_index(tmp_path / "index", embedder=f"openai:m@{server.url}") as index:
            for n in (0, 1_777, 2_499):
                assert index.semantic_search(texts[n], 1).hits[0].score == pytest.approx(1, abs=1e-5)


@pytest.fixture
def few_retries(monkeypatch):
    monkeypatch.setattr("arag.models.embedders._SERVICE_RETRIES", 0)


def test_a_lasting_failure_of_the_embedding_server_is_a_clear_error_and_the_next_run_finishes(tmp_path, few_retries):
    corpus = write_corpus(tmp_path / "corpus", DOCUMENTS)
    failing = [True]
    with serve(lambda number, request: Failure(500) if failing else embed(number, request)) as server:
        name = f"openai:m@{server.url}"
        with pytest.raises(EmbedderError, match=f"the embedder {name} failed: .*scripted failure 500"):
            run_ingest(corpus, tmp_path / "index", embedder=name)
        failing.clear()
        summary = run_ingest(corpus, tmp_path / "index", embedder=name)
        with open_index(tmp_path / "index", embedder=name) as index:
            assert (summary.chunks, summary.sentences) == (index.info().chunks, index.info().sentences)
            assert index.semantic_search("count of Arles", 1).hits[0].chunk_id == "boso:0"
            failing.append(True)
            with pytest.raises(EmbedderError, match="scripted failure 500"):
                index.semantic_search("another query")
            model = ScriptedModel(call("semantic_search", query="x"))
            with pytest.raises(EmbedderError):
                create_arag_agent(model, index).invoke(asked())


@pytest.mark.parametrize(
    "response", [Failure(401), embeddings([]), embeddings([[1.0, 0.0], [1.0]]), embeddings([[1.0]])], ids=str
)
def test_a_nonsensical_response_of_an_embedding_server_is_a_clear_error(response, few_retries):
    with serve([response]) as server:
        embedder = load_embedder(f"openai:m@{server.url}")
        with pytest.raises(EmbedderError, match=f"the embedder openai:m@{server.url}"):
            embedder.embed_documents(["one", "two"])


def test_a_missing_key_of_an_embedding_service_is_named():
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
        load_embedder("openai:text-embedding-3-small").embed_query("x")
