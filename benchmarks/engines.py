"""Compares keyword search with other engines on the same chunks, in one run, and shows what each cannot do.

    pip install --group engines
    python benchmarks/engines.py [--data DIR] [--chunks NUMBER]

The engines are SQLite's FTS5 with trigrams, tantivy, bm25s and LanceDB. Each finds the five best chunks by rules of its
own. Each is asked for a part of a word, for a count and for a search in a tenth of the chunks: it passes if its answer
is that of a scan of the texts. What is not installed is left out. Ratios tell more than times.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from data import find_corpora, make_index, name, read_sentences, recombined
from rich.console import Console
from rich.table import Table
from speed import ROUNDS, seconds

from arag.retrieval.index import open_index

EXAMPLES = Path(__file__).parents[1] / "examples"
_TOP = 5
_SHARE = 10  # one chunk of so many is in the scope


@dataclass(frozen=True)
class Engine:
    """An engine with all chunks in it. A function is None if the engine has no such search."""

    find: Callable[[str], object]
    count: Callable[[str], int] | None  # the chunks that hold a text
    count_in_scope: Callable[[str], int] | None  # those of the scope


def make_ours(folder: Path, texts: Sequence[Sequence[str]]) -> Engine:
    """Make an index of this package."""
    make_index(folder / "index", texts)
    index = open_index(folder / "index")
    some = index.limited_to([f"d{number}" for number in range(0, len(texts), _SHARE)])
    return Engine(
        partial(index.keyword_search, top_k=_TOP),
        lambda text: index.keyword_search(text, 1).keywords[0].chunks,
        lambda text: some.keyword_search(text, 1).keywords[0].chunks,
    )


def make_fts5(folder: Path, texts: Sequence[Sequence[str]]) -> Engine:
    """Make a table of FTS5 whose tokens are trigrams: it finds parts of words of three letters or more."""
    table = sqlite3.connect(folder / "fts5")
    table.execute("CREATE VIRTUAL TABLE chunks USING fts5(text, tokenize = 'trigram')")
    table.executemany("INSERT INTO chunks (rowid, text) VALUES (?, ?)", enumerate(map(" ".join, texts)))
    table.execute("INSERT INTO chunks (chunks) VALUES ('optimize')")
    table.commit()

    def run(select: str, text: str) -> list[Any]:
        return table.execute(select, [f'"{text}"']).fetchall()

    return Engine(
        partial(run, f"SELECT rowid, text FROM chunks WHERE chunks MATCH ? ORDER BY rank LIMIT {_TOP}"),
        lambda text: run("SELECT count(*) FROM chunks WHERE chunks MATCH ?", text)[0][0],
        lambda text: run(f"SELECT count(*) FROM chunks WHERE chunks MATCH ? AND rowid % {_SHARE} = 0", text)[0][0],
    )


def make_tantivy(folder: Path, texts: Sequence[Sequence[str]]) -> Engine:
    """Make an index of tantivy, whose tokens are words in lower case."""
    import tantivy

    schema = (
        tantivy.SchemaBuilder().add_text_field("text", stored=True).add_integer_field("tenth", indexed=True).build()
    )
    (folder / "tantivy").mkdir()
    index = tantivy.Index(schema, str(folder / "tantivy"))
    writer = index.writer()
    for number, text in enumerate(texts):
        writer.add_document(tantivy.Document(text=" ".join(text), tenth=number % _SHARE))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def find(query: str) -> Any:
        parsed = index.parse_query(query, ["text"])
        found = searcher.search(parsed, _TOP)
        return [searcher.doc(address) for _, address in found.hits], found.count

    return Engine(
        find,
        lambda text: find(text)[1],
        lambda text: find(f"+text:{text} +tenth:0")[1],
    )


def make_bm25s(_: Path, texts: Sequence[Sequence[str]]) -> Engine:
    """Make a matrix of bm25s, whose tokens are words; it gives the best chunks and no more."""
    import bm25s

    joined = list(map(" ".join, texts))
    index = bm25s.BM25(corpus=joined)
    index.index(bm25s.tokenize(joined, show_progress=False), show_progress=False)

    def find(text: str) -> Any:
        return index.retrieve(bm25s.tokenize(text, show_progress=False), k=_TOP, show_progress=False)

    return Engine(find, None, None)


def make_lancedb(folder: Path, texts: Sequence[Sequence[str]]) -> Engine:
    """Make a table of LanceDB with an index of trigrams."""
    import lancedb
    from lancedb.index import FTS

    rows = [{"number": number, "tenth": number % _SHARE, "text": " ".join(text)} for number, text in enumerate(texts)]
    table = lancedb.connect(folder / "lancedb").create_table("chunks", rows)
    table.create_index("text", config=FTS(base_tokenizer="ngram", ngram_min_length=3, ngram_max_length=3))

    def find(text: str) -> Any:
        return table.search(text, query_type="fts").limit(_TOP).to_list()

    def count(text: str, condition: str = "true") -> int:
        found = table.search(text, query_type="fts").where(condition, prefilter=True).limit(len(texts)).to_list()
        return len(found)

    return Engine(find, count, partial(count, condition="tenth = 0"))


ENGINES = {
    "ours": make_ours,
    "FTS5, trigrams": make_fts5,
    "tantivy": make_tantivy,
    "bm25s": make_bm25s,
    "LanceDB, trigrams": make_lancedb,
}


def count_by_scan(texts: Sequence[str], text: str) -> int:
    """Count the texts that hold a text, whatever its case."""
    return sum(text.lower() in each.lower() for each in texts)


def compare(texts: Sequence[Sequence[str]], folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each engine that is installed."""
    rare = name(84)
    part = rare[2:-1]
    joined = list(map(" ".join, texts))
    for title, make in ENGINES.items():
        with suppress(ImportError):
            engine: Engine | None = None

            def build(make: Callable[..., Engine] = make) -> None:
                nonlocal engine
                engine = make(folder, texts)

            building = seconds(build)
            assert engine is not None
            times = []
            for words in (rare, "American", "the"):
                times.append(1_000 * min(seconds(partial(engine.find, words)) for _ in range(ROUNDS)))
            checks = [
                _is_right(engine.count, rare, count_by_scan(joined, rare)),
                _is_right(engine.count, part, count_by_scan(joined, part)),
                _is_right(engine.count_in_scope, "American", count_by_scan(joined[::_SHARE], "American")),
            ]
            yield (title, f"{building:.1f}", *(f"{time:.2f}" for time in times), *checks)


def _is_right(count: Callable[[str], int] | None, text: str, expected: int) -> str:
    if count is None:
        return "none"
    found = count(text)
    return "yes" if found == expected else f"{found:,} of {expected:,}"


def main() -> None:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=EXAMPLES, help="a folder of corpora")
    parser.add_argument("--chunks", type=int, default=12_000)
    options = parser.parse_args()
    sentences = list(islice(read_sentences(find_corpora(options.data).values()), None))
    texts = list(recombined(sentences, options.chunks))
    table = Table("", "built, s", "a rare name, ms", "American", "the", "counts words", "parts of words", "scope")
    with tempfile.TemporaryDirectory() as folder:
        for row in compare(texts, Path(folder)):
            table.add_row(*row)
            print(row, file=sys.stderr, flush=True)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
