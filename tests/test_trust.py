"""Nobody gets a key or a text whom the user has not named, and no index brings code along."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from arag.errors import ModelError
from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder, load_embedder
from arag.retrieval.index import open_index
from fakes import HashEmbeddings, change_settings, hash_vector, write_corpus
from openai_server import Failure, embeddings, serve

pytestmark = pytest.mark.usefixtures("keys")

KEY = "sk-the-users-own"
DOCUMENTS = {"a.txt": "The ship sank near the light.", "b.txt": "The keeper saw the storm."}
PASSWORD = "s3cret-pa55"


@pytest.fixture
def keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server():
    with serve(lambda _, request: embeddings([hash_vector(text).tolist() for text in request["input"]])) as server:
        yield server


@pytest.fixture
def theirs(tmp_path, server):
    """An index of somebody else, which names a server that the user has not named."""
    corpus = write_corpus(tmp_path / "corpus", DOCUMENTS)
    run_ingest(corpus, tmp_path / "theirs", embedder=f"openai:m@{server.url}")
    server.requests.clear()
    server.headers.clear()
    return tmp_path / "theirs"


# --- what an index names ---


@pytest.mark.parametrize(
    "command",
    [
        ["ingest", "mine"],
        ["search", "semantic", "my question"],
        ["ask", "my question", "--model", "extractive"],
        ["eval", "run", "--questions", "questions.json", "--method", "arag", "--model", "extractive"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_no_text_and_no_key_goes_where_only_an_index_says(arag, tmp_path, monkeypatch, theirs, server, command):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "mine", {"mine.txt": "My own secret plan."})
    (tmp_path / "questions.json").write_text('[{"id": "1", "question": "What sank?", "answer": "the ship"}]')
    for harmless in (["search", "keyword", "ship"], ["read", "a.txt:0"], ["info"], ["verify"]):
        assert arag(*harmless, "--index", theirs)[0] == 0
    code, _, err = arag(*command, "--index", theirs)
    assert (code, server.requests) == (1, [])
    assert f"send your questions and the documents that you ingest to {server.url}" in err
    assert "with the key in OPENAI_API_KEY" in err
    assert KEY not in err
    assert f"ARAG_EMBEDDER=openai:m@{server.url}" in err
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
    assert arag(*command, "--index", theirs)[0] == 0
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "name",
    [
        "openai:text-embedding-3-small",
        "cohere:embed@https://example.com",
        "huggingface:/tmp/model",
        "huggingface:../model",
        "huggingface:a/b/c",
        "huggingface:m@http://localhost/v1",
        "openai:a\x1b]52;c;aGk=\x07",
        "openai:m@localhost:8000/v1",
        "openai:",
    ],
)
def test_what_sends_texts_or_loads_a_folder_or_is_no_name_is_refused_and_the_rest_works(arag, make_index, name):
    index = make_index(DOCUMENTS).path
    change_settings(index, embedder=name)
    with open_index(index) as opened:
        assert opened.keyword_search("ship").total == 1
        with pytest.raises(ModelError, match=r"is named only by the index in|cannot be used"):
            opened.semantic_search("ship")
    for command in (["info"], ["search", "semantic", "ship"], ["ingest", index.parent / "corpus"]):
        code, out, err = arag(*command, "--index", index)
        assert (code == 0) == (command == ["info"])
        assert "\x1b" not in out + err


def test_an_open_index_does_not_follow_its_settings_to_another_embedder(make_index, server):
    index = make_index(DOCUMENTS).path
    with open_index(index, embedder=HashEmbeddings()) as opened:
        opened.semantic_search("ship")
        change_settings(index, embedder=f"openai:m@{server.url}")
        with pytest.raises(ModelError, match="was made with the embedder openai"):
            opened.semantic_search("ship")
    assert server.requests == []


# --- model folders ---


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A sound model folder of sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("weights")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ship"]
    (folder / "vocab.txt").write_text("\n".join(words))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    modules = [Transformer(str(folder / "bert")), Pooling(16)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
    return folder / "model"


class Evil:
    """Runs code where it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


def changed_json(file, change):
    value = json.loads(file.read_text()) if file.exists() else {}
    change(value)
    file.write_text(json.dumps(value))


@pytest.mark.torch
@pytest.mark.parametrize("how", ["module", "model", "pickle"])
def test_a_model_folder_runs_no_code(tmp_path, weights, how):
    import torch

    folder, marker = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(weights, folder)
    code = f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    for name in ("evil", "modeling_evil"):
        (folder / f"{name}.py").write_text(f"{code}class Evil:\n    pass\n")
    modules = folder / "modules.json"
    match how:
        case "module":
            changed_json(modules, lambda value: value[0].update(type="evil.Evil"))
        case "model":
            auto = {"AutoConfig": "modeling_evil.Evil", "AutoModel": "modeling_evil.Evil"}
            changed_json(folder / "config.json", lambda value: value.update(auto_map=auto, model_type="evil"))
        case "pickle":
            (folder / "model.safetensors").unlink()
            torch.save({"weights": Evil(str(marker))}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"model cannot be loaded \(.*\): it must .* safetensors .*never run"):
        load_embedder(f"huggingface:{folder}").embed_query("ship")
    assert not marker.exists()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "prompts", "query", "document"),
    [("model", {"query": "ship ship "}, "ship ship ", ""), ("multilingual-e5-small", {}, "query: ", "passage: ")],
)
def test_queries_and_documents_get_the_prompts_of_their_model(tmp_path, weights, name, prompts, query, document):
    plain = load_embedder(f"huggingface:{weights}")
    folder = shutil.copytree(weights, tmp_path / name)
    changed_json(folder / "config_sentence_transformers.json", lambda value: value.update(prompts=prompts))
    embedder = load_embedder(f"huggingface:{folder}")
    assert embedder.embed_query("ship").tolist() == pytest.approx(plain.embed_query(f"{query}ship"), abs=1e-6)
    expected = plain.embed_documents([f"{document}ship"])
    assert embedder.embed_documents(["ship"]).tolist() == pytest.approx(expected, abs=1e-6)


# --- addresses and passwords ---


def test_a_password_is_in_no_error(monkeypatch):
    monkeypatch.setattr("arag.models.embedders._RETRIES", 0)
    failure = Failure(500, message="refused http://user:s3cret-pa55@host/v1/x")
    with serve(lambda *_: failure) as server, pytest.raises(ModelError) as caught:
        load_embedder(f"openai:m@{server.url}").embed_query("x")
    assert "refused http://***@host/v1/x" in str(caught.value)
    assert PASSWORD not in str(caught.value)
    broken = Embedder("x:y", lambda: (_ for _ in ()).throw(OSError("for url 'http://user:s3cret-pa55@host'")))
    with pytest.raises(ModelError) as caught:
        broken.embed_query("x")
    assert PASSWORD not in str(caught.value)
