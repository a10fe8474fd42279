"""Opens the snapshots of an index for its searches, each newer one when it appears."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from arag.errors import ARAGError
from arag.models.embedders import Embedder
from arag.retrieval.storage.contract import IndexStore, View
from arag.retrieval.trust import choose_embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


class Snapshot:
    """An open snapshot.

    Attributes:
        stamp: The store's stamp, read before the view was opened.
        view: The view of all documents.
        limited: The views of its parts, by the object that asked for them; they live as long as that object.
    """

    def __init__(self, store: IndexStore) -> None:
        self.stamp = store.stamp()
        self.view = store.open()
        self.limited: WeakKeyDictionary[object, View] = WeakKeyDictionary()


class Snapshots:
    """Opens the last snapshot of a store. An older view is closed when the last search in it ends and drops it.

    Attributes:
        store: The store.
        settings: The settings of the snapshot that was opened last.
        embedder: Its embedder.
    """

    def __init__(self, store: IndexStore, embedder: str | Embeddings | Embedder | None) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._newest: Snapshot | None = None
        self._open(embedder)

    def newest(self) -> Snapshot:
        """Return the last snapshot.

        Searches ask the store without the lock, so that they do not wait for each other: it may be on another machine.

        Raises:
            ARAGError: It was closed, or the snapshot cannot be opened.
        """
        newest = self._newest
        if newest is not None and newest.stamp == self.store.stamp():
            return newest
        with self._lock:
            if self._newest is None:
                raise ARAGError(f"the index in {self.store.location} is closed: open it again with open_index")
            if self._newest is newest:  # else another search has just opened the newer one
                self._open(self.embedder)
            return self._newest

    def close(self) -> None:
        """Close the store. Later searches are refused."""
        with self._lock:
            self._newest = None
        self.store.close()

    def _open(self, embedder: str | Embeddings | Embedder | None) -> None:
        snapshot = Snapshot(self.store)
        self.settings = snapshot.view.settings
        self.embedder = choose_embedder(embedder, self.settings, self.store.location)
        self._newest = snapshot
