from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from arag.errors import IndexFormatError
from arag.retrieval.backend import DocumentRecord, Phrase
from arag.retrieval.local.chunk_store import FILE_NAME, ChunkStore
from arag.retrieval.local.manifest import LocalManifest
from arag.retrieval.local.store_check import StoreCheck, StoreRows, find_table_faults, renew_store
from arag.retrieval.types import Chunk, Section, Sentence


def chunk(document_id="doc", ordinal=0, text="He came. She left.", **fields):
    sections = (Section(document_id, "Title", 0, len(text), whole=False),)
    sentences = (Sentence(0, 2, embedded=True), Sentence(3, len(text), embedded=False))
    return Chunk(f"{document_id}:{ordinal}", document_id, ordinal, text, sections, sentences, tokens=5, **fields)


def by_id(*chunks):
    return [(c.id, c) for c in chunks]


@pytest.fixture
def store(tmp_path):
    store = ChunkStore(tmp_path, create=True)
    yield store
    store.close()


def test_mget_keeps_the_order_and_gives_none_for_what_is_missing(store):
    one, two = chunk(ordinal=0), chunk(ordinal=1, text="北京 😀 \x01", pages=(3, 4))
    store.mset(by_id(one, two))
    assert store.mget(["doc:1", "nothing", "doc:0", "doc:1"]) == [two, None, one, two]
    assert store.mget([]) == []


def test_mget_of_more_keys_than_sqlite_takes_at_once(store):
    chunks = [chunk(ordinal=n) for n in range(1_500)]
    store.mset(by_id(*chunks))
    keys = [f"doc:{n}" for n in range(40_000)]
    assert store.mget(keys) == [*chunks, *[None] * 38_500]


@pytest.mark.parametrize("key", ["", "\ud800", "doc:0\udfff", "'; DROP TABLE chunks; --", "\x00", "x" * 100_000])
def test_odd_keys_are_not_there(store, key):
    store.mset(by_id(chunk()))
    assert store.mget([key, "doc:0"]) == [None, chunk()]
    assert store.chunks_of([key]) == []


def test_mset_replaces(store):
    store.mset(by_id(chunk(text="Old text is here.")))
    store.mset(by_id(chunk(text="New text.")))
    assert store.mget(["doc:0"])[0].text == "New text."
    assert store.counts().chunks == 1
    store.delete_gone(store.writes)
    assert list(store.words()) == ["new", "text"]


def test_mset_refuses_a_key_that_is_not_the_id_and_changes_nothing(store):
    with pytest.raises(ValueError, match="other"):
        store.mset([("doc:0", chunk()), ("other", chunk(ordinal=1))])
    assert list(store.yield_keys()) == []


def test_mdelete_forgets_chunks_and_their_words(store):
    store.mset(by_id(chunk(ordinal=0, text="One ship."), chunk(ordinal=1, text="Two gulls.")))
    store.mdelete(["doc:0", "nothing"])
    assert list(store.yield_keys()) == ["doc:1"]
    store.delete_gone(store.writes)
    assert store.holds_word("gulls")
    assert not store.holds_word("ship")
    assert store.spellings([Phrase(("ship",))], 5) == [[]]


def test_yield_keys_by_prefix_in_the_order_of_ingestion(store):
    store.mset(by_id(chunk("b%_"), chunk("a"), chunk("b", 1), chunk("b", 0)))
    assert list(store.yield_keys()) == ["b%_:0", "a:0", "b:1", "b:0"]
    assert list(store.yield_keys(prefix="b")) == ["b%_:0", "b:1", "b:0"]
    assert list(store.yield_keys(prefix="b%")) == ["b%_:0"]
    assert list(store.yield_keys(prefix="c")) == []


def test_yield_keys_may_be_left_and_written_to_meanwhile(store):
    store.mset(by_id(*[chunk(ordinal=n) for n in range(5_000)]))
    keys = store.yield_keys()
    assert next(keys) == "doc:0"
    store.mdelete(["doc:1", "doc:4999"])
    assert len(list(keys)) in {4_997, 4_998, 4_999}


def test_async_variants(store):
    async def use():
        await store.amset(by_id(chunk(ordinal=0), chunk(ordinal=1)))
        found = await store.amget(["doc:1", "nothing"])
        await store.amdelete(["doc:1"])
        return found, [key async for key in store.ayield_keys(prefix="doc")]

    assert asyncio.run(use()) == ([chunk(ordinal=1), None], ["doc:0"])


def test_threads_share_a_store(store):
    def work(number):
        mine = [chunk(f"doc{number}", n) for n in range(50)]
        for one in mine:
            store.mset(by_id(one))
            assert store.mget([one.id]) == [one]
        store.mdelete([one.id for one in mine[::2]])
        return set(store.yield_keys(prefix=f"doc{number}:")) == {one.id for one in mine[1::2]}

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8
    assert store.counts().chunks == 200


def test_threads_do_not_write_into_each_others_transactions(store):
    def work(number):
        try:
            with store.transaction():
                store.mset(by_id(chunk(f"doc{number}", 0)))
                store.mset(by_id(chunk(f"doc{number}", 1)))
                if number % 2:
                    raise InterruptedError  # noqa: TRY301
        except InterruptedError:
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert sorted(store.yield_keys()) == sorted(f"doc{n}:{i}" for n in range(0, 40, 2) for i in (0, 1))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_transaction_changes_nothing(store, error):
    store.mset(by_id(chunk(ordinal=0)))
    store.set_vectors([(1, np.ones((1, 3)))])

    def fail():
        with store.transaction():
            store.mdelete(["doc:0"])
            store.mset(by_id(chunk(ordinal=1)))
            store.add_documents([DocumentRecord("doc", "", "", "{}", "", 1)])
            raise error

    with pytest.raises(error):
        fail()
    assert list(store.yield_keys()) == ["doc:0"]
    assert store.claim(5) == []
    assert store.document("doc") is None
    store.mset(by_id(chunk(ordinal=2)))
    assert store.counts().chunks == 2


def test_chunks_wait_for_their_vectors(store):
    store.mset(by_id(chunk(ordinal=0), chunk(ordinal=1)))
    assert [(number, c.id) for number, c in store.claim(5)] == [(1, "doc:0"), (2, "doc:1")]
    assert [c.id for _, c in store.claim(1)] == ["doc:0"]
    assert [c.id for _, c in store.claim(5, after=1)] == ["doc:1"]
    vectors = np.random.default_rng(0).standard_normal((2, 1, 3), dtype=np.float32).astype(np.float16)
    store.set_vectors([(1, vectors[0]), (2, vectors[1])])
    assert store.claim(5) == []
    found = list(store.embedded_chunks())
    assert [(number, c.id) for number, c, _ in found] == [(1, "doc:0"), (2, "doc:1")]
    np.testing.assert_array_equal([array for _, _, array in found], vectors)


def test_a_generation_is_seen_whole_while_the_next_is_written(store):
    store.writes = 1
    store.mset(by_id(chunk(ordinal=0, text="Old."), chunk(ordinal=1, text="Gone.")))
    store.add_documents([DocumentRecord("doc", "Old", "", "{}", "1", 1)])
    old = store.at(1)
    before = list(old.yield_keys()), old.counts(), old.mget(["doc:0", "doc:1"]), list(old.texts())
    assert not store.differs_from(1)
    store.writes = 2
    store.mset(by_id(chunk(ordinal=0, text="New."), chunk(ordinal=2, text="More.")))
    store.mdelete(["doc:1"])
    store.remove_documents(["doc"])
    assert store.differs_from(1)
    assert (list(old.yield_keys()), old.counts(), old.mget(["doc:0", "doc:1"]), list(old.texts())) == before
    assert old.document("doc").title == "Old"
    assert [c and c.text for c in store.mget(["doc:0", "doc:1", "doc:2"])] == ["New.", None, "More."]
    assert store.document("doc") is None
    assert list(store.removed_positions(1)) == [(1, [0]), (2, [0])]
    store.delete_gone(2)
    assert [c and c.text for c in store.mget(["doc:0", "doc:1", "doc:2"])] == ["New.", None, "More."]
    assert list(old.yield_keys()) == []
    assert store.spellings([Phrase(("old",))], 5) == [[]]


def test_vectors_of_former_versions_are_found_by_their_texts(store):
    store.mset(by_id(chunk(ordinal=0, text="Old.")))
    store.set_vectors([(1, np.ones((1, 3)))])
    store.writes = 1
    store.mset(by_id(chunk(ordinal=0, text="New.")))
    (text,) = store.former_vectors(["doc"])
    assert text == chunk(text="Old.").embedded_texts()[0]
    assert store.former_vectors(["other"]) == {}


def test_a_number_is_never_used_again(store):
    store.mset(by_id(chunk(ordinal=0)))
    store.writes = 1
    store.mdelete(["doc:0"])
    store.delete_gone(1)
    store.mset(by_id(chunk(ordinal=0)))
    assert [number for number, _ in store.claim(5)] == [2]


@pytest.mark.parametrize(
    ("ordinal", "reach", "expected"), [(2, 0, [2]), (2, 1, [1, 2, 3]), (0, 2, [0, 1, 2]), (4, 2, [2, 3, 4])]
)
def test_neighbours(store, ordinal, reach, expected):
    store.mset(by_id(*[chunk(ordinal=n) for n in (4, 2, 0, 1, 3)], chunk("other", 1)))
    middle = store.mget([f"doc:{ordinal}"])[0]
    assert [c.ordinal for c in store.neighbours(middle, reach)] == expected
    assert {c.document_id for c in store.neighbours(middle, reach)} == {"doc"}
    assert store.chunks_in_documents(["doc", "none", "other"]) == {"doc": 5, "none": 0, "other": 1}


def test_documents(store):
    records = [DocumentRecord(i, f"Title {i}", f"{i}.txt", '{"year": 1}', f"print {i}", 1) for i in ("b", "a")]
    store.add_documents(records)
    assert list(store.documents()) == records[::-1]
    assert store.document("b") == records[0]
    assert store.fingerprints(["a", "c"]) == {"a": "print a"}
    store.set_sources({"a": "moved.txt", "b": "b.txt", "c": "c.txt"})
    assert [d.source for d in store.documents()] == ["moved.txt", "b.txt"]
    store.remove_documents(["a", "c"])
    assert [d.id for d in store.documents()] == ["b"]


def test_chunks_of_a_document_are_found_by_any_of_its_sections(store):
    text = "One.\n\nTwo."
    sections = (Section("a", "", 0, 4, whole=True), Section("b", "", 6, 10, whole=True))
    shared = Chunk("a:0", "a", 0, text, sections, (Sentence(0, 4, embedded=True),), 4)
    store.mset(by_id(chunk("c"), shared, chunk("b", 1)))
    assert [c.id for c in store.chunks_of(["b"])] == ["a:0", "b:1"]
    assert [c.id for c in store.chunks_of(["a", "b", "c"])] == ["c:0", "a:0", "b:1"]
    assert store.chunks_of(["d"]) == []


def test_words_and_phrases_are_found_whatever_their_spelling(store):
    store.mset(by_id(chunk(text="The Café-Brel in Łódź."), chunk(ordinal=1, text="A CAFE BREL, and cafés.")))
    assert store.holds_word("cafe")
    assert not store.holds_word("Café")
    assert sorted(store.words()) == ["a", "and", "brel", "cafe", "cafes", "in", "the", "łodz"]
    there, absent = Phrase(("cafe", "brel")), Phrase(("brel", "cafe"))
    assert [sorted(found) for found in store.spellings([there, absent], 5)] == [["CAFE BREL", "Café-Brel"], []]
    assert [len(found) for found in store.spellings([absent, there], 1)] == [0, 1]
    assert store.listed_words(["cafe", "Café", "none"]) == {"cafe"}
    both, one = store.holding_all([["cafe", "brel"], ["cafes", "a"]], 5)
    assert len(both) == 2
    assert one == [max(both)]
    assert [len(found) for found in store.holding_all([["brel", "none"], ["brel"]], 1)] == [0, 1]


def test_counts(store):
    assert store.counts().tokens == 0
    store.mset(by_id(chunk(ordinal=0), chunk(ordinal=1)))
    counts = store.counts()
    assert (counts.documents, counts.chunks, counts.sentences, counts.tokens) == (0, 2, 2, 10)


def test_what_was_written_is_there_when_opened_again(tmp_path):
    store = ChunkStore(tmp_path, create=True)
    store.mset(by_id(chunk(pages=(1, 2))))
    store.close()
    again = ChunkStore(tmp_path)
    assert again.mget(["doc:0"]) == [chunk(pages=(1, 2))]
    again.close()


def test_a_store_whose_chunks_are_as_they_were_written_has_no_faults(store, tmp_path):
    text = "One.\n\nTwo. 😀"
    sections = (Section("a", "", 0, 4, whole=True), Section("b", "Ü", 6, len(text), whole=True))
    store.mset(by_id(Chunk("a:0", "a", 0, text, sections, (Sentence(0, 4, embedded=True),), 4), chunk(pages=(1, 2))))
    store.set_vectors([(n, np.ones((1, 1))) for n in (1, 2)])
    store.add_documents([DocumentRecord(i, "", "", "{}", "print", 1) for i in ("a", "b", "doc")])
    assert faults(tmp_path) == []


MANIFEST = LocalManifest("none", 1, 1_000, "none", "en", packed=False, documents=5)


def faults(folder):
    with closing(StoreRows(folder)) as rows:
        check = StoreCheck(rows, MANIFEST)
        return [*check.faults, *find_table_faults(rows.file, check.parts, may_write=True)]


def test_chunks_that_are_not_as_they_were_written_are_found_and_dropped_or_kept(store, tmp_path):
    store.add_documents([DocumentRecord(f"d{n}", "", "", "{}", "print", 1) for n in range(5)])
    store.mset(by_id(*[chunk(f"d{n}") for n in range(5)]))
    store.set_vectors([(n, np.ones((1, 1))) for n in range(1, 6)])
    assert faults(tmp_path) == []
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE contents SET text = 'He came. She lied.' WHERE number = 1")
        connection.execute("UPDATE contents SET sentences = '[[0, 99, 1]]' WHERE number = 2")
        connection.execute("DELETE FROM chunks WHERE number = 3")
        connection.execute("DELETE FROM members WHERE number = 4")
    assert faults(tmp_path) == [
        "1 chunks cannot be read",
        "1 chunks have changed since they were written",
        "incomplete or changed documents (3): 'd0', 'd1', 'd2'",
        "the lists of each document's chunks are wrong",
        "the word table does not match the texts (database disk image is malformed)",
    ]
    store.close()
    assert renew_store(tmp_path, MANIFEST, salvage=True) == 0
    with closing(ChunkStore(tmp_path)) as new:
        assert list(new.yield_keys()) == ["d0:0", "d3:0", "d4:0"]
        assert new.mget(["d0:0"])[0].text == "He came. She lied."
        assert [c.id for c in new.chunks_of(["d3"])] == ["d3:0"]
        assert [d.id for d in new.documents() if not d.fingerprint] == ["d0", "d1", "d2"]
    assert faults(tmp_path) == []


def test_what_cannot_be_read_is_a_format_error(store, tmp_path):
    store.mset(by_id(chunk(ordinal=0), chunk(ordinal=1), chunk(ordinal=2)))
    store.set_vectors([(n, np.ones((1, 3))) for n in (1, 2, 3)])
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE contents SET sentences = '[[' WHERE number = 1")
        connection.execute("UPDATE contents SET text = CAST(x'61ff' AS TEXT) WHERE number = 2")
        connection.execute("UPDATE vectors SET vectors = x'0102' WHERE number = 3")
    for read in (
        lambda: store.mget(["doc:0"]),
        lambda: store.mget(["doc:1"]),
        lambda: list(store.texts()),
        lambda: list(store.placed_vectors()),
        lambda: list(store.at(0).embedded_chunks()),
    ):
        with pytest.raises(IndexFormatError, match=f"is damaged .*run `arag verify --index {tmp_path} --repair`"):
            read()


def test_a_missing_file_is_a_format_error(tmp_path):
    with pytest.raises(IndexFormatError, match="missing"):
        ChunkStore(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_no_database_is_a_format_error(tmp_path, create):
    (tmp_path / FILE_NAME).write_bytes(b"no database, but long enough to look at" * 100)
    with pytest.raises(IndexFormatError, match="is damaged"):
        ChunkStore(tmp_path, create=create)


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_in_its_place_is_a_format_error(tmp_path, create):
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(IndexFormatError, match=r"is damaged \(it is not a file\)"):
        ChunkStore(tmp_path, create=create)


def test_a_database_of_something_else_is_a_format_error(tmp_path):
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("CREATE TABLE other (id TEXT)")
    with pytest.raises(IndexFormatError, match="is damaged"):
        ChunkStore(tmp_path)


def test_ids_that_are_spelled_like_another_are_found(store):
    ids = [f"handbook/part{n % 7}/leave-{n}.md:0" for n in range(1_500)]
    store.mset([(i, replace(chunk(), id=i, document_id=i[:-2])) for i in ids])
    for wrong in ("handbok/part4/leave-102.md:0", "leave-102.md:0", "handbook/part4/leeve-102.md:0", "LEAVE-102.MD:0"):
        assert store.similar_ids(wrong, 3)[0] == "handbook/part4/leave-102.md:0"
    for odd in ("zzz", "", "\ud83d", "a\x00b%_'\"", "x" * 5_000):
        assert len(store.similar_ids(odd, 2)) == 2
