"""What README, docs and CONTRIBUTING show is what happens: commands, snippets, outputs, links, tables."""

import doctest
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import arag
from arag import Context, create_arag_agent, open_index
from arag.cli import app
from arag.evaluation import load_records, run_experiment
from arag.graph.state import OutputState
from arag.ingest.maintenance import verify
from arag.retrieval import types
from arag.retrieval.corpus import types as corpus_types
from arag.retrieval.tools.base import RetrievalTool
from fakes import hash_vector, write_corpus
from openai_server import chat, embeddings, serve

ROOT = Path(__file__).parent.parent
TRANSLATION = "README.zh-CN.md"
SERVERS = "docs/servers.md"  # what it says is run on servers that are started
PARTS = ["arag", "graph", "ingest", "retrieval"]
RUN = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PAGES = [*RUN, TRANSLATION, "AGENTS.md", "CHANGELOG.md", "SECURITY.md"]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
NOT_OURS = {"pip", "make"}  # programs whose arguments are checked, and not run
OWN_SERVER = "http://localhost:8000/v1"
OWN_DATABASES = "localhost:5432"
SHOWN = {  # what a page's commands and snippets print, among other things
    "README.md": ["founded in 1746 by Mattick Grevane", "grey-petrel-packet-schooner.md:0 55", "vellin-light.md:0"],
    "docs/getting-started.md": ["founded in 1746 by Mattick Grevane", "places/brannisey.md:0 ['", '"chunks": 26'],
    "docs/documents.md": [
        "dues",
        "15.3%",
        "[dues.xlsx:0] Odvar Felisk | 14",
        "guide.pdf#page=3",
        "tariff-1882:0",
        "film.srt:0",
        "[letter-from-amoy.txt:0] (0.",
        "[keepers.md:0] (0.",
        "once in every four minutes",
        "page 1, read by OCR",
    ],
    "docs/models.md": ["A failed apothecary"],
    "docs/agent.md": ["2 max_steps", "['agent']\n['tools']", "'name': 'semantic_search'", "assistant ['research']\n["],
    "docs/tools.md": [
        "Odvar Felisk: spelled Odvár Félisk (2 chunks); Grey Petrel: 3 chunks. The best 2 of 5 chunks:",
        "[ships/grey-petrel-packet-schooner.md:0] score 55",
        "[('ships/grey-petrel-packet-schooner.md:0', 55)",
        "ships/grey-petrel-packet-schooner.md:0 Grey Petrel (packet schooner)",
        "[events/chronicle-of-the-lanthry-isles.md:1] ",
        "Corrin Ashe-Woldar: 2 chunks",
    ],
    "docs/experiments.md": [
        "arag-without-keyword",
        "first-words 3 of 3 answered",
        "naive-rag q01",
        "runs/both/report.html",
    ],
    SERVERS: ["founded in 1746 by Mattick Grevane", "ships/grey-petrel-packet-schooner.md:0"],
    "docs/the-index.md": ["notice-1763-ropewalk"],
    "docs/settings.md": ['"documents": 25'],
}


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, language=None):
    """Return a page's blocks as (language, what else stands in the fence, text)."""
    return [block for block in FENCE.findall(read(page)) if language in (None, block[0])]


def commands(text):
    """Return the variables and the words of each command."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        variables = [word for word in words if re.match(r"[A-Z_]+=", word)]
        if words:
            yield dict(word.split("=", 1) for word in variables), words[len(variables) :]


def prose(page):
    return FENCE.sub("", read(page))


# --- what is run ---


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A folder in which somebody has typed the README's commands, and what the last one printed.

    That one is run by the installed program, the ingestion in this process, which loads the model anyway. No page
    changes the folder's index.
    """
    folder = tmp_path_factory.mktemp("readme")
    (folder / "examples").symlink_to(ROOT / "examples")
    typed = [words for *_, text in blocks("README.md", "sh") for _, words in commands(text)]
    (_, *ingestion), (program, *question) = (words for words in typed if words[0] not in NOT_OURS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ingested = CliRunner().invoke(app, ingestion)
    assert ingested.exit_code == 0, ingested.output
    command = [Path(sys.executable).parent / program, *question]
    asked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    return folder, asked.stdout


@pytest.fixture(scope="module")
def provider():
    """A server for the pages' commands that name a model of OpenAI's, or one on localhost."""

    def respond(_, request):
        if "messages" in request:
            return chat("A failed apothecary [places/brannisey.md:0].")
        return embeddings([hash_vector(text).tolist() for text in request["input"]])

    with serve(respond) as server:
        yield server


@pytest.fixture
def folder(first_run, provider, monkeypatch):
    """The working folder of the pages: it holds the examples and their index."""
    monkeypatch.chdir(first_run[0])
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    return first_run[0]


def is_runnable(code):
    """Return whether the package is there that a block shows and no extra installs."""
    return "deepagents" not in code or find_spec("deepagents") is not None


@pytest.fixture
def follow(folder, provider, arag, capsys):
    """A function that does what a page says, from top to bottom, and returns what is printed."""

    def run(page, database=OWN_DATABASES):
        names = {"__name__": "page"}
        printed = []
        for language, title, text in blocks(page):
            code = text.replace(OWN_SERVER, provider.url).replace(OWN_DATABASES, database)
            if language == "python" and not is_runnable(code):
                continue
            if language == "python":
                if file := re.search(r'title="(.+)"', title):
                    (folder / file[1]).write_text(code, encoding="utf-8")
                exec(compile(code, page, "exec"), names)
                printed.append(capsys.readouterr().out)
            elif language == "sh" and page != "README.md":  # whose commands `first_run` has typed
                for variables, (program, *arguments) in commands(code):
                    if program not in NOT_OURS:
                        assert program == "arag"
                        with pytest.MonkeyPatch.context() as patch:
                            for name, value in variables.items():
                                patch.setenv(name, value)
                            exit_code, out, err = arag(*arguments)
                        assert exit_code == 0, (arguments, err)
                        printed.append(out)
        return "".join(printed)

    return run


def test_the_first_commands_run(first_run):
    folder, answered = first_run
    assert "Mattick Grevane" in answered
    assert "<!doctype html>" in (folder / "run.html").read_text("utf-8").lower()


@pytest.mark.parametrize(
    "page", [page for page in RUN if page != SERVERS and (blocks(page, "sh") or blocks(page, "python"))]
)
def test_a_page_can_be_followed(page, follow):
    printed = follow(page)
    assert [shown for shown in SHOWN[page] if shown not in printed] == []


@pytest.mark.servers
def test_the_page_about_servers_can_be_followed(follow, postgres_server, provider, monkeypatch):
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:words@{provider.url}")  # which takes no time
    (passwords,) = [text for _, title, text in blocks(SERVERS, "ini") if ".env" in title]
    environment = dict(line.split("=") for line in passwords.split())
    psql = ("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-", "--dbname", postgres_server.url())
    (dumps,) = [text for *_, text in blocks(SERVERS, "console") if "pg_dump" in text]
    host = f"127.0.0.1:{postgres_server.port}"
    try:
        postgres_server.run(*psql, text=read("examples/servers/roles.sql"), environment=environment)
        printed = follow(SERVERS, host)
        assert [shown for shown in SHOWN[SERVERS] if shown not in printed] == []
        postgres_server.execute("CREATE DATABASE other_library OWNER ingester TEMPLATE template0")
        for extension in ("vector", "pg_trgm"):
            postgres_server.execute(f"CREATE EXTENSION {extension}", database="other_library")
        for line in dumps.replace(OWN_DATABASES, host).splitlines():
            postgres_server.run(*shlex.split(line.removeprefix("$ ")), environment={"PGPASSWORD": "ingest-secret"})
        assert verify(postgres_server.url("other_library", "searcher", "search-secret")) == ([], [])
    finally:
        for database in ("library", "other_library", "langgraph"):
            postgres_server.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        for role in ("ingester", "searcher", "langgraph"):
            postgres_server.execute(f"DROP ROLE IF EXISTS {role}")


@pytest.mark.servers
def test_what_ray_would_start_writes_to_an_index(database, provider, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "servers"))
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:words@{provider.url}")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert import_module("ray_embed").ingest_part(str(write_corpus(tmp_path, {"a": "Rain."})), database) > 0
    with open_index(database) as index:
        assert index.info().documents == 1


def public_objects():
    """Yield what is public, with its name; the results of an index have one example, that of their module."""
    yield "types", types
    yield "types of a corpus", corpus_types
    everything = {name: getattr(import_module(home), name) for name, home in arag._MODULES.items()}
    for public in [*everything.values(), RetrievalTool, run_experiment, load_records]:
        if inspect.isclass(public) or inspect.isfunction(public):
            yield public.__name__, public


@pytest.fixture(scope="module")
def example_agent(first_run):
    with open_index(first_run[0] / "my-index") as index:
        yield {"index": index, "agent": create_arag_agent("extractive", index)}


@pytest.mark.parametrize("public", [pytest.param(public, id=name) for name, public in public_objects()])
def test_a_public_docstring_shows_an_example_that_runs(public, folder, example_agent):
    section = re.search(r"^Example:\n((?:    .*\n|\n)+)", f"{inspect.getdoc(public)}\n", flags=re.MULTILINE)
    assert section, f"{public} has no Example:"
    names = {**vars(inspect.getmodule(public)), **example_agent}
    test = doctest.DocTestParser().get_doctest(section[1], names, str(public), None, None)
    ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
    assert ran.attempted
    assert not ran.failed


# --- what is compared ---


def links(page):
    return re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page))


def test_the_readme_is_short_and_its_translation_shows_the_same():
    assert len(read("README.md").split()) <= 720
    assert blocks(TRANSLATION) == blocks("README.md")
    assert {*links("README.md"), "README.md"} == {*links(TRANSLATION), TRANSLATION}


def anchors(page):
    """Return the anchors of a page's headings, as code hosts and mkdocs make them."""
    names = []
    for heading in re.findall(r"^#+ (.*)", prose(page), flags=re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.append(re.sub(r"[^\w\s-]", "", text).strip().replace(" ", "-"))
    return names


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_are_there(page):
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / name if name else ROOT / page).resolve()
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.relative_to(ROOT)), target


def test_pages_read_as_pages_on_a_code_host():
    for page in PAGES:
        assert not re.findall(r"^(?:--8<--|::: )", read(page), flags=re.MULTILINE), page


def test_the_api_page_links_each_public_name_to_the_file_that_defines_it():
    named = re.findall(r"\[`([\w.]+)`\]\(\.\./([\w/]+\.py)\)", read("docs/api.md"))
    for name, file in named:
        if "." not in name and name != Path(file).stem:
            code = read(file)
            is_defined = re.search(rf"^(?:def|class) {name}\b|^(?:from .* )?import .*\b{name}\b", code, re.MULTILINE)
            assert is_defined, (name, file)
    assert set(arag._MODULES) - {name for name, _ in named} <= {"ARAGError", "ARAGAgent"}  # in `errors`; a type alone


def all_options(command):
    for part in getattr(command, "commands", {}).values():
        yield from all_options(part)
    for parameter in command.params:
        yield from parameter.opts


def test_options_targets_and_extras_that_are_named_are_there():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))
    extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    options = set(all_options(typer.main.get_command(app)))
    for page in [*RUN, "AGENTS.md"]:
        assert set(re.findall(r"`(--[a-z-]+)", prose(page))) <= options, page
        assert {*re.findall(r"(?:^|`)make ([a-z-]+)", read(page), flags=re.MULTILINE)} <= targets, page
        named = {name for names in re.findall(r"'\.\[([\w,]+)\]'", read(page)) for name in names.split(",")}
        assert named <= set(extras), page


def table(page, heading):
    """Return the rows of the table below a heading."""
    below = read(page).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in below.splitlines() if line[:1] == "|"]
    return rows[2:]


def test_every_environment_variable_is_listed():
    code = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    used = {name for path in code for name in re.findall(r"\bARAG_[A-Z_]+\b", path.read_text("utf-8"))}
    listed = {name for row in table("docs/settings.md", "Environment variables") for name in row[0].split("`")[1::2]}
    assert listed == used | {"TIKTOKEN_CACHE_DIR"}
    for page in PAGES:
        assert set(re.findall(r"\bARAG_[A-Z_]+\b", read(page))) <= listed, page


def test_settings_and_results_of_the_agent_are_listed():
    rows = table("docs/agent.md", "Settings")
    settings = {name for row in rows for name in row[0].split("`")[1::2]}
    signature = inspect.signature(create_arag_agent).parameters
    assert settings == {*signature, *Context.model_fields} - {"model", "index", "settings"}
    for row in rows:
        if row[1].replace(",", "").isdecimal():
            assert int(row[1].replace(",", "")) == Context.model_fields[row[0].strip("`")].default
    results = [row[0].strip("`") for row in table("docs/agent.md", "What a run returns")]
    assert sorted(results) == sorted(OutputState.__annotations__)


def test_folders_and_files_that_are_named_are_there():
    listed = {name for row in table("docs/how-it-works.md", "The code") for name in re.findall(r"`([\w/]+)/`", row[0])}
    below = {
        f"arag/{path.parent.name}" for path in (ROOT / "arag").glob("*/__init__.py") if not path.parent.is_symlink()
    }
    assert listed == {*PARTS, *below} - {"arag/cli"}
    assert all((ROOT / path).exists() for path in re.findall(r"`([\w.]+/[\w./-]*)`", prose("AGENTS.md")))
    changes = table("CONTRIBUTING.md", "Where to change what")
    assert len(changes) >= 10
    for _, cell in changes:
        files = re.findall(r"`([\w/.-]+(?:/|\.\w+))`", cell)
        assert 1 <= len(files) <= 3, cell
        assert all((ROOT / file).exists() for file in files), cell
