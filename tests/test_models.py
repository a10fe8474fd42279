"""Models by string: what is taken, what is refused and with which words."""

from __future__ import annotations

import asyncio
import sys

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.vectorstores import InMemoryVectorStore

from arag.errors import InputError, ModelError
from arag.models.chat import load_model, naming_failures
from arag.models.embedders import Embedder, load_embedder
from arag.models.extractive import ExtractiveModel
from arag.models.names import parse_name
from fakes import HashEmbeddings
from scripted import ScriptedModel

OPENAI = "openai:m@http://127.0.0.1:1/v1"
ANTHROPIC = "anthropic:claude-sonnet-5-5@http://127.0.0.1:1"
PASSWORD = "s3cret-pa55"


# --- names ---


@pytest.mark.parametrize("text", ["gpt-5", ":gpt-5", "openai:@http://127.0.0.1/v1", "Extractive"])
def test_what_is_no_model_string_is_refused_with_what_is(text):
    with pytest.raises(InputError, match=r"unknown model .* give provider:model, such as openai:gpt-5-mini"):
        load_model(text)
    with pytest.raises(InputError, match=r"unknown model .* or provider:model, such as openai:text-embedding-3-small"):
        load_embedder(text)
    with pytest.raises(ModelError, match=r"cannot be created: .*nope"):
        load_model("nope:gpt-5")


@pytest.mark.parametrize("model", ["qwen3:8b", "organisation/qwen3"])
@pytest.mark.parametrize(
    "address",
    [
        *("LocalHost", "gpu:8000", "gpu/v1", "10.0.0.5", "[::1]:8000/v1", "api.example.com", ":8000/v1"),
        *("http//localhost/v1", "ftp://host", f"user:{PASSWORD}@gpu/v1"),
    ],
)
def test_an_address_without_http_is_refused_with_the_form_that_is_meant(model, address):
    with pytest.raises(InputError, match=f"give one like openai:{model}@http://localhost:8000/v1") as caught:
        parse_name(f"openai:{model}@{address}")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "http://:80/v1", f"http://host/v1?key={PASSWORD}", f"http://user:{PASSWORD}@host/v1"),
        *(f"http://user:{PASSWORD}/x@host/v1", "http://host\\@example.com/"),
    ],
)
def test_a_url_that_clients_may_read_otherwise_is_refused(url):
    for load in (load_model, load_embedder):
        with pytest.raises(InputError, match=r"openai:m is not a valid base URL: give one like http://") as caught:
            load(f"openai:m@{url}")
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("name", ["openai:a\ud800", "openai:a\nb", "openai:\x1b]52;c;x\x07", "openai:a\u202eb"])
def test_a_name_with_unprintable_characters_is_refused(name):
    for load in (load_model, load_embedder):
        with pytest.raises(InputError, match="unprintable characters"):
            load(name)


@pytest.mark.parametrize(
    "model",
    [
        *("claude-3-5-sonnet@20240620", "m@latest", "m@v1.5", "m@v1.5.Q4_K_M"),
        *("@cf/meta/llama-3.1-8b-instruct@latest", "workers-ai/@cf/meta/llama-3.1-8b-instruct"),
    ],
)
def test_an_at_sign_in_a_name_is_part_of_it(model):
    name = parse_name(f"openai:{model}")
    assert (name.model, name.base_url) == (model, None)
    name = parse_name(f"openai:{model}@http://localhost:8000/v1")
    assert (name.model, name.base_url) == (model, "http://localhost:8000/v1")


def test_a_folder_may_have_any_name_and_has_no_base_url(tmp_path):
    folder = tmp_path / "me@example.com" / "model"
    assert parse_name(f"huggingface:{folder}").model == str(folder)
    assert load_embedder("huggingface:~no-such-user/model").name.endswith("/~no-such-user/model")
    with pytest.raises(InputError, match="run on this machine"):
        load_embedder("huggingface:m@http://localhost/v1")


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("all-MiniLM-L6-v2", "huggingface:sentence-transformers/all-MiniLM-L6-v2"),
        ("multilingual-e5-small", "huggingface:intfloat/multilingual-e5-small"),
    ],
)
def test_the_embedders_without_pytorch_have_short_names(monkeypatch, short, name):
    assert load_embedder(short).name == load_embedder(name).name == name
    monkeypatch.setenv("ARAG_EMBEDDER", short)
    assert load_embedder().name == name
    with pytest.raises(InputError, match="unknown model"):
        load_model(short)


def test_another_embedder_of_the_hub_says_what_installs_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelError, match=r"bge-m3 runs on PyTorch, .*: pip install 'langgraph-arag\[torch\]'"):
        load_embedder("huggingface:BAAI/bge-m3").embed_query("ship")


@pytest.mark.parametrize(("query", "received"), [("ship \ud83d", "ship \ufffd"), ("\ud83d\ude00", "\U0001f600")])
def test_an_embedder_gets_no_half_of_a_character(query, received):
    class Recorder(HashEmbeddings):
        def embed_query(self, text):
            queries.append(text)
            return super().embed_query(text)

    queries = []
    load_embedder(Recorder()).embed_query(query)
    assert queries == [received]


# --- which model ---


def test_without_a_name_the_environment_chooses_else_it_is_the_extractive_model(monkeypatch):
    monkeypatch.setenv("ARAG_MODEL", "OpenAI:from-environment@http://127.0.0.1:1/v1")
    assert load_model(None, reasoning_effort="low").model_name == "from-environment"
    monkeypatch.setenv("ARAG_MODEL", "")
    assert isinstance(load_model(None), ExtractiveModel)


# --- packages and keys ---


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    from langchain.chat_models.base import _get_chat_model_creator

    monkeypatch.setitem(sys.modules, "langchain_google_genai", None)
    _get_chat_model_creator.cache_clear()
    with pytest.raises(ModelError, match=r"cannot be created: .*`pip install langchain-google-genai`"):
        load_model("google-genai:gemini-2.5-flash")


@pytest.mark.parametrize(
    ("model", "variable", "field"),
    [
        ("openai:some-model", "OPENAI_API_KEY", "openai_api_key"),
        ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY", "anthropic_api_key"),
    ],
)
def test_a_missing_key_is_named_and_a_server_of_ones_own_needs_none(monkeypatch, model, variable, field):
    for load in (load_model, lambda name: load_embedder(name).load()):
        with pytest.raises(ModelError, match=f"{model} needs a key: set {variable}, or name your own server: {model}@"):
            load(model)
    assert isinstance(load_model(model, api_key="secret"), BaseChatModel)
    own = f"{model}@http://127.0.0.1:1/v1"
    for options in ({}, {"default_headers": {"Authorization": "Basic secret"}}):
        assert getattr(load_model(own, **options), field).get_secret_value() == "none"
    monkeypatch.setenv(variable, "secret")
    assert getattr(load_model(own), field).get_secret_value() == "secret"


# --- options ---


def test_timeouts_and_retries_are_set_and_options_win():
    model = load_model(OPENAI)  # on this machine
    assert (model.request_timeout, model.max_retries, model.stream_usage) == (1800.0, 3, True)
    assert load_model("openai:gpt-5-mini", api_key="secret").request_timeout == 300.0
    model = load_model(OPENAI, request_timeout=7, max_retries=0, temperature=0)
    assert (model.request_timeout, model.max_retries, model.temperature) == (7, 0, 0)
    model = load_model(ANTHROPIC)
    assert (model.default_request_timeout, model.max_retries) == (1800.0, 3)


def test_a_bad_option_is_a_model_error_that_shows_no_key():
    with pytest.raises(ModelError, match="cannot be created: temperature: Input should be a valid number") as caught:
        load_model(OPENAI, temperature="warm", api_key="secret")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:WARNING! ")  # LangChain's own
@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_an_option_that_the_class_does_not_know_is_refused(model):
    with pytest.raises(ModelError, match=r"has no option nonsense, reasoning_efort. Options that only the provider"):
        load_model(model, reasoning_efort="low", nonsense=1)


def test_a_chat_model_is_itself_and_options_need_a_name():
    model = ScriptedModel(AIMessage("x"))
    assert load_model(model) is model
    for wrong in (model, "extractive", None):
        with pytest.raises(ModelError, match="give a provider:model string, or a chat model without options"):
            load_model(wrong, temperature=0)
    with pytest.raises(ModelError, match="not the RunnableRetry object"):
        load_model(model.with_retry())


# --- errors ---


class _Failing(ScriptedModel):
    def _generate(self, *_, **__):
        raise ValueError("server overloaded")


def test_whatever_is_raised_in_a_call_of_a_model_is_a_model_error_and_a_bug_is_not():
    for call in (_Failing().invoke, lambda text: asyncio.run(_Failing().ainvoke(text))):
        with pytest.raises(ModelError, match=r"it failed: .*server overloaded"), naming_failures("it"):
            call("Who?")
    with pytest.raises(ValueError, match="invalid literal"), naming_failures("it"):
        int("a bug")


# --- in LangChain ---


def test_an_embedder_is_langchains_embeddings_with_the_same_vectors_in_its_own_batches():
    model = HashEmbeddings()
    embedder = Embedder("hash", lambda: model, batch=2)
    embeddings = embedder.as_embeddings()
    store = InMemoryVectorStore.from_texts(["The lamp burned oil.", "A king died.", "A queen died."], embeddings)
    assert [found.page_content for found in store.similarity_search("the lamp", k=1)] == ["The lamp burned oil."]
    assert embeddings.embed_query("oil") == embedder.embed_query("oil").tolist()
    assert embeddings.embed_documents([]) == []
    batches = []
    model.embed_documents = lambda texts: batches.append(texts) or [[1.0, 0.0]] * len(texts)
    assert embeddings.embed_documents(list("abc")) == [[1.0, 0.0]] * 3
    assert batches == [["a", "b"], ["c"]]


def test_traces_name_the_built_in_model():
    class Trace(BaseCallbackHandler):
        def on_chat_model_start(self, *_, metadata, **__):
            self.metadata = metadata

    trace = Trace()
    load_model("extractive").invoke("Who?", {"callbacks": [trace]})
    assert (trace.metadata["ls_provider"], trace.metadata["ls_model_name"]) == ("arag", "extractive")
