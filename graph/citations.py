"""Citations in an answer: checked against the chunks that were shown, with what a reader needs to follow them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

# Most ids: a name without spaces, commas and brackets, and a number.
_ID = re.compile(r"[^\s\[\]【】()（）,;，；、`*\"'“”]+:\d+(?!\d|:\d)")
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|[(（]([^()（）\n]{1,400})[)）]")
_SEPARATORS = re.compile(r"[,;，；、]")
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")


def parse_citations(answer: str, index: Index, seen: Collection[str], read: Collection[str]) -> list[Citation]:
    """Find the chunks that an answer names in brackets: `[a.md:0, b.md:1]`, `【a.md:0】`, `(a.md:0)`.

    In square brackets, chunks that were not shown count, too, and what looks like a chunk of a file or of a document in
    the index. Other texts in brackets, such as times and ratios, do not.

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
            quotes=[
                Quote(start=s.start, end=s.end, text=shown[chunk_id].text[s.start : s.end])
                for s in (shown[chunk_id].sentences[place] for place in sorted(quotes.get(chunk_id, ())))
            ],
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
    # Ids that were shown may also have spaces, commas and brackets: short ones stand for them here.
    unusual = sorted((i for i in seen if not _ID.fullmatch(i) and re.search(r":\d+$", i)), key=len, reverse=True)
    short = {chunk_id: f"\ue000{number}:0" for number, chunk_id in enumerate(unusual)}
    if short:
        shown = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, short))})(?!\d|:\d)")
        answer = shown.sub(lambda match: short[match[0]], answer)
    long = {name: chunk_id for chunk_id, name in short.items()}
    at = 0
    for match in _BRACKETS.finditer(answer):
        square, corner, round_ = match.groups()
        parts = [part.strip() for part in _SEPARATORS.split(square or corner or round_)]
        # Ids of ready-made chunks have any form.
        names = [name for part in parts for name in ([part] if part and index.get(part) else _ID.findall(part))]
        ids = [long.get(name, name) for name in names]
        cited = [i for i in ids if i in seen or (round_ is None and _may_be_cited(i, index))]
        if cited:
            yield answer[at : match.start()], cited
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

    def first(*keys: str) -> str:
        value = next((metadata[key] for key in keys if metadata.get(key)), "")
        parts = value if isinstance(value, list) else [value]
        names = (part.get("name", part) if isinstance(part, dict) else part for part in parts)
        return fold(", ".join(map(str, names)))

    url = first("url", "source_url", "link")
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=first("author", "authors", "creator"),
        date=first("date", "published", "created", "year"),
    )


# --- quotes ---


def _choose_quotes(claims: Sequence[tuple[str, list[str]]], chunks: Mapping[str, Chunk]) -> dict[str, set[int]]:
    """Return the positions of the sentences that bear what an answer says, by chunk id.

    Citations side by side share a claim. A list of sources without words of its own stands for the whole answer. A
    claim with a year that no cited chunk has gets no quote.
    """
    sentences = {chunk_id: _sentence_words(chunk) for chunk_id, chunk in chunks.items()}
    titles = {chunk_id: _words(chunk.title) for chunk_id, chunk in chunks.items()}
    known = set().union(*titles.values(), *(words for each in sentences.values() for words in each.values()))
    whole = "".join(text for text, _ in claims)
    chosen: dict[str, set[int]] = {}
    claim = ""
    for text, cited in claims:
        claim = text if _words(text) else claim or whole
        for chunk_id in chunks.keys() & cited if known.issuperset(_YEAR.findall(claim)) else ():
            place = _choose_sentence(claim, sentences[chunk_id], titles[chunk_id])
            if place is not None:
                chosen.setdefault(chunk_id, set()).add(place)
    return chosen


def _choose_sentence(claim: str, sentences: Mapping[int, set[str]], title: set[str]) -> int | None:
    """Choose the sentence that shares most with a claim. Names, numbers and words rare in the chunk weigh more.

    If the chunk has no name or number of the claim, the sentence needs half of the claim's words.
    """
    claimed = _words(claim) - title
    names = {word for name in find_names(claim) for word in _words(name)} | set(_NUMBER.findall(claim))
    counts = Counter(word for words in sentences.values() for word in words)
    weights = {word: (2 if word in names else 1) / sqrt(counts[word]) for word in claimed & counts.keys()}
    telling = weights.keys() & names
    least = 1 if telling else max(1, len(claimed) / 2)
    able = [place for place, words in sentences.items() if len(words & (telling or claimed)) >= least]

    def rank(place: int) -> tuple[float, int, int]:
        words = sentences[place]
        return sum(weights.get(word, 0) for word in words), -len(words), -place

    return max(able, key=rank, default=None)


def _sentence_words(chunk: Chunk) -> dict[int, set[str]]:
    texts = {place: chunk.sentence_text(place) for place, sentence in enumerate(chunk.sentences) if sentence.embedded}
    return {place: _words(text) for place, text in texts.items() if not is_title(text, chunk.title)}


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    plain = "".join(c for c in normalize("NFKD", text.replace("-", " ")) if not combining(c))
    return content_words(plain) | set(_NUMBER.findall(plain))
