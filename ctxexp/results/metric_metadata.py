"""A metric's metadata for figures, tables and claims: attributes, so that nothing is read out of prose."""

from __future__ import annotations

import re
from typing import ClassVar

from ctxexp.results.run_info import MeasureInfo


class MetricMetadata:
    """The attributes that every metric has and a run records under `measures`; a metric's class or instance sets them.

    `over`: the kind of groups that it scores (`word`, `sentence`, `sample`, `corpus` ...). `title`: its name on figures
    (default: its label). `unit`: the physical unit of its values (`cosine`, `l2`; `share`: of a group's variance, 1
    where its rows lie on one line through the origin). `definition`: one line on what is computed. `variant`:
    distinguishes metrics of the same title, empty for the usual one; variants are panels of one figure, and none is
    compared with published values of another. `main`: the statistic that stands for the metric; empty: `adjusted` (the
    value less its baseline) where there is one, else `raw` (the value). `own_baseline`: a few words on a `baseline`
    that the metric computes itself, in place of the run's. `line`: value at which figures of its adjusted curves draw a
    reference line. `subject`, `lower` and `higher` say what a change of the value means, all three or none: the
    subject, in the plural (`words`), grows `lower` (`more context-specific`) where the value falls, and `higher` where
    it rises.
    """

    over: ClassVar[str]
    title: str = ""
    unit: ClassVar[str] = ""
    definition: str = ""
    variant: str = ""
    main: ClassVar[str] = ""
    own_baseline: ClassVar[str] = ""
    line: ClassVar[float | None] = None
    subject: ClassVar[str] = ""
    lower: ClassVar[str] = ""
    higher: ClassVar[str] = ""


def describe(label: str, metric: MetricMetadata, baseline_source: str = "") -> MeasureInfo:
    """The metadata of a metric: its class's name in snake case, its attributes, and how its baseline is found (`exact`,
    `drawn`, `size-matched`, or the metric's own words; recorded as `level`)."""
    return MeasureInfo(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(metric).__name__).lower(),
        title=metric.title,
        variant=metric.variant,
        definition=metric.definition or label.replace("_", " "),
        unit=metric.unit,
        over=metric.over,
        main=metric.main,
        line=metric.line,
        level=baseline_source or metric.own_baseline,
        subject=metric.subject,
        lower=metric.lower,
        higher=metric.higher,
    )
