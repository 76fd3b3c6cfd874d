"""The curve of a measure: the one that stands for it, its level of chance, and the one that a user names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError, near
from ctxexp.results.run_info import MeasureInfo
from ctxexp.results.values import LAYER, Estimates, Key

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp.results import Results

OVER_WORDS = ("word", "sense")  # what a mean is over that the mix of words weighs
NEVER_MAIN = ("n", "undefined", "sd", "baseline", "share_of_room_undefined")


def measure_info(results: Results, measure: str) -> MeasureInfo:
    """The metadata of a measure as the run recorded it; blank where it recorded none."""
    return results.info.measures.get(measure, MeasureInfo())


def main_statistics(results: Results, measure: str) -> tuple[str, ...]:
    """The statistics that may stand for the measure, the first first: the one that its metric names, if it names one,
    its share of the room above chance, adjusted, raw."""
    own = measure_info(results, measure).main
    return (*([own] if own else []), "share_of_room", "adjusted", "raw")


def main_key(results: Results, measure: str, task: str = "", *, wanted: str = "") -> Key | None:
    """The curve that stands for the measure: of `wanted`, its metric's choice, share of the room, adjusted, raw and the
    others (no count, spread or level) the first with a finite value, or else the first; None if there is none."""
    others = [key.name for key in results.by_key if may_be_main(key)]
    keys = [Key.of(measure, statistic, task) for statistic in (wanted, *main_statistics(results, measure), *others)]
    keys = [key for key in keys if key in results.by_key]
    return next((key for key in keys if np.isfinite(results.by_key[key].value).any()), next(iter(keys), None))


def main_keys(results: Results) -> list[Key]:
    """The curve of each measure and task that its metric names, or its share of the room, adjusted or raw."""
    keys = (main_key(results, *measure_task) for measure_task in results.measure_tasks())
    return [key for key in keys if key and key.name in main_statistics(results, key.measure)]


def keys_beside(results: Results, key: Key) -> dict[str, Key]:
    """The keys of the curves that stand beside one in a table, by their names there: raw, chance, adjusted."""
    if key.statistic not in ("adjusted", "share_of_room", "raw"):
        return {}
    keys = {name: key._replace(statistic=name.replace("chance", "baseline")) for name in ("raw", "chance", "adjusted")}
    return {name: other for name, other in keys.items() if other != key and other in results.by_key}


def mix_mark(results: Results, measure: str) -> str:
    """What tells a mean over words of a text that doesn't fill all bands of frequency from one that does: `2 of 3
    bands`; empty for a text that does, and for other measures."""
    return results.info.mix.mark if measure_info(results, measure).over in OVER_WORDS else ""


def may_be_main(key: Key) -> bool:
    """Whether a curve may stand for its measure: no count, no spread, no baseline, and nothing by a second baseline."""
    return not key.baseline and key.statistic not in NEVER_MAIN


def curve_series(results: Results, measure: str, statistic: str, task: str) -> pd.Series:
    """A curve by layer; statistic "": the one that stands for the measure. Raises MetricError, with the nearest name,
    for one that wasn't measured."""
    import pandas as pd

    key = Key.of(measure, statistic, task)
    if not statistic:
        key = main_key(results, measure, task) or key
    if key not in results.by_key:
        curves = [each for each in results.by_key if each.place == LAYER]
        names = {str(each) if statistic else each.curve_name for each in curves}
        name = str(key) if statistic else key.curve_name
        raise MetricError(f"no curve {name!r} in these results{near(name, names)}")
    values = results.by_key[key].value
    return pd.Series(values, index=pd.RangeIndex(len(values), name="layer"), name=str(key))


def summary_table(results: Results) -> pd.DataFrame:
    """The curve that stands for each measure and task, a column each; a row a layer that was measured."""
    import pandas as pd

    curves = {}
    for measure, task in results.measure_tasks():
        curves[Key(measure, "", task).curve_name] = curve_series(results, measure, "", task)
    layers = list(results.info.model.layers or range(results.n_layers))
    return pd.DataFrame(curves, index=pd.Index(layers, name="layer"))


def named_curves(by_key: Mapping[Key, Estimates]) -> dict[str, np.ndarray]:
    """The values under the names that sinks give them, and the ends of their intervals, see `Results.by_name`."""
    curves = {}
    for key, estimates in by_key.items():
        curves[str(key)] = estimates.value
        if np.isfinite(estimates.low).any():
            curves |= {f"{key}_ci_low": estimates.low, f"{key}_ci_high": estimates.high}
    return curves
