"""Recorded tool calls are replayed without a model: what they show, what of it is gold, and which were unnecessary."""

import json
import re
import sys

import pytest
import replay

from arag.evaluation.cache import Store
from arag.evaluation.datasets import load_questions
from arag.evaluation.method import Session
from arag.evaluation.methods.agentic import ARAG
from arag.evaluation.plan import Plan, open_run
from arag.evaluation.records import record_file
from arag.evaluation.run_context import RunContext
from arag.evaluation.runs import answer_questions
from arag.ingest.pipeline import ingest
from arag.models.chat import load_model
from conftest import _ROOT
from fakes import HashEmbeddings

SHIP = "ships/grey-petrel-packet-schooner.md"
WRIGHT = "people/hesper-quillorne.md"
ISLAND = "places/skellavy.md"


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replayed") / "examples"
    with ingest(_ROOT / "examples" / "corpus", folder, embedder=HashEmbeddings()) as index:
        yield index


def recorded(*calls, gold=(SHIP, WRIGHT, ISLAND), answers=("1783",)):
    calls = [{"tool": tool, "args": args} for tool, args in calls]
    return {"corpus": "examples", "id": "q", "question": "When?", "answers": answers, "gold": gold, "calls": calls}


def read(*documents):
    return "chunk_read", {"chunk_ids": [f"{document}:0" for document in documents]}


def test_gold_is_counted_once(examples):
    (result,) = replay.replay([recorded(read(ISLAND, SHIP), read(SHIP), read(WRIGHT), read(SHIP))], examples)
    assert result.gold_shown == 1
    assert result.calls_until_all == 3
    assert result.answer_shown
    assert result.counts["chunk_read: calls"] == 4


def test_a_run_shows_the_same_when_it_is_replayed(examples, tmp_path, monkeypatch, capsys):
    questions = _ROOT / "examples" / "questions.json"
    folder = tmp_path / "run"
    open_run(folder, Plan(questions=str(questions), index=str(tmp_path / "examples"), model="extractive"))
    asked = load_questions(questions)[:3]
    lab = RunContext(examples, load_model("extractive"), Store(tmp_path / "kept"))
    method = ARAG()
    list(answer_questions(method, lab, method.prepare(Session(lab)), asked, record_file(folder, "arag")))
    run(monkeypatch, "record", folder, "--to", tmp_path / "calls.jsonl")
    calls = replay.read_recorded(tmp_path / "calls.jsonl")
    assert {one["corpus"] for one in calls} == {"examples"}
    assert {one["id"]: tuple(one["gold"]) for one in calls} == {q.id: q.gold_documents for q in asked}

    summary = replay.summarise(replay.replay(calls, examples))
    records = record_file(folder, "arag").read()
    for one in summary["questions"]:
        assert one["counts"]["tokens of results"] == records[one["id"]]["retrieved_tokens"]
        assert one["gold_shown"] == records[one["id"]]["gold_seen"]

    for name, calls_of_it in (("a", calls), ("b", calls[:1])):
        made = replay.summarise(replay.replay(calls_of_it, examples))
        (tmp_path / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
    capsys.readouterr()
    run(monkeypatch, "compare", tmp_path / "a.json", tmp_path / "b.json")
    assert re.search(r"questions +│ +3 +│ +1 +│ +-2 ", capsys.readouterr().out)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["replay.py", *map(str, arguments)])
    replay.main()
