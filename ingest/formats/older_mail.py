"""Marks the older mails below an answer, so that their words are not mistaken for the sender's."""

from __future__ import annotations

import re

from arag.ingest.formats.content import join_blocks
from arag.ingest.outline import HEADING_LINE
from arag.text.mail import FIELDS, SENDER, SENT, WROTE
from arag.text.normalise import collapse_whitespace

_LEVEL = 2  # of the heading above an older mail: its subject's, and others in it, are below
_LOWEST = 6  # level of a heading in Markdown
_HEADING = re.compile(rf"^{'#' * _LEVEL} Earlier mail\b", re.MULTILINE)
# An older mail begins with a rule and fields, with the fields of mail programs, or with a line that names its writer.
# Lines that are quoted with ">" must go on to the end: else the answer stands among them.
_RULE = r" {0,4}[-_]{3}.*\n+"
_QUOTED_TO_THE_END = r"(?=(?:>.*(?:\n+|\Z))+\Z)"
_OLDER = re.compile(
    rf"^(?:{_RULE})?(?P<fields>{FIELDS})"
    rf"|^{_RULE}(?=\S+: .*\n\S+: )(?P<other_fields>(?:\S+: .*\n)+)"
    rf"|^(?P<quoted>(?:(?<=\n\n)\S.*\n)?[^\s>].*[:：])\s*\n{_QUOTED_TO_THE_END}"
    rf"|^(?P<writer>{WROTE})[ \t]*\n(?=\s*[^\s>])",
    re.MULTILINE,
)
_SENDER_FIELD = re.compile(rf"^\*?(?:{SENDER})\*? ?[:：]\*?(.*)", re.MULTILINE)
_DATE_FIELD = re.compile(rf"^\*?(?:{SENT})\*? ?[:：]\*?(.*)", re.MULTILINE)

# The parts of "On Wed, 3 April 2024 at 10:00, Ann <ann@mill.example> wrote:". The date ends with its last digit.
_FIRST_WORD = re.compile(r"(?:On|Am|Le|El|Il|Op|Em|Den|W dniu|Dnia)\s+")
_VERB = re.compile(
    r"[\s,]*(?:\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|skrev|napisał(?:\(a\)|a)?"
    r"|написала?|пишет)(?!\w)|写道|寫道|書きました)"
)
_DATE = re.compile(r".*\d(?:[ap]\.?m\b\.?|\s|Uhr\b|h\b|г\.|日)*", re.IGNORECASE)
_DAY = re.compile(r".+(?=,)")
_ADDRESS = re.compile(r"\s*(?:<[^<>]*>|\[mailto:[^\]]*\]|\(\S+@\S+\))")
_TIME = re.compile(
    r"(?:(?<=\d)T|[\s,]*)(?:(?:at|um|à|a las|às|alle|alle ore|ore|om|kl\.?|o|godz\.?|в|klo)\s+)?"
    r"(?:上午|下午|午前|午後)?\d{1,2}:\d\d.*"
)


def mark_older(text: str) -> str:
    """Return the text of a mail with a heading before each older mail in it."""
    starts = list(_OLDER.finditer(text))
    if not starts:
        return _mark_quotation(text)
    ends = [start.start() for start in starts[1:]]
    blocks = [text[: starts[0].start()].rstrip("\n")]
    for start, end in zip(starts, [*ends, len(text)], strict=True):
        fields = start[0].strip("\n")
        rest = text[start.end() : end].strip("\n")
        older = join_blocks([fields, rest])
        blocks.append(under_heading(_heading(start), older))
    return join_blocks(blocks)


def _mark_quotation(text: str) -> str:
    """Return a mail's text with a heading before the lines at its end that are quoted with ">"."""
    lines = text.split("\n")
    first = len(lines)
    while first > 0 and (not lines[first - 1].strip() or lines[first - 1].startswith(">")):
        first -= 1
    quotation = "\n".join(lines[first:]).strip("\n")
    is_apart = first < len(lines) and not lines[first].strip()
    if first == 0 or not quotation or not is_apart:
        return text
    answer = "\n".join(lines[:first])
    return join_blocks([answer, under_heading(older_heading("", ""), quotation)])


def has_older(text: str) -> bool:
    """Return whether a text has an older mail under its heading."""
    return _HEADING.search(text) is not None


def under_heading(heading: str, text: str) -> str:
    """Return the text of an older mail under a heading, with its own headings below that one."""
    lines = [f"{'#' * _LEVEL} {heading}", ""]
    for line in text.split("\n"):
        own = HEADING_LINE.match(line)
        if own is None:
            lines.append(line)
            continue
        level = min(len(own[1]) + _LEVEL, _LOWEST)
        lines.append("#" * level + line.lstrip().lstrip("#"))
    return "\n".join(lines)


def older_heading(sender: str, date: str) -> str:
    """Return the heading of an older mail: `Earlier mail from Ann Lee, Wed, 3 April 2024`, as far as both are known."""
    name = collapse_whitespace(_ADDRESS.sub("", sender)).strip("\"' *,")
    name = name or collapse_whitespace(sender).strip("<>\"' *,")
    day = collapse_whitespace(_TIME.sub("", date)).strip(" *,")
    heading = f"Earlier mail from {name}" if name else "Earlier mail"
    return f"{heading}, {day}" if day else heading


def _heading(start: re.Match[str]) -> str:
    fields = start["fields"] or start["other_fields"]
    if fields:
        sender = _SENDER_FIELD.search(fields)
        date = _DATE_FIELD.search(fields)
        return older_heading(
            sender[1] if sender else "",
            date[1] if date else "",
        )
    line = collapse_whitespace(start["quoted"] or start["writer"])
    return _heading_of_line(line)


def _heading_of_line(line: str) -> str:
    """Return the heading for a line such as "On Monday, Ann wrote:"."""
    plain = line.rstrip(" :：")
    verb = _VERB.search(plain)
    if verb is None:
        return f"Earlier mail: {plain}"
    before = _FIRST_WORD.sub("", _ADDRESS.sub("", plain[: verb.start()]), count=1)
    after = plain[verb.end() :].strip()
    if after:  # as in German: "Am Montag schrieb Ann"
        return older_heading(after, before)
    date = _DATE.match(before) or _DAY.match(before)
    writer = before[date.end() :].strip(" ,、，") if date else ""
    if date is None or not writer:
        return f"Earlier mail: {plain}"
    return older_heading(writer, date[0])
