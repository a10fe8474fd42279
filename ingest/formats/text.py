"""Plain text, programs, and Markdown with its front matter."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import yaml

from arag.ingest.formats.changelogs import find_package, has_entries, mark_entries
from arag.ingest.formats.content import (
    BINARY,
    JSON,
    Content,
    FormatError,
    decode_text,
    is_wide,
    join_pages,
)
from arag.ingest.formats.lines import join_lines
from arag.ingest.formats.markdown import FENCED, show_markdown
from arag.ingest.formats.printed_manuals import mark_manual, split_manual
from arag.ingest.formats.printed_tables import show_printed_tables
from arag.ingest.formats.restructured import find_title, mark_titles
from arag.ingest.formats.sections import mark_sections
from arag.ingest.formats.text_pages import without_running_heads
from arag.ingest.outline import HEADING_LINE, escape_underlines, name_of, underlined_level
from arag.text.normalise import collapse_whitespace

_MAX_TITLE = 120  # characters: a longer first line is a paragraph
_MAX_FRONT_MATTER = 50_000  # characters: more than any page's fields take, and few enough to parse in a moment
_MAX_WORDS = 8  # of a title that ends as a sentence does
_CLOSERS = ")\"'”»"
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ":", ";", ",")

_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(?=[^\n]*\S)(.*?)^(?:---|\.\.\.)[^\S\n]*$", re.DOTALL | re.MULTILINE)
_FORM_FEED = "\f"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")  # and links, of terminals
_OVERSTRUCK = re.compile(r"[^\n]\x08")  # manual pages print a letter twice for bold type, or over a line
_TITLE_ABOVE_TEXT = re.compile(
    r"(?<=\n\n)([A-Z][A-Z /-]{2,50})\n(?=[ \t]{3,}\S)"
)  # of a manual page, whose text is set in
_HEADING = re.compile(r"^ {0,3}#[ \t]+(\S.*)|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
_MARKED_HEADING = re.compile(r"^ {0,3}#{1,6}\s.*", re.MULTILINE)
_SOURCES = (".rst.txt", ".md.txt")  # as Sphinx copies them beside its pages
# Lines above a text that say what it is, as above an email.
_HEAD = re.compile(r"\n*((?:[A-Z][\w-]{1,30}:[^\n]*\n(?:[ \t]+\S[^\n]*\n)*){1,40})\n+")
_FIELD_OF_TEXT = re.compile(r"^(?:Content-Type|Abstract|Title|Subject|Author|From|Date):", re.IGNORECASE | re.MULTILINE)
# Above a page of a wiki such as Zim's; an abstract is text.
_HEAD_OF_WIKI = re.compile(r"Content-Type:.*\n(?:(?!Abstract)[\w-]{1,30}: .*\n)*(?:[ \t]*\n|\Z)", re.IGNORECASE)
_FIELD = re.compile(r"^([\w-]+):[ \t]*(\S.*)", re.MULTILINE)
_NAME = re.compile(r"^(Title|Subject):[ \t]*(\S.*)", re.IGNORECASE | re.MULTILINE)
_RULE = re.compile(r"[-=~*#_.]{3,}")  # also of several signs
# A first line that is no title: of a key, of code, of a log with its date or author, and one with an address.
_NO_TITLE = re.compile(
    r"-{3,}|[%#]|\$Id\b|\d{4}-\d\d-\d\d\b|\w+::"
    r"|v\d+\.\d[\w.]*(?:\s+\W?\d|\s+(?:[A-Z][a-z]{2}\s+){2}\d|$)"  # a version, with its date
    r"|.*(?:\S@\w|://)"
)
# Of sections; where others follow, the first one is no title of the whole.
_SECTION_NAMES = frozenset(
    "about building contents copyright description features general information installation introduction license "
    "maintainers notes overview preface requirements summary usage allgemeines beschreibung einführung einleitung "
    "hinweise inhalt übersicht überblick vorwort généralités aperçu présentation préface sommaire introducción "
    "descripción introduzione descrizione введение описание 简介 介绍 概述 前言 はじめに 概要".split()
)
_MARK = re.compile(r"#+ ")
# The first heading of a text, if some lines and then others like it follow. Chapters of a whole have numbers.
_FIRST_OF_SECTIONS = re.compile(
    r"\n*(?:(?P<marks>#+)[ ](?P<marked>.+)\n++(?!\#)(?:.*\n)*?(?P=marks)[ ](?!\d)"
    r"|(?P<line>\S.*)\n(?P<sign>[=~-])(?P=sign){2,}[ \t]*\n++(?!.*\n(?P<other>[=~-])(?P=other){2,}[ \t]*\n)"
    r"(?:.*\n)*?[ \t]*\n(?!\d)\S.*\n(?P=sign){3,}[ \t]*$)",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W_]{3,}")
_NEWS = re.compile(r"NEWS|CHANGES|HISTORY|RELEASE", re.IGNORECASE)
_VERSION = re.compile(r"\d\.\d")
_MODE = re.compile(r"\A(.*?)[ \t]*(?:-\*-.*-\*-|\bvim:.*)")  # of an editor, in the first line
# Of a document in TeX, without other commands than these names and line ends.
_TEX_TITLE = re.compile(
    r"^[ \t]*\\title(?:\[[^\]\n]*\])?\{((?:[^{}\\%\n]|\\(?:La)?TeX(?![A-Za-z])|\\[\\ ])+)\}", re.MULTILINE
)
_NAME_OF_PROGRAM = re.compile(r"[A-Z]\w*file|makefile|\w+rc")  # such as Makefile, Dockerfile and vimrc
_NAME_OF_TEXT = re.compile(r"[A-Z][A-Z0-9_-]+|[Cc]hange[Ll]og")  # such as README and NEWS


def read_text(path: Path, encoding: str = "") -> Content:
    """Read plain text; its title is a short first line, underlined or above a blank one, or a field above the text.

    Form feeds divide its pages. It is not Markdown, unless all lines that look like headings stand alone and some have
    the lower levels. Titles marked as in AsciiDoc, or underlined with other signs, are headings, too. So are those of a
    printed manual page.
    """
    if path.name.lower().endswith(_SOURCES):
        return read_markdown(path, encoding)
    text = _MODE.sub(r"\1", _without_printing(decode_text(path.read_bytes(), encoding)))
    manual, text = split_manual(text)
    if manual:
        return Content(
            title=manual,
            text=join_lines(mark_manual(text)),
            marks_headings=True,
            is_plain=True,
        )
    head = _HEAD_OF_WIKI.match(text)
    fields = dict[str, JSON](_FIELD.findall(head[0])) if head else {}
    text = text.removeprefix(head[0] if head else "")
    marks_headings = False
    text = show_printed_tables(text)
    package = find_package(text)
    if not _has_headings(text):
        is_changelog = has_entries(text)
        text, marks_headings = mark_sections(text)
        if is_changelog:
            text = mark_entries(text)
            marks_headings = True
    text = _TITLE_ABOVE_TEXT.sub(r"\1\n\n", text)
    if package is None:
        title = _title_of_plain_text(text, path)
    else:
        title = f"{package} {path.stem}" if package else ""  # the first line names the newest version
    pages = text.split(_FORM_FEED)
    if len(pages) == 1:
        return Content(
            title=title,
            text=join_lines(text),
            metadata=fields,
            marks_headings=marks_headings,
            headings_apart=True,
            is_plain=True,
        )
    pages = without_running_heads([page.strip("\n") for page in pages])
    text, page_starts = join_pages([join_lines(page.strip("\n")) for page in pages])
    return Content(
        title=title,
        text=text,
        page_starts=page_starts,
        metadata=fields,
        marks_headings=marks_headings,
        headings_apart=True,
        is_plain=True,
    )


def _without_printing(text: str) -> str:
    """Return a text without the codes for terminals and printers: colours, links, and letters that others replace."""
    return _OVERSTRUCK.sub("", COLOURS.sub("", text))


def _has_headings(text: str) -> bool:
    """Return whether a plain text is Markdown: its headings stand alone, and some have the lower levels."""
    if "\n##" not in text:
        return False
    levels = _levels_of_headings(text)
    return len(levels) > 1 and max(levels) > 1


def _levels_of_headings(text: str) -> list[int]:
    """Return the levels of the headings of Markdown, or none if one is in a paragraph, as comments are."""
    lines = FENCED.sub("", text).split("\n")
    before = ""
    levels: list[int] = []
    for line, after in pairwise([*lines, ""]):
        heading = HEADING_LINE.match(line)
        if heading:
            is_first = not levels
            is_in_paragraph = before.strip() or (is_first and after.strip())
            if is_in_paragraph:
                return []
            levels.append(len(heading[1]))
        before = line
    return levels


def _title_of_plain_text(text: str, path: Path) -> str:
    """Return the title of a text, which is the name of its file if the first heading is only that of a section.

    News begin with the newest version. Another heading with others like it after it is the title of the whole only if
    it names the folder, which is that of a package: `Oil for Debian`.
    """
    title = _title_line(text)
    is_version = _NEWS.match(path.name) and _VERSION.search(title)
    if is_version or (_first_of_sections(text) == title != "" and not _names(title, path.parent.name)):
        return path.stem.replace("_", " ")
    return title


def _first_of_sections(text: str) -> str:
    """Return the first heading of a text if others like it follow, or an empty string."""
    match = _FIRST_OF_SECTIONS.match(text)
    return (match["marked"] or match["line"]).strip() if match else ""


def _names(title: str, folder: str) -> bool:
    """Return whether a word of a title is in the name of a folder."""
    words = _WORD.findall(title.lower())
    return any(map(folder.lower().__contains__, words))


def _title_line(text: str) -> str:
    """Return the title that the lines above a text name, or its first line if that looks like a title."""
    head = _HEAD.match(text)
    if head is None or not _FIELD_OF_TEXT.search(head[1]):
        title, _ = _first_title(text)
        return title
    fields = {name.lower(): name_of_text for name, name_of_text in _NAME.findall(head[1])}
    title, is_underlined = _first_title(text[head.end() :])
    own_title = title if is_underlined else ""
    return fields.get("title") or own_title or fields.get("subject") or title


class _FirstLine(NamedTuple):
    """The first line of a text, which may be its title.

    Attributes:
        title: The line without its marks.
        below: The next line.
        has_mark: Whether it begins with a mark, as in Markdown.
        has_rule: Whether a rule is below it, or one above and one below.
    """

    title: str
    below: str
    has_mark: bool
    has_rule: bool

    @property
    def is_marked(self) -> bool:
        """Whether it is marked as a title."""
        return self.has_mark or self.has_rule

    def may_be_title(self) -> bool:
        """Return whether the line has words, and neither is nor begins a text."""
        has_words = any(map(str.isalpha, self.title))
        if not has_words or len(self.title) > _MAX_TITLE:
            return False
        is_long_sentence = self.title.endswith(_SENTENCE_END) and len(self.title.split()) > _MAX_WORDS
        is_comment = self.has_mark and self.title.endswith(":")
        if is_long_sentence or is_comment or _NO_TITLE.match(self.title):
            return False
        return self.is_marked or not self._is_text()

    def _is_text(self) -> bool:
        is_paragraph = self.below != ""
        is_sentence = self.title.rstrip(_CLOSERS).endswith(_SENTENCE_END)
        return is_paragraph or is_sentence


def _first_title(text: str) -> tuple[str, bool]:
    """Return the first line if it is marked, underlined or looks like a title, and whether it is one of the former."""
    lines = text.lstrip("\n").split("\n", 3)
    if len(lines) < 3:
        return "", False
    line = _read_first_line(lines[:3])
    if not line.may_be_title() or is_section_name(line.title, text):
        return "", False
    return line.title, line.is_marked


def _read_first_line(lines: list[str]) -> _FirstLine:
    """Read the first of three lines, or the one between two rules."""
    between = find_title(lines)
    title = between.text if between else lines[0].strip()
    title = title.strip("* ")
    has_mark = _MARK.match(lines[0]) is not None
    if has_mark:
        title = _MARK.sub("", title)
    below = lines[1].strip()
    is_underlined = _RULE.fullmatch(below) is not None and 2 * len(below) >= len(title)
    return _FirstLine(title, below, has_mark, has_rule=is_underlined or between is not None)


def read_code(path: Path, encoding: str = "") -> Content:
    """Read a file that should be text, such as a program, or one whose name has no extension: README is plain text."""
    data = path.read_bytes()
    if b"\0" in data and not is_wide(data):
        raise FormatError(BINARY)
    if _NAME_OF_TEXT.fullmatch(path.name):
        return read_text(path, encoding)
    text = decode_text(data, encoding)
    if path.suffix or _is_program(path.name, text):
        title = _find_tex_title(text) if path.suffix.lower() == ".tex" else ""
        return Content(title=title, text=text, is_plain=True, is_code=True)
    return Content(title="", text=escape_underlines(text), headings_apart=True, is_plain=True)


def _find_tex_title(text: str) -> str:
    """Return the title that a document in TeX gives itself, or an empty string."""
    match = _TEX_TITLE.search(text)
    if match is None:
        return ""
    title = re.sub(r"\\[\\ ]|~", " ", match[1])
    return collapse_whitespace(title.replace("\\", ""))


def _is_program(name: str, text: str) -> bool:
    """Return whether a file without an extension is a program or settings: its name or its comments show that."""
    if _NAME_OF_PROGRAM.fullmatch(name) or text.startswith("#!"):
        return True
    has_marks = any(map(HEADING_LINE.match, text.split("\n")))
    return has_marks and not _levels_of_headings(text)


def read_markdown(path: Path, encoding: str = "") -> Content:
    """Read Markdown; its title is the one in the front matter, or else a heading.

    The text excludes the front matter, whose other fields become the metadata.
    """
    fields, text = _split_front_matter(decode_text(path.read_bytes(), encoding))
    if path.name.lower().endswith((".rst", ".rst.txt")):
        text = mark_titles(text)
    else:
        text = join_lines(show_markdown(text))
    heading = _find_title(text)
    if is_section_name(heading, text):
        heading = ""
    title = _take_title(fields) or heading
    return Content(title=title, text=text, metadata=fields, headings_apart=True, is_plain=True)


def _take_title(fields: dict[str, JSON]) -> str:
    """Remove the title from the fields of a front matter and return it; an empty string if there is none."""
    title = fields.get("title")
    if not isinstance(title, str | int | float) or not str(title).strip():
        return ""
    del fields["title"]
    return str(title)


def _find_title(text: str) -> str:
    """Return the first heading of level 1, or the first one of all where more of the others are above it than below."""
    title = first_heading(text)
    headings = list(map(name_of, _MARKED_HEADING.findall(FENCED.sub("", text))))
    if title in headings and 2 * headings.index(title) > len(headings):
        return headings[0]
    return title


def first_heading(text: str) -> str:
    """Return the first heading of level 1 in a Markdown text, or an empty string."""
    heading = _HEADING.search(FENCED.sub("", text))
    if heading is None:
        return ""
    title = collapse_whitespace(heading[1] or heading[2])
    return re.sub(" #+$", "", title)  # marks may close the line, too


def is_section_name(heading: str, text: str) -> bool:
    """Return whether a text's first heading is such as `Introduction`, with others of the first level after it."""
    if heading.lower() not in _SECTION_NAMES:
        return False
    headings = _HEADING.findall(FENCED.sub("", text))
    return len(headings) > 1


def opening_heading(text: str) -> str:
    """Return the heading with which a text begins, whatever its level, or an empty string; none of a mere section."""
    first, _, below = text.lstrip().partition("\n")
    line = first.strip()
    is_heading = HEADING_LINE.match(first) or underlined_level(line, below.partition("\n")[0])
    title = name_of(line) if is_heading else ""
    is_comment = title.endswith(":") or _NO_TITLE.match(title) is not None
    return "" if is_comment or is_section_name(title, text) else title


def _split_front_matter(text: str) -> tuple[dict[str, JSON], str]:
    """Split a text into the fields of its front matter and the rest.

    Only a YAML mapping without braces between the first line and the next marker is front matter. Without one, the
    first line is a thematic break, and the whole text is returned.
    """
    match = _FRONT_MATTER.match(text, 0, _MAX_FRONT_MATTER)
    if match is None or match[1].lstrip().startswith("{"):
        return {}, text
    try:
        fields = yaml.load(match[1].removesuffix("\n"), _FrontMatterLoader)  # noqa: S506 - it makes plain values only
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(fields, dict):
        return {}, text
    return fields, text[match.end() :].lstrip("\n")


class _FrontMatterLoader(yaml.SafeLoader):
    """Reads numbers, true, false and null as JSON has them, and everything else as it is written.

    In YAML 1.1, `no` is false, 12:30 is 750, 0123 is 83, and 2024-02-30 is an error. Aliases are refused: with them, a
    short text can stand for a huge value.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


_PLAIN_VALUES = {
    "bool": "true|false",
    "int": r"-?(?:0|[1-9]\d*)",
    "float": r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?",
    "null": "~|null|",
}
for _type, _pattern in _PLAIN_VALUES.items():
    _FrontMatterLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(f"(?:{_pattern})$"), None)
