"""The output of a command as a model reads it: few tokens, with marks that no document can write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arag.retrieval.corpus.lines import list_lines
from arag.retrieval.corpus.patterns import compile_pattern
from arag.retrieval.corpus.shell.corpus import Corpus, TableRow
from arag.retrieval.search.suggestions import FUNCTION_WORDS
from arag.retrieval.types import Chunk
from arag.text.marks import list_marks, mark, without_marks
from arag.text.normalise import CUT, HEADING_BOUNDARY, collapse_whitespace, count, is_title, name_words
from arag.text.tokens import count_tokens

MAX_TOKENS = 2_000  # of a command's output: one command often does the work of several searches

_MAX_LINES = 2_000  # that are looked at: more are never shown
_MAX_LINE = 400  # characters of a line, where not all lines are shown whole
_BEFORE_MATCH = 120  # characters of a cut line before the match
_MAX_ERRORS = 8  # lines
_MAX_MARKS = 2  # of the chunks of one row
_MIN_PART = 40  # characters of a part of a line that tell its chunk
_MAX_COMPARED = 2_000  # printed lines that each line is compared with: more would take longer than to print them
_GAP = "--"  # between lines with others around them
_MIN_REPEATED = 160  # characters of a line that is not shown twice: the place of a shorter one costs more to look up
_MANY = 3  # equal lines side by side: fewer are shown
_MIN_TEXT = 20  # characters of a line without its prefix that tell its chunk
_NUMBER = re.compile(r"\s*\d+(?:[:\t]| +)")  # as `uniq -c`, `nl` and `grep -n` put in front of lines
_APOSTROPHE = re.compile("['’]")
_RULE = re.compile(r"(?=[^-]*-)[|:\s-]*+")
_HEADER = re.compile(r"==> .+ <==")
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


@dataclass
class _Line:
    """A line of the output."""

    text: str
    chunk: Chunk | None = None  # that it is marked with
    named: Chunk | None = None  # that it names in another way
    row: TableRow | None = None  # of a query


def compose(ended: Ended, corpus: Corpus) -> ShellResult:
    """Write a command's output for a model."""
    printed = ended.stdout.replace("\0", "\n")  # as `-print0` ends names
    lines = printed.rstrip("\n").split("\n") if printed.strip("\n") else []
    shown = _attribute(lines[:_MAX_LINES], corpus)
    pieces = _write(shown)
    tokens = _count_each(pieces)
    notes: list[str] = []
    if sum(tokens) > MAX_TOKENS:
        is_shortened = _shorten(shown, corpus)
        pieces = _write(shown)
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
        parts.append("\n".join(piece for piece in _write(errors) if piece is not None))
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
            shown.append(_Line(_without_prefix(line, corpus), row=corpus.rows.get(line)))
            continue
        if chunk.id not in bodies:
            bodies[chunk.id] = "\n".join([collapse_whitespace(chunk.text), *_list_titles(chunk)])
        is_own = f"{prefix}:{text}" in corpus.written or (text and text in bodies[chunk.id])
        if not is_own:
            shown.append(_Line(_without_prefix(line, corpus)))
        elif number:
            shown.append(_Line(line, named=chunk))
        else:
            shown.append(_Line(text, chunk))
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
    return "", _find_prefix(line, corpus), line


def _find_prefix(line: str, corpus: Corpus) -> str:
    """Return the prefix of the one printed line that a line is, or is a long part of; empty if there is none."""
    if len(line) < _MIN_TEXT:
        return ""
    known = corpus.prefix_by_text.get(line)
    if known is not None or len(line) < _MIN_PART or len(corpus.prefix_by_text) > _MAX_COMPARED:
        return known or ""
    prefixes = {prefix for text, prefix in corpus.prefix_by_text.items() if line in text}
    return prefixes.pop() if len(prefixes) == 1 else ""


# --- text ---


def _write(lines: Sequence[_Line]) -> list[str | None]:
    """Return each line as it is shown: the first one of a chunk has its mark, further ones a space.

    None stands for a line that says nothing: a name that `head` prints above a file, the rule below a table's header.
    """
    pieces: list[str | None] = []
    writer = _Writer()
    for place, line in enumerate(lines):
        run = _count_run(lines, place)
        if run == 0 or _says_nothing(lines, place):
            pieces.append(None)
        elif line.row is not None:
            pieces.append(writer.write_row(line.row))
        elif line.chunk is None:
            pieces.append(writer.write_other(line.text))
        elif run > 1:
            pieces.append(f"{writer.write_line(line.text, line.chunk)} (×{run})")
        else:
            pieces.append(writer.write_line(line.text, line.chunk))
    return pieces


def _count_run(lines: Sequence[_Line], place: int) -> int:
    """Return how many equal lines of a document begin at a place, side by side; 0 for those that follow the first one.

    A few are shown each: 1.
    """
    start = place
    while start > 0 and _are_equal(lines[start - 1], lines[place]):
        start -= 1
    end = place + 1
    while end < len(lines) and _are_equal(lines[end], lines[place]):
        end += 1
    if end - start < _MANY:
        return 1
    return end - start if start == place else 0


def _are_equal(one: _Line, other: _Line) -> bool:
    """Return whether two lines are the same text of one document."""
    if one.chunk is None or other.chunk is None or len(one.text) < _MIN_TEXT:
        return False
    return (one.chunk.document_id, one.text) == (other.chunk.document_id, other.text)


class _Writer:
    """Writes lines, and knows what the ones before say."""

    def __init__(self) -> None:
        self._last = ""  # marks of the line before
        self._has_marks = False  # of any line
        self._names = ""  # of the columns of the row before
        self._titled: set[str] = set()  # documents whose titles were shown
        self._headings: dict[str, str] = {}  # the last one that was shown of each document
        self._headers: dict[str, set[str]] = {}  # of tables, by chunk id
        self._long: dict[str, str] = {}  # the chunk that each long line was shown of

    def write_line(self, text: str, chunk: Chunk) -> str:
        """Write a line of a chunk."""
        start = self._start(mark(chunk.id))
        if start != " ":
            start += _introduce(chunk, text, self._titled)
        heading, header = _find_context(chunk, text)
        start += self._write_heading(chunk, text, heading)
        seen = self._headers.setdefault(chunk.id, set())
        seen.add(text.strip("| "))
        if header and header not in seen:
            seen.add(header)
            start += f"{without_marks(header)}\n "
        self._names = ""
        if len(text) >= _MIN_REPEATED:
            first = self._long.setdefault(text, chunk.id)
            if first != chunk.id:
                return f"{start}(the same line as in {mark(first)})"
        return start + without_marks(text).lstrip()

    def _write_heading(self, chunk: Chunk, text: str, heading: str) -> str:
        """Return the heading above a line, unless it is the title or the one that was shown last."""
        own = text.strip("# ")
        if text.startswith("#"):
            self._headings[chunk.document_id] = own
            return ""
        if not heading or heading == self._headings.get(chunk.document_id) or is_title(heading, chunk.title):
            return ""
        self._headings[chunk.document_id] = heading
        return f"{without_marks(heading)}: "

    def write_row(self, row: TableRow) -> str:
        """Write a row of a query; above the first one, the names of the columns."""
        marks = list_marks(list(row.chunk_ids)[:_MAX_MARKS])
        more = len(row.chunk_ids) - _MAX_MARKS
        if more > 0:
            marks += f" and {more:,} more:"
        names = ""
        if row.names != self._names:
            names = f"{without_marks(row.names)}\n"
            self._last = ""
        self._names = row.names
        return f"{names}{self._start(marks)}{without_marks(row.text).lstrip()}"

    def write_other(self, text: str) -> str:
        """Write a line that is not known to be from a chunk. It must not look like a further line of one."""
        if text == _GAP:
            return text
        text = without_marks(text)
        if self._has_marks or _NUMBER.match(text):
            text = text.lstrip()
        self._last = ""
        self._names = ""
        return text

    def _start(self, marks: str) -> str:
        """Return what begins a line: its marks, or a space if the line before has the same."""
        is_same = marks == self._last
        self._last = marks
        if not marks:
            return ""
        self._has_marks = True
        return " " if is_same else f"{marks} "


def _says_nothing(lines: Sequence[_Line], place: int) -> bool:
    line = lines[place]
    if line.chunk is not None:
        return _RULE.fullmatch(line.text) is not None
    return _is_header(lines, place) or (not line.text and _is_header(lines, place + 1))


def _is_header(lines: Sequence[_Line], place: int) -> bool:
    """Return whether a line is a file's name above a line with a mark, as `head` and `tail` write it."""
    if place + 1 >= len(lines):
        return False
    return _HEADER.fullmatch(lines[place].text) is not None and lines[place + 1].chunk is not None


def _introduce(chunk: Chunk, text: str, named: set[str]) -> str:
    """Return a document's title, if it is not said otherwise, and the chunk's pages."""
    parts: list[str] = []
    title = collapse_whitespace(chunk.title)
    is_said = chunk.document_id in named or is_title(text, title) or text.startswith(title)
    if title and not is_said and not _is_said(title, chunk.document_id):
        parts.append(without_marks(title))
    named.add(chunk.document_id)
    if chunk.pages:
        first, last = chunk.pages
        parts.append(f"page {first}" if first == last else f"pages {first}-{last}")
    return f"{', '.join(parts)}: " if parts else ""


def _is_said(title: str, document_id: str) -> bool:
    """Return whether an id has all words of a title, apart from words such as "the"."""
    words = set(name_words(_APOSTROPHE.sub("", title))) - FUNCTION_WORDS
    return words <= set(name_words(_APOSTROPHE.sub("", document_id)))


def _find_context(chunk: Chunk, text: str) -> tuple[str, str]:
    """Return the heading above a line, and the column names of a row that does not have them.

    The heading is empty for a line that is under several.
    """
    sentences = [
        chunk.sentences[line.position] for line in list_lines(chunk) if line.position is not None and line.text == text
    ]
    headings = {sentence.heading for sentence in sentences}
    if len(headings) != 1:
        return "", sentences[0].header if sentences else ""
    heading = headings.pop().rpartition(HEADING_BOUNDARY)[2]
    return heading, sentences[0].header


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
        found = corpus.matching_lines([compile_pattern(pattern)], unmatched.paths)
        number = sum(map(len, found.values()))
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


def _make_result(text: str, exit_code: int, lines: Sequence[_Line]) -> ShellResult:
    chunk_ids: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    evidence: list[str] = []
    for line in lines:
        if line.row is not None:
            chunk_ids |= dict.fromkeys(list(line.row.chunk_ids)[:_MAX_MARKS])
            evidence.append(line.text)
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
