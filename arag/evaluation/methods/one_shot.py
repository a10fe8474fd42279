"""Methods that call the model once: without the corpus, or with the chunks nearest to the question."""

from __future__ import annotations

from typing import ClassVar

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from arag.evaluation.method import Method, Session
from arag.graph.prompts import forced_prompt, forced_question
from arag.text.marks import with_mark

_DIRECT = "Answer the question from what you know: first the answer itself, as briefly as the question allows."


class DirectAnswer(Method):
    """One call, without the corpus."""

    name: ClassVar[str] = "direct"
    title: ClassVar[str] = "Direct Answer"
    abilities: ClassVar[str | None] = "cheap"

    def answer(self, question: str, session: Session, prepared: None) -> str:
        """Ask the model."""
        reply = session.call([SystemMessage(_DIRECT), HumanMessage(question)])
        return reply.text


class NaiveRAG(Method):
    """One call, with the chunks whose best sentence is nearest to the question."""

    name: ClassVar[str] = "naive-rag"
    title: ClassVar[str] = "Naive RAG"
    abilities: ClassVar[str | None] = "meaning cite cheap"

    def prepare(self, session: Session) -> None:
        """Load the embedder, so that the first question does not pay for it."""
        session.context.index.embedder.load()

    def answer(self, question: str, session: Session, prepared: None) -> str:
        """Search, and ask the model."""
        chunks = session.search(question)
        evidence = "\n\n".join(with_mark(chunk.id, chunk.text) for chunk in chunks)
        messages: list[AnyMessage] = [
            SystemMessage(forced_prompt()),
            HumanMessage(forced_question(question, evidence)),
        ]
        return session.call(messages).text


METHODS = (DirectAnswer, NaiveRAG)
