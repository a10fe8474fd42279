"""What leaves the program: texts from outside are shown on terminals and in spreadsheets, and do nothing there."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest

from arag import ingest, open_index
from arag.errors import ARAGError
from arag.evaluation.failures import csv_cell
from arag.text.visible import visible, visible_line
from fakes import HashEmbeddings
from openai_server import Failure, chat, embeddings, serve

# Sets the clipboard, links, clears the screen, colours by C1, reorders, hides, goes back; and Rich's markup.
HOSTILE = (
    "\x1b]52;c;aGk=\x07 \x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\ \x1b[2J \x9b31m \x85 \u202eevil\u202c "
    "\u2066x\u2069 \u200e\u200f\u061c \x7f \x08\x08 a\rz \U000e0041 [bold]b[/bold][/] :smile:"
)
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
MODEL = "m [bold]b[/bold][/] :smile:"  # names of models with controls are refused
NAME = HOSTILE.replace("/", "-")  # of files and folders
ID = "a \u202eevil\u202c \u2066x\u2069 \u061c (bold) :smile:"  # ids with controls are refused


def vector(number, request):
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    return embeddings([HashEmbeddings().embed_query(text) for text in texts])


def harmless(run, *, told=True):
    """Assert that a command's output holds nothing that a terminal obeys; return all of it."""
    code, out, err = run
    for stream in (out, err):
        assert not OBEYED.findall(stream)
    if told:  # what was there is written out, and markup stands as it is; titles have round brackets
        assert re.search(r"\\x1b[\])]52;c;aGk=", out + err)
        assert re.search(r"[\[(]bold[\])]b[\[(][/-]bold[\])][\[(][/-][\])] :smile:", out + err)
    return code, out, err


@pytest.fixture
def place(tmp_path):
    """An index whose every text is hostile, and the server that embeds it and answers."""
    corpus = tmp_path / NAME
    corpus.mkdir()
    record = {"id": ID, "title": f"T {HOSTILE}", "text": f"The mill stands. {HOSTILE}", HOSTILE: HOSTILE}
    (corpus / "a.jsonl").write_text(json.dumps(record) + "\n")
    (corpus / "b.md").write_text(f"# Grey {HOSTILE}\n\nThe grey petrel flew. {HOSTILE}\n")
    (corpus / f"c {NAME}.md").write_text("Its name is no id.\n")
    (corpus / f"d {NAME}.jsonl").write_text("{broken\n")

    def respond(number, request):
        return vector(number, request) if "input" in request else replies[0](request)

    replies = []
    with serve(respond) as server:
        yield corpus, tmp_path / f"i {NAME}", server, replies


def test_commands_of_an_index(arag, place):
    corpus, index, server, _ = place
    harmless(arag("ingest", corpus, "--index", index, "--embedder", f"openai:m {HOSTILE}@{server.url}"), told=False)
    embedder = f"openai:{MODEL}@{server.url}"
    code, _, err = harmless(arag("ingest", corpus, "--index", index, "--embedder", embedder))
    assert (code, "Left out: " in err) == (3, True)
    harmless(arag("ingest", corpus / "b.md", "--index", index, "--embedder", f"openai:other@{server.url}"))
    of_index = ["--index", index]
    harmless(arag("info", *of_index))
    harmless(arag("list", *of_index))
    # Results leave out what cannot be seen.
    harmless(arag("search", "keyword", "mill", "grey", "petrrel", *of_index), told=False)
    harmless(arag("search", "semantic", "the mill stands", *of_index))  # nobody has named its embedder
    harmless(arag("read", f"{ID}:0", "nobody's", *of_index), told=False)
    code, out, _ = harmless(arag("read", f"{ID}:0", *of_index, "--json"), told=False)
    (chunk,) = json.loads(out)["chunks"]  # the same value
    assert (code, chunk["id"], "\x1b]52;c;aGk=\x07" in chunk["text"]) == (0, f"{ID}:0", True)
    harmless(arag("remove", f"no {HOSTILE}", *of_index))
    harmless(arag("verify", *of_index))


def test_ask_with_a_hostile_model(arag, place, monkeypatch):
    corpus, index, server, replies = place
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
    arag("ingest", corpus, "--index", index)
    ask = ["ask", f"Where is it? {HOSTILE}", "--index", index]
    keywords = json.dumps({"keywords": ["mill", HOSTILE]})

    def answering(request):
        if request["messages"][-1]["role"] == "tool":
            return chat(f"Here: {HOSTILE} [{ID}:0]") | {"model": HOSTILE}
        return chat(HOSTILE, ("x", "keyword_search", keywords), ("y", f"no {HOSTILE}", "{}"))

    replies.append(answering)
    harmless(arag(*ask, "--model", f"openai:m {HOSTILE}@{server.url}"), told=False)
    model = f"openai:{MODEL}@{server.url}"
    harmless(arag(*ask, "--model", model))
    replies[0] = lambda _: Failure(401, message=HOSTILE)
    _, _, err = harmless(arag(*ask, "--model", model))
    assert err.startswith("Error: the model openai:m [bold]")


def test_commands_of_experiments(arag, place, monkeypatch):
    corpus, index, server, replies = place
    monkeypatch.chdir(corpus.parent)
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
    arag("ingest", corpus, "--index", index)
    asked = [{"id": f"{n} {HOSTILE}", "question": f"Who {n}? {HOSTILE}", "answer": f"Not {HOSTILE}"} for n in range(2)]
    questions = corpus.parent / f"{NAME}.json"
    questions.write_text(json.dumps(asked))

    def answering(request):
        text = str(request["messages"])
        if "Who 0?" in text:
            return Failure(400, message=HOSTILE)
        return chat(f"=HYPERLINK({HOSTILE})") | {"model": HOSTILE}

    replies.append(answering)
    run = f"run {NAME}"
    more = ["--model", f"openai:{MODEL}@{server.url}", "--out", run]
    given = ["eval", "run", "--questions", questions, "--index", index, "--method", "naive-rag"]
    code, _, err = harmless(arag(*given, *more))
    assert (code, "Failed: 0 \\x1b]52" in err) == (1, True)
    harmless(arag(*given, *more, "--json"), told=False)
    harmless(arag("eval", "failures", run, "--index", index, "--judge", f"openai:m@{server.url}"))
    harmless(arag("eval", "report", run))
    tables = list((corpus.parent / run).rglob("*.csv"))
    cells = [cell for table in tables for row in csv.reader(table.open(newline="")) for cell in row]
    assert "'=HYPERLINK(" in str(cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


# Names that would begin lines of their own, hide or reorder text; the last are not UTF-8.
FORGED = "Left out: honest.md: it is empty"
NAMES = [
    f"a\n{FORGED}.md",
    f"b\r\x1b[2K{FORGED}.md",
    f"c\x85{FORGED}.xyz",
    "d\u2028e\u202efdp.md",
    "f\u2066\x9b31m.jsonl",
]
NAMES = [os.fsencode(name) for name in NAMES] + [b"g\xff\n.md", b"h\xff.xyz", b"i\xff.md"]


@pytest.fixture
def folder(tmp_path):
    """A folder in a folder whose name is hostile, too, with files of hostile names."""
    made = tmp_path / f"corpus\n{FORGED}"
    made.mkdir()
    for name in NAMES:
        Path(os.fsdecode(os.fsencode(made) + b"/" + name)).write_text("The mill stands.\n")
    (made / "good.md").write_text("# The ferry \x1b[2J\u202e\n\nThe ferry sails.\u2067\x9c\n")
    return made


def lines(run):
    """Assert that a command's output has harmless lines, none of them forged."""
    code, out, err = harmless(run, told=False)
    assert not [line for line in (out + err).splitlines() if line.startswith(FORGED)]
    return code, out, err


def test_a_files_name_forges_no_line_of_any_command(arag, folder, tmp_path, quick_embedder):
    index, copied, page = tmp_path / f"index\n{FORGED}", tmp_path / f"copy\n{FORGED}", tmp_path / f"x\n{FORGED}.html"
    code, out, err = lines(arag("ingest", folder, "--index", index))
    assert (code, out.startswith("Read ")) == (3, True)
    assert [line.partition(":")[0] for line in err.splitlines()] == ["Skipped", *["Left out"] * 5]
    left_out = json.loads(arag("ingest", folder, "--index", index, "--json")[1])["problems"]
    assert str(folder / f"a\n{FORGED}.md") in [problem["source"] for problem in left_out]  # programs get it as it is
    of_index = ["--index", index]
    _, listed, _ = lines(arag("list", *of_index))
    assert [line.split("\t")[0] for line in listed.splitlines()] == ["good.md", "i\ufffd.md"]
    lines(arag("info", *of_index))
    lines(arag("ask", f"Who sails?\n{FORGED}", *of_index, "-m", "extractive", "--html", page))
    assert not OBEYED.findall(page.read_text("utf-8"))
    lines(arag("ask", "What sails?", *of_index, "-m", "extractive", "--html", page))
    assert not OBEYED.findall(page.read_text("utf-8"))
    assert "The ferry sails.\\u2067\\x9c" in page.read_text("utf-8")
    lines(arag("copy", index, copied))
    (index / "arag.sqlite").write_bytes(b"damaged")
    lines(arag("verify", *of_index))
    lines(arag("list", *of_index))
    lines(arag("copy", index, tmp_path / "other"))
    lines(arag("remove", "i*", f"\n{FORGED}", "--index", copied))
    lines(arag("remove", f"\n{FORGED}", "--index", tmp_path / f"none\n{FORGED}"))
    lines(arag("ingest", folder / NAMES[0].decode(), "--index", index))


def test_warnings_and_errors_of_python_are_harmless_lines(folder, tmp_path):
    with pytest.warns(UserWarning, match="^left out 5 items: ") as caught:
        ingest(folder, tmp_path / "index", embedder=HashEmbeddings()).close()
    told = [str(each.message) for each in caught]
    assert told[1].startswith("skipped: no reader for .xyz; to read it as text: --as .xyz=.txt (2): ")
    for attempt in (
        lambda: ingest(folder / NAMES[0].decode(), tmp_path / "other", embedder=HashEmbeddings()),
        lambda: open_index(tmp_path / f"none\n{FORGED}\u202e"),
    ):
        with pytest.raises(ARAGError) as raised:
            attempt()
        told.append(str(raised.value))
    assert len(told) == 4
    for text in told:
        assert visible_line(text) == text


def test_what_people_write_stays():
    text = "Zoë\n\t日本語 می‌خواهم 👩‍👩‍👧 co\xadoperate \u200b“…”"
    assert visible(text) == text
    assert visible("one\r\ntwo\rthree") == "one\ntwo\\rthree"


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "@SUM(A1)", "+1", "-1", "\t=1", "＝1"])
def test_no_cell_of_a_spreadsheet_is_a_formula(text):
    assert csv_cell(text) == f"'{text}"
    assert csv_cell("1 = 1") == "1 = 1"
