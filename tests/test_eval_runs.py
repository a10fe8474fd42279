"""A run is killed, refused, limited and resumed: nothing is done twice, and nothing is lost."""

import asyncio
import datetime as dt
import errno
import itertools
import json
import operator
import os
import random
import re
import signal
import threading
import time
import traceback
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph

import http_server
from arag.errors import InputError, StorageError
from arag.evaluation import patience, runs
from arag.evaluation.budget import Budget
from arag.evaluation.datasets import Question
from arag.evaluation.judge import Judge
from arag.evaluation.methods import Method, Options, method
from arag.evaluation.preparation import load_preparations
from arag.evaluation.records import RecordFile, record_answer, record_failure
from arag.evaluation.runs import (
    Plan,
    Runner,
    count_spent,
    load_plan,
    load_records,
    name_payer,
    open_run,
    record_file,
)
from arag.evaluation.store import Result, Store, store_folder
from arag.graph.state import InputState, OutputState, State
from arag.models.embedders import Embedder
from arag.models.prices import cost
from arag.models.usage import model_call, total
from arag.retrieval.index import open_index
from arag.testing import ScriptedModel
from eval_runs import STEPS, Replies, answer, load, number_of, questions, runner
from fakes import HashEmbeddings
from forked import processes
from openai_server import Failure, chat, serve

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

PLAN = Plan(questions="questions.json", index="index", model="openai:gpt-5-mini")
LIMITED = Failure(429)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "arag.jsonl"


@pytest.fixture
def quick(monkeypatch):
    """Pauses of no length to speak of."""
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(patience, "_MAX_PAUSE", 0.05)


def whole_lines(file):
    data = file.read_bytes() if file.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def spent(records):
    budget = Budget()
    for record in records:
        budget.count(record)
    return budget.spent


def ids(file):
    return [record["question_id"] for record in whole_lines(file)]


# --- what is recorded ---


def test_a_record(small_index, file):
    with serve(Replies()) as server:
        (record,) = answer(small_index, server, questions(1), file).values()
    assert (record["question_id"], record["answer"], record["aliases"]) == ("q0", "Boso the Elder", ["Boso"])
    assert (record["prediction"], record["error"], record["stop_reason"]) == (
        "Boso the Elder [boso:0]",
        None,
        "answered",
    )
    assert (record["steps"], len(record["trace"]), len(record["model_calls"])) == (STEPS, STEPS - 1, STEPS)
    assert record["retrieved_tokens"] == sum(entry["retrieved_tokens"] for entry in record["trace"]) > 0
    assert record["usage"]["input_tokens"] == 100 * STEPS
    assert record["cost"] == pytest.approx(cost(record["model_calls"]))
    assert record["seconds"] > 0
    assert (record["contain"], record["exact_match"], record["judgement"]) == (True, False, None)
    assert record["gold_seen"] in {0.0, 1.0}
    assert [message["type"] for message in record["messages"]] == ["human", *["ai", "tool"] * (STEPS - 1), "ai"]


def test_aliases_and_gold_documents_count(small_index, file):
    question = Question("1", "Who?", "Hugh", ("Boso",), ("boso", "lothair"))
    state = {
        "answer": "Boso", "stop_reason": "answered", "steps": 1, "usage": None, "model_calls": [], "messages": [],
        "trace": [{"chunk_ids": ["boso:0", "none:0"], "new_chunks": [], "retrieved_tokens": 7},
                  {"chunk_ids": ["lothair:0"], "new_chunks": ["lothair:0"], "retrieved_tokens": 5}],
    }  # fmt: skip
    record = record_answer(question, state, 1.0, small_index)
    assert (record["contain"], record["contain_with_aliases"], record["exact_match"], record["f1"]) == (
        False,
        True,
        True,
        1,
    )
    assert (record["gold_seen"], record["gold_read"], record["retrieved_tokens"]) == (1.0, 0.5, 12)


def test_what_no_json_holds_is_recorded_all_the_same(file):
    record = record_failure(Question("1", "Half a character: \ud83d", "B", fields={"x": b"bytes"}), {}, "E", 0)
    RecordFile(file).append(record)
    (known,) = RecordFile(file).read().values()
    assert (known["question"], known["fields"]) == ("Half a character: ?", {"x": "b'bytes'"})


# --- kills ---


def be_killed(url, index, file, count, concurrency):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background is started to ignore it
    """A run in a process of its own."""
    with open_index(index, embedder=HashEmbeddings()) as opened:
        from arag.models.chat import load_model

        model = load_model(f"openai:gpt-5-mini@{url}", max_retries=0)
        Runner(method("arag"), opened, model, concurrency=concurrency).run(questions(count), RecordFile(Path(file)))


def start(server, index, file, *, count=12, concurrency=3):
    process = processes.Process(target=be_killed, args=(server.url, index.path, str(file), count, concurrency))
    process.start()
    return process


def wait_until(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        assert process.is_alive()
        time.sleep(0.002)


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_at_any_moment_goes_on_where_it_was(small_index, file, kills):
    chance = random.Random(17)
    count = 4 * kills
    replies = Replies(seconds=0.02)
    kept = []
    with serve(replies) as server:
        for _ in range(kills):
            before = len(server.requests)
            process = start(server, small_index, file, count=count)
            enough = before + chance.randint(4, 10)
            wait_until(lambda enough=enough: len(server.requests) >= enough, process)
            time.sleep(chance.random() * 0.02)  # anywhere between two requests
            process.kill()
            process.join()
            assert len(ids(file)) == len(set(ids(file)))
            kept.append((len(server.requests), set(ids(file))))
        process = start(server, small_index, file, count=count)
        process.join(120)
        assert process.exitcode == 0
    assert sorted(ids(file)) == sorted(f"q{n}" for n in range(count))
    assert all(record["error"] is None and record["contain"] for record in whole_lines(file))
    asked = [f"q{number_of(request)}" for request in server.requests]
    assert all(known.isdisjoint(asked[requests:]) for requests, known in kept)  # what is recorded is not asked again
    assert len(asked) <= count * STEPS + kills * 3 * STEPS  # only what was under way at a kill is
    assert all(before <= after for (_, before), (_, after) in itertools.pairwise(kept))
    with serve([]) as server:
        answer(small_index, server, questions(count), file)


@pytest.mark.parametrize("cut", [1, 7, 500, -1])
def test_half_a_line_is_cut_off(small_index, file, cut):
    with serve(Replies()) as server:
        answer(small_index, server, questions(3), file)
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(lines[0] + lines[1] + lines[2][:cut])
        done = set(RecordFile(file).read())
        assert len(done) == 2
        answer(small_index, server, questions(3), file)
    assert sorted(ids(file)) == ["q0", "q1", "q2"]
    assert len(file.read_bytes().splitlines()) == 3
    assert sum(replies_of(server).values()) == 4


def replies_of(server):
    return Counter(request["messages"][1]["content"] for request in server.requests if len(request["messages"]) == 2)


def test_a_line_that_is_no_record_is_named(file):
    file.write_text('{"question_id": "q0"}\nnot json\n')
    with pytest.raises(InputError, match=r"arag.jsonl, line 2 is not a record of a run"):
        RecordFile(file).read()
    file.write_text("[1]\n")
    with pytest.raises(InputError, match="line 1"):
        RecordFile(file).read()


def test_a_full_disk_leaves_no_half_line(small_index, file, monkeypatch):
    with serve(Replies()) as server:
        answer(small_index, server, questions(2), file)
        before = file.read_bytes()
        write = RecordFile._write

        class Full:
            def __init__(self, out):
                self.out = out

            def __getattr__(self, name):
                return getattr(self.out, name)

            def write(self, data):
                if len(data) < 100:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return self.out.write(data[:-50])

        monkeypatch.setattr(RecordFile, "_write", lambda self, out, line: write(self, Full(out), line))
        with pytest.raises(StorageError, match=r"cannot be written to .*: No space left on device"):
            answer(small_index, server, questions(4), file, concurrency=2)
        assert file.read_bytes() == before
        monkeypatch.undo()
        assert len(answer(small_index, server, questions(4), file)) == 4


def test_threads_append_whole_lines(file):
    records = RecordFile(file)
    long = "x" * 100_000

    def append(n):
        for k in range(10):
            records.append(record_failure(Question(f"{n}-{k}", long, "B"), {}, "E", 0))

    threads = [threading.Thread(target=append, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids(file)) == len(set(ids(file))) == 60


def test_two_processes_do_not_write_one_file(small_index, file):
    with serve(Replies(seconds=0.3)) as server:
        process = start(server, small_index, file, count=3, concurrency=1)
        wait_until(lambda: server.requests, process)
        with pytest.raises(InputError, match="another process is writing to"):
            answer(small_index, server, questions(3), file)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    with serve(Replies()) as server:  # a kill leaves no lock
        assert len(answer(small_index, server, questions(3), file)) == 3


def test_an_interrupt_keeps_what_is_done(small_index, file):
    replies = Replies(seconds=0.2)  # the run must not end before it is interrupted
    with serve(replies) as server:
        process = start(server, small_index, file, concurrency=2)
        wait_until(lambda: len(ids(file)) >= 2, process)
        os.kill(process.pid, signal.SIGINT)
        process.join(120)
        assert process.exitcode == 1
        assert len(answer(small_index, server, questions(12), file)) == 12
    assert len(ids(file)) == 12


# --- plans ---


def test_a_run_of_another_plan_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_run(tmp_path, PLAN)
    record_file(tmp_path, "arag").file.touch()
    open_run(tmp_path, PLAN)
    other = Plan(
        questions="questions.json", index="other", model="openai:gpt-4o-mini", options=Options(max_steps=5),
        model_options={"reasoning_effort": "high"},
    )  # fmt: skip
    with pytest.raises(InputError) as error:
        open_run(tmp_path, other)
    told = str(error.value)
    assert (
        f"index was '{tmp_path}/index', now '{tmp_path}/other'; model was 'openai:gpt-5-mini', now 'openai:gpt-4o-mini'"
        in told
    )
    assert "model_options was {}, now {'reasoning_effort': 'high'}" in told
    assert "'max_steps': 15" in told
    assert "'max_steps': 5" in told
    assert "questions was" not in told
    assert "--out" in told
    kept = load_plan(tmp_path)
    assert (kept.questions, kept.index) == (str(tmp_path / "questions.json"), str(tmp_path / "index"))
    assert (kept.model, kept.options, kept.model_options) == (PLAN.model, PLAN.options, {})


def test_the_same_files_under_another_name_are_the_same_plan(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    open_run(tmp_path, PLAN)
    record_file(tmp_path, "arag").file.touch()
    (tmp_path / "linked").symlink_to(tmp_path / "index")
    open_run(tmp_path, replace(PLAN, questions=str(tmp_path / "questions.json"), index="./index"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    open_run(tmp_path, replace(PLAN, questions="../questions.json", index="../linked"))
    plan = load_plan(tmp_path)
    assert (plan.questions, plan.index) == (str(tmp_path / "questions.json"), str(tmp_path / "index"))


def test_without_records_any_plan_may_come(tmp_path):
    open_run(tmp_path, PLAN)
    open_run(tmp_path, replace(PLAN, questions="q.json", index="other", model="extractive"))
    plan = load_plan(tmp_path)
    assert (Path(plan.questions).name, Path(plan.index).name, plan.model) == ("q.json", "other", "extractive")


def test_work_at_index_time_has_come_of_a_plan(tmp_path):
    open_run(tmp_path, PLAN)
    done = {"graph-rag": {"seconds": 1, "usage": total([]), "cost": 0.5}}
    (tmp_path / "prepared.json").write_text(json.dumps(done))
    with pytest.raises(InputError, match="model was"):
        open_run(tmp_path, replace(PLAN, model="extractive"))


def test_a_run_keeps_its_name_and_a_new_one_gets_another(tmp_path):
    first = open_run(tmp_path / "run", PLAN)
    assert open_run(tmp_path / "run", replace(PLAN, model="extractive")).id == first.id  # it may have paid already
    record_file(tmp_path / "run", "arag").file.touch()
    (tmp_path / "run").rename(tmp_path / "moved")
    moved = open_run(tmp_path / "moved", replace(PLAN, model="extractive"))
    assert name_payer(tmp_path / "moved", moved, "arag") == f"{first.id}/arag"
    assert open_run(tmp_path / "run", PLAN).id != first.id
    (tmp_path / "moved/run.json").write_text(
        json.dumps({**json.loads((tmp_path / "moved/run.json").read_text()), "id": ""})
    )
    older = open_run(tmp_path / "moved", replace(PLAN, model="extractive"))
    assert name_payer(tmp_path / "moved", older, "arag") == str(tmp_path / "moved")


def test_what_unfinished_work_has_cost_is_not_forgotten(tmp_path):
    budget = Budget()
    count_spent(tmp_path / "run", budget)  # there is no run yet
    plan = open_run(tmp_path / "run", replace(PLAN, index=str(tmp_path / "index")))
    count_spent(tmp_path / "run", budget)
    assert budget.spent == 0
    tokens = {"input_tokens": 1_000_000, "output_tokens": 0, "total_tokens": 1_000_000}
    call = model_call(
        AIMessage("Read.", usage_metadata=tokens, response_metadata={"model_name": "gpt-5-mini"}), 1.0, step=1
    )
    payers = [f"{plan.id}/hipporag2", f"{plan.id}/graphrag", "another/graphrag"]
    results = {bytes([n]): Result("Read.", [call], payer) for n, payer in enumerate(payers)}
    Store(store_folder(tmp_path / "index")).keep(results)
    count_spent(tmp_path / "run", budget)
    assert budget.spent == pytest.approx(0.5)
    done = {"graphrag": {"seconds": 1.0, "usage": total([call]), "cost": 2.0}}
    (tmp_path / "run/prepared.json").write_text(json.dumps(done))
    finished = Budget()
    count_spent(tmp_path / "run", finished)
    assert finished.spent == pytest.approx(2.25)  # the unfinished work of one, and what is recorded of the other


def facts(**settings):
    return {**method("direct").facts(Options()), "settings": settings}


def test_methods_with_their_own_settings_may_come_later(tmp_path):
    open_run(tmp_path, replace(PLAN, methods={"direct": facts()}))
    record_file(tmp_path, "direct").file.touch()
    hippo = replace(
        PLAN, methods={"hipporag2": facts(facts=4, links=1)}, options=Options(settings={"hipporag2": {"facts": 4}})
    )
    open_run(tmp_path, hippo)
    open_run(tmp_path, replace(PLAN, methods={"direct": facts()}))
    given = Options(settings={"hipporag2": {"facts": 4, "links": 1}})
    open_run(tmp_path, replace(hippo, options=given))  # a default that is given
    open_run(tmp_path, replace(hippo, methods={"hipporag2": facts(facts=4, links=1, added=2)}))  # a later version's
    kept = load_plan(tmp_path)
    assert kept.options.settings == {"hipporag2": {"facts": 4}}
    assert {name: each["settings"] for name, each in kept.methods.items()} == {
        "direct": {}, "hipporag2": {"facts": 4, "links": 1}}  # fmt: skip
    with pytest.raises(InputError, match=r"\(hipporag2.facts was 4, now 7\)"):
        open_run(tmp_path, replace(hippo, methods={"hipporag2": facts(facts=7, links=1)}))


def test_settings_of_a_run_that_did_not_keep_its_methods(tmp_path):
    open_run(tmp_path, PLAN)
    record_file(tmp_path, "hipporag2").file.touch()
    changed = Options(settings={"hipporag2": {"facts": 7}})
    with pytest.raises(InputError, match=r"\(settings was {}, now {'hipporag2': {'facts': 7}}\)"):
        open_run(tmp_path, replace(PLAN, options=changed, methods={"hipporag2": facts(facts=7)}))
    open_run(tmp_path, replace(PLAN, methods={"hipporag2": facts(facts=5)}))


def test_a_run_over_another_index_is_refused(tmp_path):
    contents = {"embedder": "HashEmbeddings:hash-64", "documents": 4, "fingerprint": "a1"}
    open_run(tmp_path, PLAN)
    record_file(tmp_path, "arag").file.touch()
    open_run(tmp_path, replace(PLAN, contents=contents))
    open_run(tmp_path, PLAN)  # before it is looked into
    assert load_plan(tmp_path).contents == contents
    told = r"the documents of the index in .*index was 4, now 5; the fingerprint of .* was 'a1', now 'b2'\)"
    with pytest.raises(InputError, match=told):
        open_run(tmp_path, replace(PLAN, contents={**contents, "documents": 5, "fingerprint": "b2"}))


def test_what_a_run_tells_of_itself(tmp_path):
    open_run(tmp_path, replace(PLAN, asked=5))
    record_file(tmp_path, "arag").file.touch()
    open_run(tmp_path, replace(PLAN, asked=20))
    open_run(tmp_path, replace(PLAN, asked=10))
    plan = load_plan(tmp_path)
    assert (plan.asked, plan.version) == (20, version("langgraph-arag"))
    assert dt.date.fromisoformat(plan.date) <= dt.datetime.now(dt.UTC).date()


def test_only_records_are_taken_for_records(tmp_path):
    open_run(tmp_path, PLAN)
    (tmp_path / "index.corpus.jsonl").write_text('{"id": "a", "text": "A paragraph."}\n')
    record_file(tmp_path, "arag").append(record_failure(questions(1)[0], {}, "E", 0))
    assert list(load_records(tmp_path)) == ["arag"]


def test_a_judge_may_come_later_and_not_be_changed(tmp_path):
    open_run(tmp_path, PLAN)
    record_file(tmp_path, "arag").file.touch()
    open_run(tmp_path, replace(PLAN, judge="openai:gpt-5-mini"))
    open_run(tmp_path, PLAN)
    assert load_plan(tmp_path).judge == "openai:gpt-5-mini"
    with pytest.raises(InputError, match="judge was 'openai:gpt-5-mini', now 'openai:gpt-4o'"):
        open_run(tmp_path, replace(PLAN, judge="openai:gpt-4o"))


@pytest.mark.parametrize("content", ["", "{}", "[]", "no json", '{"questions": "q"}', '{"options": {"x": 1}}', "5"])
def test_a_damaged_plan(tmp_path, content):
    (tmp_path / runs.RUN_FILE).write_text(content)
    with pytest.raises(InputError, match=r"run.json is damaged"):
        load_plan(tmp_path)


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        (None, "methods: Input should be a valid dictionary"),
        ([], "methods: Input should be a valid dictionary"),
        ({"mine": {}}, "methods.mine.title: Field required"),
        ({"mine": {"title": "Mine"}}, "methods.mine.description: Field required"),
    ],
)
def test_a_plan_whose_methods_are_damaged(tmp_path, methods, told):
    open_run(tmp_path, PLAN)
    kept = json.loads((tmp_path / runs.RUN_FILE).read_text())
    (tmp_path / runs.RUN_FILE).write_text(json.dumps({**kept, "methods": methods}))
    with pytest.raises(InputError, match=rf"run.json is damaged: {told}"):
        load_plan(tmp_path)
    del kept["methods"]  # an earlier version's
    (tmp_path / runs.RUN_FILE).write_text(json.dumps(kept))
    assert load_plan(tmp_path).methods == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([], "Input should be an object"),
        (None, "Input should be an object"),
        ({"mine": 5}, "mine: Input should be an object"),
        ({"mine": {"seconds": 1, "cost": None}}, "mine.usage: Field required"),
    ],
)
def test_damaged_figures_of_index_time_work(tmp_path, content, told):
    (tmp_path / "prepared.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=rf"prepared.json is damaged: {told}"):
        load_preparations(tmp_path)


def test_no_run(tmp_path):
    with pytest.raises(InputError, match="there is no run in"):
        load_plan(tmp_path)
    assert load_records(tmp_path) == {}


def test_questions_that_have_changed_are_refused(small_index, file):
    with serve(Replies()) as server:
        answer(small_index, server, questions(2), file)
        changed = [*questions(1), Question("q1", "Question number 1: who else?", "Boso the Elder")]
        with pytest.raises(InputError, match="the question 'q1' or its gold answer has changed"):
            answer(small_index, server, changed, file)
        assert len(server.requests) == 2 * STEPS


# --- failures ---


def test_failed_questions_are_tried_again(small_index, file):
    replies = Replies(instead={1: Failure(500), 4: Failure(400)})
    with serve(replies) as server:
        records = answer(small_index, server, questions(4), file, concurrency=1)
        errors = {name: record["error"] for name, record in records.items() if record["error"]}
        assert list(errors) == ["q0", "q1"]
        assert re.match(r"\w+Error: .*500", errors["q0"])
        assert re.match(r"\w+Error: .*400", errors["q1"])
        records = answer(small_index, server, questions(4), file)
        assert [record["error"] for record in records.values()] == [None] * 4
        number = len(server.requests)
        answer(small_index, server, questions(4), file)
        assert len(server.requests) == number
    assert len(ids(file)) == 6  # of a question's records the last one counts


def test_a_failed_questions_calls_are_paid_for(small_index, file):
    with serve(Replies(instead={2: Failure(500)})) as server:
        (record,) = answer(small_index, server, questions(1), file).values()
    assert record["error"]
    assert (record["steps"], len(record["model_calls"]), len(record["trace"])) == (2, 2, 2)
    assert record["cost"] == pytest.approx(cost(record["model_calls"]))
    assert record["usage"]["input_tokens"] == 200
    assert (record["prediction"], record["contain"], record["stop_reason"]) == ("", False, None)


@pytest.mark.parametrize("name", ["arag", "naive-rag", "direct"])
def test_responses_without_a_reply_are_failures_and_no_bugs(small_index, file, name):
    with serve(lambda *_: {**chat(""), "choices": []}) as server:
        Runner(method(name), small_index, load(server)).run(questions(2), RecordFile(file))
    assert all(record["error"] for record in whole_lines(file))


@pytest.mark.parametrize("name", ["naive-rag", "direct"])
@pytest.mark.parametrize("arguments", ["[1]", '{"a": 1}', "{"])
def test_a_tool_call_that_nobody_asked_for_is_an_empty_answer_and_no_bug(small_index, file, name, arguments):
    with serve(lambda *_: chat(None, ("c1", "search", arguments))) as server:
        Runner(method(name), small_index, load(server)).run(questions(1), RecordFile(file))
    (record,) = whole_lines(file)
    assert (record["prediction"], record["error"], record["traceback"]) == ("", None, None)


def bug(_):
    raise ZeroDivisionError("a bug") from KeyError("the cause")


def test_an_error_that_nobody_expected_is_one_questions_failure(small_index, file):
    model = ScriptedModel(AIMessage("Boso"), bug, *[AIMessage("Boso")] * 2)
    runner(small_index, model, concurrency=1).run(questions(4), RecordFile(file))
    records = RecordFile(file).read()
    assert {name: record["error"] for name, record in records.items()} == {
        "q0": None, "q1": "ZeroDivisionError: a bug", "q2": None, "q3": None}  # fmt: skip
    told = records["q1"]["traceback"]
    assert "in bug" in told
    assert "the cause" in told
    assert "ZeroDivisionError: a bug\n" in told
    assert {records[name]["traceback"] for name in ("q0", "q2", "q3")} == {None}
    runner(small_index, ScriptedModel(AIMessage("Boso")), concurrency=1).run(questions(4), RecordFile(file))
    assert RecordFile(file).read()["q1"]["error"] is None


def test_a_reply_that_is_no_json_fails_its_question_only(small_index, file):
    """A method that reads what its model says."""

    async def parse(state):
        number = state["messages"][-1].text.split()[2]
        told = json.loads("{" if number == "1:" else '{"answer": "Boso"}')
        return {**told, "stop_reason": "answered", "steps": 1, "trace": [], "model_calls": [], "usage": total([])}

    def make(*_):
        builder = StateGraph(State, input_schema=InputState, output_schema=OutputState)
        return builder.add_node("parse", parse).add_edge(START, "parse").add_edge("parse", END).compile()

    Runner(Method("own", "Own", "", make), small_index, ScriptedModel()).run(questions(3), RecordFile(file))
    records = RecordFile(file).read()
    assert [record["prediction"] for record in records.values() if record["error"] is None] == ["Boso", "Boso"]
    assert records["q1"]["error"].startswith("JSONDecodeError: Expecting property name")


def test_a_state_without_an_answer_fails_its_question_only(small_index, file):
    def make(*_):
        builder = StateGraph(State, input_schema=InputState, output_schema=OutputState)
        return builder.add_node("idle", lambda _: {}).add_edge(START, "idle").add_edge("idle", END).compile()

    Runner(Method("own", "Own", "", make), small_index, ScriptedModel()).run(questions(2), RecordFile(file))
    assert [record["error"] for record in whole_lines(file)] == ["KeyError: 'answer'"] * 2


def test_a_bug_in_one_question_after_another_ends_the_run_and_the_records_stay(small_index, file):
    model = ScriptedModel(*[AIMessage("Boso")] * 3, *[bug] * 4, AIMessage("Boso"), *[bug] * 5)
    with pytest.raises(ZeroDivisionError, match="a bug") as error:
        runner(small_index, model, concurrency=1).run(questions(20), RecordFile(file))
    told = "".join(traceback.format_exception(error.value))
    assert "in bug" in told
    assert "the cause" in told
    errors = [record["error"] for record in whole_lines(file)]
    assert errors == [None] * 3 + ["ZeroDivisionError: a bug"] * 4 + [None] + ["ZeroDivisionError: a bug"] * 5
    model = ScriptedModel(*[AIMessage("Boso")] * 16)
    runner(small_index, model, concurrency=1).run(questions(20), RecordFile(file))
    assert all(record["error"] is None for record in RecordFile(file).read().values())


def test_failed_calls_of_a_provider_never_end_a_run(small_index, file):
    with serve(lambda *_: Failure(400)) as server:
        assert len(answer(small_index, server, questions(12), file, concurrency=2)) == 12


def test_what_is_under_way_when_a_bug_ends_the_run_is_kept(small_index, file):
    begun, ended = threading.Barrier(10), threading.Event()
    told = []

    def together(_):
        begun.wait(30)
        assert ended.wait(30)
        return AIMessage("Boso")

    def at_once(_):
        begun.wait(30)
        raise ZeroDivisionError("a bug")

    def on_record(record):
        told.append(record["error"])
        if len(told) == 5:  # all of them bugs: they have ended the run
            ended.set()

    model = ScriptedModel(*[together] * 5, *[at_once] * 5)
    with pytest.raises(ZeroDivisionError):
        runner(small_index, model, concurrency=10, on_record=on_record).run(questions(10), RecordFile(file))
    assert told == ["ZeroDivisionError: a bug"] * 5 + [None] * 5
    assert Counter(record["error"] for record in whole_lines(file)) == Counter(told)


def test_what_is_under_way_when_a_record_cannot_be_told_of_is_kept(small_index, file):
    told = []

    def once(record):
        told.append(record)
        if len(told) == 1:
            raise StorageError("no room for the figures")

    replies = Replies(seconds=0.05)
    with serve(replies) as server, pytest.raises(StorageError, match="no room"):
        answer(small_index, server, questions(9), file, concurrency=3, on_record=once)
    assert len(ids(file)) == 3


def test_a_failed_question_can_be_looked_at(small_index, file):
    with serve(Replies(instead={2: Failure(500)})) as server:
        (record,) = answer(small_index, server, questions(1), file).values()
    assert [message["type"] for message in record["messages"]] == ["human", "ai", "tool", "ai", "tool"]
    assert record["messages"][1]["data"]["tool_calls"][0]["name"] == "keyword_search"


# --- rate limits ---


def test_what_was_done_beside_a_refused_call_is_not_done_again(small_index, file, quick):
    """A method of any graph goes on where it was."""
    done = Counter()

    class LimitedError(Exception):
        status_code = 429

    def node(name, *, refusals=0):
        async def work(_):
            done[name] += 1
            await asyncio.sleep(0.01 * (1 + refusals))
            if done[name] <= refusals:
                raise LimitedError
            return {"found": [(name, {"when": dt.date(2026, 2, 1)})]}

        return work

    class Found(State):
        found: Annotated[list, operator.add]

    def end(state):
        answer = " ".join(sorted(name for name, _ in state["found"]))
        calls = {"trace": [], "model_calls": [], "usage": total([])}
        return {"answer": answer, "stop_reason": "answered", "steps": 1, "citations": [], **calls}

    def make(*_):
        builder = StateGraph(Found, input_schema=InputState, output_schema=OutputState)
        builder.add_node("first", node("first")).add_node("left", node("left"))
        builder.add_node("right", node("right", refusals=2)).add_node("end", end)
        builder.add_edge(START, "first").add_edge("first", "left").add_edge("first", "right")
        return builder.add_edge(["left", "right"], "end").add_edge("end", END).compile()

    Runner(Method("own", "Own", "", make), small_index, ScriptedModel()).run(questions(1), RecordFile(file))
    (record,) = whole_lines(file)
    assert (record["error"], record["prediction"]) == (None, "first left right")
    assert done == {"first": 1, "left": 1, "right": 3}


@pytest.mark.parametrize(
    ("headers", "count"),
    [({}, 12), ({"retry-after": "0.02"}, 4), ({"retry-after": "soon"}, 4), ({"retry-after": "-1"}, 4)],
)
def test_rate_limits_lose_nothing_and_pay_nothing_twice(small_index, file, quick, headers, count):
    replies = Replies(instead={n: Failure(429, headers=headers) for n in range(2, 60, 4)})
    with serve(replies) as server:
        records = answer(small_index, server, questions(count), file, concurrency=4)
    assert len(records) == count
    assert all(record["error"] is None and len(record["model_calls"]) == STEPS for record in records.values())
    # A question goes on at the step that was refused.
    assert replies.asked == Counter({(n, step): 1 for n in range(count) for step in range(STEPS)})
    assert len(server.requests) > count * STEPS + count / 3


def test_everybody_waits(small_index, file):
    times = []

    def respond(number, request):
        times.append(time.monotonic())
        return Failure(429, headers={"retry-after": "0.5"}) if number < 4 else Replies()(number, request)

    with serve(respond) as server:
        answer(small_index, server, questions(12), file, concurrency=4)
    assert min(times[4:]) - max(times[:4]) > 0.4
    assert len(times) == 4 + 12 * STEPS


def test_patience_ends_and_the_next_run_tries_again(small_index, file, quick):
    with serve(lambda *_: LIMITED) as server:
        (record,) = answer(small_index, server, questions(1), file).values()
    assert re.match(r"\w*RateLimitError: ", record["error"])
    assert len(server.requests) == patience._MAX_PAUSES + 1
    with serve(Replies()) as server:
        (record,) = answer(small_index, server, questions(1), file).values()
    assert record["error"] is None


def test_patience_is_lost_over_pauses_without_progress_only(small_index, file, quick):
    between = patience._MAX_PAUSES // 2 + 1
    limited = {step * (between + 1) + n: LIMITED for step in range(STEPS) for n in range(between)}
    with serve(Replies(instead=limited)) as server:
        (record,) = answer(small_index, server, questions(1), file).values()
    assert record["error"] is None
    assert len(server.requests) == STEPS * (between + 1)


def test_no_waiting_helps_where_the_money_is_spent(small_index, file):
    class Spent(Failure):
        pass

    def no_quota(self, server, failure):
        body = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}).encode()
        self._send(429, "application/json", body)

    with pytest.MonkeyPatch.context() as patch, serve(lambda *_: Spent()) as server:
        patch.setattr(http_server._Handler, "_fail", no_quota)
        (record,) = answer(small_index, server, questions(1), file).values()
    assert "quota" in record["error"]
    assert len(server.requests) == 1


def test_the_clients_own_retries_come_first(small_index, file):
    with serve(Replies(instead={0: Failure(429, headers={"retry-after": "0.01"}), 2: Failure(500)})) as server:
        model = load(server, max_retries=3)
        runner(small_index, model).run(questions(1), RecordFile(file))
    (record,) = whole_lines(file)
    assert record["error"] is None
    assert len(server.requests) == STEPS + 2


@pytest.mark.parametrize(
    ("error", "limited"),
    [
        (type("Anthropics", (Exception,), {"status_code": 529})(), True),
        (type("Googles", (Exception,), {"code": 429})(), True),
        (type("Https", (Exception,), {"response": type("R", (), {"status_code": 429, "headers": {}})()})(), True),
        (type("Other", (Exception,), {"status_code": 500})(), False),
        (type("Money", (Exception,), {"status_code": 429, "code": "insufficient_quota"})(), False),
        (ValueError("429"), False),
    ],
)
def test_what_is_a_rate_limit(error, limited):
    assert patience.is_rate_limit(error) is limited


# --- judges ---


def judge_of(server):
    return Judge(load(server), "openai:gpt-5-mini")


def test_a_judge_that_comes_later_judges_what_is_there(small_index, file):
    with serve(Replies()) as server:
        before = answer(small_index, server, questions(3), file)
    with serve([]) as silent, serve(Replies(judging=True)) as server:
        after = answer(small_index, silent, questions(3), file, judge=judge_of(server))
    assert len(server.requests) == 3
    judgement = after["q1"]["judgement"]
    assert (judgement["correct"], judgement["reason"]) == (True, "It is so.")
    assert judgement["cost"] > 0
    assert {name: {**record, "judgement": None, "judge_paid": 0.0} for name, record in after.items()} == before
    with serve([]) as silent:
        answer(small_index, silent, questions(3), file, judge=judge_of(silent))
        answer(small_index, silent, questions(3), file)


def test_unjudged_answers_are_judged_by_the_next_run(small_index, file, monkeypatch):
    monkeypatch.setattr("arag.evaluation.structured._PAUSE", 0)
    with serve(Replies()) as model, serve(Replies(judging=True, instead=dict.fromkeys(range(3), chat("?")))) as server:
        records = answer(small_index, model, questions(2), file, judge=judge_of(server), concurrency=1)
        assert [record["judgement"]["correct"] for record in records.values()] == [None, True]
        assert [record["contain"] for record in records.values()] == [True, True]
        records = answer(small_index, model, questions(2), file, judge=judge_of(server))
        assert [record["judgement"]["correct"] for record in records.values()] == [True, True]
        assert len(model.requests) == 2 * STEPS


def test_rate_limits_of_the_judge_are_waited_for(small_index, file, quick):
    limited = Replies(judging=True, instead=dict.fromkeys(range(5), LIMITED))
    with serve(Replies()) as model, serve(limited) as server:
        records = answer(small_index, model, questions(4), file, judge=judge_of(server), concurrency=2)
    assert all(record["judgement"]["correct"] for record in records.values())
    assert sum(limited.asked.values()) == 4


def test_an_answer_outlives_a_bug_of_the_judge(small_index, file):
    judge = Judge(ScriptedModel(bug), "own")
    runner(small_index, ScriptedModel(AIMessage("Boso")), judge=judge).run(questions(1), RecordFile(file))
    (record,) = whole_lines(file)
    assert (record["prediction"], record["error"], record["judge_paid"]) == ("Boso", None, 0.0)
    assert record["judgement"]["correct"] is None
    assert record["judgement"]["reason"] == "the judge failed: ZeroDivisionError: a bug"
    assert "in bug" in record["traceback"]


def test_failed_questions_are_not_judged(small_index, file):
    with serve(lambda *_: Failure(400)) as model, serve([]) as server:
        (record,) = answer(small_index, model, questions(1), file, judge=judge_of(server)).values()
    assert record["judgement"] is None


# --- costs ---


def test_no_question_is_begun_once_the_money_is_spent(small_index, file):
    with serve(Replies()) as server:
        one = next(iter(answer(small_index, server, questions(1), file).values()))["cost"]
        assert one > 0
        assert len(answer(small_index, server, questions(9), file, max_cost=3.5 * one, concurrency=1)) == 4
        assert len(answer(small_index, server, questions(9), file, max_cost=3.5 * one, concurrency=1)) == 4
        assert len(answer(small_index, server, questions(9), file, concurrency=1)) == 9


def test_the_judges_cost_counts(small_index, file):
    with serve(Replies()) as model, serve(Replies(judging=True)) as server:
        judge = judge_of(server)
        (record,) = answer(small_index, model, questions(1), file, judge=judge).values()
        both = record["cost"] + record["judgement"]["cost"]
        assert spent([record]) == pytest.approx(both)
        assert len(answer(small_index, model, questions(9), file, judge=judge, max_cost=1.5 * both, concurrency=1)) == 2


def test_what_earlier_attempts_have_cost_is_not_forgotten(small_index, file):
    replies = Replies(instead={2: Failure(500), 5: Failure(500)})
    with serve(replies) as server:
        first = answer(small_index, server, questions(1), file)["q0"]
        second = answer(small_index, server, questions(1), file)["q0"]
        third = answer(small_index, server, questions(1), file)["q0"]
    assert [record["error"] is None for record in (first, second, third)] == [False, False, True]
    assert [len(record["model_calls"]) for record in (first, second, third)] == [2, 2, 3]
    assert third["cost"] == pytest.approx(cost(third["model_calls"]))
    assert [record["paid"] / first["cost"] for record in (first, second, third)] == pytest.approx([1, 2, 3.5])
    assert (third["judge_paid"], spent([third])) == (0.0, third["paid"])


def test_what_earlier_verdicts_have_cost_is_not_forgotten(small_index, file, monkeypatch):
    monkeypatch.setattr("arag.evaluation.structured._PAUSE", 0)
    unusable = {**chat("?"), "model": "gpt-5-mini"}
    with serve(Replies()) as model, serve(Replies(judging=True, instead=dict.fromkeys(range(3), unusable))) as server:
        (first,) = answer(small_index, model, questions(1), file, judge=judge_of(server)).values()
        (second,) = answer(small_index, model, questions(1), file, judge=judge_of(server)).values()
    assert (first["judgement"]["correct"], second["judgement"]["correct"]) == (None, True)
    one = second["judgement"]["cost"]
    assert (first["judge_paid"], second["judge_paid"]) == pytest.approx((3 * one, 4 * one))
    assert second["paid"] == first["paid"] == first["cost"]


def test_repeated_runs_do_not_overrun_what_may_be_spent(small_index, file):
    failing = Replies(instead={n: Failure(500) for n in range(2, 600, 3)})
    with serve(failing) as server:
        one = next(iter(answer(small_index, server, questions(1), file).values()))["cost"]
        for _ in range(4):
            answer(small_index, server, questions(9), file, max_cost=3.5 * one, concurrency=1)
        assert spent(RecordFile(file).read().values()) == pytest.approx(4 * one)
        number = len(server.requests)
        answer(small_index, server, questions(9), file, max_cost=3.5 * one, concurrency=1)
        assert len(server.requests) == number


def test_a_cost_that_is_not_known_cannot_be_limited(small_index, file, tmp_path, monkeypatch):
    together = threading.Barrier(3)

    def respond(number, _):
        if number < 3:
            together.wait(60)
        return chat("Boso")

    with serve(respond) as server:  # of a model that has no price
        with pytest.raises(InputError, match=r"the price of some-model is unknown.* ARAG_PRICES names"):
            answer(small_index, server, questions(9), file, max_cost=1.0, concurrency=3)
        assert sorted(ids(file)) == ["q0", "q1", "q2"]  # they are paid, and kept
        with pytest.raises(InputError, match="some-model"):
            answer(small_index, server, questions(9), file, max_cost=1.0)
        assert len(server.requests) == 3
        prices = {"prices": [{"model": "some-model", "input": 1.0, "cached_input": 1.0, "output": 1.0}]}
        (tmp_path / "prices.json").write_text(json.dumps(prices))
        monkeypatch.setenv("ARAG_PRICES", str(tmp_path / "prices.json"))
        records = answer(small_index, server, questions(9), file, max_cost=1.0)
        assert [record["paid"] for record in records.values()] == [pytest.approx(110e-6)] * 9
        assert len(server.requests) == 9


def test_a_judge_without_a_price_is_named(small_index, file):
    verdict = {**chat('{"reason": "So it is.", "correct": true}'), "model": "own"}
    with serve(Replies()) as model, serve(lambda *_: verdict) as server:
        with pytest.raises(InputError, match="the price of openai:gpt-5-mini is unknown"):
            answer(small_index, model, questions(9), file, judge=judge_of(server), max_cost=1.0, concurrency=1)
        assert [record["judgement"]["correct"] for record in whole_lines(file)] == [True]
        with pytest.raises(InputError, match="the price of openai:gpt-5-mini is unknown"):
            answer(small_index, model, questions(9), file, max_cost=1.0)
        assert len(server.requests) == 1


# --- what is loaded once ---


class Load:
    """Loads an embedder; a test says what happens meanwhile."""

    def __init__(self):
        self.loads = 0
        self.meanwhile = lambda: None

    def __call__(self):
        self.loads += 1
        self.meanwhile()
        return HashEmbeddings()


@pytest.fixture
def unloaded_index(small_index):
    load = Load()
    name = small_index.info().embedder
    with open_index(small_index.path, embedder=Embedder(name, load)) as opened:
        yield opened, load


def test_the_first_questions_time_is_its_own(unloaded_index, file, monkeypatch):
    index, load = unloaded_index
    passed = [0.0]
    monkeypatch.setattr(runs, "time", SimpleNamespace(perf_counter=lambda: time.perf_counter() + passed[0]))
    load.meanwhile = lambda: passed.append(passed.pop() + 1_000.0)
    model = ScriptedModel(*[AIMessage("Boso")] * 2)
    Runner(method("naive-rag"), index, model, concurrency=1).run(questions(2), RecordFile(file))
    assert load.loads == 1
    assert max(record["seconds"] for record in whole_lines(file)) < 500


def test_an_event_loop_goes_on_while_an_embedder_is_loaded(unloaded_index, file):
    index, load = unloaded_index
    goes_on = threading.Event()
    found = []

    async def work():
        loop = asyncio.get_running_loop()

        def wait_for_the_loop():
            loop.call_soon_threadsafe(goes_on.set)
            found.append(goes_on.wait(60))

        load.meanwhile = wait_for_the_loop
        model = ScriptedModel(AIMessage("Boso"))
        await Runner(method("naive-rag"), index, model).arun(questions(1), RecordFile(file))

    asyncio.run(work())
    assert (load.loads, found) == (1, [True])


def test_nothing_is_loaded_that_is_not_needed(unloaded_index, file):
    index, load = unloaded_index
    runs_of = [ScriptedModel(AIMessage("Boso")), ScriptedModel()]
    for model in runs_of:  # the second one has nothing to do
        Runner(method("direct"), index, model).run(questions(1), RecordFile(file))
    assert load.loads == 0


def test_an_embedder_that_cannot_be_loaded_fails_the_questions_that_need_it(small_index, file, no_embedder):
    with no_embedder(), serve(Replies()) as server:
        records = answer(small_index, server, questions(1), file)
        assert [record["error"] for record in records.values()] == [None]  # it searched for keywords only
        other = RecordFile(file.with_name("naive-rag.jsonl"))
        Runner(method("naive-rag"), small_index, load(server)).run(questions(1), other)
    assert [record["error"] for record in other.read().values()] == ["EmbedderError: the embedding service went away"]


# --- many at once ---


def test_many_questions_are_asked_at_once(small_index, file, monkeypatch):
    monkeypatch.setattr(http_server._QuietServer, "request_queue_size", 256)
    together = threading.Barrier(40)  # more than a pool of threads has
    replies = Replies()

    def respond(number, request):
        if number < 40:  # none is answered before all are asked
            together.wait(60)
        return replies(number, request)

    with serve(respond) as server:
        records = answer(small_index, server, questions(40), file, concurrency=40)
    assert [record["error"] for record in records.values()] == [None] * 40
    with serve(Replies(seconds=0.01)) as server:
        answer(small_index, server, questions(4), file.with_name("few.jsonl"), concurrency=2)
    assert server.respond.most <= 2


def test_threads_are_no_limit_where_embedders_are_waited_for(small_index, file, monkeypatch):
    together = threading.Barrier(40)
    embed = small_index.embedder.embed_query

    def embed_together(text):
        together.wait(60)  # as if they came over a network
        return embed(text)

    loaded = threading.Event()

    def embed_together_once_loaded(text):
        if loaded.is_set():
            return embed_together(text)
        loaded.set()
        return embed(text)

    monkeypatch.setattr(small_index.embedder, "embed_query", embed_together_once_loaded)
    model = ScriptedModel(*[AIMessage("Boso")] * 40)
    Runner(method("naive-rag"), small_index, model, concurrency=40).run(questions(40), RecordFile(file))
    assert len(ids(file)) == 40


def test_methods_and_models_one_after_another(small_index, tmp_path):
    """Connections that one run leaves open serve the next."""
    with serve(Replies()) as server:
        for number, name in enumerate(["arag", "direct", "arag"]):
            Runner(method(name), small_index, load(server)).run(questions(2), RecordFile(tmp_path / f"{number}.jsonl"))
            assert all(record["error"] is None for record in whole_lines(tmp_path / f"{number}.jsonl"))


def test_in_an_event_loop_of_ones_own(small_index, file):
    model = ScriptedModel(*[AIMessage("Boso")] * 3)
    asyncio.run(runner(small_index, model).arun(questions(3), RecordFile(file)))
    assert len(ids(file)) == 3


def test_where_a_loop_is_running_one_is_told_what_to_do(small_index, file):
    async def in_a_notebook():
        runner(small_index, ScriptedModel()).run(questions(1), RecordFile(file))

    with pytest.raises(RuntimeError, match="await `arun` instead"):
        asyncio.run(in_a_notebook())


def test_questions_do_not_see_each_other(small_index, file):
    model = ScriptedModel(*[AIMessage("Boso")] * 5)
    runner(small_index, model).run(questions(5), RecordFile(file))
    assert [len([m for m in made.messages if isinstance(m, HumanMessage)]) for made in model.calls] == [1] * 5


def test_a_concurrency_of_none(small_index, file):
    with pytest.raises(InputError, match="the concurrency is 0"):
        runner(small_index, ScriptedModel(), concurrency=0).run(questions(1), RecordFile(file))
    runner(small_index, ScriptedModel()).run([], RecordFile(file))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"max_tokens": 9, "thinking": {"budget_tokens": 5}, "top_k": 3}, None),
        ({"api_key": "s"}, {"api_key": "***"}),
        ({"default_headers": {"A": "s"}, "extra_headers": None}, {"default_headers": "***", "extra_headers": "***"}),
        ({"model_kwargs": {"extra_query": {"sig": "s"}, "n": 1}}, {"model_kwargs": {"extra_query": "***", "n": 1}}),
        ({"http": [{"Password": "s"}, "x"]}, {"http": [{"Password": "***"}, "x"]}),
        ({"access_token": "s", "OAuth": "s"}, {"access_token": "***", "OAuth": "***"}),
        ({"base_url": "http://u:s@host/v1?sig=s"}, {"base_url": "http://host/v1?***"}),
    ],
)
def test_options_that_may_be_secret_are_not_written_down(options, shown):
    assert Plan(questions="q", index="i", model="m", model_options=options).model_options == (shown or options)


def test_an_error_that_nobody_expected_tells_no_password(small_index, file):
    def fail(_):
        raise ZeroDivisionError("while asking http://me:pa55w0rd@host/v1")

    def make(*_):
        builder = StateGraph(State, input_schema=InputState, output_schema=OutputState).add_node("fail", fail)
        return builder.add_edge(START, "fail").compile()

    Runner(Method("own", "Own", "", make), small_index, ScriptedModel()).run(questions(1), RecordFile(file))
    (record,) = whole_lines(file)
    assert record["error"] == "ZeroDivisionError: while asking http://***@host/v1"
    assert "while asking http://***@host/v1" in record["traceback"]
    assert "pa55w0rd" not in json.dumps(record)
