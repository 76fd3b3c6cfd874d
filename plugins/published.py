"""Writes ctxexp/plugins/published.json: which of the distributions here brings a name, read from their hooks and
configs. Messages about names that nothing installed supplies say so.

`.venv/bin/python plugins/published.py`, where a distribution here got a name, lost one, or moved one.
"""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from pathlib import Path

from ctxexp.plugins import build_registry
from ctxexp.plugins.hookspecs import USER_FACING_KINDS
from ctxexp.plugins.offers import FILE

HERE = Path(__file__).resolve().parent


def names_by_kind() -> dict[str, dict[str, str]]:
    """Requirements for pip, by kind and name; with the extra that is called as the name, where there is one."""
    table: dict[str, dict[str, str]] = {}
    for file in sorted(HERE.glob("ctxexp-*/pyproject.toml")):
        folder, project = file.parent, tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        (module,) = project["entry-points"]["ctxexp"].values()
        sys.path.insert(0, str(folder))
        try:
            registry = build_registry([(module, importlib.import_module(module))], installed=False)
        finally:
            sys.path.remove(str(folder))
        names = [
            key for key, offer in registry.offers.items() if offer.plugin == module and offer.kind in USER_FACING_KINDS
        ]
        names += [(path.parent.name, path.stem) for conf in registry.folders for path in Path(conf).glob("*/*.yaml")]
        for kind, name in names:
            extra = name.replace("_", "-")
            has_extra = extra in project.get("optional-dependencies", ())
            table.setdefault(kind, {})[name] = project["name"] + (f"[{extra}]" if has_extra else "")
    return {kind: dict(sorted(names.items())) for kind, names in sorted(table.items())}


if __name__ == "__main__":
    FILE.write_text(json.dumps(names_by_kind(), indent=1) + "\n", encoding="utf-8")
