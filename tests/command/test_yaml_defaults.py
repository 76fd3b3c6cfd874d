"""What an option's YAML writes is what its code does without it: a call in Python and a command give the same."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from ctxexp.command import registry
from ctxexp.plugins.arguments import arguments

ROOT = Path(__file__).resolve().parents[2]
GROUPS = ("baseline", "control", "dataset", "engine", "metric", "model", "sink", "transform")
FILES = sorted(
    path
    for folder in (ROOT / "conf", *ROOT.glob("plugins/ctxexp-*/ctxexp_*/ctxexp_conf"))
    for group in GROUPS
    for path in (folder / group).glob("*.yaml")
    if "ctxexp-lab" not in path.parts  # what is trained: no option of `model=`
)
# What a file sets otherwise: several options are of one class, and a run may have other defaults than a call.
SET = {
    ("baseline", "b100"): {"size": 100},
    ("baseline", "b10k"): {"size": 10_000},
    ("baseline", "exact"): {"exact": True},
    ("dataset", "wikitext"): {
        "path": "Salesforce/wikitext", "config": "wikitext-2-raw-v1", "split": "test", "sentences": "marks",
        "limit": 2000,
    },
    ("metric", "intra_sentence_similarity"): {"baselines": ["run", "size_matched"]},
    ("metric", "max_explainable_variance_centred"): {"definition": "centred"},
    ("metric", "max_explainable_variance_released"): {"definition": "released"},
    ("metric", "static_vectors"): {"export": []},  # None in Python: as well nothing
    **{("model", name): {"unused": "refuse"} for name in ("bert", "gpt2", "huggingface")},  # a call warns
    ("transform", "center_unit_norm"): {"centred": True},
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "option" in metafunc.fixturenames:
        metafunc.parametrize("option", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")


def test_the_yaml_repeats_the_codes_defaults(option: Path) -> None:
    group, content = option.parent.name, yaml.safe_load(option.read_text(encoding="utf-8"))
    offer = registry().offers.get((group, (content or {}).get("name")))
    if offer is None:
        pytest.skip("several options in one, or of a plugin that is not installed")
    parameters = inspect.signature(offer.factory).parameters
    own = SET.get((group, option.stem), {})
    defaults = {key: p.default for key, p in parameters.items() if p.default is not inspect.Parameter.empty}
    written = {key: value for key, value in content.items() if key in defaults and not _is_open(value)}
    assert written == {key: own.get(key, _plain(defaults[key])) for key in written}
    assert {*own} <= {*written}
    if option.stem == content["name"]:  # a key that the YAML lacks can't be set without a `+`
        assert {*content} - {"name", "defaults"} == {*(arguments(offer.factory) or ())}


def _is_open(value: object) -> bool:
    """Whether it is filled in: from elsewhere in the config, or by the user."""
    return value == "???" or (
        isinstance(value, str) and OmegaConf.is_interpolation(OmegaConf.create({"x": value}), "x")
    )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple | frozenset) else value
