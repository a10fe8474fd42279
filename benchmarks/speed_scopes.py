"""Speed of searches in a scope, beside the same searches in the whole index."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

from speed_alternative import timed
from speed_data import Data, make_chunk, make_index, mixed_vectors, name, real_vectors, recombined
from speed_report import Report, say

from arag.retrieval.index import Index, open_index
from arag.retrieval.scope import Scope
from arag.retrieval.types import Chunk

_SECTION = "Searches in a scope; beside: in the whole index"
_EMBEDDED = 2  # sentences of each chunk; of 100,000 chunks, too many to be compared one by one
_QUESTIONS = 10
# With the number of a document that is in the scope: a term that is not costs suggestions.
_SCOPES = {
    "1%": (Scope(where={"hundredth": 8}), 8),
    "50%": (Scope(where={"hundredth": {"$lt": 50}}), 8),
    "50%, by name": (Scope(documents=[f"d*{digit}" for digit in range(0, 10, 2)]), 8),
}


def measure_scopes(report: Report, data: Data, work: Path, *, chunks: int) -> None:
    """Measure searches in scopes of an index of so many chunks, and how long a scope takes to open."""
    say(f"scopes: {chunks:,} chunks")
    folder = work / f"scopes-{chunks}"
    vectors = mixed_vectors(real_vectors(data.sentences, work, "sentences"), _EMBEDDED * chunks)
    make_index(
        folder,
        _chunks(data, chunks),
        vectors,
        metadata=lambda chunk: {"hundredth": int(chunk.document_id.removeprefix("d")) % 100},
    )
    with open_index(folder) as index:
        embedder = index._embedder  # noqa: SLF001
        embedder.embed_query = cache(embedder.embed_query)  # costs the same in any scope
        for label, (scope, inside) in _SCOPES.items():
            opened = timed(lambda scope=scope: index.scoped(scope).info())
            report.add("Opening a scope", label, "s", opened, size=chunks)
            _search_rows(report, index, index.scoped(scope), data, label, inside, chunks)
    shutil.rmtree(folder)


def _chunks(data: Data, size: int) -> Iterator[Chunk]:
    for number, texts in enumerate(islice(recombined(data.sentences), size)):
        chunk = make_chunk(number, texts, embedded=True)
        sentences = [replace(s, embedded=place < _EMBEDDED) for place, s in enumerate(chunk.sentences)]
        yield replace(chunk, sentences=tuple(sentences))


def _search_rows(report: Report, index: Index, scoped: Index, data: Data, label: str, inside: int, size: int) -> None:
    word = max((word for text in data.sentences for word in text.split() if word.isalpha()), key=len)
    searches = {
        "a name that one chunk holds": lambda index: index.keyword_search([name(2 * inside + 1)]),
        "a rare word": lambda index: index.keyword_search([word]),
        "'the'": lambda index: index.keyword_search(["the"]),
        "three at once": lambda index: index.keyword_search([name(2 * inside + 1), word, "city"], by_coverage=True),
        "by meaning": lambda index: [index.semantic_search(q) for q in data.questions[:_QUESTIONS]],
    }
    for kind, search in searches.items():
        search(scoped)
        best = report.best_of(
            {
                "scoped": lambda search=search: timed(search, scoped),
                "whole": lambda search=search: timed(search, index),
            }
        )
        times = best["scoped"] / best["whole"]
        report.add(
            _SECTION,
            f"{label}: {kind}",
            "ms",
            1_000 * best["scoped"],
            other=1_000 * best["whole"],
            size=size,
            made=True,
            target="at most 1.5 times",
            met=times <= 1.5,
        )
