"""Hyphens at the ends of lines of a PDF: what the document has elsewhere says whether they are the word's own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise

from arag.ingest.formats.joining import HYPHEN, OWN_HYPHEN
from arag.ingest.formats.typography import Line
from arag.text.normalise import CELL_BOUNDARY

_WORD = re.compile(r"\w+")
_COMPOUND = re.compile(r"(\w+)-(?=(\w+))")  # or two words of one
_DIVIDED_COMPOUND = re.compile(rf"(\w+){HYPHEN}\n(\w+)")
_DIVIDED = re.compile(rf"([^\W\d]\w+){HYPHEN}\n([A-ZÀ-ÖØ-Þ]\w*)")


def join_names(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of each page, with those as one that divide a name, such as `Mi-` and `LoG`, or capitals.

    The hyphen may also be the name's own. It is not if the document has the whole name, and never one with a hyphen.
    It may have a word in capitals in small letters.
    """
    text = "\n".join(line.text for line in chain.from_iterable(pages))
    words = {*_WORD.findall(text), *_WORD.findall(text.upper())}
    small = text.lower()
    names: set[str] = set()
    for start, end in _DIVIDED.findall(text):
        has_hyphen = f"{start}-{end}".lower() in small
        if start + end in words and not has_hyphen:
            names.add(start + end)
    return [_join_lines(page, names) for page in pages]


def _join_lines(page: Sequence[Line], names: Iterable[str]) -> list[Line]:
    joined = list(page[:1])
    for line, below in pairwise(page):
        texts = f"{line.text}\n{below.text}"
        divided = _DIVIDED.search(texts)
        is_divided = divided is not None and divided[1] + divided[2] in names
        if is_divided and CELL_BOUNDARY not in texts:
            text = joined[-1].text.removesuffix(HYPHEN) + below.text
            joined[-1] = joined[-1]._replace(text=text, bottom=below.bottom)
        else:
            joined.append(below)
    return joined


def mark_compounds(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of each page, with `OWN_HYPHEN` in words that the document has only with a hyphen elsewhere."""
    text = "\n".join(line.text for line in chain.from_iterable(pages)).lower()
    divided = set(_DIVIDED_COMPOUND.findall(text))
    compounds = divided.intersection(_COMPOUND.findall(text))
    words = set(_WORD.findall(text))
    own = {(start, end) for start, end in compounds if start + end not in words}
    return [_mark_lines(page, own) for page in pages]


def _mark_lines(page: Sequence[Line], compounds: Collection[tuple[str, str]]) -> list[Line]:
    marked = list(page)
    for number, (line, below) in enumerate(pairwise(page)):
        divided = _DIVIDED_COMPOUND.search(f"{line.text}\n{below.text}".lower())
        if divided and divided.groups() in compounds:
            text = line.text.removesuffix(HYPHEN) + OWN_HYPHEN
            marked[number] = line._replace(text=text)
    return marked
