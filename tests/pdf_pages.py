"""Pages of PDFs for tests, with each text at its place."""

from __future__ import annotations

import io

from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

CHINESE = "STSong-Light"
JAPANESE = "HeiseiMin-W3"
pdfmetrics.registerFont(UnicodeCIDFont(CHINESE))
pdfmetrics.registerFont(UnicodeCIDFont(JAPANESE))


class Pages:
    """Makes a PDF, text by text."""

    def __init__(self):
        self._buffer = io.BytesIO()
        self.canvas = Canvas(self._buffer)
        self._was_shown = True

    def text(self, x, y, text, size=11, font="Helvetica"):
        """Draw a text, and return where it ends."""
        self.canvas.setFont(font, size)
        self.canvas.drawString(x, y, text)
        self._was_shown = False
        return x + self.canvas.stringWidth(text, font, size)

    def lines(self, x, y, lines, size=11, font="Helvetica", pitch=14):
        """Draw lines below each other, and return the place of the next one."""
        for line in lines:
            self.text(x, y, line, size, font)
            y -= pitch
        return y

    def rows(self, y, columns, rows, size=11, pitch=18):
        """Draw rows of cells, each at its column's place, and return the place of the next row."""
        for row in rows:
            for x, cell in zip(columns, row, strict=True):
                if cell:
                    self.text(x, y, cell, size)
            y -= pitch
        return y

    def show(self):
        """End the page."""
        self.canvas.showPage()
        self._was_shown = True

    def finish(self):
        """Return the PDF."""
        if not self._was_shown:
            self.canvas.showPage()
        self.canvas.save()
        return self._buffer.getvalue()


def change(data, work):
    """Return a PDF after a function has worked on a `PdfWriter` of it."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    work(writer)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def in_any_script(lines, pitch=20):
    """Return a PDF with lines in a font that says of its glyphs which characters they are, but draws others."""
    return in_glyphs([[(line, False)] for line in map(list, lines)], pitch)


def in_glyphs(lines, pitch=20):
    """Return a PDF with lines like `in_any_script`.

    Args:
        lines: The parts of each line: the characters of each glyph, from left to right, and whether the PDF also says
            of each glyph alone which characters it stands for, as Chrome does.
        pitch: From line to line, in points.
    """
    glyphs = sorted({glyph for line in lines for part, _ in line for glyph in part})
    codes = {glyph: 33 + number for number, glyph in enumerate(glyphs)}
    assert len(codes) < 200
    pairs = [(code, glyph.encode("utf-16-be").hex()) for glyph, code in codes.items()]
    program = ""
    for line in lines:
        for part, has_actual_text in line:
            shown = [f"{codes[glyph]:02x}" for glyph in part]
            if not has_actual_text:
                program += f"<{''.join(shown)}> Tj "
                continue
            for glyph, code in zip(part, shown, strict=True):
                actual = glyph.encode("utf-16-be").hex()
                program += f"/Span<</ActualText <FEFF{actual}>>> BDC <{code}> Tj EMC "
        program += f"0 -{pitch} Td "

    def work(writer):
        font = font_with_characters(writer, pairs)
        page = writer.pages[0]
        fonts = DictionaryObject({NameObject("/F9"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = stream(writer, f"BT /F9 12 Tf 72 700 Td {program} ET")

    pages = Pages()
    pages.text(72, 700, "x")
    return change(pages.finish(), work)


def font_with_characters(writer, pairs, base="Courier"):
    """Return a font whose codes stand for characters: pairs of a code and of UTF-16 in hexadecimal digits."""
    entries = [f"<{code:02x}> <{character}>" for code, character in pairs]
    blocks = [entries[start : start + 100] for start in range(0, len(entries), 100)]
    mapping = "\n".join(f"{len(block)} beginbfchar {' '.join(block)} endbfchar" for block in blocks)
    cmap = stream(
        writer,
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
        f"1 begincodespacerange <00> <ff> endcodespacerange\n{mapping}\nendcmap end end",
    )
    return DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject(f"/{base}"),
            NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
            NameObject("/ToUnicode"): cmap,
        }
    )


def stream(writer, text):
    """Return a stream of a PDF."""
    made = DecodedStreamObject()
    made.set_data(text.encode("latin-1"))
    return writer._add_object(made)
