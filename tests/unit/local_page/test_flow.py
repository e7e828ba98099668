"""The page in a real browser and its real server: draft, mistake, check, run, stop, continue, report, and the end."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from helpers.small_analysis import ANALYSIS, PEDIGREE, PHENOTYPES, replaced, with_proper_priors, write_files
from helpers.support import ROOT

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
DRIVER = shutil.which("chromedriver")
pytest.importorskip("werkzeug", reason="needs werkzeug: pip install werkzeug")
POSIX = pytest.mark.skipif(os.name != "posix", reason="sends signals")

# A run that works until it is stopped; of few animals, so that a sweep is short.
LONG = with_proper_priors(replaced(ANALYSIS, "method: blup", "chains: 1, burn_in: 20, samples: 4000000, thin: 1000"))


# Ctrl-C is ignored by what a shell has started in the background, these tests perhaps.
WITH_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from mmgibbs.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Server:
    """`mmgibbs open FOLDER --no-browser` in a process of its own."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WITH_CTRL_C, "open", str(folder), "--no-browser"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder.parent,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self.address = self.process.stdout.readline().strip()

    def end(self):
        """What it says once Ctrl-C comes; its exit code is 0."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=30)
        assert self.process.returncode == 0 and "Traceback" not in said, said
        return said


@pytest.fixture
def served(tmp_path):
    started = []

    def serve(folder):
        started.append(Server(folder))
        return started[-1]

    yield serve
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


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
    yield driver
    driver.quit()


def until(condition, seconds=60):
    """The value of a condition once it holds; the page may be loading meanwhile."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := condition():
                return found
        except Exception:  # of the driver: an element of the page before
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, "the page has not come to what was waited for"
        time.sleep(0.1)


def one(browser, selector):
    return next(iter(browser.find_elements("css selector", selector)), None)


def button(browser, words):
    return next((b for b in browser.find_elements("css selector", "button") if b.text == words), None)


def write(browser, text):
    browser.execute_script("arguments[0].value = arguments[1]", one(browser, "#text"), text)


def overflows(browser, width=390):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = browser.execute_script("return document.documentElement.scrollWidth") > width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return wide


@POSIX
def test_from_tables_to_the_report(browser, served, tmp_path):
    folder = tmp_path / "herd"
    folder.mkdir()
    (folder / "phenotypes.csv").write_text(PHENOTYPES)
    (folder / "pedigree.csv").write_text(PEDIGREE)
    # Were it imported, the commands would say so.
    (folder / "polars.py").write_text("raise SystemExit('code of the folder has run')\n")
    server = served(folder)
    browser.get(server.address)
    assert not overflows(browser) and all(browser.execute_script(
        "return [...document.querySelectorAll('input, select, textarea')].map((f) => f.labels.length)"
    ))  # fmt: skip

    button(browser, "Draft").click()
    drafted = until(lambda: one(browser, "#text")).get_attribute("value")
    assert drafted == (folder / "analysis.yaml").read_text() and "# " in drafted and "traits:" in drafted
    assert "mmgibbs init phenotypes.csv --pedigree=pedigree.csv" in one(browser, "main").text and not overflows(browser)

    write(browser, drafted + "nonsense: 1\n")
    button(browser, "Save, check and run").click()
    assert "nonsense: unknown key" in until(lambda: one(browser, "pre.failed")).text
    assert not list(folder.glob("run*"))  # what check refuses does not run

    write(browser, LONG)
    button(browser, "Save, check and run").click()
    until(lambda: one(browser, "progress"))
    assert "of 4,000,020" in one(browser, "#progress").text and not overflows(browser)
    until(lambda: re.match(r"\d+ % ", browser.title))
    live = until(lambda: browser.find_element("link text", "progress with traces"))
    page = browser.current_window_handle
    live.click()
    until(lambda: len(browser.window_handles) == 2)
    browser.switch_to.window(next(h for h in browser.window_handles if h != page))
    until(lambda: "Running" in one(browser, "body").text)
    for _ in range(2):  # of another origin, without the address of the page, and it can load itself again
        assert browser.execute_script("return [self.origin, document.referrer]") == ["null", ""]
        failed = "return fetch(arguments[0]).then(() => 'answered', () => 'refused')"
        assert browser.execute_script(failed, server.address) == "refused"
        browser.execute_script("location.reload()")
        time.sleep(0.5)
        until(lambda: "Running" in one(browser, "body").text)
    browser.get_log("browser")  # of what was refused above
    browser.close()
    browser.switch_to.window(page)

    button(browser, "Stop").click()
    resume = until(lambda: button(browser, "Continue the run"))
    assert "stopped by SIGTERM" in one(browser, "#printed").text and list((folder / "run/checkpoint").iterdir())
    resume.click()
    until(lambda: "continuing from checkpoints" in one(browser, "#printed").text)
    assert "mmgibbs run analysis.yaml --resume" in one(browser, "#progress").text
    button(browser, "Stop").click()
    until(lambda: button(browser, "Continue the run"))

    browser.find_element("link text", "The analysis").click()
    write(until(lambda: one(browser, "#text")) and browser, ANALYSIS)
    browser.find_element("css selector", "#earlier option[value=overwrite]").click()
    button(browser, "Save, check and run").click()
    report = until(lambda: browser.find_element("link text", "Open the report"))
    assert browser.get_log("browser") == []
    report.click()
    browser.switch_to.window(until(lambda: [h for h in browser.window_handles if h != page])[0])
    until(lambda: browser.title == "calves · mmgibbs")
    assert browser.get_log("browser") == [] and one(browser, "table .bar") is not None
    browser.close()
    browser.switch_to.window(page)
    assert server.end().count("\n") == 3  # nothing goes on


@POSIX
def test_another_site_cannot_send_a_form(browser, served, tmp_path):
    """A hostile page that has even learned the token."""
    folder = tmp_path / "herd"
    folder.mkdir()
    write_files(folder)
    server = served(folder)
    hostile = tmp_path / "hostile.html"
    hostile.write_text(
        f'<form method="post" action="{server.address}analysis"><input name="file" value="analysis.yaml">'
        '<input name="text" value="hostile"><input name="action" value="save"></form>'
        f'<iframe src="{server.address}"></iframe>'
    )
    before = (folder / "analysis.yaml").read_bytes()
    browser.get(hostile.as_uri())
    browser.execute_script("document.forms[0].submit()")
    until(lambda: "403 Forbidden" in one(browser, "body").text)
    assert (folder / "analysis.yaml").read_bytes() == before
    server.end()


@POSIX
def test_a_run_goes_on_when_the_page_ends(served, tmp_path):
    folder = tmp_path / "herd"
    folder.mkdir()
    write_files(folder)
    (folder / "analysis.yaml").write_text(LONG)
    server = served(folder)
    with urlopen(f"{server.address}analysis?file=analysis.yaml") as answer:
        shown = re.search(r'name="shown" value="(\w+)"', answer.read().decode())[1]
    form = f"file=analysis.yaml&shown={shown}&action=run&earlier=&text="
    urlopen(f"{server.address}analysis", data=(form + quote(LONG)).encode()).close()
    log = folder / "run" / "run.log"
    until(log.exists)
    said = server.end()
    number = int(re.search(r"goes on as process (\d+): mmgibbs run analysis.yaml\n", said)[1])
    assert f"stop it with: kill {number}" in said and str(log) in said
    os.kill(number, 0)
    os.kill(number, signal.SIGTERM)
    until(lambda: "stopped" in log.read_text())
