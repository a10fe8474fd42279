"""Letters that are one glyph of a PDF, by the name that its font gives to the glyph, such as `f_f_i`.

PDFium knows the names of single characters. For other names it gives the character that has the glyph's code, also for
the brackets of TeX's fonts of symbols: `hname` and `i` around a name.
"""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.pdf.glyphs import UNKNOWN, PageText

_JOINED = re.compile(rb"/([A-Za-z](?:_[A-Za-z])+)\b")
_NAMES_JOINED = re.compile(rb"/Differences\s*\[[^\[\]]*" + _JOINED.pattern)
_OBJECT_STREAM = re.compile(rb"/ObjStm\b.{0,500}?\bstream\r?\n", re.DOTALL)
_OBJECT = re.compile(rb"\b(\d+) 0 obj(.*?)endobj", re.DOTALL)
_BASE_FONT = re.compile(rb"/BaseFont\s*/(?:[A-Z]{6}\+)?([^\s/<>\[\]()]+)")  # a random prefix marks a part of a font
_ENCODING = re.compile(rb"/Encoding\s*(?:(\d+) 0 R|<<([^<>]*)>>)")
_DIFFERENCES = re.compile(rb"/Differences\s*\[([^\[\]]*)\]")
_CODE_OR_NAME = re.compile(rb"\d+|/[^\s/]+")
_FONT_OF_SYMBOLS = re.compile(rb"/(?:[A-Z]{6}\+)?((?:CMB?SY|LMMathSymbols)\d[\w-]*)")
# Symbols at the codes of other characters, in fonts that have no such characters.
_SYMBOLS = {"0": "′", "b": "⌊", "c": "⌋", "d": "⌈", "e": "⌉", "h": "⟨", "i": "⟩", "k": "∥"}
_CODES = 256  # of a font that names its glyphs
_MAX_DIGITS = 9  # of a code
_MAX_STREAM = 16_000_000  # bytes of compressed objects: more would fill the memory
_MAX_STREAMS = 160_000_000  # bytes, of a file
_SAME_WIDTH = 0.02  # of the width: two glyphs of one font that differ by less are the same
_Key = tuple[str, str]  # the name of a font, and a character


@dataclass(frozen=True)
class JoinedLetters:
    """The glyphs of a document that join letters.

    Attributes:
        letters: Their letters, by the name of the font and the character that PDFium gives for the glyph. They are
            `UNKNOWN` if fonts of one name differ.
        symbols: In the same way, the symbols that have the code of a character.
    """

    letters: Mapping[_Key, str]
    symbols: Mapping[_Key, str]

    def find(self, page: PageText) -> dict[int, str]:
        """Return the letters of a page that are joined in one glyph, and symbols, by their places."""
        characters = {character for _, character in (*self.letters, *self.symbols)}
        found: dict[int, str] = {}
        for place, character in enumerate(page.text):
            if character not in characters:
                continue
            key = (page.font_name(place), character)
            letters = self.letters.get(key)
            if key in self.symbols:
                found[place] = self.symbols[key]
            elif letters and not _is_named(page, place):
                found[place] = letters
        return found


NONE_JOINED = JoinedLetters(letters={}, symbols={})


def _is_named(page: PageText, place: int) -> bool:
    """Return whether a font names a character as such: another font of the same name may use its code otherwise."""
    size = page.font_size(place)
    own_width = page.glyph_width(place, page.text[place], size)
    return math.isclose(own_width, page.box(place).width, rel_tol=_SAME_WIDTH)


def read_joined_letters(document: pypdfium2.PdfDocument, file: bytes) -> JoinedLetters:
    """Return the glyphs of a document that join letters. Few documents have any, and only these are searched."""
    symbols: dict[_Key, str] = {}
    names_joined = False
    for part in _readable_parts(file):
        names_joined |= _NAMES_JOINED.search(part) is not None
        for font in _FONT_OF_SYMBOLS.findall(part):
            symbols |= {(font.decode(), character): symbol for character, symbol in _SYMBOLS.items()}
    if not names_joined:
        return JoinedLetters({}, symbols)
    saved = io.BytesIO()
    document.save(saved, flags=raw.FPDF_NO_INCREMENTAL | raw.FPDF_REMOVE_SECURITY)  # without compressed objects
    objects = dict(_OBJECT.findall(saved.getvalue()))
    found: dict[_Key, str] = {}
    for font in objects.values():
        for key, letters in _letters_of(font, objects):
            is_same = found.setdefault(key, letters) == letters
            found[key] = letters if is_same else UNKNOWN
    return JoinedLetters(found, symbols)


def _readable_parts(file: bytes) -> Iterator[bytes]:
    """Yield a file, and its compressed objects."""
    yield file
    size = 0
    for part in file.split(b"endstream"):
        start = _OBJECT_STREAM.search(part)
        if not start:
            continue
        try:
            objects = zlib.decompressobj().decompress(part[start.end() :], _MAX_STREAM)
        except zlib.error:
            continue
        yield objects
        size += len(objects)
        if size > _MAX_STREAMS:
            return


def _letters_of(font: bytes, objects: Mapping[bytes, bytes]) -> Iterator[tuple[_Key, str]]:
    """Yield the letters that glyphs of an object join, if it is a font, with its name and the character of the code."""
    names = _BASE_FONT.findall(font)
    encoding = _ENCODING.search(font)
    if len(names) != 1 or not encoding:  # a page may have several fonts in itself
        return
    reference, value = encoding.groups(default=b"")
    differences = b"".join(_DIFFERENCES.findall(objects.get(reference, value)))
    name = names[0].decode("latin-1")
    code = 0
    for token in _CODE_OR_NAME.findall(differences):
        if token.isdigit():
            code = int(token[:_MAX_DIGITS])
            continue
        joined = _JOINED.match(token)
        if joined and code < _CODES:
            yield (name, chr(code)), joined[1].decode().replace("_", "")
        code += 1
