"""Citations in an answer: checked against the chunks that were shown, with what a reader needs to follow them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any
from unicodedata import combining, normalize

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from arag.graph.state import Citation, CitedDocument, Quote, ToolRecord
from arag.models.usage import model_call, total
from arag.models.words import content_words, find_names
from arag.retrieval.index import Index
from arag.retrieval.text import fold, is_title
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import find_artifacts
from arag.retrieval.types import Chunk

_ID_START = r"(?<![^\s\[\]【】()（）,;，；、`*\"'“])"
_ID_END = r"(?!\d|:\d)"
_ENDS_AS_ID = re.compile(r":\d+$")
_USUAL = re.compile(rf"{_ID_START}[^\s\[\]【】()（）,;，；、`*\"'“”]+:\d+{_ID_END}")
_BRACKETS = (  # the last one only holds chunks that were shown
    r"\[((?>{shown}|[^\[\]\n]){{1,400}})\]",
    r"【((?>{shown}|[^【】\n]){{1,400}})】",
    r"[(（]((?>{shown}|[^()（）\n]){{1,400}})[)）]",
)
_PART = re.compile(r"[^\s,;，；、](?:[^,;，；、]*[^\s,;，；、])?")  # of a bracket
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")
_MAX_FIELD_CHARACTERS = 2_000
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")
_NAME, _WORD, _SUBJECT = 2.0, 1.0, 0.1  # weights of names and numbers, of other words, of the title's words
_MIN_GAIN = 2.0  # of a second sentence


def parse_citations(answer: str, index: Index, seen: Collection[str], read: Collection[str]) -> list[Citation]:
    """Find the chunks that an answer names in brackets: `[a.md:0, b.md:1]`, `【a.md:0】`, `(a.md:0)`.

    In square brackets, chunks that were not shown count, too, and what looks like a chunk of a file or of a document in
    the index: `seen` says that they were not shown. Other texts in brackets, such as times and ratios, do not count.

    Args:
        answer: The answer.
        index: The index.
        seen: Ids of chunks that were shown to the model.
        read: Ids of chunks that were shown in full.

    Returns:
        The citations in the order of the answer, each once. Those that were shown have the sentences that bear what the
        answer says, chosen by their words; no model is called.

    Example:
        >>> answer = "The lens was made at the Emberlane Glassworks [places/vellin-light.md:0]."
        >>> [citation] = parse_citations(answer, index, ["places/vellin-light.md:0"], [])
        >>> [quote["text"] for quote in citation["quotes"]]
        ['The lens of the Vellin Light was made at the Emberlane Glassworks and carried out in a bed of bran, ...']
    """
    seen, read = set(seen), set(read)
    claims = list(_find_claims(answer, index, seen))
    chunks = {chunk_id: index.get(chunk_id) for _, chunk_ids in claims for chunk_id in chunk_ids}
    shown = {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk is not None and chunk_id in seen}
    quotes = _choose_quotes(claims, shown)
    return [
        Citation(
            chunk_id=chunk_id,
            seen=chunk_id in seen,
            read=chunk_id in read,
            pages=list(chunk.pages) if chunk and chunk.pages else None,
            document=_describe(chunk, index) if chunk else None,
            quotes=[_quote(shown[chunk_id], position) for position in sorted(quotes.get(chunk_id, ()))],
        )
        for chunk_id, chunk in chunks.items()
    ]


def find_shown_chunks(messages: Iterable[AnyMessage], index: Index) -> list[str]:
    """Return the ids of the chunks that tool results show: those in their artifacts, or in brackets in their texts."""
    shown: dict[str, None] = {}
    for message in messages:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        chunk_ids = message.artifact.get("chunk_ids") if isinstance(message.artifact, dict) else None
        if not isinstance(chunk_ids, list):
            named = dict.fromkeys(re.findall(r"\[([^\[\]\n]{1,400})\]", message.text))
            chunk_ids = [chunk_id for chunk_id in named if index.get(chunk_id)]
        shown |= dict.fromkeys(chunk_id for chunk_id in chunk_ids if isinstance(chunk_id, str))
    return list(shown)


def records(run: Sequence[AnyMessage], answer: AIMessage, index: Index, *, is_forced: bool) -> dict[str, Any]:
    """Return the steps, trace, model calls and usage of a run: of its messages before the answer, and of the answer."""
    replies = [message for message in run if isinstance(message, AIMessage)]
    steps = len(replies) if is_forced else len(replies) + 1
    model_calls = [model_call(reply, step=step) for step, reply in enumerate(replies, 1)]
    model_calls.append(model_call(answer, step=len(replies) + 1, forced=is_forced))
    calls = {c["id"]: (step, c["args"]) for step, reply in enumerate(replies, 1) for c in reply.tool_calls}
    calls |= {c["id"]: (step, {}) for step, reply in enumerate(replies, 1) for c in reply.invalid_tool_calls}
    trace = [_tool_record(m, *calls.get(m.tool_call_id, (0, {})), index) for m in run if isinstance(m, ToolMessage)]
    return {"steps": steps, "trace": trace, "model_calls": model_calls, "usage": total(model_calls)}


def _tool_record(result: ToolMessage, step: int, arguments: dict[str, Any], index: Index) -> ToolRecord:
    shown = find_shown_chunks([result], index)
    tokens = count_tokens(result.text) if shown else 0
    others: dict[str, Any] = {"retrieved_tokens": tokens, "evidence_tokens": tokens}  # of a caller's own tool
    artifact = next(find_artifacts([result]), others)
    return ToolRecord(
        step=step,
        tool=result.name or "",
        arguments=arguments,
        chunk_ids=shown,
        new_chunks=list(artifact.get("new_chunks", ())),
        retrieved_tokens=artifact["retrieved_tokens"],
        evidence_tokens=artifact["evidence_tokens"],
        seconds=result.response_metadata.get("seconds", 0.0),
        error=result.text if result.status == "error" else None,
    )


# --- citations ---


def _find_claims(answer: str, index: Index, seen: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield what an answer says before each citation, and the ids that it cites; at last, what it says after all."""
    # An id may have spaces, commas and brackets, which are only understood if it was shown.
    unusual = sorted((i for i in seen if _ENDS_AS_ID.search(i) and not _USUAL.fullmatch(i)), key=len, reverse=True)
    shown = rf"{_ID_START}(?:{'|'.join(map(re.escape, unusual)) or '(?!)'}){_ID_END}"
    bracket = re.compile("|".join([shown, *(kind.format(shown=shown) for kind in _BRACKETS)]))
    kinds: list[tuple[re.Pattern[str], Callable[[str], Any]]] = [
        (re.compile(shown), seen.__contains__),
        (_PART, index.get),  # ids of ready-made chunks have any form
        (_USUAL, lambda name: name in seen or _may_be_cited(name, index)),
    ]
    at = 0
    for match in bracket.finditer(answer):
        if match.lastindex is None:  # an id outside of brackets, which may itself hold some
            continue
        text, is_round = match[match.lastindex], match.lastindex == len(_BRACKETS)
        cited: dict[int, str] = {}
        for pattern, is_id in kinds[::2] if is_round else kinds:
            ids = [m for m in pattern.finditer(text) if (m[0] in seen if is_round else is_id(m[0]))]
            cited |= {m.start(): m[0] for m in ids}
            for m in ids:
                text = text[: m.start()] + "," * len(m[0]) + text[m.end() :]
        if cited:
            yield answer[at : match.start()], [cited[place] for place in sorted(cited)]
            at = match.end()
    yield answer[at:], []


def _may_be_cited(name: str, index: Index) -> bool:
    """Return whether what looks like an id is of a chunk that exists or was made up: no time, verse or ratio."""
    return bool(_LIKE_A_FILE.search(name) or index.get(name) or index.document(name.rpartition(":")[0]))


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that a page may link to: of http or https."""
    return _WEB_ADDRESS.fullmatch(text) is not None


def _describe(chunk: Chunk, index: Index) -> CitedDocument:
    """Return what is known of a chunk's document."""
    known = index.document(chunk.document_id)
    metadata = {key.lower(): value for key, value in known.metadata.items()} if known else {}
    url = _first_text(metadata, "url", "source_url", "link")
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=_first_text(metadata, "author", "authors", "creator"),
        date=_first_text(metadata, "date", "published", "created", "year"),
    )


def _first_text(metadata: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some fields that holds texts or numbers, or things with a name; several are joined."""
    for key in keys:
        value = metadata.get(key)
        parts = [p.get("name") if isinstance(p, dict) else p for p in (value if isinstance(value, list) else [value])]
        text = ", ".join(fold(str(part)) for part in parts if isinstance(part, str | int | float) and part is not True)
        if 0 < len(text) <= _MAX_FIELD_CHARACTERS:
            return text
    return ""


# --- quotes ---


def _quote(chunk: Chunk, position: int) -> Quote:
    sentence = chunk.sentences[position]
    return Quote(start=sentence.start, end=sentence.end, text=chunk.sentence_text(position))


def _choose_quotes(claims: Sequence[tuple[str, list[str]]], chunks: Mapping[str, Chunk]) -> dict[str, set[int]]:
    """Choose the sentences of cited chunks that bear what an answer says.

    Citations side by side share a claim. A list of sources without words of its own stands for the whole answer.

    A claim with a year that no cited chunk has gets none.

    Args:
        claims: What the answer says before each citation, and the ids that it cites.
        chunks: The cited chunks that were shown, by id.

    Returns:
        The positions of the sentences, by chunk id.
    """
    sentences = {chunk_id: _sentence_words(chunk) for chunk_id, chunk in chunks.items()}
    titles = {chunk_id: _words(chunk.title) for chunk_id, chunk in chunks.items()}
    known = set().union(*titles.values(), *(words for each in sentences.values() for words in each.values()))
    whole = "".join(text for text, _ in claims)
    chosen: dict[str, set[int]] = {chunk_id: set() for chunk_id in chunks}
    claim = ""
    for text, cited in claims:
        claim = text if _words(text) else claim or whole
        for chunk_id in chunks.keys() & cited:
            if known.issuperset(_YEAR.findall(claim)):
                chosen[chunk_id].update(_choose_sentences(claim, sentences[chunk_id], titles[chunk_id]))
    return chosen


def _choose_sentences(claim: str, sentences: Mapping[int, set[str]], title: set[str]) -> list[int]:
    """Choose one or two sentences by the words that they share with a claim, the rare ones in the chunk first."""
    claimed = _words(claim)
    names = {word for name in find_names(claim) for word in _words(name)} | set(_NUMBER.findall(claim))
    counts = Counter(word for words in sentences.values() for word in words)
    weights = {
        word: (_SUBJECT if word in title else _NAME if word in names else _WORD) / sqrt(counts[word])
        for word in claimed & counts.keys()
    }
    telling = (claimed & names & counts.keys()) - title
    least = 1 if telling else max(1, len(claimed - title) / 2)
    able = {place: words for place, words in sentences.items() if len(words & (telling or claimed)) >= least}
    chosen: list[int] = []
    while able and len(chosen) < 2:
        gains = {place: sum(weights.get(word, 0.0) for word in words) for place, words in able.items()}
        best = max(gains, key=lambda place: (gains[place], -len(able[place]), -place))
        if chosen and gains[best] < _MIN_GAIN:
            break
        chosen.append(best)
        weights = {word: weight for word, weight in weights.items() if word not in able[best]}
        del able[best]
    return chosen


def _sentence_words(chunk: Chunk) -> dict[int, set[str]]:
    texts = {place: chunk.sentence_text(place) for place, sentence in enumerate(chunk.sentences) if sentence.embedded}
    return {place: _words(text) for place, text in texts.items() if not is_title(text, chunk.title)}


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    plain = "".join(c for c in normalize("NFKD", text.replace("-", " ")) if not combining(c))
    return content_words(plain) | set(_NUMBER.findall(plain))
