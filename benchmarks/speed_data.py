"""What the speed benchmark measures on: real sentences, recombined to any size, and indexes made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag.ingest.documents import Document
from arag.ingest.readers import read_documents
from arag.ingest.sentences import split_sentences
from arag.models.embedders import load_embedder
from arag.models.names import DEFAULT_EMBEDDER
from arag.retrieval.locations import store_at
from arag.retrieval.storage import DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.types import Chunk, Sentence

CHUNK_CHARACTERS = 4_200  # about 1,000 tokens
CHUNKS_AT_ONCE = 2_000
_SYLLABLES = [f"{first}{vowel}" for first in "bdfgklmnprstvz" for vowel in "aeiou"]

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Data:
    """Real text.

    Attributes:
        corpora: The paths of the corpora.
        sentences: Their sentences, each once.
        questions: Questions about them; sentences where there are none.
    """

    corpora: dict[str, Path]
    sentences: list[str]
    questions: list[str]


def read_data(folder: Path, *, most_sentences: int | None = None) -> Data:
    """Read the corpora of a folder that has one in each of its folders, or is one itself."""
    corpora = {path.parent.name: path for path in sorted(folder.glob("*/corpus*"))}
    corpora = corpora or {folder.name: folder / "corpus" if (folder / "corpus").is_dir() else folder}
    found = islice(_sentences(corpora.values()), most_sentences)
    sentences = list(found)
    questions: list[str] = []
    for file in sorted({path.parent / "questions.json" for path in corpora.values()}):
        if file.exists():
            questions += [question["question"] for question in json.loads(file.read_text(encoding="utf-8"))]
    return Data(corpora, sentences, questions or sentences[:: max(1, len(sentences) // 100)])


def _sentences(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the sentences that are embedded, each once."""
    seen: set[str] = set()
    for document in read_documents(list(paths)):
        if not isinstance(document, Document):
            continue
        for sentence in split_sentences(document.text, title=document.title):
            text = document.text[sentence.start : sentence.end]
            if sentence.embedded and text not in seen:
                seen.add(text)
                yield text


def real_vectors(texts: Sequence[str], work: Path, name: str) -> Vectors:
    """Embed texts with the default embedder; the vectors are kept in a folder and used again."""
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    file = work / f"{name}-{digest}.npy"
    if not file.exists():
        np.save(file, load_embedder(None).embed_documents(texts))
    return np.asarray(np.load(file), dtype=np.float32)


def mixed_vectors(real: Vectors, number: int) -> Vectors:
    """Make vectors that lie about as real ones do: each the mean of two, 7 to 3, and a little noise."""
    random = np.random.default_rng(number)
    made = np.empty((number, real.shape[1]), dtype=np.float32)
    for start in range(0, number, 10_000):
        size = min(10_000, number - start)
        one, other = real[random.integers(len(real), size=(2, size))]
        noise = random.standard_normal((size, real.shape[1]), dtype=np.float32) * (0.1 / real.shape[1] ** 0.5)
        some = np.float32(0.7) * one + np.float32(0.3) * other + noise
        made[start : start + size] = some / np.linalg.norm(some, axis=1, keepdims=True)
    return made


def name(number: int) -> str:
    """Return a made-up name, another one for each number; no real text holds it."""
    number = number * 982_451_653 % len(_SYLLABLES) ** 5
    syllables = []
    for _ in range(5):
        number, place = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[place])
    return "".join(syllables).capitalize()


def recombined(sentences: Sequence[str], characters: int = CHUNK_CHARACTERS, seed: int = 0) -> Iterator[list[str]]:
    """Yield texts of about so many characters, as lists of sentences that were drawn at random.

    Each has a sentence with two names that no other has: otherwise the number of different words would not grow.
    """
    random = np.random.default_rng(seed)
    mean = sum(map(len, sentences)) / len(sentences) + 1
    for number in count():
        text = [f"It was {name(2 * number)} who told them of {name(2 * number + 1)}."]
        length = len(text[0])
        for place in random.integers(len(sentences), size=int(2 * characters / mean) + 2):
            if length + len(sentences[place]) > characters:
                break
            text.append(sentences[place])
            length += len(sentences[place]) + 1
        yield text


def write_records(file: Path, texts: Iterable[Sequence[str]]) -> None:
    """Write documents as records, one a line."""
    with file.open("w", encoding="utf-8") as out:
        for number, text in enumerate(texts):
            record = {"id": f"d{number}", "title": name(2 * number), "text": " ".join(text)}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def make_chunk(number: int, texts: Sequence[str], *, embedded: bool) -> Chunk:
    """Make a chunk of sentences; it is a document of its own."""
    sentences = []
    at = 0
    for text in texts:
        sentences.append(Sentence(at, at + len(text), embedded))
        at += len(text) + 1
    text = " ".join(texts)
    return Chunk(
        id=f"d{number}:0",
        document_id=f"d{number}",
        ordinal=0,
        title=name(2 * number),
        text=text,
        sentences=tuple(sentences),
        tokens=len(text) // 4,
        whole=True,
    )


def make_index(path: Path | str, chunks: Iterable[Chunk], vectors: Vectors | None = None) -> None:
    """Make an index of chunks whose sentences are known and, where they are embedded, their vectors in their order.

    It is what ingestion makes, without the time that finding and embedding sentences takes.
    """
    dimension = 384 if vectors is None else vectors.shape[1]
    settings = Settings(DEFAULT_EMBEDDER, dimension, 1_000, "estimate")
    with store_at(path).draft(lambda: settings) as draft:
        used = 0
        left = iter(chunks)
        while some := list(islice(left, CHUNKS_AT_ONCE)):
            documents = []
            for chunk in some:
                size = sum(sentence.embedded for sentence in chunk.sentences)
                part = np.empty((0, dimension), dtype=np.float32) if vectors is None else vectors[used : used + size]
                used += size
                record = DocumentRecord(chunk.document_id, chunk.title, "", "{}", "", 1)
                documents.append(EmbeddedDocument(record, [chunk], [part]))
            draft.put(documents)
        draft.publish(settings)


def write_chunks_file(file: Path, chunks: Iterable[tuple[str, str]]) -> None:
    """Write chunks, id and text, as the authors' code reads them."""
    with file.open("w", encoding="utf-8") as out:
        separator = "[\n"
        for chunk_id, text in chunks:
            out.write(separator + json.dumps({"id": chunk_id, "text": text}, ensure_ascii=False))
            separator = ",\n"
        out.write("\n]\n")
