"""The files of an invented company: all are read, and the answers stand where the questions say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from arag.evaluation.datasets import load_questions
from arag.ingest.documents import Document
from arag.ingest.formats import Readers
from arag.ingest.reading import SourceReader

QUESTIONS = load_questions(Path(__file__).parent.parent / "examples" / "company" / "questions.json")


@pytest.fixture(scope="module")
def documents(office_folder):
    with Readers() as readers:
        items = list(SourceReader(office_folder, readers).read())
    assert [item for item in items if not isinstance(item, Document)] == []
    return {item.id: item for item in items}


def test_an_office_has_many_files_of_each_kind(documents):
    kinds = Counter(Path(name).suffix for name in documents)
    assert kinds.keys() == {".pdf", ".docx", ".pptx", ".xlsx", ".html", ".eml", ".csv", ".md", ".txt"}
    assert kinds.total() > 100


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_an_answer_stands_in_the_files_that_the_question_names(documents, question):
    text = "\n".join(documents[name].text for name in question.gold_documents)
    assert [part for part in question.answer.split(", ") if part not in text] == []
