"""SQL statements as models write them: names in quotation marks, and the chunks that their rows are from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arag.retrieval.corpus.table_names import sql_name
from arag.retrieval.corpus.tables import CHUNK_ID, CorpusTable

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>[xX]?'(?:[^']|'')*'?)
    |(?P<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
    |(?P<sign>\d[\w.]*|[<>=!|]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_FENCED = re.compile(r"\A```(?:sql|sqlite)?\s(.*?)```\Z", re.DOTALL | re.IGNORECASE)
_COMPARISONS = frozenset("= == != <> < <= > >= LIKE GLOB BETWEEN".split())
_AGGREGATES = frozenset(
    "AVG COUNT GROUP_CONCAT JSON_GROUP_ARRAY JSON_GROUP_OBJECT MAX MEDIAN MIN PERCENTILE STRING_AGG SUM TOTAL".split()
)
_EXTREMES = frozenset(["MAX", "MIN"])
_BEFORE_TABLES = frozenset(["FROM", "JOIN", "UPDATE"])
_CLAUSES = frozenset("SELECT FROM WHERE GROUP HAVING ORDER LIMIT".split())
_COMPOUNDS = frozenset(["EXCEPT", "INTERSECT", "UNION"])
# Words and signs in front of a column; other words, names and texts are in front of an alias.
_BEFORE_COLUMNS = frozenset(
    "SELECT DISTINCT ALL , ( . BY WHERE AND OR ON NOT HAVING WHEN THEN ELSE CASE IN LIKE GLOB BETWEEN "
    "= == != <> < <= > >= || + -".split()
)
_NO_LISTS = {(), *((word,) for word in ("", "SELECT", "USING", "IN", "WHERE", "AND", "ON", *_AGGREGATES))}
_TABLE_AND_ALIAS = 3  # names at most: `harvest AS h`


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of a statement: space, a word, a name in quotation marks, a text or a sign."""

    kind: str
    text: str
    before: str  # the word or sign in front of it, in upper case
    brackets: tuple[str, ...]  # around it: for each, the word in front, or SELECT for a subquery

    @property
    def word(self) -> str:
        """The word or sign in upper case; empty for a text, or a name in quotation marks."""
        if self.kind in {"word", "sign"}:
            return self.text.upper()
        return ""

    @property
    def name(self) -> str:
        """The name without its quotation marks."""
        mark = self.text[0].replace("[", "]")
        return self.text[1:].removesuffix(mark).replace(mark * 2, mark)


def _read_tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    brackets: list[str] = []  # the open ones
    before = ""
    for match in _TOKEN.finditer(sql):
        if match[0] == ")":
            del brackets[-1:]  # if one is open
        token = _Token(
            kind=str(match.lastgroup),
            text=match[0],
            before=before,
            brackets=tuple(brackets),
        )
        tokens.append(token)
        if token.kind == "space":
            continue
        if token.text == "(":
            brackets.append(before)
        if token.word == "SELECT" and before == "(":
            brackets[-1] = "SELECT"
        before = token.word
    return tokens


def _join(tokens: Sequence[_Token]) -> str:
    return "".join(token.text for token in tokens)


def without_fence(sql: str) -> str:
    """Return a statement without white space around it, and without the fence of a code block."""
    return _FENCED.sub(r"\1", sql.strip()).strip()


def first_word(sql: str) -> str:
    """Return the first word or sign of a statement, behind comments; empty if there is none."""
    words = (token.text for token in _read_tokens(sql) if token.kind != "space")
    return next(words, "")


# --- names ---


def resolve_names(sql: str, tables: Mapping[str, CorpusTable]) -> str:
    """Return a statement with the names that SQLite knows.

    A name in double quotes may be a column's name in the documents. If no column has it, and it is compared with
    something, it is a text. SQLite itself would take every unknown name for a text, without an error.

    Args:
        sql: The statement.
        tables: The tables, by name.
    """
    return "".join(resolved for _, resolved in _resolve(sql, tables))


def as_written(column: str, sql: str, tables: Mapping[str, CorpusTable]) -> str:
    """Return the name that SQLite gives to an expression with the quoted names as the statement has them."""
    if "`" not in column:
        return column
    for token, resolved in _resolve(sql, tables):
        if token.kind == "quoted":
            column = column.replace(resolved, token.text)
    return column


def _resolve(sql: str, tables: Mapping[str, CorpusTable]) -> Iterator[tuple[_Token, str]]:
    """Yield the pieces of a statement, each with the text that SQLite knows."""
    names = _known_names(tables)
    tokens = _read_tokens(sql)
    for token in tokens:
        if token.kind == "quoted" and token.before in {"AS", ")"}:  # an alias
            names[token.name.casefold()] = token.name
    for token in tokens:
        text = token.text
        if token.kind == "quoted":
            text = _resolve_quoted(token, names)
        elif not text.isascii():  # SQLite ignores the case of ASCII letters only
            text = names.get(text.casefold(), text)
        yield token, text


def _known_names(tables: Mapping[str, CorpusTable]) -> dict[str, str]:
    """Return the names of tables and columns by the forms in which a statement may have them, ignoring case."""
    labels: dict[str, str] = {}
    names: dict[str, str] = {}
    for table in tables.values():
        names[table.name] = table.name
        for column in table.columns:
            names[column.name] = column.name
            labels.setdefault(column.label.casefold(), column.name)
    return labels | names  # names in SQL win over those in the documents


def _resolve_quoted(token: _Token, names: Mapping[str, str]) -> str:
    name = token.name
    known = names.get(name.casefold()) or names.get(sql_name(name))
    if known is None and _may_be_text(token):
        return "'" + name.replace("'", "''") + "'"
    return "`" + (known or name).replace("`", "``") + "`"  # which SQLite never takes for a text


def _may_be_text(token: _Token) -> bool:
    """Return whether a name in double quotes is compared with something, as a text is."""
    return token.text.startswith('"') and _is_compared(token)


def _is_compared(token: _Token) -> bool:
    is_listed = token.before in {"(", ","} and token.brackets[-1:] == ("IN",)
    return is_listed or token.before in _COMPARISONS


def find_sources(sql: str, tables: Collection[str]) -> dict[str, str]:
    """Return the tables that a statement reads, by their names and aliases in it.

    Any word behind a table counts as its alias: if it is another word, no column can be of it.
    """
    tokens = [token for token in _read_tokens(sql) if token.kind != "space"]
    sources: dict[str, str] = {}
    clause = ""
    for place, token in enumerate(tokens):
        if token.word in _CLAUSES:
            clause = token.word
        name = _plain_name(token)
        is_listed = token.before in {",", "("} and clause == "FROM"
        is_source = is_listed or token.before in _BEFORE_TABLES
        if name not in tables or not is_source:
            continue
        sources[name] = name
        following = [_plain_name(other) for other in tokens[place + 1 : place + _TABLE_AND_ALIAS]]
        if following[:1] == ["as"]:
            del following[0]
        if following:
            sources.setdefault(following[0], name)
    return sources


def find_compared(sql: str, columns: Collection[str]) -> list[tuple[str, str]]:
    """Return the texts of a statement, each with the last column named in front of it, which is compared with it."""
    compared: list[tuple[str, str]] = []
    column = ""
    for token in _read_tokens(sql):
        name = _plain_name(token)
        if token.kind == "text" and _is_compared(token):
            compared.append((column, token.name))
        elif name in columns:
            column = name
    return compared


# --- the chunks that rows are from ---


def with_origins(sql: str) -> list[str]:
    """Return forms of a statement with one more column: the chunk that each row is from, or a JSON list of chunks.

    Of several tables, the first that is named counts. A form need not be valid. There are no forms for a statement
    whose rows would be other ones with another column.
    """
    tokens = _read_tokens(sql)
    words: list[str] = []
    for token in tokens:
        words.append("" if token.brackets else token.word)
    if words.count("SELECT") != 1 or "FROM" not in words:
        return []
    start = words.index("SELECT")
    end = words.index("FROM")
    if "DISTINCT" in words[start:end]:
        return []
    origin = "{}"
    if _has_groups(tokens[start:end], words[end:]):
        origin = "json_group_array(DISTINCT {})"
    forms: list[str] = []
    for column in _origin_columns(tokens[end + 1 :]):
        forms.append(f"{_join(tokens[:end])}, {origin.format(column)} {_join(tokens[end:])}")
    return forms


def _has_groups(columns: Sequence[_Token], clauses: Sequence[str]) -> bool:
    """Return whether rows are made of several rows. With max() or min() alone, SQLite takes the row that has it."""
    calls: list[str] = []
    scalars: set[str] = set()  # max(a, b) is no aggregate
    for token in columns:
        if token.text == "(" and token.before in _AGGREGATES and "SELECT" not in token.brackets:
            calls.append(token.before)
        if token.text == ",":
            scalars.update(_EXTREMES.intersection(token.brackets[-1:]))
    aggregates = [call for call in calls if call not in scalars]
    if aggregates in (["MAX"], ["MIN"]):
        return False
    if "GROUP" in clauses:
        return True
    is_over_window = any(token.word == "OVER" for token in columns)
    return bool(aggregates) and not is_over_window


def _origin_columns(source: Sequence[_Token]) -> list[str]:
    """Return names that the column of the chunk may have; if several tables have it, it needs the first one's alias."""
    columns = [CHUNK_ID]
    words = [token for token in source if token.kind != "space"]
    for token in words[:_TABLE_AND_ALIAS]:
        columns.append(f"{token.text}.{CHUNK_ID}")
    return columns


def may_make_column(sql: str, name: str) -> bool:
    """Return whether a statement may itself say what a column of some name has, and not take it from a table.

    Examples are `SELECT 'a.md:0' AS chunk_id`, `WITH t(chunk_id) AS ...` and `SELECT chunk_id FROM t UNION SELECT ...`.
    A statement may be taken for one that does.
    """
    tokens = [token for token in _read_tokens(sql) if token.kind != "space"]
    words = [token.word for token in tokens]
    named = [token for token in tokens if _plain_name(token) == name]
    if any(_is_alias(token, has_with="WITH" in words) for token in named):
        return True
    if _COMPOUNDS.isdisjoint(words):
        return False
    # The first SELECT names the columns, and the others say what they have.
    firsts = [_plain_name(following) for token, following in pairwise(tokens) if token.word == "SELECT"]
    return set(firsts) != {name} or len(named) != len(firsts)


def _plain_name(token: _Token) -> str:
    is_quoted = token.kind in {"quoted", "text"}
    return (token.name if is_quoted else token.text).lower()


def _is_alias(token: _Token, *, has_with: bool) -> bool:
    """Return whether a name may be a new one for something else, with or without AS, or in the list of a WITH."""
    if token.before not in _BEFORE_COLUMNS:
        return True
    return has_with and token.brackets[-1:] not in _NO_LISTS
