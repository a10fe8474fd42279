"""The base class of methods, and the sessions through which they ask the model and search.

A method is a class whose fields are its settings. `prepare` does the work before the first question, and `answer`
answers one. Both ask the model through a session, which records calls and retrievals. Every call is kept on disk, so a
method needs no code of its own to continue after a kill: it is run again, and its finished calls cost nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, starmap
from typing import Any, ClassVar, TypeAlias, TypedDict, TypeVar, overload

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, ValidationError

from arag.errors import without_credentials
from arag.evaluation.methods.shared import READER, Form, read_answer, read_json
from arag.evaluation.run_context import RunContext, find_chunks
from arag.graph.prompts import DATA_RULE, forced_question
from arag.graph.state import StopReason, ToolRecord
from arag.models.pauses import MAX_WAIT_SECONDS, find_pause
from arag.models.replies.reading import without_thinking
from arag.models.usage import ModelCall, model_call
from arag.retrieval.types import Chunk, Hit
from arag.text.marks import mark, with_mark
from arag.text.tokens import count_batch

MAX_ATTEMPTS = 3
_LONG_PAUSE_SECONDS = 10.0  # it is announced
Item = TypeVar("Item")
Result = TypeVar("Result")

ABILITIES = {
    "words": "Find exact words",
    "meaning": "Find by meaning",
    "follow": "Follow what it has found",
    "all": "See every match, and count",
    "tables": "Compute over tables",
    "cite": "Name the chunks of its answer",
    "cheap": "Index without model calls",
}
"""What a method may be able to do, as reports name it."""

Turns: TypeAlias = str | Sequence[AnyMessage]
"""The part of a prompt that follows the task: a text, or a conversation."""


class Method(BaseModel):
    """A method of answering questions. Its fields are its settings: `--set NAME.FIELD=VALUE`.

    The first line of a method's docstring describes it in reports.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ClassVar[str]
    """Its name on the command line."""
    title: ClassVar[str]
    """Its name in reports, as in the paper."""
    differs: ClassVar[str] = ""
    """The differences from the published method, in sentences, for reports."""
    needs_model: ClassVar[bool] = False
    """Whether it needs a language model; the built-in extractive model is refused."""
    abilities: ClassVar[str | None] = None
    """Which of `ABILITIES` it has, separated by spaces; None if nobody has said."""
    autonomous: ClassVar[bool | None] = False
    """Whether the model decides what comes next (paper, Table 4); None for "in part"."""
    iterative: ClassVar[bool | None] = False
    """Whether there may be several rounds (Table 4)."""
    interleaved: ClassVar[bool | None] = False
    """Whether tools and reasoning take turns (Table 4)."""

    def prepare(self, session: Session) -> Any:
        """Do the work before the first question; its calls are kept with the index, for all runs.

        Returns:
            An object that `answer` gets with every question. Several threads use it, so `answer` must not change it.
        """

    def answer(self, question: str, session: Session, prepared: Any) -> Answer | str:
        """Answer a question; several are answered at a time. `prepared` comes from `prepare`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `cited` are the ids of the chunks that support it, if the text does not name them itself."""

    text: str
    cited: Sequence[str] = ()
    stop_reason: StopReason = "answered"


class Note(TypedDict):
    """Something that a method found or decided on its way to an answer, for the question's page."""

    title: str
    lines: list[str]


@dataclass
class Session:
    """Asks the model, searches, and records both, for one question or for the work before the first one.

    Attributes:
        context: Everything that it shares with the other sessions.
        model: The model, if it is not the context's.
        calls: The model calls, in order.
        trace: The retrievals, in order.
        notes: Findings and decisions, in order.
        messages: The conversation, if there is one to show.
        unusable: How many replies did not fit the form that was asked for.
    """

    context: RunContext
    model: BaseChatModel | None = field(default=None, repr=False)
    calls: list[ModelCall] = field(default_factory=list)
    trace: list[ToolRecord] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    messages: list[AnyMessage] = field(default_factory=list)
    unusable: int = 0

    def call(self, messages: Sequence[AnyMessage], **options: Any) -> AIMessage:
        """Call the model once, and return its whole reply; `ask` is simpler."""
        model = self.model or self.context.model
        reply = without_thinking(self.with_retries(lambda: model.invoke(list(messages), **options)))
        self.calls.append(model_call(reply, step=len(self.calls) + 1))
        return reply

    def with_retries(self, work: Callable[[], Result]) -> Result:
        """Do work that calls the model; while its server is busy, do it again after pauses.

        Args:
            work: The work. On another try, it gets the replies to its finished calls from the cache.

        Returns:
            The result of the work.
        """
        tries = 0
        waited = 0.0
        while True:
            try:
                return work()
            except Exception as error:
                pause = find_pause(error, tries)
                if pause is None or waited + pause > MAX_WAIT_SECONDS:
                    raise
                reason = without_credentials(f"{type(error).__name__}: {error}")
            if pause >= _LONG_PAUSE_SECONDS:
                self.context.announce(f"The model is asked again in {pause:.0f} s: {reason}")
            self.context.stopped.wait(pause)
            tries += 1
            waited += pause

    @overload
    def ask(self, system: str, user: Turns, form: None = None, **options: Any) -> str: ...
    @overload
    def ask(self, system: str, user: Turns, form: type[Form], **options: Any) -> Form | None: ...
    def ask(self, system: str, user: Turns, form: type[Form] | None = None, **options: Any) -> str | Form | None:
        """Ask the model, up to three times if its reply is empty or does not fit the form.

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
                complaint = HumanMessage(_describe_fault(error))
                messages = [*messages, AIMessage(text), complaint]
        return None if form else ""

    def ask_all(
        self,
        system: str,
        users: Iterable[Turns],
        form: type[Form] | None = None,
        title: str = "",
        **options: Any,
    ) -> list[Any]:
        """Ask about several things as `ask` does, several at a time. Equal ones are asked about once.

        Args:
            system: The task.
            users: The question and the data of each, or a conversation.
            form: The form of the replies; None for texts.
            title: A name for the work, to show its progress: "Triples". The work is then announced with its size.
            options: For the model's calls.

        Returns:
            The replies, in the order of `users`.
        """
        keys = []
        different: dict[Any, Turns] = {}
        for user in users:
            key = user if isinstance(user, str) else tuple((message.type, message.text) for message in user)
            keys.append(key)
            different[key] = user
        if title and different:
            tokens = sum(count_batch([f"{system}\n{key}" for key in different]))
            self.context.announce(f"{title}: {len(different):,} model calls, {tokens:,} input tokens")

        def ask(session: Session, user: Turns) -> Any:
            return session.ask(system, user, form, **options)

        replies = self.map_parallel(ask, list(different.values()), title)
        reply_to = dict(zip(different, replies, strict=True))
        return [reply_to[key] for key in keys]

    def map_parallel(
        self, work: Callable[[Session, Item], Result], items: Sequence[Item], title: str = ""
    ) -> list[Result]:
        """Do something with several items, several at a time.

        Args:
            work: Gets a session of its own, and an item. It does not use `map_parallel` itself.
            items: The items.
            title: A name for the work, to show its progress.

        Returns:
            The results, in the order of the items.
        """
        done = count(1)

        def work_on(item: Item) -> tuple[Session, Result]:
            session = Session(self.context, self.model)
            result = work(session, item)
            if title:
                self.context.progress(title, next(done), len(items))
            return session, result

        with threads(self.context.concurrency) as pool:
            finished = list(pool.map(work_on, items))
        for session, _ in finished:
            self._take_over_calls(session)
        return [result for _, result in finished]

    def _take_over_calls(self, other: Session) -> None:
        """Add the calls of another session to this one's, with numbers that continue this one's."""
        for call in other.calls:
            self.calls.append({**call, "step": len(self.calls) + 1})
        self.unusable += other.unusable

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
            query: The query.
            tool: The retrieval's name.
            tokens: The retrieved tokens, if they are not those of the chunks.
            figures: Anything else to know about the retrieval.
        """
        known = set[str]()
        for record in self.trace:
            known.update(record["chunk_ids"])
        ids = [chunk.id for chunk in chunks]
        if tokens is None:
            tokens = sum(chunk.tokens for chunk in chunks)
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
                repaired=[],
            )
        )

    def search(self, question: str) -> list[Chunk]:
        """Return the whole chunks that `semantic_search` finds; they count as retrieved."""
        results = self.context.index.semantic_search(question, self.context.top_k)
        return self._read_hits(results.hits, question)

    def search_keywords(self, keywords: Sequence[str]) -> list[Chunk]:
        """Return the whole chunks that `keyword_search` finds; they count as retrieved."""
        if not keywords:
            return self._read_hits([], "")
        results = self.context.index.keyword_search(keywords, self.context.top_k)
        return self._read_hits(results.hits, ", ".join(keywords))

    def _read_hits(self, hits: Iterable[Hit], query: str) -> list[Chunk]:
        chunks = find_chunks(self.context.index, [hit.chunk_id for hit in hits])
        self.retrieved(chunks, query, top_k=self.context.top_k)
        return chunks

    def note(self, title: str, lines: Iterable[str]) -> None:
        """Note a finding or a decision, for the question's page."""
        self.notes.append(Note(title=title, lines=list(lines)))

    def read(self, question: str, chunks: Sequence[Chunk], example: str = "") -> Answer:
        """Ask for a short answer from passages, which comes after some reasoning.

        Args:
            question: The question.
            chunks: The passages, best first. A chunk that is there twice is shown once.
            example: An example of the reasoning and the answer.

        Returns:
            The answer, with the chunks that the reply names.
        """
        texts = {chunk.id: chunk.text for chunk in chunks}
        passages = "\n\n".join(starmap(with_mark, texts.items()))
        task = f"{READER}\n\n{example}".strip()
        reply = self.ask(task, forced_question(question, passages))
        cited = [chunk_id for chunk_id in texts if mark(chunk_id) in reply]
        return Answer(read_answer(reply), cited)


def _describe_fault(error: ValidationError) -> str:
    """Tell the model why its reply does not fit the form."""
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    wrong = f"{place} {fault['msg']}".strip()
    return f"This is not the JSON object that was asked for: {wrong}. Reply with that object alone."


@contextmanager
def threads(concurrency: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that begin no more work after an error; Ctrl-C does not wait for the work under way."""
    pool = ThreadPoolExecutor(concurrency)
    try:
        yield pool
    finally:
        pool.shutdown(wait=not isinstance(sys.exc_info()[1], KeyboardInterrupt), cancel_futures=True)
