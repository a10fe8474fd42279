"""HippoRAG2: its graph against the authors' numbers, what it sends and keeps, and what becomes of useless replies."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import AIMessage

from arag.errors import InputError
from arag.evaluation import event_loop, patience
from arag.evaluation.budget import Budget
from arag.evaluation.datasets import Question
from arag.evaluation.methods import Options, method
from arag.evaluation.methods.baselines import facts as graph_of_facts
from arag.evaluation.methods.baselines.facts import (
    Synonyms,
    collect,
    find_synonyms,
    make_edges,
    normal_form,
    read_entities,
    read_items,
    read_triples,
    weigh_entities,
)
from arag.evaluation.methods.baselines.outcome import MethodOutput
from arag.evaluation.methods.baselines.pagerank import pagerank
from arag.evaluation.methods.baselines.passages import Passages, minmax
from arag.evaluation.methods.hipporag2 import HippoSettings, load_graph
from arag.evaluation.preparation import prepare
from arag.evaluation.records import RecordFile
from arag.evaluation.runs import Runner
from arag.evaluation.store import Store, open_store
from arag.evaluation.workplace import Replies, Workplace
from arag.models.chat import load_model
from arag.models.extractive import ExtractiveModel, read_forced_question
from arag.retrieval.index import open_index
from arag.retrieval.scope import Scope
from arag.testing import ScriptedModel
from fakes import HashEmbeddings, hash_vector
from forked import processes
from openai_server import Failure, chat, serve
from scripted_model import QUESTION, asked, in_thread

pytest_plugins = ["graph_fixtures"]

CASES = json.loads((Path(__file__).parent / "parity" / "hippo_rag2.json").read_text(encoding="utf-8"))["cases"]


def unit(vectors):
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# --- the formulas ---


@pytest.mark.parametrize("case", CASES)
def test_edges_and_scores_are_those_of_the_authors_code(case):
    vectors = case["vectors"]
    facts = collect([read_triples(json.dumps({"triples": triples})) for triples in case["triples"]])
    assert {*vectors["entities"]} == {*facts.entities}
    assert {*vectors["facts"]} == {str(triple) for triple in facts.triples}
    synonyms = find_synonyms(facts.entities, np.float32([vectors["entities"][e] for e in facts.entities]), 0.8)
    edges = make_edges(facts, synonyms)

    names = [*facts.entities, *case["passages"]]
    weights = {}
    for source, target, weight in zip(*edges, strict=True):
        pair = tuple(sorted((names[source], names[target])))
        weights[pair] = weights.get(pair, 0) + weight
    expected = {(one, other): weight for one, other, weight in case["expected"]["edges"]}
    assert weights == pytest.approx(expected, abs=1e-6)

    question = np.float32(vectors["question"])
    scores = minmax(np.float32([vectors["facts"][str(triple)] for triple in facts.triples]) @ question)
    kept = [(facts.triples[n], float(scores[n])) for n in np.argsort(-scores)[:3]]
    chunks = {e: sum(n in entities for entities in facts.chunk_entities) for n, e in enumerate(facts.entities)}
    starts = weigh_entities(kept, chunks, 5)
    dense = 0.05 * minmax(np.float32(vectors["passages"]) @ question)
    ranks = pagerank(*edges, reset=[*(starts.get(entity, 0) for entity in facts.entities), *dense])
    assert ranks[len(facts.entities) :] == pytest.approx(case["expected"]["passage_scores"], abs=1e-6)


def test_with_the_papers_weights_facts_count_once_and_cosines_are_added():
    facts = collect([[("aa", "x", "bb"), ("bb", "y", "aa"), ("aa", "x", "aa")], [("aa", "x", "bb"), ("cc", "z", "aa")]])
    synonyms = Synonyms(np.array([0, 1, 1]), np.array([1, 0, 2]), np.float32([0.5, 0.5, 0.75]))
    edges = {(a, b): weight for a, b, weight in zip(*make_edges(facts, synonyms, "paper"), strict=True)}
    assert edges == {(0, 1): 3.5, (0, 2): 1, (1, 2): 0.75, (3, 0): 1, (3, 1): 1, (4, 0): 1, (4, 1): 1, (4, 2): 1}
    # The reference: in each direction 3, or the cosine in its place.
    sums = {}
    for a, b, weight in zip(*make_edges(facts, synonyms, "reference"), strict=True):
        sums[min(a, b), max(a, b)] = sums.get((min(a, b), max(a, b)), 0) + weight
    assert sums == {(0, 1): 1, (0, 2): 2, (1, 2): 0.75, (0, 3): 1, (1, 3): 1, (0, 4): 1, (1, 4): 1, (2, 4): 1}


def test_a_synonym_in_one_direction_keeps_the_facts_of_the_other():
    facts = collect([[("us", "is", "usa")]])
    synonyms = find_synonyms(facts.entities, unit([[1, 0], [1, 0.1]]), 0.8)
    assert list(zip(synonyms.sources.tolist(), synonyms.targets.tolist(), strict=True)) == [(1, 0)]  # "us" has none
    assert sum(make_edges(facts, synonyms).weights[:2]) == pytest.approx(1 + synonyms.cosines[0])


@pytest.mark.parametrize("block", [200, 1_400, 10**9])
def test_synonyms_in_blocks_are_those_of_a_plain_search(block, monkeypatch):
    monkeypatch.setattr(graph_of_facts, "_BLOCK", block)
    random = np.random.default_rng(0)
    vectors = unit(np.vstack([random.normal(size=(60, 4)), random.normal(size=(140, 4)) * 0.02 + [1, 0, 0, 0]]))
    entities = [f"e{n}" for n in range(200)]  # the first ten are too short
    cosines = (vectors @ vectors.T).tolist()
    expected = []
    for n in range(10, 200):
        near = [(-cosine, m) for m, cosine in enumerate(cosines[n]) if m != n and cosine >= 0.8]
        expected += [(n, m) for _, m in sorted(near)[:101]]
    found = find_synonyms(entities, vectors, 0.8)
    sources, targets = found.sources.tolist(), found.targets.tolist()
    assert sources == [n for n, _ in expected]
    assert max(sources.count(n) for n in set(sources)) == 101
    # Products of other shapes round otherwise: what is on the edge of the 101 nearest may differ.
    assert len({*zip(sources, targets, strict=True)} & {*expected}) > 0.999 * len(expected)
    assert found.cosines == pytest.approx([cosines[n][m] for n, m in zip(sources, targets, strict=True)], abs=1e-6)


def test_names_of_two_chinese_characters_have_synonyms():
    found = find_synonyms(["敦煌", "燉煌", "唐", "us"], unit([[1, 0], [1, 0], [0, 1], [0, 1]]), 0.8)
    assert list(zip(found.sources.tolist(), found.targets.tolist(), strict=True)) == [(0, 1), (1, 0)]


def test_without_entities_there_are_no_synonyms_and_no_edges():
    facts = collect([[], []])
    synonyms = find_synonyms(facts.entities, np.zeros((0, 4), np.float32), 0.8)
    assert [len(part) for part in (*synonyms, *make_edges(facts, synonyms))] == [0] * 6


def test_an_entity_weighs_the_mean_of_its_facts_over_its_chunks():
    kept = [(("a", "r", "b"), 1.0), (("c", "r", "a"), 0.2), (("d", "r", "d"), 0.0)]
    weights = weigh_entities(kept, {"a": 2, "b": 4, "c": 1, "d": 1}, most=3)
    assert weights == pytest.approx({"a": 0.3, "b": 0.25, "c": 0.2})
    assert list(weights) == ["a", "b", "c"]


# --- what replies say ---


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("St. Lanth", "st  lanth"),
        (" Skell-Ro (Isle) ", "skell ro  isle"),
        ("1,815", "1 815"),
        ("Zürich", "z rich"),
        ("Hawaiʻi", "hawai i"),
        ("Huế", "hu"),
        ("第17窟", "第17窟"),
        ("17号井", "17号井"),
        ("Ту-154", "ту-154"),
        (" 敦煌\n莫高窟", "敦煌 莫高窟"),
        ("Άρτα", "άρτα"),
        ("१९४७", "१९४७"),
        ("— …", ""),
        ("", ""),
    ],
)
def test_the_form_in_which_entities_are_compared(text, form):
    assert normal_form(text) == form


def test_a_reply_that_was_cut_off_keeps_its_complete_triples():
    triples = [["Ada", "wrote [1]", 'the "Notes"'], ["她", "生于", "1815年"], ["Ada", "met", "Babbage, C."]]
    reply = "Here it is:\n```json\n" + json.dumps({"triples": triples}, indent=1, ensure_ascii=False) + "\n```"
    read = [read_items(reply[:end], "triples") for end in range(len(reply) + 1)]
    start = reply.index("[")
    assert all(items is None for items in read[: start + 1])
    assert all(items == triples[: len(items)] for items in read[start + 1 :])
    ends = [reply.index("]", reply.index(part)) + 1 for part in ("Notes", "1815", "Babbage")]
    assert all(len(items) == sum(at >= end for end in ends) for at, items in enumerate(read) if items is not None)


def test_the_last_list_of_a_reply_counts():
    reply = 'I reply with {"entities": ["..."]}, so: {"entities": ["Ada", " Ada ", 3, null, "", "Babbage"]}'
    assert read_entities(reply) == ["Ada", "Babbage"]


@pytest.mark.parametrize("reply", ["", "I cannot do that.", '{"entities": "Ada"}', "[" * 100_000, '{"facts": ["Ada"]}'])
def test_a_reply_without_the_list(reply):
    assert read_entities(reply) is None
    assert read_triples(reply) is None


def test_triples_that_are_none_are_left_out():
    given = [["A", "r", "B"], ["A", "r"], ["A", "r", "B", "C"], "A r B", None, {"s": 1}, ["A", "r", "B"]]
    given += [["?", "r", "B"], ["a", "r", "b."], [1815, "r", "B"], ["A", "r", None], [["A"], "r", "B"]]
    found = read_triples(json.dumps({"triples": given}))
    # Triples that differ only before they are put in normal form are two occurrences of one fact.
    assert found == [("a", "r", "b"), ("a", "r", "b"), ("1815", "r", "b")]
    facts = collect([found])
    assert facts.triples == [("a", "r", "b"), ("1815", "r", "b")]
    assert facts.links == {(0, 1): 2, (1, 2): 1}


def test_half_a_character_is_replaced():
    reply = r'{"entities": ["\ud83d Ada", "\u5317\ud800"]}'
    assert read_entities(reply) == ["? Ada", "北?"]
    reply = r'{"triples": [["\ud83d Ada", "r", "\u5317\ud800"]]}'
    assert read_triples(reply) == [("ada", "r", "北?")]


def test_lists_nested_too_deep_end_a_reply():
    assert read_items('{"triples": [["A", "r", "B"], ' + "[" * 100_000, "triples") == [["A", "r", "B"]]


# --- a model that reads the small corpus ---

SAID = {
    "Lothair II was": [["Lothair II", "was a king of", "Lotharingia"], ["Lothair II", "married", "Teutberga"]],
    "Teutberga was": [["Teutberga", "was a daughter of", "Boso the Elder"], ["Teutberga", "died in", "875"]],
    "Boso the Elder was": [["Boso the Elder", "was a count of", "Arles"]],
}
ANSWER = "Teutberga is a daughter of Boso the Elder [teutberga:0].\nAnswer: Boso the Elder"


def reply_to(messages, said, keep="[1]"):
    """Return what a good model replies to one of the four prompts, by what a passage begins with."""
    system, wanted = messages[0], messages[-1]
    triples = next((triples for begin, triples in said.items() if begin in wanted), [])
    if system.startswith("List the entities"):
        return json.dumps({"entities": sorted({end for one, _, other in triples for end in (one, other)})})
    if system.startswith("Write down the facts"):
        return json.dumps({"triples": triples})
    if system.startswith("Choose the facts"):
        return f'{{"keep": {keep}}}'
    assert system.startswith("You answer a question")
    return ANSWER


class Expert(ScriptedModel):
    """Replies as `reply_to` does, if it has no script. What it says is kept for models of the same name."""

    model_name: str = "expert"
    said: dict = SAID
    keep: str = "[1]"

    def _reply(self, messages, options):
        if self.script:
            return super()._reply(messages, options)
        text = reply_to([m.text for m in messages], self.said, self.keep)
        usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
        return AIMessage(text, usage_metadata=usage, response_metadata={"model_name": "gpt-5-mini"})


def systems(calls):
    return Counter(made.messages[0].text.split(" ", 2)[0] for made in calls)


def do(index, model, store=None, **given):
    """Do the index-time work; return what it took."""
    place = Workplace(index, model, given.pop("options", Options()), store or open_store(index), **given)
    return event_loop.run(prepare(method("hipporag2"), place))


def graph(index, model, **settings):
    top_k = settings.pop("top_k", 2)
    options = Options(top_k=top_k, settings={"hipporag2": settings})
    return method("hipporag2").make(index, model, options)


@pytest.fixture(scope="module", name="index")
def _index(small_index):
    do(small_index, Expert())
    return small_index


def lines(state):
    return {stage["title"]: stage["lines"] for stage in state["stages"]}


# --- the work before the first question ---


def test_each_chunk_takes_two_calls_and_only_once(index, tmp_path):
    model, store, said = Expert(), Store(tmp_path), []
    chunks = len(list(index.chunk_ids()))
    took = do(index, model, store, on_announced=said.append)
    assert systems(model.calls) == {"List": chunks, "Write": chunks}
    assert [made.messages[0].text[:5] for made in model.calls] == ["List "] * chunks + ["Write"] * chunks
    assert (took["usage"]["model_calls"], took["usage"]["input_tokens"]) == (2 * chunks, 20 * chunks)
    assert took["reused"]["model_calls"] == 0
    assert f"about {2 * chunks} model calls" in said[0]
    last = next(m for m in model.calls if m.messages[0].text.startswith("Write") and "Boso the Elder was" in str(m))
    assert '["Arles", "Boso the Elder"]' in last.messages[-1].text

    again = Expert()
    took = do(index, again, store, on_announced=said.append)
    assert (again.calls, len(said)) == ([], 1)
    assert (took["usage"]["model_calls"], took["reused"]["model_calls"]) == (0, 2 * chunks)


def test_the_index_is_read_before_questions(small_index):
    model = Expert(model_name="reads nothing")
    with pytest.raises(InputError, match="hipporag2 has not read the whole index yet"):
        graph(small_index, model).invoke(asked())
    assert model.calls == []


def test_the_built_in_model_cannot_find_facts(small_index):
    with pytest.raises(InputError, match="extractive model cannot"):
        do(small_index, ExtractiveModel())
    with pytest.raises(InputError, match="extractive model cannot"):
        graph(small_index, ExtractiveModel())


def test_a_small_budget_stops_the_work_before_the_first_call(index, tmp_path):
    with serve([]) as server:
        with pytest.raises(InputError, match=r"takes about \d+ model calls"):
            do(index, load(server), Store(tmp_path), budget=Budget(1e-9))
        assert server.requests == []


def load(server):
    return load_model(f"openai:gpt-5-mini@{server.url}", max_retries=0)


@pytest.fixture
def _quick(monkeypatch):
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(patience, "_MAX_PAUSE", 0.05)


def replies(instead=None):
    def respond(number, request):
        if number in (instead or {}):
            return instead[number]
        return chat(reply_to([message["content"] for message in request["messages"]], SAID))

    return respond


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("number", [0, 9])
def test_a_rate_limit_and_an_error_in_the_work(index, tmp_path, number):
    calls = 2 * len(list(index.chunk_ids()))
    with serve(replies({number: Failure(429)})) as server:
        took = do(index, load(server), Store(tmp_path / "limited"))
        assert len(server.requests) == calls + 1
        assert took["usage"]["model_calls"] == calls
    with serve(replies({number: Failure(500)})) as server:
        with pytest.raises(Exception, match="500"):
            do(index, load(server), Store(tmp_path / "failed"), concurrency=1)
        took = do(index, load(server), Store(tmp_path / "failed"))
        assert len(server.requests) == calls + 1
        assert took["usage"]["model_calls"] + took["reused"]["model_calls"] == calls


def work(url, index, folder):
    with open_index(index, embedder=HashEmbeddings()) as opened:
        do(opened, load_model(f"openai:gpt-5-mini@{url}", max_retries=0), Store(folder), concurrency=2)


def test_work_that_is_killed_goes_on_where_it_was(index, tmp_path):
    calls = 2 * len(list(index.chunk_ids()))
    begun = threading.Event()

    def respond(number, request):
        if number == calls // 2 + 1:
            begun.set()
        if begun.is_set() and not killed.is_set():
            killed.wait(60)
        return replies()(number, request)

    killed = threading.Event()
    with serve(respond) as server:
        process = processes.Process(target=work, args=(server.url, index.path, tmp_path))
        process.start()
        assert begun.wait(60)
        process.kill()
        process.join()
        killed.set()
        assert process.exitcode == -signal.SIGKILL
        before = len(server.requests)
        took = do(index, load(server), Store(tmp_path))
        assert calls <= len(server.requests) <= calls + 2
        assert took["usage"]["model_calls"] == len(server.requests) - before
        assert took["usage"]["model_calls"] + took["reused"]["model_calls"] == calls


def test_replies_that_are_cut_off_or_useless(index, tmp_path, monkeypatch):
    monkeypatch.setattr("arag.evaluation.methods.hipporag2.open_store", lambda _: Store(tmp_path))

    def respond(number, request):
        system, wanted = request["messages"][0]["content"], request["messages"][-1]["content"]
        if system.startswith("Write") and "Lothair II was" in wanted:
            whole = reply_to([system, wanted], SAID)
            return chat(whole[: whole.index("married")], finish_reason="length")
        if system.startswith("Write") and "Teutberga was" in wanted:
            return chat("I would rather not.")
        return replies()(number, request)

    with serve(respond) as server:
        do(index, load(server), Store(tmp_path))
        state = graph(index, load(server)).invoke(asked())
    calls = 2 * len(list(index.chunk_ids()))
    assert lines(state)["Graph"][0].startswith("2 facts about 4 entities")
    assert lines(state)["Graph"][2] == f"extraction: 1 of {calls} replies unusable, 1 cut off"


# --- a question ---


def test_what_a_question_takes(index):
    model = Expert(keep="[1, 9, 1]")
    state = graph(index, model).invoke(asked())
    assert set(state) == set(MethodOutput.__annotations__)
    assert [made.messages[0].text.split(" ", 1)[0] for made in model.calls] == ["Choose", "You"]
    assert (state["answer"], state["stop_reason"], state["steps"]) == ("Boso the Elder", "answered", 2)
    assert [made["step"] for made in state["model_calls"]] == [1, 2]
    assert state["usage"]["input_tokens"] == 20
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0"]
    assert state["citations"][0]["read"]

    numbered = model.calls[0].messages[1].text.splitlines()
    facts = [line.partition(". ")[2] for line in numbered if line[:1].isdigit()]
    assert len(facts) == 5
    assert lines(state)["Nearest facts"][0] == f"{facts[0]} (1.000)"
    assert lines(state)["Facts kept"] == [f"{facts[0]} (1.000)", "1 of 2 numbers are not of the list"]
    subject, _, target = facts[0].split(" | ")
    assert {line.partition(":")[0] for line in lines(state)["Entities where PageRank starts"]} == {subject, target}

    (record,) = state["trace"]
    assert (record["tool"], record["arguments"]["kept"]) == ("retrieve", 1)
    assert record["chunk_ids"] == record["new_chunks"] == state["read_chunks"]
    assert record["retrieved_tokens"] == sum(index.get(chunk_id).tokens for chunk_id in record["chunk_ids"])
    question, found = read_forced_question(model.calls[1].messages[1].text)
    assert question == QUESTION
    assert found == "\n\n".join(f"[{chunk_id}]\n{index.get(chunk_id).text}" for chunk_id in record["chunk_ids"])
    assert [line.partition("]")[0] for line in lines(state)["Chunks"]] == [f"[{i}" for i in record["chunk_ids"]]


def test_a_question_is_embedded_once(index, monkeypatch):
    embedded = []
    monkeypatch.setattr(
        HashEmbeddings, "embed_query", lambda _, text: embedded.append(text) or hash_vector(text).tolist()
    )
    graph(index, Expert()).invoke(asked())
    assert embedded == [QUESTION]
    with pytest.raises(InputError, match="the question is blank"):
        graph(index, Expert()).invoke(asked(" "))


def test_the_ranking_is_that_of_pagerank_from_the_kept_facts(index):
    settings = HippoSettings(edge_weights="paper", damping=0.7, passage_weight=0.5, entities=1)
    given = settings.model_dump(exclude_unset=True)
    state = graph(index, Expert(keep="[2, 1]"), top_k=100, **given).invoke(asked())
    made = load_graph(index, Replies(open_store(index), Expert()), settings)
    (start,) = lines(state)["Entities where PageRank starts"]
    reset = [float(start.startswith(f"{entity}: ")) * float(start.split()[-1]) for entity in made.facts.entities]
    reset += [*0.5 * minmax(made.passages.scores(QUESTION))]
    ranks = pagerank(*made.edges, reset, 0.7)[len(made.facts.entities) :]
    best = [made.passages.ids[n] for n in np.argsort(-ranks, kind="stable")]
    assert state["read_chunks"] == best
    assert sorted(best) == sorted(index.chunk_ids())


def no_times(state):
    return {
        **state,
        "messages": [(message.type, message.text) for message in state["messages"]],
        "trace": [{**record, "seconds": 0} for record in state["trace"]],
        "model_calls": [{**made, "seconds": 0} for made in state["model_calls"]],
    }


def test_async_runs_and_later_questions_give_the_same(index):
    one = graph(index, Expert())
    state = no_times(one.invoke(asked()))
    assert no_times(one.invoke(asked())) == state
    assert no_times(asyncio.run(graph(index, Expert()).ainvoke(asked()))) == state


def test_two_questions_at_once_and_in_one_thread(index, checkpointer):
    one = graph(index, Expert())
    others = "Which bridges did storms break?"
    expected = [no_times(one.invoke(asked(question)))["trace"] for question in (QUESTION, others)]

    async def both():
        made = graph(index, Expert())
        return await asyncio.gather(made.ainvoke(asked()), made.ainvoke(asked(others)))

    assert [no_times(state)["trace"] for state in asyncio.run(both())] == expected
    # In one thread, and with a checkpointer that keeps JSON, nothing of the first question is left in the second.
    one.checkpointer = checkpointer
    one.invoke(asked(), in_thread())
    later = one.invoke(asked(others), in_thread())
    assert no_times(later)["trace"] == expected[1]
    assert (later["steps"], len(later["stages"])) == (2, 5)
    assert json.loads(json.dumps(later["stages"])) == later["stages"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (["I cannot."] * 3, "the filter gave no usable kept: I cannot."),
        ([""] * 3, "the filter gave no usable kept: an empty reply"),
        (['{"keep": []}'], "none"),
        (['{"keep": [0, 17]}'], "2 of 2 numbers are not of the list"),
    ],
)
def test_without_a_kept_fact_chunks_are_ranked_by_similarity(index, script, told):
    model = Expert(*map(AIMessage, script), AIMessage(ANSWER))
    state = graph(index, model).invoke(asked())
    model.assert_used_up()
    assert told in lines(state)["Facts kept"]
    assert lines(state)["Entities where PageRank starts"] == ["none: the chunks are ranked by similarity alone"]
    assert state["read_chunks"] == Passages(index, open_store(index)).top(QUESTION, 2)
    assert (state["answer"], state["steps"]) == ("Boso the Elder", len(script) + 1)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("number", [0, 1])
def test_a_rate_limit_and_an_error_in_a_question(index, tmp_path, number):
    def answer(server, name):
        file = RecordFile(tmp_path / name)
        Runner(method("hipporag2"), index, load(server)).run([Question("q", QUESTION, "Boso the Elder")], file)
        return file.read()["q"]

    with serve(replies()) as server:
        do(index, load(server))
    with serve(replies({number: Failure(429)})) as server:
        record = answer(server, "limited.jsonl")
        assert (len(server.requests), record["error"], record["prediction"]) == (3, None, "Boso the Elder")
    with serve(replies({number: Failure(500)})) as server:
        assert "500" in answer(server, "failed.jsonl")["error"]
        assert answer(server, "failed.jsonl")["error"] is None
        assert len(server.requests) == number + 3


def test_the_reply_of_the_reader_may_be_empty(index):
    model = Expert(AIMessage('{"keep": [1]}'), *[AIMessage("")] * 3)
    state = graph(index, model).invoke(asked())
    assert (state["answer"], state["citations"], state["steps"]) == ("", [], 4)


def test_without_facts_there_is_no_filter_call(index):
    nothing = Expert(model_name="sees nothing", said={})
    do(index, nothing)
    nothing.calls.clear()
    state = graph(index, nothing).invoke(asked())
    assert len(nothing.calls) == state["steps"] == 1
    assert state["read_chunks"] == Passages(index, open_store(index)).top(QUESTION, 2)
    assert lines(state)["Graph"][0].startswith("0 facts about 0 entities")


def test_a_scope_has_its_own_graph(index):
    state = graph(index.limited_to(Scope(documents=["boso", "teutberga"])), Expert(), top_k=5).invoke(asked())
    assert {*state["read_chunks"]} == {"boso:0", "teutberga:0"}
    assert lines(state)["Graph"][0] == "3 facts about 4 entities in 2 chunks"


def test_a_corpus_of_one_chunk(make_index):
    index = make_index([{"id": "only", "text": "Teutberga was a daughter of Boso the Elder. She died in 875."}])
    do(index, Expert())
    state = graph(index, Expert()).invoke(asked())
    assert state["read_chunks"] == ["only:0"]
    assert lines(state)["Graph"][0] == "2 facts about 3 entities in 1 chunks"


def test_a_chinese_corpus(make_index):
    documents = [
        {"id": "qiao", "text": "赵州桥由李春建造。它在河北省。"},
        {"id": "lichun", "text": "李春是隋朝的工匠。"},
        {"id": "other", "text": "今天的天气很好。"},
    ]
    said = {
        "赵州桥由": [["赵州桥", "由…建造", "李春"], ["赵州桥", "位于", "河北省"]],
        "李春是": [["李春", "生活于", "隋朝"]],
    }
    index = make_index(documents)
    model = Expert(model_name="zh", said=said, keep="[1, 2, 3]")
    do(index, model)
    triples = next(made for made in model.calls if made.messages[0].text.startswith("Write") and "它在" in str(made))
    assert '["李春", "河北省", "赵州桥"]' in triples.messages[-1].text
    model.calls.clear()
    state = graph(index, model).invoke(asked("赵州桥的建造者生活在哪个朝代？"))
    assert {*state["read_chunks"]} == {"qiao:0", "lichun:0"}
    assert len(lines(state)["Facts kept"]) == 3
    assert lines(state)["Graph"][0] == "3 facts about 4 entities in 3 chunks"


@pytest.mark.parametrize("settings", [{"facts": 2, "entities": 1}, {"edge_weights": "paper"}, {"passages": "sentence"}])
def test_settings(index, settings):
    state = graph(index, Expert(), **settings).invoke(asked())
    assert len(lines(state)["Nearest facts"]) == settings.get("facts", 5)
    assert len(lines(state)["Entities where PageRank starts"]) == settings.get("entities", 2)
    assert len(state["read_chunks"]) == 2


def test_settings_that_do_not_exist_or_are_out_of_range(index):
    with pytest.raises(InputError, match="hipporag2 has no setting 'rounds'; valid settings: facts, entities"):
        graph(index, Expert(), rounds=2)
    with pytest.raises(InputError, match=r"hipporag2\.damping is 1"):
        graph(index, Expert(), damping=1)
    with pytest.raises(InputError, match="top_k is 0"):
        graph(index, Expert(), top_k=0)
