"""The templates of pages: one environment with the formats that all pages share."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from arag.models.prices import format_dollars
from arag.models.replies import mend_characters


def render(template: str, *, package: str = "arag.pages", **values: Any) -> str:
    """Render a page; values are escaped and lone surrogates replaced.

    Args:
        template: The template's file.
        package: The package of the template, which may extend and include the templates of `arag.pages`.
        **values: What the template shows.
    """
    return mend_characters(_environment(package).get_template(template).render(values).lstrip())


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, "arag.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": _duration, "dollars": format_dollars, "count": count, "short": _short}
    environment.filters |= {"json": partial(json.dumps, ensure_ascii=False, default=str)}
    return environment


def count(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural if needed."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _duration(seconds: float) -> str:
    if seconds < 0.01:
        return "<\u202f0.01 s"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"


def _short(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
