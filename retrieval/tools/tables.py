"""The tool for queries over the tables of a corpus."""

from __future__ import annotations

from dataclasses import asdict

from langchain_core.tools.base import ArgsSchema
from pydantic import Field

from arag.retrieval.corpus.show_tables import show_tables
from arag.retrieval.presentation.retrieve import Retrieved
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import OneText, RetrievalArguments, Within
from arag.retrieval.tools.base import RetrievalTool


class _TableArguments(RetrievalArguments):
    sql: OneText = Field(default_factory=str, description="One SELECT (SQLite). Without it, the tables are listed.")
    within: Within = Field(default_factory=str)


class QueryTables(RetrievalTool):
    """query_tables: SQL over all tables of the corpus."""

    name: str = "query_tables"
    description: str = "Query all tables of the documents with SQL: sums, counts, extremes, joins over all rows."
    args_schema: ArgsSchema | None = _TableArguments

    def retrieve(self, sql: str, within: str, seen: SeenChunks) -> Retrieved:  # noqa: ARG002 - rows are shown again
        """Run a query, or list the tables."""
        results = self.index.query_tables(sql, within=within)
        shown = show_tables(results)
        return Retrieved(
            text=shown.text,
            chunk_ids=shown.chunk_ids,
            results=asdict(results),
            evidence=shown.evidence,
        )
