"""Laws of sinks and data sets."""

from __future__ import annotations

import contextlib
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
    """The laws of `ctxexp.Sink`; raises ConformanceError naming each that is broken. What arrives at the destination is
    not looked at.

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
        report = report_on("sink", make, name).check(kit, quick_before_the_first_job)
        return report.check(kit, odd_names_and_values, every_end_of_a_run, the_end_of_a_sweep)


class _Runs:
    """Sinks, runs and results to try them with."""

    def __init__(self, make: Callable[[], Sink], folder: Path) -> None:
        self.make, self.folder, self.runs = make, folder, 0

    def run(self, name: str = "bert", *, params: Mapping[str, object] | None = None, **more: Any) -> Run:
        """A run with a folder of its own."""
        self.runs += 1
        folder = self.folder / "results" / "kit" / f"{self.runs:03d}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("seed: 0\n", encoding="utf-8")
        return Run(
            name=name,
            key=f"key{self.runs}",
            id=f"{self.runs:032x}",
            folder=folder,
            tracking_folder=self.folder,
            began_ms=1_700_000_000_000 + self.runs,
            params=params or {"seed": 0},
            **more,
        )

    def sent(self, sink: Sink, results: Results, run: Run) -> Mapping[str, str]:
        """What the sink says of the run that has these results. Raises Breach if it changes what it is given."""
        results.save(run.folder)
        seal_folder(run.folder)
        before, files = results.frame.copy(), _digests(run.folder)
        metadata: object = sink.send(run, results)
        require(results.frame.equals(before), "send() changes the results that it is given; work on a copy")
        same = _digests(run.folder) == files
        require(same, "the run's folder has other files than before: write elsewhere, and change none")
        if not isinstance(metadata, Mapping) or not all(isinstance(p, str) for item in metadata.items() for p in item):
            raise Breach(f"send() gave {metadata!r}; expected texts by name, {{}} for none")
        return metadata


def _digests(folder: Path) -> dict[Path, str]:
    return {path: digest_of(path) for path in folder.rglob("*") if path.is_file()}


def _results() -> Results:
    """Curves with a gap, without a number, with infinity, and with an odd name."""
    values, curve = Values(), np.linspace(0.1, 0.9, 5)
    values.set(Key("alpha", "raw"), curve)
    values.set(Key("alpha", "adjusted"), np.where(curve == curve[1], np.nan, curve))
    values.set(Key("beta", "mean_cosine", task="one"), np.full(5, np.nan))
    values.set(Key("γ [x]", "recall@5 (é)"), np.array([np.nan, np.inf, -np.inf, 0.5, 0.25]))
    return Results.of(values)


def quick_before_the_first_job(kit: _Runs) -> None:
    sink: object = kit.make()
    if not isinstance(sink, Sink):
        raise Breach(f"expected a ctxexp.Sink, got {type(sink).__name__}")
    meant: object = sink.check(kit.folder)
    named = isinstance(meant, Mapping) and all(isinstance(part, str) for item in meant.items() for part in item)
    require(named, f"check() gave {meant!r}; expected texts by name that tell where runs go, {{}} for none")


def odd_names_and_values(kit: _Runs) -> None:
    """NaN and infinity are no numbers; names and parameters may be odd; a run that is sent may be used again."""
    params = {"model": {"name": ODD, "layers": None, "sizes": [1, 2], "long": "x" * 20_000}, "rate": 0.5, "on": True}
    run = kit.run(ODD, params=params)
    metadata = kit.sent(kit.make(), _results(), run)
    kit.make().send_again(replace(run, sweep="again"), _results(), metadata)


def every_end_of_a_run(kit: _Runs) -> None:
    """It measured nothing, it failed, or it was killed."""
    kit.sent(kit.make(), Results(), kit.run())
    error = "Traceback (most recent call last):\n  ...\nValueError: by purpose"
    for status in ("FAILED", "KILLED"):
        kit.make().send(kit.run(status=status, error=error), Results())


def the_end_of_a_sweep(kit: _Runs) -> None:
    sweep = Sweep("20260101-000000-abcdef", kit.folder, 1_700_000_000.0, ("model=a,b",))
    sink = kit.make()
    run, failed = kit.run("a", sweep=sweep.id), kit.run("b", sweep=sweep.id, status="FAILED", error="no such file")
    sent = [kit.sent(sink, _results(), run), sink.send(failed, Results())]
    rows = [
        SweepRow(one.name, [f"model={one.name}"], one.status, one.error, one.folder, one.name, one.folder)
        for one in (run, failed)
    ]
    sweep.summary.mkdir(parents=True)
    (sweep.summary / "report.html").write_text("<p>", encoding="utf-8")
    link: object = sink.send_sweep(sweep, SweepReport(rows, "FAILED", compared=[("a", _results())]), sent)
    require(isinstance(link, str), f"send_sweep() gave {link!r}; expected a link, empty if there is no such place")


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
