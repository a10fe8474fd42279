"""`arag eval run`: from a download to results in one command."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest
from langchain_core.messages import HumanMessage

from arag import terminal as printing
from arag.errors import EmbedderError
from arag.evaluation.datasets import load_questions
from arag.evaluation.methods import Method, Options, agentic
from arag.evaluation.methods import method as find_method
from arag.evaluation.runs import load_plan, load_records, record_file
from arag.evaluation.workplace import Request
from arag.ingest.pipeline import run_ingest
from arag.models.chat import load_model
from arag.retrieval.index import open_index
from eval_runs import STEPS, Replies
from fakes import HashEmbeddings
from openai_server import Failure, chat, serve

pytest_plugins = ["model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings", "quick_embedder")

TEXTS = {
    "Lothair II": "Lothair II was a king of Lotharingia. He married Teutberga in 855.",
    "Teutberga": "Teutberga was a daughter of Boso the Elder. She died in 875.",
    "Boso the Elder": "Boso the Elder was a count of Arles. He had three children.",
    "Arles": "Arles is a city on the Rhône. It had an amphitheatre.",
}


def musique(number, *supporting, question="Who was the father of the wife of Lothair II?", **changes):
    return {
        "id": f"2hop__{number}",
        "paragraphs": [
            {"idx": n, "title": title, "paragraph_text": text, "is_supporting": title in supporting}
            for n, (title, text) in enumerate(TEXTS.items())
        ],
        "question": f"Question number {number}: {question}",
        "answer": "Boso the Elder",
        "answer_aliases": [],
        "answerable": True,
        **changes,
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = [musique(n, "Lothair II", "Teutberga") for n in range(5)]
    (tmp_path / "musique.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return tmp_path


def run_of(*more, questions="musique.jsonl", index="index", method="arag"):
    return ["eval", "run", "--questions", questions, "--index", index, "--method", method, *more]


def records(folder, method="arag"):
    return record_file(folder, method).read()


# --- from a download to a result ---


def test_one_command_from_a_download_to_a_result(arag, folder):
    code, out, err = arag(*run_of("--model", "extractive", "--out", "results"))
    assert (code, err) == (0, "Ingesting index.corpus.jsonl into index\n")
    assert re.match(r"arag 5 of 5 answered, Contain-Acc [\d.]+%, \$0.00\nRecords: results\n$", out)
    known = records(folder / "results")
    assert list(known) == [f"2hop__{n}" for n in range(5)] or len(known) == 5
    with open_index(folder / "index") as index:
        for question in load_questions(folder / "musique.jsonl"):
            assert len(question.gold_documents) == 2
            assert all(index.document(document) for document in question.gold_documents)
    assert all(record["gold_seen"] > 0 for record in known.values())
    plan = json.loads((folder / "results" / "run.json").read_text())
    assert (plan["model"], plan["judge"], plan["options"]["max_steps"]) == ("extractive", None, 15)


def test_again_it_goes_on(arag, folder):
    assert arag(*run_of("--limit", 2, "--model", "extractive"))[0] == 0
    first = records(folder / "runs/musique")
    assert len(first) == 2
    code, out, err = arag(*run_of("--model", "extractive"))
    assert (code, err) == (0, "")  # nothing is ingested again
    assert "5 of 5 answered" in out
    assert len((folder / "runs/musique/records/arag.jsonl").read_bytes().splitlines()) == 5
    assert first.items() <= records(folder / "runs/musique").items()


def test_several_methods_and_json(arag, folder):
    more = ["--method", "naive-rag", "--method", "direct", "--method", "arag", "--json"]
    code, out, _ = arag(*run_of(*more, "--model", "extractive"))
    told = json.loads(out)
    assert code == 0
    assert told["folder"] == "runs/musique"
    assert [method["method"] for method in told["methods"]] == ["arag", "naive-rag", "direct"]
    for method in told["methods"]:
        found = records(folder / "runs/musique", method["method"]).values()
        assert method["contain"] == sum(record["contain"] for record in found) / 5
        assert {name: method[name] for name in ("questions", "answered", "failed", "unjudged", "correct", "cost")} == {
            "questions": 5, "answered": 5, "failed": 0, "unjudged": 0, "correct": None, "cost": 0.0}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "target"),
    [("q/questions.json", "runs/q"), ("q/musique.jsonl", "runs/musique"), ("hotpot.json", "runs/hotpot")],
)
def test_where_records_go(arag, folder, file, target):
    (folder / "q").mkdir()
    (folder / file).write_text((folder / "musique.jsonl").read_text())
    assert arag(*run_of("--limit", 1, "--model", "extractive", questions=file))[0] == 0
    assert (folder / target / "records/arag.jsonl").exists()


def test_the_model_of_the_environment_is_a_part_of_the_plan(arag, folder, monkeypatch):
    code, _, err = arag(*run_of("--limit", 1))
    assert code == 0
    assert "no model given" in err
    with serve(Replies()) as server:
        monkeypatch.setenv("ARAG_MODEL", f"openai:gpt-5-mini@{server.url}")
        code, _, err = arag(*run_of("--limit", 1))
    assert code == 1
    assert "model was 'extractive', now 'openai:gpt-5-mini@http" in err


def test_the_methods_are_listed(arag):
    code, out, _ = arag("eval", "methods")
    assert code == 0
    assert "naive-rag" in out
    assert "A-RAG (Full)" in out


# --- the index ---


def test_an_ingestion_that_was_cut_short_is_completed(arag, folder, monkeypatch):
    texts = HashEmbeddings.embed_documents

    def fail(self, given):
        if "dimension" not in given:
            raise EmbedderError("the embedding service went away")
        return texts(self, given)

    with monkeypatch.context() as patch:
        patch.setattr(HashEmbeddings, "embed_documents", fail)
        code, _, err = arag(*run_of("--model", "extractive"))
        assert code == 1
        assert "went away" in err
    assert (folder / "index" / "draft.sqlite3").exists()  # what the next run finishes
    assert arag(*run_of("--model", "extractive"))[0] == 0
    with open_index(folder / "index") as index:
        assert index.info().documents == 4


def test_an_index_of_other_paragraphs_is_not_extended(arag, folder):
    assert arag(*run_of("--model", "extractive", "--limit", 1))[0] == 0
    fewer, other = musique(9, "Lothair II"), musique(9, "Lothair II")
    del fewer["paragraphs"][1:]
    other["paragraphs"][1]["paragraph_text"] = "Another text."
    (folder / "fewer.jsonl").write_text(json.dumps(fewer))
    (folder / "other.jsonl").write_text(json.dumps(other))
    code, _, err = arag(*run_of("--model", "extractive", questions="fewer.jsonl"))
    assert (code, err) == (0, "")
    code, _, err = arag(*run_of("--model", "extractive", questions="other.jsonl"))
    assert code == 1
    assert (
        "was built from index.corpus.jsonl, which lacks 1 of the 4 paragraphs of other.jsonl: give another index" in err
    )
    with open_index(folder / "index") as index:
        assert index.info().documents == 4


def test_an_index_of_ones_own_is_left_as_it_is(arag, folder):
    (folder / "corpus.jsonl").write_text(json.dumps({"id": "mine", "text": "Boso the Elder was a count."}))
    run_ingest([folder / "corpus.jsonl"], folder / "index")
    code, _, err = arag(*run_of("--model", "extractive", "--limit", 1))
    assert code == 0
    assert "Warning: none of the questions' gold documents ('Lothair II #" in err
    with open_index(folder / "index") as index:
        assert index.info().documents == 1


def test_without_an_index_and_paragraphs(arag, folder):
    (folder / "questions.json").write_text(json.dumps([{"id": 1, "question": "Who?", "answer": "Boso"}]))
    code, _, err = arag(*run_of("--model", "extractive", questions="questions.json"))
    assert code == 1
    assert "there is no index in" in err
    assert "run `arag ingest` first" in err
    # Nothing has come of that plan: another index is no other run.
    (folder / "corpus.jsonl").write_text(json.dumps({"id": "mine", "text": "Boso the Elder was a count."}))
    run_ingest([folder / "corpus.jsonl"], folder / "other")
    assert arag(*run_of("--model", "extractive", questions="questions.json", index="other"))[0] == 0


def test_gold_that_is_named_without_folder_and_suffix(arag, folder):
    (folder / "filings").mkdir()
    (folder / "filings" / "BOSO_2021.txt").write_text("Boso the Elder was a count of Arles.")
    run_ingest([folder], folder / "index")
    evidence = str([{"doc_name": "BOSO_2021", "evidence_page_num": 3}])
    question = {
        "financebench_id": "f1",
        "question": "Who was a count of Arles?",
        "answer": "Boso",
        "evidence": evidence,
    }
    (folder / "financebench.jsonl").write_text(json.dumps(question))
    code, _, err = arag(*run_of("--model", "extractive", questions="financebench.jsonl"))
    assert (code, err) == (0, "")
    record = records(folder / "runs/financebench")["f1"]
    assert (record["gold_documents"], record["gold_pages"]) == (["filings/BOSO_2021.txt"], [])  # a text has no pages
    assert (record["gold_seen"], record["gold_cited"]) == (1, 1)


# --- exit codes ---


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["eval", "run"], 2, "Missing option"),
        (run_of(method="a-rag"), 1, "unknown method 'a-rag'; valid methods: "),
        (run_of(questions="none.jsonl"), 1, "none.jsonl does not exist"),
        (run_of("--model", "gpt"), 1, "unknown model 'gpt'"),
        (run_of("--model", "extractive", "--judge", "extractive"), 1, "cannot judge"),
        (run_of("--model", "extractive", "--judge", "gpt"), 1, "unknown model 'gpt'"),
        (run_of("--model", "extractive", "--top-k", "99"), 1, "top_k"),
        (run_of("--presentation", "plain"), 2, "presentation"),
        (run_of("--limit", "0"), 2, "limit"),
        (run_of("--concurrency", "0"), 2, "concurrency"),
    ],
)
def test_errors_are_named(arag, folder, arguments, code, told):
    found, out, err = arag(*arguments)
    assert (found, out) == (code, "")
    assert told in err
    assert "Traceback" not in err


def test_the_presentation_is_a_part_of_the_plan(arag, folder):
    paper = run_of("--limit", 1, "--model", "extractive", "--presentation", "paper", "--out", "run")
    assert arag(*paper)[0] == 0
    assert load_plan(folder / "run").options.presentation == "paper"
    assert arag("eval", "report", "run")[0] == 0
    assert "- Presentation: paper\n" in (folder / "run/report.md").read_text("utf-8")
    code, _, err = arag(*run_of("--limit", 1, "--model", "extractive", "--out", "run"))
    assert code == 1
    assert "'presentation': 'paper'" in err
    assert "'presentation': 'compact'" in err


def test_a_plan_from_before_there_were_presentations_is_compact(arag, folder):
    wanted = run_of("--limit", 1, "--model", "extractive", "--out", "run")
    assert arag(*wanted)[0] == 0
    file = folder / "run/run.json"
    plan = json.loads(file.read_text("utf-8"))
    del plan["options"]["presentation"]
    file.write_text(json.dumps(plan), encoding="utf-8")
    assert arag(*wanted)[0] == 0
    assert load_plan(folder / "run").options.presentation == "compact"


def test_another_plan_is_refused(arag, folder):
    assert arag(*run_of("--limit", 1, "--model", "extractive"))[0] == 0
    code, _, err = arag(*run_of("--limit", 1, "--model", "extractive", "--max-steps", 3))
    assert code == 1
    assert "'max_steps': 15" in err
    assert "'max_steps': 3" in err


def test_failed_questions_are_told_of_and_tried_again(arag, folder):
    refused = Replies(instead={n: Failure(400, message=f"[no] {n}") for n in range(4)})
    with serve(refused) as server:
        model = f"openai:gpt-5-mini@{server.url}"
        code, out, err = arag(*run_of("--model", model, "--concurrency", 1))
        assert code == 1
        assert re.match(r"arag 1 of 5 answered, Contain-Acc 20.0%, \$0.0\d\n", out)
        told = err.splitlines()[1:]
        assert re.match(r"Failed: 2hop__0: \w+: Error code: 400 - .*\[no\] 0", told[0])
        assert told[3] == "Failed: 1 more"
        code, out, err = arag(*run_of("--model", model, "--json"))
        assert (code, err) == (0, "")
        assert json.loads(out)["methods"][0]["contain"] == 1.0


def test_a_judge(arag, folder, monkeypatch):
    monkeypatch.setattr("arag.evaluation.structured._PAUSE", 0)
    unusable = {**chat("?"), "model": "gpt-5-mini"}
    judging = Replies(judging=True, instead=dict.fromkeys(range(3), unusable))
    with serve(Replies()) as server, serve(judging) as judge:
        model = ["--model", f"openai:gpt-5-mini@{server.url}", "--concurrency", 1]
        assert arag(*run_of(*model))[0] == 0
        model += ["--judge", f"openai:gpt-5-mini@{judge.url}"]
        code, out, err = arag(*run_of(*model))
        assert code == 1
        assert "5 of 5 answered, LLM-Acc 100.0% (4 judged), Contain-Acc 100.0%, $0.00" in out
        assert err == "Unjudged: 2hop__0: the judge gave no usable verdict: ?\n"
        code, out, err = arag(*run_of(*model))
        assert (code, err) == (0, "")
        assert "LLM-Acc 100.0%, Contain-Acc" in out
        assert len(server.requests) == 5 * STEPS


def test_the_most_cost_is_that_of_all_methods(arag, folder):
    with serve(Replies()) as server:
        more = ["--model", f"openai:gpt-5-mini@{server.url}", "--concurrency", 1, "--json"]
        one = json.loads(arag(*run_of(*more, "--limit", 1))[1])["methods"][0]["cost"]
        more += ["--method", "direct", "--max-cost", 3.5 * one]
        code, out, err = arag(*run_of(*more))
        first, second = json.loads(out)["methods"]
        assert code == 1
        assert (first["answered"], second["answered"]) == (4, 0)
        assert err.splitlines() == [
            "Not started: 1, because --max-cost was reached",
            "Not started: 5, because --max-cost was reached",
        ]


def test_a_bug_is_told_of_with_its_traceback(arag, folder, monkeypatch):
    assert arag(*run_of("--limit", 1, "--model", "extractive"))[0] == 0

    def bug(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(type(load_model("extractive")), "_generate", bug)
    code, out, err = arag(*run_of("--model", "extractive", "--limit", 4))
    assert (code, out.partition(",")[0]) == (1, "arag 1 of 4 answered")
    assert err.count("Failed: 2hop__") == 3
    assert err.count("Traceback (most recent call last)") == 1
    assert "in bug" in err
    with pytest.raises(ZeroDivisionError):
        arag(*run_of("--model", "extractive", "--method", "direct"))
    found = [
        record["error"] for name in ("arag", "direct") for record in records(folder / "runs/musique", name).values()
    ]
    assert found == [None] + ["ZeroDivisionError: a bug"] * 9


def test_a_judge_that_has_no_price_is_named(arag, folder):
    with serve(Replies()) as server, serve(lambda *_: chat('{"reason": "So it is.", "correct": true}')) as judge:
        more = ["--model", f"openai:gpt-5-mini@{server.url}", "--judge", f"openai:own@{judge.url}", "--max-cost", 1]
        code, out, err = arag(*run_of(*more, "--concurrency", 1))
        assert (code, out, len(judge.requests)) == (1, "", 1)
        assert f"--max-cost cannot be enforced: the price of openai:own@{judge.url} is unknown" in err
        code, _, err = arag(*run_of(*more))
        assert (code, len(judge.requests), len(server.requests)) == (1, 1, STEPS)
        assert "ARAG_PRICES" in err


def test_work_at_index_time_is_paid_for_out_of_the_same_purse(arag, folder, monkeypatch):
    async def prepare(place):
        await place.ask([Request([HumanMessage("Read this.")])])

    preparing = Method("preparing", "Preparing", "", find_method("direct").make, prepare)
    monkeypatch.setattr(agentic, "METHODS", (*agentic.METHODS, preparing))
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
    with serve(lambda *_: {**chat("Read."), "model": "gpt-5-mini", "usage": usage}) as server:
        more = ["--model", f"openai:gpt-5-mini@{server.url}", "--max-cost", 0.25]
        for _ in range(2):
            code, out, err = arag(*run_of(*more, method="preparing"))
            assert (code, len(server.requests)) == (1, 1)
            assert "preparing 0 of 5 answered" in out
            assert "Not started: 5, because --max-cost was reached" in err
    assert json.loads((folder / "runs/musique/prepared.json").read_text())["preparing"]["cost"] == 0.25


def test_a_failed_call_of_index_time_work_ends_that_method_only(arag, folder, monkeypatch):
    async def prepare(place):
        await place.ask([Request([HumanMessage(f"Read part {n}.")]) for n in range(3)])

    preparing = Method("preparing", "Preparing", "", find_method("direct").make, prepare)
    monkeypatch.setattr(agentic, "METHODS", (*agentic.METHODS, preparing))
    mended = []

    def respond(_, request):
        failing = "Read part 1" in str(request) and not mended
        return Failure(400) if failing else {**chat("Answer: Boso"), "model": "gpt-5-mini"}

    with serve(respond) as server:
        command = run_of("--model", f"openai:gpt-5-mini@{server.url}", "--method", "direct", method="preparing")
        code, out, err = arag(*command)
        assert code == 1
        assert "preparing 0 of 5 answered" in out
        assert "direct 5 of 5 answered" in out
        assert "Traceback" not in err
        assert "Not started" not in err
        told = " ".join(err.split())
        assert "Failed: index-time work of preparing: Error code: 400" in told
        assert "2 of 3 model calls are kept: run it again to go on" in told
        mended.append(True)
        taken = []
        for deleted in (False, True):  # as an error about damaged results advises
            if deleted:
                shutil.rmtree(folder / "index.methods")
            assert arag(*command)[0] == 0
            taken.append(json.loads((folder / "runs/musique/prepared.json").read_text())["preparing"])
    assert [each["usage"]["model_calls"] for each in taken] == [3, 6]


def test_options_of_the_model(arag, folder):
    with serve(Replies()) as server:
        model = ["--model", f"openai:gpt-5-mini@{server.url}", "--limit", 1]
        more = ["--model-option", "seed=7", "--model-option", 'stop=["END"]', "--reasoning-effort", "low"]
        assert arag(*run_of(*model, *more, "--model-option", "service_tier=a=b"))[0] == 0
        request = server.requests[0]
        assert (request["seed"], request["stop"], request["reasoning_effort"]) == (7, ["END"], "low")
        code, _, err = arag(*run_of(*model))
    assert code == 1
    assert "model_options was {'reasoning_effort': 'low', 'seed': 7, 'stop': ['END'], 'service_tier': 'a=b'}" in err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["temperature"], "--model-option 'temperature': NAME=VALUE is needed"),
        (["=1"], "--model-option '=1': NAME=VALUE is needed"),
        (["temperature=1", "temperature=2"], "temperature is given twice"),
        (["temperatur=1"], "has no option temperatur. Did you mean temperature?"),
        (["openai_api_key=secret"], "could see an API key"),
    ],
)
def test_options_that_are_refused(arag, folder, options, told):
    given = [part for option in options for part in ("--model-option", option)]
    code, _, err = arag(*run_of("--model", "openai:gpt-5-mini@http://127.0.0.1:9/v1", *given))
    assert code == 1
    assert told in err


def test_prices_that_cannot_be_read_are_told_of_before_any_call(arag, folder, monkeypatch):
    monkeypatch.setenv("ARAG_PRICES", "none.json")
    with serve([]) as server:
        code, _, err = arag(*run_of("--model", f"openai:gpt-5-mini@{server.url}"))
    assert code == 1
    assert "none.json" in err


# --- ablations and scaling ---


def test_an_ablation_takes_the_options_of_a_run(arag, folder):
    with serve(Replies()) as server:
        model = ["--model", f"openai:gpt-5-mini@{server.url}", "--reasoning-effort", "low", "--concurrency", 1]
        more = ["--top-k", 3, "--presentation", "paper", "--max-steps", 7, "--max-cost", 0.0003, "--out", "ablation"]
        code, out, err = arag("eval", "ablate", *run_of()[2:-2], *model, *more)
    assert code == 1
    plan = load_plan(folder / "ablation")
    assert (plan.options, plan.model_options) == (
        Options(top_k=3, presentation="paper", max_steps=7),
        {"reasoning_effort": "low"},
    )
    answered = [int(number) for number in re.findall(r"(\d) of 5 answered", out)]
    assert 0 < answered[0] < 5
    assert answered[1:] == [0, 0, 0]
    assert err.count("because --max-cost was reached") == 4


def test_the_most_cost_is_that_of_all_settings(arag, folder):
    with serve(Replies()) as server:
        model = ["--model", f"openai:gpt-5-mini@{server.url}", "--concurrency", 1]
        one = json.loads(arag(*run_of(*model, "--limit", 1, "--json"))[1])["methods"][0]["cost"]
        before = len(server.requests)
        more = ["--top-k", 4, "--presentation", "paper", "--steps", 5, "--steps", 10, "--limit", 3, "--out", "scale"]
        for _ in range(2):  # the second time everything is spent
            code, _, err = arag("eval", "scale", *run_of()[2:-2], *model, *more, "--max-cost", 3.5 * one)
            assert code == 1
            assert "Not started: 2, because --max-cost was reached" in err
            assert len(server.requests) - before == 4 * STEPS
    assert load_plan(folder / "scale/steps-5").options == Options(top_k=4, presentation="paper", max_steps=5)
    assert (folder / "scale/scale.csv").exists()


# --- the run's folder ---


def test_a_run_and_its_index_in_one_folder(arag, folder):
    (folder / "runs/x").mkdir(parents=True)
    (folder / "musique.jsonl").rename(folder / "runs/x/musique.jsonl")
    more = {"questions": "runs/x/musique.jsonl", "index": "runs/x/index"}
    assert arag(*run_of("--model", "extractive", "--out", "runs/x", **more))[0] == 0
    assert (folder / "runs/x/index.corpus.jsonl").exists()
    assert list(load_records(folder / "runs/x")) == ["arag"]
    assert arag(*run_of("--model", "extractive", "--out", "runs/x", **more))[0] == 0


def test_no_file_of_a_run_holds_a_secret(arag, folder):
    told = []
    refusal = Failure(400, message="no, says http://me:pa55w0rd@127.0.0.1/v1")
    with serve(Replies(instead={0: refusal})) as server, serve(Replies(judging=True)) as judge:

        def run(password, header):
            model, judging = (f"openai:gpt-5-mini@{s.url.replace('//', f'//me:{password}@')}" for s in (server, judge))
            secret = ["--model-option", f'default_headers={{"X-Gate": "{header}"}}', "--model-option", "temperature=0"]
            more = ["--model", model, "--judge", judging, *secret, "--concurrency", 1, "--limit", 2, "--out", "run"]
            code, out, err = arag(*run_of(*more))
            told.append(out + err)
            return code

        assert run("pa55w0rd", "h3ader") == 1
        assert server.headers[0]["authorization"] == "Basic bWU6cGE1NXcwcmQ="
        assert server.headers[0]["x-gate"] == "h3ader"
        assert judge.headers[0]["authorization"] == "Basic bWU6cGE1NXcwcmQ="
        assert run("pa55w0rd-2", "h3ader-2") == 0  # the same run
    for command in (["report", "run"], ["failures", "run"]):
        told += arag("eval", *command)[1:]
    plan = load_plan(folder / "run")
    assert (plan.model, plan.judge) == (f"openai:gpt-5-mini@{server.url}", f"openai:gpt-5-mini@{judge.url}")
    assert plan.model_options == {"default_headers": "***", "temperature": 0}
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"run.json", "arag.jsonl", "report.html"} <= {file.name for file in files}
    for secret in ("pa55w0rd", "h3ader"):
        assert [file.name for file in files if secret.encode() in file.read_bytes()] == []
        assert secret not in "".join(told)


def test_a_run_may_be_gone_on_with_from_anywhere(arag, folder, monkeypatch):
    assert arag(*run_of("--model", "extractive", "--limit", 1, "--out", "r1"))[0] == 0
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    more = {"questions": "../musique.jsonl", "index": "../elsewhere/../index"}
    assert arag(*run_of("--model", "extractive", "--out", "../r1", **more))[0] == 0
    plan = load_plan(folder / "r1")
    assert (plan.questions, plan.index, plan.asked) == (str(folder / "musique.jsonl"), str(folder / "index"), 5)
    assert arag("eval", "report", "../r1", "--no-pages")[0] == 0


def test_another_index_of_the_same_name_is_noticed(arag, folder):
    more = ["--model", "extractive", "--limit", 1, "--out", "r1"]
    (folder / "corpus.jsonl").write_text(json.dumps({"id": "mine", "text": "Boso the Elder was a count."}))
    run_ingest([folder / "corpus.jsonl"], folder / "index")
    assert arag(*run_of(*more))[0] == 0
    known = load_plan(folder / "r1").contents
    assert (known["documents"], known["chunks"]) == (1, 1)
    run_ingest([folder / "corpus.jsonl"], folder / "index")
    assert arag(*run_of(*more))[0] == 0
    shutil.rmtree(folder / "index")
    run_ingest([folder / "corpus.jsonl"], folder / "index")
    assert arag(*run_of(*more))[0] == 0
    shutil.rmtree(folder / "index")
    (folder / "corpus.jsonl").write_text(json.dumps({"id": "mine", "text": "Boso the Elder was a king."}))
    run_ingest([folder / "corpus.jsonl"], folder / "index")
    code, _, err = arag(*run_of(*more))
    assert code == 1
    assert "the fingerprint of the index in" in err
    assert "give another folder with --out" in err
    shutil.rmtree(folder / "index")
    assert arag("eval", "report", "r1", "--no-pages")[0] == 0


def test_progress_is_drawn_on_a_terminal(arag, folder, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(printing.err, "_force_terminal", True)
    code, _, err = arag(*run_of("--model", "extractive"))
    assert code == 0
    assert "5/5" in err
    assert "left:" in err


def test_progress_tells_of_verdicts_and_of_all_costs(arag, folder, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(printing.err, "_force_terminal", True)
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
    verdict = chat('{"reason": "So it is.", "correct": true}', usage=usage) | {"model": "gpt-5-mini"}
    with serve(Replies(instead={3: Failure(400)})) as server, serve(lambda *_: verdict) as judge:
        more = ["--model", f"openai:gpt-5-mini@{server.url}", "--judge", f"openai:gpt-5-mini@{judge.url}"]
        _, _, err = arag(*run_of(*more, "--concurrency", 1, "--limit", 2))
        shown = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", err).split("\n") if "1/2" in line]
        assert "LLM-Acc 50.0%, Contain-Acc 50.0%, $0.25" in shown[-1]
        _, _, err = arag(*run_of(*more, "--concurrency", 1, "--limit", 2))
        shown = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", err).split("\n") if "2/2" in line]
        assert "LLM-Acc 100.0%, Contain-Acc 100.0%, $0.50" in shown[-1]
