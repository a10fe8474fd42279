"""Measures how fast commands, searches and ingestion are, beside the authors' code where it is there.

    python benchmarks/speed.py [--data DIR] [--work DIR] [--at ADDRESS] [--json FILE] [--only PART ...] [--quick]
    python benchmarks/speed.py compare A.json B.json

The data are corpora as `corpora.py` takes them, made larger by recombining their sentences. The authors' code is
measured where ARAG_AUTHORS names a checkout of it; it needs PyTorch, which `pip install -e '.[torch]'` installs.
Patterns are measured beside ripgrep, or grep where it is not installed. `--at` makes the indexes on PostgreSQL.
Machines have other things to do: what `--json` holds already is kept where it is better, so two checkouts are compared
by running each of them several times, by turns, with a file for each. Ratios tell more than times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from data import (
    find_corpora,
    make_index,
    mixed_vectors,
    name,
    read_questions,
    read_sentences,
    real_vectors,
    recombined,
    write_chunks,
)
from rich.console import Console
from rich.table import Table

from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder, load_embedder
from arag.models.names import ENGLISH_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.models.onnx_models import ONNX_MODELS
from arag.retrieval.index import open_index

PARTS = ("commands", "keywords", "grep", "semantic", "web", "ingestion", "million")
ROUNDS = 7
EXAMPLES = Path(__file__).parents[1] / "examples"
_QUERIES = 40
_SENTENCES_PER_CHUNK = 30
_WEB_DIMENSION = 32  # the page's own time does not depend on it
_COMMANDS = {
    "info": ["info"],
    "read": ["read", "places/skellavy.md:0"],
    "search keyword": ["search", "keyword", "Skellavy"],
    "search semantic": ["search", "semantic", "Which island lies furthest to the north?"],
}


@dataclass
class Figure:
    """One figure; smaller ones are better."""

    name: str
    unit: str
    ours: float
    authors: float | None = None


@dataclass(frozen=True)
class Bench:
    """Where the data come from, and where indexes are made: in a folder, or at an address of PostgreSQL."""

    corpora: dict[str, Path]
    sentences: list[str]
    questions: list[str]
    work: Path
    address: str | None

    def place(self, what: str) -> Path | str:
        """Return an empty place for an index."""
        if self.address is not None:
            return f"{self.address}?index=speed-{what}-{os.getpid()}"
        shutil.rmtree(self.work / what, ignore_errors=True)
        return self.work / what


def measure_commands(bench: Bench) -> Iterator[Figure]:
    """Measure commands from cold, on the examples."""
    index = bench.place("examples")
    run_ingest(EXAMPLES / "corpus", index)
    environment = {**os.environ, "ARAG_MODEL": "extractive"}
    for title, arguments in _COMMANDS.items():
        command = [sys.executable, "-m", "arag", *arguments, "--index", str(index)]
        run = partial(subprocess.run, command, env=environment, capture_output=True, check=True)
        yield Figure(f"cold: arag {title}", "s", min(seconds(run) for _ in range(3)))


def measure_keywords(bench: Bench, size: int) -> Iterator[Figure]:
    """Measure keyword searches with the paper's score (Equation 1)."""
    longest = max(bench.sentences, key=len).split()
    words = sorted({word.strip(".,") for word in longest if len(word) > 6 and word.isalpha()})[:2]
    searches = {"a rare name": [name(84)], "three words": [name(84), *words], "the": ["the"], "nowhere": ["zzyzxqua"]}
    index = bench.place(f"keywords-{size}")
    make_index(index, recombined(bench.sentences, size))
    ours, memory = apart(time_keywords, index, list(searches.values()))
    chunks = bench.work / f"chunks-{size}.json"
    authors = None
    if "ARAG_AUTHORS" in os.environ:
        texts = enumerate(recombined(bench.sentences, size))
        write_chunks(chunks, ((f"d{number}:0", " ".join(text)) for number, text in texts))
        authors = ask_authors("keywords", chunks, json.dumps(list(searches.values())))
    for place, title in enumerate(searches):
        theirs = None if authors is None else 1_000 * authors[place]
        yield Figure(f"keywords, {size:,} chunks: {title}", "ms", 1_000 * ours[place], theirs)
    yield Figure(f"keywords, {size:,} chunks: memory", "MB", memory)


def time_keywords(location: Path | str, searches: Sequence[Sequence[str]]) -> tuple[list[float], float]:
    """Return the best seconds of each search, and the memory after them."""
    with open_index(location) as index:
        times = [min(seconds(partial(index.keyword_search, search)) for _ in range(ROUNDS)) for search in searches]
        return times, megabytes("VmRSS")


def measure_grep(bench: Bench, size: int) -> Iterator[Figure]:
    """Measure patterns, beside ripgrep or grep on the same texts: a file for each chunk, a line for each sentence."""
    patterns = {
        "a rare name": name(84),
        "one of two names": f"{name(84)}|{name(1_001)}",
        "no literal": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "no literal, words": r"[a-z]{4}nag[a-z]+ted [0-9]",
        "a word in one of 250": "harbour",
        "a word in most": "american",
        "a word in all": "the",
    }
    index = bench.place(f"grep-{size}")
    make_index(index, recombined(bench.sentences, size))
    ours, memory = apart(time_grep, index, list(patterns.values()))
    files = bench.work / f"texts-{size}"
    for number, text in enumerate(recombined(bench.sentences, size)):
        folder = files / str(number // 1_000)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"d{number}.txt").write_text("".join(f"{sentence}\n" for sentence in text), encoding="utf-8")
    program = "rg" if shutil.which("rg") else "grep"
    options = ["--ignore-case", "--no-filename", "--regexp"] if program == "rg" else ["-r", "-i", "-E", "-h", "-e"]
    for place, (title, pattern) in enumerate(patterns.items()):
        command = [program, *options, pattern, str(files)]
        run = partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=False)
        theirs = min(seconds(run) for _ in range(3))
        yield Figure(f"grep, {size:,} chunks: {title} (beside {program})", "ms", 1_000 * ours[place], 1_000 * theirs)
    yield Figure(f"grep, {size:,} chunks: memory", "MB", memory)


def time_grep(location: Path | str, patterns: Sequence[str]) -> tuple[list[float], float]:
    """Return the best seconds of each pattern, and the memory after them."""
    with open_index(location) as index:
        times = [min(seconds(partial(index.grep, pattern)) for _ in range(3)) for pattern in patterns]
        return times, megabytes("VmRSS")


def measure_semantic(bench: Bench, size: int) -> Iterator[Figure]:
    """Measure semantic searches without the time for embedding the query, and what share of the nearest is found."""
    real = real_vectors(bench.sentences[:40_000], bench.work)
    queries = real_vectors(bench.questions[:_QUERIES], bench.work)
    vectors = np.concatenate([real, mixed_vectors(real, size - len(real))]) if size > len(real) else real[:size]
    groups = [range(at, min(at + _SENTENCES_PER_CHUNK, size)) for at in range(0, size, _SENTENCES_PER_CHUNK)]
    texts = ([f"Sentence {number}." for number in group] for group in groups)
    index = bench.place(f"semantic-{size}")
    writing = seconds(partial(make_index, index, texts, vectors))
    times, chunk_ids, bytes_on_disk, memory = apart(time_semantic, index, queries)
    shares = []
    for query, ids in zip(queries, chunk_ids, strict=True):
        nearest = np.argsort(-(vectors @ query))[:1_000] // _SENTENCES_PER_CHUNK
        exact = list(dict.fromkeys(f"d{chunk}:0" for chunk in nearest.tolist()))[:15]
        shares.append(len(set(exact) - set(ids)) / len(exact))
    title = f"by meaning, {size:,} sentences"
    yield Figure(f"{title}: a search", "ms", 1_000 * float(np.median(times)))
    yield Figure(f"{title}: not among the 15 nearest", "%", 100 * float(np.mean(shares)))
    yield Figure(f"{title}: memory", "MB", memory)
    yield Figure(f"{title}: writing the index", "s", writing)
    yield Figure(f"{title}: size", "MB", bytes_on_disk / 1e6)


def time_semantic(location: Path | str, queries: Any) -> tuple[list[float], list[list[str]], int, float]:
    """Return the best seconds of each search, the chunks that it finds, the bytes of the index, and the memory."""

    class Vectors:
        def embed_query(self, text: str) -> Any:
            return queries[int(text)]

    with open_index(location, embedder=Embedder(ENGLISH_EMBEDDER, Vectors)) as index:  # type: ignore[arg-type]
        searches = [partial(index.semantic_search, str(number), 15) for number in range(len(queries))]
        chunk_ids = [[hit.chunk_id for hit in search().hits] for search in searches]
        times = [min(seconds(search) for _ in range(3)) for search in searches]
        return times, chunk_ids, index.info().bytes, megabytes("VmRSS")


def measure_web(bench: Bench, size: int) -> Iterator[Figure]:
    """Measure the pages for a browser: what a page of hits takes beside its searches, and the picture of a page."""
    texts = [text[:3] for text in recombined(bench.sentences, size)]
    chance = np.random.default_rng(0)
    vectors = chance.standard_normal((sum(map(len, texts)), _WEB_DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = bench.place(f"web-{size}")
    make_index(index, texts, vectors)
    for name_of_page, seconds_of_page in apart(time_web, index, bench.questions[:_QUERIES], bench.work).items():
        yield Figure(f"web, {size:,} documents: {name_of_page}", "ms", 1_000 * seconds_of_page)


def time_web(location: Path | str, queries: Sequence[str], work: Path) -> dict[str, float]:
    """Return the seconds of pages: of searches the most and the median, without the searches themselves."""
    from reportlab.pdfgen.canvas import Canvas
    from starlette.testclient import TestClient

    from arag.retrieval.tools.fused import HITS
    from arag.retrieval.tools.retriever import list_keywords
    from arag.web.originals import draw_page
    from arag.web.site import Site

    class Vectors:
        def embed_query(self, _: str) -> Any:
            vector = np.random.default_rng(1).standard_normal(_WEB_DIMENSION)
            return vector / np.linalg.norm(vector)

    canvas = Canvas(str(work / "pages.pdf"))
    for page in range(3):
        for line in range(60):
            canvas.drawString(
                72, 780 - 12 * line, f"Line {line} of {page}: the harbour was first lit in {1700 + line}."
            )
        canvas.showPage()
    canvas.save()
    marked = "Line 7 of 2: the harbour was first lit in 1707."
    with open_index(location, embedder=Embedder(ENGLISH_EMBEDDER, Vectors)) as index:  # type: ignore[arg-type]

        def search(query: str) -> None:
            index.keyword_search(list_keywords(query), HITS, ranking="bm25")
            index.semantic_search(query, HITS, titles_first=True)

        app = Site(index, None, "", None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost:80", cookies={"arag-80": "token"})
        first = seconds(partial(client.get, "/"))
        beyond: list[float] = []
        for query in queries:
            search(query)
            get = partial(client.get, "/", params={"q": query})
            beyond.append(min(seconds(get) for _ in range(3)) - min(seconds(partial(search, query)) for _ in range(3)))
        later = min(seconds(partial(client.get, "/?from=d5")) for _ in range(3))
    draw = partial(draw_page, work / "pages.pdf", marked, [(0, len(marked))], 3)
    return {
        "the first page": first,
        "a page of documents": later,
        "a page of hits, beyond the searches (median)": float(np.median(beyond)),
        "a page of hits, beyond the searches (most)": max(beyond),
        "the first picture": seconds(draw),
        "a picture": min(seconds(draw) for _ in range(3)),
    }


def measure_ingestion(bench: Bench) -> Iterator[Figure]:
    """Measure ingestion with the authors' embedder: a first time, unchanged, and with 1% of the documents changed.

    A first time is also measured with the multilingual embedder.
    """
    corpora = {title: path for title, path in bench.corpora.items() if path.suffix == ".jsonl"}
    if not corpora:
        return
    title = "hotpotqa" if "hotpotqa" in corpora else next(iter(corpora))
    records = [json.loads(line) for line in corpora[title].read_text(encoding="utf-8").splitlines()]
    changed = [{**r, "text": f"{r['text']} It was changed."} if n % 100 == 0 else r for n, r in enumerate(records)]
    index, file, chunks = bench.place("ingestion"), bench.work / "corpus.jsonl", bench.work / "chunks.json"
    for run, documents in {"first": records, "unchanged": records, "1% changed": changed}.items():
        file.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
        ours, peak, bytes_on_disk = apart(time_ingestion, file, index, ENGLISH_EMBEDDER)
        authors = None
        if run == "first" and "ARAG_AUTHORS" in os.environ:
            write_chunks(chunks, ((record["id"], record["text"]) for record in records))
            model = find_english_model()
            authors = ask_authors("ingestion", chunks, bench.work / "ingestion-authors", model)
        yield Figure(f"ingestion of {title}: {run}", "s", ours, authors)
        if run == "first":
            other, _, _ = apart(time_ingestion, file, bench.place("multilingual"), MULTILINGUAL_EMBEDDER)
            yield Figure(f"ingestion of {title}: {run}, multilingual embedder", "s", other, authors)
        yield Figure(f"ingestion of {title}: {run}, memory", "MB", peak)
        yield Figure(f"ingestion of {title}: {run}, size", "MB", bytes_on_disk / 1e6)


def find_english_model() -> str:
    """Return the folder or the name of all-MiniLM-L6-v2 for sentence-transformers."""
    model = ONNX_MODELS[ENGLISH_EMBEDDER]
    folder = model.package.find()
    if folder is None:
        return model.name
    return str((folder / model.package.weights).parent)


def time_ingestion(file: Path, location: Path | str, name: str) -> tuple[float, float, int]:
    """Return the seconds of an ingestion with a loaded model, its highest memory, and the bytes of the index."""
    embedder = load_embedder(name)
    embedder.load()
    time_taken = seconds(lambda: run_ingest(file, location, embedder=embedder))
    peak = megabytes("VmHWM")
    with open_index(location) as index:
        return time_taken, peak, index.info().bytes


# --- processes and clocks ---


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do some work in a process of its own, whose memory holds nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def ask_authors(*arguments: Any) -> Any:
    """Return the seconds that the authors' code takes for a case of `authors.py`."""
    checkout = Path(os.environ["ARAG_AUTHORS"]).absolute()
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, Path(__file__).with_name("authors.py"), checkout, *arguments]
    done = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return json.loads(done.stdout)


def seconds(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def megabytes(kind: str) -> float:
    """Return this process's memory in MB: VmRSS for now, VmHWM for its highest; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1_024 for line in lines if line.startswith(kind)), 0.0)


# --- commands ---


def show(figures: Sequence[Figure], others: Sequence[Figure] = ()) -> None:
    """Print figures, beside the authors' or those of another run."""
    theirs: dict[str, float | None] = {each.name: each.ours if others else each.authors for each in others or figures}
    table = Table("", "first" if others else "ours", "second" if others else "authors", "ratio", "unit")
    for each in figures:
        other = theirs.get(each.name)
        ratio = f"{other / each.ours:.2f}" if other is not None and each.ours else ""
        table.add_row(each.name, f"{each.ours:,.3g}", "" if other is None else f"{other:,.3g}", ratio, each.unit)
    Console(width=160).print(table)


def read_figures(file: Path) -> list[Figure]:
    """Read the figures of a run."""
    return [Figure(**each) for each in json.loads(file.read_text(encoding="utf-8"))]


def main() -> None:
    """Measure and print a table, or compare two runs."""
    if sys.argv[1:2] == ["compare"]:
        show(*(read_figures(Path(file)) for file in sys.argv[2:4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=EXAMPLES, help="a folder of corpora")
    parser.add_argument("--work", type=Path, help="keep the vectors of the data here, and use them again")
    parser.add_argument("--at", help="an address of PostgreSQL, of an empty database")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute or two")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS[:-1])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = (options.work or Path(scratch)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        corpora = find_corpora(options.data)
        sentences = list(islice(read_sentences(corpora.values()), 500 if options.quick else None))
        questions = [question["question"] for path in corpora.values() for question in read_questions(path.parent)]
        bench = Bench(corpora, sentences, questions or sentences, work, options.at)
        parts = {
            "commands": [measure_commands(bench)],
            "keywords": [measure_keywords(bench, size) for size in ([600] if options.quick else [12_000, 100_000])],
            "grep": [measure_grep(bench, size) for size in ([600] if options.quick else [100_000])],
            "semantic": [measure_semantic(bench, size) for size in ([500] if options.quick else [16_000, 100_000])],
            "web": [measure_web(bench, 300 if options.quick else 10_000)],
            "million": [measure_semantic(bench, 1_000_000)],
            "ingestion": [measure_ingestion(bench)],
        }
        figures = {}
        for figure in (figure for part in PARTS if part in options.only for case in parts[part] for figure in case):
            figures[figure.name] = figure
            print(figure, file=sys.stderr, flush=True)
    if options.json:
        for before in read_figures(options.json) if options.json.exists() else ():
            now = figures.setdefault(before.name, before)
            now.ours = min(now.ours, before.ours)
            if before.authors is not None:
                now.authors = min(now.authors or before.authors, before.authors)
        options.json.write_text(json.dumps([asdict(each) for each in figures.values()], indent=2) + "\n", "utf-8")
    show(list(figures.values()))


if __name__ == "__main__":
    main()
