"""The pages in a real browser, started once: no errors, tables sort, searches filter, plots speak."""

import shutil
import time

import pytest
from helpers.finished_run import draws, write_run
from helpers.genomic_run import write_genomic_run

from mmgibbs.posterior.summary import summary_table
from mmgibbs.report.make import make_report
from mmgibbs.report.running import ChainProgress, Running, write_running
from mmgibbs.results.tables import summary_frame

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
DRIVER = shutil.which("chromedriver")
ANIMALS = "direct, birth: the 20 highest breeding values"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, which is not here")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Network.enable", {})
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    first, second = write_run(folder / "first"), write_run(folder / "second", mixed=False, seed=7)
    genomic = make_report([write_genomic_run(folder / "genomic")])
    comparison = make_report([first, second], folder / "comparison.html")
    return {"report": make_report([first]), "comparison": comparison, "genomic": genomic, "running": running(folder)}


def running(folder):
    """The page of a run that has not ended."""
    drawn = draws()
    chains = [ChainProgress(f"chain {c + 1}", 300 * c, 1000) for c in range(3)]
    table = summary_frame(summary_table(drawn))
    facts = Running("calves", "2026-01-02 03:04:05", 200, chains, "0:12:30 left", drawn, table)
    return write_running(facts, folder / "running.html")


@pytest.fixture
def report(browser, pages):
    browser.get(pages["report"].as_uri())
    # On a busy machine the driver may return while the browser is still reading the page.
    while browser.execute_script("return document.readyState") != "complete":
        time.sleep(0.05)
    return browser


def words(element) -> str:
    """Of the document itself: the text that is drawn may come later, and then it is empty."""
    return element.get_attribute("textContent").strip()


def table(browser, caption):
    tables = browser.find_elements("css selector", "table")
    return next(t for t in tables if words(t.find_element("css selector", "caption")) == caption)


def column(browser, found, head):
    """Cells of the rows that are shown."""
    script = """
      const [table, head] = arguments;
      const column = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.trim() === head);
      const cells = [...table.tBodies[0].rows].filter((r) => r.offsetParent !== null).map((r) => r.cells[column]);
      return cells.map((c) => c.dataset.value ?? c.textContent);
    """
    return browser.execute_script(script, found, head)


def heading(found, text):
    return next(h for h in found.find_elements("css selector", "thead th") if words(h) == text)


@pytest.mark.parametrize("name", ["report", "comparison", "genomic", "running"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_error_is_logged_and_nothing_overflows(browser, pages, name, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(pages[name].as_uri())
    assert browser.get_log("browser") == []
    for width in (1280, 360):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}[scheme]
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith('data:'))"
        )
        == []
    )


def test_tables_sort_by_their_headings(report):
    found = table(report, ANIMALS)
    values = [float(v) for v in column(report, found, "Breeding value")]
    head = heading(found, "Reliability")
    assert head.get_attribute("aria-sort") is None
    head.find_element("css selector", "button").click()  # numbers: the largest first
    reliability = [float(v) for v in column(report, found, "Reliability")]
    assert reliability == sorted(reliability, reverse=True) and len(set(reliability)) > 5
    assert head.get_attribute("aria-sort") == "descending"
    report.execute_script("arguments[0].focus()", head.find_element("css selector", "button"))
    report.switch_to.active_element.send_keys("\ue007")  # Enter: by keyboard as by mouse
    assert [float(v) for v in column(report, found, "Reliability")] == sorted(reliability)
    assert head.get_attribute("aria-sort") == "ascending"
    name = heading(found, "Animal")
    name.find_element("css selector", "button").click()
    animals = column(report, found, "Animal")
    assert animals == sorted(animals) and name.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") is None
    heading(found, "Rank").find_element("css selector", "button").click()
    heading(found, "Rank").find_element("css selector", "button").click()
    assert [float(v) for v in column(report, found, "Breeding value")] == values
    bar = heading(found, "95\u00a0% interval")
    assert bar.find_elements("css selector", "button") == []
    found = table(report, "herd")
    for _ in range(2):
        heading(found, "High").find_element("css selector", "button").click()
        assert column(report, found, "High")[-2:] == ["", ""]


def test_a_search_leaves_the_rows_with_all_words(report):
    found = table(report, ANIMALS)
    animals = column(report, found, "Animal")
    field = report.find_element("css selector", f'input[aria-label="Search: {ANIMALS}"]')
    field.send_keys(animals[3].upper())
    assert animals[3] in column(report, found, "Animal") and len(column(report, found, "Animal")) < len(animals)
    status = report.find_element("css selector", "[role=status]")
    assert status.text.endswith(f"of {len(animals)} rows")
    field.send_keys(" nobody")
    assert column(report, found, "Animal") == [] and status.text == f"0 of {len(animals)} rows"
    field.clear()
    field.send_keys(" ")
    assert column(report, found, "Animal") == animals and status.text == ""


def test_on_paper_everything_is_open(report):
    closed = "return document.querySelectorAll('details:not([open])').length"
    before = report.execute_script(closed)
    report.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert before > 0 and report.execute_script(closed) == 0
    report.execute_script("dispatchEvent(new Event('afterprint'))")
    assert report.execute_script(closed) == before
