"""Documents as companies have them: made with the formats' own libraries, and shipped by installed packages."""

from __future__ import annotations

import base64
import io
import json
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from email.message import EmailMessage
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import docx
import nbformat
import openpyxl
import pytest
from docutils.core import publish_string
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.workbook.protection import WorkbookProtection
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from arag import ingest
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Limits, Problem
from arag.ingest.formats.rst import read_rst
from arag.ingest.formats.tables import sheet_lines, table_text
from arag.ingest.readers import read_documents
from arag.retrieval.tokens import load_token_counter
from fakes import HashEmbeddings

READ_AND_MEASURE = """
import resource, sys
from arag.ingest.documents import Limits
from arag.ingest.readers import read_documents
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(*read_documents([sys.argv[1]], limits=Limits(max_characters=5_000_000)))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
TEXT = "The Vellin Light was first lit in 1834. Its keeper was Hesper Quillorne."


def read(path, **options):
    items = list(read_documents([path], **options))
    return [i for i in items if isinstance(i, Document)], [i for i in items if isinstance(i, Problem)]


def read_one(path, data=None, **options):
    if data is not None:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    (document,), problems = read(path, **options)
    assert problems == []
    return document


def reason(path, data=None, **options):
    """Return why a file is left out, which names the file."""
    if data is not None:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    documents, (problem,) = read(path, **options)
    assert documents == []
    assert problem.source == str(path)
    return problem.reason


def saved(document):
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def zipped(parts, source=None):
    """Return an archive of these parts, in place of those of another archive."""
    old = {}
    if source is not None:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            old = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (old | parts).items():
            archive.writestr(name, data)
    return buffer.getvalue()


def word(*paragraphs):
    document = docx.Document()
    for paragraph in paragraphs or (TEXT,):
        document.add_paragraph(paragraph)
    return document


def workbook(*rows, title="Sheet"):
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows or (["Name", "Year"], ["Ada", 1815]):
        book.active.append(row)
    return book


def odt(rst):
    return publish_string(rst, writer="odt", settings_overrides={"report_level": 5})


def epub(chapters, *, extra=None, metadata="<dc:title>The Lamp</dc:title><dc:creator>H. Quillorne</dc:creator>"):
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in reversed(range(len(chapters))))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"{metadata}</metadata><manifest>{items}"
        '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/></manifest>'
        f'<spine><itemref idref="nav"/>{spine}</spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    pages = {f"OEBPS/text/c {n}.xhtml": page for n, page in enumerate(chapters)}
    return zipped({"META-INF/container.xml": container, "OEBPS/book.opf": opf, **pages, **(extra or {})})


def mail(text="See the lamp.", subject="The lamp"):
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Hesper <h@vellin.example>", "m@vellin.example"
    message.set_content(text)
    return message


class TestWord:
    def test_headings_lists_and_tables(self, tmp_path):
        document = docx.Document()
        document.add_paragraph("The lights", style="Title")
        document.add_heading("Keepers", 1)
        document.add_paragraph("First\tsecond.\nNext line.")
        document.add_heading("In order", 2)
        for style in ("List Bullet", "List Number"):
            document.add_paragraph(f"a {style}", style=style)
        table = document.add_table(rows=3, cols=3)
        for row, cells in zip(
            table.rows, [["Name", "From", "To"], ["Hesper", "1834", "1850"], ["Mattick", "", "1860"]], strict=True
        ):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
        found = read_one(tmp_path / "a.docx", saved(document))
        assert found.title == "The lights"
        assert found.text == (
            "# The lights\n\n# Keepers\n\nFirst second.\nNext line.\n\n## In order\n\n"
            "- a List Bullet\n- a List Number\n\n"
            "Name | From | To\nName: Hesper | From: 1834 | To: 1850\nName: Mattick | To: 1860"
        )

    def test_a_form_keeps_its_rows(self, tmp_path):
        document = docx.Document()
        table = document.add_table(rows=2, cols=2)
        for cell, text in zip(
            (c for row in table.rows for c in row.cells), ("Name", "Ada", "Born", "1815"), strict=True
        ):
            cell.text = text
        path = tmp_path / "a.docx"
        assert read_one(path, saved(document)).text == "Name | Ada\nBorn | 1815"
        table.rows[0]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {nsdecls('w')}/>"))
        assert read_one(path, saved(document)).text == "Name | Ada\nName: Born | Ada: 1815"

    def test_merged_cells_and_frames(self, tmp_path):
        document = docx.Document()
        table = document.add_table(rows=3, cols=3)
        texts = [["Port", "Ship", "Tons"], ["Vellin", "Petrel", "90"], ["", "Gull", "40"]]
        for row, cells in zip(table.rows, texts, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        frame = document.add_table(rows=1, cols=1).cell(0, 0)
        frame.paragraphs[0].text = "In a frame."
        frame.add_paragraph("Second paragraph.")
        assert read_one(tmp_path / "a.docx", saved(document)).text == (
            "Port | Ship | Tons\nPort: Vellin | Ship: Petrel | Tons: 90\nPort: Vellin | Ship: Gull | Tons: 40\n\n"
            "In a frame.\n\nSecond paragraph."
        )

    def test_what_stands_around_runs(self, tmp_path):
        """Inserted and deleted text, links, content controls, text boxes, fields."""
        space = nsdecls("w")
        inner = (
            "<w:r><w:t>Kept </w:t></w:r><w:ins><w:r><w:t>inserted </w:t></w:r></w:ins>"
            "<w:del><w:r><w:delText>deleted </w:delText></w:r></w:del>"
            "<w:moveFrom><w:r><w:t>moved </w:t></w:r></w:moveFrom>"
            "<w:hyperlink><w:r><w:t>link </w:t></w:r></w:hyperlink>"
            "<w:sdt><w:sdtContent><w:r><w:t>control </w:t></w:r></w:sdtContent></w:sdt>"
            '<w:r><w:instrText>PAGE \\* MERGEFORMAT</w:instrText></w:r><w:fldSimple w:instr="X"><w:r><w:t>field'
            "</w:t></w:r></w:fldSimple><w:r><w:noBreakHyphen/><w:t>end</w:t></w:r>"
            '<w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice>'
            "<w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent></mc:Choice><mc:Fallback>"
            "<w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent></mc:Fallback>"
            "</mc:AlternateContent></w:r>"
        )
        document = docx.Document()
        body = document.element.body
        body.insert(0, parse_xml(f"<w:sdt {space}><w:sdtContent><w:p>{inner}</w:p></w:sdtContent></w:sdt>"))
        text = read_one(tmp_path / "a.docx", saved(document)).text
        assert text == "Kept inserted link control field-end\n\nIn a box."

    def test_a_footnote_follows_its_paragraph(self, tmp_path):
        document = word("Before", "After")
        run = document.paragraphs[0].add_run()._r
        run.append(parse_xml(f'<w:footnoteReference {nsdecls("w")} w:id="2"/>'))
        note = (
            f'<w:footnotes {nsdecls("w")}><w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>'
            '<w:footnote w:id="2"><w:p><w:r><w:t>The note.</w:t></w:r></w:p></w:footnote></w:footnotes>'
        )
        data = saved(document)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            relations = archive.read("word/_rels/document.xml.rels").decode()
        kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
        added = f'<Relationship Id="rN" Type="{kind}" Target="footnotes.xml"/></Relationships>'
        parts = {
            "word/footnotes.xml": note,
            "word/_rels/document.xml.rels": relations.replace("</Relationships>", added),
        }
        assert read_one(tmp_path / "a.docx", zipped(parts, data)).text == "Before\n\nThe note.\n\nAfter"

    def test_headings_of_styles_with_other_names(self, tmp_path):
        document = docx.Document()
        style = document.styles.add_style("Abschnitt", 1)
        style.base_style = document.styles["Heading 2"]
        document.add_paragraph("Der Turm", style="Abschnitt")
        properties = document.add_paragraph("Das Licht")._p.get_or_add_pPr()
        properties.append(parse_xml(f'<w:outlineLvl {nsdecls("w")} w:val="2"/>'))
        assert read_one(tmp_path / "a.docx", saved(document)).text == "## Der Turm\n\n### Das Licht"

    def test_a_cell_that_reaches_down_many_rows_hits_the_limit(self, tmp_path):
        document = docx.Document()
        table = document.add_table(rows=40, cols=2)
        table.cell(0, 0).text = "long " * 2_000
        table.cell(0, 0).merge(table.cell(39, 0))
        data = saved(document)
        assert len(read_one(tmp_path / "a.docx", data).text) > 390_000
        found = reason(tmp_path / "a.docx", data, limits=Limits(max_characters=100_000))
        assert found.startswith("more than 100,000 characters")

    def test_numbers_of_thousands_of_digits(self, tmp_path):
        document = word()
        level = parse_xml(f'<w:outlineLvl {nsdecls("w")} w:val="{"1" * 5_000}"/>')
        document.paragraphs[0]._p.get_or_add_pPr().append(level)
        assert read_one(tmp_path / "a.docx", saved(document)).text == TEXT

    def test_macros_are_ignored(self, tmp_path):
        data = zipped({"word/vbaProject.bin": b"\xd0\xcf\x11\xe0 Shell('rm')"}, saved(word()))
        assert read_one(tmp_path / "a.docm", data).text == TEXT


class TestSlides:
    @pytest.fixture
    def data(self):
        deck = Presentation()
        first = deck.slides.add_slide(deck.slide_layouts[1])
        first.shapes.title.text = "The Vellin Light"
        first.placeholders[1].text = "Lit in 1834\nBuilt by Mattick"
        first.notes_slide.notes_text_frame.text = "Say thanks."
        second = deck.slides.add_slide(deck.slide_layouts[6])
        box = second.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
        box.text_frame.text = "A free text."
        table = second.shapes.add_table(2, 3, Inches(1), Inches(2), Inches(5), Inches(1)).table
        for n, text in enumerate(("Ship", "Tons", "Port", "Petrel", "90", "Vellin")):
            table.cell(n // 3, n % 3).text = text
        group = second.shapes.add_group_shape()
        group.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1)).text_frame.text = "In a group."
        chart = CategoryChartData()
        chart.categories = ["North", "South"]
        chart.add_series("2020", (8.2, 3))
        chart.add_series("2021", (9, 4.5))
        second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(3), Inches(4), Inches(3), chart)
        return saved(deck)

    def test_text(self, tmp_path, data):
        found = read_one(tmp_path / "a.pptx", data)
        assert found.title == "The Vellin Light"
        assert found.text == (
            "# The Vellin Light\n\n- Lit in 1834\n- Built by Mattick\n\nNotes: Say thanks.\n\n"
            "# Slide 2\n\nA free text.\n\nShip | Tons | Port\nShip: Petrel | Tons: 90 | Port: Vellin\n\nIn a group.\n\n"
            "Category | 2020 | 2021\nCategory: North | 2020: 8.2 | 2021: 9\nCategory: South | 2020: 3 | 2021: 4.5"
        )

    def test_a_chart_with_the_same_label_twice(self, tmp_path):
        deck = Presentation()
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        chart = CategoryChartData()
        chart.categories = ["North", "North"]
        chart.add_series("Tons", (8, 9))
        slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(3), Inches(4), Inches(3), chart)
        text = read_one(tmp_path / "a.pptx", saved(deck)).text
        assert text.endswith("Category: North | Tons: 8\nCategory: North | Tons: 9")

    def test_a_slide_is_a_page(self, tmp_path, data):
        found = read_one(tmp_path / "a.pptx", data)
        assert [found.text[start:].split("\n")[0] for start in found.page_starts] == ["# The Vellin Light", "# Slide 2"]

    def test_none(self, tmp_path):
        assert reason(tmp_path / "a.pptx", saved(Presentation())) == "not a presentation, or one without slides"
        assert reason(tmp_path / "b.pptx", saved(word())) == "not a presentation, or one without slides"


class TestSheets:
    def test_rows_have_column_names(self, tmp_path):
        book = workbook(["Name", "Born", None], ["Ada", 1815, "x"], [None, None], ["Only one"], title="People")
        book.create_sheet("Empty")
        ships = book.create_sheet("Ships & boats")
        ships["B3"], ships["C3"], ships["B4"], ships["C4"] = "Ship", "Tons", "Grey\nPetrel", 90.5
        found = read_one(tmp_path / "a.xlsx", saved(book))
        assert found.title == "a"
        assert found.text == (
            "# People\n\nName | Born\nName: Ada | Born: 1815 | x\n\nOnly one\n\n"
            "# Ships & boats\n\nShip | Tons\nShip: Grey Petrel | Tons: 90.5"
        )

    def test_values_as_people_see_them(self, tmp_path):
        import datetime as dt

        book = workbook(
            ["What", "Value"],
            ["date", dt.date(2024, 3, 31)],
            ["moment", dt.datetime(2024, 3, 31, 14, 5)],  # noqa: DTZ001 - Excel has no time zones
            ["time", dt.time(9, 30)],
            ["share", 0.153],
            ["sum", 0.1 + 0.2],
            ["whole", 1e6],
            ["yes", True],
            ["error", "#N/A"],
        )
        book.active["B5"].number_format = "0.0%"
        book.active["A10"], book.active["B10"] = "own date", 45_382
        book.active["B10"].number_format = "[$-407]d. mmmm yyyy;@"
        book.active["A11"], book.active["B11"] = "red", 5
        book.active["B11"].number_format = '[Red]0.00" days"'
        lines = read_one(tmp_path / "a.xlsx", saved(book)).text.split("\n")[3:]
        assert [line.partition("Value: ")[2] for line in lines if "Value: " in line] == [
            "2024-03-31", "2024-03-31 14:05", "09:30", "15.3%", "0.3", "1000000", "TRUE", "2024-03-31", "5",
        ]  # fmt: skip
        assert "What: error" in lines

    def test_without_names_empty_cells_keep_their_place(self):
        assert "".join(sheet_lines([["5.1", "3.5"], ["4.9", "", "7"]])) == "5.1 | 3.5\n4.9 |  | 7\n"

    def test_years_are_names_and_one_year_is_a_value(self):
        assert "".join(sheet_lines([["Region", "2020", "2021"], ["North", "5", "6"]])) == (
            "Region | 2020 | 2021\nRegion: North | 2020: 5 | 2021: 6\n"
        )
        assert "".join(sheet_lines([["Ada", "1815"], ["Grace", "1906"]])) == "Ada | 1815\nGrace | 1906\n"

    def test_several_tables_on_a_sheet(self):
        rows = [["Dues"], ["Ship", "Tons"], ["Petrel", "90"], [], ["Keeper", "Light"], ["Hesper", "Vellin"]]
        assert "".join(sheet_lines(rows)) == (
            "Dues\n\nShip | Tons\nShip: Petrel | Tons: 90\n\nKeeper | Light\nKeeper: Hesper | Light: Vellin\n"
        )

    def test_a_row_is_a_sentence(self, tmp_path):
        found = read_one(tmp_path / "a.csv", "Region,2020,2021\nNorth,5,6\nSouth,7,8\n")
        (chunk,) = chunk_document(found, chunk_tokens=1_000, count=load_token_counter().count_batch)
        sentences = [chunk.sentence_text(n) for n in range(len(chunk.sentences))]
        assert sentences == [
            "Region | 2020 | 2021",
            "Region: North | 2020: 5 | 2021: 6",
            "Region: South | 2020: 7 | 2021: 8",
        ]
        assert all(sentence.table for sentence in chunk.sentences)

    def test_single_cells_are_kept_apart(self):
        assert table_text([["A", "B", "C"], ["1", "", ""], ["2", "", ""]]) == "A | B | C\n\nA: 1\n\nA: 2"

    def test_protected_cells_are_read(self, tmp_path):
        book = workbook()
        book.security = WorkbookProtection(workbookPassword="x", lockStructure=True)
        book.active.protection.sheet = True
        assert "Name: Ada | Year: 1815" in read_one(tmp_path / "a.xlsm", saved(book)).text

    def test_durations_are_not_dates(self, tmp_path):
        book = workbook(["What", "Value"], ["long", 37.5 / 24], ["short", 0.5], ["built in", 1.00001])
        for cell, code in (("B2", "[h]:mm"), ("B3", "[hh]:mm:ss"), ("B4", "[h]:mm:ss")):
            book.active[cell].number_format = code
        assert read_one(tmp_path / "a.xlsx", saved(book)).text.split("\n")[3:] == [
            "What: long | Value: 37:30", "What: short | Value: 12:00", "What: built in | Value: 24:00:01",
        ]  # fmt: skip

    def test_dates_after_the_year_9999(self, tmp_path):
        book = workbook(["What", "Value"], ["late", 2_958_465.9999999])
        book.active["B2"].number_format = "yyyy-mm-dd hh:mm"
        assert read_one(tmp_path / "a.xlsx", saved(book)).text.endswith("What: late | Value: 2958465.9999999")

    def test_a_long_text_in_many_cells_hits_the_limit_before_it_is_copied(self, tmp_path):
        texts = f"<sst><si><t>{'x' * 100_000}</t></si></sst>"
        cells = "".join('<c t="s"><v>0</v></c>' for _ in range(300)) + f'<c t="s"><v>{"1" * 5_000}</v></c>'
        data = saved(workbook())
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            relations = archive.read("xl/_rels/workbook.xml.rels").decode()
        added = '<Relationship Id="rS" Type="x/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
        parts = {
            "xl/_rels/workbook.xml.rels": relations.replace("</Relationships>", added),
            "xl/sharedStrings.xml": texts,
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData><row>{cells}</row></sheetData></worksheet>",
        }
        tracemalloc.start()
        found = reason(tmp_path / "a.xlsx", zipped(parts, data), limits=Limits(max_characters=1_000_000))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.startswith("more than 1,000,000 characters")
        assert most < 10_000_000

    def test_many_rows_with_one_cell_far_away_take_no_time(self, tmp_path):
        rows = "".join(f'<row r="{n}"><c r="XFD{n}"><v>{n}</v></c></row>' for n in range(1, 3_001))
        parts = {"xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{rows}</sheetData></worksheet>"}
        began = time.monotonic()
        assert read_one(tmp_path / "a.xlsx", zipped(parts, saved(workbook()))).text.endswith("\n\n3000")
        assert time.monotonic() - began < 30

    def test_cells_far_away_take_no_memory(self, tmp_path):
        book = workbook()
        book.active["XFD1048576"] = "far"
        assert read_one(tmp_path / "a.xlsx", saved(book)).text.endswith("far")


class TestDelimited:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_delimiters_and_quotes(self, tmp_path, delimiter):
        rows = ["Name,Note", '"Ada, Countess","one\ntwo ""three"""', "Grace,"]
        data = "\r\n".join(rows).replace(",", delimiter).replace(f"Ada{delimiter}", "Ada,")
        found = read_one(tmp_path / "a.csv", data.encode("utf-8-sig"))
        assert found.text == 'Name | Note\nName: Ada, Countess | Note: one two "three"\n\nName: Grace'

    @pytest.mark.parametrize("title", ["Report, 2024\n", "Report, of, all, ports\n\n"])
    def test_a_title_above_decimal_commas(self, tmp_path, title):
        found = read_one(tmp_path / "a.csv", title + "Ship;Tons;Draught\nGull;40,5;2,5\nPetrel;90,0;3,1\n")
        assert "Ship | Tons | Draught\nShip: Gull | Tons: 40,5 | Draught: 2,5\n" in found.text

    def test_blank_lines_between_rows(self, tmp_path):
        found = read_one(tmp_path / "a.csv", "Ship,Port\n\nGull,Vellin\n\nPetrel,Oster\n\n\nKeeper,Light,Year\na,b,c\n")
        assert found.text == (
            "Ship | Port\nShip: Gull | Port: Vellin\nShip: Petrel | Port: Oster\n\n"
            "Keeper | Light | Year\nKeeper: a | Light: b | Year: c"
        )

    def test_a_name_that_two_columns_have(self, tmp_path):
        found = read_one(tmp_path / "a.csv", "Ship,Note,Note\nGull,old,white\n")
        assert found.text.endswith("Ship: Gull | Note: old | Note: white")

    def test_tsv(self, tmp_path):
        assert read_one(tmp_path / "a.tsv", "A\tB, C\n1\t2").text == "A | B, C\nA: 1 | B, C: 2"

    def test_another_encoding(self, tmp_path):
        assert "not valid UTF-8" in reason(tmp_path / "a.csv", "Käse;1".encode("cp1252"))
        assert (
            read_one(tmp_path / "b.csv", "Käse;Jahr\nBrie;1".encode("utf-16")).text
            == "Käse | Jahr\nKäse: Brie | Jahr: 1"
        )

    def test_a_quotation_mark_that_is_never_closed(self, tmp_path):
        found = reason(tmp_path / "a.csv", 'Name,Note\nAda,"x\n' + "Grace,y\n" * 30_000)
        assert "field larger than field limit (131072); is a quotation mark missing?" in found

    def test_a_million_rows_hit_the_limit_in_bounded_memory(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("Number,Name\n" + "".join(f"{n},name {n}\n" for n in range(1_000_000)))
        done = subprocess.run(
            [sys.executable, "-c", READ_AND_MEASURE, path], capture_output=True, text=True, check=True
        )
        found, memory = done.stdout.splitlines()
        assert f"{path}: more than 5,000,000 characters of text; raise the limit with --max-characters (in P" in found
        assert int(memory) < 8 * path.stat().st_size

    def test_long_names_of_columns_do_not_multiply(self, tmp_path):
        data = ",".join(f"{'n' * 90}{n}" for n in range(1_000)) + "\n" + ("1," * 1_000 + "\n") * 1_000
        began = time.monotonic()
        assert reason(tmp_path / "a.csv", data, limits=Limits(max_characters=1_000_000)).startswith(
            "more than 1,000,000"
        )
        assert time.monotonic() - began < 30


class TestOtherFormats:
    def test_odt(self, tmp_path):
        source = (
            "The Light\n=========\n\nIt was *lit* [#]_ in 1834.\n\nKeepers\n-------\n\n* Hesper\n* Mattick\n\n"
            "====  =====  ====\nShip  Tons   Port\n====  =====  ====\nGull  40     Vellin\n====  =====  ====\n\n"
            ".. [#] A note.\n"
        )
        found = read_one(tmp_path / "a.odt", odt(source))
        assert found.title == "The Light"
        for part in (
            "# The Light\n\n",
            "It was lit",
            "A note.",
            "# Keepers\n\n- Hesper\n- Mattick",
            "Ship | Tons | Port\nShip: Gull | Tons: 40 | Port: Vellin",
        ):
            assert part in found.text

    def test_epub(self, tmp_path):
        first = "<html><head><title/></head><body><h1>One</h1><p>The lamp.</p></body></html>"
        second = '<?xml version="1.0" encoding="utf-8"?><html><body><h1>Zwei</h1><p>Größe.</p></body></html>'
        found = read_one(tmp_path / "a.epub", epub([second, first]))
        assert (found.title, found.metadata) == ("The Lamp", {"author": "H. Quillorne"})
        assert found.text == "# One\n\nThe lamp.\n\n# Zwei\n\nGröße."

    def test_cells_of_an_odt_that_are_repeated(self, tmp_path):
        data = odt("====  =====\nShip  Tons\n====  =====\nGull  40\n====  =====\n")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            xml = archive.read("content.xml").decode()
        cell = f'<table:table-cell table:number-columns-repeated="99"><text:p>{"x" * 9_000}</text:p></table:table-cell>'
        xml = xml.replace("</table:table-row>", f"{cell}</table:table-row>", 1)
        limits = Limits(max_characters=100_000)
        found = reason(tmp_path / "a.odt", zipped({"content.xml": xml}, data), limits=limits)
        assert found.startswith("more than 100,000 characters")

    def test_a_spine_with_fragments(self, tmp_path):
        data = epub(["<p>The lamp.</p>"])
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            opf = archive.read("OEBPS/book.opf").decode()
        parts = {"OEBPS/book.opf": opf.replace(".xhtml", ".xhtml#start")}
        assert read_one(tmp_path / "a.epub", zipped(parts, data)).text == "The lamp."

    @pytest.mark.parametrize(
        ("source", "text"),
        [
            ("This *is unclosed text.", "This *is unclosed text."),
            ("This ``is unclosed text.", "This ``is unclosed text."),
            (".. role:: x(raw)\n\nText.", "Text."),
        ],
    )
    def test_faulty_rst(self, tmp_path, source, text):
        found = read_one(tmp_path / "a.rst", source)
        assert (found.title, text in found.text) == ("a", True)

    def test_the_title_of_an_rst_with_several_sections(self, tmp_path):
        found = read_one(tmp_path / "a.rst", "Text.\n\nOne *x*\n=======\n\na\n\nTwo\n===\n\nb\n")
        assert found.title == "One x"

    def test_a_role_holds_for_its_own_file_only(self, tmp_path):
        first, second = tmp_path / "a.rst", tmp_path / "b.rst"
        text = "See :term:`lamp <x>`."
        assert read_one(first, f".. role:: term(math)\n\n{text}").text != "See lamp."
        assert read_one(second, text).text == "See lamp."

    @pytest.mark.parametrize("source", ["\n" * 100_000, ":a" * 50_000, f":a:`{' ' * 50_000}x`"])
    def test_rst_takes_no_time(self, source):
        began = time.monotonic()
        read_rst(b"Text " + source.encode())
        assert time.monotonic() - began < 30

    def test_characters_of_a_notebook_that_cannot_be_stored(self, tmp_path):
        data = r'{"cells": [{"cell_type": "markdown", "source": "a\ud83d\u0000\rb"}]}'
        assert read_one(tmp_path / "a.ipynb", data).text == "a\ufffd\nb"

    def test_rst(self, tmp_path):
        found = read_one(
            tmp_path / "a.rst",
            "Title\n=====\n\nSee :class:`~lamp.Light`, :ref:`the keeper <keeper>` and ``code``.\n\nSub\n---\n\n"
            ".. versionadded:: 1.2\n   The horn.\n\n.. autofunction:: lamp.light\n   :noindex:\n\n   Lights it.\n\n"
            ".. include:: /etc/passwd\n\n.. raw:: html\n\n   <b>raw</b>\n\n"
            ".. |x| replace:: Vellin\n\nThe |x| Light.\n\n"
            "=====  ====\n       Tons\n=====  ====\nGull   40\n=====  ====\n",
        )
        assert found.title == "Title"
        assert found.text == (
            "# Title\n\nSee lamp.Light, the keeper and code.\n\n## Sub\n\n1.2 The horn.\n\nlamp.light\n\nLights it.\n\n"
            "The Vellin Light.\n\n| Tons\nGull | 40"
        )

    def test_a_notebook(self, tmp_path):
        picture = base64.b64encode(bytes(300_000)).decode()
        v4 = nbformat.v4
        cells = [
            v4.new_markdown_cell("# Lamps\n\nText."),
            v4.new_code_cell(
                "print(1)",
                outputs=[
                    v4.new_output("stream", text="\x1b[31m1\x1b[0m\n"),
                    v4.new_output("display_data", data={"image/png": picture, "text/plain": "<Figure>"}),
                    v4.new_output("display_data", data={"image/png": picture}),
                    v4.new_output("error", ename="ValueError", evalue="dark", traceback=["x"]),
                ],
            ),
        ]
        book = v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
        found = read_one(tmp_path / "a.ipynb", nbformat.writes(book))
        assert found.title == "Lamps"
        assert found.text == (
            "# Lamps\n\nText.\n\n```python\nprint(1)\n```\n\n```\n1\n```\n\n"
            "```\n<Figure>\n```\n\n```\nValueError: dark\n```"
        )

    @pytest.mark.parametrize("data", ["{}", "[]", '{"cells": 7}', "no JSON", '{"worksheets": []}', "[" * 100_000])
    def test_no_notebook(self, tmp_path, data):
        assert reason(tmp_path / "a.ipynb", data).startswith("not a notebook: ")

    def test_an_old_notebook(self, tmp_path):
        cells = [
            {"cell_type": "code", "input": ["x = 1"], "outputs": [{"text": ["1"]}]},
            {"cell_type": "markdown", "source": 7},
            7,
        ]
        assert (
            read_one(tmp_path / "a.ipynb", json.dumps({"worksheets": [{"cells": cells}]})).text
            == "```\nx = 1\n```\n\n```\n1\n```"
        )


class TestMails:
    def test_a_mail(self, tmp_path):
        message = mail("Grüße vom Turm.", "Das Licht: Grüße")
        message["Date"] = "Mon, 01 Jan 2024 10:00:00 +0000"
        message.add_alternative("<p>HTML</p>", subtype="html")
        found = read_one(tmp_path / "a.eml", message.as_bytes())
        assert found.title == "Das Licht: Grüße"
        assert found.metadata == {"from": "Hesper <h@vellin.example>", "date": "Mon, 01 Jan 2024 10:00:00 +0000"}
        assert found.text == (
            "# Das Licht: Grüße\n\nFrom: Hesper <h@vellin.example>\nTo: m@vellin.example\n"
            "Date: Mon, 01 Jan 2024 10:00:00 +0000\n\nGrüße vom Turm."
        )

    def test_html_in_its_own_encoding(self, tmp_path):
        message = mail()
        message.set_content("<meta charset='iso-8859-1'><p>Größe</p>", subtype="html", charset="iso-8859-1")
        assert read_one(tmp_path / "a.eml", message.as_bytes()).text.endswith("\n\nGröße")

    def test_attachments(self, tmp_path):
        inner = mail("The inner text.", "Inner")
        inner.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="Prüfung.pdf")
        message = mail()
        message.add_attachment("Name,Year", subtype="csv", filename="a.csv")
        message.add_attachment(inner)
        message.add_attachment(b"\x89PNG", maintype="image", subtype="png", disposition="inline", cid="<x>")
        (tmp_path / "a.eml").write_bytes(message.as_bytes())
        (document,), (problem,) = read(tmp_path / "a.eml")
        for part in (
            "See the lamp.",
            "Attachment: a.csv\n\nName,Year",
            "# Inner",
            "The inner text.",
            "Attachment: Prüfung.pdf",
        ):
            assert part in document.text
        assert problem.source == f"{tmp_path}/a.eml, item 4"
        assert problem.reason == "the attachment Prüfung.pdf is left out: application/pdf is not read"

    def test_the_first_version_with_text_is_read(self, tmp_path):
        message = mail(" \n")
        message.add_alternative("<p>In HTML.</p>", subtype="html")
        assert read_one(tmp_path / "a.eml", message.as_bytes()).text.endswith("\n\nIn HTML.")

    def test_attachments_of_another_version_are_named(self, tmp_path):
        data = (
            "From: a\nSubject: x\nContent-Type: multipart/alternative; boundary=a\n\n"
            "--a\nContent-Type: text/plain\n\nPlain.\n"
            "--a\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>Rich.</p>\n"
            '--b\nContent-Type: application/pdf; name="plan.pdf"\nContent-Disposition: inline\n\n%PDF\n--b--\n'
            "--a--\n"
        )
        (tmp_path / "a.eml").write_text(data)
        (document,), (problem,) = read(tmp_path / "a.eml")
        assert document.text.endswith("Plain.\n\nAttachment: plan.pdf")
        assert "the attachment plan.pdf is left out" in problem.reason

    def test_a_text_without_a_declared_encoding(self, tmp_path):
        data = "From: a\nSubject: x\n\nGrößer für 5 €.".encode("windows-1252")
        assert read_one(tmp_path / "a.eml", data).text.endswith("\n\nGrößer für 5 €.")
        page = '<meta charset="koi8-r"><p>маяк</p>'.encode("koi8-r")
        data = b"From: a\nSubject: x\nContent-Type: text/html\n\n" + page
        assert read_one(tmp_path / "b.eml", data).text.endswith("\n\nмаяк")

    @pytest.mark.parametrize("charset", ["undefined", "idna", "a\0b"])
    def test_an_encoding_that_python_cannot_use(self, tmp_path, charset):
        data = f'From: a\nSubject: x\nContent-Type: text/plain; charset="{charset}"\n\nTéxt.'
        (tmp_path / "a.eml").write_text(data)
        (document,), (problem,) = read(tmp_path / "a.eml")
        assert (document.title, problem.reason[:21]) == ("x", "its text is left out:")

    def test_a_text_in_an_unknown_encoding_is_named(self, tmp_path):
        data = mail().as_bytes().replace(b'charset="utf-8"', b'charset="klingon"')
        (tmp_path / "a.eml").write_bytes(data)
        (document,), (problem,) = read(tmp_path / "a.eml")
        assert "The lamp" in document.text
        assert problem.reason == "its text is left out: it declares an unknown encoding, 'klingon'"

    def test_nested_too_deeply(self, tmp_path):
        depth = 1_500
        head = "From: a\nSubject: x\n"
        data = head + "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(depth))
        assert "nested too deeply" in reason(tmp_path / "a.eml", data)

    def test_long_headers_take_no_time(self, tmp_path):
        began = time.monotonic()
        parameters = "; ".join(f"a{n}=b" for n in range(100_000))
        data = f"From: a\nContent-Type: text/plain; {parameters}\n\nText."
        assert reason(tmp_path / "a.eml", data) == "a header of more than 10,000 characters"
        assert reason(tmp_path / "a.eml", data.replace("\n", "\r")) == "a header of more than 10,000 characters"
        words = "=?utf-8?q?a?= " * 200_000
        assert read_one(tmp_path / "b.eml", f"From: a\nSubject: {words}\n\nText.").text.endswith("Text.")
        assert time.monotonic() - began < 30

    def test_no_mail(self, tmp_path):
        assert reason(tmp_path / "a.eml", "Just text.") == "not an email: it has no sender, recipient, subject or date"


PACKED = {
    "docx": lambda: saved(word()),
    "xlsx": lambda: saved(workbook()),
    "pptx": lambda: saved(Presentation()),
    "odt": lambda: odt(TEXT),
    "epub": lambda: epub([f"<p>{TEXT}</p>"]),
}
MAIN = {
    "docx": "word/document.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "pptx": "ppt/presentation.xml",
    "odt": "content.xml",
    "epub": "OEBPS/book.opf",
}


@pytest.fixture(scope="module")
def packed():
    return {kind: make() for kind, make in PACKED.items()}


@pytest.mark.parametrize("kind", PACKED)
class TestBadPackages:
    def test_encrypted(self, tmp_path, packed, kind):
        stream = "EncryptedPackage".encode("utf-16-le")
        ole = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2_000) + stream + bytes(2_000)
        assert reason(tmp_path / f"a.{kind}", ole) == "encrypted: save it without a password"
        assert "before 2007" in reason(tmp_path / f"b.{kind}", ole.replace(stream, b""))
        flagged = bytearray(packed[kind])
        at = -1
        while (at := flagged.find(b"PK\x01\x02", at + 1)) >= 0:
            flagged[at + 8] |= 1
        assert "encrypted" in reason(tmp_path / f"c.{kind}", bytes(flagged))

    def test_truncated_or_another_file(self, tmp_path, packed, kind):
        path = tmp_path / f"a.{kind}"
        assert reason(path, packed[kind][:-300]).startswith("truncated or damaged: ")
        assert reason(path, b"%PDF-1.4 something").startswith("not a document of this format: ")
        assert reason(path, b"").startswith("not a document of this format: ")
        assert reason(path, zipped({"a.txt": "x", "b/c.txt": "y"})) in {
            "not an Office document: a zip archive of a.txt, b/c.txt",
            "content.xml in it is missing",
            "content.xml is missing in it",
            "not an e-book",
        }

    def test_damaged_parts(self, tmp_path, packed, kind):
        path, main = tmp_path / f"a.{kind}", MAIN[kind]
        assert reason(path, zipped({main: "<a><b></a>"}, packed[kind])).startswith(
            f"{main} in it is not well-formed XML: "
        )
        assert reason(path, zipped({main: ""}, packed[kind])).startswith(f"{main} in it is not well-formed XML: ")
        with zipfile.ZipFile(io.BytesIO(packed[kind])) as archive:
            info = archive.getinfo(main)
        data = bytearray(packed[kind])
        start = (
            info.header_offset + 30 + struct.unpack("<H", data[info.header_offset + 26 : info.header_offset + 28])[0]
        )
        data[start + 10 : start + 40] = bytes(30)
        assert reason(path, bytes(data)).startswith(f"{main} in it is damaged: ")

    @pytest.mark.parametrize(
        "declared",
        [
            '<!ENTITY x SYSTEM "file:///etc/passwd">',
            '<!ENTITY x0 "lol">'
            + "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 10}">' for n in range(1, 12))
            + '<!ENTITY x "&x11;">',
            '<!ENTITY % y SYSTEM "http://127.0.0.1:9/x"> %y; <!ENTITY x "1">',
        ],
        ids=["external", "laughs", "parameter"],
    )
    def test_entities(self, tmp_path, packed, kind, declared):
        with zipfile.ZipFile(io.BytesIO(packed[kind])) as archive:
            xml = archive.read(MAIN[kind]).decode()
        at = xml.index("?>") + 2 if xml.startswith("<?xml") else 0
        first = xml.index("<", at)
        bad = f"{xml[:first]}<!DOCTYPE r [{declared}]>{xml[first:]}"
        end = bad.rindex("</")
        began = time.monotonic()
        found = reason(tmp_path / f"a.{kind}", zipped({MAIN[kind]: f"{bad[:end]}&x;{bad[end:]}"}, packed[kind]))
        assert (
            found == f"{MAIN[kind]} in it declares XML entities, which are never resolved" or "entity" in found.lower()
        )
        assert "root:" not in found
        assert time.monotonic() - began < 30

    def test_a_bomb(self, tmp_path, packed, kind):
        data = zipped({MAIN[kind]: b"<a>" + b" " * 5_000_000 + b"</a>"}, packed[kind])
        assert len(data) < 200_000
        found = reason(tmp_path / f"a.{kind}", data, limits=Limits(max_bytes=4_000_000))
        assert found == (
            "more than 4,000,000 bytes to read or unpack; raise the limit with --max-bytes "
            "(in Python: limits=Limits(max_bytes=...))"
        )

    def test_a_size_that_lies(self, tmp_path, packed, kind):
        """The directory says that a part is small; no more than that is unpacked."""
        data = bytearray(zipped({MAIN[kind]: b"<a>" + b" " * 900_000 + b"</a>"}, packed[kind]))
        at = data.index(struct.pack("<I", 900_007), data.index(b"PK\x01\x02"))
        data[at : at + 4] = struct.pack("<I", 100)
        assert MAIN[kind] in reason(tmp_path / f"a.{kind}", bytes(data), limits=Limits(max_bytes=1_000_000))

    def test_other_ways_of_compression(self, tmp_path, packed, kind):
        with zipfile.ZipFile(io.BytesIO(packed[kind])) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        assert reason(tmp_path / f"a.{kind}", buffer.getvalue()).endswith(
            "is compressed in a way that documents are not"
        )

    def test_too_many_entries(self, tmp_path, packed, kind):
        buffer = io.BytesIO(packed[kind])
        with zipfile.ZipFile(buffer, "a") as archive:
            entry = zipfile.ZipInfo("word/media/a-picture-with-a-name-that-is-quite-long-0000000000.png")
            archive.writestr(entry, b"")
        data = buffer.getvalue()
        at, end = data.rindex(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
        listing = data[at:end] * 60_000
        counts = struct.pack("<HHII", 60_000, 60_000, len(listing), end - at + at)
        path = tmp_path / f"a.{kind}"
        path.write_bytes(data[:end] + listing + data[end : end + 8] + counts + b"\0\0")
        began = time.monotonic()
        assert reason(path) == "an archive of more than 50,000 files"
        assert time.monotonic() - began < 30


def test_the_rest_is_ingested_and_nothing_is_lost(tmp_path, packed):
    folder = tmp_path / "in"
    folder.mkdir()
    for kind, data in packed.items():
        (folder / f"cut.{kind}").write_bytes(data[:-300])
        (folder / f"whole.{kind}").write_bytes(data)
    with pytest.warns(UserWarning, match="^left out 6 items: "):
        index = ingest(folder, tmp_path / "index", embedder=HashEmbeddings())
    with index:
        assert index.info().documents == 4  # a presentation without slides has no text
        hits = index.keyword_search(["Hesper Quillorne"], top_k=9).hits
        assert {hit.chunk_id for hit in hits} == {"whole.docx:0", "whole.odt:0", "whole.epub:0"}


def package_folder(name):
    """Return the folder of an installed package, without importing it."""
    return Path(find_spec(name).submodule_search_locations[0])


# What a file of an installed package must hold. Packages of the test group, and of what it brings.
SHIPPED = {  # the table of wine_data.rst is malformed: it is kept as it is
    "sklearn:datasets/descr/iris.rst": [
        "# Iris plants dataset",
        "Min | Max | Mean",
        "petal length: | 1.0 | 6.9",
        "- Iris-Setosa",
    ],
    "sklearn:datasets/descr/wine_data.rst": [
        "# Wine recognition dataset",
        "Malic Acid:                   0.74  5.80",
        "- Color intensity",
    ],
    "sklearn:datasets/descr/breast_cancer.rst": ["Breast cancer", "radius (mean): | 6.981 | 28.11"],
    "sklearn:datasets/descr/linnerud.rst": ["Tenenhaus", "- physiological - CSV containing 20 observations"],
    "sklearn:datasets/descr/digits.rst": ["Optical recognition of handwritten digits"],
    "sklearn:datasets/descr/kddcup99.rst": ["Samples total | 4898431", "anomaly detection"],
    "sklearn:datasets/descr/covtype.rst": ["Classes | 7", "Samples total | 581012"],
    "sklearn:datasets/descr/rcv1.rst": ["Samples total | 804414", "Dimensionality | 47236"],
    "sklearn:datasets/descr/lfw.rst": ["Classes | 5749", "Labeled Faces in the Wild"],
    "sklearn:datasets/descr/california_housing.rst": ["- MedInc median income in block group"],
    "sklearn:datasets/descr/diabetes.rst": ["Diabetes dataset", "- bmi body mass index"],
    "sklearn:datasets/descr/olivetti_faces.rst": ["Olivetti faces"],
    "numpy:ma/README.rst": ["# A guide to masked arrays in NumPy", "## History"],
    "docutils:parsers/rst/include/README.rst": ["isonum.txt"],
    "docutils:writers/odf_odt/styles.odt": ["Do not change the name of this table."],
    "wasabi:tests/test-data/wasabi-test-notebook.ipynb": ["```python\nimport sys\nimport wasabi"],
    "matplotlib:mpl-data/sample_data/Stocks.csv": [
        "Data source: https",
        "Date: 1990-01-01 | IBM: 10.97",
        "Date: 1990-02-05\n",
    ],
    "matplotlib:mpl-data/sample_data/msft.csv": ["Date: 19-Sep-03 | Open: 29.76 | High: 29.97"],
    "sklearn:datasets/data/iris.csv": ["150 | 4 | setosa | versicolor | virginica\n5.1 | 3.5 | 1.4 | 0.2 | 0\n"],
    "sklearn:datasets/data/wine_data.csv": ["178 | 13 | class_0 | class_1 | class_2"],
    "tornado:test/csv_translations/fr_FR.csv": ["school | école"],
    "tornado:web.py": ["class RequestHandler:"],
    "docx:templates/default.docx": None,
    "pptx:templates/default.pptx": None,
}


@pytest.mark.parametrize("name", SHIPPED)
def test_files_of_installed_packages(name):
    package, _, file = name.partition(":")
    wanted = SHIPPED[name]
    path = package_folder(package) / file
    assert path.is_file()
    if wanted is None:  # a template, or an empty file, has no text
        if path.suffix == ".typed":
            return
        assert reason(path) in {"empty document", "not a presentation, or one without slides"}
        return
    text = read_one(path).text
    for part in wanted:
        assert part in text


def test_licenses_and_metadata_of_installed_packages():
    """Names without an ending, as text."""
    for package in ("numpy", "pytest", "requests"):
        file = next(file for file in distribution(package).files if file.name == "METADATA")
        assert read_one(file.locate()).text.startswith("Metadata-Version: 2")
