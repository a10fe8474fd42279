"""Defaults of options, from the nearest `arag.toml`, or `[tool.arag]` in `pyproject.toml`, upwards from here.

Such a file may have come with a cloned repository. So it may only name an index below its own folder, and say how to
search it and how to cut documents. It cannot name what gets texts or keys (models, embedders, addresses), tell a model
what to do, raise the limits on what is read, or delete. A file of another user is not read: with it, that user could
have your documents written into a folder of theirs.
"""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from arag.errors import InputError
from arag.options import INDEX_VARIABLE
from arag.terminal import warn

_KEYS = {
    "index": str,
    "top_k": int,
    "max_steps": int,
    "tools": list,
    "chunk_tokens": int,
}
_NAMES = {str: "string", int: "integer", list: "array"}
_MOST_STEPS = 100  # each is paid for
_TABLES = {"arag.toml": (), "pyproject.toml": ("tool", "arag")}


def find_defaults(folder: Path) -> dict[str, Any]:
    """Return the defaults of the nearest file, in a folder or above it.

    Raises:
        InputError: The file cannot be read, or holds a key or a value that is not valid.
    """
    for place in (folder, *folder.parents):
        for name, tables in _TABLES.items():
            found = _read_table(place / name, tables)
            if found is not None:
                return _check(found, place / name)
    return {}


def spread(defaults: dict[str, Any], group: TyperGroup) -> dict[str, Any]:
    """Return defaults as a context's `default_map`: for each command, those that it has options for."""
    return {
        name: spread(defaults, command)
        if isinstance(command, TyperGroup)
        else {each.name: defaults[each.name] for each in command.params if each.name in defaults}
        for name, command in group.commands.items()
    }


def _read_table(file: Path, tables: tuple[str, ...]) -> Any:
    """Return a file's table of defaults; None if there is none, or if it is another user's."""
    try:
        link, status = file.lstat(), file.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    is_foreign = hasattr(os, "getuid") and not {link.st_uid, status.st_uid} <= {os.getuid(), 0}
    try:
        data = file.read_bytes()
        if tables and b"arag" not in data:  # most files are not for us, valid or not
            return None
        if is_foreign:
            warn(f"Note: {file} belongs to another user and is not read.")
            return None
        found: Any = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        if is_foreign:
            return None
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise InputError(f"{file} is not valid TOML: {error}") from error
    for table in tables:
        found = found.get(table) if isinstance(found, dict) else None
    return found


def _check(found: Any, file: Path) -> dict[str, Any]:
    """Return a table's values if they are valid; the index's path is relative to the file's folder."""
    if not isinstance(found, dict):
        raise InputError(f"{file}: arag is {found!r}: a table is needed")
    for key, value in found.items():
        if key not in _KEYS:
            raise InputError(
                f"{file}: the key {key!r} is not valid. Valid keys: {', '.join(_KEYS)}. Everything else, models and "
                "embedders too, is set by options and environment variables only"
            )
        if type(value) is not _KEYS[key]:
            raise InputError(f"{file}: {key} is {value!r}: its type must be {_NAMES[_KEYS[key]]}")
    if found.get("max_steps", 1) > _MOST_STEPS:
        raise InputError(f"{file}: max_steps is {found['max_steps']}: a file may set it to {_MOST_STEPS} at most")
    if "index" in found:
        if "://" in found["index"]:  # it may hold a password
            raise InputError(
                f"{file}: the index is an address: a file may only name a folder. Name it with --index or "
                f"{INDEX_VARIABLE}"
            )
        index = (file.parent / found["index"]).resolve()
        if not index.is_relative_to(file.parent.resolve()):
            raise InputError(
                f"{file}: the index {found['index']!r} is outside this file's folder: name it with --index or "
                f"{INDEX_VARIABLE}"
            )
        found["index"] = str(file.parent / found["index"])
    return found
