"""Terms that a keyword may mean, where the corpus holds it rarely or not at all."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from arag.retrieval.search.suggestions import telling_words
from arag.retrieval.tools.fused import find_passages
from arag.retrieval.tools.sets import make_tools
from arag.text.normalise import words


def closest(results):
    return {report.keyword: [(t.text, t.chunks) for t in report.closest] for report in results.keywords}


@pytest.mark.parametrize(
    ("texts", "keyword", "term"),
    [
        ({"a": "We sat in the Cafe Brel."}, "Café Brel", ("Cafe Brel", 1)),
        ({"a": "We sat in the Cafe\u0301 Brel."}, "Cafe Brel", ("Cafe\u0301 Brel", 1)),
        ({"a": "The light house is tall.", "b": "A light house."}, "lighthouse", ("light house", 2)),
        ({"a": "The lighthouse is tall."}, "light house", ("lighthouse", 1)),
        ({"a": "Two data bases on one base."}, "database", ("data base", 1)),
        ({"a": "To log in, press a key."}, "login", ("log in", 1)),
        ({"a": "Austria - Hungary was an empire."}, "Austria–Hungary", ("Austria - Hungary", 1)),
        ({"a": 'The album (Orlath) by "Joss" Tamsin.'}, "Joss Tamsin", ('Joss" Tamsin', 1)),
        ({"a": "Здесь жил Чайковский."}, "Чайковскии", ("Чайковский", 1)),
        ({"a": "编号为BH-07的机车。"}, "ＢＨ－０７", ("BH-07", 1)),
        ({"a": "It cost $5,000.", "b": "A fort of $5,000,000."}, "5000", ("5,000", 2)),
        ({"a": "And 45'321.99 in all."}, "45321.99", ("45'321.99", 1)),
        ({"a": "In all 1234567.5 tons."}, "1,234,567.5", ("1234567.5", 1)),
        ({"a": "It cost 1,234.50 kr.", "b": "Room 1234, 50 beds; 1,234.51 kr."}, "1234.5", ("1,234.50", 1)),
        ({"a": "Er kostet 1.234,50 Euro."}, "1234.5", ("1.234,50", 1)),
        ({"a": "It weighs 1234.5 kg."}, "1,234.50", ("1234.5", 1)),
        ({"a": "It cost 1,234,567 crowns."}, "1.234.567", ("1,234,567", 1)),
        ({"a": "It was on 31/12/2024."}, "31.12.2024", ("31/12/2024", 1)),
        ({"a": "The sum is 0.50 kr."}, "0,5", ("0.50", 1)),
        ({"a": "It weighs 0.5 kg.", "b": "Model 05", "c": "The 05-1 is 0 5."}, "0,5", ("0.5", 1)),
        ({"a": "The train leaves at 10:30."}, "10.30", ("10:30", 1)),
        ({"a": "It is 0.5 % of all.", "b": "A share of 0.5."}, "0,5 %", ("0.5 %", 1)),
        ({"a": "Pages of 1024 bytes."}, "1,024", ("1024", 1)),
        ({"a": "Pages of 1024 bytes."}, "1 024", ("1024", 1)),
        ({"a": "C'est l’écran."}, "l'écran", ("l’écran", 1)),
        ({"a": "The thread M8 x 1.25 is coarse."}, "M8x1.25", ("M8 x 1.25", 1)),
        ({"a": "The thread M8x1.25 is coarse."}, "M8 x 1.25", ("M8x1.25", 1)),
        ({"a": "A screen of 1024×768."}, "1024 x 768", ("1024×768", 1)),
        ({"a": "A screen of 1024 x 768."}, "1024×768", ("1024 x 768", 1)),
        ({"a": "All texts are UTF-8."}, "UTF8", ("UTF-8", 1)),
        ({"a": "It needs Python 3.11."}, "Python3.11", ("Python 3.11", 1)),
        ({"a": "It has 5 % alcohol.", "b": "In 5 shops.", "c": "In 5 towns."}, "5%", ("5 %", 1)),
        ({"a": "It has 12% alcohol.", "b": "In 12 shops."}, "12 %", ("12%", 1)),
        ({"a": "Das kostet 2000 €.", "b": "Der Ort hat 2 000 Einwohner."}, "2.000€", ("2000 €", 1)),
        ({"a": "It costs €500.", "b": "A town of 500."}, "500 €", ("€500", 1)),
        ({"a": "At most 20 km/h.", "b": "It is 20 km long."}, "20km/h", ("20 km/h", 1)),
        ({"a": "A disk of 5.5 GB.", "b": "In 5 GB."}, "5.5GB", ("5.5 GB", 1)),
    ],
)
def test_another_spelling_of_the_same_letters_is_meant(make_index, texts, keyword, term):
    (report,) = make_index(texts).keyword_search([keyword]).keywords
    assert (report.chunks, [(t.text, t.chunks) for t in report.closest]) == (0, [term])
    assert report.closest[0].respelled


@pytest.mark.parametrize(
    ("word", "text"), [("inset", "Set it in settings."), ("Tresser", "Ser tres, et autres services.")]
)
def test_two_words_are_no_spelling_of_a_word_where_they_end_inside_another(make_index, word, text):
    """Not even a frequent one, of which not each place is read."""
    index = make_index({"a": f"A filter: {word}."} | {f"d{n}": text for n in range(60)})
    assert closest(index.keyword_search([word])) == {word: []}


@pytest.mark.parametrize(
    "keyword",
    ["0,5", "8,50", "12.5", "0.125", "2,71828", "1.234,50", "0,5 mm", "C#", "1,52 %", "850%", "$125", "850 €", "5a"],
)
def test_pieces_of_a_number_or_one_letter_are_no_spelling(make_index, keyword):
    text = "Model 05 of 850, 125 and 152, 0125, 271828, 123450 and 1234-50; the letter C; 8-50, 0 5 a day and 12:5."
    assert closest(make_index({"a": text}).keyword_search([keyword])) == {keyword: []}


def test_a_frequent_word_is_found_with_both_apostrophes(make_index):
    typed = {f"t{n}": "They don't mind." for n in range(5)}
    printed = {f"p{n}": "We don’t mind." for n in range(4)}
    keyword_search = make_tools(make_index(typed | printed), names="paper", top_k=9)[0]
    assert keyword_search.invoke({"keywords": ["don't"]}).startswith("don't: 5 chunks (and 4 chunks as don’t).")
    assert keyword_search.invoke({"keywords": ["don’t"]}).startswith("don’t: 4 chunks (and 5 chunks as don't).")


def test_parts_of_a_word_in_katakana_are_words_of_the_corpus(make_index):
    index = make_index({"a": "スクリーンは明るい。", "b": "ショットを撮る。", "c": "スクリプトとショートケーキ。"})
    found = index.keyword_search(["スクリーンショット", "スクリーショー"], ranking="bm25")
    assert closest(found) == {"スクリーンショット": [("スクリーン", 1), ("ショット", 1)], "スクリーショー": []}


@pytest.mark.parametrize(
    ("query", "missing"), [("1,024", {"1,024": ["1024"]}), ("1 024", {"1 024": ["1024"]}), ("l'écran", {})]
)
def test_on_a_page_passages_with_the_other_spelling_come_first(make_index, query, missing):
    others = {f"d{n}": f"Table {n} of l and a." for n in range(9)}
    index = make_index({"x": "Pages of 1024 bytes.", "y": "C'est l’écran."} | others)
    passages, not_found = find_passages(index, query)
    wanted = "y:0" if query == "l'écran" else "x:0"
    assert [passage.shown.hit.chunk_id for passage in passages if passage.group == "words"] == [wanted]
    assert (passages[0].group, not_found) == ("words", missing)


@pytest.mark.parametrize("version", ["1.6.2", "3.6.0", "10.0.19"])
def test_the_number_of_a_version_is_only_itself(make_index, version):
    index = make_index({"a": "Figure 16.2 shows 360 degrees in 3.60 parts.", "b": "1/6/2, 10019 and 100.19."})
    assert closest(index.keyword_search([version])) == {version: []}


@pytest.mark.parametrize(
    ("texts", "keyword", "terms"),
    [
        ({"a": "The king Lothair II reigned."}, "Lothiar II", [("Lothair II", 1), ("Lothair", 1)]),
        ({"a": "One lantern burned.", "b": "No lantern burned."}, "lanterns", [("lantern", 2)]),
        (
            {"a": "La porte est là.", "b": "Les portes.", "c": "Il es là."},
            "portees",
            [("portes", 1)],
        ),
        ({"a": "Здесь жил Чайковский."}, "Чайкофский", [("Чайковский", 1)]),
        ({"a": "Admiral Twin is a band.", "b": "Twin."}, "Admiral Twin Theatre", [("Admiral Twin", 1)]),
        ({"a": "The rarest of wrestlers."}, " ".join(["nobody saw the", *"abcdefgh", "wrestlers"]), []),
        ({"a": "A wrestler."}, "the wrestler from Japan who left the ring of honour", [("wrestler", 1)]),
    ],
)
def test_similar_words_or_parts_of_a_keyword_are_offered(make_index, texts, keyword, terms):
    """The most similar ones, and of parts the rarest, which are found in a few of many chunks."""
    others = {f"d{n}": f"Nobody saw number {n}." for n in range(40)}
    (report,) = make_index(texts | others).keyword_search([keyword]).keywords
    assert (report.chunks, [(t.text, t.chunks) for t in report.closest]) == (0, terms)
    assert not any(term.respelled for term in report.closest)


def test_a_frequent_word_is_offered_before_a_rare_typo_of_it(make_index):
    index = make_index({f"d{n}": "Run apt-get once." for n in range(25)} | {"typo": "Run apt-gett once."})
    (report,) = index.keyword_search(["apt-getz"]).keywords
    assert [(term.text, term.chunks) for term in report.closest[:2]] == [("apt-get", 26), ("apt-gett", 1)]


@pytest.mark.parametrize(("keyword", "shown"), [("dpkgg", "dpkg (25 chunks)"), ("dpkgg runs", "dpkg runs (25 chunks)")])
def test_a_common_word_is_named_if_the_keyword_is_a_typo_of_it(make_index, keyword, shown):
    keyword_search = make_tools(make_index({f"d{n}": "The dpkg runs once." for n in range(25)}), names="paper")[0]
    assert keyword_search.invoke({"keywords": [keyword]}).startswith(f"{keyword}: none (closest: {shown}).")


@pytest.mark.parametrize("keyword", ["南京", "'", "\ud800", "x" * 10_000])
def test_what_has_nothing_close_gets_no_terms(make_index, keyword):
    index = make_index({"a": "ビンチ村の橋。", "c": "The light house."})
    assert closest(index.keyword_search([keyword])) == {keyword: []}


def test_the_keyword_without_its_brackets_is_offered_only_where_more_chunks_hold_it(make_index):
    index = make_index({"a.txt": "The Grey Petrel (packet schooner) sank.", "b.txt": "A crane (bird) and a crane."})
    keywords = ["Grey Petrel (packet schooner)", "(bird)", "“Grey Petrel”", "(crane)"]
    assert closest(index.keyword_search(keywords)) == {
        "Grey Petrel (packet schooner)": [],
        "(bird)": [],
        "“Grey Petrel”": [("Grey Petrel", 1)],
        "(crane)": [("crane", 1)],
    }


# --- the words of a keyword, apart from each other ---


def test_chunks_with_all_words_of_a_keyword_are_found_if_they_are_few(make_index):
    vocabulary = ["mara", "Vellin", "Straße", "o'clock", "x" * 300, "Łódź", "42", 'a"b', "art"]
    draw = random.Random(1)
    texts = {f"d{n}": ". And ".join(draw.sample(vocabulary, 3)) for n in range(16)}
    index = make_index({i: f"{text} (party)." for i, text in texts.items()})
    held = {i: set(words(index.get(i).text)) for i in index.chunk_ids()}
    seen = set()
    for keyword in map(" of ".join, permutations(vocabulary, 2)):
        results = index.keyword_search([keyword], ranking="bm25")
        wanted = telling_words(keyword)
        expected = {i for i in held if wanted and held[i].issuperset(wanted)}
        seen.add(len(expected))
        few = expected if len(expected) <= 2 else set()
        assert {hit.chunk_id for hit in results.hits if keyword in hit.scattered} == few
    assert {1, 2, 3} <= seen


def test_words_apart_may_have_other_diacritics(make_index):
    index = make_index({"a": "Mára bought art in winter.", "b": "Mara Émile", "c": "The start."})
    assert index.keyword_search("Émile of the art", ranking="bm25").hits == ()
    (hit,) = index.keyword_search(["emile of Mara"], ranking="bm25").hits
    assert (hit.chunk_id, list(hit.scattered)) == ("b:0", ["emile of Mara"])
