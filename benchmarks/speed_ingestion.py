"""Speed and memory of ingestion, and of ingesting again."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from speed_alternative import Alternative
from speed_data import Data, FreeEmbeddings, recombined, write_chunks_file, write_records
from speed_fresh import fresh
from speed_report import Report, say
from speed_service import seen, service

from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document
from arag.ingest.pipeline import run_ingest
from arag.ingest.readers import read_documents
from arag.ingest.sentences import split_sentences
from arag.models.embedders import load_embedder
from arag.retrieval.index import open_index
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.draft import LocalDraft
from arag.retrieval.tokens import load_token_counter

_SERVICE_SECONDS = 0.2
_CHUNK_TOKENS = 1_000
_DOCUMENT_CHARACTERS = 300  # of the many short documents
_MANY = 10_000
_MB = 1_000_000


@dataclass(frozen=True)
class Run:
    """One run of ingestion.

    Attributes:
        seconds: How long it took.
        publishing: How much of that it wrote what readers search in: the keyword file and Chroma's folder.
        sentences: Sentences in the index.
        embedded: Sentences that were embedded.
    """

    seconds: float
    publishing: float
    sentences: int
    embedded: int


class _Recording:
    """The default embedder; what it was asked for is kept, and how long it took."""

    model = "recording"

    def __init__(self) -> None:
        self._embedder = load_embedder(None)
        self.known: dict[str, Any] = {}
        self.seconds = 0.0

    def embed_documents(self, texts: Sequence[str]) -> Any:
        began = time.perf_counter()
        vectors = self._embedder.embed_documents(texts)
        self.seconds += time.perf_counter() - began
        self.known.update(zip(texts, vectors, strict=True))
        return vectors


class _Replaying(FreeEmbeddings):
    """Gives the vectors that another embedder gave, at no cost."""

    def __init__(self, known: dict[str, Any]) -> None:
        super().__init__()
        self._known = known

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.stack([self._known[text] for text in texts])


def measure_ingestion(
    report: Report, data: Data, authors: Path | None, work: Path, *, model: str, documents: int | None, rounds: int
) -> dict[str, float]:
    """Measure ingestion of a real corpus; returns sentences a second of what splitting is compared with."""
    corpus, characters = _real_corpus(data, work, documents)
    section = f"Ingestion: {corpus.stem}, {characters / _MB:.2f} MB"
    chunks = work / "chunks.json"
    say(f"ingestion: {characters / _MB:.2f} MB with the default model")
    recording = _Recording()
    recording.embed_documents(["to load the model"])
    runs, embedding, others = [], [], []
    with Alternative(authors) as alternative:
        for number in range(rounds):
            recording.seconds = 0.0
            runs.append(_run(corpus, work / "real", recording, new=True))
            embedding.append(recording.seconds)
            if not number:
                _write_few(work / "few.json")
                alternative.ask("build_index", chunks=str(work / "few.json"), folder=str(work / "few"), model=model)
                _write_texts(work / "real", recording, chunks)
            others.append(alternative.ask("build_index", chunks=str(chunks), folder=str(work / "few"), model=model))
        alike, likewise = [], []
        alike_corpus = _cut_alike(corpus)
        for number in range(rounds):
            alike.append(_run(alike_corpus, work / "alike", recording, new=True))
            if not number:
                _write_texts(work / "alike", recording, chunks)
            likewise.append(alternative.ask("build_index", chunks=str(chunks), folder=str(work / "few"), model=model))
    best = min(range(rounds), key=lambda i: runs[i].seconds)
    ours, other = runs[best], min(others, key=lambda answer: answer["seconds"])
    rate, their_rate = ours.sentences / ours.seconds, other["sentences"] / other["seconds"]
    report.add(
        section, "sentences, each side's own", "sentences/s", rate, other=their_rate, more_is_better=True,
    )  # fmt: skip
    same, theirs_of_same = (
        max(run.sentences / run.seconds for run in alike),
        max(answer["sentences"] / answer["seconds"] for answer in likewise),
    )
    report.add(
        section, f"the {alike[0].sentences:,} sentences of documents that both cut alike", "sentences/s", same,
        other=theirs_of_same, more_is_better=True, target="at least as many", met=same >= theirs_of_same,
    )  # fmt: skip
    mine, theirs = characters / ours.seconds, characters / other["seconds"]
    report.add(
        section, "text", "characters/s", mine, other=theirs, more_is_better=True,
        target="at least as much", met=mine >= theirs,
    )  # fmt: skip
    report.add(section, "seconds of the run", "s", ours.seconds, other=other["seconds"])
    report.add(section, "of that: embedding", "s", embedding[best])
    report.add(section, "of that: publishing, keyword file and Chroma", "s", ours.publishing)
    report.add(
        section, "of that: the rest, as far as it does not overlap with embedding", "s",
        max(0.0, ours.seconds - ours.publishing - embedding[best]),
    )  # fmt: skip
    say("ingestion: the same vectors at no cost")
    free = _best_run([corpus] * 3, work / "free", _Replaying(recording.known), new=True)
    free_section = "Ingestion with the same vectors at no cost: what a fast embedder meets"
    report.add(free_section, "all", "sentences/s", free.sentences / free.seconds, more_is_better=True)
    before = free.seconds - free.publishing
    report.add(free_section, "read, cut, store", "sentences/s", free.sentences / before, more_is_better=True)
    report.add(free_section, "publish", "sentences/s", free.sentences / free.publishing, more_is_better=True)
    _size_rows(
        report, f"Size of the index: {characters / _MB:.2f} MB of text, {free.sentences:,} sentences", work / "free"
    )
    _again_rows(report, f"{corpus.stem}, the default model", corpus, work / "real", recording, ours, target=True)
    for folder in ("real", "alike", "free", "few"):
        shutil.rmtree(work / folder, ignore_errors=True)
    return {
        "the default model": ours.sentences / embedding[best],
        "publishing": free.sentences / free.publishing,
    }


def _real_corpus(data: Data, work: Path, documents: int | None) -> tuple[Path, int]:
    """Write the documents of one corpus as records: of a name that is known to fit, or else of the first."""
    name = "hotpotqa" if "hotpotqa" in data.corpora else next(iter(data.corpora))
    found = (d for d in read_documents([data.corpora[name]]) if isinstance(d, Document))
    kept = list(islice(found, documents))
    file = work / f"{name}.jsonl"
    lines = (json.dumps({"id": d.id, "title": d.title, "text": d.text}, ensure_ascii=False) for d in kept)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file, sum(len(d.text) for d in kept)


def _cut_alike(corpus: Path) -> Path:
    """Write those documents of a corpus of which both sides make the same number of sentences.

    The authors' code ends one at each full stop, also inside "U.S." and "3.5": its sentences are more and shorter.
    """
    lines = corpus.read_text(encoding="utf-8").splitlines()
    file = corpus.with_name(f"{corpus.stem}-alike.jsonl")
    same = [line for line in lines if _cut_the_same(json.loads(line)["text"])]
    file.write_text("\n".join(same) + "\n", encoding="utf-8")
    return file


def _cut_the_same(text: str) -> bool:
    parts = [part.strip() for part in re.split(r"[.!?\n]+", text)]
    return len(split_sentences(text)) == sum(len(part) > 10 for part in parts)  # it leaves shorter ones out


def _write_few(file: Path) -> None:
    write_chunks_file(file, [("few:0", "This is to load what is imported at the first use.")])


def _write_texts(folder: Path, embedder: Any, chunks: Path) -> None:
    with open_index(folder, embedder=embedder) as index:
        held = ((chunk_id, index.get(chunk_id)) for chunk_id in index.chunk_ids())
        write_chunks_file(chunks, ((i, chunk.text) for i, chunk in held if chunk is not None))


def _run(file: Path, folder: Path, embedder: Any, *, new: bool = False) -> Run:
    if new:
        shutil.rmtree(folder, ignore_errors=True)
    with _publishing_timed() as seconds:
        summary = run_ingest(file, folder, embedder=embedder)
    return Run(summary.seconds, sum(seconds), summary.sentences, summary.embedded)


def _best_run(files: Sequence[Path], folder: Path, embedder: Any, *, new: bool = False) -> Run:
    return min((_run(file, folder, embedder, new=new) for file in files), key=lambda run: run.seconds)


@contextmanager
def _publishing_timed() -> Iterator[list[float]]:
    publish: Callable[..., Any] = LocalDraft._write_next  # noqa: SLF001
    seconds: list[float] = []

    def timed(*values: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return publish(*values, **options)
        finally:
            seconds.append(time.perf_counter() - began)

    LocalDraft._write_next = timed  # noqa: SLF001
    try:
        yield seconds
    finally:
        LocalDraft._write_next = publish  # noqa: SLF001


def _size_rows(report: Report, section: str, folder: Path) -> None:
    """Tell how much room each part of an index takes."""
    with closing(sqlite3.connect(folder / CHUNKS_FILE)) as connection:
        (vectors,) = connection.execute("SELECT sum(length(vectors)) FROM vectors").fetchone()
    sizes = Counter({"SQLite: vectors": vectors, "SQLite: all else": -vectors})
    for file in folder.rglob("*"):
        if file.is_file():
            sizes[_part(file.relative_to(folder))] += file.stat().st_size
    for part, size in [*sizes.items(), ("all", sizes.total())]:
        report.add(section, part, "MB", size / _MB)


def _part(file: Path) -> str:
    if len(file.parts) == 1:
        return "SQLite: all else" if file.name.startswith(CHUNKS_FILE) else "keywords, words, manifest"
    return "Chroma: graph" if len(file.parts) > 2 else "Chroma: database"


def _again_rows(
    report: Report, what: str, corpus: Path, folder: Path, embedder: Any, first: Run, *, target: bool = False
) -> None:
    """Ingest the same again, then with a hundredth of the documents changed."""
    unchanged = _best_run([corpus] * 3, folder, embedder)
    records = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    step = min(100, len(records))
    files = []
    for number in range(3):
        for record in records[number::step]:
            record["text"] += f" The text of {record['id']} was changed in run {number}."
        files.append(corpus.with_name(f"{corpus.stem}-{number}.jsonl"))
        files[-1].write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    changed = _best_run(files, folder, embedder)
    section = f"Ingesting again: {what}"
    many = len(records) >= _MANY
    report.add(
        section, f"nothing changed, {len(records):,} documents", "s", unchanged.seconds, other=first.seconds,
        beside="first time", target="less than 1 s for 10,000" if many else "",
        met=unchanged.seconds < 1 if many else None,
    )  # fmt: skip
    share = changed.seconds / first.seconds
    report.add(
        section, "1% of the documents changed", "s", changed.seconds, other=first.seconds, beside="first time",
    )  # fmt: skip
    report.add(
        section, "1% of the documents changed, share of the first time", "share", share,
        target="less than 3%" if target else "", met=share < 0.03 if target else None,
    )  # fmt: skip
    report.add(section, "of that: publishing", "s", changed.publishing)
    records.append(records[0] | {"id": "one more", "text": "One document was added."})
    corpus.with_name(f"{corpus.stem}-more.jsonl").write_text(
        "\n".join(map(json.dumps, records)) + "\n", encoding="utf-8"
    )
    added = _run(corpus.with_name(f"{corpus.stem}-more.jsonl"), folder, embedder)
    report.add(section, "one document added", "s", added.seconds, other=first.seconds, beside="first time")


def measure_service(report: Report, data: Data, work: Path, *, documents: int) -> None:
    """Measure ingestion with an embedding service that takes a while for each request."""
    say("ingestion: an embedding service")
    corpus = work / "some.jsonl"
    write_records(corpus, islice(recombined(data.sentences, _DOCUMENT_CHARACTERS), documents))
    with service(_SERVICE_SECONDS) as address:
        run = _run(corpus, work / "service", f"openai:some-model@{address}/v1", new=True)
        requests, at_once = seen(address)
    section = f"Ingestion with a service that takes {1_000 * _SERVICE_SECONDS:.0f} ms a request"
    report.add(
        section, f"until publishing, {requests} requests", "s", run.seconds - run.publishing,
        other=requests * _SERVICE_SECONDS, beside="one by one",
    )  # fmt: skip
    report.add(
        section, "requests at once", "requests", at_once, more_is_better=True, target="more than 1", met=at_once > 1
    )
    shutil.rmtree(work / "service")


def measure_again(report: Report, data: Data, work: Path, *, documents: int) -> None:
    """Measure ingesting many short documents again, with an embedder that costs nothing."""
    say(f"ingesting again: {documents:,} documents")
    corpus, folder = work / "many.jsonl", work / "many"
    write_records(corpus, islice(recombined(data.sentences, _DOCUMENT_CHARACTERS), documents))
    embedder = FreeEmbeddings()
    first = _run(corpus, folder, embedder, new=True)
    _again_rows(report, "short documents, an embedder that costs nothing", corpus, folder, embedder, first, target=True)
    shutil.rmtree(folder)


def measure_splitting(report: Report, data: Data, rates: dict[str, float], *, characters: int) -> None:
    """Measure how fast sentences are found, beside what is done with them next."""
    say("splitting")
    documents: list[Document] = []
    left = characters
    for document in read_documents(list(data.corpora.values())):
        if isinstance(document, Document) and left > 0:
            documents.append(replace(document, text=document.text[:left]))
            left -= len(document.text)
    texts = [document.text for document in documents]
    count = load_token_counter().count_batch
    size = sum(map(len, texts)) / _MB

    def ours() -> int:
        chunks = [c for d in documents for c in chunk_document(d, chunk_tokens=_CHUNK_TOKENS, count=count)]
        return sum(len(chunk.sentences) for chunk in chunks)

    splitters: dict[str, Callable[[], int]] = {
        "spaCy and our rules, chunks included": ours,
        "a regular expression, as the authors' code has it": lambda: sum(
            len(re.split(r"[.!?\n]+", text)) for text in texts
        ),
    }
    if find_spec("sentencex") is not None:
        import sentencex

        splitters["sentencex"] = lambda: sum(len(list(sentencex.segment("en", text))) for text in texts)
    found: dict[str, tuple[float, int]] = {}
    for _ in range(3):
        for name, split in splitters.items():
            began = time.perf_counter()
            number = split()
            seconds = time.perf_counter() - began
            found[name] = min(found.get(name, (seconds, number)), (seconds, number))
    section = f"Splitting {size:.1f} MB into sentences"
    for name, (seconds, _) in found.items():
        report.add(section, name, "MB/s", size / seconds, more_is_better=True)
    seconds, number = found["spaCy and our rules, chunks included"]
    for what, rate in rates.items():
        report.add(
            section, "spaCy and our rules, beside " + what, "sentences/s", number / seconds, other=rate,
            beside=what, more_is_better=True, target="faster", met=number / seconds > rate,
        )  # fmt: skip


def measure_memory(report: Report, data: Data, work: Path, *, sizes: Sequence[int], own_sizes: Sequence[int]) -> None:
    """Measure the peak of the memory of ingestion, with and without Chroma's part."""
    for figure, option, some in (
        ("peak, without Chroma's graph", "without-chroma", [*sizes, *own_sizes]),
        ("peak, with Chroma's graph", "", sizes),
    ):
        peaks: dict[int, float] = {}
        for size in some:
            say(f"memory: {size} MB of text, {option or 'with Chroma'}")
            file, folder = work / "text.jsonl", work / "memory"
            write_records(file, _texts_of(data, size * _MB))
            shutil.rmtree(folder, ignore_errors=True)
            found = fresh("ingest", file, folder, option)
            shutil.rmtree(folder)
            file.unlink()
            if not found["memory"]:
                return
            peaks[size] = found["memory"]["peak"]
            report.add("Memory of ingestion, by MB of text", figure, "MB", peaks[size], size=size)
        if len(peaks) > 1 and report.judging:
            (least, first), (most, last) = list(peaks.items())[-2:]  # buffers are full by then
            reached = last + max(0.0, last - first) / (most - least) * (1_000 - most)
            report.add(
                "Memory of ingestion, by MB of text", f"{figure}: the last two's line, at 1 GB", "MB", reached,
                target="less than 1.5 GB", met=reached < 1_500,
            )  # fmt: skip


def _texts_of(data: Data, characters: int) -> Iterator[list[str]]:
    for text in recombined(data.sentences):
        yield text
        characters -= sum(map(len, text)) + len(text)
        if characters <= 0:
            return


def measure_million(report: Report, data: Data, work: Path, *, sentences: int) -> None:
    """Measure the ingestion of very many sentences with an embedder that costs nothing."""
    say(f"ingestion of {sentences:,} sentences")
    file, folder = work / "million.jsonl", work / "million"
    mean = sum(map(len, data.sentences)) / len(data.sentences)
    write_records(file, _texts_of(data, int(sentences * mean)))
    found = fresh("ingest", file, folder)
    section = "Ingestion of very many sentences, an embedder that costs nothing"
    bytes_on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    report.add(section, "seconds", "s", found["seconds"], size=found["sentences"])
    report.add(section, "peak memory", "MB", found["memory"].get("peak", 0.0), size=found["sentences"])
    report.add(section, "index", "MB", bytes_on_disk / _MB, size=found["sentences"])
    file.unlink()
    shutil.rmtree(folder)
