"""A limited index behaves as an index of the allowed documents only."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arag import Scope, make_tools
from arag.errors import ARAGError, InputError
from arag.ingest.pipeline import ingest
from fakes import HashEmbeddings
from searches import DOCUMENTS, KEYWORDS, everything, make_records

# --- which documents a scope allows ---


def test_a_copy_with_other_conditions_allows_what_these_say():
    ours = Scope(where={"tenant": "a"})
    theirs = ours.model_copy(update={"where": {"tenant": "b"}})
    assert [scope.allows("x", {"tenant": "a"}) for scope in (ours, theirs, copy.deepcopy(ours))] == [True, False, True]
    assert ours == copy.deepcopy(ours) != theirs


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ({"year": 2019}, "a"),
        ({"year": {"$ne": 2019}}, "bc"),
        ({"year": {"$gt": 2019}}, "b"),
        ({"year": {"$gte": 2019, "$lt": 2020}}, "a"),
        ({"year": {"$lt": 2020.5}}, "ab"),
        ({"year": {"$lte": 2019}}, "a"),
        ({"team": {"$gt": "ops"}}, "b"),  # texts are compared with texts only
        ({"year": {"$gt": "1"}}, ""),
        ({"team": {"$in": ["ops", "it"]}}, "a"),
        ({"team": {"$nin": ["ops", "it"]}}, "bc"),
        ({"team": {"$in": []}}, ""),
        ({"tags": {"$contains": "y"}}, "a"),
        ({"tags": {"$not_contains": "y"}}, "bc"),
        ({"tags": "y"}, ""),  # a list is not one of its items
        ({"open": True}, "a"),
        ({"open": 1}, "b"),  # and true is not 1
        ({"open": {"$in": [1]}}, "b"),
        ({"$or": [{"team": "ops"}, {"open": 1}]}, "ab"),
        ({"$and": [{"team": "ops"}, {"open": 1}]}, ""),
        ({"team": "ops", "open": 1}, ""),
        ({"$or": [{"$and": [{"year": 2019}, {"team": "ops"}]}, {"field": {"$gt": 0}}]}, "a"),
    ],
    ids=str,
)
def test_conditions_choose_documents(where, allowed):
    documents = {
        "a": {"team": "ops", "year": 2019, "open": True, "tags": ["x", "y"]},
        "b": {"team": "sales", "year": 2020, "open": 1, "tags": ["x"]},
        "c": {},
    }
    scope = Scope(where=where)
    assert [i for i, metadata in documents.items() if scope.allows(i, metadata)] == [*allowed]


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (["handbook/a.md", "n[1].txt"], ["handbook/a.md", "n[1].txt"]),
        (["n?.txt"], []),
        (["h*b*.md"], ["handbook/a.md", "handbook/b/c.md"]),
        (["*.txt"], ["n[1].txt", "n1.txt"]),
        ([], []),
        (None, ["handbook/a.md", "handbook/b/c.md", "n[1].txt", "n1.txt"]),
    ],
)
def test_patterns_choose_documents(patterns, allowed):
    ids = ["handbook/a.md", "handbook/b/c.md", "n[1].txt", "n1.txt"]
    scope = Scope(documents=patterns)
    assert [i for i in ids if scope.allows(i, {})] == allowed


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"where": {"year": {"$above": 1}}}, "'$above' is not an operator: valid are $eq, $ne"),
        ({"where": {"$or": []}}, "$or needs a list of conditions, not []"),
        ({"documents": "handbook/*"}, "'handbook/*' is a string: give a list of ids or patterns"),
        ({"where": {"a": 10**5000}}, "the scope is not valid: Exceeds the limit"),
        ({"documents": ["a*" * 500_000]}, "documents.0: String should have at most 2000 characters"),
        ({"documents": "a*" * 500_000}, "is a string: give a list of ids or patterns"),
        ({"where": {"a": {"$like" * 500_000: 1}}}, "is not an operator: valid are $eq, $ne"),
        ({"where": {"$like" * 500_000: 1}}, "is not valid around conditions"),
        ({"where": {"a" * 500_000: {"$in": "b" * 500_000}}}, "it needs a list of texts"),
        ({"where": {"$or": "b" * 500_000}}, "$or needs a list of conditions"),
        ({"x" * 500_000: 1}, "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_scope_is_refused(conditions, message):
    with pytest.raises(InputError) as caught:
        Scope(**conditions)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_no_pattern_takes_long():
    assert not Scope(documents=["*a" * 50 + "!"]).allows("a" * 100_000, {})


def test_a_scope_is_a_value():
    teams = ["ops"]
    scope = Scope(where={"team": {"$in": teams}}, documents=["a*"])
    teams.append("sales")
    assert not scope.allows("a", {"team": "sales"})
    assert scope == Scope(where={"team": {"$in": ["ops"]}}, documents=["a*"])
    assert Scope(where={"open": True}) != Scope(where={"open": 1})


# --- what a limited index finds ---


def make(records, place):
    return ingest(records, place, embedder=HashEmbeddings())


@pytest.mark.heavy
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents=DOCUMENTS, keywords=KEYWORDS, data=st.data())
def test_a_limited_index_equals_one_of_these_documents(tmp_path_factory, documents, keywords, data):
    folder = tmp_path_factory.mktemp("limits")
    records = make_records(documents)
    allowed = data.draw(st.sets(st.integers(0, len(records) - 1), min_size=1))
    scope = Scope(where={"n": {"$in": sorted(allowed)}})
    limit = data.draw(st.sampled_from([scope, [f"d{i}" for i in allowed]]))
    ids = [record["id"] for record in records]
    with (
        make(records, folder / "whole") as whole,
        make([record for record in records if record["n"] in allowed], folder / "other") as expected,
    ):
        assert everything(whole.limited_to(limit), keywords, ids) == everything(expected, keywords, ids)


def test_a_limit_that_allows_nothing_is_an_empty_index(make_index):
    limited = make_index([{"id": "a", "title": "Gull", "text": "A gull."}]).limited_to(Scope(documents=[]))
    assert (limited.info().documents, list(limited.chunk_ids())) == (0, [])
    assert limited.keyword_search(["gull"]).hits == limited.semantic_search("gull").hits == ()
    assert limited.read("a:0").unknown == {"a:0": ()}
    tools = {tool.name: tool for tool in make_tools(limited, names="paper")}
    assert tools["keyword_search"].invoke({"keywords": ["gull"]}).startswith("gull: none.")
    assert tools["chunk_read"].invoke({"chunk_ids": ["a:0"]}).endswith("The index is empty.")


def test_both_of_two_limits_apply(make_index):
    index = make_index({name: f"The gull {name}." for name in "abcd"})
    outer = index.limited_to(Scope(documents=["a", "b"]))
    for limit in (["b", "nowhere", "c"], Scope(documents=["b", "c"])):
        assert list(outer.limited_to(limit).chunk_ids()) == ["b:0"]
    with pytest.raises(InputError, match="'abc' is a string"):
        index.limited_to("abc")


def test_limits_follow_the_index_and_end_with_it(tmp_path):
    def write(*years):
        return make([{"id": f"d{y}", "text": f"The gull of {y}.", "year": y} for y in years], tmp_path / "index")

    with write(1900, 1950, 2000) as index:
        recent = index.limited_to(Scope(where={"year": {"$gte": 1950}}))
        assert list(recent.chunk_ids()) == ["d1950:0", "d2000:0"]
        write(1900, 1951, 2000, 2001).close()
        both = recent.limited_to(Scope(where={"year": {"$lt": 2000}}))
        assert sorted(recent.chunk_ids()) == ["d1950:0", "d1951:0", "d2000:0", "d2001:0"]
        assert sorted(both.chunk_ids()) == ["d1950:0", "d1951:0"]
        assert recent.keyword_search("gull").total == 4
    with pytest.raises(ARAGError):
        both.keyword_search("gull")


_MANY_SCOPES = """
import resource, sys
from arag import Scope, create_arag_agent, open_index
from arag.retrieval.storage import vectors
from fakes import HashEmbeddings

vectors.MAX_MATRIX_BYTES = 0  # so the whole index searches in its graph

def search(limited, n):
    found = [limited.keyword_search(f"ship{n}").hits, limited.semantic_search(f"ship{n}").hits]
    assert [[hit.chunk_id for hit in hits] for hits in found] == [[f"d{n}:0"]] * 2, found

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
with open_index(sys.argv[1], embedder=HashEmbeddings()) as index:
    agent = create_arag_agent("extractive", index)
    agent.invoke({"messages": [("user", "Who built ship0?")]})
    with open("/dev/null") as next_one:
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_one.fileno() + 64, hard))
    limited = [index.limited_to(Scope(documents=[f"d{n}"])) for n in range(300)]
    for n, part in enumerate(limited):
        search(part, n)
    for n in range(100):
        context = {"scope": {"documents": [f"d{n}"], "where": {"n": n}}}
        state = agent.invoke({"messages": [("user", f"Who built ship{n}?")]}, context=context)
        assert f"builder{n}." in state["answer"], state["answer"]
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_hundreds_of_scopes_share_the_files_of_an_index(tmp_path):
    records = [{"id": f"d{n}", "text": f"The ship{n} was built by builder{n}.", "n": n} for n in range(300)]
    make(records, tmp_path / "index").close()
    command = [sys.executable, "-c", _MANY_SCOPES, tmp_path / "index"]
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_limit_needed_goes_with_it(make_index):
    index = make_index({name: f"The gull {name}." for name in "abcd"})
    connection = index._snapshots.newest().view.connection
    for name in "abcd" * 3:
        assert list(index.limited_to([name]).chunk_ids()) == [f"{name}:0"]
    assert connection.execute("SELECT count(*) FROM temp.sqlite_master").fetchone()[0] <= 4


def test_commands_take_a_scope(arag, example_index):
    index = ["--index", example_index.path]
    scope = ["--where", '{"year": {"$lt": 1800}}', "--documents", "notice-*", "--documents", "letter-*"]
    found = json.loads(arag("search", "keyword", "apprentice", "Grey Petrel", *index, *scope, "--json")[1])
    assert [hit["chunk_id"] for hit in found["hits"]] == ["notice-1763-ropewalk:0"]
    assert arag("read", "places/vellin-light.md:0", *index, *scope)[0] == 1
    ask = ["ask", "Who was the engineer of the Vellin Light?", *index, "-m", "extractive"]
    assert "Corrin Ashe-Woldar" in arag(*ask)[1]
    code, out, _ = arag(*ask, *scope)
    assert (code, "Corrin Ashe-Woldar" in out) == (0, False)
    assert "a JSON object is needed" in arag("info", *index, "--where", "{")[2]
