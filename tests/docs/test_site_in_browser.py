"""The site in a browser: colours, width on a phone, search, and nothing to complain about."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browser import PATIENCE, started

pytestmark = pytest.mark.slow
pytest.importorskip("selenium", reason="needs selenium, of eamp[test]")

from selenium.webdriver.common.by import By  # noqa: E402 - after the skip
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

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
def browser(tmp_path: Path) -> Iterator[Any]:
    with started(tmp_path) as found:
        yield found


def brightness(browser: Any) -> float:
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    parts = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(map(float, parts)) / 3


def test_pages_follow_the_system_and_fit_a_phone(browser: Any, address: str) -> None:
    for page in PAGES:
        browser.open(f"{address}/{page}", width=400, wait=False)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 400, page
        assert brightness(browser) > 200, page
        browser.open(f"{address}/{page}", dark=True, wait=False)
        assert brightness(browser) < 80, page
    assert browser.get_log("browser") == []


def test_search_finds_a_class(browser: Any, address: str) -> None:
    browser.open(f"{address}/index.html", wait=False)
    browser.find_element(By.CSS_SELECTOR, ".md-search__input").send_keys("EntropyAware")

    def found(b: Any) -> list[str]:
        links = b.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        addresses = [link.get_attribute("href") for link in links]
        return [each for each in addresses if "/api/" in each]

    assert WebDriverWait(browser.driver, PATIENCE).until(found)
    assert browser.get_log("browser") == []
