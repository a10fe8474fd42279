"""`run_experiment`: experiments from Python, which can be left at any time and called again."""

import json
import os
import signal
import time
from typing import ClassVar

import pytest

from arag.errors import InputError
from arag.evaluation import Answer, Method, Question, load_records, run_experiment
from arag.evaluation.cache import BudgetError
from arag.evaluation.plan import load_plan
from arag.ingest.pipeline import run_ingest
from arag.models.chat import load_model
from arag.retrieval.index import open_index
from eval_runs import STEPS, Replies, questions
from forked import run_script
from http_server import Failure
from openai_server import chat, serve
from scripted import DOCUMENTS

ROWS = [{"id": each.id, "question": each.text, "answer": each.answer} for each in questions(4)]


class FirstChunk(Method):
    """No call: the beginning of the nearest chunk."""

    name = "first-chunk"
    title = "First chunk"
    characters: int = 40

    def answer(self, question, session, prepared):
        (chunk, *_) = session.search(question)
        return Answer(chunk.text[: self.characters], [chunk.id])


class Namesake(Method):
    """Another method of the same name."""

    name = "first-chunk"
    title = "Namesake"


class Nameless(Method):
    """Without a name."""


class Failing(Method):
    """Fails until it is repaired."""

    name: ClassVar = "failing"
    title: ClassVar = "Failing"
    broken: ClassVar = []

    def answer(self, question, session, prepared):
        if self.broken and question in self.broken:
            raise ValueError("it is broken")
        return "Boso"


@pytest.fixture
def folder(tmp_path, monkeypatch, quick_embedder):
    """A working folder with an index and a file of questions."""
    monkeypatch.chdir(tmp_path)
    run_ingest(DOCUMENTS, tmp_path / "index")
    (tmp_path / "q.json").write_text(json.dumps(ROWS))
    return tmp_path


def run(server, asked="q.json", methods="arag", **options):
    options = {"index": "index", "out": "r", "model": f"openai:gpt-5-mini@{server.url}"} | options
    return run_experiment(asked, methods=methods, **options)


def keys(records):
    return [(record["method"], record["question_id"]) for record in records]


# --- arguments ---


def test_each_method_answers_each_question_in_one_call_without_a_model(folder):
    records = list(run_experiment("q.json", "index", ["arag", FirstChunk], limit=2))
    assert sorted(keys(records)) == [(name, f"q{n}") for name in ("arag", "first-chunk") for n in range(2)]
    stored = load_records("runs/q")
    for record in records:
        own = {name: value for name, value in record.items() if name != "method"}
        assert json.loads(json.dumps(own)) == stored[record["method"]][record["question_id"]]
    assert (load_plan(folder / "runs/q").model, load_plan(folder / "runs/q").asked) == ("extractive", 2)


@pytest.mark.parametrize("asked", [ROWS, questions(4), iter(ROWS)], ids=["rows", "questions", "iterator"])
def test_questions_may_be_given_as_objects(asked, folder):
    records = list(run_experiment(asked, "index", FirstChunk))
    assert sorted(keys(records)) == [("first-chunk", f"q{n}") for n in range(4)]
    assert sorted(load_records("runs/experiment")["first-chunk"]) == [f"q{n}" for n in range(4)]


def test_an_object_of_a_method_has_settings(folder):
    (record,) = run_experiment("q.json", "index", FirstChunk(characters=7), limit=1, out="seven")
    assert len(record["prediction"]) <= 7
    assert load_plan(folder / "seven").methods["first-chunk"].settings["characters"] == 7
    with pytest.raises(InputError, match=r"first-chunk\.characters was 7, now 40"):
        list(run_experiment("q.json", "index", FirstChunk, limit=1, out="seven"))


def test_an_open_index_stays_open_and_its_limit_is_a_part_of_the_plan(folder):
    with open_index("index") as index:
        list(run_experiment("q.json", index, FirstChunk, out="all"))
        limited = index.limited_to(["teutberga"])
        records = list(run_experiment("q.json", limited, FirstChunk, out="one"))
        assert {record["citations"][0]["chunk_id"] for record in records} == {"teutberga:0"}
        with pytest.raises(InputError, match="contents was"):
            list(run_experiment("q.json", index, FirstChunk, out="one"))
        assert index.info().documents == len(DOCUMENTS)
    assert keys(run_experiment("q.json", "index", FirstChunk, out="all")) == [
        ("first-chunk", f"q{n}") for n in range(4)
    ]


def test_paragraphs_of_questions_are_ingested(folder, capsys):
    paragraphs = [
        {"title": "Boso", "paragraph_text": "Boso the Elder was the father of Teutberga.", "is_supporting": 1}
    ]
    records = run_experiment([ROWS[0] | {"paragraphs": paragraphs}], "new-index", FirstChunk)
    assert not (folder / "new-index").exists()
    (record,) = records
    assert (record["gold_read"], capsys.readouterr().out) == (1.0, "Ingesting 1 paragraphs into new-index\n")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"questions": "none.json"}, "none.json cannot be read"),
        ({"questions": [ROWS[0], ROWS[0]]}, "question 2: another question has the id 'q0'"),
        ({"questions": [{"id": "q", "question": "Who?"}]}, "question 1: 'answer': Field required"),
        ({"questions": []}, "no questions are given"),
        ({"methods": "a-rag"}, "no method 'a-rag'"),
        ({"methods": []}, "no method is given: name one, such as 'arag'"),
        ({"methods": [FirstChunk, Namesake]}, "two methods are named 'first-chunk'"),
        ({"methods": Nameless}, "the method Nameless has no name: give its class one"),
        ({"methods": [print]}, "<built-in function print> is not a method"),
        ({"methods": "ma-rag"}, "ma-rag needs a language model"),
        ({"model": "gpt"}, "unknown model 'gpt'"),
        ({"index": None}, "no location of the index is given"),
        ({"index": "host=db user=me"}, "looks like an address"),
        ({"limit": -1}, "limit is -1: it must be at least 1"),
        ({"max_steps": 0}, "max_steps is 0: it must be at least 1"),
        ({"presentation": "plain"}, "presentation is 'plain': valid are compact and paper"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_record_and_leaves_nothing_behind(changed, message, folder):
    before = sorted(folder.iterdir())
    with pytest.raises(InputError, match=message):
        run_experiment(**({"questions": "q.json", "index": "index", "methods": "arag"} | changed))
    assert sorted(folder.iterdir()) == before


# --- leaving and calling again ---


def test_a_loop_that_is_left_asks_nothing_more_and_pays_nothing_twice(folder):
    with serve(Replies(seconds=0.05)) as server:
        for record in run(server, concurrency=2):
            first = record["question_id"]
            break
        asked = len(server.requests)
        assert asked < len(ROWS) * STEPS
        records = list(run(server, concurrency=2))
        assert (keys(records)[0], len(records)) == (("arag", first), len(ROWS))
        assert len(server.requests) == len(ROWS) * STEPS  # the calls under way at the break were finished and kept
        assert keys(run(server)) == [("arag", f"q{n}") for n in range(len(ROWS))]
        assert len(server.requests) == len(ROWS) * STEPS
    assert asked >= STEPS


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises a KeyboardInterrupt, also if the tests run in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_the_calls_and_the_next_call_continues(folder, ctrl_c):
    replies = Replies(seconds=0.05)

    def respond(number, request):
        if number == STEPS + 1:
            ctrl_c()
        return replies(number, request)

    with serve(respond) as server:
        with pytest.raises(KeyboardInterrupt):
            list(run(server, concurrency=2))
        records = list(run(server, concurrency=2))
    assert sorted(keys(records)) == [("arag", f"q{n}") for n in range(len(ROWS))]
    assert len(server.requests) <= len(ROWS) * STEPS + 2  # two calls were under way


def test_leaving_ends_the_pause_for_a_busy_server(folder):
    def respond(number, request):
        if "number 0" in str(request["messages"]):
            return chat("Boso")
        return Failure(429, headers={"Retry-After": "600"})

    waits = []
    with serve(respond) as server:
        records = run(server, methods="direct", concurrency=2, announce=waits.append)
        assert next(records)["question_id"] == "q0"
        deadline = time.monotonic() + 60
        while not waits:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        records.close()
    assert waits[0].startswith("The model is asked again in 600 s")


def test_failed_questions_have_an_error_and_are_asked_again(folder):
    Failing.broken.append(questions(1)[0].text)
    records = run_experiment("q.json", "index", Failing, concurrency=1)  # which answers in their order
    assert [record["error"] for record in records] == ["ValueError: it is broken", None, None, None]
    Failing.broken.clear()
    assert [record["error"] for record in run_experiment("q.json", "index", Failing)] == [None] * 4


def test_a_budget_ends_the_loop_and_a_higher_one_continues(folder):
    with serve(Replies()) as server:
        (first,) = run(server, limit=1)
        with pytest.raises(BudgetError, match="--max-cost is reached"):
            list(run(server, concurrency=1, max_cost=1.5 * first["cost"]))
        assert len(list(run(server, max_cost=100))) == len(ROWS)
        assert len(server.requests) == len(ROWS) * STEPS


# --- models, judges and the command ---


def test_the_command_and_python_continue_each_others_runs(arag, folder):
    with serve(Replies()) as server:
        model = f"openai:gpt-5-mini@{server.url}"
        command = ["eval", "run", "--questions", "q.json", "--index", "index", "--method", "arag", "--model", model]
        assert arag(*command, "--limit", 2, "--out", "r")[0] == 0
        assert len(list(run(server, judge=model, limit=3))) == 3
        code, out, _ = arag(*command, "--judge", model, "--out", "r")
        assert (code, "4 of 4 answered, LLM-Acc 100.0%" in out) == (0, True)
        assert len(server.requests) == 4 * (STEPS + 1)


def test_a_chat_model_may_be_given_and_its_options_are_in_the_plan(folder):
    with serve(Replies()) as server:
        address = f"openai:gpt-5-mini@{server.url}"
        chosen, other = (load_model(address, reasoning_effort=each, api_key="s3cret") for each in ("low", "high"))
        assert len(list(run(server, model=chosen, judge=chosen, limit=1))) == 1
        with pytest.raises(InputError, match=r"model_options was .*'low'.*, now .*'high'"):
            list(run(server, model=other))
    plan = load_plan(folder / "r")
    assert (plan.model, plan.judge) == ("ChatOpenAI:gpt-5-mini",) * 2
    assert "s3cret" not in (folder / "r/run.json").read_text()


SCRIPT = """
from arag.evaluation import Method, run_experiment

class Constant(Method):
    '''Says the same each time.'''

    name = "constant"
    title = "Constant"

    def answer(self, question, session, prepared):
        return "{answer}"

for record in run_experiment("q.json", "index", Constant, limit={limit}, out="r"):
    print(record["question_id"], record["prediction"])
"""


def test_a_script_may_change_and_its_method_may_not(folder):
    def start(**values):
        (folder / "script.py").write_text(SCRIPT.format(**values))
        return run_script("script.py", folder)

    assert start(answer="Boso", limit=1) == "q0 Boso\n"
    assert start(answer="Boso", limit=2) == "q0 Boso\nq1 Boso\n"
    assert "holds another run (constant.code was" in start(answer="Hugh", limit=2)


def test_what_a_question_is_may_be_made_in_python(folder):
    question = Question("mine", "Who was the father of Teutberga?", "Boso the Elder", gold_documents=("boso",))
    (record,) = run_experiment([question], "index", FirstChunk, out="mine")
    assert record["gold_seen"] in {0.0, 1.0}
