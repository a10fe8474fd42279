"""How texts are normalised before they are compared."""

from __future__ import annotations


def fold(text: str) -> str:
    """Return a text with each run of white space (line breaks, tabs, no-break spaces...) as one space, none around."""
    return " ".join(text.split())
