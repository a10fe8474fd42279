"""The authors' files and the public datasets' own are read as they are; what is wrong with a file is said."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from arag.errors import InputError
from arag.evaluation.corpora import join_paragraphs, locate_gold, make_index
from arag.evaluation.datasets import Number, load_questions
from arag.evaluation.method import Answer, Session
from arag.evaluation.records import find_gold, make_record
from arag.evaluation.run_context import RunContext
from arag.ingest.pipeline import ingest
from arag.retrieval.index import open_index
from arag.retrieval.storage.locations import store_at
from arag.text.tokens import count_tokens
from fakes import HashEmbeddings
from lab import Player

AUTHORS = {"id": "q1", "question": "Who?", "answer": "Boso", "question_type": "2hop", "context": "C"}

# Each as the dataset's own file has it, with all of its fields.
MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Lothair II", "paragraph_text": "He married Teutberga.", "is_supporting": True},
        {"idx": 1, "title": "Arles", "paragraph_text": "Arles is a city.", "is_supporting": False},
        {"idx": 2, "title": "Teutberga", "paragraph_text": "A daughter of Boso the Elder.", "is_supporting": True},
    ],
    "question": "Who was the father of the wife of Lothair II?",
    "question_decomposition": [{"id": 1, "question": "Lothair II >> spouse", "answer": "Teutberga"}],
    "answer": "Boso the Elder",
    "answer_aliases": ["Boso", "Boso of Arles"],
    "answerable": True,
}
HOTPOTQA = {
    "_id": "5a8b57f25542995d1e6f1371",
    "answer": "yes",
    "question": "Were Scott Derrickson and Ed Wood of the same nationality?",
    "supporting_facts": [["Scott Derrickson", 0], ["Ed Wood", 0], ["Ed Wood", 1]],
    "context": [
        ["Ed Wood (film)", ["Ed Wood is a film.", " It is of 1994."]],
        ["Scott Derrickson", ["Scott Derrickson is an American director."]],
        ["Ed Wood", ["Edward Davis Wood Jr. was an American filmmaker.", " He died in 1978."]],
    ],
    "type": "comparison",
    "level": "hard",
}
WIKI = {
    "_id": "8813f87c0bdd11eba7f7acde48001122",
    "type": "compositional",
    "question": "Who is the mother of the director of film Polish-Russian War (Film)?",
    "context": [
        ["Maheen Khan", ["Maheen Khan is a designer.", "She has an award."]],
        ["Polish-Russian War (film)", ["A film of 2009.", "Xawery Żuławski directed it."]],
    ],
    "supporting_facts": [["Polish-Russian War (film)", 1]],
    "evidences": [["Polish-Russian War", "director", "Xawery Żuławski"]],
    "answer": "Małgorzata Braunek",
    "answer_id": "Q274277",
}
FINANCEBENCH = {
    "financebench_id": "financebench_id_90001",
    "company": "Tarnow",
    "doc_name": "TARNOW_2021_10K",
    "question": "What was Tarnow's capital expenditure in 2021?",
    "answer": "$12.00",
    "evidence": [
        {"evidence_text": "Purchases 12", "doc_name": "TARNOW_2021_10K", "evidence_page_num": 1},
        {"evidence_text": "Purchases in all", "doc_name": "TARNOW_2021_10K", "evidence_page_num": 2},
    ],
}


@pytest.fixture
def write(tmp_path):
    def written(content, name="questions.json"):
        file = tmp_path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return file

    return written


def paragraphs(file):
    """Return the paragraphs of all questions, each once."""
    return list(dict.fromkeys(paragraph for question in load_questions(file) for paragraph in question.paragraphs))


def lines(*records):
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


# --- formats ---


def test_the_authors_questions(write):
    (question,) = load_questions(write([AUTHORS | {"supporting": ["d1", 2, "d1"]}]))
    assert (question.id, question.text, question.answer) == ("q1", "Who?", "Boso")
    assert (question.aliases, question.gold_documents) == ((), ("d1", "2"))
    assert question.fields == {"question_type": "2hop", "context": "C"}
    (other,) = load_questions(write([{"qid": 7, "question": " Who? ", "gold_answer": " Boso "}]))
    assert (other.id, other.text, other.answer, other.fields) == ("7", "Who?", "Boso", {})


def test_an_answer_may_be_a_number_or_a_list(write):
    answers = [1998, ["1998", "MCMXCVIII", ""], "1998"]
    rows = [{"id": n, "question": "When?", "answer": each, "aliases": "'98"} for n, each in enumerate(answers)]
    questions = load_questions(write(rows))
    assert [question.answer for question in questions] == ["1998"] * 3
    assert [question.aliases for question in questions] == [("'98",), ("MCMXCVIII", "'98"), ("'98",)]


def test_a_question_may_ask_for_a_list_or_a_number_or_a_fact_that_is_absent(write):
    base = {"id": 0, "question": "Which?"}
    rows = [
        {"answers": ["Boso", ["Hugh", "Hugo"], 1881, "Boso"], "kind": "list"},
        {"number": 12},
        {"number": {"value": 12.5, "unit": ["km", "kilometres"], "tolerance": 0.1}, "kind": "sum"},
        {"absent": True, "answer": None},
        {"answer": "twelve", "number": 12, "answers": None, "absent": None, "kind": None},
    ]
    questions = load_questions(write([base | {"id": n} | row for n, row in enumerate(rows)]))
    assert [(question.form, question.answer, question.kind) for question in questions] == [
        ("list", "Boso; Hugh; 1881; Boso", "list"),
        ("number", "12", ""),
        ("number", "12.5 km", "sum"),
        ("absent", "not in the corpus", ""),
        ("number", "twelve", ""),
    ]
    assert questions[0].items == (("Boso",), ("Hugh", "Hugo"), ("1881",))
    assert questions[2].number == Number(12.5, ("km", "kilometres"), 0.1)
    assert not any(question.fields for question in questions)


def test_musique(write):
    file = write(lines(MUSIQUE, {**MUSIQUE, "id": "2hop__3_4"}))
    question, other = load_questions(file)
    assert (question.id, question.answer) == ("2hop__1_2", "Boso the Elder")
    assert question.aliases == ("Boso", "Boso of Arles")
    assert set(question.fields) == {"question_decomposition", "answerable"}
    found = paragraphs(file)
    assert [p.title for p in found] == ["Lothair II", "Arles", "Teutberga"]  # each once, though two questions have it
    assert question.gold_documents == other.gold_documents == (found[0].id, found[2].id)


def test_hotpotqa_and_2wikimultihopqa(write):
    file = write([HOTPOTQA, WIKI])
    question, other = load_questions(file)
    assert (question.id, question.answer) == ("5a8b57f25542995d1e6f1371", "yes")
    assert (other.answer, other.aliases) == ("Małgorzata Braunek", ())
    assert set(question.fields) == {"type", "level"}
    found = {paragraph.title: paragraph for paragraph in paragraphs(file)}
    assert found["Ed Wood"].text == "Edward Davis Wood Jr. was an American filmmaker. He died in 1978."
    assert found["Maheen Khan"].text == "Maheen Khan is a designer. She has an award."
    assert set(question.gold_documents) == {found["Ed Wood"].id, found["Scott Derrickson"].id}
    assert other.gold_documents == (found["Polish-Russian War (film)"].id,)


def test_financebench(write):
    file = write(lines(FINANCEBENCH))
    (question,) = load_questions(file)
    assert (question.id, question.answer) == ("financebench_id_90001", "$12.00")
    assert question.gold_documents == ("TARNOW_2021_10K",)
    assert question.gold_pages == (("TARNOW_2021_10K", 2), ("TARNOW_2021_10K", 3))  # the data counts from 0
    assert set(question.fields) == {"company", "doc_name"}
    assert paragraphs(file) == []


@pytest.mark.parametrize("field", ["context", "evidence"])
@pytest.mark.parametrize("value", ["A text.", ["A text.", "another"]])
def test_fields_of_other_datasets_are_kept(write, field, value):  # such as GraphRAG-Bench's
    file = write([AUTHORS | {field: value}])
    assert load_questions(file)[0].fields[field] == value
    assert paragraphs(file) == []


# --- characters ---


def test_a_byte_order_mark_and_line_separators_in_strings(write):
    text = "One\u2028two\x85three"
    found = load_questions(write("\ufeff" + lines(AUTHORS | {"question": text}) + "\r\n \n", "questions.jsonl"))
    assert [question.text for question in found] == [text]


# --- bad files ---

BAD = {
    "no JSON": ("What is this?", r"neither a JSON list nor JSON lines: Expecting value near 'What is"),
    "the second line": (lines(AUTHORS) + "{", r"Expecting property name .* near '\{'"),
    "no id": ([{"question": "Who?", "answer": "B"}], r"question 1: 'id': Field required; needed are `id`, `question`"),
    "true for an answer": ([AUTHORS | {"answer": True}], r"question 1: 'answer.0': "),
    "an id again": ([AUTHORS, AUTHORS], r"question 2: another question has the id 'q1'"),
    "no answer": ([{"id": 1, "question": "Who?"}], r"'answer': Field required; needed are .*`absent`"),
    "no answer but absent": ([{"id": 1, "question": "Who?", "absent": False}], r"'answer': Field required"),
    "a list that is none": ([AUTHORS | {"answers": "Boso"}], r"'answers': Input should be a valid list"),
    "an empty list": ([AUTHORS | {"answers": []}], r"'answers': List should have at least 1 item"),
    "an empty item": ([AUTHORS | {"answers": ["Boso", ""]}], r"'answers.1': "),
    "a number as a text": ([AUTHORS | {"number": "12"}], r"'number.value': Input should be a valid number"),
    "no finite number": ([AUTHORS | {"number": float("nan")}], r"'number.value': Input should be a finite number"),
    "a tolerance below 0": ([AUTHORS | {"number": {"value": 1, "tolerance": -1}}], r"'number.tolerance': "),
    "a part of a number": ([AUTHORS | {"number": {"value": 1, "units": "km"}}], r"'number.units': Extra inputs"),
    "perhaps absent": ([AUTHORS | {"absent": "yes"}], r"'absent': Input should be a valid boolean"),
    "two forms": ([AUTHORS | {"absent": True, "number": 0}], r"question 1: it has 'number' and 'absent': give one of"),
    "evidence: no page": ([{**FINANCEBENCH, "evidence": [{"doc_name": "A"}]}], r"'evidence.0.evidence_page_num': "),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_with_a_file_is_said(write, kind):
    content, message = BAD[kind]
    file = write(content)
    with pytest.raises(InputError, match=message) as error:
        load_questions(file)
    assert str(file) in str(error.value)


NAMES = (
    "id question answer answer_aliases paragraphs context sentences title paragraph_text supporting_facts supporting"
)
NAMES += " financebench_id evidence doc_name evidence_page_num answers number value unit tolerance absent kind"
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES.split()), inner),
    max_leaves=15,
)


@given(value=ANY_JSON)
def test_any_json_is_read_or_refused(tmp_path_factory, value):
    file = tmp_path_factory.mktemp("any") / "questions.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    with suppress(InputError):
        load_questions(file)


# --- from questions to an index ---


def long(number):
    """A question with ten paragraphs of 200 tokens, two of them gold."""
    rows = [
        {"title": f"Town {number}-{n}", "paragraph_text": f"Word {n}, " * 60, "is_supporting": n in {3, 7}}
        for n in range(10)
    ]
    return {"id": number, "question": "Which?", "answer": "A", "paragraphs": rows}


def test_short_paragraphs_are_joined_into_documents_of_about_a_thousand_tokens(write):
    found = paragraphs(write([long(1), long(2), long(1) | {"id": 3}]))
    documents = list(join_paragraphs(found))
    tokens = [count_tokens(document["text"]) for document in documents]
    assert len(found) == 20
    assert all(600 < count <= 1_000 for count in tokens[:-1])
    assert [name for document in documents for name in document["paragraphs"]] == [p.id for p in found]
    assert documents[0]["text"].startswith("# Town 1-0\n\nWord 0,")


def test_a_download_alone_makes_an_index_with_the_gold_of_its_questions(write, tmp_path, quick_embedder):
    file = write([long(1), long(2), MUSIQUE])
    questions, store = load_questions(file), store_at(tmp_path / "index")
    assert [line for line in make_index(questions, store) if "23 paragraphs" in line]
    with open_index(store) as index:
        assert index.info().documents == index.info().chunks < 8
        for question, own in zip(locate_gold(questions, index), questions, strict=True):
            texts = "".join(chunk.text for chunk in index.read(question.gold_documents).chunks)
            gold = [p for p in own.paragraphs if p.id in own.gold_documents]
            assert len(gold) == 2
            assert all(paragraph.text in texts for paragraph in gold)
    assert list(make_index(questions[:1], store)) == []  # it is there
    with pytest.raises(InputError, match=r"lacks 3 of the questions' 3 paragraphs"):
        list(make_index(load_questions(write([HOTPOTQA])), store))


# --- gold pages ---


@pytest.fixture
def filings(tmp_path):
    """An index of a filing of three pages, in a folder of its own, and of a text."""
    folder = tmp_path / "filings" / "annual"
    folder.mkdir(parents=True)
    canvas = Canvas(str(folder / "TARNOW_2021_10K.pdf"))
    for page in (1, 2, 3):
        for line in range(30):
            canvas.drawString(
                50, 800 - 20 * line, f"Line {line} of page {page} tells of purchases and of depreciation."
            )
        canvas.showPage()
    canvas.save()
    (folder / "NOTES_2021.txt").write_text("Notes without pages.")
    with ingest(tmp_path / "filings", tmp_path / "index", embedder=HashEmbeddings(), chunk_tokens=200) as index:
        yield index


def answered(question, index, shown, cited):
    """The record, with the shares of gold that were seen, read and cited; the first chunk shown is read."""
    session = Session(RunContext(index, Player(play=str), None))
    session.retrieved([index.get(chunk_id) for chunk_id in shown], "what")
    session.trace[0]["new_chunks"] = shown[:1]
    record = json.loads(json.dumps(make_record(question, session, Answer("12", cited))))
    return record, (record["gold_seen"], record["gold_read"], record["gold_cited"])


def test_a_gold_page_counts_when_a_chunk_covers_it(write, filings):
    (question,) = locate_gold(load_questions(write(lines(FINANCEBENCH))), filings)
    filing = "annual/TARNOW_2021_10K.pdf"
    assert question.gold_documents == (filing,)
    chunks = [chunk for chunk in map(filings.get, filings.chunk_ids()) if chunk.document_id == filing]
    first, last = (next(c.id for c in chunks if c.pages[0] == c.pages[1] == page) for page in (1, 3))
    across = next(c.id for c in chunks if c.pages == (2, 3))
    assert answered(question, filings, [first], [first])[1] == (0, 0, 0)
    assert answered(question, filings, [last, across], [last])[1] == (1, 0.5, 0.5)
    record, _ = answered(question, filings, [last], [])
    assert find_gold(record) == [("TARNOW_2021_10K", 2), ("TARNOW_2021_10K", 3)]


def test_a_document_without_pages_counts_as_a_whole(write, filings):
    evidence = [{"doc_name": "NOTES_2021", "evidence_page_num": 0}]
    (question,) = locate_gold(load_questions(write(lines({**FINANCEBENCH, "evidence": evidence}))), filings)
    assert answered(question, filings, ["annual/NOTES_2021.txt:0"], [])[1] == (1, 1, 0)
