"""`ls`: the documents by their names."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.documents import ROOT
from arag.retrieval.corpus.shell.options import Option, Parsed, parse
from arag.retrieval.corpus.types import ListedDocument
from arag.text.normalise import count, name_words

_LS_OPTIONS = {
    "-l": Option("long"),
    "--long": Option("long"),
    "-R": Option("recursive"),
    "--recursive": Option("recursive"),
    "-r": Option("reverse"),
    "--reverse": Option("reverse"),
    "-t": Option("by_date"),
    "-S": Option("by_size"),
    "-d": Option("folders_alone"),
    **dict.fromkeys(("-1", "-a", "-A", "-h", "-p", "-F", "-n", "-o", "-g", "-G", "--all", "--almost-all"), Option("")),
    **dict.fromkeys(("--human-readable", "-s", "-i", "-C", "-x"), Option("")),
    "--color": Option(""),
    "--sort": Option("sort", takes_value=True),
}
_WRONG_USE = 2  # the exit code
_NOT_THERE = 127  # the exit code of commands that a shell does not have
LS_VALID = "-l (date, chunks, name, title, author) -t (newest first) -S (longest first) -r -R -d"


def list_names(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `ls`: the names in folders, one a line."""
    parsed = parse(call.arguments, _LS_OPTIONS, valid=LS_VALID)
    named = _Named()
    for name in parsed.operands or ["."]:
        _add_named(name, call, corpus, parsed, named)
    pieces = [f"{name}\n" for name in named.others]
    pieces += _write_names(named.files, "", corpus, parsed)
    has_heads = len(named.folders) > 1 or bool(named.files)
    for folder in named.folders:
        if has_heads:
            pieces.append(f"{folder or '.'}:\n")
        names = corpus.documents.below(folder)
        if not parsed.has("recursive"):
            names = _list_children(names, folder)
        pieces += _write_names(names, folder, corpus, parsed)
    exit_code = _WRONG_USE if named.errors else 0
    return Answer("".join(pieces), "".join(named.errors), exit_code)


@dataclass
class _Named:
    """What the arguments of `ls` name."""

    files: list[str] = field(default_factory=list)  # documents, and folders that are listed as such
    folders: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # files that the command has written
    errors: list[str] = field(default_factory=list)


def _add_named(name: str, call: Call, corpus: Corpus, parsed: Parsed, named: _Named) -> None:
    corpus.check_time()
    documents = corpus.documents
    place = posixpath.normpath(posixpath.join(call.folder, name))
    folder = place.removeprefix(ROOT).strip("/")
    if place in {ROOT, "/"}:
        named.folders.append("")
    elif folder in documents.folders:
        if parsed.has("folders_alone"):
            named.files.append(f"{folder}/")
        else:
            named.folders.append(folder)
    elif found := documents.resolve(name, call.folder):
        named.files += found
    elif name in call.files:
        named.others.append(name)
    else:
        named.errors.append(f"ls: {name}: {corpus.say_missing(name)}\n")


def _list_children(paths: Sequence[str], folder: str) -> list[str]:
    """Return the paths in a folder, and the folders in it with a slash at the end."""
    start = len(folder) + 1 if folder else 0
    children: dict[str, None] = {}
    for path in paths:
        name, slash, _ = path[start:].partition("/")
        children[f"{path[:start]}{name}{slash}"] = None
    return list(children)


def _write_names(paths: Sequence[str], folder: str, corpus: Corpus, parsed: Parsed) -> list[str]:
    """Return a line for each path."""
    details: dict[str, ListedDocument] = {}
    if parsed.has("long", "by_date", "by_size", "sort"):
        details = corpus.describe([path for path in paths if path in corpus.documents.ids])
    lines: list[str] = []
    start = len(folder) + 1 if folder and not parsed.has("recursive") else 0
    for path in _order(paths, details, parsed):
        name = path[start:]
        if path in corpus.documents.ids:
            corpus.print_path(path)
        if not parsed.has("long"):
            lines.append(f"{name}\n")
        elif path in details:
            lines.append(f"{_describe(details[path], name)}\n")
        else:
            inside = corpus.documents.below(path.rstrip("/"))
            lines.append(f"{count(len(inside), 'document'):<14}  {name}\n")
    return lines


def _order(paths: Sequence[str], details: Mapping[str, ListedDocument], parsed: Parsed) -> list[str]:
    """Return paths in the order that the options ask for; folders have no date and no size."""

    def date(path: str) -> str:
        return details[path].date if path in details else ""

    def size(path: str) -> int:
        return details[path].chunks if path in details else 0

    ordered = list(paths)
    if parsed.has("by_date") or "time" in parsed.values("sort"):
        ordered.sort(key=date, reverse=True)
    if parsed.has("by_size") or "size" in parsed.values("sort"):
        ordered.sort(key=size, reverse=True)
    if parsed.has("reverse"):
        ordered.reverse()
    return ordered


def _describe(document: ListedDocument, name: str) -> str:
    parts = [f"{document.date[:10] or '-':<10} {document.chunks:>3}", name]
    if not set(name_words(document.title)) <= set(name_words(name)):
        parts.append(document.title)
    if document.author:
        parts.append(f"({document.author})")
    if document.left_out:
        parts.append(f"(missing: {', '.join(document.left_out)})")
    return "  ".join(parts)


def refuse_sizes(call: Call, _: Corpus) -> Answer:
    """Answer a call of `du` or `stat`: the interpreter's own would say that each document has no bytes."""
    said = "not available here: `ls -l` counts the chunks of documents, and `wc -c` the bytes of what `cat` prints"
    return Answer(stderr=f"bash: {call.name}: {said}\n", exit_code=_NOT_THERE)
