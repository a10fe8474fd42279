"""Tells by the words of its label whether a row of a table is a total of others, in ten languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from arag.retrieval.corpus.values import Value

_CACHED_WORDS = 10_000
_TOTALS = frozenset(
    "total totals subtotal subtotals sum"
    " summe summen gesamt insgesamt zwischentotal"
    " totaux somme"
    " totales suma imponible"
    " totale totali subtotale somma imponibile"
    " totais soma"
    " totaal subtotaal eindtotaal totaalbedrag som"
    " razem ogółem łącznie"
    " итого всего итог подытог сумма".split()
)
_DUE = frozenset(  # taxes, and what is to be paid
    "vat tax taxes gst mwst ust umsatzsteuer mehrwertsteuer tva taxe iva btw podatek ндс"
    " due payable payer zahlen zahlbar betalen zapłaty оплате pagar pagare".split()
)
_BESIDE = frozenset(  # words that may stand beside these
    "sub sous grand overall net nett netto gross brut brutto amount balance invoice order incl inc including excl exc"
    " ex excluding inkl exkl zzgl ohne und mit betrag ht ttc hors toutes comprises général générale montant general"
    " base importe generale parziale fattura geral fatura valor bedrag częściowa do zu te to à a da de of the с без"
    " к общий промежуточный eur usd gbp chf pln".split()
)
_CHINESE = "(?:合计|合計|总计|總計|総計|小计|小計|共计|总额|總額|総額|汇总|計)"  # and Japanese
_COMPOUND = re.compile(
    r"(?:gesamt|zwischen|teil|end|netto|brutto|rechnungs|auftrags|zahl)+(?:summe|betrag)"
    r"|(?:gesamt|end)(?:preis|kosten|ergebnis|total)"
    r"|(?:tages|wochen|monats|quartals|jahres|gruppen)summe"
    rf"|(?:税込|税抜|含税|不含税|价税|價稅|ご?請求)*{_CHINESE}(?:金額|金额|額|额)?"
)
_BEGINS_TOTAL = re.compile(f"gesamt|{_CHINESE}")
_ENDS_TOTAL = re.compile(f"(?:ergebnis|{_CHINESE})$")
_CHINESE_DUE = re.compile(
    "(?:消費税|消费税|增值税|税額|税额)(?:等|額|额)?|ご?請求(?:金額|額)|お?支払(?:い?金額|額)|应付(?:金额|总额|款)?"
)
_SHARE = re.compile(r"(?<!\d)\d+(?:[.,]\d+)?\s?%")
_MAX_LABEL = 100  # characters: a longer one is a text
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+|\d+")

Role: TypeAlias = Literal["total", "perhaps total", "below totals", ""]
_Kind: TypeAlias = Literal["total", "begins total", "ends total", "due", "beside", ""]


def label_of(cells: Sequence[Value]) -> str:
    """Return the cell that may say what a row is: the first one, or a later one if all others are numbers or empty."""
    filled = [cell for cell in cells if cell is not None]
    texts = [cell for cell in filled if isinstance(cell, str) and _LETTER.search(cell)]
    if len(texts) == 1:
        return texts[0]
    return str(filled[0]) if filled else ""


def role_of(label: str) -> Role:
    """Return what a label says about its row.

    It is a `total` if all words say so, as in `Total HT` and `Zwischensumme`, and `perhaps total` if the label begins
    or ends with such a word, as `Total of 1910`. Of the rows just below totals, those `below totals` are not items
    either: taxes, and what is to be paid.
    """
    if len(label) > _MAX_LABEL:
        return ""
    words = _WORD.findall(_SHARE.sub(" ", label).replace(".", "").casefold())
    if not words:
        return ""
    kinds = list(map(_kind_of, words))
    if all(kinds) and "total" in kinds:
        return "total"
    if kinds[0] in {"total", "begins total"} or kinds[-1] in {"total", "ends total"}:
        return "perhaps total"
    return "below totals" if all(kinds) and "due" in kinds else ""


@lru_cache(_CACHED_WORDS)
def _kind_of(word: str) -> _Kind:
    if word in _TOTALS or _COMPOUND.fullmatch(word):
        return "total"
    if word in _DUE or _CHINESE_DUE.fullmatch(word):
        return "due"
    if word in _BESIDE:
        return "beside"
    if _BEGINS_TOTAL.match(word):
        return "begins total"
    return "ends total" if _ENDS_TOTAL.search(word) else ""
