"""Raised digits in the cells of workbooks, which openpyxl joins to the others: `106` for `10` and a raised `6`."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZipFile

from lxml import etree

from arag.ingest.formats.drawings import raised
from arag.ingest.formats.package import find_child, parse_xml, value_of, with_parts

_BASELINES = {"superscript": 1, "subscript": -1}
_RAISED = b"vertAlign"


def set_raised_digits_apart(data: bytes) -> bytes:
    """Return a workbook in whose texts raised digits stand apart, such as `10^6`."""
    changed: dict[str, bytes] = {}
    with ZipFile(BytesIO(data)) as archive:
        for name in archive.namelist():
            part = archive.read(name) if _has_texts(name) else b""
            if _RAISED in part:
                changed[name] = _set_apart(part)
    return with_parts(data, changed) if changed else data


def _has_texts(name: str) -> bool:
    """Return whether a part has the texts of cells, by its name."""
    return "sharedStrings.xml" in name or "/sheet" in name


def _set_apart(part: bytes) -> bytes:
    root = parse_xml(part)
    for text in root.iter("{*}si", "{*}is"):
        before = ""
        for run in text.iterchildren("{*}r"):
            own = find_child(run, "{*}t")
            if own is None:
                continue
            position = value_of(run, "{*}rPr/{*}vertAlign")
            own.text = raised(
                text=own.text or "",
                baseline=_BASELINES.get(position, 0),
                before=before,
            )
            before += own.text
    changed: bytes = etree.tostring(root)
    return changed
