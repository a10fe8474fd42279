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

from arag.ingest.formats.content import JSON, Content, FormatError, join_blocks, name_parts
from arag.ingest.formats.html import decode_html, html_content
from arag.text.normalise import collapse_whitespace

_SHOWN = ("From", "To", "Cc", "Date")
_ADDRESSES = ("From", "To", "Cc")
_READ = ("text/plain", "text/html", "text/markdown", "text/csv")  # the best version of a text first
# An older mail below an answer begins with a rule and fields, or with its writer and lines that are quoted to the end.
_OLDER = re.compile(
    r"^[-_]{3}.*\n+(?=\S+: .*\n\S+: )"
    r"|^((?:(?<=\n\n)\S.*\n)?[^\s>].*)[:：]\s*\n(?=(?:>.*(?:\n+|\Z))+\Z)",
    re.MULTILINE,
)


def read_mail(path: Path) -> Content:
    """Read an email: its subject, sender, recipients and text, and the emails and texts that are attached to it.

    If a text has several versions, the plain one is read, else the HTML. Other attachments are named.
    """
    mail = _open(path)
    not_read: list[str] = []
    text = join_blocks(_mail_texts(mail, not_read))
    return Content(
        title=_header(mail, "Subject"),
        text=text,
        metadata=_metadata(mail),
        left_out=name_parts("attachment", not_read),
    )


def _open(path: Path) -> Message:
    data = path.read_bytes()
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    mail = message_from_bytes(data)
    if not any(mail.get(name) for name in (*_SHOWN, "Subject", "Received")):
        raise FormatError("not an email: it has no sender, recipient, subject or date")
    return mail


def _metadata(mail: Message) -> dict[str, JSON]:
    """Return the addresses of sender and recipients, and the date in the sender's time zone."""
    fields: dict[str, JSON] = {}
    for name in _ADDRESSES:
        headers = map(str, mail.get_all(name, []))
        addresses: list[JSON] = [address for _, address in getaddresses(headers) if address]
        if addresses:
            fields[name.lower()] = addresses
    with suppress(TypeError, ValueError):  # no date, or none that can be understood
        fields["date"] = parsedate_to_datetime(str(mail["Date"])).date().isoformat()
    return fields


def _mail_texts(mail: Message, not_read: list[str]) -> Iterator[str]:
    """Yield the subject, the headers and the texts of an email; some may be empty."""
    subject = _header(mail, "Subject")
    if subject:
        yield f"# {subject}"
    yield "\n".join(f"{name}: {_header(mail, name)}" for name in _SHOWN if mail.get(name))
    yield from _part_texts(mail, not_read)


def _part_texts(part: Message, not_read: list[str]) -> Iterator[str]:
    """Yield the texts of a part; parts that are not read are added to `not_read`."""
    kind = part.get_content_type()
    parts = _parts(part)
    if kind == "multipart/alternative":
        yield from _best_version(parts, not_read)
    elif kind == "message/rfc822" and parts:
        for mail in parts:
            yield from _mail_texts(mail, not_read)
    elif parts:
        for each in parts:
            yield from _part_texts(each, not_read)
    elif kind in _READ:
        yield _attachment_line(part)
        yield _mark_older(_text(part).strip())
    elif not _is_picture_in_text(part):
        not_read.append(_file_name(part) or part.get_content_type())
        yield _attachment_line(part)


def _parts(part: Message) -> list[Message]:
    if not part.is_multipart():
        return []
    return [each for each in part.get_payload() if isinstance(each, Message)]


def _best_version(versions: list[Message], not_read: list[str]) -> list[str]:
    """Return the texts of the best version that is not empty."""
    for version in sorted(versions, key=_rank_version):
        texts = list(_part_texts(version, not_read))
        if any(texts):
            return texts
    return []


def _rank_version(version: Message) -> int:
    kind = version.get_content_type()
    return _READ.index(kind) if kind in _READ else len(_READ)


def _is_picture_in_text(part: Message) -> bool:
    """Return whether a part is a picture that belongs to the text, such as a logo below the signature."""
    is_attached = part.get_content_disposition() == "attachment"
    return part.get_content_type().startswith("image/") and not is_attached


def _file_name(part: Message) -> str:
    return _decode_words(part.get_filename(""))


def _attachment_line(part: Message) -> str:
    """Return the line that names an attachment; an empty string for a part without a name."""
    name = _file_name(part)
    return f"Attachment: {name}" if name else ""


def _text(part: Message) -> str:
    text = _decode(part)
    if part.get_content_type() == "text/html":
        return html_content(text).text
    return text


def _decode(part: Message) -> str:
    """Decode a part's text as it declares, else a page as browsers do, else in UTF-8 or Windows-1252."""
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)  # noqa: S101 - a part without parts has bytes
    charset = part.get_content_charset()
    try:
        if charset:
            return data.decode(charset)
        if part.get_content_type() == "text/html":
            return decode_html(data)
        return data.decode("utf-8")
    except (LookupError, ValueError):  # an encoding that is unknown, or not the one declared
        return data.decode("cp1252", "replace")


def _mark_older(text: str) -> str:
    """Put a heading before older mails below an answer, so that their words are not mistaken for the sender's."""
    return _OLDER.sub(_older_heading, text)


def _older_heading(start: re.Match[str]) -> str:
    writer = start[1]
    if writer:
        return f"## {collapse_whitespace(writer)}\n\n"
    return f"{start[0]}## "  # the first of its fields is the heading


def _header(mail: Message, name: str) -> str:
    """Return a header as people see it, or an empty string."""
    return _decode_words(mail.get(name, ""))


def _decode_words(header: object) -> str:
    """Decode the words of a header: `=?utf-8?q?Gr=C3=BC=C3=9Fe?=` is `Grüße`."""
    with suppress(HeaderParseError, LookupError, ValueError):  # if it cannot be decoded, it stays as it is
        header = make_header(decode_header(str(header)))
    return collapse_whitespace(str(header))
