"""Make the README's first figure and output anew: one command on a model that everyone knows.

`python -m docs.numbers.known_model`; the model comes from the hub, or from its cache. What is printed stands in the
README but for paths, and its numbers lie beside the picture.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import ctxexp
from docs.numbers.marked import write_marked, write_small
from docs.numbers.part import ROOT

MODEL, METRIC = "sentence-transformers/all-MiniLM-L6-v2", "self_similarity"
WORDS = [MODEL, f"metric={METRIC}"]
MARK = "known model"
NUMBERS, PICTURE = ROOT / "docs" / "known_model.csv", ROOT / "docs" / "known_model.png"
PLACE = re.compile(r"^(run|report):.*\n", re.M)  # on this machine


def make() -> None:
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ctxexp", *WORDS]
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        (found,) = Path(folder).glob("mlruns/results/*/*/results.json")
        results = ctxexp.load(found.parent)
        frame = results.frame
        frame[frame.statistic.isin(("share_of_room", "raw", "baseline", "adjusted"))].round(6).to_csv(
            NUMBERS, index=False
        )
        write_small(found.parent / "figures" / f"{METRIC}.png", PICTURE)
        write_marked(ROOT / "README.md", MARK, "```text\n" + PLACE.sub("", done.stdout).strip("\n") + "\n```")


if __name__ == "__main__":
    make()
