"""The causes of wrong answers as a CSV, in which a person fills in what is open and changes what is not so."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from arag.errors import InputError, StorageError
from arag.evaluation.cells import as_cell, from_cell
from arag.evaluation.failures import CHAIN_ERROR, WHY, Failure, decided, told
from arag.files import written_whole
from arag.graph.state import ToolRecord

LABELS_FILE = "failures.csv"

_COLUMNS = (
    *("method", "question_id", "cause", "chain_cause", "decided_by", "why", "without_label"),
    *("question", "answer", "prediction", "gold_seen", "gold_read", "searches"),
)
_NEEDED = ("method", "question_id", "cause", "chain_cause")
_DELIMITERS = ",;\t"  # what spreadsheets put between columns, by the country
_LONGEST = 32_000  # characters of a cell; spreadsheets hold 32,767


@dataclass(frozen=True, slots=True)
class Label:
    """A row of the CSV, as a person may have left it.

    Attributes:
        place: The file and the row, for messages.
        method: The method.
        question_id: The question's id.
        cause: The cause; empty where there is none yet.
        chain_cause: What went wrong in a reasoning chain.
        decided_by: Who had decided it when the row was written.
        why: Why.
        without_label: What the record or a judge said when the row was written; None where the CSV does not tell.
    """

    place: str
    method: str
    question_id: str
    cause: str
    chain_cause: str
    decided_by: str
    why: str
    without_label: str | None

    @property
    def key(self) -> tuple[str, str]:
        """The key of the failure that it is for."""
        return self.method, self.question_id


def write_labels(found: Iterable[Failure], file: Path) -> None:
    """Write failures as a CSV, for a person to fill in `cause` and `chain_cause`.

    Args:
        found: The failures.
        file: Where it goes.

    Raises:
        StorageError: It cannot be written; then the file is as it was.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _COLUMNS)
    writer.writeheader()
    writer.writerows(_row(failure) for failure in found)
    try:
        with written_whole(file) as out:  # spreadsheets take it for UTF-8 by its first bytes
            out.write(text.getvalue().encode("utf-8-sig", "replace"))
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror}") from error


def _row(failure: Failure) -> dict[str, object]:
    record = failure.record
    row = {
        "method": failure.method,
        "question_id": record["question_id"],
        "cause": failure.cause,
        "chain_cause": failure.chain_cause,
        "decided_by": failure.decided_by,
        "why": failure.why,
        "without_label": failure.without_label,
        "question": record["question"],
        "answer": record["answer"],
        "prediction": record["prediction"],
        "gold_seen": percent(record["gold_seen"]),
        "gold_read": percent(record["gold_read"]),
        "searches": "; ".join(map(search, record["trace"])),
    }
    return {name: as_cell(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") for name, text in row.items()}


def search(entry: ToolRecord) -> str:
    """Return a tool call in words."""
    return f"{entry['tool']}({', '.join(map(str, entry['arguments'].values()))})"


def percent(value: float | None) -> str:
    """Return a share in percent; nothing where it is not known."""
    return "" if value is None else f"{value:.0%}"


def read_labels(file: Path) -> list[Label]:
    """Read a CSV of failures, as it was written or as a spreadsheet has saved it.

    Raises:
        InputError: The file is missing or no such CSV, or two of its rows are for the same answer.
    """
    text = _text(file)
    header = next(iter(text.splitlines()), "")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=header.count))
    try:
        missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{file} cannot be read as a CSV: {error}") from error
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}; needed are {', '.join(_NEEDED)}")
    labels: dict[tuple[str, str], Label] = {}
    for number, row in enumerate(rows, start=2):  # as spreadsheets count them
        label = _label(f"{file}, row {number}", row)
        if label.key == ("", ""):  # spreadsheets leave such rows behind
            continue
        if label.key in labels:
            raise InputError(f"{label.place} is for the same answer as {labels[label.key].place}: leave one of them")
        labels[label.key] = label
    return list(labels.values())


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file} does not exist") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{file} is not in UTF-8: save it as CSV UTF-8 in the spreadsheet") from None


def _label(place: str, row: Mapping[str, str | None]) -> Label:
    def cell(name: str) -> str:
        return from_cell(row.get(name) or "").strip()

    chain_cause = cell("chain_cause").lower()
    return Label(
        place=place,
        method=cell("method"),
        question_id=cell("question_id"),
        cause=cell("cause").lower() or (CHAIN_ERROR if chain_cause else ""),
        chain_cause=chain_cause,
        decided_by=cell("decided_by"),
        why=cell("why"),
        without_label=cell("without_label") if "without_label" in row else None,
    )


def take_over(found: Iterable[Failure], labels: Iterable[Label]) -> list[Failure]:
    """Return failures with what a CSV says of them.

    What a person has filled in or changed counts before all else. What a judge had said stays the judge's, and what
    the records decide is decided by them anew.

    Args:
        found: The failures.
        labels: The CSV's rows; those for no failure are passed over.

    Raises:
        InputError: A cause is none of the method's.
    """
    by_key = {label.key: label for label in labels}
    return [_taken_over(failure, by_key.get(failure.key)) for failure in found]


def _taken_over(failure: Failure, label: Label | None) -> Failure:
    if label is None or not label.cause:
        return failure
    _check(failure, label)
    if _is_persons(failure, label):
        said, _, reason = (label.without_label or "").partition(WHY)
        return replace(
            failure,
            cause=label.cause,
            chain_cause=label.chain_cause,
            decided_by="label",
            why="" if said and label.why == reason else label.why,  # that is why a record or a judge says otherwise
            without_label=failure.without_label or label.without_label or "",
        )
    if label.decided_by == "judge" and not failure.decided_by:
        return decided(failure, "judge", label.cause, label.chain_cause, label.why)
    return failure


def _is_persons(failure: Failure, label: Label) -> bool:
    """Tell whether a person has filled in or changed a row, or confirmed it as a label."""
    if label.without_label is None:  # a CSV of a person's own
        return (label.cause, label.chain_cause) != (failure.cause, failure.chain_cause)
    said = label.without_label.partition(WHY)[0]
    return label.decided_by == "label" or told(label.cause, label.chain_cause) != said


def _check(failure: Failure, label: Label) -> None:
    of = f"{label.place} (question {label.question_id!r})"
    valid = failure.taxonomy
    if label.chain_cause and not valid.chain_causes:
        raise InputError(
            f"{of}: {label.method} has no reasoning chain, so no chain cause {label.chain_cause!r}; the causes are "
            f"{', '.join(valid.causes)}"
        )
    if label.cause not in valid.causes:
        raise InputError(
            f"{of}: {label.cause!r} is none of the causes for {label.method}: they are {', '.join(valid.causes)}"
        )
    if label.chain_cause and label.cause != CHAIN_ERROR:
        raise InputError(
            f"{of}: the chain cause {label.chain_cause!r} goes with the cause {CHAIN_ERROR!r} only, not with "
            f"{label.cause!r}: leave one of them empty"
        )
    if label.chain_cause and label.chain_cause not in valid.chain_causes:
        raise InputError(
            f"{of}: {label.chain_cause!r} is none of the chain causes for {label.method}: they are "
            f"{', '.join(valid.chain_causes)}"
        )


def unmatched(labels: Iterable[Label], found: Iterable[Failure]) -> list[Label]:
    """Return the rows that are for no failure."""
    keys = {failure.key for failure in found}
    return [label for label in labels if label.key not in keys]


def keep_former(file: Path) -> Path:
    """Keep a CSV beside itself, before it is written anew without some of its labels; returns the copy.

    Raises:
        StorageError: It cannot be written.
    """
    former = file.with_name(f"{file.stem}.former{file.suffix}")
    try:
        with written_whole(former) as out:
            out.write(file.read_bytes())
    except OSError as error:
        raise StorageError(f"{former} cannot be written: {error.strerror}") from error
    return former
