"""The words of the corpus, for suggestions.

They are in the chunk store's full-text table, which takes seconds to scan in a large corpus. So a file derived from
it lists them by length, to find the words nearest to a misspelt one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from arag.errors import DamagedFileError
from arag.files import written_whole
from arag.retrieval.local.manifest import LocalManifest, check_files, vocabulary_file
from arag.retrieval.tables.words import by_length


def write_vocabulary(file: Path, words: Iterable[str]) -> None:
    """Write words (lower case, without diacritics) to a file, one per line; it appears when it is complete."""
    with written_whole(file) as out:
        out.writelines(f"{word}\n".encode() for word in by_length(words))


def read_vocabulary(folder: Path, manifest: LocalManifest) -> list[str]:
    """Return the words of a generation of an index, by length.

    Raises:
        IndexFormatError: The file is missing or damaged.
        StorageError: It cannot be read.
    """
    file = vocabulary_file(folder, manifest.generation)
    check_files(folder, manifest, file, contents=True)
    try:
        return file.read_bytes().decode().split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedFileError(file, str(error)) from error
