"""Office documents, e-books and emails of Outlook as text."""

from __future__ import annotations

import io
import sys
import zipfile
from datetime import date, datetime, timedelta
from itertools import chain

import pytest
from docx import Document as WordDocument
from docx.enum.text import WD_ALIGN_PARAGRAPH
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches

from arag.ingest.formats import READERS, Readers
from arag.ingest.formats.content import FormatError
from arag.ingest.formats.office import read_office

WHERE = [Inches(1)] * 4


def read(path, save=None):
    """Read a document that a library has made."""
    if save is not None:
        save(str(path))
    return read_office(path)


def zipped(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def open_document(path, kind, body):
    names = "office text table style".split()
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)
    content = f"<office:document-content {spaces}><office:body>{body}</office:body></office:document-content>"
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    entries = {"content.xml": content, "META-INF/manifest.xml": manifest}
    return zipped(path, {"mimetype": f"application/vnd.oasis.opendocument.{kind}", **entries})


class TestWord:
    def test_headings_lists_and_tables(self, tmp_path):
        word = WordDocument()
        word.add_heading("The Lights", 0)
        word.add_heading("The lamps", 2)
        word.add_paragraph("The first item", style="List Bullet")
        word.add_paragraph("The second item", style="List Bullet")
        table = word.add_table(3, 3)
        for place, text in enumerate("Name|Lit|Keeper|Vellin|1801||Orra|1820|Tolk".split("|")):
            table.cell(place // 3, place % 3).text = text
        word.add_paragraph("The end.")
        word.core_properties.author = "Hesper Quillorne"
        word.core_properties.modified = datetime(2024, 3, 5, 12)  # noqa: DTZ001 - as python-docx wants it
        content = read(tmp_path / "a.docx", word.save)
        assert content.title == "The Lights"
        assert content.metadata == {"author": "Hesper Quillorne", "date": "2024-03-05"}
        assert content.text == (
            "# The Lights\n\n## The lamps\n\n- The first item\n- The second item\n\n"
            "Name | Lit | Keeper\nName: Vellin | Lit: 1801\nName: Orra | Lit: 1820 | Keeper: Tolk\n\nThe end."
        )

    def test_a_cell_stands_in_all_rows_that_it_spans_and_a_table_in_a_cell_loses_no_word(self, tmp_path):
        word = WordDocument()
        outer = word.add_table(3, 3)
        for place, text in enumerate("Isle|At|T||a|1||b|2".split("|")):
            outer.cell(place // 3, place % 3).text = text
        outer.cell(1, 0).merge(outer.cell(2, 0)).paragraphs[0].text = "Orra\nHolm"
        outer.cell(1, 2).add_table(1, 2).cell(0, 1).text = "Keeper"
        assert read(tmp_path / "a.docx", word.save).text == (
            "Isle | At | T\nIsle: Orra Holm | At: a | T: 1 Keeper\nIsle: Orra Holm | At: b | T: 2"
        )

    def test_emphasis_has_no_marks_and_a_comment_names_its_author(self, tmp_path):
        word = WordDocument()
        word.add_comment(word.add_paragraph("The lamp is lit.").runs, text="By whom?", author="A")
        cells = word.add_table(2, 3).rows[0].cells
        for cell, text in zip(cells, ("Name", "2*3*4", "p < 0.05**"), strict=True):
            cell.paragraphs[0].add_run(text).bold = text == "Name"
        text = "The lamp is lit.\n\nComment by A: By whom?\n\nName | 2*3*4 | p < 0.05**"
        assert read(tmp_path / "a.docx", word.save).text == text

    @pytest.mark.parametrize(("is_centred", "title"), [(True, "The Lights"), (False, "")])
    def test_a_centred_first_line_is_the_title_of_a_document_without_headings(self, tmp_path, is_centred, title):
        word = WordDocument()
        word.add_paragraph("The Lights").alignment = WD_ALIGN_PARAGRAPH.CENTER if is_centred else None
        word.add_paragraph("They are lit at six.")
        assert read(tmp_path / "a.docx", word.save).title == title

    def test_a_document_whose_main_part_has_another_name(self, tmp_path):
        word = WordDocument()
        word.add_paragraph("Written in a browser.")
        word.save(tmp_path / "a.docx")
        with zipfile.ZipFile(tmp_path / "a.docx") as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        renamed = {name.replace("document.xml", "document2.xml"): data for name, data in entries.items()}
        for name in ("_rels/.rels", "[Content_Types].xml"):
            renamed[name] = entries[name].replace(b"document.xml", b"document2.xml")
        assert read(zipped(tmp_path / "b.docx", renamed)).text == "Written in a browser."

    def test_an_encrypted_document_says_so(self, tmp_path):
        data = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600) + "EncryptedPackage".encode("utf-16-le")
        (tmp_path / "a.xlsx").write_bytes(data)
        with pytest.raises(FormatError, match="needs a password: save a copy without it"):
            read(tmp_path / "a.xlsx")

    @pytest.mark.parametrize("extension", [e for e in READERS if READERS[e] == "office.read_office" and e != ".rtf"])
    def test_what_is_no_such_document_is_refused(self, tmp_path, extension):
        (path := tmp_path / f"a{extension}").write_bytes(b"PK\3\4 nothing of the kind" * 20)
        with pytest.raises(FormatError):
            read(path)


class TestSlides:
    def test_a_slide_is_a_page_with_its_title_table_and_notes(self, tmp_path):
        show = Presentation()
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = "The Lights"
        table = slide.shapes.add_table(2, 3, *WHERE).table
        for place, text in enumerate(("Name", "Lit", "Kee|per", "Vellin", "1801", "Tolk")):
            table.cell(place // 3, place % 3).text = text
        slide.notes_slide.notes_text_frame.text = "Speak slowly.\nSmile."
        second = show.slides.add_slide(show.slide_layouts[6])
        second.shapes.add_textbox(*WHERE).text_frame.text = "Thank you"
        content = read(tmp_path / "a.pptx", show.save)
        assert content.title == "The Lights"
        first, second = content.text[: content.page_starts[1]], content.text[content.page_starts[1] :]
        assert first == (
            "# The Lights\n\nName | Lit | Kee|per\nName: Vellin | Lit: 1801 | Kee|per: Tolk\n\n"
            "Notes: Speak slowly.\nSmile.\n\n"
        )
        assert second == "# Slide 2\n\nThank you"


class TestSheets:
    @pytest.mark.parametrize(
        ("value", "number_format", "seen"),
        [
            (0.153, "0.0%", "15.3%"),
            (date(2024, 3, 31), "dd/mm/yyyy", "2024-03-31"),
            (datetime.fromisoformat("2024-03-31 17:30"), "yyyy-mm-dd hh:mm", "2024-03-31 17:30"),
            (timedelta(hours=37, minutes=30), "[h]:mm", "37:30"),
            (True, "General", "TRUE"),
            (0.1 + 0.2, "General", "0.3"),
            (1_234_567_890_123, "#,##0", "1,234,567,890,123"),
            (42, "00000", "00042"),
            (-1234.5, "_($* #,##0.00_);_($* (#,##0.00)", "($1,234.50)"),
            (5551234567, "[<=9999999]###-####;(###) ###-####", "(555) 123-4567 (5551234567)"),
            (1234.5, '#,##0.00" kg"', "1,234.50 kg"),
            (0, '#,##0;-#,##0;"-"??', "0"),
            (1.5, "# ?/?", "1 1/2"),
            (0.37, "# ?/?", "3/8"),
            (0.37, "# ??/??", "27/73"),
            (5.3125, "# ?/16", "5 5/16"),
            (12_500_000, '0.0,," M"', "12.5 M"),
            (980_000, '#,##0.00,"k"', "980.00k"),
            (980_000, "#,##0,", "980"),
            (12345, "0.00E+00", "1.23E+04"),
            (2.5, "0", "3"),
            (12.5, ".00", "12.50"),
            ("#N/A", "General", ""),
        ],
    )
    def test_values_as_people_see_them(self, tmp_path, value, number_format, seen):
        book = Workbook()
        book.active.append(["before", value])
        book.active.cell(1, 2).number_format = number_format
        assert read(tmp_path / "a.xlsx", book.save).text == f"# Sheet\n\nbefore{f' | {seen}' if seen else ''}"

    def test_errors_in_cells_are_left_out_and_counted(self, tmp_path):
        book = Workbook()
        book.active.append(["Dues", "#N/A", "#DIV/0!"])
        content = read(tmp_path / "a.xlsx", book.save)
        assert (content.text, content.left_out) == ("# Sheet\n\nDues", ("2 error values",))

    def test_a_workbook_of_libreoffice(self, tmp_path):
        cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
        cells = cell.format("Share") + cell.format("1234.5")
        table = f'<table:table table:name="Lights"><table:table-row>{cells}</table:table-row></table:table>'
        path = open_document(tmp_path / "a.ods", "spreadsheet", f"<office:spreadsheet>{table}</office:spreadsheet>")
        assert read(path).text == "# Lights\n\nShare | 1234.5"

    @pytest.mark.parametrize(
        ("part", "change"),
        [
            ("sheet1", ('<dimension ref="A1:C3"', '<dimension ref="A1:A2"')),
            ("styles", ("<xf numFmtId", '<xf odd="1" numFmtId')),
            ("workbook", ("schemas.openxmlformats.org/spreadsheetml", "purl.oclc.org/ooxml/spreadsheetml")),
        ],
    )
    def test_a_workbook_that_openpyxl_refuses_or_takes_for_smaller_is_read_whole(self, tmp_path, part, change):
        book = Workbook()
        for row in (("Name", "Lit", "Keeper"), ("Orra", "1820", "Holm"), ("Vellin", "1801", "Tolk")):
            book.active.append(row)
        book.save(tmp_path / "a.xlsx")
        with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
            entries = {name: archive.read(name).decode() for name in archive.namelist()}
        name = next(name for name in entries if name.endswith(f"{part}.xml"))
        assert change[0] in entries[name]
        path = zipped(tmp_path / "b.xlsx", {**entries, name: entries[name].replace(*change)})
        assert read(path).text.endswith("Name: Vellin | Lit: 1801 | Keeper: Tolk")


def test_an_e_book_has_title_author_and_chapters(tmp_path):
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>The Lamp</dc:title><dc:creator>H. Quillorne</dc:creator></metadata><manifest>"
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine>'
        "</package>"
    )
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="o.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>One</h1><p>It is <b>lit</b>.</p></body></html>'
    entries = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "o.opf": package,
        "a.xhtml": page,
    }
    content = read(zipped(tmp_path / "a.epub", entries))
    assert (content.title, content.metadata) == ("The Lamp", {"author": "H. Quillorne"})
    assert content.text == "# One\n\nIt is lit."


def test_a_text_of_libreoffice(tmp_path):
    note = (
        '<text:note text:note-class="footnote"><text:note-body><text:p>By Tolk.</text:p></text:note-body></text:note>'
    )
    body = f'<text:h text:outline-level="1">The Lights</text:h><text:p>Lit{note} in 1801.</text:p>'
    path = open_document(tmp_path / "a.odt", "text", f"<office:text>{body}</office:text>")
    assert read(path).text == "# The Lights\n\nLit in 1801.\n\nBy Tolk."


def test_the_first_heading_of_a_text_of_libreoffice_is_its_title_even_without_a_level(tmp_path):
    body = '<text:h text:outline-level="0">The Lights</text:h><text:h text:outline-level="1">North</text:h>'
    path = open_document(tmp_path / "a.odt", "text", f"<office:text>{body}<text:p>Lit.</text:p></office:text>")
    assert read(path).title == "The Lights"


@pytest.mark.parametrize(("place", "title"), [("center", "The Lights"), ("start", "")])
def test_a_centred_first_line_is_the_title_of_a_text_of_libreoffice_without_headings(tmp_path, place, title):
    fo = 'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    style = f'<style:paragraph-properties {fo} fo:text-align="{place}"/>'
    body = (
        '<office:text><text:p text:style-name="P1">The Lights</text:p><text:p>Lit at six.</text:p></office:text>'
        f'<style:style style:name="P1" style:family="paragraph">{style}</style:style>'
    )
    assert read(open_document(tmp_path / "a.odt", "text", body)).title == title


@pytest.mark.parametrize("extension", [".docx", ".xlsx", ".html"])
def test_an_empty_first_cell_a_second_header_row_and_lines_in_a_cell_keep_their_columns(tmp_path, extension):
    rows = [
        ("", "Dues", "", "Crew", ""),
        ("Ship", "1920", "1921", "1920", "1921"),
        ("Gull\nof Orra", "4", "5", "6", "7"),
    ]
    path = tmp_path / f"a{extension}"
    if extension == ".docx":
        word = WordDocument()
        table = word.add_table(3, 5)
        for place, text in enumerate(chain(*rows)):
            table.cell(place // 5, place % 5).text = text
        word.save(path)
    elif extension == ".xlsx":
        book = Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        cells = ("<td>".join(["<tr>", *row]).replace("\n", "<br>") for row in rows)
        path.write_text(f"<table>{''.join(cells)}</table>")
    with Readers() as readers:
        assert readers.read(path).text.endswith(
            "Ship: Gull of Orra | Dues 1920: 4 | Dues 1921: 5 | Crew 1920: 6 | Crew 1921: 7"
        )


def test_without_the_extra_the_reason_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xberg", None)
    (tmp_path / "a.rtf").write_bytes(b"{\\rtf1 x}")
    with pytest.raises(FormatError, match=r"pip install 'langgraph-arag\[office\]'"):
        read(tmp_path / "a.rtf")


@pytest.mark.heavy
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused_in_little_memory(tmp_path):
    buffer = io.BytesIO()
    WordDocument().save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    start, end = entries["word/document.xml"].split(b"<w:body>")
    entries["word/document.xml"] = start + b"<w:body>" + b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 5_000_000 + end
    with Readers() as readers, pytest.raises(FormatError):
        readers.read(zipped(tmp_path / "a.docx", entries))
