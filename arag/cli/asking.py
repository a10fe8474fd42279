"""`arag ask`: answer a question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from arag.cli.options import IndexOption
from arag.cli.showing import run_record, show_answer, show_update, write_page
from arag.evaluation.cli.options import JsonOption
from arag.interruption import soon_interrupted
from arag.terminal import confirm_embedder, print_json

if TYPE_CHECKING:
    from arag.graph.state import State


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    index: IndexOption,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Model as provider:model, plus @base_url for an OpenAI-compatible server; or extractive, the "
            "built-in model. Default: $ARAG_MODEL, then extractive.",
        ),
    ] = None,
    reasoning_effort: Annotated[
        str | None,
        typer.Option(
            metavar="EFFORT", help="low, medium, high or another value that the model accepts; OpenAI and Anthropic."
        ),
    ] = None,
    max_steps: Annotated[int, typer.Option(help="Maximum steps before an answer is forced.")] = 15,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Write an HTML page of the run to this file, even if the run fails."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the agent a question, and show its steps as they happen."""
    from langchain_core.messages import HumanMessage

    from arag.errors import InputError, ModelError
    from arag.graph.graph import create_arag_agent
    from arag.models.asking import is_provider_error
    from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE, load_model
    from arag.models.names import drop_credentials
    from arag.models.replies import mend_characters
    from arag.retrieval.index import open_index

    if not question.strip():
        raise InputError("the question is blank")
    question = mend_characters(question)
    if html is not None and not html.absolute().parent.is_dir():
        raise InputError(f"cannot write {html.name}: the folder {html.absolute().parent} does not exist")
    confirm_embedder(index)
    with open_index(index) as opened, soon_interrupted("ask"):
        chosen = load_model(model, **({"reasoning_effort": reasoning_effort} if reasoning_effort else {}))
        agent = create_arag_agent(chosen, opened, max_steps=max_steps)
        state: dict[str, Any] = {}
        failure = ""
        try:
            for mode, event in agent.stream({"messages": [HumanMessage(question)]}, stream_mode=["updates", "values"]):
                if mode == "values":
                    state = cast("dict[str, Any]", event)
                elif not as_json:
                    show_update(cast("dict[str, Any]", event))
        except BaseException as error:
            failure = str(error) or type(error).__name__
            if not is_provider_error(error):
                raise
            raise ModelError(f"the model {drop_credentials(model or 'in ARAG_MODEL')} failed: {error}") from error
        finally:
            if html is not None and state:
                write_page(html, state, failure, model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE)
        if as_json:
            print_json(run_record(question, cast("State", state)))
        else:
            show_answer(cast("State", state))
