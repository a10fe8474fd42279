"""Citations in an answer: checked against the chunks that were shown, with the details that a reader needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any

from arag.graph.cited import Citation, CitedDocument, Quote, Span
from arag.graph.state import Grounding
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk, DocumentInfo
from arag.text.mail import find_asides, is_greeting
from arag.text.marks import is_usual, quote_id
from arag.text.normalise import collapse_whitespace, is_title, plain
from arag.text.words import content_words, find_names

# Most ids: a name without spaces, commas and brackets, and a number.
_ID = re.compile(r"[^\s\[\]【】()（）,;，；、`*\"'“”]+:\d+(?!\d|:\d)")
# At most 400 characters: room for a dozen ids. A bracket that holds more is not a citation.
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|[(（]([^()（）\n]{1,400})[)）]")
_ROUND = 3  # the group of _BRACKETS for round brackets
_PART = re.compile(r"[^,;，；、]+")  # of the text in brackets
_NUMBERED = re.compile(r":\d+$")
_JSON_STRING = r'"(?:[^"\\\n]|\\.)*"'
# A bracket, and then nothing but ids: texts of documents are shown with a space where they have the like.
_BEFORE_QUOTED = re.compile(rf"\[(?:(?:{_JSON_STRING}|{_ID.pattern})(?:[,;，；、]\s?|\sand\s))*$")
_MAX_BEFORE_QUOTED = 400
_FILLER = "\ue000"  # replaces a character of an unusual id
_NUMBERS = re.compile(r"\d+:\d+")  # a time or a verse, or an id of a document whose id is a number
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")


def parse_citations(answer: str, index: Index, seen: Collection[str], read: Collection[str]) -> list[Citation]:
    """Find the chunks that an answer names in brackets: `[a.md:0, b.md:1]`, `【a.md:0】`, `(a.md:0)`.

    In square brackets, chunks that were not shown count, too, and ids that look like a chunk of a file or of a document
    in the index. Other texts in brackets, such as times and ratios, do not.

    Args:
        answer: The answer.
        index: The index.
        seen: Ids of chunks that were shown to the model, in excerpts or in full.
        read: Ids of chunks that were shown in full.

    Returns:
        The citations in the order of the answer, each once. Those of chunks that were shown have quotes: the sentences
        that support the answer, chosen by their words. No model is called.

    Example:
        >>> answer = "The lens was made at the Emberlane Glassworks [places/vellin-light.md:0]."
        >>> [citation] = parse_citations(answer, index, ["places/vellin-light.md:0"], [])
        >>> [quote["text"] for quote in citation["quotes"]]
        ['The lens of the Vellin Light was made at the Emberlane Glassworks and carried out in a bed of bran, ...']
    """
    seen, read = set(seen), set(read)
    claims = list(_find_claims(answer, index, seen))
    spans = _list_spans(claims)
    chunks = dict(zip(spans, index.mget(list(spans)), strict=True))
    shown = {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk is not None and chunk_id in seen}
    quotes = _choose_quotes(claims, shown)
    citations = []
    for chunk_id, chunk in chunks.items():
        citation = Citation(
            chunk_id=chunk_id,
            seen=chunk_id in seen,
            read=chunk_id in read,
            pages=None,
            ocr_pages=[],
            document=None,
            quotes=quotes.get(chunk_id, []),
            spans=spans[chunk_id],
        )
        if chunk is not None:
            document = index.document(chunk.document_id)
            citation["document"] = _describe_document(chunk, document)
            if chunk.pages:
                citation["pages"] = list(chunk.pages)
                citation["ocr_pages"] = _list_ocr_pages(chunk.pages, document)
        citations.append(citation)
    return citations


def find_grounding(citations: Sequence[Citation]) -> Grounding:
    """Return how far the cited chunks support an answer.

    A citation with quotes supports it: its chunk was shown, and has a sentence for what the answer says there.
    """
    supporting = [citation for citation in citations if citation["quotes"]]
    if not supporting:
        return "none"
    if len(supporting) < len(citations):
        return "partly"
    return "supported"


# --- claims ---


@dataclass(frozen=True)
class _Name:
    """The id of a chunk in an answer's brackets."""

    chunk_id: str
    span: Span


@dataclass(frozen=True)
class _Claim:
    """The text of an answer before brackets, and the chunks that these cite."""

    text: str
    cited: Sequence[_Name] = ()


@dataclass(frozen=True)
class _MaskedAnswer:
    """An answer in which each unusual id is replaced by one that is as long and that `_ID` matches."""

    text: str
    replaced: Mapping[int, str]  # the unusual ids, by their start in the text


def _find_claims(answer: str, index: Index, seen: Collection[str]) -> Iterator[_Claim]:
    """Yield the claims of an answer; the last one is the text behind all citations, and cites nothing."""
    masked = _mask_unusual_ids(answer, seen)
    start = 0
    for brackets in _BRACKETS.finditer(masked.text):
        cited = []
        for name in _find_names(brackets, masked, index):
            is_guess = name.chunk_id not in seen
            if is_guess and (_are_round(brackets) or not _may_be_cited(name.chunk_id, index)):
                continue
            cited.append(name)
        if cited:
            yield _Claim(answer[start : brackets.start()], cited)
            start = brackets.end()
    yield _Claim(answer[start:])


def _list_spans(claims: Iterable[_Claim]) -> dict[str, list[Span]]:
    """Return where an answer names chunks, by chunk id."""
    spans: dict[str, list[Span]] = {}
    for claim in claims:
        for name in claim.cited:
            spans.setdefault(name.chunk_id, []).append(name.span)
    return spans


def _mask_unusual_ids(answer: str, seen: Collection[str]) -> _MaskedAnswer:
    """Replace unusual ids of chunks that were shown: as marks have them, in quotes, or without quotes."""
    forms: dict[str, str] = {}  # ids by how an answer may write them
    for chunk_id in seen:
        if not is_usual(chunk_id):
            forms[quote_id(chunk_id)] = chunk_id
        if not _ID.fullmatch(chunk_id) and _NUMBERED.search(chunk_id):
            forms[chunk_id] = chunk_id
    if not forms:
        return _MaskedAnswer(answer, {})
    replaced: dict[int, str] = {}

    def mask(match: re.Match[str]) -> str:
        start = match.start()
        chunk_id = forms[match[0]]
        before = answer[max(0, start - _MAX_BEFORE_QUOTED) : start]
        # A text may have the like of a ready-made id, such as "12", in quotes and brackets.
        if not _NUMBERED.search(chunk_id) and not _BEFORE_QUOTED.search(before):
            return match[0]
        replaced[start] = chunk_id
        number = ":0"
        return _FILLER * (len(match[0]) - len(number)) + number

    # One expression and one pass, as there may be thousands of ids; the longest first, as one may start another.
    longest_first = sorted(forms, key=len, reverse=True)
    any_form = "|".join(map(re.escape, longest_first))
    text = re.sub(rf"(?<!\w)(?:{any_form})(?!\d|:\d)", mask, answer)
    return _MaskedAnswer(text, replaced)


def _are_round(brackets: re.Match[str]) -> bool:
    return brackets.lastindex == _ROUND


def _find_names(
    brackets: re.Match[str],
    masked: _MaskedAnswer,
    index: Index,
) -> Iterator[_Name]:
    """Yield the possible ids of chunks in brackets of a masked answer."""
    start, end = brackets.span(brackets.lastindex or 0)
    for part in _PART.finditer(masked.text, start, end):
        name = part[0].strip()
        if _NUMBERED.search(name) and index.get(name) is not None:  # a name with spaces, whole
            first = masked.text.index(name, part.start())
            yield _Name(name, _make_span(brackets, first, first + len(name)))
            continue
        for match in _ID.finditer(masked.text, *part.span()):
            if match[0] == name or not _NUMBERS.fullmatch(match[0]):
                chunk_id = masked.replaced.get(match.start(), match[0])
                yield _Name(chunk_id, _make_span(brackets, *match.span()))


def _make_span(brackets: re.Match[str], start: int, end: int) -> Span:
    """Return the span of an id in brackets, with the brackets if nothing else is in them."""
    inside = brackets[brackets.lastindex or 0]
    if brackets.string[start:end] == inside.strip():
        start, end = brackets.span()
    return Span(start=start, end=end)


def _may_be_cited(name: str, index: Index) -> bool:
    """Return whether a text like an id names a chunk, real or made up, rather than a time, a verse or a ratio."""
    if _LIKE_A_FILE.search(name) or index.get(name) is not None:
        return True
    document_id, _, _ = name.rpartition(":")
    return index.document(document_id) is not None


# --- documents ---


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that a page may link to: of http or https."""
    return _WEB_ADDRESS.fullmatch(text) is not None


def _list_ocr_pages(pages: tuple[int, int], document: DocumentInfo | None) -> list[int]:
    first, last = pages
    read = document.ocr_pages if document is not None else ()
    return [page for page in read if first <= page <= last]


def _describe_document(chunk: Chunk, document: DocumentInfo | None) -> CitedDocument:
    """Return the title, address, author and date of a chunk's document."""
    metadata: dict[str, Any] = {}
    if document is not None:
        metadata = {key.lower(): value for key, value in document.metadata.items()}
    url = _first_value(metadata, "url", "source_url", "link")
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=_first_value(metadata, "author", "authors", "creator"),
        date=_first_value(metadata, "date", "published", "created", "year"),
    )


def _first_value(metadata: Mapping[str, Any], *keys: str) -> str:
    """Return the first value that is not empty, on one line; of a list, such as of authors, all items."""
    for key in keys:
        value = metadata.get(key)
        if not value:
            continue
        parts = value if isinstance(value, list) else [value]
        text = ", ".join(map(_name_of, parts))
        return collapse_whitespace(text)
    return ""


def _name_of(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("name", value)
    return str(value)


# --- quotes ---


@dataclass(frozen=True)
class _ChunkWords:
    """The words of a chunk that claims are compared with."""

    title: set[str]
    sentences: Mapping[int, set[str]]  # of those that may be quoted, by position


def _choose_quotes(claims: Sequence[_Claim], chunks: Mapping[str, Chunk]) -> dict[str, list[Quote]]:
    """Return the sentences that support an answer, by chunk id, in the order of the text.

    Citations side by side share a claim. A list of sources without words of its own supports the whole answer. A claim
    with a year that no cited chunk has gets no quote.
    """
    words = {chunk_id: _read_words(chunk) for chunk_id, chunk in chunks.items()}
    known: set[str] = set()
    for chunk_words in words.values():
        known |= chunk_words.title.union(*chunk_words.sentences.values())
    chosen: dict[str, set[int]] = {}
    compared: set[tuple[str, str]] = set()  # some models repeat themselves without end
    for claim in _fill_in_texts(claims):
        cited = {name.chunk_id for name in claim.cited}
        new = {(claim.text, chunk_id) for chunk_id in cited & chunks.keys()} - compared
        compared |= new
        if not new or not known.issuperset(_YEAR.findall(claim.text)):
            continue
        for text, chunk_id in new:
            position = _choose_sentence(text, words[chunk_id])
            if position is not None:
                chosen.setdefault(chunk_id, set()).add(position)
    return {chunk_id: _make_quotes(chunks[chunk_id], positions) for chunk_id, positions in chosen.items()}


def _fill_in_texts(claims: Sequence[_Claim]) -> Iterator[_Claim]:
    """Yield the claims. One without words gets the text of the claim before it; at the start, the whole answer's."""
    text = ""
    for claim in claims:
        if _words(claim.text):
            text = claim.text
        elif not text:
            text = "".join(claim.text for claim in claims)
        yield _Claim(text, claim.cited)


def _make_quotes(chunk: Chunk, positions: Collection[int]) -> list[Quote]:
    quotes = []
    for position in sorted(positions):
        sentence = chunk.sentences[position]
        quotes.append(
            Quote(
                start=sentence.start,
                end=sentence.end,
                text=chunk.sentence_text(position),
            )
        )
    return quotes


def _choose_sentence(claim: str, chunk: _ChunkWords) -> int | None:
    """Choose the sentence that shares most with a claim. Names, numbers and words rare in the chunk weigh more.

    If the chunk has no name or number of the claim, the sentence needs half of the claim's words.
    """
    claimed = _words(claim) - chunk.title
    names = set(_NUMBER.findall(claim))
    for name in find_names(claim):
        names |= _words(name)

    frequencies: Counter[str] = Counter()
    for words in chunk.sentences.values():
        frequencies.update(words)
    weights: dict[str, float] = {}
    for word in claimed & frequencies.keys():
        importance = 2 if word in names else 1
        weights[word] = importance / sqrt(frequencies[word])

    required = weights.keys() & names
    fewest = 1.0
    if not required:
        required = claimed
        fewest = max(1, len(claimed) / 2)
    candidates = []
    for position, words in chunk.sentences.items():
        if len(words & required) >= fewest:
            candidates.append(position)

    def rank(position: int) -> tuple[float, int, int]:
        """Order by the weight of shared words, then the shorter sentence, then the earlier one."""
        words = chunk.sentences[position]
        weight = fsum(weights.get(word, 0) for word in words)  # exact: equal in any order of the set
        return weight, -len(words), -position

    return max(candidates, key=rank, default=None)


def _read_words(chunk: Chunk) -> _ChunkWords:
    """Return the words of a chunk's title, and of its sentences without titles and the asides of emails."""
    asides = find_asides(chunk.text)
    sentences: dict[int, set[str]] = {}
    for position in chunk.embedded_positions():
        start = chunk.sentences[position].start
        if any(start in aside for aside in asides):
            continue
        text = chunk.sentence_text(position)
        if is_greeting(text) or is_title(text, chunk.title):
            continue
        sentences[position] = _words(text)
    return _ChunkWords(_words(chunk.title), sentences)


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    text = plain(text.replace("-", " "))
    return content_words(text) | set(_NUMBER.findall(text))
