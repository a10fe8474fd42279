"""What a run is: its questions, index, models and settings, in a file that later runs must agree with."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError

from arag.errors import InputError, StorageError, without_credentials
from arag.evaluation.method import Method
from arag.files import written_whole
from arag.models.usage import Usage
from arag.options import DEFAULT_MAX_STEPS
from arag.retrieval.tools import Presentation

RUN_FILE = "run.json"
RECORDS = "records"

HIDDEN = "***"
# Names of options that may hold secrets; `max_tokens` and the like are counts.
_SECRET = re.compile(
    r"key|header|token(?!s)|passw|passphrase|secret|credential|auth|bearer|cookie|query", re.IGNORECASE
)
_QUERY = re.compile(r"(?<=://)([^\s?#]*\?)\S+")


class Preparation(BaseModel):
    """What a method's work before the first question takes, whether or not this run has paid for it."""

    usage: Usage
    cost: float | None
    """US dollars; None if a model's price is unknown."""
    seconds: float | None
    """None if some of it had been done before."""


class MethodFacts(BaseModel):
    """What a run keeps of a method for its reports: by then the method may have changed, or its module be gone."""

    title: str
    description: str
    differs: str
    settings: dict[str, Any]
    autonomous: bool | None
    iterative: bool | None
    interleaved: bool | None
    preparation: Preparation | None = None


class Plan(BaseModel):
    """The configuration of a run. It is shown in reports, and holds no passwords."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: str
    index: str
    model: str
    judge: str | None = None
    model_options: dict[str, Any] = {}
    top_k: int = 5
    presentation: Presentation = "compact"
    max_steps: int = DEFAULT_MAX_STEPS
    scope: dict[str, Any] | None = None
    contents: dict[str, Any] | None = None
    """What identifies the index; None until it is made."""
    methods: dict[str, MethodFacts] = {}
    """The methods that the run was started with so far."""
    asked: int = 0
    """How many questions it was asked to answer, at most."""
    version: str = version("langgraph-arag")
    date: str = ""


def make_plan(*, model: str, judge: str | None, model_options: Mapping[str, Any], **fields: Any) -> Plan:
    """Return a plan without the secrets that options may hold; see `Plan` for the fields."""
    return Plan(
        model=model,
        judge=judge,
        model_options=without_secrets(model_options),
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        **fields,
    )


def describe_method(method: Method) -> MethodFacts:
    """Return what a run keeps of a method."""
    return MethodFacts(
        title=method.title,
        description=(method.__doc__ or "").strip().partition("\n")[0],
        differs=method.differs,
        settings=method.model_dump(mode="json"),
        autonomous=method.autonomous,
        iterative=method.iterative,
        interleaved=method.interleaved,
    )


def open_run(folder: Path, plan: Plan) -> Plan:
    """Create a run folder, or check that the one there has the same plan. A judge and methods may be added.

    Returns:
        The plan as it is stored.

    Raises:
        InputError: The folder holds records of another plan.
        StorageError: The folder cannot be written.
    """

    def merge(known: Plan | None) -> Plan:
        if known is None or not any((folder / RECORDS).glob("*.jsonl")):
            return plan
        before, now = _comparable(known), _comparable(plan)
        differing = [name for name in before if name in now and before[name] != now[name]]
        if differing:
            message = "; ".join(f"{name} was {before[name]!r}, now {now[name]!r}" for name in differing)
            raise InputError(f"{folder} holds another run ({message}): give another folder with --out")
        return known.model_copy(
            update={
                "judge": known.judge or plan.judge,
                "contents": known.contents or plan.contents,
                "methods": plan.methods | known.methods,
                "asked": max(known.asked, plan.asked),
            }
        )

    return change_plan(folder, merge)


def change_plan(folder: Path, change: Callable[[Plan | None], Plan]) -> Plan:
    """Change the plan of a run, or None, while no other process does; return the new one."""
    file = folder / RUN_FILE
    try:
        (folder / RECORDS).mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            plan = change(load_plan(folder) if file.exists() else None)
            with written_whole(file) as out:
                out.write(plan.model_dump_json(indent=2).encode() + b"\n")
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror}") from error
    return plan


def add_preparation(folder: Path, method: str, preparation: Preparation) -> None:
    """Add to the plan of a run what a method's work before the first question takes."""

    def add(known: Plan | None) -> Plan:
        plan = known or load_plan(folder)
        facts = plan.methods[method]
        before = facts.preparation
        if before is not None and preparation.seconds is None:  # it was done again, from the cache
            preparation.seconds = before.seconds
        return plan.model_copy(
            update={"methods": {**plan.methods, method: facts.model_copy(update={"preparation": preparation})}}
        )

    change_plan(folder, add)


def load_plan(folder: Path) -> Plan:
    """Return the plan of a run.

    Raises:
        InputError: There is no run in the folder, or its file is damaged.
    """
    file = folder / RUN_FILE
    try:
        return Plan.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise InputError(f"there is no run in {folder}: start one with `arag eval run --out {folder}`") from None
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise InputError(f"{file} is not a run's file: {'; '.join(faults)}") from error


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with possible secrets replaced by `***`, at any depth.

    The option's name decides. Users, passwords and queries of URLs are hidden in all strings.
    """
    return {name: HIDDEN if _SECRET.search(name) else _hide(value) for name, value in options.items()}


def _hide(value: Any) -> Any:
    match value:
        case Mapping():
            return without_secrets({str(name): each for name, each in value.items()})
        case list() | tuple():
            return [_hide(each) for each in value]
        case str():
            return _QUERY.sub(rf"\1{HIDDEN}", without_credentials(value))
    return value


def _comparable(plan: Plan) -> dict[str, Any]:
    """Return what two plans must share, by the names of messages; what one of them lacks is not compared."""
    fields = plan.model_dump(exclude={"methods", "asked", "version", "date"})
    settings = {f"{name}.{key}": value for name, facts in plan.methods.items() for key, value in facts.settings.items()}
    return {name: value for name, value in fields.items() if value is not None or name == "scope"} | settings
