"""`arag eval run`: from a download to results in one command."""

import json
import re
import shutil
import signal
import subprocess
import sys

import pytest

from arag import terminal
from arag.evaluation.plan import load_plan
from arag.evaluation.records import record_file
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from arag.terminal import INTERRUPTED
from eval_runs import STEPS, Replies
from forked import ARAG
from http_server import Failure
from openai_server import chat, serve

pytestmark = pytest.mark.usefixtures("quick_embedder")

TEXTS = {
    "Lothair II": "Lothair II was a king of Lotharingia. He married Teutberga in 855.",
    "Teutberga": "Teutberga was a daughter of Boso the Elder. She died in 875.",
    "Boso the Elder": "Boso the Elder was a count of Arles. He had three children.",
    "Arles": "Arles is a city on the Rhône. It had an amphitheatre.",
}


def musique(number, *supporting):
    return {
        "id": f"2hop__{number}",
        "paragraphs": [
            {"idx": n, "title": title, "paragraph_text": text, "is_supporting": title in supporting}
            for n, (title, text) in enumerate(TEXTS.items())
        ],
        "question": f"Question number {number}: Who was the father of the wife of Lothair II?",
        "answer": "Boso the Elder",
        "answer_aliases": [],
        "answerable": True,
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = [musique(n, "Lothair II", "Teutberga") for n in range(5)]
    (tmp_path / "musique.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return tmp_path


def run_of(*more, questions="musique.jsonl", index="index", method="arag"):
    return ["eval", "run", "--questions", questions, "--index", index, "--method", method, *more]


def by_server(server, *more):
    return ["--model", f"openai:gpt-5-mini@{server.url}", "--model-option", "max_retries=0", *more]


# --- from a download to a result ---


def test_one_command_from_a_download_to_a_report(arag, folder):
    code, out, err = arag(*run_of("--model", "extractive", "--out", "results"))
    assert (code, err) == (0, "Ingesting 4 paragraphs into index\n")
    assert re.match(
        r"arag 5 of 5 answered(?: \(no answer found: \d\))?, Contain-Acc [\d.]+%, \$0.00\nWritten: results", out
    )
    records = record_file(folder / "results", "arag").read()
    assert sorted(records) == [f"2hop__{n}" for n in range(5)]
    with open_index(folder / "index") as index:
        assert [document.id for document in index.documents()] == ["paragraphs-1"]
    assert all(record["gold_documents"] == ["paragraphs-1"] and record["gold_seen"] for record in records.values())
    assert (folder / "results" / "report.html").exists()
    plan = load_plan(folder / "results")
    assert (plan.model, plan.judge, plan.max_steps, plan.asked) == ("extractive", None, 15, 5)


def test_run_again_it_goes_on_from_anywhere(arag, folder, monkeypatch):
    assert arag(*run_of("--limit", 2, "--model", "extractive", "--out", "r1"))[0] == 0
    first = record_file(folder / "r1", "arag").read()
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    places = {"questions": "../musique.jsonl", "index": "../elsewhere/../index"}
    code, out, err = arag(*run_of("--model", "extractive", "--out", "../r1", **places))
    assert (code, err) == (0, "")  # nothing is ingested again
    assert "5 of 5 answered" in out
    assert first.items() <= record_file(folder / "r1", "arag").read().items()


def test_step_limits_and_efforts_make_a_run_each(arag, folder):
    with serve(Replies()) as server:
        more = ["--max-steps", 1, "--max-steps", 9, "--reasoning-effort", "low", "--reasoning-effort", "high"]
        code, out, _ = arag(*run_of(*by_server(server, *more), "--limit", 1, "--out", "scale"))
    assert (code, out.count("1 of 1 answered")) == (0, 4)
    plans = {place.name: load_plan(place) for place in (folder / "scale").iterdir() if place.is_dir()}
    settings = {name: (plan.max_steps, plan.model_options.get("reasoning_effort")) for name, plan in plans.items()}
    limits = {"max-steps-1": (1, None), "max-steps-9": (9, None)}
    assert settings == {**limits, "effort-low": (15, "low"), "effort-high": (15, "high")}
    assert record_file(folder / "scale/max-steps-1", "arag").read()["2hop__0"]["stop_reason"] == "max_steps"
    assert len(server.requests) == len({json.dumps(request, sort_keys=True) for request in server.requests})


# --- the index ---


def test_another_index_of_the_same_name_is_noticed(arag, folder):
    more = ["--model", "extractive", "--limit", 1, "--out", "r1"]
    texts = ["Boso the Elder was a count.", "Boso the Elder was a count.", "Boso the Elder was a king!!"]
    for number, (text, refused) in enumerate(zip(texts, (False, False, True), strict=True)):
        run_ingest([{"id": "mine", "text": text}], folder / "index")
        code, _, err = arag(*run_of(*more))
        assert (code == 1, "contents was" in err) == (refused, refused)
        if number == 0:  # an index of one's own is left as it is
            assert "Warning: none of the questions' gold documents ('Lothair II #" in err
        shutil.rmtree(folder / "index")
    assert arag("eval", "report", "r1", "--no-pages")[0] == 0  # reports need no index


# --- errors ---


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["eval", "run"], 2, "Missing option"),
        (run_of(method="a-rag"), 1, "no method 'a-rag' (No module named 'a-rag'); valid methods: "),
        (run_of(questions="none.jsonl"), 1, "No such file or directory: 'none.jsonl'"),
        (run_of(questions="plain.jsonl"), 1, "run `arag ingest` first"),
        (run_of("--model", "extractive", method="ma-rag"), 1, "ma-rag needs a language model"),
        (run_of("--set", "arag.x=1"), 1, "arag: x: Extra inputs are not permitted; valid settings: none"),
        (run_of("--set", "direct.x=1"), 1, "give METHOD.NAME=VALUE for one of the methods arag"),
        (run_of("--model-option", "temperature"), 1, "NAME=VALUE is needed"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(arag, folder, arguments, code, message):
    (folder / "plain.jsonl").write_text('{"id": 1, "question": "Who?", "answer": "B"}')
    before = sorted(folder.iterdir())
    refused, out, err = arag(*arguments, "--max-cost", 1)
    assert (refused, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert sorted(folder.iterdir()) == before


def test_failed_questions_are_shown_and_asked_again(arag, folder):
    with serve(Replies(instead={n: Failure(400, message=f"[no] {n}") for n in range(4)})) as server:
        code, out, err = arag(*run_of(*by_server(server, "--concurrency", 1)))
        assert code == 1
        assert re.match(r"arag 1 of 5 answered, Contain-Acc 20.0%, \$0.0\d\n", out)
        lines = err.splitlines()
        assert re.match(r"Failed: 2hop__0: ModelError: the server replied with status 400: \[no\] 0", lines[1])
        assert "1 more such questions are in the records." in lines
        code, out, err = arag(*run_of(*by_server(server, "--json")))
        assert (code, err) == (0, "")
        summary = json.loads(out)
        assert summary["folder"] == "runs/musique"
        assert (summary["methods"][0]["contain"], summary["methods"][0]["failed"]) == (1.0, 0)


# --- judges, money and options ---


def test_the_most_cost_is_that_of_all_methods_and_runs(arag, folder):
    with serve(Replies()) as server:
        more = by_server(server, "--concurrency", 1, "--json")
        price = json.loads(arag(*run_of(*more, "--limit", 1))[1])["methods"][0]["cost"] / STEPS
        code, out, err = arag(*run_of(*more, "--method", "direct", "--max-cost", 9.5 * price))
        first, second = json.loads(out)["methods"]
        assert (code, len(server.requests)) == (1, 10)
        assert (first["answered"], second["answered"]) == (3, 0)
        assert err.count("--max-cost is reached") == 2


METHOD = '''
from typing import ClassVar
from pydantic import BaseModel
from arag.evaluation.method import Method

class Part(BaseModel):
    words: int

class Preparing(Method):
    """Reads three parts before the first question."""

    name: ClassVar[str] = "preparing"
    title: ClassVar[str] = "Preparing"

    def prepare(self, session):
        return session.ask_all("You read.", [f"Read part {n}." for n in range(3)], Part, title="Parts")

    def answer(self, question, session, prepared):
        return str(prepared[0].words)

METHODS = [Preparing]
'''


def test_work_before_the_first_question_is_done_once_for_all_runs(arag, folder):
    (folder / "preparing_method.py").write_text(METHOD)
    broken = [1]

    def respond(_, request):
        failing = "Read part 1" in str(request) and broken
        return Failure(400) if failing else {**chat('{"words": 7}'), "model": "gpt-5-mini"}

    with serve(respond) as server:
        command = run_of(*by_server(server), "--method", "direct", method="preparing_method")
        code, out, err = arag(*command, "--out", "r1")
        assert code == 1
        assert "preparing 0 of 5 answered" in out
        assert "direct 5 of 5 answered" in out
        assert "Parts: 3 model calls, " in err
        assert "The run ended, with 5 questions not begun: the server replied with status 400" in err
        assert "Traceback" not in err
        broken.clear()
        before = len(server.requests)
        assert arag(*command, "--out", "r1")[0] == 0
        assert len(server.requests) <= before + 2
        before = len(server.requests)
        assert arag(*command, "--out", "r2")[0] == 0  # another run asks the questions anew, and nothing of the index
        assert len(server.requests) == before + 5
    for run in ("r1", "r2"):
        assert load_plan(folder / run).methods["preparing"].preparation["model_calls"] == 3


def test_clients_of_models_leave_waiting_to_the_run(arag, folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with serve(Replies(instead={0: Failure(429, headers={"Retry-After": "1"})})) as server:
        code, *_ = arag(*run_of("--model", f"openai:gpt-5-mini@{server.url}", "--limit", 1))
    assert (code, [sent["x-stainless-retry-count"] for sent in server.headers]) == (0, ["0"] * (STEPS + 1))


def test_where_no_credit_is_left_nobody_waits(arag, folder):
    refusal = Failure(429, headers={"x-should-retry": "false"}, message="You exceeded your current quota")
    with serve(Replies(instead={0: refusal})) as server:
        code, _, err = arag(*run_of(*by_server(server), "--limit", 1))
    assert (code, len(server.requests), "exceeded your current quota" in err) == (1, 1, True)


@pytest.mark.parametrize("method", ["direct", "preparing_method"])
def test_a_run_that_waits_for_a_busy_server_can_be_interrupted(method, arag, folder):
    (folder / "preparing_method.py").write_text(METHOD)
    arag(*run_of("--model", "extractive", method="direct"))
    with serve(lambda *_: Failure(429, headers={"Retry-After": "600"})) as server:
        command = [sys.executable, "-c", ARAG, *run_of(*by_server(server), "--out", "r1", method=method)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert any("is asked again in 600 s" in line for line in process.stderr)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=60)
            finally:
                process.kill()
    assert process.returncode == INTERRUPTED
    assert "Interrupted.\n" in err  # threads that have not heard of it may say more


def test_no_file_of_a_run_holds_a_secret(arag, folder):
    printed = []
    with serve(Replies(instead={0: Failure(400, message="no, says http://me:pa55w0rd@127.0.0.1/v1")})) as server:
        address = f"openai:gpt-5-mini@{server.url}"
        secret = ["--model-option", 'default_headers={"Authorization": "Basic pa55w0rd", "X-Gate": "h3ader"}']
        more = ["--model", address, "--judge", address, *secret, "--concurrency", 1, "--limit", 2, "--out", "run"]
        for expected in (1, 0):
            code, *text = arag(*run_of(*more))
            assert code == expected
            printed += text
        assert server.headers[0]["authorization"] == "Basic pa55w0rd"
        assert server.headers[0]["x-gate"] == "h3ader"
    printed += arag("eval", "report", "run")[1:] + arag("eval", "failures", "run", "--index", "index")[1:]
    plan = load_plan(folder / "run")
    assert (plan.model, plan.judge) == (f"openai:gpt-5-mini@{server.url}",) * 2
    assert plan.model_options == {"default_headers": "***"}
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"run.json", "arag.jsonl", "report.html", "calls.sqlite3"} <= {file.name for file in files}
    for word in ("pa55w0rd", "h3ader"):
        assert [file.name for file in files if word.encode() in file.read_bytes()] == []
        assert word not in "".join(printed)


def test_a_judge_adds_llm_acc_and_progress_is_drawn_on_a_terminal(arag, folder, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(terminal.err, "_force_terminal", True)
    with serve(Replies()) as server:
        code, out, err = arag(*run_of(*by_server(server), "--judge", f"openai:gpt-5-mini@{server.url}"))
        assert len(server.requests) == 5 * STEPS + 5
    assert code == 0
    assert "5 of 5 answered, LLM-Acc 100.0%, Contain-Acc 100.0%, $0.00" in out
    assert "5 of 5 answered, LLM-Acc 100.0%, Contain-Acc 100.0%, $0.00" in err


def test_a_run_is_not_gone_on_with_by_a_method_whose_code_has_changed(arag, folder, monkeypatch):
    file = folder / "silent_method.py"
    file.write_text(METHOD.replace("prepare(", "no_work("))
    command = run_of("--model", "extractive", "--limit", 1, method="silent_method")
    arag(*command)
    record_file(folder / "runs/musique", "preparing").file.touch()
    monkeypatch.delitem(sys.modules, "silent_method")
    file.write_text(f"{file.read_text()}# another code\n")
    code, _, err = arag(*command)
    assert code == 1
    assert re.search(r"holds another run \(preparing\.code was '\w{12}', now '\w{12}'\): give another folder", err)
