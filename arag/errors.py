"""The library's errors. Each says what was wrong and what is valid.

They all derive from `ARAGError`, so that callers such as the command line can tell them from bugs.
"""

import re
from pathlib import Path

# User names and passwords in URLs; a password may contain an @ that was not encoded.
CREDENTIALS = re.compile(r"(?<=://)[^\s/?#]*@")


def without_credentials(text: str) -> str:
    """Replace user names and passwords in a text's URLs with `***`."""
    return CREDENTIALS.sub("***@", text)


class ARAGError(RuntimeError):
    """Base of all errors that this library raises on purpose.

    It is a RuntimeError because the LangGraph API server sends clients the messages of only a few kinds of errors.

    Example:
        >>> from arag import ARAGError, open_index
        >>> try:
        ...     open_index("no-such-folder")
        ... except ARAGError as error:
        ...     print(error)
        no index in no-such-folder: ...
    """


class InputError(ARAGError, ValueError):
    """An argument, a path or a document cannot be used."""


class IndexNotFoundError(ARAGError, FileNotFoundError):
    """The given folder does not contain an index."""


class IndexFormatError(ARAGError):
    """The index is damaged, or this version cannot read it."""


class DamagedFileError(IndexFormatError):
    """A file of an index is damaged.

    Attributes:
        part: The file's name.
        reason: What is wrong with it, without the repair command.
    """

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} is damaged ({reason}): run `arag verify --index {file.parent} --repair`")
        self.part = file.name
        self.reason = reason


class IndexClosedError(ARAGError):
    """The index was used after it was closed."""


class IndexLockedError(ARAGError):
    """Another process is writing to the index."""


class StorageError(ARAGError):
    """The index's files cannot be written or opened: the disk is full or denies access."""


class ServiceError(ARAGError):
    """Base of model errors; hides credentials in messages, because clients quote URLs that may contain them."""

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))


class EmbedderError(ServiceError):
    """The embedder cannot be loaded, fails, differs from the index's embedder, or has not been allowed."""


class ModelError(ServiceError):
    """The chat model cannot be loaded (unknown name, missing package or key), or its response contains no reply."""
