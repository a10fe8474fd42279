"""The parts of a document's fingerprint: hashes of its content, of its names, and of its file."""

from __future__ import annotations

HASH_LENGTH = 32  # hexadecimal digits, 128 bits: two documents of an index never share a hash by chance


def content_of(fingerprint: str) -> str:
    """Return the part of a fingerprint that does not change with a document's id and title."""
    return fingerprint[:HASH_LENGTH]


def version_of(fingerprint: str) -> str:
    """Return the part of a fingerprint that changes when a document must be written again."""
    return fingerprint[: 2 * HASH_LENGTH]


def file_hash_of(fingerprint: str) -> str:
    """Return the hash of a document's file: whatever other pages of its folder take from its text, it stays the same.

    It is empty for records with ids of their own, and for documents of older indexes.
    """
    return fingerprint[2 * HASH_LENGTH :]
