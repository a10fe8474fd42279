"""The pages for a browser, over real HTTP: `arag web` in a process of its own."""

from __future__ import annotations

import gzip
import io
import re
import socket
import sys
from contextlib import contextmanager
from unittest.mock import Mock
from urllib.parse import quote

import httpx
import numpy as np
import pytest
import uvicorn
from bs4 import BeautifulSoup
from PIL import Image
from starlette.testclient import TestClient

from arag import open_index, serve_web
from arag.errors import IndexNotFoundError, InputError, ModelError
from arag.ingest.pipeline import run_ingest
from arag.retrieval.types import DocumentInfo
from arag.system.worker_pool import WorkerPool
from arag.system.worker_process import WorkerProcess
from arag.web import originals
from arag.web.site import Site
from fakes import HashEmbeddings, write_corpus, write_index
from pdf_pages import Pages
from web_server import IN_COLUMN, SCRIPT, SENTENCE, serving, write_site

PORT = "A man named Koptein started the first port of it in August."
MARKED = [255, 226, 110]  # the colour of a mark on white paper
NAME = f"notes/x{SCRIPT.replace('/', '')}.html"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_site(tmp_path_factory.mktemp("web"))


@contextmanager
def opened(folder, *documents, **options):
    """Serve an index, and yield a client that has opened the printed address."""
    with serving(folder, *documents, **options) as address, httpx.Client(timeout=60) as client:
        welcome = client.get(address)
        assert 'content="0; url=/"' in welcome.text
        assert "httponly; path=/; samesite=strict" in welcome.headers["set-cookie"].lower()
        client.base_url = address.partition("?")[0]
        client.headers["Origin"] = address.partition("/?")[0]
        yield client


@pytest.fixture(scope="module")
def client(folder):
    with opened(folder) as client:
        yield client


def soup(response, status=200):
    assert response.status_code == status, response.text
    assert "<script>alert" not in response.text
    return BeautifulSoup(response.text, "html.parser")


def search(client, **values):
    return soup(client.get("/", params=values))


def texts(tags):
    return [tag.get_text() for tag in tags]


def first_hit(client, query):
    return soup(client.get(search(client, q=query).select_one(".hits a")["href"]))


def find_marked(client, address):
    """Return which pixels of a picture are marked."""
    picture = client.get(address)
    assert picture.headers["content-type"] == "image/png"
    return (np.asarray(Image.open(io.BytesIO(picture.content))) == MARKED).all(axis=2)


def ask(client, question):
    """Ask a question, and return the page of its run at its end."""
    begun = client.post("/ask", data={"q": question})
    assert begun.status_code == 303
    return soup(client.get(begun.headers["location"]))


# --- what it shows ---


def test_documents_with_the_same_title_are_told_apart_by_their_ids(tmp_path):
    location = write_index(tmp_path, {"en/a.md": "# Manual\n\nOne.", "en/b.md": "# Manual\n\nTwo."})
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        shown = [cell.get_text(" ") for cell in search(client).select("th[scope=row]")]
        undated = search(client, after="2020-01-01")
    assert shown == ["Manual en/a.md", "Manual en/b.md"]
    assert texts(undated.select(".warn")) == ["No document has a date.", "The filters leave out all documents."]


def test_a_moved_document_is_shown_and_filtered_where_its_file_is_now(tmp_path):
    mail = "From a@b Mon Jan  1 00:00:00 2024\nFrom: Ann <a@b>\nSubject: Bell\n\nIt rings {}.\n\n"
    files = {"old/a.md": "# Mill\n\nIt stands.", "old/b.md": "# Ship\n\nIt sails.", "in.mbox": mail.format(1) * 2}
    docs = write_corpus(tmp_path / "docs", files)
    ingest = [docs, tmp_path / "index"]
    run_ingest(*ingest, embedder=HashEmbeddings())
    (docs / "new").mkdir()
    (docs / "old/a.md").rename(docs / "new/z.md")
    (docs / "in.mbox").rename(docs / "new/all.txt")
    run_ingest(*ingest, embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        page = search(client, q="It stands", folder="new", kind="md")
        assert texts(page.select("datalist option")) == ["new", "old"]
        assert texts(page.select(".hits .note a")) == ["new/z.md"]
        assert texts(search(client, folder="old").select("th small")) == ["old/b.md"]
        document = soup(client.get("/document?id=old/a.md"))
        assert document.select_one(".note").get_text().startswith("new/z.md (cited as old/a.md)")
        passage = soup(client.get("/passage?chunk=old/a.md:0"))
        assert passage.select_one(".links").get_text().split() == "new/z.md (cited as old/a.md) Save the file".split()
        assert 'filename="z.md"' in client.get("/file?id=old/a.md").headers["content-disposition"]
        assert client.get(f"/file?id={quote('in.mbox#1')}").status_code == 404  # it holds the other mail, too


def test_a_record_without_title_is_named_by_where_its_file_is_now(tmp_path):
    docs = write_corpus(tmp_path / "docs", [{"text": "It stands."}])
    run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings())
    (docs / "corpus.jsonl").rename(docs / "z.jsonl")
    run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        assert texts(search(client, q="It stands").select(".hits h3")) == ["z.jsonl#1"]
        for address in (f"/passage?chunk={quote('corpus.jsonl#1:0')}", f"/document?id={quote('corpus.jsonl#1')}"):
            assert soup(client.get(address)).h1.get_text() == "z.jsonl#1"


def test_a_text_is_shown_once_with_links_to_its_copies(tmp_path):
    documents = {"a.htm": "The ferry sails.", "b.html": "The ferry sails.", "c.markdown": "The ferry is old."}
    location = write_index(tmp_path, documents)
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        found = search(client, q="ferry sails")
        nothing = search(client, q="qqzzxy", before="2020-01-01")
        pages = search(client, kind="html")
        first = found.select_one(".hits li")
        copy = soup(client.get(first.find("a", string="b.html")["href"]))
    assert texts(first.select(".note a")) == ["a.htm", "b.html"]
    assert "The same text: b.html" in first.get_text()
    assert copy.select_one("p.links a").get_text() == "b.html"
    assert "The ferry sails." in copy.get_text()
    assert texts(found.select("h2"))[:1] == ["Searched 3 documents: the best passages"]
    assert texts(nothing.select("h2")) == ["Searched 0 documents: nothing found"]
    assert texts(pages.select("option")) == ["all", "html", "md"]
    assert texts(pages.select("th[scope=row] small")) == ["a.htm", "b.html"]


def test_a_hit_of_a_pdf_opens_the_picture_of_the_page_with_the_sentence_marked(client):
    hit = search(client, q="harbour light").select_one(".hits li")
    assert "pages 1-2" in hit.select_one(".note").get_text()
    assert SENTENCE in texts(hit.select("p"))
    passage = first_hit(client, "harbour light")
    assert texts(passage.select(".text mark")) == [SENTENCE]
    place = passage.figure.rect
    assert passage.find_all(id=True)[-1] is place  # and not the mark in the text
    assert float(place["y"].strip("%")) == pytest.approx(100 - 412 / 8.42, abs=2)
    address = passage.figure.img["src"]
    marked = find_marked(client, address)
    rows = np.flatnonzero(marked.any(axis=1)) / len(marked)
    assert rows.min() == pytest.approx(1 - 412 / 842, abs=0.02)  # around the sentence's line, and nowhere else
    assert rows.max() == pytest.approx(1 - 396 / 842, abs=0.02)
    assert not find_marked(client, re.sub(r"&at=\d+", "", address)).any()


def test_a_pdf_in_gzip_opens_its_page_too(tmp_path):
    pages = Pages()
    pages.lines(72, 700, ["The mill turns.", "Its lamp is lit at dusk."])
    pages.show()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mill.pdf.gz").write_bytes(gzip.compress(pages.finish()))
    run_ingest(tmp_path / "docs", tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        assert find_marked(client, first_hit(client, "lamp dusk").figure.img["src"]).any()


def test_the_page_with_the_sentence_that_matched_best_is_shown_and_links_lead_to_the_pages_around_it(tmp_path):
    pages = Pages()
    pages.lines(72, 700, ["This was the first release for boats.", "It was the first one with sails, too."])
    pages.show()
    pages.lines(72, 600, [PORT, "He had no help."])
    pages.show()
    pages.lines(72, 700, ["Nothing else is known of these years."])
    pages.show()
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "ports.pdf").write_bytes(pages.finish())
    run_ingest(tmp_path / "corpus", tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        hit = search(client, q="first port zebrafish").select_one(".hits li")
        passage = soup(client.get(hit.a["href"]))
        before = soup(client.get(passage.find("a", string="Previous page")["href"]))
        after = soup(client.get(passage.find("a", string="Next page")["href"]))
        again = soup(client.get(after.find("a", string="Previous page")["href"]))
        marked = find_marked(client, passage.figure.img["src"])
        on_next = find_marked(client, after.figure.img["src"])
    assert PORT in texts(hit.select("p"))
    rows = np.flatnonzero(marked.any(axis=1)) / len(marked)
    assert rows.min() == pytest.approx(1 - 612 / 842, abs=0.02)
    assert not on_next.any()
    assert ["Page 2 of 3" in shown.get_text() for shown in (passage, before, after, again)] == [
        True,
        False,
        False,
        True,
    ]
    assert before.find("a", string="Previous page") is None
    assert after.find("a", string="Next page") is None


def test_of_a_table_in_a_pdf_the_row_of_the_hit_is_marked_and_none_where_two_rows_are_the_same(tmp_path):
    pages = Pages()
    columns, header = (72, 200, 330), ["Old name", "New name", "Used by"]
    pages.text(72, 750, "The names of encodings have changed.")
    pages.rows(700, columns, [header, ["atari", "no encoding yet", "boats"], ["hebcode", "latin1", "boats"]])
    pages.show()
    pages.text(72, 750, "Some names came later.")
    rows = [["mac", "applemac", "boats"], ["pc850", "cp850", "boats"], ["roman", "romex", "ships"]]
    pages.rows(700, columns, [header, *rows, ["roman", "romex", "ships"]])
    pages.show()
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "names.pdf").write_bytes(pages.finish())
    run_ingest(tmp_path / "corpus", tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        hits = {name: search(client, q=name).select_one(".hits li") for name in ("hebcode", "applemac", "romex")}
        opened_at = {name: soup(client.get(hit.a["href"])) for name, hit in hits.items()}
        marked = {name: find_marked(client, page.figure.img["src"]) for name, page in opened_at.items()}
    assert "Old name: mac | New name: applemac | Used by: boats" in texts(hits["applemac"].select("p"))
    assert ["Page 2 of 2" in page.get_text() for page in opened_at.values()] == [False, True, True]
    for name, baseline in (("hebcode", 664), ("applemac", 682)):
        lines = np.flatnonzero(marked[name].any(axis=1)) / len(marked[name])
        assert lines.min() == pytest.approx(1 - (baseline + 10) / 842, abs=0.01)
        assert lines.max() == pytest.approx(1 - (baseline - 4) / 842, abs=0.01)
    assert not marked["romex"].any()


def test_pages_of_other_parts_show_their_text_and_excerpts_are_under_their_headings_without_markup(tmp_path):
    pages = Pages()
    for number in range(1, 5):
        lines = [
            f"Page {number}, line {line}, tells of ropes, of tar and of all that boats need." for line in range(40)
        ]
        pages.lines(72, 780, lines)
        pages.show()
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "ropes.pdf").write_bytes(pages.finish())
    (tmp_path / "corpus" / "list.md").write_text(
        "## Zebrafish\n\nZebrafish tanks . . . . . . . . 12\n\nMore.\n\n| A | B |\n| --- | --- |\n| | zebrafish |\n"
    )
    (tmp_path / "corpus" / "makers.md").write_text(
        "## Boats\n\nThe first had sails.\n\n## The makers\n\nKoptein came first."
    )
    run_ingest(tmp_path / "corpus", tmp_path / "index", embedder=HashEmbeddings(), chunk_tokens=400)
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        page = soup(client.get("/passage?chunk=ropes.pdf:0&at=0"))
        for _ in range(3):
            page = soup(client.get(page.find("a", string="Next page")["href"]))
        assert "Page 4, line 0," in page.select_one(".text").get_text()
        assert client.get(page.figure.img["src"]).headers["content-type"] == "image/png"
        assert client.get("/picture?chunk=ropes.pdf:0&page=99").status_code == 400
        hit = search(client, q="zebrafish").select_one(".hits li")
        headed = search(client, q="first Koptein").select_one(".hits li")
    assert texts(headed.select("p"))[:4] == ["Boats", "The first had sails.", "The makers", "Koptein came first."]
    assert texts(hit.select("p"))[1:-1] == ["Zebrafish tanks … 12", "More.", "A | B", "… zebrafish"]


def test_only_headings_lose_their_mark(tmp_path):
    docs = {
        "a.txt": "Mills\n=====\n\nTo grind rye, turn all of the wheels.\n\n    # turn-wheels rye\n\nThen it is over.\n",
        "b.md": "# Sails\n\n## Canvas\n\n## Rope\n",
    }
    run_ingest(write_corpus(tmp_path / "docs", docs), tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        command = texts(search(client, q="turn-wheels").select(".hits p"))
        heading = texts(search(client, q="canvas").select(".hits li:first-child p"))
    assert "# turn-wheels rye" in [text.strip() for text in command]
    assert "Canvas" in heading


def test_two_bars_in_a_sentence_stay(tmp_path):
    text = "# Tests\n\nIn brackets, || means or, as in [ $rye || $oats ].\n"
    with open_index(write_index(tmp_path, {"a.md": text}), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        shown = texts(search(client, q="brackets").select(".hits p"))
    assert "In brackets, || means or, as in [ $rye || $oats ]." in shown


def test_a_question_shows_the_sentence_nearest_in_meaning_beside_those_with_its_words(tmp_path):
    section = "Who used the quay, as far as the archive of the town can tell us? Nobody knows it today, and few ask who"
    filler = "Ships came and went, year after year, without a line about them in any book that was kept. " * 3
    text = f"# Towns\n\nThe port was old.\n\n{filler}\n\n## {section}\n\nIt was in use by the guild.\n\n{filler}"
    with open_index(write_index(tmp_path, {"a.md": text}), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        asked = texts(search(client, q="was it in use by a port?").select(".hits p"))
        words = texts(search(client, q="port").select(".hits p"))
    assert "It was in use by the guild." in asked
    assert "Who used the quay, as far as the archive of the town can tell us?" in asked
    assert "It was in use by the guild." not in words


def test_of_a_short_keyword_the_sentence_with_it_as_a_word_is_shown(tmp_path):
    filler = "Ships came and went, year after year, without a line about them in any book that was kept. " * 9
    text = f"Begin by typing the name. {filler}Now confirm the PIN."
    with open_index(write_index(tmp_path, {"a.md": text}), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        shown = texts(search(client, q="PIN").select(".hits p"))
    assert "Now confirm the PIN." in shown
    assert "Begin by typing the name." not in shown


def test_a_hit_opens_the_sentence_with_the_words_and_not_one_with_longer_words(tmp_path):
    filler = "Ships came and went, year after year, without a line about them in any book that was kept. " * 9
    text = f"Use draw(plotter,thicklines) here. {filler}Each fifth line of a plotter is thick."
    with open_index(write_index(tmp_path, {"a.md": text}), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        hit = search(client, q="plotter thick").select_one(".hits a")
    assert hit["href"].endswith(f"#{text.index('Each fifth')}")


def test_a_hit_shows_the_sentence_below_a_name_and_the_one_after_a_condition(tmp_path):
    filler = "Nothing more was ever written about any of it in those years, as far as anybody can tell now."
    name = (
        f"<page xmlns='http://projectmallard.org/1.0/'><title>Lamp</title><p>{filler}</p>"
        "<steps><title>Trim the wick</title><item><p>Press the lever.</p></item></steps></page>"
    )
    condition = f"# Reader\n\n{filler}\n\nIf your thumb is dry, the reader fails. Wet it a little.\n\n{filler}"
    location = write_index(tmp_path, {"a.page": name, "b.md": condition})
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        assert "Press the lever." in search(client, q='"trim the wick"').select_one(".hits").text
        assert "Wet it a little." in search(client, q='"thumb is dry"').select_one(".hits").text


def test_a_hit_does_not_repeat_its_title(tmp_path):
    centred = "\n    Oak wheels\n\n    By a miller\n\n1. Mill\n\nThe mill turns. It is old.\n\n2. End\n\nThe end."
    location = write_index(tmp_path, {"a.txt": centred, "b.txt": "Oak wheels"})
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        hits = search(client, q="oak mill").select(".hits li")
    shown = {hit.select("p a")[-1].get_text(): texts(hit.select("p[dir]:not(.note)")) for hit in hits}
    assert shown["a.txt"][0] == "The mill turns."
    assert shown["b.txt"] == ["Oak wheels"]


@pytest.mark.parametrize(
    ("paragraph", "has_one_width"),
    [
        ("Wheel  Oak\nAxle   Elm\nGear  Ash", True),
        ("Wheel  Oak\nAxle_  Elm", True),
        ("The mill:\n  Water Lane 4\n  Millford", True),
        ("$ mill start\nThe wheel turns", True),
        ("The wheel turns.  It is old.\nThe river runs.  It is new.", False),
        ("The wheel of the mill turns in\nthe river.", False),
        ("- The wheel of oak\n  lasts longest.", False),
        (f"A page of {'an old and ' * 9} long PDF:\n$ mill start\nThe wheel turns", False),
    ],
)
def test_text_that_is_laid_out_has_letters_of_one_width(tmp_path, paragraph, has_one_width):
    location = write_index(tmp_path, {"a.txt": f"# Mill\n\nIt is old.\n\n{paragraph}\n\nThe end."})
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        passage = soup(client.get("/passage", params={"chunk": "a.txt:0"}))
    assert (paragraph in texts(passage.select(".columns"))) == has_one_width


def test_code_is_shown_with_its_lines(tmp_path):
    code = "turn('wheel')\n    stop('wheel')"
    location = write_index(tmp_path, {"a.md": f"# Mill\n\nTurn it:\n\n{code}\n\nThe end of the wheel."})
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        assert code in texts(search(client, q="stop").select(".hits p"))


def test_excerpts_have_words_below_their_headings_and_contents_come_last(tmp_path):
    names = ["Ropewalk", "The eel", "Lantern oil", "Tolls", "Pilots"]
    listed = "\n\n".join(f"4.{n}. {name}" for n, name in enumerate(names, 1))
    sections = "\n\n".join(f"### 4.{n}. {name}\n\nIt is old. The eel is shy." for n, name in enumerate(names, 1))
    rows = "\n".join(f"| | {n} |" for n in range(9))
    documents = {
        "a.md": f"# Manual\n\n{listed}",
        "b.md": f"# History\n\n{sections}",
        "c.md": f"# Numbers\n\n| A | B |\n| --- | --- |\n{rows}\n\n4.1.\n\n4.11.",
        "d.md": "# Supper\n\nLantern oil burnt in 4.1 lamps.\n\nThe eel came with lantern oil.\n\nBread was old.",
    }
    location = write_index(tmp_path, documents)
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        hits = search(client, q="eel with lantern oil in 4.1").select(".hits li")
    shown = [texts(hit.select("p"))[1:-1] for hit in hits]
    assert [hit.select("p a")[-1].get_text() for hit in hits][-1] == "a.md"
    assert shown[0][:2] == ["Lantern oil burnt in 4.1 lamps.", "The eel came with lantern oil."]
    assert shown[1] == ["The eel is shy.", "4.3. Lantern oil", "It is old.", "The eel is shy."]
    assert not any(re.fullmatch(r"[\W\d]*", text) or "#" in text for excerpts in shown for text in excerpts)


def test_a_sentence_in_a_column_is_marked_there_alone(client):
    passage = first_hit(client, "eel supper in the Corn Exchange")
    assert IN_COLUMN in [" ".join(text.split()) for text in texts(passage.select("mark"))]
    marked = find_marked(client, passage.figure.img["src"])
    columns = np.flatnonzero(marked.any(axis=0)) / marked.shape[1]
    assert columns.min() > 290 / 595


def test_a_hit_of_another_file_opens_the_text_with_the_sentence_marked_and_a_link_to_the_file(client):
    hit = search(client, q="who slept").select_one(".hits li")
    assert hit.select_one(".note").get_text().startswith("Nights")
    assert hit.a["href"].endswith("#" + re.search(r"at=(\d+)", hit.a["href"])[1])
    passage = first_hit(client, "who slept")
    assert "He slept." in texts(passage.select("mark[id]"))
    assert passage.figure is None
    saved = client.get(passage.find("a", string="Save the file")["href"])
    assert saved.text.startswith("# The keeper")


def test_one_box_finds_by_keywords_and_by_meaning(client):
    assert texts(search(client, q="slept").select(".hits h3"))[0] == "The keeper"
    assert texts(search(client, q="zzyzxqua salt").select(".hits .note a"))[0] == NAME
    assert texts(search(client, q="sle\u00adpt").select(".hits h3"))[0] == "The keeper"
    assert not search(client, q="sle\u00adpt").select(".warn")
    assert search(client, q="?!").select_one("h2") is not None


def test_documents_with_the_word_itself_come_first_and_words_of_none_are_named(tmp_path):
    records = [{"id": f"r{n}", "text": f"Prev, next {n}. The ship sails on day {n}."} for n in range(9)]
    records[7]["text"] += " Its owner was InfoMagic."
    with open_index(write_index(tmp_path, records), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        hit = search(client, q="InfoMagic").select_one(".hits li")
        assert texts(hit.select("p"))[1:-1] == ["Prev, next 7.", "The ship sails on day 7.", "Its owner was InfoMagic."]
        nowhere = search(client, q="qqzzxy ship")
        assert texts(nowhere.select(".warn")) == ["Not found: qqzzxy."]
        misspelt = search(client, q='the Ownr "infomagci"', kind="jsonl").select_one(".warn")
        assert misspelt.get_text() == "Not found: infomagci (closest: InfoMagic), ownr (closest: owner)."
        for question, named in {
            "which shippp does Infomagci own?": ["Not found: infomagci (closest: InfoMagic)."],
            "каком shippp настраивается owner?": [],
            "¿Dónde shippp the owner?": [],
            'shippp of the owner that sailed on "day 77" or 8.99': ["Not found: day 77, 8.99."],
        }.items():
            assert texts(search(client, q=question).select(".warn")) == named
        meant = soup(client.get(misspelt.find("a", string="owner")["href"]))
        assert meant.select_one("input[name=q]")["value"] == 'the owner "infomagci"'
        assert meant.select_one("option[selected]").get_text() == "jsonl"
        assert "ownr" not in meant.select_one(".warn").get_text()
        document = soup(client.get("/document?id=r7"))
        passage = soup(client.get(document.find("a", string="1")["href"]))
        assert "The ship sails on day 7." in passage.select_one(".text").get_text()


def test_a_border_stands_below_the_passages_with_the_words(tmp_path):
    records = [{"id": f"r{n}", "text": f"The ship sails on day {n}."} for n in range(20)]
    records[7]["text"] += " Its owner was Wolf Faust. He liked the sea."
    records[8]["text"] += " It is overfaustian."
    with open_index(write_index(tmp_path, records), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        found = {}
        for query in ("Faust", "Faust qqzzxy", "Faust sails", "sails", '"Wolf Faust"', '"Faust Wolf"', "qqzzxy"):
            page = search(client, q=query)
            lists = [len(hits.find_all("li", recursive=False)) for hits in page.select(".hits")]
            found[query] = [heading.partition(": ")[2] or heading for heading in texts(page.select("h2"))], lists
    best, near = "the best passages", "Near in meaning"
    assert found == {
        "Faust": ([best, near], [1, 19]),
        "Faust qqzzxy": ([f"none has all these words; {best}", near], [1, 19]),
        "Faust sails": ([best, f"{near}, or with some of the words"], [1, 19]),
        "sails": ([best], [20]),
        '"Wolf Faust"': ([best], [1]),
        '"Faust Wolf"': (["nothing found"], [0]),
        "qqzzxy": (["none has these words; near in meaning:"], [10]),
    }


def test_filters_choose_folders_kinds_and_dates(client):
    for filters, expected in [
        ({"kind": "md"}, {"notes/keeper.md"}),
        ({"kind": "jsonl"}, {"open", "secret"}),  # ids without an ending
        ({"folder": "notes/"}, {"notes/keeper.md", NAME}),
        ({"folder": "not"}, {"notes/keeper.md", NAME}),
        ({"folder": "keeper.md"}, set()),  # no folder
        ({"folder": "notes", "kind": "html"}, {NAME}),
        ({"after": "2021-05-03", "before": "2021-05-10"}, {"open"}),  # of the document, the month is known
        ({"after": "2021-06-01"}, {"light.pdf", "gazette.pdf", "wages.xlsx"}),
        ({"before": "2021-04-30"}, set()),
    ]:
        hits = search(client, q="keeper of the secret word of salt, open to all", **filters)
        assert set(texts(hits.select(".hits .note a"))) == expected
        assert len(search(client, **filters).select("th[scope=row]")) == len(expected)
    nothing = search(client, q="salt qqzzxy", after="2030-01-01")
    undated = "Left out, without a date: 3 documents."
    # no word was looked for
    assert texts(nothing.select(".warn")) == [undated, "The filters leave out all documents."]
    turned = search(client, after="2030-01-02", before="2030-01-01")
    assert texts(turned.select(".warn")) == [undated, "The first day is after the last one."]
    nowhere = search(client, folder="nots")
    assert texts(nowhere.select(".warn")) == ["The filters leave out all documents."]
    dated = search(client, q="salt qqzzxy", before="2021-05-10")
    assert texts(dated.select(".warn")) == [undated, "Not found: salt, qqzzxy."]
    form = search(client, folder="notes", kind="md", after="2021-05-01")
    assert [field["value"] for field in form.select("input[name=folder], input[name=after]")] == ["notes", "2021-05-01"]
    assert texts(form.select("option[selected]")) == ["md"]


def test_what_has_the_rarest_word_comes_first_where_nothing_has_all(tmp_path):
    docs = {f"{number}.md": f"Press the keys of row {number}. All keys are keys." for number in range(9)}
    docs["z.md"] = f"An emoji is small. {'It is seen in many places of a text. ' * 40}"
    with open_index(write_index(tmp_path, docs), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        page = search(client, q="keys emoji")
    assert page.select_one("h2").get_text() == "Searched 10 documents: none has all these words; the best passages"
    assert texts(page.select(".hits .note a"))[0] == "z.md"


def test_a_document_is_found_by_its_name(tmp_path):
    docs = {"news/ltnews16.md": "It stands.", "news/ltnews17.md": "It falls.", "mill.md": "It stands."}
    with open_index(write_index(tmp_path, docs), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        page = search(client, q="ltnews17")
    assert page.select_one("h2").get_text() == "Searched 3 documents: the best passages"
    assert page.select(".warn") == []
    assert texts(page.select(".hits .note a"))[0] == "news/ltnews17.md"


def test_a_folder_is_chosen_by_names_anywhere_in_its_path_or_else_by_parts_of_them(tmp_path):
    paths = ["help/de/gnome-help/a.md", "help/fr/gnome-help/b.md", "help/fr/map/c.md"]
    location = write_index(tmp_path, dict.fromkeys(paths, "It stands."))
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        offered = texts(search(client).select("datalist option"))
        found = {}
        for folder in (
            "gnome-help",
            "fr",
            "de/gnome-help",
            "HELP/de",
            "/help/",
            "GNOME",
            "map",
            "ma",
            "a.md",
            "help/map",
        ):
            listed = search(client, folder=folder).select("th[scope=row] a")
            found[folder] = [link["href"].partition("=")[2] for link in listed]
    assert offered == ["help", "help/de", "help/de/gnome-help", "help/fr", "help/fr/gnome-help", "help/fr/map"]
    de, fr, map_ = ([path] for path in paths)
    assert found == {
        "gnome-help": de + fr,
        "fr": fr + map_,
        "de/gnome-help": de,
        "HELP/de": de,
        "/help/": paths,
        "GNOME": de + fr,
        "map": map_,
        "ma": map_,
        "a.md": [],
        "help/map": [],
    }


def test_the_list_of_documents_leads_to_headings_tables_and_what_was_left_out(client):
    listed = search(client)
    assert "7 documents" in texts(listed.select("h2"))
    link = next(link for link in listed.select("th a") if link.get_text() == "The keeper")
    document = soup(client.get(link["href"]))
    assert texts(document.select("li")) == ["Nights", "Nights > Wages", "Year | Pounds (2 rows)"]
    first = soup(client.get(document.find("a", string="Nights")["href"]))
    assert texts(first.select("mark")) == ["He slept."]
    sheet = soup(client.get("/document?id=wages.xlsx"))
    assert texts(sheet.select("li")) == ["Sheet", "Year | Pounds (2 rows)"]
    assert "Parts not read: 1 formula without a saved value" in sheet.select_one(".warn").get_text()
    row = soup(client.get(sheet.find("a", string="Sheet")["href"]))
    assert row.select_one(".note").get_text() == "Sheet"


def test_long_lists_of_documents_are_shown_in_parts(tmp_path):
    location = write_index(tmp_path, [{"id": f"record-{number:03}", "text": "A word."} for number in range(150)])
    with open_index(location, embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        first = search(client)
        button = first.find("button", string="More documents")
        second = search(client, **{button["name"]: button["value"]})
    shown = [*first.select("th a"), *second.select("th a")]
    assert texts(shown) == [f"record-{number:03}" for number in range(150)]
    assert second.find("button", string="More documents") is None


def test_a_question_streams_its_steps_and_its_citations_open_the_passage(client):
    answer = ask(client, "When was the harbour light first lit?")
    steps = texts(answer.select(".steps li"))
    assert any(step.startswith("keyword_search {") for step in steps)
    assert "1791" in answer.select_one(".answer").get_text()
    cited = answer.select_one(answer.select_one(".answer .cite")["href"])
    passage = soup(client.get(cited.find("a", string=re.compile("^Read "))["href"]))
    assert texts(passage.select("mark")) == [SENTENCE]
    assert passage.figure is not None
    page = soup(client.get("/ask"))
    assert "quotes sentences" in page.get_text()
    again = soup(client.get(page.find("a", string="When was the harbour light first lit?")["href"]))
    assert again.select_one(".answer").get_text() == answer.select_one(".answer").get_text()


def test_a_run_that_fails_says_why(folder):
    with opened(folder, model="openai:some-model@http://127.0.0.1:9/v1", options={"max_retries": 0}) as client:
        page = ask(client, "Who slept?")
    assert "the model openai:some-model" in page.select_one(".error").get_text()


def test_reports_that_exist_are_listed_and_shown_without_their_scripts(client):
    for page in ("/", "/ask", "/document?id=none"):
        (nav,) = BeautifulSoup(client.get(page).text, "html.parser").select("nav")
        assert nav.find("a", string="Reports")["href"] == "/reports/"
    listed = client.get("/reports/")
    assert "sandbox" not in listed.headers["content-security-policy"]
    assert texts(soup(listed).select("li")) == ["old/report.html", "old/questions/1/arag.html"]
    assert soup(client.get("/reports", follow_redirects=True)).select("li")
    link = soup(listed).find("a", string="old/report.html")
    report = client.get(link["href"])
    assert "Figures" in report.text
    assert "sandbox allow-same-origin" in report.headers["content-security-policy"]
    assert "allow-scripts" not in report.headers["content-security-policy"]


def test_without_a_folder_of_reports_there_is_no_link_to_it(tmp_path):
    with open_index(write_index(tmp_path, {"a.md": "A word."}), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        assert soup(client.get("/")).find("a", string="Reports") is None
        assert client.get("/reports/").status_code == 404


HISTORY = "<h1>The mill</h1><p>It stands.</p><h2>4.1. The 0.x years</h2><p>It turned.</p><pre># rm wheel</pre>"


def test_headings_of_a_passage_are_shown_as_headings(tmp_path):
    pdf = Pages()
    pdf.text(72, 740, "The sails", 18, "Helvetica-Bold")
    pdf.lines(72, 700, ["They turn in the wind.", "They are of linen."])
    pdf.show()
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "sails.pdf").write_bytes(pdf.finish())
    own_signs = "Usage:\n\n## 4.1. The 0.x years\n\nIt turned."
    write_index(tmp_path, {"mill.html": HISTORY, "mill.txt": own_signs})
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        start = index.get("mill.html:0").text.index("##")
        page = soup(client.get(f"/passage?chunk=mill.html:0&at={start}")).select_one(".text")
        sails = soup(client.get("/passage?chunk=sails.pdf:0")).select_one(".text")
        own = soup(client.get("/passage?chunk=mill.txt:0")).select_one(".text")
    assert texts(page.select("h3")) == ["The mill", "4.1. The 0.x years"]
    assert [heading["aria-level"] for heading in page.select("h3")] == ["3", "4"]
    assert texts(page.select("h3 mark")) == ["4.1. The 0.x years"]
    assert "#" not in page.get_text().replace("# rm wheel", "", 1)
    assert "# rm wheel" in page.get_text()
    assert "#" not in sails.get_text()
    assert "## 4.1. The 0.x years" in own.get_text()


def test_pages_are_served_for_the_location_of_an_index(folder):
    with pytest.raises(ModelError, match="pass it as embedder"):  # it is open, and has an embedder of a test's own
        serve_web(str(folder / "index"))
    with pytest.raises(IndexNotFoundError):
        serve_web(folder / "none")


def test_an_index_that_is_ingested_again_shows_its_new_documents(folder, client):
    (folder / "corpus" / "new.md").write_text("A zebrafish swims.")
    try:
        run_ingest(folder / "corpus", folder / "index", embedder=HashEmbeddings())
        assert texts(search(client, q="zebrafish", kind="md").select(".hits .note a"))[0] == "new.md"
    finally:
        (folder / "corpus" / "new.md").unlink()
        run_ingest(folder / "corpus", folder / "index", embedder=HashEmbeddings(), prune=True)
    assert "not any more" in soup(client.get("/passage?chunk=new.md:0"), 404).h1.get_text()


# --- attacks ---


def test_strangers_are_refused(client):
    address = str(client.base_url)
    for token in ("", "?token=", "?token=wrong", "?token=%C3%A9"):
        stranger = httpx.get(f"{address}{token}")
        assert stranger.status_code == 403
        assert "set-cookie" not in stranger.headers
    for host in ("evil.example", "127.0.0.1.evil.example", f"evil.example:{client.base_url.port}"):
        assert client.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", "http://127.0.0.1:1", "http://localhost"])
def test_other_pages_cannot_ask(client, origin):
    before = len(soup(client.get("/ask")).select("li"))
    headers = {"Origin": origin} if origin else {}
    with httpx.Client(base_url=client.base_url, cookies=client.cookies, headers=headers) as other:
        assert other.post("/ask", data={"q": "hello"}).status_code == 403
    assert len(soup(client.get("/ask")).select("li")) == before
    assert client.get("/ask?q=hello").status_code == 200
    assert len(soup(client.get("/ask")).select("li")) == before


def test_pages_run_no_scripts_and_keep_their_address_to_themselves(client):
    addresses = ["/?q=salt", "/", "/?q=keeper", f"/?q={quote(SCRIPT)}", f"/document?id={quote(NAME)}", "/ask"]
    for address in [*addresses, "/nowhere", "/favicon.ico", "/style.css"]:
        response = client.get(address)
        assert "<script" not in response.text
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe-inline" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
    assert client.get("/favicon.ico").status_code == 204
    saved = client.get("/file", params={"id": NAME})
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("path", ["../outside.html", "%2e%2e/outside.html", "..%2foutside.html", "/etc/passwd", "a%00"])
def test_no_path_leaves_the_folder_of_reports_or_the_index(client, path):
    assert client.get(f"/reports/{path}").status_code == 404
    assert client.get(f"/file?id={path}").status_code == 404


def test_wrong_parameters_are_no_faults(client):
    assert client.get("/", params={"q": "x" * 20_000}).status_code == 200
    assert client.get("/passage?chunk=light.pdf:0&at=99999999999999&at=x").status_code == 200
    assert client.get("/?from=zz").status_code == 200
    assert client.get("/picture?chunk=notes/keeper.md:0").status_code == 404
    for never_there in ("/runs/99", "/document?id=nope", "/document"):
        assert soup(client.get(never_there), 404).h1.get_text() == "It is not there, or not any more: search again."


def test_nothing_outside_the_scope_is_shown(folder):
    with opened(folder, "open", "light.pdf") as client:
        found = set(texts(search(client, q="secret keeper open").select(".hits .note a")))
        assert found <= {"open", "light.pdf"}
        page = search(client)
        assert "2 documents" in texts(page.select("h2"))
        assert "notes" not in page.get_text()
        for address in ("/passage?chunk=secret:0", "/picture?chunk=secret:0", "/document?id=secret"):
            assert client.get(address).status_code == 404
        assert client.get("/file?id=notes/keeper.md").status_code == 404
        assert client.get("/file?id=open").status_code == 404  # its file holds the others, too
        assert "secret" not in ask(client, "What is the secret word?").select_one(".answer").get_text()


def test_a_file_that_is_not_there_any_more_or_is_a_link_is_not_sent(folder, client):
    original = folder / "corpus" / "light.pdf"
    moved = folder / "moved.pdf"
    original.rename(moved)
    try:
        passage = soup(client.get("/passage?chunk=light.pdf:0"))
        assert passage.figure is None
        document = soup(client.get("/document?id=light.pdf"))
        for page in (passage, document):
            assert "file is not where it was" in page.select_one(".warn").get_text()
        assert passage.find("a", string="Save the file") is None
        original.write_bytes(b"%PDF-1.4")  # another file
        passage = soup(client.get("/passage?chunk=light.pdf:0"))
        assert "file has changed" in passage.select_one(".warn").get_text()
        assert (passage.figure, client.get("/file?id=light.pdf").status_code) == (None, 404)
        original.unlink()
        original.symlink_to(moved)
        assert client.get("/file?id=light.pdf").status_code == 404
    finally:
        original.unlink(missing_ok=True)
        moved.rename(original)
    for chunk in ("light.pdf:0", "open:0"):
        assert soup(client.get(f"/passage?chunk={chunk}")).select_one(".warn") is None


def test_a_file_that_may_not_be_read_is_told(folder, monkeypatch):
    monkeypatch.setattr(originals, "hash_file", Mock(side_effect=PermissionError))
    document = DocumentInfo("light.pdf", "", str(folder / "corpus" / "light.pdf"), {}, 1, file_hash="0")
    assert originals.find_original(document) == (None, "The file cannot be read: only its text can be shown.")


# --- starting ---


def test_a_missing_extra_and_a_taken_port_are_named(folder, monkeypatch):
    with (
        open_index(folder / "index", embedder=HashEmbeddings()) as index,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1, port {port}: Address already in use"):
            serve_web(index, port=port)
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        with pytest.raises(InputError, match=re.escape("pip install 'langgraph-arag[web]'")):
            serve_web(index, port=port)


def test_the_process_that_draws_pages_is_ready_before_the_first_request(folder, monkeypatch):
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    monkeypatch.setattr(
        originals, "_POOL", WorkerPool("arag.web.pictures", memory_bytes=1_000_000_000, running=2, idle=2)
    )
    with open_index(folder / "index", embedder=HashEmbeddings()) as index:
        serve_web(index)
    monkeypatch.setattr(WorkerProcess, "_launch", None)  # no other process is started
    assert originals.draw_page(folder / "corpus" / "light.pdf", SENTENCE, [(0, len(SENTENCE))], 1).startswith(
        b"\x89PNG"
    )


def test_what_stands_for_itself_is_one_keyword(tmp_path):
    literals = ["--force", "-a", "net.listen", "C++", ".htaccess", "/etc/fstab", "#include", "std::string", "mod_ident"]
    literals += ["8,50", "12:15", "0.9.12"]
    literals += ["Ctrl+Z", "Ctrl++", "C++11", "AT&T", "km/h", "a.b", "x86/64", "Strg+Bild-ab"]
    records = []
    for number, literal in enumerate(literals):
        parts = re.sub(r"\W|_", " ", literal)
        records.append({"id": f"other{number}", "title": parts, "text": f"{parts}. Then {parts}: {parts}."})
        records.append(
            {"id": f"with{number}", "title": "Notes", "text": f"Day {number} was long. Write {literal} there."}
        )
    with open_index(write_index(tmp_path, records), embedder=HashEmbeddings()) as index:
        app = Site(index, agent=None, model="", reports=None).make_app("token", 80)
        client = TestClient(app, base_url="http://localhost", cookies={"arag-80": "token"})
        for number, literal in enumerate(literals):
            first = search(client, q=f"the {literal}").select_one(".hits a")
            assert f"with{number}" in first["href"]
        assert texts(search(client, q="mod_idnet").select(".warn")) == ["Not found: mod_idnet (closest: mod_ident)."]
        assert texts(search(client, q="read/write, e.g. long").select(".warn")) == ["Not found: read."]
