r"""Untrusted text as people see it: on terminals, on pages, in warnings and in error messages.

Documents, file names, model answers and errors may contain characters that a terminal obeys: escape sequences that set
the clipboard or clear the screen, and controls that reorder or hide text. They are shown as Python's escapes (`\x1b`).
"""

from __future__ import annotations

import re

# All controls except newline and tab, lone surrogates, line separators, and characters that reorder text or are not
# part of any writing: embeddings, overrides and isolates, invisible operators, annotations, tags. Joiners, zero-width
# spaces and soft hyphens stay: Persian, Khmer and emoji need them, and they do not reorder anything.
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Escape every character that a terminal interprets, except newlines and tabs."""
    text = text.replace("\r\n", "\n")
    return OBEYED.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def visible_line(text: str) -> str:
    """Escape newlines and tabs, too: otherwise a file's name could forge a line of its own."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")
