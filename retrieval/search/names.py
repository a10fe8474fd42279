"""Documents found by their names: their titles and file names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise

from arag.retrieval.corpus.moved import find_moved
from arag.retrieval.search.suggestions import FUNCTION_WORDS
from arag.retrieval.storage.contract import View
from arag.text.normalise import bare_title, name_words, searchable
from arag.text.scripts import OTHER_LETTER, is_east_asian
from arag.text.words import list_words, stem

MIN_NAME_CHARACTERS = 3  # shorter names are common words
MAX_NAME_WORDS = 20

_MAX_LOOKED_AT = 20
_MAX_NAMED = 2  # documents for each name
_MAX_PAIRS = 12  # of neighbouring roots of a query: each is looked for in all names
_NEARLY = 0.75  # of the roots: one of four may differ
_MIN_ROOT_CHARACTERS = 4
_MAX_ENDING_CHARACTERS = 2  # of words in other letters than Latin ones, whose endings are not known
_MANY_PAIRS = 4  # of characters that a title shares with a query: then one may be missing
_ELIDED = re.compile(r"^[dlmnstcj]['’]")  # an article in French or Italian
# Articles and prepositions of German, French, Spanish, Italian, Portuguese and Dutch, which a query may leave out.
_ARTICLES = frozenset(
    "am auf aus das dem den der des die ein eine im in und vom von zu zum zur au aux de des du en et la le les un une "
    "del el las los por una y al da dei della di e gli il lo do dos em na no o os een het van".split()
)


def find_named(name: str, view: View, *, but: Collection[str] = ()) -> list[int]:
    """Find documents that have all words of a name in their title or file name, except some documents.

    The pieces of a word such as `1.2.3` are side by side there. A renamed file has its old and its new name.

    Returns:
        The row ids of their first chunks.
    """
    parts = [name_words(part) for part in searchable(name).split() if part not in FUNCTION_WORDS]
    wanted = list(chain(*parts))[:MAX_NAME_WORDS]
    least = MIN_NAME_CHARACTERS
    if is_east_asian(name):
        least = 1
    if len("".join(wanted)) < least:
        return []
    candidates = view.entries(view.named(wanted, _MAX_LOOKED_AT))
    names = {document_id: f"{document_id} {entry.title}" for document_id, entry in candidates.items()}
    names |= find_moved_named(view, wanted)
    first_chunks: list[str] = []
    for document_id, full_name in names.items():
        if document_id not in but and _has_parts(name_words(full_name), parts):
            first_chunks.append(f"{document_id}:0")
    row_ids = view.row_ids(first_chunks[:_MAX_NAMED])
    return list(row_ids.values())


def find_moved_named(view: View, wanted: Sequence[str]) -> dict[str, str]:
    """Return id, title and path of the documents that hold some words in these, and one of them in a moved path."""
    paths = {document_id: searchable(path) for document_id, path in find_moved(view).items()}
    candidates = [document_id for document_id, path in paths.items() if any(word in path for word in wanted)]
    names: dict[str, str] = {}
    for record in view.entries(candidates).values():
        name = f"{searchable(record.id)} {searchable(record.title)} {paths[record.id]}"
        if all(word in name for word in wanted):
            names[record.id] = name
    return names


def find_titled(query: str, view: View, *, but: Collection[str]) -> list[int]:
    """Find documents whose titles stand in a query or are nearly all of it, except some documents.

    A title counts from two roots on: of titles of one word, many are common words.

    Returns:
        The row ids of their first chunks, those with the longest titles first.
    """
    asked = _list_roots(query)
    candidates: set[str] = set()
    for pair in _list_pairs(asked):
        candidates.update(view.named(pair, _MAX_LOOKED_AT))
    shared_roots: dict[str, int] = {}
    for document_id, entry in view.entries(sorted(candidates.difference(but))).items():
        title = _list_roots(bare_title(entry.title))
        shared = _list_shared(title, asked)
        if len(shared) > 1 and _is_title_of(title, shared, asked):
            shared_roots[f"{document_id}:0"] = len(shared)
    best = sorted(shared_roots, key=lambda chunk_id: -shared_roots[chunk_id])
    row_ids = view.row_ids(best[:_MAX_NAMED])
    return list(row_ids.values())


def _list_roots(text: str) -> list[str]:
    """Return what the words of a text have in common with their other forms, each once, without common English words.

    Of a word in a script without spaces, it is each pair of neighbouring characters: where its parts begin is unknown.
    """
    roots: list[str] = []
    for word in list_words(text):
        if is_east_asian(word):
            roots += map("".join, pairwise(word))
        elif OTHER_LETTER.search(word):
            roots.append(word[: max(_MIN_ROOT_CHARACTERS, len(word) - _MAX_ENDING_CHARACTERS)])
        else:
            roots.append(stem(_ELIDED.sub("", word)))
    return list(dict.fromkeys(roots))


def _list_pairs(roots: Sequence[str]) -> list[tuple[str, str]]:
    """Return neighbouring roots that are looked for in all names, with the articles between them and without.

    Of pairs of characters, every second one is enough.
    """
    telling = [root for root in roots if root not in _ARTICLES]
    pairs: dict[tuple[str, str], None] = {}
    for neighbours in (telling, roots):
        for place, (first, second) in enumerate(pairwise(neighbours)):
            if place % 2 == 0 or not is_east_asian(first):
                pairs[first, second] = None
    return list(pairs)[:_MAX_PAIRS]


def _list_shared(title: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return the roots of a title that are asked for."""
    shared: list[str] = []
    for root in title:
        if any(_is_same(root, other) for other in asked):
            shared.append(root)
    return shared


def _is_same(root: str, other: str) -> bool:
    """Return whether two roots may be of one word; endings of other scripts are not known."""
    if root == other:
        return True
    if not OTHER_LETTER.search(root) or is_east_asian(root):
        return False
    return root.startswith(other) or other.startswith(root)


def _is_title_of(title: Sequence[str], shared: Sequence[str], asked: Sequence[str]) -> bool:
    """Return whether all telling roots of a title are asked for, or most of them and hardly any others."""
    missing = [root for root in title if root not in shared and root not in _ARTICLES]
    if not missing:
        return True
    if len(missing) == 1 and is_east_asian(missing[0]) and len(shared) >= _MANY_PAIRS:
        return True  # the pair may be of two words, with a particle between them in the query
    most = max(_count_telling(title), _count_telling(asked))
    return _count_telling(shared) >= _NEARLY * most


def _count_telling(roots: Sequence[str]) -> int:
    return sum(root not in _ARTICLES for root in roots)


def _has_parts(name: Sequence[str], parts: Iterable[Sequence[str]]) -> bool:
    """Return whether a name has the pieces of each part side by side."""
    for pieces in parts:
        # In scripts without spaces, words may be inside longer ones: the view has checked that they occur.
        if any(map(is_east_asian, pieces)):
            continue
        places = range(len(name) - len(pieces) + 1)
        if not any(name[place : place + len(pieces)] == pieces for place in places):
            return False
    return True
