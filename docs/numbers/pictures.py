"""Make the docs' pictures of models anew: `python -m docs.numbers.pictures [gallery] [known_model] [uses]`.

The gallery's commands are typed in empty folders, and the figures named below each are taken. The known
model, of the README's first figure and output, comes from the hub or its cache.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import ctxexp
from ctxexp.command import Experiment, configured
from ctxexp.maths import principal_directions
from ctxexp.report import PALETTE, Ink, empty_figure, save_figure
from docs.numbers.marked import write_marked, write_small
from docs.numbers.part import ROOT

DOCS = ROOT / "docs"
KNOWN_MODEL = ["sentence-transformers/all-MiniLM-L6-v2", "metric=contextuality"]

USES = ("minilm", "with", "from", (0, 3, 6))  # model, the word, another one, layers


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
            subprocess.run([sys.executable, "-m", "ctxexp", "report"], cwd=folder, check=True)
            for at in pictures:
                write_small(Path(folder) / "report" / at.name, DOCS / at)


def known_model() -> None:
    """The README's first figure, its numbers, and what the command prints but for paths."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ctxexp", *KNOWN_MODEL]
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        (found,) = Path(folder).glob("mlruns/results/*/*/results.json")
        results = ctxexp.load(found.parent)
        frame = results.frame
        shown = frame[frame.statistic.isin(("raw", "lowest", "highest"))]
        shown.round(6).to_csv(DOCS / "known_model.csv", index=False)
        (figure,) = save_figure(results.plot("contextuality"), Path(folder), "contextuality", ("png",))
        write_small(figure, DOCS / "known_model.png")
        printed = re.sub(r"^(run|report):.*\n", "", done.stdout, flags=re.MULTILINE).strip("\n")
        write_marked(ROOT / "README.md", "known model", f"```text\n{printed}\n```")


def uses() -> None:
    """A word's uses beside another word's in some layers, at contextuality's scale, in their two main directions."""
    model, word, other, layers = USES
    experiment = Experiment(configured(model, None, {}))
    space, occurrences, _ = experiment.study.space(experiment.vectors)
    groups, canvas = occurrences.by_word, empty_figure(7.4, 2.9)
    of_words = [groups.rows[slice(*groups.starts[(at := list(groups.keys).index(w)) : at + 2])] for w in (word, other)]
    for axes, layer in zip(canvas.subplots(1, len(layers)), layers, strict=True):
        x = np.asarray(space.layer(layer), np.float32)
        centre = principal_directions(x[occurrences.rows])[0]  # no direction of this model is loud
        a, b = (x[rows] - centre for rows in of_words)
        a, b = (y / np.linalg.norm(y, axis=1, keepdims=True) for y in (a, b))
        centre = np.concatenate([a, b]).mean(axis=0)
        directions = np.linalg.svd(np.concatenate([a, b]) - centre, full_matrices=False)[2][:2].T
        for points, colour in ((b, Ink.FAINT), (a, PALETTE[0])):
            axes.scatter(*((points - centre) @ directions).T, s=7, color=colour, linewidths=0)
        alike = (np.square(a.sum(axis=0)).sum() - len(a)) / (len(a) * (len(a) - 1))
        apart = 1 - float(a.mean(axis=0) @ b.mean(axis=0))
        axes.set_title(f"layer {layer}", loc="left", fontsize=10.5, color=Ink.TEXT)
        axes.set_xlabel(f"two uses of {word}: {1 - alike:.2f} apart\n{word} and {other}: {apart:.2f}", fontsize=9)
        axes.set(xticks=[], yticks=[], xlim=(-0.9, 0.9), ylim=(-0.9, 0.9), aspect="equal")
    with TemporaryDirectory() as folder:
        canvas.savefig(drawn := Path(folder) / "uses.png", dpi=150, bbox_inches="tight")
        write_small(drawn, DOCS / "uses.png")


if __name__ == "__main__":
    made = {"gallery": gallery, "known_model": known_model, "uses": uses}
    for name in sys.argv[1:] or made:
        made[name]()
