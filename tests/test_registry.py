"""Which reader a file gets: by its ending, by what a caller says, by what a package offers."""

from __future__ import annotations

from datetime import date

import pytest

from arag import ingest, reader, run_ingest
from arag.errors import InputError
from arag.ingest import registry
from arag.ingest.documents import Limits, Position, Problem
from arag.ingest.formats.content import Content
from arag.ingest.readers import read_documents
from arag.ingest.registry import FORMATS, Readers, parse_as
from fakes import HashEmbeddings


def read(path, readers=None, **options):
    return list(read_documents([path], readers=Readers(readers), **options))


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Install a package that offers readers; `code` is its module."""

    def install(package, code, **entries):
        site = tmp_path / f"site-{package}"
        metadata = site / f"{package}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {package}:{function}\n" for name, function in entries.items())
        (metadata / "entry_points.txt").write_text(f"[arag.readers]\n{lines}")
        (site / f"{package}.py").write_text(code)
        monkeypatch.syspath_prepend(site)
        registry._offered.cache_clear()
        registry._load.cache_clear()

    yield install
    monkeypatch.undo()
    registry._offered.cache_clear()
    registry._load.cache_clear()


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


class TestText:
    @pytest.mark.parametrize("name", ["README", "LICENSE", "Makefile", "setup.py", "pyproject.toml", "run.SH", "q.sql"])
    def test_programs_and_names_without_an_ending_are_text(self, tmp_path, name):
        text = "#!/bin/sh\n\tif true:\n    deep = 'Kept as it is.'"
        (tmp_path / name).write_text(text)
        (document,) = read(tmp_path)
        assert (document.id, document.text) == (name, text)

    @pytest.mark.parametrize("name", ["a.out", "core", "video.ts"])
    def test_binary_files_are_left_out(self, tmp_path, name):
        file = tmp_path / name
        file.write_bytes(b"\x7fELF\x02\x01\x01\0\0")
        (found,) = read(file, {".out": "code"})
        assert found == Problem(str(file), "a binary file: it has no text")

    def test_other_endings_are_skipped_without_loading_anything(self, tmp_path):
        (tmp_path / "a.txt").write_text("Text.")
        (tmp_path / "b.log").write_text("Text.")
        assert [document.id for document in read(tmp_path)] == ["a.txt"]
        position = Position()
        list(read_documents([tmp_path], position=position))
        assert position.skipped == [Problem(str(tmp_path / "b.log"), "no reader for .log")]


class TestAs:
    def test_an_ending_is_read_as_a_format(self, tmp_path):
        (tmp_path / "a.log").write_text("The lamp was lit.")
        (tmp_path / "b.DAT").write_text("Name;Year\nAda;1815\n")
        first, second = read(tmp_path, {".log": "text", ".dat": "csv"})
        assert first.text == "The lamp was lit."
        assert second.text == "Name | Year\nName: Ada | Year: 1815"

    def test_it_goes_before_the_ending_of_a_format(self, tmp_path):
        (tmp_path / "a.json").write_text('{"not": "a record"}')
        (document,) = read(tmp_path, {".json": "text"})
        assert document.text == '{"not": "a record"}'

    def test_every_format_can_be_named(self):
        for each in FORMATS:
            assert Readers({".x": each.name})._find(".x") is each

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({".log": "word"}, "'word' is not a format; valid formats are text markdown html pdf docx"),
            ({"log": "text"}, "'log' is not an ending: give one with its dot, such as .log"),
            ({"": "text"}, "'' is not an ending"),
        ],
    )
    def test_what_is_not_valid(self, given, message):
        with pytest.raises(InputError, match=message):
            Readers(given)

    def test_options(self):
        assert parse_as(["text:.log", "csv:.dat"]) == {".log": "text", ".dat": "csv"}
        with pytest.raises(InputError, match=r"--as \.log: give a format and an ending, such as text:\.log"):
            parse_as([".log"])

    def test_the_command(self, arag, tmp_path):
        (tmp_path / "a.log").write_text("The lamp was lit.")
        index = tmp_path / "index"
        ingest([tmp_path / "a.log"], index, readers={".log": "text"}, embedder=HashEmbeddings()).close()
        code, _, err = arag("ingest", tmp_path / "a.log", "--index", index, "--as", "word:.log")
        assert (code, "'word' is not a format" in err) == (1, True)
        code, out, _ = arag("search", "keyword", "lamp", "--index", index)
        assert (code, "The lamp was lit." in out) == (0, True)


@pytest.mark.usefixtures("registered")
class TestOwnReaders:
    def test_a_text(self, tmp_path):
        @reader(".srt", ".vtt")
        def read_subtitles(data: bytes) -> str:
            return data.decode().replace("\r", "").replace("1\n", "")

        (tmp_path / "a.srt").write_bytes(b"1\r\nThe lamp.")
        (tmp_path / "b.VTT").write_bytes(b"1\nThe boat.")
        assert [document.text for document in read(tmp_path)] == ["The lamp.", "The boat."]
        assert read_subtitles(b"x") == "x"

    def test_pieces_and_content(self, tmp_path):
        @reader(".a")
        def read_pieces(data):
            yield "One.\r\n"
            yield "Two."

        @reader(".b")
        def read_content(data):
            return Content("Title", "Page one.\n\nPage two.", {"year": 1881}, (0, 11), left_out=(("page 3", "torn"),))

        (tmp_path / "x.a").write_bytes(b"1")
        (tmp_path / "x.b").write_bytes(b"1")
        first, problem, second = read(tmp_path)
        assert first.text == "One.\nTwo."
        assert problem == Problem(f"{tmp_path}/x.b, page 3", "torn")
        assert (second.title, second.metadata, second.page_starts) == ("Title", {"year": 1881}, (0, 11))

    def test_it_replaces_a_built_in_one(self, tmp_path):
        reader(".pdf")(lambda data: data.decode().upper())
        (tmp_path / "a.pdf").write_text("no real pdf")
        assert [document.text for document in read(tmp_path)] == ["NO REAL PDF"]

    def test_what_it_says_about_a_file_is_the_reason(self, tmp_path):
        @reader(".srt")
        def read_subtitles(data):
            if b"-->" not in data:
                raise ValueError("no subtitles found")
            return data.decode("ascii")

        (tmp_path / "a.srt").write_bytes(b"x")
        (tmp_path / "b.srt").write_bytes(b"--> \xff")
        (tmp_path / "c.srt").write_bytes(b"--> The lamp.")
        first, second, document = read(tmp_path)
        assert first == Problem(str(tmp_path / "a.srt"), "no subtitles found")
        assert "can't decode byte 0xff" in second.reason
        assert document.text == "--> The lamp."

    @pytest.mark.parametrize(
        ("result", "reason"),
        [
            (lambda: {}["lamp"], "KeyError: 'lamp'"),
            (lambda: None, "TypeError: 'NoneType' object is not iterable"),
            (lambda: [b"x"], "TypeError: a piece of text is bytes, not str"),
            (lambda: Content("", b"x"), "TypeError: the text is bytes, not str"),
        ],
    )
    def test_a_bug_in_it_is_named_and_the_rest_is_read(self, tmp_path, result, reason):
        @reader(".srt")
        def read_badly(data):
            return result()

        (tmp_path / "a.srt").write_bytes(b"x")
        (tmp_path / "b.txt").write_text("Text.")
        problem, document = read(tmp_path)
        name = read_badly.__qualname__
        assert problem == Problem(str(tmp_path / "a.srt"), f"its reader, {name}, failed: {reason}")
        assert document.text == "Text."

    def test_characters_and_metadata_that_cannot_be_stored(self, tmp_path):
        pages = ("One.\r\n\0", "Two.\ud83d")
        metadata = {"day": date(2024, 3, 31), "by": "Ada\0"}
        reader(".srt")(lambda data: Content("", "".join(pages), metadata, (0, len(pages[0]))))
        (tmp_path / "a.srt").write_bytes(b"x")
        (document,) = read(tmp_path)
        assert document.text == "One.\nTwo.\ufffd"
        assert document.page_starts == (0, 5)
        assert document.metadata == {"day": "2024-03-31", "by": "Ada"}

    def test_its_bytes_are_not_characters(self, tmp_path):
        reader(".srt")(lambda data: "Short.")
        (tmp_path / "a.srt").write_bytes(bytes(9_000))
        (document,) = read(tmp_path, limits=Limits(max_characters=1_000))
        assert document.text == "Short."

    def test_the_limit_of_characters(self, tmp_path):
        @reader(".many")
        def read_many(data):
            return "x" * 2_000

        (tmp_path / "a.many").write_bytes(b"1")
        (problem,) = read(tmp_path, limits=Limits(max_characters=1_000))
        assert problem.reason.startswith("more than 1,000 characters of text; raise the limit with --max-characters")

    def test_endings_without_a_dot(self):
        with pytest.raises(InputError, match="'srt' is not an ending"):
            reader("srt")


@pytest.mark.usefixtures("registered")
class TestPackages:
    CODE = "def read(data):\n    return 'From a package: ' + data.decode()\nvalue = 7\n"

    def test_a_package_offers_a_reader(self, tmp_path, offer):
        offer("subtitles", self.CODE, srt="read")
        (tmp_path / "in").mkdir()
        (tmp_path / "in/a.srt").write_text("The lamp.")
        assert [document.text for document in read(tmp_path / "in")] == ["From a package: The lamp."]
        with pytest.raises(InputError, match=r"valid endings are .* \.srt, and those of programs"):
            read(tmp_path / "none.xyz" if (tmp_path / "none.xyz").write_text("x") else "")

    @pytest.mark.parametrize(
        ("code", "function", "reason"),
        [
            ("import no_such_module", "read", "ModuleNotFoundError: No module named 'no_such_module'"),
            ("1/0", "read", "ZeroDivisionError: division by zero"),
            (CODE, "missing", "AttributeError: "),
        ],
    )
    def test_a_broken_one_is_named_and_the_rest_is_read(self, tmp_path, offer, code, function, reason):
        offer("broken_package", code, srt=function)
        (tmp_path / "in").mkdir()
        (tmp_path / "in/a.srt").write_text("x")
        (tmp_path / "in/b.txt").write_text("Text.")
        summary = run_ingest([tmp_path / "in"], tmp_path / "index", embedder=HashEmbeddings())
        (problem,) = summary.problems
        assert problem.source == str(tmp_path / "in/a.srt")
        assert problem.reason.startswith(
            f"the reader for .srt of the package broken_package cannot be loaded: {reason}"
        )
        assert summary.read == 1

    def test_one_that_is_not_a_function(self, tmp_path, offer):
        offer("odd_package", self.CODE, srt="value")
        (tmp_path / "a.srt").write_text("x")
        (problem,) = read(tmp_path / "a.srt")
        assert problem.reason == "the reader for .srt of the package odd_package is not a function"

    def test_two_of_them(self, tmp_path, offer):
        offer("one", self.CODE, srt="read")
        offer("two", self.CODE, srt="read")
        (tmp_path / "a.srt").write_text("x")
        (problem,) = read(tmp_path / "a.srt")
        assert problem.reason == "there are several readers for .srt, of one and two: uninstall all but one"
        (document,) = read(tmp_path / "a.srt", {".srt": "text"})
        assert document.text == "x"

    def test_packages_are_not_looked_at_for_known_endings(self, tmp_path, monkeypatch):
        monkeypatch.setattr(registry, "_offered", lambda: pytest.fail("looked up"))
        for name in ("a.txt", "b.py", "c"):
            (tmp_path / name).write_text("Text.")
        assert len(read(tmp_path)) == 3
