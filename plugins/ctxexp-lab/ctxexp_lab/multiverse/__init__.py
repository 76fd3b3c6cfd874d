"""One claim over every choice that could be defended: a specification curve of a sweep's runs."""

from __future__ import annotations

from ctxexp_lab.multiverse.joint import Joint, joint
from ctxexp_lab.multiverse.specifications import Specification, specifications

__all__ = ["Joint", "Specification", "joint", "specifications"]
