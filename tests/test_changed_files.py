"""Damaged files: whatever was changed in a file, it is read or refused, and the process that reads it goes on."""

from __future__ import annotations

import io
import random
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from arag.ingest.formats import Readers
from arag.ingest.formats.content import FormatError

FILES = sorted((Path(__file__).parent.parent / "examples" / "office").iterdir())
PIECES = [b"<", b"/>", b'"', b"&", b"\0", b"-1", b"99999999999", b"<a>", b"]]>", b"\xff\xfe", b"</w:p>"]


def spoiled(data, choose):
    """Return data with some bits changed, or a part left out, repeated or put in."""
    start, end = sorted(choose.randrange(len(data) or 1) for _ in range(2))
    if choose.random() < 0.25:
        changed = bytearray(data)
        for _ in range(choose.randint(1, 20)):
            changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
        return bytes(changed)
    piece = choose.choice([*PIECES, data[start:end]]) * choose.choice([0, 1, 30, 500])
    return data[:start] + piece + choose.choice([data[start:], data[end:], b""])


def changed_file(path, choose):
    """Return a file's bytes with a change, in an archive mostly to one of its parts."""
    data = path.read_bytes()
    if not zipfile.is_zipfile(path) or choose.random() < 0.25:
        return spoiled(data, choose)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as changed:
        part = choose.choice([name for name in archive.namelist() if name.endswith((".xml", ".rels"))])
        for name in archive.namelist():
            changed.writestr(name, spoiled(archive.read(name), choose) if name == part else archive.read(name))
    return copy.getvalue()


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_changed_files_are_read_or_refused_and_hardly_any_ends_the_process(tmp_path, count):
    choose = random.Random(count)
    with Readers() as readers:
        processes = set()
        for number in range(count):
            path = tmp_path / f"changed{FILES[number % len(FILES)].suffix}"
            path.write_bytes(changed_file(FILES[number % len(FILES)], choose))
            with suppress(FormatError):
                readers.read(path)
            processes.add(readers._child._process and readers._child._process.pid)
        assert len(processes - {None}) <= 1 + count // 1_000
