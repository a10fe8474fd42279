"""Chroma's calls, made in a worker process: see `arag.retrieval.storage.folder.chroma`.

They call Chroma's native part directly. Its Python package takes most of a second to import, and makes objects of the
classes that a folder names, whatever they are.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from chromadb_rust_bindings import Bindings, MigrationHash, MigrationMode, SqliteDBConfig
from numpy.typing import NDArray

from arag.retrieval.storage.folder.names import CHROMA_DATABASE

Vectors = NDArray[np.float32]

_COLLECTION = "sentences"
# Recall at 15 against exact search, among 40,436 real sentence vectors (302 real questions): max_neighbors 16 and
# ef_construction 100 give 0.991 with ef_search 100, 0.997 with 200 and 0.999 with 400; 32 and 100 give 0.995, 0.9985
# and 0.9998; 32 and 200 give 0.997, 0.9998 and 0.9998, and take 1.4 times as long to build; 48 and 400 give no more.
# Among 100,000, chunks are found with 0.993 at an ef_search of 200 and 0.995 at 400, which takes 1.8 times as long.
# Questions about something other than the corpus are harder: 0.95 and 0.97.
_HNSW = {"space": "cosine", "ef_construction": 100, "ef_search": 200, "max_neighbors": 32}
_OPEN_INDEXES = 100  # that Chroma keeps in memory; a process opens one
_SHIFT = 1e-3  # of a vector's length; less is lost in float32's rounding of a cosine distance


@cache
def _open(folder: str) -> tuple[Bindings, str]:
    """Open a folder; return Chroma and the id of the sentences' collection, which is made if it is missing."""
    database = SqliteDBConfig(
        hash_type=MigrationHash.MD5,
        migration_mode=MigrationMode.Apply,
        url=f"{folder}/{CHROMA_DATABASE}",
    )
    chroma = Bindings(
        allow_reset=False,
        sqlite_db_config=database,
        persist_path=folder,
        hnsw_cache_size=_OPEN_INDEXES,
    )
    configuration = json.dumps({"hnsw": _HNSW})
    collection = chroma.create_collection(_COLLECTION, configuration, get_or_create=True)
    return chroma, str(collection.id)


def close() -> None:
    """Close all open folders. This has hung."""
    _open.cache_clear()


def write_graph_after(folder: str, changes: int) -> None:
    """Let Chroma write its graph after so many changes."""
    configuration = json.dumps({"hnsw": {"sync_threshold": changes}})
    chroma, collection = _open(folder)
    _write(chroma.update_collection, collection, new_configuration_json_str=configuration)


def add(folder: str, ids: Sequence[str], chunk_ids: Sequence[str], texts: Sequence[str], vectors: Vectors) -> None:
    """Add sentences."""
    # Texts are metadata: Chroma would make a full-text table of documents, which is four times as large.
    metadata = [{"chunk_id": chunk_id, "sentence": text} for chunk_id, text in zip(chunk_ids, texts, strict=True)]
    chroma, collection = _open(folder)
    _write(chroma.add, ids, collection, _shifted(ids, vectors), metadata)


def remove(folder: str, ids: Sequence[str]) -> None:
    """Remove the sentences with these ids."""
    chroma, collection = _open(folder)
    _write(chroma.delete, collection, ids)


def count(folder: str) -> int:
    """Count the sentences."""
    chroma, collection = _open(folder)
    return int(chroma.count(collection))


def count_lost(folder: str, ids: Sequence[str], vectors: Vectors) -> int:
    """Count the sentences that do not have the vector that they were added with."""
    chroma, collection = _open(folder)
    read = chroma.get(collection, ids=ids, include=["embeddings"])
    stored = dict(zip(read.ids, read.embeddings or (), strict=True))
    missing = np.full(vectors.shape[1], np.nan, dtype=np.float32)  # is close to nothing
    found = np.array([stored.get(sentence_id, missing) for sentence_id in ids], dtype=np.float32)
    # The index keeps vectors as float16, so they are only close.
    is_kept = np.isclose(found, _shifted(ids, vectors), atol=_SHIFT).all(axis=1)
    return len(ids) - int(is_kept.sum())


def nearest(folder: str, vector: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return the chunks' row ids and the positions of sentences near a vector, nearest first, shape (count, 2)."""
    chroma, collection = _open(folder)
    result = chroma.query(collection, None, vector[np.newaxis], count, include=[])
    row_ids_and_positions = [sentence_id.split("#") for sentence_id in result.ids[0]]
    return np.array(row_ids_and_positions, dtype=np.int64).reshape(-1, 2)


SERVED = (close, write_graph_after, add, remove, count, count_lost, nearest)


def _write(change: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Write to Chroma; retry while its own connections block each other."""
    for seconds in (0.01, 0.1, 1.0, 5.0):
        try:
            change(*arguments, **options)
        except Exception as error:
            if "database is locked" not in str(error):
                raise
            time.sleep(seconds)
        else:
            return
    change(*arguments, **options)


def _shifted(ids: Sequence[str], vectors: Vectors) -> Vectors:
    """Return vectors, each with something added that depends on its id, shape (ids, dimension).

    A sentence that occurs thousands of times in a corpus ("All rights reserved.") has thousands of equal vectors. In a
    graph, these link only to each other and cut off what lies behind them: 3,000 of them among 300 other sentences
    made all of those unfindable. Shifted by a thousandth of their length, they behave like other points.
    """
    # Two random directions, each rotated by a part of the code: dimension squared shifts, none of them stored.
    dimension = vectors.shape[1]
    first, second = np.random.default_rng(dimension).standard_normal((2, dimension), dtype=np.float32)
    codes = np.asarray([[zlib.crc32(sentence_id.encode())] for sentence_id in ids])
    columns = np.arange(dimension)
    shifts = first[(columns + codes) % dimension] + second[(columns + codes // dimension) % dimension]
    return np.asarray(vectors + _SHIFT / math.sqrt(2 * dimension) * shifts, dtype=np.float32)
