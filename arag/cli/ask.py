"""`arag ask`, `arag chat` and `arag mcp`: the agent and its tools."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arag.cli.proposals import propose
from arag.errors import ARAGError, InputError, ModelError
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
from arag.terminal import FAILED, end_at_once, err, explaining_wait, out, print_json, show_error
from arag.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MaxStepsOption = Annotated[
    int, typer.Option("--max-steps", min=1, max=MAX_STEPS, help="Maximum steps before an answer is forced.")
]
WEAK_ANSWER = 3  # exit code of `ask --strict`
_BUILT_IN = (
    "No language model is named, so fixed rules search and quote. "
    "To name one: --model openai:gpt-5-mini, or $ARAG_MODEL."
)

MaxContextOption = Annotated[
    int | None,
    typer.Option(
        "--max-context-tokens", min=2000, help="Maximum tokens in the model's context before an answer is forced."
    ),
]
MaxCostOption = Annotated[
    float | None,
    typer.Option("--max-cost", metavar="DOLLARS", help="Maximum cost of a run; an answer is forced before it."),
]


def ask(
    context: typer.Context,
    index: IndexOption,
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    model: ModelOption = EXTRACTIVE,
    model_option: ModelOptionsOption = None,
    tools: ToolsOption = None,
    top_k: TopKOption = DEFAULT_TOP_K,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    max_context_tokens: MaxContextOption = None,
    max_cost: MaxCostOption = None,
    within: WithinOption = "",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this index's last question whose run failed.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Write an HTML page of the run to this file, even if the run fails."
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with code 3 if the answer is not complete, or no source supports it."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the agent a question, and show its steps as they happen."""
    from arag.cli import unfinished

    with explaining_wait("Loading the agent's libraries ..."):
        from arag.cli.conversation import Conversation, run_record

    if html is not None:
        _check_folder(html)
        out.outlives_reader = err.outlives_reader = True
    messages = _read_conversation(question, index, resume=resume)
    asked = messages[0].text
    options = read_model_options(model_option)
    settings: dict[str, Any] = {
        "tools": tools,
        "top_k": top_k,
        "max_steps": max_steps,
        "max_context_tokens": max_context_tokens,
        "max_cost": max_cost,
    }
    with open_scoped(index, where, documents, within) as opened:
        conversation = Conversation(opened, model, options, **settings)
        if not as_json:
            _introduce_built_in(context)
        try:
            conversation.go_on(messages, shown=not as_json)
        except BaseException as error:
            is_kept = unfinished.keep(index, conversation.state.get("messages", ()))
            if html is not None and conversation.state:
                with suppress(InputError):  # the run's error matters more
                    conversation.write_page(html, str(error) or type(error).__name__)
            if is_kept and isinstance(error, ModelError):
                command = propose(context, ["--resume"])
                raise ModelError(f"{error}. What was found is kept: go on with {command}") from error
            raise
    if resume:
        unfinished.forget(index)
    if as_json:
        print_json(run_record(asked, conversation.state))
    else:
        conversation.show_end()
    if html is not None:
        conversation.write_page(html)
    if strict and _is_weak(conversation.state):
        raise typer.Exit(WEAK_ANSWER)


def _is_weak(state: Mapping[str, Any]) -> bool:
    """Return whether an answer is not complete, or no source supports it."""
    is_complete: bool = state["stop_reason"] == "answered"
    return not is_complete or state["grounding"] == "none"


def _read_conversation(question: str | None, index: str, *, resume: bool) -> list[BaseMessage]:
    """Return the question, or the conversation of the index's unfinished one."""
    from langchain_core.messages import HumanMessage

    from arag.cli import unfinished

    if resume:
        if question is not None:
            raise InputError("--resume goes on with the last question: give no other one")
        return unfinished.load(index)
    if question is None:
        raise typer.BadParameter('the question is missing: arag ask "Who ...?", or --resume to go on with the last one')
    if not question.strip():
        raise InputError("the question is blank")
    return [HumanMessage(replace_surrogates(question))]


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
    max_context_tokens: MaxContextOption = None,
    max_cost: MaxCostOption = None,
    within: WithinOption = "",
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Ask questions that build on each other, one per line, until "exit" or Ctrl-D.

    Ctrl-C stops an answer, not the conversation. Exit code 1 means that a question failed.
    """
    with explaining_wait("Loading the agent's libraries ..."):
        from arag.cli.conversation import Conversation

    code = 0
    is_interrupted = False
    options = read_model_options(model_option)
    settings: dict[str, Any] = {
        "tools": tools,
        "top_k": top_k,
        "max_steps": max_steps,
        "max_context_tokens": max_context_tokens,
        "max_cost": max_cost,
    }
    with open_scoped(index, where, documents, within) as opened:
        conversation = Conversation(opened, model, options, **settings)
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
