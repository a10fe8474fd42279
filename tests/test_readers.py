from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tracemalloc
import warnings
from contextlib import closing
from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject, NumberObject
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from arag.errors import InputError
from arag.ingest.documents import Document, Limits, Position, Problem
from arag.ingest.formats import pdf as reading_pdfs
from arag.ingest.formats.html import read_html
from arag.ingest.formats.pdf import PdfReader as PdfProcess
from arag.ingest.readers import read_documents


def read(*paths):
    items = list(read_documents(paths))
    documents = [item for item in items if isinstance(item, Document)]
    problems = [item for item in items if isinstance(item, Problem)]
    assert len(documents) + len(problems) == len(items)
    return documents, problems


def find_skipped(*paths):
    position = Position()
    list(read_documents(paths, position=position))
    return position.skipped


def read_one(path, data):
    """Write the data to the file, and return the one document that is read from it."""
    write(path, data)
    documents, problems = read(path)
    assert problems == []
    assert len(documents) == 1
    assert documents[0].source == str(path)
    return documents[0]


def read_problem(path, data):
    """Write the data to the file, and return the one problem that comes of it."""
    write(path, data)
    documents, problems = read(path)
    assert documents == []
    assert len(problems) == 1
    return problems[0]


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif isinstance(data, str):
        path.write_text(data, encoding="utf-8", newline="")
    else:
        path.write_text(json.dumps(data), encoding="utf-8")


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def pdf(*pages, title="A Title"):
    """Return a PDF with a page for each text, and only a shape on the page for an empty text."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.setTitle(title)
    for text in pages:
        canvas.rect(100, 100, 200, 200, fill=1)
        for number, line in enumerate(text.split("\n") if text else []):
            canvas.drawString(72, 700 - 20 * number, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def bomb():
    """Return a PDF in which forms show forms, ten times each: a million million characters."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Text."))))
    page = writer.pages[0]
    fonts = page["/Resources"]["/Font"]
    inner = None
    for _ in range(12):
        form = DecodedStreamObject()
        form.set_data(b"BT /F1 9 Tf (word ) Tj ET" if inner is None else b"/F Do " * 10)
        resources = {NameObject("/Font"): fonts}
        if inner is not None:
            resources[NameObject("/XObject")] = DictionaryObject({NameObject("/F"): inner})
        form.update(
            {
                NameObject("/Type"): NameObject("/XObject"),
                NameObject("/Subtype"): NameObject("/Form"),
                NameObject("/BBox"): ArrayObject(map(NumberObject, (0, 0, 600, 800))),
                NameObject("/Resources"): DictionaryObject(resources),
            }
        )
        inner = writer._add_object(form)
    page["/Resources"][NameObject("/XObject")] = DictionaryObject({NameObject("/F"): inner})
    page.get_contents()
    contents = DecodedStreamObject()
    contents.set_data(b"/F Do")
    page[NameObject("/Contents")] = writer._add_object(contents)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def encrypted(data, user_password):
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password, "owner", algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


class TestPaths:
    def test_folder_is_walked_in_sorted_order(self, tmp_path):
        for name in ("b.txt", "a/z.md", "a/b/c.TXT", "a.txt", "c.html"):
            write(tmp_path / name, "Some text.")
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["a/b/c.TXT", "a/z.md", "a.txt", "b.txt", "c.html"]
        assert documents[0].source == str(tmp_path / "a/b/c.TXT")
        assert problems == []

    def test_hidden_and_unknown_files_are_skipped(self, tmp_path):
        for name in (".hidden.txt", ".git/x.txt", "photo.png", "seen.txt"):
            write(tmp_path / name, "Some text.")
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["seen.txt"]
        assert problems == []

    def test_file_has_its_name_as_id(self, tmp_path):
        write(tmp_path / "deep/er/note.txt", "Text.")
        assert read(str(tmp_path / "deep/er/note.txt"))[0][0].id == "note.txt"

    def test_relative_path_is_kept_in_the_source(self, tmp_path, monkeypatch):
        write(tmp_path / "corpus/people/ann.md", "Text.")
        monkeypatch.chdir(tmp_path)
        for given_path, source in (("corpus", "corpus/people/ann.md"), (".", "corpus/people/ann.md")):
            document = read(given_path)[0][0]
            assert document.source == str(Path(source))
            assert document.id.endswith("people/ann.md")

    def test_single_string_is_one_path(self, tmp_path):
        write(tmp_path / "a.txt", "Text.")
        assert [d.id for d in read_documents(str(tmp_path / "a.txt"))] == ["a.txt"]

    def test_missing_path_is_found_before_anything_is_read(self, tmp_path):
        write(tmp_path / "a.txt", "Text.")
        with pytest.raises(InputError, match=r"nowhere.*does not exist"):
            read_documents([tmp_path / "a.txt", tmp_path / "nowhere"])

    @pytest.mark.parametrize("paths", [[], [""], ""])
    def test_no_path(self, paths):
        with pytest.raises(InputError, match=r"no file, folder or document|empty path"):
            read_documents(paths)

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("a\0b", r"'a\\x00b' has a character that a file name cannot have"),
            ("a\ud800b.txt", r"'a\\ud800b.txt' has a character that a file name cannot have"),
            ("caf\udce9.txt", "caf\ufffd.txt does not exist"),
            ("caf\udce9", "caf\ufffd contains no files"),
            ("caf\udce9/x.caf\udce9", "unknown ending, '.caf\ufffd'"),
            ("a.txt/b", "a.txt/b cannot be read: Not a directory"),
            ("n" * 300, "cannot be read: File name too long"),
        ],
    )
    def test_impossible_path(self, path, reason, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "a.txt", "Text.")
        (tmp_path / "caf\udce9").mkdir()
        if "/x" in path:
            write(tmp_path / path, "Text.")
        with pytest.raises(InputError, match=reason) as caught:
            read_documents([path])
        str(caught.value).encode()

    def test_empty_folder(self, tmp_path):
        write(tmp_path / ".hidden/a.txt", "Text.")
        with pytest.raises(InputError) as caught:
            read_documents([tmp_path])
        assert str(caught.value) == (
            f"{tmp_path} contains no files; valid endings are .txt .md .markdown .html .htm .xhtml .pdf .docx .docm "
            ".pptx .pptm .xlsx .xlsm .odt .epub .csv .tsv .rst .eml .ipynb .json .jsonl, and those of programs; to "
            'read another as text: --as text:.ENDING (in Python: readers={".ENDING": "text"})'
        )

    def test_folder_with_unknown_endings_only(self, tmp_path):
        write(tmp_path / "sub/a.doc", "Text.")
        with pytest.raises(InputError, match=r"only links to folders or files with other endings.*\.txt \.md"):
            read_documents([tmp_path])

    def test_unknown_ending(self, tmp_path):
        write(tmp_path / "a.doc", "Text.")
        with pytest.raises(InputError, match=r"a\.doc has an unknown ending, '\.doc'; valid .*\.jsonl"):
            read_documents([tmp_path / "a.doc"])

    def test_neither_file_nor_folder(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.txt")
        with pytest.raises(InputError, match="neither a file nor a folder"):
            read_documents([tmp_path / "pipe.txt"])
        write(tmp_path / "a.txt", "Text.")
        assert [d.id for d in read(tmp_path)[0]] == ["a.txt"]

    def test_links_to_folders_are_not_followed(self, tmp_path):
        write(tmp_path / "outside/secret.txt", "Secret.")
        write(tmp_path / "in/a.txt", "Text.")
        (tmp_path / "in/link").symlink_to(tmp_path / "outside", target_is_directory=True)
        (tmp_path / "in/loop").symlink_to(tmp_path / "in", target_is_directory=True)
        documents, problems = read(tmp_path / "in")
        assert [d.id for d in documents] == ["a.txt"]
        assert problems == []
        assert find_skipped(tmp_path / "in") == [
            Problem(str(tmp_path / "in" / "link"), "a link to a folder"),
            Problem(str(tmp_path / "in" / "loop"), "a link to a folder"),
        ]

    def test_what_is_passed_over_is_told_once(self, tmp_path):
        for name in (
            "a.txt",
            "b.PNG",
            "caf\udce9.png",
            ".hidden.png",
            ".git/config",
            "deep/c.doc",
            "deep/d.txt",
        ):
            write(tmp_path / name, "Text.")
        os.mkfifo(tmp_path / "pipe.txt")
        skipped = find_skipped(tmp_path, tmp_path / "deep", tmp_path / "a.txt", f"{tmp_path}/.")
        assert {(Path(item.source).name, item.reason) for item in skipped} == {
            ("b.PNG", "no reader for .png"),
            ("caf\ufffd.png", "no reader for .png"),
            ("c.doc", "no reader for .doc"),
            ("pipe.txt", "neither a file nor a folder"),
        }
        assert len(skipped) == 4

    def test_folder_with_links_to_folders_only(self, tmp_path):
        write(tmp_path / "outside/a.txt", "Text.")
        (tmp_path / "in").mkdir()
        (tmp_path / "in/link.txt").symlink_to(tmp_path / "outside", target_is_directory=True)
        with pytest.raises(InputError, match=r"only links to folders or files with other endings; .*\.txt \.md"):
            read_documents([tmp_path / "in"])

    def test_an_index_in_a_folder_is_passed_over(self, tmp_path):
        for name in ("a.txt", "idx/index.sqlite3", "idx/notes.txt", "b/manifest.json"):
            write(tmp_path / name, '{"text": "Text."}')
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["a.txt", "b/manifest.json#1"]
        assert problems == []
        assert find_skipped(tmp_path) == [Problem(str(tmp_path / "idx"), "an index")]

    def test_the_index_that_is_written_is_passed_over_from_the_start(self, tmp_path):
        for name in ("a.txt", "idx/writer.json", "idx2/b.txt"):
            write(tmp_path / name, '{"text": "Text."}')
        (tmp_path / "link").symlink_to("idx")
        for index in (tmp_path / "idx", str(tmp_path / "idx2" / ".." / "link")):
            assert [d.id for d in read_documents([tmp_path], index=index)] == ["a.txt", "idx2/b.txt"]
        assert len(list(read_documents([tmp_path], index=tmp_path / "other"))) == 3

    def test_a_given_index(self, tmp_path):
        write(tmp_path / "index.sqlite3", "")
        with pytest.raises(InputError, match="is an index: give the documents that it was made from"):
            read_documents([tmp_path])

    @pytest.mark.parametrize(
        ("paths", "ids"),
        [
            (["x/README.md", "x"], ["README.md", "deep/a.jsonl#1"]),
            (["x", "x/deep/../README.md"], ["deep/a.jsonl#1", "README.md"][::-1]),
            (["x", "link", "x/"], ["README.md", "deep/a.jsonl#1"]),
            (["x/deep/a.jsonl", "x"], ["a.jsonl#1", "README.md"]),
        ],
    )
    def test_a_file_that_is_given_twice_is_read_once(self, tmp_path, monkeypatch, paths, ids):
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "x/README.md", "Text.")
        write(tmp_path / "x/deep/a.jsonl", lines({"text": "Text."}))
        (tmp_path / "link").symlink_to("x", target_is_directory=True)
        documents, problems = read(*paths)
        assert [d.id for d in documents] == ids
        assert problems == []

    def test_links_to_files(self, tmp_path):
        write(tmp_path / "secret.txt", "Secret.")
        write(tmp_path / "in/a.txt", "Text.")
        (tmp_path / "in/b.txt").symlink_to("a.txt")
        (tmp_path / "in/c.txt").symlink_to(tmp_path / "secret.txt")
        (tmp_path / "in/d.txt").symlink_to("nothing.txt")
        (tmp_path / "in/e.txt").symlink_to("e.txt")
        (tmp_path / "in/f.png").symlink_to(tmp_path / "secret.txt")
        documents, problems = read(tmp_path / "in")
        assert [d.id for d in documents] == ["a.txt"]
        assert [p.source for p in problems] == [str(tmp_path / "in" / f"{name}.txt") for name in "cde"]
        assert "outside the folder" in problems[0].reason
        assert problems[1].reason == "No such file or directory"
        assert find_skipped(tmp_path / "in") == [
            Problem(str(tmp_path / "in/f.png"), "no reader for .png"),
            Problem(str(tmp_path / "in/b.txt"), "a link to a.txt, which is read anyway"),
        ]

    def test_a_link_is_read_where_its_target_is_not(self, tmp_path):
        write(tmp_path / ".versions/3.txt", "Text.")
        (tmp_path / "a.txt").symlink_to(".versions/3.txt")
        assert [d.id for d in read(tmp_path)[0]] == ["a.txt"]
        assert find_skipped(tmp_path) == []

    def test_given_link_is_followed(self, tmp_path):
        write(tmp_path / "real/a.txt", "Text.")
        (tmp_path / "link").symlink_to("real", target_is_directory=True)
        assert [d.id for d in read(tmp_path / "link")[0]] == ["a.txt"]

    def test_file_that_cannot_be_opened(self, tmp_path, monkeypatch):
        write(tmp_path / "a.txt", "Text.")
        write(tmp_path / "b.jsonl", lines({"text": "x"}))
        write(tmp_path / "c.txt", "Text.")
        path_open = io.open

        def refuse(path, *args, **kwargs):
            if Path(path).name in {"a.txt", "b.jsonl"}:
                raise PermissionError(13, "Permission denied", str(path))
            return path_open(path, *args, **kwargs)

        monkeypatch.setattr(io, "open", refuse)
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["c.txt"]
        assert problems == [
            Problem(str(tmp_path / "a.txt"), "Permission denied"),
            Problem(str(tmp_path / "b.jsonl"), "Permission denied"),
        ]

    def test_folder_that_cannot_be_listed(self, tmp_path, monkeypatch):
        write(tmp_path / "a.txt", "Text.")
        write(tmp_path / "closed/b.txt", "Text.")
        scan = os.scandir

        def refuse(path):
            if Path(path).name == "closed":
                raise PermissionError(13, "Permission denied", str(path))
            return scan(path)

        monkeypatch.setattr(os, "scandir", refuse)
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["a.txt"]
        assert problems == [Problem(str(tmp_path / "closed"), "Permission denied")]

    def test_nothing_is_read_before_it_is_asked_for(self, tmp_path):
        for name in ("a.txt", "b.txt"):
            write(tmp_path / name, "Text.")
        items = read_documents([tmp_path])
        assert next(items).id == "a.txt"
        write(tmp_path / "b.txt", "Changed.")
        assert next(items).text == "Changed."

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_memory_does_not_grow_with_the_records(self, tmp_path, encoding):
        path = tmp_path / "big.jsonl"
        path.write_text(lines(*({"id": i, "text": "x" * 10_000} for i in range(2_000))), encoding=encoding)
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_documents([path])) == 2_000
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 3_000_000


class TestIds:
    def test_a_document_left_out_does_not_use_up_its_id(self, tmp_path):
        path = tmp_path / "a.jsonl"
        write(path, lines({"id": "1", "text": " "}, {"id": "1", "text": "Kept."}))
        documents, problems = read(path)
        assert [d.text for d in documents] == ["Kept."]
        assert problems == [Problem(f"{path}, line 1", "empty document")]

    def test_record_ids(self, tmp_path):
        path = tmp_path / "sub/a.jsonl"
        records = [{"id": "  one "}, {"id": 2}, {}, {"id": None}, {"id": 0}, {"id": "1"}]
        write(path, lines(*(record | {"text": "Text."} for record in records)))
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["one", "2", "sub/a.jsonl#3", "sub/a.jsonl#4", "0", "1"]
        assert [d.named_by_path for d in documents] == [False, False, True, True, False, False]
        assert problems == []

    @pytest.mark.parametrize("bad", ["", "  ", "a\nb", "a\x1fb", "a\x7fb", "a\u2028b", True, 1.5, [1], {"a": 1}])
    def test_bad_record_ids(self, tmp_path, bad):
        path = tmp_path / "a.jsonl"
        problem = read_problem(path, lines({"id": bad, "text": "Text."}))
        assert problem.source == f"{path}, line 1"
        assert "id" in problem.reason

    def test_file_name_with_a_line_break(self, tmp_path):
        write(tmp_path / "a\nb.txt", "Text.")
        write(tmp_path / "c.txt", "Text.")
        documents, problems = read(tmp_path)
        assert [d.id for d in documents] == ["c.txt"]
        assert "control characters" in problems[0].reason

    def test_file_name_that_is_not_unicode(self, tmp_path):
        path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
        try:
            Path(os.fsdecode(path)).write_text("Text.")
        except OSError:
            pytest.skip("this file system has Unicode names only")
        (document,) = read(tmp_path)[0]
        assert (document.id, document.title) == ("caf\ufffd.txt", "caf\ufffd")
        document.source.encode()


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("name", ["a.txt", "a.md"])
    def test_accepted(self, tmp_path, encoding, name):
        assert read_one(tmp_path / name, "Größe 🎉\nx".encode(encoding)).text == "Größe 🎉\nx"

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_accepted_in_records(self, tmp_path, encoding):
        for name in ("a.json", "a.jsonl"):
            write(tmp_path / name, f'{{"id": "{name}", "text": "Größe 🎉"}}\n'.encode(encoding))
        documents, problems = read(tmp_path)
        assert [d.text for d in documents] == ["Größe 🎉"] * 2
        assert problems == []

    def test_big_endian(self, tmp_path):
        assert read_one(tmp_path / "a.txt", b"\xfe\xff" + "Größe".encode("utf-16-be")).text == "Größe"

    @pytest.mark.parametrize("name", ["a.txt", "a.md", "a.json", "a.html"])
    def test_not_utf8(self, tmp_path, name):
        problem = read_problem(tmp_path / name, "Größe".encode("latin-1"))
        reason = "not valid UTF-8 (byte 0xf6 at offset 2); convert it to UTF-8"
        assert problem == Problem(str(tmp_path / name), reason)

    def test_broken_utf16(self, tmp_path):
        reason = read_problem(tmp_path / "a.txt", b"\xff\xfea\0b").reason
        assert reason.startswith("not valid UTF-16 (byte 0x62 at offset 4)")
        write(tmp_path / "b.jsonl", '{"text": "x"}\n'.encode("utf-16") + b"x")
        documents, problems = read(tmp_path / "b.jsonl")
        assert [d.text for d in documents] in ([], ["x"])
        assert problems == [Problem(str(tmp_path / "b.jsonl"), "not valid UTF-16; convert it to UTF-8")]

    def test_utf32(self, tmp_path):
        assert "not valid UTF-8" in read_problem(tmp_path / "a.txt", "Text".encode("utf-32")).reason

    def test_line_ends_and_nul(self, tmp_path):
        assert read_one(tmp_path / "a.txt", b"a\r\nb\rc\nd\0e").text == "a\nb\nc\nde"

    @pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.json", "a.jsonl"])
    @pytest.mark.parametrize("data", ["", " \n\t\n"])
    def test_blank_file(self, tmp_path, name, data):
        assert read_problem(tmp_path / name, data) == Problem(str(tmp_path / name), "empty document")


class TestText:
    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("The Title\n\nBody.", "The Title"),
            ("  The Title \n \t\nBody.", "The Title"),
            ("The Title\r\n\r\nBody.", "The Title"),
            ("The Title\nBody.", "note"),
            ("The Title", "note"),
            ("The Title\n", "note"),
            ("\n\nThe Title\n\nBody.", "note"),
            ("A sentence.\n\nBody.", "note"),
            ("题目。\n\nBody.", "note"),
            ("As follows:\n\nBody.", "note"),
            ("x" * 120 + "\n\nBody.", "x" * 120),
            ("x" * 121 + "\n\nBody.", "note"),
        ],
    )
    def test_title(self, tmp_path, text, title):
        document = read_one(tmp_path / "note.txt", text)
        assert document.title == title
        assert document.text == text.replace("\r\n", "\n")
        assert (document.metadata, document.page_starts, document.ready_chunks) == ({}, (), None)


class TestMarkdown:
    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("# One\n\ntext\n\n# Two", "One"),
            ("intro\n\n   #   One #  \ntext", "One"),
            ("# About C#\ntext", "About C#"),
            ("## Lower\n#NoHeading\n    # code\ntext", "note"),
            ("```sh\n# comment\n~~~\n# more\n```\n# One", "One"),
            ("~~~~\n# comment\n~~~\n# more\n~~~~~\n# One", "One"),
            ("# #\n# One", "One"),
            ("---\nnot: closed\n\n# One", "One"),
            ("The  Long\nTitle\n===\n\ntext", "The Long Title"),
            ("text\n\nLower\n---\n\n# One", "One"),
            ("#  A \t title  with   spaces", "A title with spaces"),
            ("> # Quoted\n\n- # Item\n\n# One", "One"),
            ("---\n\nAbstract of it.\n\n---\n\nSecond.", "note"),
            ("---\nAbstract of it.\n---\nSecond.", "note"),
            ("---\n- a list\n---\n# One", "One"),
            ("---\nbroken: [yaml\n---\n\n# One", "One"),
            ("---\nkey: one\nkey: two\n---\n\n# One", "One"),
            ("---\na: &x [1]\nb: *x\n---\n\n# One", "One"),
            ("---\n? [a, b]\n: c\n---\n\n# One", "One"),
            ("---\na: " + "[" * 150 + "]" * 150 + "\n---\n\n# One", "One"),
            ("---\na: " + "[" * 20_000 + "\n---\n\n# One", "One"),
            ("---\na: b\x01\n---\n\n# One", "One"),
            ("\n---\ntitle: No\n---\n# One", "One"),
            (" ---\ntitle: No\n---\n# One", "One"),
            ("text\n" * 20_000 + "# One", "note"),
        ],
    )
    def test_title(self, tmp_path, text, title):
        document = read_one(tmp_path / "note.md", text)
        assert document.title == title
        assert document.text == text
        assert document.metadata == {}

    def test_front_matter(self, tmp_path):
        front = """---
title: "The  \\"Title\\""
author: Ann Lee  # the elder
date: 2024-05-01
time: 12:30
url: https://example.org/a#b
note: 'it''s \\u0000'
odd: "a\\0b\\uD800"
draft: true
country: no
weight: 3
share: -1.5e3
version: 007
number: NaN
empty:
quoted: "3"
tags: [a, b]
list:
  - item: one
    more: {x: [1, 2]}
block: |
  inner: text
own: !tag x
1: one
# comment: none
---

# Heading

Body.
"""
        document = read_one(tmp_path / "note.md", front)
        assert document.title == 'The "Title"'
        assert document.text == "# Heading\n\nBody.\n"
        assert document.metadata == {
            "author": "Ann Lee",
            "date": "2024-05-01",
            "time": "12:30",
            "url": "https://example.org/a#b",
            "note": "it's \\u0000",
            "odd": "ab\ufffd",
            "draft": True,
            "country": "no",
            "weight": 3,
            "share": -1500.0,
            "version": "007",
            "number": "NaN",
            "empty": None,
            "quoted": "3",
            "tags": ["a", "b"],
            "list": [{"item": "one", "more": {"x": [1, 2]}}],
            "block": "inner: text\n",
            "own": "x",
            "1": "one",
        }
        json.dumps(document.metadata, allow_nan=False)

    def test_front_matter_with_a_title_that_is_none(self, tmp_path):
        for title in ("[a, b]", "", '" "'):
            document = read_one(tmp_path / "note.md", f"---\ntitle: {title}\n---\nText.")
            assert (document.title, list(document.metadata)) == ("note", ["title"])
        assert read_one(tmp_path / "note.md", "---\ntitle: 1984\n---\nText.").title == "1984"

    def test_front_matter_that_ends_with_dots(self, tmp_path):
        document = read_one(tmp_path / "note.md", "--- \na: b\n...\n\nText.\n---\n")
        assert (document.text, document.metadata) == ("Text.\n---\n", {"a": "b"})

    @given(
        parts=st.lists(
            st.sampled_from("--- *** === ___ ... # ## - > ``` [a] {b} & *c ! | % @".split())
            | st.sampled_from(["", " ", "  "])
            | st.text("abcxyz", min_size=1, max_size=5)
            | st.lists(st.text("abcxyz", min_size=1, max_size=5), max_size=4).map(" ".join),
            max_size=14,
        ),
        begins=st.sampled_from(["", "---\n", "---\n\n", "***\n", "===\n"]),
    )
    def test_no_word_of_a_body_is_lost(self, tmp_path, parts, begins):
        text = begins + "\n".join(parts)
        path = tmp_path / "note.md"
        write(path, text)
        documents, problems = read(path)
        if problems:
            assert not text.strip()
        else:
            assert documents[0].text.split() == text.split()

    def test_front_matter_without_title(self, tmp_path):
        document = read_one(tmp_path / "note.md", "---\r\nauthor: Ann\r\n---\r\n# Heading\r\nBody.")
        assert (document.title, document.metadata) == ("Heading", {"author": "Ann"})

    def test_braces_between_thematic_breaks_are_text(self, tmp_path):
        text = "---\n{b}\n---\nText."
        assert read_one(tmp_path / "note.md", text).text == text

    def test_front_matter_alone(self, tmp_path):
        assert read_problem(tmp_path / "note.md", "---\ntitle: x\n---\n").reason == "empty document"


class TestHtml:
    @pytest.mark.parametrize(
        ("html", "title"),
        [
            ("<title> The\n Title </title><h1>Other</h1>", "The Title"),
            ("<title> </title><h1>The <i>Head</i>ing<br>too</h1>", "The Heading too"),
            ("<svg><title>Icon</title></svg><h1>Heading</h1>", "Heading"),
            ("<p>text", "page"),
        ],
    )
    def test_title(self, tmp_path, html, title):
        assert read_one(tmp_path / "page.html", html + "<p>text").title == title

    @pytest.mark.parametrize(
        ("html", "text"),
        [
            ("<p>One <b>bo</b>ld\n  word</p><p>two<div>three</div>four", "One bold word\n\ntwo\n\nthree\n\nfour"),
            ("<h1>A</h1><h2>B <i>c</i><br>d</h2>text<h6>E</h6>", "# A\n\n## B c d\n\ntext\n\n###### E"),
            ("a<br>b<br/><br><br>c", "a\nb\n\nc"),
            ("<p>List:<ul><li>one</li>\n<li><p>two</p></li></ul>end", "List:\n\n- one\n- two\n\nend"),
            ("<ol><li>one<ul><li>in</ul><li>two</ol>", "- one\n- in\n- two"),
            ("<ul><li><h3>Head</h3>text</ul>", "### Head\n\ntext"),
            ("<ul><li></li><li>x</ul>", "- x"),
            (
                "<table><caption>Cap</caption><tr><th>A</th><th>B</th></tr><tr><td></td></tr></table>y",
                "Cap\nA | B\n\ny",
            ),
            (
                "<table><tr><td><p>1</p><p>2<br>3</p></td><td><ul><li>x</li></ul></td></tr></table>",
                "1 2 3 | x",
            ),
            ("<table><tr><td>a<td>b<tr><td><td>d</table>", "a | b\n| d"),
            ("<table><tr><td><h1>A</h1><p>b</p><td>c</table>", "# A\n\nb\n\nc"),
            ("x<pre>\n  a\n    b<br>c\n</pre>y", "x\n\n  a\n    b\nc\n\ny"),
            ("a<pre> \n </pre>b", "a\n\nb"),
            ("<nav>menu</nav><main>text</main><footer>foot</footer>", "menu\n\ntext\n\nfoot"),
            ("&lt;b&gt; &amp;&nbsp;x &#233; &#xd800;", "<b> & x é \ufffd"),
            ("a<!-- comment -->b<![CDATA[c]]>", "ab"),
            ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"),
            ("<p>x</p><![x]>y", "x\n\ny"),
            ("<p>x &#" + "9" * 5_000 + "; y", "x \ufffd y"),
            ("<noscript><div><table></noscript>x<NOSCRIPT>y</NOSCRIPT>z", "xz"),
            ("x<iframe>fallback</iframe><noembed>fallback</noembed>", "x"),
        ],
    )
    def test_text(self, tmp_path, html, text):
        assert read_one(tmp_path / "page.htm", html).text == text

    def test_what_is_no_content_is_dropped(self, tmp_path):
        html = """<!DOCTYPE html><html><head><title>T</title><style>p {}</style><script>f()</script></head>
        <body><noscript>off</noscript><template><p>tpl</p></template><p>Text<script>g()</script></p></body>"""
        assert read_one(tmp_path / "page.html", html).text == "Text"

    def test_head_that_is_not_closed(self, tmp_path):
        document = read_one(tmp_path / "page.html", "<!doctype html><html><head><title>T</title><p>Text")
        assert (document.title, document.text) == ("T", "Text")

    def test_deep_nesting(self, tmp_path):
        assert read_one(tmp_path / "page.html", "<div>" * 5_000 + "Text").text == "Text"

    def test_no_warnings(self, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_one(tmp_path / "a.html", "page.html").text == "page.html"
            xhtml = '<?xml version="1.0" encoding="utf-8"?><html><body>é</body></html>'
            assert read_one(tmp_path / "b.html", xhtml).text == "é"

    @pytest.mark.parametrize(
        ("declared", "encoding"),
        [
            ("utf-8", "utf-8"),
            ("utf-16", "utf-8"),
            ("windows-1252", "cp1252"),
            ("ISO-8859-1", "cp1252"),
            ("utf-8", "utf-8-sig"),
            ("latin1", "utf-16"),
            ("gb2312", "gb18030"),
        ],
    )
    def test_encodings(self, tmp_path, declared, encoding):
        html = f"<meta charset='{declared}'><p>Größe – “x”"
        assert read_one(tmp_path / "page.html", html.encode(encoding)).text == "Größe – “x”"

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("Łódź", "utf8 iso-8859-2 l2 iso-8859-16 windows-1250 x-cp1250=cp1250 gb18030"),
            ("Привет", "iso-8859-5 cyrillic windows-1251 koi8-r koi=koi8-r koi8-u ibm866 x-mac-cyrillic=mac-cyrillic"),
            ("γεια", "iso-8859-7 greek windows-1253"),
            ("שלום", "iso-8859-8 iso-8859-8-i=iso-8859-8 windows-1255"),
            ("سلام", "iso-8859-6 windows-1256"),
            ("ığş", "iso-8859-3 iso-8859-9 windows-1254"),
            ("šķ", "iso-8859-4 iso-8859-10 iso-8859-13 windows-1257"),
            ("café", "iso-8859-1 iso-8859-14 iso-8859-15 windows-1252 windows-1258 macintosh"),
            ("ไทย", "iso-8859-11 tis-620 windows-874=cp874"),
            ("東京", "gbk big5 big5-hkscs shift_jis windows-31j=cp932 euc-jp iso-2022-jp"),
            ("서울", "euc-kr ks_c_5601-1987 ksc_5601=cp949 windows-949=cp949"),
        ],
    )
    def test_encodings_of_the_html_standard(self, tmp_path, text, names):
        for name in names.split():
            declared, _, python = name.partition("=")
            html = f"<meta charset='{declared}'><p>{text}".encode(python or declared)
            assert read_one(tmp_path / "page.html", html).text == text

    @pytest.mark.parametrize(
        ("html", "reason"),
        [
            (b"<meta charset=utf-8><p>Gr\xf6\xdfe", "not valid UTF-8 (byte 0xf6 at offset 25)"),
            (b"<meta charset=windows-1252><p>\x81", "not valid WINDOWS-1252 (byte 0x81"),
            (b"<meta charset=klingon><p>x", "unknown encoding, 'klingon'"),
            (b"<meta charset=zlib><p>x", "unknown encoding, 'zlib'"),
            *(
                (f"<meta charset={name}><p>x".encode(), f"declares an unknown encoding, '{name}'")
                for name in (
                    "punycode",
                    "idna",
                    "unicode_escape",
                    "raw_unicode_escape",
                    "utf-7",
                    "cp037",
                    "undefined",
                    "hz-gb-2312",
                    "x-user-defined",
                )
            ),
        ],
    )
    def test_problems(self, tmp_path, html, reason):
        assert reason in read_problem(tmp_path / "page.html", html).reason


class TestPdf:
    def test_pages(self, tmp_path):
        document = read_one(tmp_path / "paper.pdf", pdf("First page.\nSecond line.  ", "", "Third page."))
        assert document.title == "A Title"
        starts = document.page_starts
        assert len(starts) == 3
        assert starts[0] == 0
        assert document.text.startswith("First page.\nSecond line.")
        assert document.text[starts[1] : starts[2]] == "\n\n"
        assert document.text[starts[2] :].startswith("Third page.")
        assert document.text[starts[1] - 2 : starts[1]] == "\n\n"
        assert not any(line.endswith(" ") for line in document.text.split("\n"))

    def test_last_page_empty(self, tmp_path):
        document = read_one(tmp_path / "paper.pdf", pdf("Text.", ""))
        assert document.page_starts[1] == len(document.text)

    def test_title_is_the_stem_when_blank(self, tmp_path):
        assert read_one(tmp_path / "paper.pdf", pdf("Text.", title="  ")).title == "paper"

    def test_empty_user_password(self, tmp_path):
        document = read_one(tmp_path / "a.pdf", encrypted(pdf("Text."), ""))
        assert (document.title, document.text.strip()) == ("A Title", "Text.")

    def test_password_needed(self, tmp_path):
        problem = read_problem(tmp_path / "a.pdf", encrypted(pdf("Text."), "secret"))
        assert problem == Problem(str(tmp_path / "a.pdf"), "the PDF is encrypted and needs a password")

    def test_images_only(self, tmp_path):
        reason = read_problem(tmp_path / "a.pdf", pdf("", "")).reason
        assert "no text could be found" in reason
        assert "OCR" in reason

    @pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.4\n", pdf("Text.")[:300], bytes(range(256)) * 9])
    def test_broken(self, tmp_path, data):
        assert read_problem(tmp_path / "a.pdf", data).reason.startswith("broken PDF: ")

    def test_broken_page(self, tmp_path):
        path = tmp_path / "a.pdf"
        data = pdf("One.", "Two.")
        page = PdfReader(io.BytesIO(data)).pages[0].indirect_reference.idnum
        write(path, data.replace(f"\n{page} 0 obj".encode(), f"\n{page} 0 xxx".encode()))
        documents, problems = read(path)
        assert documents[0].text.strip() == "Two."
        assert documents[0].page_starts == (0, 2)
        assert problems == [Problem(f"{path}, page 1", "Failed to load page.")]

    def test_a_row_of_a_table_is_a_line(self, tmp_path):
        rows = ["Year,Ships built,Harbour dues", "1901,7,1234", "1902,,none", "1903,9,5"]
        buffer = io.BytesIO()
        text = Paragraph("The dues of the harbour follow. " * 9, getSampleStyleSheet()["BodyText"])
        SimpleDocTemplate(buffer).build([text, Table([row.split(",") for row in rows]), text])
        lines = read_one(tmp_path / "a.pdf", buffer.getvalue()).text.split("\n")
        start = lines.index("Year | Ships built | Harbour dues")
        assert lines[start + 1 : start + 4] == ["1901 | 7 | 1234", "1902 | none", "1903 | 9 | 5"]
        assert sum(" | " in line for line in lines) == 4

    def test_columns_are_read_one_after_the_other(self, tmp_path):
        buffer = io.BytesIO()
        canvas = Canvas(buffer)
        for column in (0, 1):
            for number in range(5):
                canvas.drawString(72 + 250 * column, 700 - 20 * number, f"column {column} line {number}")
        canvas.save()
        lines = read_one(tmp_path / "a.pdf", buffer.getvalue()).text.split("\n")
        assert lines == [f"column {column} line {number}" for column in (0, 1) for number in range(5)]

    def test_a_word_that_is_divided_at_the_end_of_a_line_is_whole_again(self, tmp_path):
        text = read_one(tmp_path / "a.pdf", pdf("It was never for-\ngotten by A-\nRAG.")).text
        assert "never forgotten by A-RAG." in text

    def test_cells_after_characters_beyond_the_first_plane(self, tmp_path):
        buffer = io.BytesIO()
        pdfmetrics.registerFont(TTFont("DejaVu", Path(mpl.get_data_path(), "fonts/ttf/DejaVuSans.ttf")))
        canvas = Canvas(buffer)
        canvas.setFont("DejaVu", 10)
        for number in range(2):
            for column, cell in enumerate(("\U0001d538" * 9, "y", "z")):
                canvas.drawString(72 + 100 * column, 700 - 20 * number, cell)
        canvas.save()
        writer = PdfWriter(clone_from=PdfReader(buffer))
        for font in writer.pages[0]["/Resources"]["/Font"].values():
            if "/ToUnicode" in font.get_object():
                names = font.get_object()["/ToUnicode"].get_object()
                names.set_data(names.get_data().replace(b"<1D538>", b"<D835DD38>"))  # as UTF-16 has it
        buffer = io.BytesIO()
        writer.write(buffer)
        text = read_one(tmp_path / "a.pdf", buffer.getvalue()).text
        assert text == "\n".join(["\U0001d538" * 9 + " | y | z"] * 2)

    def test_a_pdf_that_ends_the_process_costs_only_itself(self, tmp_path, monkeypatch):
        for name in "abc":
            write(tmp_path / f"{name}.pdf", pdf(f"Text {name}."))
        start = reading_pdfs._start
        crash = [sys.executable, "-c", "import os; input(); os.abort()"]
        starts = [lambda: subprocess.Popen(crash, stdin=subprocess.PIPE, stdout=subprocess.PIPE), start]

        def start_next():
            return starts.pop(0)()

        monkeypatch.setattr(reading_pdfs, "_start", start_next)
        documents, problems = read(tmp_path)
        assert [document.text.strip() for document in documents] == ["Text b.", "Text c."]
        (problem,) = problems
        assert problem.source == str(tmp_path / "a.pdf")
        assert problem.reason == "the PDF cannot be read: the process that reads it ended (exit code -6)"
        assert starts == []

    def test_a_process_that_was_killed_is_started_again(self, tmp_path):
        write(tmp_path / "a.pdf", pdf("Text."))
        with closing(PdfProcess(Limits())) as reader:
            for _ in range(2):
                assert reader.read(tmp_path / "a.pdf").text.strip() == "Text."
                reader._process.kill()
                reader._process.wait()
            last = reader._process
        assert last.stdin.closed

    def test_the_process_ends_with_the_reading(self, tmp_path):
        for name in "ab":
            write(tmp_path / f"{name}.pdf", pdf("Text."))
        items = read_documents([tmp_path])
        next(items)
        process = items.gi_frame.f_locals["pdfs"]._process
        assert process.poll() is None
        items.close()
        assert process.poll() is not None

    def test_no_file_beside_is_taken_for_a_module(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("json.py", "pypdfium2.py"):
            write(tmp_path / name, "raise SystemExit")
        assert read_one(tmp_path / "a.pdf", pdf("Text.")).text.strip() == "Text."


class TestLimits:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.txt", "x" * 51),
            ("a.txt", "é" * 51),
            ("a.txt", "x" * 1_000),
            ("a.md", "---\na: b\n---\n" + "x" * 51),
            ("a.html", "<p>" + "x" * 51),
            ("a.json", {"text": "x" * 51}),
            ("a.jsonl", lines({"text": "x" * 51})),
            ("a.pdf", pdf("x" * 20, "x" * 20, "x" * 20)),
        ],
    )
    def test_text_that_is_too_long_is_left_out(self, tmp_path, name, data):
        write(tmp_path / name, data)
        write(tmp_path / "b.txt", "x" * 50)
        document, problem = sorted(
            read_documents([tmp_path], limits=Limits(max_characters=50)), key=lambda item: isinstance(item, Problem)
        )
        assert document.id == "b.txt"
        assert problem.source.startswith(str(tmp_path / name))
        assert problem.reason == (
            "more than 50 characters of text; raise the limit with --max-characters "
            "(in Python: limits=Limits(max_characters=...))"
        )

    def test_pages(self, tmp_path):
        write(tmp_path / "a.pdf", pdf(*["Text."] * 4))
        (document,) = read_documents([tmp_path], limits=Limits(max_pages=4))
        assert len(document.page_starts) == 4
        (problem,) = read_documents([tmp_path], limits=Limits(max_pages=3))
        assert problem.reason.startswith("more than 3 pages; raise the limit with --max-pages")

    def test_seconds(self, tmp_path):
        write(tmp_path / "a.pdf", pdf(*["Text."] * 500))
        (problem,) = read_documents([tmp_path], limits=Limits(max_seconds=0.001))
        assert problem.reason.startswith("not read within 0.001 seconds; raise the limit with --max-seconds")

    def test_a_small_pdf_with_endless_text(self, tmp_path):
        data = bomb()
        assert len(data) < 5_000
        write(tmp_path / "a.pdf", data)
        write(tmp_path / "b.txt", "Text.")
        problem, document = read_documents([tmp_path], limits=Limits(max_characters=10_000, max_seconds=1))
        assert "raise the limit with --max-" in problem.reason
        assert document.id == "b.txt"

    def test_ready_chunks_are_no_one_text(self, tmp_path):
        write(tmp_path / "chunks.json", ["0:" + "x" * 30, "1:" + "y" * 30])
        (document,) = read_documents([tmp_path], limits=Limits(max_characters=50))
        assert len(document.ready_chunks) == 2

    @pytest.mark.parametrize("limits", [{"max_characters": 0}, {"max_pages": -1}, {"max_seconds": float("nan")}])
    def test_limits_that_are_none(self, limits):
        with pytest.raises(InputError, match=f"{next(iter(limits))} is .*: it must be above 0"):
            Limits(**limits)


class TestRecords:
    def test_jsonl(self, tmp_path):
        path = tmp_path / "notes.jsonl"
        records = [
            {"id": "a", "title": "Ann", "text": "She left.", "year": 1990, "more": {"tags": ["x", None]}},
            {"text": "Second."},
        ]
        write(path, lines(*records))
        documents, problems = read(path)
        assert problems == []
        assert documents[0] == Document(
            id="a",
            title="Ann",
            text="Ann\n\nShe left.",
            source=f"{path}, line 1",
            metadata={"year": 1990, "more": {"tags": ["x", None]}},
        )
        assert documents[1] == Document("notes.jsonl#2", "", "Second.", f"{path}, line 2", named_by_path=True)

    @pytest.mark.parametrize(
        ("title", "text", "expected"),
        [
            ("Ann", "Ann left.", "Ann left."),
            ("Ann", "\nAnn: a life", "\nAnn: a life"),
            ("Ann", "Anna left.", "Ann\n\nAnna left."),
            ("Ann", "Ann", "Ann"),
            ("  Ann\nLee ", "left", "Ann Lee\n\nleft"),
            (1984, "A novel.", "1984\n\nA novel."),
            (1.5, "x", "1.5\n\nx"),
            ("", "x\r\ny\rz", "x\ny\nz"),
            (None, " x ", " x "),
        ],
    )
    def test_title_and_text(self, tmp_path, title, text, expected):
        path = tmp_path / "a.json"
        document = read_one(path, {"title": title, "text": text})
        assert document.text == expected

    def test_bad_lines_lose_only_themselves(self, tmp_path):
        path = tmp_path / "a.jsonl"
        data = [
            b'{"text": "one"}',
            b'{"text": "bro',
            b"",
            b"  \r",
            b'{"text": "\xff"}',
            b"[1]",
            b'"string"',
            b'{"title": "x"}',
            b'{"text": 5}',
            b'{"text": null}',
            b'{"text": "\\n "}',
            b'{"text": "x", "title": ["x"]}',
            b'{"text": "x", "title": true}',
            b'{"text": "x"} {"text": "y"}',
            b'{"text": "x", "n": ' + b"9" * 5_000 + b"}",
            b'{"text": "x", "n": ' + b"[" * 100_000 + b"}",
            b'{"text": "last"}\r',
        ]
        write(path, b"\n".join(data))
        documents, problems = read(path)
        assert [(d.id, d.text, d.source) for d in documents] == [
            ("a.jsonl#1", "one", f"{path}, line 1"),
            ("a.jsonl#15", "last", f"{path}, line 17"),
        ]
        reasons = {p.source.rpartition(" ")[2]: p.reason for p in problems}
        assert [p.source.rpartition(" ")[0] for p in problems] == [f"{path}, line"] * 13
        assert reasons["2"] == "not valid JSON: Unterminated string starting at (column 10)"
        assert reasons["5"] == "not valid UTF-8 (byte 0xff at offset 10); convert it to UTF-8"
        assert reasons["6"] == "the record is a list; it must be an object"
        assert reasons["7"] == "the record is a string; it must be an object"
        assert reasons["8"] == reasons["10"] == 'the record has no "text"'
        assert reasons["9"] == '"text" is an integer; it must be a string'
        assert reasons["11"] == "empty document"
        assert reasons["12"].startswith('"title" is a list; it must be a string')
        assert reasons["13"].startswith('"title" is true or false')
        assert reasons["14"] == "not valid JSON: Extra data (column 15)"
        assert "4300 digits" in reasons["15"]
        assert "nested too deeply" in reasons["16"]

    def test_bad_characters(self, tmp_path):
        path = tmp_path / "a.jsonl"
        write(path, r'{"id": "i\ud800", "text": "a\udc00\u0000b \ud83c\udf89", "k\ud800": ["\ud800\u0000"]}')
        (document,) = read(path)[0]
        assert (document.id, document.text) == ("i\ufffd", "a\ufffdb 🎉")
        assert document.metadata == {"k\ufffd": ["\ufffd"]}

    def test_nan_is_null(self, tmp_path):
        document = read_one(tmp_path / "a.json", '{"text": "x", "a": NaN, "b": [-Infinity, 1e999], "title": NaN}')
        assert (document.title, document.metadata) == ("", {"a": None, "b": [None, None]})

    @pytest.mark.parametrize("wrap", [None, "documents", "records", "data"])
    def test_json_lists(self, tmp_path, wrap):
        path = tmp_path / "notes.json"
        records = [{"id": 7, "text": "One."}, {"title": "x"}, "text", {"text": "Two."}]
        write(path, {"version": 1, wrap: records} if wrap else records)
        documents, problems = read(path)
        assert [(d.id, d.text, d.source) for d in documents] == [
            ("7", "One.", f"{path}, item 1"),
            ("notes.json#4", "Two.", f"{path}, item 4"),
        ]
        assert [p.source for p in problems] == [f"{path}, item 2", f"{path}, item 3"]

    def test_json_record(self, tmp_path):
        document = read_one(tmp_path / "a.json", {"text": "One.", "data": [1, 2]})
        assert (document.id, document.metadata) == ("a.json#1", {"data": [1, 2]})

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            ('[\n {"text": }]', "not valid JSON: Expecting value (line 2, column 11)"),
            ("[]", "empty list"),
            ('{"data": []}', "empty list"),
            ('{"data": 1}', "neither a"),
            ('"text"', "the top level is a string"),
            ("5", "the top level is an integer"),
            ("1.5", "the top level is a number"),
            ("null", "the top level is null"),
            ("true", "the top level is true or false"),
            ("[" * 100_000, "nested too deeply"),
            ("[" * 150 + "]" * 150, "nested too deeply"),
            ("9" * 5_000, "4300 digits"),
        ],
    )
    def test_bad_json(self, tmp_path, data, reason):
        problem = read_problem(tmp_path / "a.json", data)
        assert problem.source == str(tmp_path / "a.json")
        assert reason in problem.reason


class TestChunks:
    @pytest.mark.parametrize("name", ["chunks.json", "other.json"])
    def test_strings(self, tmp_path, name):
        document = read_one(tmp_path / name, ["0:First: a\r\n", "b-1: second ", "2:third"])
        assert document == Document(
            id=name,
            title="",
            text="First: a\r\n second third",
            source=str(tmp_path / name),
            ready_chunks=(("0", "First: a\r\n"), ("b-1", " second "), ("2", "third")),
            named_by_path=True,
        )

    def test_objects(self, tmp_path):
        objects = [{"id": 0, "text": "a"}, {"id": "1", "text": "b", "title": None}]
        document = read_one(tmp_path / "chunks.json", objects)
        assert document.ready_chunks == (("0", "a"), ("1", "b"))

    @pytest.mark.parametrize(
        ("name", "objects"),
        [
            ("other.json", [{"id": "0", "text": "a"}, {"id": "1", "text": "b"}]),
            ("chunks.json", [{"id": "0", "text": "a"}, {"id": "1", "text": "b", "title": "t"}]),
            ("chunks.json", [{"text": "a"}, {"text": "b"}]),
        ],
    )
    def test_records(self, tmp_path, name, objects):
        write(tmp_path / name, objects)
        documents, problems = read(tmp_path)
        assert [d.ready_chunks for d in documents] == [None, None]
        assert problems == []

    def test_bad_items(self, tmp_path):
        path = tmp_path / "chunks.json"
        items = ["0:a", "no colon", ":no id", " :no id", "0:again", "1: \n", 5, "x\ny:b", {"id": "2"}]
        items += [{"text": "c"}, {"id": "3", "text": 3}, {"id": True, "text": "t"}, {"id": "4", "text": "d"}]
        write(path, items)
        documents, problems = read(path)
        assert [d.ready_chunks for d in documents] == [(("0", "a"), ("4", "d"))]
        assert [p.source for p in problems] == [f"{path}, item {n}" for n in range(2, 13)]
        reasons = [p.reason for p in problems]
        assert reasons[0] == 'the chunk has no colon; it must be "id:text"'
        assert reasons[1] == reasons[2] == "empty chunk id"
        assert reasons[3] == "duplicate chunk id '0'"
        assert reasons[4] == "empty chunk"
        assert "an integer" in reasons[5]
        assert "control characters" in reasons[6]

    def test_no_good_item(self, tmp_path):
        write(tmp_path / "a.json", ["no colon", "none here"])
        documents, problems = read(tmp_path)
        assert documents == []
        assert len(problems) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["id", "title", "text", "data"]) | st.text(), inner)
    ),
    max_leaves=12,
)
json_like = json_values.map(lambda value: json.dumps(value).encode())
records = st.lists(st.fixed_dictionaries({"text": st.text(), "id": json_values}), max_size=3)
file_contents = (
    st.binary(max_size=200)
    | json_like
    | st.lists(json_like | st.binary(max_size=30), max_size=5).map(b"\n".join)
    | records.map(lambda value: json.dumps(value).encode())
    | st.lists(st.text() | json_values, max_size=4).map(lambda value: json.dumps(value).encode())
)


@given(data=file_contents, name=st.sampled_from(["a.jsonl", "a.json", "chunks.json"]))
def test_malformed_records_never_raise(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data)
    documents, problems = read(path)
    assert documents or problems
    for document in documents:
        assert document.text.strip()
        assert document.id == document.id.strip() != ""
        json.dumps([document.id, document.title, document.text, document.metadata], ensure_ascii=False).encode()
        if document.ready_chunks:
            assert document.text == "".join(text for _, text in document.ready_chunks)
    for problem in problems:
        assert problem.reason
        assert problem.source.startswith(str(path))
        str(problem).encode()


@pytest.mark.parametrize("several", [False, True])
def test_the_corpora_of_graphrag_bench(tmp_path, several):
    corpus = {"corpus_name": "Medical", "context": "Basal cell carcinoma is common. It grows slowly.", "source": "NCCN"}
    file = tmp_path / "medical.json"
    file.write_text(json.dumps([corpus] if several else corpus))
    (document,) = read_documents([file])
    assert (document.id, document.text) == ("Medical", corpus["context"])
    assert document.metadata == {"source": "NCCN"}


@pytest.mark.parametrize(
    ("page", "title", "text"),
    [
        ('<meta name="description" content="Set encoding=base64 in mail"><meta charset="utf-8"><p>café', "", "café"),
        ('<meta name="description" content="encoding=latin1"><p>café', "", "café"),
        ("<title>The <noscript> tag</title><p>x", "The <noscript> tag", "x"),
    ],
)
def test_what_is_said_of_encodings_and_tags_is_text(page, title, text):
    content = read_html(page.encode())
    assert (content.title, content.text.strip()) == (title, text)
