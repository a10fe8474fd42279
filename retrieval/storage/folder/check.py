"""Looks for damage in an index's folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from arag.errors import IndexFormatError
from arag.retrieval.storage.check import Passes, check_documents
from arag.retrieval.storage.folder.chroma import MIN_SENTENCES, ReadOnlyError, VectorIndex
from arag.retrieval.storage.folder.derived import keyword_file, vector_index_folder, words_file
from arag.retrieval.storage.folder.sqlite import INDEX_FILE
from arag.retrieval.storage.folder.view import FolderView
from arag.retrieval.storage.folder.words import has_right_words
from arag.retrieval.storage.keywords import format_keywords
from arag.retrieval.storage.records import Damage, ShowShare
from arag.text.visible import visible_line

_PASSES = 2  # over all chunks: the documents and the word index


def find_damage(view: FolderView, folder: Path, show: ShowShare | None = None) -> Iterator[Damage]:
    """Look for damage in all files of an index.

    Args:
        view: The last snapshot.
        folder: The index's folder.
        show: Called with the part that is finished.

    Yields:
        Each fault. Damaged documents are the last: everything else is derived from them.
    """
    passes = Passes(_PASSES, view.settings.chunks, show)
    try:
        view.check_file()
        check_documents(view, passes)
    except IndexFormatError as error:
        yield Damage(INDEX_FILE, str(error), repairable=False)
        return
    if view.counted(view.settings) != view.settings:
        yield Damage(INDEX_FILE, "its settings count more or less than there is")
    yield from _check_keywords(view, keyword_file(folder, view.settings.token))
    words = words_file(folder, view.settings.token)
    if not has_right_words(words, view, passes):
        yield Damage(words.name, "it does not have the words of the chunks")
    yield from _check_vector_index(view, vector_index_folder(folder, view.settings.token))


def _check_keywords(view: FolderView, file: Path) -> Iterator[Damage]:
    if not file.is_file():
        yield Damage(file.name, "it is missing")
        return
    with file.open("rb") as stored:
        pieces = format_keywords(text for _, text in view.chunk_texts())
        has_texts = all(stored.read(len(piece)) == piece for piece in pieces)
        has_more = bool(stored.read(1))
    if not has_texts or has_more:
        yield Damage(file.name, "it does not have the texts of the chunks")


def _check_vector_index(view: FolderView, folder: Path) -> Iterator[Damage]:
    if view.settings.sentences < MIN_SENTENCES:
        return
    try:
        with closing(VectorIndex(folder, view.settings.sentences)) as vector_index:
            any_vector = np.ones(view.settings.dimension, np.float32)
            vector_index.nearest(any_vector, 1)
    except ReadOnlyError as error:
        warnings.warn(visible_line(f"{folder} was not checked: {error}"), stacklevel=2)
    except IndexFormatError as error:
        yield Damage(folder.name, str(error))
