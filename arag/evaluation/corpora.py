"""Indexes of the paragraphs that come with a dataset's questions.

The paragraphs are short, and a chunk belongs to one document. Therefore paragraphs are joined into documents of about a
thousand tokens, the size of the paper's chunks. A document's metadata lists its paragraphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from arag.errors import IndexNotFoundError, InputError
from arag.evaluation.datasets import Paragraph, Question
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import Index, open_index
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.fingerprints import version_of
from arag.text.tokens import count_tokens

DOCUMENT_TOKENS = 1_000  # the size of the paper's chunks
_PARAGRAPHS = "paragraphs"  # the name of the metadata


def make_index(questions: Sequence[Question], store: IndexStore) -> Iterator[str]:
    """Ingest the paragraphs that come with questions, unless there is an index.

    Yields:
        Lines to print.

    Raises:
        InputError: There is no index and there are no paragraphs, or the index was made from other paragraphs.
    """
    try:
        with open_index(store) as index:
            check_paragraphs(questions, index)
    except IndexNotFoundError:
        paragraphs = _list_paragraphs(questions)
        if not paragraphs:
            raise InputError(
                f"there is no index in {store.location}, and the questions come without paragraphs to make one: run "
                "`arag ingest` first"
            ) from None
        yield f"Ingesting {len(paragraphs):,} paragraphs into {store.location}"
        summary = run_ingest(join_paragraphs(paragraphs.values()), store)
        for problem in summary.problems:
            yield f"Left out: {problem}"


def check_paragraphs(questions: Sequence[Question], index: Index) -> None:
    """Check that an index that was made from questions' paragraphs has those of these questions.

    Raises:
        InputError: The index was made from other paragraphs.
    """
    known = _find_paragraphs(index)
    paragraphs = _list_paragraphs(questions)
    missing = paragraphs.keys() - known.keys()
    if known and missing:
        raise InputError(
            f"the index in {index.path} lacks {len(missing):,} of the questions' {len(paragraphs):,} paragraphs: "
            "give another index with --index"
        )


def _list_paragraphs(questions: Sequence[Question]) -> dict[str, Paragraph]:
    """Return the paragraphs that come with questions, by id."""
    paragraphs = {}
    for question in questions:
        for paragraph in question.paragraphs:
            paragraphs[paragraph.id] = paragraph
    return paragraphs


def join_paragraphs(paragraphs: Iterable[Paragraph]) -> Iterator[dict[str, Any]]:
    """Yield documents of about a thousand tokens for `ingest`: paragraphs in their order, under their titles."""
    number = 1
    texts: dict[str, str] = {}  # of the current document, by the paragraphs' ids
    tokens = 0
    for paragraph in paragraphs:
        text = f"# {paragraph.title}\n\n{paragraph.text}" if paragraph.title else paragraph.text
        more = count_tokens(f"{text}\n\n")
        if texts and tokens + more > DOCUMENT_TOKENS:
            yield _join_texts(number, texts)
            number += 1
            texts = {}
            tokens = 0
        texts[paragraph.id] = text
        tokens += more
    yield _join_texts(number, texts)


def _join_texts(number: int, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a document of paragraphs."""
    return {
        "id": f"paragraphs-{number}",
        "text": "\n\n".join(texts.values()),
        _PARAGRAPHS: list(texts),
    }


def describe_contents(index: Index) -> dict[str, Any]:
    """Return figures and a fingerprint that identify an index, or the part of one that it is limited to.

    Ingesting the same documents with the same settings again gives the same.
    """
    info = index.info()
    visible = {document.id for document in index.documents()}
    digest = hashlib.sha256()
    with closing(index.store.open()) as view:
        for document in view.documents():
            if document.id in visible:
                digest.update(version_of(document.fingerprint).encode())
    return {
        "embedder": info.embedder,
        "documents": info.documents,
        "chunks": info.chunks,
        "sentences": info.sentences,
        "fingerprint": digest.hexdigest(),
    }


def locate_gold(questions: Sequence[Question], index: Index) -> list[Question]:
    """Return questions with their gold documents named as in an index.

    Paragraphs are replaced with the documents that they were joined into, and FinanceBench's names with the ids of
    files. Names that the index lacks stay. If the index has no pages of a gold document, as of a text file, the
    question's gold documents count as gold instead of its pages.
    """
    ids = _find_paragraphs(index)
    without_pages = set[str]()
    if any(question.gold_pages for question in questions):
        for document in index.documents():
            name = PurePosixPath(document.id).stem
            ids[name] = document.id
            first = index.get(f"{document.id}:0")
            if first is None or first.pages is None:
                without_pages.add(name)
    located = []
    for question in questions:
        documents = [ids.get(name, name) for name in question.gold_documents]
        has_pages = without_pages.isdisjoint(question.gold_documents)
        located.append(
            replace(
                question,
                gold_documents=tuple(dict.fromkeys(documents)),
                gold_pages=question.gold_pages if has_pages else (),
            )
        )
    return located


def _find_paragraphs(index: Index) -> dict[str, str]:
    """Return the documents that paragraphs were joined into, by the paragraphs' ids."""
    found = {}
    for document in index.documents():
        for paragraph in document.metadata.get(_PARAGRAPHS) or ():
            found[paragraph] = document.id
    return found
