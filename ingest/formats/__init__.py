"""The formats of files: a reader for each extension."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Self, TypeAlias

from arag.errors import InputError
from arag.ingest.formats.compressed import GZIP, first_text, inner_path, unpacked
from arag.ingest.formats.content import (
    MAX_CHARACTERS,
    MAX_FILE_BYTES,
    Content,
    FormatError,
    clean_text,
    plain_letters,
    reason,
)
from arag.ingest.formats.kinds import MAILBOX, MANUALS, SAME_KINDS, find_kind, is_manual
from arag.ingest.formats.scans import PICTURES, ScanReader
from arag.ingest.formats.text import read_code, read_markdown, read_text
from arag.ingest.formats.web_folders import WebFolders
from arag.system.worker_process import RaisedInWorkerError, WorkerError, WorkerProcess
from arag.text.normalise import collapse_whitespace

Reader: TypeAlias = Callable[[Path], Content | str]
_AnyReader: TypeAlias = "Callable[..., Content | str] | str"  # a name: of one that runs in the child process

_HTML = "html.read_html"
_PDF = "pdf.reader.read_pdf"
_MANUAL = "manuals.read_manual"
_CODE = (
    ".bash .bat .cmake .css .gradle .jl .less .lua .m .php .pl .ps1 .py .pyi .r .rb .scss .sh .sql .tex .tf .zsh "
    ".c .cc .cpp .cs .dart .go .h .hpp .java .js .jsx .kt .mjs .proto .rs .scala .swift .ts .tsx .vue .zig "
    ".cfg .conf .ini .properties .toml .yaml .yml"
).split()
_OFFICE = "office.read_office"
_OFFICE_EXTENSIONS = ".docx .xlsx .pptx .odt .ods .odp .epub .rtf .doc .xls .ppt .msg".split()
# Readers that a file can make crash, hang or eat memory are named: see `arag.ingest.formats.worker`.
READERS: dict[str, _AnyReader] = {
    "": read_code,
    **dict.fromkeys((".txt", ".text", ".debian"), read_text),  # Debian's packages have a README.Debian
    **dict.fromkeys((".md", ".markdown", ".rst"), read_markdown),  # titles in rst are often underlined as in Markdown
    **dict.fromkeys((".rmd", ".qmd"), read_markdown),  # with code that R or Quarto runs
    **dict.fromkeys((".html", ".htm", ".xhtml"), _HTML),
    **dict.fromkeys(MANUALS, _MANUAL),
    ".pdf": _PDF,
    **dict.fromkeys((*_OFFICE_EXTENSIONS, *SAME_KINDS), _OFFICE),
    **dict.fromkeys((".eml", ".mht", ".mhtml", MAILBOX), "mail.read_mail"),
    **dict.fromkeys((".csv", ".tsv"), "tables.read_csv"),
    ".ipynb": "notebook.read_notebook",
    **dict.fromkeys(_CODE, read_code),
}
NOT_IN_GZIP = {*MANUALS, MAILBOX}  # the first may have neighbours, and the second has many documents
_WITH_ENCODING = (read_code, read_markdown, read_text, _HTML, "tables.read_csv")  # their files may not be in Unicode

_EXTENSION = re.compile(r"\.[^\s./\\]+")
# Such as README.SSL and CHANGES-2.10: what follows the name need not be an extension.
_START_OF_TEXT_NAME = re.compile(
    r"(?:README|NEWS|TODO|FAQ|INSTALL|HACKING|BUGS|COPYING|LICEN[CS]E|AUTHORS|HISTORY|History|CHANGES|Changes"
    r"|CHANGELOG|[Cc]hange[Ll]og)[._-](?!.*\.(?:json|jsonl|ndjson)$)"
)
_PLAIN = re.compile(r"(?!<|%!)[\S\s]")  # not XML, and not PostScript

_CHILD_MEMORY_BYTES = 1_000_000_000
# Processor time that a file may take in the child process: on a busy machine, a book of 1,000 pages takes long to read.
_SECONDS = 10  # for any file, with the start of the libraries
_SECONDS_PER_MB = 2
_MAX_SECONDS = 60
_HANG_SECONDS = 600  # by the clock: a child that waits for something takes no processor time


class Readers:
    """The readers of one run. Closing it ends the child process in which some of them run.

    Args:
        own: By extension, a function that reads a file, or the extension that this package reads in the same way:
            `{".srt": read_subtitles, ".log": ".txt"}`. The function gets the file's path and returns its text or
            `Content`; if it raises a ValueError, the message is the reason why the file is left out.
        encoding: Of text files that are not in Unicode and declare none.
        ocr: Whether scanned pages and pictures are read by OCR.

    Attributes:
        scans: Reads pages by OCR; None if that is not wanted.
        web_folders: Compares web pages.
        read_as: The kinds of the files whose names say something else, so far.

    Raises:
        InputError: An extension does not begin with a dot, there is no reader for one, or no such encoding; or the
            extra `ocr` is not installed.
    """

    def __init__(
        self,
        own: Mapping[str, Reader | str] | None = None,
        encoding: str = "",
        *,
        ocr: bool = False,
    ) -> None:
        _check_encoding(encoding)
        self._encoding = encoding
        self.scans = ScanReader() if ocr else None
        self._readers = dict(READERS)
        if self.scans is not None:
            self._readers |= dict.fromkeys(PICTURES, self.scans.read_picture)
        self._known = dict(self._readers)
        self._kinds = {extension: extension for extension in READERS}  # those that are read by the readers above
        for extension, reader in (own or {}).items():
            self._add(extension, reader)
        self._child = WorkerProcess("arag.ingest.formats.worker", memory_bytes=_CHILD_MEMORY_BYTES)
        self.read_as: dict[Path, str] = {}
        self.web_folders = WebFolders(self._is_web_page, self._read_web_page)

    def _add(self, extension: str, reader: Reader | str) -> None:
        if not _EXTENSION.fullmatch(extension):
            raise InputError(f"{extension!r} is not an extension: give one with its dot, such as .log, and without .gz")
        if not isinstance(reader, str):
            self._readers[extension.lower()] = reader
            self._kinds.pop(extension.lower(), None)
            return
        known = reader.lower()
        if known not in self._known:
            raise InputError(f"there is no reader for {reader!r}; there are readers for {' '.join(self.extensions)}")
        self._readers[extension.lower()] = self._known[known]
        self._kinds[extension.lower()] = known

    @property
    def extensions(self) -> tuple[str, ...]:
        """All extensions that can be read, without those of programs."""
        return tuple(extension for extension, reader in self._readers.items() if reader is not read_code)

    def knows(self, path: Path) -> bool:
        """Return whether there is a reader for a file as one document."""
        extension = self._extension_of(path, path)
        if extension == GZIP and extension not in self._readers:
            extension = self._extension_of(inner_path(path), path)
            return extension in self._readers.keys() - NOT_IN_GZIP
        reader = self._readers.get(extension)
        return is_manual(path) if reader == _MANUAL else reader is not None

    def _extension_of(self, name: Path, file: Path) -> str:
        """Return the extension of a name, or `.txt` if that is unknown, texts have such names, and the file has text.

        The file may be in gzip; the name is that of what it holds.
        """
        extension = name.suffix.lower()
        may_be_text = extension not in {*self._readers, GZIP} and _START_OF_TEXT_NAME.match(name.name)
        return ".txt" if may_be_text and _PLAIN.match(first_text(file)) else extension

    def is_mailbox(self, path: Path) -> bool:
        """Return whether a file holds many emails, which are documents of their own."""
        return self._find_kind(path) == MAILBOX

    def read_mail_at(self, path: Path, start: int, end: int) -> Content:
        """Return the content of one of the emails of a mailbox, between two offsets.

        Raises:
            FormatError: It cannot be read.
        """
        if end - start > MAX_FILE_BYTES:
            raise FormatError(f"more than {MAX_FILE_BYTES // 1_000_000} MB")
        try:
            return _clean(self._read_in_child("mail.read_mail_at", path, str(start), str(end)))
        except Exception as error:
            raise FormatError(reason(error)) from error

    def read(self, path: Path) -> Content:
        """Return the content of a file, with clean characters and line ends.

        Raises:
            FormatError: It cannot be read; the message says why, without its name.
        """
        try:
            return _clean(self._read(path, path))
        except Exception as error:
            raise FormatError(reason(error)) from error

    def _read(self, path: Path, place: Path) -> Content | str:
        """Read a file. What was unpacked to another path belongs to the folder of the place at which it was found."""
        extension = path.suffix.lower()
        if extension == GZIP and extension not in self._readers:
            return self._read_in_gzip(path)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FormatError(f"more than {MAX_FILE_BYTES // 1_000_000} MB")
        kind = self._find_kind(path)
        reader = READERS[kind] if kind else self._readers[self._extension_of(path, path)]
        if reader == _PDF and self.scans is not None:
            return self._read_pdf_with_ocr(path, self.scans)
        if reader == _HTML:
            return self.web_folders.clean(self._read_web_page(path), place)
        options: list[str] = []
        if reader in _WITH_ENCODING:
            options = [self._encoding]
        elif reader == _OFFICE:
            options = [kind]
        if isinstance(reader, str):
            return self._read_in_child(reader, path, *options)
        return reader(path, *options)

    def _read_in_gzip(self, path: Path) -> Content | str:
        with unpacked(path) as inner:
            try:
                if self.is_mailbox(inner):
                    raise FormatError("a mailbox in a gzip archive: unpack it")
                content = self._read(inner, path)
            finally:
                kind = self.read_as.pop(inner, "")
        if kind:
            self.read_as[path] = kind
        return content

    def _read_pdf_with_ocr(self, path: Path, scans: ScanReader) -> Content:
        try:
            numbers = self._child.call(
                "find_scans",
                str(path.absolute()),
                _processor_seconds(path),
                seconds=_HANG_SECONDS,
            )
        except (RaisedInWorkerError, WorkerError):  # reading it says why
            numbers = []
        read = scans.read_pages(path, numbers)
        content = self._read_in_child(_PDF, path, json.dumps(read.texts))
        return replace(
            content,
            left_out=(*content.left_out, *read.left_out),
            damage=(*content.damage, *read.damage),
        )

    def _find_kind(self, path: Path) -> str:
        """Return the extension that a file should have; an empty string if a reader of the user's, or OCR, reads it."""
        extension = self._kinds.get(self._extension_of(path, path))
        if extension not in READERS:  # a picture has none of these readers, either
            return ""
        is_program = extension != "" and READERS[extension] is read_code
        kind = find_kind(path, extension, is_program=is_program)
        if kind not in READERS:
            return extension
        if kind != extension:
            self.read_as[path] = kind
        return kind

    def _is_web_page(self, path: Path) -> bool:
        return self._readers.get(path.suffix.lower()) == _HTML

    def _read_web_page(self, path: Path) -> Content:
        return self._read_in_child(_HTML, path, self._encoding)

    def take_seconds_ahead(self) -> float:
        """Return the seconds, since the last call, in which pages were compared whose turn may not have come."""
        return self.web_folders.take_seconds_ahead()

    def _read_in_child(self, reader: str, path: Path, *options: str, again: bool = True) -> Content:
        limit = _processor_seconds(path)
        start = time.monotonic()
        try:
            fields = self._child.call(
                "read",
                reader,
                str(path.absolute()),
                limit,
                *options,
                seconds=_HANG_SECONDS,
            )
        except RaisedInWorkerError as error:
            raise FormatError(str(error)) from error
        except WorkerError as error:
            self._child.close()  # the next call starts it again
            is_early = time.monotonic() - start < limit
            if again and is_early:  # earlier files may have filled its memory
                return self._read_in_child(reader, path, *options, again=False)
            raise FormatError(f"cannot be read: {error}") from error
        return Content(**fields)

    def close(self) -> None:
        """End the child processes."""
        self._child.close()
        if self.scans is not None:
            self.scans.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_encoding(encoding: str) -> None:
    try:
        "".encode(encoding or "utf-8")
    except (LookupError, ValueError) as error:
        raise InputError(f"{error}; encodings are named as in Python: windows-1252, shift_jis, gb18030") from error


def _processor_seconds(path: Path) -> float:
    """Return how much processor time a file may take in the child process, by its size."""
    megabytes = path.stat().st_size / 1_000_000
    return min(_SECONDS + round(_SECONDS_PER_MB * megabytes), _MAX_SECONDS)


def _clean(content: Content | str) -> Content:
    """Return the content with clean characters."""
    if not isinstance(content, Content):
        content = Content(title="", text=content)
    if len(content.text) > MAX_CHARACTERS:
        raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")
    pages = [plain_letters(clean_text(page)) for page in _split_pages(content)]
    lengths = [len(page) for page in pages]  # a clean page may be shorter
    return replace(
        content,
        title=collapse_whitespace(plain_letters(clean_text(content.title))),
        text="".join(pages),
        page_starts=tuple(accumulate(lengths[:-1])),
        left_out=tuple(collapse_whitespace(clean_text(part)) for part in content.left_out),
        damage=tuple(content.damage),  # the child process returns lists
        ocr_pages=tuple(content.ocr_pages),
        barred_lines=tuple(plain_letters(clean_text(line)) for line in content.barred_lines),
    )


def _split_pages(content: Content) -> list[str]:
    """Return the text before the first page, which is empty in most files, and the text of each page."""
    bounds = [0, *content.page_starts, len(content.text)]
    return [content.text[start:end] for start, end in pairwise(bounds)]
