"""Texts of the command line that begin with a hyphen, such as the keyword `--purge`."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand

TAKES_HYPHENS = {"ignore_unknown_options": True}  # settings of a command: its unknown options are texts

_MIN_SIMILARITY = 0.8  # of a text and an option that was probably meant


class OneTextCommand(TyperCommand):
    """A command with one text, such as a pattern; it says so if there are more."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of a command line; refuse those behind the text."""
        others = super().parse_args(ctx, args)
        (text,) = (parameter for parameter in self.params if parameter.param_type_name == "argument")
        texts = [ctx.params[text.name or ""] or "", *others]
        wrong = next((each for each in texts if each.startswith("-")), "")
        if text.name == "command" and wrong != texts[0]:  # an option of the shell's command
            wrong = ""
        if wrong and (others or text.name == "command"):
            ctx.fail(f"{wrong} is not an option of arag {ctx.info_name}")
        if others:
            ctx.fail(f"the {text.name} is one text: write it in quotes, {shlex.quote(' '.join(texts))}")
        return others


def check_text(context: typer.Context, text: str) -> str:
    """Return a text, unless it looks like a misspelt option of the command."""
    if not text.startswith("--"):
        return text
    options = [name for parameter in context.command.params for name in parameter.opts]
    closest = get_close_matches(text, options, n=1, cutoff=_MIN_SIMILARITY)
    as_text = f"to search for it, write ' {text}' with a space"
    if text in options:
        raise typer.BadParameter(f"{text} stands behind --, where options end: write -- behind all options; {as_text}")
    if closest:
        raise typer.BadParameter(f"{text} is not an option, but {closest[0]} is; {as_text}")
    return text


def check_texts(context: typer.Context, texts: list[str]) -> list[str]:
    """Return texts, unless one of them looks like a misspelt option of the command."""
    return [check_text(context, text) for text in texts]
