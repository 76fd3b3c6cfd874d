"""The results of a run: a frame of values, tables, and the choices behind them; and the curve that stands for a
measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ctxexp.errors import MetricError, near
from ctxexp.files import user_path
from ctxexp.maths.resampling import interval
from ctxexp.results.files import read_findings, read_results, write_findings, write_results
from ctxexp.results.finding import Finding
from ctxexp.results.run_info import MixInfo, RunInfo
from ctxexp.results.values import LAYER, Estimates, Key, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AVERAGED = ("word", "sense")  # what a mean over words is over
OVER_WORDS = (*AVERAGED, "text")  # what a measure is over that the mix of words weighs
CONTEXTUALITY = "contextuality"
LEADING = (CONTEXTUALITY, "self_similarity")  # the first of these that was measured leads: a run's sentence is of it
MEANT = {  # what others' names mean here, by them
    **dict.fromkeys(("df", "data", "dataframe", "table", "to_pandas", "to_frame"), "results.frame"),
    **dict.fromkeys(("to_csv", "write_csv", "export"), 'results.save("results.csv")'),
    **dict.fromkeys(("show", "figure", "draw"), "results.plot(), or print(results)"),
    **dict.fromkeys(("intervals", "ci", "conf_int", "low", "high"), 'results.frame[["layer", "value", "low", "high"]]'),
    **dict.fromkeys(("words", "by_word", "word"), 'results.tables["self_similarity"], a row a word'),
    **dict.fromkeys(("open", "html", "to_html"), "results.report()"),
}
NEVER_MAIN = ("n", "undefined", "sd", "baseline", "share_of_room_undefined")


@dataclass(frozen=True, eq=False)
class Results:
    """The values, tables and metadata of a run.

    `frame` has a row a value: measure, task, statistic, place, layer, value, low, high, n. `place` is `layer`, or the
    name of a mix of layers or an embedding table, where `layer` is missing. `low` and `high` are the ends of the 95%
    interval, `n` how many groups the value is over; NaN where there is none. Statistics of a group-mean measure: raw,
    baseline, adjusted (raw - baseline), median, sd, n (groups with a score), undefined (groups without one); by each
    further baseline of the metric also <its name>_baseline and <its name>_adjusted. Of measures that are at most 1,
    beside each adjusted, share_of_room: adjusted / (1 - baseline), with share_of_room_undefined where a layer leaves no
    room above its baseline. `tables` are those of metrics, of words, sentences or sub-sets. `replicates` are bootstrap
    values of some curves, (n_layers, r) float32, and scalars, (r,): runs on the same text with the same seed drew the
    same resamples. `info` is the run's metadata.

    Example:
        >>> values = Values()
        >>> values.set(Key("self_similarity", "raw"), np.array([0.9, 0.5]))
        >>> results = Results.of(values)
        >>> results.by_name["self_similarity/raw"].tolist(), results.n_layers
        ([0.9, 0.5], 2)
    """

    frame: pd.DataFrame = field(default_factory=lambda: Values().frame())
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    replicates: Mapping[Key, np.ndarray] = field(default_factory=dict)
    info: RunInfo = field(default_factory=RunInfo)

    @classmethod
    def of(
        cls, values: Values, *, tables: Mapping[str, pd.DataFrame] | None = None, info: RunInfo | None = None
    ) -> Results:
        """The results that hold these values.

        Args:
            values: Curves and scalars by key, a curve's of all layers; the frame has those that were measured.
            tables: Tables by name.
            info: The run's metadata.

        Returns:
            The results.
        """
        info = info or RunInfo()
        return cls(values.frame(info.model.layers), dict(tables or {}), dict(values.replicates), info)

    @cached_property
    def by_key(self) -> dict[Key, Estimates]:
        """The frame's values and interval ends by key, in order of appearance."""
        values, few = Values.of(self.frame), self.info.model.layers
        return values.expand_layers(few, self.info.model.n_layers).by_key if few else values.by_key

    @cached_property
    def by_name(self) -> dict[str, np.ndarray]:
        """Every value under the name that sinks give it, (n_layers,) by layer and (1,) elsewhere.

        `measure/task/statistic` or `measure.place/task/statistic`; `_ci_low`, `_ci_high` behind: ends of intervals.
        """
        curves = {}
        for key, estimates in self.by_key.items():
            curves[str(key)] = estimates.value
            if np.isfinite(estimates.low).any():
                curves |= {f"{key}_ci_low": estimates.low, f"{key}_ci_high": estimates.high}
        return curves

    @property
    def n_layers(self) -> int:
        longest = max((len(estimates.value) for key, estimates in self.by_key.items() if key.place == LAYER), default=0)
        return self.info.model.n_layers or longest

    def measures(self) -> list[str]:
        """The measures that have curves.

        Returns:
            Their names, in order of appearance.

        Example:
            >>> Results().measures()
            []
        """
        return list(dict.fromkeys(key.measure for key in self.by_key if key.place == LAYER))

    def measure_tasks(self) -> list[tuple[str, str]]:
        """The measures that have curves, with their tasks.

        Returns:
            Pairs of measure and task ("": none), in order of appearance.

        Example:
            >>> values = Values()
            >>> values.set(Key("sts", "all", task="STS12"), np.array([50.0]))
            >>> Results.of(values).measure_tasks()
            [('sts', 'STS12')]
        """
        return list(dict.fromkeys((key.measure, key.task) for key in self.by_key if key.place == LAYER))

    def curve(self, measure: str, statistic: str = "", *, task: str = "") -> pd.Series:
        """One curve by layer.

        Args:
            measure: The measure's name.
            statistic: Its statistic; "": the one that figures show.
            task: The task; "": none.

        Returns:
            The values by layer.

        Raises:
            MetricError: There is none; the message names the curves that there are.

        Example:
            >>> values = Values()
            >>> values.set(Key("self_similarity", "raw"), np.array([0.9, 0.5]))
            >>> values.set(Key("self_similarity", "adjusted"), np.array([0.75, 0.25]))
            >>> results = Results.of(values)
            >>> results.curve("self_similarity").tolist(), results.curve("self_similarity", "raw").tolist()
            ([0.75, 0.25], [0.9, 0.5])
        """
        import pandas as pd

        key = Key.of(measure, statistic, task)
        if not statistic:
            key = main_key(self, measure, task) or key
        if key not in self.by_key:
            curves = [each for each in self.by_key if each.place == LAYER]
            names = {str(each) if statistic else each.curve_name for each in curves}
            name = str(key) if statistic else key.curve_name
            raise MetricError(f"no curve {name!r} in these results{near(name, names)}")
        values = self.by_key[key].value
        return pd.Series(values, index=pd.RangeIndex(len(values), name="layer"), name=str(key))

    def __getitem__(self, name: str | tuple[str, str]) -> pd.Series:
        """The main curve of a measure by layer, or one of its statistics: `results["self_similarity", "raw"]`, or
        `results["self_similarity/raw"]`, as messages write it."""
        parts = name if isinstance(name, tuple) else (name,)
        if isinstance(name, str) and Key.of(*name.rpartition("/")[::2]) in self.by_key:
            parts = name.rpartition("/")[::2]
        return self.curve(*map(str, parts))

    def __iter__(self) -> Iterator[str]:
        """The measures' names."""
        return iter(self.measures())

    @cached_property
    def finding_by_key(self) -> dict[Key, Finding]:
        """The findings on the main curves, the leading measure's first: computed once, then saved and read back."""
        return {key: _report("findings").finding_of(self, key) for key in self.main_keys}

    def finding(self, key: Key) -> Finding:
        """The finding on a curve by layer, a main one or another."""
        return self.finding_by_key.get(key) or _report("findings").finding_of(self, key)

    @property
    def doubts(self) -> list[str]:
        """What the leading curve rests on, and what makes it shaky, a sentence each."""
        return [doubt for each in self.finding_by_key.values() for doubt in each.doubts]

    @property
    def sentence(self) -> str:
        """What was found, in a sentence: how the leading measure goes from layer to layer, where the data show it."""
        return next(iter(self.findings()), "")

    def findings(self, label: str = "") -> list[str]:
        """What was found, a sentence a measure: how its main curve goes from layer to layer, where the data show it.

        Args:
            label: The run's name in the sentences; "": its title.

        Returns:
            The sentences, the leading measure's first.

        Example:
            >>> values = Values()
            >>> values.set(Key("anisotropy", "raw"), np.array([0.5, 0.25]))
            >>> Results.of(values).findings("mine")
            ['Anisotropy in mine: without an interval no change is claimed (0.50, 0.25 at layers 0, 1).']
        """
        return [each.sentence(label or self.info.title or "this run") for each in self.finding_by_key.values()]

    def controls(self, label: str = "", measures: Iterable[str] | None = None) -> list[str]:
        """The negative controls that the run has by itself (no context, or no training).

        Args:
            label: The run's name in the lines; "": its title.
            measures: The measures; None: all.

        Returns:
            A line a main curve, its last layer beside what each control gives there; and one on further controls, which
            need runs of their own. None of a run that is itself a control.

        Example:
            >>> Results().controls()
            []
        """
        curves = _report("reference_curves")
        lines = curves.control_lines([(label or self.info.title or "run", self)], measures)
        return [*lines, *filter(None, [curves.controls_of_run(self)])]

    def twin(self, measure: str, control: str, runs: Iterable[tuple[str, Results]]) -> Results | None:
        """The first of the labelled runs that is this control of the run (`untrained`, `alone`, `shuffled`,
        `vector_a_word`), by the same measure; None without one."""
        about = self.info.measure(measure)
        found = (other for _, other in runs if self.info.control_by(other.info) == control)
        return next((other for other in found if other.info.measure(measure) == about), None)

    def summary(self) -> pd.DataFrame:
        """The main curve of each measure, as `curve(measure)`.

        Returns:
            A row a layer, a column a measure.

        Example:
            >>> values = Values()
            >>> values.set(Key("anisotropy", "mean_cosine"), np.array([0.5, 0.25]))
            >>> Results.of(values).summary()["anisotropy"].tolist()
            [0.5, 0.25]
        """
        import pandas as pd

        curves = {
            Key(measure, "", task).curve_name: self.curve(measure, task=task) for measure, task in self.measure_tasks()
        }
        layers = list(self.info.model.layers or range(self.n_layers))
        return pd.DataFrame(curves, index=pd.Index(layers, name="layer"))

    @property
    def main_keys(self) -> list[Key]:
        """The curve by layer of each measure and task that stands for it: the one that its metric names, adjusted or
        raw; those of the leading measures first, those without a value last."""
        every = (main_key(self, *measure_task) for measure_task in self.measure_tasks())
        keys = [key for key in every if key and key.name in main_statistics(self, key.measure)]
        has_value = {key: bool(np.isfinite(self.by_key[key].value).any()) for key in keys}
        return sorted(keys, key=lambda key: [not has_value[key], *(key.measure != name for name in LEADING)])

    def difference(
        self, other: Results, key: Key, *, layers: Sequence[int] | None = None, others: Sequence[int] | None = None
    ) -> Estimates:
        """One of this run's curves minus that of another, layer by layer, with a 95% interval of the difference.

        Runs over one corpus with one seed drew the same documents, sentences or pairs (`RunInfo.shares_resamples`).
        Chance effects of these on both curves then cancel, so that curves whose own intervals overlap may still differ
        for certain. Otherwise replicates are paired at random, as of independent runs.

        Args:
            other: The other run, or the same.
            key: A curve of both.
            layers: The layers to compare; None: all; negative ones count from the last.
            others: The other run's layers; None: the same ones.

        Returns:
            The difference and its interval, (n,) each; NaN where that isn't known.

        Example:
            >>> values = Values()
            >>> values.set(Key("anisotropy", "mean_cosine"), np.array([0.5, 0.25]))
            >>> run = Results.of(values)
            >>> run.difference(run, Key("anisotropy", "mean_cosine"), layers=[1], others=[0]).value
            array([-0.25])
        """
        a, b = self.by_key[key].value, other.by_key[key].value
        at = list(range(min(len(a), len(b))) if layers is None else layers)
        against = at if others is None else list(others)
        value = a[at] - b[against]
        x, y = self.replicates.get(key), other.replicates.get(key)
        if x is None or y is None or x.shape[1] != y.shape[1]:
            nothing = np.full(len(value), np.nan)
            return Estimates(value, nothing, nothing)
        x, y = x[at].astype(np.float64), y[against].astype(np.float64)
        if not self.info.shares_resamples(other.info):
            y = y[:, np.random.default_rng(len(y)).permutation(y.shape[1])]
        return Estimates(value, *interval(x - y))

    def plot(self, measure: str | None = None, *, ax: Axes | None = None) -> Figure:
        """One measure by layer with its interval.

        Args:
            measure: The measure's name; None: the overview, or the leading measure where `ax` is given.
            ax: Axes of matplotlib to draw on, without the texts around; None: a figure of its own.

        Returns:
            A matplotlib figure; a notebook shows it.

        Raises:
            MetricError: There is none; the message names the measures.

        Example:
            >>> values = Values()
            >>> values.set(Key("anisotropy", "mean_cosine"), np.array([0.5, 0.25]))
            >>> Results.of(values).plot("anisotropy").savefig("anisotropy.png")
        """
        return _report("comparison").run_plot(self, measure, ax)

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the interactive page of this run, which fetches nothing; `ctxexp.compare(...).report()` is of several.

        Args:
            path: The page's file.

        Returns:
            Its path.

        Example:
            >>> Results().report("mine.html").name
            'mine.html'
        """
        return _report("comparison").of_run(self).report(path)

    def __repr__(self) -> str:
        return f"<Results of {self.info.title or 'run'}: {', '.join(self.measures())} by {self.n_layers} layers>"

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.summary().round(3).to_string()}"

    def __getattr__(self, name: str) -> NoReturn:
        """Raise AttributeError with the public names, for a first guess such as `results.to_csv()`."""
        names = [each for each in (*dir(type(self)), *self.__dataclass_fields__) if not each.startswith("_")]
        hint = f"; did you mean {MEANT[name]}?" if name in MEANT else near(name, names)
        if not name.startswith("_") and "frame" in self.__dict__ and name in self.frame.measure.array:
            hint = f"; did you mean results[{name!r}]?"
        raise AttributeError(f"Results has no {name!r}{hint}", name=name, obj=self)

    def _repr_html_(self) -> str:
        """The sentence, the leading measure's figure and each measure's main curve by layer, for a notebook."""
        return _report("comparison").run_html(self)

    def save(self, folder: str | Path = "results") -> Path:
        """Write results.json, the frame and one CSV a table, atomically: a crash leaves the old file or none.

        Args:
            folder: The folder; a name that ends in `.csv` gets the frame alone.

        Returns:
            Its path.

        Raises:
            MetricError: It is a file's name of another kind, or a table couldn't be loaded by its name.

        Example:
            >>> Results().save("results.csv").read_text().strip()
            'measure,task,statistic,place,layer,value,low,high,n'
        """
        path = user_path(folder)
        write_results(path, self.frame, self.tables, self.replicates, self.info)
        if path.is_dir():
            write_findings(path, self.finding_by_key.values())
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read all of it back from disk.

        Args:
            folder: The folder that `save` wrote.

        Returns:
            The results.

        Raises:
            TrackingError: A file is missing, damaged since its folder was sealed, not of this kind, or of another
                version's format.

        Example:
            >>> Results.load(Results().save("folder"))
            <Results of run:  by 0 layers>
        """
        results = cls(*read_results(user_path(folder)))
        if findings := read_findings(user_path(folder)):  # folders of older versions have none
            results.__dict__["finding_by_key"] = findings
        return results


def _report(module: str) -> Any:
    """A module of `ctxexp.report`, imported once something is shown: it has all that draws figures, and stands on this
    room."""
    return import_module(f"ctxexp.report.{module}")


def main_statistics(results: Results, measure: str) -> tuple[str, ...]:
    """The statistics that may stand for the measure, the first first: beside the paper's curves adjusted, as there; the
    one that its metric names, if it names one; adjusted, raw."""
    own = results.info.measure(measure).main
    wanted = [own, "adjusted", "raw"] if own else ["adjusted", "raw"]
    return ("adjusted", *wanted) if results.info.published else tuple(wanted)


def main_key(results: Results, measure: str, task: str = "", *, wanted: str = "") -> Key | None:
    """The curve that stands for the measure: of `wanted` and its main statistics the first with a finite value, or else
    the first; for a measure without any of these, so of the others (no count, spread or level). None if there is none.
    """
    main = [Key.of(measure, statistic, task) for statistic in (wanted, *main_statistics(results, measure))]
    others = [Key.of(measure, key.name, task) for key in results.by_key if may_be_main(key)]
    # what is undefined stays so: no other statistic stands in for it
    keys = [key for key in main if key in results.by_key] or [key for key in others if key in results.by_key]
    return next((key for key in keys if np.isfinite(results.by_key[key].value).any()), next(iter(keys), None))


def keys_beside(results: Results, key: Key) -> dict[str, Key]:
    """The keys of the curves that stand beside one in a table, by their names there: raw and chance."""
    if key.statistic not in ("adjusted", "share_of_room", "raw"):
        return {}
    keys = {name: key._replace(statistic=name.replace("chance", "baseline")) for name in ("raw", "chance")}
    return {name: other for name, other in keys.items() if other != key and other in results.by_key}


def mix_mark(results: Results, measure: str) -> str:
    """What tells a mean over words of a text that doesn't fill all bands of frequency from one that does: `2 of 3
    bands`; empty for a text that does, and for other measures."""
    return own_mix(results, measure).mark if results.info.measure(measure).over in OVER_WORDS else ""


def own_mix(results: Results, measure: str) -> MixInfo:
    """The weights of words in a measure's mean, with the bands that it fills, which may be fewer than the text's."""
    mix, own = results.info.mix, results.by_key.get(Key(measure, "bands"))
    if own is not None and np.isfinite(own.value).any():
        mix = replace(mix, filled=tuple(i < np.nanmax(own.value) for i in range(len(mix.filled))))
    return mix


def may_be_main(key: Key) -> bool:
    """Whether a curve may stand for its measure: no count, no spread, no baseline, and nothing by a second baseline."""
    return not key.baseline and key.statistic not in NEVER_MAIN
