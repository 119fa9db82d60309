"""
What does the web page cost at a thousand clusters: the daemon, and the browser?

A fleet of 1,000 clusters and 10,000 servers on a panel made by hand, the real HTTP server, and a
real Chromium. Needs both; without a browser there are only the figures of the server.
"""

import contextlib
import importlib.util
import logging
import time
import urllib.request
from typing import Any

import structlog

from bench import measure
from bench.measure import Sizes
from bench.table import Goal, Row
from tests.page import stage
from tests.page.stage import Stage
from tests.real import chromium

FIRST = ("/", "/api/v1/regions", "/api/v1/kinds", "/api/v1/incidents")
"""What the first view asks for, beside files that do not change."""
NOTE_FIRST = """
new MutationObserver(() => {
  if (window.firstData === undefined && document.querySelector(".card")) {
    window.firstData = performance.now();
  }
}).observe(document, {childList: true, subtree: true});
"""
SCROLL = """
async () => {
  const box = document.querySelector(".list .body");
  const took = [];
  let before = await new Promise(requestAnimationFrame);
  for (let n = 1; n <= 180; n += 1) {
    box.scrollTop = (box.scrollHeight * n) / 180;
    const now = await new Promise(requestAnimationFrame);
    took.push(now - before);
    before = now;
  }
  return took.sort((a, b) => a - b);
}
"""


def run(sizes: Sizes) -> list[Row]:
    # stdout is the answer; the server's own lines would stand in it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    quick = sizes is measure.QUICK
    with stage.on(stage.fleet(10, 100) if quick else stage.fleet(1000, 10_000)) as running:
        rows = [_served(running, sizes.rounds)]
        path = chromium.path()
        if path is None or importlib.util.find_spec("playwright") is None:
            measure.progress("without a browser: chromium or playwright is not there")
            return rows
        return [*rows, *_browsed(running, path, sizes.rounds)]


def _served(running: Stage, rounds: int) -> Row:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    spent: list[float] = []
    for _ in range(rounds + 1):
        began = time.process_time()
        for address in FIRST:
            with opener.open(running.url + address, timeout=60) as answer:
                answer.read()
        spent.append((time.process_time() - began) * 1000)
    # The first one also makes what is kept.
    return Row(
        what="all that the first view of 1,000 clusters asks for",
        value=sorted(spent[1:])[len(spent[1:]) // 2],
        unit="ms",
        goal=Goal(most=300),
        note=f"CPU of server and asker; the first time {spent[0]:.0f} ms",
        raw={"ms": spent},
    )


def _browsed(running: Stage, path: str, rounds: int) -> list[Row]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- it need not be there

    shown: list[float] = []
    frames: list[float] = []
    with sync_playwright() as playwright, contextlib.ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        stack.callback(browser.close)
        for _ in range(rounds):
            measure.progress("a browser opens the page")
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.add_init_script(NOTE_FIRST)
            page.goto(running.url)
            page.wait_for_selector(".card")
            shown.append(float(page.evaluate("window.firstData")))
            page.goto(f"{running.url}/#/things?kind=server")
            page.wait_for_selector(".list .body .row")
            # Strings are not evaluated on this page, so nothing can be waited for in it.
            page.locator(".heading", has_not_text="so far").wait_for()
            found: list[Any] = page.evaluate(SCROLL)
            frames += [float(one) for one in found]
            page.close()
    frames.sort()
    return [
        Row(
            what="from opening the page to its first data",
            value=sorted(shown)[len(shown) // 2],
            unit="ms",
            goal=Goal(most=1000),
            raw={"ms": shown},
        ),
        Row(
            what="scrolling 10,000 servers, 95 of 100 frames",
            value=frames[int(len(frames) * 0.95)],
            unit="ms",
            goal=Goal(most=34),
            note=f"the longest {frames[-1]:.0f} ms; a frame at 60 a second is 16.7 ms",
            raw={"ms": frames},
        ),
    ]
