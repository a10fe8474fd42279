"""Web pages as text with headings and lists as in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from lxml import etree

from arag.ingest.formats.bars import TEXT_BAR, find_barred_lines, show_bars
from arag.ingest.formats.content import Content, name_parts
from arag.ingest.formats.frame import CODE_LINE_END, FRAME_END, FRAME_START, find_empty_frame, find_frame, mark_lines
from arag.ingest.formats.html_generators import mark_generated
from arag.ingest.formats.html_hidden import find_hidden, find_navigation, leads_elsewhere, shows_others
from arag.ingest.formats.html_layout import BLOCKS, HEADINGS, Layout, find_layout
from arag.ingest.formats.html_lists import without_own_number
from arag.ingest.formats.html_marks import (
    ALL_MARKS,
    DEFINITION,
    HEADING,
    ITEM,
    MARK_END,
    NO_BREAK_SPACE,
    TERM_END,
    on_one_line,
    tidy,
)
from arag.ingest.formats.html_neighbours import separate_neighbours
from arag.ingest.formats.html_pages import decode_html, find_inside, parse_html
from arag.ingest.formats.html_quotes import QUOTE_END, QUOTE_START, find_quotes, quote_lines
from arag.ingest.formats.html_tables import (
    show_bold_type,
    table_rows,
    take_out_footnotes,
)
from arag.ingest.formats.inline import (
    drawing_text,
    field_text,
    option_text,
    picture_text,
    raise_text,
    take_ruby,
)
from arag.ingest.formats.lines import LINE_END, join_lines
from arag.ingest.formats.mathml import formula_text
from arag.ingest.formats.navigation import find_bars
from arag.ingest.formats.plain_titles import first_heading, opening_heading
from arag.ingest.formats.printed_manuals import mark_manual, split_manual
from arag.ingest.outline import escape_code, has_marked_headings
from arag.ingest.plain_tables import find_printed_rows
from arag.text.normalise import collapse_whitespace, count, shorten

_EMBEDDED = {"iframe": "src", "frame": "src", "embed": "src", "object": "data"}
_NO_ADDRESS = ("about:", "javascript:", "data:")  # begins what is no file
_MAX_ADDRESS = 80  # characters of it in a note
_LABELLED = frozenset(  # names of elements in which DocBook and others write a heading
    "note tip important caution warning danger admonition example author editor othercredit".split()
)
_RAISED = ("sup", "sub")
_BEFORE_RAISED = 12  # characters that are looked at
_SET_APART_WITH_TEXT = ("svg", "iframe")  # others are icons in a line, or invisible

_WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")  # shown as one space, unlike a no-break space
_SOURCE_LINE_END = re.compile(r"[ \t\r\f]*\n[ \t\n\r\f]*")
_CODE_INDENTATION = 4 * NO_BREAK_SPACE
_NOTE_NUMBER = re.compile(r"\(\d{1,4}\)|\[\d{1,4}\]")  # of a footnote, which stands above it
_MARKS = {  # before and after a text
    "option": (f"{ITEM}-{MARK_END}", ""),
    "dt": ("", TERM_END),
    "dd": (DEFINITION, ""),
}
_PAGE_NUMBER = re.compile(  # a picture in its place, as LaTeX2HTML makes it: (p. [*])
    r"\s?\([^\W\d_]{1,6}\.?(?:&nbsp;|\s)?<a\b[^<>]*><img\b[^<>]*alt=.\[\*\].[^<>]*></a>\)", re.IGNORECASE
)
_MANUAL_HEADING = re.compile(r"^#+(?= )", re.MULTILINE)
# Where tags are closed in a wrong order, the title stands in the body, but a browser shows it.
_TITLE = etree.XPath("string((//title[not(ancestor::svg)])[1])", smart_strings=False)
# What programs write where a page has no title; Sphinx adds the name of the site.
_NO_TITLE = re.compile(r"<no title>.*|no title|untitled(?: document| page)?|title", re.IGNORECASE)
_MARKED = re.compile(r"<(tt|code|b|i|em|strong|sup|sub)>(.*?)</\1>", re.IGNORECASE)  # which a title would show
# What Texinfo writes for the first page of a manual, with the manual's title.
_TOP = re.compile(r"Top \((?P<after>.+)\)|(?P<before>.+): Top")
_COMMENT = re.compile(" ?<!--.*?-->")
_PICTURE = re.compile(r"<(?:\w+:)?(?:img|image)\b", re.IGNORECASE)


def read_html(path: Path, encoding: str = "") -> Content:
    """Read the text of a page without navigation; its title is `<title>`, else an `<h1>`, else the heading above all.

    Lines that may be part of the frame around the text begin with a mark: see `without_repeats`.
    """
    html = decode_html(path.read_bytes(), encoding)
    content = html_content(html, mark_frame=True)
    if content.text or not has_picture(html):
        return content
    return replace(content, left_out=("pictures", *content.left_out))


def has_picture(html: str) -> bool:
    """Return whether a page shows a picture."""
    return _PICTURE.search(html) is not None


def html_content(html: str, *, mark_frame: bool = False, is_mail: bool = False) -> Content:
    """Return the content of a page as a browser shows it; see `read_html`.

    Args:
        html: The page.
        mark_frame: Whether to mark the lines of the frame around the text.
        is_mail: Whether to begin the lines of a quoted older mail with ">".

    Raises:
        FormatError: The parser gave up in the middle of the page.
    """
    for mark in ALL_MARKS:
        html = html.replace(mark, " ")
    page = parse_html(_PAGE_NUMBER.sub("", html))
    if mark_frame and leads_elsewhere(page):
        return Content(title="", text="", why_skipped="a page that only leads to another")
    if mark_frame and shows_others(page):
        return Content(title="", text="", why_skipped="a page that only shows others, in frames")
    take_out_footnotes(page)
    show_bold_type(page)
    separate_neighbours(page)
    mark_generated(page)
    hidden = find_hidden(page)
    not_shown = find_inside(hidden)
    embedded = _embedded_pages(page, not_shown)
    left_out = set(hidden)
    frame: set[etree._Element] = set()
    if mark_frame:  # in a book, an aside may be a note
        left_out |= find_bars(page)
        frame = find_frame(page)
        left_out.update(find_empty_frame(page))
    left_out.update(find_navigation(page, not_shown))
    quotes = find_quotes(page) if is_mail else ()
    text = _page_text(page, left_out, frame, quotes)
    if not text:  # the page has nothing but links
        text = _page_text(page, hidden)
    if not text:  # a program shows what is hidden
        text = _page_text(page)
    shown = show_bars(text)
    without_frame = shown.replace(FRAME_START, "")
    return Content(
        title=_declared_title(page) or first_heading(without_frame) or opening_heading(without_frame),
        text=shown,
        left_out=(*name_parts("embedded page", embedded), *_count_recordings(page, not_shown)),
        marks_headings=has_marked_headings(text.replace(FRAME_START, "")),
        barred_lines=find_barred_lines(text.replace(FRAME_START, "")),
    )


def _declared_title(page: etree._Element) -> str:
    """Return the title that a page declares, without what generators of manuals write for want of one."""
    title = _COMMENT.sub("", _MARKED.sub(r"\2", collapse_whitespace(_TITLE(page))))
    if _NO_TITLE.fullmatch(title):
        return ""
    top = _TOP.fullmatch(title)
    return title if top is None else top["after"] or top["before"]


def _count_recordings(page: etree._Element, not_shown: set[etree._Element]) -> tuple[str, ...]:
    recordings = set(page.iter("video", "audio")) - not_shown
    return (count(len(recordings), "recording"),) if recordings else ()


def _embedded_pages(page: etree._Element, not_shown: set[etree._Element]) -> list[str]:
    """Return the addresses of pages and files that a browser shows within this page."""
    addresses: list[str] = []
    for element in page.iter(*_EMBEDDED):
        attribute = _EMBEDDED[element.tag]
        address = collapse_whitespace(element.get(attribute, ""))
        is_picture = element.get("type", "").startswith("image/")
        is_file = address != "" and not address.startswith(_NO_ADDRESS)
        if is_file and not is_picture and element not in not_shown:
            addresses.append(shorten(address, _MAX_ADDRESS))
    return addresses


def _page_text(
    page: etree._Element,
    left_out: Collection[etree._Element] = (),
    frame: Collection[etree._Element] = (),
    quotes: Collection[etree._Element] = (),
) -> str:
    """Return headings, lists and rows of tables; links and emphasis become plain text, pictures the texts for them."""
    layout = find_layout(page, left_out)
    elements = list(page.iter())
    texts: dict[etree._Element, str] = {}
    for element in reversed(elements):  # each element after all elements in it
        text = _take_text(element, texts, layout)
        text = _mark_up(element, text, layout)
        if element in frame and text.strip():
            text = f"{FRAME_START}{text.strip()}{FRAME_END}"
        if element in quotes:
            text = f"{QUOTE_START}\n\n{text}\n\n{QUOTE_END}"
        texts[element] = _set_apart(element, text, layout)
    text = tidy(texts[page])
    if frame:
        text = mark_lines(text)
    text = text.replace(CODE_LINE_END, "\n")
    return quote_lines(text) if quotes else text


def _take_text(element: etree._Element, texts: dict[etree._Element, str], layout: Layout) -> str:
    """Return the text of an element as a browser shows it. The texts of its children are taken from `texts`."""
    if element.tag == "ruby":
        text = take_ruby(element, texts).replace("|", TEXT_BAR)
    else:
        is_preformatted = element in layout.preformatted
        text = _join_parts(element, texts, is_preformatted=is_preformatted)
    if element in layout.hidden:
        return ""
    if element.tag == "pre":
        return _show_code(text)
    if element.tag == "option":
        return option_text(element, text)
    if element.tag == "iframe":
        return _frame_text(element)
    if element.tag in _SPECIAL:
        return _show_special(element).replace("|", TEXT_BAR)
    return text


def _join_parts(element: etree._Element, texts: dict[etree._Element, str], *, is_preformatted: bool) -> str:
    """Return the text of an element, with the texts of its children, which are taken from `texts`."""
    parts = [_show_spaces(element.text, is_preformatted)]
    for child in element:
        text = texts.pop(child)
        if child.tag in _RAISED:
            before = "".join(parts[-3:])
            text = raise_text(before[-_BEFORE_RAISED:], child, text)
        tail = _show_spaces(child.tail, is_preformatted)
        parts += [text, tail]
    return "".join(parts)


def _show_spaces(text: str | None, is_preformatted: bool) -> str:
    if text is None:
        return ""
    text = text.replace("|", TEXT_BAR)
    if is_preformatted:
        text = text.replace("\r\n", "\n").replace("\n", CODE_LINE_END)
        return text.replace(" ", NO_BREAK_SPACE)
    if not text.isascii():  # it may be in a script without spaces
        text = _SOURCE_LINE_END.sub(LINE_END, text)
    return _WHITE_SPACE.sub(" ", text)


def _mark_up(element: etree._Element, text: str, layout: Layout) -> str:
    """Return an element's text as a heading, an item or a table, if it is one."""
    if element in layout.cells:
        layout.cell_texts[element] = show_bars(on_one_line(text))
        return " "  # the table shows it
    if element in layout.tables:
        lines = [on_one_line(text), *table_rows(element, layout.cell_texts)]
        return "\n".join(lines).replace(" ", NO_BREAK_SPACE)
    if element.tag in HEADINGS:
        return _mark_heading(element, text)
    if element in layout.items:
        return _mark_item(text, layout.items[element])
    if element.tag == "dd" and not _stands_after_term(element, text):
        return text
    before, after = _MARKS.get(element.tag, ("", ""))
    return f"{before}{text}{after}"


def _stands_after_term(definition: etree._Element, text: str) -> bool:
    """Return whether a definition stands in the line of its term.

    An empty one does not, nor a list of other terms, such as the sections of a chapter in contents. One field does.
    """
    begins_with_text = (definition.text or "").strip() or len(definition) == 0
    if begins_with_text or definition[0].tag != "dl":
        return text.strip() != ""
    return [part.tag for part in definition[0]] == ["dt", "dd"]


def _mark_item(text: str, mark: str) -> str:
    if not text.strip():
        return ""
    mark = without_own_number(mark, text)
    return f"{ITEM}{mark}{MARK_END}{text}"


def _mark_heading(element: etree._Element, text: str) -> str:
    own, mark, others = text.partition(HEADING)  # of a heading that is not closed: those below it are in it
    heading = on_one_line(own)
    if not heading or _is_label(element, heading):
        return text
    level = int(element.tag[1])
    return f"{HEADING * level} {heading}\n\n{mark}{others}"


def _show_code(text: str) -> str:
    """Return code without blank lines around it, and with no line that looks like a heading."""
    lines = text.split(CODE_LINE_END)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if not filled:
        return ""
    lines = _show_rows(lines[filled[0] : filled[-1] + 1])
    plain = [line.replace(NO_BREAK_SPACE, " ") for line in lines]
    manual = split_manual("\n".join(plain))
    if manual:
        return _show_manual(manual.text)
    if escape_code(plain) != plain:
        lines = [f"{_CODE_INDENTATION}{line}" if line.strip() else "" for line in lines]
    return CODE_LINE_END.join(lines)


def _show_manual(text: str) -> str:
    """Return a printed manual page, whose headings are those of the page around it."""
    marked = join_lines(mark_manual(text))
    marked = _MANUAL_HEADING.sub(lambda marks: HEADING * len(marks[0]), marked)
    shown = marked.strip("\n").replace("\n", CODE_LINE_END)
    return shown.replace(" ", NO_BREAK_SPACE).replace(f"{HEADING}{NO_BREAK_SPACE}", f"{HEADING} ")


def _show_rows(lines: Sequence[str]) -> list[str]:
    """Return lines of code with bars between cells where a program printed a table."""
    code = "\n".join(lines).replace(NO_BREAK_SPACE, " ")
    rows = find_printed_rows(show_bars(code))
    shown: list[str] = []
    start = 0
    for line in lines:
        shown.append(show_bars(line) if start in rows else line)
        start += len(line) + 1
    return shown


def _is_label(element: etree._Element, heading: str) -> bool:
    """Return whether a heading is the label of a note or an example, an author's name, or a footnote's number.

    What follows the note belongs to the heading above it.
    """
    classes = element.getparent().get("class", "")
    return not _LABELLED.isdisjoint(classes.split()) or _NOTE_NUMBER.fullmatch(heading) is not None


def _show_special(element: etree._Element) -> str:
    """Return the text of an element that is shown in another way than by the text in it."""
    text = _SPECIAL[element.tag](element)
    return f" {text} " if element.tag in _BETWEEN_SPACES else text


def _frame_text(element: etree._Element) -> str:
    """Return the page that a frame holds itself. The text in the frame is for browsers without frames."""
    page = element.get("srcdoc", "").strip()
    if not page:
        return ""
    return _page_text(parse_html(page)).replace(" ", NO_BREAK_SPACE)


_SPECIAL = {
    "math": formula_text,
    "img": picture_text,
    "input": field_text,
    "svg": drawing_text,
}
_BETWEEN_SPACES = ("img", "input")


def _set_apart(element: etree._Element, text: str, layout: Layout) -> str:
    if element in layout.rows:
        return f"\n\n{on_one_line(text)}\n\n"
    if element.getparent() in layout.rows or element.tag == "button":
        return f" {text} "
    if element.tag == "br":
        line_end = CODE_LINE_END if element in layout.preformatted else "\n"
        return f"{line_end}{text}"
    is_empty = not text and element.tag in _SET_APART_WITH_TEXT
    if element.tag in BLOCKS and not is_empty:
        return f"\n\n{text}\n\n"
    return text
