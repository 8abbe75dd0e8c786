"""The site in a browser: colours, width on a phone, search, and nothing to complain about."""

import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip(
        "needs a browser: chromium and chromedriver (Debian: chromium, chromium-driver)",
        allow_module_level=True,
    )
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, of eamp[test]")

from selenium.webdriver.chrome.service import Service  # noqa: E402 - the skips above come first
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    "--hide-scrollbars",
)
PATIENCE = 60  # seconds, on a busy machine
PAGES = ("index.html", "tutorials/ten_minutes.html", "api/nn.html", "glossary.html", "scale.html")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Write nothing to stderr."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With the path of the driver, selenium looks for no other; it must send no statistics.
    monkeypatch.setenv("SE_OFFLINE", "true")
    monkeypatch.setenv("SE_AVOID_STATS", "true")
    local = [os.environ.get("NO_PROXY"), "localhost", "127.0.0.1"]
    monkeypatch.setenv("NO_PROXY", ",".join(filter(None, local)))
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def opened(browser: Any, address: str, *, width: int = 1280, dark: bool = False) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(address)


def brightness(browser: Any) -> float:
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    parts = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(map(float, parts)) / 3


def test_pages_follow_the_system_and_fit_a_phone(browser: Any, address: str) -> None:
    for page in PAGES:
        opened(browser, f"{address}/{page}", width=400)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 400, page
        assert brightness(browser) > 200, page
        opened(browser, f"{address}/{page}", dark=True)
        assert brightness(browser) < 80, page
    assert browser.get_log("browser") == []


def test_search_finds_a_class(browser: Any, address: str) -> None:
    opened(browser, f"{address}/index.html")
    browser.find_element(By.CSS_SELECTOR, ".md-search__input").send_keys("EntropyAware")

    def found(b: Any) -> list[str]:
        links = b.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        addresses = [link.get_attribute("href") for link in links]
        return [each for each in addresses if "/api/" in each]

    assert WebDriverWait(browser, PATIENCE).until(found)
    assert browser.get_log("browser") == []
