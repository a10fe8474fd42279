"""Why answers are wrong: what records decide, what a judge and a person say, and the command."""

import csv
import json
from dataclasses import replace

import pytest

from arag.errors import InputError
from arag.evaluation.datasets import Number, Question
from arag.evaluation.failures import ITERATIVE, ONE_SHOT, diagnose, find_failures, read_failures, write_failures
from arag.evaluation.method import Session
from arag.evaluation.methods import all_methods, make_method
from arag.evaluation.records import make_record
from arag.graph.prompts import NO_ANSWER
from arag.ingest.pipeline import run_ingest
from lab import ask, make_lab, script
from openai_server import chat, serve
from scripted import DOCUMENTS, call, calls

QUESTION = Question("q", "Who was the father of the wife of Lothair II?", "Boso", gold_documents=("lothair", "boso"))
WRONG = {"correct": False, "reason": "", "cost": None}
SEARCH = call("keyword_search", "1", keywords=["storm"])
READ_ALL = calls(("chunk_read", {"chunk_ids": ["lothair:0", "boso:0"]}))


@pytest.fixture
def record(small_index, tmp_path):
    """Make the record of a question that a script has led."""

    def record(*replies, question=QUESTION, name="arag", **changes):
        lab = make_lab(
            small_index, script(*replies), tmp_path / str(len(list(tmp_path.iterdir()))), top_k=1, max_steps=2
        )
        answer, session = ask(make_method(all_methods()[name], {}), lab, question.text)
        return {**make_record(question, session, answer), **changes}

    return record


def one(index, record, name="arag"):
    (failure,) = find_failures(name, all_methods()[name].iterative, [record], index)
    return failure


# --- what a record decides ---


def test_right_answers_and_errors_are_no_failures(small_index, record):
    right = record(READ_ALL, "Boso.")
    assert find_failures("arag", True, [right, right | {"prediction": "", "error": "refused"}], small_index) == []
    assert len(find_failures("arag", True, [right | {"judgement": WRONG}], small_index)) == 1


def test_causes_that_the_record_decides(small_index, record):
    other = replace(QUESTION, answer="Boso the Elder", aliases=("Boso",))
    lost = replace(QUESTION, gold_documents=("lothair", "lost"))
    cases = [
        (record(READ_ALL, "Hucbert."), "entity confusion"),
        (record(SEARCH, SEARCH, "Hucbert."), "exceeded budget"),
        (record(SEARCH, SEARCH, *[""] * 3), "model gave up"),
        (record(SEARCH, "x", question=lost), "corpus missing"),
        (record(READ_ALL, "Boso", judgement=WRONG), "judge error"),
        (record(SEARCH, "Boso.", question=other), "judge error"),
        (record(SEARCH, "Hucbert."), ""),
        (record(SEARCH, "Table 1: 63 lines.", question=replace(QUESTION, answer="three", aliases=("3",))), ""),
        (record(SEARCH, "There are 3.", question=replace(QUESTION, answer="three", aliases=("3",))), "judge error"),
        (
            record(SEARCH, "答えはボソです。", question=replace(QUESTION, answer="Boso", aliases=("ボソ",))),
            "judge error",
        ),
    ]
    assert cases[2][0]["prediction"] == NO_ANSWER
    for each, cause in cases:
        failure = one(small_index, each)
        assert failure.cause == cause
        assert failure.decided_by == ("record" if cause else "")
        assert bool(failure.why) == bool(cause)


def test_a_wrong_count_is_not_taken_for_another_form_of_the_gold_number(small_index, record):
    counting = replace(QUESTION, text="How many sheets are there?", answer="3", number=Number(3.0))
    failure = one(small_index, record(READ_ALL, "The table has 63 lines in 14 documents.", question=counting))
    assert (failure.cause, failure.why) == ("entity confusion", "all gold was read in full")


def test_causes_of_naive_rag(small_index, record):
    def cause(question):
        return one(small_index, record("x", name="naive-rag", question=question), "naive-rag").cause

    first = replace(QUESTION, text="Lothair II was a king", gold_documents=("lothair",))
    assert cause(first) == "model understanding"
    assert cause(replace(first, gold_documents=("lothair", "boso"))) == "top-k insufficient"
    assert cause(replace(first, gold_documents=("absent",))) == "corpus missing"
    assert cause(replace(first, gold_documents=())) == ""
    assert find_failures("direct", False, [record("x", name="direct")], small_index) == []
    wrong = record("x", name="naive-rag", question=replace(first, gold_documents=("lothair", "boso")))
    by_graph, in_part = (find_failures("other", iterative, [wrong], small_index)[0] for iterative in (False, None))
    assert (by_graph.taxonomy, by_graph.cause) == (ONE_SHOT, "")  # another ranking would have to be repeated
    assert (in_part.taxonomy, in_part.cause) == (ITERATIVE, "")


# --- the CSV ---


def rows_of(folder):
    with (folder / "failures.csv").open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def save(rows, folder, delimiter=","):
    with (folder / "failures.csv").open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def test_failures_are_read_as_a_spreadsheet_saves_them(small_index, record, tmp_path):
    assert read_failures(tmp_path) == {}
    write_failures([one(small_index, record(SEARCH, "=Ünknown; \n“x”, \ty"))], tmp_path)
    assert (tmp_path / "failures.csv").read_bytes().startswith(b"\xef\xbb\xbf")  # Excel needs it
    (row,) = rows_of(tmp_path)
    assert (row["prediction"], row["searches"]) == ("'=Ünknown; \n“x”, \ty", "1. keyword_search(['storm'])")
    save([row | {"cause": "Wrong strategy "}], tmp_path, ";")
    assert read_failures(tmp_path)["arag", "q"]["cause"] == "wrong strategy"


@pytest.mark.parametrize("content", [b"method,question_id\narag,q\n", b"method,question_id,cause\narag,q,\xff\n"])
def test_what_is_no_such_csv_is_refused(tmp_path, content):
    (tmp_path / "failures.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"is not a CSV in UTF-8 with the columns method, question_id and cause"):
        read_failures(tmp_path)


# --- a judge ---


def test_a_judge_sees_the_search_and_names_one_of_the_causes(small_index, record, tmp_path):
    failure = one(small_index, record(call("chunk_read", "1", chunk_ids=["boso:0"]), "Hucbert."))
    says = {"reason": "It read too little.", "cause": "wrong strategy"}
    lab = make_lab(small_index, script({"reason": "x", "cause": "bad luck"}, says), tmp_path / "judge")
    diagnose(failure, Session(lab))
    assert (failure.cause, failure.decided_by, failure.why) == ("wrong strategy", "judge", "It read too little.")
    system, user = lab.model.calls[0]
    assert all(f"- {cause}: " in system.text for cause in ITERATIVE.causes)
    assert "1. chunk_read(['boso:0'])" in user.text
    assert "With gold:\n<chunk-1>\n[boso:0]\nBoso the Elder" in user.text
    assert "Gold of which a snippet was seen: 50%; read in full: 50%" in user.text


# --- the command ---


@pytest.fixture
def folder(tmp_path, monkeypatch, quick_embedder):
    monkeypatch.chdir(tmp_path)
    run_ingest([{**each, "kind": each["id"]} for each in DOCUMENTS], tmp_path / "index")
    row = {"id": "q", "question": "When did Teutberga die?", "answer": "In 875", "supporting": ["teutberga"]}
    other = row | {"id": "q2", "question": "What did storms break?", "supporting": []}
    (tmp_path / "q.json").write_text(json.dumps([row, other]))
    return tmp_path


RUN = ["eval", "run", "--questions", "q.json", "--index", "index", "--model", "extractive", "--out", "r"]


def test_a_judge_is_asked_once_about_what_is_open_and_a_cause_in_the_file_stays(arag, folder):
    arag(*RUN, "--method", "naive-rag", "--top-k", 1)
    assert arag("eval", "failures", "r", "--index", "index")[0] == 0
    assert [row["question_id"] for row in rows_of(folder / "r") if not row["cause"]] == ["q2"]
    says = {**chat('{"reason": "It is right.", "cause": "judge error"}'), "model": "gpt-5-mini"}
    with serve(lambda *_: says) as server:
        judge = ["--judge", f"openai:gpt-5-mini@{server.url}"]
        for _ in range(2):
            code, out, _ = arag("eval", "failures", "r", "--index", "index", *judge)
            assert code == 0
            assert "0 of 2 undecided" in out
        assert len(server.requests) == 1
        save([row | {"cause": "multi-hop retrieval"} for row in rows_of(folder / "r")], folder / "r")
        assert "naive-rag: multi-hop retrieval: 2" in arag("eval", "failures", "r", "--index", "index", *judge)[1]
    assert "multi-hop retrieval" in (folder / "r/report.html").read_text()
