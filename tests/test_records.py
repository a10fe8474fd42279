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


def read(path):
    items = list(SourceReader(path, Readers()).read())
    return [i for i in items if isinstance(i, Document)], [i for i in items if isinstance(i, Problem)]


def read_one(path, data):
    write(path, data)
    (document,), problems = read(path)
    assert problems == []
    return document


def write(path, data):
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8", newline="")


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


class TestRecords:
    def test_jsonl(self, tmp_path):
        path = tmp_path / "notes.jsonl"
        records = [
            {"id": "a", "title": "Ann", "text": "She left.", "year": 1990, "more": {"tags": ["x", None]}},
            {"text": "Second."},
        ]
        write(path, lines(*records))
        documents, problems = read(path)
        assert problems == []
        first, second = documents
        assert (first.id, first.title, first.text) == ("a", "Ann", "Ann\n\nShe left.")
        assert first.metadata == {"year": 1990, "more": {"tags": ["x", None]}}
        assert (first.source, first.file) == (f"{path}, line 1", str(path))
        assert (second.id, second.has_own_id) == ("notes.jsonl#2", False)

    @pytest.mark.parametrize(
        ("title", "text", "expected"),
        [
            ("Ann", "Ann left.", "Ann left."),
            ("Ann", "\nAnn: a life", "\nAnn: a life"),
            ("Ann", "Anna left.", "Ann\n\nAnna left."),
            ("  Ann\nLee ", "left", "Ann Lee\n\nleft"),
            (1.5, "x", "1.5\n\nx"),
            ("", "x\r\ny\rz", "x\ny\nz"),
            (None, " x ", " x "),
        ],
    )
    def test_title_and_text(self, tmp_path, title, text, expected):
        path = tmp_path / "a.json"
        document = read_one(path, {"title": title, "text": text})
        assert document.text == expected

    def test_bad_lines_lose_only_themselves(self, tmp_path):
        path = tmp_path / "a.jsonl"
        data = [
            b'{"text": "one"}',
            b'{"text": "bro',
            b"",
            b"  \r",
            b'{"text": "\xff"}',
            b"[1]",
            b'"string"',
            b'{"title": "x"}',
            b'{"text": 5}',
            b'{"text": null}',
            b'{"text": "\\n "}',
            b'{"text": "x", "title": ["x"]}',
            b'{"text": "x", "title": true}',
            b'{"text": "x"} {"text": "y"}',
            b'{"text": "x", "n": ' + b"9" * 5_000 + b"}",
            b'{"text": "x", "n": ' + b"[" * 100_000 + b"}",
            b'{"text": "last"}\r',
        ]
        write(path, b"\n".join(data))
        documents, problems = read(path)
        assert [(d.id, d.text, d.source) for d in documents] == [
            ("a.jsonl#1", "one", f"{path}, line 1"),
            ("a.jsonl#15", "last", f"{path}, line 17"),
        ]
        reasons = {p.source.rpartition(" ")[2]: p.reason for p in problems}
        assert [p.source.rpartition(" ")[0] for p in problems] == [f"{path}, line"] * 13
        assert reasons["2"] == "not valid JSON: Unterminated string starting at (column 10)"
        assert reasons["5"] == "not valid UTF-8 (byte 0xff at offset 10); convert it to UTF-8"
        assert reasons["6"] == "the record is [1]; it must be an object"
        assert reasons["7"] == 'the record is "string"; it must be an object'
        assert reasons["8"] == reasons["10"] == 'the record has no "text"'
        assert reasons["9"] == '"text" is 5; it must be a string'
        assert reasons["11"] == "empty document"
        assert reasons["12"] == '"title" is ["x"]; it must be a string or a number'
        assert reasons["13"].startswith('"title" is true; it must be')
        assert reasons["14"] == "not valid JSON: Extra data (column 15)"
        assert "4300 digits" in reasons["15"]
        assert reasons["16"].startswith("not usable JSON: ")

    def test_bad_characters(self, tmp_path):
        path = tmp_path / "a.ndjson"
        write(path, r'{"id": "i\ud800", "text": "a\udc00\u0000b \ud83c\udf89", "k\ud800": ["\ud800\u0000"]}')
        (document,) = read(path)[0]
        assert (document.id, document.text) == ("i\ufffd", "a\ufffdb 🎉")
        assert document.metadata == {"k\ufffd": ["\ufffd"]}

    def test_nan_is_null(self, tmp_path):
        document = read_one(tmp_path / "a.json", '{"text": "x", "a": NaN, "b": [-Infinity, 1e999], "title": NaN}')
        assert (document.title, document.metadata) == ("", {"a": None, "b": [None, None]})

    @pytest.mark.parametrize("wrap", [None, "documents", "records", "data"])
    def test_json_lists(self, tmp_path, wrap):
        path = tmp_path / "notes.json"
        records = [{"id": 7, "text": "One."}, {"title": "x"}, "text", {"text": "Two."}]
        write(path, {"version": 1, wrap: records} if wrap else records)
        documents, problems = read(path)
        assert [(d.id, d.text, d.source) for d in documents] == [
            ("7", "One.", f"{path}, item 1"),
            ("notes.json#4", "Two.", f"{path}, item 4"),
        ]
        assert [p.source for p in problems] == [f"{path}, item 2", f"{path}, item 3"]

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            ('[\n {"text": }]', "not valid JSON: Expecting value (line 2, column 11)"),
            ('{"data": []}', "empty list"),
            ('{"data": 1}', "neither a"),
            ("null", "the top level is null"),
            ("[" * 150 + "]" * 150, "nested too deeply"),
        ],
    )
    def test_bad_json(self, tmp_path, data, reason):
        write(tmp_path / "a.json", data)
        (), (problem,) = read(tmp_path / "a.json")
        assert problem.source == str(tmp_path / "a.json")
        assert reason in problem.reason


class TestChunks:
    @pytest.mark.parametrize("name", ["chunks.json", "other.json"])
    def test_strings(self, tmp_path, name):
        document = read_one(tmp_path / name, ["0:First: a\r\n", "b-1: second ", "2:third"])
        assert (document.id, document.text) == (name, "First: a\r\n second third")
        assert document.ready_chunks == (("0", "First: a\r\n"), ("b-1", " second "), ("2", "third"))

    def test_objects(self, tmp_path):
        objects = [{"id": 0, "text": "a"}, {"id": "1", "text": "b", "title": None}]
        document = read_one(tmp_path / "chunks.json", objects)
        assert document.ready_chunks == (("0", "a"), ("1", "b"))

    @pytest.mark.parametrize(
        ("name", "objects"),
        [
            ("other.json", [{"id": "0", "text": "a"}, {"id": "1", "text": "b"}]),
            ("chunks.json", [{"id": "0", "text": "a"}, {"id": "1", "text": "b", "title": "t"}]),
            ("chunks.json", [{"text": "a"}, {"text": "b"}]),
        ],
    )
    def test_records(self, tmp_path, name, objects):
        write(tmp_path / name, objects)
        documents, problems = read(tmp_path)
        assert [d.ready_chunks for d in documents] == [None, None]
        assert problems == []

    def test_bad_items(self, tmp_path):
        path = tmp_path / "chunks.json"
        items = ["0:a", "no colon", ":no id", " :no id", "0:again", "1: \n", 5, "x\ny:b", {"id": "2"}]
        items += [{"text": "c"}, {"id": "3", "text": 3}, {"id": True, "text": "t"}, {"id": "4", "text": "d"}]
        write(path, items)
        documents, problems = read(path)
        assert [d.ready_chunks for d in documents] == [(("0", "a"), ("4", "d"))]
        assert [p.source for p in problems] == [f"{path}, item {n}" for n in range(2, 13)]
        reasons = [p.reason for p in problems]
        assert reasons[0] == 'the chunk is "no colon"; it must be a string "id:text"'
        assert reasons[1] == "chunk id '' is empty or has control characters in it"
        assert reasons[3] == "duplicate chunk id '0'"
        assert reasons[4] == "empty chunk"
        assert reasons[8] == '"id" is null; it must be a string or a number'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["id", "title", "text", "data"]) | st.text(), inner)
    ),
    max_leaves=12,
)
json_like = json_values.map(lambda value: json.dumps(value).encode())
records = st.lists(st.fixed_dictionaries({"text": st.text(), "id": json_values}), max_size=3)
file_contents = (
    st.binary(max_size=200)
    | json_like
    | st.lists(json_like | st.binary(max_size=30), max_size=5).map(b"\n".join)
    | records.map(lambda value: json.dumps(value).encode())
    | st.lists(st.text() | json_values, max_size=4).map(lambda value: json.dumps(value).encode())
)


@given(data=file_contents, name=st.sampled_from(["a.jsonl", "a.json", "chunks.json"]))
def test_malformed_records_never_raise(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data)
    documents, problems = read(path)
    assert documents or problems
    for document in documents:
        assert document.text.strip()
        assert document.id == document.id.strip() != ""
        json.dumps([document.id, document.title, document.text, document.metadata], ensure_ascii=False).encode()
        if document.ready_chunks:
            assert document.text == "".join(text for _, text in document.ready_chunks)
    for problem in problems:
        assert problem.reason
        assert problem.source.startswith(str(path))
        str(problem).encode()


@pytest.mark.parametrize("several", [False, True])
def test_the_corpora_of_graphrag_bench(tmp_path, several):
    corpus = {"corpus_name": "Medical", "context": "Basal cell carcinoma is common. It grows slowly.", "source": "NCCN"}
    file = tmp_path / "medical.json"
    file.write_text(json.dumps([corpus] if several else corpus))
    (document,), _ = read(file)
    assert (document.id, document.text) == ("Medical", corpus["context"])
    assert document.metadata == {"source": "NCCN"}


def test_a_json_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(10_000_000_000)
    (), (problem,) = read(tmp_path)
    assert problem.reason == "more than 200 MB; convert it to JSON Lines, which may have any size"


def test_memory_does_not_grow_with_the_records(tmp_path):
    path = tmp_path / "big.jsonl"
    path.write_text(lines(*({"id": i, "text": "x" * 10_000} for i in range(2_000))))
    tracemalloc.start()
    try:
        assert sum(1 for _ in SourceReader(path, Readers()).read()) == 2_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000
