"""`arag ask` and `arag chat`: questions to the agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from arag.errors import ARAGError, InputError, ModelError
from arag.interruption import end_at_once
from arag.options import (
    DEFAULT_MAX_STEPS,
    DEFAULT_TOP_K,
    DocumentsOption,
    EffortOption,
    IndexOption,
    JsonOption,
    MaxStepsOption,
    ModelOption,
    ModelOptionsOption,
    ToolsOption,
    TopKOption,
    WhereOption,
    open_scoped,
    read_model_options,
)
from arag.terminal import FAILED, out, print_json, show_error

PromptOption = Annotated[
    str | None, typer.Option("--system-prompt", metavar="TEXT", help="Replaces the agent's system prompt.")
]


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    index: IndexOption,
    model: ModelOption = None,
    reasoning_effort: EffortOption = None,
    model_option: ModelOptionsOption = None,
    top_k: TopKOption = DEFAULT_TOP_K,
    tools: ToolsOption = None,
    system_prompt: PromptOption = None,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Write an HTML page of the run to this file, even if the run fails."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer and its sources.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the agent a question, and show its steps as they happen."""
    from arag.cli.session import Session
    from arag.cli.showing import RunView, run_record, show_answer, write_page
    from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE
    from arag.models.replies import mend_characters
    from arag.retrieval.trust import check_embedder

    if not question.strip():
        raise InputError("the question is blank")
    if html is not None and not html.absolute().parent.is_dir():
        raise InputError(f"cannot write {html.name}: the folder {html.absolute().parent} does not exist")
    question = mend_characters(question)
    options = read_model_options(model_option, reasoning_effort)
    check_embedder(index)
    settings: dict[str, Any] = {"top_k": top_k, "tools": tools, "system_prompt": system_prompt, "max_steps": max_steps}
    with open_scoped(index, where, documents) as opened:
        session = Session(opened, model, options, **settings)
        view = None if quiet or as_json else RunView()
        name = model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE
        try:
            session.ask(question, view)
        except BaseException as error:
            cause = error.__cause__ if isinstance(error, ModelError) else None  # the page names the model itself
            if html is not None and session.state:
                try:
                    write_page(html, session.state, str(cause or error) or type(error).__name__, name)
                except InputError as unwritten:
                    show_error(unwritten)
            raise
        if html is not None:
            write_page(html, session.state, "", name)
    if as_json:
        print_json(run_record(question, session.state))
    elif view:
        view.show_end(session.state)
    else:
        show_answer(session.state)


def chat(
    index: IndexOption,
    model: ModelOption = None,
    reasoning_effort: EffortOption = None,
    model_option: ModelOptionsOption = None,
    top_k: TopKOption = DEFAULT_TOP_K,
    tools: ToolsOption = None,
    system_prompt: PromptOption = None,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Ask questions that build on each other, one per line, until "exit" or Ctrl-D.

    Ctrl-C stops an answer, not the conversation. Exit code 1 means that a question failed.
    """
    from langgraph.checkpoint.memory import InMemorySaver

    from arag.cli.session import Session
    from arag.cli.showing import RunView
    from arag.retrieval.trust import check_embedder

    options = read_model_options(model_option, reasoning_effort)
    check_embedder(index)
    settings: dict[str, Any] = {"top_k": top_k, "tools": tools, "system_prompt": system_prompt, "max_steps": max_steps}
    code, interrupted = 0, False
    with open_scoped(index, where, documents) as opened:
        session = Session(opened, model, options, checkpointer=InMemorySaver(), **settings)
        for question in _read_questions():
            try:
                view = RunView()
                session.ask(question, view)
                view.show_end(session.state)
            except KeyboardInterrupt:
                interrupted = True
                out.print("Interrupted.")
            except ARAGError as error:
                show_error(error)
                code = FAILED
    if interrupted:  # a tool of that question may still be waiting for a service
        end_at_once(code)
    raise typer.Exit(code)


def _read_questions() -> Iterator[str]:
    """Yield the lines that are typed or come through a pipe."""
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    if is_typed:
        with suppress(ImportError):  # not on Windows
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
