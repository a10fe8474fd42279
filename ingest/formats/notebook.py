"""Text of Jupyter notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, decode
from arag.ingest.formats.text import first_heading

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of terminals


def read_notebook(path: Path) -> Content:
    """Read a notebook: its texts, its code and what the code printed, without pictures.

    Its title is the first heading of level 1.
    """
    try:
        notebook = json.loads(decode(path.read_bytes()))
        language = notebook["metadata"].get("language_info", {}).get("name", "")
        blocks = [block for cell in notebook["cells"] for block in _blocks(cell, language)]
        headings = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError("not a notebook of format 4: open it in Jupyter and save it again") from error
    return Content(first_heading("\n\n".join(headings)), "\n\n".join(filter(None, blocks)))


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = "".join(cell["source"]).strip()  # a string or a list of lines
    if cell["cell_type"] != "code":
        yield source
        return
    yield _fenced(source, language)
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            text = f"{output['ename']}: {output['evalue']}"
        else:
            text = "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
        yield _fenced(_COLOURS.sub("", text).strip())


def _fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text}\n```" if text else ""
