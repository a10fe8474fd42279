"""A scoped index behaves as an index of the allowed documents only."""

from __future__ import annotations

import gc
import json
import pickle
import shutil
import weakref
from contextlib import ExitStack
from itertools import product

import chromadb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from arag import Scope, make_tools
from arag.errors import IndexClosedError, InputError
from arag.ingest.maintenance import compact, remove
from arag.ingest.pipeline import ingest, run_ingest
from arag.retrieval.index import open_index
from fakes import HashEmbeddings, write_corpus
from searches import DOCUMENTS, KEYWORDS, everything, make_records

# --- which documents a scope allows ---

METADATA = [
    {"team": "a", "year": 2019, "open": True, "tags": ["x", "y"]},
    {"team": "b", "year": 2020, "open": False, "tags": ["y"]},
    {"team": "c", "year": 2021.5, "tags": ["z"]},
    {"year": 2021},
    {"team": "a", "year": 1},
]


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ({"team": "a"}, [0, 4]),
        ({"team": {"$in": ["a", "b"]}, "year": {"$gte": 2020}}, [1]),
        ({"$or": [{"team": "c"}, {"year": {"$lt": 2}}]}, [2, 4]),
        ({"$and": [{"team": {"$ne": "a"}}, {"year": {"$gt": 2020, "$lte": 2021}}]}, [3]),
        ({"open": True}, [0]),
        ({"year": True}, []),  # true is not 1
        ({"open": {"$in": [1, 0]}}, []),
        ({"year": {"$gt": "1"}}, []),  # texts are not compared with numbers
        ({"team": {"$gte": "b"}}, [1, 2]),
        ({"tags": {"$contains": "y"}}, [0, 1]),
        ({"tags": {"$not_contains": "y"}}, [2, 3, 4]),
        ({"tags": "y"}, []),  # a list is not one of its items
        ({"team": {"$in": []}}, []),
    ],
)
def test_conditions_choose_documents(where, allowed):
    scope = Scope(where=where)
    assert [i for i, metadata in enumerate(METADATA) if scope.allows(str(i), metadata)] == allowed


# No fractions: Chroma takes 0.5 for equal to 0.
VALUES = st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 2), st.booleans())
NUMBERS = st.integers(0, 2)


def same_type(values):
    return st.one_of(*(st.lists(kind, min_size=1, max_size=2) for kind in values))


FIELD = st.one_of(
    st.builds(lambda o, v: {o: v}, st.sampled_from(["$eq", "$ne"]), VALUES),
    st.builds(lambda o, v: {o: v}, st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), NUMBERS),
    st.builds(
        lambda o, v: {o: v},
        st.sampled_from(["$in", "$nin"]),
        same_type([st.sampled_from(["a", "b"]), st.integers(0, 2), st.booleans()]),
    ),
    VALUES,
)
CONDITION = st.recursive(
    st.builds(lambda n, c: {n: c}, st.sampled_from(["p", "q"]), FIELD),
    lambda parts: st.builds(
        lambda o, p: {o: p}, st.sampled_from(["$and", "$or"]), st.lists(parts, min_size=2, max_size=3)
    ),
    max_leaves=4,
)
RECORD = st.dictionaries(
    st.sampled_from(["p", "q"]), st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 2), st.booleans())
)


@pytest.fixture(scope="module")
def chroma():
    return chromadb.EphemeralClient()


@given(where=CONDITION, records=st.lists(RECORD, min_size=1, max_size=5))
def test_conditions_mean_what_they_mean_to_chroma(chroma, where, records):
    collection = chroma.get_or_create_collection("scopes", embedding_function=None)
    ids = [str(i) for i in range(len(records))]
    # Chroma takes no empty metadata.
    collection.add(ids=ids, embeddings=[[1.0]] * len(ids), metadatas=[{**r, "here": "yes"} for r in records])
    try:
        expected = set(collection.get(where=where)["ids"])
    finally:
        chroma.delete_collection("scopes")
    assert {i for i, r in zip(ids, records, strict=True) if Scope(where=where).allows(i, r)} == expected


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (["handbook/*"], ["handbook/a.md", "handbook/b/c.md"]),
        (["handbook/a.md", "n[1].txt"], ["handbook/a.md", "n[1].txt"]),
        (["n?.txt"], []),
        (["h*b*.md"], ["handbook/a.md", "handbook/b/c.md"]),
        (["*.txt"], ["n[1].txt", "n1.txt"]),
        (["HANDBOOK/*"], []),
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
        ({"where": {}}, "{} is not a condition"),
        ({"where": {"year": {"$above": 1}}}, "'$above' is not an operator: valid are $eq, $ne"),
        ({"where": {"year": {"$gt": True}}}, "$gt of year cannot take True: it needs a number or a text"),
        ({"where": {"year": {"$in": 3}}}, "$in of year cannot take 3: it needs a list"),
        ({"where": {"year": None}}, "$eq of year cannot take None"),
        ({"where": {"year": {}}}, "year has no condition"),
        ({"where": {"$or": []}}, "$or needs a list of conditions, not []"),
        ({"where": {"$not": [{"a": 1}]}}, "$not is not valid around conditions: use $and or $or"),
        ({"where": "team"}, "where: Input should be a valid dictionary"),
        ({"documents": "handbook/*"}, "'handbook/*' is a string: give a list of ids or patterns"),
        ({"where": {"$and": [{1: 2}]}}, "1 is not the name of a field"),
        ({"where": {"a": 10**5000}}, "the scope is not valid: Exceeds the limit"),
        ({"document": ["a"]}, "document: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_scope_is_refused(conditions, message):
    with pytest.raises(InputError) as caught:
        Scope(**conditions)
    assert message in str(caught.value)


def test_conditions_nested_without_end_are_refused():
    where = {"a": 1}
    for _ in range(30):
        where = {"$and": [where]}
    with pytest.raises(InputError, match="nested more than 20 deep"):
        Scope(where=where)


def test_no_pattern_takes_long():
    scope = Scope(documents=["*a" * 50 + "!"])
    assert not scope.allows("a" * 100_000, {})
    assert Scope(documents=["*a" * 50]).allows("a" * 100_000, {})


def test_a_scope_is_a_value():
    teams = ["ops"]
    scope = Scope(where={"team": {"$in": teams}}, documents=["a*"])
    teams.append("sales")
    assert not scope.allows("a", {"team": "sales"})
    assert pickle.loads(pickle.dumps(scope)) == scope == Scope(where={"team": {"$in": ["ops"]}}, documents=["a*"])
    other = scope.model_copy(update={"documents": ("b*",)})
    assert other != scope
    assert other.allows("b", {"team": "ops"})
    assert not other.allows("a", {"team": "ops"})
    assert Scope(where={"open": True}) != Scope(where={"open": 1})


# --- what a scoped index finds ---


@pytest.mark.parametrize(
    ("place", "pack"),
    [
        *product(["folder", "memory"], [False, True]),
        pytest.param("postgres", False, marks=pytest.mark.slow),
        ("postgres", True),
    ],
)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents=DOCUMENTS, keywords=KEYWORDS, data=st.data())
def test_a_scoped_index_equals_one_of_these_documents(tmp_path_factory, places, place, pack, documents, keywords, data):
    folder = tmp_path_factory.mktemp("scopes")
    records = make_records(documents)
    corpus = write_corpus(folder / "corpus", records)
    whole = places(place, folder / "whole")
    run_ingest(corpus, whole, embedder=HashEmbeddings(), pack=pack)
    allowed = data.draw(st.sets(st.integers(0, len(records) - 1), max_size=len(records)))
    assume(allowed)
    scope = Scope(where={"n": {"$in": sorted(allowed)}})
    with ExitStack() as stack:
        scoped = stack.enter_context(open_index(whole, embedder=HashEmbeddings())).scoped(scope)
        other = folder / "other"
        if place == "folder":
            shutil.copytree(whole, other)
        else:
            other = places(place, other)
            run_ingest(corpus, other, embedder=HashEmbeddings(), pack=pack)
        gone = [f"d{i}" for i in range(len(records)) if i not in allowed]
        if gone:
            remove(gone, other)
        expected = stack.enter_context(open_index(other, embedder=HashEmbeddings()))
        ids = [r["id"] for r in records]
        assert everything(scoped, keywords, ids) == everything(expected, keywords, ids)


@pytest.mark.parametrize("backend", ["folder", "memory", "postgres"], indirect=True)
def test_a_scope_that_allows_nothing_is_an_empty_index(make_index):
    index = make_index([{"id": "a", "title": "Gull", "text": "A gull."}])
    scoped = index.scoped(Scope(documents=[]))
    assert (scoped.info().documents, scoped.info().chunks, list(scoped.chunk_ids())) == (0, 0, [])
    assert scoped.keyword_search(["gull"]).hits == scoped.semantic_search("gull").hits == ()
    tools = {tool.name: tool for tool in make_tools(scoped)}
    assert tools["keyword_search"].invoke({"keywords": ["gull"]}).startswith("gull: none.")
    assert tools["keyword_search"].invoke({"keywords": ["gull"], "within": "a"}).endswith("The index is empty.")
    assert tools["chunk_read"].invoke({"chunk_ids": ["a:0"]}).endswith("The index is empty.")


def test_scopes_narrow_each_other_and_follow_the_index(tmp_path):
    def write(*years):
        records = [{"id": f"d{year}", "text": f"The gull of {year}.", "year": year} for year in years]
        return ingest(write_corpus(tmp_path / "corpus", records), tmp_path / "index", embedder=HashEmbeddings())

    with write(1900, 1950, 2000) as index:
        recent = index.scoped(Scope(where={"year": {"$gte": 1950}}))
        both = recent.scoped(Scope(where={"year": {"$lt": 2000}}))
        assert list(recent.chunk_ids()) == ["d1950:0", "d2000:0"]
        assert list(both.chunk_ids()) == ["d1950:0"]
        assert index.scoped(Scope(where={"year": {"$gte": 1950}})) is recent
        write(1900, 1951, 2000, 2001).close()
        assert sorted(recent.chunk_ids()) == ["d1950:0", "d1951:0", "d2000:0", "d2001:0"]
        assert sorted(both.chunk_ids()) == ["d1950:0", "d1951:0"]
        assert recent.keyword_search("gull").total == 4
    with pytest.raises(IndexClosedError):
        recent.keyword_search("gull")


def test_what_a_scope_has_open_goes_with_the_generation(make_index):
    index = make_index([{"id": "a", "text": "A gull."}, {"id": "b", "text": "A reef."}])
    scoped = index.scoped(Scope(documents=["a"]))
    assert scoped.keyword_search("gull").total == 1
    (part,) = index._snapshot.parts.values()
    gone = weakref.ref(part)
    del part
    index.close()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("action", ["compact", "ingest"])
def test_a_scope_that_is_opened_while_the_index_is_replaced(tmp_path, monkeypatch, action):
    records = [{"id": f"d{i}", "text": f"The gull number {i}."} for i in range(5)]
    write_corpus(tmp_path / "corpus", records)
    with ingest(tmp_path / "corpus", tmp_path / "index", embedder=HashEmbeddings()) as index:
        compiled, replaced = Scope.compile, []

        def compile_after_replacing(scope):
            if not replaced:
                replaced.append(True)
                remove(["d0"], tmp_path / "index")
                if action == "compact":
                    compact(tmp_path / "index")
                assert index.keyword_search("gull").total == 4
            return compiled(scope)

        scoped = index.scoped(Scope(documents=["d0", "d1"]))
        monkeypatch.setattr(Scope, "compile", compile_after_replacing)
        assert [hit.chunk_id for hit in scoped.keyword_search("gull").hits] == ["d1:0"]


@pytest.mark.usefixtures("through_chroma")
@pytest.mark.parametrize("most", [0, 100_000])
def test_a_part_of_a_graph_is_searched_as_one_compares(make_index, monkeypatch, most):
    """The graph is asked for a large part, and a small one is compared; each chunk is found with its own sentence."""
    monkeypatch.setattr("arag.retrieval.local.sentence_graph._MAX_COMPARED_BYTES", most)
    records = [{"id": f"d{i}", "text": f"The gull number {i} of {i % 9}. It sat.", "odd": i % 2} for i in range(60)]
    index = make_index(records, pack=True, chunk_tokens=50)
    scoped = index.scoped(Scope(where={"odd": 1}))
    for i in range(1, 60, 6):
        (hit, *_) = scoped.semantic_search(f"The gull number {i} of {i % 9}.", 3).hits
        assert hit.score == pytest.approx(1, abs=1e-3)
        assert f"number {i} of" in scoped.get(hit.chunk_id).sentence_text(hit.matches[0])
        assert all(int(document[1:]) % 2 for document in hit.document_ids)


def test_closest_terms_by_characters_name_nothing_outside_a_scope(make_index):
    index = make_index({"a": "工程师王晓明设计了灯塔。", "b": "码头的记录在这里。"})
    found = [
        opened.keyword_search("王小明").keywords[0].closest for opened in (index, index.scoped(Scope(documents=["b"])))
    ]
    assert [[term.text for term in terms] for terms in found] == [["王晓明"], []]


def test_commands_take_a_scope(arag, example_index):
    index = ["--index", example_index.path]
    scope = ["--where", '{"year": {"$lt": 1800}}', "--documents", "notice-*", "--documents", "letter-*"]
    found = json.loads(arag("search", "keyword", "apprentice", "Grey Petrel", *index, *scope, "--json")[1])
    assert [hit["chunk_id"] for hit in found["hits"]] == ["notice-1763-ropewalk:0"]
    assert [keyword["chunks"] for keyword in found["keywords"]] == [1, 0]
    found = json.loads(arag("search", "semantic", "a harbour light", *index, *scope, "--json")[1])
    assert all(hit["chunk_id"].startswith(("notice-", "letter-")) for hit in found["hits"])
    assert arag("read", "places/vellin-light.md:0", *index, *scope)[0] == 1
    documents = json.loads(arag("info", *index, *scope, "--json")[1])["documents"]
    assert 0 < documents < 25
    code, out, _ = arag(
        "ask", "Who was the engineer of the Vellin Light?", *index, *scope, "-m", "extractive", "--json"
    )
    assert (code, "Corrin Ashe-Woldar" in out) == (0, False)
    assert "--where is not valid JSON" in arag("info", *index, "--where", "{")[2]
    assert "--where '[]': a JSON object is needed" in arag("info", *index, "--where", "[]")[2]


def test_an_experiment_in_a_scope_keeps_to_it(arag, example_index, tmp_path):
    questions = tmp_path / "questions.json"
    question = {"id": "1", "question": "Who was the shipwright of the Grey Petrel?", "answer": "Hesper Quillorne"}
    questions.write_text(json.dumps([question]), encoding="utf-8")
    run = ["eval", "run", "--questions", questions, "--index", example_index.path, "--out", tmp_path / "run"]
    run += ["--method", "arag", "--method", "naive-rag", "--model", "extractive"]
    assert arag(*run, "--documents", "ships/*", "--json")[0] == 0
    for method in ("arag", "naive-rag"):
        (record,) = map(json.loads, (tmp_path / "run" / "records" / f"{method}.jsonl").read_text().splitlines())
        assert record["contain"]
        shown = {chunk_id for entry in record["trace"] for chunk_id in entry["chunk_ids"]}
        assert all(chunk_id.startswith("ships/") for chunk_id in {*shown, *record["read_chunks"]})
    assert "scope was {'documents': ['ships/*']}, now None" in arag(*run)[2]
    assert arag("eval", "report", tmp_path / "run")[0] == 0
    assert "ships/" in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
