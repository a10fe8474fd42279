"""Direct corpus interaction: the files that bash sees, the limits of its sandbox, and what the model is sent."""

import hashlib
import shutil
import subprocess

import pytest

from arag.errors import InputError
from arag.evaluation.datasets import Question
from arag.evaluation.method import Answer
from arag.evaluation.methods import all_methods, make_method
from arag.evaluation.records import make_record
from arag.evaluation.sandbox import Sandbox
from lab import ask, make_lab, script
from scripted import QUESTION, STORMS, call

ANSWER = "Boso the Elder. Teutberga was his daughter (teutberga.txt)."


def works(program):
    """Whether bubblewrap is installed, and the system allows it."""
    command = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    return shutil.which(program) is not None and subprocess.run(command, check=False).returncode == 0


needs_bwrap = pytest.mark.skipif(not works("bwrap"), reason="bubblewrap is not installed, or does not work here")
KINDS = [pytest.param("bwrap", marks=needs_bwrap), "none"]


def bash(command, call_id="1"):
    return call("bash", call_id, command=command)


@pytest.fixture
def run(tmp_path):
    """Lead the method through a script of commands on an index; return the session and what the model was sent."""

    def run(index, *commands, kind="none", **settings):
        replies = [bash(command, str(number)) for number, command in enumerate(commands)]
        folder = tmp_path / f"calls-{len(list(tmp_path.iterdir()))}"
        lab = make_lab(index, script(*replies, ANSWER), folder)
        answer, session = ask(make_method(all_methods()["dci"], {"sandbox": kind, **settings}), lab, QUESTION)
        assert answer.text == ANSWER
        return session, lab.model

    return run


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def sandbox(tmp_path, kind):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "light.txt").write_text("The light was lit in 1881.\n", encoding="utf-8")
    return Sandbox(folder, kind=kind, seconds=2, characters=1_000)


# --- the method ---


def test_the_model_searches_texts_as_files_and_its_calls_are_counted(run, small_index, kind):
    session, model = run(small_index, "ls", "grep -rl 'Boso' . | sort", "cat teutberga.txt", kind=kind)
    system, *_ = model.calls[0]
    assert system.text.startswith("Answer questions from a corpus of documents. You see it only through the tool bash")
    (tool,) = model.options[0]["tools"]
    assert tool["function"]["name"] == "bash"
    assert list(tool["function"]["parameters"]["properties"]) == ["command"]
    outputs = [messages[-1].text for messages in model.calls[1:]]
    assert outputs == [
        "annals.txt\nboso.txt\nlothair.txt\nteutberga.txt\n",
        "./boso.txt\n./teutberga.txt\n",
        "Teutberga was a daughter of Boso the Elder. She died in 875.",
    ]
    question = Question("q", QUESTION, "Boso the Elder", gold_documents=("boso",))
    record = make_record(question, session, Answer(ANSWER))
    assert (record["contain"], record["gold_seen"], record["gold_cited"]) == (True, None, None)
    assert [entry["tool"] for entry in session.trace] == ["bash"] * 3
    assert all(entry["retrieved_tokens"] for entry in session.trace)


def test_a_text_is_whole_and_begins_with_its_title(run, make_index):
    documents = [
        {"id": "annals", "title": "Annals", "text": STORMS},
        {"id": "a/light", "title": "The Light", "text": "# The Light\n\nIt was lit in 1881."},
    ]
    _, model = run(make_index(documents, chunk_tokens=200), "tail -n 1 annals.txt | md5sum; cat a/light.txt")
    shown = model.calls[1][-1].text
    assert hashlib.md5(STORMS.encode()).hexdigest() in shown
    assert shown.endswith("# The Light\n\nIt was lit in 1881.")


def test_ids_that_are_no_names_of_files_stay_in_the_folder(run, make_index):
    ids = ["../../up", "/etc/passwd", ".hidden", "Same", "same", "x" * 500, "灯塔" * 100, "dir/", "dir", "a//b"]
    documents = [{"id": name, "text": f"Document number {number}."} for number, name in enumerate(ids)]
    _, model = run(make_index(documents), "grep -rh . . | sort; find . -type f | wc -l")
    assert model.calls[1][-1].text.split("\n") == [f"Document number {number}." for number in range(10)] + ["10", ""]


def test_each_run_shows_the_same_so_that_paid_calls_are_found_again(run, small_index, kind):
    commands = ["pwd | wc -l; ls -l | cut -d' ' -f2-", "rg -n Boso || grep -rn Boso . | sort"]
    first, second = (run(small_index, *commands, kind=kind)[1] for _ in range(2))
    shown = [[message.text for message in model.calls[-1]] for model in (first, second)]
    assert shown[0] == shown[1]


def test_results_of_bash_say_what_is_missing(run, small_index):
    _, model = run(small_index, "true", "seq 9999", "sleep 5", "ls\0", "cat nothing", seconds=1)
    empty, cut, stopped, refused, failed = [messages[-1].text for messages in model.calls[1:]]
    assert empty == "(no output)"
    assert cut.startswith("1\n2\n")
    assert cut.endswith("\n(cut at 8,000 characters: let the command print less)")
    assert stopped == "(stopped: it took too long)"
    assert refused == "the command has a NUL character: write it without"
    assert "nothing" in failed


def test_the_texts_are_deleted_after_the_run(run, small_index, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(small_index, "ls")
    assert not list(tmp_path.glob("arag-dci-*"))


def test_without_bubblewrap_no_command_runs(small_index, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    lab = make_lab(small_index, script(), tmp_path / "calls")
    with pytest.raises(InputError, match=r"need a sandbox: install bubblewrap \(`apt install bubblewrap`\)"):
        ask(make_method(all_methods()["dci"], {}), lab, QUESTION)
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match=r"does not work here .*No permissions to create new namespace"):
        ask(make_method(all_methods()["dci"], {}), lab, QUESTION)


# --- the sandbox ---


def test_commands_pipe_and_substitute_and_read_no_input(sandbox):
    assert sandbox.run("cat; sort <(echo b) <(echo é) | tr 'b' 'a'; grep -c light *.txt").text == "a\né\n1\n"


def test_output_time_and_memory_have_limits(sandbox):
    endless = sandbox.run("yes")
    assert (len(endless.text), endless.is_cut) == (1_000, True)
    assert sandbox.run("printf 'é%.0s' $(seq 1000)").text == "é" * 1_000
    assert sandbox.run("sleep 60").has_timed_out
    assert "memory" in sandbox.run("python3 -c 'bytes(5_000_000_000)' 2>&1 | tr A-Z a-z").text


@needs_bwrap
@pytest.mark.parametrize("kind", ["bwrap"], indirect=True)
@pytest.mark.parametrize(
    "command",
    [
        "echo x > light.txt",
        "echo x > /tmp/x",
        "echo x > /dev/x",
        "mkdir /x",
        "rm /usr/bin/env",
        "echo 60 > /proc/sys/vm/swappiness",
        "cat /etc/passwd",
        "ls /home /root /var",
        "mount -t tmpfs none /corpus",
        "exec 3<>/dev/tcp/127.0.0.1/80",
    ],
)
def test_a_command_in_bubblewrap_writes_nothing_and_sees_nothing_else(sandbox, command):
    result = sandbox.run(f"{command} && echo DONE")
    assert result.text
    assert "DONE" not in result.text


@needs_bwrap
@pytest.mark.parametrize("kind", ["bwrap"], indirect=True)
def test_a_command_in_bubblewrap_sees_no_variables_and_processes(sandbox, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    assert int(sandbox.run("ls /proc | grep -c '^[0-9]'").text) < 10
    assert sandbox.run("cat /proc/*/environ | tr '\\0' '\\n' | grep -c secret-key").text == "0\n"
