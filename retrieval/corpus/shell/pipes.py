"""Finds the commands that read a pipe.

The interpreter gives a command the rest of what a loop reads, too, as a real shell does: `while read name; do rg
"$name"; done` would search there. Our commands search the corpus then, which is what is meant; they read only what is
piped or redirected to them.
"""

from __future__ import annotations

import re

PIPED = "piped-"  # begins the name of a search command that reads a pipe
SEARCHERS = ("rg", "grep", "egrep", "fgrep")

_SEARCHER = re.compile(r"(?:rg|grep|egrep|fgrep)(?![\w.:/=-])")
# What may stand between a pipe and the command: an open group, assignments, and commands that run commands.
# Each text can be read in one way only: else the time would double with each bracket.
_BETWEEN = re.compile(r"(?:\s|\(|\{(?=\s)|\w+=[^\s'\"]*\s|(?:command|builtin|time|env|nice|timeout\s+\S+)\s)*+")
_REDIRECTED = re.compile(r"<(?![(])")


def mark_piped(script: str) -> str:
    """Put `piped-` in front of each search command that reads a pipe or a redirection."""
    marked: list[str] = []
    start = 0
    for place in _find_searchers(script):
        marked.append(script[start:place])
        marked.append(PIPED)
        start = place
    marked.append(script[start:])
    return "".join(marked)


def _find_searchers(script: str) -> list[int]:
    """Return where search commands begin that read a pipe or a redirection."""
    code = blank_quoted(script)
    places: list[int] = []
    for match in _SEARCHER.finditer(code):
        start = match.start()
        before = code[:start]
        is_command = not before or before[-1] in " \t\n;|&(`"
        if is_command and (_follows_pipe(before) or _is_redirected(code, match.end())):
            places.append(start)
    return places


def _follows_pipe(before: str) -> bool:
    pipe = before.rfind("|")
    if pipe < 0 or (pipe > 0 and before[pipe - 1] == "|"):
        return False
    rest = before[pipe + 1 :].removeprefix("&")
    return _BETWEEN.fullmatch(rest) is not None


def _is_redirected(code: str, end: int) -> bool:
    """Return whether a simple command, from behind its name, redirects its input."""
    simple = re.split(r"[|;\n)`]|&(?!\d)", code[end:], maxsplit=1)[0]
    return _REDIRECTED.search(simple) is not None


def blank_quoted(script: str) -> str:
    """Return a script of the same length, with quoted texts and comments as underscores.

    Commands inside of `"$(...)"` are code.
    """
    code: list[str] = []
    contexts = ["code"]  # `code`, `double` for double quotes; `$(` opens another `code`
    position = 0
    while position < len(script):
        character = script[position]
        context = contexts[-1]
        if character == "\\":
            code.append("__"[: len(script) - position])
            position += 2
            continue
        if script.startswith("$(", position):
            contexts.append("code")
            code.append("$(")
            position += 2
            continue
        if context == "double":
            if character == '"':
                contexts.pop()
            code.append("_")
        elif character == '"':
            contexts.append("double")
            code.append("_")
        elif character == "'":
            end = script.find("'", position + 1)
            end = len(script) if end < 0 else end + 1
            code.append("_" * (end - position))
            position = end
            continue
        elif character == "#" and (not code or code[-1][-1] in " \t\n;"):
            end = script.find("\n", position)
            end = len(script) if end < 0 else end
            code.append("_" * (end - position))
            position = end
            continue
        elif character == "(":
            contexts.append("code")
            code.append(character)
        elif character == ")":
            if len(contexts) > 1:
                contexts.pop()
            code.append(character)
        else:
            code.append(character)
        position += 1
    return "".join(code)
