"""What a command reads of the index, and which lines it printed."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import TypeVar

from arag.errors import InputError
from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.corpus.lines import Line, list_lines
from arag.retrieval.corpus.moved import find_moved
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.corpus.shell.documents import Documents
from arag.retrieval.corpus.shell.matching import MatchingDocument, find_matching_documents
from arag.retrieval.corpus.shell.reading import ReadLines
from arag.retrieval.corpus.shell.search_patterns import Matcher
from arag.retrieval.corpus.types import ListedDocument
from arag.retrieval.index import Index
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import ChunkText
from arag.retrieval.types import Chunk
from arag.system.stopping import check_stop

_MAX_SIMILAR = 3  # names that are like a wrong one
_MAX_EXPLAINED = 20  # wrong names for which others are looked up: fewer are shown
_FEW_DOCUMENTS = 20  # to read so many is faster than to make a limited view for them
_DOCUMENTS_AT_ONCE = 200  # more take more memory, fewer more queries
_MAX_KEPT = 16  # views whose documents' paths are kept: those of a hundred thousand take up 30 MB
_MAX_TEXTS = 50_000  # printed lines that are remembered: more take more memory

T = TypeVar("T")


@dataclass
class TableRow:
    """A row that a query printed."""

    names: str  # of the columns that are shown
    text: str  # the cells that are shown
    chunk_ids: dict[str, None]  # where it is from


@dataclass(frozen=True)
class Unmatched:
    """A search that matched nothing."""

    patterns: list[str]
    paths: Sequence[str]
    is_all: bool  # it looked in all documents


class Corpus:
    """The documents of an index as a command sees them.

    Attributes:
        index: The index.
        deadline: When no more documents are read.
        printed: The id of each chunk that a command printed, by its prefix, such as `atlas.md:3`.
        chunk_by_text: The id of the chunk of each line that was printed or read, by its text; empty where several have
            it.
        read: The lines of the files that commands read.
        printed_paths: The paths that commands printed without text.
        unmatched: The searches that matched nothing.
        matchers: What the searches looked for that matched something.
        rows: The rows that `sql` printed, by their text.
    """

    def __init__(self, index: Index, *, names_lines: bool = False) -> None:
        """Make the corpus.

        Args:
            index: The index.
            names_lines: Whether each line of a file begins with its chunk, as `rg` prints it.
        """
        self.index = index
        self._names_lines = names_lines
        self.deadline = math.inf
        self.printed: dict[str, str] = {}
        self.chunk_by_text: dict[str, str] = {}
        self.read = ReadLines()
        self.printed_paths: set[str] = set()
        self.unmatched: list[Unmatched] = []
        self.matchers: list[Matcher] = []
        self.rows: dict[str, TableRow] = {}
        self._missing = 0  # names that no document has

    @cached_property
    def documents(self) -> Documents:
        """The documents' paths."""
        return self.index.with_view(_find_documents)

    def check_time(self) -> None:
        """Check that there is time left.

        Raises:
            InputError: There is none.
        """
        check_stop()
        if monotonic() > self.deadline:
            raise InputError("that takes too long: search in fewer documents, or for a pattern without -v")

    def print_line(self, line: Line, text: str | None = None) -> str:
        """Return a line as commands print it: `path:number:text`.

        Args:
            line: The line.
            text: What to print of it: by default all, else a part of it or a text that replaces it.
        """
        prefix = self.prefix(line.chunk)
        self.printed[prefix] = line.chunk.id
        if text is None or text == line.text:
            self._remember(line)
            return f"{prefix}:{line.text}\n"
        return f"{prefix}:{text}\n"

    def prefix(self, chunk: Chunk | ChunkText) -> str:
        """Return what begins each line of a chunk."""
        return f"{self.documents.path(chunk.document_id)}:{chunk.ordinal}"

    def print_path(self, path: str) -> str:
        """Return a path that a command prints by itself."""
        self.printed_paths.add(path)
        return path

    def print_paths(self, paths: Iterable[str], *, end: str) -> str:
        """Return paths, each with an end."""
        return "".join(f"{self.print_path(path)}{end}" for path in paths)

    def say_missing(self, name: str) -> str:
        """Return the error for a name that no document has, with names that are like it."""
        self._missing += 1
        if self._missing > _MAX_EXPLAINED:
            return "No such file or directory"
        words = posixpath.basename(name.rstrip("/")).rsplit(".", 1)[0].strip("*?")
        similar = self.index.find_documents(words, _MAX_SIMILAR) if words else []
        text = "No such file or directory"
        if similar:
            paths = [self.documents.path(document_id) for document_id in similar]
            text += f" (like it: {', '.join(paths)})"
        return text

    def read_parts(self, path: str) -> dict[int, Chunk]:
        """Return a document's chunks by their number."""
        return {chunk.ordinal: chunk for chunk in self.index.chunks_of([self.documents.ids[path]])}

    def describe(self, paths: Sequence[str]) -> dict[str, ListedDocument]:
        """Return what is known of documents, by path."""
        if not paths:
            return {}
        index = self.limited_to(paths)
        listed = index.list_documents(limit=len(paths)).documents
        return {self.documents.path(document.id): document for document in listed}

    def limited_to(self, paths: Sequence[str]) -> Index:
        """Return the index limited to the documents with some paths."""
        if len(paths) == len(self.documents.paths):
            return self.index
        return self.index.limited_to([self.documents.ids[path] for path in paths])

    def note(self, line: Line) -> None:
        """Remember that a line was printed without its prefix."""
        self.printed[self.prefix(line.chunk)] = line.chunk.id
        self._remember(line)

    def _remember(self, line: Line) -> None:
        if len(self.chunk_by_text) >= _MAX_TEXTS:
            return
        known = self.chunk_by_text.setdefault(line.text, line.chunk.id)
        if known != line.chunk.id:
            self.chunk_by_text[line.text] = ""

    def lines_by_document(self, paths: Iterable[str]) -> Iterator[tuple[str, list[Line]]]:
        """Yield each document's path and its lines."""
        for some in batches(paths, _DOCUMENTS_AT_ONCE):
            self.check_time()
            ids = {self.documents.ids[path]: path for path in some}
            lines: dict[str, list[Line]] = {path: [] for path in some}
            for chunk in self.index.chunks_of(list(ids)):
                lines[ids[chunk.document_id]] += list_lines(chunk)
            yield from lines.items()

    def search(
        self,
        patterns: Sequence[Pattern],
        paths: Sequence[str],
        use: Callable[[Iterable[MatchingDocument]], T],
    ) -> T:
        """Give the documents that have lines that match one of some patterns to a function, in the order of paths.

        Args:
            patterns: The patterns.
            paths: The documents that are searched.
            use: The function, which need not take all. It is called again if a newer snapshot replaces the index.

        Returns:
            Its result.
        """
        if len(paths) <= _FEW_DOCUMENTS:
            return use(self._filter_lines(patterns, paths))
        index = self.limited_to(paths)
        documents = self.documents

        def find(view: View) -> T:
            return use(self._check_each(find_matching_documents(view, patterns, documents)))

        return index.with_view(find)

    def _check_each(self, found: Iterable[MatchingDocument]) -> Iterator[MatchingDocument]:
        for document in found:
            self.check_time()
            yield document

    def _filter_lines(self, patterns: Sequence[Pattern], paths: Sequence[str]) -> Iterator[MatchingDocument]:
        for path, lines in self.lines_by_document(paths):
            kept = [line for line in lines if any(pattern.matches(line.text) for pattern in patterns)]
            if kept:
                yield MatchingDocument(path, len(kept), kept.copy)

    def read_files(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the texts of documents' files."""
        texts: dict[str, str] = {}
        for path, lines in self.lines_by_document(list(paths)):
            texts[path] = self.read_lines(lines)
        return texts

    def read_lines(self, lines: Sequence[Line]) -> str:
        """Return lines as a file's text."""
        if self._names_lines:
            return "".join(map(self.print_line, lines))
        self.read.add(lines)
        for line in lines:
            self._remember(line)
        return "".join(f"{line.text}\n" for line in lines)


def _read_documents(view: View) -> Documents:
    return Documents(view.document_ids(), find_moved(view))


_find_documents = KeptByView(_read_documents, most=_MAX_KEPT)
