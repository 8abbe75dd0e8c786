"""The page of a diagnosis, as text and in a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.nn import GCN

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, rotate
from eamp.diagnostics.charts import drawn_measures
from eamp.report.cures import cures
from eamp.report.diagnosis_page import numbers, write_diagnosis
from headings import jumps


@pytest.fixture(scope="module")
def diagnosed() -> Any:
    torch.manual_seed(0)
    model, data = GCN(32, 16, 32), (features(), grid())
    diagnosis = eamp.diagnose(model, data)
    return diagnosis, cures(diagnosis, model, data)


@pytest.fixture(scope="module")
def page(diagnosed: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    diagnosis, found = diagnosed
    path = tmp_path_factory.mktemp("page") / "diagnosis.html"
    return write_diagnosis(path, diagnosis, subject="a <deep> GCN", cures=found, command="eamp")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").split("<script type=", 1)[0]


def test_the_page_says_verdict_layer_advice_and_what_the_cures_do(
    page: Path, diagnosed: Any
) -> None:
    diagnosis, found = diagnosed
    text = page.read_text(encoding="utf-8")
    assert re.search(r'<h1 id="verdict">Oversmoothing from layer \d+ of 32 on</h1>', text)
    assert "a &lt;deep&gt; GCN" in text
    assert f"marks layer {diagnosis.layer} (convs.{diagnosis.layer - 1}, GCNConv)" in text
    assert text.count("<li>") >= len(diagnosis.advice) + len(found)
    assert all(cure.name in text for cure in found)
    assert text.count('data-figure="layers" role="img"') == len(drawn_measures(diagnosis.table))


def test_further_columns_appear_by_themselves(diagnosed: Any, tmp_path: Path) -> None:
    diagnosis, _ = diagnosed
    more = diagnosis.table.assign(my_measure=range(32), culprit="weights")
    path = write_diagnosis(tmp_path / "a.html", replace(diagnosis, table=more))
    text = path.read_text(encoding="utf-8")
    assert "<h3>my measure</h3>" in text
    assert not jumps(text)
    assert "Before and after" not in text
    table = numbers(more)
    assert table.columns[:3] == ("layer", "name", "type")
    assert table.columns[-1] == "culprit"
    assert table.rows[3][-2:] == ("3", "weights")


def test_a_healthy_model_has_a_page_without_advice(tmp_path: Path) -> None:
    diagnosis = eamp.diagnose(Stack(*(Apply(rotate) for _ in range(3))), (features(), grid()))
    text = write_diagnosis(tmp_path / "b.html", diagnosis).read_text(encoding="utf-8")
    assert '<h1 id="verdict">Healthy</h1>' in text
    assert "What to try" not in text


@pytest.mark.slow
def test_every_chart_is_drawn_in_light_dark_and_on_a_phone(browser: Any, page: Path) -> None:
    browser.get_log("browser")
    for width, dark in ((1280, False), (1280, True), (400, False)):
        browser.open(page, width=width, dark=dark)
        drawn = browser.execute_script(
            "return [...document.querySelectorAll('.chart')].map(c => "
            "[c.querySelectorAll('svg .mark-line path').length, "
            "c.querySelectorAll('svg .mark-rule line').length, "
            "c.querySelector('svg').getBoundingClientRect().right])"
        )
        assert len(drawn) > 10
        assert all(lines >= 1 and rules >= 1 and right <= width for lines, rules, right in drawn)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        brightness = max(map(int, re.findall(r"\d+", colour)))
        assert (brightness < 40) == dark
        opacities = browser.execute_script(
            "return [...document.querySelectorAll('.mark-line path')]"
            ".map(path => path.getAttribute('opacity'))"
        )
        assert set(opacities) <= {"1", None}  # no line has faded
    assert browser.get_log("browser") == []


@pytest.mark.slow
def test_the_page_of_a_monitor_needs_no_script(browser: Any, tmp_path: Path) -> None:
    model = GCN(32, 16, 3)
    with eamp.diagnostics.Monitor(model, every=1, folder=tmp_path) as monitor:
        for _ in range(3):
            model(features(), grid())
            monitor.step()
    browser.get_log("browser")
    browser.open(tmp_path / "monitor.html", width=400, wait=False)
    lines = browser.execute_script("return document.querySelectorAll('polyline').length")
    assert lines == 3 * 7, "no gradients: there was no backward pass"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert browser.get_log("browser") == []
