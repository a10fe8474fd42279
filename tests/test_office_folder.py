"""A newcomer's folder of office files: what a person sees in them is there, and questions find their answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag.graph.graph import create_arag_agent
from arag.ingest.pipeline import ingest
from fakes import HashEmbeddings
from scripted import asked

EXAMPLES = Path(__file__).parent.parent / "examples"
QUESTIONS = json.loads((EXAMPLES / "office-questions.json").read_text("utf-8"))
SEEN = {
    "harbour-report.pdf": ("# Report of the Harbour Master for 1881", "## Accidents", "Tilda Morrowe, Harbour Master"),
    "regatta-minutes.docx": (
        "# The course",
        "- In fog the race is held on the next day.",
        "Class: Rowing boats | Prize: a barrel of Blind Admiral | Given by: the press-houses of Brannisey",
    ),
    "dues.xlsx": (
        "Vessel: Constant Anna | Arrived: 1907-06-30 | Tons: 154 | Dues in marks: 7.25 | Share of the year: 27.8%",
        "# Berths\n\nBerth | Depth in feet | Keeper",
    ),
    "new-lamp.pptx": (
        "# A new lamp for the Vellin Light",
        "Notes: Begin with the wreck of the Marigold.",
        "- Its wick is trimmed every four hours",
        "Category: Autumn | Nights in 1880: 19 | Nights in 1881: 27",
    ),
    "coal-order.eml": ("From: Maren Tolk <coal@port-ammerel.example>", "Attachment: offer.txt"),
    "notice-board.html": ("## Lost and found", "Day: Tuesday | Leaves: 7:30 | Returns: 16:00"),
    "keepers.md": ("## Rules", "older than the tower."),
    "crew.csv": ("Name: Odvar Felisk | Post: pilot | Since: 1868 | Speaks: Lanthry, some Danish",),
    "letter-from-amoy.txt": ("林美华的家书", "女儿美华，一八八一年六月二十日"),
}


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    with ingest(EXAMPLES / "office", tmp_path_factory.mktemp("office") / "index", embedder=HashEmbeddings()) as index:
        yield index


def test_what_a_person_sees_in_each_file_is_in_its_text(office):
    texts = {document.id: office.read([f"{document.id}:0"]).chunks[0].text for document in office.documents()}
    assert texts.keys() == SEEN.keys()
    assert [seen for name, text in texts.items() for seen in SEEN[name] if seen not in text] == []


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case["id"])
def test_a_question_finds_its_answer_in_the_file_that_has_it(office, case):
    answer = create_arag_agent("extractive", office).invoke(asked(case["question"]))["answer"]
    first = answer.partition("\n")[0]
    assert case["answer"] in answer
    assert f"[{case['supporting'][0]}:0]" in first
