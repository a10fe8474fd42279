"""Citations in an answer, checked against the chunks that were shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from langchain_core.messages import AnyMessage, ToolMessage

from arag.graph.state import Citation
from arag.retrieval.index import Index

_BRACKETED = re.compile(r"\[([^\[\]\n]{1,400})\]")
_SEPARATORS = re.compile(r"[,;]")
_LIKE_A_CHUNK_ID = re.compile(r"(.+):\d+$")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")
_DOCUMENT_SUFFIXES = frozenset({".md", ".txt", ".html", ".pdf"})  # usual for documents, shown or not


def find_shown_chunks(messages: Iterable[AnyMessage], index: Index) -> list[str]:
    """Return the ids of the chunks that a conversation's tool results show.

    These are the `chunk_ids` in a result's artifact. If a caller's own tool returns none, they are the chunk ids in
    square brackets in the result's text.

    Args:
        messages: The conversation.
        index: The index.
    """
    shown: list[str] = []
    for message in messages:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        chunk_ids = message.artifact.get("chunk_ids") if isinstance(message.artifact, dict) else None
        if isinstance(chunk_ids, list):
            shown += [chunk_id for chunk_id in chunk_ids if isinstance(chunk_id, str)]
        else:
            shown += [name for name in dict.fromkeys(_BRACKETED.findall(message.text)) if index.get(name)]
    return list(dict.fromkeys(shown))


def parse_citations(
    answer: str, index: Index, seen_chunks: Collection[str], read_chunks: Collection[str]
) -> list[Citation]:
    """Find the chunk ids that an answer names in square brackets.

    An id in the index is a citation. Most other texts of the form `<document>:<number>` are not: they are Bible verses,
    times, ratios, scores or addresses with a port. Such a text counts as a made-up citation, listed as not seen and
    without a document, if the index holds that document, or if its name looks like a file or like a document shown.

    Args:
        answer: The answer.
        index: The index.
        seen_chunks: Ids of chunks that were shown to the model.
        read_chunks: Ids of chunks that were shown in full.

    Returns:
        The citations in the order of the answer, each once.
    """
    citations: dict[str, Citation] = {}
    documents = {chunk_id.rpartition(":")[0] for chunk_id in seen_chunks}
    kinds = {_kind(document) for document in documents} | _DOCUMENT_SUFFIXES
    for name in _names(answer, index, seen_chunks):
        chunk = index.get(name)
        if name in citations or (chunk is None and not _is_made_up(name, index, documents, kinds)):
            continue
        sections = chunk.sections if chunk is not None else ()
        citations[name] = Citation(
            chunk_id=name,
            document_ids=[section.document_id for section in sections],
            titles=[section.title for section in sections if section.title],
            seen=name in seen_chunks,
            read=name in read_chunks,
        )
    return list(citations.values())


def _is_made_up(name: str, index: Index, documents: Collection[str], kinds: Collection[str]) -> bool:
    """Return whether a text that is not a chunk id was meant as one.

    Args:
        name: The text.
        index: The index.
        documents: Ids of the documents that were shown.
        kinds: The kinds of these documents, and of files.
    """
    match = _LIKE_A_CHUNK_ID.match(name)
    if match is None:
        return False
    document = match[1]
    if document.isdecimal():  # 12:30 or 3:1 may mean a document named by a number, if it was shown
        return document in documents
    return _kind(document) in kinds or index.document(document) is not None


def _kind(document_id: str) -> str:
    """Return the kind of a document's id: its file suffix, or the id with every number replaced by 0."""
    suffix = _SUFFIX.search(document_id)
    return suffix[0].lower() if suffix else re.sub(r"\d+", "0", document_id)


def _names(answer: str, index: Index, seen: Collection[str]) -> Iterator[str]:
    """Yield the texts in brackets, in order; ids that contain brackets are recognised with `seen`."""
    found: list[tuple[int, str]] = []
    special = sorted((i for i in seen if re.search(r"[\[\],;]", i)), key=len, reverse=True)
    for chunk_id in special:
        at = answer.find(f"[{chunk_id}]")
        if at >= 0:
            found.append((at, chunk_id))
            answer = answer.replace(f"[{chunk_id}]", " " * (len(chunk_id) + 2))
    for match in _BRACKETED.finditer(answer):
        whole = match.group(1).strip()
        is_one = index.get(whole) or index.document(whole.rpartition(":")[0])
        parts = [whole] if is_one else [_without_words(p.strip(), index) for p in _SEPARATORS.split(whole)]
        found += [(match.start() + i, part) for i, part in enumerate(parts) if part]
    for _, name in sorted(found):
        yield name


def _without_words(part: str, index: Index) -> str:
    """Strip the words before an id, as in "see guide.md:0"; return other texts unchanged."""
    last = part.rpartition(" ")[2]
    return last if last != part and index.get(last) and not index.get(part) else part
