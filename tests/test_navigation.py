"""Bars that lead to the neighbours of a web page are left out; what only looks like one is read."""

from __future__ import annotations

import time

import pytest

from arag.ingest.formats.html import html_content

BODY = "<h1>2. Berths</h1><p>A packet of under 90 tons pays four marks.</p>"
TEXT = "# 2. Berths\n\nA packet of under 90 tons pays four marks."

HEAD = """<head><title>2. Berths</title><link rel="home" href="index.html"><link rel="up" href="index.html">
<link rel="prev" href="ch01.html"><link rel="next" href="ch03.html"></head>"""

DOCBOOK = """<div class="navheader"><table width="100%" summary="Navigation header">
<tr><th colspan="3" align="center">2. Berths</th></tr>
<tr><td><a accesskey="p" href="ch01.html"><img src="prev.png" alt="{prev}"></a> </td><th>Harbour rules</th>
<td><a accesskey="n" href="ch03.html"><img src="next.png" alt="{next}"></a></td></tr></table><hr></div>
{body}<div class="navfooter"><hr><table width="100%" summary="Navigation footer">
<tr><td><a href="ch01.html">{prev}</a> </td><td><a href="index.html">{up}</a></td><td><a href="ch03.html">{next}</a>
</td></tr><tr><td>1. Lights: who tends them? </td><td><a href="index.html">{home}</a></td><td> 3. Dues</td></tr>
</table></div>"""

SPHINX = """<div class="related" role="navigation"><h3>Navigation</h3><ul><li><a href="genindex.html">index</a></li>
<li><a href="ch03.html">next</a> |</li><li><a href="index.html">Harbour rules 1.2</a> &#187;</li></ul></div>
<div role="main">{body}</div>
<div class="sphinxsidebar" role="navigation"><h4>Previous topic</h4><p><a href="ch01.html">1. Lights</a></p>
<p role="heading">For captains and owners</p><ul><li><a href="ch03.html">3. Dues</a></li></ul></div>"""

TEXINFO = """<div class="header"><p>
Next: <a href="ch03.html" accesskey="n" rel="next">Dues</a>, Previous: <a href="ch01.html" rel="prev">Lights</a>,
Up: <a href="index.html" rel="up">Harbour rules</a> &nbsp; [<a href="#toc" rel="contents">Contents</a>]</p></div>
<hr>{body}<hr><div class="node"><p>Previous:&nbsp;<a rel="previous" href="ch01.html">Lights</a></p></div>"""

LATEX2HTML = """<!--Navigation Panel--><a name="tex1" href="ch03.html"><img alt="next" src="next.png"></a>
<a href="index.html"><img alt="up" src="up.png"></a> <a href="ch01.html"><img alt="previous" src="prev.png"></a>
<br><b> Next:</b> <a href="ch03.html">Dues</a> <b> Up:</b> <a href="index.html">Harbour rules</a>
<b> Previous:</b> <a href="ch01.html">Lights</a><br><br>{body}"""

LATEX2HTML_WITHOUT_UP = LATEX2HTML.replace("index.html", "node4.html")  # which the page's head does not name

TEXI2HTML = """<table class="header"><tr><td>[<a href="ch01.html" title="Previous chapter"> &lt;&lt; </a>]</td>
<td>[<a href="index.html"> Up </a>]</td><td> &nbsp; </td><td>[<a href="index.html">Top</a>]</td>
<td>[<a href="about.html" title="About"> ? </a>]</td></tr></table>{body}
<table class="nav_table"><tr><td>[<a href="part1.html"> &lt;&lt; Lights </a>]</td><td>[<a href="index.html">Top</a>]
[<a href="toc.html" rel="contents">Everything</a>]</td><td>[<a href="part3.html"> Dues &gt;&gt; </a>]</td></tr>
<tr><td>[<a href="ch01.html"> &lt; Lamps </a>]</td><td>[<a rel="up" href="p.html">Up: Harbour</a>]</td></tr></table>"""

LANGUAGE_BARS = """<div>{body}<p>Available languages: <a href="de.html">de</a> |
<a href="en.html" hreflang="en" rel="alternate">en</a></p></div>
<p><a href="i.html">Main index</a> | <a href="r.html">Raster index</a> | <a href="f.html">Full index</a></p>"""

PUBLICAN = """<ul class="docnav top"><li class="previous"><a href="ch01.html"><strong>{prev}</strong></a></li>
<li class="home">Harbour rules</li><li class="next"><a href="ch03.html"><strong>{next}</strong></a></li></ul>{body}
<ul class="docnav"><li class="previous"><a href="ch01.html"><strong>{prev}</strong>1. Lights</a></li>
<li class="up"><a href="#">{up}</a></li><li><a href="ch03.html"><strong>{next}</strong>3. Dues</a></li></ul>"""

BARE = """<p><a href="ch01.html">&lt;&lt; {prev}</a> | <a href="index.html">{home}</a> | {next}</p>{body}
<center><a href="ch01.html">{prev}</a> - <a href="ch03.html">{next}</a></center>"""

EXIM = """<div id="content"><a class="previous_page" href="ch01.html">&lt;-previous</a>\
<a class="next_page" href="ch03.html">next-&gt;</a><div class="chapter">{body}</div>
<a href="ch01.html">&lt;-previous</a><a href="i.html">Table of Contents</a><a href="ch03.html">next-&gt;</a></div>"""

PYDATA = """<main>{body}<div class="prev-next-area"><a class="left-prev" href="ch01.html" title="previous page">
<div class="prev-next-info"><p class="prev-next-subtitle">previous</p><p class="prev-next-title">1. Lights</p></div></a>
<a class="right-next" href="ch03.html"><div><p>next</p><p class="prev-next-title">3. Dues</p></div></a></div></main>"""

FURO = """<article>{body}</article><footer><div class="related-pages"><a class="next-page" href="ch03.html">
<div class="page-info"><div class="context"><span>Next</span></div><div class="title">3. Dues</div></div></a></div>
</footer>"""

DRUPAL = """{body}<div id="book-navigation-9" class="book-navigation"><div class="page-links clear-block">
<a href="ch01.html" class="page-previous" title="Go to previous page">‹ 1. Lights of the coast</a>
<a href="i.html" class="page-up">up</a><a href="ch03.html" class="page-next">3. Dues ›</a></div></div>"""

IBM = """<b>[ <a href="#end">Bottom of Page</a> | <a href="ch01.html">Previous Page</a>
| <a href="ch03.html">Next Page</a>
| <a href="t.html">Table of Contents</a> | <a href="p.html">Partial Table of Contents</a> | <a href="x.html">Index</a> ]
</b><hr>{body}"""

ENGLISH = {"prev": "Prev", "next": "Next", "up": "Up", "home": "Home"}
LANGUAGES = [
    ENGLISH,
    {"prev": "Zurück", "next": "Weiter", "up": "Nach oben", "home": "Zum Anfang"},
    {"prev": "Précédent", "next": "Suivant", "up": "Niveau supérieur", "home": "Sommaire"},
    {"prev": "前のページ", "next": "次のページ", "up": "上に戻る", "home": "ホーム"},
    {"prev": "上一页", "next": "下一页", "up": "上一级", "home": "起始页"},
    {"prev": "Пред.", "next": "След.", "up": "Наверх", "home": "Начало"},
    {"prev": "Anterior", "next": "Siguiente", "up": "Subir", "home": "Inicio"},
]


@pytest.mark.parametrize(
    "page",
    [
        *(DOCBOOK, SPHINX, TEXINFO, LATEX2HTML, LATEX2HTML_WITHOUT_UP, TEXI2HTML, LANGUAGE_BARS, PUBLICAN, BARE),
        *(EXIM, PYDATA, FURO, DRUPAL, IBM),
    ],
)
def test_bars_of_generators_are_left_out(read, page):
    html = f"<html>{HEAD}<body>{page.format(body=BODY, **ENGLISH)}</body></html>"
    assert read("a.html", html).text == TEXT


@pytest.mark.parametrize("words", LANGUAGES, ids=lambda words: words["next"])
@pytest.mark.parametrize("page", [DOCBOOK, PUBLICAN])
def test_bars_are_left_out_in_any_language(read, page, words):
    html = f"<html>{HEAD}<body>{page.format(body=BODY, **words)}</body></html>"
    assert read("a.html", html).text == TEXT


@pytest.mark.parametrize("words", LANGUAGES, ids=lambda words: words["next"])
def test_bars_without_a_name_or_a_head_are_known_by_their_words(read, words):
    assert read("a.html", BARE.format(body=BODY, **words | {"home": words["up"]})).text == TEXT


def test_the_bar_of_a_manual_page_is_left_out(read):
    html = (
        "<h1>LAMP</h1>\nSection: User Commands (1)<br>Updated: 1880<br><a href='#index'>Index</a>\n"
        "<a href='../index.html'>Return to Main Contents</a><hr>\n<h2>NAME</h2>\nlamp - lights a lamp\n"
    )
    text = "# LAMP\n\nSection: User Commands (1)\nUpdated: 1880\n\n## NAME\n\nlamp - lights a lamp"
    assert read("a.html", html).text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Read the <a href='ch03.html'>next</a> rule, too.", "Read the next rule, too."),
        ("<p>See <a href='ch03.html'>3. Dues</a>", "See 3. Dues"),
        ("<ul><li><a href='ch03.html'>3. Dues</a></ul>", "- 3. Dues"),
        (
            "<table><tr><td>Rye<td>4 marks<tr><td>Oats<td>2 marks<tr><td><a href='ch03.html'>Next</a></table>",
            "Rye | 4 marks\nOats | 2 marks\n\nNext",
        ),
        ("<table><tr><td>Previous<td>Next<tr><td>4 May<td>3 June</table>", "Previous | Next\n4 May | 3 June"),
        ("<p><a href='ch03.html'>Next</a>: the harbour closes on 3 June", "Next: the harbour closes on 3 June"),
        ("<div class='nav'><a href='ch03.html'>Next</a> <a href='tel:1'>Call 0471</a></div>", "Next Call 0471"),
        ("<div role='navigation'><p>Board: <a href='a.html'>Odvar Felisk</a></div>", "Board: Odvar Felisk"),
        ("<p>The keeper's story in <a href='de.html'>German</a>", "The keeper's story in German"),
        ("See <a href='a.html'>home</a> or <a href='b.html'>top</a>.", "See home or top."),
        ("<a href='a.html'>Next</a> to nothing", "Next to nothing"),
        ("<div><h2>Dues</h2><a href='a.html'>Next</a> <b>year</b> they rise.</div>", "## Dues\n\nNext year they rise."),
    ],
)
def test_what_is_no_bar_is_read(read, html, text):
    assert read("a.html", f"<html>{HEAD}<body>{html}</body></html>").text == text


@pytest.mark.parametrize(
    "menu",
    [
        "<div role=navigation><h2>Contents</h2><ul><li><a href='#a'>1 <b>History</b></a></ul></div>",
        "<ul role='navigation'><li><a href='a.html'>Log in</a></ul>",
        "<section role=navigation><a href='a.html'>Towers</a> | <a href='b.html'>Lamps</a></section>",
        "<div role=navigation><ul><li>en »<li><a href='a.html'>Towers</a> »<li>Gull Rock</ul></div>",
        "<div role=navigation><a href='a.html'>Towers</a> » <p style='display: none'>This version is old.</p></div>",
    ],
)
def test_what_has_the_role_of_navigation_and_only_links_is_not_read(read, menu):
    assert (
        read("a.html", f"<title>Gull Rock</title>{menu}<h1>Gull Rock</h1><p>It burns.").text
        == "# Gull Rock\n\nIt burns."
    )


def test_a_long_menu_with_the_role_of_navigation_and_a_step_is_not_read(read):
    entries = "".join(f"<li><a href='{number}.html'>The rules of harbour {number}</a>" for number in range(40))
    step = "<h3>Related topics</h3><div><ul><li>Next: <a href='ch03.html'>Dues</a></ul></div>"
    menu = f"<div role=navigation><div><h1><a href=i.html>Harbours</a></h1><ul>{entries}</ul>{step}</div></div>"
    assert read("a.html", f"<html>{HEAD}<body>{BODY}{menu}</body></html>").text == TEXT


RELATED = "<p class=related>Related topics</p>"


@pytest.mark.parametrize(
    "related",
    [
        f"<div>{RELATED}</div><div><p><a href=d.html>Dues</a></div><div><p><a href=l.html>Lights</a></div>",
        f"<div>{RELATED}<div><p><a href=d.html>Dues</a><p><a href=l.html>Lights</a></div></div>",
    ],
)
def test_links_to_related_pages_are_left_out_with_their_label(read, related):
    assert read("a.html", f"{BODY}<div>{related}</div>").text == TEXT


@pytest.mark.parametrize("below", ["", "<p><a href=d.html>Dues</a>: four marks a year.</p>", "<p>Ask Odvar.</p>"])
def test_a_label_stays_with_a_text_below_it(read, below):
    assert "Related topics" in read("a.html", f"{BODY}{RELATED}{below}").text


@pytest.mark.parametrize(
    ("related", "kept"),
    [
        ("<p class=related>The work of Ann was done in 1990.</p>", "The work of Ann"),
        ("<p class=related>灯は石油を燃やす。</p>", "灯は石油を燃やす。"),
        ("<div class=related><p>The light</p><p>burns oil</p></div>", "burns oil"),
        ("<table class=related><tr><td>Rye<td>4</table>", "Rye | 4"),
        ("<div>The light burns oil since 1990.<p class=related>See also</p></div>", "burns oil"),
    ],
)
def test_a_text_named_as_related_stays_above_links(read, related, kept):
    assert kept in read("a.html", f"{BODY}<section>{related}<p><a href=d.html>Dues</a></p></section>").text


@pytest.mark.parametrize(
    "page",
    [
        250 * "<div role=navigation>" + 20_000 * "<a><b>Lamps</b></a>",
        100 * "<table>" + 3_000 * "<tr><td class=a>Rye</td></tr>" + "<style>.a{font-weight:bold}</style>",
        f"<table>{20 * ('<tr>' + 1_500 * '<td>7')}</table>",
        f"<table>{20_000 * '<tr><td>7<td><pre>Rye</pre>'}</table>",
    ],
)
def test_elements_within_each_other_are_read_at_once(page):
    began = time.process_time()
    assert html_content(page).text
    assert time.process_time() - began < 4  # looking at all of them for each one takes longer


def test_a_page_of_nothing_but_a_bar_is_read(read):
    assert read("a.html", "<p><a href='ch01.html'>Previous</a> | <a href='ch03.html'>Next</a>").text == "Previous, Next"


def test_bars_are_no_tables_in_sql(make_index):
    table = "<table><tr><th>Grain<th>Marks<tr><td>Rye<td>4<tr><td>Oats<td>2</table>"
    page = DOCBOOK.format(body=BODY + table, **ENGLISH)
    index = make_index({"a.html": f"<html>{HEAD}<body>{page}</body></html>"})
    names = index.query_tables("SELECT name FROM tables").rows
    assert names == (("a",),)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p><a href=o>Oats</a> | <a href=r>Rye</a> | <a href=w>Wheat</a>", "Oats, Rye, Wheat"),
        ("<p><a href=o>Oats</a> | Rye | <a href=w>Wheat</a>", "Oats, Rye, Wheat"),
        ("<div>See <a href=o>Oats</a>|<a href=r>Rye</a></div>", "See Oats, Rye"),
        ("<p><a href=o>Oats</a> | Rye: 4 marks.", "Oats, Rye: 4 marks."),
        ("<pre><a href=o>oats</a> | <a href=r>rye</a></pre>", "oats | rye"),
    ],
)
def test_links_between_bars_are_a_list_and_no_row_of_a_table(read, html, text):
    assert read("a.html", f"<h1>Mills</h1><p>They grind.</p>{html}").text == f"# Mills\n\nThey grind.\n\n{text}"
