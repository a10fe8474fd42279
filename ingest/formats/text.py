"""Plain text, programs, and Markdown with its front matter."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

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
from arag.ingest.formats.outline_mode import has_outline, mark_outline
from arag.ingest.formats.plain_titles import (
    is_section_name,
    is_version_of_news,
    name_of_text,
    title_in_head,
    title_of_markdown,
    title_of_plain_text,
    title_of_tex,
)
from arag.ingest.formats.printed_manuals import mark_manual, split_manual
from arag.ingest.formats.printed_tables import show_printed_tables
from arag.ingest.formats.restructured import is_restructured, mark_titles
from arag.ingest.formats.sections import mark_sections
from arag.ingest.formats.text_pages import without_running_heads
from arag.ingest.outline import HEADING_LINE, escape_underlines

_MAX_FRONT_MATTER = 50_000  # characters: more than any page's fields take, and few enough to parse in a moment

_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(?=[^\n]*\S)(.*?)^(?:---|\.\.\.)[^\S\n]*$", re.DOTALL | re.MULTILINE)
_R_CODE = re.compile(r"`r [^`]*`")  # whose value is known when it runs only
_FORM_FEED = "\f"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")  # and links, of terminals
_OVERSTRUCK = re.compile(r"[^\n]\x08")  # manual pages print a letter twice for bold type, or over a line
_TITLE_ABOVE_TEXT = re.compile(
    r"(?<=\n\n)([A-Z][A-Z /-]{2,50})\n(?=[ \t]{3,}\S)"
)  # of a manual page, whose text is set in
_SOURCES = (".rst.txt", ".md.txt")  # as Sphinx copies them beside its pages
_CHANGELOG = re.compile("change_?log", re.IGNORECASE)  # its short lines are names and files
_PROGRAM_OF_CMAKE = "CMakeLists.txt"
# Above a page of a wiki such as Zim's; an abstract is text.
_HEAD_OF_WIKI = re.compile(r"Content-Type:.*\n(?:(?!Abstract)[\w-]{1,30}: .*\n)*(?:[ \t]*\n|\Z)", re.IGNORECASE)
_FIELD = re.compile(r"^([\w-]+):[ \t]*(\S.*)", re.MULTILINE)
_MODE = re.compile(r"\A(.*?)[ \t]*(?:-\*-.*-\*-|\bvim:.*)")  # of an editor, in the first line
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
    if path.name == _PROGRAM_OF_CMAKE:
        return read_code(path, encoding)
    decoded = decode_text(path.read_bytes(), encoding)
    if is_restructured(decoded):
        content = _read_markup(decoded, path, is_rst=True)
        return replace(content, title=title_in_head(decoded) or content.title)
    text = _MODE.sub(r"\1", _without_printing(decoded))
    manual = split_manual(text)
    if manual:
        return Content(
            title=manual.title,
            text=join_lines(mark_manual(manual.text)),
            metadata={"edition": manual.edition} if manual.edition else {},
            marks_headings=True,
            is_plain=True,
        )
    fields, text = _split_wiki_head(text)
    package = find_package(text)
    text, marks_headings = _mark_headings(show_printed_tables(text))
    if package is None:
        title = title_of_plain_text(text, path)
    else:
        title = f"{package} {path.stem}" if package else ""  # the first line names the newest version
    text, page_starts = _join_pages(text)
    return Content(
        title=title,
        text=text,
        page_starts=page_starts,
        metadata=fields,
        marks_headings=marks_headings or _CHANGELOG.match(path.name) is not None,
        headings_apart=True,
        is_plain=True,
    )


def _split_wiki_head(text: str) -> tuple[dict[str, JSON], str]:
    """Split a text into the fields above it, if it is a page of a wiki, and the rest."""
    head = _HEAD_OF_WIKI.match(text)
    if head is None:
        return {}, text
    return dict(_FIELD.findall(head[0])), text[head.end() :]


def _mark_headings(text: str) -> tuple[str, bool]:
    """Return a text with the headings of sections and of a changelog's entries marked, and whether all are."""
    marks_headings = False
    if not _has_headings(text):
        is_changelog = has_entries(text)
        text, marks_headings = mark_sections(text)
        if is_changelog:
            text = mark_entries(text)
            marks_headings = True
        if has_outline(text):
            text = mark_outline(text)
            marks_headings = True
    return _TITLE_ABOVE_TEXT.sub(r"\1\n\n", text), marks_headings


def _join_pages(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without the form feeds that divide its pages, and the start of each page if there are several."""
    pages = text.split(_FORM_FEED)
    if len(pages) == 1:
        return join_lines(text), ()
    pages = without_running_heads([page.strip("\n") for page in pages])
    return join_pages([join_lines(page.strip("\n")) for page in pages])


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


def read_code(path: Path, encoding: str = "") -> Content:
    """Read a file that should be text, such as a program, or one whose name has no extension: README is plain text."""
    data = path.read_bytes()
    if b"\0" in data and not is_wide(data):
        raise FormatError(BINARY)
    if _NAME_OF_TEXT.fullmatch(path.name):
        return read_text(path, encoding)
    text = decode_text(data, encoding)
    if path.suffix or _is_program(path.name, text):
        title = title_of_tex(text) if path.suffix.lower() == ".tex" else ""
        return Content(title=title, text=text, is_plain=True, is_code=True)
    return Content(title="", text=escape_underlines(text), headings_apart=True, is_plain=True)


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
    is_rst = path.name.lower().endswith((".rst", ".rst.txt"))
    return _read_markup(decode_text(path.read_bytes(), encoding), path, is_rst=is_rst)


def _read_markup(text: str, path: Path, *, is_rst: bool) -> Content:
    fields, text = _split_front_matter(text)
    if is_rst:
        text = mark_titles(text)
    else:
        text = join_lines(show_markdown(text))
    heading = title_of_markdown(text)
    if is_section_name(heading, text):
        heading = ""
    if is_version_of_news(heading, path):
        heading = name_of_text(path)
    title = _take_title(fields) or heading
    return Content(title=title, text=text, metadata=fields, headings_apart=True, is_plain=True)


def _take_title(fields: dict[str, JSON]) -> str:
    """Remove the title from the fields of a front matter and return it; an empty string if there is none."""
    title = fields.get("title")
    if not isinstance(title, str | int | float) or not str(title).strip():
        return ""
    del fields["title"]
    return str(title)


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
    known = {name: value for name, value in fields.items() if not _R_CODE.fullmatch(str(value))}
    return known, text[match.end() :].lstrip("\n")


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
