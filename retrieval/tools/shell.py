"""The tool `shell`: one command over the documents, as a shell would run it over files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.tools.base import ArgsSchema
from pydantic import BeforeValidator

from arag.retrieval.corpus.shell.output import ShellResult
from arag.retrieval.corpus.shell.run import run_shell
from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import RetrievalArguments
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.types import Chunk


def _as_command(value: Any) -> Any:
    """Accept what models send for a command: the words of a program's call, such as `["bash", "-lc", "rg a"]`."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return value
    if len(value) == 3 and value[1] in {"-c", "-lc"}:
        return value[2]
    return shlex.join(value)


class _ShellArguments(RetrievalArguments):
    command: Annotated[str, BeforeValidator(_as_command)]


class Shell(RetrievalTool):
    """A shell over the index; see `arag.retrieval.corpus.shell`."""

    name: str = "shell"
    description: str = (
        "Run a command in a read-only shell over the documents. Each is a text file with a sentence or table row on "
        "each line; lines are printed as file:chunk:text. rg, ls, find, cat, sed -n, awk, sort, uniq -c, cut, wc, "
        'pipes and loops work. `meaning "a short question"` prints the nearest sentences by meaning. `sql` lists all '
        'tables; `sql "SELECT ..."` queries them.'
    )
    args_schema: ArgsSchema | None = _ShellArguments

    def retrieve(self, command: str, seen: SeenChunks) -> Retrieved:
        """Run the command."""
        _ = seen
        return describe(run_shell(self.index, command), self.index)


def describe(result: ShellResult, index: Index) -> Retrieved:
    """Return a command's output as a tool's result."""
    return Retrieved(
        text=result.text,
        chunk_ids=result.chunk_ids,
        results={"exit_code": result.exit_code},
        new_chunks=_list_whole(result, index.mget(list(result.sentences))),
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
