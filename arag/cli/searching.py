"""`arag search keyword`, `search semantic` and `read`: search an index without a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from arag.options import DEFAULT_TOP_K, DocumentsOption, IndexOption, JsonOption, TopKOption, WhereOption, open_scoped
from arag.terminal import FAILED, out, print_json


def search_keyword(
    terms: Annotated[list[str], typer.Argument(metavar="TERM...", help="Keywords, matched exactly, ignoring case.")],
    index: IndexOption,
    top_k: TopKOption = DEFAULT_TOP_K,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find chunks that contain keywords."""
    from arag.retrieval.present import Shown
    from arag.retrieval.render import render_keywords

    with open_scoped(index, where, documents) as opened:
        results = opened.keyword_search(terms, top_k)
    _show_results(results, render_keywords(results, Shown(results.hits)), as_json)


def search_semantic(
    query: Annotated[str, typer.Argument(help="Text to search for.")],
    index: IndexOption,
    top_k: TopKOption = DEFAULT_TOP_K,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find chunks with sentences close in meaning to a query."""
    from arag.retrieval.present import Shown
    from arag.retrieval.render import render_semantic

    with open_scoped(index, where, documents) as opened:
        results = opened.semantic_search(query, top_k)
    _show_results(results, render_semantic(Shown(results.hits)), as_json)


def read(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Chunk ids.")],
    index: IndexOption,
    adjacent: Annotated[int, typer.Option(help="Chunks to add before and after each one, 0 to 2.")] = 0,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print chunks in full. Exit code 1 means that an id is unknown."""
    from arag.retrieval.render import render_chunks

    with open_scoped(index, where, documents) as opened:
        results = opened.read(ids, adjacent)
    _show_results(results, render_chunks(results, ()), as_json)
    if results.unknown:
        raise typer.Exit(FAILED)


def _show_results(results: Any, text: str, as_json: bool) -> None:
    """Print an index's results, as text or as JSON."""
    if as_json:
        print_json(asdict(results))
    else:
        out.print(text)
