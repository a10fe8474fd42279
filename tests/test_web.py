"""The pages for a browser, over real HTTP: `arag web` in a process of its own."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from arag.ingest.pipeline import run_ingest
from fakes import HashEmbeddings

ARAG_WEB = """
import sys
import fakes
from pathlib import Path
from arag import Scope, open_index
from arag.web.server import serve_web

scope = Scope(documents=sys.argv[2:]) if sys.argv[2:] else Scope()
reports = Path(sys.argv[1]).parent / "reports"
with open_index(sys.argv[1], embedder=fakes.HashEmbeddings()) as index:
    serve_web(index.limited_to(scope), model="extractive", options={}, port=0, reports=reports)
"""
SCRIPT = "<script>alert(1)</script>"
SENTENCE = "The harbour light was first lit in 1791."


def write_pdf(path):
    canvas = Canvas(str(path))
    for page in range(1, 4):
        canvas.drawString(72, 700, f"Page {page} tells of ropes and of tar.")
        if page == 2:
            canvas.drawString(72, 400, SENTENCE)
        canvas.showPage()
    canvas.save()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    corpus = folder / "corpus"
    (corpus / "notes").mkdir(parents=True)
    write_pdf(corpus / "light.pdf")
    (corpus / "notes" / "keeper.md").write_text(
        f"# The keeper\n\nThe keeper {SCRIPT} wound the clock.\n\n## Nights\n\nHe slept.\n"
    )
    (corpus / "notes" / f"x{SCRIPT.replace('/', '')}.html").write_text(f"<title>{SCRIPT}</title><p>A page of salt.</p>")
    records = [{"id": "open", "text": "Open to all.", "date": "2021-05-01"}, {"id": "secret", "text": "A secret word."}]
    (corpus / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    run_ingest(corpus, folder / "index", embedder=HashEmbeddings())
    (folder / "reports").mkdir()
    (folder / "reports" / "report.html").write_text(f"<p>Figures</p>{SCRIPT}")
    (folder / "outside.html").write_text("not a report")
    return folder


@contextmanager
def served(folder, *documents):
    """Serve an index, and yield a client that has opened the printed address."""
    command = [sys.executable, "-c", ARAG_WEB, str(folder / "index"), *documents]
    tests = Path(__file__).parent
    with subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            address, token = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+)/\?token=(\S+)\n", line).groups()
            with httpx.Client(base_url=address, timeout=60) as client:
                client.token = token
                welcome = client.get("/", params={"token": token})
                assert (welcome.status_code, welcome.headers["refresh"]) == (200, "0; url=/")
                assert "httponly; path=/; samesite=strict" in welcome.headers["set-cookie"].lower()
                yield client
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def client(folder):
    with served(folder) as client:
        yield client


def soup(response, status=200):
    assert response.status_code == status, response.text
    assert "<script>alert" not in response.text
    return BeautifulSoup(response.text, "html.parser")


def search(client, **values):
    return soup(client.get("/", params=values))


def first_link(page):
    return page.select_one(".hits a")["href"].partition("#")[0]


# --- what it shows ---


def test_a_hit_of_a_pdf_opens_the_picture_of_the_page_with_the_sentence_marked(client):
    page = search(client, q="harbour light")
    assert "page" in page.select_one(".hits .where").get_text()
    assert [mark.get_text() for mark in page.select(".hits li:first-child mark")] == ["harbour", "light"]
    passage = soup(client.get(first_link(page)))
    assert "Page 2 of 3" in passage.select_one("nav[aria-label='Pages of the file']").get_text()
    marked = [mark.get_text() for mark in passage.select(".text mark")]
    assert SENTENCE in marked
    picture = client.get(passage.figure.img["src"])
    assert picture.headers["content-type"] == "image/png"
    pixels = np.asarray(Image.open(io.BytesIO(picture.content)))
    is_yellow = (pixels == [255, 226, 110]).all(axis=2)
    rows = np.flatnonzero(is_yellow.any(axis=1)) / len(pixels)
    assert rows.min() == pytest.approx(1 - 412 / 842, abs=0.02)  # around the sentence's line, and nowhere else
    assert rows.max() == pytest.approx(1 - 396 / 842, abs=0.02)
    plain = client.get(re.sub(r"&at=\d+", "", passage.figure.img["src"]))
    assert not (np.asarray(Image.open(io.BytesIO(plain.content))) == [255, 226, 110]).all(axis=2).any()


def test_filters_choose_folders_kinds_and_dates(client):
    for filters, expected in [
        ({"kind": "md"}, {"notes/keeper.md"}),
        ({"folder": "notes", "kind": "md"}, {"notes/keeper.md"}),
        ({"after": "2021-01-01", "before": "2021-05-01"}, {"open"}),
        ({"after": "2021-05-02", "before": "2021-12-31"}, set()),
    ]:
        links = search(client, q="keeper of the secret word", **filters).select(".hits .where a")
        assert {link.get_text() for link in links} == expected
    assert soup(client.get("/", params={"q": "x", "after": "soon"}), 400)


def test_the_list_of_documents_leads_to_their_headings_and_files(client):
    listed = soup(client.get("/documents"))
    assert "5 documents" in listed.h1.get_text()
    document = soup(client.get("/document?id=notes/keeper.md"))
    assert [link.get_text() for link in document.select("h2 + .list a")] == ["Nights"]
    saved = client.get("/file?document=notes/keeper.md")
    assert saved.text.startswith("# The keeper")
    assert saved.headers["content-disposition"].startswith("attachment")


def test_a_question_streams_its_steps_and_its_sources_open_the_passage(client):
    origin = {"Origin": str(client.base_url).rstrip("/")}
    begun = client.post("/ask", data={"q": "When was the harbour light first lit?"}, headers=origin)
    assert begun.status_code == 303
    run = begun.headers["location"]
    with client.stream("GET", f"{run}/events") as events:
        kinds = re.findall(r"event: (\w+)", events.read().decode())
    assert kinds[0] == "step"
    assert kinds[-1] == "end"
    answer = soup(client.get(run))
    assert "1791" in answer.select_one(".answer").get_text()
    source = answer.select_one("#source-1 a")["href"].partition("#")[0]
    assert SENTENCE in soup(client.get(source)).select_one(".text mark").get_text()
    assert "sandbox" in client.get(f"{run}/steps").headers["content-security-policy"]
    assert run in str(soup(client.get("/runs")))


def test_an_index_that_is_ingested_again_shows_its_new_documents(folder, client):
    (folder / "corpus" / "new.md").write_text("A zebrafish swims.")
    try:
        run_ingest(folder / "corpus", folder / "index", embedder=HashEmbeddings())
        assert "new.md" in search(client, q="zebrafish").select_one(".hits").get_text()
    finally:
        (folder / "corpus" / "new.md").unlink()
        run_ingest(folder / "corpus", folder / "index", embedder=HashEmbeddings(), prune=True)
    assert soup(client.get("/passage?chunk=new.md:0"), 404)


# --- attacks ---


def test_strangers_are_refused(client):
    address = str(client.base_url)
    for token in ("", "?token=", "?token=wrong", "?token=%C3%A9"):
        assert httpx.get(f"{address}{token}").status_code == 403
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    for origin in ({}, {"Origin": "null"}, {"Origin": "https://evil.example"}, {"Origin": "http://127.0.0.1:1"}):
        assert client.post("/ask", data={"q": "hello"}, headers=origin).status_code == 403


def test_pages_run_no_script_of_others(client):
    for address in ("/?q=salt", "/documents", "/?q=keeper", f"/?q={quote(SCRIPT)}", f"/document?id={quote(SCRIPT)}"):
        response = client.get(address)
        soup(response, 404 if "document?" in address else 200)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
    name = f"notes/x{SCRIPT.replace('/', '')}.html"
    saved = client.get("/file", params={"document": name})
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.headers["content-disposition"].startswith("attachment")
    report = client.get("/reports/report.html")
    assert "sandbox allow-same-origin" in report.headers["content-security-policy"]
    assert "allow-scripts" not in report.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["../outside.html", "%2e%2e/outside.html", "..%2foutside.html", "/etc/passwd", "a%00"])
def test_no_path_leaves_the_folder_of_reports(client, path):
    assert client.get(f"/reports/{path}").status_code == 404
    assert client.get("/file", params={"document": path}).status_code == 404


def test_huge_and_wrong_parameters_are_errors(client):
    assert client.get("/", params={"q": "x" * 20_000}).status_code == 414
    assert client.get("/", params={"q": "x" * 2_000}).status_code == 400
    assert client.get("/documents?start=99999999999999999999").status_code == 400
    assert client.get("/?q=x&count=-1").status_code == 400
    assert client.get("/passage?chunk=light.pdf:0&at=99999999999999&at=x").status_code == 200
    origin = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post("/ask", data={"q": "x" * 200_000}, headers=origin).status_code == 413
    assert client.post("/ask", data={"q": " "}, headers=origin).status_code == 400


def test_nothing_outside_the_scope_is_shown(folder):
    with served(folder, "open", "light.pdf") as client:
        assert {link.get_text() for link in search(client, q="secret keeper open").select(".hits .where a")} <= {
            "open",
            "light.pdf",
        }
        assert "2 documents" in soup(client.get("/documents")).h1.get_text()
        for address in ("/passage?chunk=secret:0", "/picture?chunk=secret:0&page=1", "/document?id=secret"):
            assert client.get(address).status_code == 404
        assert client.get("/file?document=notes/keeper.md").status_code == 404
        assert client.get("/file?document=open").status_code == 404  # its file holds the others, too
        assert "keeper" not in client.get("/").text


def test_a_file_that_is_not_there_any_more_or_is_a_link_is_not_sent(folder, client):
    original = folder / "corpus" / "light.pdf"
    moved = folder / "moved.pdf"
    original.rename(moved)
    try:
        assert "not there any more" in soup(client.get("/passage?chunk=light.pdf:0")).get_text()
        original.symlink_to(moved)
        assert client.get("/file?document=light.pdf").status_code == 404
    finally:
        original.unlink(missing_ok=True)
        moved.rename(original)
