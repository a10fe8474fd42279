"""`arag web` in a process of its own, and an index for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from openpyxl import Workbook
from reportlab.pdfgen.canvas import Canvas

from arag.ingest.pipeline import run_ingest
from fakes import HashEmbeddings

ARAG_WEB = """
import json
import sys
import fakes
from pathlib import Path
from arag import Scope, open_index
from arag.web.server import serve_web

folder, model, options, *documents = sys.argv[1:]
scope = Scope(documents=documents) if documents else Scope()
with open_index(f"{folder}/index", embedder=fakes.HashEmbeddings()) as index:
    limited = index.limited_to(scope)
    serve_web(limited, model=model, options=json.loads(options), port=0, reports=Path(folder) / "reports")
"""
SCRIPT = "<script>alert(1)</script>"
SENTENCE = "The harbour light was first lit in 1791."
IN_COLUMN = "The eel supper will be held in the Corn Exchange on the last Friday of June."
COLUMNS = (
    ["The swing bridge was painted", "green in May by nine men from", "the boatyard, who hung in slings."],
    ["The eel supper will be held in", "the Corn Exchange on the last", "Friday of June. Tickets are free."],
)


def write_pdf(path):
    canvas = Canvas(str(path))
    for page in range(1, 4):
        canvas.drawString(72, 700, f"Page {page} tells of ropes and of tar.")
        if page == 2:
            canvas.drawString(72, 400, SENTENCE)
        canvas.showPage()
    canvas.save()


def write_columns(path):
    """Write a page with two columns, as programs do that draw each line across the whole page."""
    canvas = Canvas(str(path))
    for number, line in enumerate(zip(*COLUMNS, strict=True)):
        for left, text in zip((72, 300), line, strict=True):
            canvas.drawString(left, 700 - 14 * number, text)
    canvas.save()


def write_sheet(path):
    book = Workbook()
    book.active.append(["Year", "Pounds"])
    book.active.append([1791, 40])
    book.active.append([1792, "=B2+5"])
    book.save(path)


def write_site(folder):
    """Write files of several kinds, an index of them, and a folder of reports."""
    corpus = folder / "corpus"
    (corpus / "notes").mkdir(parents=True)
    write_pdf(corpus / "light.pdf")
    write_columns(corpus / "gazette.pdf")
    write_sheet(corpus / "wages.xlsx")
    (corpus / "notes" / "keeper.md").write_text(
        f"# The keeper\n\nThe keeper {SCRIPT} wound the clock.\n\n## Nights\n\nHe slept.\n\n"
        "### Wages\n\n| Year | Pounds |\n| --- | --- |\n| 1791 | 40 |\n| 1792 | 45 |\n"
    )
    (corpus / "notes" / f"x{SCRIPT.replace('/', '')}.html").write_text(f"<title>{SCRIPT}</title><p>A page of salt.</p>")
    records = [{"id": "open", "text": "Open to all.", "date": "2021-05"}, {"id": "secret", "text": "A secret word."}]
    (corpus / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    run_ingest(corpus, folder / "index", embedder=HashEmbeddings())
    (folder / "reports" / "old").mkdir(parents=True)
    (folder / "reports" / "old" / "report.html").write_text(f"<style>p {{ color: red }}</style><p>Figures</p>{SCRIPT}")
    (folder / "reports" / "old" / "questions" / "1").mkdir(parents=True)
    (folder / "reports" / "old" / "questions" / "1" / "arag.html").write_text("<p>A run</p>")
    (folder / "outside.html").write_text("not a report")
    return folder


@contextmanager
def serving(folder, *documents, model="extractive", options=None):
    """Serve an index, or some of its documents, and yield the printed address."""
    arguments = [str(folder), model, json.dumps(options or {}), *documents]
    command = [sys.executable, "-c", ARAG_WEB, *arguments]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            yield re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/\?token=\S+)\n", line)[1]
        finally:
            process.terminate()
