"""The metrics as classes: variants, settings, registration."""

from __future__ import annotations

import pytest

from ctxexp import GroupMean
from ctxexp.errors import MetricError
from tests.shipped import IntraSentenceSimilarity, MaxExplainableVariance, SelfSimilarity


def test_options_tell_variants_apart() -> None:
    variants = {IntraSentenceSimilarity(unit_norm=True): "unit_norm", IntraSentenceSimilarity(): ""}
    variants |= {MaxExplainableVariance(definition=of): of for of in ("centred", "released")}
    for metric, variant in {**variants, MaxExplainableVariance(): "", SelfSimilarity(): ""}.items():
        assert metric.variant == variant
        assert ("scaled to norm 1" in metric.definition) == (variant == "unit_norm")
    assert MaxExplainableVariance().baselines == ("size_matched",)


@pytest.mark.parametrize(("name", "expected"), [("unit", "reading = Reading"), ("row_influence", "_row_influence")])
def test_what_nothing_would_read_is_refused(name: str, expected: str) -> None:
    with pytest.raises(MetricError, match=rf"Mine\.{name}: expected {expected}"):
        type("Mine", (GroupMean,), {name: 0.05})
