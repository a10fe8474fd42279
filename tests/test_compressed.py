"""Files in gzip are read like what they hold."""

from __future__ import annotations

import gzip

import pytest

from arag.errors import InputError
from arag.ingest.formats import Readers, compressed
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from fakes import HashEmbeddings
from pdf_pages import Pages

PAGE = b"<!DOCTYPE html><title>Lamps</title><p>The lamp is <b>lit</b>."
MAIL = b"From odvar Mon Jul  7 10:30:00 2003\nFrom: Odvar <o@lanthry.example>\nSubject: Oil\n\nThe lamp is lit.\n"


def pdf():
    pages = Pages()
    pages.text(72, 720, "The lamp is lit.")
    return pages.finish()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("README.gz", b"The lamp is lit."),
        ("README.Debian.gz", b"The lamp is lit."),
        ("a.txt.GZ", b"The lamp is lit."),
        ("a.md.gz", b"The lamp is\nlit."),
        ("a.html.gz", PAGE),
        ("a.txt.gz", PAGE),
        ("a.pdf.gz", pdf()),
    ],
)
def test_a_file_in_gzip_is_read_like_what_it_holds(read, name, data):
    assert " ".join(read(name, gzip.compress(data)).text.split()) == "The lamp is lit."


def test_its_document_has_its_name_and_the_kind_of_what_it_holds(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    files = {"guide.txt.gz": b"It is lit.", "lamps.html.gz": PAGE, "old.md": b"It is dark."}
    files["changelog.Debian.amd64.gz"] = b"It is new."
    for name, data in files.items():
        folder.joinpath(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    place = tmp_path / "index"
    run_ingest(folder, place, embedder=HashEmbeddings())
    with open_index(place, embedder=HashEmbeddings()) as index:
        listed = [(document.id, document.title, document.kind) for document in index.list_documents().documents]
    assert [kind for id_, _, kind in listed if id_.startswith("changelog")] == ["txt"]
    assert listed[1:] == [("guide.txt.gz", "guide", "txt"), ("lamps.html.gz", "Lamps", "html"), ("old.md", "old", "md")]


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # each worker names the tests by their data


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.txt.gz", b"The lamp is lit.", "a damaged gzip archive: Not a gzipped file (b'Th')"),
        ("a.txt.gz", packed(b"lit" * 99)[:-9], "a damaged gzip archive: Compressed file ended before"),
        ("a.txt.gz", packed(b""), "the file is empty"),
        ("a.txt.gz", packed(MAIL + MAIL), "a mailbox in a gzip archive: unpack it"),
        ("a.txt.gz", packed(packed(b"lit")), "a gzip archive: unpack it"),
        ("a.txt.gz", packed(b"oil\n" * 999), "more than 0 MB in a gzip archive"),
    ],
)
def test_what_cannot_be_read_is_named(reason, monkeypatch, name, data, expected):
    monkeypatch.setattr(compressed, "MAX_FILE_BYTES", 3_000)
    assert reason(name, data).startswith(expected)


def test_a_mailbox_in_gzip_is_not_said_to_be_read(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(packed(MAIL + MAIL))
    (tmp_path / "b.txt").write_text("The lamp is lit.")
    summary = run_ingest(tmp_path, tmp_path / "index", embedder=HashEmbeddings())
    assert (summary.read, summary.read_as) == (1, ())


@pytest.mark.parametrize(
    ("name", "data", "advice"),
    [
        ("a.tar.gz", b"lamp\0", "no reader for .tar.gz; unpack it"),
        ("mails.mbox.gz", b"Lit.", "no reader for .mbox.gz; unpack it"),
        ("book.ps.gz", b"%!PS", "no reader for .ps.gz; convert it to .pdf"),
        ("README.ps.gz", b"%!PS", "no reader for .ps.gz; convert it to .pdf"),
        ("README.dvi.gz", b"\0", "no reader for .dvi.gz; convert it to .pdf or .epub"),
        ("lamp.info.gz", b"\x1f", "no reader for .info.gz; write its text with info --subnodes --output"),
        ("lamp.bin.gz", b"\0", "no reader for .bin.gz; give its text, or a reader of yours in Python (readers=)"),
        ("lamp.1.gz", b".TH LAMP 1", "no reader for .1.gz; write its text with man -l"),
        ("lamp.srt.gz", b"Lit.", "no reader for .srt.gz; to read it as text: --as .srt=.txt"),
    ],
)
def test_other_archives_are_skipped_with_what_to_do(tmp_path, name, data, advice):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / name).write_bytes(gzip.compress(data))
    (docs / "a.txt").write_text("It is lit.")
    summary = run_ingest(docs, tmp_path / "index", embedder=HashEmbeddings())
    assert [skipped.reason for skipped in summary.skipped] == [advice]
    with pytest.raises(InputError, match="unknown extension"):
        run_ingest(docs / name, tmp_path / "index", embedder=HashEmbeddings())


def test_the_extension_inside_is_enough_to_read_an_archive_as_text(tmp_path):
    (tmp_path / "lamp.srt.gz").write_bytes(gzip.compress(b"It is lit."))
    with Readers({".srt": ".txt"}) as readers:
        assert readers.read(tmp_path / "lamp.srt.gz").text == "It is lit."
    with pytest.raises(InputError, match=r"'.srt.gz' is not an extension: give one .*, such as .log, and without .gz"):
        Readers({".srt.gz": ".txt.gz"})


@pytest.mark.parametrize(
    "name", ["README.SSL", "CHANGES-2.10.gz", "NEWS.gz", "Changes.old", "changelog.Debian.amd64.gz"]
)
def test_a_text_with_the_name_of_one_needs_no_known_extension(tmp_path, name):
    text = b"It is lit."
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    summary = run_ingest(tmp_path, tmp_path / "index", embedder=HashEmbeddings())
    assert (summary.documents, summary.skipped) == (1, ())


@pytest.mark.parametrize(
    ("name", "title"),
    [("README.pix_routing", "README.pix_routing"), ("README.routing.gz", "README.routing"), ("README.txt", "README")],
)
def test_the_titles_of_texts_beside_each_other_have_their_whole_names(tmp_path, name, title):
    text = b"it is lit by hand, and by nobody else.\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    run_ingest(tmp_path, tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        assert [document.title for document in index.list_documents().documents] == [title]


@pytest.mark.parametrize("name", ["README.ipf", "README.ipf.gz"])
def test_a_printed_manual_page_may_have_any_extension(tmp_path, name):
    bold = "".join(f"{letter}\b{letter}" for letter in "NAME")
    text = f"lamp(1)      Lamps      lamp(1)\n\n{bold}\n       lamp - read the defini\xad\n       tions\n"
    data = text.encode("cp1252")
    (tmp_path / name).write_bytes(packed(data) if name.endswith(".gz") else data)
    with Readers() as readers:
        assert readers.knows(tmp_path / name)
        assert readers.read(tmp_path / name).text.strip() == "# NAME\n       lamp - read the definitions"


def test_markdown_with_code_to_run_is_markdown(tmp_path):
    text = '---\ntitle: "Lamps"\n---\n\n```{r setup}\n# a note\nlibrary(oil)\n```\n\n## Wicks\n\nTrim them.\n'
    for name in ["lamps.Rmd", "lamps.qmd"]:
        (tmp_path / name).write_text(text)
        with Readers() as readers:
            content = readers.read(tmp_path / name)
        assert content.title == "Lamps"
        assert content.text.endswith("```\n\n## Wicks\n\nTrim them.\n")
