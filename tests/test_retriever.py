"""An index as a LangChain retriever: LangChain's own tests of retrievers, and what is particular to this one."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_tests.integration_tests import RetrieversIntegrationTests
from reportlab.pdfgen.canvas import Canvas

from arag.errors import InputError
from arag.ingest.pipeline import ingest
from arag.retrieval.retriever import IndexRetriever
from fakes import HashEmbeddings, write_corpus

DOCUMENTS = [
    {
        "id": "lothair",
        "title": "Lothair II",
        "text": "Lothair II was a king of Lotharingia. He married Teutberga. Waldrada was his love.",
        "year": 855,
        "score": 7,
        "document_score": 8,
    },
    {"id": "boso", "title": "Boso", "text": "Boso the Elder was the father of Teutberga. Boso was a count."},
    {"id": "hucbert", "title": "Hucbert", "text": "Hucbert was an abbot. His sister was a queen."},
]
QUERY = "Who was the father of Teutberga, a queen or a king?"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("retrieved")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as opened:
        yield opened


class Standard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _index(self, index):
        type(self).index = index

    @property
    def retriever_constructor(self):
        return IndexRetriever

    @property
    def retriever_constructor_params(self):
        return {"index": self.index, "search": self.search, "granularity": self.granularity}

    @property
    def retriever_query_example(self):
        return QUERY


class TestSemanticChunks(Standard):
    search, granularity = "semantic", "chunk"


class TestSemanticSentences(Standard):
    search, granularity = "semantic", "sentence"


class TestKeywordChunks(Standard):
    search, granularity = "keyword", "chunk"


class TestKeywordSentences(Standard):
    search, granularity = "keyword", "sentence"


def test_a_chunk_comes_with_what_is_known_about_it(index):
    (found,) = index.as_retriever(k=1).invoke("He married Teutberga.")
    score = index.semantic_search("He married Teutberga.", 1).hits[0].score
    assert found == Document(
        id="lothair:0",
        page_content=DOCUMENTS[0]["text"],
        metadata={
            "chunk_id": "lothair:0",
            "document_ids": ["lothair"],
            "title": "Lothair II",
            "source": index.document("lothair").source,
            "score": score,
            "year": 855,
            "document_document_score": 7,  # the document's own, beside another own field and ours
            "document_score": 8,
        },
    )
    assert dumps(found)


def test_sentences_are_the_nearest_of_all(index):
    found = index.as_retriever(k=4, granularity="sentence").invoke(QUERY)
    chunks = [index.get(chunk_id) for chunk_id in index.chunk_ids()]
    rated = index.rate_sentences(QUERY, [chunk.id for chunk in chunks])
    every = {f"{c.id}#{p}": (rated[c.id][p], c.sentence_text(p)) for c in chunks for p in rated[c.id]}
    best = sorted((score for score, _ in every.values()), reverse=True)[:4]
    assert [document.metadata["score"] for document in found] == pytest.approx(best)
    assert all(every[document.id][1] == document.page_content for document in found)


def test_a_question_is_searched_by_its_words(index):
    def ids(query, **settings):
        return [found.id for found in index.as_retriever("keyword", **settings).invoke(query)]

    assert ids("Who was Boso?") == ["boso:0"]  # not "who" and "was", which all hold
    assert ids("boso COUNT", granularity="sentence") == ["boso:0#1", "boso:0#0"]
    assert ids('"the father" of “the love”', granularity="sentence") == ["boso:0#0"]
    assert ids("Judith") == []
    assert ids("was his") == ["lothair:0"]  # only common words: the query as a whole


def test_a_sentence_of_a_chunk_of_several_documents_has_its_own_document(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", DOCUMENTS)
    with ingest(corpus, tmp_path / "index", embedder=HashEmbeddings(), pack=True) as packed:
        (chunk,) = packed.as_retriever("keyword", k=1).invoke("abbot")
        assert chunk.metadata["document_ids"] == ["lothair", "boso", "hucbert"]
        assert chunk.metadata["title"] == "Lothair II; Boso; Hucbert"
        assert "year" not in chunk.metadata
        (sentence,) = packed.as_retriever("keyword", k=1, granularity="sentence").invoke("Waldrada")
        assert sentence.metadata["document_ids"] == ["lothair"]
        assert sentence.metadata["year"] == 855


def test_pages_are_told(tmp_path):
    canvas = Canvas(str(tmp_path / "two.pdf"))
    for line in ("One page.", "Another page."):
        canvas.drawString(72, 700, line)
        canvas.showPage()
    canvas.save()
    with ingest(tmp_path / "two.pdf", tmp_path / "index", embedder=HashEmbeddings()) as read:
        assert read.as_retriever("keyword").invoke("another")[0].metadata["pages"] == [1, 2]


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"search": "hybrid"}, "search"), ({"k": 0}, "k: "), ({"granularity": "page"}, "granularity")],
)
def test_a_setting_that_is_not_valid_is_named(index, settings, told):
    with pytest.raises(InputError, match=told):
        index.as_retriever(**settings)
    with pytest.raises(InputError, match="top_k is 0"):
        index.as_retriever().invoke("Boso", k=0)
