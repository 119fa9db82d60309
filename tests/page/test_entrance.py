"""Who comes to the page in a real Chromium: strangers, people who log in at a real issuer."""

from collections.abc import Generator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: make test-real does it")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect

from fleetd.clock import SystemClock
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.access.tls import Tls
from tests.page import stage
from tests.page.stage import APPROVAL, Stage
from tests.real import issuer
from tests.real.certs import Authority
from tests.real.process import free_ports
from tests.real.test_login import rules
from tests.surface import panels
from tests.surface.test_access import NOBODY, entry, file

pytestmark = pytest.mark.real


@pytest.fixture
def guarded(tmp_path: Path) -> Generator[Stage]:
    """A page that people log in to."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with issuer.running(tmp_path, url) as real:
        door = GuardedDoor(rules(tmp_path, real.url, url), NOBODY, SystemClock())
        with stage.on(stage.small(), port=port, door=door) as running:
            yield running


def refused_only(complaints: list[str]) -> None:
    """The browser itself complains of every 401, and it was provoked."""
    complaints[:] = [one for one in complaints if "status of 401" not in one]


def readable(page: Page) -> None:
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType] -- it has no types
    assert found.violations_count == 0, found.generate_report()


def test_a_person_logs_in_approves_and_leaves(
    guarded: Stage, page: Page, complaints: list[str]
) -> None:
    """From a link into the page over the issuer back to the same place, as somebody who may
    approve; then out of both, and the next one is asked again. Nothing secret is left in the
    address, and no script can read the cookie."""
    asked: list[str] = []

    def sent(request: Request) -> None:
        asked.append(request.url)

    page.on("request", sent)
    page.goto(f"{guarded.url}/#/plan?region=eu-1")
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    readable(page)
    refused_only(complaints)

    page.get_by_role("link", name="Log in").click()
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Log in").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("Plan of eu-1")
    assert page.url == f"{guarded.url}/#/plan?region=eu-1"
    expect(page.locator(".me")).to_contain_text("ada operator")
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    readable(page)
    assert page.evaluate("document.cookie") == ""

    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved.")).to_be_visible()
    assert guarded.desk.decided == {APPROVAL: "approve ada"}

    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    assert page.url == f"{guarded.url}/"
    assert page.context.cookies(guarded.url) == []
    page.get_by_role("link", name="Log in").click()
    expect(page.get_by_label("Name")).to_be_visible()
    refused_only(complaints)
    assert all(url.startswith("http://127.0.0.1:") for url in asked)


def test_a_session_that_ends_shows_the_entrance(
    guarded: Stage, page: Page, complaints: list[str]
) -> None:
    """The page that lies open says so by itself, when it is next told no."""
    page.goto(guarded.url)
    page.get_by_role("link", name="Log in").click()
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Regions")
    expect(page.locator(".connection")).to_have_text("live")
    page.context.clear_cookies()
    guarded.happens(panels.CLUSTER, "something to ask about")
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    refused_only(complaints)


def test_a_browser_keeps_the_cookie_of_https(browser: Browser, tmp_path: Path) -> None:
    """The one that only this host can set, which browsers take over https alone; and who comes by
    a link from elsewhere is logged in although other sites cannot send it."""
    (port,) = free_ports(1)
    url, pair = f"https://127.0.0.1:{port}", Authority(tmp_path, "ca").server("fleetd")
    tls = Tls(pair.certificate, pair.key, None).context
    with (
        issuer.running(tmp_path, url) as real,
        stage.on(
            stage.small(),
            port=port,
            door=GuardedDoor(rules(tmp_path, real.url, url), NOBODY, SystemClock()),
            tls=tls,
        ),
    ):
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(url)
        page.get_by_role("link", name="Log in").click()
        page.get_by_label("Name").fill("ada")
        page.get_by_role("button", name="Log in").click()
        expect(page.locator(".me")).to_contain_text("ada operator")
        # Cookies know no ports, so those of the issuer are of the same host.
        (kept,) = (one for one in context.cookies(url) if "fleetd" in one.get("name", ""))
        told = [kept.get(name) for name in ("name", "secure", "httpOnly", "sameSite", "path")]
        assert told == ["__Host-fleetd", True, True, "Strict", "/"]
        page.goto(f'data:text/html,<a href="{url}/%23/capacity">from elsewhere</a>')
        page.get_by_role("link").click()
        expect(page.locator(".me")).to_contain_text("ada operator")
        context.close()


def test_where_nobody_logs_in_with_a_browser(
    page: Page, complaints: list[str], tmp_path: Path
) -> None:
    """The page says that, and what to do instead; it offers no way that leads nowhere."""
    door = GuardedDoor(file(tmp_path, entry()), NOBODY, SystemClock())
    with stage.on(panels.small(), door=door) as running:
        page.goto(running.url)
        expect(page.get_by_text("Nobody can log in with a browser here.")).to_be_visible()
        expect(page.get_by_role("link")).to_have_count(0)
        readable(page)
    refused_only(complaints)
