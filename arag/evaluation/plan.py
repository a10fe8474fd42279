"""What a run is: its questions, index, models and settings, in a file that later runs must agree with."""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
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
    """What a run keeps of a method for its reports: by then the method may have changed, or its module be gone."""

    title: str
    description: str
    differs: str
    settings: dict[str, Any]
    autonomous: bool | None
    iterative: bool | None
    interleaved: bool | None
    preparation: Usage | None = None
    """What the work before the first question takes, whether or not this run has paid for it."""
    preparation_cost: float | None = None


class Plan(BaseModel):
    """The configuration of a run. It is shown in reports, and keeps no secrets of models' names and options."""

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
    """What identifies the index."""
    methods: dict[str, MethodFacts] = {}
    """The methods that the run was started with so far."""
    asked: int = 0
    """How many questions it was asked to answer, at most."""
    version: str = version("langgraph-arag")
    date: str = Field(default_factory=lambda: dt.datetime.now(dt.UTC).date().isoformat())


def describe_method(method: Method) -> MethodFacts:
    """Return what a run keeps of a method. One that is not of this package also has its module's code as a setting."""
    settings = method.model_dump(mode="json")
    module = sys.modules[type(method).__module__]
    if not module.__name__.startswith("arag."):
        settings["code"] = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:12]
    return MethodFacts(
        description=(method.__doc__ or "").strip().partition("\n")[0],
        settings=settings,
        **{name: getattr(method, name) for name in ("title", "differs", "autonomous", "iterative", "interleaved")},
    )


def open_run(folder: Path, plan: Plan) -> None:
    """Create a run folder, or go on with the run there, to which a judge and methods may be added.

    Raises:
        InputError: The folder holds records of another plan.
    """
    (folder / RECORDS).mkdir(parents=True, exist_ok=True)
    with FileLock(folder / _LOCK_FILE):
        known = load_plan(folder) if (folder / _RUN_FILE).exists() else plan
        before, now = _comparable(known), _comparable(plan)
        differing = [name for name in before if name in now and before[name] != now[name]]
        if not differing:
            methods, asked = plan.methods | known.methods, max(known.asked, plan.asked)
            added = {"judge": known.judge or plan.judge, "methods": methods, "asked": asked}
            plan = known.model_copy(update=added)
        elif any((folder / RECORDS).glob("*.jsonl")):
            message = "; ".join(f"{name} was {before[name]!r}, now {now[name]!r}" for name in differing)
            raise InputError(f"{folder} holds another run ({message}): give another folder with --out")
        _write_plan(folder, plan)


def _comparable(plan: Plan) -> dict[str, Any]:
    """Return what two plans must share, by name; what one of them lacks is not compared."""
    fields = plan.model_dump(exclude={"methods", "asked", "version", "date"}, exclude_none=True)
    return fields | {f"{name}.{key}": value for name, m in plan.methods.items() for key, value in m.settings.items()}


def add_preparation(folder: Path, method: str, calls: Sequence[ModelCall]) -> None:
    """Add to the plan of a run what a method's work before the first question takes."""
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
        raise InputError(f"there is no run in {folder}: start one with `arag eval run --out {folder}`") from None
    except ValidationError as error:
        raise InputError(f"{file} is not the file of a run: {list_faults(error)}") from None
