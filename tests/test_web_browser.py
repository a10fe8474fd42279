"""The pages in Chromium, with the keyboard alone; roles and names are those that screen readers read."""

from __future__ import annotations

import re
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pypdfium2 as pdfium
import pytest

import openai_server
from web_server import SENTENCE, serving, write_site

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = pytest.mark.servers

QUESTION = "When was the harbour light first lit?"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_site(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        installed = [path for path in map(shutil.which, BROWSERS) if path]
        program = installed[0] if installed else driver.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("there is no Chromium: install it, or run `playwright install chromium`")
        browser = driver.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page whose browser must neither complain nor send anything elsewhere than to this machine."""
    context = browser.new_context()
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: complaints.append(request.url) if "://127.0.0.1:" not in request.url else None)
    yield page
    context.close()
    assert not complaints


@pytest.fixture(scope="module")
def address(folder):
    with serving(folder) as address:
        yield address


def open_address(page, address):
    page.goto(address)
    page.wait_for_url(address.partition("?")[0])  # without the token


def tab_to(page, role, name):
    """Press Tab until an element with this role and name has the focus."""
    wanted = page.get_by_role(role, name=name).first
    wanted.wait_for(state="attached")
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the keyboard does not reach the {role} {name}")


def press(page, role, name):
    """Go to a link or a button by the keyboard, press it, and wait for its page."""
    tab_to(page, role, name)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def type_text(page, text):
    """Type into the field that gets the focus by itself, and send its form."""
    page.wait_for_function("document.activeElement.name === 'q'")
    page.keyboard.type(text)
    with page.expect_navigation(wait_until="commit"):  # a run's page is there before it is complete
        page.keyboard.press("Enter")


def check_picture(page):
    """Check that the page's picture is drawn, and that the sentence is marked in the text below."""
    picture = page.get_by_role("img", name="The page of the passage, whose text is below")
    picture.wait_for()
    page.wait_for_function("picture => picture.complete", arg=picture.element_handle())
    assert picture.evaluate("picture => picture.naturalWidth") > 1_000
    assert page.locator("mark").all_inner_texts() == [SENTENCE]


def test_search_hit_picture_ask_and_citation_by_keyboard(page, address):
    open_address(page, address)
    type_text(page, "harbour light")
    press(page, "link", "light")
    check_picture(page)
    press(page, "link", "Ask")
    type_text(page, QUESTION)
    page.get_by_role("heading", name="Answered").wait_for()
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    assert "semantic_search" in steps.first.inner_text()
    tab_to(page, "link", "1")
    page.keyboard.press("Enter")
    press(page, "link", "Read light.pdf:0")
    check_picture(page)


def test_the_picture_of_a_page_is_printed_on_the_first_sheet(page, address):
    open_address(page, address)
    page.goto(f"{address.partition('?')[0]}passage?chunk=light.pdf:0&at=35")
    page.locator("figure img").evaluate("image => image.decode()")
    with pdfium.PdfDocument(page.pdf(format="A4")) as printed:
        objects = printed[0].get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_IMAGE])
        assert len(list(objects)) == 1


def test_a_hit_opens_with_its_sentence_in_view_and_the_links_above(page, address):
    page.set_viewport_size({"width": 800, "height": 500})
    open_address(page, address)
    page.goto(f"{address.partition('?')[0]}?q=harbour+light")
    page.get_by_role("link", name="light").first.click()
    page.wait_for_url("**/passage?**")
    page.locator("figure img").evaluate("image => image.decode()")
    playwright.expect(page.locator("figure rect")).to_be_in_viewport()
    playwright.expect(page.get_by_role("link", name="Search")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [390, 1200])
def test_the_list_of_documents_fits_its_frame(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_address(page, address)
    frame = page.get_by_role("region", name="Documents")
    assert "Parts not read: 1 formula without a saved value" in frame.inner_text()
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")


def test_filters_lists_and_documents_by_keyboard(page, address):
    open_address(page, address)
    tab_to(page, "combobox", "Kind")
    page.keyboard.type("md")
    press(page, "button", "Search")
    assert page.get_by_role("rowheader").all_inner_texts() == ["The keeper\nnotes/keeper.md"]
    press(page, "link", "The keeper")
    press(page, "link", re.compile("^Nights$"))
    assert page.locator("mark").all_inner_texts() == ["He slept."]
    assert page.locator("mark:target").count() == 1
    with page.expect_download() as download:
        tab_to(page, "link", "Save the file")
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "keeper.md"


def test_every_control_has_a_name(page, address):
    open_address(page, address)
    assert page.locator("body").aria_snapshot().startswith('- link "To the content"')
    for path in ("", "?q=harbour", "ask", "document?id=notes/keeper.md", "passage?chunk=light.pdf:0&at=35"):
        page.goto(f"{address.partition('?')[0]}{path}")
        snapshot = page.locator("body").aria_snapshot()
        assert '- navigation "Pages"' in snapshot
        assert snapshot.count("[level=1]") == 1
        for role in ("searchbox", "textbox", "combobox", "button", "link", "img", "region"):
            assert not re.search(rf"- {role}(?! \")", snapshot), snapshot
        assert page.title().endswith("A-RAG")
    assert page.locator("html[lang=en]").count() == 1


def test_a_step_is_shown_before_the_answer_is_there(page, folder):
    may_answer = threading.Event()

    def respond(number, _):
        if number == 0:
            return openai_server.chat(None, ("call", "keyword_search", '{"keywords": ["harbour"]}'))
        assert may_answer.wait(60)
        return openai_server.chat("In 1791 [light.pdf:0].")

    with openai_server.serve(respond) as server:
        options = {"api_key": "none", "use_responses_api": False}
        with serving(folder, model=f"openai:some-model@{server.url}", options=options) as address:
            open_address(page, address)
            press(page, "link", "Ask")
            type_text(page, QUESTION)
            page.get_by_text('keyword_search {"keywords": ["harbour"]}').wait_for()
            page.get_by_role("list", name="Steps").get_by_role("listitem").nth(1).wait_for()  # the result
            assert page.locator(".answer").count() == 0
            may_answer.set()
            page.get_by_role("heading", name="Answered").wait_for()
            assert page.locator(".answer").inner_text().startswith("In 1791")


@contextmanager
def serving_files(folder):
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("frame", ["", 'sandbox="allow-forms allow-scripts"'])
def test_another_page_of_this_machine_cannot_ask(browser, address, tmp_path, frame):
    own = address.partition("/?")[0]
    (tmp_path / "evil.html").write_text(f'<iframe src="form.html" {frame}></iframe>')
    (tmp_path / "form.html").write_text(
        f'<form method="post" action="{own}/ask"><input name="q" value="Spend money"></form>'
        "<script>document.forms[0].submit()</script>"
    )
    page = browser.new_page()
    open_address(page, address)
    with serving_files(tmp_path) as other:
        with page.expect_response(f"{own}/ask") as refused:
            page.goto(f"{other}/evil.html")
        sent = refused.value.request.all_headers()
    assert refused.value.status == 403
    assert sent["origin"] == ("null" if frame else other)
    page.goto(f"{own}/ask")
    assert "Spend money" not in page.content()
    page.close()
