"""The archive in examples/waterway: its files, and the answers to its questions, computed again from the files."""

import csv
import datetime as dt
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import docx
import openpyxl
import pptx
import pypdf
import pytest
from make_archive import filler_records, write_archive, write_questions
from waterway_documents import build_documents
from waterway_files import Table, write_documents
from waterway_questions import KINDS
from waterway_world import build_world

from arag.evaluation.datasets import load_questions
from arag.ingest.documents import Document as IngestedDocument
from arag.ingest.formats import Readers
from arag.ingest.reading import SourceReader

EXAMPLE = Path(__file__).parents[1] / "examples" / "waterway"
# Of the contents of all documents. Whoever changes the documents writes the questions again, and this.
DIGEST = "ba19c6116c3fb528"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    write_archive(folder, filler=50)
    return folder


@pytest.fixture(scope="module")
def questions():
    entries = json.loads((EXAMPLE / "questions.json").read_text("utf-8"))
    return {entry["id"]: entry for entry in entries}


def test_the_same_seed_gives_the_same_questions(tmp_path):
    write_questions(tmp_path)
    for name in ("questions.json", "look-ups.json"):
        assert (tmp_path / name).read_text("utf-8") == (EXAMPLE / name).read_text("utf-8")


def test_the_same_seed_gives_the_same_documents():
    documents = build_documents(build_world())
    assert hashlib.sha256(repr(documents).encode()).hexdigest()[:16] == DIGEST


def test_files_are_the_same_byte_for_byte(archive, tmp_path):
    of_each_format = {Path(document.path).suffix: document for document in build_documents(build_world())}
    write_documents(list(of_each_format.values()), tmp_path)
    for document in of_each_format.values():
        assert (tmp_path / document.path).read_bytes() == (archive / document.path).read_bytes()


def test_the_archive_is_as_its_readme_says(archive, questions):
    readme = (EXAMPLE / "README.md").read_text("utf-8")
    paths = [path for path in archive.rglob("*") if path.is_file() and path.name != "filler.jsonl"]
    assert f"writes {len(paths)} documents in nine formats" in readme
    assert len({path.suffix for path in paths}) == 9
    assert Counter(entry["kind"] for entry in questions.values()) == dict.fromkeys(KINDS, 4)
    assert all(f"| `{kind}` |" in readme for kind in KINDS)


def test_questions_can_be_loaded_and_name_documents_that_exist(archive):
    for name in ("questions.json", "look-ups.json"):
        loaded = load_questions(EXAMPLE / name)
        entries = json.loads((EXAMPLE / name).read_text("utf-8"))
        assert len(loaded) == len(entries) == 40
        for question, entry in zip(loaded, entries, strict=True):
            assert question.gold_documents or entry["absent"]
            assert all((archive / document).is_file() for document in question.gold_documents)


def test_filler_names_nothing_of_the_archive():
    world = build_world()
    names = {"Sarn", *(town.name for town in world.towns), *(person.name for person in world.people)}
    names |= {firm.name for firm in world.firms} | {lock.name for lock in world.locks}
    names |= {boat.name for boat in world.boats if " " in boat.name}
    texts = [f"{record['title']}\n{record['text']}" for record in filler_records(5000)]
    assert len(set(texts)) == 5000
    together = "\n".join(texts)
    assert [name for name in names if name in together] == []


# --- answers, computed again from the files ---


def test_owners_in_both_registers(archive, questions):
    owners = {}
    for year in (2023, 2024):
        rows = _sheet_rows(archive / f"registers/boats-{year}.xlsx")
        owners[year] = {row["Registration"]: row["Owner"] for row in rows}
    changed = [boat for boat, owner in owners[2024].items() if owners[2023][boat] != owner]
    assert questions["counting-3"]["number"] == len(changed)


def test_average_length_of_a_firm_s_boats(archive, questions):
    rows = _sheet_rows(archive / "registers/boats-2024.xlsx")
    lengths = [row["Length (m)"] for row in rows if row["Owner"] == "Merrow Sand and Gravel"]
    average = sum(lengths) / len(lengths)
    number = questions["arithmetic-3"]["number"]
    assert number["value"] == pytest.approx(average, abs=0.045)  # not near the middle of two tenths


def test_oldest_boat_of_a_town_s_firms(archive, questions):
    firms = [name if isinstance(name, str) else name[0] for name in questions["list-1"]["answers"]]
    rows = [row for row in _sheet_rows(archive / "registers/boats-2024.xlsx") if row["Owner"] in firms]
    oldest = min(rows, key=lambda row: row["Built"])
    assert questions["comparison-3"]["answer"] == oldest["Name"]


def test_tonnes_of_three_months(archive, questions):
    tonnes = 0
    for month in ("07", "08", "09"):
        table = docx.Document(archive / f"traffic/2024/report-2024-{month}.docx").tables[0]
        rows = [[cell.text for cell in row.cells] for row in table.rows]
        tonnes += next(int(row[3]) for row in rows if row[0].startswith("Grain Lock"))
    assert questions["arithmetic-1"]["number"] == tonnes


def test_income_from_moorings(archive, questions):
    income = Counter()
    for year in (2023, 2024):
        for quarter in range(1, 5):
            for row in _sheet_rows(archive / f"accounts/{year}-q{quarter}.xlsx"):
                if row.get("Item") == "Mooring fees":
                    income[year] += row["Crowns"]
    assert questions["arithmetic-2"]["number"] == abs(income[2024] - income[2023])


def test_unpaid_fees(archive, questions):
    with (archive / "registers/moorings-2024.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    fees = [int(row["Yearly fee"]) for row in rows if row["Town"] == "Garth Hollin" and row["Paid"] == "no"]
    assert questions["arithmetic-4"]["number"] == sum(fees)


def test_votes_and_attendance_in_minutes(archive, questions):
    lost = Counter()
    missed = Counter()
    for path in sorted((archive / "board").glob("minutes-*")):
        text = _minutes_text(path)
        lost[path.stem.removeprefix("minutes-")] = len(re.findall(r"\blost$", text, re.MULTILINE))
        apologies = re.search(r"Apologies: ([^.]*)\.", text)[1].replace("\n", " ")
        missed.update(apologies.split(", "))
    assert questions["counting-2"]["number"] == sum(count for day, count in lost.items() if day.startswith("2023"))
    days = [dt.date.fromisoformat(day) for day, count in lost.items() if day.startswith("2024") and not count]
    assert [names[0] for names in questions["negation-2"]["answers"]] == [
        f"{day.day} {day:%B} {day.year}" for day in days
    ]
    del missed["none"]
    assert questions["comparison-4"]["answer"] == missed.most_common(1)[0][0]


def test_parts_rated_poor(archive, questions):
    reports = [_pdf_text(path) for path in (archive / "inspections").glob("*.pdf")]
    poor = [text for text in reports if re.search(r"^poor$", text.partition("Findings")[0], re.MULTILINE)]
    assert questions["counting-4"]["number"] == len(poor)


def test_gates_of_oak(archive, questions):
    oak = 0
    for path in (archive / "locks").iterdir():
        text = path.read_text("utf-8")
        oak += bool(re.search(r"gates (are|were built) of oak|oaken|timber \(oak\)", text))
    assert questions["counting-1"]["number"] == oak - 3  # three were replaced, as mails and reports say


def test_highest_lock(archive, questions):
    rises = {}
    for path in (archive / "locks").iterdir():
        text = path.read_text("utf-8")
        metres = re.search(r"(?:lifted|gains) (\d\.\d\d) m", text)
        rises[path.stem] = float(metres[1]) if metres else int(re.search(r"(\d{3}) (?:cm|centimetres)", text)[1]) / 100
    assert max(rises, key=rises.get) == questions["comparison-1"]["answer"].lower().replace(" ", "-")


def test_slide_with_a_table(archive, questions):
    slides = pptx.Presentation(archive / "safety/briefing-2024-10.pptx").slides
    with_table = [
        place for place, slide in enumerate(slides, start=1) if any(shape.has_table for shape in slide.shapes)
    ]
    assert with_table == [questions["structure-3"]["number"]]


# --- what ingest reads ---


@pytest.fixture(scope="module")
def texts(archive):
    with Readers() as readers:
        items = list(SourceReader(archive, readers).read())
    assert [item for item in items if not isinstance(item, IngestedDocument)] == []
    return {item.id: item.text for item in items}


def test_each_row_of_each_table_is_read(texts):
    missing = []
    for document in build_documents(build_world()):
        lines = texts[document.path].split("\n")
        for block in document.blocks:
            if isinstance(block, Table):
                missing += [(document.path, row) for row in block.rows if not any(_holds(line, row) for line in lines)]
    assert missing == []


def test_answers_of_look_ups_are_in_the_documents_they_name(texts):
    entries = json.loads((EXAMPLE / "look-ups.json").read_text("utf-8"))
    for entry in entries:
        words = re.sub(r"^(a|the) ", "", entry["answer"]).lower().split()
        read = " ".join(texts[path] for path in entry["supporting"]).lower()
        assert all(word in read for word in words), entry["id"]


def _holds(line, row):
    """Return whether a line has the cells of a row in their order, each perhaps after the name of its column."""
    cells = [str(cell).removesuffix(".0") for cell in row if cell != ""]
    return re.search(r"\W(.*\W)?".join(map(re.escape, cells)), line) is not None


def _sheet_rows(path):
    rows = []
    for sheet in openpyxl.load_workbook(path):
        columns, *values = sheet.iter_rows(values_only=True)
        rows += [dict(zip(columns, row, strict=True)) for row in values]
    return rows


def _pdf_text(path):
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)


def _word_text(path):
    word = docx.Document(path)
    lines = [paragraph.text for paragraph in word.paragraphs]
    for table in word.tables:
        lines += [cell.text for row in table.rows for cell in row.cells]
    return "\n".join(lines)


def _minutes_text(path):
    return _pdf_text(path) if path.suffix == ".pdf" else _word_text(path)
