"""Copies of files."""

from arag.files import copy_file


def test_a_copy_that_is_written_over_in_place_leaves_the_original_as_it_was(tmp_path):
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_bytes(b"0123456789" * 10_000)
    copy_file(str(original), str(copy))
    assert copy.read_bytes() == original.read_bytes()
    with copy.open("r+b") as file:
        file.write(b"changed")
    assert original.read_bytes() == b"0123456789" * 10_000
