"""The similarities of a search's hits as people need them: what says little of a text counts little."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from arag.retrieval.index import Index
from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.search.contents import find_listed
from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import CELL_BOUNDARY, HEADING_BOUNDARY, plain

_HIGHER = 0.75  # weight of the higher of two similarities; 0.6 to 0.85 find as many
_SHARED = 5  # documents: what so many say word by word, as in a menu, says little of any of them
_MAX_LABEL_CHARACTERS = 60
# Up to three words without a number or a full stop, such as `- Insert table` and `File ▸ Open`. Scripts without spaces
# say more in so few words.
_LETTERS = r"[A-Za-z\u00c0-\u052f'’-]+"
_LABEL = re.compile(rf"(?:[-*•]\s)?{_LETTERS}(?:[\s▸→>/]+{_LETTERS}){{0,2}}[\s»…]*")
# Addresses, and what keys, signatures and checksums are written in. Each is looked for only where it can begin: to try
# every letter of a script without spaces would take seconds.
_ADDRESS_OR_KEY = re.compile(
    r"[a-z]{2,6}://\S+|(?<![A-Za-z\d+/=])(?=[A-Za-z+/=]*\d)[A-Za-z\d+/=]{16,}"
    r"|(?<!\S)=\S{4}(?!\S)|-----(?:BEGIN|END) [A-Z ]+-----"
)
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,}(?![^\W_])|[^\W\d_\x00-\u024f]")
_LIST_ITEM = re.compile(r"[-*•] ")
_LINKS = re.compile(
    r"(?:\d[\d.]* )?(?:(?:related |see also:? |external |useful )?(?:links|pages)|see also|further reading|manual pages"
    r"|siehe auch|weblinks|voir aussi|liens|vease tambien|enlaces(?: relacionados)?|vedi anche|collegamenti|veja tambem"
    r"|zie ook|zobacz tez|см\. также|ссылки|関連項目|関連リンク|参见|相关链接)"
)

_Positions = Mapping[str, Collection[int]]  # of sentences, by chunk id


def weigh(index: Index, query: str, hits: Iterable[Hit]) -> list[Hit]:
    """Return hits with scores of the similarities of their best sentence and of their opening; the higher counts most.

    "How do I crop a photo?" is answered by steps, none of which is near to the question; the first sentences of their
    page are. Of 60 such questions and phrases, the page is among the first five for 50 instead of 36, and the first for
    35 instead of 19; of 90 questions for facts, it is among the first five for 87, and the first for 76 instead of 74.

    Sentences that several documents share count for one of them, and in no opening. Those that say nothing count if a
    chunk has no others; a chunk without words of a language, such as a key, has no similarity.
    """
    hits = list(hits)
    shared = _find_shared(hits)
    empty: dict[str, set[int]] = {}
    for hit in hits:
        empty[hit.chunk_id] = find_pointers(hit.chunk, shared[hit.chunk_id]) | _find_wordless(hit.chunk)
    ignored = {chunk_id: shared[chunk_id] | empty[chunk_id] for chunk_id in shared}
    openings = index.rate_openings(query, list(ignored), ignored)
    repeated = _find_repeated(hits, shared, openings)
    little = {chunk_id: repeated[chunk_id] | empty[chunk_id] for chunk_id in shared}
    weighed: list[Hit] = []
    for hit in _rate_by_others(index, query, hits, little):
        lower, higher = sorted([hit.score, openings.get(hit.chunk_id, hit.score)])
        score = _HIGHER * higher + (1 - _HIGHER) * lower
        if not any(map(_has_words, hit.chunk.embedded_texts())):
            score = 0.0
        weighed.append(replace(hit, score=score))
    return weighed


def find_pointers(chunk: Chunk, shared: Collection[int] = ()) -> set[int]:
    """Return the sentences of a chunk that only name other texts: in contents, and in lists of links.

    An entry of a list that several documents share is a link, as between the pages of a manual.
    """
    pointers = find_listed(chunk)
    for position, sentence in enumerate(chunk.sentences):
        is_link = position in shared or _is_among_links(sentence.heading)
        if is_link and _LIST_ITEM.match(chunk.sentence_text(position)):
            pointers.add(position)
    return pointers


def _is_among_links(heading: str) -> bool:
    return any(_LINKS.fullmatch(plain(name)) for name in heading.split(HEADING_BOUNDARY))


def _find_wordless(chunk: Chunk) -> set[int]:
    return {position for position in chunk.embedded_positions() if not _has_words(chunk.sentence_text(position))}


def _has_words(text: str) -> bool:
    return _WORD.search(_ADDRESS_OR_KEY.sub("", text)) is not None


def _find_shared(hits: Sequence[Hit]) -> dict[str, set[int]]:
    """Return the sentences that several documents share. Chunks that are equal as a whole count once."""
    distinct = {hit.chunk.text: hit.chunk for hit in hits}
    documents: dict[str, set[str]] = defaultdict(set)  # by sentence
    for chunk in distinct.values():
        for text in chunk.embedded_texts():
            documents[text].add(chunk.document_id)
    shared: dict[str, set[int]] = {}
    for hit in hits:
        texts = zip(hit.chunk.embedded_positions(), hit.chunk.embedded_texts(), strict=True)
        shared[hit.chunk_id] = {position for position, text in texts if len(documents[text]) >= _SHARED}
    return shared


def _find_repeated(hits: Sequence[Hit], shared: _Positions, openings: Mapping[str, float]) -> dict[str, set[int]]:
    """Return the shared sentences of all chunks but the one with the best opening, and of those equal to it."""
    first: dict[str, str] = {}  # by sentence, the text of the chunk for which it counts
    repeated: dict[str, set[int]] = defaultdict(set)
    for hit in sorted(hits, key=lambda hit: (-openings.get(hit.chunk_id, 0.0), hit.chunk_id)):
        for position in shared[hit.chunk_id]:
            text = hit.chunk.sentence_text(position)
            if first.setdefault(text, hit.chunk.text) != hit.chunk.text:
                repeated[hit.chunk_id].add(position)
    return repeated


def _rate_by_others(index: Index, query: str, hits: Sequence[Hit], little: _Positions) -> list[Hit]:
    """Rate hits whose nearest sentence says little, or is a label, by their other sentences, if they have any.

    To a short query, labels are nearer than sentences, and they answer nothing.
    """

    def says_little(hit: Hit, position: int) -> bool:
        return position in little[hit.chunk_id] or _is_label(hit.chunk, position)

    doubtful = [hit.chunk_id for hit in hits if says_little(hit, _nearest(hit.similarities))]
    rated = index.rate_sentences(query, doubtful)
    kept: list[Hit] = []
    for hit in hits:
        similarities = {
            position: similarity
            for position, similarity in rated.get(hit.chunk_id, hit.similarities).items()
            if not says_little(hit, position)
        }
        if similarities:
            kept.append(replace(hit, score=max(similarities.values()), similarities=similarities))
        else:
            kept.append(hit)
    return kept


def _nearest(similarities: Mapping[int, float]) -> int:
    return max(similarities, key=lambda position: similarities[position])


def _is_label(chunk: Chunk, position: int) -> bool:
    """Return whether a sentence is the header of a table, or a few words as of a menu or a link."""
    line = sentence_line(chunk, position).strip("| ")
    if len(line) > _MAX_LABEL_CHARACTERS:
        return False
    cells = line.split(CELL_BOUNDARY)
    if len(cells) > 1 and not _begins_table(chunk, position):
        return False
    return all(_LABEL.fullmatch(cell) for cell in cells)


def _begins_table(chunk: Chunk, position: int) -> bool:
    """Return whether no row is before a table's row, under the same heading."""
    before = chunk.sentences[:position][-1:]
    if not before or before[0].heading != chunk.sentences[position].heading:
        return True
    return CELL_BOUNDARY not in chunk.sentence_text(position - 1)
