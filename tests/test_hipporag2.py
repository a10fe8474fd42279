"""HippoRAG2: its graph against the authors' numbers, what it sends and keeps, and what becomes of useless replies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import AIMessage

from arag.evaluation.method import Session
from arag.evaluation.methods.hipporag2 import (
    HippoRAG2,
    collect,
    find_synonyms,
    make_edges,
    normal_form,
    read_entities,
    read_items,
    read_triples,
    weigh_entities,
)
from arag.evaluation.methods.shared import minmax, pagerank
from arag.models.extractive import read_forced_question
from arag.retrieval.scope import Scope
from fakes import hash_vector
from lab import ask, assert_replays, make_lab
from role_model import lines
from scripted_model import QUESTION

pytest_plugins = ["graph_fixtures"]

CASES = json.loads((Path(__file__).parent / "parity" / "hippo_rag2.json").read_text(encoding="utf-8"))["cases"]


def unit(vectors):
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def find_all(entities, vectors):
    return find_synonyms(range(len(entities)), entities, vectors, 0.8)


# --- the formulas ---


@pytest.mark.parametrize("case", CASES)
def test_edges_and_scores_are_those_of_the_authors_code(case):
    vectors = case["vectors"]
    facts = collect([read_triples(json.dumps({"triples": triples})) for triples in case["triples"]])
    assert {*vectors["entities"]} == {*facts.entities}
    assert {*vectors["facts"]} == {str(triple) for triple in facts.triples}
    synonyms = find_all(facts.entities, np.float32([vectors["entities"][e] for e in facts.entities]))
    edges = make_edges(facts, synonyms)

    names = [*facts.entities, *case["passages"]]
    weights = {}
    for source, target, weight in edges:
        pair = tuple(sorted((names[int(source)], names[int(target)])))
        weights[pair] = weights.get(pair, 0) + weight
    expected = {(one, other): weight for one, other, weight in case["expected"]["edges"]}
    assert weights == pytest.approx(expected, abs=1e-6)

    question = np.float32(vectors["question"])
    scores = minmax(np.float32([vectors["facts"][str(triple)] for triple in facts.triples]) @ question)
    kept = [(facts.triples[n], float(scores[n])) for n in np.argsort(-scores)[:3]]
    starts = weigh_entities(kept, facts.chunk_counts, 5)
    dense = 0.05 * minmax(np.float32(vectors["passages"]) @ question)
    ranks = pagerank(edges, reset=[*(starts.get(entity, 0) for entity in facts.entities), *dense])
    assert ranks[len(facts.entities) :] == pytest.approx(case["expected"]["passage_scores"], abs=1e-6)


def test_with_the_papers_weights_facts_count_once_and_cosines_are_added():
    facts = collect([[("aa", "x", "bb"), ("bb", "y", "aa"), ("aa", "x", "aa")], [("aa", "x", "bb"), ("cc", "z", "aa")]])
    synonyms = [[(1, 0.5)], [(0, 0.5), (2, 0.75)], []]
    edges = {(int(a), int(b)): weight for a, b, weight in make_edges(facts, synonyms, "paper")}
    assert edges == {(0, 1): 3.5, (0, 2): 1, (1, 2): 0.75, (3, 0): 1, (3, 1): 1, (4, 0): 1, (4, 1): 1, (4, 2): 1}
    # The reference: in each direction 3, or the cosine in its place.
    sums = {}
    for a, b, weight in make_edges(facts, synonyms, "reference").tolist():
        sums[min(a, b), max(a, b)] = sums.get((min(a, b), max(a, b)), 0) + weight
    assert sums == {(0, 1): 1, (0, 2): 2, (1, 2): 0.75, (0, 3): 1, (1, 3): 1, (0, 4): 1, (1, 4): 1, (2, 4): 1}


def test_a_synonym_in_one_direction_keeps_the_facts_of_the_other():
    facts = collect([[("us", "is", "usa")]])
    synonyms = find_all(facts.entities, unit([[1, 0], [1, 0.1]]))
    assert [[other for other, _ in near] for near in synonyms] == [[], [0]]  # "us" is too short to have one
    assert sum(make_edges(facts, synonyms)[:2, 2]) == pytest.approx(1 + synonyms[1][0][1])
    synonyms = find_all(["敦煌", "燉煌", "唐", "us"], unit([[1, 0], [1, 0], [0, 1], [0, 1]]))
    assert [[other for other, _ in near] for near in synonyms] == [[1], [0], [], []]  # a character is two letters


def test_an_entity_has_at_most_its_101_nearest_synonyms():
    random = np.random.default_rng(0)
    vectors = unit(np.vstack([random.normal(size=(60, 4)), random.normal(size=(140, 4)) * 0.02 + [1, 0, 0, 0]]))
    entities = [f"e{n}" for n in range(200)]  # the first ten are too short
    cosines = (vectors @ vectors.T).tolist()
    synonyms = find_all(entities, vectors)
    assert synonyms[:10] == [[]] * 10
    for n in range(10, 200):
        near = sorted((-cosine, m) for m, cosine in enumerate(cosines[n]) if m != n and cosine >= 0.8)[:101]
        assert synonyms[n] == [(m, pytest.approx(-cosine)) for cosine, m in near]
    assert max(map(len, synonyms)) == 101


def test_an_entity_weighs_the_mean_of_its_facts_over_its_chunks():
    kept = [(("a", "r", "b"), 1.0), (("c", "r", "a"), 0.2), (("d", "r", "d"), 0.0)]
    weights = weigh_entities(kept, {"a": 2, "b": 4, "c": 1, "d": 1}, most=3)
    assert weights == pytest.approx({"a": 0.3, "b": 0.25, "c": 0.2})
    assert list(weights) == ["a", "b", "c"]


# --- what replies say ---


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (" Skell-Ro (Isle) ", "skell ro  isle"),
        ("1,815", "1 815"),
        ("Zürich", "z rich"),
        ("Huế", "hu"),
        ("17号井", "17号井"),
        ("Ту-154", "ту-154"),
        (" 敦煌\n莫高窟", "敦煌 莫高窟"),
        ("१९४७", "१९४७"),
        ("— …", ""),
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


@pytest.mark.parametrize("reply", ["I cannot do that.", '{"entities": "Ada"}', "[" * 100_000])
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
    assert read_entities(r'{"entities": ["\ud83d Ada", "\u5317\ud800"]}') == ["\ufffd Ada", "北\ufffd"]
    assert read_triples(r'{"triples": [["\ud83d Ada", "r", "\u5317\ud800"]]}') == [("ada", "r", "北\ufffd")]


# --- a model that reads the small corpus ---

SAID = {
    "Lothair II was": [["Lothair II", "was a king of", "Lotharingia"], ["Lothair II", "married", "Teutberga"]],
    "Teutberga was": [["Teutberga", "was a daughter of", "Boso the Elder"], ["Teutberga", "died in", "875"]],
    "Boso the Elder was": [["Boso the Elder", "was a count of", "Arles"]],
}
ANSWER = "Teutberga is a daughter of Boso the Elder [teutberga:0].\nAnswer: Boso the Elder"


def expert(said=SAID, keep=(1,), reader=ANSWER, filter_reply=None):
    """Return a function that plays a good model; what it says of a passage depends on the passage's beginning."""

    def play(messages):
        system, wanted = messages[0].text, messages[-1].text
        triples = next((triples for begin, triples in said.items() if begin in wanted), [])
        if system.startswith("List the entities"):
            return {"entities": sorted({end for one, _, other in triples for end in (one, other)})}
        if system.startswith("Write down the facts"):
            return {"triples": triples}
        if system.startswith("Choose the facts"):
            return {"keep": keep} if filter_reply is None else filter_reply
        return reader

    return play


@pytest.fixture(name="lab")
def _lab(small_index, tmp_path):
    return make_lab(small_index, expert(), tmp_path, top_k=2)


def nearest(index, k):
    """Return the ids of the chunks that are nearest to the question."""
    chunk_ids = list(index.chunk_ids())
    cosines = [hash_vector(index.get(chunk_id).text) @ hash_vector(QUESTION) for chunk_id in chunk_ids]
    return [chunk_ids[n] for n in np.argsort(-np.array(cosines), kind="stable")[:k]]


# --- the work before the first question ---


def test_each_chunk_takes_two_calls_and_only_once(lab, monkeypatch):
    chunks = len(lab.chunks)
    session = Session(lab)
    HippoRAG2().prepare(session)
    assert len(session.calls) == 2 * chunks
    assert [messages[0].text[:5] for messages in lab.model.calls] == ["List "] * chunks + ["Write"] * chunks
    triples = next(messages for messages in lab.model.calls[chunks:] if "Boso the Elder was" in messages[-1].text)
    assert '["Arles", "Boso the Elder"]' in triples[-1].text

    monkeypatch.delattr("arag.evaluation.methods.hipporag2.find_synonyms")  # synonyms are searched for once, too
    again = Session(lab)
    HippoRAG2().prepare(again)
    assert len(lab.model.calls) == 2 * chunks
    assert len(again.calls) == 2 * chunks  # of which the index consists
    with pytest.raises(NameError):
        HippoRAG2(similarity=0.7).prepare(Session(lab))


def test_replies_that_are_cut_off_or_useless_are_counted(small_index, tmp_path):
    def play(messages):
        reply, wanted = expert()(messages), messages[-1].text
        if "triples" in reply and "Lothair II was" in wanted:
            text = json.dumps(reply)
            return AIMessage(text[: text.index("married")], response_metadata={"finish_reason": "length"})
        return "I would rather not." if "triples" in reply and "Teutberga was" in wanted else reply

    _, session = ask(HippoRAG2(), make_lab(small_index, play, tmp_path), QUESTION)
    calls = 2 * len(list(small_index.chunk_ids()))
    assert lines(session, "Graph")[0].startswith("2 facts about 4 entities")
    assert lines(session, "Graph")[2] == f"extraction: 1 of {calls} replies unusable, 1 cut off"


# --- a question ---


def test_what_a_question_takes(small_index, tmp_path):
    lab = make_lab(small_index, expert(keep=[1, 9, 1]), tmp_path, top_k=2)
    answer, session = ask(HippoRAG2(), lab, QUESTION)
    filter_call, reader_call = lab.model.calls[-2:]
    assert len(session.calls) == 2
    assert (answer.text, answer.cited, answer.stop_reason) == ("Boso the Elder", ["teutberga:0"], "answered")

    facts = [line.partition(". ")[2] for line in filter_call[1].text.splitlines() if line[:1].isdigit()]
    assert len(facts) == 5
    assert lines(session, "Nearest facts")[0] == f"{facts[0]} (1.000)"
    assert lines(session, "Facts kept") == [f"{facts[0]} (1.000)", "1 of 2 numbers are not of the list"]
    subject, _, target = facts[0].split(" | ")
    assert {line.partition(":")[0] for line in lines(session, "Entities where")} == {subject, target}

    (record,) = session.trace
    assert (record["tool"], record["arguments"]["kept"]) == ("retrieve", 1)
    question, shown = read_forced_question(reader_call[1].text)
    assert question == QUESTION
    assert shown == "\n\n".join(f"[{chunk_id}]\n{small_index.get(chunk_id).text}" for chunk_id in record["chunk_ids"])


def test_a_question_that_was_answered_is_answered_again_without_a_call(lab):
    assert_replays(HippoRAG2(), lab, QUESTION)


def test_the_ranking_is_that_of_pagerank_from_the_kept_facts(small_index, tmp_path):
    lab = make_lab(small_index, expert(keep=[2, 1]), tmp_path, top_k=100)
    method = HippoRAG2(edge_weights="paper", damping=0.7, passage_weight=0.5, entities=1)
    graph = method.prepare(Session(lab))
    session = Session(lab)
    method.answer(QUESTION, session, graph)
    (start,) = lines(session, "Entities where")
    reset = [float(start.startswith(f"{entity}: ")) * float(start.split()[-1]) for entity in graph.facts.entities]
    reset += [*0.5 * minmax(graph.passages.scores(QUESTION))]
    ranks = pagerank(graph.edges, reset, 0.7)[len(graph.facts.entities) :]
    best = [lab.chunks[n].id for n in np.argsort(-ranks, kind="stable")]
    assert session.trace[0]["chunk_ids"] == best
    assert sorted(best) == sorted(small_index.chunk_ids())


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("I cannot.", "no usable reply"),
        ({"keep": []}, "none"),
        ({"keep": [0, 17]}, "2 of 2 numbers are not of the list"),
    ],
)
def test_without_a_kept_fact_chunks_are_ranked_by_similarity(small_index, tmp_path, reply, note):
    lab = make_lab(small_index, expert(filter_reply=reply), tmp_path, top_k=2)
    answer, session = ask(HippoRAG2(), lab, QUESTION)
    assert note in lines(session, "Facts kept")
    assert lines(session, "Entities where") == ["none: the chunks are ranked by similarity alone"]
    assert session.trace[0]["chunk_ids"] == nearest(small_index, 2)
    assert answer.text == "Boso the Elder"


def test_without_facts_there_is_no_filter_call(small_index, tmp_path):
    lab = make_lab(small_index, expert(said={}), tmp_path, top_k=2)
    _, session = ask(HippoRAG2(), lab, QUESTION)
    assert len(session.calls) == 1
    assert session.trace[0]["chunk_ids"] == nearest(small_index, 2)
    assert lines(session, "Graph")[0].startswith("0 facts about 0 entities")


def test_a_scope_has_its_own_graph(small_index, tmp_path):
    scoped = small_index.limited_to(Scope(documents=["boso", "teutberga"]))
    _, session = ask(HippoRAG2(), make_lab(scoped, expert(), tmp_path), QUESTION)
    assert {*session.trace[0]["chunk_ids"]} == {"boso:0", "teutberga:0"}
    assert lines(session, "Graph")[0] == "3 facts about 4 entities in 2 chunks"


def test_a_chinese_corpus(make_index, tmp_path):
    documents = [
        {"id": "qiao", "text": "赵州桥由李春建造。它在河北省。"},
        {"id": "lichun", "text": "李春是隋朝的工匠。"},
        {"id": "other", "text": "今天的天气很好。"},
    ]
    said = {
        "赵州桥由": [["赵州桥", "由…建造", "李春"], ["赵州桥", "位于", "河北省"]],
        "李春是": [["李春", "生活于", "隋朝"]],
    }
    lab = make_lab(make_index(documents), expert(said=said, keep=[1, 2, 3]), tmp_path / "calls", top_k=2)
    _, session = ask(HippoRAG2(), lab, "赵州桥的建造者生活在哪个朝代？")
    triples = next(m for m in lab.model.calls if m[0].text.startswith("Write") and "它在" in m[-1].text)
    assert '["李春", "河北省", "赵州桥"]' in triples[-1].text
    assert {*session.trace[0]["chunk_ids"]} == {"qiao:0", "lichun:0"}
    assert len(lines(session, "Facts kept")) == 3
    assert lines(session, "Graph")[0] == "3 facts about 4 entities in 3 chunks"


def test_settings(lab):
    _, session = ask(HippoRAG2(facts=2, entities=1, passages="sentence"), lab, QUESTION)
    assert (len(lines(session, "Nearest facts")), len(lines(session, "Entities where"))) == (2, 1)
    assert len(session.trace[0]["chunk_ids"]) == 2
