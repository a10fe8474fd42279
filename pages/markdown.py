"""Answers as HTML: their Markdown, with links for citations, and nothing that is loaded or runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

from arag.graph.citations import is_web_address
from arag.pages.chunks import Chunk

_BRACKETED = re.compile(r"\[[^\[\]\n]{1,400}\]")
_FIRST_LEVEL, _LAST_LEVEL = 3, 6  # of headings below the page's own


def render_answer(answer: str, sources: Iterable[Chunk], cite: Callable[[Chunk], str]) -> Markup:
    """Render an answer's Markdown.

    HTML in it is shown as text. Only web addresses become links; pictures are replaced by their description.

    Args:
        answer: The answer.
        sources: The chunks that it cites.
        cite: Returns the HTML for a citation.
    """
    cited = {source.id: source for source in sources}
    pattern = "|".join(re.escape(f"[{chunk_id}]") for chunk_id in sorted(cited, key=len, reverse=True))
    env = {"cited": cited, "whole": re.compile(pattern) if cited else None, "cite": cite}
    tokens = _MARKDOWN.parse(answer, env)
    _lower_headings(tokens)
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, env))  # noqa: S704 - made from escaped texts


def _find_citation(state: StateInline, silent: bool) -> bool:
    """Parse brackets that hold citations; other texts beside them stay."""
    if state.src[state.pos] != "[" or not state.env["cited"]:
        return False
    match = state.env["whole"].match(state.src, state.pos) or _BRACKETED.match(state.src, state.pos)
    parts = _split(match[0], state.env["cited"]) if match else []
    if match is None or not any(isinstance(part, Chunk) for part in parts):
        return False
    for part in () if silent else parts:
        if isinstance(part, Chunk):
            state.push("citation", "", 0).meta = {"source": part}
        else:
            state.push("text", "", 0).content = part
    state.pos = match.end()
    return True


def _split(bracketed: str, cited: Mapping[str, Chunk]) -> list[str | Chunk]:
    """Split what is in brackets into citations and other texts; brackets that hold only citations are dropped."""
    inner = bracketed[1:-1]
    if inner in cited:
        return [cited[inner]]
    names = re.split(r"([,;]\s*)", inner)
    if all(name.strip() in cited or not name.strip(" ,;\t") for name in names):
        return [cited[name.strip()] for name in names if name.strip() in cited]
    return ["[", *(cited.get(name.strip(), name) for name in names), "]"]


def _lower_headings(tokens: Sequence[Token]) -> None:
    """Put an answer's headings below those of the page, without gaps between their levels."""
    levels = sorted({token.tag for token in tokens if token.type == "heading_open"})
    last = _FIRST_LEVEL - 1
    for token in tokens:
        if token.type == "heading_open":
            last = min(_FIRST_LEVEL + levels.index(token.tag), last + 1, _LAST_LEVEL)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{last}"


def _render_citation(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, env: Mapping[str, Any]) -> str:
    return str(env["cite"](tokens[at].meta["source"]))


def _render_link(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noopener noreferrer")
    tokens[at].attrSet("target", "_blank")
    return renderer.renderToken(tokens, at, options, env)


def _render_image(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    return str(escape(f"[{tokens[at].content or 'picture'}]"))


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - its name
        return is_web_address(url)


def _make_parser() -> MarkdownIt:
    # Not read: indented code and definitions of links, which answers do not mean, and which would hide citations.
    parser = _Markdown("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.disable(["code", "reference"])
    parser.inline.ruler.before("link", "citation", _find_citation)
    for name, render in (("citation", _render_citation), ("link_open", _render_link), ("image", _render_image)):
        parser.add_render_rule(name, render)
    return parser


_MARKDOWN = _make_parser()
