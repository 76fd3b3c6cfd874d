"""The wheel of its own: small, and at work where nothing but NumPy is installed."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

PROJECT = Path(__file__).parents[1]
SCRIPT = """
import sys
from importlib.util import find_spec
import numpy as np
from ctxexp_light.floor import Floor

assert not any(find_spec(name) for name in ("torch", "mlflow", "pandas", "ctxexp"))
x = np.random.default_rng(0).normal(size=(300, 20))
one, other = Floor.of_vectors(x), Floor.of_vectors(x + 0.3)
one.save("one.floor.json")
print(Floor.load("one.floor.json").carry(other, one.threshold(0.02)).cosine)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with NumPy and the wheel alone."""
    if not (PROJECT / "pyproject.toml").exists():
        pytest.skip("needs the checkout")
    pytest.importorskip("hatchling", reason="builds the wheel")
    folder = tmp_path_factory.mktemp("bare")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size <= 100_000
    venv.create(folder / "env", symlinks=True)
    (packages,) = folder.glob("env/lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    for numpy in (Path(np.__file__).parent, Path(np.__file__).parents[1] / "numpy.libs"):
        if numpy.exists():
            (packages / numpy.name).symlink_to(numpy)
    return folder / "env" / "bin" / "python"


def test_it_carries_a_cosine_by_numpy_alone(bare: Path, tmp_path: Path) -> None:
    words = [str(bare), "-I", "-c", SCRIPT]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert 0.3 < float(said) < 1
