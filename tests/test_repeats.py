"""In a folder of pages, menus, heads and feet are kept once; an answer that many pages give stays in each."""

from __future__ import annotations

import pytest

from arag.ingest.formats import Readers

TOPICS = ["Sluice gate", "New millstone", "Cart road", "Night shift", "Dovecote", "Lamp oil"]


def read_folder(tmp_path, pages):
    for number, page in enumerate(pages):
        (tmp_path / f"{number}.html").write_text(page)
    with Readers() as readers:
        return [readers.read(tmp_path / f"{number}.html").text for number in range(len(pages))]


@pytest.mark.parametrize(
    "template",
    [
        "<h1>{topic}</h1><h2>Reason</h2><p>About {topic}.<h2>Result</h2><p>{answer}",
        "<h1>{topic}</h1><h2>Result</h2><p>{answer}</p><p>Signed by keeper {number}.",
        "<h1>{topic}</h1><p>About {topic}.</p><p>Status: {answer}</p>",
        "<h1>{topic}</h1><p>About {topic}.</p><p>The council has decided: {answer}.</p><p>No. {number}",
        "<h1>{topic}</h1><table><tr><td>Result<td>{answer}<tr><td>Number<td>{number}</table>",
        "<h1>{topic}</h1><dl><dt>Result<dd>{answer}</dl><ul><li>{answer}<li>Number {number}</ul>",
        "<p>Status: {answer}<h1>{topic}</h1><p>About {topic}.",
        "<article><h2>{topic}</h2><p>About {topic}.<footer>{answer} by Odvar Felisk</footer></article>",
        "<h1>{topic}</h1><h2>See also</h2><p><a href=x>{answer}</a></p>",
        "<h1>{topic}</h1><p>About {topic}.</p><p>{answer} by <a href=o>Odvar Felisk</a></p>",
        "<h1>{topic}</h1><p>About {topic}.</p><p><a href=o>{answer}</a></p><p>Tags: <a>{answer}</a> <a>oil</a></p>",
        "<h1>{topic}</h1><p>About {topic}.</p><p><img alt='{answer}'></p>",
        "<p>Status: <img alt='{answer}'><h1>{topic}</h1><p>About {topic}.",
        "<h1>{topic}</h1><p>About {topic}.</p><p><img alt='{answer}'> <a href=c>Case</a> <a href=l>Law</a></p>",
        "<h1><a href=o>{answer}</a></h1><h2>{topic}</h2><p>About {topic}.",
        "<h1>{topic}</h1><h2>Licence</h2><p>Licensed under the terms of {answer}.</p>",
    ],
)
def test_an_answer_that_many_pages_give_stays_in_each(tmp_path, template):
    answers = ["Approved"] * 4 + ["Rejected", "Approved"]
    pages = [
        template.format(topic=topic, answer=answer, number=number)
        for number, (topic, answer) in enumerate(zip(TOPICS, answers, strict=True))
    ]
    for text, answer in zip(read_folder(tmp_path, pages), answers, strict=True):
        assert answer in text


@pytest.mark.parametrize(
    "frame",
    [
        "<div class=related><ul><li><a>index</a><li><a href=m>modules</a> |</ul></div>{page}<p>© 2024 Guild.",
        "<ul><li><a href=a>Home page</a><li>Shop</ul>{page}<div id=footer>The handbook of the guild, volume two.</div>",
        "<p><a href=a>Contents</a> <a href=b>Index</a></p>{page}<hr><p>Built with a press by Odvar.</p>",
        "<table><tr><td><a>Prev</a><td><a>Up</a><td><a>Next</a></table>{page}<p>Permission is granted to copy this.",
        "<div class='navheader'>The miller's handbook</div>{page}<div class='navfooter'><a>Home of the guild</a></div>",
        "<p><a href=h><img alt='Product Site'></a><a href=i><img alt='Documentation Site'></a></p>{page}",
        "<p><a href=h><img alt='Guild'></a></p>{page}",
        "<div><a href=h><img alt='Guild'></a>{page}</div>",
        "<p><img alt='The four mills of the guild'></p>{page}",
        "{page}<table><td><img src=home.gif alt=home><a href=a>Home page</a><td><a href=m>Map</a></table>",
        "<h1><a href=../index.html>The handbook of the guild</a></h1>{page}",
        "{page}<p><a href=../index.html>main help file</a></p>",
        "{page}<center>Hosted at <a href=h><img alt='The mill Logo'></a></center>",
        "<section class=wrap><div role=main>{page}</div><footer>Built with <a href=s>Sphinx</a> by Odvar.</footer>",
        "{page}<div class=toc-frame><h4>The handbook</h4><ul><li><a href=a>Mills</a><li><a href=b>Oil</a></ul></div>",
        "{page}<form action='https://a.test/search'><input name=q value='Find it'></form>",
        "<a href='#main'>Skip to the main text</a>{page}<footer>Call the mill at 555 0199 in the mornings.</footer>",
    ],
)
def test_the_frame_of_a_manual_is_kept_once(tmp_path, frame):
    bodies = [f"<h1>{topic}</h1><p>About {topic}.</p><h2>Use</h2><p>Use the {topic}.</p>" for topic in TOPICS]
    texts = read_folder(tmp_path, [frame.format(page=body) for body in bodies])
    plain = [f"# {topic}\n\nAbout {topic}.\n\n## Use\n\nUse the {topic}." for topic in TOPICS]
    alone = [text for text, body in zip(texts, plain, strict=True) if text == body]
    with_frame = [text for text, body in zip(texts, plain, strict=True) if text != body]
    assert len(alone) == len(TOPICS) - 1
    assert len(with_frame) == 1
    assert all(body in text for text, body in zip(texts, plain, strict=True))


SIDEBAR = "<a>Index</a><br>Modes: <ul>" + "".join(f"<li><a href={n}>{n} mode</a>" for n in TOPICS) + "</ul>"


def test_a_sidebar_in_a_table_that_lays_out_the_page_is_kept_once(tmp_path):
    layout = "<table><tr><td>Logo<td><h1>{topic}</h1></table><table><tr><td>" + SIDEBAR + "<td>{text}</table>"
    text = "<p>About {topic}.</p><p>It is open at night.</p>"
    pages = [layout.format(topic=topic, text=text.format(topic=topic)) for topic in TOPICS]
    texts = read_folder(tmp_path, pages)
    assert sum("mode" in text for text in texts) == 1
    for topic, read in zip(TOPICS, texts, strict=True):
        assert f"\n\nAbout {topic}.\n\nIt is open at night." in read


def test_a_menu_goes_with_the_names_of_neighbours(tmp_path):
    menu = "<ul><li><a href=i>index</a><li><a href=m>modules</a><li><a href=n>{next}</a></ul>"
    texts = read_folder(tmp_path, [f"{menu.format(next=f'next {topic}')}<h1>{topic}</h1><p>Text." for topic in TOPICS])
    assert sum("modules" in text for text in texts) == 1
    assert sum("next" in text for text in texts) <= 1


@pytest.mark.parametrize(
    "note",
    [
        "<div class=footer>Generated on 4 May 2023 20:07:{0:02} by Doxygen</div>",
        "<p>This page last modified on 2022-11-2{0} 14:56:19 UTC",
        "<p>Generated on Thu Jan {0} 2023 by a press of version 1.{0}.4",
        "<p>Last updated: {0}. März 202{0}",
        "<p>Page {0} of 12",
        "<p>© 202{0}",
        "<p>Copyright 201{0}-2022 the guild of the millers",
    ],
)
def test_a_note_with_the_date_or_number_of_each_page_is_kept_once(tmp_path, note):
    pages = [f"<h1>{topic}</h1><p>About {topic}.{note.format(number)}" for number, topic in enumerate(TOPICS, 1)]
    texts = read_folder(tmp_path, pages)
    alone = [text == f"# {topic}\n\nAbout {topic}." for text, topic in zip(texts, TOPICS, strict=True)]
    assert alone.count(False) == 1


@pytest.mark.parametrize("end", ["Released on {0} May 202{0}.", "© 202{0} {1}", "Weight: {0} kg"])
def test_a_line_that_says_more_of_each_page_than_its_age_stays_in_each(tmp_path, end):
    ends = [end.format(number, topic) for number, topic in enumerate(TOPICS, 1)]
    pages = [f"<h1>{topic}</h1><p>About {topic}.<p>{line}" for topic, line in zip(TOPICS, ends, strict=True)]
    for text, line in zip(read_folder(tmp_path, pages), ends, strict=True):
        assert text.endswith(line)


def test_a_slogan_that_stands_above_the_titles_of_other_pages_goes_from_one_without_headings(tmp_path):
    slogan = "<ul><li><a>Home</a><li>Menu</ul><div>Small. Fast. Reliable.<br>Choose any three.</div>"
    titles = ["<h1>{}</h1>"] * 3 + ["<p>{}</p>"] * 3
    pages = [
        f"{slogan}{title.format(topic)}<p>Choose any three.</p><p>About {topic}."
        for title, topic in zip(titles, TOPICS, strict=True)
    ]
    texts = read_folder(tmp_path, pages)
    assert sum("Small." in text for text in texts) == 1
    for text, topic in zip(texts, TOPICS, strict=True):
        assert text.endswith(f"{topic}\n\nChoose any three.\n\nAbout {topic}.")


HELP = (
    "<div class=admonition><p>See also</p><p>Help with <code>mills</code>:</p><ul>"
    "<li><a href=l>Mailing list</a> - best route for general questions</ul></div>"
    "<div><p>See also<ul><li>Source of the mill: <a href=s>the plans that the guild keeps</a></ul></div>"
)


@pytest.mark.parametrize("foot", ["", "<p>Copyright 2024 the guild of the millers."])
@pytest.mark.parametrize(
    "end", [HELP, "<h2>Help</h2><p>{0}</p><p>{0}".format("Ask the keeper of the mill, who is there in the mornings.")]
)
def test_an_end_that_nearly_all_pages_have_word_for_word_is_kept_once(tmp_path, foot, end):
    bodies = [f"<h1>{topic}</h1><p>About {topic}.</p><p>See also</p><p>More about {topic}.</p>" for topic in TOPICS]
    texts = read_folder(tmp_path, [body + end + foot for body in bodies])
    plain = [f"# {topic}\n\nAbout {topic}.\n\nSee also\n\nMore about {topic}." for topic in TOPICS]
    assert [text == body for text, body in zip(texts, plain, strict=True)].count(False) <= 1 + bool(foot)
    assert texts[0].startswith(f"{plain[0]}\n\n")


def test_the_same_end_in_several_folders_is_kept_once(make_index):
    folders = ["guild", "guild/a", "guild/b", "guild/b", "guild/b", "guild/c/d"]
    index = make_index(
        {
            f"{folder}/{topic}.html": f"<h1>{topic}</h1><p>About {topic}.</p>{HELP}"
            for folder, topic in zip(folders, TOPICS, strict=True)
        }
    )
    assert len(index.grep("Mailing list").lines) == 1


def test_an_answer_above_such_an_end_stays_in_each(tmp_path):
    answers = ["Approved"] * 5 + ["Rejected"]
    pages = [f"<h1>{topic}</h1><p>{answer}</p>{HELP}" for topic, answer in zip(TOPICS, answers, strict=True)]
    texts = "".join(read_folder(tmp_path, pages))
    assert (texts.count("Approved"), texts.count("Mailing list")) == (5, 1)


@pytest.mark.parametrize("pages", [2, 4])
def test_an_end_that_only_some_pages_have_stays_in_each(tmp_path, pages):
    ends = [HELP] * pages + ["<p>The end."] * (len(TOPICS) - pages)
    texts = read_folder(
        tmp_path, [f"<h1>{topic}</h1><p>Text.</p>{end}" for topic, end in zip(TOPICS, ends, strict=True)]
    )
    assert "".join(texts).count("Mailing list") == pages


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        ("<h1 id=header><a href=h>The guild</a></h1>{page}", "- The guild"),
        ("{page}<div class=toc-frame><h4>The handbook</h4></div>", "- The handbook"),
        ("<div><a href=h><img alt='The guild'></a>{page}</div>", "- The guild"),
        (
            "{page}<form action='/search'><select><option>Search pages<option>Search news</select></form>",
            "- Search news",
        ),
    ],
)
@pytest.mark.parametrize("title", ["h2", "p"])
def test_the_name_of_a_site_is_no_heading_of_the_page_that_keeps_it(make_index, frame, kept, title):
    body = "<{title}>{topic}</{title}><p>The {topic} of the guild was built by the keeper in the spring."
    pages = {
        f"{number}.html": frame.format(page=body.format(title=title, topic=topic))
        for number, topic in enumerate(TOPICS)
    }
    index = make_index(pages)
    chunks = [index.read(f"{name}:0").chunks[0] for name in pages]
    assert "\n".join(chunk.text for chunk in chunks).count(kept) == 1
    for chunk, topic in zip(chunks, TOPICS, strict=True):
        headings = [sentence.heading for sentence in chunk.sentences]
        assert set(headings) <= {"", topic}
