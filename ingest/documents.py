"""Documents as readers give them to the pipeline, problems, and the summary of an ingestion."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arag.ingest.formats import READERS
from arag.ingest.formats.compressed import inner_path
from arag.ingest.formats.content import JSON
from arag.text.visible import visible_line


@dataclass(frozen=True, slots=True)
class Document:
    """One document, ready to be cut into chunks.

    Attributes:
        id: Its own id, else one made from the file's path relative to what was ingested; see `IdAssigner`.
        title: The title, or an empty string if the source has none.
        text: The whole text, never blank.
        source: Its origin, for messages: the file as the user names it, with the line or item of a record, or the
            place of an object among the sources.
        metadata: Further fields of a record, kept as they are.
        page_starts: For paged sources, the character offset at which each page starts, the first being page 1.
        ready_chunks: Chunks that are kept unchanged, as (chunk id, text) in order; None if the pipeline cuts the text
            itself. Their concatenation is `text`.
        file: The file's absolute path, without links; empty for an object given in Python.
        file_hash: Of the file's bytes, if the id is made from its path; else empty.
        has_own_id: Whether the id came with the document. Otherwise it is made from the file's path.
        end: Bytes of all sources up to the end of this document, for the progress.
        left_out: Parts that a person sees in the file and the text lacks: `2 charts`.
        ocr_pages: The numbers of the pages whose text was read by OCR.
        marks_headings: Whether all headings are marked as in Markdown, so that no plain line is taken for one.
        headings_apart: Whether no plain line inside a paragraph is taken for a heading.
        is_plain: Whether it is written by hand: a bar is text where it does not certainly divide the cells of a row.
        is_code: Whether it is a program or settings, without headings.
        barred_lines: The lines, without white space around them, in which bars are text: they are not rows of tables.
    """

    id: str
    title: str
    text: str
    source: str
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    ready_chunks: tuple[tuple[str, str], ...] | None = None
    file: str = ""
    file_hash: str = ""
    has_own_id: bool = True
    end: int = 0
    left_out: tuple[str, ...] = ()
    ocr_pages: tuple[int, ...] = ()
    marks_headings: bool = False
    headings_apart: bool = False
    is_plain: bool = False
    is_code: bool = False
    barred_lines: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not in the index, and why.

    Attributes:
        source: The file, with the line or the record if there is one (`notes.jsonl, line 3`).
        reason: The fault, in words for a person.
        count: How many problems this is: more than one for those of a file with too many to name each.
    """

    source: str
    reason: str
    count: int = 1

    def __str__(self) -> str:
        return visible_line(f"{self.source}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Note:
    """What the text of a file in the index lacks.

    Attributes:
        source: The file.
        left_out: Parts that a person sees in it: `2 charts`, `1 attachment (plan.dwg)`.
    """

    source: str
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        return visible_line(f"{self.source}: {', '.join(self.left_out)}")


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """The result of an ingestion.

    Attributes:
        read: Documents read in this run that are in the index now.
        written: How many of those were new or had changed.
        removed: Documents that were pruned.
        other_languages: Documents read in this run that are not in English; 0 unless the embedder is known to be for
            English only.
        absent: Documents in the index that were not read in this run.
        skipped: Entries of folders that were skipped, and why: files without a reader, ignored ones, links and
            indexes.
        embedded: Sentences embedded in this run; of equal ones, each counts.
        documents: Documents in the index now.
        chunks: Chunks in the index now.
        sentences: Sentences with a vector in the index now.
        notes: Parts of the files read that are not in the index, one note for each such file.
        read_as: Files that were read as something else than their names say, by their content.
        problems: Everything that was left out, and why. After 100 problems of one file, the next one counts the rest.
        seconds: The time that it took.
        removed_ids: The ids of the documents that were pruned.
    """

    read: int
    written: int
    removed: int
    other_languages: int
    absent: int
    skipped: tuple[Problem, ...]
    embedded: int
    documents: int
    chunks: int
    sentences: int
    notes: tuple[Note, ...]
    problems: tuple[Problem, ...]
    seconds: float
    read_as: tuple[Problem, ...] = ()
    removed_ids: tuple[str, ...] = ()


def title_of_file(path: str) -> str:
    """Return the title of a file that has none of its own: its name, without the extension of a kind of files."""
    file = inner_path(Path(path))
    title = file.stem.replace("_", " ")
    is_kind = file.suffix.lower() in READERS
    is_part_of_name = file.stem.isupper() and not is_kind  # README.policy is beside README.routing
    return f"{title}{file.suffix}" if is_part_of_name else title
