"""Laws of what lies at both ends of a run. Data sets: words match their spans, gold refers to sentences of the
corpus, each build is the same. Engines: each worker builds its function once, every item's result comes back,
exceptions reach the caller. Sinks, with one in memory: each value arrives once, with its layer as step, however the
run ends.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from ctxexp.dataset import Corpus, check_gold, check_sentences
from ctxexp.engines import Engine
from ctxexp.files import digest_of, seal_folder
from ctxexp.results import Results
from ctxexp.results.values import Key, Values
from ctxexp.sinks import Run, Sink, Status, Sweep, SweepReport, SweepRow
from ctxexp.testing.report import Breach, Report, subject_and_factory, subject_label

VALUES = "each value once, the layer as its step"
ODD = "a naïve run — “quite” 漢字 \t(1/2)"
LONG = "x" * 20_000
ITEMS = 12


class MemorySink(Sink):
    """Keeps a run, its results and its status as attributes.

    Example:
        >>> check_sink(MemorySink).failures
        {}
    """

    run: Run | None = None
    results: Results | None = None
    files: tuple[str, ...] = ()
    status: str = ""
    error: str | None = None

    def start(self, run: Run) -> None:
        self.run, self.status = run, "RUNNING"

    def log(self, results: Results, folder: Path) -> None:
        self.results = results
        self.files = tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))

    def finish(self, status: Status, error: str | None = None) -> None:
        self.status, self.error = status, error

    def read(self) -> Iterable[tuple[str, int, float]]:
        frame = self.results.frame if self.results else Results().frame
        for row in frame.itertuples():
            if row.place == "layer":
                yield f"{row.measure}/{row.task}/{row.statistic}", int(row.layer), float(row.value)


def check_sink(make: Callable[[], Sink], *, name: str = "") -> Report:
    """The laws of `ctxexp.Sink`; raises ConformanceError naming each that is broken.

    The kit's runs go to folders of their own, which are the working folder too, and not to the store that
    MLFLOW_TRACKING_URI names; a sink with a server of its own gets them there.

    Example:
        >>> check_sink(MemorySink).failures
        {}
    """
    report = Report(name or subject_label("sink", make))
    with report.law("interface"):
        if not isinstance(sink := make(), Sink):
            raise Breach(f"expected a ctxexp.Sink, got {type(sink).__name__}")
    if report.failures:
        return report.conclude()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        contextlib.chdir(folder),
        patch.dict(os.environ),
    ):
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        kit = _Kit(make, Path(folder).resolve())
        with report.law("prepared before the first job"):
            _prepared(kit)
        if not report.failures:
            _laws(kit, report)
    return report.conclude()


def _laws(kit: _Kit, report: Report) -> None:
    for law, check in (
        ("a run from start to end", _whole),
        ("what it is given stays as it is", _untouched),
        (VALUES, _values),
        ("NaN and infinity are no numbers", _undefined),
        ("runs side by side", _side_by_side),
        ("a run that fails, is killed, or never started", _ends),
        ("odd names and long parameters", _odd),
        ("nothing measured", _nothing),
        ("resume", _resume),
        ("the end of a sweep", _sweep),
    ):
        with report.law(law):
            check(kit)
    if kit.blind:
        report.notes.append("it has no read(), so it is unchecked that each value arrives once, with its layer")


class _Kit:
    """Sinks, runs and results to try them with."""

    def __init__(self, make: Callable[[], Sink], store: Path) -> None:
        self.make, self.store, self.runs, self.blind = make, store, 0, False

    def run(self, name: str = "bert", *, sweep: str | None = None, params: Mapping[str, object] | None = None) -> Run:
        """A run with a folder of its own."""
        self.runs += 1
        folder = self.store / "results" / "kit" / f"{self.runs:03d}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("seed: 0\n", encoding="utf-8")
        return Run(
            name=name,
            key=f"key{self.runs}",
            id=f"{self.runs:032x}",
            folder=folder,
            tracking_folder=self.store,
            began_ms=1_700_000_000_000 + self.runs,
            params=params or {"seed": 0},
            sweep=sweep,
        )

    def sent(self, results: Results, run: Run | None = None) -> tuple[Sink, Run]:
        """A sink with a finished run that has these results, and the run."""
        sink, run = self.make(), run or self.run()
        sink.start(run)
        results.save(run.folder)
        seal_folder(run.folder)
        sink.log(results, run.folder)
        sink.finish("FINISHED")
        return sink, run

    def read(self, sink: Sink) -> dict[str, list[tuple[int, float]]] | None:
        """Layers and values by name, as the sink's destination holds them; None if it can't be read."""
        points = sink.read()
        if points is None:
            self.blind = True
            return None
        points_of: dict[str, list[tuple[int, float]]] = {}
        for name, layer, value in points:
            points_of.setdefault(name, []).append((int(layer), float(value)))
        return {name: sorted(values, key=lambda point: point[0]) for name, values in points_of.items()}

    def require(self, sink: Sink, results: Results) -> None:
        """Raise Breach unless the destination holds each curve's finite values once, at their layers."""
        points_of = self.read(sink)
        if points_of is None:
            return
        for key, (curve, _, _) in results.by_key.items():
            values = {layer: value for layer, value in enumerate(curve.tolist()) if math.isfinite(value)}
            if not values:
                continue  # whether it has a name there is the sink's
            names = [name for name, points in points_of.items() if dict(points) | values == dict(points)]
            twice = [
                name for name, points in points_of.items() if len(points) > len(dict(points)) and _meets(points, values)
            ]
            if twice:
                raise Breach(f"a value of {key} is there twice, under {twice[0]!r}")
            if not names and any(_meets(points, values) for points in points_of.values()):
                raise Breach(f"{key}: its values are not at their layers; the layer, from 0, is the step")
            if not names:
                raise Breach(f"{key}: its values are not there, or not to the last digit")
            undefined = set(range(len(curve))) - set(values)
            for layer, value in points_of[names[0]]:
                if layer in undefined and math.isfinite(value):
                    raise Breach(f"{key} is {curve[layer]} at layer {layer}, but there it is {value}, a number")


def _meets(points: list[tuple[int, float]], values: Mapping[int, float]) -> bool:
    """Whether the points are of this curve: two of its values are among them, or its only one."""
    return len({value for _, value in points} & set(values.values())) >= min(2, len(values))


def _results(seed: int = 0, **others: np.ndarray) -> Results:
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


def _prepared(kit: _Kit) -> None:
    arguments = kit.make().prepare_jobs(kit.store)
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise Breach(
            f"prepare_jobs() gave {arguments!r}; expected the arguments of the jobs' sinks by name, {{}} for none"
        )


def _whole(kit: _Kit) -> None:
    sink, _ = kit.sent(_results())
    metadata: object = sink.metadata()
    if not isinstance(metadata, Mapping) or not all(
        isinstance(part, str) for item in metadata.items() for part in item
    ):
        raise Breach(f"metadata() gave {metadata!r}; expected texts by name, {{}} for none")


def _untouched(kit: _Kit) -> None:
    results = _results()
    before = results.frame.copy()
    sink, run = kit.make(), kit.run()
    results.save(run.folder)
    (run.folder / "figures").mkdir()
    (run.folder / "figures" / "one.svg").write_text("<svg/>", encoding="utf-8")
    files = {path: digest_of(path) for path in run.folder.rglob("*") if path.is_file()}
    sink.start(run)
    sink.log(results, run.folder)
    sink.finish("FINISHED")
    if not results.frame.equals(before):
        raise Breach("log() changes the results that it is given; work on a copy")
    if {path: digest_of(path) for path in run.folder.rglob("*") if path.is_file()} != files:
        raise Breach("the run's folder has other files than before: write elsewhere, and change none")


def _values(kit: _Kit) -> None:
    results = _results(1)
    sink, _ = kit.sent(results)
    kit.require(sink, results)


def _undefined(kit: _Kit) -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 0.5, 0.25])
    results = _results(2, odd=odd, undefined=np.full(5, np.nan))
    sink, _ = kit.sent(results)
    kit.require(sink, results)


def _side_by_side(kit: _Kit) -> None:
    sinks, runs = [kit.make(), kit.make()], [kit.run("one"), kit.run("two")]
    results = [_results(3), _results(4)]
    for sink, run in zip(sinks, runs, strict=True):
        sink.start(run)
    for sink, run, own in zip(sinks, runs, results, strict=True):
        own.save(run.folder)
        sink.log(own, run.folder)
    for sink in sinks:
        sink.finish("FINISHED")
    for sink, own, other in zip(sinks, results, reversed(results), strict=True):
        kit.require(sink, own)
        values = dict(enumerate(other.curve("alpha").tolist()))
        if any(_meets(points, values) for points in (kit.read(sink) or {}).values()):
            raise Breach("one run has values of another: keep nothing in the class or the module")


def _ends(kit: _Kit) -> None:
    sink = kit.make()
    sink.start(kit.run())
    sink.finish("FAILED", "Traceback (most recent call last):\n  ...\nValueError: by purpose")
    sink = kit.make()
    sink.start(kit.run())
    sink.finish("KILLED", "interrupted (KeyboardInterrupt)")
    kit.make().finish("FAILED", "the store does not answer")  # as after a start that failed


def _odd(kit: _Kit) -> None:
    params = {"model": {"name": ODD, "layers": None, "sizes": [1, 2], "long": LONG}, "seed": 0, "rate": 0.5, "on": True}
    results = _results(5, **{"γ [x]/recall@5 (é)": np.arange(5) / 7 + 5})
    sink, _ = kit.sent(results, kit.run(ODD, params=params))
    kit.require(sink, results)


def _nothing(kit: _Kit) -> None:
    kit.sent(Results())


def _resume(kit: _Kit) -> None:
    results = _results(6)
    _, run = kit.sent(results)
    fresh = kit.store / "fetched"
    fresh.mkdir()
    if kit.make().fetch(kit.run(), fresh) or any(fresh.iterdir()):
        raise Breach("fetch() of a key that was never sent finds something")
    again = Run(**{**vars(kit.run(sweep="again")), "key": run.key})
    if kit.make().fetch(again, fresh) and Results.load(fresh).frame.to_csv() != results.frame.to_csv():
        raise Breach("fetch() gives other results than were sent")
    kit.make().reuse(again, run)


def _sweep(kit: _Kit) -> None:
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
    if not isinstance(link := first.charts_link(sweep), str):
        raise Breach(f"charts_link() gave {link!r}; expected a text, empty if there is no such place")


def check_dataset(
    make: Callable[[], Corpus] | Corpus, *, elsewhere: Callable[[], str] | None = None, name: str = ""
) -> Report:
    """The laws of `ctxexp.Corpus`; raises ConformanceError naming each that is broken.

    `elsewhere` gives the fingerprint that another process finds, where sets have another order.

    Example:
        >>> from ctxexp.command import registry
        >>> check_dataset(registry().find("dataset", "polysemy").factory).failures
        {}
    """
    corpus, again = subject_and_factory(make, Corpus)
    report = Report(name or subject_label("dataset", corpus))
    with report.law("interface"):
        _interface(corpus)
    if report.failures:
        return report.conclude()
    with report.law("spans"):
        check_sentences(corpus)
    with report.law("pairs and senses"):
        check_gold(corpus)
    if again is not None:
        with report.law("stable fingerprint"):
            other = again()
            if other.fingerprint != corpus.fingerprint or other.choices != corpus.choices or other.name != corpus.name:
                raise Breach(
                    "built twice, it has different sentences, name or choices: sort files and sets, seed what is drawn"
                )
    if elsewhere is not None:
        with report.law("the same in another process"):
            if elsewhere() != corpus.fingerprint:
                raise Breach("another process gets other sentences: is it the order of a set? Sort it")
    texts = len({s.text for s in corpus.sentences})
    report.notes.append(f"{len(corpus.sentences):,} sentences, {texts:,} distinct, {corpus.n_words:,} words")
    return report.conclude()


def _interface(corpus: Corpus) -> None:
    if not isinstance(corpus, Corpus):
        raise Breach(f"expected a ctxexp.Corpus, got {type(corpus).__name__}")
    if not isinstance(corpus.name, str) or not corpus.name.strip():
        raise Breach(f"name is {corpus.name!r}; expected a text for charts and tables")
    if not isinstance(corpus.sentences, tuple) or not corpus.n_words:
        raise Breach("it has no words; expected a tuple of sentences")
    wrong = {k: v for k, v in corpus.choices.items() if not isinstance(k, str) or not isinstance(v, str)}
    if wrong:
        raise Breach(f"choices are texts by name, got {wrong}")


def check_engine(make: Callable[[], Engine], *, name: str = "") -> Report:
    """The laws of `ctxexp.engines.Engine`; raises ConformanceError naming each that is broken.

    An engine of several workers starts them, each a process of its own.

    Example:
        >>> from ctxexp.command import registry
        >>> check_engine(registry().find("engine", "local").factory).failures
        {}
    """
    report = Report(name or subject_label("engine", make))
    with report.law("interface"):
        engine = make()
        if not isinstance(engine, Engine):
            raise Breach(f"it built {type(engine).__name__}; expected a ctxexp.engines.Engine")
        if not engine.name:
            raise Breach("name is empty; configs choose an engine by it")
        if engine.workers < 1 or engine.shard_tokens < 1:
            raise Breach(f"workers={engine.workers}, shard_tokens={engine.shard_tokens}: expected at least 1 of each")
    if report.failures:
        return report.conclude()
    with report.law("every item's result comes back once"):
        results = Counter(engine.map_unordered(_Squares, range(ITEMS)))
        if results != Counter(i * i for i in range(ITEMS)):
            raise Breach(f"map_unordered() of the squares below {ITEMS}² gave {sorted(results.elements())}")
    with report.law("no item, no result"):
        if list(engine.map_unordered(_Squares, [])):
            raise Breach("map_unordered() gave results for an empty list of items")
    with report.law("the work is made by workers, not for every item"):
        counts = set(engine.map_unordered(_CallCount, range(ITEMS)))
        if max(counts) == 0:
            raise Breach("map_unordered() made the work anew for every item: a worker would load its model as often")
    with report.law("what the work raises is raised"):
        try:
            list(engine.map_unordered(partial(_RaiseAt, ITEMS // 2), range(ITEMS)))
        except LookupError as error:
            if "no such number" not in str(error):
                raise Breach(f"another error arrived: {error}") from None
        else:
            raise Breach("map_unordered() went on after the work had raised an error")
    return report.conclude()


class _Squares:
    def __call__(self, item: int) -> int:
        return item * item


class _CallCount:
    """Returns the number of items that the same worker did before."""

    def __init__(self) -> None:
        self.done = -1

    def __call__(self, item: int) -> int:
        self.done += 1
        return self.done


class _RaiseAt:
    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, item: int) -> int:
        if item == self.at:
            raise LookupError("no such number")
        return item
