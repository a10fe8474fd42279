"""Where files are now: a document keeps the id that was made from its file's path when the file is moved or renamed."""

from __future__ import annotations

from collections.abc import Mapping

from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.file_ids import path_of, split_id

_MAX_KEPT = 16  # views: a path has some hundred bytes
_UNREADABLE = "\ufffd"


def _find_moved(view: View) -> Mapping[str, str]:
    """Return the paths of moved and renamed files by the ids of their documents.

    A path begins at the folder that was ingested; of several folders around a file, at the outermost.
    """
    folders = sorted(view.settings.folders, key=len)
    moved: dict[str, str] = {}
    for document_id, file in view.files().items():
        file_id, part = split_id(document_id, file)
        top = file.removesuffix(f"/{path_of(file_id)}")
        # A name that is not UTF-8 is written in another way in the file's path.
        if top in folders or _UNREADABLE in document_id:
            continue
        around = next((folder for folder in folders if file.startswith(f"{folder}/")), "")
        if around:
            moved[document_id] = file.removeprefix(f"{around}/") + part
    return moved


find_moved = KeptByView(_find_moved, most=_MAX_KEPT)
