"""Emails as text."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from arag.ingest.formats import Readers
from arag.ingest.formats.content import FormatError
from arag.ingest.formats.mail import read_mail


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
    assert "# An older mail" in content.text
    assert "Forwarded words." in content.text
    assert content.text.endswith("Attachment: plan.pdf")
    assert content.left_out == ("1 attachment (plan.pdf)",)


def test_an_older_mail_below_the_answer_stands_under_its_writer(tmp_path):
    answer = "It is 55.\n\nMaren Tolk\n\n"
    marked = read(
        tmp_path, mail(f"{answer}On 13 May 2025, Odvar Felisk\n<o@x.org> wrote:\n\n> It is 40.\n>\n> Odvar")
    ).text
    assert f"{answer}## On 13 May 2025, Odvar Felisk <o@x.org> wrote\n\n> It is 40." in marked
    below = read(
        tmp_path, mail(f"{answer}-----Original Message-----\nFrom: Odvar Felisk\nTo: Maren Tolk\n\nIt is 40.")
    ).text
    assert "\n## From: Odvar Felisk\nTo: Maren Tolk\n\nIt is 40." in below
    among = read(tmp_path, mail("You asked:\n> Is it 40?\n\nIt is 55.")).text
    assert among.endswith("You asked:\n> Is it 40?\n\nIt is 55.")


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
