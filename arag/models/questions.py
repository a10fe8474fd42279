"""The words of a question for the built-in model: what it asks for, without the words that only ask."""

from __future__ import annotations

import re

from arag.models.answering import find_asked_versions
from arag.text.languages import COMMON_WORDS, is_english, is_foreign
from arag.text.scripts import is_east_asian
from arag.text.words import content_words, find_literals, find_names, list_terms, stem

_MAX_KEYWORDS = 8
_MAX_UNSPACED_CHARACTERS = 8  # of a keyword in a script without spaces: longer ones are clauses
_MAX_ELIDED = 2  # characters: l'année, qu'une
_FIRST_WORD = re.compile(r"(?:^|[.:;!?…]\s)[^\w\s]*([^\W\d_]+)")  # of a sentence


def question_keywords(question: str) -> list[str]:
    """Return what to look up for a question: its names and quotations, or else its words; at most eight."""
    names = find_names(question if is_in_english(question) else _without_capitals(question))
    keywords = [*find_literals(question), *names] if names else list_asked(question)
    spaced = [word for word in keywords if len(word) <= _MAX_UNSPACED_CHARACTERS or not is_east_asian(word)]
    return spaced[:_MAX_KEYWORDS]


def _without_capitals(question: str) -> str:
    """Return a question in which common words that begin a sentence are small, so that they do not look like names."""
    return _FIRST_WORD.sub(
        lambda match: match[0].lower() if match[1].lower() in COMMON_WORDS else match[0],
        question,
    )


def list_asked(question: str) -> list[str]:
    """Return the words of a question, without common ones of its language."""
    words = list_terms(question)
    if is_in_english(question):
        return words
    return [word for word in words if not _is_common(word)]


def _is_common(word: str) -> bool:
    """Return whether a word is a common one of another language than English, or joins such ones: `qu'est-ce`."""
    if word in COMMON_WORDS:
        return True
    parts = re.split("['’-]", word)
    return len(parts) > 1 and all(part in COMMON_WORDS or len(part) <= _MAX_ELIDED for part in parts)


def list_stems(question: str) -> set[str]:
    """Return the content words of a question; of `bessel_y` and the like, no parts: these ask for something else."""
    asked = list_asked(question)
    literals = [word for word in asked if find_literals(word)]
    others = [word for word in asked if word not in literals]
    return content_words(" ".join(others)).union(map(stem, literals), find_asked_versions(question))


def is_in_english(question: str) -> bool:
    """Return whether a question may be English: it is short, so one common word of another language tells."""
    return is_english(question) and not is_foreign(question)
