"""What is read out for a picture, to people who cannot see it."""

from __future__ import annotations

import re

from arag.text.normalise import collapse_whitespace

PICTURE = "Picture: "  # begins what is read out for one, in documents of office programs
# The word for a picture, or the name of its file.
SAYS_NOTHING = re.compile(
    r"(?i)|image|img|photo|picture|logo|icon|spacer|bullet|arrow|avatar|banner|thumbnail|graphic"
    r"|.+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)|https?://\S+"
)
# A program says below its description that it wrote it.
_MADE_BY_PROGRAM = re.compile(r"\n[^\n]*(?:\b[AK]I\b|\bIA\b|automat|生成)[^\n]*$", re.IGNORECASE)


def describe(text: str) -> str:
    """Return what an office program reads out for a picture; nothing if that says no more than that there is one."""
    description = collapse_whitespace(_MADE_BY_PROGRAM.sub("", text))
    return "" if SAYS_NOTHING.fullmatch(description) else f"{PICTURE}{description}"


def is_text(block: str) -> bool:
    """Return whether a block of a document says something, and not only what is read out for a picture."""
    return block != "" and not block.startswith(PICTURE)
