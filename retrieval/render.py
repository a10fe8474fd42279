"""Results as text for a language model: short, and with nothing left to guess."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from arag.retrieval.layout import CUT, is_title, name_place
from arag.retrieval.presentation import Shown
from arag.retrieval.types import Chunk, Hit, KeywordReport, KeywordResults, ReadResults, Snippet

_LEFT_OUT = "left out: other passages are closer, or shown above. A chunk read alone, without `about`, is shown whole."
READ_BEFORE = "Shown in full above."
_TELLING = 20  # chunks: another term in more of them does not lead to what was asked for
_CURRENCY = re.compile(r"\s*\|\s*\$\s*\|\s*|\s+\$\s*\|\s*")  # in a table's row, in a cell of its own
_PERCENT = re.compile(r"(?<=[\d)]) (?=%)")


def render_keywords(results: KeywordResults, shown: Shown) -> str:
    """Write a keyword search's results: what each keyword hits, then the chunks.

    Args:
        results: The results.
        shown: What is shown of their hits.
    """
    reports = "; ".join(_report(report) for report in results.keywords)
    if not results.hits:
        return f"{reports}.\nNo chunk holds any of these keywords."
    told = len(shown.hits) + len(shown.above) + len(shown.brief) + sum(map(len, shown.same.values()))
    number = f"The best {told} of {results.total:,} chunks" if told < results.total else "All"
    return _join(f"{reports}. {number}:", shown, results.hits)


def render_semantic(hits: Sequence[Hit], shown: Shown) -> str:
    """Write a semantic search's results.

    Args:
        hits: The hits.
        shown: What is shown of them.
    """
    if not hits:
        return "There are no sentences to search in."
    return _join("The nearest, by similarity:", shown, hits)


def _join(head: str, shown: Shown, hits: Sequence[Hit]) -> str:
    blocks = [head]
    titles: set[str] = set()  # of long documents, which are named once
    for hit in shown.hits:
        if not hit.snippets:
            blocks.append(f"[{hit.chunk_id}]")
            continue
        first, *others = hit.snippets
        packed = len(hit.document_ids) > 1
        is_new = bool(first.whole or first.document_id not in titles)
        titles.add(first.document_id)
        similarity = "" if hit.keyword_counts else f" ({hit.score:.2f})"
        lines = [f"[{hit.chunk_id}]{similarity} {_snippet(first, titled=is_new, packed=packed)}"]
        lines += [_snippet(other, packed=packed) for other in others]
        if same := shown.same.get(hit.chunk_id):
            lines.append(f"(the same text: {_list(same)})")
        blocks.append("\n".join(lines))
    if shown.above:
        blocks.append(f"Shown above: {_list(shown.above)}")
    if shown.brief:
        brief = [" ".join([f"[{hit.chunk_id}]", *map(_snippet, hit.snippets)]) for hit in shown.brief]
        blocks.append("\n".join(["In brief:", *brief]))
    if len(shown.above) == len(hits):
        blocks.append("Nothing new was found.")
    return "\n\n".join(blocks)


def render_chunks(
    results: ReadResults, read_chunks: Collection[str], passages: Mapping[str, Sequence[Snippet]] = MappingProxyType({})
) -> str:
    """Write full chunks, or passages of them, a notice for those read already, and what is wrong with unknown ids.

    Args:
        results: The chunks.
        read_chunks: Ids of chunks that were read already.
        passages: By chunk id, what to show of it instead of its full text.
    """
    blocks = []
    without: list[str] = []
    for chunk in results.chunks:
        if chunk.id in read_chunks:
            blocks.append(f"[{chunk.id}] {READ_BEFORE}")
        elif chunk.id in passages:
            packed = len(chunk.sections) > 1
            text = "\n".join(_snippet(snippet, packed=packed) for snippet in passages[chunk.id])
            if text:
                blocks.append(f"[{chunk.id}] {text}")
            else:
                without.append(chunk.id)
        else:
            blocks.append(_full(chunk, results.chunks_in_document))
    if without:
        blocks.append(f"{_list(without)}: {_LEFT_OUT}")
    for number, unknown in enumerate(results.unknown):
        block = f"[{unknown.chunk_id}] There is no chunk with this id."
        if unknown.closest:
            block += f" Ids look like {_list(unknown.closest)}; search results give them."
        elif number == 0:  # the later ones have no examples in any case
            block += " The index is empty."
        blocks.append(block)
    return "\n\n".join(blocks)


def _report(report: KeywordReport) -> str:
    if report.apart:
        return f"{report.keyword}: only apart, in {_list(report.apart)}"
    found = _chunks(report.chunks) if report.chunks else "none"
    notes = []
    if report.as_word is not None and 0 < report.as_word < report.chunks:
        notes.append(f"{report.as_word:,} as a word")
    if report.searched_as is not None:
        count = next(term.chunks for term in report.closest if term.text == report.searched_as)
        notes.append(f"and {_chunks(count)} as {report.searched_as}" if report.chunks else _chunks(count))
        found = found if report.chunks else f"spelled {report.searched_as}"
    elif telling := [term for term in report.closest if term.respelled or term.chunks <= _TELLING]:
        terms = ", ".join(f"{term.text} ({_chunks(term.chunks)})" for term in telling)
        notes.append(f"{'similar' if report.chunks else 'closest'}: {terms}")
    return f"{report.keyword}: {found}" + (f" ({'; '.join(notes)})" if notes else "")


def _chunks(count: int) -> str:
    return f"{count:,} chunk{'' if count == 1 else 's'}"


def _list(chunk_ids: Sequence[str]) -> str:
    return ", ".join(f"[{chunk_id}]" for chunk_id in chunk_ids)


def _snippet(snippet: Snippet, *, titled: bool = True, packed: bool = False) -> str:
    parts: list[str] = []
    before: int | None = None
    for sentence in snippet.sentences:
        gap = not snippet.begins if before is None else sentence.position != before + 1
        before = sentence.position
        if is_title(sentence.text, snippet.title) or sentence.text == snippet.heading:  # shown in front already
            continue
        if gap and not sentence.text.startswith(CUT):
            parts.append(CUT)
        parts.append(_tidy_row(sentence.text))
    if not snippet.ends and not (parts and parts[-1].endswith(CUT)):
        parts.append(CUT)
    name = snippet.heading or _name(snippet.title * titled, snippet.topics)
    if packed:  # the chunk's id names another document: with this id, the document alone can be read
        name = f"(document {snippet.document_id}) {name}".strip()
    if name and not any(part != CUT for part in parts):  # the title alone matched
        return name
    return f"{name}: {' '.join(parts)}" if name else " ".join(parts)


def _name(title: str, topics: Sequence[str]) -> str:
    """Return a document's title and what its part is about, as far as they are known."""
    about = ", ".join(topics)
    return f"{title} ({about})" if title and about else title or about


def _tidy_row(text: str) -> str:
    """Join what belongs together in a table's row: currency, numbers and percent signs."""
    return _PERCENT.sub("", _CURRENCY.sub(" | $", text)) if " | " in text else text


def _full(chunk: Chunk, chunks_in_document: dict[str, int]) -> str:
    header = [f"[{chunk.id}]"]
    first = chunk.sections[0]
    if len(chunk.sections) == 1:
        place = name_place(chunk.ordinal + 1, chunks_in_document.get(chunk.document_id), chunk.pages)
        header.append(", ".join(filter(None, [first.title, place])))
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
