"""What a file has and its text lacks is said, stored with the document, and no failure."""

from __future__ import annotations

import json
import re
import sqlite3
from email.message import EmailMessage

import pytest
from docx import Document as WordDocument
from PIL import Image

from arag import copy_index, ingest, make_tools, open_index, run_ingest
from arag.errors import IndexFormatError
from arag.ingest.formats.content import Content
from arag.ingest.maintenance import verify
from arag.retrieval.storage.folder.sqlite import INDEX_FILE
from fakes import HashEmbeddings
from selection import EVERYWHERE

in_every_place = pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)


def mail(*attachments):
    message = EmailMessage()
    message["From"] = "ada@example.com"
    message["Subject"] = "The plan of the quay"
    message.set_content("The quay is 40 yards long.")
    for name in attachments:
        message.add_attachment(b"\0", maintype="application", subtype="octet-stream", filename=name)
    return bytes(message)


def read_plan(path):
    """Read a format of a user's own: a line for the text, then a line for each part that is not read."""
    text, *left_out = path.read_text().split("\n")
    return Content("", text, left_out=tuple(left_out))


@pytest.fixture
def run(tmp_path, backend, places):
    """Ingest the folder `docs` and return the summary."""
    place = places(backend, tmp_path / "index")

    def run(**options):
        options.setdefault("embedder", HashEmbeddings())
        return run_ingest(tmp_path / "docs", place, readers={".plan": read_plan}, **options)

    run.place = place
    return run


@pytest.fixture
def docs(tmp_path):
    """A mail with two attachments, a plan with charts and a comment, and a text that is read in full."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "quay.eml").write_bytes(mail("plan.dwg", "photo.raw"))
    (folder / "mole.plan").write_text("The mole has two lamps.\n2 charts\n1\tcomment")
    (folder / "whole.txt").write_text("The harbour is deep.")
    return folder


LEFT_OUT = {"mole.plan": ("2 charts", "1 comment"), "quay.eml": ("2 attachments (plan.dwg, photo.raw)",)}


@in_every_place
def test_parts_that_are_not_read_are_a_note_that_stays_with_the_document(docs, run):
    summary = run()
    assert summary.problems == ()
    assert {note.source: note.left_out for note in summary.notes} == {
        str(docs / name): parts for name, parts in LEFT_OUT.items()
    }
    with open_index(run.place, embedder=HashEmbeddings()) as index:
        assert {document.id: document.left_out for document in index.documents()} == LEFT_OUT | {"whole.txt": ()}
        listed = index.list_documents()
        assert {document.id: document.left_out for document in listed.documents if document.left_out} == LEFT_OUT
        assert {field.name for field in listed.fields} == {"from"}
        assert index.incomplete() == LEFT_OUT
        assert index.info().incomplete == 2
        assert index.limited_to(["mole.plan", "whole.txt"]).info().incomplete == 1
        assert index.document("mole.plan").metadata == {}
    again = run()
    assert (again.written, again.embedded, again.notes) == (0, 0, summary.notes)
    assert verify(run.place) == ([], [])


@in_every_place
def test_a_note_changes_with_the_file_and_nothing_is_embedded_again(docs, run):
    run()
    (docs / "mole.plan").write_text("The mole has two lamps.\n3 charts")
    (docs / "quay.eml").write_bytes(mail())
    summary = run()
    assert [note.left_out for note in summary.notes] == [("3 charts",)]
    assert (summary.written, summary.embedded) == (2, 0)
    with open_index(run.place, embedder=HashEmbeddings()) as index:
        assert index.incomplete() == {"mole.plan": ("3 charts",)}


@in_every_place
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_copy_has_the_notes(docs, run, kind, places, tmp_path):
    run()
    target = places(kind, tmp_path / "copy")
    copy_index(run.place, target)
    with open_index(target, embedder=HashEmbeddings()) as index:
        assert index.incomplete() == LEFT_OUT


@in_every_place
def test_records_may_have_any_field_and_lack_nothing(run, backend, tmp_path):
    names = ["\0reading", "reading", "left_out", "\\u0000reading", '"\\u0000reading"']
    record = {"id": "a", "text": "The mill stands.", **dict.fromkeys(names, "2 charts")}
    with ingest(record, run.place, embedder=HashEmbeddings()) as index:
        document = index.document("a")
        assert (document.left_out, index.incomplete()) == ((), {})
        assert document.metadata.keys() == {name.replace("\0", "") for name in names}


def test_an_index_from_before_opens_and_gets_its_notes_with_the_next_ingestion(docs, run):
    """Its documents have no such field, and the fingerprints that they had then."""
    (docs / "mole.plan").write_text("The mole has two lamps.")
    (docs / "quay.eml").write_bytes(mail())
    first = run()
    with sqlite3.connect(run.place / INDEX_FILE) as connection:
        stored = dict(connection.execute("SELECT id, metadata FROM documents").fetchall())
    assert stored["mole.plan"] == "{}"
    assert first.notes == ()
    (docs / "mole.plan").write_text("The mole has two lamps.\n2 charts")
    assert (run().written, run().written) == (1, 0)


@pytest.mark.parametrize("value", ["7", '"2 charts"', '{"left_out": 7}', '{"ocr_pages": [0]}', '{"left_out": [[]]}'])
def test_a_note_that_is_not_understood_is_damage(docs, run, value):
    run()
    with sqlite3.connect(run.place / INDEX_FILE) as connection:
        stored = f'{{"\\u0000reading": {value}}}'
        connection.execute("UPDATE documents SET metadata = ? WHERE id = 'mole.plan'", (stored,))
    with (
        open_index(run.place, embedder=HashEmbeddings()) as index,
        pytest.raises(IndexFormatError, match="mole"),
    ):
        index.document("mole.plan")
    assert [str(damage) for damage in verify(run.place)[0]]


def test_the_command_line_names_them_and_exits_with_0(docs, tmp_path, arag, quick_embedder):
    for number in range(25):
        (docs / f"m{number:02}.eml").write_bytes(mail("plan.dwg"))
    index = tmp_path / "index"
    code, out, err = arag("ingest", docs, "--index", index, "--as", ".plan=.txt")
    assert (code, "Left out" in err) == (0, False)
    lines = [line for line in err.splitlines() if line.startswith("Parts not read: ")]
    assert lines[0] == f"Parts not read: {docs / 'm00.eml'}: 1 attachment (plan.dwg)"
    assert lines[-1] == "Parts not read: in 6 more files; `arag list` names them"
    assert len(lines) == 21
    code, out, _ = arag("ingest", docs, "--index", index, "--json")
    summary = json.loads(out)
    assert (code, len(summary["notes"]), summary["problems"]) == (0, 26, [])
    assert summary["notes"][-1] == {
        "source": str(docs / "quay.eml"),
        "left_out": ["2 attachments (plan.dwg, photo.raw)"],
    }
    assert re.search(
        r"incomplete +26 \(documents whose text lacks parts of their file", arag("info", "--index", index)[1]
    )
    info = json.loads(arag("info", "--index", index, "--json")[1])
    assert info["left_out"]["quay.eml"] == ["2 attachments (plan.dwg, photo.raw)"]
    lines = arag("list", "--index", index)[1].splitlines()
    assert f"quay.eml\tThe plan of the quay\t1\t{docs / 'quay.eml'}\t2 attachments (plan.dwg, photo.raw)" in lines
    assert f"whole.txt\twhole\t1\t{docs / 'whole.txt'}" in lines


def test_a_terminal_obeys_no_name(tmp_path, arag, quick_embedder):
    (tmp_path / "a.eml").write_bytes(mail("x\x1b[31mb.md"))
    _, out, err = arag("ingest", tmp_path / "a.eml", "--index", tmp_path / "index")
    assert "\x1b" not in out + err + arag("list", "--index", tmp_path / "index")[1]


def test_damage_is_a_problem_as_before(docs, tmp_path):
    """The reader of a user's own may tell damage from what it does not read."""

    def read(path):
        return Content("", "Text.", left_out=("2 charts",), damage=("page 3: torn",))

    summary = run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings(), readers={".plan": read})
    assert [str(problem) for problem in summary.problems] == [f"{docs / 'mole.plan'}: page 3: torn"]
    assert str(summary.notes[0]) == f"{docs / 'mole.plan'}: 2 charts"


def test_python_warns_once_of_all_such_files(docs, tmp_path):
    with pytest.warns(UserWarning, match=r"^2 files not read in full: .*mole.plan: 2 charts, 1 comment; ") as caught:
        ingest(
            docs,
            tmp_path / "index",
            embedder=HashEmbeddings(),
            readers={".plan": read_plan},
        ).close()
    assert len(caught) == 1


def test_a_model_that_reads_a_document_is_told_once_what_its_text_lacks(docs, run):
    run()
    with open_index(run.place, embedder=HashEmbeddings()) as index:
        tools = {tool.name: tool for tool in make_tools(index, names="all")}
        shown = tools["chunk_read"].invoke({"chunk_ids": ["mole.plan:0"]})
        assert shown.endswith("\n\nMissing in the text of mole.plan: 2 charts, 1 comment")
        (shell,) = make_tools(index, names=["shell"])
        assert "mole.plan  (missing: 2 charts, 1 comment)" in shell.invoke({"command": "ls -l"})
        rows = tools["list_documents"].invoke({}).splitlines()
        assert "mole.plan | 2 charts, 1 comment" in {row.replace(" |  | ", " | ") for row in rows}
        assert "Missing" not in tools["chunk_read"].invoke({"chunk_ids": ["whole.txt:0"]})


def test_a_file_without_text_says_which_parts_were_not_read(run, docs):
    (docs / "page.html").write_text("<title>Plan</title><div><img src='plan.png' alt=''></div>")
    word = WordDocument()
    Image.new("RGB", (90, 90)).save(docs / "plan.png")
    word.add_picture(str(docs / "plan.png"))
    word.save(docs / "plan.docx")
    (docs / "plan.png").unlink()
    assert [problem.reason for problem in run().problems] == [
        "empty document; not read: pictures",
        "empty document; not read: 1 picture",
    ]
