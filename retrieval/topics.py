"""What the parts of a long document are about: the words that tell each from the rest of the document."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from arag.errors import IndexFormatError
from arag.retrieval.backend import Chunks
from arag.retrieval.types import Chunk

_FEWEST_PARTS = 10  # of a document: of a shorter one, the title says enough
_WORDS = 3
_REACH = 3  # parts before and after one: a subject goes on over several
_ENOUGH = 5  # times: a word that a part has more often is not more telling
_COMMON = 0.4  # of all parts: a word that more of them have tells none from the others
_LEAST = 2.0  # times that a word must occur; a part that is n away counts as 1 / (1 + n)
_STEM = 5  # letters: of words that begin alike, such as singular and plural, one is enough
_SAMPLE = 40  # parts that stand for the whole document
_MAX_REMEMBERED = 1_000  # parts; of documents a tenth
# In other scripts, words are not separated, or have marks that this would cut them at.
_LETTERS = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ԯḀ-῿"  # Latin, Greek, Cyrillic
_WORD = re.compile(rf"(?<!\w)[{_LETTERS}](?:-?[{_LETTERS}\d]){{2,29}}(?!\w)")


class Topics:
    """Finds what parts of long documents are about, and remembers it.

    Args:
        chunks: The chunks of one generation of an index.
    """

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._topics: dict[str, tuple[str, ...]] = {}  # by chunk id
        self._spread: dict[str, Mapping[str, float]] = {}  # by document id

    def find(self, chunk_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return up to three words for each part of a long document, the most telling first.

        A word tells the more, the more often the part and those beside it have it, and the fewer other parts of the
        document do (tf-idf). Words are those of Latin, Greek and Cyrillic letters.

        Args:
            chunk_ids: Ids of chunks; those of documents with fewer than ten are left out.
        """
        found = {chunk_id: self._topics.get(chunk_id) for chunk_id in chunk_ids}
        for chunk in self._chunks.mget([chunk_id for chunk_id, topics in found.items() if topics is None]):
            if chunk is not None:
                try:
                    topics = self._choose(chunk)
                except IndexFormatError:  # of a part beside it: whoever reads that one is told
                    continue
                _make_room(self._topics, _MAX_REMEMBERED)
                found[chunk.id] = self._topics[chunk.id] = topics
        return {chunk_id: topics for chunk_id, topics in found.items() if topics}

    def _choose(self, chunk: Chunk) -> tuple[str, ...]:
        if len(chunk.sections) > 1 or chunk.sections[0].whole:
            return ()
        weights = self._weigh(chunk.document_id)
        if not weights:
            return ()
        written = Counter(_list_words(chunk.text))
        spelling = {word.lower(): word for word, _ in reversed(written.most_common())}  # the most frequent one
        own = _count_words(chunk.text)
        counts: defaultdict[str, float] = defaultdict(float)
        for part in self._chunks.neighbours(chunk, _REACH):
            distance = abs(part.ordinal - chunk.ordinal)
            # What the part itself hardly speaks of is not its subject, however often those beside it do.
            for word, count in _count_words(part.text).items():
                counts[word] += min(count, 2 * own[word], _ENOUGH) / (1 + distance)
        rated = {w: n * weights.get(w, weights[""]) for w, n in counts.items() if n >= _LEAST}
        chosen: dict[str, str] = {}
        for word in sorted(rated, key=lambda word: (-rated[word], word)):
            if rated[word] > 0 and len(chosen) < _WORDS:
                chosen.setdefault(word[:_STEM], spelling[word])
        return tuple(chosen.values())

    def _weigh(self, document_id: str) -> Mapping[str, float]:
        """Return the weights of a long document's words, and that of any other word under an empty one.

        A weight is the logarithm of how many parts there are for each part that has the word.
        """
        known = self._spread.get(document_id)
        if known is not None:
            return known
        numbers = self._chunks.numbers_of([document_id])
        sample = numbers[:: math.ceil(len(numbers) / _SAMPLE)] if len(numbers) >= _FEWEST_PARTS else []
        holding: Counter[str] = Counter()
        for part in self._chunks.numbered(sample).values():
            holding.update(_count_words(part.text).keys())
        most = _COMMON * len(sample)
        weights = {w: math.log((len(sample) + 1) / (n + 1)) if n <= most else 0.0 for w, n in holding.items()}
        if sample:
            weights[""] = math.log(len(sample) + 1)
        _make_room(self._spread, _MAX_REMEMBERED // 10)
        self._spread[document_id] = weights
        return weights


def _count_words(text: str) -> Counter[str]:
    # Whole words in lower case: in lower case, İ is two characters, and a word with it would be cut there.
    return Counter(word.lower() for word in _list_words(text))


def _list_words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text))


def _make_room(remembered: dict[str, Any], most: int) -> None:
    if len(remembered) >= most:
        remembered.clear()
