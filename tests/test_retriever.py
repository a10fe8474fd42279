"""An index as a LangChain retriever."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps

from arag.errors import InputError
from arag.ingest.pipeline import ingest
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


def test_a_chunk_comes_with_what_is_known_about_it(index):
    (document,) = index.as_retriever(k=1).invoke("He married Teutberga.")
    score = index.semantic_search("He married Teutberga.", 1).hits[0].score
    assert document == Document(
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
    assert dumps(document)


@pytest.mark.parametrize("search", ["semantic", "keyword"])
def test_as_many_chunks_come_as_were_asked_for_also_asynchronously(index, search):
    query = "Who was the father of Teutberga, a queen or a king?"
    for k in (2, 3):
        retriever = index.as_retriever(search, k=k)
        assert len(retriever.invoke(query)) == k
        assert asyncio.run(retriever.ainvoke(query)) == retriever.invoke(query)


def test_a_question_is_searched_by_its_words(index):
    def ids(query):
        return [document.id for document in index.as_retriever("keyword").invoke(query)]

    assert ids("Who was Boso?") == ["boso:0"]  # not "who" and "was", which all hold
    assert ids('"the father" of “the love”') == ["boso:0"]
    assert ids("was his") == ["lothair:0"]  # only common words: the query as a whole


def test_a_setting_that_is_not_valid_is_named(index):
    with pytest.raises(ValueError, match="'semantic' or 'keyword'"):
        index.as_retriever(search="hybrid")


@pytest.mark.parametrize("search", ["semantic", "keyword"])
def test_a_call_may_ask_for_another_number_as_with_other_retrievers(index, search):
    query = "Who was the father of Teutberga, a queen or a king?"
    retriever = index.as_retriever(search, search_kwargs={"k": 2})
    assert len(retriever.invoke(query)) == 2
    assert len(retriever.invoke(query, k=1)) == 1
    assert len(asyncio.run(retriever.ainvoke(query, k=3))) == 3
    with pytest.raises(InputError, match="top_k is 0: it must be at least 1"):
        retriever.invoke(query, k=0)


def test_search_options_that_are_not_known_are_named(index):
    with pytest.raises(InputError, match=r"unknown keys: fetch_k\. Valid key: k"):
        index.as_retriever(search_kwargs={"k": 1, "fetch_k": 20})
