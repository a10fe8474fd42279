"""The commands of an index: write, list, search, read, check and copy it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arag.cli.hyphens import check_text, check_texts
from arag.cli.ingest import showing_progress
from arag.cli.proposals import propose, read_command_line
from arag.errors import InputError
from arag.models.names import knows_script
from arag.options import (
    DocumentsOption,
    IndexOption,
    JsonOption,
    TopKOption,
    WhereOption,
    WithinOption,
    open_scoped,
)
from arag.retrieval import DEFAULT_TOP_K
from arag.terminal import FAILED, err, explaining_wait, out, print_json
from arag.text.normalise import QUOTES, count, name_duration
from arag.text.visible import visible_line

if TYPE_CHECKING:
    from arag.retrieval.index import Index

_KINDS = ("keyword", "semantic")  # of searches
_NO_LIMIT = 1 << 40  # of lines or documents that are printed
# Counts of an index that mean something only if they are not 0.
_EXPLAINED = {
    "other_languages": "documents that are not in English, the embedder's only language",
    "incomplete": "documents whose text lacks parts of their file, such as pictures: `arag list` names these",
}

# --- writing ---


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The index: a folder, or postgresql://...")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Folder or address to copy it to.")],
    as_json: JsonOption = False,
) -> None:
    """Copy an index to another place without embedding anything again; an interrupted copy is continued."""
    from arag.ingest.copying import copy_index

    with showing_progress(as_json) as show:
        summary = copy_index(source, target, progress=show)
    if as_json:
        print_json(asdict(summary))
    else:
        documents = count(summary.documents, "document")
        chunks = count(summary.chunks, "chunk")
        sentences = count(summary.sentences, "sentence")
        there = count(summary.chunks - summary.written, "chunk")
        time = name_duration(summary.seconds)
        out.print(f"Copied {documents}, {chunks} and {sentences} in {time}; already there: {there}.")


def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Document ids, or patterns such as handbook/*.")],
    index: IndexOption,
) -> None:
    """Remove documents from an index. Those whose files are still there come back when these are ingested again.

    To keep files out, name them in a folder's .aragignore, or ingest with --ignore.
    """
    from arag.ingest.maintenance import remove as remove_documents

    out.print(f"Documents removed: {remove_documents(ids, index):,}.")


def verify(
    index: IndexOption,
    repair: Annotated[bool, typer.Option("--repair", help="Repair the damage.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every part of an index for damage. Exit code 1 means that damage remains."""
    from arag.ingest.maintenance import verify as verify_index
    from arag.retrieval.storage.locations import store_at

    store = store_at(index)
    with showing_progress(as_json) as show:
        found, left = verify_index(store, repair=repair, progress=show)
    if as_json:
        print_json({"found": [asdict(damage) for damage in found], "left": [asdict(damage) for damage in left]})
    else:
        for damage in dict.fromkeys([*found, *left]):
            if damage in left:
                out.print_line(("Damaged", "red"), f" {damage}")
            else:
                out.print_line(("Repaired", "green"), f" {damage.part} (found before: {damage.what})")
        can_be_repaired = any(damage.repairable for damage in left)
        if not found:
            out.print_line(f"No damage found in {store.location}.")
        elif can_be_repaired and not repair:
            place = shlex.quote(str(store.location))
            out.print_line(f"Run `arag verify --repair --index {place}` to repair it.")
    if left:
        raise typer.Exit(FAILED)


# --- looking ---


def info(
    index: IndexOption, where: WhereOption = None, documents: DocumentsOption = None, as_json: JsonOption = False
) -> None:
    """Show what an index contains and how it was built.

    With --json, name the documents whose text lacks parts of their file, and these parts.
    """
    with open_scoped(index, where, documents) as opened:
        values = asdict(opened.info())
        incomplete = opened.incomplete()
    if as_json:
        print_json({**values, "left_out": incomplete})
        return
    if not values["bytes"]:  # unknown for a scope
        del values["bytes"]
    if not values["weights"]:
        del values["weights"]
    for name, value in values.items():
        if name in _EXPLAINED and not value:
            continue
        label = name.replace("_", " ")
        shown = f"{value:,}" if isinstance(value, int) else value
        note = f" ({_EXPLAINED[name]})" if name in _EXPLAINED else ""
        out.print_line(f"{label:<16}{shown}{note}")


def list_documents(
    index: IndexOption,
    within: WithinOption = "",
    sort: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="Sort by id, title, date, author, kind, chunks or a field of metadata; -FIELD: the highest first.",
        ),
    ] = "id",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the documents of an index: id, title, number of chunks and source, separated by tabs.

    A fifth field names parts of the file that were not read, if there are any.

    With --json, print their dates, authors and metadata, too, and the values of each field.
    """
    with open_scoped(index, where, documents) as opened:
        found = opened.list_documents(within=within, sort=sort, limit=_NO_LIMIT)
        if as_json:
            print_json({"documents": list(map(asdict, found.documents)), "fields": list(map(asdict, found.fields))})
            return
        if found.total and out.is_terminal:
            print("ID", "TITLE", "CHUNKS", "SOURCE", "PARTS NOT READ", sep="\t")  # noqa: T201
        for document in found.documents:
            fields = [document.id, document.title, f"{document.chunks:,}", document.source]
            if document.left_out:
                fields.append(", ".join(document.left_out))
            line = "\t".join(visible_line(field) for field in fields)
            print(line)  # noqa: T201 - a console would write spaces


def grep(
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", callback=check_text, help="A regular expression in RE2's syntax.")
    ],
    index: IndexOption,
    within: WithinOption = "",
    match_case: Annotated[bool, typer.Option("--case", help="Match capital and small letters apart.")] = False,
    only_match: Annotated[
        bool, typer.Option("--only-match", "-o", help="Print only what matches; of groups, their columns.")
    ] = False,
    start: Annotated[int, typer.Option(min=0, help="How many lines to leave out at the start.")] = 0,
    limit: Annotated[
        int, typer.Option(min=0, help="How many lines, and how many titles, to print at most; all are counted.")
    ] = 1_000,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the lines of an index that match a pattern: sentences, headings and rows of tables, with their chunks.

    Titles that match come first, with their documents and #; --start leaves them out.

    Exit code 1 means that no line and no title matches.
    """
    from arag.retrieval.corpus.patterns import compile_pattern
    from arag.retrieval.corpus.show_lines import describe_lines, write_matches, write_title_matches

    with open_scoped(index, where, documents) as opened:
        found = opened.grep(pattern, within=within, ignore_case=not match_case, start=start, limit=limit)
    if as_json:
        print_json(describe_lines(found))
    else:
        compiled = compile_pattern(found.pattern, case="match" if match_case else "ignore")
        titles = [] if start else list(found.titles.items())
        for document_id, title in titles[:limit]:
            text = write_title_matches(title, compiled) if only_match else title
            print(visible_line(f"{document_id}:# {text}"))  # noqa: T201 - a console would write spaces
        for line in found.lines:
            text = write_matches(line) if only_match else line.text
            print(visible_line(f"{line.chunk_id}:{text}"))  # noqa: T201
        lines, in_documents = count(found.total, "line"), count(found.documents, "document")
        err.print(f"{lines} in {in_documents}, {count(len(found.titles), 'title')}.")
        following = start + len(found.lines)
        if found.lines and following < found.total:
            err.print(f"{found.total - following:,} more: --start {following}")
    if not found.total and not found.titles:
        raise typer.Exit(FAILED)


def _check_kind(context: typer.Context, kind: str) -> str:
    """Return the kind of a search; refuse another word, and propose what the command line may mean."""
    if kind in _KINDS:
        return kind
    texts = [kind, *(read_command_line(context).get("text") or ())]
    kinds: Sequence[str] = _KINDS
    meant = get_close_matches(kind, _KINDS, n=1)
    if meant and len(texts) > 1:
        kinds, texts = meant, texts[1:]
    for each in kinds:  # outside the frame of the error, which would break them into lines
        err.print(propose(context, [each, *texts]))
    raise typer.BadParameter(f"{kind!r} is not a kind of search: see the command above")


def search(
    context: typer.Context,
    kind: Annotated[
        str,
        typer.Argument(metavar="keyword|semantic", callback=_check_kind, help="How to search: by words or meaning."),
    ],
    text: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT",
            callback=check_texts,
            help="Keywords: exact text in any case, whole words first; or a text close in meaning.",
        ),
    ],
    index: IndexOption,
    within: WithinOption = "",
    top_k: TopKOption = DEFAULT_TOP_K,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    paper: Annotated[bool, typer.Option("--paper", help="List chunks by the paper's scores.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search an index without a model, and print the best chunks in the order of their rank.

    An agent's tools and `arag web` rank differently.

    With --json, print the chunks that rank first by the paper's scores, and what an agent is shown.
    """
    if not " ".join(text).strip():
        raise InputError("the text is blank: give words to search for")
    with open_scoped(index, where, documents, within) as opened:
        if kind == "semantic":
            _check_script(opened.embedder.name, " ".join(text))
        else:
            _explain_phrases(context, opened, text)
        if as_json:
            print_json(_describe(opened, kind, text, top_k, paper=paper))
        elif paper:
            out.print(_show_as_paper(kind, _search(opened, kind, text, top_k)))
        else:
            _print_wrapped(_show_to_people(opened, kind, text, top_k))


def _check_script(embedder: str, text: str) -> None:
    """Refuse a text that the embedder cannot place.

    Raises:
        InputError: The embedder knows Latin letters only, and the text has others.
    """
    if not knows_script(embedder, text):
        raise InputError(
            f"the index's embedder, {embedder}, knows Latin letters only: search with words as the documents have "
            "them, by arag search keyword"
        )


def _explain_phrases(context: typer.Context, index: Index, keywords: list[str]) -> None:
    """Say how to search for the words of phrases, or without quotation marks, if no chunk has one of the keywords."""
    without_quotes = [keyword.strip(QUOTES) for keyword in keywords]
    words = " ".join(keywords).split()
    if (len(words) == len(keywords) and without_quotes == keywords) or index.keyword_search(keywords, 1).hits:
        return
    if without_quotes == keywords:
        respelled = index.keyword_search(keywords, 1, ranking="bm25")
        if any(hit.keyword_counts for hit in respelled.hits):
            return  # such as `25°C` for `25 °C`
        command = propose(context, ["keyword", *words])
        err.print(f"Words in quotes are one phrase; to search for each word: {command}")
    elif all(without_quotes):
        command = propose(context, ["keyword", *without_quotes])
        err.print(f"Quotation marks inside the quotes are searched for, too; without them: {command}")


def _search(index: Index, kind: str, texts: list[str], top_k: int) -> Any:
    if kind == "keyword":
        return index.keyword_search(texts, top_k)
    with explaining_wait("Loading the embedder ..."):
        return index.semantic_search(" ".join(texts), top_k)


def _describe(index: Index, kind: str, texts: list[str], top_k: int, *, paper: bool) -> dict[str, Any]:
    """Return the chunks that rank first by the paper's scores, and the text that a model is shown, as plain values."""
    from arag.retrieval.presentation.plain_values import describe_results

    results = _search(index, kind, texts, top_k)
    shown = _show_as_paper(kind, results) if paper else _show_as_agent(index, kind, texts, top_k)
    return {**describe_results(results), "shown": shown}


def _show_as_paper(kind: str, results: Any) -> str:
    """Return the list of chunks by the paper's scores."""
    from arag.retrieval.presentation.render import render_keywords, render_semantic
    from arag.retrieval.presentation.selection import show_keyword_hits, show_semantic_hits

    if kind == "keyword":
        return render_keywords(results, show_keyword_hits(results))
    return render_semantic(show_semantic_hits(results))


def _show_as_agent(index: Index, kind: str, texts: list[str], top_k: int) -> str:
    """Return the text that a search of an agent gives."""
    from arag.retrieval.presentation.retrieve import search_keywords, search_meaning
    from arag.retrieval.presentation.selection import SeenChunks

    if kind == "keyword":
        return search_keywords(index, texts, SeenChunks(), top_k=top_k).text
    with explaining_wait("Loading the embedder ..."):
        return search_meaning(index, [" ".join(texts)], SeenChunks(), top_k=top_k).text


def _show_to_people(index: Index, kind: str, texts: list[str], top_k: int) -> str:
    """Return all hits that were asked for, in the order of their rank."""
    from arag.retrieval.presentation.for_people import list_keyword_hits, list_nearest

    if kind == "keyword":
        return list_keyword_hits(index, texts, top_k)
    with explaining_wait("Loading the embedder ..."):
        return list_nearest(index, " ".join(texts), top_k)


def _print_wrapped(text: str) -> None:
    """Print a text; in a terminal, its lines end between words. Long words, such as ids, stay whole."""
    if out.is_terminal:
        wrapper = TextWrapper(out.width, break_long_words=False, break_on_hyphens=False)
        text = "\n".join(map(wrapper.fill, text.splitlines()))
    out.print(text)


def sql(
    index: IndexOption,
    statement: Annotated[
        str, typer.Argument(metavar="[SQL]", help="A SELECT statement in SQLite's language. Default: list the tables.")
    ] = "",
    within: Annotated[
        str, typer.Option(help="Only tables of documents with these words in title, id or file's name.")
    ] = "",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the tables of all documents with a SELECT statement of SQL. Without one, list the tables."""
    from arag.retrieval.corpus.show_tables import show_tables

    with open_scoped(index, where, documents) as opened:
        opened.within(within)  # it says what a name is compared with
        results = opened.query_tables(statement, within=within)
    if as_json:
        print_json(asdict(results))
        return
    out.print(show_tables(results, within="--within").text)
    if any(table.name.startswith("rows_of_") for table in results.tables) and not statement:
        out.print("rows_of_N holds the rows of all tables with N columns that have no names.")


def read(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Chunk ids.")],
    index: IndexOption,
    adjacent: Annotated[int, typer.Option(min=0, max=2, help="Chunks to add before and after each one.")] = 0,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print chunks in full. Exit code 1 means that an id is unknown."""
    from arag.retrieval.presentation.for_people import write_read

    with open_scoped(index, where, documents) as opened:
        results = opened.read(ids, adjacent)
        written = "" if as_json else write_read(opened, results)
    if as_json:
        print_json(asdict(results))
    else:
        out.print(written)
    if results.unknown:
        raise typer.Exit(FAILED)
