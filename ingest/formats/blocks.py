"""The text of a document that comes as headings, paragraphs, list items and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arag.ingest.documents import Limits
from arag.ingest.formats.content import FormatError, clean_text, folded
from arag.ingest.formats.tables import limited, table_text

_MAX_LEVEL = 6  # of a heading, as in Markdown and HTML


class Blocks:
    """Puts a text together, block by block, with headings and lists as in Markdown.

    Args:
        limits: `max_characters` of text may be added. Merged and repeated cells can make much of a small file.

    Attributes:
        title: The first heading of level 1, or an empty string.
    """

    def __init__(self, limits: Limits) -> None:
        self.title = ""
        self._limits = limits
        self._left = limits.max_characters
        self._parts: list[str] = []
        self._in_list = False

    def heading(self, text: str, level: int) -> None:
        """Add a heading; level 1 is the highest."""
        text = folded(text)
        if text:
            self.title = self.title or (text if level == 1 else "")
            self._add(f"{'#' * min(level, _MAX_LEVEL)} {text}")

    def paragraph(self, text: str) -> None:
        """Add a paragraph, whose line breaks are kept."""
        self._add("\n".join(filter(None, map(folded, text.split("\n")))))

    def item(self, text: str) -> None:
        """Add an item of a list."""
        text = folded(text)
        if text:
            self._add(f"- {text}", in_list=True)

    def table(self, rows: Iterable[Sequence[str]], *, header: bool = False) -> None:
        """Add a table; see `table_text`."""
        self._add(table_text(limited(rows, self._limits), header=header))

    @property
    def text(self) -> str:
        """The text so far."""
        return clean_text("".join(self._parts))

    def _add(self, block: str, *, in_list: bool = False) -> None:
        if not block:
            return
        self._left -= len(block)
        if self._left < 0:
            raise FormatError(self._limits.exceeded("max_characters"))
        if self._parts:
            self._parts.append("\n" if in_list and self._in_list else "\n\n")
        self._parts.append(block)
        self._in_list = in_list
