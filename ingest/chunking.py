"""Documents into chunks of about a thousand tokens whose borders are sentence borders (paper, section 3.1)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from arag.ingest.documents import Document
from arag.ingest.sentences import split_sentences
from arag.retrieval.types import Chunk, Sentence

CountBatch: TypeAlias = Callable[[Sequence[str]], list[int]]

# Embedding models read a few hundred tokens and ignore the rest: a longer "sentence" (a table, a list without full
# stops) is cut into pieces that are embedded in full.
MAX_SENTENCE_TOKENS = 256
_LINE = re.compile(r".+\s*")
_WORD = re.compile(r"\S+\s*")


def chunk_document(document: Document, *, chunk_tokens: int, count: CountBatch) -> list[Chunk]:
    """Cut a document into chunks, in order; their concatenated texts are the document's text.

    Chunks end where a sentence ends and are filled up to `chunk_tokens`; a heading is not left behind at the end
    of one. A sentence that is longer than a chunk is cut between its lines, or else its words. Chunks that came with
    the document are kept unchanged.
    """
    parts = list(_cut_document(document, chunk_tokens, count))
    return [
        Chunk(
            id=chunk_id,
            document_id=document.id,
            ordinal=ordinal,
            title=document.title,
            text=text,
            sentences=_make_findable(sentences),
            tokens=count([text])[0],
            parts=len(parts),
            pages=pages,
        )
        for ordinal, (chunk_id, text, sentences, pages) in enumerate(parts)
    ]


_Part: TypeAlias = tuple[str, str, list[Sentence], tuple[int, int] | None]  # chunk id, text, sentences, pages


def _cut_document(document: Document, chunk_tokens: int, count: CountBatch) -> Iterator[_Part]:
    for chunk_id, text in document.ready_chunks or ():
        yield chunk_id, text, _cut_long(text, split_sentences(text), MAX_SENTENCE_TOKENS, count), None
    if document.ready_chunks is not None:
        return
    text = document.text
    sentences = split_sentences(text, title=document.title)
    sentences = _cut_long(text, sentences, chunk_tokens, count)
    borders = [*_chunk_starts(text, sentences, chunk_tokens, count), len(text)]
    sentences = _cut_long(text, sentences, MAX_SENTENCE_TOKENS, count)
    starts = [sentence.start for sentence in sentences]
    for ordinal, (start, end) in enumerate(pairwise(borders)):
        inside = sentences[bisect_left(starts, start) : bisect_left(starts, end)]
        inside = [replace(s, start=s.start - start, end=s.end - start) for s in inside]
        yield f"{document.id}:{ordinal}", text[start:end], inside, _pages(document, start, end)


def _make_findable(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Embed everything if nothing else would be embedded: a text that has only headings must be found too."""
    if any(sentence.embedded for sentence in sentences):
        return tuple(sentences)
    return tuple(replace(sentence, embedded=True) for sentence in sentences)


def _cut_long(text: str, sentences: list[Sentence], max_tokens: int, count: CountBatch) -> list[Sentence]:
    """Cut sentences that are too long."""
    pieces: list[Sentence] = []
    for sentence in sentences:
        if _fits(text[sentence.start : sentence.end], max_tokens, count):
            pieces.append(sentence)
        else:
            pieces += _cut(text, sentence, max_tokens, count)
    return pieces


def _fits(text: str, max_tokens: int, count: CountBatch) -> bool:
    # A token has at least one byte: most texts need not be counted.
    return len(text.encode()) <= max_tokens or count([text])[0] <= max_tokens


def _cut(text: str, sentence: Sentence, max_tokens: int, count: CountBatch) -> Iterator[Sentence]:
    """Cut a sentence into pieces of at most `max_tokens`, at the ends of lines: in a PDF, they are rows of tables."""
    for start, end in _fill(text, sentence.start, sentence.end, _LINE, max_tokens, count):
        yield replace(sentence, start=start, end=start + len(text[start:end].rstrip()))


def _fill(
    text: str, start: int, end: int, part: re.Pattern[str], max_tokens: int, count: CountBatch
) -> list[tuple[int, int]]:
    """Cut between lines, or between the words of a line that is too long, or inside a word that is too long."""
    places = [match.span() for match in part.finditer(text, start, end)]
    pieces: list[tuple[int, int]] = []
    filled = max_tokens + 1
    for (first, last), size in zip(places, count([text[first:last] for first, last in places]), strict=True):
        if size > max_tokens:
            if part is _LINE:
                pieces += _fill(text, first, last, _WORD, max_tokens, count)
            else:
                pieces += _halves(text, first, last, max_tokens, count)
            filled = max_tokens + 1
        elif filled + size > max_tokens:
            pieces.append((first, last))
            filled = size
        else:
            pieces[-1] = (pieces[-1][0], last)
            filled += size
    return pieces


def _halves(text: str, start: int, end: int, max_tokens: int, count: CountBatch) -> Iterator[tuple[int, int]]:
    if end - start < 2 or count([text[start:end]])[0] <= max_tokens:
        yield start, end
        return
    middle = (start + end) // 2
    yield from _halves(text, start, middle, max_tokens, count)
    yield from _halves(text, middle, end, max_tokens, count)


def _chunk_starts(text: str, sentences: Sequence[Sentence], chunk_tokens: int, count: CountBatch) -> list[int]:
    """Fill chunks sentence by sentence and return where each begins, the first at 0."""
    if _fits(text, chunk_tokens, count):
        return [0]
    starts = [sentence.start for sentence in sentences]
    sizes = count([text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])])
    borders = [0]
    first = 0  # the chunk's first sentence
    filled = 0
    for i, size in enumerate(sizes):
        if i > first and filled + size > chunk_tokens:
            at = _before_headings(sentences, sizes, first, i, chunk_tokens)
            borders.append(starts[at])
            first = at
            filled = sum(sizes[at:i])
        filled += size
    return borders


def _before_headings(
    sentences: Sequence[Sentence], sizes: Sequence[int], first: int, border: int, chunk_tokens: int
) -> int:
    """Move a border in front of the headings before it, which belong to what follows them.

    Headings that do not fit into one chunk with what follows them fill chunks like other text.
    """
    end = border
    filled = sizes[border]
    while not sentences[end].embedded and end + 1 < len(sentences) and filled <= chunk_tokens:
        end += 1
        filled += sizes[end]
    at = border
    while at - 1 > first and not sentences[at - 1].embedded and filled + sizes[at - 1] <= chunk_tokens:
        at -= 1
        filled += sizes[at]
    return at


def _pages(document: Document, start: int, end: int) -> tuple[int, int] | None:
    if not document.page_starts:
        return None
    return bisect_right(document.page_starts, start), bisect_right(document.page_starts, max(start, end - 1))
