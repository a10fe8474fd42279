"""Calls of our commands by the interpreter, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """A call of one of our commands.

    Attributes:
        name: The command's name.
        arguments: Its arguments.
        stdin: The text that is piped or redirected to it, or None.
        folder: The folder that the shell is in.
        files: The texts of the files among the arguments that are not documents, by argument.
    """

    name: str
    arguments: Sequence[str]
    stdin: str | None = None
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a command prints, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
