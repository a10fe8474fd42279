"""`help`: the commands that there are. The interpreter's own does not know ours, and names some that do not work."""

from __future__ import annotations

from arag.retrieval.corpus.shell.asking import MEANING_USAGE, SQL_USAGE
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.finding import FIND_VALID
from arag.retrieval.corpus.shell.listing import LS_VALID
from arag.retrieval.corpus.shell.search_options import HELP

_OVERVIEW = """\
Each document is a file: its title, then one line a sentence or table row. Commands that know the index:
  rg PATTERN [path...]   lines that match a regular expression; grep, too
  meaning "a question"   the nearest sentences
  sql "SELECT ..."       all tables; sql alone lists them
  ls, find               documents
cat, head, tail, sed, awk, sort, uniq, wc, cut, tr, jq, xargs, pipes, loops and variables work as in other shells.
The documents cannot be changed, and files that a command writes are gone at its end.
`help rg` shows more about rg, and so on.
"""
_USAGES = {
    **dict.fromkeys(("rg", "grep", "egrep", "fgrep"), HELP),
    "meaning": f"Usage: {MEANING_USAGE}\n",
    "sql": f"Usage: {SQL_USAGE}\n",
    "ls": f"Usage: ls [options] [path...]\nOptions: {LS_VALID}\n",
    "find": f"Usage: find [path...] [conditions]\nConditions: {FIND_VALID}\n",
    "help": "Usage: help [command]\n",
}


def show_help(call: Call, _: Corpus) -> Answer:
    """Answer a call of `help`."""
    names = [argument for argument in call.arguments if not argument.startswith("-")]
    unknown = [name for name in names if name not in _USAGES]
    if unknown:
        return Answer("", f"help: {unknown[0]} is none of the index's commands: try {unknown[0]} --help\n", 1)
    return Answer("".join(_USAGES[name] for name in names) or _OVERVIEW)
