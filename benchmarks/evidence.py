"""Experiments that anybody can repeat: recorded replies are played again, on the archive of examples/waterway.

    python benchmarks/evidence.py replay --work DIR [--out DIR] [EXPERIMENT ...]
    python benchmarks/evidence.py record --work DIR EXPERIMENT --model MODEL [--method NAME ...]

`replay` writes the archive, makes its indexes in `--work`, and runs the experiments, without key and network. If a
model is shown anything else than was recorded, questions fail, and the exit code is 1. Processors without AVX-512 round
vectors differently than the one of the recordings, so some passages have other ranks and similarities there: of methods
that search by meaning, some questions fail then, and only the other methods count for the exit code.

- `archive`: 80 questions, 239 documents; methods with few calls a question.
- `excerpt`: 20 of the hard questions and look-ups, and 60 documents, with all that hold the answers; all methods.

`record` adds a model's replies to a recording. The model's server must be on this machine: nothing else can be reached.
So tokens are estimates on every machine, and documents are cut alike.

The recorded commands of `dci` run in bash without a sandbox, and without your environment's keys. They are a part of
the repository, as its scripts are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WATERWAY = ROOT / "examples" / "waterway"
RECORDED = Path(__file__).parent / "recorded"
EXCERPT_DOCUMENTS = 60
EXCERPT = (
    "counting-2 counting-3 list-3 list-4 negation-3 comparison-2 namesakes-1 namesakes-4 superseded-1 superseded-2 "
    "absent-2 absent-3 structure-2 structure-4 languages-1 languages-2 arithmetic-1 arithmetic-4 look-up-01 look-up-02"
).split()
# The vocabulary of the tokenizer would be downloaded where that is possible.
_NO_NETWORK = {
    "TIKTOKEN_CACHE_DIR": "",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
_ROUNDED = (
    "This processor has no AVX-512, and rounds vectors differently than the one of the recordings: that some questions "
    "of methods that search by meaning fail says nothing."
)
_KEPT_VARIABLES = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR"}  # for recorded commands: no keys
ALL_METHODS = ["table1", "graphrag-global", "arag-shell", "arag-all", "dci"]
# The commands are those of the recording: one of them looks for the chunks that began the lines of files.
SETTINGS = {
    "dci": ["--set", "dci.sandbox=none", "--set", "dci.search=grep"],
    "arag-shell": ["--set", "arag-shell.names_lines=true"],
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its methods, and the ids of its questions, or none for all of them."""

    name: str
    methods: Sequence[str]
    without_vectors: Sequence[str]  # the methods among them that search nothing by meaning
    questions: Sequence[str] = ()
    index: str = "archive"


EXPERIMENTS = {
    "archive": Experiment(
        "archive",
        ["arag-shell", "arag", "arag-all", "arag-naive", "dci", "naive-rag", "direct"],
        ["dci", "direct"],
    ),
    "excerpt": Experiment("excerpt", ALL_METHODS, ["dci", "direct", "graphrag-global"], EXCERPT, "excerpt"),
}


def prepare(experiment: Experiment, work: Path) -> tuple[Path, Path]:
    """Write the documents and the questions of an experiment and index them; return the questions and the index."""
    archive = work / "archive-files"
    if not archive.exists():
        unfinished = work / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _run(sys.executable, str(WATERWAY / "make_archive.py"), str(unfinished))
        unfinished.rename(archive)
    questions = json.loads((WATERWAY / "questions.json").read_text("utf-8"))
    questions += json.loads((WATERWAY / "look-ups.json").read_text("utf-8"))
    if experiment.questions:
        questions = [question for question in questions if question["id"] in experiment.questions]
    documents = archive
    if experiment.index == "excerpt":
        documents = work / "excerpt-files"
        _copy_excerpt(questions, archive, documents)
    file = work / experiment.name / "questions.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(questions, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    index = work / f"{experiment.index}-index"
    _run(*arag("ingest", str(documents), "--index", str(index)))
    return file, index


def _copy_excerpt(questions: Sequence[dict[str, list[str]]], archive: Path, target: Path) -> None:
    """Copy the documents that hold the answers, and others up to the number, chosen by a digest of their names."""
    needed = {name for question in questions for name in question["supporting"]}
    names = sorted(path.relative_to(archive).as_posix() for path in archive.rglob("*") if path.is_file())
    others = sorted(set(names) - needed, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    for name in [*sorted(needed), *others[: EXCERPT_DOCUMENTS - len(needed)]]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(archive / name, target / name)


def arag(*arguments: str) -> list[str]:
    """Return a command of `arag`."""
    return [sys.executable, "-m", "arag", *arguments]


def _run(*command: str) -> int:
    """Run a command; end with its exit code if it fails."""
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - our own
    if code:
        sys.exit(code)
    return code


def replay(names: Sequence[str], work: Path, out: Path) -> int:
    """Play the recordings of experiments into new runs; return the exit code."""
    codes = [0]
    for name in names:
        experiment = EXPERIMENTS[name]
        questions, index = prepare(experiment, work)
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        for methods in (experiment.without_vectors, experiment.methods):  # the second run takes over the first
            command = _experiment(methods, questions, index, folder)
            command += ["--model", f"replay:{RECORDED / name}.xz"]
            code = subprocess.run(command, check=False).returncode  # noqa: S603 - our own
            is_rounding = methods is experiment.methods and not _rounds_as_recorded()
            if code == 1 and is_rounding:
                print(_ROUNDED, file=sys.stderr)
                code = 0
            codes.append(code)
    return max(codes)


def _rounds_as_recorded() -> bool:
    """Return whether vectors are rounded here as where the recordings were made: by AVX-512."""
    processor = Path("/proc/cpuinfo")
    return processor.exists() and "avx512f" in processor.read_text(encoding="utf-8")


def _experiment(methods: Sequence[str], questions: Path, index: Path, folder: Path) -> list[str]:
    command = arag("eval", "run", "--questions", str(questions), "--index", str(index), "--out", str(folder))
    for method in methods:
        command += ["--method", method, *SETTINGS.get(method, ())]
    return [*command, "--concurrency", "1"]


def record(name: str, model: str, methods: Sequence[str], work: Path) -> int:
    """Add a model's replies to the recording of an experiment; return the exit code."""
    experiment = EXPERIMENTS[name]
    questions, index = prepare(experiment, work)
    command = _experiment(methods or experiment.methods, questions, index, work / name / "run")
    command += ["--model", model, "--model-option", "timeout=3600"]  # a person may answer
    command += ["--record", str(RECORDED / f"{name}.xz")]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own


def main() -> None:
    """Replay or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["replay", "record"])
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=f"{' or '.join(EXPERIMENTS)}")
    parser.add_argument("--work", type=Path, required=True, help="where the archive and its indexes are kept")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the runs and their reports are written")
    parser.add_argument("--model", default="", help="provider:model to record")
    parser.add_argument("--method", action="append", dest="methods", help="record this method only; repeatable")
    options = parser.parse_args()
    names = options.experiments or list(EXPERIMENTS)
    unknown = set(names) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}: valid are {', '.join(EXPERIMENTS)}")
    if options.action == "record" and not options.model:
        parser.error("a recording needs --model")
    options.work.mkdir(parents=True, exist_ok=True)
    if options.action == "replay":
        for name in set(os.environ) - _KEPT_VARIABLES:
            del os.environ[name]
    os.environ.update(_NO_NETWORK)  # before anything counts tokens
    if options.action == "replay":
        sys.exit(replay(names, options.work, options.out))
    sys.exit(max(record(name, options.model, options.methods or (), options.work) for name in names))


if __name__ == "__main__":
    main()
