"""What is read from files, folders and objects, and which document of an index each one is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document

from arag import Scope, ingest, open_index, run_ingest
from arag.errors import InputError
from arag.ingest.documents import Problem
from arag.ingest.formats import Readers
from arag.ingest.reading import SourceReader
from fakes import HashEmbeddings, write_corpus


@pytest.fixture
def backend(tmp_path_factory):
    """A place for an index, outside of `tmp_path`."""
    return tmp_path_factory.mktemp("index") / "index"


@pytest.fixture
def run(backend):
    """A function that ingests into one index."""

    def run(*sources, **options):
        return run_ingest(
            sources[0] if len(sources) == 1 else list(sources), backend, embedder=HashEmbeddings(), **options
        )

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


class TestPaths:
    @pytest.fixture(autouse=True)
    def in_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def touch(self, *names):
        for name in names:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text("Some text.")

    def read(self, *sources, target=None):
        """Return the ids of the documents that are read, the problems and what was skipped."""
        reader = SourceReader(sources, Readers(), target)
        items = list(reader.read())
        problems = [item for item in items if isinstance(item, Problem)]
        return [item.id for item in items if item not in problems], problems, reader.skipped

    def test_a_folder_is_read_in_sorted_order_and_what_is_skipped_is_named(self):
        self.touch("in/b.txt", "in/a/z.md", "in/a/b/c.TXT", "in/a.txt", "in/.hidden.txt", "in/.git/x.txt", "in/p.mp3")
        self.touch("in/idx/index.sqlite3", "in/idx/notes.txt", "in/new/writer.md", "outside/secret.txt")
        Path("in/x.log").write_text("Meer: grün", "utf-8")
        Path("in/y.log").write_text("Meer: grün", "windows-1252")
        Path("in/p.mp3").write_bytes(b"\x89PNG\0")
        Path("in/link.txt").symlink_to(Path("outside/secret.txt").absolute())
        Path("in/loop").symlink_to("../in", target_is_directory=True)
        ids, problems, skipped = self.read("in", target=Path("in/new"))
        assert (ids, problems) == (["a/b/c.TXT", "a/z.md", "a.txt", "b.txt"], [])
        link = "a link, which is not followed"
        assert {path.name: why for path, why in skipped.items()} == {
            "p.mp3": "no reader for .mp3; give its text, or a reader of yours in Python (readers=)",
            "x.log": "no reader for .log; to read it as text: --as .log=.txt",
            "y.log": "no reader for .log; to read it as text: --as .log=.txt",
            "idx": "an index",
            "link.txt": link,
            "loop": link,
        }

    @pytest.mark.parametrize(
        ("name", "text", "advice"),
        [
            ("core.html.de", "<p>Kern", "to read it as a web page: --as .de=.html"),
            ("core.html.ja.utf8", "<p>核", "to read it as a web page: --as .utf8=.html"),
            ("abbr.1", '.\\" made\n.TH ABBR 1\n.SH NAME', "write its text with man -l"),
            ("notes.1", "Lamp oil.", "to read it as text: --as .1=.txt"),
            ("clock.page", "<page><title>Clock", "convert it to .html, as yelp-build does"),
            ("print.ps", "%!PS-Adobe-3.0", "convert it to .pdf"),
            ("table.tab", "a\tb", "to read it as a table: --as .tab=.tsv"),
            ("wheel.svg", "<?xml?><svg><text>Oak", "to read it as text without its markup: --as .svg=.html"),
        ],
    )
    def test_what_to_do_with_a_file_without_a_reader_is_told(self, name, text, advice):
        self.touch("in/a.txt")
        Path("in", name).write_text(text, "utf-8")
        _, _, skipped = self.read("in")
        assert list(skipped.values()) == [f"no reader for {Path(name).suffix}; {advice}"]

    def test_a_page_that_only_leads_to_another_is_skipped(self):
        self.touch("in/a.txt")
        refresh = "<meta http-equiv=Refresh content='{}; url=b.html#oil'>"
        Path("in/oil.html").write_text(f"<head>{refresh.format(0)}</head><p>Oil is at <a href=b.html>Oil</a>.")
        Path("in/news.html").write_text(f"<head>{refresh.format(600)}</head><p>No news.")
        Path("in/plain.html").write_text(f"<head><noscript>{refresh.format(0)}</noscript></head><p>Lamp oil.")
        ids, problems, skipped = self.read("in")
        assert (ids, problems) == (["a.txt", "news.html", "plain.html"], [])
        assert skipped == {Path("in/oil.html"): "a page that only leads to another"}

    def test_a_folder_without_a_file_that_can_be_read_says_what_it_has(self):
        self.touch("in/a.png")
        Path("in/b.log").write_text("Lamp oil.")
        with pytest.raises(InputError, match=r"read; left out: a picture: use --ocr .*, no reader for .log; .* \(1\)$"):
            self.read("in")

    def test_a_folder_without_a_file_that_can_be_read_does_not_stop_others(self):
        self.touch("in/a.log", "texts/a.txt", "empty/.hidden")
        ids, problems, skipped = self.read("in", "texts")
        assert (ids, problems, list(skipped)) == (["a.txt"], [], [Path("in/a.log")])
        with pytest.raises(InputError, match="empty' is empty, or has only hidden files"):
            self.read("empty", "texts")

    @pytest.mark.parametrize(
        ("sources", "reason"),
        [
            (["a.txt", "nowhere"], "'nowhere' cannot be read: No such file"),
            (["a.txt", ""], "an empty path"),
            ("caf\udce9.txt", "caf\ufffd.txt' cannot be read: No such"),
            ("empty", "empty' is empty, or has only hidden files"),
            ("other/a.xyz", r"other/a\.xyz' has an unknown extension, '\.xyz'; valid .*\.jsonl.*--as \.EXT=\.txt"),
            ("idx", "idx' is an index: give the documents that it was made from"),
            ("pipe.txt", "pipe.txt' is neither a file nor a folder"),
        ],
    )
    def test_a_path_that_leads_to_nothing_is_an_error_before_anything_is_read(self, sources, reason):
        self.touch("a.txt", "empty/.hidden", "other/a.xyz", "idx/index.sqlite3")
        os.mkfifo("pipe.txt")
        with pytest.raises(InputError, match=reason):
            SourceReader(sources, Readers())

    def test_the_folder_of_the_documents_does_not_become_their_index(self):
        self.touch("in/a.txt")
        with pytest.raises(InputError, match="'in' holds the documents: name another folder for the index"):
            self.read("in", target=Path("in"))

    @pytest.mark.parametrize("name", ["b.txt", ".hidden"])
    def test_an_index_is_not_written_among_other_files(self, name):
        self.touch("in/a.txt", f"there/{name}")
        Path("in/a.txt").write_text("The lamp is lit.")
        if name.startswith("."):
            assert run_ingest("in", "there", embedder=HashEmbeddings()).read == 1
            return
        with pytest.raises(InputError, match=r"there holds other files \(b.txt\): name a new folder for the index"):
            run_ingest("in", "there", embedder=HashEmbeddings())
        assert [entry.name for entry in Path("there").iterdir()] == [name]

    def test_a_file_that_is_named_twice_is_read_once(self):
        self.touch("x/README.md", "x/deep/a.md")
        Path("link").symlink_to("x", target_is_directory=True)
        assert self.read("link", "x/", "x/deep/../README.md")[:2] == (["README.md", "deep/a.md"], [])

    def test_names_with_line_breaks_or_without_unicode(self):
        self.touch("a\nb.txt", "c.txt", os.fsdecode(b"caf\xe9.txt"))
        (document, *_), problems = self.read(".")[:2]
        assert (document, len(problems)) == ("c.txt", 1)
        assert problems[0].reason == "id 'a\\nb.txt' has a line end or another control character in it"
        for document in SourceReader(os.fsdecode(b"caf\xe9.txt"), Readers()).read():
            assert (document.id, document.title) == ("caf\ufffd.txt", "caf\ufffd")
            document.source.encode()

    def test_the_command_reads_an_extension_like_another(self, arag, tmp_path, monkeypatch):
        monkeypatch.setattr("arag.models.onnx.load_onnx", lambda *_: HashEmbeddings())
        (tmp_path / "tower.log").write_text("04:10 The lamp was lit.")
        assert arag("ingest", tmp_path / "tower.log", "--index", tmp_path / "index", "--as", ".log=.txt")[0] == 0


class TestObjects:
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
            ({"source": "a.pdf", "page": 3, "start_index": 80, "total_pages": 9}, "a.pdf#page=3&start_index=80"),
            ({"source": Path("docs/a.md"), "page": None}, "docs/a.md"),
            ({"source": "https://a.org/b#c", "row": 0}, "https://a.org/b#c#row=0"),
        ],
    )
    def test_an_id_is_made_from_where_a_document_came_from(self, run, listed, metadata, document_id):
        run(Document("One.", metadata=metadata), Document("Two.", metadata=metadata))
        assert list(listed()) == [document_id, f"{document_id}#2"]
        assert run(Document("One.", metadata=metadata), Document("Two.", metadata=metadata)).written == 0

    def test_without_id_and_source_the_content_is_the_id(self, run, listed):
        given = [Document("One."), Document("One.", metadata={"year": 1}), Document("Two.", metadata={"source": ""})]
        run(*given)
        before = list(listed())
        (problem,) = run([*reversed(given), given[0]]).problems
        assert list(listed()) == before
        assert (len(before), problem.source, "duplicate id" in problem.reason) == (3, "sources[3]", True)

    def test_what_json_cannot_hold_is_converted(self, run, listed):
        values = {"day": date(2020, 1, 2), "path": Path("a/b"), "price": Decimal("1.50"), "tags": set("lighthouse")}
        values |= {"missing": float("nan"), "numbers": [np.int64(3), np.float32(0.5)], "vector": np.ones(2)}
        expected = {"day": "2020-01-02", "path": "a/b", "price": "1.50", "tags": sorted(set("lighthouse"))}
        expected |= {"missing": None, "numbers": [3, 0.5], "vector": [1.0, 1.0]}
        assert run(Document("One.", id="a", metadata=values), {"id": "b", "text": "Two.", **values}).problems == ()
        assert [document.metadata for document in listed().values()] == [expected, expected]

    def test_an_id_that_is_far_too_long_is_left_out_and_not_repeated(self, run, listed):
        record, longest = {"id": "i" * 1_000_000, "text": "One."}, "é" * 950
        source = Document("Two.", metadata={"source": "s" * 1_000_000})
        problems = run(record, source, {"id": longest, "text": "Three."}).problems
        assert ["has more than 1,900 bytes" in problem.reason for problem in problems] == [True, True]
        assert max(len(str(problem)) for problem in problems) < 500
        assert list(listed()) == [longest]

    def test_each_problem_names_its_document(self, run):
        problems = run(
            Document("Good."),
            Document(" \n", metadata={"source": "empty.pdf"}),
            {"id": "x", "title": "No text"},
            {"text": 5},
            {"id": "", "text": "No id."},
            {"id": "w", "text": "One.", "owner": {"self": object()}},
        ).problems
        assert str(problems[1]).startswith(
            "sources[2] (id 'x'): the record has no \"text\"; its fields are id, title: name the one with the text"
        )
        assert list(map(str, [problems[0], *problems[2:4]])) == [
            "sources[1] (source 'empty.pdf'): empty document",
            'sources[3]: "text" is 5; it must be a string',
            "sources[4] (id ''): id '' is empty",
        ]
        assert str(problems[4]).startswith("sources[5] (id 'w'): JSON cannot hold it")

    @pytest.mark.parametrize(
        ("sources", "message"),
        [
            ([], "the sources are empty"),
            (iter([]), "the sources are empty"),
            ([Document("One."), 7], r"sources\[1\] is int; sources must be paths, LangChain documents"),
            ((number for number in range(7)), r"sources\[0\]: sources\[0\] is int; .*; and 2 more"),
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
        assert run(iter([*mixed, "deep"])).problems == (
            Problem("deep", "'deep' cannot be read: No such file or directory"),
        )


def test_an_event_loop_stays_free_with_a_thread(tmp_path):
    reached, may_go_on = threading.Event(), threading.Event()

    def documents():
        reached.set()
        assert may_go_on.wait(30)
        yield {"id": "n", "text": "The mill stands."}

    async def work():
        task = asyncio.create_task(
            asyncio.to_thread(ingest, documents(), tmp_path / "index", embedder=HashEmbeddings(), chunk_tokens=100)
        )
        assert await asyncio.to_thread(reached.wait, 30)
        may_go_on.set()
        return await task

    with asyncio.run(work()) as index:
        assert [document.id for document in index.documents()] == ["n"]
        assert index.info().chunk_tokens == 100


@pytest.mark.parametrize("function", [ingest, run_ingest])
def test_an_option_with_another_name_is_an_error_before_anything_is_read(function, tmp_path):
    message = (
        "no option 'chunk_token'; there are embedder, chunk_tokens, .*, text_field, title_field, id_field, progress$"
    )
    with pytest.raises(TypeError, match=message):
        function({"id": "n", "text": "The mill stands."}, tmp_path / "index", chunk_token=100)
    assert not (tmp_path / "index").exists()


class TestIds:
    def test_a_file_is_the_same_by_any_path(self, run, listed, tmp_path, monkeypatch):
        docs = write(tmp_path / "docs", guide__a="One.", b="Two.")
        run(docs)
        (tmp_path / "link").symlink_to(docs, target_is_directory=True)
        monkeypatch.chdir(docs)
        before = listed()
        for path in (docs / "guide", docs / "guide/a.txt", "guide", tmp_path / "link", tmp_path, "."):
            assert run(path).written == 0
        assert listed() == before

    def test_files_of_one_name_in_two_folders_are_told_apart(self, run, backend, tmp_path):
        for name in ("x", "y"):
            write(tmp_path / name, README=f"In {name}.")
        run(tmp_path / "x")
        assert run(tmp_path / "y").problems == ()
        assert run(tmp_path).written == 0
        assert texts(backend) == {"README.txt": "In x.", "README.txt~2": "In y."}

    def test_a_folder_that_was_moved_holds_the_same_documents(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", a="One.", deep__b="Two.")
        run(docs)
        write(docs.rename(tmp_path / "moved"), a="Changed.")
        assert run(tmp_path / "moved").written == 1
        assert texts(backend) == {"a.txt": "Changed.", "deep/b.txt": "Two."}

    def test_records_without_ids_are_told_apart_by_their_file(self, run, backend, tmp_path):
        for name in ("x", "y"):
            write_corpus(tmp_path / name, [{"text": f"First of {name}."}, {"text": f"Second of {name}."}])
        run(tmp_path / "x")
        run(tmp_path)
        files = {"corpus.jsonl": "x", "y/corpus.jsonl": "y"}
        assert texts(backend) == {
            f"{i}#{n}": f"{nth} of {name}." for i, name in files.items() for n, nth in ((1, "First"), (2, "Second"))
        }

    def test_a_file_does_not_take_the_id_of_an_object(self, run, backend, tmp_path):
        docs = write(tmp_path / "docs", a="A file.", b="Another.")
        run({"id": "a.txt", "text": "In Python."})
        (problem,) = run(docs).problems
        assert problem.reason.startswith("its id 'a.txt' belongs to a document that was given in Python")
        assert texts(backend) == {"a.txt": "In Python.", "b.txt": "Another."}


def test_what_is_left_out_is_one_warning_and_what_is_skipped_another(backend, tmp_path):
    docs = write(tmp_path / "docs", a="The mill stands.", b=" ")
    for number in range(12):
        (docs / f"{number}.mp3").write_bytes(b"x")
    with pytest.warns(UserWarning, match="^left out") as caught:
        ingest(docs, backend, embedder=HashEmbeddings()).close()
    problems, skipped = (str(warning.message) for warning in caught)
    assert problems == f"left out 1 item: {docs / 'b.txt'}: empty document"
    assert re.match(r"skipped: no reader .* \(12\): .*0\.mp3, .* and 7 more; run_ingest returns all$", skipped)
    assert {warning.filename for warning in caught} == {__file__}


class TestPrune:
    def test_only_what_came_from_the_given_sources_is_removed(self, run, listed, tmp_path):
        x, y = write(tmp_path / "x", a="One.", b="Two."), write(tmp_path / "y", c="Three.", d="Four.")
        objects = [Document("Five.", id="e", metadata={"source": str(x / "b.txt")}), {"id": "f", "text": "Six."}]
        run(x, y, *objects)
        (x / "b.txt").unlink()
        (y / "d.txt").unlink()
        assert run(x, prune=True).removed == 1
        assert sorted(listed()) == ["a.txt", "c.txt", "d.txt", "e", "f"]

    def test_a_file_that_is_there_but_was_not_read_keeps_its_document(self, run, tmp_path):
        docs = write(tmp_path / "docs", **{"a": "One.", ".hidden": "Two."})
        run(docs, docs / ".hidden.txt")
        assert run(docs, prune=True).removed == 0

    def test_of_a_file_that_is_given_itself_records_that_left_it_are_removed(self, run, listed, tmp_path):
        folder = write_corpus(tmp_path, [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}])
        run(folder)
        write_corpus(tmp_path, [{"id": "a", "text": "One."}])
        assert run(folder / "corpus.jsonl", prune=True).removed == 1
        assert list(listed()) == ["a"]


class TestList:
    def test_documents_are_listed_in_the_order_of_their_ids(self, make_index, monkeypatch):
        monkeypatch.setattr("arag.retrieval.index_reader._PAGE", 3)
        index = make_index([{"id": f"n{n}", "title": f"T{n}", "text": "One.", "n": n} for n in range(10)])
        assert [document.id for document in index.documents()] == [f"n{n}" for n in range(10)]
        part = index.limited_to(Scope(documents=["n2", "n5", "*8", "n9", "n7"]))
        assert list(part.documents()) == [index.document(f"n{n}") for n in (2, 5, 7, 8, 9)]

    def test_a_document_leads_to_its_chunks_and_a_part_of_an_id_to_chunks(self, make_index):
        index = make_index([{"id": f"log/{n}", "text": "A day.\n\n" * (200 * n)} for n in (1, 3)], chunk_tokens=100)
        chunks = index.chunks_of("log/3")
        assert [chunk.id for chunk in chunks] == [f"log/3:{n}" for n in range(len(chunks))]
        assert index.chunks_of(["log/3", "unknown", "log/1"]) == [*index.chunks_of("log/1"), *chunks]
        assert index.chunk_ids_beginning_with("log/1:", 2) == ["log/1:0", "log/1:1"]
        assert index.chunk_ids_beginning_with("z", 2) == []
        part = index.limited_to(["log/1"])
        assert (part.chunks_of("log/3"), part.chunk_ids_beginning_with("log/3", 2)) == ([], [])

    def test_the_command(self, arag, run, backend):
        records = [{"id": f"mills/{n}", "title": f"Mill {n}", "text": "It stands."} for n in range(3)]
        run(*records, Document("It sank.", id="ship", metadata={"source": "a.pdf"}))
        code, out, err = arag("list", "--index", backend)
        assert (code, err) == (0, "")
        assert out.splitlines() == [*(f"mills/{n}\tMill {n}\t1\t" for n in range(3)), "ship\t\t1\ta.pdf"]
        ship = {"id": "ship", "title": "", "source": "a.pdf", "metadata": {"source": "a.pdf"}, "chunks": 1}
        ship |= {"date": "", "author": "", "kind": "pdf", "path": "ship", "left_out": [], "ocr_pages": []}
        assert json.loads(arag("list", "--index", backend, "--json")[1])["documents"][-1] == ship
        code, out, err = arag("list", "--index", backend, "--documents", "x")
        assert (code, out, err) == (
            0,
            "",
            "No document of the index is in the scope: none has the id x. `arag list` shows all ids.\n",
        )
