"""The parts of a file of Office: XML in a zip archive, and the relationships that connect them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from lxml import etree

from arag.ingest.formats.content import FormatError

_RELATIONS = "_rels/.rels"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006"
_MAX_DIGITS = 9  # of a number: a longer one is none, and Python refuses very long ones


class DamagedError(FormatError):
    """A part of a file cannot be read; another reader may be less strict."""


class Relation(NamedTuple):
    """A part that another part refers to: its name, and its kind, such as `chart`."""

    part: str
    kind: str


def parse_xml(data: bytes) -> etree._Element:
    """Parse XML without entities of its own, and without a look at the network.

    Raises:
        DamagedError: It is not well-formed.
    """
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DamagedError(f"damaged: {error.msg}") from error


def local_name(element: etree._Element) -> str:
    """Return the name of an element without its namespace, of which each kind of Office has its own."""
    name: str = element.tag
    return name.rpartition("}")[2]


def attribute(element: etree._Element, name: str) -> str:
    """Return an attribute by its name without the namespace, or an empty string."""
    suffix = f"}}{name}"
    for key, value in element.items():
        if key == name or key.endswith(suffix):
            return str(value)
    return ""


def unescape(text: str) -> str:
    """Return a text of Excel or PowerPoint with the control characters that they write like `_x000D_`."""
    if "_x" not in text:
        return text
    from openpyxl.utils.escape import unescape as unescape_each

    plain: str = unescape_each(text)
    return plain


def find_child(element: etree._Element | None, path: str) -> etree._Element | None:
    """Return an element below another by its path, such as `{*}numPr/{*}numId`; a faster way than `find`."""
    found = element
    for name in path.split("/"):
        if found is None:
            return None
        found = next(found.iterchildren(name), None)
    return found


def value_of(element: etree._Element | None, path: str) -> str:
    """Return the attribute `val` of an element below another, or an empty string."""
    found = find_child(element, path)
    return "" if found is None else attribute(found, "val")


def to_int(text: str, default: int) -> int:
    """Return a number that an attribute gives, or the default if it gives none."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else default


@dataclass(frozen=True)
class Package:
    """An opened file.

    Raises:
        DamagedError: It is not a zip archive.
    """

    data: bytes

    @cached_property
    def _archive(self) -> ZipFile:
        try:
            return ZipFile(BytesIO(self.data))
        except BadZipFile as error:
            raise DamagedError(f"damaged: {error}") from error

    @cached_property
    def names(self) -> dict[str, str]:
        """The names of all parts, by their names in lower case: programs differ in case and in slashes."""
        names: dict[str, str] = {}
        for name in self._archive.namelist():
            names[name.replace("\\", "/").lower()] = name
        return names

    def read(self, name: str) -> bytes | None:
        """Return the data of a part, or None if there is none."""
        real_name = self.names.get(name.lower())
        if real_name is None:
            return None
        try:
            return self._archive.read(real_name)
        except (BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DamagedError(f"damaged: {name}: {error}") from error

    def xml(self, name: str) -> etree._Element | None:
        """Return the XML of a part, or None if there is none."""
        data = self.read(name)
        return None if data is None else parse_xml(data)

    def relations(self, name: str = "") -> dict[str, Relation]:
        """Return the parts that a part refers to, by the ids of the references; of the whole file without a name."""
        folder, _, file = name.rpartition("/")
        root = self.xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        relations: dict[str, Relation] = {}
        if root is None:
            return relations
        for element in root.iter("{*}Relationship"):
            if element.get("TargetMode") == "External":
                continue
            target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", "")))
            kind = element.get("Type", "").rpartition("/")[2]
            relations[element.get("Id", "")] = Relation(target.lstrip("/"), kind)
        return relations

    def main_part(self) -> str:
        """Return the name of the document, workbook or presentation itself; an empty string if there is none."""
        return find_part(self.relations(), "officeDocument")


def find_part(relations: Mapping[str, Relation], kind: str, default: str = "") -> str:
    """Return the name of the part of a kind that a part refers to."""
    for relation in relations.values():
        if relation.kind == kind:
            return relation.part
    return default


def as_transitional(data: bytes) -> bytes:
    """Return a file of Office in the form that it usually has: a "Strict Open XML" file has other namespaces."""
    with ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        relations = archive.read(_RELATIONS) if _RELATIONS in names else b""
        if not _STRICT.search(relations):
            return data
        changed: dict[str, bytes] = {}
        for name in names:
            if name.endswith((".xml", ".rels")):
                changed[name] = _STRICT.sub(_TRANSITIONAL, archive.read(name))
    return with_parts(data, changed)


def with_parts(data: bytes, changed: Mapping[str, bytes]) -> bytes:
    """Return a file with other data of some parts."""
    copy = BytesIO()
    with ZipFile(BytesIO(data)) as archive, ZipFile(copy, "w") as written:
        for name in archive.namelist():
            part = changed.get(name)
            written.writestr(name, archive.read(name) if part is None else part)
    return copy.getvalue()
