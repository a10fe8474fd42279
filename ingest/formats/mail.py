"""Emails (eml) and web pages that are stored like one (mht)."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from email import message_from_bytes
from email.errors import HeaderParseError
from email.generator import BytesGenerator
from email.header import Header, decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from io import BytesIO
from operator import itemgetter
from pathlib import Path, PurePath
from quopri import decodestring

import webencodings

from arag.ingest.formats.bars import TEXT_BAR, find_barred_lines, mark_bars, show_bars
from arag.ingest.formats.content import JSON, Content, FormatError, clean_text, join_blocks, name_parts
from arag.ingest.formats.html import html_content
from arag.ingest.formats.html_pages import decode_html
from arag.ingest.formats.invitation import invitation_text
from arag.ingest.formats.lines import join_lines
from arag.ingest.formats.older_mail import has_older, mark_older, older_heading, under_heading
from arag.ingest.formats.tables import csv_lines
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

_ADDRESSES = ("From", "To", "Cc")
_SHOWN = (*_ADDRESSES, "Date")
_HEADERS = (*_SHOWN, "Subject", "Received")  # a mail has at least one of these
_MAILS = ("message/rfc822", "message/global", "message/news")
_NOT_SHOWN = frozenset(
    (
        "text/css",
        "text/javascript",
        "text/x-amp-html",
        "text/watch-html",
        "application/pgp-signature",
        "application/pkcs7-signature",
        "application/x-pkcs7-signature",
    )
)
_NO_PLAIN_TEXT = ("text/rtf", "text/richtext", "text/enriched")
# Attached files that are text, whatever kind they are declared to be.
_TEXT_FILES = frozenset(
    ".txt .md .csv .tsv .log .json .xml .yaml .yml .ini .ics .html .htm .eml .rst .sql".split(),
)
_EXTENSIONS = {"text/calendar": ".ics", "text/html": ".html", "text/markdown": ".md"}
_UNDECLARED = ("", "us-ascii", "ascii")
_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "base64": b64decode,
    "quoted-printable": decodestring,
}
_ATTACHMENT = "Attachment: "
_ESCAPED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)  # a mailbox has it where a line begins like its own ones
_SIGNATURE = "-- "  # the line above it
_WORD = re.compile(r"\w+")
_MUCH_POORER = 0.6  # times the words of a page: with fewer, a plain version lacks much of it
_MIN_MORE = 3  # words
_HINT = 0.2  # share of a page's words that are in a plain version: below, it says something else


def read_mail(path: Path) -> Content:
    """Read an email: its subject, sender, recipients and text, and the emails and texts that are attached to it.

    Of several versions of a text, the plain one is read, unless it says much less than the page. Other attachments are
    named.
    """
    return _content(_parse(path.read_bytes()))


def read_mail_at(path: Path, start: str, end: str) -> Content:
    """Read one of the emails of a mailbox: the bytes between two offsets."""
    with path.open("rb") as file:
        file.seek(int(start))
        data = file.read(int(end) - int(start))
    return _content(_parse(_ESCAPED_FROM.sub(b"", data)))


def _content(mail: Message) -> Content:
    not_read: list[str] = []
    text = join_blocks(_mail_texts(mail, not_read))
    return Content(
        title=_header(mail, "Subject"),
        text=show_bars(text),
        metadata=_metadata(mail),
        left_out=name_parts("attachment", not_read),
        headings_apart=True,
        barred_lines=find_barred_lines(text),
    )


def _parse(data: bytes) -> Message:
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    mail = message_from_bytes(data)
    is_page = mail.get_content_type() == "multipart/related"
    if not is_page and not any(map(mail.get, _HEADERS)):
        raise FormatError("not an email: it has no sender, recipient, subject or date")
    return mail


def _metadata(mail: Message) -> dict[str, JSON]:
    """Return the addresses of sender and recipients, and the date in the sender's time zone."""
    fields: dict[str, JSON] = {}
    for name in _ADDRESSES:
        headers = map(str, mail.get_all(name, []))
        addresses: list[JSON] = [*filter(None, map(itemgetter(1), getaddresses(headers)))]
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
    yield _field_lines(mail, filter(mail.get, _SHOWN))
    is_below_older = False
    for text in _part_texts(mail, not_read):
        if is_below_older and text.startswith(_ATTACHMENT):  # it is not of the older mail
            yield "## Attachments"
            is_below_older = False
        yield text
        is_below_older = is_below_older or has_older(text)


def _field_lines(part: Message, names: Iterable[str]) -> str:
    lines = [f"{name}: {_header(part, name)}" for name in names]
    return "\n".join(lines)


def _older_mail(mail: Message, not_read: list[str]) -> str:
    """Return the text of an attached mail under a heading that says so."""
    heading = older_heading(_header(mail, "From"), _header(mail, "Date"))
    return under_heading(heading, join_blocks(_mail_texts(mail, not_read)))


def _part_texts(part: Message, not_read: list[str]) -> Iterator[str]:
    """Yield the texts of a part; parts that are not read are added to `not_read`."""
    kind = part.get_content_type()
    parts = _parts(part)
    if kind == "multipart/alternative":
        yield from _best_version(parts, not_read)
    elif kind == "message/delivery-status":
        for group in parts:
            yield _field_lines(group, group)
    elif not parts:
        yield from _own_texts(part, not_read)
    elif kind in _MAILS:
        for mail in parts:
            yield _older_mail(mail, not_read)
    else:
        for each in parts:
            yield from _part_texts(each, not_read)


def _own_texts(part: Message, not_read: list[str]) -> Iterator[str]:
    """Yield the name and the text of a part without parts."""
    kind = part.get_content_type()
    if kind in _NOT_SHOWN or _is_picture_in_text(part):
        return
    yield _attachment_line(part)
    if _is_text(part):
        yield _text(part)
    else:
        not_read.append(_file_name(part) or kind)


def _is_text(part: Message) -> bool:
    kind = part.get_content_type()
    if kind.startswith("text/"):
        return kind not in _NO_PLAIN_TEXT
    return kind.startswith("application/") and _extension(part) in _TEXT_FILES


def _extension(part: Message) -> str:
    return PurePath(_file_name(part)).suffix.lower()


def _parts(part: Message) -> list[Message]:
    """Return the parts of a part. A mail that is attached in an encoding for bytes is decoded."""
    if not part.is_multipart():
        return []
    parts: list[Message] = []
    for each in part.get_payload():
        if isinstance(each, Message):
            parts.append(each)
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    decoder = _DECODERS.get(encoding)
    if decoder is None or part.get_content_type() not in _MAILS:
        return parts
    data = BytesIO()
    generator = BytesGenerator(data, mangle_from_=False, maxheaderlen=0)
    generator.flatten(parts[0])
    with suppress(ValueError):  # it is not encoded, whatever it says
        return [_parse(decoder(data.getvalue()))]
    return parts


def _best_version(versions: list[Message], not_read: list[str]) -> list[str]:
    """Return the texts of the version that says most: the plain one, unless it is a hint to the page, or a part of it.

    Files that are attached to another version, and invitations, are read, too.
    """
    best: list[str] = []
    best_words: set[str] = set()
    others: list[str] = []
    for version in sorted(versions, key=_rank_version):
        texts = list(_part_texts(version, not_read))
        if version.get_content_type() == "text/calendar":
            others += texts
            continue
        words = set(_WORD.findall(" ".join(texts).lower()))
        if _says_more(words, best_words):
            best = texts
            best_words = words
        others += _attached_texts(version)
    added = [text for text in others if text not in best]
    return best + added


def _says_more(words: set[str], plain: set[str]) -> bool:
    """Return whether the words of a page say much more than those of the plain version."""
    if not words or not plain:
        return bool(words)
    is_longer = _MUCH_POORER * len(words) > len(plain) + _MIN_MORE
    is_as_long = 2 * len(words) >= len(plain)
    are_others = len(words & plain) < _HINT * len(words)
    return is_longer or (are_others and is_as_long)


def _attached_texts(version: Message) -> Iterator[str]:
    """Yield the texts of the files that are attached within a version."""
    for part in version.walk():
        is_attached = part.get_content_disposition() == "attachment"
        if is_attached and not part.is_multipart() and _is_text(part):
            yield _attachment_line(part)
            yield _text(part)


def _rank_version(version: Message) -> int:
    return 0 if version.get_content_type() == "text/plain" else 1


def _is_picture_in_text(part: Message) -> bool:
    """Return whether a part is a picture in the page of a mail, which names its id, such as a logo."""
    is_attached = part.get_content_disposition() == "attachment"
    is_picture = part.get_content_type().startswith("image/")
    return is_picture and "Content-ID" in part and not is_attached


def _file_name(part: Message) -> str:
    return _decode_words(part.get_filename(""))


def _attachment_line(part: Message) -> str:
    """Return the line that names an attachment; an empty string for a part without a name."""
    name = _file_name(part)
    return f"{_ATTACHMENT}{name}" if name else ""


def _text(part: Message) -> str:
    """Return the text of a part, with headings before older mails."""
    text = clean_text(_decode(part)).replace(TEXT_BAR, " ")
    if str(part.get_param("delsp", "")).lower() == "yes":
        text = _join_flowed(text)
    extension = _EXTENSIONS.get(part.get_content_type()) or _extension(part)
    match extension:
        case ".ics":
            return invitation_text(text) or text
        case ".html" | ".htm":
            page = html_content(text, is_mail=True)
            return mark_older(mark_bars(page.text, page.barred_lines))
        case ".md":
            return text.strip()
        case ".csv" | ".tsv":
            return csv_lines(text, extension)
        case ".eml":
            with suppress(FormatError):
                return _older_mail(_parse(text.encode()), [])
    plain = escape_structure(join_lines(text))
    return mark_older(plain.strip("\n"))


def _join_flowed(text: str) -> str:
    """Join the lines that end with a space, which a mail program added, with the next lines of the same quotation."""
    parts: list[str] = []
    last_marks = ""
    goes_on = False
    for line in text.split("\n"):
        rest = line.lstrip(">")
        marks = line.removesuffix(rest)
        if goes_on and rest and marks == last_marks:
            parts.append(rest.removeprefix(" "))
        else:
            parts.append(f"\n{line}")
        goes_on = line.endswith(" ") and line != _SIGNATURE
        if goes_on:
            parts[-1] = parts[-1][:-1]
        last_marks = marks
    return "".join(parts).removeprefix("\n")


def _decode(part: Message) -> str:
    """Decode a part's text as it declares, else a page as browsers do, else in UTF-8 or Windows-1252."""
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)  # noqa: S101 - a part without parts has bytes
    charset = part.get_content_charset("")
    if not charset and part.get_content_type() == "text/html":
        with suppress(FormatError):
            return decode_html(data)
    return _decode_as(data, charset)


def _decode_as(data: bytes, charset: str) -> str:
    """Decode bytes as they are declared, else in UTF-8 or Windows-1252."""
    declared = _python_name(charset)
    errors = "replace" if declared.startswith("iso2022") else "strict"  # its bytes are UTF-8, too
    for encoding in (declared, "utf-8"):
        with suppress(LookupError, ValueError):  # it is unknown, or not the one of the data
            return data.decode(encoding, errors)
    return data.decode("cp1252", "replace")


def _python_name(charset: str) -> str:
    """Return Python's name of an encoding that a mail declares; UTF-8 if it declares none that says something."""
    if charset in _UNDECLARED:
        return "utf-8"
    known = webencodings.lookup(charset)
    if known is None:
        return charset
    name: str = known.codec_info.name
    return name


def _header(mail: Message, name: str) -> str:
    """Return a header as people see it, or an empty string."""
    return _decode_words(mail.get(name, ""))


def _decode_each(header: str) -> Iterator[tuple[str | bytes, str | None]]:
    """Yield the parts of a header with their encodings, of which mail programs know more than Python."""
    for part, charset in decode_header(header):
        if charset is None:
            yield part, None
        else:
            yield _decode_as(part, charset).encode(), "utf-8"


def _decode_words(header: object) -> str:
    """Decode the words of a header: `=?utf-8?q?Gr=C3=BC=C3=9Fe?=` is `Grüße`. Others are in UTF-8 or Windows-1252."""
    if isinstance(header, Header):  # with bytes that no encoding is declared for
        text = b"".join(data for data, _ in decode_header(header) if isinstance(data, bytes))
    else:
        text = str(header).encode("utf-8", "surrogateescape")
    try:
        plain = text.decode("utf-8")
    except UnicodeDecodeError:
        plain = text.decode("cp1252", "replace")
    with suppress(HeaderParseError, ValueError):  # if it cannot be decoded, it stays as it is
        plain = str(make_header(list(_decode_each(plain))))
    return collapse_whitespace(plain)
