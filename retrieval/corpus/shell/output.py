"""The output of a command as a model reads it: few tokens, with marks that no document can write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arag.retrieval.corpus.lines import list_lines
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.types import Chunk
from arag.text.marks import mark, without_marks
from arag.text.normalise import CUT, collapse_whitespace, count, is_title, name_words
from arag.text.tokens import count_tokens

MAX_TOKENS = 1_500  # of a command's output

_MAX_LINES = 2_000  # that are looked at: more are never shown
_MAX_LINE = 400  # characters of a line, where not all lines are shown whole
_BEFORE_MATCH = 120  # characters of a cut line before the match
_MAX_ERRORS = 8  # lines
_MIN_TEXT = 20  # characters of a line without its prefix that tell its chunk
_NUMBER = re.compile(r"\s*\d+(?:[:\t]| +)")  # as `uniq -c`, `nl` and `grep -n` put in front of lines
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


@dataclass
class _Line:
    """A line of the output."""

    text: str
    chunk: Chunk | None = None  # that it is marked with
    named: Chunk | None = None  # that it names in another way


def compose(ended: Ended, corpus: Corpus) -> ShellResult:
    """Write a command's output for a model."""
    lines = ended.stdout.rstrip("\n").split("\n") if ended.stdout.strip("\n") else []
    shown = _attribute(lines[:_MAX_LINES], corpus)
    pieces = _write(shown)
    tokens = [count_tokens(piece) + 1 for piece in pieces]
    notes: list[str] = []
    if sum(tokens) > MAX_TOKENS:
        is_shortened = _shorten(shown, corpus)
        pieces = _write(shown)
        tokens = [count_tokens(piece) + 1 for piece in pieces]
        if is_shortened:
            notes.append(f"lines of more than {_MAX_LINE} characters are cut at {CUT}")
    kept = _count_fitting(tokens)
    if kept < len(lines):
        total = f"more than {len(lines):,}" if ended.is_cut else f"{len(lines):,}"
        notes.insert(0, f"{kept:,} of {total} lines; for the rest add | tail -n +{kept + 1}, or narrow it")
    parts = ["\n".join(pieces[:kept])] if kept else []
    if errors := _write_errors(ended.stderr):
        parts.append(errors)
    if not parts:
        parts.append("(no output)" if ended.exit_code in {0, 1} else f"(no output; exit code {ended.exit_code})")
        parts += _hint(corpus)
    if notes:
        parts.append(f"({'; '.join(notes)})")
    return _make_result("\n".join(parts), ended.exit_code, shown[:kept])


def _count_fitting(tokens: Sequence[int]) -> int:
    """Return how many lines fit into the budget, at least one."""
    total = 0
    for number, line_tokens in enumerate(tokens):
        total += line_tokens
        if total > MAX_TOKENS and number > 0:
            return number
    return len(tokens)


# --- chunks ---


def _attribute(lines: Sequence[str], corpus: Corpus) -> list[_Line]:
    """Find the chunk that each line is from.

    A line is a chunk's if a command of ours printed this chunk's prefix in this call, and the rest of the line occurs
    in the chunk: no document's text can pose as another's.
    """
    parsed = [_split(line, corpus) for line in lines]
    wanted = list(dict.fromkeys(corpus.printed[prefix] for _, prefix, _ in parsed if prefix))
    chunks: dict[str, Chunk] = {}
    for chunk_id, chunk in zip(wanted, corpus.index.mget(wanted), strict=True):
        if chunk is not None:
            chunks[chunk_id] = chunk
    bodies: dict[str, str] = {}
    shown: list[_Line] = []
    for line, (number, prefix, text) in zip(lines, parsed, strict=True):
        chunk = chunks.get(corpus.printed.get(prefix, ""))
        if chunk is None:
            shown.append(_Line(line))
            continue
        if chunk.id not in bodies:
            bodies[chunk.id] = "\n".join([collapse_whitespace(chunk.text), *_list_titles(chunk)])
        is_own = f"{prefix}:{text}" in corpus.written or (text and text in bodies[chunk.id])
        if not is_own:
            shown.append(_Line(line))
        elif number:
            shown.append(_Line(line, named=chunk))
        else:
            shown.append(_Line(text, chunk))
    return shown


def _list_titles(chunk: Chunk) -> list[str]:
    return [line.text for line in list_lines(chunk) if line.position is None]


def _split(line: str, corpus: Corpus) -> tuple[str, str, str]:
    """Return a line's number, its chunk's prefix and its text; the first two may be empty."""
    number = ""
    rest = line
    for _ in range(2):
        path, _, behind = rest.partition(":")
        ordinal, colon, text = behind.partition(":")
        prefix = f"{path}:{ordinal}"
        if colon and prefix in corpus.printed:
            return number, prefix, text
        match = _NUMBER.match(line)
        if match is None:
            break
        number, rest = match[0], line[match.end() :]
    if len(line) >= _MIN_TEXT:
        return "", corpus.prefix_by_text.get(line, ""), line
    return "", "", line


# --- text ---


def _write(lines: Sequence[_Line]) -> list[str]:
    """Return each line as it is shown: the first one of a chunk has its mark, further ones a space."""
    pieces: list[str] = []
    named: set[str] = set()  # documents whose titles were shown
    headers: dict[str, set[str]] = {}  # of tables, by chunk id
    last: Chunk | None = None
    for line in lines:
        chunk = line.chunk
        if chunk is None:
            text = without_marks(line.text)
            pieces.append(text.lstrip() if last is not None or _NUMBER.match(text) else text)
            last = None
            continue
        if last is None or chunk.id != last.id:
            start = f"{mark(chunk.id)} {_introduce(chunk, line.text, named)}"
        else:
            start = " "
        seen = headers.setdefault(chunk.id, set())
        seen.add(line.text.strip("| "))
        header = _find_header(chunk, line.text)
        if header and header not in seen:
            seen.add(header)
            start += f"{without_marks(header)}\n "
        pieces.append(start + without_marks(line.text).lstrip())
        last = chunk
    return pieces


def _introduce(chunk: Chunk, text: str, named: set[str]) -> str:
    """Return a document's title, if it is not said otherwise, and the chunk's pages."""
    parts: list[str] = []
    title = collapse_whitespace(chunk.title)
    if title and chunk.document_id not in named:
        is_in_id = set(name_words(title)) <= set(name_words(chunk.document_id))
        if not is_in_id and not is_title(text, title) and not text.startswith(title):
            parts.append(without_marks(title))
    named.add(chunk.document_id)
    if chunk.pages:
        first, last = chunk.pages
        parts.append(f"page {first}" if first == last else f"pages {first}-{last}")
    return f"{', '.join(parts)}: " if parts else ""


def _find_header(chunk: Chunk, text: str) -> str:
    """Return the column names of a row that does not have them."""
    for line in list_lines(chunk):
        if line.position is not None and line.text == text:
            return chunk.sentences[line.position].header
    return ""


def _shorten(lines: Iterable[_Line], corpus: Corpus) -> bool:
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
        matches = matcher.find(text)
        if matches:
            start = max(0, matches[0].start - _BEFORE_MATCH)
            break
    end = start + _MAX_LINE
    before = CUT if start else ""
    after = CUT if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"


def _write_errors(stderr: str) -> str:
    """Return the lines of errors, each once."""
    text = _SHELL_LINE.sub("bash: ", stderr.strip())
    lines = list(dict.fromkeys(line for line in text.splitlines() if line.strip()))
    if len(lines) > _MAX_ERRORS:
        lines = [*lines[:_MAX_ERRORS], f"({len(lines) - _MAX_ERRORS:,} more errors)"]
    return without_marks("\n".join(line[: 2 * _MAX_LINE] for line in lines))


def _hint(corpus: Corpus) -> list[str]:
    """Return what a search that matched nothing could try."""
    if not corpus.unmatched:
        return []
    unmatched = corpus.unmatched[-1]
    hints: list[str] = []
    pattern = unmatched.patterns[0]
    if len(unmatched.patterns) == 1 and re.fullmatch(r"[\w .,'’-]+", pattern):
        (report,) = corpus.index.keyword_search([pattern], 1).keywords
        if report.chunks:
            hints.append(f"-i would find it in {count(report.chunks, 'chunk')}")
        elif report.closest:
            names = ", ".join(f"{term.text} ({count(term.chunks, 'chunk')})" for term in report.closest)
            hints.append(f"closest: {without_marks(names)}")
    hints.append('no line matches; the words may differ: meaning "..."')
    return [f"({'; '.join(reversed(hints))})"]


def _make_result(text: str, exit_code: int, lines: Sequence[_Line]) -> ShellResult:
    chunk_ids: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    evidence: list[str] = []
    for line in lines:
        chunk = line.chunk or line.named
        if chunk is None:
            continue
        chunk_ids[chunk.id] = None
        evidence.append(line.text)
        for own in list_lines(chunk):
            if own.position is not None and own.text == line.text:
                sentences.setdefault(chunk.id, set()).add(own.position)
    positions = {chunk_id: sorted(places) for chunk_id, places in sentences.items()}
    return ShellResult(text, exit_code, list(chunk_ids), positions, evidence)
