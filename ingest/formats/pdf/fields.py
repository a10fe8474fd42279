"""What readers add to the pages of a PDF: values of its form, comments."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.pdf.words import Word
from arag.text.normalise import collapse_whitespace

_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_COMMENTS = {
    raw.FPDF_ANNOT_TEXT,
    raw.FPDF_ANNOT_FREETEXT,
    raw.FPDF_ANNOT_LINE,
    raw.FPDF_ANNOT_SQUARE,
    raw.FPDF_ANNOT_CIRCLE,
    raw.FPDF_ANNOT_POLYGON,
    raw.FPDF_ANNOT_POLYLINE,
    raw.FPDF_ANNOT_HIGHLIGHT,
    raw.FPDF_ANNOT_UNDERLINE,
    raw.FPDF_ANNOT_SQUIGGLY,
    raw.FPDF_ANNOT_STRIKEOUT,
    raw.FPDF_ANNOT_STAMP,
    raw.FPDF_ANNOT_CARET,
    raw.FPDF_ANNOT_INK,
    raw.FPDF_ANNOT_FILEATTACHMENT,
    raw.FPDF_ANNOT_REDACT,
}
_CHECKED = {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}
_CHOICES = {raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
_STAMPS = set(
    "Approved AsIs Confidential Departmental Draft Experimental Expired Final ForComment ForPublicRelease NotApproved "
    "NotForPublicRelease Sold TopSecret".split()
)
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TAG = re.compile(r"<[^>]*>")
_CODE_UNIT = 2  # bytes, of UTF-16
_BOXES = {"[x]", "[ ]"}
_MAX_LABEL = 4  # words: more are a sentence in which a value stands
_MAX_WORDS_ABOVE = 8  # of a label above a field
_MAX_LABEL_GAP = 1.5  # times the height of its type, from a label to the field below it
_MAX_INDENT = 6.0  # points between the left edges of the two
_MIN_COMMON_HEIGHT = 0.4  # of a field and the line beside it


class Field(NamedTuple):
    """A field of a form that has a value, and its box.

    Attributes:
        name: What the file calls it, for a field without a text beside it.
        value: What a person sees in it; `[x]` for a checked box, `[ ]` for one that is not.
    """

    name: str
    value: str
    left: float
    right: float
    bottom: float
    top: float


class Additions(NamedTuple):
    """What is added to a page."""

    fields: list[Field]
    comments: list[str]
    files: list[raw.FPDF_ATTACHMENT]


def read_additions(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Additions:
    """Return the values of fields, the comments and the attached files of a page.

    Args:
        document: The PDF, with its form initialised if it has one.
        page: One of its pages.
    """
    additions = Additions([], [], [])
    for annotation in _annotations(page):
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_WIDGET and document.formenv:
            field = _read_field(document.formenv, annotation)
            if field:
                additions.fields.append(field)
        if kind in _COMMENTS:
            comment = _read_comment(annotation, kind)
            if comment:
                additions.comments.append(comment)
        if kind == raw.FPDF_ANNOT_FILEATTACHMENT:
            file = raw.FPDFAnnot_GetFileAttachment(annotation)
            if file:
                additions.files.append(file)
    return additions


def _annotations(page: pypdfium2.PdfPage) -> Iterator[raw.FPDF_ANNOTATION]:
    """Yield the visible annotations of a page."""
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        if not raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            yield annotation
        raw.FPDFPage_CloseAnnot(annotation)


def _read_text(function: Callable[..., int], *arguments: Any) -> str:
    """Return a text that a function of PDFium writes into a buffer."""
    size = function(*arguments, None, 0)
    if size <= _CODE_UNIT:
        return ""
    buffer = ctypes.create_string_buffer(size)
    function(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    text = buffer.raw[: size - _CODE_UNIT].decode("utf-16-le", "replace")
    return collapse_whitespace(text.replace("\0", ""))


# --- comments ---


def _read_comment(annotation: raw.FPDF_ANNOTATION, kind: int) -> str:
    text = _read_text(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
    if not text:
        formatted = _read_text(raw.FPDFAnnot_GetStringValue, annotation, b"RC")
        text = collapse_whitespace(unescape(_TAG.sub(" ", formatted)))
    if text:
        author = _read_text(raw.FPDFAnnot_GetStringValue, annotation, b"T")
        if not author:
            return f"Comment: {text}"
        return f"Comment by {author}: {text}"
    name = _read_text(raw.FPDFAnnot_GetStringValue, annotation, b"Name")
    if kind == raw.FPDF_ANNOT_STAMP and name in _STAMPS:
        return f"Stamp: {_CAPITAL.sub(' ', name)}"
    return ""


# --- fields of forms ---


def _read_field(form: Any, annotation: raw.FPDF_ANNOTATION) -> Field | None:
    value = _read_value(form, annotation)
    if not value:
        return None
    name = _read_text(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    box = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, box)
    return Field(
        name=name or _read_text(raw.FPDFAnnot_GetFormFieldName, form, annotation),
        value=value,
        left=min(box.left, box.right),
        right=max(box.left, box.right),
        bottom=min(box.bottom, box.top),
        top=max(box.bottom, box.top),
    )


def _read_value(form: Any, annotation: raw.FPDF_ANNOTATION) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _CHECKED:
        return "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
    if kind in _CHOICES:
        chosen = _read_choices(form, annotation)
        if chosen:
            return ", ".join(chosen)
        return _read_text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if kind != raw.FPDF_FORMFIELD_TEXTFIELD:
        return ""
    if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & raw.FPDF_FORMFLAG_TEXT_PASSWORD:
        return ""
    return _read_text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)


def _read_choices(form: Any, annotation: raw.FPDF_ANNOTATION) -> list[str]:
    """Return the options of a list that are chosen."""
    chosen: list[str] = []
    for number in range(raw.FPDFAnnot_GetOptionCount(form, annotation)):
        if raw.FPDFAnnot_IsOptionSelected(form, annotation, number):
            label = _read_text(raw.FPDFAnnot_GetOptionLabel, form, annotation, number)
            chosen.append(label)
    return chosen


def insert_fields(lines: Sequence[list[Word]], fields: Sequence[Field]) -> list[list[Word]]:
    """Return the lines of a page with the values of its form.

    A value comes into the line that it is beside. Values without such a line have lines of their own, each after the
    text above it, or else after its field's name.

    Args:
        lines: The words of each line.
        fields: The form's fields.
    """
    completed = [list(line) for line in lines]
    for field in sorted(fields, key=lambda field: (-field.top, field.left)):
        line = _line_beside(completed, field)
        is_in_text = not all(word.is_field for word in line)
        if is_in_text:
            beside = line[0]
            _insert(line, [Word(field.value, field.left, field.right, beside.bottom, beside.top)])
            continue
        place = _place_below(completed, field)
        words = _labelled(field, _label_above(completed[:place], field))
        if line:
            _insert(line, words)
        else:
            completed.insert(place, words)
    for line in completed:
        _end_labels(line)
    return completed


def _end_labels(line: list[Word]) -> None:
    """End the label before a value with a colon, as without one the two would look like a title."""
    label_start = 0
    for number, word in enumerate(line):
        if not word.is_field:
            continue
        label = line[label_start:number]
        label_start = number + 1
        is_box = word.text in _BOXES
        if is_box or not 0 < len(label) <= _MAX_LABEL:
            continue
        last = label[-1]
        is_open = last.text[-1].isalnum()
        begins_small = label[0].text[0].islower()
        if is_open and not begins_small:
            line[number - 1] = last._replace(text=f"{last.text}:")


def _labelled(field: Field, label: str) -> list[Word]:
    """Return the value of a field after its label, or else its name, if it has one."""
    value = Word(field.value, field.left, field.right, field.bottom, field.top)
    label = label or field.name
    if not label:
        return [value]
    name = value._replace(text=f"{label.removesuffix(':')}:")
    return [name, value]


def _label_above(lines: Sequence[Sequence[Word]], field: Field) -> str:
    """Return the text that begins right above a field, or above the values over it, such as the name of a column.

    Args:
        lines: The lines above the field.
        field: A field without a text beside it.
    """
    top = field.top
    for line in reversed(lines):
        words = [word for word in line if field.left - _MAX_INDENT <= word.left < field.right]
        if not words:
            continue
        first = words[0]
        is_far = first.bottom - top > _MAX_LABEL_GAP * first.height
        if is_far or first.left > field.left + _MAX_INDENT:
            return ""
        if not first.is_field:
            return _label_from(line[line.index(first) :])
        top = first.top
    return ""


def _label_from(words: Sequence[Word]) -> str:
    """Return the words up to a wide gap; an empty string if they are a sentence."""
    label = list(words[:1])
    for word in words[1:]:
        if word.left - label[-1].right > word.height:
            break
        label.append(word)
    is_sentence = len(label) > _MAX_WORDS_ABOVE
    return "" if is_sentence else " ".join(word.text for word in label)


def _line_beside(lines: Sequence[list[Word]], field: Field) -> list[Word]:
    """Return the line that a field is beside, and nearest to; no words if there is none."""
    best: list[Word] = []
    best_common = 0.0
    for line in lines:
        word = line[0]
        common = min(word.top, field.top) - max(word.bottom, field.bottom)
        lower = min(word.height, field.top - field.bottom)
        if common > _MIN_COMMON_HEIGHT * lower and common > best_common:
            best, best_common = line, common
    return best


def _place_below(lines: Sequence[list[Word]], field: Field) -> int:
    """Return the place of a field among the lines: before the first one that is below it."""
    for number, line in enumerate(lines):
        if line[0].top < field.top:
            return number
    return len(lines)


def _insert(line: list[Word], words: Sequence[Word]) -> None:
    """Put words beside each other into a line, at their place."""
    for place, other in enumerate(line):
        if other.left > words[0].left:
            line[place:place] = words
            return
    line += words
