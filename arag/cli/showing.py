"""Output of `arag ingest`, `arag copy` and `arag ask`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import Progress as Bars

from arag.terminal import err, out, styled

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage
    from rich.progress import TaskID

    from arag.graph.state import Citation, State
    from arag.ingest.documents import IngestSummary
    from arag.ingest.progress import Progress
    from arag.retrieval.storage import IndexStore

_MAX_QUOTE = 200  # characters of a quoted sentence
_MAX_SKIPPED = 10  # files named for each reason


def show_progress(bars: Bars) -> Callable[[Progress], None]:
    """Return a function that shows the progress of an ingestion or a copy: a bar for each step.

    Args:
        bars: The bars, with a column for the field `figures`.
    """
    tasks: dict[str, TaskID] = {}

    def show(now: Progress) -> None:
        step = now.phase if now.phase in {"copying", "publishing"} else "files"
        if step not in tasks:
            tasks[step] = bars.add_task("", total=None, figures="")
        phase, _, figures = str(replace(now, seconds_left=None)).partition(": ")
        figures = figures.replace(" documents, ", " documents\n")  # a terminal may have 80 columns
        total = None if now.total is None else max(now.total, 1)
        bars.update(tasks[step], description=phase, completed=now.done, total=total, figures=figures)

    return show


def show_summary(summary: IngestSummary, index: IndexStore) -> None:
    """Print a summary of an ingestion."""
    out.print(
        f"Read {_count(summary.read, 'document')}: {summary.written:,} new or changed, "
        f"{_count(summary.embedded, 'sentence')} embedded, {_count(summary.removed, 'document')} removed, "
        f"{summary.seconds:.1f} s."
    )
    out.print(
        styled(
            (str(index.location), "bold"),
            f" holds {_count(summary.documents, 'document')}, {_count(summary.chunks, 'chunk')}, "
            f"{_count(summary.sentences, 'sentence')}.",
        )
    )
    if summary.absent:
        out.print(
            f"Kept, but not read this time: {_count(summary.absent, 'document')}. --prune removes those that are gone "
            "from the given paths; `arag remove` removes any."
        )
    skipped: dict[str, list[str]] = {}
    for problem in summary.skipped:
        skipped.setdefault(problem.reason, []).append(problem.source)
    for reason, files in skipped.items():
        more = f" and {len(files) - _MAX_SKIPPED:,} more, which --json names" if len(files) > _MAX_SKIPPED else ""
        told = f" {reason} ({len(files):,}): {', '.join(files[:_MAX_SKIPPED])}{more}"
        err.print(styled(("Skipped:", "yellow"), told))
    for problem in summary.problems:
        err.print(styled(("Left out:", "yellow"), f" {problem}"))


class RunView:
    """Shows a run as it happens: what the model writes, and each tool call with one line for its result."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._text = ""  # of the message that was shown last
        self._step = 0
        self._arguments: dict[str | None, Any] = {}  # of the last message's calls, by their ids

    def show(self, mode: str, event: Any) -> None:
        """Show what a run streams in the modes `messages` and `updates`."""
        if mode == "messages":
            message, _ = event
            if message.type in {"ai", "AIMessageChunk"}:
                self._show_piece(message.id, message.text)
            return
        self.end_line()
        for node, update in event.items():
            if node == "agent":
                self._step += 1
                message = update["messages"][-1]
                self._arguments = {
                    call["id"]: call["args"] for call in (*message.tool_calls, *message.invalid_tool_calls)
                }
            elif node == "tools":
                for result in update["messages"]:
                    self._show_call(result)
            elif node == "force_answer":
                out.print(f"   Answer forced: {update['stop_reason']}.", style="yellow")

    def _show_call(self, result: ToolMessage) -> None:
        given = self._arguments.get(result.tool_call_id)
        arguments = given if isinstance(given, dict) else {"arguments": given}
        shown = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
        out.print(styled((f"{self._step:>2}", "dim"), " ", (result.name or "", "bold cyan"), f" {shown}"))
        artifact = result.artifact if isinstance(result.artifact, dict) else {}
        chunks = ", ".join(artifact.get("chunk_ids", ())) or result.text.partition("\n")[0]
        tokens = artifact.get("retrieved_tokens", 0)
        out.print(f"   {chunks} ({tokens:,} tokens)", style="red" if result.status == "error" else "dim")

    def end_line(self) -> None:
        """End the line that the model was writing."""
        if self._text and not self._text.endswith("\n"):
            out.print()
            self._text += "\n"

    def show_end(self, state: State) -> None:
        """Show the answer unless the model has just written it, its sources, and the run's counts."""
        if self._text.strip() != state["answer"]:
            self._show_piece(None, state["answer"])
            self.end_line()
        out.print()
        show_sources(state)
        _show_counts(state)

    def _show_piece(self, message_id: str | None, piece: str) -> None:
        if message_id != self._message_id or not self._text:
            self.end_line()
            self._message_id, self._text = message_id, ""
            piece = piece.lstrip()
            if piece:
                out.print()
        out.print(piece, end="")
        self._text += piece


def show_answer(state: State) -> None:
    """Print an answer and its sources."""
    out.print(state["answer"])
    if state["citations"]:
        out.print()
    show_sources(state)


def show_sources(state: State) -> None:
    """Print the sources of an answer."""
    if state["citations"]:
        out.print("Sources", style="bold")
        for citation in state["citations"]:
            _show_source(citation)


def _show_counts(state: State) -> None:
    from arag.models.prices import cost, format_dollars

    record = state["trace"]
    tokens = sum(entry["retrieved_tokens"] for entry in record)
    evidence = sum(entry["evidence_tokens"] for entry in record)
    read = {chunk_id for entry in record for chunk_id in entry["new_chunks"]}  # for this question
    counts = [
        _count(state["steps"], "step"),
        _count(len(record), "tool call"),
        f"{_count(tokens, 'retrieved token')} ({evidence:,} of evidence)",
        f"{_count(len(read), 'chunk')} read",
        state["stop_reason"],
    ]
    out.print(", ".join(map(str, counts)), style="dim")
    usage = state["usage"]
    if usage["input_tokens"] or usage["output_tokens"]:  # the built-in model uses none, some servers report none
        used = f"{_count(usage['input_tokens'], 'input token')} ({usage['cached_tokens']:,} cached), "
        used += _count(usage["output_tokens"], "output token")
        dollars = cost(state["model_calls"])
        out.print(used + (f", {format_dollars(dollars)}" if dollars is not None else ""), style="dim")


def _show_source(citation: Citation) -> None:
    """Print a citation: the chunk, where its document is from, and the sentences that bear the answer, shortened."""
    from arag.retrieval.render import name_place
    from arag.retrieval.text import CUT, fold

    document = citation["document"]
    about = ", ".join(filter(None, [document["title"] if document else "", name_place(None, None, citation["pages"])]))
    note = "" if citation["seen"] else " (not seen in this run)"
    out.print(styled(f"  {citation['chunk_id']}  ", (about, "dim"), (note, "red")))
    if document and (origin := ", ".join(filter(None, [document["author"], document["date"], document["url"]]))):
        out.print(f"     {origin}", style="dim")
    for quote in citation["quotes"]:
        text = fold(quote["text"])
        out.print(f"     “{text if len(text) <= _MAX_QUOTE else text[:_MAX_QUOTE].rstrip() + CUT}”", style="dim")


def write_page(path: Path, state: State, failure: str, model: str) -> None:
    """Write a run's page.

    Raises:
        InputError: The page cannot be written.
    """
    from arag.errors import InputError, without_credentials
    from arag.models.names import drop_credentials
    from arag.page import trace_page

    try:
        page = trace_page(state, error=without_credentials(failure), model=drop_credentials(model))
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"the page cannot be written to {path}: {error.strerror}") from error


def run_record(question: str, state: State) -> dict[str, Any]:
    """Return a run's record for `--json`."""
    from arag.models.prices import cost

    return {
        "question": question,
        "answer": state["answer"],
        "citations": state["citations"],
        "stop_reason": state["stop_reason"],
        "steps": state["steps"],
        "retrieved_tokens": sum(record["retrieved_tokens"] for record in state["trace"]),
        "evidence_tokens": sum(record["evidence_tokens"] for record in state["trace"]),
        "read_chunks": state.get("read_chunks", []),
        "trace": state["trace"],
        "model_calls": state["model_calls"],
        "usage": state["usage"],
        "cost": cost(state["model_calls"]),
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
