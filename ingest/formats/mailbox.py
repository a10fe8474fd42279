"""Files with many emails (mbox)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from arag.ingest.formats.kinds import MAILBOX_LINE

_MESSAGE_ID = re.compile(rb"(?i)Message-ID:\s*<?([^<>\s]{1,400})>?\s*$")


@dataclass
class _Mail:
    """An email of a mailbox, as far as it is read."""

    start: int
    end: int
    message_id: str = ""
    is_in_header: bool = True

    def add(self, line: bytes) -> None:
        self.end += len(line)
        if not line.strip():
            self.is_in_header = False
        if self.is_in_header and not self.message_id:
            found = _MESSAGE_ID.match(line)
            self.message_id = found[1].decode("utf-8", "replace") if found else ""


def find_mails(path: Path) -> Iterator[tuple[int, int, str]]:
    """Yield start and end of each email of a mailbox (mbox), and its `Message-ID` or an empty string.

    It is read line by line, as mailboxes may have any size.
    """
    mail = _Mail(start=0, end=0, is_in_header=False)
    is_after_blank = True
    with path.open("rb") as file:
        for line in file:
            if is_after_blank and MAILBOX_LINE.match(line):
                yield from _found(mail)
                start = mail.end + len(line)
                mail = _Mail(start=start, end=start)
            else:
                mail.add(line)
            is_after_blank = not line.strip()
    yield from _found(mail)


def _found(mail: _Mail) -> Iterator[tuple[int, int, str]]:
    if mail.end > mail.start:
        yield mail.start, mail.end, mail.message_id
