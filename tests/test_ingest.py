"""What an ingestion writes, and what it leaves as it is; runs that are interrupted, and writers beside each other."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import time
import warnings
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from arag.errors import ModelError
from arag.ingest import records
from arag.ingest.maintenance import verify
from arag.ingest.pipeline import ingest, run_ingest
from arag.ingest.preview import preview
from arag.models.embedders import Embedder
from arag.models.similarity import SAMPLE_SENTENCES
from arag.retrieval.corpus.shell.run import run_shell
from arag.retrieval.index import open_index
from arag.retrieval.scope import Scope
from fakes import HashEmbeddings, hash_vector, write_corpus

TEXTS = {
    "ship": "The ship was built in Rome. She sank in 1912.",
    "gull": "A gull is a bird. It eats fish.",
    "notes/tern.md": "# The Tern\n\nA tern is a bird, too. It flies far.",
    "china": "北京是中国的首都。上海是最大的城市！",
    "long": " ".join(f"In the year {n} nobody sailed from the harbour of Vellin." for n in range(1500, 1600)),
}


class Corpus:
    """A folder of documents, an index of them, and what was embedded for it."""

    def __init__(self, folder, index):
        self.source = folder / "corpus"
        self.index = index
        self.embedder = HashEmbeddings()

    def write(self, documents):
        return write_corpus(self.source, documents)

    def ingest(self, documents=None, **options):
        """Ingest, and give back the summary and the texts that were embedded (but for the probe of a new index)."""
        if documents is not None:
            self.write(documents)
        self.embedder.embedded.clear()
        summary = run_ingest(self.source, self.index, embedder=self.embedder, **options)
        return summary, [text for text in self.embedder.embedded if text not in SAMPLE_SENTENCES]

    def open(self):
        return open_index(self.index, embedder=self.embedder)


@pytest.fixture
def corpus(tmp_path, backend, places):
    return Corpus(tmp_path, places(backend, tmp_path / "index"))


in_every_backend = pytest.mark.parametrize("backend", ["folder", "postgres"], indirect=True)


def chunks_of(index):
    return {chunk_id: index.get(chunk_id) for chunk_id in index.chunk_ids()}


def texts_of(index):
    texts = dict.fromkeys((document.id for document in index.documents()), "")
    for chunk in chunks_of(index).values():
        texts[chunk.document_id] += chunk.text
    return texts


def assert_consistent(place):
    """The index has the right vector of every embedded sentence, its counts are right, and all of it is sound."""
    with open_index(place, embedder=HashEmbeddings()) as index:
        chunks = chunks_of(index)
        embedded = {
            (chunk.id, position): chunk.sentence_text(position)
            for chunk in chunks.values()
            for position, sentence in enumerate(chunk.sentences)
            if sentence.embedded
        }
        vectors = {
            (chunk.id, position): vector
            for chunk, positions, rows in index.sentence_vectors()
            for position, vector in zip(positions, rows, strict=True)
        }
        info = index.info()
        ids = {document.id for document in index.documents()}
        assert {chunk.document_id for chunk in chunks.values()} == ids
        assert (info.documents, info.chunks, info.sentences) == (len(ids), len(chunks), len(embedded))
        assert info.tokens == sum(chunk.tokens for chunk in chunks.values())
        assert vectors.keys() == embedded.keys()
        for key, vector in vectors.items():
            assert np.linalg.norm(vector - hash_vector(embedded[key])) < 2e-3
    assert verify(place) == ([], [])


# --- hostile files ---

_LENGTH = 100_000  # of each text: one that takes time in its square takes a minute


def fill(pattern):
    return (pattern * (_LENGTH // len(pattern) + 1))[:_LENGTH]


LAUGHS = "".join(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefg"))
SLOW = {
    "ticks.md": fill("`"),
    "tildes.md": f"a\n{fill('~')}",
    "quotes.md": fill("> ") + "x",
    "emphasis.md": fill("*a _b "),
    "html.md": f"{fill('<div>')}x",
    "fences.md": fill("````\n```\n"),
    "spaces.md": f"#{fill(' ')}\nx",
    "dashes.md": f"| a | b |\n{fill('-')}x\n",
    "columns.txt": " | ".join(f"c{n}" for n in range(_LENGTH // 14)) + "\nc1: x | y" * (_LENGTH // 20),
    "blank.txt": f"a | b{fill(chr(10))}x",
    "code.html": f"<pre>a{fill(chr(10))}b</pre>",
    "break.md": f"<{fill(' ')}x",
    "clock.txt": "[12:00:00" + "x" * 40_000 + " It is. So." * 5_000,
    "brackets.py": fill("("),
    "nested.py": "\n".join(f"{' ' * n}if a:" for n in range(900)),
    "columns.csv": fill("a,") + "\n" + fill("1,"),
    "laughs.md": f"---\na: &a [x, x, x, x, x, x, x, x, x]\n{LAUGHS}---\nText.",
    "deep.md": f"---\na: {'[' * 20_000}\n---\nText.",
}


@pytest.mark.slow
def test_no_text_takes_time_in_its_square(corpus):
    began = time.process_time()
    summary, _ = corpus.ingest(SLOW | {"good.md": "The mill stands."})
    assert time.process_time() - began < 30
    assert (summary.read, summary.problems) == (len(SLOW) + 1, ())


def write_files(corpus, files):
    corpus.source.mkdir()
    for name, text in files.items():
        (corpus.source / name).write_text(text)


def test_what_would_fill_the_memory_is_left_out_and_the_rest_is_kept(corpus):
    values = "{}," * 10_000_000 + "{}"
    files = {
        "items.json": f"[{values}]",
        "line.jsonl": f'{{"text": "x", "values": [{values}]}}\n' + '{"id": "after", "text": "It stands."}\n',
        "deep.json": "[" * 1_000_000,
        "deep.jsonl": '{"text": "x", "value": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001 + "\n",
        "good.md": "The mill stands.",
    }
    write_files(corpus, files)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    summary, _ = corpus.ingest()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 500_000  # kilobytes
    reasons = {Path(problem.source.partition(",")[0]).name: problem.reason for problem in summary.problems}
    assert sorted(reasons) == ["deep.json", "deep.jsonl", "items.json", "line.jsonl"]
    assert "more than 5,000,000 values at once" in reasons["items.json"]
    assert "more than 5,000,000 values at once" in reasons["line.jsonl"]
    assert summary.documents == 2


def test_a_line_without_end_is_read_in_parts(corpus, monkeypatch):
    monkeypatch.setattr(records, "MAX_FILE_BYTES", 1_000)
    write_files(corpus, {"a.jsonl": "x" * 5_000 + '\n{"text": "It stands."}\n', "b.md": "The mill stands."})
    summary, _ = corpus.ingest()
    assert (summary.documents, len(summary.problems)) == (2, 5)
    assert all("not valid JSON" in problem.reason for problem in summary.problems)


def test_of_a_files_many_problems_the_first_are_told_and_the_rest_counted(corpus):
    write_files(corpus, {"a.jsonl": "x\n" * 2_000 + '{"text": "It stands."}\n'})
    summary, _ = corpus.ingest()
    assert (summary.documents, len(summary.problems)) == (1, 101)
    assert str(summary.problems[-1]).endswith("a.jsonl: 1,900 more problems")
    assert sum(problem.count for problem in summary.problems) == 2_000
    with pytest.warns(UserWarning, match=r"^left out 2,000 items: .*; and 1,995 more: run_ingest returns up to 100"):
        ingest(corpus.source, corpus.index, embedder=corpus.embedder).close()


def test_a_title_without_end_is_cut(corpus):
    corpus.ingest({"a.md": f"# {fill('Mill ')}\n\nIt stands."})
    with corpus.open() as index:
        assert 990 < len(index.document("a.md").title) <= 1_000


# --- nothing is lost, and the same again embeds nothing ---


@in_every_backend
def test_every_text_comes_back(corpus):
    summary, embedded = corpus.ingest(TEXTS, chunk_tokens=200)
    assert (summary.documents, summary.written, summary.removed, summary.problems) == (5, 5, 0, ())
    assert summary.embedded == len(embedded) == len(set(embedded))
    with corpus.open() as index:
        assert texts_of(index) == TEXTS
        assert summary.chunks == index.info().chunks
        assert all(chunk.tokens <= 200 for chunk in chunks_of(index).values())
    assert_consistent(corpus.index)
    again, embedded = corpus.ingest()
    assert (again.documents, again.written, again.embedded, embedded) == (5, 0, 0, [])


@in_every_backend
def test_equal_sentences_are_embedded_once_and_all_counted(corpus):
    song = {"song": "The mill turns. The gull cries. The mill turns.", "copy": "The mill turns."}
    summary, embedded = corpus.ingest(song)
    assert sorted(embedded) == ["The gull cries.", "The mill turns."]
    assert summary.embedded == summary.sentences == 4
    assert_consistent(corpus.index)


# --- what has changed ---


@in_every_backend
def test_only_new_sentences_of_a_changed_document_are_embedded(corpus):
    corpus.ingest(TEXTS)
    summary, embedded = corpus.ingest(TEXTS | {"gull": "A gull is a bird. It eats anything. It cries."})
    assert (summary.embedded, embedded) == (2, ["It eats anything.", "It cries."])
    with corpus.open() as index:
        assert index.keyword_search(["eats fish"]).total == 0
        assert index.keyword_search(["eats anything"]).total == 1
    assert_consistent(corpus.index)


@in_every_backend
def test_other_metadata_title_chunk_size_or_order_embed_nothing(corpus):
    records = [{"id": name, "text": text} for name, text in TEXTS.items()]
    corpus.ingest(records)
    records[0] = {**records[0], "year": 2, "title": "The"}
    summary, embedded = corpus.ingest(records[::-1])
    assert (summary.written, embedded) == (1, [])
    summary, embedded = corpus.ingest(chunk_tokens=100)
    assert (summary.written, embedded) == (5, [])
    with corpus.open() as index:
        assert index.document(records[0]["id"]).metadata == {"year": 2}
        assert index.info().chunk_tokens == 100
        assert all(chunk.tokens <= 100 for chunk in chunks_of(index).values())
        assert texts_of(index) == TEXTS
    assert_consistent(corpus.index)


@in_every_backend
def test_names_of_files_are_found_whatever_the_case_of_their_letters(corpus):
    corpus.write({"Чайка – Élan.txt": "A bird."})
    corpus.ingest()
    with corpus.open() as index:
        for view in (index, index.limited_to(Scope(documents=["*"]))):
            for name in ("чайка", "ЧАЙКА", "élan", "Élan чайка"):
                assert view.find_documents(name) == ["Чайка – Élan.txt"]


@in_every_backend
def test_a_file_that_was_moved_or_renamed_keeps_its_document_and_is_not_embedded_again(corpus):
    corpus.write({"gull.txt": TEXTS["gull"], "notes/tern.md": TEXTS["notes/tern.md"], "twin.txt": TEXTS["gull"]})
    (corpus.source / "lines.jsonl").write_text('{"text": "One ship."}\n{"text": "Two ships."}\n')
    corpus.ingest()
    moves = {"gull.txt": "birds/sea_gull.txt", "notes/tern.md": "flyer.md", "lines.jsonl": "birds/lines.jsonl"}
    (corpus.source / "birds").mkdir()
    for old, new in moves.items():
        (corpus.source / old).rename(corpus.source / new)
    summary, embedded = corpus.ingest(prune=True)
    assert (embedded, summary.written, summary.removed, summary.documents) == ([], 0, 0, 5)
    ids = {"gull.txt": "birds/sea_gull.txt", "notes/tern.md": "flyer.md", "twin.txt": "twin.txt"}
    ids |= dict.fromkeys(("lines.jsonl#1", "lines.jsonl#2"), "birds/lines.jsonl")
    with corpus.open() as index:
        assert {d.id: d.source for d in index.documents()} == {i: str(corpus.source / ids[i]) for i in ids}
        assert index.find_documents("sea gull") == ["gull.txt"]
        assert index.find_documents("flyer") == ["notes/tern.md"]
    (corpus.source / "gull.txt").write_text("Another gull.")  # in the place that the other one has left
    for written in (1, 0):
        assert corpus.ingest()[0].written == written
    with corpus.open() as index:
        assert texts_of(index)["gull.txt~2"] == "Another gull."
    assert_consistent(corpus.index)


@in_every_backend
def test_a_file_without_an_extension_keeps_its_id_when_its_folder_has_a_number_sign_and_is_renamed(corpus):
    mail = "From a@x.org Mon Jan  3 10:00:00 2022\nMessage-ID: <{}>\nFrom: a@x.org\nSubject: Oil\n\nIt costs {}.\n\n"
    mails = "".join(mail.format(own_id, price) for price, own_id in enumerate(("a/1@x.org", "2", "2", "3@x.org"), 5))
    (corpus.source / "C#").mkdir(parents=True)
    (corpus.source / "C#/README").write_text("How to build it.")
    (corpus.source / "C#/inbox").write_text(mails)
    corpus.ingest()
    ids = {"C#/README", "C#/inbox#a/1@x.org", "C#/inbox#2", "C#/inbox#2~3", "C#/inbox#3@x.org"}
    (corpus.source / "C#").rename(corpus.source / "CSharp")
    for _ in range(2):
        summary, embedded = corpus.ingest(prune=True)
        assert (summary.written, summary.removed, embedded) == (0, 0, [])
        with corpus.open() as index:
            assert {document.id for document in index.documents()} == ids
            paths = {listed.id: listed.path for listed in index.list_documents().documents}
            assert paths == {name: name.replace("C#", "CSharp") for name in ids}


@in_every_backend
def test_a_moved_file_is_found_where_it_is_now_and_scopes_keep_its_id(corpus):
    corpus.ingest({"old/gull.txt": TEXTS["gull"], "tern.md": TEXTS["notes/tern.md"], "ship.txt": "A ship."})
    (corpus.source / "new/far").mkdir(parents=True)
    (corpus.source / "old/gull.txt").rename(corpus.source / "new/mew.txt")
    (corpus.source / "tern.md").rename(corpus.source / "new/far/tern.md")
    corpus.ingest()
    with corpus.open() as index:
        assert {listed.id: listed.path for listed in index.list_documents().documents} == {
            "old/gull.txt": "new/mew.txt",
            "tern.md": "new/far/tern.md",
            "ship.txt": "ship.txt",
        }
        for name in ("new", "new/", "NEW txt", "new/mew.txt", "mew.txt", "old/gull.txt", "new gull"):
            assert "old/gull.txt" in index.find_meant(name), name
        assert index.find_meant("far/tern.md") == ["tern.md"]
        for keyword in ("mew.txt", "new/mew.txt", "gull.txt"):
            hits = index.keyword_search(keyword, ranking="bm25").hits
            assert [hit.document_id for hit in hits] == ["old/gull.txt"], keyword
        assert index.find_meant("nowhere") == []
        assert run_shell(index, "ls -R").text.split() == ["new/far/tern.md", "new/mew.txt", "ship.txt"]
        assert run_shell(index, "rg bird new/*.txt").text == "[old/gull.txt:0] A gull is a bird."
        assert index.overview() == "3 documents: new/far/tern.md, new/mew.txt, ship.txt"
        for pattern, documents in (("new/*", 0), ("old/*", 1)):
            assert index.limited_to(Scope(documents=[pattern])).info().documents == documents
    (corpus.source / "new/mew.txt").rename(corpus.source / "old/gull.txt")
    corpus.ingest()
    with corpus.open() as index:
        assert index.list_documents(within="old").documents[-1].path == "old/gull.txt"


@in_every_backend
def test_a_file_of_many_documents_may_be_moved_and_renamed(corpus):
    mail = "From a@b Mon Jan  1 00:00:00 2024\nFrom: Ann <a@b>\nSubject: Bell\nMessage-ID: <{}@b>\n\nIt rings {}.\n\n"
    chat = {"messages": [{"role": "user", "content": "Who rings?"}, {"role": "assistant", "content": "Ann."}]}
    files = {"in.mbox": mail.format("x/1", "once") + mail.format("2", "twice"), "talk.json": json.dumps(chat)}
    files |= {"a.jsonl": '{"text": "One ship."}\n{"text": "Two ships."}\n', "b.jsonl": '{"id": "b", "text": "Own."}\n'}
    corpus.source.mkdir()
    for name, text in files.items():
        (corpus.source / name).write_text(text)
    corpus.ingest()
    moves = {"in.mbox": "post/all.mbox", "talk.json": "talks/1.json", "a.jsonl": "c.jsonl", "b.jsonl": "post/d.jsonl"}
    for round_trip in (moves, {new: old for old, new in moves.items()}):
        for old, new in round_trip.items():
            (corpus.source / new).parent.mkdir(exist_ok=True)
            (corpus.source / old).rename(corpus.source / new)
        for _ in range(2):
            summary, embedded = corpus.ingest(prune=True)
            assert (embedded, summary.written, summary.removed, summary.documents) == ([], 0, 0, 6)
        ids = {"in.mbox#x/1@b": "in.mbox", "in.mbox#2@b": "in.mbox", "talk.json#1": "talk.json", "b": "b.jsonl"}
        ids |= {"a.jsonl#1": "a.jsonl", "a.jsonl#2": "a.jsonl"}
        with corpus.open() as index:
            sources = {document.id: document.source for document in index.documents()}
        now = {name: round_trip.get(name, name) for name in moves}
        assert sources == {document_id: str(corpus.source / now[name]) for document_id, name in ids.items()}
    grown = (corpus.source / "in.mbox").rename(corpus.source / "post/in.mbox")
    grown.write_text(grown.read_text() + mail.format("3", "thrice"))
    assert corpus.ingest(prune=True)[0].written == 1
    with corpus.open() as index:
        assert index.find_meant("post/in.mbox#3@b") == ["in.mbox#3@b"]


@in_every_backend
def test_a_web_page_that_left_its_folder_is_the_same_document_though_its_menu_is_read_now(corpus):
    menu = "<ul><li><a href=x>Mills of old</a><li><a href=y>Ships of old</a></ul>"
    pages = {f"site/{n}.html": f"<title>P{n} - Site</title>{menu}<h1>P{n}</h1><p>Mill {n} stands." for n in range(7)}
    (corpus.source / "site").mkdir(parents=True)
    for name, html in pages.items():
        (corpus.source / name).write_text(html)
    corpus.ingest()
    (corpus.source / "site/3.html").rename(corpus.source / "three.html")
    (corpus.source / "site/4.html").rename(corpus.source / "four.html")
    planned = preview([str(corpus.source)], str(corpus.index), prune=True)
    assert Counter(document.change for document in planned.documents) == {"unchanged": 5, "changed": 2}
    assert planned.removed_ids == ()
    summary, _ = corpus.ingest(prune=True)
    assert (summary.written, summary.removed, summary.documents) == (2, 0, 7)
    with corpus.open() as index:
        assert {document.id for document in index.documents()} == set(pages)
        assert "Mills of old" in texts_of(index)["site/3.html"]
    assert corpus.ingest()[0].written == 0
    assert_consistent(corpus.index)


def test_an_index_from_before_files_were_hashed_is_not_written_again(corpus):
    corpus.ingest({"gull.txt": TEXTS["gull"]})
    with closing(sqlite3.connect(corpus.index / "index.sqlite3")) as database, database:
        database.execute("UPDATE documents SET fingerprint = substr(fingerprint, 1, 64)")
    assert corpus.ingest()[0].written == 0


# --- pruning ---


@in_every_backend
def test_prune_removes_what_is_gone_and_nothing_goes_without_it(corpus):
    corpus.ingest(TEXTS)
    fewer = {name: TEXTS[name] for name in ("ship", "long", "notes/tern.md")}
    assert corpus.ingest(fewer)[0].removed == 0
    summary, embedded = corpus.ingest(prune=True)
    assert (summary.removed, embedded) == (2, [])
    with corpus.open() as index:
        assert texts_of(index) == fewer
        assert index.keyword_search(["gull", "北京"]).total == 0
    assert_consistent(corpus.index)


def test_prune_keeps_documents_of_what_cannot_be_read(corpus, monkeypatch):
    corpus.ingest(
        {"a.md": "One.", "b.md": "Two.", "closed/c.md": "Three.", "gone.md": "Four.", "d": "Five.", "e": "Six."}
    )
    (corpus.source / "a.md").write_text(" ")
    (corpus.source / "gone.md").unlink()
    (corpus.source / "corpus.jsonl").write_text('{"id": "d", "text": "Five."}\n{"id": "e", "te')
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    summary, _ = corpus.ingest(prune=True)
    assert (summary.removed, len(summary.problems)) == (1, 3)
    with corpus.open() as index:
        assert sorted(texts_of(index)) == ["a.md", "b.md", "closed/c.md", "d", "e"]


# --- ready chunks ---


@in_every_backend
def test_ready_chunks_are_taken_over_with_their_ids_and_one_that_is_taken_is_a_problem(corpus):
    for folder, chunks in (("a", ["7: One ship. Two\nships.", "x:Three: four.", "9:# Heading"]), ("b", ["7:Four."])):
        (corpus.source / folder).mkdir(parents=True)
        (corpus.source / folder / "chunks.json").write_text(json.dumps(chunks))
    summary, _ = corpus.ingest(chunk_tokens=50)
    (problem,) = summary.problems
    assert problem.source.endswith("b/chunks.json")
    assert problem.reason == "its chunk id '7' is already used by another document"
    assert (summary.read, summary.written, summary.absent) == (1, 1, 0)
    with corpus.open() as index:
        texts = {i: c.text for i, c in chunks_of(index).items()}
        assert texts == {"7": " One ship. Two\nships.", "x": "Three: four.", "9": "# Heading"}
        assert [c.id for c in index.read("x", adjacent=1).chunks] == ["7", "x", "9"]
    assert corpus.ingest(chunk_tokens=50)[0].written == 0
    assert_consistent(corpus.index)


# --- interruptions ---

MANY = {f"d{n:03}": f"This is document {n}. It has {n} pages. It is old, like the {n}th ship." for n in range(200)}


@in_every_backend
def test_what_a_failed_run_has_stored_is_kept_and_a_run_on_another_folder_says_that_it_publishes_it(corpus, tmp_path):
    corpus.ingest({"gone": "Gone."})
    failing = HashEmbeddings(fail_after=300)
    embedder = Embedder("HashEmbeddings:hash-64", lambda: failing, batch=20)
    corpus.write(MANY)
    with pytest.raises(ModelError, match="went away"):
        run_ingest(corpus.source, corpus.index, embedder=embedder)
    with corpus.open() as index:  # readers see the index as it was, whole
        assert [document.id for document in index.documents()] == ["gone"]
    other = Corpus(tmp_path / "other", corpus.index)
    with warnings.catch_warnings(action="always", record=True) as caught:
        summary, _ = other.ingest({"gull": TEXTS["gull"]})
    stored = summary.absent - 1
    assert stored > 50
    said = f"{stored} documents of a run that did not finish, such as 'd000', are"
    # In a database, runs that are at work may have stored them.
    assert [str(warning.message).startswith(said) for warning in caught] == [True] * isinstance(corpus.index, Path)
    with warnings.catch_warnings(action="error"):
        summary, embedded = corpus.ingest(prune=True)
        assert (summary.problems, summary.documents, len(embedded)) == ((), 201, 3 * (200 - stored))
    assert_consistent(corpus.index)


def test_embedding_runs_ahead_of_storing_by_a_few_calls_and_never_by_the_whole_corpus(corpus):
    ahead, stored = [], [0]

    class Counting(HashEmbeddings):
        def embed_documents(self, texts):
            ahead.append(len(self.embedded) + len(texts) - 3 * stored[-1])
            return super().embed_documents(texts)

    embedder = Embedder("HashEmbeddings:hash-64", Counting, batch=30, concurrency=3)
    run_ingest(corpus.write(MANY), corpus.index, embedder=embedder, progress=lambda now: stored.append(now.documents))
    assert 30 < max(ahead) <= 300


# --- what the user hears of it ---


FOREIGN = {
    "zh": TEXTS["china"],
    "ru": "Маяк стоит у моря. He burns oil.",
    "de": "Der Leuchtturm wurde auf der Insel gebaut. Er ist nicht hoch.",
    "es": "El faro se construyó en la isla. Es muy alto y está en ruinas.",
}


def test_documents_in_languages_that_the_embedder_does_not_know_are_counted_and_another_is_named(
    corpus, arag, monkeypatch
):
    monkeypatch.setattr("arag.models.onnx.load_onnx", lambda *_: corpus.embedder)
    english = {f"en{n}": TEXTS["gull"] for n in range(19)}
    english["names"] = "Rua da Prata de Baixo e dos Santos is a street in Lisbon."
    english["table"] = "| id | code |\n| --- | --- |\n| 12 | X-4 |"
    corpus.write(english | FOREIGN)
    place = corpus.index
    said = "4 of the first 25 documents are not in English.*all-MiniLM-L6-v2: .*intfloat/multilingual-e5-small"
    with pytest.warns(UserWarning, match=said):
        assert run_ingest(corpus.source, place, embedder="all-MiniLM-L6-v2").other_languages == 4
    with open_index(place) as index:
        assert index.info().other_languages == 4
    code, printed, _ = arag("ingest", corpus.source, "-i", place)
    assert (code, "4 documents not in English" in printed) == (0, True)

    corpus.write(english | {"fr": "L’été est à la mer, et le phare est dans la brume."})  # 1 of 22
    with warnings.catch_warnings(action="error"):
        assert run_ingest(corpus.source, place).other_languages == 1


@pytest.mark.parametrize("embedder", ["multilingual-e5-small", HashEmbeddings()])
def test_no_other_embedder_is_said_not_to_know_a_language(corpus, monkeypatch, arag, embedder):
    monkeypatch.setattr("arag.models.onnx.load_onnx", lambda *_: corpus.embedder)
    corpus.write(FOREIGN)
    with warnings.catch_warnings(action="error"):
        assert run_ingest(corpus.source, corpus.index, embedder=embedder).other_languages == 0
    with open_index(corpus.index, embedder=embedder) as index:
        assert index.info().other_languages == 0
