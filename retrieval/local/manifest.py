"""The manifest: which format, embedder and settings an index was made with. Replaced atomically."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from arag.errors import DamagedFileError, IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.files import digest, written_whole
from arag.models.names import drop_credentials
from arag.retrieval.backend import Manifest

FORMAT_VERSION = 5
FILE_NAME = "manifest.json"

_OLDEST_VERSION = 4  # that is read; the next run that writes converts it
_MAX_BYTES = 1_000_000  # of a manifest: a thousand times what is written
# An index may come from somebody else. Its manifest may name only the index's own files and possible numbers.
_FileName = Annotated[str, StringConstraints(pattern=r"^(?:(?:keywords|words)\.\d+|chroma\.\d+(?:/[\w-][\w.-]*)+)$")]
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0, le=1 << 53)]


@dataclass(frozen=True, slots=True)
class LocalManifest(Manifest):
    """The manifest of an index in a folder.

    Attributes:
        removed_vectors: Vectors that Chroma's folder still has and the index does not.
        files: The files derived from the chunk store for this generation, which are never written to again:
            path in the folder, size in bytes and SHA-256.
        seal: Shows who wrote these files; see `arag.retrieval.local.seal`.
        format_version: Version of the layout on disk.
    """

    removed_vectors: _Count = 0
    files: dict[_FileName, tuple[_Count, _Digest]] = field(default_factory=dict)
    seal: str = ""
    format_version: int = FORMAT_VERSION


_MANIFEST = TypeAdapter(LocalManifest)


def vectors_folder(folder: Path, generation: int) -> Path:
    """Return the path of Chroma's folder for a generation of an index."""
    return folder / f"chroma.{generation}"


def keyword_file(folder: Path, generation: int) -> Path:
    """Return the path of the keyword file of a generation of an index."""
    return folder / f"keywords.{generation}"


def vocabulary_file(folder: Path, generation: int) -> Path:
    """Return the path of the vocabulary file of a generation of an index."""
    return folder / f"words.{generation}"


def find_file_faults(
    folder: Path, manifest: LocalManifest, derived: Path | None = None, *, contents: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the derived files of a generation that are missing or changed, and what is wrong with them.

    Args:
        folder: The index's folder.
        manifest: The generation's manifest.
        derived: The file or folder to check; by default all.
        contents: Also compare checksums, which takes as long as reading the files.
    """
    for name, (size, expected) in manifest.files.items():
        file = folder / name
        if derived is not None and derived not in (file, *file.parents):
            continue
        found = _file_size(folder, name)
        if found is None:
            yield name, "it is missing"
        elif found != size:
            yield name, f"it has {found:,} bytes instead of {size:,}"
        elif contents and digest(file) != expected:
            yield name, "its checksum is wrong"


def check_files(folder: Path, manifest: LocalManifest, derived: Path, *, contents: bool = False) -> None:
    """Check derived files before they are used; the arguments are those of `find_file_faults`.

    Raises:
        IndexFormatError: One is missing, has the wrong size or, if checked, the wrong contents.
        StorageError: One cannot be read.
    """
    try:
        for name, fault in find_file_faults(folder, manifest, derived, contents=contents):
            raise IndexFormatError(f"{folder / name} is damaged ({fault}): run `arag verify --index {folder} --repair`")
    except OSError as error:
        raise StorageError(f"{derived} cannot be read: {error.strerror}") from error


def _file_size(folder: Path, name: str) -> int | None:
    """Return the size of a file of an index; None if it is missing, or is a link, a pipe or the like."""
    if any(parent.name and (folder / parent).is_symlink() for parent in PurePosixPath(name).parents):
        return None
    try:
        status = (folder / name).lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def read_manifest(folder: Path) -> LocalManifest:
    """Read the manifest of an index.

    Args:
        folder: The index's folder.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexFormatError: The manifest is damaged or of another format version.
        InputError: The folder cannot be read.
    """
    file = folder / FILE_NAME
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would block forever
            raise DamagedFileError(file, "it is not a file")
        if status.st_size > _MAX_BYTES:
            raise DamagedFileError(file, f"it has {status.st_size:,} bytes; a manifest has at most {_MAX_BYTES:,}")
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise IndexNotFoundError(
            f"no index in {folder}: make one with `arag ingest PATH... --index {folder}`"
        ) from None
    except UnicodeDecodeError as error:
        raise DamagedFileError(file, str(error)) from error
    except (OSError, ValueError) as error:  # such as a name that is too long, or that no file can have
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{file} cannot be read: {reason}") from error
    return parse_manifest(text, file)


def parse_manifest(text: str, file: Path) -> LocalManifest:
    """Read the text of a manifest.

    Args:
        text: The text.
        file: The file that it is from, for messages.

    Raises:
        IndexFormatError: The manifest is damaged or of another format version.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(file, str(error)) from error
    version = values.get("format_version") if isinstance(values, dict) else None
    if isinstance(version, int) and not _OLDEST_VERSION <= version <= FORMAT_VERSION:
        raise IndexFormatError(
            f"{file} has format version {version!r}; this version of arag reads {_OLDEST_VERSION} to {FORMAT_VERSION}. "
            "Ingest the documents again into another folder."
        )
    try:
        manifest = _MANIFEST.validate_json(text, strict=True)
        return replace(manifest, embedder=drop_credentials(manifest.embedder))
    except ValidationError as error:
        problem = error.errors()[0]
        raise DamagedFileError(file, f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


def manifest_json(manifest: LocalManifest) -> str:
    """Return a manifest as text."""
    return json.dumps(asdict(manifest), ensure_ascii=False, indent=2) + "\n"


def write_manifest(folder: Path, manifest: LocalManifest) -> None:
    """Replace the manifest of an index, so that a reader sees either the old one or the new one."""
    with written_whole(folder / FILE_NAME) as out:
        out.write(manifest_json(manifest).encode())
