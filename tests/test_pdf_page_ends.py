"""Sentences of a PDF that go on from one page to the next one."""

from __future__ import annotations

import pytest

from pdf_pages import CHINESE, Pages

FULL = "The harbour board met on the first Monday of each month and heard"
BELOW = "Its minutes are kept in the archive of the town, in the blue room."


def read_pages(read, end, start, indent=0, size=11, font="Helvetica"):
    pages = Pages()
    pages.lines(72, 700, [FULL, BELOW, end], font=font)
    pages.show()
    pages.text(72 + indent, 700, start, size, font)
    pages.lines(72, 680, [BELOW, FULL], font=font)
    content = read("a.pdf", pages.finish())
    second = content.page_starts[1]
    return content.text[:second].split("\n", 2)[-1], content.text[second:].split("\n")[0]


@pytest.mark.parametrize(
    ("end", "start", "text"),
    [
        (FULL, "all captains.", f"{FULL}\nall captains."),
        (FULL, "Captain Berg of the Aurora, who told of the ice beyond the bar.", None),
        (FULL[:-5] + "har-", "bours of the coast.", FULL[:-5] + "harbours of the coast."),
        (FULL[:-5] + "Nordsee-", "Schiffe aus allen Orten der Küste und von den Inseln davor.", None),
    ],
)
def test_a_sentence_goes_on_on_the_next_page(read, end, start, text):
    before, after = read_pages(read, end, start)
    joined = text or (f"{end}{start}" if end.endswith("-") else f"{end}\n{start}")
    assert before + after == joined


def test_a_chinese_sentence_goes_on_on_the_next_page(read):
    end = "港口委员会每月第一个星期一开会听取所有船长的报告并且"
    start = "决定下一个月的工作安排以及所有船只进出港口的时间和顺序。"
    pages = Pages()
    pages.lines(72, 700, ["委员会的记录保存在市镇档案馆的蓝色房间里面供人查阅的", end], font=CHINESE)
    pages.show()
    pages.lines(72, 700, [start, "委员会的记录保存在市镇档案馆的蓝色房间里面供人查阅。"], font=CHINESE)
    content = read("a.pdf", pages.finish())
    assert end + start in content.text
    assert content.text[content.page_starts[1] :].startswith(start)


@pytest.mark.parametrize(
    ("end", "start", "options"),
    [
        ("Members: the mayor", "and the harbour master.", {}),  # a short line
        (f"{FULL[:-10]}the case.", "all captains.", {}),
        (FULL, "Captains", {}),  # perhaps a title
        (FULL, "Captain Berg of the Aurora, who told of the ice beyond the", {"indent": 30}),
        (FULL, "all captains", {"size": 18}),
        (FULL, "1. all captains", {}),
        (FULL, "- all captains", {}),
    ],
)
def test_a_page_that_begins_something_else(read, end, start, options):
    before, after = read_pages(read, end, start, **options)
    assert before.endswith(f"{end}\n\n")
    assert start in after
