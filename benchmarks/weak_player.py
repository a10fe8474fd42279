"""Plays a weak model by fixed rules: how many questions end in the right answer with each set of tools?

    python benchmarks/weak_player.py [--index DIR --questions FILE] [--set paper --set shell ...] [--seeds 3]

The player searches for the question by its meaning, for its names and for its longest words, reads the first chunk that
it was shown, and quotes the sentences that cover most of the question. One call in three is malformed, as small models
write them: quotes that do not end, options that do not exist, wrong names of arguments, fences, smart quotes. An answer
is right if the quotes hold the gold answer.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from rich.console import Console
from rich.table import Table

from arag.evaluation.scores import contains
from arag.graph.graph import create_arag_agent
from arag.ingest.pipeline import run_ingest
from arag.models.questions import question_keywords
from arag.retrieval.index import Index, open_index
from arag.text.marks import read_results
from arag.text.words import content_words, list_words

EXAMPLES = Path(__file__).parents[1] / "examples"
MALFORMED = 1 / 3  # share of the calls
QUOTED = 5  # lines of an answer
OBEDIENCE = 0.7  # how often the player writes a call again that was refused

Arguments = dict[str, Any]


def unclosed_quote(arguments: Arguments) -> Arguments:
    """Drop the last quote, as in `rg "a|b`."""
    return _change_text(arguments, lambda text: text.rstrip("\"'"))


def unknown_option(arguments: Arguments) -> Arguments:
    """Add an option that does not exist."""
    changed = _change_text(
        arguments, lambda text: text.replace("rg ", "rg --ignorecase ").replace("cat ", "cat --all ")
    )
    return changed | {"verbose": True}


def wrong_name(arguments: Arguments) -> Arguments:
    """Name the first argument otherwise."""
    first, *_ = arguments
    return {"input": arguments[first]}


def fence(arguments: Arguments) -> Arguments:
    """Write the text as code in Markdown."""
    return _change_text(arguments, lambda text: f"```bash\n{text}\n```")


def smart_quotes(arguments: Arguments) -> Arguments:
    """Write typographic quotes."""
    return _change_text(arguments, lambda text: re.sub(r'"([^"]*)"', "“\\1”", text))


def prompt_sign(arguments: Arguments) -> Arguments:
    """Write a shell's prompt before the command."""
    return _change_text(arguments, lambda text: f"$ {text}")


def as_json_string(arguments: Arguments) -> Arguments:
    """Write all arguments as a string of JSON, in the first one."""
    first, *_ = arguments
    return {first: json.dumps(arguments)}


FAULTS: list[Callable[[Arguments], Arguments]] = [
    unclosed_quote,
    unknown_option,
    wrong_name,
    fence,
    smart_quotes,
    prompt_sign,
    as_json_string,
]


def _change_text(arguments: Arguments, change: Callable[[str], str]) -> Arguments:
    """Change the first argument, or its items."""
    first, *_ = arguments
    value = arguments[first]
    changed = [change(item) for item in value] if isinstance(value, list) else change(value)
    return {**arguments, first: changed}


class WeakPlayer(BaseChatModel):
    """A model with a fixed plan that writes some of its calls wrong."""

    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "weak-player"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        """Bind the tools."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        names = {tool["function"]["name"] for tool in options.get("tools", ())}
        reply = self._reply(messages, names) if names else None
        if reply is None:
            reply = AIMessage(quote_lines(messages))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _reply(self, messages: Sequence[BaseMessage], tools: set[str]) -> AIMessage | None:
        question = next(message.text for message in messages if isinstance(message, HumanMessage))
        calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
        results = [message for message in messages if isinstance(message, ToolMessage)]
        dice = random.Random(f"{self.seed} {question} {len(calls)}")  # noqa: S311 - not for secrets
        step = 0
        if calls:
            step = int(calls[-1]["id"].split("-")[1]) + 1
            was_refused = results[-1].status == "error" or "(exit code" in results[-1].text
            if was_refused and dice.random() < OBEDIENCE:
                name, arguments = list_plan(question, results, tools)[step - 1]
                return _call(name, arguments, step - 1, len(calls))
        plan = list_plan(question, results, tools)
        if step >= len(plan):
            return None
        name, arguments = plan[step]
        if dice.random() < MALFORMED:
            arguments = dice.choice(FAULTS)(arguments)
        return _call(name, arguments, step, len(calls))


def quote_lines(messages: Sequence[BaseMessage]) -> str:
    """Return the lines of the results that share most words with the question."""
    question = next(message.text for message in messages if isinstance(message, HumanMessage))
    wanted = content_words(question)
    lines: dict[str, int] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            for line in re.split(r"\n+|(?<=[.!?…]) ", message.text):
                lines[line] = len(wanted & content_words(line))
    best_first = sorted(lines, key=lambda line: -lines[line])
    return "\n".join(best_first[:QUOTED]) or "Nothing."


def _call(name: str, arguments: Arguments, step: int, number: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{step}-{number}"}])


def list_plan(question: str, results: Sequence[ToolMessage], tools: set[str]) -> list[tuple[str, Arguments]]:
    """Return the calls of the plan, with the tools that there are."""
    names = question_keywords(question)[:3]
    words = sorted(set(list_words(question)), key=lambda word: (-len(word), word))[:3]
    shown = [chunk_id for result in results for chunk_id, _ in read_results(result.text)]
    first = shown[0] if shown else "a.md:0"
    if "shell" in tools:
        document = first.rpartition(":")[0]
        return [
            ("shell", {"command": f'meaning "{question}"'}),
            ("shell", {"command": f'rg -i "{"|".join(names)}" | head -20'}),
            ("shell", {"command": f'rg -i "{"|".join(words)}" | head -20'}),
            ("shell", {"command": f'cat "{document}"'}),
        ]
    plan: list[tuple[str, Arguments]] = [
        ("semantic_search", {"queries": [question]}),
        ("keyword_search", {"keywords": names}),
        ("keyword_search", {"keywords": words}),
        ("chunk_read", {"chunk_ids": [first]}),
    ]
    if "grep" in tools:
        plan[2] = ("grep", {"pattern": "|".join(words)})
    return plan


def play(index: Index, questions: Sequence[dict[str, Any]], tools: str, seed: int) -> tuple[int, float, float]:
    """Return how many answers are right, and the calls and the tokens of results a question."""
    agent = create_arag_agent(WeakPlayer(seed=seed), index, tools=tools)
    right = calls = tokens = 0
    for question in questions:
        state = agent.invoke({"messages": [("user", question["question"])]})
        gold = [question["answer"], *question.get("answer_aliases", [])]
        right += contains(state["answer"], gold)
        calls += len(state["trace"])
        tokens += sum(call["retrieved_tokens"] for call in state["trace"])
    return right, calls / len(questions), tokens / len(questions)


def main() -> None:
    """Play, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, help="an index; by default one of examples/ is made")
    parser.add_argument("--questions", type=Path, nargs="+", default=[EXAMPLES / "questions.json"])
    parser.add_argument("--set", action="append", dest="sets", help="a set of tools; repeatable")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    questions = [question for file in options.questions for question in json.loads(file.read_text())]
    questions = [question for question in questions if question.get("answer")]
    table = Table("tools", "right", "of", "calls", "tokens of results")
    with tempfile.TemporaryDirectory() as folder:
        place = options.index or Path(folder) / "index"
        if options.index is None:
            run_ingest(EXAMPLES / "corpus", place)
        with open_index(place) as index:
            for name in options.sets or ["paper", "all", "shell"]:
                runs = [play(index, questions, name, seed) for seed in range(options.seeds)]
                right, calls, tokens = (sum(values) / len(runs) for values in zip(*runs, strict=True))
                table.add_row(name, f"{right:.1f}", str(len(questions)), f"{calls:.1f}", f"{tokens:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
