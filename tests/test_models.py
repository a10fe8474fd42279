"""Models by string: what is taken, what is refused and with which words."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anthropic
import httpx
import openai
import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage
from pydantic import ConfigDict

import arag.models
from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.models.asking import is_provider_error
from arag.models.chat import load_model
from arag.models.extractive import ExtractiveModel
from scripted import ScriptedModel

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

OPENAI = "openai:m@http://127.0.0.1:1/v1"
ANTHROPIC = "anthropic:claude-sonnet-5-5@http://127.0.0.1:1"


def test_models_import_no_other_room():
    texts = [file.read_text("utf-8") for file in Path(arag.models.__path__[0]).glob("*.py")]
    imported = {name for text in texts for name in re.findall(r"^\s*(?:from|import) arag\.(\w+)", text, re.MULTILINE)}
    assert imported == {"errors", "files", "models"}


# --- strings ---


@pytest.mark.parametrize("text", ["gpt-5", "", ":gpt-5", "openai:", "openai:@http://127.0.0.1/v1", "Extractive"])
def test_what_is_no_model_string_is_refused_with_what_is(text):
    with pytest.raises(ModelError, match=r"unknown model .* give provider:model"):
        load_model(text)


def test_an_unknown_provider_is_refused():
    with pytest.raises(ModelError, match=r"cannot be created: .*nope"):
        load_model("nope:gpt-5")


def test_what_is_no_string_is_refused():
    with pytest.raises(ModelError, match="not a int"):
        load_model(7)


def test_providers_are_found_as_langchain_spells_them():
    assert type(load_model("OpenAI:m@http://127.0.0.1:1/v1")).__name__ == "ChatOpenAI"
    assert type(load_model(ANTHROPIC)).__name__ == "ChatAnthropic"


def test_without_a_choice_the_extractive_model_is_taken_and_that_is_said(capsys, monkeypatch):
    assert isinstance(load_model(None), ExtractiveModel)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "not a language model" in err
    assert "ARAG_MODEL" in err
    monkeypatch.setenv("ARAG_MODEL", "")
    assert isinstance(load_model(), ExtractiveModel)


def test_the_environment_chooses_a_model(capsys, monkeypatch):
    monkeypatch.setenv("ARAG_MODEL", "openai:from-environment@http://127.0.0.1:1/v1")
    assert load_model(None, reasoning_effort="low").model_name == "from-environment"
    monkeypatch.setenv("ARAG_MODEL", "extractive")
    assert isinstance(load_model(None), ExtractiveModel)
    assert isinstance(load_model("extractive"), ExtractiveModel)
    assert capsys.readouterr().err == ""


def test_a_model_object_is_taken_as_it_is():
    model = ScriptedModel(AIMessage("x"))
    assert load_model(model) is model


# --- packages and keys ---


@pytest.fixture
def without(monkeypatch):
    """A function that makes a package one that is not installed."""
    from langchain.chat_models.base import _get_chat_model_creator

    def remove(package):
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        _get_chat_model_creator.cache_clear()

    yield remove
    _get_chat_model_creator.cache_clear()


@pytest.mark.parametrize(
    ("model", "package", "install"),
    [
        ("anthropic:claude-sonnet-5-5", "langchain-anthropic", "pip install 'langgraph-arag[anthropic]'"),
        ("google_genai:gemini-2.5-flash", "langchain-google-genai", "pip install 'langgraph-arag[google]'"),
        ("google-genai:gemini-2.5-flash", "langchain-google-genai", "pip install 'langgraph-arag[google]'"),
        ("ollama:qwen3", "langchain-ollama", "pip install 'langgraph-arag[ollama]'"),
        ("google_vertexai:gemini-2.5-flash", "langchain-google-vertexai", "pip install langchain-google-vertexai"),
        ("groq:llama", "langchain-groq", "pip install langchain-groq"),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(without, model, package, install):
    without(package.replace("-", "_"))
    with pytest.raises(ModelError) as caught:
        load_model(model)
    assert str(caught.value) == f"the model {model} needs the package {package}, which is not installed: {install}"


def test_a_package_that_lacks_one_of_its_own_is_not_called_missing(without, monkeypatch):
    without("anthropic")
    for name in [name for name in sys.modules if name.partition(".")[0] == "langchain_anthropic"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModelError, match="cannot be created: import of anthropic halted"):
        load_model("anthropic:claude-sonnet-5-5")


def test_the_extras_named_exist():
    from importlib.metadata import metadata

    assert {"anthropic", "google", "ollama"} <= set(metadata("langgraph-arag").get_all("Provides-Extra"))


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai:some-model", "OPENAI_API_KEY"), ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY")],
)
def test_a_missing_key_is_named(monkeypatch, model, variable):
    with pytest.raises(ModelError, match=f"{model} cannot be created: .*{variable}"):
        load_model(model)
    assert isinstance(load_model(model, api_key="secret"), BaseChatModel)
    monkeypatch.setenv(variable, "secret")
    assert isinstance(load_model(model), BaseChatModel)


def test_a_key_of_the_environment_is_taken_and_a_server_of_ones_own_needs_none(monkeypatch):
    assert load_model(OPENAI).openai_api_key.get_secret_value() == "none"
    assert load_model(ANTHROPIC).anthropic_api_key.get_secret_value() == "none"
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret too")
    assert load_model(OPENAI).openai_api_key.get_secret_value() == "secret"
    assert load_model(ANTHROPIC).anthropic_api_key.get_secret_value() == "secret too"


# --- options ---


def test_timeouts_and_retries_are_set_and_options_win():
    model = load_model(OPENAI)
    assert (model.request_timeout, model.max_retries, model.stream_usage) == (120.0, 3, True)
    model = load_model(OPENAI, timeout=7, max_retries=0, temperature=0)
    assert (model.request_timeout, model.max_retries, model.temperature) == (7, 0, 0)
    model = load_model(ANTHROPIC)
    assert (model.default_request_timeout, model.max_retries) == (120.0, 3)


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        (OPENAI, {"request_timeout": 7, "openai_api_key": "mine"}, ("request_timeout", 7, "openai_api_key")),
        (
            ANTHROPIC,
            {"default_request_timeout": 7, "anthropic_api_key": "mine"},
            ("default_request_timeout", 7, "anthropic_api_key"),
        ),
    ],
)
def test_an_option_wins_by_its_other_name_too(model, options, expected):
    made = load_model(model, **options)
    timeout, value, key = expected
    assert getattr(made, timeout) == value
    assert getattr(made, key).get_secret_value() == "mine"


def test_a_bad_option_is_a_model_error():
    with pytest.raises(ModelError, match="cannot be created: temperature: Input should be a valid number") as caught:
        load_model(OPENAI, temperature="warm", api_key="secret")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:WARNING! ")  # LangChain's own
@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_an_option_that_the_class_does_not_know_is_refused(model):
    with pytest.raises(ModelError) as caught:
        load_model(model, reasoning_efort="low", nonsense=1)
    assert "has no option reasoning_efort, nonsense. Did you mean " in str(caught.value)
    assert "reasoning_effort" in str(caught.value)
    assert "into model_kwargs={...}." in str(caught.value)


def test_what_only_the_provider_knows_goes_into_model_kwargs():
    assert load_model(OPENAI, model_kwargs={"prompt_cache_key": "x"}).model_kwargs == {"prompt_cache_key": "x"}


def test_options_for_a_model_that_takes_none_are_refused():
    with pytest.raises(ModelError, match=r"temperature, timeout: .*on this ScriptedModel when you create it"):
        load_model(ScriptedModel(AIMessage("x")), temperature=0, timeout=3)
    with pytest.raises(ModelError, match="temperature: the model extractive takes no options"):
        load_model("extractive", temperature=0)
    with pytest.raises(ModelError, match="reasoning_effort: the model extractive takes no options"):
        load_model(None, reasoning_effort="low")


class _Strict(ScriptedModel):
    """A class that refuses what it does not know, as some do."""

    model_config = ConfigDict(extra="forbid")

    temperature: float | None = None

    def __init__(self, **kwargs):
        BaseChatModel.__init__(self, script=[], **kwargs)


def test_a_class_that_has_no_timeout_is_made_without(monkeypatch):
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda model, model_provider, **kw: _Strict(**kw))
    assert load_model("other:m", temperature=0.5).temperature == 0.5
    with pytest.raises(ModelError, match="cannot be created: timeout: Extra inputs are not permitted"):
        load_model("other:m", timeout=3)


class _Lax(BaseChatModel):
    """A class that drops what it does not know, as ChatOllama does."""

    base_url: str | None = None
    reasoning: str | None = None
    client_kwargs: dict | None = None

    @property
    def _llm_type(self):
        return "lax"

    def _generate(self, *args, **kwargs):
        raise NotImplementedError


def test_ollama_gets_its_timeout_where_its_class_has_it(monkeypatch):
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda model, model_provider, **kw: _Lax(**kw))
    assert load_model("ollama:qwen3").client_kwargs == {"timeout": 600.0}
    model = load_model("ollama:qwen3@http://127.0.0.1:1", timeout=7, client_kwargs={"headers": {"a": "b"}})
    assert model.client_kwargs == {"timeout": 7, "headers": {"a": "b"}}
    assert model.base_url == "http://127.0.0.1:1"
    with pytest.raises(ModelError, match="_Lax has no option max_retries"):
        load_model("ollama:qwen3", max_retries=3)
    with pytest.raises(ModelError, match=r"_Lax has no option reasoning_effort\. Did you mean reasoning\?"):
        load_model("ollama:qwen3", reasoning_effort="low")


# --- errors ---


def _made(kind, module):
    return type(kind.__name__, (kind,), {"__module__": module})


@pytest.mark.parametrize(
    "error",
    [
        openai.APIConnectionError(request=httpx.Request("POST", "http://127.0.0.1")),
        anthropic.APIConnectionError(request=None),
        httpx.ReadTimeout("x"),
        _made(Exception, "google.api_core.exceptions")("x"),
        _made(Exception, "langchain_google_genai.chat_models")("x"),
        _made(Exception, "ollama._types")("x"),
    ],
    ids=lambda error: type(error).__module__,
)
def test_clients_errors_are_told_by_where_their_classes_come_from(error):
    assert is_provider_error(error)


def _raised_in(module, error):
    """Raise an error in a module of that name, and catch it."""
    code = compile("def fail(error):\n    raise error\n", module, "exec")
    namespace = {"__name__": module}
    exec(code, namespace)
    with pytest.raises(type(error)) as caught:
        namespace["fail"](error)
    return caught.value


def test_errors_of_pythons_own_are_told_by_who_raised_them():
    assert is_provider_error(_raised_in("ollama._client", ConnectionError("refused")))
    assert not is_provider_error(_raised_in("arag.files", OSError("no space")))
    assert is_provider_error(_raised_in("langchain_openai.chat_models.base", ValueError("server overloaded")))
    assert is_provider_error(_raised_in("langchain_core.language_models.chat_models", IndexError("no generations")))
    assert not is_provider_error(_raised_in("langchain_core.tools.base", ValueError("x")))
    assert not is_provider_error(_raised_in("langchain_openai.chat_models.base", ZeroDivisionError("x")))
    for error in (ValueError("no"), KeyError("no"), ZeroDivisionError("no"), ConnectionError("no")):
        assert not is_provider_error(error)


def test_a_model_that_calls_no_tools_is_refused(small_index):
    with pytest.raises(ModelError, match="FakeListChatModel cannot be used: a model that calls tools is needed"):
        create_arag_agent(FakeListChatModel(responses=["x"]), small_index)
