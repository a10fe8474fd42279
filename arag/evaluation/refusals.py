"""Decides whether an answer says that the corpus does not hold the fact, without a model.

An answer is a refusal if its first sentence has a phrase that says so, in one of several languages. A remark behind the
answer ("1881. The documents do not say who lit it.") is therefore no refusal. Limits: an answer with a fact and a
refusal in its first sentence counts as a refusal, and so does one whose fact is a missing entry ("Her name is not
recorded in the register of 1880"); refusals in other words, or behind an introduction, are not found. A judge reads
answers to absent questions strictly.
"""

from __future__ import annotations

import re
from importlib.resources import files

from arag.evaluation.leads import plain_text, sentences

_SOURCE = (
    r"(?:corpus|documents?|texts?|passages?|sources?|files?|index|collections?|archives?|evidence|records?|materials?|"
    r"articles?|pages?|results?|excerpts?|chunks?)"
)
_TOLD = (
    r"(?:stated?|says?|said|mention(?:ed|s)?|given?|gives?|record(?:ed|s)?|settled?|settles?|known|(?:specify|specified|specifies)|"
    r"found|find|available|documented|names?|named|disclosed?|discloses?|provided?|provides?|covered?|covers?|"
    r"determined?|identif(?:y|ied|ies)|listed|lists?|shown?|shows?|contain(?:ed|s)?|hold|holds|held|tells?|told|"
    r"answer(?:ed|s)?|indicate[ds]?|include[ds]?|report(?:ed|s)?|supported?|supports?|establish(?:ed|es)?)"
)


def _read_phrases() -> re.Pattern[str]:
    """Return one pattern for the phrases of all languages."""
    text = files("arag.evaluation").joinpath("refusals.txt").read_text(encoding="utf-8")
    phrases: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            phrases.append(line.replace("SOURCE", _SOURCE).replace("TOLD", _TOLD))
    return re.compile("|".join(phrases))


_REFUSAL = _read_phrases()


def is_refusal(answer: str) -> bool:
    """Return whether an answer says in its first sentence that the corpus does not hold the fact."""
    lead = next(iter(sentences(plain_text(answer))), "")
    return _REFUSAL.search(lead.casefold().replace("’", "'")) is not None
