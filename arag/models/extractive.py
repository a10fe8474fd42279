"""The built-in model: a fixed policy that searches, reads and quotes. It is not a language model.

It runs everything end to end without a key or a network, and is the baseline that a language model must beat.

The policy: search for the question by its meaning, then for its names. Then, hop by hop, take the sentences that cover
most of its words and are nearest to it, and look up a new name of theirs with the words that are left open. When
nothing is left to look up, read the chunks of these sentences, and quote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag.text.marks import mark, read_results, without_marks
from arag.text.words import content_words, find_names, list_words, stem

_MAX_SEARCHES = 5
_MAX_QUOTES = 3
_MAX_KEYWORDS = 8
_LINK_BONUS = 1.2  # words that a name counts for that an earlier quote has brought up

_NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"

# What `arag.graph.prompts` writes, and what stands behind the mark of a chunk.
_FORCED = re.compile(r"(.*?)\n\nWhat was found:\n\n<(passages-\d+)>\n(.*)\n</\2>", re.DOTALL)
_SIMILARITY = re.compile(r"^ \(-?\d\.\d\d\)")
_PLACE = re.compile(r"(?:^|, )(?:part \d+ of \d+|pages? \d+).*$")
_LINE = re.compile(r"^\s*(?:[#|]|```|[-*+•] |\d{1,3}[.)] ).*$", re.MULTILINE)  # a heading, row, fence or item
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"”’)])\s+|(?<=[。！？])(?![”’」』）])|\n\s*\n|…")


class ExtractiveModel(BaseChatModel):
    """A chat model that searches and quotes by fixed rules: deterministic, offline, and not a language model."""

    @property
    def _llm_type(self) -> str:
        return "arag-extractive"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind any of the three retrieval tools; others are ignored."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_reply(messages, options.get("tools", ())))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        reply = _reply(messages, options.get("tools", ()))
        for word in re.findall(r"\s*\S+", reply.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        last = AIMessageChunk(content="", tool_calls=reply.tool_calls, response_metadata=reply.response_metadata)
        yield ChatGenerationChunk(message=last)


def _reply(messages: Sequence[BaseMessage], tools: Sequence[Any]) -> AIMessage:
    notes = _read_conversation(messages)
    quotes = _choose_sentences(notes)
    tool_names = {tool["function"]["name"] for tool in tools}
    reply = _choose_call(notes, quotes, tool_names) or AIMessage(_answer(notes, quotes))
    return reply.model_copy(update={"response_metadata": {"model_name": "extractive"}})


@dataclass(frozen=True)
class _Sentence:
    """A sentence that a tool has shown."""

    chunk_id: str
    title: str
    text: str
    similarity: float = 0.0  # to a query, if it was found by its meaning

    @cached_property
    def words(self) -> set[str]:
        return content_words(f"{self.title} {self.text}")

    def new_names(self, question: str) -> list[str]:
        """Return the names in it, and its title, that a question does not have."""
        names = [name for name in find_names(self.text) if name[0].isalpha() and not name[-1].isdigit()]
        return [name for name in dict.fromkeys([*names, self.title]) if name and name.lower() not in question.lower()]


@dataclass
class _Notes:
    """What a conversation holds, and what was looked for since its last question."""

    question: str
    sentences: dict[tuple[str, str], _Sentence] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # queries, joined keywords and ids, in lower case

    def add(self, chunk_id: str, title: str, text: str, similarity: float = 0.0) -> None:
        text = without_marks(" ".join(text.split()))
        title = without_marks(title)
        if text and not text.startswith("#") and text != title:
            known = self.sentences.get((chunk_id, text))
            if known is None or known.similarity < similarity:
                self.sentences[chunk_id, text] = _Sentence(chunk_id, title, text, similarity)

    def add_text(self, text: str) -> None:
        """Add the sentences of chunks and excerpts as the tools write them."""
        for chunk_id, shown in read_results(text):
            head, _, body = _SIMILARITY.sub("", shown).partition("\n")
            title, _, excerpt = head.strip().partition(": ")
            for sentence in _SENTENCE_END.split(_LINE.sub(r"\n\n\g<0>\n\n", f"{excerpt}\n{body}")):
                self.add(chunk_id, _PLACE.sub("", title), sentence)


def _read_conversation(messages: Sequence[BaseMessage]) -> _Notes:
    place = max((place for place, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    question, evidence = read_forced_question(messages[place].text) if messages else ("", "")
    notes = _Notes(question.strip())
    notes.add_text(evidence)
    calls = {c["id"]: c for m in messages[place:] if isinstance(m, AIMessage) for c in m.tool_calls}
    for message in messages:
        if not isinstance(message, ToolMessage):
            continue
        results = message.artifact.get("results", {}) if isinstance(message.artifact, dict) else {}
        for hit in results.get("hits", ()):
            for sentence in hit["sentences"]:
                if not sentence.get("cut"):
                    similarity = max(0.0, hit["score"]) if "query" in results else 0.0
                    notes.add(hit["chunk_id"], hit["title"], sentence["text"], similarity)
        if "hits" not in results:  # the texts of chunks that were read are not in the artifact
            notes.add_text(message.text)
        if call := calls.get(message.tool_call_id):
            arguments = call["args"].values()  # another model may have sent a single item for a list
            texts = [str(text) for value in arguments for text in (value if isinstance(value, list) else [value])]
            notes.calls.append(" ".join(texts).lower())
    return notes


def read_forced_question(message: str) -> tuple[str, str]:
    """Return the question and the evidence in a request for a forced answer; of other messages the text and ""."""
    forced = _FORCED.fullmatch(message)
    return (forced[1], forced[3]) if forced else (message, "")


def _choose_call(notes: _Notes, quotes: Sequence[_Sentence], tools: set[str]) -> AIMessage | None:
    """Return the next tool call, or None when it is time to answer."""
    question = notes.question
    # First by meaning: a search shows only what the conversation does not hold yet, and here with its similarity.
    if "semantic_search" in tools and question.lower() not in notes.calls:
        return _call("semantic_search", query=question)
    keywords = question_keywords(question)
    if "keyword_search" in tools and keywords and " ".join(keywords).lower() not in notes.calls:
        return _call("keyword_search", keywords=keywords)
    # Then a new name of the first sentences, together with the words that they leave open.
    covered: set[str] = set()
    earlier = " / ".join(notes.calls)
    for quote in quotes if len(notes.calls) < _MAX_SEARCHES else ():
        covered |= content_words(quote.text)
        open_words = [word for word in list_words(question) if stem(word) not in covered]
        names = [name for name in quote.new_names(question) if name.lower() not in earlier]
        if names and open_words and "semantic_search" in tools:
            return _call("semantic_search", query=" ".join([names[0], *open_words]))
        if names and open_words and "keyword_search" in tools:
            return _call("keyword_search", keywords=[*names[:3], *open_words[:3]])
    unread = list(dict.fromkeys(quote.chunk_id for quote in quotes if quote.chunk_id.lower() not in earlier))
    if "chunk_read" in tools and unread:
        return _call("chunk_read", chunk_ids=unread)
    return None


def _call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(uuid4()), "type": "tool_call"}])


def question_keywords(question: str) -> list[str]:
    """Return what to look up for a question: its names and quotations, or else its words; at most eight."""
    return (find_names(question) or list_words(question))[:_MAX_KEYWORDS]


def _choose_sentences(notes: _Notes) -> list[_Sentence]:
    """Choose sentences one by one: each covers the most open words, and preferably names from the ones before."""
    open_words = content_words(notes.question)
    quotes: list[_Sentence] = []
    links: set[str] = set()  # new names

    def gain(s: _Sentence) -> float:
        is_linked = any(name in s.text.lower() for name in links)
        return (len(open_words & s.words) + _LINK_BONUS * is_linked) * (1 + s.similarity)

    pool = list(notes.sentences.values())
    while pool and len(quotes) < _MAX_QUOTES and gain(best := max(pool, key=gain)) > 0:
        quotes.append(best)
        pool.remove(best)
        open_words -= best.words
        links |= {name.lower() for name in best.new_names(notes.question)}
    return quotes


def _answer(notes: _Notes, quotes: Sequence[_Sentence]) -> str:
    """Quote the sentences, starting with the one that best covers the question's first words."""
    if not quotes:
        return f"Nothing was found in the corpus. {_NOTICE}"
    stems = [stem(word) for word in list_words(notes.question)]

    def aim(quote: _Sentence) -> float:
        return sum(1 / place for place, word in enumerate(stems, 1) if word in quote.words)

    first = max(quotes, key=aim)
    lines = [
        f"{'' if quote.title in quote.text else f'{quote.title}: '}{quote.text} {mark(quote.chunk_id)}"
        for quote in [first, *(quote for quote in quotes if quote is not first)]
    ]
    return "\n".join([*lines, _NOTICE])
