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

from ctxexp.command import registry

HERE = Path(__file__).resolve().parent
FILE = HERE.parent / "ctxexp" / "plugins" / "published.json"


def names_by_kind() -> dict[str, dict[str, str]]:
    """Requirements for pip, by kind and name; with the extra that is called as the name, where there is one."""
    table: dict[str, dict[str, str]] = {}
    kinds = {offer.kind for offer in registry().offers.values() if offer.builtin} | {"reader"}  # what users write
    for file in sorted(HERE.glob("ctxexp-*/pyproject.toml")):
        folder, project = file.parent, tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        if "entry-points" not in project:  # it registers nothing
            continue
        (module,) = project["entry-points"]["ctxexp"].values()
        sys.path.insert(0, str(folder))
        try:
            hooks = vars(importlib.import_module(module))
        finally:
            sys.path.remove(str(folder))
        names = [(path.parent.name, path.stem) for path in folder.glob("*/ctxexp_conf/*/*.yaml")]
        for kind in kinds & {hook.removeprefix("register_").removesuffix("s") for hook in hooks}:
            hooks[f"register_{kind}s"](lambda name, factory, kind=kind, names=names: names.append((kind, name)))
        for kind, name in names:
            extra = name.replace("_", "-")
            has_extra = extra in project.get("optional-dependencies", ())
            table.setdefault(kind, {})[name] = project["name"] + (f"[{extra}]" if has_extra else "")
    return {kind: dict(sorted(names.items())) for kind, names in sorted(table.items())}


if __name__ == "__main__":
    FILE.write_text(json.dumps(names_by_kind(), indent=1) + "\n", encoding="utf-8")
