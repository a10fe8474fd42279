"""The readers of text, Markdown, tables, HTML and notebooks, and the child process that most readers run in."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext, suppress

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import InputError
from arag.ingest import formats
from arag.ingest.formats import Readers, tables
from arag.ingest.formats.content import Content, FormatError
from arag.ingest.formats.tables import table_lines
from arag.system.worker_process import WorkerError

TEXTS = {
    "cp1252": "Die Größe der Bäume überraschte die Wärter. Wir hörten früh am Morgen, daß der Leuchtturm "
    "geöffnet würde. „Schön“, sagte der Müller – und fuhr über die Brücke nach Köln. Äpfel kosteten 5 €.",
    "shift_jis": "灯台守は毎朝、霧の中で鐘を鳴らした。船は港に入り、子どもたちは桟橋で待っていた。",
    "gb18030": "守塔人冬天不下山。他的女儿每个月写一封信，说港口的灯已经修好了。船队回来，带来了油和面粉。",
    "koi8-r": "Смотритель маяка каждое утро звонил в колокол. Корабли входили в гавань, и дети ждали "
    "на пристани. Масло для лампы стоило шесть марок.",
}


class TestText:
    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("  The Title \r\n \t\nBody.", "The Title"),
            ("The Title\nBody.", ""),
            ("A sentence.\n\nBody.", ""),
            ("x" * 121 + "\n\nBody.", ""),
        ],
    )
    def test_a_short_first_line_by_itself_is_the_title(self, read, text, title):
        content = read("a.txt", text)
        assert (content.title, content.text) == (title, text.replace("\r\n", "\n"))

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    @pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py", "a.csv", "README"])
    def test_unicode_is_read(self, read, name, encoding):
        assert read(name, "Größe – 大".encode(encoding)).text == "Größe – 大"

    @pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
    def test_another_encoding_is_read_if_there_is_no_doubt_about_it(self, read, name):
        for encoding, text in TEXTS.items():
            assert read(name, text.encode(encoding)).text == text

    @pytest.mark.parametrize("encoding", ["cp1252", "cp1250", "iso8859-2", "cp1254", "cp1257"])
    @pytest.mark.parametrize(
        "text", ["Joss;Müllerweg 8;29,00", "Name;Gebühr\nÄnne;5 €\nKraków;6 °", "LÄDEN\nGröße;Tür"]
    )
    def test_a_short_text_is_read_if_all_latin_encodings_agree_on_it(self, read, text, encoding):
        data = text.encode(encoding, "ignore")
        assert read("a.txt", data).text == data.decode(encoding)

    @pytest.mark.parametrize(
        "text",
        [
            "La clé n’est pas là où elle était déjà : elle est pour une élève qui peut être sage avec vous.",
            "La chiave è più in là, perché così può essere presa da una delle sorelle, non per gioco.",
            "La llave está aquí, para que una niña pueda abrir los molinos del río, y por esta razón debe ser así.",
            "A chave não está com os irmãos, é uma coisa dos moinhos: ela deve ser mais útil para você.",
            "Nøglen er ikke her, og det er den som kan være på møllen til den dag, eller når vi har råd.",
            "Nyckeln är inte här, och det är den som ska vara på kvarnen till dess, eller när vi har råd.",
            "Der Schlüssel ist nicht hier, und das ist für die Mühle schlecht: er wird «sehr» gesucht.",
        ],
    )
    @pytest.mark.parametrize("encoding", ["cp1252", "mac_roman", "cp850"])
    def test_a_text_in_a_western_language_is_read_in_the_encoding_of_its_letters(self, tmp_path, text, encoding):
        (tmp_path / "a.txt").write_bytes(text.encode(encoding, "ignore"))
        is_western = encoding == "cp1252"
        with Readers() as readers, nullcontext() if is_western else suppress(FormatError):
            assert readers.read(tmp_path / "a.txt").text == text.encode(encoding, "ignore").decode(encoding)

    @pytest.mark.parametrize(
        ("text", "encoding"),
        [
            ("Lučić;Weg 8", "iso8859-2"),
            ("Gatvė;Rīga", "cp1257"),
            ("kız;dört", "cp1254"),
            ("très;élève", "cp1252"),
            ("Müller;Straße", "mac_roman"),
            ("TRÈS;L’EAU", "mac_roman"),
            ("wait…;Éva", "mac_roman"),
            ("Hauptstraße 5", "cp850"),
            ("PERÍODO", "cp850"),
            ("в лесу;xя", "cp1251"),
            ("Kα;Lδ", "cp1253"),
            ("ABC表;ソx", "shift_jis"),
            ("ABｦ;ﾄx", "shift_jis"),
            ("x中文y", "gb18030"),
        ],
    )
    def test_a_short_text_that_may_be_in_several_encodings_is_never_misread(self, reason, text, encoding):
        assert "name its encoding" in reason("a.csv", text.encode(encoding))

    @pytest.mark.parametrize("data", ["Größe".encode("cp1252"), "Маяк".encode("koi8-r"), bytes(range(1, 256)) * 9])
    def test_of_an_encoding_in_doubt_the_reason_says_how_to_name_it(self, reason, data):
        message = r"not valid UTF-8 \(byte 0x.*\); name its encoding, as in --encoding windows-1252"
        assert re.fullmatch(message, reason("a.txt", data))

    @pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py", "a.csv", "a.html"])
    def test_an_encoding_can_be_named(self, tmp_path, name):
        (tmp_path / name).write_bytes("Größe".encode("cp850"))
        with Readers(encoding="cp850") as readers:
            assert readers.read(tmp_path / name).text == "Größe"
            (tmp_path / name).write_text("Größe – 大")
            assert readers.read(tmp_path / name).text == "Größe – 大"

    @pytest.mark.parametrize("encoding", TEXTS)
    def test_a_named_encoding_is_for_texts_in_doubt_only(self, tmp_path, encoding):
        (tmp_path / "a.txt").write_bytes(TEXTS[encoding].encode(encoding))
        (tmp_path / "b.txt").write_bytes("¿Dónde está el faro? – Más allá".encode("cp1252"))
        with Readers(encoding="windows-1252") as readers:
            assert readers.read(tmp_path / "a.txt").text == TEXTS[encoding]
            assert readers.read(tmp_path / "b.txt").text == "¿Dónde está el faro? – Más allá"

    def test_an_encoding_of_seven_bits_can_be_named(self, tmp_path):
        (tmp_path / "a.txt").write_bytes("大きさ".encode("iso-2022-jp"))
        with Readers(encoding="iso-2022-jp") as readers:
            assert readers.read(tmp_path / "a.txt").text == "大きさ"
            (tmp_path / "a.txt").write_text("\x1b[1mGröße")  # UTF-8, as a terminal shows it
            assert "Größe" in readers.read(tmp_path / "a.txt").text

    def test_a_wrong_or_unknown_encoding_is_named(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"\xff")
        with Readers(encoding="ascii") as readers, pytest.raises(FormatError, match="nor valid ascii"):
            readers.read(tmp_path / "a.txt")
        with pytest.raises(InputError, match="klingon"):
            Readers(encoding="klingon")

    def test_a_page_that_is_not_in_the_utf_8_that_it_declares_needs_an_encoding(self, tmp_path):
        page = '<meta charset="utf-8"><title>Systems</title><p>It runs on\xa0Linux and on Solaris.'
        (tmp_path / "a.html").write_bytes(page.encode("latin-1"))
        with Readers() as readers, pytest.raises(FormatError, match="as in --encoding windows-1252"):
            readers.read(tmp_path / "a.html")
        with Readers(encoding="windows-1252") as readers:
            assert "It runs on Linux and on Solaris." in readers.read(tmp_path / "a.html").text

    def test_line_ends_and_characters_that_cannot_be_stored(self, read):
        assert read("a.txt", b"a\r\nb\rc\0d\r\r\ne").text == "a\nb\ncd\ne"

    def test_a_file_without_an_extension_is_read_if_it_is_text(self, read, reason):
        assert read("LICENSE", "Free.").text == "Free."
        assert reason("core", b"\x7fELF\0\0") == "a binary file: it has no text"


class TestMarkdown:
    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("intro\n\n   #   One #  \ntext\n\n# Two", "One"),
            ("## Lower\n#NoHeading\n    # code\n### Lowest\ntext", "Lower"),
            ("Lower\n---\n\ntext\n\nLowest\n---\n", ""),
            ("text\n\n## Lower", ""),
            ("```sh\n# comment\n~~~\n# more\n```\n# One", "One"),
            ("The  Title\n=====\n\ntext", "The Title"),
            ("---\nAbstract of it.\n---\nSecond.", ""),
            ("---\nbroken: [yaml\n---\n\n# One", "One"),
            ("---\na: &x [1]\nb: *x\n---\n\n# One", "One"),
            ("---\na: " + "[" * 20_000 + "\n---\n\n# One", "One"),
        ],
    )
    def test_the_first_heading_is_the_title_and_the_text_stays(self, read, text, title):
        assert read("a.md", text) == Content(title, text, headings_apart=True, is_plain=True)

    def test_lines_of_nothing_but_tags_are_not_read(self, read):
        text = 'Lamps. <br />\n<br />\n\n<p align="center">\n\n`<br>` ends a line.\n\n</p>\n\n```\n<br />\n```\n'
        shown = read("a.md", text).text
        assert shown.split() == ["Lamps.", "`<br>`", "ends", "a", "line.", "```", "<br", "/>", "```"]

    def test_front_matter_becomes_metadata(self, read):
        content = read(
            "a.md",
            '---\ntitle: "The \\"Title\\""\nauthor: Ann Lee  # the elder\nyear: 1824\ndraft: true\nempty:\n'
            "date: 2024-02-30\nat: 12:30\ncountry: NO\nrun: '`r Sys.Date()`'\n"
            "tags: [a, b]\nlist:\n  - more: {x: [1, 2]}\n---\n\n# Heading\n\nBody.\n",
        )
        assert (content.title, content.text) == ('The "Title"', "# Heading\n\nBody.\n")
        assert content.metadata == {
            "author": "Ann Lee",
            "year": 1824,
            "draft": True,
            "empty": None,
            "date": "2024-02-30",
            "at": "12:30",
            "country": "NO",
            "tags": ["a", "b"],
            "list": [{"more": {"x": [1, 2]}}],
        }

    @given(
        lines=st.lists(
            st.sampled_from([*"--- *** === ... # ## - > ``` [a] {b} & *c ! | % @ a: a:b".split(), ""])
            | st.lists(st.text("abcxyz", min_size=1, max_size=5), max_size=4).map(" ".join),
            max_size=14,
        ),
    )
    def test_no_word_of_a_body_is_lost(self, readers, tmp_path_factory, lines):
        path = tmp_path_factory.mktemp("body") / "a.md"
        path.write_text("---\n" + "\n".join(lines))
        content = readers.read(path)
        assert content.metadata or content.text.split() == path.read_text().split()


class TestTables:
    @pytest.mark.parametrize(
        ("rows", "lines"),
        [
            ([["Name", "Year", "Port"], ["Ada", "1843", ""]], ["Name | Year | Port", "Name: Ada | Year: 1843"]),
            # A form, and values without names.
            ([["Name", "Ada"], ["Born", "1815"]], ["Name | Ada", "Born | 1815"]),
            ([["5.1", "3.5", "x"], ["4.9", "", "7"]], ["5.1 | 3.5 | x", "4.9 |  | 7"]),
            # Years are names, one year is a value.
            ([["Isle", "2020", "2021"], ["Orra", "5", "6"]], ["Isle | 2020 | 2021", "Isle: Orra | 2020: 5 | 2021: 6"]),
            # An empty first cell is a cell.
            ([["", "Tons", "Crew", "At"], ["Gull", "40", "6"]], [" | Tons | Crew | At", "Gull | Tons: 40 | Crew: 6"]),
            # A blank row ends a table, and a single cell stands apart.
            (
                [["Dues"], ["A", "B", "C"], ["1", "2", "3"], [], ["D", "E", "F"], ["4", "", ""]],
                ["Dues", "", "A | B | C", "A: 1 | B: 2 | C: 3", "", "D | E | F", "", "D: 4"],
            ),
            ([], []),
        ],
    )  # fmt: skip
    def test_rows_have_the_names_of_their_columns(self, rows, lines):
        assert table_lines(rows) == lines

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_delimiters_and_quotes(self, read, delimiter):
        data = 'Name,Note\r\n"Ada, Countess","one\ntwo ""three"""\r\nGrace,'
        data = data.replace(",", delimiter).replace(f"Ada{delimiter}", "Ada,")
        assert read("a.csv", data).text == 'Name | Note\nName: Ada, Countess | Note: one two "three"\n\nName: Grace'

    def test_a_cell_of_many_pages(self, read):
        assert read("a.csv", f"Name,Note\nAda,{'word ' * 40_000}").text.count("word") == 40_000

    @pytest.mark.parametrize("title", ["Report, 2024\n", "Report, of, all, ports\n\n"])
    def test_a_title_above_decimal_commas(self, read, title):
        text = read("a.csv", title + "Ship;Tons;Draught\nGull;40,5;2,5\nPetrel;90,0;3,1\n").text
        assert "Ship | Tons | Draught\nShip: Gull | Tons: 40,5 | Draught: 2,5\n" in text


class TestHtml:
    @pytest.mark.parametrize(
        ("html", "title"),
        [
            ("<title> The\n Title </title><h1>Other</h1>", "The Title"),
            ("<title> </title><h1>The <i>Head</i>ing<br>too</h1>", "The Heading too"),
            ("<svg><title>Icon</title></svg><h1>Heading</h1>", "Heading"),
            ("<section><h2>Part of a book</h2></section>", "Part of a book"),
            ("<title>&lt;no title&gt; \u2014 Harbour rules 1.2</title><h1>Heading</h1>", "Heading"),
            ("<title>Untitled Document</title>", ""),
            ("<title>Use of <tt>MILL.EXE</tt>, and the <b> tag</title>", "Use of MILL.EXE, and the <b> tag"),
            ("<p>text<h2>Later</h2>", ""),
            ("<p>text", ""),
        ],
    )
    def test_title(self, read, html, title):
        assert read("a.html", html + "<p>text").title == title

    @pytest.mark.parametrize(
        ("html", "text"),
        [
            ("<p>One <b>bo</b>ld\n  word</p><p>two<div>three</div>four", "One bold word\n\ntwo\n\nthree\n\nfour"),
            (
                "<table><tr><th>Port<th>Open<th>Name<tr><td>80<td><img src=i height=16 alt=yes><td>web</table>",
                "Port | Open | Name\nPort: 80 | Open: yes | Name: web",
            ),
            ("<input type=checkbox class=md-toggle><p><input type=checkbox checked> oiled", "[x] oiled"),
            ("<table><tr><td><img src=i height=16 alt=Note><td>Close it.</table>", "Close it."),
            ("<h1>A</h1><h2>B <i>c</i><br>d</h2>text<h6>E</h6>", "# A\n\n## B c d\n\ntext\n\n###### E"),
            ("<p>List:<ul><li>one</li>\n<li><p>two</p></li></ul>end", "List:\n\n- one\n- two\n\nend"),
            ("<ol><li>one<ul><li> in</ul><li><li><h3>Head</h3></ol>", "1. one\n  - in\n\n### Head"),
            ("<p>Do:<ol><li>Fill<p>It burns.<li>Light</ol>", "Do:\n1. Fill\n\nIt burns.\n2. Light"),
            ("<ol start=3 reversed><li>one<li value=9>two<li>three</ol>", "3. one\n9. two\n8. three"),
            ("<ol type=a><li>one</ol><ol style='list-style: none'><li>two</ol>", "- a. one\n- two"),
            ("<ol><li>1. one<li>1.2 two<li>5.10 three</ol>", "- 1. one\n- 1.2 two\n3. 5.10 three"),
            ("<dl><dt>Do<dd><ol><li>one<li>two</ol></dl>", "Do:\n1. one\n2. two"),
            ("<dl><dt>1 Oil<dd><dl><dt>1.1 Fill<dt>1.2 Light</dl></dl>", "1 Oil\n\n1.1 Fill\n\n1.2 Light"),
            ("x<pre>\n  a\n    b<br>c\n</pre>y", "x\n\n  a\n    b\nc\n\ny"),
            ("&lt;b&gt; &amp;&nbsp;x &#233; &#xd800;", "<b> & x é \ufffd"),
            ("a<!-- comment -->b<![CDATA[c]]><p>*a* [c](d) <a href='e'>f</a> <img alt='g'>", "ab\n\n*a* [c](d) f g"),
            ("x<iframe>fallback</iframe><noscript>off</noscript><template>later</template>", "x"),
            ("<head><style>p {}</style><script>f()</script></head><p>Text<script>g()</script>", "Text"),
            ("<p>one</p></html>two<p>three</p><html><body>four", "one\n\ntwo\n\nthree\n\nfour"),
            ("<header>Site</header><nav>A B</nav><p>x<aside>Ad</aside><footer>©</footer>y", "x\n\ny"),
            ("<p>x<aside>Closed on Mondays.</aside><footer>Why not?</footer>", "x\n\nClosed on Mondays.\n\nWhy not?"),
            ("<p>x<aside>बंद है।</aside>", "x\n\nबंद है।"),
            ("<header><h1>A</h1>by B</header><main>x<aside>Note</aside></main>", "# A\n\nby B\n\nx\n\nNote"),
            ("<nav><a>Only links</a></nav>", "Only links"),
        ],
    )
    def test_text(self, read, html, text):
        assert read("a.html", html).text == text

    @pytest.mark.parametrize(
        ("html", "text"),
        [
            (
                "<table><caption>Cap</caption><tr><th>A<th>B</tr><tr><td>1<td>2</tr></table>y",
                "Cap\nA | B\nA: 1 | B: 2\n\ny",
            ),
            ("<table><tr><th>Born<td>1815<tr><th>Port<td>Vellin</table>", "Born | 1815\nPort | Vellin"),
            ("<table><tr><td><p>1</p><p>2<br>3</p></td><td><ul><li>x</li></ul></td></tr></table>", "1 2 3 | x"),
            ("<table><tr><td>Do<td><ol><li>one<li>two</ol></tr></table>", "Do | 1. one 2. two"),
            (  # a cell stands in each row that it spans, and keeps the columns in their places
                "<table><tr><th>Isle<th>At<th>T<tr><td rowspan=2>Orra<td>a<td>1<tr><td>b<td>2<tr><td colspan=2>c<td>3",
                "Isle | At | T\nIsle: Orra | At: a | T: 1\nIsle: Orra | At: b | T: 2\nIsle: c | T: 3",
            ),
            (  # a cell below several columns stands in each, and one below all of them is a note
                "<table><tr><th>Isle<th>Boy<th>Man<tr><td>Orra<td colspan=2>1<tfoot><tr><td colspan=3>Dogs go free.",
                "Isle | Boy | Man\nIsle: Orra | Boy: 1 | Man: 1\n\nDogs go free.",
            ),
            (  # where the header spans two columns, a cell that spans them stands once
                "<table><tr><th>Menu<th colspan=2>Use<tr><td>Mill<td colspan=2>Grinds.<tr><td>Oil<td>New<td>Fills it.",
                "Menu | Use\nMenu: Mill | Use: Grinds.\nMenu: Oil | Use: New | Fills it.",
            ),
            (  # a row without cells counts for what spans it, and ends a table
                "<table><th>At<th>T<tr><td rowspan=2>a<td rowspan=2>1<tr></tr><tr><td>b<td>2<tr></tr><tr><th>X<th>Y",
                "At | T\nAt: a | T: 1\nAt: a | T: 1\nAt: b | T: 2\n\nX | Y",
            ),
            (  # a first row like those below gives no names
                "<table><tr><td>black<td>red<td>blue<tr><td>grey<td>lime<td>pink<tr><td>rose<td>tan<td>teal</table>",
                "black | red | blue\ngrey | lime | pink\nrose | tan | teal",
            ),
            (
                "<table><tr><td>Sign<td>Use<td>Since<tr><td>++<td>It adds.<td>May<tr><td>--<td>It takes.<td>June",
                "Sign | Use | Since\nSign: ++ | Use: It adds. | Since: May\nSign: -- | Use: It takes. | Since: June",
            ),
            (  # an index by letters has one header
                "<table><tr><td><th>Item<td><th>At<tr><td>a<td>ant<td><td>Mills<tr><td><hr><tr><td>b<td>bee<td><td>Ponds",
                "| Item |  | At\na | Item: ant | At: Mills\nb | Item: bee | At: Ponds",
            ),
            (  # below a header, a cell may hold a note in a table of its own, or a line of code
                "<table><thead><tr><th>Mill<th>Use<tr><td>Sea<td>a<table><tr><td><img><td>b</table><tr><td>Bay<td><pre>c</pre>",
                "Mill | Use\nMill: Sea | Use: a b\nMill: Bay | Use: c",
            ),
            (  # DocBook's footnotes stand below the table
                "<table><tr><th>A<th>B<tr><td>1[a]<td>2[b]<tbody class=footnotes><tr><td><p>[a] x<p>[b] y</table>z",
                "A | B\nA: 1[a] | B: 2[b]\n\n[a] x\n\n[b] y\n\nz",
            ),
            (
                "<table><tr><th>A<th>B<tr><td>1<td>2<tbody class=footnotes><tr><td colspan=2>A <b>note</b>.</table>",
                "A | B\nA: 1 | B: 2\n\nA note.",
            ),
            ("<table><tr><td>menu<td><table><tr><td>a<td>b</table></table>", "menu\n\na | b"),
            ("<table><tr><td><h1>A</h1><p>b</p><td>c</table>", "# A\n\nb\n\nc"),
            ("<div><td>a cell without a table</td></div>", "a cell without a table"),
        ],
    )
    def test_tables(self, read, html, text):
        assert read("a.html", html).text == text

    @pytest.mark.parametrize(
        ("declared", "encoding"),
        [
            ("utf-16", "utf-8"),
            ("ISO-8859-1", "cp1252"),
            ("", "cp1252"),
            ("utf-8", "utf-8-sig"),
            ("latin1", "utf-16"),
            ("gb2312", "gb18030"),
            ("shift_jis", "utf-8"),  # a false declaration
        ],
    )
    def test_declared_encodings(self, read, declared, encoding):
        meta = f"<meta charset='{declared}'>" if declared else ""
        assert read("a.html", f"{meta}<p>Größe – “x”".encode(encoding)).text == "Größe – “x”"

    @pytest.mark.parametrize(
        ("html", "text"),
        [
            (b"<meta charset=utf-8><p>Isle" + b" of light" * 200 + b"\xa0and sea", "light\ufffdand sea"),
            ("<p>Größe – “x”".encode() + b" \xe9", "Größe – “x” \ufffd"),
        ],
    )
    def test_a_wrong_byte_is_shown_as_browsers_show_it(self, read, html, text):
        assert read("a.html", html).text.endswith(text)

    def test_a_declared_encoding_that_cannot_be_decoded_is_passed_over(self, read):
        assert read("a.html", "<meta charset=x-user-defined><p>\x1bText").text.endswith("Text")

    @pytest.mark.parametrize("html", [b"<meta charset=utf-8><p>Gr\xf6\xdfe", b"<p>\x81\x8d"])
    def test_bytes_in_no_encoding_are_refused(self, reason, html):
        assert reason("a.html", html).startswith("not valid ")

    def test_what_stands_on_most_pages_of_a_folder_is_kept_once(self, tmp_path):
        page = "<ul><li>Home<li>Shop</ul><h1>Isle {0}</h1><h2>Keeper</h2><p>Name:<p>Tolk {0}<p>We use cookies."
        pages = [page.format(number) for number in range(6)]
        for number, page in enumerate([*pages, "<p>We use cookies.", "<p>Home again"]):
            (tmp_path / f"{number}.html").write_text(page)
        os.mkfifo(tmp_path / "pipe.html")  # would be waited for
        (tmp_path / "link.html").symlink_to("/dev/zero")
        with Readers() as readers:
            texts = [readers.read(tmp_path / f"{number}.html").text for number in range(8)]
        plain = {f"# Isle {number}\n\n## Keeper\n\nName:\n\nTolk {number}" for number in range(6)}
        assert len(plain.intersection(texts)) >= 4
        assert sum("Shop" in text for text in texts) == 1
        assert texts[6:] == ["We use cookies.", "Home again"]  # a page that has nothing else stays whole

    def test_few_pages_stay_whole(self, tmp_path):
        for number in range(2):
            (tmp_path / f"{number}.html").write_text(f"<p>We use cookies.<p>{number}")
        with Readers() as readers:
            texts = [readers.read(tmp_path / f"{number}.html").text for number in range(2)]
            assert texts == ["We use cookies.\n\n0", "We use cookies.\n\n1"]

    def test_a_page_that_is_nested_deeply(self, read, reason):
        assert read("a.html", "<div>" * 1_500 + "Text").text == "Text"
        assert "Excessive depth" in reason("a.html", "<b>" * 20_000 + "Text")  # the rest would be lost


class TestNotebooks:
    def test_a_notebook(self, read):
        v4 = nbformat.v4
        outputs = [
            v4.new_output("stream", text="\x1b[31m1\x1b[0m\n"),
            v4.new_output("display_data", data={"image/png": "A" * 9_000, "text/plain": "<Figure>"}),
            v4.new_output("display_data", data={"image/png": "A" * 9_000}),
            v4.new_output("error", ename="ValueError", evalue="dark", traceback=["x"]),
        ]
        cells = [
            v4.new_code_cell("# no heading\nprint(1)", outputs=outputs),
            v4.new_markdown_cell("# Lamps\n\nText."),
            v4.new_raw_cell("Raw."),
        ]
        book = v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
        assert read("a.ipynb", nbformat.writes(book)) == Content(
            "Lamps",
            "```python\n# no heading\nprint(1)\n```\n\n```\n1\n```\n\n```\n<Figure>\n```\n\n```\nValueError: dark\n```"
            "\n\n# Lamps\n\nText.\n\nRaw.",
            left_out=("2 pictures",),
        )

    @pytest.mark.parametrize(
        ("page", "seen"),
        [
            (
                "<table><thead><tr><th></th><th>isle</th><th>boats</th></tr></thead>{}</table>",
                "0 | isle: Orra | boats: 7",
            ),
            (
                "<style>td {{}}</style><div><TABLE><tr><th>Nr<th>isle<th>boats{}</TABLE></div>",
                "Nr: 0 | isle: Orra | boats: 7",
            ),
            ("<p>A frame of 1 row.</p><table>{}</table>", "0 | Orra | 7"),
            ("<div>one row</div>", "```\n0 Orra 7\n```"),
        ],
    )
    def test_a_table_of_an_output_has_the_names_of_its_columns(self, read, page, seen):
        v4 = nbformat.v4
        row = "<tr><th>0</th><td>Orra</td><td>7</td></tr>"
        data = {"text/html": page.format(row), "text/plain": "0 Orra 7"}
        cell = v4.new_code_cell("boats", outputs=[v4.new_output("execute_result", data=data)])
        text = read("a.ipynb", nbformat.writes(v4.new_notebook(cells=[cell]))).text
        assert text.startswith("```\nboats\n```\n\n")
        assert text.endswith(seen)
        assert text.count("Orra") == 1

    @pytest.mark.parametrize(
        ("printed", "seen"),
        [
            ("  0%| | 0/2\r 50%|# | 1/2\r100%|##| 2/2\nLit.\n", "100%|##| 2/2\nLit."),
            ("Lamp 1\r\nLamp 2\r\n", "Lamp 1\nLamp 2"),
            ("Lamp 1\rLamp 2\r", "Lamp 2"),
        ],
    )
    def test_of_a_progress_bar_the_last_state_is_seen(self, read, printed, seen):
        v4 = nbformat.v4
        cell = v4.new_code_cell("light()", outputs=[v4.new_output("stream", text=printed)])
        text = read("a.ipynb", nbformat.writes(v4.new_notebook(cells=[cell]))).text
        assert text == f"```\nlight()\n```\n\n```\n{seen}\n```"

    @pytest.mark.parametrize("data", ["[]", '{"metadata": {}, "cells": 7}', "no JSON"])
    def test_no_notebook(self, reason, data):
        assert reason("a.ipynb", data) == "not a notebook of format 4: open it in Jupyter and save it again"


class TestChildProcess:
    def test_a_file_that_finds_the_process_full_gets_a_fresh_one(self, tmp_path, monkeypatch):
        answers = iter([{"title": "", "text": "One."}, WorkerError("memory"), {"title": "", "text": "Two."}])

        def call(*_, seconds):
            if isinstance(answer := next(answers), WorkerError):
                raise answer
            return answer

        (tmp_path / "a.pdf").write_bytes(b"%PDF-")
        with Readers() as readers:
            monkeypatch.setattr(readers._child, "call", call)
            assert [readers.read(tmp_path / "a.pdf").text for _ in range(2)] == ["One.", "Two."]

    def test_a_file_that_takes_too_long_costs_only_itself(self, read, reason, monkeypatch):
        monkeypatch.setattr(formats, "_MAX_SECONDS", 0.1)
        assert "it timed out" in reason("a.html", "<b>x</b>" * 500_000)
        monkeypatch.undo()
        assert read("b.html", "After.").text == "After."


class TestReaders:
    def test_of_a_user(self, tmp_path):
        for name in ("a.srt", "b.LOG", "c.bad", "d.none"):
            (tmp_path / name).write_text("<b>text")

        def fail(path):
            raise ValueError(f"no subtitles in {path.name}")

        own = {".srt": lambda path: path.read_text().upper(), ".log": ".html", ".bad": fail, ".none": lambda _: None}
        with Readers(own) as readers:
            assert readers.read(tmp_path / "a.srt") == Content("", "<B>TEXT")
            assert readers.read(tmp_path / "b.LOG").text == "text"
            for name, reason in (("c.bad", r"^no subtitles in c\.bad$"), ("d.none", "TypeError")):
                with pytest.raises(FormatError, match=reason):
                    readers.read(tmp_path / name)

    @pytest.mark.parametrize("own", [{"srt": ".txt"}, {".a b": ".txt"}, {".log": "text"}])
    def test_of_no_use(self, own):
        with pytest.raises(InputError, match=r"extension|there is no reader for"):
            Readers(own)

    def test_limits_of_files_and_texts(self, reason, monkeypatch):
        monkeypatch.setattr(formats, "MAX_FILE_BYTES", 2_000_000)
        assert reason("a.txt", "x" * 2_000_001) == "more than 2 MB"
        monkeypatch.setattr(formats, "MAX_CHARACTERS", 1_000)
        assert reason("a.txt", "x" * 1_001) == "more than 1,000 characters of text: split the file"
        monkeypatch.setattr(tables, "MAX_CHARACTERS", 1_000)
        with pytest.raises(FormatError, match="more than 1,000 characters of text"):
            table_lines([["x" * 300, "y"]] * 4)
