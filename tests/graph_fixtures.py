"""An index for the tests of the graph: three short documents that lead to each other, and a long one."""

from __future__ import annotations

import pytest

from arag.ingest.pipeline import ingest
from conftest import write_corpus
from fakes import HashEmbeddings
from scripted_model import DOCUMENTS


@pytest.fixture(scope="session")
def small_index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as index:
        yield index
