"""The built-in transforms: one calibration of the space a file."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl
from ctxexp.transforms.all_but_the_top import AllButTheTop
from ctxexp.transforms.center import Center
from ctxexp.transforms.clusterwise import Clusterwise
from ctxexp.transforms.flow.transform import Flow
from ctxexp.transforms.none import Nothing
from ctxexp.transforms.rank import Rank
from ctxexp.transforms.standardize import Standardize
from ctxexp.transforms.weighted_removal import WeightedRemoval
from ctxexp.transforms.whitening import Whitening


@hookimpl
def register_transforms(register: Register) -> None:
    register("none", Nothing)
    register("center", Center)
    register("standardize", Standardize)
    register("all_but_the_top", AllButTheTop)
    register("weighted_removal", WeightedRemoval)
    register("whitening", Whitening)
    register("clusterwise", Clusterwise)
    register("rank", Rank)
    register("flow", Flow)
