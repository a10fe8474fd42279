"""Looks for damage in an index's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.keywords import format_keywords
from arag.retrieval.storage import Damage, batches
from arag.retrieval.store.chroma import ChromaGraph
from arag.retrieval.store.database import INDEX_FILE
from arag.retrieval.store.derived import graph_folder, is_trusted, keyword_file
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
    settings = view.settings
    counted = view.counted(settings)
    for name in ("documents", "chunks", "sentences", "tokens"):
        if getattr(counted, name) != getattr(settings, name):
            yield f"it has {getattr(counted, name):,} {name} instead of {getattr(settings, name):,}"
    ((wrong,),) = view.query(
        "SELECT count(*) FROM documents "
        "WHERE chunks != (SELECT count(*) FROM chunks WHERE chunks.document_id = documents.id)"
    )
    if wrong:
        yield f"{wrong:,} documents lack chunks"
    lost = strange = 0
    for some in batches(view.numbers_by_id(), _CHUNKS_AT_ONCE):
        chunks = view.numbered(some)
        positions = {number: places for number, places, _ in view.vectors(some)}
        lost += sum(number not in chunks or number not in positions for number in some)
        for number in chunks.keys() & positions.keys():
            embedded = [i for i, sentence in enumerate(chunks[number].sentences) if sentence.embedded]
            strange += embedded != positions[number]
    if lost:
        yield f"{lost:,} chunks have no document, text or vectors"
    if strange:
        yield f"{strange:,} chunks have vectors of other sentences"


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
    if not folder.is_dir():
        yield Damage(folder.name, "it is missing")
    elif not is_trusted(folder):
        yield Damage(folder.name, "it was written by another user or on another machine")
    else:
        try:
            with closing(ChromaGraph(folder)) as graph:
                wrong = _count_wrong(view, graph)
        except (IndexFormatError, StorageError) as error:
            yield Damage(folder.name, str(error))
        else:
            if wrong:
                yield Damage(folder.name, f"{wrong:,} sentences are missing, wrong or too many")


def _count_wrong(view: FolderView, graph: ChromaGraph) -> int:
    """Count the sentences that are only in the graph or only in the index, or that differ."""
    left = {sentence_id: (chunk_id, text) for sentence_id, chunk_id, text in graph.read()}
    wrong = 0
    for some in batches(view.numbers_by_id(), _CHUNKS_AT_ONCE):
        for number, chunk in view.numbered(some).items():
            for position, sentence in enumerate(chunk.sentences):
                if sentence.embedded:
                    expected = chunk.id, chunk.sentence_text(position)
                    wrong += left.pop(f"{number}#{position}", None) != expected
    return wrong + len(left)
