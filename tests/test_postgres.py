"""An index in PostgreSQL says what an index in a folder says; what stands in its way is named, and no password is."""

from __future__ import annotations

import multiprocessing
import random
import re
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag import open_index
from arag.errors import IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.ingest.maintenance import remove
from arag.retrieval.storage.locations import parse_location, using_store
from arag.retrieval.storage.postgres import schema, words
from arag.retrieval.storage.postgres.connection import Pool
from arag.retrieval.storage.words.build import build_segments
from postgres_server import run_sql
from searches import everything
from stores import begin, document, vector_of
from stores import write as write_store
from versions import TextEmbeddings, ingest

pytestmark = pytest.mark.servers


@pytest.fixture
def place(places):
    """The URL of an index that does not exist yet."""
    return places("postgres", None)


def write(place, *documents, remove=()):
    with using_store(place) as store:
        write_store(store, *documents, remove=remove)


def chunk_ids(place):
    """Return the ids of the chunks that a new reader sees."""
    with using_store(place) as store, closing(store.open()) as view:
        return sorted(view.yield_keys())


# --- the same results as in a folder ---

WORDS = (
    "gull gulls Gull reef tide tide tide naïve naive nai\u0308ve the lighthouse light-house 海 海鸥 a-b x Чайковский"
).split()
ODD = ["İSTANBUL", "ΑΣ", "straße", "50%", "a_b", "back\\slash", "'; DROP TABLE chunks; --", "%s", "{}", "$1", "?", "''"]
LONG = [
    f"{'y' * 300}lothair{'z' * 300}",
    f"{'海' * 300}lothair海",
    "Lotha\u0131r LOTHA\u0130R lothaİr lothairé 海lothair海 \u212alothair",
    "SCHLOTHAIRX9",
    *(f"n{i}lothair{i}x" for i in range(120)),
]
UNSTORABLE = ["\0", "tide\0"]


def make_corpus(number, seed):
    draw = random.Random(seed)

    def sentence():
        words = draw.choices([*WORDS, *WORDS, *ODD, *LONG], k=draw.randint(1, 6))
        return draw.choice(["All rights reserved.", "# Heading", " ".join(words)])

    titles = ["", "Gull", "GULL (bird)", "The tide", "50% Élan"]
    return [
        {
            "id": f"d{n}",
            "title": draw.choice(titles),
            "text": "\n\n".join(sentence() for _ in range(draw.randint(1, 9))),
        }
        for n in range(number)
    ]


@pytest.fixture(scope="module")
def pair(tmp_path_factory, places):
    """One corpus in a folder and in PostgreSQL, as two runs have left them."""
    with ExitStack() as stack:
        indexes = []
        for place in (tmp_path_factory.mktemp("pair") / "index", places("postgres", None)):
            ingest(make_corpus(50, seed=5), place)
            ingest(make_corpus(12, seed=6), place)
            remove(["d20", "d21"], place)
            indexes.append(stack.enter_context(open_index(place, embedder=TextEmbeddings())))
        yield indexes


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*WORDS, *ODD, *UNSTORABLE, "lothair", "othair1", "tide gull", "de", "e", ".", "zzyx"]),
        st.text(st.characters(codec="utf-8"), max_size=4).filter(str.strip),
    ),
    min_size=1,
    max_size=4,
)
IDS = st.lists(st.sampled_from([*(f"d{i}" for i in range(55)), "'; --", *UNSTORABLE]), max_size=4)


@given(texts=TEXTS, ids=IDS, limit=st.none() | st.sets(st.integers(0, 55), max_size=50))
def test_every_search_says_the_same_whole_or_limited(pair, texts, ids, limit):
    folder, postgres = (index if limit is None else index.limited_to([f"d{i}" for i in limit]) for index in pair)
    assert everything(postgres, texts, ids) == everything(folder, texts, ids)


def test_a_limited_index_of_many_documents_is_an_index_of_these_alone(places):
    corpus = make_corpus(1_500, seed=7)
    some = corpus[100:1_400]  # as many as are sent as a mask
    whole, part = places("postgres", None), places("postgres", None)
    ingest(corpus, whole)
    ingest(some, part)
    with open_index(whole, embedder=TextEmbeddings()) as index, open_index(part, embedder=TextEmbeddings()) as alone:
        limited = index.limited_to([record["id"] for record in some])
        for texts in (["gull", "tide"], ["lothair", "海"], ["absent"]):
            assert everything(limited, texts, ["d99", "d100"]) == everything(alone, texts, ["d99", "d100"])


def test_a_search_asks_the_server_few_times(pair, monkeypatch):
    _, index = pair
    index.keyword_search(["mill"], ranking="bm25")  # the first search also asks for what is kept for the next ones
    asked = []
    run = Pool.run
    monkeypatch.setattr(Pool, "run", lambda self, work: asked.append(work) or run(self, work))
    index.keyword_search(["lothair7x"], ranking="bm25")
    assert len(asked) <= 17  # two of them for other spellings of a name with a number


# --- a graph ---


@pytest.fixture
def with_graph(monkeypatch):
    """Make small indexes search with pgvector, as large ones do."""
    for module in ("schema", "view"):
        monkeypatch.setattr(f"arag.retrieval.storage.postgres.{module}.MAX_MATRIX_BYTES", 0)


def test_a_graph_finds_the_nearest_among_thousands_of_equal_sentences(place, with_graph):
    documents = [document(f"copy{i}", "\n".join(["Same."] * 100)) for i in range(30)]
    write(place, *documents, *(document(f"other{i}", f"Line {i}.") for i in range(300)))
    write(place, document("late", "Late."))
    nearest = 0
    with using_store(place) as store, closing(store.open()) as view:
        assert store.find_damage() == []
        names = view.ids(view.row_ids(list(view.yield_keys())).values())
        for i in range(300):
            (match,) = view.nearest(vector_of(f"Line {i}."), 1)
            nearest += names[match.row_id] == f"other{i}:0" and match.similarity > 0.999
        assert nearest >= 298
        (match,) = view.nearest(vector_of("Late."), 1)
        assert names[match.row_id] == "late:0"
        assert len(view.nearest(vector_of("Same."), 2_000)) == 2_000


def test_a_view_with_a_graph_compares_where_the_graph_finds_too_few(place, with_graph, monkeypatch):
    monkeypatch.setattr("arag.retrieval.storage.postgres.view.MAX_LIMITED_BYTES", 0)
    write(place, *(document(f"d{i}", f"Line {i}.\nRow {i}.") for i in range(500)))
    with using_store(place) as store, closing(store.open()) as view:
        for ids in (["d7"], [f"d{i}" for i in range(250)], [f"d{i}" for i in range(490)]):
            limited = view.limited_to(ids)
            for asked in (1, 15, 2 * len(ids), 5_000):
                matches = limited.nearest(vector_of("Row 7."), asked)
                assert len(matches) == min(asked, 2 * len(ids))
                assert (matches[0].position, round(matches[0].similarity, 2)) == (1, 1.0)


# --- one database ---


def test_nothing_in_another_schema_is_used(database, postgres_server):
    """Anybody may create tables and functions in `public` of a database that was made before version 15."""
    write(database, document("a", "The gull sat."))
    name = urlsplit(database).path[1:]
    for made in (
        "FUNCTION octet_length(text) RETURNS int LANGUAGE sql RETURN 1",
        "TABLE words AS SELECT 'mine' AS word, 'mine' AS plain",
    ):
        postgres_server.execute(f"CREATE {made}", database=name)
    postgres_server.execute("GRANT ALL ON words TO PUBLIC", database=name)
    with using_store(database) as store, closing(store.open()) as view:
        assert view.rank(["gull"], 1).chunks[0].score == 4
        postgres_server.execute("DROP TABLE arag.words", database=name)
        with pytest.raises(IndexFormatError, match="is incomplete"):
            view.words_spelled(["mine"])


@pytest.mark.parametrize("name", ["a b", "o'o\"q", "semi;--", "per%cent", "ä{}$1\\", "x" * 63])
def test_any_name_is_a_schema(shared_database, name):
    place = f"{shared_database}?index={quote(name)}"
    write(place, document("a", "The gull sat."))
    assert chunk_ids(place) == ["a:0"]


# --- damage ---


def test_a_schema_with_other_tables_or_none_is_no_index(database):
    with using_store(database) as store:
        for use in (store.open, store.settings, store.find_damage):
            with pytest.raises(IndexNotFoundError, match="no index in postgresql://owner@127"):
                use()
    place = f"{database}?index=shop"
    run_sql(place, "CREATE SCHEMA shop CREATE TABLE orders (id int)")
    with pytest.raises(InputError, match=r"holds other tables \(orders\)"):
        write(place)


DAMAGES = [
    ("DELETE FROM contents WHERE number = 3", "lost a part: d2", False),
    ("DELETE FROM sentences WHERE number = 3 AND position = 0", "lost a part: d2", False),
    ("UPDATE contents SET places = replace(places, '[[0,', '[[-5,') WHERE number = 3", "lost a part: d2", False),
    ("UPDATE sentences SET embedding = '[1,2]' WHERE number = 3 AND position = 0", "lost a part: d2", False),
    ("UPDATE lowered SET lowered = 'x' WHERE number = 3", "table lowered", True),
    ("DELETE FROM lowered", "table lowered", True),
    ("DELETE FROM words WHERE word = 'gull'", "table words", True),
    ("UPDATE word_segments SET postings = decode(repeat('ff', length(postings)), 'hex')", "table word_segments", True),
    ("UPDATE word_segments SET head = set_byte(head, 9, 200)", "table word_segments", True),
    ("DROP INDEX lowered_by_trigrams", "lowered_by_trigrams", True),
    ("UPDATE state SET settings = replace(settings, '\"chunks\":14', '\"chunks\":15')", "table state", True),
]


@pytest.mark.parametrize(("damage", "said", "repairable"), DAMAGES)
def test_damage_is_found_and_what_is_derived_is_made_again(place, damage, said, repairable):
    write(place, *(document(f"d{i}", f"The gull sat on the reef {i}.\nIt flew.") for i in range(15)))
    write(place, remove=["d14"])
    run_sql(place, damage)
    with using_store(place) as store:
        (found,) = [each for each in store.find_damage() if each.repairable == repairable]
        assert re.search(said, str(found))
        assert store.open().word_index() is not None
        if not repairable:
            with pytest.raises(IndexFormatError, match=said):
                store.repair()
            write(place, remove=["d2"])
            write(place, document("d2", "The gull sat again."))
        store.repair()
        assert store.find_damage() == []
        assert store.open().rank(["gull"], 9).total == 14


def test_a_repair_changes_only_what_is_wrong_and_shows_how_far_it_is(place):
    write(place, *(document(f"d{i}", f"The gull sat on the reef {i}.") for i in range(15)))
    versions = "SELECT 'text ' || number, xmin::text FROM lowered UNION SELECT word, xmin::text FROM words"
    before = set(run_sql(place, versions))
    run_sql(place, "DELETE FROM lowered WHERE number = 3")
    run_sql(place, "DELETE FROM words WHERE word = 'reef'")
    run_sql(place, "INSERT INTO words VALUES ('swan', 'swan')")
    shares = []
    with using_store(place) as store:
        assert [damage.part for damage in store.find_damage(shares.append)] == ["table lowered", "table words"]
        store.repair(shares.append)
        assert store.find_damage() == []
    after = set(run_sql(place, versions))
    assert {name for name, _ in before - after} == {"text 3", "reef"}
    assert len(after) == len(before)
    assert shares.count(1.0) == 2


# --- readers ---


def test_verifying_and_searching_keep_no_writer_waiting(place):
    write(place, document("a", "The gull."))
    with using_store(place) as store, store.draft(begin) as draft:
        draft.put([document("b", "The reef.")])
        assert store.find_damage() == []
        assert store.open().rank(["reef"], 9).total == 0
        draft.publish(draft.settings)
        assert store.open().rank(["reef"], 9).total == 1


def test_readers_go_on_while_the_word_index_is_made(place, monkeypatch):
    write(place, document("a", "The gull."))
    with using_store(place) as store, ThreadPoolExecutor() as pool:

        def search():
            return store.open().rank(["gull"], 9).total

        def search_and_build(*arguments):
            totals.append(pool.submit(search).result(timeout=20))
            return build_segments(*arguments)

        totals = []
        monkeypatch.setattr(words, "build_segments", search_and_build)
        write(place, document("b", "The gull."))
        assert totals == [1]
        assert search() == 2


def test_a_publication_waits_for_who_is_storing(place, monkeypatch):
    write(place)
    with (
        using_store(place) as store,
        store.draft(begin) as one,
        store.draft(begin) as other,
        ThreadPoolExecutor() as pool,
    ):
        publishing = []

        def publish_meanwhile(*_):
            publishing.append(pool.submit(other.publish, other.settings))
            wait(publishing, timeout=0.5)

        other.put([document("a", "The gull.")])
        monkeypatch.setattr(one, "_mark_removed", publish_meanwhile)
        one.put([document("b", "The reef.")])
        publishing[0].result()
        assert store.find_damage() == []
    assert chunk_ids(place) == ["a:0", "b:0"]


def test_a_view_is_complete_until_there_are_two_newer_ones(place):
    write(place, *(document(name, f"The gull {name}.") for name in "abc"))
    with using_store(place) as store, closing(store.open()) as view:
        write(place, remove=["a"])
        assert sorted(view.yield_keys()) == ["a:0", "b:0", "c:0"]
        assert view.rank(["gull"], 9).total == 3
        write(place, remove=["b"])
        for use in (
            lambda: view.rank(["gull"], 9),
            lambda: view.nearest(vector_of("x"), 1),
            lambda: view.mget(["a:0"]),
        ):
            with pytest.raises(StorageError, match="replaced by newer snapshots"):
                use()
        assert list(store.open().yield_keys()) == ["c:0"]
    for table in ("contents", "lowered", "sentences"):  # of the last snapshot, and the one before it
        assert set(run_sql(place, f"SELECT number FROM {table}")) == {(2,), (3,)}


def test_an_index_is_searched_in_forked_processes(place):
    write(place, document("a", "The gull sat."))
    with using_store(place) as store, closing(store.open()) as view:

        def search():
            return view.rank(["gull"], 1).total, len(view.nearest(vector_of("gull"), 1)), store.stamp()

        expected = search()
        fork = multiprocessing.get_context("fork")
        ends, answers = fork.Pipe(duplex=False)
        children = [fork.Process(target=lambda: answers.send(search())) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [ends.recv() for _ in children] == [expected] * 2
        assert search() == expected


# --- what tables cannot hold ---


def test_words_ids_and_texts_may_be_long(place):
    """PostgreSQL indexes no value of more than 2,704 bytes."""
    long = "".join(random.Random(1).choices([chr(code) for code in range(0x4E00, 0x9F00)], k=3_000))
    for name in ("a", "b"):  # before and after the indexes are made
        write(place, document(name, f"{long}{'q' * 5_000}abc {long}.", title=long))
    with using_store(place) as store, closing(store.open()) as view:
        assert [view.rank([text], 1).total for text in (long, "qabc", "q" * 4_000, long[:50])] == [2, 2, 2, 2]


# --- what stands in the way ---


@contextmanager
def refused(place, kind, match):
    """Expect an error that names the index, and no password."""
    with pytest.raises(kind, match=match) as caught:
        yield
    assert str(parse_location(place)) in str(caught.value)
    error = caught.value
    while error is not None:
        assert urlsplit(place).password not in f"{error} {error!r}"
        error = error.__cause__


RECORDS = [{"id": f"d{n}", "text": f"The document w{n} has a line."} for n in range(4)]


def search_all(place):
    with open_index(place, embedder=TextEmbeddings()) as index:
        assert index.keyword_search("document").total == 4
        assert index.keyword_search("documemt").keywords[0].closest[0].text == "document"
        assert len(index.semantic_search("The document w2 has a line.", 2).hits) == 2
        assert index.read(["d1:0"]).chunks
        assert index.info().documents == 4


def test_a_role_that_may_only_select_searches_and_is_told_what_it_may_not_do(database, postgres_server):
    ingest(RECORDS, database)
    reader = postgres_server.create_role(database, password="p:@/ %'s")
    with refused(reader, StorageError, "permission denied for schema"):
        open_index(reader)
    for grant in ("USAGE ON SCHEMA arag", "SELECT ON ALL TABLES IN SCHEMA arag"):
        postgres_server.execute(f"GRANT {grant} TO {urlsplit(reader).username}", database=urlsplit(database).path[1:])
    search_all(reader)
    with using_store(reader) as store:
        assert store.find_damage() == []
    with refused(reader, StorageError, "permission denied for table"):
        remove("d1", reader)


def test_the_extensions_may_be_in_another_schema_and_must_be_there(database, postgres_server, monkeypatch):
    name = urlsplit(database).path[1:]
    for statement in ("DROP EXTENSION vector", "CREATE SCHEMA other", "GRANT USAGE ON SCHEMA other TO public"):
        postgres_server.execute(statement, database=name)
    with refused(database, StorageError, 'permission denied to create extension "vector"'):
        ingest(RECORDS, database)
    postgres_server.execute("CREATE EXTENSION vector SCHEMA other", database=name)
    with monkeypatch.context() as patch, refused(database, StorageError, "needs pgvector 99.0 or later, and has"):
        patch.setattr(schema, "_PGVECTOR", (99, 0))
        ingest(RECORDS, database)
    ingest(RECORDS, database)
    search_all(database)


def test_settings_of_the_environment_and_the_role_change_nothing(database, postgres_server, monkeypatch):
    name = urlsplit(database).path[1:]
    for each in ("default_transaction_isolation = 'serializable'", "search_path = ''", "plan_cache_mode = 'auto'"):
        postgres_server.execute(f"ALTER DATABASE {name} SET {each}")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    for text in ("海鸥 flew.", "海鸥 sat."):
        write(database, document("a", text, fingerprint=text))
    with using_store(database) as store, closing(store.open()) as view:
        assert view.rank(["海鸥", "sat"], 1).total == 1


@pytest.mark.parametrize(("given", "used"), [("4MB", "64MB"), ("200MB", "200MB")])
def test_a_reader_has_memory_for_the_rows_that_hold_a_frequent_word(database, postgres_server, given, used):
    write(database, document("a", "The gull flew."))
    postgres_server.execute(f"ALTER DATABASE {urlsplit(database).path[1:]} SET work_mem = '{given}'")
    with using_store(database) as store, closing(store.open()) as view:
        assert view.query("SELECT current_setting('work_mem')") == [(used,)]


@pytest.mark.parametrize("table", ["documents", "chunks", "state"])
def test_a_disk_may_be_full(place, table):
    """A trigger raises the error that a full disk raises."""
    ingest(RECORDS, place)
    run_sql(
        place,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$",
    )
    run_sql(place, f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION full_disk()")
    with refused(place, StorageError, "No space left"):
        ingest([{"id": "d1", "text": "Another text."}], place)
    search_all(place)
    run_sql(place, f"DROP TRIGGER full_disk ON {table}")
    ingest(RECORDS, place)
    with using_store(place) as store:
        assert store.find_damage() == []
    search_all(place)
