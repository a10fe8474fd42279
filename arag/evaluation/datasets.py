"""Questions with their gold answers, from the authors' files and from the public datasets, as they are downloaded.

The public multi-hop datasets give paragraphs with every question. All of them, each once, make the corpus of an
experiment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
)

from arag.errors import InputError

# Where a gold answer is: a document's id, or a page with its number, from 1. A page's document is named without its
# folder and extension.
Source: TypeAlias = str | tuple[str, int]
_Item = TypeVar("_Item")
_NEEDED = "`id`, `question`, and `answer`, `answers`, `number` or `absent`"
ABSENT = "not in the corpus"  # the gold answer where there is none


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a public dataset. Its id is made from its text, so it is the same in every file."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a question asks for.

    Attributes:
        value: The number.
        units: The accepted names of its unit, if it has one.
        tolerance: How far an answer may be from the value.
    """

    value: float
    units: tuple[str, ...] = ()
    tolerance: float = 0.0


Form: TypeAlias = Literal["text", "list", "number", "absent"]
"""What a right answer is: a text, a complete list, a number, or that the corpus does not hold the fact."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of an experiment.

    Attributes:
        answer: The gold answer, as a text.
        kind: The kind of question, for reports; any name.
        items: The items of the complete list that is asked for, each with its accepted names.
        number: The number that is asked for.
        absent: Whether the corpus does not hold the answer.
        aliases: Other accepted answers.
        gold_documents: Ids of the documents or paragraphs with the answer, or FinanceBench's names without folder and
            extension, if the data has them; `corpora.locate_gold` replaces them with ids of an index.
        gold_pages: Pages with the answer, if the data has them. They then count as gold instead of the documents.
        fields: The other fields of the data.
        paragraphs: The paragraphs that come with it.
    """

    id: str
    text: str
    answer: str
    aliases: tuple[str, ...] = ()
    gold_documents: tuple[str, ...] = ()
    gold_pages: tuple[tuple[str, int], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    paragraphs: tuple[Paragraph, ...] = ()
    kind: str = ""
    items: tuple[tuple[str, ...], ...] = ()
    number: Number | None = None
    absent: bool = False

    @property
    def form(self) -> Form:
        """What a right answer to the question is."""
        if self.items:
            return "list"
        if self.number is not None:
            return "number"
        return "absent" if self.absent else "text"


def load_questions(file: Path) -> list[Question]:
    """Read questions.

    The file is a JSON list or JSON Lines, in one of these formats: the authors' (`id` or `qid`, `question`, `answer` or
    `gold_answer`), MuSiQue's (with `paragraphs`), HotpotQA's and 2WikiMultiHopQA's (`_id`, `supporting_facts`,
    `context`), GraphRAG-Bench's or FinanceBench's (`financebench_id`, `evidence`). `supporting` may list the documents
    with the answer. An answer may be a list: all but the first are aliases.

    A question may have a `kind`, and one of these, which its answer is then judged by: `answers`, the items of a
    complete list (an item that is a list has several accepted names); `number`, a number or an object with `value`,
    `unit` and `tolerance`; `absent`, true if the corpus does not hold the answer.

    Raises:
        InputError: The file is missing or not such a list, or a question has no id, text or answer, or the id of
            another question.
    """
    questions = read_questions(_read_values(file), f"{file}, question")
    if not questions:
        raise InputError(f"{file} holds no questions")
    return questions


def read_questions(values: Iterable[Any], name: str = "question") -> list[Question]:
    """Read questions from JSON objects, in the formats that `load_questions` reads.

    Args:
        values: The objects, or questions that were read before.
        name: The name of each in error messages, before its number.

    Raises:
        InputError: A value is not such an object, or has no id, text or answer, or the id of another question.
    """
    questions: dict[str, Question] = {}
    for number, value in enumerate(values, start=1):
        place = f"{name} {number}"
        question = value if isinstance(value, Question) else _read_question(value, place)
        if question.id in questions:
            raise InputError(f"{place}: another question has the id {question.id!r}")
        questions[question.id] = question
    return list(questions.values())


def name_dataset(questions: Path) -> str:
    """Return the name of a questions file without its extension; for `questions.json`, the name of its folder."""
    folder = questions.resolve().parent.name
    if questions.stem == "questions" and folder:
        return folder
    return questions.stem


def _read_values(file: Path) -> list[Any]:
    try:
        text = file.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("["):
            return cast("list[Any]", json.loads(text))
        # splitlines() would also cut at U+2028 and others, which a JSON string may contain.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except json.JSONDecodeError as error:
        start = max(error.pos - 40, 0)
        near = error.doc[start : error.pos + 40]
        raise InputError(f"{file} is neither a JSON list nor JSON lines: {error.msg} near {near!r}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def _listed(value: Any) -> Any:
    """Return a value as a list, without empty texts."""
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    return [each for each in values if each != ""]


_Filled = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[_Filled], BeforeValidator(_listed)]
_Names = Annotated[_Texts, Field(min_length=1)]
_Finite = Annotated[StrictFloat, Field(allow_inf_nan=False)]


class _Passage(BaseModel):
    """A paragraph as MuSiQue has it."""

    title: str | None = None
    text: str = Field(validation_alias=AliasChoices("paragraph_text", "text"))
    is_supporting: bool = False

    def paragraph(self) -> Paragraph:
        words = (self.title or "").split()
        title = " ".join(words)
        digest = hashlib.sha256(f"{title}\n{self.text}".encode()).hexdigest()[:8]
        return Paragraph(f"{title} #{digest}".strip(), title, self.text)


class _Evidence(BaseModel):
    """Evidence as FinanceBench has it, which counts pages from 0."""

    doc_name: _Filled
    evidence_page_num: StrictInt


def _as_number(value: Any) -> Any:
    return value if value is None or isinstance(value, dict) else {"value": value}


class _Number(BaseModel):
    """A number with its unit, of which there may be several names."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    value: _Finite
    unit: _Texts = []
    tolerance: Annotated[_Finite, Field(ge=0)] = 0.0


class _Row(BaseModel):
    """A question as a file has it; further fields are kept."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True, str_strip_whitespace=True)

    id: _Filled = Field(validation_alias=AliasChoices("id", "qid", "_id", "question_id", "financebench_id"))
    question: _Filled
    answer: _Texts = Field(default=[], validation_alias=AliasChoices("answer", "gold_answer"))
    answers: Annotated[list[_Names], Field(min_length=1)] | None = None
    number: Annotated[_Number | None, BeforeValidator(_as_number)] = None
    absent: StrictBool | None = None
    kind: str | None = None
    answer_aliases: _Texts = []
    aliases: _Texts = []
    supporting: _Texts = []
    paragraphs: list[_Passage] = []

    def passages(self) -> list[_Passage]:
        """Return the paragraphs that come with the question."""
        return self.paragraphs

    def gold_pages(self) -> list[tuple[str, int]]:
        """Return the pages with the answer: documents' names and numbers from 1."""
        return []


class _HotpotQARow(_Row):
    context: list[tuple[str, list[str]]]
    supporting_facts: list[tuple[str, int]]

    def passages(self) -> list[_Passage]:
        supporting = {title for title, _ in self.supporting_facts}
        passages = []
        for title, sentences in self.context:
            text = " ".join(map(str.strip, sentences))  # HotpotQA's start with a space, 2WikiMultiHopQA's do not
            passages.append(_Passage(title=title, text=text, is_supporting=title in supporting))
        return passages


class _FinanceBenchRow(_Row):
    evidence: list[_Evidence]

    def gold_pages(self) -> list[tuple[str, int]]:
        return [(each.doc_name, each.evidence_page_num + 1) for each in self.evidence]


def _read_question(value: Any, place: str) -> Question:
    row = _read_row(value, place)
    pages = row.gold_pages()
    paragraphs: dict[Paragraph, bool] = {}  # whether they support the answer
    for passage in row.passages():
        if passage.text:
            paragraphs[passage.paragraph()] = passage.is_supporting
    gold = [*row.supporting]
    gold += [paragraph.id for paragraph, supports in paragraphs.items() if supports]
    gold += [document for document, _ in pages]
    answer, *other_answers = _read_answer(row, place)
    return Question(
        id=row.id,
        text=row.question,
        answer=answer,
        aliases=_distinct([*other_answers, *row.answer_aliases, *row.aliases]),
        gold_documents=_distinct(gold),
        gold_pages=_distinct(pages),
        fields=row.model_extra or {},
        paragraphs=tuple(paragraphs),
        kind=row.kind or "",
        items=_distinct(map(_distinct, row.answers or ())),
        number=_read_number(row),
        absent=bool(row.absent),
    )


def _read_answer(row: _Row, place: str) -> list[str]:
    """Return the answer and its aliases; if the question has another form of answer only, that as a text."""
    forms = {"answers": row.answers, "number": row.number, "absent": row.absent}
    given = [name for name, value in forms.items() if value]
    if len(given) > 1:
        raise InputError(f"{place}: it has {' and '.join(map(repr, given))}: give one of them")
    if row.answer:
        return row.answer
    if row.answers:
        return ["; ".join(names[0] for names in row.answers)]
    if row.number:
        return [" ".join([f"{row.number.value:.15g}", *row.number.unit[:1]])]
    if row.absent:
        return [ABSENT]
    raise InputError(f"{place}: 'answer': Field required; needed are {_NEEDED}")


def _read_number(row: _Row) -> Number | None:
    if row.number is None:
        return None
    return Number(row.number.value, tuple(row.number.unit), row.number.tolerance)


def _read_row(value: Any, place: str) -> _Row:
    if not isinstance(value, dict):
        raise InputError(f"{place} is not a JSON object")
    form: type[_Row] = _Row
    if "financebench_id" in value:
        form = _FinanceBenchRow
    elif "supporting_facts" in value:
        form = _HotpotQARow
    try:
        return form.model_validate(value)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        raise InputError(f"{place}: {name!r}: {fault['msg']}; needed are {_NEEDED}") from error


def _distinct(items: Iterable[_Item]) -> tuple[_Item, ...]:
    """Return items without repetitions, in their order."""
    return tuple(dict.fromkeys(items))
