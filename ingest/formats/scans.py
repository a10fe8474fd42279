"""Scanned pages and pictures: read in the OCR process, page by page; what was read is kept for later runs."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path
from pydantic import TypeAdapter, ValidationError

from arag.errors import InputError
from arag.ingest.formats.content import Content, FormatError, join_pages
from arag.system.files import delete, make_folder, written_whole
from arag.system.worker_process import RaisedInWorkerError, WorkerError, WorkerProcess
from arag.text.normalise import count

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
OCR_PACKAGE = "langgraph-arag[ocr]"

_PAGE = TypeAdapter(tuple[str, bool])  # the text of a page, and whether most of its lines could be read
_LAYOUT_VERSION = 1  # a change of how lines are put together makes all pages be read again
_MEMORY_BYTES = 3_000_000_000
_PAGE_SECONDS = 240  # of processor time, of which a dense page takes about 15
_HANG_SECONDS = 1_800  # by the clock
_COUNT_SECONDS = 60
_KEPT_SECONDS = 90 * 24 * 3600  # that a page is kept after it was used last


@dataclass
class ReadScans:
    """What OCR read of a file.

    Attributes:
        texts: By the numbers of pages, from 1. The text of a page on which nothing was found is empty.
        illegible: The numbers of pages of whose lines most could not be read.
        damage: Pages that could not be read, and why.
    """

    texts: dict[int, str] = field(default_factory=dict)
    illegible: list[int] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Phrases for the pages without text, and for those that are illegible."""
        empty = [number for number, text in self.texts.items() if not text and number not in self.illegible]
        phrases: list[str] = []
        if empty:
            phrases.append(f"{count(len(empty), 'page')} on which OCR found no text")
        if self.illegible:
            phrases.append(f"{count(len(self.illegible), 'page')} that OCR could not read (another script?)")
        return tuple(phrases)


def has_ocr() -> bool:
    """Return whether the extra `ocr` is installed."""
    return find_spec("rapidocr") is not None


def how_to_use_ocr() -> str:
    """Say how pictures are read, with the extra if it is not installed."""
    remedy = "use --ocr (in Python, ocr=True)"
    if has_ocr():
        return remedy
    return f"{remedy}, with the extra: pip install '{OCR_PACKAGE}'"


class ScanReader:
    """Reads pages by OCR, in a process of its own, whose memory and time are limited.

    The text of each page is kept in the user's cache folder, under the file's digest: an interrupted run goes on where
    it was, and unchanged files are not read again, whatever index they go into.

    Attributes:
        show_page: Called after each page.

    Raises:
        InputError: The extra is not installed.
    """

    def __init__(self) -> None:
        if not has_ocr():
            raise InputError(f"OCR needs an extra: pip install '{OCR_PACKAGE}'")
        self.show_page: Callable[[], None] = lambda: None
        self._child = WorkerProcess("arag.ingest.formats.ocr", memory_bytes=_MEMORY_BYTES)
        edition = f"rapidocr-{version('rapidocr')}-{_LAYOUT_VERSION}"
        self._cache = user_cache_path("arag", appauthor=False) / "ocr" / edition
        _prepare(self._cache)

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def read_pages(self, path: Path, numbers: Iterable[int]) -> ReadScans:
        """Read some pages of a file, whose numbers count from 1."""
        scans = ReadScans()
        folder = self._cache / _digest(path)
        for number in numbers:
            kept = folder / f"{number}.json"
            try:
                page = _find_kept(kept)
                if page is None:
                    page = self._call("read_page", path, number, _PAGE_SECONDS, seconds=_HANG_SECONDS)
                    _keep(kept, page)
                scans.texts[number], is_legible = page
                if not is_legible:
                    scans.illegible.append(number)
            except FormatError as error:
                scans.damage.append(f"page {number}: OCR failed: {error}")
            self.show_page()
        return scans

    def read_picture(self, path: Path) -> Content:
        """Read a picture, or each of those of a TIFF, as a page.

        Raises:
            FormatError: It cannot be read, or has no text.
        """
        if not path.stat().st_size:
            raise FormatError("the file is empty")
        numbers = range(1, self._call("count_pictures", path, seconds=_COUNT_SECONDS) + 1)
        scans = self.read_pages(path, numbers)
        if not any(scans.texts.values()):
            raise FormatError("; ".join([*scans.damage, *scans.left_out]))
        text, page_starts = join_pages([scans.texts.get(number, "") for number in numbers])
        return Content(
            title="",
            text=text,
            page_starts=page_starts,
            left_out=scans.left_out,
            damage=tuple(scans.damage),
            ocr_pages=tuple(number for number, page in scans.texts.items() if page),
        )

    def _call(self, function: str, path: Path, *arguments: float, seconds: float) -> Any:
        try:
            return self._child.call(function, str(path.absolute()), *arguments, seconds=seconds)
        except RaisedInWorkerError as error:
            raise FormatError(str(error)) from error
        except WorkerError as error:
            self._child.close()  # the next call starts it again
            raise FormatError(str(error)) from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find_kept(file: Path) -> Sequence[Any] | None:
    """Return what was read before on a page, and note that it was used."""
    try:
        page = _PAGE.validate_json(file.read_bytes())
        os.utime(file)
    except (OSError, ValidationError):
        return None
    return page


def _keep(file: Path, page: Sequence[Any]) -> None:
    """Keep what was read on a page; without a place for it, the page is read again next time."""
    with suppress(OSError):
        make_folder(file.parent)
        with written_whole(file) as out:
            out.write(_PAGE.dump_json((page[0], page[1])))


def _prepare(folder: Path) -> None:
    """Make the folder for what is read, for this user alone; delete what was not used for long, and other versions'."""
    with suppress(OSError):
        make_folder(folder)
        folder.parent.chmod(0o700)
    oldest = time.time() - _KEPT_SECONDS
    for other in folder.parent.glob("*"):
        if other != folder:
            delete(other)
    for file in folder.glob("*/*.json"):
        with suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()
                file.parent.rmdir()  # if it is empty
