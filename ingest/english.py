"""Whether texts are in English: the default embedder understands no other language."""

from __future__ import annotations

import re
from collections import Counter

_MAX_DOCUMENTS = 500  # looked at
_SAMPLE = 2_000  # characters from the middle of each
_MIN_WORDS = 10
_MIN_DISTINCT = 5  # different function words of a language: names and code have some of them, too
_MIN_SHARE = 0.06  # of all words

_WORD = re.compile(r"[^\W\d_]+")
_LAST_LATIN = "\u024f"
_VIETNAMESE = re.compile("[\u1e00-\u1eff]")
_WITHOUT_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
_CHARACTERS_PER_WORD = 2  # in these scripts

_ENGLISH = frozenset(
    "the of and to in is that was for with as on by at from it his are be this which or were has have not but had its "
    "he she they their an you can we if will".split()
)
# Frequent words of languages in the Latin alphabet, without those that are frequent in English.
_OTHERS = [
    frozenset(words.split()) - _ENGLISH
    for words in (
        "der die und das den von ist nicht mit dem ein eine auf für sich des wird auch als im zu",  # German
        "le la les des et est une dans pour que qui du au sur par avec sont pas ce en il",  # French
        "el la los las de que en es una por con para del se su como más fue al lo",  # Spanish
        "il di che la è per una con del della non sono le gli dei nel da un si",  # Italian
        "de que da em um uma para com não os dos na por se ao foi mais como",  # Portuguese
        "de het een van en dat niet voor met zijn op aan te ook door die worden er",  # Dutch
        "och att det som en på är av för med den till inte har ett om",  # Swedish
        "og det er af av på til som en den ikke med et har de",  # Danish and Norwegian
        "na się że nie do jest od po jak za oraz przez dla przy są",  # Polish
        "se na je že do ve jako by pro která které jsou byl nebo po",  # Czech
        "ve bir bu için ile da de olarak olan daha çok gibi ne kadar",  # Turkish
        "ja ei että se oli hän joka mutta myös ovat kun sen jossa niin",  # Finnish
        "az és hogy nem egy is volt meg ez mint de csak már vagy el",  # Hungarian
        "și de în la că nu cu pe este din pentru sunt care mai au",  # Romanian
        "và của là có trong được các một không cho với này những người",  # Vietnamese
        "yang dan di dari untuk dengan pada ini itu dalam tidak adalah oleh",  # Indonesian and Malay
    )
]


class LanguageSample:
    """Counts the words of some texts.

    Example:
        >>> sample = LanguageSample()
        >>> sample.add("Der Leuchtturm wurde 1783 gebaut und ist mit dem Hafen auf der Insel verbunden.")
        >>> sample.is_foreign
        True
    """

    def __init__(self) -> None:
        self._documents = 0
        self._latin: Counter[str] = Counter()
        self._other_scripts = 0.0  # words

    def add(self, text: str) -> None:
        """Count the words in the middle of a text, unless enough texts were counted."""
        if self._documents == _MAX_DOCUMENTS:
            return
        self._documents += 1
        start = max(0, (len(text) - _SAMPLE) // 2)
        for word in _WORD.findall(text[start : start + _SAMPLE].lower()):
            if unspaced := _WITHOUT_SPACES.findall(word):
                self._other_scripts += sum(map(len, unspaced)) / _CHARACTERS_PER_WORD
            elif word[-1] <= _LAST_LATIN or _VIETNAMESE.search(word):
                self._latin[word] += 1
            elif len(word) > 1:  # not a symbol in a formula
                self._other_scripts += 1

    @property
    def is_foreign(self) -> bool:
        """Whether most words are certainly of other languages than English."""
        latin = self._latin.total()
        english = sum(self._latin[word] for word in _ENGLISH)
        other = 0
        for words in _OTHERS:
            found = [count for word in words if (count := self._latin[word])]
            if len(found) >= _MIN_DISTINCT and sum(found) >= _MIN_SHARE * latin:
                other = max(other, sum(found))
        foreign = self._other_scripts + (latin * other / (english + other) if other else 0)
        total = latin + self._other_scripts
        return total >= _MIN_WORDS and foreign > total / 2
