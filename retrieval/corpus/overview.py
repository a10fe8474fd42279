"""A short list of what a corpus holds, for a model's prompt."""

from __future__ import annotations

from pathlib import PurePosixPath

from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.corpus.moved import find_moved
from arag.retrieval.storage.contract import View
from arag.text.marks import without_marks
from arag.text.normalise import collapse_whitespace, count, shorten
from arag.text.tokens import count_tokens

_MAX_NAMES = 60
_MAX_KEPT = 256  # views: an overview is short
_MAX_TOKENS = 105  # a model pays for them in every round
_MAX_KINDS = 4
_MAX_NAME = 60  # characters
_NO_FOLDER = "."


def _make_overview(view: View) -> str:
    """Return the names of all documents of a small index, or the folders of a large one with how many they hold."""
    moved = find_moved(view)
    paths = sorted(moved.get(document_id, document_id) for document_id in view.document_ids())
    total = count(len(paths), "document")
    folders = _group_by_folder(paths)
    if len(paths) <= _MAX_NAMES:
        text = f"{total}: {_list_names(folders)}"
        if count_tokens(text) <= _MAX_TOKENS:
            return text
    return f"{total}: {_count_in_folders(folders)}"


def _group_by_folder(paths: list[str]) -> dict[str, list[str]]:
    """Return the names of documents without their folders, by folder."""
    folders: dict[str, list[str]] = {}
    for path in map(PurePosixPath, paths):
        folders.setdefault(str(path.parent), []).append(path.name)
    return folders


def _list_names(folders: dict[str, list[str]]) -> str:
    """Return all names, as `folder/{a.md, b.md}, c.md`."""
    parts: list[str] = []
    for folder, names in folders.items():
        listed = ", ".join(_show(name) for name in names)
        if folder != _NO_FOLDER:
            listed = f"{_show(folder)}/{{{listed}}}" if len(names) > 1 else f"{_show(folder)}/{listed}"
        parts.append(listed)
    return ", ".join(parts)


def _count_in_folders(folders: dict[str, list[str]]) -> str:
    """Return the largest folders with their documents and kinds: `ships/ 12 md txt, maps/ 3 pdf`."""
    largest_first = sorted(folders, key=lambda folder: (-len(folders[folder]), folder))
    parts: list[str] = []
    for folder in largest_first:
        part = f"{_show(folder)}/ {_count_kinds(folders[folder])}"
        if parts and count_tokens(", ".join([*parts, part])) > _MAX_TOKENS:
            break
        parts.append(part)
    further = len(folders) - len(parts)
    if further:
        parts.append(f"and {count(further, 'further folder')}")
    return ", ".join(parts)


def _count_kinds(names: list[str]) -> str:
    """Return how many names there are, and their extensions, the most frequent first: `12 md txt`."""
    counts: dict[str, int] = {}
    for name in names:
        inner = name.removesuffix(".gz")
        file = inner.rpartition("#")[0]  # of which the document is a part
        extension = (PurePosixPath(file).suffix or PurePosixPath(inner).suffix)[1:]
        counts[extension] = counts.get(extension, 0) + 1
    most_first = sorted(counts, key=lambda extension: (-counts[extension], extension))
    shown = [extension for extension in most_first if extension]
    if len(shown) > _MAX_KINDS:  # they are not extensions: titles may have full stops
        shown = []
    return " ".join([f"{len(names):,}", *shown])


def _show(name: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in name)
    return without_marks(shorten(collapse_whitespace(printable), _MAX_NAME)).strip()


find_overview = KeptByView(_make_overview, most=_MAX_KEPT)
