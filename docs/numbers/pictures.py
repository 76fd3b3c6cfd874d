"""Make the docs' pictures of models anew: `python -m docs.numbers.pictures [gallery] [known_model]`.

The gallery's commands are typed in empty folders, and the figures named below each are taken. The known
model, of the README's first figure and output, comes from the hub or its cache.
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

DOCS = ROOT / "docs"
KNOWN_MODEL = ["sentence-transformers/all-MiniLM-L6-v2", "metric=self_similarity"]


def scenes() -> dict[str, list[Path]]:
    """Each command of the gallery with the pictures that stand between it and the next."""
    parts = re.split(r"^```(?:ba)?sh\n(.*?)^```$", (DOCS / "gallery.md").read_text(), flags=re.MULTILINE | re.DOTALL)[
        1:
    ]
    pictures = [re.findall(r"\]\((pictures/.*?\.png)\)", text) for text in parts[1::2]]
    return {command: [Path(at) for at in found] for command, found in zip(parts[::2], pictures, strict=True) if found}


def gallery() -> None:
    """The gallery's pictures."""
    for command, pictures in scenes().items():
        with TemporaryDirectory() as folder:
            subprocess.run(["bash", "-euc", command], cwd=folder, check=True)
            for at in pictures:
                (figure,) = Path(folder).glob(f"mlruns/results/*/summary/{at.name}")
                write_small(figure, DOCS / at)


def known_model() -> None:
    """The README's first figure, its numbers, and what the command prints but for paths."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ctxexp", *KNOWN_MODEL]
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        (found,) = Path(folder).glob("mlruns/results/*/*/results.json")
        frame = ctxexp.load(found.parent).frame
        shown = frame[frame.statistic.isin(("share_of_room", "raw", "baseline", "adjusted"))]
        shown.round(6).to_csv(DOCS / "known_model.csv", index=False)
        write_small(found.parent / "figures" / "self_similarity.png", DOCS / "known_model.png")
        printed = re.sub(r"^(run|report):.*\n", "", done.stdout, flags=re.MULTILINE).strip("\n")
        write_marked(ROOT / "README.md", "known model", f"```text\n{printed}\n```")


if __name__ == "__main__":
    made = {"gallery": gallery, "known_model": known_model}
    for name in sys.argv[1:] or made:
        made[name]()
