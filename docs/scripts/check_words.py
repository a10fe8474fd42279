"""Checks the wording of pages and messages: long sentences, doubled words, and phrases that a reader stumbles over.

    python docs/scripts/check_words.py [FILE ...]

Files are Markdown or Python; in Python, docstrings and messages are checked. Without files, all English pages and the
Python files of ROOMS are checked.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_WORDS = 40  # in a sentence
ROOMS = ("arag", "graph", "ingest", "retrieval")  # folders of Python files that are checked
PHRASES = {
    r"(?<!there )(?<!where )\b(?:is|are|was) no (?!longer|more|less|need|fault|index\b)\w+": "'is not a ...'",
    r"\bdoes,? too\b": "'works too'",
    r"\bbut for\b": "'except for'",
    r"\bgo(?:es)? by\b": "'use', 'follow'",
    r"\btells? of\b": "'list', 'describe'",
    r"\bwhat is (?:no|not)\b[^.?]{0,40}\bis\b": "name the thing",
    r"\bhas the last word\b": "say what is not supported",
    r"\bcannot be kept to\b": "'cannot be enforced'",
    r"\banew\b": "'again'",
    r"\bmend(?:s|ed|able)?\b": "'repair', 'fix'",
    r"\bbesides (?=that|those)": "'other than'",
    r"\bwhereof|thereof|thereby|hereby|therein|whom\b": "a simpler sentence",
    r"\bupon\b": "'on'",
    r"\butili[sz]e\w*\b": "'use'",
    r"\bin order to\b": "'to'",
    r"\b(?:simply|easily|obviously|of course)\b": "leave it out",
    r"\bplease\b": "leave it out",
    r"\b(?:e\.g\.|i\.e\.|etc\.)": "'for example', 'that is'",
    r"\ballows? to\b": "'lets you'",
    r"\b(?:is|are) able to\b": "'can'",
    r"\bdue to the fact that\b": "'because'",
    r"\bfunctionality\b": "'feature', 'function'",
    r"\bleverag\w+\b": "'use'",
    r"\binformations\b": "'information'",
    r"\b(\w+) \1\b(?! *=)": "a doubled word",
}
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.))")


def blank(found: re.Match[str]) -> str:
    """Return as many lines as a block had, so that line numbers stay right."""
    return "\n" * found[0].count("\n")


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file, each with the number of its first line."""
    source = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield 1, re.sub(r"`[^`\n]*`", "`code`", _FENCE.sub(blank, source))
        return
    tree = ast.parse(source)
    lists = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "split"}
    for node in (node for node in ast.walk(tree) if node not in lists):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node.value.count(" ") < 2:
            continue
        if "CREATE TABLE" not in node.value:
            yield node.lineno, re.sub(r"`[^`\n]*`", "`code`", node.value)


def check(file: Path) -> Iterator[str]:
    """Yield what is wrong with a file's wording, each with its place."""
    for line, text in texts(file):
        for pattern, better in PHRASES.items():
            for found in re.finditer(pattern, text, flags=re.IGNORECASE):
                place = line + text.count("\n", 0, found.start())
                yield f"{file}:{place}: {' '.join(found[0].split())!r}: {better}"
        offset = 0
        for sentence in _SENTENCE.split(text):
            offset = text.index(sentence, offset)
            if "|" not in sentence and len(sentence.split()) > MAX_WORDS:
                place = line + text.count("\n", 0, offset)
                yield f"{file}:{place}: a sentence of {len(sentence.split())} words: split it"


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    given = [Path(name) for name in sys.argv[1:]]
    pages = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")} - set(ROOT.glob("*.zh-CN.md"))
    modules = {module for room in ROOMS for module in ROOT.glob(f"{room}/**/*.py")}
    problems = [problem for file in given or sorted(pages | modules) for problem in check(file)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
