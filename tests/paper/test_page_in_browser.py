"""The page in a browser: its charts, tooltips, legends, width, theme and network requests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import PATIENCE, started

pytestmark = pytest.mark.slow
pytest.importorskip("selenium", reason="needs selenium, of eamp[test]")

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402 - after the skip
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

# Of the full report: two of Table 1, the variants, Figure 2 and Figure 1 each, and one of Figure 3
# and the thresholds each.
CHARTS = 11


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started(tmp_path_factory.mktemp("profile")) as found:
        yield found


def drawn(browser: Any, mode: str) -> None:
    WebDriverWait(browser.driver, PATIENCE).until(
        lambda b: b.execute_script("return document.documentElement.dataset.drawn") == mode
    )


def opened(browser: Any, page: Path, *, width: int = 1280, dark: bool = False) -> None:
    browser.open(page, width=width, dark=dark)


def background(browser: Any) -> tuple[int, ...]:
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    return tuple(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))


def label_colour(browser: Any) -> str:
    return str(
        browser.execute_script(
            "return document.querySelector('#figure_2 .role-axis-label text').getAttribute('fill')"
        )
    )


def test_every_chart_is_drawn_and_nothing_is_complained_about(browser: Any, report: Path) -> None:
    browser.get_log("browser")
    opened(browser, report)
    charts = browser.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(charts) == CHARTS
    for chart in charts:
        marks = chart.find_elements(
            By.CSS_SELECTOR, "svg .mark-symbol path, svg .mark-line path, svg .mark-rule line"
        )
        assert len(marks) >= 4, chart.get_attribute("id")
        assert chart.find_element(By.CSS_SELECTOR, "svg").size["height"] > 150
    assert browser.get_log("browser") == []


def test_no_request_leaves_the_page(browser: Any, report: Path) -> None:
    browser.get_log("performance")
    opened(browser, report)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    addresses = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert report.as_uri() in addresses
    assert {address.split(":")[0] for address in addresses} <= {"file", "data", "blob"}


def test_pointing_at_a_mark_shows_its_values(browser: Any, report: Path) -> None:
    opened(browser, report)
    shown = {
        "#chart-deep_networks-0": ("network", "test accuracy at lowest validation loss"),
        "#chart-table_1-0": ("model", "highest validation accuracy"),
        "#chart-figure_2-0": ("network", "mean Dirichlet energy"),
        "#chart-figure_3-0": ("layer", "mean Dirichlet energy"),
        "#chart-thresholds-0": ("graph", "λ, measured"),
    }
    for chart, words in shown.items():
        mark = browser.find_elements(By.CSS_SELECTOR, f"{chart} svg .mark-symbol path")[-1]
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
        ActionChains(browser.driver).move_to_element(mark).perform()
        WebDriverWait(browser.driver, PATIENCE).until(
            lambda b: b.find_elements(By.CSS_SELECTOR, "#vg-tooltip-element.visible")
        )
        text = browser.find_element(By.CSS_SELECTOR, "#vg-tooltip-element").text
        row = browser.find_element(By.CSS_SELECTOR, "#vg-tooltip-element tr")
        name, value = (
            row.find_element(By.CSS_SELECTOR, f"td.{part}").rect for part in ("key", "value")
        )
        assert name["y"] == value["y"], "a value stands beside its name"
        assert all(word in text for word in words), (chart, text)
        assert any(sign.isdigit() for sign in text)
        ActionChains(browser.driver).move_to_element(
            browser.find_element(By.CSS_SELECTOR, ".brand")
        ).perform()


def test_the_key_brings_a_line_forward(browser: Any, report: Path) -> None:
    opened(browser, report)
    button = browser.find_element(By.CSS_SELECTOR, '#table_1 .legend button[data-name="PairNorm"]')
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    opacities = (
        "return [...document.querySelectorAll('#chart-table_1-0 .mark-line path')]"
        ".map(p => p.getAttribute('opacity'))"
    )
    WebDriverWait(browser.driver, PATIENCE).until(lambda b: "0.12" in b.execute_script(opacities))
    assert button.get_attribute("aria-pressed") == "true"
    faded = browser.driver.execute_script(opacities).count("0.12")
    other = browser.driver.find_element(By.CSS_SELECTOR, '#table_1 .legend button[data-name="G2"]')
    other.click()
    WebDriverWait(browser.driver, PATIENCE).until(
        lambda b: b.execute_script(opacities).count("0.12") < faded
    )
    assert button.get_attribute("aria-pressed") == "true"  # several lines can be picked


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_scrolls_in_one_direction_only(browser: Any, report: Path, width: int) -> None:
    opened(browser, report, width=width)
    for details in browser.find_elements(By.CSS_SELECTOR, "main details:not(.chart details)"):
        browser.execute_script("arguments[0].open = true", details)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    widest = browser.execute_script(
        "return Math.max(...[...document.querySelectorAll('.chart svg')]"
        ".map(s => s.getBoundingClientRect().right))"
    )
    assert widest <= width


def test_dark_follows_the_system_and_the_switch(browser: Any, report: Path) -> None:
    opened(browser, report)
    light, light_label = background(browser), label_colour(browser)
    opened(browser, report, dark=True)
    dark, dark_label = background(browser), label_colour(browser)
    assert max(dark) < 40 < 200 < min(light)
    assert dark_label != light_label
    browser.find_element(By.ID, "theme").click()
    drawn(browser, "light")
    assert (background(browser), label_colour(browser)) == (light, light_label)
