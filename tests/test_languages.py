"""One index for all languages, with the real multilingual embedder: a question finds a fact in any other language."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from arag.graph.graph import create_arag_agent
from arag.ingest.pipeline import ingest, run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.tools.fused import find_passages
from arag.retrieval.tools.sets import make_tools
from arag.terminal import FAILED
from scripted import ScriptedModel, asked, call

FILE = Path(__file__).parent.parent / "examples" / "languages" / "facts.tsv"
with FILE.open(encoding="utf-8", newline="") as lines:
    FACTS = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
QUESTIONS = {(row["fact"], row["language"]): row["question"] for row in FACTS}
TEXTS = {(row["fact"], row["language"]): row["text"] for row in FACTS}
OTHERS = ["de", "es", "fr", "zh", "ja", "ru", "ar"]
# Facts that come first in every pair of English and another language.
SURE = ["radio", "clock", "comet", "pump", "library", "theatre", "seal", "salary", "school"]
NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"


def write(folder, languages):
    for row in FACTS:
        if row["language"] in languages:
            file = folder / row["language"] / f"{row['fact']}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# {row['title']}\n\n{row['text']}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("languages")
    corpus = write(folder / "corpus", ["en", *OTHERS])
    with (
        warnings.catch_warnings(action="error"),  # nobody is told that the embedder does not know a language
        ingest(corpus, folder / "index", embedder="multilingual-e5-small") as index,
    ):
        yield index


def of(index, language):
    return index.limited_to([document.id for document in index.documents() if document.id.startswith(f"{language}/")])


@pytest.mark.parametrize("language", OTHERS)
def test_an_english_question_finds_a_document_in_another_language_by_meaning_and_the_reverse(index, language):
    assert index.info().other_languages == 0
    other, english = of(index, language), of(index, "en")
    for fact in SURE:
        assert other.semantic_search(QUESTIONS[fact, "en"], 1).hits[0].chunk_id == f"{language}/{fact}.md:0"
        assert english.semantic_search(QUESTIONS[fact, language], 1).hits[0].chunk_id == f"en/{fact}.md:0"


@pytest.mark.slow
def test_most_facts_are_found_in_every_pair_of_languages(index):
    first = among_five = 0
    for language in ["en", *OTHERS]:
        part = of(index, language)
        for (fact, _), question in QUESTIONS.items():
            found = [hit.chunk_id for hit in part.semantic_search(question, 5).hits]
            first += found[0] == f"{language}/{fact}.md:0"
            among_five += f"{language}/{fact}.md:0" in found
    pairs = 8 * len(QUESTIONS)
    assert first / pairs > 0.75
    assert among_five / pairs > 0.95


def test_searches_take_queries_in_all_scripts(index, arag):
    place = index.path
    for language in OTHERS:
        code, out, err = arag("search", "semantic", QUESTIONS["clock", language], "-i", place, "--documents", "en/*")
        assert (code, err) == (0, "")
        assert "en/clock.md:0" in out.split("\n\n")[1]
        searched, shell = make_tools(of(index, "en"), names=["semantic_search", "shell"])
        assert "[en/clock.md:0]" in searched.invoke({"queries": [QUESTIONS["clock", language]]}).split("\n\n")[1]
        assert "en/clock.md:0" in shell.invoke({"command": f'meaning -n 1 "{QUESTIONS["clock", language]}"'})


@pytest.mark.parametrize("language", OTHERS)
def test_an_answer_cites_and_quotes_a_document_in_another_language(index, language):
    chunk_id, text = f"{language}/bridge.md:0", TEXTS["bridge", language]
    answer = AIMessage(f"Rust had eaten into its chains: “{text}” [{chunk_id}]")
    model = ScriptedModel(call("semantic_search", queries=[QUESTIONS["bridge", "en"]]), answer)
    agent = create_arag_agent(model, of(index, language), tools="paper")
    state = agent.invoke(asked(QUESTIONS["bridge", "en"]))
    (citation,) = state["citations"]
    assert citation["chunk_id"] == chunk_id
    assert [quote["text"] for quote in citation["quotes"]] == [text]


def test_the_built_in_model_says_that_only_the_meaning_fits(index, tmp_path):
    chinese = of(index, "zh")
    state = create_arag_agent("extractive", chinese).invoke(asked(QUESTIONS["bridge", "en"]))
    said = "Nothing with words of the question was found in the corpus. Nearest in meaning:"
    assert state["answer"] == f"{said}\n{TEXTS['bridge', 'zh']} [zh/bridge.md:0]\n{NOTICE}"
    assert [citation["chunk_id"] for citation in state["citations"]] == ["zh/bridge.md:0"]
    state = create_arag_agent("extractive", of(index, "en")).invoke(asked("Quantum chromodynamics lattices?"))
    assert state["answer"] == f"Nothing was found in the corpus. {NOTICE}"  # in one language, words decide
    state = create_arag_agent("extractive", chinese).invoke(asked(QUESTIONS["bridge", "zh"]))
    assert f"{TEXTS['bridge', 'zh']} [zh/bridge.md:0]\n" in state["answer"]


def test_the_built_in_model_does_not_quote_for_common_words_of_the_questions_language(index):
    for language in ["de", "es", "fr", "ru"]:
        state = create_arag_agent("extractive", of(index, language)).invoke(asked(QUESTIONS["bakery", language]))
        assert f"[{language}/bakery.md:0]" in state["answer"]


def test_an_english_embedder_sends_other_scripts_to_keywords(arag, tmp_path):
    corpus = write(tmp_path / "corpus", ["zh", "de"])
    with pytest.warns(UserWarning, match="4. of the first 50 documents are not in English.*multilingual-e5-small"):
        summary = run_ingest(corpus, tmp_path / "index", embedder="all-MiniLM-L6-v2")
    assert 40 <= summary.other_languages <= 50  # some texts are one short sentence
    with open_index(tmp_path / "index") as index:
        searched, shell = make_tools(index, names=["semantic_search", "shell"])
        assert "use keyword_search" in searched.invoke({"queries": [QUESTIONS["clock", "zh"]]})
        assert "use rg" in shell.invoke({"command": f'meaning "{QUESTIONS["clock", "zh"]}"'})
        assert "by similarity" in searched.invoke({"queries": [QUESTIONS["clock", "de"]]})
        assert find_passages(index, "量子色动力学")[0] == []  # on a page, keywords alone count
    for form in ([], ["--json"], ["--paper"]):
        code, out, err = arag("search", "semantic", QUESTIONS["clock", "zh"], "--index", tmp_path / "index", *form)
        assert (code, out) == (FAILED, "")
        assert " ".join(err.split()).endswith("search with words as the documents have them, by arag search keyword")
