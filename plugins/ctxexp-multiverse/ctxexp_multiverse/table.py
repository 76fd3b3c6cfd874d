"""The table of a multiverse: for each option of each choice how many specifications bear the claim out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ctxexp.papers.sweep_tables import SweepTable
from ctxexp.report.wording import Run
from ctxexp_multiverse.figure import title
from ctxexp_multiverse.joint import joint
from ctxexp_multiverse.specifications import frame, specifications, varied, weight


def table(runs: Sequence[Run]) -> SweepTable | None:
    """A row an option; None where these runs are no multiverse."""
    found, together = specifications(runs), joint(runs)
    if not found or together is None:
        return None
    shown = []
    for name, options in varied(found).items():
        for option in options:
            held = [one for one in found if option in one.options(name)]
            counts = [str(sum(one.verdict == kind for one in held)) for kind in ("falls", "open", "rises")]
            middle = f"{np.median([one.effect for one in held]):+.3f}"
            shown.append([name, option, *counts, middle, f"{weight(found, name):.0%}"])
    columns = ["choice", "option", "falls", "open", "rises", "median effect", "variance that hangs on the choice"]
    notes = [
        f"All together: {together.sentence()}.",
        "An effect: the last layer less the first. Falls, rises: its 95% interval leaves 0 out. Ways that give the "
        "same numbers are one, counted at each of their options.",
    ]
    return SweepTable(title(found, together), frame(found), columns, shown, notes)


def joint_table(runs: Sequence[Run]) -> SweepTable | None:
    """A row a joint statistic and null; None where these runs are no multiverse."""
    together = joint(runs)
    if together is None:
        return None
    shown = [
        [one.name, f"{one.value:+.3f}", f"[{one.low:+.3f}, {one.high:+.3f}]" if np.isfinite(one.low) else "", one.null,
         f"{one.expected:+.3f}", f"{one.p:.3f}" if np.isfinite(one.p) else ""]
        for one in together.statistics
    ]  # fmt: skip
    columns = ["all specifications", "value", "95% interval", "null", "expected", "p"]
    notes = [
        "Layers shuffled: p is the share of pairs of layers, called first and last in all specifications at once, that "
        "give as low a median or as high a share. Layers beside each other are alike: of random walks over 5 to 31 "
        "layers, all measures going along, 13% to 18% come to p = .05.",
        "Untrained twin: p is the share of resamples of the text in which the median isn't below the twin's, which is "
        "one draw of random weights.",
    ]
    return SweepTable("The specifications together, against chance", together.frame, columns, shown, notes)
