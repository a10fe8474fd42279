"""Where a method does its index-time work: many model calls at once, each paid for once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ValidationError

from arag.errors import InputError, ModelError, without_credentials
from arag.evaluation.budget import Budget
from arag.evaluation.event_loop import work_through
from arag.evaluation.methods.interface import Options
from arag.evaluation.patience import Patience
from arag.evaluation.store import Result, Store, make_key
from arag.evaluation.structured import Asked, StructuredModel, ask_text, is_failed_call
from arag.graph.nodes import arun_body
from arag.models.asking import aask
from arag.models.prices import cost, format_dollars
from arag.models.usage import ModelCall, model_call
from arag.retrieval.index import Index
from arag.retrieval.tokens import load_token_counter

_NAMELESS = "a model without a name"


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is sent.

    Attributes:
        messages: The messages.
        form: The schema of the reply; None for a text.
    """

    messages: Sequence[BaseMessage]
    form: type[BaseModel] | None = None


class Replies:
    """A model's replies, as far as a store keeps them.

    Args:
        store: The store.
        model: The model; replies of another one are not used.

    Attributes:
        provider: The model's provider in LangChain.
        model_name: The model's name in LangChain; empty if its class has none.
    """

    def __init__(self, store: Store, model: BaseChatModel) -> None:
        self.store = store
        self.model = model
        named = model._get_ls_params()  # noqa: SLF001 - what LangChain's own tracers call a model
        self.provider: str = named.get("ls_provider") or type(model).__name__
        self.model_name: str = named.get("ls_model_name") or ""

    def find(self, requests: Sequence[Request]) -> list[Asked[Any] | None]:
        """Return the kept replies to requests, or None where there is none.

        Raises:
            StorageError: The store is damaged or cannot be read.
        """
        results = self.store.find([self.key(request) for request in requests])
        return [
            None if result is None else _read(request, result)
            for request, result in zip(requests, results, strict=True)
        ]

    def require(self, requests: Sequence[Request], method: str) -> list[Asked[Any]]:
        """Return the kept replies to requests.

        Args:
            requests: The requests.
            method: The method's name, for the message.

        Raises:
            InputError: Some are missing.
            StorageError: The store is damaged or cannot be read.
        """
        found = self.find(requests)
        present = [asked for asked in found if asked is not None]
        if len(present) < len(found):
            raise InputError(
                f"{method} has not read the whole index yet ({len(present):,} of {len(found):,} model calls are done): "
                "do its index-time work first, with arag.evaluation.preparation.prepare"
            )
        return present

    def key(self, request: Request) -> bytes:
        """Return the key of the reply to a request."""
        schema = None if request.form is None else _schema(request.form)
        return make_key(
            "reply", self.provider, self.model_name, schema, [[m.type, m.content] for m in request.messages]
        )


@dataclass
class Workplace:
    """What a method's index-time work is given.

    Attributes:
        index: The index.
        model: The model.
        options: Settings of the experiment.
        store: Keeps every result.
        concurrency: How many model calls are made at once.
        patience: Waits at rate limits.
        budget: What may be spent.
        run: Names the run and the method that pay.
        on_announced: Called with a sentence about what is to be done.
        on_progress: Called with what is being done, how many of its items are done, and how many there are.
        paid: The model calls that this method of the run has paid for, including those before it was killed.
        made: Those of them that were made here: they are paid for out of the budget.
        reused: The model calls that others have paid for.
    """

    index: Index
    model: BaseChatModel
    options: Options
    store: Store
    concurrency: int = 8
    patience: Patience = field(default_factory=Patience)
    budget: Budget = field(default_factory=Budget)
    run: str = field(default_factory=lambda: uuid4().hex)
    on_announced: Callable[[str], None] = lambda _: None
    on_progress: Callable[[str, int, int], None] = lambda *_: None
    paid: list[ModelCall] = field(default_factory=list)
    made: list[ModelCall] = field(default_factory=list)
    reused: list[ModelCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Name the model."""
        self.replies = Replies(self.store, self.model)
        self._counted: set[bytes] = set()
        self._structured: dict[type[BaseModel], StructuredModel[Any]] = {}

    def missing(self, requests: Sequence[Request]) -> list[Request]:
        """Return the requests whose replies are not kept yet, each once."""
        different = {self.replies.key(request): request for request in requests}
        kept = self.replies.find(list(different.values()))
        return [request for request, asked in zip(different.values(), kept, strict=True) if asked is None]

    def count_tokens(self, requests: Sequence[Request]) -> int:
        """Count, or estimate, the input tokens of requests, without their schemas."""
        texts = [str(message.content) for request in requests for message in request.messages]
        return sum(load_token_counter().count_batch(texts))

    def announce(self, calls: int, input_tokens: int) -> None:
        """Tell what is to be done before the first call is made.

        Args:
            calls: Model calls that are still to be made, estimated where they depend on replies.
            input_tokens: Their input tokens.

        Raises:
            InputError: The budget is too small for their input alone, or the model's price is unknown.
        """
        if not calls:
            return
        model = {"model": self.replies.model_name, "provider": self.replies.provider}
        least = cost([{**model, "input_tokens": input_tokens}])
        price = "" if least is None else f", {format_dollars(least)} and the price of the replies"
        estimate = f"about {calls:,} model calls with {input_tokens:,} input tokens{price}"
        self.on_announced(f"Index-time work: {estimate}")
        limit, spent = self.budget.limit, self.budget.spent
        if limit is None:
            return
        if least is None:
            self.budget.pay(None, self.replies.model_name or _NAMELESS)
            self.budget.check()
        elif spent + least > limit:
            raise InputError(
                f"the index-time work takes {estimate}: more than what is left of --max-cost, "
                f"{format_dollars(max(limit - spent, 0))}"
            )

    async def ask(self, requests: Sequence[Request], title: str = "Model calls") -> list[Asked[Any]]:
        """Return the replies to requests, in their order; those that are kept are not asked for again.

        Args:
            requests: The requests.
            title: What is asked for, for the progress.

        Returns:
            For each request its reply; its value is None if three attempts gave no usable one.

        Raises:
            InputError: The budget is used up.
            ModelError: A call failed. What was finished is kept.
        """
        keys = [self.replies.key(request) for request in requests]
        different = dict(zip(keys, requests, strict=True))
        found = {key: result for key, result in zip(different, self.store.find(list(different)), strict=True) if result}
        for key, result in found.items():
            self._count(key, result)
        failures = [self._failure_key(key) for key in different]
        for failure, unusable in zip(failures, self.store.find(failures), strict=True):
            if unusable is not None:
                self._count(failure, unusable)
        total, done = len(different), len(found)
        self.on_progress(title, done, total)

        async def work(key: bytes) -> None:
            nonlocal done
            if self.budget.is_used_up():
                self.budget.check()
                raise InputError(
                    f"--max-cost is used up after {done:,} of {total:,} model calls. They are kept: run it again with "
                    "a larger one"
                )
            asked = await self._ask(key, different[key])
            value = asked.value.model_dump(mode="json") if isinstance(asked.value, BaseModel) else asked.value
            found[key] = Result(value, asked.calls, self.run)
            self.store.keep({key: found[key]})
            self._count(key, found[key])
            self._pay(asked.calls)
            done += 1
            self.on_progress(title, done, total)

        try:
            await work_through([key for key in different if key not in found], work, self.concurrency)
        except Exception as error:
            if not is_failed_call(error):
                raise
            raise ModelError(
                f"{without_credentials(str(error))}; {done:,} of {total:,} model calls are kept: run it again to go on"
            ) from error
        return [_read(request, found[key]) for key, request in zip(keys, requests, strict=True)]

    async def _ask(self, key: bytes, request: Request) -> Asked[Any]:
        made: list[ModelCall] = []

        async def call(model: Runnable[Any, Any], prompt: Any, config: RunnableConfig) -> Any:
            began = time.perf_counter()
            reply = await self.patience.ask(partial(aask, model, prompt, config))
            raw = reply["raw"] if isinstance(reply, dict) else reply
            made.append(model_call(raw, time.perf_counter() - began, step=len(made) + 1))
            return reply

        if request.form is None:
            body = ask_text(self.model, request.messages)
        else:
            form = self._structured.get(request.form)
            if form is None:
                form = self._structured[request.form] = StructuredModel(self.model, request.form, "model")
            body = form.ask(request.messages)
        try:
            asked: Asked[Any] = await arun_body(body, call, RunnableConfig())
        except Exception:
            if made:  # its unusable replies are paid for, too
                self._keep_failure(key, made)
            raise
        return asked

    def _failure_key(self, key: bytes) -> bytes:
        return make_key("failed", self.run, key.hex())

    def _keep_failure(self, key: bytes, made: list[ModelCall]) -> None:
        failure = self._failure_key(key)
        (known,) = self.store.find([failure])
        self.store.keep({failure: Result(None, [*(known.calls if known else []), *made], self.run)})
        self.paid += made
        self._pay(made)

    def _count(self, key: bytes, result: Result) -> None:
        """Count the calls of a result, once. What was paid before the run was killed counts as paid, too."""
        if key in self._counted:
            return
        self._counted.add(key)
        if result.run == self.run:
            self.paid += result.calls
        else:
            self.reused += result.calls

    def _pay(self, calls: list[ModelCall]) -> None:
        self.made += calls
        self.budget.pay(cost(calls), *(call["model"] or _NAMELESS for call in calls))


@cache
def _schema(form: type[BaseModel]) -> dict[str, Any]:
    return form.model_json_schema()


def _read(request: Request, result: Result) -> Asked[Any]:
    """Return a kept reply; one that does not match the schema counts as unusable."""
    if result.value is None:
        return Asked(None, result.calls, "three attempts gave no usable reply")
    if request.form is None:
        return Asked(str(result.value), result.calls)
    try:
        return Asked(request.form.model_validate(result.value), result.calls)
    except ValidationError as error:
        return Asked(None, result.calls, f"the kept reply is damaged: {error}")
