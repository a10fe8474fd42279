"""What a run's context changes of an agent."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from arag.errors import IndexNotFoundError, InputError, ModelError
from arag.graph.context import Context
from arag.graph.graph import build_graph, create_arag_agent
from arag.graph.settings import ResourceLoader, Settings
from arag.ingest.pipeline import ingest
from arag.models.extractive import ExtractiveModel
from arag.retrieval.scope import Scope
from arag.retrieval.tools import TOOL_NAMES, make_tools
from arag.testing import ScriptedModel, call
from conftest import write_corpus
from fakes import HashEmbeddings
from scripted_model import ANSWER, EndlessModel, asked, results

pytest_plugins = ["graph_fixtures"]


def test_the_maximum_of_steps(small_index):
    agent = create_arag_agent(EndlessModel(mode="one_call"), small_index)
    found = [agent.invoke(asked(), context=context)["steps"] for context in ({"max_steps": 2}, None, {"max_steps": 40})]
    assert found == [2, 15, 40]


def test_the_number_of_chunks(small_index):
    model = ScriptedModel(*[call("semantic_search", query="storms"), ANSWER] * 2)
    agent = create_arag_agent(model, small_index)
    shown = [agent.invoke(asked(), context=context)["trace"][0]["chunk_ids"] for context in ({"top_k": 1}, {})]
    assert len(shown[0]) == 1
    assert len(shown[1]) > 1


def test_the_scope(small_index):
    model = ScriptedModel(*[call("chunk_read", chunk_ids=["boso:0", "annals:0"]), AIMessage("[boso:0] [annals:0]")] * 3)
    agent = create_arag_agent(model, small_index.limited_to(Scope(documents=["boso", "annals"])))
    for scope, found in (
        (None, ["boso:0", "annals:0"]),
        (Scope(documents=["boso"]), ["boso:0"]),
        (Scope(documents=["*"]), ["boso:0", "annals:0"]),
    ):
        state = agent.invoke(asked(), context=Context(scope=scope))
        assert state["trace"][0]["chunk_ids"] == found
        assert [citation["chunk_id"] for citation in state["citations"] if citation["seen"]] == found
    # The model is told the same, whatever the scope.
    first, *_ = model.calls
    for told in model.calls[::2]:
        assert (told.tool_names, [m.text for m in told.messages]) == (
            first.tool_names,
            [m.text for m in first.messages],
        )


def test_the_scope_of_any_parents_context_counts(small_index):
    class Theirs(BaseModel):
        scope: Scope
        team: str = "ops"

    model = ScriptedModel(*[call("chunk_read", chunk_ids=["boso:0", "annals:0"]), ANSWER] * 2)
    agent = create_arag_agent(model, small_index)
    for context in ({"scope": {"documents": ["boso"]}, "team": "ops"}, Theirs(scope=Scope(documents=["boso"]))):
        parent = StateGraph(MessagesState).add_node("research", agent).add_edge(START, "research").compile()
        (shown,) = results(parent.invoke(asked(), context=context))
        assert "Boso the Elder was a count" in shown.text
        assert "broke the bridges" not in shown.text


def test_a_retrieval_tool_that_is_made_already_keeps_to_the_scope(small_index):
    tool = make_tools(small_index, names=["keyword_search"])[0]
    model = ScriptedModel(call("keyword_search", keywords=["Boso", "storm"]), ANSWER)
    agent = create_arag_agent(model, small_index, tools=["chunk_read", tool])
    state = agent.invoke(asked(), context=Context(scope=Scope(documents=["boso"])))
    assert state["trace"][0]["chunk_ids"] == ["boso:0"]


def test_runs_in_other_scopes_share_the_model(small_index, monkeypatch):
    made = []
    monkeypatch.setattr("arag.graph.settings.load_model", lambda name: made.append(name) or ExtractiveModel())
    agent = create_arag_agent("extractive", small_index)
    for document_id in ("boso", "annals"):
        agent.invoke(asked(), context=Context(scope=Scope(documents=[document_id])))
    assert made == ["extractive"]


@pytest.mark.parametrize("scope", [{"where": {"a": {"$like": 1}}}, {"documents": "boso"}, {"titles": ["a"]}, "boso"])
def test_a_wrong_scope_is_refused(scope):
    with pytest.raises(InputError):
        Context(scope=scope)


def test_the_tools(small_index):
    def note(text: str) -> str:
        """Note something."""
        return text

    model = ScriptedModel(call("chunk_read", chunk_ids=["boso:0"]), ANSWER, ANSWER)
    agent = create_arag_agent(model, small_index, tools=[*TOOL_NAMES, note])
    state = agent.invoke(asked(), context={"tools": ["keyword_search"]})
    assert results(state)[0].text == "There is no tool 'chunk_read'. The tools are: keyword_search, note."
    assert model.calls[0].tool_names == ["keyword_search", "note"]
    assert "semantic_search" not in model.calls[0].messages[0].text
    agent.invoke(asked(), context=Context())
    assert model.calls[2].tool_names == [*TOOL_NAMES, "note"]


def test_the_system_prompt_and_the_model(small_index):
    scripted = ScriptedModel(ANSWER)
    agent = create_arag_agent(scripted, small_index)
    agent.invoke(asked(), context={"system_prompt": "Answer in French."})
    assert scripted.calls[0].messages[0].text == "Answer in French."
    state = agent.invoke(asked(), context={"model": "extractive"})
    assert state["model_calls"][0]["model"] == "extractive"
    scripted.assert_used_up()


def test_another_index(small_index, tmp_path):
    # An index that is opened by its folder finds its embedder by name: a keyword search needs none.
    source = write_corpus(tmp_path / "corpus", [{"id": "x", "text": "Zwentibold was a king of Lotharingia."}])
    ingest(source, tmp_path / "index", embedder=HashEmbeddings()).close()
    model = ScriptedModel(*[call("keyword_search", keywords=["Zwentibold"]), ANSWER] * 3)
    agent = create_arag_agent(model, small_index)
    there = {"index": str(tmp_path / "index")}
    states = [agent.invoke(asked(), context=there), asyncio.run(agent.ainvoke(asked(), context=there))]
    assert [results(state)[0].text.partition("\n")[0] for state in states] == ["Zwentibold: 1 chunk. All:"] * 2
    assert "Zwentibold: none" in results(agent.invoke(asked()))[0].text


def test_an_index_may_be_given_as_a_path(tmp_path):
    assert Context(index=tmp_path / "index").index == str(tmp_path / "index")
    assert Context.model_json_schema()["properties"]["index"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_a_graph_that_is_made_without_an_index(small_index):
    graph = build_graph(ResourceLoader(Settings(model="extractive")))
    with pytest.raises(InputError, match="no index is given: set `index` in the run's context, or ARAG_INDEX"):
        graph.invoke(asked())
    state = graph.invoke(asked(), context={"index": str(small_index.path), "tools": ["keyword_search", "chunk_read"]})
    assert "Lothair II was a king" in state["answer"]


def test_it_reaches_a_graph_inside_another(small_index):
    agent = create_arag_agent(EndlessModel(mode="one_call"), small_index)
    parent = StateGraph(MessagesState, context_schema=Context)
    parent.add_node("research", agent)
    parent.add_edge(START, "research")
    events = list(parent.compile().stream(asked(), context={"max_steps": 2}, stream_mode="custom", subgraphs=True))
    assert [event["tool"] for _, event in events] == ["keyword_search"] * 2


class _Extended(Context):
    user: str


class _Other(BaseModel):
    max_steps: int


@pytest.mark.parametrize(
    ("schema", "context", "steps"),
    [
        (_Extended, {"user": "Ada", "max_steps": 1}, 1),
        (_Other, {"max_steps": 1}, 3),
        (None, {"max_steps": 1}, 3),
        (None, None, 3),
    ],
)
def test_a_parents_own_context_counts_where_it_is_one_of_ours(small_index, schema, context, steps):
    agent = create_arag_agent(EndlessModel(mode="one_call"), small_index, max_steps=3)
    parent = StateGraph(MessagesState, context_schema=schema)
    parent.add_node("research", agent)
    parent.add_edge(START, "research")
    events = list(parent.compile().stream(asked(), context=context, stream_mode="custom", subgraphs=True))
    assert len(events) == steps


BAD = [
    ({"max_steps": 0}, "max_steps: Input should be greater than or equal to 1, not 0"),
    ({"max_steps": 101}, "max_steps: Input should be less than or equal to 100, not 101"),
    ({"top_k": 21}, "top_k: Input should be less than or equal to 20, not 21"),
    ({"tools": ["web"]}, "Input should be 'keyword_search', 'semantic_search' or 'chunk_read', not 'web'"),
    ({"tools": []}, "tools: Tuple should have at least 1 item"),
    (
        {"max_step": 3},
        "max_step: Extra inputs are not permitted, not 3. Valid settings: index, scope, model, ",
    ),
]


@pytest.mark.parametrize(("context", "message"), BAD, ids=str)
def test_bad_settings_are_named(small_index, context, message):
    agent = create_arag_agent(ScriptedModel(), small_index)
    with pytest.raises(InputError) as caught:
        agent.invoke(asked(), context=context)
    assert message in str(caught.value)


def test_what_cannot_be_loaded_is_named(small_index, tmp_path):
    agent = create_arag_agent(ScriptedModel(ANSWER), small_index)
    with pytest.raises(IndexNotFoundError, match="nowhere"):
        agent.invoke(asked(), context={"index": str(tmp_path / "nowhere")})
    with pytest.raises(ModelError, match="unknown model 'gpt'"):
        asyncio.run(agent.ainvoke(asked(), context={"model": "gpt"}))
    with pytest.raises(InputError, match=r"give one or more of .* each once"):
        agent.invoke(asked(), context={"tools": ["chunk_read", "chunk_read"]})
    assert agent.invoke(asked())["answer"] == ANSWER.text  # the agent itself is unharmed


def test_settings_are_made_once_for_runs_that_share_them(small_index, monkeypatch):
    made = []
    monkeypatch.setattr("arag.graph.settings.load_model", lambda name: made.append(name) or EndlessModel(mode="empty"))
    load = ResourceLoader(Settings(model="some:model", index=small_index))
    graph = build_graph(load)
    for context in ({"max_steps": 1}, {"max_steps": 1}, Context(max_steps=1), {"top_k": 3}, None, {}):
        graph.invoke(asked(), context=context)
    assert load._load.cache_info().currsize == 3
    assert made == ["some:model"]
    for steps in range(1, 101):
        load(Context(max_steps=steps))
    assert load._load.cache_info().currsize == 64


def test_a_model_that_loads_slowly_holds_nobody_else_up(small_index, monkeypatch):
    loading, loaded = threading.Event(), threading.Event()

    def load(name):
        if name == "slow":
            loading.set()
            assert loaded.wait(30)
        return ExtractiveModel()

    monkeypatch.setattr("arag.graph.settings.load_model", load)
    graph = build_graph(ResourceLoader(Settings(model="quick", index=small_index)))
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(graph.invoke, asked(), context={"model": "slow"})
        assert loading.wait(30)
        assert graph.invoke(asked())["stop_reason"] == "answered"
        loaded.set()
        assert slow.result()["stop_reason"] == "answered"


def test_contexts_share_an_index_which_is_let_go_of_with_the_last_of_them(small_index):
    load = ResourceLoader(Settings(model="extractive"))
    there = str(small_index.path)
    shared = [load(Context(index=there, max_steps=steps)).index for steps in (1, 2)]
    assert shared[0] is shared[1]
    del shared
    assert list(load._opened) == [there]
    load.settings = Settings(model="extractive", index=small_index)
    for steps in range(1, 65):
        load(Context(max_steps=steps))
    gc.collect()
    assert list(load._opened) == []


def test_every_setting_says_what_it_means(small_index):
    schema = create_arag_agent(ScriptedModel(), small_index).get_context_jsonschema()
    assert set(schema["properties"]) == {*Context.model_fields} >= {"index", "model", "presentation"}
    assert all(field["description"] for field in schema["properties"].values())
    assert json.loads(json.dumps(schema)) == schema


def test_contexts_that_fail_leave_nothing_behind(small_index, tmp_path):
    load = ResourceLoader(Settings(model=ExtractiveModel(), index=small_index))
    for number in range(3):
        with pytest.raises(IndexNotFoundError):
            load(Context(index=str(tmp_path / f"nothing-{number}")))
    assert load._load.cache_info().currsize == 0
