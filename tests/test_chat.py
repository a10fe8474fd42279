"""`arag chat`, with questions that come through a pipe."""

import io
import os
import signal
import subprocess
import sys
import threading

import pytest

from arag.terminal import FAILED
from fakes import hash_vector, write_corpus
from openai_server import Cut, Failure, chat, embeddings, serve

QUESTION = "Who was the shipwright of the packet schooner Grey Petrel?"

# What runs in the background is started to ignore Ctrl-C.
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from arag.cli import main
main()
"""


def test_ctrl_c_stops_a_tool_or_an_answer_and_the_conversation_goes_on(arag, tmp_path, monkeypatch):
    is_hanging = threading.Event()

    def respond(_, request):
        if "input" in request:
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            if "lighthouse" in texts:
                is_hanging.set()
                return Failure(hang=True)
            return embeddings([hash_vector(text).tolist() for text in texts])
        question = request["messages"][-1]["content"]
        if question == "Where is the lighthouse?":
            return chat("Let me look.", ("c1", "semantic_search", '{"query": "lighthouse"}'))
        if question == "Who built it?":
            return Cut(chat("The light on Skellavy was built by the Lampwrights"), 5, hang=True)
        return chat("It stands.")

    docs, index = write_corpus(tmp_path / "docs", {"a.md": "The mill stands."}), tmp_path / "index"
    with serve(respond) as server:
        monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
        arag("ingest", docs, "--index", index)
        command = [sys.executable, "-c", COMMAND, "chat", "--index", index, "--model", f"openai:m@{server.url}"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            process.stdin.write(b"Where is the lighthouse?\nWho built it?\nAnd the mill?\n")
            process.stdin.flush()
            assert is_hanging.wait(120)
            process.send_signal(signal.SIGINT)
            printed = b""
            while b"The light on" not in printed:  # as it is written: the rest never comes
                piece = os.read(process.stdout.fileno(), 4096)
                assert piece, printed
                printed += piece
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    places = [printed.index(text) for text in (b"Let me look.", b"Interrupted.", b"> Who built it?", b"The light on")]
    assert places == sorted(places)
    assert rest.index(b"Interrupted.") < rest.index(b"> And the mill?") < rest.index(b"It stands.")
    texts = [(message["role"], message["content"]) for message in server.requests[-1]["messages"][1:]]
    assert texts == [("user", text) for text in ("Where is the lighthouse?", "Who built it?", "And the mill?")]


@pytest.fixture
def piped(arag, monkeypatch):
    """A function that runs `arag chat` with lines from a pipe."""

    def run(lines, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        return arag("chat", *arguments)

    return run


def test_questions_come_through_a_pipe_and_each_has_its_own_budget(piped, example_index, monkeypatch):
    monkeypatch.setenv("ARAG_INDEX", str(example_index.path))
    questions = f"{QUESTION}\n \nWhere was Hesper Quillorne born?\nexit\nNot this\n"
    code, out, err = piped(questions, "--model", "extractive", "--max-steps", 2)
    assert (code, err, "Not this" in out) == (0, "", False)
    first, second = out.split("> Where was Hesper Quillorne born?\n")
    assert first.startswith(f"> {QUESTION}\n 1 semantic_search")
    for shown in (first, second):
        assert "Answer forced: max_steps." in shown
        assert "2 steps, 2 tool calls, " in shown


def test_a_question_that_fails_shows_in_the_exit_code_and_the_next_is_answered(piped, example_index):
    script = [Failure(401), chat("In 1783.")]
    with serve(script) as server:
        model = f"openai:m@{server.url}"
        code, out, err = piped("When?\nWhen was it?\n", "--index", example_index.path, "--model", model)
    assert (code, err.startswith(f"Error: the model {model} failed: "), err.count("\n")) == (FAILED, True, 1)
    assert "\nIn 1783.\n" in out
