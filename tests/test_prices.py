"""What calls cost, by the price list that is installed."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from arag.models.prices import cite_prices, cost

MODELS = Path(__file__).parents[1] / "docs" / "models.md"


def called(model, input_tokens=1_000_000, cached_tokens=0, output_tokens=1_000_000, **others):
    counts = {"input_tokens": input_tokens, "cached_tokens": cached_tokens, "output_tokens": output_tokens}
    return {"model": model, **counts, **others}


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-5-mini-2025-08-07", 2.25),
        ("claude-haiku-4-5@20251001", 6),
        ("models/gemini-2.5-flash-lite", 0.5),
    ],
)
def test_a_million_tokens_in_and_out(model, dollars):
    assert cost([called(model)]) == pytest.approx(dollars)


@pytest.mark.parametrize("model", ["", "my-gpt-5", "claude-opus-4-99", None])
def test_the_cost_of_an_unknown_model_is_unknown(model):
    assert cost([called(model)]) is None
    assert cost([called("gpt-5"), called(model)]) is None


def test_cached_tokens_are_a_part_of_the_prompt_and_reasoning_of_the_output():
    assert cost([called("gpt-5-mini", 1_000_000, 400_000, 0)]) == pytest.approx(0.6 * 0.25 + 0.4 * 0.025)
    assert cost([called("gpt-5-mini", 1_000_000, 2_000_000, 0)]) == pytest.approx(0.025)
    assert cost([called("gpt-5-mini", 0, 0, 1000, reasoning_tokens=900)]) == pytest.approx(0.002)
    assert cost([called("gpt-5"), called("claude-sonnet-4-5", 100_000, 0, 0)]) == pytest.approx(11.25 + 0.3)
    assert cost([]) == 0


def test_a_call_without_reported_tokens_is_unknown_and_the_built_in_model_free():
    assert cost([called("gpt-5", 0, 0, 0)]) is None
    assert cost([{"model": "gpt-5"}]) is None
    assert cost([called("extractive", 0, 0, 0)]) == 0


def test_the_models_that_the_docs_name_have_prices():
    named = re.findall(r"`(?:openai|anthropic|google_genai):([\w.-]+)`", MODELS.read_text("utf-8"))
    chat = {name for name in named if "embedding" not in name}
    assert {"gpt-5-mini", "claude-sonnet-5-5", "gemini-2.5-flash"} <= chat
    assert all(cost([called(name)]) for name in chat)


def test_costs_go_by_the_list_that_is_installed():
    cost([called("gpt-5-mini")])
    assert not data_snapshot.get_snapshot().from_auto_update
    assert cite_prices() == f"genai-prices {version('genai-prices')}"


@pytest.mark.parametrize(
    ("model", "provider", "is_priced"),
    [
        ("deepseek-chat", "deepseek", True),
        ("deepseek-r1", "ollama", False),
        ("claude-sonnet-4-5", "openai", True),
        ("gpt-5-mini", "github", True),
        ("gpt-oss-20b", "openai", False),
        ("qwen3", "openai", False),
    ],
)
def test_what_only_its_maker_sells_has_a_price_by_any_server_and_open_weights_only_by_their_seller(
    model, provider, is_priced
):
    assert (cost([called(model, provider=provider)]) is not None) == is_priced
