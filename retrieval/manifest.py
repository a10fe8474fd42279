"""The manifest: which format, embedder and settings an index was made with. Replaced atomically."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from arag.retrieval.errors import IndexFormatError, IndexNotFoundError

FORMAT_VERSION = 1
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
        generation: Grows with every write.
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
    distance: str = "cosine"
    format_version: int = FORMAT_VERSION


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexFormatError: The manifest is damaged or of another format version.
    """
    file = folder / FILE_NAME
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise IndexNotFoundError(
            f"no index in {folder}: make one with `arag ingest PATH... --index {folder}`"
        ) from None
    except ValueError as error:
        raise IndexFormatError(f"{file} is damaged: {error}") from error
    version = values.get("format_version") if isinstance(values, dict) else None
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{file} has format version {version!r}; this version of arag reads {FORMAT_VERSION}. "
            "Ingest the documents again into another folder."
        )
    known = {field.name for field in fields(Manifest)}
    try:
        return Manifest(**{name: value for name, value in values.items() if name in known})
    except TypeError as error:
        raise IndexFormatError(f"{file} is damaged: {error}") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of an index, so that a reader sees the old one or the new one, whole."""
    temporary = folder / f"{FILE_NAME}.new"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(asdict(manifest), file, ensure_ascii=False, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / FILE_NAME)
