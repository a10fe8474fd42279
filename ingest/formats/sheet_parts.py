"""What lies beside the cells of a sheet of Excel: comments, boxes of text, charts, embedded documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lxml import etree

from arag.ingest.formats.drawings import drawing_texts, paragraphs
from arag.ingest.formats.package import Package, attribute, local_name
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

_EMBEDDED = ("oleObject", "package")


def read_beside(package: Package, part: str, persons: Sequence[str], lost: Counter[str]) -> Iterator[str]:
    """Yield the texts of comments, boxes and charts of a sheet.

    Args:
        package: The workbook.
        part: The sheet's part.
        persons: The parts that name the authors of threads of comments.
        lost: Counts what is not read.
    """
    roots: dict[str, list[tuple[str, etree._Element]]] = {}
    for relation in package.relations(part).values():
        if relation.kind in _EMBEDDED:
            lost["embedded document"] += 1
        elif relation.kind in {"comments", "threadedComment", "drawing"}:
            root = package.xml(relation.part)
            if root is not None:
                roots.setdefault(relation.kind, []).append((relation.part, root))
    for drawing_part, drawing in roots.get("drawing", []):
        yield from _read_drawing(package, drawing_part, drawing, lost)
    threads = [root for _, root in roots.get("threadedComment", [])]
    names = _read_persons(package, persons) if threads else {}
    in_threads: set[str] = set()
    for root in threads:
        for comment in root.iter("{*}threadedComment"):
            cell = comment.get("ref", "")
            in_threads.add(cell)
            yield _shown_comment(cell, names.get(comment.get("personId", ""), ""), comment.findtext("{*}text", ""))
    for _, root in roots.get("comments", []):
        yield from _read_comments(root, in_threads)


def _read_persons(package: Package, parts: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for part in parts:
        root = package.xml(part)
        for person in () if root is None else root.iter("{*}person"):
            names[person.get("id", "")] = person.get("displayName", "")
    return names


def _read_comments(root: etree._Element, in_threads: set[str]) -> Iterator[str]:
    """Yield the notes on cells; a thread has a note, too, for programs that do not know threads."""
    names_by_id: dict[str, str] = {}
    for number, name in enumerate(root.iterfind("{*}authors/{*}author")):
        names_by_id[str(number)] = name.text or ""
    for comment in root.iter("{*}comment"):
        cell = comment.get("ref", "")
        if cell in in_threads:
            continue
        author = names_by_id.get(comment.get("authorId", ""), "")
        parts = [element.text or "" for element in comment.iterfind("{*}text//{*}t")]
        text = "".join(parts).removeprefix(f"{author}:")  # Excel begins notes with their author
        yield _shown_comment(cell, author, text)


def _shown_comment(cell: str, author: str, text: str) -> str:
    return f"Comment on {cell} by {author or 'an unknown author'}: {collapse_whitespace(text)}"


def _read_drawing(package: Package, part: str, root: etree._Element, lost: Counter[str]) -> Iterator[str]:
    """Yield the boxes of a drawing, and the titles of its charts: the sheets have the values."""
    relations = package.relations(part)
    for element in root.iter("{*}txBody", "{*}chart", "{*}relIds"):
        name = local_name(element)
        if name == "txBody":
            yield from map(escape_structure, paragraphs(element))
            continue
        relation = relations.get(attribute(element, "id") or attribute(element, "dm"))
        drawing = None if relation is None else package.xml(relation.part)
        if drawing is None:
            lost["chart" if name == "chart" else "diagram"] += 1
        else:
            yield from drawing_texts(drawing, with_values=False)
