"""A headless browser that opens pages from files, for tests of what a reader sees."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,900",
)
PATIENCE = 60  # seconds, on a busy machine


class Browser:
    """A driver of Selenium that can open a page in a width and a mode."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def open(
        self, page: Path | str, *, width: int = 1280, dark: bool = False, wait: bool = True
    ) -> None:
        """Open a file or an address; wait until its charts are drawn."""
        from selenium.webdriver.support.ui import WebDriverWait

        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        mode = "dark" if dark else "light"
        scheme = {"name": "prefers-color-scheme", "value": mode}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(page if isinstance(page, str) else page.as_uri())
        if wait:
            drawn = "return document.documentElement.dataset.drawn"
            WebDriverWait(self.driver, PATIENCE).until(lambda b: b.execute_script(drawn) == mode)


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """Start a browser, or skip the test where there is none."""
    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver_path is None:
        pytest.skip(
            "needs a browser: chromium and chromedriver (Debian: chromium, chromium-driver)"
        )
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, of eamp[test]")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # With the path of the driver, selenium looks for no other; it must send no statistics.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SE_OFFLINE", "true")
        patch.setenv("SE_AVOID_STATS", "true")
        local = [os.environ.get("NO_PROXY"), "localhost", "127.0.0.1"]
        patch.setenv("NO_PROXY", ",".join(filter(None, local)))
        driver = webdriver.Chrome(options=options, service=Service(driver_path))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
