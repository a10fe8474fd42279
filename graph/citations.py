"""Citations in an answer: checked against the chunks that were shown, with what a reader needs to follow them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple
from unicodedata import combining, normalize

from langchain_core.messages import AnyMessage, ToolMessage

from arag.graph.state import Citation, CitedDocument, Quote
from arag.models.words import content_words, find_names
from arag.retrieval.index import Index
from arag.retrieval.text import fold, is_title
from arag.retrieval.types import Chunk

_ID_END = re.compile(r":\d+(?!\d|:\d)")
_ID_START = re.compile(r"(?<=[\s\[\]【】()（）,;，；、`*\"'“])|^")
_BRACKET = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|[(（]([^()（）\n]{1,400})[)）]")
_UNSEEN = re.compile(r"[^\s,;，；、`*\[\]]+:\d+(?!\d)")
_MASK = "\ue000"  # in place of the characters of an id
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")
_MAX_FIELD = 2_000  # characters
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")
_NAME, _WORD, _SUBJECT = 2.0, 1.0, 0.1  # weights of names and numbers, of other words, of the title's words
_LEAST_GAIN = 2.0  # of a second sentence


class Mention(NamedTuple):
    """A bracket of an answer that cites chunks: its place, and their ids."""

    start: int
    end: int
    chunk_ids: tuple[str, ...]


def find_shown_chunks(messages: Iterable[AnyMessage], index: Index) -> list[str]:
    """Return the ids of the chunks that a conversation's tool results show.

    These are the `chunk_ids` in a result's artifact. If a caller's own tool returns none, they are the chunk ids in
    square brackets in the result's text.

    Args:
        messages: The conversation.
        index: The index.
    """
    shown: dict[str, None] = {}
    for message in messages:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        chunk_ids = message.artifact.get("chunk_ids") if isinstance(message.artifact, dict) else None
        if not isinstance(chunk_ids, list):
            named = (match[1] for match in _BRACKET.finditer(message.text) if match[1])
            chunk_ids = [name for name in dict.fromkeys(named) if index.get(name)]
        shown |= dict.fromkeys(chunk_id for chunk_id in chunk_ids if isinstance(chunk_id, str))
    return list(shown)


def parse_citations(answer: str, index: Index, seen: Collection[str], read: Collection[str]) -> list[Citation]:
    """Find the chunks that an answer names in brackets: `[a.md:0, b.md:1]`, `【a.md:0】`, `(a.md:0)`.

    In square brackets, chunks that were not shown count, too, and what looks like a chunk of a file or of a document in
    the index: `seen` says that they were not shown. Other texts in brackets, such as times and ratios, do not count.

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
    mentions = find_mentions(answer, index, seen)
    chunks = {name: index.get(name) for name in dict.fromkeys(i for mention in mentions for i in mention.chunk_ids)}
    shown = {name: chunk for name, chunk in chunks.items() if chunk is not None and name in seen}
    quotes = _choose_quotes(answer, mentions, shown)
    return [
        Citation(
            chunk_id=name,
            seen=name in seen,
            read=name in read,
            pages=list(chunk.pages) if chunk and chunk.pages else None,
            document=_describe(chunk, index) if chunk else None,
            quotes=[_quote(shown[name], position) for position in sorted(quotes.get(name, ()))],
        )
        for name, chunk in chunks.items()
    ]


def find_mentions(answer: str, index: Index, seen: Collection[str]) -> list[Mention]:
    """Find the brackets of an answer that cite chunks, in order.

    Args:
        answer: The answer.
        index: The index.
        seen: Ids of chunks that were shown to the model.
    """
    spans = list(_find_seen(answer, seen))
    masked = list(answer)
    for start, end in spans:  # an id may itself hold brackets
        masked[start:end] = _MASK * (end - start)
    mentions = []
    for bracket in _BRACKET.finditer("".join(masked)):
        place = bisect_left(spans, (bracket.start(), 0))
        cited = {}
        while place < len(spans) and spans[place][0] < bracket.end():
            start, end = spans[place]
            cited[start] = answer[start:end]
            place += 1
        if bracket[3] is None:
            cited |= dict(_find_unseen(bracket, index))
        if cited:
            mentions.append(Mention(*bracket.span(), tuple(cited[start] for start in sorted(cited))))
    return mentions


def _find_seen(answer: str, seen: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield where an answer has ids of chunks that were shown; of those that begin at one place, the longest."""
    ends = [match.end() for match in _ID_END.finditer(answer)]
    longest = max(map(len, seen), default=0)
    at = 0
    for match in _ID_START.finditer(answer):
        start = match.start()
        near = ends[bisect_left(ends, start) : bisect_left(ends, start + longest + 1)] if start >= at else []
        end = next((end for end in reversed(near) if answer[start:end] in seen), None)
        if end is not None:
            yield start, end
            at = end


def _find_unseen(bracket: re.Match[str], index: Index) -> Iterator[tuple[int, str]]:
    """Yield the ids in a bracket that were not shown, with their places: those that exist, or are made up."""
    group = 1 if bracket[1] is not None else 2
    if index.get(bracket[group].strip()):
        yield bracket.start(group), bracket[group].strip()
        return
    for match in re.finditer(r"[^,;，；、]+", bracket[group]):  # ids of ready-made chunks have any form
        if index.get(match[0].strip()):
            yield bracket.start(group) + match.start(), match[0].strip()
    for match in _UNSEEN.finditer(bracket[group]):
        name = match[0]
        if index.get(name) or _LIKE_A_FILE.search(name) or index.document(name.rpartition(":")[0]):
            yield bracket.start(group) + match.start(), name


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that a page may link to.

    Example:
        >>> is_web_address("https://example.com/report.pdf"), is_web_address("javascript:alert(1)")
        (True, False)
    """
    return _URL.fullmatch(text) is not None


def _describe(chunk: Chunk, index: Index) -> CitedDocument:
    """Return what is known of a chunk's document."""
    known = index.document(chunk.document_id)
    metadata = {key.lower(): value for key, value in known.metadata.items()} if known else {}
    url = _first_text(metadata, ("url", "source_url", "link"))
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=_first_text(metadata, ("author", "authors", "creator")),
        date=_first_text(metadata, ("date", "published", "created", "year")),
    )


def _first_text(metadata: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first of some fields that holds texts or numbers, or things with a name; several are joined."""
    for key in keys:
        value = metadata.get(key)
        parts = [part.get("name") if isinstance(part, dict) else part for part in _as_list(value)]
        text = ", ".join(fold(str(part)) for part in parts if isinstance(part, str | int | float) and part is not True)
        if 0 < len(text) <= _MAX_FIELD:
            return text
    return ""


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# --- quotes ---


def _quote(chunk: Chunk, position: int) -> Quote:
    sentence = chunk.sentences[position]
    return Quote(start=sentence.start, end=sentence.end, text=chunk.sentence_text(position))


def _choose_quotes(answer: str, mentions: Sequence[Mention], chunks: Mapping[str, Chunk]) -> dict[str, set[int]]:
    """Choose the sentences of cited chunks that bear what an answer says.

    Args:
        answer: The answer.
        mentions: Where it cites chunks.
        chunks: The cited chunks that were shown, by id.

    Returns:
        By chunk id the positions of its sentences. A claim with a year that no cited chunk has gets none.
    """
    sentences = {chunk_id: _sentence_words(chunk) for chunk_id, chunk in chunks.items()}
    known = {word for words in sentences.values() for sentence in words.values() for word in sentence}
    known |= {word for chunk in chunks.values() for word in _words(chunk.title)}
    chosen: dict[str, set[int]] = {}
    for claim, cited in _find_claims(answer, mentions):
        if not set(_YEAR.findall(claim)) - known:
            for chunk_id in set(cited) & chunks.keys():
                chosen.setdefault(chunk_id, set()).update(
                    _choose_sentences(claim, sentences[chunk_id], _words(chunks[chunk_id].title))
                )
    return chosen


def _find_claims(answer: str, mentions: Sequence[Mention]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what an answer says with each citation: the text since the one before it.

    Citations side by side share a claim. A list of sources without words of their own stands for the whole answer.
    """
    whole = "".join(_between(answer, mentions))
    claim = ""
    for text, mention in zip(_between(answer, mentions), mentions, strict=False):
        claim = text if _words(text) else claim or whole
        yield claim, mention.chunk_ids


def _between(answer: str, mentions: Sequence[Mention]) -> list[str]:
    """Return the texts before, between and after the citations of an answer."""
    starts = [0, *(mention.end for mention in mentions)]
    ends = [*(mention.start for mention in mentions), len(answer)]
    return [answer[start:end] for start, end in zip(starts, ends, strict=True)]


def _choose_sentences(claim: str, sentences: Mapping[int, set[str]], title: set[str]) -> list[int]:
    """Choose one or two sentences by the words that they share with a claim, the rare ones in the chunk first."""
    claimed = _words(claim)
    names = {word for name in find_names(claim) for word in _words(name)} | set(_NUMBER.findall(claim))
    counts = Counter(word for words in sentences.values() for word in words)
    weights = {
        word: (_SUBJECT if word in title else _NAME if word in names else _WORD) / sqrt(counts[word])
        for word in claimed & counts.keys()
    }
    telling = (claimed & names) - title
    least = 1 if telling & counts.keys() else max(1, len(claimed - title) / 2)
    able = {p: w for p, w in sentences.items() if len(w & (telling & counts.keys() or claimed)) >= least}
    chosen: list[int] = []
    while able and len(chosen) < 2:
        gains = {position: sum(weights.get(word, 0.0) for word in words) for position, words in able.items()}
        best = max(gains, key=lambda position: (gains[position], -len(able[position]), -position))
        if chosen and gains[best] < _LEAST_GAIN:
            break
        chosen.append(best)
        weights = {word: weight for word, weight in weights.items() if word not in able[best]}
        del able[best]
    return chosen


def _sentence_words(chunk: Chunk) -> dict[int, set[str]]:
    texts = {place: chunk.sentence_text(place) for place, sentence in enumerate(chunk.sentences) if sentence.embedded}
    return {position: _words(text) for position, text in texts.items() if not is_title(text, chunk.title)}


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    plain = "".join(c for c in normalize("NFKD", text.replace("-", " ")) if not combining(c))
    return content_words(plain) | set(_NUMBER.findall(plain))
