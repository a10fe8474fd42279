"""The parts of an email that carry no facts of their own: headers, quoted replies and greetings."""

from __future__ import annotations

import re

# The names that mail programs give to the fields above an older mail, in the languages of Outlook and others.
SENDER = (
    "From|Von|De|Da|Van|Från|Fra|Frå|Od"
    "|Lähettäjä|Feladó|Kimden|Gönderen"
    "|Expéditeur|Mittente|Remitente|Avsändare"
    "|От|Від|Από|מאת|من"
    "|差出人|送信者|发件人|寄件者|寄件人|보낸 ?사람"
)
SENT = (
    "Sent|Date|Gesendet|Datum|Envoyé|Envoyée"
    "|Inviato|Data|Enviado|Enviada|Fecha"
    "|Verzonden|Skickat|Sendt|Dato|Wysłano|Odesláno"
    "|Lähetetty|Päivämäärä|Elküldve|Dátum"
    "|Gönderildi|Gönderme Tarihi|Tarih"
    "|Отправлено|Дата|Надіслано|נשלח|تاريخ"
    "|送信日時|日付|发送时间|发送日期|日期|寄件日期|時間"
    "|보낸 ?날짜|날짜"
)
_RECIPIENT = "To|Cc|An|À|A|Aan|Til|Till|Para|Do|Komu|Kopie|Кому|Копия|宛先|收件人|받는 ?사람"
_SUBJECT = "Subject|Betreff|Objet|Oggetto|Asunto|Assunto|Onderwerp|Ämne|Emne|Temat|Тема|件名|主题|主旨|제목"
_COLON = r"\*? ?[:：]"  # names may be in bold: `*From:*`
_SENDER_LINE = rf"\*?(?:{SENDER}){_COLON} ?\S.*\n"
_SENT_FOLLOWS = rf"(?=(?:.*\n){{0,2}}\*?(?:{SENT}){_COLON})"
_OTHER_LINE = rf"\*?(?:{SENT}|{_RECIPIENT}|{_SUBJECT}){_COLON}.*(?:\n|\Z)"
# The fields above an older mail: its sender and at least two others, one of which says when it was sent.
FIELDS = rf"(?:{_SENDER_LINE}{_SENT_FOLLOWS}(?:{_OTHER_LINE}){{2,6}})"

# The line above an older mail that is quoted: "On Monday, Ann wrote:", "Am Montag schrieb Ann:".
FIRST_WORD = "On|Am|Le|El|Il|Op|Em|Den|W dniu|Dnia"
_BETWEEN = r".{5,80}(?:\n.{0,80})?"
_LAST_VERB = r"wrote|a écrit|escribió|ha scritto|escreveu|napisał(?:\(a\)|a)?"
_VERB_BEFORE_NAME = "schrieb|schreef|skrev"
_RUSSIAN_VERB = "написала?|пишет"
_VERB_WITHOUT_SPACE = "写道|寫道|書きました"
VERB = (
    rf"\b(?:{_LAST_VERB}|{_VERB_BEFORE_NAME}|{_RUSSIAN_VERB})(?!\w)"
    rf"|{_VERB_WITHOUT_SPACE}"
)
WROTE = (
    rf"(?:(?:{FIRST_WORD}) {_BETWEEN}\b(?:{_LAST_VERB}|(?:{_VERB_BEFORE_NAME})\b.{{0,60}})"
    rf"|\d.{{5,80}}\b(?:{_RUSSIAN_VERB})"
    rf"|.{{5,80}}(?:{_VERB_WITHOUT_SPACE}))[ \t]*[:：]"
)

_QUOTED_LINE = ">"
_FIELD_LINE = r"(?:From|To|Cc|Sent|Subject): .*"
_ORIGINAL_MESSAGE = "-+ ?Original Message ?-+"
_REPLY_LINE = rf"{WROTE}[ \t]*$|On {_BETWEEN}\bwrote$|{_ORIGINAL_MESSAGE}"
# All text below the first line of a reply is of the older email, unless that is quoted with ">": then the newer one may
# go on below the quotation.
_UNQUOTED_REST = r"(?:\s*(?![\s>])[\s\S]*)?"
# Headers, quoted lines, and lines such as "On Monday, Ann wrote:".
_ASIDE = re.compile(
    rf"^{_QUOTED_LINE}.*"
    rf"|^(?:#+ )?(?:{FIELDS}|{_FIELD_LINE})"
    rf"|^(?:#+ )?(?:{_REPLY_LINE}){_UNQUOTED_REST}",
    re.MULTILINE,
)

_OPENING = "dear|hi|hello|good (?:morning|afternoon|evening)"
_CLOSING = (
    r"(?:(?:best|kind|warm|many|with) )*"
    r"(?:regards|wishes|thanks|sincerely|cheers|yours(?: \w+)?)"
)
_NAMES = r"(?:\s+[A-Z][\w.'’-]*){0,4}"
_GREETING = re.compile(
    rf"(?i:{_OPENING})\b[^.?]{{0,60}}[,!:]"
    rf"|(?i:{_CLOSING})[,.!]?{_NAMES}",
)


def find_asides(text: str) -> list[range]:
    """Return where an email has headers and quoted replies; nothing for other texts.

    Texts that are not emails have lines with ">", too. So these lines count only beside a header or a reply's first
    line.
    """
    asides: list[range] = []
    is_mail = False
    for match in _ASIDE.finditer(text):
        asides.append(range(*match.span()))
        is_mail = is_mail or not match[0].startswith(_QUOTED_LINE)
    return asides if is_mail else []


def is_greeting(sentence: str) -> bool:
    """Return whether a sentence only greets or takes leave: "Dear Ann," or "Best regards, Bob"."""
    return _GREETING.fullmatch(sentence) is not None
