"""Commands as models send them to the shell, which are not always what a shell reads."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from typing import Any

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_PROMPT = re.compile(r"^\s*[$>] ", re.MULTILINE)
# All that the interpreter prints then: a document may have such a text, too.
_UNCLOSED = re.compile(r"(?:bash: )?parse error[^:\n]*: unexpected EOF while looking for matching `(['\"])'")
_DOUBLE = re.compile(r"[“„]([^“”„]*)[“”]")
_SINGLE = re.compile(r"(?<!\w)[‘‚]([^‘’‚]*)[‘’](?!\w)")


def find_command(arguments: Any) -> Any:
    """Return the arguments of a call with the command under its name: small models name it otherwise."""
    if not isinstance(arguments, dict) or arguments.get("command") is not None:
        return arguments
    texts = [value for name, value in arguments.items() if name != "messages" and isinstance(value, str | list)]
    if len(texts) != 1:
        return arguments
    return {**arguments, "command": texts[0]}


def tidy_command(value: Any) -> Any:
    """Return a command without what models put around it.

    This is a Markdown fence, a prompt (`$ rg a`), JSON (`{"command": "rg a"}`), or the words of a program's call
    (`["bash", "-lc", "rg a"]`). Typographic quotes in pairs become straight ones in a command that has no others.
    """
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict):
        value = value.get("command", value)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        is_script = len(value) == 3 and value[1] in {"-c", "-lc"}
        value = value[2] if is_script else shlex.join(value)
    if not isinstance(value, str):
        return value
    fenced = _FENCE.fullmatch(value)
    if fenced:
        value = fenced[1]
    if _PROMPT.match(value):
        value = _PROMPT.sub("", value)
    if '"' not in value and "'" not in value:  # an apostrophe stays as it is
        value = _SINGLE.sub(r"'\1'", _DOUBLE.sub(r'"\1"', value))
    return value


def close_quote(command: str, output: str) -> str | None:
    """Return a command with the quote at its end that it lacks, as its output says; None if it lacks none."""
    unclosed = _UNCLOSED.fullmatch(output.strip())
    if unclosed is None:
        return None
    return command + unclosed[1]
