"""Index-time work: nothing is paid for twice, whatever ends it; and what the methods that do it share."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from dataclasses import replace
from textwrap import dedent
from typing import Annotated

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from arag import Scope
from arag.errors import InputError, ModelError, StorageError
from arag.evaluation.budget import Budget
from arag.evaluation.event_loop import run
from arag.evaluation.methods import Method, Options, Settings, find_methods, method
from arag.evaluation.methods.baselines.each import Each, merge
from arag.evaluation.methods.baselines.passages import Passages, minmax
from arag.evaluation.methods.baselines.reader import read_answer
from arag.evaluation.preparation import load_preparations, prepare, prepare_run
from arag.evaluation.store import Result, Store, open_store
from arag.evaluation.structured import StructuredModel, ask_text
from arag.evaluation.workplace import Replies, Request, Workplace
from arag.models.chat import load_model
from arag.models.embedders import load_embedder
from arag.testing import ScriptedModel
from fakes import HashEmbeddings, hash_vector, write_index
from openai_server import Failure, chat, serve

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

TEXTS = [f"text {number}" for number in range(6)]


class Facts(BaseModel):
    """Facts of a text."""

    facts: list[str]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "index.methods")


def requests(texts=TEXTS, form=Facts):
    return [Request([HumanMessage(f"Read: {text}")], form) for text in texts]


def reply(_, request):
    return {**chat(f'{{"facts": ["{request["messages"][0]["content"]}"]}}'), "model": "gpt-5-mini"}


def place(index, store, server, **changes):
    model = load_model(f"openai:gpt-5-mini@{server.url}", max_retries=0)
    return Workplace(index, model, Options(), store, **changes)


def values(asked):
    return [None if each.value is None else each.value.facts for each in asked]


def test_another_thread_may_find_that_a_model_answers_without_structured_output(monkeypatch):
    reads = iter(["structured"])
    asking = StructuredModel(load_model("openai:gpt-5-mini@http://localhost:1", api_key="none"), Facts, "reader")
    # From the second reading on, the other thread has set it.
    monkeypatch.setattr(StructuredModel, "_structured", property(lambda _: next(reads, None)), raising=False)
    model, _ = next(asking.ask([HumanMessage("Read.")]))
    assert model == "structured"


class TestWorkplace:
    def test_every_request_is_asked_once_for_all_runs(self, small_index, store):
        progress = []
        with serve(reply) as server:
            first = place(small_index, store, server, on_progress=lambda *told: progress.append(told))
            asked = run(first.ask([*requests(), *requests(TEXTS[:2])], "Facts"))
            second = place(small_index, store, server)
            again = run(second.ask(requests()))
            assert len(server.requests) == len(TEXTS)
        assert values(asked) == [[f"Read: {text}"] for text in [*TEXTS, *TEXTS[:2]]]
        assert values(again) == values(asked)[: len(TEXTS)]
        assert (len(first.paid), len(first.reused)) == (6, 0)
        assert (len(second.paid), len(second.reused)) == (0, 6)
        assert second.budget.spent == 0
        assert (progress[0], progress[-1]) == (("Facts", 0, 6), ("Facts", 6, 6))

    @pytest.mark.parametrize("other", ["text", "schema", "model"])
    def test_what_was_asked_otherwise_is_another_request(self, other, small_index, store):
        class Facts(BaseModel):
            """Facts of a text."""

            facts: list[str] = Field(description="At most three.")

        with serve(reply) as server:
            run(place(small_index, store, server).ask(requests(TEXTS[:1])))
            model = load_model(f"openai:{'gpt-4o' if other == 'model' else 'gpt-5-mini'}@{server.url}")
            wanted = requests(
                ["text 0." if other == "text" else "text 0"], Facts if other == "schema" else requests()[0].form
            )
            run(Workplace(small_index, model, Options(), store).ask(wanted))
            assert len(server.requests) == 2

    def test_a_failed_call_loses_nothing(self, small_index, store):
        def respond(_, request):
            return Failure(500) if "text 4" in str(request) and not mended else reply(_, request)

        mended = []
        with serve(respond) as server:
            with pytest.raises(ModelError, match=r"500.*; 4 of 6 model calls are kept: run it again to go on"):
                run(place(small_index, store, server, concurrency=1).ask(requests()))
            assert len(place(small_index, store, server).missing(requests())) == 2
            mended.append(True)
            before = len(server.requests)
            second = place(small_index, store, server)
            run(second.ask(requests()))
            assert len(server.requests) - before == 2
        assert (len(second.paid), len(second.reused)) == (2, 4)

    def test_a_run_that_was_killed_has_paid_for_what_it_did(self, small_index, store):
        with serve(reply) as server:
            run(place(small_index, store, server, run="runs/a").ask(requests(TEXTS[:4])))
            budget = Budget(limit=1.0)
            again = place(small_index, store, server, run="runs/a", budget=budget)
            run(again.ask(requests()))
        assert (len(again.paid), len(again.made), len(again.reused)) == (6, 2, 0)
        one = (60 * 0.25 + 40 * 0.025 + 10 * 2) / 1e6
        assert budget.spent == pytest.approx(2 * one)  # the others count before the run goes on: see `count_spent`

    def test_unusable_replies_before_a_failed_call_are_paid_for(self, small_index, store):
        useless = {**chat("nonsense"), "model": "gpt-5-mini"}
        with serve(
            [useless, Failure(500), useless, useless, Failure(500), reply(0, {"messages": [{"content": "x"}]})]
        ) as server:
            for expected in (1, 3):
                failing = place(small_index, store, server, run="run/own")
                with pytest.raises(ModelError, match="0 of 1 model calls are kept"):
                    run(failing.ask(requests(TEXTS[:1])))
                assert len(failing.paid) == len(store.payments("run")["own"]) == expected
            last = place(small_index, store, server, run="run/own")
            run(last.ask(requests(TEXTS[:1])))
        assert (len(last.paid), len(last.made), len(store.payments("run")["own"])) == (4, 1, 4)

    def test_rate_limits_are_waited_for(self, small_index, store, monkeypatch):
        monkeypatch.setattr("arag.evaluation.patience._FIRST_PAUSE", 0.01)
        limited = []

        def respond(_, request):
            if "text 2" in str(request) and not limited:
                limited.append(1)
                return Failure(429)
            return reply(_, request)

        with serve(respond) as server:
            asked = run(place(small_index, store, server).ask(requests()))
            assert len(server.requests) == 7
        assert None not in values(asked)

    @pytest.mark.parametrize("useless", ["no facts", '{"facts": 3}', "", "{}"])
    def test_a_reply_without_use_is_asked_for_again_and_then_kept_as_such(self, useless, small_index, store):
        with serve(lambda *_: chat(useless)) as server:
            (asked,) = run(place(small_index, store, server).ask(requests(TEXTS[:1])))
            assert (asked.value, len(asked.calls), len(server.requests)) == (None, 3, 3)
            (again,) = run(place(small_index, store, server).ask(requests(TEXTS[:1])))
            assert (again.value, len(again.calls), len(server.requests)) == (None, 3, 3)

    def test_a_reply_that_is_cut_off_is_paid_for_and_asked_for_again(self, small_index, store):
        cut = chat('{"facts": ["one", "tw', finish_reason="length")
        with serve([cut, cut, chat('{"facts": ["one"]}')]) as server:
            (asked,) = run(place(small_index, store, server).ask(requests(TEXTS[:1])))
        assert asked.value.facts == ["one"]
        assert [(call["cut_off"], call["input_tokens"]) for call in asked.calls] == [(True, 100)] * 2 + [(False, 100)]

    def test_a_text(self, small_index, store):
        with serve([chat(""), chat(" A summary.\n")]) as server:
            (asked,) = run(place(small_index, store, server).ask(requests(TEXTS[:1], None)))
        assert (asked.value, len(asked.calls)) == ("A summary.", 2)

    def test_the_budget_ends_it_between_calls(self, small_index, store):
        usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
        with serve(lambda *_: {**chat('{"facts": []}'), "model": "gpt-5-mini", "usage": usage}) as server:
            work = place(small_index, store, server, budget=Budget(limit=0.6), concurrency=1)
            with pytest.raises(InputError, match=r"--max-cost is used up after 3 of 6 model calls. They are kept"):
                run(work.ask(requests()))
            assert len(server.requests) == 3

    def test_a_budget_that_is_too_small_ends_it_before_the_first_call(self, small_index, store):
        told = []
        with serve([]) as server:
            work = place(small_index, store, server, budget=Budget(limit=0.1), on_announced=told.append)
            with pytest.raises(InputError, match=r"about 2,000 model calls with 1,000,000 input tokens, \$0.2500 and "):
                work.announce(2_000, 1_000_000)
            work.budget.limit = 0.3
            work.announce(2_000, 1_000_000)
            model = load_model(f"openai:own@{server.url}")
            unpriced = Workplace(small_index, model, Options(), store, budget=Budget(limit=0.1))
            with pytest.raises(InputError, match="--max-cost cannot be enforced: the price of own is unknown"):
                unpriced.announce(1, 10)
        assert told[0].startswith("Index-time work: about 2,000 model calls")

    def test_a_graph_needs_all_of_it(self, small_index, store):
        with serve(reply) as server:
            work = place(small_index, store, server)
            run(work.ask(requests(TEXTS[:2])))
            replies = Replies(store, work.model)
            assert values(replies.require(requests(TEXTS[:2]), "hipporag2")) == [["Read: text 0"], ["Read: text 1"]]
            with pytest.raises(InputError, match=r"hipporag2 has not read the whole index yet \(2 of 6 model calls"):
                replies.require(requests(), "hipporag2")


class TestPrepare:
    def test_requirements(self, small_index, store):
        one = Method("own", "Own", "", method("direct").make, language_model=True, missing=lambda: "install it")
        work = Workplace(small_index, load_model("extractive"), Options(), store)
        with pytest.raises(InputError, match="own cannot run: install it"):
            run(prepare(one, work))
        one = Method("own", "Own", "", method("direct").make, language_model=True)
        with pytest.raises(InputError, match="the built-in extractive model cannot run own: give a language model"):
            run(prepare(one, work))

    def test_one_process_at_a_time(self, small_index, store, tmp_path):
        async def work(_):
            raise AssertionError

        one = Method("own", "Own", "", method("direct").make, prepare=work)
        there = Workplace(small_index, ScriptedModel(), Options(), Store(tmp_path / "index.methods"))
        with store.locked("other"), store.locked("own"), pytest.raises(InputError, match="work of own: wait"):
            run(prepare(one, there))
        for searches in ("graphrag", "graphrag-global"):  # which share their graph
            same = replace(method(searches), prepare=work, missing=lambda: None)
            with store.locked("graphrag"), pytest.raises(InputError, match="work of graphrag: wait"):
                run(prepare(same, there))

    def test_what_methods_share_is_paid_by_the_first(self, small_index, store, tmp_path):
        async def work(place):
            await place.ask(requests())

        methods = [Method(name, name, "", method("direct").make, work) for name in ("one", "two")]
        budget = Budget(limit=1.0)
        with serve(reply) as server:
            for each in methods:
                there = place(small_index, store, server, run=f"run/{each.name}", budget=budget)
                run(prepare_run(each, there, tmp_path / "run"))
        taken = load_preparations(tmp_path / "run")
        assert {name: each["usage"]["model_calls"] for name, each in taken.items()} == {"one": 6, "two": 0}
        assert {name: each["reused"]["model_calls"] for name, each in taken.items()} == {"one": 0, "two": 6}
        assert budget.spent == pytest.approx(taken["one"]["cost"])
        assert {name: len(calls) for name, calls in store.payments("run").items()} == {"one": 6}

    def test_work_that_was_deleted_is_done_again_and_added(self, small_index, tmp_path):
        async def work(place):
            await place.ask(requests())

        one = Method("one", "One", "", method("direct").make, work)
        taken = []
        with serve(reply) as server:
            for name in ("kept", "kept", "new", "new"):
                there = place(small_index, Store(tmp_path / name), server, run="run/one")
                run(prepare_run(one, there, tmp_path / "run"))
                taken.append(load_preparations(tmp_path / "run")["one"])
            assert len(server.requests) == 12
        assert [each["usage"]["model_calls"] for each in taken] == [6, 6, 12, 12]
        assert taken[2]["cost"] == pytest.approx(2 * taken[0]["cost"])
        assert (taken[0], taken[2]) == (taken[1], taken[3])

    def test_two_methods_at_once_record_what_they_took(self, small_index, store, tmp_path):
        async def both():
            done = asyncio.Event()

            async def wait(_):
                await done.wait()

            async def finish(_):
                done.set()

            there = Workplace(small_index, ScriptedModel(), Options(), store)
            methods = [Method(n, n, "", method("direct").make, work) for n, work in (("a", wait), ("b", finish))]
            await asyncio.gather(*(prepare_run(each, there, tmp_path / "run") for each in methods))

        asyncio.run(both())
        assert sorted(load_preparations(tmp_path / "run")) == ["a", "b"]


class TestStore:
    def test_vectors_are_embedded_once(self, store):
        embeddings = HashEmbeddings()
        embedder = load_embedder(embeddings)
        texts = ["a light", "the long mill stands there", "a light", "a boat"]
        found = store.vectors(texts, embedder)
        again = Store(store._file.parent).vectors([*texts, "a ship"], embedder)
        expected = np.array([hash_vector(text) for text in [*texts, "a ship"]], dtype=np.float32)
        np.testing.assert_allclose(again, expected, atol=1e-6)
        np.testing.assert_array_equal(found, again[:4])
        assert sorted(embeddings.embedded) == sorted({*texts, "a ship"})
        assert store.vectors([], embedder).shape == (0, 0)

    def test_values(self, store):
        store.remember("entities v1", {"a": ["Ada"], "b": []})
        assert store.recall("entities v1", ["b", "a", "c", "\ud800"]) == [[], ["Ada"], None, None]
        assert store.recall("entities v2", ["a"]) == [None]

    def test_it_lies_beside_the_index(self, tmp_path):
        from arag import open_index

        with open_index(write_index(tmp_path, {"a": "The mill stands."}), embedder=HashEmbeddings()) as index:
            open_store(index).remember("kind", {"a": 1})
        assert (tmp_path / "index.methods" / "results.sqlite3").exists()

    def test_damage_is_named(self, tmp_path, store):
        store.remember("kind", {"a": 1})
        with sqlite3.connect(store._file) as connection:
            connection.execute("UPDATE results SET value = '{'")
        with pytest.raises(StorageError, match=r"results.sqlite3 cannot be used: .* delete it"):
            store.recall("kind", ["a"])
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "results.sqlite3").write_bytes(b"no database" * 1000)
        with pytest.raises(StorageError, match="file is not a database"):
            Store(tmp_path / "other")


class TestEach:
    """Five calls at once, one of which meets a rate limit."""

    class State(TypedDict, total=False):
        notes: Annotated[dict[str, str], merge]

    def graph(self, model):
        def bodies(state):
            return {key: body(key) for key in "abcde" if key not in state.get("notes", {})}

        def body(key):
            asked = yield from ask_text(model, [HumanMessage(key)])
            return asked.value

        builder = StateGraph(self.State)
        builder.add_node("each", Each(bodies, "notes"))
        builder.add_edge(START, "each")
        builder.add_conditional_edges("each", lambda state: "each" if bodies(state) else END, ["each", END])
        return builder.compile()

    @pytest.mark.parametrize("way", ["invoke", "ainvoke"])
    def test_only_what_failed_is_asked_again(self, way):
        failed = []

        def respond(_, request):
            text = request["messages"][0]["content"]
            if text == "c" and not failed:
                failed.append(1)
                return Failure(429)
            return chat(text.upper())

        with serve(respond) as server:
            graph = self.graph(load_model(f"openai:m@{server.url}", max_retries=0))
            state = asyncio.run(graph.ainvoke({})) if way == "ainvoke" else graph.invoke({})
            assert len(server.requests) == 6
        assert state["notes"] == {key: key.upper() for key in "abcde"}

    @pytest.mark.parametrize("way", ["invoke", "ainvoke"])
    def test_it_fails_if_nothing_can_be_done(self, way):
        with serve(lambda *_: Failure(500)) as server:
            graph = self.graph(load_model(f"openai:m@{server.url}", max_retries=0))
            with pytest.raises(Exception, match="500"):
                asyncio.run(graph.ainvoke({})) if way == "ainvoke" else graph.invoke({})
            assert len(server.requests) == 5


class TestPassages:
    def test_whole_chunks(self, small_index, store):
        passages = Passages(small_index, store)
        texts = [chunk.text for chunk in passages.chunks(small_index.chunk_ids())]
        question = "Who married Teutberga?"
        expected = [float(hash_vector(question) @ hash_vector(text)) for text in texts]
        np.testing.assert_allclose(passages.scores(question), expected, atol=1e-6)
        assert passages.ids == list(small_index.chunk_ids())
        assert passages.top(question, 2) == [passages.ids[place] for place in np.argsort(expected)[::-1][:2]]

    def test_their_best_sentence(self, small_index, store):
        question = "In the year 845 storm number 5915"
        hits = small_index.semantic_search(question, 3).hits
        assert Passages(small_index, store, "sentence").top(question, 3) == [hit.chunk_id for hit in hits]

    def test_a_scope(self, small_index, store):
        part = small_index.limited_to(Scope(documents=["boso", "lothair"]))
        assert Passages(part, store).ids == ["lothair:0", "boso:0"]

    def test_nothing_to_scale(self):
        assert minmax(np.array([2.0, 4.0, 3.0])).tolist() == [0, 1, 0.5]
        assert minmax(np.array([3.0, 3.0])).tolist() == [1, 1]
        assert minmax(np.empty(0)).tolist() == []


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It follows.\nAnswer: Boso", "Boso"),
        ("Answer: Hugh\nBut no.\n**Answer:** Boso the Elder**", "Boso the Elder"),
        ("answer : 1783\nand so on", "1783\nand so on"),
        ("根据资料。\nAnswer：北京", "北京"),
        ("The answer: none", "The answer: none"),
        ("Boso", "Boso"),
        ("Reasons.\nAnswer:", "Reasons.\nAnswer:"),
    ],
)
def test_the_readers_answer(text, answer):
    assert read_answer(text) == answer


class Own(Settings):
    """Settings of a method."""

    threshold: float = Field(0.4, ge=0, description="The least score.")


def test_a_store_that_is_locked_is_not_told_to_be_damaged(store):
    store._connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(store._file)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match=r"^another process is writing to .*: wait for it to finish$"):
        store.keep({b"key": Result(1, [])})
    other.close()
    store.keep({b"key": Result(1, [])})


class TestSettings:
    def test_a_methods_own(self):
        options = Options(settings={"own": {"threshold": 0.5}})
        assert options.of("own", Own).threshold == 0.5
        assert options.of("other", Own).threshold == 0.4

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"limit": 1}, "own has no setting 'limit'; valid settings: threshold"),
            ({"threshold": -1}, "own.threshold is -1: Input should be greater than or equal to 0"),
            ({"threshold": "much"}, "own.threshold is 'much': Input should be a valid number"),
        ],
    )
    def test_what_is_not_valid(self, given, message):
        with pytest.raises(InputError, match=message):
            Options(settings={"own": given}).of("own", Own)


OUTSIDE = """
from arag.evaluation.methods import Method, method

METHODS = (Method("NAME", "Outside", "a method of another package", method("direct").make),)
"""


class TestOutside:
    def test_a_module(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.path", [*sys.path])
        (tmp_path / "outside_pack").mkdir()
        for file, name in (("outside_pack/mine", "outside"), ("outside_clash", "direct"), ("outside_none", "")):
            text = OUTSIDE.replace("NAME", name) if name else "x = 1"
            (tmp_path / f"{file}.py").write_text(dedent(text))
        assert list(find_methods(["arag", "outside_pack.mine"])) == ["arag", "outside"]
        with pytest.raises(InputError, match="the method 'direct' of outside_clash has the name of a built-in one"):
            find_methods(["outside_clash"])
        with pytest.raises(InputError, match="the module outside_none has no METHODS"):
            find_methods(["outside_none"])
        (tmp_path / "outside_second.py").write_text(dedent(OUTSIDE.replace("NAME", "outside")))
        assert list(find_methods(["outside_pack.mine", "outside_pack.mine"])) == ["outside"]
        with pytest.raises(InputError, match="two methods are named 'outside'; the second one is in outside_second"):
            find_methods(["outside_pack.mine", "outside_second"])
        for unknown in ("outside_gone.mine", "a-rag", "no such"):
            with pytest.raises(InputError, match=f"unknown method '{unknown}'; valid methods: arag"):
                find_methods([unknown])

    def test_the_current_folder_hides_no_installed_module(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.path", [path for path in sys.path if path])
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
        with pytest.raises(InputError, match="unknown method '__main__'"):
            find_methods(["__main__"])
        (tmp_path / "outside_beside.py").write_text(dedent(OUTSIDE.replace("NAME", "beside")))
        assert list(find_methods(["outside_beside"])) == ["beside"]
        assert sys.path[-1] == str(tmp_path)


def test_the_sentences_of_an_index(small_index):
    for index in (small_index, small_index.limited_to(Scope(documents=["boso", "annals"]))):
        placed = list(index.sentence_vectors())
        assert [chunk.id for chunk, _, _ in placed] == list(index.chunk_ids())
        for chunk, positions, vectors in placed:
            texts = [chunk.text[chunk.sentences[p].start : chunk.sentences[p].end] for p in positions]
            np.testing.assert_allclose(vectors, [hash_vector(text) for text in texts], atol=2e-3)


def test_errors_of_an_embedder_that_fails_midway_keep_what_was_done(store):
    texts = [f"text {number} of many" for number in range(30)]
    embedder = load_embedder(HashEmbeddings(fail_after=20))
    embedder.batch = 10
    with pytest.raises(Exception, match="went away"):
        store.vectors(texts, embedder)
    rest = HashEmbeddings()
    store.vectors(texts, load_embedder(rest))
    assert len(rest.embedded) == 10


def test_an_unreadable_response_is_asked_for_again(small_index, store, monkeypatch):
    monkeypatch.setattr("arag.models.asking.FIRST_PAUSE", 0)
    model = ScriptedModel(ModelError("no reply"), AIMessage("Read."))
    (asked,) = run(Workplace(small_index, model, Options(), store).ask(requests(TEXTS[:1], None)))
    assert asked.value == "Read."
    model.assert_used_up()
