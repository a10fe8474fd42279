"""Replays recorded tool calls against the present tools, without a model: how much text they show, and its worth.

    python benchmarks/replay.py record RUN [RUN ...] --to FILE
    python benchmarks/replay.py FILE --index DIR [--json OUT]
    python benchmarks/replay.py compare A.json B.json
    python benchmarks/replay.py --data DIR [--work DIR]

`record` takes the calls and the gold documents from folders of `arag eval run`. A replay makes each question's calls in
their order, with the conversation so far, as an agent would: whatever the tools then show, the calls stay the same.
With `--data`, the files in `recorded` are replayed whose corpora are there; a corpus is as in `corpora.py`, and its
index is kept in `--work`.

- A unit of gold is a document or, where pages are known, a page. It is shown when a chunk of it is.
- A call shows nothing new if all of its chunks were shown before, and none is shown in full for the first time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from data import find_corpora
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from rich.console import Console
from rich.table import Table

from arag.evaluation.datasets import Source
from arag.evaluation.plan import load_plan
from arag.evaluation.records import find_gold, find_sources, load_records
from arag.evaluation.scores import contains, share
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import Index, open_index
from arag.retrieval.tools.seen import find_artifacts
from arag.retrieval.tools.sets import make_tools
from arag.text.tokens import count_tokens

RECORDED = Path(__file__).parent / "recorded"
_NO_ARTIFACT: dict[str, Any] = {"chunk_ids": [], "new_chunks": [], "evidence_tokens": 0}  # of a result that is an error


@dataclass
class Replay:
    """What the calls of one question show."""

    id: str
    counts: Counter[str] = field(default_factory=Counter)
    gold_shown: float | None = None
    calls_until_all: int | None = None
    """Calls until all gold is shown."""
    answer_shown: bool | None = None
    """Whether the gold that holds the answer is shown; all gold if none of it holds the answer word for word."""


def record_calls(runs: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the calls and the gold of each question that A-RAG answered in runs."""
    for run in runs:
        for record in load_records(run).get("arag", {}).values():
            if record["error"] is None:
                yield {
                    "corpus": Path(load_plan(run).index).name,
                    "id": record["question_id"],
                    "question": record["question"],
                    "answers": [record["answer"], *record["aliases"]],
                    "gold": find_gold(record),
                    "calls": [{"tool": entry["tool"], "args": entry["arguments"]} for entry in record["trace"]],
                }


def read_recorded(file: Path) -> list[dict[str, Any]]:
    """Read a file of recorded calls."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]


# --- replaying ---


def replay(recorded: Sequence[Mapping[str, Any]], index: Index) -> list[Replay]:
    """Make the recorded calls of each question."""
    tools = {tool.name: tool for tool in make_tools(index, names="paper")}
    golds = [{unit if isinstance(unit, str) else (unit[0], unit[1]) for unit in one["gold"]} for one in recorded]
    texts: dict[Source, str] = defaultdict(str)
    for chunk_id in index.chunk_ids() if any(golds) else ():
        for source in find_sources(index, [chunk_id]) & set[Source]().union(*golds):
            texts[source] += index.read(chunk_id).chunks[0].text
    replays = []
    for one, gold in zip(recorded, golds, strict=True):
        holding = {unit for unit in gold if contains(texts[unit], one["answers"])}
        replays.append(_replay_question(one, gold, holding or gold, index, tools))
    return replays


def _replay_question(
    recorded: Mapping[str, Any], gold: set[Source], holding: set[Source], index: Index, tools: Mapping[str, BaseTool]
) -> Replay:
    result = Replay(recorded["id"])
    messages: list[AnyMessage] = [HumanMessage(recorded["question"])]
    shown: set[str] = set()
    seen: set[Source] = set()  # of the gold
    for number, recorded_call in enumerate(recorded["calls"], start=1):
        name = recorded_call["tool"]
        call = ToolCall(name=name, args=recorded_call["args"], id=str(number), type="tool_call")
        answer = _call(tools, call, messages)
        messages += [AIMessage("", tool_calls=[call]), answer]
        artifact = next(find_artifacts([answer]), _NO_ARTIFACT)
        chunk_ids, tokens, is_error = artifact["chunk_ids"], count_tokens(answer.text), int(answer.status == "error")
        gained = (find_sources(index, chunk_ids) & gold) - seen
        result.counts.update(
            {
                "calls": 1,
                "errors": is_error,
                "evidence tokens": artifact["evidence_tokens"],
                "tokens of results": tokens,
                "calls that show nothing new": int(not artifact["new_chunks"] and shown.issuperset(chunk_ids)),
                f"{name}: calls": 1,
                f"{name}: errors": is_error,
                f"{name}: tokens of results": tokens,
            }
        )
        shown.update(chunk_ids)
        seen |= gained
        if gained and seen == gold:
            result.calls_until_all = number
    if gold:
        result.gold_shown = share(gold, seen)
        result.answer_shown = holding <= seen
    return result


def _call(tools: Mapping[str, BaseTool], call: ToolCall, messages: Sequence[AnyMessage]) -> ToolMessage:
    if call["name"] not in tools:
        return ToolMessage(f"There is no tool {call['name']}.", tool_call_id=call["id"], status="error")
    # An agent's graph fills in `messages`, the conversation so far.
    answer = tools[call["name"]].invoke({**call, "args": {**call["args"], "messages": list(messages)}})
    assert isinstance(answer, ToolMessage)
    return answer


# --- figures ---


def summarise(replays: Sequence[Replay]) -> dict[str, Any]:
    """Return the figures of a replay as plain values, by their names in the table."""
    total: Counter[str] = Counter()
    for one in replays:
        total.update(one.counts)
    golden = [one for one in replays if one.gold_shown is not None]
    complete = [one.calls_until_all for one in golden if one.calls_until_all is not None]
    figures: dict[str, float | None] = {"questions": len(replays)}
    for name in ("evidence tokens", "tokens of results"):
        figures[f"{name} a question, mean"] = mean(one.counts[name] for one in replays)
        figures[f"{name} a question, median"] = median(one.counts[name] for one in replays)
    figures |= {
        "questions with gold": len(golden),
        "gold shown a question, %": 100 * mean(one.gold_shown or 0 for one in golden) if golden else None,
        "questions with all gold shown": len(complete),
        "calls until all gold is shown, mean": mean(complete) if complete else None,
        "questions whose answer's gold is never shown": sum(not one.answer_shown for one in golden),
        **{name: total[name] for name in total if ":" not in name},
        **{name: total[name] for name in sorted(total) if ":" in name},
    }
    return {"figures": figures, "questions": [vars(one) for one in replays]}


def show(summaries: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the figures of one replay, or of two beside each other."""
    figures = [summary["figures"] for summary in summaries.values()]
    table = Table("", *summaries, *["difference"][: len(figures) - 1])
    for name in dict.fromkeys(name for each in figures for name in each):
        values = [each.get(name) for each in figures]
        if len(values) == 2:
            values.append(None if None in values else values[1] - values[0])
        table.add_row(name, *map(_write, values))
    for column in table.columns[1:]:
        column.justify = "right"
    Console(width=120).print(table)


def _write(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def replay_file(file: Path, folder: Path) -> dict[str, Any]:
    """Replay a file of recorded calls on an index, print the figures and return them."""
    with open_index(folder) as index:
        summary = summarise(replay(read_recorded(file), index))
    print(f"{file.stem}, in the index {folder}")
    show({"": summary})
    return summary


def replay_corpora(data: Path, work: Path) -> None:
    """Replay the files in `recorded` whose corpora are there."""
    corpora = find_corpora(data)
    for file in sorted(RECORDED.glob("*.jsonl")):
        name = read_recorded(file)[0]["corpus"]
        parts = name.split("+")
        if corpora.keys() >= set(parts):
            run_ingest([corpora[part] for part in parts], work / name)
            replay_file(file, work / name)
        else:
            print(f"{file.name} is left out: there is no corpus {name} in {data}")


def main() -> None:
    """Record, compare or replay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "record":
        parser.add_argument("runs", nargs="+", type=Path)
        parser.add_argument("--to", type=Path, required=True)
        options = parser.parse_args(sys.argv[2:])
        lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in record_calls(options.runs)]
        options.to.write_text("".join(lines), encoding="utf-8")
        print(f"{len(lines)} questions: {options.to}")
    elif command == "compare":
        parser.add_argument("files", nargs=2, type=Path)
        first, second = (json.loads(file.read_text("utf-8")) for file in parser.parse_args(sys.argv[2:]).files)
        show({"first": first, "second": second})
    else:
        parser.add_argument("file", nargs="?", type=Path)
        parser.add_argument("--index", type=Path)
        parser.add_argument("--json", type=Path, help="write the figures here, too, with those of each question")
        parser.add_argument("--data", type=Path)
        parser.add_argument("--work", type=Path)
        options = parser.parse_args()
        if options.data is not None:
            with tempfile.TemporaryDirectory() as scratch:
                replay_corpora(options.data, options.work or Path(scratch))
        elif options.file is None or options.index is None:
            parser.error("give a recorded file and --index, or --data")
        else:
            summary = replay_file(options.file, options.index)
            if options.json is not None:
                options.json.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
