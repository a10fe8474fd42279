"""The notebooks run from top to bottom, offline, and are stored with what they print."""

import asyncio
import re
import runpy
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
_script = runpy.run_path(str(FOLDER / "execute.py"))
execute_all, text_of, without_seconds = _script["execute_all"], _script["text_of"], _script["without_seconds"]
NOTEBOOKS = _script["NOTEBOOKS"]

_PATH = re.compile(r"(?:^|[\s'\"(=:])(?:/[\w.-]+){2,}|[A-Z]:\\|\bfile://")
_VOLATILE = re.compile(r"\b0x[0-9a-f]{6,}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_MOST_BYTES = 500_000


def name_of(path):
    return path.stem


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def said(cell):
    """The words of what a cell has put out, without numbers: how tokens are counted decides what is shown in brief."""
    return [
        (
            output.output_type,
            output.get("name"),
            sorted(output.get("data", ())),
            sorted(re.findall(r"[^\W\d]+", without_seconds(text_of(output)))),
        )
        for output in cell.outputs
    ]


@pytest.fixture(params=NOTEBOOKS, ids=name_of)
def path(request):
    return request.param


@pytest.fixture
def stored(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="module")
def fresh():
    return dict(zip(NOTEBOOKS, asyncio.run(execute_all(NOTEBOOKS)), strict=True))


def test_it_runs_from_top_to_bottom_offline(path, stored, fresh):
    if isinstance(fresh[path], BaseException):
        raise fresh[path]
    old, new = [{cell.id: said(cell) for cell in code_cells(notebook)} for notebook in (stored, fresh[path])]
    for key, parts in old.items():
        assert parts == new[key], f"cell {key}: `make notebooks` stores what it prints now"


def test_it_is_stored_with_its_outputs(stored):
    cells = code_cells(stored)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert all(output.output_type != "error" and output.get("name") != "stderr" for output in cell.outputs), cell.id


def test_its_outputs_say_nothing_of_the_machine_or_the_hour(stored):
    for cell in code_cells(stored):
        for output in cell.outputs:
            text = text_of(output)
            assert not _PATH.search(text), (cell.id, _PATH.search(text))
            assert not _VOLATILE.search(text), (cell.id, _VOLATILE.search(text))


def test_it_is_small_and_plain(path, stored):
    assert path.stat().st_size < _MOST_BYTES
    nbformat.validate(stored)
    assert set(stored.metadata) == {"kernelspec"}
    assert all(not cell.metadata for cell in stored.cells)
