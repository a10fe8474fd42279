"""Record files, JSON and JSON Lines, and the chunk files of the paper's authors."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from arag.ingest.documents import Document, Problem
from arag.ingest.formats import Readers
from arag.ingest.reading import SourceReader
from arag.ingest.record_fields import FieldNames
from arag.ingest.sentences import split_sentences


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
        b'{"text": null}': 'the record has no "text"',
        b'{"text": "\\n "}': "empty document",
        b'{"text": "x", "title": true}': '"title" is true; it must be a string or a number',
        b'{"text": "x", "n": ' + b"9" * 5_000 + b"}": "4300 digits",
        b'{"text": "x", "n": ' + b"[" * 100_000 + b"}": "not valid JSON",
        b'{"text": "x", "n": ' + b"[" * 300 + b"]" * 300 + b"}": "JSON cannot hold it",
    }
    documents, problems = read(path, b"\n".join([b'{"text": "one"}', *bad, b"", b'{"text": "last"}\r']))
    assert [(d.id, d.text, d.source) for d in documents] == [
        ("a.jsonl#1", "one", f"{path}, line 1"),
        ("a.jsonl#10", "last", f"{path}, line 11"),
    ]
    assert [p.source for p in problems] == [f"{path}, line {n}" for n in range(2, 10)]
    for problem, reason in zip(problems, bad.values(), strict=True):
        assert reason in problem.reason


def test_what_cannot_be_stored_is_replaced(tmp_path):
    data = rb'{"id": "i\ud800", "text": "a\udc00\u0000b \ud83c\udf89", "k": ["\ud800\u0000", NaN, -Infinity, 1e999]}'
    (document,), _ = read(tmp_path / "a.ndjson", data)
    assert (document.id, document.text) == ("i\ufffd", "a\ufffdb 🎉")
    assert document.metadata == {"k": ["\ufffd", None, None, None]}


def test_a_list_of_texts(tmp_path):
    documents, problems = read(tmp_path / "a.json", ["Red sky at night.", "A dry oar sinks no boat."])
    assert problems == []
    assert [(document.id, document.text) for document in documents] == [
        ("a.json#1", "Red sky at night."),
        ("a.json#2", "A dry oar sinks no boat."),
    ]


def test_a_list_has_a_record_in_each_item(tmp_path):
    path = tmp_path / "notes.json"
    documents, problems = read(path, [{"id": 7, "text": "One."}, {"title": "x"}, {"id": "a", "text": "Two."}])
    assert [(d.id, d.text, d.source) for d in documents] == [
        ("7", "One.", f"{path}, item 1"),
        ("a", "Two.", f"{path}, item 3"),
    ]
    assert [p.source for p in problems] == [f"{path}, item 2"]


AS_STRINGS = ["0:First: a\r\n", "b-1: second ", "2:third"]
AS_OBJECTS = [{"id": 0, "text": "First: a\r\n"}, {"id": "b-1", "text": " second "}, {"id": "2", "text": "third"}]


@pytest.mark.parametrize(("name", "items"), [("other.json", AS_STRINGS), ("chunks.json", AS_OBJECTS)])
def test_ready_chunks_are_one_document(tmp_path, name, items):
    (document,), _ = read(tmp_path / name, items)
    assert (document.id, document.text) == (name, "First: a\r\n second third")
    assert document.ready_chunks == (("0", "First: a\r\n"), ("b-1", " second "), ("2", "third"))


def test_records_with_titles_are_no_chunks(tmp_path):
    (document,), _ = read(tmp_path / "chunks.json", [{"text": "a", "title": "t"}])
    assert document.ready_chunks is None


def test_bad_chunks_lose_only_themselves(tmp_path):
    path = tmp_path / "chunks.json"
    items = ["0:a", "no colon", " :no id", "0:again", "1: \n", 5, "x\ny:b", {"id": "2"}, {"id": "4", "text": "d"}]
    documents, problems = read(path, items)
    assert [d.ready_chunks for d in documents] == [(("0", "a"), ("4", "d"))]
    assert [p.source for p in problems] == [f"{path}, item {n}" for n in range(2, 9)]
    assert problems[2].reason == "duplicate chunk id '0'"


def test_the_corpora_of_graphrag_bench(tmp_path):
    corpus = {"corpus_name": "Medical", "context": "Basal cell carcinoma is common. It grows slowly.", "source": "NCCN"}
    (document,), _ = read(tmp_path / "medical.json", [corpus])
    assert (document.id, document.text, document.metadata) == ("Medical", corpus["context"], {"source": "NCCN"})


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


def read_with(path, data, **names):
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    items = list(SourceReader(path, Readers(), names=FieldNames(**names)).read())
    return [i for i in items if isinstance(i, Document)], [i for i in items if isinstance(i, Problem)]


@pytest.mark.parametrize("name", ["content", "body", "page_content", "Text", "fullText", "article", "abstract"])
def test_a_text_under_another_common_name_is_found(tmp_path, name):
    record = {"_id": {"$oid": "7f"}, "headline": "Oil", name: "The oil costs 6 marks.", "year": 1880}
    (document,), problems = read(tmp_path / "a.jsonl", lines(record))
    assert problems == []
    assert (document.id, document.title, document.text) == ("7f", "Oil", "Oil\n\nThe oil costs 6 marks.")
    assert document.metadata == {"year": 1880}


def test_a_text_in_an_object_of_the_record_is_found(tmp_path):
    record = {"_index": "notes", "_source": {"title": "Oil", "body": "It costs 6 marks.", "year": 1880}}
    (document,), _ = read(tmp_path / "a.jsonl", lines(record))
    assert (document.title, document.text) == ("Oil", "Oil\n\nIt costs 6 marks.")
    assert document.metadata == {"_index": "notes", "_source": {"year": 1880}}


@pytest.mark.parametrize("around", [{"articles": None}, {"total": 2, "hits": {"hits": None}}])
def test_the_records_of_an_object_around_them_are_documents(tmp_path, around):
    records = [{"title": "Oil", "body": "It costs 6 marks."}, {"title": "Rye", "body": "It costs 4 marks."}]
    data = json.dumps(around).replace("null", json.dumps(records)).encode()
    documents, _ = read(tmp_path / "a.json", data)
    assert [(document.id, document.title) for document in documents] == [("a.json#1", "Oil"), ("a.json#2", "Rye")]


CHAT = [
    {"role": "system", "content": ""},
    {"role": "user", "content": "What does oil cost?"},
    {"role": "assistant", "content": [{"type": "text", "text": "Six marks."}, {"type": "image_url"}]},
]
SHARED = [{"from": "human", "value": "What does oil cost?"}, {"from": "gpt", "value": "Six marks."}]

EXPORTED = [
    {"from": "Kerra", "ts": "2024-05-02T06:10:00Z", "content": {"type": "text", "value": "It is stuck."}},
    {"from": "Jago", "ts": 7, "content": {"type": "text", "value": "I come."}},
]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"id": "c", "messages": CHAT}, "user: What does oil cost?\n\nassistant: Six marks."),
        ({"conversations": SHARED}, "human: What does oil cost?\n\ngpt: Six marks."),
        (
            {"export": {"of": "quay"}, "messages": EXPORTED},
            "Kerra (2024-05-02T06:10:00Z): It is stuck.\n\nJago: I come.",
        ),
        (CHAT, "user: What does oil cost?\n\nassistant: Six marks."),
    ],
)
def test_a_chat_is_one_document_with_its_speakers(tmp_path, record, text):
    (document,), problems = read(tmp_path / "a.json", record)
    assert (document.text, problems) == (text, [])


def _node(role, words, time):
    content = {"content_type": "text", "parts": [words]}
    return {"parent": "x", "message": {"author": {"role": role}, "create_time": time, "content": content}}


TREE = {
    "b": _node("assistant", "Six marks.", 9.5),
    "a": _node("user", "What does oil cost?", 3),
    "root": {"parent": None, "message": None},
    "s": _node("system", "", None),
}
RUNS = ["It costs ", {"type": "bold", "text": "six marks"}, ", see ", {"type": "link", "text": "https://oil.example"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "price", "arguments": '{"of": "oil"}'}}
USE = [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "price", "input": {"of": "Öl"}}]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"mapping": TREE}, "user: What does oil cost?\n\nassistant: Six marks."),
        (
            {"chat_messages": [{"uuid": "1", "sender": "human", "text": "Oil?"}, {"sender": "assistant", "text": "6"}]},
            "human: Oil?\n\nassistant: 6",
        ),
        ({"messages": [{"from": "Jago", "text": RUNS}]}, "Jago: It costs six marks, see https://oil.example"),
        ({"messages": [{"user": {"id": 7, "name": "Jago"}, "text": "I come."}]}, "Jago: I come."),
        ({"messages": [{"sender_name": "Jago", "timestamp_ms": 7, "content": "I come."}]}, "Jago: I come."),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [CALL]}]},
            'assistant: price({"of": "oil"})',
        ),
        ({"messages": [{"role": "assistant", "content": USE}]}, 'assistant: I look.\nprice({"of": "Öl"})'),
        ({"messages": [{"role": "assistant", "content": "6"}], "summary": "On oil."}, "On oil.\n\nassistant: 6"),
    ],
)
def test_chats_as_programs_export_them(tmp_path, record, text):
    (document,), problems = read(tmp_path / "a.json", record)
    assert (document.text, document.metadata, problems) == (text, {}, [])


def test_the_other_fields_of_a_chat_are_its_metadata(tmp_path):
    (document,), _ = read(tmp_path / "a.json", {"export": {"of": "quay"}, "messages": EXPORTED})
    assert document.metadata == {"export": {"of": "quay"}}


@pytest.mark.parametrize(
    "messages",
    [
        [{"level": "error", "message": "The lamp is out.", "code": 5}],
        [{"input": "What is a weir?", "output": "A low dam."}],
    ],
)
def test_lists_without_speakers_lose_nothing(tmp_path, messages):
    (with_text,), _ = read(tmp_path / "a.json", {"text": "A log.", "messages": messages})
    assert with_text.metadata == {"messages": messages}
    (alone,), _ = read(tmp_path / "b.json", {"messages": messages})
    for value in messages[0].values():
        assert str(value) in f"{alone.text} {alone.metadata}"


ALARM = {"title": "Sluice", "text": "Gate 3 is stuck.", "fields": [{"title": "Severity", "value": "high"}]}
BLOCK = {"type": "section", "text": {"type": "mrkdwn", "text": "Gate 3 is stuck."}}


@pytest.mark.parametrize(
    "record",
    [
        {"type": "message", "text": "", "attachments": [ALARM]},
        {"type": "message", "text": " ", "blocks": [BLOCK]},
        {"content": "", "author": {"description": "A lamp."}, "embeds": [{"description": "Gate 3 is stuck."}]},
        {"message": "", "props": {"attachments": [{"text": "Gate 3 is stuck."}]}},
        {"text": "", "body": "Gate 3 is stuck."},
        {"text": "", "description": "Gate 3 is stuck.", "tags": []},
        {"body": {"content": ""}, "attachments": [{"content": {"body": [{"text": "Gate 3 is stuck."}]}}]},
    ],
)
def test_a_message_without_words_of_its_own_is_read_with_what_is_attached(tmp_path, record):
    path = tmp_path / "a.jsonl"
    documents, problems = read(path, lines({"text": "It rains."}, record, {"text": "", "meta": {"by": "Ann"}}))
    assert [problem.reason for problem in problems] == ["empty document"]
    assert [document.id for document in documents] == ["a.jsonl#1", "a.jsonl#2"]
    assert "Gate 3 is stuck." in documents[1].text


@pytest.mark.parametrize(
    ("attached", "text"),
    [
        ({"attachments": [ALARM]}, "Sluice: Gate 3 is stuck.\nSeverity: high"),
        ({"text": "", "blocks": [BLOCK]}, "Gate 3 is stuck."),
        ({"content": "", "embeds": [{"title": "Sluice", "description": "Stuck."}]}, "Sluice: Stuck."),
    ],
)
def test_a_turn_of_a_chat_without_words_has_what_is_attached(tmp_path, attached, text):
    (document,), _ = read(tmp_path / "a.json", {"messages": [{"user": "Jago", "text": "I come."}, attached]})
    assert document.text == f"Jago: I come.\n\n{text}"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "<p>Rye &amp; oats cost <b>6</b> marks.</p>\n<p>See <a href='x'>the list</a>.</p>",
            "Rye & oats cost 6 marks.\n\nSee the list.",
        ),
        ("<h2>Oil</h2><ul><li>six marks</li><li>no&nbsp;rye</li></ul>", "## Oil\n\n- six marks\n- no rye"),
        (
            "<pre><code># rm  -r &lt;mill&gt;\n  end</code></pre><p>One<br>two.</p>",
            "    # rm  -r <mill>\n  end\n\nOne\ntwo.",
        ),
        (
            "<p>Now:</p><table><tr><th>Day</th><th>Sacks</th></tr><tr><td><p>Monday</p></td><td>7</td></tr></table><p>End.</p>",
            "Now:\n\nDay | Sacks\nDay: Monday | Sacks: 7\n\nEnd.",
        ),
        ("<table><caption>Oats</caption><tr><td>Mon<td>7<tr><td>Tue<td>8</table>", "Oats\n\nMon | 7\nTue | 8"),
        ("<table><td>a<table><tr><td>b</table></table><!-- no --><p>c</p>", "a\n\nb\n\nc"),
        ("<!-- wp:paragraph --><p>Six<script>no()</script> marks.</p><!-- /wp -->", "Six marks."),
        ("Write <p> and </p> around it.", "Write <p> and </p> around it."),
        ("<p>unclosed, 3 < 4", "<p>unclosed, 3 < 4"),
        ("<operator> waits for <mill>", "<operator> waits for <mill>"),
    ],
)
@pytest.mark.parametrize("name", ["text", "body", "cooked"])
def test_a_text_that_is_a_piece_of_a_web_page_is_read_as_it_is_shown(tmp_path, name, markup, text):
    names = {"text": "cooked"} if name == "cooked" else {}
    (document,), _ = read_with(tmp_path / "a.jsonl", lines({name: markup}), **names)
    assert document.text == text


def test_titles_and_nested_texts_of_sites_have_no_markup(tmp_path):
    question = {"title": "Rye &amp; oats", "body": "<p>Is it 6 &lt; 7?</p>"}
    post = {"id": 7, "content": {"rendered": "<p>Six &#8211; seven.</p>"}}
    (first, second, third), _ = read(tmp_path / "a.jsonl", lines(question, post, {"title": "&amp;", "text": "A sign."}))
    assert first.text == "Rye & oats\n\nIs it 6 < 7?"
    assert "rendered: Six – seven." in second.text
    assert third.title == "&amp;"


def test_all_that_a_nested_record_says_is_its_text(tmp_path):
    mill = {"name": "Marrow", "prices": [{"grain": "Rye", "marks": 4}, {"grain": "Oats", "marks": 5}]}
    (document,), _ = read(
        tmp_path / "a.json", {"mill": {**mill, "keeper": {"name": "Orsolya", "tools": ["axe", "saw"]}}}
    )
    assert document.text == (
        "Marrow\n\n# mill\n\nname: Marrow\n\n"
        "## prices\n\ngrain | marks\ngrain: Rye | marks: 4\ngrain: Oats | marks: 5\n\n"
        "## keeper\n\nname: Orsolya\ntools: axe, saw"
    )


@pytest.mark.parametrize(
    ("record", "title"),
    [
        ({"mill": {"name": "Marrow", "keeper": {"name": "Orsolya"}}}, "Marrow"),
        ({"data": {"mill": {"title": "Marrow", "prices": [{"rye": 4}]}}}, "Marrow"),
        ({"mill": {"prices": [{"rye": 4}]}, "keeper": {"name": "Orsolya"}}, "old mills"),
        ([{"mill": {"prices": [{"rye": 4}]}}], ""),  # one of many
    ],
)
def test_a_nested_record_has_the_title_inside_or_that_of_its_file(tmp_path, record, title):
    (document,), _ = read(tmp_path / "old_mills.json", record)
    assert document.title == title


@pytest.mark.parametrize(
    ("record", "names", "paths"),
    [
        (
            {"farm": {"mills": [{"ref": "M1", "dues": {"rye": 4}}, {"ref": "M2"}, {"ref": "M3", "dues": {"rye": 9}}]}},
            {},
            {"ref: M2": "farm > mills > 2", "ref: M3": "farm > mills > 3", "rye: 9": "farm > mills > 3 > dues"},
        ),
        (
            {"mills": [{"ref": "M1", "sails": [{"no": 1, "cm": 40}]}, {"ref": "M2", "sails": [{"no": 2, "cm": 50}]}]},
            {},
            {"ref: M2": "mills > 2", "no: 2 | cm: 50": "mills > 2 > sails"},
        ),
        (
            {"mills": [{"ref": "M1", "dues": {"rye": 4}}, {"ref": "M2", "dues": {"rye": 9}}]},
            {"text": "mills"},
            {"ref: M2": "2", "rye: 9": "2 > dues"},
        ),
        ({"mills": [{"ref": "M1", "dues": {"rye": 4}}]}, {}, {"ref: M1": "mills", "rye: 4": "mills > dues"}),
    ],
)
def test_each_object_of_a_list_has_its_own_headings(tmp_path, record, names, paths):
    (document,), _ = read_with(tmp_path / "a.jsonl", lines(record), **names)
    found = {document.text[s.start : s.end]: s.heading for s in split_sentences(document.text)}
    assert {text: found[text] for text in paths} == paths


@pytest.mark.parametrize(
    ("record", "names", "expected"),
    [
        ({"q": "Oil?", "n": 7, "t": "Dues"}, {"text": "q", "title": "t", "id": "n"}, ("7", "Dues", "Dues\n\nOil?")),
        ({"text": "no", "page": {"body": "yes", "no": 1}}, {"text": "page.body"}, ("a.jsonl#1", "", "yes")),
        ({"a.b": "dotted", "a": {"b": "nested"}}, {"text": "a.b"}, ("a.jsonl#1", "", "dotted")),
        ({"lines": ["one", "two"]}, {"text": "lines"}, ("a.jsonl#1", "", "one\n\ntwo")),
        ({"turns": [{"say": "one"}, {"say": "two"}]}, {"text": "turns.say"}, ("a.jsonl#1", "", "one\n\ntwo")),
        ({"text": "Body.", "code": "x-1"}, {"id": "code"}, ("x-1", "", "Body.")),
    ],
)
def test_fields_can_be_named(tmp_path, record, names, expected):
    (document,), problems = read_with(tmp_path / "a.jsonl", lines(record), **names)
    assert problems == []
    assert (document.id, document.title, document.text) == expected


@pytest.mark.parametrize(
    ("record", "names", "reason"),
    [
        (
            {"id": 1, "q": "Oil?", "n": 7},
            {},
            'the record has no "text"; its fields are id, q, n: name the one with the text, as in --text-field "q"',
        ),
        ({"id": 1, "a": {"b": "x"}}, {"text": "a.c"}, 'the record has no "a.c"; its fields are id, a.b: name the one'),
        ({}, {}, 'the record has no "text": it is empty'),
        ({f"f{n}": n for n in range(30)}, {}, "f11 and 18 more"),
    ],
)
def test_a_record_without_a_text_says_which_fields_it_has(tmp_path, record, names, reason):
    documents, (problem,) = read_with(tmp_path / "a.jsonl", lines(record), **names)
    assert documents == []
    assert reason in problem.reason


def test_lines_in_a_json_file_and_lists_in_a_jsonl_file_are_read(tmp_path):
    records = [{"text": "One."}, {"text": "Two."}]
    assert [d.text for d in read(tmp_path / "a.json", lines(*records))[0]] == ["One.", "Two."]
    assert [d.text for d in read(tmp_path / "a.jsonl", json.dumps(records, indent=1).encode())[0]] == ["One.", "Two."]
    assert [d.text for d in read(tmp_path / "b.jsonl", json.dumps(records[0], indent=1).encode())[0]] == ["One."]


def test_objects_with_fields_of_their_own_are_no_table(tmp_path):
    data = {"title": "Stores", "harbours": [{f"crate {number}": f"{number} lamps"} for number in range(5_000)]}
    (document,), _ = read(tmp_path / "a.json", data)
    assert "crate 4999: 4999 lamps" in document.text
    assert len(document.text) < 40 * 5_000
