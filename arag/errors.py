"""The library's errors. Each says what was wrong and what is valid.

They all derive from `ARAGError`, so that callers such as the command line can tell them from bugs.
"""

import re

# User names and passwords in URLs; a password may contain an @ that was not encoded.
CREDENTIALS = re.compile(r"(?<=://)[^\s/?#]*@")


def without_credentials(text: str) -> str:
    """Replace user names and passwords in a text's URLs with `***`.

    Example:
        >>> without_credentials("no reply from http://user:password@host/v1")
        'no reply from http://***@host/v1'
    """
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
    """An argument, a path or a document cannot be used.

    Example:
        >>> index.keyword_search([])
        Traceback (most recent call last):
            ...
        arag.errors.InputError: no keyword given: keyword_search needs at least one that is not blank
    """


class IndexNotFoundError(ARAGError, FileNotFoundError):
    """There is no index at the given location.

    Example:
        >>> from arag import open_index
        >>> open_index("no-such-folder")
        Traceback (most recent call last):
            ...
        arag.errors.IndexNotFoundError: no index in no-such-folder: make one with `arag ingest ...`
    """


class IndexFormatError(ARAGError):
    """The index is damaged, or this version cannot read it.

    Example:
        >>> from arag import open_index
        >>> from pathlib import Path
        >>> _ = Path("my-index/index.sqlite3").write_text("{")
        >>> open_index("my-index")
        Traceback (most recent call last):
            ...
        arag.errors.IndexFormatError: ...my-index/index.sqlite3 is damaged (...): ingest the documents again ...
    """


class IndexClosedError(ARAGError):
    """The index was used after it was closed.

    Example:
        >>> index.close()
        >>> index.keyword_search("ship")
        Traceback (most recent call last):
            ...
        arag.errors.IndexClosedError: the index in my-index is closed: open it again with open_index
    """


class IndexLockedError(ARAGError):
    """Another process is writing to the index.

    Example:
        >>> from arag import ingest
        >>> try:
        ...     updated = ingest("examples/corpus", "my-index")
        ... except IndexLockedError:
        ...     print("Another process is writing: try again later.")
    """


class StorageError(ARAGError):
    """The index cannot be written or opened: the disk is full or denies access, or its database cannot be reached.

    Example:
        >>> from arag import ingest
        >>> try:
        ...     updated = ingest("examples/corpus", "my-index")
        ... except StorageError as error:
        ...     print("Is the disk full?", error)
    """


class ServiceError(ARAGError):
    """Base of model errors; hides credentials in messages, because clients quote URLs that may contain them.

    Example:
        >>> str(ServiceError("no reply from http://user:password@host/v1"))
        'no reply from http://***@host/v1'
    """

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))


class EmbedderError(ServiceError):
    """The embedder cannot be loaded, fails, differs from the index's embedder, or has not been allowed.

    Example:
        >>> from arag import open_index
        >>> open_index("my-index", embedder="openai:text-embedding-3-small")
        Traceback (most recent call last):
            ...
        arag.errors.EmbedderError: the index in my-index was made with the embedder huggingface:..., not openai:...
    """


class ModelError(ServiceError):
    """The chat model cannot be loaded (unknown name, missing package or key), or its response contains no reply.

    Example:
        >>> from arag import load_model
        >>> load_model("no_provider:x")
        Traceback (most recent call last):
            ...
        arag.errors.ModelError: the model no_provider:x cannot be created: ...
    """
