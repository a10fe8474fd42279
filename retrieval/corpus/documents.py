"""Lists documents by what is known of them; `Index.list_documents` documents it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import PurePath
from typing import Any, TypeAlias, TypeGuard

from arag.errors import InputError
from arag.retrieval.corpus.moved import find_moved
from arag.retrieval.corpus.types import DocumentList, ListedDocument, MetadataField
from arag.retrieval.scope import Scope
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import DocumentRecord, Reading
from arag.text.normalise import collapse_whitespace, shorten

_Value: TypeAlias = str | float | bool

_DATES = ("date", "published", "created", "year")
_AUTHORS = ("author", "authors", "creator", "from", "sender")
_COLUMNS = ("id", "title", "date", "author", "kind", "chunks")
# Libraries that make files write their own name, or that of their template's author, and a date of the past.
_TEMPLATE_AUTHORS = {"python-docx", "openpyxl", "python-pptx", "steve canny", "xlsxwriter", "apache poi", "anonymous"}
_TEMPLATE_DATES = {"2013-12-23": "docx", "2013-01-27": "pptx", "2000-01-01": "pdf"}
_DATE_LENGTH = len("2013-12-23")
_MADE_BY_LIBRARIES = {"docx", "xlsx", "pptx", "pdf"}
_MAX_VALUES = 20  # of a field, that are counted one by one
_MAX_VALUE = 60  # characters of a value: longer ones are texts
_MAX_SHOWN = 100  # characters of a wrong value in a message
_EXTENSION = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,7})")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]*", re.IGNORECASE)
_NAMES_OF_TEXTS = frozenset("authors changelog changes copyright faq install news readme todo".split())
_MARKUP = frozenset("adoc asciidoc csv docx htm html json markdown md odt org pdf rst rtf tex xhtml xml".split())
_SPELLINGS = {
    "htm": "html",
    "xhtml": "html",
    "text": "txt",
    "debian": "txt",
    "markdown": "md",
    "jpeg": "jpg",
    "tiff": "tif",
    "yml": "yaml",
}
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?(?:[T ].*)?")


def list_documents(view: View, where: Mapping[str, Any] | None, sort: str, start: int, limit: int) -> DocumentList:
    """List the documents that conditions allow, in an order; return `limit` of them, beginning at `start`."""
    allows = Scope(where=where).compile()
    listed: list[ListedDocument] = []
    fields: dict[str, _Field] = {}
    moved = find_moved(view)
    for record in view.documents():
        metadata = view.metadata(record)
        if not allows(record.id, metadata):
            continue
        path = moved.get(record.id, record.id)
        document = _describe(record, path, metadata, view.reading(record))
        listed.append(document)
        for name, value in document.metadata.items():
            fields.setdefault(name, _Field(name)).add(value)
    ordered = _sort(listed, sort, fields)
    return DocumentList(
        documents=tuple(ordered[start : start + limit]),
        total=len(ordered),
        fields=tuple(_describe_fields(fields.values())),
    )


def list_folders(documents: Iterable[ListedDocument]) -> list[str]:
    """Return the folders of documents, and those around them."""
    own = {document.path.rpartition("/")[0] for document in documents} - {""}
    folders: set[str] = set()
    for folder in own:
        folders.update(accumulate(folder.split("/"), "{}/{}".format))
    return sorted(folders)


def _describe(record: DocumentRecord, path: str, metadata: Mapping[str, Any], reading: Reading) -> ListedDocument:
    source = record.source or _first_value(metadata, ["source"])
    kind = _find_kind(source)
    if not kind and not record.source:  # the id of a part of a file ends in anything, such as an email's domain
        kind = _find_kind(record.id)
    if not kind and record.source and "#" not in record.id:  # a whole file, such as README
        kind = "txt"
    known = {name: value for name, value in metadata.items() if not _is_of_template(name, value, kind)}
    return ListedDocument(
        id=record.id,
        title=collapse_whitespace(record.title),
        date=_first_value(known, _DATES),
        author=_first_value(known, _AUTHORS),
        kind=kind,
        chunks=record.chunks,
        source=source,
        path=path,
        metadata=known,
        left_out=reading.left_out,
        ocr_pages=reading.ocr_pages,
    )


def _is_of_template(name: str, value: object, kind: str) -> bool:
    """Return whether a value only tells which library has made the file."""
    if kind not in _MADE_BY_LIBRARIES:
        return False
    text = str(value).strip().lower()
    if name in _DATES:
        return _TEMPLATE_DATES.get(text[:_DATE_LENGTH]) == kind
    return name in _AUTHORS and text in _TEMPLATE_AUTHORS


def _find_kind(name: str) -> str:
    """Return the extension in a name, as it is usually written: `htm` and `html` are one."""
    path = _HOST.sub("", name).removesuffix(".gz")  # a host ends in a dot and letters, too
    found = _EXTENSION.fullmatch(PurePath(path).suffix)
    extension = found[1].lower() if found else ""
    base = PurePath(path).name.partition(".")[0]
    if base.lower() in _NAMES_OF_TEXTS and extension not in {"", *_MARKUP}:
        return "txt"  # such as README.cookie and changelog.Debian.amd64
    return _SPELLINGS.get(extension, extension)


def _first_value(metadata: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the value of the first of some fields that has one; the items of a list with commas."""
    for name in names:
        text = ", ".join(_texts(metadata.get(name)))
        if text:
            return text
    return ""


def _texts(value: object) -> list[str]:
    """Return a plain value, or the plain items of a list, as texts that are not empty."""
    texts = [collapse_whitespace(str(item)) for item in _values(value)]
    return [text for text in texts if text]


def _values(value: object) -> Iterator[_Value]:
    """Yield a plain value, or the plain items of a list."""
    items = value if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, str | int | float):
            yield item


# --- order ---


def _sort(documents: Sequence[ListedDocument], sort: str, fields: Collection[str]) -> Sequence[ListedDocument]:
    """Return documents sorted by a column or a field; those without a value come last."""
    order = sort.strip()
    name = order.removeprefix("-")
    if order in {"", "id"}:
        return documents
    if documents and name not in {*_COLUMNS, *fields}:
        shown = shorten(repr(sort), _MAX_SHOWN)
        raise InputError(f"documents cannot be sorted by {shown}: valid are {', '.join(_COLUMNS)} and their fields")
    with_value: list[ListedDocument] = []
    without: list[ListedDocument] = []
    for document in documents:
        has_value = _sort_value(document, name) not in {"", None}
        target = with_value if has_value else without
        target.append(document)
    with_value.sort(
        key=lambda document: _sort_key(_sort_value(document, name)),
        reverse=order.startswith("-"),
    )
    return with_value + without


def _sort_value(document: ListedDocument, name: str) -> object:
    if name in _COLUMNS:
        return getattr(document, name)
    return next(_values(document.metadata.get(name)), None)


def _sort_key(value: object) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by their size, and behind them texts without regard to case."""
    if isinstance(value, int | float):
        return False, float(value), ""
    return True, 0.0, str(value).lower()


# --- fields ---


@dataclass
class _Field:
    """The values of a field that were met."""

    name: str
    documents: int = 0
    counts: Counter[_Value] = field(default_factory=Counter)

    def add(self, value: object) -> None:
        values = [item for item in _values(value) if _is_short(item)]
        if values:
            self.documents += 1
            self.counts.update(set(values))

    def describe(self) -> MetadataField:
        lowest, highest = _find_range(list(self.counts))
        return MetadataField(
            name=self.name,
            documents=self.documents,
            values=dict(self.counts.most_common(_MAX_VALUES)),
            distinct=len(self.counts),
            lowest=lowest,
            highest=highest,
        )


def _is_short(value: _Value) -> bool:
    if isinstance(value, str):
        return 0 < len(value.strip()) <= _MAX_VALUE
    return True


def _describe_fields(fields: Iterable[_Field]) -> list[MetadataField]:
    """Return the fields that have short values, the most frequent first."""
    described = [each.describe() for each in fields if each.documents]
    return sorted(described, key=lambda each: (-each.documents, each.name))


def _find_range(values: Sequence[_Value]) -> tuple[str | float | None, str | float | None]:
    """Return the lowest and the highest of values, if all are numbers or all are dates."""
    numbers = [value for value in values if _is_number(value)]
    if len(numbers) == len(values):
        return min(numbers), max(numbers)
    dates = [str(value) for value in values if _DATE.fullmatch(str(value))]
    if len(dates) == len(values):
        return min(dates), max(dates)
    return None, None


def _is_number(value: _Value) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
