from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from arag.models.prices import cite_prices, cost

MODELS = Path(__file__).parents[1] / "docs" / "models.md"


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
