"""Cuts documents into chunks of about a thousand tokens, at the ends of sentences (paper, section 3.1)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from arag.ingest.documents import Document
from arag.ingest.sentences import split_sentences
from arag.retrieval.types import Chunk, Sentence

CountBatch: TypeAlias = Callable[[Sequence[str]], list[int]]

# Tokens. Embedding models read a few hundred and ignore the rest: a longer "sentence" (a table, a list without full
# stops) is cut into pieces that are embedded in full.
MAX_SENTENCE_TOKENS = 256
_LINE = re.compile(r".+\s*")
_WORD = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a document that becomes one chunk."""

    chunk_id: str
    text: str
    sentences: list[Sentence]
    pages: tuple[int, int] | None = None  # the first and the last one


def chunk_document(document: Document, *, chunk_tokens: int, count: CountBatch) -> list[Chunk]:
    """Cut a document into chunks, in order; their concatenated texts are the document's text.

    Chunks end where a sentence ends and are filled up to `chunk_tokens`; a heading is not left behind at the end
    of one. A sentence that is longer than a chunk is cut between its lines, or else its words. Chunks that came with
    the document are kept unchanged.

    Args:
        document: The document.
        chunk_tokens: Maximum tokens in a chunk.
        count: Counts the tokens of each of several texts.

    Returns:
        The chunks with their sentences.
    """
    if document.ready_chunks is None:
        parts = _cut_text(document, chunk_tokens, count)
    else:
        parts = [_Part(chunk_id, text, _split_chunk(text, count)) for chunk_id, text in document.ready_chunks]
    return [
        Chunk(
            id=part.chunk_id,
            document_id=document.id,
            ordinal=ordinal,
            title=document.title,
            text=part.text,
            sentences=_make_findable(part.sentences),
            tokens=count([part.text])[0],
            parts=len(parts),
            pages=part.pages,
        )
        for ordinal, part in enumerate(parts)
    ]


def _split_chunk(text: str, count: CountBatch) -> list[Sentence]:
    return _cut_long(text, split_sentences(text), MAX_SENTENCE_TOKENS, count)


def _cut_text(document: Document, chunk_tokens: int, count: CountBatch) -> list[_Part]:
    text = document.text
    sentences = split_sentences(
        text,
        title=document.title,
        guess_headings=not document.marks_headings,
        headings_apart=document.headings_apart,
        is_plain=document.is_plain,
        is_code=document.is_code,
        barred_lines=document.barred_lines,
    )
    sentences = _cut_long(text, sentences, chunk_tokens, count)
    boundaries = [*_chunk_starts(text, sentences, chunk_tokens, count), len(text)]
    sentences = _cut_long(text, sentences, MAX_SENTENCE_TOKENS, count)
    sentence_starts = [sentence.start for sentence in sentences]
    parts: list[_Part] = []
    for start, end in pairwise(boundaries):
        first = bisect_left(sentence_starts, start)
        after_last = bisect_left(sentence_starts, end)
        part = _Part(
            chunk_id=f"{document.id}:{len(parts)}",
            text=text[start:end],
            sentences=[_shift(sentence, -start) for sentence in sentences[first:after_last]],
            pages=_pages(document, start, end),
        )
        parts.append(part)
    return parts


def _shift(sentence: Sentence, offset: int) -> Sentence:
    return replace(sentence, start=sentence.start + offset, end=sentence.end + offset)


def _make_findable(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Embed everything if nothing else would be embedded: a text that has only headings must be found too."""
    if any(sentence.embedded for sentence in sentences):
        return tuple(sentences)
    return tuple(replace(sentence, embedded=True) for sentence in sentences)


def _cut_long(text: str, sentences: list[Sentence], max_tokens: int, count: CountBatch) -> list[Sentence]:
    """Cut sentences that are too long at the ends of lines. In a PDF, the lines are rows of tables."""
    pieces: list[Sentence] = []
    for sentence in sentences:
        if _fits(text[sentence.start : sentence.end], max_tokens, count):
            pieces.append(sentence)
            continue
        for start, end in _fill(text, sentence.start, sentence.end, max_tokens, count):
            length = len(text[start:end].rstrip())
            pieces.append(replace(sentence, start=start, end=start + length))
    return pieces


def _fits(text: str, max_tokens: int, count: CountBatch) -> bool:
    # A token has at least one byte: most texts need not be counted.
    return len(text.encode()) <= max_tokens or count([text])[0] <= max_tokens


def _fill(
    text: str,
    start: int,
    end: int,
    max_tokens: int,
    count: CountBatch,
    patterns: Sequence[re.Pattern[str]] = (_LINE, _WORD),
) -> list[tuple[int, int]]:
    """Cut between lines. Cut a line that is too long between its words, and such a word in the middle."""
    if patterns:
        spans = [match.span() for match in patterns[0].finditer(text, start, end)]
    else:
        middle = (start + end) // 2
        spans = [(start, middle), (middle, end)]
    sizes = count([text[first:last] for first, last in spans])
    full = max_tokens + 1  # the next span then begins a new piece
    filled = full
    pieces: list[tuple[int, int]] = []
    for (first, last), size in zip(spans, sizes, strict=True):
        if size > max_tokens:
            pieces += _fill(text, first, last, max_tokens, count, patterns[1:])
            filled = full
        elif filled + size > max_tokens:
            pieces.append((first, last))
            filled = size
        else:
            piece_start, _ = pieces[-1]
            pieces[-1] = (piece_start, last)
            filled += size
    return pieces


def _chunk_starts(text: str, sentences: Sequence[Sentence], chunk_tokens: int, count: CountBatch) -> list[int]:
    """Fill chunks sentence by sentence and return where each begins, the first at 0."""
    if _fits(text, chunk_tokens, count):
        return [0]
    sentence_starts = [sentence.start for sentence in sentences]
    bounds = pairwise([0, *sentence_starts[1:], len(text)])
    sizes = count([text[start:end] for start, end in bounds])
    chunk_starts = [0]
    first = 0  # the chunk's first sentence
    filled = 0
    for number, size in enumerate(sizes):
        if number > first and filled + size > chunk_tokens:
            first = _before_headings(sentences, sizes, first, number, chunk_tokens)
            chunk_starts.append(sentence_starts[first])
            filled = sum(sizes[first:number])
        filled += size
    return chunk_starts


def _before_headings(
    sentences: Sequence[Sentence],
    sizes: Sequence[int],
    first: int,
    boundary: int,
    chunk_tokens: int,
) -> int:
    """Move a boundary in front of the headings before it, which belong to the text after them.

    Headings that do not fit into one chunk with that text fill chunks like other text.
    """
    end = boundary
    filled = sizes[boundary]
    while not sentences[end].embedded and end + 1 < len(sentences) and filled <= chunk_tokens:
        end += 1
        filled += sizes[end]
    while boundary - 1 > first and not sentences[boundary - 1].embedded:
        filled += sizes[boundary - 1]
        if filled > chunk_tokens:
            break
        boundary -= 1
    return boundary


def _pages(document: Document, start: int, end: int) -> tuple[int, int] | None:
    if not document.page_starts:
        return None
    last_character = max(start, end - 1)
    return bisect_right(document.page_starts, start), bisect_right(document.page_starts, last_character)
