"""An index in a folder: where it is, who may write to it, and how failures are reported."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import IndexFormatError, IndexLockedError, IndexNotFoundError, InputError
from arag.retrieval.storage.check import Passes, check_documents
from arag.retrieval.storage.folder.derived import delete_others
from arag.retrieval.storage.folder.sqlite import DRAFT_FILE, INDEX_FILE, name_write_failures
from arag.retrieval.storage.folder.view import FolderView
from arag.retrieval.storage.records import Damage, Settings, ShowShare
from arag.system.files import make_folder

if TYPE_CHECKING:
    from arag.retrieval.storage.folder.draft import FolderDraft

_LOCK_FILE = "write.lock"
_LOCK_SECONDS = 1.0  # if a writer is killed, a worker process that it was starting keeps the lock for a moment
_REPAIR_PASSES = 2  # over all chunks: to check the documents, and to write what is derived from them


class FolderStore:
    """An index in a folder. Writers import the modules that only they need, so that searches start sooner."""

    def __init__(self, folder: Path) -> None:
        self.location = folder  # for messages
        self._folder = folder.absolute()  # in case the process changes its working directory

    def settings(self) -> Settings:
        with closing(self.open()) as view:
            return view.settings

    def stamp(self) -> Hashable:
        try:
            status = (self._folder / INDEX_FILE).stat()
        except (OSError, ValueError):
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def open(self) -> FolderView:
        try:
            (self._folder / INDEX_FILE).stat()
        except NotADirectoryError:
            raise IndexNotFoundError(f"no index in {self.location}: give a folder, not a file") from None
        except FileNotFoundError:
            if (self._folder / DRAFT_FILE).exists():
                hint = " yet: its first ingestion goes on, or was interrupted: run it again"
            else:
                hint = f": make one with `arag ingest PATH... --index {shlex.quote(str(self.location))}`"
            raise IndexNotFoundError(f"no index in {self.location}{hint}") from None
        except (OSError, ValueError) as error:  # such as a name that is too long, or that no file can have
            raise InputError(f"{self.location} cannot be read: {_reason(error)}") from error
        return FolderView(self._folder)

    def close(self) -> None:
        """Do nothing: views share no resources."""

    def size(self) -> int:
        size = 0
        # Not rglob, which raises an error for a folder that a writer has just deleted.
        for parent, _, names in os.walk(self._folder):
            for name in names:
                size += _size(Path(parent, name))
        return size

    @contextmanager
    def draft(self, begin: Callable[[], Settings]) -> Iterator[FolderDraft]:
        """Open the next snapshot for writing, with the lock of the only writer; see `IndexStore.draft`."""
        from arag.retrieval.storage.folder.draft import FolderDraft

        # Path.exists raises an error for a name that is too long.
        is_begun = any(os.path.exists(self._folder / name) for name in (INDEX_FILE, DRAFT_FILE))  # noqa: PTH110
        begun: Settings | None = None
        if not is_begun:
            self._refuse_other_files()
            begun = begin()  # if it fails, no folder is made
        self._make()
        with self._lock():
            with name_write_failures(self._folder):
                published: FolderView | None = None
                token = ""
                if os.path.lexists(self._folder / INDEX_FILE):
                    published = FolderView(self._folder)
                    token = published.settings.token
                delete_others(self._folder, token)
                draft = FolderDraft(self._folder, published, lambda: begun or begin())
            with closing(draft):
                yield draft

    def find_damage(self, show: ShowShare | None = None) -> list[Damage]:
        from arag.retrieval.storage.folder.check import find_damage

        try:
            view = self.open()
        except IndexFormatError as error:
            return [Damage(INDEX_FILE, str(error), repairable=False)]
        with closing(view):
            return list(find_damage(view, self._folder, show))

    def repair(self, show: ShowShare | None = None) -> None:
        with closing(self.open()) as view:
            passes = Passes(_REPAIR_PASSES, view.settings.chunks, show)
            view.check_file()
            check_documents(view, passes)
        with self.draft(self.settings) as draft:
            written = draft.publish(draft.settings, rebuild=True)
        passes.add(written.chunks)

    def _refuse_other_files(self) -> None:
        """Refuse a folder in which a new index would lie among other files."""
        names: list[str] = []
        with suppress(OSError, ValueError):  # it is made later, or what is wrong is said then
            names = sorted(entry.name for entry in self._folder.iterdir() if not entry.name.startswith("."))
        if names and _LOCK_FILE not in names:
            raise InputError(f"{self.location} holds other files ({names[0]}): name a new folder for the index")

    def _make(self) -> None:
        """Make the folder of a new index, or check the one that is there."""
        folder = self._folder
        if folder.is_file():
            raise InputError(f"{self.location} is a file: give a folder for the index")
        try:
            str(folder).encode()  # Chroma takes no other names
            make_folder(folder)
        except (OSError, ValueError) as error:
            raise InputError(
                f"the folder {str(self.location)!r} cannot be created or read: {_reason(error)}"
            ) from error

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep other writers out, with a lock that the operating system releases when its holder dies."""
        from filelock import FileLock, Timeout

        lock = FileLock(self._folder / _LOCK_FILE, timeout=_LOCK_SECONDS)
        try:
            with name_write_failures(self._folder):
                lock.acquire()
        except Timeout:
            raise IndexLockedError(
                f"the index in {self.location} is being written to by another process; try again when it is done"
            ) from None
        try:
            yield
        finally:
            lock.release()


def is_index(folder: Path) -> bool:
    """Return whether a folder is an index."""
    return os.path.isfile(folder / INDEX_FILE)  # noqa: PTH113 - also of a folder that may not be looked into


def _reason(error: OSError | ValueError) -> str | None:
    """Return an error's text without a path."""
    return error.strerror if isinstance(error, OSError) else str(error)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a writer has just removed it
        return 0
