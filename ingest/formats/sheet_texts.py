"""Raised digits in the cells of workbooks, which openpyxl joins to the others: `106` for `10` and a raised `6`."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZipFile

from lxml import etree

from arag.ingest.formats.drawings import raised
from arag.ingest.formats.package import parse_xml, value_of

_BASELINES = {"superscript": 1, "subscript": -1}
_RAISED = b"vertAlign"
_TEXTS = ("sharedStrings.xml", "/sheet")  # in the names of the parts that have the texts of cells


def set_raised_digits_apart(data: bytes) -> bytes:
    """Return a workbook in whose texts raised digits stand apart, such as `10^6`."""
    with ZipFile(BytesIO(data)) as archive:
        changed: dict[str, bytes] = {}
        for name in archive.namelist():
            part = archive.read(name) if any(text in name for text in _TEXTS) else b""
            if _RAISED in part:
                changed[name] = _set_apart(part)
        if not changed:
            return data
        copy = BytesIO()
        with ZipFile(copy, "w") as written:
            for name in archive.namelist():
                written.writestr(name, changed.get(name) or archive.read(name))
    return copy.getvalue()


def _set_apart(part: bytes) -> bytes:
    root = parse_xml(part)
    for text in root.iter("{*}si", "{*}is"):
        before = ""
        for run in text.iterchildren("{*}r"):
            own = next(run.iterchildren("{*}t"), None)
            if own is None:
                continue
            baseline = _BASELINES.get(value_of(run, "{*}rPr/{*}vertAlign"), 0)
            own.text = raised(own.text or "", baseline, before)
            before += own.text
    changed: bytes = etree.tostring(root)
    return changed
