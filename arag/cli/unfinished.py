"""Questions whose run failed after something was found: kept, one for each index, until `arag ask --resume` goes on.

The file holds the conversation as JSON: what the model and the tools said. It has no key and no address.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, messages_from_dict, messages_to_dict
from platformdirs import user_state_path

from arag.errors import InputError, without_credentials
from arag.graph.overflow import has_results
from arag.system.files import delete, make_folder, written_whole


def keep(location: str, messages: Sequence[AnyMessage]) -> bool:
    """Keep a question's conversation, if it has results; return whether it was kept."""
    if not has_results(messages):
        return False
    file = _find_file(location)
    text = json.dumps(messages_to_dict(messages), default=str)
    try:
        make_folder(file.parent)
        with written_whole(file) as out:
            os.fchmod(out.fileno(), 0o600)  # it quotes documents
            out.write(text.encode("utf-8", "replace"))
    except OSError:  # the failure of the run matters more
        return False
    return True


def load(location: str) -> list[BaseMessage]:
    """Return the conversation of an index's unfinished question.

    Raises:
        InputError: There is none, or its file cannot be read.
    """
    file = _find_file(location)
    try:
        messages = messages_from_dict(json.loads(file.read_text("utf-8")))
    except FileNotFoundError:
        raise InputError("this index has no unfinished question to go on with: ask one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} cannot be read: delete it, and ask the question again") from error
    if not any(isinstance(message, HumanMessage) for message in messages):
        raise InputError(f"{file} has no question: delete it, and ask again")
    return messages


def forget(location: str) -> None:
    """Delete the conversation of an index's unfinished question."""
    delete(_find_file(location))


def _find_file(location: str) -> Path:
    place = without_credentials(location) if "://" in location else str(Path(location).resolve())
    name = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return user_state_path("arag") / "unfinished" / f"{name}.json"
