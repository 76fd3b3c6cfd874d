from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ctxexp import Results
from ctxexp.report import colours
from ctxexp.report.charts import line_styles
from tests.sample_results import results_with, run_info

FIXED = {"bert": "#1f77b4", "gpt2": "#d62728", "elmo": "#2ca02c"}


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def distance(a: str, b: str) -> float:
    return sum((p - q) ** 2 for p, q in zip(rgb(a), rgb(b), strict=True)) ** 0.5


def test_the_papers_models_keep_their_colours_whoever_else_is_there() -> None:
    assert set(FIXED) == {"bert", "gpt2", "elmo"}
    assert colours(list(FIXED)) == FIXED
    crowd = colours([f"model-{i}" for i in range(60)] + ["elmo", "bert (untrained)", "gpt2"])
    assert crowd["elmo"] == FIXED["elmo"]
    assert crowd["gpt2"] == FIXED["gpt2"]


words = st.sampled_from(["bert", "BERT", "gpt2", "llama", "qwen", "t5"])
notes = st.sampled_from(["", " (untrained)", " published", " seed 1", " seed 2", " x", ": last"])
label = st.one_of(st.builds(str.__add__, words, notes), st.text(max_size=12))


@given(st.lists(label, max_size=80, unique=True), st.randoms(use_true_random=False))
def test_colours_are_valid_distinct_and_independent_of_order(labels: list[str], random: object) -> None:
    chosen = colours(labels)
    assert list(chosen) == labels
    assert len(set(chosen.values())) == len(labels)
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in chosen.values())
    shuffled = sorted(labels, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert colours(shuffled) == chosen


def run(label: str, encoder: str = "b", **info: str) -> tuple[str, Results]:
    return label, results_with({"m/raw": np.ones(2)}, info=run_info(encoder=encoder, **info))


def test_runs_of_one_model_differ_in_hue() -> None:
    runs = [run("bert + whitening", transform="whitening"), run("bert"), run("bert + center", transform="center")]
    runs += [run("bert (shuffled) + center", "center", control="shuffled")]
    look = line_styles(runs)
    assert look["bert"][0] == FIXED["bert"]
    chosen = [colour for colour, _ in look.values()]
    assert min(distance(a, b) for i, a in enumerate(chosen) for b in chosen[:i]) > 45
