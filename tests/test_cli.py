"""The command line, run as a user would, in this process; a few tests start the installed program."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from arag import terminal
from arag.cli.index import LEFT_OUT
from arag.terminal import FAILED, INTERRUPTED
from fakes import change_settings, hash_vector, write_corpus
from openai_server import Failure, chat, embeddings, serve
from selection import slow_except

PROGRAM = Path(sys.executable).parent / "arag"
QUESTION = "Who founded the glassworks that made the lens of the Vellin Light?"
SEARCH = ("c1", "keyword_search", '{"keywords": ["Skellavy"]}')
UNREACHABLE = "openai:none@http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def index(example_index):
    return example_index.path


# --- an index ---


def test_a_second_ingestion_embeds_nothing_and_prune_removes_what_is_gone(arag, tmp_path):
    docs = write_corpus(tmp_path / "docs", {f"{name}.md": f"Document {name} speaks of mills." for name in "abc"})
    ingest = ["ingest", docs, "--index", tmp_path / "index"]
    code, out, _ = arag(*ingest, "--chunk-tokens", 100)
    assert (code, "holds 3 documents, 3 chunks, 3 sentences." in out) == (0, True)
    summary = json.loads(arag(*ingest, "--json")[1])
    assert (summary["read"], summary["written"], summary["embedded"]) == (3, 0, 0)
    (docs / "b.md").unlink()
    code, out, _ = arag(*ingest)
    assert (code, "Kept, but not read this time: 1 document." in out) == (0, True)
    assert json.loads(arag(*ingest, "--prune", "--json")[1])["removed"] == 1
    info = json.loads(arag("info", "--index", tmp_path / "index", "--json")[1])
    assert (info["documents"], info["chunk_tokens"]) == (2, 100)


def test_what_is_left_out_is_named_and_shows_in_the_exit_code(arag, tmp_path):
    (tmp_path / "records.jsonl").write_text('{"id": "x", "text": "The mill stands."}\n{"id": "y", "text": \n')
    code, out, err = arag("ingest", tmp_path / "records.jsonl", "--index", tmp_path / "index")
    assert (code, "1 document" in out, "records.jsonl, line 2" in err) == (LEFT_OUT, True, True)


def test_an_index_can_be_searched_read_and_described(arag, index):
    code, out, _ = arag("search", "keyword", "Skellavy", "Grey Petrel", "--index", index, "--top-k", 2)
    assert (code, "Grey Petrel: 3 chunks" in out, out.count("\n[")) == (0, True, 2)
    code, out, _ = arag("search", "semantic", "lens of the light", "--index", index, "--top-k", 3, "--json")
    assert json.loads(out)["hits"][0]["chunk_id"] == "places/vellin-light.md:0"
    _, out, _ = arag("read", "events/chronicle-of-the-lanthry-isles.md:0", "--adjacent", 1, "--index", index)
    assert "part 2 of 2" in out
    code, out, _ = arag("read", "places/skelavy.md:0", "--index", index)
    assert (code, "[places/skellavy.md:0]" in out) == (FAILED, True)
    _, out, _ = arag("info", "--index", index)
    assert re.search(r"documents +25\b", out)
    assert "huggingface:sentence-transformers/all-MiniLM-L6-v2" in out


def test_verify_names_its_repair_for_what_that_mends_only(arag, index, tmp_path):
    shutil.copytree(index, tmp_path / "index")
    next((tmp_path / "index").glob("keywords-*")).unlink()
    code, out, _ = arag("verify", "--index", tmp_path / "index")
    assert (code, "it is missing\n" in out) == (FAILED, True)
    assert re.search(r"Run `arag verify --repair --index .*index` to repair it\.\n$", out)
    change_settings(tmp_path / "index", version=99)
    code, out, err = arag("verify", "--index", tmp_path / "index")
    assert (code, "ingest the documents again" in out + err, "--repair" in out + err) == (FAILED, True, False)


# --- wrong command lines ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ingest", "{tmp}/nowhere", "--index", "{tmp}/i"], "nowhere"),
        (["ingest", "{tmp}/empty", "--index", "{tmp}/i"], "empty"),
        (["ingest", "{tmp}/latin.txt", "--index", "{tmp}/i"], "not valid UTF-8"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/good.txt"], "is a file"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/i", "--embedder", "nonsense"], "provider:model"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/i", "--as", ".log"], "two endings"),
        (["ask", "q", "--index", "{tmp}/i"], "no index in"),
        (["ask", " ", "--index", "{index}"], "blank"),
        (["ask", "q", "--index", "{index}", "--html", "{tmp}/none/run.html"], "does not exist"),
        (["ask", "q", "--index", "{index}", "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        (["ask", "q", "--index", "{index}", "--model-option", "temperature"], "NAME=VALUE is needed"),
        (["ask", "q", "--index", "{index}", "--model-option", "api_key=x"], "environment variable"),
        (["ask", "q", "--index", "{index}", "-m", "extractive", "--model-option", f"a={'[' * 99_999}"], "no options"),
        (["ask", "q", "--index", "{index}", "--where", "year"], "--where is not valid JSON"),
        (
            ["ask", "q", "--index", "{index}", "--model", "extractive", "--tools", "web"],
            "keyword_search, semantic_search, chunk_read",
        ),
        (["search", "keyword", " ", "--index", "{index}"], "no keyword"),
    ],
)
def test_bad_input_is_one_clear_line_on_stderr(arag, index, tmp_path, monkeypatch, arguments, said):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
    (tmp_path / "good.txt").write_text("The mill stands.")
    code, out, err = arag(*(a.format(tmp=tmp_path, index=index) for a in arguments))
    assert (code, out) == (FAILED, "")
    assert err.startswith("Error: ")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "keyword", "x"], "--index"),
        (["ask", "q", "--index", "i", "--top-k", 99], "--top-k"),
        (["ask", "q", "--index", "i", "--max-steps", 0], "--max-steps"),
        (["read", "a:0", "--index", "i", "--adjacent", 9], "--adjacent"),
        (["ingest", "a.txt", "--index", "i", "--chunk-tokens", 1], "--chunk-tokens"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(arag, arguments, said):
    code, _, err = arag(*arguments)
    assert (code, said in err) == (2, True)


@pytest.mark.parametrize("command", [["list"], ["info", "--json"], ["search", "keyword", "Skellavy"]])
def test_the_installed_program_says_in_one_line_that_its_output_cannot_be_written(index, command):
    with Path("/dev/full").open("w") as full:
        command = [PROGRAM, *command, "--index", index]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: the output cannot be written: No space left on device\n")


def test_the_installed_program_runs(index):
    command = [PROGRAM, "search", "keyword", "Skellavy", "--index", index]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ("[places/skellavy.md:0]" in done.stdout, done.stderr) == (True, "")
    assert subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout == "0.1.0\n"


# --- ask ---


def test_ask_streams_steps_then_the_answer_with_its_sources(arag, index):
    code, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive")
    assert code == 0
    steps, answer = out.index("keyword_search"), out.index("Mattick Grevane, a failed apothecary")
    assert steps < answer < out.index("Sources")
    sources = out[out.index("Sources") :]
    assert "places/brannisey.md:0  Brannisey\n     “The Emberlane Glassworks was founded in 1746 by Mattick" in sources


@pytest.mark.parametrize("columns", [80, 140])
def test_on_a_terminal_the_lines_of_a_quote_are_as_long_as_fit_and_have_one_margin(arag, index, monkeypatch, columns):
    monkeypatch.setattr(terminal.Console, "is_terminal", True)
    monkeypatch.setattr(terminal.out, "_width", columns)
    monkeypatch.setattr(terminal.out, "no_color", True)
    _, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--quiet")
    sources = re.sub(r"\x1b\[[\d;]*m", "", out).partition("\nSources\n")[2].splitlines()
    assert max(len(line.rstrip()) for line in sources) in range(columns - 15, columns + 1)
    assert {len(line) - len(line.lstrip()) for line in sources} == {2, 5}


def test_ask_json_is_one_object_with_everything(arag, index):
    code, out, err = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert {"answer", "citations", "stop_reason", "steps", "read_chunks", "trace", "usage"} <= set(record)
    assert "Mattick Grevane" in record["answer"]
    assert record["stop_reason"] == "answered"
    assert all(citation["seen"] for citation in record["citations"])
    for tokens in ("retrieved_tokens", "evidence_tokens"):
        assert record[tokens] == sum(call[tokens] for call in record["trace"]) > 0


def test_ask_without_a_model_says_which_one_it_uses_and_a_forced_answer_says_so(arag, index, monkeypatch):
    monkeypatch.delenv("ARAG_MODEL", raising=False)
    code, out, err = arag("ask", QUESTION, "--index", index, "--max-steps", 1)
    assert (code, "forced: max_steps" in out) == (0, True)
    assert "not a language model" in err
    assert "ARAG_MODEL" in err


def test_ask_html_writes_a_page_of_the_run_also_of_one_that_failed(arag, index, tmp_path):
    page = tmp_path / "run.html"
    code, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--html", page, "--json")
    assert (code, json.loads(out)["question"], QUESTION in page.read_text("utf-8")) == (0, QUESTION, True)
    error = f"the model {UNREACHABLE} failed: Connection error."
    assert arag("ask", "q", "--index", index, "-m", UNREACHABLE, "--html", page) == (FAILED, "", f"Error: {error}\n")
    assert f"<b>The run failed.</b> {error}" in page.read_text("utf-8")


def test_a_page_that_cannot_be_written_hides_neither_the_answer_nor_the_models_error(arag, index):
    unwritten = "Error: the page cannot be written to /dev/full: No space left on device\n"
    code, out, err = arag("ask", QUESTION, "--index", index, "-m", "extractive", "--html", "/dev/full", "--quiet")
    assert (code, "Mattick Grevane" in out, err) == (FAILED, True, unwritten)
    code, _, err = arag("ask", "q", "--index", index, "-m", UNREACHABLE, "--html", "/dev/full")
    assert (code, err) == (FAILED, f"{unwritten}Error: the model {UNREACHABLE} failed: Connection error.\n")


def test_ask_passes_the_agents_settings_on(arag, index):
    with serve([chat("Nobody.")]) as server:
        options = ["--tools", "keyword_search", "--tools", "chunk_read", "--top-k", 3, "--system-prompt", "Be brief."]
        options += [
            "--reasoning-effort",
            "low",
            "--model-option",
            "temperature=0.25",
            "--model",
            f"openai:m@{server.url}",
        ]
        assert arag("ask", QUESTION, "--index", index, *options)[0] == 0
    (request,) = server.requests
    assert [tool["function"]["name"] for tool in request["tools"]] == ["keyword_search", "chunk_read"]
    assert (request["messages"][0]["content"], request["temperature"]) == ("Be brief.", 0.25)
    assert request["reasoning_effort"] == "low"


def test_ask_shows_the_answer_as_it_is_written_and_what_it_cost(arag, index):
    script = [chat("I look first.", SEARCH), chat("In 1783 [places/skellavy.md:0].")]
    with serve([reply | {"model": "gpt-5-mini-2025-08-07"} for reply in script]) as server:
        _, out, _ = arag("ask", QUESTION, "--index", index, "--model", f"openai:gpt-5-mini@{server.url}")
    places = [out.index(text) for text in ("I look first.", "keyword_search", "In 1783", "Sources", "200 input tokens")]
    assert places == sorted(places)
    assert out.count("In 1783") == 1
    assert re.search(r"^200 input tokens \(80 cached\), 20 output tokens, (< )?\$0\.\d{4}$", out, flags=re.MULTILINE)


def test_ask_quiet_prints_the_answer_and_its_sources_only(arag, index):
    with serve([chat("I look first.", SEARCH), chat("In 1783 [places/skellavy.md:0].")]) as server:
        code, out, err = arag("ask", QUESTION, "--index", index, "--model", f"openai:m@{server.url}", "--quiet")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "In 1783 [places/skellavy.md:0].",
        "",
        "Sources",
        "  places/skellavy.md:0  Skellavy",
        "     “The harbour light on Skellavy was built in 1783 by the Lampwrights' Company.”",
    ]


@pytest.mark.parametrize(
    ("response", "said"),
    [(Failure(401), "scripted failure 401"), (Failure(200, page=True), ""), (chat() | {"choices": []}, "")],
    ids=["refused", "a page", "no reply"],
)
def test_what_a_provider_refuses_is_one_line(arag, index, response, said):
    with serve([response]) as server:
        code, _, err = arag("ask", QUESTION, "--index", index, "--model", f"openai:m@{server.url}", "--quiet")
    assert (code, said in err, err.count("\n")) == (FAILED, True, 1)
    assert err.startswith("Error: the model ")


# --- Ctrl-C ---

# What runs in the background is started to ignore it.
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from arag.cli import main
main()
"""


class Service:
    """What a model and an embedder answer, but to texts with one word: then they hang."""

    def __init__(self, *replies):
        self.replies = iter(replies)
        self.word = "lighthouse"
        self.is_hanging = threading.Event()

    def __call__(self, number, request):
        if "input" not in request:
            if (reply := next(self.replies, None)) is None:
                self.is_hanging.set()
                return Failure(hang=True)
            return reply
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        if self.word and any(self.word in text for text in texts):
            self.is_hanging.set()
            return Failure(hang=True)
        return embeddings([hash_vector(text).tolist() for text in texts])

    def interrupt(self, *arguments):
        """Press Ctrl-C when a command waits for the service; return its exit code and stderr."""
        command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert self.is_hanging.wait(120)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert time.monotonic() - began < 30
        assert "Traceback" not in err
        return process.returncode, err


@pytest.mark.parametrize("first", slow_except(False, among=[True, False]))
def test_an_interrupted_ingestion_ends_at_once_and_leaves_what_was_committed(arag, tmp_path, monkeypatch, first):
    docs, index = tmp_path / "docs", tmp_path / "index"
    service = Service()
    with serve(service) as server:
        monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
        if not first:
            write_corpus(docs, {"old.md": "The mill stands."})
            assert arag("ingest", docs, "--index", index)[0] == 0
        write_corpus(docs, {f"{n}.md": f"Tower {n}. " + f"The tower of {n} stands. " * 50 for n in range(20)})
        write_corpus(docs, {"new.md": "The lighthouse stands."})
        code, err = service.interrupt("ingest", docs, "--index", index)
        assert (code, err.endswith("Interrupted.\n")) == (INTERRUPTED, True)
        code, out, err = arag("info", "--index", index, "--json")
        if first:
            assert (code, err.startswith("Error: no index in ")) == (FAILED, True)
        else:
            assert json.loads(out)["documents"] == 1
        service.word = ""
        assert arag("ingest", docs, "--index", index)[0] == 0
        assert arag("verify", "--index", index)[0] == 0
        _, out, _ = arag("search", "keyword", "lighthouse", "--index", index, "--json")
        assert json.loads(out)["total"] == 1


@pytest.mark.parametrize("replies", [[], [chat(None, ("c1", "semantic_search", '{"query": "lighthouse"}'))]])
def test_an_interrupted_question_ends_at_once_though_a_model_or_a_tool_hangs(arag, tmp_path, monkeypatch, replies):
    docs, index = write_corpus(tmp_path / "docs", {"a.md": "The mill stands."}), tmp_path / "index"
    service = Service(*replies)
    with serve(service) as server:
        monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
        arag("ingest", docs, "--index", index)
        page = tmp_path / "run.html"
        ask = ["ask", "q", "--index", index, "--model", f"openai:m@{server.url}", "--html", page]
        code, err = service.interrupt(*ask)
    assert (code, err.endswith("Interrupted.\n")) == (INTERRUPTED, True)
    assert "The run failed." in page.read_text("utf-8")


def test_every_interrupted_command_says_so_in_one_line(arag, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("arag.retrieval.index.open_index", interrupt)
    monkeypatch.setattr("os._exit", sys.exit)
    assert arag("search", "keyword", "x", "-i", "i") == (INTERRUPTED, "", "Interrupted.\n")
