"""The README's commands and snippets do what it says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def run(command, folder):
    program = Path(sys.executable).parent / command[0]
    return subprocess.run([program, *command[1:]], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder


def test_the_shell_commands_run_in_order(workplace):
    commands = [line.partition(" #")[0] for block in blocks("sh") for line in block.splitlines() if line.strip()]
    ours = [shlex.split(command) for command in commands if command.startswith("arag ")]
    assert len(ours) >= 6
    outputs = []
    for command in ours:
        done = run(command, workplace)
        assert done.returncode == 0, (command, done.stderr)
        outputs.append(done.stdout)
    assert "Mattick Grevane" in outputs[1]


def test_the_python_snippets_run_in_order(workplace):
    snippets = blocks("python")
    assert len(snippets) == 7
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(snippets)], cwd=workplace, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for shown in (
        "founded in 1746 by Mattick Grevane",
        "['agent']\n['tools']",
        "keyword_search ['Vellin Light'] ['places/vellin-light.md:0']",
        "3 max_steps",
        "The engineer of the Vellin Light was Corrin Ashe-Woldar",
        "[('ships/grey-petrel-packet-schooner.md:0', 55)",
    ):
        assert shown in done.stdout, shown


def test_the_demo_output_is_what_the_demo_prints(workplace):
    shown = next(block for block in blocks("console") if block.startswith("$ make demo\n"))
    asked, _, rest = shown.partition("\n\n")
    question = re.search(r"^QUESTION := (.*)$", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE).group(1)
    assert " ".join(asked.split()) == f"$ make demo Question: {question}"
    index = workplace / "demo"
    ingested = run(["arag", "ingest", str(ROOT / "examples" / "corpus"), "--index", str(index)], workplace)
    printed = run(["arag", "ask", question, "--index", str(index), "--model", "extractive"], workplace)
    exact = "estimates" not in ingested.stderr
    lines = iter(printed.stdout.splitlines())
    for line in rest.splitlines():
        text = line if exact else re.sub(r"\(\d+ tokens\)", "", line)
        beginning, _, end = text.partition("...")
        if beginning.strip():
            assert any(of.startswith(beginning.rstrip()) and of.endswith(end) for of in lines), line
