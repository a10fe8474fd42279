"""Lists the files and objects of an ingestion's sources: paths, folders, LangChain documents, dictionaries."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import TypeIs

from arag.errors import InputError
from arag.ingest.documents import Problem
from arag.ingest.formats import NOT_IN_GZIP, Readers
from arag.ingest.formats.compressed import first_text, inner_path
from arag.ingest.formats.content import FormatError, clean_characters, reason
from arag.ingest.formats.scans import PICTURES, how_to_use_ocr
from arag.ingest.ignoring import IgnoreRules, make_ignore_rules
from arag.ingest.records import RECORD_READERS
from arag.retrieval.storage.locations import is_index, looks_like_address

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument

    DocumentObject: TypeAlias = LangChainDocument | Mapping[str, Any]
    Source: TypeAlias = str | Path | DocumentObject
    Sources: TypeAlias = Source | Iterable[Source]

_VALID_SOURCES = (
    "sources must be paths, LangChain documents, dictionaries such as "
    '{"id": "1", "title": "A title", "text": "A text."}, or an iterable of them'
)
_NO_FILES = "contains no files that can be read"
_IN_PICTURES = "has no text but in pictures"
_MAX_REASONS = 5  # why the files of a folder are left out
_HIDDEN = (".", "~$")  # the start of such names; Office marks a file that is open with the second
_PAGES = {".html", ".htm", ".xhtml"}
_TABLES = {".tab"}  # with tabs between their cells
_MANUAL_PAGE = re.compile(r"^\.(?:TH|Dd) ", re.MULTILINE)
# What to do with texts that are full of markup.
_MARKUP_ADVICE = {
    (".docbook", ".dbk"): "convert it to .html, as pandoc does",
    (".page",): "convert it to .html, as yelp-build does",
    (".texi", ".texinfo"): "convert it to .html, as makeinfo does",
    (".ps", ".eps"): "convert it to .pdf",
}
# What to do with files of programs whose formats are not read.
_ADVICE = {
    (".7z", ".bz2", ".deb", ".rar", ".rpm", ".tar", ".tgz", ".xz", ".zip", ".zst"): "unpack it",
    (".hwp", ".indd", ".pages", ".pub", ".sxw", ".vsd", ".vsdx", ".wpd", ".wps"): "save it as .docx or .pdf",
    (".azw", ".azw3", ".djvu", ".dvi", ".mobi", ".oxps", ".ps", ".xps"): "convert it to .pdf or .epub",
    (".numbers", ".sxc", ".wk1", ".xlsb"): "save it as .xlsx",
    (".key", ".sxi"): "save it as .pptx or .pdf",
    (".accdb", ".db", ".dbf", ".mdb", ".parquet", ".sav", ".sqlite"): "export its tables as .csv",
    (".info",): "write its text with info --subnodes --output",
    (".pst", ".ost"): "export its emails as .mbox or .eml",
}


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file to read."""

    path: Path  # as the user names it
    id: str  # relative to the folder that was given
    real_path: str  # absolute, without links

    @property
    def size(self) -> int:
        """The file's bytes."""
        try:
            return self.path.stat().st_size
        except OSError:  # reported when the file is read
            return 0


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object given in Python."""

    item: DocumentObject
    place: str  # among the sources, for messages

    @property
    def size(self) -> int:
        """The characters of the object's text."""
        if not isinstance(self.item, Mapping):
            return len(self.item.page_content)
        text = self.item.get("text")
        return len(text) if isinstance(text, str) else 0


Listed: TypeAlias = ListedFile | ListedObject | Problem


class Listing:
    """The files and objects of an ingestion's sources.

    Hidden entries (a name that starts with "." or "~$") and the index itself are passed over. Links below a folder,
    other indexes and files without a reader are skipped and named. A file that is named twice is listed once.

    All items of a sequence are checked at once; items of another iterable are checked one by one, when they are read.

    Attributes:
        sizes: The bytes of each file, by its absolute path, and the characters of all objects, by an empty string. None
            if the sources can be iterated only once.
        folders: The absolute paths of the folders, without links.
        files: The absolute paths of all files, without links.
        failures: The absolute paths of the folders that could not be listed.
        ignored: The absolute paths of the entries that a rule leaves out, without links.
        skipped: The entries of folders that were skipped, and why.

    Raises:
        InputError: A path does not exist or has an unknown extension, a folder is an index or empty, no folder has
            anything to read, or a source has another type.
    """

    def __init__(
        self,
        sources: Sources,
        readers: Readers,
        target: Path | None = None,
        ignore: Iterable[str] = (),
        show_found: Callable[[int], None] = lambda _files: None,
    ) -> None:
        self.sizes: dict[str, int] | None = None
        self.folders: list[str] = []
        self.files: set[str] = set()
        self.failures: set[str] = set()
        self.ignored: set[str] = set()
        self.skipped: dict[Path, str] = {}
        self._readers = readers
        self._show_found = show_found
        self._found = 0
        self._ignore = make_ignore_rules(ignore)
        self._target = target.absolute() if target else None
        if isinstance(sources, str) or _is_object(sources) or not isinstance(sources, Iterable):
            sources = [sources]
        if isinstance(sources, Sequence):
            listed = list(self._list_all(sources))
            if sources and not listed:
                raise self._nothing_in(Path(sources[0]))
            self.sizes = _measure(listed)
            self._items: Iterable[Listed] = listed
        else:
            self._items = self._list_each(sources)

    def __iter__(self) -> Iterator[Listed]:
        return iter(self._items)

    def _list_all(self, sources: Sequence[Source]) -> Iterator[Listed]:
        for number, source in enumerate(sources):
            yield from self._list(source, f"sources[{number}]")

    def _list_each(self, sources: Iterable[Source]) -> Iterator[Listed]:
        """List sources one by one. A bad one is a problem and no error: others may have been written before it."""
        for number, source in enumerate(sources):
            place = f"sources[{number}]"
            try:
                listed = self._list(source, place)
            except InputError as error:
                name = str(source) if isinstance(source, str | Path) else place
                if looks_like_address(name):  # it may have a password
                    name = place
                listed = [Problem(name, str(error))]
            yield from listed

    def _list(self, source: Source, place: str) -> Sequence[Listed]:
        """Return an object, a file, or all files of a folder in sorted order, without those that are listed already."""
        if _is_object(source):
            return [ListedObject(source, place)]
        if not isinstance(source, str | Path):
            raise InputError(f"{place} is {type(source).__name__}; {_VALID_SOURCES}")
        _check_path(source, place)
        path = Path(source)
        if path.is_dir():
            listed = self._list_folder(path)
        elif path.is_file():
            listed = self._list_file(path)
        else:
            raise InputError(f"{_show(path)} is neither a file nor a folder")
        return self._drop_repeats(listed)

    def _list_file(self, path: Path) -> list[Listed]:
        if not self._knows(path):
            raise self._unknown_extension(path)
        return [ListedFile(path, path.name, _real_path(path))]

    def _list_folder(self, path: Path) -> list[Listed]:
        if is_index(path):
            raise InputError(f"{_show(path)} is an index: give the documents that it was made from")
        if path.absolute() == self._target:  # as an index, it could not be ingested again
            raise InputError(f"{_show(path)} holds the documents: name another folder for the index")
        self.folders.append(_real_path(path))
        self._readers.web_folders.tops.append(path)
        listed = list(self._walk(path, "", self._ignore))
        if not listed and not self._left_out_of(path):  # it is empty: its disk may be missing
            raise InputError(f"{_show(path)} is empty, or has only hidden files")
        return listed

    def _left_out_of(self, folder: Path) -> list[Path]:
        return [path for path in self.skipped if path.is_relative_to(folder)]

    def _nothing_in(self, folder: Path) -> InputError:
        """Say why no file of a folder can be read."""
        left_out = self._left_out_of(folder)
        if all(map(_is_picture, left_out)):
            return InputError(f"{_show(folder)} {_IN_PICTURES}: {how_to_use_ocr()}")
        reasons = Counter(self.skipped[path] for path in left_out)
        named = [f"{reason} ({files:,})" for reason, files in reasons.most_common(_MAX_REASONS)]
        return InputError(f"{_show(folder)} {_NO_FILES}; left out: {', '.join(named)}")

    def _unknown_extension(self, path: Path) -> InputError:
        """Say which extensions there are, and what to do with a file that has another one."""
        if _is_picture(path):
            return InputError(f"{_show(path)} {_IN_PICTURES}: {how_to_use_ocr()}")
        extensions = " ".join([*self._readers.extensions, *RECORD_READERS])
        return InputError(
            f"{_show(path)} has an unknown extension, {path.suffix!r}; valid extensions are {extensions}, and those "
            'of programs; to read another as text: --as .EXT=.txt (in Python: readers={".EXT": ".txt"}); for this '
            f"file: {_advise(path)}"
        )

    def _drop_repeats(self, listed: list[Listed]) -> list[Listed]:
        """Return what is not listed already, and remember its files."""
        new: list[Listed] = []
        for item in listed:
            if isinstance(item, ListedFile):
                if item.real_path in self.files:
                    continue
                self.files.add(item.real_path)
            new.append(item)
        return new

    def _walk(self, top: Path, below: str, ignore: IgnoreRules) -> Iterator[Listed]:
        """Yield the files of a folder and the folders in it; `below` is the path from the top folder to it."""
        folder = top / below
        real_folder = _real_path(folder)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            ignore = ignore.enter(top, below)
        except (OSError, FormatError) as error:
            self.failures.add(real_folder)
            yield Problem(str(folder), reason(error))
            return
        self._found += len(entries)
        self._show_found(self._found)
        for entry in entries:
            path = folder / entry.name
            file_id = below + entry.name
            if entry.name.startswith(_HIDDEN) or path.absolute() == self._target:
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            ignored = ignore.why_ignored(f"{file_id}/" if is_folder else file_id)
            if ignored:
                self.ignored.add(_real_path(path))
            fault = ignored or self._why_skipped(entry, path)
            if fault:
                self.skipped[path] = fault
            elif entry.is_dir():
                yield from self._walk(top, f"{file_id}/", ignore)
            else:
                real_path = os.path.join(real_folder, entry.name)  # noqa: PTH118 - a Path would be slow for many files
                yield ListedFile(path, file_id, _as_stored(real_path))

    def _why_skipped(self, entry: os.DirEntry[str], path: Path) -> str:
        """Return why an entry of a folder is not read, or an empty string if it is."""
        if entry.is_symlink():
            return "a link, which is not followed"
        if entry.is_dir():
            return "an index" if is_index(path) else ""
        if not entry.is_file():
            return "neither a file nor a folder"
        return "" if self._knows(path) else _describe_unknown(path)

    def _knows(self, path: Path) -> bool:
        return path.suffix.lower() in RECORD_READERS or self._readers.knows(path)


def _measure(listed: Iterable[Listed]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for item in listed:
        if isinstance(item, ListedFile):
            sizes[item.real_path] = item.size
        elif isinstance(item, ListedObject):
            sizes[""] = sizes.get("", 0) + item.size
    return sizes


def _is_object(item: object) -> TypeIs[DocumentObject]:
    from langchain_core.documents import Document as LangChainDocument

    return isinstance(item, Mapping | LangChainDocument)


def _check_path(source: str | Path, place: str) -> None:
    """Check that a path exists."""
    try:
        Path(source).stat()
    except (OSError, ValueError) as error:
        if looks_like_address(str(source)):  # which may hold a password
            raise InputError(f"{place} is an address: give files and folders, or documents in Python") from None
        raise InputError(f"{_show(source)} cannot be read: {reason(error)}") from error
    if source == "":
        raise InputError("a source is an empty path")


def _show(path: str | Path) -> str:
    return repr(clean_characters(str(path)))


def _real_path(path: Path) -> str:
    """Return a path without links, as text that can be stored."""
    return _as_stored(os.path.realpath(path))


def _as_stored(path: str) -> str:
    r"""Return a path as text that can be stored: with `\\xff` for bytes that are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _describe_unknown(path: Path) -> str:
    """Return why a file without a reader is skipped."""
    if _is_picture(path):
        return f"a picture: {how_to_use_ocr()}"
    extension = path.name.removeprefix(inner_path(path).stem).lower()  # such as `.ps.gz`
    reason = f"no reader for {extension}"
    if extension == ".xml":
        reason += ", except sections, chapters and books of DocBook and pages of Mallard"
    return f"{reason}; {_advise(path)}"


def _advise(path: Path) -> str:
    """Return what to do with a file without a reader."""
    inner = inner_path(path)
    extension = inner.suffix.lower()
    text = first_text(path)
    if inner != path and extension in NOT_IN_GZIP:
        return "unpack it"
    for extensions, advice in (_MARKUP_ADVICE if text else _ADVICE).items():
        if extension in extensions:
            return advice
    if _MANUAL_PAGE.search(text):
        return "write its text with man -l"
    if text and extension in _TABLES:
        return f"to read it as a table: --as {extension}=.tsv"
    if text:
        return f"to read it as {_name_kind(inner, text)}"
    return "give its text, or a reader of yours in Python (readers=)"


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURES


def _name_kind(path: Path, text: str) -> str:
    """Return as what to read a text, with the option for it: a page may have its language behind `.html`."""
    extension = path.suffix.lower()
    for name in path.suffixes[:-1]:
        if name.lower() in _PAGES:
            return f"a web page: --as {extension}={name.lower()}"
    if text.lstrip().startswith("<"):
        return f"text without its markup: --as {extension}=.html"
    return f"text: --as {extension}=.txt"
