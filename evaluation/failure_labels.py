"""The causes of wrong answers as a CSV, in which a person fills in what is open and changes what is not so."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from arag.errors import InputError
from arag.evaluation.failures import CHAIN_ERROR, WHY, Failure, decide, name_cause
from arag.evaluation.files import from_cell, to_csv, write_file
from arag.graph.state import ToolRecord

LABELS_FILE = "failures.csv"

_NEEDED = ("method", "question_id", "cause", "chain_cause")
_READ = (*_NEEDED, "decided_by", "why", "without_label")
_DELIMITERS = ",;\t"  # what spreadsheets put between columns, by the country
_MAX_CELL = 32_000  # characters; spreadsheets hold 32,767


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
        without_label: What the record or a judge said when the row was written; None in a CSV of a person's own.
    """

    place: str
    method: str
    question_id: str
    cause: str
    chain_cause: str
    decided_by: str = ""
    why: str = ""
    without_label: str | None = None

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
    rows = [{name: _cut(column(failure)) for name, column in _COLUMNS.items()} for failure in found]
    write_file(file, f"\ufeff{to_csv(rows, tuple(_COLUMNS))}")  # spreadsheets take it for UTF-8 by its first character


def search(entry: ToolRecord) -> str:
    """Return a tool call in words."""
    return f"{entry['tool']}({', '.join(map(str, entry['arguments'].values()))})"


def percent(value: float | None) -> str:
    """Return a share in percent; nothing where it is not known."""
    return "" if value is None else f"{value:.0%}"


_COLUMNS: dict[str, Callable[[Failure], str]] = {
    "method": lambda failure: failure.method,
    "question_id": lambda failure: failure.record["question_id"],
    "cause": lambda failure: failure.cause,
    "chain_cause": lambda failure: failure.chain_cause,
    "decided_by": lambda failure: failure.decided_by,
    "why": lambda failure: failure.why,
    "without_label": lambda failure: failure.without_label,
    "question": lambda failure: failure.record["question"],
    "answer": lambda failure: failure.record["answer"],
    "prediction": lambda failure: failure.record["prediction"],
    "gold_seen": lambda failure: percent(failure.record["gold_seen"]),
    "gold_read": lambda failure: percent(failure.record["gold_read"]),
    "searches": lambda failure: "; ".join(map(search, failure.record["trace"])),
}


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}..."


def read_labels(file: Path) -> list[Label]:
    """Read a CSV of failures, as it was written or as a spreadsheet has saved it.

    Raises:
        InputError: The file is missing or no such CSV, or two of its rows are for the same answer.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
        delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        columns, rows = reader.fieldnames or (), list(reader)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{file} is not in UTF-8: save it as CSV UTF-8 in the spreadsheet") from None
    except csv.Error as error:
        raise InputError(f"{file} cannot be read as a CSV: {error}") from error
    if missing := [name for name in _NEEDED if name not in columns]:
        raise InputError(f"{file} has no column {missing[0]!r}; needed are {', '.join(_NEEDED)}")
    labels: dict[tuple[str, str], Label] = {}
    for number, row in enumerate(rows, start=2):  # as spreadsheets count them
        cells = {name: from_cell(row[name] or "").strip() for name in _READ if name in columns}
        cells["chain_cause"] = cells["chain_cause"].lower()
        cells["cause"] = cells["cause"].lower() or (CHAIN_ERROR if cells["chain_cause"] else "")
        label = Label(f"{file}, row {number}", **cells)
        if label.key in labels:
            raise InputError(f"{label.place} is for the same answer as {labels[label.key].place}: leave one of them")
        if label.key != ("", ""):  # spreadsheets leave such rows behind
            labels[label.key] = label
    return list(labels.values())


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
    by_key = {label.key: label for label in labels if label.cause}
    return [_take_over(failure, by_key[failure.key]) if failure.key in by_key else failure for failure in found]


def _take_over(failure: Failure, label: Label) -> Failure:
    _check(failure, label)
    said, _, reason = (label.without_label or "").partition(WHY)
    if label.without_label is None:  # a CSV of a person's own
        is_persons = (label.cause, label.chain_cause) != (failure.cause, failure.chain_cause)
    else:  # filled in or changed, or confirmed as a label
        is_persons = label.decided_by == "label" or name_cause(label.cause, label.chain_cause) != said
    if is_persons:
        return replace(
            failure,
            cause=label.cause,
            chain_cause=label.chain_cause,
            decided_by="label",
            why="" if said and label.why == reason else label.why,  # that is why a record or a judge says otherwise
            without_label=failure.without_label or label.without_label or "",
        )
    if label.decided_by == "judge" and not failure.decided_by:
        return decide(failure, "judge", label.cause, label.chain_cause, label.why)
    return failure


def _check(failure: Failure, label: Label) -> None:
    of = f"{label.place} (question {label.question_id!r})"
    valid = failure.taxonomy
    for kind, value, known in (
        ("chain causes", label.chain_cause, valid.chain_causes),
        ("causes", label.cause, valid.causes),
    ):
        if value and value not in known:
            raise InputError(
                f"{of}: {value!r} is none of the {kind} for {label.method}: they are {', '.join(known) or 'none'}"
            )
    if label.chain_cause and label.cause != CHAIN_ERROR:
        raise InputError(
            f"{of}: the chain cause {label.chain_cause!r} goes with the cause {CHAIN_ERROR!r} only, not with "
            f"{label.cause!r}: leave one of them empty"
        )
