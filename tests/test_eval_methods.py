"""What each method sends to the model, what it keeps, and how another one is added."""

from __future__ import annotations

import asyncio
import sys
from textwrap import dedent

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from arag.errors import InputError, ModelError
from arag.evaluation import methods as package
from arag.evaluation.methods import Options, all_methods, method
from arag.graph.state import OutputState
from arag.models.extractive import read_forced_question
from arag.retrieval.tokens import count_tokens
from arag.testing import ScriptedModel, call
from scripted_model import DOCUMENTS, QUESTION, asked, results

pytest_plugins = ["graph_fixtures"]

TOOLS = {
    "arag": ["keyword_search", "semantic_search", "chunk_read"],
    "arag-naive": ["semantic_search"],
    "arag-without-keyword": ["semantic_search", "chunk_read"],
    "arag-without-semantic": ["keyword_search", "chunk_read"],
    "arag-without-read": ["keyword_search", "semantic_search"],
}
ONE_SHOT = ["naive-rag", "direct"]
TEXTS = {document["id"]: document["text"] for document in DOCUMENTS}
ANSWER = AIMessage(
    "Boso the Elder [teutberga:0].",
    usage_metadata={"input_tokens": 50, "output_tokens": 5, "total_tokens": 55},
    response_metadata={"model_name": "gpt-5-mini"},
)
KEYWORDS = call("keyword_search", keywords=["Teutberga"])
MEANING = call("semantic_search", query="a daughter of Boso the Elder")
LONG = call("semantic_search", query="storm number 5600 broke the bridges")
READ = call("chunk_read", chunk_ids=["teutberga:0"])
SCRIPTS = {
    "arag": [KEYWORDS, READ, ANSWER],
    "arag-naive": [MEANING, LONG, ANSWER],
    "arag-without-keyword": [MEANING, READ, ANSWER],
    "arag-without-semantic": [KEYWORDS, READ, ANSWER],
    "arag-without-read": [KEYWORDS, LONG, ANSWER],
    "naive-rag": [ANSWER],
    "direct": [ANSWER],
}


@pytest.fixture(name="index")
def _index(small_index):
    return small_index


def run(name, index, *script, options=None):
    model = ScriptedModel(*(script or SCRIPTS[name]))
    state = method(name).make(index, model, options or Options()).invoke(asked())
    model.assert_used_up()
    return state, model.calls


def without_times(state):
    return {
        **state,
        "messages": [(message.type, message.text) for message in state["messages"]],
        "trace": [{**entry, "seconds": 0} for entry in state["trace"]],
        "model_calls": [{**made, "seconds": 0} for made in state["model_calls"]],
    }


def test_the_methods_are_those_of_the_paper():
    found = all_methods()
    assert {*TOOLS, *ONE_SHOT} <= set(found)
    assert all(name == each.name and each.title and each.description for name, each in found.items())
    table = {name: (each.autonomous, each.iterative, each.interleaved) for name, each in found.items()}
    assert {table[name] for name in TOOLS} == {(True, True, True)}
    assert {table[name] for name in ONE_SHOT} == {(False, False, False)}


def test_an_unknown_method():
    with pytest.raises(InputError, match=r"unknown method 'a-rag'; valid methods: .*arag, .*direct, .*naive-rag"):
        method("a-rag")


# --- what all have in common ---


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_outputs_have_the_same_keys(name, index):
    state, _ = run(name, index)
    assert set(state) == set(OutputState.__annotations__)
    assert state["answer"] == ANSWER.text
    assert state["stop_reason"] == "answered"
    assert state["steps"] == len(SCRIPTS[name])
    assert [made["step"] for made in state["model_calls"]] == list(range(1, len(SCRIPTS[name]) + 1))
    assert (state["usage"]["model_calls"], state["usage"]["input_tokens"]) == (len(SCRIPTS[name]), 50)
    assert state["model_calls"][-1]["model"] == "gpt-5-mini"
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0"]
    assert state["citations"][0]["seen"] is (name != "direct")
    assert state["messages"][0].text == QUESTION
    assert state["messages"][-1].text == ANSWER.text


@pytest.mark.parametrize("name", SCRIPTS)
def test_async_gives_the_same(name, index):
    state, calls = run(name, index)
    model = ScriptedModel(*SCRIPTS[name])
    graph = method(name).make(index, model, Options())
    other = asyncio.run(graph.ainvoke(asked()))
    assert without_times(other) == without_times(state)
    assert [[m.text for m in made.messages] for made in model.calls] == [[m.text for m in c.messages] for c in calls]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_graph_answers_many_questions(name, index):
    graph = method(name).make(index, ScriptedModel(*SCRIPTS[name], *SCRIPTS[name]), Options())
    first, second = graph.invoke(asked()), graph.invoke(asked())
    assert without_times(first) == without_times(second)


@pytest.mark.parametrize("name", ONE_SHOT)
@pytest.mark.parametrize("error", [ConnectionError("away"), ModelError("no reply")])
def test_errors_of_the_model_come_through(name, index, error, monkeypatch):
    monkeypatch.setattr("arag.models.asking.FIRST_PAUSE", 0)
    with pytest.raises(type(error)):
        run(name, index, *[error] * 3)


# --- A-RAG and its ablations ---


@pytest.mark.parametrize("name", TOOLS)
def test_prompts_and_tools_name_only_the_tools_that_exist(name, index):
    _, calls = run(name, index)
    for made in calls:
        assert made.tool_names == TOOLS[name]
        told = made.messages[0].text + str(made.options["tools"])
        assert all((tool in told) == (tool in TOOLS[name]) for tool in TOOLS["arag"])


@pytest.mark.parametrize("name", TOOLS)
def test_a_forced_answer_has_no_tools(name, index):
    search = SCRIPTS[name][0]
    state, calls = run(name, index, search, ANSWER, options=Options(max_steps=1))
    assert calls[1].tool_names == []
    assert (state["stop_reason"], state["steps"]) == ("max_steps", 1)
    assert not any(tool in calls[1].messages[0].text for tool in TOOLS["arag"])


@pytest.mark.parametrize("name", ["arag-naive", "arag-without-read"])
def test_without_chunk_read_searches_return_whole_chunks(name, index):
    state, _ = run(name, index, LONG, ANSWER, options=Options(top_k=1))
    (result,) = results(state)
    (chunk_id,) = state["trace"][0]["chunk_ids"]
    chunk = index.get(chunk_id)
    assert chunk.text.removeprefix("Annals of Storms").strip() in result.text
    assert state["read_chunks"] == state["trace"][0]["new_chunks"] == [chunk_id]
    tokens = state["trace"][0]["retrieved_tokens"]  # of the sentences found and of the chunk
    assert chunk.tokens < tokens < 1.25 * chunk.tokens


def test_with_chunk_read_searches_return_snippets(index):
    state, _ = run("arag-without-keyword", index, LONG, ANSWER)
    (entry,) = state["trace"]
    assert index.get(entry["chunk_ids"][0]).text not in results(state)[0].text
    assert 0 < entry["retrieved_tokens"] < index.get(entry["chunk_ids"][0]).tokens
    assert entry["new_chunks"] == []


def test_retrieved_tokens_are_those_that_enter_the_context(index):
    state, _ = run("arag", index, KEYWORDS, call("chunk_read", chunk_ids=["annals:0"]), READ, READ, ANSWER)
    found, read, short, again = state["trace"]
    # Snippets: the sentences that are shown; the shortest chunks are shown whole by a search, and read so.
    shown = [line for line in results(state)[0].text.splitlines() if "Teutberga" in line]
    assert shown
    assert [entry["retrieved_tokens"] for entry in state["trace"]] == [count_tokens(r.text) for r in results(state)]
    assert 0 < found["evidence_tokens"] < found["retrieved_tokens"]
    assert read["evidence_tokens"] == index.get("annals:0").tokens
    assert again["evidence_tokens"] == 0  # shown before
    assert short["evidence_tokens"] in {0, index.get("teutberga:0").tokens}


def test_options_reach_the_agent(index):
    search = call("semantic_search", query="Who was a count or a king?")
    state, _ = run("arag", index, search, ANSWER, options=Options(top_k=2))
    assert len(state["trace"][0]["chunk_ids"]) == 2
    state, _ = run("arag", index, search, ANSWER, options=Options(presentation="paper"))
    assert " score 0." in results(state)[0].text  # the paper's plain list
    with pytest.raises(InputError, match="top_k"):
        run("arag", index, options=Options(top_k=0))
    with pytest.raises(InputError, match="max_context_tokens"):
        run("arag", index, options=Options(max_context_tokens=10))


# --- one call ---


def test_naive_rag_has_the_nearest_chunks_in_its_prompt_in_their_order(index):
    state, (made,) = run("naive-rag", index, options=Options(top_k=3))
    nearest = [hit.chunk_id for hit in index.semantic_search(QUESTION, 3).hits]
    system, question = made.messages
    assert (type(system), type(question), made.tool_names) == (SystemMessage, HumanMessage, [])
    assert not any(tool in system.text for tool in TOOLS["arag"])
    asked_for, evidence = read_forced_question(question.text)
    assert asked_for == QUESTION
    assert evidence == "\n\n".join(f"[{chunk_id}]\n{index.get(chunk_id).text}" for chunk_id in nearest)
    assert state["read_chunks"] == nearest


def test_the_order_of_passages_is_not_that_of_the_index(index):
    orders = set()
    for text in TEXTS.values():
        model = ScriptedModel(ANSWER)
        state = method("naive-rag").make(index, model, Options(top_k=4)).invoke(asked(text[:120]))
        places = [model.calls[0].messages[1].text.index(f"[{chunk_id}]") for chunk_id in state["read_chunks"]]
        assert places == sorted(places)
        orders.add(tuple(state["read_chunks"]))
    assert len(orders) > 1


@pytest.mark.parametrize("top_k", [1, 2, 20])
def test_retrieved_tokens_of_naive_rag_are_those_of_its_passages(index, top_k):
    state, (made,) = run("naive-rag", index, options=Options(top_k=top_k))
    (entry,) = state["trace"]
    assert (entry["tool"], entry["arguments"]) == ("retrieve", {"query": QUESTION, "top_k": top_k})
    assert entry["chunk_ids"] == entry["new_chunks"] == state["read_chunks"]
    assert len(entry["chunk_ids"]) == min(top_k, len(list(index.chunk_ids())))
    passages = [index.get(chunk_id) for chunk_id in entry["chunk_ids"]]
    assert entry["retrieved_tokens"] == sum(passage.tokens for passage in passages)
    assert sum(map(count_tokens, (passage.text for passage in passages))) == pytest.approx(
        entry["retrieved_tokens"], abs=2 * len(passages)
    )
    assert entry["retrieved_tokens"] <= count_tokens(made.messages[1].text)


def test_naive_rag_refuses_a_wrong_number_of_passages(index):
    for top_k in (0, -1):
        with pytest.raises(InputError, match="top_k"):
            run("naive-rag", index, options=Options(top_k=top_k))


def test_direct_answers_see_no_corpus(index):
    state, (made,) = run("direct", index)
    system, question = made.messages
    assert question.text == QUESTION
    assert not any(word in system.text.lower() for word in ("corpus", "passage", "tool", "chunk"))
    assert (state["trace"], state.get("read_chunks", [])) == ([], [])


@pytest.mark.parametrize("name", ONE_SHOT)
def test_an_empty_reply_is_an_empty_answer(name, index):
    state, _ = run(name, index, AIMessage(""))
    assert (state["answer"], state["citations"], state["stop_reason"]) == ("", [], "answered")
    assert state["usage"]["input_tokens"] == 0


# --- a method of one's own ---

OWN = '''
    """A method that shouts the question."""

    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, StateGraph

    from arag.evaluation.methods.interface import Method
    from arag.graph.state import InputState, OutputState, State
    from arag.models.usage import total


    def make(index, model, options):
        def shout(state):
            answer = state["messages"][-1].text.upper()
            return {
                "messages": [AIMessage(answer)],
                "answer": answer,
                "citations": [],
                "stop_reason": "answered",
                "steps": 0,
                "trace": [],
                "model_calls": [],
                "usage": total([]),
            }

        builder = StateGraph(State, input_schema=InputState, output_schema=OutputState)
        builder.add_node("shout", shout)
        builder.add_edge(START, "shout")
        builder.add_edge("shout", END)
        return builder.compile()


    METHODS = [Method("NAME", "Shouting", "says the question loudly", make)]
'''


@pytest.fixture
def add_method(tmp_path, monkeypatch):
    """A function that adds a file to the folder of methods."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])

    def add(module, name):
        (tmp_path / f"{module}.py").write_text(dedent(OWN).replace("NAME", name))
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{module}", raising=False)

    yield add
    for name in [name for name in sys.modules if name.startswith(f"{package.__name__}.own_")]:
        del sys.modules[name]


def test_a_new_method_is_one_new_file(add_method, index):
    add_method("own_shouting", "shouting")
    assert "shouting" in all_methods()
    state = method("shouting").make(index, ScriptedModel(), Options()).invoke(asked())
    assert state["answer"] == QUESTION.upper()


def test_two_methods_of_one_name_are_refused(add_method):
    add_method("own_direct", "direct")
    with pytest.raises(InputError, match=r"two methods are named 'direct'.*own_direct"):
        all_methods()
