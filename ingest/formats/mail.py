"""Text of mails (eml)."""

from __future__ import annotations

import codecs
import email
import email.policy
import re
from collections.abc import Iterator
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message

from arag.ingest.documents import JSON
from arag.ingest.formats.content import Content, FormatError, clean_text, decode, folded
from arag.ingest.formats.html import read_html

_MAX_HEADER = 10_000  # characters: the time that the email package takes grows with their square
_LONG_HEADER = re.compile(
    rb"^content-(?:type|disposition):(?:[^\n]|\n[ \t]){%d}" % _MAX_HEADER, re.IGNORECASE | re.MULTILINE
)
_SHOWN = ("From", "To", "Cc", "Date")


def read_mail(data: bytes) -> Content:
    """Read a mail: its sender and receivers, its text, and the mails and texts that are attached to it.

    Its title is the subject. Of a text that is there twice, the plain one is read, else the HTML. Other attachments are
    named in the text, and left out; pictures inside the text are ignored.

    Raises:
        FormatError: The file is not a mail, or is encrypted.
    """
    if _LONG_HEADER.search(data):
        raise FormatError(f"a header of more than {_MAX_HEADER:,} characters")
    try:
        mail = email.message_from_bytes(data, policy=email.policy.compat32)
        if not any(mail.get(name) for name in ("From", "To", "Subject", "Date", "Received")):
            raise FormatError("not a mail: it has no sender, receiver, subject or date")
        reading = _Reading()
        reading.add_mail(mail)
    except RecursionError as error:
        raise FormatError("mails that are nested too deeply") from error
    metadata: dict[str, JSON] = {name.lower(): _header(mail, name) for name in ("From", "Date") if mail.get(name)}
    return Content(_header(mail, "Subject"), "\n\n".join(reading.texts), metadata, left_out=tuple(reading.left_out))


class _Reading:
    """Collects the texts of a mail, and what is left out of it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.left_out: list[tuple[str, str]] = []
        self._parts = 0

    def add_mail(self, mail: Message) -> None:
        subject = _header(mail, "Subject")
        head = [f"{name}: {_header(mail, name)}" for name in _SHOWN if mail.get(name)]
        self.texts += filter(None, [subject and f"# {subject}", "\n".join(head)])
        self._add_part(mail)

    def _add_part(self, part: Message) -> None:
        kind = part.get_content_type()
        if kind == "message/rfc822":
            for mail in _parts(part):
                self.add_mail(mail)
        elif kind == "multipart/alternative":
            best = next(
                (
                    each
                    for wanted in ("text/plain", "text/html")
                    for each in _parts(part)
                    if each.get_content_type() == wanted
                ),
                None,
            )
            for each in _parts(part) if best is None else [best]:
                self._add_part(each)
        elif part.is_multipart():
            for each in _parts(part):
                self._add_part(each)
        else:
            self._add_leaf(part, kind)

    def _add_leaf(self, part: Message, kind: str) -> None:
        self._parts += 1
        name = _decoded(part.get_filename() or "")
        try:
            if kind in {"text/plain", "text/html", "text/markdown", "text/csv"}:
                text = _text(part, kind)
                self.texts += filter(None, [f"Attachment: {name}" if name else "", text.strip()])
                return
            reason = f"{kind} is not read"
        except FormatError as error:
            reason = str(error)
        if kind.startswith("image/") and part.get_content_disposition() != "attachment":
            return
        shown = name or f"part {self._parts}"
        self.texts.append(f"Attachment: {shown}")
        self.left_out.append((f"item {self._parts}", f"the attachment {shown} is left out: {reason}"))


def _parts(part: Message) -> Iterator[Message]:
    payload = part.get_payload()
    return (each for each in payload if isinstance(each, Message)) if isinstance(payload, list) else iter(())


def _text(part: Message, kind: str) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset("us-ascii")
    try:
        text = decode(data, "utf-8" if charset == "us-ascii" else charset)
    except LookupError as error:
        raise FormatError(f"it declares an unknown encoding, {charset!r}") from error
    if kind != "text/html":
        return text
    return read_html(codecs.BOM_UTF8 + text.encode()).text  # whatever encoding the page declares


def _header(mail: Message, name: str) -> str:
    return _decoded(str(mail.get(name, ""))[:_MAX_HEADER])


def _decoded(value: str) -> str:
    """Return a header as people see it: `=?utf-8?q?Gr=C3=BC=C3=9Fe?=` is `Grüße`."""
    with suppress(HeaderParseError, LookupError, ValueError):  # what cannot be decoded stays as it is
        value = str(make_header(decode_header(value)))
    return folded(clean_text(value))
