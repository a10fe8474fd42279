"""Marks the older mails below an answer, so that their words are not mistaken for the sender's."""

from __future__ import annotations

import re

from arag.ingest.formats.content import join_blocks
from arag.ingest.outline import HEADING_LINE
from arag.text.mail import FIELDS, FIRST_WORD, SENDER, SENT, VERB, WROTE
from arag.text.normalise import collapse_whitespace

_LEVEL = 2  # of the heading above an older mail: its subject's, and others in it, are below
_MAX_FIELD = 300  # characters that are looked at: a heading has 100
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
_QUOTE_SIGN = re.compile("^> ?", re.MULTILINE)
_ATTRIBUTION = re.compile(r"(?=.*(?:\S@\S|\d:\d\d|\b\d{4}\b)).*[:：]$", re.MULTILINE)
_SENDER_FIELD = re.compile(rf"^\*?(?:{SENDER})\*? ?[:：]\*?(.*)", re.MULTILINE)
_DATE_FIELD = re.compile(rf"^\*?(?:{SENT})\*? ?[:：]\*?(.*)", re.MULTILINE)

# The parts of "On Wed, 3 April 2024 at 10:00, Ann <ann@mill.example> wrote:". The date ends with its last digit.
_FIRST_WORD = re.compile(rf"(?:{FIRST_WORD})\s+")
_VERB = re.compile(rf"[\s,]*(?:{VERB})")
_DATE = re.compile(r".*\d(?:[ap]\.?m\b\.?|\s|Uhr\b|h\b|г\.|日)*", re.IGNORECASE)
_DAY = re.compile(r".+(?=,)")
_AROUND_NAME = " \t<>\"'*,、，"
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
    return join_blocks([answer, under_heading(_heading_of_quotation(quotation), quotation)])


def _heading_of_quotation(quotation: str) -> str:
    """Return the heading for a quotation, whose first line may name its writer."""
    plain = _QUOTE_SIGN.sub("", quotation)
    start = _OLDER.match(plain)
    if start is not None:
        return _heading(start)
    line = _ATTRIBUTION.match(plain)
    return _heading_of_line(line[0]) if line else older_heading("", "")


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
    heading = "Earlier mail"
    name = _plain_name(collapse_whitespace(sender)[:_MAX_FIELD])
    if name:
        heading += f" from {name}"
    day = _TIME.sub("", collapse_whitespace(date)[:_MAX_FIELD]).strip(" *,")
    if day:
        heading += f", {day}"
    return heading


def _plain_name(sender: str) -> str:
    """Return a sender's name, or the address if there is none."""
    name = _ADDRESS.sub("", sender).strip(_AROUND_NAME)
    return name or sender.strip(_AROUND_NAME)


def _heading(start: re.Match[str]) -> str:
    fields = start["fields"] or start["other_fields"]
    if not fields:
        line = start["quoted"] or start["writer"]
        return _heading_of_line(collapse_whitespace(line))
    sender = _SENDER_FIELD.search(fields)
    date = _DATE_FIELD.search(fields)
    return older_heading(
        sender[1] if sender else "",
        date[1] if date else "",
    )


def _heading_of_line(line: str) -> str:
    """Return the heading for a line such as "On Monday, Ann wrote:"."""
    plain = line[:_MAX_FIELD].rstrip(" :：")
    unknown = f"Earlier mail: {plain}"
    verb = _VERB.search(plain)
    if verb is None:
        return unknown
    before = _ADDRESS.sub("", plain[: verb.start()])
    before = _FIRST_WORD.sub("", before, count=1)
    after = plain[verb.end() :].strip()
    if after:  # as in German: "Am Montag schrieb Ann"
        return older_heading(after, before)
    date = _DATE.match(before) or _DAY.match(before)
    if date is None:
        return unknown
    writer = before[date.end() :].strip(_AROUND_NAME)
    return older_heading(writer, date[0]) if writer else unknown
