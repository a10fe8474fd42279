"""Citations in an answer: checked against the chunks that were shown, with what a reader needs to follow them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from arag.graph.state import Citation, CitedDocument, Quote, Span
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk
from arag.text.marks import is_usual, quote_id
from arag.text.normalise import collapse_whitespace, is_title, plain
from arag.text.words import content_words, find_names

# Most ids: a name without spaces, commas and brackets, and a number.
_ID = re.compile(r"[^\s\[\]【】()（）,;，；、`*\"'“”]+:\d+(?!\d|:\d)")
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|[(（]([^()（）\n]{1,400})[)）]")
_PART = re.compile(r"[^,;，；、]+")  # of what stands in brackets
_NUMBERED = re.compile(r":\d+$")
_FILLER = "\ue000"  # stands for a character of an unusual id
_NUMBERS = re.compile(r"\d+:\d+")  # a time or a verse, or an id of a document whose id is a number
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")
# What an email has besides what it says: headers, and the replies that it quotes. Other texts have lines with ">", too.
_ASIDE = re.compile(
    r"^>.*|^(?:From|To|Cc|Sent|Subject): .*"
    r"|^(?:On .{5,80}(?:\n.{0,80})?\bwrote:[ \t]*$|-+ ?Original Message ?-+)(?:\s*(?![\s>])[\s\S]*)?",
    re.MULTILINE,
)
_GREETING = re.compile(
    r"(?i:dear|hi|hello|good (?:morning|afternoon|evening))\b[^.?]{0,60}[,!:]"
    r"|(?i:(?:(?:best|kind|warm|many|with) )*(?:regards|wishes|thanks|sincerely|cheers|yours(?: \w+)?))"
    r"[,.!]?(?:\s+[A-Z][\w.'’-]*){0,4}"
)


def parse_citations(answer: str, index: Index, seen: Collection[str], read: Collection[str]) -> list[Citation]:
    """Find the chunks that an answer names in brackets: `[a.md:0, b.md:1]`, `【a.md:0】`, `(a.md:0)`.

    In square brackets, chunks that were not shown count, too, and what looks like a chunk of a file or of a document in
    the index. Other texts in brackets, such as times and ratios, do not.

    Args:
        answer: The answer.
        index: The index.
        seen: Ids of chunks that were shown to the model.
        read: Ids of chunks that were shown in full.

    Returns:
        The citations in the order of the answer, each once. Those that were shown have the sentences that bear what the
        answer says, chosen by their words; no model is called.

    Example:
        >>> answer = "The lens was made at the Emberlane Glassworks [places/vellin-light.md:0]."
        >>> [citation] = parse_citations(answer, index, ["places/vellin-light.md:0"], [])
        >>> [quote["text"] for quote in citation["quotes"]]
        ['The lens of the Vellin Light was made at the Emberlane Glassworks and carried out in a bed of bran, ...']
    """
    seen, read = set(seen), set(read)
    claims = list(_find_claims(answer, index, seen))
    spans: dict[str, list[Span]] = {}
    for claim in claims:
        for chunk_id, span in claim.cited:
            spans.setdefault(chunk_id, []).append(span)
    chunks = dict(zip(spans, index.mget(list(spans)), strict=True))
    shown = {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk is not None and chunk_id in seen}
    quotes = _choose_quotes(claims, shown)
    return [
        Citation(
            chunk_id=chunk_id,
            seen=chunk_id in seen,
            read=chunk_id in read,
            pages=list(chunk.pages) if chunk and chunk.pages else None,
            document=_describe(chunk, index) if chunk else None,
            quotes=[_quote(shown[chunk_id], place) for place in sorted(quotes.get(chunk_id, ()))],
            spans=spans[chunk_id],
        )
        for chunk_id, chunk in chunks.items()
    ]


@dataclass(frozen=True)
class _Claim:
    """What an answer says before brackets, and the chunks that these cite, each with its place in the answer."""

    text: str
    cited: Sequence[tuple[str, Span]] = ()


def _find_claims(answer: str, index: Index, seen: Collection[str]) -> Iterator[_Claim]:
    """Yield the claims of an answer; the last one is what it says after all citations, and cites nothing."""
    masked, unusual = _mask_unusual_ids(answer, seen)
    at = 0
    for match in _BRACKETS.finditer(masked):
        is_round = match.lastindex == 3
        names = _find_names(match, unusual, index, seen)
        cited = [(name, span) for name, span in names if name in seen or (not is_round and _may_be_cited(name, index))]
        if cited:
            yield _Claim(answer[at : match.start()], cited)
            at = match.end()
    yield _Claim(answer[at:])


def _mask_unusual_ids(answer: str, seen: Collection[str]) -> tuple[str, dict[int, str]]:
    """Replace unusual ids that were shown by fillers that are as long and that `_ID` matches.

    Returns:
        The answer, and by their places in it the ids that were replaced.
    """
    forms: dict[str, str] = {}
    for chunk_id in seen:
        if not is_usual(chunk_id):
            forms[quote_id(chunk_id)] = chunk_id
        if not _ID.fullmatch(chunk_id) and _NUMBERED.search(chunk_id):
            forms[chunk_id] = chunk_id
    if not forms:
        return answer, {}
    unusual: dict[int, str] = {}

    def mask(match: re.Match[str]) -> str:
        unusual[match.start()] = forms[match[0]]
        return f"{_FILLER * (len(match[0]) - 2)}:0"

    longest_first = sorted(forms, key=len, reverse=True)
    shown = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\d|:\d)"  # one pass: there may be thousands
    return re.sub(shown, mask, answer), unusual


def _find_names(
    brackets: re.Match[str], unusual: Mapping[int, str], index: Index, seen: Collection[str]
) -> Iterator[tuple[str, Span]]:
    """Yield what may be ids of chunks in brackets of a masked answer, with their places in it."""
    answer = brackets.string
    start, end = brackets.span(brackets.lastindex or 0)
    inside = answer[start:end].strip()
    for part in _PART.finditer(answer, start, end):
        name = part[0].strip()
        if name and _is_whole_id(name, index, seen, is_round=brackets.lastindex == 3):
            at = answer.index(name, part.start())
            found = [(name, at, at + len(name))]
        else:
            found = [
                (unusual.get(match.start(), match[0]), match.start(), match.end())
                for match in _ID.finditer(answer, *part.span())
                if match[0] == name or not _NUMBERS.fullmatch(match[0])
            ]
        for chunk_id, first, last in found:
            if answer[first:last] == inside:
                yield chunk_id, Span(start=brackets.start(), end=brackets.end())
            else:
                yield chunk_id, Span(start=first, end=last)


def _is_whole_id(name: str, index: Index, seen: Collection[str], *, is_round: bool) -> bool:
    """Return whether a name is exactly the id of a chunk. That of a ready-made one, such as `12`, may be a footnote."""
    if index.get(name) is None:
        return False
    if _NUMBERED.search(name):
        return True
    return not is_round and not any(chunk and f"[{name}]" in chunk.text for chunk in index.mget(list(seen)))


def _may_be_cited(name: str, index: Index) -> bool:
    """Return whether what looks like an id is of a chunk that exists or was made up: no time, verse or ratio."""
    return bool(_LIKE_A_FILE.search(name) or index.get(name) or index.document(name.rpartition(":")[0]))


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that a page may link to: of http or https."""
    return _WEB_ADDRESS.fullmatch(text) is not None


def _describe(chunk: Chunk, index: Index) -> CitedDocument:
    """Return what is known of a chunk's document."""
    known = index.document(chunk.document_id)
    metadata = {key.lower(): value for key, value in known.metadata.items()} if known else {}

    def first(*keys: str) -> str:
        value = next((metadata[key] for key in keys if metadata.get(key)), "")
        parts = value if isinstance(value, list) else [value]
        names = (part.get("name", part) if isinstance(part, dict) else part for part in parts)
        return collapse_whitespace(", ".join(map(str, names)))

    url = first("url", "source_url", "link")
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=first("author", "authors", "creator"),
        date=first("date", "published", "created", "year"),
    )


# --- quotes ---


def _quote(chunk: Chunk, place: int) -> Quote:
    sentence = chunk.sentences[place]
    return Quote(start=sentence.start, end=sentence.end, text=chunk.sentence_text(place))


def _choose_quotes(claims: Sequence[_Claim], chunks: Mapping[str, Chunk]) -> dict[str, set[int]]:
    """Return the positions of the sentences that bear what an answer says, by chunk id.

    Citations side by side share a claim. A list of sources without words of its own stands for the whole answer. A
    claim with a year that no cited chunk has gets no quote.
    """
    sentences = {chunk_id: _sentence_words(chunk) for chunk_id, chunk in chunks.items()}
    titles = {chunk_id: _words(chunk.title) for chunk_id, chunk in chunks.items()}
    known = set().union(*titles.values(), *(words for each in sentences.values() for words in each.values()))
    whole = "".join(claim.text for claim in claims)
    chosen: dict[str, set[int]] = {}
    done: set[tuple[str, str]] = set()  # some models repeat themselves without end
    text = ""
    for claim in claims:
        text = claim.text if _words(claim.text) else text or whole
        new = {(text, chunk_id) for chunk_id, _ in claim.cited if chunk_id in chunks} - done
        done |= new
        for _, chunk_id in new if new and known.issuperset(_YEAR.findall(text)) else ():
            place = _choose_sentence(text, sentences[chunk_id], titles[chunk_id])
            if place is not None:
                chosen.setdefault(chunk_id, set()).add(place)
    return chosen


def _choose_sentence(claim: str, sentences: Mapping[int, set[str]], title: set[str]) -> int | None:
    """Choose the sentence that shares most with a claim. Names, numbers and words rare in the chunk weigh more.

    If the chunk has no name or number of the claim, the sentence needs half of the claim's words.
    """
    claimed = _words(claim) - title
    names = {word for name in find_names(claim) for word in _words(name)} | set(_NUMBER.findall(claim))
    counts = Counter(word for words in sentences.values() for word in words)
    weights = {word: (2 if word in names else 1) / sqrt(counts[word]) for word in claimed & counts.keys()}
    telling = weights.keys() & names
    least = 1 if telling else max(1, len(claimed) / 2)
    able = [place for place, words in sentences.items() if len(words & (telling or claimed)) >= least]

    def rank(place: int) -> tuple[float, int, int]:
        words = sentences[place]
        return fsum(weights.get(word, 0) for word in words), -len(words), -place  # in any order of the words

    return max(able, key=rank, default=None)


def _sentence_words(chunk: Chunk) -> dict[int, set[str]]:
    """Return the words of the sentences that may be quoted, by position."""
    asides = list(_ASIDE.finditer(chunk.text))
    is_mail = not all(match[0].startswith(">") for match in asides)
    words = {}
    for place in chunk.embedded_positions():
        text, at = chunk.sentence_text(place), chunk.sentences[place].start
        is_aside = is_mail and any(match.start() <= at < match.end() for match in asides)
        if not (is_aside or _GREETING.fullmatch(text) or is_title(text, chunk.title)):
            words[place] = _words(text)
    return words


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    text = plain(text.replace("-", " "))
    return content_words(text) | set(_NUMBER.findall(text))
