"""Files of Office whose names are wrong, templates, and files that cannot be read: reasons a person can act on."""

from __future__ import annotations

import io
import re
import struct
import zipfile

import pytest
from docx import Document as WordDocument
from openpyxl import Workbook
from pptx import Presentation

from arag import open_index, run_ingest
from arag.ingest.formats.office import read_office
from arag.ingest.formats.old_office import count_lost
from fakes import HashEmbeddings
from old_word import CELL, PLAIN, ROW_END, make_document, make_file

PASSWORD = "needs a password: save a copy without it"
OLE = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(22) + b"\x09" + bytes(481)


def saved(made):
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def word_file():
    word = WordDocument()
    word.add_paragraph("The lease ends in May.")
    return saved(word)


def workbook():
    book = Workbook()
    book.active.append(["Name", "Tons", "Port"])
    book.active.append(["Gull", 4, "Orra"])
    return saved(book)


def slides():
    show = Presentation()
    show.slides.add_slide(show.slide_layouts[0]).shapes.title.text = "The wheel"
    return saved(show)


def with_types(data, change):
    """Change the list of a file's parts, which says whether it is a template."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            part = archive.read(name)
            if name == "[Content_Types].xml":
                assert change[0] in part
                part = part.replace(*change)
            changed.writestr(name, part)
    return buffer.getvalue()


def as_strict(data):
    """Return a file with the namespaces of "Strict Open XML"."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            part = archive.read(name)
            if name.endswith((".xml", ".rels")):
                part = re.sub(
                    rb"http://schemas.openxmlformats.org/(?!package)(\w+)/2006", rb"http://purl.oclc.org/ooxml/\1", part
                )
            changed.writestr(name, part)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "make", "text"),
    [
        ("a.docx", word_file, "The lease ends in May."),
        ("a.xlsx", workbook, "Name: Gull | Tons: 4 | Port: Orra"),
        ("a.pptx", slides, "# The wheel"),
    ],
)
def test_files_that_are_saved_as_strict_open_xml(tmp_path, name, make, text):
    (tmp_path / name).write_bytes(as_strict(make()))
    assert text in read_office(tmp_path / name).text


def text_of_opendocument(kind, body):
    names = "office text table draw presentation".split()
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        content = f"<office:document-content {spaces}><office:body>{body}</office:body></office:document-content>"
        archive.writestr("content.xml", content)
    return buffer.getvalue()


def old_file(stream, content):
    """A file of Office before 2007 with one stream, in its first sector."""
    entry = f"{stream}\0".encode("utf-16-le").ljust(128, b"\0")
    return OLE + content.ljust(512, b"\0") + entry


def record(number, content=b""):
    """A record of a workbook of Excel before 2007."""
    return struct.pack("<HH", number, len(content)) + content


def label(row, column, text):
    encoded = text.encode("cp932")
    return record(0x0204, struct.pack("<4H", row, column, 0, len(encoded)) + encoded)


def entry_of_directory(name, kind, child, first_sector, size):
    encoded = f"{name}\0".encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack("<HBB3I", len(encoded), kind, 1, NO_SECTOR, NO_SECTOR, child)
    return head + bytes(36) + struct.pack("<IQ", first_sector, size)


def book_of_1995(*cells):
    """A workbook of Excel 95, in Japanese, with the sheet `Lamps`."""
    start = record(0x0809, struct.pack("<4H", 0x0500, 0x0005, 0, 0)) + record(0x0042, struct.pack("<H", 932))
    name = struct.pack("<HB", 0, 5) + b"Lamps"
    end = record(0x000A)
    place = len(start) + len(record(0x0085, bytes(4) + name)) + len(end)  # where the sheet begins
    sheet = record(0x0809, struct.pack("<4H", 0x0500, 0x0010, 0, 0)) + b"".join(cells) + end
    stream = start + record(0x0085, struct.pack("<I", place) + name) + end + sheet
    stream = stream.ljust(4096, b"\0")  # shorter ones are kept in another way
    header = OLE[:8] + bytes(16) + struct.pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<10I", 0, 1, 1, 0, 4096, LAST_SECTOR, 0, LAST_SECTOR, 0, 0)
    sectors = [0xFFFFFFFD, LAST_SECTOR, *range(3, 10), LAST_SECTOR]  # after each, the next of its stream
    directory = entry_of_directory("Root Entry", 5, 1, LAST_SECTOR, 0) + entry_of_directory(
        "Book", 2, NO_SECTOR, 2, 4096
    )
    unused = struct.pack("<I", NO_SECTOR)
    table = struct.pack(f"<{len(sectors)}I", *sectors)
    return header + unused * 108 + table + unused * (128 - len(sectors)) + directory.ljust(512, b"\0") + stream


NO_SECTOR, LAST_SECTOR = 0xFFFFFFFF, 0xFFFFFFFE
WORD, BOOK, SLIDES = word_file(), workbook(), slides()
ROWS = "Name | Tons | Port\nName: Gull | Tons: 4 | Port: Orra"
HTML = "<html><table><tr><th>Name<th>Tons<th>Port<tr><td>Gull<td>4<td>Orra</table>"
LETTER = text_of_opendocument("text-template", "<office:text><text:p>Dear Tolk</text:p></office:text>")


class TestNames:
    @pytest.mark.parametrize(
        ("name", "data", "text"),
        [
            ("a.doc", b"{\\rtf1\\ansi The nickel gate.\\par}", "The nickel gate."),
            ("a.docx", b"{\\rtf1\\ansi The nickel gate.\\par}", "The nickel gate."),
            ("a.doc", WORD, "The lease ends in May."),
            ("a.rtf", WORD, "The lease ends in May."),
            ("a.xls", BOOK, f"# Sheet\n\n{ROWS}"),
            ("a.docx", BOOK, f"# Sheet\n\n{ROWS}"),
            ("a.ppt", SLIDES, "# The wheel"),
            ("a.xls", HTML, ROWS),
            ("a.doc", f"\n<!DOCTYPE html>\n{HTML}", ROWS),
            ("a.xls", '<?xml version="1.0"?>\n<!-- made by a program -->\n<html><p>Orra', "Orra"),
            ("a.xls", "Name\tTons\tPort\nGull\t4\tOrra\n", ROWS),
            ("a.doc", "Dear Tolk,\n\n# no heading", "Dear Tolk,\n\n    # no heading"),
            ("a.doc", LETTER, "Dear Tolk"),
            ("a.ott", LETTER, "Dear Tolk"),
        ],
    )  # fmt: skip
    def test_a_file_is_read_as_what_it_is(self, read, name, data, text):
        assert read(name, data).text == text

    @pytest.mark.parametrize("name", ["a.pdf", "a.txt", "a.md"])
    def test_a_document_that_is_named_like_another_kind(self, read, name):
        assert read(name, WORD).text == "The lease ends in May."


class TestTextsThatLookLikeMarkdown:
    @pytest.mark.parametrize("mark", ["", "\\*"])
    def test_footnotes_of_rtf(self, read, mark):
        data = f"{{\\rtf1\\ansi The gate is shut.{{{mark}\\footnote Except in Lent.}} It is red.\\par}}"
        text = read("a.rtf", data.encode()).text
        assert text.startswith("The gate is shut. It is red.")
        assert text.endswith("\n\nExcept in Lent.")

    @pytest.mark.parametrize(
        "styles",
        [
            r"{\s0 Normal;}{\s1 heading 1;}{\s2 heading 2;}",
            r"{\s0 Normal;}{\s1\sbasedon0{\*\hyphen2}\b\fs32 Heading 1;}{\s2\sbasedon1\b heading 2;}{\s12 heading;}",
        ],
    )
    def test_headings_of_rtf(self, read, styles):
        data = rf"""{{\rtf1\ansi{{\stylesheet{styles}}}
            \pard\s1\b Contents\par\pard\s2 Boats\par\pard\sb20\s1\sl449 \fs34 2. Sails\par\pard\s2 \b Red ones\par
            \pard\s0\plain They are of cotton in C:\\s1.\par\pard\s12\plain They are dyed.\par\pard\s1\par}}"""
        headings = "###### Contents\n\n## Boats\n\n# 2. Sails\n\n## Red ones"
        assert read("a.rtf", data.encode()).text == f"{headings}\n\nThey are of cotton in C:\\s1.\n\nThey are dyed."

    def test_signs_of_rtf_that_keep_a_line_together(self, read):
        data = rb"{\rtf1\ansi Ten\~marks for a self\_acting mule of cot\-ton in C:\\~mill.\par}"
        assert read("a.rtf", data).text == "Ten marks for a self-acting mule of cotton in C:\\~mill."

    @pytest.mark.parametrize(
        "fonts", ["{\\f0\\fcharset%d A;}{\\f1\\fcharset0 B;}", "\\f0\\fcharset%d A;\\f1\\fcharset0 B;"]
    )
    @pytest.mark.parametrize(
        ("text", "charset", "encoding"),
        [
            ("表とポンプ、炉{ソ}|A", 128, "cp932"),
            ("丂水車|小屋", 134, "gbk"),
            ("罔許功", 136, "big5"),
            ("물레 방앗간", 129, "cp949"),
        ],
    )
    @pytest.mark.parametrize("in_letters", [True, False])
    def test_signs_of_rtf_of_two_bytes(self, read, fonts, text, charset, encoding, in_letters):
        written = ""
        for byte in text.encode(encoding):
            sign = chr(byte)
            if byte > 127 or not in_letters:
                sign = f"\\'{byte:02x}"
            elif sign in "\\{}":
                sign = f"\\{sign}"
            written += sign
        data = f"{{\\rtf1\\ansi\\ansicpg1252{{\\fonttbl{fonts % charset}}}\\f0 {written}\\f1  \\'93Lamp\\'94\\par}}"
        assert read("a.rtf", data.encode()).text == f"{text} “Lamp”"

    def test_in_rtf(self, read):
        data = b"{\\rtf1\\ansi {\\pard # crontab -e\\par}{\\pard ``` is a fence\\par}{\\pard ls | wc {\\b |} tee\\par}}"
        assert read("a.rtf", data).text == "    # crontab -e\n\n\\``` is a fence\n\nls | wc | tee"


class TestTemplates:
    @pytest.mark.parametrize("extension", [".dotx", ".dotm"])
    def test_of_word(self, read, extension):
        data = with_types(WORD, (b"document.main+xml", b"template.main+xml"))
        assert read(f"a{extension}", data).text == "The lease ends in May."

    @pytest.mark.parametrize("extension", [".xltx", ".xlsm"])
    def test_of_excel(self, read, extension):
        data = with_types(BOOK, (b"sheet.main+xml", b"template.main+xml"))
        assert read(f"a{extension}", data).text == f"# Sheet\n\n{ROWS}"

    @pytest.mark.parametrize(("extension", "kind"), [(".potx", b"template"), (".ppsx", b"slideshow")])
    def test_of_powerpoint(self, read, extension, kind):
        data = with_types(SLIDES, (b"presentation.main+xml", kind + b".main+xml"))
        content = read(f"a{extension}", data)
        assert (content.text, content.title) == ("# The wheel", "The wheel")

    def test_of_libreoffice(self, read):
        title = "<draw:text-box><text:p>Mill</text:p></draw:text-box>"
        page = f"<draw:page><draw:frame presentation:class='title'>{title}</draw:frame></draw:page>"
        show = text_of_opendocument("presentation-template", f"<office:presentation>{page}</office:presentation>")
        assert read("a.otp", show).text == "# Mill"
        cell = "<table:table-cell><text:p>Rye</text:p></table:table-cell>"
        table = f"<table:table table:name='Prices'><table:table-row>{cell}</table:table-row></table:table>"
        sheet = text_of_opendocument("spreadsheet-template", f"<office:spreadsheet>{table}</office:spreadsheet>")
        assert read("a.ots", sheet).text == "# Prices\n\nRye"


class TestReasons:
    @pytest.mark.parametrize("is_wide", [True, False])
    def test_tables_of_word_before_2007(self, read, is_wide):
        cells = ["Name\a", "Tons\a", "Port\a", "", "Gull\rand Petrel\a", "4\vor 5\a", "\a", ""]
        row = [(text, CELL) if text else ("\a", ROW_END) for text in cells]
        paragraphs = [("The lease ends.\r", PLAIN), *row, ("Mill Creek and its weir\r", PLAIN)]
        content = read("a.doc", make_document(*paragraphs, is_wide=is_wide))
        lines = ["Name | Tons | Port", "Name: Gull and Petrel | Tons: 4 or 5"]
        assert content.text.split("\n\n")[:2] == ["The lease ends.", "\n".join(lines)]
        assert "|" not in content.text.split("\n\n")[2]

    def test_a_damaged_table_of_pieces_leaves_the_text_of_an_old_document(self, read):
        data = make_document(("The lease ends in May.\r", PLAIN), ("Name\a", CELL), ("\a", ROW_END))
        place = data.index(struct.pack("<2I", 0, 29))  # how long the text is
        damaged = data[:place] + struct.pack("<2I", 0, 2_000_000) + data[place + 8 :]
        assert "The lease ends in May." in read("a.doc", damaged).text

    def test_an_email_of_outlook(self, read):
        subject = "The lease of the mill".encode("utf-16-le").ljust(4096, b"\0")
        body = ("It ends in May.\r\n" * 140).encode("utf-16-le")
        entries = [(0x0037001F, 44), (0x1000001F, len(body) + 2)]
        properties = bytes(32) + b"".join(struct.pack("<4I", tag, 6, size, 0) for tag, size in entries)
        streams = {"__substg1.0_0037001F": subject, "__substg1.0_1000001F": body}
        content = read("a.msg", make_file({**streams, "__properties_version1.0": properties}))
        assert content.title == "The lease of the mill"
        assert content.text.startswith("# The lease of the mill\n\nIt ends in May.")

    @pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.doc", "a.xls"])
    def test_a_password(self, reason, name):
        assert reason(name, OLE + "EncryptedPackage".encode("utf-16-le")) == PASSWORD

    def test_a_password_of_office_before_2007(self, reason):
        word = b"\xec\xa5" + bytes(9) + b"\x01"
        assert reason("a.doc", old_file("WordDocument", word)) == PASSWORD
        book = b"\x09\x08\x02\0\0\0" + b"\x2f\0\2\0\0\0"
        assert reason("a.xls", old_file("Workbook", book)) == PASSWORD

    @pytest.mark.parametrize("comments", [1, 2, 5])
    def test_comments_and_charts_of_office_before_2007_are_counted(self, comments):
        word = b"\xec\xa5" + bytes(188) + (4 + 34 * comments).to_bytes(4, "little")
        assert count_lost(old_file("WordDocument", word), ".doc") == {"comment": comments}
        sheet = b"\x09\x08\x04\0\0\x06\x10\0" + b"\x1c\0\2\0\0\0" * comments
        chart = b"\x09\x08\x04\0\0\x06\x20\0"
        assert count_lost(old_file("Book", sheet + chart), ".xls") == {"comment": comments, "chart": 1}

    def test_a_password_of_opendocument(self, reason):
        buffer = io.BytesIO(LETTER)
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.writestr("META-INF/manifest.xml", "<manifest:encryption-data/>")
        assert reason("a.odt", buffer.getvalue()) == PASSWORD

    def test_error_values_and_letters_of_excel_95(self, read):
        error = record(0x0205, struct.pack("<3HBB", 1, 1, 0, 7, 1))
        content = read("a.xls", book_of_1995(label(0, 0, "Lamp"), label(0, 1, "Oil"), label(1, 0, "No. 4"), error))
        assert content.text == "# Lamps\n\nLamp | Oil\nLamp: No. 4 | Oil: #DIV/0!"
        assert content.left_out == ()
        content = read("a.xls", book_of_1995(label(0, 0, "Lamp"), label(1, 0, "\u6f22\u5b57")))
        assert content.left_out == ("3 unreadable letters",)

    @pytest.mark.parametrize("name", ["a.docx", "a.xls", "a.odp", "a.rtf", "a.epub"])
    def test_an_empty_file(self, reason, name):
        assert reason(name, b"") == "the file is empty"

    @pytest.mark.parametrize("data", [WORD[:900], BOOK[:2000], SLIDES[:5000]])
    def test_a_damaged_file(self, reason, data):
        assert reason("a.docx", data).startswith("damaged")


class TestPlainLines:
    @pytest.mark.parametrize(("heading", "is_name"), [("Rules", False), ("", True)])
    def test_a_plain_line_names_what_follows_only_in_a_document_without_headings(self, tmp_path, heading, is_name):
        word = WordDocument()
        if heading:
            word.add_heading("The fair")
            word.add_heading(heading, 2)
        word.add_paragraph("Free cloakroom")
        word.add_paragraph("The band plays on Saturday from eight until the last guest has left the hall.")
        word.save(tmp_path / "a.docx")
        run_ingest(tmp_path / "a.docx", tmp_path / "index", embedder=HashEmbeddings())
        with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
            (chunk,) = index.mget(["a.docx:0"])
        name = "Free cloakroom" if is_name else heading
        assert chunk.sentences[-1].heading == name
