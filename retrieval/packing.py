"""Packed chunks: whole short documents in one chunk, with a blank line between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from arag.retrieval.types import Chunk, Section, Sentence

_DOCUMENT_GAP = "\n\n"

CountBatch = Callable[[Sequence[str]], list[int]]


def pack(parts: Sequence[tuple[str, str, str, Sequence[Sentence]]], count: CountBatch) -> Chunk:
    """Put documents into one chunk.

    Args:
        parts: Id, title, text and sentences of each document, at least one; the chunk takes the first one's id.
        count: Counts the tokens of texts.

    Returns:
        The chunk, with a section for each document.
    """
    sections: list[Section] = []
    sentences: list[Sentence] = []
    at = 0
    for document_id, title, text, inside in parts:
        sections.append(Section(document_id, title, at, at + len(text), whole=True))
        # Each document is judged by itself: semantic search would otherwise never find one that has only headings.
        sentences += [Sentence(at + s.start, at + s.end, s.embedded) for s in make_findable(inside)]
        at += len(text) + len(_DOCUMENT_GAP)
    text = _DOCUMENT_GAP.join(part[2] for part in parts)
    first = parts[0][0]
    return Chunk(f"{first}:0", first, 0, text, tuple(sections), tuple(sentences), count([text])[0])


def make_findable(sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """Embed everything if nothing else would be embedded: a text that has only headings must be found too."""
    if any(sentence.embedded for sentence in sentences):
        return sentences
    return [Sentence(s.start, s.end, embedded=True) for s in sentences]


def keep_documents(chunk: Chunk, document_ids: Collection[str], *, count: CountBatch) -> Chunk | None:
    """Take all documents but some out of a packed chunk.

    Args:
        chunk: The chunk.
        document_ids: The documents to keep.
        count: Counts the tokens of texts.

    Returns:
        A chunk of the documents that are left, or None if there are none.
    """
    parts = []
    for section in chunk.sections:
        if section.document_id in document_ids:
            inside = [
                Sentence(s.start - section.start, s.end - section.start, s.embedded)
                for s in chunk.sentences
                if section.start <= s.start < section.end
            ]
            parts.append((section.document_id, section.title, chunk.text[section.start : section.end], inside))
    return pack(parts, count) if parts else None
