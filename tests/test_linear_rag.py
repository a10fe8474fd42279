"""LinearRAG: the reference's figures, and the method on a small corpus."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from arag.evaluation.methods.linear_rag import EntityGraph, LinearSettings, rate_passages, spread

CASES = json.loads((Path(__file__).parent / "parity" / "linear_rag.json").read_text())["cases"]


# --- the reference's figures ---


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["question"])
def test_the_scores_are_the_reference_s(case):
    texts = list(case["vectors"]["entities"])
    numbers = {text: number for number, text in enumerate(texts)}
    vectors = {kind: np.array(list(found.values())) for kind, found in case["vectors"].items() if isinstance(found, dict)}
    question, given = np.array(case["vectors"]["question"]), case["settings"]
    settings = LinearSettings(
        max_iterations=given["max_iterations"],
        threshold=given["iteration_threshold"],
        passage_ratio=given["passage_ratio"],
        sentences=given["top_k_sentence"],
    )
    graph = EntityGraph(
        case["passages"],
        texts,
        [[numbers[text] for text in found] for found in case["passage_entities"]],
        [[numbers[text] for text in found] for _, found in case["sentence_entities"]],
        [(number, number + 1) for number in range(len(case["passages"]) - 1)],
    )
    compared = vectors["question_entities"] @ vectors["entities"].T
    seeds = [(int(row.argmax()), float(row.max())) for row in compared]
    assert [texts[entity] for entity, _ in seeds] == [text for text, _ in case["expected"]["seeds"]]
    assert [cosine for _, cosine in seeds] == pytest.approx([score for _, score in case["expected"]["seeds"]], abs=1e-9)

    sentences = np.array([case["vectors"]["sentences"][text] for text, _ in case["sentence_entities"]])
    weights, active = spread(
        dict(seeds),
        graph.sentences_of,
        graph.entities_of,
        lambda wanted: sentences[wanted] @ question,
        settings,
        order=list,  # as they came: the reference's
    )
    expected = case["expected"]
    assert {texts[entity]: weight for entity, weight in weights.items()} == pytest.approx(
        expected["entity_weights"], abs=1e-9
    )
    assert {texts[entity] for entity in active} == set(expected["active"])
    for entity, (score, tier) in active.items():
        assert (score, tier) == pytest.approx(expected["active"][texts[entity]], abs=1e-9)

    similarities = np.array(case["vectors"]["passages"]) @ question
    rated = rate_passages(similarities, active, graph.count, settings.passage_ratio)
    assert graph.rank(rated, weights) == pytest.approx(expected["passage_scores"], abs=1e-9)
