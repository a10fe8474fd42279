"""Directives of reStructuredText as a person sees them on the page that is built: tables, notes, code and pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import dedent

from arag.ingest.formats.restructured_tables import (
    GRID_BORDER,
    SIMPLE_BORDER,
    read_csv_table,
    read_grid,
    read_list_table,
    read_simple,
)

_MAX_LINES = 5_000  # of a directive or table: each is looked for in so many lines after its first one
_DIRECTIVE = re.compile(r"( *)\.\. ([\w:.+-]+)::(?:\s+(.*))?$")
_OPTION = re.compile(r"\s+:([\w-]+):(?:\s+(.*))?$")
_LITERAL = re.compile(r"(?! *\.\. ).*::\s*$")  # the lines set in below are code
_CODE = (
    "code",
    "code-block",
    "sourcecode",
    "parsed-literal",
    "doctest",
    "testcode",
    "testoutput",
    "productionlist",
    "math",
    "graphviz",
    "digraph",
    "prompt",
)
_HIDDEN = (
    "toctree",
    "index",
    "sectionauthor",
    "moduleauthor",
    "codeauthor",
    "highlight",
    "highlightlang",
    "module",
    "py:module",
    "currentmodule",
    "py:currentmodule",
    "tabularcolumns",
    "testsetup",
    "testcleanup",
    "program",
    "contents",
    "meta",
    "raw",
    "include",
    "literalinclude",
    "audit-event-table",
    "default-domain",
    "role",
    "default-role",
)
_PICTURES = ("image", "figure")
_NOTES = {
    "note": "Note",
    "warning": "Warning",
    "tip": "Tip",
    "hint": "Hint",
    "caution": "Caution",
    "danger": "Danger",
    "error": "Error",
    "important": "Important",
    "attention": "Attention",
    "seealso": "See also",
    "todo": "To do",
}
_VERSIONS = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}
_TITLES = (
    "rubric",
    "admonition",
    "topic",
    "sidebar",
    "option",
    "cmdoption",
    "envvar",
    "confval",
    "clicmd",
)
_TABLES = {"csv-table": read_csv_table, "list-table": read_list_table}


def show_directives(text: str) -> str:
    """Return a text with the tables and the known directives as they are shown; others, and code, stay as they are."""
    lines = text.split("\n")
    shown: list[str] = []
    number = 0
    without_table = 0  # lines up to here in which no simple table ends
    while number < len(lines):
        line = lines[number]
        following = slice(number, number + _MAX_LINES)
        directive = _DIRECTIVE.match(line)
        if directive:
            block, read = _show_directive(directive, lines[following])
        elif GRID_BORDER.match(line):
            block, read = _apart(*read_grid(lines[following]))
        elif number >= without_table and SIMPLE_BORDER.match(line):
            block, read = _apart(*read_simple(lines[following]))
            without_table = 0 if read else following.stop
        else:
            read = _count_set_in(lines[following]) if _LITERAL.match(line) else 1
            block = lines[number : number + read]
        if not read:
            block, read = [line], 1
        shown += block
        number += read
    return "\n".join(shown)


def _apart(rows: list[str], read: int) -> tuple[list[str], int]:
    return ["", *rows, ""], read


def _count_set_in(lines: Sequence[str]) -> int:
    """Return how many lines a block has whose first line is followed by those that are set in from it."""
    margin = _margin(lines[0])
    last = 1
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        if _margin(line) <= margin:
            break
        last = number
    return last


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _show_directive(directive: re.Match[str], lines: Sequence[str]) -> tuple[list[str], int]:
    """Return what is shown of a directive, and how many lines of the text this stands for: its body may go on."""
    margin, name, argument = directive.groups(default="")
    end = _count_set_in(lines)
    options, first = _read_options(lines[:end])
    if name in _HIDDEN:
        return [], end
    body = list(lines[first:end])
    if name in _CODE:
        formula = [f"{margin}{argument}"] if name == "math" else []
        caption = [f"{margin}{options['caption']}", ""] if "caption" in options else []
        return [*formula, *caption, *body], end
    if name in _TABLES:
        rows = _TABLES[name](dedent("\n".join(body)).strip("\n").split("\n"), options)
        return ["", argument, "", *rows, ""], end
    if name in _PICTURES:
        return [f"{margin}{options.get('alt', '')}", ""], first
    if name in _NOTES:
        note = f"{_NOTES[name]}: {argument}".rstrip()
        return [f"{margin}{note}"], _skip_blanks(lines[:end], first)
    title = _title(name, argument)
    return ([f"{margin}{title}"], first) if title else ([lines[0]], 1)


def _skip_blanks(lines: Sequence[str], number: int) -> int:
    """Return the number of the first line with text from a number on; the next one if there is none."""
    below = range(number, len(lines))
    return next((line for line in below if lines[line].strip()), number)


def _title(name: str, argument: str) -> str:
    """Return the line that is shown for a directive; none if it is not known."""
    if name in _VERSIONS:
        version, _, change = argument.partition(" ")
        since = f"{_VERSIONS[name]} {version}"
        return f"{since}: {change}" if change else f"{since}."
    return argument if name in _TITLES else ""


def _read_options(lines: Sequence[str]) -> tuple[dict[str, str], int]:
    """Return the options right below the first line, and the number of the line after them."""
    options: dict[str, str] = {}
    name = ""
    number = 1
    while number < len(lines) and lines[number].strip():
        option = _OPTION.match(lines[number])
        if option:
            name = option[1]
            options[name] = option[2] or ""
        elif name:
            options[name] += f" {lines[number].strip()}"
        else:
            break
        number += 1
    return options, number
