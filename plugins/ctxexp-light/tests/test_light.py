"""The wheel of its own: small, and at work where nothing but NumPy is installed."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.servers import serving

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


def vector(text: str) -> np.ndarray:
    return np.random.default_rng(list(text.encode())).normal(size=16)


@pytest.mark.parametrize(("factor", "status", "said"), [(1.0, 0, "same: "), (2.0, 1, "different: normalising")])
def test_the_action_fails_where_vectors_differ(
    factor: float, status: int, said: str, bare: Path, tmp_path: Path
) -> None:
    """The shell lines of action.yml in that environment, against a server that answers by its protocol."""

    def speak(path: str, body: Any) -> tuple[int, Any]:
        rows = [{"index": i, "embedding": (factor * vector(text)).tolist()} for i, text in enumerate(body["input"])]
        return 200, {"data": rows}

    action = yaml.safe_load((PROJECT.parents[1] / "action.yml").read_text())
    install, run = (step["run"] for step in action["runs"]["steps"])
    assert (PROJECT.parents[1] / install.rpartition("/plugins/")[2].rstrip('"')).name == PROJECT.name
    texts = [f"text {i}" for i in range(40)]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    np.save(tmp_path / "reference.npy", np.stack([vector(text) for text in texts]))
    inputs = {"reference": "reference.npy", "text": "texts.txt", "cosine": ".1", "key": "secret"}
    values = {f"${{{{ inputs.{name} }}}}": one.get("default", "") for name, one in action["inputs"].items()}
    with serving(speak) as server:
        inputs["candidate"] = f"{server.url}/v1/embeddings"
        values |= {f"${{{{ inputs.{name} }}}}": value for name, value in inputs.items()}
        own = {name: values[value] for name, value in action["runs"]["steps"][1]["env"].items()}
        environment = {"PATH": f"{bare.parent}:/usr/bin:/bin", **own}
        done = subprocess.run(["bash", "-ec", run], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith(said)) == (status, True), done.stdout + done.stderr
    assert "secret" not in done.stdout + done.stderr
    assert {headers["Authorization"] for _, _, headers in server.requests} == {"Bearer secret"}


def test_floors_and_mistakes_have_their_status(bare: Path, tmp_path: Path) -> None:
    def typed(*words: str) -> tuple[int, str]:
        done = subprocess.run([str(bare), "-m", "ctxexp_light", *words], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    subprocess.run([str(bare), "-I", "-c", SCRIPT], cwd=tmp_path, capture_output=True, check=True)
    status, said = typed("floor", "one.floor.json", "cosine=.5")
    assert (status, "of unrelated pairs reach it (" in said) == (0, True)
    assert typed("floor", "one.floor.json", "one.floor.json", "cosine=.5")[1].startswith("0.500 [")
    np.save(tmp_path / "few.npy", np.eye(3))
    assert typed("check", "one.pin", "few.npy")[0] == 2
    assert typed("check", "few.npy", "few.npy") == (0, typed("check", "few.npy", "few.npy")[1])
    assert "exit status: 0" in typed("check")[1]


def test_a_pin_is_read_there(bare: Path, tmp_path: Path) -> None:
    pin = pytest.importorskip("ctxexp_compare").pin(
        "random_words", text=[f"The bank number {i} was closed." for i in range(12)]
    )
    pin.save(tmp_path / "a.pin")
    for name, vectors, status in (("same", pin.vectors, 0), ("turned", pin.vectors[:, ::-1], 1)):
        np.save(tmp_path / f"{name}.npy", vectors)
        words = [str(bare), "-m", "ctxexp_light", "check", "a.pin", f"{name}.npy"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
