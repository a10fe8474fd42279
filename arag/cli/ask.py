"""`arag ask`, `arag chat` and `arag mcp`: the agent and its tools."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arag.errors import ARAGError, InputError, ModelError
from arag.graph import DEFAULT_MAX_STEPS, MAX_STEPS
from arag.options import (
    DocumentsOption,
    IndexOption,
    JsonOption,
    ModelOption,
    ModelOptionsOption,
    WhereOption,
    open_scoped,
    read_model_options,
)
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.terminal import FAILED, end_at_once, out, print_json, show_error

if TYPE_CHECKING:
    import asyncio

    from arag.cli.show import RunView
    from arag.retrieval.index import Index

AgentTopKOption = Annotated[
    int, typer.Option("--top-k", "-k", min=1, max=MAX_RESULTS, help="Number of chunks per search.")
]
MaxStepsOption = Annotated[
    int, typer.Option("--max-steps", min=1, max=MAX_STEPS, help="Maximum steps before an answer is forced.")
]


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    index: IndexOption,
    model: ModelOption = None,
    model_option: ModelOptionsOption = None,
    top_k: AgentTopKOption = DEFAULT_TOP_K,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Write an HTML page of the run to this file, even if the run fails."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the agent a question, and show its steps as they happen."""
    from arag.cli.show import RunView, run_record
    from arag.models.replies import mend_characters
    from arag.retrieval.trust import check_embedder

    if not question.strip():
        raise InputError("the question is blank")
    if html is not None and not html.absolute().parent.is_dir():
        raise InputError(f"cannot write {html.name}: the folder {html.absolute().parent} does not exist")
    view = None if as_json else RunView()
    question = mend_characters(question)
    options = read_model_options(model_option)
    check_embedder(index)
    with open_scoped(index, where, documents) as opened:
        conversation = _Conversation(opened, model, options, top_k, max_steps)
        try:
            conversation.ask(question, view)
        except BaseException as error:
            if html is not None and conversation.state:
                with suppress(InputError):  # the run's error matters more
                    conversation.write_page(html, str(error) or type(error).__name__)
            raise
    if view:
        view.show_end(conversation.state)
    else:
        print_json(run_record(question, conversation.state))
    if html is not None:
        conversation.write_page(html)


def chat(
    index: IndexOption,
    model: ModelOption = None,
    model_option: ModelOptionsOption = None,
    top_k: AgentTopKOption = DEFAULT_TOP_K,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Ask questions that build on each other, one per line, until "exit" or Ctrl-D.

    Ctrl-C stops an answer, not the conversation. Exit code 1 means that a question failed.
    """
    from arag.cli.show import RunView
    from arag.retrieval.trust import check_embedder

    code, is_interrupted = 0, False
    options = read_model_options(model_option)
    check_embedder(index)
    with open_scoped(index, where, documents) as opened:
        conversation = _Conversation(opened, model, options, top_k, max_steps)
        for question in _read_questions():
            try:
                view = RunView()
                conversation.ask(question, view)
                view.show_end(conversation.state)
            except KeyboardInterrupt:
                is_interrupted = True
                out.print("Interrupted.")
            except ARAGError as error:
                show_error(error)
                code = FAILED
    if is_interrupted:  # a tool of that question may still be waiting for a service
        end_at_once(code)
    raise typer.Exit(code)


def _read_questions() -> Iterator[str]:
    """Yield the lines that are typed or come through a pipe."""
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    if is_typed:
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` its history
        out.print('Ask a question. Ctrl-C stops an answer; Ctrl-D or "exit" ends.', style="dim")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    while True:
        try:
            question = input("> " if is_typed else "").strip()
        except EOFError:
            out.print()
            return
        except KeyboardInterrupt:
            if not is_typed:
                raise
            out.print()
            continue
        if question == "exit":
            return
        if question:
            if not is_typed:
                out.print(f"> {question}")
            yield question
            out.print()


class _Conversation:
    """Questions to one agent, one after another; `state` is the last one's, as far as it got.

    Runs are asynchronous, because Ctrl-C can cancel those at once. A synchronous run ends only when its model call or
    tool does, which may be waiting for a service that hangs.
    """

    def __init__(self, index: Index, model: str | None, options: dict[str, Any], top_k: int, max_steps: int) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        from arag.graph.graph import create_arag_agent
        from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE, load_model

        self._model = model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE
        settings: dict[str, Any] = {"top_k": top_k, "max_steps": max_steps, "checkpointer": InMemorySaver()}
        self._agent = create_arag_agent(load_model(self._model, **options), index, **settings)
        self.state: Any = {}

    def ask(self, question: str, view: RunView | None) -> None:
        """Ask a question, and show the run as it happens. If a call to the model fails, raise a ModelError."""
        from arag.models.chat import is_from_model

        self.state = {}
        try:
            _event_loop().run(self._stream(question, view))
        except Exception as error:
            if not is_from_model(error):
                raise
            raise ModelError(f"the model {self._model} failed: {error}") from error
        finally:
            if view:
                view.end_line()

    async def _stream(self, question: str, view: RunView | None) -> None:
        modes: Any = ["values", "updates", "messages"] if view else ["values"]
        messages: Any = {"messages": [("user", question)]}
        thread: Any = {"configurable": {"thread_id": "chat"}}
        async for mode, event in self._agent.astream(messages, thread, stream_mode=modes):
            if mode == "values":
                self.state = event
            elif view:
                view.show(mode, event)

    def write_page(self, file: Path, failure: str = "") -> None:
        """Write a page of the last run."""
        from arag.errors import without_credentials
        from arag.page import trace_page

        page = trace_page(self.state, error=without_credentials(failure), model=self._model)
        try:
            file.write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"the page cannot be written to {file}: {error.strerror}") from error


@cache
def _event_loop() -> asyncio.Runner:
    """Return the one of this process: providers' clients keep connections that only it can use."""
    import asyncio

    return asyncio.Runner()


def mcp(
    index: IndexOption,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Model for the tool `ask`. Default: $ARAG_MODEL; with neither, there is no such tool."
        ),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any free one.")] = 8765,
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Serve an index to other agents, over the Model Context Protocol (MCP).

    Over HTTP, clients must send the token in $ARAG_MCP_TOKEN, if it is set.
    """
    from arag.mcp import TOKEN_VARIABLE, serve_mcp
    from arag.models.chat import MODEL_VARIABLE
    from arag.retrieval.trust import check_embedder

    check_embedder(index)
    token = os.environ.get(TOKEN_VARIABLE)
    if not http:  # a thread waits for stdin, and nothing has to be closed
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open_scoped(index, where, documents) as opened:
        serve_mcp(opened, model=model or os.environ.get(MODEL_VARIABLE), http=http, host=host, port=port, token=token)
