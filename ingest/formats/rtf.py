"""Prepares RTF for xberg, which misses some of what a person sees."""

from __future__ import annotations

import re

from arag.text.contents import is_heading_of_contents
from arag.text.normalise import collapse_whitespace

BAR = "\x7f"  # xberg takes the spaces off a bar, but not off a control character that stands for it
_BAR_IN_RTF = re.compile(rb"(?<!\\)\|")
# xberg does not know that the second byte of a Chinese, Japanese or Korean sign may be written as a letter.
_OF_EAST_ASIA = re.compile(rb"\\fcharset(?:128|129|134|136)\b|\\ansicpg(?:932|936|949|950)\b")
_SECOND_BYTE = re.compile(rb"(\\'[89a-f][0-9a-f])(?:\\([\\{}])|([@-\[\]-z|~]))", re.IGNORECASE)
# xberg finds fonts only in braces of their own, which TextEdit leaves out.
_FONTS = re.compile(rb"\{\\fonttbl\s*(\\f\d[^{}]*+)\}")
_FONT = re.compile(rb"[^;]+;")
# xberg reads a space that is no line end, and such a hyphen, as `~` and `_`.
_SIGN = re.compile(rb"(?<!\\)((?:\\\\)*)\\([~_])")
_SIGNS = {b"~": rb"\'a0", b"_": b"-"}
# xberg does not read styles: a mark, with its level, says that a paragraph is a heading.
_HEADING_STYLE = re.compile(rb"\{\\s(\d+)\b(?:[^{};]|\{[^{}]*\})*?\bheading ([1-6]);", re.IGNORECASE)
_STYLE = re.compile(rb"(?<!\\)\\s(\d+)(?!\d) ?")
_WRITTEN_MARK = b"{\\uc1\\u-8192?%s}"
_MARK = re.compile("\ue000([1-6])")
_LOWEST_LEVEL = 6


def prepare_rtf(data: bytes) -> bytes:
    """Return an RTF in which xberg finds fonts, footnotes, bars, signs that keep a line together, and headings."""
    if _OF_EAST_ASIA.search(data):
        data = _SECOND_BYTE.sub(_write_second_byte, data)
    data = _FONTS.sub(_put_fonts_in_braces, data)
    data = _BAR_IN_RTF.sub(BAR.encode(), data)
    data = _SIGN.sub(lambda match: match[1] + _SIGNS[match[2]], data)
    data = _mark_headings(data)
    return data.replace(rb"{\*\footnote", rb"{\footnote")


def find_heading(text: str) -> str | None:
    """Return a paragraph of a prepared RTF as a heading of Markdown, empty if it is blank; None if it is not one."""
    mark = _MARK.match(text)
    if mark is None:
        return None
    title = collapse_whitespace(without_marks(text))
    level = _LOWEST_LEVEL if is_heading_of_contents(title) else int(mark[1])  # no chapter is below the contents
    return f"{'#' * level} {title}" if title else ""


def without_marks(text: str) -> str:
    """Return a text of a prepared RTF without the marks of headings, which may also stand in tables."""
    return _MARK.sub("", text)


def _mark_headings(data: bytes) -> bytes:
    levels: dict[bytes, bytes] = dict(_HEADING_STYLE.findall(data))

    def with_mark(match: re.Match[bytes]) -> bytes:
        level = levels.get(match[1])
        return match[0] + _WRITTEN_MARK % level if level else match[0]

    return _STYLE.sub(with_mark, data)


def _put_fonts_in_braces(match: re.Match[bytes]) -> bytes:
    return rb"{\fonttbl%s}" % _FONT.sub(rb"{\g<0>}", match[1])


def _write_second_byte(match: re.Match[bytes]) -> bytes:
    return match[1] + b"\\'%02x" % ord(match[2] or match[3])
