"""FaithfulRAG: groups of sentences, the alignment, and what each call is shown."""

from __future__ import annotations

import numpy as np
import pytest

from arag.evaluation.methods.faithful_rag import FaithfulRAG, choose_groups, cut_context, group_sentences
from fakes import hash_vector
from role_model import EMPTY, answer_with, lines
from scripted import DOCUMENTS, QUESTION

NEEDED, BACKGROUND, TAKEN_APART = "list the facts that one must know", "write the background", "take a passage apart"
ANSWERING = "answer a question from passages"
BELIEVED = "Lothair II married Waldrada in 862. Waldrada was a daughter of Ludolf."
STATEMENTS = ["Lothair II married Waldrada in 862.", "She was a daughter of Ludolf."]
ROLES = {
    NEEDED: {"facts": ["Whom Lothair II married."]},
    BACKGROUND: BELIEVED,
    TAKEN_APART: {"facts": STATEMENTS},
    ANSWERING: {"reason": "Teutberga was his wife.", "answer": "Boso the Elder"},
}


@pytest.fixture(name="run")
def _run(small_index, tmp_path):
    """A function that asks the method the question, with some roles."""

    def run(**roles):
        named = {"needed": NEEDED, "background": BACKGROUND, "taken_apart": TAKEN_APART, "answer": ANSWERING}
        roles = {**ROLES, **{named[name]: reply for name, reply in roles.items()}}
        return answer_with(FaithfulRAG(), small_index, roles, tmp_path)

    return run


# --- on plain values ---


def words(count, end="."):
    return " ".join(["word"] * count) + end


def test_groups_have_at_most_twenty_words():
    sentences = [words(count) for count in (12, 8, 1, 25, 20, 3, 4)]
    groups = group_sentences(sentences)
    assert [len(group.split()) for group in groups] == [20, 1, 25, 20, 7]
    assert " ".join(groups) == " ".join(sentences)
    assert group_sentences([]) == []


def test_each_character_of_a_script_without_spaces_counts_as_a_word():
    for sentence in ("灯台守は毎朝、鐘を鳴らした。", "ﾄｳﾀﾞｲﾓﾘﾊﾏｲｱｻｶﾈｦ｡", "𠀀𠀁𠀂𠀃𠀄𠀅𠀆𠀇𠀈𠀉𠀊。", "เรือออกจากท่าแล้ว"):
        assert group_sentences([sentence, sentence]) == [sentence, sentence]
    korean = "서울은 대한민국의 수도이다."
    assert group_sentences([korean, korean]) == [f"{korean} {korean}"]


def test_markup_and_brackets_are_dropped():
    assert cut_context(["![The lens](a.png) of [Arles](https://a.org/Arles) [1]."]) == ["The lens of Arles ."]
    assert cut_context(['It <a href="x">was</a><br/>\nlit <!-- or not -->, if x < 5 and y > 3.']) == [
        "It was lit , if x < 5 and y > 3."
    ]


def test_the_five_best_of_each_facts_five_nearest_groups_are_chosen():
    groups = ["a", "b", "c", "d", "e", "f", "a"]
    similarities = np.float32([[0.9, 0.1, 0.8, 0.8, 0.7, 0.7, 0.95], [0.2, 0.3, 0.2, 0.1, 0.2, 0.2, 0.2]])
    assert [text for text, _ in choose_groups(similarities[:1], groups)] == ["a", "c", "d", "e"]
    assert [text for text, _ in choose_groups(similarities, groups)] == ["a", "c", "d", "e", "b"]


# --- the method ---


def test_four_calls_of_which_only_the_last_sees_the_corpus(run):
    answer, session, play = run()
    assert play.made == [NEEDED, BACKGROUND, TAKEN_APART, ANSWERING]
    assert (answer.text, answer.stop_reason) == ("Boso the Elder", "answered")
    assert [record["arguments"]["query"] for record in session.trace] == [QUESTION]
    ((needed,), (background,), (apart,), (answer,)) = map(play.of, play.made)
    assert needed == f"Question: {QUESTION}"
    assert QUESTION in background
    assert "- Whom Lothair II married." in background
    assert BELIEVED in apart
    assert QUESTION not in apart
    for shown in (needed, background, apart):
        assert not any(word in shown for word in ("Teutberga", "Arles", "storm"))
    assert all(document["text"] in answer for document in DOCUMENTS[:3])
    assert BELIEVED not in answer
    assert not any(statement in answer for statement in STATEMENTS)


def test_the_last_call_has_the_nearest_sentences_as_facts(small_index, run):
    _, session, play = run()
    groups = cut_context(small_index.get(chunk_id).text for chunk_id in session.trace[0]["chunk_ids"])
    facts, rows = (np.stack([hash_vector(text) for text in each]).astype(np.float32) for each in (STATEMENTS, groups))
    expected = [text for text, _ in choose_groups(facts @ rows.T, groups)]
    (shown,) = play.of(ANSWERING)
    assert "<facts-1>\n" + "\n".join(f"- {text}" for text in expected) + "\n</facts-1>" in shown
    titles = ["Facts that one must know", "Background, by the model", "Facts in it", "Sentences nearest to them"]
    assert [note["title"] for note in session.notes] == titles
    assert [line.partition(" ")[2] for line in lines(session, "Sentences")] == expected
    assert lines(session, "Facts in it") == STATEMENTS


def test_without_facts_the_context_is_left(run):
    _, _, play = run(needed={"facts": []}, taken_apart=EMPTY)
    assert play.made == [NEEDED, BACKGROUND, *3 * [TAKEN_APART], ANSWERING]
    assert "<facts" not in play.of(ANSWERING)[0]


def test_without_a_background_nothing_is_taken_apart(run):
    _, _, play = run(needed="no JSON", background=EMPTY)
    assert play.made == [*3 * [NEEDED], *3 * [BACKGROUND], ANSWERING]
    assert "None." in play.of(BACKGROUND)[0]


def test_an_unusable_answer_is_empty_and_one_of_another_form_is_the_text(run):
    answer, _, play = run(answer=EMPTY)
    assert (play.made.count(ANSWERING), answer.text) == (3, "")
    answer, _, play = run(answer="It was Boso the Elder.")
    assert (play.made.count(ANSWERING), answer.text) == (1, "It was Boso the Elder.")
