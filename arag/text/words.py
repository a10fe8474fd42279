"""Words and names of a text, by simple rules that need no model."""

from __future__ import annotations

import re
from itertools import pairwise

from arag.text.scripts import HAN, HANGUL, HIRAGANA, KATAKANA

_STOP_WORDS = frozenset(
    (
        "a about after all also an and any are as at be because been before being between both but by can could did "
        "do does doing during each for from had has have having he her here hers him his how i if in into is it its "
        "just many me more most much my no nor not of off often on once one only or other our out over own same she "
        "should so some such than that the their them then there these they this those through to too under until up "
        "very was we were what when where which while who whom whose why will with would you your name year "
        "located called known"
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# Words without spaces between them (Chinese, katakana) or with particles joined to them (Korean): pairs of characters
# are compared.
_COMPARED_IN_PAIRS = re.compile(f"[{KATAKANA}{HAN}{HANGUL}]+")
# Particles and question words between such words; all of hiragana.
_BETWEEN_WORDS = re.compile(
    "什么时候|为什么|什么|怎么样|怎么|怎样|如何|多少|哪[些里个年位]?|哪|谁|几年|吗|呢|的|了|是|在|和|与|被|把|什麼時候|為什麼|什麼|誰|何|嗎"
    f"|[{HIRAGANA}]+"
)
_CAPITALISED = r"\b[a-z]*[A-Z][\w'’.-]*\w"
_INSIDE_NAME = r"(?:(?:of|the|de|la|van|von|du|al|and|for|in|on)\s+){0,2}"
_NAME = re.compile(rf"(?:{_CAPITALISED}|\b[A-Z])(?:\s+{_INSIDE_NAME}(?:{_CAPITALISED}|[A-Z]\.?|\d+(?:\.\d+)*))*")
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_LONG_NUMBER = re.compile(r"\b\d{3,}\b")  # such as a year
_STEM = re.compile("[aeiouy][^aeiouy]|[aeiouy]{2}|.{4}")  # in what is left of a word without its ending
_POSSESSIVE = re.compile(r"['’]s$")
# An option, a path, a hidden file, a directive, a name of a language; or letters and digits that signs join.
_LITERAL = re.compile(
    r"(?<![\w./:#+-])(?:--?[A-Za-z][\w-]*|(?:/[\w.+-]*\w)+|\.[A-Za-z]\w+|#[A-Za-z]\w+|[A-Za-z](?:\+\+|#)(?!\w)"
    r"|[^\W_]\w*(?:(?:::|[.-])[^\W\d_]\w+)*)"
)
_JOINED_LITERAL = re.compile(r"^\W|\W$|[^\W_]_+[^\W_]|::|\w\w\.\w\w")


def find_literals(text: str) -> list[str]:
    """Return what stands in a text for itself: `--force`, `/etc/fstab`, `net.listen`, `bessel_y`, `std::string`."""
    return [literal for literal in _LITERAL.findall(text) if _JOINED_LITERAL.search(literal)]


def list_terms(text: str) -> list[str]:
    """Return what stands in a text for itself, and its other words without stop words, in lower case."""
    literals = [literal.lower() for literal in find_literals(text)]
    words = _LITERAL.sub(lambda match: " " if _JOINED_LITERAL.search(match[0]) else match[0], text)
    return [*dict.fromkeys(literals), *list_words(words)]


def find_names(text: str) -> list[str]:
    """Return runs of capitalised words, quotations and long numbers, the first word of a sentence only if in a run."""
    names = [quoted.strip(" ,.") for quoted in _QUOTED.findall(text)]
    for match in _NAME.finditer(text):
        words = match[0].split()
        while words and words[0].lower().strip(".,") in _STOP_WORDS:
            words = words[1:]
        name = _POSSESSIVE.sub("", " ".join(words)).strip(" .,")
        is_first_word = match.start() == 0 and len(words) == 1
        if len(name) > 2 and not is_first_word:
            names.append(name)
    names += _LONG_NUMBER.findall(text)
    return [name for name in dict.fromkeys(names) if name]


def list_words(text: str) -> list[str]:
    """Return the words of a text in lower case, each once, without stop words."""
    words: list[str] = []
    for match in _WORD.findall(text):
        word = _POSSESSIVE.sub("", match.lower())
        if _COMPARED_IN_PAIRS.search(word):
            words += _BETWEEN_WORDS.split(word)
        else:
            words.append(word)
    return [word for word in dict.fromkeys(words) if len(word) > 1 and word not in _STOP_WORDS]


def content_words(text: str) -> set[str]:
    """Return the stems of a text's words, what stands for itself, and the pairs of characters of unspaced words."""
    found = {stem(literal.lower()) for literal in find_literals(text)}
    for word in list_words(text):
        found.add(stem(word))
        for run in _COMPARED_IN_PAIRS.findall(word):
            found.update(first + second for first, second in pairwise(run))
    return found


def stem(word: str) -> str:
    """Strip common English endings, so that "saved" matches "save" and "married" matches "marry"."""
    for suffix in ("ing", "ed", "es", "s", "e"):
        without = word.removesuffix(suffix)
        is_ending = without != word and not without.endswith(suffix[0])  # unlike "speed" and "process"
        if is_ending and _STEM.search(without):
            is_of_y = suffix in ("ed", "es") and without.endswith("i")
            return f"{without[:-1]}y" if is_of_y else without
    return word
