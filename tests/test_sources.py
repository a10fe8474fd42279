"""Documents that are given as objects, and the identity of every document: which one of the index it is."""

from __future__ import annotations

import asyncio
import json
import pydoc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

import arag
import arag.ingest.readers
from arag import Scope, aingest, ingest, open_index, run_ingest
from arag.cli import listing
from arag.errors import EmbedderError, IndexLockedError, InputError
from arag.ingest import pipeline
from arag.ingest.documents import Position, Problem
from arag.ingest.readers import read_documents
from arag.models import huggingface
from arag.models.embedders import Embedder
from arag.retrieval.locations import store_at
from arag.terminal import Console
from fakes import HashEmbeddings, write_corpus


@pytest.fixture
def backend(tmp_path_factory):
    """A place for an index, outside of `tmp_path`."""
    return tmp_path_factory.mktemp("index") / "index"


@pytest.fixture
def run(backend):
    """A function that ingests into one index."""

    def run(*sources, **options):
        given = sources[0] if len(sources) == 1 else list(sources)
        return run_ingest(given, backend, embedder=HashEmbeddings(), **options)

    return run


@pytest.fixture
def listed(backend):
    """A function that returns the documents of that index, by their ids."""

    def listed():
        with open_index(backend, embedder=HashEmbeddings()) as index:
            return {document.id: document for document in index.documents()}

    return listed


def texts(backend):
    with open_index(backend, embedder=HashEmbeddings()) as index:
        return {chunk_id.rpartition(":")[0]: index.get(chunk_id).text for chunk_id in index.chunk_ids()}


def write(folder, **files):
    """Write text files; `deep__a` stands for deep/a.txt."""
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


class Colour(Enum):
    RED = "red"


class TestGiven:
    def test_langchain_documents_keep_their_text_and_metadata(self, run, backend, listed):
        metadata = {"source": "https://mill.org/a", "title": "The  Mill", "tags": ["old", None], "built": 1702}
        summary = run(Document("The mill\r\nstands.", metadata=metadata, id="mill-1"))
        assert (summary.read, summary.problems) == (1, ())
        found = listed()["mill-1"]
        assert (found.title, found.source, found.metadata) == ("The Mill", "https://mill.org/a", metadata)
        assert texts(backend) == {"mill-1": "The mill\nstands."}

    @pytest.mark.parametrize(
        ("metadata", "document_id"),
        [
            ({"source": "a.pdf"}, "a.pdf"),
            ({"source": "a.pdf", "page": 0, "total_pages": 9}, "a.pdf#page=0"),
            ({"source": "a.pdf", "page": 3, "start_index": 80}, "a.pdf#page=3&start_index=80"),
            ({"source": "a.csv", "row": 7}, "a.csv#row=7"),
            ({"source": "a.json", "seq_num": 7}, "a.json#seq_num=7"),
            ({"source": Path("docs/a.md"), "page": None}, "docs/a.md"),
            ({"source": "https://a.org/b#c"}, "https://a.org/b#c"),
        ],
    )
    def test_an_id_is_made_from_where_a_document_came_from(self, run, listed, metadata, document_id):
        run(Document("One.", metadata=metadata), Document("Two.", metadata=metadata))
        assert list(listed()) == [document_id, f"{document_id}#2"]
        assert run(Document("One.", metadata=metadata), Document("Two.", metadata=metadata)).written == 0

    def test_splits_without_a_start_index_all_stay_and_are_replaced_in_their_order(self, run, backend):
        run(Document(f"Part {n}.", metadata={"source": "a.md"}) for n in range(30))
        summary = run(Document(f"Part {n}!", metadata={"source": "a.md"}) for n in range(30))
        assert (summary.written, summary.documents) == (30, 30)
        assert texts(backend)["a.md#30"] == "Part 29!"

    def test_without_id_and_source_the_content_is_the_id(self, run, listed):
        given = [Document("One."), Document("One.", metadata={"year": 1}), Document("Two.", metadata={"source": ""})]
        run(*given)
        before = list(listed())
        assert len(before) == 3
        summary = run([*reversed(given), given[0]])
        assert list(listed()) == before
        assert [problem.source for problem in summary.problems] == ["sources[3]"]
        assert "duplicate id" in summary.problems[0].reason

    def test_records_are_read_as_from_a_file(self, run, backend, listed, tmp_path):
        records = [{"id": 7, "title": "Mill", "text": "It stands.", "year": 1702}, {"id": "b", "text": "It turns."}]
        run(write_corpus(tmp_path, records))
        before = {document_id: replace(document, source="") for document_id, document in listed().items()}
        summary = run(records)
        assert (summary.read, summary.written, summary.embedded) == (2, 0, 0)
        assert listed() == before
        assert texts(backend)["7"] == "Mill\n\nIt stands."

    def test_a_record_without_an_id(self, run, listed):
        run({"text": "One.", "source": "a.csv", "row": 1}, {"text": "Two.", "title": "T"})
        assert sorted(listed())[1] == "a.csv#row=1"
        assert len(listed()) == 2

    def test_a_number_in_an_id_is_not_that_of_another_source(self, run, listed):
        given = [
            Document(text, metadata={"source": source})
            for text, source in zip("1234", ("x", "x", "x#2", "x"), strict=True)
        ]
        assert run(given).problems == ()
        assert list(listed()) == ["x", "x#2", "x#2#2", "x#3"]
        summary = run([given[2], *given[:2]])
        assert (summary.problems, summary.documents) == ((), 4)

    def test_a_record_of_a_benchmark_keeps_its_id(self, run, listed):
        run({"corpus_name": "Novel-1", "context": "One."})
        assert list(listed()) == ["Novel-1"]

    def test_what_json_cannot_hold_is_converted(self, run, listed):
        values = {
            "day": date(2020, 1, 2),
            "at": datetime(2020, 1, 2, 3, tzinfo=UTC),
            "path": Path("a/b"),
            "uuid": UUID(int=5),
            "price": Decimal("1.50"),
            "tags": {"b", "a", "c"},
            "pair": (1, 2.5),
            "missing": float("nan"),
            "colour": Colour.RED,
            "numbers": [np.int64(3), np.float32(0.5)],
            "vector": np.ones(2),
            "deep": {1: {"day": date(2020, 1, 2)}},
        }
        expected = {
            "day": "2020-01-02",
            "at": "2020-01-02T03:00:00+00:00",
            "path": "a/b",
            "uuid": "00000000-0000-0000-0000-000000000005",
            "price": "1.50",
            "tags": ["a", "b", "c"],
            "pair": [1, 2.5],
            "missing": None,
            "colour": "red",
            "numbers": [3, 0.5],
            "vector": [1.0, 1.0],
            "deep": {"1": {"day": "2020-01-02"}},
        }
        assert run(Document("One.", id="a", metadata=values), {"id": "b", "text": "Two.", **values}).problems == ()
        assert [document.metadata for document in listed().values()] == [expected, expected]

    def test_each_problem_names_its_document(self, run):
        loop = []
        loop.append(loop)
        summary = run(
            Document("Good."),
            Document(" \n", metadata={"source": "empty.pdf"}),
            {"id": "x", "title": "No text"},
            {"text": 5},
            {"id": "", "text": "No id."},
            {"id": "y", "text": "One.", "raw": b"\xff"},
            Document("One.", id="z", metadata={"deep": {"loop": loop}}),
            {"id": "w", "text": "One.", "owner": {"self": object()}},
        )
        assert list(map(str, summary.problems)) == [
            "sources[1] (source 'empty.pdf'): empty document",
            "sources[2] (id 'x'): the record has no \"text\"",
            'sources[3]: "text" is an integer; it must be a string',
            "sources[4] (id ''): empty id",
            "sources[5] (id 'y'): \"raw\" is bytes, which JSON cannot hold; convert it first",
            "sources[6] (id 'z'): metadata is nested too deeply",
            "sources[7] (id 'w'): \"owner.self\" is object, which JSON cannot hold; convert it first",
        ]
        assert (summary.read, summary.documents) == (1, 1)

    @pytest.mark.parametrize(
        ("sources", "message"),
        [
            ([], "no file, folder or document was given"),
            (iter([]), "the sources are empty"),
            ([Document("One."), 7], r"sources\[1\] is int; sources must be paths, LangChain documents"),
            ([Document("One."), "nowhere.txt"], "nowhere.txt does not exist"),
            (7, "the sources are int; sources must be"),
            (type("Loader", (BaseLoader,), {})(), r"are Loader: give its lazy_load\(\)"),
            ((number for number in range(7)), r"sources\[0\]: it is int; .*; and 2 more"),
            ([{"text": " "}], r"sources\[0\]: empty document"),
        ],
    )
    def test_nothing_that_can_be_read(self, tmp_path, sources, message):
        with pytest.raises(InputError, match=message):
            run_ingest(sources, tmp_path / "index", embedder=HashEmbeddings())
        assert not (tmp_path / "index").exists()

    def test_everything_may_be_mixed(self, run, listed, tmp_path):
        write(tmp_path, a="One.", deep__b="Two.")
        mixed = [tmp_path / "a.txt", Document("Three.", id="c"), str(tmp_path), {"id": "d", "text": "Four."}]
        for given in (mixed, iter(mixed)):
            assert run(given).problems == ()
            assert list(listed()) == ["a.txt", "c", "d", "deep/b.txt"]
        assert run([*mixed, "deep"].__iter__()).problems == (Problem("deep", "does not exist"),)

    def test_the_files_of_a_glob(self, run, listed, tmp_path):
        write(tmp_path, a="One.", deep__b="Two.")
        run(tmp_path.glob("**/*.txt"))
        assert sorted(listed()) == ["a.txt", "b.txt"]

    def test_a_source_that_fails_loses_nothing_that_was_stored(self, backend, monkeypatch):
        monkeypatch.setattr(pipeline, "_BATCH_DOCUMENTS", 20)
        embedder = Embedder("h", HashEmbeddings, batch=10)

        def given(until):
            for n in range(60):
                if n == until:
                    raise ConnectionError("the server went away")
                yield {"id": f"n{n}", "text": f"Number {n}."}

        with pytest.raises(ConnectionError):
            run_ingest(given(50), backend, embedder=embedder)
        summary = run_ingest(given(60), backend, embedder=embedder)
        assert (summary.documents, summary.written) == (60, 30)

    def test_progress_without_a_known_length(self, tmp_path):
        shown = []
        given = [Document(f"Number {n}. It counts.", id=f"n{n}") for n in range(300)]
        embedder = Embedder("h", HashEmbeddings, batch=40)
        summary = run_ingest(iter(given), tmp_path / "index", embedder=embedder, progress=shown.append)
        assert {now.total for now in shown} == {None}
        assert {now.seconds_left for now in shown if now.phase == "embedding"} == {None}
        assert [now.share for now in shown[:-1]] == [0.0] * (len(shown) - 1)
        assert (shown[-1].share, shown[-1].documents) == (1.0, 300)
        assert str(shown[-1]).startswith(f"Done: 300 documents, {summary.embedded} sentences")
        write(tmp_path, new="Five.")
        run_ingest([*given, tmp_path / "new.txt"], tmp_path / "index2", embedder=embedder, progress=shown.append)
        assert shown[-1].done == shown[-1].total == sum(len(document.page_content) for document in given) + 5


class TestAsync:
    def test_the_same_result(self, tmp_path, backend):
        async def documents():
            for n in range(3):
                await asyncio.sleep(0)
                yield Document(f"Number {n}.", id=f"n{n}")

        async def work():
            taken = await aingest(documents(), backend, embedder=HashEmbeddings(), chunk_tokens=100)
            given = [tmp_path / "a.txt", {"id": "b", "text": " "}]
            with pytest.warns(UserWarning, match=r"^left out 1 item: sources\[1\] \(id 'b'\)") as caught:
                listed = await aingest(given, backend.with_name("other"), embedder=HashEmbeddings())
            assert caught[0].filename == __file__
            return taken, listed

        (tmp_path / "a.txt").write_text("One.")
        taken, listed = asyncio.run(work())
        assert [document.id for document in taken.documents()] == ["n0", "n1", "n2"]
        assert taken.info().chunk_tokens == 100
        assert [document.id for document in listed.documents()] == ["a.txt"]

    def test_errors_reach_the_caller(self, backend):
        async def documents():
            yield {"id": "a", "text": "One."}
            raise ConnectionError("the server went away")

        for sources, kind in ((documents(), ConnectionError), (["nowhere"], InputError)):
            with pytest.raises(kind):
                asyncio.run(aingest(sources, backend, embedder=HashEmbeddings()))

    def test_a_cancelled_task_stops_the_thread_and_frees_the_index(self, tmp_path, monkeypatch):
        monkeypatch.setattr(pipeline, "_BATCH_DOCUMENTS", 20)

        async def documents(reached):
            n = 0
            while True:
                n += 1
                if n == 50:
                    reached.set()
                yield {"id": f"n{n}", "text": f"Number {n}."}

        async def work():
            reached = asyncio.Event()
            task = asyncio.create_task(aingest(documents(reached), tmp_path / "index", embedder=HashEmbeddings()))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await aingest({"id": "n1", "text": "Number 1."}, tmp_path / "index", embedder=HashEmbeddings())

        with asyncio.run(work()) as index:
            assert index.document("n1") is not None

    def test_a_source_may_need_every_thread_of_the_loop(self, backend):
        async def documents():
            for n in range(3):
                yield {"id": f"n{n}", "text": await asyncio.to_thread("Number {}.".format, n)}

        async def work():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            return await asyncio.wait_for(aingest(documents(), backend, embedder=HashEmbeddings()), 30)

        assert asyncio.run(work()).info().documents == 3

    def test_a_cancelled_task_stops_at_the_next_document_and_closes_its_source(self, backend):
        read, closed = [], []

        def given(reached, go_on):
            for n in range(100):
                if n == 5:
                    reached()
                    assert go_on.wait(30)
                read.append(n)
                yield {"id": f"n{n}", "text": f"Number {n}."}

        async def documents(reached):
            try:
                yield {"id": "a", "text": "One."}
                reached()
                await asyncio.Event().wait()
            finally:
                closed.append(True)

        async def work(make):
            loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
            sources = make(lambda: loop.call_soon_threadsafe(reached.set), go_on)
            task = asyncio.create_task(aingest(sources, backend, embedder=HashEmbeddings()))
            await asyncio.wait_for(reached.wait(), 30)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()  # once more, while it waits for the thread
            await asyncio.sleep(0)
            assert task.done() is False
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(work(given))
        assert len(read) == 6
        asyncio.run(work(lambda reached, _: documents(reached)))
        assert closed == [True]

    def test_the_loop_is_free_meanwhile(self, backend):
        async def work():
            waiting, free = threading.Event(), asyncio.Event()

            class Slow(HashEmbeddings):
                def embed_documents(self, texts):
                    loop.call_soon_threadsafe(free.set)
                    assert waiting.wait(30)
                    return super().embed_documents(texts)

            loop = asyncio.get_running_loop()
            task = asyncio.create_task(aingest({"id": "a", "text": "One."}, backend, embedder=Slow()))
            await asyncio.wait_for(free.wait(), 30)
            waiting.set()
            return await task

        asyncio.run(work()).close()


class TestIdentity:
    def test_a_file_is_the_same_by_any_path(self, run, listed, tmp_path, monkeypatch):
        docs = write(tmp_path / "docs", guide__a="One.", b="Two.")
        run(docs)
        (tmp_path / "link").symlink_to(docs, target_is_directory=True)
        (tmp_path / "c.txt").symlink_to(docs / "b.txt")
        monkeypatch.chdir(docs)
        before = listed()
        for path in (docs / "guide", docs / "guide/a.txt", "guide", tmp_path / "link", tmp_path / "link/guide/a.txt"):
            assert run(path).written == 0
        assert run(tmp_path / "c.txt", ".").written == 0
        assert listed() == before

    def test_a_file_that_changed_is_the_same_too(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", guide__a="One.")
        run(docs)
        write(docs, guide__a="Two.")
        run(docs / "guide")
        assert texts(backend) == {"guide/a.txt": "Two."}

    def test_files_of_one_name_in_two_folders_both_stay(self, run, backend, tmp_path):
        for name in ("x", "y", "deep/x"):
            write(tmp_path / name, README=f"In {name}.")
            assert run(tmp_path / name).problems == ()
        expected = {"README.txt": "In x.", "y/README.txt": "In y.", "x/README.txt": "In deep/x."}
        assert texts(backend) == expected
        assert run(tmp_path / "deep/x", tmp_path / "y", tmp_path / "x").written == 0
        assert run(tmp_path).written == 0
        assert texts(backend) == expected

    def test_files_of_one_name_in_one_run(self, run, backend, tmp_path):
        for name in ("x", "y"):
            write(tmp_path / name, README=f"In {name}.")
        for order in (["x", "y"], ["y", "x"]):
            assert run([tmp_path / name for name in order]).problems == ()
            assert texts(backend) == {"README.txt": "In x.", "y/README.txt": "In y."}

    def test_a_folder_above_comes_later(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", guide__README="Deep.", README="Top.")
        run(docs / "guide")
        run(docs)
        assert texts(backend) == {"README.txt": "Deep.", "docs/README.txt": "Top."}
        assert run(docs).written == 0

    def test_a_folder_that_was_moved_holds_the_same_documents(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", a="One.", deep__b="Two.")
        run(docs)
        docs.rename(tmp_path / "moved")
        assert run(tmp_path / "moved").written == 0
        assert sorted(texts(backend)) == ["a.txt", "deep/b.txt"]

    @pytest.mark.parametrize("text", ["Other.", "One."])
    def test_a_file_out_of_reach_loses_its_document_only_to_the_same_text(self, run, backend, tmp_path, text):
        mounted, other = write(tmp_path / "mounted", a="One."), write(tmp_path / "other", a=text)
        run(mounted)
        mounted.rename(tmp_path / "away")
        run(other)
        assert texts(backend) == {"a.txt": "One.", **({"other/a.txt": text} if text == "Other." else {})}

    def test_a_new_file_may_have_the_id_of_one_that_is_gone_from_the_same_folder(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", guide__a="One.")
        run(docs / "guide")
        (docs / "guide/a.txt").unlink()
        run(write(docs, a="Two."))
        assert texts(backend) == {"a.txt": "Two."}

    def test_a_name_that_ends_like_a_place(self, run, backend, tmp_path):
        for n, name in enumerate(["notes", "notes, page 2", "notes, line 7"]):
            (tmp_path / name).write_text(f"Number {n}.")
        for path in (tmp_path, tmp_path / "notes", tmp_path / "notes, page 2"):
            run(path)
            assert texts(backend) == {"notes": "Number 0.", "notes, line 7": "Number 2.", "notes, page 2": "Number 1."}

    def test_a_link_that_leads_elsewhere_now_is_the_same_place(self, run, backend, tmp_path):
        for version in ("v1", "v2"):
            write(tmp_path / version, a=f"This is {version}.")
        for version in ("v1", "v2"):
            (tmp_path / "current").unlink(missing_ok=True)
            (tmp_path / "current").symlink_to(version, target_is_directory=True)
            run(tmp_path / "current")
        assert texts(backend) == {"a.txt": "This is v2."}

    def test_records_without_ids_are_told_apart_by_their_file(self, run, backend, tmp_path):
        for name in ("x", "y"):
            write_corpus(tmp_path / name, [{"text": f"First of {name}."}, {"text": f"Second of {name}."}])
            run(tmp_path / name)
        expected = {
            "corpus.jsonl#1": "First of x.",
            "corpus.jsonl#2": "Second of x.",
            "y/corpus.jsonl#1": "First of y.",
            "y/corpus.jsonl#2": "Second of y.",
        }
        assert texts(backend) == expected
        assert run(tmp_path).written == 0
        assert texts(backend) == expected

    def test_an_id_of_its_own_is_the_document_in_any_file(self, run, backend, tmp_path):
        for name in ("x", "y"):
            write_corpus(tmp_path / name, [{"id": "mill", "text": f"In {name}."}])
            run(tmp_path / name)
        assert texts(backend) == {"mill": "In y."}
        run({"id": "mill", "text": "Given."})
        assert texts(backend) == {"mill": "Given."}

    def test_a_file_does_not_take_the_id_of_a_given_document(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", a="A file.")
        run({"id": "a.txt", "text": "Given."}, docs)
        assert texts(backend) == {"a.txt": "Given.", "docs/a.txt": "A file."}
        assert run(docs).written == 0

    def test_two_ids_of_their_own_in_one_run(self, run, tmp_path):
        folder = write_corpus(tmp_path, [{"id": "a", "text": "One."}, {"id": "a", "text": "Two."}])
        file = folder / "corpus.jsonl"
        problem = Problem(f"{file}, line 2", f"duplicate id 'a', already used by {file}, line 1")
        assert run(folder).problems == (problem,)

    def test_an_index_that_holds_a_file_twice_keeps_both_until_it_is_pruned(self, run, backend, tmp_path, listed):
        docs = write(tmp_path / "docs", guide__a="One.")
        run(docs)
        with pipeline.open_writer(store_at(backend), embedder=HashEmbeddings()) as writer:  # as earlier versions did
            position = Position()
            writer.put(list(read_documents(docs / "guide", position=position)))
            writer.publish()
        assert sorted(listed()) == ["a.txt", "guide/a.txt"]
        assert run(docs).written == 0
        assert run(docs / "guide").written == 0
        assert run(docs, prune=True).removed == 1
        assert len(listed()) == 1


class TestPrune:
    def test_only_what_came_from_the_given_sources_is_removed(self, run, listed, tmp_path):
        x, y = write(tmp_path / "x", a="One.", b="Two."), write(tmp_path / "y", c="Three.", d="Four.")
        given = [Document("Five.", id="e", metadata={"source": str(x / "b.txt")}), {"id": "f", "text": "Six."}]
        run(x, y, *given)
        (x / "b.txt").unlink()
        (y / "d.txt").unlink()
        shown = []
        summary = run(x, prune=True, progress=shown.append)
        assert summary.removed == 1
        assert sorted(listed()) == ["a.txt", "c.txt", "d.txt", "e", "f"]
        (before,) = [now for now in shown if now.phase == "pruning"]
        assert str(before) == "Removing 1 document that the sources no longer hold"

    def test_through_a_link(self, run, listed, tmp_path):
        docs = write(tmp_path / "docs", a="One.", b="Two.")
        (tmp_path / "link").symlink_to(docs, target_is_directory=True)
        run(docs)
        (docs / "b.txt").unlink()
        assert run(tmp_path / "link", prune=True).removed == 1
        assert list(listed()) == ["a.txt"]

    def test_a_file_that_is_there_but_was_not_read_keeps_its_document(self, run, listed, tmp_path):
        docs = write(tmp_path / "docs", a="One.", hidden="Three.", gone="Four.")
        (docs / "b.unknown").write_text("Two.")
        (docs / "hidden.txt").rename(docs / ".hidden.txt")
        run(docs, docs / ".hidden.txt", readers={".unknown": "text"})
        assert len(listed()) == 4
        (docs / "gone.txt").unlink()
        assert run(docs, prune=True).removed == 1
        assert sorted(listed()) == [".hidden.txt", "a.txt", "b.unknown"]

    def test_of_a_file_that_is_given_itself_records_that_left_it_are_removed(self, run, listed, tmp_path):
        folder = write_corpus(tmp_path, [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}])
        run(folder)
        write_corpus(tmp_path, [{"id": "a", "text": "One."}])
        assert run(folder / "corpus.jsonl", prune=True).removed == 1
        assert list(listed()) == ["a"]

    def test_an_empty_path_is_not_the_current_folder(self, arag, tmp_path, monkeypatch):
        monkeypatch.chdir(write(tmp_path / "docs", a="One."))
        code, _, err = arag("ingest", "", "--index", tmp_path / "index", "--prune")
        assert (code, err) == (1, "Error: '' is an empty path\n")

    def test_without_a_path_it_says_that_it_does_nothing(self, run):
        with pytest.warns(UserWarning, match="nothing was pruned"):
            assert run({"id": "a", "text": "One."}, prune=True).removed == 0

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_the_command_line_says_how_many_before(self, arag, tmp_path, monkeypatch, options):
        monkeypatch.setattr(huggingface, "load_huggingface", lambda model, *, named: HashEmbeddings())
        docs = write(tmp_path / "docs", a="One.", b="Two.", c="Three.")
        arag("ingest", docs, "--index", tmp_path / "index")
        for name in "bc":
            (docs / f"{name}.txt").unlink()
        code, out, err = arag("ingest", docs, "--index", tmp_path / "index", "--prune", *options)
        assert (code, err) == (0, "Removing 2 documents that the sources no longer hold\n")
        assert json.loads(out)["removed"] == 2 if options else "2 documents removed" in out


class TestLeftOut:
    def test_one_warning_for_everything(self, tmp_path, backend):
        docs = write(tmp_path / "docs", a="One.", b=" ")
        (docs / "c.png").write_bytes(b"x")
        with pytest.warns(
            UserWarning, match=r"^left out 2 items: .*b\.txt: empty document; .*c\.png: no reader"
        ) as caught:
            ingest([docs], backend, embedder=HashEmbeddings()).close()
        assert len(caught) == 1
        assert caught[0].filename == __file__

    def test_an_embedder_that_cannot_be_loaded_leaves_nothing_behind(self, tmp_path):
        def fail():
            raise EmbedderError("no such model")

        with pytest.raises(EmbedderError, match="no such model"):
            run_ingest({"id": "a", "text": "One."}, tmp_path / "index", embedder=Embedder("gone", fail))
        assert not (tmp_path / "index").exists()


class TestFunction:
    def test_the_name_is_the_function_after_any_import(self):
        assert arag.ingest is ingest
        assert arag.ingest.readers is sys.modules["arag.ingest.readers"]
        assert pipeline is sys.modules["arag.ingest.pipeline"]
        text = pydoc.plain(pydoc.render_doc(arag.ingest))
        assert "ingest(sources: " in text
        assert "Args:\n        sources: A file or a folder" in text

    @pytest.mark.parametrize(
        "code",
        [
            "import arag.ingest.readers; arag.ingest.readers.read_documents; arag.ingest.__doc__[0]",
            "from arag import ingest; import arag.ingest.formats.html as html; html.read_html; ingest.__kwdefaults__",
            "import arag; arag.ingest.__kwdefaults__; arag.ingest.pipeline.run_ingest",
            "from arag.ingest import writer; from arag import ingest; assert ingest.writer is writer",
        ],
    )
    def test_in_a_new_process(self, code):
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An index of given documents."""
    folder = tmp_path_factory.mktemp("listed") / "index"
    records = [{"id": f"mills/{n}", "title": f"Mill {n}", "text": "It stands.", "year": n} for n in range(3)]
    given = [*records, Document("It sank.", id="ship", metadata={"source": "a.pdf"})]
    run_ingest(given, folder, embedder=HashEmbeddings())
    return folder


class TestList:
    def test_documents_are_listed_in_the_order_of_their_ids(self, make_index, monkeypatch):
        monkeypatch.setattr("arag.retrieval.index._PAGE", 3)
        index = make_index([{"id": f"n{n}", "title": f"T{n}", "text": "One.", "n": n} for n in range(10)])
        found = list(index.documents())
        assert [document.id for document in found] == [f"n{n}" for n in range(10)]
        assert found == [index.document(document.id) for document in found]
        assert (found[3].title, found[3].metadata, found[3].chunks) == ("T3", {"n": 3}, 1)
        assert found[3].source.endswith("corpus.jsonl, line 4")
        part = index.limited_to(Scope(documents=["n2", "n5", "*8", "n9", "n7"]))
        assert [document.id for document in part.documents()] == ["n2", "n5", "n7", "n8", "n9"]

    def test_a_writer_may_publish_meanwhile(self, tmp_path, monkeypatch):
        monkeypatch.setattr("arag.retrieval.index._PAGE", 2)
        records = [{"id": f"n{n}", "text": f"Number {n}."} for n in range(6)]
        with ingest(records, tmp_path / "index", embedder=HashEmbeddings()) as index:
            documents = index.documents()
            assert next(documents).id == "n0"
            changed = [{"id": f"n{n}", "text": f"Changed {n}."} for n in (1, 3, 7)]
            run_ingest(changed, tmp_path / "index", embedder=HashEmbeddings())
            assert [document.id for document in documents] == [f"n{n}" for n in (1, 2, 3, 4, 5, 7)]

    def test_the_command(self, arag, folder):
        code, out, err = arag("list", "--index", folder)
        assert (code, err) == (0, "")
        assert out.splitlines() == [*(f"mills/{n}\tMill {n}\t1\t" for n in range(3)), "ship\t\t1\ta.pdf"]
        _, out, _ = arag("list", "--index", folder, "--json")
        assert json.loads(out)["documents"][1] == {
            "id": "mills/1",
            "title": "Mill 1",
            "source": "",
            "metadata": {"year": 1},
            "chunks": 1,
        }

    @pytest.mark.parametrize(
        ("pattern", "number"), [("mills/*", 3), ("MILL 2", 1), ("*2", 1), ("hi", 1), ("mill?", 0), ("mill*9", 0)]
    )
    def test_a_pattern(self, arag, folder, pattern, number):
        code, out, err = arag("list", pattern, "--index", folder)
        assert (code, len(out.splitlines())) == (0, number)
        assert err == ("" if number else f"No document matches {pattern!r}.\n")

    def test_a_table_fits_a_terminal(self, tmp_path, monkeypatch, capsys, backend):
        long = {"id": "a/" * 30 + "b", "title": "A long title " * 5, "text": "One.", "source": "/somewhere/" * 9}
        with ingest([long, {"id": "c", "text": "Two."}], backend, embedder=HashEmbeddings()) as index:
            monkeypatch.setenv("COLUMNS", "60")
            monkeypatch.setattr(listing, "out", Console())
            monkeypatch.setattr(Console, "is_terminal", True)
            listing.show_documents(index.documents(), None)
        printed = capsys.readouterr().out.splitlines()
        assert printed[0].split() == ["Id", "Title", "Chunks", "Source"]
        assert max(map(len, printed)) <= 60
        assert "".join(line.split()[0] for line in printed[1:-1]).startswith("a/a/a/")


def test_a_writer_of_a_given_index_is_alone(tmp_path):
    def given():
        yield {"id": "a", "text": "One."}
        with pytest.raises(IndexLockedError):
            run_ingest({"id": "b", "text": "Two."}, tmp_path / "index", embedder=HashEmbeddings())
        yield {"id": "c", "text": "Three."}

    assert run_ingest(given(), tmp_path / "index", embedder=HashEmbeddings()).documents == 2
