"""Which file is read as what: one line for each format, and the readers of callers and of installed packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath
from typing import TypeAlias

from arag.errors import InputError
from arag.ingest.formats.content import Content, FormatError, clean_characters, read_code, read_text
from arag.ingest.formats.delimited import read_csv, read_tsv
from arag.ingest.formats.docx import read_docx
from arag.ingest.formats.epub import read_epub
from arag.ingest.formats.html import read_html
from arag.ingest.formats.mail import read_mail
from arag.ingest.formats.markdown import read_markdown
from arag.ingest.formats.notebook import read_notebook
from arag.ingest.formats.odt import read_odt
from arag.ingest.formats.package import Package
from arag.ingest.formats.pptx import read_pptx
from arag.ingest.formats.rst import read_rst
from arag.ingest.formats.xlsx import read_xlsx

ENTRY_POINTS = "arag.readers"

Reader: TypeAlias = Callable[[bytes], Content | str | Iterable[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be read.

    Attributes:
        name: The name for `--as`.
        endings: Of files, in lower case, separated by spaces.
        read: Reads the bytes of a file; None for packed files, and for PDFs and records, which are read from disk.
        unpack: Reads a packed file.
        all_text: Whether the bytes are text, so that their number is limited by `max_characters`.
    """

    name: str
    endings: str = ""
    read: Reader | None = None
    unpack: Callable[[Package], Content | Iterable[str]] | None = None
    all_text: bool = True


_SCRIPTS = ".bash .bat .cmake .css .gradle .jl .less .lua .m .php .pl .ps1 .py .pyi .r .rb .scss .sh .sql .tex .tf .zsh"
_PROGRAMS = ".c .cc .cpp .cs .dart .go .h .hpp .java .js .jsx .kt .mjs .proto .rs .scala .swift .ts .tsx .vue .zig"
_SETTINGS = ".cfg .conf .ini .properties .toml .yaml .yml"
FORMATS = (
    Format("text", ".txt", read_text),
    Format("markdown", ".md .markdown", read_markdown),
    Format("html", ".html .htm .xhtml", read_html),
    Format("pdf", ".pdf"),
    Format("docx", ".docx .docm", unpack=read_docx),
    Format("pptx", ".pptx .pptm", unpack=read_pptx),
    Format("xlsx", ".xlsx .xlsm", unpack=read_xlsx),
    Format("odt", ".odt", unpack=read_odt),
    Format("epub", ".epub", unpack=read_epub),
    Format("csv", ".csv", read_csv),
    Format("tsv", ".tsv", read_tsv),
    Format("rst", ".rst", read_rst),
    Format("mail", ".eml", read_mail, all_text=False),
    Format("notebook", ".ipynb", read_notebook, all_text=False),
    Format("json", ".json"),
    Format("jsonl", ".jsonl"),
    Format("code", f"{_SCRIPTS} {_PROGRAMS} {_SETTINGS}", read_code),
)
_BY_NAME = {format_.name: format_ for format_ in FORMATS}
_BY_ENDING = {ending: format_ for format_ in FORMATS for ending in format_.endings.split()}
_ENDING = re.compile(r"\.[^\s./\\]+")

READABLE_SUFFIXES: tuple[str, ...] = tuple(_BY_ENDING)

_registered: dict[str, Format] = {}


def reader(*endings: str) -> Callable[[Reader], Reader]:
    r"""Register a function that reads files with these endings, in this process.

    The function gets the bytes of a file. It returns the text, or the pieces of the text, or an
    `arag.ingest.formats.content.Content` with a title, metadata and pages. If it raises an error, the file is left
    out; the message of a ValueError is the reason. It replaces the reader that these endings have.

    Args:
        endings: Each with its dot, such as `.srt`.

    Raises:
        InputError: An ending is not a dot and letters.

    Example:
        >>> from pathlib import Path
        >>> from arag import ingest, reader
        >>> @reader(".srt")
        ... def read_subtitles(data: bytes) -> str:
        ...     lines = data.decode().splitlines()
        ...     return " ".join(line for line in lines if line and not line[0].isdigit())
        >>> _ = Path("film.srt").write_text("1\n00:00:01,000 --> 00:00:02,500\nThe lamp is lit.\n")
        >>> with ingest("film.srt", "films") as films:
        ...     films.read("film.srt:0").chunks[0].text
        'The lamp is lit.'
    """
    checked = [_check_ending(ending) for ending in endings]

    def register(read: Reader) -> Reader:
        for ending in checked:
            _registered[ending] = _own_format(ending, read)
        return read

    return register


class Readers:
    """The readers of one run: those that are given for it, those registered, the built-in, those of packages.

    Args:
        given: By ending, the name of a format (`{".log": "text"}`) or a function as for `reader`.

    Raises:
        InputError: An ending or a name is not valid.
    """

    def __init__(self, given: Mapping[str, str | Reader] | None = None) -> None:
        self._given = {
            _check_ending(ending): _named(read) if isinstance(read, str) else _own_format(ending, read)
            for ending, read in (given or {}).items()
        }

    def knows(self, path: PurePath) -> bool:
        """Return whether there is a reader for a file."""
        ending = path.suffix.lower()
        return self._find(ending) is not None or ending in _offered()

    def find(self, path: PurePath) -> Format:
        """Return how a file is read.

        Raises:
            FormatError: The reader of an installed package cannot be loaded, or two packages have one.
        """
        ending = path.suffix.lower()
        return self._find(ending) or _load(ending)

    def endings(self) -> tuple[str, ...]:
        """Return all endings that can be read, without those of programs."""
        all_endings = dict.fromkeys([*READABLE_SUFFIXES, *_registered, *self._given, *_offered()])
        return tuple(ending for ending in all_endings if self._find(ending) is not _BY_NAME["code"])

    def _find(self, ending: str) -> Format | None:
        if not ending:
            return _BY_NAME["code"]
        return self._given.get(ending) or _registered.get(ending) or _BY_ENDING.get(ending)


def parse_as(values: Iterable[str]) -> dict[str, str]:
    """Return the endings and names of formats in `--as` options, such as `text:.log`.

    Raises:
        InputError: One is not a name, a colon and an ending.
    """
    found = {}
    for value in values:
        name, colon, ending = value.partition(":")
        if not colon:
            raise InputError(f"--as {value}: give a format and an ending, such as text:.log")
        found[ending] = name
    return found


def _named(name: str) -> Format:
    if name not in _BY_NAME:
        raise InputError(f"{clean_characters(name)!r} is not a format; valid formats are {' '.join(_BY_NAME)}")
    return _BY_NAME[name]


def _check_ending(ending: str) -> str:
    if not _ENDING.fullmatch(ending):
        raise InputError(f"{clean_characters(ending)!r} is not an ending: give one with its dot, such as .log")
    return ending.lower()


def _own_format(ending: str, read: Reader) -> Format:
    return Format("", ending, _guarded(read), all_text=False)


def _guarded(read: Reader) -> Reader:
    """Let what goes wrong in another's reader be the reason why a file is left out."""
    name = getattr(read, "__qualname__", type(read).__name__)

    def guarded(data: bytes) -> Content | str | Iterable[str]:
        with _reasons(name):
            found = read(data)
            if isinstance(found, Content) and not isinstance(found.text, str):
                raise TypeError(f"the text is {type(found.text).__name__}, not str")
        return found if isinstance(found, Content | str) else _guarded_pieces(found, name)

    return guarded


def _guarded_pieces(pieces: Iterable[str], name: str) -> Iterator[str]:
    with _reasons(name):
        for piece in pieces:
            if not isinstance(piece, str):
                raise TypeError(f"a piece of text is {type(piece).__name__}, not str")
            yield piece


@contextmanager
def _reasons(name: str) -> Iterator[None]:
    try:
        yield
    except FormatError:
        raise
    except Exception as error:  # another's code may raise anything, and the other files must still be read
        says_why = isinstance(error, ValueError) and str(error)
        raise FormatError(
            str(error) if says_why else f"its reader, {name}, failed: {type(error).__name__}: {error}"
        ) from error


@cache
def _offered() -> dict[str, list[EntryPoint]]:
    """Return the readers of installed packages, by ending; none is loaded."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        found.setdefault(f".{entry.name.lstrip('.').lower()}", []).append(entry)
    return found


@cache
def _load(ending: str) -> Format:
    entries = _offered()[ending]
    packages = " and ".join(sorted({entry.dist.name if entry.dist else entry.value for entry in entries}))
    if len(entries) > 1:
        raise FormatError(f"there are several readers for {ending}, of {packages}: uninstall all but one")
    try:
        read = entries[0].load()
    except Exception as error:  # another package's code may raise anything when it is imported
        reason = f"{type(error).__name__}: {error}"
        raise FormatError(f"the reader for {ending} of the package {packages} cannot be loaded: {reason}") from error
    if not callable(read):
        raise FormatError(f"the reader for {ending} of the package {packages} is not a function")
    return _own_format(ending, read)
