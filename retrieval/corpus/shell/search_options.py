"""The options of `rg` and `grep`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arag.retrieval.corpus.shell.calls import Call
from arag.retrieval.corpus.shell.options import Option, Parsed, parse

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
    "null": "-0 --null",
    "help": "--help",
    # What makes no difference here.
    "": "-N -H -a -u -z -U -p --no-line-number --with-filename --text --no-heading --heading --hidden --no-ignore "
    "--multiline --multiline-dotall --search-zip --column --trim --no-messages --line-buffered --unrestricted "
    "--pretty --crlf --mmap --no-config --unicode --no-unicode --follow --null-data --include-zero",
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
    known |= dict.fromkeys(("--color", "--colour"), Option("", takes_value=replaces))
    if replaces:
        known["-r"] = Option("replace", takes_value=True)
    else:
        known |= dict.fromkeys(("-r", "-R", "--recursive"), Option(""))
        known["-Z"] = Option("null")
    return known


_RG_OPTIONS = _list_options(replaces=True)
_GREP_OPTIONS = _list_options(replaces=False)
HELP = f"Usage: rg [options] PATTERN [path...]\nOptions: {_VALID}\n"
# `rg -rn` is meant as grep's.
_RECURSIVE_FLAGS = re.compile(r"-r[inlcohwEFPRHI]+|-[inlcohwEFPRHI]+r[inlcohwEFPRHI]*")


def parse_search(call: Call) -> Parsed:
    """Parse the arguments of a search command.

    Raises:
        InputError: An option is unknown, or lacks its value.
    """
    if call.name == "rg":
        return parse(_without_recursive(call.arguments), _RG_OPTIONS, valid=_VALID, number="context")
    parsed = parse(call.arguments, _GREP_OPTIONS, valid=_VALID, number="context")
    if call.name == "fgrep":
        parsed.add("fixed")
    elif call.name == "egrep":
        parsed.add("extended")
    return parsed


def _without_recursive(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `rg` without the `r` of grep's `-rn`, with which rg would replace each match by "n"."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*kept, *arguments[place:]]
        following = "".join(arguments[place + 1 : place + 2])
        is_replacement = argument.endswith("r") and "$" in following
        is_recursive = _RECURSIVE_FLAGS.fullmatch(argument) is not None and not is_replacement
        kept.append(argument.replace("r", "", 1) if is_recursive else argument)
    return kept


def name_end(parsed: Parsed) -> str:
    """Return what ends the names of files in a list: `xargs -0` wants zeros."""
    return "\0" if parsed.has("null") else "\n"
