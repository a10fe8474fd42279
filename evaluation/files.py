"""Files of experiments."""

from __future__ import annotations

from pathlib import Path

from arag.errors import StorageError
from arag.files import written_whole
from arag.retrieval.tools import whole_characters


def write_file(file: Path, text: str) -> Path:
    """Write a file whole, in a folder that need not exist; half characters are replaced.

    Returns:
        The file.

    Raises:
        StorageError: It cannot be written; then it is as it was.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as out:
            out.write(whole_characters(text).encode())
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror}") from error
    return file
