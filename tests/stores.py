"""Documents with random vectors, written straight into a store."""

from __future__ import annotations

import zlib
from contextlib import closing

import numpy as np

from arag.retrieval.storage.folder.derived import write_receipt
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.types import Chunk, Sentence

DIMENSION = 16


def begin():
    return Settings("Random:16", DIMENSION, 1_000, "o200k_base")


def vector_of(text):
    """A vector of a text's own, as float16 keeps it."""
    seed = zlib.crc32(text.encode("utf-8", "replace"))
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float16).astype(np.float32)


def document(document_id, *texts, title="", fingerprint="1", ids=None):
    """A document with a chunk for each text, on a page of its own, all but the first below headings and in a table.

    Each line is a sentence; those with a # have no vector.
    """
    chunks, vectors = [], []
    for ordinal, text in enumerate(texts):
        sentences, at = [], 0
        inside = ("A > B", "a | b") if ordinal else ()
        for line in text.split("\n"):
            sentences.append(Sentence(at, at + len(line), not line.startswith("#"), *inside))
            at += len(line) + 1
        chunk_id = ids[ordinal] if ids else f"{document_id}:{ordinal}"
        parts, pages = len(texts), (ordinal, 9)
        chunks.append(Chunk(chunk_id, document_id, ordinal, title, text, tuple(sentences), len(text), parts, pages))
        vectors.append(np.asarray([vector_of(t) for t in chunks[-1].embedded_texts()]).reshape(-1, DIMENSION))
    record = DocumentRecord(document_id, title, f"{document_id}.txt", "{}", fingerprint, len(texts))
    return EmbeddedDocument(record, chunks, vectors)


def write(store, *documents, remove=()):
    """Publish documents; return the settings as published."""
    with store.draft(begin) as draft:
        draft.remove(remove)
        assert draft.put(documents) == {}
        return draft.publish(draft.settings)


def trust(folder):
    """Make a copy of an index this user's own, as if it had been written there."""
    for graph in folder.glob("chroma-*"):
        write_receipt(graph, 0)


def read_all(store):
    """Everything that readers of a store see, but for the numbers of chunks."""
    with closing(store.open()) as view:
        numbers = view.row_ids(list(view.yield_keys()))
        vectors = {number: (places, rows.tolist()) for number, places, rows in view.vectors(list(numbers.values()))}
        chunks = {chunk.id: (chunk, vectors[numbers[chunk.id]]) for chunk in view.mget(list(numbers))}
        counts = view.settings.documents, view.settings.chunks, view.settings.sentences, view.settings.tokens
        return counts, list(view.documents()), chunks, view.rank(["e", "line"], 100).document_frequency
