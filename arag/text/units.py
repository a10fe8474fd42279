"""Notes on the unit of a table."""

from __future__ import annotations

import re

# Above the labels of a table's rows: `(in millions)`, `In thousands of euros`.
_UNIT_NOTE = re.compile(
    r"\(.*\)|（.*）"
    r"|(?:(?:us )?(?:dollars?|euros?|pounds?|amounts?|figures?),? )?in (?:thousands?|millions?|billions?)\b.*"
    r"|in (?:tausend|tsd|mio|millionen|mrd|milliarden|teur|t€)\b.*"
    r"|en (?:milliers|millions|milliards|miles|millones)\b.*"
    r"|(?:单位|單位|単位)[:：].*",
    re.IGNORECASE,
)


def is_unit_note(name: str) -> bool:
    """Return whether the name of a column is a note on the unit of its table."""
    return _UNIT_NOTE.fullmatch(name) is not None
