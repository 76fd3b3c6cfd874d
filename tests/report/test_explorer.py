"""The word explorer: what it is told, and what a browser makes of it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from ctxexp import Occurrences, Results, compare
from ctxexp.report.page.explorer import explorer_data, fitting_blocks
from ctxexp.report.page.word_map import WordMap
from tests.browser import headless, texts, wait_until
from tests.measuring_helpers import measure, row_index_of
from tests.sample_results import run_info
from tests.shipped import MaxExplainableVariance, SelfSimilarity, polysemy

LAYERS = {"bert": 5, "gpt2": 5, "elmo": 3}  # of the models that ship
METRICS = {"self_similarity": SelfSimilarity, "mev": MaxExplainableVariance}


def unpack(text: str) -> dict:
    return json.loads(gzip.decompress(base64.b64decode(text)))


class Random:
    """A store whose rows are their words, and more of a row's own the higher the layer."""

    def __init__(self, unit_codes: np.ndarray, n_layers: int, seed: int) -> None:
        self.codes, self.n_layers, self.dim, self.seed = unit_codes, n_layers, 8, seed
        self.layer_numbers = range(n_layers)

    def layer(self, i: int) -> np.ndarray:
        rng = np.random.default_rng([self.seed, i])
        word = rng.normal(size=(self.codes.max() + 1, self.dim))[self.codes]
        return (word + 0.3 * i * rng.normal(size=word.shape)).astype(np.float32)


@cache
def runs() -> list[tuple[str, Results]]:
    """What the default sweep measures of words, of made vectors: as many words, sentences and layers."""
    corpus = polysemy()
    index = row_index_of(corpus)
    occurrences = Occurrences.of(index, corpus, keep=str.isalpha)
    found = []
    for seed, (name, n) in enumerate(LAYERS.items()):
        store = Random(index.unit_codes, n, seed)
        points = WordMap(index, occurrences, corpus, dim=8, most=3072)
        results = measure(store, occurrences, METRICS, observers={"word_map": points}, bootstrap=5)
        of_words = results.tables["self_similarity"]
        spread = [
            pd.DataFrame({"layer": layer, "word": of_words["word"], "contextuality": 1 - of_words[f"raw_{layer}"]})
            for layer in range(n)
        ]
        tables = {**results.tables, "contextuality": pd.concat(spread).iloc[1:]}  # a word lacks a layer
        found.append((name, replace(results, tables=tables, info=run_info(results.info, name=name))))
    return found


def integers(text: str, steps: int, *shape: int) -> np.ndarray:
    whole = np.frombuffer(base64.b64decode(text), "<i2").astype(np.float64)
    return np.where(whole == -(2**15), np.nan, whole / steps).reshape(shape)


def test_the_page_has_what_the_tables_hold() -> None:
    overview, blocks = explorer_data(runs())
    words = overview["words"]
    unit, fine = overview["steps"]
    for i, ((label, results), model) in enumerate(zip(runs(), overview["models"], strict=True)):
        n = LAYERS[label]
        assert model["label"] == label
        adjusted = integers(model["adjusted"], fine, len(words), n)
        scores = results.tables["self_similarity"].set_index("word")
        np.testing.assert_allclose(adjusted[:, 1], scores.loc[words, "adjusted_1"], atol=1 / fine)
        contextuality = integers(model["contextuality"], fine, len(words), n)
        np.testing.assert_allclose(contextuality[:, 1], 1 - scores.loc[words, "raw_1"], atol=1 / fine)
        variance = integers(model["variance"], fine, len(words), n)
        np.testing.assert_allclose(
            variance[:, 0], results.tables["mev"].set_index("word").loc[words, "raw_0"], atol=1 / fine
        )
        half = integers(model["half"], fine, len(words), n)
        errors = results.tables["self_similarity_errors"].set_index("word").loc[words]
        ends = np.minimum(errors["error_2"] * errors["listed_factor"], (2**15 - 1) / fine)
        np.testing.assert_allclose(half[:, 2], ends, atol=1 / fine)
        for word, table in results.tables["word_map"].groupby("word"):
            block = unpack(blocks[f"word-{words.index(word)}"])
            at, points = block["models"][i]["at"], integers(block["models"][i]["common"], unit, len(table), n, 2)
            np.testing.assert_allclose(points[:, n - 1, 0], table[f"common_x_{n - 1}"], atol=1 / unit)
            own = integers(block["models"][i]["own"], unit, len(table), n, 2)
            np.testing.assert_allclose(own[:, 0, 1], table["own_y_0"], atol=1 / unit)
            for number, row in zip(at, table.itertuples(), strict=True):
                text, start, end, sense, sentence = block["occurrences"][number]
                assert (text[start:end], sense, sentence) == (word, row.sense, row.sentence)
    tables = [results.tables["word_map"][["word", "text", "start"]] for _, results in runs()]
    n_occurrences = sum(len(unpack(block)["occurrences"]) for block in blocks.values())
    assert n_occurrences == len(pd.concat(tables).drop_duplicates())  # of one corpus: each stands there once
    assert {f"word-{i}" for i, there in enumerate(overview["projected"]) if there} == set(blocks)
    counts = runs()[0][1].tables["self_similarity"].set_index("word")["count"]
    assert overview["counts"] == counts[words].tolist()
    assert overview["senses"][words.index("bank")] == 2
    assert overview["pos"][words.index("bank")] == "noun"
    assert overview["pos"][words.index("the")] == ""


def sure(results: Results, layer: int) -> list[str]:
    """The words whose interval is narrower than half the room, by ascending self-similarity above chance."""
    scores, errors = (results.tables[f"self_similarity{name}"].set_index("word") for name in ("", "_errors"))
    room = 1 - results.by_name["self_similarity/baseline"][layer]
    narrow = 2 * 1.96 * errors[f"error_{layer}"] < room / 2
    assert narrow.any()
    return list(scores[f"adjusted_{layer}"][narrow[narrow].index].sort_values().index)


def test_projected_and_extreme_words_of_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    every = explorer_data(runs()).overview
    monkeypatch.setattr("ctxexp.report.page.explorer.MOST", 300)
    overview = explorer_data(runs()).overview
    assert len(overview["words"]) == 300
    assert set(overview["words"]) < set(every["words"])
    assert set(overview["words"]) >= {w for w, there in zip(every["words"], every["projected"], strict=True) if there}
    for label, results in runs():
        last = sure(results, LAYERS[label] - 1)
        assert set(overview["words"]) >= {*last[:10], *last[-10:]}
        # the ends of every layer's ranking are projected: those of the first choice, and what followed up
        projected = results.tables["word_map"].groupby("word").size()
        for layer in range(1, LAYERS[label]):
            ranking = sure(results, layer)
            assert set(projected.index) >= {*ranking[:10], *ranking[-10:]}
        assert projected.max() == 48
        # a word that is listed alone has as many: all that the text has, or more than the dozen that a glance takes
        texts = results.tables["self_similarity"].set_index("word")["count"]
        assert (projected >= np.minimum(texts[projected.index], 13)).all()


def size(blocks: dict[str, str]) -> int:
    return sum(map(len, blocks.values()))


def test_many_models_and_long_texts_fit_the_page() -> None:
    _, results = runs()[0]
    table = results.tables["word_map"]

    def most(blocks: dict[str, str]) -> int:
        return max(len(unpack(block)["models"][0]["at"]) for block in blocks.values())

    assert most(fitting_blocks([table], [range(5)])) == table.groupby("word").size().max()
    rng = np.random.default_rng(0)
    columns = [name for name in table if name.startswith(("own", "common"))]
    points = [rng.normal(scale=0.3, size=(len(table), len(columns))) for _ in range(16)]
    some = fitting_blocks([table.assign(**dict(zip(columns, x.T, strict=True))) for x in points], [range(5)] * 16)
    assert size(some) < 1.8e6
    assert set(some) == set(table["word"])
    assert 2 < most(some) < table.groupby("word").size().max()


def test_a_run_without_points_has_no_explorer(tmp_path: Path) -> None:
    bare = [(label, replace(results, tables={})) for label, results in runs()]
    assert explorer_data(bare) is None
    page = compare(dict(bare)).report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="explorer"' not in page
    mixed = explorer_data([runs()[0], bare[1]])
    assert [model["label"] for model in mixed.overview["models"]] == ["bert"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compare(dict(runs())).report(tmp_path_factory.mktemp("explorer") / "report.html")


def test_the_default_sweeps_page_can_be_sent_by_mail(page: Path) -> None:
    assert page.stat().st_size < 6e6


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with headless(tmp_path_factory.mktemp("profile"), "1300,2400") as browser:
        yield browser


@pytest.fixture
def browser(window: Any, page: Path) -> Iterator[Any]:
    window.get(page.as_uri())
    window.execute_script("document.getElementById('explorer').scrollIntoView()")
    yield window
    assert window.get_log("browser") == []


@pytest.mark.slow
def test_words_are_explored_in_a_browser(browser: Any) -> None:
    run = browser.execute_script

    def clouds() -> list[list[float]]:
        return run("return [...document.querySelectorAll('#clouds .plot')].map(p => p.data.flatMap(t => [...t.x]))")

    def choose(name: str) -> None:
        run(
            """const select = document.getElementById('word');
            select.value = [...select.options].find(o => o.textContent.startsWith(arguments[0] + ' ')).value;
            select.dispatchEvent(new Event('change'))""",
            name,
        )

    def shown() -> str:
        return str(run("return document.getElementById('word').selectedOptions[0].textContent"))

    def slide(layer: str) -> None:
        set_layer = "const at = document.getElementById('layer'); at.value = arguments[0];"
        run(f"{set_layer} at.dispatchEvent(new Event('input'))", layer)
        wait_until(lambda: run("return document.getElementById('at').textContent") == layer)

    # a takeaway against the table: of the other words, those whose uses differ less
    words, word = explorer_data(runs()).overview["words"], shown().split(" (")[0]
    last = 1 - runs()[0][1].tables["self_similarity"].set_index("word")["raw_4"].loc[words]
    share = round(100 * float((last.drop(word) < last[word]).mean()))
    wait_until(lambda: texts(browser, "#takeaways li"))
    takeaway = texts(browser, "#takeaways li")[0]
    assert f"{word} {last[word]:.2f}: its uses differ {100 * last[word]:.0f}% as much as two words do" in takeaway
    assert f"more than those of {share}% of the {len(last) - 1} other words" in takeaway

    choose("bank")
    wait_until(lambda: "bank.money" in texts(browser, "#key")[0])  # once its occurrences are unpacked
    table = runs()[0][1].tables["word_map"]
    bank = table[table["word"] == "bank"]
    np.testing.assert_allclose(sorted(clouds()[0]), sorted(bank["common_x_4"]), atol=1e-4)
    slider = browser.find_element("id", "layer")
    slider.send_keys(Keys.ARROW_LEFT)  # keys alone will do
    wait_until(lambda: run("return document.getElementById('at').textContent") == "3")
    wait_until(lambda: np.allclose(sorted(clouds()[0]), sorted(bank["common_x_3"]), atol=1e-4))
    browser.find_element("css selector", "[name=plane][value=own]").click()
    np.testing.assert_allclose(sorted(clouds()[0]), sorted(bank["own_x_3"]), atol=1e-4)
    said = run("return document.querySelector('#clouds p').textContent")
    score = runs()[0][1].tables["self_similarity"].set_index("word").loc["bank", "raw_3"]
    assert f"self-similarity {score:.3f}" in said

    def hover() -> bool:  # its mark is of the sentence shown
        dot = browser.find_elements("css selector", "#clouds .plot .points path")[3]
        ActionChains(browser).move_to_element(dot).perform()
        return texts(browser, "#sentence mark") == ["bank"]

    wait_until(hover)
    (sentence,) = texts(browser, "#sentence")
    assert sentence in set(bank["text"])
    hovered = "return document.querySelector('#clouds .hoverlayer').textContent.replace(/\\s/g, '')"
    wait_until(lambda: "".join(sentence.split()) in run(hovered))
    browser.find_element("css selector", "#occurrences li:nth-child(2)").send_keys(Keys.NULL)  # as a tab would
    wait_until(lambda: "on" in run("return document.querySelector('#occurrences li:nth-child(2)').className"))
    rings = "return [...document.querySelectorAll('#clouds .plot')].map(p => p.data.at(-1).x.length)"
    assert run(rings) == [1, 1, 1]  # the same occurrence in every model

    before = shown()
    filled = run("return document.querySelector('#scatters .plot').data[0].x.length")  # those before aren't projected
    dots = browser.find_elements("css selector", "#scatters .plot .points path")
    for dot in dots[filled:]:  # some are below others
        ActionChains(browser).move_to_element(dot).click().perform()
        if shown() != before:
            break
    wait_until(lambda: shown() != before)
    wait_until(lambda: set(texts(browser, "#occurrences mark")) == {shown().split(" (")[0]})
    browser.find_element("css selector", "[name=across][value=senses]").click()
    assert max(run("return [...document.querySelector('#scatters .plot').data[1].x]")) > 1.5
    browser.find_element("css selector", "[name=across][value=pos]").click()
    axis = run("return document.querySelector('#scatters .plot').layout.xaxis")
    tags = table[table["sense"] != ""].groupby("word")["pos"].agg(lambda tags: "/".join(sorted({*tags} - {""})))
    assert axis["ticktext"] == sorted(set(tags))
    assert len(run("return document.querySelector('#scatters .plot').data[1].x")) == len(tags)

    # each of the most and least contextual words can be explored: its bar, or its button, leads up to its occurrences
    for layer in ("0", "3"):
        slide(layer)
        filled_bars = """return [...document.querySelectorAll('#bars .plot')].every(
            plot => !plot.data[0].marker.color.includes('rgba(0,0,0,0)'))"""
        assert run(filled_bars)
    number, path = run(
        """const plot = document.querySelector('#bars .plot');
        return [plot.data[0].ids[3], plot.querySelectorAll('.bars .point path')[3]]"""
    )
    above = "const at = document.getElementById('explorer').getBoundingClientRect().top; return at > -5 && at < 200"
    ActionChains(browser).move_to_element(path).click().perform()
    wait_until(lambda: run("return Number(document.getElementById('word').value)") == number)
    wait_until(lambda: run(above))
    assert run("return document.querySelectorAll('#clouds .plot')[0].data.at(-2).x.length") > 1
    button = browser.find_elements("css selector", "#bars .words button")[-1]
    run("arguments[0].focus()", button)
    name = button.text
    button.send_keys(Keys.ENTER)
    wait_until(lambda: shown().split(" (")[0] == name)

    def on_it(label: str, takeaway: str) -> bool:
        return f"In {label}, layer" in takeaway and name in takeaway

    wait_until(lambda: [*map(on_it, LAYERS, texts(browser, "#takeaways li"))] == [True] * 3)
    slide("4")
    bars = run("const {x, error_x} = document.querySelector('#bars .plot').data[0]; return [x, error_x.array]")
    assert len(bars[0]) == 20
    assert bars[0] == sorted(bars[0])
    assert max(bars[1]) > 0


@pytest.mark.slow
def test_the_page_works_in_the_frame_that_mlflow_shows_it_in(window: Any, page: Path, tmp_path: Path) -> None:
    # MLflow's viewer puts an artifact's text into a sandboxed frame, far from the files beside it
    frame = tmp_path / "viewer.html"
    text = json.dumps(page.read_text(encoding="utf-8")).replace("</", "<\\/")
    frame.write_text(
        f"""<iframe sandbox="allow-scripts" width="1200" height="900"></iframe><script>
        document.querySelector("iframe").src = URL.createObjectURL(new Blob([{text}], {{ type: "text/html" }}));
        </script>""",
        encoding="utf-8",
    )
    window.get(frame.as_uri())
    window.switch_to.frame(0)
    wait_until(lambda: window.find_elements("css selector", "#occurrences li mark"))
    assert window.find_elements("css selector", "#clouds .plot .points path")
