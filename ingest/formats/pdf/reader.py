"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import JSON, Content, FormatError, join_blocks, join_pages, name_pages
from arag.ingest.formats.headings import mark_headings
from arag.ingest.formats.joining import join_lines
from arag.ingest.formats.pdf.bold import mark_bold_titles
from arag.ingest.formats.pdf.fields import read_additions
from arag.ingest.formats.pdf.files import read_files
from arag.ingest.formats.pdf.footnotes import divide_numbers, join_numbers, move_footnotes
from arag.ingest.formats.pdf.glyphs import UNKNOWN
from arag.ingest.formats.pdf.joined import JoinedLetters, read_joined_letters
from arag.ingest.formats.pdf.names import join_names, mark_compounds
from arag.ingest.formats.pdf.outline import read_outline
from arag.ingest.formats.pdf.page import page_lines
from arag.ingest.formats.pdf.paragraphs import mark_paragraphs
from arag.ingest.formats.pdf.running import without_running_lines
from arag.ingest.formats.pdf.scans import add_ocr_text, list_scans, name_scans, parse_ocr_texts
from arag.ingest.formats.pdf.title import find_opening_title, find_title
from arag.ingest.formats.scans import how_to_use_ocr
from arag.ingest.formats.typography import Line
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import collapse_whitespace, count

logging.getLogger("pypdfium2").setLevel(logging.ERROR)  # its warnings are for programmers

_ENCRYPTED = (
    "the PDF is encrypted and needs a password: open it with its password in a viewer, and save it as a PDF without one"
)
_XFA = {raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND}
_WITH_FIELDS = {raw.FORMTYPE_ACRO_FORM, *_XFA}
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)")
# Programs also write file names, numbers and placeholders into a PDF as its title. A sentence may end in a file's name.
_NO_TITLE = re.compile(
    r"^microsoft \w+ - |^untitled|^\(anonymous\)|\d{6}|^[\W\d_]*$"
    r"|^\S+\.\w{2,4}$|\.(?:docx?|xlsx?|pptx?|od[tsp]|rtf|indd|qxd|pub|pdf|dvi|eps|ai|cdr)$",
    re.IGNORECASE,
)
# Codes of glyphs for which the font names no letter: parts of brackets, notes of music, letters drawn as pictures.
_CODE = re.compile(r" ?[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]")
_NAMED_A_PAGE = 0.5  # headings
_NO_AUTHOR = {"", "anonymous"}


@dataclass
class _Page:
    """The lines of a page, and the comments on it."""

    lines: list[Line]
    comments: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of its lines."""
        return "".join(line.text for line in self.lines)


def read_pdf(path: Path, ocr_texts: str = "") -> Content:
    """Read the text layer of a PDF, with a blank line between pages. A page that cannot be read is empty.

    Page numbers are left out, and lines at the top or the bottom of most pages after the first page that has them.
    Values of forms are in their places, comments after their pages, and attached texts after the last page.

    Args:
        path: The file.
        ocr_texts: What OCR read on pages that are pictures, by their numbers, as JSON; an empty string without OCR.

    Raises:
        FormatError: The PDF is broken, needs a password or has no text.
    """
    document = _open(path)
    damage: list[str] = []
    files: list[raw.FPDF_ATTACHMENT] = []
    joined = read_joined_letters(document, path.read_bytes())
    pages = _read_pages(document, joined, damage, files)
    attached = read_files(document, files)
    by_ocr = parse_ocr_texts(ocr_texts)
    bodies = _bodies(document, pages)
    texts: list[str] = []
    for number, text in enumerate(_page_texts(bodies, pages), 1):
        ocr_text = by_ocr.get(number, "")
        texts.append(add_ocr_text(text, ocr_text))
    left_out = [
        *attached.left_out,
        *_unread_parts(document),
        *_unknown_characters(pages),
    ]
    if not any([*texts, *attached.texts]):
        missing = "OCR found none" if ocr_texts else f"its pages are pictures (scanned?): {how_to_use_ocr()}"
        first_fault = [*damage, *left_out, missing][0]
        raise FormatError(f"the PDF has no text; {first_fault}")
    if not ocr_texts:
        own_texts = [page.text for page in pages]
        left_out += name_scans(list_scans(document, own_texts))
    texts[-1:] = [join_blocks([*texts[-1:], *attached.texts])]
    text, page_starts = join_pages(texts)
    own_title = _title(document)
    printed_title = find_title([page.lines for page in pages])
    # The title page may go on: a series of manuals has one title for all.
    has_short_title = printed_title.startswith(own_title)
    return Content(
        title=(printed_title if has_short_title else own_title) or find_opening_title(text),
        text=text,
        page_starts=page_starts,
        metadata=_metadata(document),
        left_out=tuple(left_out),
        damage=tuple(damage),
        ocr_pages=tuple(number for number, page in by_ocr.items() if page),
        marks_headings=_names_headings(bodies),
    )


def _open(path: Path) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path.read_bytes())
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise FormatError(_ENCRYPTED) from error
        raise FormatError(f"broken PDF: {error}") from error
    if document.get_formtype() in _WITH_FIELDS:
        document.init_forms()
    return document


def _read_pages(
    document: pypdfium2.PdfDocument,
    joined: JoinedLetters,
    damage: list[str],
    files: list[raw.FPDF_ATTACHMENT],
) -> list[_Page]:
    """Return what is on each page.

    Pages that cannot be read are empty and added to `damage`, files that are attached to pages to `files`.
    """
    pages: list[_Page] = []
    for index in range(len(document)):
        try:
            page = document[index]
            additions = read_additions(document, page)
            lines = page_lines(page.get_textpage(), joined, additions.fields)
        except pypdfium2.PdfiumError as error:
            pages.append(_Page(lines=[]))
            damage.append(f"page {index + 1}: {error}")
            continue
        files += additions.files
        pages.append(_Page(lines, additions.comments))
    return pages


def _page_texts(bodies: Sequence[Sequence[Line]], pages: Sequence[_Page]) -> list[str]:
    """Return the text of each page: its lines, with headings marked and without codes, and the comments on it."""
    texts = mark_headings(bodies)
    completed: list[str] = []
    for text, page in zip(texts, pages, strict=True):
        letters = _CODE.sub("", text)
        completed.append(join_blocks([letters, *page.comments]))
    return completed


def _bodies(document: pypdfium2.PdfDocument, pages: Sequence[_Page]) -> list[list[Line]]:
    """Return the lines of each page without running heads and feet; those that divide a word are joined."""
    outline = read_outline(document, [page.lines for page in pages])
    titles = list(outline.titles)  # running heads have them even where the pages have longer ones
    for lines in outline.pages:
        titles += [line.text for line in lines if line.level]
    pages_of_text = mark_compounds(join_names(without_running_lines(outline.pages, titles)))
    bodies: list[list[Line]] = []
    for lines in pages_of_text:
        with_numbers = divide_numbers(join_numbers(lines))
        bodies.append(join_lines(mark_paragraphs(move_footnotes(with_numbers))))
    return mark_bold_titles(outline.complete(bodies))


def _names_headings(bodies: Sequence[Sequence[Line]]) -> bool:
    """Return whether the document's outline names its headings, and not only a few chapters of many pages."""
    named = 0
    for lines in bodies:
        named += sum(line.level > 0 for line in lines)
    return _NAMED_A_PAGE * len(bodies) <= named


def _unread_parts(document: pypdfium2.PdfDocument) -> list[str]:
    """Return the kinds of parts that no reader reads."""
    parts: list[str] = []
    if document.get_formtype() in _XFA:
        parts.append("1 XFA form")
    signatures = raw.FPDF_GetSignatureCount(document)
    if signatures > 0:
        parts.append(count(signatures, "signature"))
    return parts


def _unknown_characters(pages: Sequence[_Page]) -> list[str]:
    """Return which pages have glyphs that the file does not name."""
    unknown = [number for number, page in enumerate(pages, 1) if UNKNOWN in page.text or _CODE.search(page.text)]
    if not unknown:
        return []
    return [f"some characters of {name_pages(unknown)}: the font does not say which letters they are"]


def _title(document: pypdfium2.PdfDocument) -> str:
    """Return the title that the file names, or an empty string."""
    title = collapse_whitespace(document.get_metadata_value("Title"))
    is_title = not (_NO_TITLE.search(title) or is_heading_of_contents(title))
    return title if is_title else ""


def _metadata(document: pypdfium2.PdfDocument) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    author = collapse_whitespace(document.get_metadata_value("Author"))
    if author.strip("()") not in _NO_AUTHOR:
        metadata["author"] = author
    date = _DATE.match(document.get_metadata_value("CreationDate"))
    if date:
        metadata["date"] = "-".join(date.groups())
    return metadata
