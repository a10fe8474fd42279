"""Reports of runs, from records made by hand whose figures are known."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import unquote, urljoin

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from arag import create_arag_agent
from arag.errors import InputError
from arag.evaluation.datasets import Question
from arag.evaluation.methods import Options, all_methods
from arag.evaluation.records import add_attempts, add_judgement, record_answer, record_failure
from arag.evaluation.report import plots
from arag.evaluation.report.figures import make_report
from arag.evaluation.report.overview import make_overview
from arag.evaluation.report.page import count_pages, report_page, write_report
from arag.evaluation.report.paper import paper_results
from arag.evaluation.report.tables import csv_text, document, tables
from arag.evaluation.runs import Plan, open_run, record_file
from arag.evaluation.scores import Interval, interval, proportion
from arag.terminal import FAILED
from arag.testing import ScriptedModel, call
from scripted_model import ANSWER, asked

pytest_plugins = ["graph_fixtures"]

SCRIPT = '"><script>alert(1)</script><img src="http://evil.example/x" onerror=alert(2)>'


class NoIndex:
    """An index without chunks: what was found is not looked up in it."""

    def get(self, _):
        return None


def model_call(step, tokens=(100, 40, 10, 4), model="gpt-5-mini-2025-08-07", *, cut_off=False):
    names = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    call = {"step": step, "forced": False, "empty": False, "cut_off": cut_off, "model": model, "seconds": 1.0}
    return {**call, **dict(zip(names, tokens, strict=True))}


def tool_call(tool, tokens=0, error=None, **arguments):
    return {
        "step": 1,
        "tool": tool,
        "arguments": arguments,
        "chunk_ids": [],
        "new_chunks": [],
        "retrieved_tokens": tokens,
        "seconds": 0.1,
        "error": error,
    }


def record(number, prediction="gold", *, verdict="none", question=None, steps=1, trace=(), **changes):
    """The record of a question whose gold answer is `gold`; `verdict` is True, False, None or "none"."""
    asked_for = Question(id=f"q{number}", text=question or f"Question {number}?", answer="gold", aliases=("aurum",))
    state = {
        "messages": [HumanMessage(asked_for.text), AIMessage(prediction)],
        "answer": prediction,
        "stop_reason": "answered",
        "steps": steps,
        "trace": list(trace),
        "model_calls": [model_call(step) for step in range(1, steps + 1)],
        "usage": None,
    }
    made = record_answer(asked_for, state, 2.0, NoIndex())
    if verdict != "none":
        judgement = {"correct": verdict, "reason": "It says so.", "model": "openai:gpt-5-mini", "cost": 0.01}
        made = add_judgement(made, judgement)
    return {**made, **changes}


def costing(made, dollars):
    """A record whose question cost so much; with tokens that tell nothing where that is not known."""
    calls = made["model_calls"] if dollars is not None else [model_call(1, tokens=(0, 0, 0, 0))]
    return {**made, "cost": dollars, "paid": dollars, "model_calls": calls}


def failure(number, error="APITimeoutError: timed out", **changes):
    question = Question(id=f"q{number}", text=f"Question {number}?", answer="gold")
    return {**record_failure(question, {"model_calls": [model_call(1)]}, error, 9.0), **changes}


@pytest.fixture
def write_run(tmp_path):
    """A function that writes records by method into a run's folder, and returns it."""

    def write(by_name, *, questions="questions.json", model="openai:gpt-5-mini", index="gone", name="run", **settings):
        folder = tmp_path / name
        open_run(folder, Plan(questions=questions, index=str(index), model=model, **settings))
        for name, records in by_name.items():
            for each in records:
                record_file(folder, name).append(each)
        return folder

    return write


def figures(report, name):
    return next(method for method in report.methods if method.name == name).figures


def mean(report, name, measure):
    return figures(report, name)[measure].mean


def soup(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text("utf-8"), "html.parser")


def csv_rows(report):
    return {row["method"]: row for row in csv.DictReader(io.StringIO(csv_text(report)))}


def table(report, title):
    found = next(each for each in tables(report) if each.title.startswith(title))
    return [dict(zip(found.columns, (cell.text for cell in row), strict=True)) for row in found.rows], found


# --- figures ---


def test_the_headline_is_over_all_questions_and_unjudged_answers_are_not_wrong(write_run):
    run = write_run(
        {
            "arag": [
                record(1, verdict=True),
                record(2, "lead", verdict=True),
                record(3, "lead", verdict=False),
                record(4, verdict=None),
                failure(5),
            ]
        },
        judge="openai:gpt-5-mini",
    )
    report = make_report(run)
    assert mean(report, "arag", "llm_acc") == 2 / 4  # of three verdicts and a failure
    assert mean(report, "arag", "llm_acc_answered") == 2 / 3
    assert mean(report, "arag", "contain_acc") == 2 / 5
    assert mean(report, "arag", "contain_acc_answered") == 2 / 4
    (row,), _ = table(report, "Accuracy")
    assert (row["Questions"], row["Answered"], row["Failed"], row["Unjudged"]) == ("5", "4", "1", "1")
    assert any("without a verdict (A-RAG (Full) 1)" in note for note in report.notes)
    assert any("Questions failed (A-RAG (Full) 1)" in note for note in report.notes)


def test_answers_that_were_cut_off_are_told_of(write_run):
    cut = record(1, model_calls=[model_call(1), model_call(2, cut_off=True)])
    mended = record(2, model_calls=[model_call(1, cut_off=True), model_call(2)])
    report = make_report(write_run({"arag": [cut, mended], "direct": [record(1), record(2)]}))
    assert any("cut off at the model's output token limit (A-RAG (Full) 1)" in n for n in report.notes)


def test_aliases_are_a_column_of_their_own(write_run):
    report = make_report(write_run({"arag": [record(1, "It is aurum."), record(2, "It is gold.")]}))
    assert mean(report, "arag", "contain_acc") == 0.5
    assert mean(report, "arag", "contain_acc_aliases") == 1.0


def test_a_run_without_a_judge_says_nothing_of_llm_acc(write_run):
    report = make_report(write_run({"arag": [record(1)], "direct": [record(1, "lead")]}))
    assert not report.judged
    assert not any(name.startswith(("llm", "judge", "unjudged")) for name in csv_rows(report)["arag"])
    titles = [title for each in tables(report) for title in (each.title, *each.columns)]
    assert not any("LLM-Acc" in title or "Unjudged" in title for title in titles)
    assert report.notes == ["There was no judge, so there is no LLM-Acc."]


def test_a_method_that_was_not_judged_beside_others_that_were(write_run):
    run = write_run({"arag": [record(1, verdict=True)], "direct": [record(1), failure(2)]})
    report = make_report(run)
    assert figures(report, "direct")["llm_acc"] is None  # and not 0, from the failed question alone
    assert [each.measure.name for each in report.comparisons] == ["contain_acc"]


def test_intervals_of_shares_are_wilson_s_and_all_others_the_bootstrap_s(write_run):
    values = [True, False, True, True, False, False, True]
    run = write_run({"arag": [record(n, "gold" if value else "lead", steps=1) for n, value in enumerate(values)]})
    row = csv_rows(make_report(run))["arag"]
    numbers = [float(value) for value in values]
    shares = ("contain_acc", "contain_acc_answered", "contain_acc_aliases", "exact_match_aliases")
    for name, expected in [*((name, proportion(numbers)) for name in shares), ("f1_aliases", interval(numbers))]:
        found = [float(row[f"{name}{end}"]) for end in ("", "_low", "_high")]
        assert found == pytest.approx([expected.mean, expected.low, expected.high], abs=1e-6)
    assert (row["steps_low"], row["steps_high"]) == ("1.0", "1.0")


def test_none_of_many_may_still_be_some(write_run):
    report = make_report(write_run({"arag": [record(n, "lead", verdict=False) for n in range(52)]}))
    for name in ("llm_acc", "llm_acc_answered", "contain_acc"):
        assert figures(report, "arag")[name].high == pytest.approx(0.0688, abs=5e-5)
    assert "| A-RAG (Full) | 52 | 52 | 0 | 0.0 [0.0, 6.9] |" in document(report).markdown()


def test_what_accuracies_are_over_and_which_names_count_is_said(write_run):
    some = {"arag": [record(1, verdict=True), record(2, verdict=None)]}
    left_out = "Over all questions asked (failed ones count as wrong; LLM-Acc excludes answers without a verdict)"
    report = make_report(write_run(some))
    _, found = table(report, "Accuracy")
    assert left_out in found.notes[1]
    assert left_out in report_page(report)
    for measure in ("Contain-Acc", "Exact match", "F1"):
        assert f"{measure} with aliases" in found.columns
    assert any("accepts only the gold answer" in note for note in found.notes)
    report = make_report(write_run({"arag": [record(1, verdict=True)]}, name="all judged"))
    assert "without a verdict" not in document(report).markdown() + report_page(report)


def test_effort_is_of_answered_questions(write_run):
    searches = [tool_call("keyword_search", 300), tool_call("chunk_read", 700)]
    report = make_report(write_run({"arag": [record(1, steps=3, trace=searches), record(2, steps=1), failure(3)]}))
    assert mean(report, "arag", "retrieved_tokens") == 500
    assert mean(report, "arag", "steps") == 2
    assert mean(report, "arag", "model_calls") == 2
    assert mean(report, "arag", "seconds") == 2.0
    assert mean(report, "arag", "input_tokens") == 200
    assert mean(report, "arag", "reasoning_tokens") == 8


def test_gold_documents_count_where_they_are_known(write_run):
    run = write_run({"arag": [record(1, gold_seen=1.0, gold_read=0.5), record(2)], "direct": [record(1)]})
    report = make_report(run)
    assert mean(report, "arag", "gold_seen") == 1.0
    assert figures(report, "arag")["gold_read"] == Interval(0.5, 0.5, 0.5, 1)
    assert figures(report, "direct")["gold_seen"] is None


def test_a_cost_that_is_not_known_is_unknown_and_never_nothing(write_run):
    run = write_run(
        {
            "arag": [costing(record(1), 0.25), costing(record(2), 0.75), costing(failure(3), 0.5)],
            "direct": [costing(record(1), 0.25), costing(record(2), None)],
            "naive-rag": [costing(record(1), 0.25), costing(failure(2), None)],
        }
    )
    report, rows = make_report(run), csv_rows(make_report(run))
    assert (rows["arag"]["cost"], rows["arag"]["cost_in_all"]) == ("0.5", "1.5")
    assert (rows["direct"]["cost"], rows["direct"]["cost_low"], rows["direct"]["cost_in_all"]) == ("", "", "")
    assert (rows["naive-rag"]["cost"], rows["naive-rag"]["cost_in_all"]) == ("0.25", "")
    shown = {row["Method"]: row for row in table(report, "Tokens and cost")[0]}
    assert shown["Direct Answer"]["Cost"] == shown["Direct Answer"]["Total cost"] == "unknown"
    assert shown["A-RAG (Full)"]["Total cost"] == "$1.5000"


def test_the_cost_in_all_is_that_of_all_attempts(write_run):
    first, second = failure(1), record(1)
    third = add_judgement(add_attempts(second, first), {"correct": None, "reason": "?", "model": "j", "cost": 0.5})
    last = add_judgement(third, {"correct": True, "reason": "!", "model": "j", "cost": 0.25})
    row = csv_rows(make_report(write_run({"arag": [first, last]})))["arag"]
    assert float(row["cost_in_all"]) == pytest.approx(first["cost"] + second["cost"])
    assert float(row["cost"]) == pytest.approx(second["cost"])
    assert float(row["judge_cost_in_all"]) == 0.75


def test_prices_that_have_become_known_since_count(write_run, tmp_path, monkeypatch):
    calls = [model_call(1, model="qwen3")]
    run = write_run({"arag": [record(1, model_calls=calls, cost=None, paid=None, earlier_calls=calls)]})
    assert csv_rows(make_report(run))["arag"]["cost"] == ""
    price = {"model": "qwen*", "input": 1e6, "cached_input": 0, "output": 0}
    (tmp_path / "prices.json").write_text(json.dumps({"prices": [price]}))
    monkeypatch.setenv("ARAG_PRICES", str(tmp_path / "prices.json"))
    row = csv_rows(make_report(run))["arag"]
    assert (float(row["cost"]), float(row["cost_in_all"])) == (60.0, 120.0)


def test_a_judge_of_unknown_price_is_unknown_and_one_that_was_not_asked_none(write_run):
    free = {"correct": True, "reason": "", "model": "j", "cost": None}
    run = write_run({"arag": [record(1, verdict=True), add_judgement(record(2), free)], "direct": [record(1)]})
    shown = {row["Method"]: row for row in table(make_report(run), "Tokens and cost")[0]}
    assert shown["A-RAG (Full)"]["Total judge cost"] == "unknown"
    assert shown["Direct Answer"]["Total judge cost"] == "–"
    rows = csv_rows(make_report(run))
    assert rows["arag"]["judge_cost_in_all"] == rows["direct"]["judge_cost_in_all"] == ""


def test_tokens_that_a_provider_does_not_report_are_unknown(write_run):
    silent = [model_call(1), model_call(2, tokens=(0, 0, 0, 0))]
    report = make_report(write_run({"arag": [record(1), record(2, model_calls=silent)]}))
    assert figures(report, "arag")["input_tokens"] is None
    assert table(report, "Tokens and cost")[0][0]["Input tokens"] == "unknown"
    assert csv_rows(report)["arag"]["input_tokens"] == ""


def test_the_judge_s_cost_stands_apart(write_run):
    run = write_run({"arag": [costing(record(n, verdict=True), 0.5) for n in range(2)]})
    report = make_report(run)
    row = csv_rows(report)["arag"]
    assert (float(row["cost_in_all"]), float(row["judge_cost_in_all"])) == (1.0, 0.02)


def test_stop_reasons_and_tools_are_counted_and_made_up_tools_together(write_run):
    trace = [
        tool_call("keyword_search"),
        tool_call("keyword_search", error="no keywords"),
        tool_call("=HYPERLINK()", error="there is no such tool"),
        tool_call("google", error="there is no such tool"),
    ]
    run = write_run({"arag": [record(1, trace=trace), record(2, stop_reason="max_steps"), record(3)]})
    row = csv_rows(make_report(run))["arag"]
    assert (row["calls_keyword_search"], row["calls_other"]) == ("2", "2")
    assert (row["stop_answered"], row["stop_max_steps"]) == ("2", "1")
    assert "HYPERLINK" not in csv_text(make_report(run))


def test_methods_stand_in_the_paper_s_order_and_unknown_ones_last(write_run):
    names = ["a-new-one", "arag", "arag-naive", "arag-without-read", "direct", "naive-rag"]
    report = make_report(write_run({name: [record(1)] for name in names}))
    assert [method.title for method in report.methods] == [
        "Direct Answer",
        "Naive RAG",
        "A-RAG (Naive)",
        "A-RAG (Full)",
        "w/o Chunk Read",
        "a-new-one",
    ]


# --- runs that are not complete ---


def test_a_run_that_is_not_complete_says_so(write_run, tmp_path):
    run = write_run({"arag": [record(n) for n in range(11)] + [failure(11)]}, asked=51)
    report = make_report(run)
    note = report.notes[0]
    assert note.startswith("The run is incomplete: 12 of 51 questions have been asked. Run it again to continue.")
    write_report(report, tmp_path / "out", pages=False)
    page = soup(tmp_path / "out" / "report.html")
    assert page.find("h1").text == "Results: 1 method, 12 of 51 questions"
    assert note in [box.text for box in page.find_all(class_="warn")]
    assert f"**{note}**" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_which_method_is_not_complete_is_said(write_run):
    run = write_run({"direct": [record(n) for n in range(3)], "arag": [record(1)]}, asked=3)
    assert (
        "not all of 3 questions have been asked (Direct Answer 3, A-RAG (Full) 1). Run it" in make_report(run).notes[0]
    )


@pytest.mark.parametrize("asked", [0, 2, 3])
def test_a_complete_run_says_nothing_of_it(write_run, asked):
    run = write_run({"arag": [record(n) for n in range(3)], "direct": [record(n) for n in range(3)]}, asked=asked)
    assert not any("complete" in note for note in make_report(run).notes)


# --- comparisons ---


def test_methods_are_compared_on_the_questions_that_both_have(write_run):
    direct = [record(n, "lead") for n in range(12)]
    arag = [record(n, "gold" if n < 9 else "lead") for n in range(2, 20)]
    report = make_report(write_run({"direct": direct, "arag": arag}))
    (comparison,) = report.comparisons
    assert (comparison.baseline, comparison.title) == ("Direct Answer", "A-RAG (Full)")
    assert comparison.difference.count == 10
    assert comparison.difference.mean == 0.7
    assert comparison.p < 0.05
    (row,), _ = table(report, "Paired comparison with Direct Answer")
    assert (row["Questions"], row["Difference"]) == ("10", "+70.0")
    (note,) = [note for note in report.notes if "same questions" in note]
    assert "Direct Answer 12, A-RAG (Full) 18; 10 in common" in note
    assert csv_rows(report)["direct"]["contain_acc_difference"] == ""


def test_the_baseline_can_be_chosen(write_run):
    run = write_run({name: [record(1)] for name in ("direct", "naive-rag", "arag")})
    report = make_report(run, baseline="arag")
    assert {each.baseline for each in report.comparisons} == {"A-RAG (Full)"}
    assert [each.name for each in report.comparisons] == ["direct", "naive-rag"]
    with pytest.raises(InputError, match=r"no records of 'arag-naive'; it has: arag, direct, naive-rag"):
        make_report(run, baseline="arag-naive")


def test_one_method_alone_is_a_report_too(write_run, tmp_path):
    report = make_report(write_run({"arag": [record(1)]}))
    assert report.comparisons == []
    assert "1 method, 1 question" in write_report(report, tmp_path / "out")[2].read_text("utf-8")


@pytest.mark.parametrize("records", [{}, {"arag": []}])
def test_a_run_without_records_is_told(write_run, records):
    with pytest.raises(InputError, match="no records yet"):
        make_report(write_run(records))


def test_a_method_of_which_every_question_failed(write_run, tmp_path):
    report = make_report(write_run({"arag": [failure(1)], "direct": [record(1)]}))
    assert mean(report, "arag", "contain_acc") == 0
    assert figures(report, "arag")["steps"] is None
    write_report(report, tmp_path / "out")


# --- the paper ---


@pytest.mark.parametrize(
    ("file", "dataset"),
    [
        ("data/musique/questions.json", "MuSiQue"),
        ("musique_ans_v1.0_dev.jsonl", "MuSiQue"),
        ("somewhere/hotpot_dev_distractor_v1.json", "HotpotQA"),
        ("2WikiMultihopQA/dev.json", "2WikiMultiHopQA"),
        ("GraphRAG-Bench/medical_questions.json", "GraphRAG-Bench Medical"),
        ("novel/musique.json", "MuSiQue"),  # a file's name tells more than its folder's
        ("novelties/questions.json", None),
        ("musique/more/questions.json", None),
    ],
)
def test_the_dataset_is_told_by_the_name_of_the_file_or_its_folder(file, dataset):
    found = paper_results(file)
    assert (found.dataset if found else None) == dataset


def test_the_paper_s_figures_are_table_1():
    paper = paper_results("questions.json", "musique")
    assert paper.backbones["GPT-5-mini"]["A-RAG (Full)"] == [74.1, 65.3]
    assert paper.backbones["GPT-4o-mini"]["Direct Answer"] == [18.3, 13.9]
    assert paper_results("q.json", "GraphRAG-Bench Novel").backbones["GPT-5-mini"]["GraphRAG"] == [77.1, None]
    for name in ("musique", "hotpotqa", "2wiki", "medical", "novel"):
        assert [len(of) for of in paper_results("q.json", name).backbones.values()] == [10, 10]
    assert {"direct", "naive-rag", "arag-naive", "arag"} <= {
        name for name, method in all_methods().items() if method.title in paper.methods()
    }


def test_an_unknown_dataset_is_told(write_run):
    with pytest.raises(InputError, match=r"no dataset 'squad'; valid datasets: .*musique"):
        make_report(write_run({"arag": [record(1)]}), dataset="squad")


def test_our_figures_stand_beside_the_paper_s(write_run):
    run = write_run({"arag": [record(1), record(2, "lead")], "a-new-one": [record(1)]}, questions="musique/q.json")
    rows, found = table(make_report(run), "Comparison with the paper: MuSiQue")
    by_method = {row["Method"]: row for row in rows}
    assert by_method["A-RAG (Full)"]["Contain-Acc (ours)"] == "50.0"
    assert by_method["A-RAG (Full)"]["LLM-Acc (paper, GPT-5-mini)"] == "74.1"
    assert by_method["GraphRAG"]["Contain-Acc (ours)"] == "–"
    assert by_method["a-new-one"]["LLM-Acc (paper, GPT-4o-mini)"] == "–"
    assert "2602.03442" in found.notes[0]


def test_where_there_are_long_answers_the_paper_has_no_contain_acc(write_run):
    run = write_run({"arag": [record(1, verdict=True)]}, questions="medical/q.json")
    _, found = table(make_report(run), "Comparison with the paper")
    assert found.columns[-2:] == ["LLM-Acc (paper, GPT-5-mini)", "LLM-Acc (paper, GPT-4o-mini)"]


def test_the_paper_is_in_the_plot_where_it_has_such_a_figure(write_run):
    run = write_run({"arag": [record(1)]}, questions="medical/q.json")
    assert "the paper, with" not in report_page(make_report(run))
    assert "the paper, with GPT-5-mini" in report_page(make_report(run, dataset="musique"))


def test_what_differs_from_the_paper_is_said(write_run, make_index, tmp_path):
    make_index([{"id": "a", "title": "A", "text": "One sentence."}])
    index = tmp_path / "made-0" / "index"
    other = [model_call(1, model="extractive")]
    run = write_run({"arag": [record(1, model_calls=other)]}, questions="musique/q.json", index=index)
    told = make_report(run).differences
    assert "Different model: ours extractive, the paper's GPT-5-mini and GPT-4o-mini." in told
    assert any(line.startswith("Different embedder: ") for line in told)
    assert any(line.startswith("We used no judge") for line in told)
    assert any("`--presentation paper`" in line for line in told)
    assert any("1 question, 1 document in 1 chunk" in line for line in told)


def test_what_is_the_same_is_not_said_to_differ(write_run):
    run = write_run(
        {"arag": [record(1, verdict=True)]},
        questions="musique/q.json",
        judge="openai:gpt-5-mini@http://x/v1",
        options=Options(presentation="paper"),
    )
    report = make_report(run)
    same = ("Different model", "Different judge", "presentation")
    assert not any(what in line for line in report.differences for what in same)
    assert any("embedder is unknown" in line for line in report.differences)


# --- CSV ---


def test_there_is_a_row_of_each_question(write_run, tmp_path):
    run = write_run(
        {
            "direct": [record(2, '"no",\nit is lead', verdict=False)],
            "arag": [costing(record(1, verdict=True, steps=2), 0.5), failure(2, "it broke"), record(3, verdict=None)],
        }
    )
    write_report(make_report(run), tmp_path / "out", pages=False)
    with (tmp_path / "out" / "questions.csv").open(encoding="utf-8", newline="") as opened:
        rows = {row["question_id"]: row for row in csv.DictReader(opened)}
    assert {name: value for name, value in rows["q1"].items() if not name.startswith("direct_")} == {
        "question_id": "q1",
        "question": "Question 1?",
        "answer": "gold",
        "arag_prediction": "gold",
        "arag_contain": "1",
        "arag_correct": "1",
        "arag_steps": "2",
        "arag_retrieved_tokens": "0",
        "arag_cost": "0.5",
        "arag_stop_reason": "answered",
        "arag_error": "",
    }
    assert not any(value for name, value in rows["q1"].items() if name.startswith("direct_"))
    assert rows["q2"]["direct_prediction"] == '"no",\nit is lead'
    assert [rows["q2"][f"direct_{name}"] for name in ("contain", "correct")] == ["0", "0"]
    assert [rows["q2"][f"arag_{name}"] for name in ("contain", "correct", "error")] == ["0", "0", "it broke"]
    assert rows["q3"]["arag_correct"] == ""


# --- Markdown ---


def test_every_row_of_a_markdown_table_has_all_its_cells(write_run):
    run = write_run(
        {"arag": [record(1, verdict=True), record(2, verdict=None), failure(3)], "direct": [record(1, verdict=False)]},
        questions="musique/q.json",
    )
    text = document(make_report(run)).markdown()
    found = re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE)
    assert len(found) == len(tables(make_report(run)))
    for rows in found:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1
    assert "| A-RAG (Full) | 3 | 2 | 1 | 1 | 50.0 [9.5, 90.5] |" in text


def test_names_mean_nothing_to_markdown(write_run):
    run = write_run({"a|b <b>*c*": [record(1, model_calls=[model_call(1, model="[m](http://x) `y`")])]})
    text = document(make_report(run)).markdown()
    assert r"a\|b \<b\>\*c\*" in text
    assert r"\[m\](http://x) \`y\`" in text


# --- pages ---


@pytest.fixture
def hostile(write_run, tmp_path):
    """The folder of a report whose texts are all hostile."""
    trace = [tool_call(SCRIPT, error=SCRIPT), tool_call("keyword_search", 10, keywords=[SCRIPT])]
    calls = [model_call(1, model=SCRIPT)]
    mine = record(1, SCRIPT, verdict=True, question=SCRIPT, trace=trace, model_calls=calls, stop_reason=SCRIPT)
    mine["judgement"]["reason"] = SCRIPT
    run = write_run(
        {
            "arag": [{**mine, "aliases": [SCRIPT], "answer": SCRIPT}, failure(2, SCRIPT), record(3, verdict=None)],
            "direct": [record(1, verdict=False, question=SCRIPT)],
            'odd & "name" <#1>%?': [record(1, verdict=True, question=SCRIPT)],
        },
        questions="musique/q.json",
        judge=SCRIPT,
    )
    write_report(make_report(run), tmp_path / "out")
    return tmp_path / "out"


def pages(folder):
    found = sorted(folder.rglob("*.html"))
    assert len(found) == 1 + 3 + 4  # the report, three questions, and four runs
    return found


def test_every_link_and_frame_has_its_target(hostile):
    for page in pages(hostile):
        parsed = soup(page)
        links = [link["href"] for link in parsed.find_all("a")] + [frame["src"] for frame in parsed.find_all("iframe")]
        assert links or page.parent.parent.name == "questions"
        for link in links:
            address, _, anchor = urljoin(page.as_uri(), link).partition("#")
            file = Path(unquote(address.removeprefix("file://")))
            assert file.is_file(), link
            assert not anchor or soup(file).find(id=unquote(anchor)), link


def test_nothing_is_loaded_from_elsewhere_and_nothing_runs(hostile):
    for page in pages(hostile):
        parsed = soup(page)
        assert not parsed.find_all(["script", "link", "img", "object", "embed", "base", "form"])
        policy = parsed.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
        assert policy.startswith("default-src 'none'")
        for tag in parsed.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on") or name == "style"]
            for name in ("src", "href", "action", "data", "xlink:href"):
                assert "//" not in tag.get(name, "")
        for style in parsed.find_all("style"):
            assert "url(" not in style.text
            assert "@import" not in style.text
        allowed = {right for frame in parsed.find_all("iframe") for right in frame["sandbox"]}
        assert allowed <= {"allow-popups", "allow-popups-to-escape-sandbox"}


def test_hostile_texts_are_shown_as_they_are(hostile):
    report, question = soup(hostile / "report.html"), soup(hostile / "questions" / "1.html")
    assert SCRIPT in report.find("table", class_="asked").text
    assert SCRIPT in question.find("h1").text
    assert SCRIPT in question.find_all(class_="answer")[1].text
    assert SCRIPT in soup(hostile / "questions" / "2.html").find(class_="none").text


def test_the_questions_page_has_a_mark_for_every_method(hostile):
    rows = soup(hostile / "report.html").find("table", class_="asked").tbody.find_all("tr")
    marks = [[mark["class"][1] for mark in row.find_all(class_="mark")] for row in rows]
    assert marks == [["wrong", "right", "right"], ["missing", "failed", "missing"], ["missing", "unjudged", "missing"]]
    assert [mark.name for mark in rows[1].find_all(class_="mark")] == ["span", "span", "span"]  # nothing to open
    assert "some" in rows[0]["class"]
    assert "some" not in rows[1]["class"]


def test_a_run_s_page_is_the_trace_of_its_record(small_index, write_run, tmp_path):
    model = ScriptedModel(
        call("keyword_search", keywords=["Lothair II"]), call("chunk_read", chunk_ids=["boso:0"]), ANSWER
    )
    state = create_arag_agent(model, small_index).invoke(asked())
    question = Question(id="a-question", text=state["messages"][0].text, answer="Boso the Elder")
    made = json.loads(json.dumps(record_answer(question, state, 1.0, small_index)))
    report = make_report(write_run({"arag": [made]}))
    assert not report.questions[0]["messages"]  # they are read again for the page: all of them may be too much
    write_report(report, tmp_path / "out")
    page = soup(tmp_path / "out" / "questions" / "1" / "arag.html")
    assert page.find("h1").text == question.text
    assert "teutberga:0" in page.find(id="sources").text
    totals = {dt.text: dt.find_next("dd").text for dt in page.find_all("dt")}
    assert totals["Retrieved tokens"].startswith(f"{made['retrieved_tokens']:,}")
    side = soup(tmp_path / "out" / "questions" / "1.html").find("li", class_="right")
    assert "3 steps" in side.text
    assert side.find("iframe")["src"] == "1/arag.html"


def test_a_failed_run_has_a_page_where_it_came_to_anything(small_index, write_run, tmp_path):
    model = ScriptedModel(call("keyword_search", keywords=["Lothair II"]), ANSWER)
    state = create_arag_agent(model, small_index).invoke(asked())
    question = Question(id="q1", text=state["messages"][0].text, answer="Boso the Elder")
    made = record_failure(question, {**state, "messages": state["messages"][:3]}, "APITimeoutError: timed out", 1.0)
    out = tmp_path / "out"
    write_report(make_report(write_run({"arag": [made], "direct": [failure(1)]})), out)
    none, mark = soup(out / "report.html").find("table", class_="asked").find_all(class_="failed")
    assert (mark.name, mark["href"], none.name) == ("a", "questions/1/arag.html", "span")
    with_page, without = soup(out / "questions" / "1.html").find_all("li", class_="failed")[::-1]
    assert "timed out" in with_page.text
    assert with_page.find("a")["href"] == with_page.find("iframe")["src"] == "1/arag.html"
    assert not without.find(["a", "iframe"])
    assert "Lothair II" in soup(out / "questions" / "1" / "arag.html").text
    page = soup(out / "questions" / "1" / "arag.html")
    assert page.find(class_="error").text == "The run failed with openai:gpt-5-mini. APITimeoutError: timed out"


def test_pages_are_counted_as_they_are_written(write_run, tmp_path):
    counts = []
    report = make_report(write_run({"arag": [record(1), record(2)], "direct": [failure(1)]}))
    write_report(report, tmp_path / "out", told=counts.append)
    assert counts == [1, 2, 3, 4]
    assert count_pages(report) == 4


def test_questions_keep_their_file_s_order(write_run, tmp_path):
    file = tmp_path / "questions.json"
    file.write_text(json.dumps([{"id": f"q{n}", "question": f"Question {n}?", "answer": "gold"} for n in (3, 1, 2)]))
    report = make_report(write_run({"arag": [record(2), record(1), record(3)]}, questions=str(file)))
    assert [question["question_id"] for question in report.questions] == ["q3", "q1", "q2"]


def test_plots_show_the_figures(write_run):
    run = write_run(
        {
            "direct": [record(1, "lead"), record(2)],
            "arag": [record(1, trace=[tool_call("keyword_search", 400), tool_call("chunk_read", 600)]), record(2)],
        },
        questions="musique/q.json",
    )
    page = BeautifulSoup(report_page(make_report(run)), "html.parser")
    accuracy, stops = page.find_all(class_="shares")
    assert [circle["cx"] for circle in accuracy.find_all("circle")] == ["50.00%", "100.00%"]
    assert [mark["x"] for mark in accuracy.find_all("svg", class_="over")] == ["26.50%", "65.30%"]  # the paper's
    assert [row.text for row in stops.find_all(class_="value")][:2] == ["50.0", "100.0"]
    bars = page.find(class_="stacks").find_all("rect")
    assert [(bar["width"], bar["class"][0]) for bar in bars if bar["width"] != "0.00%"] == [
        ("50.00%", "c1"),
        ("50.00%", "c2"),
    ]
    assert "A-RAG (Full): 500 tokens, 100.0 Contain-Acc" in page.find("svg", class_="plane")["aria-label"]


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_ticks_are_round_and_reach_the_highest_value(highest):
    ticks = plots.ticks(highest)
    assert ticks[0] == 0
    assert ticks[-1] >= highest * (1 - 1e-9)
    assert ticks[-2] < highest
    assert 2 <= len(ticks) <= 7


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 340), st.sampled_from(["a", "A-RAG (Full)"])), max_size=10))
def test_labels_do_not_cover_each_other(dots):
    for letter in (plots._ON_A_DESK, plots._ON_A_PHONE):
        places = plots._places(dots, letter)
        boxes = []
        for (x, _, label), (side, y) in zip(dots, places, strict=True):
            width = side * (letter * len(label) + 4)
            boxes.append((100 * x + min(0, width), 100 * x + max(0, width), y))
        for n, (begins, ends, y) in enumerate(boxes):
            for other in boxes[:n]:
                assert ends <= other[0] or other[1] <= begins or abs(y - other[2]) > 15.999  # of 16 pixels


def test_names_keep_off_lines_where_there_is_room():
    line = plots._Box(0, 100, 170, 170)
    dots = [(0.5, 170, "A-RAG")]
    assert plots._places(dots, plots._ON_A_DESK) == [(1, 170)]
    ((_, y),) = plots._places(dots, plots._ON_A_DESK, [line])
    assert abs(y - 170) == 8


def test_on_a_phone_every_mark_names_its_method(hostile):
    table = soup(hostile / "report.html").find("table", class_="asked")
    names = [column.text for column in table.find_all("th", scope="col")][2:]
    for row in table.tbody.find_all("tr"):
        assert [mark["data-method"] for mark in row.find_all("td")[1:]] == names


def test_cards_show_answers_whole(write_run, tmp_path):
    folder = tmp_path / "report"
    write_report(make_report(write_run({"arag": [record(1)], "direct": [record(1)]})), folder)
    (page,) = folder.glob("questions/1.html")
    style = soup(page).find("style").text
    (rule,) = re.findall(r"^\.answer \{(.*?)\}", style, re.MULTILINE | re.DOTALL)
    assert not re.search("height|overflow|clamp", rule.replace("line-height", ""))


# --- the command ---


def test_the_command_writes_a_report(arag, write_run, tmp_path):
    run = write_run({"arag": [record(1)], "direct": [record(1)]})
    code, out, err = arag("eval", "report", run)
    assert code == 0
    assert all(str(run / f"report.{kind}") in out for kind in ("md", "csv", "html"))
    assert "There was no judge" in err
    assert (run / "questions" / "1" / "arag.html").is_file()
    code, out, _ = arag("eval", "report", run, "--json")  # again, over the first
    assert code == 0
    assert json.loads(out)["files"][2] == str(run / "report.html")


def test_the_report_can_go_elsewhere_without_pages(arag, write_run, tmp_path):
    run = write_run({"arag": [record(1)], "direct": [record(1)]})
    out = tmp_path / "paper" / "tables"
    code, _, _ = arag("eval", "report", run, "--out", out, "--no-pages", "--baseline", "arag", "--dataset", "2wiki")
    assert code == 0
    assert sorted(file.name for file in out.iterdir()) == ["questions.csv", "report.csv", "report.html", "report.md"]
    assert not [link for link in soup(out / "report.html").find_all("a") if not link["href"].startswith("#")]
    assert "Paired comparison with A-RAG (Full)" in (out / "report.md").read_text("utf-8")
    assert not (run / "report.md").exists()


def test_the_command_says_what_is_wrong(arag, write_run, tmp_path):
    code, _, err = arag("eval", "report", tmp_path)
    assert code == FAILED
    assert "there is no run in" in err
    code, _, err = arag("eval", "report", write_run({"arag": [record(1)]}), "--dataset", "squad")
    assert code == FAILED
    assert "squad" in err


def test_a_record_of_another_version_and_a_place_that_cannot_be_written_to_are_told(arag, write_run, tmp_path):
    run = write_run({"arag": [record(1)]})
    (tmp_path / "file").touch()
    code, _, err = arag("eval", "report", run, "--out", tmp_path / "file" / "below")
    assert code == FAILED
    assert "report.md cannot be written: Not a directory" in err
    record_file(run, "direct").file.write_text('{"question_id": "q1"}\n')
    code, _, err = arag("eval", "report", run)
    assert code == FAILED
    assert "the record of question 'q1' in direct.jsonl has no 'aliases'" in err


# --- several runs ---


@pytest.fixture
def several(write_run):
    """The folders of three runs."""
    other = [model_call(1, model="gpt-4o-mini")]
    return [
        write_run(
            {"arag": [record(1, verdict=True), record(2, verdict=False)], "direct": [record(1, "lead", verdict=False)]},
            questions="musique/q.json",
            name="one",
        ),
        write_run(
            {"arag": [record(1, verdict=False, model_calls=other)]}, questions="musique/q.json", name="two", asked=9
        ),
        write_run({"naive-rag": [record(1)]}, questions="mine/questions.json", name="three"),
    ]


def test_several_runs_stand_in_one_table(arag, several, tmp_path):
    code, text, err = arag("eval", "report", *several, "--out", tmp_path / "out")
    assert code == 0
    assert all(f"overview.{kind}" in text for kind in ("md", "csv", "html"))
    assert "MuSiQue, gpt-4o-mini: The run is incomplete: 1 of 9 questions" in err
    page = soup(tmp_path / "out" / "overview.html")
    assert [th.text for th in page.find("table").find_all("th", scope="col")] == [
        "Method",
        "MuSiQue, gpt-5-mini-2025-08-07: LLM-Acc",
        "MuSiQue, gpt-5-mini-2025-08-07: Contain-Acc",
        "MuSiQue, gpt-5-mini-2025-08-07: LLM-Acc (paper)",
        "MuSiQue, gpt-5-mini-2025-08-07: Contain-Acc (paper)",
        "MuSiQue, gpt-4o-mini: LLM-Acc",
        "MuSiQue, gpt-4o-mini: Contain-Acc",
        "MuSiQue, gpt-4o-mini: LLM-Acc (paper)",
        "MuSiQue, gpt-4o-mini: Contain-Acc (paper)",
        "mine, gpt-5-mini-2025-08-07: Contain-Acc",
    ]
    cells = {row.th.text: [cell.text for cell in row.find_all("td")] for row in page.table.tbody.find_all("tr")}
    assert [*cells][:3] == ["Direct Answer", "Naive RAG", "GraphRAG"]  # the paper's methods, in its order
    assert "".join(cells["GraphRAG"]).startswith("––4")
    assert [text.split("[")[0].strip() for text in cells["A-RAG (Full)"]] == [
        *("50.0", "100.0", "74.1", "65.3"),
        *("0.0", "100.0", "46.1", "39.6", "–"),
    ]
    with (tmp_path / "out" / "overview.csv").open(encoding="utf-8", newline="") as opened:
        rows = {row["method"]: row for row in csv.DictReader(opened)}
    assert rows["arag"]["MuSiQue, gpt-5-mini-2025-08-07 llm_acc"] == "0.5"
    assert rows["arag"]["mine, gpt-5-mini-2025-08-07 contain_acc_high"] == ""
    assert "incomplete" in (tmp_path / "out" / "overview.md").read_text("utf-8")


def test_several_runs_are_printed(arag, several):
    code, text, _ = arag("eval", "report", *several)
    assert code == 0
    assert "| A-RAG (Full) | 50.0 [9.5, 90.5] | 100.0 [34.2, 100.0] | 74.1 |" in text
    assert not list(several[0].glob("report*"))


def test_runs_of_the_same_model_and_questions_are_told_apart(write_run):
    folders = [write_run({"arag": [record(1)]}, questions="mine.json", name=name) for name in ("one", "two")]
    runs = next(table for table in make_overview(folders).tables if table.title == "Runs")
    assert [row[0].text for row in runs.rows] == [f"mine, gpt-5-mini-2025-08-07 ({folder})" for folder in folders]
    assert runs.rows[0][runs.columns.index("Presentation")].text == "compact"


def test_runs_that_differ_in_a_method_s_own_setting_are_told_apart(write_run):
    options = Options(settings={"hipporag2": {"facts": 4, "damping": 0.5}})
    changed = write_run({"hipporag2": [record(1)]}, name="one", options=options)
    runs = next(
        t for t in make_overview([changed, write_run({"arag": [record(1)]}, name="two")]).tables if t.title == "Runs"
    )
    place = runs.columns.index("Settings")
    assert [row[place].text for row in runs.rows] == ["hipporag2: facts 4, damping 0.5", "–"]


def test_what_does_not_go_with_several_runs_is_told(arag, several, tmp_path):
    for more, told in (
        (["--baseline", "arag"], "one run"),
        (["--json"], "--out"),
        ([tmp_path / "none"], "there is no run in"),
    ):
        code, _, err = arag("eval", "report", *several, *more)
        assert code == FAILED
        assert told in err
    (tmp_path / "file").touch()
    code, _, err = arag("eval", "report", *several, "--out", tmp_path / "file" / "below")
    assert code == FAILED
    assert "overview.md cannot be written: Not a directory" in err


# --- methods with index-time work, settings and stages ---


def outside(**changes):
    """What a run keeps of a method whose module is gone."""
    facts = {
        "title": "Outside",
        "description": "somebody's method",
        "simplified": "No reranker.",
        "settings": {"depth": 2, "mode": "fast"},
        "autonomous": None,
        "iterative": True,
        "interleaved": False,
    }
    return facts | changes


def write_preparation(folder, name, *, cost, reused_cost, calls, reused_calls):
    def usage(count):
        names = ("cached_tokens", "output_tokens", "reasoning_tokens")
        return {"model_calls": count, "input_tokens": 1_000 * count, **dict.fromkeys(names, 10 * count)}

    done = {"seconds": 30.0, "usage": usage(calls), "cost": cost}
    done |= {"reused": usage(reused_calls), "reused_cost": reused_cost}
    (folder / "prepared.json").write_text(json.dumps({name: done}))


@pytest.fixture
def prepared_run(write_run):
    """A run of a method from outside, of whose index-time work another run has paid a part."""
    records = {"outside": [costing(record(1), 0.5), costing(record(2), 0.5)], "arag": [costing(record(1), 0.25)]}
    options = Options(settings={"outside": {"depth": 2}})
    methods = {"outside": outside()}
    folder = write_run(records, questions="musique/q.json", methods=methods, options=options)
    write_preparation(folder, "outside", cost=1.0, reused_cost=3.0, calls=10, reused_calls=30)
    return folder


def test_index_cost_and_question_cost_stand_apart_and_work_of_other_runs_counts(prepared_run):
    report = make_report(prepared_run)
    costs = {row["Method"]: row for row in table(report, "Tokens and cost")[0]}
    asked = ("Total cost", "Index-time cost", "Cost with index")
    assert [costs["Outside"][name] for name in asked] == ["$1.0000", "$4.0000", "$5.0000"]
    assert [costs["A-RAG (Full)"][name] for name in asked] == ["$0.2500", "–", "$0.2500"]
    [work] = table(report, "Index-time work")[0]
    assert work["Seconds here"] == "30.0"
    assert (work["Model calls"], work["Calls reused"], work["Cost"], work["Paid here"]) == (
        "40",
        "30",
        "$4.0000",
        "$1.0000",
    )
    rows = csv_rows(report)
    assert (rows["outside"]["index_model_calls"], rows["outside"]["cost_with_index"]) == ("40", "5.0")
    assert (rows["arag"]["index_model_calls"], rows["arag"]["cost_with_index"]) == ("0", "0.25")


def test_an_unknown_part_of_the_index_cost_makes_the_whole_unknown(prepared_run):
    write_preparation(prepared_run, "outside", cost=None, reused_cost=3.0, calls=10, reused_calls=30)
    costs = {row["Method"]: row for row in table(make_report(prepared_run), "Tokens and cost")[0]}
    assert (costs["Outside"]["Index-time cost"], costs["Outside"]["Cost with index"]) == ("unknown", "unknown")


def test_a_method_whose_module_is_gone_is_told_as_it_was(prepared_run):
    report = make_report(prepared_run)
    rows, methods = table(report, "Methods")
    marks = {row["Method"]: [row[name] for name in methods.columns[-3:]] for row in rows}
    assert marks == {"Outside": ["in part", "yes", "no"], "A-RAG (Full)": ["yes", "yes", "yes"]}
    assert "Outside: No reranker." in methods.notes
    [settings], _ = table(report, "Methods' own settings")
    assert settings == {"Method": "Outside", "Set for this run": "depth 2", "Others": "mode fast"}


def test_costs_of_several_runs_stand_in_one_table(prepared_run, write_run):
    other = write_run({"arag": [costing(record(1), 0.125)]}, questions="mine.json", name="other")
    overview = make_overview([prepared_run, other])
    costs = next(table for table in overview.tables if table.title == "Cost")
    assert {row[0].text: [each.text for each in row[1:]] for row in costs.rows} == {
        "Outside": ["$4.0000", "$1.0000", "$5.0000", "–", "–", "–"],
        "A-RAG (Full)": ["$0", "$0.2500", "$0.2500", "$0", "$0.1250", "$0.1250"],
    }


def test_a_run_s_page_shows_a_method_s_stages_retrievals_and_calls(write_run, tmp_path):
    stages = [{"title": "Plan", "lines": [SCRIPT, "second"]}, {"title": "Facts", "lines": []}]
    made = record(1, steps=3, trace=[tool_call("retrieve", 120, words=["gold"])], stages=stages)
    made["messages"] = [{"type": "human", "content": "Question 1?"}, {"type": "ai", "content": "gold"}]
    write_report(make_report(write_run({"outside": [made]}, methods={"outside": outside()})), tmp_path / "out")
    page = soup(tmp_path / "out" / "questions" / "1" / "outside.html")
    assert [[line.text for line in stage.find_all("li")] for stage in page.select("ol.stages > li")] == [
        [SCRIPT, "second"],
        [],
    ]
    assert not page.find("script", string=re.compile("alert"))
    [retrieval] = page.select(".retrieval")
    assert "retrieve" in retrieval.h3.text
    assert "120 tokens retrieved" in retrieval.text
    assert len(page.select("ol.unspoken > li")) == 3
    totals = {dt.text: dt.find_next("dd").text for dt in page.find_all("dt")}
    assert totals["Steps"].startswith("3")
    assert "1 retrieval" in totals["Steps"]


def test_a_failed_question_s_page_shows_what_was_found_and_paid(write_run, tmp_path):
    made = failure(1, trace=[tool_call("retrieve", 120, query="gold")], stages=[{"title": "Plan", "lines": ["one"]}])
    made["model_calls"] = [model_call(1), model_call(2)]
    made["messages"] = [{"type": "human", "content": "Question 1?"}]
    write_report(make_report(write_run({"outside": [made]}, methods={"outside": outside()})), tmp_path / "out")
    page = soup(tmp_path / "out" / "questions" / "1" / "outside.html")
    assert "timed out" in page.header.text
    assert [line.text for line in page.select("ol.stages li li")] == ["one"]
    assert "120 tokens retrieved" in page.select_one(".retrieval").text
    assert len(page.select("ol.unspoken > li")) == 2
    totals = {dt.text: dt.find_next("dd").text for dt in page.find_all("dt")}
    assert "$" in totals["Cost"]
    assert "The model gave no reply" not in page.text


def test_a_retrieval_that_lacks_much_does_not_stop_a_report(write_run, tmp_path):
    made = record(1, steps=2, trace=[tool_call("retrieve", 120)])
    made["messages"] = [{"type": "human", "content": "Question 1?"}, {"type": "ai", "content": "gold"}]
    made["trace"] = [{"tool": "retrieve", "retrieved_tokens": 120}]
    write_report(make_report(write_run({"outside": [made]}, methods={"outside": outside()})), tmp_path / "out")
    page = soup(tmp_path / "out" / "questions" / "1" / "outside.html")
    assert "120 tokens retrieved" in page.select_one(".retrieval").text


def test_a_setting_that_no_longer_exists_does_not_stop_a_report(write_run):
    options = Options(settings={"hipporag2": {"gone": 1}})
    rows, _ = table(make_report(write_run({"hipporag2": [record(1)]}, options=options)), "Methods")
    assert [(row["Method"], row["What it does"]) for row in rows] == [("hipporag2", "unknown")]


def test_records_of_earlier_versions_have_no_stages(write_run, tmp_path):
    made = record(1)
    del made["stages"]
    write_report(make_report(write_run({"arag": [made]})), tmp_path / "out")
    assert not soup(tmp_path / "out" / "questions" / "1" / "arag.html").find(id="stages")


def test_how_often_activation_went_nowhere_is_said(write_run):
    found = [tool_call("retrieve", entities=2, activated=count) for count in (0, 7, 0)]
    records = [record(number, trace=[call]) for number, call in enumerate(found)]
    _, methods = table(make_report(write_run({"linear-rag": records, "arag": [record(1)]})), "Methods")
    told = "LinearRAG: in 2 of 3 questions, nothing beyond the question's entities was activated."
    assert [note for note in methods.notes if "activated" in note] == [told]
