"""Token counts on a machine without tiktoken's vocabulary."""

import json
import warnings

import pytest

from arag.text.tokens import load_encoding, warn_of_estimates
from fakes import write_corpus


@pytest.mark.usefixtures("quick_embedder")
def test_counts_are_estimates_and_a_note_says_so_once_for_an_index(arag, tmp_path):
    def run(*arguments):
        """Run a command line as a process of its own does: it loads the vocabulary, and may warn."""
        load_encoding.cache_clear()
        warn_of_estimates.cache_clear()
        return arag(*arguments)

    docs, index = write_corpus(tmp_path / "docs", {"a.md": "The mill stands."}), tmp_path / "index"
    try:
        code, _, err = run("ingest", docs, "--index", index)
        assert (code, err.count("Note: the vocabulary of o200k_base could not be loaded")) == (0, 1)
        assert "; token counts are estimates. Set TIKTOKEN_CACHE_DIR to a folder that holds it" in err
        assert json.loads(run("info", "--index", index, "--json")[1])["tokenizer"] == "estimate"
        for again in (("ingest", docs), ("ask", "What stands?", "--model", "extractive")):
            code, _, err = run(*again, "--index", index)
            assert (code, "vocabulary" in err) == (0, False)
    finally:
        with warnings.catch_warnings(action="ignore"):
            warn_of_estimates()  # not in the tests that follow
