"""Planted valleys of entropy, and instances of the theorem."""

from __future__ import annotations

import numpy as np
from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.queipo_2025 import CASES, LATER, UNIT, WHOLE

from benchmarks.claims.planted import LAYERS, Truth, instances, world


def valleys(whole: float, rest: float) -> Truth:
    """A valley of some depth in the middle layer, of all words and without the first."""
    at = np.arange(LAYERS) == LAYERS // 2
    return {WHOLE: 0.8 - whole * at, (LATER, UNIT): 0.8 - rest * at}


WORLDS = {
    "one-row-rules": instances("singular value", tuple(CASES)),
    "entropy-bounded": instances("entropy", tuple(CASES)),
    "valley": world(valleys(NONE, 0.0), valleys(0.5, 0.0), valleys(-0.2, 0.0), noise=0.005),
    "massive-makes-it": world(valleys(0.5, 0.5 - NONE), valleys(0.5, 0.0), valleys(0.5, 0.5), noise=0.005),
    "nothing-else": world(valleys(0.5, NONE), valleys(0.5, -0.1), valleys(0.5, 0.5), noise=0.005),
}
