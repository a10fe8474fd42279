"""Command lines that messages propose: with the options that were given, ready to be pasted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

import typer

from arag.errors import without_credentials


def read_command_line(context: typer.Context) -> dict[str, Any]:
    """Return what the command line gives for each parameter of the command, as it was written."""
    arguments = sys.argv[1:]
    if context.info_name not in arguments:  # the command was called by a program
        return {}
    start = arguments.index(context.info_name) + 1
    given, _, _ = context.command.make_parser(context).parse_args(arguments[start:])
    return given


def propose(context: typer.Context, arguments: Sequence[str]) -> str:
    """Return a command with other arguments and the options that were given."""
    given = read_command_line(context)
    options: list[str] = []
    for parameter in context.command.params:
        value = given.get(parameter.name or "")
        if parameter.param_type_name == "argument" or parameter.opts[0] in arguments or value is None:
            continue
        if isinstance(value, bool):
            options.append(parameter.opts[0])
            continue
        for each in value if isinstance(value, list) else [value]:
            options += [parameter.opts[0], without_credentials(each) if "://" in each else each]
    return shlex.join(["arag", context.info_name or "", *arguments, *options])
