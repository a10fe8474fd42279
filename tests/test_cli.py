"""The command line, run as a user would, in this process; one test starts the installed program."""

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

import arag.ingest.maintenance  # noqa: F401 - found by its name below
from arag.cli.ingesting import LEFT_OUT
from arag.interruption import INTERRUPTED
from arag.terminal import FAILED
from fakes import change_settings, hash_vector, write_corpus
from openai_server import Failure, chat, embeddings, serve
from selection import slow_except

CORPUS = Path(__file__).parent.parent / "examples" / "corpus"
QUESTION = "Who founded the glassworks that made the lens of the Vellin Light?"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    from arag import run_ingest

    folder = tmp_path_factory.mktemp("cli") / "index"
    run_ingest(CORPUS, folder)
    return folder


def test_ingest_says_what_it_did_and_a_second_run_embeds_nothing(arag, tmp_path):
    (tmp_path / "a.txt").write_text("Ann\n\nAnn built the first mill in 1702.\n")
    (tmp_path / "b.txt").write_text("Bo\n\nBo painted the mill. He used blue.\n")
    code, out, _ = arag("ingest", tmp_path / "a.txt", tmp_path / "b.txt", "--index", tmp_path / "index")
    assert code == 0
    assert "holds 2 documents, 2 chunks, 3 sentences" in out
    code, out, _ = arag("ingest", tmp_path / "a.txt", tmp_path / "b.txt", "--index", tmp_path / "index", "--json")
    summary = json.loads(out)
    assert code == 0
    assert (summary["read"], summary["written"], summary["embedded"]) == (2, 0, 0)


def test_prune_removes_what_is_gone(arag, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"Title {name}\n\nDocument {name} speaks of mills.\n")
    arag("ingest", folder, "--index", tmp_path / "index")
    code, out, _ = arag("info", "--index", tmp_path / "index", "--json")
    assert (json.loads(out)["documents"], json.loads(out)["chunks"]) == (3, 3)
    (folder / "b.txt").unlink()
    code, out, _ = arag("ingest", folder, "--index", tmp_path / "index", "--prune", "--json")
    assert code == 0
    assert json.loads(out)["removed"] == 1
    _, out, _ = arag("search", "keyword", "Document b", "--index", tmp_path / "index", "--json")
    assert json.loads(out)["total"] == 0


def test_what_is_left_out_is_named_and_shows_in_the_exit_code(arag, tmp_path):
    (tmp_path / "records.jsonl").write_text(
        '{"id": "x", "title": "X", "text": "The mill stands."}\n{"id": "y", "text": \n{"id": "z", "text": "It fell."}\n'
    )
    code, out, err = arag("ingest", tmp_path / "records.jsonl", "--index", tmp_path / "index")
    assert code == LEFT_OUT
    assert "2 documents" in out
    assert "records.jsonl, line 2" in err


def test_files_of_one_name_in_two_folders_are_told_apart_or_named(arag, tmp_path):
    for name in ("c1", "c2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text(f"# Notes {name}\n\nThe notes of {name}.\n")
    index = ["--index", tmp_path / "index"]
    arag("ingest", tmp_path / "c1", *index)
    code, _, err = arag("ingest", tmp_path / "c2", *index)
    assert (code, "its id 'README.md' belongs to" in err, "ingest the folder above both" in err) == (3, True, True)
    assert arag("ingest", tmp_path, *index)[0] == 0
    _, out, _ = arag("search", "keyword", "notes of", *index, "--json")
    assert sorted(hit["chunk_id"] for hit in json.loads(out)["hits"]) == ["README.md:0", "c2/README.md:0"]


def test_settings_of_an_index_are_kept_and_can_be_changed(arag, tmp_path):
    (tmp_path / "a.txt").write_text("The mill stands. " * 100)
    arag("ingest", tmp_path / "a.txt", "--index", tmp_path / "index", "--chunk-tokens", 100)
    code, out, _ = arag("ingest", tmp_path / "a.txt", "--index", tmp_path / "index", "--json")
    assert (json.loads(out)["written"], json.loads(out)["chunks"] > 3) == (0, True)
    _, out, _ = arag("info", "--index", tmp_path / "index", "--json")
    assert json.loads(out)["chunk_tokens"] == 100
    code, out, _ = arag("ingest", tmp_path / "a.txt", "--index", tmp_path / "index", "--chunk-tokens", 2000, "--json")
    assert (code, json.loads(out)["written"], json.loads(out)["chunks"]) == (0, 1, 1)


def test_the_summary_names_absent_documents(arag, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("The mill stands.")
    (folder / "b.txt").write_text("It turns.")
    arag("ingest", folder, "--index", tmp_path / "index")
    (folder / "b.txt").unlink()
    code, out, _ = arag("ingest", folder, "--index", tmp_path / "index")
    assert code == 0
    assert "Read 1 document:" in out
    assert "holds 2 documents" in out
    assert "Kept, but not read this time: 1 document." in out


def test_version(arag):
    code, out, _ = arag("--version")
    assert (code, out) == (0, "0.1.0\n")


def test_ask_streams_steps_then_the_answer_with_its_sources(arag, index):
    code, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive")
    assert code == 0
    steps, answer = out.index("keyword_search"), out.index("Mattick Grevane, a failed apothecary")
    assert steps < answer < out.index("Sources")
    sources = out[out.index("Sources") :]
    assert "places/brannisey.md:0  Brannisey\n     “The Emberlane Glassworks was founded in 1746 by Mattick" in sources


def test_ask_json_is_one_object_with_everything(arag, index):
    code, out, err = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--json")
    record = json.loads(out)
    assert code == 0
    assert not err
    assert {"answer", "citations", "stop_reason", "steps", "read_chunks", "trace", "usage"} <= set(record)
    assert "Mattick Grevane" in record["answer"]
    assert record["stop_reason"] == "answered"
    assert all(citation["seen"] for citation in record["citations"])
    for tokens in ("retrieved_tokens", "evidence_tokens"):
        assert record[tokens] == sum(call[tokens] for call in record["trace"]) > 0


def test_ask_html_writes_a_page_that_shows_the_run(arag, index, tmp_path):
    page = tmp_path / "run.html"
    code, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--html", page, "--json")
    assert code == 0
    assert json.loads(out)["question"] == QUESTION
    assert QUESTION in page.read_text(encoding="utf-8")
    assert 'class="answer"' in page.read_text(encoding="utf-8")


def test_ask_html_shows_a_run_that_failed_too(arag, index, tmp_path):
    page = tmp_path / "run.html"
    code, _, err = arag("ask", "q", "--index", index, "-m", "openai:none@http://127.0.0.1:9/v1", "--html", page)
    assert code == FAILED
    assert err.startswith("Error: the model openai:none@http://127.0.0.1:9/v1 failed")
    text = page.read_text(encoding="utf-8")
    assert "<title>Failed: q</title>" in text
    assert "<b>The run failed.</b> Connection error." in text
    assert text.index("Question · openai:none@http://127.0.0.1:9/v1") < text.index("Connection error.")


def test_ask_html_shows_the_models_error_also_if_the_page_cannot_be_written(arag, index):
    command = ["ask", "q", "--index", index, "-m", "openai:none@http://127.0.0.1:9/v1", "--html", "/dev/full"]
    code, _, err = arag(*command)
    assert code == FAILED
    assert err.startswith("Error: the page cannot be written to /dev/full")
    assert "\nError: the model openai:none@http://127.0.0.1:9/v1 failed: Connection error." in err


def test_ask_with_few_steps_gives_a_forced_answer_that_says_so(arag, index):
    code, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--max-steps", 1)
    assert code == 0
    assert "forced: max_steps" in out


def test_ask_without_a_model_says_which_one_it_uses(arag, index, monkeypatch):
    monkeypatch.delenv("ARAG_MODEL", raising=False)
    _, _, err = arag("ask", QUESTION, "--index", index, "--json")
    assert "not a language model" in err
    assert "ARAG_MODEL" in err


def test_search_keyword_shows_counts_and_chunks(arag, index):
    code, out, _ = arag("search", "keyword", "Skellavy", "Grey Petrel", "--index", index, "--top-k", 2)
    assert code == 0
    assert "Grey Petrel: 3 chunks" in out
    assert out.count("\n[") == 2


def test_search_semantic_gives_typed_results_as_json(arag, index):
    code, out, _ = arag("search", "semantic", "lens of the light", "--index", index, "--top-k", 3, "--json")
    results = json.loads(out)
    assert code == 0
    assert results["hits"][0]["chunk_id"] == "places/vellin-light.md:0"
    assert len(results["hits"]) == 3


def test_read_prints_chunks_and_fails_for_unknown_ids(arag, index):
    code, out, _ = arag("read", "events/chronicle-of-the-lanthry-isles.md:0", "--adjacent", 1, "--index", index)
    assert code == 0
    assert "part 2 of 2" in out
    code, out, _ = arag("read", "places/skelavy.md:0", "--index", index)
    assert code == FAILED
    assert "[places/skellavy.md:0]" in out


def test_info_names_embedder_and_counts(arag, index):
    code, out, _ = arag("info", "--index", index)
    assert code == 0
    assert "huggingface:sentence-transformers/all-MiniLM-L6-v2" in out
    assert "25" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ingest", "{tmp}/nowhere", "--index", "{tmp}/i"], "nowhere"),
        (["ingest", "{tmp}/empty", "--index", "{tmp}/i"], "empty"),
        (["ingest", "{tmp}/blank.txt", "--index", "{tmp}/i"], "empty document"),
        (["ingest", "{tmp}/latin.txt", "--index", "{tmp}/i"], "not valid UTF-8"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/good.txt"], "is a file"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/i", "--chunk-tokens", "1"], "at least"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/i", "--embedder", "nonsense"], "provider:model"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/i", "--as", ".log"], "two endings"),
        (
            ["ingest", "{tmp}/good.txt", "--index", "{index}", "--embedder", "openai:other"],
            "was made with the embedder",
        ),
        (["ask", "q", "--index", "{tmp}/i"], "no index in"),
        (["ask", " ", "--index", "{index}"], "blank"),
        (["ask", "q", "--index", "{index}", "--html", "{tmp}/none/run.html"], "does not exist"),
        (["ask", "q", "--index", "{index}", "--model", "gpt"], "provider:model"),
        (["ask", "q", "--index", "{index}", "--model", "nobody:gpt"], "nobody"),
        (["ask", "q", "--index", "{index}", "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        (["ask", "q", "--index", "{index}", "--model", "extractive", "--top-k", "99"], "top_k"),
        (
            ["ask", "q", "--index", "{index}", "--model", "extractive", "--tools", "web"],
            "keyword_search, semantic_search, chunk_read",
        ),
        (["search", "keyword", " ", "--index", "{index}"], "no keyword"),
        (["search", "semantic", " ", "--index", "{index}"], "blank"),
        (["read", "a:0", "--adjacent", "9", "--index", "{index}"], "0 to 2"),
    ],
)
def test_bad_input_is_one_clear_line_on_stderr(arag, index, tmp_path, monkeypatch, arguments, said):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text(" \n")
    (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
    (tmp_path / "good.txt").write_text("The mill stands.")
    code, out, err = arag(*(a.format(tmp=tmp_path, index=index) for a in arguments))
    assert code == FAILED
    assert not out
    assert err.startswith("Error: ")
    assert said in err
    assert "Traceback" not in err


def test_a_model_that_cannot_be_reached_is_one_clear_line(arag, index):
    code, _, err = arag("ask", "q", "--index", index, "--model", "openai:none@http://127.0.0.1:9/v1")
    assert code == FAILED
    assert err.startswith("Error: the model openai:none@http://127.0.0.1:9/v1 failed")


def test_a_wrong_command_line_is_exit_code_2(arag):
    code, _, err = arag("search", "keyword", "x")
    assert code == 2
    assert "--index" in err


def test_the_installed_program_runs(index):
    program = Path(sys.executable).parent / "arag"
    done = subprocess.run(
        [program, "search", "keyword", "Skellavy", "--index", index], capture_output=True, text=True, check=True
    )
    assert "[places/skellavy.md:0]" in done.stdout
    assert not done.stderr


def test_ask_passes_a_reasoning_effort_on(arag, index):
    with serve([chat("The Ardrossels.")]) as server:
        model = f"openai:m@{server.url}"
        code, out, _ = arag("ask", QUESTION, "--index", index, "--model", model, "--reasoning-effort", "low")
    assert code == 0
    assert "The Ardrossels." in out
    assert [request["reasoning_effort"] for request in server.requests] == ["low"]
    code, _, err = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--reasoning-effort", "low")
    assert (code, err) == (FAILED, "Error: reasoning_effort: the model extractive takes no options\n")


# --- damage ---


def test_verify_names_its_repair_for_what_that_mends_only(arag, index, tmp_path):
    shutil.copytree(index, tmp_path / "index")
    next((tmp_path / "index").glob("keywords-*")).unlink()
    code, out, _ = arag("verify", "--index", tmp_path / "index")
    assert code == FAILED
    assert "it is missing\n" in out
    assert re.search(r"Run `arag verify --repair --index .*index` to repair it\.\n$", out)
    change_settings(tmp_path / "index", version=99)
    code, out, err = arag("verify", "--index", tmp_path / "index")
    assert code == FAILED
    assert "ingest the documents again" in out + err
    assert "--repair" not in out + err


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
        """Press Ctrl-C when a command waits for the service; return its exit code, its stderr and how soon it ended."""
        command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert self.is_hanging.wait(60)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        return process.returncode, err, time.monotonic() - began


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
        code, err, seconds = service.interrupt("ingest", docs, "--index", index)
        assert (code, err.endswith("Interrupted.\n")) == (INTERRUPTED, True)
        assert "Traceback" not in err
        assert seconds < 30
        code, out, err = arag("info", "--index", index, "--json")
        if first:
            assert (code, err.startswith("Error: no index in ")) == (FAILED, True)
        else:
            assert json.loads(out)["documents"] == 1
            _, out, err = arag("search", "semantic", "the mill", "--index", index, "--json")
            assert not err
            assert [hit["chunk_id"] for hit in json.loads(out)["hits"]] == ["old.md:0"]
        service.word = ""
        assert arag("ingest", docs, "--index", index)[0] == 0
        assert arag("verify", "--index", index)[0] == 0
        _, out, _ = arag("search", "keyword", "lighthouse", "--index", index, "--json")
        assert json.loads(out)["total"] == 1


def test_an_interrupted_question_ends_soon_though_a_tool_hangs(arag, tmp_path, monkeypatch):
    docs, index = write_corpus(tmp_path / "docs", {"a.md": "The mill stands."}), tmp_path / "index"
    service = Service(chat(None, ("c1", "semantic_search", '{"query": "lighthouse"}')))
    with serve(service) as server:
        monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
        arag("ingest", docs, "--index", index)
        code, err, seconds = service.interrupt("ask", "q", "--index", index, "--model", f"openai:m@{server.url}")
    assert (code, err.endswith("Interrupted.\n")) == (INTERRUPTED, True)
    assert "Traceback" not in err
    assert seconds < 30


def test_every_interrupted_command_says_so_in_one_line(arag, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("arag.retrieval.index.open_index", interrupt)
    monkeypatch.setattr("os._exit", sys.exit)
    assert arag("search", "keyword", "x", "-i", "i") == (INTERRUPTED, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("responses", "said"),
    [
        ([Failure(401)], "scripted failure 401"),
        ([Failure(200, page=True)], ""),
        ([chat() | {"choices": []}], ""),
    ],
    ids=["refused", "a page", "no reply"],
)
def test_what_a_provider_refuses_is_one_line(arag, index, responses, said):
    with serve(responses) as server:
        code, _, err = arag("ask", QUESTION, "--index", index, "--model", f"openai:m@{server.url}", "--quiet")
    assert code == FAILED
    assert err.startswith("Error: the model ")
    assert said in err
    assert err.count("\n") == 1


# --- ask ---


def test_ask_passes_the_agents_settings_on(arag, index):
    with serve([chat("Nobody.")]) as server:
        options = ["--tools", "keyword_search", "--tools", "chunk_read", "--top-k", 3, "--system-prompt", "Be brief."]
        options += ["--model-option", "temperature=0.25", "--model", f"openai:m@{server.url}"]
        assert arag("ask", QUESTION, "--index", index, *options)[0] == 0
    (request,) = server.requests
    assert [tool["function"]["name"] for tool in request["tools"]] == ["keyword_search", "chunk_read"]
    assert (request["messages"][0]["content"], request["temperature"]) == ("Be brief.", 0.25)
    code, _, err = arag("ask", QUESTION, "--index", index, "--model-option", "temperature")
    assert (code, "NAME=VALUE is needed" in err) == (FAILED, True)


def test_ask_shows_the_answer_as_it_is_written_and_what_it_cost(arag, index):
    script = [
        chat("I look first.", ("c1", "keyword_search", '{"keywords": ["Skellavy"]}')),
        chat("In 1783 [places/skellavy.md:0]."),
    ]
    with serve([reply | {"model": "gpt-5-mini-2025-08-07"} for reply in script]) as server:
        _, out, _ = arag("ask", QUESTION, "--index", index, "--model", f"openai:gpt-5-mini@{server.url}")
    places = [out.index(text) for text in ("I look first.", "keyword_search", "In 1783", "Sources", "200 input tokens")]
    assert places == sorted(places)
    assert out.count("In 1783") == 1
    assert re.search(r"^200 input tokens \(80 cached\), 20 output tokens, (< )?\$0\.\d{4}$", out, flags=re.MULTILINE)


def test_ask_quiet_prints_the_answer_and_its_sources_only(arag, index):
    script = [
        chat("I look first.", ("c1", "keyword_search", '{"keywords": ["Skellavy"]}')),
        chat("In 1783 [places/skellavy.md:0]."),
    ]
    with serve(script) as server:
        ask = ["ask", QUESTION, "--index", index, "--model", f"openai:m@{server.url}", "--quiet"]
        code, out, err = arag(*ask)
    assert (code, err) == (0, "")
    answer, sources = out.split("\n\n")
    assert answer == "In 1783 [places/skellavy.md:0]."
    assert sources.splitlines() == [
        "Sources",
        "  places/skellavy.md:0  Skellavy",
        "     “The harbour light on Skellavy was built in 1783 by the Lampwrights' Company.”",
    ]
