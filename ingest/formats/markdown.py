"""Markdown as its readers see it: without comments and attributes, and with headings that are written in HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from arag.text.normalise import collapse_whitespace

# Possessive, or else a last line of marks would be tried from each of them.
FENCED = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT_START = re.compile(r"^ {0,3}<!--", re.MULTILINE)
_COMMENT_END = re.compile(r"-->[ \t]*\n?")
_COMMENT_OF_NOTES = re.compile(r"^%%(?:(?!%%).){1,2000}%%[ \t]*$\n?", re.DOTALL | re.MULTILINE)  # of Obsidian
# Jekyll's marks. In a sentence, they are its subject.
_COMMENT_OF_SITE = re.compile(
    r"^ {0,3}\{%-? *comment *-?%\}(?:(?!\{%).)*\{%-? *endcomment *-?%\}",
    re.DOTALL | re.MULTILINE,
)
# Code that begins within code has no end, and is not searched for one.
_CODE_OF_SITE = re.compile(
    r"^\{%-? *+highlight ++(\w*)[^%\n]*%\}[ \t]*\n((?:(?!^\{%-? *highlight ).)*?)^\{%-? *endhighlight *-?%\}[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
# Such as {#name .class} after a heading; kramdown also writes {:.class} in a line of its own.
_ATTRIBUTE = r"(?:[#.][\w:.-]+|-|[\w:-]+=(?:\"[^\"\n]*\"|'[^'\n]*'|[\w.-]+))"
_ATTRIBUTES = rf"\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}"
_HEADING = re.compile(rf"^( {{0,3}}#{{1,6}}[ \t]+\S[^\n]{{0,200}}?)[ \t]{{1,4}}{_ATTRIBUTES}[ \t]*$", re.MULTILINE)
_UNDERLINED = re.compile(rf"^(\S[^\n]{{0,200}}?)[ \t]{{1,4}}{_ATTRIBUTES}[ \t]*(?=\n(?:=+|-+)[ \t]*$)", re.MULTILINE)
# A line of three marks is enough; below the end of a sentence, it may be meant as a rule.
_SHORT_UNDERLINE = re.compile(
    r"(?:(?<=\n\n)|\A)((?!\d+[.)]\s|[-+*>#|<\s])[^\n|]{1,100}[^\n|\s.!?:;,。！？：；，])[ \t]*\n(===+|---+)[ \t]*$",
    re.MULTILINE,
)
_TITLE = re.compile(r"^ {0,3}#{1,6}[ \t][^\n]*+|^\S[^\n]*+(?=\n(?:={3,}|-{3,})[ \t]*$)", re.MULTILINE)
_CODE_OR_ESCAPE = re.compile(r"(?<!`)(`++)[^`]++\1(?!`)|\\([!-/:-@\[-`{}~])")  # not of a bar, which would make a row
_CODE_OR_BOLD = re.compile(r"(?<!`)(`++)[^`]++\1(?!`)|(?<![*\\])\*\*(?=\S)([^*\n]*[^*\s\\])\*\*(?!\*)")
_CODE_OR_PICTURE = re.compile(  # with the text in its place
    r"(?<!`)(`++)[^`]++\1(?!`)|(?<!\\)!\[(?P<alt>[^\[\]\n]+)\]\([^()\n]*\)"
    r"|<img\b[^<>]*?\balt=[\"'](?P<text>[^\"'<>]+)[\"'][^<>]*>"
)
_CODE_OR_LINK = re.compile(r"(?<!`)(`++)[^`]++\1(?!`)|(?<![!\\])\[([^\[\]\n]+)\]\([^()\s]+\)")  # but no picture
_LINE_OF_ATTRIBUTES = re.compile(r"^ {0,3}\{:[^{}\n]*\}[ \t]*$\n?", re.MULTILINE)
_HTML_HEADING = re.compile(r"^ {0,3}<h([1-6])\b[^<>]*>(.{1,500}?)</h\1>", re.DOTALL | re.IGNORECASE | re.MULTILINE)
# Lines with nothing but tags set the page: `<br />`, `<p align="center">`.
_LINE_OF_TAGS = re.compile(
    r"^ {0,3}(?:</?(?:br|hr|p|div|center|span|details)\b[^<>\n]*>[ \t]*)+$\n?", re.IGNORECASE | re.MULTILINE
)
_BREAK_AT_END = re.compile(r"(?<![ \t])[ \t]*<br ?/?>[ \t]*$", re.IGNORECASE | re.MULTILINE)
# An anchor that links lead to shows nothing: `<a id="installation"></a>`.
_CODE_OR_ANCHOR = re.compile(
    r"(?<!`)(`++)[^`]++\1(?!`)|[ \t]*<(a|span)\b[^<>\n]*+>[ \t]*</\2>|[ \t]*<a (?:id|name)=[^<>\n]*?/>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]*>")


def show_markdown(text: str) -> str:
    """Return Markdown without its comments and attributes, and with marks for all headings; code stays as it is."""
    text = _CODE_OF_SITE.sub(r"```\1\n\2```", text)
    parts = [part if is_code else _show(part) for part, is_code in split_code(text)]
    return "".join(parts)


def split_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is code between fences, with these."""
    end = 0
    for code in FENCED.finditer(text):
        yield text[end : code.start()], False
        yield code[0], True
        end = code.end()
    yield text[end:], False


def _show(text: str) -> str:
    """Return Markdown between code as its readers see it."""
    text = _drop_comments(text)
    if "{" in text:
        text = _COMMENT_OF_SITE.sub("", text)
        text = _HEADING.sub(r"\1", text)
        text = _UNDERLINED.sub(r"\1", text)
        text = _LINE_OF_ATTRIBUTES.sub("", text)
    if "%%" in text:
        text = _COMMENT_OF_NOTES.sub("", text)
    text = _SHORT_UNDERLINE.sub(_mark_underlined, text)
    text = _TITLE.sub(_show_title, text)
    if "<" in text:
        text = _CODE_OR_ANCHOR.sub(_keep_code, text)
        text = _LINE_OF_TAGS.sub("\n", text)
        text = _BREAK_AT_END.sub("", text)
    return _HTML_HEADING.sub(_mark_heading, text)


def _mark_underlined(match: re.Match[str]) -> str:
    """Return an underlined title with the mark of its level."""
    title, rule = match.groups()
    is_clear = 2 * len(rule) >= len(title)  # in any text
    if is_clear:
        return match[0]
    mark = "##"
    if rule[0] == "=":
        mark = "#"
    return f"{mark} {title}\n"


def _show_title(match: re.Match[str]) -> str:
    """Return a title without marks of bold type, addresses of links and pictures, and backslashes; code stays."""
    title = _CODE_OR_PICTURE.sub(lambda part: part["alt"] or part["text"] or part[0], match[0])
    for marks in (_CODE_OR_BOLD, _CODE_OR_LINK, _CODE_OR_ESCAPE):
        title = marks.sub(lambda part: part[2] or part[0], title)
    return title


def _keep_code(match: re.Match[str]) -> str:
    """Return code as it is, and nothing for an anchor."""
    return match[0] if match[1] else ""


def _mark_heading(match: re.Match[str]) -> str:
    """Return a heading in HTML as one of Markdown; one that is a picture stays."""
    title = collapse_whitespace(_TAG.sub(" ", match[2]))
    if not title:
        return match[0]
    level = int(match[1])
    marks = "#" * level
    return f"{marks} {title}\n"


def _drop_comments(text: str) -> str:
    """Return a text without the comments that begin a line; one without an end is text."""
    parts: list[str] = []
    end = 0
    while True:
        start = _COMMENT_START.search(text, end)
        if start is None:
            break
        close = _COMMENT_END.search(text, start.end())
        if close is None:
            break
        before = text[end : start.start()]
        parts.append(before)
        end = close.end()
    rest = text[end:]
    return "".join([*parts, rest])
