"""Scopes: the part of an index that a run, or a user, may see."""

from __future__ import annotations

import copy
import fnmatch
import json
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import ge, gt, le, lt
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from arag.errors import InputError, list_faults
from arag.retrieval import MAX_CHARACTERS
from arag.text.normalise import shorten

Test: TypeAlias = Callable[[Mapping[str, Any]], bool]
Compare: TypeAlias = Callable[[Any, Any], bool]

_MAX_SHOWN = 100  # characters of a wrong value in a message


class Scope(BaseModel):
    """Which documents may be seen; everything else is as if the index did not hold it.

    What the conditions do not allow for certain is out of scope: a document without the field, or with a value of
    another type, matches only `$ne`, `$nin` and `$not_contains`.

    Attributes:
        where: Conditions on the documents' metadata, in Chroma's language: `{"team": "ops"}`,
            `{"year": {"$gte": 2020}}`, several fields, which must all match, and lists of conditions under `$and` and
            `$or`. Operators: `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` (numbers with numbers, texts with texts),
            `$in`, `$nin`, and, for fields that are lists, `$contains` and `$not_contains`. None allows all documents.
        documents: Ids of documents, in which `*` stands for any characters, `/` included. None allows all documents;
            an empty list allows none.

    Raises:
        InputError: A condition is not valid.

    Example:
        >>> from arag import Scope
        >>> notices = Scope(where={"year": {"$lt": 1800}}, documents=["notice-*"])
        >>> limited = index.limited_to(notices)
        >>> limited.info().documents, [hit.chunk_id for hit in limited.keyword_search("apprentice").hits]
        (2, ['notice-1763-ropewalk:0'])
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    where: dict[str, Any] | None = Field(
        default=None, description='Conditions on metadata in Chroma\'s language: {"year": {"$gte": 2020}}.'
    )
    documents: tuple[Annotated[str, StringConstraints(max_length=MAX_CHARACTERS)], ...] | None = Field(
        default=None, description="Document ids, or patterns of them such as handbook/*."
    )

    def __init__(self, **conditions: Any) -> None:
        ids = conditions.get("documents")
        if isinstance(ids, str):  # each character would be a pattern
            raise InputError(f"the scope is not valid: {_show(ids)} is a string: give a list of ids or patterns")
        try:
            super().__init__(**copy.deepcopy(conditions))  # the caller may change theirs
            self.compile()  # raises an error for conditions that cannot be checked
            hash(self)
        except InputError:
            raise
        except ValidationError as error:
            raise InputError(f"the scope is not valid: {list_faults(error)}") from error
        except (TypeError, ValueError, RecursionError) as error:  # such as a number with thousands of digits
            raise InputError(f"the scope is not valid: {error}") from error

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Scope) and self._key() == other._key()

    def _key(self) -> str:
        """Return the conditions as a text, in which true and 1 differ."""
        return json.dumps([self.where, self.documents], sort_keys=True, ensure_ascii=False)

    def allows(self, document_id: str, metadata: Mapping[str, Any]) -> bool:
        """Return whether a document with this id and metadata is in the scope."""
        return self.compile()(document_id, metadata)

    def compile(self) -> Callable[[str, Mapping[str, Any]], bool]:
        """Return `allows` as a function, for many documents."""
        test = _allows_all if self.where is None else _parse(self.where)
        if self.documents is None:
            return lambda _, metadata: test(metadata)
        ids = frozenset(self.documents)
        patterns = [compile_pattern(pattern) for pattern in ids if "*" in pattern]

        def allows(document_id: str, metadata: Mapping[str, Any]) -> bool:
            is_listed = document_id in ids or any(pattern.match(document_id) for pattern in patterns)
            return is_listed and test(metadata)

        return allows


def read_scope(given: object) -> Scope:
    """Return a given scope, or make one from its fields.

    Fields without a condition are refused: a missing entry looks the same, and it would show all documents.

    Raises:
        InputError: It is neither, or has no condition.
    """
    if isinstance(given, Scope):
        return given
    scope = Scope()
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        scope = Scope(**given)
    if scope == Scope():
        raise InputError(
            f"{_show(given)} is not a scope: give `where`, `documents` or both, leave the scope out, or, for all "
            "documents, give the object Scope(); a field `scope` that means something else needs another name"
        )
    return scope


def find_scope(context: object) -> Scope | None:
    """Return the scope in a run's context: that of an agent, or of a graph around it; None if it has none.

    Raises:
        InputError: The context's scope is not valid, or it is not a context at all: a scope in it would be ignored.
    """
    if context is None:
        return None
    if isinstance(context, Mapping):
        scope = context.get("scope")
    else:
        is_plain = isinstance(context, str | bytes | int | float | Sequence | AbstractSet | Scope | type)
        if is_plain or hasattr(context, "__getitem__"):
            raise InputError(
                f"a context cannot be {shorten(repr(context), 100)}: give Context(...), a mapping, or an object whose "
                "attribute `scope` holds the scope"
            )
        scope = getattr(context, "scope", None)
    return None if scope is None else read_scope(scope)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a text in which `*` matches any characters. Many `*` do not make it slow."""
    only_stars = re.sub(r"[\[?]", r"[\g<0>]", pattern)  # `fnmatch` gives `[` and `?` a meaning, too
    return re.compile(fnmatch.translate(only_stars))


def _show(value: object) -> str:
    return shorten(repr(value), _MAX_SHOWN)


def _parse(where: object) -> Test:
    """Return the test that conditions on several fields describe."""
    if not isinstance(where, dict) or not where:
        raise InputError(f"{_show(where)} is not a condition: give a field and a value, such as {{'team': 'ops'}}")
    tests: list[Test] = []
    for name, condition in where.items():
        if name in {"$and", "$or"}:
            tests.append(_parse_group(name, condition))
        elif not isinstance(name, str) or name.startswith("$"):
            raise InputError(f"{_show(name)} is not valid around conditions: use $and or $or, or give a field's name")
        else:
            tests.append(_parse_field(name, condition))
    return _all_of(tests)


def _parse_group(operator: str, conditions: object) -> Test:
    """Return the test that a list of conditions under `$and` or `$or` describes."""
    if not isinstance(conditions, list) or not conditions:
        raise InputError(f"{operator} needs a list of conditions, not {_show(conditions)}")
    tests = [_parse(condition) for condition in conditions]
    return _all_of(tests) if operator == "$and" else _any_of(tests)


def _parse_field(name: str, condition: object) -> Test:
    """Return the test of one field: a value that it equals, or operators with their operands."""
    if not isinstance(condition, dict) or not condition:
        return _parse_operator(name, "$eq", condition)
    return _all_of([_parse_operator(name, operator, operand) for operator, operand in condition.items()])


def _parse_operator(name: str, operator: str, operand: Any) -> Test:
    """Return the test that compares a field with an operand."""
    if operator not in _OPERATORS:
        raise InputError(f"{_show(operator)} is not an operator: valid are {', '.join(_OPERATORS)}")
    if operator in {"$in", "$nin"}:
        is_valid = isinstance(operand, list) and all(_is_scalar(value) for value in operand)
        needed = "a list of texts, numbers, true or false"
    else:
        is_valid = _is_scalar(operand)
        needed = "a text, a number, true or false"
    if not is_valid:
        raise InputError(f"{operator} of {shorten(name, _MAX_SHOWN)} cannot take {_show(operand)}: it needs {needed}")
    if isinstance(operand, list):
        operand = frozenset(_tagged(value) for value in operand)  # access lists may have thousands of entries
    compare = _OPERATORS[operator]
    return lambda metadata: compare(metadata.get(name), operand)


def _allows_all(_: Mapping[str, Any]) -> bool:
    return True


def _all_of(tests: list[Test]) -> Test:
    return lambda metadata: all(test(metadata) for test in tests)


def _any_of(tests: list[Test]) -> Test:
    return lambda metadata: any(test(metadata) for test in tests)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def _tagged(value: object) -> tuple[bool, object]:
    """Return a value that is equal to those of equal values; true is not 1."""
    return isinstance(value, bool), value


def _is_equal(value: object, operand: object) -> bool:
    return _tagged(value) == _tagged(operand)


def _is_among(value: object, operands: frozenset[tuple[bool, object]]) -> bool:
    return _is_scalar(value) and _tagged(value) in operands


def _holds(value: object, operand: object) -> bool:
    return isinstance(value, list) and any(_is_equal(item, operand) for item in value)


def _ordered_by(compare: Compare) -> Compare:
    """Return a comparison of numbers with numbers, and texts with texts; nothing else matches."""

    def is_ordered(value: object, operand: object) -> bool:
        if isinstance(value, bool) or isinstance(operand, bool):
            return False
        are_texts = isinstance(value, str) and isinstance(operand, str)
        are_numbers = isinstance(value, int | float) and isinstance(operand, int | float)
        return (are_texts or are_numbers) and compare(value, operand)

    return is_ordered


def _not(compare: Compare) -> Compare:
    return lambda value, operand: not compare(value, operand)


# How a document's value is compared with an operand; it is None if the document has none.
_OPERATORS: dict[str, Compare] = {
    "$eq": _is_equal,
    "$ne": _not(_is_equal),
    "$gt": _ordered_by(gt),
    "$gte": _ordered_by(ge),
    "$lt": _ordered_by(lt),
    "$lte": _ordered_by(le),
    "$in": _is_among,
    "$nin": _not(_is_among),
    "$contains": _holds,
    "$not_contains": _not(_holds),
}
