"""What the speed benchmark measures on: real sentences, recombined to any size, and indexes made of them."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.ingest.documents import Document
from arag.ingest.readers import read_documents
from arag.ingest.sentences import split_sentences
from arag.models.embedders import load_embedder
from arag.models.names import DEFAULT_EMBEDDER
from arag.retrieval.backend import DocumentRecord, Manifest
from arag.retrieval.locations import backend_at
from arag.retrieval.types import Chunk, Section, Sentence

CHUNK_CHARACTERS = 4_200  # about 1,000 tokens
_CHUNKS_AT_ONCE = 2_000
_CLUSTERS = 500
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


class FreeEmbeddings:
    """An embedder that costs nothing: every text has the random vector that its hash decides.

    Attributes:
        model: Part of the embedder's name in an index.
    """

    model = "free"

    def __init__(self, dimension: int = 384) -> None:
        self._dimension = dimension
        self._numbers = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        places = [hash(text) % (len(self._numbers) - self._dimension) for text in texts]
        return np.stack([self._numbers[place : place + self._dimension] for place in places])

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


class ClusteredEmbeddings(FreeEmbeddings):
    """An embedder whose vectors lie in clusters; the same text has the same one in every process.

    Args:
        seconds: How long a sentence takes.
    """

    model = "clustered"

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._centres = self._numbers[: _CLUSTERS * self._dimension].reshape(_CLUSTERS, -1)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        time.sleep(self._seconds * len(texts))
        hashes = [zlib.crc32(text.encode()) for text in texts]
        places = [found % (len(self._numbers) - self._dimension) for found in hashes]
        own = np.stack([self._numbers[place : place + self._dimension] for place in places])
        return self._centres[[found % _CLUSTERS for found in hashes]] + own


def make_chunk(number: int, texts: Sequence[str], *, embedded: bool) -> Chunk:
    """Make a chunk of sentences; it is a document of its own."""
    sentences = []
    at = 0
    for text in texts:
        sentences.append(Sentence(at, at + len(text), embedded))
        at += len(text) + 1
    text = " ".join(texts)
    document_id = f"d{number}"
    return Chunk(
        id=f"{document_id}:0",
        document_id=document_id,
        ordinal=0,
        text=text,
        sections=(Section(document_id, name(2 * number), 0, len(text), whole=True),),
        sentences=tuple(sentences),
        tokens=len(text) // 4,
    )


def make_index(
    path: Path | str,
    chunks: Iterable[Chunk],
    vectors: Vectors | None = None,
    metadata: Callable[[Chunk], dict[str, Any]] = lambda _: {},
) -> None:
    """Make an index of chunks whose sentences are known and, where they are embedded, their vectors in their order.

    It is what ingestion makes, without the time that finding and embedding sentences takes.
    """
    dimension = 384 if vectors is None else vectors.shape[1]
    settings = Manifest(DEFAULT_EMBEDDER, dimension, 1_000, "estimate", "auto", packed=False)
    backend = backend_at(path)
    backend.make()
    with backend.lock(), backend.draft(lambda: settings) as draft:
        numbers = count(1)  # the store's own
        used = 0
        left = iter(chunks)
        while some := list(islice(left, _CHUNKS_AT_ONCE)):
            with draft.chunks.transaction():
                draft.chunks.add_documents(
                    DocumentRecord(c.document_id, c.sections[0].title, "", json.dumps(metadata(c)), "", 1) for c in some
                )
                draft.chunks.mset([(chunk.id, chunk) for chunk in some])
                parts = []
                for chunk in some:
                    size = sum(sentence.embedded for sentence in chunk.sentences)
                    part = np.empty((0, 0), dtype=np.float32) if vectors is None else vectors[used : used + size]
                    parts.append((next(numbers), part))
                    used += size
                draft.chunks.set_vectors(parts)
        draft.publish(settings)


def write_chunks_file(file: Path, chunks: Iterable[tuple[str, str]]) -> None:
    """Write chunks, id and text, as the authors' code reads them."""
    with file.open("w", encoding="utf-8") as out:
        separator = "[\n"
        for chunk_id, text in chunks:
            out.write(separator + json.dumps({"id": chunk_id, "text": text}, ensure_ascii=False))
            separator = ",\n"
        out.write("\n]\n")
