"""How accuracy grows with what a run may spend."""

from __future__ import annotations

import csv
import json

import pytest
from bs4 import BeautifulSoup

from arag.errors import InputError
from arag.evaluation.datasets import Question
from arag.evaluation.methods import Options, method
from arag.evaluation.records import add_judgement, record_failure
from arag.evaluation.report.scaling import make_scaling, setting_folder
from arag.evaluation.runs import Runner, record_file
from arag.models.extractive import ExtractiveModel
from eval_runs import Replies
from openai_server import Failure, serve

pytest_plugins = ["graph_fixtures", "model_fixtures"]

QUESTIONS = [
    Question(str(n), text, answer)
    for n, (text, answer) in enumerate([
        ("Who died in 875?", "875"), ("Who was a count of Arles?", "Boso the Elder"), ("Why?", "because of it all"),
    ])
]  # fmt: skip
IDS = [question.id for question in QUESTIONS]


@pytest.fixture
def run(small_index, tmp_path):
    """A function that runs A-RAG with a setting, and returns the folder of all settings."""

    def run(setting, value, questions=QUESTIONS, verdict=None):
        steps = int(value) if setting == "steps" else 5
        runner = Runner(method("arag"), small_index, ExtractiveModel(), Options(max_steps=steps))
        file = record_file(setting_folder(tmp_path, setting, value), "arag")
        file.file.parent.mkdir(parents=True, exist_ok=True)
        runner.run(questions, file)
        if verdict is not None:
            for record in file.read().values():
                file.append(add_judgement(record, {"correct": verdict, "reason": "", "model": "j", "cost": 0.0}))
        return tmp_path

    return run


@pytest.fixture
def fail(tmp_path):
    """A function that lets all questions of a setting fail."""

    def fail(setting, value):
        file = record_file(setting_folder(tmp_path, setting, value), "arag")
        file.file.parent.mkdir(parents=True, exist_ok=True)
        for question in QUESTIONS:
            file.append(record_failure(question, {}, "BadRequestError: there is no such effort", 1.0))

    return fail


def names(scaling):
    return [row[0].text for row in scaling.tables[0].rows]


def values(scaling, column):
    return [row[column] for row in scaling.figures]


def page_of(scaling):
    return BeautifulSoup(scaling.page(), "html.parser")


def test_every_setting_in_the_folder_is_measured_in_order(run, tmp_path):
    for setting, value in [("effort", "high"), ("effort", "low"), ("steps", "10"), ("steps", "1"), ("steps", "5")]:
        run(setting, value)
    (tmp_path / "steps-").mkdir()
    (tmp_path / "steps-9").mkdir()  # begun, without any record
    (tmp_path / "others-1").mkdir()
    scaling = make_scaling(tmp_path, "arag", IDS)
    assert names(scaling) == ["1 step", "5 steps", "10 steps", "low effort", "high effort"]
    assert values(scaling, "questions") == [3] * 5
    first, second = values(scaling, "steps")[:2]
    assert first == 1 < second
    assert scaling.notes == []


def test_settings_are_drawn_as_a_course(run, tmp_path):
    for setting, value in [("steps", "5"), ("steps", "10"), ("steps", "20"), ("effort", "low"), ("effort", "high")]:
        run(setting, value)
    scaling = make_scaling(tmp_path, "arag", IDS)
    steps, efforts = page_of(scaling).find_all("svg", class_="plane")
    across = [float(dot["cx"].rstrip("%")) for dot in steps.find_all("circle")]
    assert across[1:] == pytest.approx([2 * across[0], 4 * across[0]], abs=0.02)  # as far apart as they are
    assert [dot["cx"] for dot in efforts.find_all("circle")] == ["25.00%", "75.00%"]
    for plot, count in ((steps, 3), (efforts, 2)):
        assert len(plot.find_all("line", class_="course")) == count - 1
        assert len(plot.find_all("line", class_="whisker")) == count
    mean = values(scaling, "contain_acc")[0]
    assert f"5 steps: Contain-Acc {100 * mean:.1f}, 95% CI" in steps["aria-label"]
    assert [th.text for th in page_of(scaling).tbody.find_all("th")] == names(scaling)


def test_files_hold_every_setting(run, tmp_path):
    for value in ("1", "5"):
        run("steps", value)
    scaling = make_scaling(tmp_path, "arag", IDS)
    text, table, _ = scaling.write(tmp_path, "scale")
    with table.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [(row["setting"], row["value"], row["questions"], row["failure"]) for row in rows] == [
        ("steps", "1", "3", ""),
        ("steps", "5", "3", ""),
    ]
    assert all(float(row["contain_acc_low"]) <= float(row["contain_acc"]) for row in rows)
    assert "| 5 steps | " in text.read_text("utf-8")


def test_a_setting_without_answers_is_a_row_that_says_so(run, fail, tmp_path):
    run("steps", "5")
    fail("effort", "<b>")
    scaling = make_scaling(tmp_path, "arag", IDS)
    told = "<b> effort: all of 3 questions failed, the first with: BadRequestError: there is no such effort."
    assert scaling.notes == [told]
    assert [mean is None for mean in values(scaling, "contain_acc")] == [False, True]
    page = page_of(scaling)
    assert page.find(class_="warn").text == told
    assert len(page.find_all("svg", class_="plane")) == 1
    text, table, _ = scaling.write(tmp_path, "scale")
    assert "| failed |" in text.read_text("utf-8")
    assert "there is no such effort" in table.read_text("utf-8").splitlines()[2]


def test_where_no_setting_has_an_answer_that_is_said_too(fail, tmp_path):
    fail("steps", "5")
    scaling = make_scaling(tmp_path, "arag", IDS)
    assert "all of 3 questions failed" in scaling.notes[0]
    assert page_of(scaling).find("svg") is None
    assert all(file.exists() for file in scaling.write(tmp_path, "scale"))


def test_settings_are_measured_on_the_same_questions(run, tmp_path):
    run("steps", "5")
    run("steps", "6", QUESTIONS[:2])
    scaling = make_scaling(tmp_path, "arag", IDS)
    assert values(scaling, "questions") == [2, 2]
    (note,) = scaling.notes
    assert note.startswith(
        "The figures cover 2 of 3 questions, because some settings were not asked all of them (5 steps 3, 6 steps 2). "
    )


def test_only_the_questions_that_are_asked_count(run, tmp_path):
    run("steps", "5")
    run("steps", "6")
    scaling = make_scaling(tmp_path, "arag", IDS[:1])
    assert values(scaling, "questions") == [1, 1]
    assert scaling.notes == []


def test_settings_without_a_common_question_say_so(run, tmp_path):
    run("steps", "5", QUESTIONS[:1])
    run("steps", "6", QUESTIONS[1:])
    scaling = make_scaling(tmp_path, "arag", IDS)
    assert values(scaling, "questions") == [1, 2]
    assert scaling.notes == [
        "The settings have no question in common, so their figures are not comparable (5 steps 1, 6 steps 2)."
    ]


def test_all_settings_are_measured_by_the_same(run, tmp_path):
    run("steps", "5", verdict=True)
    assert make_scaling(tmp_path, "arag", IDS).tables[0].columns[1] == "LLM-Acc"
    run("steps", "6")
    scaling = make_scaling(tmp_path, "arag", IDS)
    assert scaling.tables[0].columns[1] == "Contain-Acc"
    assert scaling.notes == ["Not all settings were judged: accuracy is Contain-Acc."]


def test_a_folder_without_settings_is_told(tmp_path):
    with pytest.raises(InputError, match="has no records of 'arag'"):
        make_scaling(tmp_path, "arag", IDS)


@pytest.mark.usefixtures("no_settings")
def test_the_command_goes_on_and_keeps_what_was_measured(arag, small_index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = [{"id": n, "question": f"Question number {n}: who?", "answer": "Boso"} for n in range(2)]
    (tmp_path / "q.json").write_text(json.dumps(asked))
    command = ["eval", "scale", "--questions", "q.json", "--index", small_index.path, "--out", "scale"]
    refusing = Replies(instead={n: Failure(400, message="no") for n in range(2)})
    with serve(refusing) as server:
        model = ["--model", f"openai:gpt-5-mini@{server.url}", "--concurrency", 1]
        code, out, err = arag(*command, *model, "--steps", 3, "--steps", 8)
        assert code == 1
        assert "Note: 3 steps: all of 2 questions failed" in err
        assert all(f"Written: scale/scale.{kind}" in out for kind in ("csv", "md", "html"))
        code, out, err = arag(*command, *model, "--steps", 5)
        assert code == 0
    with (tmp_path / "scale" / "scale.csv").open(encoding="utf-8", newline="") as opened:
        rows = [(row["value"], row["contain_acc"]) for row in csv.DictReader(opened)]
    assert rows == [("3", ""), ("5", "1.0"), ("8", "1.0")]
