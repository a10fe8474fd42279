"""Emails of Outlook (msg), from the tree that xberg makes of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import getaddresses, parsedate_to_datetime
from itertools import filterfalse
from typing import Any, TypeAlias

from arag.ingest.formats.content import JSON, Content, join_blocks, name_parts
from arag.ingest.formats.lines import join_lines
from arag.ingest.formats.older_mail import mark_older
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

_Node: TypeAlias = "Mapping[str, Any]"

_SHOWN = ("From", "To", "CC", "BCC", "Date")
_ADDRESSES = ("From", "To", "CC")
_EXCHANGE_ADDRESS = re.compile(r" ?</O=[^>]*>", re.IGNORECASE)  # of the server's own, which no person sees
_ADDRESS = re.compile(r"<[^>]*>")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_HEADINGS = ("heading", "title")
# The comments, the rules and the declarations of a style sheet.
_COMMENT = re.compile(r"<!--|-->|/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"@(?:import|charset|namespace)[^;]*;|[^{};]+\{(?:[^{}]|\{[^{}]*\})*\}")
_DECLARATION = re.compile(r"\{[^{}]*[\w-]+\s*:[^{}]+")
_ATTACHMENTS = "Attachments:"
_ATTACHED = re.compile(r"(.*) \((\d+)B\)", re.DOTALL)
_EMAIL = re.compile(r"embedded_message_\d+\.msg")  # the name of an attached email, whose size is given as 0
_INLINE_PICTURE = re.compile(r"(?i)image\d+\.(?:png|jpe?g|gif|bmp|emz|wmz)")


@dataclass
class _Mail:
    """What the nodes of an email say.

    Attributes:
        fields: Its headers.
        texts: Its texts, and those of its attachments, each after a line with the attachment's name.
        attached: The names of its attachments, without attached emails that are read.
        names: The name to show for each attachment whose text is read.
        unnamed: Attached emails that are read, and whose name is not yet known.
        is_in_list: Whether the nodes now name the attachments.
    """

    names: dict[str, str]
    unnamed: list[str]
    fields: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    attached: list[str] = field(default_factory=list)
    is_in_list: bool = False

    def add(self, node: _Node, block: str) -> None:
        kind = node["node_type"]
        plain = block.strip()
        attachment = _ATTACHED.fullmatch(plain)
        if kind == "metadata_block":
            self._add_fields(node)
        elif plain == _ATTACHMENTS:
            self.is_in_list = True
        elif self.is_in_list and attachment:
            self._add_attachment(attachment[1].strip(), attachment[2])
        elif kind == "heading" and node["text"] in self.names:
            self.is_in_list = False
            self.texts.append(f"Attachment: {self.names[node['text']]}")
        elif not _is_style_sheet(plain):
            self.texts.append(_shown_text(kind, block))

    def _add_fields(self, node: _Node) -> None:
        if self.fields:  # those of an attached email follow
            return
        for entry in node["entries"]:
            self.fields[entry["key"]] = str(entry["value"])

    def _add_attachment(self, name: str, size: str) -> None:
        if size == "0" and self.unnamed:
            email = self.unnamed.pop(0)
            self.names[email] = name
        else:
            self.attached.append(name)


def outlook_content(nodes: Sequence[_Node], blocks: Sequence[str], read: Collection[str]) -> Content:
    """Return the content of an email.

    Args:
        nodes: Those of the tree.
        blocks: The text of each.
        read: The names of the attachments whose text is among the nodes.
    """
    mail = _Mail(
        names={name: name for name in read},
        unnamed=list(filter(_EMAIL.fullmatch, read)),
    )
    for node, block in zip(nodes, blocks, strict=True):
        mail.add(node, block)
    not_read = filterfalse(read.__contains__, mail.attached)
    return _to_content(mail, list(not_read))


def _shown_text(kind: str, block: str) -> str:
    text = join_lines(_without_exchange(block))
    if kind in _HEADINGS:
        return text
    return mark_older(escape_structure(text))


def _without_exchange(text: str) -> str:
    return _EXCHANGE_ADDRESS.sub("", text)


def _to_content(mail: _Mail, not_read: Sequence[str]) -> Content:
    subject = collapse_whitespace(mail.fields.get("Subject", ""))
    heading = f"# {subject}" if subject else ""
    shown: list[str] = []
    for name in _SHOWN:
        value = collapse_whitespace(_without_exchange(mail.fields.get(name, "")))
        if value:
            shown.append(f"{name.capitalize()}: {value}")
    named = map("Attachment: {}".format, not_read)
    left_out = list(filterfalse(_INLINE_PICTURE.fullmatch, not_read))
    return Content(
        title=subject,
        text=join_blocks([heading, "\n".join(shown), *mail.texts, *named]),
        metadata=_metadata(mail.fields),
        left_out=name_parts("attachment", left_out),
    )


def _metadata(fields: Mapping[str, str]) -> dict[str, JSON]:
    """Return the addresses of sender and recipients, and the date, as those of other emails."""
    metadata: dict[str, JSON] = {}
    for name in _ADDRESSES:
        header = _without_exchange(fields.get(name, ""))
        addresses: list[JSON] = []
        for _, address in getaddresses([header]):
            if "@" in address:
                addresses.append(address)
        if addresses:
            metadata[name.lower()] = addresses
    sender = _ADDRESS.sub("", fields.get("From", ""))
    author = collapse_whitespace(sender).strip('"')
    if author:
        metadata["author"] = author
    date = fields.get("Date", "")
    if _DATE.match(date):
        metadata["date"] = date[: len("2024-12-31")]
    else:
        with suppress(TypeError, ValueError):
            metadata["date"] = parsedate_to_datetime(date).date().isoformat()
    return metadata


def _is_style_sheet(text: str) -> bool:
    """Return whether a text is nothing but the rules of a style sheet, as in the head of a page."""
    if "{" not in text or not _DECLARATION.search(text):
        return False
    rest = _RULE.sub("", _COMMENT.sub("", text))
    return not rest.strip(" \n\t;}")
