"""Letters that a PDF says are dingbats: Ghostscript writes this for fonts of TeX that are pictures of letters.

Such a font names the glyph of `e` after its code, `a101`, which is also the name of a dingbat, `❡`.
"""

from __future__ import annotations

import re

from arag.ingest.formats.pdf.glyphs import PageText

_QUOTES = dict(zip("✏✑✒✓✔✕✖", "“”„«»–—", strict=True))  # of fonts for Western languages, from the code 16 on
_LIGATURES = dict(zip("☛☞✌✍✎✛✜✢✣✤", ["ff", "fi", "fl", "ffi", "ffl"] * 2, strict=True))  # from 11 and from 27 on
_FIRST_SIGN = 33
_SIGNS = "✦✧★✩✪✫✬✭✮✯✰✱✲✳✴✵✶✷✸✹✺✻✼✽✾✿❀❁❂❃❄❅❆❇❈❉❊❋●❍■❏❑▲▼◆❖\0◗❘❙❚❯❱❲❳❨❩❬❭❪❫❴❵❛❜❝❞❡❢❣❤✐❥❦❧♠♥♦♣\0\0\0\0✉✈✇①②③④⑤"
_LETTERS = {sign: chr(code) for code, sign in enumerate(_SIGNS, _FIRST_SIGN)} | _QUOTES | _LIGATURES
_DINGBAT = re.compile(f"[{''.join(_LETTERS.keys() - {chr(0)})}]")
_MIN_DINGBATS = 20  # on a page that has letters as dingbats: others may have some bullets


def find_letters(page: PageText) -> dict[int, str]:
    """Return the letters of a page that are said to be dingbats, by their places. Their font has no name."""
    places = [match.start() for match in _DINGBAT.finditer(page.text)]
    if len(places) < _MIN_DINGBATS:
        return {}
    return {place: _LETTERS[page.text[place]] for place in places if page.font_name(place) == ""}
