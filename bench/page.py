"""The explorer page in headless Chromium: its size, the time until it can be used, and from a click to new bars.

`python -m bench page alarm` measures some networks only. Needs Chromium.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from bench.networks import network
from bench.tables import Section, at_most, write

NAMES = ("asia", "child", "alarm", "win95pts", "andes")
CLICKS, ROUNDS, OPENINGS = 20, 9, 7
SIZE, READY, FRAME = 500, 1000, 16
PAGE = Path(__file__).parent.parent / "docs" / "bench-page.md"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
INTRO = """`python -m bench page` writes this page. Pages are opened in headless Chromium on 2 cores, 1440 by 900
pixels. A page is ready when all posteriors are drawn: the median of 7 openings. A click takes what the page's thread
works from the event until the new bars are painted: scripts, styles, layout and painting, the median of 9 rounds of 20
clicks. The engine is the part that computes the posteriors of all variables."""
# Presses states one after the other, a frame for each, as a pointer does.
CLICK = """async (clicks) => {
  for (const [i, k] of clicks) {
    const control = document.querySelector(`#map [data-variable="${i}"][data-state="${k}"]`);
    for (const type of ["pointerdown", "pointerup"])
      control.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, pointerId: 1 }));
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done));
  }
}"""
ENGINE = """([count]) => {
  const engine = localEngine(JSON.parse(document.getElementById("model").textContent));
  const start = performance.now();
  for (let k = 0; k < count; k++) engine.ask(explorer.evidence());
  return (performance.now() - start) / count;
}"""


def main(arguments: list[str]) -> None:
    section = Section(
        "Pages",
        f"alarm: at most {SIZE} kB, ready within {READY} ms, {FRAME} ms from a click to all bars redrawn",
        ["network", "variables", "size, kB", "ready after, ms", "click to bars, ms", "of it the engine, ms", "verdict"],
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, BROWSERS)), None)
        if found is None:
            sys.exit("this needs Chromium: none of " + ", ".join(BROWSERS) + " is installed")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for name in arguments or NAMES:
            section.add(name, *measured(browser, name, Path(folder) / f"{name}.html"))
    print(section.text())
    if not arguments:
        write(PAGE, "Benchmark: the explorer page", INTRO, [section])


def measured(browser: Any, name: str, path: Path) -> list[str]:
    """What one network's page takes, and whether that keeps to the bars of alarm."""
    net = network(name)
    net.page(path)
    ready = []
    for _ in range(OPENINGS):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_function("window.explorer && explorer.ready")
        ready.append(page.evaluate("performance.getEntriesByName('ready')[0].startTime"))
        page.close()
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_function("window.explorer && explorer.ready")
    page.evaluate("document.querySelector('#map svg').classList.remove('far-off')")  # boxes with all their bars
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    click = statistics.median(clicked(page, session, len(net), start) for start in range(0, ROUNDS * CLICKS, CLICKS))
    engine = page.evaluate(ENGINE, [CLICKS])
    page.close()
    size, opened = path.stat().st_size / 1000, statistics.median(ready)
    verdict = at_most(max(size / SIZE, opened / READY, click / FRAME), 1.0) if name == "alarm" else ""
    return [str(len(net)), f"{size:.0f}", f"{opened:.0f}", f"{click:.1f}", f"{engine:.2f}", verdict]


def clicked(page: Any, session: Any, variables: int, start: int) -> float:
    """Milliseconds for a click, the mean of some."""
    before = busy(session)
    page.evaluate(CLICK, [[k % variables, 0] for k in range(start, start + CLICKS)])
    return 1000 * (busy(session) - before) / CLICKS


def busy(session: Any) -> float:
    """Seconds that the page's thread has worked so far: scripts, styles, layout and painting."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")
