"""Emails of Outlook (msg), from the tree that xberg makes of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from email.utils import getaddresses, parsedate_to_datetime
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
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_COMMENT = re.compile(r"<!--|-->|/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"@(?:import|charset|namespace)[^;]*;|[^{};]+\{(?:[^{}]|\{[^{}]*\})*\}")
_DECLARATION = re.compile(r"\{[^{}]*[\w-]+\s*:[^{}]+")
_ATTACHMENTS = "Attachments:"
_ATTACHED = re.compile(r"(.*) \((\d+)B\)", re.DOTALL)
_MAIL = re.compile(r"embedded_message_\d+\.msg")  # the name of an attached email, whose size is given as 0
_INLINE_PICTURE = re.compile(r"(?i)image\d+\.(?:png|jpe?g|gif|bmp|emz|wmz)")


def outlook_content(nodes: Sequence[_Node], blocks: Sequence[str], read: Collection[str]) -> Content:
    """Return the content of an email.

    Args:
        nodes: Those of the tree.
        blocks: The text of each.
        read: The names of the attachments whose text is among the nodes.
    """
    fields: dict[str, str] = {}
    texts: list[str] = []
    attached: list[str] = []
    mails = [name for name in read if _MAIL.fullmatch(name)]
    names = {name: name for name in read}
    is_in_list = False
    for node, block in zip(nodes, blocks, strict=True):
        kind = node["node_type"]
        plain = block.strip()
        attachment = _ATTACHED.fullmatch(plain)
        if kind == "metadata_block":
            fields = fields or {entry["key"]: str(entry["value"]) for entry in node["entries"]}
        elif plain == _ATTACHMENTS:
            is_in_list = True
        elif is_in_list and attachment:
            name = attachment[1].strip()
            if attachment[2] == "0" and mails:
                names[mails.pop(0)] = name
            else:
                attached.append(name)
        elif kind == "heading" and node.get("text") in names:
            is_in_list = False
            texts.append(f"Attachment: {names[node['text']]}")
        elif not _is_style_sheet(plain):
            text = join_lines(_EXCHANGE_ADDRESS.sub("", block))
            is_heading = kind in {"heading", "title"}
            texts.append(text if is_heading else mark_older(escape_structure(text)))
    return _to_content(fields, texts, [name for name in attached if name not in read])


def _to_content(fields: Mapping[str, str], texts: Sequence[str], others: Sequence[str]) -> Content:
    subject = collapse_whitespace(fields.get("Subject", ""))
    heading = f"# {subject}" if subject else ""
    shown: list[str] = []
    for name in _SHOWN:
        value = collapse_whitespace(_EXCHANGE_ADDRESS.sub("", fields.get(name, "")))
        if value:
            shown.append(f"{name.capitalize()}: {value}")
    named = [f"Attachment: {name}" for name in others]
    return Content(
        title=subject,
        text=join_blocks([heading, "\n".join(shown), *texts, *named]),
        metadata=_metadata(fields),
        left_out=name_parts("attachment", [name for name in others if not _INLINE_PICTURE.fullmatch(name)]),
    )


def _metadata(fields: Mapping[str, str]) -> dict[str, JSON]:
    """Return the addresses of sender and recipients, and the date, as those of other emails."""
    metadata: dict[str, JSON] = {}
    for name in _ADDRESSES:
        field = _EXCHANGE_ADDRESS.sub("", fields.get(name, ""))
        addresses: list[JSON] = [address for _, address in getaddresses([field]) if "@" in address]
        if addresses:
            metadata[name.lower()] = addresses
    author = collapse_whitespace(re.sub(r"<[^>]*>", "", fields.get("From", ""))).strip('"')
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
    return not _RULE.sub("", _COMMENT.sub("", text)).strip(" \n\t;}")
