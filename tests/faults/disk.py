"""What a disk may hold after the power went: the recorded changes to a folder, up to any of them, made again in part.

A file keeps what it was synced with; a folder keeps the entries that it had when it was synced. Of what came later a
disk may have kept all, nothing, or a part, and files and folders differ in that: file systems write them apart.
"""

from __future__ import annotations

import os
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

from faults.driver import CREATE, MKDIR, RENAME, RESIZE, SYNC, UNLINK, WRITE

_HEAD = struct.Struct("<IIIIqQ")
_SECTOR = 512


@dataclass(frozen=True)
class Change:
    """A recorded change; `at` is the offset of a write, the size of a resize, and 0 for an open that empties."""

    kind: int
    path: str
    other: str
    at: int
    data: bytes


def read_log(file):
    """Read what the shim has recorded."""
    content, at, changes = Path(file).read_bytes(), 0, []
    while at < len(content):
        kind, path, other, _, offset, size = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        parts = []
        for length in (path, other, size):
            parts.append(content[at : at + length])
            at += length
        changes.append(Change(kind, os.fsdecode(parts[0]), os.fsdecode(parts[1]), offset, parts[2]))
    return changes


@dataclass(eq=False)
class File:
    synced: bytes = b""
    later: list[tuple[int, bytes | None]] = field(default_factory=list)  # writes, and None at a size

    def content(self, later):
        content = bytearray(self.synced)
        for at, data in later:
            end = at if data is None else at + len(data)
            if len(content) < end:
                content.extend(bytes(end - len(content)))
            if data is None:
                del content[at:]
            else:
                content[at:end] = data
        return bytes(content)


@dataclass(eq=False)
class Folder:
    synced: dict[str, File | Folder] = field(default_factory=dict)
    later: list[dict[str, File | Folder | None]] = field(default_factory=list)  # entries made, and None for one gone

    def entries(self, later):
        entries = dict(self.synced)
        for change in later:
            entries.update(change)
        return {name: node for name, node in entries.items() if node is not None}


def nothing(later, draw):
    return []


def everything(later, draw):
    return later


def beginning(later, draw):
    """What was done first."""
    return later[: draw.randint(0, len(later))]


def any_part(later, draw):
    """Any of the writes, the last of them torn."""
    kept = [change for change in later if draw.random() < 0.5]
    if kept and kept[-1][1] is not None and len(kept[-1][1]) > _SECTOR:
        at, data = kept[-1]
        kept[-1] = (at, data[: draw.randrange(0, len(data), _SECTOR)])
    return kept


def lengths(later, draw):
    """The files are as long as they were, and hold zeros there."""
    return [(at, None) if data is None else (at, bytes(len(data))) for at, data in later]


# What is kept of the entries of folders, and of the contents of files.
LOSSES = {
    "all is kept": (everything, everything),
    "nothing unsynced is kept": (nothing, nothing),
    "only names are kept": (everything, nothing),
    "names and lengths are kept": (everything, lengths),
    "only contents are kept": (nothing, everything),
    "some of both is kept": (beginning, any_part),
    "some of the names and all contents are kept": (beginning, everything),
}


class Disk:
    """A folder whose changes are made one by one.

    Args:
        folder: The folder, as the record names it; what is below it now is where it begins.
    """

    def __init__(self, folder):
        self._folder = folder
        self._root = _read(folder) if folder.is_dir() else Folder()

    def make(self, change):
        """Make a change."""
        parent, name = self._find(Path(change.path).parent), Path(change.path).name
        node = self._find(change.path)
        if node is None and change.kind in (WRITE, RESIZE, SYNC):
            return  # of a file that was deleted and is still open
        if change.kind == CREATE:
            if node is None:
                parent.later.append({name: File()})
            elif change.at == 0:
                node.later.append((0, None))
        elif change.kind == MKDIR:
            parent.later.append({name: Folder()})
        elif change.kind == WRITE:
            node.later.append((change.at, change.data))
        elif change.kind == RESIZE:
            node.later.append((change.at, None))
        elif change.kind == UNLINK:
            parent.later.append({name: None})
        elif change.kind == RENAME:
            target = self._find(Path(change.other).parent)
            assert target is parent, "only names within a folder change"
            parent.later.append({name: None, Path(change.other).name: node})
        elif isinstance(node, File):
            node.synced, node.later = node.content(node.later), []
        else:
            node.synced, node.later = node.entries(node.later), []

    def after(self, loss, seed=0):
        """Return what is on the disk, by path, after a loss: the bytes of files, None for folders."""
        of_names, of_contents = LOSSES[loss]
        draw = random.Random(seed)
        found = {}

        def look(folder, path):
            for name, node in sorted(folder.entries(of_names(folder.later, draw)).items()):
                if isinstance(node, Folder):
                    found[f"{path}{name}"] = None
                    look(node, f"{path}{name}/")
                else:
                    found[f"{path}{name}"] = node.content(of_contents(node.later, draw))

        look(self._root, "")
        return found

    def _find(self, path):
        if not Path(path).is_relative_to(self._folder):
            return Folder()  # that the folder itself is in
        node = self._root
        for name in Path(path).relative_to(self._folder).parts:
            node = node and node.entries(node.later).get(name)
        return node


def write(found, folder):
    """Write what is on a disk into a new folder."""
    folder.mkdir(parents=True)
    for path, content in found.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def _read(path):
    if path.is_dir():
        return Folder({entry.name: _read(entry) for entry in path.iterdir()})
    return File(path.read_bytes())
