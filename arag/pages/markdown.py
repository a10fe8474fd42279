"""Answers as HTML: their Markdown, with numbered links for citations, and nothing that is loaded or runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from arag.graph.citations import is_web_address

_FIRST_LEVEL, _LAST_LEVEL = 3, 6  # of headings below the page's own
_LINK = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?https?:[^)]*\)|<https?:[^>\s]*>"  # in which no citation becomes a link
_PLACE = re.compile("\ue000(\\d+)\ue001")  # where a citation stands while the Markdown is rendered


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - its name
        return is_web_address(url)


# Indented code and definitions of links, which answers do not mean, would hide citations.
_MARKDOWN = _Markdown("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.disable(["code", "reference"])


def render_answer(answer: str, numbers: Mapping[str, int], links: Mapping[int, Markup]) -> Markup:
    """Render an answer's Markdown.

    HTML in it is shown as text. Only web addresses become links; pictures are replaced by their description.

    Args:
        answer: The answer.
        numbers: The numbers of its sources, by chunk id.
        links: The HTML of a citation, by its number.
    """
    ids = "|".join(re.escape(chunk_id) for chunk_id in sorted(numbers, key=len, reverse=True))
    answer = re.sub("[\ue000\ue001]", "", answer)
    if ids:
        pattern = rf"{_LINK}|[`*]*(?<![\w/.-])({ids})(?!\d|:\d)[`*]*"
        answer = re.sub(pattern, lambda m: f"\ue000{numbers[m[1]]}\ue001" if m[1] else m[0], answer)
        # Brackets that hold nothing but citations are dropped.
        marks = r"((?:\s*[,;、]?\s*\ue000\d+\ue001)+)\s*"
        answer = re.sub(
            rf"\[{marks}\]|【{marks}】|\({marks}\)", lambda m: re.sub(r"[\s,;、]", "", m[1] or m[2] or m[3]), answer
        )
    tokens = _MARKDOWN.parse(answer)
    _adapt(tokens)
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return Markup(_PLACE.sub(lambda match: links[int(match[1])], html))  # noqa: S704 - made from escaped texts


def _adapt(tokens: list[Token]) -> None:
    """Put headings below those of the page, open links in new tabs, and replace pictures."""
    levels = sorted({token.tag for token in tokens if token.type == "heading_open"})
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(_FIRST_LEVEL + levels.index(token.tag), _LAST_LEVEL)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs |= {"rel": "noopener noreferrer", "target": "_blank"}
            elif child.type == "image":
                child.type, child.content, child.children = "text", f"[{child.content or 'picture'}]", None
