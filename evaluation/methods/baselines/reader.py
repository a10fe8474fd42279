"""The last call of LinearRAG and HippoRAG2: reasoning over passages, then a short answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arag.graph.prompts import DATA_RULE, forced_question
from arag.retrieval.types import Chunk

_READER = """You answer a question from passages of a corpus. Each passage has its id in brackets above it.

First say in a few sentences which passages matter and what follows from them. Then end with one line that begins with
"Answer:" and gives the answer in its shortest form: a name, a date, a number, yes or no. If the passages do not hold
the answer, give the most likely one."""
_ANSWER = re.compile(r"^[ \t*_#>-]*answer[ \t*_]*[:：][ \t*_]*", re.IGNORECASE | re.MULTILINE)


def reader_messages(question: str, chunks: Sequence[Chunk], *, example: str = "") -> list[BaseMessage]:
    """Return the messages that ask for an answer.

    Args:
        question: The question.
        chunks: The passages, best first.
        example: An example of the reasoning, for the system message.
    """
    system = "\n\n".join(part for part in (_READER, example, DATA_RULE) if part)
    evidence = "\n\n".join(f"[{chunk.id}]\n{chunk.text}" for chunk in chunks)
    return [SystemMessage(system), HumanMessage(forced_question(question, evidence))]


def read_answer(text: str) -> str:
    """Return what follows the last line that begins with "Answer:", or the whole text if there is none."""
    marks = list(_ANSWER.finditer(text))
    answer = text[marks[-1].end() :].strip().rstrip("*_ \n") if marks else ""
    return answer or text.strip()
