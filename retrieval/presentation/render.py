"""Results as text for a language model: short, and with nothing left to guess."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rapidfuzz import fuzz

from arag.retrieval.presentation.excerpts import Excerpt
from arag.retrieval.presentation.places import name_pages_of, name_part, name_place
from arag.retrieval.presentation.selection import Selection, ShownHit
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
    with_colon,
    without_title,
    words,
)
from arag.text.scripts import is_east_asian

_LEFT_OUT = "left out: other passages are closer, or shown above. A chunk read alone, without `about`, is shown whole."
_MAX_TERM_CHUNKS = 20  # a similar term in more chunks is a common word: it is named only if it looks like a name...
_MIN_SIMILARITY = 85.0  # ...or if the keyword is probably a typo of it (rapidfuzz ratio, 0 to 100)
_MAX_SEEN = 8  # hits that were seen and are named again: each costs about ten tokens
_MAX_ID_CHARACTERS = 200  # of an unknown id that is repeated
_LINE = re.compile(r" \| |^(?:[-*•]|\d+[.)]) ")  # a table's row, or an item of a list
_CURRENCY = re.compile(r"\s*\|\s*\$\s*\|\s*|\s+\$\s*\|\s*")  # in a cell of its own
_PERCENT = re.compile(r"(?<=[\d)]) (?=%)")


# --- searches ---


def render_keywords(results: KeywordResults, selection: Selection, *, way_on: str = "") -> str:
    """Write a keyword search's results: how each keyword occurs, then the hits that are shown.

    Args:
        results: The results.
        selection: What is shown of them.
        way_on: Behind the number of chunks if not all are shown: how to see the others.
    """
    reports = report_keywords(results)
    if not results.hits:
        return reports
    named = selection.count_named()
    extent = "All"
    if named < results.total:
        extent = f"The best {named} of {results.total:,} chunks{way_on}"
    return write_selection(f"{reports} {extent}:", selection)


def report_keywords(results: KeywordResults) -> str:
    """Say of each keyword how it occurs, and if nothing was found, that."""
    reports = "; ".join(_report(report, results.hits) for report in results.keywords)
    if not results.hits:
        return f"{reports}.\nNo chunk holds any of these keywords."
    return f"{reports}."


def render_semantic(selection: Selection, *, counted: set[str] | None = None) -> str:
    """Write the hits that are shown of a search by meaning.

    Args:
        selection: What is shown of them.
        counted: The documents of which the text says already how many parts they have; more are added.
    """
    if not selection.full and not selection.seen and not selection.brief:
        return "There are no sentences to search in."
    return write_selection("The nearest, by similarity:", selection, counted)


def write_selection(
    head: str, selection: Selection, counted: set[str] | None = None, *, for_people: bool = False
) -> str:
    """Write the hits that are shown, below a first line."""
    if counted is None:
        counted = set()
    writer = _HitWriter(counted)
    blocks = [head]
    for shown in selection.full:
        is_semantic = not shown.hit.keywords
        blocks.append(writer.write(shown, rated=is_semantic).rstrip() + _name_copies(shown, selection, for_people))
    if selection.seen:
        blocks.append(f"Shown above: {_list_seen(selection.seen)}")
    if selection.brief:
        lines = ["In brief:"]
        lines += [writer.write(shown) + _name_copies(shown, selection, for_people) for shown in selection.brief]
        blocks.append("\n".join(lines))
    if not selection.full and not selection.brief:
        blocks.append("Nothing new was found.")
    return "\n\n".join(blocks)


def _list_seen(chunk_ids: Sequence[str]) -> str:
    """Return the marks of the first hits that were seen, and how many others there are."""
    named = list_marks(chunk_ids[:_MAX_SEEN])
    others = len(chunk_ids) - _MAX_SEEN
    if others > 0:
        return f"{named} and {others:,} more"
    return named


def _name_copies(shown: ShownHit, selection: Selection, for_people: bool) -> str:
    """Return the ids of a hit's copies, as a line below it. People are told if only what is shown is the same."""
    copies = [copy.hit for copy in selection.list_copies([shown])]
    if for_people:
        copies = [copy for copy in copies if copy.document_id != shown.hit.document_id]
    if not copies:
        return ""
    relation = "the same text"
    if for_people and any(copy.chunk.text != shown.hit.chunk.text for copy in copies):
        relation = "the same sentences are in"
    return f"\n({relation}: {list_marks([copy.chunk_id for copy in copies])})"


def _in_brackets(notes: Sequence[str]) -> str:
    """Return notes behind a mark, without the empty ones."""
    text = ", ".join(filter(None, notes))
    if not text:
        return ""
    return f" ({text})"


class _HitWriter:
    """Writes the excerpts of hits; each document's title, and how many parts it has, once."""

    def __init__(self, counted: set[str]) -> None:
        self._named: set[str] = set()  # documents whose titles are written
        self._counted = counted  # documents of which it is written how many parts they have

    def write(self, shown: ShownHit, *, rated: bool = False) -> str:
        """Write a hit's excerpt behind its mark, its similarity if wanted, and its place in the document.

        Beside a heading, the title is left out if the id has its words.
        """
        hit = shown.hit
        notes: list[str] = []
        if rated:
            notes.append(f"{hit.score:.2f}")
        if hit.document_id not in self._counted:
            notes.append(name_part(hit.chunk))
        notes.append(name_pages_of(hit.chunk))
        is_titled = hit.document_id not in self._named and not _is_named_by_id(shown)
        self._counted.add(hit.document_id)
        self._named.add(hit.document_id)
        text = without_marks(write_excerpt(shown.excerpt, titled=is_titled))
        return f"{mark(hit.chunk_id)}{_in_brackets(notes)} {text}"


def _is_named_by_id(shown: ShownHit) -> bool:
    """Return whether an excerpt has a heading, and its chunk's id all words of the title."""
    excerpt = shown.excerpt
    if not any(sentence.under for sentence in excerpt.sentences):
        return False
    title_words = set(name_words(excerpt.title))
    return title_words.issubset(name_words(shown.hit.chunk_id))


# --- reports on keywords ---


def _report(report: KeywordReport, hits: Sequence[Hit]) -> str:
    """Say how many chunks hold a keyword, and what else it may mean."""
    keyword = without_marks(report.keyword)
    scattered = [hit for hit in hits if report.keyword in hit.scattered]
    if scattered:
        marks = list_marks([hit.chunk_id for hit in scattered])
        if is_east_asian(keyword):
            parts = ", ".join(scattered[0].scattered[report.keyword])
            return f"{keyword}: only {without_marks(parts)}, in {marks}"
        return f"{keyword}: only apart, in {marks}"
    in_names = [hit.chunk_id for hit in hits if report.keyword in hit.in_name]
    if in_names and not report.chunks:
        return f"{keyword}: only in the name of {list_marks(in_names)}"
    notes: list[str] = []
    if in_names:
        notes.append(f"and in the name of {list_marks(in_names)}")
    notes += _list_notes(report)
    details = f" ({'; '.join(notes)})" if notes else ""
    return f"{keyword}: {_write_extent(report)}{details}"


def _write_extent(report: KeywordReport) -> str:
    """Say how many chunks hold a keyword, or how it is spelled in the corpus."""
    if report.chunks and report.as_word == 0:
        return f"{count(report.chunks, 'chunk')}, only within longer words"
    if report.chunks:
        return count(report.chunks, "chunk")
    if report.searched_as is not None:
        return f"spelled {without_marks(report.searched_as)}"
    return "none"


def _list_notes(report: KeywordReport) -> list[str]:
    """Return the notes on a keyword: chunks that hold it as a word, and its other spelling or similar terms."""
    notes: list[str] = []
    if report.as_word is not None and 0 < report.as_word < report.chunks:
        notes.append(f"{report.as_word:,} as a word")
    if report.searched_as is not None:
        notes.append(_write_other_spelling(report, report.searched_as))
        return notes
    terms = list_closest(report)
    if terms:
        relation = "similar" if report.chunks else "closest"
        names = ", ".join(f"{without_marks(term.text)} ({count(term.chunks, 'chunk')})" for term in terms)
        notes.append(f"{relation}: {names}")
    return notes


def list_closest(report: KeywordReport) -> list[Term]:
    """Return the terms that may be meant by a keyword that few or no chunks hold."""
    return [term for term in report.closest if _is_worth_naming(term, report.keyword)]


def _write_other_spelling(report: KeywordReport, spelling: str) -> str:
    """Say how many chunks hold the other spelling that was searched for."""
    chunks = next(term.chunks for term in report.closest if term.text == spelling)
    found = count(chunks, "chunk")
    if not report.chunks:  # the spelling is named already
        return found
    return f"and {found} as {without_marks(spelling)}"


def _is_worth_naming(term: Term, keyword: str) -> bool:
    """Return whether a similar term may be meant: a respelling, a name, or a rare word."""
    if term.respelled or term.chunks <= _MAX_TERM_CHUNKS:
        return True
    if is_east_asian(keyword) and term.text in keyword.lower():  # the phrase was tried in parts
        return True
    is_whole = len(words(term.text)) == len(words(keyword))  # and not a part of the keyword
    is_typo = fuzz.ratio(term.text.lower(), keyword.lower()) >= _MIN_SIMILARITY
    return is_whole and (is_typo or term.text[:1].isupper())


# --- chunks that are read ---


def render_chunks(results: ReadResults, read_chunks: Collection[str], excerpts: Mapping[str, Excerpt]) -> str:
    """Write full chunks, or excerpts of them, a notice for those read already, and what is wrong with unknown ids."""
    blocks: list[str] = []
    left_out: list[str] = []
    counted: set[str] = set()  # documents of which it is written how many parts they have
    for chunk in results.chunks:
        excerpt = excerpts.get(chunk.id)
        if chunk.id in read_chunks:
            blocks.append(f"{mark(chunk.id)} Shown in full above.")
        elif excerpt is None:
            blocks.append(_write_chunk(chunk))
        elif excerpt.sentences:
            text = without_marks(write_excerpt(excerpt))
            place = name_pages_of(chunk)
            if chunk.document_id not in counted:
                place = name_place(chunk)
            counted.add(chunk.document_id)
            blocks.append(f"{mark(chunk.id)}{_in_brackets([place])} {text}")
        else:
            left_out.append(chunk.id)
    if left_out:
        blocks.append(f"{list_marks(left_out)}: {_LEFT_OUT}")
    blocks += _write_unknown(results.unknown)
    return "\n\n".join(blocks)


def _write_unknown(unknown: Mapping[str, Sequence[str]]) -> list[str]:
    """Write a block for each unknown id, given with ids that exist."""
    blocks: list[str] = []
    for chunk_id, closest in unknown.items():
        block = f"{mark(chunk_id[:_MAX_ID_CHARACTERS])} There is no chunk with this id."
        if closest:
            block += f" Ids look like {list_marks(closest)}; search results give them."
        elif not blocks:  # later ids have no examples in any case
            block += " The index is empty."
        blocks.append(block)
    return blocks


def _write_chunk(chunk: Chunk) -> str:
    """Write a chunk's full text below its mark, with its title and its place in the document."""
    origin: list[str] = []
    title = without_marks(collapse_whitespace(chunk.title))
    if title:
        origin.append(title)
    place = name_place(chunk)
    if place:
        origin.append(place)
    head = f"{mark(chunk.id)} {', '.join(origin)}".strip()
    text = without_marks(without_title(chunk.text, chunk.title))
    return f"{head}\n{text}"


# --- excerpts ---


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence as it is written."""

    text: str
    heading: str  # the headings to name in front of it; empty if they are those of the piece before
    under: tuple[str, ...]  # the headings above it
    is_line: bool  # a row or an item: on a line of its own
    on_new_line: bool


def write_excerpt(excerpt: Excerpt, *, titled: bool = True) -> str:
    """Write an excerpt, with its title and the headings above its sentences.

    A line begins with each change of headings, with each row of a table and with each item of a list.
    """
    title = collapse_whitespace(excerpt.title) if titled else ""
    pieces = _list_pieces(excerpt)
    if not pieces:  # the title or a heading alone matched
        return _last_heading(excerpt) or title or CUT
    if title:
        pieces[0] = _name_title(pieces[0], title)
    text = _join_pieces(pieces)
    if excerpt.ends or text.endswith(CUT):
        return text
    return f"{text} {CUT}"


def _list_pieces(excerpt: Excerpt) -> list[_Piece]:
    """Return the sentences except titles and headings, which are named in front of the sentences below them."""
    pieces: list[_Piece] = []
    heading = ""  # not yet written
    above: tuple[str, ...] = ()
    for place, sentence in enumerate(excerpt.sentences):
        if sentence.under and sentence.under != above:
            heading = _join_headings(sentence.under)
        above = sentence.under
        if _is_heading(excerpt, place) or sentence.is_rule():
            continue
        text = sentence.lines or _tidy_row(sentence.text)
        if _follows_gap(excerpt, place) and not heading and not text.startswith(CUT):
            text = f"{CUT}\n{text}" if sentence.lines else f"{CUT} {text}"
        elif sentence.lines and heading:
            text = f"\n{text}"
        piece = _Piece(
            text=text,
            heading=heading,
            under=sentence.under,
            is_line=sentence.lines != "" or _LINE.search(sentence.text) is not None,
            on_new_line=sentence.on_new_line,
        )
        pieces.append(piece)
        heading = ""
    return pieces


def _join_headings(headings: Sequence[str]) -> str:
    return collapse_whitespace(HEADING_BOUNDARY.join(headings))


def _last_heading(excerpt: Excerpt) -> str:
    """Return the headings above the last sentence that has any, or an empty string."""
    for sentence in reversed(excerpt.sentences):
        if sentence.under:
            return _join_headings(sentence.under)
    return ""


def _is_heading(excerpt: Excerpt, place: int) -> bool:
    """Return whether a sentence is the title, or a heading of its own or of the next sentence."""
    sentence = excerpt.sentences[place]
    names = [excerpt.title, *sentence.under]
    for following in excerpt.sentences[place + 1 : place + 2]:
        names += following.under
    return any(is_title(sentence.text, name) for name in names)


def _follows_gap(excerpt: Excerpt, place: int) -> bool:
    """Return whether sentences of the chunk are left out before one of an excerpt."""
    if place == 0:
        return not excerpt.begins
    before, sentence = excerpt.sentences[place - 1], excerpt.sentences[place]
    return sentence.position != before.position + 1


def _name_title(piece: _Piece, title: str) -> _Piece:
    """Put the title in front of a piece's headings, unless it is one of them."""
    if any(is_title(title, heading) for heading in piece.under):
        return piece
    if not piece.heading:
        text = f"\n{piece.text}" if "\n" in piece.text else piece.text
        return replace(piece, heading=title, text=text)
    return replace(piece, heading=f"{title}{HEADING_BOUNDARY}{piece.heading}")


def _join_pieces(pieces: Sequence[_Piece]) -> str:
    """Join pieces; rows and items are on lines of their own, and so are changes of headings."""
    lines: list[str] = []
    needs_line = True
    for piece in pieces:
        if piece.heading:
            space = "" if piece.text.startswith("\n") else " "
            lines.append(f"{with_colon(piece.heading)}{space}{piece.text}")
        elif needs_line or piece.is_line or piece.on_new_line:
            lines.append(piece.text)
        else:
            lines[-1] += f" {piece.text}"
        needs_line = piece.is_line
    return "\n".join(lines)


def _tidy_row(text: str) -> str:
    """Join currency signs, numbers and percent signs in a table's row."""
    if CELL_BOUNDARY not in text:
        return text
    text = _CURRENCY.sub(" | $", text)
    return _PERCENT.sub("", text)
