"""Words and names of a text, by simple rules that need no model."""

from __future__ import annotations

import re

_STOP_WORDS = frozenset(
    (
        "a about after all also an and any are as at be because been before being between both but by can could did "
        "do does doing during each for from had has have having he her here hers him his how i if in into is it its "
        "just many me more most much my no nor not of off on once one only or other our out over own same she should "
        "so some such than that the their them then there these they this those through to too under until up very "
        "was we were what when where which while who whom whose why will with would you your name year "
        "located called known"
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# Without spaces between words (Chinese, katakana) or with endings joined to them (Korean): characters count in pairs.
_UNSPACED = re.compile(r"[\u30a1-\u30fa\u30fc\u3400-\u9fff\uac00-\ud7a3]+")
_BETWEEN_WORDS = re.compile(  # particles and question words that may stand between two words of these; all hiragana
    "什么时候|为什么|什么|怎么样|怎么|怎样|如何|多少|哪[些里个年位]?|哪|谁|几年|吗|呢|的|了|是|在|和|与|被|把|什麼時候|為什麼|什麼|誰|何|嗎"
    "|[\u3041-\u309f]+"
)
_NAME = re.compile(
    r"(?:[A-Z][\w'’.-]*\w|[A-Z])(?:\s+(?:(?:of|the|de|la|van|von|du|al|and|for|in|on)\s+){0,2}(?:[A-Z][\w'’.-]*\w|[A-Z]\.?|\d+))*"
)
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_NUMBER = re.compile(r"\b\d{3,}\b")
_POSSESSIVE = re.compile(r"['’]s$")


def find_names(text: str) -> list[str]:
    """Return runs of capitalised words, quotations and long numbers, the first word of a sentence only if in a run."""
    names = [quoted.strip(" ,.") for quoted in _QUOTED.findall(text)]
    for match in _NAME.finditer(text):
        words = match[0].split()
        while words and words[0].lower().strip(".,") in _STOP_WORDS:
            words = words[1:]
        name = _POSSESSIVE.sub("", " ".join(words)).strip(" .,")
        if len(name) > 2 and (match.start() or len(words) > 1):
            names.append(name)
    return [name for name in dict.fromkeys([*names, *_NUMBER.findall(text)]) if name]


def list_words(text: str) -> list[str]:
    """Return the words of a text in lower case, each once, without stop words."""
    runs = [_POSSESSIVE.sub("", run.lower()) for run in _WORD.findall(text)]
    words = [word for run in runs for word in (_BETWEEN_WORDS.split(run) if _UNSPACED.search(run) else [run])]
    return [word for word in dict.fromkeys(words) if word not in _STOP_WORDS and len(word) > 1]


def content_words(text: str) -> set[str]:
    """Return the stems of a text's words, and the pairs of characters of words in scripts without spaces."""
    words = list_words(text)
    runs = [run for word in words for run in _UNSPACED.findall(word)]
    return {stem(word) for word in words} | {run[i : i + 2] for run in runs for i in range(len(run) - 1)}


def stem(word: str) -> str:
    """Strip common English endings, so that "wrecked" matches "wreck" and "licensed" matches "license"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word
