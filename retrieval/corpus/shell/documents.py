"""The documents of an index as files: their paths, and what a path or a pattern names."""

from __future__ import annotations

import hashlib
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import re2

from arag.errors import InputError
from arag.text.normalise import shorten

ROOT = "/corpus"

_MAX_COMPONENT_BYTES = 200  # of a file's or folder's name: the interpreter has 255
_MAX_DEPTH = 30  # folders above a file: the interpreter has 100
_MAX_SHOWN = 100  # characters of a pattern in a message
# Most ids; to look at each of their characters would take longer.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_][\w .,+=@()-]{0,40}/){0,9}[A-Za-z0-9_][\w .,+=@()-]{0,40}")
GLOB = re.compile(r"[*?\[]")
_GLOB_PART = re.compile(r"\*\*/|\*\*|\[[!^]?\]?[^\]/]*\]|\\.|.", re.DOTALL)
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_AMBIGUOUS_PERCENT = re.compile(r"%(?=[0-9A-Fa-f]{2}|$)")


class Documents:
    """The documents of an index, each with a path of its own.

    A document's path is its id, or its file's path if that was moved, where a shell can use that. What it cannot use,
    or what would make `path:number:text` ambiguous, is percent-encoded: colons, invisible characters, `..`, an empty
    name.

    Args:
        document_ids: The ids of all documents.
        moved: The paths of files that were moved, by the ids of their documents.

    Attributes:
        ids: The id of each path, in the order of paths.
        paths: The paths, sorted.
    """

    def __init__(self, document_ids: Iterable[str], moved: Mapping[str, str]) -> None:
        wanted = {document_id: _make_path(moved.get(document_id, document_id)) for document_id in document_ids}
        folders: set[str] = set()
        for path in wanted.values():
            folder = path.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        self.ids: dict[str, str] = {}
        self._path_by_id: dict[str, str] = {}
        for document_id, path in sorted(wanted.items()):
            own = path
            while own in folders or own in self.ids:  # `a` beside `a/b`
                own += "%"
            self.ids[own] = document_id
            self._path_by_id[document_id] = own
        self.paths: Sequence[str] = sorted(self.ids)
        self.folders = folders
        # The places of documents by their ids; None if paths are in the order of ids, as nearly always.
        self.places_by_id: dict[str, int] | None = None
        in_order = [self.ids[path] for path in self.paths]
        if in_order != sorted(in_order):
            self.places_by_id = {document_id: place for place, document_id in enumerate(in_order)}

    def path(self, document_id: str) -> str:
        """Return a document's path; a writer may have added the document since."""
        return self._path_by_id.get(document_id) or _make_path(document_id)

    def place(self, path: str) -> int:
        """Return a path's place among all paths."""
        return bisect_left(self.paths, path)

    def has(self, document_id: str) -> bool:
        """Return whether there is a document with this id."""
        return document_id in self._path_by_id

    def resolve(self, name: str, folder: str) -> list[str] | None:
        """Return the paths that a name stands for: a document, all below a folder, or a pattern's.

        Args:
            name: A path, an id, a folder or a pattern.
            folder: The folder that the shell is in.

        Returns:
            The paths, or None if there is no such document or folder.
        """
        for base in dict.fromkeys([folder, ROOT]):
            found = self._resolve_below(posixpath.normpath(posixpath.join(base, name)))
            if found is not None:
                return found
        if name in self._path_by_id:
            return [self._path_by_id[name]]
        return None

    def _resolve_below(self, place: str) -> list[str] | None:
        if place in {ROOT, "/"}:
            return list(self.paths)
        path = place.removeprefix(f"{ROOT}/")
        if path == place:
            return None
        if path in self.ids:
            return [path]
        if path in self.folders:
            return self.below(path)
        if GLOB.search(path):
            return self.matching(path) or None
        return None

    def below(self, folder: str) -> list[str]:
        """Return the paths below a folder; of an empty name, all."""
        if not folder:
            return list(self.paths)
        prefix = f"{folder}/"
        start = bisect_left(self.paths, prefix)
        end = bisect_left(self.paths, f"{folder}0")  # "0" comes next after "/"
        return list(self.paths[start:end])

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that a pattern matches, and all below the folders that it matches."""
        try:
            regex = compile_glob(pattern)
        except InputError:  # as in a shell, it matches nothing
            return []
        found: dict[str, None] = {}
        for path in self.paths:
            if regex.fullmatch(path):
                found[path] = None
        for name in sorted(self.folders):
            if regex.fullmatch(name):
                found.update(dict.fromkeys(self.below(name)))
        return sorted(found)


def compile_glob(pattern: str, *, ignore_case: bool = False) -> Any:
    """Return the regular expression of a shell's pattern: `*` stays in a folder, `**` does not, `{a,b}` is a choice."""
    parts: list[str] = []
    depth = 0  # of braces
    for match in _GLOB_PART.finditer(pattern):
        part = match[0]
        if part == "{":
            depth += 1
            parts.append("(?:")
        elif part == "}" and depth:
            depth -= 1
            parts.append(")")
        elif part == "," and depth:
            parts.append("|")
        elif part in _WILDCARDS:
            parts.append(_WILDCARDS[part])
        elif part.startswith("[") and len(part) > 1:
            parts.append(part.replace("[!", "[^", 1))
        elif part.startswith("\\") and len(part) > 1:
            parts.append(re.escape(part[1:]))
        else:
            parts.append(re.escape(part))
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        return re2.compile("".join(parts) + ")" * depth, options)
    except re2.error as error:
        raise InputError(f"the pattern {shorten(repr(pattern), _MAX_SHOWN)} is not valid") from error


def _make_path(document_id: str) -> str:
    if _PLAIN.fullmatch(document_id):
        return document_id
    names = document_id.split("/")
    if len(names) > _MAX_DEPTH:
        names = [*names[:_MAX_DEPTH], "%2F".join(names[_MAX_DEPTH:])]
    return "/".join(map(_make_name, names))


def _make_name(name: str) -> str:
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    if not name:
        return "%"
    encoded = _AMBIGUOUS_PERCENT.sub("%25", name)
    encoded = "".join(_encode(c) if c == ":" or not c.isprintable() else c for c in encoded)
    if encoded.startswith("-"):  # commands would take it for an option
        encoded = f"%2D{encoded[1:]}"
    if len(encoded.encode()) > _MAX_COMPONENT_BYTES:
        digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        cut = encoded.encode()[: _MAX_COMPONENT_BYTES - len(digest) - 1].decode(errors="ignore")
        encoded = f"{cut}%{digest}"
    return encoded


def _encode(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode(errors="replace"))
