"""The JSON schemas that Studio and other clients show."""

from __future__ import annotations

import pytest

from arag.graph.graph import create_arag_agent

# Parts of the schemas that LangChain's messages bring along.
_OF_LANGCHAIN = {
    "InputTokenDetails",
    "InvalidToolCall",
    "OutputTokenDetails",
    "ToolCall",
    "ToolCallChunk",
    "UsageMetadata",
}


@pytest.mark.parametrize("part", ["input", "output", "context"])
def test_each_field_of_a_run_is_described(small_index, part):
    agent = create_arag_agent("extractive", small_index)
    schema = getattr(agent, f"get_{part}_jsonschema")()
    types = {part: schema, **schema.get("$defs", {})}
    described = 0
    for name, definition in types.items():
        if name in _OF_LANGCHAIN or name.endswith(("Message", "MessageChunk")):
            continue
        for field, value in definition.get("properties", {}).items():
            assert value.get("description"), f"{name}.{field}"
            described += 1
    assert described


def test_the_parts_of_an_answer_are_described_too(small_index):
    types = create_arag_agent("extractive", small_index).get_output_jsonschema()["$defs"]
    assert types["Citation"]["properties"]["quotes"]["description"].startswith("The sentences that support the answer")
    assert types["ToolRecord"]["properties"]["tool"]["description"] == "The tool's name."
    assert types["Usage"]["properties"]["input_tokens"]["description"].startswith("Tokens of the prompts")
