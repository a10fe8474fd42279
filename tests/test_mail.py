"""Emails as text."""

from __future__ import annotations

import base64
import html
import quopri
from email.message import EmailMessage

import pytest

from arag.ingest.formats import Readers
from arag.ingest.formats.content import FormatError
from arag.ingest.formats.mail import read_mail
from arag.ingest.pipeline import run_ingest
from arag.ingest.reading import SourceReader
from arag.ingest.sentences import split_sentences
from fakes import HashEmbeddings


def mail(text="See the lamp.", subject="The lamp"):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Hesper Quillorne <h@lanthry.example>", "tolk@x.org", subject
    message["Date"] = "Mon, 03 Oct 2022 09:15:00 +0000"
    message.set_content(text)
    return message


def read(tmp_path, data):
    (tmp_path / "a.eml").write_bytes(data if isinstance(data, bytes) else data.as_bytes())
    return read_mail(tmp_path / "a.eml")


def test_a_mail_has_its_subject_sender_recipient_date_and_text(tmp_path):
    content = read(tmp_path, mail("Grüße vom Leuchtturm.", "Schöne Grüße"))
    assert content.title == "Schöne Grüße"
    assert content.metadata == {"from": ["h@lanthry.example"], "to": ["tolk@x.org"], "date": "2022-10-03"}
    assert content.text == (
        "# Schöne Grüße\n\nFrom: Hesper Quillorne <h@lanthry.example>\nTo: tolk@x.org\n"
        "Date: Mon, 03 Oct 2022 09:15:00 +0000\n\nGrüße vom Leuchtturm."
    )


def test_attached_texts_and_mails_are_read_and_others_named(tmp_path):
    message = mail()
    message.add_attachment("The oil costs 6 marks.\n", filename="offer.txt")
    message.add_attachment(mail("Forwarded words.", "An older mail"))
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    content = read(tmp_path, message)
    assert "Attachment: offer.txt\n\nThe oil costs 6 marks." in content.text
    assert "## Earlier mail from Hesper Quillorne, Mon, 03 Oct 2022\n\n### An older mail\n\nFrom: " in content.text
    assert "Forwarded words." in content.text
    assert content.text.endswith("\n\n## Attachments\n\nAttachment: plan.pdf")  # of this mail, not of the older one
    assert content.left_out == ("1 attachment (plan.pdf)",)


def test_an_older_mail_below_the_answer_stands_under_its_writer(tmp_path):
    answer = "It is 55.\n\nMaren Tolk\n\n"
    quoted = "> It is 40.\n>\n> Odvar"
    line = "On 13 May 2025, Odvar Felisk\n<o@x.org> wrote:"
    marked = read(tmp_path, mail(f"{answer}{line}\n\n{quoted}")).text
    assert f"{answer}## Earlier mail from Odvar Felisk, 13 May 2025\n\n{line}\n\n{quoted}" in marked
    fields = "-----Original Message-----\nFrom: Odvar Felisk\nTo: Maren Tolk"
    below = read(tmp_path, mail(f"{answer}{fields}\n\nIt is 40.")).text
    assert f"{answer}## Earlier mail from Odvar Felisk\n\n{fields}\n\nIt is 40." in below
    alone = read(tmp_path, mail(f"{answer}{quoted}")).text
    assert f"{answer}## Earlier mail\n\n{quoted}" in alone
    unknown = read(tmp_path, mail(f"{answer}You asked:\n{quoted}")).text
    assert f"{answer}## Earlier mail: You asked\n\nYou asked:\n\n{quoted}" in unknown
    among = read(tmp_path, mail("You asked:\n> Is it 40?\n\nIt is 55.")).text
    assert among.endswith("You asked:\n> Is it 40?\n\nIt is 55.")


ASKED = "13 mai 2025 12:40, Odvar Felisk <o@x.org> a scris:"  # in a language without a rule of its own


def page_of(older):
    page = mail("")
    page.set_content(f"<div>It is 55.</div>{older}", subtype="html")
    return page


@pytest.mark.parametrize(
    "older",
    [
        '<div class="gmail_quote"><div class="gmail_attr">{line}<br></div><blockquote class="gmail_quote">{text}',
        '<div><br><blockquote type="cite"><div>{line}<br></div></blockquote><blockquote type="cite">{text}',
        '<div class="moz-cite-prefix">{line}<br></div><blockquote cite="mid:1@x">{text}',
        '<div class="yahoo_quoted"><div><div>{line}</div><div>{text}</div></div></div>',
        '<div class="protonmail_quote">{line}<br><blockquote class="protonmail_quote" type="cite">{text}',
        "<p>{line}</p><blockquote>{text}",
    ],
)
def test_a_quotation_in_a_page_is_an_older_mail_in_any_language(tmp_path, older):
    text = "<div>It is 40.</div><ul><li>oil</ul>"
    marked = read(tmp_path, page_of(older.format(line=html.escape(ASKED), text=text))).text
    heading = f"It is 55.\n\n## Earlier mail: {ASKED.rstrip(':')}\n\n"
    assert heading in marked
    assert f"{ASKED}\n\n> It is 40.\n\n> - oil" in marked


def test_a_quotation_in_a_page_needs_no_writer_and_may_be_answered_below(tmp_path):
    quote = '<blockquote type="cite"><p>It is 40.</p><blockquote type="cite">Is it 40?</blockquote></blockquote>'
    alone = read(tmp_path, page_of(quote)).text
    assert alone.endswith("It is 55.\n\n## Earlier mail\n\n> It is 40.\n\n> > Is it 40?")
    answered = read(tmp_path, page_of(f"{quote}<p>No, 60.</p>")).text
    assert answered.endswith("It is 55.\n\n> It is 40.\n\n> > Is it 40?\n\nNo, 60.")
    indented = read(tmp_path, page_of("<blockquote>A line of a song</blockquote>")).text
    assert indented.endswith("It is 55.\n\nA line of a song")


@pytest.mark.parametrize(("text", "shown"), [("Plain words.", "Plain words."), ("", "Words of a page.")])
def test_of_two_versions_the_plain_one_is_read_unless_it_is_empty(tmp_path, text, shown):
    message = mail(text)
    message.add_alternative("<p>Words of <b>a page</b>.</p>", subtype="html")
    content = read(tmp_path, message)
    assert content.text.endswith(f"\n\n{shown}")
    assert content.text.count("ords") == 1


@pytest.mark.parametrize("charset", ["", "; charset=undefined", "; charset=no-such", "; charset=us-ascii"])
def test_a_text_in_an_undeclared_or_unknown_encoding_is_read(tmp_path, charset):
    head = f"From: a@b.example\nContent-Type: text/plain{charset}\n\n".encode()
    assert read(tmp_path, head + "Straße".encode()).text.endswith("Straße") or charset
    assert read(tmp_path, head + "Straße".encode("cp1252")).text.endswith("Straße")


def test_what_is_no_mail_is_refused(tmp_path):
    with pytest.raises(FormatError, match="not an email"):
        read(tmp_path, b"The lamp is lit.\n")


def test_mails_nested_without_end_are_refused(tmp_path):
    (tmp_path / "a.eml").write_bytes(b"From: a\n" + b"Content-Type: message/rfc822\n\n" * 20_000 + b"x")
    with Readers() as readers, pytest.raises(FormatError):
        readers.read(tmp_path / "a.eml")


FORWARDED = b"From: Pell <p@x.org>\nSubject: Axle\n\nThe axle broke at noon = midday.\n"


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
@pytest.mark.parametrize("kind", ["message/rfc822", "message/global"])
def test_a_forwarded_mail_is_decoded(tmp_path, encoding, kind):
    body = {"base64": base64.encodebytes, "quoted-printable": quopri.encodestring, "8bit": bytes}[encoding](FORWARDED)
    head = f"From: a@b.example\nContent-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n\n"
    text = read(tmp_path, head.encode() + body).text
    assert text.endswith(
        "## Earlier mail from Pell\n\n### Axle\n\nFrom: Pell <p@x.org>\n\nThe axle broke at noon = midday."
    )


@pytest.mark.parametrize(
    "hint",
    [
        "Please view this message in an HTML mail reader.",
        "This email requires HTML.",
        "Votre logiciel de courrier ne prend pas en charge ce format.",
        "The wheel costs more.",  # the beginning of the page
    ],
)
def test_the_page_is_read_where_the_plain_version_is_a_hint(tmp_path, hint):
    message = mail(hint)
    message.add_alternative(
        "<h1>Invoice 88</h1><p>The wheel costs more: four hundred marks, due on 1 May.", subtype="html"
    )
    assert read(tmp_path, message).text.endswith("four hundred marks, due on 1 May.")


def test_the_plain_version_is_read_where_it_says_the_same(tmp_path):
    message = mail("The wheel costs four hundred marks.\n\nDue on 1 May.")
    message.add_alternative("<p>The wheel costs four hundred marks.<p>Due on 1 May.<p>Unsubscribe here", subtype="html")
    assert read(tmp_path, message).text.endswith("marks.\n\nDue on 1 May.")


def test_files_attached_to_the_other_version_are_read(tmp_path):
    message = mail("The wheel costs four hundred marks.")
    page = EmailMessage()
    page.set_content("<p>The wheel costs four hundred marks.", subtype="html")
    page.add_attachment("The oil costs 6 marks.\n", filename="offer.txt")
    page.add_attachment(b"AC10", maintype="application", subtype="acad", filename="plan.dwg")
    message.make_alternative()
    message.attach(page)
    content = read(tmp_path, message)
    assert content.text.endswith("marks.\n\nAttachment: offer.txt\n\nThe oil costs 6 marks.")
    assert content.left_out == ("1 attachment (plan.dwg)",)


OLDER = {
    "From: Pell <p@x.org>\nSent: Wednesday, 3 April 2024 10:00\nTo: Maren\nSubject: Axle": "Wednesday, 3 April 2024",
    "Von: Pell <p@x.org>\nGesendet: Mittwoch, 3. April 2024 10:00\nAn: Ole\nBetreff: Achse": "Mittwoch, 3. April 2024",
    "De : Pell <p@x.org>\nEnvoyé : mercredi 3 avril 2024 10:00\nÀ : Maren\nObjet : Essieu": "mercredi 3 avril 2024",
    "De: Pell\nEnviado: miércoles, 3 de abril de 2024\nPara: Maren\nAsunto: Eje": "miércoles, 3 de abril de 2024",
    "Da: Pell\nInviato: mercoledì 3 aprile 2024 10:00\nA: Maren Tolk\nOggetto: Asse": "mercoledì 3 aprile 2024",
    "发件人: Pell\n发送时间: 2024年4月3日 10:00\n收件人: Maren Tolk\n主题: 轴": "2024年4月3日",
    "---------- Forwarded message ---------\nFrom: Pell <p@x.org>\nDate: Wed, Apr 3, 2024 at 10:00 AM\n"
    "Subject: Axle\nTo: Maren Tolk <m@x.org>": "Wed, Apr 3, 2024",
    "On Wed, 3 Apr 2024 at 10:00, Pell <p@x.org> wrote:": "Wed, 3 Apr 2024",
    "On 4/3/2024 10:00 AM, Pell wrote:": "4/3/2024",
    "On Wednesday, Pell wrote:": "Wednesday",
    "Am Mi., 3. Apr. 2024 um 10:00 Uhr schrieb Pell <p@x.org>:": "Mi., 3. Apr. 2024",
    "Le mer. 3 avr. 2024 à 10:00, Pell <p@x.org> a écrit :": "mer. 3 avr. 2024",
    "3 апр. 2024 г., в 10:00, Pell <p@x.org> написал:": "3 апр. 2024 г.",
}


@pytest.mark.parametrize(("older", "date"), OLDER.items())
def test_an_older_mail_that_is_not_quoted_stands_under_its_writer(tmp_path, older, date):
    heading = f"Earlier mail from Pell, {date}"
    text = read(tmp_path, mail(f"It is 55.\n\n{older}\n\nIt is 40.")).text
    assert older in text
    sentences = {text[s.start : s.end]: s.heading for s in split_sentences(text, title="The lamp")}
    assert sentences["It is 55."] == ""
    assert sentences["It is 40."] == heading
    page = mail("")
    lines = html.escape(older).replace("\n", "<br>")
    page.add_alternative(f"<p>It is 55.<p>{lines}<h1>Axle</h1><p>It is 40.", subtype="html")
    text = read(tmp_path, page).text
    assert split_sentences(text, title="The lamp")[-1].heading == f"{heading} > Axle"


def test_fields_that_begin_no_older_mail_are_text(tmp_path):
    text = "From: the harbour\nTo: the mill\n\nA: yes\nDate: never\n\nOn Monday the miller wrote a letter: it is long."
    assert read(tmp_path, mail(text)).text.endswith(text)


def test_an_invitation_is_read(tmp_path):
    message = mail("See you.")
    event = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Inspection of the\r\n  wheel\r\nDTSTART;TZID=A/B:20240405T090000"
        "\r\nDTEND:20240405T080000Z\r\nLOCATION:Mill\\, first floor\r\nORGANIZER;CN=Pell:mailto:p@x.org\r\n"
        "BEGIN:VALARM\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR"
    )
    message.add_alternative(event, subtype="calendar")
    assert read(tmp_path, message).text.endswith(
        "See you.\n\nEvent: Inspection of the wheel\nStart: 2024-04-05 09:00\nEnd: 2024-04-05 08:00 UTC\n"
        "Location: Mill, first floor\nOrganizer: Pell <p@x.org>"
    )


@pytest.mark.parametrize(
    ("name", "kind", "data", "text"),
    [
        ("notes.csv", "octet-stream", b"Grain;Marks\nRye;4\nOats;5", "Grain: Oats | Marks: 5"),
        ("page.html", "octet-stream", b"<p>Rye <b>4</b>", "Rye 4"),
        ("old.eml", "octet-stream", FORWARDED, "The axle broke at noon = midday."),
        ("notes.log", "x-log", "Roggen für 4".encode("cp1252"), "Roggen für 4"),
    ],
)
def test_attached_texts_are_read_whatever_kind_they_are_declared_to_be(tmp_path, name, kind, data, text):
    message = mail()
    message.add_attachment(data, maintype="application", subtype=kind, filename=name)
    content = read(tmp_path, message)
    assert content.text.endswith(text)
    assert content.left_out == ()


def test_what_no_person_sees_is_neither_read_nor_named(tmp_path):
    message = mail()
    message.add_attachment("p {color: red}", subtype="css")
    message.add_attachment(b"0", maintype="application", subtype="pgp-signature", filename="signature.asc")
    content = read(tmp_path, message)
    assert content.text.endswith("See the lamp.")
    assert content.left_out == ()
    message.add_attachment(b"x", maintype="application", subtype="ms-tnef", filename="winmail.dat")
    assert read(tmp_path, message).left_out == ("1 attachment (winmail.dat)",)


def test_a_command_in_a_mail_is_no_heading(tmp_path):
    text = read(tmp_path, mail("Run this:\n\n# rm -r /srv/old\n\nThen wait for an hour.")).text
    assert [s.heading for s in split_sentences(text, title="The lamp")][-1] == ""


@pytest.mark.parametrize("raw", ["Grüße".encode(), "Grüße".encode("cp1252"), b"=?utf-8?b?R3LDvMOfZQ==?="])
def test_headers_in_all_encodings(tmp_path, raw):
    assert read(tmp_path, b"From: a@b.example\nSubject: " + raw + b"\n\nText.").title == "Grüße"


def picture_mail(header):
    picture = f'Content-Type: image/jpeg; name="hull.jpg"\n{header}\nContent-Transfer-Encoding: base64\n\n/9j/4AA=\n'
    text = "Content-Type: text/plain\n\n{}\n"
    parts = [text.format("The hull before:"), picture, text.format("It is tight again.")]
    body = "--b\n" + "--b\n".join(parts) + "--b--\n"
    return f"From: a@b.example\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{body}"


@pytest.mark.parametrize(
    "header", ["Content-Disposition: inline; filename=hull.jpg", "Content-Disposition: attachment"]
)
def test_a_picture_between_two_texts_is_named(read, header):
    content = read("a.eml", picture_mail(header))
    assert content.left_out == ("1 attachment (hull.jpg)",)
    assert content.text.index("The hull before") < content.text.index("hull.jpg") < content.text.index("tight again")


@pytest.mark.parametrize(
    ("text", "encoding", "declared", "seen"),
    [
        ("镕哥的船", "gbk", "gb2312", "镕哥的船"),
        ("①髙橋", "cp932", "shift_jis", "①髙橋"),
        ("똠방각하", "cp949", "ks_c_5601-1987", "똠방각하"),
        ("“Lamp” – 5 €", "cp1252", "iso-8859-1", "“Lamp” – 5 €"),
        ("Łódź", "utf-8", "x-of-a-program", "Łódź"),
        ("\x1b$BEtBf-!\x1b(B ok", "ascii", "iso-2022-jp", "灯台\ufffd ok"),
    ],
)
def test_words_in_more_than_the_declared_encoding(tmp_path, text, encoding, declared, seen):
    word = base64.b64encode(text.encode(encoding)).decode()
    fields = f"Content-Type: text/plain; charset={declared}\nContent-Transfer-Encoding: base64"
    data = f"From: =?{declared}?B?{word}?= <a@x.org>\nSubject: =?{declared}?B?{word}?=\n{fields}\n\n{word}\n"
    content = read(tmp_path, data.encode())
    assert content.title == seen
    assert content.text == f"# {seen}\n\nFrom: {seen} <a@x.org>\n\n{seen}"


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("来週の船は \n二便だけです。 \n桟橋へ。\n明日", "来週の船は二便だけです。桟橋へ。\n明日"),
        ("The gate  \nis shut. \n\nIt is red.", "The gate is shut.\n\nIt is red."),
        ("> Is the gate  \n> shut? \nIt is.", "> Is the gate shut?\nIt is."),
        (">> One \n> two\n-- \nTolk", ">> One\n> two\n-- \nTolk"),
    ],
)
def test_lines_that_a_mail_program_divided_are_joined(tmp_path, written, seen):
    message = mail(written)
    message.set_param("format", "flowed")
    message.set_param("delsp", "yes")
    assert read(tmp_path, message).text.endswith(f"+0000\n\n{seen}")
    kept = mail("The gate \nis shut.")  # without the mark, a space is a space
    assert read(tmp_path, kept).text.endswith("The gate \nis shut.")


def test_a_picture_of_the_page_is_not_named(read):
    assert read("a.eml", picture_mail("Content-ID: <logo>")).left_out == ()


class TestMailboxes:
    LINE = "From tolk@x.org Mon Oct  3 09:15:00 2022\n"

    def box(self, *texts):
        return "\n".join(
            f"{self.LINE}From: a@b.example\nMessage-ID: <{number}@x.org>\nSubject: Mail {number}\n\n{text}\n"
            for number, text in enumerate(texts)
        )

    def items(self, path):
        return list(SourceReader(path, Readers()).read())

    @pytest.mark.parametrize("name", ["all.mbox", "2022-October.txt", "archive"])
    def test_each_mail_is_a_document(self, tmp_path, name):
        path = tmp_path / name
        path.write_text(self.box("The lamp is lit.\n\n>From here on.", "From now on it rains at 10:30.", "Third."))
        documents = self.items(path)
        assert [document.id for document in documents] == [f"{name}#{number}@x.org" for number in range(3)]
        assert [document.title for document in documents] == ["Mail 0", "Mail 1", "Mail 2"]
        assert documents[1].text.endswith("From now on it rains at 10:30.")
        assert documents[1].source == f"{path}, email 2"

    @pytest.mark.parametrize(
        ("written", "seen"),
        [(">From here on.", "From here on."), (">>From Ann:", ">From Ann:"), ("> From Ann:", "> From Ann:")],
    )
    def test_lines_like_those_of_the_mailbox_are_shown_without_its_mark(self, tmp_path, written, seen):
        path = tmp_path / "all.mbox"
        path.write_text(self.box(f"The lamp is lit.\n\n{written}"))
        (document,) = self.items(path)
        assert document.text.endswith(f"\n\n{seen}")

    def test_ids_without_a_message_id_are_numbers(self, tmp_path):
        path = tmp_path / "all.mbox"
        same = f"{self.LINE}From: a@b.example\nMessage-ID: <1>\n\nText.\n\n"
        path.write_text(f"{self.LINE}From: a@b.example\n\nOne.\n\n{same}{same}{self.LINE}\n\nNo fields.\n")
        items = self.items(path)
        assert [item.id for item in items[:3]] == ["all.mbox#1", "all.mbox#1~2", "all.mbox#1~3"]
        assert str(items[3]) == f"{path}, email 4: not an email: it has no sender, recipient, subject or date"

    def test_many_mails_are_written_and_updated(self, tmp_path):
        path = tmp_path / "all.mbox"
        path.write_text(self.box(*[f"The lamp {number} is lit." for number in range(300)]))
        options = {"embedder": HashEmbeddings()}
        first = run_ingest(path, tmp_path / "index", **options)
        assert (first.documents, first.written, first.problems) == (300, 300, ())
        path.write_text(self.box(*[f"The lamp {number} is lit." for number in range(1, 301)])[:-1])
        second = run_ingest(path, tmp_path / "index", **options)
        assert second.documents == 300


def test_a_line_of_a_mailbox_costs_no_more_than_it_is_long(tmp_path):
    """The time of a pattern that tries all its times of day would grow with the square."""
    head = "From odvar@felisk.example Mon Jan  3 10:00:00 2022\n"
    box = f"{head}Subject: Lamps\n\nThe oil costs six marks.\n\nFrom x {'00:00 ' * 200_000}\n"
    (tmp_path / "a.mbox").write_text(box)
    with Readers() as readers:
        assert "six marks" in "".join(part.text for part in SourceReader(tmp_path / "a.mbox", readers).read())
