"""`rg` and `grep`: over the documents' lines, or over what a pipe gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import re2

from arag.errors import InputError
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.patterns import Case, Match, Pattern, compile_pattern
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus, Unmatched
from arag.retrieval.corpus.shell.documents import compile_glob
from arag.retrieval.corpus.shell.options import Option, Parsed, parse
from arag.retrieval.corpus.shell.surroundings import rewrite

_MAX_OUTPUT = 16 << 20  # characters of one command
_MAX_PATTERNS = 5_000  # of one command
_BASIC_PART = re.compile(r"\\.|\[\^?\]?[^\]]*\]|[|(){}+?]", re.DOTALL)
_SPECIAL = frozenset("|(){}+?")
_REFERENCE = re.compile(r"\$(?:\$|(\d+)|\{(\d+)\})")
_BAR = re.compile(r"(?<!\\)\|")
_WORD_END = re.compile(r"\\[<>]")

_FLAGS = {
    "ignore_case": "-i --ignore-case -y",
    "case_sensitive": "-s --case-sensitive",
    "smart_case": "-S --smart-case",
    "invert": "-v --invert-match",
    "words": "-w --word-regexp",
    "whole_lines": "-x --line-regexp",
    "fixed": "-F --fixed-strings",
    "extended": "-E -P --extended-regexp --perl-regexp --pcre2",
    "basic": "-G --basic-regexp",
    "only_matching": "-o --only-matching",
    "count": "-c --count",
    "count_matches": "--count-matches",
    "with_matches": "-l --files-with-matches",
    "without_match": "-L --files-without-match",
    "without_name": "-h -I --no-filename",
    "quiet": "-q --quiet --silent",
    "files": "--files",
    "stats": "--stats",
    "number": "-n --line-number",
    "help": "--help",
    # What makes no difference here.
    "": "-N -H -a -u -z -U -0 -p --no-line-number --with-filename --text --no-heading --heading --hidden --no-ignore "
    "--multiline --multiline-dotall --search-zip --null --column --trim --no-messages --line-buffered --unrestricted "
    "--color --colour --pretty --crlf --mmap --no-config --unicode --no-unicode --follow --null-data --include-zero",
}
_VALUES = {
    "pattern": "-e --regexp",
    "pattern_file": "-f --file",
    "max_count": "-m --max-count",
    "after": "-A --after-context",
    "before": "-B --before-context",
    "context": "-C --context",
    "glob": "-g --glob --iglob",
    "include": "--include",
    "exclude": "--exclude",
    "exclude_folder": "--exclude-dir",
    "type": "-t --type",
    "type_not": "-T --type-not",
    "replace": "--replace",
    "sort": "--sort",
    "reversed": "--sortr",
    "max_depth": "-d --max-depth",
    "ignored": "-j -M --threads --max-columns --max-filesize --encoding --engine --binary-files --context-separator",
}
_VALID = (
    "-i -s -S -v -w -x -F -E -e PATTERN -f FILE -o -c --count-matches -l -L -h -m N -A N -B N -C N -q -g GLOB "
    "--include GLOB --exclude GLOB -t TYPE --replace TEXT --files"
)


def _list_options(*, replaces: bool) -> dict[str, Option]:
    known: dict[str, Option] = {}
    for name, written in _FLAGS.items():
        known |= dict.fromkeys(written.split(), Option(name))
    for name, written in _VALUES.items():
        known |= dict.fromkeys(written.split(), Option(name, takes_value=True))
    if replaces:
        known["-r"] = Option("replace", takes_value=True)
    else:
        known |= dict.fromkeys(("-r", "-R", "--recursive"), Option(""))
    return known


_OPTIONS = {"rg": _list_options(replaces=True), "grep": _list_options(replaces=False)}
_HELP = f"Usage: rg [options] PATTERN [path...]\nOptions: {_VALID}\n"
# `rg -rn` is meant as grep's.
_RECURSIVE_FLAGS = re.compile(r"-r[inlcohwEFPRHI]+|-[inlcohwEFPRHI]+r[inlcohwEFPRHI]*")

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


@dataclass(frozen=True)
class _Reading:
    """A way to read the patterns of a call; later ones are tried if the earlier ones match nothing."""

    patterns: list[str]
    note: str = ""


@dataclass
class _Matcher:
    """What a search looks for."""

    patterns: list[Pattern]
    invert: bool
    group: int = 0  # that is the match, where the pattern also says what is around it

    def matches(self, text: str) -> bool:
        return any(pattern.matches(text) for pattern in self.patterns) != self.invert

    def find(self, text: str) -> list[Match]:
        """Return the matches in a text, in order, none over another."""
        if self.invert:
            return []
        found = [match for pattern in self.patterns for match in pattern.find(text)]
        found.sort(key=lambda match: (match.start, -match.end))
        apart: list[Match] = []
        for match in found:
            if not apart or match.start >= apart[-1].end:
                apart.append(match)
        return apart


@dataclass
class _Source:
    """A document, or another text, as lines."""

    name: str
    lines: Sequence[Line | str]
    is_document: bool = False


@dataclass
class _Sources:
    """What a search reads."""

    paths: Sequence[str] = ()  # of documents
    texts: list[_Source] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    is_all: bool = False  # no document was named


def search(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `rg` or `grep`."""
    is_rg = call.name == "rg"
    arguments = _without_recursive(call.arguments) if is_rg else call.arguments
    parsed = parse(arguments, _OPTIONS["rg" if is_rg else "grep"], valid=_VALID, number="context")
    if call.name == "fgrep":
        parsed.add("fixed")
    elif call.name == "egrep":
        parsed.add("extended")
    if parsed.has("help"):
        return Answer(_HELP)
    if parsed.has("files"):
        return _list_files(call, corpus, parsed)
    patterns = _take_patterns(call, corpus, parsed)
    sources = _find_sources(call, corpus, parsed)
    errors = ""
    for name in sources.missing:
        errors += f"{call.name}: {name}: {corpus.say_missing(name)}\n"
    if not sources.paths and not sources.texts:
        return Answer("", errors, 2 if errors else 1)
    output = _Output(corpus, parsed, call.name, is_single=len(sources.texts) == 1 and not sources.paths)
    for reading in _list_readings(call.name, parsed, patterns):
        matcher = _make_matcher(reading.patterns, parsed)
        output.run(matcher, sources)
        if output.found:
            errors += f"{call.name}: {reading.note}\n" if reading.note else ""
            break
    if not output.found and sources.paths and not parsed.has("invert", "without_match"):
        corpus.unmatched.append(Unmatched(patterns, parsed.has("fixed"), sources.paths, sources.is_all))
    elif output.found and not sources.texts:
        corpus.matchers.append(matcher)
    if output.is_full:
        errors += f"{call.name}: too many lines: stopped after {_MAX_OUTPUT:,} characters; narrow the search\n"
    exit_code = 2 if sources.missing else int(not output.found)
    return Answer("" if parsed.has("quiet") else output.text(), errors, exit_code)


# --- arguments ---


def _without_recursive(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `rg` without the `r` of grep's `-rn`, with which rg would replace each match by "n"."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*kept, *arguments[place:]]
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        is_replacement = argument.endswith("r") and "$" in following
        if _RECURSIVE_FLAGS.fullmatch(argument) and not is_replacement:
            argument = argument.replace("r", "", 1)  # noqa: PLW2901
        kept.append(argument)
    return kept


def _take_patterns(call: Call, corpus: Corpus, parsed: Parsed) -> list[str]:
    """Return the patterns of a call; the first operand is one if no option gives any."""
    patterns = list(parsed.values("pattern"))
    for name in parsed.values("pattern_file"):
        patterns += _read_text(name, call, corpus).splitlines()
    if not parsed.has("pattern", "pattern_file"):
        if not parsed.operands:
            note = "; -r is --replace, every folder is searched anyway" if parsed.has("replace") else ""
            raise InputError(f"no pattern: {call.name} [options] PATTERN [path...]{note}")
        patterns = parsed.operands.pop(0).split("\n")
    if len(patterns) > _MAX_PATTERNS:
        raise InputError(f"there are {len(patterns):,} patterns: give at most {_MAX_PATTERNS:,}")
    return list(dict.fromkeys(patterns))


def _read_text(name: str, call: Call, corpus: Corpus) -> str:
    if name == "-":
        return call.stdin or ""
    if name in call.files:
        return call.files[name]
    paths = corpus.documents.resolve(name, call.folder)
    if paths is None:
        raise InputError(f"{name}: {corpus.say_missing(name)}")
    return "".join(corpus.read_files(paths).values())


def _list_readings(command: str, parsed: Parsed, patterns: list[str]) -> list[_Reading]:
    """Return how the patterns may be read: models mix up how commands write alternatives."""
    if parsed.has("fixed"):
        return [_Reading(patterns)]
    patterns = [_WORD_END.sub(r"\\b", pattern) for pattern in patterns]
    if command == "grep" and not parsed.has("extended"):
        readings = [_Reading([_read_basic(pattern) for pattern in patterns])]
        if any(_are_alternatives(_BAR.split(pattern)) for pattern in patterns):
            readings.append(_Reading(patterns, "nothing matches as a basic expression: read as with -E"))
        return readings
    readings = [_Reading(patterns)]
    if any(_are_alternatives(pattern.split(r"\|")) for pattern in patterns):
        alternatives = [pattern.replace(r"\|", "|") for pattern in patterns]
        readings.append(_Reading(alternatives, r"nothing matches \| (a bar): read as |, the alternative"))
    return readings


def _are_alternatives(parts: Sequence[str]) -> bool:
    """Return whether the parts between bars may be alternatives: there are several, each with a letter or digit."""
    return len(parts) > 1 and all(re.search(r"\w", part) for part in parts)


def _read_basic(pattern: str) -> str:
    """Return a basic regular expression of grep as an extended one."""
    return _BASIC_PART.sub(_swap_escape, pattern)


def _swap_escape(match: re.Match[str]) -> str:
    part = match[0]
    if part in _SPECIAL:
        return f"\\{part}"
    if len(part) == 2 and part[0] == "\\" and part[1] in _SPECIAL:
        return part[1]
    return part


def _make_matcher(patterns: Sequence[str], parsed: Parsed) -> _Matcher:
    case: Case = "match"
    if parsed.has("smart_case"):
        case = "smart"
    if parsed.has("ignore_case"):
        case = "ignore"
    group = 0
    surrounded = rewrite(patterns[0]) if len(patterns) == 1 and not parsed.has("fixed") else None
    if surrounded is not None:
        patterns, group = [surrounded.pattern], surrounded.group
    compiled: list[Pattern] = []
    for joined in _join(patterns, is_fixed=parsed.has("fixed")):
        compiled.append(
            compile_pattern(
                joined,
                case=case,
                whole_words=parsed.has("words"),
                whole_lines=parsed.has("whole_lines"),
            )
        )
    return _Matcher(compiled, invert=parsed.has("invert"), group=group)


def _join(patterns: Sequence[str], *, is_fixed: bool) -> list[str]:
    """Return patterns as alternatives in few expressions, none longer than one may be."""
    sources = [re2.escape(pattern) if is_fixed else pattern for pattern in patterns]
    if len(sources) == 1:
        return [sources[0] or "(?:)"]
    joined: list[str] = []
    for source in sources:
        alternative = f"(?:{source})"
        if joined and len(joined[-1]) + len(alternative) < MAX_CHARACTERS:
            joined[-1] += f"|{alternative}"
        else:
            joined.append(alternative)
    return joined


def _find_sources(call: Call, corpus: Corpus, parsed: Parsed) -> _Sources:
    """Return what a call reads: what it names, a pipe, or else all documents."""
    sources = _Sources()
    if not parsed.operands:
        if call.stdin is not None:
            sources.texts.append(_Source("<stdin>", call.stdin.splitlines()))
        else:
            sources.paths = corpus.documents.paths
            sources.is_all = True
    for name in parsed.operands:
        if name == "-":
            sources.texts.append(_Source("<stdin>", (call.stdin or "").splitlines()))
        elif name in call.files:
            sources.texts.append(_Source(name, call.files[name].splitlines()))
        else:
            paths = corpus.documents.resolve(name, call.folder)
            if paths is None:
                sources.missing.append(name)
            else:
                sources.paths = [*sources.paths, *paths]
    if parsed.has("glob", "include", "exclude", "exclude_folder", "type", "type_not"):
        is_wanted = _compile_filters(parsed)
        sources.paths = [path for path in sources.paths if is_wanted(path)]
        sources.is_all = False
    if not sources.is_all:
        sources.paths = list(dict.fromkeys(sources.paths))
    return sources


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


def _list_files(call: Call, corpus: Corpus, parsed: Parsed) -> Answer:
    sources = _find_sources(Call(call.name, (), None, call.folder), corpus, parsed)
    errors = "".join(f"{call.name}: {name}: {corpus.say_missing(name)}\n" for name in sources.missing)
    return Answer(corpus.print_paths(sources.paths), errors, 0 if sources.paths else 1)


# --- output ---


class _Output:
    """What a search prints."""

    def __init__(self, corpus: Corpus, parsed: Parsed, command: str, *, is_single: bool) -> None:
        self.found = False
        self.is_full = False
        self._corpus = corpus
        self._parsed = parsed
        self._is_single = is_single  # a text without a name
        self._keeps_zeros = command != "rg"  # grep -c prints zeros, too
        context = parsed.number("context") or 0
        self._before = parsed.number("before") or context
        self._after = parsed.number("after") or context
        self._max_count = parsed.number("max_count")
        self._template = _read_template(parsed)
        self._pieces: list[str] = []
        self._size = 0

    def text(self) -> str:
        return "".join(self._pieces)

    def run(self, matcher: _Matcher, sources: _Sources) -> None:
        """Search all sources."""
        for source in sources.texts:
            self._search(source, matcher)
        for path, lines in self._list_lines(matcher, sources.paths):
            self._search(_Source(path, lines, is_document=True), matcher)
            if self.is_full or (self.found and self._parsed.has("quiet")):
                return

    def _list_lines(self, matcher: _Matcher, paths: Sequence[str]) -> Iterable[tuple[str, list[Line]]]:
        """Return the lines of documents that may matter, by path."""
        if matcher.invert:
            return self._corpus.lines_by_document(paths)
        matching = self._corpus.matching_lines(matcher.patterns, paths)
        if self._before or self._after:
            return self._corpus.lines_by_document(list(matching))
        lists_others = self._parsed.has("without_match") or (self._parsed.has("count") and self._keeps_zeros)
        if lists_others:
            return [(path, matching.get(path, [])) for path in paths]
        return matching.items()

    def _search(self, source: _Source, matcher: _Matcher) -> None:
        lines = source.lines
        matched: list[int] = []
        for place, line in enumerate(lines):
            if matcher.matches(line if isinstance(line, str) else line.text):
                matched.append(place)
                if self._max_count is not None and len(matched) >= self._max_count:
                    break
        parsed = self._parsed
        if parsed.has("without_match"):
            if not matched:
                self.found = True
                self._add(f"{self._name(source)}\n")
            return
        self.found = self.found or bool(matched)
        if parsed.has("with_matches"):
            if matched:
                self._add(f"{self._name(source)}\n")
        elif parsed.has("count", "count_matches"):
            self._add_count(source, matched, matcher)
        elif matched:
            self._add_lines(source, matched, matcher)

    def _name(self, source: _Source) -> str:
        return self._corpus.print_path(source.name) if source.is_document else source.name

    def _add_count(self, source: _Source, matched: list[int], matcher: _Matcher) -> None:
        number = len(matched)
        if self._parsed.has("count_matches") or (self._parsed.has("count") and self._parsed.has("only_matching")):
            number = 0
            for place in matched:
                line = source.lines[place]
                number += len(matcher.find(line if isinstance(line, str) else line.text))
        if self._is_single or self._parsed.has("without_name"):
            self._add(f"{number}\n")
        elif number or self._keeps_zeros:
            self._add(f"{self._name(source)}:{number}\n")

    def _add_lines(self, source: _Source, matched: list[int], matcher: _Matcher) -> None:
        if not self._before and not self._after:
            for place in matched:
                self._add_match(source, place, matcher)
            return
        shown: set[int] = set()
        for place in matched:
            shown.update(range(max(0, place - self._before), min(len(source.lines), place + self._after + 1)))
        wanted = set(matched)
        last = -1
        for place in sorted(shown):
            if self._pieces and place != last + 1:
                self._add("--\n")
            if place in wanted:
                self._add_match(source, place, matcher)
            else:
                self._add_line(source, place)
            last = place

    def _add_match(self, source: _Source, place: int, matcher: _Matcher) -> None:
        line = source.lines[place]
        text = line if isinstance(line, str) else line.text
        if self._parsed.has("only_matching") and not matcher.invert:
            for match in matcher.find(text):
                if match.end > match.start:
                    self._add_line(source, place, self._replace(text, match, matcher.group))
        elif self._template is not None:
            self._add_line(source, place, self._replace_all(text, matcher))
        else:
            self._add_line(source, place)

    def _replace(self, text: str, match: Match, group: int = 0) -> str:
        groups = (text[match.start : match.end], *match.groups)
        if self._template is None:
            return groups[group]

        def fill(reference: re.Match[str]) -> str:
            if reference[0] == "$$":
                return "$"
            number = int(reference[1] or reference[2])
            return groups[number] if number < len(groups) else ""

        return _REFERENCE.sub(fill, self._template)

    def _replace_all(self, text: str, matcher: _Matcher) -> str:
        pieces: list[str] = []
        end = 0
        for match in matcher.find(text):
            pieces += [text[end : match.start], self._replace(text, match)]
            end = match.end
        return "".join([*pieces, text[end:]])

    def _add_line(self, source: _Source, place: int, text: str | None = None) -> None:
        line = source.lines[place]
        without_name = self._parsed.has("without_name")
        if isinstance(line, str):
            name = "" if self._is_single or without_name else f"{source.name}:"
            number = f"{place + 1}:" if self._parsed.has("number") else ""
            self._add(f"{name}{number}{line if text is None else text}\n")
        elif without_name:
            self._corpus.note(line)
            self._add(f"{line.text if text is None else text}\n")
        else:
            self._add(self._corpus.print_line(line, text))

    def _add(self, piece: str) -> None:
        if self._size > _MAX_OUTPUT:
            self.is_full = True
            return
        self._pieces.append(piece)
        self._size += len(piece)


def _read_template(parsed: Parsed) -> str | None:
    """Return the text of `--replace`, in which `$1` and `${1}` stand for groups."""
    if not parsed.has("replace"):
        return None
    return parsed.values("replace")[-1]
