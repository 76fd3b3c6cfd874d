"""The kit varies every argument of a model that its name may lack, and says which it could not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxexp.errors import ConformanceError
from ctxexp.testing.by_name import conform
from ctxexp.testing.encoders import LAW, neighbour_values

MODEL = """
import zlib
import numpy as np
import ctxexp

class Toy(ctxexp.Encoder):
    n_layers, dim = 2, 8

    def __init__(self, *, seed: int = 0, scale: float = 1.0, salt: str = "a", heads: int = 8, path: str = "none"):
        if heads % 8 or scale < 1:
            raise OSError("an odd width")
        self.seed, self.scale, self.salt, self.heads = seed, scale, salt, heads
        self.name = f"toy {NAMED}"

    def encode(self, batch):
        for sentence in batch:
            keys = [zlib.crc32(f"{w} {self.salt}".encode()) + self.heads for w in sentence.words]
            x = np.array([np.random.default_rng([self.seed, key]).normal(size=8) for key in keys]).reshape(-1, 8)
            yield ctxexp.EncodedSentence(sentence.words, np.stack([self.scale * x, x / 2 + x.sum(0)]).astype("f4"))

@ctxexp.hookimpl
def register_models(register):
    register("toy", Toy)
"""
SETTINGS = {"seed": "seed=1", "scale": "scale=2.0", "salt": "salt=as", "heads": "heads=16"}


def report_of(folder: Path, *names: str) -> str:
    """The kit's report of a model whose name holds these arguments alone."""
    file = folder / "mine.py"
    file.write_text(MODEL.replace("{NAMED}", " ".join(f"{{{name}}}" for name in names)))
    return conform("toy", {"plugins": [str(file)]})


@pytest.mark.parametrize("lacking", SETTINGS)
def test_a_name_that_lacks_an_argument_is_broken(tmp_path: Path, lacking: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        report_of(tmp_path, *(name for name in SETTINGS if name != lacking))
    assert f"BROKEN  {LAW}: with {SETTINGS[lacking]} the vectors are others" in str(caught.value)


def test_arguments_that_no_guess_fits_are_noted(tmp_path: Path) -> None:
    report = report_of(tmp_path, *SETTINGS)
    assert f"ok      {LAW}" in report
    assert "note    unchecked: whether the name changes with path" in report


def test_neighbour_values_are_near_and_never_outside() -> None:
    assert [*neighbour_values("seed", 0)] == [1, -1]
    assert [*neighbour_values("window", 2)] == [3, 4, 1]
    assert [*neighbour_values("scale", 1.0)] == [0.5, 2.0]
    assert [*neighbour_values("dtype", "float32")] == ["bfloat16", "float16"]
    assert [*neighbour_values("mode", "fast")] == ["fasts", "tsaf"]
    outside = [("path", "x"), ("checkpoint", "x"), ("a", "x/y"), ("a", True), ("a", None), ("a", [1])]
    assert not [value for key, own in outside for value in neighbour_values(key, own)]
