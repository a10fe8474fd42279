"""Titles of web pages tell them apart: none has the name of the site, which all share, and none is that name alone."""

from __future__ import annotations

import gzip

import pytest

from arag import run_ingest
from arag.ingest.formats import Readers
from arag.ingest.reading import SourceReader
from arag.retrieval.index import open_index
from fakes import HashEmbeddings

SITE = {
    "index.html": "Home - The Mill",
    "wheels/index.html": "Wheels - The Mill",
    "wheels/oak/index.html": "Oak: a wood - The Mill",
    "stones/index.html": "Stones - The Mill",
}


def write(folder, titles):
    for name, title in titles.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<title>{title}</title><h1>{name}</h1><p>The part {name} turns.")


def read_titles(folder):
    with Readers() as readers:
        return {document.id: document.title for document in SourceReader(folder, readers).read()}


def test_pages_in_folders_of_their_own_are_compared_with_those_above_and_beside(tmp_path):
    write(tmp_path, SITE)
    assert set(read_titles(tmp_path).values()) == {"Home", "Wheels", "Oak: a wood", "Stones"}
    assert read_titles(tmp_path / "wheels" / "oak") == {"index.html": "Oak: a wood - The Mill"}  # others were not given


@pytest.mark.parametrize(
    "names",
    [
        ["Part 1", "Part 1", "Part 1", "Part 2"],
        ["The Mill", "The Mill", "The Ship", "The Ship"],
    ],
)
def test_a_part_that_is_not_the_name_of_a_site_stays(tmp_path, names):
    titles = {f"{number}/index.html": f"Page {number} - {name}" for number, name in enumerate(names)}
    write(tmp_path, titles)
    assert read_titles(tmp_path) == titles


def test_a_page_may_write_the_name_of_its_site_with_other_capitals(tmp_path):
    write(tmp_path, {f"{number}.html": f"Page {number} - the mill" for number in range(4)} | {"a.html": "A - The Mill"})
    assert read_titles(tmp_path)["a.html"] == "A"


@pytest.mark.parametrize(
    ("pattern", "title"),
    [("{} < Gnumill < Wiki", "Oak"), ("{} (The Mill’s Manual)", "Oak"), ("The Mill ~ {}", "Oak")],
)
def test_names_of_sites_behind_other_signs(tmp_path, pattern, title):
    write(tmp_path, {f"{name}.html": pattern.format(name.title()) for name in ("oak", "rye", "ash", "elm")})
    assert read_titles(tmp_path)["oak.html"] == title


@pytest.mark.parametrize("pattern", ["{} (The Mill 2.0)", "The Mill 2.0: {}"])
def test_the_first_page_of_a_manual_in_texinfo_has_the_name_of_the_manual(tmp_path, pattern):
    titles = {f"{name}.html": pattern.format(name.title()) for name in ("oak", "rye", "ash")}
    write(tmp_path, titles | {"index.html": pattern.format("Top")})
    assert read_titles(tmp_path)["index.html"] == "The Mill 2.0"


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("How to grind rye", "How to grind rye"),
        ("Class RyeMill", "RyeMill"),  # which the title tells, too
        ("Contents of the mill", "RyeMill"),  # of all pages
        ("RYE", "RyeMill"),
    ],
)
def test_a_page_that_has_only_the_name_of_its_file_has_its_heading_as_title(tmp_path, heading, title):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.html").write_text(f"<title>{name}</title><h1>Contents of the mill</h1><p>It turns {name}.")
    (tmp_path / "RyeMill.html").write_text(f"<title>RyeMill</title><h1>{heading}</h1><p>It grinds.")
    assert read_titles(tmp_path)["RyeMill.html"] == title


def test_a_page_in_gzip_is_of_the_same_site(tmp_path):
    write(tmp_path, {f"{number}.html": f"Page {number} - The Mill" for number in range(4)})
    (tmp_path / "news.html.gz").write_bytes(gzip.compress(b"<title>News - The Mill</title><p>The wheel turns."))
    assert read_titles(tmp_path)["news.html.gz"] == "News"


HEADINGS = {
    "oak": "<h1>Oak</h1>",
    "race": "<h1>Water</h1><h2>Race</h2>",
    "pond": "<h1>Water</h1><h2>Pond</h2>",
    "class": "<h2>mill::Wheel Members</h2>",
    "start": "<h1>The Mill</h1><h2>News</h2>",
    "contents": "<h1>Contents</h1>",
    "letter": "<h1>- b -</h1>",
    "none": "",
}


def test_pages_with_the_same_title_have_their_own_headings_instead(tmp_path):
    for name, headings in HEADINGS.items():
        (tmp_path / f"{name}.html").write_text(f"<title>The Mill</title>{headings}<p>The {name} is old.")
    titles = read_titles(tmp_path)
    assert [titles.pop(f"{name}.html") for name in ("oak", "race", "pond", "class")] == [
        "Oak",
        "Race",
        "Pond",
        "mill::Wheel Members",
    ]
    assert set(titles.values()) == {"The Mill"}


def test_pages_that_repeat_the_title_of_their_book_as_a_heading_have_the_one_below_it(tmp_path):
    names = ["Oil", "_Rye", "Tea", "Salt"]
    for name in names:
        (tmp_path / f"{name}.html").write_text(f"<title>The Mill</title><h1>The Mill</h1><h3>{name}</h3><p>It turns.")
    (tmp_path / "start.html").write_text("<title>The Mill</title><h1>The Mill</h1><p>It turns.<h3>Stones</h3><p>Two.")
    assert set(read_titles(tmp_path).values()) == {*names, "The Mill"}


@pytest.mark.parametrize(("place", "number"), [("Section 4.{}", "4.{} "), ("Appendix {}", ""), ("Kapitel {}.", "")])
def test_a_title_that_only_names_a_place_is_the_heading(tmp_path, place, number):
    for n in range(4):
        head = f"<title>The Mill: {place.format(n)}</title><h2>{number.format(n)}Ways to {n} ports</h2><p>It turns."
        (tmp_path / f"{n}.html").write_text(head)
    assert set(read_titles(tmp_path).values()) == {f"{number.format(n)}Ways to {n} ports" for n in range(4)}


def test_two_pages_may_have_the_same_title(tmp_path):
    write(tmp_path, {"a.html": "The Mill", "b.html": "The Mill", "c.html": "Wheels", "d.html": "Stones"})
    assert sorted(read_titles(tmp_path).values()) == ["Stones", "The Mill", "The Mill", "Wheels"]


def test_a_page_that_is_added_changes_titles_but_no_ids_and_no_texts(tmp_path):
    site = tmp_path / "site"
    first, second, third, fourth = SITE.items()
    write(site, dict([first, second]))
    run_ingest(site, tmp_path / "index", embedder=HashEmbeddings())
    write(site, dict([third, fourth]))
    summary = run_ingest(site, tmp_path / "index", embedder=HashEmbeddings())
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        documents = {document.id: document.title for document in index.list_documents().documents}
    assert documents["wheels/index.html"] == "Wheels"
    assert documents.keys() == SITE.keys()
    assert (summary.written, summary.embedded) == (4, 2)  # all four have another title, two are new
