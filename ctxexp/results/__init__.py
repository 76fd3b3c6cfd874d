"""What a run yields: a frame of values, tables, and the choices behind them; on disk before anywhere else."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from ctxexp.errors import MetricError, TrackingError, near
from ctxexp.files.arrays import NO_ARCHIVE, read_npz
from ctxexp.files.manifest import damaged
from ctxexp.files.paths import user_path
from ctxexp.files.tables import read_csv, types, write_csv
from ctxexp.files.writing import replacing, write_text
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import LAYER, Held, Key, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FILE, FRAME, REPLICATES = "results.json", "results.parquet", "replicates.npz"
FORMAT = 2  # of these files


@dataclass(frozen=True, eq=False)
class Results:
    """What a run measured.

    `frame` has a row a value: measure, task, statistic, place, layer, value, low, high, n. `place` is `layer`, or the
    name of a mix of layers or an embedding table, where `layer` is missing. `low` and `high` are the ends of the 95%
    interval, `n` how many groups the value is over; NaN where there is none. Statistics of a group-mean measure: raw,
    baseline, adjusted (raw - baseline), median, sd, n (groups with a score), undefined (groups without one); with the
    size-matched chance level also size_matched_baseline and size_matched_adjusted. Of the cosine measures, beside each
    adjusted, corrected: adjusted / (1 - baseline), with corrected_undefined where a layer leaves no room above its
    baseline. Of anisotropy: mean_cosine. Of word_norm: raw, sd, ...

    `tables` are what metrics tell of words, sentences or sub-sets. `replicates` holds bootstrap replicates of some
    curves, (n_layers, r) float32, and scalars, (r,): runs on the same text with the same seed drew the same resamples.
    `info` says what the run was.
    """

    frame: pd.DataFrame = field(default_factory=lambda: Values().frame())
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    replicates: Mapping[Key, np.ndarray] = field(default_factory=dict)
    info: RunInfo = field(default_factory=RunInfo)

    @classmethod
    def of(
        cls, values: Values, *, tables: Mapping[str, pd.DataFrame] | None = None, info: RunInfo | None = None
    ) -> Results:
        """The results that hold these values, a curve's of all layers; the frame has those that were measured."""
        info = info or RunInfo()
        return cls(values.frame(info.model.layers), dict(tables or {}), dict(values.replicates), info)

    @cached_property
    def held(self) -> dict[Key, Held]:
        """The frame by key, in order of appearance: what looks values up."""
        where: dict[Key, list[int]] = {}
        few, n = self.info.model.layers, self.info.model.n_layers
        names = (self.frame[column] for column in ("measure", "statistic", "task", "place"))
        for row, key in enumerate(zip(*names, strict=True)):
            where.setdefault(Key(*key), []).append(row)
        numbers = self.frame[["value", "low", "high"]].to_numpy(np.float64)
        found = {key: Held(*numbers[rows].T) for key, rows in where.items()}
        return found if not few else Values(found).at(few, n).held

    @cached_property
    def named(self) -> dict[str, np.ndarray]:
        """Every value under the name that sinks give it, (n_layers,) by layer and (1,) elsewhere.

        `measure/task/statistic` or `measure.place/task/statistic`; the ends of intervals have `_ci_low` and `_ci_high`
        behind it. Nobody takes a name apart.
        """
        found = {}
        for key, held in self.held.items():
            found[str(key)] = held.value
            if np.isfinite(held.low).any():
                found |= {f"{key}_ci_low": held.low, f"{key}_ci_high": held.high}
        return found

    @property
    def n_layers(self) -> int:
        longest = max((len(held.value) for key, held in self.held.items() if key.place == LAYER), default=0)
        return self.info.model.n_layers or longest

    def measured(self, key: Key) -> np.ndarray:
        """The values of a curve in the layers that were measured."""
        values = self.held[key].value
        return values[list(self.info.model.layers)] if self.info.model.layers else values

    def measures(self) -> list[str]:
        """The measures that have curves, in order of appearance."""
        return list(dict.fromkeys(key.measure for key in self.held if key.place == LAYER))

    def subjects(self) -> list[tuple[str, str]]:
        """The measures that have curves with their tasks ("": none), in order of appearance."""
        return list(dict.fromkeys((key.measure, key.task) for key in self.held if key.place == LAYER))

    @overload
    def values(self, measure: str, statistic: str, *, task: str = "") -> np.ndarray | None: ...
    @overload
    def values(self, measure: str, statistic: str, *, task: str = "", place: str) -> np.ndarray | float | None: ...
    def values(self, measure: str, statistic: str, *, task: str = "", place: str = LAYER) -> np.ndarray | float | None:
        """A curve (n_layers,), NaN where undefined; of a place off the layers one number; None if there is none."""
        held = self.held.get(Key(measure, statistic, task, place))
        if held is None:
            return None
        return held.value if place == LAYER else float(held.value[0])

    def interval(
        self, measure: str, statistic: str, *, task: str = "", place: str = LAYER
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Low and high ends of the 95% intervals, (n_layers,) each, (1,) off the layers; None if there are none."""
        held = self.held.get(Key(measure, statistic, task, place))
        return (held.low, held.high) if held is not None and np.isfinite(held.low).any() else None

    def curve(self, measure: str, statistic: str = "raw", *, task: str = "") -> pd.Series:
        """One curve by layer. Raises MetricError naming the curves that there are."""
        import pandas as pd

        key, values = Key(measure, statistic, task), self.values(measure, statistic, task=task)
        if values is None:
            curves = [str(each) for each in self.held if each.place == LAYER]
            raise MetricError(f"no curve {str(key)!r} in these results{near(str(key), curves)}")
        return pd.Series(values, index=pd.RangeIndex(len(values), name="layer"), name=str(key))

    def plot(self, measure: str | None = None) -> Figure:
        """One measure by layer with its interval; None: the overview. Raises MetricError naming the measures."""
        from ctxexp.report.comparison import Comparison
        from ctxexp.report.figures import run_figure

        figure = run_figure(self, measure) if measure else None
        if figure is None:
            return Comparison(((self.info.title or "run", self),)).plot(measure)
        return figure

    def __repr__(self) -> str:
        return f"<Results of {self.info.title or 'run'}: {', '.join(self.measures())} by {self.n_layers} layers>"

    def _repr_html_(self) -> str:
        """What was measured, and each measure's main curve by layer."""
        from ctxexp.report.comparison import Comparison

        label, told = self.info.title or "run", self.info
        head = f"{label}, {told.corpus.name}: {self.n_layers} layers, baseline {told.baseline.name or 'none'}"
        return f"<p>{escape(head)}</p>{Comparison(((label, self),))._repr_html_()}"

    def joined(self, others: Results) -> Results:
        """These results after `others` of the same run; what both say in `info` is the others'."""
        import pandas as pd

        frame = pd.concat([others.frame, self.frame], ignore_index=True)
        tables, replicates = {**others.tables, **self.tables}, {**others.replicates, **self.replicates}
        return Results(frame, tables, replicates, self.info | others.info)

    def save(self, folder: str | Path) -> None:
        """Write results.json, the frame and one CSV a table, atomically: a crash leaves the old file or none. A name
        that ends in `.csv` gets the frame alone. Raises MetricError for a table that couldn't be loaded by its name."""
        folder = user_path(folder)
        if folder.suffix.lower() == ".csv":
            write_csv(self.frame, folder)
            return
        if odd := _odd_name(self.tables):
            raise MetricError(odd)
        for name, table in self.tables.items():
            write_csv(table, folder / f"{name}.csv")
        if self.replicates:
            with replacing(folder / REPLICATES) as part, part.open("wb") as file:
                names = np.array(list(self.replicates), dtype=str)
                np.savez_compressed(file, *self.replicates.values(), keys=names)
        with replacing(folder / FRAME) as part:
            part.write_bytes(self.frame.to_parquet(engine="pyarrow", index=False))
        document = {
            "format": FORMAT,
            "info": self.info.to_json(),
            "tables": {name: types(table) for name, table in self.tables.items()},
            "values": [{**key._asdict(), **_ends(held)} for key, held in self.held.items()],
        }
        write_text(folder / FILE, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))

    @classmethod
    def load(cls, folder: Path) -> Results:
        """All of it back from disk.

        Raises TrackingError for a file that is missing, damaged since its folder was sealed, not of this kind, or
        written by a version of ctxexp whose files are of another format.
        """
        path = folder / FILE
        if not folder.is_dir():
            raise TrackingError(f"no folder {folder}: expected a run's, as in mlruns/results/<sweep>/<job>")
        if not path.is_file():  # a FIFO there would be waited for
            raise TrackingError(f"no {FILE} in {folder}: the run there never finished measuring")
        try:
            text = path.read_bytes().decode()
            if what := damaged(folder, (FILE, FRAME, REPLICATES)):
                raise ValueError(what)
            document = json.loads(text)
            if (found := document.get("format")) != FORMAT:
                raise TrackingError(f"{path} is of format {found}, this version reads {FORMAT}: run again")
            if odd := _odd_name(document["tables"]):  # another's path
                raise ValueError(odd)
            if what := damaged(folder, [f"{name}.csv" for name in document["tables"]]):
                raise ValueError(what)
            values = Values()
            for each in document["values"]:
                ends = {end: np.array([_from_json(v) for v in each.pop(end)]) for end in Held._fields if end in each}
                values.add(Key(**each), ends.pop("value"), **ends)
            tables = {name: read_csv(folder / f"{name}.csv", kinds) for name, kinds in document["tables"].items()}
            info = RunInfo.from_json(document["info"])
            return cls(values.frame(info.model.layers), tables, _replicates(folder / REPLICATES), info)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise TrackingError(f"{path} is not a results file of ctxexp: {error}") from error


def _odd_name(tables: Iterable[str]) -> str:
    """What is wrong with the first table's name that leads elsewhere or is no file's; empty if all are names."""
    odd = [name for name in tables if not re.fullmatch(r"[\w.-]+", name)]
    return f"a table's name is {odd[0][:100]!r}, expected letters, digits, _ . -" if odd else ""


def _ends(held: Held) -> dict[str, list[float | str | None]]:
    """The values, and their intervals if any is known, in JSON's types."""
    known = Held._fields if not np.isnan([held.low, held.high]).all() else ("value",)
    return {name: [_to_json(v) for v in getattr(held, name).tolist()] for name in known}


def _replicates(path: Path) -> dict[Key, np.ndarray]:
    if not path.exists():
        return {}
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        held = read_npz(path)
        return {Key(*key): held[f"arr_{i}"] for i, key in enumerate(held["keys"].tolist())}
    except (*NO_ARCHIVE, OSError, EOFError, ValueError, LookupError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def _to_json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _from_json(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
