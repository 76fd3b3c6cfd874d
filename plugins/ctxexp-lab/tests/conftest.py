"""The text of tiny trainings."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import common, empty_store  # noqa: F401  # fixtures


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two training files and a held-out one, of random sentences over 60 words, in documents of one to four lines."""
    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdefgh"), size=rng.integers(1, 7))) for _ in range(60)]
    for name, documents in (("small", 120), ("full-1", 60), ("valid", 40)):
        rows = []
        for _ in range(documents):
            for _ in range(rng.integers(1, 5)):
                rows.append(" ".join(rng.choice(words, size=rng.integers(4, 12))).capitalize() + ".")
            rows.append("")
        with lzma.open(folder / f"{name}.txt.xz", "wt", encoding="utf-8") as file:
            file.write("\n".join(rows))
    return folder
