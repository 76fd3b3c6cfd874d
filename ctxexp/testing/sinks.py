"""Laws of sinks and data sets."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ctxexp.dataset import Corpus, check_corpus
from ctxexp.files import digest_of, seal_folder
from ctxexp.results import Results
from ctxexp.results.values import Key, Values
from ctxexp.sinks import Run, Sink, Sweep, SweepReport, SweepRow
from ctxexp.testing.report import Breach, Report, report_on, require, subject_and_factory

ODD = "a naïve run — “quite” 漢字 \t(1/2)"


def check_sink(make: Callable[[], Sink], *, name: str = "") -> Report:
    """The laws of `ctxexp.Sink`; raises ConformanceError naming each that is broken.

    The kit's runs go to folders of their own, which are the working folder too, and not to the store that
    MLFLOW_TRACKING_URI names; a sink with a server of its own gets them there.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        contextlib.chdir(folder),
        patch.dict(os.environ),
    ):
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        kit = _Runs(make, Path(folder).resolve())
        report = report_on("sink", make, name).check(kit, prepared_before_the_first_job)
        report.check(kit, each_value_once_the_layer_as_its_step, runs_side_by_side, every_end_of_a_run)
        return report.check(kit, resume, the_end_of_a_sweep)


class _Runs:
    """Sinks, runs and results to try them with."""

    def __init__(self, make: Callable[[], Sink], store: Path) -> None:
        self.make, self.store, self.runs = make, store, 0

    def run(self, name: str = "bert", **choices: Any) -> Run:
        """A run with a folder of its own."""
        self.runs += 1
        folder = self.store / "results" / "kit" / f"{self.runs:03d}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("seed: 0\n", encoding="utf-8")
        run = Run(
            name=name,
            key=f"key{self.runs}",
            id=f"{self.runs:032x}",
            folder=folder,
            tracking_folder=self.store,
            began_ms=1_700_000_000_000 + self.runs,
            params={"seed": 0},
        )
        return replace(run, **choices)

    def sent(self, results: Results, run: Run | None = None) -> tuple[Sink, Run]:
        """A sink with a finished run that has these results, and the run. Raises Breach if it changes what it is
        given."""
        sink, run = self.make(), run or self.run()
        sink.start(run)
        results.save(run.folder)
        seal_folder(run.folder)
        before, files = results.frame.copy(), _digests(run.folder)
        sink.log(results, run.folder)
        sink.finish("FINISHED")
        require(results.frame.equals(before), "log() changes the results that it is given; work on a copy")
        same = _digests(run.folder) == files
        require(same, "the run's folder has other files than before: write elsewhere, and change none")
        return sink, run


def _digests(folder: Path) -> dict[Path, str]:
    return {path: digest_of(path) for path in folder.rglob("*") if path.is_file()}


def _require_held(sink: Sink, results: Results) -> None:
    """Raise Breach unless a destination that can be read holds each curve's finite values once, at their layers."""
    if (points := sink.read()) is None:
        return
    points_of: dict[str, list[tuple[int, float]]] = {}
    for name, layer, value in points:
        if math.isfinite(value):
            points_of.setdefault(name, []).append((int(layer), float(value)))
    curves = [sorted(points) for points in points_of.values()]
    for key, (curve, _, _) in results.by_key.items():
        values = [(layer, value) for layer, value in enumerate(curve.tolist()) if math.isfinite(value)]
        expected = "each finite value once, to the last digit, the layer, from 0, its step"
        require(not values or values in curves, f"{key}: no name there has its values; expected {expected}")


def _results(seed: int, **others: np.ndarray) -> Results:
    """Curves whose values are all different, one with a gap; `others` by their measure."""
    rng, values = np.random.default_rng(seed), Values()
    gap = rng.random(5) - 2
    gap[1] = np.nan
    values.set(Key("alpha", "raw"), rng.random(5))
    values.set(Key("alpha", "adjusted"), gap)
    values.set(Key("beta", "mean_cosine", task="one"), rng.random(5) + 2)
    for measure, curve in others.items():
        values.set(Key(measure, "raw"), curve)
    return Results.of(values)


def prepared_before_the_first_job(kit: _Runs) -> None:
    sink: object = kit.make()
    if not isinstance(sink, Sink):
        raise Breach(f"expected a ctxexp.Sink, got {type(sink).__name__}")
    arguments: object = sink.prepare_jobs(kit.store)
    named = isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments)
    require(named, f"prepare_jobs() gave {arguments!r}; expected arguments of the jobs' sinks by name, {{}} for none")


def each_value_once_the_layer_as_its_step(kit: _Runs) -> str | None:
    """NaN and infinity are no numbers; names and parameters may be odd."""
    odd = {
        "odd": np.array([np.nan, np.inf, -np.inf, 0.5, 0.25]),
        "undefined": np.full(5, np.nan),
        "γ [x]/recall@5 (é)": np.arange(5) / 7 + 5,
    }
    params = {"model": {"name": ODD, "layers": None, "sizes": [1, 2], "long": "x" * 20_000}, "rate": 0.5, "on": True}
    results = _results(1, **odd)
    sink, _ = kit.sent(results, kit.run(ODD, params=params))
    _require_held(sink, results)
    metadata: object = sink.metadata()
    texts = isinstance(metadata, Mapping) and all(isinstance(part, str) for item in metadata.items() for part in item)
    require(texts, f"metadata() gave {metadata!r}; expected texts by name, {{}} for none")
    unread = "it has no read(), so it is unchecked that each value arrives once, with its layer"
    return unread if sink.read() is None else None


def runs_side_by_side(kit: _Runs) -> None:
    sinks, runs, results = [kit.make(), kit.make()], [kit.run("one"), kit.run("two")], [_results(3), _results(4)]
    for sink, run in zip(sinks, runs, strict=True):
        sink.start(run)
    for sink, run, own in zip(sinks, runs, results, strict=True):
        own.save(run.folder)
        sink.log(own, run.folder)
    for sink in sinks:
        sink.finish("FINISHED")
    for sink, own, other in zip(sinks, results, reversed(results), strict=True):
        _require_held(sink, own)
        mixed = {value for _, _, value in sink.read() or ()} & set(other.curve("alpha").tolist())
        require(not mixed, "one run has values of another: keep nothing in the class or the module")


def every_end_of_a_run(kit: _Runs) -> None:
    """It measured nothing, it fails, it is killed, or its start failed."""
    kit.sent(Results())
    for status in ("FAILED", "KILLED"):
        sink = kit.make()
        sink.start(kit.run())
        sink.finish(status, "Traceback (most recent call last):\n  ...\nValueError: by purpose")
    kit.make().finish("FAILED", "the store does not answer")


def resume(kit: _Runs) -> None:
    _, run = kit.sent(_results(6))
    kit.make().reuse(kit.run(sweep="again", key=run.key), run)


def the_end_of_a_sweep(kit: _Runs) -> None:
    sweep = Sweep("20260101-000000-abcdef", kit.store, 1_700_000_000.0, ("model=a,b",))
    first = kit.make()
    first.prepare_jobs(kit.store)
    sink, run = kit.sent(_results(7), kit.run("a", sweep=sweep.id))
    failed = kit.run("b", sweep=sweep.id)
    rows = [
        SweepRow("a", ["model=a"], "FINISHED", None, run.folder, run.folder),
        SweepRow("b", ["model=b"], "FAILED", "no such checkpoint", failed.folder, failed.folder),
    ]
    sweep.summary.mkdir(parents=True)
    (sweep.summary / "report.html").write_text("<p>", encoding="utf-8")
    first.finish_sweep(sweep, SweepReport(rows, "FAILED", compared=[("a", _results(7))]), [sink.metadata(), {}])
    link: object = first.charts_link(sweep)
    require(isinstance(link, str), f"charts_link() gave {link!r}; expected a text, empty if there is no such place")


def check_dataset(
    make: Callable[[], Corpus] | Corpus, *, elsewhere: Callable[[], str] | None = None, name: str = ""
) -> Report:
    """The laws of `ctxexp.Corpus`; raises ConformanceError naming each that is broken.

    `elsewhere` gives the fingerprint that another process finds, where sets have another order.
    """
    corpus, again = subject_and_factory(make, Corpus)
    report = report_on("dataset", corpus, name).check(corpus, a_corpus)
    if again is not None:
        with report.law("the same when built again"):
            other = again()
            same = (other.fingerprint, other.choices, other.name) == (corpus.fingerprint, corpus.choices, corpus.name)
            require(same, "built twice, it has other sentences, name or choices: sort files and sets, seed draws")
    if elsewhere is not None:
        with report.law("the same in another process"):
            same = elsewhere() == corpus.fingerprint
            require(same, "another process gets other sentences: is it the order of a set? Sort it")
    return report.check(corpus)


def a_corpus(corpus: Corpus) -> str:
    if not isinstance(corpus, Corpus):
        raise Breach(f"expected a ctxexp.Corpus, got {type(corpus).__name__}")
    check_corpus(corpus)
    require(corpus.n_words, "it has no words")
    texts = len({s.text for s in corpus.sentences})
    return f"{len(corpus.sentences):,} sentences, {texts:,} distinct, {corpus.n_words:,} words"
