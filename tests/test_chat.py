"""`arag chat`, in a terminal and in a pipe."""

import io
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from arag.terminal import FAILED
from fakes import hash_vector, write_corpus
from forked import ARAG
from openai_server import Cut, Failure, chat, embeddings, serve

pty = pytest.importorskip("pty", reason="needs a POSIX terminal")

QUESTION = "Who was the shipwright of the packet schooner Grey Petrel?"
STYLE = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")
KEYWORDS = ("c1", "keyword_search", '{"keywords": ["Skellavy"]}')


class Terminal:
    """A program in a terminal: what it has printed, and a keyboard."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.printed = ""
        self._seen = 0

    def type(self, keys):
        os.write(self.descriptor, keys.encode())

    def wait_for(self, text):
        """Wait until a text is printed after what was waited for before; return all up to there."""
        deadline = time.monotonic() + 120
        while (place := self.printed.find(text, self._seen)) < 0:
            assert time.monotonic() < deadline, self.printed
            if select.select([self.descriptor], [], [], 1)[0]:
                self._read()
        before, self._seen = self.printed[self._seen : place], place + len(text)
        return before

    def interrupt_until(self, text):
        """Press Ctrl-C until a text is printed: Python misses one between its prompt and its waiting for keys."""
        deadline = time.monotonic() + 120
        while self.printed.find(text, self._seen) < 0:
            assert time.monotonic() < deadline, self.printed
            self.type("\x03")
            while self.printed.find(text, self._seen) < 0 and select.select([self.descriptor], [], [], 5)[0]:
                self._read()
        self.wait_for(text)

    def read_to_the_end(self):
        while True:
            try:
                self._read()
            except OSError:  # the other side is closed
                return

    def _read(self):
        self.printed += STYLE.sub("", os.read(self.descriptor, 4096).decode(errors="replace").replace("\r\n", "\n"))


@contextmanager
def in_terminal(*arguments):
    """Run the command line in a terminal; its exit code must be 0."""
    process, descriptor = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-m", "arag", *map(str, arguments)])
    terminal = Terminal(descriptor)
    try:
        yield terminal
        terminal.read_to_the_end()
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(process, 0)
        os.close(descriptor)
    assert os.waitstatus_to_exitcode(status) == 0, terminal.printed


def test_ctrl_c_stops_an_answer_and_the_conversation_goes_on(example_index):
    script = [
        chat("Let me look.", KEYWORDS),
        Cut(chat("The light on Skellavy was built by the Lampwrights"), 5),
        chat(None, ("c2", *KEYWORDS[1:])),
        chat("In 1783 [places/skellavy.md:0]."),
    ]
    with (
        serve(script) as server,
        in_terminal(
            "chat", "--tools", "paper", "--index", example_index.path, "--model", f"openai:m@{server.url}"
        ) as terminal,
    ):
        terminal.wait_for("> ")
        terminal.type("When was it built?\n")
        steps = terminal.wait_for("The light on")  # as it is written: the rest never comes
        assert steps.index("Let me look.") < steps.index(' 1 keyword_search keywords=["Skellavy"]')
        terminal.type("\x03")
        assert "Interrupted." in terminal.wait_for("\n> ")
        terminal.type("not this")
        terminal.wait_for("not this")
        terminal.interrupt_until("\n> ")  # at the prompt, it drops the line
        terminal.type("\x1b[A\n")  # the arrow brings back the question
        terminal.wait_for("When was it built?")
        shown = terminal.wait_for("2 steps, 1 tool call, ")
        assert shown.count("In 1783 [places/skellavy.md:0].") == 1
        assert "Sources\n  places/skellavy.md:0  Skellavy\n" in shown
        terminal.wait_for("\n> ")
        terminal.type("\x04")
    texts = [(message["role"], message["content"]) for message in server.requests[-1]["messages"][1:]]
    assert [role for role, _ in texts] == ["user", "assistant", "tool"]  # the question that was stopped is gone


# Ctrl-C reaches another thread than the main one, as the system may choose.
OTHER_THREAD = """
import signal, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
"""


@pytest.mark.heavy
def test_a_hanging_tool_holds_up_neither_the_next_question_nor_the_end(arag, tmp_path, monkeypatch):
    is_hanging = threading.Event()

    def respond(_, request):
        if "input" in request:
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            if "lighthouse" in texts:
                is_hanging.set()
                return Failure(hang=True)
            return embeddings([hash_vector(text).tolist() for text in texts])
        asked = request["messages"][-1]
        if asked["role"] == "user" and "lighthouse" in asked["content"]:
            return chat(None, ("c1", "semantic_search", '{"query": "lighthouse"}'))
        return chat("It stands.")

    docs, index = write_corpus(tmp_path / "docs", {"a.md": "The mill stands."}), tmp_path / "index"
    with serve(respond) as server:
        monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
        arag("ingest", docs, "--index", index)
        command = [
            sys.executable,
            "-c",
            OTHER_THREAD + ARAG,
            "chat",
            "--tools",
            "paper",
            "--index",
            index,
            "--model",
            f"openai:m@{server.url}",
        ]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            process.stdin.write("Where is the lighthouse?\nAnd the mill?\n")
            process.stdin.flush()
            assert is_hanging.wait(120)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    slow_start = "Loading the agent's libraries ...\n"  # which is shown after some seconds
    assert (process.returncode, err.removeprefix(slow_start)) == (0, "")
    assert out.index("Interrupted.") < out.index("> And the mill?") < out.index("It stands.")


@pytest.fixture
def piped(arag, monkeypatch):
    """A function that runs `arag chat` with lines from a pipe."""

    def run(lines, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        return arag("chat", "--tools", "paper", *arguments)

    return run


def test_questions_come_through_a_pipe_and_each_has_its_own_budget(piped, example_index, monkeypatch):
    monkeypatch.setenv("ARAG_INDEX", str(example_index.path))
    questions = f"{QUESTION}\n \nWhere was Hesper Quillorne born?\nexit\nNot this\n"
    code, out, err = piped(questions, "--model", "extractive", "--max-steps", 2)
    assert (code, err, "Not this" in out) == (0, "", False)
    first, second = out.split("> Where was Hesper Quillorne born?\n")
    assert first.startswith(f"> {QUESTION}\n 1 semantic_search")
    for shown in (first, second):
        assert "The answer was forced: max_steps." in shown
        assert "2 steps, 2 tool calls, " in shown


def test_a_question_that_fails_shows_in_the_exit_code_and_the_next_is_answered(piped, example_index):
    script = [Failure(401), chat("In 1783."), chat("In 1783.")]
    with serve(script) as server:
        model = f"openai:m@{server.url}"
        code, out, err = piped("When?\nWhen was it?\n", "--index", example_index.path, "--model", model)
    assert (code, err.startswith(f"Error: the model {model} failed: "), err.count("\n")) == (FAILED, True, 1)
    assert "\nIn 1783.\n" in out
    assert "Not from the corpus: the model answered without a search." in out
    roles = [message["role"] for message in server.requests[1]["messages"]]
    assert roles == ["system", "user"]  # without the question that failed
    assert "When was it?" in server.requests[1]["messages"][1]["content"]


def test_thinking_and_calls_as_text_are_not_printed_as_answers_and_a_strict_exit_code_says_what_is_weak(
    arag, example_index
):
    call = '<tool_call>{"name": "keyword_search", "arguments": {"keywords": ["Skellavy"]}}</tool_call>'
    script = [chat(call), chat("<think>Was it 1700? [none.md:4]</think>In 1783 [places/skellavy.md:0].")]
    options = ["--tools", "paper", "--strict", "--index", example_index.path]
    with serve(script) as server:
        code, out, _ = arag(
            "ask", "When was the light of Skellavy built?", *options, "--model", f"openai:m@{server.url}"
        )
    assert code == 0
    assert "<think>" not in out
    assert "1700" not in out
    assert "<tool_call>" not in out
    assert ' 1 keyword_search keywords=["Skellavy"]' in out
    with serve([chat("In 1783 [atlas.md:3].")] * 2) as server:
        code, out, _ = arag("ask", "When?", *options, "--model", f"openai:m@{server.url}")
    assert code == 3
    assert "Asked again: nothing was searched." in out
    assert "Sources: none" in out


def test_thinking_whose_end_alone_is_marked_is_said_to_be_no_part_of_the_answer(arag, example_index):
    search = chat(None, ("c1", "keyword_search", '{"keywords": ["Skellavy"]}'))
    script = [search, chat("Was it 1700?</think>In 1783 [places/skellavy.md:0].")]
    with serve(script) as server:
        options = ["--tools", "paper", "--index", example_index.path, "--model", f"openai:m@{server.url}"]
        code, out, _ = arag("ask", "When?", *options)
    assert code == 0
    note = "Was it 1700?\n   The text above is not part of the answer.\n\nIn 1783 [places/skellavy.md:0].\n"
    assert note in out


def test_a_list_of_documents_has_a_head_in_a_terminal_and_says_what_is_empty(arag, example_index):
    with in_terminal("list", "--index", example_index.path, "--documents", "places/skellavy.md") as terminal:
        pass
    assert [line.split()[0] for line in terminal.printed.splitlines()] == ["ID", "places/skellavy.md"]
    assert "in the scope" in arag("list", "--index", example_index.path, "--documents", "cellars/*")[2]


def test_hits_are_wrapped_between_words_in_a_terminal(arag, example_index):
    search = ["search", "keyword", "Grey Petrel", "--index", example_index.path]
    with in_terminal(*search) as terminal:
        pass
    longest = max(terminal.printed.splitlines(), key=len)
    assert len(longest) <= 80
    assert terminal.printed.split() == arag(*search)[1].split()
