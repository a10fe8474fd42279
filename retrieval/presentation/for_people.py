"""The hits of a search as text for people: as many as were asked for, in the order of their rank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log
from typing import NamedTuple

from arag.retrieval.index import Index
from arag.retrieval.presentation.code_lines import code_lines_of_part
from arag.retrieval.presentation.context import begins_paragraph, expand
from arag.retrieval.presentation.excerpts import ChosenSentences, ShownSentence, complete, make_excerpt
from arag.retrieval.presentation.keyword_hits import choose_best_of_each
from arag.retrieval.presentation.matches import begins_word, find_keywords
from arag.retrieval.presentation.render import render_chunks, report_keywords, write_selection
from arag.retrieval.presentation.search_excerpts import SENTENCE_GAP
from arag.retrieval.presentation.selection import (
    Selection,
    ShownHit,
    comparable_text,
    show_keyword_hits,
    show_semantic_hits,
)
from arag.retrieval.presentation.weighing import find_pointers, weigh
from arag.retrieval.search.contents import find_listed, is_in_contents, name_entry
from arag.retrieval.search.suggestions import find_closest
from arag.retrieval.types import Chunk, Hit, KeywordReport, KeywordResults, ReadResults, SemanticResults
from arag.text.contents import name_section
from arag.text.languages import COMMON_WORDS
from arag.text.marks import without_marks
from arag.text.normalise import CUT, HEADING_BOUNDARY, searchable
from arag.text.words import list_terms, list_words

_MIN_CANDIDATES = 20  # that are found at least: equal texts among them share a place
NEAREST = 100  # chunks by their best sentences, which their openings put in another order
_MOST_TERMS = 50  # of a query: each is looked for in the whole corpus
_MAX_TYPO_CHUNKS = 2  # of a keyword only within longer words: in more, it is a part of words, and no typing error
_MIN_TERMS_SHARE = 0.1  # of the weight of a query's terms: a sentence with less of them is not added
_TERMS = 0.3  # of similarity, for all terms of a query; 0.2 to 0.5 find about as many
# Of a heading that was cut. After a short word, a full stop may be that of an abbreviation.
_FIRST_SENTENCE = re.compile(r"(.{40,}?(?:[!?！？]|\w{5}(?=\. )|(?=。)))(?!\w).*…")
_HEADING = re.compile(r"#{1,6}\s+(?P<name>[^\n]*)")  # in Markdown


def list_keyword_hits(index: Index, keywords: Sequence[str], top_k: int) -> str:
    """Search for keywords; the best chunk of each keyword is among the hits that are shown."""
    candidates = max(_MIN_CANDIDATES, top_k)
    while True:
        results = _search_keywords(index, keywords, candidates)
        selection = _select_keyword_hits(results, top_k)
        if len(selection.full) >= top_k or len(results.hits) < candidates:
            break
        candidates *= 4
    reports = report_keywords(results)
    if not results.hits:
        return reports
    extent = "All are shown"
    if selection.count_named() < results.total:
        extent = f"The best {len(selection.full):,} of {results.total:,} chunks{_name_others(selection, top_k)}"
    return write_selection(f"{reports}\n{extent}:", selection, for_people=True)


def list_nearest(index: Index, query: str, top_k: int) -> str:
    """Search by meaning; among the nearest, those with the query's words come earlier, and the first shows more.

    Of 72 questions in five languages, the source is the first hit for 70 instead of 66.

    Hits in tables of contents, and chunks of headings, come last. A document with the query as its title is among the
    hits, whatever its similarity.
    """
    candidates = max(NEAREST, top_k + 1)
    terms = _weigh_terms(index, query)

    def rank(hit: Hit) -> tuple[bool, float]:
        says_little = is_in_contents(hit) or _has_only_headings(hit.chunk)
        return says_little, -hit.score - _TERMS * _share_terms(hit.chunk, terms)

    while True:
        results = index.semantic_search(query, candidates, titles_first=True)
        hits = weigh(index, query, results.hits)
        hits.sort(key=rank)
        first = hits[0].chunk_id if hits else ""
        hits.sort(key=lambda hit: not _has_title(hit.chunk, query))
        found = show_semantic_hits(SemanticResults(query, tuple(hits))).full
        found = [_add_best_with_terms(shown, terms.weights) for shown in found]
        for place, shown in enumerate(found):
            if shown.hit.chunk_id == first:
                found[place] = _add_next_nearest(index, query, shown, terms.weights)
        selection = _take_distinct(_make_readable(found), top_k)
        if len(selection.full) == top_k or len(hits) < candidates:
            break
        candidates *= 4
    selection.full.sort(key=lambda shown: rank(shown.hit))
    if not hits:
        return "There are no sentences to search in."
    others = ""
    if selection.count_named() < len(hits):
        others = _name_others(selection, top_k)
    head = f"The best chunks by meaning and words, with their similarity in meaning{others}:"
    return write_selection(head, selection, for_people=True)


class _Terms(NamedTuple):
    """The terms of a query; those in fewer chunks weigh more."""

    weights: dict[str, float]  # of those that occur
    total: float  # the weight of all


def _weigh_terms(index: Index, query: str) -> _Terms:
    terms = list_terms(query)
    asked = [term for term in terms if term not in COMMON_WORDS] or terms or [query]
    frequencies = index.keyword_search(asked[:_MOST_TERMS], 1, ranking="bm25").document_frequency
    all_chunks = index.info().chunks
    weights: dict[str, float] = {}
    total = 0.0
    for term, chunks in frequencies.items():
        weight = log((1 + all_chunks) / max(chunks, 1))
        total += weight
        if chunks:
            weights[term] = weight
    return _Terms(weights, total)


def _share_terms(chunk: Chunk, terms: _Terms) -> float:
    """Return how much of the weight of all terms of a query a chunk and its title have, as words or their beginnings.

    Of a question in another language than the documents, few terms occur, and these say little.
    """
    text = searchable(f"{chunk.title} {chunk.text}")
    held = [weight for term, weight in terms.weights.items() if begins_word(term, text)]
    return sum(held) / (terms.total or 1)


def _add_best_with_terms(shown: ShownHit, weights: Mapping[str, float]) -> ShownHit:
    """Add, to the sentences of a chunk nearest in meaning, the one with most of a query's terms that they lack."""
    chunk = shown.hit.chunk
    found = find_keywords(chunk, list(weights))
    title = searchable(chunk.title)
    lacking = {term for term in weights if term not in title}
    for sentence in shown.excerpt.sentences:
        lacking.difference_update(found.get(sentence.position, ()))
    gains: dict[int, float] = {}
    for position in (found.keys() & set(chunk.embedded_positions())) - find_listed(chunk):
        gains[position] = sum(weights[term] for term in lacking.intersection(found[position]))
    best = max(gains, key=lambda position: (gains[position], -position), default=None)
    if best is None or gains[best] <= _MIN_TERMS_SHARE * sum(weights.values()):
        return shown
    return _add_sentence(shown, best, offset=min(found[best].values()))


def _add_next_nearest(index: Index, query: str, shown: ShownHit, weights: Mapping[str, float]) -> ShownHit:
    """Add, to the sentences of a chunk, the next one by meaning and by the query's terms that its title lacks.

    Of 72 questions whose source is found, the answer is shown for 63 instead of 58.
    """
    chunk = shown.hit.chunk
    title = searchable(chunk.title)
    telling = {term: weight for term, weight in weights.items() if term not in title}
    found = find_keywords(chunk, list(telling))
    unwanted = find_listed(chunk).union(sentence.position for sentence in shown.excerpt.sentences)
    scores: dict[int, float] = {}
    for position, similarity in index.rate_sentences(query, [chunk.id]).get(chunk.id, {}).items():
        if position not in unwanted and similarity > shown.hit.score - SENTENCE_GAP:
            held = sum(telling[term] for term in found.get(position, ()))
            scores[position] = similarity + _TERMS * held / (sum(telling.values()) or 1)
    best = max(scores, key=lambda position: (scores[position], -position), default=None)
    return shown if best is None else _add_sentence(shown, best)


def _add_sentence(shown: ShownHit, position: int, *, offset: int = 0) -> ShownHit:
    """Add a sentence, of a long one what is around an offset, and what makes it understandable."""
    chunk = shown.hit.chunk
    chosen = ChosenSentences(expand(chunk, [position]), matched={position}, offsets={position: offset})
    added = make_excerpt(chunk, chosen)
    by_position = {sentence.position: sentence for sentence in (*added.sentences, *shown.excerpt.sentences)}
    sentences = tuple(by_position[place] for place in sorted(by_position))
    return replace(shown, excerpt=replace(shown.excerpt, sentences=sentences))


def write_read(index: Index, results: ReadResults) -> str:
    """Write full chunks; for unknown ids, ids like them in the order of the text, and the numbers that are valid."""
    in_order = {unknown: tuple(sorted(closest, key=_split_id)) for unknown, closest in results.unknown.items()}
    blocks = [render_chunks(replace(results, unknown=in_order), (), {})]
    document_ids: dict[str, None] = {}
    for unknown in results.unknown:
        document_ids |= {unknown: None, unknown.rpartition(":")[0]: None}
    for document_id, entry in index.with_view(lambda view: view.entries(list(document_ids))).items():
        if index.get(f"{document_id}:0") is None:  # its chunks have ids of their own
            continue
        numbers = "0" if entry.chunks == 1 else f"0 to {entry.chunks - 1:,}"
        blocks.append(f"Chunks of {without_marks(document_id)}: {numbers}.")
    return "\n\n".join(blocks)


def _split_id(chunk_id: str) -> tuple[str, int]:
    """Return the id of a chunk's document and the chunk's number in it, or else all of the id."""
    document_id, _, number = chunk_id.rpartition(":")
    return (document_id, int(number)) if number.isdecimal() else (chunk_id, 0)


def _search_keywords(index: Index, keywords: Sequence[str], candidates: int) -> KeywordResults:
    """Search for keywords; chunks that hold them only within longer words come later, chunks of headings last."""
    results = index.keyword_search(keywords, candidates, ranking="bm25")
    reports = tuple(_name_similar_words(index, report) for report in results.keywords)
    hits = list(results.hits)
    if len(hits) < min(candidates, results.total):
        hits += _find_within_words(index, results, candidates)
    hits.sort(key=lambda hit: _has_only_headings(hit.chunk))
    return replace(results, hits=tuple(hits), keywords=reports)


def _name_similar_words(index: Index, report: KeywordReport) -> KeywordReport:
    """Add, to the report on a keyword only within longer words, words that may be meant: `printr` may be `printer`."""
    is_rare = 0 < report.chunks <= _MAX_TYPO_CHUNKS
    if report.as_word != 0 or not is_rare or report.closest:
        return report
    return replace(report, closest=index.with_view(lambda view: find_closest(report.keyword, 0, view)))


def _find_within_words(index: Index, results: KeywordResults, candidates: int) -> list[Hit]:
    """Return chunks that BM25 leaves out: they hold keywords only within longer words."""
    spellings = list(results.document_frequency)
    everywhere = index.keyword_search(spellings, candidates, ranking="paper")
    found = {hit.chunk_id for hit in results.hits}
    within_words = [hit for hit in everywhere.hits if hit.chunk_id not in found]
    return sorted(within_words, key=is_in_contents)


def _select_keyword_hits(results: KeywordResults, top_k: int) -> Selection:
    """Select the best chunk of each keyword and the best others, and return them in the order of their rank."""
    best = choose_best_of_each(results)
    found = _make_readable(show_keyword_hits(results, for_people=True).full)
    ranks = {shown.hit.chunk_id: rank for rank, shown in enumerate(found)}
    found.sort(key=lambda shown: shown.hit.chunk_id not in best)
    selection = _take_distinct(found, max(top_k, len(best)))
    selection.full.sort(key=lambda shown: ranks[shown.hit.chunk_id])
    return selection


def _has_title(chunk: Chunk, query: str) -> bool:
    """Return whether the title of a chunk's document has all words of a query."""
    words = set(list_words(query))
    return bool(words) and words <= set(list_words(chunk.title))


def _take_distinct(found: Sequence[ShownHit], most: int) -> Selection:
    """Return the first hits; the same sentences come once, with their copies."""
    selection = Selection()
    ids_by_text: dict[str, str] = {}
    for shown in found:
        chunk_id = shown.hit.chunk_id
        text = comparable_text(shown.excerpt) or chunk_id
        original = ids_by_text.setdefault(text, chunk_id)
        if original != chunk_id:
            selection.copies.setdefault(original, []).append(shown)
        elif len(selection.full) < most:
            selection.full.append(shown)
    return selection


def _name_others(selection: Selection, top_k: int) -> str:
    """Return how many chunks have the same sentences as those shown, and how to see more."""
    most = max(top_k, len(selection.full))  # of more keywords, each has its best chunk
    more = f" (more: -k {2 * most})"
    copies = len(selection.list_copies(selection.full))
    if copies:
        return f", and {copies:,} with the same sentences{more}"
    return more


# --- headings ---


def _has_only_headings(chunk: Chunk) -> bool:
    """Return whether a chunk has no text below its headings."""
    return all(_HEADING.fullmatch(chunk.sentence_text(position)) for position in range(len(chunk.sentences)))


def _make_readable(found: Iterable[ShownHit]) -> list[ShownHit]:
    """Return hits with complete excerpts, and paragraphs and headings on lines of their own, these without marks."""
    readable: list[ShownHit] = []
    for shown in found:
        chunk = shown.hit.chunk
        excerpt = complete(chunk, shown.excerpt)
        kept = without_contents(chunk, _without_bare_headings(chunk, excerpt.sentences))
        whole = [without_heading_mark(sentence, chunk) for sentence in kept]
        names = [sentence.text for sentence in whole]
        sentences: list[ShownSentence] = []
        for sentence in whole:
            under = _end_headings(sentence.under, names)
            on_new_line = begins_paragraph(chunk, sentence.position)
            lines = sentence.lines or code_lines_of_part(chunk, sentence.position, sentence.text)
            sentences.append(replace(sentence, under=under, on_new_line=on_new_line, lines=lines))
        readable.append(replace(shown, excerpt=replace(excerpt, sentences=tuple(sentences))))
    return readable


def _without_bare_headings(chunk: Chunk, sentences: Sequence[ShownSentence]) -> Sequence[ShownSentence]:
    """Return sentences without headings around them: those above a sentence are named in front of it."""
    kept: list[ShownSentence] = []
    for sentence in sentences:
        is_text = chunk.sentences[sentence.position].embedded
        if is_text or sentence.matched or not _HEADING.fullmatch(sentence.text):
            kept.append(sentence)
    return kept or sentences


def without_contents(chunk: Chunk, sentences: Sequence[ShownSentence]) -> Sequence[ShownSentence]:
    """Return sentences without entries of contents whose sections are among them, and without what is around these.

    Contents and lists of links are nothing to understand a sentence by.
    """
    headings = [sentence.under[-1].removesuffix(CUT) for sentence in sentences if sentence.under]
    sections = tuple(filter(None, map(name_section, headings)))
    listed = find_listed(chunk)
    repeated: set[int] = set()
    for sentence in sentences:
        position = sentence.position
        is_text = chunk.sentences[position].embedded
        entry = sentence.text.removeprefix("- ")
        begins_heading = is_text and any(heading.startswith(entry) for heading in headings)
        if begins_heading or (position in listed and name_entry(chunk, position).startswith(sections)):
            repeated.add(position)
    contents = {chunk.sentences[position].heading for position in repeated}
    pointers = find_pointers(chunk)
    kept: list[ShownSentence] = []
    for sentence in sentences:
        says_little = sentence.position in pointers or chunk.sentences[sentence.position].heading in contents
        if sentence.position not in repeated and (sentence.matched or not says_little):
            kept.append(sentence)
    return kept or sentences


def without_heading_mark(sentence: ShownSentence, chunk: Chunk) -> ShownSentence:
    """Return a sentence without the mark of a heading, if it is one and not, for example, a command."""
    is_text = chunk.sentences[sentence.position].embedded  # such as a comment in code
    heading = _HEADING.fullmatch(sentence.text)
    if heading is None or (is_text and not _has_only_headings(chunk)):
        return sentence
    return replace(sentence, text=heading["name"], lines=heading["name"])


def _end_headings(headings: Sequence[str], shown: Sequence[str]) -> tuple[str, ...]:
    """Return headings of which those that were cut are whole, if they are shown, or end well."""
    ended = [_find_whole(heading, shown) or end_heading(heading) for heading in headings]
    if ended and ended[-1].endswith(CUT):
        ended[-1] += ":"
    return tuple(ended)


def _find_whole(heading: str, shown: Sequence[str]) -> str:
    """Return the shown line that a heading was cut from, or an empty string."""
    if not heading.endswith(CUT):
        return ""
    return next((line for line in shown if line.startswith(heading[: -len(CUT)])), "")


def end_heading(headings: str) -> str:
    """Return headings, outermost first, of which those that were cut end with a sentence, if they can."""
    names = headings.split(HEADING_BOUNDARY)
    return HEADING_BOUNDARY.join(_FIRST_SENTENCE.sub(r"\1", name) for name in names)
