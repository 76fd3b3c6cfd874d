"""One pass without a stored row: the numbers of a run that stores them, whatever the order, the shards, who encodes."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from ctxexp_scale.forms import sum_form
from ctxexp_scale.sums import Batch, SumForm, Sums
from ctxexp_scale.testing import check_sum_form

from ctxexp import Corpus, EncodedSentence, Encoder, Metric, Occurrences, Results, Sentence
from ctxexp.command import Experiment, configured, registry
from ctxexp.errors import ConfigError, DataError, EncodingError
from ctxexp.maths.geometry import mean_cosine_to_mean
from tests.composed import composed, run_command_line, with_part
from tests.measuring_helpers import measure
from tests.shipped import (
    Anisotropy,
    IntraSentenceSimilarity,
    NoFirst,
    OnePerSentence,
    SelfSimilarity,
    Uniform,
    WordNorm,
    polysemy,
)
from tests.traced import TracingEncoder, encoding_counts, numbered_corpus

from .test_encoding_shards import Stopped

METRICS = {
    "anisotropy": Anisotropy,
    "self_similarity": SelfSimilarity,
    "intra": IntraSentenceSimilarity,
    "level": partial(IntraSentenceSimilarity, unit_norm=True),  # a label like any other
    "word_norm": WordNorm,
}
SPECTRA = ("isoscore", "effective_rank", "participation_ratio")
NOT_IN_SUMS = {("anisotropy", "positive_pairs"), *((m, "median") for m in ("intra", "level", "word_norm"))}


class Hashed(Encoder):
    """A word's vector is its own and its sentence's, whoever it is encoded with; `nil` has none but zeros. A word that
    begins with `x` gets none."""

    name, n_layers, dim = "hashed", 2, 12

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            units = tuple(word for word in sentence.words if not word.startswith("x"))
            rows = np.zeros((2, len(units), self.dim), np.float32)
            for i, word in enumerate(units):
                for layer in range(2 * (word != "nil")):
                    own, other = (np.random.default_rng(zlib.crc32(t.encode())) for t in (word, f"{i}{sentence.text}"))
                    rows[layer, i] = own.normal(0.4, 1, self.dim) + (0.4 + layer) * other.normal(size=self.dim)
            yield EncodedSentence(units, rows)


def corpus(n: int = 150, *, documents: bool = True) -> Corpus:
    rng = np.random.default_rng(3)
    lines = [[f"w{min(i, 40)}" for i in rng.zipf(1.5, rng.integers(1, 11))] + [f"x{j}"] for j in range(n)]
    return Corpus(
        "zipf",
        tuple(Sentence.of(line) for line in lines),
        documents=tuple(j // 3 for j in range(n)) if documents else None,
    )


def experiment(
    folder: Path, text: Corpus | Path, encoder: Encoder | None = None, *options: str, **choices: Any
) -> Experiment:
    """A run of all metrics that keeps its vectors or sums in the folder."""
    usual = {"metrics": METRICS, "baseline": OnePerSentence(exact=True), "bootstrap": 200}
    engine = choices.pop("engine", None)
    options = ("figures.explorer=0", f"cache.folder={folder}", *options)
    config = configured(encoder or Hashed(), text, options, **(usual | choices))
    return Experiment(with_part(config, "engine", engine.name, lambda: engine) if engine else config)


def in_one_pass(
    folder: Path, text: Corpus | Path, encoder: Encoder | None = None, *options: str, shards: int = 7, **choices: Any
) -> Results:
    return experiment(folder, text, encoder, f"one_pass.shards={shards}", *options, **choices).run(folder)


def compare(found: Results, stored: Results, *, within: float, names: set[tuple[str, str]] = NOT_IN_SUMS) -> None:
    """All values of the stored run are there, but for medians of what isn't kept, and as many of the others."""
    key = ["measure", "statistic", "layer"]
    both = stored.frame.merge(found.frame, on=key, how="outer", suffixes=("", "_b"), indicator=True)
    lost = both[both._merge != "both"]
    assert set(zip(lost.measure, lost.statistic, strict=True)) == names
    assert set(lost._merge) <= {"left_only"}
    both = both[both._merge == "both"]
    middle = both.statistic == "median"  # a single word's number, whose sums are in float32 where rows are stored
    np.testing.assert_allclose(both.value_b[~middle], both.value[~middle], rtol=within, atol=within)
    np.testing.assert_allclose(both.value_b[middle], both.value[middle], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("baseline", "control"),
    [(OnePerSentence(size=50, exact=True), NoFirst(first=2)), (Uniform(size=50, exact=True), None)],
)
def test_numbers_are_those_of_stored_rows(tmp_path: Path, baseline: OnePerSentence, control: NoFirst | None) -> None:
    stored = experiment(tmp_path, corpus(), baseline=baseline, control=control).run(tmp_path)
    found = in_one_pass(tmp_path, corpus(), baseline=baseline, control=control)
    compare(found, stored, within=5e-8)  # of twenty words, whose sums are in float32 where rows are stored
    names = [name for name in stored.tables if not name.startswith(("intra", "level", "parts_of_the_text"))]  # of rows
    assert list(found.tables) == names
    pd.testing.assert_frame_equal(found.tables[names[0]], stored.tables[names[0]], check_dtype=False, rtol=0, atol=1e-6)
    one, other = found.info, stored.info
    assert one.measures == other.measures
    assert (one.corpus.occurrences, one.corpus.words) == (other.corpus.occurrences, other.corpus.words)
    assert (one.corpus.left_out, one.corpus.skipped) == (other.corpus.left_out, other.corpus.skipped)
    assert (one.corpus.sentences, one.corpus.one_pass, one.encoded) == (150, 7, 150)
    assert (one.resampled.unit, one.resampled.n) == ("shard of documents", 7)
    assert not list(tmp_path.glob("*/layer_*.npy")) or len(list(tmp_path.glob("*/layer_00.npy"))) == 1  # the stored


def test_order_shards_and_batches_move_nothing(tmp_path: Path) -> None:
    text = corpus(documents=False)
    other = Corpus("zipf", tuple(text.sentences[i] for i in np.random.default_rng(0).permutation(150)))
    first = in_one_pass(tmp_path / "first", text, shards=1)
    found = in_one_pass(tmp_path, other, None, "batch_tokens=9", shards=40)
    np.testing.assert_allclose(found.frame.value, first.frame.value, rtol=1e-9, atol=1e-9)
    assert found.info.corpus.fingerprint == first.info.corpus.fingerprint


def test_intervals_are_those_of_stored_rows_drawn_by_shard(tmp_path: Path) -> None:
    text, n = corpus(documents=False), 11  # which have unlike numbers of sentences
    found = in_one_pass(tmp_path, text, shards=n)
    whole = experiment(tmp_path, text)
    layers, occurrences, _ = whole.study.space(whole.vectors)
    block, of_row = np.arange(len(text.sentences)) % n, np.full(len(occurrences.forms), -1)
    sentences = occurrences.by_sentence
    of_row[sentences.rows] = np.repeat(block[sentences.keys], np.diff(sentences.starts))
    clusters = replace(occurrences.clusters, name="shard of sentences", n=n, of_sentence=block, of_row=of_row)
    drawn = replace(occurrences, clusters=clusters)
    stored = measure(layers, drawn, METRICS, whole.baseline, bootstrap=200)
    both = stored.frame.merge(found.frame, on=["measure", "statistic", "layer"], suffixes=("", "_b"))
    both = both[np.isfinite(both.low)]
    assert set(both.measure) == {*METRICS} - {"word_norm"}
    assert set(both.statistic) == {"raw", "adjusted", "share_of_room", "mean_cosine"}
    np.testing.assert_allclose(both[["low_b", "high_b"]], both[["low", "high"]], atol=2e-6)
    errors = found.tables["self_similarity_errors"].set_index("word")
    assert errors.notna().all(axis=None)
    assert np.isnan(in_one_pass(tmp_path, text, shards=1).frame.low).all()  # of one shard there is none


def test_copies_in_other_parts_count_once(tmp_path: Path) -> None:
    text = corpus(documents=False)
    lines = [sentence.text for sentence in text.sentences]
    parts = [lines[:60], lines[50:110] + lines[50:60], lines[:5] + lines[100:]]
    (tmp_path / "texts").mkdir()
    for i, part in enumerate(parts):
        (tmp_path / "texts" / f"{i}.txt").write_text("\n".join(part), encoding="utf-8")
    first = in_one_pass(tmp_path / "a", text)
    folder, options = tmp_path / "texts", ["words.tokenizer=whitespace"]
    found = in_one_pass(tmp_path / "b", folder, None, *options, shards=8)
    np.testing.assert_allclose(found.frame.value, first.frame.value, rtol=1e-9, atol=1e-9)
    assert found.info.corpus.sentences == 150
    assert found.info.corpus.text_sentences == sum(map(len, parts))


def test_edges(tmp_path: Path) -> None:
    lines = [["a", "nil", "b"], ["a", "nil", "c"], ["a"], ["nil", "b"], ["x1"], ["nil", "nil"]]
    text = Corpus.of("edges", lines)
    stored = experiment(tmp_path, text, min_contexts=2).run(tmp_path)
    found = in_one_pass(tmp_path, text, shards=4, min_contexts=2)
    compare(found, stored, within=1e-7)
    table = found.tables["self_similarity"].set_index("word")
    assert np.isnan(table.raw_0["nil"])  # rows of zeros
    assert found.by_name["self_similarity/undefined"].tolist() == [1, 1]
    found = in_one_pass(tmp_path, Corpus.of("alone", [["a", "b", "a"]]), shards=3, min_contexts=2)
    assert np.isnan(found.by_name["anisotropy/mean_cosine"]).all()
    assert np.isfinite(found.by_name["intra/raw"]).all()
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DataError, match="has no sentence: expected UTF-8 text"):
        in_one_pass(tmp_path, tmp_path / "empty.txt")
    with pytest.raises(DataError, match="'marks' has no word to measure: all 4 are left out"):
        in_one_pass(tmp_path, Corpus.of("marks", [[".", "!"], ["...", ","]]))
    with pytest.raises(DataError, match="'skipped' has no word to measure: all 3 are left out"):  # known by their model
        in_one_pass(tmp_path, Corpus.of("skipped", [["x1", "x2"], ["x3"]]), min_contexts=2)


def of_rows(x: np.ndarray, occurrences: Occurrences) -> dict[str, float]:
    """The four numbers of a layer's rows (n_rows, d), in float64 throughout."""
    length = np.linalg.norm(x.astype(np.float64), axis=1)
    u = x / length[:, None]
    words, sentences = occurrences.by_word, occurrences.by_sentence

    by_word, by_sentence = (np.split(of.rows, of.starts[1:-1]) for of in (words, sentences))
    sums = [(np.square(u[rows].sum(axis=0)).sum(), len(rows)) for rows in by_word]
    means = np.stack([u[rows].mean(axis=0) for rows in by_sentence])
    centres = [(u[rows], x[rows].mean(axis=0, dtype=np.float64)) for rows in by_sentence if len(rows) > 1]
    n = len(means)
    return {
        "self_similarity/raw": float(np.mean([(square - n) / (n * n - n) for square, n in sums])),
        "anisotropy/mean_cosine": float((np.square(means.sum(axis=0)).sum() - np.square(means).sum()) / (n * (n - 1))),
        "intra_sentence_similarity/raw": float(np.mean([(v @ m / np.linalg.norm(m)).mean() for v, m in centres])),
        "word_norm/raw": float(length[sentences.rows].mean()),
        "word_norm/sd": float(length[sentences.rows].std(ddof=1)),
    }


def test_a_model_gives_what_stored_rows_give(tmp_path: Path) -> None:
    """To 1e-11 of the same rows, in float64; the stored form's own sums over rows are in float32, which shows where
    words are few."""
    text = [sentence.text for sentence in polysemy().sentences[:120]]
    options = ["metric=one_pass", "figures.explorer=0", "bootstrap=0", "min_contexts=2", f"cache.folder={tmp_path}"]
    options += ["words.mean=equal"]  # as the plain means of `of_rows` have them
    config = configured("bert", text, options)
    stored = Experiment(config).run(tmp_path)
    experiment = Experiment(config)
    layers, occurrences, _ = experiment.study.space(experiment.vectors)
    one, three = (
        Experiment(configured("bert", text, [*options, f"one_pass.shards={n}"])).run(tmp_path) for n in (1, 3)
    )
    for number in layers.layer_numbers:
        for name, value in of_rows(layers.layer(number), occurrences).items():
            assert one.by_name[name][number] == pytest.approx(value, rel=1e-11, abs=1e-11)
            assert three.by_name[name][number] == pytest.approx(value, rel=2e-8, abs=2e-8)  # in other batches
    lost = {("anisotropy", "positive_pairs"), ("word_norm", "median"), ("intra_sentence_similarity", "median")}
    compare(three, stored, within=1e-7, names=lost)


def traced(folder: Path, *, shards: int, **choices: Any) -> Results:
    """Of ten sentences a shard."""
    text = numbered_corpus(10 * shards)
    return in_one_pass(folder, text, TracingEncoder(folder), "batch_tokens=20", shards=shards, **choices)


def test_a_stop_loses_one_shard(tmp_path: Path) -> None:
    first = traced(tmp_path / "alone", shards=12)
    stopped = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        traced(stopped, shards=12, engine=Stopped(5, 60))
    before = encoding_counts(stopped)
    (damaged, *_) = sorted(stopped.glob("sums-*/*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:-40])
    found = traced(stopped, shards=12)
    np.testing.assert_array_equal(found.frame.value, first.frame.value)
    assert found.info.encoded == 8 * 10  # four were kept
    assert sum(encoding_counts(stopped).values()) == sum(before.values()) + 80
    again = traced(stopped, shards=12)
    assert again.info.encoded == 0
    assert sum(encoding_counts(stopped).values()) == sum(before.values()) + 80
    np.testing.assert_array_equal(again.frame.low, found.frame.low)
    assert run_command_line(["cache", "clear", f"folder={stopped}", "older_than=1"]) == 0
    assert list(stopped.glob("sums-*/*"))
    assert run_command_line(["cache", "clear", f"folder={stopped}"]) == 0
    assert not list(stopped.glob("sums-*"))


def _flip(path: Path) -> None:
    """A bit of the last array's last number; the archive's own headers hold bytes that nobody reads."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        last = file.read(max(name for name in file.namelist() if name.endswith(".npy")))
    data[data.index(last) + len(last) - 1] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["a copy", "a bit"])
def test_a_shard_that_is_another_s_is_made_anew(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy gave n=560 for 540 without a word."""
    here = tmp_path / "here"
    whole = traced(here, shards=6)
    (folder,) = here.glob("sums-*")
    shard, neighbour = folder / "0002.npz", folder / "0003.npz"
    if damage == "a copy":
        shutil.copy(neighbour, shard)
    else:
        _flip(shard)
    (folder / "0004.killed-1.npz").write_bytes(b"half")
    again = traced(here, shards=6)
    assert "0002.npz can't be taken" in caplog.text
    assert again.info.encoded == 10  # of that shard alone
    assert again.info.corpus.occurrences == whole.info.corpus.occurrences
    np.testing.assert_array_equal(again.frame[["value", "low", "high"]], whole.frame[["value", "low", "high"]])
    assert sorted(path.name for path in folder.iterdir()) == [f"{i:04d}.npz" for i in range(6)]
    last = traced(here, shards=6)
    assert last.info.encoded == 0


ROWS = "one_pass.shards stores no rows, which are needed by "


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["metric=[self_similarity,max_explainable_variance,sts]"],
         ROWS + r"metric max_explainable_variance \(no form in sums\), metric sts \(no form in sums\): store them, or "
         "bounded ones with words.max_contexts=256 in its place; of ctxexp's own metrics one pass does for anisotropy, "
         "intra_sentence_similarity, self_similarity, word_norm$"),
        (["metric=[intra_sentence_similarity]"], r"\(baselines=\[run,size_matched\] measures random groups\)"),
        (["metric=[self_similarity]", "metric.self_similarity.sample=5"], r"self_similarity \(sample=5 draws groups\)"),
        (["metric=one_pass", "baseline=b100"], r"one_per_sentence \(random groups; baseline=exact needs none\)"),
        (["metric=one_pass", "transform=whitening", "control=no_sinks"],
         r"transform Whitening \(transform=none needs none\).*control no_sinks \(it judges rows\)"),
        (["metric=one_pass", "model.pooling=pieces"], "one_pass.shards follows words, but model.pooling=pieces"),
        (["metric=one_pass", "words.max_contexts=9"], "one_pass.shards takes all contexts, words.max_contexts"),
        (["metric=one_pass", "words.deduplicate=false"], "one_pass.shards counts equal sentences as one context"),
        (["one_pass.shards=0"], "one_pass.shards=0: expected at least 1"),
        (["metric=one_pass", "model=elmo", "model.state=carry"], "but this model carries its state"),
    ],
)  # fmt: skip
def test_what_needs_rows_is_refused(words: list[str], message: str, tmp_path: Path) -> None:
    shards = [] if words[0].startswith("one_pass") else ["one_pass.shards=4"]
    with pytest.raises(ConfigError, match=message):
        Experiment(composed(*shards, *words, f"cache.folder={tmp_path}")).run(tmp_path)


class MeanNorm(WordNorm):
    """Offers a form by its method."""

    def sum_form(self) -> SumForm:
        return MeanNormSums()


class MeanNormSums(SumForm):
    def addends(self, batch: Batch) -> dict[str, torch.Tensor]:
        return {"rows": batch.lengths.sum(), "norms": batch.norms.sum()}

    def statistics(self, sums: Sums) -> dict[str, float]:
        return {"raw": float(sums.overall["norms"] / sums.overall["rows"])}


@pytest.mark.parametrize(
    "make",
    [*METRICS.values(), MeanNorm, *(registry().find("metric", name).factory for name in SPECTRA)],
)
def test_a_metrics_form_in_sums_is_held_to_its_groups(make: Callable[[], Metric]) -> None:
    check_sum_form(make)


@pytest.mark.parametrize("unit_norm", [False, True])
def test_a_mean_that_is_rounding_has_no_direction(unit_norm: bool) -> None:
    """Whatever the scale: as the stored form has it, of the same rows in float32."""
    form, a = sum_form(IntraSentenceSimilarity(unit_norm=unit_norm)), np.random.default_rng(0).normal(size=6)
    for scale, excess in ((1, 1e-7), (1e6, 1e-7), (1e-6, 1e-7), (1e-6, 1e-5)):
        x = scale * np.stack([a, -a * (1 + excess)])
        batch = Batch(torch.from_numpy(x), torch.zeros(2, dtype=torch.long), 1)
        sums = Sums(np.zeros(1, np.int64), overall={k: v.numpy() for k, v in form.addends(batch).items()})
        expected = mean_cosine_to_mean(x.astype(np.float32), unit_norm=unit_norm)
        assert form.statistics(sums)["undefined"] == np.isnan(expected) == (excess < 1e-6 or unit_norm)


class Odd(Hashed):
    """What is no encoder's way, as asked for."""

    def __init__(self, way: str) -> None:
        self.way = way

    def encode_tensors(self, batch: Sequence[Sentence]) -> list[tuple[tuple[str, ...], torch.Tensor]]:
        found = [(one.units, torch.from_numpy(one.layers)) for one in self.encode(batch)]
        if self.way == "units":
            return [(tuple(f"#{unit}" for unit in units), x) for units, x in found]
        if self.way == "infinite":
            return [(units, x / 0) for units, x in found]
        return found[1:] if self.way == "fewer" else [(units, x[:1]) for units, x in found]


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("units", "gave the unit '#w.*', which is no word of"),
        ("fewer", "gave .* results for .* sentences; expected one each"),
        ("layers", r"gave vectors of shape \(1, .* expected \(2, "),
        ("infinite", "gave NaN or infinite values in a batch that begins with"),
    ],
)
def test_odd_encoders_are_named(way: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match=f"encoder 'hashed' {message}"):
        in_one_pass(tmp_path, corpus(20), Odd(way))


@pytest.mark.nightly
def test_intervals_of_shards_have_about_the_right_width() -> None:
    from benchmarks.interval_coverage import coverage, of_shards, planted

    words = 0.8 * np.random.default_rng(0).normal(size=(15, 8))
    texts = [planted(np.random.default_rng(i), words, n=120, size=(4, 4), topics=0) for i in range(20)]
    found = coverage([of_shards(text, 12, bootstrap=100) for text in texts])
    assert {"self_similarity/share_of_room", "self_similarity/step", "anisotropy/mean_cosine"} <= found.keys()
    for key, (held, width) in found.items():
        assert ((width > 0.65) & (width < 1.9)).all(), (key, width)
        assert (held > 0.7).all(), (key, held)
