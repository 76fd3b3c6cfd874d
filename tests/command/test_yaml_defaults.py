"""An option's YAML says what its code doesn't: a default stands in the signature alone, of a call and a command."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import yaml

from ctxexp.command import registry
from ctxexp.plugins.registry import SHARED
from tests.shipped import KINDS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for folder in (ROOT / "conf", *ROOT.glob("plugins/ctxexp-*/ctxexp_*/**/ctxexp_conf"))
    for group in KINDS
    for path in (folder / group).glob("*.yaml")
)


@pytest.mark.parametrize("option", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_yaml_repeats_a_default(option: Path) -> None:
    group, content = option.parent.name, yaml.safe_load(option.read_text(encoding="utf-8")) or {}
    offer = registry().offers.get((group, content.get("name")))
    if offer is None:
        pytest.skip("several options in one, or of a plugin that is not installed")
    defaults = {key: _plain(p.default) for key, p in inspect.signature(offer.factory).parameters.items()}
    defaults |= SHARED.get(group, {})
    assert [key for key, value in content.items() if key in defaults and repr(value) == repr(defaults[key])] == []


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple | frozenset) else value
