"""SQL over the tables of all documents: what is found in files, how values are read, and what no statement can do."""

from __future__ import annotations

import csv
import json
import random
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag import Scope, make_tools
from arag.errors import InputError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document
from arag.ingest.formats.tables import table_lines
from arag.ingest.pipeline import ingest, run_ingest
from arag.retrieval.corpus.show_tables import show_tables
from arag.retrieval.corpus.table_rows import find_tables
from arag.retrieval.corpus.values import find_format
from arag.retrieval.tools.tables import QueryTables
from arag.text.tokens import count_tokens
from fakes import HashEmbeddings
from selection import EVERYWHERE, slow_except

MONTHS = ("January", "February", "March", "April")
HARVEST = random.Random(5)
ROWS = [
    {
        "Region": HARVEST.choice(["North", "South", "East"]),
        "Grower": f"Grower {HARVEST.randrange(9)}",
        "Sacks": HARVEST.randrange(5_000),
        "Price": HARVEST.randrange(100, 9_000) / 100,
        "Delivered": date(2019, month, HARVEST.randrange(1, 29)),
        "Lot": f"{HARVEST.randrange(100_000):05}",
    }
    for month in (1, 2, 3, 4)
    for _ in range(60)
]


def write_reports(folder):
    """Write a report for each month as a file of rows, with numbers and dates as people write them."""
    folder.mkdir(parents=True)
    for number, month in enumerate(MONTHS):
        with (folder / f"harvest-{month.lower()}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(ROWS[0])
            for row in ROWS[60 * number : 60 * number + 60]:
                shown = {"Sacks": f"{row['Sacks']:,}", "Price": f"€ {row['Price']:.2f}"}
                writer.writerow((row | shown | {"Delivered": f"{row['Delivered']:%d.%m.%Y}"}).values())
    return folder


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    write_reports(folder / "files")
    (folder / "files" / "growers.md").write_text(
        "# Growers\n\n| Grower | Village | Members |\n| --- | :---: | --: |\n"
        + "".join(f"| Grower {n} | {['Ost', 'West'][n % 2]}dorf \\| Tal | **{n}** |\n" for n in range(9)),
        encoding="utf-8",
    )
    with ingest(folder / "files", folder / "index", embedder=HashEmbeddings()) as index:
        yield index


@pytest.fixture
def read_table(make_index):
    """A function that returns the only table of a file: its columns and its rows."""

    def read_table(name, text, sql="SELECT * FROM {}"):
        index = make_index({name: text})
        (table,) = index.query_tables().tables
        results = index.query_tables(sql.format(table.name))
        hidden = {"chunk_id", "document", "sheet"}
        places = [place for place, column in enumerate(results.columns) if column not in hidden]
        return [results.columns[place] for place in places], [
            tuple(row[place] for place in places) for row in results.rows
        ]

    return read_table


# --- what is found ---


def test_reports_with_the_same_columns_are_one_table(reports):
    harvest, growers = sorted(reports.query_tables().tables, key=lambda table: -table.rows)
    assert (harvest.name, harvest.rows, len(harvest.documents)) == ("harvest", 240, 4)
    assert [(column.name, column.kind, column.unit) for column in harvest.columns] == [
        ("region", "text", ""),
        ("grower", "text", ""),
        ("sacks", "number", ""),
        ("price", "number", "€"),
        ("delivered", "date", ""),
        ("lot", "text", ""),
    ]
    assert growers.name == "growers"
    assert growers.samples[1] == ("Grower 1", "Westdorf | Tal", 1)


NOTE = """<table border="0" summary="Note"><tr><td rowspan="2" width="25"><img alt="[Note]" src="note.png"></td>
<th align="left">Note</th></tr><tr><td><p>Oil is dear.</p><p>Rye is not.</p></td></tr></table>"""
CALLOUTS = """<table><tr><td width="5%"><a href="#1"><img src="1.png" alt="1"></a></td><td>The lamp burns.</td></tr>
<tr><td><img src="2.png" alt="(2)"></td><td>The oil is dear.</td></tr></table>"""
QUOTATION = """<table class="blockquote"><tr><td width="10%">&nbsp;</td><td>Oil is dear.</td><td>&nbsp;</td></tr>
<tr><td>&nbsp;</td><td colspan="2" align="right">Ann Lee</td></tr></table>"""


@pytest.mark.parametrize("table", [NOTE, CALLOUTS, QUOTATION])
def test_a_table_that_lays_out_texts_is_none(make_index, table):
    index = make_index({"a.html": f"<h1>Lamps</h1><p>They burn.</p>{table}<p>So it is.</p>"})
    assert index.query_tables().tables == ()
    assert "|" not in "".join(chunk.text for chunk in index.mget(list(index.chunk_ids())))


@pytest.mark.parametrize(
    "lines",
    [
        "|WARNING: the oil is dear.\n|It may burn.",
        "1.1 | Oil | . . . . . . . | 4\n1.2 | Rye | . . . . . . . | 9",
        "Oil ........ | 4\nRye ........ | 9",
    ],
)
def test_texts_in_a_frame_and_tables_of_contents_are_no_tables(make_index, lines):
    assert make_index({"a.txt": f"The lamps burn.\n\n{lines}\n\nSo it is.\n"}).query_tables().tables == ()


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<tr><td><img src='a.png' alt='E = mc²'><td>(3.1)<tr><td><img src='b.png' alt='F = ma'><td>(3.2)", 2),
        ("<tr><th>Sign<th>Meaning<tr><td><img src='a.png'><td>open<tr><td><img src='b.png'><td>closed", 2),
    ],
)
def test_a_table_with_pictures_for_values_is_one(make_index, table, rows):
    (found,) = make_index({"a.html": f"<h1>Lamps</h1><table>{table}</table>"}).query_tables().tables
    assert found.rows == rows


def test_sums_groups_dates_extremes_and_joins_are_right(reports):
    sums = defaultdict(int)
    for row in ROWS:
        sums[row["Region"]] += row["Sacks"]
    assert dict(reports.query_tables("SELECT region, sum(sacks) FROM harvest GROUP BY region").rows) == dict(sums)
    dearest = max(ROWS, key=lambda row: row["Price"])
    (found,) = reports.query_tables("SELECT lot, price FROM harvest ORDER BY price DESC LIMIT 1").rows
    assert found == (dearest["Lot"], dearest["Price"])
    in_spring = sum(date(2019, 3, 10) <= row["Delivered"] <= date(2019, 4, 9) for row in ROWS)
    sql = "SELECT count(*) FROM harvest WHERE delivered BETWEEN '2019-03-10' AND '2019-04-09'"
    assert reports.query_tables(sql).rows == ((in_spring,),)
    members = Counter(row["Grower"] for row in ROWS if int(row["Grower"][-1]) > 5)
    sql = (
        "SELECT h.grower, count(*) FROM harvest h JOIN growers g ON g.grower = h.grower WHERE g.members > 5 GROUP BY 1"
    )
    assert dict(reports.query_tables(sql).rows) == dict(members)


def test_the_tables_of_an_office_are_few_lines(office, office_folder):
    results = office.query_tables()
    shown = show_tables(results)
    tables = {table.name: table for table in results.tables}
    assert {".pdf", ".docx", ".pptx", ".xlsx", ".html", ".csv", ".md"} <= {
        Path(document_id).suffix for table in tables.values() for document_id in table.documents
    }
    with (office_folder / "registers" / "tickets.csv").open(newline="", encoding="utf-8") as file:
        solved = Counter(row["Solved by"] for row in csv.DictReader(file))
    assert dict(office.query_tables("SELECT solved_by, count(*) FROM tickets GROUP BY 1").rows) == dict(solved)
    assert office.query_tables("SELECT count(*), count(DISTINCT document) FROM budget").rows == ((12, 2),)
    assert office.query_tables('SELECT max("交货期") > 0 FROM 供应商名录').rows == ((1,),)
    assert len(tables) > 15
    assert count_tokens(shown.text) < 1_400  # these are estimates


def test_a_workbook_has_its_sheets_in_each_row(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    for year, sheet in ((2019, workbook.active), (2020, workbook.create_sheet())):
        sheet.title = f"Year {year}"
        sheet.append(["Berth", "Ships", "Share", "Open", "Remark"])
        sheet.append(["Rope Quay", year, 0.5, True, None])
        sheet["C2"].number_format = "0%"
        sheet.append(["Coal Steps", None, 0.25, False, None])
        sheet.append([None, 7, None, None, None])
    workbook.save(tmp_path / "berths.xlsx")
    with ingest(tmp_path / "berths.xlsx", tmp_path / "index", embedder=HashEmbeddings()) as index:
        results = index.query_tables("SELECT * FROM berths")
        assert results.columns == ("chunk_id", "berth", "ships", "share", "open", "remark", "document", "sheet")
        assert [row[1:6] + row[7:] for row in results.rows[:3]] == [
            ("Rope Quay", 2019, 50, "TRUE", None, "Year 2019"),
            ("Coal Steps", None, 0.25, "FALSE", None, "Year 2019"),
            (None, 7, None, None, None, "Year 2019"),
        ]
        sql = "SELECT sheet, sum(ships) FROM berths GROUP BY sheet"
        assert index.query_tables(sql).rows == (("Year 2019", 2026), ("Year 2020", 2027))


def test_a_table_of_many_chunks_is_one_and_rows_have_their_chunks(make_index):
    lines = ["Name,Text,Number", *(f"n{n},He came {n}. He left. Then he came again.,{n}" for n in range(300))]
    index = make_index({"long.csv": "\n".join(lines)}, chunk_tokens=60)
    results = index.query_tables("SELECT name, text, number, chunk_id FROM long")
    assert [row[:3] for row in results.rows] == [
        (f"n{n}", f"He came {n}. He left. Then he came again.", n) for n in range(300)
    ]
    chunks = dict(zip(index.chunk_ids(), index.mget(list(index.chunk_ids())), strict=True))
    assert len(chunks) > 50
    assert all(f"Name: {name} " in chunks[chunk_id].text for name, _, _, chunk_id in results.rows)


@pytest.mark.parametrize(
    ("name", "text", "columns", "rows"),
    [
        ("a.csv", "A,B\nx | y,1\nz: w,2\n,3\n", "a b", [("x | y", 1), ("z: w", 2), (None, 3)]),
        ("a.csv", "Ratio: a,Ratio: b\n1,2\n,4\n", "ratio_a ratio_b", [(1, 2), (None, 4)]),
        ("a.csv", "Sum,Sum,sum\n1,2,3\n4,5,6\n", "sum sum_2 sum_3", [(1, 2, 3), (4, 5, 6)]),
        ("a.csv", ",Jan,Feb\nNorth,1,2\nSouth,3,\n", "label jan feb", [("North", 1, 2), ("South", 3, None)]),
        (
            "a.csv",
            "Order,Group,2020,2021\nx,y,1,2\nz,,2,3\n",
            "order_ group_ _2020 _2021",
            [("x", "y", 1, 2), ("z", None, 2, 3)],
        ),
        ("a.csv", "Chunk id,Document,Sheet\n1,2,3\n4,5,6\n", "chunk_id_2 document_2 sheet_2", [(1, 2, 3), (4, 5, 6)]),
        (
            "a.csv",
            "Name,Age,City\nx,,\ny,,\nz,5,\n",
            "name age city",
            [("x", None, None), ("y", None, None), ("z", 5, None)],
        ),
        ("a.md", "|A|B|\n|-|-|\n|x||\n|`y`|2|\n", "a b", [("x", None), ("y", 2)]),
        ("a.md", "A | B\n--- | ---\nx | 1\ny | 2\n", "a b", [("x", 1), ("y", 2)]),
        (
            "a.md",
            "| Born | Died |\n|---|---|\n| 1850 | 1910 |\n| 1851 | 1920 |\n",
            "born died",
            [(1850, 1910), (1851, 1920)],
        ),
        ("a.txt", "Rye | 12\nOats | 7\n", "c1 c2", [("Rye", 12), ("Oats", 7)]),
        (
            "a.txt",
            "Grain | 1980 | 1981\nRye | 12 | 13\nOats | 7 | (8)\n",
            "grain _1980 _1981",
            [("Rye", 12, 13), ("Oats", 7, -8)],
        ),
        ("a.txt", "1980 | 1981\nRye | 12 | 13\nOats | 7 | 8\n", "label _1980 _1981", [("Rye", 12, 13), ("Oats", 7, 8)]),
        (
            "a.csv",
            "Region,Dues,,Ships\n,1920,1921,\nNorth,1,2,3\nSouth,,5,\n",
            "region dues_1920 dues_1921 ships",
            [("North", 1, 2, 3), ("South", None, 5, None)],
        ),
        (
            "a.txt",
            "Fee | 2022 |  | 2023 |\n| Plan | Real | Plan | Real\nFee: Heat | 2022 Plan: 4 | 2023 Real: (3)\n",
            "fee _2022_plan _2022_real _2023_plan _2023_real",
            [("Heat", 4, None, None, -3)],
        ),
        (
            "a.csv",
            "Mill,1920,,1921,,1922,\n,Rye,Oats,Rye,Oats,Rye,Oats\nNorth,1,2,3,4,5,6\nSouth,,8,9,,,7\n",
            "mill _1920_rye _1920_oats _1921_rye _1921_oats _1922_rye _1922_oats",
            [("North", 1, 2, 3, 4, 5, 6), ("South", None, 8, 9, None, None, 7)],
        ),
        (
            "a.csv",
            "In millions,Plan,Actual\nCoal,4,5\nRope and twine,6,7\n",
            "in_millions plan actual",
            [("Coal", 4, 5), ("Rope and twine", 6, 7)],
        ),
        ("a.txt", "k: v | 12\nk: w | 7\n", "c1 c2", [("k: v", 12), ("k: w", 7)]),
        ("a.md", "Pier | Ships\n\nPier: x\n\nPier: y | Ships: 2\n", "pier ships", [("x", None), ("y", 2)]),
        (
            "a.csv",
            "Item,Sacks\nNorth\nRye,1\nOats,2\nSouth\nRye,3\n",
            "item sacks",
            [("North", None), ("Rye", 1), ("Oats", 2), ("South", None), ("Rye", 3)],
        ),
        (
            "a.html",
            "<table><tr><th>Day<th>Fare</tr><tr><td>Mon<td>1'200.50</tr><tr><td>Tue<td>(3)</tr></table>",
            "day fare",
            [("Mon", 1200.5), ("Tue", -3)],
        ),
        (
            "a.html",
            "<table><tr><td>cat log | grep oil<td>shows the lamps<tr><td># halt<td>stops the mill</table>",
            "c1 c2",
            [("cat log | grep oil", "shows the lamps"), ("# halt", "stops the mill")],
        ),
        ("a.csv", "1,a | b\n2,| c |\n3,|\n4,\\d|e\n", "c1 c2", [(1, "a | b"), (2, "| c |"), (3, "|"), (4, "\\d|e")]),
        ("a.csv", "A | B,C\n1 | 2,x\n5,y | z\n", "a_b c", [("1 | 2", "x"), (5, "y | z")]),
        ("a.csv", "A,,C\nx,y | z,1\nv,w,2\n", "a c2 c", [("x", "y | z", 1), ("v", "w", 2)]),
        (
            "a.csv",
            "07,Ida,pilot,3.5,11 May 2016\n08,Jon,clerk since 2020,0.5,02 Jun 2020\n09,Ann,,2.5,01 Feb 2022\n",
            "c1 c2 c3 c4 c5",
            [
                ("07", "Ida", "pilot", 3.5, "2016-05-11"),
                ("08", "Jon", "clerk since 2020", 0.5, "2020-06-02"),
                ("09", "Ann", None, 2.5, "2022-02-01"),
            ],
        ),
        (
            "a.txt",
            "Rye | 1 | sold in 2019\nOats | 2.5 | of 2004, sold in 2019\nHemp | 3 | unsold\n",
            "c1 c2 c3",
            [("Rye", 1, "sold in 2019"), ("Oats", 2.5, "of 2004, sold in 2019"), ("Hemp", 3, "unsold")],
        ),
    ],
)
def test_the_rows_of_a_table(read_table, name, text, columns, rows):
    found = read_table(name, text)
    assert found == ([f"{column}" for column in columns.split()], rows)


@pytest.mark.parametrize("text", ["One line | no table.", "```\ncat a | grep b\ncat c | grep d\n```", "No bars."])
def test_texts_are_no_tables(make_index, text):
    index = make_index({"a.md": text})
    assert index.query_tables().tables == ()
    assert show_tables(index.query_tables()).text == "There are no tables."
    assert index.query_tables("SELECT * FROM tables").rows == ()
    with pytest.raises(InputError, match="there is no table x; there are no tables at all"):
        index.query_tables("SELECT 1 FROM x")


CELLS = ["", "x", "a | b", "k: v", "12", "He came. He left.", "Name: z", "see | q: r", "-", "| x", "y |", "1880"]
NAMES = ["Name", "Age", "City", "Ratio: a", "Ratio: b", "Sum", "Notes.", "k"]


@given(
    st.lists(st.sampled_from(NAMES), min_size=3, max_size=6, unique=True),
    st.lists(st.lists(st.sampled_from(CELLS), min_size=6, max_size=6), min_size=2, max_size=6),
    st.sampled_from([15, 1_000]),
)
def test_any_cells_are_found_as_they_were_written(names, rows, chunk_tokens):
    written = [{name: cell for name, cell in zip(names, row, strict=False) if cell} for row in rows]
    rows = [list(map(row.get, names, [""] * len(names))) for row in written if row]
    text = "\n".join(["Some words first.", "", *table_lines([names, *rows], header=True), "", "And after it."])
    document = Document(id="d", title="", text=text, source="")
    chunks = chunk_document(document, chunk_tokens=chunk_tokens, count=lambda texts: [len(t) // 4 + 1 for t in texts])
    found = [row.cells for table in find_tables(chunks) for row in table.rows]
    assert found == [row for row in written if row]


# --- values ---


def read_column(*cells):
    column = find_format([("d", cell, 1) for cell in cells])
    return column.kind, column.unit, [column.read(cell, "d") for cell in cells]


@pytest.mark.parametrize(
    ("cells", "kind", "unit", "values"),
    [
        (["1,234", "5"], "number", "", [1234, 5]),
        (["1,234", "0,75"], "number", "", [1.234, 0.75]),
        (["1.234", "5"], "number", "", [1.234, 5]),
        (["1.234", "1.234,5"], "number", "", [1234, 1234.5]),
        (["1,234,567", "12.5"], "number", "", [1234567, 12.5]),
        (["1.234.567", "12,5"], "number", "", [1234567, 12.5]),
        (["12,34,567", "1 234", "1 234,5"], "number", "", [1234567, 1234, "1 234,5"]),
        (["-3", "−3", "(3)", "+3", "- 3"], "number", "", [-3, -3, -3, 3, -3]),
        (["45%", "7.5 %"], "number", "%", [45, 7.5]),
        (["€ 12.50", "€3", "4"], "number", "€", [12.5, 3, 4]),
        (["12 EUR", "3 EUR"], "number", "EUR", [12, 3]),
        (["-$5", "$-5", "($5)"], "number", "$", [-5, -5, -5]),
        (["$5", "€5"], "text", "", ["$5", "€5"]),
        (["12 kg", "1.5 kg"], "number", "kg", [12, 1.5]),
        (["12 kg", "1.5 t"], "text", "", ["12 kg", "1.5 t"]),
        (["3.5V", "5V"], "number", "V", [3.5, 5]),
        (["230V", "12V"], "number", "V", [230, 12]),
        (["3.5A", "2A"], "number", "A", [3.5, 2]),
        (["20 °C", "-3 °C"], "number", "°C", [20, -3]),
        (["4GB", "16GB"], "number", "GB", [4, 16]),
        (["300s", "30s"], "number", "s", [300, 30]),
        (["1月", "12月"], "number", "月", [1, 12]),
        (["6H", "6H"], "text", "", ["6H", "6H"]),
        (["3A", "2A", "2"], "text", "", ["3A", "2A", "2"]),
        (["10b", "-"], "text", "", ["10b", "-"]),
        (["007", "12"], "text", "", ["007", "12"]),
        (["0", "0.5", "12"], "number", "", [0, 0.5, 12]),
        (["+49 30 123456", "12"], "text", "", ["+49 30 123456", "12"]),
        (["1234567890123456789", "5"], "text", "", ["1234567890123456789", "5"]),
        (["5", "-", "n/a", "–", "7"], "number", "", [5, None, None, None, 7]),
        (["5", "6", "unknown"], "number", "", [5, 6, "unknown"]),
        (["5", "6", "0.5 12", "12.34'12"], "number", "", [5, 6, "0.5 12", "12.34'12"]),
        (["A1", "B2", "3"], "text", "", ["A1", "B2", "3"]),
        (["1e+20", "2"], "number", "", [1e20, 2]),
        (["3.9", "3.10", "3.11"], "text", "", ["3.9", "3.10", "3.11"]),
        (["0.98", "0.99", "0.100", "1"], "text", "", ["0.98", "0.99", "0.100", "1"]),
        (["3.8", "3.9", "3.10", "150"], "number", "", [3.8, 3.9, 3.1, 150]),
        (["9.9", "9.10", "12.5", "101.3"], "number", "", [9.9, 9.1, 12.5, 101.3]),
        (["9.8", "9.9", "9.10", "101.3"], "number", "", [9.8, 9.9, 9.1, 101.3]),
        (["0.9", "0.10", "0.5"], "number", "", [0.9, 0.1, 0.5]),
        (["2024.9", "2024.10", "2024.11", "1.2"], "text", "", ["2024.9", "2024.10", "2024.11", "1.2"]),
        (["3.50", "12.00", "3.9", "4.10"], "number", "", [3.5, 12, 3.9, 4.1]),
        (["0.9", "0.10", "0.05"], "number", "", [0.9, 0.1, 0.05]),
        (["9.9%", "9.10%"], "number", "%", [9.9, 9.1]),
        (["3-5", "1/2", "1.2.3", "10:30"], "text", "", ["3-5", "1/2", "1.2.3", "10:30"]),
        (["１２", "5"], "number", "", ["１２", 5]),
        (["31.03.2024", "1.4.2024"], "date", "", ["2024-03-31", "2024-04-01"]),
        (["31/03/2024", "01/04/2024"], "date", "", ["2024-03-31", "2024-04-01"]),
        (["03/31/2024", "04/01/2024", "-"], "date", "", ["2024-03-31", "2024-04-01", None]),
        (["03/04/2024", "05/06/2024"], "text", "", ["03/04/2024", "05/06/2024"]),
        (["31 March 2024", "Apr 1, 2024", "2024/04/02"], "date", "", ["2024-03-31", "2024-04-01", "2024-04-02"]),
        (["2024年3月31日"], "date", "", ["2024-03-31"]),
        (["March 2024", "Sept. 2024"], "date", "", ["2024-03", "2024-09"]),
        (["30.02.2024"], "text", "", ["30.02.2024"]),
        (["31.03.2024", "soon"], "text", "", ["31.03.2024", "soon"]),
        ([None, "-"], "text", "", [None, "-"]),
    ],
    ids=str,
)
def test_the_values_of_a_column(cells, kind, unit, values):
    assert read_column(*cells) == (kind, unit, values)


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("Version", ["3.0", "3.11"], "text"),
        ("Python version", ["3.0", "3"], "text"),
        ("Version de Python", ["2.7"], "text"),
        ("Programmversion", ["10.0"], "text"),
        ("软件版本", ["1.0"], "text"),
        ("Since", ["2.10", "2.4"], "text"),
        ("Version", ["1", "2", "12"], "number"),  # nothing is lost, and 12 comes after 2
        ("Version", ["3,5", "4,0"], "number"),
        ("Conversion", ["3.5", "4.0"], "number"),
        ("Heat release", ["3.5", "4.0"], "number"),
        ("Bioconversion", ["12.5", "3.4", "9.0"], "number"),
        ("Acetabular anteversion", ["12.5", "3.4"], "number"),
        ("Temperaturinversion", ["12.5", "3.4"], "number"),
        ("Downloads per version", ["12.5", "3.4"], "number"),
        ("Cost of each version", ["12.5", "3.4"], "number"),
        ("Kosten pro Programmversion", ["12.5", "3.4"], "number"),
        ("Version of Python", ["3.5", "3.4"], "text"),
        ("Version par défaut", ["3.5", "3.4"], "text"),
        ("Softwareversion", ["3.5", "3.4"], "text"),
        ("Wrapperversion", ["3.5", "3.4"], "text"),
        ("Javaversion", ["3.5", "3.4"], "text"),
    ],
)
def test_versions_stay_as_they_are_written(name, cells, kind):
    column = find_format([("d", cell, 1) for cell in cells], name)
    assert column.kind == kind
    if kind == "text":
        assert [column.read(cell, "d") for cell in cells] == cells


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=8),
    st.sampled_from([(",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("", ".")]),
    st.sampled_from(["{}", "{} %", "€ {}", "{} t"]),
)
def test_written_numbers_are_read(numbers, marks, form):
    grouping, decimal_mark = marks
    cells = []
    for number in numbers:
        shown = f"{number:,.2f}".translate({ord(","): grouping, ord("."): decimal_mark})
        cells.append(form.format(shown))
    assert read_column(*cells)[2] == [float(number) for number in numbers]


@given(st.lists(st.text(max_size=12), max_size=5))
def test_no_cell_fails(cells):
    *_, values = read_column(*cells)
    for cell, value in zip(cells, values, strict=True):
        assert value is None or value == cell or isinstance(value, int | float) or date.fromisoformat(value)


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ("a;8,5 m;2.900 kr.\nb;9 m;800 kr.", [(8.5, 2900), (9, 800)]),
        ("a;0,75;1.204\nb;12,5;-1.015", [(0.75, 1204), (12.5, -1015)]),
        ("a;1.234.567,5;2.900\nb;3;4", [(1234567.5, 2900), (3, 4)]),
        ("a;8.5;2.900\nb;9;4", [(8.5, 2.9), (9, 4)]),  # the point is the decimal mark
        ("a;3,4;1,234\nb;5;2,500", [(3.4, 1234), (5, 2500)]),  # numbers of notes
        ("a;8,5;2.900\nb;9;1.5", [(8.5, 2.9), (9, 1.5)]),
        ("a;8;2.900\nb;9;310", [(8, 2.9), (9, 310)]),  # nothing shows the mark
    ],
)
def test_a_decimal_comma_in_another_column_shows_that_points_set_groups_apart(read_table, rows, values):
    _, found = read_table("a.csv", f"Boat;Length;Rent\n{rows}\n", "SELECT length, rent FROM {}")
    assert found == values


def test_documents_may_write_numbers_in_different_ways(make_index):
    english = 'Item,Kilos\na,"1,234.5"\nb,"2,000"\n'
    german = "Item;Kilos\na;1.234,5\nb;2.000\n"
    index = make_index({"english.csv": english, "german.csv": german})
    sql = "SELECT document, sum(kilos) FROM tables_ GROUP BY 1"
    (table,) = index.query_tables().tables
    sql = f"SELECT document, sum(kilos) FROM {table.name} GROUP BY 1"
    assert index.query_tables(sql).rows == (("english.csv", 3234.5), ("german.csv", 3234.5))


# --- statements ---


def test_rows_say_which_chunks_they_are_from(reports):
    chunk_ids = set(reports.chunk_ids())
    for sql, rows, few in [
        ("SELECT lot FROM harvest ORDER BY price DESC LIMIT 2", 2, True),
        ("SELECT max(price) FROM harvest", 1, True),
        ("SELECT region, sum(sacks) FROM harvest GROUP BY region", 3, False),
        ("WITH x AS (SELECT * FROM harvest WHERE sacks > 9) SELECT count(*) FROM x", 1, False),
        ("SELECT h.lot, g.village FROM harvest AS h JOIN growers g USING (grower) LIMIT 5;", 5, True),
        ("SELECT DISTINCT chunk_id FROM growers", 1, True),
        ("SELECT lot, sum(sacks) OVER () FROM harvest -- all", 240, True),
        ("SELECT max(sacks, price) FROM harvest", 240, True),
    ]:
        results = reports.query_tables(sql)
        assert results.total == len(results.rows) == rows, sql
        assert all(ids and chunk_ids.issuperset(ids) for ids in results.chunk_ids), sql
        assert all((len(ids) == 1) == few for ids in results.chunk_ids), sql
        assert all(len(row) == len(results.columns) for row in results.rows)
    assert reports.query_tables("SELECT DISTINCT region FROM harvest").chunk_ids == ((), (), ())
    assert len(reports.query_tables("SELECT region FROM harvest UNION SELECT grower FROM growers").rows) == 12


def test_the_cheapest_lot_is_cited_with_the_chunk_that_it_is_in(reports):
    cheapest = min(ROWS, key=lambda row: row["Price"])
    results = reports.query_tables("SELECT min(price), lot FROM harvest")
    ((chunk_id,),) = results.chunk_ids
    assert results.rows == ((cheapest["Price"], cheapest["Lot"]),)
    assert f"Lot: {cheapest['Lot']}" in reports.get(chunk_id).text


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ('SELECT count("Region") FROM Harvest WHERE "Region" = "nowhere"', ((0,),)),
        ("SELECT COUNT(*) FROM HARVEST WHERE [Region] IN (\"North\", 'South', `region`)", ((240,),)),
        ('SELECT count(*) AS "All sacks" FROM "harvest" ORDER BY "All sacks"', ((240,),)),
        ('SELECT \'it\'\'s\' || " " FROM growers WHERE "Members" = 1 OR \'a"b\' = "a""b" LIMIT 0', ()),
        ("SELECT count(*) FROM growers WHERE members = '3'", ((1,),)),
        ("SELECT count(*) FROM harvest WHERE lot = 12 AND sacks = '-'", ((0,),)),
        ("VALUES (1)", ((1,),)),
        ("```sql\nSELECT count(*) FROM growers;\n```", ((9,),)),
    ],
)
def test_names_and_texts_may_be_in_double_quotes(reports, sql, rows):
    if '" "' in sql:
        sql = sql.replace('" "', "' '")
    assert reports.query_tables(sql).rows == rows


def test_columns_without_an_alias_are_named_as_the_query_has_them(reports):
    results = reports.query_tables('SELECT max("Price"), [Lot] + 1, "Lot" AS "a lot" FROM "harvest"')
    assert results.columns == ('max("Price")', "[Lot] + 1", "a lot")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT regoin FROM harvest", "no column regoin (closest: region); columns of harvest: region, grower, sacks"),
        ('SELECT "Regoin" FROM harvest', "no column Regoin (closest: region)"),
        ("SELECT h.pric FROM harvest h", "no column h.pric (closest: price)"),
        (
            "SELECT name, document FROM tables",
            "no column document (closest: documents); columns of tables: name, rows, ",
        ),
        (
            "SELECT t.names FROM harvest h, [tables] AS t",
            "no column t.names (closest: name); columns of tables: name, rows",
        ),
        ("SELECT g.pric FROM growers g JOIN harvest h", "no column g.pric; columns of growers: "),
        (
            "SELECT g.price FROM growers g JOIN harvest h",
            "no column g.price here, but in harvest; columns of growers: ",
        ),
        ("SELECT price FROM (SELECT sacks FROM harvest)", "no column price here, but in harvest; columns of harvest: "),
        ("SELECT pric FROM growers, harvest", "no column pric (closest: price); columns of growers, harvest: "),
        ("SELECT regoin FROM harvest WHERE grower = 'growers'", "columns of harvest: region"),
        ("SELECT * FROM tablez", "no table tablez (closest: tables); tables: "),
        ("SELECT * FROM harvests", "no table harvests (closest: harvest); tables: "),
        ("SELECT * FROM 'no'", "no table no; tables: "),
        ("SELECT median_of(sacks) FROM harvest", "SQLite says: no such function: median_of"),
        ("SELECT FROM", "syntax error"),
        ("SELECT 1; SELECT 2", "only one SELECT"),
        ("DROP TABLE barns", "only one SELECT over the tables is allowed, and this begins with DROP; the table "),
        ("-- all of it\nharvest", "and this begins with harvest; "),
        ("x" * 10_001, "the query has 10,001 characters: give at most 10,000"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_valid(reports, sql, message):
    with pytest.raises(InputError) as caught:
        reports.query_tables(sql)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 800


def test_within_names_documents(reports):
    sql = "SELECT count(*) FROM harvest"
    assert reports.query_tables(sql, within="harvest march").rows == ((60,),)
    assert reports.query_tables(sql, within="MARCH").rows == ((60,),)
    (table,) = reports.query_tables(within="growers").tables
    assert table.name == "growers"
    with pytest.raises(InputError, match="no document has 'zzz' in its title or id"):
        reports.query_tables(sql, within="zzz")
    assert reports.query_tables(sql, within="growers").rows == ((0,),)
    assert reports.query_tables(sql).rows == ((240,),)
    (table,) = reports.query_tables(within="march").tables
    march = ROWS[120]
    assert (table.name, table.rows, table.documents) == ("harvest", 60, ("harvest-march.csv",))
    assert table.samples[0][:3] == (march["Region"], march["Grower"], march["Sacks"])


# --- hostile statements ---

ENDLESS = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) "
REFUSED = [
    "DELETE FROM harvest",
    "UPDATE harvest SET sacks = 0",
    "INSERT INTO harvest(sacks) VALUES (1)",
    "REPLACE INTO harvest(sacks) VALUES (1)",
    "DROP TABLE harvest",
    "ALTER TABLE harvest RENAME TO x",
    "CREATE TABLE x(y)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE VIEW x AS SELECT 1",
    "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE INDEX x ON harvest(sacks)",
    "CREATE TRIGGER x AFTER INSERT ON harvest BEGIN SELECT 1; END",
    "CREATE TEMP TRIGGER x AFTER INSERT ON harvest BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE x USING fts5(y)",
    "CREATE VIRTUAL TABLE temp.x USING fts4(y)",
    "CREATE VIRTUAL TABLE x USING rtree(a, b, c)",
    "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')",
    "ATTACH '/tmp/x.sqlite' AS x",
    "ATTACH ':memory:' AS x",
    "DETACH main",
    "PRAGMA table_info(harvest)",
    "PRAGMA writable_schema = 1",
    "PRAGMA query_only = 0",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store_directory = '/'",
    "PRAGMA mmap_size = 99999999999",
    "VACUUM",
    "VACUUM INTO '/tmp/x.sqlite'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT x",
    "RELEASE x",
    "WITH x AS (SELECT 1) DELETE FROM harvest",
    "WITH x AS (SELECT 1) INSERT INTO harvest(sacks) SELECT 1",
    "INSERT INTO harvest(sacks) VALUES (1) RETURNING *",
    "DELETE FROM harvest RETURNING *",
    "SELECT 1; DROP TABLE harvest",
    "SELECT 1;; SELECT 2",
    "SELECT 1 /* ; */ ; /* */ DELETE FROM harvest",
    "; DELETE FROM harvest",
    "/* x */ DELETE FROM harvest",
    "-- x\nDELETE FROM harvest",
    "",
    "SELECT load_extension('x')",
    "SELECT load_extension('x', 'y')",
    "SELECT \"load_extension\"('x')",
    "SELECT LOAD_EXTENSION('x') FROM harvest",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'y')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('x', x'00')",
    "SELECT fts5('x')",
    "SELECT fts5(1)",
    "SELECT fts5_source_id()",
    "SELECT randomblob(1000000000)",
    "SELECT zeroblob(1000000000)",
    "SELECT hex(zeroblob(100000000))",
    "SELECT length(zeroblob(1 << 40))",
    "SELECT sqlite_compileoption_get(1)",
    "SELECT sqlite_log(1, 'x')",
    "SELECT sqlite_version()",
    "SELECT last_insert_rowid()",
    "SELECT changes()",
    "SELECT eval('SELECT 1')",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM pragma_table_info('harvest')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_function_list()",
    "SELECT * FROM pragma_hard_heap_limit(1)",
    "SELECT * FROM fts5vocab('x', 'row')",
    "SELECT * FROM temp.sqlite_temp_schema",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM main.sqlite_schema",
    "SELECT * FROM sqlite_sequence",
    "SELECT count(*) FROM sqlite_schema",
    "SELECT count(*) FROM pragma_function_list",
    "SELECT count(*) FROM dbstat",
    "SELECT * FROM generate_series(1, 9)",
    "SELECT * FROM 'file:/etc/passwd?mode=ro'",
    "SELECT replace(printf('%.9999c', 'x'), 'x', printf('%.9999c', 'y'))",
    "SELECT group_concat(printf('%.900000c', 'x')) FROM harvest",
    "SELECT json_group_array(printf('%.900000c', 'x')) FROM harvest",
    "SELECT hex(printf('%.900000c', 'x'))",
    "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "SELECT " + "+".join(["1"] * 4_000),
    "SELECT " + "abs(" * 1_000 + "1" + ")" * 1_000,
    "SELECT " + "NOT " * 2_000 + "1",
    "SELECT " + "-" * 1 + "- 1\n-" * 900,
    "SELECT " + ", ".join(["1"] * 3_000),
    "SELECT 1" + " UNION SELECT 1" * 500,
    "SELECT * FROM " + ", ".join(f"harvest h{n}" for n in range(70)),
    "SELECT 'x' LIKE '" + "%x" * 2_000 + "'",
    "SELECT CASE " + "WHEN 1 THEN CASE " * 300 + "END",
    "SELECT (SELECT " * 300 + "1" + ")" * 300,
    "WITH a0 AS (SELECT 1 AS x), "
    + ", ".join(f"a{n} AS (SELECT a.x FROM a{n - 1} a, a{n - 1} b UNION SELECT 2)" for n in range(1, 30))
    + " SELECT count(*) FROM a29",
    "SELECT 'a",
    'SELECT "a',
    "SELECT [a",
    "SELECT `a",
    "SELECT /* a",
    "SELECT \x00",
    "SELECT ?",
    "SELECT :x, @y, $z",
    "SELECT \ud800",
    "ＳＥＬＥＣＴ １",
    "SELECT größe FROM harvest",
    "SELECT 'é' FROM é",
    "SELECT * FROM 海鸥",
    "\u202eSELECT 1",
    "EXPLODE",
    "SELECT x'123'",
    "SELECT 9 COLLATE nothing",
    "SELECT sum(sacks) OVER nothing FROM harvest",
    "SELECT raise(abort, 'x')",
    "SELECT * FROM json_each('[')",
]
ENDLESS_ONES = [
    f"{ENDLESS} SELECT count(*) FROM t",
    f"{ENDLESS} SELECT sum(length(printf('%.900000c', 'x'))) FROM t",
    f"{ENDLESS} SELECT max(a.x) FROM t a, t b",
    "SELECT count(*) FROM harvest a, harvest b, harvest c, harvest d, harvest e",
    "SELECT max(hex(a.lot || b.lot)) FROM harvest a, harvest b, harvest c, harvest d WHERE a.lot LIKE '%' || d.lot",
]
GREEDY = [
    f"{ENDLESS} SELECT printf('%.900000c', 'x') || x AS y FROM t ORDER BY y",
    f"{ENDLESS} SELECT count(DISTINCT printf('%.90000c', 'x') || x) FROM t",
    f"{ENDLESS} , u AS MATERIALIZED (SELECT printf('%.900000c', 'x') FROM t) SELECT count(*) FROM u a, u b",
    "WITH RECURSIVE t(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM t) SELECT length(x) FROM t",
    f"{ENDLESS} SELECT x, json_group_array(printf('%.90000c', 'x')) FROM t GROUP BY x",
]


HOSTILE = [sql for sql in REFUSED if sql]


@pytest.mark.parametrize("sql", slow_except(*HOSTILE[::3], among=HOSTILE), ids=lambda sql: repr(sql[:40]))
def test_hostile_statements_are_refused_at_once(reports, sql):
    start = time.monotonic()
    with pytest.raises(InputError) as caught:
        reports.query_tables(sql)
    assert time.monotonic() - start < 20
    assert len(str(caught.value)) < 800
    assert reports.query_tables("SELECT count(*) FROM harvest").rows == ((240,),)


@pytest.mark.parametrize("sql", [*ENDLESS_ONES, *GREEDY], ids=lambda sql: repr(sql[-40:]))
def test_endless_statements_end(reports, monkeypatch, sql):
    monkeypatch.setattr("arag.retrieval.corpus.sql._SECONDS", 1.0)
    with pytest.raises(InputError, match=r"seconds|memory"):
        reports.query_tables(sql)
    assert reports.query_tables("SELECT count(*) FROM harvest").rows == ((240,),)


@pytest.mark.parametrize("sql", ["SELECT printf('%.*c', 1000000000, 'x')", "SELECT printf('%.999999999c', 'x')"])
def test_a_call_that_cannot_be_interrupted_is_bounded(reports, monkeypatch, sql):
    monkeypatch.setattr("arag.retrieval.corpus.sql._SECONDS_TO_ANSWER", 1.0)
    start = time.monotonic()
    with suppress(InputError):
        assert reports.query_tables(sql).rows in {((None,),), (("",),)}
    assert time.monotonic() - start < 20
    assert reports.query_tables("SELECT count(*) FROM harvest").rows == ((240,),)


def test_rows_without_end_are_cut(reports, monkeypatch):
    monkeypatch.setattr("arag.retrieval.corpus.sql._SECONDS", 1.0)
    results = reports.query_tables(f"{ENDLESS} SELECT x, printf('%.9000c', 'x') FROM t")
    assert results.truncated
    assert not results.is_complete
    assert len(results.rows) < results.total
    shown = show_tables(results).text
    assert shown.startswith(f"At least {results.total:,} rows (not all were counted in time): x | ")
    assert count_tokens(shown) < 2_000


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN SELECT * FROM harvest",
        "SELECT random(), abs(-1), date('2020-01-01', '+1 day') -- ;",
        "SELECT value FROM json_each('[1, 2]')",
        "SELECT x'00ff', 1e400, -1e400, NULL, 'a\tb\nc'",
        "SELECT CAST(x'ff' AS TEXT)",
        "SELECT char(0, 1, 27, 8238)",
        "SELECT printf('%1000000000s', 'x')",
        "SELECT printf('%*s', 2000000000, 'x')",
        "SELECT format('%.900000000f', 1.5)",
        f"{ENDLESS} SELECT x FROM t LIMIT 3",
        "WITH t(chunk_id) AS (SELECT printf('%.99999c', '[')) SELECT 1 FROM t",
    ],
)
def test_harmless_statements_are_answered(reports, sql):
    results = reports.query_tables(sql)
    assert len(json.dumps([results.columns, results.rows])) < 2_000_000
    assert results.rows
    assert not any(character in show_tables(results).text for character in "\0\x1b\u202e\t")


@given(st.text(max_size=200))
def test_no_text_breaks_anything(reports, text):
    for sql in (text, f"SELECT {text} FROM harvest", f'SELECT "{text}" FROM harvest WHERE {text}'):
        try:
            results = reports.query_tables(sql)
        except InputError:
            continue
        assert show_tables(results).text


def test_several_threads_query_at_once(reports):
    barrier = threading.Barrier(8)

    def query(number):
        barrier.wait()
        return reports.query_tables(f"SELECT count(*) + {number} FROM harvest").rows

    with ThreadPoolExecutor(8) as executor:
        assert list(executor.map(query, range(8))) == [((240 + number,),) for number in range(8)]


# --- limits ---


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_a_limited_index_has_the_tables_of_its_documents_only(make_index, tmp_path, places, backend):
    documents = {
        "secret.csv": "Name,Salary\nAda,100\nBob,007\n",
        "open.csv": "Name,Salary\nEve,5\nFay,6\n",
        "other.md": "| Secret plan | Year |\n|---|---|\n| x | 1 |\n| y | 2 |\n",
    }
    whole = make_index(documents)
    for kept in (["open.csv"], ["open.csv", "other.md"], ["secret.csv"], []):
        alone = make_index({name: documents[name] for name in kept} or {"none.txt": "Nothing."})
        limited = whole.limited_to(Scope(documents=kept))
        for some in (limited, whole.limited_to(kept)):
            assert some.query_tables() == alone.query_tables()
        for sql in (
            "SELECT * FROM tables",
            "SELECT * FROM open",
            "SELECT * FROM secret",
            "SELECT sum(salary) FROM open",
            "SELECT secret_plan FROM other",
            "SELECT salry FROM open",
            "SELECT * FROM othr",
        ):
            assert outcome(limited, sql) == outcome(alone, sql)
            assert outcome(limited, sql, "open") == outcome(alone, sql, "open")
    (table, _) = sorted(whole.query_tables().tables, key=lambda table: -table.rows)
    assert whole.query_tables(f"SELECT salary FROM {table.name} ORDER BY name").rows == (
        ("100",),
        ("007",),
        ("5",),
        ("6",),
    )


def outcome(index, sql, within=""):
    try:
        results = index.query_tables(sql, within=within)
    except InputError as error:
        return str(error)
    return results, show_tables(results)


def test_a_newer_snapshot_has_newer_tables(tmp_path):
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "a.csv"
    file.write_text("A,B\n1,2\n3,4\n")
    with ingest(tmp_path / "files", tmp_path / "index", embedder=HashEmbeddings()) as index:
        part = index.limited_to(["a.csv"])
        assert (
            index.query_tables("SELECT sum(b) FROM a").rows == part.query_tables("SELECT sum(b) FROM a").rows == ((6,),)
        )
        file.write_text("A,B\n1,2\n3,40\n")
        run_ingest(tmp_path / "files", tmp_path / "index", embedder=HashEmbeddings())
        assert (
            index.query_tables("SELECT sum(b) FROM a").rows
            == part.query_tables("SELECT sum(b) FROM a").rows
            == ((42,),)
        )


def test_many_scopes_share_the_process(make_index):
    index = make_index({f"t{n}.csv": f"A,B\n{n},2\n3,4\n" for n in range(40)})
    parts = [index.limited_to([f"t{n}.csv"]) for n in range(40)]
    for _ in range(2):
        sums = [part.query_tables("SELECT sum(a) FROM " + part.query_tables().tables[0].name).rows for part in parts]
        assert sums == [((n + 3,),) for n in range(40)]


# --- what a model sees ---


@pytest.fixture
def tool(reports):
    (tool,) = make_tools(reports, names=[QueryTables])
    return tool


def use(tool, **arguments):
    return tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})


def test_the_list_of_tables(tool):
    assert use(tool).content.splitlines()[0] == (
        "2 tables. Each row also has chunk_id, document, sheet. Query with SQLite's SELECT."
    )
    first = ROWS[180]
    values = [first["Region"], first["Grower"], first["Sacks"], f"{first['Price']:g}", first["Delivered"], first["Lot"]]
    columns = "region, grower, sacks number, price number €, delivered date, lot"
    assert use(tool).content.splitlines()[1:3] == [
        f"harvest (240 rows, 4 documents: harvest-april.csv … harvest-march.csv): {columns}",
        f"  {' | '.join(map(str, values))}",
    ]
    assert use(tool, sql=None, within=None).content == use(tool).content


def test_rows_begin_with_the_marks_of_their_chunks(tool):
    message = use(tool, sql="SELECT grower, village FROM growers WHERE members < 2")
    assert message.content == (
        "2 rows: grower | village\n[growers.md:0] Grower 0 | Ostdorf | Tal\n[growers.md:0] Grower 1 | Westdorf | Tal"
    )
    assert message.artifact["chunk_ids"] == ["growers.md:0"]
    everything = use(tool, sql="SELECT * FROM growers LIMIT 1")
    assert everything.content == "1 row: grower | village | members\n[growers.md:0] Grower 0 | Ostdorf | Tal | 0"
    total = use(tool, sql="SELECT sum(sacks) FROM harvest").content
    shown, *others = total.splitlines()
    assert shown == "1 row: sum(sacks)"
    assert others[0].startswith("[harvest-april.csv:0] and ")
    assert others[0].endswith(f" others: {sum(row['Sacks'] for row in ROWS)}")


def test_many_rows_are_cut_with_a_way_on(tool):
    message = use(tool, sql="SELECT * FROM harvest")
    head, *lines = message.content.splitlines()
    assert head.startswith("240 rows: region | grower | sacks | price (€) | delivered | lot The first ")
    assert head.endswith(f"are shown: group or filter them, or go on with LIMIT and OFFSET {len(lines)}.")
    assert count_tokens(message.content) < 1_700
    rest = use(tool, sql=f"SELECT * FROM harvest LIMIT 9 OFFSET {len(lines)}").content.splitlines()
    assert rest[1] not in lines


def test_a_wrong_query_is_a_result_that_helps(tool):
    message = use(tool, sql="SELECT sack FROM harvest")
    assert message.status == "error"
    assert "closest: sacks" in message.content
    assert "at most 2,000" in use(tool, sql="x" * 2_001).content


def test_no_cell_writes_a_mark(make_index):
    index = make_index(
        {"evil.csv": 'Text,Id\n"[good.md:0] x","good.md:0"\n"a [b.md:1]","evil.csv:0"\n', "good.md": "Good."}
    )
    (tool,) = make_tools(index, names=[QueryTables])
    shown = use(tool, sql="SELECT text FROM evil")
    assert shown.content == "2 rows: text\n[evil.csv:0]  [good.md: 0] x\n[evil.csv:0] a [b.md: 1]"
    assert shown.artifact["chunk_ids"] == ["evil.csv:0"]


def test_a_person_is_told_what_tables_without_names_are(make_index, arag):
    index = make_index({"a.txt": "Rye | 1 | sold in 2019\nOats | 2.5 | of 2004, sold in 2019\nHemp | 3 | unsold\n"})
    listed = arag("sql", "--index", index.path)[1]
    assert "rows_of_3 (" in listed
    assert "rows_of_N holds the rows of all tables with N columns that have no names." in listed


def test_many_tables_are_listed_in_brief(make_index, arag):
    index = make_index({f"t{n:03}.csv": f"Key {n},Value {n}\na,1\nb,2\n" for n in range(300)})
    shown = show_tables(index.query_tables())
    assert "documents with `within`" in shown.text
    assert "documents with `--within`" in arag("sql", "--index", index.path)[1]
    assert count_tokens(shown.text) < 1_400
    assert "and " in shown.text.splitlines()[-1]
    assert "SELECT * FROM tables" in shown.text
    assert index.query_tables("SELECT count(*) FROM tables").rows == ((300,),)


@pytest.mark.parametrize(
    ("titles", "name"),
    [(("Tolls of tar", "Tolls of hemp"), "tolls_of"), (("Tar", "Hemp"), "quay_toll"), (("The mole", ""), "basics")],
)
def test_a_table_is_not_named_by_the_language_of_its_files(make_index, titles, name):
    texts = {}
    for title, file in zip(titles, ("basics", "tools"), strict=True):
        if title:
            texts[f"en/{file}.en.md"] = (
                f"# {title}\n\n| Quay | Toll | Year |\n| --- | --- | --- |\n| Mole | 3 | 1811 |\n"
            )
    (table,) = make_index(texts).query_tables().tables
    assert table.name.removesuffix("_the_mole") == name


def test_a_label_beside_several_rows_makes_no_names_of_the_first(make_index):
    rows = "<tr><td rowspan=3>Notes:</td><td>1.</td><td>Gulls omit all.</td></tr><tr><td>2.</td><td>No data.</td></tr>"
    html = f"<h1>Birds</h1><table>{rows}<tr><td>3.</td><td>Terns do not.</td></tr></table>"
    index = make_index({"birds.html": html})
    (table,) = index.query_tables().tables
    assert (table.rows, table.samples[0]) == (3, ("Notes:", "1.", "Gulls omit all."))
    assert {sentence.header for chunk in index.read(["birds.html:0"]).chunks for sentence in chunk.sentences} == {""}


@pytest.mark.parametrize(
    "head",
    [
        "Invoice no.,2026-0417,,Date,2026-04-17\nCustomer,City of Leeds,,Customer no.,10482\n",
        "Rechnung,R-2026-11,Datum,03.05.2026\nKunde,Stadt Kiel,Lieferung,02.06.2026\n",
        "Name:,Ada Berg,Town:,Porto\nStreet:,Mole 3,Country:,Portugal\n",
        "Period:,01.01.2026 - 31.01.2026\nBalance:,1.200 EUR\nOwner:,Ada\n",
    ],
)
def test_labels_beside_their_values_are_no_names_of_columns(make_index, head):
    text = f"{head}\nItem,Qty,Price,Amount\nDesk,2,100,200\nChair,4,50,200\n"
    items, fields = make_index({"a.csv": text}).query_tables().tables
    assert [column.name for column in items.columns] == ["item", "qty", "price", "amount"]
    width = head.splitlines()[0].count(",") + 1
    assert [column.name for column in fields.columns] == [f"c{number}" for number in range(1, width + 1)]
    assert fields.rows == len(head.splitlines())


def test_rows_of_totals_are_pointed_out(make_index):
    index = make_index({"dues.csv": "Region,Ships,Dues\nNorth,1,5\nSouth,2,6\nTotal,3,11\n"})
    (tool,) = make_tools(index, names=[QueryTables])
    assert "dues (3 rows with 1 total, dues.csv): region, ships number" in use(tool).content
    head, _ = use(tool, sql="SELECT sum(dues) FROM dues").content.splitlines()
    assert head == "1 row: sum(dues) (dues has 1 row of totals, Total: leave it out of sums.)"
    head, row = use(tool, sql="SELECT sum(dues) FROM dues WHERE region <> 'Total'").content.splitlines()
    assert (head, row) == ("1 row: sum(dues)", "[dues.csv:0] 11")


@pytest.mark.parametrize(
    ("sql", "is_noted"),
    [
        ("SELECT name FROM wells WHERE depth > 3", True),
        ("SELECT max(depth) FROM wells", True),
        ("SELECT avg(depth) FROM wells", True),
        ("SELECT name FROM wells ORDER BY depth DESC LIMIT 1", True),
        ('SELECT name FROM wells WHERE "Depth" BETWEEN 3 AND 9', False),  # of numbers alone
        ("SELECT name FROM wells WHERE depth < 5", False),
        ("SELECT name FROM wells WHERE depth > 3 AND typeof(depth) <> 'text'", False),
        ("SELECT name, depth FROM wells", False),
        ("SELECT name FROM wells ORDER BY name", False),
    ],
)
def test_texts_that_are_compared_with_numbers_are_pointed_out(make_index, sql, is_noted):
    index = make_index({"wells.csv": "Name,Depth\nOrra,4\nVik,2.5\nSkarn,TBD [1]\nHolm,7\n"})
    (tool,) = make_tools(index, names=[QueryTables])
    note = "(depth of wells also has texts, such as TBD [1]: leave them out, WHERE typeof(depth) <> 'text'.)"
    assert (note in use(tool, sql=sql).content) == is_noted


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("weight = '12 kg'", "12 kg"),
        ("\"Weight\" = '12kg'", "12kg"),
        ("name = 'Vik' AND weight IN (12, '5 kg')", "5 kg"),
        ("weight LIKE '%kg'", "%kg"),
        ("weight BETWEEN '5 lb' AND '9 lb'", "5 lb"),
        ("weight = '12' OR name = '12 kg'", ""),
        ("weight LIKE '1%'", ""),
        ("weight || ' kg' <> ''", ""),
    ],
)
def test_a_text_with_a_unit_is_no_number(make_index, condition, text):
    index = make_index({"stones.csv": "Name,Weight\nOrra,12 kg\nVik,5 kg\nSkarn,7 kg\n"})
    (tool,) = make_tools(index, names=[QueryTables])
    shown = use(tool, sql=f"SELECT name FROM stones WHERE {condition}").content
    note = f"weight is a number, without its unit kg: compare it with a number, not '{text}'"
    assert (f"({note}.)" in shown) == (" without its unit" in shown) == bool(text)


def test_a_share_in_percent_is_no_text(make_index):
    index = make_index({"shares.csv": "Name,Share\nOrra,45%\nVik,55%\n"})
    (tool,) = make_tools(index, names=[QueryTables])
    shown = use(tool, sql="SELECT count(*) FROM shares WHERE share = '45%'").content
    assert "share is a number, without its unit %: compare it with a number, not '45%'" in shown


@pytest.mark.parametrize(
    ("condition", "is_noted"),
    [
        ("", True),
        ("WHERE price NOT LIKE '%VAT%'", True),
        ("WHERE item <> ''", False),
        ("WHERE total < 300", True),
        ("WHERE qty = 2", False),
    ],
)
def test_totals_are_pointed_out_wherever_they_are_summed(make_index, condition, is_noted):
    text = "Item,Qty,Price,Total\nDesk,2,100,200\nChair,4,50,200\n,,Subtotal,400\n,,VAT 20 %,80\n,,Total,480\n"
    (tool,) = make_tools(make_index({"orders.csv": text}), names=[QueryTables])
    assert "(5 rows with 3 totals, orders.csv): item, qty number, price number, total number" in use(tool).content
    shown = use(tool, sql=f"SELECT sum(total) FROM orders {condition}").content
    note = "(orders has 3 rows of totals, Subtotal, VAT 20 %, Total: leave them out of sums.)"
    assert (note in shown) == is_noted


@pytest.mark.parametrize(
    ("rows", "totals"),
    [
        ("sum (a),adds elements\nsumma (a),adds all\n", ()),
        ("Total cost of ownership,7\nNorth,5\n", ()),
        ("Sum,adds elements\nDiff,subtracts them\n", ()),
        ("North,5\nSouth,6\nTotal of 1910,11\n", ("Total of 1910",)),
        (
            "North,5\nSubtotal,5\nSouth,6\nWest,1\nSum (South),7\nGrand total:,12\n",
            ("Subtotal", "Sum (South)", "Grand total:"),
        ),
        *[
            (f"North,5\nSouth,6\n{total},11\n{tax},2\n{due},13\n", (total, tax, due))
            for total, tax, due in [
                ("Net total", "VAT 20 %", "Amount due"),
                ("Zwischensumme", "zzgl. 19 % MwSt.", "Gesamtbetrag"),
                ("Sous-total", "TVA 20 %", "Net à payer"),
                ("Base imponible", "IVA 21 %", "Total a pagar"),
                ("Totale imponibile", "IVA 22%", "Totale fattura"),
                ("Subtotal", "IVA 23%", "Total geral"),
                ("Subtotaal", "BTW 21%", "Totaal incl. btw"),
                ("Razem", "VAT 23%", "Do zapłaty"),
                ("Итого", "НДС 20%", "Всего к оплате"),
                ("小計", "消費税 10%", "合計"),
                ("小计", "增值税 13%", "价税合计"),
            ]
        ],
        ("VAT,5\nSouth,6\nUmsatz gesamt,11\n", ("Umsatz gesamt",)),
    ],
)
def test_a_row_of_totals_has_a_word_for_them_alone_or_sums(make_index, rows, totals):
    (table,) = make_index({"a.csv": f"Name,Figure\n{rows}"}).query_tables().tables
    assert (table.totals, table.total_labels) == (len(totals), totals)


def test_the_command(arag, reports):
    code, shown, _ = arag("sql", "SELECT count(*) FROM growers", "--index", reports.path)
    assert (code, shown) == (0, "1 row: count(*)\n[growers.md:0] 9\n")
    code, shown, _ = arag("sql", "--index", reports.path, "--documents", "growers.md")
    assert shown.startswith("1 table. ")
    code, shown, _ = arag("sql", "SELECT members FROM growers LIMIT 2", "--index", reports.path, "--json")
    assert json.loads(shown)["rows"] == [[0], [1]]
    code, _, error = arag("sql", "DROP TABLE growers", "--index", reports.path)
    assert (code, error.count("\n")) == (1, 1)
    assert "only one SELECT" in error


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_both_engines_have_the_same_tables(tmp_path, places, backend):
    folder = write_reports(tmp_path / "files")
    with (
        ingest(folder, places(backend, tmp_path / "there"), embedder=HashEmbeddings()) as there,
        ingest(folder, tmp_path / "here", embedder=HashEmbeddings()) as here,
    ):
        assert there.query_tables() == here.query_tables()
        sql = "SELECT region, sum(sacks * price) FROM harvest GROUP BY region"
        assert there.query_tables(sql) == here.query_tables(sql)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.txt", "mill (-g | -s) [<grain>]\nmill (-o | -c) [<sluice>]"),
        ("a.txt", "$ ls grain | sort\n\nThe sacks are in order.\n\n$ ls oats | sort"),
        ("a.txt", "| * c3 (rye) third sack\n| * b2 second sack"),
        ("a.py", "def grind(rye: str | None) -> str:\n    oats: int | None = None\n    hemp: int | None = None"),
        ("a.sh", "cat rye | sort\n\ncat oats | sort"),
        ("a.txt", "chapter = rye | {Oats}\nchapter = hemp | {Flax}"),
    ],
)
def test_bars_in_code_and_syntax_make_no_tables(make_index, name, lines):
    text = f"The mill grinds.\n\n{lines}\n\nSo it is.\n"
    assert make_index({name: text}).query_tables().tables == ()


BARS_IN_PAGES = """<h1>Mill</h1><pre>ls rye | wc
cat oats | sort</pre><p>Use <code>rye | oats</code>.</p><p>rye | oats</p><ul><li>rye | wc</li><li>oats | wc</li></ul>
<h2>Rye | oats</h2><dl><dt>rye | oats<dd>a | b</dl><img alt="wheel | stone"><p>P(<math><mi>A</mi><mo> | </mo></math>)"""
PRINTED = """<pre>mill=> SELECT 1 | 2;
 grain | sacks
-------+-------
 rye   |    12
 oats  |     7
(2 rows)</pre>"""


def write_page(name, body):
    match name:
        case "a.eml":
            return f"From: a@mill.example\nSubject: Mill\nContent-Type: text/html\n\n{body}"
        case "a.xml":
            return f"<article><title>Mill</title>{body}</article>"
    return f"<html><body>{body}</body></html>"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.html", BARS_IN_PAGES),
        ("a.eml", BARS_IN_PAGES),
        ("a.xml", "<programlisting>ls | wc\ncat a | sort</programlisting><para>a | b</para>"),
    ],
)
def test_bars_outside_of_the_tables_of_web_pages_make_no_rows(make_index, name, body):
    index = make_index({name: write_page(name, body)})
    assert index.query_tables().tables == ()


@pytest.mark.parametrize("name", ["a.html", "a.eml"])
@pytest.mark.parametrize(
    "table",
    [
        PRINTED,
        "<pre>-[ RECORD 1 ]-+---\ngrain         | rye\nsacks         | a = 1\nmill          | 3</pre>",
        "<pre>-- grain | sacks\n--------------\n-- rye | 12\n-- oats | 7\n-- hemp | 3</pre>",
        "<pre>| rye  | 12 |\n| oats | 7  |\n| hemp | 3  |</pre>",
        "<table><tr><td>rye<td>a | b<tr><td>oats<td>7<tr><td>hemp<td>3</table>",
    ],
)
def test_tables_of_web_pages_are_found_beside_other_bars(make_index, name, table):
    index = make_index({name: write_page(name, f"{BARS_IN_PAGES}{table}<p>rye | oats</p>")})
    (found,) = index.query_tables().tables
    assert found.rows == 3


def test_a_table_that_is_drawn_has_rows(make_index):
    border = "+------+----+\n"
    index = make_index({"a.txt": f"{border}| Rye  | 12 |\n{border}| Oats | 7  |\n{border}"})
    (table,) = index.query_tables().tables
    assert table.rows == 2
