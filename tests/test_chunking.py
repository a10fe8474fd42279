from __future__ import annotations

from functools import partial
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from arag.ingest.chunking import MAX_SENTENCE_TOKENS, chunk_document, groups, pack_documents
from arag.ingest.documents import Document
from arag.ingest.sentences import split_sentences
from arag.retrieval.packing import keep_documents
from test_sentences import assert_covers


def count_words(texts):
    """Count a word as a token for every ten characters begun, so that words can be too long for a chunk."""
    return [sum((len(word) + 9) // 10 for word in text.split()) for text in texts]


cut = partial(chunk_document, count=count_words)


def document(text, *, title="", document_id="doc", **fields):
    return Document(id=document_id, title=title, text=text, source="doc.txt", **fields)


def assert_sound(chunk):
    """The offsets of a chunk's sentences and sections fit its text."""
    assert chunk.text.strip()
    assert chunk.tokens == count_words([chunk.text])[0]
    assert any(sentence.embedded for sentence in chunk.sentences)
    assert_covers(chunk.text, chunk.sentences)
    for sentence in chunk.sentences:
        section = chunk.section_at(sentence.start)
        assert section.start <= sentence.start < sentence.end <= section.end


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
        assert chunk.document_id == "doc"
        assert [(s.document_id, s.title, s.start, s.end) for s in chunk.sections] == [
            ("doc", title, 0, len(chunk.text))
        ]
        assert chunk.sections[0].whole == (len(chunks) == 1)
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
def test_chunks_keep_to_their_size_in_real_tokens(exact_counter, text, chunk_tokens):
    for chunk in chunk_document(document(text), chunk_tokens=chunk_tokens, count=exact_counter.count_batch):
        assert chunk.tokens == exact_counter.count(chunk.text)
        # Counts of parts do not add up to the count of the whole exactly.
        assert chunk.tokens <= chunk_tokens * 1.5 + 2


def test_chunks_are_filled():
    text = " ".join(f"This is sentence number {n} of many." for n in range(200))
    chunks = cut(document(text), chunk_tokens=70)
    assert [chunk.tokens for chunk in chunks] == [70] * 20
    assert all(len(chunk.sentences) == 10 for chunk in chunks)


def test_heading_goes_with_what_follows_it():
    text = "It was a long day at sea for all of them.\n\n# Two\n\n## Two and a half\n\nThe second day was longer."
    chunks = cut(document(text), chunk_tokens=13)
    assert [chunk.text for chunk in chunks] == [
        "It was a long day at sea for all of them.\n\n",
        "# Two\n\n## Two and a half\n\nThe second day was longer.",
    ]


def test_headings_only_are_embedded():
    chunks = cut(document("# One\n\n# Two\n\n# Three"), chunk_tokens=50)
    assert [[s.embedded for s in chunk.sentences] for chunk in chunks] == [[True, True, True]]


def test_headings_are_not_embedded_next_to_sentences():
    (chunk,) = cut(document("# One\n\nHe came."), chunk_tokens=50)
    assert [s.embedded for s in chunk.sentences] == [False, True]


def test_a_sentence_longer_than_a_chunk_is_split_at_word_borders():
    words = [f"word{n}" for n in range(1_000)]
    text = " ".join(words) + "."
    chunks = cut(document(text), chunk_tokens=60)
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.tokens for chunk in chunks] == [60] * 16 + [40]
    assert [word for chunk in chunks for word in chunk.text.rstrip(".").split()] == words


def test_a_sentence_longer_than_an_embedder_reads_is_split_within_a_chunk():
    text = " ".join(f"word{n}" for n in range(600))
    (chunk,) = cut(document(text), chunk_tokens=1_000)
    assert count_words([chunk.sentence_text(i) for i in range(len(chunk.sentences))]) == [256, 256, 88]
    assert_sound(chunk)


def test_a_huge_word_is_cut_inside():
    text = "It begins: " + "x" * 100_000 + " and ends."
    chunks = cut(document(text), chunk_tokens=50)
    assert "".join(chunk.text for chunk in chunks) == text
    assert max(chunk.tokens for chunk in chunks) <= 50
    for chunk in chunks:
        assert_sound(chunk)


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


DOCUMENTS = st.lists(
    st.tuples(READABLE_TEXTS, st.sampled_from(["", "A plain heading", "北京"])), min_size=1, max_size=6
)


def make_documents(parts):
    return [document(text, title=title, document_id=f"d{n}") for n, (text, title) in enumerate(parts)]


@given(DOCUMENTS)
def test_a_packed_chunk_gives_back_each_document(parts):
    documents = make_documents(parts)
    chunk = pack_documents(documents, count=count_words)
    assert chunk.id == "d0:0"
    assert_sound(chunk)
    assert [(s.document_id, s.title, s.whole) for s in chunk.sections] == [(d.id, d.title, True) for d in documents]
    assert [chunk.text[s.start : s.end] for s in chunk.sections] == [d.text for d in documents]
    for section in chunk.sections:
        assert any(s.embedded for s in chunk.sentences if section.start <= s.start < section.end)


@given(DOCUMENTS, st.sets(st.integers(0, 5)))
def test_keeping_documents_is_packing_them(parts, numbers):
    documents = make_documents(parts)
    stay = [d for d in documents if d.id in {f"d{n}" for n in numbers}]
    rest = keep_documents(pack_documents(documents, count=count_words), [d.id for d in stay], count=count_words)
    assert rest == (pack_documents(stay, count=count_words) if stay else None)


@given(DOCUMENTS, st.integers(5, 60))
def test_groups_keep_order_and_size(parts, chunk_tokens):
    documents = make_documents(parts)
    found = list(groups(documents, pack=True, chunk_tokens=chunk_tokens, count=count_words))
    assert [d for group in found for d in group] == documents
    for group in found:
        assert group
        if len(group) > 1:
            assert pack_documents(group, count=count_words).tokens <= chunk_tokens


def test_groups_pack_neighbours_only_and_long_documents_stay_alone():
    short = [document("He came.", document_id=f"s{n}") for n in range(4)]
    long = document("word " * 40, document_id="long")
    ready = document("x", document_id="ready", ready_chunks=(("1", "x"),))
    given_documents = [short[0], short[1], long, short[2], ready, short[3]]
    find = partial(groups, given_documents, chunk_tokens=20, count=count_words)
    assert [[d.id for d in g] for g in find(pack=True)] == [["s0", "s1"], ["long"], ["s2"], ["ready"], ["s3"]]
    assert [[d.id for d in g] for g in find(pack=False)] == [[d.id] for d in given_documents]
