"""The options of our commands, parsed as the real commands do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arag.errors import InputError


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes:
        name: What its value is called in the parsed options.
        takes_value: Whether a value follows it.
    """

    name: str
    takes_value: bool = False


@dataclass
class Parsed:
    """A command's arguments.

    Attributes:
        options: The values of each option that was given, in order; "" for options without a value.
        operands: The other arguments.
    """

    options: dict[str, list[str]] = field(default_factory=dict)
    operands: list[str] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Return whether one of these options was given."""
        return any(name in self.options for name in names)

    def values(self, name: str) -> list[str]:
        """Return all values of an option."""
        return self.options.get(name, [])

    def number(self, name: str) -> int | None:
        """Return the last value of an option as a number, or None if it was not given."""
        if name not in self.options:
            return None
        value = self.options[name][-1]
        if not (value.isascii() and value.isdigit()):
            raise InputError(f"{value!r} is not a number, as {name} needs one")
        return min(int(value[:9]), 10**9)

    def add(self, name: str, value: str = "") -> None:
        """Add an option."""
        self.options.setdefault(name, []).append(value)


def parse(arguments: Sequence[str], known: Mapping[str, Option], *, valid: str, number: str = "") -> Parsed:
    """Parse a command's arguments: combined short options, `--name=value`, `--`, options behind operands.

    Args:
        arguments: The arguments.
        known: The options by how they are written: `-i`, `--ignore-case`.
        valid: The options that an error lists.
        number: The option that `-5` stands for, if any.

    Raises:
        InputError: An option is unknown, or lacks its value.
    """
    try:
        return _parse(list(arguments), known, number)
    except LookupError as error:
        raise InputError(f"{error.args[0]}; valid are {valid}") from error


def _parse(rest: list[str], known: Mapping[str, Option], number: str) -> Parsed:
    parsed = Parsed()
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            parsed.operands += rest
            break
        if argument.startswith("--"):
            _parse_long(argument, rest, known, parsed)
        elif number and argument not in known and _is_number(argument):
            parsed.add(number, argument[1:])
        elif argument.startswith("-") and len(argument) > 1:
            _parse_short(argument[1:], rest, known, parsed)
        else:
            parsed.operands.append(argument)
    return parsed


def _is_number(argument: str) -> bool:
    digits = argument.removeprefix("-")
    return digits != argument and digits.isascii() and digits.isdigit()


def _parse_long(argument: str, rest: list[str], known: Mapping[str, Option], parsed: Parsed) -> None:
    name, equals, value = argument.partition("=")
    option = _find(name, known)
    if not option.takes_value:
        parsed.add(option.name)
    elif equals:
        parsed.add(option.name, value)
    else:
        parsed.add(option.name, _take(name, rest))


def _parse_short(letters: str, rest: list[str], known: Mapping[str, Option], parsed: Parsed) -> None:
    while letters:
        name, letters = f"-{letters[0]}", letters[1:]
        option = _find(name, known)
        if not option.takes_value:
            parsed.add(option.name)
            continue
        value = letters.removeprefix("=") or _take(name, rest)
        parsed.add(option.name, value)
        return


def _find(name: str, known: Mapping[str, Option]) -> Option:
    if name not in known:
        raise LookupError(f"unrecognized option '{name}'")
    return known[name]


def _take(name: str, rest: list[str]) -> str:
    if not rest:
        raise LookupError(f"option '{name}' needs a value")
    return rest.pop(0)
