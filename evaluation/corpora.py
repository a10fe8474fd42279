"""Indexes built from the paragraphs that come with a dataset's questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from arag.errors import IndexNotFoundError, InputError
from arag.evaluation.datasets import Question, paragraphs, write_corpus
from arag.evaluation.files import beside
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import Index
from arag.retrieval.locations import store_at
from arag.retrieval.storage import IndexStore


def make_index(questions: Path, index: str | Path | IndexStore) -> Iterator[str]:
    """Ingest the paragraphs that come with questions, unless the index is already complete.

    Args:
        questions: The file of the questions.
        index: Where the index is; the paragraphs are written beside it.

    Yields:
        What is done, and what is left out.

    Raises:
        InputError: There is no index and there are no paragraphs, or the index was built from other paragraphs.
    """
    store = store_at(index)
    corpus = beside(store.location, "corpus.jsonl")
    try:
        settings = store.settings()
    except IndexNotFoundError:
        settings = None
    if settings is not None and not corpus.exists():  # it was built in another way
        return
    found = paragraphs(questions)
    if settings is not None:
        known = {json.loads(line).get("id") for line in corpus.read_bytes().splitlines()}
        missing = {paragraph.id for paragraph in found} - known
        if missing:
            raise InputError(
                f"the index in {store.location} was built from {corpus.name}, which lacks {len(missing):,} of the "
                f"{len(found):,} paragraphs of {questions}: give another index with --index"
            )
        if settings.documents >= len(known):
            return
    elif not found:
        raise InputError(
            f"there is no index in {store.location}, and {questions} has no paragraphs to build one from: run `arag "
            "ingest` first"
        )
    else:
        write_corpus(found, corpus)
    yield f"Ingesting {corpus.name} into {store.location}"
    for problem in run_ingest([corpus], store).problems:
        yield f"Left out: {problem}"


def contents(index: str | Path | IndexStore) -> dict[str, Any]:
    """Return what identifies an index; ingesting the same documents with the same settings again gives the same.

    Args:
        index: Where the index is.

    Raises:
        IndexNotFoundError: There is no index there.
        IndexFormatError: The index is damaged.
    """
    store = store_at(index)
    settings = store.settings()
    digest = hashlib.sha256()
    with closing(store), closing(store.open()) as view:
        for document in view.documents():
            digest.update(document.fingerprint.encode())
    return {
        "embedder": settings.embedder,
        "documents": settings.documents,
        "chunks": settings.chunks,
        "sentences": settings.sentences,
        "fingerprint": digest.hexdigest(),
    }


def locate_gold(questions: Sequence[Question], index: str | Path | IndexStore) -> list[Question]:
    """Return questions with gold pages, their gold documents named as in an index, and other questions as they are.

    A document that the index lacks keeps its name. If the index has no pages of a document, as of a text file, the
    question's gold documents count as gold.

    Args:
        questions: The questions.
        index: Where the index is.
    """
    if not any(question.gold_pages for question in questions):
        return list(questions)
    with closing(store_at(index)) as store, closing(store.open()) as view:
        ids = {PurePosixPath(document.id).stem: document.id for document in view.documents()}
        firsts = {name: view.mget([f"{document}:0"])[0] for name, document in ids.items()}
    without_pages = {name for name, first in firsts.items() if first is None or first.pages is None}
    return [
        replace(
            question,
            gold_documents=tuple(ids.get(name, name) for name in question.gold_documents),
            gold_pages=() if without_pages.intersection(question.gold_documents) else question.gold_pages,
        )
        if question.gold_pages
        else question
        for question in questions
    ]


def missing_gold(questions: Sequence[Question], index: Index) -> str | None:
    """Return a warning if an index holds none of the questions' gold documents."""
    gold = [document for question in questions for document in question.gold_documents]
    if gold and not any(index.document(document) for document in gold):
        return f"none of the questions' gold documents ({gold[0]!r}, ...) is in the index: none will count as found"
    return None
