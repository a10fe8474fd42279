"""The command line, run as a user would, in this process; a few tests start the installed program."""

import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import pytest

from arag import ingest, make_tools, open_index, terminal
from arag.cli.ingest import LEFT_OUT
from arag.cli.ingest import ingest as ingest_command
from arag.cli.shell import shell
from arag.evaluation.cli.reporting import report
from arag.ingest import preview, progress
from arag.ingest.formats import Readers
from arag.ingest.formats.kinds import SAME_KINDS
from arag.ingest.formats.scans import PICTURES
from arag.terminal import FAILED, INTERRUPTED
from fakes import HashEmbeddings, hash_vector, write_corpus
from forked import ARAG
from openai_server import Failure, chat, embeddings, serve

PROGRAM = Path(sys.executable).parent / "arag"
QUESTION = "Who founded the glassworks that made the lens of the Vellin Light?"
SEARCH = ("c1", "keyword_search", '{"keywords": ["Skellavy"]}')
UNREACHABLE = ["--model", "openai:none@http://127.0.0.1:9/v1", "--model-option", "max_retries=0"]


@pytest.fixture(scope="module")
def index(example_index):
    return example_index.path


# --- an index ---


def test_a_second_ingestion_embeds_nothing_and_prune_removes_what_is_gone(arag, tmp_path):
    docs = write_corpus(tmp_path / "docs", {f"{name}.md": f"Document {name} speaks of mills." for name in "abc"})
    ingest = ["ingest", docs, "--index", tmp_path / "index"]
    code, out, _ = arag(*ingest, "--chunk-tokens", 100)
    assert (code, "holds 3 documents, 3 chunks, 3 sentences." in out) == (0, True)
    summary = json.loads(arag(*ingest, "--json")[1])
    assert (summary["read"], summary["written"], summary["embedded"]) == (3, 0, 0)
    (docs / "b.md").unlink()
    assert "Kept, but not read this time: 1 document." in arag(*ingest)[1]
    assert json.loads(arag(*ingest, "--prune", "--json")[1])["removed"] == 1
    (docs / "a.md").write_text("")
    for options, way in ([], "--prune removes those"), (["--prune"], "`arag remove` removes documents."):
        assert f"Kept, but not read this time: 1 document. {way}" in arag(*ingest, *options)[1]


def test_what_is_left_out_is_named_and_shows_in_the_exit_code(arag, tmp_path):
    (tmp_path / "records.jsonl").write_text('{"id": "x", "text": "The mill stands."}\n{"id": "y", "text": \n')
    code, out, err = arag("ingest", tmp_path / "records.jsonl", "--index", tmp_path / "index")
    assert (code, "1 document" in out, "records.jsonl, line 2" in err) == (LEFT_OUT, True, True)


def test_an_index_can_be_searched_read_and_described(arag, index):
    code, out, _ = arag("search", "keyword", "Skellavy", "Grey Petrel", "--index", index, "--top-k", 2)
    assert (code, "Grey Petrel: 3 chunks" in out, out.count("\n[")) == (0, True, 2)
    semantic = ["search", "semantic", "lens of", "the light", "--index", index, "--top-k", 3]
    found = json.loads(arag(*semantic, "--json")[1])
    assert found["hits"][0]["chunk_id"] == "places/vellin-light.md:0"
    with open_index(index) as opened:
        shown = make_tools(opened, names="paper", top_k=3)[1].invoke({"queries": ["lens of the light"]})
    assert found["shown"] == shown != arag(*semantic, "--paper")[1].rstrip("\n")
    code, out, _ = arag("read", "places/skelavy.md:0", "--index", index)
    assert (code, "[places/skellavy.md:0]" in out) == (FAILED, True)
    info = arag("info", "--index", index)[1]
    assert re.search(r"documents +25\b", info)
    assert "incomplete" not in info
    assert "other languages" not in info
    listed = arag("list", "--index", index, "--documents", "places/sk*")[1]
    assert re.fullmatch(r"places/skellavy.md\tSkellavy\t1\t.*places/skellavy.md\n", listed)


def test_a_search_shows_people_all_hits_in_the_order_of_their_rank(arag, tmp_path):
    docs = {f"d{number:02}.md": f"The light number {number} is lit by a keeper. " * 9 for number in range(12)}
    docs["copy.md"] = docs["d03.md"]
    docs["menu.md"] = "# Help\n\n- Light keeper\n\nMills grind corn near the river.\n"
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)

    code, out, _ = arag("search", "semantic", "light keeper", *place, "-k", 12)
    similarities = [float(found) for found in re.findall(r"(?m)^\[.*\] \((\d\.\d\d)", out)]
    assert (code, len(similarities)) == (0, 12)
    assert similarities == sorted(similarities, reverse=True)
    assert out.startswith(
        "The best chunks by meaning and words, with their similarity in meaning, and 1 with the same sentences "
        "(more: -k 24):"
    )
    assert "menu.md" not in out  # a label is near to a short query, and says nothing

    titled = "# Bellows\n\nCoal is brought on Monday by the carter.\n"
    arag("ingest", write_corpus(tmp_path / "more", {"titled.md": titled}), *place)
    assert "[titled.md:0]" in arag("search", "semantic", "Bellows", *place)[1]

    out = arag("search", "keyword", "keeper", "mills", *place)[1]
    assert "The best 5 of 14 chunks" in out
    assert (out.count("\n["), "(more: -k 10):" in out, "[menu.md:0]" in out) == (5, True, True)
    out = arag("search", "keyword", "number", "corn", *place, "-k", 1)[1]
    assert "The best 2 of 14 chunks" in out  # the best of each keyword
    assert "(more: -k 4):" in out
    assert "All are shown:" in arag("search", "keyword", "keeper", *place, "-k", 14)[1]


def test_a_search_by_meaning_ranks_with_the_words_of_the_question(arag, tmp_path):
    menus = ["first", "second", "third", "fourth", "fifth"]
    docs = {f"{menu}.md": f"Open the {menu} menu to choose the colour of the page." for menu in menus}
    docs["notes.md"] = "The variable PAGE_TINT is read at the start."
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)

    out = arag("search", "semantic", "How do I choose the colour of a page with PAGE_TINT?", *place)[1]
    found = re.findall(r"(?m)^\[(.*):0\] \((\d\.\d\d)", out)
    assert found[0][0] == "notes.md"
    assert float(found[0][1]) < float(found[1][1])


def test_a_hit_by_meaning_also_shows_the_sentence_with_rare_words_of_the_question(arag, tmp_path):
    filler = "The keepers swept the long stone quay on a grey and windy morning. " * 12
    text = (
        f"A keeper lights the lamp. The lamp is lit at dusk by the keeper. {filler}Paraffin is kept in casks. {filler}"
    )
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", {"lamp.md": text}), *place)

    out = arag("search", "semantic", "How does the keeper light the lamp with paraffin?", *place)[1]
    assert "A keeper lights the lamp." in out
    assert "… Paraffin is kept in casks. …" in out


def test_the_first_hit_by_meaning_shows_one_more_sentence_near_to_the_question(arag, tmp_path):
    filler = "Rain fell on the long stone quay on a grey and windy morning. " * 12
    text = (
        f"The keeper lights the lamp. {filler}The keeper cleans the lamp. {filler}The keeper trims the lamp. {filler}"
    )
    place = ["--index", tmp_path / "index"]
    docs = {"lamp.md": f"# Lamp\n\n{text}", "bell.md": "# Bell\n\nA keeper rings the bell."}
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place, "--chunk-tokens", 1000)

    out = arag("search", "semantic", "what does the keeper do with the lamp", *place)[1]
    assert ["The keeper " + done in out for done in ("lights", "cleans", "trims")] == [True, True, True]


def test_a_hit_repeats_no_sentence_and_names_no_part_of_its_own_document(arag, tmp_path):
    text = "The wrecker asks for a duel at dawn. " + "Rain fell on the quay all that long day. " * 40
    place = ["--index", tmp_path / "index"]
    docs = {"letters.md": "# Letters\n\n" + f"{text}\n\n" * 12}
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place, "--chunk-tokens", 1000)

    out = arag("search", "keyword", "duel", *place)[1]
    assert [hit.count("asks for a duel") for hit in out.split("\n\n[")[1:]] == [1, 1, 1]
    assert "same sentences are in" not in out


def test_code_of_which_a_part_is_found_is_shown_to_its_end(arag, tmp_path):
    place = ["--index", tmp_path / "index"]
    code = "    [org/mill]\n    path=left\n\n    [org/wheel]\n    enable-wheel=false\n"
    text = f"# Settings\n\n{'The carts stand in the yard. ' * 30}\n\n{code}\nThen it is over.\n"
    arag("ingest", write_corpus(tmp_path / "docs", {"a.txt": text}), *place)
    assert "enable-wheel=false" in arag("search", "keyword", "path", *place)[1]


def test_commands_of_a_text_are_shown_on_lines_of_their_own_and_wrapped_text_is_not(arag, tmp_path):
    place = ["--index", tmp_path / "index"]
    text = (
        "Mills\n=====\n\n    All that is needed is fetched before the work begins. To build the\n"
        "    mill and all of its wheels, just run\n\n    # build-mill --with wheels\n    # turn-mill\n"
    )
    arag("ingest", write_corpus(tmp_path / "docs", {"a.txt": text}), *place)
    out = arag("search", "keyword", "mill", "wheels", *place)[1]
    assert "To build the mill and all of its wheels, just run\n" in out
    assert "\n    # build-mill --with wheels\n    # turn-mill\n" in out


def test_a_part_of_long_code_is_shown_with_its_lines(arag, tmp_path):
    place = ["--index", tmp_path / "index"]
    settings = "\n".join(f"        wheel_{number:02} = turns slowly" for number in range(30))
    text = f"# Mill\n\nIt is set like this.\n\n    /etc/mill.conf:\n{settings}\n\nThen it is over.\n"
    arag("ingest", write_corpus(tmp_path / "docs", {"a.txt": text}), *place)
    out = arag("search", "keyword", "wheel_12", *place)[1]
    assert "\n        wheel_11 = turns slowly\n        wheel_12 = turns slowly\n" in out
    assert ("\n…\n" in out, out.endswith("\n…\n"), "wheel_01" in out) == (True, True, False)
    assert "wheel_29 = turns slowly …\n" in arag("search", "keyword", "wheel_29", *place)[1]


def test_paragraphs_are_shown_to_people_on_lines_of_their_own(arag, tmp_path):
    place = ["--index", tmp_path / "index"]
    text = "# Tide\n\nIcon of the tide mill,\n\nIt turns with the tide. It grinds rye.\n\nThe dam is of oak.\n"
    arag("ingest", write_corpus(tmp_path / "docs", {"mills.md": text}), *place)
    out = arag("search", "keyword", "tide", "oak", *place)[1]
    assert "Icon of the tide mill,\nIt turns with the tide. It grinds rye.\nThe dam is of oak.\n" in out


def test_the_line_below_a_title_is_not_shown(arag, tmp_path):
    place = ["--index", tmp_path / "index"]
    text = "1. Mills\n--------\n\n     The mill turns.\n\n2. Koptein\n----------\n\n     The maker was born in Orra.\n"
    arag("ingest", write_corpus(tmp_path / "docs", {"a.txt": text}), *place)
    out = arag("search", "keyword", "Koptein", "maker", *place)[1]
    assert "2. Koptein: The maker was born in Orra." in out
    assert "---" not in out


def test_a_page_about_a_question_comes_before_one_with_a_single_sentence_like_it(arag, tmp_path):
    docs = {
        "tour.md": "The mill has a wheel. Corn is ground at night. Please crop a photo. Rain fills the pond.",
        "crop.md": "Crop any photo here. A photo with a crop is smaller. Choose a photo to crop. Press the key.",
    }
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    out = arag("search", "semantic", "crop a photo", *place)[1]
    assert re.findall(r"(?m)^\[(.*)\] ", out) == ["crop.md:0", "tour.md:0"]
    with open_index(tmp_path / "index") as opened:
        assert opened.semantic_search("crop a photo").hits[0].chunk_id == "tour.md:0"
        openings = opened.rate_openings("crop a photo", ["crop.md:0", "tour.md:0", "unknown"])
        assert openings["crop.md:0"] > openings["tour.md:0"]
        assert len(openings) == 2


def test_a_menu_that_many_pages_share_fills_no_search_by_meaning(arag, tmp_path):
    menu = "- ntpwait(8) - wait until the clock runs\n- ntpmon(1) - show the clock at work\n"
    things = ["mills", "boats", "lamps", "bells", "ropes", "coals"]
    docs = {f"{thing}.md": f"# {thing}\n\n{menu}\nThe {thing} are old. Many {thing} stand here.\n" for thing in things}
    docs["orphan.md"] = "# Orphan\n\nThe daemon must wait 300 seconds. Then orphans are enabled. Peers are lost."
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    out = arag("search", "semantic", "how long does the daemon wait until the clock runs", *place, "-k", 2)[1]
    assert "[orphan.md:0]" in out


def test_keys_addresses_and_lists_of_links_are_not_near_in_meaning(arag, tmp_path):
    key = "".join(f"U7z7pvaUfato57kxBQJgKXTOBQkWkTWhAAoJEPaUfato57kxvUYP/{number}crEFkQt\n" for number in range(9))
    docs = {
        "key.md": f"# Key\n\n-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{key}=pwpf\n-----END PGP PUBLIC KEY BLOCK-----\n",
        "sums.txt": "d41d8cd98f00b204e9800998ecf8427e\n\nhttps://example.org/mill\n\n12 14 16 18\n",
        "mill.md": "# Mill\n\n## See also\n\n- The clock of the tower\n\n## Use\n\nIt grinds rye. It grinds corn.\n",
        "tower.md": "# Tower\n\nThe tower has a clock and a bell, and a keeper winds it on Monday.\n",
    }
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    out = arag("search", "semantic", "public key block clock of the tower", *place)[1]
    ranked = re.findall(r"(?m)^\[(\S+):0\] \((\S+?)[,)]", out)
    assert [document for document, _ in ranked[:2]] == ["tower.md", "mill.md"]
    assert sorted(ranked[2:]) == [("key.md", "0.00"), ("sums.txt", "0.00")]
    assert "The clock of the tower" not in out


def test_people_are_told_whether_a_text_or_only_its_shown_sentences_are_the_same(arag, tmp_path):
    sentence = "The ferry sails at nine.\n\n"
    docs = {"a.md": sentence, "b.md": sentence}
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    search = ["search", "keyword", "ferry", *place]
    assert "(the same text: [b.md:0])" in arag(*search)[1]
    longer = {"c.md": sentence + "Coal is dear. " * 40}
    arag("ingest", write_corpus(tmp_path / "more", longer), *place)
    assert "(the same sentences are in: [" in arag(*search)[1]


def test_chunks_with_a_keyword_only_within_longer_words_come_behind_the_others(arag, tmp_path):
    docs = {f"d{number}.md": f"The lighthouse has {number} keepers." for number in range(6)}
    docs["whole.md"] = "A light shines over the harbour, and ships pass by it every night."
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    out = arag("search", "keyword", "light", *place, "-k", 3)[1]
    assert "The best 3 of 7 chunks (more: -k 6):\n\n[whole.md:0]" in out
    assert out.count("\n[") == 3
    out = arag("search", "keyword", "light", *place, "-k", 7)[1]
    assert ("All are shown:" in out, out.count("\n[")) == (True, 7)


def test_a_statement_is_shown_although_numbered_names_of_sections_stand_before_it(arag, tmp_path):
    names = "1. Tide mills\n2. When tide mills grind\n3. Benefits of tide mills\n4. Owners of tide mills\n"
    text = f"Rye is dear.\n\n{names}\nAt ebb, all tide mills grind. The other ones wait. {'It rains. ' * 80}\n"
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", {"rye.md": text}), *place)
    assert "At ebb, all tide mills grind." in arag("search", "keyword", "tide mills", *place)[1]


def test_words_like_one_that_is_only_within_longer_words_are_named(arag, tmp_path):
    docs = {"lock.md": "The fingerprintreader is off.", "print.md": "The printer is on. A printer hums."}
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    out = arag("search", "keyword", "printr", *place)[1]
    assert out.startswith("printr: 1 chunk, only within longer words (similar: printer (1 chunk)).\n")


def test_sentences_with_a_keyword_as_a_word_are_shown_and_not_those_with_it_inside_longer_words(arag, tmp_path):
    text = f"Start typing the name. Mice with a pinwheel turn. {'Wait a while. ' * 9}Confirm the PIN there. Then go."
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", {"connect.md": text, "other.md": "They are typing."}), *place)
    out = arag("search", "keyword", "PIN", *place)[1]
    assert "[connect.md:0] connect: … Confirm the PIN there. Then go.\n" in out
    assert "They are typing." in out


def test_each_keyword_that_is_a_word_is_shown_in_a_sentence_with_this_word(arag, tmp_path):
    code = [f"The pens draw(grid,thicklines) in step {step}." for step in range(3)]
    text = f"Every fifth line is thick. {'Wait a while. ' * 99}{' '.join(code)}"
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", {"plot.md": text}), *place)
    out = arag("search", "keyword", "grid", "pens", "thick", *place)[1]
    assert "Every fifth line is thick." in out
    assert code[0] in out


def test_headings_are_shown_to_people_without_marks_and_chunks_of_headings_come_last(arag, tmp_path):
    docs = {
        "menu.md": "# Colours\n\n## Colour profiles\n\n## Problems with colours\n",
        "text.md": "# Ships\n\n## Paint\n\n### Colour profiles\n\n## Harbour\n\nShips are painted in bright colours.\n",
    }
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    for search in (["semantic", "colour profiles"], ["keyword", "colour profiles", "colours"]):
        out = arag("search", *search, *place)[1]
        assert "Colours: Colour profiles\nProblems with colours\n" in out
        assert ("#" in out, out.index("[text.md:0]") < out.index("[menu.md:0]")) == (False, True)


@pytest.mark.parametrize("function", [ingest_command, shell, report])
def test_each_line_of_help_below_the_first_is_whole_as_its_end_is_kept(function):
    _, *lines = filter(None, inspect.getdoc(function).splitlines())
    assert all(line.endswith(".") for line in lines)


# --- wrong command lines ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ingest", "{tmp}/nowhere", "--index", "{tmp}/i"], "nowhere"),
        (["ingest", "{tmp}/latin.txt", "--index", "{tmp}/i"], "not valid UTF-8"),
        (["ingest", "{tmp}/good.txt", "--index", "{tmp}/good.txt"], "is a file: give a folder for the index"),
        (["ingest", "{tmp}/latin.txt", "--index", "{tmp}/i", "--as", ".log"], ".log=.txt"),
        (["ask", "q", "--index", "{tmp}/i"], "no index in"),
        (["search", "keyword", "q", "--index", "{tmp}/good.txt"], "give a folder, not a file"),
        (["ask", " ", "--index", "{index}"], "blank"),
        (["ask", "q", "--index", "{index}", "--html", "{tmp}/none/run.html"], "does not exist"),
        (["ask", "q", "--index", "{index}", "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        (["ask", "q", "--index", "{index}", "--model-option", "temperature"], "NAME=VALUE is needed"),
        (["ask", "q", "--index", "{index}", "--model-option", "api_key=x"], "environment variable"),
        (["ask", "q", "--index", "{index}", "--where", "null"], "--where 'null': a JSON object is needed"),
        (["search", "keyword", " ", "--index", "{index}"], "the text is blank"),
    ],
)
def test_bad_input_is_one_clear_line_on_stderr(arag, index, tmp_path, monkeypatch, arguments, said):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
    (tmp_path / "good.txt").write_text("The mill stands.")
    code, out, err = arag(*(a.format(tmp=tmp_path, index=index) for a in arguments))
    assert (code, out, err.count("\n"), said in err) == (FAILED, "", 1, True)
    assert err.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["search", "keyword", "x"], "--index"), (["ask", "q", "--index", "i", "--max-steps", 0], "--max-steps")],
)
def test_a_wrong_command_line_is_exit_code_2(arag, arguments, said):
    code, _, err = arag(*arguments)
    assert (code, said in err) == (2, True)


def test_the_installed_program_runs_and_says_in_one_line_that_its_output_cannot_be_written(index):
    with Path("/dev/full").open("w") as full:
        command = [PROGRAM, "list", "--index", index]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: the output cannot be written: No space left on device\n")
    command = [PROGRAM, "search", "keyword", "Skellavy", "--index", index]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ("[places/skellavy.md:0]" in done.stdout, done.stderr) == (True, "")
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{version('langgraph-arag')}\n"


# --- ask ---


def test_ask_json_is_one_object_with_everything(arag, index):
    code, out, err = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert {"answer", "citations", "stop_reason", "steps", "read_chunks", "trace", "usage", "cost"} <= set(record)
    assert "messages" not in record


def test_ask_without_a_model_says_which_one_it_uses_and_a_forced_answer_says_so(arag, index, monkeypatch):
    monkeypatch.delenv("ARAG_MODEL", raising=False)
    code, out, _ = arag("ask", QUESTION, "--index", index, "--max-steps", 1)
    assert (code, "forced: max_steps" in out, "not a language model" in out) == (0, True, True)


def test_ask_html_writes_a_page_of_the_run_also_of_one_that_failed(arag, index, tmp_path):
    page = tmp_path / "run.html"
    code, out, _ = arag("ask", QUESTION, "--index", index, "--model", "extractive", "--html", page, "--json")
    assert (code, json.loads(out)["question"], QUESTION in page.read_text("utf-8")) == (0, QUESTION, True)
    code, out, err = arag("ask", "q", "--index", index, *UNREACHABLE, "--html", page)
    assert (code, out, " failed: no server listens at http://127.0.0.1:9/v1" in err) == (FAILED, "", True)
    assert f"<b>The run failed.</b> {err.removeprefix('Error: ').strip()}" in page.read_text("utf-8")


def test_a_page_that_cannot_be_written_hides_neither_the_answer_nor_the_models_error(arag, index):
    code, out, err = arag("ask", QUESTION, "--index", index, "-m", "extractive", "--html", "/dev/full")
    assert (code, "Mattick Grevane" in out, "No space left on device" in err) == (FAILED, True, True)
    code, _, err = arag("ask", "q", "--index", index, *UNREACHABLE, "--html", "/dev/full")
    assert (code, "no server listens" in err) == (FAILED, True)


def test_ask_passes_the_agents_settings_on(arag, index):
    options = ["--tools", "paper", "--top-k", 1]
    options += ["--model-option", "reasoning_effort=low", "--model-option", "temperature=0.25"]
    with serve([chat(None, SEARCH), chat("Nobody.")]) as server:
        assert arag("ask", QUESTION, "--index", index, *options, "--model", f"openai:m@{server.url}")[0] == 0
    request = server.requests[-1]
    assert (request["temperature"], request["reasoning_effort"]) == (0.25, "low")
    assert "The best 1 of" in request["messages"][-1]["content"]


def test_ask_shows_the_answer_as_it_is_written_and_what_it_cost(arag, index):
    script = [chat("I look first.", SEARCH), chat("In 1783 [places/skellavy.md:0].")]
    with serve([reply | {"model": "gpt-5-mini-2025-08-07"} for reply in script]) as server:
        _, out, _ = arag("ask", QUESTION, "--index", index, "--model", f"openai:gpt-5-mini@{server.url}")
    places = [out.index(text) for text in ("I look first.", "keyword_search", "In 1783", "Sources", "200 input tokens")]
    assert (places, out.count("In 1783"), "$0.0" in out) == (sorted(places), 1, True)


@pytest.mark.parametrize("response", [Failure(401), Failure(200, page=True), chat() | {"choices": []}])
def test_what_a_provider_refuses_is_one_line(arag, index, response):
    with serve(lambda _, request: response if request else Failure(400)) as server:
        code, _, err = arag("ask", QUESTION, "--index", index, "--model", f"openai:m@{server.url}", "--json")
    assert (code, err.startswith("Error: the model "), err.count("\n")) == (FAILED, True, 1)


# --- Ctrl-C ---


def test_an_interrupted_ingestion_ends_at_once_and_leaves_what_was_committed(arag, tmp_path, monkeypatch):
    hanging, is_hanging = ["windmill"], threading.Event()

    def embed(_, request):
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        if any(word in text for word in hanging for text in texts):
            is_hanging.set()
            return Failure(hang=True)
        return embeddings([hash_vector(text).tolist() for text in texts])

    docs, index = write_corpus(tmp_path / "docs", {"old.md": "The mill stands."}), tmp_path / "index"
    with serve(embed) as server:
        monkeypatch.setenv("ARAG_EMBEDDER", f"openai:m@{server.url}")
        assert arag("ingest", docs, "--index", index)[0] == 0
        write_corpus(docs, {f"{n}.md": f"Tower {n}. " + f"The tower of {n} stands. " * 9 for n in range(3)})
        write_corpus(docs, {"new.md": "The windmill stands."})
        command = [sys.executable, "-c", ARAG, "ingest", docs, "--index", index]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert is_hanging.wait(120)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err.endswith("Interrupted.\n"), "Traceback" in err) == (INTERRUPTED, True, False)
        assert json.loads(arag("info", "--index", index, "--json")[1])["documents"] == 1
        hanging.clear()
        assert arag("ingest", docs, "--index", index)[0] == 0
        assert arag("verify", "--index", index)[0] == 0
        assert json.loads(arag("info", "--index", index, "--json")[1])["documents"] == 5


# --- what somebody does in the first hour ---


def test_an_empty_scope_is_named(arag, index):
    for command in (["search", "keyword", "light"], ["search", "semantic", "light"], ["grep", "light"], ["list"]):
        err = arag(*command, "--documents", "no/*", "--index", index)[2]
        assert err.startswith(
            "No document of the index is in the scope: none has the id no/*. `arag list` shows all ids."
        )
    assert "scope" not in arag("search", "keyword", "light", "--index", index)[2]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_page_of_a_run_is_written_if_the_reader_of_a_pipe_is_gone(index, tmp_path, stream):
    reader, pipe = os.pipe()
    os.close(reader)
    page = tmp_path / "run.html"
    command = [sys.executable, "-c", ARAG, "ask", QUESTION, "--index", index, "--html", page]
    done = subprocess.run(command, **{"stdout": subprocess.PIPE, stream: pipe}, check=False)
    os.close(pipe)
    assert (done.returncode, "Mattick Grevane" in page.read_text()) == (0, True)
    assert "The run failed" not in page.read_text()


def test_a_strict_exit_code_says_that_the_built_in_model_found_no_answer(arag, index):
    assert arag("ask", QUESTION, "--strict", "--index", index)[0] == 0
    code, out, _ = arag("ask", "When did the light of Vellin cost a crown?", "--strict", "--index", index)
    assert (code, "These rules recognise no answer" in out) == (3, True)
    assert out.endswith(", no answer found\n")
    _, out, _ = arag("ask", "When did the light of Vellin cost a crown?", "--json", "--index", index)
    record = json.loads(out)
    assert record["answer"].startswith("These rules recognise no answer")
    assert (record["grounding"], record["stop_reason"]) == ("none", "answered")
    assert record["citations"]


def test_the_help_says_which_files_need_an_extra(arag, tmp_path):
    """Each extension of the help is read, or left out with the extra's name, if the extra's libraries are missing."""
    libraries, docs = tmp_path / "libraries", tmp_path / "docs"
    libraries.mkdir()
    docs.mkdir()
    for name in ("xberg", "openpyxl", "pptx"):
        (libraries / f"{name}.py").write_text("raise ModuleNotFoundError(__name__)")
    examples = Path(__file__).parents[1] / "examples" / "office"
    for file in examples.iterdir():
        shutil.copy(file, docs)
    (docs / "b.rtf").write_text(r"{\rtf1 The mill turns.}")
    command = [sys.executable, "-c", ARAG, "ingest", "--dry-run", "--json", docs]
    environment = os.environ | {"PYTHONPATH": str(libraries)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    problems = json.loads(done.stdout)["problems"]
    assert problems
    assert all("langgraph-arag[office]" in problem["reason"] for problem in problems)
    words = " ".join(arag("ingest", "--help")[1].replace("│", " ").split())
    without, _, with_extra = words.partition("with the extra `office`")
    needing = {Path(problem["source"]).suffix[1:] for problem in problems}
    others = {file.suffix[1:].lower() for file in docs.iterdir()} - needing
    assert all(re.search(rf"\b{extension}\b", with_extra.partition(" msg")[0]) for extension in needing)
    assert all(re.search(rf"\b{extension}\b", without) for extension in others)


def test_help_names_all_formats(arag):
    words = " ".join(arag("ingest", "--help")[1].replace("│", " ").split())
    other_spellings = set(".markdown .rmd .qmd .text .debian .htm .xhtml .mhtml .dbk .jpeg .tiff".split())
    with Readers() as readers:
        extensions = {*readers.extensions, *PICTURES} - {*SAME_KINDS, *other_spellings}
    assert [name for name in sorted(extensions) if not re.search(rf"\b{name[1:]}\b", words)] == []


def test_an_index_of_an_embedder_object_says_what_finds_texts_on_the_command_line(arag, tmp_path):
    ingest([{"id": "a", "text": "One mill."}], tmp_path / "i", embedder=HashEmbeddings()).close()
    code, _, err = arag("search", "semantic", "mill", "--index", tmp_path / "i")
    assert (code, "on the command line, only keywords and patterns" in " ".join(err.split())) == (FAILED, True)
    assert arag("search", "keyword", "mill", "--index", tmp_path / "i")[0] == 0


def test_a_name_limits_searches_and_questions(arag, index):
    out = arag("search", "keyword", "light", "--within", "vellin light", "--index", index)[1]
    assert "light: 1 chunk.\nAll are shown:" in out
    record = json.loads(arag("ask", QUESTION, "--within", "brannisey", "--index", index, "--json")[1])
    assert {citation["chunk_id"] for citation in record["citations"]} == {"places/brannisey.md:0"}
    code, _, err = arag("search", "keyword", "light", "--within", "xyzzy", "--index", index)
    assert (code, "no document has 'xyzzy' in its title, its id or its file's name" in " ".join(err.split())) == (
        FAILED,
        True,
    )


def test_an_error_of_within_says_that_other_options_left_documents_out(arag, index):
    words = ("search", "keyword", "light", "--within", "vellin", "--index", index)
    assert arag(*words)[0] == 0
    code, _, err = arag(*words, "--documents", "things/*")
    message = "among the documents that --documents and --where leave, no document has 'vellin' in its title"
    assert (code, message in " ".join(err.split())) == (FAILED, True)


def test_keywords_may_begin_with_a_hyphen(arag, tmp_path):
    docs = write_corpus(tmp_path / "docs", {"a.md": "Use --purge, or -P, to remove the settings, too."})
    arag("ingest", docs, "--index", tmp_path / "index")
    for command in (["search", "keyword", "--purge", "-P"], ["grep", "--purge"]):
        code, out, err = arag(*command, "--index", tmp_path / "index")
        assert (code, "Use --purge" in out) == (0, True), err
    code, _, err = arag("search", "keyword", "mills", "--top_k", 3, "--index", tmp_path / "index")
    assert (code, "--top-k is" in " ".join(err.split())) == (2, True)
    assert arag("search", "keyword", " --top_k", "--index", tmp_path / "index")[1].startswith("--top_k: none")
    code, _, err = arag("search", "keyword", "mill", "--", "--index", tmp_path / "index")
    assert (code, "--index stands behind --" in " ".join(err.split())) == (2, True)


def test_unknown_ids_are_answered_with_ids_of_the_same_file_and_place(arag, tmp_path):
    text = "\n\n".join(
        f"Paragraph {number} speaks of mills and of their wheels at some length." for number in range(99)
    )
    docs = write_corpus(tmp_path / "docs", {"mills/wheels.md": text, "a.md": "Nothing."})
    arag("ingest", docs, "--index", tmp_path / "index", "--chunk-tokens", 50)
    for unknown in (
        "mills/wheels.md",
        "mills/wheels.md:11x",
        "mills/wheels.md:5000",
        "other/wheels.md:3",
        "wheels.txt:0",
    ):
        out = arag("read", unknown, "--index", tmp_path / "index")[1]
        assert "Ids look like [mills/wheels.md:" in out, unknown
        assert ("Chunks of mills/wheels.md: 0 to " in out) == unknown.startswith("mills"), unknown
    read = arag("read", "other/wheels.md:3", "--index", tmp_path / "index")[1]
    assert "[mills/wheels.md:2], [mills/wheels.md:3], [mills/wheels.md:4]" in read
    assert "\n\nChunks of a.md: 0.\n" in arag("read", "a.md:1", "--index", tmp_path / "index")[1]


def test_unknown_ids_beside_chunks_with_ids_of_their_own(arag, tmp_path):
    (tmp_path / "chunks.json").write_text('["alpha:Rye is sown.", "beta:Oats are sown.", "7:The mill stands."]')
    arag("ingest", tmp_path / "chunks.json", "--index", tmp_path / "index")
    code, out, _ = arag("read", "alphx", "chunks.json:9", "--index", tmp_path / "index")
    assert (code, '["beta"]' in out, "Chunks of" in out) == (FAILED, True, False)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.tab", "--as .tab=.tsv"),
        ("a.foo", "--as .foo=.txt"),
        ("a.zip", "unpack it"),
        ("a.pages", "save it as"),
    ],
)
def test_files_without_a_reader_come_with_what_to_do(arag, tmp_path, name, advice):
    docs = write_corpus(tmp_path / "docs", {"b.md": "The mill stands."})
    data = b"a\tb\n1\t2\n" if name in {"a.tab", "a.foo"} else bytes(range(256))
    (docs / name).write_bytes(data)
    assert advice in arag("ingest", docs, "--index", tmp_path / "index")[2]
    assert advice in arag("ingest", docs / name, "--index", tmp_path / "other")[2]


def test_a_question_without_a_model_is_introduced(arag, index):
    out, err = arag("ask", QUESTION, "--index", index)[1:]
    assert err.startswith("No language model is named, so fixed rules search and quote. To name one: --model ")
    assert "No language model is named" not in out
    assert "No language model" not in "".join(arag("ask", QUESTION, "--index", index, "--json")[1:])


def test_a_search_without_its_kind_says_what_to_write(arag, index):
    for place in ([], ["--index", index]):
        code, out, err = arag("search", "Grey Petrel", *place)
        assert (code, out) == (2, "")
        at = f" --index {index}" if place else ""
        commands = [f"arag search keyword 'Grey Petrel'{at}", f"arag search semantic 'Grey Petrel'{at}"]
        assert err.splitlines()[:2] == commands


def test_what_a_wrong_command_proposes_can_be_run(arag, index, tmp_path):
    for texts, said in [
        (["keywrd", "Grey Petrel", "it's"], ["""keyword 'Grey Petrel' 'it'"'"'s'"""]),
        (["Grey", "Petrel"], ["keyword Grey Petrel", "semantic Grey Petrel"]),
        (["semantics"], ["keyword semantics", "semantic semantics"]),
        (["--within", "Grey", "Grey", "-k", "3", "--json"], ["keyword Grey", "semantic Grey"]),
    ]:
        code, _, err = arag("search", *texts, "--index", index)
        proposed = [line for line in err.splitlines() if line.startswith("arag search ")]
        options = f" --index {index}" + (" --within Grey --top-k 3 --json" if "-k" in texts else "")
        assert (code, proposed) == (2, [f"arag search {each}{options}" for each in said])
        assert arag(*shlex.split(proposed[0])[1:])[0] == 0
    err = arag("search", "keyword", "it's xyzzy", "--index", index)[2]
    assert err.endswith(f"""arag search keyword 'it'"'"'s' xyzzy --index {index}\n""")
    err = arag("list", "--index", tmp_path / "my index")[2]
    assert err.endswith(f"make one with `arag ingest PATH... --index '{tmp_path}/my index'`\n")


def test_a_phrase_that_is_not_found_may_be_meant_as_words(arag, index):
    code, out, err = arag("search", "keyword", "lens Petrel", "--index", index)
    assert code == 0
    assert "lens Petrel: none" in out
    command = f"arag search keyword lens Petrel --index {index}"
    assert err == f"Words in quotes are one phrase; to search for each word: {command}\n"
    assert arag("search", "keyword", "lens", "Petrel", "--index", index)[2] == ""
    assert arag("search", "keyword", "Grey Petrel", "--index", index)[2] == ""
    _, out, err = arag("search", "keyword", "Odvar Felisk", "--index", index)  # its documents spell him otherwise
    assert ("spelled Odvár Félisk" in out, err) == (True, "")
    assert arag("search", "keyword", "xyzzy", "--index", index)[2] == ""


def test_quotation_marks_inside_a_keyword_and_blank_texts_are_explained(arag, index):
    _, _, err = arag("search", "keyword", '"Grey Petrel"', "--index", index)
    assert err.endswith(f"without them: arag search keyword 'Grey Petrel' --index {index}\n")
    for kind in ("keyword", "semantic"):
        code, _, err = arag("search", kind, "", "--index", index)
        assert (code, err) == (1, "Error: the text is blank: give words to search for\n")


def test_a_word_like_no_command_is_answered_with_the_commands(arag):
    assert "No such command 'zz': there are methods, make, run" in " ".join(arag("eval", "zz")[2].split())
    assert "Did you mean 'run'" in arag("eval", "rn")[2]


def test_the_index_of_the_pages_may_be_named_as_for_other_commands(arag):
    for words in (["/nowhere"], ["--index", "/nowhere"], ["-i", "/nowhere"]):
        code, _, err = arag("web", *words)
        assert (code, "no index in /nowhere" in err) == (1, True)
    assert arag("web")[0] == 2


def test_what_stands_behind_the_one_text_of_a_command_is_refused_with_advice(arag, index):
    code, _, err = arag("shell", "ls", "-la", "--index", index)
    assert (code, "write it in quotes, 'ls -la'" in err) == (2, True)
    code, _, err = arag("shell", "--lmit", "ls", "--index", index)
    assert (code, "--lmit is not an option of arag shell" in err) == (2, True)
    for command in (["grep", "-k", "0", "harbour"], ["grep", "harbour", "-k", "0"]):
        code, _, err = arag(*command, "--index", index)
        assert (code, "-k is not an option of arag grep" in err) == (2, True)
    for command in (["grep", "grey", "Petrel"], ["shell", "grey", "Petrel"], ["sql", "grey", "Petrel"]):
        code, _, err = arag(*command, "--index", index)
        assert (code, "is one text: write it in quotes, 'grey Petrel'" in err) == (2, True)


def test_invisible_signs_inside_the_words_of_a_query_are_left_out(arag, index):
    for sign in ("\u00ad", "\u200b", "\ufeff"):
        assert arag("search", "keyword", f"Pet{sign}rel", "--index", index)[1].startswith("Petrel: ")
        assert arag("grep", f"Pet{sign}rel", "--index", index)[0] == 0
        _, answer, _ = arag("ask", f"Who kept the Grey Pet{sign}rel?", "--index", index)
        assert answer == arag("ask", "Who kept the Grey Petrel?", "--index", index)[1]


def test_a_name_that_no_document_has_is_said_to_be_compared_with_files_too(arag, index):
    for command in (["grep", "light"], ["search", "keyword", "light"], ["list"], ["sql"]):
        code, _, err = arag(*command, "--within", "zzz", "--index", index)
        assert (code, err) == (1, "Error: no document has 'zzz' in its title, its id or its file's name\n")


def test_a_missing_question_is_a_wrong_command_line(arag, index):
    code, out, err = arag("ask", "--index", index)
    assert (code, out) == (2, "")
    assert "the question is missing" in err


def test_a_condition_on_a_field_that_no_document_has_names_it(arag, index):
    where = json.dumps({"$and": [{"date": {"$gte": "2020-01-01"}}, {"author": "Osric"}]})
    code, _, err = arag("search", "keyword", "ship", "--index", index, "--where", where)
    assert (code, err) == (0, "No document of the index is in the scope: none has the field date, author.\n")
    _, _, err = arag("search", "keyword", "ship", "--index", index, "--where", '{"kind": "pdf"}')
    assert "none has the field kind. Choose files of one kind by their ids: --documents '*.pdf'." in err


def test_an_error_of_several_lines_is_one(arag, tmp_path):
    code, _, err = arag(
        "ingest", write_corpus(tmp_path / "docs", {"a.md": "A."}), "-i", tmp_path / "i", "--embedder", "x:y"
    )
    assert (code, err.count("\n"), "\\n" in err) == (1, 1, False)


def test_a_dry_run_says_what_is_new_changed_unchanged_or_would_be_removed(arag, tmp_path, quick_embedder):
    docs = write_corpus(tmp_path / "docs", {"same.md": "Same.", "changed.md": "Old.", "gone.md": "Gone."})
    index = tmp_path / "index"
    arag("ingest", docs, "--index", index)
    (docs / "changed.md").write_text("Old. New.")
    (docs / "new.md").write_text("New, too.")
    (docs / "gone.md").unlink()
    code, out, _ = arag("ingest", docs, "--index", index, "--dry-run", "--prune")
    assert (code, out.splitlines()) == (
        0,
        [
            "changed.md  changed (1 chunk, 2 sentences, changed)",
            "new.md  new (1 chunk, 1 sentence)",
            "Would be written: 2 documents, 2 chunks, 3 sentences, 2 of them to embed.",
            "In the index already: 1 document.",
            "Would be removed: gone.md",
        ],
    )
    assert "Would be removed" not in arag("ingest", docs, "--index", index, "--dry-run")[1]
    shown = json.loads(arag("ingest", docs, "--index", index, "--dry-run", "--json")[1])
    assert {document["id"]: document["change"] for document in shown["documents"]} == {
        "same.md": "unchanged",
        "changed.md": "changed",
        "new.md": "new",
    }
    out = arag("ingest", docs, "--index", index, "--prune")[1]
    assert ("Removed: gone.md\n" in out, "2 new or changed, 2 sentences embedded" in out) == (True, True)
    assert "Would be written: 0 documents" in arag("ingest", docs, "--index", index, "--dry-run")[1]


def test_a_dry_run_says_why_an_unchanged_page_is_written_and_counts_what_is_embedded(arag, tmp_path, quick_embedder):
    menu = "<ul><li><a href=a>Home page</a><li><a href=b>The shop</a></ul><h1>{0}</h1><p>About {0}."
    topics = ["gate", "mill", "road", "shift"]
    docs = write_corpus(tmp_path / "docs", {f"{topic}.html": menu.format(topic) for topic in topics})
    ingest = ("ingest", docs, "--index", tmp_path / "index")
    arag(*ingest)
    for page in sorted(docs.iterdir()):
        page.rename(docs / f"a-{page.name}")
        shown = json.loads(arag(*ingest, "--dry-run", "--json")[1])["documents"]
        same = [document["change"] == "changed" for document in shown]
        assert [document["is_same_file"] for document in shown] == same
        out = arag(*ingest, "--dry-run")[1]
        assert out.count("changed: the file is the same; other files of its folder") == sum(same)
        new = sum(document["new_sentences"] for document in shown)
        assert f"{sum(same)} new or changed, {new} sentence" in arag(*ingest)[1]


def test_a_dry_run_says_how_long_many_sentences_take(arag, tmp_path, quick_embedder, monkeypatch):
    monkeypatch.setattr(preview, "is_on_this_machine", lambda _: True)
    text = " ".join(f"The mill turned {turns} times." for turns in range(3_000))
    docs = write_corpus(tmp_path / "docs", {"log.txt": text})
    assert "3,000 sentences: less than a minute on this machine.\n" in arag("ingest", docs, "--dry-run")[1]
    assert json.loads(arag("ingest", docs, "--dry-run", "--json")[1])["seconds"] > 0
    monkeypatch.setattr(preview, "is_on_this_machine", lambda _: False)
    assert arag("ingest", docs, "--dry-run")[1].endswith("3,000 sentences.\n")


def test_a_dry_run_tells_the_load_of_other_programs_apart(arag, tmp_path, monkeypatch):
    docs = write_corpus(tmp_path / "docs", {"log.txt": "The mill turned."})
    for busy, time in [
        (300.0, "about 2 minutes on this machine, or about 5 minutes while it is as busy as now"),
        (130.0, "about 2 minutes on this machine"),
    ]:
        seconds = (120.0, busy)
        monkeypatch.setattr(preview._Sample, "estimate_seconds", lambda *_, seconds=seconds: seconds)
        assert arag("ingest", docs, "--dry-run")[1].endswith(f"1 sentence: {time}.\n")


def test_skipped_files_are_counted_by_reason_and_a_few_are_named(arag, tmp_path):
    docs = write_corpus(tmp_path / "docs", {"a.md": "A."} | {f"s{n}.css": "a { }" for n in range(8)})
    _, _, err = arag("ingest", docs, "--dry-run")
    (line,) = err.splitlines()
    assert line.startswith("Skipped: a part of web pages or of a build; --ignore '!NAME' reads them (8): ")
    assert line.endswith("s4.css and 3 more; --json names all")


def test_a_dry_run_shows_its_progress_where_no_terminal_is(arag, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    docs = write_corpus(tmp_path / "docs", {"a.md": "A.", "b.md": "B."})
    assert "Done: 100%, 2 documents\n" in arag("ingest", docs, "--dry-run")[2]


def test_a_dry_run_reads_the_folder_in_which_it_is_called(arag, tmp_path, monkeypatch):
    monkeypatch.chdir(write_corpus(tmp_path / "docs", {"mills.md": "# Mills\n\nThey stand."}))
    code, out, _ = arag("ingest", ".", "--dry-run")
    assert (code, out.splitlines()[0]) == (0, "mills.md  Mills (1 chunk, 1 sentence)")


def test_a_dry_run_shows_what_would_be_read_and_writes_nothing(arag, tmp_path):
    files = {
        "mills.md": "# Mills\n\nThey stand.\n\n## Wheels\n\nThey turn.\n\n### Oak\n\nIt lasts.",
        "prices.csv": "name,price\nBolt,3\nNut,4\n",
        "site.css": "a { }",
        "empty.txt": "",
    }
    docs = write_corpus(tmp_path / "docs", files)
    (docs / "letter.doc").write_text("{\\rtf1 The letter is long.}")
    code, out, err = arag("ingest", docs, "--dry-run")
    assert code == LEFT_OUT
    assert "mills.md  Mills (1 chunk, 3 sentences)\n    Wheels\n    Wheels > Oak\n" in out
    assert "prices.csv  prices (1 chunk, 3 sentences)\n    table of 2 rows: name, price\n" in out
    assert out.endswith("Would be written: 3 documents, 3 chunks, 7 sentences.\n")
    assert "Read as: .rtf, by its content (1): " in err
    assert "site.css" in err
    assert "empty.txt: the file is empty" in err
    shown = json.loads(arag("ingest", docs, "--dry-run", "--json", "--index", tmp_path / "index")[1])
    assert [document["id"] for document in shown["documents"]] == ["letter.doc", "mills.md", "prices.csv"]
    assert not (tmp_path / "index").exists()
    assert arag("ingest", docs)[0] == 2
    assert "Read as: .rtf, by its content (1): " in arag("ingest", docs, "--index", tmp_path / "index")[2]


def test_a_moved_file_keeps_its_id_and_the_title_that_fits(arag, tmp_path):
    docs = write_corpus(tmp_path / "docs", {"mill_book.txt": "The mill stands.", "own.md": "# Wheels\n\nThey turn."})
    ingest = ["ingest", docs, "--prune", "--index", tmp_path / "index"]
    arag(*ingest)
    (docs / "mill_book.txt").rename(docs / "final.txt")
    (docs / "own.md").rename(docs / "other.md")
    assert json.loads(arag(*ingest, "--json")[1])["written"] == 0
    listed = json.loads(arag("list", "--index", tmp_path / "index", "--json")[1])["documents"]
    assert [(document["id"], document["title"]) for document in listed] == [
        ("mill_book.txt", "mill book"),
        ("own.md", "Wheels"),
    ]
    assert listed[0]["source"].endswith("final.txt")


class ImpatientTimer:
    """A timer whose time is over at once."""

    def __init__(self, _seconds, end):
        self.start = end

    def cancel(self):
        pass


def test_a_wait_is_explained_on_stderr(arag, index, monkeypatch):
    monkeypatch.setattr(terminal.threading, "Timer", ImpatientTimer)
    code, out, err = arag("search", "semantic", "Who repaired the lens?", "--index", index)
    assert (code, err) == (0, "Loading the embedder ...\n")
    assert "Loading" not in out
    err = arag("ask", QUESTION, "--index", index)[2]
    assert err.startswith("Loading the agent's libraries ...\nNo language model is named")


def test_people_see_what_a_colon_leads_to_and_what_little_is_left_out_between_sentences(arag, tmp_path):
    night = "Nobody slept in this long and stormy night, and the keepers counted all waves and all ships. " * 3
    parts = [
        "# Manual",
        *["Set oil.conf first.", "Ask Koptein.", "Then save oil.conf."],
        night,
        *["Lamps burn lantern oil of these kinds:", "- whale", night],
        *["mill.conf", night, "The miller edits mill.conf at noon."],
    ]
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", {"manual.md": "\n\n".join(parts)}), *place)
    assert "Set oil.conf first.\nAsk Koptein.\nThen save oil.conf." in arag("search", "keyword", "oil.conf", *place)[1]
    assert "of these kinds:\n- whale" in arag("search", "keyword", "lantern oil", *place)[1]
    found = arag("search", "keyword", "mill.conf", *place)[1]
    assert "The miller edits mill.conf at noon." in found
    assert not re.search(r"(?m)^(?:… )?mill\.conf$|… mill\.conf …", found)


def test_hits_have_no_bare_headings_no_contents_of_what_they_show_and_no_header_without_rows(arag, tmp_path):
    rows = "| Year | Ropes |\n| --- | --- |\n| 1901 | 7 |\n| 1902 | 9 |"
    names = ["The eel pond", "The mill race", "The rope walk"]
    contents = "\n".join(f"- {name}" for name in names)
    filler = "Nothing more was ever written about any of it in those years, as far as anybody can tell now."
    docs = {
        "a.md": f"# Yard\n\n{contents}\n\n## {names[0]}\n\n{filler}\n\n## {names[2]}\n\nThe rope walk is long.",
        "b.html": "<title>Sales</title><p>Koptein made ropes.</p><p>Sold by year, long ago.</p>"
        "<table><tr><th>Year<th>Sold</tr><tr><td>1901<td>17</tr><tr><td>1902<td>19</tr></table>"
        + f"<p>{filler}</p>"
        * 99,
        "c.md": f"# Tides\n\nZebras swim.\n\n## Empty\n\n## Later\n\n{filler}\n\n{rows}",
    }
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    found = arag("search", "keyword", "rope walk", "long", *place)[1]
    assert found.count("The rope walk") == 2  # the heading, and the sentence
    assert "1901" in arag("search", "keyword", "Koptein", *place)[1]
    assert "Empty" not in arag("search", "keyword", "Zebras", *place)[1]


def test_a_name_is_shown_with_the_sentence_below_it_and_the_best_match_with_the_next_one(arag, tmp_path):
    filler = "Nothing more was ever written about any of it in those years, as far as anybody can tell now."
    docs = {
        "a.page": f"<page xmlns='http://projectmallard.org/1.0/'><title>Lamp</title><p>{filler}</p>"
        "<steps><title>Trim the wick</title><item><p>Press the lever.</p></item></steps></page>",
        "b.md": f"# Reader\n\n{filler}\n\nIf your thumb is dry, the reader fails. Wet it a little. {filler}\n\nLater.",
        "c.md": f"# Boats\n\n{filler}\n\nA ketch has two masts.\n\nFlour is dear.\n\n{filler}",
        "d.md": f"# Names\n\n{filler}\n\n- Yawl\n- Sloop\n- Cutter\n\n{filler}",
    }
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    assert "Trim the wick\n1. Press the lever." in arag("search", "keyword", "trim the wick", *place)[1]
    assert "the reader fails. Wet it a little. …" in arag("search", "keyword", "thumb", "dry", *place)[1]
    assert "A ketch has two masts. …" in arag("search", "keyword", "ketch", *place)[1]  # another paragraph
    assert "Sloop" not in arag("search", "keyword", "yawl", *place)[1]  # another item


def test_a_heading_that_was_cut_ends_with_its_sentence_or_a_colon(arag, tmp_path):
    first = "Why does the official disc contain links for frozen and unstable"
    second = "I thought that this disc contains the stable distribution and nothing else at all"
    text = "Koptein made {}."
    docs = {
        "a.md": f"# FAQ\n\n## {first}? {second}\n\n{text.format('discs')}",
        "b.md": f"# FAQ\n\n## {first}. {second}\n\n{text.format('ropes')}",
        "c.md": f"# FAQ\n\n## {first}, {second}\n\n{text.format('lamps')}",
    }
    place = ["--index", tmp_path / "index"]
    arag("ingest", write_corpus(tmp_path / "docs", docs), *place)
    assert f"{first}? Koptein made discs." in arag("search", "keyword", "discs", *place)[1]
    assert f"{first}: Koptein made ropes." in arag("search", "keyword", "ropes", *place)[1]
    assert re.search(rf"{first}, I .*\w…: Koptein made lamps", arag("search", "keyword", "lamps", *place)[1])
    found = arag("search", "keyword", "discs", "else", *place)[1]
    assert f"{first}? {second}: Koptein made discs." in found
    assert found.count(f"{first}?") == 1
