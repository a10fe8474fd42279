"""Documents that are zip archives of XML: docx, pptx, xlsx, odt and epub."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import unquote

from lxml import etree

from arag.ingest.documents import Limits
from arag.ingest.formats.content import FormatError

MAX_ENTRIES = 50_000  # files in an archive; a document with thousands of pictures has fewer

_MIN_ENTRY = 100  # bytes of the list of files that each takes, with a name of ordinary length
_MAX_END = 65_557  # bytes from the end of the file in which the list's size stands
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")  # the stream in which Office puts an encrypted document
_MAX_OLE = 50_000_000  # bytes that are searched for it
_IN_ZIP64 = 0xFFFF_FFFF  # the size does not fit, and stands in another record
_MAX_TREE = 50_000_000  # bytes of XML that is read as a whole, which takes some twenty times the memory
_XML_OPTIONS: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False}
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


class Package:
    """An archive that is open for reading. Only the parts that a reader asks for are unpacked.

    Args:
        file: The file.
        limits: `max_bytes` of them may be unpacked.

    Attributes:
        limits: The limits.

    Raises:
        FormatError: The file is not a zip archive, or is encrypted, or has too many files in it.
    """

    def __init__(self, file: Path, limits: Limits) -> None:
        self.limits = limits
        self._left = limits.max_bytes
        with file.open("rb") as opened:
            start = opened.read(len(_OLE))
            if start == _OLE:
                raise FormatError(_ole_reason(opened.read(_MAX_OLE)))
        if _listing_size(file) > MAX_ENTRIES * _MIN_ENTRY:
            raise FormatError(f"an archive of more than {MAX_ENTRIES:,} files")
        try:
            self._zip = zipfile.ZipFile(file)
        except _BAD_ZIP as error:
            reason = "truncated or damaged" if start.startswith(b"PK") else "not a document of this format"
            raise FormatError(f"{reason}: {error}") from error
        self._entries = {_key(info.filename): info for info in self._zip.infolist()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._entries

    def read(self, name: str) -> bytes:
        """Unpack a part, but never more of it than the archive's list says.

        Raises:
            FormatError: It is missing or damaged, or exceeds the limit.
        """
        try:
            with self._open(name) as part:
                return part.read(self._entries[_key(name)].file_size)
        except _BAD_ZIP as error:
            raise FormatError(f"{name} in it is damaged: {error}") from error

    def xml(self, name: str) -> etree._Element:
        """Parse a part.

        Raises:
            FormatError: It is missing or damaged, exceeds the limit, or declares entities.
        """
        if name in self and self._entries[_key(name)].file_size > _MAX_TREE:
            raise FormatError(f"{name} in it has more than {_MAX_TREE:,} bytes")
        try:
            root = etree.fromstring(self.read(name), etree.XMLParser(**_XML_OPTIONS))
        except etree.XMLSyntaxError as error:
            raise FormatError(f"{name} in it is not well-formed XML: {error}") from error
        _refuse_entities(root, name)
        return root

    def stream(self, name: str, tag: str) -> Iterator[etree._Element]:
        """Yield the elements of a part that have this local name, without keeping the part in memory.

        Raises:
            FormatError: It is missing or damaged, exceeds the limit, or declares entities.
        """
        try:
            with self._open(name) as part:
                checked = False
                for _, element in etree.iterparse(part, tag=f"{{*}}{tag}", **_XML_OPTIONS):
                    if not checked:
                        _refuse_entities(element, name)
                        checked = True
                    yield element
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise FormatError(f"{name} in it is not well-formed XML: {error}") from error
        except _BAD_ZIP as error:
            raise FormatError(f"{name} in it is damaged: {error}") from error

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return what a part of an Office document refers to inside the archive.

        Args:
            name: The part; an empty string for the archive itself.

        Returns:
            By id, the kind of relation (`slide`, `footnotes`, ...) and the name of the part.
        """
        folder, base = posixpath.split(name)
        listing = posixpath.join(folder, "_rels", f"{base}.rels")
        if listing not in self:
            return {}
        found = {}
        for relation in self.xml(listing).iter("{*}Relationship"):
            if relation.get("TargetMode") != "External":
                target = unquote(relation.get("Target", ""))
                part = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                kind = relation.get("Type", "").rpartition("/")[2]
                found[relation.get("Id", "")] = (kind, part if part in self else target.lstrip("/"))
        return found

    def main_part(self) -> str:
        """Return the name of the part that an Office document begins with.

        Raises:
            FormatError: The archive is not an Office document.
        """
        for kind, part in self.relations("").values():
            if kind == "officeDocument" and part in self:
                return part
        raise FormatError(f"not an Office document: a zip archive of {_sample(self._entries)}")

    def _open(self, name: str) -> IO[bytes]:
        info = self._entries.get(_key(name))
        if info is None:
            raise FormatError(f"{name} is missing in it")
        if info.flag_bits & 1:
            raise FormatError("encrypted: save it without a password")
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:  # zipfile unpacks others at once
            raise FormatError(f"{name} in it is compressed in a way that documents are not")
        # zipfile never returns more than this, whatever is packed.
        self._left -= info.file_size
        if self._left < 0:
            raise FormatError(self.limits.exceeded("max_bytes"))
        return self._zip.open(info)


def _key(name: str) -> str:
    """Return a part's name as it is compared: some programs write it in different ways in the same archive."""
    return name.replace("\\", "/").lstrip("/").lower()


def _ole_reason(data: bytes) -> str:
    if _ENCRYPTED in data:
        return "encrypted: save it without a password"
    return "an Office file from before 2007 with a new ending: save it in the new format"


def _listing_size(file: Path) -> int:
    """Return the bytes of an archive's list of files, as its end says; zipfile would first read all of the list."""
    with file.open("rb") as opened:
        opened.seek(max(file.stat().st_size - _MAX_END, 0))
        end = opened.read()
    at = end.rfind(b"PK\x05\x06")
    size = int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0
    if size == _IN_ZIP64:
        at = end.rfind(b"PK\x06\x06", 0, at)
        size = int.from_bytes(end[at + 40 : at + 48], "little") if at >= 0 else 0
    return size


def _refuse_entities(element: etree._Element, name: str) -> None:
    dtd = element.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise FormatError(f"{name} in it declares XML entities, which are never resolved")


def _sample(names: dict[str, Any]) -> str:
    shown = sorted(names)[:3]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "") or "nothing"
