"""Reads an index in its newest state: its documents, chunks and vectors."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from arag.errors import IndexFormatError, InputError, StorageError
from arag.models.embedders import Embedder
from arag.models.names import knows_only_english
from arag.retrieval.corpus.overview import find_overview
from arag.retrieval.scope import Scope
from arag.retrieval.search.reading import find_documents, find_meant
from arag.retrieval.snapshots import Snapshot, Snapshots
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import IndexStore, View
from arag.retrieval.storage.fingerprints import file_hash_of
from arag.retrieval.storage.records import DocumentRecord, Settings, Vectors
from arag.retrieval.types import Chunk, DocumentInfo, IndexInfo
from arag.text.normalise import shorten

_PAGE = 500  # documents or chunks that are read at a time: more take more memory, fewer more queries
_MAX_SHOWN = 100  # characters of a wrong value in a message

P = ParamSpec("P")
T = TypeVar("T")
_Limit: TypeAlias = Scope | frozenset[str]


class IndexReader:
    """What an index holds: documents, chunks and vectors. `Index` adds the searches.

    Attributes:
        path: Where the index is: a folder, or an address without a password.
    """

    def __init__(self, snapshots: Snapshots, parent: Self | None = None, limit: _Limit | None = None) -> None:
        self.path = snapshots.store.location
        self._snapshots = snapshots
        self._parent = parent  # the index that this one is a part of
        self._limit = limit
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the index itself: copies of a tool share its open files."""
        return self

    def __repr__(self) -> str:
        if self._parent is not None:
            return f"{self._parent!r}.limited_to({self._limit!r})"
        settings = self._snapshots.settings
        return (
            f"Index({str(self.path)!r}, documents={settings.documents}, chunks={settings.chunks}, "
            f"embedder={settings.embedder!r})"
        )

    def close(self) -> None:
        """Close the index's files, and the indexes that were limited from it. On a limited index, do nothing."""
        if self._parent is None:
            self._snapshots.close()

    def limited_to(self, limit: Scope | Collection[str]) -> Self:
        """Return this index limited to some documents.

        Everything else is as if the index did not hold it: results, counts, scores, suggestions, neighbours and error
        messages equal those of an index of these documents. The limit is applied again whenever a writer publishes.

        Args:
            limit: A scope, or ids of documents. On an index that is limited already, both limits apply.
        """
        if isinstance(limit, str):
            shown = shorten(repr(limit), _MAX_SHOWN)
            raise InputError(f"{shown} is a string: give a scope, or a list of documents' ids")
        if not isinstance(limit, Scope):
            limit = frozenset(limit)
        return type(self)(self._snapshots, parent=self, limit=limit)

    def within(self, name: str) -> Self:
        """Return this index limited to the documents that a name means, as in `find_meant`; a blank one means all.

        Raises:
            InputError: There is no such document.
        """
        if not name.strip():
            return self
        documents = self.find_meant(name, limit=max(1, self._settings().documents))
        if not documents:
            shown = shorten(repr(name), _MAX_SHOWN)
            raise InputError(f"no document has {shown} in its title, its id or its file's name")
        return self.limited_to(documents)

    @property
    def store(self) -> IndexStore:
        """Where the index is kept."""
        return self._snapshots.store

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index, for texts to compare with its sentences. `load()` loads it."""
        return self._snapshots.embedder

    def with_view(self, function: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with a view of the last snapshot; if it fails and there is a newer one, call it with that.

        Args:
            function: It reads the index through the view, which never changes.
            args: What else it takes.
            kwargs: What else it takes by name.

        Returns:
            Its result.
        """
        while True:
            snapshot = self._snapshots.newest()
            try:
                return function(self._view(snapshot), *args, **kwargs)
            except (IndexFormatError, StorageError):
                if self._snapshots.newest() is snapshot:
                    raise

    def stamp(self) -> str:
        """Return a short text that differs between indexes, between their snapshots, and between their parts."""
        parts = [self._settings().token]
        part: IndexReader | None = self
        while part is not None:
            limit = part._limit  # noqa: SLF001 - of this class
            parts.append(repr(sorted(limit) if isinstance(limit, frozenset) else limit))
            part = part._parent  # noqa: SLF001
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    def get(self, chunk_id: str) -> Chunk | None:
        """Return the chunk with exactly this id, or None."""
        return self.mget([chunk_id])[0]

    def mget(self, chunk_ids: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with exactly these ids, in this order, and None for those that the index does not hold."""
        return self.with_view(lambda view: view.mget(chunk_ids))

    def chunks_of(self, document_ids: str | Sequence[str]) -> list[Chunk]:
        """Return the chunks of documents, in the order of the documents' ids and of the text; unknown ids have none."""
        if isinstance(document_ids, str):
            document_ids = [document_ids]
        return self.with_view(lambda view: view.chunks_of(document_ids))

    def chunk_ids(self) -> Iterator[str]:
        """Yield the ids of all chunks, in the order of ingestion."""
        return iter(self.with_view(lambda view: list(view.yield_keys())))

    def chunk_ids_beginning_with(self, start: str, limit: int) -> list[str]:
        """Return the first ids of chunks that begin with a text, in the order of the alphabet.

        Args:
            start: The text.
            limit: How many to return at most.
        """
        following = self.with_view(lambda view: view.nearby_ids(start, limit))
        return [chunk_id for chunk_id in following if chunk_id.startswith(start)]

    def sentence_vectors(self) -> Iterator[tuple[Chunk, list[int], Vectors]]:
        """Yield every chunk with the vectors of its sentences, in the order of ingestion.

        If a writer publishes meanwhile, the chunks that it removes are left out. Vectors have 16 bits a number.

        Yields:
            The chunk, the positions of its embedded sentences (bare headings have no vector), and their vectors of
            length one, shape (positions, dimension).
        """
        for ids in batches(self.chunk_ids(), _PAGE):
            yield from self.with_view(_read_vectors, ids)

    def find_documents(self, name: str, limit: int = 100) -> list[str]:
        """Find documents by a part of their name.

        Args:
            name: A document's id, a chunk's id, or words that all occur in the id or the title, or else
                in the file's name, in any order; case does not matter.
            limit: How many ids of documents to return at most, at least 1.
        """
        return self.with_view(find_documents, name, limit)

    def find_meant(self, name: str, limit: int = 100) -> list[str]:
        """Find the documents that a name means.

        Args:
            name: A document's id, path or file name, a chunk's id, or words that all occur in the id or the title, or
                else in the file's name, in any order; case does not matter. If no document has them as whole words,
                numbers, and words of three letters or more, may be parts of longer ones.
            limit: How many ids of documents to return at most, at least 1.
        """
        return self.with_view(find_meant, name, limit)

    def document(self, document_id: str) -> DocumentInfo | None:
        """Return a description of a document, without its text, or None if the index does not hold it."""
        return self.with_view(_find_document, document_id)

    def documents(self, *, after: str = "") -> Iterator[DocumentInfo]:
        """Yield a description of each document, without its text, in the order of ids.

        If a writer publishes meanwhile, the rest is as it is then.

        Args:
            after: Begin after this id.
        """
        while page := self.with_view(_list_documents, after):
            yield from page
            after = page[-1].id

    def overview(self) -> str:
        """Return the names of all documents, or the largest folders with how many documents they hold, on one line."""
        return self.with_view(find_overview)

    def info(self) -> IndexInfo:
        """Return what the index holds, and the settings that it was made with."""
        settings = asdict(self._settings())
        del settings["token"], settings["folders"], settings["version"]
        other_languages = 0
        if knows_only_english(settings["embedder"]):
            other_languages = self.with_view(lambda view: view.count_other_languages())
        size = 0
        if self._parent is None:
            size = self._snapshots.store.size()
        return IndexInfo(
            path=str(self.path),
            bytes=size,
            other_languages=other_languages,
            incomplete=len(self.incomplete()),
            **settings,
        )

    def incomplete(self) -> dict[str, tuple[str, ...]]:
        """Return what the texts of documents lack of their files, such as `2 charts`, by the documents' ids."""
        return self.with_view(lambda view: view.incomplete())

    def _settings(self) -> Settings:
        return self.with_view(lambda view: view.settings)

    def _view(self, snapshot: Snapshot) -> View:
        """Return the view of a snapshot, or the part of it that this index is limited to."""
        if self._parent is None or self._limit is None:
            return snapshot.view
        with self._lock:
            view = snapshot.limited.get(self)
            if view is None:
                allowed = _list_allowed(self._parent._view(snapshot), self._limit)  # noqa: SLF001 - of this class
                view = snapshot.view.limited_to(allowed)
                snapshot.limited[self] = view
            return view


def _list_allowed(view: View, limit: _Limit) -> list[str]:
    """Return the ids of a view's documents that a limit allows."""
    if not isinstance(limit, Scope):
        return list(view.fingerprints(limit))
    allows = limit.compile()
    return [record.id for record in view.documents() if allows(record.id, view.metadata(record))]


def _read_vectors(view: View, chunk_ids: Sequence[str]) -> list[tuple[Chunk, list[int], Vectors]]:
    row_ids = sorted(view.row_ids(chunk_ids).values())
    chunks = view.chunks_by_row_id(row_ids)
    in_order = sorted(view.vectors(row_ids), key=lambda entry: entry[0])
    return [(chunks[row_id], positions, vectors) for row_id, positions, vectors in in_order]


def _find_document(view: View, document_id: str) -> DocumentInfo | None:
    record = view.document(document_id)
    return None if record is None else _describe_document(view, record)


def _list_documents(view: View, after: str) -> list[DocumentInfo]:
    """Return a page of documents, beginning after an id."""
    page = islice(view.documents(after=after), _PAGE)
    return [_describe_document(view, record) for record in page]


def _describe_document(view: View, record: DocumentRecord) -> DocumentInfo:
    metadata = view.metadata(record)
    source = record.source or metadata.get("source")
    if not isinstance(source, str):
        source = ""
    reading = view.reading(record)
    return DocumentInfo(
        id=record.id,
        title=record.title,
        source=source,
        metadata=metadata,
        chunks=record.chunks,
        left_out=reading.left_out,
        file_hash=file_hash_of(record.fingerprint),
        ocr_pages=reading.ocr_pages,
    )
