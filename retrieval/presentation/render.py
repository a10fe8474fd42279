"""Results as text for a language model: short, and with nothing left to guess."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from arag.retrieval.presentation.choose import Shown
from arag.retrieval.types import Excerpt, Hit, KeywordReport, KeywordResults, ReadResults, Term
from arag.text.marks import list_marks, mark, without_marks
from arag.text.normalise import CUT, collapse_whitespace, count, is_title, name_words, without_title, words

_LEFT_OUT = "left out: other passages are closer, or shown above. A chunk read alone, without `about`, is shown whole."
_MAX_TERM_CHUNKS = 20  # that hold a similar term; a more common one is not named if it is no name
_LINE = re.compile(r" \| |^(?:[-*•]|\d+[.)]) ")  # a table's row, or an item of a list
_CURRENCY = re.compile(r"\s*\|\s*\$\s*\|\s*|\s+\$\s*\|\s*")  # in a table's row, in a cell of its own
_PERCENT = re.compile(r"(?<=[\d)]) (?=%)")
_MAX_ID_CHARACTERS = 200  # of an unknown id that is repeated


def render_keywords(results: KeywordResults, shown: Shown) -> str:
    """Write a keyword search's results: what each keyword hits, then what is shown of the hits."""
    reports = "; ".join(_report(report, results.hits) for report in results.keywords)
    if not results.hits:
        return f"{reports}.\nNo chunk holds any of these keywords."
    best = len(shown.hits) + len(shown.above) + len(shown.brief) + sum(map(len, shown.same.values()))
    number = f"The best {best} of {results.total:,} chunks" if best < results.total else "All"
    return _join(f"{reports}. {number}:", shown)


def render_semantic(shown: Shown) -> str:
    """Write what is shown of a semantic search's hits."""
    if not shown.hits and not shown.above and not shown.brief:
        return "There are no sentences to search in."
    return _join("The nearest, by similarity:", shown)


def _join(head: str, shown: Shown) -> str:
    blocks = [head]
    named: set[str] = set()  # documents, each by its title once
    for hit in shown.hits:
        similarity = "" if hit.keywords else f" ({hit.score:.2f})"
        block = f"{mark(hit.chunk_id)}{similarity} {_write_hit(hit, named)}".rstrip()
        same = shown.same.get(hit.chunk_id)
        blocks.append(f"{block}\n(the same text: {list_marks(same)})" if same else block)
    if shown.above:
        blocks.append(f"Shown above: {list_marks(shown.above)}")
    if shown.brief:
        brief = [f"{mark(hit.chunk_id)} {_write_hit(hit, named)}" for hit in shown.brief]
        blocks.append("\n".join(["In brief:", *brief]))
    if not shown.hits and not shown.brief:
        blocks.append("Nothing new was found.")
    return "\n\n".join(blocks)


def _write_hit(hit: Hit, named: set[str]) -> str:
    """Write a hit's excerpt; its document's title once, and not beside a heading if the id has its words."""
    excerpt = hit.excerpt
    has_heading = any(sentence.under for sentence in excerpt.sentences)
    is_said = hit.document_id in named or (has_heading and {*name_words(excerpt.title)} <= {*name_words(hit.chunk_id)})
    named.add(hit.document_id)
    return without_marks(_write(excerpt, titled=not is_said))


def render_chunks(results: ReadResults, read_chunks: Collection[str], excerpts: Mapping[str, Excerpt]) -> str:
    """Write full chunks, or excerpts of them, a notice for those read already, and what is wrong with unknown ids."""
    blocks: list[str] = []
    left_out: list[str] = []
    for chunk in results.chunks:
        if chunk.id in read_chunks:
            blocks.append(f"{mark(chunk.id)} Shown in full above.")
        elif chunk.id not in excerpts:
            part = "" if chunk.whole else f"part {chunk.ordinal + 1} of {chunk.parts}"
            place = ", ".join(
                filter(None, [without_marks(collapse_whitespace(chunk.title)), part, name_pages(chunk.pages)])
            )
            head = f"{mark(chunk.id)} {place}".strip()
            blocks.append(f"{head}\n{without_marks(without_title(chunk.text, chunk.title))}")
        elif excerpts[chunk.id].sentences:
            blocks.append(f"{mark(chunk.id)} {without_marks(_write(excerpts[chunk.id]))}")
        else:
            left_out.append(chunk.id)
    if left_out:
        blocks.append(f"{list_marks(left_out)}: {_LEFT_OUT}")
    for number, (chunk_id, closest) in enumerate(results.unknown.items()):
        block = f"{mark(chunk_id[:_MAX_ID_CHARACTERS])} There is no chunk with this id."
        if closest:
            block += f" Ids look like {list_marks(closest)}; search results give them."
        elif number == 0:  # the later ones have no examples in any case
            block += " The index is empty."
        blocks.append(block)
    return "\n\n".join(blocks)


def name_pages(pages: Sequence[int] | None) -> str:
    """Return a chunk's pages as in "pages 16-23"; empty if its document has none."""
    if not pages:
        return ""
    return f"page {pages[0]}" if pages[0] == pages[-1] else f"pages {pages[0]}-{pages[-1]}"


def _report(report: KeywordReport, hits: Sequence[Hit]) -> str:
    keyword = without_marks(report.keyword)
    apart = [hit.chunk_id for hit in hits if report.keyword in hit.apart]
    named = [hit.chunk_id for hit in hits if report.keyword in hit.named]
    if apart:
        return f"{keyword}: only apart, in {list_marks(apart)}"
    if named and not report.chunks:
        return f"{keyword}: only in the name of {list_marks(named)}"
    number = count(report.chunks, "chunk") if report.chunks else "none"
    notes = [f"and in the name of {list_marks(named)}"] if named else []
    if report.as_word is not None and 0 < report.as_word < report.chunks:
        notes.append(f"{report.as_word:,} as a word")
    if report.searched_as is not None:
        spelled = without_marks(report.searched_as)
        found = count(next(term.chunks for term in report.closest if term.text == report.searched_as), "chunk")
        notes.append(f"and {found} as {spelled}" if report.chunks else found)
        number = number if report.chunks else f"spelled {spelled}"
    elif terms := [term for term in report.closest if _is_worth_naming(term, report.keyword)]:
        names = ", ".join(f"{without_marks(term.text)} ({count(term.chunks, 'chunk')})" for term in terms)
        notes.append(f"{'similar' if report.chunks else 'closest'}: {names}")
    return f"{keyword}: {number}" + (f" ({'; '.join(notes)})" if notes else "")


def _is_worth_naming(term: Term, keyword: str) -> bool:
    is_name = term.text[:1].isupper() and len(words(term.text)) == len(words(keyword))  # and no part of the keyword
    return term.respelled or is_name or term.chunks <= _MAX_TERM_CHUNKS


def _write(excerpt: Excerpt, *, titled: bool = True) -> str:
    """Write an excerpt behind its title and the headings that it stands under.

    What stands under other headings begins a line, and so does each row of a table and each item of a list.
    """
    sentences = excerpt.sentences
    lines: list[str] = []
    title = collapse_whitespace(excerpt.title) if titled else ""
    heading, is_line = "", False
    above: tuple[str, ...] = ()
    for place, sentence in enumerate(sentences):
        is_gap = sentence.position != sentences[place - 1].position + 1 if place else not excerpt.begins
        heading = collapse_whitespace(" > ".join(sentence.under)) if sentence.under not in {(), above} else heading
        above = sentence.under
        named = (excerpt.title, *sentence.under, *(sentences[place + 1].under if place + 1 < len(sentences) else ()))
        if any(is_title(sentence.text, name) for name in named):
            continue
        text = _tidy_row(sentence.text)
        text = f"{CUT} {text}" if is_gap and not heading and not text.startswith(CUT) else text
        was_line, is_line = is_line, _LINE.search(sentence.text) is not None
        if not lines and title and not any(is_title(title, name) for name in sentence.under):
            heading = f"{title} > {heading}" if heading else title
        if heading or is_line or was_line or not lines:
            lines.append(f"{heading}: {text}" if heading else text)
        else:
            lines[-1] += f" {text}"
        heading = ""
    if not lines:  # the title or a heading alone matched
        return heading or title or CUT
    end = "" if excerpt.ends or lines[-1].endswith(CUT) else f" {CUT}"
    return "\n".join(lines) + end


def _tidy_row(text: str) -> str:
    """Join what belongs together in a table's row: currency, numbers and percent signs."""
    return _PERCENT.sub("", _CURRENCY.sub(" | $", text)) if " | " in text else text
