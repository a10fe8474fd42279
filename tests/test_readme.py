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
        program = Path(sys.executable).parent / command[0]
        done = subprocess.run([program, *command[1:]], cwd=workplace, capture_output=True, text=True, check=False)
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
    shown = re.search(r"^The harbour light on Skellavy .*$", README, flags=re.MULTILINE)
    assert shown is not None
    from arag import create_arag_agent, ingest

    with ingest(ROOT / "examples" / "corpus", workplace / "demo") as index:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        question = re.search(r"^QUESTION := (.*)$", makefile, flags=re.MULTILINE).group(1)
        state = create_arag_agent("extractive", index).invoke({"messages": [("user", question)]})
    assert shown.group(0) in state["answer"]
