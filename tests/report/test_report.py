from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp.report import comparison
from ctxexp.report import page as report
from tests.browser import headless, wait_until
from tests.composed import registry_of
from tests.sample_results import results, with_value

PAPER_MEASURES = ("self_similarity", "anisotropy", "intra_sentence_similarity", "max_explainable_variance")

NASTY = '<b>"tiny"</b> & </script><script>alert(1)</script> {{ data }}'


class Tags(HTMLParser):
    """Every tag with its attributes; text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = []
        self.text = ""
        self.inside = ""
        self.scripts = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.text += data


def runs() -> list[tuple[str, Any]]:
    bert = with_value(results("bert", 5), "self_similarity", "raw", 1, np.nan)
    return [("bert", bert), ("elmo", results("elmo", 3, seed=2)), (NASTY, results(NASTY, 1, seed=3))]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "folder" / "report.html"
    return report.write_report(runs(), path, published=True)


def test_the_page_fetches_nothing(page: Path) -> None:
    tags = Tags(page.read_text(encoding="utf-8"))
    assert all(not {"src", "action", "data", "poster"} & set(attrs) for _, attrs in tags.tags)
    places = {attrs["id"] for _, attrs in tags.tags if "id" in attrs}
    assert {str(attrs["href"])[1:] for _, attrs in tags.tags if "href" in attrs} <= places  # the jump list alone
    assert {"link", "img", "iframe", "object", "base"}.isdisjoint(tag for tag, _ in tags.tags)
    policy = next(a["content"] for t, a in tags.tags if t == "meta" and a.get("http-equiv"))
    assert "default-src 'none'" in policy  # even plotly's own code cannot reach out
    assert "http" not in policy
    plotly, _data, own = tags.scripts
    assert b"plotly.js (basic" in gzip.decompress(base64.b64decode(plotly))
    assert page.stat().st_size < 2e6
    assert "http" not in own
    css = re.search(r"<style>(.*?)</style>", page.read_text(encoding="utf-8"), re.S)
    assert "url(" not in css[1]


def test_labels_and_titles_come_out_as_text(page: Path) -> None:
    raw = page.read_text(encoding="utf-8")
    tags = Tags(raw)
    assert len(tags.scripts) == 3  # none was smuggled in
    assert "b" not in {tag for tag, _ in tags.tags}
    assert "i" not in {tag for tag, _ in tags.tags}
    assert NASTY in tags.text
    assert [m["label"] for m in json.loads(tags.scripts[1])["models"]] == ["bert", "elmo", NASTY]


def test_the_page_holds_every_curve_and_a_switch(page: Path) -> None:
    data = json.loads(Tags(page.read_text(encoding="utf-8")).scripts[1])
    charts = {chart["title"]: chart["panels"] for chart in data["charts"]}
    assert list(charts)[:2] == ["Self-similarity of words", "Anisotropy"]  # the headline first
    assert [chart["title"] for chart in data["charts"] if not chart["headline"]] == ["Length of word vectors"]
    views = charts["Self-similarity of words"][0]["views"]
    for view, statistic in (("", "raw"), ("raw", "raw"), ("baseline", "baseline")):
        lines = [line for line in views[view]["lines"] if not line["published"]]
        for (label, run), line in zip(runs(), lines, strict=True):
            assert line["label"] == label
            expected = run.by_name[f"self_similarity/{statistic}"]
            np.testing.assert_array_equal(np.array(line["y"], dtype=float), expected)
    assert views[""]["lines"][0]["y"][1] is None
    assert [panel["name"] for panel in charts["Maximum explainable variance"]] == ["plain", "released"]
    variance = [panel["views"][""] for panel in charts["Maximum explainable variance"]]
    assert data["published"]
    labels = {line["label"] for view in variance for line in view["lines"]}
    assert {"bert, published", "elmo, published"} <= labels


def test_runs_are_linked_only_where_a_sink_shows_them(tmp_path: Path) -> None:
    links = {"bert": "http://127.0.0.1:5000/#/experiments/1/runs/2", "elmo": "", NASTY: "javascript:alert(1)"}
    page = report.write_report(runs(), tmp_path / "report.html", links=links).read_text(encoding="utf-8")
    hrefs = [attrs["href"] for tag, attrs in Tags(page).tags if tag == "a" and not str(attrs["href"]).startswith("#")]
    assert hrefs == ["http://127.0.0.1:5000/#/experiments/1/runs/2"]


def test_summarise_writes_the_figures_the_page_and_every_value(tmp_path: Path) -> None:
    few = {p.name for p in comparison.write_summary(runs(), tmp_path / "summary", registry_of())}
    assert {"overview.svg", "self_similarity.svg", "word_norm.svg", "report.html", "comparison.csv"} <= few
    assert not [name for name in few if name.endswith(".png")]
    paths = comparison.write_summary(runs(), tmp_path / "summary", registry_of(), pictures=True)
    assert all(p.stat().st_size > 0 for p in paths)
    assert {"overview.png", "self_similarity.png", *few} <= {p.name for p in paths}
    printed = {p.name for p in paths if p.suffix == ".pdf"}
    assert printed == {f"{measure}_column.pdf" for measure in PAPER_MEASURES}  # the headline's
    assert not list((tmp_path / "summary").glob("*.part"))
    with (tmp_path / "summary" / "comparison.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("run", "measure", "task", "statistic", "place", "layer", "value", "low", "high", "n", "bands")
    ]
    found = {(r["run"], r["measure"], r["statistic"], int(r["layer"])): r["value"] for r in rows}
    for label, run in runs():
        for key, held in run.by_key.items():
            for layer, value in enumerate(held.value.tolist()):
                cell = found.pop((label, key.measure, key.statistic, layer))
                assert cell == "" if np.isnan(value) else float(cell) == value
    assert not found


def test_a_sweep_without_results_still_has_a_page(tmp_path: Path) -> None:
    paths = comparison.write_summary([], tmp_path, registry_of())
    assert {p.name for p in paths} == {"report.html", "comparison.csv"}


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with headless(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def browser(window: Any, page: Path) -> Iterator[Any]:
    window.get(page.as_uri())
    yield window
    assert window.get_log("browser") == []


@pytest.mark.slow
def test_a_browser_draws_the_page_without_errors_or_requests(browser: Any) -> None:
    run = browser.execute_script
    script = "return [...document.querySelectorAll('#headline .plot')].map(p => p.data.length)"
    assert min(run(script)) >= 1
    assert run("return performance.getEntriesByType('resource').map(e => e.name)") == []
    read = "return document.querySelectorAll('.plot')[0].data.map(t => [t.name, t.x, t.y])"
    names = {name for name, _, _ in run(read) if name}
    assert {"bert", "elmo", "bert, published"} <= names
    # a chart says what it shows, in text and to who can't see it; charts share a scale
    first = "const [at] = document.querySelectorAll('#headline .charts section'), plot = at.querySelector('.plot');"
    told = run(f"{first} return [...at.querySelectorAll('.findings li')].map(li => li.textContent)")
    assert any(
        "In elmo, self-similarity" in said or "Self-similarity of words in elmo: no change" in said for said in told
    )
    assert "Self-similarity of words. " in run(f"{first} return plot.ariaLabel")
    assert run(f"{first} return at.querySelector('p').textContent").endswith("higher = less context-specific")
    ranges = "return [...document.querySelectorAll('#headline .plot')].map(p => p.layout.yaxis.range)"
    assert len({tuple(each) for each in run(ranges)}) == 1
    for choice in ("[value=baseline]", "[value=depth]"):
        run("document.querySelector(arguments[0]).click()", choice)
    shown = {name: (x, y) for name, x, y in run(read)}
    elmo = dict(runs())["elmo"]
    assert (
        run(f"{first} return at.querySelectorAll('.findings li:not(.aside)').length") == 0
    )  # they are of each measure's own curve
    np.testing.assert_allclose(shown["elmo"][0], [0, 0.5, 1])
    np.testing.assert_array_equal(shown["elmo"][1], elmo.by_name["self_similarity/baseline"])
    assert run("return document.querySelectorAll('b').length") == 0
    run("document.querySelector('#more summary').click()")
    wait_until(lambda: run("return document.querySelector('#more .plot').data?.length ?? 0") >= 3)
    assert run("return document.querySelector('#more .plot').layout.yaxis.type") == "log"  # lengths
    definition = "return document.querySelectorAll('#headline .charts section')[3].querySelector('p').textContent"
    assert "Definition 3" in run(definition)
    run("document.querySelectorAll('#headline .charts section')[3].querySelectorAll('input')[1].click()")
    assert "as released" in run(definition)
