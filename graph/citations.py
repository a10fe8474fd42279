"""Citations in an answer: checked against the chunks that were shown, with what a reader needs to follow them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import fsum, sqrt

from arag.graph.state import Citation, CitedDocument, Quote
from arag.models.words import content_words, find_names
from arag.retrieval.index import Index
from arag.retrieval.text import fold, is_title, plain
from arag.retrieval.types import Chunk

# Most ids: a name without spaces, commas and brackets, and a number.
_ID = re.compile(r"[^\s\[\]【】()（）,;，；、`*\"'“”]+:\d+(?!\d|:\d)")
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|[(（]([^()（）\n]{1,400})[)）]")
_SEPARATORS = re.compile(r"[,;，；、]")
_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}:\d+$")
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![\d%]|[.,]\d)")
# What an email has besides what it says: headers, and the replies that it quotes. Other texts have lines with ">", too.
_ASIDE = re.compile(
    r"^>.*|^(?:From|To|Cc|Sent|Subject): .*"
    r"|^(?:On .{5,80}(?:\n.{0,80})?\bwrote:[ \t]*$|-+ ?Original Message ?-+)(?:\s*(?![\s>])[\s\S]*)?",
    re.MULTILINE,
)
_GREETING = re.compile(
    r"(?i:dear|hi|hello|good (?:morning|afternoon|evening))\b[^.?]{0,60}[,!:]"
    r"|(?i:(?:(?:best|kind|warm|many|with) )*(?:regards|wishes|thanks|sincerely|cheers|yours(?: \w+)?))"
    r"[,.!]?(?:\s+[A-Z][\w.'’-]*){0,4}"
)


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
    ids = list(dict.fromkeys(chunk_id for _, chunk_ids in claims for chunk_id in chunk_ids))
    chunks = dict(zip(ids, index.mget(ids), strict=True))
    shown = {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk is not None and chunk_id in seen}
    quotes = _choose_quotes(claims, shown)
    return [
        Citation(
            chunk_id=chunk_id,
            seen=chunk_id in seen,
            read=chunk_id in read,
            pages=list(chunk.pages) if chunk and chunk.pages else None,
            document=_describe(chunk, index) if chunk else None,
            quotes=[_quote(shown[chunk_id], place) for place in sorted(quotes.get(chunk_id, ()))],
        )
        for chunk_id, chunk in chunks.items()
    ]


def _find_claims(answer: str, index: Index, seen: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield what an answer says before each citation, and the ids that it cites; at last, what it says after all."""
    # Ids that were shown may also have spaces, commas and brackets: short ones stand for them here.
    unusual = sorted((i for i in seen if re.search(r":\d+$", i) and not _ID.fullmatch(i)), key=len, reverse=True)
    short = {chunk_id: f"\ue000{number}:0" for number, chunk_id in enumerate(unusual)}
    if short:  # all in one pass: there may be thousands
        shown = rf"(?<!\w)(?:{'|'.join(map(re.escape, short))})(?!\d|:\d)"
        answer = re.sub(shown, lambda match: short[match[0]], answer)
    long = {name: chunk_id for chunk_id, name in short.items()}
    at = 0
    for match in _BRACKETS.finditer(answer):
        square, corner, round_ = match.groups()
        parts = [part.strip() for part in _SEPARATORS.split(square or corner or round_)]
        # Ids of ready-made chunks have any form.
        names = [name for part in parts for name in ([part] if part and index.get(part) else _ID.findall(part))]
        ids = [long.get(name, name) for name in names]
        cited = [i for i in ids if i in seen or (not round_ and _may_be_cited(i, index))]
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


def _quote(chunk: Chunk, place: int) -> Quote:
    sentence = chunk.sentences[place]
    return Quote(start=sentence.start, end=sentence.end, text=chunk.sentence_text(place))


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
    done: set[tuple[str, str]] = set()  # some models repeat themselves without end
    claim = ""
    for text, cited in claims:
        claim = text if _words(text) else claim or whole
        new = {(claim, chunk_id) for chunk_id in chunks.keys() & cited} - done
        done |= new
        for _, chunk_id in new if new and known.issuperset(_YEAR.findall(claim)) else ():
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
        return fsum(weights.get(word, 0) for word in words), -len(words), -place  # in any order of the words

    return max(able, key=rank, default=None)


def _sentence_words(chunk: Chunk) -> dict[int, set[str]]:
    """Return the words of the sentences that may be quoted, by position."""
    asides = list(_ASIDE.finditer(chunk.text))
    is_mail = not all(match[0].startswith(">") for match in asides)
    words = {}
    for place in chunk.embedded_positions():
        text, at = chunk.sentence_text(place), chunk.sentences[place].start
        is_aside = is_mail and any(match.start() <= at < match.end() for match in asides)
        if not (is_aside or _GREETING.fullmatch(text) or is_title(text, chunk.title)):
            words[place] = _words(text)
    return words


def _words(text: str) -> set[str]:
    """Return the stems of a text's words without diacritics, and its numbers."""
    text = plain(text.replace("-", " "))
    return content_words(text) | set(_NUMBER.findall(text))
