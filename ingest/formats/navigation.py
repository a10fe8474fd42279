"""Finds the bars of manuals that lead from a page to its neighbours: Previous, Next, Up, Contents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from lxml import etree

from arag.text.normalise import collapse_whitespace

_PART_OF_TEXT = r"(?: (?:page|chapter|section|topic|article|post|part|node|seite|kapitel|abschnitt))?"
# The words for the pages before and after, in the languages of manuals.
_STEPS = (
    rf"(?:prev|previous|next){_PART_OF_TEXT}|back|forwards?|fast (?:back|forward)"
    rf"|zurück|weiter|(?:vorherige|nächste|vorige)[rs]?{_PART_OF_TEXT}"
    r"|précédente?|suivante?|anterior|siguiente|próxim[oa]|seguinte|indietro|avanti|precedente|successiv[oa]"
    r"|vorige|volgende|terug|föregående|nästa|forrige|neste|næste|edellinen|seuraava"
    r"|poprzedni[ae]?|następn[yae]|wstecz|dalej|předchozí|předcházející|další|natrag|naprijed|înapoi|înainte"
    r"|пред|след|предыдущ(?:ая|ий|ее)|следующ(?:ая|ий|ее)|назад|впер[её]д|попередн[іяє]й?|наступн[аие]й?|далі"
    r"|προηγ|προηγούμεν[οη]|επόμεν[οη]|önceki|sonraki|sebelumnya|lanjut|trước đó|kế tiếp|السابق|التالي|הקודם|הבא"
    r"|[上下前后後]一?[页頁章节節]|戻る|前へ?|次へ?|[前次]の(?:ページ|章|節)|이전|다음"
)
# The words for the pages above, and for those that lead to all others.
_PLACES = (
    r"up|top|home|(?:top|bottom) of page|(?:(?:partial |full )?table of |full |return to (?:main )?)?contents|toc"
    r"|(?:general )?index|main page|start|first|last"
    r"|nach oben|oben|hoch|inhalt(?:sverzeichnis)?|startseite|anfang|übersicht|stichwortverzeichnis"
    r"|niveau supérieur|haut|sommaire|accueil|table des matières|arriba|subir|inicio|índice|contenido"
    r"|su|inizio|indice|sommario|acima|principal|início|sumário|omhoog|begin|inhoud|upp?|hem|innehåll|opp?|hjem"
    r"|innhold|indhold|ylös|alkuun|początek(?: rozdziału)?|spis treści|w górę|nahoru|domů|obsah|gore|početak|sus|acasă"
    r"|наверх|вверх|начало|содержание|оглавление|вгору|зміст|πάνω|αρχή|yukarı|başlangıç|içindekiler|induk|depan|lên|đầu"
    r"|上一[级級层層]|起始[页頁]|首[页頁]|目[录錄次]|索引|返回|上へ?|上に戻る|ホーム|トップ|위로?|처음(?:으로)?|차례|목차|홈"
)
_STEP = re.compile(rf"(?:{_STEPS})", re.IGNORECASE)
_PLACE = re.compile(rf"(?:{_PLACES})", re.IGNORECASE)
_INDEX = re.compile(r"(?:\w+ ){1,2}index", re.IGNORECASE)
_LABEL = re.compile(rf"(?<!\w)(?:{_STEPS}|{_PLACES})(?!\w)", re.IGNORECASE)
_ARROWS = re.compile(r"[<>«»‹›←→⇐⇒◀▶◄►]+")
_BESIDE_ARROW = re.compile(r"^[<«‹←⇐◀◄]+ ?\w|\w ?[>»›→⇒▶►]+$")  # the title of the page before, or after
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")

_STEP_RELATIONS = frozenset(("prev", "previous", "next"))
_PLACE_RELATIONS = frozenset("up home start top contents toc index first last begin end".split())
_LINKS = etree.XPath("//a[@href]")
_ALL_LINKS = etree.XPath("//a[@href] | //link[@rel and @href]")
_TO_LANGUAGES = etree.XPath("//a[@href and @hreflang and @rel = 'alternate']")
_TO_LANGUAGES_IN = etree.XPath(".//a[@href and @hreflang and @rel = 'alternate']")
_TEXT = etree.XPath(".//text() | .//img/@alt")
_TEXT_BESIDE_LINKS = etree.XPath(".//text()[not(ancestor::a[@href])] | .//img[not(ancestor::a[@href])]/@alt")
# The names that generators of manuals and blogs give to a bar: an element with one may have the neighbours' titles.
_NAME = re.compile(
    r"(?:doc|page|post|top|bottom|site|book)?[-_]?nav[-_]?(?:header|footer|bar|igation|panel|links|buttons)?(?:[-_]\w+)*"
    r"|node|pager|pagination|prev[-_]?next(?:[-_]\w+)*|related[-_]pages|footer[-_]?buttons",
    re.IGNORECASE,
)
_ROLE = "navigation"
_BARS = ("table", "ul", "ol", "dl", "p", "div", "center")
_AROUND_LINES = ("body", "div", "main", "article", "section")
_LINE_ENDS = frozenset(
    (*_BARS, *_AROUND_LINES, *"header footer nav aside form blockquote br hr pre h1 h2 h3 h4 h5 h6".split())
)
_MAX_WORDS = 8  # before the links to the same page in other languages
_MAX_TEXT = 500  # characters of a bar
_MIN_PLACES = 2  # without a step


@dataclass(frozen=True)
class _Neighbours:
    """The addresses of the pages before and after, and of those above, as the page's head or words of links say.

    A link with the title of such a page may stand beside an arrow that leads to it, too.
    """

    steps: frozenset[str]
    places: frozenset[str]


def find_bars(page: etree._Element) -> set[etree._Element]:
    """Return the bars of a page.

    Each has a link to the page before or after, or two to pages above. Others may be in it only if its role says that
    it is for navigation. One of links to the same page in other languages is a bar, too.
    """
    neighbours = _find_neighbours(page)
    bars = set(_wrap_lines(page, neighbours))
    for link in _LINKS(page):
        if not _leads_to(link, neighbours):
            continue
        for element in link.iterancestors(*_BARS):
            if _is_long(element):
                continue
            beside = " ".join(_TEXT_BESIDE_LINKS(element))
            if _is_bar([element], beside, neighbours, is_named=_has_name(element)):
                bars.add(element)
    for link in _TO_LANGUAGES(page):
        innermost = next(link.iterancestors(*_BARS), None)
        if innermost is not None and _is_language_bar(innermost):
            bars.add(innermost)
    return bars


def _is_language_bar(element: etree._Element) -> bool:
    """Return whether an element has links to one page in other languages, at most one in its own, and a few words."""
    links = len(list(_links_with_text([element])))
    to_languages = len(_TO_LANGUAGES_IN(element))
    words = " ".join(_TEXT_BESIDE_LINKS(element)).split()
    return links <= to_languages + 1 and sum(map(str.isalpha, words)) <= _MAX_WORDS


def _find_neighbours(page: etree._Element) -> _Neighbours:
    addresses: dict[str, set[str]] = defaultdict(set)
    for link in _ALL_LINKS(page):
        addresses[_leads_by_words(link)].add(link.get("href"))
    return _Neighbours(frozenset(addresses["step"]), frozenset(addresses["place"]))


def _relations(link: etree._Element) -> frozenset[str]:
    return frozenset(link.get("rel", "").lower().split())


def _is_bar(
    elements: Sequence[etree._Element],
    beside: str,
    neighbours: _Neighbours,
    *,
    is_named: bool,
) -> bool:
    """Return whether elements are a bar: all links lead to neighbours, and the text beside these says no more."""
    leads = [_leads_to(link, neighbours) for link in _links_with_text(elements)]
    has_others = "" in leads
    if has_others and elements[0].get("role") != _ROLE:
        return False
    has_label = _LABEL.search(beside) is not None
    is_step = "step" in leads or ("declared step" in leads and (is_named or has_label))
    is_bar = is_step or leads.count("place") >= _MIN_PLACES
    return is_bar and (is_named or _is_label(beside))


def _links_with_text(elements: Sequence[etree._Element]) -> Iterator[etree._Element]:
    """Yield the links that have words or arrows; others, such as `[?]`, lead to help."""
    for element in elements:
        for link in element.iter("a"):
            text = _shown_text(link)
            has_words = any(map(str.isalnum, text))
            if link.get("href") and (has_words or _ARROWS.fullmatch(text)):
                yield link


def _leads_to(link: etree._Element, neighbours: _Neighbours) -> str:
    """Return whether a link is a step, or leads to a place above, by its own words or its address; else nothing."""
    by_words = _leads_by_words(link)
    if by_words:
        return by_words
    address = link.get("href", "")
    if address in neighbours.steps or _BESIDE_ARROW.search(_shown_text(link)):
        return "declared step"
    return "declared place" if address in neighbours.places else ""


def _leads_by_words(link: etree._Element) -> str:
    """Return whether a link is a step, or leads to a place above, by its relation or its words; else nothing."""
    text = _shown_text(link)
    words = _EDGES.sub("", text)
    relations = _relations(link)
    if relations & _STEP_RELATIONS or _STEP.fullmatch(words) or _ARROWS.fullmatch(text):
        return "step"
    is_other_page = not link.get("href", "").startswith("#")
    if relations & _PLACE_RELATIONS or _PLACE.fullmatch(words) or (is_other_page and _INDEX.fullmatch(words)):
        return "place"
    return ""


def _shown_text(element: etree._Element) -> str:
    has_children = len(element) > 0
    if not has_children:
        return collapse_whitespace(element.text or "")
    return collapse_whitespace(" ".join(_TEXT(element)))


def _is_label(text: str) -> bool:
    """Return whether a text has no words but those for neighbours."""
    return not any(map(str.isalnum, _LABEL.sub("", text)))


def _has_name(element: etree._Element) -> bool:
    if element.get("role") == _ROLE:
        return True
    names = [element.get("class", ""), element.get("id", ""), element.get("summary", "")]
    return any(map(_NAME.fullmatch, " ".join(names).split()))


def _is_long(element: etree._Element) -> bool:
    """Return whether an element has too much text for a bar. One whose role is navigation may have a whole menu."""
    if element.get("role") == _ROLE:
        return False
    texts = map(str.strip, element.itertext())
    return any(length > _MAX_TEXT for length in accumulate(map(len, texts)))


def _wrap_lines(page: etree._Element, neighbours: _Neighbours) -> Iterator[etree._Element]:
    """Put each line that is a bar, and stands in no paragraph but beside some, into a paragraph of its own."""
    for around in list(page.iter(*_AROUND_LINES)):
        lines = list(_lines_of(around))
        has_other_blocks = sum(map(len, lines)) < len(around)
        if not has_other_blocks and around.tag != "body":
            continue  # a bar may be the whole of it, or a part of a line
        for line in lines:
            before = line[0].getprevious()
            text_before = around.text if before is None else before.tail
            beside = text_before or ""
            for element in line:
                beside += " ".join(_TEXT_BESIDE_LINKS(element)) + (element.tail or "")
            if _is_bar(line, beside, neighbours, is_named=False):
                yield _wrap_line(around, line)


def _wrap_line(around: etree._Element, line: Sequence[etree._Element]) -> etree._Element:
    before = line[0].getprevious()
    if before is None:
        around.text = ""
    else:
        before.tail = ""
    paragraph = etree.Element("p")
    line[0].addprevious(paragraph)
    paragraph.extend(line)
    return paragraph


def _lines_of(around: etree._Element) -> Iterator[list[etree._Element]]:
    """Yield the elements of each line that stands in no block."""
    for ends_line, elements in groupby(around, key=_ends_line):
        if not ends_line:
            yield list(elements)


def _ends_line(element: etree._Element) -> bool:
    return element.tag in _LINE_ENDS
