"""Texts that a model wrote, so that they can be stored and sent."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates: models write them as escapes, and they cannot be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
