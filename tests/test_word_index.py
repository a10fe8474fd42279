"""The index of words counts what a scan of the texts counts, whatever is in them, and however it was made."""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from contextlib import suppress

import numpy as np
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import IndexFormatError
from arag.ingest.pipeline import run_ingest
from arag.retrieval.corpus import counted_lines, grep
from arag.retrieval.index import open_index
from arag.retrieval.storage.folder.words import read_words
from arag.retrieval.storage.keywords import KeywordTexts, format_keywords
from arag.retrieval.storage.records import ChunkText
from arag.retrieval.storage.words.build import build_segments, find_new
from arag.retrieval.storage.words.index import StoredSegment, WordIndex
from arag.retrieval.storage.words.segment import keep_chunks, read_segment
from arag.retrieval.storage.words.spans import find_words, is_in_word
from arag.text.normalise import lower, searchable
from arag.text.scripts import SPACED, UNSPACED
from fakes import HashEmbeddings, write_corpus
from selection import EVERYWHERE

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


def test_chunks_without_words_are_taken_out_of_a_segment():
    chunks = [chunk_of(number, [("", "灯塔。")]) for number in range(1, 4)]
    (left,) = segments_of(chunks[1:], segments_of(chunks))
    assert left.row_ids.tolist() == [2, 3]


def test_the_characters_of_words_are_known():
    """A word of the index ends where no other kind of word goes on."""
    spaced = re.compile(f"[{SPACED}]")
    unspaced = re.compile(f"[{UNSPACED}]")
    inside = re2.compile(r"[\p{L}\p{M}\p{N}_]")
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        category = unicodedata.category(character)
        if category == "Cs" or (category in {"Cn", "Co"} and number % 7):  # long ranges of characters that are none
            continue
        is_word = bool(re.match(r"\w", character) or spaced.match(character) or inside.fullmatch(character))
        word = f"a{character}b"
        if is_word:
            assert find_words(word) == [word], hex(number)
        assert is_in_word(word) == (find_words(lower(word)) == [lower(word)]), hex(number)
        if unspaced.match(character):
            assert not any(find_words(character)), hex(number)


# --- an index with its words ---

DOCUMENTS = {
    f"{'ab'[number % 2]}/d{number}.md": f"# The light {number}\n\n"
    f"The lamp of light {number % 7} was lit. THE other lamps; bathes.\n\n| Lamp | Oil |\n| --- | --- |\n"
    + f"| the {number} | whale |\n\n" * (number % 3)
    + "ſmall İlk the K. Ελλάς ΟΔΟΣ. 灯the塔 the_end.\n" * (number % 2)
    for number in range(30)
}
PATTERNS = [
    "the",
    "(?-i)The",
    r"\bthe\b",
    "light|lamps?",
    r"(?i:LAMP)\w*",
    r"l[ai]\w+t",
    "small",
    "ilk",
    "ke?l",
    "οδος",
    "whale",
]
PATTERNS += [
    r"\blight\b",
    "the l",
    "th.",
    "the$",
    "[^x]the",
    "the塔",
    "_end",
    r"the\d?",
    "zzz",
    "the|lit",
    r"\Blight",
    "οδοσ",
]


@pytest.fixture
def count_all(request, monkeypatch):
    """Small indexes are counted by their words, too."""
    monkeypatch.setattr(counted_lines, "_FEW", -1)
    if "postgres" in request.node.name:
        monkeypatch.setattr("arag.retrieval.storage.postgres.keywords._FEW_POSTINGS", -1)


def assert_counted_as_scanned(index, monkeypatch, patterns=PATTERNS):
    for pattern in patterns:
        for ignore_case in (True, False):
            asked = {"pattern": pattern, "ignore_case": ignore_case}
            counted = [index.grep(**asked), index.grep(**asked, start=3, limit=4), index.grep(**asked, start=10**6)]
            with monkeypatch.context() as patch:
                patch.setattr(grep, "count_lines", lambda *_: None)
                scanned = [index.grep(**asked), index.grep(**asked, start=3, limit=4), index.grep(**asked, start=10**6)]
            assert counted == scanned, asked


@pytest.mark.usefixtures("count_all")
@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_lines_are_counted_as_a_scan_does_in_all_documents_and_in_some(make_index, monkeypatch):
    index = make_index(DOCUMENTS, chunk_tokens=50)
    assert index.with_view(lambda view: view.word_index()) is not None
    assert_counted_as_scanned(index, monkeypatch)
    some = [document.id for document in index.documents() if document.id.startswith("a/")]
    limited = index.limited_to(some)
    other = make_index({name: text for name, text in DOCUMENTS.items() if name in some}, chunk_tokens=50)
    assert_counted_as_scanned(limited, monkeypatch, PATTERNS[:6])
    for pattern in PATTERNS:
        assert limited.grep(pattern) == other.grep(pattern)
        assert index.grep(pattern, within="a/") == other.grep(pattern)
    for keywords in (["the"], ["lamp", "light 3"], ["whale", "zzz"], ["ſmall"], ["bath", "K"]):
        for ranking in ("paper", "bm25"):
            assert limited.keyword_search(keywords, ranking=ranking) == other.keyword_search(keywords, ranking=ranking)


@pytest.mark.usefixtures("count_all")
@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_words_follow_added_changed_and_removed_documents(tmp_path, backend, places, monkeypatch):
    place = places(backend, tmp_path / "index")
    versions = [DOCUMENTS, dict([*DOCUMENTS.items()][:27]), {**DOCUMENTS, "a/d1.md": "The lamp is new.", "c.md": "the"}]
    versions += [dict([*DOCUMENTS.items()][20:]), {"c.md": "A lamp."}]
    for documents in versions:
        shutil.rmtree(tmp_path / "corpus", ignore_errors=True)
        corpus = write_corpus(tmp_path / "corpus", documents)
        summary = run_ingest(corpus, place, embedder=HashEmbeddings(), prune=True, chunk_tokens=50)
        assert summary.documents == len(documents)
        with open_index(place, embedder=HashEmbeddings()) as index:
            assert_counted_as_scanned(index, monkeypatch, PATTERNS[:6])
            assert index.store.find_damage() == []


@pytest.mark.usefixtures("count_all")
@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_an_index_of_an_earlier_version_is_scanned_until_something_changes(make_index, tmp_path, backend, monkeypatch):
    index = make_index(DOCUMENTS)
    before = [index.grep(pattern) for pattern in PATTERNS]
    if backend == "folder":
        for file in index.path.glob("words-*"):
            file.unlink()
    else:
        index.store._pool.run(lambda session: session.execute("DROP TABLE word_segments"))
    with open_index(index.store, embedder=HashEmbeddings()) as old:
        assert old.with_view(lambda view: view.word_index()) is None
        assert [old.grep(pattern) for pattern in PATTERNS] == before
        assert old.store.find_damage() == []
        corpus = write_corpus(tmp_path / "more", {"new.md": "A new lamp."})
        run_ingest(corpus, index.store, embedder=HashEmbeddings())
        assert old.with_view(lambda view: view.word_index()) is not None
        assert_counted_as_scanned(old, monkeypatch, PATTERNS[:6])


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
@pytest.mark.parametrize("text", ["灯塔。", "ΟΔΟΣ'Α"], ids=["no word", "lower case"])
def test_texts_without_words_that_can_be_listed_are_sound(tmp_path, backend, places, text):
    place = places(backend, tmp_path / "index")
    documents = {f"d{number}": text + text[0] * number for number in range(12)}
    for versions in (documents, dict([*documents.items()][1:])):
        shutil.rmtree(tmp_path / "corpus", ignore_errors=True)
        corpus = write_corpus(tmp_path / "corpus", versions)
        run_ingest(corpus, place, embedder=HashEmbeddings(), prune=True, chunk_tokens=50)
        with open_index(place, embedder=HashEmbeddings()) as index:
            assert index.store.find_damage() == []
            assert index.grep(text[:2]).documents == len(versions)


@pytest.mark.usefixtures("count_all")
def test_a_damaged_file_of_words_is_named_and_made_again(make_index):
    index = make_index(DOCUMENTS)
    whole = index.grep("the")
    (file,) = index.path.glob("words-*")
    good = file.read_bytes()
    for bad in (b"", good[1:], good[:-1], good[: len(good) // 2], bytes(len(good)), good[:8] + b"\x90\x90" + good[10:]):
        file.write_bytes(bad)
        (damage,) = index.store.find_damage()
        assert str(damage) == f"{file.name}: it does not have the words of the chunks"
        with open_index(index.path, embedder=HashEmbeddings()) as other, suppress(IndexFormatError):
            assert other.grep("the") == whole or bad.startswith(good[:8])
    for place in range(len(good) - 500, len(good), 3):  # of what is read when it is opened
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert read_words(file) is None, place
    index.store.repair()
    assert index.store.find_damage() == []
    assert index.grep("the") == whole
