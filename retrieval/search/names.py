"""Documents found by their names: their titles and file names."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from itertools import islice, pairwise

from arag.retrieval.search.suggestions import FUNCTION_WORDS
from arag.retrieval.storage.contract import View
from arag.text.normalise import bare_title, name_words
from arag.text.scripts import is_east_asian
from arag.text.words import content_words, list_words

MIN_NAME_CHARACTERS = 3  # shorter names are common words
MAX_NAME_WORDS = 20

_MAX_LOOKED_AT = 20
_MAX_NAMED = 2  # documents for each name
_MAX_PAIRS = 8  # of neighbouring words of a query: each is looked for in all names
_NEARLY = 0.75  # of the words: one of four may differ


def find_named(name: str, view: View, *, but: Collection[str] = ()) -> list[int]:
    """Find documents that have all words of a name in their title or file name, except some documents.

    Returns:
        The row ids of their first chunks.
    """
    wanted = [word for word in name_words(name) if word not in FUNCTION_WORDS]
    wanted = wanted[:MAX_NAME_WORDS]
    least = MIN_NAME_CHARACTERS
    if is_east_asian(name):
        least = 1
    if len("".join(wanted)) < least:
        return []
    candidates = view.named(wanted, _MAX_LOOKED_AT)
    first_chunks: list[str] = []
    for document_id, entry in view.entries(candidates).items():
        if document_id in but:
            continue
        words_of_name = name_words(f"{document_id} {entry.title}")
        if _has_words(words_of_name, wanted):
            first_chunks.append(f"{document_id}:0")
    row_ids = view.row_ids(first_chunks[:_MAX_NAMED])
    return list(row_ids.values())


def find_titled(query: str, view: View, *, but: Collection[str]) -> list[int]:
    """Find documents whose titles stand in a query or are nearly all of it, except some documents.

    A title counts from two words on, without common ones: of titles of one word, many are common words.

    Returns:
        The row ids of their first chunks, those with the longest titles first.
    """
    candidates: set[str] = set()
    for pair in islice(pairwise(list_words(query)), _MAX_PAIRS):
        candidates.update(view.named(pair, _MAX_LOOKED_AT))
    asked = content_words(query)
    shared_words: dict[str, int] = {}
    for document_id, entry in view.entries(sorted(candidates.difference(but))).items():
        title = content_words(bare_title(entry.title))
        if len(title) > 1 and _is_title_of(title, asked):
            shared_words[f"{document_id}:0"] = len(title & asked)
    best = sorted(shared_words, key=lambda chunk_id: -shared_words[chunk_id])
    row_ids = view.row_ids(best[:_MAX_NAMED])
    return list(row_ids.values())


def _is_title_of(title: AbstractSet[str], asked: AbstractSet[str]) -> bool:
    """Return whether all words of a title are asked for, or most of them and hardly any others."""
    shared = len(title & asked)
    if shared == len(title):
        return True
    return shared >= _NEARLY * max(len(title), len(asked))


def _has_words(name: Collection[str], wanted: Collection[str]) -> bool:
    # In scripts without spaces, words may be inside longer ones: the view has checked that they occur.
    return all(word in name or is_east_asian(word) for word in wanted)
