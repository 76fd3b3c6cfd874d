"""Results survive the disk: full precision, NaN as gaps, infinities by name."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ctxexp import Results
from ctxexp.errors import MetricError, TrackingError
from ctxexp.files import seal_folder
from ctxexp.results.values import Key, Values
from tests.sample_results import results_with, run_info


def results() -> Results:
    curve = np.array([1 / 3, np.nan, np.inf, -np.inf, 1e-300])
    name = "self_similarity/raw"
    curves = {name: curve, f"{name}_ci_low": curve - 1, f"{name}_ci_high": curve + 1}
    curves |= {"self_similarity/n": np.arange(5.0), "sts/STS12/all": np.arange(5.0)}
    mix = "sts.last2/STS12/all"
    scalars = {mix: 2 / 3, f"{mix}_ci_low": 0.5, f"{mix}_ci_high": 0.9, "sts.last2/STS13/all": np.nan}
    words = {"word": ["a", 'q"u,o', "nan", ""], "n": [1, 2, 3, 2**53 + 1], "raw_0": [0.1 + 0.2, np.nan, 1e-300, np.inf]}
    tables = {
        "words": pd.DataFrame(words).assign(known=[True, False, True, True]),
        "years": pd.DataFrame({"word": ["2012"]}),
    }
    info = run_info(title="bert", n_layers=5, fit_on="nli", choices={"tasks": ["a"]})
    return results_with(curves, scalars, tables=tables, replicates={name: curve[:, None] * [1, 2]}, info=info)


@pytest.mark.parametrize("name", ["../words", "a b", "w" * 201])
def test_a_table_whose_name_is_not_loaded_is_not_saved(name: str, tmp_path: Path) -> None:
    made = results()
    odd = Results(made.frame, {**made.tables, name: made.tables["years"]}, made.replicates, made.info)
    with pytest.raises(MetricError, match=r"a table's name is .*, expected letters, digits, _ \. -"):
        odd.save(tmp_path / "run")
    assert not list(tmp_path.iterdir())
    odd.save(tmp_path / "frame.csv")  # which has no tables


@pytest.mark.parametrize("name", ["model=bert_dataset.path=mine.txt", "model=bert_dataset.path=mine.csv"])
def test_a_folder_may_be_called_as_a_file_is(name: str, tmp_path: Path) -> None:
    """As a job's is, by the words of its command."""
    (tmp_path / name).mkdir()
    assert Results.load(results().save(tmp_path / name)).frame.equals(results().frame)


def test_the_round_trip_is_exact(tmp_path: Path) -> None:
    made = results()
    made.save(tmp_path)
    back = Results.load(str(tmp_path))
    pd.testing.assert_frame_equal(back.frame, made.frame, check_exact=True)
    assert back.info == made.info
    assert (back.n_layers, back.measures()) == (5, ["self_similarity", "sts"])
    assert back.tables.keys() == made.tables.keys()
    for name, table in made.tables.items():
        pd.testing.assert_frame_equal(back.tables[name], table, check_exact=True)
    assert back.replicates.keys() == made.replicates.keys()
    for key, drawn in made.replicates.items():
        np.testing.assert_array_equal(back.replicates[key], drawn)
    with (tmp_path / "words.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[:3] == [
        ["word", "n", "raw_0", "known"],
        ["a", "1", repr(0.1 + 0.2), "True"],
        ['q"u,o', "2", "", "False"],
    ]
    assert not list(tmp_path.glob("*.part"))


def test_the_frame_is_what_every_reader_sees(tmp_path: Path) -> None:
    """In memory, as Parquet for other tools, by key, and the counts beside the values."""
    made = results()
    made.save(tmp_path)
    frame = made.frame
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), frame, check_exact=True)
    assert list(frame.columns) == ["measure", "task", "statistic", "place", "layer", "value", "low", "high", "n"]
    raw = frame[(frame["measure"] == "self_similarity") & (frame["statistic"] == "raw")]
    assert raw["layer"].tolist() == raw["n"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(raw["value"], made.by_name["self_similarity/raw"])
    off = frame[frame["place"] == "last2"]
    assert off["layer"].isna().all()
    name = "sts.last2/STS12/all"
    assert [made.by_name[name + end].tolist() for end in ("", "_ci_low", "_ci_high")] == [[2 / 3], [0.5], [0.9]]
    assert not {"sts/STS12/all_ci_low", "sts/all"} & {*made.by_name}
    part = made.curve("sts", "all", task="STS12")
    assert (part.name, part.index.name) == ("sts/STS12/all", "layer")


@pytest.mark.parametrize("name", ["../words", "/etc/words"])
def test_a_table_s_name_leads_nowhere(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "words.csv"
    outside.write_text("word\r\nsecret\r\n")
    folder = tmp_path / "run"
    results_with({"m/raw": np.ones(2)}).save(folder)
    document = json.loads((folder / "results.json").read_text())
    document["tables"] = {name: {"word": "str"}}
    (folder / "results.json").write_text(json.dumps(document))
    with pytest.raises(TrackingError, match="a table's name is"):
        Results.load(folder)


def test_load_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match=r"no results\.json in .* never finished measuring"):
        Results.load(tmp_path)
    (tmp_path / "results.json").write_text('{"curves": 3}')
    with pytest.raises(TrackingError, match=r"results\.json is of format None, this version reads 2: run again"):
        Results.load(tmp_path)
    for damage in ('{"format": 2, "curves": 3}', "[]", "{"):
        (tmp_path / "results.json").write_text(damage)
        with pytest.raises(TrackingError, match=r"results\.json is not a results file of ctxexp"):
            Results.load(tmp_path)
    results().save(tmp_path)
    (tmp_path / "words.csv").unlink()
    with pytest.raises(TrackingError, match=r"is not a results file of ctxexp: .*words\.csv"):
        Results.load(tmp_path)


def test_a_new_value_has_none_of_the_old_ones_replicates() -> None:
    values, key = Values(), Key("s", "raw")
    values.set(key, np.zeros(2), replicates=np.zeros((2, 3)))
    values.set(key, np.ones(2))
    assert not values.replicates


def test_findings_are_computed_once_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = results()
    made.save(tmp_path)
    first, *_ = json.loads((tmp_path / "findings.json").read_text())
    assert first["text"].replace("{run}", "bert") == made.sentence
    computed = made.finding_by_key
    (tmp_path / "findings.json").rename(tmp_path / "kept")
    assert Results.load(tmp_path).finding_by_key == computed  # of a folder that has none, anew
    (tmp_path / "kept").rename(tmp_path / "findings.json")
    monkeypatch.setattr("ctxexp.report.findings.finding_of", None)
    back = Results.load(tmp_path)
    assert back.finding_by_key == computed
    assert back.findings("mine") == [finding.sentence("mine") for finding in computed.values()]
    renamed = replace(back, info=replace(back.info, title="other"))  # other results: other findings
    with pytest.raises(TypeError):
        assert renamed.sentence


@pytest.mark.parametrize("name", ["results.json", "results.parquet", "replicates.npz", "words.csv", "findings.json"])
def test_damage_is_noticed_in_every_file(tmp_path: Path, name: str) -> None:
    results().save(tmp_path)
    seal_folder(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(TrackingError, match=f"{name} is not as it was written"):
        Results.load(tmp_path)


def test_results_that_are_read_in_a_new_process_can_be_shown(tmp_path: Path) -> None:
    made = results_with({"anisotropy/mean_cosine": np.array([0.1, 0.5])}, info=run_info(title="bert", n_layers=2))
    made.save(tmp_path / "run")
    script = "import sys, ctxexp as c; found = c.load(sys.argv[1]); found.plot(); print(found.report('page.html'))"
    shown = [sys.executable, "-c", script, str(tmp_path / "run")]
    assert subprocess.check_output(shown, cwd=tmp_path, text=True).strip().endswith("page.html")


def test_what_is_undefined_stays_so() -> None:
    """No other statistic stands in for a measure that has no value."""
    results = results_with({"contextuality/raw": [np.nan, np.nan], "contextuality/loudest": [0.3, 0.4]})
    assert results["contextuality"].isna().all()
    assert "undefined" in results.sentence
    assert results["contextuality/loudest"].tolist() == [0.3, 0.4]
