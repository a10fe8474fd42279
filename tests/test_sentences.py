from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.ingest.outline import escape_structure
from arag.ingest.sentences import split_sentences


def texts(text, **options):
    return [text[s.start : s.end] for s in split_sentences(text, **options)]


def embedded(text, **options):
    return [text[s.start : s.end] for s in split_sentences(text, **options) if s.embedded]


def assert_covers(text, sentences):
    """Ordered, stripped, not overlapping, and nothing but white space between them."""
    at = 0
    for sentence in sentences:
        assert sentence.start >= at
        assert not text[at : sentence.start].strip()
        inside = text[sentence.start : sentence.end]
        assert inside
        assert inside == inside.strip()
        at = sentence.end
    assert not text[at:].strip()


ONE_SENTENCE = {
    "titles before names": "Yesterday Dr. Smith met Mr. Jones in St. Ives.",
    "country inside": "The U.S. Navy built the ship in the U.S. in one year.",
    "initials in names": "Hyman B. Samuels wrote it with J. R. R. Tolkien on Dec. 10 in Oxford.",
    "number sign": "The house stands at No. 5 in the lane.",
    "et al. before a lower-case word": "Smith et al. said that it was so.",
    "e.g. and i.e.": "Some birds, e.g. Penguins, swim, i.e. They do not fly.",
    "a date at the end of a cell": "Date: 02.03. | Details: Gas | Paid out: 84.20",
    "a sentence at the end of a cell": "Gull Rock | It burns oil. | 31 m",
    "the end of a row of Markdown": "| Gull Rock | Does it burn? | Yes. |",
    "decimal number and domain": "It weighs 3.5 kg, and example.com has been sold.",
    "versus": "The match was Lions vs. Tigers in Rome.",
    "volume with a roman number": "It is in Vol. II of the works.",
    "abbreviation in brackets": "She sold it (cf. Smith) to him.",
    "exclamation inside a name": "The company Yahoo! was sold.",
}

SPLIT = {
    "plain": ["He came.", "She left!", "Who stayed?", "Nobody."],
    "country at the end": ["He moved to the U.S.", "She stayed in Rome."],
    "roman number at the end": ["He fought in World War I.", "The war was long."],
    "unit at the end": ["It gives 100 kW.", "The engine is loud."],
    "no. at the end of an answer": ["They said no.", "He went home."],
    "curly quotes": ["It was a hit film.", "“Get Carter” was another.", "“We sail at dawn.”", "He did not sleep."],
    "guillemets": ["«Ich bleibe.»", "«Warum?»", "Er ging."],
    "brackets": ["He came home (in May).", "(She had left.)", "It was late.", "[It was dark.]", "She had left."],
    "straight quotes": ["He made a film.", '" Get Carter" was it.', 'He said "Go."', '"Why?" she asked.'],
}


def test_entries_of_contents_are_sentences_with_their_pages():
    entries = [
        "1 Fibres . . . . . . . 2",
        "2 How the long splice is made by two men on the\nrope walk . . . . . . 3",
        "Tar ........ ix",
        "Hemp ........ 14",
    ]
    text = "\n".join(entries)
    assert texts(text) == entries
    assert texts("He said ... 4 men came. They left.") == ["He said ... 4 men came.", "They left."]


GERMAN = [
    ["Das Fest ist am 3. Oktober 2024.", "Danach kommt der Winter mit Eis und Schnee."],
    ["Nach dem Ende des 2. Weltkriegs wird der Turm gebaut.", "Er steht nicht mehr."],
    ["Im 19. Jahrhundert ist z. B. die Mühle in Betrieb.", "Sie mahlt ca. 20 t für die Stadt und nicht mehr."],
    ["Die Kosten, d. h. die Miete und das Öl, sind nach § 5 Abs. 2 Nr. 3 zu zahlen.", "Vgl. Anlage 4 für mehr."],
    ["Frau Dr. Lenz bzw. Hr. Kuhn ist mit dem Zug und nicht zu Fuß da.", "Prof. Meier bleibt."],
    ["Der Hof ist nach dem Brand von 1802.", "Oskar wird Müller und bleibt.", "Es sind 12,50.", "Niemand zahlt."],
    ["Der Kran hat Ketten, Seile usw.", "Sie sind alt und nicht mit Öl zu halten."],
]


@pytest.mark.parametrize("sentences", GERMAN)
def test_ordinals_and_abbreviations_of_german(sentences):
    assert texts(" ".join(sentences)) == sentences


def test_numbers_end_sentences_of_english():
    assert texts("He was born on the 3. October came, and mit und für were words.") == [
        "He was born on the 3.",
        "October came, and mit und für were words.",
    ]


@pytest.mark.parametrize("text", ["1.1. The lamp", "- 4.10. Oil and wicks", "6.1.5. Berths: where to lie"])
def test_the_number_of_a_section_is_no_sentence_without_its_name(text):
    assert texts(text) == [text]


@pytest.mark.parametrize("text", ONE_SENTENCE.values(), ids=ONE_SENTENCE.keys())
def test_stays_whole(text):
    assert texts(text) == [text]


@pytest.mark.parametrize("sentences", SPLIT.values(), ids=SPLIT.keys())
def test_splits(sentences):
    assert texts(" ".join(sentences)) == sentences


def test_the_mark_of_a_note_ends_its_sentence_and_the_number_of_a_reference_begins_one():
    sentences = ["The mill was sold. [2]", "Then the miller left."]
    assert texts(" ".join(sentences)) == sentences
    references = ["[1] Orra, The Mill.", "[2] Berg, The Ledger."]
    assert texts(" ".join(references)) == references
    assert texts("\n".join(["See these.", *references])) == ["See these.", *references]


@pytest.mark.parametrize(
    "sentences",
    [
        ["北京是中国的首都。", "上海是最大的城市！", "你去过吗？", "没有。"],
        ["東京は日本の首都です。", "人口は多い。", "行きましたか？"],
        ["他说：“你好。”", "她没有回答。"],
        ["他在IBM工作。", "公司在纽约。"],
        ["他来了。", "“真的？”", "《西游记》很长。", "（见图一。）", "他走了。"],
        ["「本当か？」", "「本当だ。」", "高さは四十二メートルだ。"],
        ["ファイルを隠すには、ファイル名を . で始まる名前に変更します。", "次に ! を入力します。", "終わりです。"],
        ["文件名以 . 开头的文件是隐藏的。", "按 ? 键显示帮助。"],
        ["ﾎﾝｼﾞﾂﾊｾｲﾃﾝﾅﾘ｡", "ﾅﾐﾀｶｼ｡", "ﾌﾈｶﾞﾃﾞﾙ｡"],
        ["𠀀𠀁𠀂𠀃。", "𠀄𠀅𠀆。", "𠀇𠀈。"],
        ["ㄨㄛˇㄕˋ。", "ㄊㄚㄗㄡˇㄌㄜ˙。"],
        ["高さは３．５メートルである．", "幅は二メートルである．", "船は出た．"],
        ["서울은 수도이다。", "부산은 항구이다。"],
        ["မြန်မာနိုင်ငံသည် အရှေ့တောင်အာရှ၌ တည်ရှိသည်။", "မန္တလေးလည်း ကြီးသည်။"],
        ["ភ្នំពេញជារាជធានី។", "សៀមរាបជាខេត្ត។", "វាធំ៕"],
        ["यह एक घर है।", "वह घर है।"],
        ["አዲስ አበባ ዋና ከተማ ናት።", "ጎንደር ጥንታዊ ናት።"],
        ["Հայաստանը երկիր է։", "Երևանը քաղաք է։"],
        ["یہ گھر ہے۔", "وہ بڑا ہے۔", "أين السفينة؟"],
    ],
)
def test_sentences_that_end_with_the_mark_of_their_script_need_no_space_between_them(sentences):
    assert texts("".join(sentences)) == sentences
    assert texts(" ".join(sentences)) == sentences


def test_a_space_or_the_full_stop_of_an_abbreviation_ends_no_thai_or_lao_sentence():
    thai = "กรุงเทพเป็นเมืองหลวง ใน พ.ศ. 2567 มีคนมาก"
    lao = "ວຽງຈັນເປັນນະຄອນຫຼວງ ຂອງ ສປປ ລາວ"
    assert texts(f"{thai}\n\n{lao}") == [thai, lao]


PIECES = ["mill", "mill mill", "mill,", "The", "U.S.", "No.", "5", "1999.", "end.", '"', "“", ")", "᙮", "…", "文", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_words_far_from_a_full_stop_do_not_change_where_sentences_end(pieces):
    text = " ".join(pieces)
    starts = [sentence.start for sentence in split_sentences(text)]
    for other in ("wind", "it's", "a+b)"):  # as long
        changed = split_sentences(text.replace("mill", other))
        assert [sentence.start for sentence in changed] == starts


def test_numbered_lines_of_a_listing_are_sentences_of_their_own():
    lines = [
        "Each fifth line is thick, with\n12 barrels of oil.",
        r"31 {\thinlines\grid{#1}",
        r"38 \thicklines\grid{#2}",
        "39 }",
    ]
    assert texts("\n".join(lines)) == lines


def test_list_items_and_lines_of_a_log_are_sentences_of_their_own():
    items = [
        "- one apple",
        "- two pears, cut\n  into halves",
        "1. first",
        "12) twelfth",
        "• last",
        "2024-03-01 10:00:01 WARN",
    ]
    assert texts("\n".join(items)) == items


def test_fenced_code_is_kept_line_by_line():
    lines = ["Run it.", "```python", 'x = "a. B"', "y = 2", "```", "It prints two."]
    assert texts("\n".join(lines)) == lines


def test_a_line_of_fenced_code_is_no_heading():
    code = [
        "```",
        "class Berths:",
        "",
        "Berth next_free() {",
        "  return the first berth that no ship has taken",
        "}",
        "```",
    ]
    sentences = split_sentences("\n".join(["Lamps", "=====", "", "They burn.", "", *code, "", "They burn until dawn."]))
    assert {sentence.heading for sentence in sentences} == {"", "Lamps"}


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("### The Ship, 1912 ###", "She was built in Rome."),
        ("The Ship\n", "She was built in Rome by two brothers."),
        ("第一章\n", "他生于北京。"),
    ],
)
def test_headings_are_not_embedded(heading, text):
    assert texts(f"{heading}\n{text}") == [heading.strip(), text]
    assert embedded(f"{heading}\n{text}") == [text]


def test_title_line_is_a_heading_even_with_a_full_stop():
    text = "Who Goes There?\n\nShort line\n\nIt is a story."
    assert embedded(text, title="Who Goes There?")[-1] == "It is a story."
    assert "Who Goes There?" not in embedded(text, title="Who Goes There?")
    assert "Who Goes There?" in embedded(text, title="Another")


def test_rules_and_lines_without_letters_are_not_embedded():
    assert embedded("He came.\n\n* * *\n\n=====\n\n!!!\n\nShe left.") == ["He came.", "She left."]


PIECES = [
    *"aZ9.!?,;: \n\t\"'“”‘’«»()[]{}-*#|`~。！？「」…\u00a0\u2028\r\x85\u200b\x1c",
    *'\n\n/```\n/Dr. /U.S. /The /No. 5/et al. / | /# /- /. "/。”/北京/こんにちは/한국/é\u0301/😀/İ/مرحبا؟ '.split("/"),
    *"ا۔/က။/ក៕/．/３/है।".split("/"),
]
UNICODE_TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
)


@given(UNICODE_TEXTS, st.sampled_from(["", "Dr.", "a", "北京"]))
def test_every_character_is_in_exactly_one_sentence(text, title):
    assert_covers(text, split_sentences(text, title=title))


@pytest.mark.parametrize(
    "sentences",
    [
        ["The pump is red.", "It is big."],
        ["The line is\nwrapped here.", "The next\none too."],
        ["1. Mount the pump.", "Then go.", "2. Close it."],
    ],
)
def test_a_line_break_can_end_a_sentence_and_a_list_keeps_its_numbers(sentences):
    assert texts("\n".join(sentences)) == sentences


COMMANDS = [
    "Night 31",
    "=====",
    "---",
    "# rm -r /old",
    "  ## 12 on the list",
    "```",
    "    ~~~ sh",
    "#\ttab",
    "#hash",
    "a # b",
]


@given(lines=st.lists(st.sampled_from(COMMANDS) | st.text("# `~=-\tx\n\x0c", max_size=8), max_size=6))
def test_text_that_is_not_markdown_has_no_headings_and_loses_no_word(lines):
    escaped = escape_structure("\n".join(lines))
    sentences = split_sentences(f"# Sluice\n\n{escaped}\n\n# Wheel\n\nIt turns. It stops.")
    assert sentences[-1].heading == "Wheel"
    assert {sentence.heading for sentence in sentences[1:-3]} <= {"", "Sluice"}
    assert escaped.replace("\\", "").split() == " ".join(lines).split()


@pytest.mark.parametrize("since", ["Since: 2016", "Since: 1 May 2016"])
def test_a_row_with_names_and_several_years_is_no_header_of_the_next(since):
    text = f"Grower | Land | Since\nGrower: Ida of 1999 | Land: field | {since}\nGrower: Ann | Since: May"
    assert not any(sentence.header for sentence in split_sentences(text))


def test_rows_of_a_table_with_an_empty_corner_are_not_below_the_header_of_the_table_before():
    text = "Lamp | Oil\nLamp: A | Oil: 2\n\nChart: Sales\n\n | May | June\nNorth | May: 3 | June: 4"
    assert not any(sentence.header for sentence in split_sentences(text))


@pytest.mark.parametrize(
    "row",
    [
        "sent>=:2020-02-02 | Letters of 2 February 2020",
        "not:(seen) sent>:2020-01-01 sent<:2020-12-31 | Unread letters of 2020",
        "Ann Lee (1915–1952) | miller",
        f"{'It stood by the weir until the flood came, ' * 3}in 1935 | Mill of 1920",
    ],
)
def test_years_in_the_text_or_code_of_a_row_make_no_header(row):
    text = f"Expression | Meaning\n{row}\nopen:1 | Letters with parts"
    assert not any(sentence.header for sentence in split_sentences(text))


@pytest.mark.parametrize(
    "row",
    [
        "In millions | 2022 | 2021",
        "Year ended December 31, 2022 | Year ended December 31, 2021",
        "Mill | 2019-20† | 2020/2021 (*)",
        "Item | as of 31.12.2022: | as of 31.12.2021:",
    ],
)
def test_years_in_several_names_of_columns_make_a_header(row):
    *_, last = split_sentences(f"{row}\nNet sales | 12 | 13\nCash | 5 | 6")
    assert last.header == row


@pytest.mark.parametrize(
    "line",
    [
        "Die Wasserversorgungsgenossenschaft",
        "Der Schleusenwärter",
        "The Harbour Board",
    ],
)
def test_a_line_that_the_next_one_goes_on_is_no_heading(line):
    goes_on = f"The yard is full.\n{line}\npays for twelve carts.\nThe rest is due in June."
    assert {sentence.heading for sentence in split_sentences(goes_on)} == {""}
    ends = goes_on.replace("pays", "Pays")
    assert split_sentences(ends)[-1].heading == line


@pytest.mark.parametrize(
    ("line", "is_heading"), [("Note", False), ("ヒント", False), ("Notes", True), ("桥很长、", False)]
)
def test_the_label_of_a_note_and_a_line_that_goes_on_are_no_headings(line, is_heading):
    text = f"Lamp oil\n\nOil costs four marks.\n\n    {line}\n\n    Mind the step at the door.\n"
    assert split_sentences(text)[-1].heading == (line if is_heading else "Lamp oil")


def test_dates_and_names_of_a_letter_are_no_headings():
    letter = (
        "Orsolya Pendrick\nMill Lane House\nMarrow\nTilda Morrowe, Mill Lane House, Marrow, Orrin\n12. August 1911\n"
        "Dear Tilda,\nthe yard holds twelve carts of the mill and of its tenants.\n3 May 2011\n"
        "They pay for them in the first week of each month.\nYours\nOrsolya Pendrick\n"
        "PS: The rest is due in June, as it was in the years before.\nTilda Morrowe"
    )
    assert {sentence.heading for sentence in split_sentences(letter)} == {""}


@pytest.mark.parametrize(
    "below",
    ["Oil rose. So did tar.", "Oil rose in this year from 12 to 14\nbarrels. So did tar.", "Oil | 12 | 14", "- Oil"],
)
def test_a_heading_inside_a_paragraph_has_text_below_it(below):
    *_, last = split_sentences(f"It was late.\nResults of the Mill\n{below}")
    assert last.heading == "Results of the Mill"


@pytest.mark.parametrize(
    ("title", "heading", "path"),
    [("Users of Mills", "Users Of Mills", ""), ("The mill", "The mill∗:", ""), ("C++", "C", "C")],
)
def test_a_heading_that_differs_from_the_title_in_case_and_signs_repeats_it(title, heading, path):
    *_, last = split_sentences(f"# {heading}\n\nIt turns.", title=title)
    assert last.heading == path


def test_an_author_between_a_title_and_the_text_is_no_heading():
    institute = "The Mill Group\nInstitute of Mills, Marrow."
    text = f"A Tutorial\n{institute}\nIt is kept there.\nResults of the Mill\nOil rose. So did tar."
    _, kept, _, rose = split_sentences(text)
    assert (kept.heading, rose.heading) == ("A Tutorial", "Results of the Mill")


def test_a_line_of_names_that_goes_on_is_no_heading():
    text = "The guide is in many languages,\nFrench, German, Italian, and\nSpanish. The miller reads none of them."
    assert {sentence.heading for sentence in split_sentences(text)} == {""}


@pytest.mark.parametrize("cell", ["MwSt. 19 %", "Tel. 0431 77120", "Best.-Nr. 40", "Incl. VAT", "Qté. Livrée"])
def test_an_abbreviation_in_a_short_cell_ends_no_sentence(cell):
    text = f"Item | Sum\nItem: {cell} | Sum: 71.65 €\nItem: Oil | Sum: 5 €"
    rows = [text[sentence.start : sentence.end] for sentence in split_sentences(text)]
    assert rows == text.split("\n")


def test_sentences_of_a_long_cell_are_sentences():
    first = "The lamp burns all night, from dusk to dawn, in each season of the year, and in fog it burns by day."
    text = f"Lamp | Use\nLamp: No. 4 | Use: {first} Its keeper fills it."
    sentences = split_sentences(text)
    assert text[sentences[-1].start :] == "Its keeper fills it."
