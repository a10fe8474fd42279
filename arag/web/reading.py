"""What the pages of a document and of a passage show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from arag.retrieval.types import Chunk

_MAX_ENTRIES = 1_000  # headings and tables of a document that are listed


@dataclass(frozen=True)
class Entry:
    """A heading or a table of a document, and where it is."""

    text: str
    level: int
    chunk_id: str
    start: int
    rows: int = 0


def list_headings(chunks: Sequence[Chunk]) -> list[Entry]:
    """Return the headings of a document, each once, with the place of the first sentence below it."""
    entries: dict[tuple[str, ...], Entry] = {}
    for chunk in chunks:
        for sentence in chunk.sentences:
            path = tuple(filter(None, sentence.heading.split(" > ")))
            for level in range(1, len(path) + 1):
                if path[:level] not in entries:
                    entries[path[:level]] = Entry(path[level - 1], level, chunk.id, sentence.start)
    return list(entries.values())[:_MAX_ENTRIES]


def list_tables(chunks: Sequence[Chunk]) -> list[Entry]:
    """Return the tables of a document by their columns, with how many rows have them."""
    entries: dict[str, Entry] = {}
    for chunk in chunks:
        for sentence in chunk.sentences:
            if not sentence.header:
                continue
            first = entries.get(sentence.header, Entry(sentence.header, 1, chunk.id, sentence.start))
            entries[sentence.header] = Entry(first.text, 1, first.chunk_id, first.start, first.rows + 1)
    return list(entries.values())[:_MAX_ENTRIES]


def marked_texts(chunk: Chunk, starts: Collection[int]) -> list[str]:
    """Return the sentences of a chunk that begin at some places."""
    return [chunk.text[each.start : each.end] for each in chunk.sentences if each.start in starts]


def mark_sentences(chunk: Chunk, starts: Collection[int], *, anchored: bool) -> Markup:
    """Return a chunk's text as HTML with the sentences marked that begin at some places, to which links may lead."""
    html = Markup("")
    end = 0
    for sentence in chunk.sentences:
        if sentence.start in starts:
            before, text = chunk.text[end : sentence.start], chunk.text[sentence.start : sentence.end]
            anchor = Markup(' id="s{}"').format(sentence.start) if anchored else ""
            html += Markup("{}<mark{}>{}</mark>").format(before, anchor, text)
            end = sentence.end
    return html + Markup("{}").format(chunk.text[end:])
