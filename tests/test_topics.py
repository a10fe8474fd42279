"""What parts of long documents are about: the words that tell them apart, shown where no heading does."""

import json
import math
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import IndexFormatError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document
from arag.ingest.pipeline import ingest
from arag.retrieval.scope import Scope
from arag.retrieval.tools import make_tools
from arag.retrieval.topics import Topics
from fakes import HashEmbeddings, write_corpus

BACKENDS = pytest.mark.parametrize("backend", ["folder", "memory", "postgres"], indirect=True)


def guide(organ, count=24):
    """Return sentences of a guide: its subject is in each, what it says of it is the same in all guides."""
    said = ["is treated with surgery", "is found by tests", "may come back after years", "has four stages"]
    return [f"Cancer of the {organ} {said[n % 4]}, as step {n} of the plan says." for n in range(count)]


BOOK = " ".join([*guide("thyroid"), *guide("kidney"), *guide("CSCC")])
DOCUMENTS = [
    {"id": "book", "title": "Guides", "text": BOOK},
    {"id": "note", "title": "Note", "text": "On the thyroid."},
]


@pytest.fixture
def index(make_index):
    return make_index(DOCUMENTS, chunk_tokens=62)


def call(index, name, **arguments):
    tools = {tool.name: tool for tool in make_tools(index)}
    return tools[name].invoke({"name": name, "args": arguments, "id": "c", "type": "tool_call"})


def first_holding(index, text):
    return next(i for i in index.chunk_ids() if text in index.get(i).text)


@BACKENDS
def test_the_words_that_other_parts_lack_tell_a_part(index):
    kidney = first_holding(index, "kidney may come back")
    assert index.find_topics([kidney, "note:0", "no-such-chunk"]) == {kidney: ("kidney",)}


def test_they_stand_in_front_of_what_is_shown_as_most_often_written(index):
    message = call(index, "keyword_search", keywords=["step 7"])
    names = re.findall(r"^\[book:\d+\] ([^:]+): ", message.content, flags=re.MULTILINE)
    assert names == ["Guides (kidney)", "thyroid", "Guides (CSCC)"]
    shown = message.artifact["results"]["hits"]
    assert {topics for hit in shown for topics in [hit["snippets"][0]["topics"]]} == {
        ("thyroid",),
        ("kidney",),
        ("CSCC",),
    }
    text = call(index, "semantic_search", queries=["Cancer of the kidney has four stages"]).content
    assert re.search(r"\[book:\d+\] \(0\.\d\d\) Guides \(kidney\): ", text)


def test_passages_of_several_chunks_have_them_too(make_index):
    index = make_index(DOCUMENTS, chunk_tokens=300)
    ids = [first_holding(index, f"{organ} may") for organ in ("kidney", "thyroid")]
    assert index.find_topics(ids) == {}  # the document has too few parts
    book = " ".join(sentence for organ in ("thyroid", "lung", "kidney") for sentence in guide(organ, 100))
    index = make_index([{"id": "book", "text": book}], chunk_tokens=300)
    ids = [first_holding(index, f"the {organ} is treated with surgery, as step 40 ") for organ in ("kidney", "thyroid")]
    text = call(index, "chunk_read", chunk_ids=ids, about="treated with surgery, step 40").content
    assert f"[{ids[0]}] kidney: " in text
    assert f"[{ids[1]}] thyroid: " in text


def test_a_heading_comes_before_them(make_index):
    text = "\n\n".join(f"# {organ.title()} Guide\n\n" + " ".join(guide(organ, 8)) for organ in ("lung", "liver") * 6)
    index = make_index([{"id": "book", "title": "Guides", "text": text}], chunk_tokens=300)
    shown = call(index, "keyword_search", keywords=["Cancer of the liver is found by tests, as step 5"]).artifact
    (snippet,) = shown["results"]["hits"][0]["snippets"]
    assert (snippet["heading"], snippet["topics"]) == ("Liver Guide", ())


@pytest.mark.parametrize(
    "sentence", ["第{}章讲述了许多故事，也讲述了许多人。", "มะเร็งปอด {} มะเร็งปอด. ", "भाग {} में कैंसर है। "]
)
def test_there_are_none_in_scripts_whose_words_are_not_told_apart(make_index, sentence):
    index = make_index([{"id": "book", "text": "".join(sentence.format(n) for n in range(400))}], chunk_tokens=200)
    ids = list(index.chunk_ids())
    assert len(ids) > 10
    assert index.find_topics(ids) == {}


def test_words_are_whole(make_index):
    """Whether their diacritics are characters of their own or not, and beside dashes."""
    words = ["cre\u0300me", "queen--said", "B-ALL", "рак", "İstanbul", "x" * 50]
    texts = [f"{word} is here, and {word} again, as {n} says." for word in words for n in range(4)]
    ready = [{"id": f"c{n}", "text": text} for n, text in enumerate(texts)]
    index = make_index({"chunks.json": json.dumps(ready)})
    found = index.find_topics([f"c{4 * n + 1}" for n in range(len(words))])
    assert [found.get(f"c{4 * n + 1}") for n in range(len(words))] == [
        ("crème",),
        ("queen", "said"),
        ("B-ALL",),
        ("рак",),
        ("İstanbul",),
        None,
    ]


def test_a_scope_hides_the_other_documents(index):
    kidney = first_holding(index, "kidney may come back")
    assert index.scoped(Scope(documents=["note"])).find_topics([kidney]) == {}
    assert index.scoped(Scope(documents=["book"])).find_topics([kidney]) == {kidney: ("kidney",)}


def test_they_follow_a_change_of_the_document(index, tmp_path):
    kidney = first_holding(index, "kidney may come back")
    assert index.find_topics([kidney]) == {kidney: ("kidney",)}
    changed = [DOCUMENTS[0] | {"text": BOOK.replace("kidney", "bladder")}, DOCUMENTS[1]]
    with ingest(write_corpus(tmp_path / "changed", changed), index.path, embedder=HashEmbeddings()):
        assert index.find_topics([kidney]) == {kidney: ("bladder",)}


class PlainChunks:
    """One document's chunks."""

    def __init__(self, chunks, beside_damage=None):
        self.held = chunks
        self.beside_damage = beside_damage

    def mget(self, keys):
        return [next((chunk for chunk in self.held if chunk.id == key), None) for key in keys]

    def neighbours(self, chunk, reach):
        if chunk.ordinal == self.beside_damage:
            raise IndexFormatError("chunk 3 is damaged")
        return [other for other in self.held if abs(other.ordinal - chunk.ordinal) <= reach]

    def numbers_of(self, _):
        return list(range(len(self.held)))

    def numbered(self, numbers):
        return {number: self.held[number] for number in numbers}


def test_damage_beside_a_part_hides_its_topics_only(index):
    chunks = [index.get(chunk_id) for chunk_id in index.chunk_ids() if chunk_id != "note:0"]
    ids = [chunk.id for chunk in chunks]
    assert set(Topics(PlainChunks(chunks, beside_damage=2)).find(ids)) == {*ids} - {ids[2]}


WORDS = st.sampled_from("apple apples pear Plum quince the and of tree trees zebra Zebra".split())


@given(st.lists(st.lists(WORDS, min_size=4, max_size=12), min_size=10, max_size=30))
def test_the_formula(parts):
    sentences = " ".join(" ".join(part).capitalize() + "." for part in parts)
    count = lambda texts: [len(text.split()) for text in texts]  # noqa: E731 - words are the tokens
    document = Document("d", "", sentences, "d")
    chunks = chunk_document(document, chunk_tokens=12, count=count, language="en")
    found = Topics(PlainChunks(chunks)).find([chunk.id for chunk in chunks])
    counts = [Counter(re.findall(r"[a-z]{3,}", chunk.text.lower())) for chunk in chunks]
    for place, chunk in enumerate(chunks):
        rated = {}
        for word in counts[place]:
            most = min(5, 2 * counts[place][word])
            near = sum(
                min(most, n[word]) / (1 + abs(at - place)) for at, n in enumerate(counts) if abs(at - place) <= 3
            )
            holding = sum(word in other for other in counts)
            if near >= 2 and holding <= 0.4 * len(chunks):
                rated[word] = near * math.log((len(chunks) + 1) / (holding + 1))
        best = []
        for word in sorted(rated, key=lambda word: (-rated[word], word)):
            if word[:5] not in [other[:5] for other in best]:
                best.append(word)
        topics = found.get(chunk.id, ())
        assert [topic.lower() for topic in topics] == (best[:3] if len(chunks) >= 10 else [])
