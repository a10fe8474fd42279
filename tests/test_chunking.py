from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.ingest.chunking import MAX_SENTENCE_TOKENS, chunk_document
from arag.ingest.documents import Document
from arag.ingest.sentences import split_sentences
from test_sentences import assert_covers


def count_words(texts):
    """Count a word as a token for every ten characters begun, so that words can be too long for a chunk."""
    return [sum((len(word) + 9) // 10 for word in text.split()) for text in texts]


cut = partial(chunk_document, count=count_words)


def document(text, *, title="", document_id="doc", **fields):
    return Document(id=document_id, title=title, text=text, source="doc.txt", **fields)


def assert_sound(chunk):
    """The offsets of a chunk's sentences fit its text."""
    assert chunk.text.strip()
    assert chunk.tokens == count_words([chunk.text])[0]
    assert any(sentence.embedded for sentence in chunk.sentences)
    assert_covers(chunk.text, chunk.sentences)


WORDS = st.sampled_from(
    [
        *"ship harbour Rome Dr. U.S. Smith's 1912 北京 é́ 😀 İstanbul ß “quote” (in brackets) x".split(),
        "L" * 75,
        "漢" * 120,
        "y" * 2000,
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=40).map(lambda words: " ".join(["The", *words]) + ".")
BLOCKS = st.one_of(
    st.lists(SENTENCES, min_size=1, max_size=6).map(" ".join),
    st.sampled_from(
        ["# A heading", "A plain heading", "## One\n### Two", "* * *", "- item\n- item two", "a | b\nc | d"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.just("他是医生。她在北京工作！"),
)
TEXTS = st.tuples(st.sampled_from(["", "\n \n", " "]), st.lists(BLOCKS, min_size=1, max_size=8)).map(
    lambda parts: parts[0] + "\n\n".join(parts[1])
)
READABLE_TEXTS = TEXTS.filter(str.strip)


@given(READABLE_TEXTS, st.integers(5, 60), st.sampled_from(["", "A plain heading"]))
def test_chunks_are_the_text_cut_at_sentence_borders(text, chunk_tokens, title):
    chunks = cut(document(text, title=title), chunk_tokens=chunk_tokens)
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.id for chunk in chunks] == [f"doc:{n}" for n in range(len(chunks))]
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    sentences = split_sentences(text, title=title)
    starts = {sentence.start for sentence in sentences}
    most = min(chunk_tokens, MAX_SENTENCE_TOKENS)
    at = 0
    for chunk in chunks:
        assert_sound(chunk)
        assert (chunk.document_id, chunk.title, chunk.whole) == ("doc", title, len(chunks) == 1)
        if at and at not in starts:
            around = next(s for s in sentences if s.start < at < s.end)
            assert count_words([text[around.start : around.end]])[0] > most
            if not (text[at - 1].isspace() and not text[at].isspace()):
                word = text[:at].split()[-1] + text[at:].split()[0]
                assert count_words([word])[0] > most
        at += len(chunk.text)
        assert chunk.tokens <= chunk_tokens


@given(READABLE_TEXTS, st.integers(5, 60))
def test_a_heading_is_not_left_at_the_end_of_a_chunk(text, chunk_tokens):
    chunks = cut(document(text), chunk_tokens=chunk_tokens)
    for chunk, following in pairwise(chunks):
        last = chunk.sentences[-1]
        only_headings = all(s.embedded for s in following.sentences) and not split_sentences(following.text)[0].embedded
        if last.embedded or only_headings:
            continue
        end = next(s.end for s in following.sentences if s.embedded)
        assert count_words([chunk.text[last.start :] + following.text[:end]])[0] > chunk_tokens


@given(READABLE_TEXTS, st.integers(50, 120))
def test_chunks_keep_to_their_size_in_real_tokens(count_exactly, text, chunk_tokens):
    for chunk in chunk_document(document(text), chunk_tokens=chunk_tokens, count=count_exactly):
        assert [chunk.tokens] == count_exactly([chunk.text])
        # Counts of parts do not add up to the count of the whole exactly.
        assert chunk.tokens <= chunk_tokens * 1.5 + 2


def test_a_sentence_longer_than_an_embedder_reads_is_split_within_a_chunk():
    text = " ".join(f"word{n}" for n in range(600))
    (chunk,) = cut(document(text), chunk_tokens=1_000)
    assert count_words([chunk.sentence_text(i) for i in range(len(chunk.sentences))]) == [256, 256, 88]
    assert_sound(chunk)


def test_a_table_of_a_pdf_is_cut_between_its_rows():
    text = "\n".join(f"RM-{n:03} Kelda 65 {n} months dry bench Ingrid Solheim" for n in range(300))
    chunks = cut(document(text), chunk_tokens=1_000)
    sentences = [chunk.sentence_text(n) for chunk in chunks for n in range(len(chunk.sentences))]
    assert len(sentences) > len(chunks) > 1
    assert {(sentence[:3], sentence[-7:]) for sentence in sentences} == {("RM-", "Solheim")}


def test_chunks_know_their_pages():
    text = "One one one.\n\nTwo two two.\n\nThree three three."
    pages = (0, text.index("Two"), text.index("Three"))
    apart = cut(document(text, page_starts=pages), chunk_tokens=5)
    assert [chunk.pages for chunk in apart] == [(1, 1), (2, 2), (3, 3)]
    (together,) = cut(document(text, page_starts=pages), chunk_tokens=50)
    assert together.pages == (1, 3)
    assert cut(document(text), chunk_tokens=50)[0].pages is None


def test_ready_chunks_are_taken_over_unchanged():
    ready = (("7", "  He came. She left.\n"), ("x:y", "word " * 500), ("9", "# Heading"))
    text = "".join(text for _, text in ready)
    chunks = cut(document(text, ready_chunks=ready), chunk_tokens=50)
    assert [(chunk.id, chunk.text) for chunk in chunks] == list(ready)
    assert [chunk.ordinal for chunk in chunks] == [0, 1, 2]
    for chunk in chunks:
        assert chunk.document_id == "doc"
        assert_sound(chunk)


# --- headings and tables ---


def places(text, *, title="", chunk_tokens=1_000):
    """Return each sentence with its heading."""
    chunks = cut(document(text, title=title), chunk_tokens=chunk_tokens)
    return [(chunk.sentence_text(n), s.heading) for chunk in chunks for n, s in enumerate(chunk.sentences)]


def test_sentences_stand_under_their_headings_and_these_under_their_parents():
    parts = "# The Mill|It stands.|## Its wheel|It turns. It creaks.|### Repairs|None.|## Its owner|He slept."
    text = parts.replace("|", "\n\n")
    assert places(text, title="The Mill") == [
        ("# The Mill", ""),
        ("It stands.", ""),
        ("## Its wheel", ""),
        ("It turns.", "Its wheel"),
        ("It creaks.", "Its wheel"),
        ("### Repairs", "Its wheel"),
        ("None.", "Its wheel > Repairs"),
        ("## Its owner", ""),
        ("He slept.", "Its owner"),
    ]
    assert places(text)[6] == ("None.", "The Mill > Its wheel > Repairs")


def test_the_title_again_and_page_headers_are_no_headings():
    text = (
        "The Mill\n\nIt stands.\n\nThe Mill\n\nIt turns.\n\nTable of contents\n\nIt fell.\n\nMarch 31, 12\n\nIt rose."
    )
    assert {heading for _, heading in places(text, title="The Mill")} == {""}


def test_a_line_of_a_paragraph_that_looks_like_a_heading_is_one():
    text = "It was late.\nDiscussion of the Results\nSales grew. Costs did, too.\nA.2 Products\nOil is sold. So is tar."
    assert [heading for _, heading in places(text)] == ["", "", "Discussion of the Results", "", "A.2 Products"]
    assert {heading for _, heading in places("It was late.\nProduct Min Max Min Max\nThe end was near. He left.")} == {
        ""
    }


def rows(text):
    (chunk,) = cut(document(text), chunk_tokens=1_000)
    return [(chunk.sentence_text(n), s.header) for n, s in enumerate(chunk.sentences) if s.embedded]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "| Year | Tons |\n| --- | ---: |\n| 1911 | 7 |\n\nIt sank.",
            [("| Year | Tons |", ""), ("| 1911 | 7 |", "Year | Tons"), ("It sank.", "")],
        ),
        (
            "(Millions) | 2022 | 2021\nNet sales | 34,229 | 35,355\n\nOther income\n\nInterest | 1 | 2",
            [
                ("(Millions) | 2022 | 2021", ""),
                ("Net sales | 34,229 | 35,355", "(Millions) | 2022 | 2021"),
                ("Interest | 1 | 2", "(Millions) | 2022 | 2021"),
            ],
        ),
        (
            "In millions | 2022 | 2021\nCash | 2022: 4 | 2021: 5\nDebt | 2022: 6 | 2021: 7",
            [
                ("In millions | 2022 | 2021", ""),
                ("Cash | 2022: 4 | 2021: 5", "In millions | 2022 | 2021"),
                ("Debt | 2022: 6 | 2021: 7", "In millions | 2022 | 2021"),
            ],
        ),
        (
            "(Millions) | Plan | Actual\nCash | Plan: 4 | Actual: 5",
            [("(Millions) | Plan | Actual", ""), ("Cash | Plan: 4 | Actual: 5", "(Millions) | Plan | Actual")],
        ),
        ("One | Two\nThree | Four", [("One | Two", ""), ("Three | Four", "")]),
        (
            "| A | B |\n|---|---|\n| 1 | 2 |\n\n# Next\n\n| 3 | 4 |",
            [("| A | B |", ""), ("| 1 | 2 |", "A | B"), ("| 3 | 4 |", "")],
        ),
    ],
)
def test_rows_know_the_header_of_their_table_unless_they_have_its_names(text, found):
    assert rows(text) == found
