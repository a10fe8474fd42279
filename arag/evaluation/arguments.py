"""The arguments of an experiment: what they may be, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

from arag.errors import InputError
from arag.evaluation.datasets import Question, load_questions, name_dataset, read_questions
from arag.evaluation.method import Method
from arag.evaluation.methods import find_methods, make_method
from arag.evaluation.paper_tools import Presentation

Questions: TypeAlias = str | Path | Iterable[Question | Mapping[str, Any]]
Methods: TypeAlias = str | type[Method] | Method | Iterable[str | type[Method] | Method]
_RUNS = Path("runs")


def check_numbers(**numbers: int | None) -> None:
    """Raise an InputError for a number below 1."""
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise InputError(f"{name} is {number}: it must be at least 1")


def check_presentation(presentation: str) -> None:
    """Raise an InputError for a presentation that does not exist."""
    valid = get_args(Presentation)
    if presentation not in valid:
        raise InputError(f"presentation is {presentation!r}: valid are {' and '.join(valid)}")


def choose_methods(methods: Methods) -> list[Method]:
    """Return methods by their names, classes, or themselves.

    Raises:
        InputError: There is no such method, its class lacks a name, or two have the same name.
    """
    given = [methods] if isinstance(methods, str | type | Method) else methods
    chosen: dict[str, Method] = {}
    for each in given:
        for method in _find_methods(each):
            if chosen.setdefault(method.name, method) != method:
                raise InputError(f"two methods are named {method.name!r}: give each class a name of its own")
    if not chosen:
        raise InputError("no method is given: name one, such as 'arag'")
    return list(chosen.values())


def _find_methods(given: str | type[Method] | Method) -> list[Method]:
    if isinstance(given, str):
        return [make_method(kind, {}) for kind in find_methods([given]).values()]
    if isinstance(given, type) and issubclass(given, Method):
        _check_names(given)
        return [make_method(given, {})]
    if isinstance(given, Method):
        _check_names(type(given))
        return [given]
    raise InputError(f"{given!r} is not a method: give a name, a class of arag.evaluation.Method, or an object of one")


def _check_names(kind: type[Method]) -> None:
    for name in ("name", "title"):
        if not hasattr(kind, name):
            raise InputError(f"the method {kind.__name__} has no {name}: give its class one, such as {name} = 'mine'")


def check_extractive(methods: Sequence[Method]) -> None:
    """Raise an InputError for a method that the built-in model cannot play."""
    for method in methods:
        if method.needs_model:
            raise InputError(f"{method.name} needs a language model: give one with --model, as provider:model")


def find_questions(questions: Questions) -> list[Question]:
    """Return the questions of a file or of a list.

    Raises:
        InputError: There are none, or one is not valid.
    """
    if isinstance(questions, str | Path):
        return load_questions(Path(questions))
    read = read_questions(questions)
    if not read:
        raise InputError("no questions are given")
    return read


def choose_folder(questions: Questions, out: str | Path | None) -> Path:
    """Return the folder for the records."""
    if out is not None:
        return Path(out)
    if isinstance(questions, str | Path):
        return _RUNS / name_dataset(Path(questions))
    return _RUNS / "experiment"


def name_source(questions: Questions, folder: Path) -> str:
    """Return the file of the questions; a list of questions has the name of the run's folder."""
    if isinstance(questions, str | Path):
        return str(Path(questions).resolve())
    return folder.resolve().name
