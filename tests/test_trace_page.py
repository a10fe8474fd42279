"""The page of a run, as a browser gets it."""

from __future__ import annotations

import json
import re

import pytest
from bs4 import BeautifulSoup
from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver

from arag import create_arag_agent, trace_page
from arag.cli.conversation import run_record
from arag.errors import InputError
from scripted import QUESTION, ScriptedModel, asked, call, calls, in_thread, invalid_call

SCRIPT = "<script>alert(1)</script>"
ANSWER = AIMessage("Boso the **Elder** [lothair:0; teutberga:0], says [annals:7] and [x]. Or not [boso:0].")


def run(index, *script, **options):
    return create_arag_agent(ScriptedModel(*script), index, tools="paper", **options).invoke(asked())


def parsed(state, **options) -> BeautifulSoup:
    return BeautifulSoup(trace_page(state, **options), "html.parser")


def words(tag) -> str:
    return " ".join(tag.get_text(" ").split())


def total(page, name) -> str:
    return words(next(cell for cell in page.select(".totals > div") if cell.dt.get_text() == name).dd)


@pytest.fixture
def state(small_index):
    """A run with a bit of everything."""
    search = calls(("keyword_search", {"keywords": ["Lothair II", "Teutbergaa"]}), text="First the <b>king</b>.")
    search.usage_metadata = {
        "input_tokens": 1_000,
        "output_tokens": 50,
        "total_tokens": 1_050,
        "input_token_details": {"cache_read": 400},
        "output_token_details": {"reasoning": 30},
    }
    search.response_metadata = {"model_name": "gpt-5-mini-2025-08-07"}
    read = call("chunk_read", chunk_ids=["teutberga:0", "nobody:3"])
    bad = invalid_call("keyword_search", '{"keywords": ["Bo')
    return run(small_index, search, read, call("keyword_search", keywords=[]), bad, ANSWER)


def test_the_page_shows_the_question_the_answer_and_its_sources(state):
    page = parsed(state)
    assert page.h1.get_text() == page.title.get_text() == QUESTION
    assert words(page.select_one(".answer")) == "Boso the Elder [ 1 ; 2 ], says 3 and [x]. Or not 4 ."
    assert "Answered" in words(page.select_one(".badges"))
    assert "2 unsupported citations" in words(page.select_one(".badges"))
    sources = [page.find(id=link["href"].removeprefix("#")) for link in page.select(".answer .cite")]
    assert [words(source.p).partition("— ")[2] for source in sources] == [
        "read in full",
        "read in full",
        "made up: no such chunk in the index",
        "never shown to the model",
    ]
    assert words(sources[1].b) == "Teutberga"


def test_each_step_shows_the_text_that_the_model_got(state):
    page = parsed(state)
    results = [message.text for message in state["messages"] if message.type == "tool"]
    search, read, wrong, invalid, answer = page.select(".steps > li")
    assert search.select_one(".said").get_text() == "First the <b>king</b>."
    assert (words(search.h3), search.pre.get_text()) == ("keyword_search", results[0])
    assert "keywords Lothair II · Teutbergaa" in words(search.select_one(".arguments"))
    assert read.pre.get_text() == results[1]
    assert results[2].split("\n")[0] in wrong.select_one(".error").get_text()
    assert "not valid JSON" in words(invalid.select_one(".error"))
    assert '{"keywords": ["Bo' in words(invalid.select_one(".arguments"))
    assert words(answer.h3) == "Answer"
    assert "1,000 tokens in (400 cached)" in words(search.select(".figures")[-1])
    assert (total(page, "Model calls"), total(page, "Input tokens")) == ("5 4 tool calls", "1,000 400 cached")
    assert "gpt-5-mini-2025-08-07" in words(page.header)


def test_passages_and_short_texts_in_searches_count_as_read(small_index):
    search = call("keyword_search", keywords=["Lothair II"])
    read = call("chunk_read", chunk_ids=["annals:0"], about="In the year 805")
    state = run(small_index, search, read, ANSWER)
    assert total(parsed(state), "Retrieved tokens").endswith("of evidence, 2 chunks read")
    assert run_record(QUESTION, state)["chunks_read"] == 2


def test_what_is_not_known_is_not_zero_and_the_built_in_model_is_free(small_index):
    page = parsed(run(small_index, ANSWER, max_steps=1))
    assert total(page, "Cost").startswith("unknown")
    assert total(page, "Input tokens").startswith("unknown")
    page = parsed(create_arag_agent("extractive", small_index).invoke(asked()))
    assert total(page, "Cost") == "$0 the model is free"


def test_a_forced_answer_says_why(small_index):
    page = parsed(run(small_index, call("keyword_search", keywords=["Boso"]), AIMessage("Perhaps."), max_steps=1))
    assert words(page.select_one(".badge")) == "Answer forced: max steps"
    assert "Forced answer" in words(page.select(".steps > li")[-1])


def test_no_answer_found_is_not_shown_as_answered(small_index):
    found, missed = "Whom did Lothair II marry in 855?", "Why did the moon of Teutberga crumble?"
    ends = []
    for question in (found, missed):
        badge = parsed(create_arag_agent("extractive", small_index).invoke(asked(question))).select_one(".badge")
        ends.append((words(badge), badge["class"]))
    assert ends == [("Answered", ["badge", "answered"]), ("No answer found", ["badge", "unanswered"])]


MARKDOWN = f"""# The king

**Lothair** married [teutberga:0], see `lothair:0` and ([teutberga:0]):

- {SCRIPT}

| When | Who |
| ---: | --- |
| 875 | Teutberga died [teutberga:0] |

[a site](https://example.com/a?b=1&c=2), [run](javascript:alert(1)), [data](data:text/html,x), ![a picture](https://example.com/p.png)

[teutberga:0]: https://example.com/taken
"""


def test_the_markdown_of_an_answer_is_rendered_and_nothing_in_it_runs_or_is_loaded(small_index):
    read = call("chunk_read", chunk_ids=["teutberga:0", "lothair:0"])
    answer = parsed(run(small_index, read, AIMessage(MARKDOWN))).select_one(".answer")
    assert answer.h1.get_text() == "The king"
    assert [words(cell) for cell in answer.select("td")] == ["875", "Teutberga died 1"]
    assert SCRIPT in words(answer.select_one("ul > li"))
    links = [link for link in answer.find_all("a") if "cite" not in link.get("class", ())]
    assert [link["href"] for link in links] == ["https://example.com/a?b=1&c=2", "https://example.com/p.png"]
    assert "[run](javascript:alert(1))" in words(answer)
    assert {tag.name for tag in answer.find_all(True)} <= set(
        "h1 p strong a ul li code table thead tbody tr th td br".split()
    )


@pytest.mark.parametrize("answer", ["[run](vscode://file/etc)", "[up](../../x)", "&#xE000;99&#xE001;"])
def test_an_answer_links_to_web_pages_only(small_index, answer):
    assert parsed(run(small_index, AIMessage(answer), max_steps=1)).select_one(".answer").find_all("a") == []


def test_a_citation_in_the_title_of_a_link_leaves_the_link_whole(small_index):
    answer = AIMessage('[teutberga:0] [her](https://x.com "of teutberga:0 a")')
    (cite, link) = parsed(run(small_index, answer, max_steps=1)).select(".answer a")
    assert (cite["href"], link["href"], link.get_text()) == ("#source-1", "https://x.com", "her")


def test_citations_in_code_and_after_any_character_are_links(small_index):
    text = "It is so![teutberga:0] See `[teutberga:0]`.\n\n```\n[teutberga:0]\n```"
    answer = parsed(run(small_index, AIMessage(text), max_steps=1)).select_one(".answer")
    assert words(answer) == "It is so! 1 See 1 . 1"
    assert [link["href"] for link in answer.select(".cite")] == ["#source-1"] * 3


def test_texts_of_documents_and_models_are_escaped_and_the_page_loads_nothing(make_index):
    index = make_index([{"id": SCRIPT, "title": f"T {SCRIPT}", "text": f"Lothair {SCRIPT} </details></main></style>."}])
    script = [
        calls(("keyword_search", {"keywords": ["Lothair", SCRIPT]}), text=SCRIPT),
        call(SCRIPT, **{SCRIPT: SCRIPT, "deep": {SCRIPT: [SCRIPT]}}),
        AIMessage(f"So {SCRIPT} [{SCRIPT}:0] {{{{ 7 * 7 }}}}"),
    ]
    page = parsed(create_arag_agent(ScriptedModel(*script), index, tools="paper").invoke(asked(f"Who {SCRIPT}?")))
    assert not page.find_all(["script", "img", "iframe", "object", "embed", "link", "base", "form", "input"])
    assert [len(page.find_all(name)) for name in ("html", "main", "style")] == [1, 1, 1]
    assert page.get_text().count(SCRIPT) > 5
    assert "{{ 7 * 7 }}" in page.get_text()
    assert not page.find_all(src=True)
    assert not re.search(r"url\(|@import|https?:", page.style.get_text())
    policy = page.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert all(page.find(id=link["href"].removeprefix("#")) for link in page.find_all("a"))


def test_a_state_that_came_as_json_gives_the_same_page(state):
    # As LangGraph's server sends messages, and as the records of experiments hold them.
    for messages in ([m.model_dump() for m in state["messages"]], messages_to_dict(state["messages"])):
        assert trace_page(json.loads(json.dumps({**state, "messages": messages}))) == trace_page(state)
    assert total(parsed({"messages": state["messages"]}), "Model calls") == "5 4 tool calls"
    document = {"id": "x", "title": "X", "url": "javascript:alert(1)", "author": "", "date": ""}
    citation = state["citations"][0] | {"document": document}
    assert not parsed({**state, "citations": [citation]}).select('[href^="javascript"]')


def test_a_run_that_failed_shows_what_there_is_and_why(small_index):
    script = [call("keyword_search", keywords=["Boso"]), AIMessage("A count [boso:0]."), RuntimeError("down")]
    agent = create_arag_agent(ScriptedModel(*script), small_index, tools="paper", checkpointer=InMemorySaver())
    agent.invoke(asked("Who was Boso?"), in_thread())
    with pytest.raises(RuntimeError):
        agent.invoke(asked(), in_thread())
    page = parsed(agent.get_state(in_thread()).values, error=f"refused {SCRIPT}", model="openai:gpt-5-mini")
    assert page.title.text == f"Failed: {QUESTION}"
    assert words(page.header.select_one(".error")) == f"The run failed. refused {SCRIPT}"
    assert "openai:gpt-5-mini" in words(page.header)
    assert "Who was Boso?" in words(page.select_one(".earlier"))
    assert not page.select(".answer, .sources, .steps > li")  # those in the state are of the question before


def test_the_record_of_another_method_shows_its_notes_and_retrievals():
    retrieval = {"tool": "bm25", "arguments": {"query": "Boso"}, "chunk_ids": ["boso:0"], "new_chunks": ["boso:0"]}
    retrieval |= {"error": None}
    record = {
        "messages": [HumanMessage(QUESTION), AIMessage("Boso.")],
        "trace": [retrieval | {"retrieved_tokens": 7, "evidence_tokens": 5, "seconds": None}],
        "notes": [{"title": "Facts", "lines": ["one", "two"]}],
    }
    page = parsed(record)
    assert "Facts (2)" in words(page.select_one(".notes"))
    assert (words(page.select_one(".call h3")), total(page, "Retrieved tokens")[:1]) == ("bm25", "7")


def test_calls_without_results_reasoning_and_half_characters_are_shown():
    reply = AIMessage([{"type": "reasoning", "reasoning": "Perhaps?"}], tool_calls=call("look_up", word="x").tool_calls)
    page = parsed({"messages": [HumanMessage("What is \ud83d?"), reply]})
    assert "What is \ufffd?" in page.h1.get_text()
    assert "Perhaps?" in words(page.select_one(".steps"))
    assert "no result" in words(page.select_one(".steps .error"))
    assert "No answer" in words(page.select_one(".badges"))


def test_arguments_that_are_objects_lists_and_numbers_show_their_values():
    arguments = {
        "filter": {"year": 862, "name": "Boso <b>"},
        "words": ["käfig", 7],
        "parts": [{"a": [1]}],
        "limit": None,
    }
    page = parsed({"messages": [HumanMessage(QUESTION), call("look_up", **arguments)]})
    shown = [code.get_text() for code in page.select(".arguments code")]
    assert shown == ['{"year": 862, "name": "Boso <b>"}', "käfig · 7", '{"a": [1]}', "null"]


def test_what_has_no_question_is_refused():
    with pytest.raises(InputError, match="there is no question"):
        trace_page({"messages": [AIMessage("Hello.")]})
    with pytest.raises(InputError, match="one of the run's messages is not valid"):
        trace_page({"messages": [{"type": "nonsense"}]})


def test_a_notebook_shows_the_page_in_a_frame_that_may_only_open_links(state):
    page = trace_page(state)
    frame = BeautifulSoup(page._repr_html_(), "html.parser")
    assert [tag.name for tag in frame.find_all(True)] == ["iframe"]
    assert frame.iframe["sandbox"] == ["allow-popups", "allow-popups-to-escape-sandbox"]
    assert frame.iframe["srcdoc"].replace('<base href="about:srcdoc">\n', "") == page
    assert len(repr(page)) < 100  # it is stored in the notebook, too


def test_an_answer_from_memory_and_replies_that_were_not_used_are_shown_as_that(small_index):
    thought = AIMessage("<think>Hm [none.md:1].</think>It was Charlemagne.")
    page = parsed(run(small_index, AIMessage("Let me search for that."), thought, thought))
    assert "not from the corpus" in words(page.select_one(".badges"))
    announced, unsearched, answer = page.select(".steps > li")
    assert "a search was announced, but no tool called" in words(announced)
    assert "nothing was searched" in words(unsearched)
    assert "Hm [none.md:1]." in words(answer.select_one("details"))
    assert "Hm" not in words(page.select_one(".answer"))
    cut = AIMessage("It was", response_metadata={"finish_reason": "length"})
    page = parsed(run(small_index, call("keyword_search", keywords=["Boso"]), cut, cut))
    assert words(page.select_one(".badge")) == "Answer cut off"
