"""What a model was shown of the documents' sentences: other middleware may take words out of a tool's result."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from functools import cached_property
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from arag.graph.cited import Citation
from arag.graph.records import find_shown_chunks, has_other_answer, read_citations
from arag.retrieval.tools.seen import find_artifacts, is_as_given
from arag.retrieval.types import Chunk
from arag.text.normalise import CUT, collapse_whitespace

# Words, the characters of scripts without spaces, and other characters, each with the space behind it.
_TOKEN = re.compile(r"(?:[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s])\s*")
_WORD = re.compile(r"\w")
_LEAST_SHARE = 0.5  # of a sentence's words, in a text that was changed
_LEAST_RUN = 8  # words in a row that are from a sentence
_MOST_ADDED = 8  # tokens that may stand for a part that was taken out, beyond as many as the part had


@dataclass(frozen=True)
class ShownResult:
    """A tool's result as the model was sent it."""

    text: str
    chunk_ids: Collection[str] = ()
    """The ids of the chunks that the tool says it shows."""
    artifact: Mapping[str, Any] | None = None
    """That of a retrieval tool."""

    @cached_property
    def collapsed(self) -> str:
        """The text with one space for each white space."""
        return collapse_whitespace(self.text)

    @cached_property
    def tokens(self) -> list[str]:
        """The parts of that text."""
        return _split(self.collapsed)

    @cached_property
    def matcher(self) -> SequenceMatcher[str]:
        """What compares sentences with that text."""
        matcher: SequenceMatcher[str] = SequenceMatcher(autojunk=False)
        matcher.set_seq2(_strip(self.tokens))
        return matcher

    @cached_property
    def _runs(self) -> set[tuple[str, ...]]:
        return set(_list_runs(self.collapsed))

    def has_run(self, sentence: str) -> bool:
        """Return whether the text has many words of a sentence in a row."""
        return not self._runs.isdisjoint(_list_runs(sentence))

    @cached_property
    def is_as_given(self) -> bool:
        """Whether the text is what a retrieval tool gave."""
        return self.artifact is not None and is_as_given(self.text, self.artifact)

    def list_whole(self, chunk: Chunk) -> Collection[int]:
        """Return the positions of the sentences of a chunk that are in the text as the tool gave it."""
        if self.artifact is None or not self.is_as_given:
            return ()
        if chunk.id in self.artifact["new_chunks"]:
            return range(len(chunk.sentences))
        positions: Collection[int] = self.artifact.get("sentences", {}).get(chunk.id, ())
        return positions

    def only_names(self, chunk: Chunk) -> bool:
        """Return whether the text as the tool gave it shows sentences, but none of a chunk: it was shown before."""
        if self.artifact is None or not self.is_as_given:
            return False
        shown = {*self.artifact["new_chunks"]}
        shown.update(self.artifact.get("sentences", {}), self.artifact.get("cut", {}))
        return bool(shown) and chunk.id not in shown


def correct_artifacts(messages: Iterable[AnyMessage]) -> list[ToolMessage]:
    """Return the results whose texts other middleware has changed, without other texts in their artifacts."""
    corrected: list[ToolMessage] = []
    for message in messages:
        if not isinstance(message, ToolMessage) or not isinstance(message.artifact, dict):
            continue
        artifact = message.artifact
        given = next(find_artifacts([message]), None)
        changes: dict[str, Any] = {}
        if given is not None and not is_as_given(message.text, given):
            changes = {"results": {}, "documents": _list_shown(given.get("documents", []), message.text)}
        elif read_citations(message) and has_other_answer(message):
            changes = {"answer": message.text, "citations": read_citations(message)}
            artifact = {key: value for key, value in artifact.items() if key != "structured_response"}
        if changes:
            corrected.append(message.model_copy(update={"artifact": artifact | changes}))
    return corrected


def find_removed(written: str, kept: str) -> list[str]:
    """Return the parts of an answer that other middleware has taken out of it, without the punctuation around them."""
    before = written.split()
    matcher = SequenceMatcher(None, before, kept.split(), autojunk=False)
    removed: list[str] = []
    for tag, start, end, *_ in matcher.get_opcodes():
        if tag in {"replace", "delete"}:
            removed.append(" ".join(before[start:end]).strip(string.punctuation))
    return [part for part in removed if part]


def hide_parts(citations: Iterable[Citation], parts: Collection[str]) -> None:
    """Put an ellipsis in place of parts of quotes that other middleware has taken out of the answer."""
    for citation in citations:
        quotes = [quote.copy() for quote in citation["quotes"]]
        for quote in quotes:
            for part in parts:
                quote["text"] = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", CUT, quote["text"])
        citation["quotes"] = quotes


def _list_shown(documents: Iterable[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """Return the documents of which a text has all parts."""
    shown: list[Mapping[str, Any]] = []
    text = collapse_whitespace(text)
    for document in documents:
        parts = collapse_whitespace(document["page_content"]).split(CUT)
        if all(part.strip() in text for part in parts):
            shown.append(document)
    return shown


@dataclass(frozen=True)
class ShownTexts:
    """The sentences of documents as a model was shown them.

    Attributes:
        results: The results in the conversation.
        was_changed: Whether other middleware has changed one, which may no longer be there.
    """

    results: Sequence[ShownResult]
    was_changed: bool

    def find_sentences(self, chunk: Chunk) -> dict[int, str]:
        """Return the sentences of a chunk as the model was shown them, by position.

        Where a part of a sentence was replaced, the text that was shown is returned, and where a part was not shown, an
        ellipsis.
        """
        results = [result for result in self.results if chunk.id in result.chunk_ids]
        positions = range(len(chunk.sentences))
        if not results:  # they were removed from the conversation
            return {} if self.was_changed else {position: chunk.sentence_text(position) for position in positions}
        whole: set[int] = set()
        for result in results:
            whole.update(result.list_whole(chunk))
        others = [result for result in self.results if not result.chunk_ids]  # such as a file with a result in it
        sentences: dict[int, str] = {}
        for position in positions:
            sentence = chunk.sentence_text(position)
            collapsed = collapse_whitespace(sentence)
            is_whole = position in whole or any(collapsed in result.collapsed for result in [*results, *others])
            shown = sentence if is_whole else _find_parts(collapsed, chunk, results)
            if shown:
                sentences[position] = shown
        return sentences


def list_shown(
    messages: Iterable[AnyMessage],
    given: Collection[str],
    rewritten: Mapping[str, str],
) -> ShownTexts:
    """Return what a conversation shows of documents.

    Args:
        messages: The conversation.
        given: Ids of the calls whose results the model was sent as the tools gave them.
        rewritten: By the ids of other calls, what the model was sent as their results.
    """
    results: list[ShownResult] = []
    was_changed = bool(rewritten)
    for message in messages:
        if not isinstance(message, ToolMessage) or read_citations(message):
            continue
        result = ShownResult(
            text=message.text if message.tool_call_id in given else rewritten.get(message.tool_call_id, ""),
            chunk_ids=find_shown_chunks([message]),
            artifact=next(find_artifacts([message]), None),
        )
        was_changed = was_changed or (result.artifact is not None and not result.is_as_given)
        results.append(result)
    return ShownTexts(results, was_changed)


def _find_parts(sentence: str, chunk: Chunk, results: Iterable[ShownResult]) -> str:
    """Return the parts of a sentence that one of the results shows; empty if they are too few to be from it."""
    best = _Parts()
    for result in results:
        has_whole = bool(result.list_whole(chunk))
        if result.only_names(chunk) or (has_whole and not result.has_run(sentence)):
            continue
        parts = _compare(sentence, result)
        is_enough = parts.share >= _LEAST_SHARE
        if result.is_as_given:  # such as some cells of a table's row, or a long sentence around what was searched for
            is_enough = is_enough or not has_whole or parts.words >= _LEAST_RUN
        if is_enough and parts.share > best.share:
            best = parts
    return best.text


@dataclass(frozen=True)
class _Parts:
    """The parts of a sentence that a result shows, the number of their words, and their share of the sentence's."""

    text: str = ""
    words: int = 0
    share: float = 0.0


def _compare(sentence: str, result: ShownResult) -> _Parts:
    """Compare a sentence with the place of a result that has the longest part of it."""
    tokens = _strip(_split(sentence))
    matcher = result.matcher
    matcher.set_seq1(tokens)
    longest = matcher.find_longest_match()
    first = max(0, longest.b - longest.a - len(tokens))
    place = result.tokens[first : longest.b - longest.a + 2 * len(tokens)]
    matcher = SequenceMatcher(None, tokens, _strip(place), autojunk=False)
    blocks = []
    words = 0
    for block in matcher.get_matching_blocks():
        found = _count_words(tokens[block.a : block.a + block.size])
        if found:
            blocks.append(block)
            words += found
    if not blocks:
        return _Parts()
    return _Parts(_join(blocks, place, len(tokens)), words, words / _count_words(tokens))


def _join(blocks: Sequence[Match], place: Sequence[str], length: int) -> str:
    """Return the text of the matching blocks, with what stands between them in place of the sentence's own words."""
    parts = [] if blocks[0].a == 0 else [f"{CUT} "]
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        end = block.b + block.size
        parts += place[block.b : end]
        if following is None:
            break
        between = place[end : following.b]
        left_out = following.a - block.a - block.size
        is_short = 0 < len(between) <= left_out + _MOST_ADDED
        parts += between if is_short else [f"{CUT} "]
    text = "".join(parts).rstrip()
    last = blocks[-1]
    return text if last.a + last.size == length else f"{text} {CUT}"


def _list_runs(text: str) -> Iterable[tuple[str, ...]]:
    """Return all words in a row of a text, with their punctuation."""
    words = text.split()
    return zip(*(words[start:] for start in range(_LEAST_RUN)), strict=False)


def _count_words(tokens: Iterable[str]) -> int:
    return sum(_WORD.match(token) is not None for token in tokens)


def _strip(tokens: Iterable[str]) -> list[str]:
    return [token.rstrip() for token in tokens]


def _split(text: str) -> list[str]:
    return _TOKEN.findall(text)
