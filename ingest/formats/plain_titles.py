"""Finds the titles of plain texts, Markdown and TeX."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from arag.ingest.formats.markdown import FENCED
from arag.ingest.formats.restructured import find_title
from arag.ingest.outline import HEADING_LINE, name_of, underlined_level
from arag.text.normalise import collapse_whitespace

_MAX_TITLE = 120  # characters: a longer first line is a paragraph
_MAX_WORDS = 8  # of a title that ends as a sentence does
_CLOSERS = ")\"'”»"
_SENTENCE_END = (".", "!", "?", "。", "！", "？", "、", "，", ":", ";", ",")

_HEADING = re.compile(r"^ {0,3}#[ \t]+(\S.*)|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
_MARKS = re.compile(r"^ {0,3}(#{1,6})\s", re.MULTILINE)
_MARKED_HEADING = re.compile(r"^ {0,3}#{1,6}\s.*", re.MULTILINE)
# Lines above a text that say what it is, as above an email.
_HEAD = re.compile(r"\n*((?:[A-Z][\w-]{1,30}:[^\n]*\n(?:[ \t]+\S[^\n]*\n)*){1,40})\n+")
_FIELD_OF_TEXT = re.compile(r"^(?:Content-Type|Abstract|Title|Subject|Author|From|Date):", re.IGNORECASE | re.MULTILINE)
_NAME = re.compile(r"^(Title|Subject):[ \t]*(\S.*)", re.IGNORECASE | re.MULTILINE)
_TITLE = re.compile(r"^Title:[ \t]*(\S.*)", re.IGNORECASE | re.MULTILINE)
_RULE = re.compile(r"[-=~*#_.]{3,}")  # also of several signs
# A first line that is no title: of a key, of code, of a log with its date or author, an item, and one with an address.
_NO_TITLE = re.compile(
    r"-{3,}|[-+•] (?!.* -$)|[%#]|\$Id\b|\d{4}-\d\d-\d\d\b|\w+::"
    r"|v\d+\.\d[\w.]*(?:\s\W*\d|\s+(?:[A-Z][a-z]{2}\s+){2}\d|$)"  # a version, with its date
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
# The first heading of a text, marked or underlined, if some lines and then others like it follow. Those of chapters
# have numbers.
_FIRST_OF_MARKED = re.compile(r"\n*(#+) (?P<heading>.+)\n++(?!#)(?:.*\n)*?\1 (?!\d)")
_FIRST_OF_UNDERLINED = re.compile(
    r"\n*(?P<heading>\S.*)\n(?P<sign>[=~-])(?P=sign){2,}[ \t]*\n++"
    r"(?!.*\n([=~-])\3{2,}[ \t]*\n)"  # a heading below a title
    r"(?:.*\n)*?[ \t]*\n(?!\d)\S.*\n(?P=sign){3,}[ \t]*$",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W_]{3,}")
_NEWS = re.compile(r"NEWS|CHANGES|CHANGE_?LOG|HISTORY|RELEASE", re.IGNORECASE)
_VERSION = re.compile(r"\d\.\d")
# Of a document in TeX, without other commands than these names and line ends.
_TEX_TITLE = re.compile(
    r"^[ \t]*\\title(?:\[[^\]\n]*\])?\{((?:[^{}\\%\n]|\\(?:La)?TeX(?![A-Za-z])|\\[\\ ])+)\}", re.MULTILINE
)


# --- plain texts ---


def title_of_plain_text(text: str, path: Path) -> str:
    """Return the title of a text, which is the name of its file if the first heading is only that of a section.

    News begin with the newest version. Another heading with others like it after it is the title of the whole only if
    it names the folder, which is that of a package: `Oil for Debian`.
    """
    title = _title_line(text)
    if is_version_of_news(title, path) or (_is_first_of_sections(title, text) and not _names(title, path.parent.name)):
        return name_of_text(path)
    return title.rstrip(" :")


def title_in_head(text: str) -> str:
    """Return the title that the lines above a text name, or an empty string."""
    head = _HEAD.match(text)
    title = _TITLE.search(head[1]) if head else None
    return title[1] if title else ""


def is_version_of_news(title: str, path: Path) -> bool:
    """Return whether the title of a text is the newest version, of which it gives the news."""
    return _NEWS.match(path.name) is not None and _VERSION.search(title) is not None


def name_of_text(path: Path) -> str:
    """Return the name of a file without its extension; that of NEWS-3.0 has none."""
    name = path.stem if path.suffix[1:].isalpha() else path.name
    return name.replace("_", " ")


def _is_first_of_sections(title: str, text: str) -> bool:
    """Return whether a title is the first heading of a text, and others like it follow."""
    first = _FIRST_OF_MARKED.match(text) or _FIRST_OF_UNDERLINED.match(text)
    return first is not None and first["heading"].strip() == title


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
        has_sentence = self.title.endswith(_SENTENCE_END) or ". " in self.title
        is_long_sentence = has_sentence and len(self.title.split()) > _MAX_WORDS
        is_comment = self.has_mark and self.title.endswith(":")
        if is_long_sentence or is_comment or _NO_TITLE.match(self.title):
            return False
        is_no_title = self._is_text() or self.title.lower() in _SECTION_NAMES
        return self.is_marked or not is_no_title

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


# --- headings ---


def title_of_markdown(text: str) -> str:
    """Return the first heading of level 1, or the first one of all where more of the others are above it than below.

    Without one of level 1, the heading with which a text begins is its title if there are others below it only.
    """
    title = first_heading(text)
    headings = list(map(name_of, _MARKED_HEADING.findall(FENCED.sub("", text))))
    if title in headings and 2 * headings.index(title) > len(headings):
        return headings[0]
    return title or _heading_above_all(text)


def _heading_above_all(text: str) -> str:
    """Return the heading with which a text begins if there are others, all of lower levels, or an empty string."""
    first, *others = _MARKS.findall(FENCED.sub("", text)) or [""]
    is_above_all = min(others, default=first) > first  # as more marks are
    return opening_heading(text) if is_above_all else ""


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
    is_no_title = any(
        [
            title.endswith(":"),  # a comment
            _NO_TITLE.match(title),
            is_section_name(title, text),
        ]
    )
    return "" if is_no_title else title


def title_of_tex(text: str) -> str:
    """Return the title that a document in TeX gives itself, or an empty string."""
    match = _TEX_TITLE.search(text)
    if match is None:
        return ""
    title = re.sub(r"\\[\\ ]|~", " ", match[1])
    return collapse_whitespace(title.replace("\\", ""))
