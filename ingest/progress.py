"""The progress of an ingestion, and of a copy."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Literal, Self, TypeAlias, TypeVar

from arag.retrieval.types import Chunk

Phase: TypeAlias = Literal["reading", "loading", "embedding", "pruning", "publishing", "done"]
CopyPhase: TypeAlias = Literal["copying", "publishing", "done"]

_BETWEEN_LINES = 5.0  # seconds
_WINDOW = 30.0  # seconds that speeds are measured over


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an ingestion.

    Attributes:
        phase: The current step. `reading` includes cutting into chunks; `loading` is of the embedder; `pruning` comes
            just before documents are removed; `publishing` lets readers see what was written, at the end.
        done: Bytes of the files that are finished: their text has its vectors, or is unchanged, or cannot be read.
            Documents given in Python count with their characters.
        total: Bytes of all files that are read. `done` ends there. None for an iterable of unknown length.
        documents: Documents that are finished.
        sentences: Sentences embedded.
        per_second: Sentences embedded per second, in the last half minute.
        seconds_left: Seconds until all is embedded or, in the publication, published; None if not known.
        published: Sentences written to the vector store by the publication.
        to_publish: Sentences that it writes.
        pruned: Documents that are removed because they are no longer in the given files and folders.
        seconds: Seconds since the start.
    """

    phase: Phase
    done: int
    total: int | None
    documents: int
    sentences: int
    per_second: float
    seconds_left: float | None
    published: int
    to_publish: int
    pruned: int
    seconds: float

    @property
    def share(self) -> float:
        """What is finished of the files, 0 to 1; 0 to the end if the total is not known."""
        return self.done / self.total if self.total else float(self.phase == "done")

    def __str__(self) -> str:
        """Return one line of text."""
        if self.phase == "loading":
            return "Loading the embedder"
        left = "" if self.seconds_left is None else f", {_clock(self.seconds_left)} left"
        if self.phase == "publishing":
            return f"Publishing: {self.published:,} of {self.to_publish:,} sentences{left}"
        if self.phase == "pruning":
            return f"Removing {self.pruned:,} document{'' if self.pruned == 1 else 's'} that the sources no longer hold"
        share = "" if self.total is None else f"{self.share:.0%}, "
        said = f"{self.phase.capitalize()}: {share}{self.documents:,} documents"
        if self.sentences:
            said += f", {self.sentences:,} sentences, {self.per_second:,.0f} per second"
        return said + ("" if self.phase == "done" else left)


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """The progress of a copy.

    Attributes:
        phase: The current step: `copying` compares what is there, and writes what is not; `publishing` makes what the
            target needs for searching.
        done: Chunks that are copied; of `publishing`, sentences.
        total: How many there are.
        seconds_left: Seconds until this step is done; None if not known.
        seconds: Seconds since the start.
    """

    phase: CopyPhase
    done: int
    total: int
    seconds_left: float | None
    seconds: float

    def __str__(self) -> str:
        """Return one line of text."""
        what = "sentences" if self.phase == "publishing" else "chunks"
        left = "" if self.seconds_left is None or self.phase == "done" else f", {_clock(self.seconds_left)} left"
        return f"{self.phase.capitalize()}: {self.done:,} of {self.total:,} {what}{left}"


ShowProgress: TypeAlias = Callable[[Progress], None]
ShowCopyProgress: TypeAlias = Callable[[CopyProgress], None]
AnyProgress = TypeVar("AnyProgress", Progress, CopyProgress)


class Tracker:
    """Follows the documents of a run until their vectors are written.

    Args:
        show: Called whenever there is progress.
        total: Bytes of all files that are read; None if that is not known.
        check: Called at every step; what it raises ends the run.
    """

    def __init__(
        self, show: ShowProgress | None = None, total: int | None = None, check: Callable[[], None] | None = None
    ) -> None:
        self._show = show
        self._check = check
        self._total = total
        self._began = time.monotonic()
        self._phase: Phase = "reading"
        self._done = self._documents = self._sentences = self._published = self._to_publish = self._pruned = 0
        self._publishing_since = 0.0
        self._published_before = 0
        # Bytes and characters of the documents that were read and are not finished, less what was embedded of them.
        self._left: dict[str, tuple[int, int]] = {}
        self._recent = deque([(0.0, 0, 0)])  # seconds, bytes and sentences
        self._report()

    def read(self, document_id: str, size: int, characters: int) -> None:
        """A document was read that takes up so many bytes of its file."""
        self._go_on()
        self._left[document_id] = size, characters

    def skip(self, size: int) -> None:
        """So many bytes of a file have no document."""
        self._go_on()
        self._add(size)

    def settle(self, document_ids: Iterable[str]) -> None:
        """Nothing is embedded of these documents: they are unchanged, or were refused."""
        for document_id in document_ids:
            self._advance(document_id, sys.maxsize)
        self._report()

    def load(self) -> None:
        """The embedder is being loaded."""
        self._enter("loading")

    def embed(self) -> None:
        """The embedder is loaded."""
        if self._phase in {"reading", "loading"}:
            self._recent = deque([(self._seconds(), self._done, self._sentences)])  # speeds are measured from here on
            self._enter("embedding")

    def embedded(self, chunks: Sequence[Chunk], sentences: int) -> None:
        """The vectors of chunks were written, of which so many sentences were embedded."""
        self._sentences += sentences
        for chunk in chunks:
            self._advance(chunk.document_id, len(chunk.text))
        self._report()

    def prune(self, documents: int) -> None:
        """So many documents are about to be removed."""
        self._pruned = documents
        before, self._phase = self._phase, "pruning"
        self._report()
        self._phase = before

    def publish(self, written: int, total: int) -> None:
        """So many sentences, of all that a publication writes, were written to the vector store."""
        if self._phase != "publishing":
            self._publishing_since, self._published_before = self._seconds(), written
        self._published, self._to_publish = written, total
        self._enter("publishing")

    def finish(self) -> None:
        """Everything is written and published."""
        if self._total is not None:
            self._done = self._total
        self._enter("done")

    def _advance(self, document_id: str, characters: int) -> None:
        if document_id not in self._left:  # settled
            return
        size, rest = self._left[document_id]
        if characters < rest:
            more = size * characters // rest
            self._left[document_id] = size - more, rest - characters
        else:
            more = size
            del self._left[document_id]
            self._documents += 1
        self._add(more)

    def _add(self, size: int) -> None:
        self._done += size
        if self._total is not None:
            self._done = min(self._done, self._total)

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._report()

    def _go_on(self) -> None:
        if self._check is not None:
            self._check()

    def _report(self) -> None:
        self._go_on()
        if self._show is None:
            return
        now = self._seconds()
        while len(self._recent) > 1 and now - self._recent[0][0] > _WINDOW:
            self._recent.popleft()
        since, done, sentences = self._recent[0]
        elapsed = now - since
        if self._phase == "publishing" and self._done == self._total:
            written = self._published - self._published_before
            left = _rest(now - self._publishing_since, written, self._to_publish - self._published)
        else:
            left = None if self._total is None else _rest(elapsed, self._done - done, self._total - self._done)
        self._recent.append((now, self._done, self._sentences))
        self._show(
            Progress(
                phase=self._phase,
                done=self._done,
                total=self._total,
                documents=self._documents,
                sentences=self._sentences,
                per_second=(self._sentences - sentences) / elapsed if elapsed else 0.0,
                seconds_left=left,
                published=self._published,
                to_publish=self._to_publish,
                pruned=self._pruned,
                seconds=now,
            )
        )

    def _seconds(self) -> float:
        return time.monotonic() - self._began


class CopyMeter:
    """Follows the steps of a copy.

    Args:
        show: Called whenever there is progress.
    """

    def __init__(self, show: ShowCopyProgress | None) -> None:
        self._show = show
        self._began = self._entered = time.monotonic()
        self._phase: CopyPhase = "copying"
        self._done = self._total = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def enter(self, phase: CopyPhase, total: int) -> None:
        """A step begins, with so many chunks."""
        self._phase, self._total, self._done = phase, total, 0
        self._entered = time.monotonic()
        self._report()

    def add(self, done: int) -> None:
        """So many more chunks are done."""
        self._done += done
        self._report()

    def publish(self, written: int, total: int) -> None:
        """So many sentences, of all that a publication writes, were written."""
        self._done, self._total = written, total
        self._report()

    def finish(self, chunks: int) -> None:
        """Everything is published."""
        self._phase, self._done, self._total = "done", chunks, chunks
        self._report()

    def _report(self) -> None:
        if self._show is not None:
            left = _rest(time.monotonic() - self._entered, self._done, self._total - self._done)
            self._show(CopyProgress(self._phase, self._done, self._total, left, self.seconds))


@contextmanager
def showing(
    progress: bool | Callable[[AnyProgress], None],
) -> Iterator[Callable[[AnyProgress], None] | None]:
    """Return the function that shows progress: true prints lines on stderr, false shows nothing."""
    if not isinstance(progress, bool):
        yield progress
    elif progress:
        with _Lines() as lines:
            yield lines.show
    else:
        yield None


class _Lines:
    """Prints a line on stderr every few seconds, from a thread: reading a file may take long."""

    def __init__(self) -> None:
        self._latest: Progress | CopyProgress | None = None
        self._printed = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._printed and kind is None:
            self._print()

    def show(self, progress: Progress | CopyProgress) -> None:
        if progress.phase == "pruning":  # told once, before it happens
            print(progress, file=sys.stderr, flush=True)  # noqa: T201
        else:
            self._latest = progress

    def _run(self) -> None:
        while not self._ended.wait(_BETWEEN_LINES):
            self._print()

    def _print(self) -> None:
        if self._latest is not None:
            print(self._latest, file=sys.stderr, flush=True)  # noqa: T201
            self._printed = True


def _rest(seconds: float, done: int, left: int) -> float | None:
    if not left:
        return 0.0
    return seconds * left / done if done else None


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
