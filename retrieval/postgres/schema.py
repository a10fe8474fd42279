"""The tables of an index in PostgreSQL, in a schema of their own. They are made, and migrated, by themselves."""

from __future__ import annotations

from psycopg import sql

from arag.errors import InputError, StorageError
from arag.retrieval.postgres.connections import Session
from arag.retrieval.tables.rows import FOR_EVER

# PostgreSQL indexes no text of more than 2,704 bytes.
INDEXED_CHARACTERS = 500  # of a title
LONGEST_WORD = 200  # characters of a word of the vocabulary: longer ones, as Chinese has, are never suggested
# The vocabulary, made from the words of all texts.
WORDS = (
    "SELECT DISTINCT word FROM terms, string_to_table(words, ' ') AS word "
    f"WHERE length(word) BETWEEN 1 AND {LONGEST_WORD}"
)
MISSING_WORDS = f"{WORDS} EXCEPT SELECT word FROM vocabulary"

_VERSION = "tables"  # a row of table `state`

# `documents`, `chunks` and `members` are narrow: they are joined and updated. The others are wide, and never updated.
# Text is compared byte by byte, as Python and SQLite do. `lowered` holds the texts as keywords are matched in them, and
# `terms` their words, for suggestions; both are derived from `contents`. `workers` are the processes that write.
_TABLES = f"""
CREATE TABLE state (name text COLLATE "C" PRIMARY KEY, value text COLLATE "C" NOT NULL);
CREATE TABLE documents (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    metadata text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    chunks bigint NOT NULL,
    checksum bigint NOT NULL,
    added bigint NOT NULL,
    removed bigint NOT NULL DEFAULT {FOR_EVER}
);
CREATE INDEX documents_by_id ON documents (id, added, removed);
CREATE UNIQUE INDEX one_document_an_id ON documents (id) WHERE removed = {FOR_EVER};
CREATE INDEX documents_by_title ON documents (left(lower(title), {INDEXED_CHARACTERS}));
CREATE INDEX removed_documents ON documents (removed) WHERE removed < {FOR_EVER};
CREATE TABLE chunks (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    ordinal bigint NOT NULL,
    tokens bigint NOT NULL,
    first_page bigint,
    last_page bigint,
    embedded_sentences bigint NOT NULL,
    pending boolean NOT NULL DEFAULT TRUE,
    worker bigint,
    added bigint NOT NULL,
    removed bigint NOT NULL DEFAULT {FOR_EVER}
);
CREATE INDEX chunks_by_id ON chunks (id, added, removed);
CREATE UNIQUE INDEX one_chunk_an_id ON chunks (id) WHERE removed = {FOR_EVER};
CREATE INDEX chunks_by_place ON chunks (document_id, ordinal);
CREATE UNIQUE INDEX one_chunk_a_place ON chunks (document_id, ordinal) WHERE removed = {FOR_EVER};
CREATE INDEX pending_chunks ON chunks (number) WHERE pending;
CREATE INDEX removed_chunks ON chunks (removed) WHERE removed < {FOR_EVER};
CREATE TABLE contents (
    number bigint PRIMARY KEY,
    sections text COLLATE "C" NOT NULL,
    sentences text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    checksum bigint NOT NULL
);
CREATE TABLE vectors (number bigint PRIMARY KEY, vectors bytea NOT NULL, checksum bigint NOT NULL);
ALTER TABLE vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;
CREATE TABLE members (document_id text COLLATE "C" NOT NULL, number bigint NOT NULL, PRIMARY KEY (document_id, number));
CREATE INDEX members_by_chunk ON members (number);
CREATE TABLE lowered (number bigint PRIMARY KEY, lowered text COLLATE "C" NOT NULL);
CREATE TABLE terms (number bigint PRIMARY KEY, words text COLLATE "C" NOT NULL);
CREATE TABLE vocabulary (word text COLLATE "C" PRIMARY KEY);
CREATE TABLE workers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    pid integer NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    seen timestamptz NOT NULL DEFAULT now(),
    is_waiting boolean NOT NULL DEFAULT FALSE
);
"""

# Texts stay in their rows, uncompressed: a common keyword is counted at the speed of memory. The planner does not see
# how long that takes, and would not use several processes by itself.
_SCANNED = ("lowered", "terms")
_STORAGE = "".join(
    f"""
ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE MAIN;
ALTER TABLE {table} SET (toast_tuple_target = 8160, parallel_workers = 2);
"""
    for table, column in zip(_SCANNED, ("lowered", "words"), strict=True)
)

# What each version adds to the one before it; what is written once is not changed any more.
STEPS = (_TABLES + _STORAGE,)

FORMAT_VERSION = len(STEPS)

# The words of a text in table `terms` that are not too long for the vocabulary, and whether it has others. (A regular
# expression as a condition would be tried on many texts only to plan a statement.)
_SHORT_WORDS = f"regexp_replace(words, '[^ ]{{{LONGEST_WORD + 1},}}', '', 'g')"
WORD_ARRAY = f"string_to_array({_SHORT_WORDS}, ' ')"
HAS_LONG_WORDS = f"{_SHORT_WORDS} <> words"
# Hosted servers keep extensions in a schema of their own.
_TRIGRAMS = (
    "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm'"
)

ALL_TABLES = "state documents chunks contents vectors members lowered terms vocabulary workers".split()


def has_tables(session: Session) -> bool:
    """Return whether the schema holds an index, or a part of one.

    Raises:
        StorageError: The role may not look into the schema.
    """
    rows = session.query(
        "SELECT has_schema_privilege(schemaname, 'USAGE') FROM pg_tables WHERE schemaname = %s AND tablename = 'state'",
        (session.location.index,),
    )
    if rows == [(False,)]:  # the server would say that there are no tables
        raise StorageError(
            f"the role that opened {session.location} may not use its schema: its owner grants USAGE ON SCHEMA and "
            "SELECT ON ALL TABLES IN SCHEMA"
        )
    return bool(rows)


def make_tables(session: Session) -> None:
    """Create the schema and its tables, or bring them up to date.

    Raises:
        InputError: Something else is in the schema.
        StorageError: The role may not create what is missing.
    """
    name = sql.Identifier(session.location.index)
    with session.transaction():
        # Only one process at a time; there is no table yet to lock.
        session.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"arag {session.location.index}",))
        if not has_tables(session):
            _refuse_other_schema(session)
            # One that is there needs no right to create others.
            if not session.query("SELECT FROM pg_namespace WHERE nspname = %s", (session.location.index,)):
                session.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        version = _read_version(session)
        for step in STEPS[version:]:
            session.execute(step)
        if version < FORMAT_VERSION:
            session.execute(
                "INSERT INTO state (name, value) VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (_VERSION, str(FORMAT_VERSION)),
            )
    _add_trigrams(session)


def make_text_indexes(session: Session) -> None:
    """Create the indexes of the texts that are missing; a role that owns no tables may write once they are there."""
    there = session.query("SELECT indexname FROM pg_indexes WHERE schemaname = %s", (session.location.index,))
    ((schema,),) = session.query(_TRIGRAMS)
    for table, column in (("lowered", "lowered"), ("vocabulary", "word")):
        if (f"{table}_by_trigrams",) not in there:
            statement = (
                f"CREATE INDEX IF NOT EXISTS {table}_by_trigrams ON {table} USING gin ({column} {{}}.gin_trgm_ops)"
            )
            session.execute(sql.SQL(statement).format(sql.Identifier(schema)))
    # Trigrams only propose texts, which are then read. So whole words have an index of their own, which is exact. The
    # planner needs no statistics of its thousands of words.
    if ("terms_by_words",) not in there:
        session.execute(f"CREATE INDEX IF NOT EXISTS terms_by_words ON terms USING gin (({WORD_ARRAY}))")
        session.execute("ALTER INDEX terms_by_words ALTER COLUMN 1 SET STATISTICS 0")
    if ("long_words",) not in there:
        session.execute(f"CREATE INDEX IF NOT EXISTS long_words ON terms (number) WHERE {HAS_LONG_WORDS}")


def _read_version(session: Session) -> int:
    if not has_tables(session):
        return 0
    rows = session.query("SELECT value::bigint FROM state WHERE name = %s", (_VERSION,))
    return int(rows[0][0]) if rows else 0


def _refuse_other_schema(session: Session) -> None:
    """Refuse a schema that something else is in."""
    rows = session.query("SELECT tablename FROM pg_tables WHERE schemaname = %s LIMIT 1", (session.location.index,))
    if rows:
        raise InputError(
            f"the schema of {session.location} holds other tables ({rows[0][0]}): name another one with ?index=NAME"
        )


def _add_trigrams(session: Session) -> None:
    """Add the extension that finds texts by parts of words.

    Raises:
        StorageError: The server does not have it, or the role may not add it.
    """
    if session.query(_TRIGRAMS):
        return
    try:
        session.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public")
    except StorageError as error:
        raise StorageError(
            f"the database of {session.location} needs the extension pg_trgm: an administrator adds it with "
            f"CREATE EXTENSION pg_trgm ({error.__cause__})"
        ) from error
