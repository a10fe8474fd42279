"""The progress of an ingestion or a copy."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Phase: TypeAlias = Literal["reading", "loading", "embedding", "copying", "publishing", "done"]

_SECONDS_BETWEEN_LINES = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an ingestion or a copy.

    Attributes:
        phase: The current step. `loading` is of the embedder; `publishing` lets readers see what was written.
        done: Bytes of the sources whose documents are finished: they are stored, unchanged or left out. Objects given
            in Python count with their characters. For a copy, chunks.
        total: Where `done` ends; None for an iterable of unknown length.
        documents: Documents that are finished.
        sentences: Sentences embedded.
        per_second: Sentences embedded per second.
        seconds_left: Seconds until this step is done; None if not known.
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

    @property
    def share(self) -> float:
        """What is finished of the step, 0 to 1; 0 to the end if the total is not known."""
        return self.done / self.total if self.total else float(self.phase == "done")

    def __str__(self) -> str:
        """Return one line of text."""
        if self.phase == "loading":
            return "Loading the embedder"
        if self.phase == "publishing":
            return "Publishing"
        if self.phase == "copying":
            figures = f"{self.done:,} of {self.total:,} chunks"
        else:
            figures = f"{'' if self.total is None else f'{self.share:.0%}, '}{self.documents:,} documents"
            if self.sentences:
                figures += f", {self.sentences:,} sentences, {self.per_second:,.0f} per second"
        if self.seconds_left is not None and self.phase != "done":
            figures += f", {self.seconds_left // 60:.0f}:{self.seconds_left % 60:02.0f} left"
        return f"{self.phase.capitalize()}: {figures}"


ShowProgress: TypeAlias = Callable[[Progress], None]


class Meter:
    """Measures the progress of an ingestion or a copy.

    Args:
        show: Called whenever there is progress; True prints a line on stderr every few seconds.
        total: Bytes of all sources, or chunks to copy; None if that is not known.

    Attributes:
        done: Bytes or chunks that are finished.
        sentences: Sentences embedded so far.
    """

    def __init__(self, show: ShowProgress | bool = False, total: int | None = None) -> None:
        self._show = self._print if show is True else show
        self._printed = 0.0  # seconds since the start, at the last line
        self._total = total
        self._phase: Phase = "reading"
        self._began = self._entered = time.monotonic()
        self.done = self._done_before = 0  # now, and when this phase began
        self.sentences = self._documents = 0
        self._per_second = 0.0
        self.report()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def report(
        self, phase: Phase | None = None, done: int | None = None, *, documents: int = 0, sentences: int = 0
    ) -> None:
        """Show the progress of a step, with more documents that are finished and sentences that were embedded."""
        self.done = self.done if done is None else done
        if phase and phase != self._phase:
            self._phase, self._entered, self._done_before = phase, time.monotonic(), self.done
        in_phase = max(time.monotonic() - self._entered, 1e-9)
        self._documents += documents
        if sentences:
            self.sentences += sentences
            self._per_second = self.sentences / in_phase
        if self._show:
            left = None
            if self._total and self.done > self._done_before:
                left = in_phase * (self._total - self.done) / (self.done - self._done_before)
            counts = self._documents, self.sentences, self._per_second
            self._show(Progress(self._phase, self.done, self._total, *counts, left, self.seconds))

    def end(self) -> None:
        """Everything is published."""
        self.report("done", self._total)

    def _print(self, progress: Progress) -> None:
        """Print a line if the last one is some seconds old, or if it ends others."""
        is_due = progress.seconds - self._printed >= _SECONDS_BETWEEN_LINES
        if is_due or (self._printed and progress.phase == "done"):
            self._printed = progress.seconds
            print(progress, file=sys.stderr, flush=True)  # noqa: T201
