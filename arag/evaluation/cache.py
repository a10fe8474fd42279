"""What an experiment has computed and paid for, on disk: work that was killed or failed is done again at no cost."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from numpy.typing import NDArray
from platformdirs import user_data_path

from arag.errors import StorageError
from arag.models.embedders import Embedder
from arag.models.usage import ModelCall, model_call

Vectors = NDArray[np.float32]

_STORE_NAME = "calls.sqlite3"
_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS payments (call TEXT NOT NULL);
"""
# Keys of a message that a reply from the cache has otherwise than the one that was paid for.
_NOT_SENT = {"id", "usage_metadata", "response_metadata", "artifact"}


def make_key(*parts: Any) -> bytes:
    """Return the key of a result that depends on parts, which JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


class Store:
    """Results by key, and the model calls that were paid for, in one SQLite file.

    A killed process loses nothing that was put there. Threads and processes may share it.

    Args:
        folder: The file's folder; it is created.

    Raises:
        StorageError: The file cannot be opened or created.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / _STORE_NAME
        self._lock = threading.Lock()
        with self._errors():
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.file, timeout=60, check_same_thread=False)
            self._connection.executescript(_TABLES)

    def get(self, key: bytes) -> Any:
        """Return the value of a key, or None."""
        with self._lock, self._errors():
            row = self._connection.execute("SELECT value FROM results WHERE key = ?", [key]).fetchone()
            return None if row is None else row[0] if isinstance(row[0], bytes) else json.loads(row[0])

    def put(self, values: Mapping[bytes, Any]) -> None:
        """Keep values by their keys: bytes, or what JSON can hold."""
        rows = [
            (k, value if isinstance(value, bytes) else json.dumps(value, default=str)) for k, value in values.items()
        ]
        with self._lock, self._errors(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?)", rows)

    def pay(self, call: ModelCall) -> None:
        """Note a model call that was paid for."""
        with self._lock, self._errors(), self._connection:
            self._connection.execute("INSERT INTO payments VALUES (?)", [json.dumps(call)])

    def payments(self, after: int = 0) -> list[ModelCall]:
        """Return the model calls that were paid for, in order, without the first ones."""
        select = "SELECT call FROM payments WHERE rowid > ? ORDER BY rowid"
        with self._lock, self._errors():
            return [json.loads(call) for (call,) in self._connection.execute(select, [after])]

    def each(
        self,
        what: str,
        texts: Sequence[str],
        make: Callable[[list[str]], Sequence[Any]],
        batch: int,
        on_done: Callable[[int], None] = lambda _: None,
    ) -> list[Any]:
        """Return something made of each text; what was made before is not made again.

        Args:
            what: What is made, and by what: "entities en_core_web_sm 3.8.0".
            texts: The texts.
            make: Makes it of several texts: bytes, or what JSON can hold.
            batch: How many texts `make` gets at a time: those of about the same length.
            on_done: Called with the number of texts done so far.

        """
        keys = {text: make_key(what, text) for text in texts}
        values = {text: self.get(key) for text, key in keys.items()}
        missing = sorted((text for text, value in values.items() if value is None), key=len)
        for begin in range(0, len(missing), batch):
            some = missing[begin : begin + batch]
            made = dict(zip(some, make(some), strict=True))
            self.put({keys[text]: value for text, value in made.items()})
            values |= made
            on_done(len(values) - len(missing) + begin + len(some))
        return [values[text] for text in texts]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            message = f"{self.file} cannot be used: {error}. If it is damaged, delete it: what it holds is done again"
            raise StorageError(message) from error


def store_folder(location: Path | str) -> Path:
    """Return the folder of what is kept for an index: `my-index.methods` beside `my-index`.

    Args:
        location: The index's folder, or its address; what is kept for an address is in the user's data folder.
    """
    if isinstance(location, Path):
        return location.absolute().with_name(f"{location.absolute().name}.methods")
    name = hashlib.sha256(location.encode()).hexdigest()[:16]
    return user_data_path("arag", appauthor=False) / "indexes" / f"{name}.methods"


def embed(
    store: Store, embedder: Embedder, texts: Sequence[str], on_done: Callable[[int], None] = lambda _: None
) -> Vectors:
    """Return the vectors of texts, shape (texts, dimension); what was embedded before is not embedded again.

    Raises:
        ModelError: The embedder fails; what it has embedded before is kept.
    """

    def make(some: list[str]) -> list[bytes]:
        return [vector.astype("<f4").tobytes() for vector in embedder.embed_documents(some)]

    values = store.each(f"vector {embedder.name}", texts, make, embedder.batch, on_done)
    vectors = [np.frombuffer(value, dtype="<f4") for value in values]
    return np.stack(vectors).astype(np.float32) if vectors else np.empty((0, 0), dtype=np.float32)


class CallCache(BaseCache):
    """LangChain's cache of model calls, in a store. A call's key is all that is sent, with the model's options.

    Empty replies are not kept: they are asked for again.

    Args:
        replies: Keeps the replies.
        ledger: Notes what was paid; by default `replies`.
        before_call: Called before a call that is to be paid; it may raise.
    """

    def __init__(
        self, replies: Store, ledger: Store | None = None, before_call: Callable[[], None] = lambda: None
    ) -> None:
        self._replies = replies
        self._ledger = ledger or replies
        self._before_call = before_call

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the reply to a prompt, or None."""
        message = self._replies.get(_call_key(prompt, llm_string))
        if message is None:
            self._before_call()
            return None
        return [ChatGeneration(message=AIMessage.model_validate(message))]

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep a reply, and note its payment."""
        (generation,) = return_val
        if not isinstance(generation, ChatGeneration) or not isinstance(generation.message, AIMessage):
            raise TypeError(f"a chat model replied with {type(generation).__name__}")
        call = model_call(generation.message, step=0)
        self._ledger.pay(call)
        if not call["empty"]:
            self._replies.put({_call_key(prompt, llm_string): generation.message.model_dump()})

    def clear(self, **_: Any) -> None:
        """Refuse: what it keeps was paid for."""
        raise NotImplementedError("delete the file to make the calls again")


def is_replayed(reply: AIMessage) -> bool:
    """Return whether a reply comes from the cache: LangChain gives its usage a `total_cost` of 0."""
    return "total_cost" in (reply.usage_metadata or {})


def _call_key(prompt: str, llm_string: str) -> bytes:
    messages = [message["kwargs"] for message in json.loads(prompt)]
    return make_key(llm_string, [{k: v for k, v in sent.items() if k not in _NOT_SENT} for sent in messages])
