"""`meaning` and `sql`: what no real shell has."""

from __future__ import annotations

from arag.errors import InputError
from arag.models.names import DEFAULT_EMBEDDER
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.options import Option, parse
from arag.text.normalise import collapse_whitespace
from arag.text.scripts import is_latin

_DEFAULT_SENTENCES = 8
_MAX_SENTENCES = 100
_MEANING_OPTIONS = {
    "-n": Option("number", takes_value=True),
    "-k": Option("number", takes_value=True),
    "--help": Option("help"),
}
_MEANING_USAGE = 'meaning "a short question or statement" [-n 8] [path...]'
_SQL_USAGE = 'sql "SELECT ..."; sql alone lists the tables'


def find_meaning(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `meaning`: the sentences nearest to a text, best first."""
    parsed = parse(call.arguments, _MEANING_OPTIONS, valid=_MEANING_USAGE, number="number")
    operands = list(parsed.operands) or (call.stdin or "").split()
    if parsed.has("help") or not operands:
        raise InputError(f"usage: {_MEANING_USAGE}")
    query, paths = _split_operands(operands, call, corpus)
    if len(query) > MAX_CHARACTERS:
        raise InputError(f"the text has {len(query):,} characters: give at most {MAX_CHARACTERS:,}")
    index = corpus.index
    if index.embedder.name == DEFAULT_EMBEDDER and not is_latin(query):
        raise InputError("the vectors know Latin letters only: use rg, with words as the documents have them")
    if paths is not None:
        index = index.limited_to([corpus.documents.ids[path] for path in paths])
    wanted = min(parsed.number("number") or _DEFAULT_SENTENCES, _MAX_SENTENCES)
    found: list[tuple[float, Line]] = []
    for hit in index.semantic_search(query, wanted).hits:
        for position, similarity in hit.similarities.items():
            text = collapse_whitespace(hit.chunk.sentence_text(position))
            found.append((similarity, Line(hit.chunk, position, text)))
    found.sort(key=lambda entry: -entry[0])
    lines = [corpus.print_line(line) for _, line in found[:wanted]]
    return Answer("".join(lines), "", 0 if lines else 1)


def _split_operands(operands: list[str], call: Call, corpus: Corpus) -> tuple[str, list[str] | None]:
    """Return the text to look for, and the paths to look in; without quotes, the text is several operands."""
    first, *others = operands
    paths: list[str] = []
    for name in others:
        found = corpus.documents.resolve(name, call.folder)
        if found is None:
            return " ".join(operands), None
        paths += found
    return first, paths or None


def query_tables(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `sql`."""
    _ = (call, corpus)
    return Answer("", f"sql: there are no tables ({_SQL_USAGE})\n", 1)
