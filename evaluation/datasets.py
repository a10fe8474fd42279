"""Questions with their gold answers, from the authors' files and from the public datasets' own.

The public multi-hop datasets hold, with every question, the paragraphs that it was asked about: the corpus of an
experiment is all of them, each once. `paragraphs` reads them, so that a download is all that an experiment needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arag.retrieval.errors import InputError
from arag.retrieval.files import written_whole

_IDS = ("id", "qid", "_id", "question_id")
_ANSWERS = ("answer", "gold_answer")
_USED = {*_IDS, *_ANSWERS, "question", "answer_aliases", "aliases", "supporting", "paragraphs", "context"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question of an experiment.

    Attributes:
        id: Its id, unlike any other's.
        text: The question.
        answer: The gold answer.
        aliases: Other forms of it that the data accepts.
        gold_documents: Ids of the documents that hold the answer, where the data says so.
        fields: Whatever else the data says of it.
    """

    id: str
    text: str
    answer: str
    aliases: tuple[str, ...] = ()
    gold_documents: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a public dataset, a document of its corpus.

    Attributes:
        id: Its id, made from its words: the same paragraph has the same id in every file.
        title: Its title.
        text: Its text.
    """

    id: str
    title: str
    text: str


def load_questions(file: Path) -> list[Question]:
    """Read questions.

    Known are the authors' format (`id` or `qid`, `question`, `answer` or `gold_answer`), MuSiQue's (JSON lines with
    `paragraphs`), HotpotQA's and 2WikiMultiHopQA's (`_id`, `supporting_facts`, `context`) and GraphRAG-Bench's; a
    JSON list or JSON lines. `supporting` may name the documents that hold the answer.

    Args:
        file: The file.

    Returns:
        The questions, in the file's order.

    Raises:
        InputError: The file is missing or is no such list, or a question lacks its id, its text or its answer, or
            has another's id.
    """
    questions: dict[str, Question] = {}
    for place, record in _records(file):
        question = _question(record, place)
        if question.id in questions:
            raise InputError(f"{place}: the id {question.id!r} is another question's")
        questions[question.id] = question
    if not questions:
        raise InputError(f"{file} holds no questions")
    return list(questions.values())


def paragraphs(file: Path) -> list[Paragraph]:
    """Read the paragraphs that come with a public dataset's questions, each once.

    Returns:
        The paragraphs; none where the file holds questions only.

    Raises:
        InputError: The file is missing or is no list of questions.
    """
    found = (paragraph for _, record in _records(file) for paragraph, _ in _paragraphs(record))
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
        lines = ((f"{file}, line {n}", line) for n, line in enumerate(text.splitlines(), start=1) if line.strip())
        values = ((place, _parsed(line, place)) for place, line in lines)
    for place, value in values:
        if not isinstance(value, dict):
            raise InputError(f"{place} is no JSON object, but {str(value)[:60]!r}")
        yield place, value


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no valid JSON: {error}") from error


def _question(record: dict[str, Any], place: str) -> Question:
    answers = [_text(record[name]) for name in _ANSWERS if record.get(name) not in (None, "", [])]
    question_id, text = _first(record, _IDS), _first(record, ("question",))
    for name, value in (("id", question_id), ("question", text), ("answer", answers and answers[0])):
        if not value:
            raise InputError(f"{place} has no {name!r}; a question needs `id` or `qid`, `question` and `answer`")
    aliases = [_text(alias) for name in ("answer_aliases", "aliases") for alias in record.get(name) or ()]
    gold = [str(document) for document in record.get("supporting") or ()]
    gold += [paragraph.id for paragraph, supporting in _paragraphs(record) if supporting]
    return Question(
        id=question_id,
        text=text,
        answer=answers[0],
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias)),
        gold_documents=tuple(dict.fromkeys(gold)),
        fields={name: value for name, value in record.items() if name not in _USED},
    )


def _first(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((_text(record[name]) for name in names if record.get(name) not in (None, "")), "")


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).strip()


def _paragraphs(record: Mapping[str, Any]) -> Iterator[tuple[Paragraph, bool]]:
    """Yield a question's paragraphs, each with whether it supports the answer."""
    for given in record.get("paragraphs") or ():  # MuSiQue
        yield _paragraph(given.get("title", ""), given["paragraph_text"]), bool(given.get("is_supporting"))
    context = record.get("context")
    if isinstance(context, list):  # HotpotQA and 2WikiMultiHopQA: pairs of a title and sentences
        supporting = {title for title, *_ in record.get("supporting_facts") or ()}
        for title, sentences in context:
            text = "".join(f"{' ' if n and not s.startswith(' ') else ''}{s}" for n, s in enumerate(sentences))
            yield _paragraph(title, text), title in supporting


def _paragraph(title: str, text: str) -> Paragraph:
    title, text = title.strip(), text.strip()
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]
    return Paragraph(f"{title} #{digest}" if title else digest, title, text)


def write_corpus(found: Iterable[Paragraph], file: Path) -> Path:
    """Write paragraphs as records that `arag ingest` takes; returns the file."""
    lines = (json.dumps({"id": p.id, "title": p.title, "text": p.text}, ensure_ascii=False) for p in found)
    file.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(file) as out:
        out.writelines(f"{line}\n".encode() for line in lines)
    return file
