"""Token counts on a machine without tiktoken's vocabulary."""

import json
import warnings

import pytest

from arag.retrieval.tokens import load_token_counter, warn_of_estimates
from fakes import write_corpus


@pytest.fixture
def as_process(arag):
    """Run a command line as a process of its own does: it loads the vocabulary, and may warn."""

    def run(*arguments):
        load_token_counter.cache_clear()
        warn_of_estimates.cache_clear()
        return arag(*arguments)

    yield run
    with warnings.catch_warnings(action="ignore"):
        warn_of_estimates()  # not in the tests that follow


@pytest.mark.usefixtures("quick_embedder")
def test_counts_are_estimates_and_a_note_says_so_once_for_an_index(as_process, tmp_path):
    docs, index = write_corpus(tmp_path / "docs", {"a.md": "The mill stands."}), tmp_path / "index"
    code, _, err = as_process("ingest", docs, "--index", index)
    assert code == 0
    assert err.count("Note: the vocabulary of o200k_base could not be loaded") == 1
    assert "; token counts are estimates. Set TIKTOKEN_CACHE_DIR to a folder that holds it" in err
    assert json.loads(as_process("info", "--index", index, "--json")[1])["tokenizer"] == "estimate"
    assert "vocabulary" not in as_process("ingest", docs, "--index", index)[2]
    code, _, err = as_process("ask", "What stands?", "--index", index, "--model", "extractive")
    assert code == 0
    assert "vocabulary" not in err
