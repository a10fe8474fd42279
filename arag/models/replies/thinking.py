"""Separates thinking that a model writes into its reply from what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arag.models.replies.forms import ANSWER_CLOSINGS, ANSWER_OPENINGS, THINKING

_FLAGS = re.IGNORECASE | re.DOTALL
_QUOTES = "`\"'“‘"
_ANY_OPENING = re.compile("|".join(f"(?:{form.opening})" for form in THINKING), _FLAGS)
_ANY_DISTINCT_CLOSING = re.compile("|".join(f"(?:{form.closing})" for form in THINKING if form.is_distinct), _FLAGS)
_MENTIONED = re.compile(r"[ \t]\S+[ \t]\w\Z")
_FORMS = [(re.compile(form.opening, _FLAGS), re.compile(form.closing, _FLAGS)) for form in THINKING]
_ANSWER_OPENING = re.compile(rf"\A\s*(?:{'|'.join(ANSWER_OPENINGS)})\s*", re.IGNORECASE)
_ANSWER_CLOSING = re.compile(rf"\s*(?:{'|'.join(ANSWER_CLOSINGS)})\s*\Z", re.IGNORECASE)


@dataclass
class Separated:
    """A text without its thinking, and the thinking."""

    text: str
    thinking: str = ""
    is_open: bool = False
    """Whether the reply ended while the model was thinking."""
    is_unopened: bool = False
    """Whether thinking ended that had not begun, as some chat templates open it in the prompt."""


def separate_thinking(text: str) -> Separated:
    """Separate the thinking in a text, for tags with and without an opening or a closing. Quoted tags stay."""
    separated = Separated("")
    said: list[str] = []
    thoughts: list[str] = []
    position = 0
    while not separated.is_open:
        opening = _find(_ANY_OPENING, text, position)
        stray = _find_stray_closing(text, position)
        if stray is not None and (opening is None or stray.start() < opening.start()):
            thoughts += [*said, text[position : stray.start()]]
            said = []
            position = stray.end()
            separated.is_unopened = True
            continue
        if opening is None:
            break
        closing = _find_closing(text, opening)
        if closing is not None:
            said.append(text[position : opening.start()])
            thoughts.append(text[opening.end() : closing.start()])
            position = closing.end()
        elif _begins_line(text, opening.start()):
            said.append(text[position : opening.start()])
            thoughts.append(text[opening.end() :])
            position = len(text)
            separated.is_open = True
        else:
            break  # the text mentions a tag
    said.append(text[position:])
    rest = "".join(said)
    separated.text = unwrap_answer(rest.strip() if thoughts else rest)
    separated.thinking = _join(thoughts)
    return separated


def _join(thoughts: list[str]) -> str:
    stripped = [thought.strip() for thought in thoughts]
    return "\n\n".join(filter(None, stripped))


def unwrap_answer(text: str) -> str:
    """Drop the tags and tokens that some models put around their answers."""
    unwrapped = text
    opening = _ANSWER_OPENING.match(unwrapped)
    if opening:
        unwrapped = unwrapped[opening.end() :]
    closing = _ANSWER_CLOSING.search(unwrapped)
    while closing:
        unwrapped = unwrapped[: closing.start()]
        closing = _ANSWER_CLOSING.search(unwrapped)
    return unwrapped


def is_quoted(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is in quotes or in code: the text talks about it."""
    if start and text[start - 1] in _QUOTES and text[start - 2 : start - 1] not in {"=", ":"}:
        return True
    if text[end : end + 1] == "`":
        return True
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line.count("`") % 2 == 1 and "```" not in line


def _begins_line(text: str, start: int) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return not line.strip()


def _find(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str] | None:
    """Return the first match that is not quoted."""
    for match in pattern.finditer(text, position):
        if not is_quoted(text, match.start(), match.end()):
            return match
    return None


def _find_stray_closing(text: str, position: int) -> re.Match[str] | None:
    """Return the next closing; None if the text goes on around it, as it mentions the tag."""
    stray = _find(_ANY_DISTINCT_CLOSING, text, position)
    if stray is not None and _MENTIONED.search(text[: stray.end() + 2], stray.start() - 1):
        return None
    return stray


def _find_closing(text: str, opening: re.Match[str]) -> re.Match[str] | None:
    """Return the closing of an opening: its own, else any other, as models mix them up."""
    for opens, closes in _FORMS:
        if opens.fullmatch(opening[0]):
            own = closes.search(text, opening.end())
            if own:
                return own
    return _find(_ANY_DISTINCT_CLOSING, text, opening.end())
