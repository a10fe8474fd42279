"""Stand-ins for what the tests must not wait for or reach."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

from arag.ingest.formats import READERS
from arag.ingest.pipeline import run_ingest

DIMENSION = 64


class HashEmbeddings(Embeddings):
    """A bag of words: every lower-case word counts at the place that its checksum gives.

    Attributes:
        model: Part of the embedder's name in an index, `HashEmbeddings:hash-64`.
        embedded: Every text that was embedded as a document, in order.
        fail_after: How many texts are embedded before an error is raised; None for no error.
    """

    model = "hash-64"

    def __init__(self, *, fail_after: int | None = None) -> None:
        self.embedded: list[str] = []
        self.fail_after = fail_after

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.fail_after is not None and len(self.embedded) + len(texts) > self.fail_after:
            raise ConnectionError("the embedding service went away")
        self.embedded += texts
        return [hash_vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return hash_vector(text).tolist()


def hash_vector(text: str) -> np.ndarray:
    vector = np.zeros(DIMENSION)
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSION] += 1
    return vector / max(np.linalg.norm(vector), 1e-12)


def write_corpus(folder, documents):
    """Write documents: records as one .jsonl file; of a dictionary, texts under a file's name as that file."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(documents, dict):
        files = {name: text for name, text in documents.items() if Path(name).suffix in READERS.keys() - {""}}
        documents = [{"id": i, "text": text} for i, text in documents.items() if i not in files]
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", newline="")
    if documents:
        lines = "".join(f"{json.dumps(record)}\n" for record in documents)
        (folder / "corpus.jsonl").write_text(lines, encoding="utf-8")
    return folder


def write_index(folder, documents):
    """Write documents and ingest them with HashEmbeddings; return the index's folder."""
    run_ingest(write_corpus(folder / "corpus", documents), folder / "index", embedder=HashEmbeddings())
    return folder / "index"


def change_settings(folder, **changes):
    """Change what an index in a folder says of itself, as somebody else may."""
    with closing(sqlite3.connect(folder / "index.sqlite3")) as connection, connection:
        ((settings,),) = connection.execute("SELECT value FROM settings").fetchall()
        connection.execute("UPDATE settings SET value = ?", [json.dumps(json.loads(settings) | changes)])
