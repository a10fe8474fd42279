"""The plan of a run: its questions, index, models and settings, in a file that later runs must agree with."""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from filelock import FileLock
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from arag.errors import InputError, list_faults
from arag.evaluation.cache import without_secrets
from arag.evaluation.paper_tools import Presentation
from arag.graph import DEFAULT_MAX_STEPS
from arag.models.prices import cost
from arag.models.usage import ModelCall, Usage, total
from arag.system.files import written_whole

if TYPE_CHECKING:
    from arag.evaluation.method import Method

RECORDS = "records"
_RUN_FILE = "run.json"
_LOCK_FILE = "run.lock"


class MethodFacts(BaseModel):
    """The facts about a method that reports need: when they are written, the method may have changed or be gone."""

    title: str
    description: str
    differs: str
    settings: dict[str, Any]
    autonomous: bool | None
    iterative: bool | None
    interleaved: bool | None
    abilities: str | None = None
    """Which of `arag.evaluation.method.ABILITIES` it has."""
    preparation: Usage | None = None
    """Usage of the work before the first question, whether or not this run has paid for it."""
    preparation_cost: float | None = None


class Plan(BaseModel):
    """The configuration of a run. It is shown in reports, and has no secrets from models' names and options."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    questions: str
    index: str
    model: str
    judge: str | None = None
    model_options: Annotated[dict[str, Any], AfterValidator(without_secrets)] = {}
    top_k: int = 5
    presentation: Presentation = "compact"
    max_steps: int = DEFAULT_MAX_STEPS
    contents: dict[str, Any] = {}
    """Figures and a fingerprint that identify the index."""
    methods: dict[str, MethodFacts] = {}
    """The methods that the run was started with so far."""
    asked: int = 0
    """The largest number of questions that it was asked to answer."""
    version: str = version("langgraph-arag")
    date: str = Field(default_factory=lambda: dt.datetime.now(dt.UTC).date().isoformat())


def describe_method(method: Method) -> MethodFacts:
    """Return the facts about a method. If it is not of this package, its settings include a digest of its code."""
    settings = method.model_dump(mode="json")
    kind = type(method)
    if not kind.__module__.startswith("arag."):
        code = _find_code(kind)
        if code:
            settings["code"] = hashlib.sha256(code.encode()).hexdigest()[:12]
    return MethodFacts(
        title=method.title,
        description=(method.__doc__ or "").strip().partition("\n")[0],
        differs=method.differs,
        settings=settings,
        autonomous=method.autonomous,
        iterative=method.iterative,
        interleaved=method.interleaved,
        abilities=method.abilities,
    )


def _find_code(kind: type[Method]) -> str:
    """Return the code of a method's module; for a script or a notebook, that of the class and of those it inherits.

    The rest of a script may change: it also has the call that runs the experiment. The code is empty if Python does not
    have it, as for classes that were typed into an interpreter.
    """
    module = sys.modules.get(kind.__module__)
    try:
        if module is not None and module.__name__ != "__main__":
            return inspect.getsource(module)
        return "\n".join(_class_code(each) for each in inspect.getmro(kind) if each.__module__ == "__main__")
    except (OSError, TypeError):
        return ""


def _class_code(kind: type[Any]) -> str:
    """Return the code of a class's functions, also of its properties, static and class methods."""
    sources: list[str] = []
    for value in vars(kind).values():
        function = getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", None)
        function = function or value
        if inspect.isfunction(function):
            sources.append(inspect.getsource(function))
    return "\n".join(sources)


def open_run(folder: Path, plan: Plan) -> None:
    """Create a run folder, or continue the run there, to which a judge and methods may be added.

    Raises:
        InputError: The folder holds records of another plan.
    """
    (folder / RECORDS).mkdir(parents=True, exist_ok=True)
    with FileLock(folder / _LOCK_FILE):
        known = load_plan(folder) if (folder / _RUN_FILE).exists() else plan
        differences = _list_differences(known, plan)
        if not differences:
            plan = _join_plans(known, plan)
        elif any((folder / RECORDS).glob("*.jsonl")):
            raise InputError(f"{folder} holds another run ({'; '.join(differences)}): give another folder with --out")
        _write_plan(folder, plan)


def _list_differences(known: Plan, plan: Plan) -> list[str]:
    """Return how two plans differ in settings that they must share; those that one of them lacks do not count."""
    before = _comparable(known)
    now = _comparable(plan)
    differences = []
    for name, value in before.items():
        if name in now and now[name] != value:
            differences.append(f"{name} was {value!r}, now {now[name]!r}")
    return differences


def _join_plans(known: Plan, plan: Plan) -> Plan:
    """Return the known plan with the judge and the methods that another adds."""
    return known.model_copy(
        update={
            "judge": known.judge or plan.judge,
            "methods": plan.methods | known.methods,
            "asked": max(known.asked, plan.asked),
        }
    )


def _comparable(plan: Plan) -> dict[str, Any]:
    """Return the settings that two plans must share, by name."""
    fields = plan.model_dump(exclude={"methods", "asked", "version", "date"}, exclude_none=True)
    for name, method in plan.methods.items():
        for setting, value in method.settings.items():
            fields[f"{name}.{setting}"] = value
    return fields


def add_preparation(folder: Path, method: str, calls: Sequence[ModelCall]) -> None:
    """Add the usage of a method's work before the first question to the plan of a run."""
    with FileLock(folder / _LOCK_FILE):
        plan = load_plan(folder)
        plan.methods[method].preparation = total(calls)
        plan.methods[method].preparation_cost = cost(calls)
        _write_plan(folder, plan)


def _write_plan(folder: Path, plan: Plan) -> None:
    with written_whole(folder / _RUN_FILE) as out:
        out.write(f"{plan.model_dump_json(indent=2)}\n".encode())


def load_plan(folder: Path) -> Plan:
    """Return the plan of a run.

    Raises:
        InputError: There is no run in the folder.
    """
    file = folder / _RUN_FILE
    try:
        return Plan.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        command = f"arag eval run --out {shlex.quote(str(folder))}"
        raise InputError(f"there is no run in {folder}: start one with `{command}`") from None
    except ValidationError as error:
        raise InputError(f"{file} is not the file of a run: {list_faults(error)}") from None
