"""Names that published plugins supply, for the message about an unknown name."""

from __future__ import annotations

import json
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
    plugin = {**json.loads(FILE.read_text(encoding="utf-8")), **HYDRAS}.get(kind, {}).get(name)
    if plugin is None:
        return ""
    quoted = f"'{plugin}'" if "[" in plugin else plugin
    return f"; the plugin {plugin.partition('[')[0]} brings it: pip install {quoted}"
