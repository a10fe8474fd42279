"""What an ingestion says that it did, and what it left out, or passed over."""

from __future__ import annotations

import json

import pytest

from arag import ingest, run_ingest
from arag.ingest.documents import Problem
from arag.models import huggingface
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
        (folder / "b.xyz").write_bytes(b"x")
        (folder / "more").symlink_to(tmp_path, target_is_directory=True)
        assert run(folder, folder / "a.txt").skipped == (
            Problem(str(folder / "b.xyz"), "no reader for .xyz"),
            Problem(str(folder / "more"), "a link, which is not followed"),
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
        for name in ("b.png", "c.PNG", "d.xyz"):
            (folder / name).write_bytes(b"x")
        code, _, err = arag("ingest", folder, "--index", tmp_path / "index")
        named = ["no reader for .png (2): {0}/b.png, {0}/c.PNG", "no reader for .xyz (1): {0}/d.xyz"]
        assert (code, err.splitlines()) == (0, [f"Skipped: {line.format(folder)}" for line in named])
        _, out, _ = arag("ingest", folder, "--index", tmp_path / "index", "--json")
        assert json.loads(out)["skipped"][2] == {"source": str(folder / "d.xyz"), "reason": "no reader for .xyz"}


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
