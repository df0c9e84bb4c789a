"""A browser, and a function that opens a page in it and checks for errors and requests."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.fail("these tests need chromium: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, pages):
    """Open a page by its name; afterwards, check that no error was logged and only the page itself was requested."""
    contexts, logged, asked = [], [], []

    def visit(name, *, width=1440, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: logged.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: logged.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(pages[name].as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert logged == []
    own = [url for url in asked if not url.startswith(("data:", "blob:"))]
    assert all(url.startswith("file://") for url in own)
    assert len(own) == len(contexts)
