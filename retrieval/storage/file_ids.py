"""The parts of an id that was made from a file's path: `notes/dues.jsonl~2#3` is the third record of a file."""

from __future__ import annotations

import re
from pathlib import PurePath

_COPY_NUMBER = re.compile(r"~\d+$")  # of a file whose path below its folder is another file's id
_RECORD_NUMBER = re.compile(r"#\d+$")
# Of an email, in a mailbox without an extension. `C#/README` is one file in a folder.
_EMAIL = re.compile(r"(#(?:\d+~\d+|[^#/\s][^#\s]*@[^#\s]+))$")


def split_id(document_id: str, file: str) -> tuple[str, str]:
    """Return the id of a document's file, and what names the document in it.

    The second is `#2` for a record, `#` and a `Message-ID` for an email, and empty for a file that is one document.

    Args:
        document_id: The document's id, of which the file may have been renamed since.
        file: The file's absolute path.
    """
    if "#" not in document_id or file.endswith(f"/{path_of(document_id)}"):
        return document_id, ""
    extension = re.escape(PurePath(file).suffix)
    behind_extension = re.compile(rf"{extension}(?:~\d+)?(#.+)") if extension else _EMAIL
    found = behind_extension.search(document_id) or _RECORD_NUMBER.search(document_id)
    if found is None:
        return document_id, ""
    part = found[found.re.groups]
    return document_id.removesuffix(part), part


def path_of(file_id: str) -> str:
    """Return the path that a file's id was made from."""
    return _COPY_NUMBER.sub("", file_id)
