"""An index in PostgreSQL says what an index in a folder says, whoever reads it and however it is limited."""

from __future__ import annotations

import multiprocessing
import random
import re
from contextlib import ExitStack, closing
from itertools import count
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.retrieval.locations import store_at
from arag.retrieval.storage import DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.types import Chunk, Sentence, Table

pytestmark = pytest.mark.servers

DIMENSION = 24
_NUMBERS = count()


def begin():
    return Settings("test:vectors", DIMENSION, 1_000, "words")


def new_place(database):
    """Return the URL of an index that does not exist yet."""
    return f"{database}?index=own{next(_NUMBERS)}"


def make_document(name, texts, *, title="", fingerprint="1", same=()):
    """Return a document with a chunk for each text; its sentences end with a dot.

    Args:
        name: Its id.
        texts: The chunks' texts.
        title: Its title.
        fingerprint: Its fingerprint.
        same: Sentences that have one vector wherever they stand; the others' depend on the document, too.
    """
    chunks, vectors = [], []
    for ordinal, text in enumerate(texts):
        sentences = [
            Sentence(m.start(), m.end(), m[0] != "Heading.", "A > B" if ordinal else "", Table("t", "a | b"))
            for m in re.finditer(r"[^\s.][^.]*\.?", text)
        ]
        chunk_id = f"{name}:{ordinal}"
        chunk = Chunk(chunk_id, name, ordinal, title, text, tuple(sentences), len(text), len(texts) == 1, (ordinal, 9))
        chunks.append(chunk)
        vectors.append(embed([t if t in same else f"{chunk_id} {t}" for t in chunk.embedded_texts()]))
    record = DocumentRecord(name, title, f"{name}.md", '{"n": 1}', fingerprint, len(texts))
    return EmbeddedDocument(record, chunks, vectors)


def embed(texts):
    """Return a vector for each text that has nothing to do with any other's."""
    vectors = np.empty((len(texts), DIMENSION), np.float32)
    for row, text in enumerate(texts):
        vectors[row] = np.random.default_rng(list(text.encode("utf-8", "replace"))).standard_normal(DIMENSION)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(place, documents=(), *, removed=(), publish=True):
    """Store and remove documents."""
    with closing(store_at(place)) as store, store.draft(begin) as draft:
        assert draft.put(documents) == {}
        draft.remove(removed)
        if publish:
            draft.publish(draft.settings)


def chunk_ids(place):
    """Return the ids of the chunks that a new reader sees."""
    with closing(store_at(place)) as store, closing(store.open()) as view:
        return sorted(view.yield_keys())


# --- the same results as in a folder ---

WORDS = (
    "gull gulls Gull reef tide tide tide naïve naive nai\u0308ve the lighthouse light-house 海 海鸥 a-b x Чайковский"
)
ODD = ["İSTANBUL", "ΑΣ", "straße", "50%", "a_b", "back\\slash", "'; DROP TABLE chunks; --", "%s", "{}", "$1", "?", "''"]
LONG = [
    f"{'y' * 300}lothair{'z' * 300}",
    f"{'海' * 300}lothair海",
    "Lotha\u0131r LOTHA\u0130R lothaİr lothairé 海lothair海 \u212alothair",
    "SCHLOTHAIRX9",
    *(f"n{i}lothair{i}x" for i in range(120)),
]
UNSTORABLE = ["\0", "\ud800", "tide\0"]
SAME = "All rights reserved."


def make_corpus(number, seed):
    choice = random.Random(seed)
    words = [*WORDS.split(), *WORDS.split(), *ODD, *LONG]
    documents = []
    for place in range(number):
        texts = [
            " ".join(
                choice.choice([SAME, "Heading.", f"{' '.join(choices)}.", f"{' '.join(choices)}.\n\n"])
                for _ in range(choice.randrange(1, 6))
                if (choices := choice.choices(words, k=choice.randrange(1, 7)))
            )
            for _ in range(choice.randrange(1, 5))
        ]
        title = choice.choice(["", "Gull", "GULL (bird)", "The tide", "50% Élan"])
        documents.append(make_document(f"d{place}", texts, title=title, same=[SAME], fingerprint=f"{seed}"))
    return documents


@pytest.fixture(scope="module")
def pair(tmp_path_factory, shared_database):
    """One corpus in a folder and in PostgreSQL, as two runs have left them."""
    places = tmp_path_factory.mktemp("pair") / "index", new_place(shared_database)
    first, second = make_corpus(50, seed=5), make_corpus(12, seed=6)
    with ExitStack() as stack:
        views = []
        for place in places:
            write(place, first)
            write(place, second, removed=["d20", "d21"])
            store = stack.enter_context(closing(store_at(place)))
            assert store.find_damage() == []
            views.append(stack.enter_context(closing(store.open())))
        yield views


def say_all(view, texts, ids):
    """Return all that a view says about texts, which may be keywords, and about ids; numbers aside."""
    names = view.ids(view.numbers(list(view.yield_keys())).values())
    said = []
    for by_coverage in (False, True):
        for top_k in (1, 4, 100):
            ranking = view.rank(texts, top_k, by_coverage=by_coverage)
            chunks = [(names[ranked.number], ranked.score, ranked.counts) for ranked in ranking.chunks]
            said.append((chunks, ranking.holding, ranking.as_word, ranking.total))
    said.append(view.count_chunks(texts))
    said.append([names[number] for limit in (1, 99) for number in view.holding_all(texts, limit)])
    said.append([view.holds_word(text.lower()) for text in texts])
    said.append(view.words_spelled(texts))
    said.append(sorted(view.words_of_length(2, 4)))
    for count_ in (1, 7, 400):
        found = view.nearest(embed(texts)[0], count_)
        said.append([(names[m.chunk], m.position, m.similarity) for m in found])
    vectors = view.vectors(view.numbers([f"{i}:0" for i in ids]).values())
    said.append(sorted((names[number], positions, rows.tolist()) for number, positions, rows in vectors))
    keys = [f"{i}:{ordinal}" for i in ids for ordinal in (0, 1, 9)]
    said.append([view.mget([*keys, *texts]), [view.similar_ids(key, 3) for key in keys]])
    said.append([view.neighbours(chunk, 1) for chunk in view.mget(keys) if chunk])
    said.append([[view.document(i) for i in (*ids, *texts)], list(view.documents(after="d3")), view.chunks_of(ids)])
    said.append([view.named([text], 5) for text in (*texts, "", "GULL", "é", "É")])
    said.append([list(view.yield_keys()), view.settings.chunks, view.settings.sentences])
    return said


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*WORDS.split(), *ODD, *UNSTORABLE, "lothair", "othair1", "tide gull", "de", "e", ".", "zzyx"]),
        st.text(max_size=4).filter(str.strip),
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
IDS = st.lists(st.sampled_from([*(f"d{i}" for i in range(55)), "'; --", *UNSTORABLE]), max_size=4)


@given(texts=TEXTS, ids=IDS)
def test_every_search_says_the_same(pair, texts, ids):
    folder, postgres = pair
    assert say_all(postgres, texts, ids) == say_all(folder, texts, ids)


@given(texts=TEXTS, ids=st.sets(st.integers(0, 55), max_size=50))
def test_every_limited_view_says_the_same(pair, texts, ids):
    folder, postgres = (view.limited_to([f"d{i}" for i in ids]) for view in pair)
    assert say_all(postgres, texts, ["d1", "d2"]) == say_all(folder, texts, ["d1", "d2"])


def test_a_limited_view_is_an_index_of_these_documents_alone(shared_database):
    corpus = make_corpus(1_500, seed=7)
    some = corpus[100:1_400]  # as many as are sent as a mask
    whole, part = new_place(shared_database), new_place(shared_database)
    write(whole, corpus)
    write(part, some)
    with closing(store_at(whole)) as store, closing(store_at(part)) as other:
        limited, alone = store.open().limited_to([document.record.id for document in some]), other.open()
        for texts in (["gull", "tide"], ["lothair", "海"], ["absent"]):
            said = say_all(limited, texts, ["d99", "d100"])
            expected = say_all(alone, texts, ["d99", "d100"])
            spelled = slice(9, 11)  # words of other documents may be among those listed
            said[spelled] = expected[spelled] = []
            assert said == expected


# --- a graph ---


@pytest.fixture
def with_graph(monkeypatch):
    """Make small indexes search with pgvector, as large ones do."""
    for module in ("schema", "view"):
        monkeypatch.setattr(f"arag.retrieval.postgres.{module}.MAX_MATRIX_BYTES", 0)


def test_a_graph_finds_the_nearest_among_thousands_of_equal_sentences(shared_database, with_graph):
    place = new_place(shared_database)
    documents = [make_document(f"copy{i}", ["Same. " * 100], same=["Same."]) for i in range(30)]
    documents += [make_document(f"other{i}", [f"Line {i}."], same=[f"Line {i}."]) for i in range(300)]
    write(place, documents)
    write(place, [make_document("late", ["Late."], same=["Late."])])
    found = 0
    with closing(store_at(place)) as store, closing(store.open()) as view:
        assert store.find_damage() == []
        names = view.ids(view.numbers(list(view.yield_keys())).values())
        for i in range(300):
            (match,) = view.nearest(embed([f"Line {i}."])[0], 1)
            found += names[match.chunk] == f"other{i}:0" and match.similarity > 0.999
        assert found >= 298
        (match,) = view.nearest(embed(["Late."])[0], 1)
        assert names[match.chunk] == "late:0"
        assert len(view.nearest(embed(["Same."])[0], 2_000)) == 2_000
        some = view.limited_to(["other7", "other8"])
        assert [names[m.chunk] for m in some.nearest(embed(["Line 8."])[0], 5)] == ["other8:0", "other7:0"]


def test_a_view_with_a_graph_compares_where_the_graph_finds_too_few(shared_database, with_graph, monkeypatch):
    monkeypatch.setattr("arag.retrieval.postgres.view._MAX_LIMITED_BYTES", 0)
    place = new_place(shared_database)
    write(place, [make_document(f"d{i}", [f"Line {i}. Row {i}."]) for i in range(500)])
    with closing(store_at(place)) as store, closing(store.open()) as view:
        for ids in (["d7"], [f"d{i}" for i in range(250)], [f"d{i}" for i in range(490)]):
            limited = view.limited_to(ids)
            for asked in (1, 15, 2 * len(ids), 5_000):
                found = limited.nearest(embed(["d7:0 Row 7."])[0], asked)
                assert len(found) == min(asked, 2 * len(ids))
                assert (found[0].position, round(found[0].similarity, 2)) == (1, 1.0)


# --- one database ---


def test_two_indexes_in_one_database_know_nothing_of_each_other(shared_database):
    one, other = new_place(shared_database), new_place(shared_database)
    write(one, [make_document("a", ["The gull."])])
    write(other, [make_document("a", ["The reef."])])
    write(one, removed=["a"])
    assert (chunk_ids(one), chunk_ids(other)) == ([], ["a:0"])


def test_nothing_in_another_schema_is_used(database, postgres_server):
    """Anybody may create tables and functions in `public` of a database that was made before version 15."""
    write(database, [make_document("a", ["The gull sat."])])
    name = urlsplit(database).path[1:]
    for made in (
        "FUNCTION octet_length(text) RETURNS int LANGUAGE sql RETURN 1",
        "TABLE words AS SELECT 'mine' AS word, 'mine' AS plain",
    ):
        postgres_server.execute(f"CREATE {made}", database=name)
    postgres_server.execute("GRANT ALL ON words TO PUBLIC", database=name)
    with closing(store_at(database)) as store, closing(store.open()) as view:
        assert view.rank(["gull"], 1).chunks[0].score == 4
        postgres_server.execute("DROP TABLE arag.words", database=name)
        with pytest.raises(IndexFormatError, match="is incomplete"):
            view.words_spelled(["mine"])


def test_what_is_not_an_index_is_named(database, postgres_server):
    with closing(store_at(database)) as store:
        for use in (store.open, store.settings, store.find_damage):
            with pytest.raises(IndexNotFoundError, match="no index in postgresql://owner@127"):
                use()
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.orders (id int)")
    with pytest.raises(InputError, match=r"holds other tables \(orders\): name another one with \?index=NAME"):
        write(f"{database}?index=shop")


def test_an_index_that_was_not_published_yet_is_none(shared_database):
    place = new_place(shared_database)
    write(place, [make_document("a", ["The gull."])], publish=False)
    with closing(store_at(place)) as store:
        with pytest.raises(IndexNotFoundError, match="yet: its first ingestion goes on, or was interrupted"):
            store.open()
        assert "run the same `arag ingest` again" in str(store.find_damage()[0])
    write(place)
    assert chunk_ids(place) == ["a:0"]


@pytest.mark.parametrize("settings", ["", "[]", "{", "null", '{"dimension": 1}', "[" * 5_000])
def test_damaged_settings_are_named(shared_database, settings):
    place = new_place(shared_database)
    write(place)
    execute(place, "UPDATE state SET settings = %s", settings)
    for use in (lambda: chunk_ids(place), lambda: write(place)):
        with pytest.raises(IndexFormatError, match=r"settings of the index in postgresql://owner@.* are damaged"):
            use()


def test_tables_of_another_version_are_named(shared_database):
    place = new_place(shared_database)
    with psycopg.connect(shared_database) as connection:
        connection.execute(f"CREATE SCHEMA {urlsplit(place).query[6:]} CREATE TABLE state (name text, value text)")
    for use in (lambda: chunk_ids(place), lambda: write(place)):
        with pytest.raises(IndexFormatError, match=r"made by another version of arag .*ingest the documents again"):
            use()


# --- damage ---


def execute(place, statement, *values):
    """Run a statement in the schema of an index."""
    url = urlsplit(place)
    with psycopg.connect(url._replace(query="").geturl(), autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", [url.query.removeprefix("index=")])
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


DAMAGES = [
    ("DELETE FROM contents WHERE number = 3", r"lost a part \(d2\)", False),
    ("UPDATE contents SET places = '[]' WHERE number = 3", r"lost a part \(d2\)", False),
    ("DELETE FROM chunks WHERE number = 3", r"lost a part \(d2\)", False),
    ("DELETE FROM documents WHERE number = 3", r"lost a part \(d2\)", False),
    ("DELETE FROM sentences WHERE number = 3 AND position = 0", r"lost a part \(d2\)", False),
    ("UPDATE lowered SET lowered = 'x' WHERE number = 3", "texts of 1 chunks are missing or wrong", True),
    ("DELETE FROM lowered WHERE number = 3", "texts of 1 chunks are missing or wrong", True),
    ("DELETE FROM words WHERE word = 'gull'", "1 words are missing", True),
    ("DROP INDEX lowered_by_trigrams", "these are missing: lowered_by_trigrams", True),
    ("UPDATE state SET settings = replace(settings, '\"chunks\":5', '\"chunks\":6')", "it lists 5 documents, 6", True),
]


@pytest.mark.parametrize(("damage", "said", "repairable"), DAMAGES)
def test_damage_is_found_and_what_is_derived_is_made_again(shared_database, damage, said, repairable):
    place = new_place(shared_database)
    write(place, [make_document(f"d{i}", [f"The gull sat on the reef {i}. It flew."]) for i in range(5)])
    execute(place, damage)
    with closing(store_at(place)) as store:
        (found,) = [each for each in store.find_damage() if each.repairable == repairable]
        assert re.search(said, str(found))
        if not repairable:
            with pytest.raises(IndexFormatError, match=said):
                store.repair()
            write(place, removed=["d2"])
            write(place, [make_document("d2", ["The gull sat again."])])
        store.repair()
        assert store.find_damage() == []
        assert store.open().rank(["gull"], 9).total == 5


def test_verifying_and_searching_keep_no_writer_waiting(shared_database):
    place = new_place(shared_database)
    write(place, [make_document("a", ["The gull."])])
    with closing(store_at(place)) as store, store.draft(begin) as draft:
        draft.put([make_document("b", ["The reef."])])
        assert store.find_damage() == []
        assert store.open().rank(["reef"], 9).total == 0
        draft.publish(draft.settings)
        assert store.open().rank(["reef"], 9).total == 1


# --- readers ---


def test_a_role_that_may_only_select_searches_and_is_told_what_it_may_not_do(database, postgres_server):
    write(database, [make_document("a", ["The gull sat."])])
    name = urlsplit(database).path[1:]
    reader = postgres_server.create_role(database, password="p:@/ %'s")
    role = urlsplit(reader).username
    with pytest.raises(StorageError, match="USAGE ON SCHEMA"):
        chunk_ids(reader)
    postgres_server.execute(f"GRANT USAGE ON SCHEMA arag TO {role}", database=name)
    with pytest.raises(StorageError, match="permission denied for table state"):
        chunk_ids(reader)
    postgres_server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA arag TO {role}", database=name)
    with closing(store_at(reader)) as store, closing(store.open()) as view:
        assert view.rank(["gull"], 1, by_coverage=True).total == 1
        assert len(view.nearest(embed(["The gull sat."])[0], 3)) == 1
        assert store.find_damage() == []
        assert store.size() > 0
    with pytest.raises(StorageError, match="may not be used so by this role") as caught:
        write(reader, [make_document("b", ["The reef."])])
    assert "p:@" not in str(caught.value)
    assert "p%3A" not in str(caught.value)


def test_settings_of_the_environment_and_the_role_change_nothing(database, postgres_server, monkeypatch):
    name = urlsplit(database).path[1:]
    for setting in ("default_transaction_isolation = 'serializable'", "search_path = ''", "plan_cache_mode = 'auto'"):
        postgres_server.execute(f"ALTER DATABASE {name} SET {setting}")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    for text in ("海鸥 flew.", "海鸥 sat."):
        write(database, [make_document("a", [text], fingerprint=text)])
    with closing(store_at(database)) as store, closing(store.open()) as view:
        assert view.rank(["海鸥", "sat"], 1).total == 1


def test_a_view_is_complete_until_there_are_two_newer_ones(shared_database):
    place = new_place(shared_database)
    write(place, [make_document(name, [f"The gull {name}."]) for name in "abc"])
    with closing(store_at(place)) as store, closing(store.open()) as view:
        stamp = store.stamp()
        write(place, removed=["a"])
        assert sorted(view.yield_keys()) == ["a:0", "b:0", "c:0"]
        assert view.rank(["gull"], 9).total == 3
        assert store.stamp() != stamp
        write(place, removed=["b"])
        for use in (
            lambda: view.rank(["gull"], 9),
            lambda: view.nearest(embed(["x"])[0], 1),
            lambda: view.mget(["a:0"]),
        ):
            with pytest.raises(StorageError, match="replaced by newer publications"):
                use()
        assert list(store.open().yield_keys()) == ["c:0"]
        numbers = {
            n
            for table in ("contents", "lowered", "sentences")
            for (n,) in execute(place, f"SELECT number FROM {table}")
        }
        assert numbers == {2, 3}


def test_an_index_is_searched_in_forked_processes(shared_database):
    place = new_place(shared_database)
    write(place, [make_document("a", ["The gull sat."])])
    with closing(store_at(place)) as store, closing(store.open()) as view:

        def search(_):
            return view.rank(["gull"], 1).total, len(view.nearest(embed(["gull"])[0], 1)), store.stamp()

        expected = search(None)
        fork = multiprocessing.get_context("fork")
        ends, answers = fork.Pipe(duplex=False)
        children = [fork.Process(target=lambda: answers.send(search(None))) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [ends.recv() for _ in children] == [expected] * 2
        assert search(None) == expected


def test_a_store_opens_again_after_it_was_closed(shared_database):
    place = new_place(shared_database)
    write(place, [make_document("a", ["The gull sat."])])
    store = store_at(place)
    view = store.open()
    store.close()
    assert view.rank(["gull"], 1).total == 1
    store.close()
    store.close()


# --- what tables cannot hold ---


def test_what_the_server_cannot_store_is_named(shared_database):
    place = new_place(shared_database)
    for text in ("nul \0.", "half \ud800."):
        with pytest.raises(InputError, match=r"document 'a' holds the character U\+(0000|D800), which PostgreSQL"):
            write(place, [make_document("b", ["The reef."]), make_document("a", [text])])
    with pytest.raises(InputError, match="is longer than the 2,000 bytes"):
        write(place, [make_document("x" * 3_000, ["The reef."])])
    write(place)
    assert chunk_ids(place) == []


def test_words_ids_and_texts_may_be_long(shared_database):
    """PostgreSQL indexes no value of more than 2,704 bytes."""
    long = "".join(random.Random(1).choices([chr(code) for code in range(0x4E00, 0x9F00)], k=3_000))
    place = new_place(shared_database)
    for name in ("a", "b"):  # before and after the indexes are made
        write(place, [make_document(name, [f"{long}{'q' * 5_000}abc {long}."], title=long)])
    with closing(store_at(place)) as store, closing(store.open()) as view:
        assert [view.rank([text], 1).total for text in (long, "qabc", "q" * 4_000, long[:50])] == [2, 2, 2, 2]


NAMES = ["a b", 'q"q', "o'o", "semi;--", "per%25cent", "UPPER", "ä", "{}", "%25s", "$1", "\\", "x" * 63]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_schema(shared_database, name):
    place = f"{shared_database}?index={name.replace(' ', '%20')}"
    write(place, [make_document("a", ["The gull sat."])])
    assert chunk_ids(place) == ["a:0"]
