"""Recorded replies are played again without the model, and whatever else it is shown is an error that says what."""

import json
import lzma
import os
import signal

import pytest

from arag.evaluation import load_records, run_experiment
from arag.evaluation.recordings import Recorder, read_recording
from arag.ingest.pipeline import run_ingest
from eval_runs import reply_in_role
from openai_server import chat, serve
from scripted import DOCUMENTS

pytestmark = pytest.mark.usefixtures("quick_embedder")

HEAD = b'{"format": "arag recording", "version": 1}\n'
METHODS = ["direct", "naive-rag", "graphrag", "arag", "arag-shell"]
QUESTIONS = [
    {"id": f"q{number}", "question": f"Question {number}: who was the father of Teutberga?", "answer": "Boso the Elder"}
    for number in range(2)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_ingest(DOCUMENTS, tmp_path / "index")
    (tmp_path / "q.json").write_text(json.dumps(QUESTIONS))
    return tmp_path


def run_of(*more, methods=METHODS):
    command = ["eval", "run", "--questions", "q.json", "--index", "index"]
    for method in methods:
        command += ["--method", method]
    return [*command, *more]


@pytest.fixture
def recorded(arag, folder):
    """A folder with a recording of two questions, `calls.xz`."""
    with serve(lambda _, request: reply_in_role(request)) as server:
        model = f"openai:gpt-5-mini@{server.url}"
        code, out, err = arag(*run_of("--model", model, "--record", "calls.xz", "--out", "first"))
    assert code == 0, (out, err)
    (folder / "index.methods/calls.sqlite3").unlink()  # the replies of the work before the first question
    return folder


def replay(arag, *more, **options):
    return arag(*run_of("--model", "replay:calls.xz", *more, **options))


def test_all_methods_are_replayed_without_the_model(arag, recorded):
    code, out, _ = replay(arag, "--out", "again")
    assert (code, out.count("2 of 2 answered")) == (0, len(METHODS))
    first, again = load_records("first"), load_records("again")
    for method in METHODS:
        for question, record in again[method].items():
            before = first[method][question]
            for name in ("prediction", "steps", "read_chunks", "retrieved_tokens", "right"):
                assert record[name] == before[name], (method, name)
            assert record["usage"]["model_calls"] == before["usage"]["model_calls"]
            assert {call["model"] for call in record["model_calls"]} == {"gpt-5-mini"}
            # The tokens of all that was shown, tools included, are counted here and not by the server.
            assert record["usage"]["input_tokens"] != before["usage"]["input_tokens"] > 0


@pytest.mark.parametrize(("prompt", "method"), [("_TOOLS", "arag"), ("_SHELL", "arag-shell")])
def test_a_changed_prompt_is_an_error_that_names_the_question(prompt, method, arag, recorded, monkeypatch):
    monkeypatch.setattr(f"arag.graph.prompts.{prompt}", "Answer well. {answer}")
    code, _, err = replay(arag, "--out", "changed", methods=[method])
    assert code == 1
    assert "Failed: q0" in err
    assert "for 'Question 0: who was the father of Teutberga?', the system prompt (message 1) differs: recorded" in err
    assert "Answer well." in err


def test_a_changed_result_of_a_tool_is_named_with_both_texts(arag, recorded):
    changed = [{**each, "text": each["text"].replace("count of Arles", "duke of Arles")} for each in DOCUMENTS]
    run_ingest(changed, recorded / "index")
    code, _, err = replay(arag, "--out", "changed", methods=["arag"])
    assert code == 1
    assert "the result of a tool (message 4) differs: recorded '" in err
    assert "count of Arles" in err
    assert "duke of Arles" in err


def test_a_changed_description_of_a_tool_is_named(arag, recorded, monkeypatch):
    from arag.retrieval.tools.compact import KeywordSearch

    monkeypatch.setitem(KeywordSearch.model_fields, "description", KeywordSearch.model_fields["description"])
    monkeypatch.setattr(KeywordSearch.model_fields["description"], "default", "Another description.")
    KeywordSearch.model_rebuild(force=True)
    try:
        code, _, err = replay(arag, "--out", "changed", methods=["arag"])
    finally:
        monkeypatch.undo()
        KeywordSearch.model_rebuild(force=True)
    assert code == 1
    assert "the description of the tools differs" in err


def test_a_question_that_was_not_recorded_is_named(arag, recorded):
    rows = [{**row, "question": row["question"].replace("father", "mother")} for row in QUESTIONS]
    (recorded / "q.json").write_text(json.dumps(rows))
    code, _, err = replay(arag, "--out", "other", methods=["arag"])
    assert code == 1
    assert "calls.xz has no reply: 'Question 0: who was the mother of Teutberga?' was not recorded" in err


def test_recordings_grow_by_methods_and_do_not_depend_on_the_order(arag, recorded):
    whole = lzma.decompress((recorded / "calls.xz").read_bytes())
    with serve(lambda _, request: reply_in_role(request)) as server:
        model = f"openai:gpt-5-mini@{server.url}"
        for number, method in enumerate(reversed(METHODS)):
            options = ["--model", model, "--record", "parts.xz", "--out", f"part{number}"]
            assert arag(*run_of(*options, methods=[method]))[0] == 0
    parts = lzma.decompress((recorded / "parts.xz").read_bytes())

    def without_seconds(text):
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            line.get("reply", {}).get("metadata", {}).pop("seconds", None)
        return lines

    assert without_seconds(parts) == without_seconds(whole)
    shown = [json.dumps(line["part"]) for line in without_seconds(whole) if "part" in line]
    assert len(shown) == len(set(shown))


def test_an_empty_reply_is_replayed_if_the_model_gave_no_other(arag, folder):
    with serve(lambda _, request: chat("Boso" if "Question 1" in request["messages"][-1]["content"] else "")) as server:
        model = f"openai:gpt-5-mini@{server.url}"
        arag(*run_of("--model", model, "--record", "calls.xz", "--out", "first", methods=["direct"]))
    replay(arag, "--out", "again", methods=["direct"])
    again = {question: record["prediction"] for question, record in load_records("again")["direct"].items()}
    assert again == {"q0": "", "q1": "Boso"}


def test_a_killed_process_loses_no_recorded_call(folder):
    with serve(lambda _, request: reply_in_role(request)) as server:
        child = os.fork()
        if child == 0:
            for _ in run_experiment(
                "q.json", "index", "arag", model=f"openai:gpt-5-mini@{server.url}", out="killed", record="calls.xz"
            ):
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        os.waitpid(child, 0)
    assert not (folder / "calls.xz").exists()
    with Recorder(folder / "calls.xz"):
        pass
    assert len(read_recording(folder / "calls.xz").calls) >= 2
    assert [file.name for file in folder.glob("calls.xz*")] == ["calls.xz"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("missing.xz", None, "the recording missing.xz cannot be read"),
        ("text.xz", b"hello", "text.xz is not a recording"),
        ("other.xz", lzma.compress(b'{"format": "other"}\n'), "other.xz is not a recording of this version"),
        (
            "half.xz",
            lzma.compress(b'{"format": "arag recording", "version": 1}\n{"shown": [1'),
            "half.xz is not a recording",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_refused(name, data, reason, arag, folder):
    if data is not None:
        (folder / name).write_bytes(data)
    code, _, err = arag(*run_of("--model", f"replay:{name}", methods=["direct"]))
    assert (code != 0, reason in err) == (True, True), err


def test_a_replay_takes_no_options(arag, recorded):
    code, _, err = replay(arag, "--model-option", "temperature=0")
    assert code != 0
    assert "replay:calls.xz takes no options" in err


def test_a_replayed_run_says_so_in_its_report(arag, recorded):
    assert replay(arag, "--out", "again", methods=["arag"])[0] == 0
    page = (recorded / "again" / "report.html").read_text("utf-8")
    assert "Replies were replayed from calls.xz, given by gpt-5-mini." in page
