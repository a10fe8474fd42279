"""Prints the summary of an ingestion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arag.terminal import err, out
from arag.text.normalise import count, name_duration, shorten

if TYPE_CHECKING:
    from arag.ingest.documents import IngestSummary

_MAX_NAMES = 500  # characters of the names of files that were skipped for a reason
_MAX_NOTES = 20  # files of which parts were not read


def show_summary(summary: IngestSummary, location: str) -> None:
    """Print what was written, and what was skipped, not read or left out."""
    out.print(
        f"Read {count(summary.read, 'document')}: {summary.written:,} new or changed, "
        f"{count(summary.embedded, 'sentence')} embedded, {count(summary.removed, 'document')} removed, "
        f"{name_duration(summary.seconds)}."
    )
    documents = count(summary.documents, "document")
    chunks = count(summary.chunks, "chunk")
    sentences = count(summary.sentences, "sentence")
    out.print_line((location, "bold"), f" holds {documents}, {chunks}, {sentences}.")
    if summary.absent:
        absent = count(summary.absent, "document")
        out.print(f"Kept, but not read this time: {absent}. --prune removes those that are gone.")
    if summary.other_languages:
        others = count(summary.other_languages, "document")
        out.print(f"{others} not in English, the embedder's only language: find them by keywords.")
    _show_omissions(summary)


def _show_omissions(summary: IngestSummary) -> None:
    from arag.ingest.formats.scans import OCR_PACKAGE, has_ocr

    files_by_reason: dict[str, list[str]] = {}
    for problem in summary.skipped:
        files_by_reason.setdefault(problem.reason, []).append(problem.source)
    for reason, files in files_by_reason.items():
        names = shorten(", ".join(files), _MAX_NAMES)
        err.print_line(("Skipped:", "yellow"), f" {reason} ({len(files):,}): {names}")
    for note in summary.notes[:_MAX_NOTES]:
        err.print_line(("Not read:", "yellow"), f" {note}")
    more = len(summary.notes) - _MAX_NOTES
    if more > 0:
        err.print_line(("Not read:", "yellow"), f" parts of {count(more, 'more file')}; `arag list` names them")
    if any("--ocr" in str(note) for note in summary.notes) and not has_ocr():
        err.print(f"For --ocr, install the extra: pip install '{OCR_PACKAGE}'")
    for problem in summary.problems:
        err.print_line(("Left out:", "yellow"), f" {problem}")
