"""Which sentences of a chunk a search result shows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, pairwise, zip_longest
from types import MappingProxyType

from arag.retrieval.layout import (
    CUT,
    bare_title,
    find_header,
    find_heading,
    find_rows,
    fold_sentence,
    is_row,
    is_row_of,
    is_title,
    list_words,
)
from arag.retrieval.text import fold
from arag.retrieval.types import Chunk, Section, Snippet, SnippetSentence
from arag.retrieval.words import place_words

_MAX_SENTENCES = 3  # unless more are needed to show every keyword
_MAX_SIMILAR = 2
_MAX_RARE = 3  # sentences of a chunk with a word that is rare in it
_RARE_WORD = 0.15  # of similarity
_MAX_PASSAGES = 2  # of the best chunk
_PASSAGES = 1_600  # characters of passages in one read
_PASSAGE = 600  # more for each query
_PASSAGES_SHARE = 0.5  # of the chunks read
_PASSAGES_FALLING_OFF = 0.3
_FALLING_OFF = 0.2  # of similarity, from a chunk's best sentence
_MAX_SENTENCE_CHARACTERS = 400  # characters
_SHORT_GAP = 200  # characters
_SHORT_DOCUMENT = 700  # characters: shown whole rather than in pieces

_ANNOUNCES = re.compile(r":$|\b(?:the following|as follows|listed below|these are|includes?:)", re.IGNORECASE)
_NO_STATEMENT = re.compile(r"[?:]$|^[^.!。！]{0,60}$")  # a question, or what may be a heading or a line of a list

# A sentence that begins like this refers to something named before it.
_WITHOUT_SUBJECT = re.compile(
    r"[\"'“‘«(\[\s]*(?:(?:He|She|It|They|His|Her|Hers|Its|Their|Him|Them|This|These|Those|That|Such|Both|"
    r"Neither|Here|There|The (?:former|latter|same|other|two|company|film|song|book|series|band|team|city|town))\b"
    r"|他|她|它|其|这|那|该|此)"
)


def choose_keyword_snippets(
    chunk: Chunk,
    keywords: Sequence[str],
    rarity: Mapping[str, int],
    words: Sequence[str] = (),
    *,
    is_best: bool = False,
) -> tuple[tuple[Snippet, ...], int]:
    """Choose the sentences that show a chunk's keywords.

    Sentences are chosen one by one, those with the most keywords first, until every keyword that the chunk holds has
    one; then up to three in all, by the rarity of what they hold. A document that a keyword names is shown whole if it
    is short: the question is probably about it.

    Args:
        chunk: The chunk.
        keywords: The keywords that it holds.
        rarity: For each keyword, how many chunks of the corpus hold it.
        words: Words, as `telling_words` gives them, of keywords that it holds in pieces only; each gets one sentence.
        is_best: Whether the chunk is among the best: of a long document, the passage around the best sentence is shown.

    Returns:
        What to show, by document, and how many further sentences hold a keyword.
    """
    wanted = [*keywords, *(word for word in words if word not in keywords)]
    places = _place_words(chunk, words) | _find_keywords(chunk, keywords)
    by_rarity = sorted(wanted, key=lambda keyword: (rarity.get(keyword, 0), wanted.index(keyword)))
    ranks = {keyword: rank for rank, keyword in enumerate(by_rarity)}
    matched: dict[int, set[str]] = {}
    for keyword, spans in places.items():
        for first, last, _ in spans:
            for position in range(first, last + 1):
                matched.setdefault(position, set()).add(keyword)

    def worth(position: int, these: Collection[str]) -> tuple[int, int, int, int, int]:
        held = matched[position] & set(these)
        return (
            len(held),
            _rate_sentence(chunk, position, held),
            -min((ranks[keyword] for keyword in held), default=0),
            len(matched[position]),
            -position,
        )

    chosen: set[int] = set()
    missing = {keyword for keyword in wanted if places[keyword]}
    main: int | None = None  # the sentence that says most
    while missing:
        best = max((p for p in matched if matched[p] & missing), key=lambda position: worth(position, missing))
        main = best if main is None else main
        for keyword in matched[best] & missing:
            first, last, _ = next(span for span in places[keyword] if span[0] <= best <= span[1])
            chosen.update(range(first, last + 1))
        missing -= matched[best]
    titles = {bare_title(section.title) for section in chunk.sections}
    # That a sentence has the title of its document says little: all of them are about it.
    telling = [keyword for keyword in keywords if bare_title(keyword) not in titles]
    others = {position for position in matched.keys() - chosen if not matched[position].isdisjoint(keywords)}
    rest = sorted(others, key=lambda position: worth(position, telling), reverse=True)
    chosen.update(rest[: max(0, _MAX_SENTENCES - len(chosen))])
    marks = {
        position: _find_offset(chunk, position, places[min(matched[position], key=lambda keyword: ranks[keyword])])
        for position in chosen
    }
    names = {bare_title(keyword) for keyword in keywords}
    shown = _add_context(chunk, chosen, is_subject=lambda section: _is_named(bare_title(section.title), names))
    if is_best and main is not None and _is_part(chunk, main) and not is_row(fold_sentence(chunk, main)):
        shown |= set(_find_passage(chunk, main))
    shown = _fill_gaps(chunk, shown)
    return _make_snippets(chunk, shown, chosen, {}, marks), len(matched.keys() - shown)


def choose_semantic_snippets(
    chunk: Chunk, similarities: Mapping[int, float], query: str, *, is_best: bool = False
) -> tuple[tuple[Snippet, ...], int]:
    """Choose the sentences that show why a chunk is near to a query: the most similar, and rows with its words.

    Args:
        chunk: The chunk.
        similarities: Cosine similarity by position, for the chunk's sentences among those found.
        query: The query.
        is_best: Whether the chunk is among the nearest: a short document is then shown whole, and of a longer one
            the passages around the most similar sentences.

    Returns:
        What to show, by document, and how many further sentences were found.
    """
    best = sorted(similarities, key=lambda position: (-similarities[position], position))
    rated = _add_rare_words(chunk, similarities, query)
    best[1:] = sorted(best[1:], key=lambda position: (-rated[position], position))
    near = [p for p in best if rated[p] > similarities[best[0]] - _FALLING_OFF]
    rows = find_rows(chunk, [query])
    chosen = {*near[:_MAX_SIMILAR], *rows}
    shown = _add_context(chunk, chosen, is_subject=lambda _: is_best)
    if is_best and not rows:
        shown.update(
            *(_find_passage(chunk, position) for position in near[:_MAX_PASSAGES] if _is_part(chunk, position))
        )
    shown = _fill_gaps(chunk, shown)
    rarest = {position: find_rarest(fold_sentence(chunk, position), query) for position in shown}
    marks = {position: word.start() for position, word in rarest.items() if word is not None}
    return _make_snippets(chunk, shown, chosen, similarities, marks), len(similarities.keys() - shown)


def choose_passages(
    chunks: Sequence[Chunk],
    similarities: Mapping[str, Mapping[str, Mapping[int, float]]],
    held: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> dict[str, tuple[Snippet, ...]]:
    """Choose the passages of chunks that bear on queries, and rows of tables.

    Each chunk that is not far from every query has its best new passage first; then come the best for each query in
    turn.

    Args:
        chunks: The chunks.
        similarities: By query, chunk id and position, the cosine similarity of every sentence that has a vector.
        held: By chunk id, the positions of sentences that the reader has seen.

    Returns:
        What to show, by chunk id; nothing of chunks that are far from every query.
    """
    # A comma may stand within a label, or between what is looked for.
    rows = {chunk.id: find_rows(chunk, [*similarities, " ".join(similarities)]) for chunk in chunks}
    chosen = {chunk_id: set(positions) for chunk_id, positions in rows.items()}
    shown = {chunk_id: set(positions) for chunk_id, positions in rows.items()}
    known = {chunk.id: set(held.get(chunk.id, ())) for chunk in chunks}
    room = min(_PASSAGES + _PASSAGE * len(similarities), int(_PASSAGES_SHARE * sum(len(c.text) for c in chunks)))
    ranked = [_rank_sentences(chunks, rated, query) for query, rated in similarities.items()]
    turns = [place for places in zip_longest(*ranked) for place in places if place is not None]
    firsts: dict[str, tuple[Chunk, int]] = {}
    for chunk, position in turns:
        if position not in known[chunk.id]:
            firsts.setdefault(chunk.id, (chunk, position))
    for chunk, position in (*firsts.values(), *turns):
        if room < 0:
            break
        new = {position} if rows[chunk.id] else set(_find_passage(chunk, position))
        room -= sum(len(chunk.sentence_text(p)) for p in new - shown[chunk.id] - known[chunk.id])
        chosen[chunk.id].add(position)
        shown[chunk.id] |= new
    found = {}
    for chunk in chunks:
        new = (_add_context(chunk, chosen[chunk.id]) | shown[chunk.id]) - known[chunk.id]
        new = _fill_gaps(chunk, new) - known[chunk.id]
        found[chunk.id] = _make_snippets(chunk, new, chosen[chunk.id], {}, {}, longest=_PASSAGES)
    return found


def choose_documents(chunk: Chunk, document_ids: Collection[str]) -> tuple[Snippet, ...]:
    """Show some of the documents in a chunk in full."""
    sections = [section for section in chunk.sections if section.document_id in document_ids]
    shown = {position for section in sections for position in _find_positions(chunk, section)}
    return _make_snippets(chunk, shown, shown, {}, {}, longest=len(chunk.text))


def _rank_sentences(
    chunks: Sequence[Chunk], similarities: Mapping[str, Mapping[int, float]], query: str
) -> list[tuple[Chunk, int]]:
    """Return the sentences that bear on a query, the best first."""
    rated = {
        (number, position): value
        for number, chunk in enumerate(chunks)
        for position, value in _add_rare_words(chunk, similarities.get(chunk.id, {}), query).items()
    }
    nearest = max((value for found in similarities.values() for value in found.values()), default=0.0)
    least = nearest - _PASSAGES_FALLING_OFF
    best = sorted((place for place in rated if rated[place] >= least), key=lambda place: (-rated[place], place))
    return [(chunks[number], position) for number, position in best]


def _add_rare_words(chunk: Chunk, similarities: Mapping[int, float], query: str) -> dict[int, float]:
    """Raise the similarity of sentences with words of a query that few sentences of the chunk have.

    A document's own title does not count. If the query has it, the sentences that do without are raised, too.
    """
    similarities = {p: value for p, value in similarities.items() if p < len(chunk.sentences)}  # or it has changed
    words = {p: set(list_words(chunk.sentence_text(p))) for p in range(len(chunk.sentences))}
    wanted = list_words(query)
    holding = {word: [p for p in words if word in words[p]] for word in wanted}
    rare = {word: found for word, found in holding.items() if len(found) <= _MAX_RARE}
    raised = {}
    for position, similarity in similarities.items():
        title = chunk.section_at(chunk.sentences[position].start).title
        bare, known = set(list_words(bare_title(title))), set(list_words(title))
        is_meant = bool(bare) and bare.issubset(wanted) and bare.isdisjoint(words[position])
        count = sum(position in found for word, found in rare.items() if word not in known)
        raised[position] = similarity + _RARE_WORD * min(2, count + is_meant)
    return raised


def find_rarest(text: str, query: str) -> re.Match[str] | None:
    """Return the first place in a text of that word of a query that it has least often; None if it has none."""
    words = list_words(query)
    found = [match for match in re.finditer(r"[^\W\d_]{3,}", text) if match[0].lower() in words]
    counts = Counter(match[0].lower() for match in found)
    # Of words that are as rare, a long one tells more.
    return min(found, key=lambda match: (counts[match[0].lower()], -len(match[0])), default=None)


def _is_part(chunk: Chunk, position: int) -> bool:
    """Return whether a sentence belongs to a document that goes on in other chunks."""
    return not chunk.section_at(chunk.sentences[position].start).whole


def _find_passage(chunk: Chunk, position: int) -> range:
    """Return the positions of a sentence, the one before it, and those after it that speak on, in the same document.

    These are the next two; after one that announces a list, five more. The one before it is left out if it refers to
    yet another and this one does not.
    """
    inside = next(inside for section in chunk.sections if position in (inside := _find_positions(chunk, section)))
    end = position + 3
    for at in range(position, min(end, inside.stop)):
        if _ANNOUNCES.search(fold_sentence(chunk, at)):
            end = at + 6
    start = position - 1
    if inside.start < start and _lacks_subject(chunk, start) and not _lacks_subject(chunk, position):
        start = position
    return range(max(start, inside.start), min(end, inside.stop))


def _lacks_subject(chunk: Chunk, position: int) -> bool:
    """Return whether a sentence refers to something named before it."""
    return bool(_WITHOUT_SUBJECT.match(fold_sentence(chunk, position)))


def _rate_sentence(chunk: Chunk, position: int, keywords: Collection[str]) -> int:
    """Rate what a sentence says of keywords.

    A row labelled with one, or a sentence that begins with one, is about it (2); other sentences tell something (1);
    headings, questions and other rows do not.
    """
    text = fold_sentence(chunk, position)
    if is_row(text):
        return 2 if any(is_row_of(text, keyword) for keyword in keywords) else 0
    if not chunk.sentences[position].embedded or _NO_STATEMENT.search(text):
        return 0
    return 2 if text.lower().startswith(tuple(fold(keyword).lower() for keyword in keywords)) else 1


def _find_keywords(chunk: Chunk, keywords: Sequence[str]) -> dict[str, list[tuple[int, int, int]]]:
    """Return where each keyword occurs: first and last sentence, and its place in the first one's lower-cased text.

    The text is as in the keyword file: white space folded, in lower case. Lower case can be longer than upper case, so
    offsets in one are not offsets in the other.
    """
    starts = [sentence.start for sentence in chunk.sentences]
    # Each sentence, with the space between it and the next where there is one.
    texts = [chunk.text[start:end] for start, end in pairwise([*starts, len(chunk.text)])]
    pieces = [fold(text) + " " * text[-1:].isspace() for text in texts]
    lowered = "".join(pieces).lower()
    ends = list(accumulate(len(piece.lower()) for piece in pieces))
    places: dict[str, list[tuple[int, int, int]]] = {}
    for keyword in keywords:
        needle = fold(keyword).lower()
        spans = places.setdefault(keyword, [])
        at = lowered.find(needle)
        while at >= 0:
            first, last = bisect_right(ends, at), bisect_right(ends, at + len(needle) - 1)
            if not spans or spans[-1][:2] != (first, last):
                spans.append((first, last, at - (ends[first - 1] if first else 0)))
            at = lowered.find(needle, at + len(needle))
    return places


def _place_words(chunk: Chunk, words: Collection[str]) -> dict[str, list[tuple[int, int, int]]]:
    """Return where a chunk has words, as `_find_keywords` does."""
    places: dict[str, list[tuple[int, int, int]]] = {word: [] for word in words}
    for position in range(len(chunk.sentences)) if words else ():
        for word, start, _ in place_words(fold_sentence(chunk, position)):
            if word in places and (not places[word] or places[word][-1][0] != position):
                places[word].append((position, position, start))
    return places


def _find_offset(chunk: Chunk, position: int, spans: Sequence[tuple[int, int, int]]) -> int:
    """Return the offset in a sentence, white space folded, of the first occurrence that reaches into it."""
    first, _, lowered = next(span for span in spans if span[0] <= position <= span[1])
    if first < position:
        return 0
    ends = list(accumulate(len(character.lower()) for character in fold_sentence(chunk, position)))
    return bisect_right(ends, lowered)


def _is_named(title: str, names: Collection[str]) -> bool:
    """Return whether a title is one of some names, or begins with one of several words."""
    return any(title == name or (" " in name and title.startswith(f"{name} ")) for name in names)


def _add_context(chunk: Chunk, chosen: set[int], is_subject: Callable[[Section], bool] = lambda _: False) -> set[int]:
    """Add sentences that save a read.

    These are: the rest of short documents that the search is about, or of which little is left; the sentences around
    one that starts without its subject; the one after a chosen one, if it continues with the same subject; and the
    header of a row's table.
    """
    shown = set(chosen)
    for section in chunk.sections:
        inside = _find_positions(chunk, section)
        here = chosen & set(inside)
        if not here:
            continue
        omitted = sum(len(chunk.sentence_text(position)) for position in inside if position not in chosen)
        if _is_short(chunk, section) and (is_subject(section) or omitted <= _SHORT_GAP // 2):
            shown.update(inside)
            continue
        for position in here:
            text = fold_sentence(chunk, position)
            if is_row(text):
                shown.update({find_header(chunk, position)} & set(inside))
            elif _lacks_subject(chunk, position):
                shown.update({position - 1, position + 1} & set(inside))
            elif position + 1 in inside and (
                not chunk.sentences[position].embedded  # a heading alone says nothing
                or _lacks_subject(chunk, position + 1)
            ):
                shown.add(position + 1)
    return shown


def _fill_gaps(chunk: Chunk, shown: Collection[int]) -> set[int]:
    """Add what is left out between two sentences of the same document, if it is short and has no rows of numbers."""
    filled = set(shown)
    for section in chunk.sections:
        for before, after in pairwise(sorted(filled.intersection(_find_positions(chunk, section)))):
            texts = [fold_sentence(chunk, position) for position in range(before + 1, after)]
            if sum(map(len, texts)) <= _SHORT_GAP and not any(map(is_row, texts)):
                filled.update(range(before + 1, after))
    return filled


def _is_short(chunk: Chunk, section: Section) -> bool:
    """Return whether a section is a whole, short document; its title, which is shown anyway, does not count."""
    text = chunk.text[section.start : section.end]
    first, _, rest = text.partition("\n")
    body = rest if is_title(first, section.title) else text
    return section.whole and len(body.strip()) <= _SHORT_DOCUMENT


def _find_positions(chunk: Chunk, section: Section) -> range:
    """Return the positions of a section's sentences."""
    starts = [sentence.start for sentence in chunk.sentences]
    first = bisect_right(starts, section.start - 1)
    return range(first, bisect_right(starts, section.end - 1))


def _make_snippets(
    chunk: Chunk,
    shown: set[int],
    chosen: set[int],
    similarities: Mapping[int, float],
    marks: Mapping[int, int],
    longest: int = _MAX_SENTENCE_CHARACTERS,
) -> tuple[Snippet, ...]:
    snippets = []
    for section in chunk.sections:
        inside = _find_positions(chunk, section)
        here = [position for position in inside if position in shown]
        if not here:
            continue
        complete = len(here) == len(inside)
        cut = _SHORT_DOCUMENT if complete and _is_short(chunk, section) else longest
        texts = [_shorten(fold_sentence(chunk, position), marks.get(position, 0), cut) for position in here]
        first = inside[0]
        if here[0] != first and is_title(chunk.sentence_text(first), section.title):
            first += 1  # the title is shown in front of the sentences anyway
        snippets.append(
            Snippet(
                document_id=section.document_id,
                title=section.title,
                sentences=tuple(
                    SnippetSentence(
                        position, text, position in chosen, similarities.get(position) if position in chosen else None
                    )
                    for position, text in zip(here, texts, strict=True)
                ),
                begins=here[0] == first,
                ends=here[-1] == inside[-1],
                heading="" if section.whole else find_heading(chunk, section, here[0]),
                whole=section.whole and complete and not any(CUT in text[:1] + text[-1:] for text in texts),
            )
        )
    return tuple(snippets)


def _shorten(text: str, at: int, longest: int) -> str:
    """Cut a very long sentence to the text around an offset."""
    if len(text) <= longest:
        return text
    start = max(0, min(at - longest // 3, len(text) - longest))
    end = start + longest
    if start > 0:
        start = text.find(" ", start, at) + 1 or start
    if end < len(text):
        space = text.rfind(" ", at + 1, end)
        end = space if space > end - 40 else end
    return f"{CUT if start > 0 else ''}{text[start:end].strip()}{CUT if end < len(text) else ''}"
