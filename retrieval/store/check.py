"""Looks for damage in an index's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from arag.errors import IndexFormatError
from arag.retrieval.keywords import format_keywords
from arag.retrieval.storage import Damage, batches
from arag.retrieval.store.chroma import ChromaGraph
from arag.retrieval.store.database import INDEX_FILE
from arag.retrieval.store.derived import graph_folder, keyword_file
from arag.retrieval.store.view import FolderView

_CHUNKS_AT_ONCE = 200


def find_damage(view: FolderView, folder: Path) -> list[Damage]:
    """Look for damage in all files of an index, given what was published last."""
    damage = list(find_unrepairable(view))
    if not damage:
        damage += _check_keywords(view, keyword_file(folder, view.settings.token))
        damage += _check_graph(view, graph_folder(folder, view.settings.token))
    return damage


def find_unrepairable(view: FolderView) -> Iterator[Damage]:
    """Look for damage in the documents, chunks and vectors, which everything else is derived from."""
    try:
        faults = [fault for (fault,) in view.query("PRAGMA quick_check(5)") if fault != "ok"]
        faults = faults or list(_find_contradictions(view))
    except IndexFormatError as error:
        faults = [str(error)]
    if faults:
        faults[-1] += ": ingest the documents again into another folder"
    yield from (Damage(INDEX_FILE, fault, repairable=False) for fault in faults)


def _find_contradictions(view: FolderView) -> Iterator[str]:
    if view.counted(view.settings) != view.settings:
        yield "it holds more or less than its settings say"
    stored_chunks = dict(view.query("SELECT document_id, count(*) FROM chunks GROUP BY document_id"))
    if incomplete := sum(stored_chunks.get(record.id, 0) != record.chunks for record in view.documents()):
        yield f"{incomplete:,} documents lack chunks"
    wrong = 0
    for some in batches(view.numbers_by_id(), _CHUNKS_AT_ONCE):
        embedded = {number: chunk.embedded_positions() for number, chunk in view.numbered(some).items()}
        stored = {number: positions for number, positions, _ in view.vectors(some)}
        wrong += sum(number not in embedded or embedded[number] != stored.get(number) for number in some)
    if wrong:
        yield f"{wrong:,} chunks lack their document, text or vectors"


def _check_keywords(view: FolderView, file: Path) -> Iterator[Damage]:
    if not file.is_file():
        yield Damage(file.name, "it is missing")
        return
    with file.open("rb") as stored:
        pieces = format_keywords(text for _, text in view.chunk_texts())
        if not all(stored.read(len(piece)) == piece for piece in pieces) or stored.read(1):
            yield Damage(file.name, "it does not have the texts of the chunks")


def _check_graph(view: FolderView, folder: Path) -> Iterator[Damage]:
    if not view.settings.sentences:
        return
    try:
        with closing(ChromaGraph(folder, view.settings.sentences)) as graph:
            graph.nearest(np.ones(view.settings.dimension, np.float32), 1)
    except IndexFormatError as error:
        yield Damage(folder.name, str(error))
