"""A chat model whose replies are regular: any LangChain model, behind the border."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.callbacks import (
    AsyncCallbackHandler,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableLambda, RunnableWithFallbacks
from langchain_core.tools import BaseTool
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from arag.models.border import behind_border
from arag.models.chosen import ChosenModel
from arag.models.replies.arguments import KnownTool
from arag.models.replies.reading import read_reply
from arag.models.replies.streams import showable
from arag.models.replies.thinking import separate_thinking


def as_regular(model: Runnable[Any, AIMessage], tools: Sequence[BaseTool] = ()) -> Runnable[Any, AIMessage]:
    """Return a model whose replies are regular.

    Args:
        model: A chat model, one with tools bound, with fallbacks, or that a run chooses. What other runnables stream
            stays as it is; their whole replies are regular.
        tools: The tools that are bound to it.
    """
    if isinstance(model, RunnableWithFallbacks):
        fallbacks = [as_regular(fallback, tools) for fallback in model.fallbacks]
        return model.model_copy(update={"runnable": as_regular(model.runnable, tools), "fallbacks": fallbacks})
    if isinstance(model, ChosenModel):
        return model.then(partial(as_regular, tools=tools))
    if isinstance(model, RunnableBinding) and isinstance(model.bound, ChosenModel):
        return model.model_copy(update={"bound": as_regular(model.bound, tools)})
    options: dict[str, Any] = {}
    chat_model: Any = model
    if isinstance(model, RunnableBinding):
        chat_model = model.bound
        options = dict(model.kwargs)
    known_tools = describe_tools(tools)
    if not isinstance(chat_model, BaseChatModel):
        return model | RunnableLambda(partial(read_reply, tools=known_tools))
    regular = RegularModel(
        model=behind_border(chat_model),
        options=options,
        known_tools=known_tools,
        name=chat_model.get_name(),
        cache=False,  # the model itself has one
        callbacks=chat_model.callbacks,
        tags=chat_model.tags,
        metadata=chat_model.metadata,
        profile=chat_model.profile,
    )
    if isinstance(model, RunnableBinding) and model.config:
        return regular.with_config(model.config)
    return regular


def describe_tools(tools: Iterable[BaseTool | dict[str, Any]]) -> dict[str, KnownTool]:
    """Return the tools by name; those that a provider runs itself are left out."""
    known = {}
    for tool in tools:
        function = convert_to_openai_tool(tool).get("function")
        if function is not None:
            described = KnownTool.from_schema(function)
            known[described.name] = described
    return known


class RegularModel(BaseChatModel):
    """Calls a model, and makes its replies regular, whether they are streamed or whole.

    Attributes:
        model: The model.
        options: What is bound to it.
        known_tools: The tools among that, by name.
    """

    model: BaseChatModel
    options: dict[str, Any] = Field(default_factory=dict)
    known_tools: dict[str, KnownTool] = Field(default_factory=dict)
    _begins_with_thinking: bool = PrivateAttr(default=False)  # that is only closed, as an earlier reply did

    @property
    def _llm_type(self) -> str:
        return self.model._llm_type  # noqa: SLF001

    @property
    def _identifying_params(self) -> Any:
        return self.model._identifying_params  # noqa: SLF001

    def _get_ls_params(self, stop: list[str] | None = None, **options: Any) -> Any:
        return self.model._get_ls_params(**self._join_options(stop, options))  # noqa: SLF001

    def _get_invocation_params(self, stop: list[str] | None = None, **options: Any) -> Any:
        # Traces and recordings show the tools.
        return self.model._get_invocation_params(**self._join_options(stop, options))  # noqa: SLF001

    def _join_options(self, stop: list[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a call: its own ones replace those that are bound."""
        joined = {**self.options, **options}
        if stop is not None:
            joined["stop"] = stop
        return joined

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        stream = _Stream(self)
        manager = run_manager
        if run_manager is not None:
            handler = _make_handler(run_manager, _Relay(stream, run_manager))
            manager = _child_manager(CallbackManagerForLLMRun, run_manager, handler)
        result = self.model._generate_with_cache(  # noqa: SLF001
            messages,
            run_manager=manager,
            **self._join_options(stop, options),
        )
        result = stream.finish(result)
        last = stream.take_rest(result)
        if last is not None and run_manager is not None:
            run_manager.on_llm_new_token(last.text, chunk=last)
        return result

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        stream = _Stream(self)
        manager = run_manager
        if run_manager is not None:
            handler = _make_handler(run_manager, _AsyncRelay(stream, run_manager))
            manager = _child_manager(AsyncCallbackManagerForLLMRun, run_manager, handler)
        result = await self.model._agenerate_with_cache(  # noqa: SLF001
            messages,
            run_manager=manager,
            **self._join_options(stop, options),
        )
        result = stream.finish(result)
        last = stream.take_rest(result)
        if last is not None and run_manager is not None:
            await run_manager.on_llm_new_token(last.text, chunk=last)
        return result


class _Stream:
    """A reply while it comes: its text, what of it was shown, and the usage that its chunks report."""

    def __init__(self, model: RegularModel) -> None:
        self._model = model
        self._tools = model.known_tools
        self._text = ""
        self._shown = ""
        self._usages: list[UsageMetadata] = []
        self._id: str | None = None
        self._is_streamed = False

    def take(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Take a chunk; return it with the text that may be shown now."""
        self._is_streamed = True
        message = cast("AIMessageChunk", chunk.message)
        self._id = message.id or self._id
        if message.usage_metadata:
            self._usages.append(message.usage_metadata)
        self._text += message.text
        showable_text = showable(
            self._text,
            self._tools,
            begins_with_thinking=self._model._begins_with_thinking,  # noqa: SLF001
        )
        piece = ""
        if showable_text.startswith(self._shown):
            piece = showable_text[len(self._shown) :]
            self._shown = showable_text
        if piece == message.text:
            return chunk
        if isinstance(message.content, str):
            return ChatGenerationChunk(message=message.model_copy(update={"content": piece}))
        others = [part for part in message.content if not isinstance(part, str) and part.get("type") != "text"]
        text_parts = [{**part, "text": ""} for part in message.content if isinstance(part, dict) and "text" in part]
        if text_parts:
            text_parts[0]["text"] = piece
        return ChatGenerationChunk(message=message.model_copy(update={"content": [*others, *text_parts]}))

    def finish(self, result: ChatResult) -> ChatResult:
        """Return the result with a regular message."""
        generations: list[ChatGeneration] = []
        for generation in result.generations:
            message = cast("AIMessage", generation.message)
            if separate_thinking(message.text).is_unopened:
                self._model._begins_with_thinking = True  # noqa: SLF001
            usage = self._find_last_total()
            if usage is not None:
                message = message.model_copy(update={"usage_metadata": usage})
            message = read_reply(message, self._tools, is_streamed=self._is_streamed)
            generations.append(ChatGeneration(message=message, generation_info=generation.generation_info))
        return result.model_copy(update={"generations": generations})

    def take_rest(self, result: ChatResult) -> ChatGenerationChunk | None:
        """Return the end of the text, which was held back; None if there is none."""
        message = result.generations[0].message
        text = message.text
        if not self._is_streamed:
            return None
        if not text.startswith(self._shown):  # it is shown as a message of its own
            message.id = None
            return None
        rest = text[len(self._shown) :]
        if not rest:
            return None
        return ChatGenerationChunk(message=AIMessageChunk(content=rest, id=self._id))

    def _find_last_total(self) -> UsageMetadata | None:
        """Return the last usage if each chunk reports that of the whole reply so far: LangChain adds them up."""
        prompts = [usage for usage in self._usages if usage["input_tokens"]]
        return prompts[-1] if len(prompts) > 1 else None


class _Streaming(_StreamingCallbackHandler[Any]):
    """Marks a handler for which LangChain streams."""

    run_inline = True

    def tap_output_iter(self, *run_and_output: Any) -> Any:
        """Change nothing."""
        return run_and_output[-1]

    def tap_output_aiter(self, *run_and_output: Any) -> Any:
        """Change nothing."""
        return run_and_output[-1]


class _Relay(BaseCallbackHandler, _Streaming):
    """Passes on what may be shown of a stream."""

    def __init__(self, stream: _Stream, manager: CallbackManagerForLLMRun) -> None:
        self._stream = stream
        self._manager = manager

    def on_llm_new_token(self, *_: Any, chunk: Any = None, **__: Any) -> None:
        """Pass a chunk on."""
        shown = self._stream.take(chunk)
        self._manager.on_llm_new_token(shown.text, chunk=shown)


class _AsyncRelay(AsyncCallbackHandler, _Streaming):
    """Passes on what may be shown of a stream."""

    def __init__(self, stream: _Stream, manager: AsyncCallbackManagerForLLMRun) -> None:
        self._stream = stream
        self._manager = manager

    async def on_llm_new_token(self, *_: Any, chunk: Any = None, **__: Any) -> None:
        """Pass a chunk on."""
        shown = self._stream.take(chunk)
        await self._manager.on_llm_new_token(shown.text, chunk=shown)


def _make_handler(manager: Any, relay: BaseCallbackHandler) -> list[BaseCallbackHandler]:
    """Return the handlers for the model's own run: the relay, if somebody wants a stream."""
    wants_stream = any(isinstance(handler, _StreamingCallbackHandler) for handler in manager.handlers)
    return [relay] if wants_stream else []


def _child_manager(kind: Any, manager: Any, handlers: list[BaseCallbackHandler]) -> Any:
    return kind(
        run_id=manager.run_id,
        handlers=handlers,
        inheritable_handlers=[],
        parent_run_id=manager.parent_run_id,
    )
