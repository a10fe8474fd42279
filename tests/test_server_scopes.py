"""Two users of one server, each with a scope of their own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from httpx import HTTPStatusError
from langgraph_sdk import get_sync_client

from langgraph_server import start_server

pytestmark = pytest.mark.servers

_ROOT = Path(__file__).resolve().parent.parent

LENS = {"messages": [{"role": "user", "content": "Who founded the glassworks that made the lens of the Vellin Light?"}]}
SHIP = {"messages": [{"role": "user", "content": "Who was the shipwright of the packet schooner Grey Petrel?"}]}
ALL = {"scope": {"documents": ["*"]}}


@pytest.fixture(scope="module")
def server(tmp_path_factory, example_index):
    """A server with the authentication that the documentation shows, and a user without a scope."""
    folder = tmp_path_factory.mktemp("server")
    page = (_ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Auth()" in block]
    code += 'USERS["Bearer eve"] = {"identity": "eve"}\n'
    code += 'USERS["Bearer nil"] = {"identity": "nil", "arag_scope": {"where": None}}\n'
    (folder / "auth.py").write_text(code, encoding="utf-8")
    config = json.loads((_ROOT / "langgraph.json").read_text(encoding="utf-8"))
    (folder / "langgraph.json").write_text(json.dumps(config | {"auth": {"path": "./auth.py:auth"}}), encoding="utf-8")
    variables = {"ARAG_INDEX": str(example_index.path), "ARAG_USER_SCOPE": "arag_scope"}
    with start_server(folder, **variables) as running:
        yield running


@pytest.fixture
def client_of(server):
    return lambda name: get_sync_client(
        url=server.url, api_key=None, timeout=60, headers={"authorization": f"Bearer {name}"}
    )


def documents_in(results, index):
    """Return every document of the index whose id occurs in what a client got."""
    text = json.dumps(results)
    return {i.rpartition(":")[0] for i in index.chunk_ids() if i.rpartition(":")[0] in text}


def test_each_user_sees_their_scope_only(client_of, example_index):
    ship, lens = (client_of("ann").runs.wait(None, "arag", input=question) for question in (SHIP, LENS))
    assert "Hesper Quillorne" in ship["answer"]
    assert "Mattick Grevane" not in json.dumps(lens)
    assert {document.partition("/")[0] for document in documents_in([ship, lens], example_index)} == {"ships"}
    states = [client_of("ben").runs.wait(None, "arag", input=question) for question in (SHIP, LENS)]
    years = [example_index.document(i).metadata.get("year") for i in documents_in(states, example_index)]
    assert all(year is not None and year < 1800 for year in years)


def test_neither_a_run_nor_an_assistant_widens_its_users_scope(client_of, example_index):
    ann = client_of("ann")
    boss = {"langgraph_auth_user": {"identity": "boss", "arag_scope": {"documents": ["*"]}}}
    wide = [{"context": given} for given in (ALL, boss)]
    wide += [{"config": {"configurable": given}} for given in (ALL, boss)]
    assistant = ann.assistants.create("arag", context=ALL)["assistant_id"]
    states = [ann.runs.wait(None, "arag", input=LENS, **options) for options in wide]
    states.append(ann.runs.wait(None, assistant, input=LENS))
    assert {document.partition("/")[0] for document in documents_in(states, example_index)} == {"ships"}
    with pytest.raises(HTTPStatusError, match="404"):
        client_of("ben").runs.wait(None, assistant, input=LENS)
    narrow = {"scope": {"documents": ["ships/grey-petrel-mail-steamer.md", "places/vellin-light.md"]}}
    state = ann.runs.wait(None, "arag", input=SHIP, context=narrow)
    assert documents_in(state, example_index) <= {"ships/grey-petrel-mail-steamer.md"}


def test_a_thread_is_its_owners(client_of):
    ann, ben = client_of("ann"), client_of("ben")
    thread = ann.threads.create()["thread_id"]
    ann.runs.wait(thread, "arag", input=SHIP)
    for attempt in (
        lambda: ben.threads.get_history(thread),
        lambda: ben.runs.wait(thread, "arag", input=LENS),
        lambda: ben.threads.copy(thread),
        lambda: ben.threads.update_state(thread, {"messages": []}),
    ):
        with pytest.raises(HTTPStatusError, match=r"40[349]|not found|Conflict"):
            attempt()
    assert ben.threads.search() == []


def test_who_has_no_scope_sees_nothing(client_of):
    for name in ("eve", "nil"):
        with pytest.raises(Exception, match="this run's user has none"):
            client_of(name).runs.wait(None, "arag", input=LENS)
    for scope in ("", {}, {"documents": None}):
        with pytest.raises(Exception, match="is not a scope"):
            client_of("ann").runs.wait(None, "arag", input=LENS, context={"scope": scope})
    with pytest.raises(HTTPStatusError, match="401"):
        client_of("mallory").runs.wait(None, "arag", input=LENS)
