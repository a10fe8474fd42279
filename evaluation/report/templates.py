"""What the pages of experiments share: templates, plots, and rows of plots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a plot: what it is of, the drawing, and what stands behind it; rows without a name go on with one."""

    name: str
    drawing: Markup
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot under a title: its caption, itself, and what goes across."""

    title: str
    caption: str
    plot: Markup
    across: str


@cache
def templates() -> Environment:
    """Return the templates of this package; what stands in them is escaped."""
    of_a_run = PrefixLoader({"trace": PackageLoader("arag.pages", "")})
    return Environment(
        loader=ChoiceLoader([PackageLoader("arag.evaluation.report", ""), of_a_run]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
