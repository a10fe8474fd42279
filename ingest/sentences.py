"""Splits texts into sentences, paragraph by paragraph, with spaCy's rules and a few of our own where those fail.

spaCy's tokenizer knows a language's abbreviations, so "Dr.", "U.S.", "Dec. 10" and "Hyman B. Samuels" stay whole.
It leaves an opening quote on the sentence before, breaks before a lower-case word ("et al. said") and after "No.",
and never breaks after an initialism ("He moved to the U.S. She stayed."): these boundaries are fixed here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from arag.ingest.outline import (
    BARE,
    FENCE_LINE,
    HEADING_LINE,
    MAX_HEADING,
    Outline,
    is_heading_line,
    underlined_level,
)
from arag.retrieval.types import Sentence
from arag.text.normalise import CELL_BOUNDARY
from arag.text.scripts import CHINESE_OR_JAPANESE, SPACED

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

RULES_VERSION = 10  # part of every document's fingerprint: documents are cut again when the rules change

_MAX_BLOCK = 100_000  # characters given to spaCy at once: more would need more memory
_MAX_HEADING_WORDS = 12  # a line with more words is text
# Characters around a boundary that are looked at. Without a limit, a text without spaces would take quadratic time.
_BEFORE_BOUNDARY = 64
_AFTER_BOUNDARY = 32

_CHINESE_OR_JAPANESE = re.compile(f"[{CHINESE_OR_JAPANESE}]")
# A line of a log, which begins with its time, is an item, too.
_LIST_ITEM = re.compile(
    r"\s*(?:[-*+•‣◦·]|\d{1,3}[.)]|\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d\S{0,40})\s"
)
_RULE = re.compile(r"[\s=\-*_~#|:+]{3,}$")
_COMMENT = re.compile(r"Comment by [^\n]{1,100}?: ")  # as readers show one, below what it is about
_WHITE = re.compile(r"\s*")

_CLOSERS = "\"'”’»›)]}」』》】）"
_OPENERS = "“‘«‹„([{「『《【（"
_FULL_WIDTH_STOP = "．"
# The marks of Chinese and Japanese, Arabic and Urdu, Hindi, Armenian, Ethiopic, Burmese, and Khmer. They never occur
# inside a word, so they need no space behind them.
_ENDS_WITHOUT_SPACE = "。！？｡" + _FULL_WIDTH_STOP + "؟۔" + "।" + "։" + "።" + "။" + "។៕"
_ENDS = ".!?…" + _ENDS_WITHOUT_SPACE
_EAST_ASIAN_CLOSERS = "”’」』》】）"
_NOT_AFTER_HEADING = _ENDS + ":;,，；：" + _CLOSERS.replace(")", "")

# These words are never the last of a sentence.
_NEVER_LAST = frozenset(
    "a.k.a. aka. approx. ca. cf. e.g. feat. ft. i.e. lit. messrs. nr. translit. trans. viz. vs. v. dr. "
    "mr. mrs. ms. prof. st. gen. sgt. col. lt. cmdr. capt. rev. hon. gov. sen. rep. mt.".split()
)
# These words are the last of a sentence only if no number follows.
_BEFORE_NUMBER = frozenset(
    "app. art. arts. b. bk. c. ch. chap. d. eq. fig. figs. fl. jan. feb. mar. apr. jun. jul. aug. sep. "
    "sept. oct. nov. dec. no. nos. op. p. par. pg. pl. pp. pt. r. sec. sect. ser. tab. vol. vols.".split()
)
# spaCy is slow on these: it takes marks and suffixes off a word one by one, and looks at the whole word each time.
_SLOW_WORD = re.compile(r"\S{1000,}(?=\S{20})|[^\w\s]{50,}")
_NUMBER = re.compile(r"[(\[]?(?:\d|[IVXLC]+\b)")
_INSIDE_WORD = re.compile(f"[{SPACED}]")
# These words begin a new sentence after a word that keeps its full stop ("U.S.", "100 kW.", "World War I.").
_STARTERS = frozenset(
    "A After All Also Although An And Another As At Because Before Both But By During Each For From He "
    "Her His However If In It Its Many Most No Of On One Other Our She Since So Some Such That The Their "
    "Then There These They This Those Three Through To Two Under Until We What When Where While With".split()
)


_INITIALS = frozenset({"b.", "c.", "d.", "r."})  # may also end a sentence


class _Block(NamedTuple):
    """A paragraph, a list item, a table's row, a heading, or a line that is none of these."""

    start: int
    end: int  # after its last character
    embedded: bool = True
    level: int = 0  # of a heading in Markdown: 1 to 6
    is_row: bool = False


class _Line(NamedTuple):
    """A line of a text."""

    start: int  # of its first character that is not white space
    end: int  # after its last one
    is_blank: bool
    is_row: bool  # of a table
    is_alone: bool  # whether it is a block by itself
    ends_paragraph: bool  # whether it ends the paragraph before it
    level: int  # of a heading in Markdown: 1 to 6; 0 for other lines


def split_sentences(text: str, *, title: str = "", guess_headings: bool = True) -> list[Sentence]:
    """Find the sentences of a text, with the headings above them and the headers of their tables.

    Headings, rules and lines without a letter or digit are sentences that are not embedded. Only white space lies
    between sentences.

    Args:
        text: The text.
        title: The document's title. It is a heading if the text begins with it.
        guess_headings: Whether a plain line may be a heading, too.

    Returns:
        The sentences, in order.
    """
    sentences: list[Sentence] = []
    outline = Outline(title)
    end_of_text = _Block(len(text), len(text), embedded=False)
    for block, following in pairwise([*_blocks(text, title), end_of_text]):
        line = text[block.start : block.end]
        level = block.level
        has_comment = _COMMENT.match(text, following.start) is not None  # which is about the block
        may_be_heading = guess_headings and not has_comment
        if may_be_heading and _is_above_paragraph(text, block, following):
            if not outline.is_plain_heading(line) and not outline.repeats(line):  # such as a date or a name
                sentences.append(Sentence(start=block.start, end=block.end, embedded=True, heading=outline.path))
                continue
            level = BARE
        if level or not block.embedded:
            parents = outline.enter(level, line) if level else outline.path
            sentence = Sentence(
                start=block.start,
                end=block.end,
                embedded=False,
                heading=parents,
            )
            sentences.append(sentence)
        elif block.is_row:
            header = outline.enter_row(line, text[following.start : following.end])
            sentences += _split_block(text, block, outline, header=header)
        else:
            if len(line) > MAX_HEADING:
                outline.leave_table()
            sentences += _split_block(text, block, outline, guess_headings=may_be_heading)
    return sentences


def _split_block(
    text: str,
    block: _Block,
    outline: Outline,
    *,
    header: str = "",
    guess_headings: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph. Lines inside it may be headings, too."""
    headings: deque[tuple[int, str]] = deque()
    if guess_headings:
        headings.extend(_heading_lines(text, block))
    for start, end in _split_paragraph(text, block.start, block.end):
        path = outline.path
        while headings and headings[0][0] <= start:
            heading_start, line = headings.popleft()
            parents = outline.enter(BARE, line)
            path = parents if heading_start == start else outline.path
        has_words = any(map(str.isalnum, text[start:end]))
        yield Sentence(
            start=start,
            end=end,
            embedded=has_words,
            heading=path,
            header=header,
        )
    for _, line in headings:
        outline.enter(BARE, line)


def _heading_lines(text: str, block: _Block) -> Iterator[tuple[int, str]]:
    """Yield the lines of a paragraph that look like headings, each with its start."""
    lines = text[block.start : block.end].splitlines(keepends=True)
    if len(lines) == 1:
        return
    start = block.start
    for line in lines:
        if is_heading_line(line.strip()):
            yield start, line
        start += len(line)


@cache
def _pipeline(language: str) -> Language:
    import spacy
    from spacy.pipeline import Sentencizer

    pipeline = spacy.blank(language)
    ends = [*Sentencizer.default_punct_chars, *_ENDS_WITHOUT_SPACE]
    pipeline.add_pipe("sentencizer", config={"punct_chars": ends})
    pipeline.max_length = 10 * _MAX_BLOCK
    if language == "en":
        _make_tokens_of_ends(pipeline.tokenizer)
    return pipeline


def _make_tokens_of_ends(tokenizer: Any) -> None:
    """Let the English tokenizer make tokens of other scripts' full stops, which the sentencizer then sees."""
    from spacy.lang.en.punctuation import TOKENIZER_INFIXES
    from spacy.lang.punctuation import TOKENIZER_SUFFIXES
    from spacy.util import compile_infix_regex, compile_suffix_regex

    end = f"[{_ENDS_WITHOUT_SPACE}]"
    tokenizer.suffix_search = compile_suffix_regex([*TOKENIZER_SUFFIXES, end]).search
    tokenizer.infix_finditer = compile_infix_regex([*TOKENIZER_INFIXES, end]).finditer


def _blocks(text: str, title: str) -> Iterator[_Block]:
    """Yield the blocks of a text; only white space lies between them."""
    paragraph: _Block | None = None
    for line in _lines(text, title):
        if paragraph and line.ends_paragraph:
            yield paragraph
            paragraph = None
        if line.is_blank:
            continue
        if line.is_alone:
            yield _Block(
                start=line.start,
                end=line.end,
                embedded=line.is_row,
                level=line.level,
                is_row=line.is_row,
            )
        elif paragraph:
            paragraph = paragraph._replace(end=line.end)
        else:
            paragraph = _Block(line.start, line.end)
    if paragraph:
        yield paragraph


def _lines(text: str, title: str) -> Iterator[_Line]:
    next_start = 0
    is_fenced = False
    is_at_top = True
    is_after_blank = True
    for line, following in pairwise([*text.splitlines(keepends=True), ""]):
        start = next_start
        next_start += len(line)
        stripped = line.strip()
        is_blank = not stripped
        is_row = CELL_BOUNDARY in line or stripped.startswith("|")
        is_title = is_at_top and stripped == title
        is_fence = FENCE_LINE.match(line) is not None
        is_rule = _RULE.match(line) is not None
        is_item = _LIST_ITEM.match(line) is not None
        heading = HEADING_LINE.match(line)
        underlined = 0 if is_fenced or is_rule or not is_after_blank else underlined_level(stripped, following)
        is_alone = is_fence or is_row or is_title or is_rule or heading is not None or underlined > 0
        ends_paragraph = is_blank or is_alone or is_item or is_fenced
        if is_fence:
            is_fenced = not is_fenced
        is_heading = heading is not None and not is_row and not is_fenced
        yield _Line(
            start=start + len(line) - len(line.lstrip()),
            end=start + len(line.rstrip()),
            is_blank=is_blank,
            is_row=is_row,
            is_alone=is_alone,
            ends_paragraph=ends_paragraph,
            level=len(heading[1]) if heading and is_heading else underlined,
        )
        is_after_blank = is_blank
        is_at_top = is_at_top and is_blank


def _is_above_paragraph(text: str, block: _Block, following: _Block) -> bool:
    """Return whether a block is a short line with a paragraph after it, which may be a heading."""
    if block.is_row or not (block.embedded and following.embedded):
        return False
    return _is_short(text, block) and not _is_short(text, following)


def _is_short(text: str, block: _Block) -> bool:
    """Return whether a block is a line that may be a heading."""
    line = text[block.start : block.end]
    if len(line) > MAX_HEADING or len(line.split()) > _MAX_HEADING_WORDS:
        return False
    if "\n" in line or CELL_BOUNDARY in line:
        return False
    return line[-1] not in _NOT_AFTER_HEADING and not _LIST_ITEM.match(line)


def _split_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences of a paragraph."""
    for piece_start, piece_end in _pieces(text, start, end):
        offsets = _boundaries(text[piece_start:piece_end])
        boundaries = [piece_start + offset for offset in offsets]
        for left, right in pairwise([piece_start, *boundaries, piece_end]):
            sentence = text[left:right].lstrip()
            if sentence:
                sentence_start = right - len(sentence)
                yield sentence_start, sentence_start + len(sentence.rstrip())


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a very long block after a full stop, so that spaCy's memory stays small."""
    while end - start > _MAX_BLOCK:
        limit = start + _MAX_BLOCK
        after_stop = text.rfind(". ", start, limit) + 2
        after_east_asian_stop = text.rfind("。", start, limit) + 1
        cut = max(after_stop, after_east_asian_stop)
        if cut <= start + 1:
            cut = text.rfind(" ", start, limit) + 1 or limit
        yield start, cut
        start = cut
    yield start, end


def _boundaries(text: str) -> list[int]:
    """Return the offsets at which a new sentence begins, without the first one."""
    doc = _parse(text)
    candidates = {sentence.start_char for sentence in doc.sents}
    candidates |= set(_after_kept_stops(doc))
    candidates.discard(0)
    # The first straight quote opens, the second closes, and so on.
    quotes = [quote.start() for quote in re.finditer('"', text)]
    opening_quotes = set(quotes[::2])
    boundaries = set()
    for candidate in sorted(candidates):
        # spaCy counts a line break as the first token of the sentence that follows it.
        start = _WHITE.match(text, candidate).end()  # type: ignore[union-attr]
        start = _before_openers(text, start, opening_quotes)
        is_inside = 0 < start < len(text)
        if is_inside and _is_boundary(text, start) and not _LIST_ITEM.fullmatch(text, 0, start):
            boundaries.add(start)
    return sorted(boundaries)


def _parse(text: str) -> Doc:
    if 3 * len(_CHINESE_OR_JAPANESE.findall(text)) > len(text):
        # These are read character by character, and _SLOW_WORD would match their paragraphs as one word.
        return _pipeline("zh")(text)
    masked = _SLOW_WORD.sub(lambda word: "x" * len(word[0]), text)
    return _pipeline("en")(masked)


def _after_kept_stops(doc: Doc) -> Iterator[int]:
    """Yield the starts of sentences after words that spaCy keeps together with their full stop."""
    for token in doc[:-1]:
        following = token.nbor()
        keeps_stop = len(token.text) > 1 and token.text.endswith(".")
        if keeps_stop and token.whitespace_ and following.text in _STARTERS and _may_be_last(token.lower_):
            yield following.idx


def _may_be_last(word: str) -> bool:
    """Return whether a word, in lower case, may be the last of a sentence."""
    if word in _NEVER_LAST:
        return False
    return word in _INITIALS or word not in _BEFORE_NUMBER


def _before_openers(text: str, boundary: int, opening_quotes: set[int]) -> int:
    """Move a boundary in front of opening quotes and brackets that were left on the sentence before."""
    while True:
        near = max(0, boundary - _BEFORE_BOUNDARY)
        last = near + len(text[near:boundary].rstrip()) - 1
        if last <= 0:
            return boundary
        is_opener = text[last] in _OPENERS or last in opening_quotes
        before = text[last - 1]
        begins_word = before.isspace() or before in _ENDS_WITHOUT_SPACE + _EAST_ASIAN_CLOSERS
        if not (is_opener and begins_word):
            return boundary
        boundary = last


def _is_boundary(text: str, boundary: int) -> bool:
    before = text[max(0, boundary - _BEFORE_BOUNDARY) : boundary]
    after = text[boundary : boundary + _AFTER_BOUNDARY]
    sentence = before.rstrip()
    without_closers = sentence.rstrip(_CLOSERS)
    if not without_closers:
        return False
    end = without_closers[-1]
    if end not in _ENDS:
        return False
    needs_space = end not in _ENDS_WITHOUT_SPACE
    has_space = before != sentence
    is_decimal_point = end == _FULL_WIDTH_STOP and _INSIDE_WORD.match(after) is not None
    if not has_space and (needs_space or is_decimal_point):
        return False  # "example.com", "EURO.KO.", "３．５"
    following = after.lstrip("\"'" + _OPENERS + " ")
    if needs_space and following[:1].islower():
        return False
    word = without_closers.split()[-1].lower().lstrip("\"'" + _OPENERS)
    has_closers = without_closers != sentence
    if word in _NEVER_LAST and not has_closers:
        return False
    return not (word in _BEFORE_NUMBER and _NUMBER.match(after))
