"""The package of this distribution: the very files of ctxexp_compare.light, under a name of their own, so that it and
ctxexp may be installed beside each other."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "ctxexp_light"


class LightFiles(BuildHookInterface[Any]):
    """Takes the files from the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folder that becomes the package."""
        if not (Path(self.root) / NAME).is_dir():  # which an sdist has
            build_data["force_include"][str(Path(self.root).parent / "ctxexp-compare" / "ctxexp_compare" / "light")] = (
                NAME
            )
