"""The other side of the comparison, in a process of its own: the authors' code, or plain loops that do the same.

    python benchmarks/speed_alternative.py [--authors DIR]

It takes orders and answers them as JSON, one a line, on stdin and stdout. The authors' package has the name of this
one: here, theirs is imported, and nothing of ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from speed_orders import carry_out, memory, timed


class _Authors:
    """The authors' two search tools and their build_index."""

    def __init__(self, checkout: Path) -> None:
        import arag
        from arag.core.context import AgentContext

        file = Path(arag.__file__ or "")
        if checkout not in file.parents:
            raise RuntimeError(f"{file} was imported in place of the package in {checkout}")
        self._context = AgentContext
        script = importlib.util.spec_from_file_location("build_index", checkout / "scripts" / "build_index.py")
        assert script is not None
        assert script.loader is not None
        self._script = importlib.util.module_from_spec(script)
        script.loader.exec_module(self._script)

    def load_keyword_search(self, chunks: str) -> Callable[[list[str]], object]:
        from arag.tools.keyword_search import KeywordSearchTool

        tool = KeywordSearchTool(chunks)
        return lambda keywords: tool.execute(self._context(), keywords=keywords)

    def write_vectors(self, chunks: str, sentences: list[tuple[str, str]], vectors: str, folder: str) -> None:
        import pickle

        import numpy as np

        index = {
            "sentences": [text for text, _ in sentences],
            "embeddings": np.load(vectors),
            "sentence_to_chunk": [chunk_id for _, chunk_id in sentences],
            "chunks": {chunk["id"]: chunk for chunk in self._script.load_chunks(chunks)},
            "model_name": "",
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        with (Path(folder) / "sentence_index.pkl").open("wb") as file:
            pickle.dump(index, file)

    def load_semantic_search(self, chunks: str, folder: str, model: str) -> Callable[[str], object]:
        from arag.tools.semantic_search import SemanticSearchTool

        tool = SemanticSearchTool(chunks, folder, model)
        return lambda query: tool.execute(self._context(), query=query)

    def build_index(self, chunks: str, folder: str, model: str) -> int:
        self._script.build_index(chunks, folder, model)
        return sum(len(self._script.split_sentences(chunk["text"])) for chunk in self._script.load_chunks(chunks))


class _Plain:
    """Plain implementations of the same loops."""

    def load_keyword_search(self, chunks: str) -> Callable[[list[str]], object]:
        held = _read_chunks(chunks)

        def search(keywords: list[str]) -> object:
            needles = [keyword.lower() for keyword in keywords]
            scored = []
            for chunk_id, text in held:
                lowered = text.lower()
                found = [needle for needle in needles if needle in lowered]
                if found:
                    score = sum(lowered.count(needle) * len(needle) for needle in found)
                    parts = [part.strip() for part in re.split(r"[.!?\n]+", text)]
                    shown = [part for part in parts if any(needle in part.lower() for needle in found)]
                    scored.append((score, chunk_id, shown[:5]))
            return sorted(scored, key=lambda entry: -entry[0])[:5]

        return search

    def write_vectors(self, chunks: str, sentences: list[tuple[str, str]], vectors: str, folder: str) -> None:
        import numpy as np

        del chunks
        Path(folder).mkdir(parents=True, exist_ok=True)
        np.save(Path(folder) / "vectors.npy", np.load(vectors))
        (Path(folder) / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")

    def load_semantic_search(self, chunks: str, folder: str, model: str) -> Callable[[str], object]:
        import numpy as np
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(model)
        texts = dict(_read_chunks(chunks))
        sentences = json.loads((Path(folder) / "sentences.json").read_text(encoding="utf-8"))
        vectors = np.load(Path(folder) / "vectors.npy")

        def search(query: str) -> object:
            similarities = vectors @ encoder.encode([query], normalize_embeddings=True)[0]
            found: dict[str, list[tuple[float, str]]] = {}
            for place in np.argsort(similarities)[::-1][:15]:
                text, chunk_id = sentences[place]
                found.setdefault(chunk_id, []).append((float(similarities[place]), text))
            best = sorted(found.items(), key=lambda entry: -max(entry[1])[0])[:5]
            return [(i, sorted(text for _, text in some), len(texts[i])) for i, some in best]

        return search

    def build_index(self, chunks: str, folder: str, model: str) -> int:
        import numpy as np
        from sentence_transformers import SentenceTransformer

        sentences = [
            (part.strip(), chunk_id)
            for chunk_id, text in _read_chunks(chunks)
            for part in re.split(r"[.!?\n]+", text)
            if len(part.strip()) > 10
        ]
        encoder = SentenceTransformer(model)
        vectors = encoder.encode([text for text, _ in sentences], normalize_embeddings=True)
        Path(folder).mkdir(parents=True, exist_ok=True)
        np.save(Path(folder) / "vectors.npy", vectors)
        (Path(folder) / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")
        return len(sentences)


def _read_chunks(file: str) -> list[tuple[str, str]]:
    return [(chunk["id"], chunk["text"]) for chunk in json.loads(Path(file).read_text(encoding="utf-8"))]


class _Orders:
    """Carries out orders, and says how long each took."""

    def __init__(self, code: _Authors | _Plain) -> None:
        self._code = code
        self._keyword: Callable[[list[str]], object] | None = None
        self._semantic: Callable[[str], object] | None = None

    def keyword_load(self, chunks: str) -> dict[str, Any]:
        self._keyword = None
        began = time.perf_counter()
        self._keyword = self._code.load_keyword_search(chunks)
        return {"seconds": time.perf_counter() - began, "memory": memory()}

    def keyword(self, keywords: list[str]) -> dict[str, Any]:
        assert self._keyword is not None
        return {"seconds": timed(self._keyword, keywords)}

    def semantic_write(self, chunks: str, sentences: str, vectors: str, folder: str) -> dict[str, Any]:
        pairs = json.loads(Path(sentences).read_text(encoding="utf-8"))
        self._code.write_vectors(chunks, pairs, vectors, folder)
        return {}

    def semantic_load(self, chunks: str, folder: str, model: str) -> dict[str, Any]:
        self._semantic = None
        began = time.perf_counter()
        self._semantic = self._code.load_semantic_search(chunks, folder, model)
        return {"seconds": time.perf_counter() - began, "memory": memory()}

    def semantic(self, query: str) -> dict[str, Any]:
        assert self._semantic is not None
        return {"seconds": timed(self._semantic, query)}

    def build_index(self, chunks: str, folder: str, model: str) -> dict[str, Any]:
        began = time.perf_counter()
        sentences = self._code.build_index(chunks, folder, model)
        return {"seconds": time.perf_counter() - began, "sentences": sentences}


def main() -> None:
    """Carry out orders until there are no more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--authors", type=Path)
    authors = parser.parse_args().authors
    carry_out(_Orders(_Plain() if authors is None else _Authors(authors)))


if __name__ == "__main__":
    main()
