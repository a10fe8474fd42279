"""Options that several commands share, those of experiments included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from arag.errors import InputError
from arag.models.names import MODEL_VARIABLE
from arag.terminal import err
from arag.text.visible import visible_line

if TYPE_CHECKING:
    from arag.retrieval.index import Index

INDEX = typer.Option(
    "--index",
    "-i",
    metavar="LOCATION",
    envvar="ARAG_INDEX",
    help="The index: a folder, or the address of a PostgreSQL database.",
)
IndexOption = Annotated[str, INDEX]  # a `Path` would damage an address
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        envvar=MODEL_VARIABLE,
        help="Model as provider:model, plus @base_url for an OpenAI-compatible server; or the built-in one.",
    ),
]
ModelOptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        metavar="NAME=VALUE",
        help="An option of the model's class, such as temperature=0; repeatable. VALUE is JSON, else a string.",
    ),
]
TopKOption = Annotated[int, typer.Option("--top-k", "-k", min=1, help="Number of chunks per search.")]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="JSON",
        help='See only documents whose metadata match, in Chroma\'s language: \'{"year": {"$gte": 2020}}\'.',
    ),
]
DocumentsOption = Annotated[
    list[str] | None,
    typer.Option("--documents", metavar="ID", help="See only these documents, such as handbook/*; repeatable."),
]
ToolsOption = Annotated[
    Literal["paper", "all", "shell"] | None,
    typer.Option(
        "--tools",
        help="Tools of the model: the paper's three searches, these and three for whole corpora, or a shell.",
    ),
]
WithinOption = Annotated[
    str, typer.Option(metavar="NAME", help="See only documents with these words in their title, id or file's name.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


class CommandGroup(TyperGroup):
    """Commands; a word that is like none of them is answered with their names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the command that a command line names."""
        name = args[0]
        if not name.startswith("-") and not get_close_matches(name, self.commands):
            ctx.fail(f"No such command {name!r}: there are {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)


def read_model_options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Return the options of the model's class; an API key is refused, as it would be visible in process listings."""
    options = read_pairs("--model-option", pairs or (), "temperature=0")
    if any("api_key" in name for name in options):
        raise InputError("--model-option: others could see an API key there; set an environment variable instead")
    return options


def read_pairs(option: str, pairs: Sequence[str], example: str) -> dict[str, Any]:
    """Return the values of an option's NAME=VALUE pairs by name: JSON, or else strings."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InputError(f"{option} {pair!r}: NAME=VALUE is needed, such as {example}")
        try:
            values[name] = json.loads(value)
        except (ValueError, RecursionError):
            values[name] = value
    return values


@contextmanager
def open_scoped(
    location: str,
    where: str | None,
    documents: Sequence[str] | None,
    within: str = "",
) -> Iterator[Index]:
    """Open an index, limited to the documents that --where, --documents and --within choose; say if there are none."""
    from arag.retrieval.index import open_index
    from arag.retrieval.scope import Scope

    conditions = None
    if where is not None:
        conditions = _read_conditions(where)
    with open_index(location) as index:
        scoped = index
        if conditions is not None or documents:
            scoped = index.limited_to(Scope(where=conditions, documents=documents or None))
        if next(scoped.documents(), None) is None:
            err.print_line("The index is empty." if scoped is index else _explain_empty(index, conditions, documents))
            yield scoped
        else:
            yield _narrow(scoped, within, is_limited=scoped is not index)


def _narrow(scoped: Index, within: str, *, is_limited: bool) -> Index:
    """Limit an index to the documents that --within names; if it was limited before, an error says so."""
    try:
        return scoped.within(within)
    except InputError as error:
        if not is_limited:
            raise
        raise InputError(f"among the documents that --documents and --where leave, {error}") from error


def _explain_empty(index: Index, conditions: dict[str, Any] | None, documents: Sequence[str] | None) -> str:
    """Say that no document is in the scope; name ids, or fields of its conditions, that no document has."""
    known: set[str] = set()
    for document in index.documents():
        known.update(document.metadata)
    unknown = [name for name in _list_fields(conditions) if name not in known]
    if not unknown and documents and conditions is None:
        ids = ", ".join(map(visible_line, documents))
        return f"No document of the index is in the scope: none has the id {ids}. `arag list` shows all ids."
    if not unknown:
        return "No document of the index is in the scope."
    fields = ", ".join(map(visible_line, unknown))
    # `arag list` also shows what is no metadata.
    hint = " Choose files of one kind by their ids: --documents '*.pdf'." if "kind" in unknown else ""
    return f"No document of the index is in the scope: none has the field {fields}.{hint}"


def _list_fields(conditions: Any) -> Iterator[str]:
    """Yield the fields that conditions name, in all their parts."""
    if isinstance(conditions, list):
        for each in conditions:
            yield from _list_fields(each)
    elif isinstance(conditions, dict):
        for name, value in conditions.items():
            if name.startswith("$"):
                yield from _list_fields(value)
            else:
                yield name


def _read_conditions(text: str) -> dict[str, Any]:
    try:
        conditions = json.loads(text)
    except (ValueError, RecursionError):
        conditions = None
    if not isinstance(conditions, dict):
        raise InputError(f"--where {text!r}: a JSON object is needed, such as '{{\"year\": 2020}}'")
    return conditions
