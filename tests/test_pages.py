"""What a person sees in a web page is in its text, and nothing else; embedded pages are reported."""

from __future__ import annotations

import pytest

from arag.ingest.formats import Readers
from arag.ingest.sentences import split_sentences

HIDDEN = "<p>Seen.</p>{}"
KATEX = (
    "<span class=katex><math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x_i</annotation></semantics>"
    "</math><span aria-hidden=true>xi</span></span>"
)


@pytest.mark.parametrize(
    "part",
    [
        "<p hidden>Secret</p>",
        "<div style='color: red; DISPLAY : none'><p>Secret</p></div>",
        "<span style='visibility:hidden'>Secret</span>",
        "<span aria-hidden='true'>Secret</span>",
        "<input type='hidden' value='Secret'><input type='password' value='Secret'>",
        "<datalist><option>Secret</datalist>",
        "<table style='display:none'><tr><td>Secret<td>b<tr><td>c<td>d</table>",
        "<div id='DEBUG' class='debug'><h3>Help content debug info:</h3><p>Secret</div>",
        "<template><p>Secret</p></template><noscript>Secret</noscript>",
        "<img alt='Secret.png' src='x.png'><img alt='Secret' role='presentation'><img alt='Secret' width='16'>",
    ],
)
def test_what_is_hidden_is_not_read(read, part):
    assert read("a.html", HIDDEN.format(part)).text == "Seen."


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<body hidden><p>Text", "Text"),
        ("<p hidden='until-found'>Text", "Text"),
        ("<div style='display:none'>Text</div>", "Text"),  # a page that its program shows
        ("<p style='display: block'>Text", "Text"),
        ("<p>Text<div role=tabpanel hidden>On macOS</div>", "Text\n\nOn macOS"),  # a click shows it
        ("<p>Text<div role=tabpanel aria-hidden=true style='display:none'>Reviews</div>", "Text\n\nReviews"),
        ("<p>Text<div role=tabpanel>Shown <b hidden>Secret</b></div>", "Text\n\nShown"),
        ("<h3><button aria-controls=a>Why?</button></h3><div id=a hidden>Because.</div>", "### Why?\n\nBecause."),
        ("<button aria-controls=a>Menu</button><div id=a hidden>Secret</div><p>Text", "Menu\n\nText"),
        (
            "<p>Press <span><span hidden class=MAC>Command</span><span hidden id=default1>Ctrl</span></span>+Z.",
            "Press Ctrl+Z.",
        ),
        ("<p>See <span><span hidden lang=en>Files</span><span hidden lang=de>Secret</span></span>.", "See Files."),
        ("<p>Text <span class=note><span hidden>Secret</span></span>", "Text"),
        ("<p>Text <span class=switchinline><span hidden class=UNIX>by Meta</span></span>", "Text by Meta"),
        (
            "<span><span hidden><p>Sheet</span><span hidden><p>Page</span><span hidden><p>Sheet</span></span>",
            "Sheet\n\nPage",
        ),
    ],
)
def test_a_page_that_is_hidden_until_its_program_runs_is_read(read, html, text):
    assert read("a.html", html).text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<div class=note><table><tr><td rowspan=2><img alt='[Note]'><th>Note<tr><td>Mind the step.</table></div>",
            "Note\n\nMind the step.",
        ),
        (
            "<div class=figure><p class=title>Figure 1. The mill<div><img alt='The mill'></div></div>",
            "Figure 1. The mill",
        ),
        ("<div class=note><h3 class=title>Note</h3><p>Mind it.</div><p>Oil.", "Note\n\nMind it.\n\nOil."),
        ("<h1>Oil</h1><div class=author><h3 class=author>Ada Fenn</h3></div>", "# Oil\n\nAda Fenn"),
        ("<p>Text.<h5><a href='#1'>(12)</a></h5><p>A note.<h2>1880</h2>", "Text.\n\n(12)\n\nA note.\n\n## 1880"),
    ],
)
def test_signs_captions_and_numbers_of_notes_are_read_once_and_are_no_headings(read, html, text):
    assert read("a.html", html).text == text


def test_a_table_of_one_column_around_lists_or_several_paragraphs_is_a_frame(read):
    menu = "<table><tr><th>Menu<tr><td><ul><li>Oil<li>Rye</ul></table>"
    text = "<table><tr><td><table><tr><td><p>Two steps:<p>Wind it.</table></table>"
    assert read("a.html", f"{menu}{text}").text == "Menu\n\n- Oil\n- Rye\n\nTwo steps:\n\nWind it."
    rows = "<table><tr><th>Column<tr><td><p>oid<p>The row.<tr><td><p>name<p>Its name.</table>"
    assert read("a.html", rows).text == "Column\n\noid The row.\n\nname Its name."


@pytest.mark.parametrize(
    "html",
    [
        "<p><img alt='The oil'><div class=longdesc-link><br><span class=longdesc-link>[<a href=d>D</a>]</span></div>",
        "<div class=header><div class=summary><a href='#f'>Functions</a></div></div><p>The oil <a href='#d'>More...",
        "<div id=nav-path><ul><li><a href=d>lamp</a></ul></div><p>The oil<div class=ttc>Definition: lamp.h:50</div>",
        "<p>The oil<span class=method-click-advice>click to toggle source</span>",
        "<p>The oil<div class=sphinxsidebar-navigation__contents><ul><li><a href='#a'>Age</a></ul>",
        "<ul><li class=picker-header><a href=#>► Index</a><div><ul><li><a href=a>Age</a></ul></div></ul><p>The oil",
        "<p>The oil<span class='notable-traits'>Notable traits for Oil</span><div class=out-of-band>[-]</div>",
    ],
)
def test_links_that_programs_write_beside_a_text_are_left_out(read, html):
    assert read("a.html", html).text == "The oil"


def test_numbers_of_lines_beside_code_are_left_out(read):
    row = "<table><tr><td><pre>7\n8\n9</pre></td><td><pre>a = 1\nb = 2\nc = 3</pre></td></tr></table>"
    assert "7" not in read("a.html", f"<h1>Code</h1>{row}").text
    steps = row.replace("7\n8\n9", "7").replace("</table>", "<tr><td>8<td><pre>d = 4</pre></table>")
    assert "7" in read("a.html", f"<h1>Code</h1>{steps}").text
    values = row.replace("7\n8\n9", "7\n8\n4")
    assert "7" in read("a.html", f"<h1>Code</h1>{values}").text


def test_a_note_in_its_mark_stands_behind_it_in_brackets(read):
    mark = '<sup class="fn">95<span class="fn-text">It was a friend of the miller.</span></sup>'
    text = read("a.html", f"<p>His friends{mark} came, all of them.</p>").text
    assert text == "His friends [95] (It was a friend of the miller.) came, all of them."


def test_sections_are_not_below_the_contents(read):
    html = "<h1>Table of Contents</h1><ul><li><a href='#a'>Oil</a></ul><h2>Oil</h2><p>It burns.<h3>Rye</h3><p>It grows."
    assert [s.heading for s in split_sentences(read("a.html", html).text)][-1] == "Oil > Rye"
    topic = "<h2>Tables</h2><p>There are two.<h3>Grid tables</h3><p>They have signs."
    assert [s.heading for s in split_sentences(read("a.html", topic).text)][-1] == "Tables > Grid tables"


def test_a_picture_in_place_of_the_number_of_a_page_is_left_out(read):
    icon = "<A HREF='node4.html#oil'><IMG  ALT='[*]' SRC='crossref.png'></A>"
    html = f"<p>See <b>set oil (p.&nbsp;{icon})<a id=1></a></b> for details, and Section {icon} too."
    assert read("a.html", html).text == "See set oil for details, and Section [*] too."


def test_the_word_note_is_no_definition(read):
    note = "<div class=note><table><tr><td rowspan=2><img alt='[Note]'><th>Note<tr><td><p>See Oil.</table></div>"
    assert read("a.html", f"<dl><dt>Wick<dd>{note}</dl>").text == "Wick: See Oil."
    assert read("b.html", f"<dl><dt>Wick<dd>Of cotton.{note}</dl>").text == "Wick: Of cotton.\n\nNote\n\nSee Oil."


def test_pages_of_doxygen_have_their_title_and_a_line_for_each_member(read):
    title = "<div class=headertitle><div class=title>Lamp Class<div class=ingroups>Oil</div></div></div>"
    member = "<tr><td>void&#160;<td><b>light</b> (Lamp &amp;lamp)<tr><td>&#160;<td>Lights it. <br>"
    html = f"{title}<table><tr><td colspan=2><h2>Members</h2>{member}<tr><td>1 May<br>2 May<td>Oil</table>"
    text = "# Lamp Class\n\nOil\n\n## Members\n\nvoid light (Lamp &lamp)\n\nLights it.\n\n1 May\n2 May\n\nOil"
    assert read("a.html", html).text == text


def test_code_of_doxygen_has_its_lines_and_no_numbers(read):
    line = "<div class=line><span class=lineno>{0:5}</span>{1}</div>"
    html = f"<div class=fragment>{line.format(1, 'if (dark)')}\n{line.format(2, '  light();')}</div>"
    assert read("a.html", html).text == "if (dark)\n  light();"


def test_a_declaration_of_doxygen_is_a_line(read):
    name = "<td class=memname>void light\n<td>(\n<td>Lamp &amp;&#160;\n<td><em>lamp</em>,\n"
    declaration = f"<table class=memname><tr>{name}<tr><td>\n<td>\n<td>int\n<td>n )</table>"
    label = "<td><span class=mlabel>inline</span>"
    labelled = f"<table class=mlabels><tr><td>{declaration}\n{label}</table>"
    assert read("a.html", f"{declaration}<p>Lights it.").text == "void light ( Lamp & lamp, int n )\n\nLights it."
    assert read("b.html", f"{labelled}<p>Lights it.").text == "void light ( Lamp & lamp, int n ) inline\n\nLights it."


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<table class=FOOTNOTES><tr><td>[1]<td><p>Oil.<tr><td>[2]</td><td><p>Wick.</table>",
            "[1] Oil.\n\n[2] Wick.",
        ),
        (
            "<table class=menu><tr><td>• <a href=a.html>Oil</a>:</td><td>&nbsp;</td><td>How to fill it.</table>",
            "• Oil: How to fill it.",
        ),
        (
            "<div class='admonitionblock note'><table><tr><td><div class=title>Note</div><td>It is hot.</table></div>",
            "Note\n\nIt is hot.",
        ),
        (
            "<table class='indextable genindextable'><tr><td><ul><li>lamp<li>oil</ul><td><ul><li>wick</ul></table>",
            "- lamp\n- oil\n- wick",
        ),
        ("<table><tr><th>Jump to:<td><a class=summary-letter href='#L'>L</a></table><p>lamp: 3", "lamp: 3"),
        (
            (
                "<table class=index-cp><tr><td></td><th>Index Entry</th><td>&nbsp;</td><th>Section</th></tr>"
                "<tr><th>L</th><td></td><td></td></tr>"
                "<tr><td></td><td><a href=#a>lamp</a>:</td><td>&nbsp;</td><td><a href=#b>Oil</a></td></tr></table>"
            ),
            "lamp: Oil",
        ),
        (
            (
                "<table rules=none frame=void><tr><td></td><td><p>-A</p></td><td></td><td><p>All lamps.</p></td></tr>"
                "</table><p>-l lamp</p><p>One lamp.</p>"
            ),
            "-A All lamps.\n\n-l lamp\n\nOne lamp.",
        ),
        (
            (
                "<table rules=none frame=void><tr><td>lamp</td><td>oil</td><td>2 l</td></tr>"
                "<tr><td>torch</td><td>pitch</td><td>3 l</td></tr></table>"
            ),
            "lamp | oil | 2 l\ntorch | pitch | 3 l",
        ),
        (
            (
                "<table class=navigation><tr><td><a href=#top>Top</a> | <a href=#a>Lamps</a></td></tr></table>"
                "<table class=informaltable><tbody>"
                "<tr><td class=function_type>void</td><td class=function_name>light ()</td></tr>"
                "<tr><td class=function_type>int</td><td class=function_name>oil ()</td></tr></tbody></table>"
            ),
            "void light ()\n\nint oil ()",
        ),
    ],
)
def test_tables_in_which_generators_of_manuals_lay_out_a_page_hold_no_data(read, html, text):
    assert read("a.html", html).text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            (
                "<dl><dt>Parameters</dt><dd><table class=params>"
                "<tr><td class=paramdir>[in]</td><td class=paramname>lamp</td><td>to light</td></tr>"
                "<tr><td class=paramdir>[out]</td><td class=paramname>n</td><td>how often</td></tr></table></dd></dl>"
            ),
            "Parameters\n\n[in] lamp: to light\n\n[out] n: how often",
        ),
        (
            (
                "<table class=directory><tr><td class=entry>light(int n)</td><td class=entry>Lamp</td>"
                "<td class=entry><span class=mlabel>virtual</span></td></tr>"
                "<tr><td class=entry>oil()</td><td class=entry>Lamp</td><td class=entry></td></tr></table>"
            ),
            "light(int n): Lamp virtual\n\noil(): Lamp",
        ),
        (
            (
                "<table class=informaltable><tbody><tr><td class=parameter_name><p>lamp</p></td>"
                "<td class=parameter_description><p>A lamp.</p></td>"
                "<td class=parameter_annotations>[nullable]</td></tr>"
                "<tr><td class=parameter_name><p>n</p></td><td class=parameter_description><p>How often.</p></td>"
                "<td class=parameter_annotations>&nbsp;</td></tr></tbody></table>"
            ),
            "lamp: A lamp.\n\n[nullable]\n\nn: How often.",
        ),
        (
            (
                "<table class=STable><tr><td class=SEntry>light</td><td class=SDescription>Lights it.</td></tr>"
                "<tr><td class=SEntry>oil</td><td class=SDescription></td></tr></table>"
                "<table class=Prototype><tr><td><table><tr><td>void light(</td><td>int&nbsp;</td><td>n,</td></tr>"
                "<tr><td></td><td>bool&nbsp;</td><td>wait)</td></tr></table></td></tr></table>"
            ),
            "light: Lights it.\n\noil\n\nvoid light(int n,\n\nbool wait)",
        ),
    ],
)
def test_parameters_and_members_that_doxygen_gtk_doc_and_natural_docs_list_in_tables_are_definitions(read, html, text):
    assert read("a.html", html).text == text


@pytest.mark.parametrize(
    ("second", "rows"),
    [
        ("<td>Print...</td>", "Key\n\nCtrl+p | Print...\nCtrl+s | Save..."),
        ("<th>Print...</th>", "Key\n\nCtrl+p | Print...\nCtrl+p: Ctrl+s | Print...: Save..."),
    ],
)
def test_a_header_that_names_one_column_leaves_the_next_row_a_row(read, second, rows):
    first = "<th>Ctrl+p</th>" if second.startswith("<th") else "<td>Ctrl+p</td>"
    body = f"<tr>{first}{second}</tr><tr><td>Ctrl+s</td><td>Save...</td></tr>"
    text = read("a.html", f"<table><thead><tr><th>Key</th><th>&nbsp;</th></tr></thead>{body}</table>").text
    assert text == rows


def test_a_page_of_frames_is_left_out_unless_it_has_a_text_of_its_own(read):
    page = (
        "<title>Mill</title><frameset cols='1,2'><frame src=a.html><frame src=b.html><noframes>{}</noframes></frameset>"
    )
    assert read("a.html", page.format("See b.html.")).why_skipped == "a page that only shows others, in frames"


def test_the_logo_in_a_heading_of_the_help_of_r_and_a_comment_in_a_title_are_not_shown(read):
    page = (
        "<title>Mills <!-- Справка --></title>"
        "<h1> Mills of R <img class=toplogo src=logo.jpg alt='[R logo]'></h1><p>They turn."
    )
    content = read("a.html", page)
    assert (content.title, content.text) == ("Mills", "# Mills of R\n\nThey turn.")


@pytest.mark.parametrize("name", ["maketitle", "titlerest", "author"])
def test_who_wrote_a_book_and_when_is_no_heading(read, name):
    page = f"<h1 class=maketitle>The Mill</h1><h3 class={name}>Ann Lee, 1881</h3><h2>Rye</h2><p>It is ground."
    assert read("a.html", page).text == "# The Mill\n\nAnn Lee, 1881\n\n## Rye\n\nIt is ground."


def test_who_wrote_a_book_of_docbook_is_no_heading(read):
    page = (
        "<div class=titlepage><h1 class=title>The Mill</h1><h3 class=corpauthor>The Millers</h3>"
        "<div class=author><h3 class=author>Ann Lee</h3></div></div><h2>Rye</h2><p>It is ground."
    )
    assert read("a.html", page).text == "# The Mill\n\nThe Millers\n\nAnn Lee\n\n## Rye\n\nIt is ground."


def test_a_page_that_shows_what_a_search_in_doxygen_finds_is_left_out(read):
    page = "<body class=SRPage><div class=SRStatus>Loading...</div>"
    assert read("a.html", page).why_skipped == "a page that only leads to another"


def test_a_page_of_javadoc_that_leads_to_another_by_a_script_is_left_out(read):
    script = "<script>window.location.replace('index.html')</script>"
    refresh = "<noscript><meta http-equiv=Refresh content='0;index.html'></noscript>"
    page = "<html><head><title>Lamps</title>{}</head><body><p><a href=index.html>index.html</a></p></body></html>"
    assert read("a.html", page.format(script + refresh)).why_skipped == "a page that only leads to another"
    assert read("a.html", page.format(refresh)).text == "index.html"


def test_the_summary_of_javadoc_is_a_table(read):
    tabs = "<div class=table-tabs><button>All Methods</button></div>"
    header = "<div class='table-header col-first'>Type</div><div class='table-header col-last'>Method</div>"
    cells = "<div class=col-first>{0}</div><div class=col-last><div class=block>{1}</div></div>"
    rows = f"{header}{cells.format('void', 'light()')}{cells.format('int', 'fill()')}"
    text = "Type | Method\nType: void | Method: light()\nType: int | Method: fill()"
    table = f"{tabs}<div class='summary-table two-column-summary'>{rows}</div>"
    assert read("a.html", f"<ul class=summary-list><li>{table}</ul>").text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("10<sup>6</sup> grains, 2<sup>10</sup> sacks, x<sup>2</sup>", "10^6 grains, 2^10 sacks, x^2"),
        ("25 m<sup>2</sup>, 3&nbsp;cm<sup>3</sup>, 4 m s<sup>-1</sup>", "25 m², 3 cm³, 4 m s⁻¹"),
        ("Built 1880<sup>3</sup>; burnt<sup>a</sup>.<sup>12</sup>", "Built 1880 [3]; burnt [a]. [12]"),
        ("Sold<sup><a href='#n'>4</a></sup>, x<a href='#n'><sup>2</sup></a>", "Sold [4], x[2]"),
        ("the 1<sup>st</sup> and 22<sup>nd</sup>, XX<sup>e</sup>, Mill<sup>®</sup>", "the 1st and 22nd, XXe, Mill®"),
        ("H<sub>2</sub>O, CO<sub>2</sub>, 101<sub>2</sub>, <sup>14</sup>C", "H2O, CO2, 101_2, 14C"),
        ("<p><sup>3</sup> See the register.", "[3] See the register."),
        ("noted<sup>[7]</sup>", "noted[7]"),
    ],
)
def test_raised_numbers_do_not_run_into_the_word_before(read, html, text):
    assert read("a.html", html).text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ruby>水車<rp>(</rp><rt>すいしゃ</rt><rp>)</rp></ruby>の町", "水車（すいしゃ）の町"),
        ("<ruby>水<rt>すい</rt>車<rt>しゃ</rt></ruby>", "水車（すいしゃ）"),
        ("<ruby>汉<rt>hàn</rt>字<rt>zì</rt></ruby>很好", "汉字（hàn zì）很好"),
        ("由两个村庄共同\n  修建的<b>桥</b>，\n很长", "由两个村庄共同修建的桥，很长"),
        ("สวัสดี\nครับ", "สวัสดีครับ"),
        ("한국어\n문장 and\nwords", "한국어 문장 and words"),
        ("Harbour&shy;master and sail<wbr>maker", "Harbourmaster and sailmaker"),
        ("Zu\u0308ndholz, Zünd\u200bholz und \ufb01x", "Zündholz, Zündholz und fix"),
        ("ភាសា\u200bខ្មែរ", "ភាសា\u200bខ្មែរ"),  # it stands between words
    ],
)
def test_words_of_other_scripts_stay_whole(read, html, text):
    assert read("a.html", html).text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<math><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>", "E=mc^2"),
        ("<math alttext='{\\displaystyle E=mc^{2}}'><mi>E</mi></math>", "E=mc^{2}"),
        ("<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>", "(a+b)/2"),
        ("<math><mi>cov</mi><mfenced><mi>x</mi><mi>y</mi></mfenced></math>", "cov(x,y)"),
        ("<math><mfenced open='[' close=')' separators=''><mn>0</mn><mo>;</mo><mn>1</mn></mfenced></math>", "[0;1)"),
        ("<math><mfenced separators=';,'><mi>x</mi><mi>y</mi><mi>z</mi><mi>u</mi></mfenced></math>", "(x;y,z,u)"),
        (
            "<math><mstack><mn>424</mn><msrow><mo>+</mo><mn>33</mn></msrow><msline></msline><mn>457</mn></mstack>",
            "424 +33 457",
        ),
        (
            "<math><mlongdiv><mn>3</mn><mn>435</mn><mn>1306</mn><msgroup><mn>12</mn><mn>10</mn></msgroup></mlongdiv>",
            "3 435 1306 12 10",
        ),
        (
            "<math><mmultiscripts><mi>U</mi><mn>1</mn><none/><mprescripts/><mn>92</mn><mn>238</mn>",
            "_92^238U_1",
        ),
        ("<math><mn>7</mn><mphantom><mn>0</mn></mphantom></math>", "7"),
        (KATEX, "x_i"),
        (
            "<span style='display:none'><math alttext='a+b'><mi>a</mi></math></span><img alt='a+b' aria-hidden=true>",
            "a+b",
        ),
    ],
)
def test_formulas_are_read_once(read, html, text):
    assert read("a.html", html).text == text


def test_terms_stand_before_their_definitions(read):
    page = "<dl><dt>Rye<dd>Four marks<dt><code>open()</code>:<dd><p>Opens a sluice.</p><p>Since 1880.</p><dt>Alone</dl>"
    assert read("a.html", page).text == "Rye: Four marks\n\nopen(): Opens a sluice.\n\nSince 1880.\n\nAlone"
    assert read("a.html", "<dl><dt>Rye<dt>Oats<dd>Four marks<dd>Five").text == "Rye\n\nOats: Four marks\n\nFive"
    without = "<dl><dt>show rye</dt><dd></dd></dl><dl><dt>show oats<dt>show all</dt><dd> </dd><dt>Rye<dd>Four</dl>"
    assert read("a.html", without).text == "show rye\n\nshow oats\n\nshow all\n\nRye: Four"
    rows = "<table><tr><td><dl><dt>Rye<dd>4</dl><td>b<tr><td>c<td>d</table>"
    assert read("a.html", rows).text == "Rye 4 | b\nc | d"


def test_forms_have_what_is_typed_and_chosen(read):
    page = (
        "<form><label>Name <input value='Odvar Felisk'></label><p><label><input type=checkbox checked> Rye</label>"
        "<p><label><input type=radio> Oats</label><textarea>By noon.</textarea>"
        "<select><option>Mill<option selected>Quay</select><select><option>North<option>South</select>"
        "<input type=submit value=Send></form>"
    )
    assert read("a.html", page).text == (
        "Name Odvar Felisk\n\n[x] Rye\n\n[ ] Oats\n\nBy noon.\n\n- [ ] Mill\n- [x] Quay\n- North\n- South"
    )


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<img src=m.png alt='Map of the mill race'>", "Map of the mill race"),
        ("<figure><img alt='The mill in 1880'><figcaption>The mill in 1880</figcaption></figure>", "The mill in 1880"),
        ("<figure><img alt='A wheel'><figcaption>The mill</figcaption></figure>", "A wheel\n\nThe mill"),
        ("<figure><img alt='A wheel'><figcaption aria-hidden=true>A wheel</figcaption></figure>", "A wheel"),
        (
            "<svg><title>Chart</title><path d='M0'/><text>Rye</text><text>4 <tspan>marks</tspan></text></svg>",
            "Rye; 4 marks",
        ),
        ("Press <svg><path d='M0'/></svg> to open", "Press to open"),
    ],
)
def test_pictures_have_their_words(read, html, text):
    assert read("a.html", html).text == text


def test_a_heading_that_is_not_closed_has_the_next_ones_below_it(read):
    html = "<h2>Sluice<h2><h3>Gates</h3><p>Two of them.</p><h3>Locks</h3>One of them."
    assert read("a.html", html).text == "## Sluice\n\n### Gates\n\nTwo of them.\n\n### Locks\n\nOne of them."


@pytest.mark.parametrize("tag", ["pre", "p", "div", "li"])
def test_only_headings_are_headings(read, tag):
    from arag.ingest.sentences import split_sentences

    pause = "<p>Then wait for an hour.<p>``` is a fence.<h2>Wheel</h2>It turns."
    text = read("a.html", f"<h2>Sluice</h2><{tag}># rm -r /srv/old</{tag}>{pause}").text
    assert "# rm -r /srv/old" in text
    headings = [text[s.start : s.end] for s in split_sentences(text) if text[s.start : s.end].startswith("#")]
    last = split_sentences(text)[-1]
    assert last.heading == "Wheel"
    then = next(s for s in split_sentences(text) if text[s.start :].startswith("Then wait"))
    assert then.heading == "Sluice"
    assert "## Sluice" in headings


@pytest.mark.parametrize(
    ("html", "left_out"),
    [
        ("<p>x<iframe src='https://maps.example/mill'></iframe>", ("1 embedded page (https://maps.example/mill)",)),
        ("<p>x<video src=a.webm>old</video><audio hidden></audio><audio controls></audio>", ("2 recordings",)),
        ("<p>x<object data=plan.pdf></object><embed src=b.pdf>", ("2 embedded pages (plan.pdf, b.pdf)",)),
        ("<p>x<div hidden><iframe src='t.html'></iframe></div><iframe src='about:blank'></iframe>", ()),
    ],
)
def test_embedded_pages_are_reported(read, html, left_out):
    assert read("a.html", html).left_out == left_out


def test_a_page_in_a_page_is_read(read):
    content = read("a.html", "<p>x<iframe srcdoc='<p>Inner &amp; more</p>'></iframe>")
    assert (content.text, content.left_out) == ("x\n\nInner & more", ())


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>x<footer><p>Call the mill at 555 0199.</footer>", "x\n\nCall the mill at 555 0199."),
        ("<header><p>By Hesper Quillorne, 3 May 1880</header><p>x", "By Hesper Quillorne, 3 May 1880\n\nx"),
        ("<header><a href=a>Home</a> <a href=b>All our shops</a></header><p>x", "x"),
        (
            "<p>x<footer><p>The mill is open on Thursdays.<ul><li><a>Imprint</a><li><a>Privacy</a></ul></footer>",
            "x\n\nThe mill is open on Thursdays.",
        ),
        ("<p>Text.<div class=navfooter><a href=b>Report a bug in the mill</a>, <a href=c>or here</a></div>", "Text."),
        ("<p>Text.<div class='content no-footer'><p><a href=b>The second part</a></div>", "Text.\n\nThe second part"),
        ("<div class=footer><p><a href=b>The first part</a></div><p>Text.", "The first part\n\nText."),
        (
            "<p>Text.<div class=footer><a href=b>Report a bug</a></div><footer><p>Call 555 0199 now.</footer>",
            "Text.\n\nCall 555 0199 now.",
        ),
    ],
)
def test_what_stands_around_a_page_is_read_if_it_says_something(read, html, text):
    assert read("a.html", html).text == text


@pytest.mark.parametrize(("html", "marked"), [("<h2>Fair</h2><p>Free cloakroom", True), ("<p># ls<p>Free", False)])
def test_a_page_with_headings_says_that_it_marks_them(read, html, marked):
    assert read("a.html", html).marks_headings == marked


# --- titles and marks of whole sites ---


def test_a_numbered_item_is_one_sentence_and_no_heading(read):
    from arag.ingest.sentences import split_sentences

    below = "The wick of the lamp is dry, and it stays so."
    text = read("a.html", f"Do:<ol><li>Fill it<p>{below}<li>Light it</ol><ol type=a><li>The end.</ol>").text
    sentences = split_sentences(text)
    shown = [text[s.start : s.end] for s in sentences]
    assert shown == ["Do:", "1. Fill it", below, "2. Light it", "- a. The end."]
    assert {s.heading for s in sentences} == {""}


def test_a_printed_manual_page_in_a_page_has_its_headings(read):
    head = "LAMP(8)            LAMP(8)"
    name = "<b>NAME</b>\n       lamp - a light\n\n       # a remark"
    author = "<b>AUTHOR</b>\n       Ann Lee\n       Tolk, Isle\n\n       Bo Ray\n       Gull Rock"
    text = read("lamp.8.html", f"<pre>\n{head}\n\n{name}\n\n{author}\n\n           LAMP(8)\n</pre>").text
    assert [line for line in text.split("\n") if not line.startswith(" ")] == ["# NAME", "", "", "# AUTHOR", ""]


def write_site(folder, titles):
    folder.mkdir()
    for number, title in enumerate(titles):
        mark = f'<a class="headerlink" href="#s{number}" title="Link">¶</a>'
        wheel = f"<dl><dt>wheel{mark}</dt><dd>It turns.</dd></dl>"
        body = f"<h1>Part {number}{mark}</h1>{wheel}<p>See <a href='#a'>¶</a> 7.</p>"
        text = f"<html><head><title>{title}</title></head><body>{body}</body></html>"
        (folder / f"{number}.html").write_text(text, encoding="utf-8")
    with Readers() as readers:
        return [readers.read(folder / f"{number}.html") for number in range(len(titles))]


@pytest.mark.parametrize(
    "form",
    ["{} — Mills 3.11.2 documentation", "{} - Wiki | Mills", "Mills: {}", "Mills :: {} — 2", "{} (Mills (3.11.2))"],
)
def test_titles_are_without_the_name_that_a_whole_site_shares(tmp_path, form):
    parts = ["Wheels", "Stones — old", "Sluices", "Ponds (Race - old)", "Races", "Dams"]
    titles = [form.format(part) for part in parts]
    pages = write_site(tmp_path / "site", [*titles, "Mills"])
    assert [page.title for page in pages] == [*parts, "Mills"]


def test_a_name_does_not_end_within_parentheses(tmp_path):
    pages = write_site(tmp_path / "site", [f"Mills: Oil (Index - {letter})" for letter in "ABCDE"])
    assert [page.title for page in pages] == [f"Oil (Index - {letter})" for letter in "ABCDE"]


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<head><center><title>Mills</title></head>", "Mills"),  # with tags in a wrong order
        ("<head><title>&lt;no title&gt; — Harbour 1.2 documentation</title></head>", "NAME"),  # as Sphinx writes it
        ("<head><title>Top (GNU Lamps)</title></head>", "GNU Lamps"),  # as Texinfo writes it
        ("<head></head><svg><title>Chart</title></svg>", "NAME"),
    ],
)
def test_the_title_is_the_one_that_a_browser_shows(read, head, title):
    assert read("a.html", f"<html>{head}<body><h1>NAME</h1><p>They turn.</body></html>").title == title


def test_titles_that_few_pages_share_are_whole(tmp_path):
    few = ["Wheels — Mills", "Stones — Mills"]
    assert [page.title for page in write_site(tmp_path / "few", few)] == few
    others = [f"Part {number} — Book {number}" for number in range(9)]
    assert [page.title for page in write_site(tmp_path / "others", others)] == others


def test_pages_are_read_as_before_when_others_of_their_folder_are_deleted(tmp_path):
    menu = "<div class=navbar><h3>Navigation</h3><a href=m>The mills of Vellin</a></div>"
    parts = ["Wheels", "Stones", "Sluices", "Ponds", "Races"]
    for part in parts:
        page = f"<title>{part} — Mills</title>{menu}<h1>{part}</h1><p>They turn."
        (tmp_path / f"{part}.html").write_text(page, encoding="utf-8")
    for count in (5, 4, 3):
        with Readers() as readers:
            pages = [readers.read(tmp_path / f"{part}.html") for part in parts[:count]]
        assert [page.title for page in pages] == parts[:count]
        assert sum("Navigation" in page.text for page in pages) == 1
        (tmp_path / f"{parts[count - 1]}.html").unlink()


def test_the_mark_of_a_function_is_not_text(read):
    html = "<h2><span class='permalink'><a href='#turn'>&#9670;&nbsp;</a></span>turn()</h2><p>It turns."
    assert read("a.html", html).text == "## turn()\n\nIt turns."


def test_marks_that_lead_to_headings_are_not_text(tmp_path):
    page = write_site(tmp_path / "site", ["Mills"])[0]
    assert page.text == "# Part 0\n\nwheel: It turns.\n\nSee ¶ 7."


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<dl><dt><strong>flour</strong><span class='classifier'>int</span><dd>In sacks.</dl>",
            "flour : int: In sacks.",
        ),
        (
            "<dl><dt>flour <span class='classifier-delimiter'>:</span> <span class='classifier'>int</span></dl>",
            "flour : int",
        ),
        ("<dl><dt><span class='classifier'>int</span><dd>In sacks.</dl>", "int: In sacks."),
        ("<p><span class='mlabel'>inline</span><span class='mlabel'>static</span>", "inline static"),
        ("<p>Press <span class='keycap'>Ctrl</span><span class='keycap'>H</span>.", "Press Ctrl H."),
        ("<p>Press <kbd>Ctrl</kbd><kbd>H</kbd>.", "Press Ctrl H."),
        ("<div class='ideal tooltip'>rye<span class='text'>is cheap</span></div>", "rye is cheap"),
        ("<p>Rye<button>show</button>oats", "Rye show oats"),
        ("<p><a href=r>Rye</a><a href=o>Oats</a>", "Rye Oats"),
        ("<p><a href=r>Rye</a><a href=r>field</a>", "Ryefield"),
        ("<p><a href=m>mill</a><a href=r>::rye</a>", "mill::rye"),
        ("<pre><a href=r>rye</a><a href=o>oats</a></pre>", "ryeoats"),
        ("<p>mill<b>stone</b>", "millstone"),
    ],
)
def test_what_a_style_sheet_sets_apart_is_not_one_word(read, html, text):
    assert read("a.html", html).text == text


def test_labels_of_a_drawing_are_no_heading(make_index):
    labels = "".join(f"<text>{word}</text>" for word in ["RYE", "OATS", "WHEAT"])
    index = make_index({"a.html": f"<svg>{labels}</svg><p>The mill grinds what the farms bring in the autumn."})
    (chunk,) = index.read("a.html:0").chunks
    assert chunk.text.startswith("RYE; OATS; WHEAT")
    assert {sentence.heading for sentence in chunk.sentences} == {""}


def test_a_letter_of_an_item_far_down_is_a_number(read):
    assert len(read("a.html", "<ol type=a start=10000000><li>Oil<li>Wick</ol>").text) < 100
