"""The progress of an ingestion or a copy."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from arag.ingest.documents import Document

Phase: TypeAlias = Literal["reading", "loading", "embedding", "copying", "publishing", "done"]

_SECONDS_BETWEEN_LINES = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an ingestion or a copy.

    Attributes:
        phase: The current step. `loading` is of the embedder, `copying` of chunks; `publishing` lets readers see what
            was written.
        done: Bytes of the sources that are finished: their text has its vectors, or is unchanged, or cannot be read.
            Objects given in Python count with their characters. While copying, chunks; while publishing, sentences.
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

    @property
    def figures(self) -> str:
        """What is finished, in words."""
        if self.phase in {"copying", "publishing"}:
            return f"{self.done:,} of {self.total:,} {'chunks' if self.phase == 'copying' else 'sentences'}"
        share = "" if self.total is None else f"{self.share:.0%}, "
        speed = f", {self.sentences:,} sentences, {self.per_second:,.0f} per second" if self.sentences else ""
        return f"{share}{self.documents:,} documents{speed}"

    def __str__(self) -> str:
        """Return one line of text."""
        if self.phase == "loading":
            return "Loading the embedder"
        minutes, seconds = divmod(round(self.seconds_left or 0), 60)
        left = "" if self.seconds_left is None or self.phase == "done" else f", {minutes}:{seconds:02} left"
        return f"{self.phase.capitalize()}: {self.figures}{left}"


ShowProgress: TypeAlias = Callable[[Progress], None]


class Meter:
    """Measures the progress of an ingestion or a copy.

    Args:
        show: Called whenever there is progress; True prints a line on stderr every few seconds.
        total: Bytes of all sources, or chunks to copy; None if that is not known.
        check: Called at every step; what it raises ends the run.
    """

    def __init__(
        self, show: ShowProgress | bool = False, total: int | None = None, check: Callable[[], None] | None = None
    ) -> None:
        self._show = _Lines().show if show is True else show
        self.check = check or (lambda: None)
        self._total = total
        self._phase: Phase = "reading"
        self._began = self._entered = time.monotonic()
        self._done = self._done_before = 0  # now, and when this phase began
        self._finished = 0  # bytes up to the end of the last document that is finished
        self._documents = self._sentences = 0
        self._embedding_seconds = 0.0
        self._report(0, total)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def enter(self, phase: Phase) -> None:
        """A step begins."""
        self._begin(phase, self._done)
        self._report(self._done, self._total)

    def finish(self, documents: Sequence[Document]) -> None:
        """Documents are finished: unchanged, or refused."""
        self._documents += len(documents)
        self._finished = max([self._finished, *(document.end for document in documents)])
        self._advance(self._finished)

    def embed(self, sentences: int, document: Document, share: float) -> None:
        """Sentences were embedded, up to this share of a document."""
        self._sentences += sentences
        self._advance(self._finished + round((document.end - self._finished) * share))

    def copy(self, chunks: int) -> None:
        """Chunks were copied, or were there already."""
        self._advance(self._done + chunks)

    def publish(self, done: int, total: int) -> None:
        """A publication has written some of its sentences."""
        self._begin("publishing", done)
        self._report(done, total)

    def end(self) -> None:
        """Everything is published."""
        if self._total is not None:
            self._done = self._total
        self.enter("done")

    def _begin(self, phase: Phase, done: int) -> None:
        if phase != self._phase:
            now = time.monotonic()
            if self._phase == "embedding":
                self._embedding_seconds += now - self._entered
            self._phase, self._entered, self._done_before = phase, now, done

    def _advance(self, done: int) -> None:
        self._done = max(self._done, done)
        self._report(self._done, self._total)

    def _report(self, done: int, total: int | None) -> None:
        self.check()
        if not self._show:
            return
        now = time.monotonic()
        in_phase = now - self._entered
        advance = done - self._done_before
        embedding = self._embedding_seconds + (in_phase if self._phase == "embedding" else 0.0)
        progress = Progress(
            phase=self._phase,
            done=done,
            total=total,
            documents=self._documents,
            sentences=self._sentences,
            per_second=self._sentences / embedding if embedding else 0.0,
            seconds_left=None if total is None or not advance else in_phase * (total - done) / advance,
            seconds=now - self._began,
        )
        self._show(progress)


class _Lines:
    """Prints a line on stderr every few seconds."""

    def __init__(self) -> None:
        self._printed_at = time.monotonic()
        self._has_printed = False

    def show(self, progress: Progress) -> None:
        is_due = time.monotonic() - self._printed_at >= _SECONDS_BETWEEN_LINES
        if is_due or (self._has_printed and progress.phase == "done"):
            print(progress, file=sys.stderr, flush=True)  # noqa: T201
            self._printed_at, self._has_printed = time.monotonic(), True
