"""Results as text for a language model: short, and with nothing left to guess."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from arag.retrieval.presentation.choose import Selection, ShownHit
from arag.retrieval.presentation.excerpts import Excerpt
from arag.retrieval.types import Chunk, Hit, KeywordReport, KeywordResults, ReadResults, Term
from arag.text.marks import list_marks, mark, without_marks
from arag.text.normalise import (
    CELL_BOUNDARY,
    CUT,
    HEADING_BOUNDARY,
    collapse_whitespace,
    count,
    is_title,
    name_words,
    without_title,
    words,
)

_LEFT_OUT = "left out: other passages are closer, or shown above. A chunk read alone, without `about`, is shown whole."
_MAX_TERM_CHUNKS = 20  # a similar term in more chunks is a common word: it is named only if it looks like a name
_MAX_ID_CHARACTERS = 200  # of an unknown id that is repeated
_LINE = re.compile(r" \| |^(?:[-*•]|\d+[.)]) ")  # a table's row, or an item of a list
_CURRENCY = re.compile(r"\s*\|\s*\$\s*\|\s*|\s+\$\s*\|\s*")  # in a cell of its own
_PERCENT = re.compile(r"(?<=[\d)]) (?=%)")


# --- searches ---


def render_keywords(results: KeywordResults, selection: Selection) -> str:
    """Write a keyword search's results: how each keyword occurs, then the hits that are shown."""
    reports = "; ".join(_report(report, results.hits) for report in results.keywords)
    if not results.hits:
        return f"{reports}.\nNo chunk holds any of these keywords."
    named = len(selection.full) + len(selection.brief) + len(selection.seen)
    for copies in selection.copies.values():
        named += len(copies)
    number = f"The best {named} of {results.total:,} chunks" if named < results.total else "All"
    return _write_selection(f"{reports}. {number}:", selection)


def render_semantic(selection: Selection) -> str:
    """Write the hits that are shown of a search by meaning."""
    if not selection.full and not selection.seen and not selection.brief:
        return "There are no sentences to search in."
    return _write_selection("The nearest, by similarity:", selection)


def _write_selection(head: str, selection: Selection) -> str:
    blocks = [head]
    named: set[str] = set()  # documents, each by its title once
    for shown in selection.full:
        hit = shown.hit
        similarity = "" if hit.keywords else f" ({hit.score:.2f})"
        block = f"{mark(hit.chunk_id)}{similarity} {_write_hit(shown, named)}".rstrip()
        copies = selection.copies.get(hit.chunk_id)
        if copies:
            block += f"\n(the same text: {list_marks(copies)})"
        blocks.append(block)
    if selection.seen:
        blocks.append(f"Shown above: {list_marks(selection.seen)}")
    if selection.brief:
        lines = ["In brief:"]
        lines += [f"{mark(shown.hit.chunk_id)} {_write_hit(shown, named)}" for shown in selection.brief]
        blocks.append("\n".join(lines))
    if not selection.full and not selection.brief:
        blocks.append("Nothing new was found.")
    return "\n\n".join(blocks)


def _write_hit(shown: ShownHit, named: set[str]) -> str:
    """Write a hit's excerpt; its document's title once, and not beside a heading if the id has its words."""
    hit, excerpt = shown.hit, shown.excerpt
    has_heading = any(sentence.under for sentence in excerpt.sentences)
    is_in_id = set(name_words(excerpt.title)) <= set(name_words(hit.chunk_id))
    is_said = hit.document_id in named or (has_heading and is_in_id)
    named.add(hit.document_id)
    return without_marks(write_excerpt(excerpt, titled=not is_said))


# --- reports on keywords ---


def _report(report: KeywordReport, hits: Sequence[Hit]) -> str:
    """Say how many chunks hold a keyword, and what else it may mean."""
    keyword = without_marks(report.keyword)
    scattered = [hit.chunk_id for hit in hits if report.keyword in hit.scattered]
    in_names = [hit.chunk_id for hit in hits if report.keyword in hit.in_name]
    if scattered:
        return f"{keyword}: only apart, in {list_marks(scattered)}"
    if in_names and not report.chunks:
        return f"{keyword}: only in the name of {list_marks(in_names)}"
    number = count(report.chunks, "chunk") if report.chunks else "none"
    notes: list[str] = []
    if in_names:
        notes.append(f"and in the name of {list_marks(in_names)}")
    if report.as_word is not None and 0 < report.as_word < report.chunks:
        notes.append(f"{report.as_word:,} as a word")
    if report.searched_as is not None:
        spelled = without_marks(report.searched_as)
        found = count(_count_chunks(report.closest, report.searched_as), "chunk")
        if report.chunks:
            notes.append(f"and {found} as {spelled}")
        else:
            number = f"spelled {spelled}"
            notes.append(found)
    elif terms := [term for term in report.closest if _is_worth_naming(term, report.keyword)]:
        names = ", ".join(f"{without_marks(term.text)} ({count(term.chunks, 'chunk')})" for term in terms)
        notes.append(f"{'similar' if report.chunks else 'closest'}: {names}")
    details = f" ({'; '.join(notes)})" if notes else ""
    return f"{keyword}: {number}{details}"


def _count_chunks(terms: Sequence[Term], text: str) -> int:
    return next(term.chunks for term in terms if term.text == text)


def _is_worth_naming(term: Term, keyword: str) -> bool:
    is_whole = len(words(term.text)) == len(words(keyword))  # and not a part of the keyword
    is_name = is_whole and term.text[:1].isupper()
    return term.respelled or is_name or term.chunks <= _MAX_TERM_CHUNKS


# --- chunks that are read ---


def render_chunks(results: ReadResults, read_chunks: Collection[str], excerpts: Mapping[str, Excerpt]) -> str:
    """Write full chunks, or excerpts of them, a notice for those read already, and what is wrong with unknown ids."""
    blocks: list[str] = []
    left_out: list[str] = []
    for chunk in results.chunks:
        if chunk.id in read_chunks:
            blocks.append(f"{mark(chunk.id)} Shown in full above.")
        elif chunk.id not in excerpts:
            blocks.append(_write_chunk(chunk))
        elif excerpts[chunk.id].sentences:
            blocks.append(f"{mark(chunk.id)} {without_marks(write_excerpt(excerpts[chunk.id]))}")
        else:
            left_out.append(chunk.id)
    if left_out:
        blocks.append(f"{list_marks(left_out)}: {_LEFT_OUT}")
    for chunk_id, closest in results.unknown.items():
        block = f"{mark(chunk_id[:_MAX_ID_CHARACTERS])} There is no chunk with this id."
        is_first = chunk_id == next(iter(results.unknown))
        if closest:
            block += f" Ids look like {list_marks(closest)}; search results give them."
        elif is_first:  # later ids have no examples in any case
            block += " The index is empty."
        blocks.append(block)
    return "\n\n".join(blocks)


def _write_chunk(chunk: Chunk) -> str:
    place: list[str] = []
    if title := without_marks(collapse_whitespace(chunk.title)):
        place.append(title)
    if not chunk.whole:
        place.append(f"part {chunk.ordinal + 1} of {chunk.parts}")
    if pages := name_pages(chunk.pages):
        place.append(pages)
    head = f"{mark(chunk.id)} {', '.join(place)}".strip()
    return f"{head}\n{without_marks(without_title(chunk.text, chunk.title))}"


def name_pages(pages: Sequence[int] | None) -> str:
    """Return a chunk's pages as in "pages 16-23"; empty if its document has none."""
    if not pages:
        return ""
    first, last = pages[0], pages[-1]
    return f"page {first}" if first == last else f"pages {first}-{last}"


# --- excerpts ---


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence as it is written."""

    text: str
    heading: str  # the headings to name in front of it; empty if they are those of the piece before
    is_line: bool  # a row or an item: on a line of its own
    names_title: bool  # the title is among the headings above it


def write_excerpt(excerpt: Excerpt, *, titled: bool = True) -> str:
    """Write an excerpt, with its title and the headings above its sentences.

    A line begins with each change of headings, with each row of a table and with each item of a list.
    """
    title = collapse_whitespace(excerpt.title) if titled else ""
    pieces, last_heading = _split_pieces(excerpt, title)
    if not pieces:  # the title or a heading alone matched
        return last_heading or title or CUT
    lines: list[str] = []
    after_line = False
    for piece in pieces:
        heading = piece.heading
        if not lines and title and not piece.names_title:
            heading = f"{title}{HEADING_BOUNDARY}{heading}" if heading else title
        if heading:
            lines.append(f"{heading}: {piece.text}")
        elif piece.is_line or after_line or not lines:
            lines.append(piece.text)
        else:
            lines[-1] += f" {piece.text}"
        after_line = piece.is_line
    is_complete = excerpt.ends or lines[-1].endswith(CUT)
    return "\n".join(lines) + ("" if is_complete else f" {CUT}")


def _split_pieces(excerpt: Excerpt, title: str) -> tuple[list[_Piece], str]:
    """Return the sentences except titles and headings, which are named in front of what follows them.

    Returns:
        The pieces, and the headings that nothing follows.
    """
    pieces: list[_Piece] = []
    heading = ""  # not yet written
    above: tuple[str, ...] = ()
    sentences = excerpt.sentences
    for place, sentence in enumerate(sentences):
        if sentence.under and sentence.under != above:
            heading = collapse_whitespace(HEADING_BOUNDARY.join(sentence.under))
        above = sentence.under
        next_under = sentences[place + 1].under if place + 1 < len(sentences) else ()
        names = [excerpt.title, *sentence.under, *next_under]
        if any(is_title(sentence.text, name) for name in names):
            continue
        text = _tidy_row(sentence.text)
        if _follows_gap(excerpt, place) and not heading and not text.startswith(CUT):
            text = f"{CUT} {text}"
        pieces.append(
            _Piece(
                text=text,
                heading=heading,
                is_line=_LINE.search(sentence.text) is not None,
                names_title=any(is_title(title, name) for name in sentence.under),
            )
        )
        heading = ""
    return pieces, heading


def _follows_gap(excerpt: Excerpt, place: int) -> bool:
    """Return whether sentences of the chunk are left out before one of an excerpt."""
    if place == 0:
        return not excerpt.begins
    before, sentence = excerpt.sentences[place - 1], excerpt.sentences[place]
    return sentence.position != before.position + 1


def _tidy_row(text: str) -> str:
    """Join currency signs, numbers and percent signs in a table's row."""
    if CELL_BOUNDARY not in text:
        return text
    return _PERCENT.sub("", _CURRENCY.sub(" | $", text))
