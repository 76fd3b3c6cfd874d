"""`make new-plugin NAME=my-model`: a distribution of its own, rendered from `plugins/template`.

The template is itself valid Python; `plugin_name`, `plugin-name` and `PluginName` are replaced, in files' names too.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from importlib.metadata import entry_points
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHAPE = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
RESERVED = {"ctxexp", "default", "false", "inf", "nan", "none", "null", "plugin-name", "template", "test", "true"}


def check_name(name: str) -> str:
    """The name with dashes; SystemExit with one sentence if no distribution can have it."""
    dashed = name.replace("_", "-")
    if not SHAPE.fullmatch(name):
        raise SystemExit(f"error: NAME={name!r}: expected lower-case letters, digits and single dashes, as in my-model")
    if dashed.startswith("ctxexp-"):
        raise SystemExit(f"error: NAME={name}: leave out 'ctxexp-', it is put in front: NAME={dashed[7:]}")
    if dashed in RESERVED:
        raise SystemExit(f"error: NAME={name}: the command line gives this word a meaning of its own; take another")
    if conflict := name_conflict(dashed.replace("-", "_")):
        raise SystemExit(f"error: NAME={name}: {conflict}; take another name")
    return dashed


def name_conflict(name: str) -> str:
    """A sentence on the installed plugin, or the part of ctxexp, that has this name; empty if the name is free."""
    for entry in entry_points(group="ctxexp"):
        if entry.name == name:
            return f"the installed distribution {entry.dist.name if entry.dist else '?'} brings a plugin of this name"
    try:
        from ctxexp.command import registry
    except ImportError:
        return ""  # ctxexp is not installed here, so nothing is known
    for offer in registry().offers.values():
        if offer.builtin and offer.name in (name, f"{name}_spread"):
            return f"ctxexp has a {offer.kind} {offer.name!r}"
    return ""


def render(name: str, to: Path) -> list[Path]:
    """Write the template under the checked name into the new folder `to`; the files written."""
    if to.exists():
        raise SystemExit(f"error: {to} is there already; give a new folder with TO=, such as {to}/ctxexp-{name}")
    snake, camel = name.replace("-", "_"), "".join(part.capitalize() for part in name.split("-"))

    def fill(text: str) -> str:
        return text.replace("plugin_name", snake).replace("plugin-name", name).replace("PluginName", camel)

    paths = []
    try:
        for source in sorted((HERE / "template").rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts and source.suffix != ".pyc":
                target = to / fill(str(source.relative_to(HERE / "template")))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(fill(source.read_text(encoding="utf-8")), encoding="utf-8")
                paths.append(target)
    except OSError:
        shutil.rmtree(to, ignore_errors=True)
        raise
    return paths


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="new_plugin.py", description=__doc__)
    parser.add_argument("name", help="lower-case letters, digits and dashes, as in my-model")
    parser.add_argument("--to", type=Path, help="the new folder (plugins/ctxexp-NAME)")
    options = parser.parse_args(argv)
    name = check_name(options.name)
    to = options.to or HERE / f"ctxexp-{name}"
    for path in render(name, to):
        print(path)
    print(f"\nNext: pip install -e '{to}[test]' && pytest {to}")
    print(f"Then: python -m ctxexp -m model=bert,{name.replace('-', '_')}")


if __name__ == "__main__":
    main(sys.argv[1:])
