"""What a run yields: curves (a value per layer), tables, and the choices behind them; on disk before anywhere else."""

from __future__ import annotations

import csv
import json
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.errors import MetricError, TrackingError, near
from ctxexp.files.manifest import damaged
from ctxexp.files.writing import replacing, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("measure", "task", "statistic", "place", "layer", "value", "low", "high", "n")
INTERVAL = ("_ci_low", "_ci_high")
FILE, REPLICATES = "results.json", "replicates.npz"


@dataclass
class Table:
    """A table by columns; every column has the same length."""

    columns: dict[str, Sequence[Any]]

    def write_csv(self, path: Path) -> None:
        """Full precision, UTF-8, one header line; NaN as an empty cell."""
        with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in zip(*self.columns.values(), strict=True):
                writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in row])

    @classmethod
    def read_csv(cls, path: Path) -> Table:
        """What `write_csv` wrote: columns of whole numbers, of numbers (an empty cell is NaN), or of text."""
        with path.open(newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        return cls({name: _typed([row[i] for row in rows]) for i, name in enumerate(names)})

    def head(self, n: int) -> Table:
        return Table({name: column[:n] for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass
class Results:
    """Curves by key `<measure>/<statistic>`, each (n_layers,) float64, NaN where undefined.

    Statistics of a group-mean measure: raw, baseline, adjusted (raw - baseline), raw_ci_low, raw_ci_high,
    adjusted_ci_low, adjusted_ci_high, median, sd, n (groups with a score), undefined (groups without one); with the
    size-matched chance level also size_matched_baseline and size_matched_adjusted (and its _ci_low, _ci_high).
    Of anisotropy: mean_cosine, mean_cosine_ci_low, mean_cosine_ci_high. Of word_norm: raw, sd, ...

    `scalars` holds what has no layer, by the same kind of key: `<measure>.<mix>/<statistic>` of a named mix of layers,
    `<measure>.<table>/<statistic>` of an embedding table.

    `replicates` holds bootstrap replicates of some curves, (n_layers, r) float32, and scalars, (r,), by the same key.
    Runs on the same pairs with the same seed drew the same resamples.

    `info` holds what names the run: model (chart label), encoder (identity), n_layers, dim, corpus, fingerprint,
    baseline, seed, and per measure its definition and unit under `measures`. Only JSON types.
    """

    curves: dict[str, np.ndarray] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    replicates: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_layers(self) -> int:
        return int(self.info.get("n_layers") or max((len(c) for c in self.curves.values()), default=0))

    def measures(self) -> list[str]:
        """The measures that have curves, in order of appearance."""
        return list(dict.fromkeys(key.rsplit("/", 1)[0] for key in self.curves))

    def get(self, key: str) -> np.ndarray | None:
        return self.curves.get(key)

    @property
    def frame(self) -> pd.DataFrame:
        """A row a value: measure, task, statistic, place, layer, value, low, high, n.

        `place` is `layer`, or the name of a mix of layers or an embedding table, where `layer` is missing. `low` and
        `high` are the ends of the 95% interval, `n` how many groups the mean is over, missing where there is none.
        """
        import pandas as pd

        rows = []
        for key, curve in self.curves.items():
            if key.endswith(INTERVAL):
                continue
            name, statistic = key.rsplit("/", 1)
            measure, _, task = name.partition("/")
            low, high, n = (self.curves.get(k) for k in (f"{key}_ci_low", f"{key}_ci_high", f"{name}/n"))
            for layer, value in enumerate(curve.tolist()):
                ends = [math.nan if c is None else float(c[layer]) for c in (low, high, n)]
                rows.append((measure, task, statistic, "layer", layer, value, *ends))
        for key, value in self.scalars.items():
            if key.endswith(INTERVAL):
                continue
            name, statistic = key.rsplit("/", 1)
            measured, _, task = name.partition("/")
            measure, _, place = measured.partition(".")
            ends = [self.scalars.get(k, math.nan) for k in (f"{key}_ci_low", f"{key}_ci_high", f"{name}/n")]
            rows.append((measure, task, statistic, place, None, value, *ends))
        frame = pd.DataFrame(rows, columns=list(COLUMNS))
        return frame.astype({"layer": "Int64"})

    def curve(self, measure: str, statistic: str = "raw", *, task: str = "") -> pd.Series:
        """One curve by layer. Raises MetricError naming the curves that there are."""
        import pandas as pd

        key = f"{measure}/{task}/{statistic}" if task else f"{measure}/{statistic}"
        if key not in self.curves:
            raise MetricError(f"no curve {key!r} in these results{near(key, self.curves)}")
        index = pd.RangeIndex(self.n_layers, name="layer")
        return pd.Series(self.curves[key], index=index, name=key)

    def plot(self, measure: str | None = None) -> Figure:
        """One measure by layer with its interval; None: the overview. Raises MetricError naming the measures."""
        from ctxexp.report.comparison import Comparison
        from ctxexp.report.figures import run_figure

        figure = run_figure(self, measure) if measure else None
        if figure is None:
            return Comparison(((str(self.info.get("model") or "run"), self),)).plot(measure)
        return figure

    def __repr__(self) -> str:
        return f"<Results of {self.info.get('model') or 'run'}: {', '.join(self.measures())} by {self.n_layers} layers>"

    def _repr_html_(self) -> str:
        """What was measured, and each measure's main curve by layer."""
        from html import escape

        from ctxexp.report.comparison import Comparison

        label, told = str(self.info.get("model") or "run"), self.info
        head = f"{label}, {told.get('corpus')}: {self.n_layers} layers, baseline {told.get('baseline')}"
        return f"<p>{escape(head)}</p>{Comparison(((label, self),))._repr_html_()}"

    def joined(self, others: Results) -> Results:
        """These results after `others` of the same run; what both say in `info` is the others'."""
        measures = {**others.info.get("measures", {}), **self.info.get("measures", {})}
        return Results(
            curves={**others.curves, **self.curves},
            tables={**others.tables, **self.tables},
            info={**self.info, **others.info, "measures": measures},
            scalars={**others.scalars, **self.scalars},
            replicates={**others.replicates, **self.replicates},
        )

    def save(self, folder: Path) -> None:
        """Write results.json and one CSV a table, atomically: a crash leaves the old file or none."""
        for name, table in self.tables.items():
            table.write_csv(folder / f"{name}.csv")
        if self.replicates:
            with replacing(folder / REPLICATES) as part, part.open("wb") as file:
                np.savez_compressed(file, **self.replicates)  # type: ignore[arg-type]  # its stub takes `allow_pickle` for one
        document = {
            "info": self.info,
            "curves": {k: [_to_json(v) for v in curve.tolist()] for k, curve in self.curves.items()},
            "scalars": {k: _to_json(v) for k, v in self.scalars.items()},
        }
        write_text(folder / FILE, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))

    @classmethod
    def load(cls, folder: Path, *, tables: bool = False) -> Results:
        """Curves, scalars, info and replicates back from disk; with `tables`, those of its CSV files.

        Raises TrackingError for a file that is missing, damaged since its folder was sealed, or not of this kind.
        """
        path = folder / FILE
        try:
            text = path.read_bytes().decode()
            if what := damaged(folder, (FILE, REPLICATES)):
                raise ValueError(what)
            document = json.loads(text)
            info, curves = dict(document["info"]), dict(document["curves"])
            return cls(
                curves={k: np.array([_from_json(v) for v in values], dtype=np.float64) for k, values in curves.items()},
                scalars={k: _from_json(v) for k, v in document.get("scalars", {}).items()},
                info=info,
                replicates=_replicates(folder / REPLICATES),
                tables={path.stem: Table.read_csv(path) for path in sorted(folder.glob("*.csv"))} if tables else {},
            )
        except FileNotFoundError:
            raise TrackingError(f"no {FILE} in {folder}: the run there never finished measuring") from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise TrackingError(f"{path} is not a results file of ctxexp: {error}") from error


def _typed(cells: list[str]) -> Sequence[Any]:
    for kind in (int, lambda cell: float(cell or "nan")):
        try:
            return [kind(cell) for cell in cells]
        except ValueError:
            continue
    return cells


def _replicates(path: Path) -> dict[str, np.ndarray]:
    if not path.exists():
        return {}
    try:
        with np.load(path) as held:
            return {key: held[key] for key in held.files}
    except (OSError, EOFError, ValueError, LookupError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name}: {error}") from error


def _to_json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _from_json(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
