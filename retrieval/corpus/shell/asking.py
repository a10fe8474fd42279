"""`meaning` and `sql`: what no real shell has."""

from __future__ import annotations

from arag.errors import InputError
from arag.models.names import DEFAULT_EMBEDDER
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.options import Option, parse
from arag.retrieval.corpus.show_tables import show_tables
from arag.retrieval.corpus.tables import CHUNK_ID
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace
from arag.text.scripts import is_latin

_DEFAULT_SENTENCES = 8
_MAX_SENTENCES = 100
_MEANING_OPTIONS = {
    "-n": Option("number", takes_value=True),
    "-k": Option("number", takes_value=True),
    "--help": Option("help"),
}
_MEANING_USAGE = 'meaning "a short question or statement" [-n 8] [path...]'


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
    """Answer a call of `sql`: the columns' names, and one line a row; without a statement, the tables."""
    sql = " ".join(call.arguments) or (call.stdin or "")
    results = corpus.index.query_tables(sql)
    if not results.sql:
        return Answer(f"{show_tables(results).text}\n")
    hidden = results.columns.index(CHUNK_ID) if CHUNK_ID in results.columns and all(results.chunk_ids) else -1
    names = [name for place, name in enumerate(results.columns) if place != hidden]
    lines = [CELL_BOUNDARY.join(names) + "\n"]
    wanted = list({ids[0] for ids in results.chunk_ids if len(ids) == 1})
    chunks = dict(zip(wanted, corpus.index.mget(wanted), strict=True))
    for row, ids in zip(results.rows, results.chunk_ids, strict=True):
        cells = CELL_BOUNDARY.join(
            "" if value is None else str(value) for place, value in enumerate(row) if place != hidden
        )
        chunk = chunks.get(ids[0]) if len(ids) == 1 else None
        lines.append(f"{cells}\n" if chunk is None else corpus.print_row(chunk, cells))
    return Answer("".join(lines))
