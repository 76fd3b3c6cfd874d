"""Planted curvatures by layer, in radians."""

from __future__ import annotations

import numpy as np
from ctxexp_papers.papers.hosseini_2023 import ALL, LATER, MARGIN

from benchmarks.claims.planted import LAYERS, Truth, world


def path(fall: float) -> Truth:
    """Curvature that falls by so much up to the middle layer, and stays."""
    return {(ALL, LATER): 2.0 - fall * np.minimum(np.arange(LAYERS) / (LAYERS // 2), 1)}


WORLDS = {
    "straightens": world(path(MARGIN), path(0.3), path(0.0)),
    "untrained-do-not": world(
        path(0.3), path(0.3), path(0.3), twin=path(MARGIN), true_twin=path(0.0), false_twin=path(0.3)
    ),
}
