"""A conversation with the agent in a terminal: runs as they happen, answers with their sources, and what they cost."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from arag.errors import InputError, without_credentials
from arag.graph.cited import Citation
from arag.graph.graph import create_arag_agent
from arag.graph.outcome import describe_end, name_end
from arag.graph.records import total_retrieval
from arag.graph.state import State, kind_of_reply, split_turn
from arag.models.chat import load_model, naming_failures
from arag.models.prices import cost, format_dollars
from arag.models.replies.reading import ASKED_AGAIN, find_doubt
from arag.retrieval.index import Index
from arag.retrieval.presentation.places import name_cited_pages
from arag.terminal import out
from arag.text.normalise import count, shorten

_MAX_QUOTE = 200  # characters of a quoted sentence
_THREAD: Any = {"configurable": {"thread_id": "chat"}}
_EVENT_LOOP = asyncio.Runner()  # one for all runs: the connections of providers' clients belong to their loop


class Conversation:
    """Questions to one agent, one after another; `state` is that of the last run, possibly partial.

    Runs are asynchronous, because Ctrl-C cancels such a run at once. A synchronous run ends only when its model call or
    tool call does, which may wait for a service that hangs.
    """

    def __init__(self, index: Index, model: str, options: dict[str, Any], **settings: Any) -> None:
        chat_model = load_model(model, **options)
        index.embedder.load()  # it may be refused, better before a model call is paid for
        self._agent = create_arag_agent(chat_model, index, checkpointer=InMemorySaver(), **settings)
        self._model = model
        self.state: Any = {}

    def ask(self, question: str, *, shown: bool = True) -> None:
        """Ask a question, and show the run as it happens. If a call to the model fails, raise a ModelError."""
        self.go_on([HumanMessage(question)], shown=shown)

    def go_on(self, messages: Sequence[BaseMessage], *, shown: bool = True) -> None:
        """Run the agent on a conversation that ends with a question, or with what was found for it so far."""
        self._drop_unanswered()
        self.state = {}
        view = _RunView(steps=sum(isinstance(message, AIMessage) for message in messages))
        modes = ["values", "updates", "messages"] if shown else ["values"]
        try:
            with naming_failures(f"the model {self._model}"):
                _EVENT_LOOP.run(self._stream(messages, modes, view))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            view.end_line()

    def _drop_unanswered(self) -> None:
        """Remove a question from the thread that has no answer, as its run failed or was stopped."""
        messages = self._agent.get_state(_THREAD).values.get("messages", [])
        if not messages or kind_of_reply(messages[-1]) == "answer":
            return
        removed = [RemoveMessage(cast("str", message.id)) for message in split_turn(messages).turn]
        self._agent.update_state(_THREAD, {"messages": removed}, as_node="force_answer")

    async def _stream(self, messages: Sequence[BaseMessage], modes: Any, view: _RunView) -> None:
        conversation: Any = {"messages": list(messages)}
        loop = asyncio.get_running_loop()
        task = cast("asyncio.Task[None]", asyncio.current_task())
        # The runner's own handler may not wake the loop if another thread receives the signal.
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            async for mode, event in self._agent.astream(conversation, _THREAD, stream_mode=modes):
                if mode == "values":
                    self.state = event
                else:
                    view.show(mode, event)
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def show_end(self) -> None:
        """Show the answer's sources and the run's counts; the answer was shown as the model wrote it."""
        end = describe_end(self.state)
        if end:
            out.print(f"\n{end}", style="yellow")
        _show_sources(self.state)
        _show_counts(self.state)

    def write_page(self, file: Path, failure: str = "") -> None:
        """Write a page of the last run."""
        from arag.page import trace_page

        page = trace_page(self.state, error=without_credentials(failure), model=self._model)
        try:
            file.write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"the page cannot be written to {file}: {error.strerror}") from error


class _RunView:
    """Shows a run as it happens: what the model writes, and each tool call with one line for its result."""

    def __init__(self, steps: int = 0) -> None:
        self._message_id: str | None = None  # of the last message on the screen
        self._ends_line = True
        self._is_begun = False  # a reply of this step
        self._step = steps

    def show(self, mode: str, event: Any) -> None:
        """Show what a run streams in the modes `messages` and `updates`."""
        if mode == "messages":
            message, _ = event
            if message.type in {"ai", "AIMessageChunk"}:
                self._note_discarded(message)
                self._write(message.id, message.text)
            return
        self.end_line()
        self._is_begun = False
        for node, update in event.items():
            if node == "agent":
                self._step += 1
                reply = update["messages"][-1]
                self._show_calls(reply)
                doubt = find_doubt(reply)
                if doubt is not None:
                    out.print(f"   Asked again: {ASKED_AGAIN[doubt]}.", style="yellow")
            elif node == "tools":
                for result in update["messages"]:
                    _show_result(result)

    def end_line(self) -> None:
        """End the line that the model was writing."""
        if not self._ends_line:
            out.print()
        self._ends_line = True

    def _note_discarded(self, message: BaseMessage) -> None:
        """Say that the text above is not in the answer, such as thinking with only its end marked."""
        is_streamed = isinstance(message, AIMessageChunk)
        if is_streamed or not self._is_begun or not message.text.strip():
            return
        self.end_line()
        out.print("   The text above is not part of the answer.", style="yellow")

    def _write(self, message_id: str | None, piece: str) -> None:
        is_new_message = message_id != self._message_id
        if is_new_message:
            piece = piece.lstrip()
        if not piece:
            return
        if is_new_message:
            self.end_line()
            out.print()
            self._message_id = message_id
        out.print(piece, end="")
        self._is_begun = True
        self._ends_line = piece.endswith("\n")

    def _show_calls(self, message: AIMessage) -> None:
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            arguments = call["args"]
            if not isinstance(arguments, dict):  # the text of an invalid call
                arguments = {"arguments": arguments}
            pairs = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]
            name = call["name"] or ""
            out.print_line((f"{self._step:>2}", "dim"), " ", (name, "bold cyan"), f" {', '.join(pairs)}")


def _show_result(result: ToolMessage) -> None:
    artifact = result.artifact or {}
    shown = ", ".join(artifact.get("chunk_ids", ()))
    if not shown:
        shown = result.text.partition("\n")[0]
    tokens = artifact.get("retrieved_tokens", 0)
    style = "red" if result.status == "error" else "dim"
    out.print_line(f"   {shown} ({count(tokens, 'token')})", style=style)


def _show_sources(state: State) -> None:
    out.print()
    if not state["citations"]:
        out.print("Sources: none", style="bold")
        return
    out.print("Sources", style="bold")
    for citation in state["citations"]:
        _show_source(citation)


def _show_source(citation: Citation) -> None:
    document = citation["document"]
    title = document["title"] if document else ""
    note = "" if citation["seen"] else " (not seen in this run)"
    about = _join(title, name_cited_pages(citation["chunk_id"], citation["pages"], citation.get("ocr_pages", [])))
    out.print_line(f"  {citation['chunk_id']}  ", (about, "dim"), (note, "red"))
    if document:
        origin = _join(document["author"], document["date"], document["url"])
        if origin:
            out.print_line(f"     {origin}", style="dim")
    for quote in citation["quotes"]:
        out.print_line(f"     “{shorten(quote['text'], _MAX_QUOTE)}”", style="dim")


def _join(*parts: str) -> str:
    """Join the parts that are not empty."""
    return ", ".join(part for part in parts if part)


def _show_counts(state: State) -> None:
    totals = total_retrieval(state["trace"])
    usage = state["usage"]
    counts = [
        count(state["steps"], "step"),
        count(totals["tool_calls"], "tool call"),
        count(totals["retrieved_tokens"], "retrieved token"),
        f"{count(totals['chunks_read'], 'chunk')} read",
    ]
    if usage["input_tokens"] or usage["output_tokens"]:  # the built-in model uses none, and some servers report none
        counts.append(f"{count(usage['input_tokens'], 'input token')} ({usage['cached_tokens']:,} cached)")
        counts.append(count(usage["output_tokens"], "output token"))
    dollars = cost(state["model_calls"])
    if dollars:
        counts.append(format_dollars(dollars))
    end = name_end(state["answer"], state["stop_reason"])
    out.print(f"\n{', '.join(counts)}, {end}", style="dim")


def run_record(question: str, state: State) -> dict[str, Any]:
    """Return a run's record for `--json`."""
    record: dict[str, Any] = {"question": question, **state}
    del record["messages"]
    record.update(total_retrieval(state["trace"]))
    record["cost"] = cost(state["model_calls"])
    return record
