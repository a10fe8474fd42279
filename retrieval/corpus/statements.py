"""SQL statements as models write them: names in quotation marks, and the chunks that their rows are from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag.retrieval.corpus.tables import CHUNK_ID, CorpusTable, sql_name

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|--[^\n]*|/\*.*?(?:\*/|\Z))*+)
    (?:(?P<text>[xX]?'(?:[^']|'')*'?)
    |(?P<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
    |(?P<other>\d[\w.]*|[<>=!|]+|.)
    |\Z)""",
    re.DOTALL | re.VERBOSE,
)
_FENCED = re.compile(r"```(?:sql|sqlite)?\s(.*?)```", re.DOTALL | re.IGNORECASE)
_COMPARISONS = frozenset("= == != <> < <= > >= LIKE GLOB".split())
_AGGREGATES = frozenset(
    "AVG COUNT GROUP_CONCAT JSON_GROUP_ARRAY JSON_GROUP_OBJECT MAX MEDIAN MIN PERCENTILE STRING_AGG SUM TOTAL".split()
)
_EXTREMES = frozenset(["MAX", "MIN"])
_COMPOUNDS = frozenset(["UNION", "INTERSECT", "EXCEPT"])
_AFTER_TABLE = frozenset(
    "WHERE GROUP HAVING ORDER LIMIT WINDOW JOIN LEFT RIGHT FULL INNER CROSS NATURAL ON USING INDEXED NOT".split()
)


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, a name, a text or a sign of a statement."""

    kind: str
    space: str  # in front of it; comments are space, too
    text: str
    before: str  # the word or sign in front of it, in upper case
    depth: int  # of brackets around it
    is_listed: bool  # whether the innermost ones are those of `IN (...)`

    @property
    def word(self) -> str:
        """The word or sign in upper case; empty for a text, or a name in quotation marks."""
        return self.text.upper() if self.kind in {"word", "other"} else ""

    @property
    def name(self) -> str:
        """The name that it is, without quotation marks."""
        return _unquote(self.text) if self.kind == "quoted" else self.text


def _read_tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    are_lists: list[bool] = []  # the brackets that are open
    before = ""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "space"
        if kind == "space":  # the end
            break
        text = match[kind]
        if text == ")" and are_lists:
            are_lists.pop()
        token = _Token(
            kind=kind,
            space=" " if match["space"] else "",
            text=text,
            before=before,
            depth=len(are_lists),
            is_listed=are_lists[-1:] == [True],
        )
        tokens.append(token)
        if text == "(":
            are_lists.append(before == "IN")
        before = token.word
    return tokens


def _join(tokens: Sequence[_Token]) -> str:
    return "".join(token.space + token.text for token in tokens)


def _unquote(text: str) -> str:
    mark = text[0]
    if mark == "[":
        return text[1:].removesuffix("]")
    return text[1:].removesuffix(mark).replace(mark * 2, mark)


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
    aliases = {token.name for token in tokens if token.kind == "quoted" and token.before in {"AS", ")"}}
    resolved = ""
    for token in tokens:
        text = token.text
        if token.kind == "quoted":
            text = _resolve_quoted(token, known, aliases)
        elif token.kind == "word" and not text.isascii():  # SQLite ignores the case of ASCII letters only
            text = known.get(text.casefold(), text)
        resolved += token.space + text
    return resolved


def _known_names(tables: Mapping[str, CorpusTable]) -> dict[str, str]:
    """Return the names of tables and columns by the forms in which a statement may have them, ignoring case."""
    columns = [column for table in tables.values() for column in table.columns]
    names: dict[str, str] = {}
    for column in columns:
        names.setdefault(column.label.casefold(), column.name)
    for column in columns:
        names[column.name] = column.name
    for name in tables:
        names[name] = name
    return names


def _resolve_quoted(token: _Token, known: Mapping[str, str], aliases: set[str]) -> str:
    name = token.name
    if name not in aliases:
        found = known.get(name.casefold()) or known.get(sql_name(name))
        if found is None and _may_be_text(token):
            return "'" + name.replace("'", "''") + "'"
        name = found or name
    return "`" + name.replace("`", "``") + "`"  # which SQLite never takes for a text


def _may_be_text(token: _Token) -> bool:
    """Return whether a name in double quotes is where a text may be: it is compared with something."""
    if not token.text.startswith('"'):
        return False
    return token.before in _COMPARISONS or (token.is_listed and token.before in {"(", ","})


def list_names(sql: str) -> set[str]:
    """Return the names in a statement, in lower case."""
    return {token.name.lower() for token in _read_tokens(sql) if token.kind in {"word", "quoted"}}


# --- the chunks that rows are from ---


def with_origins(sql: str) -> list[str]:
    """Return forms of a statement with one more column: the chunk that each row is from, or a JSON list of chunks.

    There are none for statements that have the column already, and for those where another column would change the
    rows.
    """
    tokens = _read_tokens(sql)
    top = {place: token.word for place, token in enumerate(tokens) if token.depth == 0}
    words = list(top.values())
    if words.count("SELECT") != 1 or words.count("FROM") != 1 or not _COMPOUNDS.isdisjoint(words):
        return []
    places = {word: place for place, word in top.items()}
    columns = tokens[places["SELECT"] + 1 : places["FROM"]]
    if _has_origins(columns):
        return []
    aggregates = _list_aggregates(columns)
    is_of_one_row = len(aggregates) == 1 and aggregates[0] in _EXTREMES  # SQLite then takes other columns from that row
    is_aggregate = bool(aggregates) or "GROUP" in words
    before = _join(tokens[: places["FROM"]])
    after = _join(tokens[places["FROM"] :])
    forms: list[str] = []
    alias = _first_alias(tokens[places["FROM"] + 1 :])
    for column in (CHUNK_ID, f"{alias}.{CHUNK_ID}"):  # several tables may have the column
        origin = column
        if is_aggregate and not is_of_one_row:
            origin = f"json_group_array(DISTINCT {column})"
        forms.append(f"{before}, {origin} {after}")
    return forms


def _has_origins(columns: Sequence[_Token]) -> bool:
    """Return whether the columns of a statement have the chunk already, or must not have it, after DISTINCT."""
    for token in columns:
        if token.depth:
            continue
        is_star = token.text == "*" and token.before in {"SELECT", ",", ".", "ALL"}
        if is_star or token.word == "DISTINCT" or token.name.lower() == CHUNK_ID:
            return True
    return False


def _list_aggregates(columns: Sequence[_Token]) -> list[str]:
    """Return the aggregate functions in the columns of a statement, without those in subqueries."""
    found: list[str] = []
    subquery_depth: int | None = None
    for place, token in enumerate(columns):
        if subquery_depth is not None and token.depth < subquery_depth:
            subquery_depth = None
        if subquery_depth is None and token.word == "SELECT":
            subquery_depth = token.depth
        if subquery_depth is None and token.word in _AGGREGATES and _is_aggregate(columns[place:]):
            found.append(token.word)
    return found


def _is_aggregate(tokens: Sequence[_Token]) -> bool:
    """Return whether tokens begin with a call of an aggregate function: not `max(a, b)`, and not over a window."""
    function, *rest = tokens
    if not rest or rest[0].text != "(":
        return False
    end = next((place for place, token in enumerate(rest) if place and token.depth == function.depth), len(rest))
    commas = [token for token in rest[:end] if token.text == "," and token.depth == function.depth + 1]
    if commas and function.word in _EXTREMES:
        return False
    following = [token.word for token in rest[end + 1 :]]
    if following[:1] == ["FILTER"]:
        return "OVER" not in following
    return following[:1] != ["OVER"]


def _first_alias(tokens: Sequence[_Token]) -> str:
    """Return the name by which the first table behind FROM is known."""
    if not tokens:
        return ""
    table, *rest = tokens
    if rest and rest[0].word == "AS":
        rest = rest[1:]
    if rest and rest[0].kind in {"word", "quoted"} and rest[0].word not in _AFTER_TABLE:
        return rest[0].text
    return table.text
