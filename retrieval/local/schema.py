"""The tables of the chunk store's SQLite file."""

from __future__ import annotations

from arag.retrieval.tables.rows import FOR_EVER
from arag.retrieval.tables.terms import TOKENIZER

# Short fields are in `chunks`, which is scanned often; the texts are kept apart from it. A chunk's number is never
# reused: it names one version of a chunk, in Chroma too. `vectors` has a row for each chunk: the vectors of its
# embedded sentences, one after another, as float16. Embedding is the most expensive part of an index, so its vectors
# are kept here, where nothing is lost, and Chroma's folder can be rebuilt from them.
#
# An entry of `documents` says how many chunks hold a part of the document, so that a lost chunk is noticed. `members`,
# `terms`, `vocabulary` and the indexes are made from the rest.
#
# Keywords are not matched in `terms` (the paper matches them in the chunk texts): it only records which words the
# corpus holds, so that a keyword without a hit can be answered with the closest terms. It has no triggers: SQLite
# runs none on such tables in files that it does not trust.
SCHEMA = f"""
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    metadata TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL DEFAULT {FOR_EVER}
);
CREATE INDEX documents_by_id ON documents (id, added, removed);
CREATE UNIQUE INDEX one_document_an_id ON documents (id) WHERE removed = {FOR_EVER};
CREATE INDEX documents_by_title ON documents (title COLLATE NOCASE);
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    first_page INTEGER,
    last_page INTEGER,
    embedded_sentences INTEGER NOT NULL,
    pending INTEGER NOT NULL DEFAULT 1,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL DEFAULT {FOR_EVER}
);
CREATE INDEX chunks_by_id ON chunks (id, added, removed);
CREATE UNIQUE INDEX one_chunk_an_id ON chunks (id) WHERE removed = {FOR_EVER};
CREATE INDEX chunks_by_place ON chunks (document_id, ordinal);
CREATE UNIQUE INDEX one_chunk_a_place ON chunks (document_id, ordinal) WHERE removed = {FOR_EVER};
CREATE INDEX pending_chunks ON chunks (number) WHERE pending;
CREATE TABLE contents (
    number INTEGER PRIMARY KEY,
    sections TEXT NOT NULL,
    sentences TEXT NOT NULL,
    text TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE vectors (number INTEGER PRIMARY KEY, vectors BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE members (
    document_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (document_id, number)
) WITHOUT ROWID;
CREATE INDEX members_by_chunk ON members (number);
CREATE VIRTUAL TABLE terms USING fts5 (
    text, content='contents', content_rowid='number', tokenize='{TOKENIZER}'
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (terms, row);
"""
