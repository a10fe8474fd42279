"""Which files of a folder are left out: parts of web pages, and what .aragignore and --ignore name."""

from __future__ import annotations

import pytest

from arag import open_index, run_ingest
from arag.errors import InputError, ModelError
from arag.models.embedders import Embedder
from fakes import HashEmbeddings, write_corpus

PAGE = "<html><body><h1>Mills</h1><p>The mill stands at the river.</p></body></html>"
PARTS = {
    "css/site.css": "body { color: red }",
    "_static/doctools.js": "var mills = 1;",
    "_sources/index.rst.txt": "The mill stands at the river.",
    "searchindex.js": "Search.setIndex({})",
    "Makefile": "all: mills",
}


@pytest.fixture
def ingested(tmp_path):
    """A function that ingests files, and returns the ids of the documents and why others were skipped."""

    def run(files, **options):
        docs = tmp_path / "docs"
        for name, text in files.items():
            (docs / name).parent.mkdir(parents=True, exist_ok=True)
            (docs / name).write_text(text, encoding="utf-8")
        summary = run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings(), **options)
        with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
            ids = sorted(document.id for document in index.documents())
        return ids, {skipped.source.removeprefix(f"{docs}/"): skipped.reason for skipped in summary.skipped}

    return run


def fail_in_the_middle(docs, index, **files):
    """Ingest files until the embedder fails; those before it are stored, and not published."""
    write_corpus(docs, files)
    embedder = Embedder("HashEmbeddings:hash-64", lambda: HashEmbeddings(fail_after=30), batch=5)
    with pytest.raises(ModelError, match="went away"):
        run_ingest(docs, index, embedder=embedder)


def test_what_an_interrupted_run_has_stored_is_dropped_if_it_is_ignored_now(tmp_path):
    docs, index = tmp_path / "docs", tmp_path / "index"
    texts = {
        f"{folder}/d{n:02}.md": f"The mill of {folder} {n} stands." for folder in ("drafts", "kept") for n in range(20)
    }
    fail_in_the_middle(docs, index, **texts)
    (docs / ".aragignore").write_text("drafts/\n")
    run_ingest(docs, index, embedder=HashEmbeddings())
    with open_index(index, embedder=HashEmbeddings()) as opened:
        assert [document.id for document in opened.documents()] == [f"kept/d{n:02}.md" for n in range(20)]
        assert opened.keyword_search(["drafts"]).total == 0


def test_what_was_published_is_kept_until_it_is_pruned_also_after_an_interrupted_run(tmp_path):
    docs, index = tmp_path / "docs", tmp_path / "index"
    run_ingest(write_corpus(docs, {"drafts/d00.md": "The mill stands."}), index, embedder=HashEmbeddings())
    fail_in_the_middle(docs, index, **{f"drafts/d{n:02}.md": f"The new mill {n} stands." for n in range(40)})
    (docs / ".aragignore").write_text("drafts/\n")
    (docs / "kept.md").write_text("The quay.")
    summary = run_ingest(docs, index, embedder=HashEmbeddings())
    assert (summary.documents, summary.removed_ids) == (2, ())
    assert run_ingest(docs, index, embedder=HashEmbeddings(), prune=True).removed_ids == ("drafts/d00.md",)


def test_parts_of_web_pages_are_no_documents(ingested):
    ids, skipped = ingested({"index.html": PAGE, "tools/run.js": "var wheels = 2;", **PARTS})
    assert ids == ["index.html", "tools/run.js"]
    assert sorted(skipped) == ["Makefile", "_sources", "_static", "css/site.css", "searchindex.js"]
    assert {reason[:22] for reason in skipped.values()} == {"a part of web pages or"}


@pytest.mark.parametrize("name", ["~$lease.docx", "~$fish.xlsx", "old/~$talk.pptx", ".~lock.lease.odt#", ".lamp.txt"])
def test_marks_of_open_files_are_passed_over_like_hidden_ones(ingested, name):
    assert ingested({"index.html": PAGE, name: "Odvar"}) == (["index.html"], {})


def test_what_is_left_out_by_default_can_be_read(ingested, tmp_path):
    ids, _ = ingested({"index.html": PAGE, **PARTS}, ignore=["!*.css", "!Makefile"])
    assert ids == ["Makefile", "css/site.css", "index.html"]
    summary = run_ingest(tmp_path / "docs" / "searchindex.js", tmp_path / "other", embedder=HashEmbeddings())
    assert summary.read == 1  # a file that is named is read


def test_patterns_are_those_of_gitignore_and_the_last_one_decides(ingested):
    files = {
        ".aragignore": "# drafts\n*.txt\n/old/\n!kept.txt\n",
        "a.txt": "A.",
        "kept.txt": "Kept.",
        "old/b.md": "B.",
        "new/old/c.md": "C.",
        "new/.aragignore": "/d.md\n!e.txt\n",
        "new/d.md": "D.",
        "new/e.txt": "E.",
        "new/more/d.md": "More.",
        "new/more/f.txt": "F.",
    }
    ids, skipped = ingested(files, ignore=["more/f.*", "!f.txt", "kept.txt"])
    assert ids == ["new/e.txt", "new/more/d.md", "new/more/f.txt", "new/old/c.md"]
    assert skipped == {
        "a.txt": "ignored by .aragignore",
        "kept.txt": "ignored by --ignore",
        "old": "ignored by .aragignore",
        "new/d.md": "ignored by new/.aragignore",
    }


def test_a_bad_pattern_and_an_unreadable_file_of_patterns_are_named(tmp_path):
    docs = write_corpus(tmp_path / "docs", {"a.md": "A.", "b/c.md": "C."})
    with pytest.raises(InputError, match="--ignore: "):
        run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings(), ignore=["!"])
    (docs / "b" / ".aragignore").write_bytes(b"\xff\xfe\xff")
    summary = run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings())
    assert [problem.source for problem in summary.problems] == [str(docs / "b")]


def test_a_folder_of_ignored_files_says_so(tmp_path):
    docs = write_corpus(tmp_path / "docs", {"a.md": "A."})
    with pytest.raises(InputError, match=r"no files that can be read; left out: ignored by --ignore \(1\)$"):
        run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings(), ignore=["*.md"])


def test_pruning_removes_what_a_new_rule_leaves_out(ingested, tmp_path):
    files = {"index.html": PAGE, "drafts/a.md": "A.", "drafts/b.md": "B."}
    assert ingested(files)[0] == ["drafts/a.md", "drafts/b.md", "index.html"]
    assert ingested(files, ignore=["drafts/"])[0] == ["drafts/a.md", "drafts/b.md", "index.html"]
    run_ingest(tmp_path / "docs" / "drafts" / "b.md", tmp_path / "index", embedder=HashEmbeddings())
    assert ingested(files, ignore=["drafts/"], prune=True)[0] == ["index.html"]
