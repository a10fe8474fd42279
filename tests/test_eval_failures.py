"""Why answers are wrong."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import time
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from langchain_core.messages import AIMessage
from pydantic import Field

from arag.cli import main
from arag.errors import InputError
from arag.evaluation.datasets import Question
from arag.evaluation.diagnosis import diagnose
from arag.evaluation.event_loop import run
from arag.evaluation.failure_labels import merge_labels, write_labels
from arag.evaluation.failures import (
    AGENTIC,
    CHAIN_CAUSES,
    ONE_SHOT,
    Failure,
    find_failures,
    first_level,
    is_wrong,
)
from arag.evaluation.methods import Options, method
from arag.evaluation.preparation import load_preparations, prepare_run
from arag.evaluation.records import record_answer
from arag.evaluation.report.failures_page import failures_page
from arag.evaluation.report.figures import make_report
from arag.evaluation.report.tables import tables
from arag.evaluation.runs import Plan, Runner, open_run, record_file
from arag.evaluation.store import Store
from arag.evaluation.workplace import Workplace
from arag.graph.prompts import NO_ANSWER
from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder
from arag.models.extractive import ExtractiveModel
from arag.models.usage import ModelCall
from arag.retrieval.index import open_index
from arag.testing import ScriptedModel, call, calls
from fakes import HashEmbeddings, write_corpus
from forked import processes
from openai_server import Failure as HttpFailure
from openai_server import chat, serve
from scripted_model import DOCUMENTS, asked

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

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
        return {**record_answer(question, state, 1.0, small_index), **changes}

    return record


def one(index, record, name="arag"):
    (failure,) = find_failures(name, [record], index)
    return failure


def merge(failure, file):
    """Return a failure with what a CSV says of it, in which nothing else stands."""
    (merged,), others = merge_labels([failure], file)
    assert not others
    return merged


def test_right_answers_and_errors_are_no_failures(small_index, record):
    right = record(call("chunk_read", chunk_ids=["boso:0"]), AIMessage("Boso."))
    assert not is_wrong(right)
    assert not is_wrong(right | {"prediction": "", "error": "refused"})
    assert is_wrong(right | {"judgement": WRONG})
    assert find_failures("arag", [right], small_index) == []


def test_causes_that_the_record_decides(small_index, record):
    read_all = calls(("chunk_read", {"chunk_ids": ["lothair:0", "boso:0"]}))
    search = call("keyword_search", keywords=["storm"])
    other = replace(QUESTION, answer="Boso the Elder", aliases=("Boso",))
    lost = replace(QUESTION, gold_documents=("lothair", "lost"))
    cases = [
        (record(read_all, AIMessage("Hucbert.")), "entity confusion"),
        (record(search, search, AIMessage("Hucbert.")), "exceeded budget"),
        (record(search, search, AIMessage("")), "model gave up"),
        (record(search, AIMessage("x"), question=lost), "corpus missing"),
        (record(read_all, AIMessage("Boso"), judgement=WRONG), "judge error"),
        (record(search, AIMessage("Boso."), question=other), "judge error"),
        (record(search, AIMessage("Hucbert.")), ""),
    ]
    assert cases[2][0]["prediction"] == NO_ANSWER
    for made, cause in cases:
        failure = one(small_index, made)
        assert failure.cause == failure.final == cause
        assert failure.decided_by == ("record" if cause else "")
        assert bool(failure.why) == bool(cause)


def test_causes_of_one_shot_methods(small_index, record):
    def cause(question):
        return one(small_index, record(AIMessage("x"), name="naive-rag", question=question), "naive-rag").cause

    first = replace(QUESTION, text="Lothair II was a king", gold_documents=("lothair",))
    assert cause(first) == "model understanding"
    assert cause(replace(first, gold_documents=("lothair", "boso"))) == "top-k insufficient"
    assert cause(replace(first, gold_documents=("absent",))) == "corpus missing"
    assert cause(replace(first, gold_documents=())) == ""
    assert find_failures("direct", [record(AIMessage("x"), name="direct")], small_index) == []


def test_what_a_run_keeps_of_a_method_shows_its_kind(small_index, record):
    made = record(AIMessage("x"), name="naive-rag")
    made["trace"][0]["tool"] = "bm25"
    facts = method("naive-rag").facts(Options())
    for iterative, taxonomy in ((False, ONE_SHOT), (True, AGENTIC)):
        (failure,) = find_failures("outside", [made], small_index, {**facts, "iterative": iterative})
        assert failure.taxonomy is taxonomy


def test_the_split_is_drawn(small_index, record):
    read_all = calls(("chunk_read", {"chunk_ids": ["lothair:0", "boso:0"]}))
    search = call("keyword_search", keywords=["storm"])
    made = [record(read_all, AIMessage("Hucbert.")), record(search, AIMessage("x")), record(search, AIMessage("y"))]
    page = BeautifulSoup(failures_page(find_failures("<b>", made, small_index)), "html.parser")
    assert [h.text for h in page.find_all("h2")] == [
        "Methods that search step by step",
        "Within reasoning chain errors",
    ]
    first, second = (svg["aria-label"] for svg in page.find_all("svg"))
    assert (first, second) == ("reasoning chain error: 1, undecided: 2", "entity confusion: 1")
    assert page.find("b") is None


def test_every_cause_of_every_taxonomy_is_drawn(small_index, record):
    made = record(call("keyword_search", keywords=["storm"]), AIMessage("x"))
    found = [
        Failure(name, taxonomy, made, cause, "judge")
        for name, taxonomy in (("arag", AGENTIC), ("naive-rag", ONE_SHOT))
        for cause in taxonomy.causes
    ]
    page = BeautifulSoup(failures_page(found), "html.parser")
    first, chains, second = page.find_all("svg")
    drawn = (first, set(map(first_level, AGENTIC.causes))), (chains, {*CHAIN_CAUSES, ""}), (second, ONE_SHOT.causes)
    for svg, causes in drawn:
        assert len({rect["class"][0] for rect in svg.find_all("rect")}) == len(causes)
    assert chains["aria-label"].endswith("exceeded budget: 1, undecided: 1")
    assert "8 by a judge" in page.text
    assert "5 by a judge" in page.text
    assert "No method that searches has wrong answers." in failures_page([])


# --- the CSV ---


def rows_of(file):
    with file.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def save(rows, file, *, delimiter=",", encoding="utf-8-sig"):
    """Save rows as a spreadsheet does."""
    with file.open("w", encoding=encoding, newline="") as opened:
        writer = csv.DictWriter(opened, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def test_a_csv_as_spreadsheets_save_it(small_index, record, tmp_path):
    prediction = "Ünknown; \n“x”, \ty"
    undecided = one(small_index, record(call("keyword_search", keywords=["storm"]), AIMessage(prediction)))
    file = tmp_path / "failures.csv"
    write_labels([undecided], file)
    assert merge(undecided, file) == undecided
    (row,) = rows_of(file)
    assert row["prediction"] == prediction
    assert row["searches"] == "1. keyword_search(['storm'])"
    row |= {"label": "Wrong strategy ", "note": "Storms?"}
    for delimiter in ",;\t":
        save([row, dict.fromkeys(row, "")], file, delimiter=delimiter)
        labelled = merge(undecided, file)
        assert (labelled.label, labelled.final, labelled.note) == ("wrong strategy", "wrong strategy", "Storms?")
        assert labelled.cause == labelled.decided_by == ""
    save([row], file, encoding="cp1252")
    with pytest.raises(InputError, match="is not in UTF-8: save it as CSV UTF-8"):
        merge(undecided, file)


def test_cells_are_no_longer_than_a_spreadsheet_holds(small_index, record, tmp_path):
    made = record(call("keyword_search", keywords=["storm"]), AIMessage("x"), prediction="x" * 200_000)
    failure, file = one(small_index, made), tmp_path / "failures.csv"
    write_labels([failure], file)
    assert len(rows_of(file)[0]["prediction"]) < 32_767
    assert merge(failure, file) == failure


def test_what_is_no_csv_of_failures(tmp_path):
    with pytest.raises(InputError, match=r"no\.csv cannot be read: No such file"):
        merge_labels([], tmp_path / "no.csv")
    file = tmp_path / "failures.csv"
    file.write_text("method,question_id\narag,q\n")
    with pytest.raises(InputError, match="has no column 'label'; required columns: method, question_id, label"):
        merge_labels([], file)
    file.write_text("")
    with pytest.raises(InputError, match="has no column 'method'"):
        merge_labels([], file)
    file.write_text("method,question_id,label\narag,q,judge error\narag,q,\n")
    with pytest.raises(InputError, match=r"row 3: an earlier row is for the same answer"):
        merge_labels([], file)


@pytest.mark.parametrize(
    ("name", "label", "told"),
    [
        ("arag", "bad luck", r"csv, arag, question 'q': 'bad luck' is not a cause for arag; valid causes: entity"),
        ("arag", "top-k insufficient", "reasoning chain error, judge error, model gave up, corpus missing$"),
        (
            "naive-rag",
            "reasoning chain error",
            "is not a cause for naive-rag; valid causes: model understanding, multi",
        ),
        ("naive-rag", "wrong strategy", "'wrong strategy' is not a cause for naive-rag"),
    ],
)
def test_causes_of_another_taxonomy_are_refused(small_index, record, tmp_path, name, label, told):
    script = [call("keyword_search", keywords=["storm"])] if name == "arag" else []
    failure = one(small_index, record(*script, AIMessage("x"), name=name), name)
    file = tmp_path / "failures.csv"
    write_labels([failure], file)
    save([rows_of(file)[0] | {"label": label}], file)
    with pytest.raises(InputError, match=told):
        merge(failure, file)


def test_a_chain_cause_implies_its_cause(small_index, record, tmp_path):
    undecided = one(small_index, record(call("keyword_search", keywords=["storm"]), AIMessage("x")))
    file = tmp_path / "own.csv"
    file.write_text("method,question_id,label\narag,q,wrong strategy\n")
    labelled = merge(undecided, file)
    assert labelled.final == "wrong strategy"
    page = failures_page([labelled])
    assert "reasoning chain error: 1 (1 by a person)" in page
    assert "wrong strategy: 1 (1 by a person)" in page


def test_a_persons_label_stands_beside_what_a_judge_or_the_record_says(small_index, record, tmp_path):
    search = call("keyword_search", keywords=["storm"])
    open_now = one(small_index, record(search, AIMessage("x")))
    by_judge = replace(open_now, cause="wrong strategy", decided_by="judge", why="It looked for storms.")
    file = tmp_path / "failures.csv"
    write_labels([by_judge], file)
    (row,) = rows_of(file)
    assert merge(open_now, file) == by_judge
    assert merge(by_judge, file) == by_judge
    save([row | {"label": "judge error"}], file)
    changed = merge(open_now, file)
    assert changed == replace(by_judge, label="judge error")
    assert changed.final == "judge error"
    write_labels([changed], file)
    assert merge(open_now, file) == changed
    save([row | {"label": "wrong strategy", "note": "I agree."}], file)
    assert merge(open_now, file) == replace(by_judge, label="wrong strategy", note="I agree.")
    # Without the label it is the judge's again; without either it is open.
    save([row | {"label": ""}], file)
    assert merge(open_now, file) == by_judge
    save([row | {"cause": ""}], file)
    assert merge(open_now, file) == open_now
    # A label in the wrong column is one all the same.
    for decider in ("", "me"):
        save([row | {"cause": "Judge error", "decided_by": decider}], file)
        assert merge(open_now, file) == replace(open_now, label="judge error")
    by_record = one(small_index, record(search, search, AIMessage("x")))
    write_labels([by_record], file)
    save([rows_of(file)[0] | {"cause": "wrong strategy"}], file)
    assert merge(by_record, file) == replace(by_record, label="wrong strategy")
    # As an earlier version wrote it: a person's label among the decided causes, one of a chain in a column of its own.
    old = {name: text for name, text in row.items() if name not in {"label", "note"}}
    save([old | {"cause": "judge error", "chain_cause": "", "decided_by": "label"}], file)
    assert merge(open_now, file) == replace(open_now, label="judge error")
    save([old | {"cause": "reasoning chain error", "chain_cause": "wrong strategy", "decided_by": "label"}], file)
    assert merge(open_now, file) == replace(open_now, label="wrong strategy")
    # What another record decides is no label, though it differs from what stands in the file.
    write_labels([replace(open_now, cause="judge error", decided_by="record", why="It holds another form.")], file)
    assert merge(open_now, file) == open_now


# --- a judge ---


class _Diagnosing(ScriptedModel):
    causes: list[tuple[str, ...]] = Field(default_factory=list)

    def with_structured_output(self, schema, *, include_raw=False):
        self.causes.append(tuple(schema["properties"]["cause"]["enum"]))
        assert include_raw
        return self | (lambda reply: {"raw": reply, "parsed": reply.additional_kwargs.get("parsed")})


def says(cause, reason="It looked for storms."):
    return AIMessage("", additional_kwargs={"parsed": {"reason": reason, "cause": cause}})


def test_a_model_says_what_is_open(small_index, record, monkeypatch):
    search = call("keyword_search", keywords=["storm"])
    undecided = one(small_index, record(search, AIMessage("x")))
    by_record = one(small_index, record(search, search, AIMessage("x")))
    other = replace(undecided, record=undecided.record | {"question": "And why?"})

    def reply(messages):
        if "And why?" in messages[1].text:
            return AIMessage("I do not know.")
        return says("wrong strategy")

    monkeypatch.setattr("arag.evaluation.structured._PAUSE", 0)
    model = _Diagnosing(*[reply] * 4)  # what is of no use is asked for three times
    labelled = replace(undecided, label="wrong strategy")
    found, cost = run(diagnose([undecided, by_record, other, labelled], model, small_index))
    model.assert_used_up()
    assert found == [
        replace(undecided, cause="wrong strategy", decided_by="judge", why="It looked for storms."),
        by_record,
        replace(other, why="the judge gave no usable diagnosis: I do not know."),
        labelled,
    ]
    assert cost is None
    with pytest.raises(InputError, match="the built-in extractive model cannot judge"):
        run(diagnose([], ExtractiveModel(), small_index))


def test_the_model_sees_what_was_searched_and_read(small_index, record):
    read = calls(("chunk_read", {"chunk_ids": ["lothair:0"]}), ("chunk_read", {"chunk_ids": ["annals:0"]}))
    model = _Diagnosing(says("judge error"))
    (found,), _ = run(diagnose([one(small_index, record(read, AIMessage("x")))], model, small_index))
    assert found.cause == "judge error"
    told = model.calls[0].messages[1].text
    for part in (
        "Question: Who was the father of the wife of Lothair II?\n",
        "Gold answer: Boso\n",
        "Predicted answer:\n<answer-1>\nx\n</answer-1>\n",
        "It ended after 2 steps: answered\n",
        "Gold of which a snippet was seen: 50%; read in full: 50%",
        "1. chunk_read(['lothair:0'])",
        "Chunks read: 2\n",
        "With gold:\n<chunk-1>\n[lothair:0]\n",
        "He married Teutberga in 855.",
        "[annals:0]\n",
    ):
        assert part in told


def test_what_the_model_sees_is_bounded(make_index, record):
    index = make_index([
        {"id": name, "title": name, "text": f"{'So it was. ' * 900}The {name} answer is Boso. {'And so on. ' * 900}"}
        for name in ("one", "two", "three")
    ])  # fmt: skip
    ids = list(index.chunk_ids())
    made = record(call("keyword_search", keywords=["storm"]), AIMessage("x" * 50_000))
    made["trace"][0] |= {"tool": "chunk_read", "arguments": {"chunk_ids": ids * 500}, "new_chunks": ids}
    model = _Diagnosing(says("judge error"))
    run(diagnose([Failure("arag", AGENTIC, made)], model, index))
    told = model.calls[0].messages[1].text
    assert 12_000 < len(told) < 20_000
    for name in ("one", "two", "three"):
        assert f"The {name} answer is Boso." in told


def test_methods_that_retrieve_once_have_a_form_of_their_own(small_index, record):
    question = replace(QUESTION, text="Lothair II was a king", gold_documents=())
    failure = one(small_index, record(AIMessage("x"), name="naive-rag", question=question), "naive-rag")
    assert failure.taxonomy is ONE_SHOT
    model = _Diagnosing(says("top-k insufficient"))
    (found,), _ = run(diagnose([failure], model, small_index))
    assert (found.cause, found.decided_by) == ("top-k insufficient", "judge")
    instruction, told = model.calls[0].messages
    assert set(model.causes) == {tuple(AGENTIC.causes), tuple(ONE_SHOT.causes)}
    assert '"top-k insufficient"' in instruction.text
    assert "reasoning chain error" not in instruction.text
    assert re.search(r"Of the \d chunks nearest to the question, number \d is the first that holds", told.text)
    assert "He married Teutberga in 855." in told.text


def test_verdicts_are_kept_as_they_come(small_index, record):
    undecided = one(small_index, record(call("keyword_search", keywords=["storm"]), AIMessage("x")))
    kept = []
    model = _Diagnosing(says("judge error"), says("model gave up"), ZeroDivisionError("a bug"))

    def keep(some):
        kept.append([failure.cause for failure in some])

    with pytest.raises(ZeroDivisionError):
        run(diagnose([undecided] * 3, model, small_index, concurrency=1, keep=keep))
    assert kept == [["judge error", "", ""], ["judge error", "model gave up", ""]]


# --- the command ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run: of A-RAG's three answers one is open, one is decided by its record, one is right; Direct's is wrong."""
    made = Embedder.__init__
    monkeypatch.setattr(
        Embedder, "__init__", lambda self, name, _, **options: made(self, name, HashEmbeddings, **options)
    )
    run_ingest([write_corpus(tmp_path / "corpus", DOCUMENTS)], tmp_path / "index")
    target = tmp_path / "run"
    open_run(target, Plan(questions="q.json", index=str(tmp_path / "index"), model="scripted"))
    search, read = call("keyword_search", keywords=["storm"]), call("chunk_read", chunk_ids=["lothair:0", "boso:0"])
    scripts = {"open": [search, AIMessage("x")], "read": [read, AIMessage("Hucbert")], "right": [AIMessage("Boso")]}
    with open_index(tmp_path / "index") as index:
        for name, script in scripts.items():
            answer_with(index, target, "arag", name, script)
        answer_with(index, target, "direct", "open", [AIMessage("x")])
    return target


def answer_with(index, target, name, question_id, script):
    question = replace(QUESTION, id=question_id)
    model = ScriptedModel(*script)
    Runner(method(name), index, model).run([question], record_file(target, name))
    model.assert_used_up()


def deciders(folder):
    rows = rows_of(folder / "failures.csv")
    return {row["question_id"]: "label" if row["label"] else row["decided_by"] for row in rows}


VERDICT = json.dumps({"reason": "It gave up.", "cause": "wrong strategy"})


def test_the_command(arag, folder):
    code, out, err = arag("eval", "failures", folder)
    assert code == 0
    assert err == "Note: direct does not search, so its wrong answers (1) are not diagnosed\n"
    assert re.search(r"arag +reasoning chain error +entity confusion +1 +50%", out)
    assert "1 of 2 undecided; fill in `label` there and run this again." in out
    assert deciders(folder) == {"open": "", "read": "record"}
    assert "entity confusion" in (folder / "failures.html").read_text()


def test_labels_and_verdicts_last(arag, folder):
    file = folder / "failures.csv"
    with serve([{**chat(VERDICT), "model": "gpt-5-mini"}]) as server:
        code, out, _ = arag("eval", "failures", folder, "--judge", f"openai:gpt-5-mini@{server.url}")
    assert code == 0
    assert "Diagnosed: 1 of 1 by the judge, $0.00\n" in out
    before = file.read_bytes()
    assert deciders(folder) == {"open": "judge", "read": "record"}
    copy = folder.parent / "copy.csv"
    copy.write_bytes(before)
    for more in ([], ["--labels", copy], ["--judge", "openai:gpt-5-mini@http://127.0.0.1:9/v1"]):  # nothing to ask
        assert arag("eval", "failures", folder, *more)[0] == 0
        assert file.read_bytes() == before
    rows = rows_of(file)
    save([row | {"label": "judge error", "note": "Look!"} for row in rows], file)
    assert arag("eval", "failures", folder)[0] == 0
    assert arag("eval", "failures", folder)[0] == 0
    assert deciders(folder) == {"open": "label", "read": "label"}
    assert [row["note"] for row in rows_of(file)] == ["Look!", "Look!"]
    assert [row["cause"] for row in rows_of(file)] == [row["cause"] for row in rows]
    # Another file says more; what it leaves empty stays.
    save([{"method": "arag", "question_id": "read", "label": "model gave up"}], copy)
    assert arag("eval", "failures", folder, "--labels", copy)[0] == 0
    assert {row["question_id"]: row["label"] for row in rows_of(file)} == {
        "open": "judge error",
        "read": "model gave up",
    }


def test_labels_for_no_wrong_answer_are_told_of(arag, folder):
    file = folder / "failures.csv"
    assert arag("eval", "failures", folder)[0] == 0
    rows = rows_of(file)
    label = {"label": "judge error"}
    other = folder.parent / "other.csv"
    save([rows[0] | label | {"question_id": "OPEN"}, rows[1] | label | {"method": "ours"}, rows[1]], other)
    code, _, err = arag("eval", "failures", folder, "--labels", other)
    assert code == 0
    assert f"Warning: some rows of {other} match no wrong answer of this run and are ignored: 2, the first " in err
    assert "the first for arag, question 'OPEN'" in err
    assert deciders(folder) == {"open": "", "read": "record"}
    # In the file itself they stay.
    typed = rows[0] | label | {"question_id": "OPEN"}
    save([typed, rows[1]], file)
    for _ in range(2):
        _, _, err = arag("eval", "failures", folder)
        assert f"Warning: some rows of {file} match no wrong answer of this run and are ignored: 1, the first " in err
        assert deciders(folder) == {"open": "", "read": "record", "OPEN": "label"}
        assert rows_of(file)[-1] == typed
    assert "person" not in (folder / "failures.html").read_text()


def test_answers_that_have_become_right_are_dropped_and_their_labels_kept(arag, folder):
    assert arag("eval", "failures", folder)[0] == 0
    file = folder / "failures.csv"
    records = record_file(folder, "arag")
    judgement = {"correct": True, "reason": "", "model": "j", "cost": None}
    records.append({**records.read()["open"], "judgement": judgement})
    code, _, err = arag("eval", "failures", folder)
    assert code == 0
    assert "rows of" not in err
    assert deciders(folder) == {"read": "record"}
    save([rows_of(file)[0] | {"label": "judge error"}], file)
    records.append({**records.read()["read"], "judgement": judgement})
    code, out, err = arag("eval", "failures", folder)
    assert code == 0
    assert f"Warning: some rows of {file} match no wrong answer of this run and are ignored: 1, the first " in err
    assert "0 of 0 undecided" in out
    assert deciders(folder) == {"read": "label"}


def test_a_judge_that_fails(arag, folder, monkeypatch):
    monkeypatch.setattr("arag.evaluation.structured._PAUSE", 0)
    monkeypatch.setattr("arag.evaluation.patience._FIRST_PAUSE", 0.01)
    refused = [HttpFailure(429), *[{**chat("?"), "model": "nobody-knows"}] * 3]
    with serve(refused) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        code, out, err = arag("eval", "failures", folder, "--judge", f"openai:nobody-knows@{server.url}")
    assert code == 1
    assert "Diagnosed: 0 of 1 by the judge, cost unknown\n" in out
    assert "Not diagnosed: arag, open: the judge gave no usable diagnosis: ?\n" in err
    assert deciders(folder) == {"open": "", "read": "record"}


def run_diagnosis(url, folder):
    os.environ["OPENAI_API_KEY"] = "x"
    sys.argv = ["arag", "eval", "failures", folder, "--judge", f"openai:gpt-5-mini@{url}", "--concurrency", "1"]
    main()


def start_diagnosis(server, folder):
    process = processes.Process(target=run_diagnosis, args=(server.url, str(folder)))
    process.start()
    return process


def test_a_killed_diagnosis_goes_on(folder):
    with open_index(folder.parent / "index") as index:
        for name in ("second", "third"):
            answer_with(index, folder, "arag", name, [call("keyword_search", keywords=["storm"]), AIMessage("x")])

    def respond(number, request):
        return chat(VERDICT) if number in {0, 2, 3} else HttpFailure(hang=True)

    with serve(respond) as server:
        process = start_diagnosis(server, folder)
        while len(server.requests) < 2:
            assert process.is_alive()
            time.sleep(0.05)
        process.kill()
        process.join()
        assert list(deciders(folder).values()).count("judge") == 1
        process = start_diagnosis(server, folder)
        process.join()
        assert process.exitcode == 0
        assert list(deciders(folder).values()).count("judge") == 3
        assert len(server.requests) == 4


def test_a_run_without_records(arag, tmp_path, small_index):
    open_run(tmp_path, Plan(questions="q.json", index=str(small_index.path), model="extractive"))
    code, _, err = arag("eval", "failures", tmp_path)
    assert code == 1
    assert err == f"Error: the run in {tmp_path} has no records yet: run `arag eval run` first\n"


# --- work at index time ---


def test_work_at_index_time_is_done_once_and_reported(small_index, tmp_path):
    calls_made = []

    async def prepared(place):
        calls_made.append((place.index, place.options.top_k))
        usage = {"input_tokens": 1_000_000, "cached_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0}
        call = ModelCall(step=1, forced=False, model="gpt-5-mini", seconds=1.0, **usage)
        place.paid.append(call)
        place.reused += [call, call]

    plan = Plan(questions="q.json", index=str(small_index.path), model="extractive")
    open_run(tmp_path, plan)
    preparing = replace(method("direct"), prepare=prepared)
    store = Store(tmp_path / "store")
    for each in (preparing, preparing, method("arag")):
        run(prepare_run(each, Workplace(small_index, ExtractiveModel(), Options(), store), tmp_path))
        runner = Runner(each, small_index, ExtractiveModel())
        runner.run([QUESTION], record_file(tmp_path, each.name))
    assert calls_made == [(small_index, 5)] * 2  # gone through again, and recorded once
    assert list(load_preparations(tmp_path)) == ["direct"]
    table = next(t for t in tables(make_report(tmp_path)) if t.title == "Index-time work")
    (row,) = table.rows
    assert [cell.text for cell in row][2:5] == ["3", "3,000,000", "0"]
    assert ("0.75" in row[5].text, row[6].text, "0.25" in row[7].text) == (True, "2", True)
    (tmp_path / "prepared.json").write_text("{")
    with pytest.raises(InputError, match=r"prepared.json is damaged"):
        load_preparations(tmp_path)
