"""A document as lines: its title, then each sentence, heading and row of a table, in the order of the text."""

from __future__ import annotations

from dataclasses import dataclass

from arag.retrieval.types import Chunk
from arag.text.normalise import collapse_whitespace, is_title


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a document, with each run of white space as one space."""

    chunk: Chunk
    position: int | None
    """Of its sentence in the chunk; None for a title that is not in the text."""
    text: str
    names_document: bool = False
    """Whether it is the document's title, from its text or not."""


def list_lines(chunk: Chunk) -> list[Line]:
    """Return the lines of a chunk.

    A document's first chunk begins with its title, as a Markdown heading, unless the text itself begins with it.
    """
    lines: list[Line] = []
    for position in range(len(chunk.sentences)):
        text = collapse_whitespace(chunk.sentence_text(position))
        if text:
            lines.append(Line(chunk, position, text))
    if chunk.ordinal > 0:
        return lines
    if lines and is_title(lines[0].text, chunk.title):
        first = lines[0]
        lines[0] = Line(chunk, first.position, first.text, names_document=True)
    elif title := collapse_whitespace(chunk.title):
        lines.insert(0, Line(chunk, None, f"# {title}", names_document=True))
    return lines
