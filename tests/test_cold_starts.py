"""A command in a new process imports nothing large that it does not use."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "sentence_transformers", "spacy", "chromadb", "scipy", "pandas", "openai", "mcp"}
MODELS = {"onnxruntime", "tokenizers", "huggingface_hub", "langchain_openai"}
GRAPH = {"langgraph", "langsmith", "httpx"}
REPORT = """
import json, sys
from arag.cli import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["arag", *command]
    try:
        main()
    except SystemExit as end:
        assert not end.code
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("commands", "unused"),
    [
        ([["info"], ["read", "places/skellavy.md:0"], ["search", "keyword", "ship"]], HEAVY | MODELS | GRAPH),
        ([["search", "semantic", "ship"]], HEAVY | GRAPH | {"huggingface_hub", "langchain_core"}),
        ([["ask", "Who founded the glassworks?", "--model", "extractive"]], HEAVY | {"huggingface_hub"}),
    ],
)
def test_a_command_imports_only_what_it_uses(example_index, commands, unused):
    arguments = json.dumps([[*command, "--index", str(example_index.path)] for command in commands])
    done = subprocess.run([sys.executable, "-c", REPORT, arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not unused & set(done.stderr.splitlines()[-1].split())
