"""Lone surrogates: half characters, which models write as escapes and which cannot be encoded."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, and with the character for each pair of surrogates."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
