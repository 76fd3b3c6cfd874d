"""The metrics as classes: variants, settings, registration."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ctxexp import GroupMean
from ctxexp.errors import MetricError
from tests.composed import registry_of
from tests.shipped import IntraSentenceSimilarity, MaxExplainableVariance, SelfSimilarity


def test_options_tell_variants_apart() -> None:
    variants = {IntraSentenceSimilarity(unit_norm=True): "unit_norm", IntraSentenceSimilarity(): ""}
    variants |= {MaxExplainableVariance(definition=of): of for of in ("centred", "released")}
    for metric, variant in {**variants, MaxExplainableVariance(): "", SelfSimilarity(): ""}.items():
        assert metric.variant == variant
        assert ("scaled to norm 1" in metric.definition) == (variant == "unit_norm")
    assert MaxExplainableVariance().baselines == ("size_matched",)


CONF = Path(__file__).parents[2] / "conf"
CHANGED = {
    "baseline/b100": {"size"}, "baseline/b10k": {"size"}, "baseline/exact": {"exact"},
    "metric/intra_sentence_similarity": {"baselines"}, "metric/max_explainable_variance_centred": {"definition"},
    "metric/max_explainable_variance_released": {"definition"}, "transform/center_unit_norm": {"centred"},
}  # fmt: skip
FILES = [
    f"{kind}/{path.stem}"
    for kind in ("baseline", "control", "metric", "transform")
    for path in sorted((CONF / kind).glob("*.yaml"))
    if "name" in OmegaConf.load(path)
]


def settings_of(thing: object) -> dict[str, object]:
    """The plain values among an object's attributes, and those of its parts."""
    plain = (int, float, str, frozenset, tuple, type(None))
    parts = {name: value if isinstance(value, plain) else settings_of(value) for name, value in vars(thing).items()
             if isinstance(value, plain) or hasattr(value, "__dict__")}  # fmt: skip
    return {"class": type(thing).__name__, **parts}


@pytest.mark.parametrize("file", FILES)
def test_values_on_file_are_the_defaults_in_python(file: str) -> None:
    """Files repeat the factories' defaults, so that they can be read; those of CHANGED are there to change one."""
    config = OmegaConf.create(
        {"seed": OmegaConf.load(CONF / "ctxexp.yaml").seed, "of": OmegaConf.load(CONF / f"{file}.yaml")}
    )
    options = OmegaConf.to_container(config.of, resolve=True)
    assert isinstance(options, dict)
    factory = registry_of().find(file.split("/")[0], options.pop("name")).factory  # type: ignore[arg-type]
    default = settings_of(factory())
    assert {name for name in options if settings_of(factory(**{name: options[name]})) != default} == CHANGED.get(
        file, set()
    )


@pytest.mark.parametrize(("name", "expected"), [("unit", "reading = Reading"), ("row_influence", "_row_influence")])
def test_what_nothing_would_read_is_refused(name: str, expected: str) -> None:
    with pytest.raises(MetricError, match=rf"Mine\.{name}: expected {expected}"):
        type("Mine", (GroupMean,), {name: 0.05})
