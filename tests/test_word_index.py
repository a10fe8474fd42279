"""The index of words counts what a scan of the texts counts, whatever is in them, and however it was made."""

from __future__ import annotations

import re
import sys
import unicodedata

import numpy as np
import re2
from hypothesis import given
from hypothesis import strategies as st

from arag.retrieval.storage.keywords import KeywordTexts, format_keywords
from arag.retrieval.storage.records import ChunkText
from arag.retrieval.storage.words.build import build_segments, find_new
from arag.retrieval.storage.words.index import StoredSegment, WordIndex
from arag.retrieval.storage.words.segment import keep_chunks, read_segment
from arag.retrieval.storage.words.spans import find_words, is_in_word
from arag.text.normalise import lower, searchable
from arag.text.scripts import SPACED, UNSPACED

PIECES = [
    *"aAbsSkK ",
    "the ",
    "The ",
    "other",
    "ſ",
    "K",
    "İ",
    "ı",
    "Σ",
    "ς",
    "é",
    "e\u0301",
    "灯",
    "塔",
    "。",
    "ไ",
    "٣",
    "½",
    "1,000",
    ".",
]
PIECES += ["_", "'", "’", "\u200d", "ﬁ", "\n", "\u00a0", "|", "ß", "ẞ", "a_b", "😀", "lamps", "lamp"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
NEEDLES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join).filter(str.strip)
CHUNKS = st.lists(
    st.lists(st.tuples(st.sampled_from(["", " ", "\n", "x", " in between "]), TEXTS), max_size=5), max_size=8
)


def chunk_of(row_id, pieces, title=""):
    """A chunk with a sentence for each piece, and something in front of each."""
    text, starts, ends = "", [], []
    for gap, sentence in pieces:
        text += gap
        starts.append(len(text))
        text += sentence
        ends.append(len(text))
    return ChunkText(row_id, f"c{row_id}", f"d{row_id}", 0, title, text, np.array(starts, int), np.array(ends, int))


def stored(segments):
    """The segments as they are read again, after they were written."""
    found = []
    for segment in segments:
        read, start = read_segment(memoryview(bytes(segment.postings) + segment.head()))
        assert start == 0
        found.append(StoredSegment(read, lambda spans, read=read: [bytes(read.postings[a:b]) for a, b in spans]))
    return WordIndex(found)


def segments_of(chunks, before=()):
    by_id = {chunk.row_id: chunk for chunk in chunks}
    row_ids = np.array(sorted(by_id), np.int64)
    left = []
    for segment in before:
        is_kept = np.isin(segment.row_ids, row_ids)
        if is_kept.any():
            left.append(keep_chunks(segment, is_kept))
    kept, new = find_new([segment.row_ids for segment in left], row_ids)
    return [*left[:kept], *build_segments(new, lambda ids: [by_id[i] for i in ids])]


def texts_of(chunks, words=None):
    pieces = b"".join(format_keywords(chunk.text for chunk in chunks))
    return KeywordTexts(pieces, [chunk.row_id for chunk in chunks], words)


def ask(texts, needles):
    return [
        texts.rank(needles, 4),
        texts.rank(needles, 4, ranking="bm25"),
        texts.count_chunks(needles),
        texts.holding_all(needles, 3),
        [texts.holds_word(word) for needle in needles for word in re.findall(r"\w+", searchable(needle))],
    ]


@given(CHUNKS, st.lists(NEEDLES, min_size=1, max_size=3, unique_by=searchable), st.sets(st.integers(0, 7)))
def test_keywords_are_counted_as_in_the_texts(pieces_by_chunk, needles, inside):
    chunks = [chunk_of(10 * (n * 5 % 8) + 1, pieces) for n, pieces in enumerate(pieces_by_chunk)]
    indexed = texts_of(chunks, stored(segments_of(chunks)))
    assert ask(indexed, needles) == ask(texts_of(chunks), needles)
    some = [chunk for n, chunk in enumerate(chunks) if n in inside]
    if some:
        limited = indexed.limited_to(np.array([chunk.row_id for chunk in some]))
        assert ask(limited, needles) == ask(texts_of(some), needles)


@given(CHUNKS, st.lists(st.sets(st.integers(0, 7)), max_size=4))
def test_an_index_that_follows_changes_is_as_one_that_was_made_at_once(pieces_by_chunk, visible):
    chunks = [chunk_of(n + 1, pieces) for n, pieces in enumerate(pieces_by_chunk)]
    segments = []
    for places in visible:
        some = [chunk for n, chunk in enumerate(chunks) if n in places]
        segments = segments_of(some, segments)
        for segment in segments:
            (again,) = segments_of([chunk for chunk in some if chunk.row_id in segment.row_ids])
            assert (bytes(segment.postings), segment.head()) == (bytes(again.postings), again.head())


def test_the_characters_of_words_are_known():
    """A word of the index ends where no other kind of word goes on."""
    spaced = re.compile(f"[{SPACED}]")
    unspaced = re.compile(f"[{UNSPACED}]")
    inside = re2.compile(r"[\p{L}\p{M}\p{N}_]")
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if unicodedata.category(character) == "Cs":
            continue
        is_word = bool(re.match(r"\w", character) or spaced.match(character) or inside.fullmatch(character))
        word = f"a{character}b"
        if is_word:
            assert find_words(word) == [word], hex(number)
        assert is_in_word(word) == (find_words(lower(word)) == [lower(word)]), hex(number)
        if unspaced.match(character):
            assert not any(find_words(character)), hex(number)
