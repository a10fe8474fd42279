"""The progress of an ingestion, a copy or a check."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from arag.ingest.workload import Workload
from arag.text.normalise import count, name_estimate, shorten

Phase: TypeAlias = Literal[
    "listing",
    "sampling",
    "reading",
    "loading",
    "embedding",
    "copying",
    "publishing",
    "checking",
    "repairing",
    "done",
]

_STEPS = {"listing": "Looking for files", "sampling": "Reading a sample", "loading": "Loading the embedder"}
_WHOLE = 1_000  # the total of a step of which only the finished part is known
_LEAST_SHARE = 0.05  # of the total: less tells nothing about the time that the rest takes
_LEAST_SECONDS = 20.0  # of work: the first seconds are not like the rest
_LEAST_SHARE_OF_TEXT = 0.2  # of the total: before, the number of all sentences may be wrong by half
_MAX_NAME = 40  # characters: beside it, a bar fits into a line of a terminal
_SECONDS_BETWEEN_LINES = 5.0  # often enough to see that a run is alive, without filling a log


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an ingestion, a copy or a check.

    Attributes:
        phase: The current step. `listing` looks for files; `sampling` reads some of them before their turn, to estimate
            the rest; `loading` loads the embedder; `publishing` lets readers see what was written.
        done: The finished part of `total`. For an ingestion, it is estimated from the time that reading and writing
            took so far. For an iterable of unknown length, the bytes of its finished files, and the characters of
            objects.
        total: Bytes of the sources; objects given in Python count with their characters. None for an iterable of
            unknown length. For a copy, chunks. For a check or a repair, 1,000.
        documents: Documents that are finished.
        sentences: Sentences embedded; of equal ones, each counts.
        ocr_pages: Scanned pages that are read.
        file: The name of a large file that is being read; empty for others.
        files: Files to read: those found so far while `listing`, those of the sample while `sampling`.
        files_read: Files that are read to their end.
        expected_sentences: An estimate of `sentences` at the end; 0 if not known.
        has_changes: Whether a document is new or has changed.
        per_second: Sentences embedded per second.
        seconds_left: An estimate of the seconds until all is read and written, or this step is done. None if not known,
            and in the first 5% or the first 20 seconds.
        seconds: Seconds since the start.
    """

    phase: Phase
    done: int
    total: int | None
    documents: int
    sentences: int
    per_second: float
    seconds_left: float | None
    seconds: float
    ocr_pages: int = 0
    file: str = ""
    files: int = 0
    files_read: int = 0
    expected_sentences: int = 0
    has_changes: bool = True

    @property
    def share(self) -> float:
        """The finished part of the step, 0 to 1. If the total is not known, it is 0 until the end."""
        if self.total:
            return self.done / self.total
        return 1.0 if self.phase == "done" else 0.0

    @property
    def step(self) -> str:
        """The name of the current step, for a person."""
        if self.file:
            return f"Reading {shorten(self.file, _MAX_NAME)}"
        return _STEPS.get(self.phase) or self.phase.capitalize()

    @property
    def finished(self) -> str:
        """What is finished, such as `34%, 335 of 1,033 files`; empty for a step that counts nothing."""
        if self.phase in {"loading", "publishing"}:
            return ""
        if self.phase in {"checking", "repairing"}:
            return self._percent if self.done else ""
        if self.phase == "copying":
            return f"{self.done:,} of {count(self.total or 0, 'chunk')}"
        if self.phase == "listing":
            return f"{self.files:,} found" if self.files else ""
        parts = [self._percent] if self._tells_share() else []
        parts += self._count_read()
        if self.ocr_pages:
            parts.append(count(self.ocr_pages, "scanned page"))
        if self.documents and not self.has_changes:
            parts.append("nothing new")
        return ", ".join(parts)

    def _tells_share(self) -> bool:
        """Return whether the share of the files is told.

        Before the first one is finished, it is mostly the time that loading the embedder took. It is of all files, so
        beside those of a sample it would mislead.
        """
        has_begun = any(
            [
                self.phase != "reading",
                self.files_read > 0,
                self.files < 2,
            ]
        )
        return all(
            [
                self.total is not None,
                self.phase != "sampling",
                has_begun,
            ]
        )

    @property
    def _percent(self) -> str:
        """The share, rounded down: 100% is the end."""
        return f"{int(100 * self.share)}%"

    def _count_read(self) -> list[str]:
        """Return the files that are read of all, and the documents if these are others: a file may have many."""
        documents = count(self.documents, "document")
        if self.files < 2 or self.phase == "done":
            return [documents]
        files = f"{self.files_read:,} of {self.files:,} files"
        has_begun = self.files_read + 1  # the last document of a file may be finished a little before the file
        return [files, documents] if self.documents > has_begun else [files]

    @property
    def embedded(self) -> str:
        """The sentences embedded and their rate: `9,412 of about 24,000 sentences, 31 per second`; empty for none.

        In the first fifth, the number of all sentences is left out.
        """
        if not self.sentences or self.phase not in {"reading", "embedding", "done"}:
            return ""
        rate = f"{self.per_second:,.0f} per second"
        if self.phase == "done" or not self.expected_sentences or self.share < _LEAST_SHARE_OF_TEXT:
            return f"{count(self.sentences, 'sentence')}, {rate}"
        expected = max(_round(self.expected_sentences), self.sentences)
        return f"{self.sentences:,} of about {count(expected, 'sentence')}, {rate}"

    def __str__(self) -> str:
        """Return one line of text."""
        if not self.finished:
            return self.step
        line = f"{self.step}: {self.finished}"
        if self.embedded:
            line += f", {self.embedded}"
        if self.seconds_left is not None and self.share < 1:
            line += f", {name_estimate(self.seconds_left)} left"
        return line


def _round(number: int) -> int:
    """Return a number with two digits and zeros: an estimate."""
    return int(float(f"{number:.1e}"))


ShowProgress: TypeAlias = Callable[[Progress], None]


class Meter:
    """Measures the progress of an ingestion, a copy or a check.

    Args:
        show: Called whenever there is progress; True prints a line on stderr every few seconds.
        total: Bytes of all sources, or chunks to copy; None if that is not known.
        phase: The first step. For `checking` and `repairing`, the total is 1,000.

    Attributes:
        done: Bytes or chunks that are finished.
        sentences: Sentences embedded so far.
        workload: What the progress of an ingestion is estimated from.
    """

    def __init__(
        self,
        show: ShowProgress | bool = False,
        total: int | None = None,
        phase: Phase = "reading",
    ) -> None:
        self.done = 0
        self.sentences = 0
        self._show = self._print if show is True else show
        self._total = _WHOLE if phase in {"checking", "repairing"} else total
        self._documents = 0
        self._ocr_pages = 0
        self._file = ""
        self._per_second = 0.0
        self._start = time.monotonic()
        self._last_line = 0.0  # seconds from the start to the last printed line
        self._phase: Phase = phase
        self._start_phase()
        self.workload = Workload({})
        self._is_estimated = False
        self._found = 0
        self._loading = 0.0  # seconds
        self._embedding_start = 0.0  # seconds
        self.report()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def report(
        self,
        phase: Phase | None = None,
        done: int | None = None,
        *,
        documents: int = 0,
        sentences: int = 0,
        ocr_pages: int = 0,
        file: str = "",
    ) -> None:
        """Show progress.

        Args:
            phase: The current step; the last one if not given.
            done: Bytes or chunks that are finished. A smaller number than the last one changes nothing.
            documents: Documents finished since the last report.
            sentences: Sentences embedded since the last report.
            ocr_pages: Scanned pages read since the last report.
            file: The name of a large file that is going to be read.
        """
        is_first = self._phase == "reading" and not self.done  # it waits for libraries to load, unlike later ones
        if self._is_estimated:
            done = int(self.workload.estimate_share(self._working_seconds()) * (self._total or 0))
        if done is not None:
            self.done = max(self.done, done)
        if phase and phase != self._phase:
            if self._phase == "loading":
                self._loading += self._seconds_in_phase()
            self._phase = phase
            self._start_phase()
        elif is_first:
            self._start_phase()
        self._documents += documents
        self._ocr_pages += ocr_pages
        self._file = file
        if sentences:
            self.sentences += sentences
            self._per_second = self.sentences / max(self.seconds - self._embedding_start, 1e-9)
        if self._show:
            self._show(self._make_progress())

    def report_found(self, files: int) -> None:
        """Show how many files were found so far."""
        self._found = files
        self.report("listing")

    def begin_reading(self, total: int | None, workload: Workload, *, is_estimated: bool = True) -> None:
        """Report that all files are found.

        Args:
            total: Bytes of all sources; None if that is not known.
            workload: What is to be read.
            is_estimated: Whether the progress is estimated from the workload; else it is the bytes that are read.
        """
        self._total = total
        self.workload = workload
        self._is_estimated = is_estimated and total is not None
        workload.begin_reading(self._working_seconds())
        self.report("reading")

    def begin_writing(self) -> None:
        """Report that text is being embedded."""
        if not self._embedding_start:
            self._embedding_start = self.seconds
        self.workload.begin_writing(self._working_seconds())
        self.report("embedding")

    def write(self, characters: float) -> None:
        """Count text that is embedded."""
        self.workload.write(characters, self._working_seconds())

    def begin_file(self, name: str) -> None:
        """Report that a large file is read next: until it is, nothing else moves on."""
        self.report(file=name)

    def report_share(self, share: float) -> None:
        """Show which part of a check or a repair is finished, 0 to 1."""
        self.report(done=round(share * _WHOLE))

    def end(self) -> None:
        """Report that everything is published."""
        self.done = max(self.done, self._total or 0)
        self.report("done")

    def _working_seconds(self) -> float:
        """Return the seconds so far, without those for loading the embedder."""
        loading = self._loading
        if self._phase == "loading":
            loading += self._seconds_in_phase()
        return max(self.seconds - loading, 0.0)

    def _start_phase(self) -> None:
        self._phase_start = time.monotonic()
        self._phase_start_done = self.done

    def _seconds_in_phase(self) -> float:
        return max(time.monotonic() - self._phase_start, 1e-9)  # never 0, as it is divided by

    def _make_progress(self) -> Progress:
        files, files_read = self._count_files()
        return Progress(
            phase=self._phase,
            done=self.done,
            total=self._total,
            documents=self._documents,
            sentences=self.sentences,
            ocr_pages=self._ocr_pages,
            file=self._file,
            files=files,
            files_read=files_read,
            expected_sentences=self.workload.estimate_sentences(self.sentences) if self._is_estimated else 0,
            has_changes=self.workload.has_changes or not self._is_estimated,
            per_second=self._per_second,
            seconds_left=self._estimate_seconds_left(),
            seconds=self.seconds,
        )

    def _count_files(self) -> tuple[int, int]:
        """Return the files of this step, and those of them that are read."""
        if self._phase == "listing":
            return self._found, 0
        if self._phase == "sampling":
            return self.workload.sample_files, self.workload.sampled_files
        return self.workload.files, self.workload.files_read

    def _estimate_seconds_left(self) -> float | None:
        """Estimate the seconds left; None before enough of it is finished to tell."""
        done_in_phase = self.done if self._is_estimated else self.done - self._phase_start_done
        if not self._total or done_in_phase < _LEAST_SHARE * self._total:
            return None
        if self._working_seconds() < _LEAST_SECONDS:
            return None
        if self._is_estimated:
            left = self.workload.estimate_seconds_left(self._working_seconds())
            return left if self.workload.is_measured else None
        return self._seconds_in_phase() * (self._total - self.done) / done_in_phase

    def _print(self, progress: Progress) -> None:
        """Print a line if the last one is some seconds old. Where lines were printed, print the end, too."""
        is_due = progress.seconds - self._last_line >= _SECONDS_BETWEEN_LINES
        is_end = self._last_line > 0 and progress.phase == "done"
        if is_due or is_end:
            self._last_line = progress.seconds
            print(progress, file=sys.stderr, flush=True)  # noqa: T201
