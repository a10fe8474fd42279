"""Documents found by their names: their titles and file names."""

from __future__ import annotations

from collections.abc import Collection

from arag.retrieval.search.suggestions import FUNCTION_WORDS
from arag.retrieval.storage.contract import View
from arag.text.normalise import name_words
from arag.text.scripts import is_east_asian

MIN_NAME_CHARACTERS = 3  # shorter names are common words
MAX_NAME_WORDS = 20

_MAX_LOOKED_AT = 20
_MAX_NAMED = 2  # documents for each name


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


def _has_words(name: Collection[str], wanted: Collection[str]) -> bool:
    # In scripts without spaces, words may be inside longer ones: the view has checked that they occur.
    return all(word in name or is_east_asian(word) for word in wanted)
