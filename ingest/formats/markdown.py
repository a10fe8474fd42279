"""Text, title and front matter of Markdown files."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import yaml
from markdown_it import MarkdownIt

from arag.ingest.documents import JSON
from arag.ingest.formats.content import Content, clean_json, decode

MAX_FRONT_MATTER = 50_000  # characters
MAX_TITLE_OFFSET = 50_000  # characters that are searched for a title: parsing takes 1 s for 1 MB

_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(?=[^\n]*\S)(.*?)^(?:---|\.\.\.)[^\S\n]*$", re.DOTALL | re.MULTILINE)
_BLOCK_PARSER = MarkdownIt("commonmark").disable(["inline", "text_join"])


def read_markdown(data: bytes) -> Content:
    """Read Markdown; its title is that of the front matter, or else the first heading of level 1.

    The text excludes the front matter, whose other fields become the metadata.

    Raises:
        FormatError: The file is in another encoding.
    """
    fields, text = _split_front_matter(decode(data))
    title = fields.get("title")
    if isinstance(title, str | int | float) and str(title).strip():
        del fields["title"]
    else:
        title = first_heading(text[:MAX_TITLE_OFFSET])
    return Content(str(title), text, metadata=fields)


def _split_front_matter(text: str) -> tuple[dict[str, JSON], str]:
    """Split a text into the fields of its front matter and the rest.

    Only a YAML mapping between the first line and the next marker is front matter, and not one in braces: if a text
    begins with a thematic break, all of it is text.
    """
    found = _FRONT_MATTER.match(text, 0, MAX_FRONT_MATTER)
    if found is None:
        return {}, text
    try:
        node = yaml.compose(found[1].removesuffix("\n"), _FrontMatterLoader)
        is_block = isinstance(node, yaml.MappingNode) and not node.flow_style
        fields = clean_json(_value(node)) if is_block else None
    except (yaml.YAMLError, RecursionError):
        return {}, text
    return (fields, text[found.end() :].lstrip("\n")) if isinstance(fields, dict) else ({}, text)


class _FrontMatterLoader(yaml.SafeLoader):
    """Refuses aliases, with which a short text can stand for a huge value."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _value(node: yaml.Node | None) -> JSON:
    """Return the value of a YAML node: numbers, true, false and null as JSON has them, all else as it is written.

    PyYAML's own values are those of YAML 1.1, where `no` is false, 12:30 is 750 and a date is not JSON.
    """
    if isinstance(node, yaml.MappingNode):
        fields: dict[str, JSON] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in fields:
                raise yaml.YAMLError("a key that is not a string, or a duplicate key")
            fields[key.value] = _value(value)
        return fields
    if isinstance(node, yaml.SequenceNode):
        return [_value(item) for item in node.value]
    return _scalar(node) if isinstance(node, yaml.ScalarNode) else None


def _scalar(node: yaml.ScalarNode) -> JSON:
    text: str = node.value
    if node.style is not None:  # quoted, or a block
        return text
    if text in {"", "~"}:
        return None
    try:
        value: JSON = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value


def first_heading(text: str) -> str:
    """Return the first heading of level 1 that has text and is not in a list or quotation."""
    for token, content in pairwise(_BLOCK_PARSER.parse(text)):
        if token.type == "heading_open" and token.tag == "h1" and token.level == 0 and content.content.strip():
            return content.content
    return ""
