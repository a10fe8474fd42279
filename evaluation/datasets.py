"""Questions with their gold answers, from the authors' files and from the public datasets.

The public multi-hop datasets give paragraphs with every question. All of them, each once, are the corpus of an
experiment. `paragraphs` reads them, so that an experiment needs only the downloaded file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from arag.errors import InputError
from arag.evaluation.files import write_file
from arag.ingest.formats.content import clean_characters, clean_text

_IDS = ("id", "qid", "_id", "question_id", "financebench_id")
_ANSWERS = ("answer", "gold_answer")
_ALIASES = ("answer_aliases", "aliases")
# The corpus of an experiment is not repeated as a field of every record.
_USED = {*_IDS, *_ANSWERS, *_ALIASES, "question", "supporting", "paragraphs"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MAX_SHOWN = 60  # characters of an invalid value in messages

# Where a gold answer is: a document, by its id, or a page of one, from 1. A page's document is named without folder and
# suffix.
Source: TypeAlias = str | tuple[str, int]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of an experiment.

    Attributes:
        id: Its unique id.
        text: The question.
        answer: The gold answer.
        aliases: Other accepted answers.
        gold_documents: Ids of the documents with the answer, if the data has them. FinanceBench's are names without
            folder and suffix, which `corpora.locate_gold` replaces with the ids in an index.
        gold_pages: Pages with the answer, if the data has them: then these count as gold, not the documents.
        fields: The other fields of the data.
    """

    id: str
    text: str
    answer: str
    aliases: tuple[str, ...] = ()
    gold_documents: tuple[str, ...] = ()
    gold_pages: tuple[tuple[str, int], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a public dataset, a document of its corpus.

    Attributes:
        id: Its id, made from its text: the same paragraph has the same id in every file.
        title: Its title.
        text: Its text.
    """

    id: str
    title: str
    text: str


def load_questions(file: Path) -> list[Question]:
    """Read questions.

    The file is a JSON list or JSON Lines, in one of these formats: the authors' (`id` or `qid`, `question`, `answer` or
    `gold_answer`), MuSiQue's (with `paragraphs`), HotpotQA's and 2WikiMultiHopQA's (`_id`, `supporting_facts`,
    `context`, as pairs or as the model hub's columns), GraphRAG-Bench's or FinanceBench's (`financebench_id`,
    `evidence`). `supporting` may list the documents with the answer. An answer may be a list: all but the first are
    aliases. Questions marked as unanswerable (`answerable` is false, in MuSiQue-Full) are left out with a warning:
    their gold answer belongs to another question.

    Args:
        file: The file.

    Returns:
        The questions, in the file's order.

    Raises:
        InputError: The file is missing or not such a list, or a question has no id, text or answer, or the id of
            another question.
    """
    questions: dict[str, Question] = {}
    left_out = 0
    for place, record in _records(file):
        if _is_unanswerable(record):
            left_out += 1
            continue
        question = _question(record, place)
        if question.id in questions:
            raise InputError(f"{place}: another question has the id {question.id!r}")
        questions[question.id] = question
    if left_out:
        warnings.warn(f"{file}: {left_out:,} questions marked as unanswerable are left out", stacklevel=2)
    if not questions:
        raise InputError(f"{file} holds no questions")
    return list(questions.values())


def paragraphs(file: Path) -> list[Paragraph]:
    """Read the paragraphs that come with a public dataset's questions, each once; empty ones are left out.

    Returns:
        The paragraphs; none if the file has only questions.

    Raises:
        InputError: The file is missing or not a list of questions, or its paragraphs are malformed.
    """
    found = (
        paragraph
        for place, record in _records(file)
        if not _is_unanswerable(record)
        for paragraph, _ in _paragraphs(record, place)
    )
    return list({paragraph.id: paragraph for paragraph in found}.values())


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a JSON list or of JSON lines, each with its place for messages."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    values: Iterable[tuple[str, Any]]
    if text.lstrip().startswith("["):
        values = ((f"{file}, question {n}", value) for n, value in enumerate(_parsed(text, str(file)), start=1))
    else:
        _check_lines(text, file)
        # No splitlines(): it also cuts at U+2028 and others, which a JSON string may contain.
        lines = ((f"{file}, line {n}", line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())
        values = ((place, _parsed(line, place)) for place, line in lines)
    for place, value in values:
        if not isinstance(value, dict):
            raise InputError(f"{place} is not a JSON object: {_shown(value)}")
        yield place, value


def _check_lines(text: str, file: Path) -> None:
    """Reject a file that is one JSON object over several lines, or an object around a list."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return  # JSON lines, or the error names the line
    if isinstance(whole, dict) and "question" not in whole:
        raise InputError(
            f"{file} is one JSON object, with {', '.join(map(repr, list(whole)[:5])) or 'nothing in it'}: give a "
            "JSON list of questions, or JSON lines with one question each"
        )


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is not valid JSON: {error}") from error


def _is_unanswerable(record: Mapping[str, Any]) -> bool:
    return record.get("answerable") is False


def _question(record: dict[str, Any], place: str) -> Question:
    answers = next(filter(None, (_texts(record.get(name), f"{place}: {name!r}") for name in _ANSWERS)), [])
    ids = [_text(record.get(name), f"{place}: {name!r}") for name in _IDS]
    question_id, text = next(filter(None, ids), ""), _text(record.get("question"), f"{place}: 'question'")
    for name, value in (("id", question_id), ("question", text), ("answer", answers)):
        if not value:
            raise InputError(
                f"{place} has no {name!r}, or a blank one; a question needs `id` or `qid`, `question` and `answer`"
            )
    gold = _texts(record.get("supporting"), f"{place}: 'supporting'")
    gold += [paragraph.id for paragraph, supporting in _paragraphs(record, place) if supporting]
    pages = list(_pages(record, place)) if _is_financebench(record) else []
    gold += [document for document, _ in pages]
    aliases = [alias for name in _ALIASES for alias in _texts(record.get(name), f"{place}: {name!r}")]
    return Question(
        id=question_id,
        text=text,
        answer=answers[0],
        aliases=tuple(dict.fromkeys([*answers[1:], *aliases])),
        gold_documents=tuple(dict.fromkeys(gold)),
        gold_pages=tuple(dict.fromkeys(pages)),
        fields={name: value for name, value in record.items() if not _is_used(name, record)},
    )


def _is_used(name: str, record: Mapping[str, Any]) -> bool:
    return (
        name in _USED
        or (name == "context" and _is_hotpotqa(record))
        or (name == "evidence" and _is_financebench(record))
    )


def _is_financebench(record: Mapping[str, Any]) -> bool:
    return "financebench_id" in record


def _is_hotpotqa(record: Mapping[str, Any]) -> bool:
    """Return whether `context` holds paragraphs; otherwise it is an ordinary field, a text or a list of texts."""
    context = record.get("context")
    if isinstance(context, dict):
        return "sentences" in context or "supporting_facts" in record
    return isinstance(context, list) and ("supporting_facts" in record or any(isinstance(c, list) for c in context))


def _text(value: Any, name: str) -> str:
    """Return a value as text; only strings and numbers are accepted."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{name} is not a string: {_shown(value)}")
    return clean_characters(str(value)).strip()


def _texts(value: Any, name: str) -> list[str]:
    """Return the texts of a list or of a single one, without blank ones."""
    values = value if isinstance(value, list) else [value]
    return [text for text in (_text(item, name) for item in values) if text]


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."


def _paragraphs(record: Mapping[str, Any], place: str) -> Iterator[tuple[Paragraph, bool]]:
    """Yield a question's paragraphs, each with whether it supports the answer."""
    for number, given in enumerate(_list(record.get("paragraphs"), f"{place}: 'paragraphs'"), start=1):  # MuSiQue
        where = f"{place}, paragraph {number}"
        if not isinstance(given, dict):
            raise InputError(f"{where} is not a JSON object: {_shown(given)}")
        text = given.get("paragraph_text", given.get("text"))
        if not isinstance(text, str):
            raise InputError(f"{where}: 'paragraph_text' is not a string: {_shown(text)}")
        yield from _paragraph(given.get("title"), text, where, bool(given.get("is_supporting")))
    if _is_hotpotqa(record):  # or 2WikiMultiHopQA
        facts = _pairs(record.get("supporting_facts"), ("title", "sent_id"), f"{place}: 'supporting_facts'")
        supporting = {_text(title, f"{place}: 'supporting_facts'") for title, _ in facts}
        for number, (title, sentences) in enumerate(
            _pairs(record["context"], ("title", "sentences"), f"{place}: 'context'"), start=1
        ):
            where = f"{place}, paragraph {number}"
            if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
                raise InputError(f"{where}: a list of sentences is needed, not {_shown(sentences)}")
            # HotpotQA's sentences start with a space, 2WikiMultiHopQA's do not.
            text = "".join(f"{' ' if n and not s.startswith(' ') else ''}{s}" for n, s in enumerate(sentences))
            yield from _paragraph(title, text, where, _text(title, f"{where}: its title") in supporting)


def _pages(record: Mapping[str, Any], place: str) -> Iterator[tuple[str, int]]:
    """Yield the pages of FinanceBench's evidence, which counts them from 0."""
    evidence = record.get("evidence")
    if isinstance(evidence, str):
        evidence = _literal(evidence, f"{place}: 'evidence'")
    for number, given in enumerate(_list(evidence, f"{place}: 'evidence'"), start=1):
        where = f"{place}, evidence {number}"
        if not isinstance(given, dict):
            raise InputError(f"{where} is not a JSON object: {_shown(given)}")
        document = _text(given.get("doc_name") or record.get("doc_name"), f"{where}: 'doc_name'")
        page = given.get("evidence_page_num")
        if not document:
            raise InputError(f"{where} has no 'doc_name', or a blank one")
        if isinstance(page, bool) or not isinstance(page, int):
            raise InputError(f"{where}: 'evidence_page_num' is not a whole number: {_shown(page)}")
        yield document, page + 1


def _literal(text: str, name: str) -> Any:
    """Return the value of a text in JSON or, as a table's export may have it, in Python's syntax."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(f"{name} is neither JSON nor a Python literal: {_shown(text)}") from error


def _list(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{name} is not a list: {_shown(value)}")
    return value


def _pairs(value: Any, columns: tuple[str, str], name: str) -> list[tuple[Any, Any]]:
    """Return pairs: a list of pairs in the datasets' own files, an object with two lists on the model hub."""
    if isinstance(value, dict):
        first, second = (_list(value.get(column), f"{name}: {column!r}") for column in columns)
        if len(first) != len(second):
            raise InputError(f"{name} has {len(first)} of {columns[0]!r} and {len(second)} of {columns[1]!r}")
        return list(zip(first, second, strict=True))
    pairs = _list(value, name)
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"{name}: pairs of {columns[0]!r} and {columns[1]!r} are needed, not {_shown(pair)}")
    return [(first, second) for first, second in pairs]


def _paragraph(title: Any, text: str, place: str, supporting: bool) -> Iterator[tuple[Paragraph, bool]]:
    # A document's id has no control characters.
    title = " ".join(_CONTROL.sub(" ", _text(title, f"{place}: its title")).split())
    text = clean_text(text).strip()
    if text:
        digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]
        yield Paragraph(f"{title} #{digest}" if title else digest, title, text), supporting


def write_corpus(found: Iterable[Paragraph], file: Path) -> Path:
    """Write paragraphs as records for `arag ingest`; return the file."""
    lines = (json.dumps({"id": p.id, "title": p.title, "text": p.text}, ensure_ascii=False) for p in found)
    return write_file(file, "".join(f"{line}\n" for line in lines))


def name_dataset(questions: Path) -> str:
    """Return the name of a questions file without its suffix; for `questions.json`, the name of its folder."""
    folder = questions.resolve().parent.name
    return folder if questions.stem == "questions" and folder else questions.stem
