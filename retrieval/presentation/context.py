"""The sentences around a match that make it understandable."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from arag.retrieval.presentation.code_lines import code_lines
from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.presentation.table_rows import find_header, is_row
from arag.retrieval.types import Chunk
from arag.text.normalise import CELL_BOUNDARY, without_title

MAX_SHORT_CHARACTERS = 700  # a document of up to this length may be shown whole

_MAX_MISSING_CHARACTERS = 100  # of a short document: if no more is missing, it is shown whole
# A sentence that begins like this refers to something named before it.
_WITHOUT_SUBJECT = re.compile(
    r"[\"'“‘«(\[\s]*(?:(?:He|She|It|They|His|Her|Hers|Its|Their|Him|Them|This|These|Those|That|Such|Both|"
    r"Neither|Here|There|The (?:former|latter|same|other|two))\b"
    r"|他|她|它|其|这|那|该|此)"
)
# A sentence that begins with what its paragraph is about: `Slink (March 1999): The second release.`
_LABELLED = re.compile(r"[^\W_a-z](?:(?![.!?。！？] ).){1,60}?(?:: |：)\S")
# For people, also a sentence that says what follows from the one before it.
_FOLLOWS = re.compile(
    r"In (?:this|that|such a) case\b|In diesem Fall\b|(?:Dans ce|En este|In questo) cas[oi]?\b|В этом случае"
)
_LEAD_IN = re.compile(r"[:：]\W*$")  # to a list or a command: `Use this command:`
_END = re.compile(r"[.!?。！？:：]\W*$")  # of a sentence; a name has none
_ITEM = re.compile(r"[-*+•] |\d{1,3}[.)] ")
_MAX_LABELLED_CHARACTERS = 200  # of a sentence with a label: a longer one costs too much
_MAX_PARAGRAPH_SENTENCES = 12  # before a match, among which the label is looked for


@dataclass(frozen=True, slots=True)
class _Reach:
    """How many sentences before and after a match are shown."""

    before: int
    after: int


_WINDOW = _Reach(before=1, after=2)  # in a part of a long document
_AFTER_LEAD_IN = 3
_FIRST_ROWS = 3
_MAX_CODE_CHARACTERS = 300  # that are added to code of which a part is shown
_MAX_NAME_CHARACTERS = 80  # of a line that names what is below it
_MAX_NEXT_CHARACTERS = 200  # of the sentence after the best match: a longer one costs too much
_MAX_GAP_CHARACTERS = 160  # that are left out between two sentences: for people, no more are too few to leave out


def expand(
    chunk: Chunk,
    anchors: Collection[int],
    *,
    is_subject: bool = False,
    window: bool = False,
) -> set[int]:
    """Add to sentences, given by position, those that make them understandable.

    A short document is shown whole if it is the subject, or if little is missing. A row of a table gets its header.
    Other sentences get the one before if it names the subject, the first of their paragraph if it begins with a label,
    and the one after if it continues the topic or follows a heading. A sentence that ends in a colon gets three after
    it. With `window`, in a part of a long document, others get one before and two after.
    """
    if _is_shown_whole(chunk, anchors, is_subject=is_subject):
        return set(range(len(chunk.sentences)))
    shown = set(anchors)
    for anchor in anchors:
        if is_row(sentence_line(chunk, anchor)):
            shown.add(find_header(chunk, anchor))
            continue
        reach = _find_reach(chunk, anchor, window=window and not chunk.whole)
        first = max(0, anchor - reach.before)
        last = min(anchor + reach.after, len(chunk.sentences) - 1)
        shown.update(range(first, last + 1))
        shown.update(_find_label(chunk, anchor))
    return shown


def find_missed(chunk: Chunk, shown: Collection[int], matched: Collection[int], best: int | None) -> set[int]:
    """Return, for people, what colons, names, headers of tables and the best match lead to, and what fills gaps.

    Args:
        chunk: The chunk.
        shown: The positions of the sentences that are shown.
        matched: Those of them that matched.
        best: The one that matched best, if it is known: the sentence after it may say what follows from it.
    """
    missed: set[int] = set()
    for position in matched:
        missed.update(_find_named(chunk, position))
    if best is not None:
        missed.update(_find_next(chunk, best))
    for position in missed.union(shown):
        if _LEAD_IN.search(sentence_line(chunk, position)):
            missed.update(_find_led_to(chunk, position))
        if position + 1 < len(chunk.sentences) and _FOLLOWS.match(sentence_line(chunk, position + 1)):
            missed.add(position + 1)
        missed.update(_find_first_rows(chunk, position, shown))
        missed.update(_find_rest_of_code(chunk, position))
    for before, after in pairwise(sorted(missed.union(shown))):
        gap = range(before + 1, after)
        characters = sum(len(sentence_line(chunk, position)) for position in gap)
        if characters <= _MAX_GAP_CHARACTERS and _is_one_text(chunk, range(before, after + 1)):
            missed.update(gap)
    return missed.difference(shown)


def _find_named(chunk: Chunk, position: int) -> list[int]:
    """Return the position of the sentence below a line that only names it, such as a step's name above its text."""
    below = position + 1
    if below == len(chunk.sentences) or not _is_one_text(chunk, (position, below)):
        return []
    line = sentence_line(chunk, position)
    text = sentence_line(chunk, below)
    is_name = len(line) <= _MAX_NAME_CHARACTERS and not _END.search(line)
    if not is_name or not _END.search(text) or _is_code_or_row(chunk, position) or _is_code_or_row(chunk, below):
        return []
    is_item_of_same_list = _ITEM.match(line) and _ITEM.match(text)
    return [] if is_item_of_same_list else [below]


def _find_next(chunk: Chunk, position: int) -> list[int]:
    """Return the position of the next sentence of the same paragraph, if it is not long."""
    following = position + 1
    if following == len(chunk.sentences) or not _is_one_text(chunk, (position, following)):
        return []
    if begins_paragraph(chunk, following) or _is_code_or_row(chunk, following):
        return []
    return [following] if len(sentence_line(chunk, following)) <= _MAX_NEXT_CHARACTERS else []


def _is_code_or_row(chunk: Chunk, position: int) -> bool:
    return bool(code_lines(chunk, position)) or is_row(sentence_line(chunk, position))


def _find_led_to(chunk: Chunk, position: int) -> range:
    """Return the positions after a sentence that ends in a colon, up to the first one that does not, at most three."""
    last = position
    for following in range(position + 1, min(position + 1 + _AFTER_LEAD_IN, len(chunk.sentences))):
        if not _is_one_text(chunk, (position, following)):
            break
        last = following
        if not _LEAD_IN.search(sentence_line(chunk, following)):
            break
    return range(position + 1, last + 1)


def _find_first_rows(chunk: Chunk, position: int, shown: Collection[int]) -> list[int]:
    """Return the positions of the first rows below the header of a table, if none is shown."""
    header = sentence_line(chunk, position).strip("| ")
    if CELL_BOUNDARY not in header:
        return []
    first_name = f"{header.partition(CELL_BOUNDARY)[0]}: "
    rows: list[int] = []
    for below in range(position + 1, len(chunk.sentences)):
        is_labelled = sentence_line(chunk, below).startswith(first_name)
        if is_labelled or chunk.sentences[below].header == header:
            rows.append(below)
    return rows[:_FIRST_ROWS] if set(rows).isdisjoint(shown) else []


def _find_rest_of_code(chunk: Chunk, position: int) -> list[int]:
    """Return the positions of the code that goes on after a part of it, if that is short."""
    rest: list[int] = []
    characters = 0
    for following in range(position + 1, len(chunk.sentences)):
        characters += len(sentence_line(chunk, following))
        is_code = code_lines(chunk, following - 1) and code_lines(chunk, following)
        if not is_code or characters > _MAX_CODE_CHARACTERS or not _is_one_text(chunk, (position, following)):
            break
        rest.append(following)
    return rest


def _is_one_text(chunk: Chunk, positions: Iterable[int]) -> bool:
    """Return whether sentences are under the same heading, and none is one."""
    sentences = [chunk.sentences[position] for position in positions]
    return all(sentence.embedded and sentence.heading == sentences[0].heading for sentence in sentences)


def is_short(chunk: Chunk) -> bool:
    """Return whether a chunk is a whole, short document; its title, which is shown anyway, does not count."""
    return chunk.whole and len(without_title(chunk.text, chunk.title)) <= MAX_SHORT_CHARACTERS


def _is_shown_whole(chunk: Chunk, anchors: Collection[int], *, is_subject: bool) -> bool:
    """Return whether a short document is shown whole: it is the subject, or little more than the anchors."""
    if not anchors or not is_short(chunk):
        return False
    if is_subject:
        return True
    missing = 0  # characters
    for position, sentence in enumerate(chunk.sentences):
        if position not in anchors:
            missing += sentence.end - sentence.start
    return missing <= _MAX_MISSING_CHARACTERS


def _find_reach(chunk: Chunk, anchor: int, *, window: bool) -> _Reach:
    if window:
        return _WINDOW
    if _LEAD_IN.search(sentence_line(chunk, anchor)):
        return _Reach(before=0, after=_AFTER_LEAD_IN)
    is_heading = not chunk.sentences[anchor].embedded
    before = 1 if _lacks_subject(chunk, anchor) else 0
    after = 1 if is_heading or _lacks_subject(chunk, anchor + 1) else 0
    return _Reach(before, after)


def _find_label(chunk: Chunk, anchor: int) -> list[int]:
    """Return the position of the first sentence of a match's paragraph if it begins with a label."""
    first = anchor
    while first > max(0, anchor - _MAX_PARAGRAPH_SENTENCES) and not begins_paragraph(chunk, first):
        first -= 1
    line = sentence_line(chunk, first)
    is_label = len(line) <= _MAX_LABELLED_CHARACTERS and _LABELLED.match(line)
    return [first] if first < anchor and is_label else []


def begins_paragraph(chunk: Chunk, position: int) -> bool:
    """Return whether a sentence begins a paragraph or an item of a list."""
    between = chunk.text[chunk.sentences[position - 1].end : chunk.sentences[position].start]
    return between.count("\n") > 1 or _ITEM.match(sentence_line(chunk, position)) is not None


def _lacks_subject(chunk: Chunk, position: int) -> bool:
    """Return whether a sentence refers to something named before it."""
    if position >= len(chunk.sentences):
        return False
    return _WITHOUT_SUBJECT.match(sentence_line(chunk, position)) is not None
