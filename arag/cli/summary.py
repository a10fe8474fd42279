"""Prints the summary of an ingestion, and the preview of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from arag.terminal import err, out
from arag.text.normalise import count, name_duration, name_estimate, shorten

if TYPE_CHECKING:
    from arag.ingest.documents import IngestSummary, Problem
    from arag.ingest.preview import Preview

_MAX_NAMES = 500  # characters of the names of columns
_MAX_HEADINGS = 20  # of a document, in a preview
_MAX_REMOVED = 20  # documents that are named
_BUSY = 1.5  # times as long as it would take if nothing else ran on the machine; less may be waits among threads
_MAX_NOTES = 20  # files of which parts were not read


def show_summary(summary: IngestSummary, location: str, *, pruned: bool) -> None:
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
    _show_removed("Removed:", summary.removed_ids)
    if summary.absent:
        absent = count(summary.absent, "document")
        way = "`arag remove` removes documents" if pruned else "--prune removes those that are gone or ignored"
        out.print(f"Kept, but not read this time: {absent}. {way}.")
    if summary.other_languages:
        others = count(summary.other_languages, "document")
        out.print(f"{others} not in English, the embedder's only language: search by keywords there.")
    _show_omissions(summary)


def show_preview(preview: Preview) -> None:
    """Print the documents that would be written, with their headings and tables, and what would be left out."""
    written = [document for document in preview.documents if document.change != "unchanged"]
    for document in written:
        note = f"{count(document.chunks, 'chunk')}, {count(document.sentences, 'sentence')}"
        if document.change == "changed":
            note += ", changed"
        if document.is_same_file:
            note += (
                ": the file is the same; other files of its folder, options or a new version change what is read of it"
            )
        out.print_line((document.id, "bold"), f"  {document.title} ({note})")
        for heading in document.headings[:_MAX_HEADINGS]:
            out.print_line(f"    {heading}")
        others = len(document.headings) - _MAX_HEADINGS
        if others > 0:
            out.print(f"    and {count(others, 'more heading')}")
        for table in document.tables:
            columns = shorten(", ".join(table.columns), _MAX_NAMES)
            out.print_line(f"    table of {count(table.rows, 'row')}: {columns}")
        for part in document.left_out:
            out.print_line("    ", ("parts not read:", "yellow"), f" {part}")
    documents = count(len(written), "document")
    chunks = count(sum(document.chunks for document in written), "chunk")
    total = sum(document.sentences for document in written)
    new = sum(document.new_sentences for document in written)
    sentences = count(total, "sentence")
    if new < total:
        sentences += f", {new:,} of them to embed"
    out.print(f"Would be written: {documents}, {chunks}, {sentences}{_name_time(preview)}.")
    unchanged = len(preview.documents) - len(written)
    if unchanged:
        out.print(f"In the index already: {count(unchanged, 'document')}.")
    _show_removed("Would be removed:", preview.removed_ids)
    _show_files("Read as", preview.read_as)
    _show_files("Skipped", preview.skipped)
    for problem in preview.problems:
        err.print_line(("Left out:", "yellow"), f" {problem}")


def _name_time(preview: Preview) -> str:
    """Return how long the ingestion will take, with the time while other programs need the machine if they do now."""
    if preview.seconds is None or preview.seconds_now is None:
        return ""
    time = name_estimate(preview.seconds)
    time_now = name_estimate(preview.seconds_now)
    if preview.seconds_now < _BUSY * preview.seconds or time == time_now:
        return f": {time_now} on this machine"
    return f": {time} on this machine, or {time_now} while it is as busy as now"


def _show_removed(label: str, document_ids: Sequence[str]) -> None:
    for document_id in document_ids[:_MAX_REMOVED]:
        out.print_line((label, "yellow"), f" {document_id}")
    more = len(document_ids) - _MAX_REMOVED
    if more > 0:
        out.print_line((label, "yellow"), f" {count(more, 'more document')}; --json names all")


def _show_files(label: str, files: Sequence[Problem]) -> None:
    """Print files together that have the same reason."""
    from arag.ingest.omissions import list_by_reason

    for line in list_by_reason(files, all_are="--json names all"):
        err.print_line((f"{label}:", "yellow"), f" {line}")


def _show_omissions(summary: IngestSummary) -> None:
    from arag.ingest.formats.scans import OCR_PACKAGE, has_ocr

    _show_files("Read as", summary.read_as)
    _show_files("Skipped", summary.skipped)
    for note in summary.notes[:_MAX_NOTES]:
        err.print_line(("Parts not read:", "yellow"), f" {note}")
    more = len(summary.notes) - _MAX_NOTES
    if more > 0:
        err.print_line(("Parts not read:", "yellow"), f" in {count(more, 'more file')}; `arag list` names them")
    if any("--ocr" in str(note) for note in summary.notes) and not has_ocr():
        err.print(f"For --ocr, install the extra: pip install '{OCR_PACKAGE}'")
    for problem in summary.problems:
        err.print_line(("Left out:", "yellow"), f" {problem}")
