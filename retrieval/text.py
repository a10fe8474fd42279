"""How texts are normalised before they are compared."""

from __future__ import annotations

import re

# Chinese, Japanese and Korean characters, for a character class of a regular expression.
EAST_ASIAN = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)


def fold(text: str) -> str:
    """Return a text with each run of white space (line breaks, tabs, no-break spaces...) as one space, none around."""
    return " ".join(text.split())


def is_east_asian(text: str) -> bool:
    """Return whether a text has Chinese, Japanese or Korean characters."""
    return re.search(f"[{EAST_ASIAN}]", text) is not None
