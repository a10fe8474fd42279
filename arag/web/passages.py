"""Searches as people do: one box, for keywords and for meaning together, with filters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup, escape

from arag.errors import ModelError
from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.index import Index
from arag.retrieval.presentation.excerpts import ShownSentence
from arag.retrieval.presentation.places import name_place
from arag.retrieval.presentation.search_excerpts import excerpt_for_keywords, excerpt_for_query
from arag.retrieval.scope import Scope
from arag.retrieval.storage.contract import View
from arag.retrieval.tools.retriever import list_keywords
from arag.retrieval.types import Chunk, Hit, KeywordResults
from arag.text.scripts import is_latin

_CANDIDATES = 50  # chunks that each search finds
_SMOOTHING = 60  # of ranks, as in reciprocal rank fusion
_MAX_SENTENCES = 4  # shown of a passage
_DATE_FIELDS = ("date", "published", "created")
_MAX_FOLDERS = 500  # that are offered


@dataclass(frozen=True)
class Filters:
    """Conditions on the documents to search; empty ones allow all."""

    folder: str = ""
    kind: str = ""
    after: str = ""
    """The first day: 2020-01-31."""
    before: str = ""
    """The last day."""

    def to_scope(self) -> Scope | None:
        """Return the conditions as a scope; None if there are none."""
        documents: list[str] | None = None
        if self.folder or self.kind:
            folder = f"{self.folder.strip('/')}/*" if self.folder.strip("/") else "*"
            endings = {f".{self.kind}", f".{self.kind.upper()}"} if self.kind else {""}
            documents = [f"{folder}{ending}" for ending in sorted(endings)]
        where = self._date_conditions()
        return None if documents is None and where is None else Scope(where=where, documents=documents)

    def _date_conditions(self) -> dict[str, Any] | None:
        """Return conditions on dates, which documents may have to the day, to the month or to the year."""
        dates: dict[str, str] = {}
        years: dict[str, int] = {}
        if self.after:
            dates["$gte"] = self.after.removesuffix("-01").removesuffix("-01")
            years["$gte"] = int(self.after[:4])
        if self.before:
            dates["$lte"] = f"{self.before}\uffff"  # with any time of that day
            years["$lte"] = int(self.before[:4])
        if not dates:
            return None
        return {"$or": [*({name: dates} for name in (*_DATE_FIELDS, "year")), {"year": years}]}


@dataclass(frozen=True)
class Passage:
    """A chunk that was found, and what is shown of it."""

    chunk: Chunk
    heading: str
    place: str
    lines: Sequence[Markup]
    starts: Sequence[int]
    """Where the sentences that matched start in the chunk."""


@dataclass
class Found:
    """The result of a search."""

    passages: Sequence[Passage] = ()
    more: bool = False
    notes: list[str] = field(default_factory=list)
    """What a person should know of it, such as that a word was not found."""


@dataclass
class _Candidate:
    """A chunk that was found by one or both searches."""

    chunk: Chunk
    score: float = 0.0
    sentences: dict[int, ShownSentence] = field(default_factory=dict)


def find_passages(index: Index, query: str, count: int) -> Found:
    """Search for a query's keywords and for its meaning, and rank the passages by both."""
    by_keyword = index.keyword_search(list_keywords(query), _CANDIDATES, ranking="bm25")
    found = Found(notes=_describe_keywords(by_keyword))
    by_meaning: Sequence[Hit] = ()
    try:
        by_meaning = index.semantic_search(query, _CANDIDATES, titles_first=True).hits
    except ModelError as error:  # keywords need no model
        found.notes.append(f"Searched for keywords only: {error}.")
    candidates: dict[str, _Candidate] = {}
    for hits in (by_keyword.hits, by_meaning):
        for rank, hit in enumerate(hits):
            candidate = candidates.setdefault(hit.chunk_id, _Candidate(hit.chunk))
            candidate.score += 1 / (_SMOOTHING + rank)
    ranked = sorted(candidates.values(), key=lambda candidate: (-candidate.score, candidate.chunk.id))
    shown = {candidate.chunk.id: candidate for candidate in ranked[:count]}
    for hit in by_keyword.hits:
        if hit.chunk_id in shown:
            _add(shown[hit.chunk_id], excerpt_for_keywords(hit, by_keyword.document_frequency).sentences)
    for hit in by_meaning:
        if hit.chunk_id in shown:
            _add(shown[hit.chunk_id], excerpt_for_query(hit, query).sentences)
    words = _compile_words(by_keyword)
    found.passages = [_show(candidate, words) for candidate in shown.values()]
    found.more = len(ranked) > count
    return found


def _describe_keywords(results: KeywordResults) -> list[str]:
    """Say which keywords no passage has, and which terms may be meant."""
    notes: list[str] = []
    for report in results.keywords:
        if report.chunks or report.searched_as:
            continue
        closest = ", ".join(term.text for term in report.closest)
        notes.append(f"“{report.keyword}” is not in these documents{f'; close to it: {closest}' if closest else ''}.")
    return notes


def _add(candidate: _Candidate, sentences: Iterable[ShownSentence]) -> None:
    for sentence in sentences:
        known = candidate.sentences.get(sentence.position)
        if known is None or sentence.matched:
            candidate.sentences[sentence.position] = sentence


def _show(candidate: _Candidate, words: re.Pattern[str] | None) -> Passage:
    """Return a passage with the best few of its sentences, in order."""
    chunk = candidate.chunk
    matched_first = sorted(candidate.sentences.values(), key=lambda sentence: not sentence.matched)
    sentences = sorted(matched_first[:_MAX_SENTENCES], key=lambda sentence: sentence.position)
    matched = [sentence.position for sentence in sentences if sentence.matched]
    first = next(iter(matched), 0)
    return Passage(
        chunk=chunk,
        heading=chunk.sentences[first].heading if chunk.sentences else "",
        place=name_place(chunk),
        lines=[mark_words(sentence.text, words) for sentence in sentences],
        starts=[chunk.sentences[position].start for position in matched],
    )


def _compile_words(results: KeywordResults) -> re.Pattern[str] | None:
    """Return the pattern of all that keywords found."""
    texts = {text for text, chunks in results.document_frequency.items() if chunks}
    for hit in results.hits:
        for words in hit.scattered.values():
            texts.update(words)
    parts = [rf"\b{re.escape(text)}" if is_latin(text) else re.escape(text) for text in texts]
    return re.compile("|".join(sorted(parts, key=len, reverse=True)), re.IGNORECASE) if parts else None


def mark_words(text: str, words: re.Pattern[str] | None) -> Markup:
    """Return a text as HTML in which what a pattern matches is marked."""
    if words is None:
        return escape(text)
    html = Markup("")
    end = 0
    for match in words.finditer(text):
        html += escape(text[end : match.start()]) + Markup("<mark>{}</mark>").format(match[0])
        end = match.end()
    return html + escape(text[end:])


@dataclass(frozen=True)
class Choices:
    """What filters can choose."""

    folders: Sequence[str]
    kinds: Mapping[str, int]


def _make_choices(view: View) -> Choices:
    folders: set[str] = set()
    kinds: dict[str, int] = {}
    for document_id in view.document_ids():
        path = PurePosixPath(document_id)
        folders.update(str(parent) for parent in path.parents)
        kind = path.suffix[1:].lower()
        if kind.isalnum() and kind.isascii():
            kinds[kind] = kinds.get(kind, 0) + 1
    offered = sorted(folders - {".", "/"})[:_MAX_FOLDERS]
    return Choices(offered, dict(sorted(kinds.items())))


list_choices = KeptByView(_make_choices, most=16)
