"""Jupyter notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, decode, join_blocks
from arag.ingest.formats.html import html_content
from arag.ingest.formats.plain_titles import first_heading
from arag.ingest.formats.text import COLOURS
from arag.text.normalise import count

_TABLE = "<table"


def read_notebook(path: Path) -> Content:
    """Read a Jupyter notebook: its texts, its code and the output of the code, without pictures.

    Its title is the first heading of level 1.
    """
    try:
        notebook = json.loads(decode(path.read_bytes()))
        language_info = notebook["metadata"].get("language_info", {})
        language = language_info.get("name", "")
        blocks: list[str] = []
        markdown: list[str] = []
        pictures = 0
        for cell in notebook["cells"]:
            blocks += _cell_blocks(cell, language)
            pictures += sum(map(_is_picture, cell.get("outputs", ())))
            if cell["cell_type"] == "markdown":
                markdown.append("".join(cell["source"]))
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError("not a notebook of format 4: open it in Jupyter and save it again") from error
    left_out: list[str] = []
    if pictures:
        left_out.append(count(pictures, "picture"))
    return Content(
        title=first_heading("\n\n".join(markdown)),
        text=join_blocks(blocks),
        left_out=tuple(left_out),
    )


def _is_picture(output: dict[str, Any]) -> bool:
    kinds = " ".join(output.get("data", {}))
    return "image/" in kinds


def _cell_blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    """Yield a cell's source and its outputs; some may be empty."""
    source = "".join(cell["source"]).strip()  # a string or a list of lines
    if cell["cell_type"] != "code":
        yield source
        return
    yield _fenced(source, language)
    for output in cell["outputs"]:
        page = "".join(output.get("data", {}).get("text/html", ""))
        if _TABLE in page.lower():  # its rows have the names of their columns, unlike those of the plain text
            yield html_content(page).text
        else:
            text = COLOURS.sub("", _output_text(output))
            yield _fenced(text.strip())


def _output_text(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    printed = "".join(output.get("text", ""))
    if printed:
        lines: list[str] = []
        for line in printed.split("\n"):
            states = line.rstrip("\r").split("\r")  # of a progress bar
            lines.append(states[-1])
        return "\n".join(lines)
    return "".join(output.get("data", {}).get("text/plain", ""))  # its result


def _fenced(text: str, language: str = "") -> str:
    if not text:
        return ""
    return f"```{language}\n{text}\n```"
