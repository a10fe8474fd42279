"""Quotes of citations in an agent whose other middleware changes results, requests or answers."""

from __future__ import annotations

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, PIIMiddleware
from langchain.agents.middleware.types import after_agent, wrap_model_call, wrap_tool_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from arag import ARAGMiddleware, SourcesMiddleware, create_arag_agent, make_agent_tool
from scripted import ScriptedModel, asked, call, in_thread, results

both_orders = pytest.mark.parametrize("ours_first", [True, False], ids=["outside", "inside"])

ADDRESS = "odvar@felisk.example"
CONTACT = [
    {
        "id": "contact",
        "title": "Contact",
        "text": f"The office is open at noon. Write to the harbour master at {ADDRESS} about a mooring. Bring a flag.",
    }
]
MOORING = AIMessage("The harbour master is reached by mail about a mooring [contact:0].")
LOOKS = {
    "chunk_read": {"chunk_ids": ["contact:0"]},
    "keyword_search": {"keywords": ["mooring"]},
    "semantic_search": {"queries": ["harbour master mooring"]},
    "shell": {"command": "rg -i mooring"},
}


def redact(text):
    return text.replace(ADDRESS, "[taken out]")


@wrap_tool_call
def redact_results(request, handler):
    """Changes a result before it is in the conversation."""
    result = handler(request)
    return result.model_copy(update={"content": redact(result.text)})


@wrap_model_call
def redact_requests(request, handler):
    """Changes what the model is sent; the conversation keeps all."""
    messages = []
    for message in request.messages:
        is_result = isinstance(message, ToolMessage)
        messages.append(message.model_copy(update={"content": redact(message.text)}) if is_result else message)
    return handler(request.override(messages=messages))


def personal(strategy):
    return PIIMiddleware("email", strategy=strategy, apply_to_tool_results=True)


REDACTORS = {
    "redact": personal("redact"),
    "mask": personal("mask"),
    "hash": personal("hash"),
    "results": redact_results,
    "requests": redact_requests,
}


@both_orders
@pytest.mark.parametrize("redactor", REDACTORS)
@pytest.mark.parametrize("name", LOOKS)
def test_quotes_are_what_the_model_was_shown(make_index, ours_first, redactor, name):
    index = make_index(CONTACT)
    model = ScriptedModel(call(name, **LOOKS[name]), MOORING)
    ours = ARAGMiddleware(index, tools=[name])
    middleware = [ours, REDACTORS[redactor]] if ours_first else [REDACTORS[redactor], ours]
    state = create_agent(model, middleware=middleware).invoke(asked("How?"))
    [citation] = state["citations"]
    [quote] = citation["quotes"]
    assert quote["text"].startswith("Write to the harbour master at ")
    assert quote["text"].endswith(" about a mooring.")
    assert quote["text"] in " ".join(model.calls[-1].messages[-1].text.split())
    assert state["messages"][-1].content[0]["annotations"][0]["cited_text"] == quote["text"]
    assert state["grounding"] == "supported"
    kept = state["messages"] if redactor != "requests" else state["messages"][-1:]
    assert ADDRESS not in repr([kept, state["citations"], state["trace"], state["answer"]])


def quotes(state):
    return [quote["text"] for citation in state["citations"] for quote in citation["quotes"]]


def test_a_result_that_the_model_is_never_sent_is_not_quoted(make_index):
    @wrap_model_call
    def withhold(request, handler):
        allowed = [message for message in request.messages if ADDRESS not in message.text]
        return handler(request.override(messages=allowed))

    look = call("chunk_read", chunk_ids=["contact:0"])
    middleware = [ARAGMiddleware(make_index(CONTACT), tools="paper"), withhold]
    state = create_agent(ScriptedModel(look, MOORING), middleware=middleware).invoke(asked("How?"))
    assert quotes(state) == []


@both_orders
@pytest.mark.parametrize("redactor", ["redact", "results"])
def test_a_forced_answer_is_quoted_as_its_evidence_was_shown(make_index, ours_first, redactor):
    model = ScriptedModel(call("chunk_read", chunk_ids=["contact:0"]), MOORING)
    ours = ARAGMiddleware(make_index(CONTACT), tools="paper", max_steps=1)
    middleware = [ours, REDACTORS[redactor]] if ours_first else [REDACTORS[redactor], ours]
    state = create_agent(model, middleware=middleware).invoke(asked("How?"))
    assert state["stop_reason"] == "max_steps"
    [quote] = quotes(state)
    assert quote in model.calls[-1].messages[-1].text
    assert ADDRESS not in repr([quote, state["messages"]])


@pytest.mark.parametrize("redactor", REDACTORS)
def test_a_tool_of_somebody_else_is_quoted_as_it_was_shown(make_index, redactor):
    @tool(response_format="content_and_artifact")
    def notices() -> tuple[str, dict]:
        """Read the notices."""
        return f"The board says: {CONTACT[0]['text']}", {"chunk_ids": ["contact:0"]}

    model = ScriptedModel(call("notices"), MOORING)
    middleware = [ARAGMiddleware(make_index(CONTACT), tools="paper"), REDACTORS[redactor]]
    state = create_agent(model, [notices], middleware=middleware).invoke(asked("How?"))
    [quote] = quotes(state)
    assert quote in model.calls[-1].messages[-1].text
    assert "mooring" in quote
    assert ADDRESS not in quote


def test_a_text_without_spaces_is_quoted_as_it_was_shown(make_index):
    index = make_index([{"id": "port", "text": f"港务局每天中午开门。停泊事宜请写信至{ADDRESS}联系港务长。请带旗帜。"}])
    model = ScriptedModel(call("chunk_read", chunk_ids=["port:0"]), AIMessage("停泊事宜请写信联系港务长 [port:0]。"))
    middleware = [ARAGMiddleware(index, tools="paper"), REDACTORS["results"]]
    state = create_agent(model, middleware=middleware).invoke(asked("怎么停泊？"))
    assert quotes(state) == ["停泊事宜请写信至[taken out]联系港务长。"]


@both_orders
def test_what_is_taken_out_of_the_answer_is_in_no_quote(make_index, ours_first):
    """The model was shown the address, and wrote it."""
    said = AIMessage(f"Write to the harbour master ({ADDRESS}) about a mooring [contact:0].")
    model = ScriptedModel(call("chunk_read", chunk_ids=["contact:0"]), said)
    output = PIIMiddleware("email", strategy="redact", apply_to_output=True)
    ours = ARAGMiddleware(make_index(CONTACT), tools="paper")
    middleware = [ours, output] if ours_first else [output, ours]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    state = agent.invoke(asked("How?"), in_thread())
    assert quotes(state) == ["Write to the harbour master at … about a mooring."]
    kept = agent.get_state(in_thread()).values
    kept["messages"] = kept["messages"][-1:]
    assert ADDRESS not in repr(kept)


def test_a_guard_behind_ours_replaces_the_answer_before_it_is_described(make_index):
    @after_agent
    def guard(state, runtime):
        refused = state["messages"][-1].model_copy(update={"content": "I may not say that."})
        return {"messages": [refused]}

    model = ScriptedModel(call("chunk_read", chunk_ids=["contact:0"]), MOORING)
    agent = create_agent(model, middleware=[ARAGMiddleware(make_index(CONTACT), tools="paper"), guard])
    state = agent.invoke(asked("How?"))
    assert (state["answer"], state["citations"], state["grounding"]) == ("I may not say that.", [], "none")
    assert state["messages"][-1].content == "I may not say that."


@pytest.mark.parametrize("name", ["shell", "keyword_search"])
def test_a_sentence_that_was_not_shown_is_not_quoted(make_index, name):
    """Nothing was redacted here: what the model saw has no address."""
    long = " ".join(f"On day {day} the mooring number {day * 7} was free." for day in range(60))
    index = make_index([CONTACT[0] | {"text": f"{CONTACT[0]['text']} {long} A flag is blue."}])
    looks = {"shell": {"command": "rg -i 'flag is'"}, "keyword_search": {"keywords": ["flag is blue"]}}
    model = ScriptedModel(call(name, **looks[name]), MOORING)
    middleware = [ARAGMiddleware(index, tools=[name]), personal("redact")]
    state = create_agent(model, middleware=middleware).invoke(asked("How?"))
    assert state["citations"][0]["seen"]
    assert ADDRESS not in model.calls[-1].messages[-1].text
    assert ADDRESS not in repr(state["messages"][-1])
    assert ADDRESS not in repr(state["citations"])


def test_a_chunk_that_a_result_only_names_is_not_quoted_from_it(make_index):
    long = " ".join(f"On day {day} the mooring number {day * 7} was free." for day in range(60))
    lamp = {"id": "lamp", "text": f"The lamp was lit at noon. {long} The keeper of the tower was Bob Birch."}
    boat = {"id": "boat", "text": "The keeper of the tower was Ada Alder, and Bob Birch made the lamp."}
    searches = [call("keyword_search", keywords=[word]) for word in ("lit at noon", "lamp")]
    model = ScriptedModel(*searches, AIMessage("The keeper of the tower was Bob Birch [lamp:0]."))
    agent = create_agent(model, middleware=[ARAGMiddleware(make_index([lamp, boat]), tools="paper")])
    state = agent.invoke(asked("Who?"))
    assert "Shown above: [lamp:0]" in results(state)[-1].text
    assert quotes(state) == []


@pytest.mark.parametrize("name", ["shell", "keyword_search"])
def test_a_long_sentence_is_quoted_as_far_as_it_was_shown(make_index, name):
    """The tools show a part of such a sentence, around what was looked for; others beside it are shown whole."""
    before = ", ".join(f"the mast of boat {number} and the sail of boat {number}" for number in range(15))
    after = ", ".join(f"the rope of ship {number} and the oar of ship {number}" for number in range(15))
    long = f"The yard book lists {before}, then a silver anchor that Ada Alder forged in the winter of 1751, {after}."
    index = make_index([{"id": "book", "text": f"Ada Alder forged in winter. {long} {ADDRESS} is its keeper."}])
    looks = {
        "shell": {"command": "rg 'forged in winter'; rg -o '.{50}forged in the.{25}'"},
        "keyword_search": {"keywords": ["forged in the winter"]},
    }
    model = ScriptedModel(call(name, **looks[name]), AIMessage("She forged a silver anchor in 1751 [book:0]."))
    middleware = [ARAGMiddleware(index, tools=[name, "chunk_read"]), personal("redact")]
    state = create_agent(model, middleware=middleware).invoke(asked("What?"))
    [quote] = quotes(state)
    assert "a silver anchor that Ada Alder forged in the winter of 1751" in quote
    assert quote.startswith("…")
    assert quote.endswith("…")


def test_some_cells_of_a_row_are_quoted_as_they_were_shown(make_index):
    index = make_index(
        {"crew.csv": f"Name,Mail,Since\nOdvar Felisk,{ADDRESS},1751\nAda Alder,ada@felisk.example,1760\n"}
    )
    look = call("shell", command='sql "SELECT name, since FROM crew WHERE since = 1751"')
    model = ScriptedModel(look, AIMessage("Odvar Felisk came in 1751 [crew.csv:0]."))
    middleware = [ARAGMiddleware(index, tools=["shell"]), personal("redact")]
    state = create_agent(model, middleware=middleware).invoke(asked("Who?"))
    [quote] = quotes(state)
    assert quote == "… Odvar Felisk | … 1751"
    assert ADDRESS not in repr([quote, state["messages"][-1]])


def test_a_quote_is_still_there_when_the_text_was_cleared_since(small_index):
    reads = [call("chunk_read", f"r{name}", chunk_ids=[f"{name}:0"]) for name in ("lothair", "teutberga", "boso")]
    model = ScriptedModel(*reads, AIMessage("He married Teutberga in 855 [lothair:0]."))
    clear = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper"), clear])
    state = agent.invoke(asked())
    assert "Lotharingia" not in model.calls[-1].messages[-1].text
    assert quotes(state) == ["He married Teutberga in 855."]


@pytest.mark.parametrize("redactor", ["redact", "requests"])
def test_what_was_taken_out_for_an_earlier_question_stays_out(make_index, redactor):
    index = make_index(CONTACT)
    model = ScriptedModel(call("chunk_read", chunk_ids=["contact:0"]), MOORING, MOORING)
    middleware = [ARAGMiddleware(index, tools="paper"), REDACTORS[redactor]]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    first = agent.invoke(asked("How?"), in_thread())
    second = agent.invoke(asked("Really?"), in_thread())
    assert quotes(second) == quotes(first) != []
    kept = agent.get_state(in_thread()).values
    if redactor == "requests":
        kept["messages"] = kept["messages"][-1:]
    assert ADDRESS not in repr(kept)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("own", [True, False], ids=["with an index", "without"])
def test_what_is_taken_out_of_a_supervisors_answer_is_in_no_quote_of_an_agent(make_index, own, asynchronous):
    index = make_index(CONTACT)
    read = call("chunk_read", chunk_ids=["contact:0"])
    below = create_arag_agent(ScriptedModel(read, MOORING), index, tools="paper")
    ours = ARAGMiddleware(index, tools="paper") if own else SourcesMiddleware()
    said = AIMessage(f"Write to {ADDRESS} [contact:0].")
    output = PIIMiddleware("email", strategy="redact", apply_to_output=True)
    model = ScriptedModel(call("ask_documents", question="How?"), said)
    agent = create_agent(model, [make_agent_tool(below)], middleware=[ours, output], checkpointer=InMemorySaver())
    state = asyncio.run(agent.ainvoke(asked(), in_thread())) if asynchronous else agent.invoke(asked(), in_thread())
    assert state["answer"] == "Write to [REDACTED_EMAIL] [contact:0]."
    assert quotes(state) == ["Write to the harbour master at … about a mooring."]
    kept = agent.get_state(in_thread()).values
    kept["messages"] = kept["messages"][-1:]
    assert ADDRESS not in repr(kept)


@pytest.mark.parametrize("own", [True, False], ids=["with an index", "without"])
def test_a_supervisor_takes_out_what_an_agent_has_said(make_index, own):
    """The agent was shown the address: what it cites has no quote, once its answer was changed."""
    index = make_index(CONTACT)
    said = AIMessage(f"Write to {ADDRESS} about a mooring [contact:0].")
    below = create_arag_agent(ScriptedModel(call("chunk_read", chunk_ids=["contact:0"]), said), index, tools="paper")
    ours = ARAGMiddleware(index, tools="paper") if own else SourcesMiddleware()
    model = ScriptedModel(call("ask_documents", question="How?"), MOORING)
    agent = create_agent(model, [make_agent_tool(below)], middleware=[ours, personal("redact")])
    state = agent.invoke(asked("How?"))
    assert [(citation["chunk_id"], citation["seen"]) for citation in state["citations"]] == [("contact:0", True)]
    assert state["citations"][0]["document"]["title"] == "Contact"
    assert results(state)[0].artifact["answer"] == "Write to [REDACTED_EMAIL] about a mooring [contact:0]."
    assert ADDRESS not in repr(state)
