from __future__ import annotations

import json
import re
import time
from itertools import pairwise
from typing import Any

import pytest
from bs4 import BeautifulSoup
from IPython.core.interactiveshell import InteractiveShell
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver

import arag
from arag import create_arag_agent, trace_page
from arag.errors import InputError
from arag.pages.page import TracePage
from arag.testing import ScriptedModel, call, calls, invalid_call
from scripted_model import QUESTION, asked, in_thread

pytest_plugins = ["graph_fixtures"]

SCRIPT = "<script>alert(1)</script>"
ANSWER = AIMessage("Boso the **Elder** [lothair:0; teutberga:0], says [annals:7] and [x]. Or not [boso:0].")


def run(index, *script, **options) -> dict[str, Any]:
    return create_arag_agent(ScriptedModel(*script), index, **options).invoke(asked())


def billed(message, model="gpt-5-mini-2025-08-07", tokens=(1000, 400, 50, 30)):
    prompt, cached, reply, reasoning = tokens
    message.usage_metadata = {
        "input_tokens": prompt,
        "output_tokens": reply,
        "total_tokens": prompt + reply,
        "input_token_details": {"cache_read": cached},
        "output_token_details": {"reasoning": reasoning},
    }
    message.response_metadata = {"model_name": model}
    return message


def parsed(state) -> BeautifulSoup:
    return BeautifulSoup(trace_page(state), "html.parser")


def words(tag) -> str:
    return " ".join(tag.get_text(" ").split())


def step(page, number):
    return page.find(id=f"step-{number}")


def target(page, link):
    return page.find(id=link["href"].removeprefix("#"))


def cell(page, name) -> str:
    return words(next(cell for cell in page.select(".totals > div") if cell.dt.get_text() == name).dd)


@pytest.fixture
def state(small_index):
    """A run with a bit of everything."""
    return run(
        small_index,
        calls(("keyword_search", {"keywords": ["Lothair II", "Teutbergaa"]}), text="First the <b>king</b>."),
        call("chunk_read", chunk_ids=["teutberga:0", "nobody:3"]),
        call("chunk_read", chunk_ids=["teutberga:0", "annals:0"]),
        call("semantic_search", query="Who was Boso?", top_k=2),
        call("keyword_search", keywords=[]),
        invalid_call("keyword_search", '{"keywords": ["Bo'),
        AIMessage("  "),
        ANSWER,
        max_invalid_replies=5,
    )


# --- the answer ---


def test_the_question_and_the_answer(state):
    page = parsed(state)
    assert page.h1.get_text() == QUESTION
    assert page.title.get_text() == QUESTION
    assert words(page.select_one(".answer")) == "Boso the Elder 1 2 , says 3 and [x]. Or not 4 ."
    assert page.select_one(".answer strong").get_text() == "Elder"
    assert "Answered" in words(page.select_one(".badges"))


def test_citations_lead_to_the_chunks_with_what_the_run_saw_of_them(state):
    page = parsed(state)
    read, seen, invented, unseen = (target(page, page.select(".answer .cite")[place]) for place in (1, 0, 2, 3))
    assert words(read) == "Teutberga was a daughter of Boso the Elder. She died in 875."
    assert "He married Teutberga in 855." in words(seen)
    assert "made it up" in words(invented)
    assert "Boso the Elder was a count" in words(unseen)  # the semantic search showed it
    assert [words(source).split("— ")[1] for source in page.select(".sources li p")] == [
        "read in full",
        "read in full",
        "made up: no such chunk in the index",
        "read in full",
    ]
    assert "1 unsupported citation" in words(page.select_one(".badges"))
    assert all(chunk.details.has_attr("open") for chunk in page.select(".chunks > li")[:4])


def test_a_chunk_that_was_never_shown_is_marked(small_index):
    page = parsed(run(small_index, AIMessage("It is so [boso:0].")))
    assert "never shown" in words(target(page, page.select_one(".answer .cite")))
    assert "never shown to the model" in words(page.select_one(".sources"))


def test_a_chunk_that_was_seen_in_excerpts_only(small_index):
    page = parsed(run(small_index, call("keyword_search", keywords=["storm number 5607"]), AIMessage("So [annals:0].")))
    link = page.select_one(".answer .cite")
    assert "seen in excerpts" in words(page.select_one(".sources"))
    assert "storm number 5607 broke the bridges" in words(target(page, link))
    assert "storm number 5663" not in words(target(page, link))


def test_a_forced_answer_is_told_from_a_free_one(small_index):
    search = call("keyword_search", keywords=["Boso"])
    page = parsed(run(small_index, search, AIMessage("Perhaps [boso:0]."), max_steps=1))
    assert words(page.select_one(".badge")) == "Forced answer: the step limit was reached"
    assert "Forced answer" in words(step(page, 2))
    assert "without tools" in words(step(page, 2))


def test_brackets_with_other_things_beside_citations_stay(small_index):
    answer = AIMessage("So [see lothair, teutberga:0, and more] and [teutberga:0,boso:0].")
    page = parsed(run(small_index, call("chunk_read", chunk_ids=["teutberga:0", "boso:0"]), answer))
    assert words(page.select_one(".answer")) == "So [see lothair, 1 , and more] and 1 2 ."


MARKDOWN = f"""# The king

**Lothair** married *Teutberga* [teutberga:0]:

- in 855 [lothair:0]
  1. says `annals [x]`
  2. ~~not~~ Boso
- {SCRIPT}

### After

| When | Who |
| ---: | --- |
| 875 | Teutberga died [teutberga:0] |

```html
{SCRIPT}
```

[a site](https://example.com/a?b=1&c=2), <https://example.com/auto>, [run](javascript:alert(1)), [file](file:///etc/passwd),
[data](data:text/html,x), [near](#chunk-1), ![a picture](https://example.com/p.png) ![](https://example.com/q.png)

[teutberga:0]: https://example.com/taken
    [lothair:0](https://example.com/taken) is not code
"""


def test_markdown_in_an_answer_is_rendered(small_index):
    page = parsed(run(small_index, call("chunk_read", chunk_ids=["teutberga:0", "lothair:0"]), AIMessage(MARKDOWN)))
    answer = page.select_one(".answer")
    assert [(heading.name, words(heading)) for heading in answer.find_all(re.compile("^h"))] == [
        ("h3", "The king"),
        ("h4", "After"),
    ]
    assert [words(item) for item in answer.select("ol > li")] == ["says annals [x]", "not Boso"]
    assert [words(cell) for cell in answer.select("td")] == ["875", "Teutberga died 1"]
    assert answer.pre.get_text() == f"{SCRIPT}\n"
    assert SCRIPT in words(answer.select("ul > li")[-1])
    assert [words(link) for link in answer.select("a.cite")] == ["1", "2", "1", "1", "2"]
    assert {tag.name for tag in answer.find_all(True)} <= set(
        "h3 h4 p strong em s a ul ol li code pre table thead tbody tr th td br".split()
    )


def test_links_in_an_answer_lead_only_to_web_addresses_and_pictures_are_not_loaded(small_index):
    answer = parsed(run(small_index, AIMessage(MARKDOWN))).select_one(".answer")
    links = [link for link in answer.find_all("a") if "cite" not in link.get("class", ())]
    assert [link["href"] for link in links] == ["https://example.com/a?b=1&c=2", "https://example.com/auto"]
    assert all(link["rel"] == ["noopener", "noreferrer"] and link["target"] == "_blank" for link in links)
    assert "[run](javascript:alert(1))" in words(answer)
    assert "[a picture] [picture]" in words(answer)
    assert not answer.find_all("img")
    assert "[teutberga:0]: https://example.com/taken" in answer.get_text() or ": https://example.com/taken" in words(
        answer
    )


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "*a " * 5_000, "> " * 2_000, "![" * 3_000, "`" * 5_000, "|a" * 3_000 + "\n|-"]
)
def test_long_markup_takes_no_long_time(text):
    began = time.perf_counter()
    trace_page({"messages": [HumanMessage("?"), AIMessage(text)]})
    assert time.perf_counter() - began < 30


# --- the sources ---


def test_a_source_shows_where_it_is_from_and_its_quotes_are_marked(make_index):
    text = (
        "The mole was built in 1790. "
        + "Ships anchor north of it. " * 60
        + "\n\nThe dues are four\nmarks. "
        + "A. " * 300
    )
    origin = {"url": "https://example.com/guide?a=1", "author": ["A. Clerk", "B. Clerk"], "date": "1849"}
    index = make_index([{"id": "guide", "title": "Guide", "text": text, **origin}], chunk_tokens=300)
    chunks = [index.get(chunk_id) for chunk_id in index.chunk_ids()]
    dues = next(chunk.id for chunk in chunks if "dues" in chunk.text)
    part = f"Guide, part {index.get(dues).ordinal + 1} of {len(chunks)}"
    page = parsed(run(index, call("chunk_read", chunk_ids=[dues]), AIMessage(f"The dues are four marks [{dues}].")))
    [source] = page.select(".sources li")
    assert words(source.b) == part
    assert words(source.select_one(".origin")) == "A. Clerk, B. Clerk, 1849 https://example.com/guide?a=1"
    assert source.select_one(".origin a")["href"] == origin["url"]
    assert words(source.blockquote) == "The dues are four marks."
    assert words(page.select_one(".chunks b")) == part
    assert [words(mark) for mark in page.select(".chunks mark")] == ["The dues are four marks."]
    page = parsed(
        run(index, call("keyword_search", keywords=["dues"]), AIMessage(f"The dues are four marks [{dues}]."))
    )
    assert words(page.select_one(".chunks b")) == part
    assert [words(mark) for mark in page.select(".chunks mark")] == ["The dues are four marks."]


def test_citations_of_earlier_versions_and_of_strangers_are_shown_as_far_as_they_go(state):
    keys = ("chunk_id", "document_ids", "titles", "seen", "read")
    state["citations"] = [{key: citation[key] for key in keys} for citation in state["citations"]]
    state["citations"][0] |= {
        "documents": [{"title": "T", "url": "javascript:alert(1)"}],
        "quotes": [{}],
        "pages": [3, 3],
    }
    page = parsed(state)
    assert [words(source.b) for source in page.select(".sources li") if source.b] == [
        "T, page 3",
        "Teutberga",
        "Boso the Elder",
    ]
    assert not page.select(".sources .origin a, .sources blockquote")


# --- the steps ---


def test_a_search_shows_what_it_found_with_keywords_marked(state):
    first = step(parsed(state), 1)
    assert words(first.h3) == "keyword_search"
    assert first.select_one(".said").get_text() == "First the <b>king</b>."
    assert [words(chip) for chip in first.select(".chip")] == [
        "Lothair II 1 chunk",
        "Teutbergaa none, closest: Teutberga",
    ]
    assert {mark.get_text() for mark in first.find_all("mark")} == {"Lothair II"}
    assert "1 chunk: Lothair II" in words(first.summary)
    assert "He married Teutberga in 855." in words(first.select_one(".hits"))
    assert re.search(r"\d+ tokens retrieved", words(first))


def test_reading_says_what_is_new_was_read_before_or_does_not_exist(state):
    page = parsed(state)
    first, second = step(page, 2).select(".reads li"), step(page, 3).select(".reads li")
    assert words(first[0]) == "teutberga:0 new"
    assert words(first[1]).startswith("nobody:3 no such chunk; closest: ")
    assert [words(read) for read in second] == ["teutberga:0 read before", "annals:0 new"]
    assert "storm number 5607" in words(target(page, second[1].a))
    assert first[1].a is None


def test_a_semantic_search_shows_similarities(state):
    fourth = step(parsed(state), 4)
    assert "“Who was Boso?”" in words(fourth)
    assert "top_k 2" in words(fourth)
    hits = fourth.select(".hits > li")
    assert len(hits) == 2
    assert all(re.search(r"similarity -?\d\.\d\d", words(hit)) for hit in hits)
    assert all(hit.select(".similarity") for hit in hits)
    assert not fourth.find_all("mark")


def test_errors_and_empty_replies_are_plain_to_see(state):
    page = parsed(state)
    assert "keywords: Value error, there are 0: give 1 to 50" in words(step(page, 5).select_one(".error"))
    assert "not valid JSON" in words(step(page, 6).select_one(".error"))
    assert '{"keywords": ["Bo' in words(step(page, 6).select_one(".arguments"))
    assert "Empty reply" in words(step(page, 7))
    badge = page.select_one("a.errors")
    assert words(badge) == "Errors in steps 5, 6"
    assert target(page, badge) is step(page, 5)


def test_several_calls_of_one_message_stand_in_one_step(small_index):
    searches = calls(("keyword_search", {"keywords": ["Boso"]}), ("keyword_search", {"keywords": ["Arles"]}))
    page = parsed(run(small_index, searches, ANSWER))
    assert [words(name) for name in step(page, 1).find_all("h3")] == ["keyword_search", "keyword_search"]
    assert [words(chip) for chip in step(page, 1).select(".chip")] == ["Boso 2 chunks", "Arles 1 chunk"]


def test_other_tools_show_their_text(small_index):
    artifacts = [None, {"results": [1, 2]}, {"results": {"query": "q", "hits": []}}, "text"]
    messages = [HumanMessage("?")]
    for number, artifact in enumerate(artifacts):
        messages += [
            call("look_up", f"c{number}", word="king", deep={"a": [1, None]}),
            ToolMessage(f"Entry {SCRIPT} {number}", tool_call_id=f"c{number}", name="look_up", artifact=artifact),
        ]
    page = parsed({"messages": [*messages, AIMessage("A king.")]})
    for number in range(4):
        shown = step(page, number + 1)
        assert shown.pre.get_text() == f"Entry {SCRIPT} {number}"
        assert 'word “king” deep {"a": [1, null]}' in words(shown)


def test_searches_that_return_full_texts(small_index):
    page = parsed(run(small_index, call("keyword_search", keywords=["Teutberga"]), ANSWER, tools=["keyword_search"]))
    assert "She died in 875." in words(target(page, page.select(".answer .cite")[1]))
    assert "read in step 1" in words(page.select_one(".chunks"))


def test_reasoning_is_shown():
    reply = AIMessage(
        [{"type": "reasoning", "reasoning": "Perhaps a king?"}],
        tool_calls=[{"name": "f", "args": {}, "id": "1", "type": "tool_call"}],
    )
    page = parsed({"messages": [HumanMessage("?"), reply, ToolMessage("x", tool_call_id="1"), AIMessage("Yes.")]})
    assert "Perhaps a king?" in words(step(page, 1))


# --- figures ---


def test_tokens_seconds_and_cost_of_every_call_and_in_all(small_index):
    search = billed(call("keyword_search", keywords=["Boso"]))
    state = run(small_index, search, billed(AIMessage("A count [boso:0].")))
    page = parsed(state)
    figures = words(step(page, 1).select_one(".figures"))
    assert "1,000 tokens in (400 cached)" in figures
    assert "50 out (30 reasoning)" in figures
    assert "$0.0003" in figures  # 600 × 0.25 + 400 × 0.025 + 50 × 2, by the million
    assert " s" in figures
    assert cell(page, "Steps") == "2 1 tool call"
    assert cell(page, "Input tokens") == "2,000 800 cached"
    assert cell(page, "Output tokens") == "100 60 reasoning"
    assert cell(page, "Cost").startswith("$0.0005 at prices of genai-prices 0.")
    assert "gpt-5-mini-2025-08-07" in words(page.header)
    # The messages alone tell as much, but for the time.
    alone = parsed({"messages": state["messages"]})
    assert [cell(alone, name) for name in ("Input tokens", "Output tokens", "Cost")] == [
        cell(page, name) for name in ("Input tokens", "Output tokens", "Cost")
    ]
    assert cell(alone, "Time") == "unknown"


def test_what_is_not_known_is_not_zero(small_index):
    page = parsed(run(small_index, call("keyword_search", keywords=["Boso"]), ANSWER))
    assert cell(page, "Cost").startswith("unknown")
    assert cell(page, "Input tokens").startswith("unknown")
    billed_by_a_stranger = billed(AIMessage("Done."), model="qwen3")
    page = parsed(run(small_index, billed_by_a_stranger))
    assert cell(page, "Cost").startswith("unknown")
    assert cell(page, "Input tokens") == "1,000 400 cached"


def test_the_built_in_model_is_free(small_index):
    page = parsed(create_arag_agent("extractive", small_index).invoke(asked("Who was the father of Teutberga?")))
    assert cell(page, "Cost").startswith("$0 ")
    assert "extractive" in words(page.header)
    assert page.find_all("mark")


# --- states of other kinds ---


def as_json(state, messages):
    return json.loads(json.dumps({**state, "messages": messages}))


def test_a_state_that_came_as_json_gives_the_same_page(state):
    page = trace_page(state)
    assert trace_page(as_json(state, [m.model_dump() for m in state["messages"]])) == page  # LangGraph's server
    assert trace_page(as_json(state, messages_to_dict(state["messages"]))) == page
    assert trace_page(as_json(state, [dumpd(m) for m in state["messages"]])) == page


def test_the_second_kind_of_output_gives_the_same_page(small_index):
    agent = create_arag_agent(ScriptedModel(ANSWER, ANSWER), small_index)
    old, new = (agent.invoke(asked(), version=version) for version in ("v1", "v2"))
    seconds = r"(&lt;\u202f)?[\d.]+ s"
    assert re.sub(seconds, "", trace_page(old)) == re.sub(seconds, "", trace_page(new))


@pytest.mark.parametrize(
    "why",
    [
        {"finish_reason": "length"},
        {"stop_reason": "max_tokens"},
        {"finish_reason": "MAX_TOKENS"},
        {"status": "incomplete"},
    ],
)
def test_a_reply_that_is_cut_off_is_told(small_index, why):
    answers = [AIMessage("Boso the", response_metadata=metadata) for metadata in (why, {"finish_reason": "stop"})]
    pages = [parsed(run(small_index, answer)) for answer in answers]
    assert ["The reply was cut off" in words(page.select_one("#step-1")) for page in pages] == [True, False]


def test_messages_alone_give_a_page(state):
    page = parsed({"messages": state["messages"]})
    assert "Boso the Elder" in words(page.select_one(".answer"))
    assert len(page.select(".steps > li")) == 7  # of the empty reply they hold nothing
    assert cell(page, "Steps") == "7 6 tool calls"


def test_a_run_that_failed_shows_what_there_is(small_index):
    agent = create_arag_agent(
        ScriptedModel(call("keyword_search", keywords=["Boso"]), RuntimeError("down")),
        small_index,
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(RuntimeError):
        agent.invoke(asked(), in_thread())
    page = parsed(agent.get_state(in_thread()).values)
    assert "No answer" in words(page.select_one(".badges"))
    assert page.select_one(".answer") is None
    assert "2 chunks: Boso the Elder, Teutberga" in words(step(page, 1))


@pytest.mark.parametrize(
    ("stages", "shown"),
    [
        ([{"title": "Facts"}], [("Facts", [])]),
        ([{"title": "Facts", "lines": None}], [("Facts", [])]),
        ([{"title": "Facts", "lines": "all of them"}], [("Facts", ["all of them"])]),
        ([{"lines": ["one", 2]}], [("Stage 1", ["one", "2"])]),
        (["one"], [("Stage 1", ["one"])]),
        ("one", [("Stage 1", ["one"])]),
        (None, []),
    ],
)
def test_stages_of_any_form_are_shown(stages, shown):
    page = parsed({"messages": [HumanMessage(QUESTION), AIMessage("Boso")], "stages": stages})
    found = [(stage.h3.text, [line.text for line in stage.select("li")]) for stage in page.select(".stages > li")]
    assert found == shown


def test_retrievals_that_lack_most_are_shown():
    entries = [{}, {"tool": "bm25", "arguments": "Boso", "new_chunks": ["boso:0"], "retrieved_tokens": 7}]
    state = {"messages": [HumanMessage(QUESTION), AIMessage("Boso")], "trace": entries, "read_chunks": ["boso:0"]}
    page = parsed(state)
    assert [words(found.h3) for found in page.select(".retrieval")] == ["unknown", "bm25"]
    assert "Boso" in words(page.select(".retrieval .arguments")[1])
    assert cell(page, "Retrieved tokens").startswith("7")


def test_an_empty_answer_hides_nothing_of_the_way_to_it():
    model_call = {"step": 1, "model": "gpt-5-mini", "provider": "openai", "input_tokens": 9, "output_tokens": 1}
    state = {"messages": [HumanMessage(QUESTION)], "answer": "", "trace": [{"tool": "retrieve"}]}
    state |= {"model_calls": [model_call, model_call], "stop_reason": "answered"}
    page = parsed(state)
    assert "No answer" in words(page.select_one(".badges"))
    assert len(page.select(".retrieval")) == 1
    assert len(page.select(".unspoken > li")) == 2
    assert "The model gave no reply" not in page.text


def test_a_run_that_failed_says_why_and_which_model_was_asked():
    state = {"messages": [HumanMessage(QUESTION)], "trace": [], "stop_reason": None}
    page = BeautifulSoup(trace_page(state, error=f"refused {SCRIPT}", model="openai:gpt-5-mini"), "html.parser")
    assert words(page.header.find(class_="error")) == f"The run failed with openai:gpt-5-mini. refused {SCRIPT}"
    assert words(page.select_one(".badges")) == "Failed"
    assert page.title.text == f"Failed: {QUESTION}"
    assert page.find(class_="eyebrow").text == "Run with openai:gpt-5-mini"
    assert not page.find("script")


def test_a_call_without_a_result_is_an_error():
    page = parsed({"messages": [HumanMessage("?"), call("look_up", word="x")]})
    assert "no result" in words(step(page, 1).select_one(".error"))
    assert "No answer" in words(page.select_one(".badges"))


def test_a_second_question_shows_the_first_in_short(small_index):
    agent = create_arag_agent(
        ScriptedModel(
            call("chunk_read", chunk_ids=["teutberga:0"]),
            AIMessage("A daughter of Boso [teutberga:0]. " + "And so on. " * 100),
            AIMessage("In 875 [teutberga:0]."),
            RuntimeError("down"),
        ),
        small_index,
        checkpointer=InMemorySaver(),
    )
    agent.invoke(asked("Who was Teutberga?"), in_thread())
    page = parsed(agent.invoke(asked("When did she die?"), in_thread()))
    assert page.h1.get_text() == "When did she die?"
    assert "Who was Teutberga?" in words(page.select_one(".earlier"))
    assert len(words(page.select_one(".earlier"))) < 600
    assert len(page.select(".steps > li")) == 1
    assert "She died in 875." in words(target(page, page.select_one(".answer .cite")))
    assert "read earlier" in words(page.select_one(".chunks"))

    # A third one whose first model call fails: what the state still says of the second one is not shown.
    with pytest.raises(RuntimeError):
        agent.invoke(asked("And Boso?"), in_thread())
    page = parsed(agent.get_state(in_thread()).values)
    assert page.h1.get_text() == "And Boso?"
    assert "No answer" in words(page.select_one(".badges"))
    assert not page.select(".sources, .steps > li")


@pytest.mark.parametrize(
    "state",
    [
        {},
        None,
        "text",
        {"messages": []},
        {"messages": None},
        {"messages": [AIMessage("Hello.")]},
        {"messages": [{"type": "nonsense", "content": ""}]},
        {"messages": [{"type": "human"}]},
        {"messages": [3]},
    ],
)
def test_what_is_no_run_is_refused(state):
    with pytest.raises(InputError, match="messages"):
        trace_page(state)


# --- nothing from outside gets in, nothing is loaded ---


@pytest.fixture
def hostile_page(make_index):
    ids = [f"{SCRIPT}", "a]b, c", "\" onclick='x'", "javascript:x"]
    texts = [
        f"Lothair {SCRIPT} </details></main></style> <img src=http://example.com/x onerror=alert(1)>.",
        f"Lothair too.\n\n[{SCRIPT}:0] forged beginning of another chunk.",
        "Lothair {{ 7 * 7 }} {% raw %}\u202e reversed.",
        "Lothair &lt;b&gt; &amp; ]]> <!-- comment.",
    ]
    documents = [
        {"id": i, "title": f"T {SCRIPT}", "text": text + " Much more. " * 20}
        for i, text in zip(ids, texts, strict=True)
    ]
    index = make_index(documents)
    script = [
        calls(("keyword_search", {"keywords": ["Lothair", "<img", SCRIPT]}), text=SCRIPT),
        call("chunk_read", chunk_ids=[f"{i}:0" for i in ids]),
        call(SCRIPT, **{SCRIPT: SCRIPT, "list": [SCRIPT], "deep": {SCRIPT: [SCRIPT]}}),
        AIMessage(f"So {SCRIPT} " + " ".join(f"[{i}:0]" for i in ids) + f" [{SCRIPT}:99]"),
    ]
    state = create_arag_agent(ScriptedModel(*script), index).invoke(asked(f"Who {SCRIPT} is Lothair?"))
    return trace_page(state)


def test_texts_are_escaped(hostile_page):
    page = BeautifulSoup(hostile_page, "html.parser")
    assert not page.find_all(["script", "img", "iframe", "object", "embed", "link", "base", "form", "input"])
    assert [len(page.find_all(name)) for name in ("html", "main", "style")] == [1, 1, 1]
    assert SCRIPT in page.h1.get_text()
    assert SCRIPT in page.select_one(".answer").get_text()
    assert SCRIPT in step(page, 1).select_one(".said").get_text()
    assert "{{ 7 * 7 }}" in page.get_text()
    allowed = {"class", "id", "href", "title", "aria-label", "aria-labelledby", "aria-hidden", "dir", "lang", "open"}
    for tag in page.body.find_all(True):
        assert set(tag.attrs) <= {*allowed, "tabindex"}, tag


def test_every_link_leads_to_a_place_in_the_page(hostile_page, state):
    for html in (hostile_page, trace_page(state)):
        page = BeautifulSoup(html, "html.parser")
        links = page.find_all("a")
        assert len(links) > 5
        for link in links:
            assert link["href"].startswith("#"), link
            assert target(page, link) is not None, link
        ids = [tag["id"] for tag in page.find_all(id=True)]
        assert len(ids) == len(set(ids))


def test_nothing_is_loaded(hostile_page):
    page = BeautifulSoup(hostile_page, "html.parser")
    policy = page.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not re.search(r"url\(|@import|https?:", page.style.get_text())
    assert not page.find_all(src=True)


def test_a_text_that_looks_like_the_beginning_of_another_chunk_is_given_to_neither(hostile_page):
    page = BeautifulSoup(hostile_page, "html.parser")
    forged = [body for body in page.select(".chunks .body") if "forged beginning" in body.get_text()]
    assert len(forged) == 4
    assert all("read together with others" in words(body) for body in forged)


def test_half_characters_can_be_written():
    page = trace_page({"messages": [HumanMessage("What is \ud83d?"), AIMessage("It is \udc00.")]})
    assert "What is \ufffd?" in page
    page.encode("utf-8")


# --- a page for people ---


def test_headings_and_landmarks(state):
    page = parsed(state)
    assert len(page.find_all("h1")) == 1
    levels = [int(heading.name[1]) for heading in page.find_all(re.compile("^h[1-6]$"))]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.find("main")
    assert page.html["lang"] == "en"
    for section in page.find_all("section"):
        assert page.find(id=section["aria-labelledby"]).name == "h2"
    assert all(link.get("aria-label") for link in page.select(".cite"))


# --- notebooks and the command line ---


def test_a_notebook_shows_a_page_in_a_frame(state):
    page = trace_page(state)
    assert isinstance(page, TracePage)
    assert isinstance(page, str)
    frame = BeautifulSoup(page._repr_html_(), "html.parser")
    assert [tag.name for tag in frame.find_all(True)] == ["iframe"]
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in page._repr_html_()  # only links, in new tabs
    assert frame.iframe["srcdoc"].replace('<base href="about:srcdoc">\n', "") == page
    assert len(repr(page)) < 100  # is stored in the notebook, too


def test_a_notebook_shows_a_final_state_as_the_page_and_leaves_other_dicts_alone(state):
    shell = InteractiveShell()
    try:
        shell.run_line_magic("load_ext", "arag")

        def shown(value):
            return shell.display_formatter.format(value)[0].get("text/html")

        assert shown(state) == trace_page(state)._repr_html_()
        others = [{}, {"a": 1}, {"messages": []}, {"messages": [], "trace": [], "stop_reason": None}]
        others += [{"messages": ["q"], "trace": "t", "stop_reason": 1}]
        others += [{"messages": ["q", AIMessage("a")], "trace": ["t"], "stop_reason": 1}]
        assert [shown(other) for other in others] == [None] * 6
        shell.run_line_magic("reload_ext", "arag")
        assert shown(state)
        shell.run_line_magic("unload_ext", "arag")
        assert shown(state) is None
    finally:
        InteractiveShell.clear_instance()


def test_what_showed_dicts_before_still_does(state):
    shell = InteractiveShell()
    try:
        formatter = shell.display_formatter.formatters["text/html"]
        formatter.for_type(dict, lambda value: f"<p>{len(value)}</p>")
        arag.load_ipython_extension(shell)
        assert formatter({"a": 1}) == "<p>1</p>"
        assert formatter(state).startswith("<iframe")
        arag.unload_ipython_extension(shell)
        assert formatter(state).startswith("<p>")
    finally:
        InteractiveShell.clear_instance()
