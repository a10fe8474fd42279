"""Values of forms, comments and attached files of PDFs."""

from __future__ import annotations

from pypdf.annotations import FreeText, Highlight, Text
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NumberObject, TextStringObject

from arag.ingest.sentences import split_sentences
from pdf_pages import Pages, change


def form():
    """Return the pages of a form with its labels, and what draws its fields."""
    pages = Pages()
    pages.text(72, 760, "Application to the Marrow Mill")
    return pages, pages.canvas.acroForm


def test_values_are_beside_their_labels(read):
    pages, fields = form()
    pages.text(72, 700, "Applicant:")
    fields.textfield(name="applicant", x=150, y=692, width=200, height=20, value="Orsolya Pendrick")
    pages.text(72, 660, "Insured:")
    fields.checkbox(name="insured", x=150, y=655, size=15, checked=True)
    pages.text(72, 620, "Grain:")
    fields.choice(name="grain", x=150, y=612, width=100, height=20, value="Barley", options=["Rye", "Barley"])
    content = read("a.pdf", pages.finish())
    assert content.text == ("Application to the Marrow Mill\nApplicant: Orsolya Pendrick\nInsured: [x]\nGrain: Barley")
    assert content.left_out == ()


def test_a_label_and_its_value_are_no_heading(read):
    pages, fields = form()
    for y, label, value in ((700, "Claimant", "Idris Fenwake"), (660, "Town of birth", "Lower Wend")):
        pages.text(72, y, label)
        fields.textfield(name=label, x=180, y=y - 8, width=200, height=20, value=value)
    pages.text(72, 620, "Claims are settled within forty days, and nobody is paid twice.")
    text = read("a.pdf", pages.finish()).text
    assert "Claimant: Idris Fenwake\nTown of birth: Lower Wend\n" in text
    assert {sentence.heading for sentence in split_sentences(text)} == {""}


def test_a_value_in_a_sentence(read):
    pages, fields = form()
    pages.text(72, 700, "and is to be paid by the miller in")
    fields.textfield(name="sacks", x=260, y=692, width=60, height=20, value="Rye")
    assert "to be paid by the miller in Rye" in read("a.pdf", pages.finish()).text


def test_boxes_before_their_labels(read):
    pages, fields = form()
    for number, (label, checked) in enumerate([("Rye", False), ("Oats", True)]):
        fields.checkbox(name=label, x=72 + 100 * number, y=655, size=12, checked=checked)
        pages.text(90 + 100 * number, 657, label)
    for number, label in enumerate(["cash", "ledger"]):
        selected = label == "ledger"
        fields.radio(name="paid", value=label, x=72 + 100 * number, y=615, size=12, selected=selected)
        pages.text(90 + 100 * number, 617, label)
    text = " ".join(read("a.pdf", pages.finish()).text.replace("|", " ").split())
    assert "[ ] Rye [x] Oats" in text
    assert "[ ] cash [x] ledger" in text


def test_a_value_without_a_label_has_its_name(read):
    pages, fields = form()
    fields.textfield(name="f1", tooltip="Sacks of rye", x=150, y=600, width=200, height=20, value="40")
    fields.textfield(name="remarks", x=150, y=560, width=200, height=20, value="Deliver at noon")
    fields.textfield(name="empty", x=150, y=520, width=200, height=20, value="")
    assert read("a.pdf", pages.finish()).text == (
        "Application to the Marrow Mill\nSacks of rye: 40\nremarks: Deliver at noon"
    )


def test_a_page_with_nothing_but_values(read):
    pages = Pages()
    pages.canvas.acroForm.textfield(name="name", x=150, y=600, width=200, height=20, value="Ada Berg")
    pages.canvas.rect(10, 10, 5, 5)
    pages._was_shown = False
    assert read("a.pdf", pages.finish()).text == "name: Ada Berg"


def test_values_under_the_names_of_their_columns(read):
    pages, fields = form()
    pages.rows(700, (72, 200, 330), [("Ship", "Tons", "Year")])
    for row, cells in enumerate([("Gull", "40", "1880"), ("Petrel", "", "1881")]):
        for column, cell in enumerate(cells):
            x = (72, 200, 330)[column]
            fields.textfield(name=f"f{row}{column}", x=x, y=672 - 24 * row, width=90, height=20, value=cell)
    text = read("a.pdf", pages.finish()).text
    assert "Gull" in text
    assert text.index("Gull") < text.index("40") < text.index("1880") < text.index("Petrel") < text.index("1881")
    assert "Ship: Petrel" in text
    assert text.endswith("Year: 1881")


def test_values_under_their_labels(read):
    pages, fields = form()
    for x, label, value in ((72, "Name of the ship", "Gull"), (300, "Tons:", "40")):
        pages.text(x, 700, label)
        fields.textfield(name=f"f{x}", x=x, y=672, width=90, height=20, value=value)
    pages.text(72, 640, "What the ship has in her hold, as far as the master knows it:")
    fields.textfield(name="cargo", x=72, y=610, width=200, height=20, value="Rye")
    text = read("a.pdf", pages.finish()).text
    assert "Name of the ship: Gull" in text
    assert "Tons: 40" in text
    assert text.endswith("cargo: Rye")  # a sentence is no label


# --- comments ---


def commented(*annotations):
    """Return a PDF of two pages with annotations on the first."""

    def work(writer):
        for annotation in annotations:
            writer.add_annotation(0, annotation)

    pages = Pages()
    pages.lines(72, 700, ["The mill is closed in winter.", "The race is not."])
    pages.show()
    pages.text(72, 700, "The second page.")
    return change(pages.finish(), work)


def by(annotation, author):
    annotation[NameObject("/T")] = TextStringObject(author)
    return annotation


def test_comments_are_read_after_their_page(read):
    note = by(Text(rect=(50, 550, 70, 570), text="Ask the clerk\nwhether it is."), "Ada Berg")
    box = FreeText(text="Since 1881 only.", rect=(200, 550, 300, 580))
    corners = ArrayObject([FloatObject(x) for x in (72, 711, 200, 711, 72, 698, 200, 698)])
    mark = Highlight(rect=(72, 698, 200, 711), quad_points=corners)
    mark[NameObject("/Contents")] = TextStringObject("Is this so?")
    content = read("a.pdf", commented(note, box, mark))
    first = content.text[: content.page_starts[1]].strip()
    assert first.split("\n\n") == [
        "The mill is closed in winter.\nThe race is not.",
        "Comment by Ada Berg: Ask the clerk whether it is.",
        "Comment: Since 1881 only.",
        "Comment: Is this so?",
    ]


def test_a_hidden_comment_is_not_read(read):
    note = Text(rect=(50, 550, 70, 570), text="Hidden.")
    note[NameObject("/F")] = NumberObject(2)
    assert "Hidden" not in read("a.pdf", commented(note)).text


def test_a_stamp_and_a_comment_with_formatted_text_alone(read):
    stamp = Text(rect=(50, 550, 70, 570), text="")
    stamp[NameObject("/Subtype")] = NameObject("/Stamp")
    stamp[NameObject("/Name")] = NameObject("/NotApproved")
    box = FreeText(text="", rect=(200, 550, 300, 580))
    box[NameObject("/RC")] = TextStringObject("<body><p>Rye &amp; <b>oats</b></p></body>")
    text = read("a.pdf", commented(stamp, box)).text
    assert "\n\nStamp: Not Approved\n\nComment: Rye & oats\n\n" in text


# --- attached files ---


def attached(**files):
    """Return a PDF with attached files; two underscores in a name are its dot."""

    def work(writer):
        for name, data in files.items():
            writer.add_attachment(name.replace("__", "."), data)

    pages = Pages()
    pages.text(72, 700, "See what is attached.")
    return change(pages.finish(), work)


def test_attached_texts_are_read_and_other_files_are_named(read):
    content = read(
        "a.pdf", attached(dues__txt=b"All ships pay dues.", rates__csv=b"ship;dues\nGull;4", plan__dwg=b"\0\1")
    )
    assert content.text.split("\n\n") == [
        "See what is attached.",
        "Attachment dues.txt:\nAll ships pay dues.",
        "Attachment rates.csv:\nship | dues\nship: Gull | dues: 4",
    ]
    assert content.left_out == ("1 attachment (plan.dwg)",)


def test_many_attached_files(read):
    content = read("a.pdf", attached(**{f"plan{number}__dwg": b"\0" for number in range(7)}))
    names = ", ".join(f"plan{number}.dwg" for number in range(5))
    assert content.left_out == (f"7 attachments ({names} and 2 more)",)


def test_a_text_that_cannot_be_decoded_is_named(read):
    assert read("a.pdf", attached(dues__txt=b"\xff\x00\xd8\x81")).left_out == ("1 attachment (dues.txt)",)


# --- forms that no reader reads ---


def test_xfa_is_reported(read):
    def work(writer):
        form = writer._root_object[NameObject("/AcroForm")]
        form = form.get_object()
        form[NameObject("/XFA")] = TextStringObject("<xdp:xdp/>")

    pages, fields = form()
    fields.textfield(name="applicant", x=150, y=692, width=200, height=20, value="Ada")
    content = read("a.pdf", change(pages.finish(), work))
    assert "Ada" in content.text
    assert content.left_out == ("1 XFA form",)


def test_a_signature_is_reported(read):
    def work(writer):
        signature = DictionaryObject(
            {
                NameObject("/FT"): NameObject("/Sig"),
                NameObject("/T"): TextStringObject("signature"),
                NameObject("/V"): DictionaryObject({NameObject("/Type"): NameObject("/Sig")}),
            }
        )
        fields = ArrayObject([writer._add_object(signature)])
        writer._root_object[NameObject("/AcroForm")] = DictionaryObject(
            {NameObject("/Fields"): fields, NameObject("/SigFlags"): NumberObject(3)}
        )

    pages, _ = form()
    assert read("a.pdf", change(pages.finish(), work)).left_out == ("1 signature",)
