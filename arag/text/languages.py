"""Whether a text is English, as far as its letters and most common words show it; common words of other languages."""

from __future__ import annotations

import re

from arag.text.scripts import is_latin

SAMPLE_CHARACTERS = 500  # the start of a document, which is enough to see its language

_WORD = re.compile(r"[^\W\d_]+")
_MIN_DIFFERENT = 3  # words of other languages: fewer may be of names or addresses
_MIN_SHARE = 0.1  # of all words

_ENGLISH = frozenset(
    "a an and are as at be been but by can do for from had has have he her his i if in is it its me more no not of on "
    "one or our she so some than that the their there they this to was we were what when which who will with you your "
    "die on over under where how".split()
)
# The most common words of languages in Latin letters, without those that English has, too.
_OTHERS = frozenset(
    "aber auf aus bei bis das dass dem den der des durch ein eine einem einen einer eines er es für hat ich ihr im ist "
    "kann mit nach nicht noch nur oder sich sie sind um und uns vom von vor war werden wie wir wird wurde zu zum zur "
    "au aux avec ce cette dans de des du elle est et il ils la le les leur mais ne nous ont ou où par pas pour que qui "
    "sa se ses son sont sur un une vous été être "
    "al como cuando del el ella en entre era esta este fue ha hay las lo los muy más o para pero por porque se ser "
    "si sin sobre su sus también una y "
    "che ci da dal dei del della delle di e era gli ha i il le ma nel nella non più questo sono un una è "
    "ao aos as da das do dos e em foi mais mas na nas não nos o os ou pela pelo por quando são também um uma "
    "aan bij dan dat de deze die door een er het hij hun ik in is maar met naar niet om ook op te tot uit van voor wat "
    "werd worden zijn "
    "att av de den det en ett för från har inte med men och om på som till var är "
    "af at blev de den der det efter en et fra har hvor ikke kan med og om på som til ved være "
    "ale był była być co czy dla do i jak jest lub na nie od po przez są się to w z za że "
    "a az de egy és hogy is meg nem van volt "
    "bir bu da daha de gibi için ile olan olarak ve "
    "a až být je jeho které který na nebo od s se si v ve z za že "
    "cu care din este fi în la mai nu o pe și sunt un "
    "ei että ja joka mutta niin oli on ovat se sen tai".split()
)
_QUESTION_WORDS = frozenset(
    "mehr wann warum was welche welchem welchen welcher welches wem wen wer wessen wo wohin dürfen darf gibt über "
    "combien comment pourquoi quand quel quelle quelles quels à "
    "cuál cuáles cuándo cuánta cuánto cómo dónde qué quién quiénes "
    "chi dove perché quale quali quando quanto qual quais quanto quem onde "
    "hoe waar waarom wanneer welke wie".split()
)
_FOREIGN = (_OTHERS | _QUESTION_WORDS) - _ENGLISH
_ONLY_ENGLISH = _ENGLISH - _OTHERS - _QUESTION_WORDS  # "was" begins many German questions
_OTHER_LETTERS = frozenset(
    "в во и из за к как какая какие какое какой когда который кто куда ли на не но о об от где для до что это по под "
    "почему при с сколько со у такое чем чего чему был была было были "
    "أين أي أو إلى أن ألا التي الذي عن على عند في كان كانت كم كيف لا لم لماذا ما ماذا متى مع من هذا هذه هل هو هي "
    "و".split()
)
COMMON_WORDS = _FOREIGN | _OTHER_LETTERS
"""Words in lower case that nearly every text of some other language than English has; a few are English words, too."""
SHARED_WORDS = _ENGLISH & _OTHERS
"""Common words of other languages that are English words, too, such as the German article "die"."""


def has_english(text: str) -> bool:
    """Return whether a text has a common English word that no other language has."""
    return any(word in _ONLY_ENGLISH for word in _WORD.findall(text.lower()))


def is_foreign(text: str) -> bool:
    """Return whether a text has a common word of another language, and none that only English has."""
    words = _WORD.findall(text.lower())
    return any(word in _FOREIGN for word in words) and not has_english(text)


def is_english(text: str) -> bool:
    """Return whether a text may be English: most letters are Latin, and no other language's common words prevail."""
    if not is_latin(text):
        return False
    words = _WORD.findall(text.lower())
    foreign = [word for word in words if word in _FOREIGN]
    if len(set(foreign)) < _MIN_DIFFERENT or len(foreign) < _MIN_SHARE * len(words):
        return True
    # An English text about a foreign name or title has some of its words.
    return len(foreign) <= 2 * sum(word in _ENGLISH for word in words)
