"""What an ingestion shows while it runs."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from arag import run_ingest, terminal
from arag.cli.ingest import showing_progress
from arag.ingest import progress, reading, writer
from arag.ingest.preview import preview
from arag.ingest.progress import Meter, Progress
from arag.ingest.workload import Workload
from arag.models import onnx
from arag.models.embedders import Embedder
from fakes import HashEmbeddings

FIGURES = {"phase": "embedding", "done": 340, "total": 1_000, "documents": 1_204, "sentences": 9_412}
FIGURES |= {"per_second": 451.3, "seconds_left": 80.2, "seconds": 21.0}


def records(number, text="The mill {0} stands. It turns {0} times."):
    return [{"id": f"r{n}", "text": text.format(n), "note": "x" * 50} for n in range(number)]


class FakeClock:
    """A clock that a test sets."""

    seconds = 0.0

    def monotonic(self):
        return self.seconds


class TimedEmbeddings(HashEmbeddings):
    """Embeddings of which each takes a second, by a clock of its own."""

    seconds = 0.0

    def embed_documents(self, texts):
        TimedEmbeddings.seconds += len(texts)
        return super().embed_documents(texts)


@pytest.fixture
def timed(monkeypatch):
    """Return an embedder; only embedding takes time."""
    monkeypatch.setattr(TimedEmbeddings, "seconds", 0.0)
    clock = SimpleNamespace(monotonic=lambda: TimedEmbeddings.seconds)
    for module in (progress, reading, writer):
        monkeypatch.setattr(module, "time", clock)
    return lambda batch: Embedder("hash", TimedEmbeddings, batch=batch)


@pytest.fixture
def folder(tmp_path):
    """Files of several formats, and some that cannot be read or are not read."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("The mill stands. It turns.")
    (folder / "d.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records(30)) + "\n{broken\n")
    (folder / "chunks.json").write_text(json.dumps(["0:The first chunk.", "1:The second chunk."]))
    (folder / "g.txt").write_bytes(b"\xff\xfe\xfa")
    size = sum(file.stat().st_size for file in folder.iterdir())
    (folder / "k.png").write_bytes(b"x" * 10_000)
    return folder, size


def follow(paths, index, **options):
    """Ingest, check that all figures only grow, and return the summary and what was shown."""
    shown = []
    options.setdefault("embedder", HashEmbeddings())
    summary = run_ingest(paths, index, progress=shown.append, **options)
    for one, two in pairwise(shown):
        assert one.done <= two.done
        assert one.documents <= two.documents
        assert one.sentences <= two.sentences
        assert one.seconds <= two.seconds
    assert len({now.total for now in shown if now.phase != "listing"}) == 1
    assert (shown[0].phase, shown[0].done) == ("listing", 0)
    assert (shown[-1].phase, shown[-1].share) == ("done", 1)
    return summary, shown


def test_the_total_is_of_what_is_read_and_is_reached(folder, tmp_path):
    folder, size = folder
    index = tmp_path / "index"
    summary, shown = follow([folder, folder / "a.txt"], index)
    assert len(summary.problems) == 2
    assert shown[-1].total == size
    assert (shown[-1].documents, shown[-1].sentences) == (summary.read, summary.embedded)
    order = [one.phase for one, two in pairwise([*shown, None]) if two is None or one.phase != two.phase]
    assert order == [
        "listing",
        "reading",
        "loading",
        "reading",
        "sampling",
        "reading",
        "embedding",
        "publishing",
        "done",
    ]
    # All is unchanged: nothing is loaded or embedded.
    again, shown = follow([folder], index)
    assert again.written == 0
    assert {now.phase for now in shown} == {"listing", "reading", "publishing", "done"}
    assert any("4 of 4 files, 32 documents, nothing new" in str(now) for now in shown)
    assert (shown[-1].documents, shown[-1].sentences) == (summary.read, 0)


def test_a_file_of_many_records_moves_on_record_by_record(tmp_path, timed):
    file = tmp_path / "records.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records(200)))
    _, shown = follow(file, tmp_path / "index", embedder=timed(40))
    assert len({round(now.share, 1) for now in shown}) >= 9
    embedding = [now for now in shown if now.phase == "embedding" and now.sentences]
    assert all(now.per_second > 0 for now in embedding)
    assert [now.seconds_left is None for now in embedding] == [now.share < 0.05 for now in embedding]


@pytest.mark.parametrize("name", ["a.pdf", "z.pdf"])
def test_pictures_in_a_file_are_not_taken_for_text(tmp_path, timed, name):
    docs = tmp_path / "docs"
    docs.mkdir()
    noise = np.random.default_rng(1).integers(0, 256, (700, 700, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    canvas = Canvas(str(docs / name))
    canvas.drawImage(tmp_path / "noise.png", 72, 72)
    canvas.drawString(72, 800, "The plan of the mill.")
    canvas.save()
    for number in range(40):
        text = " ".join(f"The mill {number} turned {turns} times." for turns in range(100))
        (docs / f"log{number}.txt").write_text(text)
    _, shown = follow(docs, tmp_path / "index", embedder=timed(100))
    assert all(now.seconds_left is None for now in shown if not now.sentences)
    end = shown[-1]
    estimated = [now for now in shown if now.sentences and now.phase == "embedding"]
    assert len(estimated) > 30
    halfway = min(estimated, key=lambda now: abs(now.sentences - end.sentences / 2))
    assert 0.25 < halfway.share < 0.75


def test_folders_of_other_pages_to_come_are_foreseen(tmp_path, timed):
    docs = tmp_path / "docs"
    for folder, sentences, markup in (("a", 20, 10), ("b", 2, 1_300)):
        (docs / folder).mkdir(parents=True)
        for number in range(120):
            text = " ".join(f"The mill {number} turned {turns} times." for turns in range(sentences))
            (docs / folder / f"{number}.html").write_text(f"<p>{text}</p><!--{'x' * markup}-->")
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    summary, shown = follow(docs, tmp_path / "index", embedder=timed(100))
    assert (summary.read, len(summary.problems)) == (240, 1)
    end = shown[-1].seconds
    estimated = [now for now in shown if now.seconds_left is not None and now.share > 0.2 and now.phase == "embedding"]
    assert len(estimated) > 10
    for now in estimated:
        assert now.seconds_left == pytest.approx(end - now.seconds, rel=0.5, abs=400)  # of 2,640 s: batches may wait


def test_shorter_sentences_to_come_are_foreseen(tmp_path, timed):
    docs = tmp_path / "docs"
    docs.mkdir()
    long = "The mill of the northern village turned with the wind of the sea, and ground the rye of farm number {0}."
    for number in range(60):
        sentence = "It turned {0} times." if number else long
        text = " ".join(sentence.format(turn) for turn in range(100 if number else 300))
        (docs / f"{number:02}.txt").write_text(text)
    summary, shown = follow(docs, tmp_path / "index", embedder=timed(100))
    expected = [now.expected_sentences for now in shown if now.expected_sentences]
    assert len(expected) > 30
    assert expected == pytest.approx([summary.embedded] * len(expected), rel=0.3)


def test_the_time_that_is_left_follows_a_machine_that_slows_down():
    size = 2_000_000
    workload = Workload({"log.txt": size})
    workload.begin_reading(0.0)
    workload.read("log.txt", size, size, 0.0)
    workload.begin_writing(0.0)
    seconds = 0.0
    for written in range(0, size, 1_000):
        is_slow = written >= size / 2
        each = 4 if is_slow else 1
        if size / 4 < written < size / 2 or written > 0.75 * size:  # a while after it has slowed down
            left = each * (size - written) / 1_000
            assert workload.estimate_seconds_left(seconds) == pytest.approx(left, rel=0.35)
        seconds += each
        workload.write(1_000, seconds)


def test_a_preview_moves_on_as_it_reads(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(8):
        (docs / f"mill{number}.txt").write_text(f"The mill {number} stands.")
    shown = []
    preview([str(docs)], progress=shown.append)
    assert sorted({now.share for now in shown if now.phase == "reading"}) == [number / 8 for number in range(9)]
    assert "Reading: 50%, 4 of 8 files" in map(str, shown)
    assert not [now for now in map(str, shown) if "files, " in now]  # as many documents as files


@pytest.mark.parametrize("is_preview", [False, True])
def test_what_is_left_out_is_not_counted_as_a_document(tmp_path, is_preview):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "mill.txt").write_text("The mill stands.")
    (docs / "empty.txt").write_text("")
    (docs / "bad.jsonl").write_text('x\n{"text": "The ship sails."}\n{"text": " "}\n')
    shown = []
    if is_preview:
        preview([str(docs)], progress=shown.append)
    else:
        run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings(), progress=shown.append)
    assert str(shown[-1]).startswith("Done: 100%, 2 documents")


def test_a_document_that_another_one_keeps_out_is_not_counted(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("mill", "ship"):
        (docs / f"{name}.txt").write_text(f"The {name} is old.")
    follow([{"id": "mill.txt", "text": "Given in Python."}], tmp_path / "index")
    summary, shown = follow([docs], tmp_path / "index")
    assert (summary.read, len(summary.problems), shown[-1].documents) == (1, 1, 1)


def test_one_long_file_moves_on_as_its_sentences_are_embedded(tmp_path, timed):
    (tmp_path / "book.txt").write_text(" ".join(f"The mill turned {n} times in the year {n}." for n in range(2_000)))
    _, shown = follow(tmp_path / "book.txt", tmp_path / "index", embedder=timed(100))
    assert [now.sentences for now in shown if now.phase == "embedding"][-1] == 2_000
    assert len({round(now.share, 1) for now in shown if not now.documents and now.seconds_left is not None}) >= 9


@pytest.mark.parametrize("is_preview", [False, True])
def test_a_large_file_is_named_while_it_is_read(tmp_path, is_preview):
    (tmp_path / "mill.txt").write_text("The mill stands.")
    (tmp_path / "The annual report [final] of the harbour company.txt").write_text("The lens is lit. " * 60_000)
    shown = []
    if is_preview:
        preview([str(tmp_path)], progress=shown.append)
    else:
        run_ingest(tmp_path, tmp_path / "index", embedder=HashEmbeddings(), progress=shown.append)
    (during,) = (now for now in shown if now.file)
    assert str(during).startswith("Reading The annual report [final] of the harbou…: ")
    assert str(shown[-1]).startswith("Done: 100%, 2 documents")


@pytest.mark.parametrize(
    "reports",
    [
        [(5, 1.0), (10_000, 19.0), (10_000, 21.0)],
        [(5, 1.0), (4_900, 100.0), (5_100, 101.0)],
    ],
)
def test_the_time_that_is_left_is_not_estimated_from_the_first_seconds_or_documents(monkeypatch, reports):
    clock = FakeClock()
    monkeypatch.setattr(progress, "time", clock)
    shown = []
    meter = Meter(shown.append, total=100_000)
    for done, clock.seconds in reports:
        meter.report(done=done)
    assert [now.seconds_left is None for now in shown] == [True, True, True, False]


def test_the_time_that_is_left_does_not_count_the_start_of_libraries_again(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: seconds)
    monkeypatch.setattr(progress, "time", clock)
    shown = []
    seconds = 0.0
    meter = Meter(shown.append, total=100)
    seconds = 20.0
    meter.report(done=10, documents=1)
    seconds = 22.0
    meter.report(done=20, documents=1)
    assert [now.seconds_left for now in shown] == [None, None, 16.0]


def test_an_interrupted_run_says_what_is_kept_and_is_finished_by_the_next(tmp_path):
    def stop(now):
        if now.sentences > 200:
            raise KeyboardInterrupt

    kept = r"^.*index keeps [1-9]\d+ new or changed documents: run the same ingestion again to finish it$"
    with pytest.warns(UserWarning, match=kept), pytest.raises(KeyboardInterrupt):
        run_ingest(records(200), tmp_path / "index", embedder=Embedder("h", HashEmbeddings, batch=10), progress=stop)
    summary, shown = follow(records(200), tmp_path / "index", embedder=Embedder("h", HashEmbeddings, batch=10))
    assert 0 < shown[-1].sentences == summary.embedded < 280


def test_an_iterable_of_unknown_length_has_no_total(tmp_path):
    _, shown = follow(iter(records(200)), tmp_path / "index", embedder=Embedder("h", HashEmbeddings, batch=40))
    assert {(now.total, now.seconds_left) for now in shown if now.phase == "embedding"} == {(None, None)}
    assert (shown[-1].documents, shown[-1].total) == (200, None)


def test_lines(arag, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)  # a line for each report
    monkeypatch.setattr(onnx, "load_onnx", lambda *_: HashEmbeddings())
    assert (
        str(Progress(**FIGURES))
        == "Embedding: 34%, 1,204 documents, 9,412 sentences, 451 per second, about 1 minute left"
    )
    early = {**FIGURES, "phase": "reading", "documents": 0, "files": 9, "seconds_left": None}
    assert str(Progress(**early)).startswith("Reading: 0 of 9 files")
    nearly = {**FIGURES, "phase": "reading", "done": 997, "total": 1_000, "documents": 1, "files": 9, "files_read": 1}
    assert str(Progress(**nearly)).startswith("Reading: 99%, 1 of 9 files")
    sample = {**early, "phase": "sampling", "files_read": 7, "done": 1}
    assert str(Progress(**sample)).startswith("Reading a sample: 7 of 9 files")
    copying = {**FIGURES, "phase": "copying", "seconds_left": None}
    assert str(Progress(**copying | {"done": 1, "total": 1})) == "Copying: 1 of 1 chunk"
    assert str(Progress(**FIGURES | {"phase": "publishing"})) == "Publishing"
    (tmp_path / "mill.txt").write_text("The mill stands.")
    code, _, err = arag("ingest", tmp_path / "mill.txt", "--index", tmp_path / "index")
    assert (code, "Loading the embedder" in err.splitlines()) == (0, True)
    assert err.splitlines()[-1].startswith("Done: 100%, 1 document, 1 sentence, ")
    assert arag("ingest", tmp_path / "mill.txt", "--index", tmp_path / "index", "--json")[2] == ""
    copied = arag("copy", tmp_path / "index", tmp_path / "copy")[2]
    assert copied.splitlines()[-1] == "Done: 100%, 1 document"
    assert arag("verify", "--index", tmp_path / "copy")[2].splitlines()[-1].startswith("Checking: 100%")
    assert arag("verify", "--index", tmp_path / "copy", "--json")[2] == ""
    (keywords,) = (tmp_path / "copy").glob("keywords-*")
    keywords.unlink()
    lines = arag("verify", "--repair", "--index", tmp_path / "copy")[2].splitlines()
    assert [line.partition(":")[0] for line in lines if ": 100%" in line] == ["Checking", "Repairing", "Checking"]


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        (59.4, "less than a minute"),
        (80.2, "about 1 minute"),
        (401.0, "about 7 minutes"),
        (3_569.0, "about 59 minutes"),
        (3_599.0, "about 1 hour"),
        (4_725.0, "about 1 hour 20 minutes"),
        (7_320.0, "about 2 hours"),
    ],
)
def test_the_time_that_is_left_is_an_estimate_in_words(seconds, left):
    assert str(Progress(**{**FIGURES, "seconds_left": seconds})).endswith(f", {left} left")


def test_a_terminal_shows_the_estimate_beside_the_bar(monkeypatch, capsys):
    monkeypatch.setattr(terminal.err, "_force_terminal", True)
    monkeypatch.setattr(terminal.err, "_width", 80)
    monkeypatch.setattr(terminal.err, "is_interactive", True)
    monkeypatch.setenv("TERM", "xterm")
    with showing_progress(as_json=False) as show:
        show(Progress(**{**FIGURES, "seconds_left": None}))
    assert "left" not in capsys.readouterr().err
    with showing_progress(as_json=False) as show:
        show(Progress(**{**FIGURES, "seconds_left": 401.0}))
    err = capsys.readouterr().err
    assert "about 7 minutes" in err
    assert "9,412 sentences, 451 per second" in err


def test_a_bar_estimates_the_time_left_by_its_speed(monkeypatch, capsys):
    monkeypatch.setattr(terminal.err, "_force_terminal", True)
    monkeypatch.setattr(terminal.err, "is_interactive", True)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress() as bars:
        clock = FakeClock()
        bars.get_time = clock.monotonic
        task = bars.add_task("naive-rag", total=50)
        for clock.seconds in (10.0, 20.0, 30.0):
            bars.update(task, advance=1)
        bars.refresh()
    assert "about 8 minutes left" in " ".join(capsys.readouterr().err.split())
