"""Vectors of multilingual-e5-small are without the axes of languages, so that other languages are found as well."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from arag import ingest, open_index
from arag.models.embedders import load_embedder
from arag.models.names import MULTILINGUAL_EMBEDDER
from arag.models.onnx_models import AXES_FILE, choose_weights, load_axes

pytestmark = pytest.mark.heavy

# Invented facts, each in one language, and a question about it in another one.
FACTS = {
    "zh": ("钟楼的大钟里住着一窝燕子，修缮工程因此推迟了两个月。", "Why were the works on the bell tower delayed?"),
    "de": ("Der Müller verlor die Wette, weil ihm eine Ziege den Hut fraß.", "Почему мельник проиграл пари?"),
    "es": ("La ermita paga su alquiler cada año con once litros de aceite.", "那座小教堂每年用什么付租金？"),
    "ru": (
        "Смотритель музея здоровается по утрам с каждым самоваром.",
        "Wer begrüßt jeden Morgen die Ausstellungsstücke?",
    ),
    "ja": ("豆腐屋の三代目は笛の代わりにトロンボーンを吹いて回る。", "Quel instrument le marchand de tofu joue-t-il ?"),
    "ar": ("تحمل القافلة ثلاثمئة كتاب على ظهور الجمال إلى القرى البعيدة.", "How do books reach the remote villages?"),
    "fr": (
        "L'hôpital opéra toute la nuit à la lumière des phares de douze taxis.",
        "病院は停電の夜、何の光で手術をしましたか。",
    ),
    "en": (
        "The plumbers' choir tunes itself by striking a cast-iron bathtub.",
        "¿Qué golpean los fontaneros del coro para afinarse?",
    ),
}


@pytest.fixture(scope="module")
def model():
    embedder = load_embedder(MULTILINGUAL_EMBEDDER)
    embedder.load()
    return embedder


def test_the_axes_are_those_of_the_sentences_that_they_are_made_from(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks" / "language_axes"))
    import make

    assert len(make.read_sentences()) > make.AXES
    assert {len(lines) for lines in make.read_sentences().values()} == {10}
    made = make.find_axes()
    stored = load_axes(choose_weights(MULTILINGUAL_EMBEDDER))
    assert stored.dtype == np.float32
    # Each axis may point the other way; processors round vectors differently.
    assert np.abs(np.abs(np.sum(made * stored, axis=1)) - 1).max() < 1e-2
    assert np.abs(stored @ stored.T - np.eye(len(stored))).max() < 1e-5
    del sys.modules["make"]


def test_vectors_have_nothing_along_the_axes_and_length_one(model):
    vectors = np.vstack([model.embed_query("Where is the lamp?"), model.embed_documents(["灯在哪里？", "", "1"])])
    assert np.abs(vectors @ np.load(AXES_FILE).T).max() < 1e-6
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)


def test_questions_in_one_language_find_answers_in_another_one_first(tmp_path, model):
    records = [{"id": language, "text": text} for language, (text, _) in FACTS.items()]
    with ingest(records, tmp_path / "index", embedder=model) as index:
        found = {
            name: index.semantic_search(question, 1).hits[0].chunk.document_id for name, (_, question) in FACTS.items()
        }
    assert found == {name: name for name in FACTS}
    assert open_index(tmp_path / "index").info().weights.endswith("language-neutral")
