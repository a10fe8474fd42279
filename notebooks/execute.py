"""Run notebooks from top to bottom, each in a fresh kernel without a network, and store what they print.

`make notebooks` runs this; the tests run the same and store nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

_AT_ONCE = 2
_SECONDS_PER_CELL = 300
_TRANSPORT = "tcp" if os.name == "nt" else "ipc"
_NOWHERE = "http://127.0.0.1:9"
_SECONDS = re.compile(r"(?:(?:&(?:amp;)?lt;|<)\s*)?\b\d+(?:\.\d+)?\s*s\b")


class _ThisPython(KernelSpecManager):
    """Knows one kernel: the interpreter that runs this, whatever is installed on the machine."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name=kernel_name, language="python")


async def execute(path: Path) -> nbformat.NotebookNode:
    """Run a notebook and return it with its new outputs.

    It runs in a temporary folder that has the examples beside it, as the repository has, and in which it may write.

    Raises:
        CellExecutionError: A cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        home = Path(folder)
        shutil.copytree(FOLDER.parent / "examples", home / "examples")
        (home / "notebooks").mkdir()
        kernel = AsyncKernelManager(
            kernel_spec_manager=_ThisPython(), transport=_TRANSPORT, connection_file=str(home / "kernel.json")
        )
        client = NotebookClient(
            notebook,
            km=kernel,
            timeout=_SECONDS_PER_CELL,
            startup_timeout=_SECONDS_PER_CELL,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(home / "notebooks")}},
        )
        try:
            await client.async_execute(env=_environment(home))
        finally:
            await kernel.shutdown_kernel(now=True)
    notebook.metadata.pop("language_info", None)
    return notebook


async def execute_all(paths: Sequence[Path]) -> list[nbformat.NotebookNode | BaseException]:
    """Run notebooks, some at a time, and return each with its new outputs, or the error that it ended in."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def run(path: Path) -> nbformat.NotebookNode:
        async with free:
            return await execute(path)

    return await asyncio.gather(*map(run, paths), return_exceptions=True)


def text_of(output: dict[str, Any]) -> str:
    """Return all text in an output; pictures are left out."""
    data = sorted(output.get("data", {}).items())
    texts = [output.get("text", ""), *(value for kind, value in data if not kind.startswith("image/"))]
    return "\n".join(str(text) for text in texts)


def without_seconds(text: str) -> str:
    """Return a text without what it says of how long something took."""
    return _SECONDS.sub("", text)


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of a machine without keys, settings and network."""
    private = re.compile(r"ARAG_|JUPYTER|IPYTHON|LANGCHAIN_|LANGSMITH_|MPL|.*API_KEY|.*_proxy$", re.IGNORECASE)
    kept = {name: value for name, value in os.environ.items() if not private.match(name)}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _NOWHERE)
    return kept | proxies | {"IPYTHONDIR": str(home / "ipython"), "HF_HUB_OFFLINE": "1"}


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Tell whether two outputs differ in nothing but how long something took."""
    texts = [json.dumps(output, sort_keys=True, ensure_ascii=False) for output in (old, new)]
    return without_seconds(texts[0]) == without_seconds(texts[1])


def _store(path: Path, notebook: nbformat.NotebookNode) -> None:
    warnings = [o["text"] for cell in notebook.cells for o in cell.get("outputs", []) if o.get("name") == "stderr"]
    if warnings:
        raise SystemExit(f"{path.name} is not stored, as it shows a warning of this machine's: {warnings[0].strip()}")
    old = {cell.id: cell.get("outputs", []) for cell in nbformat.read(path, as_version=4).cells}
    for cell in notebook.cells:
        before = old[cell.id]
        if before and len(before) == len(cell.outputs) and all(map(_same, before, cell.outputs)):
            cell.outputs = before
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    print(path.name, f"{path.stat().st_size / 1000:.0f} kB")


def _main(names: Sequence[str]) -> None:
    paths = [Path(name) for name in names] or NOTEBOOKS
    for path, result in zip(paths, asyncio.run(execute_all(paths)), strict=True):
        if isinstance(result, BaseException):
            raise SystemExit(f"{path.name}: {result}")
        _store(path, result)


if __name__ == "__main__":
    _main(sys.argv[1:])
