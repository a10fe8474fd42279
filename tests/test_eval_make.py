"""`arag eval make`: questions with gold answers from your own documents."""

import json
import re

import pytest

from arag.evaluation.datasets import load_questions
from arag.ingest.pipeline import run_ingest
from fakes import write_corpus
from http_server import Failure
from openai_server import chat, serve

pytestmark = pytest.mark.usefixtures("quick_embedder")

BOATS = """# Register of boats

| Boat | Kind | Length | Launched | Owner |
| --- | --- | --- | --- | --- |
| SW-01 | barge | 13.5 | 12 May 1901 | Ada Quist |
| SW-02 | barge | 14 | 3 June 1899 | |
| SW-03 | tug | 9.5 | 7 July 1911 | Ben Orre |
| SW-04 | barge | 21 | 1 May 1920 | Ben Orre |
| Total | | 58 | | |
"""
DOCUMENTS = [
    {"id": "boats", "title": "Register of boats", "text": BOATS},
    {"id": "light", "title": "Vellin Light", "text": "The Vellin Light was built in 1783. Ada Quist kept it."},
    {"id": "school", "title": "School", "text": "The Old School was founded in 1801. Ada Quist taught there."},
    {"id": "deed", "title": "Deed", "text": "The Old School was founded in 1803."},
    {"id": "hulk", "title": "Grey Petrel (hulk)", "text": "The Grey Petrel was built in 1850. She lies in the mud."},
    {"id": "yacht", "title": "Grey Petrel (yacht)", "text": "It was bought by Ada Quist. Now I sail her."},
    {"id": "log", "title": "Log", "text": "Now I sail alone."},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_ingest(DOCUMENTS, tmp_path / "boats")
    return tmp_path


def rows(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


# --- by rules ---


def test_without_a_model_rules_make_questions_that_eval_run_reads(arag, folder):
    code, out, err = arag("eval", "make", "boats", "-n", 14)
    assert (code, out.splitlines()[-1]) == (0, "Written: boats-questions.jsonl")
    assert err.startswith("Without a language model, questions are made by rules")
    made = load_questions(folder / "boats-questions.jsonl")
    assert {question.kind for question in made} == {
        "look-up", "counting", "list", "comparison", "dates", "arithmetic", "absent",
    }  # fmt: skip
    options = ["--index", "boats", "--method", "naive-rag", "--limit", 3, "--out", "run"]
    code, out, _ = arag("eval", "run", "--questions", "boats-questions.jsonl", *options)
    assert (code, "3 of 3 answered" in out) == (0, True)


def test_gold_answers_of_rules_are_those_of_the_table(arag, folder):
    arag("eval", "make", "boats", "-n", 60)
    gold = {row["question"]: row for row in rows(folder / "boats-questions.jsonl")}
    cells = "What does “Register of boats” give as"
    expected = {
        "How many entries of “Register of boats” have “barge” as “Kind”?": ("number", 3),
        "Which entries of “Register of boats” have “Ben Orre” as “Owner”? Name each by its boat.": (
            "answers", ["SW-03", "SW-04"],
        ),
        "Which boat has the highest “Length” in “Register of boats”?": ("answer", "SW-04"),
        "Which boat has the lowest “Length” in “Register of boats”?": ("answer", "SW-03"),
        "Which boat has the earliest “Launched” in “Register of boats”?": ("answer", "SW-02"),
        f"{cells} “Owner” for the boat “SW-02”?": ("absent", True),
        "How many documents mention “Ada Quist”?": ("number", 4),
        "In which year was the Vellin Light built?": ("answer", "1783"),
    }  # fmt: skip
    for question, (name, value) in expected.items():
        assert gold[question][name] == value, question
    assert not any(word in question for question in gold for word in ("Total", "58", "Now I"))
    # A year that the corpus contradicts, and a name that two documents are about, make no question.
    assert [question for question in gold if question.startswith("In which year")] == [
        "In which year was the Vellin Light built?"
    ]
    for row in gold.values():
        assert (row["supporting"] == []) == ("absent" in row)


def test_a_seed_makes_the_same_questions_each_time_and_another_seed_others(arag, folder):
    files = {}
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        arag("eval", "make", "boats", "-n", 8, "--seed", seed, "--out", f"{name}.jsonl")
        files[name] = (folder / f"{name}.jsonl").read_bytes()
    assert files["a"] == files["b"] != files["c"]


def test_questions_that_are_there_stay_and_half_a_line_goes(arag, folder):
    arag("eval", "make", "boats", "-n", 7, "--out", "q.jsonl")
    file = folder / "q.jsonl"
    first = file.read_bytes()
    file.write_bytes(first + b'{"id": "look-up-12')
    code, _, _ = arag("eval", "make", "boats", "-n", 14, "--out", "q.jsonl")
    assert code == 0
    assert file.read_bytes().startswith(first)
    assert len({row["id"] for row in rows(file)}) == 14


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--kind", "riddles"], "--kind riddles: there is no such kind; valid are look-up, counting"),
        (["--kind", "two-step"], "--kind two-step: there is no such kind without a language model"),
        (["--out", "mine.jsonl"], "mine.jsonl holds other questions than"),
    ],
)
def test_wrong_arguments_are_named(arguments, reason, arag, folder):
    mine = '{"id": "1", "question": "Who?", "answer": "Ada"}\n'
    (folder / "mine.jsonl").write_text(mine)
    code, _, err = arag("eval", "make", "boats", *arguments)
    assert code != 0
    assert reason in err
    assert (folder / "mine.jsonl").read_text() == mine


def test_a_corpus_without_tables_dates_and_names_says_so(arag, folder):
    write_corpus(
        folder / "texts",
        {
            "a.md": "the water is cold, and nobody swims in it.",
            "people.csv": "Ada S. Berg,John A. Lee\nKeith Bo,Ian McCall\nDrew E. Falk,Chris Metz\nTom Orr,D. Silber\n",
        },
    )
    run_ingest(folder / "texts", folder / "plain")
    code, out, err = arag("eval", "make", "plain", "-n", 7)
    assert (code, "look-up 0 of 1" in out) == (1, True)
    assert "no tables, dates or names" in err
    assert not (folder / "plain-questions.jsonl").exists()


# --- by a model ---


class Writer:
    """A model that writes a question about each passage, and reads as the test says.

    Attributes:
        question: What it asks; `{id}` is the passage's id.
        with_chunk, without_chunk, from_memory: What it answers in each check.
        others: Other answers that it finds.
    """

    def __init__(self, question="Who kept the light of the place that is called {id} in those days?", **answers):
        self.question = question
        defaults = {
            "with_chunk": "Ada Quist",
            "without_chunk": "",
            "from_memory": "",
            "others": [],
            "gold": "Ada Quist",
        }
        self.answers = defaults | answers

    def __call__(self, number, request):
        system, user = (message["content"] for message in request["messages"])
        if system.startswith("You write a question"):
            chunk = re.search(r"\[(\w+):", user)[1]
            reply = {"question": self.question.format(id=chunk), "answer": self.answers["gold"]}
            if '"number"' in system:
                reply |= {"number": 4, "answer": ""}
        elif system.startswith("You judge"):
            reply = {"reason": "It is another.", "correct": False}
        elif "from what you know" in system:
            reply = {"answer": self.answers["from_memory"], "others": []}
        else:
            own = re.search(r"called (\w+) in", user)
            is_with = own is None or f"[{own[1]}:" in user
            answer = self.answers["with_chunk" if is_with else "without_chunk"]
            reply = {"answer": answer, "others": self.answers["others"]}
        return chat(json.dumps(reply))


def make(server, *more):
    return ["eval", "make", "boats", "--model", f"openai:gpt-5-mini@{server.url}", "--seed", 3, *more]


def test_a_model_writes_questions_that_it_can_answer_with_their_passages_alone(arag, folder):
    with serve(Writer()) as server:
        code, out, _ = arag(*make(server, "-n", 2, "--kind", "look-up", "--out", "q.jsonl"))
    assert (code, "look-up 2 of 2" in out) == (0, True)
    for row in rows(folder / "q.jsonl"):
        (document,) = row["supporting"]
        assert row["question"] == f"Who kept the light of the place that is called {document} in those days?"
        assert (row["answer"], row["kind"]) == ("Ada Quist", "look-up")
        assert row["made_by"].startswith("openai:gpt-5-mini")
    assert len(load_questions(folder / "q.jsonl")) == 2


@pytest.mark.parametrize(
    ("writer", "reason"),
    [
        (Writer(with_chunk=""), "its chunks do not answer it"),
        (Writer(with_chunk="Ben Orre"), "its chunks give another answer"),
        (Writer(others=["Ben Orre"]), "it has several answers"),
        (Writer(without_chunk="Ada Quist"), "other chunks answer it, too"),
        (Writer(without_chunk="Ben Orre"), "other chunks answer it, too"),
        (Writer(from_memory="Ada Quist"), "it can be answered from memory"),
        (Writer("According to the passage, who kept the light of {id}?"), "it speaks of the passages"),
        (Writer("Did Ada Quist keep the light of the place {id} in those days?"), "it contains its answer"),
        (Writer(""), "the passages allow no such question"),
    ],
)
def test_a_question_that_fails_a_check_is_dropped_with_the_reason(writer, reason, arag, folder):
    with serve(writer) as server:
        code, out, _ = arag(*make(server, "-n", 1, "--kind", "look-up", "--out", "q.jsonl"))
    assert (code, f": {reason}" in out) == (1, True), out
    assert not (folder / "q.jsonl").exists()


def test_a_question_which_of_two_it_is_names_both(arag, folder):
    question = "Who kept the light of the place that is called {id} in those days, Ada Quist or Ben Orre?"
    with serve(Writer(question)) as server:
        code, out, _ = arag(*make(server, "-n", 1, "--kind", "dates", "--out", "q.jsonl"))
    assert (code, "dates 1 of 1" in out) == (0, True), out


def test_a_question_about_an_absent_fact_is_dropped_if_the_corpus_answers_it(arag, folder):
    for answer, code in [("", 0), ("The corpus does not say who kept it.", 0), ("Ada Quist", 1)]:
        with serve(Writer(with_chunk=answer, without_chunk=answer)) as server:
            file = f"{len(answer)}.jsonl"
            assert arag(*make(server, "-n", 1, "--kind", "absent", "--out", file))[0] == code
    assert [row["absent"] for row in rows(folder / "0.jsonl")] == [True]


def test_after_a_failure_it_goes_on_and_pays_for_no_call_again(arag, folder):
    def respond(number, request):
        return Failure(400) if number == 12 else Writer()(number, request)

    arguments = ["-n", 4, "--kind", "look-up", "--concurrency", 1, "--out", "q.jsonl"]
    with serve(respond) as server:
        assert arag(*make(server, *arguments))[0] == 1
        first = (folder / "q.jsonl").read_bytes()
        assert arag(*make(server, *arguments))[0] == 0
        sent = [json.dumps(request, sort_keys=True) for request in server.requests]
    assert 0 < first.count(b"\n") < 4
    assert (folder / "q.jsonl").read_bytes().startswith(first)
    assert len({row["id"] for row in rows(folder / "q.jsonl")}) == 4
    assert len(sent) - len(set(sent)) == 1  # the one that failed
