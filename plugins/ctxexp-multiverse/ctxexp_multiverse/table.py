"""The table of a multiverse: for each option of each choice how many specifications bear the claim out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ctxexp.papers.sweep_tables import SweepTable
from ctxexp.report.wording import Run
from ctxexp_multiverse.figure import title
from ctxexp_multiverse.specifications import CHOICES, frame, specifications, varied, weight


def table(runs: Sequence[Run]) -> SweepTable | None:
    """A row an option; None where these runs are no multiverse."""
    found = specifications(runs)
    if not found:
        return None
    shown = []
    for name, options in varied(found).items():
        for option in options:
            held = [one for one in found if one.choices[CHOICES.index(name)] == option]
            counts = [str(sum(one.verdict == kind for one in held)) for kind in ("falls", "open", "rises")]
            middle = f"{np.median([one.effect for one in held]):+.3f}"
            shown.append([name, option, *counts, middle, f"{weight(found, name):.0%}"])
    columns = ["choice", "option", "falls", "open", "rises", "median effect", "variance that hangs on the choice"]
    notes = ["An effect: the last layer less the first. Falls, rises: its 95% interval leaves 0 out."]
    return SweepTable(title(found), frame(found), columns, shown, notes)
