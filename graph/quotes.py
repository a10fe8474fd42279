"""The sentences of cited chunks that support an answer, chosen by their words: no model is called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from arag.graph.cited import Quote
from arag.graph.claims import Claim
from arag.graph.shown import ShownTexts
from arag.retrieval.types import Chunk
from arag.text.mail import find_asides, is_greeting
from arag.text.normalise import is_title, plain
from arag.text.words import content_words, find_names

_NUMBER = re.compile(r"\d+")
_WRITTEN = re.compile(r"\w+(?:[.'’-]\w+)*")  # a word, or a name in code
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")


@dataclass(frozen=True)
class _ChunkWords:
    """The words of a chunk that claims are compared with."""

    title: set[str]
    sentences: Mapping[int, set[str]]  # of those that may be quoted, by position
    written: Mapping[int, set[str]]  # the words of these as they are written
    texts: Mapping[int, str]


def choose_quotes(
    claims: Sequence[Claim],
    chunks: Mapping[str, Chunk],
    shown: ShownTexts | None = None,
) -> dict[str, list[Quote]]:
    """Return the sentences that support an answer, by chunk id, in the order of the text.

    Citations side by side share a claim. A list of sources without words of its own supports the whole answer. A claim
    with a year that no cited chunk has gets no quote.

    Args:
        claims: The answer's claims.
        chunks: The cited chunks that were shown, by id.
        shown: What was shown of them, if other middleware may have changed that.
    """
    words: dict[str, _ChunkWords] = {}
    texts: dict[str, Mapping[int, str]] = {}
    for chunk_id, chunk in chunks.items():
        texts[chunk_id] = _list_sentences(chunk) if shown is None else shown.find_sentences(chunk)
        words[chunk_id] = _read_words(chunk, texts[chunk_id])
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
            best = _choose_sentences(text, words[chunk_id])
            if best:
                chosen.setdefault(chunk_id, set()).update(best)
    quotes: dict[str, list[Quote]] = {}
    for chunk_id, positions in chosen.items():
        quotes[chunk_id] = _make_quotes(chunks[chunk_id], positions, texts[chunk_id])
    return quotes


def _fill_in_texts(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yield the claims. One without words gets the text of the claim before it; at the start, the whole answer's."""
    text = ""
    for claim in claims:
        if _words(claim.text):
            text = claim.text
        elif not text:
            text = "".join(claim.text for claim in claims)
        yield Claim(text, claim.cited)


def _list_sentences(chunk: Chunk) -> dict[int, str]:
    return {position: chunk.sentence_text(position) for position in range(len(chunk.sentences))}


def _make_quotes(chunk: Chunk, positions: Collection[int], texts: Mapping[int, str]) -> list[Quote]:
    quotes = []
    for position in sorted(positions):
        sentence = chunk.sentences[position]
        quotes.append(
            Quote(
                start=sentence.start,
                end=sentence.end,
                text=texts[position],
            )
        )
    return quotes


def _choose_sentences(claim: str, chunk: _ChunkWords) -> list[int]:
    """Choose the sentence that shares most with a claim, and a second one for numbers that the first one lacks.

    Names, numbers and words rare in the chunk weigh more. Of sentences that share as much, one that writes the words as
    the claim does comes first: `fft` is not `FFT`. If the chunk has no name or number of the claim, the sentence needs
    half of the claim's words, or the claim quotes it. The second one also shares a word with the claim.
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
        is_quoted = len(words) > 1 and chunk.texts[position] in claim
        if is_quoted or len(words & required) >= fewest:
            candidates.append(position)

    written = {word for word in _list_written(claim) if weights.keys() & _words(word)}

    def rank(position: int) -> tuple[float, int, int, int]:
        """Order by the weight of shared words, those written alike, then the shorter sentence, then the earlier one."""
        words = chunk.sentences[position]
        weight = fsum(weights.get(word, 0) for word in words)  # exact: equal in any order of the set
        alike = len(written & chunk.written[position])
        return weight, alike, -len(words), -position

    if not candidates:
        return []
    first = max(candidates, key=rank)
    missing = claimed.intersection(_NUMBER.findall(claim)) - chunk.sentences[first]
    with_missing = []
    for position in candidates:
        words = chunk.sentences[position]
        if words & missing and len(words & claimed) > 1:
            with_missing.append(position)
    if not with_missing:
        return [first]
    return [first, max(with_missing, key=rank)]


def _read_words(chunk: Chunk, texts: Mapping[int, str]) -> _ChunkWords:
    """Return the words of a chunk's title, and of its sentences without titles and the asides of emails.

    Args:
        chunk: The chunk.
        texts: Its sentences as they were shown, by position.
    """
    asides = find_asides(chunk.text)
    sentences: dict[int, set[str]] = {}
    written: dict[int, set[str]] = {}
    for position in chunk.embedded_positions():
        start = chunk.sentences[position].start
        if any(start in aside for aside in asides):
            continue
        text = chunk.sentence_text(position)
        if position not in texts or is_greeting(text) or is_title(text, chunk.title):
            continue
        sentences[position] = _words(texts[position])
        written[position] = _list_written(texts[position])
    return _ChunkWords(_words(chunk.title), sentences, written, texts)


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    text = plain(text.replace("-", " "))
    return content_words(text) | set(_NUMBER.findall(text))


def _list_written(text: str) -> set[str]:
    """Return a text's words as it writes them, but in small letters if only the first is a capital."""
    written: set[str] = set()
    for word in _WRITTEN.findall(text):
        written.add(word.lower() if word.istitle() else word)
    return written
