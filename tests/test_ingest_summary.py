"""What an ingestion says that it did, and what it left out, passed over or counted otherwise."""

from __future__ import annotations

import json
import warnings

import pytest

from arag import ingest, run_ingest
from arag.errors import InputError
from arag.ingest import pipeline
from arag.ingest.documents import Limits, Problem
from arag.models import huggingface
from arag.retrieval.index import open_index
from arag.retrieval.tokens import TokenCounter
from fakes import HashEmbeddings


@pytest.fixture(autouse=True)
def quick_embedder(monkeypatch):
    """Let the command line embed at once."""
    monkeypatch.setattr(huggingface, "load_huggingface", lambda model, *, named: HashEmbeddings())


@pytest.fixture
def run(tmp_path):
    """A function that ingests paths into one index."""

    def run(*paths, **options):
        return run_ingest(paths, tmp_path / "index", embedder=HashEmbeddings(), **options)

    return run


def write(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


class TestSkipped:
    def test_each_is_named_with_its_reason(self, run, tmp_path):
        folder = write(tmp_path / "docs", a="The mill stands.")
        (folder / "b.doc").write_bytes(b"x")
        (folder / "more").symlink_to(tmp_path, target_is_directory=True)
        assert run(folder, folder / "a.txt").skipped == (
            Problem(str(folder / "b.doc"), "no reader for .doc"),
            Problem(str(folder / "more"), "a link to a folder"),
        )

    def test_python_warns_once(self, tmp_path):
        folder = write(tmp_path / "docs", a="The mill stands.")
        for number in range(12):
            (folder / f"{number}.png").write_bytes(b"x")
            (folder / f"z.end{number}").write_bytes(b"x")
        (folder / "b.txt").write_bytes(b" ")
        with pytest.warns(UserWarning, match=r"^left out 25 items: .*b\.txt: empty document; .*0\.png: no") as caught:
            ingest(folder, tmp_path / "index", embedder=HashEmbeddings()).close()
        assert len(caught) == 1
        assert str(caught[0].message).endswith("; and 20 more: run_ingest returns all")
        assert caught[0].filename == __file__

    def test_the_command_line_counts_and_lists_them(self, arag, tmp_path):
        folder = write(tmp_path / "docs", a="The mill stands.")
        for name in ("b.png", "c.PNG", "d.doc"):
            (folder / name).write_bytes(b"x")
        code, _, err = arag("ingest", folder, "--index", tmp_path / "index")
        named = ["no reader for .png (2): {0}/b.png, {0}/c.PNG", "no reader for .doc (1): {0}/d.doc"]
        assert (code, err.splitlines()) == (0, [f"Skipped: {line.format(folder)}" for line in named])
        _, out, _ = arag("ingest", folder, "--index", tmp_path / "index", "--json")
        assert json.loads(out)["skipped"][2] == {"source": str(folder / "d.doc"), "reason": "no reader for .doc"}


class TestAbsent:
    def test_what_was_not_read_now(self, run, tmp_path):
        folder = write(tmp_path / "docs", a="The mill stands.", b="It turns.")
        assert run(folder).absent == 0
        (folder / "b.txt").unlink()
        summary = run(folder)
        assert (summary.read, summary.absent, summary.documents) == (1, 1, 2)

    def test_the_former_version_of_a_refused_document_is_not_absent(self, run, tmp_path):
        chunks = tmp_path / "chunks.json"
        chunks.write_text(json.dumps(["0:The mill stands."]))
        a = write(tmp_path / "docs", a="It turns.") / "a.txt"
        run(chunks, a)
        chunks.write_text(json.dumps([{"id": "a.txt:0", "text": "The mill fell."}]))
        summary = run(chunks, a)
        assert len(summary.problems) == 1
        assert (summary.read, summary.absent, summary.documents) == (1, 0, 2)
        assert run(a).absent == 1

    def test_a_new_document_that_was_refused(self, run, tmp_path):
        a = write(tmp_path / "docs", a="It turns.") / "a.txt"
        chunks = tmp_path / "chunks.json"
        chunks.write_text(json.dumps([{"id": "a.txt:0", "text": "The mill fell."}]))
        summary = run(a, chunks)
        assert len(summary.problems) == 1
        assert (summary.read, summary.absent, summary.documents) == (1, 0, 1)


class TestCounters:
    @pytest.fixture
    def count_by(self, monkeypatch):
        def count_by(name, tokens):
            counter = TokenCounter(name, lambda texts: [tokens * len(text.split()) for text in texts])
            monkeypatch.setattr(pipeline, "load_token_counter", lambda: counter)

        return count_by

    def tokenizer(self, tmp_path):
        with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
            return index.info().tokenizer

    def test_another_counter_leaves_documents_as_they_are(self, run, tmp_path, count_by):
        folder = write(tmp_path / "docs", a="The mill stands. " * 40, b="It turns. " * 40)
        count_by("first", 1)
        chunks = run(folder, chunk_tokens=100).chunks
        count_by("second", 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            summary = run(folder)
        assert (summary.written, summary.chunks) == (0, chunks)
        write(folder, c="It fell.")
        with pytest.warns(UserWarning, match=r"by first, now by second: .* changed \(1\) is cut by the new") as caught:
            assert run(folder).written == 1
        assert (len(caught), self.tokenizer(tmp_path)) == (1, "first")
        count_by("first", 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write(folder, c="It stood.")
            assert run(folder).written == 1


def test_limits_of_the_command_line(arag, tmp_path):
    folder = write(tmp_path / "docs", a="The mill stands.", b="It turns.")
    code, _, err = arag("ingest", folder, "--index", tmp_path / "index", "--max-characters", 10)
    assert code == 3
    assert "a.txt: more than 10 characters of text; raise the limit with --max-characters" in err
    assert arag("ingest", folder, "--index", tmp_path / "index", "--max-characters", 16)[0] == 0
    code, _, err = arag("ingest", folder, "--index", tmp_path / "index", "--max-pages", 0)
    assert (code, err.strip()[:18]) == (1, "Error: max_pages i")


def test_limits_of_ingest(tmp_path):
    folder = write(tmp_path / "docs", a="The mill stands.", b="It turns.")
    with pytest.warns(UserWarning, match=r"a\.txt: more than 10 characters"):
        index = ingest(folder, tmp_path / "index", embedder=HashEmbeddings(), limits=Limits(max_characters=10))
    assert index.info().documents == 1
    index.close()


@pytest.mark.parametrize("path", ["a\0b", "a\ud800.txt", "caf\udce9.txt"])
def test_a_path_that_is_no_path(run, tmp_path, path):
    with pytest.raises(InputError):
        run(path)
    assert not (tmp_path / "index").exists()


def test_names_that_are_no_text(run, arag, tmp_path):
    folder = write(tmp_path / "docs", **dict.fromkeys(["caf\udce8", "caf\udce9"], "The mill stands."))
    (folder / "caf\udce9.d\udce9c").write_bytes(b"x")
    summary = run(folder)
    assert (summary.read, len(summary.problems), len(summary.skipped)) == (2, 0, 1)
    assert run(folder).written == 0
    json.dumps([str(problem) for problem in (*summary.problems, *summary.skipped)], ensure_ascii=False).encode()
    for options in ([], ["--json"]):
        assert arag("ingest", folder, "--index", tmp_path / "index2", *options)[0] == 0
        assert arag("ingest", folder / "caf\udce9.txt", "--index", tmp_path / "index3", *options)[0] == 0
