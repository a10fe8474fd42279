"""An index as files of a deep agent. `make test` does not install deepagents; `make test-servers` does."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage

from arag import Context, Scope
from scripted import ScriptedModel, asked, call, results

deepagents = pytest.importorskip("deepagents")

from deepagents.backends import CompositeBackend, StateBackend  # noqa: E402

from arag.graph.files import IndexBackend  # noqa: E402

LAMP = "The lamp was lit at noon. Oil came by boat."
PAGES = [
    {"id": "places/lamp.md", "title": "Lamp", "text": LAMP},
    {"id": "places/mill.md", "title": "Mill", "text": "The mill (1761) grinds oil."},
    {"id": "people/ada.txt", "title": "Ada", "text": "Ada Alder kept the lamp."},
    {"id": "notes", "title": "Notes", "text": "No boat came."},
]


@pytest.fixture
def index(make_index):
    return make_index(PAGES)


def names(found):
    return sorted(each["path"] for each in found)


def test_documents_are_files_in_folders(index):
    files = IndexBackend(index)
    entries = files.ls("/").entries
    assert [(entry["path"], entry["is_dir"]) for entry in entries] == [
        ("/notes", False),
        ("/people", True),
        ("/places", True),
    ]
    assert names(files.ls("/places/").entries) == ["/places/lamp.md", "/places/mill.md"]
    assert files.ls("/nowhere").error == "/nowhere is not a folder"


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.md", None, ["/places/lamp.md", "/places/mill.md"]),
        ("/*", None, ["/notes"]),
        ("places/l*", "/", ["/places/lamp.md"]),
        ("**/*.{md,txt}", None, ["/people/ada.txt", "/places/lamp.md", "/places/mill.md"]),
        ("*", "/people", ["/people/ada.txt"]),
        ("*.pdf", None, []),
    ],
)
def test_patterns_of_paths(index, pattern, path, expected):
    assert names(IndexBackend(index).glob(pattern, path).matches) == expected


def test_a_file_is_read_in_parts_with_the_ids_of_its_chunks(index):
    files = IndexBackend(index)
    whole = files.read("/places/lamp.md")
    assert whole.file_data["content"].splitlines() == [
        "[places/lamp.md:0] Lamp",
        "The lamp was lit at noon.",
        "Oil came by boat.",
    ]
    part = files.read("/places/lamp.md", offset=1, limit=1)
    assert (part.file_data["content"], part.start_line, part.end_line, part.next_offset, part.total_lines) == (
        "The lamp was lit at noon.",
        2,
        2,
        2,
        3,
    )
    assert files.read("/places/lamp.md", offset=-4, limit=0).no_lines_requested
    assert files.read("/places/lamp.md", offset=9).file_data["content"] == ""
    assert files.read("/places/lamp").error.endswith("No such file or directory (like it: places/lamp.md)")


def test_texts_are_found_as_they_are(index):
    files = IndexBackend(index)
    found = files.grep("(1761)").matches
    assert found == [{"path": "/places/mill.md", "line": 2, "text": "[places/mill.md:0] The mill (1761) grinds oil."}]
    assert names(files.grep("boat").matches) == ["/notes", "/places/lamp.md"]
    assert names(files.grep("boat", path="/places").matches) == ["/places/lamp.md"]
    assert names(files.grep("lamp", glob="*.txt").matches) == ["/people/ada.txt"]
    assert files.grep("Boat").matches == []
    first = files.grep("boat", max_count=1)
    assert (len(first.matches), first.truncated) == (1, True)
    assert files.grep("").error.startswith("the pattern is empty")


def test_nothing_is_written(index):
    files = IndexBackend(index)
    refused = [files.write("/new", "x"), files.edit("/notes", "No", "A"), files.delete("/notes")]
    assert [each.error.partition(": ")[2] for each in refused] == [
        "documents can be read and searched here, but not written"
    ] * 3
    assert files.upload_files([("/new", b"x")])[0].error == "permission_denied"


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_deep_agent_reads_what_its_run_may_see_and_writes_files_of_its_own(index, asynchronous):
    backend = CompositeBackend(default=StateBackend(), routes={"/documents/": IndexBackend(index)})
    script = [
        call("ls", path="/documents/"),
        call("grep", pattern="lamp", path="/documents/", output_mode="content"),
        call("read_file", file_path="/documents/people/ada.txt"),
        call("write_file", file_path="/plan.md", content="Look."),
        AIMessage("Ada."),
    ]
    agent = deepagents.create_deep_agent(ScriptedModel(*script), backend=backend, context_schema=Context)
    context = Context(scope=Scope(documents=["places/*"]))
    state = (
        asyncio.run(agent.ainvoke(asked(), context=context)) if asynchronous else agent.invoke(asked(), context=context)
    )
    listed, found, read, written = (result.text for result in results(state))
    assert ("places" in listed, "people" in listed) == (True, False)
    assert ("[places/lamp.md:0] The lamp was lit at noon." in found, "Ada" in found) == (True, False)
    assert "No such file or directory" in read
    assert "/plan.md" in written
