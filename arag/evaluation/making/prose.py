"""Makes questions from sentences by rules, without a model: the year of an event, and how many documents name a name.

The rules read English sentences such as "The Vellin Light was built in 1783." whose subject has a name of two words or
more. If the corpus gives another year for the same subject and verb, or has several documents about namesakes of the
subject, there is no question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from arag.evaluation.making.drafts import Draft
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk
from arag.text.words import find_names

_NAME = r"[A-Z][\w'’-]*(?: (?:(?:of|the|de|van|von|and|&) )?[A-Z][\w'’-]*)+"
_DATED = re.compile(
    rf"(?P<subject>(?:The |the )?(?P<name>{_NAME})) was (?P<verb>[a-z]+(?:ed|en|uilt|orn|aid|old|ound|un|ent|eft|ost))"
    r"(?P<rest>(?: [^\s,;:.()]+){0,8}?) in (?P<year>1[0-9]{3}|20[0-9]{2})\."
)
_VERB = re.compile(r"was ([a-z]+)\b")
_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-9]{2})\b")
_MENTIONS = range(2, 21)  # documents: one is a look-up, and nobody counts a hundred
_MAX_CHECKED = 50  # chunks with the subject that are searched for another year


def ask_year(chunk: Chunk, index: Index, random: Random) -> Draft | None:
    """Return a question about the year of an event in a chunk; None if there is no sentence of the form."""
    sentences = [" ".join(text.split()) for text in chunk.embedded_texts()]
    random.shuffle(sentences)
    for sentence in sentences:
        match = _DATED.fullmatch(sentence)
        if match is None or len(index.find_documents(match["name"], limit=2)) > 1:
            continue
        if _find_years(match["name"], match["verb"], index) != {match["year"]}:
            continue
        subject = match["subject"].replace("The ", "the ", 1)
        text = f"In which year was {subject} {match['verb']}{match['rest']}?"
        return Draft("dates", text, {"answer": match["year"]}, (chunk.id,), (chunk.document_id,))
    return None


def _find_years(name: str, verb: str, index: Index) -> set[str]:
    """Return the years in sentences of the corpus that have a name and a verb."""
    years: set[str] = set()
    for hit in index.keyword_search([name], _MAX_CHECKED).hits:
        for sentence in hit.chunk.embedded_texts():
            if name in " ".join(sentence.split()) and verb in _VERB.findall(sentence):
                years.update(_YEAR.findall(sentence))
    return years


def ask_mentions(chunk: Chunk, index: Index, random: Random) -> Draft | None:
    """Return a question about how many documents name a name of a chunk; None if no name is in several documents."""
    names = list(_list_full_names(chunk))
    random.shuffle(names)
    for name in names:
        found = index.grep(rf"\b{re.escape(name)}\b", ignore_case=False)
        documents = tuple(dict.fromkeys(line.document_id for line in found.lines))
        # A title that is not in the text may count or not.
        if found.documents in _MENTIONS and found.titles.keys() <= set(documents):
            chunks = tuple(dict.fromkeys(line.chunk_id for line in found.lines))
            text = f"How many documents mention “{name}”?"
            return Draft("counting", text, {"number": found.documents}, chunks, documents)
    return None


def _list_full_names(chunk: Chunk) -> Iterator[str]:
    """Yield the names of two or three words in a chunk's text."""
    for name in find_names(chunk.text):
        words = name.split()
        if len(words) in {2, 3} and all(map(_is_part_of_name, words)):
            yield name


def _is_part_of_name(word: str) -> bool:
    """Return whether a word may be in a name: not `I`, before which any word may begin a sentence."""
    return len(word) > 1 and word[0].isupper() and word.isalpha()
