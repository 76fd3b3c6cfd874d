"""docs/numbers: a part takes numbers and writes its words; steps name commands that are there."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from docs.numbers import __main__ as driver
from docs.numbers.marked import marked
from docs.numbers.part import ROOT, Part
from docs.numbers.steps import STEPS


def test_a_part_takes_numbers_and_figures_and_writes_its_words(tmp_path: Path) -> None:
    part = Part(
        mark="mark",
        page="docs/a.md",
        numbers="a.csv",
        collect=lambda output: pd.read_csv(output / "all.csv").iloc[:1],
        table=lambda numbers: f"it is {numbers.value[0]}",
        figures={"kept.png": "drawn*.png"},
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("before <!-- mark: begin -->old<!-- mark: end --> after", encoding="utf-8")
    pd.DataFrame({"value": [0.5, 2.0], "layer": [0, 1]}).to_csv(tmp_path / "all.csv")
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "drawn.png")
    part.write(tmp_path, tmp_path)
    page = (tmp_path / "docs" / "a.md").read_text(encoding="utf-8")
    assert page == "before <!-- mark: begin -->\n\nit is 0.5\n\n<!-- mark: end --> after"
    assert part.read(tmp_path).layer.tolist() == [0]
    with Image.open(tmp_path / "docs" / "kept.png") as kept:
        assert kept.size == (40, 40)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_names_what_is_there(name: str) -> None:
    step = STEPS[name]
    lines = step.commands.splitlines()
    for line in lines:
        assert line.count("$") <= len(step.needs)
        words = shlex.split(line)
        if words[0] == "python" and words[1] != "-c":
            assert importlib.util.find_spec(words[2]) if words[1] == "-m" else (ROOT / words[1]).is_file()


def test_a_part_in_an_empty_folder_measures_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(Part, "write", lambda _, made: taken.append((made, [path.name for path in made.iterdir()])))
    part = STEPS["multiverse"]
    monkeypatch.setitem(STEPS, "one", replace(part, commands="mkdir -p 'a b/c'; touch 'a b/c/d'", output_glob="*/c"))
    assert driver.main(["one"]) is None
    assert taken[0][1] == ["d"]
    assert not taken[0][0].exists()
    monkeypatch.setitem(STEPS, "two", replace(part, commands="exit 3"))
    assert driver.main(["two"]) == "failed: two"
    assert driver.main([f"two={ROOT / 'docs' / 'notebooks'}"]) is None
    assert [made for made, _ in taken[1:]] == [ROOT / "docs" / "notebooks"]


@pytest.mark.parametrize("word", ["gallry", "multivers=.", "card=."])
def test_what_is_no_step_is_said_before_any_work(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    said = driver.main(["golden", word])
    assert said
    assert said.startswith(f"error: no step {word!r}; expected ")
    assert ("multiverse=FOLDER" in said, "golden" in said) == ("=" in word, "=" not in word)
    assert capfd.readouterr().out == ""


def test_without_its_data_a_step_is_left_out() -> None:
    words = [sys.executable, "-m", "docs.numbers", "court", "contrastive"]
    given = {"PATH": "/usr/bin:/bin", "CORPUS": "x", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(words, cwd=ROOT, env=given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "court is left out: RELEASED, SEMCOR, STS is not given",
        "contrastive is left out: STS is not given",
    ]


def test_the_readme_prints_the_kept_numbers_of_a_known_model() -> None:
    kept = pd.read_csv(ROOT / "docs" / "known_model.csv").pivot(
        index="layer", columns="statistic", values=["value", "low", "high"]
    )
    block = marked(ROOT / "README.md", "known model")
    lines = re.findall(r"^(\d+) +(\S+) \[(\S+), (\S+)\] (\S+)–(\S+)$", block, flags=re.MULTILINE)
    assert [int(layer) for layer, *_ in lines] == kept.index.to_list()
    for layer, *printed in lines:
        row = kept.loc[int(layer)]
        exact = [row[at, "raw"] for at in ("value", "low", "high")]
        assert [float(number) for number in printed[:3]] == pytest.approx(exact, abs=5.1e-4)
        ends = [row["value", statistic] for statistic in ("lowest", "highest")]
        assert [float(number) for number in printed[3:]] == pytest.approx(ends, abs=5.1e-3)
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    first, last = (kept["value", "raw"].iloc[i] for i in (0, -1))
    assert f"grows from {first:.2f} at the input to {last:.2f} at the last layer, {kept.index[-1]}:" in home
