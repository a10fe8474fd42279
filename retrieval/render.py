"""Results as text for a language model: short, and with nothing left to guess."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from arag.retrieval.snippets import is_title
from arag.retrieval.types import (
    Chunk,
    Hit,
    KeywordReport,
    KeywordResults,
    ReadResults,
    SemanticResults,
    Snippet,
)

_GAP = "…"
READ_BEFORE = "This chunk has been read before."


def render_keywords(results: KeywordResults, read_chunks: Collection[str]) -> str:
    """Write a keyword search's results: what each keyword hits, then the chunks.

    Args:
        results: The results.
        read_chunks: Ids of chunks that were read already.
    """
    shown = {keyword.lower() for hit in results.hits for keyword in hit.keyword_counts}
    reports = "; ".join(_report(report, shown) for report in results.keywords)
    if not results.hits:
        return f"{reports}.\nNo chunk holds any of these keywords."
    number = f"the best {len(results.hits)}" if len(results.hits) < results.total else "all shown"
    blocks = [f"{reports}.\n{_chunks(results.total)} in all, {number}, best first:"]
    blocks += [_hit(hit, f"score {hit.score:.0f}", read_chunks) for hit in results.hits]
    return "\n\n".join(blocks)


def render_semantic(results: SemanticResults, read_chunks: Collection[str]) -> str:
    """Write a semantic search's results, with the similarity of each chunk.

    Args:
        results: The results.
        read_chunks: Ids of chunks that were read already.
    """
    if not results.hits:
        return "The index holds no sentences to search in."
    blocks = [f"The nearest {_chunks(len(results.hits))}, best first:"]
    blocks += [_hit(hit, f"similarity {hit.score:.2f}", read_chunks) for hit in results.hits]
    return "\n\n".join(blocks)


def render_chunks(results: ReadResults, read_chunks: Collection[str]) -> str:
    """Write full chunks, a notice in place of those read already, and what is wrong with unknown ids.

    Args:
        results: The chunks.
        read_chunks: Ids of chunks that were read already.
    """
    blocks = [
        f"[{chunk.id}] {READ_BEFORE}" if chunk.id in read_chunks else _full(chunk, results.chunks_in_document)
        for chunk in results.chunks
    ]
    for number, unknown in enumerate(results.unknown):
        block = f"[{unknown.chunk_id}] There is no chunk with this id."
        if unknown.closest:
            ids = ", ".join(f"[{chunk_id}]" for chunk_id in unknown.closest)
            block += f" Ids look like {ids}; search results give them."
        elif number == 0:  # the later ones have no examples in any case
            block += " The index is empty."
        blocks.append(block)
    return "\n\n".join(blocks)


def snippet_text(hits: Sequence[Hit]) -> str:
    """Return the sentences that results show, for counting their tokens."""
    return "\n".join(s.text for hit in hits for snippet in hit.snippets for s in snippet.sentences)


def _report(report: KeywordReport, shown: Collection[str]) -> str:
    found = _chunks(report.chunks) if report.chunks else "none"
    if report.searched_as is not None:
        count = next(term.chunks for term in report.closest if term.text == report.searched_as)
        return f"{report.keyword}: none, searched as {report.searched_as} ({_chunks(count)})"
    notes = []
    if report.chunks and report.keyword.lower() not in shown:
        notes.append("not among those shown")
    if report.closest:
        terms = ", ".join(f"{term.text} ({_chunks(term.chunks)})" for term in report.closest)
        notes.append(f"{'also' if report.chunks else 'closest'}: {terms}")
    if report.titled:
        notes.append("title of " + ", ".join(f"[{t.chunk_id}] {t.title}" for t in report.titled))
    return f"{report.keyword}: {found}" + (f" ({'; '.join(notes)})" if notes else "")


def _chunks(count: int) -> str:
    return f"{count:,} chunk{'' if count == 1 else 's'}"


def _hit(hit: Hit, score: str, read_chunks: Collection[str]) -> str:
    notes = [score]
    if hit.keyword_counts:
        notes.append(", ".join(f"{keyword} ×{count}" for keyword, count in hit.keyword_counts.items()))
    if hit.chunk_id in read_chunks:
        notes.append("already read")
    elif hit.whole:
        notes.append("whole chunk shown")
    lines = [f"[{hit.chunk_id}] {'; '.join(notes)}"]
    lines += [_snippet(snippet) for snippet in hit.snippets]
    if hit.more and hit.chunk_id not in read_chunks:
        lines.append(f"({hit.more} more matching sentence{'' if hit.more == 1 else 's'} in this chunk)")
    return "\n".join(lines)


def _snippet(snippet: Snippet) -> str:
    parts: list[str] = []
    before: int | None = None
    for sentence in snippet.sentences:
        gap = not snippet.begins if before is None else sentence.position != before + 1
        before = sentence.position
        if is_title(sentence.text, snippet.title):  # the title is shown in front already
            continue
        if gap and not sentence.text.startswith(_GAP):
            parts.append(_GAP)
        parts.append(sentence.text)
    if not snippet.ends and not (parts and parts[-1].endswith(_GAP)):
        parts.append(_GAP)
    text = " ".join(parts)
    return f"{snippet.title}: {text}" if snippet.title else text


def _full(chunk: Chunk, chunks_in_document: dict[str, int]) -> str:
    header = [f"[{chunk.id}]"]
    first = chunk.sections[0]
    if len(chunk.sections) == 1:
        total = chunks_in_document.get(chunk.document_id, 1)
        details = [first.title] if first.title else []
        if total > 1:
            details.append(f"part {chunk.ordinal + 1} of {total}")
        if chunk.pages is not None:
            start, end = chunk.pages
            details.append(f"page {start}" if start == end else f"pages {start}-{end}")
        header.append(", ".join(details))
        return f"{' '.join(filter(None, header))}\n{_without_title(chunk.text.strip(), first.title)}"
    sections = []
    for section in chunk.sections:
        text = chunk.text[section.start : section.end].strip()
        sections.append(f"{section.title}\n{_without_title(text, section.title)}" if section.title else text)
    return f"{header[0]} {len(sections)} documents\n" + "\n\n".join(sections)


def _without_title(text: str, title: str) -> str:
    """Drop a first line that is the title, which is shown in front already."""
    first, _, rest = text.partition("\n")
    return rest.strip() if rest.strip() and is_title(first, title) else text
