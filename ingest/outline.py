"""Tracks, line by line, which headings and which table header a document's sentences belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arag.text.contents import is_heading_of_contents
from arag.text.normalise import CELL_BOUNDARY, CUT, HEADING_BOUNDARY, collapse_whitespace, split_cells
from arag.text.units import is_unit_note

BARE = 7  # the level of a heading that is a plain line, below the six of Markdown
_IN_SECTION = 20  # of one without a number, below those of sections

# Lines that give a text its structure, as in Markdown.
HEADING_LINE = re.compile(r" {0,3}(#{1,6})\s")
# After its marks, a fence may have a name, but no further marks: `~~~~^~~~` points at code.
FENCE_LINE = re.compile(r"\s*(?:`{3,}+[^`]*|~{3,}+[^~^]*)$")
_TOPICS = frozenset({"tables", "figures", "chapters"})
_MARKS = ("#", "```", "~~~")
_MARKS_AROUND = re.compile(r"^#+(?: #+$| |$)| #+$")  # of a heading; `C#` has none
MAX_HEADING = 100  # characters; a longer line is text
_UNDERLINE = re.compile(r"={3,}|-{3,}")
_FILLED_LINE = re.compile(r"^(?=[^\S\n]*\S)", re.MULTILINE)

_NO_HEADING = "    "  # Markdown shows a line with this indentation as it is
# The label of a note in a manual. Plurals are headings.
_LABEL = (
    r"note|tip|hint|caution|warning|important|danger"
    r"|anmerkung|hinweis|tipp|achtung|vorsicht|warnung|wichtig|remarque|astuce|attention|avertissement"
    r"|nota|consejo|sugerencia|atención|cuidado|aviso|advertencia|dica|atenção|suggerimento|attenzione|avviso"
    r"|замечание|примечание|подсказка|совет|внимание|осторожно|предупреждение"
    r"|注意|提示|警告|注記|ヒント|小心|小技巧|技巧|참고|주의|경고"
)
_JOKE_OR_ADDRESS = r"[:;]-?[)(DP]$|\w@\w|://"
# A small (c) without a year is a part of a law.
_COPYRIGHT = r"^Copyright (?:by |\(c\)|various |[12]\d{3}\b|(?!.*\b(?:of|in|Act|Law)\b).*\b[12]\d{3}\b)"
_RIGHTS = rf"^\(C\)|(?i:©|\(c\) *[12]\d{{3}}|{_COPYRIGHT}|\ball rights reserved\b)"
_QUESTION = re.compile(r"(?:How|What|When|Where|Which|Who|Whom|Whose|Why)\b")
_VERB = re.compile(
    r"\bI(?=[ '’]\w)|\b(?:you|we|they|he|she|it|is|are|was|were|am|does|do|did|has|have|had|will|would|can|could|should"
    r"|must|may|\w+n['’]t)\b|^(?:He|She|It|They|We|You)\b"
)  # not the number in `I. The mule` and `Part I`
_LONGEST_SHORT_WORD = 3  # characters: of, the, and
_MAX_WORDS = 6  # of a title that is not in capitals
_MAX_NAME = 100  # characters of a heading, which every sentence below it repeats, or of a column's name
_MAX_HEADER = 2_000  # characters of a table's header; every row repeats it, so a longer one is not kept
_PAGE_HEADER = re.compile(r"table of contents|\(continued\)|^see ", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WORD_OF_NAME = re.compile(r"[^<>=:@#{}_+?]+:?")  # no code such as `sent>=2020`
_YEAR_IN_VALUE = re.compile(r"\b(?:19|20)\d\d[-./]\d|\d[-./](?:19|20)\d\d\b")  # of a date or an invoice's number
_AMOUNT = re.compile(r"(?!(?:19|20)\d\d$)\d[\d.,]*")  # and no year
_SIGNS = re.compile(r"[^\w+#]+|_+")  # but not those of C++ and C#
_MARKDOWN_RULE = re.compile(r"[\s:|]*-[\s:|-]*")
_NUMBER = r"(?:(?:(?:Item |Note |Part )?\d[\d.]*|[A-Z](?:\.\d+)+)\s+)"
# A line by itself is a heading if it begins with a capital, has no numbers other than its own and years, and does not
# go on.
_PLAIN_HEADING = re.compile(rf"(?!(?i:{_LABEL})\Z){_NUMBER}?(?=\w)[^\Wa-z\d_](?:\D|\b(?:19|20)\d\d\b)+(?<![,;、，；])")
_EAST_ASIAN_CHAPTER = re.compile(r"[第제]\s?(\d{1,2})\s?[章节節部編编장절]")
_APPENDIX = re.compile(r"[A-Z]\.\s")
_SECTION_NUMBER = re.compile(r"(?<![\w.])(\d{1,2}(?:\.\d{1,2})*)\.?\s")
_FIELD = re.compile(r"[^\W\d_]+: ")  # in small letters, as in `Status: closed until spring`; titles have capitals
# Who made it, as in `Written and kept: Ann Lee (2005-2010)`: a label in small letters, and a name with capitals. Files
# with the rights in a package have other labels.
_MAKER = (
    r"(?:[^\s:]+ )+[a-zß-öø-ÿ]{4,}: [^\W\d_a-z][\w.-]*(?: [^\W\d_a-z][\w.-]*){1,3}(?: \([\d,–-]+\))?"
    r"|(?i:(?:upstream )?authors?|autor(?:en)?|auteurs?|autores|autori|maintainers?|contact|kontakt): .*"
    r"|(?:Copyright|Licen[cs]e): .*"
)
_ASSIGNMENT = r"^[\w.]+ ?="
_ENUMERATION = r";[^;]+;"  # such as the labels of a drawing
_GOES_ON = r" (?:and|or|of|the|an?)\Z"
_REMARK = re.compile(rf"{_JOKE_OR_ADDRESS}|{_RIGHTS}|{_ASSIGNMENT}|{_ENUMERATION}|{_GOES_ON}|^(?:{_MAKER})\Z")
# A line of a paragraph must also have at least two words, each with a capital except for short ones. It must not end
# with repeated words, as a table's header does: `Planned Actual Planned Actual`. One word is enough after a number such
# as 3.4. A line that ends with `and` goes on.
_TITLE_CASE = re.compile(
    rf"(?=.{{6,80}}$)(?!.*\b(\w.*) \1$)(?!.* (?:and|or|of|the|an?)$){_NUMBER}?"
    r"[A-Z][\w’'/-]*(?:,? (?:[A-Z(&–—][\w’'/)–-]*|and|of|the|for|in|on|to|with|by|or|from|at|a|an|\d{4}|–|—))+"
    r"|(?:\d{1,2}|[A-Z])(?:\.\d{1,2})+\s+[A-Z][\w’'/-]+"
)

DATE = r"\d{1,2}\.?\s+[^\W\d_]+\.?\s+(?:19|20)\d\d"  # with the month's name, as in letters


class Outline:
    """The current headings and table header. The document's title is not one of its headings."""

    def __init__(self, title: str) -> None:
        self._title = _comparable(title)
        self._headings: list[tuple[int, str]] = []  # level and name
        self._number: list[int] = []  # of the last plain heading that has one
        self._levels_above_numbers: set[int] = set()  # of the marked headings before the first number
        self._has_sections = False  # whether some are certain, so that their numbers give the levels
        self._header = ""  # of the current table
        self._follows_years = False  # whether the row before has years as data

    @property
    def path(self) -> str:
        """The current headings, outermost first."""
        return HEADING_BOUNDARY.join(name for _, name in self._headings)

    def enter(self, level: int, line: str, *, is_certain: bool = False) -> str:
        """Enter a heading and return the path of the headings above it.

        Args:
            level: A level of Markdown, 1 to 6, or `BARE`. A `BARE` line that does not look like a heading is ignored.
            line: The heading's line.
            is_certain: Whether it is one, whatever it looks like. With a number such as 2.1, it is below its chapter.
        """
        name = name_of(line)
        is_bare = level == BARE
        if is_bare and not is_certain and not self.is_plain_heading(name):
            return self.path
        if is_certain:
            level += len(_parts_of_number(name)) - 1
            self._has_sections = True
        elif all([is_bare, self._has_sections, not _APPENDIX.match(name)]):
            level = _IN_SECTION
        if is_bare:
            self._count_on(name)
        elif not self._number:
            self._levels_above_numbers.add(level)
        while self._headings:
            last_level, last_name = self._headings[-1]
            if last_level < level and not _is_contents(last_name):
                break
            self._headings.pop()
        parents = self.path
        is_title = _comparable(name) == self._title
        if name and not is_title:
            heading = (level, _shorten(name))
            self._headings.append(heading)
        if level < BARE:
            self.leave_table()
        return parents

    def _count_on(self, name: str) -> None:
        """Leave the headings between two numbers that follow each other: 2.10 is beside 2.9, and not below them.

        Marked headings that also stand above the first number are parts, which divide the numbers.
        """
        if not _SECTION_NUMBER.match(name):
            return
        number = _parts_of_number(name)
        if self._has_sections or (self._number and number > self._number):
            self._headings = [heading for heading in self._headings if self._is_above(heading, number)]
        self._number = number

    def _is_above(self, heading: tuple[int, str], number: list[int]) -> bool:
        """Return whether a heading is of a part, or of the chapter of a number."""
        level, name = heading
        own = _parts_of_number(name)
        is_chapter = level >= BARE and own == number[: len(own)] != number
        return level in self._levels_above_numbers or is_chapter

    def goes_on(self, line: str) -> bool:
        """Return whether a line begins with the number of the next section: 2.3, 3 or 2.2.1 after 2.2."""
        match = _SECTION_NUMBER.match(name_of(line))
        if match is None or not self._number:
            return False
        number = list(map(int, match[1].split(".")))
        *parents, last = number
        is_first_below = parents == self._number and last == 1
        before = self._number[: len(number)]
        return is_first_below or before == [*parents, last - 1]

    def leave_section(self, line: str) -> None:
        """Leave the plain headings above a line that may be the title of the next section, which then has no name."""
        self._count_on(name_of(line))
        self._headings = [heading for heading in self._headings if heading[0] < BARE]

    def is_plain_heading(self, line: str) -> bool:
        """Return whether a line by itself is certainly a heading. One with a mark is a remark or a command."""
        name = name_of(line)
        is_remark = line.lstrip().startswith("#")
        if is_remark or self.repeats(line):
            return False
        may_be_heading = _PLAIN_HEADING.fullmatch(name) is not None
        return may_be_heading and not _says_something(name)

    def repeats(self, line: str) -> bool:
        """Return whether a line repeats the title, or only names the page."""
        name = name_of(line)
        return _comparable(name) == self._title or _PAGE_HEADER.search(name) is not None

    def leave_table(self) -> None:
        """Forget the table's header."""
        self._header = ""
        self._follows_years = False

    def enter_row(self, row: str, following: str) -> str:
        """Enter a row and return its table's header, or an empty string if the row is the header or repeats it.

        Args:
            row: The row.
            following: The line after it, which shows whether the row is a header.
        """
        names = _split_cells(self._header)
        if is_unit_note(names[0]) and _begins_with_name(_after_label(row), names):
            return self._header
        has_names = _begins_with_name(row, names) or _begins_with_name(_after_label(row), names)
        is_header = _is_header(row, following)
        may_be_years = not has_names and self._has_years_as_columns(row, following)
        if is_header or may_be_years:
            header = collapse_whitespace(row).strip("| ")
            is_short = len(header) <= _MAX_HEADER
            self._header = header if is_short else ""
            return ""
        return "" if has_names else self._header

    def _has_years_as_columns(self, row: str, following: str) -> bool:
        """Return whether a row's years name its columns.

        A header has several cells with them, and no amounts; where the next row has other ones, they are data of each
        row.
        """
        years = _YEAR.findall(row)
        cells = _split_cells(row)
        has_amounts = any(map(_AMOUNT.fullmatch, cells))
        names = list(filter(_names_year, cells))
        if has_amounts or len(names) < 2 or _are_fields(cells):
            self._follows_years = False
            return False
        next_years = _YEAR.findall(following)
        are_several = len(next_years) > 1
        are_others = are_several and set(next_years).isdisjoint(years)
        if are_others:
            self._follows_years = True
        return not self._follows_years


def _parts_of_number(name: str) -> list[int]:
    """Return the parts of the number of a section or a chapter: 2 and 1 of `2.1 Oats`, and 3 of `Chapter 3. Rye`."""
    match = _SECTION_NUMBER.search(f"{name} ") or _EAST_ASIAN_CHAPTER.match(name)
    return list(map(int, match[1].split("."))) if match else [0]


def _is_contents(name: str) -> bool:
    """Return whether a heading stands above a list of contents only; a text may be about tables."""
    return name.casefold() not in _TOPICS and is_heading_of_contents(name)


def _shorten(name: str) -> str:
    """Return a name that is not too long: it ends after a word then, or where it must if its last word is long."""
    if len(name) <= _MAX_NAME:
        return name
    cut = name[:_MAX_NAME]
    words, _, _ = cut.rpartition(" ")
    is_long_word = 2 * len(words) < _MAX_NAME  # as in scripts without blanks: `2.1` may be the only word before it
    return f"{cut[:-1] if is_long_word else words}{CUT}"


def has_marked_headings(text: str) -> bool:
    """Return whether a text has headings as in Markdown. Rows of tables are none."""
    return any(map(_is_marked_heading, text.splitlines()))


def _is_marked_heading(line: str) -> bool:
    return HEADING_LINE.match(line) is not None and CELL_BOUNDARY not in line


def _says_something(name: str) -> bool:
    """Return whether a line is a remark, an address, an enumeration, or has a verb or many small words."""
    has_open_bracket = name.count("(") != name.count(")")
    if has_open_bracket or _REMARK.search(name):
        return True
    words = name.split()
    is_title = not any(map(_is_in_sentence, words)) or _QUESTION.match(name)
    if is_title:
        return False
    has_many_words = len(words) > _MAX_WORDS
    if has_many_words or _FIELD.match(name):
        return True
    return _VERB.search(name) is not None


def _is_in_sentence(word: str) -> bool:
    """Return whether a word begins with a small letter, and is too long for one that does so in titles."""
    return len(word) > _LONGEST_SHORT_WORD and word[0].islower()


def escape_structure(text: str) -> str:
    """Return a text in which no line is read as a heading or a fence.

    Readers call it for text that is not Markdown: `# rm -r /old` is a command there, and neither a heading nor the name
    of what follows. Lines that look like headings are indented, and so are rules below a line that would look like a
    title; fences get a backslash.
    """
    return escape_underlines(escape_marks(text))


def escape_marks(text: str) -> str:
    """Return a text without headings and fences, as `escape_structure`, but with underlined titles."""
    if not any(map(text.__contains__, _MARKS)):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(map(_escape_line, lines))


def escape_underlines(text: str) -> str:
    """Return a text in which no line is the title that the next one underlines."""
    if "===" not in text and "---" not in text:
        return text
    escaped: list[str] = []
    title = ""  # the line before, if it may be one
    is_after_blank = True
    for line in text.splitlines(keepends=True):
        is_underline = underlined_level(title, line) > 0
        escaped.append(f"{_NO_HEADING}{line}" if is_underline else line)
        stripped = line.strip()
        title = stripped if is_after_blank else ""
        is_after_blank = not stripped
    return "".join(escaped)


def underlined_level(line: str, following: str) -> int:
    """Return the level of a heading that the next line underlines, as in Markdown: 1 or 2; 0 for other lines."""
    if not line or len(line) > MAX_HEADING or line.startswith("* "):  # a list's item, above a rule
        return 0
    rule = following.rstrip()
    is_short_rule = 2 * len(rule) < len(line)
    if is_short_rule or not _UNDERLINE.fullmatch(rule):
        return 0
    is_double = rule[0] == "="
    return 1 if is_double else 2


def _escape_line(line: str) -> str:
    if _is_marked_heading(line):
        return f"{_NO_HEADING}{line}"
    if FENCE_LINE.match(line):
        text = line.lstrip()
        indentation = line.removesuffix(text)
        return f"{indentation}\\{text}"
    return line


def escape_code(lines: list[str]) -> list[str]:
    """Return lines of code, all set in if one looks like a heading, so that a comment stays in line with the others."""
    code = "\n".join(lines)
    has_comment = any(map(HEADING_LINE.match, lines))
    if not has_comment and escape_underlines(code) == code:
        return lines
    return _FILLED_LINE.sub(_NO_HEADING, code).split("\n")


def is_heading_line(line: str) -> bool:
    """Return whether a line inside a paragraph looks like a heading, as PDFs have them."""
    return _TITLE_CASE.fullmatch(line) is not None and re.fullmatch(DATE, line) is None


def name_of(heading: str) -> str:
    """Return the text of a heading without the marks of Markdown."""
    return _MARKS_AROUND.sub("", collapse_whitespace(heading))


def _comparable(title: str) -> str:
    """Return a title without case and signs: what stands above a text may differ in them from the document's own."""
    return _SIGNS.sub("", name_of(title)).lower()


def _names_year(cell: str) -> bool:
    """Return whether a cell may name the column of a year, as a sentence or code with a year in it does not."""
    words = filter(_YEAR.search, cell.split())
    return len(cell) <= _MAX_NAME and any(map(_WORD_OF_NAME.fullmatch, words))


def _are_fields(cells: Sequence[str]) -> bool:
    """Return whether cells are labels with their values, such as `Invoice | 2026-0417 | Date | 2026-04-17`."""
    labels = cells[::2]
    values = cells[1::2]
    if len(labels) != len(values):
        return False
    have_colons = all(label.endswith(":") for label in labels)
    have_years = any(map(_YEAR.search, labels))
    are_codes_or_dates = len(values) > 1 and all(map(_YEAR_IN_VALUE.search, values))
    return have_colons or (are_codes_or_dates and not have_years)


def _is_header(row: str, following: str) -> bool:
    """Return whether a row is a table's header: before a rule, or naming the next row's cells."""
    if _MARKDOWN_RULE.fullmatch(following):
        return True
    names = _split_cells(row)
    cells = row.strip()
    has_empty_corner = cells.startswith("|") and not cells.endswith("|")  # Markdown has a bar at both ends
    if has_empty_corner or is_unit_note(names[0]):
        following = _after_label(following)
    return _begins_with_name(following, names)


def _after_label(row: str) -> str:
    """Return the cells of a row after its label, which has no name below a note on units or an empty cell."""
    _, _, cells = row.partition(CELL_BOUNDARY)
    return cells


def _split_cells(row: str) -> list[str]:
    return split_cells(collapse_whitespace(row).strip("| "))


def _begins_with_name(row: str, names: list[str]) -> bool:
    """Return whether the first cell of a row begins with one of the columns' names and a colon."""
    cells = collapse_whitespace(row).replace(f":{CELL_BOUNDARY}", CELL_BOUNDARY)  # `Notes:` alone is a cell
    first_name, colon, _ = cells.partition(": ")
    if not colon:
        return False
    without_colons = [name.rstrip(":：") for name in filter(None, names)]
    return first_name in without_colons
