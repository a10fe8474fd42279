"""Files whose extension is wrong are read as what they are, or the reason says what they are."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest
from docx import Document as Word
from reportlab.pdfgen.canvas import Canvas

from arag.ingest.pipeline import run_ingest
from fakes import HashEmbeddings

PAGE = "<!DOCTYPE html><html><head><style>p {}</style></head><body><p>The lamp is <b>lit</b>.</p></body></html>"
MAIL = (
    "Received: from mx.example\nFrom: Odvar <o@lanthry.example>\nSubject: Oil\nContent-Type: text/plain\n"
    "Content-Transfer-Encoding: base64\n\nVGhlIGxhbXAgaXMgbGl0Lg==\n"
)


def pdf():
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 720, "The lamp is lit.")
    canvas.save()
    return file.getvalue()


def docx():
    file = io.BytesIO()
    word = Word()
    word.add_paragraph("The lamp is lit.")
    word.save(file)
    return file.getvalue()


def archive(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for name, text in files.items():
            zipped.writestr(name, text)
    return file.getvalue()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.docx", "a.py", "A", "a.eml"])
def test_a_pdf_with_another_name(read, name):
    assert read(name, pdf()).text == "The lamp is lit."


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.pdf", "a.doc", "a.xls", "a.csv", "A", "a.eml"])
def test_a_page_with_another_name(read, name):
    assert read(name, PAGE).text == "The lamp is lit."
    assert read(name, f"\ufeff<!-- saved -->\n<?xml version='1.0'?>{PAGE}").text == "The lamp is lit."


@pytest.mark.parametrize("name", ["a.txt", "a.pdf", "a.doc", "a.md", "a.html"])
def test_a_mail_with_another_name(read, name):
    assert read(name, MAIL).text.endswith("The lamp is lit.")


@pytest.mark.parametrize("name", ["a.txt", "a.doc", "a.pdf", "a.xlsx", "a.html"])
def test_a_document_of_word_with_another_name(read, name):
    assert read(name, docx()).text == "The lamp is lit."


@pytest.mark.parametrize("name", ["a.doc", "a.docx", "a.txt", "a.pdf"])
def test_rich_text_with_another_name(read, name):
    assert read(name, r"{\rtf1\ansi The lamp is lit.\par}").text == "The lamp is lit."


@pytest.mark.parametrize("name", ["a.pdf", "a.doc", "a.docx", "a.odt", "a.epub", "a.msg"])
def test_a_text_with_another_name(read, name):
    assert read(name, "The lamp is lit.").text == "The lamp is lit."
    assert read(name, "Die Lampe hängt schräg über der Tür, und die Wärter grüßen.".encode("cp1252")).text


@pytest.mark.parametrize("name", ["a.xls", "a.xlsx", "a.ods"])
def test_rows_with_another_name(read, name):
    assert read(name, "Ship\tTons\tCrew\nGull\t40\t6\n").text == "Ship | Tons | Crew\nShip: Gull | Tons: 40 | Crew: 6"


@pytest.mark.parametrize("name", ["a.xls", "a.xlsx", "a.ods"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_rows_in_unicode_with_another_name(read, name, encoding):
    data = "Πλοίο\tΤόνοι\tΛιμάνι\nΓλάρος\t40\t\n".encode(encoding)
    assert read(name, data).text == "Πλοίο | Τόνοι | Λιμάνι\nΠλοίο: Γλάρος | Τόνοι: 40"


@pytest.mark.parametrize("name", ["a.doc", "a.xls", "a.txt", "a.mht"])
@pytest.mark.parametrize("fields", ["", "Date: Mon, 3 Jun 2024 08:00:00 +0000\n", "X-Made-By: a wiki\n"])
def test_a_page_with_its_pictures_in_one_file(read, name, fields):
    head = f'{fields}MIME-Version: 1.0\nContent-Type: multipart/related;\n boundary="b"; type="text/html"\n\n'
    style = "--b\nContent-Type: text/css\n\np {}\n"
    page = f"--b\nContent-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n{PAGE}\n{style}--b--\n"
    assert read(name, head + page).text.endswith("The lamp is lit.")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("name", "root", "expected"),
    [
        ("a.xls", '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">', "a workbook of Excel 2003 in XML"),
        (
            "a.doc",
            '<w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml">',
            "a document of Word 2003 in XML",
        ),
        (
            "a.docx",
            '<pkg:package xmlns:pkg="http://schemas.microsoft.com/office/2006/xmlPackage">',
            "a document of Office in XML",
        ),
    ],
)
def test_documents_of_office_in_xml_are_named(reason, name, root, expected, encoding):
    data = f'<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n{root}'.encode(encoding)
    assert reason(name, data).startswith(f"{expected}: save it as .")


def test_a_program_or_a_text_about_another_kind_stays_what_it_is(read):
    assert read("a.php", PAGE).text == PAGE
    assert read("a.txt", "From: Odvar\nSubject: Oil\n\nThe lamp is lit.").text.startswith("From: Odvar")
    assert read("a.md", "A page begins with <html>, a PDF with %PDF-.").text.startswith("A page")
    assert read("a.txt", "From here on, at 10:30, it rains.\nNote: take a coat.").text.startswith("From here")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"The lamp is lit.", mtime=0), "a gzip archive: unpack it"),
        (archive(a="The lamp is lit."), "a zip archive: unpack it"),
        (bytes(range(256)) * 20, "a binary file: it has no text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1", "a picture: rename it to .png, and use --ocr"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a picture: rename it to .jpg, and use --ocr"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.md", "A", "a.html", "a.csv"])
def test_what_has_no_text_is_named(reason, name, data, expected):
    assert reason(name, data) == expected


def test_a_picture_that_is_named_like_a_document(reason):
    assert reason("a.pdf", b"\xff\xd8\xff\xe0\0\x10JFIF\0") == "a picture: rename it to .jpg, and use --ocr"


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.json", "a.jsonl", "a.ipynb", "a.xls", "a.eml"])
def test_an_empty_file_is_called_empty(tmp_path, name):
    from test_records import read

    documents, problems = read(tmp_path / name, b"")
    assert documents == []
    assert [problem.reason for problem in problems] == ["the file is empty"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.html"])
def test_a_text_in_utf_16_without_its_mark(read, name, encoding):
    assert (
        read(name, "The lamp of Größe is lit – at noon.\n".encode(encoding)).text.strip()
        == "The lamp of Größe is lit – at noon."
    )


@pytest.mark.parametrize(("name", "data"), [("a.txt", b""), ("a.txt", b" \n"), ("a.docx", b"PK\3\4"), ("a.jsonl", b"")])
def test_a_file_that_can_no_longer_be_read_keeps_its_text_and_the_run_says_so(tmp_path, name, data):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "b.txt").write_text("The oil costs six marks.")
    (docs / name).write_bytes({".docx": docx(), ".jsonl": b'{"text": "Lit."}'}.get(name[1:], b"The lamp is lit."))
    options = {"embedder": HashEmbeddings()}
    assert run_ingest(docs, tmp_path / "index", **options).problems == ()
    (docs / name).write_bytes(data)
    summary = run_ingest(docs, tmp_path / "index", **options)
    assert summary.documents == 2
    (problem,) = summary.problems
    assert problem.reason.endswith("; its earlier text stays in the index until you remove it (arag remove)")
    (docs / "c.txt").write_text("")
    (_, of_new_file) = run_ingest(docs, tmp_path / "index", **options).problems
    assert of_new_file.reason == "the file is empty"
