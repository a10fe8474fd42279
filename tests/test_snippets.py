from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.ingest.chunking import chunk_document, pack_documents
from arag.ingest.documents import Document
from arag.retrieval.layout import find_rows
from arag.retrieval.presentation import show_all
from arag.retrieval.render import render_keywords, render_semantic
from arag.retrieval.snippets import choose_keyword_snippets, choose_passages, choose_semantic_snippets
from arag.retrieval.text import fold

FILLER = " ".join(f"Nothing of note happened in the year {n} on the islands." for n in range(1600, 1620))


def count_words(texts):
    return [len(text.split()) for text in texts]


def chunk_of(text, title=""):
    (chunk,) = chunk_document(Document("doc", title, text, "doc.txt"), chunk_tokens=100_000, count=count_words)
    return chunk


def packed(**texts):
    documents = [Document(name, f"Title {name}", text, "docs.jsonl") for name, text in texts.items()]
    return pack_documents(documents, count=count_words)


def by_keywords(chunk, *keywords, is_best=False, **rarity):
    """Show a chunk's keywords, each as rare as it was given before."""
    held = {k: rarity.get(k, n) for n, k in enumerate(keywords)}
    return choose_keyword_snippets(chunk, list(keywords), held, is_best=is_best)


def shown(snippets):
    return [sentence.text for snippet in snippets for sentence in snippet.sentences]


def matched(snippets):
    return [sentence.text for snippet in snippets for sentence in snippet.sentences if sentence.matched]


def test_every_keyword_gets_a_sentence_even_behind_many_of_a_frequent_one():
    often = [f"The ship sailed again in the year {n}." for n in range(9)]
    text = " ".join([*often, FILLER, "Then Orlath drowned.", "Then Tamsin wept.", FILLER])
    snippets, more = by_keywords(chunk_of(text), "ship", "Orlath", "Tamsin", ship=50, Orlath=1, Tamsin=2)
    assert matched(snippets) == [often[0], "Then Orlath drowned.", "Then Tamsin wept."]
    assert more == 8


def test_more_than_five_keywords_get_a_sentence_each():
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    text = FILLER + " " + " ".join(f"There is number {word} of all." for word in words)
    snippets, more = by_keywords(chunk_of(text), *words)
    assert matched(snippets) == [f"There is number {word} of all." for word in words]
    assert more == 0


def test_the_rarest_keyword_fills_up_the_rest():
    text = " ".join(
        [f"The ship left with all of its passengers in {n}." for n in range(6)]
        + [f"Orlath rested in {n}." for n in range(6)]
        + [FILLER]
    )
    snippets, more = by_keywords(chunk_of(text), "ship", "Orlath", ship=9, Orlath=2)
    assert matched(snippets) == [
        "The ship left with all of its passengers in 0.",
        "Orlath rested in 0.",
        "Orlath rested in 1.",
    ]
    assert more == 9


def test_a_sentence_with_several_keywords_comes_first():
    often = " ".join(f"The ship left in {n}." for n in range(4))
    text = f"{often} {FILLER} Orlath slept. {FILLER} Orlath saw the ship and Tamsin. {FILLER} Tamsin wept."
    snippets, _ = by_keywords(chunk_of(text), "ship", "Orlath", "Tamsin")
    assert "Orlath saw the ship and Tamsin." in matched(snippets)
    assert len(matched(snippets)) == 3


def test_a_sentence_that_begins_with_the_keyword_comes_before_one_that_mentions_it():
    text = (
        f"{FILLER} They met Orlath. They saw Orlath. They fed Orlath. {FILLER} Orlath was a painter of ships. {FILLER}"
    )
    snippets, _ = by_keywords(chunk_of(text), "orlath")
    assert "Orlath was a painter of ships." in matched(snippets)


TABLE = """Consolidated Balance Sheets
In millions | 2022 | 2021
Assets:
Cash | $ | 12,945 $ | 9,408
Inventories | 19,090 | 17,760
Total assets | $ | 228,275 $ | 232,999"""


def test_a_row_of_a_table_brings_the_header_of_its_columns():
    prose = f"Total assets grew, as the notes on total assets say. {FILLER}"
    (snippet,), _ = by_keywords(chunk_of(f"{prose}\n\n{TABLE}\n\n{FILLER}"), "total assets")
    lines = [s.text for s in snippet.sentences]
    assert "In millions | 2022 | 2021" in " ".join(lines)
    assert "Total assets | $ | 228,275 $ | 232,999" in lines
    assert "Cash | $ | 12,945 $ | 9,408" not in lines


def test_rows_whose_labels_are_in_a_query_are_found_by_meaning_too():
    chunk = chunk_of(f"{FILLER}\n\n{TABLE}\n\n{FILLER}")
    (snippet,), _ = choose_semantic_snippets(chunk, {0: 0.5}, "What were the total assets and inventories?")
    lines = [s.text for s in snippet.sentences if s.matched]
    assert lines[1:] == ["Inventories | 19,090 | 17,760", "Total assets | $ | 228,275 $ | 232,999"]


def test_one_sentence_may_serve_several_keywords():
    text = f"The ship was there. {FILLER} Orlath saw the ship. Orlath slept. {FILLER}"
    snippets, more = by_keywords(chunk_of(text), "ship", "Orlath", ship=9, Orlath=2)
    assert matched(snippets) == ["The ship was there.", "Orlath saw the ship.", "Orlath slept."]
    assert more == 0


def test_a_keyword_across_two_sentences_shows_both():
    text = f"{FILLER} He met the Duke. Of York he knew nothing. {FILLER}"
    snippets, more = by_keywords(chunk_of(text), "duke. of york")
    assert matched(snippets) == ["He met the Duke.", "Of York he knew nothing."]
    assert more == 0


LONG = "Words follow words " * 40


@pytest.mark.parametrize("keyword", ["Orlath", "orlath of the isles", "ORLATH"])
@pytest.mark.parametrize(
    "sentence",
    [
        f"It goes {LONG} Orlath of the Isles {LONG} end.",
        f"Orlath of the Isles {LONG} end.",
        f"It goes {LONG} Orlath of the Isles.",
        f"It goes {'İ' * 700} {LONG} Orlath of the Isles {LONG} end.",
        f"It goes {'İ' * 390} Orlath of the Isles {'y' * 2_000} end.",
        f"It goes {LONG} \n\t Orlath of the Isles {LONG} end.",
    ],
    ids=["middle", "beginning", "end", "longer in lower case", "longer in lower case, no spaces", "white space"],
)
def test_a_long_sentence_is_cut_around_the_keyword(sentence, keyword):
    snippets, _ = by_keywords(chunk_of(f"{FILLER} {sentence} {FILLER}"), keyword)
    (text,) = [text for text in matched(snippets) if "orlath" in text.lower()]
    assert "Orlath of the Isles" in text
    assert len(text) <= 402
    assert text.startswith("…") == (not text.startswith(("It goes", "Orlath")))
    assert text.endswith("…") == (not text.endswith(("end.", "Isles.")))


def test_a_keyword_across_two_long_sentences_shows_where_it_is():
    text = f"It goes {LONG} to the Duke. Of York he knew {LONG} end."
    snippets, _ = by_keywords(chunk_of(text), "duke. of york")
    assert matched(snippets)[0].endswith("the Duke.")
    assert matched(snippets)[1].startswith("Of York he knew")


@pytest.mark.parametrize("keyword", ["duke of york", "duke\nof york"])
@pytest.mark.parametrize("words", ["Duke\nof York", "Duke of York", "Duke\xa0\r\n\tof\u2003York"])
def test_a_keyword_with_a_line_break_in_a_long_sentence_is_shown(words, keyword):
    text = f"{FILLER} It goes {LONG} to the {words} {LONG} end. {FILLER} The {words} slept. {FILLER}"
    snippets, more = by_keywords(chunk_of(text), keyword)
    first, second = matched(snippets)
    assert "Duke of York" in first
    assert second == "The Duke of York slept."
    assert more == 0


def test_a_keyword_across_sentences_counts_among_those_that_are_more():
    text = " ".join([f"Gale number {n} came." for n in range(7)] + [FILLER, "He met the Duke.\nOf York he knew."])
    snippets, more = by_keywords(chunk_of(text), "gale", "duke. of york")
    assert matched(snippets)[-2:] == ["He met the Duke.", "Of York he knew."]
    assert more == 6


def test_a_title_with_other_white_space_is_not_repeated():
    chunk = chunk_of(f"# The  Great\tGale\n\nMany ships sank. {FILLER}", title="The Great Gale")
    snippets, _ = by_keywords(chunk, "ships")
    assert shown(snippets) == ["Many ships sank."]
    assert snippets[0].begins


def test_the_sentence_before_a_length_change_does_not_matter():
    text = f"{'İ' * 50} is a letter. {FILLER} Orlath slept. {FILLER}"
    snippets, _ = by_keywords(chunk_of(text), "Orlath")
    assert matched(snippets) == ["Orlath slept."]


@pytest.mark.parametrize(
    "sentence", ["He was born in Rome.", "“It was in Rome.", "These were in Rome.", "The latter was in Rome."]
)
def test_a_sentence_without_its_subject_brings_its_neighbours(sentence):
    text = f"{FILLER} Orlath was a painter. {sentence} Tamsin stayed. {FILLER}"
    (snippet,), _ = by_keywords(chunk_of(text), "rome")
    assert [(s.text, s.matched) for s in snippet.sentences] == [
        ("Orlath was a painter.", False),
        (sentence, True),
        ("Tamsin stayed.", False),
    ]
    assert not snippet.whole


def test_a_sentence_with_its_subject_comes_alone():
    (snippet,), _ = by_keywords(chunk_of(f"{FILLER} Hera was in Rome. {FILLER}"), "rome")
    assert [s.text for s in snippet.sentences] == ["Hera was in Rome."]


def test_neighbours_of_another_document_are_not_brought():
    chunk = packed(a=FILLER, b=f"He was in Rome. {FILLER}")
    (snippet,), _ = by_keywords(chunk, "rome")
    assert snippet.document_id == "b"
    assert [s.text for s in snippet.sentences] == ["He was in Rome.", FILLER[: FILLER.index(".") + 1]]


def test_a_short_document_about_the_keyword_is_shown_whole():
    middle = "Tamsin stayed at home. " * 8
    chunk = packed(a=FILLER, b=f"Orlath was a painter. {middle} Nobody knew.", c=FILLER)
    (snippet,), more = by_keywords(chunk, "title b", "painter")
    assert (snippet.document_id, snippet.title, snippet.whole) == ("b", "Title b", True)
    (part,), _ = by_keywords(chunk, "painter")
    assert [s.text for s in part.sentences] == ["Orlath was a painter."]
    assert more == 0


def test_a_short_document_of_which_little_is_left_is_shown_whole():
    chunk = packed(a=FILLER, b="Orlath was a painter. Tamsin stayed. Nobody knew.", c=FILLER)
    (snippet,), more = by_keywords(chunk, "Tamsin")
    assert (snippet.document_id, snippet.title, snippet.whole) == ("b", "Title b", True)
    assert [(s.text, s.matched) for s in snippet.sentences] == [
        ("Orlath was a painter.", False),
        ("Tamsin stayed.", True),
        ("Nobody knew.", False),
    ]
    assert more == 0


def test_a_short_part_of_a_long_document_is_not_whole():
    document = Document("doc", "", "Orlath was a painter. Tamsin stayed. Nobody knew.", "doc.txt")
    first, _ = chunk_document(document, chunk_tokens=6, count=count_words)
    (snippet,), _ = by_keywords(first, "Tamsin")
    assert not snippet.whole
    assert [s.text for s in snippet.sentences] == ["Tamsin stayed."]


def test_a_packed_chunk_names_each_document():
    chunk = packed(a=f"Philip was a king. {FILLER}", b=f"Nothing. {FILLER}", c=f"Philip was a cook. {FILLER}")
    snippets, _ = by_keywords(chunk, "Philip")
    assert [(s.document_id, s.title, s.sentences[0].text) for s in snippets] == [
        ("a", "Title a", "Philip was a king."),
        ("c", "Title c", "Philip was a cook."),
    ]


def test_a_heading_is_followed_by_its_sentence():
    text = f"{FILLER}\n\n# The Gale of 1775\n\nMany ships sank. Few came home.\n\n{FILLER}"
    (snippet,), more = by_keywords(chunk_of(text), "gale")
    assert [(s.text, s.matched) for s in snippet.sentences] == [
        ("# The Gale of 1775", True),
        ("Many ships sank.", False),
    ]
    assert more == 0


def test_a_sentence_is_preferred_to_a_heading():
    text = f"{FILLER}\n\n# The Gale\n\nMany ships sank. {FILLER} " + " ".join(
        f"Gale number {n} came." for n in range(7)
    )
    snippets, _ = by_keywords(chunk_of(text), "gale")
    assert "Gale number 0 came." in matched(snippets)


def test_semantic_snippets_show_the_nearest():
    chunk = chunk_of(FILLER)
    (snippet,), more = choose_semantic_snippets(chunk, {1: 0.2, 4: 0.9, 7: 0.75, 10: 0.75, 13: 0.5}, "islands")
    gap = [(5, None, False), (6, None, False)]
    assert [(s.position, s.similarity, s.matched) for s in snippet.sentences] == [
        (4, 0.9, True),
        *gap,
        (7, 0.75, True),
    ]
    assert more == 3


def test_repeated_labels_do_not_take_the_place_of_other_rows():
    labels = ["Net investment income", *["Net income attributable to CVS Health"] * 3, "Total revenues", "Net income"]
    table = chunk_of("\n".join([FILLER, "", *(f"{label} | {n} | {n}" for n, label in enumerate(labels, 10))]))
    rows = find_rows(table, ["CVS Health total revenues and net income"])
    first = len(table.sentences) - len(labels)
    assert {row - first for row in rows} == {0, 1, 4, 5}
    assert find_rows(table, ["revenues", "net income"]) == find_rows(table, ["net income"])


def test_rows_with_more_words_of_a_query_come_first():
    labels = ["Total", "Years", "Term", "Lease", "Remaining lease term in years"]
    table = chunk_of("\n".join([FILLER, "", *(f"{label} | {n} | {n}" for n, label in enumerate(labels, 10))]))
    last = len(table.sentences) - 1
    assert last in find_rows(table, ["What is the total remaining term of the lease, in years?"])


def test_a_read_finds_rows_for_each_part_of_what_it_is_about():
    labels = ["Total assets", "Total current assets", "Net income", "Net sales", "Net debt", "Capital expenditures"]
    table = chunk_of("\n".join([FILLER, "", *(f"{label} | {n} | {n}" for n, label in enumerate(labels, 10))]))
    parts = {"total current assets and net sales": {}, "net debt, capital expenditures": {}}
    (snippet,) = choose_passages([table], {part: {table.id: {0: 0.1}} for part in parts})[table.id]
    shown = {s.text.partition(" | ")[0] for s in snippet.sentences}
    assert {"Total current assets", "Net sales", "Net debt", "Capital expenditures"} <= shown


def test_short_gaps_are_filled_but_not_in_tables():
    chunk = chunk_of(FILLER)
    near = {4: 0.9, 8: 0.8}  # with 180 characters between them
    (snippet,), _ = choose_semantic_snippets(chunk, near, "islands")
    assert [s.position for s in snippet.sentences] == [4, 5, 6, 7, 8]
    (snippet,) = choose_passages([chunk], {"islands": {chunk.id: {1: 0.9, 8: 0.8}}})[chunk.id]
    assert [s.position for s in snippet.sentences] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    (snippet,), _ = choose_semantic_snippets(chunk, {4: 0.9, 9: 0.8}, "islands")
    assert [s.position for s in snippet.sentences] == [4, 9]
    rows = [f"Row {n} | {n * n}" for n in range(9)]
    table = chunk_of("\n".join([f"{FILLER}\n", *rows]))
    (snippet,), _ = by_keywords(table, "Row 1 ", "Row 7 ")
    assert [s.text for s in snippet.sentences] == [rows[1], rows[7]]


def test_of_the_best_chunk_of_a_long_document_passages_are_shown():
    document = Document("doc", "", FILLER * 3, "doc.txt")
    first, *_ = chunk_document(document, chunk_tokens=150, count=count_words)
    (snippet,), _ = choose_semantic_snippets(first, {4: 0.9}, "islands", is_best=True)
    assert [s.position for s in snippet.sentences] == [3, 4, 5, 6]
    (snippet,), _ = choose_semantic_snippets(first, {4: 0.9}, "islands")
    assert [s.position for s in snippet.sentences] == [4]
    (snippet,), _ = by_keywords(first, "1604", is_best=True)
    assert [s.position for s in snippet.sentences] == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("second", "third", "begins"), [("It was small.", "Orlath grew.", 2), ("It was small.", "It grew.", 1)]
)
def test_a_passage_does_not_begin_with_a_sentence_that_needs_the_one_before(second, third, begins):
    """Unless what the passage is about needs it."""
    document = Document("doc", "", f"Vellin is a town. {second} {third} {FILLER * 3}", "doc.txt")
    first, *_ = chunk_document(document, chunk_tokens=150, count=count_words)
    found = choose_passages([first], {"What grew?": {first.id: {2: 0.9}}})[first.id]
    assert found[0].sentences[0].position == begins


def test_each_chunk_has_its_best_passage_before_any_has_a_second():
    document = Document("doc", "", FILLER * 30, "doc.txt")
    chunks = chunk_document(document, chunk_tokens=600, count=count_words)[:4]
    rated = {chunk.id: dict.fromkeys(range(len(chunk.sentences)), 0.7) for chunk in chunks}
    rated[chunks[3].id] = {40: 0.5}  # less near than all others, but not far
    rated[chunks[2].id] = {40: 0.3}  # far
    found = choose_passages(chunks, {"Who?": rated})
    assert 40 in [s.position for s in found[chunks[3].id][0].sentences]
    assert found[chunks[2].id] == ()
    rated[chunks[3].id][10] = 0.55
    found = choose_passages(chunks, {"Who?": rated}, {chunks[3].id: range(9, 13)})
    assert [s.position for s in found[chunks[3].id][0].sentences] == [39, 40, 41, 42]


def test_a_passage_goes_on_through_an_announced_list():
    parts = ["The following are risk factors.", *(f"Item {n} is one." for n in range(9))]
    document = Document("doc", "", f"{' '.join(parts)} {FILLER * 3}", "doc.txt")
    first, *_ = chunk_document(document, chunk_tokens=150, count=count_words)
    (snippet,), _ = choose_semantic_snippets(first, {0: 0.9}, "risk", is_best=True)
    assert [s.text for s in snippet.sentences] == parts[:6]


def test_passages_are_the_best_of_all_chunks():
    document = Document("doc", "", f"{FILLER} Orlath saw Tamsin. {FILLER}", "doc.txt")
    chunks = chunk_document(document, chunk_tokens=100, count=count_words)
    rated = {chunk.id: dict.fromkeys(range(len(chunk.sentences)), 0.1) for chunk in chunks}
    rated[chunks[1].id][2] = 0.8
    found = choose_passages(chunks, {"Who?": rated})
    assert {chunk_id: bool(snippets) for chunk_id, snippets in found.items()} == {c.id: c is chunks[1] for c in chunks}
    assert [s.position for s in found[chunks[1].id][0].sentences] == [1, 2, 3, 4]


def test_rare_words_do_not_make_other_passages_far():
    document = Document("doc", "", f"{FILLER} Orlath saw Tamsin. {FILLER}", "doc.txt")
    chunks = chunk_document(document, chunk_tokens=100, count=count_words)
    rated = {chunk.id: dict.fromkeys(range(len(chunk.sentences)), 0.1) for chunk in chunks}
    rated[chunks[0].id][4] = 0.6
    rated[chunks[2].id][2] = 0.8  # "Orlath saw Tamsin.", with two rare words of the query
    found = choose_passages(chunks, {"Orlath, Tamsin": rated})
    assert {chunk_id for chunk_id, snippets in found.items() if snippets} == {chunks[0].id, chunks[2].id}


def test_a_rare_word_of_the_query_counts_in_passages():
    chunk = chunk_of(f"{FILLER * 2} The chordoma is rare. {FILLER * 2}")
    rated = {chunk.id: dict.fromkeys(range(len(chunk.sentences)), 0.5)}
    (snippet,) = choose_passages([chunk], {"Where does chordoma occur?": rated})[chunk.id]
    assert "The chordoma is rare." in [s.text for s in snippet.sentences]
    assert len(snippet.sentences) < len(chunk.sentences) / 2 + 4


def test_a_sentence_need_not_name_the_subject_of_its_document():
    """A query has the title in it, and of the sentences only those that say it again are very similar."""
    text = f"Orlath sees some snow. Much of Orlath had less. The average a year is 6.8 inches. {FILLER}"
    chunk = chunk_of(text, "Orlath")
    rated = {0: 0.8, 1: 0.77, 2: 0.56} | dict.fromkeys(range(3, 20), 0.4)
    snippets, _ = choose_semantic_snippets(chunk, rated, "average snow of Orlath", is_best=True)
    assert matched(snippets) == ["Orlath sees some snow.", "The average a year is 6.8 inches."]


def test_rare_words_of_the_query_count_in_every_chunk():
    chunk = chunk_of(f"Tumours are benign. Tumours are rare. Tumours are found by a scan. {FILLER * 3}")
    snippets, _ = choose_semantic_snippets(chunk, {0: 0.8, 1: 0.79, 2: 0.7}, "tumours seen in a scan")
    assert matched(snippets) == ["Tumours are benign.", "Tumours are found by a scan."]


def test_that_a_sentence_has_its_title_says_little_of_a_keyword():
    title = " ".join(f"Orlath is number {n}." for n in range(5))
    text = f"Orlath has a monsoon. {title} {FILLER} In summer comes the monsoon. {FILLER}"
    snippets, _ = by_keywords(chunk_of(text, "Orlath"), "Orlath", "monsoon")
    assert {"Orlath has a monsoon.", "In summer comes the monsoon."} <= set(matched(snippets))


def test_a_part_of_a_document_names_the_heading_above_it():
    text = f"{FILLER}\n\n## The Great Storm\n\nMany ships sank. {FILLER}"
    (snippet,), _ = by_keywords(chunk_of(f"{text} {LONG}"), "ships sank")
    assert snippet.heading == ""  # a document in one chunk has its title
    document = Document("doc", "", f"{text}\n\n{FILLER * 3}", "doc.txt")
    *_, holding = (c for c in chunk_document(document, chunk_tokens=330, count=count_words) if "ships" in c.text)
    (snippet,), _ = by_keywords(holding, "ships sank")
    assert snippet.heading == "The Great Storm"


def test_semantic_snippets_cut_long_sentences():
    (snippet,), _ = choose_semantic_snippets(chunk_of("Word " * 199 + "end."), {0: 0.5}, "word")
    (sentence,) = snippet.sentences
    assert sentence.text.startswith("Word Word")
    assert sentence.text.endswith("Word…")
    assert len(sentence.text) <= 401
    assert not snippet.whole


@pytest.mark.parametrize("query", ["the area code of Orlath", "Which code does Orlath have?"])
def test_a_long_sentence_found_by_meaning_is_cut_around_the_rarest_word_of_the_query(query):
    towns = " ".join(f"Town {n} has the area code {n}" for n in range(15))
    chunk = chunk_of(f"{towns} Orlath has the area code 513 {towns}.")
    (snippet,), _ = choose_semantic_snippets(chunk, {0: 0.5}, query)
    assert "Orlath has the area code 513" in snippet.sentences[0].text


TITLED = [{"id": "b", "title": "The Gale", "text": "Many ships sank. Few came home."}]


def test_a_title_is_not_repeated(make_index):
    index = make_index(TITLED)
    results = index.keyword_search(["ships"])
    text = render_keywords(results, show_all(results.hits))
    assert text.count("The Gale") == 1
    assert "The Gale: Many ships sank. Few came home." in text
    hits = index.semantic_search("Many ships").hits
    assert render_semantic(hits, show_all(hits)).count("The Gale") == 1


def test_a_matching_title_is_shown_once(make_index):
    results = make_index(TITLED).keyword_search(["gale"])
    assert render_keywords(results, show_all(results.hits)).count("The Gale") == 1


LINES = st.sampled_from(
    [
        "He was here.",
        "The ship sank in Rome.",
        "Orlath saw İstanbul.",
        "# Orlath",
        f"Long {LONG} ship {LONG}.",
        "北京的船。",
        "Ship",
        "It\nwas a ship.",
    ]
)


@given(
    st.lists(st.lists(LINES, min_size=1, max_size=12).map("\n\n".join), min_size=1, max_size=3),
    st.lists(
        st.sampled_from(["ship", "Orlath", "i", "é", "北京", "e. t", "words", "it\xa0was", "t was"]),
        min_size=1,
        max_size=4,
        unique=True,
    ),
)
def test_what_is_shown_and_what_is_more_add_up(texts, keywords):
    chunk = packed(**{f"d{n}": text for n, text in enumerate(texts)})
    keywords = [fold(keyword) for keyword in keywords]
    held = [k for k in keywords if k.lower() in fold(chunk.text).lower()]
    snippets, more = by_keywords(chunk, *held)
    sentences = [fold(chunk.sentence_text(n)).lower() for n in range(len(chunk.sentences))]
    holding = {n for n, text in enumerate(sentences) if any(k in text for k in map(str.lower, held))}
    positions = [s.position for snippet in snippets for s in snippet.sentences]
    assert positions == sorted(set(positions))
    if "e. t" not in held:  # it makes sentences match that do not hold it themselves
        assert len(holding - set(positions)) == more
        assert {s.position for snippet in snippets for s in snippet.sentences if s.matched} <= holding
    for keyword in held:
        if any(keyword.lower() in text for text in sentences):
            shown_whole = [
                fold(chunk.sentence_text(s.position)) for snippet in snippets for s in snippet.sentences if s.matched
            ]
            assert any(keyword.lower() in text.lower() for text in shown_whole)
    for snippet in snippets:
        section = next(s for s in chunk.sections if s.document_id == snippet.document_id)
        for sentence in snippet.sentences:
            assert section.start <= chunk.sentences[sentence.position].start < section.end


def test_a_sentence_that_speaks_on_of_the_subject_is_shown_too():
    text = f"{FILLER} Spain wrote most of it. It is followed by Peru. {FILLER}"
    (snippet,), _ = by_keywords(chunk_of(text), "Spain")
    assert [s.text for s in snippet.sentences] == ["Spain wrote most of it.", "It is followed by Peru."]


def test_a_short_sentence_is_not_all_that_a_gap_leaves_out():
    text = f"{FILLER} Gale one came. In 1634 ships sank. Gale two came. {FILLER}"
    (snippet,), _ = by_keywords(chunk_of(text), "gale")
    assert [(s.text, s.matched) for s in snippet.sentences] == [
        ("Gale one came.", True),
        ("In 1634 ships sank.", False),
        ("Gale two came.", True),
    ]
