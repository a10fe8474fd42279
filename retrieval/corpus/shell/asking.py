"""`meaning` and `sql`: what no real shell has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from arag.errors import InputError
from arag.models.names import knows_script
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus, TableRow
from arag.retrieval.corpus.shell.options import Option, parse
from arag.retrieval.corpus.show_tables import show_tables, write_unit
from arag.retrieval.corpus.sql import TableResults
from arag.retrieval.corpus.tables import CHUNK_ID, DOCUMENT
from arag.retrieval.presentation.context import expand
from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_Sentence: TypeAlias = tuple[Chunk, int]  # a chunk, and a position in it

_DEFAULT_SENTENCES = 5  # further ones seldom help, and each costs about 30 tokens
_MAX_SENTENCES = 100
_STAR = re.compile(r"(?:\bselect|,)\s*(?:\w+\.)?\*", re.IGNORECASE)
_MAX_EXACT = 1e15  # larger numbers lose digits below 1
_MEANING_OPTIONS = {
    "-n": Option("number", takes_value=True),
    "-k": Option("number", takes_value=True),
    "--help": Option("help"),
}
MEANING_USAGE = 'meaning "a short question or statement" [-n 5] [path...]'
SQL_USAGE = 'sql "SELECT ..."; sql alone lists the tables'


def find_meaning(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `meaning`: the sentences nearest to a text, best first."""
    parsed = parse(call.arguments, _MEANING_OPTIONS, valid=MEANING_USAGE, number="number")
    operands = list(parsed.operands) or (call.stdin or "").split()
    if parsed.has("help") or not operands:
        raise InputError(f"usage: {MEANING_USAGE}")
    query, paths = _split_operands(operands, call, corpus)
    if len(query) > MAX_CHARACTERS:
        raise InputError(f"the text has {len(query):,} characters: give at most {MAX_CHARACTERS:,}")
    index = corpus.index
    if not knows_script(index.embedder.name, query):
        raise InputError("the vectors know Latin letters only: use rg, with words as the documents have them")
    if paths is None:
        paths = corpus.documents.resolve(".", call.folder)
    if paths is not None and len(paths) < len(corpus.documents.paths):
        index = corpus.limited_to(paths)
    given = parsed.number("number")
    wanted = min(given or _DEFAULT_SENTENCES, _MAX_SENTENCES)
    hits = index.semantic_search(query, wanted).hits
    ranked = _rank_sentences(hits)[:wanted]
    if ranked and given is None:
        ranked = _with_context(ranked[0]) + ranked[1:]
    lines = [corpus.print_line(Line(chunk, position, sentence_line(chunk, position))) for chunk, position in ranked]
    return Answer("".join(dict.fromkeys(lines)), "", 0 if lines else 1)


def _rank_sentences(hits: Iterable[Hit]) -> list[_Sentence]:
    """Return the sentences of hits, nearest first."""
    rated: list[tuple[float, _Sentence]] = []
    for hit in hits:
        for position, similarity in hit.similarities.items():
            rated.append((similarity, (hit.chunk, position)))
    rated.sort(key=lambda entry: -entry[0])
    return [sentence for _, sentence in rated]


def _with_context(sentence: _Sentence) -> list[_Sentence]:
    """Return a sentence with those around it, in the order of the text: the next one often has the answer."""
    chunk, position = sentence
    shown = expand(chunk, {position}, is_subject=True, window=True)
    return [(chunk, place) for place in sorted(shown)]


def _split_operands(operands: list[str], call: Call, corpus: Corpus) -> tuple[str, list[str] | None]:
    """Return the text to look for, and the paths to look in; without quotes, the text is several operands."""
    first, *others = operands
    paths: list[str] = []
    for name in others:
        corpus.check_time()
        found = corpus.documents.resolve(name, call.folder)
        if found is None:
            return " ".join(operands), None
        paths += found
    return first, paths or None


def query_tables(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `sql`: the rows of a query, or the list of all tables."""
    sql = " ".join(call.arguments).strip() or (call.stdin or "").strip()
    if sql in {"--help", "-h"}:
        return Answer(f"usage: {SQL_USAGE}\n")
    results = corpus.index.query_tables(sql)
    if not sql:
        return Answer(f"{show_tables(results).text}\n")
    places = _list_places(results, sql)
    shown_places = [place for place in places if not _is_in_marks(results, place)]
    names = CELL_BOUNDARY.join(results.columns[place] for place in shown_places)
    lines: list[str] = []
    for row, chunk_ids in zip(results.rows, results.chunk_ids, strict=True):
        line = CELL_BOUNDARY.join(_write(row[place]) for place in places)
        shown = CELL_BOUNDARY.join(_write(row[place]) for place in shown_places)
        printed = corpus.rows.setdefault(line, TableRow(names, shown, {}))
        printed.chunk_ids.update(dict.fromkeys(chunk_ids))
        lines.append(f"{line}\n")
    errors = "".join(f"sql: {write_unit(compared)}\n" for compared in results.compared_units)
    if results.truncated:
        errors += f"sql: {len(lines):,} of {results.total:,} rows: group them, or add LIMIT and OFFSET\n"
    return Answer("".join(lines), errors)


def _list_places(results: TableResults, sql: str) -> list[int]:
    """Return the places of the columns to print: without those that `SELECT *` adds and marks say."""
    places = list(range(len(results.columns)))
    if _STAR.search(sql) and all(results.chunk_ids):
        places = [place for place in places if results.columns[place] not in {CHUNK_ID, DOCUMENT}]
        if not any(row[place] for row in results.rows for place in places[-1:]):  # `sheet`, which most tables lack
            places = places[:-1]
    return places


def _is_in_marks(results: TableResults, place: int) -> bool:
    """Return whether a column has what the marks of all rows say: their chunks, or these chunks' documents."""
    if results.columns[place] not in {CHUNK_ID, DOCUMENT} or not results.rows:
        return False
    for row, chunk_ids in zip(results.rows, results.chunk_ids, strict=True):
        said = [
            chunk_id if results.columns[place] == CHUNK_ID else chunk_id.rpartition(":")[0] for chunk_id in chunk_ids
        ]
        if said != [row[place]]:
            return False
    return True


def _write(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.12g}" if abs(value) < _MAX_EXACT else repr(value)
    return collapse_whitespace(str(value))
