"""What `rg` and `grep` print of the lines that match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arag.errors import InputError
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.patterns import Match
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.matching import MatchingDocument
from arag.retrieval.corpus.shell.options import Parsed
from arag.retrieval.corpus.shell.search_options import name_end
from arag.retrieval.corpus.shell.search_patterns import Matcher
from arag.retrieval.corpus.shell.search_sources import AnyLine, PlainLine, Source, Sources

MAX_OUTPUT = 16 << 20  # characters of one command
_TOO_LONG = "the replacements are too long: replace less, or shorter lines"
_REFERENCE = re.compile(r"\$(?:\$|(\d+)|\{(\d+)\})")


@dataclass(frozen=True, slots=True)
class _State:
    """What a search had printed at some time."""

    found: bool
    is_full: bool
    pieces: int
    size: int


class Output:
    """What a search prints.

    Attributes:
        found: Whether there was something to find.
        is_full: Whether some lines were left out, because there are too many.
    """

    def __init__(self, corpus: Corpus, parsed: Parsed, command: str) -> None:
        self.found = False
        self.is_full = False
        self._corpus = corpus
        self._parsed = parsed
        self._keeps_zeros = command != "rg"  # grep -c prints zeros, too
        self._is_single = False
        self._has_names = not parsed.has("without_name")
        self._prints_matches = parsed.has("only_matching") and not parsed.has("invert")
        # As in ripgrep, lines that do not match are counted as lines.
        counts_matches = parsed.has("only_matching", "count_matches") and not parsed.has("invert")
        self._is_summary = parsed.has("without_match", "with_matches", "count", "count_matches")
        self._counts_lines = parsed.has("without_match", "with_matches") or not counts_matches
        context = parsed.number("context") or 0
        self._before = parsed.number("before") or context
        self._after = parsed.number("after") or context
        self._max_count = parsed.number("max_count")
        self._template: str | None = None  # in which `$1` and `${1}` stand for groups
        if parsed.has("replace"):
            self._template = parsed.values("replace")[-1]
        self._references = len(_REFERENCE.findall(self._template or ""))
        self._name_end = name_end(parsed)
        self._pieces: list[str] = []
        self._size = 0

    def text(self) -> str:
        """Return all that is printed."""
        return "".join(self._pieces)

    def search(self, matcher: Matcher, sources: Sources) -> None:
        """Search all sources."""
        self._is_single = len(sources.texts) == 1 and not sources.paths  # its name is not printed
        for source in sources.texts:
            self._search(source, matcher)
        if matcher.invert:
            self._search_all(self._corpus.lines_by_document(sources.paths), matcher)
            return
        before = _State(self.found, self.is_full, len(self._pieces), self._size)

        def use(matching: Iterable[MatchingDocument]) -> None:
            self._return_to(before)
            self._search_matching(matching, matcher, sources.paths)

        self._corpus.search(matcher.patterns, sources.paths, use)

    def _return_to(self, state: _State) -> None:
        """Forget what was printed since then: the search begins again."""
        self.found = state.found
        self.is_full = state.is_full
        del self._pieces[state.pieces :]
        self._size = state.size

    def _search_matching(self, matching: Iterable[MatchingDocument], matcher: Matcher, paths: Sequence[str]) -> None:
        """Search documents, given those that have lines that match."""
        prints_zeros = self._parsed.has("count") and self._keeps_zeros
        if prints_zeros or self._parsed.has("without_match"):
            numbers = {document.path: self._count(document, matcher) for document in matching}
            for path in paths:
                self._add_summary(Source(path, (), is_document=True), numbers.get(path, 0))
            return
        if not self._is_summary and (self._before or self._after):
            self._search_all(self._corpus.lines_by_document(document.path for document in matching), matcher)
            return
        for document in matching:
            if self._is_summary:
                self._add_summary(Source(document.path, (), is_document=True), self._count(document, matcher))
            else:
                lines = document.read()
                source = Source(document.path, lines, is_document=True)
                self._add_lines(source, range(len(lines))[: self._max_count], matcher)
            if self._is_enough():
                return

    def _count(self, document: MatchingDocument, matcher: Matcher) -> int:
        """Return how many lines of a document match, or how often."""
        if self._counts_lines:
            return document.count if self._max_count is None else min(document.count, self._max_count)
        return _count_matches(document.read()[: self._max_count], matcher)

    def _search_all(self, lines_by_path: Iterable[tuple[str, list[Line]]], matcher: Matcher) -> None:
        """Search all lines of documents."""
        for path, lines in lines_by_path:
            self._search(Source(path, lines, is_document=True), matcher)
            if self._is_enough():
                return

    def _is_enough(self) -> bool:
        return self.is_full or (self.found and self._parsed.has("quiet"))

    def _search(self, source: Source, matcher: Matcher) -> None:
        matched = self._find_matched(source.lines, matcher)
        if not self._is_summary:
            self._add_lines(source, matched, matcher)
        elif self._counts_lines:
            self._add_summary(source, len(matched))
        else:
            self._add_summary(source, _count_matches([source.lines[place] for place in matched], matcher))

    def _find_matched(self, lines: Sequence[AnyLine], matcher: Matcher) -> list[int]:
        """Return the places of the lines that are wanted."""
        matched: list[int] = []
        for place, line in enumerate(lines):
            if len(matched) == self._max_count:
                break
            if matcher.matches(line.text):
                matched.append(place)
        return matched

    def _add_summary(self, source: Source, number: int) -> None:
        """Print a name or a number for a source, given how many lines are wanted."""
        if self._parsed.has("without_match"):
            self.found = self.found or number == 0
            if number == 0:
                self._add(f"{self._name(source)}{self._name_end}")
            return
        self.found = self.found or number > 0
        if not self._parsed.has("with_matches"):
            self._add_number(source, number)
        elif number:
            self._add(f"{self._name(source)}{self._name_end}")

    def _name(self, source: Source) -> str:
        return self._corpus.print_path(source.name) if source.is_document else source.name

    def _add_number(self, source: Source, number: int) -> None:
        if self._is_single or not self._has_names:
            self._add(f"{number}\n")
        elif number or self._keeps_zeros:
            self._add(f"{self._name(source)}:{number}\n")

    def _add_lines(self, source: Source, matched: Sequence[int], matcher: Matcher) -> None:
        self.found = self.found or bool(matched)
        wanted = set(matched)
        last = -1
        for place in self._with_context(matched, len(source.lines)):
            follows_gap = place != last + 1 and (self._before or self._after)
            if self._pieces and follows_gap:
                self._add("--\n")
            if place in wanted:
                self._add_match(source, place, matcher)
            else:
                self._add_line(source, place, source.lines[place].text)
            last = place

    def _with_context(self, matched: Sequence[int], end: int) -> list[int]:
        """Return the places of lines with those before and after them."""
        shown: list[int] = []
        for place in matched:
            first = max(0, place - self._before)
            if shown:
                first = max(first, shown[-1] + 1)
            last = min(end - 1, place + self._after)
            shown += range(first, last + 1)
        return shown

    def _add_match(self, source: Source, place: int, matcher: Matcher) -> None:
        text = source.lines[place].text
        if self._prints_matches:
            for match in matcher.find(text):
                if match.end > match.start:
                    self._add_line(source, place, self._fill(text, match, matcher.group))
                if self.is_full:
                    return
        elif self._template is not None:
            self._add_line(source, place, self._replace_all(text, matcher))
        else:
            self._add_line(source, place, text)

    def _fill(self, text: str, match: Match, group: int = 0) -> str:
        """Return what is printed of a match."""
        groups = (text[match.start : match.end], *match.groups)
        if self._template is None:
            return groups[group]
        self._corpus.check_time()
        if self._references * max(map(len, groups)) > MAX_OUTPUT:
            raise InputError(_TOO_LONG)

        def fill(reference: re.Match[str]) -> str:
            if reference[0] == "$$":
                return "$"
            number = int(reference[1] or reference[2])
            return groups[number] if number < len(groups) else ""

        return _REFERENCE.sub(fill, self._template)

    def _replace_all(self, text: str, matcher: Matcher) -> str:
        pieces: list[str] = []
        size = 0
        end = 0
        for match in matcher.find(text):
            filled = self._fill(text, match)
            size += len(filled)
            if size > MAX_OUTPUT:
                raise InputError(_TOO_LONG)
            pieces += [text[end : match.start], filled]
            end = match.end
        return "".join([*pieces, text[end:]])

    def _add_line(self, source: Source, place: int, text: str) -> None:
        """Print a line, or a part of it."""
        line = source.lines[place]
        if isinstance(line, PlainLine):
            self._add_plain(source.name, place, text)
        elif self._has_names:
            self._add(self._corpus.print_line(line, text))
        else:
            self._corpus.note(line)
            self._add(f"{text}\n")

    def _add_plain(self, name: str, place: int, text: str) -> None:
        piece = f"{text}\n"
        if self._parsed.has("number"):
            piece = f"{place + 1}:{piece}"
        if self._has_names and not self._is_single:
            piece = f"{name}:{piece}"
        self._add(piece)

    def _add(self, piece: str) -> None:
        if self._size > MAX_OUTPUT:
            self.is_full = True
            return
        self._pieces.append(piece)
        self._size += len(piece)


def _count_matches(lines: Sequence[AnyLine], matcher: Matcher) -> int:
    return sum(len(matcher.find(line.text)) for line in lines)
