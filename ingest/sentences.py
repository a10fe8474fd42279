"""Sentence borders by spaCy's rules, paragraph by paragraph, and by a few rules of our own where those fail.

spaCy's tokenizer knows a language's abbreviations, so "Dr.", "U.S.", "Dec. 10" and "Hyman B. Samuels" stay whole.
It leaves an opening quote on the sentence before, breaks before a lower-case word ("et al. said") and after "No.",
and never breaks after an initialism ("He moved to the U.S. She stayed."): these borders are fixed here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from arag.ingest.outline import BARE, Outline, is_heading_line
from arag.retrieval.types import Sentence
from arag.text.normalise import CELL_BOUNDARY

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

RULES_VERSION = 7  # part of every document's fingerprint: documents are cut again when the rules change

_MAX_BLOCK = 100_000  # characters given to spaCy at once
_MAX_HEADING = 100  # characters
_MAX_HEADING_WORDS = 12

_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_MARKDOWN_HEADING = re.compile(r"\s{0,3}(#{1,6})\s")
# Also a line of a log, which begins with its time.
_LIST_ITEM = re.compile(
    r"\s*(?:[-*+•‣◦·]|\d{1,3}[.)]|\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d\S{0,40})\s"
)
_RULE = re.compile(r"[\s=\-*_~#|:+]{3,}$")
_WHITE = re.compile(r"\s*")
_FENCE = re.compile(r"\s*(?:```|~~~)")

_CLOSERS = "\"'”’»›)]}」』》】）"
_OPENERS = "“‘«‹„([{「『《【（"
_ENDS = ".!?…。！？｡؟।۔"
_EAST_ASIAN_ENDS = "。！？｡"
_EAST_ASIAN_CLOSERS = "”’」』》】）"

# Never the last word of a sentence.
_NEVER_LAST = frozenset(
    "a.k.a. aka. approx. ca. cf. e.g. feat. ft. i.e. lit. messrs. nr. translit. trans. viz. vs. v. dr. "
    "mr. mrs. ms. prof. st. gen. sgt. col. lt. cmdr. capt. rev. hon. gov. sen. rep. mt.".split()
)
# The last word of a sentence only when no number follows.
_BEFORE_NUMBER = frozenset(
    "app. art. arts. b. bk. c. ch. chap. d. eq. fig. figs. fl. jan. feb. mar. apr. jun. jul. aug. sep. "
    "sept. oct. nov. dec. no. nos. op. p. par. pg. pl. pp. pt. r. sec. sect. ser. tab. vol. vols.".split()
)
# spaCy takes marks and endings off a word one by one, and looks at the whole word each time.
_SLOW_WORD = re.compile(r"\S{1000,}(?=\S{20})|[^\w\s]{50,}")
_NUMBER = re.compile(r"[(\[]?(?:\d|[IVXLC]+\b)")
# After a word that keeps its full stop ("U.S.", "100 kW.", "World War I."), these begin a new sentence.
_STARTERS = frozenset(
    "A After All Also Although An And Another As At Because Before Both But By During Each For From He "
    "Her His However If In It Its Many Most No Of On One Other Our She Since So Some Such That The Their "
    "Then There These They This Those Three Through To Two Under Until We What When Where While With".split()
)


class _Block(NamedTuple):
    """A paragraph, a list item, a table's row, a heading, or a line that is none of these."""

    start: int
    end: int  # after its last character
    embedded: bool = True
    level: int = 0  # of a heading in Markdown: 1 to 6
    is_row: bool = False


def split_sentences(text: str, *, title: str = "") -> list[Sentence]:
    """Find the sentences of a text, with the headings that they stand under and the headers of their tables.

    Headings, rules and lines without a letter or digit are sentences that are not embedded. Only white space lies
    between sentences. The title is a heading if the text begins with it.
    """
    sentences: list[Sentence] = []
    outline = Outline(title)
    for block, following in pairwise([*_blocks(text, title), _Block(len(text), len(text), embedded=False)]):
        line = text[block.start : block.end]
        level = block.level
        if block.embedded and _is_short(text, block) and following.embedded and not _is_short(text, following):
            level = BARE  # a short line with a paragraph after it is a heading
        if level or not block.embedded:
            heading = outline.enter(level, line) if level else outline.path
            sentences.append(Sentence(block.start, block.end, embedded=False, heading=heading))
            continue
        header = outline.enter_row(line, text[following.start : following.end]) if block.is_row else ""
        if not block.is_row and len(line) > _MAX_HEADING:
            outline.leave_table()
        sentences += _split_block(text, block, outline, header)
    return sentences


def _split_block(text: str, block: _Block, outline: Outline, header: str) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph; lines inside it may be headings, too."""
    headings = deque(_heading_lines(text, block))
    for start, end in _split_paragraph(text, block.start, block.end):
        path = outline.path
        while headings and headings[0][0] <= start:
            start_of_heading, line = headings.popleft()
            parents = outline.enter(BARE, line)
            path = parents if start_of_heading == start else outline.path
        yield Sentence(start, end, any(map(str.isalnum, text[start:end])), path, header)
    for _, line in headings:
        outline.enter(BARE, line)


def _heading_lines(text: str, block: _Block) -> Iterator[tuple[int, str]]:
    lines = text[block.start : block.end].splitlines(keepends=True)
    at = block.start
    for line in lines if len(lines) > 1 else ():
        if is_heading_line(line.strip()):
            yield at, line
        at += len(line)


@cache
def _pipeline(language: str) -> Language:
    import spacy

    pipeline = spacy.blank(language)
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10 * _MAX_BLOCK
    return pipeline


def _blocks(text: str, title: str) -> Iterator[_Block]:
    start = end = -1
    at = 0
    fenced = False
    seen_text = False
    for line in text.splitlines(keepends=True):
        here, at = at, at + len(line)
        stripped = line.strip()
        fence = bool(_FENCE.match(line))
        is_row = CELL_BOUNDARY in line or stripped.startswith("|")
        is_title = not seen_text and stripped == title
        heading = _MARKDOWN_HEADING.match(line)
        alone = bool(fence or is_row or is_title or heading or _RULE.match(line))
        if start >= 0 and (not stripped or alone or fenced or _LIST_ITEM.match(line)):
            yield _Block(start, end)
            start = -1
        fenced = fenced != fence
        if not stripped:
            continue
        first = here + len(line) - len(line.lstrip())
        last = here + len(line.rstrip())
        if alone:
            level = len(heading[1]) if heading and not (is_row or fenced) else 0
            yield _Block(first, last, embedded=is_row, level=level, is_row=is_row)
        else:
            start, end = (first if start < 0 else start), last
        seen_text = True
    if start >= 0:
        yield _Block(start, end)


def _is_short(text: str, block: _Block) -> bool:
    """Return whether a block is a line that may be a heading."""
    line = text[block.start : block.end]
    return (
        len(line) <= _MAX_HEADING
        and "\n" not in line
        and len(line.split()) <= _MAX_HEADING_WORDS
        and line[-1] not in _ENDS + ":;,，；：" + _CLOSERS.replace(")", "")
        and not _LIST_ITEM.match(line)
        and CELL_BOUNDARY not in line
    )


def _split_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences of a paragraph."""
    for piece_start, piece_end in _pieces(text, start, end):
        borders = [piece_start + border for border in _borders(text[piece_start:piece_end])]
        for left, right in pairwise([piece_start, *borders, piece_end]):
            sentence = text[left:right].lstrip()
            if sentence:
                yield right - len(sentence), right - len(sentence) + len(sentence.rstrip())


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a very long block after a full stop, so that spaCy's memory stays small."""
    while end - start > _MAX_BLOCK:
        limit = start + _MAX_BLOCK
        cut = max(text.rfind(". ", start, limit) + 2, text.rfind("。", start, limit) + 1)
        if cut <= start + 1:
            cut = text.rfind(" ", start, limit) + 1 or limit
        yield start, cut
        start = cut
    yield start, end


def _borders(text: str) -> list[int]:
    """Return the offsets at which a new sentence begins, the first one not included."""
    if 3 * len(_EAST_ASIAN.findall(text)) > len(text):
        # Chinese is read character by character, and its paragraphs are one word to the pattern below.
        doc = _pipeline("zh")(text)
    else:
        masked = _SLOW_WORD.sub(lambda word: "x" * len(word[0]), text)
        doc = _pipeline("en")(masked)
    borders = {sentence.start_char for sentence in doc.sents if sentence.start_char > 0}
    borders |= set(_after_kept_stops(doc))
    # The first straight quote opens, the second closes, and so on.
    opening_quotes = {quote.start() for quote in islice(re.finditer('"', text), 0, None, 2)}
    kept = set()
    for border in sorted(borders):
        # spaCy counts a line break as the first token of the sentence that follows it.
        start = _WHITE.match(text, border).end()  # type: ignore[union-attr]
        moved = _before_openers(text, start, opening_quotes)
        if 0 < moved < len(text) and _is_border(text, moved) and not _LIST_ITEM.fullmatch(text, 0, moved):
            kept.add(moved)
    return sorted(kept)


def _after_kept_stops(doc: Doc) -> Iterator[int]:
    """Yield the starts of sentences after words that spaCy keeps together with their full stop."""
    for token in doc[:-1]:
        following = token.nbor()
        if (
            len(token.text) > 1
            and token.text.endswith(".")
            and token.whitespace_
            and following.text in _STARTERS
            and token.lower_ not in _NEVER_LAST
            and token.lower_ not in _BEFORE_NUMBER - {"r.", "d.", "c.", "b."}
        ):
            yield following.idx


def _before_openers(text: str, border: int, opening_quotes: set[int]) -> int:
    """Move a border in front of opening quotes and brackets that were left on the sentence before."""
    while True:
        near = max(0, border - 64)
        last = near + len(text[near:border].rstrip()) - 1
        opens = text[last] in _OPENERS or last in opening_quotes
        if (
            last <= 0
            or not opens
            or not (text[last - 1].isspace() or text[last - 1] in _EAST_ASIAN_ENDS + _EAST_ASIAN_CLOSERS)
        ):
            return border
        border = last


def _is_border(text: str, border: int) -> bool:
    before = text[max(0, border - 64) : border]
    ended = before.rstrip()
    core = ended.rstrip(_CLOSERS)
    if not core or core[-1] not in _ENDS:
        return False
    if core[-1] not in _EAST_ASIAN_ENDS and before == ended:
        return False  # no white space: "example.com", "EURO.KO."
    following = text[border : border + 32].lstrip("\"'" + _OPENERS + " ")
    if following[:1].islower() and core[-1] not in _EAST_ASIAN_ENDS:
        return False
    word = core.split()[-1].lower().lstrip("\"'" + _OPENERS)
    if word in _NEVER_LAST and core == ended:
        return False
    return not (word in _BEFORE_NUMBER and _NUMBER.match(text[border : border + 32]))
