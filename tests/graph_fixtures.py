"""What the tests of the graph share: an index of three short documents that lead to each other and a long one."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from arag.ingest.pipeline import ingest
from conftest import write_corpus
from fakes import HashEmbeddings
from scripted_model import DOCUMENTS


@pytest.fixture(scope="session")
def small_index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as index:
        yield index


@pytest.fixture(params=["memory", "sqlite"])
def checkpointer(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            yield saver
