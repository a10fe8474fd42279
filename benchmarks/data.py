"""What the benchmarks measure on: corpora, their sentences recombined to any size, and indexes made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.ingest.sentences import split_sentences
from arag.models.embedders import load_embedder
from arag.models.names import ENGLISH_EMBEDDER
from arag.retrieval.storage.locations import store_at
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.types import Chunk, Sentence

CHUNK_CHARACTERS = 4_200  # about 1,000 tokens
CHUNKS_AT_ONCE = 2_000
_SYLLABLES = [f"{consonant}{vowel}" for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]

Vectors = NDArray[np.float32]


def find_corpora(folder: Path) -> dict[str, Path]:
    """Return the corpora in the folders of a folder, by name; if there are none, its own.

    A corpus is a file `corpus.jsonl`, or a folder `corpus`.
    """
    paths = sorted(folder.glob("*/corpus*")) or sorted(folder.glob("corpus*"))
    return {path.parent.name: path for path in paths}


def read_questions(folder: Path) -> list[dict[str, Any]]:
    """Return the questions of a folder; none where there is no file."""
    file = folder / "questions.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def read_corpus(corpus: Path) -> Iterator[tuple[str, str, str]]:
    """Yield ids, titles and texts: of the records in a file, or of the Markdown files in a folder."""
    if corpus.is_dir():
        for file in sorted(corpus.rglob("*.md")):
            yield file.relative_to(corpus).as_posix(), "", file.read_text(encoding="utf-8")
    else:
        with corpus.open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                yield record["id"], record.get("title", ""), record["text"]


def read_sentences(corpora: Iterable[Path]) -> Iterator[str]:
    """Yield the sentences of corpora that are embedded, each once."""
    seen: set[str] = set()
    for corpus in corpora:
        for _, title, text in read_corpus(corpus):
            for sentence in split_sentences(text, title=title):
                words = " ".join(text[sentence.start : sentence.end].split())
                if sentence.embedded and words not in seen:
                    seen.add(words)
                    yield words


def real_vectors(texts: Sequence[str], folder: Path) -> Vectors:
    """Embed texts with the default embedder; the vectors are kept in a folder and used again."""
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    file = folder / f"vectors-{digest}.npy"
    if not file.exists():
        np.save(file, load_embedder(ENGLISH_EMBEDDER).embed_documents(texts))
    return np.asarray(np.load(file), dtype=np.float32)


def mixed_vectors(real: Vectors, number: int) -> Vectors:
    """Make vectors that lie about as real ones do: each the mean of two, 7 to 3, and a little noise."""
    random = np.random.default_rng(number)
    vectors = np.empty((number, real.shape[1]), dtype=np.float32)
    for start in range(0, number, 10_000):
        size = min(10_000, number - start)
        one, other = real[random.integers(len(real), size=(2, size))]
        noise = random.standard_normal((size, real.shape[1]), dtype=np.float32) * (0.1 / real.shape[1] ** 0.5)
        some = np.float32(0.7) * one + np.float32(0.3) * other + noise
        vectors[start : start + size] = some / np.linalg.norm(some, axis=1, keepdims=True)
    return vectors


def name(number: int) -> str:
    """Return a made-up name, another one for each number; no real text holds it."""
    number = number * 982_451_653 % len(_SYLLABLES) ** 5
    syllables = []
    for _ in range(5):
        number, place = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[place])
    return "".join(syllables).capitalize()


def recombined(sentences: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield so many texts of about CHUNK_CHARACTERS, as lists of sentences that were drawn at random.

    Each has a sentence with two names that no other has: otherwise the number of different words would not grow.
    """
    random = np.random.default_rng(0)
    mean = sum(map(len, sentences)) / len(sentences) + 1
    for number in range(size):
        text = [f"It was {name(2 * number)} who told them of {name(2 * number + 1)}."]
        length = len(text[0])
        for place in random.integers(len(sentences), size=int(2 * CHUNK_CHARACTERS / mean) + 2):
            if length + len(sentences[place]) > CHUNK_CHARACTERS:
                break
            text.append(sentences[place])
            length += len(sentences[place]) + 1
        yield text


def make_index(location: Path | str, texts: Iterable[Sequence[str]], vectors: Vectors | None = None) -> None:
    """Make an index of texts that are lists of sentences: each is a chunk, and a document of its own.

    It is what ingestion makes, without the time that finding and embedding sentences takes.

    Args:
        location: The index's folder or address.
        texts: The texts.
        vectors: The vectors of all sentences, in their order; without them, the sentences are not embedded.
    """
    dimension = 384 if vectors is None else vectors.shape[1]
    settings = Settings(ENGLISH_EMBEDDER, dimension, 1_000, "estimate")
    used = 0
    numbered = zip(count(), texts)
    with store_at(location).draft(lambda: settings) as draft:
        while some := list(islice(numbered, CHUNKS_AT_ONCE)):
            documents = []
            for number, sentences in some:
                size = 0 if vectors is None else len(sentences)
                part = np.empty((0, dimension), dtype=np.float32) if vectors is None else vectors[used : used + size]
                used += size
                chunk = _make_chunk(number, sentences, embedded=vectors is not None)
                record = DocumentRecord(chunk.document_id, chunk.title, "", "{}", "", 1)
                documents.append(EmbeddedDocument(record, [chunk], [part]))
            draft.put(documents)
        draft.publish(settings)


def _make_chunk(number: int, texts: Sequence[str], *, embedded: bool) -> Chunk:
    ends = np.cumsum([len(text) + 1 for text in texts]).tolist()
    sentences = [Sentence(end - 1 - len(text), end - 1, embedded) for text, end in zip(texts, ends, strict=True)]
    whole = " ".join(texts)
    tokens = len(whole) // 4
    return Chunk(f"d{number}:0", f"d{number}", 0, name(2 * number), whole, tuple(sentences), tokens, parts=1)


def write_chunks(file: Path, chunks: Iterable[tuple[str, str]]) -> None:
    """Write chunks, id and text, as the authors' code reads them."""
    records = [{"id": chunk_id, "text": text} for chunk_id, text in chunks]
    file.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
