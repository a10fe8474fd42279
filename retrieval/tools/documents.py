"""What a tool shows as LangChain's documents, and a tool's work as the run of a retriever in traces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.documents import Document

from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved
from arag.retrieval.types import Chunk
from arag.text.normalise import CUT


def make_document(chunk: Chunk, text: str) -> Document:
    """Return a chunk as a document with a text of it. The place of its file is not for everybody who sees a result."""
    metadata: dict[str, Any] = {
        "chunk_id": chunk.id,
        "document_id": chunk.document_id,
        "title": chunk.title,
    }
    if chunk.pages is not None:
        metadata["pages"] = list(chunk.pages)
    return Document(id=chunk.id, page_content=text, metadata=metadata)


def list_shown(index: Index, retrieved: Retrieved) -> list[Document]:
    """Return the chunks that a result shows, with the sentences that it shows of them.

    Chunks that it only names, because they were shown before, are left out.
    """
    documents = [make_document(chunk, chunk.text) for chunk in retrieved.new_chunks]
    whole = {chunk.id for chunk in retrieved.new_chunks}
    in_part = [chunk_id for chunk_id in retrieved.chunk_ids if chunk_id not in whole]
    for chunk in index.mget(in_part):
        if chunk is None:  # another process has removed it since
            continue
        positions = {*retrieved.sentences.get(chunk.id, ()), *retrieved.cut.get(chunk.id, ())}
        if positions:
            documents.append(make_document(chunk, _join_sentences(chunk, positions)))
    places = {chunk_id: place for place, chunk_id in enumerate(retrieved.chunk_ids)}
    documents.sort(key=lambda document: places.get(document.id or "", len(places)))
    return documents


def _join_sentences(chunk: Chunk, positions: Collection[int]) -> str:
    """Return sentences of a chunk, with an ellipsis where others are left out between them."""
    text = ""
    last = None
    for position in sorted(positions):
        if last is not None:
            text += " " if position == last + 1 else f" {CUT} "
        text += chunk.sentence_text(position)
        last = position
    return text


@contextmanager
def retriever_run(manager: CallbackManagerForToolRun | None, name: str, query: Any) -> Iterator[list[Document]]:
    """Report what happens inside as the run of a retriever, for traces; the caller adds the documents found.

    Args:
        manager: The callbacks of the tool's run, if there are any.
        name: The tool's name.
        query: What is looked for: a text, or a list of texts.
    """
    documents: list[Document] = []
    if manager is None:
        yield documents
        return
    text = query
    if not isinstance(query, str) and isinstance(query, Sequence):
        text = "; ".join(map(str, query))
    callbacks = manager.get_child()
    callbacks.add_metadata({"ls_retriever_name": name}, inherit=False)
    run = callbacks.on_retriever_start({}, str(text), name=name)
    try:
        yield documents
    except Exception as error:
        run.on_retriever_error(error)
        raise
    run.on_retriever_end(documents)
