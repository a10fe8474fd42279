"""Manuals in DocBook and help in Mallard: each is read like the web page that is made of it."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from lxml import etree

from arag.ingest.formats.content import Content
from arag.ingest.formats.entities import parse_with_entities
from arag.ingest.formats.html import html_content
from arag.ingest.formats.kinds import is_manual
from arag.ingest.formats.package import DamagedError, attribute, local_name
from arag.text.normalise import collapse_whitespace, shorten

_Names: TypeAlias = "dict[Any, str]"  # of all elements, without namespaces

_SECTIONS = frozenset(
    "book part article chapter appendix preface section sect1 sect2 sect3 sect4 sect5 simplesect refentry reference "
    "refsect1 refsect2 refsect3 refsection refsynopsisdiv glossary glossdiv bibliography bibliodiv qandaset qandadiv "
    "set dedication colophon page".split()
)
_INFO = re.compile(r"\w*info")
_LEFT_OUT = frozenset(
    "titleabbrev indexterm index toc remark comment credit revhistory colspec refmeta legalnotice imageobject "
    "videoobject audioobject alt".split()
)
# The elements of web pages that look the same; what is not named is a part of a line.
_ELEMENTS = {
    **dict.fromkeys("para simpara p subtitle attribution".split(), "p"),
    **dict.fromkeys("itemizedlist list simplelist calloutlist".split(), "ul"),
    **dict.fromkeys("orderedlist procedure substeps steps".split(), "ol"),
    **dict.fromkeys("listitem step item member callout".split(), "li"),
    **dict.fromkeys("variablelist glosslist terms".split(), "dl"),
    **dict.fromkeys("programlisting screen literallayout synopsis address".split(), "pre"),
    **dict.fromkeys("table informaltable".split(), "table"),
    **dict.fromkeys("tgroup tbody thead tfoot".split(), "tbody"),
    **dict.fromkeys("row tr".split(), "tr"),
    **dict.fromkeys("entry td".split(), "td"),
    **dict.fromkeys(
        "note tip warning important caution figure informalfigure example informalexample listing formalpara "
        "mediaobject screenshot caption blockquote varlistentry glossentry sidebar abstract cmdsynopsis funcsynopsis "
        "equation informalequation qandaentry question answer biblioentry bibliomixed when".split(),
        "div",
    ),
    "refnamediv": "h1",
    "glossdef": "dd",
    "term": "dt",
    "th": "th",
    "superscript": "sup",
    "subscript": "sub",
}
_AROUND_LISTINGS = ("listing", "page", "section", "item", "figure", "example", "note", "when")  # in Mallard
_IN = {
    ("varlistentry", "listitem"): "dd",
    ("terms", "item"): "dd",
    ("glossentry", "glossterm"): "dt",
    **dict.fromkeys(product(_AROUND_LISTINGS, ["code"]), "pre"),
}
_TITLES_IN = {"terms": "dt", "table": "caption", "informaltable": "caption"}
_SEPARATORS = {"keycombo": "+", "keyseq": "+", "menuchoice": " > ", "guiseq": " > ", "refnamediv": ", "}  # of parts
_BEFORE = {"shortcut": " ", "refpurpose": " – "}  # in place of the separator
_AROUND = {"quote": ("“", "”"), "footnote": (" (", ")"), "shortcut": ("(", ")")}
_LINKS = {"link": ("href", "xref", "linkend"), "ulink": ("url",), "xref": ("linkend",)}
_PICTURES = ("{*}media", "{*}inlinemediaobject")
_WORDS_BESIDE_PICTURES = etree.XPath(
    ".//text()[not(ancestor::*[local-name() = 'media' or local-name() = 'inlinemediaobject'])]", smart_strings=False
)
_KEPT = ("rowspan", "colspan", "type", "start")  # attributes of tables and lists
_NUMBERED = {"orderedlist": {"orderedlist"}, "substeps": {"substeps", "procedure"}}  # and what they are numbered in
_NUMBERS = ("arabic", "loweralpha", "lowerroman", "upperalpha", "upperroman")  # of lists in each other
_PARAGRAPHS = ("para", "simpara")
_MAX_LEVEL = 6
_MAX_DIGITS = 4  # of the number of rows that a cell spans
_MAX_NAMES = 80  # characters of names of entities in a note
_TITLES = etree.XPath("//*[contains(' title term glossterm refname ', concat(' ', local-name(), ' '))][not(@type)]")
_ABOUT = re.compile(r"\w*info|refnamediv")  # what has a title is around it
_MAX_FILES = 1_000  # of a folder, in which titles are looked for


def read_manual(path: Path) -> Content:
    """Read a manual, or a part of one, without what it says about its making.

    Raises:
        DamagedError: It is not well-formed.
    """
    root, undefined = parse_with_entities(path)
    _drop_pictures_of_titles(root)
    names: _Names = {}
    for element in root.iter(etree.Element):
        names[element] = local_name(element)
    if names[root] in _LEFT_OUT:  # a part in a file of its own, such as a notice
        names[root] = "section"
    for link in root.iter(*map("{{*}}{}".format, _LINKS)):
        if not "".join(link.itertext()).strip():
            link.text = _link_text(link, path)
    for element in list(names):
        _mark_up(element, names)
    for element in names:
        kept = {key: element.get(key) for key in _KEPT if element.get(key)}
        element.attrib.clear()
        element.attrib.update(kept)
    page = etree.Element("html")
    etree.SubElement(page, "body").append(root)
    content = html_content(etree.tostring(page, method="html", encoding="unicode"))
    if not undefined:
        return content
    shown = shorten(", ".join(undefined), _MAX_NAMES)
    lost = f"texts of undefined entities, shown by name or left out ({shown})"
    return replace(content, left_out=(*content.left_out, lost))


def _drop_pictures_of_titles(root: etree._Element) -> None:
    """Drop what is said in place of a picture, such as a logo, from titles that have words of their own."""
    for title in root.iter("{*}title"):
        if not any(map(str.strip, _WORDS_BESIDE_PICTURES(title))):
            continue
        for picture in list(title.iter(*_PICTURES)):
            tail = picture.tail
            picture.clear()
            picture.tail = tail


def _mark_up(element: etree._Element, names: _Names) -> None:
    """Make an element one of a web page; those around it are already."""
    name = names[element]
    if name in _SEPARATORS and len(element):
        _join(element, names)
    if name in _AROUND:
        _put_around(element, *_AROUND[name], names)
    if name == "entry":
        _show_spans(element, names)
    if name in _NUMBERED:
        _show_numbers(element, names)
    element.tag = _find_tag(element, names)


def _find_tag(element: etree._Element, names: _Names) -> str:
    name = names[element]
    parent = names.get(element.getparent(), "")
    if name in _LEFT_OUT:
        return "template"  # which is not shown
    if _INFO.fullmatch(name):
        _move_title_before(element, names)
        return "template"
    if name == "title":
        return _find_title_tag(element, parent, names)
    if (parent, name) == ("terms", "item"):
        _move_title_before(element, names)
    is_head = name == "entry" and names.get(element.getparent().getparent()) == "thead"
    tag = _IN.get((parent, name)) or _ELEMENTS.get(name, "span")
    return "th" if is_head else tag


def _find_title_tag(title: etree._Element, parent: str, names: _Names) -> str:
    if parent in _SECTIONS:
        around = map(names.get, title.iterancestors())
        level = sum(map(_SECTIONS.__contains__, around))
        return f"h{min(level, _MAX_LEVEL)}"
    return _TITLES_IN.get(parent, "p")


def _move_title_before(element: etree._Element, names: _Names) -> None:
    """Put a term before its text, and a title before what is said about the making, which may hold a short one, too."""
    is_term = names[element] == "item"
    has_title = "title" in map(names.get, element.itersiblings())
    titles = [part for part in element if names.get(part) == "title"]
    if titles and (is_term or not has_title):
        element.addprevious(titles[0])


def _link_text(link: etree._Element, path: Path) -> str:
    """Return the title of what a link without words leads to, in this file or one beside it, or else its name."""
    targets = filter(None, [attribute(link, key) for key in _LINKS[local_name(link)]])
    target = next(targets, "")
    page, _, part = target.partition("#")
    for file in _find_files(page, path):
        title = _titles_in(file).get(part or page)
        if title:
            return title
    return target


def _find_files(page: str, path: Path) -> Iterator[Path]:
    """Yield the files that may have what a link leads to: in Mallard, a page's name is that of its file."""
    is_help = path.suffix == ".page"
    if not is_help or not page:
        yield path
    pattern = f"{glob.escape(page)}.page" if is_help else f"*{path.suffix}"
    beside = sorted(path.parent.glob(pattern)) if page and "/" not in page else []
    for file in beside[:_MAX_FILES]:
        if not file.is_symlink() and is_manual(file):
            yield file


@lru_cache(maxsize=_MAX_FILES)
def _titles_in(file: Path) -> dict[str, str]:
    """Return the titles of a manual, or of a part of one, by the names of what has them."""
    titles: dict[str, str] = {}
    root = etree.Element("none")
    with suppress(DamagedError, OSError):  # it is reported when its turn comes
        root = parse_with_entities(file)[0]
    for title in _TITLES(root):
        titled = title.getparent()
        if _ABOUT.fullmatch(local_name(titled)):
            titled = titled.getparent()
        titles.setdefault(attribute(titled, "id"), collapse_whitespace("".join(title.itertext())))
    return titles


def _join(element: etree._Element, names: _Names) -> None:
    """Put what a person sees between the parts of an element, and a shortcut after a menu's entries."""
    separator = _SEPARATORS[names[element]]
    parts = sorted(element, key=lambda part: names.get(part) == "shortcut")
    element[:] = parts
    text = (element.text or "").strip()
    element.text = f"{text}{separator}" if text else ""
    for part, after in zip_longest(parts, parts[1:]):
        text = (part.tail or "").strip()
        between = _BEFORE.get(names.get(after, ""), separator)
        part.tail = f"{separator}{text}" if text else ""
        part.tail += between if after is not None else ""


def _put_around(element: etree._Element, before: str, after: str, names: _Names) -> None:
    for part in element.iterdescendants():
        if names.get(part) in _PARAGRAPHS:
            names[part] = "phrase"  # a note goes on in the line
    element.text = before + (element.text or "").lstrip()
    if len(element):
        element[-1].tail = (element[-1].tail or "").rstrip() + after
    else:
        element.text += after


def _show_numbers(numbered: etree._Element, names: _Names) -> None:
    """Say how the items of a list are numbered as web pages do; in another one, they have letters."""
    around = [each for each in numbered.iterancestors() if names.get(each) in _NUMBERED[names[numbered]]]
    form = _NUMBERS[len(around) % len(_NUMBERS)]
    numbered.set("type", numbered.get("numeration", form))
    numbered.set("start", numbered.get("startingnumber", "1"))


def _show_spans(entry: etree._Element, names: _Names) -> None:
    """Say how many rows and columns a cell spans as web pages do."""
    more_rows = entry.get("morerows", "0")
    if more_rows.isdecimal() and len(more_rows) <= _MAX_DIGITS:
        entry.set("rowspan", str(int(more_rows) + 1))
    row = entry.getparent()
    is_in_header = row is not None and names.get(row.getparent()) == "thead"
    if entry.getnext() is None and not is_in_header:
        return
    group = next(filter(lambda each: names.get(each) == "tgroup", entry.iterancestors()), ())
    columns = [part.get("colname") for part in group if names.get(part) == "colspec"]
    spans = {part.get("spanname", ""): part for part in group if names.get(part) == "spanspec"}
    span = spans.get(entry.get("spanname", ""), entry)
    with suppress(ValueError):  # they have no names
        first = columns.index(span.get("namest", ""))
        last = columns.index(span.get("nameend", ""))
        entry.set("colspan", str(last - first + 1))
