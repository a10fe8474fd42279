"""`ls` and `find`: the documents by their names."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Any

from arag.errors import InputError
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.documents import ROOT, compile_glob
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
_LS_VALID = "-l (date, chunks, name, title, author) -t (newest first) -S (longest first) -r -R -d"


def list_names(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `ls`: the names in folders, one a line."""
    parsed = parse(call.arguments, _LS_OPTIONS, valid=_LS_VALID)
    pieces: list[str] = []
    errors = ""
    files: list[str] = []
    folders: list[str] = []
    for name in parsed.operands or ["."]:
        place = posixpath.normpath(posixpath.join(call.folder, name))
        folder = place.removeprefix(ROOT).strip("/")
        found = corpus.documents.resolve(name, call.folder)
        if place in {ROOT, "/"}:
            folders.append("")
        elif folder in corpus.documents.folders and not parsed.has("folders_alone"):
            folders.append(folder)
        elif found is not None:
            files += found if folder not in corpus.documents.folders else [f"{folder}/"]
        elif name in call.files:
            pieces.append(f"{name}\n")
        else:
            errors += f"ls: {name}: {corpus.say_missing(name)}\n"
    pieces += _write_names(files, "", corpus, parsed)
    for folder in folders:
        if len(folders) > 1 or files:
            pieces.append(f"{folder or '.'}:\n")
        names = corpus.documents.below(folder)
        if not parsed.has("recursive"):
            names = _list_children(names, folder)
        pieces += _write_names(names, folder, corpus, parsed)
    return Answer("".join(pieces), errors, 2 if errors else 0)


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
    files = [path for path in paths if path in corpus.documents.ids]
    details: dict[str, ListedDocument] = {}
    if parsed.has("long", "by_date", "by_size", "sort"):
        details = corpus.describe(files)
    ordered = list(paths)
    if parsed.has("by_date") or "time" in parsed.values("sort"):
        ordered.sort(key=lambda path: details[path].date if path in details else "", reverse=True)
    if parsed.has("by_size") or "size" in parsed.values("sort"):
        ordered.sort(key=lambda path: details[path].chunks if path in details else 0, reverse=True)
    if parsed.has("reverse"):
        ordered.reverse()
    lines: list[str] = []
    start = len(folder) + 1 if folder and not parsed.has("recursive") else 0
    for path in ordered:
        if path in corpus.documents.ids:
            corpus.print_path(path)
        name = path[start:]
        if not parsed.has("long"):
            lines.append(f"{name}\n")
        elif path in details:
            lines.append(f"{_describe(details[path], name)}\n")
        else:
            inside = corpus.documents.below(path.rstrip("/"))
            lines.append(f"{count(len(inside), 'document'):<14}  {name}\n")
    return lines


def _describe(document: ListedDocument, name: str) -> str:
    title = document.title
    if set(name_words(title)) <= set(name_words(name)):
        title = ""
    author = f"  ({document.author})" if document.author else ""
    return f"{document.date[:10] or '-':<10} {document.chunks:>3}  {name}  {title}{author}".rstrip()


# --- find ---


def find_names(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `find`, in corpora whose files are not all there."""
    arguments = list(call.arguments)
    starts: list[str] = []
    while arguments and not arguments[0].startswith(("-", "!", "(")):
        starts.append(arguments.pop(0))
    test, depth = _read_tests(arguments)
    pieces: list[str] = []
    errors = ""
    for start in starts or ["."]:
        paths = corpus.documents.resolve(start, call.folder)
        if paths is None:
            errors += f"find: {start}: {corpus.say_missing(start)}\n"
            continue
        folder = posixpath.normpath(posixpath.join(call.folder, start)).removeprefix(ROOT).strip("/")
        for path in paths:
            inside = path.removeprefix(f"{folder}/") if folder else path
            if test(path) and (depth is None or inside.count("/") < depth):
                corpus.print_path(path)
                pieces.append(f"{start.rstrip('/')}/{inside}\n" if path != folder else f"{start}\n")
    return Answer("".join(pieces), errors, 1 if errors else 0)


_FIND_VALID = "-name, -iname, -path, -ipath, -type f, -maxdepth, -not, -o; pipe to xargs in place of -exec"


def _read_tests(arguments: list[str]) -> tuple[Callable[[str], bool], int | None]:
    """Return the test of `find`'s arguments, and the depth that it goes to."""
    choices: list[list[tuple[Any, bool]]] = [[]]  # of any, all (an expression, whether it must not match)
    depth: int | None = None
    negated = False
    is_impossible = False
    rest = list(arguments)
    while rest:
        option = rest.pop(0)
        if option in {"-print", "(", ")", "-a", "-and"}:
            continue
        if option in {"-not", "!"}:
            negated = not negated
            continue
        if option in {"-o", "-or"}:
            choices.append([])
            continue
        if option not in {"-name", "-iname", "-path", "-ipath", "-type", "-maxdepth"} or not rest:
            raise InputError(f"{option} is not valid here: valid are {_FIND_VALID}")
        value = rest.pop(0)
        if option == "-maxdepth":
            depth = int(value) if value.isascii() and value.isdigit() else None
        elif option == "-type":
            is_impossible = value != "f"
        else:
            pattern = f"**/{value}" if "name" in option else value.removeprefix("./").replace("*", "**")
            choices[-1].append((compile_glob(pattern, ignore_case=option.startswith("-i")), negated))
            negated = False

    def test(path: str) -> bool:
        if is_impossible:
            return False
        return any(all(bool(glob.fullmatch(path)) != inverse for glob, inverse in choice) for choice in choices)

    return test, depth
