"""The built-in model: what it searches for, what it quotes, and that no conversation breaks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from arag import ingest
from arag.evaluation.paper_tools import PAPER_TOOLS
from arag.graph.graph import create_arag_agent
from arag.graph.prompts import forced_prompt, forced_question
from arag.models.extractive import ExtractiveModel, admits_no_answer
from arag.models.notes import Notes
from arag.retrieval.tools.sets import PAPER
from fakes import HashEmbeddings
from scripted import ScriptedModel, asked, call

QUESTIONS = json.loads((Path(__file__).parent.parent / "examples" / "questions.json").read_text(encoding="utf-8"))
NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"
LOTHAIR = "Whom had Lothair II married in 855?"


def contains(state, question) -> bool:
    answer = state["answer"].lower()
    return any(gold.lower() in answer for gold in [question["answer"], *question["answer_aliases"]])


def test_it_answers_most_example_questions_in_a_containing_sense(example_index):
    agent = create_arag_agent("extractive", example_index)
    states = [(agent.invoke(asked(question["question"])), question) for question in QUESTIONS]
    assert all(state["stop_reason"] == "answered" for state, _ in states)
    assert all(state["answer"].endswith(NOTICE) for state, _ in states)
    assert all(citation["seen"] for state, _ in states for citation in state["citations"])
    assert len(QUESTIONS) == 15
    assert sum(contains(state, question) for state, question in states) >= 11
    hops = next(state for state, question in states if question["id"] == "q01")["answer"].splitlines()
    assert "1783" in hops[0]
    assert hops[0].endswith("[places/skellavy.md:0]")


@pytest.mark.parametrize("tools", [["keyword_search"], ["semantic_search"], ["chunk_read", "keyword_search"]])
@pytest.mark.parametrize("is_paper", [False, True])
def test_it_works_with_any_tools_and_says_nothing_of_its_searches(small_index, tools, is_paper):
    chosen = [PAPER_TOOLS[name] for name in tools] if is_paper else tools
    agent = create_arag_agent("extractive", small_index, tools=chosen)
    state = agent.invoke(asked(LOTHAIR))
    assert "lothair:0" in [citation["chunk_id"] for citation in state["citations"]]
    assert "Teutberga" in state["answer"]
    assert " chunk" not in state["answer"]


@pytest.mark.parametrize("max_steps", [1, 2])
def test_a_forced_answer_is_quoted_from_the_evidence(small_index, max_steps):
    state = create_arag_agent("extractive", small_index, max_steps=max_steps).invoke(asked(LOTHAIR))
    assert (state["stop_reason"], state["steps"]) == ("max_steps", max_steps)
    assert "[lothair:0]" in state["answer"]
    assert state["answer"].endswith(NOTICE)


@pytest.mark.parametrize("question", ["xyzzy plugh frobnicate?", "", "谁是国王？"])
def test_where_nothing_is_found_it_says_so(small_index, question):
    state = create_arag_agent("extractive", small_index, tools=["keyword_search", "chunk_read"]).invoke(asked(question))
    assert state["answer"] == f"Nothing was found in the corpus. {NOTICE}"
    assert state["citations"] == []
    assert state["stop_reason"] == "answered"


@pytest.mark.parametrize("name", ["佐々木", "ﾄﾞｲﾂ"])
def test_a_name_in_any_east_asian_script_is_found_as_a_part_of_a_longer_word(make_index, name):
    index = make_index(
        [{"id": "a", "text": f"{name}商店は1585年に開店。"}, {"id": "b", "text": "港町は1781年に開港。"}]
    )
    agent = create_arag_agent("extractive", index, tools=["semantic_search"])
    assert "[a:0]" in agent.invoke(asked(f"{name}はいつ？"))["answer"].splitlines()[0]


_text = st.one_of(
    st.text(), st.from_regex(r"\[[a-z:]{1,5}\] (score \d\n)?([A-Z][a-z]{1,8}[ .\n]){1,9}", fullmatch=True)
)


@given(_text, st.lists(_text, max_size=3), st.sets(st.sampled_from(PAPER)))
def test_no_conversation_breaks_it(question, texts, names):
    messages = [HumanMessage(question)]
    for place, text in enumerate(texts):
        messages += [call("keyword_search", str(place), keywords=[text]), ToolMessage(text, tool_call_id=str(place))]
    tools = [{"type": "function", "function": {"name": name}} for name in sorted(names)]
    reply = ExtractiveModel().invoke(messages, tools=tools)
    assert isinstance(reply, AIMessage)
    assert bool(reply.tool_calls) != bool(reply.text)
    assert {c["name"] for c in reply.tool_calls} <= names
    again = ExtractiveModel().invoke(messages, tools=tools)
    assert (again.text, [c["args"] for c in again.tool_calls]) == (reply.text, [c["args"] for c in reply.tool_calls])


# --- which sentences it quotes ---


def quotes(question, evidence):
    prompt = [SystemMessage(forced_prompt()), HumanMessage(forced_question(question, evidence))]
    return ExtractiveModel().invoke(prompt).text.removesuffix(NOTICE).splitlines()


@pytest.mark.parametrize("header", ["[log:0] Log", "[log:0] Log, part 1 of 2, page 3", "[log:0]"])
def test_quotes_are_whole_sentences_on_one_line(header):
    text = (
        "It was the schooner Grey\nPetrel that sank off Brannisey\nin the gale of 1775. “All\nwere lost.” Nobody wept."
    )
    (quote,) = quotes("Which schooner sank off Brannisey in 1775?", f"{header}\n{text}")
    assert quote.removeprefix("Log: ") == (
        "It was the schooner Grey Petrel that sank off Brannisey in the gale of 1775. [log:0]"
    )


def test_a_title_is_not_cut_at_its_first_colon(tmp_path):
    mail = f"From: a@x.org\nSubject: Re: Ledgerloom: new date\n\nThe launch moves to May. {'Few know it yet. ' * 90}\n"
    (tmp_path / "m.eml").write_text(mail)
    with ingest(tmp_path / "m.eml", tmp_path / "index", embedder=HashEmbeddings()) as index:
        state = create_arag_agent("extractive", index).invoke(asked("When does the launch move?"))
    first, *_, read = [message.text for message in state["messages"] if message.type == "tool"]
    assert "Re: Ledgerloom: new date: " in first
    assert read.startswith("[m.eml:0] Re: Ledgerloom: new date\n")
    assert state["answer"].startswith("Re: Ledgerloom: new date: The launch moves to May. [m.eml:0]\n")


def test_langchains_cache_answers_with_replies_without_counts(example_index):
    agent = create_arag_agent(ExtractiveModel(cache=InMemoryCache()), example_index, tools="paper")
    first, second = (agent.invoke({"messages": [("user", "Who built the Vellin Light?")]}) for _ in range(2))
    assert second["answer"] == first["answer"]
    assert second["usage"] == first["usage"]


def test_a_name_with_an_inner_capital_is_looked_for_as_a_whole(small_index):
    state = create_arag_agent("extractive", small_index, tools="all").invoke(asked("Which port does mDNS use?"))
    searches = [call["arguments"] for call in state["trace"] if call["tool"] == "keyword_search"]
    assert searches[0]["keywords"] == ["mDNS"]


@pytest.mark.parametrize(
    ("question", "keywords"),
    [
        ("¿Qué es la línea de Marcus Bains?", ["Marcus Bains"]),
        ("Welches Werkzeug druckt Etiketten?", ["Werkzeug", "Etiketten"]),
        ("Es gibt WEP. Und was ist WPA?", ["WEP", "WPA"]),
        ("Comment GIMP ouvre-t-il un fichier ?", ["GIMP"]),
        ("Qu'est-ce qu'une lézarde ?", ["lézarde"]),
    ],
)
def test_a_word_that_begins_a_question_is_no_name(small_index, question, keywords):
    state = create_arag_agent("extractive", small_index).invoke(asked(question))
    searches = [call["arguments"] for call in state["trace"] if call["tool"] == "keyword_search"]
    assert searches[0]["keywords"] == keywords


def test_lines_are_not_counted_where_a_row_or_a_sentence_answers(make_index, small_index):
    index = make_index({"cars.md": "# Cars\n\n| Model | City | Cars |\n|---|---|---|\n| Model 02 | Lund | 14 |\n"})
    agent = create_arag_agent("extractive", index, tools="all")
    answer = agent.invoke(asked("How many cars of Model 02 are in Lund?"))["answer"]
    assert "14" in answer
    assert " match" not in answer
    agent = create_arag_agent("extractive", small_index, tools="all")
    answer = agent.invoke(asked("How many children did Boso have?"))["answer"]
    assert "three children" in answer
    assert " match" not in answer


def test_it_says_what_a_count_counted(small_index):
    agent = create_arag_agent("extractive", small_index, tools="all")
    state = agent.invoke(asked("How many bridges did Boso build?"))
    assert '2 lines in 2 documents match "Boso".\n' in state["answer"]
    two = agent.invoke(asked("How many letters did Lothair II send to Teutberga?"))
    assert 'match "Lothair II" or "Teutberga".\n' in two["answer"]
    about = agent.invoke(asked("How many documents mention a bridge?"))
    assert [call["arguments"]["pattern"] for call in about["trace"] if call["tool"] == "grep"] == ["bridg"]
    none = agent.invoke(asked("How many ambassadors had the king?"))
    assert 'No line of 4 documents matches "ambassador".\n' in none["answer"]
    later = agent.invoke({"messages": [*state["messages"], HumanMessage("Whom did Lothair II marry?")]})
    assert "match" not in later["answer"]  # that was the count of another question


# --- where no sentence answers ---

NO_ANSWER = "These rules recognise no answer in what was found; here are the best passages."


def test_a_version_is_looked_for_as_a_whole(make_index):
    index = make_index({"log.md": "# Log\n\nVersion 1.0 came in May. Version 1.2 came in June."})
    state = create_arag_agent("extractive", index).invoke(asked("When came Version 1.2?"))
    assert ["Version 1.2"] in [call["arguments"].get("keywords") for call in state["trace"]]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How do I set the default index of an array?", "HOW DO I SET THE DEFAULT INDEX OF AN ARRAY?"),
        ("How do I set the default index?", "The default index is 0."),
        ("When was the mill built?", "The mill was built by Orlath of good stone."),
        ("Who built the mill?", "The mill was built of good stone in 1783."),
        ("How many wheels has the mill?", "The mill has wheels of oak."),
        ("What is the port of PostgreSQL?", "Ports are described in the services file."),
        ("What is a sluice?", "New sections on sluices were added to the list."),
        ("How do I configure the kernel of my toaster?", "The modprobe command configures the kernel at run time."),
        ("What does the mill script do?", "in its mill script, and"),
        ("Who invented the telephone?", "Call the telephone of Orlath Tamsin."),
    ],
)
def test_where_no_sentence_answers_it_says_so_and_lists_passages(question, text):
    first, *passages = quotes(question, f"[log:0] Log\n{text}")
    assert first == NO_ANSWER
    assert passages == [f"Log: {text} [log:0]"]


def test_of_two_sentences_it_quotes_the_one_that_has_what_the_question_asks_for():
    texts = "The mill saves a log of its wheel in full.\nThe log is saved every hour (by default 30 minutes)."
    first, *_ = quotes("How often does the mill save its log?", f"[log:0] Log of the mill\n{texts}")
    assert first == "Log of the mill: The log is saved every hour (by default 30 minutes). [log:0]"


@pytest.mark.parametrize(
    "pair",
    ["save saved", "box boxes", "process processes", "file files", "marry married", "speed speeds", "size sized"],
)
def test_words_match_whatever_their_english_ending(pair):
    asked, said = pair.split()
    first, *_ = quotes(f"Who had {asked}?", f"[log:0] Log\nOrlath Tamsin had {said}.")
    assert first == f"Log: Orlath Tamsin had {said}. [log:0]"


def test_where_no_sentence_answers_the_nearest_in_meaning_is_listed_too(make_index):
    index = make_index({"log.md": "# Log\n\nWhen the tide came, the mill of Sarn stood still.\n\nThe mill was built."})
    state = create_arag_agent("extractive", index, tools="paper").invoke(asked("When was the mill of Sarn built?"))
    assert state["answer"].startswith(NO_ANSWER)
    assert "The mill was built." in state["answer"]


@pytest.mark.parametrize(
    ("question", "text", "is_answer"),
    [
        ("¿Para qué sirve mill-divert?", "El programa mill sirve para la rueda.", False),
        ("¿Para qué sirve mill-divert?", "El programa mill-divert sirve para mover el agua.", True),
        ("Womit hält der Wehr-Schieber das Wasser zurück?", "Der Schieber am Wehr hält das Wasser zurück.", True),
        ("Les roues peuvent-elles tourner sans eau ?", "Les roues ne peuvent tourner sans eau.", True),
        ("¿Para qué sirve la rueda?", "La rueda sirve para moler el trigo.", True),
        ("¿Cómo cambio la rueda del molino?", "Haga los cambios aquí.\n- Fotos de la rueda del molino", False),
        ("¿Cómo cambio la rueda del molino?", "Para cambiar la rueda del molino, pare el agua.", True),
        ("Combien coûte la roue du moulin ?", "La roue du moulin est en chêne.", False),
        ("Combien de roues a le moulin de Sarn ?", "Le moulin de Sarn a trois roues.", True),
        ("In welchem Jahr wurde das Wehr 2 gebaut?", "Das Wehr 2 wurde aus Stein gebaut.", False),
        ("In welchem Jahr wurde das Wehr 2 gebaut?", "Das Wehr 2 wurde 1783 gebaut.", True),
        ("水车有多少个轮子？", "水车有轮子。", False),
        ("水车有多少个轮子？", "水车有三个轮子。", True),
        ("Wann kam die Version 1.2 der Mühle?", "Die Version 1.1 der Mühle kam am 5. Mai.", False),
        ("Wann kam die Version 1.2 der Mühle?", "Die Version 1.2 der Mühle kam am 5. Mai.", True),
    ],
)
def test_an_answer_in_another_language_has_what_the_question_asks_for(question, text, is_answer):
    first, *_ = quotes(question, f"[log:0] Log\n{text}")
    assert (first != NO_ANSWER) == is_answer


def test_a_german_question_that_begins_with_was_is_not_english():
    first, *_ = quotes("Was ist ein Drosselrad?", "[log:0] Log\nDas Wehr ist ein Teil der Mühle.")
    assert first.startswith("Nothing")


@pytest.mark.parametrize(
    ("question", "is_answer"),
    [
        ("Quelle force fait tourner la roue de Sarn pendant la nuit ?", False),  # a name is shared
        ("Seit wann gehören Brücke und Hafen von Sarn der Stadt?", True),
    ],
)
def test_a_name_and_common_words_of_another_language_make_no_answer(make_index, question, is_answer):
    text = "Die Brücke, der Markt und der Hafen von Sarn gehören seit 1783 der Stadt, die sie an Fischer verpachtet."
    index = make_index([{"id": "sarn", "text": text}])
    state = create_arag_agent("extractive", index, tools="paper").invoke(asked(question))
    assert "[sarn:0]" in state["answer"]
    assert admits_no_answer(state["answer"]) != is_answer


def test_a_word_that_only_looks_like_one_of_the_question_and_a_name_alone_make_no_answer(make_index):
    index = make_index(
        {
            "geschichte.md": "# Geschichte\n\nDie Mühlen bis 1921.\n\nDie 0.x Versionen: 4.1.1.",
            "engines.md": "# Engines\n\nIt was designed for 386 wheels; today Rye Works has it, too.",
            "orlath.md": "# Founders\n\nOrlath Tamsin founded Rye Works.",
        }
    )
    state = create_arag_agent("extractive", index).invoke(asked("When did Orlath Tamsin die?"))
    assert state["answer"].startswith(NO_ANSWER)
    assert "Die" not in state["answer"]
    index = make_index({"orlath.md": "# Founders\n\nOrlath Tamsin came home to die in May 1803."})
    state = create_arag_agent("extractive", index).invoke(asked("When did Orlath Tamsin die?"))
    assert state["answer"].startswith("Founders: Orlath Tamsin came home to die in May 1803.")


def test_a_german_article_is_not_the_english_verb_and_a_date_of_something_else_is_no_answer(make_index):
    index = make_index(
        {
            "werk.md": "# Werk\n\nDie alte Mühle unten am Fluss hinter der Burg wurde von Orlath Tamsin am "
            "16. August 1793 gegründet.",
            "rat.md": "# Rat\n\nDie Mühle ist eine der Mühlen, die am Fluss stehen.",
        }
    )
    state = create_arag_agent("extractive", index).invoke(asked("When did Orlath Tamsin die?"))
    assert state["answer"].startswith(NO_ANSWER)


YEARS = ["March 1801: Osric died", "November 1802: Fire burnt the lamp house", "May 1804: New gates"]


def test_entries_of_contents_are_never_quoted(make_index):
    listed = "\n\n".join(f"4.{n}. {name}" for n, name in enumerate(YEARS, 1))
    text = "The keepers counted the barrels. " * 40
    fire = "On 20 November the lamp house at Rye caught fire. Nobody was hurt."
    sections = [
        f"## 4.1. {YEARS[0]}\n\n{text}",
        f"## 4.2. {YEARS[1]}\n\n{fire} {text}",
        f"## 4.3. {YEARS[2]}\n\n{text}",
    ]
    contents = "\n\n".join(["# 4. History", "Table of Contents", listed, *sections])
    index = make_index({"history.md": contents}, chunk_tokens=200)
    state = create_arag_agent("extractive", index).invoke(asked("Where did a fire burn the lamp house?"))
    assert f"4. History: {fire.partition('. ')[0]}." in state["answer"]
    assert not any(name in state["answer"] for name in YEARS)


@pytest.mark.parametrize(("item", "is_quoted"), [("- Orlath Tamsin", False), ("- Orlath Tamsin, quarry owner", True)])
def test_an_item_of_a_list_is_quoted_if_it_says_more_than_a_name(item, is_quoted):
    text = f"[log:0] Log\nThe mill was built by Orlath Tamsin.\n\n[people:0] People\n{item}"
    answer = quotes("Who built the mill?", text)
    assert answer[0] == "Log: The mill was built by Orlath Tamsin. [log:0]"
    assert any(line.startswith("People") for line in answer) is is_quoted


SECTIONS = "# 3. The mill\n\nTable of Contents\n\n3.1. {0}\n\n3.2. {1}\n\n## 3.1. {0}\n\n{2}\n\n## 3.2. {1}\n\n{2}"


@pytest.mark.parametrize(
    ("question", "other", "answer"),
    [
        ("May I grind rye in the mill?", "Who built the mill?", "Go ahead."),
        ("Darf ich Roggen in der Mühle mahlen?", "Wer baute die Mühle?", "Ja, das dürfen Sie."),
        ("製粉所でライ麦を挽いてもいいですか?", "誰が製粉所を建てましたか?", "はい、どうぞ。"),
    ],
)
def test_a_question_of_the_contents_is_no_answer_but_its_section_is(make_index, question, other, answer):
    index = make_index({"mill.md": SECTIONS.format(question, other, answer)})
    state = create_arag_agent("extractive", index).invoke(asked(question))
    assert state["answer"].startswith(f"3. The mill: {answer} [mill.md:0]\n")
    assert question not in state["answer"]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When was the mill built?", "The mill was built in May."),
        ("How many wheels has the mill?", "The mill has seven wheels."),
        ("Who built the mill?", "The mill was built by the miller Orlath Tamsin."),
        ("What is a sluice?", "A sluice is a gate that holds water back."),
        ("Where is the manual installed?", "The manual is installed below /usr/share/doc."),
        ("How do I remove a package with its settings?", "To remove a package with its settings, call apt purge."),
        ("Wer baute die Mühle am Fluss?", "Die Mühle am Fluss ist aus Stein."),
    ],
)
def test_a_sentence_with_what_is_asked_for_is_the_answer(question, text):
    assert quotes(question, f"[log:0] Log\n{text}") == [f"Log: {text} [log:0]"]


def test_the_row_with_the_rarest_words_of_the_question_is_the_answer():
    rows = "\n".join(
        f"| {item} | {limit} |" for item, limit in [("rows in a mill", 40), ("sluices in a mill", 16), ("names", 63)]
    )
    answer = quotes("How many sluices in a mill are allowed?", f"[limits:0] Limits\n{rows}")
    assert answer == ["Limits: | sluices in a mill | 16 | [limits:0]"]


def test_where_no_sentence_has_the_rare_words_of_the_question_none_answers():
    text = "The mill was built in 1783. A mill was sold in 1801. The mill of Rye burnt in 1802."
    answer = quotes("When did the astronomical clock of the Rye mill stop for repairs?", f"[log:0] Log\n{text}")
    assert answer[0] == NO_ANSWER


@pytest.mark.parametrize("said", ["Die Mühlsteine wurden 1783 erneuert.", "Der Mühlstein wurde 1783 erneuert."])
def test_endings_of_another_language_hide_no_words(said):
    assert quotes("Wann wurde der Mühlstein erneuert?", f"[log:0] Log\n{said}") == [f"Log: {said} [log:0]"]


def test_only_its_own_words_say_that_nothing_answers(make_index):
    index = make_index({"mill.md": "The mill was built by Orlath Tamsin."})
    answer = "Nothing was found in the corpus. But the mill was built by Orlath Tamsin [mill.md:0]."
    model = ScriptedModel(call("chunk_read", chunk_ids=["mill.md:0"]), AIMessage(answer))
    state = create_arag_agent(model, index, tools="paper").invoke(asked("When was the mill built?"))
    assert (state["answer"], state["grounding"]) == (answer, "supported")


def test_a_sentence_that_announces_a_command_is_quoted_with_it(tmp_path):
    text = "Remove old kernels with this command:\n\n    mill --purge kernel\n\nThen rest for a while."
    (tmp_path / "kernels.txt").write_text(f"Kernels\n\n{text}\n")
    with ingest(tmp_path / "kernels.txt", tmp_path / "index", embedder=HashEmbeddings()) as index:
        state = create_arag_agent("extractive", index).invoke(asked("Which command removes old kernels?"))
    assert "with this command: mill --purge kernel" in state["answer"]
    assert state["grounding"] == "supported"


def test_a_title_that_is_a_question_is_followed_by_no_colon(make_index):
    index = make_index({"a.md": "# Why are mills slow?\n\nThe tide mill is slow in June."})
    answer = create_arag_agent("extractive", index).invoke(asked("When is the tide mill slow?"))["answer"]
    assert answer.startswith("Why are mills slow? The tide mill is slow in June. [a.md:0]")


def test_a_name_as_in_programs_is_no_other_name_with_the_same_parts(make_index):
    texts = {"j.md": "The function bessel_j is defined by a sum.", "y.md": "By a limit bessel_y is defined."}
    index = make_index(texts)
    agent = create_arag_agent("extractive", index)
    answer = agent.invoke(asked("How is bessel_y defined?"))["answer"]
    assert answer.startswith("By a limit bessel_y is defined.")
    assert "bessel_k" not in agent.invoke(asked("How is bessel_k defined?"))["answer"]


def test_each_sentence_of_an_excerpt_has_the_title_alone():
    notes = Notes("Which?")
    notes.add_text("[a.md:1] (part 2 of 3) Git > Git page > NAME: It is one.\nGit page > OPTIONS: It is another.")
    assert [(each.title, each.text) for each in notes.sentences.values()] == [
        ("Git", "It is one."),
        ("Git", "It is another."),
    ]


def test_a_document_named_by_its_version_is_read_first_and_its_title_may_tell_when(make_index):
    releases = {
        f"{name}.md": f"# Mill Release {version} On {date}\n\nMill Works counts its gates."
        for name, version, date in [("a", "3.8.2", "2014-02-03"), ("b", "3.9.2", "2015-11-02"), ("c", "3.9.20", "2016")]
    }
    agent = create_arag_agent("extractive", make_index(releases))
    state = agent.invoke(asked("When was Mill 3.9.2 released?"))
    assert state["answer"] == f"Mill Release 3.9.2 On 2015-11-02 [b.md:0]\n{NOTICE}"
    read = [call["arguments"]["chunk_ids"] for call in state["trace"] if call["tool"] == "chunk_read"]
    assert read == [["b.md:0"]]
    assert admits_no_answer(agent.invoke(asked("When was Mill 3.9.3 released?"))["answer"])
    assert admits_no_answer(agent.invoke(asked("When was Mill released?"))["answer"])


@pytest.mark.parametrize(
    ("question", "title", "sentence"),
    [
        (
            "When is the next election of the Orra council?",
            "Next election of the Orra council 2019",
            "The next election of the Orra council is in May 2027.",
        ),
        ("What year is the Orra bridge from?", "Orra bridge 2015 report", "The Orra bridge dates from 1790."),
    ],
)
def test_a_title_with_a_year_does_not_replace_a_sentence_that_tells_when(make_index, question, title, sentence):
    texts = {"title.md": f"# {title}\n\nThe report lists three faults.", "told.md": f"# Notes\n\n{sentence}"}
    answer = create_arag_agent("extractive", make_index(texts)).invoke(asked(question))["answer"]
    assert answer.startswith(f"Notes: {sentence} [told.md:0]")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where does the 10.30 train to Orra leave?", "The train to Orra leaves at 10:30 from the quay."),
        ("Where does the Monday 10.30 to Orra leave?", "The Monday train to Orra leaves at 10:30 from the quay."),
        ("How much does a loaf of 0.5 kg cost?", "A loaf of rye weighs half a kilo and costs 2 marks."),
        ("How much does a loaf of Rye 0.5 kg cost?", "A loaf of Rye weighs half a kilo and costs 2 marks."),
        ("What did Orra build on 12.05.2020?", "Orra did build the quay on 12 May 2020."),
    ],
)
def test_a_time_or_measure_may_be_written_in_another_way(make_index, question, text):
    index = make_index({"notes.md": text, "other.md": "A sack of 5 kg of flour lasts a week."})
    answer = create_arag_agent("extractive", index).invoke(asked(question))["answer"]
    assert answer.startswith(f"notes: {text}")


@pytest.mark.parametrize("name", ["of Gate 3.11", "of version 3.11", "of Gate v3.11"])
def test_a_version_must_be_the_one_asked_for(make_index, name):
    question = f"What is the speed {name}?"
    for version, is_it in [("3.10", False), ("3.11", True)]:
        text = f"The speed {name.replace('3.11', version)} is 40."
        agent = create_arag_agent("extractive", make_index({"notes.md": text}))
        assert admits_no_answer(agent.invoke(asked(question))["answer"]) != is_it


@pytest.mark.parametrize(
    "text",
    [
        "2. Click on Wheel to open the Gate panel.",
        "Open the panel with Gate… or Wheel.",
        "パネル Gate は Wheel…を選んで開きます。",
    ],
)
def test_no_sentence_is_quoted_twice(make_index, text):
    index = make_index({"mill.md": f"# The mill\n\nThe miller sleeps.\n\n{text}\n\nRest for a while."})
    answer = create_arag_agent("extractive", index).invoke(asked("Which Gate panel opens the Wheel?"))["answer"]
    assert answer.count("Wheel") == 1
    assert text in answer
