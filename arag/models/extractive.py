"""The built-in model: a fixed policy that searches, reads and quotes. It is not a language model.

It runs everything end to end without a key or a network, and is the baseline that a language model must beat.

The policy: search for the question by its meaning, then for its names. Then, hop by hop, take the sentences that cover
most of its words and are nearest to it, and look up a new name of theirs with the words that are left open. When
nothing is left to look up, read the chunks of these sentences, and quote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag.models.answering import (
    find_asked_versions,
    is_statement,
    leads_in,
    may_answer,
    may_answer_foreign,
    only_asks,
    telling_words,
    tells_when,
    title_tells_when,
)
from arag.models.coverage import Coverage
from arag.models.names import EXTRACTIVE
from arag.models.notes import Notes, Sentence, read_conversation
from arag.models.questions import is_in_english, list_asked, list_stems, question_keywords
from arag.text.languages import is_english
from arag.text.marks import mark, without_marks
from arag.text.normalise import with_colon
from arag.text.words import content_words, find_names, stem

_MAX_SEARCHES = 5  # tool calls after which it follows no more names
_MAX_QUOTES = 3  # sentences of an answer
_MAX_NAMES_PER_SEARCH = 3
_MAX_OPEN_WORDS_PER_SEARCH = 3
_MIN_SHARE = 0.35  # of the weight of a question's words: in the sentence that has most of them
_MIN_TOGETHER = 0.5  # in all quotes
_MIN_FOREIGN_TOGETHER = 0.45  # the same in other languages than English: endings hide words there
_MIN_IN_TITLE = 0.75  # in a title that answers
_MIN_SIMILARITY = 0.5  # of a quote that has only names of the question: other words may say it
_NEARNESS = 0.2  # what nearness in meaning counts, against all words of the question
_LINK_BONUS = 1.2  # in words: for a sentence with a name that an earlier quote has brought up
_KIND_BONUS = 0.3  # in words: for a sentence that has what the question asks for, such as a number

_NOTHING = "Nothing was found in the corpus."
_NO_WORDS = "Nothing with words of the question was found in the corpus. Nearest in meaning:"
_NO_ANSWER = "These rules recognise no answer in what was found; here are the best passages."
_NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"

# Words about the texts themselves, in a question that asks how many.
_ASKING = frozenset(map(stem, ["contain", "document", "file", "line", "mention", "sentence", "text"]))
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)


class ExtractiveModel(BaseChatModel):
    """A chat model that searches and quotes by fixed rules: deterministic, offline, and not a language model."""

    @property
    def _llm_type(self) -> str:
        return "arag-extractive"

    def _get_ls_params(self, stop: list[str] | None = None, **options: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **options)
        params["ls_provider"] = "arag"
        params.setdefault("ls_model_name", EXTRACTIVE)
        return params

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind the retrieval tools. It calls the three searches and `grep`; others are ignored."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        reply = _reply(messages, options.get("tools", ()))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _stream(self, messages: list[BaseMessage], *_: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        reply = _reply(messages, options.get("tools", ()))
        for word in re.findall(r"\s*\S+", reply.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        last = AIMessageChunk(
            content="",
            tool_calls=reply.tool_calls,
            response_metadata=reply.response_metadata,
        )
        yield ChatGenerationChunk(message=last)


def admits_no_answer(answer: str) -> bool:
    """Return whether an answer is this model's, and says that nothing answers the question."""
    return answer.startswith((_NOTHING, _NO_WORDS, _NO_ANSWER)) and answer.endswith(_NOTICE)


def _reply(messages: Sequence[BaseMessage], tools: Sequence[Any]) -> AIMessage:
    notes = read_conversation(messages)
    question = notes.question
    coverage = Coverage(list_stems(question), notes.sentences.values(), is_english=is_in_english(question))
    quotes = _choose_sentences(notes, coverage)
    tool_names = {tool["function"]["name"] for tool in tools}
    reply = _choose_call(notes, quotes, coverage, tool_names)
    if reply is None:
        reply = AIMessage(_answer(notes, quotes, coverage))
    return reply.model_copy(update={"response_metadata": {"model_name": EXTRACTIVE}})


def _choose_call(
    notes: Notes,
    quotes: Sequence[Sentence],
    coverage: Coverage,
    tools: set[str],
) -> AIMessage | None:
    """Return the next tool call, or None when it is time to answer."""
    call = _search_for_question(notes, tools)
    if call is not None:
        return call
    call = _read(notes, notes.named[:_MAX_QUOTES], tools)
    if call is not None:
        return call
    if len(notes.calls) < _MAX_SEARCHES and not _find_title(notes, coverage):
        call = _follow_name(notes, quotes, tools)
        if call is not None:
            return call
    return _read(notes, [quote.chunk_id for quote in quotes], tools)


def _read(notes: Notes, chunk_ids: Iterable[str], tools: set[str]) -> AIMessage | None:
    """Return a call that reads those of some chunks that were not read yet."""
    earlier = " / ".join(notes.calls)
    unread = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id.lower() not in earlier]
    if "chunk_read" not in tools or not unread:
        return None
    return _call("chunk_read", chunk_ids=unread)


def _search_for_question(notes: Notes, tools: set[str]) -> AIMessage | None:
    """Return the first search for the question itself that was not made yet.

    The search by meaning comes first: its results come with similarities, and later searches do not repeat what was
    shown.
    """
    question = notes.question
    if "semantic_search" in tools and question.lower() not in notes.calls:
        return _call("semantic_search", query=question)
    keywords = question_keywords(question)
    if "keyword_search" in tools and keywords and " ".join(keywords).lower() not in notes.calls:
        return _call("keyword_search", keywords=keywords)
    pattern = _find_counted(question)
    if "grep" in tools and pattern and not notes.has_counted:
        return _call("grep", pattern=pattern)
    return None


def _find_counted(question: str) -> str:
    """Return a pattern of the names in a question that asks how many, or else of its longest word; else ""."""
    if not _HOW_MANY.search(question):
        return ""
    words = [word for word in list_asked(question) if stem(word) not in _ASKING]
    words.sort(key=len)
    names = find_names(question) or [stem(word) for word in words[-1:]]
    return "|".join(map(re.escape, names))


def _follow_name(notes: Notes, quotes: Sequence[Sentence], tools: set[str]) -> AIMessage | None:
    """Return a search for a new name of a quote, with the words of the question that are still open there."""
    if not tools & {"semantic_search", "keyword_search"}:
        return None
    earlier = " / ".join(notes.calls)
    covered: set[str] = set()
    for quote in quotes:
        covered |= content_words(quote.text)
        open_words = [word for word in list_asked(notes.question) if stem(word) not in covered]
        names = [name for name in quote.new_names(notes.question) if name.lower() not in earlier]
        if not names or not open_words:
            continue
        if "semantic_search" in tools:
            return _call("semantic_search", query=" ".join([names[0], *open_words]))
        keywords = names[:_MAX_NAMES_PER_SEARCH] + open_words[:_MAX_OPEN_WORDS_PER_SEARCH]
        return _call("keyword_search", keywords=keywords)
    return None


def _call(name: str, **arguments: Any) -> AIMessage:
    call = {"name": name, "args": arguments, "id": str(uuid4()), "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def _choose_sentences(notes: Notes, coverage: Coverage) -> list[Sentence]:
    """Choose sentences one by one: each has the rarest open words, and preferably names from the ones before."""
    open_words = set(coverage.words)
    in_english = is_in_english(notes.question)
    asked = list_stems(notes.question)
    quotes: list[Sentence] = []
    links: set[str] = set()  # new names

    def gain(sentence: Sentence) -> float:
        weight = coverage.weigh(open_words & coverage.find(sentence))
        says_more = is_statement(sentence.text) or ", " in sentence.text  # unlike the name of a link
        if says_more and _tells_of(links, sentence.text.lower()):
            weight += _LINK_BONUS / max(1, len(coverage.words))
        if weight and has_kind(sentence):
            weight += _KIND_BONUS / max(1, len(coverage.words))
        return weight and weight + _NEARNESS * sentence.similarity

    def has_kind(sentence: Sentence) -> bool:
        return in_english and may_answer(notes.question, asked, sentence.text)

    sentences = list(notes.sentences.values())
    pool = [sentence for sentence in sentences if not only_asks(sentence.text) and not leads_in(sentence.text)]
    if not any(map(coverage.find, pool)):
        pool = sentences
    title = _find_title(notes, coverage)
    if title:
        return [_quote_title(title, coverage, sentences)]
    while pool and len(quotes) < _MAX_QUOTES:
        best = max(pool, key=gain)
        if gain(best) <= 0:
            break
        quotes.append(best)
        pool = [sentence for sentence in pool if not _repeats(sentence, best)]
        open_words -= coverage.find(best)
        links.update(name.lower() for name in best.new_names(notes.question))
    return quotes


def _find_title(notes: Notes, coverage: Coverage) -> str:
    """Return the only title with a year and nearly all of a question for a time; empty if there is none.

    It is empty, too, if a sentence with a date says as much of the question.
    """
    titles = {sentence.title for sentence in notes.sentences.values()}
    dated = [title for title in titles if title_tells_when(notes.question, coverage.words, title)]
    telling = [title for title in dated if coverage.weigh(coverage.find(Sentence("", title, title))) >= _MIN_IN_TITLE]
    if len(telling) != 1 or _is_told_when(telling[0], notes, coverage):
        return ""
    return telling[0]


def _is_told_when(title: str, notes: Notes, coverage: Coverage) -> bool:
    """Return whether a sentence with a date says as much of the question as a title; below it, by its own text."""
    in_title = coverage.find(Sentence("", title, title))
    for sentence in notes.sentences.values():
        if not tells_when(notes.question, list_stems(notes.question), sentence.text):
            continue
        own = replace(sentence, title="") if sentence.title == title else sentence
        found = coverage.find(own)
        if coverage.weigh(found - in_title) >= coverage.weigh(in_title - found):
            return True
    return False


def _quote_title(title: str, coverage: Coverage, sentences: Sequence[Sentence]) -> Sentence:
    """Return the sentence that says most of a title's answer again, where a citation opens; or else the title."""
    told = telling_words(title) - coverage.words
    below = [sentence for sentence in sentences if sentence.title == title]
    best = max(below, key=lambda sentence: len(told & telling_words(sentence.text)))
    if told.isdisjoint(telling_words(best.text)):
        return replace(best, text=title)
    return best


def _repeats(sentence: Sentence, quote: Sentence) -> bool:
    """Return whether a sentence is a part of a quote, or a quote with little else, such as its number in a list."""
    if sentence.chunk_id != quote.chunk_id:
        return False
    is_longer = quote.text in sentence.text and len(sentence.text) < 2 * len(quote.text)
    return is_longer or sentence.text in quote.text


def _tells_of(names: Iterable[str], text: str) -> bool:
    """Return whether a text has one of the names and something else: a name alone is an item of a list."""
    rest = text
    for name in names:
        rest = rest.replace(name, "")
    return rest != text and any(map(str.isalnum, rest))


def _answer(notes: Notes, quotes: Sequence[Sentence], coverage: Coverage) -> str:
    """Quote the sentences, starting with the one that best covers the question's first words."""
    if not quotes:
        return _answer_by_meaning(notes)
    stems = [stem(word) for word in list_asked(notes.question)]

    def aim(quote: Sentence) -> float:
        return sum(1 / position for position, word in enumerate(stems, 1) if word in quote.words)

    answers = _find_answers(notes, quotes, coverage)
    first = max(answers or quotes, key=aim)
    others = [quote for quote in quotes if quote is not first]
    if not answers:
        others += [quote for quote in _find_nearest(notes, coverage) if quote not in quotes]
    lines = [_quote_line(quote) for quote in (first, *others)]
    is_counted = notes.count and not _ASKING.isdisjoint(stems)
    if is_counted or (notes.count and not answers):
        lines.append(without_marks(notes.count))
    if not answers and not is_counted:
        lines.insert(0, _NO_ANSWER)
    return "\n".join([*lines, _NOTICE])


def _find_nearest(notes: Notes, coverage: Coverage) -> list[Sentence]:
    """Return the statement that is nearest in meaning to the question, if it is near and has a word of it."""
    for key, similarity in sorted(notes.similarities.items(), key=lambda item: -item[1]):
        if similarity < _MIN_SIMILARITY:
            return []
        sentence = notes.sentences.get(key)
        if sentence is not None and coverage.find(sentence) and is_statement(sentence.text):
            return [sentence]
    return []


def _find_answers(notes: Notes, quotes: Sequence[Sentence], coverage: Coverage) -> list[Sentence]:
    """Return the quotes that may answer the question; none if the quotes leave out too much of it."""
    in_english = is_in_english(notes.question)
    answers = [quote for quote in quotes if coverage.find(quote) and _may_answer(quote, notes, coverage)]
    # In English, a sentence that only leads to the answer counts, too: the rules know better there what answers.
    telling = quotes if in_english else answers
    shares = [coverage.weigh(coverage.find(quote)) for quote in telling]
    said = frozenset[str]().union(*map(coverage.find, telling))
    needed = _MIN_TOGETHER if in_english else _MIN_FOREIGN_TOGETHER
    if max(shares, default=0.0) < _MIN_SHARE or coverage.weigh(said) < needed:
        return []
    if in_english and len(said) <= len(coverage.words) / 2:
        return []  # of "who invented the telephone", all telephones say a half
    said = frozenset[str]().union(*map(coverage.find, answers))
    if not said.issuperset(find_asked_versions(notes.question)):
        return []
    if said <= telling_words(" ".join(find_names(notes.question))):
        return [
            quote for quote in answers if notes.similarities.get((quote.chunk_id, quote.text), 0.0) >= _MIN_SIMILARITY
        ]
    return answers


def _may_answer(quote: Sentence, notes: Notes, coverage: Coverage) -> bool:
    """Return whether a quote has what the question asks for."""
    question = notes.question
    if quote.title and quote.title == _find_title(notes, coverage):
        return True
    if is_in_english(question):
        return may_answer(question, list_stems(question), quote.text)
    return may_answer_foreign(question, f"{quote.title} {quote.headings}", quote.text)


def _answer_by_meaning(notes: Notes) -> str:
    """Quote the sentence nearest to the question, if one of them is not English, and say that no word shows it.

    Of English words, the endings are known: if none is shared, the sentence is hardly about the question.
    """
    nearest = max(notes.sentences.values(), key=lambda sentence: sentence.similarity, default=None)
    if nearest is None or nearest.similarity <= 0:
        return f"{_NOTHING} {_NOTICE}"
    if is_in_english(notes.question) and is_english(nearest.text):
        return f"{_NOTHING} {_NOTICE}"
    return "\n".join([_NO_WORDS, _quote_line(nearest), _NOTICE])


def _quote_line(quote: Sentence) -> str:
    """Return a quote with its mark, and with its title if the text does not have it."""
    said = quote.text
    if quote.title not in quote.text:
        said = f"{with_colon(quote.title)} {quote.text}"
    return f"{without_marks(said)} {mark(quote.chunk_id)}"
