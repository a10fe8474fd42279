"""Record files, JSON and JSON Lines, and the chunk files of the paper's authors."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.ingest.documents import Document, Problem
from arag.ingest.formats import Readers
from arag.ingest.sources import SourceReader


def read(path, data=None):
    """Write a file and read it: return its documents and problems."""
    if data is not None:
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    items = list(SourceReader(path, Readers()).read())
    return [i for i in items if isinstance(i, Document)], [i for i in items if isinstance(i, Problem)]


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def test_each_line_is_a_document_with_its_metadata(tmp_path):
    path = tmp_path / "notes.jsonl"
    more = {"year": 1990, "more": {"tags": ["x", None]}}
    (first, second), problems = read(
        path, lines({"id": "a", "title": "Ann", "text": "She left.", **more}, {"text": "Second."})
    )
    assert problems == []
    assert (first.id, first.title, first.text, first.metadata) == ("a", "Ann", "Ann\n\nShe left.", more)
    assert (first.source, first.file) == (f"{path}, line 1", str(path))
    assert (second.id, second.has_own_id) == ("notes.jsonl#2", False)


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Ann", "\nAnn: a life", "\nAnn: a life"),
        ("Ann", "Anna left.", "Ann\n\nAnna left."),
        ("  Ann\nLee ", "left", "Ann Lee\n\nleft"),
        (1.5, "x", "1.5\n\nx"),
        ("", "x\r\ny\rz", "x\ny\nz"),
    ],
)
def test_a_text_begins_with_its_title(tmp_path, title, text, expected):
    (document,), _ = read(tmp_path / "a.json", {"title": title, "text": text})
    assert document.text == expected


def test_bad_lines_lose_only_themselves(tmp_path):
    path = tmp_path / "a.jsonl"
    bad = {
        b'{"text": "bro': "not valid JSON: Unterminated string",
        b'{"text": "\xff"}': "not valid UTF-8 (byte 0xff at offset 10)",
        b'"string"': 'the record is "string"; it must be an object',
        b'{"text": null}': 'the record has no "text"',
        b'{"text": 5}': '"text" is 5; it must be a string',
        b'{"text": "\\n "}': "empty document",
        b'{"text": "x", "title": true}': '"title" is true; it must be a string or a number',
        b'{"text": "x"} {"text": "y"}': "not valid JSON: Extra data",
        b'{"text": "x", "n": ' + b"9" * 5_000 + b"}": "4300 digits",
        b'{"text": "x", "n": ' + b"[" * 100_000 + b"}": "not valid JSON",
        b'{"text": "x", "n": ' + b"[" * 300 + b"]" * 300 + b"}": "JSON cannot hold it",
    }
    documents, problems = read(path, b"\n".join([b'{"text": "one"}', *bad, b"", b'{"text": "last"}\r']))
    assert [(d.id, d.text, d.source) for d in documents] == [
        ("a.jsonl#1", "one", f"{path}, line 1"),
        ("a.jsonl#13", "last", f"{path}, line 14"),
    ]
    assert [p.source for p in problems] == [f"{path}, line {n}" for n in range(2, 13)]
    for problem, reason in zip(problems, bad.values(), strict=True):
        assert reason in problem.reason


def test_what_cannot_be_stored_is_replaced(tmp_path):
    data = rb'{"id": "i\ud800", "text": "a\udc00\u0000b \ud83c\udf89", "k": ["\ud800\u0000", NaN, -Infinity, 1e999]}'
    (document,), _ = read(tmp_path / "a.ndjson", data)
    assert (document.id, document.text) == ("i\ufffd", "a\ufffdb 🎉")
    assert document.metadata == {"k": ["\ufffd", None, None, None]}


def test_a_list_has_a_record_in_each_item(tmp_path):
    path = tmp_path / "notes.json"
    documents, problems = read(path, [{"id": 7, "text": "One."}, {"title": "x"}, {"id": "a", "text": "Two."}])
    assert [(d.id, d.text, d.source) for d in documents] == [
        ("7", "One.", f"{path}, item 1"),
        ("a", "Two.", f"{path}, item 3"),
    ]
    assert [p.source for p in problems] == [f"{path}, item 2"]


@pytest.mark.parametrize("data", [b'[\n {"text": }]', b"[]", b"null", b'{"data": 1}'])
def test_a_file_without_records_is_a_problem(tmp_path, data):
    (), (problem,) = read(tmp_path / "a.json", data)
    assert problem.source == str(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("other.json", ["0:First: a\r\n", "b-1: second ", "2:third"]),
        (
            "chunks.json",
            [{"id": 0, "text": "First: a\r\n"}, {"id": "b-1", "text": " second "}, {"id": "2", "text": "third"}],
        ),
    ],
)
def test_ready_chunks_are_one_document(tmp_path, name, items):
    (document,), _ = read(tmp_path / name, items)
    assert (document.id, document.text) == (name, "First: a\r\n second third")
    assert document.ready_chunks == (("0", "First: a\r\n"), ("b-1", " second "), ("2", "third"))


@pytest.mark.parametrize(
    ("name", "record"), [("other.json", {"id": "0", "text": "a"}), ("chunks.json", {"text": "a", "title": "t"})]
)
def test_records_are_no_chunks(tmp_path, name, record):
    (document,), _ = read(tmp_path / name, [record])
    assert document.ready_chunks is None


def test_bad_chunks_lose_only_themselves(tmp_path):
    path = tmp_path / "chunks.json"
    items = ["0:a", "no colon", " :no id", "0:again", "1: \n", 5, "x\ny:b", {"id": "2"}, {"id": "4", "text": "d"}]
    documents, problems = read(path, items)
    assert [d.ready_chunks for d in documents] == [(("0", "a"), ("4", "d"))]
    assert [p.source for p in problems] == [f"{path}, item {n}" for n in range(2, 9)]
    assert problems[2].reason == "duplicate chunk id '0'"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["id", "title", "text", "data"]) | st.text(), inner)
    ),
    max_leaves=12,
)
json_like = json_values.map(lambda value: json.dumps(value).encode())
file_contents = (
    st.binary(max_size=200)
    | st.lists(json_like | st.binary(max_size=30), max_size=5).map(b"\n".join)
    | st.lists(st.fixed_dictionaries({"text": st.text(), "id": json_values}), max_size=3).map(lines)
    | st.lists(st.text() | json_values, max_size=4).map(lambda value: json.dumps(value).encode())
)


@given(data=file_contents, name=st.sampled_from(["a.jsonl", "a.json", "chunks.json"]))
def test_malformed_records_never_raise(tmp_path, data, name):
    documents, problems = read(tmp_path / name, data)
    assert documents or problems
    for document in documents:
        assert document.text.strip()
        assert document.id == document.id.strip() != ""
        json.dumps([document.id, document.title, document.text, document.metadata], ensure_ascii=False).encode()
        if document.ready_chunks:
            assert document.text == "".join(text for _, text in document.ready_chunks)
    for problem in problems:
        assert problem.reason
        str(problem).encode()


@pytest.mark.parametrize("several", [False, True])
def test_the_corpora_of_graphrag_bench(tmp_path, several):
    corpus = {"corpus_name": "Medical", "context": "Basal cell carcinoma is common. It grows slowly.", "source": "NCCN"}
    (document,), _ = read(tmp_path / "medical.json", [corpus] if several else corpus)
    assert (document.id, document.text) == ("Medical", corpus["context"])
    assert document.metadata == {"source": "NCCN"}


def test_a_json_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(10_000_000_000)
    (), (problem,) = read(tmp_path / "big.json")
    assert problem.reason == "more than 200 MB; convert it to JSON Lines, which may have any size"


def test_memory_does_not_grow_with_the_records(tmp_path):
    path = tmp_path / "big.jsonl"
    path.write_bytes(lines(*({"id": i, "text": "x" * 10_000} for i in range(1_000))))
    tracemalloc.start()
    try:
        assert sum(1 for _ in SourceReader(path, Readers()).read()) == 1_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000
