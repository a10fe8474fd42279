"""A page that shows a run: the answer with its sources, every step, and the chunks that were read."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from langgraph.types import GraphOutput

from arag.errors import InputError
from arag.models.prices import cite_prices
from arag.pages.markdown import render_answer
from arag.pages.run import show_run
from arag.pages.templates import render

_OF_A_RUN = ("messages", "trace", "stop_reason")
# Nothing in the page runs, but it shows texts from documents and models: the frame may only open links, in new tabs.
_FRAME = (
    '<iframe title="Agent run" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="{}" style="display:block;'
    "width:100%;height:40rem;max-height:85vh;border:1px solid rgba(128,128,128,.35);border-radius:8px;"
    'resize:vertical"></iframe>'
)


class TracePage(str):
    """An HTML page; a notebook shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        # A notebook stores it next to the page.
        return "<HTML page of a run>"

    def _repr_html_(self) -> str:
        # Without a base, links within the page would point into the notebook's own page.
        page = self.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
        return _FRAME.format(escape(page))


def trace_page(state: Mapping[str, Any] | GraphOutput[Any], *, error: str = "", model: str = "") -> TracePage:
    """Return a page that shows a run.

    The page is one piece of HTML that loads nothing and runs no scripts. A notebook displays it.

    Args:
        state: What `agent.invoke` returned, in either version, or the same as JSON; for a failed run, what there is.
        error: Why the run failed.
        model: The model's name, for a run that failed.

    Returns:
        The page, a string: `Path("run.html").write_text(trace_page(state), encoding="utf-8")`.

    Raises:
        InputError: The state has no conversation.

    Example:
        >>> state = agent.invoke({"messages": [("user", "Who founded the Emberlane Glassworks?")]})
        >>> "Mattick Grevane" in trace_page(state)
        True
    """
    run = show_run(state.value if isinstance(state, GraphOutput) else state)
    return TracePage(
        render(
            "run.html",
            **run,
            error=error,
            models=run["totals"]["models"] or [model] * bool(model),
            asked=model,
            render_answer=render_answer,
            price_source=cite_prices(),
        )
    )


def load_ipython_extension(ipython: Any) -> None:
    """Show the final states of runs as pages, and other dicts as before; `%load_ext arag` calls this.

    Args:
        ipython: The shell.
    """
    formatter = ipython.display_formatter.formatters["text/html"]
    before = formatter.type_printers.get(dict)

    def show(value: dict[Any, Any]) -> str | None:
        if all(key in value for key in _OF_A_RUN) and isinstance(value["trace"], list):
            try:
                return trace_page(value)._repr_html_()
            except (InputError, AttributeError, KeyError, TypeError, ValueError):  # another dict with these keys
                pass
        return before(value) if before else None

    show.before = before  # type: ignore[attr-defined]
    formatter.for_type(dict, show)


def unload_ipython_extension(ipython: Any) -> None:
    """Show them like any other dict again; `%unload_ext arag` calls this.

    Args:
        ipython: The shell.
    """
    formatter = ipython.display_formatter.formatters["text/html"]
    shown = formatter.type_printers.get(dict)
    if hasattr(shown, "before"):
        formatter.type_printers.pop(dict)
        if shown.before is not None:
            formatter.for_type(dict, shown.before)
