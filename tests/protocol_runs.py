"""Runs of an agent in each of the four ways that LangGraph has, and what all protocols' tests look at."""

from __future__ import annotations

import asyncio
import json

from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessageChunk, message_to_dict, messages_from_dict

from scripted_model import asked

WAYS = ["invoke", "ainvoke", "stream", "astream"]


def run_agent(agent, way="invoke", given=None, config=None):
    """Run an agent; return its last state, and the pieces of text that a stream gave, node by node."""
    given = asked() if given is None else given
    modes = ["messages", "values"]
    if way == "invoke":
        return agent.invoke(given, config), []
    if way == "ainvoke":
        return asyncio.run(agent.ainvoke(given, config)), []
    if way == "stream":
        return _gathered(agent.stream(given, config, stream_mode=modes))

    async def events():
        return [event async for event in agent.astream(given, config, stream_mode=modes)]

    return _gathered(asyncio.run(events()))


def _gathered(events):
    state, pieces = None, []
    for mode, event in events:
        if mode == "values":
            state = event
        elif isinstance(event[0], AIMessageChunk) and event[0].text:
            pieces.append(event[0].text)
    return state, pieces


def through_json(messages):
    """Return messages as they are after a store that keeps JSON."""
    return messages_from_dict(json.loads(json.dumps([message_to_dict(message) for message in messages])))


def assert_schemas(schemas):
    """Assert that a request's tools take objects, by schemas that are schemas."""
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert all("description" in value for value in schema["properties"].values())
