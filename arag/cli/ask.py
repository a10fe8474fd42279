"""`arag ask`, `arag chat` and `arag mcp`: the agent and its tools."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from arag.errors import ARAGError, InputError
from arag.graph import DEFAULT_MAX_STEPS, MAX_STEPS
from arag.models.names import EXTRACTIVE, MODEL_VARIABLE
from arag.options import (
    DocumentsOption,
    IndexOption,
    JsonOption,
    ModelOption,
    ModelOptionsOption,
    ToolsOption,
    TopKOption,
    WhereOption,
    WithinOption,
    open_scoped,
    read_model_options,
)
from arag.retrieval import DEFAULT_TOP_K
from arag.terminal import FAILED, end_at_once, err, out, print_json, show_error
from arag.text.surrogates import replace_surrogates

MaxStepsOption = Annotated[
    int, typer.Option("--max-steps", min=1, max=MAX_STEPS, help="Maximum steps before an answer is forced.")
]
_BUILT_IN = (
    "No language model is named, so fixed rules search and quote. "
    "To name one: --model openai:gpt-5-mini, or $ARAG_MODEL."
)


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question.")],
    index: IndexOption,
    model: ModelOption = EXTRACTIVE,
    model_option: ModelOptionsOption = None,
    tools: ToolsOption = None,
    top_k: TopKOption = DEFAULT_TOP_K,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    within: WithinOption = "",
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
    from arag.cli.conversation import Conversation, run_record

    if not question.strip():
        raise InputError("the question is blank")
    if html is not None:
        _check_folder(html)
    question = replace_surrogates(question)
    options = read_model_options(model_option)
    with open_scoped(index, where, documents, within) as opened:
        conversation = Conversation(opened, model, options, tools=tools, top_k=top_k, max_steps=max_steps)
        if not as_json:
            _introduce_built_in(context)
        try:
            conversation.ask(question, shown=not as_json)
        except BaseException as error:
            if html is not None and conversation.state:
                with suppress(InputError):  # the run's error matters more
                    conversation.write_page(html, str(error) or type(error).__name__)
            raise
    if as_json:
        print_json(run_record(question, conversation.state))
    else:
        conversation.show_end()
    if html is not None:
        conversation.write_page(html)


def _introduce_built_in(context: typer.Context) -> None:
    """Say what the built-in model is, and how to name another one, if none was named."""
    source = context.get_parameter_source("model")
    if source is not None and source.name == "DEFAULT":
        err.print(_BUILT_IN)


def _check_folder(page: Path) -> None:
    folder = page.absolute().parent
    if not folder.is_dir():
        raise InputError(f"cannot write {page.name}: the folder {folder} does not exist")


def chat(
    context: typer.Context,
    index: IndexOption,
    model: ModelOption = EXTRACTIVE,
    model_option: ModelOptionsOption = None,
    tools: ToolsOption = None,
    top_k: TopKOption = DEFAULT_TOP_K,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    within: WithinOption = "",
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Ask questions that build on each other, one per line, until "exit" or Ctrl-D.

    Ctrl-C stops an answer, not the conversation. Exit code 1 means that a question failed.
    """
    from arag.cli.conversation import Conversation

    code = 0
    is_interrupted = False
    options = read_model_options(model_option)
    with open_scoped(index, where, documents, within) as opened:
        conversation = Conversation(opened, model, options, tools=tools, top_k=top_k, max_steps=max_steps)
        _introduce_built_in(context)
        for question in _read_questions():
            try:
                conversation.ask(question)
                conversation.show_end()
            except KeyboardInterrupt:
                is_interrupted = True
                out.print("Interrupted.")
            except ARAGError as error:
                show_error(error)
                code = FAILED
    if is_interrupted:  # a tool call of that question may still wait for a service
        end_at_once(code)
    raise typer.Exit(code)


def _read_questions() -> Iterator[str]:
    """Yield the lines from the terminal or from a pipe."""
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    if is_typed:
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` its history
        out.print('Ask a question. Ctrl-C stops an answer; Ctrl-D or "exit" ends.', style="dim")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    prompt = "> " if is_typed else ""
    while True:
        try:
            question = input(prompt).strip()
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
        if not question:
            continue
        if not is_typed:
            out.print_line(f"> {question}")
        yield question
        out.print()


def mcp(
    index: IndexOption,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", envvar=MODEL_VARIABLE, help="Model for the tool `ask`; without one, there is no such tool."
        ),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any free one.")] = 8765,
    tools: ToolsOption = None,
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Serve an index to other agents, over the Model Context Protocol (MCP).

    Over HTTP, clients must send the token in $ARAG_MCP_TOKEN, if it is set.
    """
    from arag.mcp import TOKEN_VARIABLE, serve_mcp
    from arag.retrieval.storage.locations import using_store
    from arag.retrieval.trust import check_embedder

    with using_store(index) as store:
        check_embedder(store)
    token = os.environ.get(TOKEN_VARIABLE)
    if not http:  # Ctrl-C ends the process at once: a thread waits for stdin, and nothing has to be closed
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open_scoped(index, where, documents) as opened:
        serve_mcp(opened, model=model, tools=tools, http=http, host=host, port=port, token=token)
