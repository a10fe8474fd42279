"""The claims of an answer, and the ids of chunks that it names behind each, in brackets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arag.graph.cited import Span
from arag.retrieval.index import Index
from arag.text.marks import POSSIBLE_ID, is_plain, is_usual, quote_id

# At most 400 characters: room for a dozen ids. A bracket that holds more is not a citation.
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|[(（]([^()（）\n]{1,400})[)）]")
_ROUND = 3  # the group of _BRACKETS for round brackets
_NUMBERED = re.compile(r":\d+$")
_PART = re.compile(r"[^,;，；、]+")  # of the text in brackets
_JSON_STRING = r'"(?:[^"\\\n]|\\.)*"'
# A bracket, and then nothing but ids: texts of documents are shown with a space where they have the like.
_BEFORE_QUOTED = re.compile(rf"\[(?:(?:{_JSON_STRING}|{POSSIBLE_ID.pattern})(?:[,;，；、]\s?|\sand\s))*$")
_MAX_BEFORE_QUOTED = 400
_FILLER = "\ue000"  # replaces a character of an unusual id
_NUMBERS = re.compile(r"\d+:\d+")  # a time or a verse, or an id of a document whose id is a number
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")


@dataclass(frozen=True)
class KnownIds:
    """The ids that an answer may name."""

    seen: Collection[str]
    """Those of chunks that were shown."""
    index: Index | None
    """The index; None for an agent that has none, and knows only what other agents cited."""

    def has_chunk(self, name: str) -> bool:
        """Return whether a text is the id of a chunk."""
        return name in self.seen or (self.index is not None and self.index.get(name) is not None)

    def may_be_cited(self, name: str) -> bool:
        """Return whether a text like an id names a chunk, real or made up, rather than a time, a verse or a ratio."""
        if _LIKE_A_FILE.search(name) or self.has_chunk(name):
            return True
        document_id, _, _ = name.rpartition(":")
        return self.index is not None and self.index.document(document_id) is not None


@dataclass(frozen=True)
class CitedName:
    """The id of a chunk in an answer's brackets."""

    chunk_id: str
    span: Span


@dataclass(frozen=True)
class Claim:
    """The text of an answer before brackets, and the chunks that these cite."""

    text: str
    cited: Sequence[CitedName] = ()


@dataclass(frozen=True)
class _MaskedAnswer:
    """An answer in which each unusual id is replaced by one that is as long and that `POSSIBLE_ID` matches."""

    text: str
    replaced: Mapping[int, str]  # the unusual ids, by their start in the text


def find_claims(answer: str, known: KnownIds) -> Iterator[Claim]:
    """Yield the claims of an answer; the last one is the text behind all citations, and cites nothing."""
    masked = _mask_unusual_ids(answer, known.seen)
    start = 0
    for brackets in _BRACKETS.finditer(masked.text):
        cited = []
        for name in _find_names(brackets, masked, known):
            is_guess = name.chunk_id not in known.seen
            if is_guess and (_are_round(brackets) or not known.may_be_cited(name.chunk_id)):
                continue
            cited.append(name)
        if cited:
            yield Claim(answer[start : brackets.start()], cited)
            start = brackets.end()
    yield Claim(answer[start:])


def list_spans(claims: Iterable[Claim]) -> dict[str, list[Span]]:
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
        if not POSSIBLE_ID.fullmatch(chunk_id) and _NUMBERED.search(chunk_id):
            forms[chunk_id] = chunk_id
    if not forms:
        return _MaskedAnswer(answer, {})
    replaced: dict[int, str] = {}

    def mask(match: re.Match[str]) -> str:
        start = match.start()
        chunk_id = forms[match[0]]
        before = answer[max(0, start - _MAX_BEFORE_QUOTED) : start]
        # A text may have the like of "12", the id of a ready-made chunk, or of "11:59:1" in quotes and brackets.
        if not is_plain(chunk_id):
            if match[0] == chunk_id:
                return _FILLER * len(chunk_id)
            if not _BEFORE_QUOTED.search(before):
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
    known: KnownIds,
) -> Iterator[CitedName]:
    """Yield the possible ids of chunks in brackets of a masked answer."""
    start, end = brackets.span(brackets.lastindex or 0)
    for part in _PART.finditer(masked.text, start, end):
        name = part[0].strip()
        if " " in name and is_plain(name) and known.has_chunk(name):  # whole
            first = masked.text.index(name, part.start())
            yield CitedName(name, _make_span(brackets, first, first + len(name)))
            continue
        for match in POSSIBLE_ID.finditer(masked.text, *part.span()):
            is_unusual = match.start() in masked.replaced
            is_alone = match[0] == name and not _are_round(brackets)
            if is_unusual or (is_plain(match[0]) and (is_alone or not _NUMBERS.fullmatch(match[0]))):
                chunk_id = masked.replaced.get(match.start(), match[0])
                yield CitedName(chunk_id, _make_span(brackets, *match.span()))


def _make_span(brackets: re.Match[str], start: int, end: int) -> Span:
    """Return the span of an id in brackets, with the brackets if nothing else is in them."""
    inside = brackets[brackets.lastindex or 0]
    if brackets.string[start:end] == inside.strip():
        start, end = brackets.span()
    return Span(start=start, end=end)
