"""What an experiment has computed, paid for and may spend; work that was killed or failed is done again at no cost."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import AIMessage, AnyMessage
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
# Keys of a message that a reply from the cache has otherwise than the one that was paid for.
_NOT_SENT = {"id", "usage_metadata", "response_metadata", "artifact"}
# Names of options that may hold secrets; `max_tokens` and the like are counts.
_SECRET = re.compile(
    r"key|header|token(?!s)|passw|passphrase|secret|credential|auth|bearer|cookie|query", re.IGNORECASE
)
_QUERY = re.compile(r"(?<=://)([^\s?#]*\?)\S+")


def make_key(*parts: Any) -> bytes:
    """Return the key of a result that depends on parts, which JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


class Store:
    """Results by key, and the model calls that were paid for, in one SQLite file, which is made when it is needed.

    A killed process loses nothing that was put there. Threads and processes may share it. Each method raises a
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
            return None if row is None else row[0] if isinstance(row[0], bytes) else json.loads(row[0])

    def put(self, values: Mapping[bytes, Any]) -> None:
        """Keep values by their keys: bytes, or what JSON can hold."""
        rows = [(k, it if isinstance(it, bytes) else json.dumps(it, default=str)) for k, it in values.items()]
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


def store_folder(location: Path | str) -> Path:
    """Return the folder of what is kept for an index: beside its folder, or for an address in the user's data."""
    if isinstance(location, Path):
        return location.absolute().with_name(f"{location.absolute().name}.methods")
    name = hashlib.sha256(location.encode()).hexdigest()[:16]
    return user_data_path("arag", appauthor=False) / "indexes" / f"{name}.methods"


class BudgetError(InputError):
    """What may be spent is used up, or a price is unknown."""


class CallCache(BaseCache):
    """LangChain's cache of model calls, in a store. A call's key is all that is sent, with the model's options.

    A reply says in its metadata how many `seconds` it took, also when it comes from the cache. Empty replies are not
    kept: they are asked for again.

    Args:
        replies: Where replies are kept.
        ledger: Where it is noted what was paid; by default with the replies.
        max_cost: The US dollars that the ledger's calls may cost, those of earlier runs included. Calls that are under
            way when they are spent are finished, and paid.
    """

    def __init__(self, replies: Store, ledger: Store | None = None, max_cost: float | None = None) -> None:
        self._replies, self._ledger, self._max_cost = replies, ledger or replies, max_cost
        self._began: dict[bytes, float] = {}  # when each call began, by its key

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the reply to a prompt, or None if it is to be paid for.

        Raises:
            BudgetError: The money is spent, or the price of a model is unknown.
        """
        key = _call_key(prompt, llm_string)
        message = self._replies.get(key)
        if message is not None:
            return [ChatGeneration(message=AIMessage.model_validate(message))]
        if self._max_cost is not None:
            spent, unknown = self._ledger.spent()
            if unknown is not None:
                raise BudgetError(
                    f"--max-cost cannot be enforced: the price of {unknown or 'a model without a name'} is unknown, or "
                    "its provider reports no tokens"
                )
            if spent >= self._max_cost:
                spent_so_far = format_dollars(spent)
                raise BudgetError(f"--max-cost is reached: {spent_so_far} are spent. With more, the next run goes on")
        self._began[key] = time.perf_counter()
        return None

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep a reply, before anybody sees it, and note its payment."""
        key, now = _call_key(prompt, llm_string), time.perf_counter()
        message = cast("AIMessage", cast("ChatGeneration", return_val[0]).message)
        message.response_metadata["seconds"] = now - self._began[key]
        call = model_call(message, step=0)
        if not call["empty"]:
            self._replies.put({key: message.model_dump()})
        self._ledger.pay(call["model"], cost([call]))

    def clear(self, **_: Any) -> None:
        """Refuse."""
        raise NotImplementedError("what it keeps was paid for: delete the file to make the calls again")


def stored_seconds(messages: Iterable[AnyMessage]) -> float:
    """Return how long those replies took that come from the cache: LangChain gives their usage a `total_cost` of 0."""
    seconds = 0.0
    for message in messages:
        if isinstance(message, AIMessage) and "total_cost" in (message.usage_metadata or {}):
            seconds += message.response_metadata.get("seconds", 0.0)
    return seconds


def _call_key(prompt: str, llm_string: str) -> bytes:
    messages = [message["kwargs"] for message in json.loads(prompt)]
    sent = [{name: value for name, value in each.items() if name not in _NOT_SENT} for each in messages]
    try:  # the model as JSON, and then the call's own options
        model, end = json.JSONDecoder().raw_decode(llm_string)
    except ValueError:  # a class that LangChain cannot write down: it names its options without secrets
        return make_key(llm_string, sent)
    return make_key(without_secrets(model), llm_string[end:], sent)


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with possible secrets replaced by `***`, at any depth.

    The option's name decides. Users, passwords and queries of URLs are hidden in all strings.
    """
    return {name: "***" if _SECRET.search(name) else _hide(value) for name, value in options.items()}


def _hide(value: Any) -> Any:
    match value:
        case Mapping():
            return without_secrets({str(name): each for name, each in value.items()})
        case list() | tuple():
            return [_hide(each) for each in value]
        case str():
            return _QUERY.sub(r"\1***", without_credentials(value))
    return value
