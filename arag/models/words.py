"""Words, names and sentences of a text, by simple rules that need no model."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_KEPT_STOP = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|Capt|Gen|Col|Lt|Sgt|Rev|Gov|Sen|Rep|No|vs|Mt|[A-Z])\.(?= )")
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?؟।])|(?<=[.!?؟][\"”’)»]))\s+(?=[\"“«(¿¡]*[A-Z0-9À-ÖØ-ÞΆ-ΫА-ЯЁ\u0530-\uffff])"
    r"|(?<=[。！？])(?![”’」』）])\s*|(?<=[。！？][”’」』）])(?!と|って)\s*| … |^… |\s+(?=#{2,6} )"
)


def cut_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a line start and end."""
    start = 0
    for border in _SENTENCE_END.finditer(_KEPT_STOP.sub("\\1\u2024", text)):  # of the same length
        yield start, border.start()
        start = border.end()
    yield start, len(text)


def find_names(text: str) -> list[str]:
    """Return runs of capitalised words, quotations and long numbers, the first word of a sentence only if in a run."""
    names: dict[str, None] = {
        quoted: None for match in _QUOTED.finditer(text) if (quoted := match.group(1).strip(" ,."))
    }
    for match in _NAME.finditer(text):
        words = match.group(0).split()
        while words and words[0].lower().strip(".,") in _STOP_WORDS:
            words = words[1:]
        name = " ".join(words).removesuffix("'s").removesuffix("’s").strip(" .,")
        if len(name) > 2 and not (match.start() == 0 and len(words) == 1):
            names[name] = None
    names |= {match.group(0): None for match in _NUMBER.finditer(text)}
    return list(names)


def list_words(text: str) -> list[str]:
    """Return the words of a text in lower case, each once, without stop words."""
    runs = (m.group(0).lower().removesuffix("'s").removesuffix("’s") for m in _WORD.finditer(text))
    words = (word for run in runs for word in (_BETWEEN_WORDS.split(run) if _UNSPACED.search(run) else [run]))
    return [w for w in dict.fromkeys(words) if w not in _STOP_WORDS and len(w) > 1]


def content_words(text: str) -> set[str]:
    """Return the stems of a text's words, and the pairs of characters of words in scripts without spaces."""
    words = list_words(text)
    runs = (run for word in words for run in _UNSPACED.findall(word))
    return {stem(word) for word in words} | {run[i : i + 2] for run in runs for i in range(len(run) - 1)}


def stem(word: str) -> str:
    """Strip common English endings, so that "wrecked" matches "wreck" and "licensed" matches "license"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word
