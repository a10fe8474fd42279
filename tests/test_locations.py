"""Where an index is: a folder or an address, in every command, file and message; and no password in any of them."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag import copy_index, ingest, open_index, run_ingest
from arag.errors import InputError
from arag.evaluation.cache import store_folder
from arag.evaluation.plan import load_plan
from arag.graph.server import open_server_index
from arag.retrieval.storage.folder.store import FolderStore
from arag.retrieval.storage.locations import parse_location, store_at
from arag.retrieval.storage.postgres.location import PostgresLocation
from fakes import HashEmbeddings

SECRET = "s3cr3t-Pass"
URL = f"postgresql://ann:{SECRET}@db.example.com:5433/library?index=handbook&sslmode=require"
SHOWN = "postgresql://ann@db.example.com:5433/library?index=handbook&sslmode=require"
DOCUMENTS = [{"id": "lothair", "title": "Lothair II", "text": "Lothair II was a king. He married Teutberga."}]

parse = PostgresLocation.parse


@pytest.fixture
def databases(monkeypatch, tmp_path_factory):
    """A stand-in for PostgreSQL: indexes in folders elsewhere, by what their locations show."""
    made = {}

    def make(location):
        if str(location) not in made:
            made[str(location)] = FolderStore(tmp_path_factory.mktemp("database") / "index")
            made[str(location)].location = str(location)
        return made[str(location)]

    monkeypatch.setattr("arag.retrieval.storage.postgres.store.PostgresStore", make)
    return made


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The working folder, with the user's own folders in it."""
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


# --- what a location is ---


@pytest.mark.parametrize(
    "folder", ["my-index", "", "C:\\index", "a:b/c", "postgres:x", "backups/postgres:/old", "/home/me@company/12:30"]
)
def test_what_is_not_an_address_is_a_folder(folder):
    assert store_at(folder).location == store_at(Path(folder)).location == Path(folder)


@pytest.mark.parametrize("use", [open_index, partial(run_ingest, "a.md"), partial(copy_index, target="made")])
def test_what_is_no_location_is_refused(example_index, use):
    with pytest.raises(InputError, match="of the type Index: give a folder"):
        use(example_index)


MEANT = [
    *[f" {URL}", f'"{URL}"', Path(URL), f"./{URL}", URL.upper(), f"mysql://ann:{SECRET}@host/db"],
    f"host=db.example.com user=ann password={SECRET}",
    f"'host = db.example.com password = {SECRET}'",
    f"dbname=library password='{SECRET}'",
    f"user=ann {SECRET}",
    f"sslpassword={SECRET}",
    f"Driver={{PostgreSQL}};Server=db;Uid=ann;Pwd={SECRET};",
    f"postgres//ann:{SECRET}@host/db",
    f"Postgresql ://ann:{SECRET}@host/db",
    f"postgresql: //ann:{SECRET}@host/db",
    f"postgresql:ann:{SECRET}/x@host/db",
    f'"postgres/ann:{SECRET}/x@host/db"',
    f"ann:{SECRET}@host:5432/db",
    f"//ann:{SECRET}@host/db",
    f"jdbc:postgresql:db?user=ann&password={SECRET}",
    f"postgressql:/ann:s3/{SECRET}@db.example.com/library",
    f"pgsql:/ann:s3/{SECRET}@db.example.com",
    f"ann:s3/{SECRET}@db.example.com/library",
    f"postgresql%3A%2F%2Fann%3A{SECRET}%40db.example.com",
    f"postgresql：//ann：{SECRET}＠db.example.com",
    f"password: {SECRET}",
    f"db.example.com/library?user=ann&pass={SECRET}",
]


@pytest.mark.parametrize("location", MEANT, ids=str)
def test_what_only_looks_like_an_address_is_refused_and_does_not_become_a_folder(location):
    with pytest.raises(InputError, match="give a folder, or postgresql://user") as caught:
        store_at(location)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("location", MEANT, ids=str)
def test_no_command_quotes_or_makes_what_only_looks_like_an_address(arag, home, example_index, monkeypatch, location):
    (home / "work" / "a.md").write_text("The mill stands.")
    said = ""
    for command in (
        ["ingest", "a.md", "--index", location],
        ["ingest", location, "--index", "made"],
        ["ask", "Who?", "--index", location],
        ["mcp", "--index", location],
        ["copy", location, "made"],
        ["copy", example_index.path, location],
        ["eval", "run", "--questions", "q.json", "--method", "naive-rag", "--index", location],
    ):
        code, out, err = arag(*command)
        assert code == 1, (command, out, err)
        said += out + err
    monkeypatch.setenv("ARAG_INDEX", str(location))
    code, out, err = arag("info")
    with pytest.raises(InputError) as caught:
        open_server_index()
    assert SECRET.lower() not in (said + out + err + str(caught.value)).lower()
    assert not [path for path in home.rglob("*") if SECRET.lower() in str(path).lower()]


def test_without_its_packages_an_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("arag.retrieval.storage.postgres.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'langgraph-arag\[postgres\]'"):
        store_at(URL)


# --- the parts of an address ---


def test_the_parts_of_an_address():
    location = parse(URL)
    assert (location.index, location.shown, str(location)) == ("handbook", SHOWN, SHOWN)
    server = {"user": "ann", "password": SECRET, "host": "db.example.com", "port": "5433"}
    assert dict(location.parameters) == {**server, "dbname": "library", "sslmode": "require"}


@pytest.mark.parametrize(
    "address",
    [
        f"ann:{SECRET}/x@host/d",
        f"ann:{SECRET} x@host/d",
        f"ann:{SECRET}@host:5432x/d",
        f"host/d?pass={SECRET}",
        f"host/d?index={'é' * 32}",
        "host/d?index=public",
        "host/d?index=a%00b",
    ],
)
def test_an_address_that_is_not_valid_is_refused_and_not_quoted(address):
    with pytest.raises(InputError, match=r"is not valid.*A valid one looks like postgresql://user") as caught:
        store_at(f"postgresql://{address}")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


ODD = st.text(st.characters(codec="utf-8") | st.sampled_from("@/?:&=%#[]+ \0\n'\"é,;"), max_size=6)


@given(ODD, ODD, st.sampled_from(["{}@h", "ann:{}@h:1"]), st.sampled_from(["", "/d", "/d?index=x"]))
def test_no_odd_password_is_shown_as_it_was_typed(before, after, place, rest):
    """Encoded or not, valid or not: no message, `str` or `repr` has any of it."""
    password = f"{before}{SECRET}{after}"
    place = place if ":{}" in place else "ann:{}@h"
    for written in (password, quote(password, safe=""), quote(password)):
        for address in (
            f"postgresql://{place.format(written)}{rest}",
            f"postgres://h/d?password={written}",
            f"postgres://h/d?sslpassword={written}&index=x",
        ):
            try:
                location = parse(address)
            except InputError as error:
                texts = [str(error), repr(error)]
            else:
                texts = [str(location), repr(location), location.shown]
                assert parse(location.shown).shown == location.shown
                assert password in location.parameters.values() or written == password
            assert not any(SECRET in text for text in texts)


# --- the library ---


def test_the_library_takes_an_address_wherever_it_takes_a_folder(databases):
    with ingest(DOCUMENTS, URL, embedder=HashEmbeddings()) as index:
        assert (index.path, index.info().path) == (SHOWN, SHOWN)
        assert SHOWN in repr(index)
        assert SECRET not in repr(index) + repr(index.as_retriever())
    with open_index(SHOWN) as same:  # somebody whose password is elsewhere
        assert same.keyword_search("Teutberga").hits[0].chunk_id == "lothair:0"
    assert list(databases) == [SHOWN]


# --- the command line, and all files that it writes ---


def test_no_command_shows_or_stores_a_password(arag, databases, home, quick_embedder, monkeypatch):
    (home / "work" / "corpus.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in DOCUMENTS))
    questions = [{"id": "q1", "question": "Whom did Lothair II marry?", "answer": "Teutberga"}]
    (home / "work" / "questions.json").write_text(json.dumps(questions))
    ask = ["ask", "Whom did Lothair II marry?", "--model", "extractive"]
    run = ["eval", "run", "--questions", "questions.json", "--model", "extractive", "--method", "naive-rag"]
    monkeypatch.setenv("ARAG_INDEX", URL)
    said = ""
    for command, expected in [
        (["info"], 1),
        (["ingest", "corpus.jsonl"], 0),
        (["info", "--json"], 0),
        (["list"], 0),
        (["search", "semantic", "king", "--json"], 0),
        ([*ask, "--html", "run.html"], 0),
        ([*run, "--out", "run"], 0),
        (["verify"], 0),
        (["remove", "nothing"], 1),
        (["eval", "report", "run"], 0),
        (["eval", "failures", "run"], 0),
    ]:
        code, out, err = arag(*command)
        assert code == expected, (command, out, err)
        said += out + err
    assert SHOWN in said
    assert SECRET not in said
    assert load_plan(Path("run")).index == SHOWN
    files = [file for file in home.rglob("*") if file.is_file()]
    assert {"run.json", "report.html", "run.html", "failures.csv"} <= {file.name for file in files}
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    assert not [file for file in home.rglob("*") if SECRET in file.name or "postgres" in file.name]


# --- experiments ---


def test_results_are_kept_beside_a_folder_and_for_an_address_with_the_users_data(home):
    assert store_folder(Path("my-index")) == home / "work" / "my-index.methods"
    places = {store_folder(str(parse_location(each))) for each in (URL, SHOWN, URL.replace(SECRET, "other"))}
    assert len(places) == 1
    assert places.pop().is_relative_to(home / "data" / "arag")
    assert store_folder("postgresql://a/d") != store_folder("postgresql://b/d")
