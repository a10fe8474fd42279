"""Text of emails (eml)."""

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
_VERSIONS = ("text/plain", "text/html")  # of a text, the best first
_SHOWN = ("From", "To", "Cc", "Date")


def read_mail(data: bytes) -> Content:
    """Read an email: its sender and recipients, its text, and the emails and texts that are attached to it.

    Its title is the subject. Of a text that is there twice, the plain one is read, else the HTML. Other attachments are
    named in the text, and left out; pictures inside the text are ignored. A text whose encoding is not declared is
    UTF-8 or Windows-1252.

    Raises:
        FormatError: The file is not an email, or is encrypted.
    """
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # the email package ends lines at all of them
    if _LONG_HEADER.search(data):
        raise FormatError(f"a header of more than {_MAX_HEADER:,} characters")
    try:
        mail = email.message_from_bytes(data, policy=email.policy.compat32)
        if not any(mail.get(name) for name in ("From", "To", "Subject", "Date", "Received")):
            raise FormatError("not an email: it has no sender, recipient, subject or date")
        reading = _Reading()
        reading.add_mail(mail)
    except RecursionError as error:
        raise FormatError("emails that are nested too deeply") from error
    metadata: dict[str, JSON] = {name.lower(): _header(mail, name) for name in ("From", "Date") if mail.get(name)}
    return Content(_header(mail, "Subject"), "\n\n".join(reading.texts), metadata, left_out=tuple(reading.left_out))


class _Reading:
    """Collects the texts of an email, and what is left out of it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.left_out: list[tuple[str, str]] = []
        self._parts = 0

    def add_mail(self, mail: Message) -> None:
        subject = _header(mail, "Subject")
        head = [f"{name}: {_header(mail, name)}" for name in _SHOWN if mail.get(name)]
        self.texts += filter(None, [subject and f"# {subject}", "\n".join(head)])
        self._add_part(mail)

    def _add_part(self, part: Message, *, without_text: bool = False) -> None:
        """Add a part; `without_text` if it is another version of a text that was added, so that its attachments are."""
        kind = part.get_content_type()
        if kind == "message/rfc822":
            for mail in _parts(part):
                self.add_mail(mail)
        elif kind == "multipart/alternative":
            before = len(self.texts)
            for each in sorted(_parts(part), key=_rank):
                self._add_part(each, without_text=without_text or len(self.texts) > before)
        elif part.is_multipart():
            for each in _parts(part):
                self._add_part(each, without_text=without_text)
        else:
            self._add_leaf(part, kind, without_text=without_text)

    def _add_leaf(self, part: Message, kind: str, *, without_text: bool) -> None:
        self._parts += 1
        name = _decoded(part.get_filename() or "")
        is_attached = bool(name) or part.get_content_disposition() == "attachment"
        if without_text and not is_attached:
            return
        try:
            if kind in {"text/plain", "text/html", "text/markdown", "text/csv"}:
                text = _text(part, kind)
                self.texts += filter(None, [f"Attachment: {name}" if name else "", text.strip()])
                return
            reason = f"{kind} is not read"
        except FormatError as error:
            reason = str(error)
            if not is_attached:
                self.left_out.append((f"item {self._parts}", f"its text is left out: {reason}"))
                return
        if kind.startswith("image/") and part.get_content_disposition() != "attachment":
            return
        shown = name or f"part {self._parts}"
        self.texts.append(f"Attachment: {shown}")
        self.left_out.append((f"item {self._parts}", f"the attachment {shown} is left out: {reason}"))


def _rank(part: Message) -> int:
    """Return the place of a version of a text among the others."""
    kind = part.get_content_type()
    return _VERSIONS.index(kind) if kind in _VERSIONS else len(_VERSIONS)


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
    except FormatError:
        if charset != "us-ascii":
            raise
        if kind == "text/html":
            with suppress(FormatError):
                return read_html(data).text  # the page may declare its encoding
        text = clean_text(data.decode("windows-1252", "replace"))
    except (LookupError, ValueError) as error:  # Python has encodings that cannot decode, such as "undefined"
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
