"""An index as files that deep agents read: each document is one. This module needs the package deepagents."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from arag.errors import InputError
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.patterns import compile_pattern
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.documents import compile_glob
from arag.retrieval.index import Index, ensure_open
from arag.retrieval.tools.base import KEPT_SCOPES, find_scope_of_run
from arag.text.marks import mark

_READ_ONLY = "documents can be read and searched here, but not written"
_SECONDS = 10  # for a search
_MOST_MATCHES = 500


class IndexBackend(BackendProtocol):  # type: ignore[misc]
    """A read-only backend for deep agents: `ls`, `read_file`, `glob` and `grep` over the documents of an index.

    A file is a document's text, with the id of each chunk before its first line. A run sees what the scope in its
    context allows. A deep agent also writes files of its own: give it a `CompositeBackend` with this one below a
    folder. To have answers cited and checked, give a subagent `ARAGMiddleware`.

    Args:
        index: The index, which may be limited to a scope, or where it is.
    """

    def __init__(self, index: Index | str | Path) -> None:
        self._index = ensure_open(index)
        self._limit = lru_cache(KEPT_SCOPES)(self._index.limited_to)

    def ls(self, path: str) -> LsResult:
        """List the files and folders in a folder."""
        documents = self._read_corpus().documents
        folder = _as_name(path)
        if folder and folder not in documents.folders:
            return LsResult(error=f"{path} is not a folder")
        entries: dict[str, FileInfo] = {}
        for below in documents.below(folder):
            name = below[len(folder) :].lstrip("/").partition("/")[0]
            place = f"{folder}/{name}" if folder else name
            entries[place] = FileInfo(path=f"/{place}", is_dir=place not in documents.ids)
        return LsResult(entries=list(entries.values()))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return lines of a document."""
        corpus = self._read_corpus()
        name = _as_name(file_path)
        if name not in corpus.documents.ids:
            return ReadResult(error=f"{file_path}: {corpus.say_missing(name)}")
        ((_, lines),) = corpus.lines_by_document([name])
        first = max(int(offset), 0)
        shown = _mark_chunks(lines)[first : first + max(int(limit), 0)]
        data = FileData(content="\n".join(shown), encoding="utf-8")
        if not shown:
            return ReadResult(file_data=data, no_lines_requested=limit <= 0)
        end = first + len(shown)
        return ReadResult(
            file_data=data,
            total_lines=len(lines),
            start_line=first + 1,
            end_line=end,
            next_offset=end if end < len(lines) else None,
        )

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Find the lines that have a text."""
        corpus = self._read_corpus()
        corpus.deadline = monotonic() + _SECONDS
        most = _MOST_MATCHES if max_count is None else max_count
        matches: list[GrepMatch] = []
        try:
            literal = compile_pattern(pattern, case="match", fixed=True)
            paths = _select(corpus, path, glob)
            found = corpus.search([literal], paths, lambda documents: [document.path for document in documents])
            for name, lines in corpus.lines_by_document(found):
                for number, line in enumerate(lines, 1):
                    if literal.matches(line.text):
                        text = f"{mark(line.chunk.id)} {line.text}"
                        matches.append(GrepMatch(path=f"/{name}", line=number, text=text))
                if len(matches) > most:
                    break
        except InputError as error:
            return GrepResult(error=str(error))
        return GrepResult(matches=matches[:most], truncated=len(matches) > most)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find documents by a pattern of their paths."""
        try:
            paths = _select(self._read_corpus(), path, pattern)
        except InputError as error:
            return GlobResult(error=str(error))
        return GlobResult(matches=[FileInfo(path=f"/{name}", is_dir=False) for name in paths])

    def write(self, file_path: str, content: str) -> WriteResult:  # noqa: ARG002
        """Refuse to write."""
        return WriteResult(error=f"{file_path}: {_READ_ONLY}")

    def edit(self, file_path: str, *_: Any, **__: Any) -> EditResult:
        """Refuse to edit."""
        return EditResult(error=f"{file_path}: {_READ_ONLY}")

    def delete(self, file_path: str) -> DeleteResult:
        """Refuse to delete."""
        return DeleteResult(error=f"{file_path}: {_READ_ONLY}")

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Refuse to take files."""
        return [FileUploadResponse(path=path, error="permission_denied") for path, _ in files]

    def _read_corpus(self) -> Corpus:
        scope = find_scope_of_run()
        return Corpus(self._index if scope is None else self._limit(scope))


def _as_name(path: str) -> str:
    return path.strip("/")


def _select(corpus: Corpus, path: str | None, glob: str | None) -> list[str]:
    """Return the documents below a path that match a pattern; one without a folder is that of a name."""
    folder = _as_name(path or "/")
    paths = [folder] if folder in corpus.documents.ids else corpus.documents.below(folder)
    if not glob:
        return paths
    matcher = compile_glob(glob.lstrip("/"))
    selected: list[str] = []
    for name in paths:
        relative = name[len(folder) :].lstrip("/")
        compared = relative if "/" in glob else name.rpartition("/")[2]
        if matcher.fullmatch(compared):
            selected.append(name)
    return selected


def _mark_chunks(lines: Iterable[Line]) -> list[str]:
    """Return lines as texts, each chunk's first one behind the chunk's id."""
    marked: list[str] = []
    last = None
    for line in lines:
        is_first = line.chunk.id != last
        marked.append(f"{mark(line.chunk.id)} {line.text}" if is_first else line.text)
        last = line.chunk.id
    return marked
