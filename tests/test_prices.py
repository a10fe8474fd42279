"""What calls cost, by the price list that is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from arag.models.prices import cost

MODELS = Path(__file__).parents[1] / "docs" / "models.md"


def called(model, input_tokens=1_000_000, cached_tokens=0, output_tokens=1_000_000, provider="openai", **others):
    counts = {"input_tokens": input_tokens, "cached_tokens": cached_tokens, "output_tokens": output_tokens}
    return {"model": model, "provider": provider, **counts, **others}


@pytest.mark.parametrize(
    ("model", "provider", "dollars"),
    [
        ("gpt-5-mini-2025-08-07", "openai", 2.25),
        ("models/gemini-2.5-flash-lite", "google_genai", 0.5),
        ("extractive", "", 0),  # the built-in model
        ("my-gpt-5", "openai", None),
        ("gpt-oss-20b", "openai", None),  # perhaps on the user's own server
        ("qwen3", "ollama", None),
        ("gpt-5", "", None),
        (None, None, None),
    ],
)
def test_a_million_tokens_in_and_out_have_the_price_of_their_provider_if_it_is_known(model, provider, dollars):
    assert cost([called(model, provider=provider)]) == (dollars if dollars is None else pytest.approx(dollars))


def test_cached_tokens_are_a_part_of_the_prompt_and_reasoning_of_the_output():
    assert cost([called("gpt-5-mini", 1_000_000, 400_000, 0)]) == pytest.approx(0.6 * 0.25 + 0.4 * 0.025)
    assert cost([called("gpt-5-mini", 1_000_000, 2_000_000, 0)]) == pytest.approx(0.025)
    assert cost([called("gpt-5-mini", 0, 0, 1000, reasoning_tokens=900)]) == pytest.approx(0.002)
    assert cost([called("gpt-5"), called("gpt-5-mini", 100_000, 0, 0)]) == pytest.approx(11.25 + 0.025)
    assert cost([called("gpt-5"), called("my-gpt-5")]) is None
    assert cost([]) == 0


def test_a_call_without_reported_tokens_is_unknown():
    assert cost([called("gpt-5", 0, 0, 0)]) is None
    assert cost([{"model": "gpt-5", "provider": "openai"}]) is None


def test_the_models_that_the_docs_name_have_prices():
    named = set(re.findall(r"`(openai|anthropic|google_genai):([\w.-]+)`", MODELS.read_text("utf-8")))
    assert {("openai", "gpt-5-mini"), ("anthropic", "claude-sonnet-5-5"), ("google_genai", "gemini-2.5-flash")} <= named
    assert all(cost([called(model, provider=provider)]) for provider, model in named)


def test_costs_go_by_the_list_that_is_installed():
    cost([called("gpt-5-mini")])
    assert not data_snapshot.get_snapshot().from_auto_update
