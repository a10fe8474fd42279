"""Answers that are lists, numbers or refusals: scores without a model, in records and in reports."""

import json

import pandas as pd
import pytest

from arag.evaluation.datasets import Number
from arag.evaluation.list_scores import find_extra_items, score_list
from arag.evaluation.number_scores import has_number
from arag.evaluation.refusals import is_refusal
from arag.evaluation.report.figures import headline
from arag.evaluation.report.frame import load_runs
from arag.evaluation.report.tables import run_tables

# --- lists ---

LIGHTS = [["Alder Point"], ["Birch Head", "Birkenkopf"], ["Cape Sorrow"]]
LISTS = [
    (
        "Alder Point, Birch Head, Cape Sorrow. Never dark: Alder Point (alder-point.md), Birch Head (b), Cape Sorrow.",
        3,
        [],
    ),
    # answer, found of three, extra items
    ("Alder Point, Birch Head and Cape Sorrow [a.md:3].", 3, []),
    ("There are 3: **Alder Point**, **Birkenkopf**, **Cape Sorrow**. Jonas Wedder, a keeper, names them [a:1].", 3, []),
    ("Three lights:\n- Alder Point (1881) [a:1]\n- Birch Head: lit in 1890, dark since\n- Cape Sorrow", 3, []),
    ("Cape Sorrow; Birch-Head; ALDER  POINT", 3, []),
    ("In 1881, Alder Point, Birch Head (built by Mara Lind, a mason) and Cape Sorrow were lit, all before May.", 3, []),
    ("Yes, Alder Point and Birch Head.", 2, []),
    ("Alder Point, Birch Head, Dune End, and Cape Sorrow.", 3, ["Dune End"]),
    ("Dune, Alder Point and the Grey Light", 1, ["Dune", "Grey Light"]),
    ("1. Alder Point\n2. Dune End\n\nMara Lind and Jonas Wedder kept them.", 1, ["Dune End"]),
    ("| Light | Lit |\n|---|---|\n| Alder Point | 1881 |\n| Dune End | 1882 |", 1, ["Dune End | 1882 |"]),
    ("Alder Pointe", 0, ["Alder Pointe"]),
    ("", 0, []),
]


@pytest.mark.parametrize(("answer", "found", "extra"), LISTS)
def test_items_are_found_as_words_and_others_in_the_answers_own_list(answer, found, extra):
    assert find_extra_items(answer, LIGHTS) == extra
    score = score_list(answer, LIGHTS)
    assert score.recall == found / 3
    assert score.precision == (found / (found + len(extra)) if found else 0)


def test_items_may_hold_commas_conjunctions_and_each_other():
    items = [["Trinidad and Tobago"], ["Smith, Jones & Co"], ["Cape Sorrow"], ["Cape Sorrow Light"], ["灯塔"]]
    answer = "Trinidad and Tobago, Smith, Jones & Co, the Cape Sorrow Light and 灯塔"
    assert find_extra_items(answer, items) == []
    assert score_list(answer, items) == (1.0, 0.8)  # Cape Sorrow itself is not there
    assert score_list("Lucian Fenn, and Thea Ravensdale", [["Lucian Fenn"], ["Thea Ravensdale"]]).f1 == 1
    assert score_list("Tanner's Lock (Callowmere); Gate of Tin", [["Tanner's Lock at Callowmere"], ["Tin Gate"]]) == (
        0.5,
        0.5,
    )
    assert find_extra_items("灯塔和港口", [["灯塔"]]) == ["港口"]


def test_dates_have_several_forms_and_need_no_year_that_the_question_has():
    dates = [["5 March 2024"], ["3 September 2024"]]
    assert score_list("March 5, 2024; 2024-09-03", dates).f1 == 1
    answer = "On 5 March and 3 September 2024."
    assert score_list(answer, dates, "On which dates in 2024 did the Board meet?").f1 == 1
    assert score_list(answer, dates, "When did the Board meet?").recall == 0.5


def test_items_without_capital_letters_and_numbers_are_items_too():
    grains = [["rye"], ["barley"]]
    assert find_extra_items("In 1880, the grains were rye, barley and oats.", grains) == ["oats"]
    years = [["1881"], ["1,250"]]
    assert score_list("In 1881 and 1250.", years).f1 == 1
    assert find_extra_items("1881, 1,250 and 1900", years) == ["1900"]


# --- numbers ---

RIGHT_NUMBERS = [
    ("12 lights [a:15].", 12),
    ("**12** [a:3]: 4 in May and 8 in June.", 12),
    ("There are twelve lights.", 12),
    ("Twenty-one ships", 21),
    ("The count follows. It is 12.", 12),
    ("5 of the 12 lights were electric.", 5),
    ("Of the 12 lights, 5 were electric.", 5),
    ("In 1881, 12 lights were lit.", 12),
    ("It was lit on 12 May 1881.", 1881),
    ("1,234 sacks", 1234),
    ("1.234 Säcke", 1234),
    ("1 234 sacs", 1234),
    ("None of the lights", 0),
    ("No lights were lit.", 0),
    ("-5 degrees", -5),
    ("In Q3, 7 sacks", 7),
    ("zwölf Türme", 12),
    ("Douze phares", 12),
    ("Doce faros", 12),
    ("共有12座灯塔。", 12),
    ("1.2 million sacks", 1_200_000),
    ("1,204 + 1,950 + 1,969 = 5,123 tonnes", 5123),
    ("Chapter 10", 10),
]
WRONG_NUMBERS = [
    ("There are 11. The register says 12.", 12),
    ("11, not 12.", 12),
    ("5 of the 12 lights", 12),
    ("No. 12 lights were lit.", 0),
    ("Many.", 12),
    ("", 12),
]


@pytest.mark.parametrize(("answer", "value"), RIGHT_NUMBERS)
def test_the_first_number_of_the_lead_is_the_answer(answer, value):
    assert has_number(answer, Number(value))
    assert not has_number(answer, Number(value + 1))


@pytest.mark.parametrize(("answer", "value"), WRONG_NUMBERS)
def test_a_wrong_number_in_the_lead_is_wrong(answer, value):
    assert not has_number(answer, Number(value))


def test_numbers_of_the_question_are_not_the_answer():
    question = "How many lamps had the 12 lights in 1881?"
    assert has_number("The 12 lights had 40 lamps.", Number(40), question)
    assert has_number("12", Number(12), question)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("12.5 km", True),
        ("12,5 Kilometer", True),
        ("In 3 days they sailed 12.5 kilometres.", True),
        ("12.5", True),
        ("about 12.6 km", True),
        ("12.8 km", False),
        ("12.5 miles", False),
    ],
)
def test_a_number_may_have_a_unit_and_a_tolerance(answer, right):
    assert has_number(answer, Number(12.5, ("km",), 0.2)) is right


def test_units_have_several_names():
    assert has_number("45 percent", Number(45, ("%",)))
    assert has_number("$1.2 million", Number(1_200_000, ("dollars",)))
    assert has_number("12 sacks in 40 carts", Number(40, ("carts", "wagons"))) is False  # a unit that no list has


# --- refusals ---

REFUSALS = """The corpus does not say who built it.
Not settled: no document names the engineer [a:1].
The corpus doesn’t hold this; the closest is the Vellin Light, of 1881.
The cost of the bridge is not recorded.
I could not find it in the documents.
Not in the corpus.
There is no information about the keeper's salary.
It cannot be determined.
I don't know.
No deputy keeper is named.
There is no deputy keeper of Lantern Lock in the corpus.
I found no length of the tunnel.
Das steht nicht im Korpus.
Im Korpus gibt es keine Angaben dazu.
Das weiß ich nicht.
Le corpus ne précise pas qui l'a construit.
Aucun document ne mentionne le coût.
El corpus no dice quién lo construyó.
No se menciona en los documentos.
Il costo non è indicato.
O corpus não menciona o custo.
Het corpus vermeldt dit niet.
Dokumenten nämner inte kostnaden.
W dokumentach nie podano kosztu.
В документах не указана стоимость.
Bu bilgi belgelerde belirtilmemiş.
لم يذكر ذلك في الوثائق.
文档中没有提到这座桥的造价。
語料庫中沒有相關資料。
コーパスには記載がありません。
문서에 언급되어 있지 않습니다."""
ANSWERS = """1881. The documents do not say who lit it.
Corrin Ashe-Woldar [a:1].
No, the light was lit in 1890.
None of the lights was electric.
The harbour was not open in winter.
Alder Point and Birch Head; the others were not electric.
Records were kept by Jonas Wedder.
The index of 1890 names Jonas Wedder.
Nein, 1890.
Die Grey Petrel kehrte nicht zurück.
Non, en 1890.
No, fue en 1890.
Не было, в 1890 году.
不是，是1890年。
いいえ、1890年です。"""


@pytest.mark.parametrize("answer", REFUSALS.splitlines())
def test_a_refusal_says_that_the_corpus_lacks_the_fact(answer):
    assert is_refusal(answer)
    assert not is_refusal(f"1881 [a:1]. {answer}")


@pytest.mark.parametrize("answer", ["", *ANSWERS.splitlines()])
def test_an_answer_that_says_no_is_no_refusal(answer):
    assert not is_refusal(answer)


# --- runs and reports ---

QUESTIONS = [
    {"id": "who", "question": "Who was the father of Teutberga?", "answer": "Boso the Elder", "kind": "look-up"},
    {"id": "list", "question": "Who is named?", "answers": ["Boso", "Teutberga"], "kind": "list"},
    {"id": "count", "question": "How many children had Boso?", "number": 3, "kind": "count"},
    {"id": "cost", "question": "What did the bridge of Arles cost?", "absent": True},
]
GOOD = {
    "who": "Boso the Elder [boso:0].",
    "list": "Boso and Teutberga.",
    "count": "Three [boso:0].",
    "cost": "The corpus does not say what it cost.",
}
POOR = {"who": "That is not stated.", "list": "Boso, Hugh and Lothair.", "count": "2, or 3.", "cost": "10 marks."}
METHODS = '''
from typing import ClassVar
from arag.evaluation.method import Method

ANSWERS = {answers}

class _Says(Method):
    answers: ClassVar = {{}}

    def answer(self, question, session, prepared):
        return self.answers[question]

class Good(_Says):
    """Knows all."""
    name: ClassVar = "good"
    title: ClassVar = "Good"
    answers: ClassVar = ANSWERS["good"]

class Poor(_Says):
    """Knows little."""
    name: ClassVar = "poor"
    title: ClassVar = "Poor"
    answers: ClassVar = ANSWERS["poor"]

METHODS = [Good, Poor]
'''


@pytest.fixture
def folder(arag, small_index, tmp_path, monkeypatch):
    """A run of two methods on questions of four kinds."""
    by_text = {
        name: {question["question"]: answers[question["id"]] for question in QUESTIONS}
        for name, answers in [("good", GOOD), ("poor", POOR)]
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two_methods.py").write_text(METHODS.format(answers=by_text), encoding="utf-8")
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS), encoding="utf-8")
    options = ["--questions", "questions.json", "--index", small_index.path, "--method", "two_methods", "--out", "run"]
    code, written, wrong = arag("eval", "run", *options)
    assert code == 0, wrong
    assert "good 4 of 4 answered, Rule-Acc 100.0%" in written
    assert "poor 4 of 4 answered, Rule-Acc 0.0%" in written
    return tmp_path / "run"


def test_records_have_the_scores_of_each_form(folder):
    lines = (folder / "records" / "poor.jsonl").read_text(encoding="utf-8").splitlines()
    records = {record["question_id"]: record for record in map(json.loads, lines)}
    assert {name: record["form"] for name, record in records.items()} == {
        "who": "text",
        "list": "list",
        "count": "number",
        "cost": "absent",
    }
    assert (records["list"]["list_precision"], records["list"]["list_recall"]) == (1 / 3, 1 / 2)
    assert records["list"]["items"] == [["Boso"], ["Teutberga"]]
    assert records["count"]["number"] == {"value": 3.0, "units": [], "tolerance": 0.0}
    assert {name for name, record in records.items() if record["refused"]} == {"who"}
    assert records["who"]["list_precision"] is None


def test_the_report_tells_kinds_of_questions_apart(folder):
    (run,), frame = load_runs([folder])
    tables = {table.title: table for table in run_tables(run, frame)}
    assert headline(frame).title == "Rule-Acc"
    kinds = tables["Accuracy by kind of question"].rows
    assert list(kinds.columns) == ["absent (1)", "count (1)", "list (1)", "look-up (1)"]
    assert [kinds.loc["Good", name].split()[0] for name in kinds] == ["100.0"] * 4
    assert [kinds.loc["Poor", name].split()[0] for name in kinds] == ["0.0"] * 4
    lists = tables["Complete lists"].rows
    assert list(lists.loc["Poor"]) == ["33.3", "50.0", "40.0"]
    refusals = tables["Refusals"].rows
    assert list(refusals.columns) == [
        "Questions without an answer",
        "Refused",
        "Refused of others",
        "Precision, %",
        "Recall, %",
    ]
    assert [cell.split()[0] for cell in refusals.loc["Good"]] == ["1", "1", "0", "100.0", "100.0"]
    assert [cell.split()[0] for cell in refusals.loc["Poor"]] == ["1", "0", "1", "0.0", "0.0"]
    summary = tables["Summary"].rows
    assert summary.loc["Poor", ["Lists, F1 %", "Refusals right, %"]].tolist()[0] == "40.0"
    assert summary.loc["Good", "Absent facts refused, %"].startswith("100.0 [")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(f">{title}</h2>" in page for title in ("Accuracy by kind of question", "Complete lists", "Refusals"))
    rows = pd.read_csv(folder / "report.csv").set_index("method")
    assert rows.loc["poor", ["right", "list_recall", "refusal_precision"]].tolist() == [0.0, 0.5, 0.0]
    by_kind = pd.read_csv(folder / "kinds.csv")
    assert by_kind[by_kind["kind"] == "list"][["method", "questions", "right"]].to_numpy().tolist() == [
        ["good", 1, 1.0],
        ["poor", 1, 0.0],
    ]


def test_several_runs_have_their_kinds_below_each_other(arag, folder):
    other = folder.with_name("other")
    options = ["--questions", "questions.json", "--index", json.loads((folder / "run.json").read_text())["index"]]
    assert arag("eval", "run", *options, "--method", "two_methods", "--limit", "2", "--out", other)[0] == 0
    assert arag("eval", "report", folder, other, "--out", folder / "both", "--no-pages")[0] == 0
    page = (folder / "both" / "report.html").read_text(encoding="utf-8")
    assert ">Accuracy by kind of question</h2>" in page
    assert "look-up (1)" in page
    assert "nan" not in page.partition("<main")[2]


def test_a_changed_form_is_asked_again(arag, folder):
    changed = [question | ({"number": 4} if question["id"] == "count" else {}) for question in QUESTIONS]
    (folder.parent / "questions.json").write_text(json.dumps(changed), encoding="utf-8")
    index = json.loads((folder / "run.json").read_text())["index"]
    options = ["--questions", "questions.json", "--index", index, "--method", "two_methods", "--out", "run"]
    assert "good 4 of 4 answered, Rule-Acc 75.0%" in arag("eval", "run", *options)[1]
    assert len((folder / "records" / "good.jsonl").read_text(encoding="utf-8").splitlines()) == 5


def test_records_of_older_versions_are_answered_and_reported_as_before(arag, folder):
    text = {name: value for name, value in QUESTIONS[0].items() if name != "kind"}
    (folder.parent / "questions.json").write_text(json.dumps([text]), encoding="utf-8")
    index = json.loads((folder / "run.json").read_text())["index"]
    options = ["--questions", "questions.json", "--index", index, "--method", "two_methods", "--out", "old"]
    arag("eval", "run", *options)
    added = ("kind", "form", "items", "number", "right", "list_precision", "list_recall", "list_f1", "refused")
    for file in (folder.with_name("old") / "records").glob("*.jsonl"):
        record = json.loads(file.read_text(encoding="utf-8"))
        old = {name: value for name, value in record.items() if name not in added}
        file.write_text(json.dumps(old) + "\n", encoding="utf-8")
    code, written, _ = arag("eval", "run", *options)
    assert (code, "good 1 of 1 answered, Contain-Acc 100.0%" in written) == (0, True)
    assert len((folder.with_name("old") / "records" / "good.jsonl").read_text().splitlines()) == 1
    assert not (folder.with_name("old") / "kinds.csv").exists()
    (run,), frame = load_runs([folder.with_name("old")])
    assert headline(frame).title == "Contain-Acc"
    titles = [table.title for table in run_tables(run, frame)]
    assert not {"Accuracy by kind of question", "Complete lists", "Refusals"} & set(titles)
    assert "Rule-Acc" not in run_tables(run, frame)[0].rows
