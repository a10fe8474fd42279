"""Lists of documents: complete and counted, with the values of their metadata, and what a model is shown of them."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag import create_arag_agent, make_tools
from arag.errors import InputError
from arag.ingest.pipeline import ingest
from arag.retrieval.tools.corpus import Grep, ListDocuments
from arag.text.tokens import count_tokens
from fakes import HashEmbeddings, write_corpus
from scripted import DOCUMENTS, ScriptedModel, asked, call
from selection import EVERYWHERE

RECORDS = [
    {"id": "a", "title": "Rye", "text": "Rye grew.", "date": "2024-03-01", "author": "Ina", "team": "ops", "n": 3},
    {"id": "b", "title": "Oats", "text": "Oats grew.", "date": "2023-12-31", "from": ["b@x.example"], "team": "ops"},
    {"id": "c", "title": "Barley", "text": "Barley grew.", "tags": ["x", "y"], "team": "it", "n": 1},
    {"id": "d", "text": "Nothing grew.", "n": 2.5, "open": True, "notes": "long " * 30},
]


@pytest.fixture
def index(make_index):
    return make_index(RECORDS)


def use(kind, index, **arguments):
    (tool,) = make_tools(index, names=[kind])
    return tool.invoke(arguments)


def ids(listed):
    return "".join(document.id for document in listed.documents)


# --- the list ---


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("leaders.de", ["dpl/leaders.de.md"]),
        ("LEADERS de", ["dpl/leaders.de.md"]),
        ("leaders.fr", []),
        ("basics.md", ["faq/basics.md"]),  # a file's name, though all its words are in another one's
        ("faq/basics.en.md", ["faq/basics.en.md"]),
        ("basics", ["faq/basics.en.md", "faq/basics.md"]),
        ("handbook de", ["handbook-de_DE.md"]),
        ("hand de", ["handbook-de_DE.md"]),
        ("handbook", ["handbook-de_DE.md", "handbook-en_US.md"]),
        ("minutes-2023-1", ["minutes-2023-10.md", "minutes-2023-12.md"]),
        ("人員", ["書類.md"]),
    ],
)
def test_a_name_means_the_documents_with_its_whole_words(make_index, name, expected):
    index = make_index(
        {
            "dpl/leaders.de.md": "Eins.",
            "dpl/leaders.en.md": "One.",
            "faq/basics.md": "Two.",
            "faq/basics.en.md": "Three.",
            "handbook-de_DE.md": "Vier.",
            "handbook-en_US.md": "# Modes of use\n\nFour.",
            "minutes-2023-10.md": "Six.",
            "minutes-2023-12.md": "Seven.",
            "書類.md": "# 全人員名簿\n\nFive.",
        }
    )
    if not expected:
        with pytest.raises(InputError, match="no document has"):
            index.list_documents(within=name)
        return
    assert [document.id for document in index.list_documents(within=name).documents] == expected
    assert [document.id for document in index.within(name).documents()] == expected


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "abcd"),
        ({"sort": "-id"}, "dcba"),
        ({"sort": "title"}, "cbad"),
        ({"sort": "date"}, "bacd"),
        ({"sort": "-date"}, "abcd"),
        ({"sort": "n"}, "cdab"),
        ({"sort": "-n"}, "adcb"),
        ({"sort": "author"}, "bacd"),
        ({"where": {"team": "ops"}}, "ab"),
        ({"where": {"n": {"$gte": 2}}, "sort": "n"}, "da"),
        ({"within": "ley"}, "c"),
        ({"start": 1, "limit": 2}, "bc"),
        ({"start": 9}, ""),
        ({"limit": 0}, ""),
    ],
    ids=str,
)
def test_documents_are_chosen_sorted_and_counted(index, arguments, expected):
    listed = index.list_documents(**arguments)
    assert ids(listed) == expected
    chosen = {"start": 0, "limit": 1_000}
    assert listed.total == len(ids(index.list_documents(**arguments | chosen)))


def test_what_is_known_of_documents_is_told(index):
    listed = index.list_documents()
    first, second, third, fourth = listed.documents
    assert (first.date, first.author, first.kind, first.chunks) == ("2024-03-01", "Ina", "jsonl", 1)
    assert second.author == "b@x.example"
    assert (third.date, third.author) == ("", "")
    assert fourth.metadata["open"] is True
    fields = {field.name: field for field in listed.fields}
    assert [field.name for field in listed.fields[:2]] == ["n", "team"]
    assert (fields["n"].lowest, fields["n"].highest, fields["n"].documents) == (1, 3, 3)
    assert (fields["date"].lowest, fields["date"].highest) == ("2023-12-31", "2024-03-01")
    assert fields["team"].values == {"ops": 2, "it": 1}
    assert fields["tags"].values == {"x": 1, "y": 1}
    assert "notes" not in fields  # a text is not a value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sort": "nothing"},
            "documents cannot be sorted by 'nothing': valid are id, title, date, author, kind, chunks",
        ),
        ({"where": {"n": {"$like": 1}}}, "'$like' is not an operator"),
        ({"within": "nowhere"}, "no document has 'nowhere' in its title"),
        ({"start": -1}, "start is -1: it must be at least 0"),
    ],
)
def test_wrong_arguments_are_named(index, arguments, message):
    with pytest.raises(InputError) as caught:
        index.list_documents(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_a_limited_index_lists_as_an_index_of_its_documents(make_index):
    some = [record for record in RECORDS if record["id"] in "bd"]
    index, other = make_index(RECORDS), make_index(some)
    limited = index.limited_to(["b", "d"])
    for arguments in ({}, {"sort": "n"}, {"where": {"team": "ops"}}):
        ours, theirs = limited.list_documents(**arguments), other.list_documents(**arguments)
        assert ids(ours) == ids(theirs)
        assert ours.fields == theirs.fields
        assert use(ListDocuments, limited, **arguments) == use(ListDocuments, other, **arguments)
    for pattern in ("grew", "rye", "o"):
        assert use(Grep, limited, pattern=pattern) == use(Grep, other, pattern=pattern)
        assert use(Grep, limited, pattern=pattern, within="oats") == use(Grep, other, pattern=pattern, within="oats")
    assert use(Grep, limited, pattern="grew", within="rye") == use(Grep, other, pattern="grew", within="rye")


def test_the_kind_of_a_part_of_a_file_is_that_of_the_file(arag, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    mail = "From a@x.example Mon Jan  1 10:00:00 2024\nFrom: a@x.example\nSubject: Mill\n{}\nThe mill stands.\n\n"
    mails = [mail.format("Message-ID: <1@mail.example.com>\n"), mail.format("")]
    (docs / "box.mbox").write_text("".join(mails))
    (docs / "INBOX").write_text(mail.format("Message-ID: <2@mail.example.org>\n"))
    (docs / "records.jsonl").write_text('{"id": "www.mill.org", "text": "The mill turns."}\n{"text": "It grinds."}\n')
    (docs / "v1.2 notes.md").write_text("The mill is old.")
    (docs / "README").write_text("The mill is of oak.")
    ingest(docs, tmp_path / "index", embedder=HashEmbeddings()).close()
    listed = json.loads(arag("list", "--index", tmp_path / "index", "--json")[1])["documents"]
    kinds = {document["id"]: document["kind"] for document in listed}
    assert kinds == {
        "INBOX#2@mail.example.org": "",
        "README": "txt",
        "box.mbox#1@mail.example.com": "mbox",
        "box.mbox#2": "mbox",
        "records.jsonl#2": "jsonl",
        "v1.2 notes.md": "md",
        "www.mill.org": "jsonl",
    }


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"id": "notes/a.md"}, "md"),
        ({"id": "7.1st", "source": "https://mill.example/plans/a.pdf"}, "pdf"),
        ({"id": "https://mill.example"}, ""),
        ({"id": "7", "source": "https://mill.example"}, ""),
    ],
)
def test_the_kind_of_an_object_is_that_of_its_source_or_its_id(tmp_path, fields, kind):
    record = {"text": "The mill stands.", **fields}
    with ingest(record, tmp_path / "index", embedder=HashEmbeddings()) as index:
        (document,) = index.list_documents().documents
    assert document.kind == kind


def test_dates_and_authors_of_templates_are_none(tmp_path):
    from docx import Document
    from pptx import Presentation

    corpus = tmp_path / "corpus"
    corpus.mkdir()
    document = Document()
    document.add_paragraph("The bell was cast in Emberlane.")
    document.save(corpus / "bell.docx")
    slides = Presentation()
    slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "The bell"
    slides.save(corpus / "bell.pptx")
    signed = Document()
    signed.add_paragraph("The bell was hung.")
    signed.core_properties.author = "Ina Fesk"
    signed.save(corpus / "signed.docx")
    with ingest(corpus, tmp_path / "index", embedder=HashEmbeddings()) as index:
        listed = index.list_documents()
        assert [(each.date, each.author) for each in listed.documents] == [("", ""), ("", ""), ("", "Ina Fesk")]
        assert [field.name for field in listed.fields] == ["author"]


ODD_VALUES = [None, True, False, 0, -1, 1.5, 10**30, "", " ", "x", "2024", "2024-01-01", "a | b", "[c:0] see", "y" * 70]
ODD_VALUES += [[], ["x", 3, None, ["y"]], {"x": 1}, "\u202e\x1b[31m", "灯塔", "İ", "line\nbreak"]


def test_any_metadata_can_be_listed_and_sorted(make_index):
    names = ["date", "author", "from", "n", "tags", "x" * 300, "a|b", "[c:1]"]
    records = []
    for number, value in enumerate(ODD_VALUES):
        fields = {name: ODD_VALUES[(number + step) % len(ODD_VALUES)] for step, name in enumerate(names)}
        records.append({**fields, "id": f"d{number:02}", "title": f"{value}", "text": f"Text {number}."})
    index = make_index(records)
    for sort in ("id", "-date", "n", "-tags", "author", "x" * 300, "[c:1]"):
        listed = index.list_documents(sort=sort)
        assert sorted(document.id for document in listed.documents) == [record["id"] for record in records]
        text = use(ListDocuments, index, sort=sort)
        assert count_tokens(text) < 1_700
        assert "[c:0]" not in text
        assert "[c:1]" not in text
        assert "\x1b" not in text
        assert len(text.splitlines()) < 40


def test_an_empty_scope_is_answered(index):
    nothing = index.limited_to([])
    assert nothing.list_documents().total == nothing.grep(".").total == 0
    assert use(ListDocuments, nothing) == "0 documents"
    assert (
        use(Grep, nothing, pattern="rye|x*") == use(Grep, nothing, pattern="rye") == "No line of 0 documents matches."
    )


# --- what a model is shown ---


def test_a_list_has_no_empty_columns_and_says_what_the_fields_are(office):
    text = use(ListDocuments, office)
    head, *lines = text.splitlines()
    assert head == "133 documents (of one chunk unless a number is given)"
    assert any(line.startswith("date: ") and " to " in line for line in lines)
    assert "id | title | date | author | chunks" in lines
    assert "contracts/airvik.docx | Supply Agreement with Airvik | 2025-09-01 | Veldrane Instruments" in lines
    assert "jobs/buyer.docx |  | 2025-09-01 | Veldrane Instruments" in lines  # the id says the title
    assert lines[-1].endswith(f" more: start={len(lines) - lines.index('id | title | date | author | chunks') - 2}")
    assert "2013-12-23" not in text
    assert count_tokens(text) <= 1_600
    assert "author" not in use(ListDocuments, office, within="minutes product").splitlines()[-2]


@pytest.mark.parametrize("titles_only", [False, True])
def test_pages_of_a_list_together_are_the_whole(office, titles_only):
    seen, start = [], 0
    while True:
        *lines, last = use(ListDocuments, office, start=start, titles_only=titles_only).splitlines()
        seen += [line.split(" | ")[0] for line in [*lines, last] if "/" in line.split(" | ")[0]]
        if " more: start=" not in last:
            break
        start = int(last.rpartition("=")[2])
        assert start == len(seen)
    assert seen == [document.id for document in office.documents()]


def test_every_page_of_lines_counts_everything_and_says_where_to_go_on(office):
    seen, start = [], 0
    while True:
        text = use(Grep, office, pattern="delivery: .* days", start=start)
        head, *lines = text.splitlines()
        total = office.grep("delivery: .* days").total
        assert head.startswith(f"{total} lines in ")
        more = " more: start=" in lines[-1]
        seen += [line for line in lines[: -1 if more else None] if "Delivery: " in line]
        assert count_tokens(text) <= 1_700
        if not more:
            break
        start = int(lines[-1].rpartition("=")[2])
        assert start == len(seen)
    assert len(seen) == total > 100


def test_a_chunk_has_its_mark_once_and_a_document_its_title_once(office):
    lines = use(Grep, office, pattern="reported to the MRB").splitlines()
    marks = [line.partition("]")[0] + "]" for line in lines if line.startswith("[")]
    assert len(marks) == len(set(marks)) > 2
    assert all(line.startswith(("[", " ")) for line in lines[1:])
    first = "[policies/quality-manual.pdf:0] (pages 1-2) 1.4 Deviations"
    assert lines[1] == f"{first} are reported to the MRB within 24 days."
    assert lines[2] == " 2.4 Deviations are reported to the MRB within 11 days."


def test_rows_have_their_sheet_once(office):
    lines = use(Grep, office, pattern="kelda 20", within="销售统计").splitlines()
    assert lines[0] == "4 lines in 1 document match:"
    sheets = [line for line in lines if line.endswith(":") and not line.startswith("4 ")]
    assert sheets == [f" {quarter}季度:" for quarter in "一二三四"]  # and not the unit, a line above the table


def test_rows_without_labels_have_those_of_their_table_once(make_index):
    table = "| Grain | 1880 | 1881 |\n| --- | --- | --- |\n| Rye | 120 | 130 |\n| Oats | 80 | 90 |\n"
    index = make_index({"a.md": f"# Prices\n\n## In marks\n\n{table}"})
    assert use(Grep, index, pattern="rye|oats").splitlines() == [
        "2 lines in 1 document match:",
        "[a.md:0] Prices:",
        " In marks: Grain | 1880 | 1881",
        " | Rye | 120 | 130 |",
        " | Oats | 80 | 90 |",
    ]


def test_no_row_of_data_is_shown_as_the_labels_of_others(make_index):
    rows = "Dunnock | 1881 | 196\nWren | 12 March 1882 | 4 May 1883\nRobin | 7 | 8\n"
    index = make_index({"a.txt": f"Birds\n\n{rows}"})
    text = use(Grep, index, pattern="robin")
    assert "Robin | 7 | 8" in text
    assert "1882" not in text


def test_equal_lines_are_shown_once_with_their_number_and_places(make_index):
    notice = "All rights reserved."
    index = make_index(
        [
            {"id": "a", "text": f"Rye grew. {notice}\n\n{notice}"},
            {"id": "b", "text": f"{notice} Rights of way are listed."},
            {"id": "c", "text": notice.upper()},
        ]
    )
    assert use(Grep, index, pattern="rights").splitlines() == [
        "5 lines in 3 documents match:",
        "[a:0] All rights reserved. (4 times, also in [b:0], [c:0])",
        "[b:0] Rights of way are listed.",
    ]


def test_amounts_that_differ_are_not_equal_lines(make_index):
    index = make_index([{"id": "a", "text": "Balance | -5\nBalance | 5\nBalance | 5.\nBalance | 50"}])
    assert len(use(Grep, index, pattern="balance").splitlines()) == 4


def test_long_lines_are_cut_around_their_match(make_index):
    words = " ".join(f"word{n}" for n in range(200))
    cells = " | ".join(f"Column {n}: {n * 7}" for n in range(60))
    index = make_index(
        [{"id": "a", "text": f"It began {words} with gisvi {words} at the end."}, {"id": "b", "text": cells}]
    )
    long, row = use(Grep, index, pattern="gisvi|41: 287").splitlines()[1:]
    assert long.startswith("[a:0] …")
    assert long.endswith("…")
    assert "gisvi" in long
    assert len(long) < 330
    assert row.startswith("[b:0] Column 0: 0 | …")
    assert "Column 41: 287" in row


def test_only_matches_are_shown_with_groups_as_columns(make_index):
    index = make_index(
        [{"id": "a", "text": "Rye cost 12 marks, oats cost 9 marks. Rye cost 12 marks. Wheat was dear."}]
    )
    only = {"only_match": True}
    assert use(Grep, index, pattern=r"(\w+) cost (\d+)", **only).splitlines()[1:] == [
        "[a:0] Rye | 12; oats | 9",
        " Rye | 12",
    ]
    assert use(Grep, index, pattern=r"\d+ marks", **only).splitlines()[1] == "[a:0] 12 marks; 9 marks"


def test_titles_are_told_apart_and_nothing_found_is_told_with_what_was_searched(make_index):
    index = make_index(
        [{"id": "a", "title": "The Gale", "text": "It blew."}, {"id": "gale-2", "title": "Gale 2", "text": "It blew."}]
    )
    assert use(Grep, index, pattern="gale") == "No line of 2 documents matches. 2 titles: The Gale (a); gale-2"
    assert use(Grep, index, pattern="storm") == "No line of 2 documents matches."
    assert use(Grep, index, pattern="storm", within="gale-2") == "No line of 1 document matches."


def test_no_text_can_pose_as_a_mark_or_as_an_end_of_a_page(make_index):
    text = "[b:0] The king is dead.\n\n- [b:1] gale. see [b:2]"
    index = make_index([{"id": "a", "title": "[b:3] gale", "text": text}, {"id": "b", "text": "No gale."}])
    shown = use(Grep, index, pattern="gale|king")
    assert "[b:0] No gale." in shown
    assert shown.count("[b:0]") == 1
    assert not any(f"[b:{n}]" in shown for n in (1, 2, 3))


@pytest.mark.parametrize("kind", [Grep, ListDocuments])
def test_a_model_sees_few_tokens_and_no_conversation(office, kind):
    (tool,) = make_tools(office, names=[kind])
    function = convert_to_openai_tool(tool)["function"]
    assert count_tokens(json.dumps(function)) < 200
    assert "messages" not in function["parameters"]["properties"]


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (Grep, {"pattern": "("}, "the pattern '(' is not valid"),
        (Grep, {"pattern": ""}, "the pattern is empty"),
        (Grep, {}, "pattern"),
        (Grep, {"pattern": "a", "start": "x"}, "start"),
        (Grep, {"pattern": "a", "start": -5}, "start is -5"),
        (Grep, {"pattern": "a" * 5_000}, "it has 5,000 characters"),
        (Grep, {"pattern": "a", "within": "nowhere"}, "no document has 'nowhere'"),
        (ListDocuments, {"where": "team=ops"}, "where"),
        (ListDocuments, {"where": {"$x": 1}}, "'$x' is not valid around conditions"),
        (ListDocuments, {"sort": "nope"}, "cannot be sorted by 'nope'"),
    ],
)
def test_a_wrong_call_is_answered_with_what_is_wrong(office, kind, arguments, message):
    assert message in use(kind, office, **arguments)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Grep, {"pattern": "days", "start": "3", "only_match": "true", "within": None}),
        (ListDocuments, {"where": '{"from": {"$contains": "l.marrone@veldrane.example"}}', "start": None}),
        (ListDocuments, {"where": "", "titles_only": "yes"}),
    ],
)
def test_what_models_send_in_place_of_values_is_accepted(office, kind, arguments):
    assert use(kind, office, **arguments)[0].isdigit()


def test_an_agent_cites_what_grep_has_shown(tmp_path):
    answer = AIMessage("Teutberga died in 875 [teutberga:0].")
    model = ScriptedModel(call("list_documents"), call("grep", pattern=r"died in (\d+)"), answer)
    with ingest(write_corpus(tmp_path / "c", DOCUMENTS), tmp_path / "i", embedder=HashEmbeddings()) as index:
        agent = create_arag_agent(model, index, tools=["keyword_search", Grep, ListDocuments])
        state = agent.invoke(asked("When did Teutberga die?"))
    model.assert_used_up()
    listed, found = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert listed.text.startswith("4 documents")
    assert found.text == "1 line in 1 document matches:\n[teutberga:0] She died in 875."
    assert found.artifact["chunk_ids"] == ["teutberga:0"]
    assert found.artifact["sentences"] == {"teutberga:0": [1]}
    assert found.artifact["results"]["lines"][0]["groups"] == [["875"]]
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0"]


def test_lines_can_be_printed_as_a_command(make_index, arag):
    index = make_index({"a.md": "# Rye\n\nRye cost 12 marks.\n\nOats cost 9 marks.", "b.md": "# Oats\n\nNone."})
    code, out, err = arag("grep", r"cost (\d+)", "--index", index.path)
    assert (code, out) == (0, "a.md:0:Rye cost 12 marks.\na.md:0:Oats cost 9 marks.\n")
    assert err == "2 lines in 1 document, 0 titles.\n"
    assert arag("grep", r"cost (\d+)", "-o", "--index", index.path)[1] == "a.md:0:12\na.md:0:9\n"
    assert arag("grep", "oats", "--within", "b", "--index", index.path)[1] == "b.md:# Oats\n"
    assert arag("grep", "O(at)s", "-o", "--within", "b", "--index", index.path)[1] == "b.md:# at\n"
    assert arag("grep", "oats", "--limit", "0", "--index", index.path)[:2] == (0, "")
    assert arag("grep", "oats", "--start", "1", "--index", index.path)[:2] == (0, "")
    assert arag("grep", "OATS", "--case", "--index", index.path)[0] == 1
    code, out, err = arag("grep", "cost", "--limit", "1", "--index", index.path)
    assert err.endswith("1 more: --start 1\n")
    found = json.loads(arag("grep", "cost", "--json", "--index", index.path)[1])
    assert (found["total"], found["lines"][0]["chunk_id"]) == (2, "a.md:0")
    code, out, err = arag("grep", "(", "--index", index.path)
    assert (code, out) == (1, "")
    assert "the pattern '(' is not valid: missing )" in err


def test_documents_can_be_listed_as_a_command(make_index, arag):
    index = make_index(RECORDS)
    assert [line[0] for line in arag("list", "--sort", "-n", "--index", index.path)[1].splitlines()] == [*"adcb"]
    listed = json.loads(arag("list", "--within", "rye", "--json", "--index", index.path)[1])
    assert [document["author"] for document in listed["documents"]] == ["Ina"]
    assert {field["name"] for field in listed["fields"]} == {"author", "date", "n", "team"}
