"""Why answers are wrong, and how accuracy grows with what a run may spend."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from langchain_core.messages import AIMessage

from arag.evaluation.datasets import Question
from arag.evaluation.failures import Diagnosis, diagnose, failures, is_wrong, read_labels, write_labels
from arag.evaluation.methods import Options, method
from arag.evaluation.preparation import load_preparations, prepare
from arag.evaluation.records import RecordFile, answered
from arag.evaluation.report.experiment_page import failures_page, scaling_page
from arag.evaluation.report.figures import make_report
from arag.evaluation.report.tables import tables
from arag.evaluation.runs import Plan, Runner, open_run, record_file
from arag.evaluation.scaling import measure, write_scaling
from arag.graph.extractive import ExtractiveModel
from arag.graph.prompts import NO_ANSWER
from arag.graph.state import ModelCall
from arag.retrieval.errors import InputError
from scripted_model import ScriptedModel, asked, call, calls

pytest_plugins = ["graph_fixtures"]

QUESTION = Question("q", "Who was the father of the wife of Lothair II?", "Boso", gold_documents=("lothair", "boso"))
WRONG = {"correct": False, "reason": "", "model": "j", "cost": None}


@pytest.fixture
def record(small_index):
    """Make the record of a run that a script has led."""

    def record(*script, question=QUESTION, name="arag", **changes):
        model = ScriptedModel(*script)
        graph = method(name).make(small_index, model, Options(max_steps=2, top_k=1))
        state = graph.invoke(asked(question.text))
        model.assert_used_up()
        return {**answered(question, state, 1.0, small_index), **changes}

    return record


def one(index, record, name="arag"):
    (failure,) = failures({name: [record]}, index)
    return failure


def test_right_answers_and_errors_are_no_failures(small_index, record):
    right = record(call("chunk_read", chunk_ids=["boso:0"]), AIMessage("Boso."))
    assert not is_wrong(right)
    assert not is_wrong(right | {"prediction": "", "error": "refused"})
    assert is_wrong(right | {"judgement": WRONG})
    assert failures({"arag": [right]}, small_index) == []


def test_causes_that_the_record_decides(small_index, record):
    read_all = calls(("chunk_read", {"chunk_ids": ["lothair:0", "boso:0"]}))
    search = call("keyword_search", keywords=["storm"])
    other = replace(QUESTION, answer="Boso the Elder", aliases=("Boso",))
    lost = replace(QUESTION, gold_documents=("lothair", "lost"))
    cases = [
        (record(read_all, AIMessage("Hucbert.")), "reasoning chain error", "entity confusion"),
        (record(search, search, AIMessage("Hucbert.")), "reasoning chain error", "exceeded budget"),
        (record(search, search, AIMessage("")), "model gave up", ""),
        (record(search, AIMessage("x"), question=lost), "corpus missing", ""),
        (record(read_all, AIMessage("Boso"), judgement=WRONG), "judge error", ""),
        (record(search, AIMessage("Boso."), question=other), "judge error", ""),
        (record(search, AIMessage("Hucbert.")), "", ""),
    ]
    assert cases[2][0]["prediction"] == NO_ANSWER
    for made, cause, chain_cause in cases:
        failure = one(small_index, made)
        assert (failure.cause, failure.chain_cause) == (cause, chain_cause)
        assert failure.decided_by == ("record" if cause else "")
        assert bool(failure.why) == bool(cause)
    assert one(small_index, cases[0][0]).searches == "chunk_read(['lothair:0', 'boso:0'])"


def test_causes_of_one_shot_methods(small_index, record):
    def cause(question):
        return one(small_index, record(AIMessage("x"), name="naive-rag", question=question), "naive-rag").cause

    first = replace(QUESTION, text="Lothair II was a king", gold_documents=("lothair",))
    assert cause(first) == "model understanding"
    assert cause(replace(first, gold_documents=("lothair", "boso"))) == "top-k insufficient"
    assert cause(replace(first, gold_documents=("absent",))) == "corpus missing"
    assert cause(replace(first, gold_documents=())) == ""
    assert failures({"direct": [record(AIMessage("x"), name="direct")]}, small_index) == []


def test_the_split_is_drawn(small_index, record):
    read_all = calls(("chunk_read", {"chunk_ids": ["lothair:0", "boso:0"]}))
    search = call("keyword_search", keywords=["storm"])
    made = [record(read_all, AIMessage("Hucbert.")), record(search, AIMessage("x")), record(search, AIMessage("y"))]
    page = BeautifulSoup(failures_page(failures({"<b>": made}, small_index)), "html.parser")
    assert [h.text for h in page.find_all("h2")] == ["Causes", "Within reasoning chain errors"]
    first, second = (svg["aria-label"] for svg in page.find_all("svg"))
    assert (first, second) == ("reasoning chain error: 1, not decided: 2", "entity confusion: 1")
    assert page.find("b") is None


def test_a_person_labels_what_is_open(small_index, record, tmp_path):
    undecided = one(small_index, record(call("keyword_search", keywords=["storm"]), AIMessage("Ünknown, \n“x”")))
    file = tmp_path / "failures.csv"
    write_labels([undecided], file)
    assert read_labels([undecided], file) == [undecided]
    with file.open(encoding="utf-8-sig", newline="") as opened:
        (row,) = csv.DictReader(opened)
    assert row["prediction"] == "Ünknown, \n“x”"
    write_labels([replace(undecided, cause="Reasoning chain error ", chain_cause="wrong strategy")], file)
    (labelled,) = read_labels([undecided], file)
    assert (labelled.cause, labelled.chain_cause) == ("reasoning chain error", "wrong strategy")
    assert labelled.decided_by == "label"
    write_labels([replace(undecided, cause="bad luck")], file)
    with pytest.raises(InputError, match="line 2: the cause 'bad luck' is none of reasoning chain error"):
        read_labels([undecided], file)
    with pytest.raises(InputError, match="does not exist"):
        read_labels([undecided], tmp_path / "no.csv")
    file.write_text("method,question_id\narag,q\n")
    with pytest.raises(InputError, match="has no column 'cause'"):
        read_labels([undecided], file)


class _Diagnosing(ScriptedModel):
    def with_structured_output(self, schema, *, include_raw=False):
        assert schema["title"] == Diagnosis.__name__
        assert include_raw
        return self | (lambda reply: {"raw": reply, "parsed": reply.additional_kwargs.get("parsed")})


def test_a_model_labels_what_is_open(small_index, record, monkeypatch):
    search = call("keyword_search", keywords=["storm"])
    undecided = one(small_index, record(search, AIMessage("x")))
    decided = one(small_index, record(search, search, AIMessage("x")))
    said = Diagnosis(reason="It looked for storms.", cause="reasoning chain error", chain_cause="wrong strategy")
    other = replace(undecided, question="And why?")

    def reply(messages):
        if "And why?" in messages[1].text:
            return AIMessage("I do not know.")
        return AIMessage("", additional_kwargs={"parsed": said.model_dump()})

    monkeypatch.setattr("arag.evaluation.structured._PAUSE", 0)
    model = _Diagnosing(*[reply] * 4)  # what is of no use is asked for three times
    first, second, third = diagnose([undecided, decided, other], model)
    model.assert_used_up()
    assert (first.cause, first.chain_cause, first.decided_by) == ("reasoning chain error", "wrong strategy", "judge")
    assert first.why == "It looked for storms."
    assert second == decided
    assert third == other
    (told,) = {sent.messages[1].text for sent in model.calls if "And why?" not in sent.messages[1].text}
    assert "Gold answer: Boso" in told
    assert "keyword_search(['storm'])" in told


def test_scaling(small_index, tmp_path):
    questions = [Question(str(n), text, answer) for n, (text, answer) in enumerate([
        ("Who died in 875?", "875"), ("Who was a count of Arles?", "Boso the Elder"), ("Why?", "because of it all"),
    ])]  # fmt: skip
    points = []
    for steps in (1, 5):
        folder = tmp_path / f"steps-{steps}"
        folder.mkdir()
        runner = Runner(method("arag"), small_index, ExtractiveModel(), Options(max_steps=steps))
        runner.run(questions, RecordFile(folder / "arag.jsonl"))
        points.append(measure(folder, "arag", "steps", str(steps)))
    assert [point.questions for point in points] == [3, 3]
    assert points[0].steps == 1 < points[1].steps
    assert all(point.low <= point.accuracy <= point.high for point in points)
    table, text = write_scaling(points, tmp_path)
    assert [row["value"] for row in csv.DictReader(table.open())] == ["1", "5"]
    page = BeautifulSoup(scaling_page(points), "html.parser")
    assert [name.text for name in page.select(".row:not(.axis) .name")] == [
        f"steps {point.value} {point.steps:.1f} steps, {point.retrieved_tokens:,.0f} tokens" for point in points
    ]
    assert len(page.select("svg circle.headline")) == 2
    assert "| steps 5 |" in text.read_text()
    with pytest.raises(InputError, match="no question was answered"):
        measure(tmp_path, "arag", "steps", "9")


def test_work_at_index_time_is_done_once_and_reported(small_index, tmp_path):
    calls_made = []

    def prepared(index, model, options):
        calls_made.append((index, options.top_k))
        usage = {"input_tokens": 1_000_000, "cached_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0}
        return [ModelCall(step=1, forced=False, model="gpt-5-mini", seconds=1.0, **usage)]

    plan = Plan(questions="q.json", index=str(small_index.path), model="extractive")
    open_run(tmp_path, plan)
    preparing = replace(method("direct"), prepare=prepared)
    for each in (preparing, preparing, method("arag")):
        prepare(each, small_index, ExtractiveModel(), Options(), tmp_path)
        runner = Runner(each, small_index, ExtractiveModel())
        runner.run([QUESTION], record_file(tmp_path, each.name))
    assert calls_made == [(small_index, 5)]
    assert list(load_preparations(tmp_path)) == ["direct"]
    table = next(t for t in tables(make_report(tmp_path)) if t.title == "Work at index time")
    (row,) = table.rows
    assert [cell.text for cell in row][2:5] == ["1", "1,000,000", "0"]
    assert "0.25" in row[5].text
    (tmp_path / "prepared.json").write_text("{")
    with pytest.raises(InputError, match=r"prepared.json is damaged"):
        load_preparations(tmp_path)
