"""Marks the older mails below an answer, so that their words are not mistaken for the sender's."""

from __future__ import annotations

import re

from arag.text.mail import FIELDS, WROTE
from arag.text.normalise import collapse_whitespace

# An older mail begins with a rule and fields, with the fields of mail programs, or with a line that names its writer.
# Lines that are quoted with ">" must go on to the end: else the answer stands among them.
_OLDER = re.compile(
    rf"^(?P<rule>[-_]{{3}}.*\n+)?(?P<fields>(?<!## ){FIELDS})"
    r"|^(?P<other_rule>[-_]{3}.*\n+)(?=\S+: .*\n\S+: )"
    r"|^(?P<quoted>(?:(?<=\n\n)\S.*\n)?[^\s>].*)[:：]\s*\n(?=(?:>.*(?:\n+|\Z))+\Z)"
    rf"|^(?P<writer>{WROTE})[ \t]*\n(?=\s*[^\s>])",
    re.MULTILINE,
)


def mark_older(text: str) -> str:
    """Return the text of a mail with a heading before each older mail in it."""
    return _OLDER.sub(_with_heading, text)


def _with_heading(start: re.Match[str]) -> str:
    writer = start["quoted"] or start["writer"]
    if writer:
        return f"## {collapse_whitespace(writer).rstrip(' :：')}\n\n"
    if start["fields"]:  # the first of them is the heading
        return f"{start['rule'] or ''}## {start['fields']}"
    return f"{start[0]}## "
