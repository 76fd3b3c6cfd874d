"""The parts of a config are built once, whoever needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxexp.command import Built
from tests.composed import composed


def test_check_key_and_run_share_parts_that_are_built_once(tmp_path: Path) -> None:
    config = composed("model=random_words", "metric=anisotropy", "bootstrap=0", f"cache.folder={tmp_path}")
    calls: Counter[str] = Counter()

    def counting(part: Any) -> Callable[[], object]:
        def build() -> object:
            calls[part.kind] += 1
            return part.make()

        return build

    for part in (config.model, config.dataset, config.control, config.baseline, config.engine):
        config = config.with_factories(part.kind, {part.name: counting(part)})
    built = Built(config)
    built.check_objective()
    built.check()
    assert built.key()
    assert built.title == "random_words"
    assert built.run(tmp_path).info.model.name == "random_words"
    assert calls == dict.fromkeys(("model", "dataset", "control", "baseline", "engine"), 1)
