"""Finds where the sentences of a paragraph begin, with spaCy's rules and a few of our own where those fail.

spaCy's tokenizer knows a language's abbreviations, so "Dr.", "U.S.", "Dec. 10" and "Hyman B. Samuels" stay whole.
It leaves an opening quote on the sentence before, breaks before a lower-case word ("et al. said") and after "No.",
and never breaks after an initialism ("He moved to the U.S. She stayed."): these boundaries are fixed here.
In German, it never breaks after a number, since "am 3. Oktober" is a date: it does so here after years.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from arag.text.scripts import CHINESE_OR_JAPANESE, SPACED

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_MAX_BLOCK = 100_000  # characters given to spaCy at once: more would need more memory
# Characters around a boundary that are looked at. Without a limit, a text without spaces would take quadratic time.
_BEFORE_BOUNDARY = 64
_AFTER_BOUNDARY = 32

_CHINESE_OR_JAPANESE = re.compile(f"[{CHINESE_OR_JAPANESE}]")
_NAMED_SIGN = re.compile(rf"[{CHINESE_OR_JAPANESE}]\s+[.!?]$")  # as in 「ファイル名を . で始まる名前」
# A line of a log, which begins with its time, is an item, too.
LIST_ITEM = re.compile(
    r"\s*(?:[-*+•‣◦·]|\d{1,3}[.)]|\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d\S{0,40})\s+"
)
_WHITE = re.compile(r"\s*")
# Of a section, whose name follows, or of an item that readers show with a letter or a Roman number.
_BLOCK_NUMBER = re.compile(r"\s*(?:(?:[-*+•‣◦·]\s+)?(?:\d{1,3}\.)+|- (?:\d+|[A-Za-z]|[ivxlc]+|[IVXLC]+)\.)\s+")
LEADERS = r"(?:(?:\. ?){4,}|(?:… ?){2,}|_{4,}|·{4,})"  # between an entry of contents or of an index and its page
PAGE = r"(?:\d{1,4}|[ivxlc]+)\b"
_LEADERS_BEFORE = re.compile(rf"{LEADERS}\s*$")
_PAGE_AFTER = re.compile(PAGE)

CLOSERS = "\"'”’»›)]}」』》】）"
_OPENERS = "“‘«‹„([{「『《【（"
_FULL_WIDTH_STOP = "．"
# The marks of Chinese and Japanese, Arabic and Urdu, Hindi, Armenian, Ethiopic, Burmese, and Khmer. They never occur
# inside a word, so they need no space behind them.
_ENDS_WITHOUT_SPACE = "。！？｡" + _FULL_WIDTH_STOP + "؟۔" + "।" + "։" + "።" + "။" + "។៕"
ENDS = ".!?…" + _ENDS_WITHOUT_SPACE
_EAST_ASIAN_CLOSERS = "”’」』》】）"

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
# A new sentence may begin only after one of these.
_END_INSIDE = re.compile(rf"[.!?…][{re.escape(CLOSERS)}]*\s+\S|[{_ENDS_WITHOUT_SPACE}]")
# spaCy is slow on these: it takes marks and suffixes off a word one by one, and looks at the whole word each time.
_SLOW_WORD = re.compile(r"\S{1000,}(?=\S{20})|[^\w\s]{50,}")
_GOES_ON = re.compile(r"[=,;)\]}&|]")  # begins no sentence: the stop is in a string of a program
_NUMBER = re.compile(r"[(\[]?(?:\d|[IVXLC]+\b)")
_NOTE_MARK = re.compile(r"(?<=[^\S\n])\[\d{1,2}\]\s+(?=[^\W\d_a-zß-ÿ])(?!\S+ ::=)")  # of the sentence before it
_INSIDE_WORD = re.compile(f"[{SPACED}]")
# These words begin a new sentence after a word that keeps its full stop ("U.S.", "100 kW.", "World War I.").
_STARTERS = frozenset(
    "A After All Also Although An And Another As At Because Before Both But By During Each For From He "
    "Her His However If In It Its Many Most No Of On One Other Our She Since So Some Such That The Their "
    "Then There These They This Those Three Through To Two Under Until We What When Where While With".split()
)
# The same for German.
_GERMAN_NEVER_LAST = frozenset("anm. art. aufl. ausschl. bst. einschl. gez. kap. lit. rn. vgl. ziff. zw.".split())
_GERMAN_STARTERS = frozenset(
    "Aber Alle Als Am An Auch Auf Bei Bis Da Damit Danach Dann Das Dem Den Der Des Deshalb Die Dies Diese Dieser "
    "Dieses Doch Dort Ein Eine Er Es Für Hier Ich Ihr Ihre Im In Ist Jede Jeder Kein Keine Man Mit Nach Nicht Noch Nun "
    "Nur Ob Oder Seit Seine Sie Sind So Trotzdem Und Unter Über Um Vom Von Vor War Was Weil Wenn Wer Wie Wir Wo Zu Zum "
    "Zur Zwei".split()
)
_NO_ORDINAL = re.compile(r"\d{4,}\.|\d+,\d+\.|\d+(?:\.\d{3})+\.")  # a year or a quantity at the end of a sentence
_GERMAN_WORDS = frozenset(
    "auf bei dem eine einer für ist mit nach nicht oder sich sind und werden wird zum zur über".split()
)
_ENGLISH_WORDS = frozenset("and by for from is of that the to was with".split())
_MIN_GERMAN_WORDS = 3  # different ones, in the sample
_SAMPLE_CHARACTERS = 2_000  # of a text's start
_WORD = re.compile(r"[^\W\d_]+")
_INITIALS = frozenset({"b.", "c.", "d.", "r."})  # may also end a sentence


def split_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences of a paragraph."""
    is_german = _is_german(text[:_SAMPLE_CHARACTERS])
    for piece_start, piece_end in _pieces(text, start, end):
        offsets = _boundaries(text[piece_start:piece_end], is_german)
        boundaries = [piece_start + offset for offset in offsets]
        for left, right in pairwise([piece_start, *boundaries, piece_end]):
            sentence = text[left:right].lstrip()
            if sentence:
                sentence_start = right - len(sentence)
                yield sentence_start, sentence_start + len(sentence.rstrip())


@lru_cache
def _is_german(sample: str) -> bool:
    """Return whether the start of a text has several of German's most common words, and more than of English ones."""
    words = set(_WORD.findall(sample.lower()))
    german = len(words & _GERMAN_WORDS)
    english = len(words & _ENGLISH_WORDS)
    return german >= _MIN_GERMAN_WORDS and german > english


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


def _boundaries(text: str, is_german: bool) -> list[int]:
    """Return the offsets at which a new sentence begins, without the first one."""
    if not _END_INSIDE.search(text):
        return []
    doc = _parse(text, is_german)
    candidates = {sentence.start_char for sentence in doc.sents}
    candidates |= set(_after_kept_stops(doc))
    never_last = _NEVER_LAST
    if is_german:
        candidates |= set(_after_kept_numbers(doc))
        never_last = _NEVER_LAST | _GERMAN_NEVER_LAST
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
        is_at_cell_end = text.startswith("|", start)
        if not is_inside or is_at_cell_end or _is_before_page(text, start):
            continue
        begins_block = LIST_ITEM.fullmatch(text, 0, start) or _BLOCK_NUMBER.fullmatch(text, 0, start)
        if not begins_block and _is_boundary(text, start, never_last):
            note = _NOTE_MARK.match(text, start)
            if note and not text.startswith("["):  # as references do, whose numbers are before them
                start = note.end()
            boundaries.add(start)
    return sorted(boundaries)


@cache
def _pipeline(language: str) -> Language:
    import spacy

    pipeline = spacy.blank(language)
    pipeline.add_pipe("sentencizer", config={"punct_chars": _ends_for_spacy()})
    pipeline.max_length = 10 * _MAX_BLOCK
    if language == "en":
        _make_tokens_of_ends(pipeline.tokenizer)
    return pipeline


def _ends_for_spacy() -> list[str]:
    """Return the marks after which spaCy begins a sentence."""
    from spacy.pipeline import Sentencizer

    return [*Sentencizer.default_punct_chars, *_ENDS_WITHOUT_SPACE]


@cache
def _far_from_ends() -> re.Pattern[str]:
    """Return a pattern for words where no sentence ends or begins, so that spaCy need not look at each.

    spaCy splits each word by itself, so the words beside these keep their tokens. The pattern does not match a word
    after a full stop: it may be one of `_STARTERS`.
    """
    ends = re.escape("".join([*_ends_for_spacy(), *ENDS]))
    return re.compile(rf"(?<!\S)(?<!\. )[^\W_][^{ends}]*(?!\S)")


def _make_tokens_of_ends(tokenizer: Any) -> None:
    """Let the English tokenizer make tokens of other scripts' full stops, which the sentencizer then sees."""
    from spacy.lang.en.punctuation import TOKENIZER_INFIXES
    from spacy.lang.punctuation import TOKENIZER_SUFFIXES
    from spacy.util import compile_infix_regex, compile_suffix_regex

    end = f"[{_ENDS_WITHOUT_SPACE}]"
    tokenizer.suffix_search = compile_suffix_regex([*TOKENIZER_SUFFIXES, end]).search
    tokenizer.infix_finditer = compile_infix_regex([*TOKENIZER_INFIXES, end]).finditer


def _parse(text: str, is_german: bool) -> Doc:
    if 3 * len(_CHINESE_OR_JAPANESE.findall(text)) > len(text):
        # These are read character by character, and _SLOW_WORD would match their paragraphs as one word.
        return _pipeline("zh")(text)
    masked = _SLOW_WORD.sub(_mask, text)
    masked = _far_from_ends().sub(_mask, masked)
    language = "de" if is_german else "en"
    return _pipeline(language)(masked)


def _mask(words: re.Match[str]) -> str:
    """Return one word of the same length."""
    return "x" * len(words[0])


def _after_kept_stops(doc: Doc) -> Iterator[int]:
    """Yield the starts of sentences after words that spaCy keeps together with their full stop."""
    starters = _GERMAN_STARTERS if doc.lang_ == "de" else _STARTERS
    for token in doc[:-1]:
        following = token.nbor()
        keeps_stop = len(token.text) > 1 and token.text.endswith(".")
        if keeps_stop and token.whitespace_ and following.text in starters and _may_be_last(token.lower_):
            yield following.idx


def _after_kept_numbers(doc: Doc) -> Iterator[int]:
    """Yield the starts of sentences after numbers with a full stop that are not ordinals."""
    for token in doc[:-1]:
        if token.whitespace_ and _NO_ORDINAL.fullmatch(token.text):
            yield token.nbor().idx


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


def _is_before_page(text: str, boundary: int) -> bool:
    """Return whether an entry of contents goes on with its page."""
    if not _PAGE_AFTER.match(text, boundary):
        return False
    before = text[max(0, boundary - _BEFORE_BOUNDARY) : boundary]
    return _LEADERS_BEFORE.search(before) is not None


def _is_boundary(text: str, boundary: int, never_last: frozenset[str]) -> bool:
    before = text[max(0, boundary - _BEFORE_BOUNDARY) : boundary]
    after = text[boundary : boundary + _AFTER_BOUNDARY]
    sentence = before.rstrip()
    without_closers = sentence.rstrip(CLOSERS)
    if not without_closers:
        return False
    end = without_closers[-1]
    if end not in ENDS:
        return False
    needs_space = end not in _ENDS_WITHOUT_SPACE
    has_space = before != sentence
    is_decimal_point = end == _FULL_WIDTH_STOP and _INSIDE_WORD.match(after) is not None
    if not has_space and (needs_space or is_decimal_point):
        return False  # "example.com", "EURO.KO.", "３．５"
    following = after.lstrip("\"'" + _OPENERS + " ")
    is_sign = _NAMED_SIGN.search(without_closers) and _CHINESE_OR_JAPANESE.match(following)
    if needs_space and (following[:1].islower() or _GOES_ON.match(following) or is_sign):
        return False
    word = without_closers.split()[-1].lower().lstrip("\"'" + _OPENERS)
    has_closers = without_closers != sentence
    if word in never_last and not has_closers:
        return False
    return not (word in _BEFORE_NUMBER and _NUMBER.match(after))
