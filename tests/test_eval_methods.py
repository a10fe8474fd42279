"""What each method sends to the model and keeps, how sessions keep account, and how another method is added."""

import re
from pathlib import Path
from typing import ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, OnErrorOmit

from arag.errors import InputError
from arag.evaluation.cache import Store
from arag.evaluation.datasets import Question
from arag.evaluation.method import Answer, Session
from arag.evaluation.methods import GROUPS, all_methods, find_methods, make_method
from arag.evaluation.methods.agentic import GraphMethod
from arag.evaluation.records import make_record
from arag.page import trace_page
from lab import ask, make_lab, script
from scripted import QUESTION, call

TOOLS = {
    "arag": ["keyword_search", "semantic_search", "chunk_read"],
    "arag-naive": ["semantic_search"],
    "arag-without-keyword": ["semantic_search", "chunk_read"],
    "arag-without-semantic": ["keyword_search", "chunk_read"],
    "arag-without-read": ["keyword_search", "semantic_search"],
}
ANSWER = "Boso the Elder [teutberga:0]."
KEYWORDS = call("keyword_search", "1", keywords=["Teutberga"])
MEANING = call("semantic_search", "2", query="a daughter of Boso the Elder")
LONG = call("semantic_search", "3", query="storm number 5600 broke the bridges")
READ = call("chunk_read", "4", chunk_ids=["teutberga:0"])
SCRIPTS = {
    "arag": [KEYWORDS, READ, ANSWER],
    "arag-naive": [MEANING, LONG, ANSWER],
    "arag-without-keyword": [MEANING, READ, ANSWER],
    "arag-without-semantic": [KEYWORDS, READ, ANSWER],
    "arag-without-read": [KEYWORDS, LONG, ANSWER],
    "naive-rag": [ANSWER],
    "direct": [ANSWER],
}


@pytest.fixture
def run(small_index, tmp_path):
    """Ask a method the question with a script; return the answer, the session and what the model was sent."""

    def run(name, *replies, **options):
        lab = make_lab(small_index, script(*(replies or SCRIPTS[name])), tmp_path / name, **options)
        answer, session = ask(make_method(all_methods()[name], {}), lab, QUESTION)
        return answer, session, lab.model

    return run


def tools_of(options):
    return [tool["function"]["name"] for tool in options.get("tools") or ()]


# --- A-RAG and its ablations ---


@pytest.mark.parametrize("name", TOOLS)
def test_prompts_and_tools_name_only_the_tools_that_exist(name, run):
    answer, session, model = run(name)
    assert (answer.text, answer.stop_reason, len(session.calls)) == (ANSWER, "answered", 3)
    for messages, options in zip(model.calls, model.options, strict=True):
        assert tools_of(options) == TOOLS[name]
        text = messages[0].text + str(options["tools"])
        assert all((tool in text) == (tool in TOOLS[name]) for tool in TOOLS["arag"])


def test_without_semantic_search_nothing_is_embedded(run, small_index, monkeypatch):
    def embed(*_):
        raise AssertionError("a vector was asked for")

    monkeypatch.setattr(small_index.embedder, "embed_query", embed)
    read = call("chunk_read", "1", chunk_ids=["annals:0", "annals:1"])
    _, session, model = run("arag-without-semantic", KEYWORDS, read, ANSWER)
    assert "about" not in str(model.options[0]["tools"])
    assert [entry["error"] for entry in session.trace] == [None, None]
    assert session.trace[1]["new_chunks"] == ["annals:0", "annals:1"]


def test_options_of_a_run_reach_the_agent(run):
    search = call("semantic_search", "1", query="Who was a count or a king?")
    _, session, model = run("arag", search, ANSWER, top_k=2, presentation="paper")
    assert len(session.trace[0]["chunk_ids"]) == 2
    assert " score 0." in model.calls[1][-1].text  # the paper's plain list
    with pytest.raises(InputError, match="top_k"):
        run("arag", top_k=0)


# --- one call ---


def test_naive_rag_has_the_nearest_chunks_in_its_prompt_in_their_order(run, small_index):
    _, session, model = run("naive-rag", top_k=3)
    nearest = [hit.chunk_id for hit in small_index.semantic_search(QUESTION, 3).hits]
    ((system, user),) = model.calls
    assert (type(system), type(user), model.options) == (SystemMessage, HumanMessage, [{}])
    assert not any(tool in system.text for tool in TOOLS["arag"])
    evidence = "\n\n".join(f"[{chunk_id}]\n{small_index.get(chunk_id).text}" for chunk_id in nearest)
    assert user.text.startswith(QUESTION)
    assert evidence in user.text
    (entry,) = session.trace
    assert (entry["tool"], entry["arguments"]) == ("retrieve", {"query": QUESTION, "top_k": 3})
    assert entry["chunk_ids"] == entry["new_chunks"] == nearest
    assert entry["retrieved_tokens"] == sum(small_index.get(chunk_id).tokens for chunk_id in nearest)


def test_direct_answers_see_no_corpus(run):
    answer, session, model = run("direct")
    ((system, user),) = model.calls
    assert (answer.text, user.text, session.trace) == (ANSWER, QUESTION, [])
    assert not any(word in system.text.lower() for word in ("corpus", "passage", "tool", "chunk"))


def test_an_empty_reply_is_an_empty_answer_and_is_not_kept(run, tmp_path):
    answer, session, _ = run("naive-rag", "")
    assert (answer.text, session.calls[0]["empty"]) == ("", True)
    assert Store(tmp_path / "naive-rag").spent()[0] > 0  # but it was paid for
    assert run("naive-rag", ANSWER)[0].text == ANSWER


# --- sessions ---


class Town(BaseModel):
    name: str


@pytest.fixture
def session(small_index, tmp_path):
    def session(play, **options):
        return Session(make_lab(small_index, play, tmp_path, **options))

    return session


def test_a_reply_that_does_not_fit_is_sent_back_with_what_is_wrong(session):
    one = session(script("Arles", '{"town": "Arles"}', 'Yes: {"name": "Arles"}'))
    assert one.ask("Name a town as JSON.", "Which?", Town) == Town(name="Arles")
    *_, reply, wrong = one.context.model.calls[2]
    assert reply.text == '{"town": "Arles"}'
    assert wrong.text.startswith("This is not the JSON object that was asked for: name Field required")
    assert [made["step"] for made in one.calls] == [1, 2, 3]
    assert session(script(*["no"] * 3)).ask("Name another.", "Which?", Town) is None
    assert session(script(*[" "] * 3)).ask("Say something.", "Well?") == ""


def test_thinking_is_no_part_of_a_reply(session):
    one = session(script("<think>Nice?</think>Arles", '<think>{"name": "Nice"}</think>{"name": "Arles"}'))
    assert one.ask("Name a town.", "Which?") == "Arles"
    assert one.ask("Name a town as JSON.", "Which?", Town) == Town(name="Arles")


def test_the_complete_parts_of_a_reply_that_was_cut_off_count(session):
    class Towns(BaseModel):
        towns: list[OnErrorOmit[Town]]

    cut_off = AIMessage('{"towns": [{"name": "Arles"}, {"name": "A', response_metadata={"finish_reason": "length"})
    assert session(script(cut_off)).ask("Name towns.", "Which?", Towns) == Towns(towns=[Town(name="Arles")])


def test_equal_things_are_asked_about_once_and_replies_keep_their_order(session):
    announced = []
    one = session(lambda messages: messages[-1].text.upper(), announce=announced.append)
    conversation = [HumanMessage("a"), AIMessage("A"), HumanMessage("more")]
    replies = one.ask_all("Say it loudly.", ["b", "a", "b", conversation], title="Loud words")
    assert replies == ["B", "A", "B", "MORE"]
    assert len(one.calls) == 3
    assert [made["step"] for made in one.calls] == [1, 2, 3]
    assert re.match(r"Loud words: 3 model calls, \d+ input tokens$", announced[0])


def test_a_chunk_that_two_searches_find_is_read_once(session, small_index):
    one = session(script("Boso, says [boso:0].\nAnswer: Boso"))
    answer = one.read("Who?", [small_index.get(name) for name in ("boso:0", "lothair:0", "boso:0")])
    assert one.context.model.calls[0][-1].text.count("[boso:0]") == 1
    assert answer.cited == ["boso:0"]


# --- names, groups, settings, and a method of one's own ---


def test_the_groups_are_the_rows_of_the_papers_tables():
    methods = all_methods()
    assert len(GROUPS["table1"]) == 10
    assert set(find_methods(["table1", "ablation"])) == {*GROUPS["table1"], *GROUPS["ablation"]} <= set(methods)
    assert all(method.title and method.__doc__ for method in methods.values())
    table4 = {name: (each.autonomous, each.iterative, each.interleaved) for name, each in methods.items()}
    assert {table4[name] for name in TOOLS} == {(True, True, True)}
    assert table4["direct"] == table4["naive-rag"] == (False, False, False)


def test_what_is_no_method_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("no_methods_here.py").write_text("X = 1")
    with pytest.raises(InputError, match=r"no_methods_here has no METHODS"):
        find_methods(["no_methods_here"])
    with pytest.raises(InputError, match=r"linear-rag: threshold: Input should be a valid number"):
        make_method(all_methods()["linear-rag"], {"threshold": "many"})


LOUD = '''
from typing import ClassVar
from arag.evaluation.method import Method

class Loud(Method):
    """Says the question loudly."""

    name: ClassVar[str] = "loud"
    title: ClassVar[str] = "Loud"

    def answer(self, question, session, prepared):
        session.note("Words", question.split())
        return session.read(question, session.search_keywords(question.strip("?").split()))

METHODS = [Loud]
'''


def test_a_module_in_the_current_folder_adds_a_method_whose_run_has_a_page(small_index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loud_methods.py").write_text(LOUD)
    method = make_method(find_methods(["loud_methods"])["loud"], {})
    lab = make_lab(small_index, script("Teutberga's father [boso:0].\nAnswer: Boso"), tmp_path / "calls")
    answer, session = ask(method, lab, "Who was Boso?")
    assert answer == Answer("Boso", ["boso:0"])
    record = make_record(Question("q", "Who was Boso?", "Boso"), session, answer)
    assert record["exact_match"]
    assert [citation["chunk_id"] for citation in record["citations"]] == ["boso:0"]
    assert record["notes"] == [{"title": "Words", "lines": ["Who", "was", "Boso?"]}]
    assert "Who was Boso?" in trace_page(record)


def test_any_graph_is_a_method(small_index, tmp_path):
    class Echo(GraphMethod):
        """Answers with the question."""

        name: ClassVar[str] = "echo"
        title: ClassVar[str] = "Echo"

        def prepare(self, session):
            return RunnableLambda(lambda state: {"messages": [HumanMessage("So?"), AIMessage("So")], "answer": "So"})

    answer, session = ask(Echo(), make_lab(small_index, str, tmp_path), "So?")
    assert (answer, session.trace, session.calls) == (Answer("So"), [], [])
