"""Makes documents of Word before 2007, as far as their text and their tables need it, and files of streams."""

from __future__ import annotations

import struct

SECTOR = 512
NO_SECTOR, LAST, OF_TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
TEXT_AT = 1536
PAGE = 4  # of the properties of paragraphs, behind the text
PLAIN, CELL, ROW_END = b"", b"\x16\x24\x01", b"\x16\x24\x01\x17\x24\x01"


def make_document(*paragraphs: tuple[str, bytes], is_wide: bool = True) -> bytes:
    """Make a document of paragraphs, each with its mark at the end and its properties."""
    encoded = [text.encode("utf-16-le" if is_wide else "cp1252") for text, _ in paragraphs]
    text = b"".join(encoded)
    characters = sum(len(text) for text, _ in paragraphs)
    place = TEXT_AT if is_wide else (TEXT_AT * 2) | 1 << 30
    pieces = struct.pack("<2I", 0, characters) + struct.pack("<HIH", 0, place, 0)
    pieces = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    table = bytes(SECTOR) + pieces
    properties_at = len(table)
    table += struct.pack("<3I", TEXT_AT, TEXT_AT + len(text), PAGE)
    head = bytearray(TEXT_AT)
    struct.pack_into("<HH", head, 0, 0xA5EC, 0x00C1)
    struct.pack_into("<H", head, 0x0A, 0x1200)
    struct.pack_into("<H", head, 0x20, 0x0E)
    struct.pack_into("<H", head, 0x3E, 0x16)
    struct.pack_into("<I", head, 0x4C, characters)
    struct.pack_into("<H", head, 0x98, 0x5D)
    struct.pack_into("<II", head, 0x0102, properties_at, 12)
    struct.pack_into("<II", head, 0x01A2, SECTOR, len(pieces))
    page = _make_page(encoded, [properties for _, properties in paragraphs])
    main = (bytes(head) + text).ljust(PAGE * SECTOR, b"\0") + page
    return make_file({"1Table": table, "WordDocument": main})


def _make_page(encoded: list[bytes], properties: list[bytes]) -> bytes:
    """Make the page that has the properties of all paragraphs."""
    ends = [TEXT_AT]
    for text in encoded:
        ends.append(ends[-1] + len(text))
    page = bytearray(SECTOR)
    struct.pack_into(f"<{len(ends)}I", page, 0, *ends)
    free = SECTOR - 2
    for number, codes in enumerate(properties):
        entry = struct.pack("<H", 0) + codes
        entry = bytes([(len(entry) + 2) // 2]) + entry if len(entry) % 2 else bytes([0, len(entry) // 2]) + entry
        free = (free - len(entry)) & ~1
        page[free : free + len(entry)] = entry
        page[len(ends) * 4 + number * 13] = free // 2
    page[-1] = len(properties)
    return bytes(page)


def make_file(streams: dict[str, bytes]) -> bytes:
    """Make a file of streams. The shorter name must come first."""
    parts = {name: data + bytes(-len(data) % SECTOR) for name, data in streams.items()}
    parts = {name: data.ljust(4096, b"\0") for name, data in parts.items()}  # shorter ones are kept in another way
    chains = [OF_TABLE, LAST]
    names = list(parts)
    entries = _make_entry("Root Entry", 5, child=1, following=NO_SECTOR, first=LAST, size=0)
    for number, name in enumerate(names, 1):
        sectors = len(parts[name]) // SECTOR
        first = len(chains)
        chains += [*range(first + 1, first + sectors), LAST]
        following = number + 1 if number < len(names) else NO_SECTOR
        entries += _make_entry(name, 2, child=NO_SECTOR, following=following, first=first, size=len(parts[name]))
    fat = struct.pack(f"<{len(chains)}I", *chains).ljust(SECTOR, b"\xff")
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<5H6x2I", 0x3E, 3, 0xFFFE, 9, 6, 0, 1)
    head += struct.pack("<6I", 1, 0, 4096, LAST, 0, LAST) + struct.pack("<2I", 0, 0)
    return head.ljust(SECTOR, b"\xff") + fat + entries.ljust(SECTOR, b"\0") + b"".join(parts.values())


def _make_entry(name: str, kind: int, *, child: int, following: int, first: int, size: int) -> bytes:
    encoded = f"{name}\0".encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack("<HBB3I", len(encoded), kind, 1, NO_SECTOR, following, child)
    return head + bytes(36) + struct.pack("<IQ", first, size)
