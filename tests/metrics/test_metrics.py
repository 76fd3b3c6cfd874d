"""The metrics as classes: variants, settings, registration."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from ctxexp import Block, GroupMean
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


def test_names_and_their_settings() -> None:
    registry = registry_of()
    settings = {
        n: list(inspect.signature(registry.find("metric", n).factory).parameters) for n in registry.names("metric")
    }
    assert settings == {
        "anisotropy": [],
        "intra_sentence_similarity": ["sample", "unit_norm", "baselines"],
        "max_explainable_variance": ["definition", "baselines", "sample"],
        "self_similarity": ["sample", "baselines"],
        "sense_separation": ["sample", "permutations", "seed"],
        "sts": ["similarity"],
        "word_norm": [],
    }  # fmt: skip
    assert registry.names("baseline") == [
        "frequency_matched", "one_per_sentence", "position_matched", "size_matched", "uniform",
    ]  # fmt: skip
    for kind in ("metric", "baseline"):
        for name in registry.names(kind):
            parameters = inspect.signature(registry.find(kind, name).factory).parameters.values()
            assert all(p.kind is p.KEYWORD_ONLY for p in parameters)


CONF = Path(__file__).parents[2] / "conf"
CHANGED = {
    "baseline/b100": {"size"}, "baseline/b10k": {"size"}, "baseline/exact": {"exact"}, "baseline/uniform": {"exact"},
    "baseline/frequency_matched": {"exact"}, "baseline/position_matched": {"exact"},
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


def test_a_score_a_group_is_expected() -> None:
    class Scalar(GroupMean):
        over = "word"

        def score(self, x: np.ndarray) -> np.ndarray:
            return np.array(0.5)

    with pytest.raises(MetricError, match=r"Scalar.score gave shape \(\) for 3 groups; expected one score per group"):
        Scalar().update_block(Block("abc", np.ones((3, 2, 2))))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("line", "reading = Reading"), ("unit", "reading = Reading"), ("row_influence", "_row_influence")],
)
def test_what_nothing_would_read_is_refused(name: str, expected: str) -> None:
    with pytest.raises(MetricError, match=rf"Mine\.{name}: expected {expected}"):
        type("Mine", (GroupMean,), {name: 0.05})
