"""Indexes of the paragraphs that come with a dataset's questions.

The paragraphs are short, and a chunk belongs to one document. So paragraphs are joined into documents of about a
thousand tokens, the size of the paper's chunks. A document's metadata lists its paragraphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from arag.errors import IndexNotFoundError, InputError
from arag.evaluation.datasets import Paragraph, Question
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import Index, open_index
from arag.retrieval.storage.contract import IndexStore
from arag.text.tokens import count_tokens

DOCUMENT_TOKENS = 1_000
_PARAGRAPHS = "paragraphs"  # the name of the metadata


def make_index(questions: Sequence[Question], store: IndexStore) -> Iterator[str]:
    """Ingest the paragraphs that come with all questions of a file, unless there is an index; yield lines to print.

    Raises:
        InputError: There is no index and there are no paragraphs, or the index was made from other paragraphs.
    """
    paragraphs = {paragraph.id: paragraph for question in questions for paragraph in question.paragraphs}
    try:
        with open_index(store) as index:
            known = _find_paragraphs(index)
    except IndexNotFoundError:
        if not paragraphs:
            raise InputError(
                f"there is no index in {store.location}, and the questions come without paragraphs to make one: run "
                "`arag ingest` first"
            ) from None
        yield f"Ingesting {len(paragraphs):,} paragraphs into {store.location}"
        for problem in run_ingest(join_paragraphs(paragraphs.values()), store).problems:
            yield f"Left out: {problem}"
        return
    missing = paragraphs.keys() - known.keys()
    if known and missing:
        raise InputError(
            f"the index in {store.location} lacks {len(missing):,} of the questions' {len(paragraphs):,} paragraphs: "
            "give another index with --index"
        )


def join_paragraphs(paragraphs: Iterable[Paragraph]) -> Iterator[dict[str, Any]]:
    """Yield documents of about a thousand tokens for `ingest`: paragraphs in their order, under their titles."""
    documents: list[dict[str, str]] = [{}]  # the texts of each by their paragraphs' ids
    tokens = 0
    for paragraph in paragraphs:
        text = f"# {paragraph.title}\n\n{paragraph.text}" if paragraph.title else paragraph.text
        more = count_tokens(f"{text}\n\n")
        if documents[-1] and tokens + more > DOCUMENT_TOKENS:
            documents.append({})
            tokens = 0
        documents[-1][paragraph.id] = text
        tokens += more
    for number, texts in enumerate(documents, start=1):
        yield {"id": f"paragraphs-{number}", "text": "\n\n".join(texts.values()), _PARAGRAPHS: list(texts)}


def describe_contents(store: IndexStore) -> dict[str, Any]:
    """Return what identifies an index; ingesting the same documents with the same settings again gives the same."""
    settings, digest = store.settings(), hashlib.sha256()
    with closing(store.open()) as view:
        for document in view.documents():
            digest.update(document.fingerprint.encode())
    figures = {name: getattr(settings, name) for name in ("embedder", "documents", "chunks", "sentences")}
    return {**figures, "fingerprint": digest.hexdigest()}


def locate_gold(questions: Sequence[Question], index: Index) -> list[Question]:
    """Return questions with their gold documents named as in an index.

    Paragraphs become the documents that they were joined into, FinanceBench's names the ids of files. What the index
    lacks keeps its name. If the index has no pages of a document, as of a text file, the question's gold documents
    count as gold.
    """
    ids, without_pages = _find_paragraphs(index), set()
    if any(question.gold_pages for question in questions):
        for document in index.documents():
            name, first = PurePosixPath(document.id).stem, index.get(f"{document.id}:0")
            ids[name] = document.id
            if first is None or first.pages is None:
                without_pages.add(name)

    def locate(question: Question) -> Question:
        documents = tuple(dict.fromkeys(ids.get(name, name) for name in question.gold_documents))
        pages = () if without_pages.intersection(question.gold_documents) else question.gold_pages
        return replace(question, gold_documents=documents, gold_pages=pages)

    return list(map(locate, questions))


def _find_paragraphs(index: Index) -> dict[str, str]:
    """Return the documents that paragraphs were joined into, by the paragraphs' ids."""
    return {
        paragraph: document.id
        for document in index.documents()
        for paragraph in document.metadata.get(_PARAGRAPHS) or ()
    }
