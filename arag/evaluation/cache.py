"""Keeps the results and the payments of experiments, and enforces their budget: killed work is repeated for free."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from platformdirs import user_data_path

from arag.errors import InputError, StorageError, without_credentials
from arag.models.prices import cost, format_dollars
from arag.models.usage import model_call

_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS paid (model TEXT NOT NULL, dollars REAL);
"""
# Keys of a message that differ between a reply from the cache and the one that was paid for. They are not sent.
_NOT_SENT = {"id", "usage_metadata", "response_metadata", "artifact"}
# Names of options that may hold secrets; `max_tokens` and the like are counts.
_SECRET = re.compile(
    r"key|header|token(?!s)|passw|passphrase|secret|credential|auth|bearer|cookie|query", re.IGNORECASE
)
_QUERY = re.compile(r"(?<=://)([^\s?#]*\?)\S+")


def make_key(*parts: Any) -> bytes:
    """Return the key of a result that depends on parts, which JSON can hold."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).digest()


class Store:
    """Results by key, and the model calls that were paid for, in one SQLite file that is made on first use.

    A killed process loses nothing that was put there. Threads and processes may share the file. Each method raises a
    StorageError if the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "calls.sqlite3"
        self._lock = threading.Lock()

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.file, timeout=60, check_same_thread=False)
        connection.executescript(_TABLES)
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock, self._connection as connection:
                yield connection
        except (sqlite3.Error, OSError, ValueError) as error:
            message = f"{self.file} cannot be used: {error}. If it is damaged, delete it: what it holds is done again"
            raise StorageError(message) from error

    def get(self, key: bytes) -> Any:
        """Return the value of a key, or None."""
        with self._transaction() as connection:
            row = connection.execute("SELECT value FROM results WHERE key = ?", [key]).fetchone()
            if row is None:
                return None
            (value,) = row
            if isinstance(value, bytes):
                return value
            return json.loads(value)

    def put(self, values: Mapping[bytes, Any]) -> None:
        """Keep values by their keys: bytes, or values that JSON can hold."""
        rows = []
        for key, value in values.items():
            stored = value if isinstance(value, bytes) else json.dumps(value, default=str)
            rows.append((key, stored))
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?)", rows)

    def pay(self, model: str, dollars: float | None) -> None:
        """Note a model call that was paid for, and its price if it is known."""
        with self._transaction() as connection:
            connection.execute("INSERT INTO paid VALUES (?, ?)", [model, dollars])

    def spent(self) -> tuple[float, str | None]:
        """Return the dollars that all calls have cost, and the name of a model whose price is unknown."""
        with self._transaction() as connection:
            query = "SELECT total(dollars), max(CASE WHEN dollars IS NULL THEN model END) FROM paid"
            dollars, unknown = connection.execute(query).fetchone()
            return dollars, unknown

    def each(
        self,
        what: str,
        texts: Sequence[str],
        make: Callable[[list[str]], Sequence[Any]],
        batch: int,
        on_done: Callable[[int], None] = lambda _: None,
    ) -> list[Any]:
        """Apply a function to texts; results that are in the store are not made again.

        Args:
            what: A name for the results and their maker: "entities en_core_web_sm 3.8.0". It is a part of their keys.
            texts: The texts.
            make: Makes the results of several texts: bytes, or values that JSON can hold.
            batch: How many texts `make` gets at a time; they have about the same length.
            on_done: Called with the number of texts done so far.

        Returns:
            The result of each text, in the order of the texts.
        """
        keys = {text: make_key(what, text) for text in texts}
        values: dict[str, Any] = {}
        missing = []
        for text, key in keys.items():
            value = self.get(key)
            if value is None:
                missing.append(text)
            else:
                values[text] = value
        missing.sort(key=len)
        for begin in range(0, len(missing), batch):
            some = missing[begin : begin + batch]
            made = dict(zip(some, make(some), strict=True))
            self.put({keys[text]: value for text, value in made.items()})
            values.update(made)
            on_done(len(values))
        return [values[text] for text in texts]


def store_folder(location: Path | str) -> Path:
    """Return the folder for results about an index: beside the index's folder, or in the user's data for an address."""
    if isinstance(location, Path):
        folder = location.absolute()
        return folder.with_name(f"{folder.name}.methods")
    digest = hashlib.sha256(location.encode()).hexdigest()
    return user_data_path("arag", appauthor=False) / "indexes" / f"{digest[:16]}.methods"


class CallRefusedError(InputError):
    """A model is not called, because the budget is used up or the experiment was stopped."""


class BudgetError(CallRefusedError):
    """The budget is used up, or a price is unknown."""


class CallCache(BaseCache):
    """LangChain's cache of model calls, in a store. A call's key is everything that is sent, and the model's options.

    A reply's metadata has the `seconds` that the call took, also when the reply comes from the cache. Empty replies are
    not kept, so that they are asked for again.

    Args:
        replies: Where replies are kept.
        ledger: Where payments are noted; by default with the replies.
        max_cost: The US dollars that all calls in the ledger may cost, those of earlier runs included. Calls that are
            under way when the limit is reached are finished, and paid.
        stopped: When it is set, no more calls begin.
    """

    def __init__(
        self,
        replies: Store,
        ledger: Store | None = None,
        max_cost: float | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self._replies = replies
        self._ledger = ledger or replies
        self._max_cost = max_cost
        self._stopped = stopped or threading.Event()
        self._began: dict[bytes, float] = {}  # when each call began, by its key

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the reply to a prompt, or None if the model has to be called.

        Raises:
            BudgetError: The budget is used up, or the price of a model is unknown.
            CallRefusedError: The experiment was stopped.
        """
        key = _call_key(prompt, llm_string)
        message = self._replies.get(key)
        if message is not None:
            return [ChatGeneration(message=AIMessage.model_validate(message))]
        if self._stopped.is_set():
            raise CallRefusedError("the experiment was stopped")
        if self._max_cost is not None:
            self._check_budget(self._max_cost)
        self._began[key] = time.perf_counter()
        return None

    def _check_budget(self, max_cost: float) -> None:
        spent, unknown = self._ledger.spent()
        if unknown is not None:
            raise BudgetError(
                f"--max-cost cannot be enforced: the price of {unknown or 'a model without a name'} is unknown, or "
                "its provider reports no tokens"
            )
        if spent >= max_cost:
            raise BudgetError(f"--max-cost is reached: {format_dollars(spent)} are spent. Raise it to continue")

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep a reply before anybody sees it, and note its payment."""
        now = time.perf_counter()
        key = _call_key(prompt, llm_string)
        generation = cast("ChatGeneration", return_val[0])
        message = cast("AIMessage", generation.message)
        message.response_metadata.setdefault("seconds", now - self._began[key])  # a replay knows them
        call = model_call(message, step=0)
        if not call["empty"]:
            self._replies.put({key: message.model_dump()})
        self._ledger.pay(call["model"], cost([call]))

    def clear(self, **_: Any) -> None:
        """Refuse: the replies were paid for."""
        raise NotImplementedError("the replies were paid for: delete the file to make the calls again")


def _call_key(prompt: str, llm_string: str) -> bytes:
    sent = []
    for message in json.loads(prompt):
        fields = message["kwargs"]
        sent.append({name: value for name, value in fields.items() if name not in _NOT_SENT})
    try:  # the model as JSON, followed by the call's own options
        model, end = json.JSONDecoder().raw_decode(llm_string)
    except ValueError:  # a class that LangChain cannot serialise: its text names the options without secrets
        return make_key(llm_string, sent)
    return make_key(without_secrets(model), llm_string[end:], sent)


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with possible secrets replaced by `***`, at any depth.

    An option is secret if its name says so. Users, passwords and queries of URLs are hidden in all strings.
    """
    shown = {}
    for name, value in options.items():
        shown[name] = "***" if _SECRET.search(name) else _hide(value)
    return shown


def _hide(value: Any) -> Any:
    match value:
        case Mapping():
            return without_secrets({str(name): each for name, each in value.items()})
        case list() | tuple():
            return [_hide(each) for each in value]
        case str():
            return _QUERY.sub(r"\1***", without_credentials(value))
    return value
