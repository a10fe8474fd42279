"""Text of Jupyter notebooks (ipynb)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from arag.ingest.formats.content import Content, FormatError, decode
from arag.ingest.formats.markdown import first_heading

_FENCE = "```"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of terminals


def read_notebook(data: bytes) -> Content:
    """Read a notebook: its texts, its code and what the code printed, without pictures.

    Its title is the first heading of level 1.

    Raises:
        FormatError: The file is not a notebook.
    """
    try:
        notebook = json.loads(decode(data))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not a notebook: {error}") from error
    cells = _cells(notebook)
    if cells is None:
        raise FormatError("not a notebook: it has no list of cells")
    language = _language(notebook)
    texts, headings = [], []
    for cell in cells:
        kind, source = cell.get("cell_type"), _joined(cell.get("source", cell.get("input"))).strip()
        if kind == "markdown":
            texts.append(source)
            headings.append(source)
        elif kind == "heading":  # of notebooks before 2015
            texts.append(f"# {source}")
            headings.append(texts[-1])
        elif kind == "code":
            texts += [_fenced(source, language), *(_fenced(output) for output in _outputs(cell))]
        else:
            texts.append(source)
    return Content(first_heading("\n\n".join(headings)), "\n\n".join(filter(None, texts)))


def _cells(notebook: Any) -> list[dict[str, Any]] | None:
    if not isinstance(notebook, dict):
        return None
    sheets = notebook.get("worksheets")
    if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict):  # before 2015
        notebook = sheets[0]
    cells = notebook.get("cells")
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else None


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else ""


def _outputs(cell: dict[str, Any]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else []:
        if isinstance(output, dict):
            data = output.get("data", output)
            name, value = _joined(output.get("ename")), _joined(output.get("evalue"))
            text = _joined(output.get("text")) or (_joined(data.get("text/plain")) if isinstance(data, dict) else "")
            yield _COLOURS.sub("", text or (f"{name}: {value}" if name else "")).strip()


def _joined(value: Any) -> str:
    """Return a text of a notebook, which is a string or a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _fenced(text: str, language: str = "") -> str:
    return f"{_FENCE}{language}\n{text}\n{_FENCE}" if text else ""
