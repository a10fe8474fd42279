"""The tables of an index in PostgreSQL, in a schema of their own.

`documents` and `chunks` are narrow: they are joined, and updated. Their rows belong to the snapshots from `added`
until before `removed`. The other tables are wide and never updated. `lowered` (the texts in which keywords are
matched) and `words` are derived from `contents`. Text is compared byte by byte, as in Python.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg import errors

from arag.errors import IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.postgres.connection import Pool, Session
from arag.retrieval.storage.records import ChunkVectors, Settings, Vectors
from arag.retrieval.storage.rows import MAX_WORD_CHARACTERS
from arag.retrieval.storage.sql import DOCUMENT_NAME, TableReader, storable
from arag.retrieval.storage.vectors import MAX_MATRIX_BYTES

GENERATION = "SELECT generation FROM state"
FOR_EVER = 1 << 62  # a generation that never comes
TABLES = ("state", "documents", "chunks", "contents", "lowered", "sentences", "words")

RUN = re.compile("[a-z0-9]+")
# Runs of ASCII's letters and digits in a text, which an index finds. This one replaces all that are too long for it.
LONG_RUN = "x" * (MAX_WORD_CHARACTERS + 1)
RUNS = "runs(lowered)"
# In PL/pgSQL, and with a cost: else the planner would split all texts again for each run that is looked for.
_RUNS_FUNCTION = f"""
CREATE FUNCTION runs(lowered text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
BEGIN
    RETURN regexp_split_to_array(
        regexp_replace(lowered, '[a-z0-9]{{{MAX_WORD_CHARACTERS + 1},}}', '{LONG_RUN}', 'g'), '[^a-z0-9]+'
    );
END $$
"""

# The word index. A row belongs to the snapshots from `added` until before `removed`. Not compressed, so that a part of
# the postings is read without the others.
_WORD_SEGMENTS = f"""
CREATE TABLE word_segments (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    row_ids bytea NOT NULL,
    head bytea NOT NULL,
    postings bytea NOT NULL,
    added bigint NOT NULL,
    removed bigint NOT NULL DEFAULT {FOR_EVER}
);
ALTER TABLE word_segments ALTER COLUMN postings SET STORAGE EXTERNAL;
"""
# Texts in `lowered` stay in their rows, uncompressed, so that a common keyword is counted at the speed of memory. The
# planner does not know how long that takes, and would not use several processes by itself.
_SCHEMA = f"""
CREATE TABLE state (
    one_row boolean PRIMARY KEY DEFAULT TRUE CHECK (one_row),
    generation bigint NOT NULL,
    token text NOT NULL,
    settings text NOT NULL
);
CREATE TABLE documents (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    metadata text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    chunks bigint NOT NULL,
    added bigint NOT NULL,
    removed bigint NOT NULL DEFAULT {FOR_EVER}
);
CREATE INDEX documents_by_id ON documents (id, added, removed);
CREATE UNIQUE INDEX one_document_an_id ON documents (id) WHERE removed = {FOR_EVER};
CREATE INDEX removed_documents ON documents (removed) WHERE removed < {FOR_EVER};
CREATE TABLE chunks (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    ordinal bigint NOT NULL,
    tokens bigint NOT NULL,
    first_page bigint,
    last_page bigint,
    sentences bigint NOT NULL,
    added bigint NOT NULL,
    removed bigint NOT NULL DEFAULT {FOR_EVER}
);
CREATE INDEX chunks_by_id ON chunks (id, added, removed);
CREATE UNIQUE INDEX one_chunk_an_id ON chunks (id) WHERE removed = {FOR_EVER};
CREATE INDEX chunks_by_place ON chunks (document_id, ordinal);
CREATE INDEX removed_chunks ON chunks (removed) WHERE removed < {FOR_EVER};
CREATE TABLE contents (
    number bigint PRIMARY KEY, text text COLLATE "C" NOT NULL, places text COLLATE "C" NOT NULL
);
CREATE TABLE lowered (number bigint PRIMARY KEY, lowered text COLLATE "C" NOT NULL);
ALTER TABLE lowered ALTER COLUMN lowered SET STORAGE MAIN;
ALTER TABLE lowered SET (toast_tuple_target = 8160, parallel_workers = 2);
CREATE TABLE sentences (
    number bigint, position integer, embedding {{vector}}.halfvec NOT NULL, PRIMARY KEY (number, position)
);
ALTER TABLE sentences SET (toast_tuple_target = 8160);
CREATE TABLE words (word text COLLATE "C", plain text COLLATE "C", PRIMARY KEY (word, plain));
CREATE INDEX words_by_plain ON words (plain);
{_WORD_SEGMENTS}
"""
_GRAPH = "sentences_by_vector"
_RUN_INDEX = "texts_by_runs"
_TRIGRAM_INDEX = "lowered_by_trigrams"
TEXT_INDEXES = (_TRIGRAM_INDEX, _RUN_INDEX)  # of table `lowered`
_HEAD_BYTES = 4  # of a halfvec in binary: its dimension and an unused number, before its elements
_CHUNKS_PER_QUERY = 1_000  # larger batches take more memory, smaller ones more queries
_MAX_INDEXED_DIMENSION = 4_000  # pgvector's limit; the vectors of a larger embedder are compared one by one
# As for Chroma, whose worker has the measurements. More find more of the nearest sentences, and take longer to build.
_NEIGHBOURS = 32
_CONSTRUCTION = 100
_SHIFT = 1e-3  # of the length of a vector, which is one
_BYTES_PER_ELEMENT = 2_000  # of the graph in memory, beside its vector
_MAX_BUILD_BYTES = 2 << 30  # a graph that needs more takes longer; a server may be set to more
_PGVECTOR = (0, 8)  # has `hnsw.iterative_scan`
_THIS_INDEX = "'state'::regclass::oid::bigint"  # differs for each index of a database

Statements = Session | Pool


@dataclass(frozen=True, slots=True)
class State:
    """The last snapshot."""

    generation: int
    settings: Settings
    vector: str  # the schema that has pgvector, as SQL
    has_graph: bool  # whether there is an index of the vectors
    has_words: bool  # whether there is a word index, which this role may read

    def visible(self) -> str:
        """Return the SQL for whether a row belongs to this snapshot."""
        return f"added <= {self.generation} AND removed > {self.generation}"


class Tables(TableReader):
    """Documents, chunks and vectors in the tables of an index, limited to rows that meet a condition in SQL."""

    LOWER = 'lower(({}) COLLATE "default")'  # by the rules of the database: "C" knows ASCII only
    HOLDS = r"{} LIKE '%' || regexp_replace(?, '([\\%_])', '\\\1', 'g') || '%'"

    def __init__(self, source: Statements, state: State, condition: str) -> None:
        self._source = source
        self._state = state
        self.settings = state.settings
        self.chunks_table = f"(SELECT * FROM chunks WHERE {condition}) AS chunks"
        self.documents_table = f"(SELECT * FROM documents WHERE {condition}) AS documents"

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._source.query(sql, *values)

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        return f"{column} = ANY (?)", storable(values)

    def damage(self, what: str) -> IndexFormatError:
        return IndexFormatError(
            f"the index {self._source.location} is damaged ({what}): remove what is damaged and ingest it again, or "
            "ingest all documents into another index"
        )

    def vectors(self, row_ids: Collection[int]) -> Iterator[ChunkVectors]:
        for batch in batches(row_ids, _CHUNKS_PER_QUERY):
            rows = self.query(
                "SELECT chunks.number, array_agg(position ORDER BY position) FILTER (WHERE position IS NOT NULL), "
                f"string_agg({self._state.vector}.halfvec_send(embedding), ''::bytea ORDER BY position) "
                f"FROM {self.chunks_table} LEFT JOIN sentences ON sentences.number = chunks.number "
                "WHERE chunks.number = ANY (?) GROUP BY chunks.number",
                batch,
            )
            stored: dict[int, tuple[list[int], Vectors]] = {}
            try:
                for row_id, positions, blob in rows:
                    stored[row_id] = (positions or [], unpack(blob or b"", self.settings))
            except ValueError as error:
                raise self.damage(f"its vectors: {error}") from error
            for row_id in batch:
                if row_id in stored:
                    positions, vectors = stored[row_id]
                    yield row_id, positions, vectors


def pack(vectors: Vectors) -> list[bytes]:
    """Return vectors as values of a halfvec column, in PostgreSQL's binary format."""
    head = np.array([vectors.shape[1], 0], dtype=">i2").tobytes()
    return [head + row.tobytes() for row in vectors.astype(">f2")]


def unpack(values: bytes, settings: Settings) -> Vectors:
    """Return the vectors in values of a halfvec column, one after another, shape (values, dimension)."""
    value_bytes = _HEAD_BYTES + 2 * settings.dimension
    rows = np.frombuffer(values, np.uint8).reshape(-1, value_bytes)
    elements = np.ascontiguousarray(rows[:, _HEAD_BYTES:])
    return elements.view(">f2").astype(np.float32)


def has_tables(source: Statements) -> bool:
    """Return whether the schema holds an index, or a part of one. The server refuses a role that may not use it."""
    ((there,),) = source.query("SELECT to_regclass(quote_ident(?) || '.state') IS NOT NULL", source.location.index)
    return bool(there)


def read_published(source: Statements) -> State:
    """Read the last snapshot."""
    state = read_state(source)
    if not state.settings.token:
        raise IndexNotFoundError(
            f"no index in {source.location} yet: its first ingestion goes on, or was interrupted: run it again"
        )
    return state


def read_state(source: Statements) -> State:
    """Read the last snapshot, or the first one, which is not published yet: then the token is empty."""
    read = (
        f"SELECT generation, settings, to_regclass('{_GRAPH}') IS NOT NULL, "
        "coalesce(has_table_privilege(to_regclass('word_segments'), 'SELECT'), FALSE) FROM state"
    )
    rows = source.query(read) if has_tables(source) else []
    if not rows:
        command = f"arag ingest PATH... --index {shlex.quote(str(source.location))}"
        raise IndexNotFoundError(f"no index in {source.location}: make one with `{command}`")
    ((generation, settings, has_graph, has_words),) = rows
    vector = find_extension(source, "vector")
    return State(generation, Settings.from_json(settings, source.location), vector, has_graph, has_words)


def find_extension(source: Statements, name: str) -> str:
    """Return the schema that has an extension, as SQL (hosted servers have one of their own), or an empty string."""
    rows = source.query(
        "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
        "WHERE extname = ?",
        name,
    )
    return str(rows[0][0]) if rows else ""


def make_tables(session: Session) -> None:
    """Create the schema, its tables and their extensions, if they are missing."""
    index = session.location.index
    with session.transaction():
        # Only one process at a time; there is no table yet to lock.
        session.query("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", f"arag {index}")
        tables = session.query("SELECT tablename FROM pg_tables WHERE schemaname = ?", index)
        if ("state",) in tables:
            return
        if tables:
            raise InputError(
                f"the schema of {session.location} holds other tables ({tables[0][0]}): name another one with "
                "?index=NAME"
            )
        _make_extensions(session)
        # A role that may use the schema need not have the right to create schemas.
        if not session.query("SELECT FROM pg_namespace WHERE nspname = ?", index):
            ((name,),) = session.query("SELECT quote_ident(?)", index)
            session.execute(f"CREATE SCHEMA {name}")
        session.execute(_SCHEMA.format(vector=find_extension(session, "vector")))
        session.execute(_RUNS_FUNCTION)


def make_word_segments(session: Session) -> None:
    """Create the table of the word index, which an index of an earlier version lacks."""
    # `IF NOT EXISTS` does not do: the statement that follows would lock out readers until the transaction ends.
    ((is_there,),) = session.query("SELECT to_regclass('word_segments') IS NOT NULL")
    if not is_there:
        session.execute(_WORD_SEGMENTS)


def _make_extensions(session: Session) -> None:
    for extension in ("vector", "pg_trgm"):
        session.execute(f"CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA public")
    ((version,),) = session.query("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    major, minor, *_ = version.split(".")
    if (int(major), int(minor)) < _PGVECTOR:
        needed = ".".join(str(row_id) for row_id in _PGVECTOR)
        raise StorageError(
            f"{session.location} needs pgvector {needed} or later, and has {version}: an administrator runs "
            "`ALTER EXTENSION vector UPDATE` in its database"
        )


def lock(session: Session, what: str) -> None:
    """Wait for this index's lock of a name, and hold it until the transaction ends."""
    session.query(f"SELECT pg_advisory_xact_lock(hashtextextended(?, {_THIS_INDEX}))", what)


def document_key(column: str) -> str:
    """Return the SQL for the key of a document's lock; a column has the document's id."""
    return f"hashtextextended('document ' || {column}, {_THIS_INDEX})"


def list_indexes(source: Statements, settings: Settings) -> dict[str, str]:
    """Return the derived indexes: their names, and the SQL that makes them when all rows are stored."""
    trigrams = f"{find_extension(source, 'pg_trgm')}.gin_trgm_ops"
    indexes = {
        _TRIGRAM_INDEX: f"ON lowered USING gin (lowered {trigrams})",
        "names_by_trigrams": f"ON documents USING gin ({Tables.LOWER.format(DOCUMENT_NAME)} {trigrams})",
        "words_by_trigrams": f"ON words USING gin (word {trigrams})",
        # Trigrams only propose texts, which are then read; whole runs are found exactly.
        _RUN_INDEX: f"ON lowered USING gin ({RUNS})",
    }
    if settings.vector_bytes > MAX_MATRIX_BYTES and settings.dimension <= _MAX_INDEXED_DIMENSION:
        # The Euclidean distance of vectors of length one gives the order of the cosine. The cosine distance of float16
        # vectors is not exact enough to tell copies of a vector apart.
        vector = find_extension(source, "vector")
        indexes[_GRAPH] = (
            f"ON sentences USING hnsw ({shifted(vector, settings.dimension)} {vector}.halfvec_l2_ops) "
            f"WITH (m = {_NEIGHBOURS}, ef_construction = {_CONSTRUCTION})"
        )
    return {name: f"CREATE INDEX {name} {what}" for name, what in indexes.items()}


def missing_indexes(source: Statements, settings: Settings) -> dict[str, str]:
    """Return the derived indexes that are missing."""
    rows = source.query("SELECT indexname FROM pg_indexes WHERE schemaname = ?", source.location.index)
    return {name: sql for name, sql in list_indexes(source, settings).items() if (name,) not in rows}


def make_indexes(session: Session, settings: Settings) -> None:
    """Make the derived indexes that are missing."""
    if not missing_indexes(session, settings):
        return
    with session.transaction():
        lock(session, "indexes")
        for name, statement in missing_indexes(session, settings).items():
            if name == _GRAPH:
                _make_graph(session, settings.dimension, statement)
            else:
                session.execute(statement)
            if name == _RUN_INDEX:  # the planner needs no statistics of thousands of runs
                session.execute(f"ALTER INDEX {name} ALTER COLUMN 1 SET STATISTICS 0")


def shifted(vector: str, dimension: int) -> str:
    """Return the SQL for a sentence's vector in the graph: shifted a little, by its place.

    Thousands of equal vectors would link only to each other; see `_shifted` in `folder.chroma_worker`.
    """
    return f"(shifted(embedding, number, position)::{vector}.halfvec({dimension}))"


def _make_graph(session: Session, dimension: int, statement: str) -> None:
    session.execute(_shift_function(find_extension(session, "vector"), dimension))
    needed = f"count(*) * {2 * dimension + _BYTES_PER_ELEMENT}"
    session.query(
        "SELECT set_config('max_parallel_maintenance_workers', current_setting('max_parallel_workers'), true), "
        "set_config('maintenance_work_mem', greatest(pg_size_bytes(current_setting('maintenance_work_mem')), "
        f"least({needed}, {_MAX_BUILD_BYTES})) / 1024 || 'kB', true) FROM sentences"
    )
    try:
        with session.transaction():
            session.execute(statement)
    except errors.DiskFull:
        # Parallel workers share memory, of which a container has little (64 MB by Docker's default).
        session.execute("SET LOCAL max_parallel_maintenance_workers = 0")
        session.execute(statement)


def _shift_function(vector: str, dimension: int) -> str:
    """Return the SQL that makes function `shifted`; it adds two random directions, rotated by the place's code."""
    random = np.random.default_rng(dimension)
    rotated: list[str] = []
    for bits in (0, 24):  # each direction has its own part of the code
        direction = _SHIFT / math.sqrt(2 * dimension) * random.standard_normal(dimension)
        twice = np.tile(direction, 2)  # so each rotation is a part of it
        code = f"1 + (hashint8extended(number, place) >> {bits} & {(1 << 24) - 1})::integer % {dimension}"
        elements = ",".join(f"{value:.3g}" for value in twice)
        rotated.append(f"{vector}.subvector('[{elements}]'::{vector}.halfvec, {code}, {dimension})")
    plus = f"OPERATOR({vector}.+)"
    first, second = rotated
    return (
        f"CREATE OR REPLACE FUNCTION shifted(embedding {vector}.halfvec, number bigint, place integer) "
        f"RETURNS {vector}.halfvec LANGUAGE sql IMMUTABLE PARALLEL SAFE "
        f"RETURN embedding {plus} ({first} {plus} {second})"
    )
