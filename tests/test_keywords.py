from __future__ import annotations

import os
import random
import re
import struct
import zlib
from functools import lru_cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import DamagedFileError, IndexFormatError, InputError
from arag.files import digest
from arag.ingest.pipeline import ingest
from arag.retrieval import keyword_file as keywords_module
from arag.retrieval.keyword_file import KeywordMatcher, write_keyword_file
from arag.retrieval.keyword_filter import find_blocks
from arag.retrieval.local.manifest import LocalManifest, keyword_file, read_manifest, vocabulary_file
from arag.retrieval.local.vocabulary import read_vocabulary, write_vocabulary
from arag.retrieval.presentation import show_all
from arag.retrieval.render import render_keywords
from arag.retrieval.scope import Scope
from arag.retrieval.tables.words import TableWords
from arag.retrieval.text import fold
from arag.retrieval.types import Chunk
from arag.retrieval.words import find_words, telling_words
from fakes import HashEmbeddings, write_corpus
from memory_backend import MemoryChunks, MemoryGeneration
from selection import slow_except

in_any_backend = pytest.mark.parametrize(
    "backend", slow_except("folder", "memory", among=["folder", "memory", "postgres"]), indirect=True
)


@lru_cache(10_000)
def folded(text):
    return re.sub(r"\s+", " ", text).strip()


def count(text, keyword):
    return folded(text).lower().count(folded(keyword).lower())


def reference(texts, keywords, top_k):
    """The paper's Score(c, K), white space folded: (chunk id, score, counts), and how many chunks match."""
    ranked = []
    for chunk_id, text in texts.items():
        counts = {k: count(text, k) for k in keywords}
        score = sum(count * len(folded(k)) for k, count in counts.items())
        if score:
            ranked.append((chunk_id, score, {k: count for k, count in counts.items() if count}))
    return sorted(ranked, key=lambda entry: (-entry[1], entry[0]))[:top_k], len(ranked)


def holding(texts, keyword):
    return sum(count(text, keyword) > 0 for text in texts.values())


def entries(results):
    return [(hit.chunk_id, hit.score, hit.keyword_counts) for hit in results.hits]


def closest(results):
    return {report.keyword: [(t.text, t.chunks) for t in report.closest] for report in results.keywords}


WHITE = [" ", "\n", "\r\n", "\t", "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2009", "\u2028", "\u2029"]
WHITE += ["\u202f", "\u3000", " \n ", "\n\n"]
NOT_WHITE = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u180e", "\xad", "\x00", "\x1b"]
LETTERS = st.sampled_from(
    [
        *"aAbBiIsSσΣς.-",
        *WHITE,
        *NOT_WHITE,
        "İ",
        "ı",
        "ß",
        "ẞ",
        "é",
        "e\u0301",
        "北",
        "京",
        "😀",
        "👩\u200d👧",
        "aa",
        "ﬁ",
    ]
)
STRINGS = st.lists(LETTERS, max_size=12).map("".join)
KEYWORDS = st.lists(STRINGS.filter(str.strip), min_size=1, max_size=4, unique_by=lambda text: folded(text).lower())


def matcher_of(folder, texts):
    """The matcher of a keyword file, whose chunks are numbered 10, 20, ... and have the texts' keys as their ids."""
    numbers = {chunk_id: 10 * n for n, chunk_id in enumerate(texts, start=1)}
    file = folder / "keywords"
    write_keyword_file(file, zip(numbers.values(), texts.values(), strict=True), [numbers[i] for i in sorted(texts)])
    return KeywordMatcher(file)


def ranking(matcher, texts, keywords, top_k):
    found = matcher.rank(keywords, top_k)
    ids = list(texts)
    return [(ids[r.number // 10 - 1], r.score, r.counts) for r in found.chunks], found.holding, found.total


@given(st.lists(STRINGS, max_size=12), KEYWORDS, st.integers(1, 5), st.sampled_from([1, 2, 3, 7, 1 << 20]))
def test_matcher_ranks_as_the_equation_says(tmp_path, texts, keywords, top_k, block):
    named = {f"c{(7 * n) % 12}": text for n, text in enumerate(texts)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keywords_module, "_BLOCK_BYTES", block)
        ranked, held, total = ranking(matcher_of(tmp_path, named), named, keywords, top_k)
    assert (ranked, total) == reference(named, keywords, top_k)
    assert held == {k: holding(named, k) for k in keywords}


WORDS = "“all” all’s 全all— all tall walls AML aml. é éall 北京 all-in 1 10 the".split()
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=10)
TERMS = st.lists(st.sampled_from("all AML é 北 1 the al tall all-in .".split()), min_size=1, max_size=3, unique=True)


@given(TEXTS, TERMS, st.integers(1, 4), st.none() | st.sets(st.integers(1, 10)))
def test_matcher_ranks_by_coverage_as_the_plainest_way_does(tmp_path, texts, keywords, top_k, within):
    named = {f"c{n}": text for n, text in enumerate(texts)}
    chunks = MemoryChunks()
    for n, (chunk_id, text) in enumerate(named.items(), start=1):
        chunks.chunks[10 * n] = Chunk(chunk_id, chunk_id, 0, text, (), (), 1)
    numbers = None if within is None else [10 * n for n in within]
    arguments = {"within": numbers, "by_coverage": True}
    expected = MemoryGeneration(None, chunks).rank(keywords, top_k, **arguments)
    found = matcher_of(tmp_path, named).rank(keywords, top_k, **arguments)
    assert [(r.number, r.counts) for r in found.chunks] == [(r.number, r.counts) for r in expected.chunks]
    assert [r.score for r in found.chunks] == pytest.approx([r.score for r in expected.chunks])
    assert (found.holding, found.as_word, found.total) == (expected.holding, expected.as_word, expected.total)


@given(st.lists(STRINGS, max_size=10), KEYWORDS, st.integers(1, 4), st.sets(st.integers(0, 9)))
def test_a_search_within_chunks_is_that_of_an_index_without_the_others(tmp_path, texts, keywords, top_k, inside):
    named = {f"c{n}": text for n, text in enumerate(texts)}
    part = {chunk_id: text for n, (chunk_id, text) in enumerate(named.items()) if n in inside}
    found = matcher_of(tmp_path, named).rank(keywords, top_k, within=[10 * n + 10 for n in inside])
    ids = list(named)
    ranked = [(ids[r.number // 10 - 1], r.score, r.counts) for r in found.chunks]
    assert (ranked, found.total) == reference(part, keywords, top_k)
    assert found.holding == {k: holding(part, k) for k in keywords}


def test_of_a_keyword_in_very_many_chunks_every_occurrence_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(keywords_module, "MAX_CHECKED", 2)
    matcher = matcher_of(tmp_path, {"a": "tall", "b": "all", "c": "ball"})
    assert matcher.rank(["all"], 3, by_coverage=True).as_word == {"all": 3}
    assert matcher.rank(["tall"], 3, by_coverage=True).as_word == {"tall": 1}


@given(st.lists(STRINGS, max_size=6), STRINGS.filter(str.strip), st.sampled_from([1, 2, 3, 7, 1 << 20]))
def test_matcher_counts_in_every_chunk(tmp_path, texts, keyword, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keywords_module, "_BLOCK_BYTES", block)
        matcher = matcher_of(tmp_path, {str(n): text for n, text in enumerate(texts)})
        assert matcher.counts(keyword).tolist() == [count(text, keyword) for text in texts]
    assert matcher.chunks_holding([keyword]) == [sum(count(text, keyword) > 0 for text in texts)]


@pytest.fixture(scope="module")
def large_text(tmp_path_factory):
    """1,000 chunks, and the matcher of them."""
    words = random.Random(1).choices("the of that banana tee straße Xenon .".split(), k=400_000)
    texts = {str(n): " ".join(words[n * 400 : (n + 1) * 400]) for n in range(1_000)}
    return texts, matcher_of(tmp_path_factory.mktemp("large"), texts)


@pytest.mark.parametrize(
    "keyword", ["e", "th", "ee", "the", "of the", "of\nthe", "that", "ana", "xyzzy", "x" * 100_000, "ß"]
)
def test_counts_in_a_large_text_are_those_of_python(large_text, keyword):
    texts, matcher = large_text
    assert matcher.counts(keyword).tolist() == [count(text, keyword) for text in texts.values()]


def test_occurrences_do_not_overlap(tmp_path):
    ranked = matcher_of(tmp_path, {"c": "aaaa aaa"}).rank(["aa"], 1).chunks
    assert ranked[0].counts == {"aa": 3}
    assert ranked[0].score == 6


def test_a_keyword_does_not_match_across_chunks(tmp_path):
    assert matcher_of(tmp_path, {"a": "one tw", "b": "o three"}).counts("two").tolist() == [0, 0]


@pytest.mark.parametrize("keyword", ["", " ", "\n\u3000"])
def test_a_blank_keyword_is_refused(tmp_path, keyword):
    with pytest.raises(ValueError, match="blank"):
        matcher_of(tmp_path, {"a": "b c"}).counts(keyword)


def test_white_space_is_folded_before_and_after_lower_casing_alike():
    white = [character for character in map(chr, range(0x110000)) if not fold(character)]
    assert white == re.findall(r"\s", "".join(map(chr, range(0x110000))))
    assert not re.search(r"\s", "".join(c.lower() for c in map(chr, range(0x110000)) if c not in white))
    for character in white:  # a sigma's lower case depends on what stands beside it
        text = f"ΑΣ{character}Σ{character}{character}Α\u0301{character}ΑΣ"
        assert fold(text).lower() == fold(text.lower())


@pytest.mark.parametrize("white", WHITE)
def test_any_white_space_matches_any_other(tmp_path, white):
    matcher = matcher_of(tmp_path, {"a": f"The Grey{white}Petrel sank.", "b": "The GreyPetrel and the Grey-Petrel."})
    for keyword in ("Grey Petrel", "grey\npetrel", f"Grey{white}{white}Petrel", f"{white}grey petrel "):
        ranked = matcher.rank([keyword], 5).chunks
        assert [(r.number, r.score, r.counts) for r in ranked] == [(10, len("Grey Petrel"), {keyword: 1})]


@pytest.mark.parametrize("character", NOT_WHITE)
def test_characters_without_width_are_no_white_space(tmp_path, character):
    matcher = matcher_of(tmp_path, {"a": f"The Grey{character}Petrel sank."})
    assert matcher.counts("Grey Petrel").tolist() == [0]
    assert matcher.counts(f"Grey{character}Petrel").tolist() == [1]


def test_ties_at_the_last_place_go_by_id(tmp_path):
    texts = dict(reversed([(f"c{n:02}", "ship " * (1 + n % 2)) for n in range(40)]))
    ranked, _, total = ranking(matcher_of(tmp_path, texts), texts, ["ship"], 25)
    assert total == 40
    assert [r[0] for r in ranked] == [f"c{n:02}" for n in range(1, 40, 2)] + ["c00", "c02", "c04", "c06", "c08"]


@pytest.mark.parametrize("size", [0, 1, 31, -1, -8, -100])
def test_a_keyword_file_that_was_cut_off_is_refused(tmp_path, size):
    matcher_of(tmp_path, {"a": "some text", "b": "more text"})
    file = tmp_path / "keywords"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(IndexFormatError, match="arag verify"):
        KeywordMatcher(file)


def test_a_file_that_was_deleted_while_it_is_open_serves_on(tmp_path):
    matcher = matcher_of(tmp_path, {"a": "a gull"})
    (tmp_path / "keywords").unlink()
    assert matcher.counts("gull").tolist() == [1]


@pytest.mark.parametrize("size", [0, 4_096, -1])
def test_a_keyword_file_that_is_cut_off_while_it_is_open_is_noticed(tmp_path, size):
    matcher = matcher_of(tmp_path, {str(n): "a gull " * 1_000 for n in range(9)})
    file = tmp_path / "keywords"
    os.truncate(file, size % file.stat().st_size)
    for search in (matcher.counts, lambda k: matcher.chunks_holding([k]), lambda k: matcher.rank([k], 1)):
        for keyword in ("a", "gull"):
            with pytest.raises(DamagedFileError, match="truncated"):
                search(keyword)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of so few bytes that short texts have a filter."""
    monkeypatch.setattr(keywords_module, "_BLOCK_BYTES", 40)


def filtered_texts(choice, words, chunks=400):
    """Chunks of random words; some are empty, some are longer than a block."""
    return {str(n): "".join(choice.choices(words, k=choice.choice([0, 1, 3, 9, 30]))) for n in range(chunks)}


FILTERED_WORDS = [
    "gull",
    "tern ",
    "petrel",
    " ",
    "北京",
    "首都。",
    "İstanbul",
    "ß",
    "é",
    "e\u0301",
    "😀",
    "aa",
    "x.",
    *WHITE,
]


@given(st.data())
def test_the_filter_hides_no_hit(tmp_path, small_blocks, data):
    choice = random.Random(data.draw(st.integers(0, 9)))
    texts = filtered_texts(choice, FILTERED_WORDS)
    matcher = matcher_of(tmp_path, texts)
    assert len(matcher._filter) > 1
    whole = "".join(texts.values())
    keywords = [data.draw(STRINGS.filter(str.strip))]
    for _ in range(3):  # parts of chunks, and what would only match across two
        source = data.draw(st.sampled_from([whole, *filter(str.strip, texts.values())]))
        start = data.draw(st.integers(0, len(source) - 1))
        part = source[start : start + data.draw(st.integers(1, 40))]
        keywords.append(part.upper() if data.draw(st.booleans()) else part)
    keywords = list({folded(k).lower(): k for k in keywords if k.strip()}.values())
    ranked, held, total = ranking(matcher, texts, keywords, 7)
    assert (ranked, total) == reference(texts, keywords, 7)
    assert held == {k: holding(texts, k) for k in keywords}


@pytest.mark.parametrize("character", ["x", "é", "京", "😀"])
def test_a_keyword_is_found_wherever_blocks_begin(tmp_path, small_blocks, character):
    texts = {str(n): "o" * (n % 41) + f"tern{character}gull {n:04}" for n in range(200)}
    matcher = matcher_of(tmp_path, texts)
    assert len(matcher._filter)
    for keyword in [f"tern{character}gull", *(f"{character}gull {n:04}" for n in range(200))]:
        assert matcher.counts(keyword).tolist() == [count(text, keyword) for text in texts.values()]


def test_the_filter_leaves_few_blocks_to_search_for_a_rare_keyword(tmp_path, small_blocks):
    texts = {str(n): f"it was {n * 982_451_653 % 10**9:09} who told them" for n in range(1_000)}
    matcher = matcher_of(tmp_path, texts)
    blocks = len(matcher._filter) * 64
    assert blocks > 700
    for number in range(0, 1_000, 50):
        assert 1 <= find_blocks(matcher._filter, texts[str(number)][7:16].encode()).sum() < blocks / 50
    assert find_blocks(matcher._filter, b"albatross").sum() == 0
    assert find_blocks(matcher._filter, b"who told").all()
    assert find_blocks(matcher._filter, b"albs").all()  # shorter than what the filter knows of


def test_a_text_shorter_than_a_group_of_blocks_has_no_filter(tmp_path):
    assert len(matcher_of(tmp_path, {"a": "gull " * 1_000})._filter) == 0
    assert (tmp_path / "keywords").stat().st_size < 6_000


def filter_bounds(data, text_bytes, chunks):
    return text_bytes, len(data) - 8 * (3 * chunks + 1) - 28


def test_a_foreign_filter_hides_hits_at_worst(tmp_path, small_blocks):
    texts = filtered_texts(random.Random(7), ["gull ", "tern ", "a petrel "])
    keywords = ["petrel", "tern gull", "gull"]
    right = ranking(matcher_of(tmp_path, texts), texts, keywords, 500)
    file = tmp_path / "keywords"
    data = file.read_bytes()
    begin, end = filter_bounds(data, int(KeywordMatcher(file)._borders[-1]), len(texts))
    file.write_bytes(data[:begin] + b"\xff" * (end - begin) + data[end:])
    assert ranking(KeywordMatcher(file), texts, keywords, 500) == right
    for foreign in (bytes(end - begin), random.Random(8).randbytes(end - begin)):
        file.write_bytes(data[:begin] + foreign + data[end:])
        found, held, _ = ranking(KeywordMatcher(file), texts, keywords, 500)
        assert all(held[k] <= right[1][k] for k in keywords)
        assert held["gull"] == right[1]["gull"]  # too short for the filter
        all_counts = {chunk: counts for chunk, _, counts in right[0]}
        assert all(counts.items() <= all_counts[chunk].items() for chunk, _, counts in found)
    for size in (0, 1, end - begin - 1, end - begin + 8):
        file.write_bytes(data[:begin] + bytes(size) + data[end:])
        with pytest.raises(DamagedFileError, match="sizes"):
            KeywordMatcher(file)


def test_a_file_from_before_there_was_a_filter_is_searched(tmp_path, small_blocks):
    texts = filtered_texts(random.Random(9), ["gull ", "tern ", "a petrel "])
    keywords = ["petrel", "tern gull", "gull", "albatross"]
    right = ranking(matcher_of(tmp_path, texts), texts, keywords, 20)
    file = tmp_path / "keywords"
    data = file.read_bytes()
    begin, end = filter_bounds(data, int(KeywordMatcher(file)._borders[-1]), len(texts))
    file.write_bytes((data[:begin] + data[end:]).replace(b"ARAGKW03", b"ARAGKW02"))
    assert ranking(KeywordMatcher(file), texts, keywords, 20) == right
    file.write_bytes(data.replace(b"ARAGKW03", b"ARAGKW02"))
    with pytest.raises(DamagedFileError, match="sizes"):
        KeywordMatcher(file)


def damaged(data, choice):
    """Yield a place and the data with a byte changed there, then a size and the data cut to it, again and again."""
    for _ in range(250):
        place = choice.randrange(len(data))
        yield place, data[:place] + bytes([data[place] ^ 1 << choice.randrange(8)]) + data[place + 1 :]
        size = choice.randrange(len(data))
        yield len(data), data[:size]


def test_damage_to_a_keyword_file_is_an_error_or_changes_counts_only(tmp_path):
    texts = {str(n): f"gull number {n} met a tern" for n in range(20)}
    right = ranking(matcher_of(tmp_path, texts), texts, ["gull", "e"], 5)
    data = (tmp_path / "keywords").read_bytes()
    text_bytes = data.rfind(b"\xff", 0, len(data) - 8 * 61 - 28) + 1
    refused = 0
    for n, (place, changed) in enumerate(damaged(data, random.Random(4))):
        file = tmp_path / str(n)
        file.write_bytes(changed)
        if place >= text_bytes:
            with pytest.raises(DamagedFileError, match="arag verify"):
                KeywordMatcher(file)
            refused += 1
        else:
            ranked, held, total = ranking(KeywordMatcher(file), texts, ["gull", "e"], 5)
            assert abs(held["gull"] - right[1]["gull"]) <= 1
            assert (len(ranked), total) == (5, right[2])
    assert 300 < refused < 500


@pytest.mark.parametrize("borders", [[0, 9, 5], [0, 5, 10**6], [-40, 5, 10], [0, 0, 10], [0, 5, 9], [1, 5, 10]])
def test_a_keyword_file_with_impossible_borders_is_refused_whatever_its_checksum(tmp_path, borders):
    arrays = np.array([*borders, 10, 20, 0, 1], dtype=np.int64).tobytes()
    footer = struct.pack("<8sQQI", b"ARAGKW02", 2, 10, zlib.crc32(arrays))
    (tmp_path / "keywords").write_bytes(b"gull\xfftern\xff" + arrays + footer)
    with pytest.raises(DamagedFileError, match="borders"):
        KeywordMatcher(tmp_path / "keywords")


def test_an_index_says_that_its_keyword_file_was_cut_off(make_index):
    index = make_index({"a": "The gull sank."})
    assert index.keyword_search(["gull"]).total == 1
    os.truncate(keyword_file(index.path, read_manifest(index.path).generation), 0)
    with pytest.raises(IndexFormatError, match="arag verify"):
        index.keyword_search(["gull"])


WORDS = ["gull", "tern", "a", "lantern", "北京", "straße", "i", "petrel"]


def written_words(folder, words):
    """The words of an index that consists of a vocabulary file."""
    file = vocabulary_file(folder, 0)
    write_vocabulary(file, words)
    files = {file.name: (file.stat().st_size, digest(file))}
    manifest = LocalManifest("none", 1, 1_000, "none", "en", packed=False, files=files)
    return file, lambda: TableWords(None, lambda: read_vocabulary(folder, manifest))


def test_the_vocabulary_gives_words_by_length(tmp_path):
    for words in (WORDS, []):
        _, opened = written_words(tmp_path, words)
        vocabulary = opened()
        for shortest in range(-2, 10):
            for longest in range(-2, 10):
                expected = sorted((w for w in words if shortest <= len(w) <= longest), key=lambda w: (len(w), w))
                assert vocabulary.of_length(shortest, longest) == expected


def test_damage_to_a_vocabulary_is_an_error(tmp_path):
    file, opened = written_words(tmp_path, WORDS)
    data = file.read_bytes()
    unsorted = data.replace(b"gull", b"petrel", 1)
    swapped = data.replace(b"gull\ntern", b"tern\ngull", 1)
    for changed in [unsorted, swapped, b"", b"\n", *(changed for _, changed in damaged(data, random.Random(5)))]:
        file.write_bytes(changed)
        with pytest.raises(IndexFormatError, match="arag verify"):
            opened().of_length(1, 9)


CORPUS = {
    "istanbul": "İSTANBUL is large. Istanbul is old.",
    "gross": "Die STRASSE und die Straße sind groß.",
    "cafe": "A café and a cafe\u0301 and a CAFÉ.",
    "china": "他在北京工作。北京是首都。",
    "emoji": "The flag 🇨🇭 waves 😀😀😀.",
    "across": "He met the Duke. Of York he knew\nnothing at all.",
    "vienna": "Vienna was the capital of Austria - Hungary.",
    "ties a": "A tern and a gull.",
    "ties b": "A gull and a tern.",
}


@pytest.fixture(scope="module", params=["folder", "memory", "postgres"])
def corpus_index(request, tmp_path_factory, places):
    folder = tmp_path_factory.mktemp("keywords")
    place = places(request.param, folder / "index")
    corpus = CORPUS | {f"empire {n}": f"Part {n} of Austria - Hungary. It was large." for n in range(4)}
    with ingest(write_corpus(folder / "corpus", corpus), place, embedder=HashEmbeddings()) as index:
        yield index


@pytest.fixture(scope="module")
def corpus_texts(corpus_index):
    return {i: corpus_index.get(i).text for i in corpus_index.chunk_ids()}


@given(
    st.lists(
        st.sampled_from(
            [
                *"i İ ist ß ss strasse É é café 北京 京工 😀 😀😀 🇨 the a tern duke. of gull xyzzy".split(),
                "r. o",
                "w n",
                "new nothing",
            ]
        ),
        min_size=1,
        max_size=5,
        unique_by=str.lower,
    ),
    st.sampled_from(WHITE),
    st.integers(1, 10),
)
def test_search_ranks_as_the_equation_says(corpus_index, corpus_texts, keywords, white, top_k):
    results = corpus_index.keyword_search([keyword.replace(" ", white) for keyword in keywords], top_k)
    assert (entries(results), results.total) == reference(corpus_texts, keywords, top_k)
    assert [(r.keyword, r.chunks) for r in results.keywords] == [(k, holding(corpus_texts, k)) for k in keywords]
    for hit in results.hits:
        assert hit.snippets


@pytest.fixture(scope="module", params=["folder", "memory", "postgres"])
def odd_index(request, tmp_path_factory, places):
    """An index of documents of words, full stops and white space of every kind, and its chunks' texts."""
    choice = random.Random(6)
    letters = ["Grey", "Petrel", "the", "İS", "ΑΣ", "北京。", "x.", "Y?", "\u200b", *WHITE, *WHITE]
    texts = {f"d{n}": "A ship " + "".join(choice.choices(letters, k=choice.randrange(40))) for n in range(60)}
    folder = tmp_path_factory.mktemp("odd")
    place = places(request.param, folder / "index")
    with ingest(write_corpus(folder / "corpus", texts), place, embedder=HashEmbeddings()) as index:
        yield index, {i: index.get(i).text for i in index.chunk_ids()}


@given(st.data())
def test_search_in_odd_texts_ranks_as_the_equation_says(odd_index, data):
    index, texts = odd_index
    keywords = []
    for _ in range(data.draw(st.integers(1, 3))):
        text = data.draw(st.sampled_from(list(texts.values())))
        start = data.draw(st.integers(0, len(text) - 1))
        part = text[start : start + data.draw(st.integers(1, 20))]
        keywords.append(re.sub(r"\s", lambda _: data.draw(st.sampled_from(WHITE)), part))
    distinct = list({folded(k).lower(): folded(k) for k in reversed(keywords) if k.strip()}.values())[::-1]
    if not distinct:
        return
    results = index.keyword_search(keywords, 20)
    wanted, total = reference(texts, distinct, 20)
    assert (entries(results), results.total) == (wanted, total)
    for hit in results.hits:
        shown = [s.text for snippet in hit.snippets for s in snippet.sentences if s.matched]
        assert all(text == folded(text) for text in shown)
        joined = "".join(" ".join(shown).lower().split())  # words may stand in two sentences
        assert all("".join(keyword.lower().split()) in joined for keyword in hit.keyword_counts)


@pytest.mark.parametrize("keyword", ["Duke. Of York", "knew\nnothing", "knew nothing", "knew\xa0\r\nnothing AT"])
def test_a_keyword_matches_across_sentences_and_lines(corpus_index, keyword):
    results = corpus_index.keyword_search([keyword])
    (hit,) = results.hits
    assert hit.chunk_id == "across:0"
    assert hit.score == len(folded(keyword))
    assert hit.keyword_counts == {folded(keyword): 1}
    assert results.keywords[0].keyword == folded(keyword)


@in_any_backend
def test_what_matches_across_sentences_is_shown(make_index):
    filler = " ".join(f"Nothing happened in {n}." for n in range(1600, 1700))
    index = make_index({"a.txt": f"{filler} Orlath met the Duke.\n\nOf York he knew\nnothing. {filler}"})
    results = index.keyword_search(["duke. of york he knew nothing"])
    text = render_keywords(results, show_all(results.hits))
    assert "duke. of york he knew nothing: 1 chunk. All:" in text
    assert (
        "… Nothing happened in 1699. Orlath met the Duke. Of York he knew nothing. Nothing happened in 1600. …" in text
    )


def test_repeated_and_padded_keywords_count_once(corpus_index):
    results = corpus_index.keyword_search(["gull", " GULL ", "", "  ", "Gull\n"])
    assert len(corpus_index.keyword_search(["a gull", "A\nGull", "a \u3000gull"]).keywords) == 1
    assert [r.keyword for r in results.keywords] == ["gull"]
    assert entries(results) == [("ties a:0", 4, {"gull": 1}), ("ties b:0", 4, {"gull": 1})]


def test_one_keyword_may_be_a_string(corpus_index):
    assert corpus_index.keyword_search("gull") == corpus_index.keyword_search(["gull"])


@pytest.mark.parametrize("keywords", [[], [""], [" ", "\n"], ""])
def test_no_keyword_is_an_input_error(corpus_index, keywords):
    with pytest.raises(InputError, match="keyword"):
        corpus_index.keyword_search(keywords)


@pytest.mark.parametrize("top_k", [0, -1])
def test_top_k_below_one_is_an_input_error(corpus_index, top_k):
    with pytest.raises(InputError, match="top_k"):
        corpus_index.keyword_search(["gull"], top_k)


def test_total_counts_chunks_beyond_top_k(corpus_index):
    results = corpus_index.keyword_search(["austria", "gull"], top_k=2)
    assert len(results.hits) == 2
    assert results.total == 7
    assert [r.chunks for r in results.keywords] == [5, 2]


def test_closest_spelling_tells_how_many_chunks_hold_it(corpus_index):
    results = corpus_index.keyword_search(["Austria-Hungary"])
    assert closest(results) == {"Austria-Hungary": [("Austria - Hungary", 5)]}
    assert results.total == 0
    assert results.hits == ()
    assert results.keywords[0].chunks == 0


@in_any_backend
@pytest.mark.parametrize(
    ("texts", "keyword", "term"),
    [
        ({"a": "We sat in the Café Brel."}, "Cafe Brel", ("Café Brel", 1)),
        ({"a": "We sat in the Cafe Brel."}, "Café Brel", ("Cafe Brel", 1)),
        ({"a": "We sat in the Cafe\u0301 Brel."}, "Cafe Brel", ("Cafe\u0301 Brel", 1)),
        ({"a": "The light house is tall.", "b": "A light house."}, "lighthouse", ("light house", 2)),
        ({"a": "The lighthouse is tall."}, "light house", ("lighthouse", 1)),
        ({"a": "The light-house is tall."}, "light house", ("light-house", 1)),
        ({"a": "The king Lothair reigned.", "b": "It was Lothair."}, "Lotahir", ("Lothair", 2)),
        ({"a": "The king Lothair II reigned."}, "Lothiar II", ("Lothair II", 1)),
        ({"a": "He sailed\nwith Captain\n Felisk."}, "Captain-Felisk", ("Captain Felisk", 1)),
        ({"a": "Captain\nFelisk.", "b": "Captain Felisk."}, "Captain-Felisk", ("Captain Felisk", 2)),
        ({"a": "Здесь жил Чайковский."}, "Чайковскии", ("Чайковский", 1)),
        ({"a": "Όμορφος τόπος είναι ο Πειραιεύς."}, "Πειραιευς", ("Πειραιεύς", 1)),
        ({"a": "등대는 김철수가 설계했다."}, "김철슈", ("김철수", 1)),
        ({"a": "북갑 등대의 높이는 42미터이다."}, "북갑등대", ("북갑 등대", 1)),
        ({"a": "灯塔由工程师王晓明设计。", "b": "王晓明住在杭州。"}, "王小明", ("王晓明", 2)),
        ({"a": "灯塔由工程师王晓明设计。"}, "王晓名", ("王晓明", 1)),
        ({"a": "灯塔由工程师王晓明设计。"}, "张晓明", ("王晓明", 1)),
        ({"a": "记者参观了北海博物馆和码头。"}, "北京博物馆", ("北海博物馆", 1)),
        ({"a": "他写了《海岸工程记》一书。"}, "《海岸工程记录》", ("海岸工程记", 1)),
        ({"a": "编号为BH-07的机车。"}, "ＢＨ－０７", ("BH-07", 1)),
        ({"a": "编号为ＢＨ－０７的机车。"}, "BH-07", ("ＢＨ－０７", 1)),
        ({"a": "カスタマーサービスは九時に始まる。"}, "カスタマサービス", ("カスタマーサービス", 1)),
        ({"a": "毎晩、データベースは更新される。"}, "ﾃﾞｰﾀﾍﾞｰｽ", ("データベース", 1)),
        (
            {"a": "彼はレオナルド・ダ・ヴィンチの図面を見た。"},
            "レオナルド・ダ・ビンチ",
            ("レオナルド・ダ・ヴィンチ", 1),
        ),
        ({"a": "港は東京電力株式会社が運営する。"}, "東京電力会社", ("東京電力", 1)),
    ],
)
def test_closest_terms(make_index, texts, keyword, term):
    results = make_index(texts).keyword_search([keyword])
    assert results.keywords[0].chunks == 0
    assert term in closest(results)[keyword]


@in_any_backend
def test_a_keyword_without_its_ending_matches_and_needs_no_closest_term(make_index):
    index = make_index({"a": "The lanterns of the isle.", "b": "One lantern."})
    assert closest(index.keyword_search(["lantern"])) == {"lantern": []}
    assert index.keyword_search(["lantern"]).total == 2


@in_any_backend
def test_plural_of_a_singular_in_the_corpus_is_offered_it(make_index):
    index = make_index({"a": "One lantern burned.", "b": "No lantern burned."})
    assert ("lantern", 2) in closest(index.keyword_search(["lanterns"]))["lanterns"]


@in_any_backend
def test_own_words_are_offered_where_nothing_else_is(make_index):
    texts = {"a": "Orlath went to sea.", "b": "Tamsin stayed.", "c": "Tamsin slept."}
    others = {f"d{n}": f"Nobody saw number {n}." for n in range(40)}
    results = make_index(texts | others).keyword_search(["Orlath Tamsin"])
    assert closest(results) == {"Orlath Tamsin": [("Orlath", 1), ("Tamsin", 2)]}


@in_any_backend
def test_the_keyword_without_its_brackets_is_a_closest_term_only_where_more_chunks_hold_it(make_index):
    index = make_index({"a.txt": "The Grey Petrel (packet schooner) sank.", "b.txt": "A crane (bird) and a crane."})
    keywords = ["Grey Petrel (packet schooner)", "(bird)", "“Grey Petrel”", "(crane)"]
    assert closest(index.keyword_search(keywords)) == {
        "Grey Petrel (packet schooner)": [],
        "(bird)": [],
        "“Grey Petrel”": [("Grey Petrel", 1)],
        "(crane)": [("crane", 1)],
    }


def test_frequent_keywords_get_no_closest_terms(corpus_index):
    assert closest(corpus_index.keyword_search(["Austria"])) == {"Austria": []}


@pytest.mark.parametrize("keyword", ["南京", "京", "上海市"])
def test_chinese_keywords_of_which_no_part_occurs_have_no_closest_terms(corpus_index, keyword):
    assert closest(corpus_index.keyword_search([keyword]))[keyword] == []


@in_any_backend
def test_the_longest_parts_of_a_chinese_keyword_are_closest_terms(make_index):
    others = {f"d{n}": f"第{n}号码头的记录。这里有什么船？" for n in range(9)}
    index = make_index({"a": "王晓明设计了灯塔。", "b": "王晓明的职务是工程师。"} | others)
    assert closest(index.keyword_search(["王晓明写过什么"])) == {"王晓明写过什么": [("王晓明", 2)]}


@in_any_backend
def test_voiced_sounds_are_other_letters_in_japanese(make_index):
    index = make_index({"a": "ビンチ村の橋。", "b": "レストランのパンフレット。"})
    for keyword in ("ピンチ", "ハンフレット"):
        assert [t for r in index.keyword_search([keyword]).keywords for t in r.closest if t.respelled] == []


def test_words_are_looked_up_as_the_full_text_table_stores_them(make_index):
    text = "Чайковский ёлка Αθήνα ψυχής 서울특별시 ガラス مدرسة Łódź Ærø straße Tiếng"
    words = make_index({"a": text})._snapshot._generation.words()
    assert [word for word in find_words(text) if not words.holds(word)] == []


@in_any_backend
@pytest.mark.parametrize("scoped", [False, True])
def test_chunks_with_all_words_of_a_keyword_are_found_if_they_are_few(make_index, scoped):
    words = ["mara", "Vellin", "Straße", "o'clock", "x" * 300, "Łódź", "42", 'a"b']
    draw = random.Random(1)
    texts = {f"d{n}": ". And ".join(draw.sample(words, 3)) for n in range(16)}
    index = make_index({i: f"{text}." for i, text in texts.items()})
    if scoped:
        index = index.scoped(Scope(documents=list(texts)[2:]))
    held = {i: set(find_words(index.get(i).text)) for i in index.chunk_ids()}
    seen = set()
    for keyword in map(" of ".join, permutations(words, 2)):
        results = index.keyword_search([keyword], by_coverage=True)
        expected = {i for i in held if held[i].issuperset(telling_words(keyword))}
        seen.add(len(expected))
        few = expected if len(expected) <= 2 else set()
        assert {hit.chunk_id for hit in results.hits if keyword in hit.keyword_counts} == few
        assert set(results.keywords[0].apart) == few
        assert results.total == len(few)
    assert {1, 2, 3} <= seen


@in_any_backend
def test_closest_terms_never_change_the_counts(make_index):
    texts = {"a": "The Café Brel.", "b": "The Cafe Brel. The Cafe Brel.", "c": "Cafes of Brel."}
    index = make_index(texts)
    results = index.keyword_search(["cafe brel"])
    assert entries(results) == [("b:0", 18, {"cafe brel": 2})]
    assert [(r.keyword, r.chunks) for r in results.keywords] == [("cafe brel", 1)]
    assert closest(results) == {"cafe brel": [("Café Brel", 1)]}


@pytest.mark.parametrize(
    "keyword",
    [
        "x" * 100_000,
        "gull " * 20_000,
        "\ud800",
        "gull\udfff",
        '"',
        '"gull',
        "*",
        "gu*",
        "(",
        "(gull",
        "NEAR",
        "NEAR(gull, tern)",
        "gull AND tern",
        "gull OR",
        "NOT gull",
        "text:gull",
        "^gull",
        "{a b}: gull",
        "gull + tern",
        "\x00",
        "gu\x00ll",
        "';--",
        "\\",
        "%",
        "_",
        "\u0301",
        "\u200b",
    ],
)
def test_odd_keywords_are_matched_like_any_other(corpus_index, corpus_texts, keyword):
    results = corpus_index.keyword_search([keyword])
    assert (entries(results), results.total) == reference(corpus_texts, [keyword.strip()], 5)


def test_a_thousand_keywords(corpus_index, corpus_texts):
    keywords = [f"word{n}" for n in range(997)] + ["gull", "Austrai", "北京"]
    results = corpus_index.keyword_search(keywords)
    assert entries(results) == reference(corpus_texts, keywords, 5)[0]
    assert len(results.keywords) == 1_000


def test_real_corpus_ranks_as_the_equation_says(example_index):
    texts = {i: example_index.get(i).text for i in example_index.chunk_ids()}
    for keywords in (["Grey Petrel"], ["Varrowby", "lighthouse"], ["the", "Lanthry", "1775"]):
        results = example_index.keyword_search(keywords, top_k=20)
        assert (entries(results), results.total) == reference(texts, keywords, 20)
