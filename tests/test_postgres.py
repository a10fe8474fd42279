"""An index in PostgreSQL says what an index in a folder says, wherever its vectors and its keywords are."""

from __future__ import annotations

import multiprocessing
import random
import zlib
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from urllib.parse import quote, urlsplit

import chromadb
import httpx
import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag import Scope, ingest, open_index
from arag.errors import IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.ingest.maintenance import compact, remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.keyword_file import KeywordMatcher
from arag.retrieval.locations import backend_at
from arag.retrieval.postgres.chunk_store import NumberMask
from arag.retrieval.postgres.connections import Pool
from arag.retrieval.postgres.location import PostgresLocation
from arag.retrieval.postgres.sentences import collection_name
from arag.retrieval.postgres.word_borders import WordBorders
from arag.retrieval.text import fold
from fakes import HashEmbeddings, write_corpus
from searches import KEYWORDS, WORDS, everything


class DistinctEmbeddings(HashEmbeddings):
    """A vector for each text that has nothing to do with any other's: no two texts are equally near to a third."""

    model = "distinct-64"

    def embed_documents(self, texts):
        self.embedded += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace"))).normal(size=64)
        return (vector / np.linalg.norm(vector)).tolist()


ODD = ["İSTANBUL", "ΑΣ", "straße", "50%", "a_b", "back\\slash", "'; DROP TABLE chunks; --", "%s", "{}", "$1", "?"]


def make_documents(number, seed):
    choice = random.Random(seed)
    words = [*WORDS, *ODD, "tide", "tide", "reef"]
    texts = [
        " ".join(f"{' '.join(choice.choices(words, k=choice.randrange(1, 7)))}." for _ in range(choice.randrange(1, 6)))
        for _ in range(number)
    ]
    titles = ["", "Gull", "Reef", "Gull (bird)", "The tide", "50% (film)"]
    return [{"id": f"d{i}", "title": choice.choice(titles), "text": text, "n": i} for i, text in enumerate(texts)]


@pytest.fixture(scope="module", params=["tables", "keyword cache", "pgvector", "chroma"])
def pair(request, tmp_path_factory, places):
    """One corpus in a folder and in PostgreSQL, as the second run has left them."""
    folder = tmp_path_factory.mktemp("pair")
    place = places("postgres", folder)
    if request.param == "keyword cache":
        place += f"&keyword_cache={quote(str(folder / 'cache'), safe='')}"
    if request.param == "chroma":
        place += f"&vectors=chroma+{request.getfixturevalue('chroma_server').url}"
    documents = make_documents(60, seed=5)
    changed = [*make_documents(10, seed=6), *documents[10:50]]
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        if request.param in {"pgvector", "chroma"}:
            patch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
        opened = []
        for target in (folder / "index", place):
            run_ingest(write_corpus(folder / "corpus", documents), target, embedder=DistinctEmbeddings(), pack=True)
            index = stack.enter_context(open_index(target, embedder=DistinctEmbeddings()))
            index.keyword_search("gull")
            run_ingest(
                write_corpus(folder / "corpus", changed), target, embedder=DistinctEmbeddings(), pack=True, prune=True
            )
            opened.append(index)
        assert verify(place, embedder=DistinctEmbeddings()) == ([], [])
        yield opened


QUERIES = st.one_of(KEYWORDS, st.lists(st.sampled_from([*ODD, "\0", "\ud800", "%", "_", "\\"]), min_size=1, max_size=3))


FEW = settings(max_examples=settings.default.max_examples // 3)


@FEW
@given(keywords=QUERIES, data=st.data())
def test_every_search_says_the_same(pair, keywords, data):
    local, there = pair
    ids = data.draw(st.lists(st.sampled_from([*(f"d{i}" for i in range(60)), "'; --", "\0", "\ud800"]), max_size=4))
    assert everything(there, keywords, ids) == everything(local, keywords, ids)


@FEW
@given(keywords=KEYWORDS, data=st.data())
def test_every_scope_says_the_same(pair, keywords, data):
    allowed = data.draw(st.sets(st.integers(0, 55), max_size=50))
    ids = [f"d{i}" for i in sorted(allowed)[:2]] + ["d7"]
    local, there = (index.scoped(Scope(where={"n": {"$in": sorted(allowed)}})) for index in pair)
    assert everything(there, keywords, ids) == everything(local, keywords, ids)


TEXTS = st.lists(st.sampled_from(["a", "an", " ", "b", "s", "es", "-", "é", "海", ". "]), max_size=12).map("".join)


@given(text=TEXTS, needle=TEXTS.filter(lambda text: text.strip()))
def test_words_are_told_by_what_is_around_them(tmp_path_factory, text, needle):
    """Cut between the occurrences, a text has the counts that it has as a whole, and in a keyword file."""
    from arag.retrieval.keyword_file import write_keyword_file

    needle, text = fold(needle).lower(), fold(text).lower()
    borders = WordBorders(needle)
    pieces = [p if len(p) <= 4 else p[:3] + p[-1] for p in text.split(needle)] if borders.can_be_cut else [text]
    expected = borders.count(text)
    assert borders.count_around(pieces) == expected
    if needle in text and borders.matter:
        file = tmp_path_factory.mktemp("words") / "keywords"
        write_keyword_file(file, [(1, text)], [1])
        ranking = KeywordMatcher(file).rank([needle], 1, by_coverage=True)
        assert ranking.as_word[needle] == (expected > 0)


def test_a_keyword_may_be_anywhere_in_words_of_every_kind(places, tmp_path):
    """Texts are found by their words, where few words hold a keyword: these are told apart by SQLite's tokenizer."""
    texts = [
        "Lothair came.",
        "SCHLOTHAIRX9 is a name.",
        "lot hair, lot-hair, lot_hair and lot\u00adhair",
        f"{'y' * 300}lothair{'z' * 300}",  # a word longer than the vocabulary's
        f"{'海' * 300}lothair海",
        "Lotha\u0131r, LOTHA\u0130R, lothaİr",
        "cafe\u0301lothair",
        "lothairé; 海lothair海; \u212alothair",
        *(f"n{i}lothair{i}x w{i}tide{i}v" for i in range(40)),
        *(f"{chr(97 + i // 26)}{chr(97 + i % 26)}tide{i}" for i in range(200)),
    ]
    keywords = [
        "lothair",
        "klothair",
        "lothairé",
        "elothair",
        "é",
        "lothair海",
        "hair, lot",
        "lothai\u0307r",
        "zlothai",
    ]
    keywords += ["9 is", "tide", "tide7v", "tide7v.", "yyylothairzzz", "absent", "lothair absent", "\u0307r", "lotha"]
    documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    local, there = tmp_path / "index", places("postgres", tmp_path)
    for place in (local, there):
        ingest(write_corpus(tmp_path / "corpus", documents), place, embedder=HashEmbeddings())
    with open_index(local) as first, open_index(there) as second:
        for some in (*([keyword] for keyword in keywords), keywords):
            for by_coverage in (False, True):
                found = [index.keyword_search(some, 99, by_coverage=by_coverage) for index in (first, second)]
                assert found[0] == found[1]
                assert found[0].keywords[0].chunks == sum(fold(some[0]).lower() in t.lower() for t in texts)


def test_a_keyword_of_one_letter_may_have_thousands_of_endings(places, tmp_path):
    words = [f"s{i}" for i in range(2_000)]
    documents = [{"id": f"d{i}", "text": " ".join(words[i * 100 : (i + 1) * 100])} for i in range(20)]
    local, there = tmp_path / "index", places("postgres", tmp_path)
    found = []
    for place in (local, there):
        with ingest(write_corpus(tmp_path / "corpus", documents), place, embedder=HashEmbeddings()) as index:
            found.append(index.keyword_search("$s"))
    assert found[0] == found[1]
    assert len(found[0].keywords[0].closest) == 3


def test_titles_and_words_may_be_long(places, tmp_path):
    """PostgreSQL indexes no text of more than 2,704 bytes."""
    characters = random.Random(1).choices([chr(code) for code in range(0x4E00, 0x9F00)], k=3_000)
    long = "".join(characters)
    titles = [long, f"{long} (film)", f"{long[:-1]}!", long[:500], f"{long[:498]} (film)"]
    documents = [{"id": f"d{i}", "title": title, "text": f"{long} {i}"} for i, title in enumerate(titles)]
    found = []
    for place in (tmp_path / "index", places("postgres", tmp_path)):
        run_ingest(documents, place, embedder=HashEmbeddings(), chunk_tokens=8_000)
        with open_index(place, embedder=HashEmbeddings()) as index:
            chunks = index._refresh().chunks
            found.append(list(chunks.titled([*titles, long[:498], long[:499], long[:501]], 9)))
            found[-1].append(index.keyword_search(long).total)
        compact(place, embedder=HashEmbeddings())
    assert found[0] == found[1]
    assert [document_id for document_id, _ in found[1][0]] == ["d0", "d1"]


def test_two_indexes_in_one_database_know_nothing_of_each_other(places, tmp_path):
    one, other = (places("postgres", tmp_path) for _ in range(2))
    with (
        ingest({"id": "a", "text": "The gull."}, one, embedder=HashEmbeddings()) as gulls,
        ingest({"id": "a", "text": "The reef."}, other, embedder=HashEmbeddings()) as reefs,
    ):
        assert (gulls.keyword_search("gull").total, reefs.keyword_search("gull").total) == (1, 0)
        remove("a", one)
        assert list(gulls.chunk_ids()) == []
        assert list(reefs.chunk_ids()) == ["a:0"]


def test_a_role_that_may_only_select_searches(database, postgres_server):
    with ingest({"id": "a", "text": "The gull sat."}, database, embedder=HashEmbeddings()):
        pass
    reader = postgres_server.create_role(database, "USAGE ON SCHEMA arag", "SELECT ON ALL TABLES IN SCHEMA arag")
    with open_index(reader, embedder=HashEmbeddings()) as index:
        assert index.keyword_search("gull").total == 1
        assert index.semantic_search("gull sat").hits[0].chunk_id == "a:0"
        assert verify(reader, embedder=HashEmbeddings()) == ([], [])
        with pytest.raises(StorageError, match="may not do this"):
            remove("a", reader)


def test_two_users_of_one_database_see_what_their_scopes_allow(database, postgres_server, tmp_path):
    """At the same time, through one reader's role; each as if there were nothing but the user's own documents."""
    documents = [{**document, "user": f"u{document['n'] % 2}"} for document in make_documents(40, seed=9)]
    ingest(write_corpus(tmp_path / "corpus", documents), database, embedder=DistinctEmbeddings()).close()
    reader = postgres_server.create_role(database, "USAGE ON SCHEMA arag", "SELECT ON ALL TABLES IN SCHEMA arag")
    rounds = [(["gull", "tide"], ["d0", "d1", "d2", "d3"]), (["the", "海"], ["d5"]), (["zzz"], []), (["reef"], ["d4"])]
    with open_index(reader, embedder=DistinctEmbeddings()) as shared, ThreadPoolExecutor(6) as executor:
        found = {}
        for user in ("u0", "u1"):
            scoped = shared.scoped(Scope(where={"user": user}))
            found[user] = [executor.submit(everything, scoped, *some) for some in rounds * 3]
        for user, runs in found.items():
            own = [document for document in documents if document["user"] == user]
            source = write_corpus(tmp_path / user / "corpus", own)
            ingest(source, tmp_path / user / "index", embedder=DistinctEmbeddings()).close()
            with open_index(tmp_path / user / "index", embedder=DistinctEmbeddings()) as alone:
                for run, (keywords, ids) in zip(runs, rounds * 3, strict=True):
                    assert run.result() == everything(alone, keywords, ids)


def test_nothing_in_another_schema_is_used(database, postgres_server):
    """Anybody may create tables and functions in `public` of a database that was made before version 15."""
    with ingest({"id": "a", "text": "The gull sat."}, database, embedder=HashEmbeddings()) as index:
        name = urlsplit(database).path[1:]
        for made in (
            "FUNCTION octet_length(text) RETURNS int LANGUAGE sql RETURN 1",
            "TABLE members AS SELECT 'mine' AS document_id, 1::bigint AS number",
        ):
            postgres_server.execute(f"CREATE {made}", database=name)
        postgres_server.execute("GRANT ALL ON members TO PUBLIC", database=name)
        assert index.keyword_search("gull").hits[0].score == 4
        postgres_server.execute("DROP TABLE arag.members", database=name)
        with pytest.raises(IndexFormatError, match="is incomplete"):
            verify(database, repair=True, embedder=HashEmbeddings())
    assert postgres_server.execute("SELECT document_id FROM members", database=name) == [("mine",)]


def test_what_is_not_an_index_is_named(database, postgres_server):
    with pytest.raises(IndexNotFoundError, match="no index in postgresql://owner@127"):
        open_index(database)
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.orders (id int)")
    with pytest.raises(InputError, match=r"holds other tables \(orders\): name another one with \?index=NAME"):
        ingest({"id": "a", "text": "The gull."}, f"{database}?index=shop", embedder=HashEmbeddings())


def test_settings_of_the_environment_and_the_role_change_nothing(database, postgres_server, monkeypatch):
    postgres_server.execute("ALTER ROLE owner SET default_transaction_isolation = 'serializable'")
    try:
        for encoding in ("LATIN1", "SQL_ASCII"):
            monkeypatch.setenv("PGCLIENTENCODING", encoding)
            with ingest({"id": "a", "text": "海鸥 flew."}, database, embedder=HashEmbeddings()) as index:
                assert index.keyword_search("海鸥").total == 1
                isolation = index._reader._pool.query("SHOW transaction_isolation")
                assert isolation == [("read committed",)]
    finally:
        postgres_server.execute("ALTER ROLE owner RESET default_transaction_isolation")


def test_an_index_may_be_searched_in_a_forked_process(places, tmp_path, monkeypatch):
    monkeypatch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
    with ingest({"id": "a", "text": "The gull sat."}, places("postgres", tmp_path), embedder=HashEmbeddings()) as index:

        def search(_):
            return index.keyword_search("gull").total, index.semantic_search("gull sat").hits[0].chunk_id

        assert search(None) == (1, "a:0")
        fork = multiprocessing.get_context("fork")
        ends, answers = fork.Pipe(duplex=False)
        children = [fork.Process(target=lambda: answers.send(search(None))) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [ends.recv() for _ in children] == [(1, "a:0")] * 2
        assert search(None) == (1, "a:0")


def test_nothing_is_opened_again_by_searches_that_an_index_is_closed_under(places, tmp_path):
    with ingest({"id": "a", "text": "The gull sat."}, places("postgres", tmp_path), embedder=HashEmbeddings()) as index:
        snapshot = index._refresh()
        snapshot.chunks.counts()
    with pytest.raises(StorageError, match="is closed"):
        snapshot.chunks.counts()


def test_a_graph_without_its_table_is_named(places, tmp_path, monkeypatch):
    monkeypatch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
    place = places("postgres", tmp_path)
    with ingest({"id": "a", "text": "The gull sat."}, place, embedder=HashEmbeddings()) as index:
        with psycopg.connect(place.partition("?")[0]) as connection:
            connection.execute(f"DROP TABLE {place.partition('index=')[2]}.graph")
        with pytest.raises(IndexFormatError, match="is incomplete"):
            index.semantic_search("gull sat")


@pytest.mark.parametrize("number", [-1, 1 << 62])
def test_an_impossible_number_is_named(number):
    with pytest.raises(IndexFormatError, match="impossible number"):
        NumberMask([*range(2_000), number])


DAMAGES = [
    ("UPDATE contents SET text = replace(text, 'gull', 'reef') WHERE number = 3", "chunks have changed", True),
    ("DELETE FROM contents WHERE number = 3", "chunks cannot be read", True),
    ("DELETE FROM chunks WHERE number = 3", "incomplete or changed documents", True),
    ("UPDATE documents SET title = 'Other' WHERE number = 3", "document entries have changed", True),
    ("DELETE FROM documents WHERE number = 3", "documents without an entry", True),
    ("DELETE FROM vectors WHERE number = 3", "missing or damaged vectors", False),
    ("UPDATE vectors SET vectors = substr(vectors, 3) WHERE number = 3", "missing or damaged vectors", False),
    ("UPDATE chunks SET pending = TRUE WHERE number = 3", "have no vectors yet", False),
    ("DELETE FROM members WHERE number = 3", "lists of each document's chunks are wrong", False),
    ("UPDATE lowered SET lowered = 'x' WHERE number = 3", "those of 1 chunks are missing or wrong", False),
    ("DELETE FROM terms WHERE number = 3", "those of 1 chunks are missing or wrong", False),
    ("INSERT INTO lowered VALUES (99, 'x')", "1 rows belong to no chunk", False),
    ("DELETE FROM vocabulary WHERE word = 'gull'", "1 words are missing", False),
]


@pytest.mark.parametrize(
    ("damage", "said", "is_lost"),
    [pytest.param(*each, id=each[0], marks=[pytest.mark.slow] if n % 2 else []) for n, each in enumerate(DAMAGES)],
)
def test_damage_is_found_and_repaired(places, tmp_path, damage, said, is_lost):
    place = places("postgres", tmp_path)
    documents = [{"id": f"d{i}", "text": f"The gull number {i} sat. It flew."} for i in range(6)]
    embedder = HashEmbeddings()
    run_ingest(documents, place, embedder=embedder)
    with psycopg.connect(place.partition("?")[0]) as connection:
        connection.execute(f"SET search_path TO {place.partition('index=')[2]}")
        connection.execute(damage)
    found, _ = verify(place, embedder=embedder)
    assert any(said in str(each) for each in found)
    _, left = verify(place, repair=True, embedder=embedder)
    assert not any(each.repairable for each in left)
    assert bool(left) == is_lost
    assert run_ingest(documents, place, embedder=embedder).written == is_lost
    assert verify(place, embedder=embedder) == ([], [])
    with open_index(place, embedder=embedder) as index:
        assert {hit.chunk_id for hit in index.keyword_search("gull", 9).hits} == {f"d{i}:0" for i in range(6)}
        assert index.semantic_search("The gull number 2 sat.").hits[0].chunk_id == "d2:0"


def test_compacting_leaves_no_removed_text(places, tmp_path):
    place = places("postgres", tmp_path)
    documents = [{"id": "a", "text": "The gull sat."}, {"id": "b", "text": "A kittiwake flew."}]
    run_ingest(documents, place, embedder=HashEmbeddings())
    remove("b", place)
    compact(place, embedder=HashEmbeddings())
    with psycopg.connect(place.partition("?")[0]) as connection:
        connection.execute(f"SET search_path TO {place.partition('index=')[2]}")
        words = {word for (word,) in connection.execute("SELECT word FROM vocabulary")}
    assert words == {"the", "gull", "sat"}
    with open_index(place, embedder=HashEmbeddings()) as index:
        assert index.keyword_search("kittiwake").total == 0
        assert index.keyword_search("gull").total == 1


def test_a_cached_keyword_file_follows_the_index(places, tmp_path):
    place = f"{places('postgres', tmp_path)}&keyword_cache={quote(str(tmp_path / 'cache'), safe='')}"
    documents = [{"id": f"d{i}", "text": f"The gull number {i}."} for i in range(5)]
    run_ingest(documents, place, embedder=HashEmbeddings())
    with open_index(place, embedder=HashEmbeddings()) as index:
        assert index.keyword_search("gull").total == 5
        (before,) = [file for file in (tmp_path / "cache").iterdir() if file.name != "lock"]
        run_ingest([*documents, {"id": "new", "text": "A gull."}], place, embedder=HashEmbeddings())
        assert index.keyword_search("gull").total == 6
        (after,) = [file for file in (tmp_path / "cache").iterdir() if file.name != "lock"]
        assert after != before
        after.write_bytes(b"spoilt")
    with open_index(place, embedder=HashEmbeddings()) as index:
        assert index.keyword_search("gull").total == 6


@pytest.mark.parametrize("kind", ["pgvector", "chroma"])
def test_a_damaged_graph_is_found_and_repaired(places, tmp_path, monkeypatch, request, kind):
    monkeypatch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
    place = places("postgres", tmp_path)
    if kind == "chroma":
        place += f"&vectors=chroma+{request.getfixturevalue('chroma_server').url}"
    documents = [{"id": f"d{i}", "text": f"The gull number {i} sat. It flew."} for i in range(6)]
    run_ingest(documents, place, embedder=HashEmbeddings())
    with psycopg.connect(place.partition("?")[0]) as connection:
        connection.execute(f"SET search_path TO {place.partition('index=')[2].partition('&')[0]}")
        if kind == "pgvector":
            connection.execute("DELETE FROM graph WHERE number = 3")
    if kind == "chroma":
        client = chromadb.HttpClient(host="127.0.0.1", port=urlsplit(request.getfixturevalue("chroma_server").url).port)
        with closing(Pool(PostgresLocation.parse(place))) as pool:
            collection = client.get_collection(collection_name(pool))
        collection.delete(ids=collection.get(limit=3)["ids"])
    (found, *others), _ = verify(place, embedder=HashEmbeddings())
    assert "it has " in str(found)
    assert not others
    with open_index(place, embedder=HashEmbeddings()) as index:
        index.semantic_search("gull")
        _, left = verify(place, repair=True, embedder=HashEmbeddings())
        assert left == []
        for i in range(6):
            assert index.semantic_search(f"The gull number {i} sat.").hits[0].chunk_id == f"d{i}:0"


def test_the_password_of_a_chroma_server_is_sent_and_not_shown(places, tmp_path, monkeypatch):
    monkeypatch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
    sent = []

    def take(_, request):
        sent.append(request.headers["Authorization"])
        raise httpx.ConnectError("refused")

    monkeypatch.setattr("httpx.HTTPTransport.handle_request", take)
    place = f"{places('postgres', tmp_path)}&vectors=chroma+http://ann:p%40ss@127.0.0.1:1"
    with pytest.raises(StorageError, match=r"the Chroma server at http://127\.0\.0\.1:1 cannot be used") as error:
        run_ingest([{"id": "a", "text": "The gull sat."}], place, embedder=HashEmbeddings())
    assert "p%40ss" not in str(error.value)
    assert set(sent) == {f"Basic {b64encode(b'ann:p@ss').decode()}"}


def test_a_copy_of_a_database_is_another_index(database, postgres_server, tmp_path, monkeypatch, chroma_server):
    """Neither sees what is published in the other one, in a common cache or on a common Chroma server."""
    monkeypatch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
    name = urlsplit(database).path[1:]
    beside = f"?keyword_cache={quote(str(tmp_path), safe='')}&vectors=chroma+{chroma_server.url}"
    run_ingest([{"id": "a", "text": "The gull sat."}], database + beside, embedder=DistinctEmbeddings())
    with open_index(database + beside, embedder=DistinctEmbeddings()) as index:
        assert index.keyword_search("gull").total == 1
    postgres_server.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name} OWNER owner")
    copy = database.replace(name, f"{name}_copy")
    for place, text in ((database, "A puffin flew."), (copy, "A skua dived.")):
        run_ingest([{"id": "b", "text": text}], place + beside, embedder=DistinctEmbeddings())
    for place, there, elsewhere in ((database, "puffin", "skua"), (copy, "skua", "puffin")):
        with open_index(place + beside, embedder=DistinctEmbeddings()) as index:
            assert (index.keyword_search(there).total, index.keyword_search(elsewhere).total) == (1, 0)
            hits = index.semantic_search("The gull sat.", 2).hits
            assert [hit.chunk_id for hit in hits] == ["a:0", "b:0"]
            assert there in hits[1].snippets[0].sentences[0].text
        assert verify(place + beside, embedder=DistinctEmbeddings()) == ([], [])


def test_an_index_whose_vectors_are_elsewhere_says_so(places, tmp_path, monkeypatch, chroma_server):
    monkeypatch.setattr("arag.retrieval.postgres.sentences.MAX_BYTES", 0)
    place = places("postgres", tmp_path)
    documents = [{"id": "a", "text": "The gull sat."}]
    run_ingest(documents, f"{place}&vectors=chroma+{chroma_server.url}", embedder=HashEmbeddings())
    with open_index(place, embedder=HashEmbeddings()) as index:
        assert index.keyword_search("gull").total == 1
        with pytest.raises(StorageError, match=r"are on a Chroma server: add vectors=chroma\+http"):
            index.semantic_search("gull")
    with pytest.raises(StorageError, match=r"are on a Chroma server: add vectors=chroma\+http"):
        run_ingest([*documents, {"id": "b", "text": "A reef."}], place, embedder=HashEmbeddings())


def test_a_run_that_changes_nothing_publishes_nothing(places, tmp_path):
    place, corpus = places("postgres", tmp_path), write_corpus(tmp_path / "corpus", make_documents(5, seed=1))
    run_ingest(corpus, place, embedder=DistinctEmbeddings())
    published = backend_at(place).manifest()
    run_ingest(corpus, place, embedder=DistinctEmbeddings())
    assert backend_at(place).manifest() == published


def test_an_id_that_cannot_be_indexed_is_named(places, tmp_path):
    with pytest.raises(InputError, match=r"the id of the document 'xxx.* is longer than the 2,000 bytes that fit"):
        run_ingest([{"id": "x" * 3_000, "text": "The gull."}], places("postgres", tmp_path), embedder=HashEmbeddings())
