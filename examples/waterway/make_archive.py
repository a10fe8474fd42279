"""Writes the archive of the invented Sarn Waterway, and the questions about it.

    python examples/waterway/make_archive.py FOLDER [--filler N]
    python examples/waterway/make_archive.py --questions

The first writes the documents into a folder, and N short documents of other waterways beside them, as records of
`filler.jsonl`. The second writes `questions.json` and `look-ups.json` beside this file again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from waterway_documents import build_documents
from waterway_files import write_documents
from waterway_filler import filler_records
from waterway_questions import Question, hard_questions, look_ups
from waterway_world import build_world

HERE = Path(__file__).parent


def main() -> None:
    """Read the arguments and write what they ask for."""
    parser = argparse.ArgumentParser(description="Write the archive of the Sarn Waterway.")
    parser.add_argument("folder", type=Path, nargs="?", help="where to write the documents")
    parser.add_argument("--filler", type=int, default=0, metavar="N", help="write N documents of other waterways, too")
    parser.add_argument("--questions", action="store_true", help="write questions.json and look-ups.json again")
    arguments = parser.parse_args()
    if arguments.folder is None and not arguments.questions:
        parser.error("name a folder, or give --questions")
    if arguments.folder is not None:
        write_archive(arguments.folder, arguments.filler)
    if arguments.questions:
        write_questions(HERE)


def write_archive(folder: Path, filler: int = 0) -> None:
    """Write the documents into a folder, with so many documents of other waterways beside them."""
    write_documents(build_documents(build_world()), folder)
    if filler:
        lines = [json.dumps(record, ensure_ascii=False) for record in filler_records(filler)]
        (folder / "filler.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_questions(folder: Path) -> None:
    """Write both files of questions into a folder."""
    world = build_world()
    documents = build_documents(world)
    _write_list(folder / "questions.json", hard_questions(world, documents))
    _write_list(folder / "look-ups.json", look_ups(world, documents))


def _write_list(file: Path, questions: list[Question]) -> None:
    lines = [json.dumps(question, ensure_ascii=False) for question in questions]
    file.write_text("[\n  " + ",\n  ".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
