"""The conversation as the graph sees it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from arag.graph.messages import count_context_tokens, keep_end, repair_reply, split_turn
from arag.graph.state import union
from arag.retrieval.tokens import count_tokens
from scripted import call, invalid_call


def test_a_turn_begins_with_the_last_question_and_system_messages_come_first():
    system, first, asking, result, answer, second, again = (
        SystemMessage("s"),
        HumanMessage("q1"),
        call("t", "1"),
        ToolMessage("text", tool_call_id="1"),
        AIMessage("a1"),
        HumanMessage("q2"),
        call("t", "2"),
    )
    broken = [invalid_call("t", "{"), AIMessage(""), ToolMessage("late", tool_call_id="0")]
    earlier, turn = split_turn([first, asking, result, answer, *broken, second, system, again])
    assert earlier == [system, first, answer]
    assert turn == [second, again]


def test_context_tokens_count_texts_and_calls():
    text = "Who married Lothair?"
    for message in (
        HumanMessage(text),
        AIMessage([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text}]),
    ):
        assert count_context_tokens([message]) == 4 + count_tokens(text)
    asking = call("keyword_search", keywords=["Lothair"])
    expected = 4 + count_tokens("keyword_search") + count_tokens('{"keywords": ["Lothair"]}')
    assert count_context_tokens([asking]) == expected


@given(st.text(), st.integers(-3, 30))
def test_the_end_of_a_text_fits(text, room):
    part = keep_end(text, room)
    assert text.endswith(part)
    assert count_tokens(part) <= max(room, 0)
    if count_tokens(text) <= room:
        assert part == text


@given(st.text(st.characters(codec=None, categories=None), max_size=5))
def test_what_a_model_writes_can_be_encoded_and_is_kept_where_it_could_be_before(text):
    reply = call("t", x={text: [text, 1, None, True, float("inf")]})
    reply.content = text
    repaired = repair_reply(reply, ())
    written = repaired.text
    written.encode()
    assert repaired.tool_calls[0]["args"] == {"x": {written: [written, 1, None, True, None]}}
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert written == text


_ids = st.lists(st.text(max_size=3))


@given(_ids, _ids, _ids)
def test_the_reducer_of_ids_keeps_the_order_and_each_once(left, middle, right):
    merged = union(left, right)
    assert merged == sorted({*left, *right}, key=[*left, *right].index)
    assert union(merged, right) == merged
    assert union(union(left, middle), right) == union(left, union(middle, right))
    assert union(tuple(left), None) == union(None, left)
