"""Scanned pages of PDFs, and pictures: what is said of them without OCR, and what OCR reads."""

from __future__ import annotations

import io
import json
import os
import re

import pytest
from ocr_accuracy import character_accuracy, draw_page
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfReader, PdfWriter, Transformation
from reportlab.lib.pagesizes import A5
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from arag import open_index, run_ingest
from arag.errors import InputError
from arag.graph.citations import parse_citations
from arag.ingest.formats import Readers, scans
from arag.ingest.formats.content import FormatError
from arag.ingest.formats.ocr_layout import Box, arrange
from arag.retrieval.presentation.places import name_cited_pages
from arag.system.worker_process import WorkerError
from fakes import HashEmbeddings

needs_ocr = pytest.mark.skipif(not scans.has_ocr(), reason="the extra `ocr` is not installed")
SCANNED = "scanned? try --ocr"


def page_picture(text, *, size=(600, 850)):
    """Return a picture of a page with lines of text."""
    picture = Image.new("L", size, 255)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(22)
    for number, line in enumerate(text.split("\n")):
        draw.text((50, 60 + 36 * number), line, font=font, fill=0)
    return picture


def pdf(*pages):
    """Return a PDF: a page for each text, or for each pair of a picture that fills it and a text over it."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A5)
    for page in pages:
        picture, text = (None, page) if isinstance(page, str) else page
        if picture is not None:
            canvas.drawImage(ImageReader(picture), 0, 0, *A5)
        for number, line in enumerate(text.split("\n")):
            canvas.drawString(40, 560 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def in_form(data):
    """Return a PDF whose pages are put into forms, as programs that join PDFs do."""
    writer = PdfWriter()
    for page in PdfReader(io.BytesIO(data)).pages:
        blank = writer.add_blank_page(*A5)
        blank.merge_transformed_page(page, Transformation().scale(0.9))
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def as_file(picture, kind, **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache folder."""
    monkeypatch.setattr(scans, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def read_with_ocr(cache, tmp_path):
    """Write a file and read it with OCR."""
    with Readers(ocr=True) as readers:

        def read(name, data):
            path = tmp_path / name
            path.write_bytes(data)
            return readers.read(path)

        yield read


class FakeProcess:
    """A process whose pages say their numbers; `failing` are those at which it ends."""

    def __init__(self):
        self.read = []
        self.failing = set()

    def call(self, function, path, *arguments, seconds):
        if function == "count_pictures":
            return 3
        number = arguments[0]
        self.read.append(number)
        if number in self.failing:
            raise WorkerError("it timed out")
        text = {9: "", 8: "r"}.get(number, f"Read on page {number}.")
        return [text, number != 8]

    def close(self):
        pass


@pytest.fixture
def process(cache, monkeypatch):
    """A process that stands in for OCR, which takes seconds."""
    process = FakeProcess()
    monkeypatch.setattr(scans, "find_spec", lambda _: object())
    monkeypatch.setattr(scans, "version", lambda _: "1")
    original = scans.WorkerProcess

    def make(module, **options):
        return process if module.endswith(".ocr") else original(module, **options)

    monkeypatch.setattr(scans, "WorkerProcess", make)
    return process


# --- without OCR ---


class TestNotes:
    def test_pages_that_are_pictures_are_named(self, read):
        scan = page_picture("The rent is due.")
        content = read("a.pdf", pdf("A lease of the mill.", (scan, ""), (scan, "- 3 -"), "The end of it."))
        assert content.left_out == (f"pages 2, 3, which are pictures ({SCANNED})",)
        assert content.damage == ()
        many = [(scan, "")] * 7
        left_out = read("b.pdf", pdf("A lease of the mill.", *many)).left_out
        assert left_out == (f"pages 2, 3, 4, 5, 6 and 2 more, which are pictures ({SCANNED})",)

    def test_a_stamp_and_a_line_of_an_archive_make_no_text(self, read):
        stamp = "Received 3 May 1884\nCounty archive of the Isles, box 7, folder 12\nCopies only for research"
        content = read("a.pdf", pdf((page_picture("x"), stamp), "One page of text."))
        assert content.left_out == (f"page 1, which is a picture ({SCANNED})",)
        assert "box 7" in content.text

    def test_pictures_in_strips_and_in_forms_count(self, read):
        strip = page_picture("x", size=(600, 100))
        buffer = io.BytesIO()
        canvas = Canvas(buffer, pagesize=A5)
        for number in range(6):
            canvas.drawImage(ImageReader(strip), 0, 100 * number, 420, 100)
        canvas.showPage()
        canvas.drawString(40, 500, "Text.")
        canvas.save()
        assert read("a.pdf", buffer.getvalue()).left_out == (f"page 1, which is a picture ({SCANNED})",)
        nested = in_form(pdf((page_picture("x"), ""), "Text."))
        assert read("b.pdf", nested).left_out == (f"page 1, which is a picture ({SCANNED})",)

    @pytest.mark.parametrize("number", ["2", "- 12 -", "Page 12 of 30"])
    def test_a_small_picture_is_a_page_if_there_is_only_its_number(self, read, number):
        buffer = io.BytesIO()
        canvas = Canvas(buffer, pagesize=A5)
        canvas.drawImage(ImageReader(page_picture("x", size=(600, 400))), 40, 250, 330, 220)
        canvas.drawString(200, 20, number)
        canvas.showPage()
        canvas.drawString(40, 500, "Text.")
        canvas.save()
        assert read("a.pdf", buffer.getvalue()).left_out == (f"page 1, which is a picture ({SCANNED})",)

    def test_letters_that_are_drawn_as_shapes_are_a_picture(self, read):
        buffer = io.BytesIO()
        canvas = Canvas(buffer, pagesize=A5)
        for number in range(60):
            canvas.line(40 + 5 * number, 300, 43 + 5 * number, 310)
        canvas.showPage()
        canvas.drawString(40, 500, "Text.")
        canvas.save()
        assert read("a.pdf", buffer.getvalue()).left_out == (f"page 1, which is a picture ({SCANNED})",)

    def test_a_page_with_text_beside_or_over_a_picture_is_read(self, read):
        buffer = io.BytesIO()
        canvas = Canvas(buffer, pagesize=A5)
        canvas.drawImage(ImageReader(page_picture("x", size=(60, 60))), 40, 400, 100, 100)  # a logo
        canvas.drawString(40, 300, "A letter with a logo.")
        canvas.showPage()
        canvas.drawImage(ImageReader(page_picture("x")), 0, 0, *A5)  # a background
        for number in range(12):
            canvas.drawString(40, 500 - 20 * number, f"Line {number} of a text over a picture.")
        canvas.showPage()
        canvas.showPage()  # an empty page
        canvas.save()
        assert read("a.pdf", buffer.getvalue()).left_out == ()

    def test_a_pdf_of_scans_says_how_it_is_read(self, reason, monkeypatch):
        fault = reason("a.pdf", pdf((page_picture("x"), ""), (page_picture("y"), "")))
        assert fault.startswith(
            "the PDF has no text; its pages are pictures (scanned?): use --ocr (in Python, ocr=True)"
        )
        monkeypatch.setattr(scans, "find_spec", lambda _: None)
        assert scans.how_to_use_ocr().endswith("with the extra: pip install 'langgraph-arag[ocr]'")

    def test_pictures_are_skipped_and_named(self, arag, tmp_path, quick_embedder):
        docs = tmp_path / "docs"
        docs.mkdir()
        for name in ("a.png", "b.JPG", "c.tiff"):
            (docs / name).write_bytes(b"x")
        code, _, err = arag("ingest", docs, "--index", tmp_path / "index")
        assert (code, "has no text but in pictures: use --ocr" in err) == (1, True)
        code, _, err = arag("ingest", docs / "a.png", "--index", tmp_path / "index")
        assert (code, "has no text but in pictures: use --ocr" in err) == (1, True)
        (docs / "d.txt").write_text("Text.")
        code, _, err = arag("ingest", docs, "--index", tmp_path / "index")
        assert code == 0
        assert re.search(r"Skipped: a picture: use --ocr .* \(3\): .*a\.png, .*b\.JPG", err)

    def test_without_the_extra_the_note_names_it(self, arag, tmp_path, monkeypatch, quick_embedder):
        (tmp_path / "a.pdf").write_bytes(pdf("Text.", (page_picture("x"), "")))
        arguments = ["ingest", tmp_path / "a.pdf", "--index", tmp_path / "index"]
        assert "a.pdf: page 2, which is a picture (scanned? try --ocr)\n" in arag(*arguments)[2]
        monkeypatch.setattr(scans, "find_spec", lambda _: None)
        assert "For --ocr, install the extra: pip install 'langgraph-arag[ocr]'" in arag(*arguments)[2]

    def test_without_the_extra_it_is_named_before_anything_is_written(self, arag, tmp_path, monkeypatch):
        monkeypatch.setattr(scans, "find_spec", lambda _: None)
        (tmp_path / "a.txt").write_text("Text.")
        code, _, err = arag("ingest", tmp_path / "a.txt", "--index", tmp_path / "index", "--ocr")
        assert (code, "OCR needs an extra: pip install 'langgraph-arag[ocr]'" in err) == (1, True)
        assert not (tmp_path / "index").exists()
        with pytest.raises(InputError, match="extra"):
            Readers(ocr=True)

    def test_it_takes_no_language(self, arag, tmp_path):
        (tmp_path / "a.txt").write_text("Text.")
        code, _, err = arag("ingest", tmp_path / "a.txt", "--index", tmp_path / "index", "--ocr", "klingon")
        assert (code, "--ocr takes no language: it reads English and" in err) == (1, True)


# --- with OCR ---


@needs_ocr
def test_most_characters_of_a_rendered_page_are_read(read_with_ocr):
    lines = [
        "The new fog bell arrived from Skellavy on Monday",
        "in two crates. The clapper is bent, but the smith",
        "on the quay can straighten it by 14 November.",
        "",
        "Die Glocke läutet über dem Hafen, für 36 Mark.",
    ]
    picture = draw_page(lines)
    for name, data in (("a.pdf", pdf((picture, ""))), ("a.png", as_file(picture, "PNG"))):
        content = read_with_ocr(name, data)
        assert character_accuracy(content.text, " ".join(lines)) > 0.97
        assert content.ocr_pages == (1,)


# --- with a stand-in for OCR ---


@pytest.fixture
def docs(tmp_path):
    """A PDF with two scanned pages, of which the second has a stamp, and a picture with three pages."""
    folder = tmp_path / "docs"
    folder.mkdir()
    scan = page_picture("x")
    (folder / "lease.pdf").write_bytes(pdf("A lease of the mill.", (scan, ""), (scan, "Exhibit 7"), "The end of it."))
    (folder / "notes.tif").write_bytes(b"x")
    return folder


def ingest_docs(docs, **options):
    return run_ingest(docs, docs.parent / "index", embedder=HashEmbeddings(), ocr=True, **options)


class TestPages:
    def test_what_ocr_reads_stands_on_its_page_with_the_pages_own_text(self, docs, process):
        summary = ingest_docs(docs)
        assert (summary.notes, summary.problems, process.read) == ((), (), [2, 3, 1, 2, 3])
        with open_index(docs.parent / "index", embedder=HashEmbeddings()) as index:
            text = index.get("lease.pdf:0").text
            assert text.split("\n\n") == [
                "A lease of the mill.",
                "Read on page 2.",
                "Read on page 3.",
                "Exhibit 7",
                "The end of it.",
            ]
            assert index.document("lease.pdf").ocr_pages == (2, 3)
            assert index.document("notes.tif").ocr_pages == (1, 2, 3)
            assert [document.ocr_pages for document in index.list_documents().documents] == [(2, 3), (1, 2, 3)]

    def test_a_citation_says_which_pages_were_read_by_ocr(self, docs, process):
        ingest_docs(docs, chunk_tokens=50)
        with open_index(docs.parent / "index", embedder=HashEmbeddings()) as index:
            answer = "It ends [lease.pdf:0]. They say so [notes.tif:0]."
            lease, notes = parse_citations(answer, index, ["lease.pdf:0", "notes.tif:0"], [])
        assert (lease["pages"], lease["ocr_pages"]) == ([1, 4], [2, 3])
        assert name_cited_pages("lease.pdf:0", lease["pages"], lease["ocr_pages"]) == "pages 1-4 (read by OCR: 2, 3)"
        assert name_cited_pages("notes.tif:0", notes["pages"], notes["ocr_pages"]) == "pages 1-3, read by OCR"
        assert name_cited_pages("lease.pdf:0", [3, 3], [3]) == "page 3, read by OCR"
        assert name_cited_pages("lease.pdf:0", [3, 3], []) == "page 3"
        assert name_cited_pages("talk.pptx~2:0", [3, 4], []) == "slides 3-4"

    def test_pages_are_read_once_whatever_index_they_go_into(self, docs, process, tmp_path):
        ingest_docs(docs)
        process.read.clear()
        assert ingest_docs(docs).written == 0
        (docs / "lease.pdf").rename(docs / "moved.pdf")
        run_ingest(docs, tmp_path / "other", embedder=HashEmbeddings(), ocr=True)
        assert process.read == []
        (docs / "moved.pdf").write_bytes(pdf((page_picture("y"), ""), "Text."))
        ingest_docs(docs)
        assert process.read == [1]

    def test_an_interrupted_run_goes_on_where_it_was(self, docs, process):
        def stop(progress):
            if progress.ocr_pages == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ingest_docs(docs, progress=stop)
        assert process.read == [2, 3]
        ingest_docs(docs)
        assert process.read == [2, 3, 1, 2, 3]

    def test_the_progress_counts_pages(self, docs, process):
        seen = []
        ingest_docs(docs, progress=seen.append)
        assert [progress.ocr_pages for progress in seen][-1] == 5
        assert "5 scanned pages" in str(seen[-1])

    def test_a_page_that_fails_is_a_problem_and_is_tried_again(self, docs, process, arag, quick_embedder):
        process.failing = {3}
        arguments = ["ingest", docs, "--index", docs.parent / "index", "--ocr", "--json"]
        code, out, _ = arag(*arguments)
        problems = [problem["reason"] for problem in json.loads(out)["problems"]]
        assert (code, problems) == (3, 2 * ["page 3: OCR failed: it timed out"])
        process.failing = set()
        assert arag(*arguments)[0] == 0

    def test_a_pdf_of_scans_alone(self, process, tmp_path):
        (tmp_path / "a.pdf").write_bytes(pdf((page_picture("x"), ""), (page_picture("y"), "")))
        with Readers(ocr=True) as readers:
            content = readers.read(tmp_path / "a.pdf")
        assert (content.text, content.page_starts) == ("Read on page 1.\n\nRead on page 2.", (0, 17))
        assert (content.ocr_pages, content.left_out) == ((1, 2), ())

    def test_a_page_without_text_or_in_another_script_is_a_note(self, process, tmp_path):
        scan = page_picture("x")
        (tmp_path / "a.pdf").write_bytes(pdf("Text.", *8 * [(scan, "")]))
        with Readers(ocr=True) as readers:
            content = readers.read(tmp_path / "a.pdf")
        assert content.left_out == (
            "1 page on which OCR found no text",
            "1 page that OCR could not read (another script?)",
        )
        assert content.ocr_pages == (2, 3, 4, 5, 6, 7, 8)

    def test_other_extensions_may_be_read_like_pictures(self, docs, process):
        (docs / "notes.tif").rename(docs / "notes.fax")
        ingest_docs(docs, readers={".fax": ".tif"})
        with open_index(docs.parent / "index", embedder=HashEmbeddings()) as index:
            assert index.document("notes.fax").ocr_pages == (1, 2, 3)

    def test_pages_that_nobody_has_used_for_long_are_deleted(self, docs, process, cache):
        ingest_docs(docs)
        kept = sorted(cache.rglob("*.json"))
        assert len(kept) == 5
        for file in kept[:3]:
            os.utime(file, (0, 0))
        old = cache / "ocr" / "rapidocr-0-1" / "digest" / "1.json"
        old.parent.mkdir(parents=True)
        old.touch()
        process.read.clear()
        ingest_docs(docs)
        assert (len(process.read), old.exists()) == (3, False)

    def test_a_cache_that_cannot_be_written_costs_only_time(self, docs, process, cache):
        cache.write_text("a file")
        assert ingest_docs(docs).problems == ()
        assert ingest_docs(docs).written == 0
        assert len(process.read) == 10

    def test_a_broken_pdf_says_so_with_ocr_too(self, process, tmp_path):
        (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 x")
        with Readers(ocr=True) as readers, pytest.raises(FormatError, match="broken PDF"):
            readers.read(tmp_path / "a.pdf")


# --- lines in reading order ---


def boxes(*lines, left=100, top=100, pitch=40, width=500):
    """Return lines below each other, each as wide as its text, 500 pixels at 50 characters."""
    return [
        Box(left, top + pitch * n, left + width * len(line) / 50, top + pitch * n + 24, line)
        for n, line in enumerate(lines)
    ]


FULL = "The harbour of the island was built by the broth"


class TestLayout:
    def test_paragraphs_and_divided_words(self):
        page = boxes(f"{FULL}-", "ers of the mill, and paid for by the well-known wid", "ow of the miller.")
        page += boxes("A new paragraph begins here.", top=300)
        assert arrange(page) == (
            f"{FULL}ers of the mill, and paid for by the well-known wid ow of the miller.\n\n"
            "A new paragraph begins here."
        )

    def test_short_lines_stay_lines(self):
        assert arrange(boxes("Board of the Harbour", "3 Quay Street", f"{FULL} of ours")) == (
            f"Board of the Harbour\n3 Quay Street\n{FULL} of ours"
        )

    def test_columns_below_a_title_that_spans_them(self):
        title = [Box(100, 20, 1300, 60, "A title over both columns")]
        left = boxes(FULL, FULL, FULL, "who lived there.")
        right = boxes("The second column has", "other things to say, of", "which this is the last.", left=800)
        assert arrange([*right, *title, *left]) == (
            f"A title over both columns\n\n{FULL} {FULL} {FULL} who lived there.\n\n"
            "The second column has other things to say, of which this is the last."
        )

    def test_rows_of_a_table_keep_empty_cells(self):
        page = boxes("Grain", "Oats", "Rye")
        page += [Box(400, 100, 450, 124, "1880"), Box(400, 180, 450, 204, "75")]
        page += [Box(600, 100, 650, 124, "1881"), Box(600, 140, 650, 164, "80"), Box(600, 180, 650, 204, "90")]
        assert arrange(page) == "Grain | 1880 | 1881\nOats |  | 80\nRye | 75 | 90"

    def test_a_date_beside_the_head_of_a_letter_is_no_column(self):
        page = boxes("Our letter of 3 May", "Dear Sir,")
        page += [Box(700, 100, 900, 124, "18 January 1872")]
        page += boxes(f"{FULL}-", "ers of the mill.", left=240, top=180)
        assert arrange(page) == (f"Our letter of 3 May | 18 January 1872\nDear Sir,\n\n{FULL}ers of the mill.")

    def test_parts_of_a_line_are_one_line(self):
        page = [Box(100, 100, 300, 124, "A line that was"), Box(308, 103, 400, 126, "found in parts")]
        assert arrange(page) == "A line that was found in parts"
