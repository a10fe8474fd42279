"""What leaves the program: texts from outside are shown on terminals and in spreadsheets, and do nothing there."""

from __future__ import annotations

import csv
import json
import re

import pytest

from arag.evaluation.failures import csv_cell
from arag.terminal import visible
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
    harmless(arag("search", "keyword", "mill", "grey", "petrrel", *of_index))
    harmless(arag("search", "semantic", "the mill stands", *of_index))  # nobody has named its embedder
    harmless(arag("read", f"{ID}:0", "nobody's", *of_index))
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
    asked = [{"id": f"{n} {HOSTILE}", "question": f"Who {n}? {HOSTILE}", "answer": HOSTILE} for n in range(2)]
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


def test_what_people_write_stays():
    text = "Zoë\n\t日本語 می‌خواهم 👩‍👩‍👧 co\xadoperate \u200b“…”"
    assert visible(text) == text
    assert visible("one\r\ntwo\rthree") == "one\ntwo\\rthree"


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "@SUM(A1)", "+1", "-1", "\t=1", "＝1"])
def test_no_cell_of_a_spreadsheet_is_a_formula(text):
    assert csv_cell(text) == f"'{text}"
    assert csv_cell("1 = 1") == "1 = 1"
