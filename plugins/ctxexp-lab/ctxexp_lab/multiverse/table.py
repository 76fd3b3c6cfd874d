"""The table of a multiverse: for each option of each choice how many specifications fall (see `joint`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ctxexp.report import LabelledResults, Table, decimal
from ctxexp_lab.multiverse.figure import title
from ctxexp_lab.multiverse.joint import Statistic, joint
from ctxexp_lab.multiverse.specifications import differing_choices, frame, specifications, variance_share


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with one row for each option; None where these runs are no multiverse."""
    specs, together = specifications(runs), joint(runs)
    if not specs or together is None:
        return None
    cells = []
    for name, options in differing_choices(specs).items():
        for option in options:
            with_option = [one for one in specs if option in one.options(name)]
            counts = [str(sum(one.verdict == kind for one in with_option)) for kind in ("falls", "open", "rises")]
            median = decimal(float(np.median([one.effect for one in with_option])), 3, sign=True)
            cells.append([name, option, *counts, median, f"{variance_share(specs, name):.0%}"])
    columns = ["choice", "option", "falls", "open", "rises", "median effect", "variance that hangs on the choice"]
    notes = [
        f"All together: {together.sentence()}.",
        "An effect: the last layer less the first. Falls, rises: its 95% interval leaves 0 out. Specifications "
        "with equal results are merged, and counted at each of their options.",
    ]
    return Table(title(specs, together), frame(specs), columns, cells, notes)


def joint_table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with one row for each joint statistic and null; None where these runs are no multiverse."""
    together = joint(runs)
    if together is None:
        return None
    cells = [
        [one.name, decimal(one.value, 3, sign=True), _interval(one), one.null, decimal(one.expected, 3, sign=True),
         f"{one.p:.3f}" if np.isfinite(one.p) else ""]
        for one in together.statistics
    ]  # fmt: skip
    columns = ["all specifications", "value", "95% interval", "null", "expected", "p"]
    notes = [
        "Layers shuffled: p is the share of pairs of layers, called first and last in all specifications at once, that "
        "give as low a median or as high a share. Neighbouring layers are alike, so that it rejects too often: where "
        "all measures follow one random walk over 5 to 31 layers, p is .05 or less in 13% to 18%.",
        "Untrained twin: p is the share of resamples of the text in which the median isn't below the twin's, which is "
        "one draw of random weights.",
    ]
    return Table("The specifications together, against chance", together.frame, columns, cells, notes)


def _interval(one: Statistic) -> str:
    low, high = (decimal(end, 3, sign=True) for end in (one.low, one.high))
    return f"[{low}, {high}]" if np.isfinite(one.low) else ""
