"""Nobody gets a key or a text whom the user has not named, and no index brings code along."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from arag.errors import EmbedderError, InputError
from arag.graph.graph import create_arag_agent
from arag.ingest.pipeline import ingest, run_ingest
from arag.models.embedders import Embedder, load_embedder
from arag.models.huggingface import load_huggingface
from arag.models.names import DEFAULT_EMBEDDER, parse_name
from arag.retrieval.index import open_index
from fakes import HashEmbeddings, change_settings, hash_vector, write_corpus
from openai_server import Failure, embeddings, serve

pytest_plugins = ["model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings", "keys")

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
    code, _, err = arag(*command, "--index", theirs)
    assert (code, server.requests) == (1, [])
    assert f"send your questions and the documents that you ingest to {server.url[7:-3]}" in err
    assert "with the key in OPENAI_API_KEY" in err
    assert KEY not in err
    assert f"ARAG_EMBEDDER=openai:m@{server.url}" in err
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
    assert arag(*command, "--index", theirs)[0] == 0
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "command",
    [
        ["search", "keyword", "ship"],
        ["read", "a.txt:0"],
        ["info"],
        ["verify", "--repair"],
        ["remove", "a.txt"],
    ],
)
def test_what_needs_no_vectors_works_and_sends_nothing(arag, theirs, server, command):
    assert arag(*command, "--index", theirs)[0] == 0
    assert server.requests == []


@pytest.mark.parametrize(
    "name",
    [
        "openai:text-embedding-3-small",
        "ollama:nomic-embed-text",
        "cohere:embed@https://example.com",
        "huggingface:/tmp/model",
        "huggingface:../model",
        "huggingface:a/b/c",
        "huggingface:organisation/..",
    ],
)
def test_what_sends_texts_or_loads_a_folder_is_refused_from_python_too(make_index, name):
    index = make_index(DOCUMENTS).path
    change_settings(index, embedder=name)
    with open_index(index) as opened:
        assert opened.keyword_search("ship").total == 1
        with pytest.raises(EmbedderError, match=r"is named only by the index in .*: it would (send|load)"):
            opened.semantic_search("ship")
    with pytest.raises(EmbedderError, match="is named only by"):
        ingest(index.parent / "corpus", index)


def test_a_folder_with_the_name_of_a_hub_model_is_not_taken_for_it(tmp_path, monkeypatch):
    (tmp_path / "organisation" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EmbedderError, match=r"huggingface:\./organisation/model"):
        load_embedder("huggingface:organisation/model").embed_query("x")


def test_a_folder_has_one_name_from_any_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = load_embedder("huggingface:./model").name
    assert name == f"huggingface:{tmp_path / 'model'}"


def test_the_user_names_a_folder_from_the_working_directory(make_index, tmp_path, monkeypatch):
    index = make_index(DOCUMENTS).path
    change_settings(index, embedder=f"huggingface:{tmp_path / 'model'}")
    loaded = []
    monkeypatch.setattr(
        "arag.retrieval.trust.load_embeddings", lambda name, named: loaded.append((name, named)) or HashEmbeddings()
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("ARAG_EMBEDDER", "huggingface:./model")
    with open_index(index) as opened:
        monkeypatch.chdir(tmp_path / "elsewhere")
        with pytest.raises(EmbedderError, match="is named only by"):
            opened.semantic_search("ship")
        monkeypatch.chdir(tmp_path)
        opened.semantic_search("ship")
    assert [(str(name), named) for name, named in loaded] == [(f"huggingface:{tmp_path / 'model'}", True)]


def test_an_open_index_does_not_follow_a_manifest_to_another_embedder(make_index, server):
    index = make_index(DOCUMENTS).path
    with open_index(index, embedder=HashEmbeddings()) as opened:
        opened.semantic_search("ship")
        change_settings(index, embedder=f"openai:m@{server.url}")
        with pytest.raises(EmbedderError, match="was made with the embedder openai"):
            opened.semantic_search("ship")
    assert server.requests == []


# --- nothing is remembered ---


def test_naming_an_embedder_once_is_no_leave_for_later(arag, tmp_path, server):
    write_corpus(tmp_path / "corpus", DOCUMENTS)
    name, index = f"openai:m@{server.url}", tmp_path / "index"
    assert arag("ingest", tmp_path / "corpus", "--index", index, "--embedder", name)[0] == 0
    with open_index(index, embedder=name) as opened:
        assert opened.semantic_search("ship").hits[0].chunk_id == "a.txt:0"
    server.requests.clear()
    with open_index(index) as opened, pytest.raises(EmbedderError, match="is named only by"):
        opened.semantic_search("ship")
    assert arag("search", "semantic", "ship", "--index", index)[0] == 1
    assert server.requests == []


def test_the_embedder_of_the_environment_is_that_of_new_indexes(tmp_path, server, monkeypatch):
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
    with ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), tmp_path / "index") as index:
        assert index.info().embedder == f"openai:m@{server.url}"
        assert index.semantic_search("ship").hits


def test_another_embedder_than_the_indexs_is_refused(make_index):
    index = make_index(DOCUMENTS).path
    with pytest.raises(EmbedderError, match=f"made with the embedder HashEmbeddings:hash-64, not {DEFAULT_EMBEDDER}"):
        open_index(index, embedder=DEFAULT_EMBEDDER)
    with open_index(index) as opened, pytest.raises(EmbedderError, match="pass it as embedder="):
        opened.semantic_search("ship")


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


@pytest.mark.parametrize("how", ["module", "nested module", "model", "tokenizer", "pickle", "pooling"])
def test_a_model_folder_runs_no_code(tmp_path, weights, how):
    import torch

    folder, marker = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(weights, folder)
    code = f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    for name in ("evil", "modeling_evil", "tokenization_evil"):
        (folder / f"{name}.py").write_text(f"{code}class Evil:\n    pass\n")
    modules = folder / "modules.json"
    match how:
        case "module":
            changed_json(modules, lambda value: value[0].update(type="evil.Evil"))
        case "pooling":
            changed_json(modules, lambda value: value[1].update(type="evil.Evil"))
        case "nested module":
            router = "sentence_transformers.base.modules.router.Router"
            changed_json(modules, lambda value: value[0].update(type=router))
            (folder / "router_config.json").write_text(
                json.dumps({"types": {"x": "evil.Evil"}, "structure": {"query": ["x"]}, "parameters": {}})
            )
        case "model":
            auto = {"AutoConfig": "modeling_evil.Evil", "AutoModel": "modeling_evil.Evil"}
            changed_json(folder / "config.json", lambda value: value.update(auto_map=auto, model_type="evil"))
        case "tokenizer":
            auto = {"AutoTokenizer": ["tokenization_evil.Evil", "tokenization_evil.Evil"]}
            changed_json(
                folder / "tokenizer_config.json", lambda value: value.update(auto_map=auto, tokenizer_class="Evil")
            )
        case "pickle":
            (folder / "model.safetensors").unlink()
            torch.save({"weights": Evil(str(marker))}, folder / "pytorch_model.bin")
    with nullcontext() if how == "tokenizer" else pytest.raises(EmbedderError):  # BERT's own one does as well
        load_embedder(f"huggingface:{folder}").embed_query("ship")
    assert not marker.exists()


def test_what_brings_its_own_code_is_told_so(tmp_path, weights):
    shutil.copytree(weights, tmp_path / "model")
    changed_json(tmp_path / "model" / "modules.json", lambda value: value[0].update(type="evil.Evil"))
    with pytest.raises(EmbedderError, match="needs its own program code, which is never run"):
        load_embedder(f"huggingface:{tmp_path / 'model'}").embed_query("ship")


def test_pickled_weights_are_read_only_where_the_user_has_named_the_model(tmp_path, weights):
    import torch
    from safetensors.torch import load_file

    shutil.copytree(weights, tmp_path / "model")
    safe = tmp_path / "model" / "model.safetensors"
    torch.save(load_file(safe), tmp_path / "model" / "pytorch_model.bin")
    safe.unlink()
    model = str(tmp_path / "model")
    assert len(load_huggingface(model, named=True).embed_query("ship")) == 16
    with pytest.raises(EmbedderError, match=f"no weights in the safetensors format.*ARAG_EMBEDDER=huggingface:{model}"):
        load_huggingface(model, named=False)


def test_data_names_no_pickled_weights(make_index, monkeypatch):
    index = make_index(DOCUMENTS).path
    change_settings(index, embedder="huggingface:organisation/model")
    loaded = []
    monkeypatch.setattr(
        "arag.models.huggingface.load_huggingface",
        lambda model, *, named: loaded.append((model, named)) or HashEmbeddings(),
    )
    for variable in ("", "huggingface:organisation/model"):
        monkeypatch.setenv("ARAG_EMBEDDER", variable)
        with open_index(index) as opened:
            opened.semantic_search("ship")
    assert loaded == [("organisation/model", False), ("organisation/model", True)]


# --- names ---


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("huggingface:m@http://localhost/v1", "base URLs are for servers"),
        ("openai:a\ud800", "unprintable characters"),
        ("openai:a\nb", "unprintable characters"),
        ("openai:\x1b]52;c;x\x07", "unprintable characters"),
        ("openai:a\u202eb", "unprintable characters"),
        ("openai:m@http://", "host is missing"),
        ("openai:m@http:///v1", "host is missing"),
        ("openai:m@http://:80/v1", "host is missing"),
        ("openai:m@http://[::", "is not a valid URL"),
        ("openai:m@http://host:99999", "is not a valid URL"),
        ("openai:m@ftp://host", "does not begin with http:// or https://"),
        ("openai:m@http://host/v1?key=s3cret-pa55", "query"),
        ("openai:m@http://host\\@example.com/", "backslashes"),
        ("openai:m@http://a b/", "white space"),
        ("openai:m@http://user:s3cret-pa55@host/v1", "it has a user or a password"),
        ("openai:m@http://user:s3cret-pa55/x@host/v1", "is not a valid URL"),
    ],
)
def test_an_odd_name_is_an_input_error(name, said):
    from arag.models.chat import load_model

    with pytest.raises(InputError, match=said) as caught:
        load_embedder(name)
    assert PASSWORD not in str(caught.value)
    str(caught.value).encode()
    if not name.startswith("huggingface"):
        with pytest.raises(InputError, match=said):
            load_model(name)


@pytest.mark.parametrize("name", ["openai:a\x1b]52;c;aGk=\x07", "huggingface:m@http://localhost/v1", "openai:", "x"])
def test_an_odd_name_in_a_manifest_keeps_nobody_from_the_rest(arag, make_index, name):
    index = make_index(DOCUMENTS).path
    change_settings(index, embedder=name)
    with open_index(index) as opened:
        assert opened.keyword_search("ship").total == 1
        with pytest.raises(EmbedderError):
            opened.semantic_search("ship")
    for command in (["info"], ["search", "semantic", "ship"], ["ingest", index.parent / "corpus"]):
        code, out, err = arag(*command, "--index", index)
        assert (code == 0) == (command == ["info"])
        assert "\x1b" not in out + err


ADDRESSES = {
    "localhost": "http://localhost",
    "LocalHost/v1": "http://LocalHost/v1",
    "localhost:8000/v1": "http://localhost:8000/v1",
    "127.0.0.1:8000/v1": "http://127.0.0.1:8000/v1",
    "10.0.0.5": "http://10.0.0.5",
    "[::1]:8000/v1": "http://[::1]:8000/v1",
    "gpu:8000": "http://gpu:8000",
    "gpu/v1": "http://gpu/v1",
    "host.docker.internal:8000/v1": "http://host.docker.internal:8000/v1",
    "models.example.com": "https://models.example.com",
    "api.example.com/v1": "https://api.example.com/v1",
    # What no valid URL can be made of gets an example.
    f"user:{PASSWORD}@gpu/v1": None,
    f"user:{PASSWORD}/x@gpu:8000": None,
    f"localhost:8000/v1?key={PASSWORD}": None,
    f"http:user:{PASSWORD}@host": None,
    "http//localhost:8000/v1": None,
    "localhost:$PORT/v1": None,
    "::1": None,
    ":8000/v1": None,
    "//localhost:8000/v1": None,
}


@pytest.mark.parametrize("model", ["qwen3", "qwen3:8b", "organisation/qwen3"])
@pytest.mark.parametrize(("address", "url"), ADDRESSES.items())
def test_an_address_without_its_scheme_is_refused_with_the_name_that_is_meant(model, address, url):
    with pytest.raises(InputError, match="no valid base URL after the @") as caught:
        parse_name(f"openai:{model}@{address}")
    hint = f"did you mean openai:{model}@{url}?" if url else "give one like http://localhost:8000/v1"
    assert str(caught.value).endswith(hint)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        "claude-3-5-sonnet@20240620",
        "gemini-1.5-pro@001",
        "publishers/google/models/gemini-2.0-flash@001",
        "m@latest",
        "m@default",
        "m@v1.5",
        "m@1.0.0-rc.1",
        "m@v1.5.Q4_K_M",
        "m@sha256:0123456789abcdef",
        "@cf/meta/llama-3.1-8b-instruct",
        "@cf/meta/llama-3.1-8b-instruct@latest",
        "@hf/thebloke/mistral-7b-instruct-v0.1-awq",
        "workers-ai/@cf/meta/llama-3.1-8b-instruct",
        "@openai-prod/gpt-5-mini",
    ],
)
def test_an_at_sign_in_a_name_is_part_of_it(model):
    name = parse_name(f"openai:{model}")
    assert (name.model, name.base_url) == (model, None)
    name = parse_name(f"openai:{model}@http://localhost:8000/v1")
    assert (name.model, name.base_url.url) == (model, "http://localhost:8000/v1")


def test_a_folder_may_have_any_name(tmp_path):
    folder = tmp_path / "me@example.com" / "model"
    assert parse_name(f"huggingface:{folder}").model == str(folder)


@pytest.fixture
def provider(monkeypatch, server):
    """A server that stands where OpenAI's clients connect to without a base URL."""
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(variable, server.url)
    return server


def test_nothing_goes_to_the_provider_where_a_scheme_is_forgotten(arag, tmp_path, provider):
    corpus, index = write_corpus(tmp_path / "corpus", DOCUMENTS), tmp_path / "index"
    embedder, model = "openai:bge-m3@localhost:8000/v1", "openai:qwen3@localhost:8000/v1"
    code, _, err = arag("ingest", corpus, "--index", tmp_path / "none", "--embedder", embedder)
    assert (code, (tmp_path / "none").exists()) == (1, False)
    assert "did you mean openai:bge-m3@http://localhost:8000/v1?" in err
    with pytest.raises(InputError, match="did you mean"):
        ingest(corpus, tmp_path / "none", embedder=embedder)

    with ingest(corpus, index, embedder=HashEmbeddings()) as opened, pytest.raises(InputError, match="did you mean"):
        create_arag_agent(model, opened)
    code, _, err = arag("ask", "Which ship sank?", "--index", index, "--model", model)
    assert code == 1
    assert "did you mean openai:qwen3@http://localhost:8000/v1?" in err
    assert provider.requests == []

    arag("ask", "Which ship sank?", "--index", index, "--model", "openai:qwen3@latest")
    assert provider.requests[0]["model"] == "qwen3@latest"


# --- users and passwords ---


def test_a_password_is_in_no_error(monkeypatch):
    monkeypatch.setattr("arag.models.embedders._SERVICE_RETRIES", 0)
    failure = Failure(500, message="refused http://user:s3cret-pa55@host/v1/x")
    with serve(lambda *_: failure) as server, pytest.raises(EmbedderError) as caught:
        load_embedder(f"openai:m@{server.url}").embed_query("x")
    assert "refused http://***@host/v1/x" in str(caught.value)
    assert PASSWORD not in str(caught.value)
    broken = Embedder("x:y", lambda: (_ for _ in ()).throw(OSError("for url 'http://user:s3cret-pa55@host'")))
    with pytest.raises(EmbedderError) as caught:
        broken.embed_query("x")
    assert PASSWORD not in str(caught.value)
