"""A browser for the pages: Chromium, as the system has it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Closed after the tests of this folder: while it is open, no other test could run an event loop."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("there is no Chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def engine(browser: Any) -> Any:
    """A page that has the engine and nothing else: `engine.evaluate("([model, ...]) => ...", [...])`."""
    folder = Path(__file__).parents[3] / "src/tacit/views/page/web"
    page = browser.new_page()
    page.set_content("<html></html>")
    for name in ("twofold.js", "run.js", "wide.js", "densities.js", "questions.js", "decision.js"):
        page.add_script_tag(path=str(folder / name))
    return page
