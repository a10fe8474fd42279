"""Counts the model calls that methods make before the first question: what is announced, and what it comes to.

    python benchmarks/index_calls.py --data DIR [--corpus NAME] [--documents N] [--work DIR]

A stand-in for a language model finds the capitalised names of a chunk, at most 20, and joins each with the next. Real
models find about as many, and say more about them. The folder DIR/NAME holds `corpus.jsonl`, of which the first N
documents are read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from rich.console import Console
from rich.table import Table

from arag.evaluation.methods import Options, method
from arag.evaluation.preparation import prepare
from arag.evaluation.store import Store
from arag.evaluation.workplace import Workplace
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import Index, open_index
from arag.retrieval.tokens import load_token_counter

_NAME = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*")
_NAMES_PER_CHUNK = 20


class NameReader(BaseChatModel):
    """Finds names instead of reading."""

    @property
    def _llm_type(self) -> str:
        return "names"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Remember which form a reply has."""
        return self.bind(forms=[getattr(tool, "__name__", "") for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        reply = _reply(messages, options.get("forms", []))
        given, written = load_token_counter().count_batch([" ".join(str(m.content) for m in messages), reply])
        usage = {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply, usage_metadata=usage))])


def _reply(messages: list[BaseMessage], forms: list[str]) -> str:
    asked, text = messages[0].text, messages[-1].text
    names = list(dict.fromkeys(_NAME.findall(text)))[:_NAMES_PER_CHUNK]
    if forms == ["CommunityReport"]:
        finding = {"summary": "They are named together.", "explanation": "In the same text."}
        about = {"title": names[0] if names else "Names", "summary": "Names.", "rating": 5, "rating_explanation": "-"}
        return json.dumps({**about, "findings": [finding]})
    if forms and len(messages) > 2:  # what was missed by the first reading
        return json.dumps({"entities": [], "relationships": []})
    if forms:
        entities = [{"name": n, "type": "person", "description": _sentence_with(n, text)} for n in names]
        pairs = [
            {"source": a, "target": b, "description": f"{a} stands beside {b}.", "strength": 5}
            for a, b in pairwise(names)
        ]
        return json.dumps({"entities": entities, "relationships": pairs})
    if "triples" in asked:
        return json.dumps({"triples": [[a, "stands beside", b] for a, b in pairwise(names)]})
    return json.dumps({"entities": names}) if "entities" in asked else text[:400]


def _sentence_with(name: str, text: str) -> str:
    begin = text.index(name)
    return text[begin : begin + 120].replace("\n", " ")


def measure(index: Index, name: str, folder: Path) -> list[str]:
    """Do a method's index-time work, and return its row of the table."""
    announced: list[str] = []
    chunks = index.info().chunks
    place = Workplace(
        index, NameReader(), Options(), Store(folder / f"{name}.methods"), concurrency=2, on_announced=announced.append
    )
    began = time.perf_counter()
    done = asyncio.run(prepare(method(name), place))
    assert done is not None
    before = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", announced[0])[:2]]
    after = [done["usage"]["model_calls"], done["usage"]["input_tokens"]]
    per_thousand = [f"{1000 * number / chunks:,.0f}" for number in (*before, *after)]
    return [name, *per_thousand, f"{time.perf_counter() - began:.0f} s"]


def main() -> None:
    """Measure the methods that read the index with a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", default="musique")
    parser.add_argument("--documents", type=int, default=2_000, help="how many documents of the corpus")
    parser.add_argument("--work", type=Path, help="keep the index here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.work or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / "part.jsonl"
        with (options.data / options.corpus / "corpus.jsonl").open(encoding="utf-8") as lines:
            part.write_text("".join(islice(lines, options.documents)), encoding="utf-8")
        run_ingest(part, folder / "index")
        with open_index(folder / "index") as index:
            index.load_embedder()
            table = Table(title=f"{options.corpus}: {index.info().chunks:,} chunks; figures are per 1,000 chunks")
            for column in ("method", "calls announced", "input tokens", "calls made", "input tokens", "time in all"):
                table.add_column(column, justify="right")
            for name in ("hipporag2", "graphrag"):
                table.add_row(*measure(index, name, Path(scratch)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
