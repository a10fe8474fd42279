"""HippoRAG2: its graph against the authors' numbers, what it sends and keeps, and what becomes of useless replies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from arag.evaluation.method import Session
from arag.evaluation.methods.hipporag2 import (
    HippoRAG2,
    Triples,
    collect,
    find_synonyms,
    make_edges,
    normal_form,
    normal_forms,
    weigh_entities,
)
from arag.evaluation.methods.shared import minmax, pagerank
from arag.models.notes import read_forced_question
from fakes import hash_vector
from lab import ask, make_lab
from role_model import lines
from scripted import QUESTION

CASES = json.loads((Path(__file__).parent / "parity" / "hippo_rag2.json").read_text(encoding="utf-8"))["cases"]


def unit(vectors):
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def read(triples):
    return normal_forms(dict.fromkeys(Triples(triples=triples).triples))


# --- the formulas ---


@pytest.mark.parametrize("case", CASES)
def test_edges_and_scores_are_those_of_the_authors_code(case):
    vectors = case["vectors"]
    facts = collect([read(triples) for triples in case["triples"]])
    assert {*vectors["entities"]} == {*facts.entities}
    assert {*vectors["facts"]} == {str(triple) for triple in facts.triples}
    synonyms = find_synonyms(facts.entities, np.float32([vectors["entities"][e] for e in facts.entities]), 1.0)
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
    starts = weigh_entities(kept, facts.chunk_counts)
    dense = 0.05 * minmax(np.float32(vectors["passages"]) @ question)
    ranks = pagerank(edges, reset=[*(starts.get(entity, 0) for entity in facts.entities), *dense])
    assert ranks[len(facts.entities) :] == pytest.approx(case["expected"]["passage_scores"], abs=1e-6)


def test_a_synonym_takes_the_place_of_the_facts_in_its_direction():
    facts = collect([[("us", "is", "usa"), ("usa", "has", "us")]])
    synonyms = find_synonyms(facts.entities, unit([[1, 0], [1, 0.1]]), 1.0)
    assert [*synonyms] == [("usa", "us")]  # "us" is too short to have one
    assert make_edges(facts, synonyms)[:2].tolist() == [[0, 1, 2], [1, 0, pytest.approx(synonyms["usa", "us"])]]
    synonyms = find_synonyms(["敦煌", "燉煌", "唐", "us"], unit([[1, 0], [1, 0], [0, 1], [0, 1]]), 1.0)
    assert {*synonyms} == {("敦煌", "燉煌"), ("燉煌", "敦煌")}  # a character is two letters


def test_synonyms_are_as_near_on_the_scale_of_the_embedder():
    vectors = unit([[1, 0], [0.9, 0.19**0.5]])  # their cosine is 0.9
    assert len(find_synonyms(["boat", "ship"], vectors, 1.0)) == 2
    assert find_synonyms(["boat", "ship"], vectors, 0.3) == {}


def test_an_entity_weighs_the_mean_of_its_facts_over_its_chunks():
    kept = [(("a", "r", "b"), 1.0), (("c", "r", "a"), 0.2), (("d", "r", "e"), 0.1), (("f", "r", "f"), 0.0)]
    weights = weigh_entities(kept, {"a": 2, "b": 4, "c": 1, "d": 1, "e": 1, "f": 1})
    assert weights == pytest.approx({"a": 0.3, "b": 0.25, "c": 0.2, "d": 0.1, "e": 0.1})  # the five heaviest
    assert list(weights)[:3] == ["a", "b", "c"]


# --- what replies say ---


def test_entities_are_compared_in_ascii_or_in_the_letters_of_their_script():
    texts = [" Skell-Ro (Isle) ", "1,815", "Zürich", "17号井", " 敦煌\n莫高窟", "१९४७", "— …"]
    assert list(map(normal_form, texts)) == ["skell ro  isle", "1 815", "z rich", "17号井", "敦煌 莫高窟", "१९४७", ""]


def test_triples_that_are_none_are_left_out():
    replies = [["A", "r", "B"], ["A", "r"], "A r B", ["A", "r", "B"], ["?", "r", "B"], ["a", "r", "b."]]
    replies += [[1815, "r", "B"], ["A", "r", None]]
    triples = read(replies)
    # Triples that differ only before they are put in normal form are two occurrences of one fact.
    assert triples == [("a", "r", "b"), ("a", "r", "b"), ("1815", "r", "b")]
    facts = collect([triples])
    assert facts.triples == [("a", "r", "b"), ("1815", "r", "b")]
    assert facts.links == {("a", "b"): 2, ("b", "a"): 2, ("1815", "b"): 1, ("b", "1815"): 1}


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


def test_each_chunk_takes_two_calls(lab):
    chunks = len(lab.chunks)
    session = Session(lab)
    HippoRAG2().prepare(session)
    assert len(session.calls) == 2 * chunks
    assert [messages[0].text[:5] for messages in lab.model.calls] == ["List "] * chunks + ["Write"] * chunks
    triples = next(messages for messages in lab.model.calls[chunks:] if "Boso the Elder was" in messages[-1].text)
    assert '["Arles", "Boso the Elder"]' in triples[-1].text


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
    assert lines(session, "Facts kept") == [f"{facts[0]} (1.000)"]
    subject, _, target = facts[0].split(" | ")
    assert {line.partition(":")[0] for line in lines(session, "Entities where")} == {subject, target}

    (record,) = session.trace
    assert (record["tool"], record["arguments"]["kept"]) == ("retrieve", 1)
    question, shown = read_forced_question(reader_call[1].text)
    assert question == QUESTION
    assert shown == "\n\n".join(f"[{chunk_id}]\n{small_index.get(chunk_id).text}" for chunk_id in record["chunk_ids"])


@pytest.mark.parametrize("reply", ["I cannot.", {"keep": []}, {"keep": [0, 17]}])
def test_without_a_kept_fact_chunks_are_ranked_by_similarity(small_index, tmp_path, reply):
    lab = make_lab(small_index, expert(filter_reply=reply), tmp_path, top_k=2)
    answer, session = ask(HippoRAG2(), lab, QUESTION)
    assert lines(session, "Facts kept") == ["none"]
    assert lines(session, "Entities where") == ["none: the chunks are ranked by similarity alone"]
    assert session.trace[0]["chunk_ids"] == nearest(small_index, 2)
    assert answer.text == "Boso the Elder"
