"""The report of runs: its figures, its files, and what hostile texts do to it."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from itertools import product

import pandas as pd
import pytest
from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict

from arag.errors import InputError
from arag.evaluation.methods import all_methods
from arag.evaluation.plan import MethodFacts, Plan
from arag.evaluation.report.figures import CONTAIN_ACC, COST, LLM_ACC, RETRIEVED, interval, paired
from arag.evaluation.report.frame import find_dataset, load_runs, paper_results
from arag.evaluation.report.pages import write_report
from arag.evaluation.report.tables import run_tables

HOSTILE = '<script>alert(1)</script> | "quoted" \x1b[31m [link](javascript:x) \ud800'


TITLES = {"arag": "A-RAG (Full)", "naive-rag": "Naive RAG", "arag-shell": "A-RAG (Shell)", "dci": "DCI"}


def call(**changed):
    known = {"step": 1, "forced": False, "empty": False, "cut_off": False, "model": "gpt-5-mini", "provider": "openai"}
    tokens = {"input_tokens": 1_000, "cached_tokens": 0, "output_tokens": 100, "reasoning_tokens": 0}
    return {**known, "seconds": 1.0, **tokens, **changed}


FIGURES = {"seconds": 1.0, "step": 1, "steps": 1, "retrieved_tokens": 300, "evidence_tokens": 200}
CHUNKS = {"chunk_ids": ["boso:0"], "new_chunks": []}
GOLD = {"gold_seen": 1.0, "gold_read": 0.0, "gold_cited": 1.0}


def record(number, *, right=True, error=None, **changed):
    return {
        "question_id": f"q{number}",
        "question": f"Who was the father of number {number}?",
        "answer": "Boso",
        "aliases": [],
        "prediction": "" if error else "Boso" if right else "Hugh",
        "stop_reason": None if error else "answered",
        "error": error,
        **FIGURES,
        **GOLD,
        **dict.fromkeys(("contain", "contain_with_aliases", "exact_match", "f1"), right and not error),
        "judgement": None,
        "model_calls": [call()],
        "unusable": 0,
        "trace": [{"tool": "keyword_search", "arguments": {}, "error": None, **CHUNKS, **FIGURES}],
        "messages": messages_to_dict([HumanMessage("Who?"), *([] if error else [AIMessage("Boso")])]),
        **changed,
    }


def verdict(correct):
    return {"correct": correct, "reason": "It is so.", "cost": 0.0}


@pytest.fixture
def write_run(tmp_path):
    """A function that writes a run folder with the records of methods."""

    def write(methods, name="run", settings=(), **plan):
        folder = tmp_path / name
        (folder / "records").mkdir(parents=True)
        rest = {"description": "It does it.", "differs": "", "settings": dict(settings)}
        rest |= dict.fromkeys(("autonomous", "iterative", "interleaved"))
        facts = {
            method: MethodFacts(
                title=TITLES.get(method, method),
                abilities=all_methods()[method].abilities if method in all_methods() else None,
                **rest,
            )
            for method in methods
        }
        known = {"questions": "questions.json", "index": "index", "model": "openai:gpt-5-mini", "methods": facts}
        text = Plan(**{**known, "asked": max(map(len, methods.values())), **plan}).model_dump_json()
        (folder / "run.json").write_text(text)
        for method, records in methods.items():
            lines = "".join(json.dumps(each) + "\n" for each in records)
            (folder / "records" / f"{method}.jsonl").write_text(lines)
        return folder

    return write


def figures(folder, measure):
    _, frame = load_runs([folder])
    return {method: interval(measure, some) for method, some in frame.groupby("method")}


# --- figures ---


def test_methods_are_compared_on_the_questions_that_both_have_by_an_exact_test_where_they_are_few():
    first = pd.Series({"a": 0.0, "b": 0.0, "c": 1.0, "d": 0.0, "e": 0.0, "only here": 1.0})
    second = pd.Series({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.0, "only there": 0.0})
    count, difference, p = paired(first, second)
    changes = [1, 1, 0, 1, 0]  # each may as well have had the other sign
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, changes, strict=True))) for signs in product([1, -1], repeat=5)
    ]
    assert (count, difference.mean) == (5, 0.6)
    assert p == pytest.approx(sum(each >= sum(changes) for each in sums) / len(sums))
    assert paired(first, first)[2] == 1.0


def test_failed_questions_are_wrong_and_answers_without_a_verdict_are_left_out(write_run):
    answers = [
        record(1, judgement=verdict(True)),
        record(2, judgement=verdict(False)),
        record(3, judgement=verdict(None)),
    ]
    folder = write_run({"arag": [*answers, record(4, error="TimeoutError: no reply")]})
    assert figures(folder, LLM_ACC)["arag"].mean == pytest.approx(1 / 3)
    assert figures(folder, CONTAIN_ACC)["arag"].mean == pytest.approx(3 / 4)
    assert figures(folder, RETRIEVED)["arag"].mean == 300  # of the answered ones
    text = write_report([folder], folder, pages=False)[0].read_text()
    assert "A-RAG (Full): 1 failed, and counted as wrong; 1 without a verdict, and left out of LLM-Acc." in text


def test_the_first_table_has_accuracy_effort_tokens_and_cost_and_compares_with_the_baseline(write_run):
    right, wrong = verdict(True), verdict(False)
    folder = write_run(
        {
            "arag": [record(n, judgement=right) for n in range(9)],
            "naive-rag": [record(n, judgement=wrong) for n in range(9)],
        }
    )
    (run,), frame = load_runs([folder])
    table = run_tables(run, frame, "naive-rag")[0]
    assert table.title == "Summary"
    assert table.rows.loc["A-RAG (Full)"].to_dict() == {
        "LLM-Acc": "100.0 [70.1, 100.0]",
        "Against Naive RAG": "+100.0 [p 0.004]",
        "Contain-Acc": "100.0 [70.1, 100.0]",
        "Model calls": "1.00",
        "Input tokens": "1,000",
        "Retrieved tokens": "300",
        "Cost": "$0.0004",
    }
    assert table.rows.loc["Naive RAG", "Against Naive RAG"] == "–"


def test_a_table_says_what_each_method_cannot_do(write_run):
    methods = ["direct", "naive-rag", "graphrag", "arag", "arag-shell", "dci"]
    folder = write_run({name: [record(1)] for name in methods})
    (run,), frame = load_runs([folder])
    (table,) = [table for table in run_tables(run, frame) if table.title == "What each method cannot do"]
    marks = {title: "".join(row) for title, row in table.rows.iterrows()}
    assert marks == {
        "direct": "✗✗✗✗✗✗✓",
        "Naive RAG": "✗✓✗✗✗✓✓",
        "graphrag": "✗✓✗✗✗✓✗",
        "A-RAG (Full)": "✓✓✓✗✗✓✓",
        "A-RAG (Shell)": "✓✓✓✓✓✓✓",
        "DCI": "✓✗✓✓✓✗✓",
    }
    assert list(table.rows.columns)[2] == "Follow what it has found"


def test_a_cost_that_is_unknown_for_one_question_is_unknown(write_run):
    unknown = record(2, model_calls=[call(model="my-own")])
    folder = write_run({"arag": [record(1), unknown], "naive-rag": [record(1)]})
    assert math.isnan(figures(folder, COST)["arag"].mean)
    assert figures(folder, COST)["naive-rag"].mean > 0


# --- the paper ---


def test_our_figures_stand_beside_table_1(write_run):
    paper = paper_results().set_index(["dataset", "model", "method"])
    assert list(paper.loc["MuSiQue", "GPT-5-mini", "A-RAG (Full)"]) == [74.1, 65.3]
    assert find_dataset("data/2wikimultihopqa_dev.json") == "2WikiMultiHopQA"
    assert find_dataset("data/our-novelties.json") is None
    folder = write_run({"my-own": [record(1)], "arag": [record(1)]}, questions="musique/questions.json")
    (run,), frame = load_runs([folder])
    tables = {table.title: table for table in run_tables(run, frame)}
    rows = tables["Beside the paper: MuSiQue"].rows
    assert list(rows.index[-2:]) == ["A-RAG (Full)", "my-own"]  # in the paper's order, and others last
    assert rows.loc["A-RAG (Full)", "MuSiQue: LLM-Acc (paper, GPT-5-mini)"] == "74.1"
    assert rows.loc["A-RAG (Full)", "MuSiQue, gpt-5-mini: Contain-Acc"].startswith("100.0 [")
    assert "MuSiQue, gpt-5-mini: LLM-Acc" not in rows  # there was no judge
    assert rows.loc["Naive RAG", "MuSiQue, gpt-5-mini: Contain-Acc"] == "–"


# --- files ---


def test_a_report_of_one_run_has_a_page_for_each_question_and_run(write_run):
    folder = write_run({"arag": [record(1), record(2, error="Down: no")], "naive-rag": [record(1)]}, asked=3)
    files = write_report([folder], folder / "out")
    pages = sorted(str(file.relative_to(folder / "out")) for file in (folder / "out").rglob("questions/**/*.html"))
    assert pages == [
        "questions/1.html",
        "questions/1/arag.html",
        "questions/1/naive-rag.html",
        "questions/2.html",
        "questions/2/arag.html",
    ]
    assert re.search("Retrieved tokens: 300<.*Evidence tokens: 200<", (folder / "out" / pages[0]).read_text())
    assert "Naive RAG: 2 not asked yet." in files[0].read_text()
    rows = pd.read_csv(files[1])[["method", "questions", "failed"]].to_numpy().tolist()
    assert rows == [["naive-rag", 1, 0], ["arag", 2, 1]]
    links = re.findall(r'(?:href|src)="([^"#]+\.html)', files[0].read_text())
    assert links
    assert all((folder / "out" / link).exists() for link in links)


def test_a_report_says_where_the_built_in_model_found_no_answer(write_run):
    notice = "(Quoted by the built-in extractive model, which is not a language model.)"
    missed = record(2, prediction=f"Nothing was found in the corpus. {notice}")
    folder = write_run({"arag": [record(1), missed]})
    report, *_ = write_report([folder], folder / "out")
    ends = [(folder / "out" / f"questions/{number}.html").read_text() for number in (1, 2)]
    assert ["Ended: answered<" in ends[0], "Ended: no answer found<" in ends[1]] == [True, True]
    assert re.search(
        r"Stop reasons.*<th[^>]*>answered</th>\s*<th[^>]*>no answer found</th>", report.read_text(), re.DOTALL
    )


def test_the_same_records_give_the_same_bytes(write_run):
    folder = write_run({"arag": [record(n, right=n % 3 > 0, retrieved_tokens=100 * n) for n in range(9)]})
    first = [file.read_bytes() for file in write_report([folder], folder, pages=False)]
    assert first == [file.read_bytes() for file in write_report([folder], folder, pages=False)]


def test_steps_and_efforts_are_drawn_beside_each_other(write_run):
    variants = {"max-5": (5, {}), "max-20": (20, {}), "low": (15, "low"), "high": (15, "high")}
    folders = [
        write_run(
            {"arag": [record(1)]},
            name,
            questions="musique.jsonl",
            max_steps=steps,
            model_options={"reasoning_effort": effort} if effort else {},
        )
        for name, (steps, effort) in variants.items()
    ]
    page = write_report(folders, folders[0] / "out")[0].read_text()
    assert re.findall(r'<h2 id="figure-\d">([^<]+)', page) == [
        "Over maximum steps: MuSiQue, gpt-5-mini",
        "Over reasoning effort: MuSiQue, gpt-5-mini",
    ]
    assert f"MuSiQue, gpt-5-mini, {folders[0]}: Contain-Acc" in page


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_hostile_texts_are_shown_as_they_are_and_load_and_run_nothing(write_run):
    hostile = record(1, question=HOSTILE, answer=HOSTILE, prediction="=cmd" + HOSTILE, stop_reason=HOSTILE)
    folder = write_run({"arag": [hostile]}, model="openai:my|model")
    write_report([folder], folder / "out")
    for file in (folder / "out").rglob("*.html"):
        parser = _Tags()
        parser.feed(file.read_text())
        assert not {"script", "object", "embed", "link", "img"} & {tag for tag, _ in parser.tags}
        addresses = [attrs.get(name, "") for _, attrs in parser.tags for name in ("href", "src", "action")]
        assert not [address for address in addresses if re.match(r"(?i)[a-z]+:", address)]


def test_wrong_answers_are_drawn_by_cause(write_run):
    folder = write_run({"arag": [record(n, right=n > 3) for n in range(5)]})
    causes = ["corpus missing", "wrong strategy", "", "model gave up", "model gave up"]
    rows = "".join(f"arag,q{number},{cause}\n" for number, cause in enumerate(causes))
    (folder / "failures.csv").write_text(f"method,question_id,cause\n{rows}")
    page = write_report([folder], folder)[0].read_text()
    labels = set(re.findall(r">([^<>]+)</text>", page))
    assert {"corpus missing", "reasoning chain error", "wrong strategy", "undecided", "A-RAG (Full)"} <= labels
    assert "Wrong: wrong strategy" in (folder / "questions" / "2.html").read_text()
    assert "model gave up" not in (folder / "questions" / "5.html").read_text()  # it is right after all


def test_a_run_without_records_is_refused(write_run):
    folder = write_run({"arag": []})
    (folder / "records" / "arag.jsonl").write_text('{"question_id": "q')  # half a line
    with pytest.raises(InputError, match="has no records yet"):
        write_report([folder], folder)


def test_a_report_without_a_language_model_says_so_above_the_table(write_run):
    built_in = write_run({"arag": [record(1)]}, name="one", model="extractive")
    other = write_run({"arag": [record(1)]}, name="two")
    said = "No language model was used"
    page = write_report([built_in], built_in / "out")[0].read_text()
    assert 0 < page.index(said) < page.index("<table")
    assert said not in write_report([other], other / "out")[0].read_text()
    assert f"{said} in " in write_report([built_in, other], built_in / "both")[0].read_text()


def test_the_command_writes_a_report(arag, write_run, tmp_path):
    folder = write_run({"arag": [record(1)], "naive-rag": [record(1)]})
    code, written, _ = arag("eval", "report", folder, "--out", tmp_path / "out", "--no-pages", "--json")
    assert (code, json.loads(written)["files"][0]) == (0, str(tmp_path / "out" / "report.html"))
    code, _, wrong = arag("eval", "report", folder, "--baseline", "direct")
    assert (code, "the run has no records of 'direct'; it has: arag, naive-rag" in wrong) == (1, True)
    assert "give one with --out" in arag("eval", "report", folder, folder)[2]
