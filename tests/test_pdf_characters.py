"""Characters of PDFs: ligatures, accents, raised figures, hyphens, letters that are printed twice."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import reportlab
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, FloatObject, NameObject, NumberObject

from arag.ingest.formats.pdf.glyphs import Box
from arag.ingest.formats.pdf.raised import set_raised_apart
from pdf_pages import Pages, change, font_with_characters, in_glyphs, stream


def with_unnamed_glyphs(glyphs, content, base="Helvetica"):
    """Return a PDF with a font F9 of glyphs that its table of characters maps to nothing.

    Args:
        glyphs: The names of the glyphs, from code 33 on.
        content: The program of the page; F1 is a usual font.
        base: The font of both.
    """

    def work(writer):
        page = writer.pages[0]
        usual = {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject(f"/{base}"),
            NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
        }
        unnamed = font_with_characters(writer, [(33 + number, "0000") for number in range(len(glyphs))], base)
        names = ArrayObject([NumberObject(33), *(NameObject(f"/{glyph}") for glyph in glyphs)])
        unnamed[NameObject("/Encoding")] = DictionaryObject({NameObject("/Differences"): names})
        fonts = {NameObject("/F1"): DictionaryObject(usual), NameObject("/F9"): unnamed}
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): DictionaryObject(fonts)})
        page[NameObject("/Contents")] = stream(writer, content)

    pages = Pages()
    pages.text(72, 700, "x")
    return change(pages.finish(), work)


def written(*parts):
    """Return the program of a page with a line: texts in F1, and codes of glyphs in F9 as numbers."""
    shown = [f"/F1 12 Tf ({part}) Tj" if isinstance(part, str) else f"/F9 12 Tf <{part:02x}> Tj" for part in parts]
    return f"BT 72 700 Td {' '.join(shown)} ET"


@pytest.mark.parametrize(
    ("glyphs", "parts", "text"),
    [
        (["fi"], ("The miller's of", 33, "ce is con", 33, "dential."), "The miller's office is confidential."),
        (["fi", "fl"], ("A ", 33, "eld by the ", 34, "ooded mill."), "A field by the flooded mill."),
        (["fl"], (33, "our and con", 33, "ict"), "flour and conflict"),
        (["fi", "fl"], (33, "sh in the ", 34, "at race, modi", 33, "ed"), "fish in the flat race, modified"),
    ],
)
@pytest.mark.parametrize("base", ["Helvetica", "Times-Roman"])
def test_ligatures_that_the_file_does_not_name(read, glyphs, parts, text, base):
    content = read("a.pdf", with_unnamed_glyphs(glyphs, written(*parts), base))
    assert (content.text, content.left_out) == (text, ())


def test_a_glyph_that_cannot_be_known_is_reported(read):
    content = read("a.pdf", with_unnamed_glyphs(["bullet"], written(33, " The mill is closed.")))
    assert "The mill is closed." in content.text
    assert content.left_out == ("some characters of page 1: the font does not say which letters they are",)


@pytest.mark.parametrize(
    ("names", "parts", "text"),
    [
        ({27: "f_i", 29: "f_f"}, ("The ", 27, "rst di", 29, "erence"), "The first difference"),
        ({28: "f_t", 31: "f_f_l"}, ("so", 28, "ware and a shu", 31, "e"), "software and a shuffle"),
        ({85: "f_f"}, ("UK, O", 85, "enbarung"), "UK, Offenbarung"),
    ],
)
def test_joined_letters_by_the_names_that_the_font_gives_them(read, names, parts, text):
    def work(writer):
        page = writer.pages[0]
        usual = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = {
            NameObject("/F1"): writer._add_object(usual),
            NameObject("/F9"): writer._add_object(embedded_font(writer, names)),
        }
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): DictionaryObject(fonts)})
        page[NameObject("/Contents")] = stream(writer, written(*parts))

    pages = Pages()
    pages.text(72, 700, "x")
    content = read("a.pdf", change(pages.finish(), work))
    assert (content.text, content.left_out) == (text, ())


def with_signs(font, parts, characters=()):
    """Return a PDF with a line: texts in a usual font, and numbers as codes of a font that is not in the file.

    The file may say which characters the codes stand for: see `font_with_characters`.
    """

    def work(writer):
        page = writer.pages[0]
        fonts = DictionaryObject()
        for name, base in [("/F1", "Helvetica"), ("/F9", font)]:
            values = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": f"/{base}"}
            entries = {NameObject(key): NameObject(value) for key, value in values.items()}
            fonts[NameObject(name)] = writer._add_object(DictionaryObject(entries))
        if characters:
            fonts[NameObject("/F9")] = font_with_characters(writer, characters, font)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = stream(writer, written(*parts))

    pages = Pages()
    pages.text(72, 700, "x")
    return change(pages.finish(), work)


@pytest.mark.parametrize("font", ["CMSY10", "ABCDEF+CMBSY7", "XYZABC+LMMathSymbols10-Regular"])
def test_the_brackets_of_fonts_of_tex_are_no_letters(read, font):
    data = with_signs(font, ("He is in {", 104, "file", 105, "} his bed"))
    assert read("a.pdf", data).text == "He is in {⟨file⟩} his bed"


@pytest.mark.parametrize(
    ("font", "character", "parts", "text"),
    [
        ("CMSY10", "000d", ("The mill ", 33, "c 2023"), "The mill © 2023"),
        ("CMSY10", "000d", ("The mill ", 33, "R grinds"), "The mill ® grinds"),
        ("LCIRCLE10", "261b", (33, " The mill"), "The mill"),
        ("ZapfDingbats", "261b", (33, " The mill"), "☛ The mill"),
    ],
)
def test_signs_of_fonts_of_tex(read, font, character, parts, text):
    assert read("a.pdf", with_signs(font, parts, [(33, character)])).text == text


def in_pictures(height, *parts, characters=()):
    """Return a PDF with a line: texts in a usual font, and numbers as codes of glyphs that are pictures of a height.

    The file may say which characters the codes stand for: see `font_with_characters`.
    """

    def work(writer):
        page = writer.pages[0]
        codes = sorted({part for part in parts if isinstance(part, int)})
        glyph = stream(writer, f"250 0 d0 0 0 200 {height} re f")
        names = ArrayObject()
        for code in codes:
            names += [NumberObject(code), NameObject(f"/a{code}")]
        font = {
            "/Type": NameObject("/Font"),
            "/Subtype": NameObject("/Type3"),
            "/FontBBox": ArrayObject(map(NumberObject, (0, 0, 250, height))),
            "/FontMatrix": ArrayObject(map(FloatObject, (0.001, 0, 0, 0.001, 0, 0))),
            "/CharProcs": DictionaryObject({NameObject(f"/a{code}"): glyph for code in codes}),
            "/Encoding": DictionaryObject({NameObject("/Differences"): names}),
            "/FirstChar": NumberObject(codes[0]),
            "/LastChar": NumberObject(codes[-1]),
            "/Widths": ArrayObject([NumberObject(250)] * (codes[-1] - codes[0] + 1)),
        }
        if characters:
            font["/ToUnicode"] = font_with_characters(writer, characters).raw_get("/ToUnicode")
        entries = DictionaryObject({NameObject(key): value for key, value in font.items()})
        page["/Resources"]["/Font"][NameObject("/F9")] = writer._add_object(entries)
        page[NameObject("/Contents")] = stream(writer, written(*parts))

    pages = Pages()
    pages.text(72, 700, "x")
    return change(pages.finish(), work)


def test_signs_in_fonts_that_are_pictures_of_letters(read):
    data = in_pictures(500, 136, " un ", 19, " moulin ", 20, " ancien, ", 18, "alt")
    assert read("a.pdf", data).text == "• un « moulin » ancien, „alt"
    assert read("b.pdf", in_pictures(500, 16, "rye,", 17, " 7", 21, "9")).text == "“rye,” 7–9"


DINGBATS = dict(zip("aehlnrTZ5", "❛❡❤❧♥rU✺✕", strict=True)) | {"o": "♦", "i": "✐", "m": "♠", "\x1b": "✛", "\x10": "✏"}


@pytest.mark.parametrize(("line", "is_shown"), [("oilmaniealheaaloilamineonnehelaonli", False), ("oil", True)])
def test_letters_that_ghostscript_takes_for_dingbats(read, line, is_shown):
    characters = [(ord(letter), f"{ord(DINGBATS[letter]):04x}") for letter in sorted(set(line))]
    text = read("a.pdf", in_pictures(500, *map(ord, line), characters=characters)).text
    assert text == (line if not is_shown else "".join(map(DINGBATS.get, line)))


def test_codes_without_a_letter_are_left_out_and_named(read):
    content = read("a.pdf", in_pictures(500, "The mill ", 5, " is closed", 6, "."))
    assert content.text == "The mill is closed."
    assert content.left_out == ("some characters of page 1: the font does not say which letters they are",)


def test_a_closing_quotation_mark_that_is_low_before_a_word_opens(read):
    pages = Pages()
    end = pages.text(72, 700, "Das Wort ")
    end = pages.text(end, 693, "”")
    pages.text(end, 700, "german“ fehlt.")
    assert read("a.pdf", pages.finish()).text == "Das Wort „german“ fehlt."


def test_a_code_that_no_font_has_names_no_letters(read):
    def work(writer):
        font = embedded_font(writer, {33: "f_i"})
        font["/Encoding"]["/Differences"][0] = NumberObject(99_999_999)
        fonts = DictionaryObject({NameObject("/F9"): writer._add_object(font)})
        writer.pages[0]["/Resources"]["/Font"].update(fonts)

    pages = Pages()
    pages.text(72, 700, "The mill is closed.")
    assert read("a.pdf", change(pages.finish(), work)).text == "The mill is closed."


def embedded_font(writer, names):
    """Return a font that is in the file, with the names of its glyphs by their codes."""
    program = DecodedStreamObject()
    program.set_data((Path(reportlab.__file__).parent / "fonts" / "DarkGardenMK.pfb").read_bytes())
    descriptor = {
        NameObject("/Type"): NameObject("/FontDescriptor"),
        NameObject("/FontName"): NameObject("/DarkGarden"),
        NameObject("/Flags"): NumberObject(4),
        NameObject("/FontFile"): writer._add_object(program),
    }
    first = min(names)
    codes = range(first, max(names) + 1)
    differences = [NumberObject(first), *(NameObject(f"/{names.get(code, 'space')}") for code in codes)]
    return DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/DarkGarden"),
            NameObject("/FontDescriptor"): writer._add_object(DictionaryObject(descriptor)),
            NameObject("/Encoding"): DictionaryObject({NameObject("/Differences"): ArrayObject(differences)}),
            NameObject("/FirstChar"): NumberObject(first),
            NameObject("/Widths"): ArrayObject([NumberObject(500) for _ in codes]),
        }
    )


# --- accents ---


def over(accent, letter, before, after):
    """Return a page on which an accent is printed over a letter, as TeX does."""
    pages = Pages()
    x = pages.text(72, 700, before)
    width = pages.canvas.stringWidth(letter, "Helvetica", 11)
    accent_width = pages.canvas.stringWidth(accent, "Helvetica", 11)
    pages.text(x + (width - accent_width) / 2, 700, accent)
    pages.text(x, 700, letter + after)
    return pages.finish()


@pytest.mark.parametrize(
    ("accent", "letter", "before", "after", "text"),
    [
        ("¨", "o", "J", "rg", "Jörg"),
        ("´", "e", "caf", " noir", "café noir"),
        ("ˆ", "i", "", "le", "île"),
        ("˜", "n", "Mu", "oz", "Muñoz"),
        ("¸", "c", "gar", "on", "garçon"),
        ("`", "a", "voil", "!", "voilà!"),
        ("´", "s", "gor", "ci", "gorści"),
    ],
)
def test_accents_that_are_printed_over_their_letter(read, accent, letter, before, after, text):
    assert read("a.pdf", over(accent, letter, before, after)).text == text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("J¨org and Ren´e", "Jörg and René"),
        ("Jo¨rg and cafe´", "Jörg and café"),
        ("Mu˜noz, gar¸con", "Muñoz, garçon"),
        ("l´eau and John´s", "l´eau and John´s"),
        ("10^6 and ~user and `code`", "10^6 and ~user and `code`"),
    ],
)
def test_accents_beside_their_letter(read, line, text):
    pages = Pages()
    pages.text(72, 700, line)
    assert read("a.pdf", pages.finish()).text == text


def test_an_accent_that_is_written_within_another_word_does_not_divide_it(read):
    pages = Pages()
    c = pages.text(72, 700, "Moga by")
    end = pages.text(c, 700, "c istotne, je")
    pages.text(c + 1, 700, "´")
    pages.text(end, 700, "zeli dotyczy")
    assert read("a.pdf", pages.finish()).text == "Moga być istotne, jezeli dotyczy"


def test_an_accent_that_is_written_after_its_line_does_not_hide_the_hyphen_there(read):
    pages = Pages()
    pages.text(72, 700, "das weiterfuhrende Dokumentations-")
    before = pages.canvas.stringWidth("das weiterf", "Helvetica", 11)
    pages.text(72 + before + 1, 700, "¨")
    pages.text(72, 686, "verzeichnis")
    assert read("a.pdf", pages.finish()).text == "das weiterführende Dokumentationsverzeichnis"


# --- raised figures ---


def raised(*parts, size=7):
    """Return a page with a line: parts that begin with ^ are raised, those with _ are lowered."""
    pages = Pages()
    x = 72
    for part in parts:
        shift = {"^": 4, "_": -2}.get(part[0], 0)
        x = pages.text(x, 700 + shift, part.lstrip("^_"), size if shift else 11)
    return pages.finish()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("In 1880", "^3", " the mill"), "In 1880 [3] the mill"),
        (("It was sold.", "^12", " Then"), "It was sold. [12] Then"),
        (("Berg", "^1,2", " and Hill", "^3"), "Berg [1,2] and Hill [3]"),
        (("10", "^6", " sacks of 5 m", "^3", "."), "10^6 sacks of 5 m^3."),
        (("2 x 10", "^−3", " s"), "2 x 10^−3 s"),
        (("H", "_2", "O and the 4", "^th", " of May"), "H2O and the 4th of May"),
        (("3", "^1", "/", "_2", " marks"), "3 1/2 marks"),
        (("^1", " See the ledger."), "1 See the ledger."),
        (("Le 2", "^e", " moulin, n", "^o", " 4, du XIX", "^e", " s."), "Le 2e moulin, n° 4, du XIXe s."),
        (("multiply by 2", "^n", " or x", "^n+1", "."), "multiply by 2^n or x^(n+1)."),
        (("f(e", "^x", ") and e", "^2it", " of (1+x)", "^−s", " here"), "f(e^x) and e^2it of (1+x)^−s here"),
        (("the mill", "^b", " of akt", "^k", " here"), "the mill [b] of akt^k here"),
    ],
)
def test_raised_figures_are_apart(read, parts, text):
    assert read("a.pdf", raised(*parts)).text == text


def test_raised_figures_may_be_almost_as_large_as_the_text(read):
    assert (
        read("a.pdf", raised("The L", "^p", " norm and 2", "^10", " bits", size=10)).text
        == "The L^p norm and 2^10 bits"
    )


@pytest.mark.parametrize(
    ("before", "note", "shown"),
    [
        ("the mill", "2. The mill of Orra", "the mill [2]"),
        ("It was sold.", "2 In 1880", "It was sold. [2]"),
        ("the mill", "See the ledger", "the mill 2"),
        ("of sin", "2. The mill of Orra", "of sin 2"),
    ],
)
def test_a_raised_figure_apart_from_its_word_is_the_number_of_a_note_below(read, before, note, shown):
    pages = Pages()
    end = pages.text(72, 700, before)
    end = pages.text(end + 2.5, 704, "2", 7)
    pages.text(end + 3, 700, "Then she came.")
    pages.text(72, 400, note, 9)
    assert read("a.pdf", pages.finish()).text.startswith(f"{shown} Then she came.")


@pytest.mark.parametrize(("after", "changes"), [("ε", {}), ("o", {2: " [2] "})])
def test_the_figure_in_the_logo_of_latex_is_no_mark_of_a_note(after, changes):
    page = SimpleNamespace(
        text=f"EX2{after}",
        is_turned=lambda _: False,
        box=[Box(0, 9, 600, 612), Box(9, 18, 600, 612), Box(18, 23, 603, 612), Box(23, 29, 600, 612)].__getitem__,
        baseline=[600, 600, 603, 600].__getitem__,
    )
    assert set_raised_apart(page, range(4)) == changes


@pytest.mark.parametrize(("rise", "changes"), [(0, {}), (4, {1: "^1"})])
def test_figures_in_old_style_are_lower_and_not_raised(rise, changes):
    page = SimpleNamespace(
        text="m1",
        is_turned=lambda _: False,
        box=[Box(0, 9, 602, 616), Box(9, 14, 606, 613)].__getitem__,
        baseline=[606, 606 + rise].__getitem__,
    )
    assert set_raised_apart(page, range(2)) == changes


# --- hyphens and spaces ---


def test_words_that_are_divided_at_the_end_of_a_line(read):
    pages = Pages()
    pages.lines(
        72,
        700,
        ["It was never for-", "gotten that the North-", "Western mill, in 1990-", "1995, was the mill¬", "er's."],
    )
    text = read("a.pdf", pages.finish()).text
    assert text == "It was never forgotten that the North-Western mill, in 1990-\n1995, was the miller's."


@pytest.mark.parametrize(
    ("named", "seen"),
    [
        ("A WatchTower is seen.", "He went to the WatchTower."),
        ("A WatchTower or Watch-Tower is seen.", "He went to the Watch-Tower."),
        ("A tower is seen.", "He went to the Watch-Tower."),
    ],
)
def test_a_name_that_is_divided_before_its_capital_letter(read, named, seen):
    pages = Pages()
    pages.text(72, 700, named)
    pages.show()
    pages.lines(72, 700, ["He went to the Watch-", "Tower."])
    assert read("a.pdf", pages.finish()).text == f"{named}\n\n{seen}"


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        (["See https://mill.example/sacks-of-", "rye/1990."], "See https://mill.example/sacks-of-rye/1990."),
        (["See /usr/share/doc-", "base there."], "See /usr/share/doc-base there."),
        (["Name der Bildungs-", "oder Ausbildungsstelle"], "Name der Bildungs- oder Ausbildungsstelle"),
        (["They are left-", "or right-aligned."], "They are left- or right-aligned."),
        (["The well-known mill is well-", "known."], "The well-known mill is well-known."),
        (["The email, not the e-mail, of this e-", "mail."], "The email, not the e-mail, of this email."),
        (["It is the fac-", "tor of the doc-", "umentation."], "It is the factor of the documentation."),
        (["It is of Saint-", "Étienne."], "It is of Saint-Étienne."),
        (["Call dpkg --compare-", "versions."], "Call dpkg --compare-versions."),
        (["Sold without fear, WITH-", "OUT A CD-", "ROM."], "Sold without fear, WITHOUT A CD-ROM."),
    ],
)
def test_hyphens_of_the_text_at_the_end_of_a_line(read, lines, seen):
    pages = Pages()
    pages.lines(72, 700, lines)
    assert read("a.pdf", pages.finish()).text == seen


def test_soft_hyphens_and_spaces_that_do_not_break(read):
    pages = Pages()
    pages.lines(72, 700, ["He went to the yard of the com\xad", "mittee at 10\xa0o'clock."])
    assert read("a.pdf", pages.finish()).text == "He went to the yard of the committee at 10 o'clock."


def test_spaces_that_are_written_as_the_distance_of_two_characters(read):
    def work(writer):
        program = (
            "BT /F1 11 Tf 72 700 Td (The mill is open) Tj 3 Tc (,a) Tj 0 Tc [273 (ll carts stand i)] TJ"
            " 3 Tc (na) Tj 0 Tc [273 ( yard.)] TJ ET"
        )
        writer.pages[0][NameObject("/Contents")] = stream(writer, program)

    pages = Pages()
    pages.text(72, 700, "x")
    assert read("a.pdf", change(pages.finish(), work)).text == "The mill is open, all carts stand in a yard."


# --- letters that are printed twice ---


@pytest.mark.parametrize("shift", [0, 0.3, 0.8])
def test_letters_that_are_printed_twice_to_make_them_bold(read, shift):
    pages = Pages()
    x = 72
    for letter in "Millers":
        pages.text(x + shift, 700, letter)
        x = pages.text(x, 700, letter)
    pages.text(72, 680, "A shadow of the whole")
    pages.text(72 + shift, 680, "A shadow of the whole")
    pages.text(72, 660, "Bookkeeping committee 1,000,000")
    assert read("a.pdf", pages.finish()).text == "Millers\nA shadow of the whole\nBookkeeping committee 1,000,000"


@pytest.mark.parametrize(
    ("spaced", "seen"),
    [
        ("A N N U A L  R E P O R T", "ANNUAL REPORT"),
        ("T H E  M I L L E R ' S  B O O K  1 8 8 1", "THE MILLER'S BOOK 1881"),
        ("I n h a l t", "Inhalt"),
        ("A B C D E F", "A B C D E F"),
        ("J. R. A B", "J. R. A B"),
        ("A  N  O", "A N O"),
    ],
)
def test_letters_that_spaces_set_apart_are_words(read, spaced, seen):
    pages = Pages()
    pages.text(72, 700, spaced, 18)
    pages.text(72, 670, "The miller ground rye.")
    assert read("a.pdf", pages.finish()).text.removeprefix("# ") == f"{seen}\nThe miller ground rye."


@pytest.mark.parametrize(
    ("spaced", "seen"),
    [
        ("The almoner gives. N o t h i n g  i s  s o l d  here.", "The almoner gives. Nothing is sold here."),
        ("W i c h t i g  ist der Docht", "Wichtig ist der Docht"),
        ("Grades: A B C D E F and none", "Grades: A B C D E F and none"),
        ("By J R R T Ashe", "By J R R T Ashe"),
    ],
)
def test_letters_set_apart_in_a_part_of_a_line(read, spaced, seen):
    pages = Pages()
    pages.text(72, 700, spaced)
    assert read("a.pdf", pages.finish()).text == seen


@pytest.mark.parametrize(
    ("letters", "word"),
    [
        ([("X", 0), ("T", 12.9), ("E", 19), ("X", 25)], "XETEX"),
        ([("X", 0), ("L", 12.9), ("A", 19), ("T", 25), ("E", 30.5), ("X", 36.7)], "XELATEX"),
    ],
)
def test_the_mirrored_letter_in_the_logo_of_xetex(read, letters, word):
    pages = Pages()
    pages.text(72, 740, "The ledger of the mill is set with")
    for letter, x in letters:
        pages.text(245 + x, 737.5 if letter == "E" else 740, letter)
    pages.text(300, 740, "and is free.")
    pages.canvas.translate(259.5, 737.5)
    pages.canvas.scale(-1, 1)
    pages.text(0, 0, "E")
    assert f"set with {word} and is free." in read("a.pdf", pages.finish()).text


def test_columns_of_single_letters_stay_apart(read):
    pages = Pages()
    pages.rows(700, range(72, 422, 50), ["MTWTFSS", "xoxoxox"])
    assert "M T W T F S S" in read("a.pdf", pages.finish()).text


LAM_ALEF = "لا"  # one glyph


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("לוחכ", True), (" ", False), ("םולש", True)], "שלום כחול"),  # the glyphs from left to right
        ([("לוחכ", True), (" םולש ", False), ("רהנ", True)], "נהר שלום כחול"),
        ([("ليلد", True), (" ", False), ("قوس", False)], "سوق دليل"),
        ([(["م", LAM_ALEF, "س"], False)], "سلام"),
        ([(["م", LAM_ALEF, "س"], True), (" ", False), (["ت", LAM_ALEF, "ا"], False)], "الات سلام"),
        ([([LAM_ALEF], False), (" ", False), (["م", LAM_ALEF, "س"], False)], "سلام لا"),  # a word of one glyph
        ([("mill ", False), ("לוחכ", True)], "mill כחול"),
    ],
)
def test_words_from_right_to_left_have_their_letters_in_order(read, parts, text):
    assert read("a.pdf", in_glyphs([parts])).text == text


@pytest.mark.parametrize(
    ("accent", "letter", "before", "after", "text"),
    [
        ("´", "O", "the ", "rhalom mill", "the Órhalom mill"),
        ("¸", "C", "of ", "elik and", "of Çelik and"),
        ("´", "A", "", "gnes", "Ágnes"),
        ("´", "O", "V", " and more", "VÓ and more"),
    ],
)
def test_no_space_after_a_narrow_accent_over_a_wide_letter(read, accent, letter, before, after, text):
    pages = Pages()
    x = pages.text(72, 700, before + letter, 11, "Times-Roman")
    width = pages.canvas.stringWidth(letter, "Times-Roman", 11)
    accent_width = pages.canvas.stringWidth(accent, "Times-Roman", 7)
    pages.text(x - (width + accent_width) / 2 - 1, 700, accent, 7, "Times-Roman")
    pages.text(x, 700, after, 11, "Times-Roman")
    assert read("a.pdf", pages.finish()).text == text


def test_digits_in_old_style_and_small_capitals_with_codes_for_private_use(read):
    glyphs = list("Expl\uf733 \uf771\uf775\uf7e9, \uf731\uf6ec\uf6f1")
    assert read("a.pdf", in_glyphs([[(glyphs, False)]])).text == "Expl3 qué, 1er"


@pytest.mark.parametrize(("rule", "text"), [(0.2, "set_wheel(rye)"), (4.0, "set wheel(rye)"), (None, "set wheel(rye)")])
def test_an_underscore_that_is_drawn_as_a_rule(read, rule, text):
    pages = Pages()
    end = pages.text(72, 700, "set", 11)
    if rule is not None:
        pages.canvas.rect(end + 0.6, 700 + rule, 3.4, 0.4, stroke=0, fill=1)
    pages.text(end + 4.6, 700, "wheel(rye)", 11)
    assert read("a.pdf", pages.finish()).text == text
