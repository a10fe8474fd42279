"""The chunks of a run, for a page: those that the answer cites, and those that were read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import AnyMessage, ToolMessage

from arag.pages.calls import read_ids, read_results
from arag.retrieval.types import Hit, KeywordResults, SemanticResults, Snippet

_FULL_TEXTS = "\n\nFull texts:\n\n"


@dataclass(frozen=True)
class Source:
    """A chunk that the answer cites."""

    number: int
    chunk_id: str
    titles: list[str]
    status: str
    """read, seen, unseen or unknown."""


@dataclass
class Chunk:
    """A chunk that was read or is cited, with what the conversation's results show of it."""

    chunk_id: str
    source: Source | None = None
    read: bool = False
    """Whether it was shown in full in this conversation."""
    steps: Sequence[int] = ()
    """The steps for the last question that did so."""
    title: str = ""
    text: str = ""
    joint: bool = False
    """Whether the text is that of several chunks, which cannot be told apart."""
    hits: list[Hit] = field(default_factory=list)
    read_tokens: int | None = None

    @property
    def heading(self) -> str:
        """Its title, as far as it is known."""
        titles = (snippet.title for hit in self.hits for snippet in hit.snippets)
        return self.title or next(filter(None, titles), "")

    @property
    def tokens(self) -> int | None:
        """How long it is."""
        return self.hits[0].tokens if self.hits else self.read_tokens

    @property
    def snippets(self) -> list[Snippet]:
        """What several searches showed of it, each sentence once, in the order of the text."""
        shown: dict[str, list[Snippet]] = {}
        for snippet in (snippet for hit in self.hits for snippet in hit.snippets):
            shown.setdefault(snippet.document_id, []).append(snippet)
        return [_join(some) for some in shown.values()]


def _join(snippets: Sequence[Snippet]) -> Snippet:
    sentences = {sentence.position: sentence for snippet in snippets for sentence in snippet.sentences}
    return Snippet(
        document_id=snippets[-1].document_id,
        title=snippets[-1].title,
        sentences=tuple(sentences[position] for position in sorted(sentences)),
        begins=any(snippet.begins for snippet in snippets),
        ends=any(snippet.ends for snippet in snippets),
        whole=any(snippet.whole for snippet in snippets),
    )


def chunks_of(
    messages: Iterable[AnyMessage],
    read_chunks: Iterable[str],
    sources: Sequence[Source],
    reads: Mapping[int, Collection[str]],
) -> list[Chunk]:
    """Return the chunks that are cited or were read.

    Args:
        messages: The conversation, whose results hold the texts.
        read_chunks: Chunks that were read, as the state has them; a conversation may hold their texts no more.
        sources: The citations.
        reads: The chunks that each step for the last question has read.

    Returns:
        The chunks: first those that the answer cites, in its order.
    """
    seen: dict[str, Chunk] = {}
    read = list(read_chunks)
    for message in messages:
        if isinstance(message, ToolMessage):
            _note_chunks(message, seen)
            read += read_ids(message, "new_chunks")
    by_id = {source.chunk_id: source for source in sources}
    return [
        replace(
            seen.get(chunk_id) or Chunk(chunk_id),
            source=by_id.get(chunk_id),
            read=chunk_id in read,
            steps=[step for step, ids in reads.items() if chunk_id in ids],
        )
        for chunk_id in dict.fromkeys([*by_id, *read])
    ]


def _note_chunks(message: ToolMessage, seen: dict[str, Chunk]) -> None:
    """Add what a result shows of chunks."""
    results = read_results(message)
    texts: str = message.text
    unknown: list[str] = []
    if isinstance(results, KeywordResults | SemanticResults):
        for hit in results.hits:
            seen.setdefault(hit.chunk_id, Chunk(hit.chunk_id)).hits.append(hit)
        _, _, texts = texts.partition(_FULL_TEXTS)
    elif results is not None:
        for read in results.chunks:
            seen.setdefault(read.chunk_id, Chunk(read.chunk_id)).read_tokens = read.tokens
        unknown = [each.chunk_id for each in results.unknown]
    new = read_ids(message, "new_chunks")
    if not texts or not new:
        return
    blocks = _cut_blocks(texts, [*read_ids(message, "chunk_ids"), *unknown])
    for chunk_id in new:
        chunk = seen.setdefault(chunk_id, Chunk(chunk_id))
        title, _, text = blocks.get(chunk_id, "").partition("\n")
        if text:
            chunk.title, chunk.text, chunk.joint = title.strip(), text, False
        elif not chunk.text:
            chunk.text, chunk.joint = texts, True


def _cut_blocks(text: str, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Cut the text of several chunks, each of which begins with its id in brackets.

    A document may hold such a beginning itself: then nobody can tell which is the real one, and nothing is returned.
    """
    text = f"\n\n{text}"
    marks = [f"\n\n[{chunk_id}]" for chunk_id in dict.fromkeys(chunk_ids)]
    starts = [text.find(mark) for mark in marks]
    if any(text.count(mark) != 1 for mark in marks) or starts != sorted(starts):
        return {}
    ends = [*starts[1:], len(text)]
    return {mark[3:-1]: text[a + len(mark) : b] for mark, a, b in zip(marks, starts, ends, strict=True)}
