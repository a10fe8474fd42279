"""A command in a new process imports nothing large that it does not use."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "sentence_transformers", "spacy", "chromadb", "scipy", "pandas", "openai", "mcp"}
MODELS = {"onnxruntime", "tokenizers", "huggingface_hub", "langchain_openai"}
GRAPH = {"langgraph", "langsmith", "httpx"}
REPORT = """
import atexit, sys
from arag.cli import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["arag", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        (["info"], HEAVY | MODELS | GRAPH),
        (["read", "places/skellavy.md:0"], HEAVY | MODELS | GRAPH),
        (["search", "keyword", "ship"], HEAVY | MODELS | GRAPH),
        (["search", "semantic", "ship"], HEAVY | GRAPH | {"huggingface_hub"}),
        (["ask", "Who founded the glassworks?", "--model", "extractive"], HEAVY | {"huggingface_hub"}),
    ],
)
def test_a_command_imports_only_what_it_uses(example_index, command, unused):
    arguments = [*command, "--index", str(example_index.path)]
    done = subprocess.run([sys.executable, "-c", REPORT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not unused & set(done.stderr.splitlines()[-1].split())
