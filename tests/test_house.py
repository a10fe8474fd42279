"""Imports run one way, and what only one room may know stays in it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEAVES = {"arag.child", "arag.errors", "arag.files"}  # what every room may use
FOLDERS = {
    room: room if (ROOT / room).is_dir() else f"arag/{room}"
    for room in ("models", "retrieval", "ingest", "graph", "page", "evaluation")
}
BELOW = {
    "models": [],
    "retrieval": ["models"],
    "ingest": ["retrieval", "models"],
    "graph": ["retrieval", "models"],
    "page": ["graph", "retrieval", "models"],
    "evaluation": ["page", "graph", "ingest", "retrieval", "models"],
}
ONLY_IN = {
    "sqlite3": "retrieval/store",
    "chromadb_rust_bindings": "retrieval/store",
    "filelock": "retrieval/store",
    "mcp": "arag/mcp.py",
    "psycopg": "retrieval/postgres",
    "psycopg_pool": "retrieval/postgres",
    "arag.retrieval.store": "retrieval/store",
    "arag.retrieval.postgres": "retrieval/postgres",
}
ALSO = {
    "arag.retrieval.store": {"retrieval/locations.py"},
    "arag.retrieval.postgres": {"retrieval/locations.py"},
    "filelock": {
        "arag/evaluation/plan.py",
        "arag/evaluation/runs.py",
        "arag/models/onnx.py",
    },
    "sqlite3": {"arag/evaluation/cache.py"},  # a file of which no index knows
}


def imports(file):
    """The modules that a file imports, and the names that it takes from them, as they are written."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            yield str(node.module)


def is_in(module, package):
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_rooms_below_it(room):
    allowed = {f"arag.{each}" for each in (room, *BELOW[room])} | LEAVES
    if room == "evaluation":
        allowed |= {"arag.terminal", "arag.options"}  # what both command lines share
    place = ROOT / FOLDERS[room]
    files = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    assert files
    for file in files:
        for module in imports(file):
            if is_in(module, "arag"):
                assert any(is_in(module, package) for package in allowed), f"{file} imports {module}"


@pytest.mark.parametrize("known", ONLY_IN)
def test_only_one_room_knows(known):
    for room in ("arag", "graph", "ingest", "retrieval"):
        for file in (ROOT / room).rglob("*.py"):
            place = file.relative_to(ROOT).as_posix()
            if not place.startswith((ONLY_IN[known], *ALSO.get(known, ()))):
                assert not any(is_in(module, known) for module in imports(file)), f"{place} imports {known}"
