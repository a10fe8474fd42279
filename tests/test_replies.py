"""Replies of weak models and rough servers over real HTTP, streamed and whole: calls as text, thinking, ends."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

import anthropic_server
import openai_server
from anthropic_server import message
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from openai_server import chat, response
from scripted import ANSWER as GOOD
from scripted import QUESTION, ScriptedModel, asked, call, calls, results

ANSWER = GOOD.text
ARGUMENTS = json.dumps({"keywords": ["Lothair II"]})
HERMES = f'<tool_call>\n{{"name": "keyword_search", "arguments": {ARGUMENTS}}}\n</tool_call>'

# How models of different families write the same call.
CALLS = {
    "hermes": HERMES,
    "without a closing": HERMES.replace("</tool_call>", ""),
    "behind text": f"I will look for him first.\n\n{HERMES}",
    "before text": f"{HERMES}\n\nI wait for the result.",
    "bare": f'{{"name": "keyword_search", "parameters": {ARGUMENTS}}}',
    "a list": f'[{{"name": "keyword_search", "arguments": {ARGUMENTS}}}]',
    "held": f'{{"tool_calls": [{{"function": {{"name": "keyword_search", "arguments": {json.dumps(ARGUMENTS)}}}}}]}}',
    "fenced": f'First a search.\n\n```json\n{{"tool": "keyword_search", "args": {ARGUMENTS}}}\n```',
    "llama": f'<|python_tag|>{{"name": "keyword_search", "parameters": {ARGUMENTS}}}<|eom_id|>',
    "mistral": f'[TOOL_CALLS][{{"name": "keyword_search", "arguments": {ARGUMENTS}}}]',
    "newer mistral": f"[TOOL_CALLS]keyword_search[ARGS]{ARGUMENTS}",
    "function tag": f"<function=keyword_search>{ARGUMENTS}</function>",
    "qwen coder": "<tool_call>\n<function=keyword_search>\n<parameter=keywords>\n"
    '["Lothair II"]\n</parameter>\n</function>\n</tool_call>',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>keyword_search\n"
    f"```json\n{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "glm": "<tool_call>keyword_search\n<arg_key>keywords</arg_key>\n"
    '<arg_value>["Lothair II"]</arg_value>\n</tool_call>',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.keyword_search:0"
    f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    "harmony": "<|channel|>analysis<|message|>I search.<|end|><|start|>assistant<|channel|>commentary "
    f"to=functions.keyword_search <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    "gemma": '```tool_code\nprint(keyword_search(keywords=["Lothair II"]))\n```',
    "invoke": '<function_calls>\n<invoke name="keyword_search">\n<parameter name="keywords">'
    '["Lothair II"]</parameter>\n</invoke>\n</function_calls>',
    "tags": '<keyword_search>\n<keywords>["Lothair II"]</keywords>\n</keyword_search>',
    "cohere": f'<|START_ACTION|>[{{"tool_name": "keyword_search", "parameters": {ARGUMENTS}}}]<|END_ACTION|>',
    "expression": '[keyword_search(keywords=["Lothair II"])]',
    "react": f"Thought: I look.\nAction: keyword_search\nAction Input: {ARGUMENTS}\nObservation: It was Judith.",
    "in thinking": f"<think>I search.\n{HERMES}</think>",
    "attributes": "<keyword_search keywords='[\"Lothair II\"]'/>",
    "a sign": f"@keyword_search({ARGUMENTS})",
    "JavaScript": 'tools.keyword_search({keywords: ["Lothair II"]})',
    "with a thought": f'{{"thought": "I look.", "tool_name": "keyword_search", "tool_args": {ARGUMENTS}}}',
    "function gemma": "<start_function_call>call:keyword_search{keywords:[<escape>Lothair II<escape>]}"
    "<end_function_call>",
    "newer gemma": '<|tool_call>call:keyword_search{keywords:[<|"|>Lothair II<|"|>]}<tool_call|>',
    "gorilla": '<<function>>keyword_search(keywords=["Lothair II"])',
    "mistral with an id": f"[TOOL_CALLS]keyword_search[CALL_ID]a1b2c3d4e[ARGS]{ARGUMENTS}</s>",
    "python's quotes": "{'name': 'keyword_search', 'arguments': {'keywords': ['Lothair II']}}",
}

THINKING = "Judith [boso:0]? No: [none.md:4]."
THOUGHTS = {
    "tags": f"<think>\n{THINKING}\n</think>\n\n{ANSWER}",
    "no opening": f"{THINKING}\n</think>\n\n{ANSWER}",
    "other words": f"<reasoning>{THINKING}</reasoning><answer>{ANSWER}</answer>",
    "mistral": f"[THINK]{THINKING}[/THINK]{ANSWER}",
    "kimi": f"◁think▷{THINKING}◁/think▷{ANSWER}",
    "harmony": f"<|channel|>analysis<|message|>{THINKING}<|end|><|start|>assistant<|channel|>final<|message|>"
    f"{ANSWER}<|return|>",
    "twice": f"<think>a</think><think>{THINKING}</think>{ANSWER}",
    "mixed up": f"<thinking>{THINKING}</think>{ANSWER}",
}


def answering(api: str, text: str, end: str = ""):
    """Return a provider's response with a text, and the word for how it ended."""
    if api == "chat":
        made = chat(text)
        made["choices"][0]["finish_reason"] = end or "stop"
    elif api == "responses":
        made = response(1, openai_server.text(text))
        if end:
            made |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    else:
        made = message(anthropic_server.text(text))
        made["stop_reason"] = {"": "end_turn", "length": "max_tokens"}[end]
    return made


APIS = ["chat", "responses", "messages"]
each_way = pytest.mark.parametrize("way", ["whole", "streamed"])
each_protocol = pytest.mark.parametrize(("api", "way"), [(api, way) for api in APIS for way in ("whole", "streamed")])


def run(api, index, replies, way, **settings):
    """Ask with scripted texts or responses; return the state, the requests and the text that was streamed."""
    responses = [answering(api, reply) if isinstance(reply, str) else reply for reply in replies]
    server_module, name, options = openai_server, "openai:m", {"use_responses_api": api == "responses"}
    if api == "messages":
        server_module, name, options = anthropic_server, "anthropic:m", {}
    shown: dict[str, str] = {}
    with server_module.serve(responses) as server:
        agent = create_arag_agent(load_model(f"{name}@{server.url}", **options), index, tools="paper", **settings)
        if way == "whole":
            state = agent.invoke(asked())
        else:
            for mode, event in agent.stream(asked(), stream_mode=["values", "messages"]):
                if mode == "values":
                    state = event
                elif isinstance(event[0], AIMessageChunk):
                    shown[event[0].id] = shown.get(event[0].id, "") + event[0].text
    return state, server.requests, "\n".join(shown.values())


@each_way
@pytest.mark.parametrize("form", CALLS)
def test_a_call_written_as_text_is_carried_out(small_index, form, way):
    written = CALLS[form]
    reply = chat(written) | {"deltas": [{"content": character} for character in written]}
    state, _, shown = run("chat", small_index, [reply, ANSWER], way)
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 2)
    [record] = state["trace"]
    assert (record["tool"], record["arguments"]) == ("keyword_search", {"keywords": ["Lothair II"]})
    assert "call as text" in record["repaired"]
    assert "keyword_search" not in shown
    beside = shown.replace(ANSWER, "")
    assert "Lothair II" not in beside
    assert "<" not in beside


@each_protocol
def test_a_repaired_call_is_sent_again_as_a_proper_one_in_each_protocol(small_index, api, way):
    state, requests, _ = run(api, small_index, [HERMES, ANSWER], way)
    assert (state["answer"], len(state["trace"])) == (ANSWER, 1)
    sent = json.dumps(requests[1].get("messages", requests[1].get("input")))
    assert "<tool_call>" not in sent
    assert sent.count("keyword_search") == 1


@each_way
@pytest.mark.parametrize("written", ["```bash\nrg Boso\n```", "I look.\n\n<shell>rg Boso</shell>"])
def test_a_command_written_as_text_is_run(small_index, written, way):
    with openai_server.serve([chat(written), chat(ANSWER)]) as server:
        agent = create_arag_agent(load_model(f"openai:m@{server.url}"), small_index, tools="shell")
        state = agent.invoke(asked()) if way == "whole" else list(agent.stream(asked(), stream_mode="values"))[-1]
    [record] = state["trace"]
    assert (record["arguments"], record["error"]) == ({"command": "rg Boso"}, None)


def test_several_calls_in_one_text_are_all_made(small_index):
    second = '<tool_call>{"name": "chunk_read", "arguments": {"chunk_ids": ["boso:0"]}}</tool_call>'
    state, _, _ = run("chat", small_index, [f"{HERMES}\n{second}", ANSWER], "whole")
    assert [record["tool"] for record in state["trace"]] == ["keyword_search", "chunk_read"]


@pytest.mark.parametrize(
    "written",
    [
        "<start_function_call>call:semantic_search{query:<escape>%s<escape>}<end_function_call>",
        'semantic_search({query: "%s"})',
        "{'name': 'semantic_search', 'arguments': {'query': '%s'}}",
    ],
)
def test_strings_that_look_like_keys_and_constants_stay_as_they_are(small_index, written):
    query = "is it true, x: who? {y: null}"
    state, _, _ = run("chat", small_index, [written % query, ANSWER], "streamed")
    assert state["trace"][0]["arguments"] == {"query": query}


TALK = [
    "He wrote `keyword_search(keywords=['x'])` on the wall [boso:0].",
    'The record is {"name": "Boso", "parameters": {"children": 3}} [boso:0].',
    'Its call is <tool_call>{"name": "keyword_search", "arguments": {}}</tool_call>, as the text says [boso:0].',
    "Tags such as <tool_call> and </think> mark calls and thoughts there.",
    'It holds "keyword_search" in quotes, and {"a": 1}.',
    "Boso had three children. Let me know if you need more.",
    "Install it so:\n\n```sh\npip install boso\n```",
]


@pytest.mark.parametrize("text", TALK)
def test_an_answer_that_talks_about_calls_is_an_answer(small_index, text):
    model = ScriptedModel(call("keyword_search", keywords=["Boso"]), AIMessage(text))
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    model.assert_used_up()
    assert (state["answer"], state["stop_reason"]) == (text, "answered")


UNUSABLE = {
    "unread_call": [
        '[TOOL_CALLS]keyword_search[ARGS]{["Lothair II"]}',
        '<tool_call>{"name": "web_search", "arguments": {"q": "x"}}</tool_call>',
        f"{HERMES[:-30]}",
    ],
    "announced": ["I'll search the corpus for Lothair II. Please wait a moment.", "让我搜索一下。"],
    "empty": ["", "<think>Hm.</think>"],
}


@each_way
@pytest.mark.parametrize(("doubt", "text"), [(doubt, text) for doubt, texts in UNUSABLE.items() for text in texts])
def test_a_reply_that_cannot_be_used_is_asked_for_again_once(small_index, doubt, text, way):
    search = chat(None, ("call_1", "keyword_search", ARGUMENTS))
    state, requests, _ = run("chat", small_index, [text, search, ANSWER], way)
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 3)
    assert [made["asked_again"] for made in state["model_calls"]] == [doubt, "", ""]
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert requests[1]["messages"][-1]["role"] == "user"
    assert state["usage"]["input_tokens"] == 300


def test_a_second_reply_of_the_kind_forces_an_answer(small_index):
    announced = "Let me search for that."
    state, requests, _ = run("chat", small_index, [announced, announced, ANSWER], "whole")
    assert (state["answer"], state["stop_reason"], len(requests)) == (ANSWER, "unusable_reply", 3)


@each_way
@pytest.mark.parametrize("form", THOUGHTS)
def test_thinking_is_neither_answer_nor_source_nor_sent_again(small_index, form, way):
    search = chat(None, ("call_1", "keyword_search", ARGUMENTS))
    state, _, shown = run("chat", small_index, [search, THOUGHTS[form]], way)
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "answered")
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0"]
    reply = state["messages"][-1]
    assert reply.text == ANSWER
    assert THINKING in reply.additional_kwargs["reasoning_content"]
    if way == "streamed" and form != "no opening":
        assert shown.strip() == ANSWER


def test_thinking_that_is_only_closed_is_shown_at_most_once(small_index):
    search = chat(None, ("call_1", "keyword_search", ARGUMENTS))
    thought = f"{THINKING}\n</think>\n\n"
    first = [search, f"{thought}{ANSWER}"]
    second = [chat(None, ("call_2", "chunk_read", json.dumps({"chunk_ids": ["boso:0"]}))), f"{thought}Three [boso:0]."]
    shown = []
    with openai_server.serve([*first[:1], chat(first[1]), second[0], chat(second[1])]) as server:
        agent = create_arag_agent(load_model(f"openai:m@{server.url}"), small_index, tools="paper")
        for _ in range(2):
            text = ""
            for message, _ in agent.stream(asked(), stream_mode="messages"):
                text += message.text if isinstance(message, AIMessageChunk) else f"\n{message.type}: {message.text}"
            shown.append(text)
    assert shown[0].endswith(f"ai: {ANSWER}")  # a message of its own
    assert THINKING not in shown[1]
    assert shown[1].endswith("Three [boso:0].")


CUT = "Boso the Elder. Teutberga was his dau"


@each_protocol
@pytest.mark.parametrize("rest", ["Teutberga was his daughter [teutberga:0].", ANSWER])
def test_a_model_whose_answer_is_cut_off_is_asked_to_go_on(small_index, api, way, rest):
    replies = [HERMES, answering(api, CUT, "length"), rest]
    state, _, _ = run(api, small_index, replies, way)
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "answered")
    assert [made["cut_off"] for made in state["model_calls"]] == [False, True, False]


@each_way
@pytest.mark.parametrize("end", ["length", "content_filter", "error"])
def test_an_answer_that_is_cut_off_again_is_marked(small_index, end, way):
    replies = [HERMES, answering("chat", CUT, end), answering("chat", CUT, end)]
    state, _, _ = run("chat", small_index, replies, way)
    assert (state["answer"], state["stop_reason"], state["steps"]) == (CUT, "cut_off", 3)


@each_way
def test_a_refusal_is_shown_as_one(small_index, way):
    refusal = chat() | {"deltas": [{"refusal": "I cannot help "}, {"refusal": "with that."}]}
    refusal["choices"][0]["message"]["refusal"] = "I cannot help with that."
    state, requests, _ = run("chat", small_index, [refusal], way)
    assert (state["answer"], state["stop_reason"], len(requests)) == ("I cannot help with that.", "refused", 1)


def test_the_third_time_the_same_call_ends_the_search(small_index):
    same = [call("keyword_search", keywords=["Boso"]) for _ in range(3)]
    state = create_arag_agent(ScriptedModel(*same, GOOD), small_index, tools="paper").invoke(asked())
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "repeated_call", 3)
    first, second, _ = results(state)
    assert "Boso the Elder was a count" in first.text
    assert second.text.startswith("This call was made before")


def test_the_third_time_the_same_error_ends_the_search(small_index):
    wrong = [call("chunk_read", page=number) for number in range(3)]
    state = create_arag_agent(ScriptedModel(*wrong, GOOD), small_index, tools="paper").invoke(asked())
    assert (state["stop_reason"], state["steps"]) == ("repeated_error", 3)


def test_an_answer_without_a_search_is_asked_to_search_once(small_index):
    memory = AIMessage("It was Charlemagne.")
    model = ScriptedModel(memory, memory)
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    assert (state["answer"], state["grounding"], state["steps"]) == ("It was Charlemagne.", "none", 2)
    assert "not searched" in model.calls[1].messages[-1].text
    follow_up = {"messages": [*asked()["messages"], call("keyword_search", "c1", keywords=["Boso"])]}
    state = create_arag_agent(ScriptedModel(GOOD), small_index, tools="paper").invoke(follow_up)
    assert state["steps"] == 2


def test_arguments_and_names_of_calls_are_repaired(small_index):
    twice = json.dumps(ARGUMENTS)
    for name, arguments in (
        ("keyword_search", f"{ARGUMENTS}}}"),
        ("functions.keyword_search", ARGUMENTS),
        ("keyword_search" * 3, ARGUMENTS),
    ):
        replies = [chat(None, ("call_1", name, arguments)), ANSWER]
        state, _, _ = run("chat", small_index, replies, "whole")
        assert (state["trace"][0]["arguments"], state["trace"][0]["error"]) == ({"keywords": ["Lothair II"]}, None)
    state, _, _ = run("chat", small_index, [chat(None, ("call_1", "keyword_search", twice)), ANSWER], "streamed")
    assert state["trace"][0]["repaired"] == ["arguments"]


def test_usage_that_each_chunk_repeats_counts_once(small_index):
    class Repeating(ScriptedModel):
        def _stream(self, messages, stop=None, run_manager=None, **options):
            from langchain_core.outputs import ChatGenerationChunk

            for piece in ("Boso", " it", " was."):
                usage = {"input_tokens": 100, "output_tokens": 3, "total_tokens": 103}
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece, usage_metadata=usage))

    agent = create_arag_agent(Repeating(), small_index, tools="paper", max_steps=1)
    *_, state = agent.stream(asked(), stream_mode=["messages", "values"])
    assert state[1]["usage"]["input_tokens"] == 100


def test_questions_that_were_not_answered_are_left_out_and_those_in_a_row_are_joined(small_index):
    model = ScriptedModel(call("keyword_search", keywords=["Boso"]), GOOD)
    failed = [HumanMessage("Who?"), calls(("keyword_search", {"keywords": ["x"]}), ids=["c1"])]
    messages = {"messages": [*failed, HumanMessage("I mean kings."), HumanMessage(QUESTION)]}
    create_arag_agent(model, small_index, tools="paper").invoke(messages)
    sent = [(message.type, message.text) for message in model.calls[0].messages[1:]]
    assert sent == [("human", f"I mean kings.\n\n{QUESTION}")]


def test_good_replies_stay_as_they_are(small_index):
    search = call("keyword_search", "c1", keywords=["Boso"])
    model = ScriptedModel(search, GOOD)
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    _, first, _, last = state["messages"]
    assert (first.content, first.tool_calls) == (search.content, search.tool_calls)
    assert (last.text, last.additional_kwargs) == (GOOD.text, {})
    assert not {key for key in {**first.response_metadata, **last.response_metadata} if key.startswith("arag")}
    assert all(not made["repaired"] and not made["asked_again"] for made in state["model_calls"])
