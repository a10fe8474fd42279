"""The causes of wrong answers as a CSV. A person fills in `label` and `note`; every run writes the rest again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from arag.errors import InputError
from arag.evaluation.failures import Failure
from arag.evaluation.files import from_cell, to_csv, write_file

LABELS_FILE = "failures.csv"

_NEEDED = ("method", "question_id", "label")
_COLUMNS = (*_NEEDED, "note", "cause", "decided_by", "why")
_DELIMITERS = ",;\t"  # depends on the spreadsheet's locale
_MAX_CELL = 32_000  # characters; spreadsheets hold 32,767

Row: TypeAlias = dict[str, str]


def describe(failure: Failure) -> Row:
    """Return a failure as a row of the CSV: the decision, then what the record shows."""
    record = failure.record
    seen, read = (
        "unknown" if share is None else f"{share:.0%}" for share in (record["gold_seen"], record["gold_read"])
    )
    calls = [f"{c['step']}. {c['tool']}({', '.join(map(str, c['arguments'].values()))})" for c in record["trace"]]
    return {
        "method": failure.method,
        "question_id": record["question_id"],
        "label": failure.label,
        "note": failure.note,
        "cause": failure.cause,
        "decided_by": failure.decided_by,
        "why": failure.why,
        "question": record["question"],
        "answer": record["answer"],
        "prediction": record["prediction"],
        "gold_seen": seen,
        "gold_read": read,
        "searches": "\n".join(calls),
    }


def write_labels(found: Iterable[Failure], file: Path, others: Iterable[Row] = ()) -> None:
    """Write failures as a CSV, for a person to fill in `label` and `note`.

    Args:
        found: The failures.
        file: Where to write them.
        others: Labelled rows for other failures; they are kept.

    Raises:
        StorageError: The file cannot be written; it stays as it was.
    """
    rows = [{name: _cut(text) for name, text in row.items()} for row in (*map(describe, found), *others)]
    write_file(file, f"\ufeff{to_csv(rows, _COLUMNS)}")  # the byte order mark tells spreadsheets that it is UTF-8


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}..."


def merge_labels(found: Iterable[Failure], file: Path) -> tuple[list[Failure], list[Row]]:
    """Add the labels and diagnoses of a CSV to failures, as it was written or as a spreadsheet saved it.

    Labels, and a judge's diagnoses of failures that the records do not decide, are kept. What records decide is decided
    again.

    Args:
        found: The failures.
        file: The CSV.

    Returns:
        The failures, and the rows with a label or a note that match none of them.

    Raises:
        InputError: The file is missing or not such a CSV, two of its rows are for the same answer, or a cause is not
            one of the method's causes.
    """
    rows = _read_rows(file)
    merged = [_merge(failure, rows.pop(failure.key, {}), file) for failure in found]
    return merged, [row for row in rows.values() if row["label"] or row["note"]]


def _merge(failure: Failure, row: Mapping[str, str], file: Path) -> Failure:
    if not row:
        return failure
    causes = failure.taxonomy.causes
    if unknown := [cause for cause in (row["label"], row["cause"]) if cause and cause not in causes]:
        raise InputError(
            f"{file}, {failure.method}, question {row['question_id']!r}: {unknown[0]!r} is not a cause for "
            f"{failure.method}; valid causes: {', '.join(causes)}"
        )
    label = row["label"] or failure.label
    if row["decided_by"] == "judge" and row["cause"] and not failure.cause:
        failure = replace(failure, cause=row["cause"], decided_by="judge", why=row["why"])
    elif row["decided_by"] == "record" and row["why"] == failure.why and row["cause"] != failure.cause:
        label = label or row["cause"]  # the reason is unchanged: a person has edited the cause
    return replace(failure, label=label, note=row["note"] or failure.note)


def _read_rows(file: Path) -> dict[tuple[str, str], Row]:
    """Return a CSV's rows by the keys of their failures."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        columns, lines = reader.fieldnames or (), list(reader)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{file} is not in UTF-8: save it as CSV UTF-8 in the spreadsheet") from None
    except csv.Error as error:
        raise InputError(f"{file} cannot be read as a CSV: {error}") from error
    # Earlier versions had no `label`: a person's cause was in `cause`, or in `chain_cause`.
    needed = _NEEDED if "chain_cause" not in columns else _NEEDED[:2]
    if missing := [name for name in needed if name not in columns]:
        raise InputError(f"{file} has no column {missing[0]!r}; required columns: {', '.join(_NEEDED)}")
    rows: dict[tuple[str, str], Row] = {}
    for number, line in enumerate(lines, start=2):  # as spreadsheets count them
        row = {name: from_cell(line.get(name) or "").strip() for name in (*_COLUMNS, *columns)}
        row["cause"] = row.get("chain_cause") or row["cause"]
        row |= {name: row[name].lower() for name in ("label", "cause", "decided_by")}
        if row["decided_by"] not in {"record", "judge"}:  # a person's, in the wrong column
            row["label"] = row["label"] or row["cause"]
        key = row["method"], row["question_id"]
        if key in rows:
            raise InputError(f"{file}, row {number}: an earlier row is for the same answer; keep only one of them")
        if any(key):  # spreadsheets leave empty rows behind
            rows[key] = row
    return rows
