"""Runs: what is recorded, and that nothing is lost or paid for twice, whatever ends them."""

import errno
import json
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import Timeout

from arag.errors import InputError
from arag.evaluation import records
from arag.evaluation.cache import BudgetError, CallCache, Store, without_secrets
from arag.evaluation.datasets import Question
from arag.evaluation.method import Answer, Session
from arag.evaluation.methods import all_methods, make_method
from arag.evaluation.plan import Plan, load_plan, open_run
from arag.evaluation.records import RecordFile, make_record, record_file
from arag.evaluation.run_context import RunContext
from arag.evaluation.runs import answer_questions, prepare
from arag.models.chat import load_model
from arag.models.prices import cost
from arag.models.usage import total
from arag.retrieval.index import open_index
from eval_runs import STEPS, Replies, answer, play, questions, reply_in_role
from fakes import HashEmbeddings
from forked import processes
from http_server import Failure
from lab import Player, make_lab
from openai_server import chat, serve


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def ids(folder, name="arag"):
    return [record["question_id"] for record in RecordFile(folder / f"{name}.jsonl").each()]


# --- what is recorded ---


def test_a_record_tells_what_was_asked_retrieved_and_answered(small_index, folder):
    with serve(Replies()) as server:
        (record,) = answer(small_index, server, questions(1), folder).values()
    assert (record["question_id"], record["answer"], record["aliases"]) == ("q0", "Boso the Elder", ["Boso"])
    assert (record["prediction"], record["error"]) == ("Boso the Elder [boso:0]", None)
    assert (record["stop_reason"], record["steps"], len(record["trace"])) == ("answered", STEPS, STEPS - 1)
    assert record["retrieved_tokens"] == sum(entry["retrieved_tokens"] for entry in record["trace"])
    assert record["evidence_tokens"] == sum(entry["evidence_tokens"] for entry in record["trace"])
    assert record["retrieved_tokens"] > record["evidence_tokens"] > 0
    assert record["usage"]["input_tokens"] == 100 * STEPS
    assert record["cost"] == pytest.approx(cost(record["model_calls"]))
    assert record["seconds"] > 0
    assert (record["contain"], record["exact_match"], record["judgement"]) == (True, False, None)
    assert [message["type"] for message in record["messages"]] == ["human", *["ai", "tool"] * (STEPS - 1), "ai"]


def test_aliases_and_gold_documents_count(small_index):
    session = Session(RunContext(small_index, Player(play=str), None))
    session.retrieved([small_index.get("boso:0")], "who", tokens=7)
    record = make_record(
        Question("1", "Who?", "Hugh", ("Boso",), ("boso", "lothair")), session, Answer("Boso", ["boso:0"])
    )
    assert (record["contain"], record["contain_with_aliases"], record["exact_match"], record["f1"]) == (0, 1, 1, 1)
    assert (record["gold_seen"], record["gold_read"], record["gold_cited"]) == (0.5, 0.5, 0.5)
    assert record["retrieved_tokens"] == 7


# --- kills ---


def run_in_child(url, index, folder, name, count, concurrency):
    class Server:
        pass

    Server.url = url
    with open_index(index, embedder=HashEmbeddings()) as opened:
        answer(opened, Server, questions(count), Path(folder), name=name, concurrency=concurrency)


def start(server, index, folder, *, name="arag", count=12, concurrency=3):
    process = processes.Process(
        target=run_in_child, args=(server.url, index.path, str(folder), name, count, concurrency)
    )
    process.start()
    return process


def wait_until(condition, process):
    deadline = time.monotonic() + 120
    while process.is_alive() and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill_and_finish(server, index, folder, *, name, kills, count, chance, step):
    """Kill a run at random moments, after up to `step` more requests each, and let the last one finish."""
    for _ in range(kills):
        enough = len(server.requests) + chance.randint(1, step)
        process = start(server, index, folder, name=name, count=count)
        wait_until(lambda enough=enough: len(server.requests) >= enough, process)
        time.sleep(chance.random() * 0.02)  # anywhere between two requests
        process.kill()
        process.join()
    process = start(server, index, folder, name=name, count=count)
    process.join(300)
    assert process.exitcode == 0
    assert sorted(ids(folder, name)) == sorted(f"q{n}" for n in range(count))


def test_a_run_that_is_killed_goes_on_and_asks_only_what_was_under_way_again(small_index, folder):
    kills, count = 2, 8
    with serve(Replies(seconds=0.02)) as server:
        kill_and_finish(
            server, small_index, folder, name="arag", kills=kills, count=count, chance=random.Random(17), step=10
        )
        asked = len(server.requests)
    assert all(record["contain"] for record in RecordFile(folder / "arag.jsonl").read().values())
    assert count * STEPS <= asked <= count * STEPS + kills * 3  # three calls are under way at a kill


def methods_that_run_here():
    """Yield the names of all methods; one whose commands need bubblewrap is skipped without it."""
    for name in all_methods():
        needs_bubblewrap = name == "dci" and shutil.which("bwrap") is None
        yield pytest.param(name, marks=pytest.mark.skipif(needs_bubblewrap, reason="bubblewrap is not installed"))


@pytest.mark.slow
@pytest.mark.parametrize("name", methods_that_run_here())
def test_whatever_the_method_a_kill_costs_no_more_than_the_calls_under_way(name, small_index, folder):
    def respond(_, request):
        time.sleep(0.02)
        return reply_in_role(request)

    with serve(respond) as server:
        kill_and_finish(server, small_index, folder, name=name, kills=4, count=12, chance=random.Random(name), step=40)
        asked = [json.dumps([request["messages"], request.get("tools")]) for request in server.requests]
    assert len(asked) - len(set(asked)) <= 4 * 3 * 3  # at each kill three questions, each with three calls


def test_half_a_line_is_written_again(small_index, folder):
    with serve(Replies()) as server:
        answer(small_index, server, questions(2), folder)
        file = folder / "arag.jsonl"
        file.write_bytes(file.read_bytes()[:-500])
        assert len(answer(small_index, server, questions(2), folder)) == 2
        assert len(server.requests) == 2 * STEPS
    assert sorted(ids(folder)) == ["q0", "q1"]


def test_a_full_disk_leaves_the_records_as_they_were(small_index, folder, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with serve(Replies()) as server:
        answer(small_index, server, questions(2), folder)
        monkeypatch.setattr(records.os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device"):
            answer(small_index, server, questions(4), folder)
        monkeypatch.undo()
        assert len(answer(small_index, server, questions(4), folder)) == 4
        assert len(server.requests) == 4 * STEPS


def test_two_processes_do_not_write_one_file(small_index, folder):
    with serve(Replies(seconds=0.3)) as server:
        process = start(server, small_index, folder, count=3, concurrency=1)
        wait_until(lambda: server.requests, process)
        with pytest.raises(Timeout):
            answer(small_index, server, questions(3), folder)
        process.kill()
        process.join()
    with serve(Replies()) as server:  # a kill leaves no lock
        assert len(answer(small_index, server, questions(3), folder)) == 3


@pytest.mark.parametrize("name", all_methods())
def test_what_a_method_has_paid_for_is_never_asked_for_again(name, small_index, tmp_path):
    settings = {"sandbox": "none"} if name == "dci" else {}  # the model of this test runs no commands
    method = make_method(all_methods()[name], settings)
    lab, asked = make_lab(small_index, play, tmp_path), questions(2)

    def answers():
        prepared, preparation = prepare(method, lab, lab.model)
        file = RecordFile(tmp_path / "records.jsonl")
        list(answer_questions(method, lab, prepared, asked, file))
        records = file.read()
        file.file.unlink()
        shares = ("prediction", "error", "retrieved_tokens", "notes", "usage", "gold_seen", "exact_match")
        return [[records[each.id][share] for share in shares] for each in asked], total(preparation)

    first, paid = answers()
    calls = len(lab.model.calls)
    lab.model.play = lambda messages: AssertionError(f"asked again: {messages[0].text[:80]}")
    again, free = answers()
    assert [error for _, error, *_ in first] == [None, None]
    assert again == first
    assert (len(lab.model.calls), free) == (calls, paid)


# --- rate limits ---

BUSY = Failure(429, headers={"Retry-After": "1"})


def test_pauses_for_a_busy_server_are_no_seconds_of_a_question(small_index, folder):
    # The second step of the agent is refused, and the judge's call.
    replies = Replies(seconds=0.01, instead={1: BUSY, STEPS + 1: BUSY})
    with serve(replies) as server:
        began = time.perf_counter()
        (record,) = answer(small_index, server, questions(1), folder, judged=True).values()
        seconds = time.perf_counter() - began
    assert (record["error"], record["judgement"]["correct"], record["steps"]) == (None, True, STEPS)
    assert replies.asked == {(0, step): 1 for step in (*range(STEPS), "judge")}
    each = [made["seconds"] for made in record["model_calls"]]  # that of the first comes from the cache
    assert (min(each) >= 0.01, sum(each) <= record["seconds"] <= seconds - 2) == (True, True)


@pytest.mark.parametrize(("name", "task"), [("hipporag2", "Write down the facts"), ("ma-rag", "You take notes")])
def test_work_before_the_first_question_and_calls_side_by_side_wait_too(name, task, small_index, folder):
    refused, asked = [], []

    def respond(_, request):
        if request["messages"][0]["content"].startswith(task) and not refused:
            refused.append(request)
            return BUSY
        asked.append(json.dumps(request["messages"]))
        return reply_in_role(request)

    with serve(respond) as server:
        began = time.perf_counter()
        (record,) = answer(small_index, server, questions(1), folder, name=name).values()
        seconds = time.perf_counter() - began
    assert (record["error"], len(refused), len(set(asked))) == (None, 1, len(asked))
    each = [made["seconds"] for made in record["model_calls"]]
    assert record["seconds"] == pytest.approx(sum(each))  # the model's time, also of calls side by side
    assert (min(each) > 0, max(each) <= seconds - 1) == (True, True)


def test_a_question_whose_server_stays_busy_fails_and_the_next_run_asks_it_again(small_index, folder, monkeypatch):
    monkeypatch.setattr("arag.evaluation.method.MAX_WAIT_SECONDS", 1.5)
    replies = Replies(instead={1: BUSY, 2: BUSY})
    with serve(replies) as server:
        (record,) = answer(small_index, server, questions(1), folder).values()
        assert ("429" in record["error"], len(server.requests)) == (True, 3)
        (record,) = answer(small_index, server, questions(1), folder).values()
    assert (record["error"], sorted(replies.asked.values())) == (None, [1] * STEPS)


# --- failures and judges ---


def test_an_empty_answer_is_a_failure_and_asked_for_again(small_index, folder):
    with serve([chat(""), chat("Boso")]) as server:
        errors = [answer(small_index, server, questions(1), folder, name="direct")["q0"]["error"] for _ in range(2)]
    assert errors == ["ValueError: the model's reply was empty", None]


def test_ten_failures_in_a_row_end_a_run(small_index, folder):
    with serve(lambda *_: Failure(400)) as server:
        with pytest.raises(InputError, match=r"10 questions in a row failed, the last one with: .*400"):
            answer(small_index, server, questions(30), folder, concurrency=1)
        assert len(ids(folder)) == 10


def test_a_judge_that_comes_later_judges_the_answers_that_are_there(small_index, folder):
    replies = Replies()
    with serve(replies) as server:
        answer(small_index, server, questions(2), folder)
        records = answer(small_index, server, questions(2), folder, judged=True)
    assert [record["judgement"]["correct"] for record in records.values()] == [True, True]
    assert sum(replies.asked.values()) == 2 * STEPS + 2


def test_an_answer_without_a_verdict_is_unjudged_and_judged_by_the_next_run(small_index, folder):
    no_verdict = chat('{"reason": "So.", "correct": "maybe"}')
    with serve(Replies(instead={STEPS: Failure(400), STEPS + 1: no_verdict})) as server:
        (record,) = answer(small_index, server, questions(1), folder, judged=True).values()
        assert (record["judgement"]["correct"], record["prediction"] != "") == (None, True)
        (record,) = answer(small_index, server, questions(1), folder, judged=True).values()
    assert record["judgement"]["correct"] is True


def test_a_question_that_has_changed_is_scored_again_by_the_replies_that_are_there(small_index, folder):
    with serve(Replies()) as server:
        answer(small_index, server, questions(1), folder)
        question = Question("q0", questions(1)[0].text, "Hugh", gold_documents=("hucbert",))
        (record,) = answer(small_index, server, [question], folder).values()
        assert (record["answer"], record["contain"], record["gold_read"]) == ("Hugh", False, 0)
        (record,) = answer(small_index, server, [replace(question, aliases=("Boso",))], folder).values()
    assert (record["contain_with_aliases"], len(server.requests)) == (True, STEPS)


# --- money ---


def test_a_limit_needs_a_price(small_index, folder):
    with serve([{**chat("Boso"), "model": "my-own"}]) as server, pytest.raises(BudgetError, match="price of my-own is"):
        answer(small_index, server, questions(2), folder, concurrency=1, limit=1.0)


# --- plans ---

FACTS = {"title": "T", "description": "D", "differs": "", "settings": {"x": 1}}
FACTS |= dict.fromkeys(("autonomous", "iterative", "interleaved"))


def plan(**changes):
    return Plan(**{"questions": "q.json", "index": "index", "model": "openai:gpt-5-mini"} | changes)


def test_a_run_of_another_plan_is_refused(tmp_path):
    open_run(tmp_path, plan())
    open_run(tmp_path, plan(index="other"))  # nothing was recorded yet
    record_file(tmp_path, "arag").file.touch()
    with pytest.raises(InputError, match=r"\(index was 'other', now 'third'; max_steps was 15, now 5\)"):
        open_run(tmp_path, plan(index="third", max_steps=5))
    assert load_plan(tmp_path).index == "other"


def test_a_judge_and_methods_may_come_later_but_not_change(tmp_path):
    open_run(tmp_path, plan(methods={"a": FACTS}, asked=10))
    record_file(tmp_path, "a").file.touch()
    open_run(tmp_path, plan(judge="openai:j", methods={"b": FACTS}, asked=5))
    both = load_plan(tmp_path)
    assert (both.judge, sorted(both.methods), both.asked) == ("openai:j", ["a", "b"], 10)
    with pytest.raises(InputError, match=r"a.x was 1, now 2"):
        open_run(tmp_path, plan(methods={"a": {**FACTS, "settings": {"x": 2}}}))


def test_methods_that_begin_at_once_are_all_in_the_plan(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: open_run(tmp_path, plan(methods={name: FACTS})), "abcdefgh"))
    assert sorted(load_plan(tmp_path).methods) == list("abcdefgh")


# --- secrets ---


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"max_tokens": 5, "api_key": "s", "timeout": 3}, {"max_tokens": 5, "api_key": "***", "timeout": 3}),
        ({"default_headers": {"X": "s"}, "extra": {"auth_token": "s", "n": [1]}},
         {"default_headers": "***", "extra": {"auth_token": "***", "n": [1]}}),
        ({"base": "http://u:p@host/v1?key=s"}, {"base": "http://***@host/v1?***"}),
    ],
)  # fmt: skip
def test_options_that_may_be_secret_are_not_written_down(options, shown):
    assert without_secrets(options) == plan(model_options=options).model_options == shown


def test_another_key_or_header_asks_nothing_again_and_another_option_does(folder, monkeypatch):
    def ask(key, **options):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        model = load_model(f"openai:gpt-5-mini@{server.url}", max_retries=0, **options)
        return model.model_copy(update={"cache": CallCache(Store(folder))}).invoke("Who?").text

    with serve([chat("one"), chat("two")]) as server:
        assert ask("k1", default_headers={"X-Gate": "a"}) == "one"
        assert ask("k2", default_headers={"X-Gate": "b"}) == "one"
        assert ask("k2", default_headers={"X-Gate": "b"}, reasoning_effort="low") == "two"
