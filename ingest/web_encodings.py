"""The encodings of web pages, by every name that the HTML standard has for them."""

from __future__ import annotations

import codecs

# The encodings of the HTML standard, by the names that Python has for them: each is taken for what the standard takes
# it for, a superset, such as one with the quotes of Windows. A declaration that can be read as ASCII is not in UTF-16.
# No other codec of Python's is for web pages, and some take quadratic time (punycode, idna).
_WEB_ENCODINGS = {
    "utf-8": "utf-8",
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "utf-8"),
    **dict.fromkeys(("ascii", "iso8859-1", "cp1252"), "windows-1252"),
    **dict.fromkeys(("iso8859-9", "cp1254"), "windows-1254"),
    **dict.fromkeys(("iso8859-11", "tis-620", "cp874"), "cp874"),
    **{f"cp{number}": f"windows-{number}" for number in (1250, 1251, 1253, 1255, 1256, 1257, 1258)},
    **{f"iso8859-{part}": f"iso-8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{name: name for name in ("cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic")},
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("big5", "big5hkscs"), "big5hkscs"),
    "euc_jp": "euc-jp",
    "iso2022_jp": "iso-2022-jp",
    **dict.fromkeys(("shift_jis", "cp932"), "cp932"),
    **dict.fromkeys(("euc_kr", "cp949"), "cp949"),
}
# Names of the standard that Python does not know.
_WEB_NAMES = {
    "dos-874": "cp874",
    "windows-874": "cp874",
    "iso-8859-6-e": "iso-8859-6",
    "iso-8859-6-i": "iso-8859-6",
    "iso-8859-8-e": "iso-8859-8",
    "iso-8859-8-i": "iso-8859-8",
    "logical": "iso-8859-8",
    "visual": "iso-8859-8",
    "koi": "koi8-r",
    "koi8": "koi8-r",
    "koi8-ru": "koi8-u",
    "mac": "mac-roman",
    "x-mac-roman": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic",
    "gb_2312": "gb18030",
    "gb_2312-80": "gb18030",
    "x-gbk": "gb18030",
    "cn-big5": "big5",
    "x-x-big5": "big5",
    "x-euc-jp": "euc-jp",
    "shift-jis": "cp932",
    "windows-31j": "cp932",
    "x-sjis": "cp932",
    "ks_c_5601-1989": "cp949",
    "windows-949": "cp949",
    "unicode-1-1-utf-8": "utf-8",
    **{f"x-cp{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"iso8859{part}": f"iso-8859-{part}" for part in range(1, 17)},
}


def web_encoding(declared: str) -> str | None:
    """Return the encoding that a browser takes a declared one for; None where it knows none of that name."""
    try:
        return _WEB_ENCODINGS.get(codecs.lookup(_WEB_NAMES.get(declared, declared)).name)
    except (LookupError, ValueError):
        return None
