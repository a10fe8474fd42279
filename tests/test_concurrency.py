"""One process writes an index at a time; any number of others, and of threads, see one version of it whole."""

from __future__ import annotations

import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from threading import Barrier, Event

import pytest

from arag.errors import IndexLockedError
from arag.ingest.pipeline import run_ingest
from arag.models.similarity import rescale
from arag.retrieval.index import open_index
from arag.retrieval.presentation.matches import matched_sentences
from arag.retrieval.storage.folder.store import FolderStore
from arag.retrieval.storage.folder.view import FolderView
from fakes import write_corpus
from selection import EVERYWHERE
from stores import trust
from versions import Run, TextEmbeddings, text_vector

THREADS = 8

# --- a corpus of which every sentence says its version, and that has another size in every version ---


def corpus(version):
    return {
        f"d{n}": " ".join(f"Edition {version} has document w{n} with its line {k}." for k in range(6))
        for n in range(30 + version)
    }


def write(folder, version):
    return write_corpus(folder / "corpus", [{"id": i, "text": text} for i, text in corpus(version).items()])


def ingest_version(folder, version, place=None):
    source = write(folder, version)
    run_ingest(source, place or folder / "index", embedder=TextEmbeddings(), chunk_tokens=50, prune=True)


@pytest.fixture(scope="module")
def first_version(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    ingest_version(folder, 1)
    return folder


@pytest.fixture
def folder(first_version, tmp_path):
    shutil.copytree(first_version, tmp_path, dirs_exist_ok=True)
    trust(tmp_path / "index")
    return tmp_path


def opened(folder):
    return open_index(folder / "index", embedder=TextEmbeddings())


# --- searches that return the version that all they have found is of ---


def the_version(texts):
    (version,) = {int(version) for text in texts for version in re.findall(r"Edition (\d+)", text)}
    return version


def shown(hits):
    return [hit.chunk.sentence_text(position) for hit in hits for position in matched_sentences(hit)]


def by_keyword(index):
    results = index.keyword_search(["edition", "document w7 with", "absent"], top_k=500)
    version = the_version(shown(results.hits))
    ids = {hit.chunk_id for hit in results.hits}
    assert {i.split(":")[0] for i in ids} == set(corpus(version))
    assert [report.chunks for report in results.keywords] == [len(ids), sum(i.startswith("d7:") for i in ids), 0]
    assert results.total == len(ids) == len(results.hits)
    return version


def by_meaning(index):
    query = "Which document has a line?"
    results = index.semantic_search(query, top_k=10)
    assert len(results.hits) == 10
    for hit in results.hits:
        for position, similarity in hit.similarities.items():
            text = hit.chunk.sentence_text(position)
            cosine = text_vector(query) @ text_vector(text)
            assert similarity == pytest.approx(rescale(cosine, index.info().spread), abs=1e-4)
    return the_version(shown(results.hits))


def by_reading(index):
    results = index.read(["d0:0", "d29:0", "nothing:0"], adjacent=2)
    version = the_version([chunk.text for chunk in results.chunks])
    texts = dict.fromkeys(("d0", "d29"), "")
    for chunk in results.chunks:
        texts[chunk.document_id] += chunk.text
    assert all(text == corpus(version)[i] for i, text in texts.items())
    return version


def by_info(index):
    info = index.info()
    assert info.sentences == 6 * info.documents
    return info.documents - 30


SEARCHES = [by_keyword, by_meaning, by_reading, by_info]


# --- one writer ---


def test_a_second_writer_is_refused_and_readers_read(folder):
    source = write(folder, 9)
    with Run(source, folder / "index", moment=("embed", 1, signal.SIGSTOP)) as run:
        assert run.wait_for_moment()
        with pytest.raises(IndexLockedError, match="another process"):
            ingest_version(folder, 2)
        with opened(folder) as index:
            assert {search(index) for search in SEARCHES} == {1}
    ingest_version(folder, 2)  # a killed writer leaves no lock
    with opened(folder) as index:
        assert {search(index) for search in SEARCHES} == {2}


# --- many readers ---


def test_searches_ask_side_by_side_whether_there_is_something_newer(folder, monkeypatch):
    with opened(folder) as index, ThreadPoolExecutor(2) as pool:
        ask, both = FolderStore.stamp, Barrier(2)
        monkeypatch.setattr(FolderStore, "stamp", lambda store: (both.wait(timeout=30), ask(store))[1])
        assert list(pool.map(by_keyword, [index, index])) == [1, 1]


@pytest.mark.parametrize(
    ("overtaken", "search"),
    [
        ("keyword_texts", by_keyword),
        ("_open_keywords", by_keyword),
        ("sentences", by_meaning),
        ("_open_vector_index", by_meaning),
    ],
)
def test_a_search_that_writers_overtake_sees_one_version(folder, monkeypatch, through_chroma, overtaken, search):
    versions = [3, 2]
    original = getattr(FolderView, overtaken)

    def overtake(*arguments):
        if versions:
            ingest_version(folder, versions.pop())
        return original(*arguments)

    monkeypatch.setattr(FolderView, overtaken, overtake)
    with opened(folder) as index:
        assert search(index) in {1, 2, 3}
        assert search(index) == 3


# --- many threads ---


def test_a_search_for_keywords_does_not_wait_for_vectors_to_load(folder, monkeypatch):
    is_loading, go_on, make = Event(), Event(), FolderView._make_matrix

    def load(view):
        is_loading.set()
        assert go_on.wait(60)
        return make(view)

    monkeypatch.setattr(FolderView, "_make_matrix", load)
    with opened(folder) as index, ThreadPoolExecutor() as pool:
        loading = pool.submit(index.semantic_search, "a ship")
        assert is_loading.wait(60)
        assert pool.submit(index.keyword_search, "the").result(60)
        go_on.set()
        assert loading.result(60).hits


@pytest.mark.parametrize("kind", [*EVERYWHERE, "folder with a large index"])
def test_threads_see_one_version_whole_while_another_thread_writes(tmp_path, kind, places, request):
    if kind.endswith("large index"):
        request.getfixturevalue("through_chroma")
    place = places(kind, tmp_path / "index")
    ingest_version(tmp_path, 1, place)
    with open_index(place, embedder=TextEmbeddings()) as index, ThreadPoolExecutor(THREADS) as pool:
        writing = pool.submit(lambda: [ingest_version(tmp_path, version, place) for version in range(2, 5)])
        seen = []
        while not writing.done():
            seen.append([pool.submit(search, index) for search in SEARCHES])
            wait(seen[-1])
        writing.result()
        versions = [sorted(search.result() for search in searches) for searches in seen]
        assert all(earlier[0] <= later[-1] for earlier, later in pairwise(versions))
        assert {search(index) for search in SEARCHES} == {4}
