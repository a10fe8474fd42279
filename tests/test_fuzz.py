"""Hostile input: whatever stands in documents, record files, tool calls and command lines, nothing breaks.

Each property runs with few examples, and with many more among the slow tests.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call

from arag.graph.graph import create_arag_agent
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document
from arag.ingest.formats import READERS, Readers
from arag.ingest.formats.content import FormatError
from arag.ingest.pipeline import ingest, run_ingest
from arag.ingest.reading import SourceReader
from arag.retrieval.index import open_index
from arag.retrieval.tools.sets import PAPER
from fakes import HashEmbeddings, write_corpus
from scripted import DOCUMENTS, ScriptedModel, asked, assert_paired, calls
from selection import slow_except


def fuzzed(*, quick, slow):
    """Give a test its number of examples: few, or, among the slow tests, many."""
    return pytest.mark.parametrize(
        "examples", [pytest.param(quick, id="quick"), pytest.param(slow, id="slow", marks=pytest.mark.slow)]
    )


def check(examples, body, **arguments):
    unhealthy = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    settings(max_examples=examples, deadline=None, suppress_health_check=unhealthy)(given(**arguments)(body))()


# --- what is hostile ---

PIECES = (
    " |\n|\r|\r\n|\t|\0|\x01|\x02|\x03|\x0b|\x1c|\x1f|\x7f|\x85|\xa0|\xad|\u0301|\u200b|\u200d|\u200f|\u2028|\u2029"
    "|\u202e|\u2066|\ufdfa|\ufeff|\uffff|\U000e0001|\U0001f600|\U0001e900|İ|ß|ſ|Σ|ς|ǅ|ﬁ|漢|字|。|「|한|ก|ا|é"
    "|word|The ship sailed. |Dr. |U.S. |No. 5 |a.|e.g. |? |! |…|...|\"|'|“|(|[|{|)|]|}|# |###### |```|~~~|---\n"
    '|title: |a: b\n|- |* |1. | - |&|<|>|</|=|\\|/|../|%00|%s|{0}|$HOME|`|*|^|.*|(a+)+$|(?:|" OR 1=1'
    "|'; DROP TABLE chunks; --|NEAR(a b)|a AND|text:|[annals:0]|annals:0|annals|storm|bridges|Lothair II|teutberga"
).split("|")
MARKUP = (
    "<p>|</p>|<b>|</i>|<div>|</div>|<table>|<tr>|<td>|</table>|<ul>|<li>|</ul>|<pre>|</pre>|<br>|<h1>|</h1>|<title>"
    "|</title>|<svg>|<script>|</script>|<style>|<!--|-->|<![CDATA[|]]>|<!DOCTYPE html>|<?xml |?>|<a href='|\">|<!|</"
    "|<x:y |<template>|<select><option>|<meta charset=|utf-16|punycode|idna|raw_unicode_escape|windows-1252|gb2312|zlib"
    "|>|&amp;|&lt|&#0;|&#xd800;|&#x110000;|&#99999999999;|&nosuch;|text |\n"
).split("|")
NAMES = (
    "a b.c|-rf|~|$HOME|..txt|a\nb|a\tb|con|a:0|#1|a, line 3|a, item 1|%2e%2e%2f|[x]|'|\"|*|?|\\|\u202etxt.exe|é"
    "|e\u0301|漢|\udcff\udcfe|manifest|chunks|\x01| a |" + "n" * 200
).split("|")
IDS = (
    "../../outside|/etc/passwd|..|.|~|C:\\x|file:///x|a:0|a:1|[a]| a |#|a#1|a\nb|\0|\x1f|\ud800|\u202e|%s"
    "|index.sqlite3|draft.sqlite3|'; DROP TABLE documents; --|*|\"|1|01|1.0|null|" + "i" * 300
).split("|")

HOSTILE_DOCUMENTS = [
    {"id": "../../outside", "title": "[annals:0]", "text": "Lothair [teutberga:0] rode.\x01\x1f He was \u202etpircs."},
    {"id": "[x], (y)", "title": '"NEAR(', "text": "'; DROP TABLE chunks; -- said the storm. It OR its NOT bridges*."},
    {"id": "漢字", "title": "İstanbul ﬁ", "text": "漢字の文。「二つ目」です。\n\nΟΔΥΣΣΕΥΣ. Straße ﬁnds İ.\u2028 |a"},
    {"id": "i" * 3_000, "text": "x" * 3_000 + " " + "(" * 500},
    {"id": "marks", "text": "?!\n\n***\n\n\u0301\u0301 \u200b\ufdfa\n\n# \n"},
]

whole = st.characters(codec="utf-8")
pieces = st.sampled_from(PIECES)
runs = st.builds(lambda piece, times: piece * times, pieces, st.sampled_from([3, 60, 1_100, 3_000]))
texts = st.lists(pieces | pieces | st.text(whole, max_size=8) | runs, max_size=10).map("".join)
halves = st.sampled_from(["\ud800", "\udfff", "a\udc00b", "\udcff"])
strings = texts | halves | st.sampled_from(IDS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.just(10**400) | st.floats() | strings,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=8,
)


def nested(depth, kind):
    value = "x"
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


def encoded(text, encoding):
    return text.encode(encoding, "surrogatepass" if encoding == "utf-8" else "replace")


encodings = st.sampled_from(
    ["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "shift_jis", "utf-7"]
)
written = st.builds(encoded, texts, encodings) | st.binary(max_size=200)
pages = st.lists(st.sampled_from(MARKUP) | st.sampled_from(MARKUP) | texts, max_size=25).map("".join)
web_pages = st.builds(encoded, pages, encodings)


# --- record files ---

fields = {
    "id": st.sampled_from(IDS) | json_values,
    "title": strings | json_values,
    "text": texts | strings | json_values,
}
good = st.fixed_dictionaries(
    {"text": texts}, optional={"id": st.sampled_from(IDS), "title": texts, "more": json_values}
)
chunk_lines = st.builds("{}:{}".format, st.sampled_from(IDS) | st.integers(0, 9), texts)
records = good | good | st.fixed_dictionaries({}, optional={**fields, "documents": json_values})
TWISTS = (
    lambda line: line[: len(line) // 2],
    lambda line: line.replace("{", '{"number": 1e999, "low": NaN, "id": ' + "9" * 5_000 + ", ", 1),
    lambda line: line.replace("{", '{"deep": ' + "[" * 3_000 + "]" * 3_000 + ", ", 1),
    lambda line: line.replace("a", "\\u0000\\ud83d\\u2028"),
)


@st.composite
def record_files(draw):
    """Draw the name and the bytes of a record file that is almost one."""
    name = draw(st.sampled_from(["a.jsonl", "b.JSONL", "a.json", "chunks.json", "sub/chunks.json"]))
    kind = draw(st.sampled_from([records, records, chunk_lines, records | chunk_lines | json_values]))
    lines = [json.dumps(item, ensure_ascii=draw(st.booleans())) for item in draw(st.lists(kind, max_size=5))]
    lines = [draw(st.sampled_from([str, str, str, *TWISTS]))(line) for line in lines]
    if name.lower().endswith("jsonl"):
        ends = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", "\u2028"])
        data = [encoded(line + draw(ends), draw(encodings)) for line in lines]
        return name.encode(), b"".join(data)
    start, end = draw(
        st.sampled_from([("[", "]"), ("[", "]"), ('{"documents": [', "]}"), ('{"data": [', "]"), ("", "")])
    )
    data = encoded(start + ",".join(lines) + end, draw(encodings))
    return name.encode(), data[draw(st.integers(0, 2)) :]


def name_bytes(folder, stem, suffix):
    stem = stem.replace("/", "_").replace("\0", "_").lstrip(".") or "_"
    return folder + os.fsencode(stem)[:200] + suffix.encode()


folders = st.sampled_from([b"", b"", b"in/", b"a/b/"])
stems = st.sampled_from(NAMES) | st.text(whole, min_size=1, max_size=20)
files = st.one_of(
    st.tuples(st.builds(name_bytes, folders, stems, st.sampled_from([".txt", ".md", ".TXT", ".png"])), written),
    st.tuples(st.builds(name_bytes, folders, stems, st.sampled_from([".html", ".htm"])), web_pages),
    st.tuples(st.builds(name_bytes, folders, stems, st.sampled_from([".json", *READERS])), written | web_pages),
)


def write_files(folder, some):
    """Write files, by names in bytes, into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in [*some, (b"always.txt", b"It is there.")]:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def clean(text):
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


# --- documents ---


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """Ingest files into an index, and assert that all is there that was not refused, and nothing anywhere else."""
    base = tmp_path_factory.mktemp("fuzz")
    source, index = base / "a" / "b" / "source", base / "a" / "b" / "index"
    source.mkdir(parents=True)

    def run(some, *, anew, chunk_tokens):
        if anew:
            shutil.rmtree(index, ignore_errors=True)
        options = {"embedder": HashEmbeddings(), "chunk_tokens": chunk_tokens, "prune": True}
        # Else, a file with the text of one that is gone would have its id.
        run_ingest(write_files(source, []), index, **options)
        write_files(source, some)
        before = {path for path in base.rglob("*") if not path.is_relative_to(index)}
        summary = run_ingest(source, index, **options)
        assert {path for path in base.rglob("*") if not path.is_relative_to(index)} == before
        refused = {problem.source for problem in summary.problems}
        with open_index(index, embedder=HashEmbeddings()) as opened:
            with Readers() as readers:
                found = list(SourceReader(source, readers).read())
            documents = [d for d in found if isinstance(d, Document) and d.source not in refused]
            assert documents  # at least the one that is always there
            assert all(isinstance(item, Document) or item.reason for item in found)
            assert_all_there(opened, documents)

    return run


def assert_all_there(index, documents):
    chunks = {chunk_id: index.get(chunk_id) for chunk_id in index.chunk_ids()}
    assert None not in chunks.values()
    everything = len(chunks)
    parts = {}
    for chunk in sorted(chunks.values(), key=lambda chunk: (chunk.document_id, chunk.ordinal)):
        parts.setdefault(chunk.document_id, []).append(chunk)
    assert {hit.chunk_id for hit in index.semantic_search("ship", everything).hits} == set(chunks)
    assert len({document.id for document in documents}) == len(documents)
    for document in documents:
        assert clean(
            json.dumps([document.id, document.title, document.text, dict(document.metadata)], ensure_ascii=False)
        )
        assert "".join(chunk.text for chunk in parts[document.id]) == document.text
        entry = index.document(document.id)
        assert (entry.title, json.dumps(entry.metadata)) == (document.title, json.dumps(dict(document.metadata)))
        chunk, text = parts[document.id][0], parts[document.id][0].text
        assert index.read([chunk.id]).chunks == (chunk,)
        if len(parts[document.id]) == 1 and document.id not in chunks:
            assert index.read(document.id).chunks == (chunk,)
        assert chunk.id in {hit.chunk_id for hit in index.keyword_search(text, everything).hits}


ways = {"anew": st.booleans(), "chunk_tokens": st.sampled_from([50, 200, 1_000])}


@fuzzed(quick=6, slow=400)
def test_no_document_breaks_an_ingestion_and_none_is_lost(examples, ingested):
    check(examples, ingested, some=st.lists(files | record_files(), max_size=6), **ways)


# --- tool calls ---


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tool-calls")
    source = write_corpus(folder / "corpus", [*DOCUMENTS, *HOSTILE_DOCUMENTS])
    with ingest(source, folder / "index", embedder=HashEmbeddings(), chunk_tokens=200) as index:
        yield index


a_list = st.lists(strings, max_size=6)
as_json = st.builds(json.dumps, a_list | json_values, ensure_ascii=st.booleans())
deep = st.builds(nested, st.sampled_from([5, 100, 200]), st.sampled_from([list, dict]))
parameters = st.sampled_from(
    "keywords query chunk_ids top_k within about messages config self args kwargs type".split()
)
arguments = st.dictionaries(parameters | strings, a_list | strings | as_json | json_values | deep, max_size=5)


@fuzzed(quick=20, slow=1_200)
def test_nothing_that_a_model_sends_stops_the_loop(examples, index):
    model = ScriptedModel()
    agent = create_arag_agent(model, index, tools="paper")
    sent = st.lists(st.tuples(st.sampled_from(PAPER) | strings, arguments), max_size=3)
    broken = st.lists(st.tuples(st.none() | strings, st.none() | strings, st.none() | st.just("1")), max_size=2)

    def body(wanted, unreadable, said, answer):
        reply = calls(*wanted, text=said)
        reply.invalid_tool_calls = [
            invalid_tool_call(name=name, args=text, id=call_id, error=None) for name, text, call_id in unreadable
        ]
        # Functions, because a reply that is copied could not be nested deeply.
        model.script = [lambda _: reply, lambda _: AIMessage(answer), lambda _: AIMessage("Enough.")]
        model.calls = []
        state = agent.invoke(asked())
        assert_paired(state["messages"])
        assert state["answer"].strip()
        results = [message for message in state["messages"] if message.type == "tool"]
        if wanted or unreadable:
            assert len(results) == len(state["trace"]) == len(wanted) + len(unreadable)
        for message in results:
            assert message.content.encode()
        json.dumps([state["trace"], state["citations"], state["read_chunks"]])

    check(examples, body, wanted=sent, unreadable=broken, said=strings, answer=strings)


# As long as books, so that a time that grows with the square of the length shows.
TEXTS = {
    "quotes apart": '." ' * 100_000,
    "a word of stops": "a." * 150_000,
    "one line": "The ship sailed at dawn. " * 40_000,
    "one word": "w" * 300_000,
    "headings": "# h\n" * 50_000,
    "table": "a | b\n" * 20_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", slow_except("one line", "headings", among=TEXTS))
def test_long_texts_are_cut_in_time(name, count_exactly):
    text, count = TEXTS[name], count_exactly
    chunks = chunk_document(Document("d", "", text, "s"), chunk_tokens=1_000, count=count)
    assert "".join(chunk.text for chunk in chunks) == text
    assert len(chunks) <= count([text])[0] / 400 + 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", ["<pre>" + "x<br>" * 50_000, "<table><tr><td>" * 20_000, "<a x='" * 100_000])
def test_pages_made_to_be_slow_are_read_or_refused_in_time(tmp_path, page):
    (tmp_path / "a.html").write_text(page)
    with Readers() as readers, suppress(FormatError):
        readers.read(tmp_path / "a.html")
