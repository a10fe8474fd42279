from __future__ import annotations

import json
import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from arag.errors import InputError
from arag.models.prices import PRICES_VARIABLE, cite_prices, cost

MODELS = Path(__file__).parents[1] / "docs" / "models.md"


@pytest.fixture(autouse=True)
def no_list_of_ones_own(monkeypatch):
    monkeypatch.delenv(PRICES_VARIABLE, raising=False)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that writes a list of one's own: dollars of a million tokens, in or out, by name."""

    def write(prices, **others):
        rows = [{"model": name, "input": each, "cached_input": each, "output": each} for name, each in prices.items()]
        file = tmp_path / "prices.json"
        file.write_text(json.dumps({"prices": rows, **others}))
        monkeypatch.setenv(PRICES_VARIABLE, str(file))

    return write


def called(model, input_tokens=1_000_000, cached_tokens=0, output_tokens=1_000_000, **others):
    return {
        "model": model,
        "input_tokens": input_tokens,
        "cached_tokens": cached_tokens,
        "output_tokens": output_tokens,
        **others,
    }


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-5", 11.25),
        ("gpt-5-2025-08-07", 11.25),
        ("gpt-5-mini", 2.25),
        ("gpt-5-mini-2025-08-07", 2.25),
        ("gpt-5-nano-2025-08-07", 0.45),
        ("gpt-4.1-2025-04-14", 10),
        ("gpt-4.1-mini-2025-04-14", 2),
        ("gpt-4o-2024-08-06", 12.5),
        ("gpt-4o-2024-05-13", 20),  # a version with a price of its own
        ("gpt-4o-mini-2024-07-18", 0.75),
        ("o3-2025-04-16", 10),
        ("o4-mini-2025-04-16", 5.5),
        ("claude-opus-4-5-20251101", 30),
        ("claude-opus-4-1-20250805", 90),
        ("claude-opus-4-20250514", 90),
        ("claude-haiku-4-5@20251001", 6),
        ("gemini-2.5-flash", 2.8),
        ("models/gemini-2.5-flash-lite", 0.5),
        ("gemini-2.0-flash-001", 0.5),
        ("gpt-4o-audio-preview", 12.5),
    ],
)
def test_a_million_tokens_in_and_out(model, dollars):
    assert cost([called(model)]) == pytest.approx(dollars)


@pytest.mark.parametrize(
    "model",
    [
        "",
        "qwen3",
        "gpt-5-mini-turbo",
        "my-gpt-5",
        "gpt-5 ",
        "claude-opus-4-99",
        None,
    ],
)
def test_the_cost_of_an_unknown_model_is_unknown(model):
    assert cost([called(model)]) is None
    assert cost([called("gpt-5"), called(model)]) is None


def test_cached_tokens_are_a_part_of_the_prompt():
    assert cost([called("gpt-5-mini", 1_000_000, 400_000, 0)]) == pytest.approx(0.6 * 0.25 + 0.4 * 0.025)


def test_reasoning_is_a_part_of_the_output():
    call = called("gpt-5-mini", 0, 0, 1000, reasoning_tokens=900)
    assert cost([call]) == pytest.approx(0.002)


def test_calls_add_up():
    assert cost([called("gpt-5"), called("claude-sonnet-4-5", 100_000, 0, 0)]) == pytest.approx(11.25 + 0.3)
    assert cost([]) == 0


def test_a_call_without_reported_tokens_is_unknown_and_not_free():
    assert cost([called("gpt-5", 0, 0, 0)]) is None
    assert cost([{"model": "gpt-5"}]) is None


def test_the_built_in_model_is_free():
    assert cost([called("extractive", 0, 0, 0)]) == 0


def test_long_prompts_have_their_own_price():
    assert cost([called("gemini-2.5-pro", 200_000, 0, 0)]) == pytest.approx(0.25)
    assert cost([called("gemini-2.5-pro", 300_000, 0, 0)]) == pytest.approx(0.75)
    assert cost([called("claude-sonnet-4-5", 300_000, 0, 0)]) == pytest.approx(1.8)


def test_the_models_that_the_docs_name_have_prices():
    named = re.findall(r"`(?:openai|anthropic|google_genai):([\w.-]+)`", MODELS.read_text("utf-8"))
    chat = {name for name in named if "embedding" not in name}
    assert {"gpt-5-mini", "claude-sonnet-5-5", "gemini-2.5-flash"} <= chat
    assert all(cost([called(name)]) for name in chat)


def test_a_name_is_looked_up_with_the_provider_that_was_called():
    assert cost([called("deepseek-chat", provider="deepseek")])
    assert cost([called("gemini-2.5-flash", provider="google_genai")]) == pytest.approx(2.8)
    for provider in ("ollama", "openai", "huggingface"):  # somebody's own server
        assert cost([called("deepseek-r1", provider=provider)]) is None


def test_more_cached_tokens_than_tokens_are_all_of_them():
    assert cost([called("gpt-5-mini", 1_000_000, 2_000_000, 0)]) == pytest.approx(0.025)


def test_costs_go_by_the_list_that_is_installed():
    cost([called("gpt-5-mini")])
    assert not data_snapshot.get_snapshot().from_auto_update
    assert cite_prices() == f"genai-prices {version('genai-prices')}"


# --- a list of one's own ---


def test_a_list_of_ones_own_lies_over_the_providers(own):
    own({"gpt-5-mini": 1, "qwen3": 2})
    assert cost([called("gpt-5-mini-2025-08-07")]) == 2
    assert cost([called("qwen3")]) == 4
    assert cost([called("gpt-5")]) == pytest.approx(11.25)
    own({"gpt-*": 0})  # a pattern, too, counts before the providers' names
    assert cost([called("gpt-5-mini"), called("gpt-5", 0, 0, 0)]) == 0
    assert cost([called("qwen3")]) is None


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("qwen3-8b", 2),
        ("qwen3-8b-instruct", 4),
        ("qwen3-8b-instruct-2025-08-07", 4),
        ("qwen3-32b", 6),
        ("qwen3-32b-2025-08-07", 6),  # the name without its version, before a longer pattern
        ("Qwen/qwen3", 8),
        ("my-qwen", None),
        ("", None),
    ],
)
def test_names_may_be_patterns(own, model, dollars):
    own({"qwen*": 1, "qwen3-8b-*": 2, "qwen3-32b": 3, "qwen3-32b-*": 9, "Qwen/*": 4})
    assert cost([called(model)]) == dollars


def test_the_month_is_that_of_ones_own_list(own):
    providers = cite_prices()
    own({"qwen3": 1})
    assert cite_prices() == providers
    own({"qwen3": 1}, as_of="2031-05")
    assert cite_prices() == "2031-05"


def test_an_edited_list_counts_at_once(own, tmp_path):
    own({"qwen3": 1})
    assert cost([called("qwen3")]) == 2
    own({"qwen3": 2})
    os.utime(tmp_path / "prices.json", (1, 1))
    assert cost([called("qwen3")]) == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "Invalid JSON"),
        ("[]", "should be an object"),
        ("{}", "prices: Field required"),
        ('{"prices": [{"model": "x", "input": 1, "output": 1}]}', r"prices\.0\.cached_input: Field required"),
        ('{"prices": [{"model": "x", "input": "1", "cached_input": 1, "output": 1}]}', r"prices\.0\.input: .*number"),
        ('{"prices": [{"model": "x", "input": -1, "cached_input": 1, "output": 1}]}', r"prices\.0\.input: .*than"),
        ('{"prices": [], "price": []}', "price: Extra inputs"),
        ('{"prices": [], "as_of": "May"}', "as_of"),
    ],
)
def test_what_is_no_list_of_prices_is_told(tmp_path, monkeypatch, text, told):
    file = tmp_path / "mine.json"
    file.write_text(text)
    monkeypatch.setenv(PRICES_VARIABLE, str(file))
    with pytest.raises(InputError, match=rf"ARAG_PRICES is .*mine\.json.* not a valid price list \(.*{told}"):
        cost([called("gpt-5")])


def test_a_list_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(PRICES_VARIABLE, str(tmp_path / "none.json"))
    with pytest.raises(InputError, match=r"none\.json': there is no such file"):
        cite_prices()
    monkeypatch.setenv(PRICES_VARIABLE, str(tmp_path))
    with pytest.raises(InputError, match="cannot be read"):
        cite_prices()


@pytest.mark.parametrize(
    ("model", "provider", "is_priced"),
    [
        ("gemini-2.5-flash-001", "google_genai", True),
        ("claude-sonnet-4-5", "openai", True),
        ("claude-sonnet-4-5", "bedrock_converse", True),
        ("gpt-5-mini", "github", True),
        ("gpt-oss-20b", "openai", False),
        ("qwen3", "openai", False),
    ],
)
def test_what_only_its_maker_sells_has_a_price_by_any_server_and_open_weights_have_none(model, provider, is_priced):
    call = {"model": model, "provider": provider, "input_tokens": 1_000, "cached_tokens": 0, "output_tokens": 10}
    assert (cost([call]) is not None) == is_priced
