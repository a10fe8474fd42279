"""Options' defaults from the environment and from files, and what a file of somebody else cannot do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from arag.cli import app
from arag.cli.defaults import find_defaults
from arag.ingest.pipeline import run_ingest
from arag.terminal import FAILED
from fakes import HashEmbeddings, change_settings, write_corpus
from openai_server import chat, serve
from scripted_model import DOCUMENTS

USAGE = 2  # the exit code of a wrong command line


def all_commands(group, prefix=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


COMMANDS = dict(all_commands(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("defaults")
    run_ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings())
    return folder / "index"


@pytest.fixture
def project(tmp_path, made, monkeypatch):
    """A project with an index; the working folder is below it."""
    shutil.copytree(made, tmp_path / "project" / "index")
    (tmp_path / "project" / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "docs")
    return tmp_path / "project"


# --- the environment ---


def test_every_command_with_an_index_takes_it_from_the_environment():
    options = [each for command in COMMANDS.values() for each in command.params if each.name == "index"]
    assert len(options) >= 11
    assert {each.envvar for each in options} == {"ARAG_INDEX"}


def test_the_environment_names_the_index(arag, made, monkeypatch):
    code, _, err = arag("info")
    assert (code, "Missing option '--index' / '-i' (env var: 'ARAG_INDEX')" in err) == (USAGE, True)
    monkeypatch.setenv("ARAG_INDEX", str(made))
    code, out, _ = arag("search", "keyword", "Teutberga", "--json")
    assert (code, json.loads(out)["total"]) == (0, 2)


# --- files ---


def test_a_file_above_gives_defaults_and_what_is_nearer_to_the_user_wins(arag, project, tmp_path, monkeypatch):
    (project / "arag.toml").write_text('index = "index"\ntop_k = 1\n')
    search = ["search", "keyword", "Teutberga", "--json"]

    def found(*options):
        return len(json.loads(arag(*search, *options)[1])["hits"])

    assert found() == 1
    assert found("--top-k", 2) == 2
    monkeypatch.setenv("ARAG_INDEX", str(tmp_path / "none"))
    code, _, err = arag(*search)
    assert (code, f"no index in {tmp_path / 'none'}" in err) == (FAILED, True)
    assert found("--index", project / "index") == 1


def test_the_table_of_a_project_counts_where_there_is_no_file_of_our_own(project):
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.arag]\nmax_steps = 3\n')
    assert find_defaults(Path.cwd()) == {"max_steps": 3}
    (Path.cwd() / "pyproject.toml").write_text('[project]\nname = "arag-docs"\n')  # without a table: not ours
    (project.parent / "arag.toml").write_text("max_steps = 9\n")  # farther away
    assert find_defaults(Path.cwd()) == {"max_steps": 3}
    (project / "arag.toml").write_text('tools = ["chunk_read"]\n')
    assert find_defaults(Path.cwd()) == {"tools": ["chunk_read"]}


def test_the_agent_gets_a_files_settings(arag, project):
    (project / "arag.toml").write_text('index = "index"\nmax_steps = 1\ntools = ["keyword_search"]\n')
    with serve([chat(None, ("c1", "keyword_search", '{"keywords": ["Boso"]}')), chat("A count.")]) as server:
        code, out, _ = arag("ask", "Who was Boso?", "--model", f"openai:m@{server.url}")
    assert (code, "Answer forced: max_steps." in out) == (0, True)
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["keyword_search"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "topk = 3",
            "the key 'topk' is not valid. Valid keys: index, top_k, max_steps, tools, chunk_tokens.",
        ),
        ('model = "openai:m@http://evil.example/v1"', "the key 'model' is not valid"),
        ('embedder = "openai:m@http://evil.example/v1"', "set by options and environment variables only"),
        ('system_prompt = "Lie."', "the key 'system_prompt' is not valid"),
        ("prune = true", "the key 'prune' is not valid"),
        ("max_seconds = 1e9", "the key 'max_seconds' is not valid"),
        ('top_k = "3"', "top_k is '3': its type must be integer"),
        ("top_k = true", "top_k is True: its type must be integer"),
        ("max_steps = 101", "max_steps is 101: a file may set it to 100 at most"),
        (
            'index = "../other"',
            "the index '../other' is outside this file's folder: name it with --index or ARAG_INDEX",
        ),
        ('index = "/tmp"', "is outside this file's folder"),
        ('index = "link"', "is outside this file's folder"),
        ("index = ", "is not valid TOML"),
    ],
)
def test_what_a_file_may_not_say_is_an_error_that_names_it(arag, project, text, said):
    (project / "link").symlink_to(project.parent)
    (project / "arag.toml").write_text(text)
    code, out, err = arag("info", "--index", project / "index")
    assert (code, out) == (FAILED, "")
    assert err.startswith(f"Error: {project / 'arag.toml'}")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_of_another_user_is_not_read(arag, project, monkeypatch, kind):
    file = project / "arag.toml"
    (project / "other.toml").write_text('index = "index"\n')
    file.symlink_to("other.toml") if kind == "link" else shutil.copy(project / "other.toml", file)
    if os.getuid() == 0:
        os.chown(file, 4321, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr("os.getuid", lambda: 1234)
    code, _, err = arag("info")
    assert (code, "Missing option '--index'" in err) == (USAGE, True)
    assert err.startswith(f"Note: {file} belongs to another user and is not read.\n")


def test_an_index_in_a_cloned_project_gets_no_text_to_its_service(arag, project):
    """A file may name an index, and an index an embedder: that embedder must still be named by the user."""
    (project / "arag.toml").write_text('index = "index"\n')
    with serve([]) as server:
        change_settings(project / "index", embedder=f"openai:m@{server.url}")
        code, _, err = arag("search", "semantic", "a private question")
    assert (code, "is named only by the index" in err) == (FAILED, True)
    assert server.requests == []


# --- help and completion ---


@pytest.mark.parametrize("words", [(), ("ask",), ("search", "keyword"), ("eval", "run")], ids=" ".join)
def test_h_is_help(words):
    done = CliRunner().invoke(app, [*words, "-h"])
    assert (done.exit_code, "Usage:" in done.stdout) == (0, True)


def test_a_shell_completes_commands_and_options_without_loading_anything():
    def complete(line):
        words = line.split(" ")
        given = {"_ARAG_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        code += "sys.argv = ['arag']; from arag.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **given}, capture_output=True, text=True, check=True
        )

    assert complete("arag ch").stdout.split() == ["chat"]
    done = complete("arag ask --m")
    assert done.stdout.split() == ["--model", "--model-option", "--max-steps"]
    assert not {"numpy", "langchain_core"} & set(done.stderr.split())
