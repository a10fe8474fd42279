"""Text of reStructuredText files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from arag.ingest.formats.content import Content, FormatError, decode, folded
from arag.ingest.formats.html import read_html

if TYPE_CHECKING:
    from docutils import nodes

_ERROR = 3  # level of messages about markup that could not be parsed
_DIRECTIVE = re.compile(r"^[ \t]*\.\. ([A-Za-z][\w:.+-]*[\w]|[A-Za-z])::(?:\s|$)", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w:]):([A-Za-z][\w:.+-]{0,60}\w|[A-Za-z]):`")
_TARGET = re.compile(r"^(.*?)<[^<>]*>$", re.DOTALL)
# docutils drops a row that begins with an empty cell right after the border of a simple table, unless it has "\\ ".
_EMPTY_CELL = re.compile(r"^( *)(=+(?: +=+)+) *\n\1  (?=\s*\S)", re.MULTILINE)
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "report_level": 5,  # faults of the markup are not text
    "halt_level": 5,
    "warning_stream": False,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "embed_stylesheet": False,
    "stylesheet_path": None,
    "toc_backlinks": False,
    "section_self_link": False,
}


def read_rst(data: bytes) -> Content:
    """Read reStructuredText. Nothing is included from other files.

    The content of directives that docutils does not have, such as Sphinx's, is read as text.

    Raises:
        FormatError: The file is in another encoding, or is nested too deeply.
    """
    from docutils.core import publish_doctree, publish_from_doctree

    text = _EMPTY_CELL.sub(r"\1\2\n\1\\ ", decode(data))
    try:
        with _own_names():
            _accept_unknown(text)
            document = publish_doctree(text, settings_overrides=_SETTINGS)
        _restore_faulty(document)
        page: bytes = publish_from_doctree(document, writer="html5", settings_overrides=_SETTINGS)
    except RecursionError as error:
        raise FormatError("markup that is nested too deeply") from error
    return Content(_title(document), read_html(page).text)


@contextmanager
def _own_names() -> Iterator[None]:
    """Forget the roles and directives of a file after it: docutils keeps them for the whole process."""
    from docutils.parsers.rst import directives, roles

    registries = (directives._directives, roles._roles)  # noqa: SLF001 - there is no public way
    kept = [dict(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, names in zip(registries, kept, strict=True):
            registry.clear()
            registry.update(names)


def _title(document: nodes.document) -> str:
    """Return the title, or else the first heading; the HTML of a document without a title has one of its own."""
    from docutils import nodes

    section = next(document.findall(nodes.section), None)
    return folded(document.get("title", "") or ("" if section is None else section[0].astext()))


def _restore_faulty(document: nodes.document) -> None:
    """Put what could not be parsed, such as a malformed table, in the place of the message about it."""
    from docutils import nodes

    for message in list(document.findall(nodes.system_message)):
        faulty = [child for child in message.children if isinstance(child, nodes.literal_block)]
        # Not replace_self: it asserts that the new nodes take over the message's ids.
        message.parent.replace(message, faulty if message["level"] >= _ERROR else [])


def _accept_unknown(text: str) -> None:
    """Register the directives and roles that docutils does not know, which would otherwise swallow their content."""
    from docutils.frontend import get_default_settings
    from docutils.languages import get_language
    from docutils.parsers.rst import Directive, Parser, directives, roles
    from docutils.utils import new_document

    document = new_document("", get_default_settings(Parser))
    document.settings.report_level = 5
    language = get_language("en")

    for name in set(_DIRECTIVE.findall(text)):
        if directives.directive(name, language, document)[0] is None:
            directives.register_directive(name, _unknown_directive(Directive))
    for name in set(_ROLE.findall(text)):
        if roles.role(name, language, 0, document.reporter)[0] is None:
            roles.register_local_role(name, _read_role)


def _unknown_directive(base: Any) -> Any:
    from docutils import nodes
    from docutils.parsers.rst.directives import unchanged

    class Unknown(base):  # type: ignore[misc]
        """Its argument and its content as text."""

        optional_arguments = 1
        final_argument_whitespace = True
        has_content = True
        option_spec: ClassVar = defaultdict(lambda: unchanged, name=unchanged)  # docutils ignores an empty one

        def run(self) -> list[nodes.Node]:
            texts = [nodes.paragraph("", argument) for argument in self.arguments]
            content = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, content)
            return [*texts, *content.children]

    return Unknown


def _read_role(
    _name: str, _rawtext: str, text: str, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return the text of a role, such as `Title` of `:ref:`Title <target>``."""
    from docutils import nodes, utils

    text = utils.unescape(text)
    found = _TARGET.match(text)
    return [nodes.inline("", ((found[1].rstrip() if found else "") or text).lstrip("~!"))], []
