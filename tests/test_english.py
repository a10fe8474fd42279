from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from arag.ingest.english import LanguageSample
from arag.ingest.pipeline import ingest
from arag.models import embedders
from arag.models.names import DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER
from fakes import HashEmbeddings, write_corpus

ENGLISH = "The lighthouse was built in 1783 and is on the north coast of the island, where it has stood ever since."
FOREIGN = {
    "Chinese": "灯塔建于一七八三年，由工程师王晓明设计。灯塔高四十二米，位于北海岸的悬崖上。",
    "Japanese": "北岬灯台は1783年に建てられ、技師の田中正一が設計した。高さは四十二メートルである。",
    "Korean": "북갑 등대는 1783년에 세워졌으며 기술자 김철수가 설계했다. 높이는 42미터이고 섬의 북쪽 해안에 있다.",
    "Russian": "Маяк был построен в 1783 году по проекту инженера Орлова. Он стоит на северном берегу острова.",
    "Arabic": "بُنيت المنارة عام 1783 على الساحل الشمالي للجزيرة، وقد صممها المهندس الذي عاش في المدينة القديمة.",
    "German": "Der Leuchtturm wurde 1783 gebaut und steht auf der nördlichen Seite der Insel. Das Licht ist hell.",
    "French": "Le phare, qui est dans le nord de l'île, a été construit en 1783. La lumière est belle.",
    "Spanish": "El faro se construyó en 1783 y está en la costa norte de la isla. Los barcos lo ven por la noche.",
    "Italian": "Il faro fu costruito nel 1783 da un ingegnere e si trova sulla costa della isola, che è lontana.",
    "Polish": "Latarnia nie jest duża, ale stoi na brzegu od 1783 roku. "
    "Jej światło jest silne, a za nią się rozciąga las, przez który prowadzi droga do portu.",
    "with code": "Der Befehl `for x in list: print(x)` gibt die Werte aus, und das ist nicht alles: Mit "
    "dem Modul `os` wird auch der Pfad gelesen, den die Datei hat.",
    "with English terms": "模型在 GPU 上运行，使用 Python 和 PyTorch。每个 batch 的大小由配置文件决定。",
}
NOT_FOREIGN = {
    "English": ENGLISH,
    "names": "Juan de la Cruz, María del Carmen, Ludwig van Beethoven and Leonardo da Vinci met in Los Angeles.",
    "a table of names": "| García | Müller | Łódź |\n| Dvořák | Nguyễn | São Paulo |\n| Ångström | Gödel | Erdős |\n"
    * 5,
    "code": "def add(items):\n    for key, value in items():\n        if value is not None:\n            total += 1\n",
    "numbers": "| 1781 | 4,2 | 17 % |\n| 1782 | 5,1 | 19 % |\n" * 20,
    "formulas": "Let α be the angle between β and γ, so that Σ α ≤ π for all of the λ in the set. " * 3,
    "Chinese names": "The poets Li Bai (李白) and Du Fu (杜甫) met in Luoyang in 744, and they became friends.",
    "nothing": "",
}


def is_foreign(*texts):
    sample = LanguageSample()
    for text in texts:
        sample.add(text)
    return sample.is_foreign


@pytest.mark.parametrize("kind", FOREIGN)
def test_other_languages_are_noticed(kind):
    assert is_foreign(FOREIGN[kind])


@pytest.mark.parametrize("kind", NOT_FOREIGN)
def test_english_with_names_code_or_tables_is_english(kind):
    assert not is_foreign(NOT_FOREIGN[kind])


def test_most_of_a_corpus_decides():
    foreign = list(FOREIGN.values())
    assert is_foreign(*foreign, *[ENGLISH] * 3)
    assert not is_foreign(*foreign[:3], *[ENGLISH] * 12)


@pytest.mark.parametrize("name", ["musique", "hotpotqa", "2wikimultihopqa", "medical"])
def test_no_document_of_the_real_corpora_is_taken_for_another_language(real_corpora, name):
    with (real_corpora / name / "corpus.jsonl").open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines][:2_000]
    assert not is_foreign(*texts)
    assert [text for text in texts if is_foreign(text)] == []


def test_the_examples_are_english():
    files = (Path(__file__).parent.parent / "examples" / "corpus").rglob("*.md")
    assert [file.name for file in files if is_foreign(file.read_text(encoding="utf-8"))] == []


@pytest.fixture
def default_embedder(monkeypatch):
    """The default embedder by name, with vectors that cost nothing."""
    monkeypatch.setattr(embedders, "load_embeddings", lambda *_, **__: HashEmbeddings())


def notes(corpus, index, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ingest(corpus, index, **options).close()
    return [str(warning.message) for warning in caught if "not English" in str(warning.message)]


def test_an_ingestion_of_another_language_names_a_multilingual_embedder_once(tmp_path, default_embedder):
    corpus = write_corpus(tmp_path / "corpus", {"a": FOREIGN["German"], "b": FOREIGN["Chinese"]})
    (note,) = notes(corpus, tmp_path / "index", embedder=DEFAULT_EMBEDDER)
    assert MULTILINGUAL_EMBEDDER in note
    write_corpus(tmp_path / "corpus", {"c": FOREIGN["Russian"]})
    assert notes(corpus, tmp_path / "index", embedder=DEFAULT_EMBEDDER) == []


def test_english_and_other_embedders_need_no_note(tmp_path, default_embedder):
    english = write_corpus(tmp_path / "english", {"a": ENGLISH})
    german = write_corpus(tmp_path / "german", {"a": FOREIGN["German"]})
    assert notes(english, tmp_path / "one", embedder=DEFAULT_EMBEDDER) == []
    assert notes(german, tmp_path / "two", embedder=HashEmbeddings()) == []
