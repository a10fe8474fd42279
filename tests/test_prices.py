from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

from arag.graph.prices import cost, prices_as_of


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
        "gpt-5-2",
        "gpt-4o-audio-preview",
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


def test_the_list_is_dated_and_well_formed():
    assert re.fullmatch(r"20\d\d-\d\d", prices_as_of())
    prices = json.loads(files("arag.graph").joinpath("prices.json").read_text("utf-8"))["prices"]
    rows = [(price["model"], price.get("up_to_input_tokens")) for price in prices]
    assert len(rows) == len(set(rows))
    for price in prices:
        assert 0 <= price["cached_input"] <= price["input"] <= price["output"]
