"""What `arag ask` and `arag chat` print: a run as it happens, the answer, its sources and what it cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from arag.models.prices import cost, format_dollars
from arag.models.usage import total_retrieval
from arag.retrieval.render import name_pages
from arag.retrieval.text import count, shorten
from arag.terminal import out, styled

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

    from arag.graph.state import State

_MAX_QUOTE = 200  # characters of a quoted sentence


class RunView:
    """Shows a run as it happens: what the model writes, and each tool call with one line for its result."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._text = ""  # of the message that was shown last
        self._step = 0

    def show(self, mode: str, event: Any) -> None:
        """Show what a run streams in the modes `messages` and `updates`."""
        if mode == "messages":
            message, _ = event
            if message.type in {"ai", "AIMessageChunk"}:
                self._write(message.id, message.text)
            return
        self.end_line()
        for node, update in event.items():
            if node == "agent":
                self._step += 1
                message = update["messages"][-1]
                for call in (*message.tool_calls, *message.invalid_tool_calls):
                    self._show_call(call["name"] or "", call["args"])
            elif node == "tools":
                for result in update["messages"]:
                    _show_result(result)
            elif node == "force_answer":
                out.print(f"   Answer forced: {update['stop_reason']}.", style="yellow")

    def _show_call(self, name: str, arguments: Any) -> None:
        named = arguments if isinstance(arguments, dict) else {"arguments": arguments}  # those that are no JSON
        shown = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in named.items())
        out.print(styled((f"{self._step:>2}", "dim"), " ", (name, "bold cyan"), f" {shown}"))

    def end_line(self) -> None:
        """End the line that the model was writing."""
        if self._text and not self._text.endswith("\n"):
            out.print()
            self._text += "\n"

    def show_end(self, state: State) -> None:
        """Show the answer unless the model has just written it, its sources, and the run's counts."""
        if self._text.strip() != state["answer"]:
            self._write(None, state["answer"])
            self.end_line()
        _show_sources(state)
        _show_counts(state)

    def _write(self, message_id: str | None, piece: str) -> None:
        if message_id != self._message_id or not self._text:
            self.end_line()
            self._message_id, self._text = message_id, ""
            piece = piece.lstrip()
            if piece:
                out.print()
        out.print(piece, end="")
        self._text += piece


def _show_result(result: ToolMessage) -> None:
    artifact = result.artifact or {}
    chunks = ", ".join(artifact.get("chunk_ids", ())) or result.text.partition("\n")[0]
    tokens = artifact.get("retrieved_tokens", 0)
    out.print(f"   {chunks} ({tokens:,} tokens)", style="red" if result.status == "error" else "dim")


def _show_sources(state: State) -> None:
    if state["citations"]:
        out.print()
        out.print("Sources", style="bold")
    for citation in state["citations"]:
        document = citation["document"]
        about = filter(None, [document and document["title"], name_pages(citation["pages"])])
        note = "" if citation["seen"] else " (not seen in this run)"
        out.print(styled(f"  {citation['chunk_id']}  ", (", ".join(about), "dim"), (note, "red")))
        if document and (origin := ", ".join(filter(None, [document["author"], document["date"], document["url"]]))):
            out.print(f"     {origin}", style="dim")
        for quote in citation["quotes"]:
            out.print(f"     “{shorten(quote['text'], _MAX_QUOTE)}”", style="dim")


def _show_counts(state: State) -> None:
    totals, usage, dollars = total_retrieval(state["trace"]), state["usage"], cost(state["model_calls"])
    counts = [
        count(state["steps"], "step"),
        count(totals["tool_calls"], "tool call"),
        count(totals["retrieved_tokens"], "retrieved token"),
        f"{count(totals['chunks_read'], 'chunk')} read",
    ]
    if usage["input_tokens"] or usage["output_tokens"]:  # the built-in model uses none, some servers report none
        counts.append(f"{count(usage['input_tokens'], 'input token')} ({usage['cached_tokens']:,} cached)")
        counts.append(count(usage["output_tokens"], "output token"))
    if dollars:
        counts.append(format_dollars(dollars))
    out.print(f"\n{', '.join(counts)}, {state['stop_reason']}", style="dim")


def run_record(question: str, state: State) -> dict[str, Any]:
    """Return a run's record for `--json`."""
    keys = ("answer", "citations", "stop_reason", "steps", "read_chunks", "trace", "model_calls", "usage")
    values = {key: value for key, value in state.items() if key in keys}
    totals = total_retrieval(state["trace"]) | {"cost": cost(state["model_calls"])}
    return {"question": question} | values | totals
