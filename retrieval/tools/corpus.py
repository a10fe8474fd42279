"""Tools over the whole corpus: complete and counted, where the three searches show the best."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

from langchain_core.tools.base import ArgsSchema
from pydantic import BeforeValidator, Field

from arag.retrieval.corpus.show_documents import show_documents
from arag.retrieval.corpus.show_lines import show_matching_lines
from arag.retrieval.presentation.retrieve import Retrieved
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import OneText, RetrievalArguments, Within
from arag.retrieval.tools.base import RetrievalTool


def _as_object(value: Any) -> Any:
    """Accept an object as a JSON string."""
    if isinstance(value, str):
        if not value.strip():
            return {}
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


class _GrepArguments(RetrievalArguments):
    pattern: OneText = Field(description="Regular expression, without look-around; case is ignored.")
    within: Within = Field(default_factory=str)
    only_match: bool = Field(default_factory=bool, description="Show only what matches; groups as columns.")
    start: int = Field(default_factory=int, description="Line to go on from.")


class Grep(RetrievalTool):
    """All lines that match a regular expression."""

    name: str = "grep"
    description: str = (
        "List all sentences and table rows that match a regular expression, complete and counted: to count, to "
        "compare, to find extremes, to be sure that there is no other."
    )
    args_schema: ArgsSchema | None = _GrepArguments

    def retrieve(
        self,
        pattern: str,
        within: str,
        only_match: bool,
        start: int,
        seen: SeenChunks,  # noqa: ARG002 - what was seen counts, too
    ) -> Retrieved:
        """Show the lines that match, from one of them on."""
        return show_matching_lines(self.index, pattern, within=within, only_match=only_match, start=start)


class _ListArguments(RetrievalArguments):
    within: Within = Field(default_factory=str)
    where: Annotated[dict[str, Any], BeforeValidator(_as_object)] = Field(
        default_factory=dict, description='Conditions on metadata: {"year": {"$gte": 2020}}.'
    )
    sort: OneText = Field(default_factory=str, description="date, title, chunks or a field; -date: latest first.")
    titles_only: bool = Field(default_factory=bool, description="Ids and titles alone.")
    start: int = Field(default_factory=int, description="Document to go on from.")


class ListDocuments(RetrievalTool):
    """The documents, and what is known of them."""

    name: str = "list_documents"
    description: str = (
        "List documents with title, date, author and chunks, complete and counted, and the fields of their metadata."
    )
    args_schema: ArgsSchema | None = _ListArguments

    def retrieve(
        self,
        within: str,
        where: dict[str, Any],
        sort: str,
        titles_only: bool,
        start: int,
        seen: SeenChunks,  # noqa: ARG002 - a list is complete in any case
    ) -> Retrieved:
        """Show documents, from one of them on."""
        return show_documents(
            self.index,
            within=within,
            where=where or None,
            sort=sort,
            titles_only=titles_only,
            start=start,
        )
