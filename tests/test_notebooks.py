"""The notebooks run from top to bottom, offline, and are stored with what they print."""

import asyncio
import re
import runpy
from pathlib import Path

import nbformat
import pytest

_script = runpy.run_path(str(Path(__file__).resolve().parent.parent / "notebooks" / "execute.py"))
execute, text_of, without_seconds = _script["execute"], _script["text_of"], _script["without_seconds"]
NOTEBOOKS = _script["NOTEBOOKS"]
_QUICK = 1  # notebooks that are run each time; the others take most of a minute together
MARKED = [*NOTEBOOKS[:_QUICK], *(pytest.param(path, marks=pytest.mark.slow) for path in NOTEBOOKS[_QUICK:])]

_PATH = re.compile(r"(?:^|[\s'\"(=:])(?:/[\w.-]+){2,}|[A-Z]:\\|\bfile://")
_VOLATILE = re.compile(r"\b0x[0-9a-f]{6,}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_MOST_BYTES = 500_000


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def said(output):
    """The words of an output, without numbers: how tokens are counted decides what is shown in brief."""
    words = re.findall(r"[^\W\d]+", without_seconds(text_of(output)))
    return output.output_type, output.get("name"), sorted(output.get("data", ())), sorted(words)


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom_offline_and_is_stored_with_what_it_prints(path):
    stored = code_cells(nbformat.read(path, as_version=4))
    assert [cell.execution_count for cell in stored] == list(range(1, len(stored) + 1))
    for old, new in zip(stored, code_cells(asyncio.run(execute(path))), strict=True):
        assert [*map(said, old.outputs)] == [*map(said, new.outputs)], f"cell {old.id}: run `make notebooks`"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_plain_and_says_nothing_of_the_machine_or_the_hour(path):
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert path.stat().st_size < _MOST_BYTES
    assert set(stored.metadata) == {"kernelspec"}
    assert all(not cell.metadata for cell in stored.cells)
    for output in (output for cell in code_cells(stored) for output in cell.outputs):
        text = text_of(output)
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        assert not _PATH.search(text), text
        assert not _VOLATILE.search(text), text
