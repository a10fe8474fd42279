"""The tool `shell`: one command over the documents, as a shell would run it over files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from langchain_core.tools.base import ArgsSchema
from pydantic import BeforeValidator, model_validator

from arag.retrieval.corpus.shell.output import ShellResult
from arag.retrieval.corpus.shell.run import run_shell
from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import RetrievalArguments
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.commands import close_quote, find_command, tidy_command
from arag.retrieval.types import Chunk


class _ShellArguments(RetrievalArguments):
    command: Annotated[str, BeforeValidator(tidy_command)]

    @model_validator(mode="before")
    @classmethod
    def _find_command(cls, values: Any) -> Any:
        return find_command(values)


class Shell(RetrievalTool):
    """A shell over the index; see `arag.retrieval.corpus.shell`."""

    name: str = "shell"
    description: str = (
        "Run a command in a read-only shell. Each document is a text file with a sentence or table row on each line, "
        "printed as file:chunk:text. rg, ls, cat, sed -n, awk, sort, uniq -c, cut, wc, pipes and loops work. `meaning "
        '"a short question"` prints the nearest sentences by meaning. `sql` lists all tables, `sql "SELECT ..."` '
        "queries them."
    )
    args_schema: ArgsSchema | None = _ShellArguments
    names_lines: ClassVar[bool] = False  # in the documents' files, as `rg` prints them

    def retrieve(self, command: str, seen: SeenChunks) -> Retrieved:
        """Run the command."""
        result = run_shell(self.index, command, names_lines=self.names_lines)
        closed = close_quote(command, result.text)
        if closed is not None:
            result = run_shell(self.index, closed, names_lines=self.names_lines)
        return _describe(result, self.index, seen)


def _describe(result: ShellResult, index: Index, seen: SeenChunks) -> Retrieved:
    """Return a command's output as a tool's result."""
    whole = _list_whole(result, index.mget(list(result.sentences)))
    return Retrieved(
        text=result.text,
        chunk_ids=result.chunk_ids,
        results={"exit_code": result.exit_code},
        new_chunks=[chunk for chunk in whole if chunk.id not in seen.whole],
        sentences=result.sentences,
        evidence=result.evidence,
    )


def _list_whole(result: ShellResult, chunks: Sequence[Chunk | None]) -> list[Chunk]:
    """Return the chunks of which all sentences are shown."""
    whole: list[Chunk] = []
    for chunk in chunks:
        if chunk is not None and len(result.sentences[chunk.id]) == len(chunk.sentences):
            whole.append(chunk)
    return whole
