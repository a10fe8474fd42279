"""Files of OpenDocument and of PowerPoint: what a person sees in them is in the text."""

from __future__ import annotations

import zipfile
from datetime import date

import pytest
from lxml import etree
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.constants import RELATIONSHIP_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.util import Inches

from arag.ingest.formats.office import read_office
from arag.ingest.sentences import split_sentences

NAMES = {
    **{name: name for name in "office text table style presentation chart".split()},
    "draw": "drawing",
    "svg": "svg-compatible",
    "fo": "xsl-fo-compatible",
}
SPACES = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"' for name, space in NAMES.items())
SPACES += ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'


def read_open(path, body, *, styles="", extension="odt", parts=None):
    kind = {"odt": "text", "ods": "spreadsheet", "odp": "presentation"}[extension]
    tag = f"office:{kind}"
    automatic = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content = f"<office:document-content {SPACES}>{automatic}<office:body><{tag}>{body}</{tag}></office:body>"
    with zipfile.ZipFile(path / f"a.{extension}", "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", f"{content}</office:document-content>")
        for name, data in (parts or {}).items():
            archive.writestr(name, data)
    return read_office(path / f"a.{extension}")


def p(text):
    return f"<text:p>{text}</text:p>"


def row(*cells):
    return "<table:table-row>" + "".join(cells) + "</table:table-row>"


def cell(text, more=""):
    return f"<table:table-cell {more}>{p(text)}</table:table-cell>"


def frame(text, more=""):
    return f"<draw:frame {more}><draw:text-box>{p(text)}</draw:text-box></draw:frame>"


class TestTexts:
    @pytest.mark.parametrize(
        ("inside", "seen"),
        [
            ("The mill<text:s/>stands by<text:tab/>it<text:line-break/>Orrin.", "The mill stands by it\nOrrin."),
            ('<text:span>North</text:span><text:s text:c="3"/><text:span>South</text:span>', "North South"),
            ("one\n   two <text:span>three</text:span>", "one two three"),
            ("Lit<text:change-start/> in <text:change-end/>1801<text:bookmark/>.", "Lit in 1801."),
            ("<text:ruby><text:ruby-base>灯</text:ruby-base><text:ruby-text>ひ</text:ruby-text></text:ruby>", "灯(ひ)"),
        ],
    )  # fmt: skip
    def test_spaces_and_marks_inside_a_paragraph(self, tmp_path, inside, seen):
        assert read_open(tmp_path, p(inside)).text == seen

    @pytest.mark.parametrize(("position", "seen"), [("super 58%", "10^6"), ("33% 58%", "10^6"), ("sub 58%", "10₆")])
    def test_raised_digits(self, tmp_path, position, seen):
        properties = f'<style:text-properties style:text-position="{position}"/>'
        style = f'<style:style style:name="T1" style:family="text">{properties}</style:style>'
        assert read_open(tmp_path, p('10<text:span text:style-name="T1">6</text:span>'), styles=style).text == seen

    def test_deleted_text_is_out_and_a_comment_names_its_author(self, tmp_path):
        region = f"<text:changed-region><text:deletion>{p('old')}</text:deletion></text:changed-region>"
        deleted = f"<text:tracked-changes>{region}</text:tracked-changes>"
        comment = f"<office:annotation><dc:creator>Ada</dc:creator>{p('By whom?')}</office:annotation>"
        assert (
            read_open(tmp_path, deleted + p(f"Lit{comment} in 1801.")).text
            == "Lit in 1801.\n\nComment by Ada: By whom?"
        )

    @pytest.mark.parametrize(
        "lines",
        [
            ["Visitors:", "Mr Gerren", "Miss Loveday"],
            ["Harbour Office", "Quay Road"],
            ["We write to the council.", "Miss Loveday"],
            ["Nether Harrow"],
        ],
    )
    def test_a_line_with_a_comment_is_no_heading(self, tmp_path, lines):
        comment = f"<office:annotation><dc:creator>Roe</dc:creator>{p('Is this still so?')}</office:annotation>"
        body = p(f"{'<text:line-break/>'.join(lines)}{comment}") + p("The mill stands in the lane. It turns.")
        text = read_open(tmp_path, body).text
        assert {sentence.heading for sentence in split_sentences(text)} == {""}

    def test_lists_have_their_numbers_and_headers(self, tmp_path):
        levels = '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
        levels += '<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"/>'
        style = f'<text:list-style style:name="L1">{levels}</text:list-style>'
        inner = f"<text:list><text:list-item>{p('In coin')}</text:list-item></text:list>"
        items = f"<text:list-header>{p('Duties')}</text:list-header><text:list-item>{p('Rent')}{inner}</text:list-item>"
        items += f"<text:list-item>{p('Light')}{p('all night')}</text:list-item>"
        content = read_open(tmp_path, f'<text:list text:style-name="L1">{items}</text:list>', styles=style)
        assert content.text.split() == "Duties 1. Rent a) In coin 2. Light all night".split()

    def test_lists_without_ids_do_not_go_on_in_others(self, tmp_path):
        styles = '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/>'
        styles += '</text:list-style><text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/>'
        lists = [
            f'<text:list text:style-name="L{n}"><text:list-item>{p("Oil")}</text:list-item></text:list>' for n in (1, 2)
        ]
        content = read_open(tmp_path, "".join(lists), styles=f"{styles}</text:list-style>")
        assert content.text.split("\n\n") == ["1 Oil", "- Oil"]

    def test_a_heading_in_a_list_is_a_heading_with_the_number_of_its_item(self, tmp_path):
        levels = '<text:list-level-style-number text:level="1" style:num-format="1"/>'
        levels += '<text:list-level-style-number text:level="2" style:num-format="1" text:display-levels="2"/>'
        style = f'<text:list-style style:name="L1">{levels}</text:list-style>'
        inner = '<text:list><text:list-item><text:h text:outline-level="2">Rent</text:h></text:list-item></text:list>'
        item = f'<text:list-item><text:h text:outline-level="1">Duties</text:h>{inner}</text:list-item>'
        body = f'<text:list text:style-name="L1">{item}</text:list>{p("It is due in May.")}'
        content = read_open(tmp_path, body, styles=style)
        assert content.text == "# 1 Duties\n\n## 1.1 Rent\n\nIt is due in May."

    @pytest.mark.parametrize("shape", ["draw:frame", "draw:custom-shape", "draw:g"])
    def test_a_shape_stands_once(self, tmp_path, shape):
        inner = {
            "draw:frame": f"<draw:text-box>{p('Mind the step')}</draw:text-box><draw:image/>",
            "draw:custom-shape": p("Mind the step"),
            "draw:g": f"<draw:rect>{p('Mind the step')}</draw:rect>",
        }[shape]
        assert read_open(tmp_path, p(f"Gate<{shape}>{inner}</{shape}>")).text == "Gate\n\nMind the step"

    def test_a_command_is_no_heading(self, tmp_path):
        body = f'<text:h text:outline-level="1">Sluice</text:h>{p("# rm -r /old")}{p("It turns. Then it stops.")}'
        text = read_open(tmp_path, body).text
        assert {sentence.heading for sentence in split_sentences(text)[1:]} == {"Sluice"}

    @pytest.mark.parametrize(
        ("styles", "last"),
        [
            (("Head", "Body"), "Lamp: Outer | Keeper: Ada"),
            (("Span", "Body"), "Lamp: Outer | Keeper: Ada"),
            (("Head", "Head"), "Outer | Ada"),
            (("Body", "Body"), "Outer | Ada"),
        ],
    )
    def test_a_first_row_in_bold_gives_the_names_of_two_columns(self, tmp_path, styles, last):
        bold = '<style:text-properties fo:font-weight="bold"/>'
        light = '<style:text-properties fo:font-weight="normal"/>'
        definitions = (
            f'<style:style style:name="Strong" style:family="paragraph">{bold}</style:style>'
            '<style:style style:name="Head" style:family="paragraph" style:parent-style-name="Strong"/>'
            f'<style:style style:name="Body" style:family="paragraph">{light}</style:style>'
            f'<style:style style:name="Span" style:family="text">{bold}</style:style>'
        )
        rows = ""
        for style, texts in zip(styles, [("Lamp", "Keeper"), ("Outer", "Ada")], strict=True):
            cells: list[str] = []
            for text in texts:
                is_span = style == "Span"
                shown = f'<text:span text:style-name="Span">{text}</text:span>' if is_span else text
                cells.append(cell(shown).replace("<text:p>", f'<text:p text:style-name="{style}">'))
            rows += row(*cells)
        title = row(
            cell("Lamps", 'table:number-columns-spanned="2"').replace("<text:p>", '<text:p text:style-name="Head">')
        )
        text = read_open(tmp_path, f"<table:table>{title}{rows}</table:table>", styles=definitions).text
        assert text.split("\n")[-1] == last

    def test_a_chart(self, tmp_path):
        rows = row(cell("Isle"), cell("1880"), cell("1881")) + row(cell("Orra"), cell("75"), cell("80"))
        table = f"<table:table><table:table-header-rows>{rows[: rows.index('</table:table-row>') + 18]}"
        table += f"</table:table-header-rows>{rows[rows.index('</table:table-row>') + 18 :]}</table:table>"
        chart = f"<chart:chart><chart:title>{p('Sacks')}</chart:title>{table}</chart:chart>"
        content = f"<office:body><office:chart>{chart}</office:chart></office:body>"
        content = f"<office:document-content {SPACES}>{content}</office:document-content>"
        body = p('<draw:frame><draw:object xlink:href="./Object 1"/><draw:image/></draw:frame>')
        text = read_open(tmp_path, body, parts={"Object 1/content.xml": content}).text
        assert text == "Chart: Sacks\n\nIsle | 1880 | 1881\nIsle: Orra | 1880: 75 | 1881: 80"


class TestSheets:
    @pytest.mark.parametrize(
        ("attributes", "shown", "seen"),
        [
            ('office:value-type="percentage" office:value="0.153"', "15.30%", "15.30%"),
            ('office:value-type="percentage" office:value="0.153"', "", "15.3%"),
            ('office:value-type="currency" office:value="1234.5" office:currency="EUR"', "1.234,50 €", "1.234,50 €"),
            ('office:value-type="currency" office:value="1234.5" office:currency="EUR"', "", "1234.5 EUR"),
            ('office:value-type="date" office:date-value="2024-03-31"', "31.03.24", "2024-03-31"),
            ('office:value-type="float" office:value="42"', "00042", "00042"),
        ],
    )
    def test_values_as_people_see_them(self, tmp_path, attributes, shown, seen):
        table = f'<table:table table:name="Dues">{row(cell("Gull"), cell(shown, attributes))}</table:table>'
        assert read_open(tmp_path, table, extension="ods").text == f"# Dues\n\nGull | {seen}"

    def test_merged_and_repeated_cells_comments_and_formulas(self, tmp_path):
        note = f"<office:annotation><dc:creator>Ada</dc:creator>{p('Twice')}</office:annotation>"
        rows = [
            row(cell("Region"), cell("Quarter"), cell("Sacks")),
            row(
                cell("North", 'table:number-rows-spanned="2"'),
                cell("Q1"),
                f"<table:table-cell>{note}{p('7')}</table:table-cell>",
            ),
            row(
                "<table:covered-table-cell/>",
                cell("Q2", 'table:number-columns-repeated="2"'),
                '<table:table-cell table:number-columns-repeated="16000"/>',
            ),
            row(cell("South"), cell("Q1"), '<table:table-cell table:formula="of:=[.A1]"/>'),
            '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>',
        ]
        content = read_open(tmp_path, f'<table:table table:name="Dues">{"".join(rows)}</table:table>', extension="ods")
        assert content.text.split("\n")[2:6] == [
            "Region | Quarter | Sacks",
            "Region: North | Quarter: Q1 | Sacks: 7",
            "Region: North | Quarter: Q2 | Sacks: Q2",
            "Region: South | Quarter: Q1",
        ]
        assert content.text.endswith("Comment by Ada: Twice")
        assert content.left_out[0].startswith("1 formula without a saved value")


def picture(title="", description=""):
    about = f"<svg:title>{title}</svg:title><svg:desc>{description}</svg:desc>"
    images = '<draw:image xlink:href="a.svg"/><draw:image xlink:href="a.png"/>'  # one for older programs
    return f"<draw:frame>{images}{about}</draw:frame>"


class TestPictures:
    @pytest.mark.parametrize(
        ("shown", "seen"),
        [
            (picture("Map", "The quay, with the mill behind it"), "Picture: The quay, with the mill behind it"),
            (picture("The quay"), "Picture: The quay"),
            (picture("image", "quay.png"), ""),
            (picture(), ""),
        ],
    )
    def test_what_is_read_out_for_a_picture(self, tmp_path, shown, seen):
        content = read_open(tmp_path, f"{p('Orrin.')}<text:p>{shown}</text:p>")
        assert content.text.split("\n\n") == ["Orrin.", *filter(None, [seen])]
        assert content.left_out == ("1 picture",)
        page = f"<draw:page>{picture('The quay')}</draw:page>"
        content = read_open(tmp_path, page, extension="odp")
        assert content.text == "# Slide 1\n\nPicture: The quay"
        assert content.left_out == ("1 slide with nothing but a picture",)


class TestOpenSlides:
    def test_all_shapes_of_a_slide_in_the_order_of_a_reader(self, tmp_path):
        def place(x, y):
            return f'svg:x="{x}cm" svg:y="{y}mm" svg:width="2cm" svg:height="1cm"'

        shapes = [
            frame("right", place(9, 50)),
            f"<draw:custom-shape {place(1, 52)}>{p('left')}</draw:custom-shape>",
            f"<draw:connector {place(1, 90)}>{p('arrow')}</draw:connector>",
            f"<draw:rect {place(1, 20)}>{p('top')}</draw:rect>",
        ]
        notes = f"<presentation:notes>{frame('Pause here.')}</presentation:notes>"
        title = frame("The sluice", 'presentation:class="title"')
        page = f"<draw:page>{''.join(shapes)}{title}{notes}</draw:page>"
        content = read_open(tmp_path, page + f"<draw:page>{frame('Last')}</draw:page>", extension="odp")
        assert content.text.split("\n\n") == [
            *("# The sluice", "top", "left", "right", "arrow", "Notes: Pause here."),
            *("# Slide 2", "Last"),
        ]
        assert content.title == "The sluice"
        assert len(content.page_starts) == 2


class TestSlides:
    def make(self):
        show = Presentation()
        return show, show.slides.add_slide(show.slide_layouts[6])

    def read(self, path, show):
        show.save(str(path / "a.pptx"))
        return read_office(path / "a.pptx")

    def box(self, shapes, text, left, top):
        shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(0.5)).text_frame.text = text

    @pytest.mark.parametrize("depth", [0, 1, 3])
    def test_shapes_in_groups_in_the_order_of_a_reader(self, tmp_path, depth):
        show, slide = self.make()
        shapes = slide.shapes
        for _ in range(depth):
            shapes = shapes.add_group_shape().shapes
        for text, left, top in (("last", 1, 5), ("right", 5, 2.1), ("left", 1, 2), ("first", 1, 1)):
            self.box(shapes, text, left, top)
        assert self.read(tmp_path, show).text.split() == ["#", "Slide", "1", "first", "left", "right", "last"]

    def test_a_command_is_no_heading_and_raised_digits_stand_apart(self, tmp_path):
        show, slide = self.make()
        self.box(slide.shapes, "# rm -r /old", 1, 1)
        self.box(slide.shapes, "10", 1, 3)
        run = slide.shapes[1].text_frame.paragraphs[0].add_run()
        run.text = "6"
        run.font._element.set("baseline", "30000")
        assert self.read(tmp_path, show).text == "# Slide 1\n\n    # rm -r /old\n\n10^6"

    def test_dates_and_groups_of_categories_of_a_chart(self, tmp_path):
        opened = Presentation()
        slide = opened.slides.add_slide(opened.slide_layouts[6])
        days = CategoryChartData()
        days.categories = [date(2002, 1, 5), date(2002, 1, 6)]
        grouped = CategoryChartData()
        for year in ("2021", "2022"):
            quarters = grouped.add_category(year)
            for quarter in ("01", "02"):
                quarters.add_sub_category(quarter)
        for data, values in ((days, [4, 5]), (grouped, [1, 2, 3, 4])):
            data.add_series("Sacks", values)
            slide.shapes.add_chart(XL_CHART_TYPE.LINE, Inches(1), Inches(1), Inches(2), Inches(2), data)
        opened.save(tmp_path / "a.pptx")
        text = read_office(tmp_path / "a.pptx").text
        assert "Category: 2002-01-06 | Sacks: 5" in text
        assert "Category: 2021 02 | Sacks: 2\nCategory: 2022 01 | Sacks: 3" in text

    def test_a_chart_a_merged_cell_and_a_slide_of_pictures(self, tmp_path):
        show, slide = self.make()
        data = CategoryChartData()
        data.categories = ["Rye", "Oats"]
        data.add_series("1880", (75, 80))
        data.add_series("1881", (70.5, 82))
        where = [Inches(1), Inches(1), Inches(3), Inches(2)]
        slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *where, data).chart.has_title = True
        slide.shapes[0].chart.chart_title.text_frame.text = "Sacks"
        table = slide.shapes.add_table(3, 3, Inches(1), Inches(4), Inches(3), Inches(2)).table
        for place, text in enumerate("Region|Quarter|Sacks|North|Q1|7||Q2|8".split("|")):
            table.cell(place // 3, place % 3).text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        picture = show.slides.add_slide(show.slide_layouts[6]).shapes._spTree
        picture.append(etree.fromstring(f'<p:pic xmlns:p="{picture.nsmap["p"]}"/>'))
        content = self.read(tmp_path, show)
        assert "Chart: Sacks\n\nCategory | 1880 | 1881\nCategory: Rye | 1880: 75 | 1881: 70.5" in content.text
        assert "Region: North | Quarter: Q2 | Sacks: 8" in content.text
        assert content.left_out == ("1 slide with nothing but pictures",)

    def test_what_is_read_out_for_a_picture(self, tmp_path):
        show, slide = self.make()
        space = slide.shapes._spTree.nsmap["p"]
        properties = '<p:nvPicPr><p:cNvPr id="9" name="Picture 1" descr="The quay"/></p:nvPicPr>'
        slide.shapes._spTree.append(etree.fromstring(f'<p:pic xmlns:p="{space}">{properties}</p:pic>'))
        content = self.read(tmp_path, show)
        assert content.text == "# Slide 1\n\nPicture: The quay"
        assert content.left_out == ("1 slide with nothing but pictures",)

    def test_comments_and_footers(self, tmp_path):
        show, slide = self.make()
        authors = '<p:cmAuthorLst xmlns:p="urn:p"><p:cmAuthor id="3" name="Ada"/></p:cmAuthorLst>'
        comment = '<p:cmLst xmlns:p="urn:p"><p:cm authorId="3"><p:text>Which mill?</p:text></p:cm></p:cmLst>'
        for owner, name, kind, xml in (
            (show.part, "/ppt/commentAuthors.xml", RELATIONSHIP_TYPE.COMMENT_AUTHORS, authors),
            (slide.part, "/ppt/comments/comment1.xml", RELATIONSHIP_TYPE.COMMENTS, comment),
        ):
            owner.relate_to(Part(PackURI(name), "application/xml", show.part.package, xml.encode()), kind)
        self.box(slide.shapes, "The mill", 1, 1)
        for each in (slide, show.slides.add_slide(show.slide_layouts[6])):
            self.box(each.shapes, "Marrow Mill Ltd.", 1, 7)
            properties = each.shapes[-1]._element.nvSpPr.nvPr
            properties.append(etree.fromstring(f'<p:ph xmlns:p="{properties.nsmap["p"]}" type="ftr"/>'))
        text = self.read(tmp_path, show).text
        assert text.startswith("# Slide 1\n\nThe mill\n\nFooter: Marrow Mill Ltd.\n\nComment by Ada: Which mill?")
        assert text.endswith("# Slide 2")
