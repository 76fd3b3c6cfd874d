"""Options are held to what they may be by their types."""

from __future__ import annotations

import pytest

from ctxexp.errors import ConfigError
from tests.composed import composed


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("metric.curvature.definition", "both", "no such choice"),
        ("metric.probe.classifier", "svm", "no such choice"),
        ("metric.self_similarity_by_class.by", "[poz]", "expected list.pos . frequency . pieces."),
        ("metric.sense_separation.permutations", "-1", "expected at least 0"),
        ("metric.frequency_geometry.k", "[3,0]", "expected at least 1"),
        ("metric.frequency_geometry.bins", "some", "expected"),
        ("metric.static_vectors.export", "[text]", "expected list.word2vec_text"),
        ("dataset.semcor.documents", "0", "expected at least 1"),
        ("transform.flow.rate", "0", "expected above 0"),
        ("transform.clusterwise.clusters", "null", "expected int"),
    ],
)
def test_options_out_of_range_are_refused(option: str, value: str, said: str) -> None:
    kind, name, key = option.split(".")
    place = option if kind == "metric" else f"{kind}.{key}"
    with pytest.raises(ConfigError, match=f"{place}=.*: {said}"):
        composed(f"{kind}={name}", f"{place}={value}")


def test_edges_of_bins_ascend() -> None:
    from ctxexp_measures.frequency.metric import FrequencyGeometry

    from ctxexp.errors import MetricError

    with pytest.raises(MetricError, match=r"bins=\[0, 5, 5\]: expected ascending ranks such as"):
        FrequencyGeometry(bins=[0, 5, 5])
