"""A metric's metadata for figures, tables and claims: attributes, so that nothing is read out of prose."""

from __future__ import annotations

import re
from typing import ClassVar

from ctxexp.results.run_info import MeasureInfo


class MetricMetadata:
    """The attributes that every metric has and a run records under `measures`; a metric's class or instance sets them.

    `title`: its name on figures (default: its label). `unit`: the physical unit of its values (`cosine`, `l2`; `share`:
    of a group's variance, 1 where its rows lie on one line through the origin). `definition`: one line on what is
    computed. `variant`: a word for one of several definitions under the same title, "" for the usual one; the variants
    of a metric are panels of one figure, and no variant is compared with published values of another. `main`: the
    statistic by which it is compared ("": adjusted, else raw). `line`: the value at which figures of its adjusted
    curves draw a line.
    """

    over: ClassVar[str]
    title: str = ""
    unit: ClassVar[str] = ""
    definition: str = ""
    variant: str = ""
    main: ClassVar[str] = ""
    line: ClassVar[float | None] = None


def describe(label: str, metric: MetricMetadata, level: str = "") -> MeasureInfo:
    """The metadata of a metric: its class's name in snake case, its attributes, and `level`, its baseline's source."""
    return MeasureInfo(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(metric).__name__).lower(),
        title=metric.title,
        variant=metric.variant,
        definition=metric.definition or label.replace("_", " "),
        unit=metric.unit,
        over=metric.over,
        main=metric.main,
        line=metric.line,
        level=level,
    )
