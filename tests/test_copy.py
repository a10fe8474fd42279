"""A copied index answers as the one it was copied from, wherever both are, and whatever happens on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import closing
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag import copy_index
from arag.errors import IndexLockedError, IndexNotFoundError, InputError, ModelError
from arag.ingest import copying
from arag.ingest.maintenance import remove, verify
from arag.ingest.pipeline import ingest
from arag.retrieval.index import open_index
from arag.retrieval.locations import using_store
from arag.retrieval.storage import DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.types import Chunk, Sentence, Table
from fakes import DIMENSION, HashEmbeddings
from forked import processes

KINDS = ("folder", "postgres")
PAIRS = [(one, other) for one in KINDS for other in KINDS]
DOCUMENTS = [
    *(
        {"id": f"d{n}", "text": f"Ship{n} was built in {1500 + n}. It sailed to port {n % 7}.", "year": n}
        for n in range(30)
    ),
    {
        "id": "odd",
        "title": "Ödd Ⅷ",
        "text": "Ça va? İstanbul’da 東京 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 e\u0301 \u202e x%_\\ ''\"\". 北京是首都。",
    },
    {"id": "long", "text": " ".join(f"In {n} nobody of note came to the fair." for n in range(1500, 1560))},
    {"id": "tables", "text": "# Loads\n\n| Year | Tons |\n| --- | --- |\n| 1911 | 7 |\n\n## More\n\nNone."},
    {"id": "vectorless", "text": "!!! ???"},
]


@pytest.fixture
def new_place(places, tmp_path):
    """A function that returns a new place of a kind."""
    numbers = count()
    return lambda kind="folder": places(kind, tmp_path / f"place-{next(numbers)}")


def write(place, documents=DOCUMENTS, **options):
    ingest(documents, place, **({"embedder": HashEmbeddings(), "chunk_tokens": 60} | options)).close()
    return place


@pytest.fixture(scope="module")
def sources(places, tmp_path_factory):
    """The same index in a place of each kind."""
    return {kind: write(places(kind, tmp_path_factory.mktemp("source") / "index")) for kind in KINDS}


def copy_of(source, target):
    copy_index(source, target)
    return target


def contents(place):
    """Everything that an index holds, by document."""
    with using_store(place) as store, closing(store.open()) as view:
        records = list(view.documents())
        chunks = view.chunks_of([record.id for record in records])
        numbers = view.numbers([chunk.id for chunk in chunks])
        vectors = {
            number: np.asarray(found, np.float16).tobytes() for number, _, found in view.vectors(numbers.values())
        }
        return (
            records,
            chunks,
            [vectors.get(numbers[chunk.id], b"") for chunk in chunks],
            replace(view.settings, token=""),
        )


def answers(index, query):
    semantic = index.semantic_search(query, 5).hits
    return (
        index.keyword_search(query.split() or ["x"], 5),
        index.keyword_search(query.split() or ["x"], 5, by_coverage=True),
        [(hit.chunk_id, round(hit.score, 3), hit.excerpt.sentences[0].text) for hit in semantic],
        index.find_documents(query, 5),
    )


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_copy_holds_what_its_source_holds(sources, new_place, one, other):
    target = new_place(other)
    summary = copy_index(sources[one], target)
    assert contents(target) == contents(sources[one])
    assert summary.written == summary.chunks == len(contents(target)[1])
    assert copy_index(sources[one], target).written == 0
    assert verify(target) == ([], [])


@pytest.fixture(scope="module")
def copies(places, sources, tmp_path_factory):
    """The source in the folder, and its copies, all open."""
    new = [places(kind, tmp_path_factory.mktemp("copy") / "index") for kind in KINDS]
    made = [sources["folder"], *(copy_of(sources["folder"], place) for place in new)]
    opened = [open_index(place, embedder=HashEmbeddings()) for place in made]
    yield opened
    for index in opened:
        index.close()


@given(
    st.lists(
        st.sampled_from("ship ship7 built 1530 port sailed it İstanbul 東京 北京 fair nobody d1 zzz % Shipp7".split()),
        min_size=1,
        max_size=3,
    )
)
def test_searches_of_all_kinds_find_the_same_in_a_copy(copies, words):
    expected, *found = [answers(index, " ".join(words)) for index in copies]
    assert found == [expected] * len(found)


@pytest.mark.parametrize(("one", "other"), [("folder", "postgres"), ("postgres", "folder")])
def test_unusual_chunks_are_copied_as_they_are(new_place, one, other):
    zero = np.zeros((2, DIMENSION), np.float32)
    zero[1, 3] = -0.0
    row = Sentence(2, 3, True, "A > B", Table("T", "x | y"))
    chunks = [
        Chunk("ready made #1", "d", 0, "\u2028", "A text.", (Sentence(0, 7, True),), 1, False, (3, 4)),
        Chunk("d:1", "d", 1, "\u2028", "x y", (Sentence(0, 1, True), Sentence(1, 2, False), row), 7, False),
        Chunk("\u0001\u200b𝔘", "𝔘", 0, "", "\r\n\t\u0001\uffff", (), 1, True),
    ]
    documents = [
        EmbeddedDocument(
            DocumentRecord("d", "\u2028", "here", '{"a": [1, null]}', "", 2), chunks[:2], [zero[:1], zero]
        ),
        EmbeddedDocument(DocumentRecord("𝔘", "", "", "{}", "f", 1), chunks[2:], [zero[:0]]),
    ]
    source = new_place(one)
    settings = Settings("HashEmbeddings:hash-64", DIMENSION, 77, "o200k_base, estimate")
    with using_store(source) as store, store.draft(lambda: settings) as draft:
        assert draft.put(documents) == {}
        draft.publish(draft.settings)
    target = copy_of(source, new_place(other))
    assert contents(target) == contents(source)
    assert contents(target)[1] == chunks


# --- what the target may be ---


@pytest.mark.parametrize(("one", "other"), [("folder", "postgres"), ("postgres", "folder")])
def test_an_earlier_copy_is_brought_up_to_date(new_place, one, other):
    source = write(new_place(one))
    target = copy_of(source, new_place(other))
    write(source, [{"id": "d1", "text": "Another text."}, {"id": "new", "text": "News."}, {**DOCUMENTS[8], "year": -1}])
    remove(["d0", "d2"], source)
    with open_index(target, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship0").total == 1
        assert copy_index(source, target).written == 3
        assert reader.keyword_search("ship0").total == 0
        assert reader.keyword_search("news").total == 1
    assert contents(target) == contents(source)


@pytest.mark.parametrize("kind", KINDS)
def test_another_corpus_is_not_replaced(new_place, sources, kind):
    target = write(new_place(kind), [{"id": "mine", "text": "Mine alone."}])
    before = contents(target)
    with pytest.raises(InputError, match=r"holds another corpus \(mine, \.\.\.\): copy to another place"):
        copy_index(sources["folder"], target)
    assert contents(target) == before


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_ingestion_makes_room(new_place, sources, kind):
    target = copy_of(sources["folder"], new_place(kind))
    with pytest.raises(ModelError):
        write(target, [{"id": "d3", "text": "A new text."}], embedder=HashEmbeddings(fail_after=0))
    copy_index(sources["folder"], target)
    assert contents(target) == contents(sources["folder"])


def test_vectors_of_another_embedder_are_refused(new_place, sources):
    class Other(HashEmbeddings):
        model = "other"

    target = write(new_place(), DOCUMENTS[:2], embedder=Other())
    with pytest.raises(ModelError, match=r"was made with another embedder \(Other:other, 64 dimensions\)"):
        copy_index(sources["folder"], target)


def test_a_copy_to_itself_changes_nothing(sources):
    for place in sources.values():
        before = contents(place)
        assert copy_index(place, place).written == 0
        assert contents(place) == before


def test_there_must_be_a_source(new_place):
    target = new_place()
    with pytest.raises(IndexNotFoundError):
        copy_index(new_place(), target)
    assert not target.exists()


def test_a_locked_target_is_left_alone(new_place, sources):
    target = copy_of(sources["folder"], new_place())
    with using_store(target) as store, store.draft(store.settings), pytest.raises(IndexLockedError):
        copy_index(sources["folder"], target)


def test_documents_that_another_process_writes_are_left_to_it(new_place, sources):
    target = copy_of(sources["folder"], new_place("postgres"))
    remove("d3", target)
    with using_store(target) as store, store.draft(store.settings) as draft:
        assert draft.claim({"d3"}) == {"d3"}
        with pytest.raises(IndexLockedError, match="another process is writing the same documents"):
            copy_index(sources["folder"], target)
    assert copy_index(sources["folder"], target).written == 1


def test_a_read_only_source_is_copied_and_no_embedder_is_loaded(new_place, sources, tmp_path, monkeypatch):
    source = shutil.copytree(sources["folder"], tmp_path / "read-only")
    for path in (*source.rglob("*"), source):
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.setattr("arag.models.embedders.load_embeddings", None)
    assert contents(copy_of(source, new_place())) == contents(sources["folder"])


# --- interrupted ---


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_rest_is_copied(new_place, sources, kind, monkeypatch):
    monkeypatch.setattr(copying, "_DOCUMENTS_AT_ONCE", 3)
    target = new_place(kind)

    def on_progress(now):
        if now.phase == "copying" and now.done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_index(sources["folder"], target, progress=on_progress)
    with pytest.raises(IndexNotFoundError):
        open_index(target, embedder=HashEmbeddings())
    summary = copy_index(sources["folder"], target)
    assert summary.chunks - 20 <= summary.written <= summary.chunks - 10
    assert contents(target) == contents(sources["folder"])


def copy_until(source, target, step):
    """Copy, and be killed at a step."""
    copying._DOCUMENTS_AT_ONCE = 3
    steps = count(1)

    def on_progress(_):
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    copy_index(source, target, progress=on_progress)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_copy_is_finished_by_the_next_and_seen_as_a_whole(new_place, sources, kind):
    source, target = sources["folder"], new_place(kind)
    older = copy_of(source, new_place())
    write(older, [{"id": f"d{n}", "text": f"Ship{n} sank."} for n in range(10)])
    copy_index(older, target)
    before = contents(target)
    for step in (3, 6, 11, 12, 13, 15):  # the last ones are of the publication
        process = processes.Process(target=copy_until, args=(source, target, step))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL or (process.exitcode == 0 and step > 10)  # little was left
        assert contents(target) in (before, contents(source))
    copy_index(source, target)
    assert contents(target) == contents(source)


# --- the command ---


def test_the_command_copies(arag, sources, new_place):
    target = new_place("postgres")
    code, out, err = arag("copy", sources["folder"], target)
    assert (code, err) == (0, "")
    assert out.startswith("Copied 34 documents")
    code, out, err = arag("copy", target, sources["folder"].parent / "back", "--json")
    assert (code, err, json.loads(out)["documents"]) == (0, "", 34)
    code, out, err = arag("copy", "nowhere", target)
    assert (code, out) == (1, "")
    assert "no index in nowhere" in err


def test_progress_is_told(sources, new_place, capsys):
    told = []
    copy_index(sources["folder"], new_place(), progress=told.append)
    assert list(dict.fromkeys(now.phase for now in told)) == ["reading", "copying", "publishing", "done"]
    assert str(told[-1]).startswith("Done: ")
    assert all(now.done <= now.total for now in told)
    copy_index(sources["folder"], new_place(), progress=True)
    assert capsys.readouterr().err == ""  # it was over at once
