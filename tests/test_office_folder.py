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
    "harbour-report.pdf": (
        "Report of the Harbour Master for 1881",
        "the old crane was condemned in March",
        "Accidents",
        "Her master, Edrin Pascoe, paid for the repair",
        "Tilda Morrowe, Harbour Master",
    ),
    "regatta-minutes.docx": (
        "# Minutes of the Regatta Committee",
        "In the chair: Anselka Varrowby.",
        "# The course",
        "- In fog the race is held on the next day.",
        "Class: Rowing boats | Prize: a barrel of Blind Admiral | Given by: the press-houses of Brannisey",
        "Carried by five votes to two.",
    ),
    "dues.xlsx": (
        "# Dues 1907",
        "Vessel: Constant Anna | Arrived: 1907-06-30 | Tons: 154 | Dues in marks: 7.25 | Share of the year: 27.8%",
        "# Berths",
        "Berth: Coal Steps | Depth in feet: 11 | Keeper: Maren Tolk",
    ),
    "new-lamp.pptx": (
        "# A new lamp for the Vellin Light",
        "Talk to the Harbour Office, January 1882",
        "Notes: Begin with the wreck of the Marigold. Do not mention the cost before the third slide.",
        "- Its wick is trimmed every four hours",
        "Lamp: Electric arc | Price: 2,900 marks | Reach: unknown",
        "Category: Autumn | Nights in 1880: 19 | Nights in 1881: 27",
    ),
    "coal-order.eml": (
        "# Coal for the winter",
        "From: Maren Tolk <coal@port-ammerel.example>",
        "To: Tilda Morrowe <harbour@port-ammerel.example>",
        "so please keep the grey bin free.",
        "Attachment: offer.txt",
        "Delivery to the Coal Steps.",
    ),
    "notice-board.html": (
        "# Notice board",
        "## Lost and found",
        "engraved “O. T.”. It may be fetched from the tide clock’s keeper.",
        "Day: Tuesday | Leaves: 7:30 | Returns: 16:00",
    ),
    "keepers.md": ("## Rules", "He is relieved by the Skellavy boat, weather permitting.", "older than the tower."),
    "crew.csv": ("Name: Odvar Felisk | Post: pilot | Since: 1868 | Speaks: Lanthry, some Danish",),
    "letter-from-amoy.txt": ("林美华的家书", "守塔人冬天不下山。", "女儿美华，一八八一年六月二十日"),
}


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    with ingest(EXAMPLES / "office", tmp_path_factory.mktemp("office") / "index", embedder=HashEmbeddings()) as index:
        yield index


def test_each_file_of_the_folder_is_a_document(office):
    assert [document.id for document in office.documents()] == sorted(SEEN)


@pytest.mark.parametrize("name", SEEN)
def test_what_a_person_sees_in_a_file_is_in_its_text(office, name):
    text = " ".join(office.read([f"{name}:0"]).chunks[0].text.split()).casefold()
    assert [seen for seen in SEEN[name] if " ".join(seen.split()).casefold() not in text] == []


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case["id"])
def test_a_question_finds_its_answer_in_the_file_that_has_it(office, case):
    answer = create_arag_agent("extractive", office).invoke(asked(case["question"]))["answer"]
    first = answer.partition("\n")[0]
    assert case["answer"] in answer
    assert f"[{case['supporting'][0]}:0]" in first
