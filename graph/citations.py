"""Citations of an answer, checked against what was really seen."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from arag.graph.state import Citation
from arag.retrieval.index import Index

_BRACKETED = re.compile(r"\[([^\[\]\n]{1,400})\]")
_SEPARATORS = re.compile(r"[,;]")
_LIKE_A_CHUNK_ID = re.compile(r"(?!\d{1,2}:\d{2}$).+:\d+$")  # a time of day is none


def parse_citations(answer: str, index: Index, seen: Collection[str], read: Collection[str]) -> list[Citation]:
    """Find the chunk ids that an answer names in square brackets.

    An id that the index holds is a citation, and so is anything of the form `<document id>:<number>`: the latter
    may be made up, and is then listed as not seen and without a document.

    Args:
        answer: The answer.
        index: The index.
        seen: Ids of chunks that were shown to the model.
        read: Ids of chunks that were shown in full.

    Returns:
        The citations in the order of the answer, each once.
    """
    citations: dict[str, Citation] = {}
    for name in _names(answer, index, seen):
        if name in citations:
            continue
        chunk = index.get(name)
        if chunk is None and not _LIKE_A_CHUNK_ID.match(name):
            continue
        sections = chunk.sections if chunk is not None else ()
        citations[name] = Citation(
            chunk_id=name,
            document_ids=[section.document_id for section in sections],
            titles=[section.title for section in sections if section.title],
            seen=name in seen,
            read=name in read,
        )
    return list(citations.values())


def _names(answer: str, index: Index, seen: Collection[str]) -> Iterator[str]:
    """Yield what stands in brackets, in order; ids that hold brackets themselves are known from `seen`."""
    found: list[tuple[int, str]] = []
    special = sorted((i for i in seen if re.search(r"[\[\],;]", i)), key=len, reverse=True)
    for chunk_id in special:
        at = answer.find(f"[{chunk_id}]")
        if at >= 0:
            found.append((at, chunk_id))
            answer = answer.replace(f"[{chunk_id}]", " " * (len(chunk_id) + 2))
    for match in _BRACKETED.finditer(answer):
        whole = match.group(1).strip()
        parts = [whole] if index.get(whole) else [part.strip() for part in _SEPARATORS.split(whole)]
        found += [(match.start() + i, part) for i, part in enumerate(parts) if part]
    for _, name in sorted(found):
        yield name
