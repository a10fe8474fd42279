"""A document's metadata as they are stored: its own fields, and how its file was read.

How a file was read stands among the fields, under a name that no document's own field has. So indexes from before
have the same tables, and copies keep it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from arag.retrieval.storage.records import Reading

_NAME = "\0reading"  # readers remove NUL characters from all names
STORED_NAME = json.dumps(_NAME)  # every stored object with the field has this text

_READING = TypeAdapter(Reading)


def format_metadata(fields: Mapping[str, Any], reading: Reading) -> str:
    """Return a document's fields and how its file was read, as they are stored."""
    stored = dict(fields)
    if reading != Reading():
        stored[_NAME] = asdict(reading)
    return json.dumps(stored, ensure_ascii=False)


def parse_fields(text: str) -> Any:
    """Return a document's own fields, given its stored metadata.

    Raises:
        ValueError, RecursionError: The text is not JSON.
    """
    stored = json.loads(text)
    if isinstance(stored, dict):
        stored.pop(_NAME, None)
    return stored


def parse_reading(text: str) -> Reading:
    """Return how a document's file was read, given its stored metadata.

    Raises:
        ValueError, RecursionError: The text holds something else.
    """
    if STORED_NAME not in text:
        return Reading()
    stored = json.loads(text)
    if not isinstance(stored, dict) or _NAME not in stored:
        return Reading()
    try:
        return _READING.validate_python(stored[_NAME])
    except ValidationError as error:
        raise ValueError("how its file was read is not understood") from error
