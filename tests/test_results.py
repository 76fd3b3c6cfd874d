"""Results survive the disk: full precision, NaN as gaps, infinities by name."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from ctxexp.errors import TrackingError
from ctxexp.jobs.state import read_state, write_json
from ctxexp.results import Results, Table


def test_round_trip_is_exact(tmp_path: Path) -> None:
    curve = np.array([1 / 3, np.nan, np.inf, -np.inf, 1e-300])
    results = Results(
        curves={"self_similarity/raw": curve},
        tables={"words": Table({"word": ["a", 'q"u,o'], "raw_0": [0.1 + 0.2, float("nan")]})},
        scalars={"sts.first_last/all": 2 / 3, "sts.last2/all": float("nan")},
        info={"model": "bert", "n_layers": 5},
    )
    results.save(tmp_path)
    back = Results.load(tmp_path)
    assert np.array_equal(back.curves["self_similarity/raw"], curve, equal_nan=True)
    assert back.scalars["sts.first_last/all"] == 2 / 3
    assert np.isnan(back.scalars["sts.last2/all"])
    assert back.info == results.info
    assert back.n_layers == 5
    assert back.measures() == ["self_similarity"]
    with (tmp_path / "words.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [["word", "raw_0"], ["a", repr(0.1 + 0.2)], ['q"u,o', ""]]
    assert not list(tmp_path.glob("*.part"))


def test_load_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match=r"no results\.json in .* never finished measuring"):
        Results.load(tmp_path)
    (tmp_path / "results.json").write_text('{"curves": 3}')
    with pytest.raises(TrackingError, match=r"results\.json is not a results file of ctxexp"):
        Results.load(tmp_path)


def test_a_state_of_other_types_is_read_without_them(tmp_path: Path) -> None:
    write_json(tmp_path / "status.json", {"status": "FINISHED", "overrides": ["model=bert", 7], "process": "none"})
    assert read_state(tmp_path) == {"status": "FINISHED", "overrides": ["model=bert"]}
