"""Excerpts: the sentences that are shown of a chunk, under their headings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from arag.retrieval.presentation.code_lines import code_lines
from arag.retrieval.presentation.context import MAX_SHORT_CHARACTERS, find_missed, is_short
from arag.retrieval.presentation.sentences import cut_around, sentence_line
from arag.retrieval.presentation.table_rows import find_header
from arag.retrieval.types import Chunk
from arag.text.normalise import HEADING_BOUNDARY, is_title

MAX_SENTENCE_CHARACTERS = 400  # a longer sentence is cut

_RULE = re.compile(r"([-=~^*_+#.])\1{2,}")
_MAX_HEADINGS = 2  # that are named above a sentence: the nearest ones say most


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence that is shown, on one line."""

    position: int
    """Its place among the chunk's sentences, from 0."""
    text: str
    matched: bool
    """Whether it matched, or is shown as context."""
    similarity: float | None = None
    """Similarity to the query, for matched sentences of a semantic search."""
    cut: bool = False
    """Whether the text is only a part of the sentence; `…` marks what is left out."""
    lines: str = ""
    """The whole sentence with its line ends and indents, if it is code and not cut."""
    under: tuple[str, ...] = ()
    """The headings above it, outermost first, and its table's header if that is not shown."""
    on_new_line: bool = False
    """Whether it is shown, for people, on a new line."""

    def is_rule(self) -> bool:
        """Return whether it is a line below a title, or across the text: a place to go on, with nothing to show."""
        return _RULE.fullmatch(self.text.strip()) is not None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences that are shown of a chunk."""

    title: str
    sentences: tuple[ShownSentence, ...]
    begins: bool
    """Whether the first one is the chunk's first, apart from a title."""
    ends: bool
    """Whether the last one is the chunk's last."""
    whole: bool
    """Whether this is the document's whole text."""
    has_seen: bool = field(default=False, compare=False)
    """Whether sentences were left out because the conversation has seen them."""
    best: int | None = field(default=None, compare=False)
    """The position of the sentence that matched best, if that is known."""


@dataclass(frozen=True, slots=True)
class ChosenSentences:
    """The sentences of a chunk that are chosen for an excerpt, given by position."""

    shown: AbstractSet[int]
    matched: AbstractSet[int]
    similarities: Mapping[int, float] = field(default_factory=dict)
    """Similarities to the query."""
    offsets: Mapping[int, int] = field(default_factory=dict)
    """Where the matches are in their sentences: a long sentence is cut around its match."""
    best: int | None = None
    """The one that matched best, if that is known."""


def make_excerpt(
    chunk: Chunk,
    chosen: ChosenSentences,
    *,
    seen: Collection[int] = (),
    longest: int = MAX_SENTENCE_CHARACTERS,
) -> Excerpt:
    """Make an excerpt; without sentences if the conversation has seen all that matched.

    Args:
        chunk: The chunk.
        chosen: Its chosen sentences.
        seen: Positions of the sentences that the conversation has seen: they are left out.
        longest: The most characters of a sentence.
    """
    new = [position for position in sorted(chosen.shown) if position not in seen]
    has_seen = len(new) < len(chosen.shown)
    if has_seen and chosen.matched.isdisjoint(new):
        new = []
    if not new:
        return Excerpt(chunk.title, (), begins=False, ends=False, whole=False, has_seen=has_seen)
    is_complete = len(chosen.shown) == len(chunk.sentences)
    if is_complete and is_short(chunk):
        longest = MAX_SHORT_CHARACTERS
    sentences = [_show_sentence(chunk, position, chosen, longest) for position in new]
    is_cut = any(sentence.cut for sentence in sentences)
    return Excerpt(
        title=chunk.title,
        sentences=tuple(sentences),
        begins=_begins(chunk, new[0]),
        ends=new[-1] == len(chunk.sentences) - 1,
        whole=chunk.whole and is_complete and not has_seen and not is_cut,
        has_seen=has_seen,
        best=chosen.best,
    )


def complete(chunk: Chunk, excerpt: Excerpt) -> Excerpt:
    """Return an excerpt, for people, with the sentences without which it would say too little."""
    shown = {sentence.position for sentence in excerpt.sentences}
    matched = [sentence.position for sentence in excerpt.sentences if sentence.matched]
    missed = find_missed(chunk, shown, matched, excerpt.best)
    nothing = ChosenSentences(shown=set(), matched=set())
    added = [_show_sentence(chunk, position, nothing, MAX_SENTENCE_CHARACTERS) for position in missed]
    sentences = sorted([*excerpt.sentences, *added], key=lambda sentence: sentence.position)
    ends = excerpt.ends or len(chunk.sentences) - 1 in missed
    return replace(excerpt, sentences=tuple(sentences), ends=ends)


def _show_sentence(chunk: Chunk, position: int, chosen: ChosenSentences, longest: int) -> ShownSentence:
    """Return a sentence with at most `longest` characters, around its match."""
    line = sentence_line(chunk, position)
    offset = chosen.offsets.get(position, 0)
    text = cut_around(line, offset, longest)
    is_match = position in chosen.matched
    similarity: float | None = None
    if is_match:
        similarity = chosen.similarities.get(position)
    return ShownSentence(
        position=position,
        text=text,
        matched=is_match,
        similarity=similarity,
        cut=text != line,
        lines=code_lines(chunk, position) if text == line else "",
        under=_find_headings(chunk, position),
    )


def _begins(chunk: Chunk, first: int) -> bool:
    """Return whether nothing comes before a sentence except the title."""
    if first == 0:
        return True
    return first == 1 and is_title(chunk.sentence_text(0), chunk.title)


def _find_headings(chunk: Chunk, position: int) -> tuple[str, ...]:
    """Return the headings above a sentence, and the header of its table if the chunk does not hold it."""
    sentence = chunk.sentences[position]
    nearest = sentence.heading.split(HEADING_BOUNDARY)[-_MAX_HEADINGS:]
    headings = [heading for heading in nearest if heading]
    if sentence.header and find_header(chunk, position) == position:
        headings.append(sentence.header)
    return tuple(headings)
