"""Manuals in DocBook and help in Mallard are read as a person sees them, without what they say about their making."""

from __future__ import annotations

import pytest

from arag.ingest.formats import Readers

MALLARD = """<page xmlns="http://projectmallard.org/1.0/" id="keys">
<info><title type="link">Short</title><credit><name>Ann Lee</name></credit><desc>Lights.</desc></info>
<title>Lamps</title><p>Press <keyseq><key>Ctrl</key><key>L</key></keyseq>.</p>{}</page>"""
DOCBOOK = (
    """<chapter><chapterinfo><title>Lamps</title><author><surname>Lee</surname></author></chapterinfo>{}</chapter>"""
)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("<section><title>Oil</title><p>Fill it.</p></section>", "## Oil\n\nFill it."),
        ("<terms><item><title>Wick</title><p>It burns.</p></item></terms>", "Wick: It burns."),
        ("<note><title>Care</title><p>It is hot.</p></note>", "Care\n\nIt is hot."),
        ("<screen>a\n  b</screen>", "a\n  b"),
        ("<p>See <link xref='oil'/>.</p>", "See oil."),
        ("<section><title><media>Logo</media> Oil</title><p>Fill it.</p></section>", "## Oil\n\nFill it."),
        ("<section><title><media>Oil</media></title><p>Fill it.</p></section>", "## Oil\n\nFill it."),
        ("<links type='topic' groups='oil'><title>Oils</title></links>", "Oils"),
        (
            "<table><tr><th><p>Oil</p></th><th><p>Price</p></th></tr><tr><td><p>A</p></td><td><p>2</p></td></tr></table>",
            "Oil | Price\nOil: A | Price: 2",
        ),
    ],
)
def test_help_in_mallard(read, part, text):
    content = read("keys.page", MALLARD.format(part))
    assert content.title == "Lamps"
    assert content.text == f"# Lamps\n\nPress Ctrl+L.\n\n{text}"


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("<sect1 id='a'><title>Oil</title><para>See <xref linkend='a'/>.</para></sect1>", "## Oil\n\nSee Oil."),
        (
            "<para>It<indexterm><primary>x</primary></indexterm> burns<footnote><para>Hot.</para></footnote>.</para>",
            "It burns (Hot.).",
        ),
        (
            (
                "<para><menuchoice><shortcut><keycombo><keycap>Ctrl</keycap><keycap>Q</keycap></keycombo></shortcut>"
                "<guimenu>File</guimenu><guimenuitem>Quit</guimenuitem></menuchoice></para>"
            ),
            "File > Quit (Ctrl+Q)",
        ),
        (
            (
                "<variablelist><varlistentry><term>Wick</term>"
                "<listitem><para>It burns.</para></listitem></varlistentry></variablelist>"
            ),
            "Wick: It burns.",
        ),
        (
            (
                "<table><title>Oils</title><tgroup cols='2'>"
                "<thead><row><entry>Oil</entry><entry>Price</entry></row></thead>"
                "<tbody><row><entry morerows='1'>A</entry><entry>2</entry></row><row><entry>3</entry></row></tbody>"
                "</tgroup></table>"
            ),
            "Oils\nOil | Price\nOil: A | Price: 2\nOil: A | Price: 3",
        ),
        (
            (
                "<informaltable><tgroup cols='4'><colspec colname='a'/><colspec colname='b'/><colspec colname='c'/>"
                "<colspec colname='d'/><spanspec spanname='oil' namest='a' nameend='b'/>"
                "<thead><row><entry spanname='oil'>Oil</entry><entry namest='c' nameend='d'>Price</entry></row></thead>"
                "<tbody><row><entry>A</entry><entry>B</entry><entry>2</entry><entry>3</entry></row></tbody>"
                "</tgroup></informaltable>"
            ),
            "Oil |  | Price\nOil: A | B | Price: 2 | 3",
        ),
        ("<para>A &mdash; &lt;b&gt; &unknown;</para>", "A — <b> unknown"),
    ],
)
def test_manuals_in_docbook(read, part, text):
    content = read("a.docbook", DOCBOOK.format(part))
    assert content.title == "Lamps"
    assert content.text == f"# Lamps\n\n{text}"


@pytest.mark.parametrize(
    ("name", "link", "beside", "title"),
    [
        ("a.page", "<link xref='oil'/>", "<title>Kinds of oil</title>", "Kinds of oil"),
        ("a.page", "<link xref='oil#rape'/>", "<section id='rape'><title>Rape</title></section>", "Rape"),
        ("a.page", "<link xref='salt'/>", "<title>Kinds of oil</title>", "salt"),
        ("a.docbook", "<xref linkend='oil'/>", "<info><title>Kinds of oil</title></info>", "Kinds of oil"),
        ("a.docbook", "<link linkend='rape'/>", "<section id='rape'><title>Rape</title></section>", "Rape"),
        ("a.docbook", "<ulink url='https://oil.test/#a'/>", "<title>Kinds of oil</title>", "https://oil.test/#a"),
    ],
)
def test_a_link_without_words_shows_the_title_of_a_part_in_another_file(read, name, link, beside, title):
    read(
        f"oil{name[1:]}", f"<page id='oil'><info><title type='link'>Oil</title></info>{beside}<para>Text.</para></page>"
    )
    content = read(name, f"<page><title>Lamps</title><para>See {link}.</para></page>")
    assert content.text == f"# Lamps\n\nSee {title}."


def test_a_notice_in_a_file_of_its_own_is_read(read):
    notice = "<legalnotice id='legal'><para>You may copy the handbook.</para></legalnotice>"
    doctype = '<!DOCTYPE refentry PUBLIC "-//OASIS//DTD DocBook XML V4.3//EN" "docbookx.dtd">'
    assert read("legal.xml", f"<?xml version='1.0'?>{doctype}{notice}").text == "You may copy the handbook."


def test_entities_are_found_only_in_definitions_beside_the_file(tmp_path):
    (tmp_path / "names.dtd").write_text('<!ENTITY app "<application>Lampyr</application>">')
    (tmp_path / "secret.txt").write_text("Secret")
    (tmp_path / "a.xml").write_text(
        '<!DOCTYPE article SYSTEM "https://example.org/names.dtd" [<!ENTITY s SYSTEM "secret.txt">]>'
        "<article><title>&app;</title><para>It burns. &s;</para></article>"
    )
    with Readers() as readers:
        content = readers.read(tmp_path / "a.xml")
    assert (content.title, content.text) == ("Lampyr", "# Lampyr\n\nIt burns.")


def test_entities_that_nothing_defines_are_named(read):
    content = read("a.docbook", DOCBOOK.format("<para>&app; shows &mdash; &amp;oil; and &vendor.mail;.</para>"))
    assert content.text == "# Lamps\n\napp shows — &oil; and &vendor.mail;."
    assert content.left_out == ("texts of undefined entities, shown by name or left out (app, vendor.mail)",)


def test_keys_and_abbreviations_that_are_entities_are_no_mathematical_signs(read):
    keys = "<keycombo>&Ctrl;&Shift;<keycap>R</keycap></keycombo>, <keycombo>&Alt; &Del;</keycombo>, &Tab;"
    content = read(
        "a.docbook", DOCBOOK.format(f"<para>Keys, &eg; {keys}, &etc; cost 5 &le; 6 &frac12; &plus; 1.</para>")
    )
    assert content.text == "# Lamps\n\nKeys, e.g. Ctrl+Shift+R, Alt+Del, Tab, etc. cost 5 ≤ 6 ½ + 1."


def test_entities_that_stand_for_whole_paragraphs_are_left_out(read):
    body = "<para>&notice;</para><para>Oil for <b>x</b> &app;</para>&license;<para>Wicks.</para>"
    content = read("a.docbook", DOCBOOK.format(f"<sect1><title>&app;</title>&terms;{body}</sect1>"))
    assert content.text == "# Lamps\n\n## app\n\nOil for x app\n\nWicks."
    assert content.left_out == ("texts of undefined entities, shown by name or left out (app, license, notice, terms)",)


@pytest.mark.parametrize(
    ("definitions", "text"),
    [
        ('<!ENTITY app "Lamp"><!ENTITY app "Second"><!-- <!ENTITY old "Old"> -->', "Lamp and old."),
        ('<!ENTITY app "<b>open"><!ENTITY old "&old;">', "app and old."),
    ],
)
def test_the_first_definition_of_an_entity_counts_and_a_damaged_one_is_none(tmp_path, definitions, text):
    (tmp_path / "index.docbook").write_text(f"<!DOCTYPE book [{definitions}]><book><title>Lamps</title></book>")
    chapter = tmp_path / "chapter.docbook"
    chapter.write_text("<chapter><title>Care</title><para>&app; and &old;.</para></chapter>")
    with Readers() as readers:
        assert readers.read(chapter).text.endswith(text)


def test_chapters_have_the_entities_of_their_book(tmp_path):
    lamp = "<!ENTITY lamp '<application>Lampyr</application>'>"
    entities = f'<!ENTITY app "&lamp; 2">{lamp}<!ENTITY wicks SYSTEM "wicks.docbook">'
    (tmp_path / "index.docbook").write_text(f"<!DOCTYPE book [{entities}]><book><title>Lamps</title></book>")
    (tmp_path / "oil.docbook").write_text("<chapter><title>Oil for &app;</title><para>&wicks; burn.</para></chapter>")
    with Readers() as readers:
        content = readers.read(tmp_path / "oil.docbook")
    assert content.text == "# Oil for Lampyr 2\n\nwicks burn."


def test_a_part_that_other_files_include_may_have_several_roots(read):
    part = "<sect1><title>{}</title><para>&app; burns.</para></sect1>\n"
    content = read("parts.xml", f"<?xml version='1.0'?>\n{part.format('Wicks')}{part.format('Oil')}")
    assert content.text == "## Wicks\n\napp burns.\n\n## Oil\n\napp burns."


def test_definitions_are_not_read_through_a_link(tmp_path):
    (tmp_path / "secret.txt").write_text("the key")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "link.ent").symlink_to(tmp_path / "secret.txt")
    book = tmp_path / "book" / "lamps.docbook"
    book.write_text('<!DOCTYPE book [<!ENTITY x SYSTEM "link.ent">]><book><title>Lamps</title><para>&x;!</para></book>')
    with Readers() as readers:
        assert "the key" not in readers.read(book).text


@pytest.mark.parametrize("above", ["", "<!-- <!DOCTYPE book [> -->\n"])
def test_a_declaration_within_the_text_is_text(read, above):
    code = "<programlisting><![CDATA[<!DOCTYPE html [>]]></programlisting>"
    content = read("lamps.docbook", f"{above}<book><title>Lamps</title><para>Light.</para>{code}</book>")
    assert content.text.endswith("<!DOCTYPE html [>")


def test_other_files_with_such_extensions_have_no_reader(tmp_path):
    (tmp_path / "map.xml").write_text("<map><title>Lamps</title></map>")
    (tmp_path / "book.xml").write_text("<book><title>Lamps</title><price>2</price></book>")
    (tmp_path / "wiki.page").write_text("# Lamps\n")
    (tmp_path / "a.xml").write_text("<?xml version='1.0'?><!-- <map> --><article><para>It burns.</para></article>")
    with Readers() as readers:
        known = [path.name for path in sorted(tmp_path.iterdir()) if readers.knows(path)]
    assert known == ["a.xml"]
    with Readers({".xml": ".txt"}) as readers:
        assert readers.read(tmp_path / "map.xml").text.startswith("<map>")


def test_numbered_lists_have_their_numbers(read):
    steps = "<steps><item><p>Open <gui>it</gui>.</p></item><item><p>Wait.</p></item></steps>"
    assert read("keys.page", MALLARD.format(steps)).text.endswith("\n1. Open it.\n2. Wait.")
    inner = "<orderedlist><listitem><para>oil</para></listitem></orderedlist>"
    first = f"<listitem><para>Fill</para>{inner}</listitem>"
    items = f"<orderedlist startingnumber='4'>{first}<listitem><para>Light</para></listitem></orderedlist>"
    assert read("a.docbook", DOCBOOK.format(items)).text.endswith("\n4. Fill\n  - a. oil\n5. Light")
