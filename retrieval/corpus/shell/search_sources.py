"""What a search reads: documents, files that the command has written, or a pipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from arag.errors import InputError
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.shell.calls import Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.documents import compile_glob
from arag.retrieval.corpus.shell.options import Parsed

_TYPES = {
    "markdown": "md markdown mdx",
    "text": "txt",
    "word": "docx doc odt rtf",
    "excel": "xlsx xls ods csv tsv",
    "powerpoint": "pptx ppt odp",
    "mail": "eml msg",
    "html": "html htm",
    "yaml": "yml yaml",
    "py": "py",
}


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A line that is not a document's."""

    text: str


AnyLine: TypeAlias = Line | PlainLine


@dataclass
class Source:
    """A document, or another text, as lines."""

    name: str
    lines: Sequence[AnyLine]
    is_document: bool = False


@dataclass
class Sources:
    """What a search reads.

    Attributes:
        paths: The paths of documents.
        texts: Other texts.
        missing: The names that nothing has.
        is_all: Whether all documents are read, because none is named.
    """

    paths: Sequence[str] = ()
    texts: list[Source] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    is_all: bool = False


def find_sources(call: Call, corpus: Corpus, parsed: Parsed) -> Sources:
    """Return what a call reads: what it names, a pipe, or else all documents below the folder that the shell is in."""
    sources = Sources()
    inside = corpus.documents.resolve(".", call.folder) or []
    if parsed.operands:
        paths: dict[str, None] = {}
        for name in dict.fromkeys(parsed.operands):
            paths.update(dict.fromkeys(_find_named(name, call, corpus, sources)))
        sources.paths = list(paths)
    elif call.stdin is not None:
        sources.texts.append(_make_text("<stdin>", call.stdin))
    else:
        sources.paths = inside
        sources.is_all = len(inside) == len(corpus.documents.paths)
    if parsed.has("glob", "include", "exclude", "exclude_folder", "type", "type_not"):
        is_wanted = _compile_filters(parsed)
        sources.paths = [path for path in sources.paths if is_wanted(path)]
        sources.is_all = False
    return sources


def _find_named(name: str, call: Call, corpus: Corpus, sources: Sources) -> Sequence[str]:
    """Return the paths that a name stands for; if it stands for another text or nothing, add that to the sources."""
    corpus.check_time()
    if name == "-":
        sources.texts.append(_make_text("<stdin>", call.stdin or ""))
        return ()
    if name in call.files:
        sources.texts.append(_make_text(name, call.files[name]))
        return ()
    paths = corpus.documents.resolve(name, call.folder)
    if paths is None:
        sources.missing.append(name)
        return ()
    return paths


def _make_text(name: str, text: str) -> Source:
    return Source(name, [PlainLine(line) for line in text.splitlines()])


def read_text(name: str, call: Call, corpus: Corpus) -> str:
    """Return the text of a file, a document or a pipe.

    Raises:
        InputError: Nothing has this name.
    """
    if name == "-":
        return call.stdin or ""
    if name in call.files:
        return call.files[name]
    paths = corpus.documents.resolve(name, call.folder)
    if paths is None:
        raise InputError(f"{name}: {corpus.say_missing(name)}")
    return "".join(corpus.read_files(paths).values())


def _compile_filters(parsed: Parsed) -> Callable[[str], bool]:
    """Return whether the options for names let a path through."""
    wanted: list[Any] = []
    unwanted: list[Any] = []
    for glob in [*parsed.values("glob"), *parsed.values("include")]:
        target = unwanted if glob.startswith("!") else wanted
        target.append(_compile_name(glob.removeprefix("!")))
    for glob in parsed.values("exclude"):
        unwanted.append(_compile_name(glob))
    for glob in parsed.values("exclude_folder"):
        unwanted.append(compile_glob(f"**/{glob.rstrip('/')}/**"))
    for kind in parsed.values("type"):
        wanted.append(_compile_type(kind))
    for kind in parsed.values("type_not"):
        unwanted.append(_compile_type(kind))

    def is_wanted(path: str) -> bool:
        if wanted and not any(glob.fullmatch(path) for glob in wanted):
            return False
        return not any(glob.fullmatch(path) for glob in unwanted)

    return is_wanted


def _compile_name(glob: str) -> Any:
    """Return the expression of a pattern for names; without a slash, it is one for the last part of a path."""
    name = glob.removeprefix("./")
    if name.startswith("/"):
        return compile_glob(name[1:])
    if name.endswith("/"):
        return compile_glob(f"**/{name}**")
    if "/" not in name:
        return compile_glob(f"{{**/{name},**/{name}/**}}")
    return compile_glob(f"{{{name},{name}/**}}")


def _compile_type(kind: str) -> Any:
    endings = _TYPES.get(kind, kind)
    return compile_glob(f"**/*.{{{','.join(endings.split())}}}", ignore_case=True)
