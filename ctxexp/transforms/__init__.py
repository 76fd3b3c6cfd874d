"""The built-in transforms: one calibration of the space a file."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_transforms(register: Register) -> None:
    from ctxexp.transforms.center import Center
    from ctxexp.transforms.none import Nothing
    from ctxexp.transforms.standardize import Standardize

    register("none", Nothing)
    register("center", Center)
    register("standardize", Standardize)
