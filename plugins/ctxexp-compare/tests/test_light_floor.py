"""Floors by NumPy alone: probabilities against a naive count, lengths, domains, carried cosines, files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctxexp_compare.light import fit
from ctxexp_compare.light.fit import TAILS, fit_rows, quantiles_of, tail_error, tail_probability
from ctxexp_compare.light.floor import EMBEDDED, Floor
from ctxexp_compare.light.pairs import Rows

README = Path(__file__).parents[2] / "ctxexp-light" / "README.md"


def sentence_rows(rng: np.random.Generator, n: int, *, domains: int = 1) -> Rows:
    """Means of as many vectors as each has words, around a common mean that is larger in later domains."""
    length = rng.integers(3, 30, size=n)
    domain = np.arange(n) % domains
    x = rng.normal(size=(1, n, 30)) / np.sqrt(length)[None, :, None]
    x[..., 0] += 0.5 + 0.3 * domain
    return Rows(x.astype(np.float32), np.arange(n), domain, np.full(n, -1))


def floor_of(rows: Rows, *names: str) -> Floor:
    return Floor("x", "x", (0,), ("mean",), names, *fit_rows({"mean": rows}, len(names), most=100_000))


def test_a_probability_is_the_share_of_pairs() -> None:
    cosines = np.random.default_rng(0).normal(0.2, 0.1, size=20_000)
    at = quantiles_of(cosines)
    for x in (0.0, 0.2, 0.37, 0.45):
        assert tail_probability(np.array(x), at) == pytest.approx((cosines >= x).mean(), abs=0.005)
    assert (tail_probability(np.array([-2.0, 2.0]), at) == [TAILS[0], TAILS[-1]]).all()
    assert (np.diff(at) >= 0).all()


def test_the_error_held_out_is_that_of_a_naive_count() -> None:
    one, other = np.random.default_rng(0).normal(size=(2, 500))
    expected = []
    for fitted, tested in ((one, other), (other, one)):
        shares = [np.mean([x >= np.quantile(fitted, 1 - p) for x in tested]) for p in TAILS if p <= 0.1]
        expected.append(max(abs(share - p) for share, p in zip(shares, TAILS[TAILS <= 0.1], strict=True)))
    assert tail_error(one, other) == pytest.approx(np.mean(expected))
    assert np.isnan(tail_error(one, other[:0]))


def test_held_out_sentences_are_foretold() -> None:
    rng = np.random.default_rng(0)
    fitted, other = (sentence_rows(rng, 6000) for _ in range(2))
    own = floor_of(fitted, "own")
    cosines = other.cosines(0, other.pairs(np.random.default_rng(1), 100_000))
    assert own.held_out_error() < 0.02
    for p in (0.5, 0.1, 0.05):
        assert np.mean(cosines >= own.threshold(p)) == pytest.approx(p, abs=0.02)


def test_domains_are_told_apart() -> None:
    rows = sentence_rows(np.random.default_rng(0), 900, domains=3)
    own = floor_of(rows, "low", "middle", "high")
    low, pooled, high = (own.probability(0.7, domain=name) for name in ("low", None, "high"))
    assert low < pooled < high
    error = own.held_out_error()
    assert own.domain_range(0.7) == pytest.approx((max(0, low - error), min(1, high + error)))
    apart = rows.pairs(np.random.default_rng(0), 10**6, across=True)
    assert (rows.domain[apart.first] != rows.domain[apart.second]).all()
    assert own.probability(0.7, across=True) == pytest.approx((rows.cosines(0, apart) >= 0.7).mean(), abs=0.01)
    assert own.domain_error() > 0.1
    mine = Floor.of_vectors(rows.vectors[0, rows.domain == 2])
    assert mine.probability(0.7) == pytest.approx(high, abs=0.01)
    with pytest.raises(ValueError, match="across: pairs of two of the domains own are asked for"):
        mine.probability(0.7, across=True)


def test_a_carried_cosine_lets_through_as_many_pairs() -> None:
    """Two models of 100 sentences each: in other sentences the carried cosine lets through what it says within .02 in
    95% of worlds, against a naive count, and its interval holds the cosine that is right there."""
    hits, covered = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(600, 12))
        models = [x @ rng.normal(size=(12, 24)) + rng.normal(size=(600, 24)) + shift for shift in (0.5, 1.5)]
        a, b = (Floor.of_vectors(one[:100]) for one in models)
        carried = a.carry(b, a.threshold(0.05), fewest=100)
        assert not carried.reason
        units = [one[100:] / np.linalg.norm(one[100:], axis=1, keepdims=True) for one in models]
        others = [np.sort((u @ u.T)[np.triu_indices(500, 1)]) for u in units]
        hits.append(abs((others[1] >= carried.cosine).mean() - carried.share) <= 0.02)
        right = np.quantile(others[1], 1 - (others[0] >= a.threshold(0.05)).mean())
        covered.append(carried.low <= right <= carried.high)
    assert np.mean(hits) >= 0.9
    assert np.mean(covered) >= 0.9


def test_what_can_t_be_carried_is_said() -> None:
    rng = np.random.default_rng(0)
    rows = sentence_rows(rng, 900, domains=3)
    turned = Rows(rows.vectors + 0.4 * (rows.domain == 0)[:, None], *list(vars(rows).values())[1:])
    a, b = floor_of(rows, "one", "two", "three"), floor_of(turned, "one", "two", "three")
    carried = a.carry(b, a.threshold(0.05))
    assert "in one it would let through" in carried.reason
    assert np.isnan(carried.cosine)
    assert "fewer than 0.05% of unrelated pairs reach it" in a.carry(b, 0.999).reason
    assert "60% of unrelated pairs reach it" in a.carry(b, a.threshold(0.6)).reason
    assert not a.carry(a, a.threshold(0.05)).reason
    few = Floor.of_vectors(rows.vectors[0, :149])
    for own in (few, replace(a, text=EMBEDDED)):
        assert "give text= of your own, 150 sentences or more" in own.carry(own, own.threshold(0.05)).reason
    assert not few.carry(few, few.threshold(0.05), fewest=149).reason
    across = a.threshold(0.05, across=True)
    assert a.carry(a, across, across=True).cosine == pytest.approx(across)
    with pytest.raises(ValueError, match="expected the same text"):
        a.carry(floor_of(rows, "one", "two", "four"), 0.5)


def test_pairs_are_of_two_sentences_of_one_domain_and_two_words() -> None:
    rng = np.random.default_rng(0)
    n = 60
    rows = Rows(rng.normal(size=(1, n, 4)), np.arange(n) // 3, np.arange(n) % 2, np.arange(n) % 7)
    for most in (100, 10_000):
        pairs = rows.pairs(np.random.default_rng(0), most)
        assert (rows.sentence[pairs.first] != rows.sentence[pairs.second]).all()
        assert (rows.word[pairs.first] != rows.word[pairs.second]).all()
        assert (rows.domain[pairs.first] == pairs.domain).all()
        assert (rows.domain[pairs.second] == pairs.domain).all()
        both = np.stack(pairs[:2])
        assert len(np.unique(both, axis=1).T) == both.shape[1] <= most


def test_a_file_is_read_back_whole_by_other_languages_too(tmp_path: Path) -> None:
    """The file is what the schema says, and the README's reader in JavaScript finds the same."""
    own = floor_of(sentence_rows(np.random.default_rng(0), 900, domains=3), *"abc")
    file = tmp_path / "x.floor.json"
    own.save(file)
    read = Floor.load(file)
    assert (read.kinds, read.layers, read.text) == (own.kinds, own.layers, own.text)
    for choices in ({}, {"domain": "c"}, {"across": True}):
        expected = own.probability([0.1, 0.6], **choices)
        assert read.probability([0.1, 0.6], **choices) == pytest.approx(expected, abs=1e-5)
    schema = json.loads((Path(fit.__file__).parent / "floor.schema.json").read_text())
    pytest.importorskip("jsonschema", reason="needs jsonschema").validate(json.loads(file.read_text()), schema)
    javascript = re.search(r"```javascript\n(// read_floor.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "read_floor.js").write_text(javascript[1])
    if (node := shutil.which("node")) is None:
        pytest.skip("needs node")
    words = [node, str(tmp_path / "read_floor.js"), str(file), "0.55", "0", "mean"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert float(said) == pytest.approx(own.probability(0.55), abs=1e-5)


def test_mistakes_are_answered(tmp_path: Path) -> None:
    own = Floor.of_vectors(np.random.default_rng(0).normal(size=(50, 4)))
    with pytest.raises(ValueError, match=r"no pooling 'cls'"):
        own.probability(0.3, pooling="cls")
    with pytest.raises(ValueError, match=r"layer=7: the floor of .* has layers \[0\]"):
        own.probability(0.3, layer=7)
    file = tmp_path / "x.floor.json"
    own.save(file)
    for damaged in (file.read_text()[:-50], file.read_text().replace("floor 5", "floor 4", 1), "[]"):
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"floor.json is no floor, or damaged .* make it anew: ctxexp floor MODEL"):
            Floor.load(file)
