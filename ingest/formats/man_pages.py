"""The running head and foot of a manual page that was written as text."""

from __future__ import annotations

import re

_HEAD = re.compile(r"\s*(\S[^\n(]{0,80}\(\d\w{0,8}\))[ \t]+(?:\S[^\n]*[ \t])?\1[ \t]*\n")


def split_head(text: str) -> tuple[str, str]:
    """Return the title of a manual page, such as `last(1)`, and its text without head and foot; no title for others."""
    head = _HEAD.match(text)
    if head is None:
        return "", text
    name = head[1]
    body = text[head.end() - 1 :].rstrip()  # with an empty line above the first section
    above, _, last = body.rpartition("\n")
    is_foot = last.endswith(name)
    if is_foot:
        body = above.rstrip()
    title = name.lower() if name[: name.rfind("(")].isupper() else name
    return title, f"{body}\n"
