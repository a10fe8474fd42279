from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from arag.graph.graph import create_arag_agent
from arag.graph.prompts import forced_prompt, forced_question
from arag.models.extractive import ExtractiveModel
from arag.retrieval.tools import TOOL_NAMES, make_tools
from scripted import ScriptedModel, call, calls
from scripted_model import asked, in_thread

pytest_plugins = ["graph_fixtures"]

QUESTIONS = json.loads((Path(__file__).parent.parent / "examples" / "questions.json").read_text(encoding="utf-8"))
SUBSETS = [subset for size in (1, 2, 3) for subset in combinations(TOOL_NAMES, size)]
NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"
LOTHAIR = "Whom had Lothair II married in 855?"


def contains(state, question) -> bool:
    answer = state["answer"].lower()
    return any(gold.lower() in answer for gold in [question["answer"], *question["answer_aliases"]])


def outcome(state) -> dict:
    calls_made = [(record["tool"], record["arguments"]) for record in state["trace"]]
    return {"answer": state["answer"], "citations": state["citations"], "calls": calls_made}


def test_it_answers_most_example_questions_in_a_containing_sense(example_index):
    agent = create_arag_agent("extractive", example_index)
    states = [(agent.invoke(asked(question["question"])), question) for question in QUESTIONS]
    assert all(state["stop_reason"] == "answered" for state, _ in states)
    assert all(state["answer"].endswith(NOTICE) for state, _ in states)
    assert all(citation["seen"] for state, _ in states for citation in state["citations"])
    assert len(QUESTIONS) == 15
    assert sum(contains(state, question) for state, question in states) >= 11


def test_it_follows_three_hops_and_cites_the_chunk_that_holds_the_answer(example_index):
    question = next(q for q in QUESTIONS if q["id"] == "q01")
    assert question["hops"] == 3
    state = create_arag_agent("extractive", example_index).invoke(asked(question["question"]))
    first = state["answer"].splitlines()[0]
    assert "1783" in first
    assert first.endswith("[places/skellavy.md:0]")
    assert state["citations"][0]["document"]["id"] == "places/skellavy.md"
    assert len({c["document"]["id"] for c in state["citations"]} & set(question["supporting"])) >= 2
    assert all(c["seen"] for c in state["citations"])


def test_it_is_deterministic(example_index):
    question = asked(QUESTIONS[4]["question"])
    outcomes = [outcome(create_arag_agent("extractive", example_index).invoke(question)) for _ in range(3)]
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_it_works_with_any_subset_of_the_tools(small_index, subset):
    state = create_arag_agent("extractive", small_index, tools=subset).invoke(asked(LOTHAIR))
    assert state["stop_reason"] == "answered"
    assert {record["tool"] for record in state["trace"]} <= set(subset)
    assert all(record["error"] is None for record in state["trace"])
    if subset == ("chunk_read",):  # nothing to find an id with
        assert state["answer"] == f"Nothing was found in the corpus. {NOTICE}"
    else:
        assert "He married Teutberga in 855. [lothair:0]" in state["answer"]
        assert "lothair:0" in [citation["chunk_id"] for citation in state["citations"]]


@pytest.mark.parametrize("max_steps", [1, 2])
def test_a_forced_answer_is_quoted_from_the_evidence(small_index, max_steps):
    state = create_arag_agent("extractive", small_index, max_steps=max_steps).invoke(asked(LOTHAIR))
    assert (state["stop_reason"], state["steps"]) == ("max_steps", max_steps)
    assert "[lothair:0]" in state["answer"]
    assert state["answer"].endswith(NOTICE)


def test_a_forced_prompt_alone_is_enough():
    evidence = "Lothair: 1 chunk.\n\n[lothair:0] Lothair II\nHe married Teutberga in 855. He was a king."
    prompt = [SystemMessage(forced_prompt()), HumanMessage(forced_question("Who married Lothair II?", evidence))]
    answer = ExtractiveModel().invoke(prompt)
    assert answer.tool_calls == []
    assert "He married Teutberga in 855. [lothair:0]" in answer.text
    nothing = [SystemMessage(forced_prompt()), HumanMessage(forced_question("Who married Lothair II?", ""))]
    assert ExtractiveModel().invoke(nothing).text == f"Nothing was found in the corpus. {NOTICE}"


WRAPPED = (
    "It was the schooner Grey\nPetrel that sank off Brannisey\nin the gale of 1775. “All\nwere lost.” Nobody wept."
)


def quotes(question, evidence):
    answer = ExtractiveModel().invoke(
        [SystemMessage(forced_prompt()), HumanMessage(forced_question(question, evidence))]
    )
    return answer.text.removesuffix(NOTICE).splitlines()


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028", " \n\t", "\xa0"])
@pytest.mark.parametrize(
    "header", ["[log:0] Log", "[log:0] Log, part 1 of 2, page 3", "[log:0]", "[log:0] part 1 of 2"]
)
def test_quotes_are_whole_sentences_on_one_line(header, ending):
    (quote,) = quotes("Which schooner sank off Brannisey in 1775?", "\n".join([header, WRAPPED.replace("\n", ending)]))
    assert quote.removeprefix("Log: ") == (
        "It was the schooner Grey Petrel that sank off Brannisey in the gale of 1775. [log:0]"
    )


def test_a_closing_quotation_mark_stays_in_its_sentence():
    evidence = f"[log:0] Log\n{WRAPPED}"
    assert quotes("Who said that all were lost?", evidence) == ["Log: “All were lost.” [log:0]"]


@pytest.mark.parametrize(
    "block",
    ["# The Petrel\n{}", "- The brig Tern.\n- {}", "| brig | Tern |\n{}", "---\n{}", "```\ncode of the ship\n```\n{}"],
)
def test_headings_items_and_table_rows_are_not_joined_with_sentences(block):
    evidence = "[log:0] Log\n" + block.format("The schooner Petrel\nsank in 1775.\n# What came then\nNothing.")
    (quote,) = quotes("When had the schooner sunk, 1775?", evidence)
    assert quote.removeprefix("Log: ").lstrip("- ") == "The schooner Petrel sank in 1775. [log:0]"


def test_what_a_search_says_of_itself_is_not_quoted(example_index):
    agent = create_arag_agent("extractive", example_index)
    for tools in (["keyword_search"], ["semantic_search"], ["keyword_search", "semantic_search"]):
        for question in QUESTIONS[:3]:
            answer = agent.invoke(asked(question["question"]), context={"max_steps": 3, "tools": tools})["answer"]
            assert " chunks" not in answer, answer


@pytest.mark.parametrize("question", ["xyzzy plugh frobnicate?", "?", "", " ", "谁是国王？", "the of and", "\N{BOM}"])
def test_where_nothing_is_found_it_says_so(small_index, question):
    state = create_arag_agent("extractive", small_index, tools=["keyword_search", "chunk_read"]).invoke(asked(question))
    assert state["answer"] == f"Nothing was found in the corpus. {NOTICE}"
    assert state["citations"] == []
    assert state["stop_reason"] == "answered"


def test_tools_that_it_does_not_know_are_ignored(small_index):
    @tool
    def web_search(query: str) -> str:
        """Search the web."""
        return query

    model = ExtractiveModel()
    assert model.bind_tools([web_search]).invoke([HumanMessage(LOTHAIR)]).tool_calls == []
    both = model.bind_tools([web_search, *make_tools(small_index)])
    assert both.invoke([HumanMessage(LOTHAIR)]).tool_calls[0]["name"] == "semantic_search"


def test_a_second_question_in_a_thread_is_searched_for_anew(small_index, tmp_path):
    agent = create_arag_agent("extractive", small_index, checkpointer=InMemorySaver())
    agent.invoke(asked(LOTHAIR), in_thread())
    second = agent.invoke(asked("Of which place was Boso the Elder a count?"), in_thread())
    assert "Arles" in second["answer"].splitlines()[0]
    assert second["trace"][1]["arguments"]["keywords"][0] == "Boso the Elder"


def test_it_can_take_over_a_thread_from_another_model(small_index):
    saver = InMemorySaver()
    sloppy = calls(("keyword_search", {"keywords": 855}), ("chunk_read", {"chunk_ids": 5}), ("semantic_search", {}))
    first = ScriptedModel(sloppy, call("web_search", x=1), RuntimeError("down"))
    with pytest.raises(RuntimeError):
        create_arag_agent(first, small_index, checkpointer=saver).invoke(asked(LOTHAIR), in_thread())
    state = create_arag_agent("extractive", small_index, checkpointer=saver).invoke(None, in_thread())
    assert "Teutberga" in state["answer"]


_text = st.one_of(
    st.text(), st.from_regex(r"\[[a-z:]{1,5}\] (score \d\n)?([A-Z][a-z]{1,8}[ .\n]){1,9}", fullmatch=True)
)


@given(_text, st.lists(_text, max_size=3), st.sets(st.sampled_from(TOOL_NAMES)))
def test_no_conversation_breaks_it(question, texts, names):
    messages = [HumanMessage(question)]
    for place, text in enumerate(texts):
        messages += [call("keyword_search", str(place), keywords=[text]), ToolMessage(text, tool_call_id=str(place))]
    tools = [{"type": "function", "function": {"name": name}} for name in sorted(names)]
    reply = ExtractiveModel().invoke(messages, tools=tools)
    assert isinstance(reply, AIMessage)
    assert bool(reply.tool_calls) != bool(reply.text)
    assert {c["name"] for c in reply.tool_calls} <= names
    again = ExtractiveModel().invoke(messages, tools=tools)
    assert (again.text, [c["args"] for c in again.tool_calls]) == (reply.text, [c["args"] for c in reply.tool_calls])


def test_the_quote_is_about_the_question_and_no_play_on_its_words(example_index):
    answer = create_arag_agent("extractive", example_index).invoke(asked("Who looked after the Vellin Light?"))[
        "answer"
    ]
    first, *rest = answer.removesuffix(NOTICE).splitlines()
    assert first.endswith("[places/vellin-light.md:0]")
    assert "looked at from the land" not in first
    assert len(rest) <= 2


def test_the_title_says_what_a_sentence_is_about():
    evidence = (
        "[orjson.md:3] orjson\nLicensed under Apache 2.0.\n\n[tqdm.md:2] tqdm\nThis library is licensed as MPL 2.0."
    )
    assert (
        quotes("What license does tqdm use?", evidence)[0] == "tqdm: This library is licensed as MPL 2.0. [tqdm.md:2]"
    )
    assert quotes("What license does orjson use?", evidence)[0] == "orjson: Licensed under Apache 2.0. [orjson.md:3]"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was the harbour lit?", "The harbour was lit in 1783."),
        ("Who lit the harbour?", "The harbour was lit by old Ottrin Grask."),
    ],
)
def test_a_sentence_of_the_kind_that_is_asked_for_comes_first(question, answer):
    evidence = (
        "[log:0] Log\nThe harbour was lit.\nThe harbour was lit by old Ottrin Grask.\nThe harbour was lit in 1783."
    )
    assert quotes(question, evidence)[0] == f"Log: {answer} [log:0]"


def test_chinese_sentences_are_quoted_whole():
    evidence = "[灯塔:0] 灯塔\n灯塔建于一七八三年。“谁也没见过它！”守塔人说。他不喜欢海。"
    assert quotes("灯塔建于何时？", evidence)[0] == "灯塔建于一七八三年。 [灯塔:0]"
    assert quotes("守塔人说什么？", evidence)[0] == "灯塔: 守塔人说。 [灯塔:0]"


def test_japanese_korean_and_russian_sentences_are_quoted_whole():
    evidence = "[灯台:0] 灯台\n灯台は北岬にある。「嵐の夜は眠らなかった。」と灯台守は語った。高さは四十二メートルだ。"
    assert quotes("灯台守は何と語りましたか？", evidence)[0] == (
        "「嵐の夜は眠らなかった。」と灯台守は語った。 [灯台:0]"
    )
    evidence = "[등대:0] 등대\n등대는 1783년에 세워졌다. 높이는 42미터이다. 불빛은 멀리 보인다."
    assert quotes("등대의 높이는?", evidence)[0] == "등대: 높이는 42미터이다. [등대:0]"
    evidence = "[маяк:0] Маяк\nБашня построена в 1783 году. Её высота 42 метра. Свет виден далеко."
    assert quotes("Какая высота башни?", evidence)[0] == "Маяк: Её высота 42 метра. [маяк:0]"


def test_a_chinese_question_is_searched_by_its_words(make_index):
    index = make_index(
        {
            "李文森": "李文森是上海商人。他的妻子周素琴创办了一所女子学校。",
            "灯塔": "灯塔由王晓明设计，建于一七八三年。",
            "海安号": "海安号轮船在灯塔附近触礁沉没。调查认为灯塔的灯熄灭了。",
        }
    )
    state = create_arag_agent("extractive", index).invoke(asked("海安号什么时候在灯塔附近沉没？"))
    assert state["trace"][1]["arguments"] == {"keywords": ["海安号", "灯塔附近沉没"]}
    assert state["answer"].splitlines()[0] == "海安号轮船在灯塔附近触礁沉没。 [海安号:0]"


def test_quotation_marks_around_nothing_are_no_name():
    evidence = '[log:0] Log\nThe harbour was lit by " ." and by old Grask.'
    assert len(quotes("Who lit the harbour?", evidence)) == 1
