"""Lines that match a pattern: complete, counted, in order, and the same however few texts are read for them."""

from __future__ import annotations

import json
import re
import resource
import sqlite3
import time
import unicodedata
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from arag.errors import ARAGError, IndexFormatError, InputError
from arag.ingest.pipeline import ingest
from arag.retrieval.corpus import counted_lines
from arag.retrieval.corpus.grep import find_matching_lines
from arag.retrieval.corpus.lines import LineBlock, list_lines
from arag.retrieval.corpus.literals import AMBIGUOUS, RARE_FORMS
from arag.retrieval.corpus.patterns import compile_pattern
from arag.retrieval.index import open_index
from arag.retrieval.storage.records import ChunkText
from arag.retrieval.tools.sets import make_tools
from arag.text.normalise import collapse_whitespace
from fakes import HashEmbeddings, write_corpus
from selection import EVERYWHERE

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "corpus"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with ingest(EXAMPLES, tmp_path_factory.mktemp("grep") / "index", embedder=HashEmbeddings()) as index:
        yield index


def listed(results):
    return [(line.chunk_id, line.position, line.text) for line in results.lines]


def expected(index, matches):
    """Read every sentence of an index, and return those that a function of the text accepts, and no titles."""
    found = []
    for document in index.documents():
        chunks = [chunk for chunk in map(index.get, index.chunk_ids()) if chunk.document_id == document.id]
        for chunk in sorted(chunks, key=lambda chunk: chunk.ordinal):
            for position in range(len(chunk.sentences)):
                text = collapse_whitespace(chunk.sentence_text(position))
                is_title = chunk.ordinal == 0 and position == 0 and text.strip("# ") == chunk.title.strip("# ")
                if not is_title and matches(text):
                    found.append((chunk.id, position, text))
    return found


# --- what is found ---


@pytest.mark.parametrize(
    "pattern",
    [
        "gale",
        "(?:17|18)[0-9]{2}",
        r"^#+ \w+",
        r"\bthe\b.*\bthe\b",
        r"harbou?rs?$",
        "Odv.r",
        "a|e",
        "zz+",
        r"\d+ and \d+",
    ],
)
@pytest.mark.parametrize("ignore_case", [True, False])
def test_all_lines_are_found_in_order_and_counted(index, pattern, ignore_case):
    results = index.grep(pattern, ignore_case=ignore_case)
    compare = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    lines = expected(index, compare.search)
    assert listed(results) == lines
    assert results.total == len(lines)
    assert results.chunks == len({chunk_id for chunk_id, *_ in lines})
    assert results.documents == len({line.document_id for line in results.lines})
    titles = {each.id: each.title for each in index.documents() if compare.search(each.title)}
    assert results.titles == titles


def test_matches_and_groups_are_given(index):
    results = index.grep(r"between (\d{4}) and (\d{4})")
    (line,) = results.lines
    assert line.matches == ["Between 1791 and 1803"]
    assert line.groups == (("1791", "1803"),)
    assert line.chunk_id == "people/orlath-tamsin.md:0"
    assert line.chunk.sentence_text(line.position).startswith("Between 1791")


@pytest.mark.parametrize("limit", [1, 3, 7, 1_000])
def test_pages_together_are_the_whole(index, limit):
    whole = index.grep("the")
    pages = []
    while page := index.grep("the", start=len(pages), limit=limit).lines:
        assert len(page) <= limit
        pages += page
        if len(pages) > 60:
            break
    assert pages == list(whole.lines)[: len(pages)]
    assert len(pages) >= 60
    assert index.grep("the", start=10**9).lines == index.grep("the", limit=0).lines == ()


def test_a_title_is_found_and_is_no_line(make_index):
    index = make_index(
        [
            {"id": "a", "title": "The Vellin Light", "text": "It was lit early."},
            {"id": "b", "title": "The Vellin Fair", "text": "The Vellin Fair\n\nIt was held late in Vellin."},
        ]
    )
    results = index.grep("^the vellin")
    assert results.total == results.chunks == results.documents == 0
    assert results.titles == {"a": "The Vellin Light", "b": "The Vellin Fair"}
    assert [line.text for line in index.grep("vellin").lines] == ["It was held late in Vellin."]


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_rows_and_wrapped_lines_match_as_one_line(make_index):
    index = make_index(
        {
            "a.csv": "Region,Sacks\nNorthfold,10\nSouthfold,12\n",
            "b.md": "# Yard\n\nThe old\nyard  burnt\tdown. It was\u00a0rebuilt.\n\n"
            "| Grain | 1880 |\n| --- | --- |\n| Rye | 120 |\n",
        }
    )
    assert [line.text for line in index.grep(r"^Region: \w+ \| Sacks: \d+$").lines] == [
        "Region: Northfold | Sacks: 10",
        "Region: Southfold | Sacks: 12",
    ]
    assert [line.text for line in index.grep("old yard burnt down|was rebuilt").lines] == [
        "The old yard burnt down.",
        "It was rebuilt.",
    ]
    assert index.grep(r"down\. It").total == 0  # two sentences are two lines
    assert index.grep("rye . 120").total == 1


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_words_and_cases_of_all_scripts_are_found(make_index):
    text = "Odvár Félisk sailed.\n\nſailing was hard. Der Kelvin-Weg. İstanbul lies east.\n\n"
    text += "Остров.\n\nЭто острᲂв. ΟΔΥΣΣΕΥΣ. 灯塔在北。"
    index = make_index([{"id": "a", "text": text}])
    for pattern, number in {
        r"Odv\w+ F\w+k": 1,
        r"[\w-]+-weg": 1,
        r"odv[^\w]r": 0,
        "sail": 2,
        "kelvin": 1,
        "İstanbul": 1,
        r"\Wstanbul": 0,
        "остров": 2,
        "оdd|остро": 2,
        r"\bостров\b": 2,
        "οδυσσευς": 1,
        "灯塔": 1,
        "灯.在": 1,
    }.items():
        assert index.grep(pattern).total == number, pattern


def test_options_of_a_pattern():
    line = "The cat, the concatenation: a.b or axb? Ünder cats"
    for pattern, options, found in [
        ("cat", {}, ["cat", "cat", "cat"]),
        ("cat", {"whole_words": True}, ["cat"]),
        ("nder", {"whole_words": True}, []),
        ("a.b", {"fixed": True}, ["a.b"]),
        ("a.b", {}, ["a.b", "axb"]),
        ("the", {"case": "match"}, ["the"]),
        ("the", {"case": "smart"}, ["The", "the"]),
        ("The", {"case": "smart"}, ["The"]),
        (r"\Wthe", {"case": "smart"}, [" the"]),
        ("(?-i:The)", {}, ["The"]),
        ("the", {"whole_lines": True}, []),
        ("the.*|b", {"whole_lines": True}, [line]),
        ("x*", {"whole_lines": True, "fixed": True}, []),
    ]:
        compiled = compile_pattern(pattern, **options)
        matches = [line[match.start : match.end] for match in compiled.find(line)]
        assert matches == found, (pattern, options)
        assert compiled.matches(line) == bool(found)
        assert compiled.may_match(line.lower().encode()) or not found


@pytest.mark.parametrize("whole_text", ["It was lit early.", "It was lit early. It burnt all night."])
def test_an_index_without_titles_has_none_that_match(make_index, whole_text):
    results = make_index([{"id": "a", "text": whole_text}]).grep("x*")
    assert results.total == whole_text.count(".")
    assert results.titles == {}


def test_a_phrase_is_found_in_lines_that_follow_one_another_and_in_others(make_index):
    lines = ["The reef", "the marsh", "A light", "Of the yard", "Lit", "Lit", "The yard"]
    index = make_index([{"id": "a", "text": "\n\n".join(lines)}, {"id": "b", "text": "The yard.\n\nLit."}])
    assert [line.text for line in index.grep("the").lines] == [
        *["The reef", "the marsh", "Of the yard", "The yard"],
        "The yard.",
    ]
    assert index.grep("the", ignore_case=False).total == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[0,", "[[x,", "the places of its sentences cannot be read"),
        ("[[0,", "[[0.5,", "the places of its sentences cannot be read"),
        ("sentences", "sentence", "the places of its sentences cannot be read"),
        ("[[0,", "[[-1,", "sentences overlap, or lie outside of its text"),
        (",20,", ",9999,", "sentences overlap, or lie outside of its text"),
    ],
)
def test_damaged_places_of_sentences_are_named(make_index, old, new, message):
    index = make_index([{"id": "a", "text": "Rye grew. Oats grew.\n\nBarley."}])
    with closing(sqlite3.connect(Path(index.path) / "index.sqlite3")) as connection, connection:
        connection.execute("UPDATE contents SET places = replace(places, ?, ?)", (old, new))
    with open_index(index.path, embedder=HashEmbeddings()) as damaged, pytest.raises(IndexFormatError, match=message):
        damaged.grep("rye|oats")


# --- fewer texts are read, and nothing is missed ---

PIECES = [
    *"a e s S k ſ K İ i ı ß ẞ ss Σ ς σ é É о т 海 | - . 1 9 _".split(),
    *["gull", "Gulls", "the reef", "ſand", "sand", "marsh", "остров", "灯塔"],
    *[" ", "  ", "\n", "\u00a0", "\t", "\n\n"],
]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
ATOMS = [
    *"a s k i é . 海 σ ς ß İ 1".split(),
    *["gull", "Reef", "sand", "ſand", "the ", " reef", "ss", "остров", "灯塔"],
    *[r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"\b", r"\B", "^", "$", r"\A", r"\z", r"\pL", r"\PL", r"\p{Greek}"],
    *["[a-k]", "[^a-k]", "[^i]", "[sS]", "[İ]", "[[:alpha:]]", "[^[:space:]]", r"[\w ]", "[]a]", r"\x{130}", r"\x69"],
    *[r"\Qa.b\E", r"\|", r"\.", r"\-", "(?i)", "(?-i)", "(?s)"],
]
REPEATS = ["", "", "", "", "*", "+", "?", "{0}", "{2}", "{1,2}", "{,2}", "*?", "+?"]
atoms = st.builds(str.__add__, st.sampled_from(ATOMS), st.sampled_from(REPEATS))


def brackets(inner):
    joined = st.lists(inner, min_size=1, max_size=4).map("".join)
    choices = st.lists(joined, min_size=1, max_size=3).map("|".join)
    opened = st.sampled_from(["(", "(?:", "(?i:", "(?-i:", "(?P<n>"])
    return st.builds("{}{}){}".format, opened, choices, st.sampled_from(REPEATS)) | choices


patterns = st.recursive(atoms, brackets, max_leaves=8)


def try_to_compile(pattern, **options):
    try:
        return compile_pattern(pattern, **options)
    except InputError:
        return None


@given(st.lists(texts, min_size=1, max_size=8), patterns, st.booleans())
def test_what_is_said_of_the_searchable_text_lets_every_match_through(lines, pattern, ignore_case):
    compiled = try_to_compile(pattern, case="ignore" if ignore_case else "match")
    if compiled is None:
        return
    around = collapse_whitespace("x".join(lines))
    for given_line in lines:
        line = collapse_whitespace(given_line)
        if not line or not compiled.matches(line):
            continue
        text = f"{around} {line} {around}"
        searched = text.replace("İ", "I").lower()
        assert compiled.may_match(searched.encode())
        alternatives = compiled.literals or [()]
        has_literals = any(all(literal in searched for literal in literals) for literals in alternatives)
        assert has_literals or any(letter in searched for letter in compiled.rare_letters)


@given(st.lists(texts, min_size=1, max_size=8), patterns, st.booleans(), st.booleans())
def test_lines_of_a_block_match_as_lines_alone(lines, pattern, ignore_case, whole_words):
    options = {"case": "ignore" if ignore_case else "match", "whole_words": whole_words}
    compiled = try_to_compile(pattern, **options)
    if compiled is None:
        return
    collapsed = [line for line in map(collapse_whitespace, lines) if line]
    block = "".join(f"{line}\n" for line in collapsed).encode()
    found = [collapsed[number] for number in compiled.find_lines(block)] if block else []
    assert found == [line for line in collapsed if compiled.matches(line)]
    assert all(compiled.find(line) for line in found)


SPACED = st.text("aZé海ſ😀. \t\n\x1f\x85\xa0\u2003\u2028\u3000", max_size=6)


@given(st.lists(st.lists(st.tuples(SPACED, SPACED), max_size=4), min_size=1, max_size=4))
def test_a_block_has_the_lines_of_its_chunks(pieces_by_chunk):
    chunks = []
    lines = []
    for pieces in pieces_by_chunk:
        text = ""
        starts, ends = [], []
        for gap, sentence in pieces:
            text += gap
            starts.append(len(text))
            text += sentence
            ends.append(len(text))
            lines.append(collapse_whitespace(sentence))
        chunks.append(ChunkText(1, "a:0", "a", 0, "", text, np.array(starts, np.int64), np.array(ends, np.int64)))
    block = LineBlock.of(chunks)
    assert block.text.decode() == "".join(f"{line}\n" for line in lines)
    assert block.first_lines[-1] == len(lines)


@pytest.fixture(scope="module", params=EVERYWHERE)
def odd_index(request, tmp_path_factory, places):
    """Documents of pieces in all orders, with titles in their texts and beside them, in chunks of several documents."""
    folder = tmp_path_factory.mktemp("odd")
    records = []
    for number in range(60):
        pieces = [PIECES[(number * 7 + step * (number % 5 + 1)) % len(PIECES)] for step in range(40)]
        title = "" if number % 3 == 0 else f"The {pieces[0]} reef {number}"
        text = "".join(pieces) + ". " + ". ".join(pieces[::3])
        records.append({"id": f"d{number}", "title": title, "text": f"{title}\n\n{text}" if number % 2 else text})
    corpus = write_corpus(folder / "corpus", records)
    place = places(request.param, folder / "index")
    with (
        ingest(corpus, place, embedder=HashEmbeddings(), chunk_tokens=60) as index,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(counted_lines, "_FEW", -1)  # counts by the word index in this small index, too
        chunks = [index.get(chunk_id) for chunk_id in index.chunk_ids()]
        chunks.sort(key=lambda chunk: (chunk.document_id, chunk.ordinal))
        yield index, chunks


@given(patterns, st.booleans())
@example("aa(?i)*", False)
def test_few_texts_are_read_and_all_matches_are_found(odd_index, pattern, ignore_case):
    index, chunks = odd_index
    compiled = try_to_compile(pattern, case="ignore" if ignore_case else "match")
    if compiled is None:
        return
    results = index.grep(pattern, ignore_case=ignore_case, limit=10**6)
    found = []
    for chunk in chunks:
        lines = [line for line in list_lines(chunk) if not line.names_document and compiled.matches(line.text)]
        found += [(chunk.id, line.position, line.text) for line in lines]
    assert listed(results) == found
    assert results.total == len(found)
    titles = {chunk.document_id: collapse_whitespace(chunk.title) for chunk in chunks if chunk.title}
    assert results.titles == {i: title for i, title in titles.items() if compiled.matches(title)}


def test_letters_that_fold_apart_are_known():
    """RE2 matches each of these with another letter, though Python's lower case of both differs."""
    options = re2.Options()
    options.case_sensitive = False
    by_fold = defaultdict(set)
    for number in range(0x110000):
        character = chr(number)
        if unicodedata.category(character) not in {"Cs", "Cn", "Co"}:
            by_fold[character.casefold()].add(character)
    apart = defaultdict(set)
    for characters in by_fold.values():
        for one in characters:
            for other in characters:
                if one.lower() != other.lower() and re2.compile(re2.escape(one), options).fullmatch(other):
                    apart[one.lower()].add(other.lower())
    re2.purge()
    for letter, others in apart.items():
        assert letter in AMBIGUOUS or others <= set(RARE_FORMS[letter]), (letter, others)


# --- a limited index ---


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
@pytest.mark.parametrize("pattern", ["gale", r"\d{4}", "^#", "e", "Vellin", "zz"])
def test_a_limited_index_greps_as_an_index_of_its_documents(make_index, pattern):
    everything = {path.relative_to(EXAMPLES).as_posix(): path.read_text() for path in EXAMPLES.rglob("*.md")}
    places_only = {name: text for name, text in everything.items() if name.startswith("places/")}
    index, other = make_index(everything), make_index(places_only)
    limited = index.limited_to(list(places_only))
    assert limited.grep(pattern) == other.grep(pattern)
    assert index.grep(pattern, within="places/") == other.grep(pattern)
    assert limited.grep(pattern, within="vellin") == other.grep(pattern, within="vellin")
    with pytest.raises(InputError, match="no document has 'tamsin' in its title, its id or its file's name"):
        limited.grep(pattern, within="tamsin")


# --- hostile patterns ---

HOSTILE = [
    *["(a{1000}){1000}", "a{1000}{1000}", "((((a{100}){100}){100}){100})", "(?:a?){1000}a{1000}", "a{2000}"],
    *["a{0,1000}", "(a+)+$", "(a*)*b", "(a|aa)+$", "(a|a?)+$", "(.*)*x", "(.*a){20}", "(.*)(.*)(.*)(.*)(.*)x"],
    *["(x+x+)+y", "(?:.?){500}", ".{1000}", r"[\s\S]{900}", r"\w{1000}", r"(?:\pL{1,500})", r"\pN{1,1000}"],
    *[r"(\p{L}+\s?){200}", "[" + "a-z" * 300 + "]{100}", "(" * 900 + "a" + ")" * 900, "(" * 1_500, "[" * 1_000],
    *["(?:" * 400 + "a" + ")" * 400, "|".join(f"w{n}" for n in range(330)), "|" * 1_500, "a|" * 900, ".*|" * 600],
    *["", "^", "$", "^$", "()", "(|)", "x*", "(?:)", r"\b", r"\B", r"\A\z", "|", ".?", "(?i)", "(?s)(?m)(?U)"],
    *["\0", r"\x00", "a\0b", "\ud800", "a\udfffb", "\udcff", "\uffff", "\U0010ffff", r"\x{10FFFF}", r"\x{110000}"],
    *[r"\xff", r"\C", r"\C*", r"[\C]", r"\Q", r"\Q\E", r"\E", r"\Qa", "\\", r"\8", r"\1", r"(a)\1", r"\Z", r"\G"],
    *[r"\K", r"\R", r"\X", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#c)", "(?x)a", "(?P=n)", "(?R)", "a++"],
    *["a**", "*", "+", "?", "{1}", "(?P<n>a)(?P<n>b)", "(?P<>a)", "(?P<n", "(?<n>a)", "(?<n", "(?", "(?i", "(?i:"],
    *[")", "]", "}", "{", "a{,3}", "a{3,1}", "[z-a]", "[]", "[^]", "[a", "[[:alpha:]]", "[[:nope:]]", "[[.a.]]"],
    *["[[:alpha:", r"[\d-z]", r"[^\x00-\x{10FFFF}]", r"\p{Greek}", r"\p{Nope}", r"\pX", r"\p", r"\P{^Greek}"],
    *[r"\p{^L}", "(?i)\\p{Lu}", "(?i)[^\\p{Lu}]", r"\u0041", r"\N{DASH}", "İ" * 600, "ſ" * 600, "ß{500}", "[^İ]{300}"],
    *[
        "灯" * 500,
        "\u202e",
        "\n",
        "\r\n",
        "a\nb",
        r"a\nb",
        r"[\n]",
        "\u2028",
        "%",
        "_",
        "\\%",
        "$1",
        "${jndi:x}",
        "[a:0]",
    ],
    *["'; DROP TABLE chunks; --", '["a"]', "--", "-e", "../..", "NUL", "a" * 2_000],
]


@pytest.mark.parametrize("backend", EVERYWHERE, indirect=True)
def test_hostile_patterns_are_answered_or_refused_soon_and_in_little_memory(make_index):
    assert len(HOSTILE) > 100
    lines = ["a" * 4_000, "aaa " * 800, "x" * 3_000 + "y", "灯塔在北。" * 300, "The \0 reef\ufffd."]
    index = make_index(
        [{"id": f"d{n}", "title": line[:20], "text": f"{line}\n\nReef {n}."} for n, line in enumerate(lines * 3)]
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for pattern in HOSTILE:
        began = time.monotonic()
        try:
            results = index.grep(pattern)
            assert results.total >= len(results.lines)
        except InputError as error:
            message = str(error)
            message.encode()
            assert 10 < len(message) < 400
            assert "\n" not in message
        assert time.monotonic() - began < 20, pattern
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_a_pattern_that_takes_too_long_is_refused(index, monkeypatch):
    monkeypatch.setattr("arag.retrieval.corpus.grep._MAX_SECONDS", 0.0)
    with pytest.raises(InputError, match="takes longer than 0 seconds here: add a word"):
        index.grep("e")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "("}, "the pattern '(' is not valid: missing )"),
        ({"pattern": "(?=a)"}, "there is no look-around"),
        ({"pattern": r"(a)\1"}, "there are no back-references"),
        ({"pattern": "a{2000}"}, "the most is 1000"),
        ({"pattern": r"\pL{1000}\pL{1000}"}, "it is too large"),
        ({"pattern": "a" * 2_001}, "the pattern has 2,001 characters: give at most 2,000"),
        ({"pattern": ""}, "the pattern is empty: give a regular expression"),
        ({"pattern": "\ud800"}, "half a surrogate pair"),
        ({"pattern": r"\C"}, "a single byte"),
        ({"pattern": "a", "start": -1}, "start is -1: it must be at least 0"),
        ({"pattern": "a", "limit": -1}, "limit is -1: it must be at least 0"),
        ({"pattern": "a", "within": "nowhere"}, "no document has 'nowhere' in its title"),
    ],
)
def test_wrong_arguments_are_named(index, arguments, message):
    with pytest.raises(ARAGError) as caught:
        index.grep(**arguments)
    assert message in str(caught.value)


def test_lines_with_their_chunks_come_in_order(index):
    pattern = compile_pattern("gale")
    lines = index.with_view(lambda view: list(find_matching_lines(view, [pattern])))
    assert [(each.chunk.id, line.position) for each in lines for line in each.lines] == [
        (line.chunk_id, line.position) for line in index.grep("gale").lines
    ]


def test_word_boundaries_count_except_beside_letters_that_re2_does_not_know(make_index):
    index = make_index({"a.md": "The bac is out.\n\nThornback rays swim.\n\nLe câble a rompu."})
    assert [line.text for line in index.grep(r"\bbac\b|câble").lines] == ["The bac is out.", "Le câble a rompu."]
    assert index.grep(r"\bé|â\b").total == 1


def test_lines_and_hits_of_a_file_with_pages_name_their_pages(arag, tmp_path):
    (tmp_path / "docs").mkdir()
    canvas = Canvas(str(tmp_path / "docs" / "mills.pdf"))
    for number in (1, 2):
        canvas.drawString(72, 700, f"The mill of page {number} stands at the river.")
        canvas.showPage()
    canvas.save()
    with ingest(tmp_path / "docs", tmp_path / "index", embedder=HashEmbeddings()) as index:
        for tool in make_tools(index, names=["grep", "keyword_search", "semantic_search"]):
            arguments = {"grep": {"pattern": "mill"}, "keyword_search": {"keywords": ["mill"]}}
            assert "[mills.pdf:0] (" in tool.invoke(arguments.get(tool.name, {"queries": ["mill"]}))
            assert "pages 1-2) " in tool.invoke(arguments.get(tool.name, {"queries": ["mill"]}))
    for command in (["search", "keyword", "mill"], ["grep", "mill"]):
        found = json.loads(arag(*command, "--index", tmp_path / "index", "--json")[1])
        assert (found.get("hits") or found["lines"])[0]["pages"] == [1, 2]
