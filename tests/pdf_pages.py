"""Pages of PDFs for tests, with each text at its place."""

from __future__ import annotations

import io

from pypdf import PdfReader, PdfWriter
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
