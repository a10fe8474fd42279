"""Emails (eml)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path

from arag.ingest.formats.content import Content, FormatError, folded
from arag.ingest.formats.html import html_content

_SHOWN = ("From", "To", "Cc", "Date")
_READ = ("text/plain", "text/html", "text/markdown", "text/csv")  # of versions of one text, the first is the best


def read_mail(path: Path) -> Content:
    """Read an email: its subject, sender, recipients and text, and the emails and texts that are attached to it.

    Of a text that is there twice, the plain one is read, else the HTML. Other attachments are named.

    Raises:
        FormatError: The file is not an email.
    """
    data = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # any of them ends a line of a header
    mail = message_from_bytes(data)
    if not any(mail.get(name) for name in ("From", "To", "Subject", "Date", "Received")):
        raise FormatError("not an email: it has no sender, recipient, subject or date")
    left_out: list[str] = []
    text = "\n\n".join(filter(None, _mail_texts(mail, left_out)))
    fields = {name.lower(): _header(mail, name) for name in ("From", "Date") if mail.get(name)}
    return Content(_header(mail, "Subject"), text, metadata=fields, left_out=tuple(left_out))


def _mail_texts(mail: Message, left_out: list[str]) -> Iterator[str]:
    if subject := _header(mail, "Subject"):
        yield f"# {subject}"
    yield "\n".join(f"{name}: {_header(mail, name)}" for name in _SHOWN if mail.get(name))
    yield from _texts(mail, left_out)


def _texts(part: Message, left_out: list[str]) -> Iterator[str]:
    """Yield the texts of a part; what is not read is added to `left_out`."""
    kind, name = part.get_content_type(), _decoded(part.get_filename() or "")
    parts = [each for each in part.get_payload() if isinstance(each, Message)] if part.is_multipart() else []
    if kind == "message/rfc822":
        for mail in parts:
            yield from _mail_texts(mail, left_out)
    elif kind == "multipart/alternative":
        versions = sorted(parts, key=lambda each: (*_READ, each.get_content_type()).index(each.get_content_type()))
        texts = [list(_texts(version, left_out)) for version in versions]
        yield from next(filter(any, texts), [])
    elif parts:
        for each in parts:
            yield from _texts(each, left_out)
    elif kind in _READ:
        yield from (f"Attachment: {name}" if name else "", _text(part).strip())
    elif not kind.startswith("image/") or part.get_content_disposition() == "attachment":
        left_out.append(f"attachment {name}: {kind} is not read" if name else f"a part: {kind} is not read")
        yield f"Attachment: {name}" if name else ""


def _text(part: Message) -> str:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)  # noqa: S101 - as of each part without parts
    try:
        text = data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, ValueError):  # an encoding that is unknown, or not the one declared
        text = data.decode("cp1252", "replace")
    return html_content(text).text if part.get_content_type() == "text/html" else text


def _header(mail: Message, name: str) -> str:
    return _decoded(str(mail.get(name, "")))


def _decoded(value: str) -> str:
    """Return a header as people see it: `=?utf-8?q?Gr=C3=BC=C3=9Fe?=` is `Grüße`."""
    with suppress(HeaderParseError, LookupError, ValueError):  # what cannot be decoded stays as it is
        value = str(make_header(decode_header(value)))
    return folded(value)
