"""The library's errors. Each says what was wrong and what is valid."""

import re
from typing import Any

from arag.text.visible import visible_line

# User names and passwords in URLs; a password may contain an @ that was not encoded.
_CREDENTIALS = re.compile(r"(?<=://)[^\s/?#]*@")

_MAX_FAULTS = 5  # fields in one message
_MAX_FIELD = 100  # characters of a field's name, which a user or a model may have made up


def without_credentials(text: str) -> str:
    """Replace user names and passwords in a text's URLs with `***`."""
    return _CREDENTIALS.sub("***@", text)


def list_faults(error: Any) -> str:
    """Return on one line what pydantic's ValidationError says about the first wrong fields."""
    faults = error.errors()
    parts = []
    for fault in faults[:_MAX_FAULTS]:
        field = ".".join(map(str, fault["loc"])) or "arguments"
        parts.append(f"{field[:_MAX_FIELD]}: {fault['msg']}")
    if len(faults) > _MAX_FAULTS:
        parts.append(f"and {len(faults) - _MAX_FAULTS:,} more")
    return "; ".join(parts)


class ARAGError(RuntimeError):
    """Base of all errors that this library raises on purpose; any other error is a bug.

    Its text is one line, without characters that a terminal obeys, since it may quote untrusted text.

    It is a RuntimeError because the LangGraph API server sends clients the messages of only a few kinds of errors.

    Example:
        >>> from arag import ARAGError, open_index
        >>> try:
        ...     open_index("no-such-folder")
        ... except ARAGError as error:
        ...     print(error)
        no index in no-such-folder: ...
    """

    def __str__(self) -> str:
        return visible_line(super().__str__())


class InputError(ARAGError, ValueError):
    """An argument, a path or a document cannot be used."""


class IndexNotFoundError(ARAGError, FileNotFoundError):
    """There is no index at the given location."""


class IndexFormatError(ARAGError):
    """The index is damaged, or this version cannot read it."""


class IndexLockedError(ARAGError):
    """Another process is writing to the index: try again later."""


class StorageError(ARAGError):
    """The index cannot be written or opened: the disk is full or denies access, or its database cannot be reached."""


class ModelError(ARAGError):
    """A chat model or an embedder cannot be loaded, fails, or is not the one that the index was made with.

    The message hides credentials: clients quote URLs that may contain them.
    """

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))
