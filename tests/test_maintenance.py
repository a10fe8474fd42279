"""Damage is found and repaired, and what is removed is gone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3

import pytest

from arag.errors import InputError
from arag.ingest.maintenance import remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.storage.locations import using_store
from fakes import HashEmbeddings, write_corpus, write_index
from selection import EVERYWHERE

DOCUMENTS = {f"d{n}": f"The ship{n} was built in {1500 + n}. Nobody sailed it." for n in range(60)}
DOCUMENTS["secret"] = "The marmoset password is zyzzyva. It opens the quixotic vault."


@pytest.fixture
def place(request, places, tmp_path):
    """An index in a place of a kind, by default in a folder."""
    made = places(getattr(request, "param", "folder"), tmp_path / "index")
    run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), made, embedder=HashEmbeddings())
    return made


in_every_place = pytest.mark.parametrize("place", EVERYWHERE, indirect=True)


def contents(place):
    """What an index answers and holds."""
    with open_index(place, embedder=HashEmbeddings()) as opened:
        texts = {i: opened.get(i).text for i in opened.chunk_ids()}
        nearest = [
            [(hit.chunk_id, round(hit.score, 4)) for hit in opened.semantic_search(query, 5).hits]
            for query in ("ship7 was built", "the quixotic vault", "in 1533")
        ]
        totals = [opened.keyword_search(word, 70).total for word in ("ship", "zyzzyva", "nobody")]
        return texts, nearest, totals


def derived(folder, name):
    return next(folder.glob(f"{name}-*"))


# --- damage ---


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [("documents", "metadata", lambda text: text[1:]), ("vectors", "vectors", lambda blob: blob[:-2] + b"\x00\x7c")],
    ids=["metadata", "an infinite number"],
)
def test_damaged_documents_are_named(place, table, column, change):
    with sqlite3.connect(place / "index.sqlite3") as connection:
        connection.create_function("damage", 1, change)
        connection.execute(f"UPDATE {table} SET {column} = damage({column})")
    (damage,) = verify(place)[0]
    assert not damage.repairable
    assert "61 documents lost a part: d0, d1, " in str(damage)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("keywords", lambda path: os.truncate(path, path.stat().st_size // 2)),
        ("chroma", shutil.rmtree),
        ("chroma", lambda path: (path / "chroma.sqlite3").write_bytes(b"")),
    ],
    ids=["half of the keywords", "no graph", "no database of the graph"],
)
@pytest.mark.filterwarnings("ignore:.*arag verify")
def test_what_is_derived_is_found_damaged_and_made_again(place, name, damage):
    expected = contents(place)
    damage(derived(place, name))
    damages, left = verify(place)
    assert damages == left
    assert [part.part.partition("-")[0] for part in damages] == [name]
    assert contents(place) == expected  # searches do without it, or make it again
    assert verify(place, repair=True)[1] == []
    with using_store(place) as store:
        before = store.stamp()
        assert verify(place, repair=True) == ([], [])
        assert store.stamp() == before
    assert contents(place) == expected


# --- removing ---


@in_every_place
def test_removed_documents_are_in_no_search(place):
    with open_index(place, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("zyzzyva").total == 1
        assert remove(["secret", "d1", "secret"], place) == 2
        assert reader.keyword_search("zyzzyva").total == 0
        assert reader.keyword_search("zyzzyva").keywords[0].closest == ()
        assert all(hit.chunk_id != "secret:0" for hit in reader.semantic_search("the quixotic vault", 60).hits)
        assert reader.read("secret:0").unknown
        assert reader.document("secret") is None
        assert (reader.info().documents, reader.keyword_search("nobody", 60).total) == (59, 59)
    assert verify(place) == ([], [])


@in_every_place
def test_a_removal_that_was_killed_is_finished_by_the_same_again_and_of_an_unknown_document_nothing_is(place):
    with using_store(place) as store, store.draft(store.settings) as draft:
        draft.remove(["secret"])  # and nothing is published
    with pytest.raises(InputError, match=r"no document 'secrets'.*Nothing was removed"):
        remove(["d2", "secrets"], place)
    gone = ["secret", *(name for name in DOCUMENTS if name.startswith("d1"))]
    assert remove(["secret", "d1*"], place) == len(gone)
    with open_index(place, embedder=HashEmbeddings()) as reader:
        assert {document.id for document in reader.documents()} == DOCUMENTS.keys() - {*gone}


@in_every_place
def test_removing_all_leaves_an_empty_index_that_can_be_used(place, tmp_path):
    remove(list(DOCUMENTS), place)
    assert verify(place) == ([], [])
    with open_index(place, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship").total == 0
        assert reader.semantic_search("ship").hits == ()
        run_ingest(tmp_path / "corpus", place, embedder=HashEmbeddings())
        assert reader.semantic_search("ship").hits


# --- the command line ---


def test_the_commands(arag, tmp_path):
    index = write_index(tmp_path, DOCUMENTS)
    assert arag("verify", "-i", index)[1].strip().startswith("No damage found in ")
    derived(index, "keywords").unlink()
    code, out, _ = arag("verify", "-i", index)
    assert (code, "it is missing" in out) == (1, True)
    code, out, err = arag("verify", "-i", index, "--repair")
    assert (code, err, "Repaired keywords-" in out) == (0, "", True)
    assert json.loads(arag("verify", "-i", index, "--json")[1]) == {"found": [], "left": []}
    assert "Documents removed: 1." in arag("remove", "secret", "-i", index)[1]
    assert arag("remove", "secret", "-i", index)[0] == 1
