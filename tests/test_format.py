"""Indexes of an older format are searched as they are, and converted by the next command that writes."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from arag.errors import DamagedFileError, IndexFormatError
from arag.files import digest
from arag.ingest.maintenance import compact, remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.local.chroma_folder import open_collection
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.manifest import FORMAT_VERSION, manifest_json, read_manifest, vectors_folder, write_manifest
from arag.retrieval.local.seal import make_seal
from arag.retrieval.local.sentence_store import SentenceStore
from arag.retrieval.local.sentence_writer import _write_graph_after
from arag.retrieval.shift import shifts_of
from fakes import HashEmbeddings, hash_vector, write_index

DOCUMENTS = {f"d{n}": f"Ship{n} was built in {1500 + n}. Nobody sailed it." for n in range(20)}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return write_index(tmp_path_factory.mktemp("sound"), DOCUMENTS)


@pytest.fixture
def old(sound, tmp_path):
    """An index as format 4 has it: float32 in the chunk store, four more fields and a document for each sentence."""
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    manifest = read_manifest(folder)
    with closing(ChunkStore(folder)) as store:
        chunks = [(number, chunk) for number, chunk, _ in store.embedded_chunks()]
    with closing(sqlite3.connect(folder / "chunks.sqlite3", isolation_level=None)) as connection:
        for number, chunk in chunks:
            blob = np.stack([hash_vector(text) for text in chunk.embedded_texts()]).astype(np.float32).tobytes()
            connection.execute(
                "UPDATE vectors SET vectors = ?, checksum = ? WHERE number = ?", (blob, zlib.crc32(blob), number)
            )
    vectors = vectors_folder(folder, manifest.generation)
    shutil.rmtree(vectors)
    with open_collection(vectors, create=True) as collection:
        for number, chunk in chunks:
            places = [i for i, sentence in enumerate(chunk.sentences) if sentence.embedded]
            ids = [f"{number}#{i}" for i in places]
            texts = chunk.embedded_texts()
            collection.upsert(
                ids=ids,
                embeddings=np.stack([hash_vector(text) for text in texts]) + shifts_of(ids, 64),
                documents=texts,
                metadatas=[
                    {"chunk_id": chunk.id, "document_id": chunk.document_id, "position": i, "title": ""} for i in places
                ],
            )
        _write_graph_after(2, collection)
    with open_collection(vectors) as collection:
        collection.count()
    graph = [f for f in vectors.rglob("*") if f.is_file() and f.parent != vectors]
    files = {name: told for name, told in manifest.files.items() if not name.startswith("chroma")}
    files |= {f.relative_to(folder).as_posix(): (f.stat().st_size, digest(f)) for f in graph}
    manifest = replace(manifest, files=files, format_version=4)
    manifest = replace(manifest, seal=make_seal(manifest))
    write_manifest(folder, manifest)
    with closing(ChunkStore(folder)) as store:
        store.set_state("manifest.json", manifest_json(manifest))
    return folder


def answers(folder):
    with open_index(folder, embedder=HashEmbeddings()) as index:
        queries = [f"Ship{n} was built" for n in range(5)] + ["nobody sailed"]
        semantic = [[hit.chunk_id for hit in index.semantic_search(query, 1).hits] for query in queries[:5]]
        return semantic, [index.keyword_search(query, 20).total for query in queries], index.read("d7:0")


def assert_new(folder):
    assert read_manifest(folder).format_version == FORMAT_VERSION
    with closing(sqlite3.connect(folder / "chunks.sqlite3")) as connection:
        assert {length % 2 for (length,) in connection.execute("SELECT length(vectors) FROM vectors")} == {1}
    with closing(SentenceStore(vectors_folder(folder, read_manifest(folder).generation))) as store:
        found = store._collection.get(include=["documents", "metadatas"])
    assert set(found["documents"]) == {None}
    assert all(metadata.keys() == {"chunk_id", "sentence"} for metadata in found["metadatas"])
    assert "Nobody sailed it." in {metadata["sentence"] for metadata in found["metadatas"]}
    assert verify(folder) == ([], [])


@pytest.mark.parametrize("way", ["exact", "graph"])
def test_an_old_index_is_searched_as_it_is(old, sound, way, request):
    if way == "graph":
        request.getfixturevalue("through_chroma")
    assert answers(old) == answers(sound)
    assert verify(old) == ([], [])
    assert read_manifest(old).format_version == 4


WRITERS = {
    "ingest": lambda folder, corpus, embedder: run_ingest(corpus, folder, embedder=embedder),
    "remove": lambda folder, _, __: remove("d19", folder),
    "compact": lambda folder, _, __: compact(folder),
}


@pytest.mark.parametrize("command", WRITERS)
def test_the_next_command_that_writes_converts_an_old_index_and_embeds_nothing(old, sound, command, through_chroma):
    embedder = HashEmbeddings()
    size = (old / "chunks.sqlite3").stat().st_size
    with open_index(old, embedder=HashEmbeddings()) as reader:
        before = reader.read("d7:0")
        WRITERS[command](old, sound.parent / "corpus", embedder)
        assert reader.read("d7:0") == before
    assert embedder.embedded in ([], ["dimension"])
    assert_new(old)
    assert (old / "chunks.sqlite3").stat().st_size < size
    if command != "remove":
        assert answers(old) == answers(sound)


def test_a_damaged_old_index_is_converted_when_it_is_repaired(old, sound):
    with closing(sqlite3.connect(old / "chunks.sqlite3", isolation_level=None)) as connection:
        connection.execute("UPDATE vectors SET vectors = substr(vectors, 1, 100) WHERE number = 3")
    with pytest.raises(DamagedFileError, match="run `arag verify"):
        run_ingest(sound.parent / "corpus", old, embedder=HashEmbeddings())
    assert verify(old, repair=True, embedder=HashEmbeddings())[1] == []
    assert_new(old)
    assert answers(old) == answers(sound)


@pytest.mark.parametrize("version", [3, FORMAT_VERSION + 1])
def test_other_formats_are_refused(old, version):
    write_manifest(old, replace(read_manifest(old), format_version=version))
    with pytest.raises(IndexFormatError, match=f"has format version {version}; this version of arag reads 4 to 5"):
        open_index(old, embedder=HashEmbeddings())
