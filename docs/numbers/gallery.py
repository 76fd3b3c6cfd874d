"""Make the gallery's pictures anew: its commands, typed in empty folders, and the figures named below each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.numbers.marked import write_small
from docs.numbers.part import ROOT

DOCS = ROOT / "docs"


def scenes() -> dict[str, list[Path]]:
    """Each command of the gallery with the pictures that stand between it and the next."""
    parts = re.split(r"^```bash\n(.*?)^```$", (DOCS / "gallery.md").read_text(), flags=re.MULTILINE | re.DOTALL)[1:]
    pictures = [re.findall(r"\]\((pictures/.*?\.png)\)", text) for text in parts[1::2]]
    return {command: [Path(at) for at in found] for command, found in zip(parts[::2], pictures, strict=True)}


if __name__ == "__main__":
    for command, pictures in scenes().items():
        with TemporaryDirectory() as folder:
            subprocess.run(["bash", "-euc", command], cwd=folder, check=True)
            for at in pictures:
                (figure,) = Path(folder).glob(f"mlruns/results/*/summary/{at.name}")
                write_small(figure, DOCS / at)
