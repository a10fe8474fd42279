from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, ValidationError

from arag.errors import InputError, ModelError
from arag.graph.messages import (
    count_context_tokens,
    drop_old_results,
    find_earlier_turns,
    find_question,
    gather_evidence,
    mend_conversation,
    truncate,
    write_missing_results,
)
from arag.graph.prompts import DROPPED, NOT_RUN
from arag.models.asking import check_whole, replace_unreadable
from arag.models.messages import feedback, marked_feedback
from arag.models.replies import mend_reply
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import find_artifacts
from arag.testing import assert_paired, call, calls, invalid_call


def result(call_id, text="text", new=(), **kwargs):
    artifact = {
        "new_chunks": list(new),
        "chunk_ids": list(new),
        "digests": {},
        "retrieved_tokens": 1,
        "evidence_tokens": 1,
    }
    return ToolMessage(text, tool_call_id=call_id, name="chunk_read", artifact=artifact, **kwargs)


def held(messages):
    """Return the chunks whose texts are in a conversation."""
    return [chunk_id for artifact in find_artifacts(messages) for chunk_id in artifact["new_chunks"]]


def test_the_question_is_the_last_human_message_that_is_the_users_own():
    assert find_question([HumanMessage("a"), AIMessage("b"), HumanMessage("c"), AIMessage("d"), feedback("e")]) == 2
    for nothing in ([], [AIMessage("a")], [feedback("a")], [SystemMessage("a")]):
        with pytest.raises(InputError, match="there is no question"):
            find_question(nothing)


def test_context_tokens_count_texts_and_calls():
    assert count_context_tokens([]) == 0
    text = "Who married Lothair?"
    assert count_context_tokens([HumanMessage(text)]) == 4 + count_tokens(text)
    assert count_context_tokens([HumanMessage([{"type": "text", "text": text}])]) == 4 + count_tokens(text)
    asking = call("keyword_search", keywords=["Lothair"])
    expected = 4 + count_tokens("keyword_search") + count_tokens('{"keywords": ["Lothair"]}')
    assert count_context_tokens([asking]) == expected
    assert count_context_tokens([asking, result("x", text)]) == expected + 4 + count_tokens(text)


def test_reasoning_counts_where_it_is_text():
    text = "Who married Lothair, I wonder."
    one = 4 + count_tokens(text)
    base64 = "QUJD" * 1_000
    for block in (
        {"type": "thinking", "thinking": text, "signature": base64},
        {"type": "reasoning", "reasoning": text, "extras": {"signature": base64}},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": base64},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]},
    ):
        assert count_context_tokens([AIMessage([block])]) == one
        both = AIMessage([block, {"type": "text", "text": text}])
        assert (count_context_tokens([both]), both.text) == (one + count_tokens(text), text)
    for reasoning in ({"reasoning_content": text}, {"reasoning": {"summary": [{"text": text}]}}):
        assert count_context_tokens([AIMessage("", additional_kwargs=reasoning)]) == one
    for block in (
        {"type": "redacted_thinking", "data": base64},
        {"type": "thinking", "thinking": "", "signature": base64},
        {"type": "reasoning", "encrypted_content": base64},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64}"}},
    ):
        assert count_context_tokens([AIMessage([block])]) == 4


def test_calls_in_the_content_count_once():
    asking = call("keyword_search", "1", keywords=["Lothair"])
    for block in (
        {"type": "tool_use", "id": "1", "name": "keyword_search", "input": {"keywords": ["Lothair"]}},
        {"type": "function_call", "call_id": "1", "name": "keyword_search", "arguments": '{"keywords": ["Lothair"]}'},
    ):
        assert count_context_tokens([asking.model_copy(update={"content": [block]})]) == count_context_tokens([asking])


def test_arguments_in_the_content_are_objects():
    blocks = [
        {"type": "function_call", "call_id": "1", "arguments": '{"a": 1'},
        {"type": "function_call", "call_id": "2", "arguments": ""},
        {"type": "function_call", "call_id": "3", "arguments": '{"b": 2}'},
        {"type": "text", "text": "x"},
    ]
    reply = AIMessage(
        blocks,
        tool_calls=[{"name": "t", "args": {"a": 1}, "id": "1"}, {"name": "t", "args": {"b": 2}, "id": "3"}],
        invalid_tool_calls=[{"name": "t", "args": "[", "id": "2", "error": "no"}],
    )
    content = mend_reply(reply, []).content
    assert [block.get("arguments") for block in content] == ['{"a": 1}', "{}", '{"b": 2}', None]
    assert blocks[0]["arguments"] == '{"a": 1'


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_beginning_of_a_reply_is_no_reply(provider):
    metadata = {"model_provider": provider}
    with pytest.raises(ModelError, match="broke off"):
        check_whole(AIMessage("Boso the", response_metadata=metadata))
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    for reply in (
        AIMessage("Boso.", response_metadata=metadata | {"finish_reason": "stop"}),
        AIMessage("Boso.", response_metadata=metadata | {"stop_reason": "end_turn"}),
        AIMessage("Boso.", response_metadata=metadata | {"status": "completed"}),
        AIMessage("Boso.", response_metadata=metadata, usage_metadata=usage),
        AIMessage("Boso.", response_metadata={"model_provider": "another"}),
    ):
        assert check_whole(reply) is reply


def test_a_call_without_a_result_gets_one():
    asking = calls(("a", {}), ("b", {}), ids=["1", "2"])
    conversation = [HumanMessage("q"), asking, result("1"), HumanMessage("another")]
    mended = mend_conversation(conversation)
    assert_paired(mended)
    assert [m.text for m in mended if isinstance(m, ToolMessage)] == [NOT_RUN, "text"]
    assert len(conversation) == 4


def test_a_result_behind_another_message_does_not_count():
    again = [call("a", "1"), HumanMessage("another"), call("a", "1"), result("1")]
    mended = mend_conversation(again)
    assert_paired(mended)
    assert [m.text for m in mended if isinstance(m, ToolMessage)] == [NOT_RUN, "text"]


def test_invalid_calls_are_sent_with_empty_arguments():
    mixed = call("a", "1", x=1)
    mixed.invalid_tool_calls = invalid_call("b", "{", "2").invalid_tool_calls
    sent = mend_conversation([mixed, result("1"), result("2")])
    assert [(c["name"], c["args"], c["id"]) for c in sent[0].tool_calls] == [("a", {"x": 1}, "1"), ("b", {}, "2")]
    assert sent[0].invalid_tool_calls == []
    assert len(mixed.invalid_tool_calls) == 1
    assert_paired(sent)


def test_unanswered_calls_of_a_message():
    asking = calls(("a", {}), ("b", {}), ids=["1", "2"])
    assert [m.tool_call_id for m in write_missing_results([asking], 0)] == ["1", "2"]
    assert [m.tool_call_id for m in write_missing_results([asking, result("1")], 0)] == ["2"]
    assert write_missing_results([asking, result("2"), result("1")], 0) == []
    assert write_missing_results([HumanMessage("q")], 0) == []


_kinds = st.lists(
    st.sampled_from(["human", "answer", "one call", "two calls", "half answered", "invalid", "same id", "orphan"])
)


@given(_kinds)
def test_any_conversation_is_paired_when_it_is_sent(kinds):
    conversation = []
    for place, kind in enumerate(kinds):
        ids = [f"{place}-a", f"{place}-b"]
        match kind:
            case "human":
                conversation.append(HumanMessage("q"))
            case "answer":
                conversation.append(AIMessage("a"))
            case "one call":
                conversation += [call("t", ids[0]), result(ids[0])]
            case "two calls":
                conversation += [calls(("t", {}), ("t", {}), ids=ids), result(ids[1]), result(ids[0])]
            case "half answered":
                conversation += [calls(("t", {}), ("t", {}), ids=ids), result(ids[1])]
            case "invalid":
                conversation.append(invalid_call("t", "{", ids[0]))
            case "same id":
                conversation.append(call("t", "same"))
            case "orphan":  # what trimming leaves of a call, or a result that comes too late
                conversation.append(result("0-a"))
    sent = mend_conversation(conversation)
    assert_paired(sent)
    assert mend_conversation(sent) == sent
    assert [m for m in sent if m.type == "human"] == [m for m in conversation if m.type == "human"]


_LONG = "A sentence that is rather long. " * 20


def _conversation():
    return [
        HumanMessage("first"),
        calls(("t", {}), ("t", {}), ids=["1", "2"]),
        result("1", _LONG, ["a:0"]),
        result("2", _LONG, ["b:0"]),
        AIMessage("answer"),
        HumanMessage("second"),
        call("t", "3"),
        result("3", _LONG, ["c:0"]),
    ]


def test_results_of_earlier_questions_are_dropped_oldest_first():
    messages = _conversation()
    whole = count_context_tokens(messages)
    assert drop_old_results(messages, whole) == messages
    shorter = drop_old_results(messages, whole - 1)
    assert held(shorter) == ["b:0", "c:0"]
    assert [m.text for m in shorter if isinstance(m, ToolMessage)] == [DROPPED, _LONG, _LONG]
    assert count_context_tokens(shorter) <= whole - 1
    assert_paired(shorter)
    shortest = drop_old_results(messages, 10)
    assert held(shortest) == ["c:0"]
    assert shortest[-1].text == _LONG  # the current question's results stay
    assert messages[2].text == _LONG


def test_a_chunk_whose_text_stands_elsewhere_still_counts_as_read():
    messages = _conversation()
    messages[7] = result("3", _LONG, ["a:0", "c:0"])
    assert held(drop_old_results(messages, 10)) == ["a:0", "c:0"]


def test_evidence_holds_each_text_once_and_no_errors():
    one, two = "[a:0] score 7\nThe first text.", "[b:0] score 3\nThe other text."
    messages = [
        HumanMessage("q"),
        result("1", f"x: 2 chunks.\n\n{one}\n\n{two}"),
        result("2", f"y: 1 chunk.\n\n{two}\n\n{one}"),
        result("3", "There is no such tool.", status="error"),
    ]
    assert gather_evidence(messages, 1_000) == f"x: 2 chunks.\n\n{one}\n\n{two}\n\ny: 1 chunk."
    assert gather_evidence([HumanMessage("q")], 1_000) == ""


def test_what_was_said_behind_the_question_is_evidence_too():
    """A tool's own message, with a picture say, and what another node of a graph around this one remarks."""
    messages = [
        HumanMessage("before"),
        AIMessage("An answer to it."),
        HumanMessage("q"),
        call("t", "1"),
        result("1", "[a:0] found"),
        marked_feedback(HumanMessage("The picture says 42.")),
        AIMessage("A draft."),
        AIMessage("The draft names no year."),
    ]
    assert gather_evidence(messages, 1_000).split("\n\n") == [
        "[a:0] found",
        "The picture says 42.",
        "A draft.",
        "The draft names no year.",
    ]


def test_where_room_is_short_the_latest_evidence_is_kept_and_cut():
    early, late = f"[a:0] {'early words ' * 50}", f"[b:0] {'late words ' * 50}"
    messages = [HumanMessage("q"), result("1", early), result("2", late)]
    kept = gather_evidence(messages, 2 * count_tokens(late) - 30)
    assert kept.endswith(late.strip())
    assert kept.startswith("[a:0] early words")
    alone = gather_evidence(messages, 40)
    assert alone.startswith("[b:0] late words")
    assert 20 < count_tokens(alone) <= 40
    for nothing in (0, -5):
        assert gather_evidence(messages, nothing) == ""


@given(st.text(), st.integers(-3, 30))
def test_the_beginning_of_a_text_fits(text, room):
    part = truncate(text, room)
    assert text.startswith(part)
    assert count_tokens(part) <= max(room, 0)
    if count_tokens(text) <= room:
        assert part == text


@given(st.lists(st.text(min_size=1), max_size=6), st.integers(0, 40))
def test_evidence_always_fits(texts, room):
    results = [result(str(i), f"[c:{i}] {text}") for i, text in enumerate(texts)]
    evidence = gather_evidence([HumanMessage("q"), *results], room)
    assert count_tokens(evidence) <= room + 2 * len(texts)  # joining texts may move a token's border


def test_earlier_turns_are_questions_and_answers_only():
    messages = [
        SystemMessage("s"),
        HumanMessage("q1"),
        call("t", "1"),
        result("1"),
        feedback("empty"),
        AIMessage(""),
        invalid_call("t", "{"),
        AIMessage("a1"),
        HumanMessage("q2"),
        AIMessage("not yet"),
    ]
    assert [(m.type, m.text) for m in find_earlier_turns(messages)] == [("human", "q1"), ("ai", "a1")]


def test_calls_of_one_message_have_ids_of_their_own():
    """Each result is told to the model by its call's id: of two with the same id it would see one."""
    reply = AIMessage(
        "",
        tool_calls=[{"name": name, "args": {}, "id": "call_0"} for name in "ab"],
        invalid_tool_calls=[{"name": "c", "args": "{", "id": "call_0", "error": "e"}],
    )
    mended = mend_reply(reply, [])
    ids = [call["id"] for call in [*mended.tool_calls, *mended.invalid_tool_calls]]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", additional_kwargs={"refusal": "I cannot help."}),
        AIMessage([{"type": "refusal", "refusal": "I cannot help."}]),
    ],
    ids=["chat completions", "responses"],
)
def test_a_refusal_becomes_the_text(reply):
    assert mend_reply(reply, []).text == "I cannot help."


def test_a_refusal_beside_a_text_or_a_call_leaves_them_alone():
    assert mend_reply(AIMessage("Yes.", additional_kwargs={"refusal": "No."}), []).text == "Yes."
    asking = call("t", "1").model_copy(update={"additional_kwargs": {"refusal": "No."}})
    assert mend_reply(asking, []).text == ""
    assert mend_reply(AIMessage("", additional_kwargs={"refusal": None}), []).text == ""


def test_normalised_replies_have_ids_and_no_empty_invalid_calls():
    reply = AIMessage(
        "",
        tool_calls=[{"name": "a", "args": {}, "id": None}, {"name": "b", "args": {}, "id": "kept"}],
        invalid_tool_calls=[
            {"name": "c", "args": "", "id": None, "error": "e"},
            {"name": "d", "args": None, "id": "d", "error": None},
            {"name": "e", "args": "{", "id": "", "error": "e"},
            {"name": None, "args": "", "id": "n", "error": "e"},
        ],
    )
    mended = mend_reply(reply, [])
    assert [(c["name"], c["args"]) for c in mended.tool_calls] == [("a", {}), ("b", {}), ("c", {}), ("d", {})]
    assert [c["args"] for c in mended.invalid_tool_calls] == ["{", ""]
    every_id = [c["id"] for c in [*mended.tool_calls, *mended.invalid_tool_calls]]
    assert all(every_id)
    assert len(set(every_id)) == 6
    assert mended.id
    assert reply.id is None


def test_an_id_that_came_before_is_replaced():
    assert mend_reply(AIMessage("x", id="a"), [HumanMessage("q", id="b")]).id == "a"
    assert mend_reply(AIMessage("x", id="a"), [HumanMessage("q", id="a")]).id != "a"


@given(st.text(st.characters(codec=None, categories=None), max_size=5))
def test_what_a_model_writes_can_be_encoded_and_is_kept_where_it_could_be_before(text):
    reply = call("t", x={text: [text, 1, None, True]})
    reply.content = [{"type": "text", "text": text}]
    mended = mend_reply(reply, [])
    written = mended.text
    written.encode()
    assert mended.tool_calls[0]["args"] == {"x": {written: [written, 1, None, True]}}
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert written == text


def test_only_messages_that_cannot_be_read_are_replaced_by_an_empty_one():
    with pytest.raises(ValidationError) as caught:
        AIMessage("", tool_calls=[{"name": "t", "args": "x", "id": "1"}])
    assert replace_unreadable(caught.value).text == ""

    class Other(BaseModel):
        number: int

    with pytest.raises(ValidationError) as caught:
        Other(number="x")
    with pytest.raises(ValidationError, match="Other"):
        replace_unreadable(caught.value)
