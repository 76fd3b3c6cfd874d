"""The built-in transforms: one calibration of the space per file."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_transforms(register: Register) -> None:
    register("none", "ctxexp.transforms.none:Nothing")
    register("center", "ctxexp.transforms.center:Center")
    register("standardize", "ctxexp.transforms.standardize:Standardize")
    register("all_but_the_top", "ctxexp.transforms.all_but_the_top:AllButTheTop")
    register("unit_norm", "ctxexp.transforms.unit_norm:UnitNorm")
    register("whitening", "ctxexp.transforms.whitening:Whitening")
