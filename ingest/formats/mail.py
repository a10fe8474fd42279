"""Emails (eml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from pathlib import Path

from arag.ingest.formats.content import JSON, Content, FormatError
from arag.ingest.formats.html import decode_html, html_content
from arag.text.normalise import collapse_whitespace

_SHOWN = ("From", "To", "Cc", "Date")
_READ = ("text/plain", "text/html", "text/markdown", "text/csv")  # of versions of one text, the first is the best
# The start of an older mail below the answer: a rule and fields, or who wrote what is marked with `>` to the end.
_OLDER = re.compile(
    r"^[-_]{3}.*\n+(?=\S+: .*\n\S+: )"
    r"|^((?:(?<=\n\n)\S.*\n)?[^\s>].*)[:：]\s*\n(?=(?:>.*(?:\n+|\Z))+\Z)",
    re.MULTILINE,
)


def read_mail(path: Path) -> Content:
    """Read an email: its subject, sender, recipients and text, and the emails and texts that are attached to it.

    Of a text that is there twice, the plain one is read, else the HTML. Other attachments are named.
    """
    mail = message_from_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    if not any(mail.get(name) for name in (*_SHOWN, "Subject", "Received")):
        raise FormatError("not an email: it has no sender, recipient, subject or date")
    left_out: list[str] = []
    text = "\n\n".join(filter(None, _mail_texts(mail, left_out)))
    return Content(_decoded(mail.get("Subject", "")), text, metadata=_metadata(mail), left_out=tuple(left_out))


def _metadata(mail: Message) -> dict[str, JSON]:
    """Return the addresses of sender and recipients, and the date as the sender's calendar has it."""
    fields: dict[str, JSON] = {}
    for name in ("From", "To", "Cc"):
        addresses = [address for _, address in getaddresses(map(str, mail.get_all(name, []))) if address]
        fields |= {name.lower(): [*addresses]} if addresses else {}
    with suppress(TypeError, ValueError):  # no date, or none that can be understood
        fields["date"] = parsedate_to_datetime(str(mail["Date"])).date().isoformat()
    return fields


def _mail_texts(mail: Message, left_out: list[str]) -> Iterator[str]:
    subject = _decoded(mail.get("Subject", ""))
    yield subject and f"# {subject}"
    yield "\n".join(f"{name}: {_decoded(mail[name])}" for name in _SHOWN if mail.get(name))
    yield from _texts(mail, left_out)


def _texts(part: Message, left_out: list[str]) -> Iterator[str]:
    """Yield the texts of a part; other parts are added to `left_out`."""
    kind, name = part.get_content_type(), _decoded(part.get_filename() or "")
    parts = [each for each in part.get_payload() if isinstance(each, Message)] if part.is_multipart() else []
    if kind == "multipart/alternative":
        parts.sort(key=lambda each: (*_READ, each.get_content_type()).index(each.get_content_type()))
        yield from next(filter(any, (list(_texts(each, left_out)) for each in parts)), [])
    elif parts:
        for each in parts:
            yield from (_mail_texts if kind == "message/rfc822" else _texts)(each, left_out)
    elif kind in _READ:
        yield from (name and f"Attachment: {name}", _mark_older(_text(part).strip()))
    elif not kind.startswith("image/") or part.get_content_disposition() == "attachment":
        left_out.append(f"attachment {name}: {kind} is not read" if name else f"a part: {kind} is not read")
        yield name and f"Attachment: {name}"


def _text(part: Message) -> str:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)  # noqa: S101 - as of each part without parts
    charset, is_html = part.get_content_charset(), part.get_content_type() == "text/html"
    try:
        text = data.decode(charset or "utf-8") if charset or not is_html else decode_html(data)
    except (LookupError, ValueError):  # an encoding that is unknown, or not the one declared
        text = data.decode("cp1252", "replace")
    return html_content(text).text if is_html else text


def _mark_older(text: str) -> str:
    """Begin older mails below an answer with a heading, that their words do not pass for the sender's."""
    return _OLDER.sub(lambda start: f"## {collapse_whitespace(start[1])}\n\n" if start[1] else f"{start[0]}## ", text)


def _decoded(header: object) -> str:
    """Return a header as people see it: `=?utf-8?q?Gr=C3=BC=C3=9Fe?=` is `Grüße`."""
    with suppress(HeaderParseError, LookupError, ValueError):  # what cannot be decoded stays as it is
        header = make_header(decode_header(str(header)))
    return collapse_whitespace(str(header))
