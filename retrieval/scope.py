"""Scopes: the part of an index that a run, or a user, may see."""

from __future__ import annotations

import copy
import fnmatch
import json
import re
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag.errors import InputError

_MAX_DEPTH = 20  # of conditions inside conditions
_MISSING = object()

Test: TypeAlias = Callable[[Mapping[str, Any]], bool]


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
    documents: tuple[str, ...] | None = Field(
        default=None, description="Document ids, or patterns of them such as handbook/*."
    )

    def __init__(self, **conditions: Any) -> None:
        if isinstance(ids := conditions.get("documents"), str):  # each character would be a pattern
            raise InputError(f"the scope is not valid: {ids!r} is a string: give a list of ids or patterns")
        try:
            super().__init__(**copy.deepcopy(conditions))  # the caller may change theirs
            self.compile()  # raises an error for conditions that cannot be checked
            hash(self)
        except InputError:
            raise
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InputError(f"the scope is not valid: {faults}") from error
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
        test = _all_of([] if self.where is None else [_parse(self.where)])
        if self.documents is None:
            return lambda _, metadata: test(metadata)
        ids = frozenset(self.documents)
        patterns = [compile_pattern(pattern) for pattern in ids if "*" in pattern]
        return lambda document_id, metadata: (
            (document_id in ids or any(pattern.match(document_id) for pattern in patterns)) and test(metadata)
        )


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a text in which `*` stands for any characters; many of them take no longer."""
    return re.compile(fnmatch.translate(re.sub(r"[\[?]", r"[\g<0>]", pattern)))


def _parse(where: object, depth: int = 0) -> Test:
    """Return the test that conditions on several fields describe."""
    if depth > _MAX_DEPTH:
        raise InputError(f"the scope's conditions are nested more than {_MAX_DEPTH} deep")
    if not isinstance(where, dict) or not where:
        raise InputError(f"{where!r} is not a condition: give a field and a value, such as {{'team': 'ops'}}")
    tests: list[Test] = []
    for name, condition in where.items():
        if not isinstance(name, str):
            raise InputError(f"{name!r} is not the name of a field")
        if name in {"$and", "$or"}:
            if not isinstance(condition, list) or not condition:
                raise InputError(f"{name} needs a list of conditions, not {condition!r}")
            parts = [_parse(part, depth + 1) for part in condition]
            combine = all if name == "$and" else any
            tests.append(lambda metadata, c=combine, ts=parts: c(test(metadata) for test in ts))  # type: ignore[misc]
        elif name.startswith("$"):
            raise InputError(f"{name} is not valid around conditions: use $and or $or, or give a field's name")
        else:
            tests.append(_parse_field(name, condition))
    return _all_of(tests)


def _parse_field(name: str, condition: object) -> Test:
    """Return the test of one field: a value that it must be equal to, or operators with their operands."""
    operands = condition if isinstance(condition, dict) else {"$eq": condition}
    if not operands:
        raise InputError(f"{name} has no condition: give a value, or an operator such as $in")
    tests: list[Test] = []
    for operator, operand in operands.items():
        if operator not in _OPERATORS:
            raise InputError(f"{operator!r} is not an operator: valid are {', '.join(_OPERATORS)}")
        is_valid, compare = _OPERATORS[operator]
        if not is_valid(operand):
            raise InputError(f"{operator} of {name} cannot take {operand!r}: it needs {_NEEDED[is_valid]}")
        # Access lists may have thousands of entries.
        prepared = frozenset(map(_tagged, operand)) if isinstance(operand, list) else operand
        tests.append(lambda metadata, c=compare, o=prepared: c(metadata.get(name, _MISSING), o))  # type: ignore[misc]
    return _all_of(tests)


def _all_of(tests: list[Test]) -> Test:
    return lambda metadata: all(test(metadata) for test in tests)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def _is_ordered(value: object) -> bool:
    return _is_scalar(value) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_scalar, value))


def _tagged(value: object) -> tuple[bool, object]:
    """Return a value that is equal to those of equal values; true is not 1."""
    return isinstance(value, bool), value


def _is_equal(value: object, operand: object) -> bool:
    return _tagged(value) == _tagged(operand)


def _is_among(value: object, operands: frozenset[tuple[bool, object]]) -> bool:
    return _is_scalar(value) and _tagged(value) in operands


def _holds(value: object, operand: object) -> bool:
    return isinstance(value, list) and any(_is_equal(item, operand) for item in value)


def _ordered_by(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, operand: (
        _is_ordered(value) and isinstance(value, str) == isinstance(operand, str) and compare(value, operand)
    )


_NEEDED: dict[Callable[[object], bool], str] = {
    _is_scalar: "a text, a number, true or false",
    _is_ordered: "a number or a text",
    _is_list: "a list of texts, numbers, true or false",
}
# For each operator, what its operand must be, and how a document's value is compared with it.
_OPERATORS: dict[str, tuple[Callable[[object], bool], Callable[[Any, Any], bool]]] = {
    "$eq": (_is_scalar, _is_equal),
    "$ne": (_is_scalar, lambda value, operand: not _is_equal(value, operand)),
    "$gt": (_is_ordered, _ordered_by(gt)),
    "$gte": (_is_ordered, _ordered_by(ge)),
    "$lt": (_is_ordered, _ordered_by(lt)),
    "$lte": (_is_ordered, _ordered_by(le)),
    "$in": (_is_list, _is_among),
    "$nin": (_is_list, lambda value, operands: not _is_among(value, operands)),
    "$contains": (_is_scalar, _holds),
    "$not_contains": (_is_scalar, lambda value, operand: not _holds(value, operand)),
}
