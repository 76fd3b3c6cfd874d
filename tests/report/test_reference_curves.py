from __future__ import annotations

import numpy as np
import pytest
from ctxexp_measures.words.table_1 import published

from ctxexp.errors import UnknownName
from ctxexp.report import reference_curves
from ctxexp.results import Key


def test_the_papers_models_have_curves_of_their_layers() -> None:
    assert reference_curves.published_models() == ("bert", "gpt2", "elmo")
    for model, n_layers in {"bert": 13, "gpt2": 13, "elmo": 3}.items():
        curves = reference_curves.published_curves(model)
        assert {key: len(curve) for key, curve in curves.items()} == dict.fromkeys(curves, n_layers)


@pytest.mark.parametrize(
    ("model", "key", "layers", "expected"),
    [  # raw minus baseline, worked by hand from the released values
        ("bert", Key("anisotropy", "mean_cosine"), [0, 11, 12], [0.105, 0.675, 0.477]),
        ("gpt2", Key("anisotropy", "mean_cosine"), [0, 5, 12], [0.611, 0.573, 0.978]),
        ("elmo", Key("anisotropy", "mean_cosine"), [0, 1, 2], [0.008, 0.157, 0.136]),
        ("bert", Key("self_similarity", "adjusted"), [2, 11, 12], [0.652, 0.164, 0.278]),
        ("gpt2", Key("self_similarity", "adjusted"), [0, 12], [0.306, 0.007]),
        ("elmo", Key("self_similarity", "adjusted"), [0, 1, 2], [0.992, 0.587, 0.506]),
        ("elmo", Key("intra_sentence_similarity", "adjusted"), [0, 1, 2], [0.310, 0.425, 0.485]),
        ("bert", Key("intra_sentence_similarity", "adjusted"), [0, 11, 12], [0.330, 0.195, 0.299]),
        ("gpt2", Key("intra_sentence_similarity", "adjusted"), [0, 3, 12], [0.197, -0.065, 0.012]),
        ("bert", Key("max_explainable_variance_released", "adjusted"), [0, 1, 11, 12], [np.nan, -0.015, -0.014, 0.031]),
        ("gpt2", Key("max_explainable_variance_released", "adjusted"), [0, 1, 3, 12], [np.nan, -0.138, -0.696, -0.116]),
        ("elmo", Key("max_explainable_variance_released", "adjusted"), [0, 1, 2], [np.nan, 0.030, 0.035]),
        ("gpt2", Key("word_norm", "raw"), [0, 11], [5.762, 456.695]),
    ],
)
def test_published_values(model: str, key: str, layers: list[int], expected: list[float]) -> None:
    np.testing.assert_allclose(reference_curves.published_curves(model)[key][layers], expected, atol=1e-9)


def test_an_unknown_model_is_told_its_neighbours() -> None:
    with pytest.raises(UnknownName, match=r"no published curves 'gpt-2'; did you mean 'gpt2'\? \(bert, elmo, gpt2\)"):
        reference_curves.published_curves("gpt-2")


def test_the_published_rows_of_table_1() -> None:
    rows = published()
    assert len(rows) == 12
    best = {name: max(rows, key=lambda r: r.scores[name]) for name in rows[0].scores}
    assert {name: (r.model, r.layer) for name, r in best.items() if name != "ap"} == {
        "simlex999": ("BERT", 2), "men": ("FastText", None), "ws353": ("FastText", None), "rw": ("BERT", 1),
        "google": ("BERT", 1), "msr": ("BERT", 1), "semeval2012": ("BERT", 1), "bless": ("ELMo", 1),
    }  # fmt: skip
    assert [r.scores["ap"] for r in rows if r.model == "BERT"] == [0.321, 0.321, 0.289, 0.294]
    assert rows[-1].scores["men"] == -0.009
