"""The index: three retrieval functions over one corpus (paper, section 3)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from arag.retrieval.chunk_store import ChunkStore
from arag.retrieval.embedders import Embedder, embedder_of_index
from arag.retrieval.errors import EmbedderError, IndexClosedError, IndexFormatError, InputError
from arag.retrieval.keywords import KeywordMatcher
from arag.retrieval.manifest import FILE_NAME, read_manifest
from arag.retrieval.sentence_store import SentenceMatch, SentenceStore
from arag.retrieval.snippets import keyword_snippets, semantic_snippets
from arag.retrieval.suggestions import closest_terms
from arag.retrieval.types import (
    Chunk,
    DocumentInfo,
    Hit,
    IndexInfo,
    KeywordReport,
    KeywordResults,
    ReadResults,
    SemanticResults,
    Titled,
    UnknownChunk,
)

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MOST_ADJACENT = 2
WEAK = 0.4  # a semantic hit below this similarity is seldom about the query
_MOST_TITLED = 3
_FEW_CHUNKS = 2  # a keyword in no more chunks than these gets the closest terms
_MOST_SUGGESTIONS = 20  # keywords of one search that get them
_SAME = 2e-3  # vectors are stored a thousandth of their length apart, and ranked so by Chroma
_FIRST_SENTENCES = 50  # asked of Chroma at first, then four times as many each time
_ID_WRAPPING = re.compile(r"^[\s\[\](){}<>\"'`]+|[\s\[\](){}<>\"'`,;.]+$")


class Index:
    """A corpus that can be searched and read.

    Use `open_index` to get one. Searches may run in several threads at once. An index that another process
    writes to is noticed: the next search sees what was written.

    Args:
        path: The index's folder.
        embedder: Embeds the queries; loaded from the manifest's name where left out.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexFormatError: The index is damaged, incomplete or of another format.
        EmbedderError: The embedder is not the one that the index was made with.
    """

    def __init__(self, path: str | Path, *, embedder: str | Embeddings | Embedder | None = None) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._closed = False
        self._stamp = self._manifest_stamp()
        self._manifest = read_manifest(self.path)
        self._embedder = embedder_of_index(embedder, self._manifest.embedder, self.path)
        self._chunks = ChunkStore(self.path)
        self._sentences: SentenceStore | None = None
        self._matcher: KeywordMatcher | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        m = self._manifest
        return f"Index({str(self.path)!r}, documents={m.documents}, chunks={m.chunks}, embedder={m.embedder!r})"

    def close(self) -> None:
        """Close the index's files."""
        with self._lock:
            self._closed = True
            self._chunks.close()
            if self._sentences is not None:
                self._sentences.close()
                self._sentences = None
            self._matcher = None

    def keyword_search(
        self, keywords: str | Sequence[str], top_k: int = 5, *, read: Collection[str] = ()
    ) -> KeywordResults:
        """Find the chunks that hold keywords, exactly and case-insensitively (paper, section 3.2).

        Score(c, K) = sum over k in K of count(k, T_c) * |k|: non-overlapping occurrences in the chunk's text,
        times the keyword's length in characters. Ties are broken by chunk id.

        Args:
            keywords: Keywords; white space around them and repetitions (in any case) do not count.
            top_k: How many chunks to return, at least 1.
            read: Ids of chunks whose text the reader has: little is shown of them.

        Returns:
            The best chunks with the sentences that hold the keywords, and for every keyword how many chunks
            hold it.

        Raises:
            InputError: There is no keyword, or `top_k` is below 1.
        """
        _check_top_k(top_k)
        wanted = _distinct([keywords] if isinstance(keywords, str) else keywords)
        if not wanted:
            raise InputError("no keyword given: keyword_search needs at least one that is not blank")
        with self._lock:
            self._refresh()
            if self._matcher is None:
                self._matcher = KeywordMatcher(self._chunks.yield_texts())
            matcher = self._matcher
        ranked, holding, total = matcher.rank(wanted, top_k)
        chunks = dict(zip((r.chunk_id for r in ranked), self._chunks.mget([r.chunk_id for r in ranked]), strict=True))
        hits = []
        for entry in ranked:
            chunk = chunks[entry.chunk_id]
            if chunk is None:  # removed by another process a moment ago
                continue
            snippets, more = keyword_snippets(chunk, list(entry.counts), holding, brief=chunk.id in read)
            hits.append(
                Hit(
                    chunk_id=chunk.id,
                    document_ids=tuple(section.document_id for section in chunk.sections),
                    score=entry.score,
                    snippets=snippets,
                    more=more,
                    tokens=chunk.tokens,
                    keyword_counts=entry.counts,
                )
            )
        rare = [keyword for keyword in wanted if holding[keyword] <= _FEW_CHUNKS][:_MOST_SUGGESTIONS]
        closest = {keyword: closest_terms(keyword, self._chunks, matcher) for keyword in rare}
        shown = {hit.chunk_id for hit in hits}
        reports = tuple(
            KeywordReport(k, holding[k], closest.get(k, ()), self._titled(k, shown) if holding[k] > top_k else ())
            for k in wanted
        )
        return KeywordResults(reports, tuple(hits), total)

    def semantic_search(self, query: str, top_k: int = 5, *, read: Collection[str] = ()) -> SemanticResults:
        """Find the chunks with the sentences nearest to a query (paper, section 3.2).

        Sentences are ranked by cosine similarity; a chunk scores as its best sentence. Ties are broken by chunk
        id. More sentences are fetched until there are `top_k` chunks, or no sentence is left.

        Args:
            query: The query.
            top_k: How many chunks to return, at least 1.
            read: Ids of chunks whose text the reader has: little is shown of them.

        Returns:
            The best chunks with their nearest sentences.

        Raises:
            InputError: The query is blank, or `top_k` is below 1.
            EmbedderError: The query cannot be embedded, or its vector does not fit the index.
        """
        _check_top_k(top_k)
        if not query.strip():
            raise InputError("the query is blank: semantic_search needs words to search for")
        vector = self._embedder.embed_query(query)
        with self._lock:
            self._refresh()
            if vector.shape != (self._manifest.dimension,):
                raise EmbedderError(
                    f"the embedder {self._embedder.name} gives vectors of {vector.shape[0]} numbers, the index in "
                    f"{self.path} holds vectors of {self._manifest.dimension}"
                )
            matches, chunks = self._nearest(vector, top_k)
        scores: dict[str, float] = {}
        similarities: dict[str, dict[int, float]] = {}
        for rank, match in enumerate(matches):
            if rank < 3 * top_k or match.chunk_id not in scores:
                similarities.setdefault(match.chunk_id, {})[match.position] = match.similarity
            scores[match.chunk_id] = max(match.similarity, scores.get(match.chunk_id, -2.0))
        best = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))[:top_k]
        hits = []
        for chunk_id in best:
            chunk = chunks[chunk_id]
            snippets, more = semantic_snippets(
                chunk, similarities[chunk_id], brief=chunk_id in read or scores[chunk_id] < WEAK
            )
            hits.append(
                Hit(
                    chunk_id=chunk_id,
                    document_ids=tuple(section.document_id for section in chunk.sections),
                    score=scores[chunk_id],
                    snippets=snippets,
                    more=more,
                    tokens=chunk.tokens,
                )
            )
        return SemanticResults(query, tuple(hits))

    def read(self, chunk_ids: str | Sequence[str], adjacent: int = 0) -> ReadResults:
        """Return full chunks (paper, section 3.2).

        An id is also found when brackets or quotes stand around it, or when it is a document's id and that
        document has one chunk only.

        Args:
            chunk_ids: Chunk ids.
            adjacent: How many chunks before and after each to return as well, 0 to 2.

        Returns:
            The chunks, each once, and the ids that the index does not hold.

        Raises:
            InputError: `adjacent` is out of bounds.
        """
        if not 0 <= adjacent <= MOST_ADJACENT:
            raise InputError(f"adjacent is {adjacent}: valid are 0 to {MOST_ADJACENT}")
        with self._lock:
            self._refresh()
        found: dict[str, Chunk] = {}
        unknown: list[UnknownChunk] = []
        for chunk_id in dict.fromkeys([chunk_ids] if isinstance(chunk_ids, str) else chunk_ids):
            chunk = self._resolve(chunk_id)
            if chunk is None:
                unknown.append(UnknownChunk(chunk_id, self._closest_ids(chunk_id)))
                continue
            for neighbour in self._chunks.neighbours(chunk, adjacent):
                found.setdefault(neighbour.id, neighbour)
        totals = {c.document_id: self._chunks.chunks_in_document(c.document_id) for c in found.values()}
        return ReadResults(tuple(found.values()), tuple(unknown), totals)

    def get(self, chunk_id: str) -> Chunk | None:
        """Return the chunk with exactly this id, or None."""
        with self._lock:
            self._refresh()
        return self._chunks.mget([chunk_id])[0]

    def chunk_ids(self) -> Iterator[str]:
        """Yield the ids of all chunks, in the order of ingestion."""
        with self._lock:
            self._refresh()
        return self._chunks.yield_keys()

    def document(self, document_id: str) -> DocumentInfo | None:
        """Return what is known of a document beside its text, or None where the index does not hold it."""
        with self._lock:
            self._refresh()
        record = self._chunks.document(document_id)
        if record is None:
            return None
        return DocumentInfo(record.id, record.title, record.source, json.loads(record.metadata))

    def info(self) -> IndexInfo:
        """Return what the index holds, and with which settings it was made."""
        with self._lock:
            self._refresh()
        counts = self._chunks.counts()
        return IndexInfo(
            path=str(self.path),
            documents=counts.documents,
            chunks=counts.chunks,
            sentences=counts.sentences,
            tokens=counts.tokens,
            embedder=self._manifest.embedder,
            dimension=self._manifest.dimension,
            distance=self._manifest.distance,
            chunk_tokens=self._manifest.chunk_tokens,
            tokenizer=self._manifest.tokenizer,
            language=self._manifest.language,
            packed=self._manifest.packed,
            bytes=sum(map(_size, self.path.rglob("*"))),
        )

    def _titled(self, keyword: str, shown: Collection[str]) -> tuple[Titled, ...]:
        """Find documents with a keyword as their title, as far as the hits do not show them."""
        found = []
        for document_id, title in self._chunks.titled(keyword, _MOST_TITLED):
            chunks = self._chunks.chunks_of([document_id])
            if chunks and chunks[0].id not in shown:
                found.append(Titled(title, chunks[0].id))
        return tuple(found)

    def _nearest(self, vector: NDArray[np.float32], top_k: int) -> tuple[list[SentenceMatch], dict[str, Chunk]]:
        """Fetch sentences until they belong to `top_k` chunks, or none is left; the caller holds the lock."""
        if self._sentences is None:
            self._sentences = SentenceStore(self.path)
        total = self._sentences.count()
        if total == 0 and self._manifest.sentences > 0:
            raise IndexFormatError(f"the sentence vectors of {self.path} are gone; ingest the documents again")
        count = min(max(_FIRST_SENTENCES, 4 * top_k), total)
        matches: list[SentenceMatch] = []
        chunks: dict[str, Chunk] = {}
        while count > 0:
            found = self._sentences.nearest(vector, count)
            matches, chunks = self._valid(found)
            if _decided(matches, top_k):
                break
            if len(found) < count:
                matches, chunks = self._valid(self._sentences.compared(vector))
                break
            if count >= total:
                break
            count = min(4 * count, total)
        return matches, chunks

    def _valid(self, matches: Iterable[SentenceMatch]) -> tuple[list[SentenceMatch], dict[str, Chunk]]:
        """Drop vectors whose sentence is not in its chunk: a writer has changed one and not yet the other."""
        matches = list(matches)
        ids = list(dict.fromkeys(match.chunk_id for match in matches))
        chunks = {c.id: c for c in self._chunks.mget(ids) if c is not None}
        valid = [
            match
            for match in matches
            if (chunk := chunks.get(match.chunk_id)) is not None
            and match.position < len(chunk.sentences)
            and chunk.sentence_text(match.position) == match.text
        ]
        kept = {match.chunk_id for match in valid}
        return valid, {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk_id in kept}

    def _resolve(self, chunk_id: str) -> Chunk | None:
        for candidate in dict.fromkeys((chunk_id, _ID_WRAPPING.sub("", chunk_id))):
            chunk = self._chunks.mget([candidate])[0]
            if chunk is not None:
                return chunk
            of_document = self._chunks.chunks_of([candidate])
            if len(of_document) == 1:
                return of_document[0]
        return None

    def _closest_ids(self, chunk_id: str) -> tuple[str, ...]:
        of_document = self._chunks.chunks_of([chunk_id, chunk_id.rpartition(":")[0]])
        if of_document:
            return tuple(chunk.id for chunk in of_document[:3])
        similar = process.extract(
            chunk_id[:200], self._chunks.yield_keys(), scorer=fuzz.ratio, score_cutoff=60, limit=3
        )
        if similar:
            return tuple(match[0] for match in similar)
        return tuple(key for key, _ in zip(self._chunks.yield_keys(), range(2), strict=False))

    def _refresh(self) -> None:
        """Take notice of what another process has written.

        Raises:
            IndexClosedError: The index is closed.
        """
        if self._closed:
            raise IndexClosedError(f"the index in {self.path} is closed: open it again with open_index")
        stamp = self._manifest_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._manifest = read_manifest(self.path)
        self._embedder = embedder_of_index(self._embedder, self._manifest.embedder, self.path)
        self._matcher = None
        if self._chunks.was_replaced():
            self._chunks.close()
            self._chunks = ChunkStore(self.path)
        if self._sentences is not None:
            self._sentences.close()
            self._sentences = None

    def _manifest_stamp(self) -> tuple[int, int] | None:
        try:
            status = (self.path / FILE_NAME).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino


def open_index(path: str | Path, *, embedder: str | Embeddings | Embedder | None = None) -> Index:
    """Open an index for searching.

    Args:
        path: The index's folder.
        embedder: Needed only where the index was made with an `Embeddings` object rather than by name.

    Returns:
        The index; a context manager.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexFormatError: The index is damaged, incomplete or of another format.
        EmbedderError: The embedder is not the one that the index was made with.
    """
    return Index(path, embedder=embedder)


def _decided(matches: Sequence[SentenceMatch], top_k: int) -> bool:
    """Tell whether sentences, nearest first, hold the best `top_k` chunks and all that tie with the last of them."""
    scores: dict[str, float] = {}
    for match in matches:
        scores.setdefault(match.chunk_id, match.similarity)
    return len(scores) >= top_k and list(scores.values())[top_k - 1] - matches[-1].similarity > _SAME


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a writer has removed it a moment ago
        return 0


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise InputError(f"top_k is {top_k}: it must be at least 1")


def _distinct(texts: Iterable[str]) -> list[str]:
    """Strip texts and drop blank ones and repetitions, whatever their case."""
    found: dict[str, str] = {}
    for text in texts:
        stripped = text.strip()
        if stripped:
            found.setdefault(stripped.lower(), stripped)
    return list(found.values())
