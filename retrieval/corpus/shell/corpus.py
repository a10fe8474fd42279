"""What a command reads of the index, and which lines it printed."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from arag.retrieval.corpus.lines import Line, list_lines
from arag.retrieval.corpus.patterns import Match
from arag.retrieval.corpus.shell.documents import Documents
from arag.retrieval.index import Index
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk, DocumentInfo

_MAX_SIMILAR = 3  # names that are like a wrong one
_DOCUMENTS_AT_ONCE = 200  # more take more memory, fewer more queries
_MAX_TEXTS = 50_000  # printed lines that are remembered: more take more memory


class Finder(Protocol):
    """Finds what a search looks for in a text."""

    def find(self, text: str) -> list[Match]: ...


@dataclass(frozen=True)
class Unmatched:
    """A search that matched nothing."""

    patterns: list[str]
    is_fixed: bool
    paths: list[str]
    is_all: bool  # it looked in all documents


class Corpus:
    """The documents of an index as a command sees them.

    Attributes:
        index: The index.
        printed: The id of each chunk that a command printed, by its prefix, such as `atlas.md:3`.
        written: The printed lines that are not their chunk's text, such as those of `rg --replace`.
        prefix_by_text: The prefix of each printed line, by its text; empty where several chunks have it.
        printed_paths: The paths that commands printed without text.
        unmatched: The searches that matched nothing.
        matchers: What the searches looked for that matched something.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.printed: dict[str, str] = {}
        self.written: set[str] = set()
        self.prefix_by_text: dict[str, str] = {}
        self.printed_paths: set[str] = set()
        self.unmatched: list[Unmatched] = []
        self.matchers: list[Finder] = []

    @cached_property
    def documents(self) -> Documents:
        """The documents' paths."""
        return self.index._search(_find_documents)  # noqa: SLF001

    def print_line(self, line: Line, text: str | None = None) -> str:
        """Return a line as commands print it: `path:number:text`.

        Args:
            line: The line.
            text: What to print in place of its text.
        """
        prefix = self.prefix(line.chunk)
        self.printed[prefix] = line.chunk.id
        if text is None:
            self._remember(line.text, prefix)
            return f"{prefix}:{line.text}\n"
        printed = f"{prefix}:{text}"
        if text not in line.text and len(self.written) < _MAX_TEXTS:
            self.written.add(printed)
        return f"{printed}\n"

    def print_row(self, chunk: Chunk, cells: str) -> str:
        """Return a row of a query's result, which is from a chunk."""
        prefix = self.prefix(chunk)
        self.printed[prefix] = chunk.id
        printed = f"{prefix}:{cells}"
        self.written.add(printed)
        return f"{printed}\n"

    def prefix(self, chunk: Chunk) -> str:
        """Return what begins each line of a chunk."""
        return f"{self.documents.path(chunk.document_id)}:{chunk.ordinal}"

    def print_path(self, path: str) -> str:
        """Return a path that a command prints by itself."""
        self.printed_paths.add(path)
        return path

    def print_paths(self, paths: Iterable[str]) -> str:
        """Return paths, one a line."""
        return "".join(f"{self.print_path(path)}\n" for path in paths)

    def say_missing(self, name: str) -> str:
        """Return the error for a name that no document has, with names that are like it."""
        words = posixpath.basename(name.rstrip("/")).rsplit(".", 1)[0].strip("*?")
        similar = self.index.find_documents(words, _MAX_SIMILAR) if words else []
        text = "No such file or directory"
        if similar:
            paths = [self.documents.path(document_id) for document_id in similar]
            text += f" (like it: {', '.join(paths)})"
        return text

    def describe(self, document_ids: Sequence[str]) -> dict[str, DocumentInfo]:
        """Return descriptions of documents by their paths."""
        described = self.index._search(_describe, document_ids)  # noqa: SLF001
        return {self.documents.path(document.id): document for document in described}

    def note(self, line: Line) -> None:
        """Remember that a line was printed without its prefix."""
        prefix = self.prefix(line.chunk)
        self.printed[prefix] = line.chunk.id
        self._remember(line.text, prefix)

    def _remember(self, text: str, prefix: str) -> None:
        if len(self.prefix_by_text) >= _MAX_TEXTS:
            return
        known = self.prefix_by_text.setdefault(text, prefix)
        if known != prefix:
            self.prefix_by_text[text] = ""

    def lines_by_document(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Line]]]:
        """Yield each document's path and its lines."""
        for some in batches(paths, _DOCUMENTS_AT_ONCE):
            ids = {self.documents.ids[path]: path for path in some}
            lines: dict[str, list[Line]] = {path: [] for path in some}
            for chunk in self._read_chunks(list(ids)):
                lines[ids[chunk.document_id]] += list_lines(chunk)
            yield from lines.items()

    def read_files(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the texts of documents' files."""
        texts: dict[str, str] = {}
        for path, lines in self.lines_by_document(list(paths)):
            texts[path] = "".join(map(self.print_line, lines))
        return texts

    def _read_chunks(self, document_ids: Sequence[str]) -> list[Chunk]:
        return self.index._search(lambda view: view.chunks_of(document_ids))  # noqa: SLF001


def _find_documents(view: View) -> Documents:
    """Return a view's documents; they are kept as long as the view."""
    documents: Documents | None = view.__dict__.get("_shell_documents")
    if documents is None:
        documents = Documents(record.id for record in view.documents())
        view.__dict__["_shell_documents"] = documents
    return documents


def _describe(view: View, document_ids: Sequence[str]) -> list[DocumentInfo]:
    described: list[DocumentInfo] = []
    for record in view.entries(document_ids).values():
        described.append(DocumentInfo(record.id, record.title, record.source, view.metadata(record), record.chunks))
    return described
