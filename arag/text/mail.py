"""The parts of an email that carry no facts of their own: headers, quoted replies and greetings."""

from __future__ import annotations

import re

# The names that mail programs give to the fields above an older mail, in the languages of Outlook and others.
SENDER = (
    r"From|Von|De|Da|Van|Från|Fra|Frå|Od|Lähettäjä|Feladó|Kimden|Gönderen|От|Від|Από|差出人|送信者|发件人|寄件者|寄件人"
    r"|보낸 ?사람|מאת|من|Expéditeur|Mittente|Remitente|Avsändare"
)
SENT = (
    r"Sent|Date|Gesendet|Datum|Envoyé|Envoyée|Inviato|Data|Enviado|Enviada|Fecha|Verzonden|Skickat|Sendt|Dato|Wysłano"
    r"|Odesláno|Lähetetty|Päivämäärä|Elküldve|Dátum|Gönderildi|Gönderme Tarihi|Tarih|Отправлено|Дата|Надіслано"
    r"|送信日時|日付|发送时间|发送日期|日期|寄件日期|時間|보낸 ?날짜|날짜|נשלח|تاريخ"
)
_RECIPIENT = r"To|Cc|An|À|A|Aan|Til|Till|Para|Do|Komu|Kopie|Кому|Копия|宛先|收件人|받는 ?사람"
_SUBJECT = r"Subject|Betreff|Objet|Oggetto|Asunto|Assunto|Onderwerp|Ämne|Emne|Temat|Тема|件名|主题|主旨|제목"
_FIELD = rf"\*?(?:{SENT}|{_RECIPIENT}|{_SUBJECT})\*? ?[:：].*"
# The fields above an older mail: its sender and at least two others, one of which says when it was sent.
FIELDS = rf"(?:\*?(?:{SENDER})\*? ?[:：] ?\S.*\n(?=(?:.*\n){{0,2}}\*?(?:{SENT})\*? ?[:：])(?:{_FIELD}(?:\n|\Z)){{2,6}})"
# The line above an older mail that is quoted: "On Monday, Ann wrote:".
_BETWEEN = r".{5,80}(?:\n.{0,80})?"
WROTE = (
    rf"(?:On {_BETWEEN}\bwrote|Am {_BETWEEN}\bschrieb\b.{{0,60}}|Le {_BETWEEN}\ba écrit|El {_BETWEEN}\bescribió"
    rf"|Il {_BETWEEN}\bha scritto|Op {_BETWEEN}\bschreef\b.{{0,60}}|Em {_BETWEEN}\bescreveu"
    rf"|Den {_BETWEEN}\bskrev\b.{{0,60}}|(?:W dniu|Dnia) .{{5,80}}\bnapisał(?:\(a\)|a)?"
    r"|\d.{5,80}\b(?:написала?|пишет)|.{5,80}(?:写道|寫道|書きました))[ \t]*[:：]"
)
_QUOTED_LINE = ">"
# Headers, quoted lines, and lines such as "On Monday, Ann wrote:". All text below such a line is of the older email,
# unless that is quoted with ">": then the newer one may go on below the quotation.
_ASIDE = re.compile(
    rf"^>.*|^(?:#+ )?{FIELDS}|^(?:#+ )?(?:From|To|Cc|Sent|Subject): .*"
    rf"|^(?:#+ )?(?:{WROTE}[ \t]*$|On {_BETWEEN}\bwrote$|-+ ?Original Message ?-+)(?:\s*(?![\s>])[\s\S]*)?",
    re.MULTILINE,
)
_GREETING = re.compile(
    r"(?i:dear|hi|hello|good (?:morning|afternoon|evening))\b[^.?]{0,60}[,!:]"
    r"|(?i:(?:(?:best|kind|warm|many|with) )*(?:regards|wishes|thanks|sincerely|cheers|yours(?: \w+)?))"
    r"[,.!]?(?:\s+[A-Z][\w.'’-]*){0,4}"
)


def find_asides(text: str) -> list[range]:
    """Return where an email has headers and quoted replies; nothing for other texts.

    Texts that are not emails have lines with ">", too. So these lines count only beside a header or a reply's first
    line.
    """
    matches = list(_ASIDE.finditer(text))
    if all(match[0].startswith(_QUOTED_LINE) for match in matches):
        return []
    return [range(*match.span()) for match in matches]


def is_greeting(sentence: str) -> bool:
    """Return whether a sentence only greets or takes leave: "Dear Ann," or "Best regards, Bob"."""
    return _GREETING.fullmatch(sentence) is not None
