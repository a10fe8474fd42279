"""Damage is found and mended, and what is removed is gone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from arag.ingest.maintenance import compact, remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.errors import IndexFormatError, IndexNotFoundError, InputError
from arag.retrieval.index import open_index
from arag.retrieval.manifest import read_manifest, vectors_folder
from arag.retrieval.sentence_store import _opened
from fakes import HashEmbeddings, write_corpus

DOCUMENTS = {
    f"d{n}": f"Document {n} tells of ship{n}. It was built in {1500 + n}. Nobody sailed it." for n in range(60)
} | {
    "secret": "The marmoset password is zyzzyva. It opens the quixotic vault.",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    run_ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings())
    return folder / "index"


@pytest.fixture
def index(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "index")
    return tmp_path / "index"


def contents(folder):
    """What an index answers and holds."""
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        texts = {i: opened.get(i).text for i in opened.chunk_ids()}
        nearest = {
            query: [(hit.chunk_id, round(hit.score, 4)) for hit in opened.semantic_search(query, 5).hits]
            for query in ("ship7 was built", "the quixotic vault", "in 1533")
        }
        found = {word: opened.keyword_search(word, 70).total for word in ("ship", "zyzzyva", "nobody")}
        info = opened.info()
    return texts, nearest, found, (info.documents, info.chunks, info.sentences)


def database(folder):
    return sqlite3.connect(folder / "chunks.sqlite3", isolation_level=None)


def chroma(folder):
    return vectors_folder(folder, read_manifest(folder).generation)


def graph_file(folder, name):
    return next(chroma(folder).rglob(name))


def cut(file, share=0.5):
    os.truncate(file, int(file.stat().st_size * share))


def spoil(file, at=0.5, length=64):
    """Overwrite bytes in the middle of a file, whose size stays."""
    with file.open("r+b") as opened:
        opened.seek(int(file.stat().st_size * at))
        opened.write(b"\x5a" * min(length, file.stat().st_size // 4))


def change_manifest(folder, **values):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def run_sql(folder, *statements):
    with database(folder) as connection:
        for statement in statements:
            connection.execute(statement)


def delete_vectors(folder):
    with _opened(chroma(folder)) as collection:
        collection.delete(ids=collection.get(limit=5)["ids"])


def add_a_vector(folder):
    with _opened(chroma(folder)) as collection:
        collection.upsert(ids=["99999#0"], embeddings=np.ones((1, 64)), documents=["Nobody's."])


def mix_up_vectors(folder):
    with _opened(chroma(folder)) as collection:
        ids = collection.get(limit=2)["ids"]
        collection.update(ids=ids, embeddings=np.eye(64, dtype=np.float32)[:2])


DAMAGES = {
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "an empty manifest": lambda f: (f / "manifest.json").write_text(""),
    "half a manifest": lambda f: cut(f / "manifest.json"),
    "a manifest of no sense": lambda f: (f / "manifest.json").write_text('{"format_version": 2, "embedder": 3}'),
    "wrong counts in the manifest": lambda f: change_manifest(f, chunks=7, sentences=8),
    "another dimension in the manifest": lambda f: change_manifest(f, dimension=65),
    "another generation in the manifest": lambda f: change_manifest(f, generation=0),
    "no Chroma folder": lambda f: shutil.rmtree(chroma(f)),
    "no graph folder": lambda f: shutil.rmtree(graph_file(f, "header.bin").parent),
    "no Chroma database": lambda f: (chroma(f) / "chroma.sqlite3").unlink(),
    "an empty Chroma database": lambda f: cut(chroma(f) / "chroma.sqlite3", 0),
    "half a Chroma database": lambda f: cut(chroma(f) / "chroma.sqlite3"),
    "a spoilt Chroma database": lambda f: spoil(chroma(f) / "chroma.sqlite3", at=0, length=4096),
    **{f"no {name}": lambda f, name=name: graph_file(f, name).unlink() for name in ("header.bin", "data_level0.bin")},
    **{
        f"half of {name}": lambda f, name=name: cut(graph_file(f, name))
        for name in ("header.bin", "data_level0.bin", "length.bin", "index_metadata.pickle")
    },
    **{
        f"a spoilt {name}": lambda f, name=name: spoil(graph_file(f, name))
        for name in ("header.bin", "data_level0.bin", "length.bin", "index_metadata.pickle")
    },
    "Chroma lacks vectors": delete_vectors,
    "Chroma has a vector of no chunk": add_a_vector,
    "Chroma has other vectors": mix_up_vectors,
    "Chroma of an older generation": lambda f: change_manifest(f, files={}) or delete_vectors(f),
    "no keyword file": lambda f: (f / "keywords.1").unlink(),
    "an empty keyword file": lambda f: cut(f / "keywords.1", 0),
    "half a keyword file": lambda f: cut(f / "keywords.1"),
    "a spoilt keyword file": lambda f: spoil(f / "keywords.1"),
    "no vocabulary file": lambda f: (f / "words.1").unlink(),
    "a spoilt vocabulary file": lambda f: spoil(f / "words.1"),
    "chunks wait for vectors": lambda f: run_sql(f, "UPDATE chunks SET pending = 1 WHERE number < 9"),
    "chunks without vectors": lambda f: run_sql(f, "DELETE FROM vectors WHERE number BETWEEN 5 AND 9"),
    "vectors cut off": lambda f: run_sql(f, "UPDATE vectors SET vectors = substr(vectors, 1, 100) WHERE number = 3"),
    "vectors that are no numbers": lambda f: run_sql(
        f, "UPDATE vectors SET vectors = x'" + "ff" * (64 * 4 * 3) + "' WHERE number = 3"
    ),
    "words that are not in the texts": lambda f: run_sql(
        f, "INSERT INTO terms (rowid, text) VALUES (3, 'phantom words')"
    ),
}


def test_a_sound_index_is_found_sound(index):
    files = [file for file in index.rglob("*") if file.is_file() and file.suffix not in {".sqlite3", ".lock"}]
    before = {file: file.stat().st_mtime_ns for file in files}
    assert verify(index) == ([], [])
    assert verify(index, repair=True) == ([], [])
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_mended(index, sound, damage):
    DAMAGES[damage](index)
    found, left = verify(index, embedder=HashEmbeddings())
    assert found
    assert left == found
    assert verify(index, repair=True, embedder=HashEmbeddings())[1] == []
    assert verify(index) == ([], [])
    assert contents(index) == contents(sound)


@pytest.mark.parametrize("damage", ["no Chroma folder", "half of header.bin", "no graph folder", "half a keyword file"])
def test_a_search_names_the_damage_and_the_command_that_mends_it(index, damage, through_chroma):
    DAMAGES[damage](index)
    with open_index(index, embedder=HashEmbeddings()) as opened:
        with pytest.raises(IndexFormatError, match=f"run `arag verify --index {index} --repair`"):
            opened.keyword_search("ship") if "keyword" in damage else opened.semantic_search("ship")
        assert opened.read("d1:0").chunks  # the rest serves on


def test_a_small_index_serves_on_without_chroma(index, sound):
    shutil.rmtree(chroma(index))
    assert contents(index) == contents(sound)


def test_a_search_that_lacks_vectors_names_the_command_that_mends_it(index):
    DAMAGES["chunks without vectors"](index)
    with (
        open_index(index, embedder=HashEmbeddings()) as opened,
        pytest.raises(IndexFormatError, match=f"run `arag verify --index {index} --repair`"),
    ):
        opened.semantic_search("ship")


@pytest.mark.parametrize("damage", ["no Chroma folder", "half of data_level0.bin", "no keyword file", "no manifest"])
def test_an_ingestion_mends_what_it_notices_and_embeds_nothing(index, sound, damage, tmp_path):
    DAMAGES[damage](index)
    summary = run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
    assert (summary.written, summary.embedded) == (0, 0)
    assert verify(index) == ([], [])
    assert contents(index) == contents(sound)


def test_only_vectors_that_are_lost_are_embedded_again(index):
    run_sql(index, "DELETE FROM vectors WHERE number = 5")
    shutil.rmtree(chroma(index))
    embedder = HashEmbeddings()
    assert verify(index, repair=True, embedder=embedder)[1] == []
    assert len(embedder.embedded) == 3


@pytest.mark.parametrize("spoilt", ["gone", "cut", "no database"])
def test_a_lost_chunk_store_is_told(index, spoilt):
    file = index / "chunks.sqlite3"
    if spoilt == "gone":
        file.unlink()
    elif spoilt == "cut":
        cut(file, 0.0)
    else:
        file.write_bytes(b"no database" * 1000)
    for repair in (False, True):
        with pytest.raises(IndexFormatError, match="ingest them again"):
            verify(index, repair=repair)


def test_no_index_is_told(tmp_path):
    for care in (verify, compact, lambda folder: remove("a", folder)):
        with pytest.raises(IndexNotFoundError, match="no index in"):
            care(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_mending_is_finished_by_the_next(index, sound):
    DAMAGES["chunks without vectors"](index)
    with pytest.raises(Exception, match="went away"):
        verify(index, repair=True, embedder=HashEmbeddings(fail_after=0))
    assert verify(index, repair=True, embedder=HashEmbeddings())[1] == []
    assert contents(index) == contents(sound)


# --- removing ---


def files_holding(folder, *words):
    held = {}
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes().lower()
            held |= {word: file.name for word in words if word.encode() in data}
    return held


def test_removed_documents_are_in_no_search_and_after_compaction_in_no_file(index):
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("zyzzyva").total == 1
        assert remove(["secret", "d1"], index) == 2
        assert reader.keyword_search("zyzzyva").total == 0
        assert reader.keyword_search("zyzzyva").keywords[0].closest == ()
        assert all(hit.chunk_id != "secret:0" for hit in reader.semantic_search("the quixotic vault", 60).hits)
        assert reader.read("secret:0").unknown
        assert reader.document("secret") is None
        assert reader.info().documents == 59
    before = open_index(index, embedder=HashEmbeddings()).info().bytes
    sizes = compact(index)
    assert sizes[1] < sizes[0] == before
    assert files_holding(index, "zyzzyva", "quixotic", "marmoset", "ship1.") == {}
    assert files_holding(index, "ship7", "nobody")
    assert verify(index) == ([], [])
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.info().documents == 59
        assert reader.keyword_search("nobody", 60).total == 59


def test_an_unknown_document_is_named_and_nothing_removed(index):
    with pytest.raises(InputError, match=r"no document 'secrets'; similar ids: 'secret'.*Nothing was removed"):
        remove(["d1", "secrets"], index)
    with pytest.raises(InputError, match="no document id given"):
        remove([], index)
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.info().documents == 61


def test_a_document_of_a_packed_chunk_is_removed_alone(tmp_path):
    folder = tmp_path / "index"
    run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), folder, embedder=HashEmbeddings(), pack=True)
    remove("d7", folder)
    compact(folder)
    with open_index(folder, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship7.").total == 0
        assert reader.keyword_search("ship8.").total == 1
    assert files_holding(folder, "ship7.") == {}


def test_removing_all_leaves_an_empty_index_that_can_be_used(index, tmp_path):
    remove(list(DOCUMENTS), index)
    compact(index)
    assert verify(index) == ([], [])
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship").total == 0
        assert reader.semantic_search("ship").hits == ()
        run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
        assert reader.semantic_search("ship").hits


def test_many_removals_make_the_graph_anew(index):
    remove([f"d{n}" for n in range(10)], index)
    assert read_manifest(index).removed_vectors == 30
    remove([f"d{n}" for n in range(10, 30)], index)
    assert read_manifest(index).removed_vectors == 0
    assert verify(index) == ([], [])


# --- the command line ---


def arag(*arguments):
    return subprocess.run([sys.executable, "-m", "arag", *arguments], capture_output=True, text=True, check=False)


def test_the_commands(index):
    assert arag("verify", "-i", index).stdout.strip().endswith("is sound.")
    (index / "keywords.1").unlink()
    told = arag("verify", "-i", index)
    assert told.returncode == 1
    assert "Damaged keywords.1: it is missing" in told.stdout
    mended = arag("verify", "-i", index, "--repair")
    assert mended.returncode == 0, mended.stderr
    assert "Mended keywords.1: it is missing" in mended.stdout
    assert json.loads(arag("verify", "-i", index, "--json").stdout) == {"found": [], "left": []}
    assert "1 documents removed" in arag("remove", "secret", "-i", index).stdout
    assert arag("remove", "secret", "-i", index).returncode == 1
    assert "MB after" in arag("compact", "-i", index).stdout
    assert files_holding(index, "zyzzyva") == {}
