"""What web pages share with others of their folder, and of folders around it: menus, and the name of their site."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from zlib import crc32

from arag.ingest.formats.content import Content, FormatError
from arag.ingest.formats.repeats import (
    MIN_PAGES,
    Blocks,
    find_shared_end,
    find_web_keepers,
    without_end,
    without_repeats,
)
from arag.ingest.formats.shared_titles import (
    PageNames,
    PageTitle,
    SharedTitle,
    count_names,
    divide_title,
    find_own_title,
    find_shared_title,
    find_spoken_title,
    names_place,
)

_MAX_PAGES = 20  # that are compared: each is read once more
_MAX_READ = 60  # to find so many: some only lead to another page


@dataclass(frozen=True, slots=True)
class _Shared:
    """What most web pages of a folder have: an end, lines with the page that keeps each, and a part of their titles.

    Their names tell which pages have the same title.
    """

    end: Blocks
    keepers: dict[str, Path]
    title: SharedTitle
    names: PageNames


class WebFolders:
    """Folders of web pages, some of which are compared.

    Args:
        is_web_page: Tells whether a file is a web page.
        read: Reads one.

    Attributes:
        tops: The folders that are ingested. The pages of a site may be in many folders, all below one of these.
    """

    def __init__(self, is_web_page: Callable[[Path], bool], read: Callable[[Path], Content]) -> None:
        self.tops: list[Path] = []
        self._is_web_page = is_web_page
        self._read = read
        self._shared: dict[Path, _Shared] = {}  # by folder
        self._ends: dict[Path, Blocks] = {}  # by the folder that has pages with an end, or folders with them
        self._keepers: dict[Blocks, Path] = {}  # the first page with each end
        self._sites: dict[Path, SharedTitle] = {}  # by the folder that has a site's pages, or folders with them
        self._titles: dict[Path, PageTitle | None] = {}  # of the pages that were compared; None if they have none
        self._seconds_ahead = 0.0

    def clean(self, content: Content, page: Path) -> Content:
        """Return a web page without the lines that another page of its folder keeps for all, and without its site."""
        shared = self._find_shared(page.parent)
        text = without_end(content.text, shared.end)
        if text != content.text and self._keepers.setdefault(shared.end, page) == page:
            text = content.text
        text = without_repeats(text, page, shared.keepers)
        title = find_own_title(content.title, text, shared.names)
        if title == content.title:
            title = self._without_site(content, page.parent, shared.title)
        is_file_name = title.casefold() in {page.name.casefold(), page.stem.casefold()}
        if is_file_name or names_place(title):
            title = find_spoken_title(title, text, shared.names)
        return replace(content, title=title, text=text)

    def take_seconds_ahead(self) -> float:
        """Return the seconds, since the last call, in which pages were compared whose turn may not have come."""
        seconds = self._seconds_ahead
        self._seconds_ahead = 0.0
        return seconds

    def _find_shared(self, folder: Path) -> _Shared:
        if folder not in self._shared:
            self._shared[folder] = self._compare(folder)
        return self._shared[folder]

    def _compare(self, folder: Path) -> _Shared:
        pages = self._read_some(self._pages_in(folder), folder)
        end = find_shared_end(pages.values()) if pages else self._find_end(folder)
        return _Shared(
            end=end,
            keepers=find_web_keepers({page: content.text for page, content in pages.items()}),
            title=find_shared_title(map(divide_title, pages.values())),
            names=count_names(pages.values()),
        )

    def _find_end(self, around: Path) -> Blocks:
        """Return the end of the pages in a folder and in those right below it, or else in a folder above."""
        if around not in self._ends and self._is_ingested(around):
            pages = self._read_some(self._pages_around(around), around)
            self._ends[around] = find_shared_end(pages.values()) if pages else self._find_end(around.parent)
        return self._ends.get(around, ())

    def _read_some(self, pages: Collection[Path], folder: Path) -> dict[Path, Content]:
        read: dict[Path, Content] = {}
        for page in _choose(pages, folder):
            content = self._read_ahead(page)
            if content is not None:
                read[page] = content
            if len(read) == _MAX_PAGES:
                break
        return read

    def _without_site(self, page: Content, folder: Path, shared: SharedTitle) -> str:
        """Return a page's title without what its folder shares, or else without what folders above and beside it do."""
        title = divide_title(page)
        shown = shared.remove(title.text)
        if shown != title.text or not title.has_parts:
            return shown
        for around in (folder, *folder.parents):
            if not self._is_ingested(around):
                break
            shown = self._find_site(around).remove(title.text)
            if shown != title.text:
                break
        return shown

    def _is_ingested(self, folder: Path) -> bool:
        return any(map(folder.is_relative_to, self.tops))

    def _find_site(self, around: Path) -> SharedTitle:
        """Return what the titles in a folder and in those right below it share: the latter may have a page each."""
        if around not in self._sites:
            titles = filter(None, map(self._read_title, _choose(self._pages_around(around), around)))
            self._sites[around] = find_shared_title(islice(titles, _MAX_PAGES))
        return self._sites[around]

    def _pages_around(self, around: Path) -> list[Path]:
        pages = self._pages_in(around)
        for folder in _folders_in(around):
            pages += self._pages_in(folder)
        return pages

    def _pages_in(self, folder: Path) -> list[Path]:
        pages: list[Path] = []
        with suppress(OSError):
            for file in folder.iterdir():
                if self._is_web_page(file) and file.is_file() and not _is_left_out(file):
                    pages.append(file)
        return pages

    def _read_title(self, page: Path) -> PageTitle | None:
        if page not in self._titles:
            self._read_ahead(page)
        return self._titles[page]

    def _read_ahead(self, page: Path) -> Content | None:
        """Read a page before its turn, which comes to nothing if it only leads to another one or cannot be read."""
        began = time.monotonic()
        content: Content | None = None
        with suppress(FormatError, OSError):  # it is reported when its turn comes
            content = self._read(page)
        self._seconds_ahead += time.monotonic() - began
        if content is None or content.why_skipped:
            self._titles[page] = None
            return None
        self._titles[page] = divide_title(content)
        return content


def _folders_in(folder: Path) -> list[Path]:
    folders: list[Path] = []
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not _is_left_out(entry):
                folders.append(entry)
    return folders


def _is_left_out(entry: Path) -> bool:
    """Return whether an ingestion passes over an entry of a folder: a link, or hidden."""
    return entry.is_symlink() or entry.name.startswith(".")


def _choose(pages: Collection[Path], folder: Path) -> list[Path]:
    """Return the pages of a folder to compare: some of each kind, and the same each time; none of too few."""
    if len(pages) < MIN_PAGES:
        return []

    def hash_name(page: Path) -> int:
        name = str(page.relative_to(folder))
        return crc32(os.fsencode(name))

    return sorted(pages, key=hash_name)[:_MAX_READ]
