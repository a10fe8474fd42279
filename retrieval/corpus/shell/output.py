"""The output of a command as a model reads it: few tokens, with marks that no document can write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arag.retrieval.corpus.lines import list_lines, places_by_text
from arag.retrieval.corpus.patterns import compile_pattern
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.reading import MIN_TEXT
from arag.retrieval.corpus.shell.writing import MAX_MARKS, NUMBER, OutputLine, write_lines
from arag.retrieval.types import Chunk
from arag.text.marks import without_marks
from arag.text.normalise import CUT, collapse_whitespace, count
from arag.text.tokens import count_tokens

MAX_TOKENS = 2_000  # of a command's output: one command often does the work of several searches

_MAX_LINES = 2_000  # that are looked at: more are never shown
_MAX_LINE = 400  # characters of a line, where not all lines are shown whole
_BEFORE_MATCH = 120  # characters of a cut line before the match
_MAX_ERRORS = 8  # lines
_MIN_PART = 40  # characters of a part of a line that tell its chunk
_MAX_COMPARED = 2_000  # printed lines that each line is compared with: more would take longer than to print them
_PREFIX = re.compile(r"(\s*+(?:\d++(?:[:\t]| ++))?)([^:]++):\d+:")  # possessive: lines may have millions of spaces
_PLAIN = re.compile(r"[\w .,'’-]*\w[\w .,'’-]*")
_SHELL_LINE = re.compile(r"^bash: line \d+: ", re.MULTILINE)


@dataclass(frozen=True)
class ShellResult:
    """What a command printed, as the model is shown it."""

    text: str
    exit_code: int = 0
    chunk_ids: Sequence[str] = ()
    """Ids of the chunks that are shown."""
    sentences: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By chunk id, the positions of the sentences that are shown whole."""
    evidence: Sequence[str] = ()
    """The documents' texts in it."""


@dataclass(frozen=True)
class Ended:
    """A command's own output."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 1
    is_cut: bool = False  # the interpreter has left out the rest


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a line of the output is from."""

    text: str  # without its number and its chunk's prefix
    number: str = ""
    chunk_id: str = ""  # empty if that is not known


def compose(ended: Ended, corpus: Corpus) -> ShellResult:
    """Write a command's output for a model."""
    printed = ended.stdout.replace("\0", "\n")  # as `-print0` ends names
    lines = printed.rstrip("\n").split("\n") if printed.strip("\n") else []
    shown = _attribute(lines[:_MAX_LINES], corpus)
    pieces = write_lines(shown)
    tokens = _count_each(pieces)
    notes: list[str] = []
    if sum(tokens) > MAX_TOKENS:
        is_shortened = _shorten(shown, corpus)
        pieces = write_lines(shown)
        tokens = _count_each(pieces)
        if is_shortened:
            notes.append(f"lines of more than {_MAX_LINE} characters are cut at {CUT}")
    kept = _count_fitting(tokens)
    if kept < len(lines):
        total = f"more than {len(lines):,}" if ended.is_cut else f"{len(lines):,}"
        notes.insert(0, f"{kept:,} of {total} lines; for the rest add | tail -n +{kept + 1}, or narrow it")
    parts = ["\n".join(piece for piece in pieces[:kept] if piece is not None)] if kept else []
    errors = _attribute(_list_errors(ended.stderr), corpus)
    if errors:
        parts.append("\n".join(piece for piece in write_lines(errors) if piece is not None))
    if not "".join(parts).strip():
        parts.append("(no output)" if ended.exit_code in {0, 1} else f"(no output; exit code {ended.exit_code})")
        parts += _hint(corpus)
    if notes:
        parts.append(f"({'; '.join(notes)})")
    return _make_result("\n".join(parts), ended.exit_code, [*shown[:kept], *errors])


def _count_each(pieces: Iterable[str | None]) -> list[int]:
    return [0 if piece is None else count_tokens(piece) + 1 for piece in pieces]


def _count_fitting(tokens: Sequence[int]) -> int:
    """Return how many lines fit into the budget, at least one."""
    total = 0
    for number, line_tokens in enumerate(tokens):
        total += line_tokens
        if total > MAX_TOKENS and number > 0:
            return number
    return len(tokens)


# --- chunks ---


def _attribute(lines: Sequence[str], corpus: Corpus) -> list[OutputLine]:
    """Find the chunk that each line is from.

    A line is a chunk's if a command read this chunk, or printed its prefix in this call, and the rest of the line
    occurs in the chunk: no document's text can pose as another's.
    """
    sources = _find_sources(lines, corpus)
    wanted = list(dict.fromkeys(source.chunk_id for source in sources if source.chunk_id))
    chunks: dict[str, Chunk] = {}
    bodies: dict[str, str] = {}
    for chunk_id, chunk in zip(wanted, corpus.index.mget(wanted), strict=True):
        if chunk is not None:
            chunks[chunk_id] = chunk
            bodies[chunk_id] = "\n".join([collapse_whitespace(chunk.text), *_list_titles(chunk)])
    shown: list[OutputLine] = []
    last = ""  # the chunk of the line before
    for line, source in zip(lines, sources, strict=True):
        is_more = not source.chunk_id and len(line) >= _MIN_PART and line in bodies.get(last, "")
        last = last if is_more else source.chunk_id
        chunk = chunks.get(last)
        if chunk is None:
            shown.append(OutputLine(_without_prefix(line, corpus), row=corpus.rows.get(line)))
        elif not source.text or source.text not in bodies[last]:  # such as the words of `rg --replace`
            shown.append(OutputLine(_without_prefix(line, corpus)))
        elif source.number:
            shown.append(OutputLine(f"{source.number}{corpus.prefix(chunk)}:{source.text}", named=chunk))
        else:
            shown.append(OutputLine(source.text, chunk))
    return shown


def _without_prefix(line: str, corpus: Corpus) -> str:
    """Return a line that is not a chunk's with a space in what may pass for a chunk's prefix at its start."""
    # Characters that are not shown could hide a prefix, and other line breaks begin new lines.
    parts = [_space_prefix(part, corpus) for part in without_marks(line).split("\n")]
    return "\n".join(parts)


def _space_prefix(line: str, corpus: Corpus) -> str:
    match = _PREFIX.match(line)
    if match is None or match[2] not in corpus.documents.ids:
        return line
    return f"{match[1]}{match[2]}: {line[match.end(2) + 1 :]}"


def _list_titles(chunk: Chunk) -> list[str]:
    return [line.text for line in list_lines(chunk) if line.position is None]


def _find_sources(lines: Sequence[str], corpus: Corpus) -> list[_Source]:
    """Find the chunk that each line is from, by the files that were read, or by what the line itself says."""
    numbers = [_find_number(line) for line in lines]
    rests = [line.removeprefix(number) for line, number in zip(lines, numbers, strict=True)]
    sources: list[_Source] = []
    found = zip(lines, numbers, rests, corpus.read.find(lines), corpus.read.find(rests), strict=True)
    for line, number, rest, of_line, of_rest in found:
        if of_line:
            sources.append(_Source(line, "", of_line))
        elif of_rest:
            sources.append(_Source(rest, number, of_rest))
        else:
            sources.append(_find_named(line, "", corpus) or _find_named(rest, number, corpus) or _Source(line))
    return sources


def _find_number(line: str) -> str:
    """Return the number in front of a line; empty if there is none."""
    match = NUMBER.match(line)
    return match[0] if match is not None else ""


def _find_named(line: str, number: str, corpus: Corpus) -> _Source | None:
    """Find the chunk that a line without its number names, or that its text tells."""
    path, _, behind = line.partition(":")
    ordinal, colon, text = behind.partition(":")
    prefix = f"{path}:{ordinal}"
    if colon and prefix in corpus.printed:
        return _Source(text, number, corpus.printed[prefix])
    chunk_id = _find_by_text(line, corpus)
    return _Source(line, number, chunk_id) if chunk_id else None


def _find_by_text(line: str, corpus: Corpus) -> str:
    """Return the chunk of the one known line that a line is, or is a long part of; empty if there is none."""
    if len(line) < MIN_TEXT:
        return ""
    known = corpus.chunk_by_text.get(line)
    if known is not None or len(line) < _MIN_PART or len(corpus.chunk_by_text) > _MAX_COMPARED:
        return known or ""
    chunk_ids = {chunk_id for text, chunk_id in corpus.chunk_by_text.items() if line in text}
    return chunk_ids.pop() if len(chunk_ids) == 1 else ""


# --- text ---


def _shorten(lines: Iterable[OutputLine], corpus: Corpus) -> bool:
    """Cut long lines around what the command looked for; return whether there were any."""
    is_shortened = False
    for line in lines:
        if len(line.text) > _MAX_LINE:
            line.text = _cut(line.text, corpus)
            is_shortened = True
    return is_shortened


def _cut(text: str, corpus: Corpus) -> str:
    start = 0
    for matcher in corpus.matchers:
        match = matcher.find_first(text)
        if match is not None:
            start = max(0, match.start - _BEFORE_MATCH)
            break
    end = start + _MAX_LINE
    before = CUT if start else ""
    after = CUT if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"


def _list_errors(stderr: str) -> list[str]:
    """Return the lines of errors, each once."""
    text = _SHELL_LINE.sub("bash: ", stderr.strip())
    lines = list(dict.fromkeys(line[: 2 * _MAX_LINE] for line in text.splitlines() if line.strip()))
    if len(lines) > _MAX_ERRORS:
        return [*lines[:_MAX_ERRORS], f"({len(lines) - _MAX_ERRORS:,} more errors)"]
    return lines


def _hint(corpus: Corpus) -> list[str]:
    """Return what a search that matched nothing could try."""
    if not corpus.unmatched:
        return []
    unmatched = corpus.unmatched[-1]
    hints = ["no line matches"]
    pattern = unmatched.patterns[0]
    if r"\n" in pattern:
        hints.append("a pattern is looked for in each line by itself")
    if len(unmatched.patterns) == 1 and _PLAIN.fullmatch(pattern):
        number = corpus.search(
            [compile_pattern(pattern)],
            unmatched.paths,
            lambda found: sum(document.count for document in found),
        )
        if number:
            hints.append(f"{count(number, 'line')} with -i")
        elif unmatched.is_all:
            hints += _name_closest(pattern, corpus)
    hints.append('the words may differ: meaning "..."')
    return [f"({'; '.join(hints)})"]


def _name_closest(keyword: str, corpus: Corpus) -> list[str]:
    """Return other spellings of a keyword that the corpus has, and similar names."""
    (report,) = corpus.index.keyword_search([keyword], 1).keywords
    near = [term for term in report.closest if term.respelled or term.text[:1].isupper()]
    names = [f"{without_marks(term.text)} ({count(term.chunks, 'chunk')})" for term in near]
    return [f"closest: {', '.join(names)}"] if names else []


def _make_result(text: str, exit_code: int, lines: Sequence[OutputLine]) -> ShellResult:
    chunk_ids: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    evidence: list[str] = []
    places: dict[str, dict[str, list[int]]] = {}
    for line in lines:
        if line.row is not None:
            chunk_ids |= dict.fromkeys(list(line.row.chunk_ids)[:MAX_MARKS])
            evidence.append(line.text)
        chunk = line.chunk or line.named
        if chunk is None:
            continue
        chunk_ids[chunk.id] = None
        evidence.append(line.text)
        if chunk.id not in places:
            places[chunk.id] = places_by_text(chunk)
        if line.text in places[chunk.id]:
            sentences.setdefault(chunk.id, set()).update(places[chunk.id][line.text])
    positions = {chunk_id: sorted(shown) for chunk_id, shown in sentences.items()}
    return ShellResult(text, exit_code, list(chunk_ids), positions, evidence)
