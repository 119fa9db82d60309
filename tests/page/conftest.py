"""One Chromium for all tests of the page, a new page for each; no complaint goes unseen."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from tests.page import stage
from tests.page.stage import Stage
from tests.real import chromium

if TYPE_CHECKING:  # `make test` does without a browser
    from playwright.sync_api import Browser, ConsoleMessage, Page


@pytest.fixture(scope="module")  # while it is driven, nothing else in this process has a loop
def browser() -> "Generator[Browser]":
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- see above

    path = chromium.need()
    with sync_playwright() as playwright:
        # Without its own sandbox, because in a container root has none; it sees only our pages.
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def small() -> Generator[Stage]:
    with stage.on(stage.small()) as running:
        yield running


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console heard; a test takes out what it provoked."""
    return []


@pytest.fixture
def page(browser: "Browser", complaints: list[str]) -> "Generator[Page]":
    """Fails the test if the page complained, whatever else was looked at."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(10_000)

    def heard(message: "ConsoleMessage") -> None:
        if message.type in {"error", "warning"}:
            complaints.append(f"{message.type}: {message.text}")

    opened.on("console", heard)
    opened.on("pageerror", lambda error: complaints.append(f"thrown: {error}"))
    yield opened
    context.close()
    assert complaints == []
