"""What a method is, and what it works with.

A method is a class whose fields are its settings. `prepare` does the work before the first question, and `answer`
answers one. Both ask the model through a session, which keeps account of calls and retrievals. Every call is kept on
disk, so a method needs no code of its own to go on after a kill: it is run again, and its finished calls cost nothing.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, starmap
from typing import Any, ClassVar, TypeAlias, TypedDict, TypeVar, overload

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from arag.errors import without_credentials
from arag.evaluation.cache import Store, stored_seconds
from arag.evaluation.methods.shared import READER, Form, Passages, read_answer, read_json
from arag.evaluation.paper_tools import Presentation
from arag.evaluation.pauses import MAX_WAIT_SECONDS, find_pause
from arag.graph import DEFAULT_MAX_STEPS
from arag.graph.prompts import DATA_RULE, forced_question
from arag.graph.state import StopReason, ToolRecord
from arag.models.usage import ModelCall, model_call
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk, Hit
from arag.text.marks import mark, with_mark
from arag.text.tokens import count_batch

MAX_ATTEMPTS = 3
_LONG_PAUSE_SECONDS = 10.0  # it is announced
Item = TypeVar("Item")
Result = TypeVar("Result")

Turns: TypeAlias = str | Sequence[AnyMessage]
"""What a model is asked after its task: a text, or a conversation."""


class Method(BaseModel):
    """A method of answering questions. Its fields are its settings: `--set NAME.FIELD=VALUE`.

    The first line of a method's docstring says in reports what it does.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ClassVar[str]
    """Its name on the command line."""
    title: ClassVar[str]
    """Its name in reports, as in the paper."""
    differs: ClassVar[str] = ""
    """What differs from the published method, in sentences, for reports."""
    needs_model: ClassVar[bool] = False
    """Whether it needs a language model; the built-in extractive model is refused."""
    autonomous: ClassVar[bool | None] = False
    """Whether the model decides what comes next (paper, Table 4); None for "in part"."""
    iterative: ClassVar[bool | None] = False
    """Whether there may be several rounds (Table 4)."""
    interleaved: ClassVar[bool | None] = False
    """Whether tools and reasoning take turns (Table 4)."""

    def prepare(self, session: Session) -> Any:
        """Do the work before the first question; its calls are kept with the index, for all runs.

        Returns:
            What `answer` gets for every question. Several threads use it, so `answer` must not change it.
        """

    def answer(self, question: str, session: Session, prepared: Any) -> Answer | str:
        """Answer a question; several are answered at a time. `prepared` is what `prepare` has returned."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `cited` are the ids of the chunks that it rests on, where it does not name them itself."""

    text: str
    cited: Sequence[str] = ()
    stop_reason: StopReason = "answered"


class Note(TypedDict):
    """Something that a method found or decided on its way to an answer, for the question's page."""

    title: str
    lines: list[str]


@dataclass
class Lab:
    """What the sessions of a run share.

    Attributes:
        index: The index.
        model: The model, with its cache.
        store: What was computed for the index before.
        judge: The model that judges answers, with its cache, if there is one.
        top_k: Chunks per search (the paper's k).
        presentation: What A-RAG's tools show: `compact`, or the `paper`'s plain lists.
        max_steps: A-RAG's model calls before an answer is forced.
        at_once: Questions that are answered, and calls that `ask_all` makes, at a time.
        progress: Called with what is being done, how much of it is done, and how much there is.
        announce: Called with a sentence before work that may take long.
    """

    index: Index
    model: BaseChatModel
    store: Store
    judge: BaseChatModel | None = None
    top_k: int = 5
    presentation: Presentation = "compact"
    max_steps: int = DEFAULT_MAX_STEPS
    at_once: int = 8
    progress: Callable[[str, int, int], None] = lambda *_: None
    announce: Callable[[str], None] = lambda *_: None

    @cached_property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the order of the index."""
        return list(filter(None, self.index.mget(list(self.index.chunk_ids()))))

    def passages(self) -> Passages:
        """Return the chunks, to be ranked by their vectors; an embedder sees the first few hundred tokens of each."""
        vectors = self.vectors([chunk.text for chunk in self.chunks], "Chunks embedded")
        return Passages(self.chunks, vectors, self.index.embedder)

    def vectors(self, texts: Sequence[str], title: str = "Texts embedded") -> NDArray[np.float32]:
        """Return the vectors of texts, shape (texts, dimension); what was embedded before is not embedded again."""
        embedder, total = self.index.embedder, len(set(texts))

        def make(some: list[str]) -> list[bytes]:
            return [vector.astype("<f4").tobytes() for vector in embedder.embed_documents(some)]

        values = self.store.each(
            f"vector {embedder.name}", texts, make, embedder.batch, lambda done: self.progress(title, done, total)
        )
        vectors = [np.frombuffer(value, dtype="<f4") for value in values]
        return np.stack(vectors).astype(np.float32) if vectors else np.empty((0, 0), dtype=np.float32)


@dataclass
class Session:
    """One question, or the work before the first one: asks the model, searches, and keeps account.

    Attributes:
        lab: What it shares with the other sessions.
        model: The model, if it is not the lab's.
        calls: The model calls, in order.
        trace: The retrievals, in order.
        notes: What was found and decided, in order.
        messages: The conversation, where there is one to show.
        adjustment: Seconds to add to those of the clock: of replies from the cache, less those of pauses.
        unusable: How many replies did not fit the form that was asked for.
    """

    lab: Lab
    model: BaseChatModel | None = field(default=None, repr=False)
    calls: list[ModelCall] = field(default_factory=list)
    trace: list[ToolRecord] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    messages: list[AnyMessage] = field(default_factory=list)
    adjustment: float = 0.0
    unusable: int = 0

    def call(self, messages: Sequence[AnyMessage], **options: Any) -> AIMessage:
        """Call the model once, and return its whole reply; `ask` is simpler."""
        model = self.model or self.lab.model
        reply = self.with_retries(lambda: model.invoke(list(messages), **options))
        self.adjustment += stored_seconds([reply])
        self.calls.append(model_call(reply, step=len(self.calls) + 1))
        return reply

    def with_retries(self, work: Callable[[], Result]) -> Result:
        """Do work that calls the model; while its server is busy, do it again after pauses, which count as no seconds.

        Args:
            work: The work. Done again, it gets the replies to its finished calls from the cache.
        """
        tries, waited = 0, 0.0
        while True:
            began = time.perf_counter()
            try:
                return work()
            except Exception as error:
                pause = find_pause(error, tries)
                if pause is None or waited + pause > MAX_WAIT_SECONDS:
                    raise
                reason = without_credentials(f"{type(error).__name__}: {error}")
            if pause >= _LONG_PAUSE_SECONDS:
                self.lab.announce(f"The model is asked again in {pause:.0f} s: {reason}")
            time.sleep(pause)
            tries, waited = tries + 1, waited + pause
            self.adjustment -= time.perf_counter() - began

    @overload
    def ask(self, system: str, user: Turns, form: None = None, **options: Any) -> str: ...
    @overload
    def ask(self, system: str, user: Turns, form: type[Form], **options: Any) -> Form | None: ...
    def ask(self, system: str, user: Turns, form: type[Form] | None = None, **options: Any) -> str | Form | None:
        """Ask the model. A reply that is empty or does not fit the form is asked for again, up to three times in all.

        Args:
            system: The task. With a form, it must ask for a JSON object.
            user: The question and the data (see `arag.graph.prompts.as_data`), or a conversation.
            form: The form of the reply; None for a text.
            options: For the model's call, such as `temperature`.

        Returns:
            The reply. If there was no usable one: an empty text, or None with a form.
        """
        turns = [HumanMessage(user)] if isinstance(user, str) else user
        messages: list[AnyMessage] = [SystemMessage(f"{system}\n\n{DATA_RULE}"), *turns]
        for _ in range(MAX_ATTEMPTS):
            reply = self.call(messages, **options)
            text = reply.text.strip()
            if not text:
                continue
            if form is None:
                return text
            try:
                return read_json(text, form, cut_off=self.calls[-1]["cut_off"])
            except ValidationError as error:
                self.unusable += 1
                fault = error.errors()[0]
                wrong = " ".join([".".join(map(str, fault["loc"])), fault["msg"]]).strip()
                again = f"This is not the JSON object that was asked for: {wrong}. Reply with that object alone."
                messages = [*messages, AIMessage(text), HumanMessage(again)]
        return None if form else ""

    def ask_all(
        self,
        system: str,
        users: Iterable[Turns],
        form: type[Form] | None = None,
        title: str = "",
        **options: Any,
    ) -> list[Any]:
        """Ask about several things as `ask` does, several at a time; those that are the same are asked about once.

        Args:
            system: The task.
            users: The question and the data of each, or a conversation.
            form: The form of the replies; None for texts.
            title: What is done, for the progress of long work: "Triples". It is then announced with its size.
            options: For the model's calls.

        Returns:
            The replies, in the order of `users`.
        """
        by_key = [(user if isinstance(user, str) else tuple((m.type, m.text) for m in user), user) for user in users]
        different = dict(by_key)
        if title and different:
            tokens = sum(count_batch([f"{system}\n{key}" for key in different]))
            self.lab.announce(f"{title}: {len(different):,} model calls, {tokens:,} input tokens")
        replies = self.map_parallel(
            lambda session, user: session.ask(system, user, form, **options), list(different.values()), title
        )
        reply_to = dict(zip(different, replies, strict=True))
        return [reply_to[key] for key, _ in by_key]

    def map_parallel(
        self, work: Callable[[Session, Item], Result], items: Sequence[Item], title: str = ""
    ) -> list[Result]:
        """Do something with several items, several at a time; return the results in the order of the items.

        Args:
            work: What is done: it gets a session of its own, and an item. It does nothing side by side itself.
            items: The items.
            title: What is done, for the progress of long work.
        """
        done, began = count(1), time.perf_counter()

        def work_on(item: Item) -> tuple[Session, Result, float]:
            session, began = Session(self.lab, self.model), time.perf_counter()
            result = work(session, item)
            if title:
                self.lab.progress(title, next(done), len(items))
            return session, result, time.perf_counter() - began + session.adjustment

        with threads(self.lab.at_once) as pool:
            finished = list(pool.map(work_on, items))
        ends = [0.0] * self.lab.at_once  # of each thread's work, if there were no pauses and no replies from the cache
        for session, _, seconds in finished:
            heapq.heapreplace(ends, ends[0] + seconds)
            self.calls += [{**call, "step": number} for number, call in enumerate(session.calls, len(self.calls) + 1)]
            self.unusable += session.unusable
        self.adjustment += max(ends) - (time.perf_counter() - began)
        return [result for _, result, _ in finished]

    def retrieved(
        self,
        chunks: Sequence[Chunk],
        query: str,
        *,
        tool: str = "retrieve",
        tokens: int | None = None,
        **figures: Any,
    ) -> None:
        """Note which chunks were retrieved, best first; their tokens count as retrieved.

        Args:
            chunks: The chunks.
            query: What was searched for.
            tool: The retrieval's name.
            tokens: The retrieved tokens where they are not those of the chunks.
            figures: What else there is to know about the retrieval.
        """
        known = {chunk_id for record in self.trace for chunk_id in record["chunk_ids"]}
        ids = [chunk.id for chunk in chunks]
        tokens = sum(chunk.tokens for chunk in chunks) if tokens is None else tokens
        self.trace.append(
            ToolRecord(
                step=len(self.calls) + 1,
                tool=tool,
                arguments={"query": query, **figures},
                chunk_ids=ids,
                new_chunks=[chunk_id for chunk_id in ids if chunk_id not in known],
                retrieved_tokens=tokens,
                evidence_tokens=tokens,
                seconds=0.0,  # not measured
                error=None,
            )
        )

    def search(self, question: str) -> list[Chunk]:
        """Return the chunks that `semantic_search` finds, whole; they count as retrieved."""
        return self._whole(self.lab.index.semantic_search(question, self.lab.top_k).hits, question)

    def search_keywords(self, keywords: Sequence[str]) -> list[Chunk]:
        """Return the chunks that `keyword_search` finds, whole; they count as retrieved."""
        hits = self.lab.index.keyword_search(keywords, self.lab.top_k).hits if keywords else ()
        return self._whole(hits, ", ".join(keywords))

    def _whole(self, hits: Iterable[Hit], query: str) -> list[Chunk]:
        chunks = list(filter(None, self.lab.index.mget([hit.chunk_id for hit in hits])))
        self.retrieved(chunks, query, top_k=self.lab.top_k)
        return chunks

    def note(self, title: str, lines: Iterable[str]) -> None:
        """Note what was found or decided, for the question's page."""
        self.notes.append(Note(title=title, lines=list(lines)))

    def read(self, question: str, chunks: Sequence[Chunk], example: str = "") -> Answer:
        """Ask for a short answer from passages, best first, after some reasoning of which there may be an example.

        A chunk that is there twice is shown once.
        """
        texts = {chunk.id: chunk.text for chunk in chunks}
        passages = "\n\n".join(starmap(with_mark, texts.items()))
        reply = self.ask(f"{READER}\n\n{example}".strip(), forced_question(question, passages))
        return Answer(read_answer(reply), [chunk_id for chunk_id in texts if mark(chunk_id) in reply])


@contextmanager
def threads(at_once: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that begin no more work after an error; after Ctrl-C nobody waits for the work under way."""
    pool = ThreadPoolExecutor(at_once)
    try:
        yield pool
    finally:
        pool.shutdown(wait=not isinstance(sys.exc_info()[1], KeyboardInterrupt), cancel_futures=True)
