"""SQL statements as models write them: names in quotation marks, and the chunks that their rows are from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag.retrieval.corpus.tables import CHUNK_ID, CorpusTable, sql_name

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>[xX]?'(?:[^']|'')*'?)
    |(?P<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
    |(?P<other>\d[\w.]*|[<>=!|]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_FENCED = re.compile(r"```(?:sql|sqlite)?\s(.*?)```", re.DOTALL | re.IGNORECASE)
_COMPARISONS = frozenset("= == != <> < <= > >= LIKE GLOB".split())
_AGGREGATES = frozenset(
    "AVG COUNT GROUP_CONCAT JSON_GROUP_ARRAY JSON_GROUP_OBJECT MAX MEDIAN MIN PERCENTILE STRING_AGG SUM TOTAL".split()
)
_EXTREMES = frozenset(["MAX", "MIN"])
_COMPOUNDS = frozenset(["UNION", "INTERSECT", "EXCEPT"])
_AFTER_FROM = frozenset(
    "WHERE GROUP HAVING ORDER LIMIT WINDOW JOIN LEFT RIGHT FULL INNER CROSS NATURAL ON USING INDEXED NOT".split()
)


@dataclass(frozen=True, slots=True)
class _Token:
    """A part of a statement."""

    kind: str
    text: str
    depth: int = 0  # of brackets around it
    is_listed: bool = False  # whether the innermost ones are those of `IN (...)`

    @property
    def word(self) -> str:
        """The text in upper case; empty for a text or a name in quotation marks."""
        return self.text.upper() if self.kind in {"word", "other"} else ""


def _read_tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    lists: list[bool] = []
    before = ""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "other"
        text = match[0]
        if text == ")" and lists:
            lists.pop()
        token = _Token(kind, text, len(lists), bool(lists) and lists[-1])
        tokens.append(token)
        if text == "(":
            lists.append(before == "IN")
        if kind != "space":
            before = token.word
    return tokens


def _join(tokens: Sequence[_Token]) -> str:
    return "".join(token.text for token in tokens)


def without_fence(sql: str) -> str:
    """Return a statement without white space around it, and without the fence of a code block."""
    sql = sql.strip()
    fenced = _FENCED.fullmatch(sql)
    return fenced[1].strip() if fenced else sql


# --- names ---


def resolve_names(sql: str, tables: Mapping[str, CorpusTable]) -> str:
    """Return a statement with the names that SQLite knows.

    A name in double quotes may be a column's name in the documents. If no column has it, and it is compared with
    something, it is a text. SQLite itself would take every unknown name for a text, without an error.

    Args:
        sql: The statement.
        tables: The tables, by name.
    """
    known = _known_names(tables)
    tokens = _read_tokens(sql)
    aliases = _list_aliases(tokens)
    resolved: list[_Token] = []
    before = ""
    for token in tokens:
        if token.kind == "quoted":
            is_text = before in _COMPARISONS or (token.is_listed and before in {"(", ","})
            text = _resolve_quoted(token.text, known, aliases, is_text=is_text)
            resolved.append(_Token("quoted", text))
        elif token.kind == "word" and not token.text.isascii():  # SQLite ignores the case of ASCII letters only
            resolved.append(_Token("word", known.get(token.text.casefold(), token.text)))
        else:
            resolved.append(token)
        if token.kind != "space":
            before = token.word
    return _join(resolved)


def _known_names(tables: Mapping[str, CorpusTable]) -> dict[str, str]:
    """Return the names of tables and columns by the forms in which a statement may have them, ignoring case."""
    names: dict[str, str] = {}
    for table in tables.values():
        for column in table.columns:
            names.setdefault(column.label.casefold(), column.name)
    for table in tables.values():
        for column in table.columns:
            names[column.name] = column.name
        names[table.name] = table.name
    return names


def _list_aliases(tokens: Sequence[_Token]) -> set[str]:
    """Return the names in quotation marks that a statement gives to columns or tables."""
    aliases: set[str] = set()
    before = ""
    for token in tokens:
        if token.kind == "quoted" and before in {"AS", ")"}:
            aliases.add(_unquote(token.text))
        if token.kind != "space":
            before = token.word
    return aliases


def _resolve_quoted(text: str, known: Mapping[str, str], aliases: set[str], *, is_text: bool) -> str:
    name = _unquote(text)
    is_double = text.startswith('"')
    if name not in aliases:
        found = known.get(name.casefold()) or known.get(sql_name(name))
        if found is not None:
            name = found
        elif is_double and is_text:
            return "'" + name.replace("'", "''") + "'"
    return "`" + name.replace("`", "``") + "`"  # which SQLite never takes for a text


def _unquote(text: str) -> str:
    mark = text[0]
    if mark == "[":
        return text[1:].removesuffix("]")
    return text[1:].removesuffix(mark).replace(mark * 2, mark)


def words_of(sql: str) -> set[str]:
    """Return the names in a statement, in lower case."""
    names: set[str] = set()
    for token in _read_tokens(sql):
        if token.kind == "word":
            names.add(token.text.lower())
        elif token.kind == "quoted":
            names.add(_unquote(token.text).lower())
    return names


# --- the chunks that rows are from ---


def with_origins(sql: str) -> list[str]:
    """Return forms of a statement with one more column: the chunk that each row is from, or a JSON list of chunks.

    There are none for statements that have the column already, and for those where another column would change the
    rows.
    """
    tokens = [token for token in _read_tokens(sql) if token.kind != "space" or not token.text.startswith(("-", "/"))]
    top = [(place, token) for place, token in enumerate(tokens) if token.depth == 0]
    selects = [place for place, token in top if token.word == "SELECT"]
    froms = [place for place, token in top if token.word == "FROM"]
    if len(selects) != 1 or len(froms) != 1 or any(token.word in _COMPOUNDS for _, token in top):
        return []
    selected = tokens[selects[0] + 1 : froms[0]]
    if _selects_chunk_id(selected):
        return []
    is_grouped = any(token.word == "GROUP" for _, token in top)
    aggregates = _list_aggregates(selected)
    forms: list[str] = []
    alias = _first_alias(tokens[froms[0] + 1 :])
    for column in (CHUNK_ID, f"{alias}.{CHUNK_ID}"):
        origin = column
        is_of_one_row = len(aggregates) == 1 and aggregates[0] in _EXTREMES
        if (is_grouped or aggregates) and not is_of_one_row:
            origin = f"json_group_array(DISTINCT {column})"
        forms.append(f"{_join(tokens[: froms[0]])}, {origin} {_join(tokens[froms[0] :])}")
    return forms


def _selects_chunk_id(selected: Sequence[_Token]) -> bool:
    """Return whether the columns of a statement have the chunk already, or must not have it: `DISTINCT`, `*`."""
    before = ""
    for token in selected:
        if token.depth == 0:
            is_star = token.text == "*" and before in {"", ",", ".", "ALL"}
            if is_star or token.word == "DISTINCT" or _unquoted(token) == CHUNK_ID:
                return True
        if token.kind != "space":
            before = token.word or "x"
    return False


def _unquoted(token: _Token) -> str:
    if token.kind == "quoted":
        return _unquote(token.text).lower()
    return token.text.lower()


def _list_aggregates(selected: Sequence[_Token]) -> list[str]:
    """Return the aggregate functions in the columns of a statement; those in subqueries and windows do not count."""
    tokens = [token for token in selected if token.kind != "space"]
    found: list[str] = []
    skipped_from = -1  # the depth of a subquery
    for place, token in enumerate(tokens):
        if skipped_from >= 0 and token.depth >= skipped_from:
            continue
        skipped_from = -1
        following = tokens[place + 1].text if place + 1 < len(tokens) else ""
        if token.word == "SELECT":
            skipped_from = token.depth
        elif token.word in _AGGREGATES and following == "(" and _is_aggregate(tokens, place):
            found.append(token.word)
    return found


def _is_aggregate(tokens: Sequence[_Token], place: int) -> bool:
    """Return whether a call is one of an aggregate function: not `max(a, b)`, and not over a window."""
    depth = tokens[place].depth
    has_comma = False
    for end in range(place + 2, len(tokens)):
        token = tokens[end]
        if token.depth == depth:  # the closing bracket
            after = tokens[end + 1].word if end + 1 < len(tokens) else ""
            is_window = after == "OVER" or (after == "FILTER" and any(t.word == "OVER" for t in tokens[end:]))
            return not is_window and not (has_comma and tokens[place].word in _EXTREMES)
        if token.text == "," and token.depth == depth + 1:
            has_comma = True
    return False


def _first_alias(tokens: Sequence[_Token]) -> str:
    """Return the name by which the first table behind FROM is known."""
    names = [token for token in tokens if token.kind != "space"]
    if not names:
        return ""
    alias = names[0].text
    rest = names[1:]
    if rest and rest[0].word == "AS":
        rest = rest[1:]
    if rest and rest[0].kind in {"word", "quoted"} and rest[0].word not in _AFTER_FROM:
        alias = rest[0].text
    return alias
