"""What README, docs and CONTRIBUTING show is what happens: commands, snippets, outputs, links, tables."""

import doctest
import inspect
import json
import re
import shlex
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import typer

import arag
from arag import Context, copy_index, create_arag_agent, make_tools, open_index
from arag.cli import app
from arag.errors import ARAGError
from arag.evaluation import methods
from arag.graph.state import OutputState
from arag.ingest import formats
from arag.ingest.maintenance import verify
from arag.ingest.pipeline import run_ingest
from arag.ingest.sources import SourceReader
from arag.retrieval import types
from arag.retrieval.tools import RetrievalTool
from fakes import HashEmbeddings, hash_vector, write_corpus
from openai_server import chat, embeddings, serve

ROOT = Path(__file__).parent.parent
TRANSLATION = "README.zh-CN.md"
PARTS = ["arag", "graph", "ingest", "retrieval"]
RUN = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PAGES = [*RUN, TRANSLATION, "CHANGELOG.md", "SECURITY.md", "examples/README.md"]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
NOT_OURS = {"pip", "make"}  # programs whose arguments are checked, and not run
OWN_SERVER = "http://localhost:8000/v1"
OWN_DATABASES = "localhost:5432"
PSQL = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-", "--dbname")
SHOWN = {
    "README.md": [
        "founded in 1746 by Mattick Grevane",
        "ships/grey-petrel-packet-schooner.md:0 55",
        "places/vellin-light.md:0",
    ],
    "docs/getting-started.md": [
        "founded in 1746 by Mattick Grevane",
        "places/brannisey.md:0 seen ['",
        "Lanthry",
        '"chunks": 26',
    ],
    "docs/documents.md": ["dues", "15.3%", "the wreck of the Marigold", "tariff-1882:0", "film.srt:0"],
    "docs/models.md": ["A failed apothecary"],
    "docs/agent.md": [
        "2 max_steps",
        "answered",
        "['agent']\n['tools']",
        "keyword_search ['Vellin Light'",
        "The model wants to call ",
        "research ['tools']",
        "assistant ['research']\n['human', 'ai']",
        "The engineer of the Vellin Light was Corrin Ashe-Woldar",
        "[('places/skellavy.md:0', True)]",
    ],
    "docs/tools.md": [
        "Odvar Felisk: spelled Odvár Félisk (2 chunks); Grey Petrel: 3 chunks. The best 2 of 5 chunks:",
        "[ships/grey-petrel-packet-schooner.md:0] score 55",
        "[('ships/grey-petrel-packet-schooner.md:0', 55)",
        "[events/chronicle-of-the-lanthry-isles.md:1] ",
        "Corrin Ashe-Woldar: 2 chunks",
        "places/vellin-light.md:0 Vellin Light",
        "ships/grey-petrel-packet-schooner.md:0 Grey Petrel (packet schooner)",
    ],
    "docs/experiments.md": [
        "naive-rag",
        "arag-without-keyword",
        "first-words 3 of 3 answered",
        "linear-rag 3 of 3 answered",
        "runs/both/report.html",
    ],
    "docs/servers.md": ["founded in 1746 by Mattick Grevane", "ships/grey-petrel-packet-schooner.md:0", "vector"],
    "docs/the-index.md": ["24", "notice-1763-ropewalk"],
    "docs/settings.md": ['"documents": 25'],
    "CONTRIBUTING.md": ["long-words 3 of 3 answered"],
}


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, language=None):
    """Return a page's blocks as (language, what else stands in the fence, text)."""
    return [found for found in FENCE.findall(read(page)) if language in (None, found[0])]


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
    """A folder in which somebody has typed the README's commands, and what they printed."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "examples").symlink_to(ROOT / "examples")
    printed = []
    for _, (program, *arguments) in (command for *_, text in blocks("README.md", "sh") for command in commands(text)):
        if program not in NOT_OURS:
            done = subprocess.run(
                [Path(sys.executable).parent / program, *arguments],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, (program, arguments, done.stderr)
            printed.append(done.stdout)
    return folder, printed


@pytest.fixture(scope="module")
def provider():
    """A server for the pages' commands that name a model of OpenAI's, or one on localhost."""

    def respond(_, request):
        if "messages" in request:
            return chat("A failed apothecary [places/brannisey.md:0].")
        texts = request["input"]
        return embeddings([np.asarray(hash_vector(text)).tolist() for text in texts])

    with serve(respond) as server:
        yield server


@pytest.fixture
def folder(first_run, provider, tmp_path, monkeypatch):
    """The working folder of a page: it holds the examples and their index."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    copy_index(first_run[0] / "my-index", tmp_path / "my-index")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.delenv("ARAG_MODEL", raising=False)
    return tmp_path


@pytest.fixture
def follow(folder, provider, arag, capsys, monkeypatch):
    """A function that does what a page says, from top to bottom, and returns what is printed and the names."""
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(folder / "arag" / "evaluation" / "methods")])

    def run(page, server=None):
        names = {"__name__": "page"}
        printed = []
        for language, title, text in blocks(page):
            given = text.replace(OWN_SERVER, provider.url)
            if server is not None:
                given = given.replace(OWN_DATABASES, f"127.0.0.1:{server.port}")
            if language == "python":
                if file := re.search(r'title="(.+)"', title):
                    (folder / file[1]).parent.mkdir(parents=True, exist_ok=True)
                    (folder / file[1]).write_text(given, encoding="utf-8")
                exec(compile(given, page, "exec"), names)
                printed.append(capsys.readouterr().out)
            elif language == "sh" and page != "README.md":  # whose commands `first_run` has typed
                for variables, (program, *arguments) in commands(given):
                    if program not in NOT_OURS:
                        assert program == "arag"
                        with pytest.MonkeyPatch.context() as patch:
                            for name, value in variables.items():
                                patch.setenv(name, value)
                            code, out, err = arag(*arguments)
                        assert code == 0, (arguments, err)
                        printed.append(out)
            elif language == "sql":
                printed.append(server.run("psql", *PSQL, server.url("library"), text=given))
        return "".join(printed), names

    yield run
    sys.modules.pop(f"{methods.__name__}.long_words", None)


def test_the_first_commands_run(first_run):
    folder, (_, answered) = first_run
    assert "Mattick Grevane" in answered
    assert "<!doctype html>" in (folder / "run.html").read_text("utf-8").lower()


@pytest.mark.parametrize("page", [page for page in SHOWN if page not in {"CONTRIBUTING.md", "docs/servers.md"}])
def test_a_page_can_be_followed(page, follow):
    printed, _ = follow(page)
    for shown in SHOWN[page]:
        assert shown in printed, shown


@pytest.fixture
def library(postgres_server):
    """A server on which somebody has done what the page about servers says first."""
    (passwords,) = [text for _, title, text in blocks("docs/servers.md", "ini") if ".env" in title]
    environment = dict(line.split("=") for line in passwords.split())
    compose = read("examples/servers/compose.yaml")
    assert set(environment) == set(re.findall(r"^      (\w+_PASSWORD): ", compose, flags=re.MULTILINE))
    roles = read("examples/servers/roles.sql")
    try:
        postgres_server.run("psql", *PSQL, postgres_server.url(), text=roles, environment=environment)
        yield postgres_server
    finally:
        for database in ("library", "other_library", "langgraph"):
            postgres_server.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        for role in ("ingester", "searcher", "langgraph", "handbook_reader"):
            postgres_server.execute(f"DROP ROLE IF EXISTS {role}")


def test_the_page_about_servers_can_be_followed(follow, library, provider, monkeypatch):
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:words@{provider.url}")  # which takes no time
    monkeypatch.setattr("arag.retrieval.postgres.schema.MAX_MATRIX_BYTES", 0)  # as if the indexes were large
    printed, _ = follow("docs/servers.md", library)
    for shown in SHOWN["docs/servers.md"]:
        assert shown in printed, shown

    library.execute("CREATE DATABASE other_library OWNER ingester TEMPLATE template0")
    for extension in ("vector", "pg_trgm"):
        library.execute(f"CREATE EXTENSION {extension}", database="other_library")
    (shown,) = [text for *_, text in blocks("docs/servers.md", "console") if "pg_dump" in text]
    for line in shown.replace(OWN_DATABASES, f"127.0.0.1:{library.port}").splitlines():
        library.run(*shlex.split(line.removeprefix("$ ")), environment={"PGPASSWORD": "ingest-secret"})
    assert verify(library.url("other_library", "searcher", "search-secret")) == ([], [])


def test_messages_of_servers_say_what_the_page_says(library, tmp_path, monkeypatch):
    """Those that are easily caused; the table has no other that begins like one of them."""
    listed = [row[0].strip("` ") for row in table("docs/servers.md", "What to do when")]
    corpus = write_corpus(tmp_path / "corpus", {"a": "Rain falls. The tide is low."})
    caused = []

    def cause(does):
        with pytest.raises(ARAGError) as error:
            does()
        (found,) = [said for said in listed if said in str(error.value)]
        caused.append(found)

    def write(place):
        run_ingest(corpus, place, embedder=HashEmbeddings())

    owner = library.url("library", "ingester", "ingest-secret")
    reader = library.url("library", "searcher", "search-secret")
    cause(lambda: open_index(library.url("library", "ingester", "wrong")))
    cause(lambda: open_index(reader))
    write(owner)
    cause(lambda: write(reader))
    cause(lambda: write(f"{owner}?options=-c%20default_transaction_read_only%3Don"))
    library.execute("REVOKE USAGE ON SCHEMA arag FROM searcher", database="library")
    cause(lambda: open_index(reader))
    library.execute("GRANT USAGE ON SCHEMA arag TO searcher", database="library")
    library.execute("CREATE SCHEMA taken; CREATE TABLE taken.other (number int)", database="library")
    cause(lambda: write(f"{owner}?index=taken"))
    with open_index(f"{reader}?options=-c%20statement_timeout%3D20s", embedder=HashEmbeddings()) as index:
        assert index.keyword_search(["tide"]).hits
    library.execute("DROP TABLE arag.lowered", database="library")
    with open_index(reader, embedder=HashEmbeddings()) as index:
        cause(lambda: index.keyword_search(["tide"]))
    with library.database(extensions=False) as bare:
        name = bare.rpartition("/")[2]
        library.execute("CREATE SCHEMA handbook AUTHORIZATION ingester", database=name)
        cause(lambda: write(f"{library.url(name, 'ingester', 'ingest-secret')}?index=handbook"))
    assert len(set(caused)) == len(caused) == 8


def test_what_ray_would_start_shares_an_index(database, provider, tmp_path, monkeypatch):
    """In threads, as Ray is not here; other tests kill processes that share one."""
    sources = [
        write_corpus(tmp_path / name, {f"{name}{i}": f"Rain {i}. Tide {i}." for i in range(20)}) for name in "ab"
    ]
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "servers"))
    monkeypatch.setenv("ARAG_EMBEDDER", f"openai:words@{provider.url}")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    ingest_part = import_module("ray_embed").ingest_part
    with ThreadPoolExecutor(len(sources)) as executor:
        started = [executor.submit(ingest_part, str(source), database) for source in sources]
        assert sum(each.result(60) for each in started) > 0
    with open_index(database) as index:
        assert index.info().documents == 40


def test_no_page_with_something_to_run_is_forgotten():
    assert set(SHOWN) == {page for page in RUN if blocks(page, "sh") or blocks(page, "python")}


def test_the_demo_prints_what_is_shown(folder, arag):
    (shown,) = [text for *_, text in blocks("docs/getting-started.md", "console") if text.startswith("$ make demo\n")]
    asked, _, rest = shown.partition("\n\n")
    question = re.search(r"^QUESTION := (.*)$", read("Makefile"), flags=re.MULTILINE).group(1)
    assert " ".join(asked.split()) == f"$ make demo Question: {question}"
    code, out, _ = arag("ask", question, "--index", "my-index", "--model", "extractive")
    assert code == 0
    exact = json.loads(arag("info", "--index", "my-index", "--json")[1])["tokenizer"] == "o200k_base"
    lines = iter(out.splitlines())
    for line in rest.splitlines():
        text = line if exact else re.sub(r"\(\d+ tokens\)", "", line)
        beginning, _, end = text.partition("...")
        if beginning.strip():
            assert any(of.startswith(beginning.rstrip()) and of.endswith(end) for of in lines), line


def test_the_contributing_guide_can_be_followed(follow, folder):
    printed, names = follow("CONTRIBUTING.md")
    assert SHOWN["CONTRIBUTING.md"][0] in printed
    assert "long-words" in (folder / "runs" / "long-words" / "report.csv").read_text("utf-8")

    with open_index("my-index") as index:
        (next_chunk,) = make_tools(index, names=[names["NextChunk"]])
        following = next_chunk.invoke({"chunk_id": "events/chronicle-of-the-lanthry-isles.md:0"})
        assert following.startswith("[events/chronicle-of-the-lanthry-isles.md:1]")
        assert "no chunk follows" in next_chunk.invoke({"chunk_id": "places/skellavy.md:0"})
        create_arag_agent("extractive", index, tools=["keyword_search", names["NextChunk"]])


def test_the_reader_of_the_contributing_guide_reads(tmp_path):
    """The change that the guide shows is made to a copy of the module."""
    ((*_, shown),) = blocks("CONTRIBUTING.md", "diff")
    before, after = ("".join(f"{x[1:]}\n" for x in shown.splitlines() if x[0] == sign) for sign in "-+")
    source = Path(formats.__file__).read_text("utf-8")
    assert source.count(before) == 1
    (reader,) = [text for _, title, text in blocks("CONTRIBUTING.md", "python") if "ingest/" in title]
    names = {"__name__": "arag.ingest.formats"}
    exec(reader, names)
    exec(source.replace(before, after), names)
    (tmp_path / "gale.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,500\nThe gale\nhas come.\n\n2\n00:00:03,000 --> 00:00:04,000\nRun!\n"
    )
    (tmp_path / "none.srt").write_text("Nothing is said.")
    document, problem = SourceReader(tmp_path, names["Readers"]()).read()
    assert (document.id, document.title, document.text) == ("gale.srt", "gale", "The gale has come. Run!")
    assert problem.reason == "no subtitles found"


# --- what is compared ---


def test_the_translation_shows_the_same_as_the_readme():
    assert blocks(TRANSLATION) == blocks("README.md")
    assert re.findall(r"\]\(((?:docs|examples|notebooks)[^)]*)\)", prose(TRANSLATION)) == re.findall(
        r"\]\(((?:docs|examples|notebooks)[^)]*)\)", prose("README.md")
    )


def test_the_readme_is_short():
    text = read("README.md")
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 800


def test_programs_beside_ours_are_called_with_what_there_is():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))
    project = tomllib.loads(read("pyproject.toml"))["project"]
    for page in RUN:
        assert {*re.findall(r"(?:^|`)make ([a-z-]+)", read(page), flags=re.MULTILINE)} <= targets, page
        extras = {name for given in re.findall(r"'\.\[([\w,]+)\]'", read(page)) for name in given.split(",")}
        assert extras <= set(project["optional-dependencies"]), page


def all_commands(group, prefix=("arag",)):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command, (*prefix, name))
        else:
            yield " ".join((*prefix, name)), command


def table(page, heading):
    """Return the rows of the table below a heading."""
    below = read(page).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in below.splitlines() if line[:1] == "|"]
    return rows[2:]


def test_every_command_is_listed_and_says_whether_it_prints_json():
    listed = {name.strip("`"): has_json == "yes" for name, _, has_json in table("docs/settings.md", "Commands")}
    there = dict(all_commands(typer.main.get_command(app)))
    assert listed == {
        name: any("--json" in option.opts for option in command.params) for name, command in there.items()
    }


def test_every_option_that_is_named_is_there():
    there = {
        option
        for _, command in all_commands(typer.main.get_command(app))
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for page in RUN:
        named = set(re.findall(r"`(--[a-z-]+)", prose(page)))
        assert named <= there, page


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
    assert settings == {*signature, *Context.model_fields} - {"model", "index", "scope", "settings"}
    for row in rows:
        if row[1].replace(",", "").isdecimal():
            assert int(row[1].replace(",", "")) == Context.model_fields[row[0].strip("`")].default
    results = [row[0].strip("`") for row in table("docs/agent.md", "What a run returns")]
    assert sorted(results) == sorted(OutputState.__annotations__)
    text = read("docs/agent.md")
    assert all(f"`{name}`" in text for name in Context.model_fields)


def test_the_parts_of_the_house_are_listed():
    listed = {name for row in table("docs/how-it-works.md", "The code") for name in re.findall(r"`([\w/]+)/`", row[0])}
    below = {f"arag/{path.parent.name}" for path in (ROOT / "arag").glob("*/__init__.py")}
    assert listed == {*PARTS, *below} - {"arag/cli"}


# --- links ---


def anchors(text):
    """Return the anchors of a page's headings, as web sites of repositories and of documentation make them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        file, _, anchor = target.partition("#")
        if re.match(r"https?:", target):
            continue
        place = (ROOT / page).parent / file if file else ROOT / page
        assert place.exists(), target
        if anchor:
            text = place.read_text("utf-8")
            included = re.search(r'^--8<-- "(.+\.md)"$', text, flags=re.MULTILINE)
            assert anchor in anchors(read(included[1]) if included else text), target


def test_every_page_can_be_found():
    shown = {page for page in RUN if page.startswith("docs/")}
    navigation = set(re.findall(r": ([\w-]+\.md)$", read("mkdocs.yml"), flags=re.MULTILINE))
    assert {f"docs/{name}" for name in navigation} == shown
    named = {f"docs/{name}" for name in re.findall(r"\]\((\w[\w-]*\.md)\)", read("docs/index.md"))}
    assert named >= set(re.findall(r"\]\((docs/[\w-]+\.md)\)", read("README.md")))


# --- examples in docstrings ---


def public_objects():
    """Yield what is public, with its name: functions and classes.

    The dictionaries of a run's state are left out: their docstrings are what Studio shows. The results of an index have
    one example, that of their module.
    """
    everything = {name: getattr(import_module(home), name) for name, home in arag._HOMES.items()}
    found = [everything[name] for name in arag.__all__] + [RetrievalTool]
    yield "types", types
    for public in found:
        if inspect.isclass(public) or inspect.isfunction(public):
            yield public.__name__, public


@pytest.mark.parametrize("public", [pytest.param(public, id=name) for name, public in public_objects()])
def test_a_public_docstring_shows_an_example_that_runs(public, folder, monkeypatch):
    section = re.search(r"^Example:\n((?:    .*\n|\n)+)", f"{inspect.getdoc(public)}\n", flags=re.MULTILINE)
    assert section, f"{public} has no Example:"
    with open_index("my-index") as index:
        names = {
            **vars(inspect.getmodule(public)),
            "index": index,
            "agent": create_arag_agent("extractive", index),
        }
        test = doctest.DocTestParser().get_doctest(section[1], names, str(public), None, None)
        ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
    assert ran.attempted
    assert not ran.failed


# --- words ---


def test_the_wording_of_pages_and_messages_is_checked(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```sh\nanew\n```\n\nThe the index is\nmade anew. There is no `anew`.\n" + "and so on " * 15
    )
    module = tmp_path / "module.py"
    module.write_text('def fail():\n    """Fail."""\n    raise ValueError(f"{fail} is no list of names")\n')
    script = ROOT / "docs" / "scripts" / "check_words.py"
    done = subprocess.run([sys.executable, script, page, module], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.removeprefix(f"{tmp_path}/").split(": ")[:2] for line in done.stdout.splitlines()] == [
        ["page.md:8", "'anew'"],
        ["page.md:7", "'The the'"],
        ["page.md:9", "a sentence of 45 words"],
        ["module.py:3", "'is no list'"],
    ]
