"""The quotations of older mails in the page of a mail, as lines that begin with ">" as in plain mails."""

from __future__ import annotations

import re

from lxml import etree

# Mail programs name the quotation, an element around it, or the line above it.
_NAMES = re.compile(
    r"\b(?:gmail|protonmail|tutanota)_quote|yahoo_quoted|moz-cite-prefix|zmail|reply-intro|QuotedText",
    re.IGNORECASE,
)
_NAMED_BY = ("class", "id", "itemtype")
_QUOTES_WITHOUT_BLOCKQUOTE = etree.XPath("//div[contains(@class, 'yahoo_quoted')]")
# Others are known by the line above: it ends with a colon, after an address, a time or a year.
_ATTRIBUTION = re.compile(r"(?:\S@\S|\d:\d\d|\b\d{4}\b).{0,80}[:：]\s*\Z", re.DOTALL)
_MAX_ATTRIBUTION = 300  # characters that are looked at

QUOTE_START = "\x04"  # stands alone on its line; no text of a page has it
QUOTE_END = "\x05"
_DEPTHS = {QUOTE_START: 1, QUOTE_END: -1}  # how much deeper the lines after a mark are


def find_quotes(page: etree._Element) -> set[etree._Element]:
    """Return the elements of a mail's page that hold an older mail."""
    quotes = set(filter(_is_quote, page.iter("blockquote")))
    for element in _QUOTES_WITHOUT_BLOCKQUOTE(page):
        quotes.difference_update(element.iter())  # those in it are older, or the same one
        quotes.add(element)
    return quotes


def _is_quote(block: etree._Element) -> bool:
    kind = block.get("type", "").lower()
    source = block.get("cite", "")
    if kind == "cite" or source.startswith("mid:"):
        return True
    before = block.getprevious()
    around = [block, *block.iterancestors()]
    if before is not None:
        around.append(before)
    if any(map(_has_name, around)):
        return True
    text_before = _text_before(block)[-_MAX_ATTRIBUTION:]
    return _ATTRIBUTION.search(text_before) is not None


def _has_name(element: etree._Element) -> bool:
    """Return whether an element has the name that a mail program gives to quotations."""
    names = filter(None, map(element.get, _NAMED_BY))
    return _NAMES.search(" ".join(names)) is not None


def _text_before(block: etree._Element) -> str:
    """Return the text of the element before a block, with the text between the two."""
    before = block.getprevious()
    while before is not None and _is_bare_line_end(before):
        before = before.getprevious()
    if before is None:
        return block.getparent().text or ""
    tail = before.tail or ""
    return "".join(before.itertext()) + tail


def _is_bare_line_end(element: etree._Element) -> bool:
    text_after = element.tail or ""
    return element.tag == "br" and not text_after.strip()


def quote_lines(text: str) -> str:
    """Return a page's text with ">" before each line of a quotation, instead of the marks around the whole of it."""
    lines: list[str] = []
    depth = 0
    for line in text.split("\n"):
        if line in _DEPTHS:
            depth += _DEPTHS[line]
            continue
        marks = "> " * depth
        lines.append(f"{marks}{line}" if line else "")
    quoted = "\n".join(lines)
    quoted = re.sub("\n{3,}", "\n\n", quoted)
    return quoted.strip("\n")
