"""Files that are attached to a PDF: texts are read, the others are named."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import MAX_CHARACTERS, FormatError, decode_text, name_parts
from arag.ingest.formats.tables import csv_lines
from arag.text.normalise import collapse_whitespace

_TEXTS = {".txt", ".md", ".markdown", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".log"}


_TABLES = {".csv", ".tsv"}


class Files(NamedTuple):
    """The files that are attached to a PDF.

    Attributes:
        texts: The name and the text of each text file.
        left_out: The others, as one phrase.
    """

    texts: list[str]
    left_out: tuple[str, ...]


def read_files(document: pypdfium2.PdfDocument, on_pages: Iterable[raw.FPDF_ATTACHMENT]) -> Files:
    """Return the texts of attached files, and the names of all others.

    Args:
        document: The PDF.
        on_pages: Files that are attached to its pages.
    """
    files: list[raw.FPDF_ATTACHMENT] = []
    for number in range(document.count_attachments()):
        file = raw.FPDFDoc_GetAttachment(document, number)
        if file:  # a damaged PDF counts files that it lacks
            files.append(file)
    files += on_pages
    texts: list[str] = []
    others: list[str] = []
    for file in files:
        attachment = pypdfium2.PdfAttachment(file, document)
        name = _name(attachment)
        text = _read_text(attachment, name)
        if text:
            texts.append(f"Attachment {name}:\n{text}")
        else:
            others.append(name)
    return Files(texts, name_parts("attachment", others))


def _name(file: pypdfium2.PdfAttachment) -> str:
    try:
        return collapse_whitespace(file.get_name()) or "unnamed"
    except pypdfium2.PdfiumError:
        return "unnamed"


def _read_text(file: pypdfium2.PdfAttachment, name: str) -> str:
    """Return the text of a file, or an empty string if it is none."""
    extension = PurePath(name).suffix.lower()
    if extension not in _TEXTS:
        return ""
    size = ctypes.c_ulong()
    raw.FPDFAttachment_GetFile(file, None, 0, size)
    if not 0 < size.value <= MAX_CHARACTERS:
        return ""
    try:
        text = decode_text(bytes(file.get_data())).strip()
        if extension in _TABLES:
            text = csv_lines(text, extension)
    except (FormatError, pypdfium2.PdfiumError):
        return ""
    return text
