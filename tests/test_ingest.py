from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import httpx
import numpy as np
import pytest

from arag.errors import EmbedderError, IndexFormatError, IndexLockedError, IndexNotFoundError, InputError
from arag.ingest.documents import Problem
from arag.ingest.pipeline import ingest, run_ingest
from arag.retrieval.index import Index, open_index
from arag.retrieval.local.folder import _GENERATION_FILE
from arag.retrieval.local.manifest import read_manifest, vectors_folder
from arag.retrieval.local.sentence_store import SentenceStore
from arag.retrieval.locations import backend_at
from fakes import HashEmbeddings, hash_vector, write_corpus
from forked import processes
from memory_backend import MemoryBackend
from selection import slow_except

TEXTS = {
    "ship": "The ship was built in Rome. She sank in 1912.",
    "gull": "A gull is a bird. It eats fish.",
    "notes/tern.md": "# The Tern\n\nA tern is a bird, too. It flies far.",
    "china": "北京是中国的首都。上海是最大的城市！",
    "long": " ".join(f"In the year {n} nobody sailed from the harbour of Vellin." for n in range(1500, 1600)),
}


class Corpus:
    """A folder of documents, an index of them, and what was embedded for it."""

    def __init__(self, folder, index):
        self.source = folder / "corpus"
        self.index = index
        self.embedder = HashEmbeddings()

    def write(self, documents):
        return write_corpus(self.source, documents)

    def ingest(self, documents=None, **options):
        """Ingest, and give back the summary and the texts that were embedded (but for the probe of a new index)."""
        if documents is not None:
            self.write(documents)
        self.embedder.embedded.clear()
        summary = run_ingest(self.source, self.index, embedder=self.embedder, **options)
        return summary, [text for text in self.embedder.embedded if text != "dimension"]

    def open(self):
        return open_index(self.index, embedder=self.embedder)


@pytest.fixture
def corpus(tmp_path, backend, places):
    return Corpus(tmp_path, places(backend, tmp_path / "index"))


BACKENDS = ["folder", "memory", "postgres"]
in_any_backend = pytest.mark.parametrize("backend", slow_except("folder", "memory", among=BACKENDS), indirect=True)
in_every_backend = pytest.mark.parametrize("backend", BACKENDS, indirect=True)


def chunks_of(index):
    return {chunk_id: index.get(chunk_id) for chunk_id in index.chunk_ids()}


def documents_of(index):
    """Every document's text, put together from its chunks."""
    found = {}
    for chunk in chunks_of(index).values():
        for section in chunk.sections:
            found.setdefault(section.document_id, []).append(chunk.text[section.start : section.end])
    return {document_id: "".join(parts) for document_id, parts in found.items()}


def vectors_of(folder):
    """What the vector store holds: chunk id, position and text of each sentence, and its vector."""
    if isinstance(folder, str):  # PostgreSQL compares with the vectors of its table, while they are few
        with open_index(folder, embedder=HashEmbeddings()) as index:
            return {
                (chunk.id, position, chunk.sentence_text(position)): vector
                for chunk, positions, vectors in index.sentence_vectors()
                for position, vector in zip(positions, vectors, strict=True)
            }
    if isinstance(folder, MemoryBackend):
        stored = folder.current.chunks
        return {
            (chunk.id, position, chunk.sentence_text(position)): vector
            for number, chunk in stored.chunks.items()
            for position, vector in zip(
                [i for i, s in enumerate(chunk.sentences) if s.embedded], stored.vectors[number], strict=True
            )
        }
    store = SentenceStore(vectors_folder(folder, read_manifest(folder).generation))
    rows = store._read_rows(store._collection.get(include=[])["ids"]).values()
    store.close()
    return {(row.chunk_id, int(row.id.partition("#")[2]), row.text): row.vector for row in rows}


def assert_consistent(folder, embedder):
    """The vector store holds the right vector of every embedded sentence of the chunks, and no other."""
    with open_index(folder, embedder=embedder) as index:
        chunks = chunks_of(index)
        expected = {
            (chunk.id, position, chunk.sentence_text(position))
            for chunk in chunks.values()
            for position, sentence in enumerate(chunk.sentences)
            if sentence.embedded
        }
        info = index.info()
        stored = index._snapshot.chunks
        if isinstance(folder, Path):
            assert index._reader._chunks.claim(1) == []
            assert not index._reader._chunks.differs_from(read_manifest(folder).generation)
        assert info.chunks == len(chunks)
        assert info.documents == len(list(stored.documents())) == len(documents_of(index))
        assert info.sentences == len(expected)
        ids = {document.id for document in stored.documents()}
        assert {section.document_id for chunk in chunks.values() for section in chunk.sections} == ids
    found = vectors_of(folder)
    assert set(found) == expected
    for (_, _, text), vector in found.items():
        assert np.linalg.norm(vector - hash_vector(text)) < 2e-3  # kept a thousandth apart from its copies
    manifest = backend_at(folder).manifest()
    assert (manifest.chunks, manifest.sentences) == (len(chunks), len(expected))


# --- nothing is lost ---


@in_every_backend
@pytest.mark.parametrize("pack", [False, True])
def test_every_text_comes_back(corpus, pack):
    summary, embedded = corpus.ingest(TEXTS, pack=pack, chunk_tokens=200)
    assert (summary.documents, summary.written, summary.removed) == (5, 5, 0)
    assert summary.problems == ()
    with corpus.open() as index:
        assert documents_of(index) == TEXTS
        assert summary.chunks == index.info().chunks
        for chunk in chunks_of(index).values():
            assert chunk.tokens <= 200
        if pack:
            assert len([c for c in chunks_of(index).values() if len(c.sections) > 1]) > 0
    assert summary.embedded == len(embedded) == len(set(embedded))
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_titles_and_metadata_are_kept(corpus):
    corpus.ingest([{"id": "a", "title": "The Ship", "text": "She sank.", "year": 1912, "tags": ["北京", None]}])
    with corpus.open() as index:
        (record,) = index._snapshot.chunks.documents()
        assert (record.id, record.title) == ("a", "The Ship")
        assert json.loads(record.metadata) == {"year": 1912, "tags": ["北京", None]}
        assert index.get("a:0").text == "The Ship\n\nShe sank."


@in_any_backend
def test_documents_are_listed_page_by_page_and_come_back_whole(corpus, monkeypatch):
    monkeypatch.setattr("arag.retrieval.index._PAGE", 3)
    monkeypatch.setattr("arag.retrieval.tables.chunks._DOCUMENTS_PER_QUERY", 2)
    texts = {f"d{number}": f"Text {number}. {'More of it. ' * 40 * number}".strip() for number in range(7)}
    corpus.ingest([{"id": i, "text": text} for i, text in texts.items()], pack=True, chunk_tokens=200)
    with corpus.open() as index:
        assert [info.id for info in index.documents()] == list(texts)
        assert [info.id for info in index.documents(after="d3")] == ["d4", "d5", "d6"]
        assert [info.id for info in index.documents(after="d4x\ud800")] == ["d5", "d6"]
        assert {i: index.document_text(i) for i in texts} == texts
        assert index.document_text("d7") is None


def test_real_corpora_come_back(real_corpora, tmp_path):
    lines = (real_corpora / "hotpotqa" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:300]
    records = [json.loads(line) for line in lines]
    source = write_corpus(tmp_path / "corpus", records)
    with ingest(source, tmp_path / "index", embedder=HashEmbeddings(), pack=True) as index:
        texts = documents_of(index)
        assert len(texts) == 300
        for record in records:
            assert record["text"].split() == texts[str(record["id"])].split()[-len(record["text"].split()) :]
    assert_consistent(tmp_path / "index", HashEmbeddings())


# --- running it again ---


@in_any_backend
@pytest.mark.parametrize("pack", [False, True])
def test_the_same_again_embeds_nothing(corpus, pack):
    corpus.ingest(TEXTS, pack=pack)
    before = vectors_of(corpus.index).keys()
    summary, embedded = corpus.ingest(pack=pack)
    assert (summary.documents, summary.written, summary.embedded) == (5, 0, 0)
    assert embedded == []
    assert vectors_of(corpus.index).keys() == before


@in_every_backend
@pytest.mark.parametrize("pack", [False, True])
def test_only_new_sentences_of_a_changed_document_are_embedded(corpus, pack):
    corpus.ingest(TEXTS, pack=pack)
    summary, embedded = corpus.ingest(TEXTS | {"gull": "A gull is a bird. It eats anything. It cries."}, pack=pack)
    assert embedded == ["It eats anything.", "It cries."]
    assert summary.embedded == 2
    with corpus.open() as index:
        assert index.keyword_search(["eats fish"]).total == 0
        assert index.keyword_search(["eats anything"]).total == 1
    assert not any(text == "It eats fish." for _, _, text in vectors_of(corpus.index))
    assert_consistent(corpus.index, corpus.embedder)


@in_every_backend
def test_a_document_that_shrinks_leaves_nothing_behind(corpus):
    corpus.ingest(TEXTS, chunk_tokens=100)
    with corpus.open() as index:
        assert index.get("long:3") is not None
    _, embedded = corpus.ingest(
        TEXTS | {"long": TEXTS["long"][: TEXTS["long"].index("In the year 1503")]}, chunk_tokens=100
    )
    assert embedded == []
    with corpus.open() as index:
        assert [i for i in index.chunk_ids() if i.startswith("long")] == ["long:0"]
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_a_new_document_is_added(corpus):
    corpus.ingest(TEXTS)
    summary, embedded = corpus.ingest(TEXTS | {"new": "A new document."})
    assert (summary.written, embedded) == (1, ["A new document."])
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_other_metadata_or_title_is_a_change_that_embeds_nothing(corpus):
    corpus.ingest([{"id": "a", "text": "She sank.", "year": 1}])
    summary, embedded = corpus.ingest([{"id": "a", "text": "She sank.", "year": 2}])
    assert (summary.written, embedded) == (1, [])
    with corpus.open() as index:
        assert json.loads(index._snapshot.chunks.document("a").metadata) == {"year": 2}


@in_any_backend
def test_another_chunk_size_cuts_again_and_embeds_nothing(corpus):
    corpus.ingest(TEXTS, chunk_tokens=1_000)
    summary, embedded = corpus.ingest(chunk_tokens=100)
    assert (summary.written, embedded) == (5, [])
    with corpus.open() as index:
        assert index.info().chunk_tokens == 100
        assert all(chunk.tokens <= 100 for chunk in chunks_of(index).values())
        assert documents_of(index) == TEXTS
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_another_order_changes_nothing(corpus):
    corpus.ingest(TEXTS)
    summary, _ = corpus.ingest(dict(reversed(TEXTS.items())))
    assert summary.written == 0
    assert_consistent(corpus.index, corpus.embedder)


# --- pruning ---


@in_every_backend
@pytest.mark.parametrize("pack", [False, True])
def test_prune_removes_what_is_gone(corpus, pack):
    corpus.ingest(TEXTS, pack=pack)
    fewer = {name: TEXTS[name] for name in ("ship", "long", "notes/tern.md")}
    summary, embedded = corpus.ingest(fewer, pack=pack, prune=True)
    assert (summary.removed, embedded) == (2, [])
    with corpus.open() as index:
        assert documents_of(index) == fewer
        assert index.keyword_search(["gull", "北京"]).total == 0
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
@pytest.mark.parametrize("pack", [False, True])
def test_without_prune_everything_stays(corpus, pack):
    corpus.ingest(TEXTS, pack=pack)
    summary, _ = corpus.ingest({"ship": TEXTS["ship"]}, pack=pack)
    assert summary.removed == 0
    with corpus.open() as index:
        assert documents_of(index) == TEXTS
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_prune_keeps_documents_of_a_file_that_cannot_be_read(corpus):
    corpus.ingest({"a.md": "One ship.", "b.md": "Two ships.", "c": "Three ships.", "d": "Four ships."})
    (corpus.source / "a.md").write_text(" ")
    (corpus.source / "b.md").unlink()
    (corpus.source / "corpus.jsonl").write_text('{"id": "c", "text": "Three ships."}\n{"id": "d", "te')
    summary, _ = corpus.ingest(prune=True)
    assert summary.removed == 1
    assert len(summary.problems) == 2
    with corpus.open() as index:
        assert sorted(documents_of(index)) == ["a.md", "c", "d"]


def test_prune_keeps_documents_of_a_folder_that_cannot_be_read(corpus, monkeypatch):
    corpus.ingest({"a.md": "One ship.", "deep/er/b.md": "Two ships.", "deeper.md": "Three."})
    (corpus.source / "deeper.md").unlink()

    from arag.ingest import pipeline

    def read(paths, **options):
        for item in original(paths, **options):
            deep = not isinstance(item, Problem) and "deep" in item.source
            yield Problem(str(corpus.source / "deep"), "Permission denied") if deep else item

    original = pipeline.read_documents
    monkeypatch.setattr(pipeline, "read_documents", read)
    summary, _ = corpus.ingest(prune=True)
    assert summary.removed == 1
    with corpus.open() as index:
        assert sorted(documents_of(index)) == ["a.md", "deep/er/b.md"]


@in_any_backend
def test_prune_knows_where_a_record_was_read_last(corpus):
    corpus.ingest({"a.md": "One ship.", "moved": "Two ships."})
    (corpus.source / "corpus.jsonl").rename(corpus.source / "other.jsonl")
    corpus.ingest()
    (corpus.source / "other.jsonl").write_text("{broken")
    corpus.ingest(prune=True)
    with corpus.open() as index:
        assert sorted(documents_of(index)) == ["a.md", "moved"]


@in_any_backend
def test_prune_does_not_mind_how_a_path_is_written(corpus, monkeypatch):
    corpus.ingest({"a.md": "One ship.", "b.md": "Two ships."})
    (corpus.source / "b.md").write_text(" ")
    monkeypatch.chdir(corpus.source.parent)
    run_ingest("corpus", "index", embedder=corpus.embedder, prune=True)
    with corpus.open() as index:
        assert sorted(documents_of(index)) == ["a.md", "b.md"]


# --- packing ---

PACKED = {name: f"The {name} is here. It came in {n}." for n, name in enumerate("abcdef")}


def sections(index):
    return {chunk.id: [s.document_id for s in chunk.sections] for chunk in chunks_of(index).values()}


@in_any_backend
def test_short_documents_share_a_chunk(corpus):
    corpus.ingest(PACKED, pack=True)
    with corpus.open() as index:
        assert sections(index) == {"a:0": list("abcdef")}
        assert index.read("d").chunks[0].id == "a:0"
        assert index.keyword_search(["the d is"]).hits[0].snippets[0].document_id == "d"


@in_every_backend
def test_a_member_that_changes_is_the_only_one_embedded(corpus):
    corpus.ingest(PACKED, pack=True)
    _, embedded = corpus.ingest(PACKED | {"c": "The c has gone."}, pack=True)
    assert embedded == ["The c has gone."]
    with corpus.open() as index:
        assert sections(index) == {"a:0": list("abcdef")}
        assert documents_of(index)["c"] == "The c has gone."
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
@pytest.mark.parametrize(("gone", "chunk_id"), [("a", "b:0"), ("c", "a:0"), ("f", "a:0")])
@pytest.mark.parametrize("pack", [True, False])
def test_a_member_that_is_removed_leaves_the_others(corpus, gone, chunk_id, pack):
    corpus.ingest(PACKED, pack=True)
    rest = {name: text for name, text in PACKED.items() if name != gone}
    _, embedded = corpus.ingest(rest, pack=pack, prune=True)
    assert embedded == []
    with corpus.open() as index:
        assert documents_of(index) == rest
        assert sections(index) == ({chunk_id: list(rest)} if pack else {f"{name}:0": [name] for name in rest})
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_members_in_another_order_are_packed_again(corpus):
    corpus.ingest(PACKED, pack=True)
    _, embedded = corpus.ingest(dict(reversed(PACKED.items())), pack=True)
    assert embedded == []
    with corpus.open() as index:
        assert sections(index) == {"f:0": list("fedcba")}
        assert documents_of(index) == PACKED
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_a_member_taken_in_alone_leaves_the_shared_chunk(corpus):
    corpus.ingest(PACKED, pack=True)
    corpus.ingest({"b": PACKED["b"]}, pack=True)
    with corpus.open() as index:
        assert sections(index) == {"a:0": list("acdef"), "b:0": ["b"]}
        assert documents_of(index) == PACKED
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_a_member_that_grows_gets_chunks_of_its_own(corpus):
    corpus.ingest(PACKED, pack=True, chunk_tokens=100)
    corpus.ingest(PACKED | {"c": TEXTS["long"]}, pack=True, chunk_tokens=100)
    with corpus.open() as index:
        found = sections(index)
        assert found["a:0"] == ["a", "b"]
        assert found["c:1"] == ["c"]
        assert found["d:0"] == ["d", "e", "f"]
        assert documents_of(index) == PACKED | {"c": TEXTS["long"]}
    assert_consistent(corpus.index, corpus.embedder)


# --- ready chunks ---


@in_every_backend
def test_ready_chunks_are_taken_over_with_their_ids(corpus):
    corpus.source.mkdir()
    ready = ["7: One ship. Two\nships.", "x:Three ships: four.", "9:# Heading"]
    (corpus.source / "chunks.json").write_text(json.dumps(ready))
    corpus.ingest(chunk_tokens=50, pack=True)
    with corpus.open() as index:
        assert {i: c.text for i, c in chunks_of(index).items()} == {
            "7": " One ship. Two\nships.",
            "x": "Three ships: four.",
            "9": "# Heading",
        }
        assert [c.id for c in index.read("x", adjacent=1).chunks] == ["7", "x", "9"]
    summary, embedded = corpus.ingest(chunk_tokens=50, pack=True)
    assert (summary.written, embedded) == (0, [])
    assert_consistent(corpus.index, corpus.embedder)


@in_any_backend
def test_a_chunk_id_that_is_taken_is_a_problem(corpus):
    corpus.write({"gull": "A gull."})
    (corpus.source / "chunks.json").write_text(json.dumps(["1:One ship.", "gull:0:Two ships."]))
    (corpus.source / "more").mkdir()
    (corpus.source / "more" / "chunks.json").write_text(json.dumps(["2:Three ships.", "1:Four ships."]))
    (corpus.source / "chunks.json").write_text(json.dumps(["1:One ship."]))
    summary, _ = corpus.ingest()
    (problem,) = summary.problems
    assert problem.source.endswith("more/chunks.json")
    assert "'1'" in problem.reason
    assert "'chunks.json'" in problem.reason
    assert summary.written == 2
    with corpus.open() as index:
        assert sorted(chunks_of(index)) == ["1", "gull:0"]
    assert_consistent(corpus.index, corpus.embedder)


# --- what is refused ---


def test_another_embedder_is_refused_and_nothing_changes(corpus):
    corpus.ingest(TEXTS)
    before = (corpus.index / "manifest.json").read_bytes()

    class Other(HashEmbeddings):
        model = "other"

    with pytest.raises(EmbedderError, match="HashEmbeddings:hash-64"):
        run_ingest(corpus.source, corpus.index, embedder=Other())
    assert (corpus.index / "manifest.json").read_bytes() == before


LOCK = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_an_index_that_another_process_writes_to_is_refused(corpus):
    corpus.ingest({"a": "One ship."})
    corpus.write({"a": "One ship.", "b": "Two ships."})
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(corpus.index / "write.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    (corpus.index / "writer.json").write_text(json.dumps({"pid": process.pid, "host": "here", "since": "noon"}))
    try:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(IndexLockedError, match=f"process {process.pid} on here since noon"):
            corpus.ingest()
        with corpus.open() as index:
            assert index.keyword_search(["ship"]).total == 1
            assert len(index.semantic_search("ship").hits) == 1
    finally:
        process.communicate()
    assert corpus.ingest()[0].written == 1


def test_a_folder_with_other_things_in_it_is_refused(corpus):
    corpus.index.mkdir()
    (corpus.index / "thesis.md").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.md"):
        corpus.ingest(TEXTS)
    assert [file.name for file in corpus.index.iterdir()] == ["thesis.md"]


OWN = ["words.txt", "keywords.csv", "chroma.backup", "chroma.1.bak", "chunks.sqlite3.old", "manifest.json.newer"]


@pytest.mark.parametrize("name", [*OWN, "words.1"])
def test_a_folder_with_files_that_are_called_almost_as_an_indexs_is_refused(corpus, name):
    corpus.index.mkdir()
    (corpus.index / name).write_text("mine")
    with pytest.raises(InputError, match=f"holds no index .'{name}' is there"):
        corpus.ingest(TEXTS)
    assert [file.read_text() for file in corpus.index.iterdir()] == ["mine"]


def test_files_in_an_index_that_are_not_its_own_stay(corpus):
    corpus.ingest({"a": "One ship."})
    for name in OWN:
        (corpus.index / name).mkdir()
        (corpus.index / name / "mine.txt").write_text("mine")
    corpus.ingest({"a": "Two ships."})
    corpus.ingest({"a": "Three ships."})
    assert [(corpus.index / name / "mine.txt").read_text() for name in OWN] == ["mine"] * len(OWN)
    generations = [file.name for file in corpus.index.iterdir() if _GENERATION_FILE.fullmatch(file.name)]
    assert sorted(generations) == ["chroma.3", "keywords.3", "words.3"]


def test_an_index_in_the_folder_that_is_ingested_is_no_document(corpus):
    corpus.index = corpus.source / "idx"
    other = corpus.source / "deep" / "other"
    corpus.write({"a.md": "One ship.", "deep/b.md": "Two ships."})
    run_ingest(corpus.source / "a.md", other, embedder=corpus.embedder)
    for _ in range(2):
        summary, _ = corpus.ingest(prune=True)
        assert (summary.read, summary.documents, summary.problems) == (2, 2, ())
        assert summary.skipped == (Problem(str(other), "an index"),)
    with corpus.open() as index:
        assert sorted(documents_of(index)) == ["a.md", "deep/b.md"]


def test_what_is_given_twice_is_no_problem(corpus):
    corpus.write({"a.md": "One ship.", "b": "Two ships."})
    given = [corpus.source / "a.md", corpus.source, corpus.source / "corpus.jsonl", corpus.source]
    summary = run_ingest(given, corpus.index, embedder=corpus.embedder)
    assert (summary.read, summary.problems) == (2, ())


def test_a_file_as_the_index_is_refused(corpus):
    corpus.index.write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        corpus.ingest(TEXTS)
    assert corpus.index.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "names"),
    [({"chunk_tokens": 49}, "chunk_tokens"), ({"chunk_tokens": 0}, "chunk_tokens"), ({"language": "xy"}, "language")],
)
def test_settings_out_of_bounds_are_refused_before_anything_is_made(corpus, options, names):
    with pytest.raises(InputError, match=names):
        corpus.ingest(TEXTS, **options)
    assert not corpus.index.exists()


def test_nothing_readable_is_refused_before_anything_is_made(corpus):
    corpus.write({"a.md": " "})
    with pytest.raises(InputError, match=r"a\.md"):
        corpus.ingest()
    with pytest.raises(InputError, match="does not exist"):
        run_ingest(corpus.source / "nothing", corpus.index, embedder=corpus.embedder)
    assert not corpus.index.exists()


def test_a_missing_index_is_not_found(tmp_path):
    with pytest.raises(IndexNotFoundError, match="arag ingest"):
        open_index(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"format_version": 99}', '{"format_version": 1}'])
def test_a_damaged_manifest_is_a_format_error(corpus, manifest):
    corpus.ingest({"a": "One."})
    (corpus.index / "manifest.json").write_text(manifest)
    with pytest.raises(IndexFormatError, match=r"manifest\.json"):
        corpus.open()


# --- interruptions ---


@pytest.mark.parametrize("pack", slow_except(False, among=[False, True]))
@pytest.mark.parametrize("changed", slow_except(True, among=[False, True]))
def test_an_interrupted_run_is_finished_by_the_next(corpus, tmp_path, pack, changed):
    many = {f"d{n:03}": f"This is document {n}. It has {n} pages. It is old." for n in range(400)}
    if changed:
        old = {name: text.replace("This is", "That was") for name, text in many.items()} | {"gone": "It is gone."}
        corpus.ingest(old, pack=pack, chunk_tokens=50)
    corpus.write(many)
    failing = HashEmbeddings(fail_after=340 if changed else 750)
    with pytest.raises(EmbedderError, match="went away"):
        run_ingest(corpus.source, corpus.index, embedder=failing, pack=pack, chunk_tokens=50, prune=True)
    if not changed:
        with pytest.raises(IndexNotFoundError, match="holds no documents yet"):
            corpus.open()
    else:
        with corpus.open() as index:  # readers see the index as it was, whole
            assert index.info().documents == 401
            assert index.keyword_search(["This is"]).total == 0
            assert index.keyword_search(["That was"]).total > 0
            assert len(index.semantic_search("document 7", 5).hits) == 5
    summary, embedded = corpus.ingest(pack=pack, chunk_tokens=50, prune=True)
    assert summary.problems == ()
    assert embedded
    if not pack:
        assert len(embedded) < 800
    assert_consistent(corpus.index, corpus.embedder)
    whole = Corpus(tmp_path / "whole", tmp_path / "whole" / "index")
    whole.ingest(many, pack=pack, chunk_tokens=50)
    with corpus.open() as index, whole.open() as other:
        assert chunks_of(index) == chunks_of(other)
        for query in ("This is document 7.", "It has 8 pages"):
            assert index.semantic_search(query, 3).hits[0].score == pytest.approx(
                other.semantic_search(query, 3).hits[0].score, abs=1e-6
            )
    assert vectors_of(corpus.index).keys() == vectors_of(whole.index).keys()


def test_a_first_run_whose_embedder_fails_at_once_leaves_a_folder_that_can_be_used(corpus):
    corpus.write(TEXTS)
    with pytest.raises(EmbedderError, match="went away"):
        run_ingest(corpus.source, corpus.index, embedder=HashEmbeddings(fail_after=0))
    assert corpus.ingest()[0].written == 5
    assert_consistent(corpus.index, corpus.embedder)


class ServiceError(Exception):
    """What a provider's client raises: of no class that we know."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA out of memory"),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout(""),
        KeyError("data"),
        AssertionError("no vectors"),
        ServiceError("model not found"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_an_embedder_raises_is_an_embedder_error_with_its_cause(corpus, error):
    class Failing(HashEmbeddings):
        def embed_documents(self, texts):
            if texts == ["dimension"]:
                return super().embed_documents(texts)
            raise error

        def embed_query(self, text):
            raise error

    Failing.__name__ = "HashEmbeddings"
    said = re.escape("the embedder HashEmbeddings:hash-64 failed: " + f"{type(error).__name__}: {error}".rstrip(": "))
    corpus.write(TEXTS)
    with pytest.raises(EmbedderError, match=f"^{said}$") as caught:
        run_ingest(corpus.source, corpus.index, embedder=Failing())
    assert caught.value.__cause__ is error
    assert corpus.ingest()[0].written == 0  # the texts are there; only their vectors were not
    assert_consistent(corpus.index, corpus.embedder)
    with (
        open_index(corpus.index, embedder=Failing()) as index,
        pytest.raises(EmbedderError, match=f"^{said}$"),
    ):
        index.semantic_search("ship")


def test_an_embedder_without_memory_or_with_an_error_of_ours_is_let_through(corpus):
    for error in (MemoryError(), InputError("ours")):

        class Failing(HashEmbeddings):
            def embed_documents(self, texts, error=error):
                raise error

        with pytest.raises(type(error)) as caught:
            run_ingest(corpus.write(TEXTS), corpus.index, embedder=Failing())
        assert caught.value is error


# --- readers ---


@in_any_backend
def test_an_open_index_sees_what_is_written_later(corpus):
    corpus.ingest({"a": "One ship."})
    with corpus.open() as index:
        assert index.keyword_search(["ship"]).total == 1
        assert len(index.semantic_search("ship").hits) == 1
        corpus.ingest({"a": "One gull.", "b": "Two ships. Two gulls."})
        assert index.keyword_search(["ship"]).total == 1
        assert index.keyword_search(["gull"]).total == 2
        assert [hit.chunk_id for hit in index.semantic_search("two ships").hits] == ["b:0", "a:0"]
        assert index.read("a:0").chunks[0].text == "One gull."
        assert index.info().documents == 2


def test_an_open_index_sees_what_another_process_writes(corpus):
    corpus.ingest({"a": "One ship."})
    with corpus.open() as index:
        assert len(index.semantic_search("ship").hits) == 1
        corpus.write({"a": "One gull.", "b": "Two ships. Two gulls."})
        process = processes.Process(
            target=run_ingest, args=(corpus.source, corpus.index), kwargs={"embedder": HashEmbeddings()}
        )
        process.start()
        process.join()
        assert process.exitcode == 0
        assert index.keyword_search(["gull"]).total == 2
        assert [hit.chunk_id for hit in index.semantic_search("two ships").hits] == ["b:0", "a:0"]


def test_closing_one_reader_leaves_the_others_open(corpus):
    corpus.ingest(TEXTS)
    with corpus.open() as one:
        with corpus.open() as other:
            assert one.semantic_search("ship").hits == other.semantic_search("ship").hits
        assert one.semantic_search("a bird").hits
        assert one.keyword_search(["bird"]).total == 2


def test_an_index_may_be_opened_written_and_closed_many_times(corpus):
    for n in range(6):
        corpus.ingest({f"d{i}": f"Document {i}." for i in range(n + 1)})
        with corpus.open() as index:
            assert len(index.semantic_search("document", 20).hits) == n + 1


def test_an_index_that_was_moved_still_works(corpus, tmp_path):
    corpus.ingest(TEXTS)
    corpus.index.rename(tmp_path / "moved")
    with open_index(tmp_path / "moved", embedder=corpus.embedder) as index:
        assert index.keyword_search(["gull"]).total == 1
        assert index.semantic_search("a gull").hits[0].chunk_id == "gull:0"
    assert_consistent(tmp_path / "moved", corpus.embedder)


def test_an_index_that_was_opened_by_a_relative_path_is_searched_from_any_folder(corpus, monkeypatch):
    corpus.ingest(TEXTS)
    monkeypatch.chdir(corpus.index.parent)
    with open_index("index", embedder=corpus.embedder) as index:
        monkeypatch.chdir(corpus.source)
        for n in range(2):
            assert index.keyword_search(["gull"]).total == 1 + n
            assert index.semantic_search("a gull").hits[0].chunk_id == "gull:0"
            assert index.info().documents == 5 + n
            assert index.info().bytes > 10_000
            assert repr(index).startswith("Index('index', ")
            corpus.ingest(TEXTS | {"new": "Another gull."})


def test_an_index_that_was_opened_by_a_relative_path_finds_its_graph(corpus, monkeypatch, through_chroma):
    test_an_index_that_was_opened_by_a_relative_path_is_searched_from_any_folder(corpus, monkeypatch)


@in_any_backend
def test_threads_search_at_once(corpus):
    corpus.ingest(TEXTS, chunk_tokens=100)
    queries = ["ship", "gull bird", "harbour of Vellin", "首都", "year 1555"]

    def work(query):
        return query, (index.keyword_search([query]), index.semantic_search(query))

    with corpus.open() as index, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, queries * 16))
        assert found == [work(query) for query in queries * 16]


@in_every_backend
def test_threads_search_while_the_index_is_written_to(corpus):
    corpus.ingest(TEXTS, chunk_tokens=100)
    with corpus.open() as index, ThreadPoolExecutor(4) as pool:
        searches = [
            pool.submit(lambda: (index.keyword_search(["bird"]).total, len(index.semantic_search("bird", 3).hits)))
            for _ in range(60)
        ]
        for n in range(5):
            corpus.ingest(TEXTS | {f"new{n}": f"Number {n} is a ship."}, chunk_tokens=100)
        assert [search.result() for search in searches] == [(2, 3)] * 60


# --- what the user hears of it ---


def test_ingest_warns_about_what_is_left_out(corpus):
    corpus.write({"a.md": "One ship.", "b.md": " "})
    with (
        pytest.warns(UserWarning, match=r"^left out 1 item: .*b\.md: empty document$"),
        ingest([corpus.source], corpus.index, embedder=corpus.embedder) as index,
    ):
        assert index.info().documents == 1


def test_ingest_does_not_warn_without_a_problem(corpus):
    corpus.write(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ingest(str(corpus.source), str(corpus.index), embedder=corpus.embedder) as index:
            assert isinstance(index, Index)


@in_any_backend
def test_progress_grows_to_all_bytes(corpus):
    told = []
    corpus.ingest(TEXTS, chunk_tokens=100, progress=told.append)
    assert told
    assert all(one.done <= two.done for one, two in pairwise(told))
    size = sum(file.stat().st_size for file in corpus.source.rglob("*") if file.is_file())
    assert (told[-1].done, told[-1].total, told[-1].documents) == (size, size, len(TEXTS))
    told.clear()
    corpus.ingest(chunk_tokens=100, progress=told.append)
    assert (told[-1].done, told[-1].total, told[-1].documents) == (size, size, len(TEXTS))


def test_lost_vectors_are_made_again(corpus, through_chroma):
    corpus.ingest(TEXTS)
    shutil.rmtree(corpus.index / "chroma.1")
    with corpus.open() as index, pytest.raises(IndexFormatError, match=r"it is missing\): run `arag verify"):
        index.semantic_search("gull")
    assert corpus.ingest(TEXTS)[1] == []
    assert_consistent(corpus.index, corpus.embedder)


def test_an_open_reader_follows_an_index_that_was_made_anew(corpus):
    corpus.ingest({"old": "The old text."})
    with corpus.open() as index:
        assert index.keyword_search("old text").total == 1
        shutil.rmtree(corpus.index)
        corpus.ingest({"old": "A new gull."})
        assert index.keyword_search("old text").total == 0
        assert index.read("old:0").chunks[0].text == "A new gull."
        assert index.semantic_search("gull").hits[0].chunk_id == "old:0"


def test_a_run_that_died_at_its_first_write_is_no_obstacle(corpus):
    corpus.index.mkdir()
    (corpus.index / "manifest.json.new").write_text("{")
    corpus.ingest(TEXTS)
    assert_consistent(corpus.index, corpus.embedder)
