"""The command line: `arag ingest`, `ask`, `mcp`, `search`, `read`, `info`, `remove`, `compact`, `verify`, `eval`."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
import warnings
from dataclasses import asdict
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.progress import TextColumn
from rich.table import Table

from arag.evaluation.cli import eval_app
from arag.evaluation.cli.options import JsonOption
from arag.ingest.documents import DEFAULT_LIMITS, Limits
from arag.interruption import Commands, Interrupted, end_interrupted, soon_interrupted
from arag.showing import run_record, show_answer, show_progress, show_summary, show_update, write_page
from arag.terminal import FAILED, confirm_embedder, err, out, print_json, progress, styled

if TYPE_CHECKING:
    from arag.graph.state import State

LEFT_OUT = 3  # exit code of `ingest` when it left something out; 2 means a usage error

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
search_app = typer.Typer(help="Search an index as the agent does.", no_args_is_help=True)
app.add_typer(search_app, name="search", cls=Commands)
app.add_typer(eval_app, name="eval", cls=Commands)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(version("langgraph-arag"))
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """An agent that searches a corpus by itself: build an index, ask questions, inspect the results."""


IndexOption = Annotated[Path, typer.Option("--index", "-i", metavar="DIR", help="Index folder.")]
TopK = Annotated[int, typer.Option("--top-k", "-k", min=1, help="Number of chunks to return.")]


@app.command()
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Files and folders to read: txt, md, html, pdf, json, jsonl."),
    ],
    index: IndexOption,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder as provider:model, plus @base_url for an OpenAI-compatible server. Default: the index's "
            "embedder, then $ARAG_EMBEDDER, then huggingface:sentence-transformers/all-MiniLM-L6-v2."
        ),
    ] = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(help="Maximum tokens per chunk, at least 50. Default: the index's setting, or 1,000.")
    ] = None,
    pack: Annotated[
        bool | None,
        typer.Option(
            "--pack/--no-pack", help="Combine consecutive short documents in one chunk. Default: the index's setting."
        ),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents that are no longer in PATH.")] = False,
    language: Annotated[
        str | None,
        typer.Option(help="Language for sentence splitting: auto or a spaCy code. Default: the index's setting."),
    ] = None,
    max_characters: Annotated[
        int, typer.Option(help="Leave out documents with more characters than this.")
    ] = DEFAULT_LIMITS.max_characters,
    max_pages: Annotated[
        int, typer.Option(help="Leave out PDFs with more pages than this.")
    ] = DEFAULT_LIMITS.max_pages,
    max_seconds: Annotated[
        float, typer.Option(help="Leave out PDFs that take more seconds than this to read.")
    ] = DEFAULT_LIMITS.max_seconds,
    as_json: JsonOption = False,
) -> None:
    """Write documents into an index; later runs embed only what has changed.

    Exit code 3 means that the index was written, but something was left out.
    """
    from arag.ingest.pipeline import run_ingest

    if embedder is None:
        confirm_embedder(index)
    with progress(TextColumn("{task.fields[figures]}"), hidden=as_json) as bars:
        summary = run_ingest(
            paths,
            index,
            embedder=embedder,
            chunk_tokens=chunk_tokens,
            pack=pack,
            prune=prune,
            language=language,
            limits=Limits(max_characters, max_pages, max_seconds),
            progress=show_progress(bars) if err.is_terminal else not as_json,
        )
    if as_json:
        print_json(asdict(summary))
    else:
        show_summary(summary, index)
    if summary.problems:
        raise typer.Exit(LEFT_OUT)


@app.command()
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


@app.command()
def mcp(
    index: IndexOption,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Model for the tool `ask`. Default: $ARAG_MODEL; with neither, there is no such tool."
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Leave out of searches what the session was shown before.")
    ] = True,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any free one.")] = 8765,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="File with the token that clients must send over HTTP. Default: $ARAG_MCP_TOKEN.",
        ),
    ] = None,
) -> None:
    """Serve an index to other agents, over the Model Context Protocol (MCP)."""
    from arag.models.chat import MODEL_VARIABLE
    from arag.retrieval.index import open_index
    from arag.serving.mcp import TOKEN_VARIABLE, serve_mcp

    confirm_embedder(index)
    token = token_file.read_text("utf-8", "replace").strip() if token_file else os.environ.get(TOKEN_VARIABLE) or None
    if not http:  # a thread waits for stdin, and nothing has to be closed
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open_index(index) as opened:
        serve_mcp(
            opened,
            model=model or os.environ.get(MODEL_VARIABLE),
            memory=memory,
            http=http,
            host=host,
            port=port,
            token=token,
            on_ready=lambda url: err.print(f"Serving {index} at {url}"),
        )


@search_app.command("keyword")
def search_keyword(
    terms: Annotated[list[str], typer.Argument(metavar="TERM...", help="Keywords, matched exactly, ignoring case.")],
    index: IndexOption,
    top_k: TopK = 5,
    as_json: JsonOption = False,
) -> None:
    """Find chunks that contain keywords."""
    from arag.retrieval.index import open_index
    from arag.retrieval.presentation import show_all
    from arag.retrieval.render import render_keywords

    with open_index(index) as opened:
        results = opened.keyword_search(terms, top_k)
    _show_results(results, render_keywords(results, show_all(results.hits)), as_json)


@search_app.command("semantic")
def search_semantic(
    query: Annotated[str, typer.Argument(help="Text to search for.")],
    index: IndexOption,
    top_k: TopK = 5,
    as_json: JsonOption = False,
) -> None:
    """Find chunks with sentences close in meaning to a query."""
    from arag.retrieval.index import open_index
    from arag.retrieval.presentation import show_all
    from arag.retrieval.render import render_semantic

    confirm_embedder(index)
    with open_index(index) as opened:
        results = opened.semantic_search(query, top_k)
    _show_results(results, render_semantic(results.hits, show_all(results.hits)), as_json)


@app.command()
def read(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Chunk ids.")],
    index: IndexOption,
    adjacent: Annotated[int, typer.Option(help="Chunks to add before and after each one, 0 to 2.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Print chunks in full. Exit code 1 means that an id is unknown."""
    from arag.retrieval.index import open_index
    from arag.retrieval.render import render_chunks

    with open_index(index) as opened:
        results = opened.read(ids, adjacent)
    _show_results(results, render_chunks(results, ()), as_json)
    if results.unknown:
        raise typer.Exit(FAILED)


@app.command()
def info(index: IndexOption, as_json: JsonOption = False) -> None:
    """Show what an index contains and how it was built."""
    from arag.retrieval.index import open_index

    with open_index(index) as opened:
        values = asdict(opened.info())
    if as_json:
        print_json(values)
        return
    table = Table(show_header=False, box=None)
    for name, value in values.items():
        shown = f"{value / 1e6:,.1f} MB" if name == "bytes" else f"{value:,}" if isinstance(value, int) else value
        table.add_row(name.replace("_", " "), str(shown))
    out.print(table)


@app.command()
def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Document ids.")],
    index: IndexOption,
) -> None:
    """Remove documents from an index; run `compact` to delete their text from its files."""
    from arag.ingest.maintenance import remove as remove_documents

    removed = remove_documents(ids, index)
    out.print(f"Documents removed: {removed:,}. Run `arag compact` to delete their text from the files.")


@app.command()
def compact(index: IndexOption) -> None:
    """Rewrite the files of an index without the removed text and vectors."""
    from arag.ingest.maintenance import compact as compact_index

    before, after = compact_index(index)
    out.print(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after.")


@app.command()
def verify(
    index: IndexOption,
    repair: Annotated[bool, typer.Option("--repair", help="Repair the damage.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every part of an index for damage. Exit code 1 means that damage remains."""
    from arag.ingest.maintenance import verify as verify_index

    found, left = verify_index(index, repair=repair)
    if as_json:
        print_json({"found": [asdict(damage) for damage in found], "left": [asdict(damage) for damage in left]})
    else:
        for damage in dict.fromkeys([*found, *left]):
            mark = ("Damaged", "red") if damage in left else ("Repaired", "green")
            out.print(styled(mark, f" {damage}"))
        if not found:
            out.print(f"No damage found in {index}.")
        elif not repair and any(damage.repairable for damage in left):
            out.print("Run `arag verify --repair` to repair it.")
    if left:
        raise typer.Exit(FAILED)


def main() -> None:
    """Run the command line; our own errors print one line on stderr and exit with code 1."""
    from arag.errors import ARAGError

    _quiet()
    if isinstance(sys.stdout, TextIOWrapper):  # arguments and file names may contain bytes that are not text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except ARAGError as error:
        err.print(styled(("Error:", "bold red"), f" {error}"))
        sys.exit(FAILED)
    except Interrupted as interrupted:
        end_interrupted(interrupted.command)
    finally:
        sys.excepthook = _show_bug  # Typer has installed its own


def _show_bug(*error: Any) -> None:
    """Print the traceback of an unexpected error through our console: its message may contain untrusted text."""
    err.print("".join(traceback.format_exception(*error)).rstrip())


def _quiet() -> None:
    """Hide libraries' progress bars and notices, and print our own warnings in one line each."""
    logging.getLogger("transformers").setLevel(logging.ERROR)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        err.print(styled(("Note:", "yellow"), f" {message}"))

    warnings.showwarning = show


def _show_results(results: Any, text: str, as_json: bool) -> None:
    """Print an index's results, as text or as JSON."""
    if as_json:
        print_json(asdict(results))
    else:
        out.print(text)
