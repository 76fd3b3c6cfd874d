"""What a run says of its model: label, weights, and whether the published curves belong beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ctxexp.command import Experiment
from ctxexp.command.identity import weights_label
from ctxexp.report.charts import paper_model_name
from tests.composed import composed
from tests.sample_results import results_with, run_info


def config(**model: str | None) -> Any:
    """The default config with these arguments of bert; options_file and weight_file are elmo's."""
    whole = composed()
    return replace(whole, model=replace(whole.model, arguments=model))


@pytest.mark.parametrize(
    ("model", "named", "source", "overlaid"),
    [
        ({"weights": "mini"}, "bert", "mini", None),
        ({"weights": "published"}, "bert (published)", "published", "bert"),
        ({"weights": "untrained"}, "bert (untrained)", "untrained", None),
        ({"weights": "mini", "checkpoint": "/a/mine"}, "mine", "mine", None),
        ({"weights": "published", "checkpoint": "/a/mine"}, "mine", "mine", None),
        ({"weights": "untrained", "checkpoint": "/a/mine"}, "mine (untrained)", "untrained mine", None),
        ({"weights": "mini", "checkpoint": "me/Small-1B.Q4_1.gguf"}, "Small-1B.Q4_1", "Small-1B.Q4_1", None),
        (
            {"weights": "published", "weight_file": "/a/w.hdf5", "options_file": "/a/o.json"},
            "bert w.hdf5",
            "w.hdf5",
            None,
        ),
    ],
)
def test_the_published_curves_stand_beside_the_published_weights_only(
    model: dict[str, str | None], named: str, source: str, overlaid: str | None
) -> None:
    assert Experiment(config(**model)).title == named
    assert weights_label(config(**model)) == source
    info = run_info(title=named, name="bert", weights=source)
    results = results_with({"self_similarity/raw": np.zeros(13)}, info=info)
    assert paper_model_name(named, results, all_published=False) == overlaid
    assert paper_model_name(named, results, all_published=True) == "bert"
