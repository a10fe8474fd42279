"""The manifest: which format, embedder and settings an index was made with. Replaced atomically."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from arag.retrieval.errors import DamagedFileError, IndexFormatError, IndexNotFoundError, InputError
from arag.retrieval.files import written_whole

FORMAT_VERSION = 3
FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What must be known before an index can be opened.

    Attributes:
        embedder: Name of the embedder, as given to `load_embedder`.
        dimension: Length of its vectors.
        chunk_tokens: Size that chunks are cut to, in tokens.
        tokenizer: What counted the tokens.
        language: Language of the sentence rules, or `auto`.
        packed: Whether consecutive short documents share chunks.
        documents: Number of documents, as of the last complete write.
        chunks: Number of chunks.
        sentences: Number of sentences with a vector.
        generation: The number of the write that readers see; grows with each.
        removed_vectors: Vectors that Chroma's folder still has and the index has not.
        files: The files that were made from the chunk store for this generation and are not written to any more:
            path in the folder, size in bytes and CRC-32.
        distance: Distance function of the vector store.
        format_version: Version of the layout on disk.
    """

    embedder: str
    dimension: int
    chunk_tokens: int
    tokenizer: str
    language: str
    packed: bool
    documents: int = 0
    chunks: int = 0
    sentences: int = 0
    generation: int = 0
    removed_vectors: int = 0
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    distance: str = "cosine"
    format_version: int = FORMAT_VERSION


_MANIFEST = TypeAdapter(Manifest)


def vectors_folder(folder: Path, generation: int) -> Path:
    """Return where Chroma's folder of a generation of an index is."""
    return folder / f"chroma.{generation}"


def keyword_file(folder: Path, generation: int) -> Path:
    """Return where the keyword file of a generation of an index is."""
    return folder / f"keywords.{generation}"


def vocabulary_file(folder: Path, generation: int) -> Path:
    """Return where the vocabulary file of a generation of an index is."""
    return folder / f"words.{generation}"


def check_sizes(folder: Path, manifest: Manifest, derived: Path | None = None) -> None:
    """Check that the files of a generation are there and as long as they were: cheap, and done before each use.

    Args:
        folder: The index's folder.
        manifest: The generation's manifest.
        derived: The file, or the folder of the files, to check; all of them where left out.

    Raises:
        IndexFormatError: One is missing, or has another size.
    """
    for name, (size, _) in manifest.files.items():
        file = folder / name
        if derived is None or derived in (file, *file.parents):
            try:
                found = file.stat().st_size
            except OSError:
                found = -1
            if found != size:
                problem = "is missing" if found < 0 else f"has {found:,} bytes in place of {size:,}"
                raise IndexFormatError(f"{file} {problem}: run `arag verify --index {folder} --repair`")


def is_whole(folder: Path, manifest: Manifest) -> bool:
    """Tell whether all files of a generation are there, as long as they were."""
    try:
        check_sizes(folder, manifest)
    except IndexFormatError:
        return False
    return True


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexFormatError: The manifest is damaged or of another format version.
        InputError: The folder cannot be looked into.
    """
    file = folder / FILE_NAME
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise IndexNotFoundError(
            f"no index in {folder}: make one with `arag ingest PATH... --index {folder}`"
        ) from None
    except UnicodeDecodeError as error:
        raise DamagedFileError(file, str(error)) from error
    except (OSError, ValueError) as error:  # a name that is too long, say, or that no file can have
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{file} cannot be read: {reason}") from error
    return parse_manifest(text, file)


def parse_manifest(text: str, file: Path) -> Manifest:
    """Read the text of a manifest.

    Args:
        text: The text.
        file: Where it stands, for messages.

    Raises:
        IndexFormatError: The manifest is damaged or of another format version.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(file, str(error)) from error
    version = values.get("format_version") if isinstance(values, dict) else None
    if isinstance(version, int) and version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{file} has format version {version!r}; this version of arag reads {FORMAT_VERSION}. "
            "Ingest the documents again into another folder."
        )
    try:
        return _MANIFEST.validate_python(values)
    except ValidationError as error:
        problem = error.errors()[0]
        raise DamagedFileError(file, f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


def manifest_json(manifest: Manifest) -> str:
    """Return a manifest as text."""
    return json.dumps(asdict(manifest), ensure_ascii=False, indent=2) + "\n"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of an index, so that a reader sees the old one or the new one, whole."""
    with written_whole(folder / FILE_NAME) as out:
        out.write(manifest_json(manifest).encode())
