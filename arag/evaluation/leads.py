"""The lead of an answer: its first sentence, which names the answer before the facts that lead to it."""

from __future__ import annotations

import re

from arag.ingest.sentences import split_sentences

_BRACKETS = re.compile(r"\[[^\[\]\n]*\]")  # citations
_EMPHASIS = re.compile(r"\*\*|__|`")


def plain_text(answer: str) -> str:
    """Return an answer without citations in brackets, and without Markdown's emphasis."""
    return _EMPHASIS.sub("", _BRACKETS.sub("", answer)).strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that have a letter or a digit, in order; each line is at least one."""
    found: list[str] = []
    for line in text.splitlines():
        for sentence in split_sentences(line):
            part = line[sentence.start : sentence.end].strip()
            if any(character.isalnum() for character in part):
                found.append(part)
    return found
