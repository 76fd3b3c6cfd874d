"""The documentation runs: every `bash` block as typed, every Python listing as a plugin; links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), ROOT / "plugins" / "README.md"]
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    return [(page.stem, block) for page in PAGES for block in blocks(page, "bash")]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), commands(), ids=lambda text: text.splitlines()[0][:60])
def test_commands_run_as_they_stand(
    page: str, block: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.getbasetemp() / "docs-cache"  # shared, as a user's would be
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "HYDRA_"))}
    env = {**kept, "PATH": path, "CTXEXP_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_plugin_listing_works() -> None:
    from ctxexp.config import build
    from ctxexp.corpus import Corpus
    from ctxexp.plugins import build_registry

    (listing,) = blocks(ROOT / "plugins" / "README.md", "python")
    module = types.ModuleType("my_plugin")
    exec(compile(listing, "plugins/README.md", "exec"), module.__dict__)
    registry = build_registry([("my_plugin", module)], installed=False)
    encoder = build("model", {"name": "lengths"}, registry)
    (encoded,) = encoder.encode(Corpus.of("c", [["a", "bank"]]).sentences)
    assert encoded.layers.tolist() == [[[1.0, 1.0], [4.0, 1.0]]]
    metric = build("metric", {"name": "norm_spread"}, registry)
    metric.update("bank", encoded.layers[0])
    assert metric.compute()["raw"] > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_local_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), target


def test_every_option_in_the_readme_exists() -> None:
    """The table of groups names real options, and all of them."""
    from ctxexp.compose import GROUPS, config_folder

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, flags=re.MULTILINE))
    assert set(rows) == set(GROUPS)
    for group in GROUPS:
        named = set(re.findall(r"`(\w+)`", rows[group]))
        files = {p.stem for p in (config_folder() / group).glob("*.yaml")}
        missing = {f for f in files if f not in named and not any(f.endswith(n) for n in named if n.startswith("_"))}
        assert missing <= {"ethayarajh_2019"}, (group, missing)
