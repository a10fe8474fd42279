"""What a run's context changes of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from arag.errors import InputError
from arag.graph.context import Context, make_loader
from arag.graph.graph import create_arag_agent
from arag.retrieval.scope import Scope
from arag.retrieval.tools.sets import PAPER, make_tools
from scripted import ANSWER, EndlessModel, ScriptedModel, asked, call, results


def test_a_run_changes_what_its_context_sets_and_nothing_else(small_index):
    agent = create_arag_agent(EndlessModel(mode="one_call"), small_index, tools="paper", max_steps=3)
    contexts = [{"max_steps": 2}, None, {"max_steps": 40}, Context(max_steps=None), {"model": " ", "top_k": 2}]
    assert [agent.invoke(asked(), context=context)["steps"] for context in contexts] == [2, 3, 40, 3, 3]

    model = ScriptedModel(call("semantic_search", query="Which bridges did storms break?"), ANSWER)
    state = create_arag_agent(model, small_index, tools="paper", top_k=3).invoke(
        asked(), context={"top_k": 1, "system_prompt": "Hm."}
    )
    assert len(state["trace"][0]["chunk_ids"]) == 1
    assert model.calls[0].messages[0].text == "Hm."
    assert agent.invoke(asked(), context={"model": "extractive"})["model_calls"][0]["model"] == "extractive"


def test_a_scope_hides_documents_and_the_model_is_not_told(small_index):
    model = ScriptedModel(*[call("chunk_read", chunk_ids=["boso:0", "annals:0"]), AIMessage("[boso:0] [annals:0]")] * 3)
    agent = create_arag_agent(model, small_index.limited_to(Scope(documents=["boso", "annals"])), tools="paper")
    for scope, visible in (
        (None, ["boso:0", "annals:0"]),
        (Scope(documents=["boso"]), ["boso:0"]),
        (Scope(documents=["*"]), ["boso:0", "annals:0"]),  # it never widens the agent's own
    ):
        state = agent.invoke(asked(), context=Context(scope=scope))
        assert state["trace"][0]["chunk_ids"] == visible
        assert [citation["chunk_id"] for citation in state["citations"] if citation["seen"]] == visible
    prompts = [(request.tool_names, [m.text for m in request.messages]) for request in model.calls[::2]]
    assert prompts[0] == prompts[1] == prompts[2]


def test_contexts_that_differ_in_other_settings_share_what_a_scope_has_open(small_index):
    load = make_loader("extractive", lambda: small_index)
    one, other = (load(Context(scope=Scope(documents=["a*"]), max_steps=steps)).index for steps in (1, 2))
    assert one is other is not small_index


def test_the_scope_of_any_parents_context_counts(small_index):
    class Theirs(BaseModel):
        scope: Scope
        team: str = "ops"

    model = ScriptedModel(*[call("chunk_read", chunk_ids=["boso:0", "annals:0"]), ANSWER] * 2)
    agent = create_arag_agent(model, small_index, tools="paper")
    for context in ({"scope": {"documents": ["boso"]}, "team": "ops"}, Theirs(scope=Scope(documents=["boso"]))):
        parent = StateGraph(MessagesState).add_node("research", agent).add_edge(START, "research").compile()
        (result,) = results(parent.invoke(asked(), context=context))
        assert "Boso the Elder was a count" in result.text
        assert "broke the bridges" not in result.text


EMPTY = ["", " ", {}, {1: "x"}, {"documents": None}, {"where": None}, {"where": {}}, [], 0, False]


@pytest.mark.parametrize("given", [*EMPTY, "kitchen", ["boso"]], ids=repr)
def test_a_scope_that_is_given_and_is_none_is_an_error_and_never_shows_everything(small_index, given):
    class Theirs(BaseModel):
        scope: Any = None

    model = ScriptedModel(call("chunk_read", chunk_ids=["boso:0", "annals:0"]), ANSWER)
    agent = create_arag_agent(model, small_index, tools="paper")
    parent = StateGraph(MessagesState).add_node("research", agent).add_edge(START, "research").compile()
    attempts = [
        lambda: Context(scope=given),
        lambda: agent.invoke(asked(), context={"scope": given}),
        lambda: parent.invoke(asked(), context={"scope": given, "team": "ops"}),
        lambda: parent.invoke(asked(), context=Theirs(scope=given)),
    ]
    for attempt in attempts:
        with pytest.raises(InputError, match=r"is not a (scope|condition)"):
            attempt()
    assert model.calls == []


class _Items:
    def get(self, name, default=None):
        return Scope(documents=["boso"]) if name == "scope" else default

    def __getitem__(self, name):
        return self.get(name)


class _Attribute:
    scope = "all of it"


NO_CONTEXTS = [
    Scope(documents=["boso"]),
    "boso",
    '{"scope": {}}',
    b"x",
    5,
    True,
    ["boso"],
    {"boso"},
    _Attribute,
    _Items(),
]


@pytest.mark.parametrize("context", NO_CONTEXTS, ids=lambda context: type(context).__name__)
def test_a_context_that_is_none_is_an_error_since_its_scope_would_be_ignored(small_index, context):
    model = ScriptedModel(ANSWER)
    with pytest.raises(InputError, match="a context cannot be"):
        create_arag_agent(model, small_index, tools="paper").invoke(asked(), context=context)
    assert model.calls == []


def test_a_scope_counts_however_a_context_came_to_have_it(small_index):
    class Tenant(Context):
        scope: Scope | None = Scope(documents=["boso"])

    limited = Scope(documents=["boso"])
    contexts = [Tenant(), Context.model_construct(_fields_set=set(), scope=limited)]
    for context in contexts:
        model = ScriptedModel(call("chunk_read", chunk_ids=["boso:0", "annals:0"]), ANSWER)
        assert create_arag_agent(model, small_index, tools="paper").invoke(asked(), context=context)["read_chunks"] == [
            "boso:0"
        ]
    unchecked = [
        Context.model_construct(scope=frozenset({"boso"})),
        Context().model_copy(update={"scope": {"documents": None}}),
    ]
    for context in unchecked:
        with pytest.raises(InputError, match=r"is not a (scope|condition)"):
            create_arag_agent(ScriptedModel(ANSWER), small_index, tools="paper").invoke(asked(), context=context)


def test_no_scope_is_null_or_absent_and_an_object_may_allow_everything(small_index):
    agent = create_arag_agent(
        ScriptedModel(*[call("chunk_read", chunk_ids=["boso:0"]), ANSWER] * 4), small_index, tools="paper"
    )
    for context in ({"scope": None}, {}, {"scope": Scope()}, Context(scope=Scope())):
        assert agent.invoke(asked(), context=context)["read_chunks"] == ["boso:0"]


def test_a_parents_field_of_the_same_name_needs_another_one_or_a_scope(small_index):
    @dataclass
    class Telescope:
        scope: str = "refractor"

    agent = create_arag_agent(ScriptedModel(ANSWER), small_index, tools="paper")
    parent = StateGraph(MessagesState).add_node("research", agent).add_edge(START, "research").compile()
    with pytest.raises(InputError, match=r"'refractor' is not a scope: .* something else needs another name"):
        parent.invoke(asked(), context=Telescope())


def test_the_context_of_a_model_that_is_known_to_be_small_is_kept(small_index):
    read = call("chunk_read", chunk_ids=["annals:0", "annals:1"])
    for settings, reason in (({}, "token_budget"), ({"max_context_tokens": 9000}, "answered")):
        model = ScriptedModel(read, ANSWER)
        model.profile = {"max_input_tokens": 2000}
        state = create_arag_agent(model, small_index, tools="paper", **settings).invoke(asked())
        assert state["stop_reason"] == reason


def test_a_context_chooses_among_the_retrieval_tools_and_ones_own_stay(small_index):
    def note(text: str) -> str:
        """Note something."""
        return text

    model = ScriptedModel(ANSWER, ANSWER)
    agent = create_arag_agent(model, small_index, tools=[*PAPER, note], max_steps=1)
    agent.invoke(asked(), context={"tools": ["keyword_search"]})
    agent.invoke(asked(), context=Context())
    assert [request.tool_names for request in model.calls] == [["keyword_search", "note"], [*PAPER, "note"]]
    assert "Read a chunk" not in model.calls[0].messages[0].text


class _Extended(Context):
    user: str


class _Other(BaseModel):
    max_steps: int


def test_a_parents_own_context_counts_where_it_is_one_of_ours(small_index):
    agent = create_arag_agent(EndlessModel(mode="one_call"), small_index, tools="paper", max_steps=3)
    for schema, context, steps in ((_Extended, {"user": "Ada", "max_steps": 1}, 1), (_Other, {"max_steps": 1}, 3)):
        parent = StateGraph(MessagesState, context_schema=schema).add_node("a", agent).add_edge(START, "a").compile()
        assert len(list(parent.stream(asked(), context=context, stream_mode="custom", subgraphs=True))) == steps


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"max_steps": 101}, "the settings are not valid: max_steps: Input should be less than or equal to 100"),
        ({"max_step": 10}, ". Valid settings: model, "),
        ({"model": "openai:gpt@https://example.com/v1"}, "a run's model is provider:model, without an address"),
        ({"model": "HuggingFace:organisation/model"}, "never from the model hub"),
        ({"scope": {"where": {"a": {"$like": 1}}}}, "scope"),
    ],
)
def test_a_context_that_is_not_valid_is_refused(small_index, context, message):
    agent = create_arag_agent(ScriptedModel(ANSWER), small_index, tools="paper", max_steps=1)
    with pytest.raises(InputError) as caught:
        agent.invoke(asked(), context=context)
    assert message in str(caught.value)
    assert agent.invoke(asked())["answer"] == ANSWER.text  # the agent itself is unharmed


def test_a_retrieval_tool_that_is_made_already_keeps_to_the_scope(small_index):
    tool = make_tools(small_index, names=["keyword_search"])[0]
    model = ScriptedModel(call("keyword_search", keywords=["Boso", "storm"]), ANSWER)
    agent = create_arag_agent(model, small_index, tools=["chunk_read", tool])
    state = agent.invoke(asked(), context=Context(scope=Scope(documents=["boso"])))
    assert state["trace"][0]["chunk_ids"] == ["boso:0"]


def test_a_chunk_read_of_ones_own_spares_the_model_full_texts(small_index):
    search, _, read = make_tools(small_index, names="paper")
    for tools in (["keyword_search", read], [search, read]):
        model = ScriptedModel(call("keyword_search", keywords=["storm"]), ANSWER)
        state = create_arag_agent(model, small_index, tools=tools).invoke(asked())
        assert model.calls[0].tool_names == ["keyword_search", "chunk_read"]
        assert "Full texts" not in state["messages"][2].text
    shell = make_tools(small_index, names="shell")
    model = ScriptedModel(call("keyword_search", keywords=["storm"]), ANSWER)
    state = create_arag_agent(model, small_index, tools=["keyword_search", *shell]).invoke(asked())
    assert "Full texts" not in state["messages"][2].text


@pytest.mark.parametrize("tools", ["search", 5])
def test_tools_that_are_neither_a_set_nor_a_list_are_an_input_error(small_index, tools):
    for make in (lambda: create_arag_agent("extractive", small_index, tools=tools), lambda: Context(tools=tools)):
        with pytest.raises(InputError, match="give paper, all, shell, or a list"):
            make()
