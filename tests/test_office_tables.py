"""Tables of workbooks, csv files, documents and slides: values keep their columns, and names are names."""

from __future__ import annotations

import itertools
import zipfile
from datetime import date

import pytest
from docx import Document as WordDocument
from docx.oxml.ns import qn
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from pptx import Presentation

from arag.ingest.formats.office import read_office
from arag.ingest.formats.tables import table_lines


def read_book(path, book):
    book.save(path / "a.xlsx")
    return read_office(path / "a.xlsx")


def _replace(path, part, old, new):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts[part]
    parts[part] = parts[part].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def lines(text, **options):
    return table_lines([row.split("|") for row in text.split("\n")], **options)


SHIPS = "Ship|Port|Tons\nGull|Orra|4\nPetrel|Holm|5\nAnna|Tolk|7\nSkua|Orra|9"


def beside(left, right):
    """Return two tables side by side, with an empty column between them."""
    rows = itertools.zip_longest(left.split("\n"), right.split("\n"), fillvalue="||")
    return "\n".join("||".join(row) for row in rows)


class TestSideBySide:
    @pytest.mark.parametrize(
        "right",
        [
            "4|=MAX(C2:C5)\n3|=MIN(C2:C5)\n\n|tons",  # formulas
            "\nPort|Depth\nOrra|12\nHolm|9\nTolk|4",  # it begins in another row
            "\nDepths of ports\nPort|Depth\nOrra|12\nHolm|9",
            "Port|Depth\nOrra|12\nHolm|9",  # it ends in another row
            "Ship|Built\nGull|1880\nPetrel|1881\nAnna|1882\nSkua|1883",  # the same first name
        ],
    )
    def test_a_table_beside_another_is_read_by_itself(self, right):
        shown = [line for line in lines(beside(SHIPS, right), sheet=True) if line]
        alone = [*lines(SHIPS, sheet=True), *lines(right, sheet=True)]
        assert shown == [line for line in alone if line]
        assert shown[4] == "Ship: Skua | Port: Orra | Tons: 9"

    def test_many_tables_side_by_side(self):
        count = 550
        shown = lines("\n".join(["||".join(["Ship|Port"] * count), "||".join(["Heron|Asta"] * count)]), sheet=True)
        assert list(filter(None, shown)) == ["Ship | Port", "Ship: Heron | Port: Asta"] * count

    def test_a_note_beside_the_names_of_columns_is_none_of_them(self):
        shown = lines(beside(SHIPS, "1907"), sheet=True)
        assert shown == [*lines(SHIPS, sheet=True), "", "1907"]

    @pytest.mark.parametrize(
        "right",
        [
            "1906|1907\n40|50\n30|20\n20|30\n10|20",
            "Plan|Paid\n40|50\n\n20|30",
            "Dues|\nPlan|Paid\n40|50\n30|20\n20|30",
            "Remark|Clerk\nlate|Ada\n\nearly|Bob",
            "\nlate|Ada\n\nearly|Bob",
            "\nto be checked",
        ],
    )
    def test_an_empty_column_inside_a_table_does_not_part_it(self, right):
        shown = lines(beside(SHIPS, right), sheet=True)
        assert len(list(filter(None, shown))) == 5


class TestNames:
    @pytest.mark.parametrize(
        "rows",
        [
            "Orsolya|miller|Northfold\nTiber|driver|Southfold\nPell|clerk|Eastfold",
            "Ada|1843|1901|London\nBob|1850|1911|Paris\nCy|1870|1899|Rome",
            "Gull|12 kg|oats\nPetrel|15 kg|rye\nAnna|9 kg|oats",
            "Ada|ada@mill.example|Orra\nBob|bob@mill.example|Holm\nCy|cy@mill.example|Tolk",
            "lamp|Vellin|Tolk\nwick|Vellin|Holm\noil|Orra|Tolk",  # a value stands again below
            "Ada S. Berg|John Lee|Mike Orr\nKeith Bo|Ian McCall|Dave Silber\nDrew E. Falk|Chris Metz|Tom Sippel",
            "x|2024-01-02|2024-02-03|a\ny|2023-05-06|2023-07-08|b",
        ],
    )
    def test_a_first_row_like_the_others_gives_no_names(self, rows):
        assert lines(rows, sheet=True) == [row.replace("|", " | ") for row in rows.split("\n")]
        assert lines(rows) == lines(rows, sheet=True)

    @pytest.mark.parametrize(
        "rows",
        [
            "Name|Post|Town\nAda|miller|Northfold\nBob|driver|Southfold",
            "Isle|1880|1881\nOrra|75|80\nHolm|70|82",
            "Race|5 km|10 km\nAda|21:04|45:10\nBob|22:30|47:01",
            "ID|Name|Note\nAB1|Ada|late\nAB2|Bob|early",
            "name|town|post\nada|orra|miller\nbob|holm|clerk",
            "Name|Town\nAda|Orra\nBob|Holm",
            "Name|Deputy\nAda S. Berg|John A. Lee\nDrew E. Falk|Keith Bo",
            "Ward|Ada S. Berg|John A. Lee\nNorth|100|23\nSouth|70|41",
            "Name|Salary\nAda|100\nBob|007",
            "Region|Post|Town\nNorth Region|a|b\nSouth Region|c|d",
            "Name|Post|town\nAda|Miller|orra\nName|Post|town\nBob|Clerk|holm",  # files that were joined
        ],
    )
    def test_a_first_row_of_names_gives_them(self, rows):
        first = rows.partition("|")[0]
        assert all(line.startswith(f"{first}: ") for line in lines(rows, sheet=True)[1:])

    @pytest.mark.parametrize(
        "form",
        [
            "Konto|DE02 1203 0000 0000\nInhaber|Ada Tolk\nZeitraum|Mai bis Juli",
            "Mill|Orra\nKeeper|Ada Tolk",
            "Mill|Orra\nKeeper|Ada Tolk\n\nSacks by day",
            "Mill|Orra\nKeeper|Ada Tolk\n\nClerk|Bo Lind\nPlace|The quay",
        ],
    )
    def test_fields_above_a_wider_table_have_no_header(self, form):
        table = "Day|Grain|Sacks\nMonday|Rye|12\nTuesday|Oats|7"
        shown = lines(f"{form}\n\n{table}", sheet=True)
        assert [line for line in shown[:-3] if line] == form.replace("|", " | ").replace("\n\n", "\n").split("\n")
        assert shown[-1] == "Day: Tuesday | Grain: Oats | Sacks: 7"

    def test_a_table_of_two_columns_above_a_wider_one_keeps_its_names(self):
        shown = lines("Grain|Price\nRye|4\nOats|5\n\nDay|Grain|Sacks\nMonday|Rye|12", sheet=True)
        assert shown[1] == "Grain: Rye | Price: 4"

    def test_a_form_in_a_sheet_has_no_header(self):
        form = "Ship|Gull\nBuilt|1843\nMaster|Ada Tolk\nPort|Orra"
        assert lines(form, sheet=True) == form.replace("|", " | ").split("\n")

    @pytest.mark.parametrize(
        "notes",
        ["Dues of 1881", "simply cannot resist writing: tons|of|ships", "# made by hand|in May", "Made by|Ada Tolk"],
    )
    def test_notes_above_a_header_are_no_names(self, notes):
        table = "Name|Port|Tons|Since\nGull|Orra|4|1880\nPetrel|Holm|5|1881"
        text = "\n".join(lines(f"{notes}\n{table}", sheet=True))
        assert text.lstrip().startswith(notes.replace("|", " "))
        assert text.endswith("\n\nName | Port | Tons | Since\n" + "\n".join(lines(table, sheet=True)[1:]))

    def test_a_row_of_a_pivot_table_above_an_empty_one_is_no_second_header(self):
        table = "Row Labels|oats|rye|Grand Total\nHolm|3400|3966.7|3486.1\n(blank)\nGrand Total|3400|3966.7|3486.1"
        shown = lines(table, sheet=True)
        assert shown[:2] == [
            "Row Labels | oats | rye | Grand Total",
            "Row Labels: Holm | oats: 3400 | rye: 3966.7 | Grand Total: 3486.1",
        ]

    def test_a_note_in_nearly_all_columns_is_no_header_above_a_shorter_note(self):
        table = "Name|Port|Tons|Since\nGull|Orra|4|1880\nPetrel|Holm|5|1881"
        shown = [line for line in lines(f"at|the|top\nor merging|cells\n{table}", sheet=True) if line]
        assert shown == ["at the top", "or merging cells", *lines(table, sheet=True)]

    @pytest.mark.parametrize(
        ("settings", "table"),
        [
            ("Step|0.5\nMill|Orra\nPoints|20", "Time|Depth\n0.0|3\n0.5|4\n1.0|7"),
            ("Polar|FALSE|by hand\nInverse|FALSE", "Day|Rye|Oats|Sum\n1|3|4|7\n2|5|1|6"),
            (
                "From|2024-01-01|To|2024-05-31\nUnit|kg|Rate|1.5",
                "Farm|Grain|Sacks|Price|Sum\nHolm|Rye|4|2|8\nSkarn|Oats|1|3|3",
            ),
        ],
    )
    def test_settings_above_a_header_are_no_names(self, settings, table):
        shown = [line for line in lines(f"{settings}\n{table}", sheet=True) if line]
        assert shown == [*settings.replace("|", " ").split("\n"), *lines(table, sheet=True)]

    @pytest.mark.parametrize(
        "note",
        [
            "(in millions)",
            "(MILLIONS, EXCEPT SHARES)",
            "In thousands of marks",
            "in Mio. Mark",
            "单位：万元",
            "（百万円）",
        ],
    )
    def test_a_note_on_the_unit_does_not_name_labels(self, note):
        written = lines(f"{note}|1881|1880\nCoal|4|5\nRope and twine|6|7", sheet=True)
        assert written == [f"{note} | 1881 | 1880", "Coal | 1881: 4 | 1880: 5", "Rope and twine | 1881: 6 | 1880: 7"]

    @pytest.mark.parametrize("name", ["Millions", "Place in Orra", "Inches", "Coal (tons)"])
    def test_other_names_of_labels_stay(self, name):
        assert lines(f"{name}|1881|1880\nCoal|4|5\nRope|6|7", sheet=True)[1] == f"{name}: Coal | 1881: 4 | 1880: 5"

    def test_two_rows_of_names_are_joined_also_above_texts(self):
        rows = "|North||South|\nYear|Miller|Clerk|Miller|Clerk\n1880|Ada|Bob|Cy|Dee\n1881|Eve|Fay|Gus|Hal"
        assert (
            lines(rows)[2] == "Year: 1880 | North Miller: Ada | North Clerk: Bob | South Miller: Cy | South Clerk: Dee"
        )

    def test_a_file_of_rows_repeats_the_names_of_groups(self):
        rows = "Region|1881|1881|1882|1882\n|Oats|Rye|Oats|Rye\nNorth|7|8|9|10"
        assert lines(rows, sheet=True)[-1] == "Region: North | 1881 Oats: 7 | 1881 Rye: 8 | 1882 Oats: 9 | 1882 Rye: 10"

    @pytest.mark.parametrize(
        ("rows", "last"),
        [
            (
                "||2022||2023|\n||born|sold|born|sold\nFarm|Flock||||\nMarsh|ewes|3|4|5|\nHill|rams|6||8|9",
                "Farm: Hill | Flock: rams | 2022 born: 6 | 2023 born: 8 | 2023 sold: 9",
            ),
            ("||1880|1881\nIsle|Crop\nOrra|oats|7|8\nHolm|rye|5|6", "Isle: Holm | Crop: rye | 1880: 5 | 1881: 6"),
            ("|Catch|\n|May|June\nBoat\nGull|11|\nPetrel||15", "Boat: Petrel | Catch June: 15"),
            (
                "Year|1880||1881|\nCrop|oats|rye|oats|rye\nIsle\nOrra|7|8|9|4\nHolm|1||3",
                "Isle: Holm | 1880 oats: 1 | 1881 oats",
            ),
            ("Year|1880|1881\nCrop|oats|rye\nIsle\nOrra|7|8\nHolm|1|2", "Isle: Holm | 1880 oats: 1 | 1881 rye: 2"),
            ("|May|June\nOven\nSoup|Ada|Bob\nCellar|Bob|Ada", "Cellar | May: Bob | June: Ada"),  # a row of its own
            ("|1880|1881\nIncome\nDues|7|8\nCosts\nOil|5|6", "Oil | 1880: 5 | 1881: 6"),  # titles of parts
        ],
    )
    def test_names_of_the_first_columns_below_those_of_the_others(self, rows, last):
        assert lines(rows, sheet=True)[-1].startswith(last)
        assert lines(rows) == lines(rows, sheet=True)

    @pytest.mark.parametrize(
        "rows",
        [
            "Height|31 m\nRange|17 nmi\nKeepers\nFirst|Jago Tyr\nLast|Ann Roe",
            "Born|Orra\nTrade|cooper\nFamily\nWife|Tilda\nSons|three",
            "Lamp of Gull Rock\nBuilt|by hand\nLit|at dusk\nWatch\nFirst|Ada",
        ],
    )
    def test_a_title_between_fields_names_no_columns(self, rows):
        assert lines(rows)[-1] == " | ".join(rows.split("\n")[-1].split("|"))

    def test_a_title_above_the_middle_of_a_table_is_no_name(self):
        rows = "|Keepers\nName|Town|Year\nAda|Orra|1880\nBob|Holm|1881"
        assert lines(rows, sheet=True)[::4] == ["Keepers", "Name: Bob | Town: Holm | Year: 1881"]

    @pytest.mark.parametrize(
        ("bold", "last"),
        [
            ((1, 1, 0, 0), "Lamp: Outer | Keeper: Ada"),
            ((1, 0, 1, 0), "Outer | Ada"),
            ((1, 1, 1, 1), "Outer | Ada"),
            ((0, 0, 0, 0), "Outer | Ada"),
        ],
    )
    def test_a_first_row_in_bold_gives_the_names_of_two_columns(self, tmp_path, read, bold, last):
        word = WordDocument()
        table = word.add_table(3, 2)
        title = table.cell(0, 0).merge(table.cell(0, 1))
        title.paragraphs[0].add_run("Lamps").bold = True
        cells: list[str] = []
        for cell, text, is_bold in zip(table._cells[2:], ["Lamp", "Keeper", "Outer", "Ada"], bold, strict=True):
            cell.paragraphs[0].add_run(text).bold = bool(is_bold)
            cells.append(f"<td><p><b>{text}</b>&nbsp;</p></td>" if is_bold else f"<td>{text}</td>")
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").text.split("\n")[-1] == last
        html = f"<table><tr>{cells[0]}{cells[1]}</tr><tr>{cells[2]}{cells[3]}</tr></table>"
        assert read("a.html", html).text.split("\n")[-1] == last

    def test_rows_of_notes_above_the_names_of_columns(self):
        notes = "|of those|||in the|layout\nwhich is really||||a|thing\nI will|keep notes||||here"
        rows = f"{notes}\nName|Job|Age|Kids|Born|Died\nAda|miller|36|yes|1815|1852\nBob|keeper|40|no|1816|1856"
        last = "Name: Bob | Job: keeper | Age: 40 | Kids: no | Born: 1816 | Died: 1856"
        assert lines(rows, sheet=True)[-1] == last

    def test_a_form_beside_the_labels_of_its_parts_has_no_names(self):
        rows = "|Path|Where it is\n|Name|What it is\nOptions|List|It lists"
        assert lines(rows)[-1] == "Options | List | It lists"

    def test_a_title_in_bold_beside_an_empty_cell_is_no_header(self, tmp_path):
        word = WordDocument()
        table = word.add_table(3, 2)
        for cell, text in zip(table._cells, ["About me", "", "Name", "Ada", "Town", "Orra"], strict=True):
            cell.paragraphs[0].add_run(text).bold = text == "About me"
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").text.split("\n")[2:] == ["Name | Ada", "Town | Orra"]

    @pytest.mark.parametrize(
        ("rows", "last"),
        [
            ("|Count|%\nOil|242|45\nRye|300|55", "Rye | Count: 300 | %: 55"),
            ("|2019|2020\nOil|242|45\nRye|300|55", "Rye | 2019: 300 | 2020: 55"),
            ("|2019|1850\nOil|242|45\nRye|300|55", "Rye | 300 | 55"),
            ("|2019|2020\n7|242|45\n8|300|55", "8 | 300 | 55"),
        ],
    )
    @pytest.mark.parametrize("sheet", [True, False])
    def test_names_beside_an_empty_corner(self, rows, last, sheet):
        assert lines(rows, sheet=sheet)[-1] == last

    @pytest.mark.parametrize(
        ("sheet", "last"),
        [
            (".c1{color:red;font-weight:700}", "Race: Gigs | Starts: dawn"),
            ("td.c1 { font-weight: bold }", "Race: Gigs | Starts: dawn"),
            (".c1{font-weight:400}.c2{font-weight:700}", "Gigs | dawn"),
        ],
    )
    def test_a_style_sheet_that_sets_the_first_row_in_bold(self, read, sheet, last):
        first = "<tr><td><p class='c0 c1'>Race</p><td><p class=c1>Starts</p>"
        html = f"<style>{sheet}</style><table>{first}<tr><td><p class=c0>Gigs</p><td>dawn</table>"
        assert read("a.html", html).text.split("\n")[-1] == last

    def test_names_with_a_colon_beside_values_are_no_header(self, read):
        rows = "<tr><td><b>Lamp:</b><td><b>Outer</b><tr><td><b>Keeper:</b><td>Ada"
        assert read("a.html", f"<table>{rows}</table>").text == "Lamp: | Outer\nKeeper: | Ada"

    def test_a_blank_row_below_the_names_of_columns(self, read):
        rows = ["Lamp|Keeper", "|", "Outer|Ada", "Inner|Bob"]
        html = "".join("<tr><td>" + row.replace("|", "<td>") for row in rows)
        assert read("a.html", f"<table>{html}</table>").text.split("\n")[1:] == [
            "Lamp: Outer | Keeper: Ada",
            "Lamp: Inner | Keeper: Bob",
        ]

    @pytest.mark.parametrize(("first_row", "last"), [(True, "Lamp: Outer | Keeper: Ada"), (False, "Outer | Ada")])
    def test_a_style_of_word_that_sets_the_first_row_in_bold(self, tmp_path, first_row, last):
        word = WordDocument()
        table = word.add_table(2, 2, style="Light Grid Accent 1")
        look = table._tbl.tblPr.find(qn("w:tblLook"))
        look.set(qn("w:val"), "04A0" if first_row else "0480")
        look.set(qn("w:firstRow"), str(int(first_row)))
        for cell, text in zip(table._cells, ["Lamp", "Keeper", "Outer", "Ada"], strict=True):
            cell.text = text
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").text.split("\n")[-1] == last

    @pytest.mark.parametrize(
        "rows",
        [
            ["Orsolya|miller|Northfold", "Tiber|driver|Southfold", "Pell|clerk|Eastfold"],
            ["alder|ash|beech", "birch|Cedar|elm", "fir|hazel|holly"],  # a list in the order of the alphabet
            ["alder|Cedar|fir", "ash|chestnut|hazel", "birch|elm|holly"],
        ],
    )
    def test_a_table_of_word_without_a_header(self, tmp_path, rows):
        word = WordDocument()
        table = word.add_table(3, 3)
        for place, text in enumerate("|".join(rows).split("|")):
            table.cell(place // 3, place % 3).text = text
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").text.split("\n") == [row.replace("|", " | ") for row in rows]


class TestCsv:
    @pytest.mark.parametrize("end", ["", "\n", '\n"Anna, of Orra","two\nlines",7\n'])
    @pytest.mark.parametrize(
        "faulty", ['Gull,"Orra,4\nPetrel,Holm,5', 'Gull,"Orra,4\nPetrel,"Holm,5', 'Gull,Orra,4\nPetrel,"Holm,5']
    )
    def test_a_quotation_mark_that_is_not_closed_swallows_no_row(self, read, faulty, end):
        text = read("a.csv", f"Name,Port,Tons\n{faulty}{end}").text
        assert [line.split(" | ")[2] for line in text.split("\n")[1:3]] == ["Tons: 4", "Tons: 5"]
        assert text.endswith("Name: Anna, of Orra | Port: two lines | Tons: 7") or '"Anna' not in end

    @pytest.mark.parametrize("mark", [";", "\t"])
    def test_the_separator_that_excel_names(self, read, mark):
        rows = f"sep={mark}\nName{mark}Tons\nGull{mark}4,5\n"
        assert read("a.csv", rows).text == "Name | Tons\nName: Gull | Tons: 4,5"

    @pytest.mark.parametrize("names", ["Name,Tons", "# Name,Tons", "#Name,Tons"])
    def test_comments_above_a_csv_are_not_rows_but_for_the_names_of_columns(self, read, names):
        text = read("a.csv", f"# by Ann, on Monday\n# Two ships\n{names}\nGull,4\nTern,5\n").text
        rows = "Name | Tons\nName: Gull | Tons: 4\nName: Tern | Tons: 5"
        assert text == f"    # by Ann, on Monday\n\n    # Two ships\n\n{rows}"

    def test_a_comment_above_a_tsv_is_neither_a_name_nor_a_heading(self, read):
        text = read("a.tsv", "# exported by hand\nName\tTons\tPort\nGull\t4\tOrra\n").text
        assert text == "    # exported by hand\n\nName | Tons | Port\nName: Gull | Tons: 4 | Port: Orra"


class TestWorkbooks:
    @pytest.mark.parametrize("last", [3, 4])
    def test_a_cell_over_several_rows_stands_in_each(self, tmp_path, last):
        book = Workbook()
        for row in (("Region", "Quarter", "Sacks"), ("North", "Q1", 1), (None, "Q2", 2), (None, "Q3", 3)):
            book.active.append(row)
        book.active.merge_cells(start_row=2, end_row=last, start_column=1, end_column=1)
        text = read_book(tmp_path, book).text
        assert text.count("Region: North") == last - 1

    def test_two_rows_of_merged_headers(self, tmp_path):
        book = Workbook()
        sheet = book.active
        for row in (("Isle", "Oats", None, "Rye", None), (None, 1880, 1881, 1880, 1881), ("Orra", 7, 8, 9, 10)):
            sheet.append(row)
        for cells in ("A1:A2", "B1:C1", "D1:E1"):
            sheet.merge_cells(cells)
        assert read_book(tmp_path, book).text.endswith(
            "Isle: Orra | Oats 1880: 7 | Oats 1881: 8 | Rye 1880: 9 | Rye 1881: 10"
        )

    @pytest.mark.parametrize("formulas", [1, 3])
    def test_formulas_without_values_are_named(self, tmp_path, formulas):
        book = Workbook()
        book.active.append(["Item", "Count", "Total"])
        for number in range(formulas):
            book.active.append(["Rye", 3, f"=B{number + 2}*2"])
        noun = "formula" if formulas == 1 else "formulas"
        how = "open and save the file in a spreadsheet program"
        assert read_book(tmp_path, book).left_out == (f"{formulas} {noun} without a saved value ({how})",)

    def test_a_formula_whose_value_is_an_empty_text_has_one(self, tmp_path):
        book = Workbook()
        book.active["A1"] = "Name"
        book.active["B1"] = '=""'
        book.save(tmp_path / "a.xlsx")
        with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        sheet = entries["xl/worksheets/sheet1.xml"]
        entries["xl/worksheets/sheet1.xml"] = sheet.replace(b'<c r="B1">', b'<c r="B1" t="str">')
        with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        assert read_office(tmp_path / "b.xlsx").left_out == ()

    def test_comments_charts_and_hidden_sheets(self, tmp_path):
        book = Workbook()
        sheet = book.active
        for row in (("Season", "Sacks"), ("Spring", 412), ("Autumn", 390)):
            sheet.append(row)
        sheet["B2"].comment = Comment("Weighed twice.", "Ada")
        chart = BarChart()
        chart.title = "Sacks by season"
        chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
        sheet.add_chart(chart, "E2")
        book.create_sheet("Prices").append(["Oats", "5"])
        book["Prices"].sheet_state = "hidden"
        text = read_book(tmp_path, book).text
        assert "Comment on B2 by Ada: Weighed twice." in text
        assert "Chart: Sacks by season" in text
        assert text.count("412") == 1  # the chart does not repeat the sheet
        assert text.endswith("# Prices (hidden)\n\nOats | 5")

    @pytest.mark.parametrize(
        ("before", "digits", "seen"), [("10", "6", "10^6"), ("1880", "3", "1880³"), ("m", "2", "m²")]
    )
    def test_raised_digits_stand_apart(self, tmp_path, before, digits, seen):
        book = Workbook()
        book.active["A1"] = CellRichText(before, TextBlock(InlineFont(vertAlign="superscript"), digits), " bits")
        assert read_book(tmp_path, book).text == f"# Sheet\n\n{seen} bits"

    @pytest.mark.parametrize(
        ("written", "seen"), [("o\ufb03ce", "office"), ("Jo\u0308rg", "Jörg"), ("\ufb01sh", "fish")]
    )
    def test_ligatures_and_accents(self, tmp_path, readers, written, seen):
        book = Workbook()
        book.active["A1"] = written
        book.save(tmp_path / "a.xlsx")
        assert readers.read(tmp_path / "a.xlsx").text == f"# Sheet\n\n{seen}"

    @pytest.mark.parametrize(
        ("written", "seen"),
        [
            ("Two_x000D_\nlamps", "Two lamps"),
            ("Two_x000a_lamps", "Two lamps"),
            ("the name _x005F_x000D_", "the name _x000D_"),
            ("part_x12 of_x_", "part_x12 of_x_"),
        ],
    )
    def test_control_characters_that_programs_write_as_text(self, tmp_path, written, seen):
        book = Workbook()
        book.active["A1"] = written
        book.active["A1"].comment = Comment(written, "Ada")
        book.save(tmp_path / "a.xlsx")
        text = read_office(tmp_path / "a.xlsx").text
        assert text == f"# Sheet\n\n{seen}\n\nComment on A1 by Ada: {seen}"
        show = Presentation()
        show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "x"
        show.save(tmp_path / "a.pptx")
        _replace(tmp_path / "a.pptx", "ppt/slides/slide1.xml", b">x<", f">{written}<".encode())
        assert read_office(tmp_path / "a.pptx").text == f"# {seen}"

    def test_blank_rows_part_tables(self, tmp_path):
        book = Workbook()
        for row in (("Name", "Tons", "Since"), ("Gull", 4, 1880), (), ("Port", "Depth", "Light"), ("Orra", 9, "red")):
            book.active.append(row)
        assert read_book(tmp_path, book).text.endswith(
            "Since: 1880\n\nPort | Depth | Light\nPort: Orra | Depth: 9 | Light: red"
        )

    def test_shown_numbers_are_read_as_numbers_by_sql(self, tmp_path, make_index):
        book = Workbook()
        book.active.append(["Ship", "Dues", "Share", "Code", "Paid"])
        for number, ship in enumerate(("Gull", "Petrel", "Anna"), 1):
            book.active.append([ship, 1000.5 * number, number / 8, number, date(1907, 6, number)])
            for column, form in enumerate(('#,##0.00 "kr"', "0.0%", "0000"), 2):
                book.active.cell(number + 1, column).number_format = form
        text = read_book(tmp_path, book).text
        assert "Ship: Petrel | Dues: 2,001.00 kr | Share: 25.0% | Code: 0002 | Paid: 1907-06-02" in text
        index = make_index({"dues.md": text})
        found = index.query_tables("SELECT sum(dues), max(share), min(code), max(paid) FROM dues")
        assert found.rows[0][:4] == (6003.0, 37.5, "0001", "1907-06-03")

    @pytest.mark.parametrize(
        ("title", "shown"),
        [("Dues of Ammerel, 1907", "Dues of Ammerel, 1907"), ("Book1", ""), ("dues.xls", ""), ("", "")],
    )
    def test_the_title_of_a_workbook_is_its_own_unless_a_program_wrote_it(self, tmp_path, title, shown):
        book = Workbook()
        book.active.append(["Name", "Tons"])
        book.properties.title = title
        assert read_book(tmp_path, book).title == shown


def _make_docx(path, rows):
    document = WordDocument()
    table = document.add_table(rows=0, cols=2)
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.save(path)


def _make_pptx(path, rows):
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(len(rows), 2, 0, 0, 5_000_000, 1_000_000).table
    table.first_row = False
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            table.cell(number, column).text = text
    presentation.save(path)


def _make_xlsx(path, rows):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


@pytest.mark.parametrize(("name", "make"), [("a.docx", _make_docx), ("a.pptx", _make_pptx), ("a.xlsx", _make_xlsx)])
def test_a_bar_in_a_cell_of_a_table_without_names_is_no_boundary(readers, tmp_path, name, make):
    make(tmp_path / name, [("cat log | grep oil", "1"), ("sort | uniq | wc", "2")])
    text = readers.read(tmp_path / name).text
    assert r"cat log \| grep oil | 1" in text
    assert r"sort \| uniq \| wc | 2" in text
