"""What the built-in model has found in a conversation: the sentences that tools have shown, and what was looked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arag.models.answering import Candidate, describe_count, leads_in, only_asks
from arag.text.contents import cut_out, find_lists
from arag.text.marks import read_results, without_marks
from arag.text.normalise import HEADING_BOUNDARY, without_division_signs
from arag.text.words import find_names

# The request for a forced answer, as `arag.graph.prompts` writes it.
_FORCED = re.compile(r"(.*?)\n\nWhat was found:\n\n<(passages-\d+)>\n(.*)\n</\2>", re.DOTALL)
# A similarity, and the passage's place in its document, may follow the mark of a chunk.
_NOTES = re.compile(r"^ \((?:-?\d\.\d\d|part \d|(?:page|slide|sheet)s? )[^)\n]*\)")
_PLACE = re.compile(r"(?:^|, )(?:part \d+ of \d+|(?:page|slide)s? \d+|sheets? ).*$")
# A heading, row, fence or item.
_LINE = re.compile(r"^(?:\s*(?:[#|]|```|[-*+•] |\d{1,3}[.)] ).*|[^\n|]+ \| .*)$", re.MULTILINE)
_HEADINGS = re.compile(r"^(?:[^\n|:]+ > )+[^\n|:]+:\s", re.MULTILINE)  # in front of an excerpt's sentences
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"”’)])\s+|(?<=[。！？])(?![”’」』）])|\n\s*\n|(?<!\S)…|(?<=…)\s+")
_ITEM_NUMBER = re.compile(r"\s*\d{1,3}[.)]\s*")


@dataclass(frozen=True)
class Sentence:
    """A sentence that a tool has shown."""

    chunk_id: str
    title: str
    text: str
    similarity: float = 0.0  # to a query, if it was found by its meaning
    headings: str = ""  # questions above it, which it may answer

    @cached_property
    def words(self) -> set[str]:
        """The content words of it, its title and the questions above it."""
        return Candidate(f"{self.title} {self.headings}", self.text).words

    def new_names(self, question: str) -> list[str]:
        """Return the names in it, and its title, that a question does not have."""
        names = [name for name in find_names(self.text) if _is_name(name)]
        names.append(self.title)
        lowered = question.lower()
        return [name for name in dict.fromkeys(names) if name and name.lower() not in lowered]


def _is_name(text: str) -> bool:
    """Return whether it is neither a number nor a date."""
    return text[0].isalpha() and not text[-1].isdigit()


@dataclass
class Notes:
    """The sentences of a conversation, and the searches since its last question."""

    question: str
    sentences: dict[tuple[str, str], Sentence] = field(default_factory=dict)
    similarities: dict[tuple[str, str], float] = field(default_factory=dict)  # of sentences, to the question itself
    named: list[str] = field(default_factory=list)  # chunks of documents in whose name alone a keyword was found
    calls: list[str] = field(default_factory=list)  # queries, joined keywords and ids, in lower case
    has_counted: bool = False  # whether `grep` was called, perhaps in vain
    count: str = ""  # of the lines that a `grep` found, as a sentence

    def add(self, chunk_id: str, title: str, text: str, similarity: float = 0.0, headings: str = "") -> None:
        """Add a sentence, unless it is a heading. If it is known, the greater similarity counts."""
        text = _clean(text)
        title = without_marks(title)
        if not text or text.startswith("#") or text == title:
            return
        known = self.sentences.get((chunk_id, text))
        if known is None or known.similarity < similarity:
            self.sentences[chunk_id, text] = Sentence(chunk_id, title, text, similarity, headings)

    def add_text(self, text: str) -> None:
        """Add the sentences of chunks and excerpts in the form that the tools write."""
        for chunk_id, shown in read_results(text):
            head, _, body = _NOTES.sub("", shown).partition("\n")
            title, is_excerpt, excerpt = f"{head.strip()} ".partition(": ")
            title = _PLACE.sub("", title.strip())
            if is_excerpt:
                title = title.partition(HEADING_BOUNDARY)[0]
                body = _HEADINGS.sub("", body)
            body = cut_out(body, find_lists(body, title))  # contents only name what other sentences say
            # Headings, rows and items are not part of a sentence: blank lines set them apart.
            separated = _LINE.sub(r"\n\n\g<0>\n\n", f"{excerpt}\n{body}")
            for sentence in _join_lead_ins(_split_sentences(separated)):
                self.add(chunk_id, title, sentence)

    def add_results(self, results: dict[str, Any]) -> None:
        """Add the sentences of a search's results, and their similarities to its query."""
        is_semantic = "query" in results
        frequencies = results.get("document_frequency", {})
        for hit in results["hits"]:
            if any(frequencies.get(keyword) == 0 for keyword in hit.get("in_name", ())):
                self.named.append(hit["chunk_id"])
            similarity = max(0.0, hit["score"]) if is_semantic else 0.0
            for sentence in _join_shown_lead_ins(hit["sentences"]):
                if not sentence.get("cut") and not sentence.get("in_contents"):
                    headings = " ".join(filter(only_asks, sentence.get("under", ())))
                    self.add(hit["chunk_id"], hit["title"], sentence["text"], similarity, headings)
                    if results.get("query") == self.question:
                        self.similarities[hit["chunk_id"], _clean(sentence["text"])] = similarity

    def add_call(self, arguments: dict[str, Any]) -> None:
        """Remember what a call looked for."""
        texts: list[str] = []
        for value in arguments.values():
            items = value if isinstance(value, list) else [value]  # other models may send one item without a list
            texts += map(str, items)
        self.calls.append(" ".join(texts).lower())


def _split_sentences(text: str) -> list[str]:
    """Split a text into sentences; an item's number, and an ellipsis before a small letter, end none."""
    sentences: list[str] = []
    for piece in filter(str.strip, _SENTENCE_END.split(text)):
        if sentences and _goes_on(sentences[-1], piece):
            sentences[-1] = f"{sentences[-1]} {piece}"
        else:
            sentences.append(piece)
    return sentences


def _goes_on(sentence: str, following: str) -> bool:
    is_inside = sentence.endswith("…") and following[0].islower()
    return is_inside or _ITEM_NUMBER.fullmatch(sentence) is not None


def _join_lead_ins(sentences: Sequence[str]) -> list[str]:
    """Join each sentence that ends in a colon with the one after it, which is what it says."""
    joined: list[str] = []
    for sentence in sentences:
        if joined and leads_in(joined[-1]):
            joined[-1] = f"{joined[-1]}\n{sentence}"
        else:
            joined.append(sentence)
    return joined


def _join_shown_lead_ins(sentences: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join each sentence of a result that ends in a colon with the one after it, if that one is shown."""
    joined: list[dict[str, Any]] = []
    after_lead_in = -1  # the position
    for sentence in sentences:
        if sentence["position"] == after_lead_in:
            lead_in = joined.pop()
            joined.append({**lead_in, "text": f"{lead_in['text']}\n{sentence['text']}"})
            continue
        joined.append(sentence)
        if leads_in(sentence["text"]):
            after_lead_in = sentence["position"] + 1
    return joined


def _clean(text: str) -> str:
    """Return a sentence as it is quoted."""
    return without_marks(" ".join(text.split()))


def read_conversation(messages: Sequence[BaseMessage]) -> Notes:
    """Return what the tools have shown in a conversation."""
    if not messages:
        return Notes("")
    start = _find_last_question(messages)
    question, evidence = read_forced_question(messages[start].text)
    notes = Notes(without_division_signs(question).strip())
    notes.add_text(evidence)
    calls = {}
    for message in messages[start:]:
        if isinstance(message, AIMessage):
            calls.update({call["id"]: call for call in message.tool_calls})
    for message in messages:
        if not isinstance(message, ToolMessage):
            continue
        results = _results_of(message)
        if "hits" in results:
            notes.add_results(results)
        else:  # the artifact of a reading has no texts
            notes.add_text(message.text)
        if message.tool_call_id in calls:
            arguments = calls[message.tool_call_id]["args"]
            notes.add_call(arguments)
            if message.name == "grep":
                notes.has_counted = True
                notes.count = describe_count(message.text, str(arguments.get("pattern", "")))
    return notes


def _find_last_question(messages: Sequence[BaseMessage]) -> int:
    """Return the position of the last question; 0 if there is none."""
    position = 0
    for i, message in enumerate(messages):
        if isinstance(message, HumanMessage):
            position = i
    return position


def _results_of(message: ToolMessage) -> dict[str, Any]:
    results: dict[str, Any] = {}
    if isinstance(message.artifact, dict):
        results = message.artifact.get("results", {})
    return results


def read_forced_question(message: str) -> tuple[str, str]:
    """Return the question and the evidence in a request for a forced answer; of other messages the text and ""."""
    forced = _FORCED.fullmatch(message)
    if forced is None:
        return message, ""
    return forced[1], forced[3]
