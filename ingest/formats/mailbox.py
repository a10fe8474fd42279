"""Files with many emails (mbox)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from arag.ingest.formats.kinds import MAILBOX_LINE

_MESSAGE_ID = re.compile(rb"(?i)Message-ID:\s*<?([^<>\s]{1,400})>?\s*$")


def find_mails(path: Path) -> Iterator[tuple[int, int, str]]:
    """Yield start and end of each email of a mailbox (mbox), and its `Message-ID` or an empty string.

    It is read line by line, as mailboxes may have any size.
    """
    start = 0
    end = 0
    message_id = ""
    is_in_header = False
    is_after_blank = True
    with path.open("rb") as file:
        for line in file:
            if is_after_blank and MAILBOX_LINE.match(line):
                if end > start:
                    yield start, end, message_id
                start = end + len(line)
                message_id = ""
                is_in_header = True
            elif is_in_header and not message_id:
                found = _MESSAGE_ID.match(line)
                message_id = found[1].decode("utf-8", "replace") if found else ""
            end += len(line)
            is_after_blank = not line.strip()
            is_in_header = is_in_header and not is_after_blank
    if end > start:
        yield start, end, message_id
