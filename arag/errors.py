"""Errors that a user of the library can meet, each saying what was wrong and what is valid.

They all derive from `ARAGError`, so that a caller (the command line, say) can tell them from bugs.
"""

import re
from pathlib import Path

# Users and passwords of URLs; a password may hold an @ where somebody has not encoded it.
CREDENTIALS = re.compile(r"(?<=://)[^\s/?#]*@")


def without_credentials(text: str) -> str:
    """Put `***` in the place of users and passwords of the URLs in a text."""
    return CREDENTIALS.sub("***@", text)


class ARAGError(RuntimeError):
    """Base of all errors that this library raises on purpose.

    The LangGraph API server passes the messages of few errors on to its clients; those of a RuntimeError it does.
    """


class InputError(ARAGError, ValueError):
    """An argument, a path or a document is not usable."""


class IndexNotFoundError(ARAGError, FileNotFoundError):
    """There is no index in the folder given."""


class IndexFormatError(ARAGError):
    """The folder holds an index that this version cannot read, or a damaged one."""


class DamagedFileError(IndexFormatError):
    """A file of an index is damaged.

    Attributes:
        part: The file's name.
        reason: What is wrong with it, without the command that may mend it.
    """

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} is damaged ({reason}): run `arag verify --index {file.parent} --repair`")
        self.part = file.name
        self.reason = reason


class IndexClosedError(ARAGError):
    """The index was closed and is used all the same."""


class IndexLockedError(ARAGError):
    """Another process is writing to the index."""


class StorageError(ARAGError):
    """The index's files cannot be written, or opened: the disk is full, or does not allow it."""


class ServiceError(ARAGError):
    """Base of what goes wrong with models. Clients quote URLs, which may hold a user and a password."""

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))


class EmbedderError(ServiceError):
    """The embedder cannot be loaded, fails, is not the one that the index was made with, or nobody has allowed it."""


class ModelError(ServiceError):
    """The chat model cannot be loaded (unknown name, missing package or key), or its response holds no reply."""
