"""`rg` and `grep`: over the documents' lines, or over what a pipe gives them."""

from __future__ import annotations

from arag.errors import InputError
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus, Unmatched
from arag.retrieval.corpus.shell.options import Parsed
from arag.retrieval.corpus.shell.search_options import HELP, name_end, parse_search
from arag.retrieval.corpus.shell.search_output import MAX_OUTPUT, Output
from arag.retrieval.corpus.shell.search_patterns import list_readings, make_matcher
from arag.retrieval.corpus.shell.search_sources import Sources, find_sources, read_text

_MAX_PATTERNS = 5_000  # of one command
_WRONG_USE = 2  # the exit code


def search(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `rg` or `grep`."""
    parsed = parse_search(call)
    if parsed.has("help"):
        return Answer(HELP)
    if parsed.has("files"):
        return _list_files(call, corpus, parsed)
    patterns = _take_patterns(call, corpus, parsed)
    sources = find_sources(call, corpus, parsed)
    errors = _name_missing(call, corpus, sources)
    output = Output(corpus, parsed, call.name)
    for reading in list_readings(call.name, parsed, patterns):
        matcher = make_matcher(reading.patterns, parsed)
        output.search(matcher, sources)
        if output.found:
            if reading.note:
                errors += f"{call.name}: {reading.note}\n"
            corpus.matchers.append(matcher)
            break
    if output.is_full:
        errors += f"{call.name}: too many lines: stopped after {MAX_OUTPUT:,} characters; narrow the search\n"
    is_plain = not parsed.has("invert", "without_match") and parsed.number("max_count") != 0
    if not output.found and sources.paths and is_plain:
        corpus.unmatched.append(Unmatched(patterns, sources.paths, sources.is_all))
    exit_code = 0 if output.found else 1
    if sources.missing:
        exit_code = _WRONG_USE
    return Answer("" if parsed.has("quiet") else output.text(), errors, exit_code)


def _take_patterns(call: Call, corpus: Corpus, parsed: Parsed) -> list[str]:
    """Return the patterns of a call; the first operand is one if no option gives any."""
    patterns = list(parsed.values("pattern"))
    for name in parsed.values("pattern_file"):
        patterns += read_text(name, call, corpus).splitlines()
    if not parsed.has("pattern", "pattern_file"):
        if not parsed.operands:
            note = "; -r is --replace, every folder is searched anyway" if parsed.has("replace") else ""
            raise InputError(f"no pattern: {call.name} [options] PATTERN [path...]{note}")
        patterns = parsed.operands.pop(0).split("\n")
    longest = max(map(len, patterns), default=0)
    if longest > MAX_CHARACTERS:
        raise InputError(f"the pattern has {longest:,} characters: give at most {MAX_CHARACTERS:,}")
    if len(patterns) > _MAX_PATTERNS:
        raise InputError(f"there are {len(patterns):,} patterns: give at most {_MAX_PATTERNS:,}")
    return list(dict.fromkeys(patterns))


def _list_files(call: Call, corpus: Corpus, parsed: Parsed) -> Answer:
    without_pipe = Call(call.name, (), folder=call.folder)
    sources = find_sources(without_pipe, corpus, parsed)
    exit_code = 0 if sources.paths else 1
    names = corpus.print_paths(sources.paths, end=name_end(parsed))
    return Answer(names, _name_missing(call, corpus, sources), exit_code)


def _name_missing(call: Call, corpus: Corpus, sources: Sources) -> str:
    errors = [f"{call.name}: {name}: {corpus.say_missing(name)}\n" for name in sources.missing]
    return "".join(errors)
