"""Code within documents comes through as it is."""

from __future__ import annotations

import json
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.ingest.sentences import split_sentences

PIECES = [
    "a\n---",
    "===\n***",
    " - -----\n   12\n- ---\n--",
    "|---|---|\n| a | b |",
    "+---+\n| x |\n+---+",
    "# more\n  ## less\n#",
    "    ~~~~^~~~",
    "1. one\n- two\n* three\n> four",
    ":::\n...\n.. note\n%%\n{: .x}\n[x]",
    "\n\n",
    "<!-- c -->\n<br>",
    "Title\n-----\ntext",
    "\\* star\n\t\\# tab",
]


def set_in(code, width):
    return "\n".join(" " * width + line if line else "" for line in code.split("\n"))


def cell(code):
    outputs = [{"output_type": "stream", "text": code}]
    return {"cell_type": "code", "source": code, "outputs": outputs}


READERS = {
    "a.html": lambda code: f"<div class=header>Mill</div><h1>A</h1><pre>{escape(code)}</pre><p>end",
    "item.html": lambda code: f"<h1>A</h1><ul><li>x<pre><code>{escape(code)}</code></pre></ul><p>end",
    "breaks.html": lambda code: f"<h1>A</h1><pre>{escape(code).replace(chr(10), '<br>')}</pre>",
    "a.page": lambda code: (
        f"<page xmlns='http://projectmallard.org/1.0/'><title>A</title><code>{escape(code)}</code></page>"
    ),
    "a.docbook": lambda code: (
        f"<article><title>A</title><programlisting>{escape(code)}</programlisting><para>end</para></article>"
    ),
    "a.md": lambda code: f"# A\n\n```\n{code}\n```\n\nend\n",
    "tildes.md": lambda code: f"# A\n\n~~~~\n{code}\n~~~~\n\nend\n",
    "a.rst": lambda code: f"Mill\n====\n\nA::\n\n{set_in(code, 2)}\n\nend\n",
    "a.txt": lambda code: f"= Mill\n\nx\n\n== A\n\n[source]\n------\n{code}\n------\n\n== B\n\nend\n",
    "a.ipynb": lambda code: json.dumps({"nbformat": 4, "metadata": {}, "cells": [cell(code)]}),
}


@pytest.mark.parametrize("name", READERS)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=5))
def test_each_line_of_code_is_read_in_its_place(readers, tmp_path_factory, name, pieces):
    code = "\n".join(["first", *pieces, "last"])
    path = tmp_path_factory.mktemp("code") / name
    path.write_text(READERS[name](code), encoding="utf-8")
    text = readers.read(path).text
    lines = [line.rstrip() for line in text.split("\n")]
    start = next(number for number, line in enumerate(lines) if line.strip() == "first")
    width = len(lines[start]) - len("first")  # code may be set in as a whole
    expected = set_in(code, width).split("\n")
    assert lines[start : start + len(expected)] == expected
    headings = {sentence.heading for sentence in split_sentences(text, guess_headings=False)}
    assert not any("more" in heading or "less" in heading for heading in headings)


def test_no_word_is_joined_in_code(read):
    code = "```\nwatermill or water-\nmill\n每一个村庄都有一座桥和\n一座水车还有一条小河流\n```"
    assert read("a.md", f"# A\n\n{code}\n\nThe water-\nmill.\n").text == f"# A\n\n{code}\n\nThe watermill.\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Hints. And:\n\n{}\n\nThat is all. It ends.", "hints = {\n  ['j.root.'] = {\n    '192.0.2.1',\n  },\n}"),
        ("```\n{}\n```", 'say("The mill stands. It turns.")'),
    ],
)
def test_a_full_stop_in_a_string_ends_no_sentence(text, code):
    text = text.format(code)
    assert code in [text[sentence.start : sentence.end] for sentence in split_sentences(text)]
