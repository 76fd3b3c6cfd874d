"""Names that published plugins supply, for the message about an unknown name."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")  # what pip is asked for, by kind and name; plugins/published.py writes it

HYDRAS = {  # names of Hydra's own plugins, which others publish
    "hydra/launcher": {
        "ray": "hydra-ray-launcher",
        "ray_aws": "hydra-ray-launcher",
        "rq": "hydra-rq-launcher",
        "submitit_local": "hydra-submitit-launcher",
        "submitit_slurm": "hydra-submitit-launcher",
    },
    "hydra/sweeper": {
        "ax": "hydra-ax-sweeper",
        "nevergrad": "hydra-nevergrad-sweeper",
        "optuna": "hydra-optuna-sweeper",
    },
}


def install_hint(kind: str, name: str) -> str:
    """A hint which plugin supplies the name and how to install it; empty where no published one does."""
    plugin = _requirement(kind, name)
    if not plugin:
        return ""
    ways = [f"pip install {shlex.quote(plugin)}"]
    if plugin.startswith("ctxexp-"):
        ways.append(f"in a clone pip install {shlex.quote(f'plugins/{plugin}')}")
    return f"; the plugin {plugin.partition('[')[0]} brings it: {', or '.join(ways)}"


def publisher(kind: str, name: str) -> str:
    """The published distribution that supplies the name; empty where none does."""
    return _requirement(kind, name).partition("[")[0]


def _requirement(kind: str, name: str) -> str:
    tables: dict[str, dict[str, str]] = {**json.loads(FILE.read_text(encoding="utf-8")), **HYDRAS}
    return tables.get(kind, {}).get(name, "")
