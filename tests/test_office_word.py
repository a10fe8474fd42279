"""Documents of Word: what a person sees in them is in the text, or named as left out."""

from __future__ import annotations

import itertools
import zipfile

import pytest
from docx import Document as WordDocument
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml

from arag.ingest.formats.office import read_office
from arag.ingest.sentences import split_sentences

NAMESPACES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "wpg": "http://schemas.microsoft.com/office/word/2010/wordprocessingGroup",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "v": "urn:schemas-microsoft-com:vml",
    "o": "urn:schemas-microsoft-com:office:office",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
}
SPACES = " ".join(f'xmlns:{name}="{uri}"' for name, uri in NAMESPACES.items())
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_word(path, body, parts=None):
    """Write a document with raw XML in its body, and further parts: name, kind and content."""
    relations = ""
    with zipfile.ZipFile(path, "w") as archive:
        main = f'<Relationship Id="m" Type="{KINDS}/officeDocument" Target="word/document.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{RELATIONS}">{main}</Relationships>')
        archive.writestr("word/document.xml", f"<w:document {SPACES}><w:body>{body}</w:body></w:document>")
        for number, (name, kind, content) in enumerate(parts or []):
            archive.writestr(f"word/{name}", content)
            relations += f'<Relationship Id="r{number}" Type="{KINDS}/{kind}" Target="{name}"/>'
        archive.writestr(
            "word/_rels/document.xml.rels", f'<Relationships xmlns="{RELATIONS}">{relations}</Relationships>'
        )
    return path


def p(text, properties=""):
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def numbered(text, level=0, list_id=1):
    return p(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>')


def numbering(*levels, more=""):
    made = ""
    for number, (form, text) in enumerate(levels):
        how = f'<w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
        made += f'<w:lvl w:ilvl="{number}">{how}</w:lvl>'
    lists = f'<w:abstractNum w:abstractNumId="7">{made}</w:abstractNum>'
    lists += f'<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>{more}'
    return ("numbering.xml", "numbering", f"<w:numbering {SPACES}>{lists}</w:numbering>")


def box(text):
    return f"<wps:wsp><wps:txbx><w:txbxContent>{p(text)}</w:txbxContent></wps:txbx></wps:wsp>"


def read_word(path, body, *parts):
    return read_office(write_word(path / "a.docx", body, parts))


class TestNumbers:
    def test_clauses_are_numbered_as_word_does(self, tmp_path):
        texts = [
            numbered("Rent"),
            numbered("Each May.", 1),
            numbered("In coin.", 1),
            numbered("End"),
            numbered("By letter.", 1),
        ]
        content = read_word(tmp_path, "".join(texts), numbering(("decimal", "%1."), ("decimal", "%1.%2")))
        assert content.text.split("\n\n") == ["1. Rent", "1.1 Each May.", "1.2 In coin.", "2. End", "2.1 By letter."]

    @pytest.mark.parametrize(
        ("form", "text", "numbers"),
        [
            ("lowerLetter", "(%1)", ["(a)", "(b)", "(c)"]),
            ("upperRoman", "Article %1", ["Article I", "Article II", "Article III"]),
            ("decimalZero", "%1)", ["01)", "02)", "03)"]),
            ("ordinal", "%1", ["1st", "2nd", "3rd"]),
            ("bullet", "•", ["-", "-", "-"]),
        ],
    )
    def test_forms_of_numbers(self, tmp_path, form, text, numbers):
        content = read_word(tmp_path, "".join(map(numbered, "xyz")), numbering((form, text)))
        assert (
            content.text.split()
            == " ".join(f"{number} {name}" for number, name in zip(numbers, "xyz", strict=True)).split()
        )

    def test_another_list_of_one_definition_goes_on_or_starts_again(self, tmp_path):
        more = '<w:num w:numId="2"><w:abstractNumId w:val="7"/></w:num>'
        override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
        more += f'<w:num w:numId="3"><w:abstractNumId w:val="7"/>{override}</w:num>'
        texts = [numbered("a"), numbered("b", 0, 2), numbered("c", 0, 3), numbered("d", 0, 3)]
        content = read_word(tmp_path, "".join(texts), numbering(("decimal", "%1."), more=more))
        assert content.text == "1. a\n2. b\n5. c\n6. d"

    @pytest.mark.parametrize("second", ['<w:numId w:val="1"/>', ""])
    def test_headings_take_their_numbers_from_their_styles(self, tmp_path, second):
        style = (
            '<w:style w:type="paragraph" w:styleId="Rubrik{0}"><w:name w:val="heading {0}"/>'
            '<w:basedOn w:val="Rubrik1"/><w:pPr><w:numPr><w:ilvl w:val="{1}"/>{2}</w:numPr></w:pPr></w:style>'
        )
        made = style.format(1, 0, '<w:numId w:val="1"/>') + style.format(2, 1, second)
        styles = ("styles.xml", "styles", f"<w:styles {SPACES}>{made}</w:styles>")
        body = "".join(p(f"Part {n}", f'<w:pStyle w:val="Rubrik{n}"/>') for n in (1, 2, 2, 1, 2))
        content = read_word(tmp_path, body, styles, numbering(("upperLetter", "%1"), ("decimal", "%1.%2")))
        assert content.text.split("\n\n") == [
            "# A Part 1",
            "## A.1 Part 2",
            "## A.2 Part 2",
            "# B Part 1",
            "## B.1 Part 2",
        ]
        assert content.title == ""  # a chapter's title is not that of the document


class TestHeadings:
    def test_a_command_is_no_heading(self, tmp_path):
        word = WordDocument()
        word.add_heading("Sluice", 1)
        for text in ("# rm -r /old", "## 12 on the list", "```", "It turns once. Then it stops."):
            word.add_paragraph(text)
        word.save(tmp_path / "a.docx")
        text = read_office(tmp_path / "a.docx").text
        assert {sentence.heading for sentence in split_sentences(text)[1:]} == {"Sluice"}
        assert "# rm -r /old" in text

    def test_a_style_that_is_made_from_a_heading_is_one(self, tmp_path):
        word = WordDocument()
        style = word.styles.add_style("Chapter of ours", WD_STYLE_TYPE.PARAGRAPH)
        style.base_style = word.styles["Heading 2"]
        word.add_paragraph("The wheel", style=style)
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").text == "## The wheel"


class TestDrawings:
    @pytest.mark.parametrize("names", [["Miller"], ["Miller", "Clerk", "Carter"], list("abcdef")])
    def test_all_boxes_of_a_group_in_a_group(self, tmp_path, names):
        inner = "".join(map(box, names[1:]))
        group = f"<wpg:wgp>{box(names[0])}<wpg:grpSp>{inner}</wpg:grpSp></wpg:wgp>"
        fallback = (
            "<w:pict><v:textbox><w:txbxContent>" + "".join(map(p, names)) + "</w:txbxContent></v:textbox></w:pict>"
        )
        drawing = f"<w:drawing>{group}</w:drawing>"
        both = f"<mc:Choice>{drawing}</mc:Choice><mc:Fallback>{fallback}</mc:Fallback>"
        both = f"<mc:AlternateContent>{both}</mc:AlternateContent>"
        body = f"<w:p><w:r><w:t>Staff</w:t></w:r><w:r>{both}</w:r></w:p>{p('End')}"
        assert read_word(tmp_path, body).text.split() == ["Staff", *names, "End"]

    def test_the_title_is_neither_in_the_header_nor_the_contents(self, tmp_path):
        title = '<w:pStyle w:val="Title"/>'
        header = ("header1.xml", "header", f"<w:hdr {SPACES}>{p('Figures (continued)', title)}</w:hdr>")
        body = p("Contents", title) + p("The Mill", title) + p("Contents", title)
        assert read_word(tmp_path, body, header).title == "The Mill"

    def test_a_cell_that_spans_the_table_gets_the_name_of_no_column(self, tmp_path):
        word = WordDocument()
        table = word.add_table(4, 3)
        rows = [["Day", "Oil", "Rye"], ["Monday", "4", "5"], ["In summer", "", ""], ["Friday", "6", "7"]]
        for cell, text in zip(table._cells, itertools.chain.from_iterable(rows), strict=True):
            cell.text = text
        table.cell(2, 0).merge(table.cell(2, 2))
        word.save(tmp_path / "a.docx")
        lines = read_office(tmp_path / "a.docx").text.split("\n")
        assert lines[1:] == ["Day: Monday | Oil: 4 | Rye: 5", "", "In summer", "", "Day: Friday | Oil: 6 | Rye: 7"]

    def test_a_box_in_a_cell_and_one_in_the_page_header(self, tmp_path):
        drawing = f"<w:p><w:r><w:drawing>{box('Mind the step')}</w:drawing></w:r></w:p>"
        cells = "".join(f"<w:tc>{cell}</w:tc>" for cell in (p("Gate"), drawing))
        header = ("header1.xml", "header", f"<w:hdr {SPACES}>{drawing.replace('Mind the step', 'Marrow Mill')}</w:hdr>")
        page = '<w:p><w:r><w:t>Page </w:t></w:r><w:fldSimple w:instr="PAGE"><w:r><w:t>7</w:t></w:r></w:fldSimple></w:p>'
        footer = ("footer1.xml", "footer", f"<w:ftr {SPACES}>{page}{p('Lease of 1881')}</w:ftr>")
        content = read_word(tmp_path, f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>", header, footer)
        assert content.text.split("\n\n") == [
            "Gate",
            "Mind the step",
            "Header: Marrow Mill",
            "Footer: Lease of 1881",
        ]

    def test_a_chart_and_a_diagram(self, tmp_path):
        def series(name, values):
            points = "".join(f'<c:pt idx="{n}"><c:v>{value}</c:v></c:pt>' for n, value in enumerate(values))
            labels = "".join(f'<c:pt idx="{n}"><c:v>{value}</c:v></c:pt>' for n, value in enumerate(("Rye", "Oats")))
            return f"<c:ser><c:tx><c:v>{name}</c:v></c:tx><c:cat>{labels}</c:cat><c:val>{points}</c:val></c:ser>"

        title = "<c:title><a:p><a:r><a:t>Sacks</a:t></a:r></a:p></c:title>"
        plot = f"<c:plotArea>{series('1880', [75, 80])}{series('1881', [70.5, 82])}</c:plotArea>"
        chart = f"<c:chartSpace {SPACES}><c:chart>{title}{plot}</c:chart></c:chartSpace>"
        points = "".join(
            f"<dgm:pt><dgm:t><a:p><a:r><a:t>{t}</a:t></a:r></a:p></dgm:t></dgm:pt>" for t in ("Weigh", "Grind")
        )
        diagram = f"<dgm:dataModel {SPACES}>{points}</dgm:dataModel>"
        body = '<w:p><w:r><w:drawing><c:chart r:id="r0"/></w:drawing></w:r></w:p>'
        body += '<w:p><w:r><w:drawing><dgm:relIds r:dm="r1"/></w:drawing></w:r></w:p>'
        body += '<w:p><w:r><w:drawing><c:chart r:id="r9"/></w:drawing></w:r></w:p>'
        content = read_word(tmp_path, body, ("chart1.xml", "chart", chart), ("data1.xml", "diagramData", diagram))
        assert "Chart: Sacks\n\nCategory | 1880 | 1881\nCategory: Rye | 1880: 75 | 1881: 70.5" in content.text
        assert content.text.endswith("- Weigh\n- Grind")
        assert content.left_out == ("1 chart",)


class TestInline:
    @pytest.mark.parametrize(
        ("runs", "seen"),
        [
            ([("10", ""), ("6", "superscript"), (" bits", "")], "10^6 bits"),
            ([("in 1880", ""), ("3", "superscript")], "in 1880³"),
            ([("5 m", ""), ("2", "superscript")], "5 m²"),
            ([("the 1", ""), ("st", "superscript")], "the 1st"),
            ([("H", ""), ("2", "subscript"), ("O", "")], "H2O"),
            ([("Tolk [", ""), ("4", "superscript"), ("]", "")], "Tolk [4]"),
        ],
    )
    def test_raised_digits_stand_apart(self, tmp_path, runs, seen):
        word = WordDocument()
        paragraph = word.add_paragraph()
        for text, place in runs:
            run = paragraph.add_run(text)
            if place:
                setattr(run.font, place, True)
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").text == seen

    def test_changes_are_shown_as_accepted_and_hidden_text_is_not(self, tmp_path):
        run = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"
        deleted = "<w:del><w:r><w:delText>begins </w:delText></w:r></w:del>"
        body = (
            f"<w:p>{run.format('The lease ')}<w:ins>{run.format('ends ')}</w:ins>{deleted}"
            f"<w:moveFrom>{run.format('old ')}</w:moveFrom><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r>"
            f"<w:r><w:rPr><w:vanish w:val='0'/></w:rPr><w:t>in May.</w:t></w:r></w:p>"
        )
        assert read_word(tmp_path, body).text == "The lease ends in May."

    @pytest.mark.parametrize(
        ("texts", "seen"),
        [
            (["The lease ", "-", "ends in May.", "It is long."], "The lease ends in May.\n\nIt is long."),
            (["One ", "-", "two ", "-", "three."], "One two three."),
            (["The lease ends.", "", "-"], "The lease ends."),  # there is none to go on with
        ],
    )
    def test_paragraphs_whose_end_is_deleted_go_on_with_the_next(self, tmp_path, texts, seen):
        body = ""
        for text, following in zip(texts, [*texts[1:], ""], strict=True):
            if text != "-":
                body += p(text, "<w:rPr><w:del/></w:rPr>" if following == "-" else "")
        assert read_word(tmp_path, body).text == seen

    @pytest.mark.parametrize(
        ("place", "seen"), [("drop", "Sallow bends."), ("margin", "Sallow bends."), ("", "S\n\nallow bends.")]
    )
    def test_a_large_first_letter_belongs_to_its_word(self, tmp_path, place, seen):
        letter = p("S", f'<w:framePr w:dropCap="{place or "none"}" w:lines="3"/>')
        assert read_word(tmp_path, letter + p("allow bends.")).text == seen

    def test_a_deleted_clause_has_no_number(self, tmp_path):
        deleted = "<w:r><w:delText>Rent</w:delText></w:r>"
        number = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
        clause = f"<w:p><w:pPr>{number}<w:rPr><w:del/></w:rPr></w:pPr><w:del>{deleted}</w:del></w:p>"
        body = numbered("Term") + clause + numbered("Repairs") + p("See clause 2.")
        content = read_word(tmp_path, body, numbering(("decimal", "%1.")))
        assert content.text == "1. Term\n2. Repairs\n\nSee clause 2."

    def test_fields_controls_formulas_and_signs(self, tmp_path):
        field = (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF clause</w:instrText></w:r>'
            '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>2.1</w:t></w:r>'
            '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        )
        control = "<w:sdt><w:sdtPr/><w:sdtContent><w:r><w:t> Orrin</w:t></w:r></w:sdtContent></w:sdt>"
        parts = "<m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den>"
        fraction = f"<m:oMath><m:f>{parts}</m:f></m:oMath>"
        sign = '<w:r><w:tab/><w:sym w:font="Symbol" w:char="F0B3"/><w:t>3</w:t></w:r>'
        assert read_word(tmp_path, f"<w:p>{field}{control}{sign} {fraction}</w:p>").text == "2.1 Orrin ≥3(a+b)/2"

    @pytest.mark.parametrize(
        ("formula", "text"),
        [
            ("<m:m><m:mPr/><m:mr>{a}{b}</m:mr><m:mr>{c}{d}</m:mr></m:m>", "a, b; c, d"),
            ("<m:d><m:dPr><m:begChr m:val='{{'/><m:endChr m:val=''/></m:dPr>{a}</m:d>", "{a"),
            ("<m:eqArr>{a}{b}</m:eqArr>", "a; b"),
            ("<m:d><m:dPr/>{a}{b}</m:d>", "(a|b)"),
            ("<m:d><m:dPr><m:sepChr m:val=','/></m:dPr>{a}{b}</m:d>", "(a,b)"),
        ],
    )
    def test_parts_of_formulas_stand_apart(self, tmp_path, formula, text):
        parts = {name: f"<m:e><m:r><m:t>{name}</m:t></m:r></m:e>" for name in "abcd"}
        body = f"<w:p><m:oMath>{formula.format(**parts)}</m:oMath></w:p>"
        assert read_word(tmp_path, body).text == text

    @pytest.mark.parametrize(
        ("description", "seen"),
        [
            ("The quay, with the mill", "Picture: The quay, with the mill"),
            ("A duck on a quay&#xA;&#xA;Description automatically generated", "Picture: A duck on a quay"),
            ("一座码头&#xA;&#xA;AI 生成的内容可能不正确。", "Picture: 一座码头"),
            ("quay.png", ""),
            ("https://port.example/quay", ""),
        ],
    )
    def test_what_is_read_out_for_a_picture(self, tmp_path, description, seen):
        place = f'<wp:inline xmlns:wp="urn:wp"><wp:docPr id="1" name="Picture 1" descr="{description}"/>'
        picture = f'<w:r><w:drawing>{place}<pic:pic xmlns:pic="urn:pic"/></wp:inline></w:drawing></w:r>'
        content = read_word(tmp_path, f"{p('Orrin.')}<w:p>{picture}</w:p>")
        assert content.text.split("\n\n") == ["Orrin.", *filter(None, [seen])]
        assert content.left_out == ()
        assert read_word(tmp_path, f"<w:p>{picture}</w:p>").left_out == ("1 picture",)

    def test_notes_and_comments_follow_their_paragraph(self, tmp_path):
        refers = (
            '<w:p><w:r><w:t>Lit in 1801.</w:t><w:footnoteReference w:id="2"/><w:commentReference w:id="0"/></w:r></w:p>'
        )
        notes = f'<w:footnote w:type="separator" w:id="0"/><w:footnote w:id="2">{p("By Tolk.")}</w:footnote>'
        notes = f"<w:footnotes {SPACES}>{notes}</w:footnotes>"
        comments = f'<w:comments {SPACES}><w:comment w:id="0" w:author="Ada">{p("By whom?")}</w:comment></w:comments>'
        parts = ("footnotes.xml", "footnotes", notes), ("comments.xml", "comments", comments)
        text = read_word(tmp_path, refers + p("Put out in 1900."), *parts).text
        assert text == "Lit in 1801.\n\nBy Tolk.\n\nComment by Ada: By whom?\n\nPut out in 1900."


class TestAttached:
    @pytest.mark.parametrize(
        ("name", "data", "text"),
        [
            ("a.html", b"<p>The <b>third</b> clause", "The third clause"),
            ("a.txt", b"# no heading", "    # no heading"),
            ("a.pdf", b"%PDF", ""),
        ],
    )
    def test_a_file_in_the_place_of_a_paragraph_is_read_or_named(self, tmp_path, name, data, text):
        content = read_word(tmp_path, '<w:altChunk r:id="r0"/>', (name, "aFChunk", data))
        assert content.text == text
        assert content.left_out == (() if text else ("1 attached pdf file",))

    def test_a_document_in_a_document(self, tmp_path):
        word = WordDocument()
        word.add_paragraph("The inner lease.")
        word.save(tmp_path / "b.docx")
        inner = ("b.docx", "aFChunk", (tmp_path / "b.docx").read_bytes())
        assert read_word(tmp_path, f'{p("Before")}<w:altChunk r:id="r0"/>', inner).text == "Before\n\nThe inner lease."

    def test_an_embedded_workbook_is_named(self, tmp_path):
        word = WordDocument()
        word.add_paragraph("See the prices.")
        embedded = parse_xml(f'<w:object {SPACES}><o:OLEObject ProgID="Excel.Sheet.12" r:id="x"/></w:object>')
        word.add_paragraph().add_run()._r.append(embedded)
        word.save(tmp_path / "a.docx")
        assert read_office(tmp_path / "a.docx").left_out == ("1 embedded document",)


def test_a_box_drawn_as_a_table_of_one_column_keeps_its_lines(tmp_path):
    word = WordDocument()
    cell = word.add_table(1, 1).cell(0, 0)
    cell.text = "make clean"
    cell.add_paragraph("make all")
    word.save(tmp_path / "a.docx")
    assert read_office(tmp_path / "a.docx").text == "make clean\n\nmake all"


def test_the_title_of_a_table_stands_above_it(tmp_path):
    word = WordDocument()
    table = word.add_table(2, 2)
    for cell, text in zip(table._cells, ["Food", "Price", "Oats", "3"], strict=True):
        cell.text = text
    table._tbl.tblPr.append(parse_xml(f'<w:tblCaption {SPACES} w:val="What ducks eat"/>'))
    word.save(tmp_path / "a.docx")
    text = read_office(tmp_path / "a.docx").text
    assert text == "What ducks eat\n\nFood | Price\nOats | 3"


@pytest.mark.parametrize(
    ("entry", "seen"),
    [
        ('<w:checkBox><w:default w:val="1"/></w:checkBox>', "☒"),
        ('<w:checkBox><w:default w:val="0"/></w:checkBox>', "☐"),
        ('<w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>', "☒"),
        ('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>', "☐"),
        ('<w:ddList><w:result w:val="1"/><w:listEntry w:val="Orra"/><w:listEntry w:val="Holm"/></w:ddList>', "Holm"),
        ('<w:ddList><w:listEntry w:val="Orra"/><w:listEntry w:val="Holm"/></w:ddList>', "Orra"),
    ],
)
def test_fields_of_forms_without_text(tmp_path, entry, seen):
    word = WordDocument()
    paragraph = word.add_paragraph("Town: ")
    for mark in (
        f'<w:fldChar w:fldCharType="begin"><w:ffData>{entry}</w:ffData></w:fldChar>',
        '<w:fldChar w:fldCharType="end"/>',
    ):
        paragraph._p.append(parse_xml(f"<w:r {SPACES}>{mark}</w:r>"))
    paragraph.add_run(" by the sea")
    word.save(tmp_path / "a.docx")
    assert read_office(tmp_path / "a.docx").text == f"Town: {seen} by the sea"
