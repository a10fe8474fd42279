"""Makes `arag/models/language_axes.npy`: the directions in which multilingual-e5-small writes a sentence's language.

    python benchmarks/language_axes/make.py

The model puts sentences of one language near each other, whatever they say. So a question finds sentences of its own
language before the answer in another one. `sentences.txt` has ten sentences in 27 languages: as all languages say the
same, the means of their vectors differ by the language only. The main directions of these means are the axes; vectors
are used without them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag.models.names import MULTILINGUAL_EMBEDDER
from arag.models.onnx import load_onnx
from arag.models.onnx_models import AXES_FILE, ONNX_MODELS

SENTENCES = Path(__file__).with_name("sentences.txt")
AXES = 20  # of at most 26; with 8, a quarter fewer answers in other languages are found first, with 26 as many


def read_sentences() -> dict[str, list[str]]:
    """Return the sentences by language."""
    sentences: dict[str, list[str]] = {}
    for block in SENTENCES.read_text(encoding="utf-8").split("\n\n"):
        language, *lines = block.splitlines()
        sentences[language] = lines
    return sentences


def find_axes() -> NDArray[np.float32]:
    """Return the axes, of length one and at right angles, shape (axes, dimension)."""
    model = ONNX_MODELS[MULTILINGUAL_EMBEDDER]
    embeddings = load_onnx(model, model.package.requirement)
    means = [np.mean(embeddings.embed_documents(lines), axis=0) for lines in read_sentences().values()]
    centred = np.stack(means) - np.mean(means, axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return directions[:AXES].astype(np.float32)


if __name__ == "__main__":
    np.save(AXES_FILE, find_axes())
