"""Measures how many characters of a page OCR reads right. The page is a picture of a text that is known.

    python benchmarks/ocr_accuracy.py [TEXT]

The text is a file; by default, the beginning of a chronicle in `examples/corpus`. It needs the extra `ocr`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import textwrap
import time
from difflib import SequenceMatcher
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from arag.ingest.formats import Readers

TEXT = Path(__file__).parent.parent / "examples" / "corpus" / "events" / "chronicle-of-the-lanthry-isles.md"
PAGE = (1240, 1754)  # pixels: A4 at 150 to the inch
TYPE_SIZE = 26
PITCH = 40
MARGIN = 110
CHARACTERS_A_LINE = 76
LINES = 12


def draw_page(lines: list[str]) -> Image.Image:
    """Return a picture of a page with lines of text."""
    picture = Image.new("L", PAGE, 255)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(TYPE_SIZE)
    for number, line in enumerate(lines):
        draw.text((MARGIN, MARGIN + PITCH * number), line, font=font, fill=0)
    return picture


def read_page(picture: Image.Image) -> str:
    """Return what OCR reads in a picture of a page now, not what it read in an earlier run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.png")
        picture.save(path)
        os.environ["XDG_CACHE_HOME"] = folder
        with Readers(ocr=True) as readers:
            return readers.read(path).text


def character_accuracy(read: str, text: str) -> float:
    """Return the share of a text's characters that were read in order; line ends and spaces do not count."""
    expected = "".join(text.split())
    matcher = SequenceMatcher(None, expected, "".join(read.split()), autojunk=False)
    right = sum(block.size for block in matcher.get_matching_blocks())
    return right / len(expected)


def main() -> None:
    """Draw a page, read it and print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", type=Path, default=TEXT, help="a file of plain text")
    path = parser.parse_args().text
    paragraphs = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    lines = textwrap.wrap(" ".join(paragraphs), CHARACTERS_A_LINE)[:LINES]
    start = time.perf_counter()
    read = read_page(draw_page(lines))
    seconds = time.perf_counter() - start
    accuracy = character_accuracy(read, " ".join(lines))
    print(f"OCR read {accuracy:.1%} of the characters of a page of {len(lines)} lines right, in {seconds:.1f} s.")


if __name__ == "__main__":
    main()
