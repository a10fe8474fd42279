"""The parts of an email that carry no facts of their own: headers, quoted replies and greetings."""

from __future__ import annotations

import re

_QUOTED_LINE = ">"
# Headers, quoted lines, and lines such as "On Monday, Ann wrote:". All text below such a line is of the older email,
# unless that is quoted with ">": then the newer one may go on below the quotation.
_ASIDE = re.compile(
    r"^>.*|^(?:From|To|Cc|Sent|Subject): .*"
    r"|^(?:On .{5,80}(?:\n.{0,80})?\bwrote:[ \t]*$|-+ ?Original Message ?-+)(?:\s*(?![\s>])[\s\S]*)?",
    re.MULTILINE,
)
_GREETING = re.compile(
    r"(?i:dear|hi|hello|good (?:morning|afternoon|evening))\b[^.?]{0,60}[,!:]"
    r"|(?i:(?:(?:best|kind|warm|many|with) )*(?:regards|wishes|thanks|sincerely|cheers|yours(?: \w+)?))"
    r"[,.!]?(?:\s+[A-Z][\w.'’-]*){0,4}"
)


def find_asides(text: str) -> list[range]:
    """Return where an email has headers and quoted replies; nothing for other texts.

    Texts that are not emails have lines with ">", too. So these lines count only beside a header or a reply's first
    line.
    """
    matches = list(_ASIDE.finditer(text))
    if all(match[0].startswith(_QUOTED_LINE) for match in matches):
        return []
    return [range(*match.span()) for match in matches]


def is_greeting(sentence: str) -> bool:
    """Return whether a sentence only greets or takes leave: "Dear Ann," or "Best regards, Bob"."""
    return _GREETING.fullmatch(sentence) is not None
