"""Plain text, programs, Markdown with its front matter, and notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from arag.ingest.formats.content import (
    BINARY,
    JSON,
    Content,
    FormatError,
    decode,
    decode_text,
    is_wide,
    join_blocks,
    join_pages,
)
from arag.ingest.formats.lines import join_lines
from arag.ingest.formats.restructured import find_title, mark_titles
from arag.ingest.outline import HEADING_LINE, escape_marks, escape_underlines, underlined_level
from arag.text.normalise import collapse_whitespace, count

_MAX_TITLE = 120  # characters: a longer first line is a paragraph
_MAX_FRONT_MATTER = 50_000  # characters: more than any page's fields take, and few enough to parse in a moment
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ":", ";", ",")

_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(?=[^\n]*\S)(.*?)^(?:---|\.\.\.)[^\S\n]*$", re.DOTALL | re.MULTILINE)
# Possessive, or else a last line of marks would be tried from each of them.
_FENCED = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT_START = re.compile(r"^ {0,3}<!--", re.MULTILINE)
_COMMENT_END = re.compile(r"-->[ \t]*\n?")
_FORM_FEED = "\f"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of terminals
_HEADING = re.compile(r"^ {0,3}#[ \t]+(\S.*)|^(\S.*)\n=+[ \t]*$", re.MULTILINE)


def read_text(path: Path, encoding: str = "") -> Content:
    """Read plain text; its title is a short first line, underlined or above a blank one.

    Form feeds divide its pages. It is not Markdown, unless all lines that look like headings stand alone and some have
    the lower levels.
    """
    text = decode_text(path.read_bytes(), encoding)
    if not _has_headings(text):
        text = escape_marks(text)
    title = _title_line(text)
    pages = text.split(_FORM_FEED)
    if len(pages) == 1:
        return Content(title=title, text=join_lines(text), headings_apart=True)
    text, page_starts = join_pages([join_lines(page.strip("\n")) for page in pages])
    return Content(title=title, text=text, page_starts=page_starts, headings_apart=True)


def _has_headings(text: str) -> bool:
    """Return whether a plain text is Markdown: its headings stand alone, and some have the lower levels."""
    if "\n##" not in text:
        return False
    lines = _FENCED.sub("", text).split("\n")
    before = ""
    levels: list[int] = []
    for line, after in pairwise([*lines, ""]):
        heading = HEADING_LINE.match(line)
        if heading:
            is_first = not levels
            is_in_paragraph = before.strip() or (is_first and after.strip())
            if is_in_paragraph:
                return False
            levels.append(len(heading[1]))
        before = line
    return len(levels) > 1 and max(levels) > 1


def _title_line(text: str) -> str:
    """Return the first line if it is underlined or looks like a title, or an empty string."""
    lines = text.lstrip("\n").split("\n", 3)
    if len(lines) < 3:
        return ""
    marked = find_title(lines[:3])
    title = marked.text if marked else lines[0].strip()
    if len(title) > _MAX_TITLE or not any(map(str.isalpha, title)):
        return ""
    below = lines[1].strip()
    if marked or underlined_level(title, below):
        return title
    is_paragraph = below or title.endswith(_SENTENCE_END)
    return "" if is_paragraph else title


def read_code(path: Path, encoding: str = "") -> Content:
    """Read a file that should be text, such as a program, or one whose name has no extension."""
    data = path.read_bytes()
    if b"\0" in data and not is_wide(data):
        raise FormatError(BINARY)
    text = escape_underlines(decode_text(data, encoding))
    return Content(title="", text=text, headings_apart=True)


def read_markdown(path: Path, encoding: str = "") -> Content:
    """Read Markdown; its title is the one in the front matter, or else the first heading of level 1.

    The text excludes the front matter, whose other fields become the metadata.
    """
    fields, text = _split_front_matter(decode_text(path.read_bytes(), encoding))
    if path.suffix.lower() == ".rst":
        text = mark_titles(text)
    else:
        text = join_lines(_without_comments(text))
    title = _take_title(fields) or first_heading(text)
    return Content(title=title, text=text, metadata=fields, headings_apart=True)


def _without_comments(text: str) -> str:
    """Return Markdown without its comments, which nobody sees; those in code stay."""
    if "<!--" not in text:
        return text
    parts: list[str] = []
    end = 0
    for code in _FENCED.finditer(text):
        between = text[end : code.start()]
        parts += [_drop_comments(between), code[0]]
        end = code.end()
    rest = _drop_comments(text[end:])
    return "".join([*parts, rest])


def _drop_comments(text: str) -> str:
    """Return a text without the comments that begin a line; one without an end is text."""
    parts: list[str] = []
    end = 0
    while True:
        start = _COMMENT_START.search(text, end)
        close = _COMMENT_END.search(text, start.end()) if start else None
        if start is None or close is None:
            return "".join([*parts, text[end:]])
        parts.append(text[end : start.start()])
        end = close.end()


def _take_title(fields: dict[str, JSON]) -> str:
    """Remove the title from the fields of a front matter and return it; an empty string if there is none."""
    title = fields.get("title")
    if not isinstance(title, str | int | float) or not str(title).strip():
        return ""
    del fields["title"]
    return str(title)


def first_heading(text: str) -> str:
    """Return the first heading of level 1 in a Markdown text, or an empty string."""
    heading = _HEADING.search(_FENCED.sub("", text))
    if heading is None:
        return ""
    title = collapse_whitespace(heading[1] or heading[2])
    return re.sub(" #+$", "", title)  # marks may close the line, too


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


def read_notebook(path: Path) -> Content:
    """Read a Jupyter notebook: its texts, its code and the output of the code, without pictures.

    Its title is the first heading of level 1.
    """
    try:
        notebook = json.loads(decode(path.read_bytes()))
        language_info = notebook["metadata"].get("language_info", {})
        language = language_info.get("name", "")
        blocks: list[str] = []
        markdown: list[str] = []
        pictures = 0
        for cell in notebook["cells"]:
            blocks += _cell_blocks(cell, language)
            pictures += sum(map(_is_picture, cell.get("outputs", ())))
            if cell["cell_type"] == "markdown":
                markdown.append("".join(cell["source"]))
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError("not a notebook of format 4: open it in Jupyter and save it again") from error
    return Content(
        title=first_heading("\n\n".join(markdown)),
        text=join_blocks(blocks),
        left_out=(count(pictures, "picture"),) if pictures else (),
    )


def _is_picture(output: dict[str, Any]) -> bool:
    kinds = " ".join(output.get("data", {}))
    return "image/" in kinds


def _cell_blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    """Yield a cell's source and its outputs; some may be empty."""
    source = "".join(cell["source"]).strip()  # a string or a list of lines
    if cell["cell_type"] != "code":
        yield source
        return
    yield _fenced(source, language)
    for output in cell["outputs"]:
        text = _COLOURS.sub("", _output_text(output))
        yield _fenced(text.strip())


def _output_text(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    lines = output.get("text")  # that the code prints
    if not lines:
        lines = output.get("data", {}).get("text/plain", "")  # of its result
    return "".join(lines)


def _fenced(text: str, language: str = "") -> str:
    if not text:
        return ""
    return f"```{language}\n{text}\n```"
