"""What lies beside the cells of a sheet of Excel: comments, boxes of text, charts, embedded documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.drawings import drawing_noun, drawing_reference, drawing_texts, paragraphs
from arag.ingest.formats.package import Package, local_name, unescape
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

# Kinds of parts to which a sheet refers.
_EMBEDDED = {"oleObject", "package"}
_READ = {"comments", "threadedComment", "drawing"}


def read_beside(package: Package, part: str, persons: Sequence[str], lost: Counter[str]) -> Iterator[str]:
    """Yield the texts of comments, boxes and charts of a sheet.

    Args:
        package: The workbook.
        part: The sheet's part.
        persons: The parts that name the authors of threads of comments.
        lost: Counts what is not read.
    """
    found = _find_parts(package, part, lost)
    for drawing_part, drawing in found.drawings.items():
        yield from _read_drawing(package, drawing_part, drawing, lost)
    in_threads: set[str] = set()
    if found.threads:
        names = _read_persons(package, persons)
        for root in found.threads:
            yield from _read_thread(root, names, in_threads)
    for root in found.comments:
        yield from _read_comments(root, in_threads)


@dataclass
class _Parts:
    """The XML of the parts beside a sheet."""

    drawings: dict[str, etree._Element] = field(default_factory=dict)  # by their names
    threads: list[etree._Element] = field(default_factory=list)
    comments: list[etree._Element] = field(default_factory=list)


def _find_parts(package: Package, part: str, lost: Counter[str]) -> _Parts:
    found = _Parts()
    for relation in package.relations(part).values():
        if relation.kind in _EMBEDDED:
            lost["embedded document"] += 1
        if relation.kind not in _READ:
            continue
        root = package.xml(relation.part)
        if root is None:
            continue
        match relation.kind:
            case "drawing":
                found.drawings[relation.part] = root
            case "threadedComment":
                found.threads.append(root)
            case _:
                found.comments.append(root)
    return found


def _read_persons(package: Package, parts: Sequence[str]) -> dict[str, str]:
    """Return the names of the authors of threads, by their ids."""
    names: dict[str, str] = {}
    for part in parts:
        root = package.xml(part)
        if root is None:
            continue
        for person in root.iter("{*}person"):
            person_id = person.get("id", "")
            names[person_id] = person.get("displayName", "")
    return names


def _read_thread(root: etree._Element, names: Mapping[str, str], in_threads: set[str]) -> Iterator[str]:
    """Yield the comments of threads, and note their cells in `in_threads`."""
    for comment in root.iter("{*}threadedComment"):
        cell = comment.get("ref", "")
        in_threads.add(cell)
        yield _shown_comment(
            cell=cell,
            author=names.get(comment.get("personId", ""), ""),
            text=comment.findtext("{*}text", ""),
        )


def _read_comments(root: etree._Element, in_threads: set[str]) -> Iterator[str]:
    """Yield the notes on cells; a thread has a note, too, for programs that do not know threads."""
    names: dict[str, str] = {}
    for number, name in enumerate(root.iterfind("{*}authors/{*}author")):
        names[str(number)] = name.text or ""
    for comment in root.iter("{*}comment"):
        cell = comment.get("ref", "")
        if cell in in_threads:
            continue
        author = names.get(comment.get("authorId", ""), "")
        text = unescape("".join(comment.itertext("{*}t", with_tail=False)))
        yield _shown_comment(
            cell=cell,
            author=author,
            text=text.removeprefix(f"{author}:"),  # Excel begins notes with their author
        )


def _shown_comment(cell: str, author: str, text: str) -> str:
    return f"Comment on {cell} by {author or 'an unknown author'}: {collapse_whitespace(text)}"


def _read_drawing(package: Package, part: str, root: etree._Element, lost: Counter[str]) -> Iterator[str]:
    """Yield the boxes of a drawing, and the titles of its charts: the sheets have the values."""
    relations = package.relations(part)
    for element in root.iter("{*}txBody", "{*}chart", "{*}relIds"):
        if local_name(element) == "txBody":
            yield from map(escape_structure, paragraphs(element))
            continue
        relation = relations.get(drawing_reference(element))
        drawing = package.xml(relation.part) if relation else None
        if drawing is None:
            lost[drawing_noun(element)] += 1
        else:
            yield from drawing_texts(drawing, with_values=False)
