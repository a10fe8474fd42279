"""Chunks are ranked by keywords as the paper's equation says, or by how many keywords they cover."""

from __future__ import annotations

import os
import re
import struct
import unicodedata
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import StorageError
from arag.retrieval.storage.keywords import KeywordTexts, write_keywords


@lru_cache(10_000)
def folded(text):
    return re.sub(r"\s+", " ", text).strip()


def lower(text):
    return folded(text).replace("İ", "I").lower()


def count(text, keyword):
    return lower(text).count(lower(keyword))


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


WHITE = [" ", "\n", "\r\n", "\t", "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2009", "\u2028", "\u2029"]
WHITE += ["\u202f", "\u3000", " \n ", "\n\n"]
NOT_WHITE = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u180e", "\xad", "\x00", "\x1b"]
ODD = [*"BiIsSσΣς.-İıßẞé北京😀ﬁ", *WHITE, *NOT_WHITE, "e\u0301", "👩\u200d👧", "aa"]
LETTERS = st.sampled_from([*"aAb "]) | st.sampled_from(ODD)
STRINGS = st.lists(LETTERS, max_size=12).map("".join)
TERMS_OF_LETTERS = st.lists(LETTERS, max_size=3).map("".join).filter(str.strip)
KEYWORDS = st.lists(TERMS_OF_LETTERS, min_size=1, max_size=4, unique_by=lambda text: folded(text).lower())


def texts_of(folder, texts):
    """The keyword file of some texts by id; their chunks are numbered 10, 20, ... in the order given."""
    numbers = {chunk_id: 10 * n for n, chunk_id in enumerate(texts, start=1)}
    write_keywords(folder / "keywords", (texts[i] for i in sorted(texts)))
    return KeywordTexts(folder / "keywords", [numbers[i] for i in sorted(texts)])


@given(st.lists(STRINGS, max_size=12), KEYWORDS, st.integers(1, 5), st.sets(st.integers(0, 11)))
def test_chunks_are_ranked_as_the_equation_says(tmp_path, texts, keywords, top_k, inside):
    named = {f"c{(7 * n) % 12}": text for n, text in enumerate(texts)}
    whole = texts_of(tmp_path, named)
    part = {chunk_id: text for n, (chunk_id, text) in enumerate(named.items()) if n in inside}
    for held, some in ((whole, named), (whole.limited_to([10 * n + 10 for n in inside]), part)):
        found = held.rank(keywords, top_k)
        ranked = [(list(named)[r.row_id // 10 - 1], r.score, r.counts) for r in found.chunks]
        assert (ranked, found.total) == reference(some, keywords, top_k)
        assert found.document_frequency == {k: holding(some, k) for k in keywords}
        assert held.count_chunks(keywords) == [holding(some, k) for k in keywords]
        both = [i for i in sorted(some) if all(count(some[i], k) for k in keywords)]
        assert [list(named)[n // 10 - 1] for n in held.holding_all(keywords, top_k)] == both[:top_k]


WORDS = "“all” all’s 全all— all tall walls AML aml. é éall 北京 all-in 1 10 the".split()
WORDS += "xếp x ＴＡＭＬ ＡＭＬ 1กรุงเทพ1 서울은 서울1 घर। घरों سفينة، سفينتنا տուն։".split()
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=10)
TERMS = st.lists(
    st.sampled_from("all AML é 北 1 the al tall all-in . x ＡＭＬ กรุง 서울 घर سفين سفينة տուն".split()),
    min_size=1,
    max_size=3,
    unique=True,
)


def count_words(keyword, text):
    """Count a keyword where no letter or digit continues it, apart from a plural's ending; the plainest way."""
    if not (is_letter(keyword[0]) or is_letter(keyword[-1])):
        return text.count(keyword)
    count, at = 0, text.find(keyword)
    while at >= 0:
        end = at + len(keyword)
        is_inside = is_letter(keyword[0]) and is_letter(text[at - 1 : at])
        endings = ("es", "s", "") if is_letter(keyword[-1]) else ("",)
        ends = [end + len(e) for e in endings if text.startswith(e, end)]
        ends = [end for end in ends if not is_letter(keyword[-1]) or not is_letter(text[end : end + 1])]
        fits = not is_inside and bool(ends)
        count += fits
        at = text.find(keyword, ends[0] if fits else at + 1)
    return count


def is_letter(character):
    """Whether letters beside a character make one word with it; at the ends of a text there is none."""
    if not character:
        return False
    script = unicodedata.name(character, "").removeprefix("HALFWIDTH ").partition(" ")[0]
    is_spaced = script not in {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "MYANMAR", "KHMER"}
    return is_spaced and unicodedata.category(character)[0] in "LMN"


@pytest.mark.parametrize(
    ("keyword", "as_word", "inside"),
    [
        ("กรุงเทพ", ["ไปกรุงเทพมหานคร", "1กรุงเทพ2", "aกรุงเทพb"], []),  # Thai
        ("ລາວ", ["ປະເທດລາວງາມ", "1ລາວ2"], []),  # Lao
        ("ရန်ကုန်", ["မြို့ရန်ကုန်သည်", "1ရန်ကုန်2"], []),  # Burmese
        ("ភ្នំពេញ", ["នៅភ្នំពេញជា", "1ភ្នំពេញ2"], []),  # Khmer
        ("서울", ["서울은", "1서울2"], []),
        (unicodedata.normalize("NFD", "서울"), [unicodedata.normalize("NFD", "1서울은")], []),
        ("ﾎﾝｼﾞﾂ", ["1ﾎﾝｼﾞﾂﾊ2"], []),
        ("𠀀𠀁", ["1𠀀𠀁𠀂"], []),
        ("ＡＭＬ", ["これはＡＭＬです", "ＡＭＬ．"], ["ＴＡＭＬ", "ＡＭＬ２"]),
        ("x", ["x", "“x”"], ["xếp", "ẽx"]),  # Vietnamese
        ("घर", ["घर।", "घर, घर"], ["घरों", "घरेलू"]),  # Hindi
        ("سفينة", ["سفينة، بحر", "سفينة؟"], ["سفينةx", "السفينة"]),  # Arabic
        ("տուն", ["տուն։"], ["տունը"]),  # Armenian
        ("ლამპა", ["ლამპა."], ["ლამპარი"]),  # Georgian
    ],
)
def test_what_is_beside_a_keyword_matters_in_scripts_with_spaces_between_words(tmp_path, keyword, as_word, inside):
    for text in as_word:
        assert texts_of(tmp_path, {"a": text}).rank([keyword], 1, ranking="bm25").as_word == {keyword: 1}, text
    for text in inside:
        assert texts_of(tmp_path, {"a": text}).rank([keyword], 1, ranking="bm25").as_word == {keyword: 0}, text


@given(TEXTS, TERMS, st.integers(1, 4), st.none() | st.sets(st.integers(1, 10)))
def test_chunks_are_ranked_by_coverage_as_the_plainest_way_does(tmp_path, texts, keywords, top_k, inside):
    named = {f"c{n}": text for n, text in enumerate(texts)}
    held = texts_of(tmp_path, named)
    if inside is not None:
        held = held.limited_to([10 * n for n in inside])
        named = {i: text for n, (i, text) in enumerate(named.items(), start=1) if n in inside}
    found = held.rank(keywords, top_k, ranking="bm25")
    scores, firsts, as_word = dict.fromkeys(named, 0.0), [], {}
    for keyword in keywords:
        counts = {i: count(text, keyword) for i, text in named.items()}
        if any(counts.values()):
            words = {i: count_words(lower(keyword), lower(text)) for i, text in named.items()}
            as_word[keyword] = sum(c > 0 for c in words.values())
            used = words if as_word[keyword] else counts
            array, holding = np.array(list(used.values())), sum(c > 0 for c in used.values())
            weights = np.log1p(len(named) / holding) * array / (array + 0.5)
            scores = {i: score + weight for (i, score), weight in zip(scores.items(), weights.tolist(), strict=True)}
            firsts.append([i for i in named if used[i]])
    order = sorted((i for i in named if scores[i]), key=lambda i: (-scores[i], i))
    best = {next(i for i in order if i in first) for first in firsts}
    expected = [i for place, i in enumerate(order) if place < top_k or i in best]
    assert [f"c{r.row_id // 10 - 1}" for r in found.chunks] == expected
    assert [r.score for r in found.chunks] == pytest.approx([scores[i] for i in expected])
    assert found.as_word == as_word


def test_a_keyword_file_that_is_not_one_of_these_chunks_is_refused(tmp_path):
    texts_of(tmp_path, {"a": "some text", "b": "more text"})
    file, data = tmp_path / "keywords", (tmp_path / "keywords").read_bytes()
    for size in (0, 1, 31, -1):
        file.write_bytes(data[:size])
        for source in (file, data[:size]):
            with pytest.raises(ValueError, match=r"truncated|impossible|empty"):
                KeywordTexts(source, [1, 2])
    with pytest.raises(ValueError, match="of other chunks"):
        KeywordTexts(data, [1, 2, 3])
    for ends in ([9, 5], [5, 10**6], [-40, 10], [5, 9]):
        wrong = b"gull\xfftern\xff" + np.asarray(ends, dtype="<i8").tobytes() + struct.pack("<8sQ", b"ARAGKW06", 2)
        with pytest.raises(ValueError, match="borders"):
            KeywordTexts(wrong, [1, 2])
    huge = [2**63 - 1, -(2**63), -1, 10]  # each is one more than the last, or so, in 64 bits
    wrong = b"gull\xfftern\xff" + np.asarray(huge, dtype="<i8").tobytes() + struct.pack("<8sQ", b"ARAGKW06", 4)
    with pytest.raises(ValueError, match="borders"):
        KeywordTexts(wrong, [1, 2, 3, 4])
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(OSError, match="not a file"):  # and it is not waited for
        KeywordTexts(file, [])


def test_a_keyword_file_that_is_cut_off_while_it_is_open_is_noticed(tmp_path):
    held = texts_of(tmp_path, {str(n): "a gull " * 1_000 for n in range(9)})
    os.truncate(tmp_path / "keywords", 1_000)
    for search in (
        lambda k: held.count_chunks([k]),
        held.holds_word,
        lambda k: held.rank([k], 1),
        lambda k: held.holding_all([k], 1),
    ):
        with pytest.raises(StorageError, match="truncated"):
            search("gull")


# --- through an index ---


def test_keywords_match_across_sentences_and_lines_and_none_is_an_expression(make_index):
    across = "He met the Duke. Of York he knew\nnothing at all."
    index = make_index({"across": across, "ties a": "A tern and a gull.", "ties b": "A gull and a tern."})
    texts = {chunk_id: index.get(chunk_id).text for chunk_id in index.chunk_ids()}
    odd = ("x" * 100_000, "gull\udfff", '"gull', "gu*", "gu\x00ll", "%")
    for keyword in ("Duke. Of York", "knew\xa0\r\nnothing AT", *odd):
        results = index.keyword_search([keyword])
        entries = [(hit.chunk_id, hit.score, hit.keyword_counts) for hit in results.hits]
        expected, total = reference(texts, [folded(keyword)], 5)
        assert (entries, results.total) == (expected, total)


def test_repeated_and_padded_keywords_count_once_and_one_may_be_a_string(make_index):
    index = make_index({"a": "A tern and a gull.", "b": "A gull and a tern."})
    results = index.keyword_search(["gull", " GULL ", "", "  ", "Gull\n"])
    assert [r.keyword for r in results.keywords] == ["gull"]
    assert [(hit.chunk_id, hit.score) for hit in results.hits] == [("a:0", 4), ("b:0", 4)]
    assert index.keyword_search("gull") == results
    assert len(index.keyword_search(["a gull", "A\nGull", "a \u3000gull"]).keywords) == 1
