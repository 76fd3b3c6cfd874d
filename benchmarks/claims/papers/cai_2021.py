"""Planted silhouettes and mean cosines within clusters."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.cai_2021 import ALL, CLUSTERED, LATER

from benchmarks.claims.planted import Truth, world


def both(**values: float) -> Truth:
    return {(f"{name}, {ALL}", f"{name}, {LATER}"): value for name, value in values.items()}


WORLDS = {
    "clusters-exist": world(
        both(silhouette=CLUSTERED, cloud=-1.0), both(silhouette=0.4, cloud=0.2), both(silhouette=0.05, cloud=0.2)
    ),
    "isotropic-within": world(both(within=NONE), both(within=0.0), both(within=0.3)),
}
