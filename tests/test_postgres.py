"""An index in PostgreSQL says what an index in a folder says; what stands in its way is named, and no password is."""

from __future__ import annotations

import multiprocessing
import random
import re
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag import open_index
from arag.errors import IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.ingest.maintenance import remove
from arag.retrieval.locations import parse_location, store_at, using_store
from arag.retrieval.postgres import connection
from arag.retrieval.text import words
from stores import begin, document, held, vector_of
from stores import write as write_store
from versions import TextEmbeddings, ingest

pytestmark = pytest.mark.servers

_NUMBERS = count()


@pytest.fixture
def place(shared_database):
    """The URL of an index that does not exist yet."""
    return new_place(shared_database)


def new_place(database):
    return f"{database}?index=own{next(_NUMBERS)}"


def write(place, *documents, remove=()):
    with using_store(place) as store:
        write_store(store, *documents, remove=remove)


def chunk_ids(place):
    """Return the ids of the chunks that a new reader sees."""
    with using_store(place) as store, closing(store.open()) as view:
        return sorted(view.yield_keys())


def schema_of(place):
    return urlsplit(place).query.removeprefix("index=") or "arag"


def execute(place, statement, *values):
    """Run a statement in the schema of an index."""
    with psycopg.connect(urlsplit(place)._replace(query="").geturl(), autocommit=True) as connected:
        connected.execute("SELECT set_config('search_path', %s, false)", [schema_of(place)])
        cursor = connected.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


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
UNSTORABLE = ["\0", "\ud800", "tide\0"]


def make_corpus(number, seed):
    draw = random.Random(seed)
    words = [*WORDS, *WORDS, *ODD, *LONG]

    def line():
        return draw.choice(["All rights reserved.", "# Heading", " ".join(draw.choices(words, k=draw.randint(1, 6)))])

    def texts():
        return ["\n".join(line() for _ in range(draw.randint(1, 5))) for _ in range(draw.randint(1, 4))]

    titles = ["", "Gull", "GULL (bird)", "The tide", "50% Élan"]
    return [document(f"d{n}", *texts(), title=draw.choice(titles), fingerprint=f"{seed}") for n in range(number)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory, shared_database):
    """One corpus in a folder and in PostgreSQL, as two runs have left them."""
    with ExitStack() as stack:
        views = []
        for place in (tmp_path_factory.mktemp("pair") / "index", new_place(shared_database)):
            write(place, *make_corpus(50, seed=5))
            write(place, *make_corpus(12, seed=6), remove=["d20", "d21"])
            store = stack.enter_context(using_store(place))
            assert store.find_damage() == []
            views.append(stack.enter_context(closing(store.open())))
        yield views


def say_all(view, texts, ids):
    """Return all that a view says about texts, which may be keywords, and about ids; numbers aside."""
    names = view.ids(view.numbers(list(view.yield_keys())).values())
    said = {}
    for by_coverage in (False, True):
        for top_k in (1, 4, 100):
            ranking = view.rank(texts, top_k, by_coverage=by_coverage)
            chunks = [(names[ranked.number], ranked.score, ranked.counts) for ranked in ranking.chunks]
            said[by_coverage, top_k] = (chunks, ranking.holding, ranking.as_word, ranking.total)
    said["counts"] = view.count_chunks(texts)
    said["holding all"] = [names[number] for limit in (1, 99) for number in view.holding_all(texts, limit)]
    said["words"] = [view.holds_word(text.lower()) for text in texts]
    said["spelled"] = view.words_spelled(texts), sorted(view.words_of_length(2, 4))
    for number in (1, 7, 400):
        near = view.nearest(vector_of(texts[0]), number)
        said["near", number] = [(names[m.chunk], m.position, m.similarity) for m in near]
    vectors = view.vectors(view.numbers([f"{i}:0" for i in ids]).values())
    said["vectors"] = sorted((names[number], positions, rows.tolist()) for number, positions, rows in vectors)
    keys = [f"{i}:{ordinal}" for i in ids for ordinal in (0, 1, 9)]
    said["chunks"] = view.mget([*keys, *texts]), [view.nearby_ids(key, 3) for key in keys], view.chunks_of(ids)
    said["neighbours"] = [view.neighbours(chunk, 1) for chunk in view.mget(keys) if chunk]
    said["documents"] = [view.document(i) for i in (*ids, *texts)], list(view.documents(after="d3"))
    said["named"] = [view.named(words(text), 5) for text in (*texts, "GULL", "é", "É")]
    said["all"] = list(view.yield_keys()), view.settings.chunks, view.settings.sentences
    return said


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*WORDS, *ODD, *UNSTORABLE, "lothair", "othair1", "tide gull", "de", "e", ".", "zzyx"]),
        st.text(max_size=4).filter(str.strip),
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
IDS = st.lists(st.sampled_from([*(f"d{i}" for i in range(55)), "'; --", *UNSTORABLE]), max_size=4)


@given(texts=TEXTS, ids=IDS, limit=st.none() | st.sets(st.integers(0, 55), max_size=50))
def test_every_search_says_the_same_whole_or_limited(pair, texts, ids, limit):
    folder, postgres = (view if limit is None else view.limited_to([f"d{i}" for i in limit]) for view in pair)
    assert say_all(postgres, texts, ids) == say_all(folder, texts, ids)


def test_a_limited_view_of_many_documents_is_an_index_of_these_alone(shared_database):
    corpus = make_corpus(1_500, seed=7)
    some = corpus[100:1_400]  # as many as are sent as a mask
    whole, part = new_place(shared_database), new_place(shared_database)
    write(whole, *corpus)
    write(part, *some)
    with using_store(whole) as store, using_store(part) as other:
        limited, alone = store.open().limited_to([document.record.id for document in some]), other.open()
        for texts in (["gull", "tide"], ["lothair", "海"], ["absent"]):
            said, expected = (say_all(view, texts, ["d99", "d100"]) for view in (limited, alone))
            del said["spelled"], expected["spelled"]  # words of other documents may be among those listed
            assert said == expected


# --- a graph ---


@pytest.fixture
def with_graph(monkeypatch):
    """Make small indexes search with pgvector, as large ones do."""
    for module in ("schema", "view"):
        monkeypatch.setattr(f"arag.retrieval.postgres.{module}.MAX_MATRIX_BYTES", 0)


def test_a_graph_finds_the_nearest_among_thousands_of_equal_sentences(place, with_graph):
    documents = [document(f"copy{i}", "\n".join(["Same."] * 100)) for i in range(30)]
    write(place, *documents, *(document(f"other{i}", f"Line {i}.") for i in range(300)))
    write(place, document("late", "Late."))
    found = 0
    with using_store(place) as store, closing(store.open()) as view:
        assert store.find_damage() == []
        names = view.ids(view.numbers(list(view.yield_keys())).values())
        for i in range(300):
            (match,) = view.nearest(vector_of(f"Line {i}."), 1)
            found += names[match.chunk] == f"other{i}:0" and match.similarity > 0.999
        assert found >= 298
        (match,) = view.nearest(vector_of("Late."), 1)
        assert names[match.chunk] == "late:0"
        assert len(view.nearest(vector_of("Same."), 2_000)) == 2_000
        some = view.limited_to(["other7", "other8"])
        assert [names[m.chunk] for m in some.nearest(vector_of("Line 8."), 5)] == ["other8:0", "other7:0"]


def test_a_view_with_a_graph_compares_where_the_graph_finds_too_few(place, with_graph, monkeypatch):
    monkeypatch.setattr("arag.retrieval.postgres.view._MAX_LIMITED_BYTES", 0)
    write(place, *(document(f"d{i}", f"Line {i}.\nRow {i}.") for i in range(500)))
    with using_store(place) as store, closing(store.open()) as view:
        for ids in (["d7"], [f"d{i}" for i in range(250)], [f"d{i}" for i in range(490)]):
            limited = view.limited_to(ids)
            for asked in (1, 15, 2 * len(ids), 5_000):
                found = limited.nearest(vector_of("Row 7."), asked)
                assert len(found) == min(asked, 2 * len(ids))
                assert (found[0].position, round(found[0].similarity, 2)) == (1, 1.0)


# --- one database ---


def test_two_indexes_in_one_database_know_nothing_of_each_other(shared_database):
    one, other = new_place(shared_database), new_place(shared_database)
    write(one, document("a", "The gull."))
    write(other, document("a", "The reef."))
    write(one, remove=["a"])
    assert (chunk_ids(one), chunk_ids(other)) == ([], ["a:0"])


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


def test_what_is_not_an_index_is_named(database):
    with using_store(database) as store:
        for use in (store.open, store.settings, store.find_damage):
            with pytest.raises(IndexNotFoundError, match="no index in postgresql://owner@127"):
                use()
    with psycopg.connect(database) as connected:
        connected.execute("CREATE SCHEMA shop")
        connected.execute("CREATE TABLE shop.orders (id int)")
    with pytest.raises(InputError, match=r"holds other tables \(orders\): name another one with \?index=NAME"):
        write(f"{database}?index=shop")


def test_an_index_that_was_not_published_yet_is_none(place):
    with using_store(place) as store:
        with store.draft(begin) as draft:
            draft.put([document("a", "The gull.")])
        with pytest.raises(IndexNotFoundError, match="yet: its first ingestion goes on, or was interrupted"):
            store.open()
        assert "run the same `arag ingest` again" in str(store.find_damage()[0])
    write(place)
    assert chunk_ids(place) == ["a:0"]


@pytest.mark.parametrize("settings", ["", "null", '{"dimension": 1}'])
def test_damaged_settings_are_named(place, settings):
    write(place)
    execute(place, "UPDATE state SET settings = %s", settings)
    for use in (chunk_ids, write):
        with pytest.raises(IndexFormatError, match=r"settings of the index in postgresql://owner@.* are damaged"):
            use(place)


def test_tables_of_another_version_are_named(place, shared_database):
    execute(shared_database, f"CREATE SCHEMA {schema_of(place)} CREATE TABLE state (name text, value text)")
    for use in (chunk_ids, write):
        with pytest.raises(IndexFormatError, match=r"made by another version of arag .*ingest the documents again"):
            use(place)


@pytest.mark.parametrize("name", ["a b", "o'o\"q", "semi;--", "per%cent", "UPPER", "ä{}$1\\", "x" * 63])
def test_any_name_is_a_schema(shared_database, name):
    place = f"{shared_database}?index={quote(name)}"
    write(place, document("a", "The gull sat."))
    assert chunk_ids(place) == ["a:0"]


# --- damage ---

DAMAGES = [
    ("DELETE FROM contents WHERE number = 3", r"lost a part \(d2\)", False),
    ("UPDATE contents SET places = '[]' WHERE number = 3", r"lost a part \(d2\)", False),
    ("DELETE FROM documents WHERE number = 3", r"lost a part \(d2\)", False),
    ("DELETE FROM sentences WHERE number = 3 AND position = 0", r"lost a part \(d2\)", False),
    ("UPDATE lowered SET lowered = 'x' WHERE number = 3", "texts of 1 chunks are missing or wrong", True),
    ("DELETE FROM words WHERE word = 'gull'", "1 words are missing", True),
    ("DROP INDEX lowered_by_trigrams", "these are missing: lowered_by_trigrams", True),
    ("UPDATE state SET settings = replace(settings, '\"chunks\":5', '\"chunks\":6')", "more or less than", True),
]


@pytest.mark.parametrize(("damage", "said", "repairable"), DAMAGES)
def test_damage_is_found_and_what_is_derived_is_made_again(place, damage, said, repairable):
    write(place, *(document(f"d{i}", f"The gull sat on the reef {i}.\nIt flew.") for i in range(5)))
    execute(place, damage)
    with using_store(place) as store:
        (found,) = [each for each in store.find_damage() if each.repairable == repairable]
        assert re.search(said, str(found))
        if not repairable:
            with pytest.raises(IndexFormatError, match=said):
                store.repair()
            write(place, remove=["d2"])
            write(place, document("d2", "The gull sat again."))
        store.repair()
        assert store.find_damage() == []
        assert store.open().rank(["gull"], 9).total == 5


def test_verifying_and_searching_keep_no_writer_waiting(place):
    write(place, document("a", "The gull."))
    with using_store(place) as store, store.draft(begin) as draft:
        draft.put([document("b", "The reef.")])
        assert store.find_damage() == []
        assert store.open().rank(["reef"], 9).total == 0
        draft.publish(draft.settings)
        assert store.open().rank(["reef"], 9).total == 1


# --- readers ---


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
            with pytest.raises(StorageError, match="replaced by newer publications"):
                use()
        assert list(store.open().yield_keys()) == ["c:0"]
    for table in ("contents", "lowered", "sentences"):  # of the last publication, and the one before it
        assert set(execute(place, f"SELECT number FROM {table}")) == {(2,), (3,)}


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


def test_a_store_opens_again_after_it_was_closed(place):
    write(place, document("a", "The gull sat."))
    store = store_at(place)
    view = store.open()
    store.close()
    assert view.rank(["gull"], 1).total == 1
    store.close()
    store.close()


# --- what tables cannot hold ---


def test_what_the_server_cannot_store_is_named_and_nothing_is_stored(place):
    for text in ("nul \0.", "half \ud800."):
        with pytest.raises(InputError, match=r"document 'a' holds the character U\+(0000|D800), which PostgreSQL"):
            write(place, document("b", "The reef."), document("a", text))
    with pytest.raises(InputError, match="is longer than the 2,000 bytes"):
        write(place, document("x" * 3_000, "The reef."))
    write(place)
    assert chunk_ids(place) == []


def test_words_ids_and_texts_may_be_long(place):
    """PostgreSQL indexes no value of more than 2,704 bytes."""
    long = "".join(random.Random(1).choices([chr(code) for code in range(0x4E00, 0x9F00)], k=3_000))
    for name in ("a", "b"):  # before and after the indexes are made
        write(place, document(name, f"{long}{'q' * 5_000}abc {long}.", title=long))
    with using_store(place) as store, closing(store.open()) as view:
        assert [view.rank([text], 1).total for text in (long, "qabc", "q" * 4_000, long[:50])] == [2, 2, 2, 2]


def test_odd_texts_of_documents_and_keywords_are_those_of_a_folder(tmp_path, place):
    odd = ["'; DROP SCHEMA public CASCADE; --", "back\\slash", "100%", "?", "%(name)s", "{}", "\\x00", "$tag$", "ﬁ"]
    documents = [{"id": f"{text} {n}", "title": text, "text": f"Before {text}.", text: n} for n, text in enumerate(odd)]
    said = []
    for target in (tmp_path / "index", place):
        ingest(documents, target)
        assert remove(documents[1]["id"], target) == 1
        with open_index(target, embedder=TextEmbeddings()) as index:
            found = [[index.document(document["id"]) for document in documents]]
            for text in [*odd, *UNSTORABLE]:
                found.append(index.keyword_search([text, "before"], 50, by_coverage=True))
                found.append([index.find_documents(text, 5), index.get(f"{text} 3:0"), index.read([f"{text} 3:0"], 1)])
            said.append(found)
    assert said[0] == said[1]


@pytest.mark.parametrize("field", ["id", "title", "text", "note"])
def test_documents_that_no_table_holds_end_as_in_a_folder(tmp_path, place, field):
    ends = []
    for target in (tmp_path / "index", place):
        record = {"id": "d", "title": "t", "text": "A text."} | {field: "nul\0nul, half\ud800"}
        summary = ingest([record, {"id": "other", "text": "Another."}], target)
        with using_store(target) as store:
            ends.append((summary.written, [str(problem) for problem in summary.problems], held(store)))
    assert ends[0] == ends[1]


# --- what stands in the way ---


@contextmanager
def refused(place, kind, match):
    """Expect an error that names the index, and no password."""
    with pytest.raises(kind, match=match) as caught:
        yield
    assert type(caught.value) is kind
    assert str(parse_location(place)) in str(caught.value)
    error = caught.value
    while error is not None:
        assert urlsplit(place).password not in f"{error} {error!r}"
        error = error.__cause__


RECORDS = [{"id": f"d{n}", "text": f"The document w{n} has a line."} for n in range(4)]


@pytest.fixture
def filled(place):
    """The URL of an index with four documents."""
    ingest(RECORDS, place)
    return place


def search_all(place):
    with open_index(place, embedder=TextEmbeddings()) as index:
        assert index.keyword_search("document").total == 4
        assert index.keyword_search("documemt").keywords[0].closest[0].text == "document"
        assert len(index.semantic_search("The document w2 has a line.", 2).hits) == 2
        assert index.read(["d1:0"]).chunks
        assert index.info().documents == 4


@contextmanager
def setting(postgres_server, place, name, value):
    database = urlsplit(place).path[1:]
    postgres_server.execute(f"ALTER DATABASE {database} SET {name} = {value}")
    try:
        yield
    finally:
        postgres_server.execute(f"ALTER DATABASE {database} RESET {name}")


def test_a_role_that_may_only_select_searches_and_is_told_what_it_may_not_do(database, postgres_server):
    ingest(RECORDS, database)
    name = urlsplit(database).path[1:]
    reader = postgres_server.create_role(database, password="p:@/ %'s")
    role = urlsplit(reader).username
    with refused(reader, StorageError, "USAGE ON SCHEMA"):
        open_index(reader)
    postgres_server.execute(f"GRANT USAGE ON SCHEMA arag TO {role}", database=name)
    with refused(reader, StorageError, "permission denied for table state"):
        open_index(reader)
    postgres_server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA arag TO {role}", database=name)
    search_all(reader)
    with using_store(reader) as store:
        assert store.find_damage() == []
        assert store.size() > 0
    with refused(reader, StorageError, "may not be used so by this role"):
        remove("d1", reader)


def test_the_extensions_must_be_there_or_be_allowed(postgres_server):
    with postgres_server.database(extensions=False) as database:
        name = urlsplit(database).path[1:]
        url = postgres_server.create_role(database)
        postgres_server.execute(f"CREATE SCHEMA words AUTHORIZATION {urlsplit(url).username}", database=name)
        place = f"{url}?index=words"
        postgres_server.execute("CREATE SCHEMA extensions", database=name)
        postgres_server.execute("GRANT USAGE ON SCHEMA extensions TO public", database=name)
        for extension in ("vector", "pg_trgm"):
            with refused(place, StorageError, f"CREATE EXTENSION {extension}"):
                ingest(RECORDS, place)
            postgres_server.execute(f"CREATE EXTENSION {extension} SCHEMA extensions", database=name)
        ingest(RECORDS, place)
        search_all(place)


def test_settings_of_the_environment_and_the_role_change_nothing(database, postgres_server, monkeypatch):
    name = urlsplit(database).path[1:]
    for each in ("default_transaction_isolation = 'serializable'", "search_path = ''", "plan_cache_mode = 'auto'"):
        postgres_server.execute(f"ALTER DATABASE {name} SET {each}")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    for text in ("海鸥 flew.", "海鸥 sat."):
        write(database, document("a", text, fingerprint=text))
    with using_store(database) as store, closing(store.open()) as view:
        assert view.rank(["海鸥", "sat"], 1).total == 1


def test_a_server_that_takes_no_writes_is_searched(filled, postgres_server):
    with setting(postgres_server, filled, "default_transaction_read_only", "on"):
        search_all(filled)
        with refused(filled, StorageError, "takes no writes .*standby"):
            ingest([{"id": "d1", "text": "Another text."}], filled)
    assert remove("d1", filled) == 1


def test_a_search_may_take_too_long(filled, postgres_server):
    with (
        setting(postgres_server, filled, "statement_timeout", "'1ms'"),
        refused(filled, StorageError, "raise statement_timeout"),
        open_index(filled, embedder=TextEmbeddings()) as index,
    ):
        for _ in range(200):
            index.keyword_search(["document"] * 50)


@pytest.mark.parametrize("table", ["documents", "chunks", "state"])
def test_a_disk_may_be_full(filled, table):
    """A trigger raises the error that a full disk raises."""
    execute(
        filled,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$",
    )
    execute(filled, f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION full_disk()")
    with refused(filled, StorageError, "no room left .*No space left"):
        ingest([{"id": "d1", "text": "Another text."}], filled)
    search_all(filled)
    execute(filled, f"DROP TRIGGER full_disk ON {table}")
    ingest(RECORDS, filled)
    with using_store(filled) as store:
        assert store.find_damage() == []
    search_all(filled)


def test_a_server_may_have_no_connection_left(filled, postgres_server):
    schema = schema_of(filled)
    grants = f"USAGE ON SCHEMA {schema}", f"SELECT ON ALL TABLES IN SCHEMA {schema}"
    url = postgres_server.create_role(filled, *grants, options="CONNECTION LIMIT 4")
    limited = f"{url}?index={schema}"
    search_all(limited)
    with ExitStack() as others:
        with suppress(psycopg.OperationalError):
            while True:
                others.enter_context(psycopg.connect(url))
        with refused(limited, StorageError, "too many connections for role"):
            open_index(limited)


def test_a_database_must_be_in_utf8(postgres_server):
    postgres_server.execute(
        "CREATE DATABASE latin OWNER owner TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    try:
        place = f"{postgres_server.url('latin', 'owner')}?index=latin"
        for use in (lambda: ingest(RECORDS, place), lambda: open_index(place)):
            with refused(place, StorageError, "ENCODING 'UTF8'"):
                use()
    finally:
        postgres_server.execute("DROP DATABASE latin WITH (FORCE)")


def test_an_index_that_is_dropped_while_it_is_open_is_missed(filled):
    with open_index(filled, embedder=TextEmbeddings()) as index:
        execute(filled, f"DROP SCHEMA {schema_of(filled)} CASCADE")
        with pytest.raises(IndexNotFoundError, match=schema_of(filled)):
            index.keyword_search("document")
        ingest(RECORDS, filled)
        assert index.keyword_search("document").total == 4


def test_a_reader_goes_on_after_searches_that_failed(postgres, monkeypatch):
    monkeypatch.setattr(connection, "_POOL_TIMEOUT", 1.5)
    with postgres.database() as database:
        place = f"{database}?index=gone"
        ingest(RECORDS, place)
        with open_index(place, embedder=TextEmbeddings()) as index:
            assert index.keyword_search("document").total == 4
            postgres.kill()
            for _ in range(2):
                with refused(place, StorageError, "no connection was free|cannot be used"):
                    index.keyword_search("document")
            with refused(place, StorageError, "refused"):
                open_index(place)
            postgres.start()
            assert index.keyword_search("document").total == 4
