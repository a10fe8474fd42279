"""Makes a file of questions from an index: written and checked by a model, or made by rules without one."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from arag.errors import InputError
from arag.evaluation.making.drafts import KINDS, Draft
from arag.evaluation.making.prose import ask_mentions, ask_year
from arag.evaluation.making.table_columns import Table, read_tables
from arag.evaluation.making.tables import ask_table
from arag.evaluation.making.written import PAIRED, Attempt, Outcome, write_question
from arag.evaluation.method import Session
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk

RULES = "rules"  # what made a question without a model
RULE_KINDS = tuple(kind for kind in KINDS if kind != "two-step")
_TRIES = 4  # for each question that is wanted
_ROUNDS = 20  # how often rules come back to a table
_MIN_TOKENS = 10  # of a chunk that a question is made from: shorter ones are titles
_MAX_CHUNKS = 2_000  # that rules read for sentences
_PARTNERS = 8  # chunks among which the second one of a pair is looked for


class QuestionsFile:
    """The questions that were made, one JSON line each. Those that are there are kept."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.kinds: Counter[str] = Counter()
        self._ids: set[str] = set()
        if file.exists():
            self._read()

    def _read(self) -> None:
        whole = 0  # bytes up to the end of the last whole line: a kill may leave half a line
        for line in self.file.read_bytes().splitlines(keepends=True):
            try:
                row = json.loads(line)
                self._ids.add(row["id"])
                self.kinds[row["kind"]] += bool(row["made_by"])
            except (ValueError, KeyError, TypeError) as error:
                if line.endswith(b"\n"):
                    message = f"{self.file} holds other questions than `arag eval make` writes: give another --out"
                    raise InputError(message) from error
                break
            whole += len(line)
        os.truncate(self.file, whole)

    def add(self, draft: Draft, made_by: str) -> bool:
        """Write a question durably, unless it is there."""
        if draft.id in self._ids:
            return False
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8", newline="\n") as out:
            out.write(json.dumps(draft.row(made_by), ensure_ascii=False) + "\n")
            out.flush()
            os.fsync(out.fileno())
        self._ids.add(draft.id)
        self.kinds[draft.kind] += 1
        return True


@dataclass
class Tally:
    """How far the work is.

    Attributes:
        wanted: How many questions of each kind are wanted.
        file: The questions that are there.
        tried: How many questions were tried.
        dropped: How often a question was dropped for a reason.
    """

    wanted: Mapping[str, int]
    file: QuestionsFile
    tried: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def missing(self, kind: str) -> int:
        """Return how many questions of a kind are missing."""
        return max(self.wanted[kind] - self.file.kinds[kind], 0)

    @property
    def kept(self) -> int:
        """How many of the questions that are wanted are there."""
        return sum(number - self.missing(kind) for kind, number in self.wanted.items())


def share_out(number: int, kinds: Sequence[str]) -> dict[str, int]:
    """Return how many questions of each kind make up a number: the first kinds get one more if it does not divide."""
    each, rest = divmod(number, len(kinds))
    return {kind: each + (place < rest) for place, kind in enumerate(kinds)}


# --- by rules ---


def make_by_rules(index: Index, tally: Tally, seed: int, on_step: Callable[[], None]) -> None:
    """Make questions from tables and sentences, until there are enough or the corpus has no more.

    Args:
        index: The index.
        tally: What is wanted, and the file.
        seed: Decides which rows and sentences are chosen.
        on_step: Called after each question that was tried.
    """
    tables = read_tables(index)
    streams: dict[str, Iterator[Draft]] = {}
    for kind in tally.wanted:
        streams[kind] = _ask_by_rules(index, list(tables), kind, _make_random(seed, kind))
    while streams:
        for kind in list(streams):
            draft = next(streams[kind], None) if tally.missing(kind) else None
            if draft is None:
                del streams[kind]
                continue
            tally.tried += 1
            if not tally.file.add(draft, RULES):
                tally.dropped["it is there already"] += 1
            on_step()


def _make_random(seed: int, kind: str) -> Random:
    """Return the choices for a kind of questions, which do not depend on the other kinds that are wanted."""
    return Random(f"{seed} {kind}")  # noqa: S311 - nothing secret is chosen


def _ask_by_rules(index: Index, tables: list[Table], kind: str, random: Random) -> Iterator[Draft]:
    """Yield questions of a kind: in each round one of each table, then one of each chunk."""
    for _ in range(_ROUNDS):
        random.shuffle(tables)
        for table in tables:
            draft = ask_table(table, kind, lambda text: _occurs(index, text), random)
            if draft is not None:
                yield draft
    ask = {"dates": ask_year, "counting": ask_mentions}.get(kind)
    if ask is None:
        return
    for chunk in _sample_chunks(index, random, _MAX_CHUNKS):
        draft = ask(chunk, index, random)
        if draft is not None:
            yield draft


def _occurs(index: Index, text: str) -> bool:
    return bool(index.keyword_search([text], 1).hits)


# --- by a model ---


def make_by_model(session: Session, tally: Tally, seed: int, made_by: str, on_step: Callable[[], None]) -> None:
    """Let a model write and check questions, until there are enough or each kind was tried often enough.

    Args:
        session: Asks the model. Calls that are in its cache are not made again.
        tally: What is wanted, and the file.
        seed: Decides which chunks are chosen.
        made_by: The model's name for the file.
        on_step: Called after each question that was tried.
    """
    index = session.context.index
    attempts: dict[str, Iterator[Attempt]] = {}
    for kind, number in tally.wanted.items():
        attempts[kind] = _choose_attempts(index, kind, _make_random(seed, kind), number * _TRIES)
    while batch := _next_batch(attempts, tally, session.context.concurrency):
        for outcome in session.map_parallel(write_question, batch):
            _note(outcome, tally, made_by)
            on_step()


def _next_batch(attempts: Mapping[str, Iterator[Attempt]], tally: Tally, size: int) -> list[Attempt]:
    """Return the next attempts at kinds of which questions are missing, no more of each than are missing."""
    batch: list[Attempt] = []
    for kind, left in attempts.items():
        for _ in range(min(tally.missing(kind), size - len(batch))):
            attempt = next(left, None)
            if attempt is None:
                break
            batch.append(attempt)
    return batch


def _note(outcome: Outcome, tally: Tally, made_by: str) -> None:
    tally.tried += 1
    if outcome.draft is None:
        tally.dropped[outcome.dropped] += 1
    elif not tally.file.add(outcome.draft, made_by):
        tally.dropped["it is there already"] += 1


def _choose_attempts(index: Index, kind: str, random: Random, number: int) -> Iterator[Attempt]:
    """Yield chunks for questions of a kind, each chunk once."""
    for chunk in _sample_chunks(index, random, number):
        if kind not in PAIRED:
            yield Attempt(kind, (chunk,))
            continue
        partner = _find_partner(index, chunk)
        if partner is not None:
            yield Attempt(kind, (chunk, partner))


def _sample_chunks(index: Index, random: Random, number: int) -> list[Chunk]:
    """Return chunks in a random order, without very short ones."""
    ids = list(index.chunk_ids())
    random.shuffle(ids)
    chunks = [chunk for chunk in index.mget(ids[:number]) if chunk is not None]
    return [chunk for chunk in chunks if chunk.tokens >= _MIN_TOKENS]


def _find_partner(index: Index, chunk: Chunk) -> Chunk | None:
    """Return the chunk of another document that is nearest to a chunk's beginning; else one of the same document."""
    beginning = " ".join([chunk.title, *chunk.embedded_texts()[:2]])
    others = [hit.chunk for hit in index.semantic_search(beginning, _PARTNERS).hits if hit.chunk_id != chunk.id]
    others.sort(key=lambda other: other.document_id == chunk.document_id)  # stable: nearest first in each
    return others[0] if others else None


def describe(tally: Tally) -> dict[str, Any]:
    """Return the result as plain values."""
    return {
        "file": str(tally.file.file),
        "questions": {kind: tally.wanted[kind] - tally.missing(kind) for kind in tally.wanted},
        "missing": {kind: tally.missing(kind) for kind in tally.wanted if tally.missing(kind)},
        "tried": tally.tried,
        "dropped": dict(tally.dropped.most_common()),
    }
