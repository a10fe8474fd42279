"""Makes pages of the website from files that read as pages on a code host, too; mkdocs calls it.

- SECURITY.md, CONTRIBUTING.md and CHANGELOG.md stand at the top of the repository: each is a page of the site, and the
  links to it lead there.
- A line that only links to a file of the repository is that file's text on the site.
- `llms.txt` links to the files of pages: on the site, to the pages.
- `api.md` lists names with links to the files that define them: on the site, each has its documentation below it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
TOP_PAGES = {"SECURITY.md": "security.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
API_PAGE = "api.md"
LIST = "llms.txt"

_FILE = re.compile(r"^\[`[^`]+`\]\(\.\./(examples/[\w/.-]+)\)\n", re.MULTILINE)
_ITEM = re.compile(r"^- .*\n(?:  .*\n)*", re.MULTILINE)
_NAME = re.compile(r"\[`(?P<name>[\w.]+)`\]\(\.\./(?P<file>[\w/]+)\.py\)")
_PAGE = re.compile(r"\.md\)")
_DOCS = re.compile(r"\]\(docs/")


def on_files(files: Any, config: Any) -> Any:
    """Add the files at the top of the repository."""
    for name, page in TOP_PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_DOCS.sub("](", text)))
    listed = files.get_file_from_path(LIST)
    files.remove(listed)
    files.append(File.generated(config, LIST, content=_PAGE.sub("/)", listed.content_string)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Let links lead to pages of the site, and put the documentation of names in the place of links to their files."""
    for name, target in TOP_PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
    markdown = _FILE.sub(_show_file, markdown)
    if page.file.src_uri == API_PAGE:
        return _ITEM.sub(_document_item, markdown)
    return markdown


def _show_file(link: re.Match[str]) -> str:
    text = (ROOT / link[1]).read_text(encoding="utf-8")
    return f"\n```text\n{text}```\n"


def _document_item(item: re.Match[str]) -> str:
    """Return the lines that mkdocstrings replaces by the documentation of the names in an item of a list."""
    return "".join(f"::: {identify(*named)}\n\n" for named in _NAME.findall(item[0]))


def identify(name: str, file: str) -> str:
    """Return the full name of what a link names: of something in its file, or of the file as a module."""
    module = file.replace("/", ".").removesuffix(".__init__").removeprefix("arag.")
    if name in (module, module.rpartition(".")[2]):
        return f"arag.{module}"
    return f"arag.{module}.{name}"
