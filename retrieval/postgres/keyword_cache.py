"""A copy of the texts on the reader's machine, so that common keywords are searched at the speed of its memory.

It is a keyword file, as an index in a folder has one. When a generation is published, what is new in it is read from
the server, and the rest from the file of the generation before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from filelock import FileLock

from arag.errors import IndexFormatError, StorageError
from arag.files import make_folder
from arag.retrieval.keyword_file import KeywordMatcher, write_keyword_file
from arag.retrieval.postgres.chunk_store import PostgresChunks
from arag.retrieval.postgres.manifest import PostgresManifest

_PAGE = 2_000  # texts read from the server at a time


def open_keyword_file(folder: Path, manifest: PostgresManifest, chunks: PostgresChunks) -> KeywordMatcher:
    """Open the keyword file of a generation, and write it first if there is none. Other processes wait meanwhile.

    Args:
        folder: The folder for such files, created if it does not exist.
        manifest: The generation's manifest.
        chunks: Its chunks.

    Raises:
        IndexFormatError: The generation is gone.
        StorageError: The file cannot be written or read.
    """
    file, *older = (folder / publication for publication in manifest.publications)
    try:
        make_folder(folder)
        with FileLock(folder / "lock"):
            with suppress(IndexFormatError):
                return KeywordMatcher(file)
            _write(file, chunks, _open_first(older))
            for other in older:
                other.unlink(missing_ok=True)
            return KeywordMatcher(file)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"the keyword file {file} cannot be written or read: {error}") from error


def _open_first(files: Sequence[Path]) -> KeywordMatcher | None:
    """Open the first file that is there, and whole."""
    for file in files:
        with suppress(IndexFormatError):
            return KeywordMatcher(file)
    return None


def _write(file: Path, chunks: PostgresChunks, before: KeywordMatcher | None) -> None:
    by_id = chunks.numbers_by_id()
    write_keyword_file(file, _texts(np.sort(np.asarray(by_id, dtype=np.int64)), chunks, before), by_id)


def _texts(
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]], chunks: PostgresChunks, before: KeywordMatcher | None
) -> Iterator[tuple[int, str]]:
    """Yield number and text of chunks, by number."""
    for start in range(0, len(numbers), _PAGE):
        page = numbers[start : start + _PAGE].tolist()
        known = {} if before is None else before.texts(page)
        read = chunks.lowered([number for number in page if number not in known])
        for number in page:
            text = known.get(number) or read.get(number)
            if text is not None:
                yield number, text
