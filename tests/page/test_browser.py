"""The page in a real Chromium: what a person sees, does, and is told."""

import re
from collections.abc import Generator

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: make test-real does it")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from fleetd.plan.policy import Pause
from tests.page import stage
from tests.page.stage import Stage
from tests.surface import panels
from topology.resource import Ref

pytestmark = pytest.mark.real

VIEWS = {
    "regions": ("#/", "Regions"),
    "region": ("#/region/eu-1?box=cluster/hv", "eu-1"),
    "thing": ("#/thing/cluster/hv", "cluster/hv"),
    "plans": ("#/plan", "Plan"),
    "plan": ("#/plan?region=eu-1", "Plan of eu-1"),
    "incidents": ("#/incidents", "Incidents"),
    "things": ("#/things", "Things"),
    "events": ("#/events", "Events"),
    "credentials": ("#/credentials", "Credentials"),
    "endings": ("#/credentials?by=end", "Credentials"),
    "capacity": ("#/capacity", "Capacity"),
}


def seen(page: Page, where: str, title: str) -> None:
    page.goto(where)
    expect(page.get_by_role("heading", level=1)).to_contain_text(title)
    expect(page.locator(".pending")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_can_be_read_by_everybody(
    small: Stage, page: Page, view: str, theme: str
) -> None:
    """axe finds nothing to complain about: names, roles, order, contrast, by day and by night."""
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    where, title = VIEWS[view]
    seen(page, f"{small.url}/{where}", title)
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType] -- it has no types
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("view", VIEWS)
def test_a_small_screen_scrolls_in_one_direction(small: Stage, page: Page, view: str) -> None:
    """Nothing but tables and the picture, which scroll by themselves, is wider than a telephone."""
    page.set_viewport_size({"width": 400, "height": 800})
    where, title = VIEWS[view]
    seen(page, f"{small.url}/{where}", title)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_anything_is_found_with_the_keyboard(small: Stage, page: Page) -> None:
    """A slash, a part of the name, Enter."""
    seen(page, f"{small.url}/", "Regions")
    page.keyboard.press("/")
    page.keyboard.type("comp")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("serverpool/compute")
    assert page.url.endswith("#/thing/serverpool/compute")


def test_keys_lead_everywhere_and_the_help_says_which(small: Stage, page: Page) -> None:
    """`g` and a letter go to a view; `?` shows them; Escape closes and gives the focus back."""
    seen(page, f"{small.url}/", "Regions")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("find anything by name")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for key, title in (("p", "Plan"), ("e", "Events"), ("c", "Credentials"), ("r", "Regions")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)


def test_what_is_chosen_is_in_the_address(small: Stage, page: Page, browser: Browser) -> None:
    """Who opens the link sees the same, and back leads back."""
    seen(page, f"{small.url}/#/region/eu-1", "eu-1")
    page.get_by_role("button", name=re.compile("hv")).click()
    expect(page.get_by_role("complementary")).to_contain_text("cluster/hv")
    other = browser.new_page()
    other.goto(page.url)
    expect(other.get_by_role("complementary")).to_contain_text("cluster/hv")
    other.close()
    page.get_by_role("complementary").get_by_role("link", name="cluster/hv").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cluster/hv")
    page.go_back()
    expect(page.get_by_role("complementary")).to_contain_text("cluster/hv")


def test_the_thing_says_why_first(small: Stage, page: Page) -> None:
    """The paragraph of `fleetctl why`, with every name in it a link."""
    seen(page, f"{small.url}/#/thing/flux/hv", "flux/hv")
    why = page.locator(".why")
    expect(why).to_contain_text("cluster/hv")
    why.get_by_role("link", name="cluster/hv").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cluster/hv")


def test_a_step_is_approved(small: Stage, page: Page) -> None:
    """What it destroys is told beside the button, and the daemon hears the answer."""
    seen(page, f"{small.url}/#/plan?region=eu-1", "Plan of eu-1")
    held = page.locator("section", has_text="held: needs approval")
    expect(held).to_contain_text("destroys")
    held.get_by_role("button", name="Approve").click()
    expect(held).to_contain_text("Approved")
    assert small.desk.decided[stage.APPROVAL].startswith("approve ")


def test_retiring_shows_what_goes_and_asks_for_the_name(small: Stage, page: Page) -> None:
    """Nothing is retired by one click, nor by two."""
    seen(page, f"{small.url}/#/thing/cluster/hv", "cluster/hv")
    page.get_by_role("button", name="Retire").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Show what goes").click()
    expect(dialog.get_by_role("listitem")).to_contain_text("cluster/hv")
    last = dialog.get_by_role("button", name="Retire", exact=True)
    expect(last).to_be_disabled()
    assert small.desk.retired == []
    dialog.get_by_role("textbox").fill("hv")
    last.click()
    expect(dialog).to_have_count(0)
    assert small.desk.retired == [panels.CLUSTER]


def test_a_refusal_is_told_in_its_own_words(
    small: Stage, page: Page, complaints: list[str]
) -> None:
    """What the daemon declines stays open with its sentence."""
    seen(page, f"{small.url}/#/thing/cluster/hv", "cluster/hv")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Yes").click()
    expect(page.get_by_role("alert")).to_contain_text("there is no pause on cluster/hv")
    page.keyboard.press("Escape")
    complaints[:] = [one for one in complaints if "409 (Conflict)" not in one]


def test_words_from_outside_stay_words(small: Stage, page: Page) -> None:
    """Markup in a message is shown as it is, and runs nowhere."""
    seen(page, f"{small.url}/#/plan?region=eu-1", "Plan of eu-1")
    expect(page.get_by_text("<b>bold</b>", exact=False)).to_be_visible()
    assert page.title() != "owned"


def test_events_arrive_by_themselves(small: Stage, page: Page) -> None:
    """Without a reload, once each, newest first."""
    seen(page, f"{small.url}/#/events", "Events")
    expect(page.locator("tbody tr")).to_have_count(5)
    small.happens(Ref("cluster", "hv"), "a new one")
    expect(page.locator("tbody tr")).to_have_count(6)
    expect(page.locator("tbody tr").first).to_contain_text("a new one")


def test_a_daemon_that_is_away_is_told_and_what_was_seen_stays(
    page: Page, complaints: list[str]
) -> None:
    """The last picture does not vanish because a connection did."""
    with stage.on(stage.small()) as running:
        seen(page, f"{running.url}/#/", "Regions")
        expect(page.locator(".card")).to_have_count(1)
    expect(page.get_by_text("cut off")).to_be_visible()
    expect(page.locator(".card")).to_have_count(1)
    complaints[:] = [one for one in complaints if "net::ERR_" not in one]


def test_a_page_that_nobody_looks_at_asks_for_nothing(small: Stage, page: Page) -> None:
    """So it does not keep a session; who comes back sees what is new."""
    page.clock.install()
    seen(page, f"{small.url}/#/", "Regions")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => window.away ?? true})")
    for _ in range(4):
        page.clock.run_for(40_000)
    assert [one for one in asked if not one.endswith("/watch")] == []
    with page.expect_request("**/api/v1/regions"):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
        page.clock.run_for(2_000)


def test_an_address_that_was_cut_off_leads_to_a_page(small: Stage, page: Page) -> None:
    """Half a sign at the end of a link that somebody copied breaks nothing."""
    seen(page, f"{small.url}/#/%E0%A4", "There is nothing here")
    page.get_by_role("link", name="All regions").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Regions")


@pytest.fixture(scope="module")
def fleet() -> Generator[Stage]:
    with stage.on(stage.fleet(1000, 10_000)) as running:
        yield running


def test_a_thousand_clusters_are_a_screenful(fleet: Stage, page: Page) -> None:
    """A hundred regions as cards, those with trouble first, narrowed by a name."""
    seen(page, f"{fleet.url}/#/", "Regions")
    expect(page.locator(".card")).to_have_count(100)
    page.get_by_role("searchbox").fill("r04")
    expect(page.locator(".card")).to_have_count(10)


def test_ten_thousand_servers_are_listed_a_screen_at_a_time(fleet: Stage, page: Page) -> None:
    """All of them can be reached, and only what is in view is drawn."""
    seen(page, f"{fleet.url}/#/things?kind=server", "Things")
    expect(page.get_by_role("status").filter(has_text="10,000 things")).to_be_visible()
    rows = page.locator(".list .body .row")
    assert rows.count() < 100
    page.locator(".list .body").focus()
    page.keyboard.press("End")
    expect(page.locator('[aria-rowindex="10000"]')).to_be_visible()
    assert rows.count() < 100


def paused(stage: Stage, scope: str) -> None:
    pause = Pause(scope=scope, who="ada", why="network change in rack r2", since=panels.NOW)
    stage.call(lambda: stage.panel.resting.update({scope: pause}))


@pytest.mark.parametrize(
    "view", ["", "region/eu-1", "plan?region=eu-1", "thing/serverpool/compute"]
)
def test_a_pause_is_seen_on_every_view(small: Stage, page: Page, view: str) -> None:
    """Also where all is Ready: who, and why."""
    paused(small, "region:eu-1")
    page.goto(f"{small.url}/#/{view}")
    expect(page.get_by_text("network change in rack r2").first).to_be_visible()
    expect(page.get_by_text("ada").first).to_be_visible()


def test_what_to_do_is_told_once(small: Stage, page: Page) -> None:
    """A paragraph ends with it; on the page it stands by itself."""
    page.goto(f"{small.url}/#/thing/serverpool/compute")
    expect(page.locator(".why")).to_contain_text("fleetctl approve")
    assert page.locator(".why").inner_text().count("fleetctl approve") == 1


def test_keys_lead_on_at_once_after_a_box_was_closed(small: Stage, page: Page) -> None:
    """The page asks itself whether a box is open, not what a view remembers; and while one is open
    its keys lead nowhere."""
    page.goto(f"{small.url}/#/thing/cluster/hv")
    page.get_by_role("button", name="Resume").click()
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page).to_have_url(f"{small.url}/#/thing/cluster/hv")
    page.keyboard.press("Escape")
    for key in ("?", "Escape", "g", "e"):
        page.keyboard.press(key)
    expect(page).to_have_url(f"{small.url}/#/events")


def test_no_word_is_torn_on_a_phone(small: Stage, page: Page) -> None:
    """In the table of conditions each word stands in one line, and nothing leaves the screen."""
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(f"{small.url}/#/thing/cluster/hv")
    rows = page.locator(".conditions tr").first
    heights = rows.locator("th, td:nth-child(2), td:nth-child(3)").evaluate_all(
        "all => all.map((one) => one.getClientRects()[0].height)"
    )
    assert len(set(heights)) == 1
    assert max(heights) < 40


def test_every_view_can_be_reached_on_a_phone(small: Stage, page: Page) -> None:
    """Neither the views nor those of a region lie beyond the edge of the screen."""
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(f"{small.url}/#/region/eu-1")
    expect(page.get_by_role("link", name="Things").first).to_be_visible()
    ends = page.locator(".side a, .tabs a").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().right)"
    )
    assert len(ends) > 10
    assert max(ends) <= 375
