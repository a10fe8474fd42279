"""The formats of files: a reader for each ending."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path, PurePath
from typing import Self, TypeAlias

from arag.errors import InputError
from arag.ingest.formats.content import MAX_CHARACTERS, MAX_FILE_BYTES, Content, FormatError, clean_text, reason
from arag.ingest.formats.repeats import find_web_keepers
from arag.ingest.formats.text import read_code, read_markdown, read_text
from arag.system.worker_process import RaisedInWorkerError, WorkerError, WorkerProcess
from arag.text.normalise import collapse_whitespace

Reader: TypeAlias = Callable[[Path], Content | str]
_AnyReader: TypeAlias = "Callable[..., Content | str] | str"  # a name stands for one that runs in the child process

_CODE = (
    ".bash .bat .cmake .css .gradle .jl .less .lua .m .php .pl .ps1 .py .pyi .r .rb .scss .sh .sql .tex .tf .zsh "
    ".c .cc .cpp .cs .dart .go .h .hpp .java .js .jsx .kt .mjs .proto .rs .scala .swift .ts .tsx .vue .zig "
    ".cfg .conf .ini .properties .toml .yaml .yml"
).split()
_OFFICE = ".docx .docm .xlsx .xlsm .pptx .pptm .odt .ods .odp .epub .rtf .doc .xls .ppt .msg".split()
# A name stands for a reader that a file can make crash, hang or eat memory: see `arag.ingest.formats.worker`.
READERS: dict[str, _AnyReader] = {
    "": read_code,
    ".txt": read_text,
    **dict.fromkeys((".md", ".markdown", ".rst"), read_markdown),  # titles in rst are often underlined as in Markdown
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html.read_html"),
    ".pdf": "pdf.read_pdf",
    **dict.fromkeys(_OFFICE, "office.read_office"),
    ".eml": "mail.read_mail",
    **dict.fromkeys((".csv", ".tsv"), "tables.read_csv"),
    ".ipynb": "text.read_notebook",
    **dict.fromkeys(_CODE, read_code),
}

_TEXTS = (read_code, read_markdown, read_text, "html.read_html", "tables.read_csv")  # whose encoding may be unknown

_CHILD_MEMORY_BYTES = 1_000_000_000
# Processor time that a file may take in the child process: on a busy machine, a book of 1,000 pages takes long to read.
_SECONDS, _SECONDS_PER_MB, _MAX_SECONDS = 10, 2, 60
_HANG_SECONDS = 600


class Readers:
    """The readers of one run. Closing it ends the child process in which some of them run.

    Args:
        own: By ending, a function that reads a file, or the ending that stands for a reader of this package:
            `{".srt": read_subtitles, ".log": ".txt"}`. The function gets the file's path and returns its text or
            `Content`; if it raises a ValueError, the message is the reason why the file is left out.
        encoding: Of text files that are not in Unicode and declare none.

    Raises:
        InputError: An ending does not begin with a dot, there is no reader for one, or no such encoding.
    """

    def __init__(self, own: Mapping[str, Reader | str] | None = None, encoding: str = "") -> None:
        try:
            "".encode(encoding or "utf-8")
        except (LookupError, ValueError) as error:
            raise InputError(f"{error}; encodings are named as in Python: windows-1252, shift_jis, gb18030") from error
        self._encoding = encoding
        self._readers = dict(READERS)
        for ending, reader in (own or {}).items():
            if not re.fullmatch(r"\.[^\s./\\]+", ending):
                raise InputError(f"{ending!r} is not an ending: give one with its dot, such as .log")
            if isinstance(reader, str) and reader.lower() not in READERS:
                raise InputError(f"there is no reader for {reader!r}; there are readers for {' '.join(self.endings)}")
            self._readers[ending.lower()] = READERS[reader.lower()] if isinstance(reader, str) else reader
        self._child = WorkerProcess("arag.ingest.formats.worker", memory_bytes=_CHILD_MEMORY_BYTES)
        self._keepers: dict[Path, dict[str, Path]] = {}  # by folder

    @property
    def endings(self) -> tuple[str, ...]:
        """All endings that can be read, without those of programs."""
        return tuple(ending for ending, reader in self._readers.items() if reader is not read_code)

    def knows(self, path: PurePath) -> bool:
        """Return whether there is a reader for a file."""
        return path.suffix.lower() in self._readers

    def read(self, path: Path) -> Content:
        """Return what a file holds, with clean characters and line ends.

        Raises:
            FormatError: It cannot be read; the message says why, without its name.
        """
        try:
            return _clean(self._read(path))
        except Exception as error:
            raise FormatError(reason(error)) from error

    def _read(self, path: Path) -> Content | str:
        reader = self._readers[path.suffix.lower()]
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FormatError(f"more than {MAX_FILE_BYTES // 1_000_000} MB")
        options = [self._encoding] if reader in _TEXTS else []
        if callable(reader):
            return reader(path, *options)
        content = self._read_in_child(str(reader), path, *options)
        return self._without_repeats(content, path) if reader == READERS[".html"] else content

    def _without_repeats(self, content: Content, path: Path) -> Content:
        """Return a web page without what another page of its folder keeps for all."""
        if path.parent not in self._keepers:
            files = path.parent.iterdir()
            pages = [file for file in files if self._readers.get(file.suffix.lower()) == READERS[".html"]]
            self._keepers[path.parent] = find_web_keepers(
                pages, lambda page: self._read_in_child("html.read_html", page, self._encoding)
            )
        keepers = self._keepers[path.parent]
        blocks = [block for block in content.text.split("\n\n") if keepers.get(block, path) == path]
        return replace(content, text="\n\n".join(blocks) or content.text)

    def _read_in_child(self, reader: str, path: Path, *options: str, again: bool = True) -> Content:
        size = path.stat().st_size
        limit = min(_SECONDS + round(_SECONDS_PER_MB * size / 1_000_000), _MAX_SECONDS)
        start = time.monotonic()
        try:
            fields = self._child.call("read", reader, str(path.absolute()), limit, *options, seconds=_HANG_SECONDS)
            return Content(**fields)
        except RaisedInWorkerError as error:
            raise FormatError(str(error)) from error
        except WorkerError as error:
            self._child.close()  # the next call starts it again
            if again and time.monotonic() - start < limit:  # what earlier files left may have filled its memory
                return self._read_in_child(reader, path, *options, again=False)
            raise FormatError(f"cannot be read: {error}") from error

    def close(self) -> None:
        """End the child process."""
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _clean(content: Content | str) -> Content:
    """Return the content with clean characters, page by page, because what is cleaned can become shorter."""
    if not isinstance(content, Content):
        content = Content("", content)
    if len(content.text) > MAX_CHARACTERS:
        raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")
    bounds = pairwise([0, *content.page_starts, len(content.text)])
    pages = [clean_text(content.text[start:end]) for start, end in bounds]
    return replace(
        content,
        title=collapse_whitespace(clean_text(content.title)),
        text="".join(pages),
        page_starts=tuple(accumulate(map(len, pages[:-1]))),
    )
