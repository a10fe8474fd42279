"""A short list of what a corpus holds, for a model's prompt."""

from __future__ import annotations

from pathlib import PurePosixPath
from threading import Lock
from weakref import WeakKeyDictionary

from arag.retrieval.storage.contract import View
from arag.text.normalise import collapse_whitespace, count, shorten
from arag.text.tokens import count_tokens

_MAX_NAMES = 60
_MAX_TOKENS = 120  # a model pays for them in every round
_MAX_FOLDERS = 12
_MAX_NAME = 60  # characters
_NO_FOLDER = "."

_overviews: WeakKeyDictionary[View, str] = WeakKeyDictionary()
_lock = Lock()


def find_overview(view: View) -> str:
    """Return the names of all documents of a small index, or the folders of a large one with how many they hold.

    It is made once for each view.
    """
    with _lock:
        known = _overviews.get(view)
    if known is None:
        known = _make_overview(view.document_ids())
        with _lock:
            _overviews[view] = known
    return known


def _make_overview(document_ids: list[str]) -> str:
    total = count(len(document_ids), "document")
    folders = _group_by_folder(document_ids)
    if len(document_ids) <= _MAX_NAMES:
        text = f"{total}: {_list_names(folders)}"
        if count_tokens(text) <= _MAX_TOKENS:
            return text
    return f"{total}: {_count_in_folders(folders)}"


def _group_by_folder(document_ids: list[str]) -> dict[str, list[str]]:
    """Return the names of documents without their folders, by folder."""
    folders: dict[str, list[str]] = {}
    for document_id in document_ids:
        path = PurePosixPath(document_id)
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
    """Return the largest folders with their documents by kind and an example: `ships/ (12 md, such as a.md)`."""
    largest_first = sorted(folders, key=lambda folder: (-len(folders[folder]), folder))
    parts: list[str] = []
    tokens = 0
    for folder in largest_first[:_MAX_FOLDERS]:
        names = folders[folder]
        part = f"{_show(folder)}/ ({_count_kinds(names)}, such as {_show(names[0])})"
        tokens += count_tokens(part)
        if parts and tokens > _MAX_TOKENS:
            break
        parts.append(part)
    further = len(folders) - len(parts)
    if further:
        parts.append(f"and {count(further, 'further folder')}")
    return ", ".join(parts)


def _count_kinds(names: list[str]) -> str:
    """Return how many names have each extension, the most frequent first."""
    counts: dict[str, int] = {}
    for name in names:
        kind = PurePosixPath(name).suffix[1:] or "without extension"
        counts[kind] = counts.get(kind, 0) + 1
    if len(counts) > 4:  # they are not extensions: titles may have a full stop
        return str(len(names))
    most_first = sorted(counts, key=lambda kind: (-counts[kind], kind))
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in most_first)


def _show(name: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in name)
    return shorten(collapse_whitespace(printable), _MAX_NAME)
