"""Which sentences of a cited chunk bear the claim that cites it: found by their words, without a model."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from unicodedata import combining, normalize

from arag.models.words import content_words, cut_sentences, find_names
from arag.retrieval.text import is_title
from arag.retrieval.types import Chunk

_MAX_SENTENCES = 3  # for one claim
_NAME, _WORD, _SUBJECT = 2.0, 1.0, 0.1  # weights: of names and numbers, of other words, of words of the title
_NAME_ELSEWHERE, _WORD_ELSEWHERE = 0.3, 0.1  # of those in the rest of the answer
_LEAST_GAIN = 2.0  # of a further sentence
_LEAST_WORDS = 0.5  # share of its words, if it has no names
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")
_MARKUP = re.compile(r"[*`#|>]")  # of Markdown


@dataclass(frozen=True)
class Bracket:
    """The place of one or more citations in an answer.

    Attributes:
        start: Offset of the opening bracket.
        end: Offset after the closing bracket.
        cited: Ids of the chunks that are cited.
    """

    start: int
    end: int
    cited: tuple[str, ...]


@dataclass(frozen=True)
class _Claim:
    """What an answer says with a citation, and the ids of the chunks that are cited for it."""

    cited: tuple[str, ...]
    text: str


class _Passage:
    """A chunk as words: those of its document's title, and of its sentences by position."""

    def __init__(self, chunk: Chunk) -> None:
        self.title = _words(chunk.title)
        self.sentences = {
            position: _words(chunk.sentence_text(position))
            for position, sentence in enumerate(chunk.sentences)
            if sentence.embedded and not is_title(chunk.sentence_text(position), chunk.title)
        }
        self.words = {word for words in self.sentences.values() for word in words}


def choose_sentences(answer: str, brackets: Sequence[Bracket], chunks: Mapping[str, Chunk]) -> dict[str, set[int]]:
    """Choose the sentences of cited chunks that bear what an answer says.

    For each claim of the answer, these are the sentences of the chunk with most of its words; names and numbers count
    more than other words. A chunk does not bear a claim if it lacks one of its years, or half of its names or more. If
    the claim names nothing, one sentence must have half of its words. What another cited chunk has is not expected.

    Args:
        answer: The answer.
        brackets: Where its citations are, in order.
        chunks: The cited chunks, by id; citations of others are ignored.

    Returns:
        By chunk id the positions of the chosen sentences; chunks without any are left out.
    """
    plain = _hide(answer, brackets)
    names = {word for name in find_names(plain) for word in _words(name)} | set(_NUMBER.findall(plain))
    in_answer = dict.fromkeys(_words(plain), _WORD_ELSEWHERE) | dict.fromkeys(names, _NAME_ELSEWHERE)
    passages = {name: _Passage(chunk) for name, chunk in chunks.items()}
    chosen: dict[str, set[int]] = {}
    for claim in _find_claims(plain, brackets):
        for chunk_id in {chunk_id for chunk_id in claim.cited if chunk_id in chunks}:
            others = {word for name in passages if name != chunk_id for word in passages[name].words}
            if positions := _choose(claim.text, in_answer, passages[chunk_id], others):
                chosen.setdefault(chunk_id, set()).update(positions)
    return chosen


def _hide(answer: str, brackets: Sequence[Bracket]) -> str:
    """Return an answer with spaces for its citations and its markup: ids may hold full stops."""
    parts, at = [], 0
    for bracket in brackets:
        parts += [answer[at : bracket.start], " " * (bracket.end - bracket.start)]
        at = bracket.end
    return _MARKUP.sub(" ", "".join([*parts, answer[at:]]))


def _find_claims(plain: str, brackets: Sequence[Bracket]) -> Iterator[_Claim]:
    """Yield the claims of an answer: for each citation the text before it, back to the citation or sentence before.

    Citations side by side share a claim. What follows the last citation of a sentence belongs to that citation. If
    there are no words around a citation, as in a list of sources, the claim is the whole answer.
    """
    left = deque(brackets)
    for start, end in _cut_answer(plain):
        at = start
        claims: list[_Claim] = []
        while left and left[0].start < end:
            bracket = left.popleft()
            text = plain[at : bracket.start]
            if claims and not _words(text):
                claims[-1] = _Claim(claims[-1].cited + bracket.cited, claims[-1].text)
            else:
                claims.append(_Claim(bracket.cited, text))
            at = bracket.end
        for claim in claims:
            text = claim.text + plain[at:end] if claim is claims[-1] else claim.text
            yield _Claim(claim.cited, text if _words(text) else plain)


def _cut_answer(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of an answer without citations, each with the space that follows it."""
    at = 0
    for line in plain.splitlines(keepends=True):
        starts = [at + start for start, _ in cut_sentences(line)]
        at += len(line)
        yield from zip(starts, [*starts[1:], at], strict=True)


def _choose(claim: str, in_answer: Mapping[str, float], passage: _Passage, others: set[str]) -> list[int]:
    """Choose the sentences of a passage that bear a claim one by one, each by the words that it adds.

    Args:
        claim: The claim.
        in_answer: The weights of the words of the whole answer.
        passage: The passage.
        others: The words of the other chunks that the answer cites.

    Returns:
        The sentences' positions; none if they do not bear it.
    """
    here, subject = passage.words, passage.title  # all of a document is about what its title names
    expected = [words for name in find_names(claim) if (words := _words(name)) - subject and not name.isdecimal()]
    # A number that a passage lacks may be rounded, or the result of a calculation; a year is not.
    held = [{number} for number in set(_NUMBER.findall(claim)) if number in here - subject]
    held += [name for name in expected if 2 * len(name & (here | subject)) >= len(name)]
    lacking = [name for name in expected if name not in held and not name <= others | subject]
    years = set(_YEAR.findall(claim)) - here - others - subject
    if years or (lacking and len(lacking) >= len(held)):
        return []
    names = {word for name in held for word in name} - subject
    wanted = _words(claim)
    weights = {**in_answer, **{word: _NAME if word in names else _WORD for word in wanted}}
    weights |= dict.fromkeys(subject & weights.keys(), _SUBJECT)
    counts = Counter(word for words in passage.sentences.values() for word in words)
    weights = {word: weight / sqrt(counts[word]) for word, weight in weights.items() if word in counts}
    telling = wanted | {word for word in in_answer if in_answer[word] > _WORD_ELSEWHERE}
    told = names or (telling & here) - subject or wanted
    expected_words = [word for word in wanted - subject - (others - here) if not word.isdecimal()]
    least = 1 if names else max(1, _LEAST_WORDS * len(expected_words))
    able = {position: words for position, words in passage.sentences.items() if len(words & told) >= least}
    chosen: list[int] = []
    while able and len(chosen) < _MAX_SENTENCES:
        gains = {position: sum(weights.get(word, 0.0) for word in words) for position, words in able.items()}
        best = max(gains, key=lambda position: (gains[position], -len(able[position]), -position))
        if chosen and gains[best] < _LEAST_GAIN:
            break
        chosen.append(best)
        weights = {word: weight for word, weight in weights.items() if word not in passage.sentences[best]}
        able = {position: words for position, words in passage.sentences.items() if position not in chosen}
    return chosen


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    plain = "".join(c for c in normalize("NFKD", text.replace("-", " ")) if not combining(c))
    return content_words(plain) | set(_NUMBER.findall(plain))
