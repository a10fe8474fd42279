"""An index as a LangChain retriever: LangChain's own tests of retrievers, and what is particular to this one."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_tests.integration_tests import RetrieversIntegrationTests

from arag.errors import InputError
from arag.ingest.pipeline import ingest
from arag.retrieval.retriever import IndexRetriever
from fakes import HashEmbeddings

LOTHAIR = "Lothair II was a king of Lotharingia. He married Teutberga."
DOCUMENTS = [
    {"id": "lothair", "title": "Lothair II", "text": f"{LOTHAIR} Waldrada was his love.", "year": 855, "score": 7},
    {"id": "boso", "title": "Boso", "text": "Boso the Elder was the father of Teutberga. Boso was a count."},
    {"id": "hucbert", "title": "Hucbert", "text": "Hucbert was an abbot. His sister was a queen."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with ingest(DOCUMENTS, tmp_path_factory.mktemp("index") / "index", embedder=HashEmbeddings()) as opened:
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
        return {"index": self.index, "search": self.search}

    @property
    def retriever_query_example(self):
        return "Who was the father of Teutberga, a queen or a king?"


class TestSemantic(Standard):
    search = "semantic"


class TestKeyword(Standard):
    search = "keyword"


def test_a_chunk_comes_with_what_is_known_about_it(index):
    (found,) = index.as_retriever(k=1).invoke("He married Teutberga.")
    score = index.semantic_search("He married Teutberga.", 1).hits[0].score
    assert found == Document(
        id="lothair:0",
        page_content=DOCUMENTS[0]["text"],
        metadata={
            "chunk_id": "lothair:0",
            "document_id": "lothair",
            "title": "Lothair II",
            "source": index.document("lothair").source,
            "score": score,  # not the document's own field of this name
            "year": 855,
        },
    )
    assert dumps(found)


def test_a_question_is_searched_by_its_words(index):
    def ids(query):
        return [document.id for document in index.as_retriever("keyword").invoke(query)]

    assert ids("Who was Boso?") == ["boso:0"]  # not "who" and "was", which all hold
    assert ids('"the father" of “the love”') == ["boso:0"]
    assert ids("was his") == ["lothair:0"]  # only common words: the query as a whole


def test_a_setting_that_is_not_valid_is_named(index):
    with pytest.raises(ValueError, match="'semantic' or 'keyword'"):
        index.as_retriever(search="hybrid")
    with pytest.raises(InputError, match="top_k is 0"):
        index.as_retriever().invoke("Boso", k=0)
