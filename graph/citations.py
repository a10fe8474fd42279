"""Citations in an answer: checked against the chunks that were shown, with what a reader needs to follow them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from arag.graph.quotes import Bracket, choose_sentences
from arag.graph.state import Citation, CitedDocument, Quote
from arag.retrieval.index import Index
from arag.retrieval.text import fold
from arag.retrieval.types import Chunk

_BRACKETED = re.compile(r"\[([^\[\]\n]{1,400})\]")
_SEPARATORS = re.compile(r"[,;]")
_LIKE_A_CHUNK_ID = re.compile(r"(.+):\d+$")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")
_DOCUMENT_SUFFIXES = frozenset({".md", ".txt", ".html", ".pdf"})  # usual for documents, shown or not
_MAX_FIELD = 2_000  # characters
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)


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

    The sentences that bear what the answer says are chosen by their words; no model is called. A chunk that was not
    shown has none: the answer cannot be from it.

    Returns:
        The citations in the order of the answer, each once.

    Example:
        >>> answer = "The lens was made at the Emberlane Glassworks [places/vellin-light.md:0]."
        >>> [citation] = parse_citations(answer, index, ["places/vellin-light.md:0"], [])
        >>> [quote["text"] for quote in citation["quotes"]]
        ['The lens of the Vellin Light was made at the Emberlane Glassworks and carried out in a bed of bran, ...']
    """
    documents = {chunk_id.rpartition(":")[0] for chunk_id in seen_chunks}
    kinds = {_kind(document) for document in documents} | _DOCUMENT_SUFFIXES
    brackets = _find_brackets(answer, index, seen_chunks)
    chunks: dict[str, Chunk | None] = {}
    for name in dict.fromkeys(name for bracket in brackets for name in bracket.cited):
        chunk = index.get(name)
        if chunk is not None or _is_made_up(name, index, documents, kinds):
            chunks[name] = chunk
    shown = {name: chunk for name, chunk in chunks.items() if chunk is not None and name in seen_chunks}
    quoted = choose_sentences(answer, brackets, shown)
    return [
        Citation(
            chunk_id=name,
            document_ids=[chunk.document_id] if chunk else [],
            titles=[chunk.title] if chunk and chunk.title else [],
            seen=name in seen_chunks,
            read=name in read_chunks,
            part=chunk.ordinal + 1 if chunk and (parts := _count_parts(chunk, index)) else None,
            parts=parts if chunk else None,
            pages=list(chunk.pages) if chunk and chunk.pages else None,
            documents=[_describe(chunk, index)] if chunk else [],
            quotes=[_quote(chunk, position) for position in sorted(quoted.get(name, ()))] if chunk else [],
        )
        for name, chunk in chunks.items()
    ]


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that a page may link to.

    Example:
        >>> is_web_address("https://example.com/report.pdf"), is_web_address("javascript:alert(1)")
        (True, False)
    """
    return _URL.fullmatch(text) is not None


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


def _find_brackets(answer: str, index: Index, seen: Collection[str]) -> list[Bracket]:
    """Find the brackets with texts in them, in order; ids that contain brackets are recognised with `seen`."""
    found: list[Bracket] = []
    special = sorted((i for i in seen if re.search(r"[\[\],;]", i)), key=len, reverse=True)
    for chunk_id in special:
        name = f"[{chunk_id}]"
        found += [Bracket(at.start(), at.end(), (chunk_id,)) for at in re.finditer(re.escape(name), answer)]
        answer = answer.replace(name, " " * len(name))
    for match in _BRACKETED.finditer(answer):
        whole = match.group(1).strip()
        is_one = index.get(whole) or index.document(whole.rpartition(":")[0])
        parts = [whole] if is_one else [_without_words(p.strip(), index) for p in _SEPARATORS.split(whole)]
        found.append(Bracket(match.start(), match.end(), tuple(part for part in parts if part)))
    return sorted(found, key=lambda bracket: bracket.start)


def _without_words(part: str, index: Index) -> str:
    """Strip the words before an id, as in "see guide.md:0"; return other texts unchanged."""
    last = part.rpartition(" ")[2]
    return last if last != part and index.get(last) and not index.get(part) else part


def _count_parts(chunk: Chunk, index: Index) -> int | None:
    """Return how many chunks a chunk's document has; None if it has one."""
    count = index.read([chunk.id]).parts.get(chunk.document_id, 1)
    return count if count > 1 else None


def _describe(chunk: Chunk, index: Index) -> CitedDocument:
    """Return what is known of a chunk's document."""
    known = index.document(chunk.document_id)
    metadata = {key.lower(): value for key, value in known.metadata.items()} if known else {}
    url = _first_text(metadata, ("url", "source_url", "link"))
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=_first_text(metadata, ("author", "authors", "creator")),
        date=_first_text(metadata, ("date", "published", "created", "year")),
    )


def _first_text(metadata: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first of some fields that holds texts or numbers, or things with a name; several are joined."""
    for key in keys:
        value = metadata.get(key)
        parts = [part.get("name") if isinstance(part, dict) else part for part in _list(value)]
        text = ", ".join(fold(str(part)) for part in parts if isinstance(part, str | int | float) and part is not True)
        if 0 < len(text) <= _MAX_FIELD:
            return text
    return ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _quote(chunk: Chunk, position: int) -> Quote:
    sentence = chunk.sentences[position]
    text = chunk.sentence_text(position)
    return Quote(document_id=chunk.document_id, start=sentence.start, end=sentence.end, text=text)
